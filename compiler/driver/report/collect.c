/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what report.h says of a kernel. */
#include <string.h>

#include "driver/report/report.h"
#include "driver/report/spill.h"
#include "nest/plan.h"

static int64_t typical_bytes(const Graph *g, DType t, uint32_t rank, const Dim *shape)
{
    int64_t bytes = dtype_bytes(t);
    for (uint32_t d = 0; d < rank; d++) {
        bytes = sat_mul(bytes, dim_typical(&g->dims, shape[d]));
    }
    return bytes;
}

static void count_arguments(ReportKernel *r)
{
    for (uint32_t k = 0; k < r->g->params.n; k++) {
        const Param *p = &r->g->params.at[k];
        r->parameters =
            sat_add(r->parameters, typical_bytes(r->g, p->dtype, p->rank, p->shape));
    }
    for (uint32_t k = 0; k < r->g->results.n; k++) {
        const Node *n = graph_node(r->g, r->g->results.at[k].node);
        r->results = sat_add(r->results, typical_bytes(r->g, n->dtype, n->rank, n->shape));
    }
}

/* ---- values ---- */

static const char *lives(const Nest *nest, NodeRef n)
{
    Residence r = nest->values[n].residence;
    return r == RESIDE_TILE && nest_grows(nest, n) ? "block" : residence_name(r);
}

/* Blocks are planned for one level; what is too large for it is in the next one that holds it. */
static const char *level_of(const Machine *m, const NestValue *v)
{
    if (v->residence == RESIDE_INLINE) {
        return "registers";
    }
    if (m->n_levels == 0) {
        return "memory";
    }
    uint32_t at = v->residence == RESIDE_TILE ? m->tile_level : 0;
    while (at > 0 && m->level[at].capacity != 0 && v->bytes > m->level[at].capacity) {
        at--;
    }
    return m->level[at].name;
}

static void set_reason(const Compilation *c, const Nest *nest, const NestSpills *spills,
                       ReportValue *v)
{
    if (v->residence == RESIDE_TILE && nest_grows(nest, v->node)) {
        v->reason = nest_stays_words(c->arena, nest, c->target->machine, v->node);
    } else if (v->residence == RESIDE_WORKSPACE && compilation_without(c, PASS_FUSE)) {
        v->reason = "--no-fuse";
    } else if (v->residence == RESIDE_WORKSPACE) {
        NestSpill s = nest_spill(spills, v->node);
        v->reason = s.size == NULL ? s.why : str_format(c->arena, "%s; %s", s.why, s.size);
        v->remedy = s.avoid;
    }
}

static const char *in_place_of(const Nest *nest, NodeRef n, Arena *arena)
{
    const NestValue *v = &nest->values[n];
    if (v->in_place != NODE_NONE) {
        return report_value_name(nest->graph, v->in_place, arena);
    }
    int32_t param = v->result >= 0 ? nest->graph->results.at[v->result].param : -1;
    return param < 0 ? NULL : nest->graph->params.at[param].name->text;
}

static const char *indices_of(const Node *n, const char *const *label, Arena *arena)
{
    Text t = text_new(arena);
    for (uint32_t d = 0; d < n->rank && n->out != NULL; d++) {
        text_printf(&t, "%s%s", d == 0 ? "[" : ",", label[n->out[d]]);
    }
    text_put(&t, n->rank > 0 && n->out != NULL ? "]" : "");
    return t.at;
}

static const char *symmetry_of(const ReportValue *v, const Node *n, const char *const *label,
                               Arena *arena)
{
    Text t = text_new(arena);
    for (uint32_t k = 0; k < n->n_generators && n->out != NULL; k++) {
        const Generator *s = &n->generator[k];
        text_printf(&t, "%s%s%s = %s%s%s", k == 0 ? "" : "; ", v->name, v->indices,
                    s->sign < 0 ? "-" : "", s->conj ? "conj(" : "", v->name);
        for (uint32_t d = 0; d < n->rank; d++) {
            text_printf(&t, "%s%s", d == 0 ? "[" : ",", label[n->out[s->to[d]]]);
        }
        text_put(&t, s->conj ? "])" : "]");
    }
    return t.n == 0 ? NULL : t.at;
}

static void put_label(void *user, uint32_t label, Text *out)
{
    const char *const *names = user;
    text_put(out, names[label]);
}

static const char *levels_of(const NestValue *v, const char *const *label, Arena *arena)
{
    Text t;
    if (v->schedule == NULL) {
        return NULL;
    }
    text_init(&t, arena);
    schedule_dump(v->schedule, put_label, (void *)label, &t);
    return t.at;
}

