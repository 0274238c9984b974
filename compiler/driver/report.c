/* SPDX-License-Identifier: Apache-2.0 */
/* --report: for every kernel, where each value lives and why, in what type it is computed,
 * which values share loops, what must and what does move through memory, and the order of each
 * contraction. Numbers are for typical extents, and say so. The report is collected once and
 * printed as text or JSON. */
#include <string.h>

#include "driver/report.h"

static int64_t type_bytes(const Graph *g, DType t, uint32_t rank, const Dim *shape)
{
    int64_t bytes = dtype_bytes(t);
    for (uint32_t d = 0; d < rank; d++) {
        bytes = sat_mul(bytes, dim_typical(&g->dims, shape[d]));
    }
    return bytes;
}

/* Every argument read or written once, every result written. */
static int64_t arguments_bytes(const Graph *g)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *param = &g->params.at[k];
        bytes = sat_add(bytes, type_bytes(g, param->dtype, param->rank, param->shape));
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Node *n = graph_node(g, g->results.at[k].node);
        bytes = sat_add(bytes, type_bytes(g, n->dtype, n->rank, n->shape));
    }
    return bytes;
}

void report_bytes(Text *out, int64_t bytes)
{
    text_bytes(out, bytes, "B");
}

const char *report_value_name(const Graph *g, NodeRef n, Arena *arena)
{
    const Node *node = graph_node(g, n);
    if (node->op == OP_INPUT) {
        return g->params.at[node->param].name->text;
    }
    return node->name != NULL ? node->name->text : str_format(arena, "%%%u", n);
}

const char *report_residence(const Nest *nest, NodeRef n)
{
    Residence r = nest->values[n].residence;
    return r == RESIDE_TILE && nest_grows(nest, n) ? "block" : residence_name(r);
}

const char *report_reason(const Compilation *c, uint32_t k, NodeRef n)
{
    const Nest *nest = c->nests[k];
    Residence r = nest->values[n].residence;
    if (r == RESIDE_TILE && nest_grows(nest, n)) {
        return nest_stays_words(c->arena, nest, c->target->machine, n);
    }
    if (r != RESIDE_WORKSPACE) {
        return NULL;
    }
    if (c->no_fuse) {
        return "--no-fuse";
    }
    NestSpill s = nest_spill(c->arena, nest, c->target->machine, n);
    return s.size == NULL ? s.why : str_format(c->arena, "%s; %s", s.why, s.size);
}

/* ---- text ---- */

static void report_values(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nest = c->nests[k];
    const Graph *g = nest->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        const NestValue *v = &nest->values[n];
        bool leaf = node->op == OP_CONST || node->op == OP_EXTENT;
        if (v->residence == RESIDE_NONE || leaf) {
            continue;
        }
        text_printf(out, "  %-12s ", report_value_name(g, n, c->arena));
        Text type;
        text_init(&type, c->arena);
        dump_type(&type, &g->dims, node->dtype, node->rank, node->shape);
        text_printf(out, "%-22s %-10s ", type.at, report_residence(nest, n));
        if (residence_is_stored(v->residence)) {
            report_bytes(out, v->bytes);
        }
        if (node->acc != node->dtype) {
            text_printf(out, ", accumulated in %s", dtype_name(node->acc));
        }
        const char *reason = report_reason(c, k, n);
        text_printf(out, "%s%s\n", reason == NULL ? "" : "; ", reason == NULL ? "" : reason);
    }
}

/* The tree, by the names of the source. */
static void report_nest(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nest = c->nests[k];
    const Graph *g = nest->graph;
    text_put(out, "  loops:\n");
    for (uint32_t i = 0; i < nest->n_items; i++) {
        const NestItem *item = &nest->items[i];
        text_put(out, "    ");
        for (uint32_t p = item->parent; p != NEST_NONE; p = nest->items[p].parent) {
            text_put(out, "  ");
        }
        if (!nest_is_loop(item)) {
            text_printf(out, "%s%s\n", report_value_name(g, item->node, c->arena),
                        item->again ? ", computed again" : "");
            continue;
        }
        text_put(out, "for ");
        dump_dim(out, &g->dims, nest->axes[item->axis].extent);
        text_printf(out, " by %lld%s%s%s\n", (long long)item->tile,
                    item->from != 0 ? ", each pair once" : "",
                    item->parallel ? ", parallel" : "", item->online ? ", online" : "");
    }
}

/* Sums that look at each pair once. */
static void report_pairs(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nest = c->nests[k];
    bool any = false;
    for (uint32_t i = 0; i < nest->n_items; i++) {
        const NestItem *loop = &nest->items[i];
        for (uint32_t x = i + 1; loop->from != 0 && x < loop->end; x++) {
            NodeRef n = nest->items[x].node;
            int32_t l = nest_is_loop(&nest->items[x])
                            ? -1
                            : nest_axis_label(&nest->axes[loop->axis], n);
            if (l >= 0 && node_reduces(graph_node(nest->graph, n), l)) {
                text_printf(out, "%s%s", any ? ", " : "  symmetry: pairs count once in ",
                            report_value_name(nest->graph, n, c->arena));
                any = true;
            }
        }
    }
    if (any) {
        text_printf(out, "; %lld multiply-adds saved\n", (long long)nest->cost.saved);
    }
}

