/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what dump.c prints. Form is checked here, meaning by nest_verify. */
#include "graph/recurrence.h"
#include <string.h>

#include "dump/text.h"
#include "nest/leaves.h"
#include "nest/place.h"
#include "nest/text.h"
#include "nest/tree.h"
#include "nest/verify.h"

typedef struct Reader {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    VEC(NestAxis) axes;
    VEC(Sym) names; /* of the axes */
    Tree tree;
    NestValue *values;
    Residence *residence;
} Reader;

static bool read_node(Reader *r, const Term *t, NodeRef *out)
{
    if (t == NULL || t->kind != TERM_VALUE || t->value < 0 || t->value >= r->g->nodes.n) {
        return dump_refuse(r->ctx, t == NULL ? (Span){0} : t->span,
                           "a value of the graph is expected here");
    }
    *out = (NodeRef)t->value;
    return true;
}

/* What follows a label: `:3`, `+1:3` */
static bool read_halo(Cursor *c, NestHalo *halo)
{
    *halo = (NestHalo){0, 0};
    if (cursor_done(c)) {
        return true;
    }
    if (cursor_take(c, TERM_PUNCT, "+")) {
        const Term *from = cursor_expect(c, TERM_INT, NULL, "a number of positions");
        if (from == NULL) {
            return false;
        }
        halo->from = from->value;
    }
    const Term *count = cursor_expect(c, TERM_PUNCT, ":", "':'") == NULL
                            ? NULL
                            : cursor_expect(c, TERM_INT, NULL, "a number of positions");
    if (count == NULL || !cursor_expect_end(c)) {
        return false;
    }
    halo->count = count->value;
    if (halo->count < 1 || halo->count > SIZE_LIMIT || halo->from > SIZE_LIMIT) {
        return dump_refuse(c->ctx, count->span, "a halo has positions, not too many");
    }
    return true;
}

/* %3[a], or %3[a+1:3] */
static bool read_label(Reader *r, const Term *t, NodeRef *node, int32_t *label, NestHalo *halo)
{
    if (t->kind != TERM_INDEX || t->n != 2) {
        return dump_refuse(r->ctx, t->span, "a label of a value, %%N[LABEL], is expected here");
    }
    if (!read_node(r, t->child[0], node)) {
        return false;
    }
    Cursor c = cursor_seq(r->ctx, t->child[1]);
    const Term *name = cursor_expect(&c, TERM_NAME, NULL, "a label");
    if (name == NULL) {
        return false;
    }
    *label = dump_label_number(name->text);
    if (*label < 0 || (uint32_t)*label >= graph_node(r->g, *node)->n_labels) {
        return dump_refuse(r->ctx, name->span, "a label of that value is expected here");
    }
    return read_halo(&c, halo);
}

static uint32_t find_axis(const Reader *r, Sym name)
{
    uint32_t x = 0;
    while (x < r->names.n && r->names.at[x] != name) {
        x++;
    }
    return x;
}

static bool read_axis(Reader *r, const DumpLine *line)
{
    Cursor c = cursor_line(r->ctx, line);
    const Term *name = NULL, *list = NULL;
    if (cursor_expect(&c, TERM_NAME, "axis", "'axis'") == NULL ||
        (name = cursor_expect(&c, TERM_NAME, NULL, "the name of an axis")) == NULL ||
        (list = cursor_expect(&c, TERM_LIST, NULL, "a list of labels")) == NULL ||
        !cursor_expect_end(&c)) {
        return false;
    }
    if (list->n == 0 || find_axis(r, name->text) < r->names.n) {
        return dump_refuse(r->ctx, name->span, "an axis has labels, and a name of its own");
    }
    NodeRef *node = ARENA_ARRAY(r->arena, list->n, NodeRef);
    int32_t *label = ARENA_ARRAY(r->arena, list->n, int32_t);
    NestHalo *halo = ARENA_ARRAY(r->arena, list->n, NestHalo);
    NestAxis axis = {.n = list->n, .node = node, .label = label};
    for (uint32_t k = 0; k < list->n; k++) {
        if (!read_label(r, list->child[k], &node[k], &label[k], &halo[k])) {
            return false;
        }
        axis.halo = halo[k].count > 0 ? halo : axis.halo;
        if (k > 0 && node[k] <= node[k - 1]) {
            return dump_refuse(r->ctx, list->child[k]->span,
                               "values of an axis are in ascending order");
        }
        axis.extent = graph_node(r->g, node[k])->extent[label[k]];
    }
    vec_push(r->arena, &r->axes, axis);
    vec_push(r->arena, &r->names, name->text);
    return true;
}