static uint32_t line_of(const Graph *g, Span span)
{
    uint32_t line = 0, column = 0;
    if (g->sources != NULL && span.source != 0 && span.source == g->span.source) {
        source_position(g->sources, span, &line, &column);
    }
    return line;
}

static ReportValue collect_value(const ReportKernel *r, const Residence *residence,
                                 const NestSpills *spills, NodeRef n)
{
    Arena *arena = r->c->arena;
    const Node *node = graph_node(r->g, n);
    const NestValue *at = &r->nest->values[n];
    ReportValue v = {.node = n, .residence = at->residence};
    v.name = report_value_name(r->g, n, arena);
    v.indices = indices_of(node, r->names[n], arena);
    Text type = text_new(arena);
    text_printf(&type, "%s[", dtype_name(node->dtype));
    for (uint32_t d = 0; d < node->rank; d++) {
        text_put(&type, d == 0 ? "" : ",");
        dim_put(&type, &r->g->dims, node->shape[d], NULL);
    }
    text_char(&type, ']');
    v.type = type.at;
    v.lives = lives(r->nest, n);
    v.level = level_of(r->c->target->machine, at);
    v.whole = nest_node_bytes(r->g, n);
    v.bytes = residence_is_stored(at->residence) ? at->bytes : 0;
    v.line = line_of(r->g, node->span);
    v.symmetry = symmetry_of(&v, node, r->names[n], arena);
    if (node->op != OP_INPUT) {
        v.computes = report_expression(arena, r->nest, r->names, n);
        v.levels = levels_of(at, r->names[n], arena);
        v.in_place = in_place_of(r->nest, n, arena);
        set_reason(r->c, r->nest, spills, &v);
    }
    if (residence_is_stored(at->residence)) {
        node_uses(arena, r->g, residence, n, &v.reads);
    }
    return v;
}

static void collect_values(ReportKernel *r)
{
    const Graph *g = r->g;
    uint32_t *value_of = ARENA_ARRAY(r->c->arena, g->nodes.n, uint32_t);
    Residence *residence = ARENA_ARRAY(r->c->arena, g->nodes.n, Residence);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        residence[n] = r->nest->values[n].residence;
    }
    const NestSpills *spills = nest_spills(r->c->arena, r->nest, r->c->target->machine);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        Op op = graph_node(g, n)->op;
        if (residence[n] != RESIDE_NONE && op != OP_CONST && op != OP_EXTENT &&
            op != OP_INDEX) {
            ReportValue v = collect_value(r, residence, spills, n);
            vec_push(r->c->arena, &r->values, v);
            value_of[n] = r->values.n;
        }
    }
    r->value_of = value_of;
}

/* ---- the nest ---- */

/* An index of its own inside of the loops around it. */
static const char *inner_index(const ReportKernel *r, const ReportItem *items, uint32_t loop,
                               const char *index)
{
    for (uint32_t p = r->nest->items[loop].parent; p != NEST_NONE;
         p = r->nest->items[p].parent) {
        if (strcmp(items[p].index, index) == 0) {
            index = str_format(r->c->arena, "%s'", index);
            p = loop; /* from the beginning: that one may be there too */
        }
    }
    return index;
}

static void collect_items(ReportKernel *r)
{
    const Nest *nest = r->nest;
    Arena *arena = r->c->arena;
    ReportItem *items = ARENA_ARRAY(arena, nest->n_items, ReportItem);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        ReportItem *to = &items[k];
        r->n_groups += item->parent == NEST_NONE;
        to->group = r->n_groups;
        to->depth = item->parent == NEST_NONE ? 0 : items[item->parent].depth + 1;
        if (!nest_is_loop(item)) {
            to->value = r->value_of[item->node] - 1;
            r->values.at[to->value].group = r->n_groups;
            continue;
        }
        Dim extent = nest->axes[item->axis].extent;
        Text t = text_new(arena);
        dump_dim(&t, &r->g->dims, extent);
        to->extent = t.at;
        to->typical = dim_typical(&r->g->dims, extent);
        to->index = inner_index(r, items, k, report_loop_index(nest, r->names, k));
        to->from = item->from == 0 ? NULL : items[item->from - 1].index;
    }
    r->items = items;
}

/* Sums that look at each pair once. */
static void collect_pairs(ReportKernel *r)
{
    const Nest *nest = r->nest;
    for (uint32_t i = 0; i < nest->n_items; i++) {
        const NestItem *loop = &nest->items[i];
        for (uint32_t x = i + 1; loop->from != 0 && x < loop->end; x++) {
            const NestItem *leaf = &nest->items[x];
            if (leaf->mirror || (!nest_is_loop(leaf) && nest_folds_over(nest, i, leaf->node))) {
                vec_push(r->c->arena, &r->pairs, leaf->node);
            }
        }
    }
}