static bool has_open_dims(const Graph *g)
{
    return g->dims.list.n > 0;
}

static void report_together(const PathTogether *t, Text *out)
{
    text_printf(out,
                "contractions of kernel %s planned together: %s multiply-adds, one by one %s\n",
                t->kernel->text, t->together, t->separate);
    for (uint32_t k = 0; k < t->shared.n; k++) {
        text_printf(out, "  computed once: %s\n", t->shared.at[k]);
    }
    for (uint32_t k = 0; k < t->factored.n; k++) {
        text_printf(out, "  added first: %s\n", t->factored.at[k]);
    }
}

void compilation_report(const Compilation *c, Text *out)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        const Graph *g = c->module->graphs.at[k];
        text_printf(out, "kernel %s for %s%s\n", g->name->text, c->target->name,
                    has_open_dims(g) ? ", at typical extents" : "");
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            text_printf(out, "%s%s ~ %lld%s", d == 0 ? "  " : ", ",
                        g->dims.list.at[d].name->text, (long long)g->dims.list.at[d].typical,
                        d + 1 == g->dims.list.n ? "\n" : "");
        }
        report_values(c, k, out);
        report_nest(c, k, out);
        report_pairs(c, k, out);
        report_price_text(c->target->machine, c->nests[k], c->arena, out);
        report_sizes_text(c->target->machine, c->nests[k], c->arena, out);
        text_put(out, "  memory: arguments and results ");
        report_bytes(out, arguments_bytes(g));
        text_put(out, ", spilled ");
        report_bytes(out, c->nests[k]->cost.spilled);
        text_printf(out, "; %lld multiply-adds\n", (long long)c->nests[k]->cost.multiply_adds);
        const TextLength *length = output_length(&c->outputs, g->name->text);
        if (length != NULL && length->workspace >= 0) {
            text_put(out, "  workspace: ");
            report_bytes(out, length->workspace);
            text_char(out, '\n');
        }
        if (length != NULL) {
            text_printf(out, "  printed as %lld lines, ", (long long)length->lines);
            report_bytes(out, length->bytes);
            text_char(out, '\n');
        }
    }
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        report_together(&c->decisions.together.at[k], out);
    }
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        text_printf(out, "contraction order in kernel %s\n", d->kernel->text);
        path_report_text(out, &d->problem, &d->result, d->seconds, c->arena);
    }
}

/* ---- JSON ---- */

/* The level of blocks, and the sizes of open dims at which what grows leaves it. */
static void json_stays(const Compilation *c, const Nest *nest, NodeRef n, Text *out)
{
    const Machine *m = c->target->machine;
    int64_t capacity = machine_tile_capacity(m);
    const DimTable *dims = &nest->graph->dims;
    Residence r = nest->values[n].residence;
    bool first = true;
    for (uint32_t d = 0; d < dims->list.n && capacity > 0; d++) {
        bool memory = r == RESIDE_TILE || r == RESIDE_WORKSPACE;
        if (memory && nest_grows_with(nest, n, (int32_t)d)) {
            text_put(out, first ? ", \"stays_in\": " : ", ");
            if (first) {
                text_json(out, m->level[m->tile_level].name);
                text_put(out, ", \"up_to\": {");
            }
            text_json(out, dims->list.at[d].name->text);
            text_printf(out, ": %lld", (long long)nest_stays_to(nest, n, (int32_t)d, capacity));
            first = false;
        }
    }
    text_put(out, first ? "" : "}");
}

static void json_value(const Compilation *c, uint32_t k, NodeRef n, Text *out)
{
    const Nest *nest = c->nests[k];
    const NestValue *v = &nest->values[n];
    const Node *node = graph_node(nest->graph, n);
    text_put(out, "{\"name\": ");
    text_json(out, report_value_name(nest->graph, n, c->arena));
    text_printf(out, ", \"dtype\": \"%s\", \"accumulator\": \"%s\", \"shape\": [",
                dtype_name(node->dtype), dtype_name(node->acc));
    for (uint32_t d = 0; d < node->rank; d++) {
        Text dim;
        text_init(&dim, c->arena);
        dump_dim(&dim, &nest->graph->dims, node->shape[d]);
        text_put(out, d == 0 ? "" : ", ");
        if (node->shape[d].sym < 0) {
            text_put(out, dim.at);
        } else {
            text_json(out, dim.at);
        }
    }
    text_printf(out, "], \"residence\": \"%s\", \"bytes\": %lld", report_residence(nest, n),
                (long long)(residence_is_stored(v->residence) ? v->bytes : 0));
    const char *reason = report_reason(c, k, n);
    if (reason != NULL) {
        text_put(out, ", \"reason\": ");
        text_json(out, reason);
    }
    json_stays(c, nest, n, out);
    text_char(out, '}');
}