/* The axis of a loop around a line of this depth: 1 + its depth, the innermost of them. */
static bool read_from(Reader *r, Cursor *c, uint32_t depth, uint32_t *out)
{
    const Term *name = cursor_expect(c, TERM_NAME, NULL, "the axis of a loop around this one");
    uint32_t x = name == NULL ? r->axes.n : find_axis(r, name->text), around = depth;
    for (uint32_t k = r->tree.list.n; k-- > 0 && x < r->axes.n && around > 0;) {
        const Draft *d = &r->tree.list.at[k];
        if (!d->is_loop || d->depth >= around) {
            continue;
        }
        around = d->depth;
        if (d->axis.node == r->axes.at[x].node) {
            *out = 1 + d->depth;
            return true;
        }
    }
    return name != NULL &&
           dump_refuse(r->ctx, name->span, "no loop around this one has this axis");
}

static bool read_loop(Reader *r, const DumpLine *line, uint32_t depth)
{
    Cursor c = cursor_line(r->ctx, line);
    const Term *name = NULL, *step = NULL;
    if (cursor_expect(&c, TERM_NAME, "for", "'for' or a value") == NULL ||
        (name = cursor_expect(&c, TERM_NAME, NULL, "the name of an axis")) == NULL ||
        cursor_expect(&c, TERM_NAME, "step", "'step'") == NULL ||
        (step = cursor_expect(&c, TERM_INT, NULL, "a tile size")) == NULL) {
        return false;
    }
    uint32_t x = find_axis(r, name->text);
    if (x == r->axes.n) {
        return dump_refuse(r->ctx, name->span, "no axis of this name");
    }
    if (depth >= NEST_DEPTH) {
        return dump_refuse(r->ctx, line->span, "too many loops around each other");
    }
    uint32_t from = 0;
    if (cursor_take(&c, TERM_NAME, "from") && !read_from(r, &c, depth, &from)) {
        return false;
    }
    bool parallel = cursor_take(&c, TERM_NAME, "parallel");
    NestAxis axis = r->axes.at[x];
    axis.online = cursor_take(&c, TERM_NAME, "online");
    tree_loop(r->arena, &r->tree, depth, axis, step->value);
    r->tree.list.at[r->tree.list.n - 1].parallel = parallel;
    r->tree.list.at[r->tree.list.n - 1].from = from;
    r->tree.list.at[r->tree.list.n - 1].span = line->span;
    return cursor_expect_end(&c);
}

static bool read_residence(Reader *r, Cursor *c, NestValue *value)
{
    const Term *word = cursor_expect(c, TERM_NAME, NULL, "where it lives");
    value->residence = RESIDE_NONE;
    for (Residence k = RESIDE_RESULT; word != NULL && k < RESIDE_COUNT; k++) {
        if (residence_is_stored(k) &&
            str_eq_cstr((Str){word->text->text, word->text->n}, residence_name(k))) {
            value->residence = k;
        }
    }
    if (value->residence == RESIDE_NONE) {
        return word != NULL && dump_refuse(r->ctx, word->span,
                                           "one of result, tile, workspace, into is expected");
    }
    if (value->residence == RESIDE_INTO) {
        return read_node(r, cursor_expect(c, TERM_VALUE, NULL, "a value"), &value->in_place);
    }
    if (value->residence == RESIDE_RESULT) {
        const Term *k = cursor_expect(c, TERM_INT, NULL, "the number of the result");
        if (k == NULL || k->value >= (int64_t)r->g->results.n) {
            return k != NULL && dump_refuse(r->ctx, k->span, "no such result");
        }
        value->result = (int32_t)k->value;
    }
    return true;
}

/* A label of the node that `user` points to. */
static int64_t label_named(void *user, const Term *name)
{
    const Node *n = *(const Node *const *)user;
    int32_t label = dump_label_number(name->text);
    return label >= 0 && (uint32_t)label < n->n_labels ? label : -1;
}