static void collect_late(ReportKernel *r)
{
    Residence *residence = ARENA_ARRAY(r->c->arena, r->g->nodes.n, Residence);
    for (NodeRef n = 0; n < r->g->nodes.n; n++) {
        residence[n] = r->nest->values[n].residence;
    }
    for (uint32_t k = 0; k < r->g->results.n; k++) {
        const Result *result = &r->g->results.at[k];
        const NestValue *v = &r->nest->values[result->node];
        if (v->residence != RESIDE_RESULT || v->result != (int32_t)k) {
            ReportLate late = {.name = result->name->text};
            late.computes = report_result(r->c->arena, r->nest, r->names, result->node);
            Op op = graph_node(r->g, result->node)->op;
            if (v->residence == RESIDE_INLINE) {
                result_uses(r->c->arena, r->g, residence, result->node, &late.reads);
            } else if (op != OP_CONST && op != OP_EXTENT && op != OP_INDEX) {
                vec_push(r->c->arena, &late.reads.list, ((Use){.node = result->node}));
            }
            vec_push(r->c->arena, &r->late, late);
        }
    }
}

/* ---- the source ---- */

/* From the kernel's head to the end of its body; braces in comments and strings do not count. Without a body, all of it. */
static Str kernel_text(const Source *source, Span span, uint32_t *line)
{
    const char *at = source->text.at;
    size_t n = source->text.n, from = span.lo < n ? span.lo : n, depth = 0, k = from;
    while (from > 0 && at[from - 1] != '\n') {
        from--;
    }
    for (; k < n; k++) {
        if (at[k] == '/' && k + 1 < n && at[k + 1] == '/') {
            while (k + 1 < n && at[k + 1] != '\n') {
                k++;
            }
        } else if (at[k] == '/' && k + 1 < n && at[k + 1] == '*') {
            for (k += 2; k + 1 < n && !(at[k] == '*' && at[k + 1] == '/'); k++) {
            }
            k++;
        } else if (at[k] == '"') {
            for (k++; k < n && at[k] != '"' && at[k] != '\n'; k++) {
            }
        } else if (at[k] == '{') {
            depth++;
        } else if (at[k] == '}' && --depth == 0) {
            break;
        } else if (at[k] == '}' && depth > n) {
            break; /* closed before it was opened */
        }
    }
    *line = 1;
    for (size_t x = 0; x < from; x++) {
        *line += at[x] == '\n';
    }
    k = k < n ? k + 1 : n;
    return (Str){at + from, k - from};
}

static void collect_source(ReportKernel *r)
{
    uint32_t number = r->g->span.source;
    const Source *source = number == 0 ? NULL : source_get(&r->c->ctx->sources, number);
    if (source != NULL && !source->places_only && source->text.n > 0) {
        r->source = kernel_text(source, r->g->span, &r->first_line);
        r->n_lines = 1;
        for (size_t k = 0; k < r->source.n; k++) {
            r->n_lines += r->source.at[k] == '\n';
        }
    }
}

/* What binding the open dims to their typical sizes would give. */
static void price_bound(ReportKernel *r)
{
    const Machine *m = r->c->target->machine;
    if (r->g->dims.list.n > 0 && m->open_extents && r->nest->cost.seconds > 0) {
        const Graph *g = graph_typical(r->c->arena, r->g);
        nest_recurrences(r->c->ctx, r->c->arena, g, m, r->c->path.options.effort);
        const Nest *nest = nest_choose(r->c->ctx, r->c->arena, g, m, r->c->path.options.effort);
        r->bound = &nest->cost;
    }
}

const ReportKernel *report_collect(const Compilation *c, uint32_t kernel)
{
    ReportKernel *r = ARENA_NEW(c->arena, ReportKernel);
    r->c = c;
    r->kernel = kernel;
    r->nest = c->nests[kernel];
    r->g = r->nest->graph;
    r->names = graph_names(c->arena, r->g);
    count_arguments(r);
    collect_values(r);
    collect_items(r);
    collect_pairs(r);
    collect_late(r);
    collect_source(r);
    if (c->target->machine->time.piece > 0) {
        const Machine *m = c->target->machine;
        r->threads = str_format(c->arena, "%s%s", report_threads(r->nest, m, c->arena),
                                report_gain_words(r->nest, m, c->arena));
    }
    price_bound(r);
    return r;
}
