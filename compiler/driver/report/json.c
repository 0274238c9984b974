/* SPDX-License-Identifier: Apache-2.0 */
/* --report=json: the same for programs. docs/tools.md says what the members mean. */
#include "driver/report/report.h"
#include "driver/report/spill.h"

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

static void json_words(Text *out, const char *name, const char *words)
{
    if (words != NULL) {
        text_printf(out, ", \"%s\": ", name);
        text_json(out, words);
    }
}

static void json_value(const ReportKernel *r, const ReportValue *v, Text *out)
{
    const Node *node = graph_node(r->g, v->node);
    text_member(out, "{\"name\": ", v->name);
    text_printf(out, ", \"dtype\": \"%s\", \"accumulator\": \"%s\", \"shape\": [",
                dtype_name(node->dtype), dtype_name(node->acc));
    for (uint32_t d = 0; d < node->rank; d++) {
        text_put(out, d == 0 ? "" : ", ");
        if (node->shape[d].sym < 0) {
            text_i64(out, node->shape[d].n);
        } else {
            text_json(out, dim_written(r->c->arena, &r->g->dims, node->shape[d]));
        }
    }
    text_printf(out, "], \"residence\": \"%s\", \"bytes\": %lld, \"whole_bytes\": %lld",
                v->lives, (long long)v->bytes, (long long)v->whole);
    json_words(out, "level", v->level);
    json_words(out, "indices", v->indices);
    json_words(out, "computes", v->computes);
    json_words(out, "levels", v->levels);
    json_words(out, "in_place_of", v->in_place);
    json_words(out, "symmetry", v->symmetry);
    json_words(out, "reason", v->reason);
    json_words(out, "remedy", v->remedy);
    if (v->group > 0) {
        text_printf(out, ", \"loop_group\": %u", v->group);
    }
    if (v->line > 0) {
        text_printf(out, ", \"line\": %u", v->line);
    }
    for (uint32_t k = 0; k < v->reads.list.n; k++) {
        text_member(out, k == 0 ? ", \"reads\": [" : ", ",
                    report_value_name(r->g, v->reads.list.at[k].node, r->c->arena));
    }
    text_put(out, v->reads.list.n > 0 ? "]" : "");
    json_stays(r->c, r->nest, v->node, out);
    text_char(out, '}');
}

/* The tree as nested lists: a leaf is a name, a loop an object with its body. */
static void json_nest(const ReportKernel *r, Text *out)
{
    const Nest *nest = r->nest;
    text_put(out, "], \"nest\": [");
    for (uint32_t i = 0; i < nest->n_items; i++) {
        const NestItem *item = &nest->items[i];
        text_put(out, i == 0 || item->parent + 1 == i ? "" : ", ");
        if (nest_is_loop(item)) {
            text_member(out, "{\"index\": ", r->items[i].index);
            json_words(out, "extent", r->items[i].extent);
            text_printf(out, ", \"tile\": %lld, \"parallel\": %s", (long long)item->tile,
                        item->parallel ? "true" : "false");
            text_put(out, item->online ? ", \"online\": true" : "");
            text_put(out, item->from != 0 ? ", \"pairs_once\": true" : "");
            json_words(out, "from", r->items[i].from);
            text_put(out, ", \"body\": [");
        } else {
            text_json(out, r->values.at[r->items[i].value].name);
        }
        for (uint32_t n = nest_loops_ending(nest, i); n > 0; n--) {
            text_put(out, "]}");
        }
    }
}

static void json_list(Text *out, const char *name, const char *const *list, uint32_t n)
{
    text_printf(out, ", \"%s\": [", name);
    for (uint32_t k = 0; k < n; k++) {
        text_member(out, k == 0 ? "" : ", ", list[k]);
    }
    text_char(out, ']');
}

static void json_together(const Compilation *c, Text *out)
{
    text_put(out, "\n], \"planned_together\": [");
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        const PathTogether *t = &c->decisions.together.at[k];
        text_member(out, k == 0 ? "\n{\"kernel\": " : ",\n{\"kernel\": ", t->kernel->text);
        text_printf(out, ", \"multiply_adds\": \"%s\", \"one_by_one\": \"%s\"", t->together,
                    t->separate);
        json_list(out, "computed_once", t->shared.at, t->shared.n);
        json_list(out, "added_first", t->factored.at, t->factored.n);
        text_char(out, '}');
    }
}

void compilation_report_json(const Compilation *c, Text *out)
{
    text_printf(out, "{\"version\": %d, \"target\": \"%s\", \"kernels\": [",
                REPORT_JSON_VERSION, c->target->name);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        if (dist_owner(&c->module->graphs.at[k]->ranks).at != NULL) {
            continue; /* a part of another; such stand last */
        }
        const ReportKernel *r = report_collect(c, k);
        const Graph *g = r->g;
        text_member(out, k == 0 ? "\n{\"name\": " : ",\n{\"name\": ", g->name->text);
        text_put(out, ", \"typical\": {");
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            text_member(out, d == 0 ? "" : ", ",
                        dim_written(c->arena, &g->dims, dim_open((int32_t)d)));
            text_printf(out, ": %lld", (long long)g->dims.list.at[d].typical);
        }
        text_put(out, "}, \"values\": [");
        for (uint32_t n = 0; n < r->values.n; n++) {
            text_put(out, n == 0 ? "\n" : ",\n");
            json_value(r, &r->values.at[n], out);
        }
        json_nest(r, out);
        for (uint32_t n = 0; n < r->pairs.n; n++) {
            text_member(out, n == 0 ? "], \"pairs_once\": [" : ", ",
                        report_value_name(g, r->pairs.at[n], c->arena));
        }
        for (uint32_t n = 0; n < r->late.n; n++) {
            text_member(out, n == 0 ? "], \"at_the_end\": [{\"name\": " : ", {\"name\": ",
                        r->late.at[n].name);
            json_words(out, "computes", r->late.at[n].computes);
            text_char(out, '}');
        }
        text_printf(
            out,
            "], \"bytes_compulsory\": %lld, \"bytes_parameters\": %lld, \"bytes_results\": "
            "%lld, "
            "\"bytes_spilled\": %lld, \"multiply_adds\": %lld, \"multiply_adds_saved\": %lld, "
            "\"seconds\": %.9g, \"seconds_unfused\": %.9g",
            (long long)sat_add(r->parameters, r->results), (long long)r->parameters,
            (long long)r->results, (long long)r->nest->cost.spilled,
            (long long)r->nest->cost.multiply_adds, (long long)r->nest->cost.saved,
            r->nest->cost.seconds, r->nest->unfused.seconds);
        json_words(out, "threads", r->threads);
        if (r->threads != NULL) {
            text_printf(out, ", \"threads_gain\": %.3g", report_gain(r->nest));
        }
        report_price_json(r, out);
        report_sizes_json(c->target->machine, r->nest, c->arena, out);
        const TextLength *length = output_length(&c->outputs, g->name->text);
        if (length != NULL) {
            text_printf(out, ", \"text_lines\": %lld, \"text_bytes\": %lld",
                        (long long)length->lines, (long long)length->bytes);
        }
        if (length != NULL && length->workspace >= 0) {
            text_printf(out, ", \"workspace_bytes\": %lld", (long long)length->workspace);
        }
        report_ranks_json(c, k, out);
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