/* The tree as nested lists: a leaf is a name, a loop an object with its body. */
static void json_nest(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nest = c->nests[k];
    uint32_t open = NEST_NONE;
    text_put(out, "], \"nest\": [");
    for (uint32_t i = 0; i <= nest->n_items; i++) {
        while (open != NEST_NONE && nest->items[open].end <= i) {
            text_put(out, "]}");
            open = nest->items[open].parent;
        }
        if (i == nest->n_items) {
            break;
        }
        const NestItem *item = &nest->items[i];
        bool first = i == 0 || open + 1 == i;
        text_put(out, first ? "" : ", ");
        if (!nest_is_loop(item)) {
            text_json(out, report_value_name(nest->graph, item->node, c->arena));
            continue;
        }
        text_put(out, "{\"extent\": \"");
        dump_dim(out, &nest->graph->dims, nest->axes[item->axis].extent);
        text_printf(out, "\", \"tile\": %lld, \"parallel\": %s, %s\"body\": [",
                    (long long)item->tile, item->parallel ? "true" : "false",
                    item->from != 0 ? "\"pairs_once\": true, " : "");
        open = i;
    }
}

static void json_list(Text *out, const char *name, const char *const *list, uint32_t n)
{
    text_printf(out, ", \"%s\": [", name);
    for (uint32_t k = 0; k < n; k++) {
        text_put(out, k == 0 ? "" : ", ");
        text_json(out, list[k]);
    }
    text_char(out, ']');
}

static void json_together(const Compilation *c, Text *out)
{
    text_put(out, "\n], \"planned_together\": [");
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        const PathTogether *t = &c->decisions.together.at[k];
        text_put(out, k == 0 ? "\n{\"kernel\": " : ",\n{\"kernel\": ");
        text_json(out, t->kernel->text);
        text_printf(out, ", \"multiply_adds\": \"%s\", \"one_by_one\": \"%s\"", t->together,
                    t->separate);
        json_list(out, "computed_once", t->shared.at, t->shared.n);
        json_list(out, "added_first", t->factored.at, t->factored.n);
        text_char(out, '}');
    }
}

void compilation_report_json(const Compilation *c, Text *out)
{
    text_printf(out, "{\"target\": \"%s\", \"kernels\": [", c->target->name);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        const Graph *g = c->module->graphs.at[k];
        text_put(out, k == 0 ? "\n{\"name\": " : ",\n{\"name\": ");
        text_json(out, g->name->text);
        text_put(out, ", \"typical\": {");
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            text_put(out, d == 0 ? "" : ", ");
            text_json(out, g->dims.list.at[d].name->text);
            text_printf(out, ": %lld", (long long)g->dims.list.at[d].typical);
        }
        text_put(out, "}, \"values\": [");
        bool first = true;
        for (NodeRef n = 0; n < g->nodes.n; n++) {
            Op op = graph_node(g, n)->op;
            if (c->nests[k]->values[n].residence == RESIDE_NONE || op == OP_CONST ||
                op == OP_EXTENT) {
                continue;
            }
            text_put(out, first ? "\n" : ",\n");
            json_value(c, k, n, out);
            first = false;
        }
        json_nest(c, k, out);
        text_printf(
            out,
            "], \"bytes_compulsory\": %lld, \"bytes_spilled\": %lld, \"multiply_adds\": %lld, "
            "\"seconds\": %.9g, \"seconds_unfused\": %.9g",
            (long long)arguments_bytes(g), (long long)c->nests[k]->cost.spilled,
            (long long)c->nests[k]->cost.multiply_adds, c->nests[k]->cost.seconds,
            c->nests[k]->unfused.seconds);
        report_price_json(c->target->machine, c->nests[k], c->arena, out);
        report_sizes_json(c->target->machine, c->nests[k], c->arena, out);
        const TextLength *length = output_length(&c->outputs, g->name->text);
        if (length != NULL) {
            text_printf(out, ", \"text_lines\": %lld, \"text_bytes\": %lld",
                        (long long)length->lines, (long long)length->bytes);
        }
        if (length != NULL && length->workspace >= 0) {
            text_printf(out, ", \"workspace_bytes\": %lld", (long long)length->workspace);
        }
        text_char(out, '}');
    }
    json_together(c, out);
    text_put(out, "\n], \"contractions\": [");
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        text_put(out, k == 0 ? "\n" : ",\n");
        path_report_json(out, &d->problem, &d->result, d->seconds, c->arena);
    }
    text_put(out, "\n]}\n");
}
