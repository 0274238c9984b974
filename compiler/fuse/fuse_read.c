/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what fuse_dump.c prints. Structure is checked here, meaning by fuse_verify. */
#include "fuse/fuse.h"
#include "dump/text.h"

typedef struct Reader {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    uint32_t *group_of;
    Residence *residence;
    const char **reason;
    int32_t *result_of;
} Reader;

/* The number of a label by its printed name (dump_label), or -1. */
static int32_t label_number(Sym name)
{
    const char *t = name->text;
    if (name->n == 1 && t[0] >= 'a' && t[0] <= 'z') {
        return t[0] - 'a';
    }
    if (name->n == 1 && t[0] >= 'A' && t[0] <= 'Z') {
        return t[0] - 'A' + 26;
    }
    int32_t v = 0;
    for (uint32_t k = 1; k < name->n; k++) {
        if (t[0] != 'l' || t[k] < '0' || t[k] > '9' || v > 100000000) {
            return -1;
        }
        v = v * 10 + (t[k] - '0');
    }
    return name->n > 1 && v >= 52 ? v : -1;
}

static bool refuse(Reader *r, Span span, const char *what)
{
    diag_error(&r->ctx->diags, E_DUMP, span, "%s", what);
    return false;
}

static bool read_node(Reader *r, const Term *t, NodeRef *out)
{
    if (t == NULL || t->kind != TERM_VALUE || t->value < 0 || t->value >= r->g->nodes.n) {
        return refuse(r, t == NULL ? (Span){0} : t->span,
                      "a value of the graph is expected here");
    }
    *out = (NodeRef)t->value;
    return true;
}

static bool read_axis(Reader *r, const DumpLine *line, const Group *group, GroupAxis *axis)
{
    Cursor c = cursor_line(r->ctx, line);
    const Term *list = NULL;
    if (cursor_expect(&c, TERM_NAME, "axis", "'axis'") == NULL ||
        (list = cursor_expect(&c, TERM_LIST, NULL, "a list of labels")) == NULL ||
        !cursor_expect_end(&c)) {
        return false;
    }
    if (list->n != group->n_nodes) {
        return refuse(r, list->span, "an axis has one label for each value of its group");
    }
    int32_t *label = ARENA_ARRAY(r->arena, group->n_nodes, int32_t);
    bool known = false;
    for (uint32_t at = 0; at < group->n_nodes; at++) {
        const Term *t = list->child[at];
        if (t->kind == TERM_NAME && str_eq_cstr((Str){t->text->text, t->text->n}, "_")) {
            label[at] = -1;
            continue;
        }
        label[at] = t->kind == TERM_NAME ? label_number(t->text) : -1;
        const Node *n = graph_node(r->g, group->nodes[at]);
        if (label[at] < 0 || (uint32_t)label[at] >= n->n_labels) {
            return refuse(r, t->span, "a label of that value is expected here");
        }
        axis->extent = n->extent[label[at]];
        known = true;
        axis->reduced |= node_reduces(n, label[at]);
    }
    axis->label = label;
    return known || refuse(r, list->span, "an axis is a label of some value");
}

static bool read_group(Reader *r, const DumpLine *line, uint32_t number, Group *group)
{
    Cursor c = cursor_line(r->ctx, line);
    const Term *k = NULL, *list = NULL;
    if (cursor_expect(&c, TERM_NAME, "group", "'group'") == NULL ||
        (k = cursor_expect(&c, TERM_INT, NULL, "the number of the group")) == NULL ||
        (list = cursor_expect(&c, TERM_LIST, NULL, "a list of values")) == NULL ||
        !cursor_expect_end(&c)) {
        return false;
    }
    if (k->value != (int64_t)number) {
        return refuse(r, k->span, "groups are numbered from 0 in order");
    }
    NodeRef *nodes = ARENA_ARRAY(r->arena, list->n, NodeRef);
    for (uint32_t at = 0; at < list->n; at++) {
        if (!read_node(r, list->child[at], &nodes[at])) {
            return false;
        }
        r->group_of[nodes[at]] = number;
    }
    group->n_nodes = list->n;
    group->nodes = nodes;
    GroupAxis *axes = ARENA_ARRAY(r->arena, line->n_body, GroupAxis);
    for (uint32_t x = 0; x < line->n_body; x++) {
        if (!read_axis(r, line->body[x], group, &axes[x])) {
            return false;
        }
    }
    group->n_axes = line->n_body;
    group->axes = axes;
    return true;
}

static bool read_value(Reader *r, const DumpLine *line)
{
    Cursor c = cursor_line(r->ctx, line);
    NodeRef n = 0;
    const Term *word = NULL;
    if (cursor_expect(&c, TERM_NAME, "value", "'value' or 'group'") == NULL ||
        !read_node(r, cursor_expect(&c, TERM_VALUE, NULL, "a value"), &n) ||
        (word = cursor_expect(&c, TERM_NAME, NULL, "where it lives")) == NULL) {
        return false;
    }
    r->residence[n] = RESIDE_NONE;
    for (Residence k = RESIDE_ARGUMENT; k < RESIDE_COUNT; k++) {
        if (str_eq_cstr((Str){word->text->text, word->text->n}, residence_name(k))) {
            r->residence[n] = k;
        }
    }
    if (r->residence[n] == RESIDE_NONE) {
        return refuse(r, word->span,
                      "one of argument, result, register, tile, workspace is expected");
    }
    if (r->residence[n] == RESIDE_RESULT) {
        const Term *k = cursor_expect(&c, TERM_INT, NULL, "the number of the result");
        if (k == NULL || k->value >= (int64_t)r->g->results.n) {
            return k != NULL && refuse(r, k->span, "no such result");
        }
        r->result_of[n] = (int32_t)k->value;
    }
    if (cursor_is(&c, TERM_STRING, NULL)) {
        r->reason[n] = cursor_peek(&c)->text->text;
        (void)cursor_take(&c, TERM_STRING, NULL);
    }
    return cursor_expect_end(&c);
}

Partition *fuse_read(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line)
{
    uint32_t n = g->nodes.n;
    Reader r = {.ctx = ctx, .arena = arena, .g = g};
    r.group_of = ARENA_ARRAY(arena, n, uint32_t);
    r.residence = ARENA_ARRAY(arena, n, Residence);
    r.reason = ARENA_ARRAY(arena, n, const char *);
    r.result_of = ARENA_ARRAY(arena, n, int32_t);
    for (NodeRef k = 0; k < n; k++) {
        r.group_of[k] = NODE_NONE;
        r.result_of[k] = -1;
    }
    Group *groups = ARENA_ARRAY(arena, line->n_body, Group);
    uint32_t n_groups = 0;
    for (uint32_t k = 0; k < line->n_body; k++) {
        const DumpLine *item = line->body[k];
        bool is_group =
            item->n > 0 && item->term[0]->kind == TERM_NAME &&
            str_eq_cstr((Str){item->term[0]->text->text, item->term[0]->text->n}, "group");
        bool ok =
            is_group ? read_group(&r, item, n_groups, &groups[n_groups]) : read_value(&r, item);
        if (!ok) {
            return NULL;
        }
        n_groups += is_group ? 1 : 0;
    }
    Partition *p = ARENA_NEW(arena, Partition);
    *p = (Partition){.graph = g,
                     .n_groups = n_groups,
                     .groups = groups,
                     .group_of = r.group_of,
                     .residence = r.residence,
                     .reason = r.reason,
                     .result_of = r.result_of};
    return fuse_verify(ctx, p, "read") ? p : NULL;
}