static bool read_leaf(Reader *r, const DumpLine *line, uint32_t depth)
{
    Cursor c = cursor_line(r->ctx, line);
    NodeRef n = 0;
    const Term *name = cursor_expect(&c, TERM_VALUE, NULL, "a value or 'for'");
    if (!read_node(r, name, &n)) {
        return false;
    }
    if (op_info(graph_node(r->g, n)->op)->kind == OPKIND_LEAF) {
        return dump_refuse(r->ctx, name->span, "nothing computes this value");
    }
    NestValue *value = &r->values[n];
    if (!read_residence(r, &c, value)) {
        return false;
    }
    r->residence[n] = value->residence;
    if (cursor_take(&c, TERM_NAME, "in") &&
        !read_node(r, cursor_expect(&c, TERM_VALUE, NULL, "a value"), &value->in_place)) {
        return false;
    }
    for (LeafKind kind = 0; kind < LEAF_COUNT; kind++) {
        value->kind = cursor_take(&c, TERM_NAME, leaf_word(kind)) ? kind : value->kind;
    }
    bool again = cursor_take(&c, TERM_NAME, "again"), both = cursor_take(&c, TERM_NAME, "both");
    const Node *node = graph_node(r->g, n);
    tree_leaf(r->arena, &r->tree, depth, n, again);
    r->tree.list.at[r->tree.list.n - 1].mirror = both;
    r->tree.list.at[r->tree.list.n - 1].span = line->span;
    return schedule_read(&c, r->arena, label_named, &node, &value->schedule) &&
           cursor_expect_end(&c);
}

/* Nesting of the tree is limited by the reader of dumps. */
static bool read_items(Reader *r, const DumpLine *block, uint32_t depth)
{
    for (uint32_t k = 0; k < block->n_body; k++) {
        const DumpLine *line = block->body[k];
        const Term *first = line->n == 0 ? NULL : line->term[0];
        bool is_axis = depth == 0 && first != NULL && first->kind == TERM_NAME &&
                       str_eq_cstr((Str){first->text->text, first->text->n}, "axis");
        bool ok = is_axis                                      ? read_axis(r, line)
                  : first != NULL && first->kind == TERM_VALUE ? read_leaf(r, line, depth)
                  : read_loop(r, line, depth)                  ? read_items(r, line, depth + 1)
                                                               : false;
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* What has no leaf and is needed is an expression, computed where it is used. */
static void find_inline(const Graph *g, Residence *residence)
{
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef n = g->results.at[k].node;
        residence[n] = residence[n] == RESIDE_NONE ? RESIDE_INLINE : residence[n];
    }
    for (NodeRef n = g->nodes.n; n-- > 0;) {
        const Node *node = graph_node(g, n);
        for (uint32_t k = 0; residence[n] != RESIDE_NONE && k < node->n_operands; k++) {
            NodeRef p = node->operand[k];
            residence[p] = residence[p] == RESIDE_NONE ? RESIDE_INLINE : residence[p];
        }
        if (residence[n] == RESIDE_INLINE && node->op == OP_INPUT) {
            residence[n] = RESIDE_ARGUMENT;
        } else if (residence[n] == RESIDE_INLINE && node->op == OP_VIEW) {
            residence[n] = RESIDE_VIEW;
        }
    }
}

static Nest *read_tree(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line)
{
    Reader r = {.ctx = ctx, .arena = arena, .g = g};
    r.values = ARENA_ARRAY(arena, g->nodes.n, NestValue);
    r.residence = ARENA_ARRAY(arena, g->nodes.n, Residence);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        r.values[n] = (NestValue){.result = -1, .in_place = NODE_NONE};
    }
    if (!read_items(&r, line, 0)) {
        return NULL;
    }
    find_inline(g, r.residence);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        r.values[n].residence = r.residence[n];
        if (r.residence[n] == RESIDE_INLINE && op_info(node->op)->kind != OPKIND_LEAF &&
            !node_is_expression(node)) {
            dump_refuse(r.ctx, line->span, "value %%%u has no leaf in the nest", n);
            return NULL;
        }
    }
    NestFacts facts;
    nest_facts_of(arena, g, r.residence, &facts);
    Nest *nest = tree_nest(arena, g, &r.tree);
    nest_derive(&facts, nest, r.values);
    nest_set_bytes(nest, r.values);
    nest->values = r.values;
    return nest;
}

/* when TEST ~ SIZE { ... } */
static bool read_size(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line,
                      NestSize *out)
{
    Cursor c = cursor_line(ctx, line);
    const Term *size = NULL;
    if (cursor_expect(&c, TERM_NAME, "when", "'when'") == NULL ||
        !read_dim_test(&c, &g->dims, &out->when) ||
        cursor_expect(&c, TERM_PUNCT, "~", "'~'") == NULL ||
        (size = cursor_expect(&c, TERM_INT, NULL, "a typical size")) == NULL ||
        !cursor_expect_end(&c)) {
        return false;
    }
    if (!line->has_block || size->value < 1 || !dim_test_holds(&out->when, size->value)) {
        return dump_refuse(
            ctx, size->span,
            "a nest for some sizes is made for one of them, and stands in braces");
    }
    out->size = size->value;
    bool typical = g->dims.list.at[out->when.dim].typical == out->size;
    out->nest = read_tree(
        ctx, arena, typical ? g : nest_graph_at(arena, g, out->when.dim, out->size), line);
    return out->nest != NULL;
}

/* The nest for typical extents, with all of them. */
static Nest *read_sizes(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line)
{
    NestSize *sizes = ARENA_ARRAY(arena, line->n_body, NestSize);
    Nest *own = NULL;
    for (uint32_t k = 0; k < line->n_body; k++) {
        if (!read_size(ctx, arena, g, line->body[k], &sizes[k])) {
            return NULL;
        }
        own = sizes[k].nest->graph == g ? sizes[k].nest : own;
    }
    if (own == NULL) {
        diag_error(&ctx->diags, E_DUMP, line->span,
                   "none of the nests is for the typical size");
        return NULL;
    }
    own->n_sizes = line->n_body;
    own->sizes = sizes;
    return own;
}

/* `nest steps 812 {` of a nest after which other searches come. */
static bool read_steps(Ctx *ctx, const DumpLine *line, Nest *nest)
{
    Cursor c = cursor_line(ctx, line);
    if (!cursor_take(&c, TERM_NAME, "nest") || !cursor_take(&c, TERM_NAME, "steps")) {
        return true;
    }
    const Term *steps = cursor_expect(&c, TERM_INT, NULL, "how many steps a search took");
    if (steps == NULL || !cursor_expect_end(&c)) {
        return false;
    }
    if (steps->value < 0) {
        return dump_refuse(ctx, steps->span, "a search takes no fewer steps than none");
    }
    nest->steps = (uint64_t)steps->value;
    nest->goes_on = true;
    return true;
}

/* `recurrence 0 batch nest {`: the nest of a recurrence's body, to the recurrence. */
static bool read_recurrence(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line)
{
    Cursor c = cursor_line(ctx, line);
    (void)cursor_take(&c, TERM_NAME, "recurrence");
    const Term *number = cursor_expect(&c, TERM_INT, NULL, "the number of a recurrence");
    if (number == NULL) {
        return false;
    }
    if (number->value < 0 || number->value >= g->recurrences.n) {
        return dump_refuse(ctx, number->span, "there is no such recurrence");
    }
    Recurrence *r = g->recurrences.at[number->value];
    r->batch = cursor_take(&c, TERM_NAME, "batch");
    r->nest = cursor_expect(&c, TERM_NAME, "nest", "'nest'") == NULL
                  ? NULL
                  : nest_read(ctx, arena, r->body, line);
    return r->nest != NULL;
}

/* The nests of bodies, and the line without them. */
static bool read_recurrences(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line,
                             DumpLine *rest)
{
    DumpLine **body = ARENA_ARRAY(arena, line->n_body, DumpLine *);
    *rest = *line;
    rest->body = body;
    rest->n_body = 0;
    for (uint32_t k = 0; k < line->n_body; k++) {
        DumpLine *l = line->body[k];
        bool nest = l->n > 0 && l->term[0]->kind == TERM_NAME &&
                    strcmp(l->term[0]->text->text, "recurrence") == 0;
        if (nest && !read_recurrence(ctx, arena, g, l)) {
            return false;
        }
        if (!nest) {
            body[rest->n_body++] = l;
        }
    }
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        if (g->recurrences.at[k]->nest == NULL) {
            return dump_refuse(ctx, line->span, "recurrence %u has no nest", k);
        }
    }
    return true;
}

Nest *nest_read(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *all)
{
    DumpLine rest, *line = &rest;
    if (!read_recurrences(ctx, arena, g, all, &rest)) {
        return NULL;
    }
    bool several = line->n_body > 0 && line->body[0]->n > 0 &&
                   line->body[0]->term[0]->kind == TERM_NAME &&
                   strcmp(line->body[0]->term[0]->text->text, "when") == 0;
    Nest *nest = several ? read_sizes(ctx, arena, g, line) : read_tree(ctx, arena, g, line);
    bool fine = nest != NULL && read_steps(ctx, line, nest) && nest_verify(ctx, nest, "read");
    return fine ? nest : NULL;
}
