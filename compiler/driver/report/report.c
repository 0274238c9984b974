/* SPDX-License-Identifier: Apache-2.0 */
/* --report: for every kernel, where each value lives and why, in what type it is computed, which values share loops, what must
 * and what does move through memory, and the order of each contraction. Numbers are for typical extents, and say so. */
#include "driver/report/report.h"

static void report_values(const ReportKernel *r, Text *out)
{
    for (uint32_t k = 0; k < r->values.n; k++) {
        const ReportValue *v = &r->values.at[k];
        const Node *node = graph_node(r->g, v->node);
        text_printf(out, "  %-12s %-22s %-10s ", v->name, v->type, v->lives);
        if (residence_is_stored(v->residence)) {
            report_bytes(out, v->bytes);
        }
        if (node->acc != node->dtype) {
            text_printf(out, ", accumulated in %s", dtype_name(node->acc));
        }
        text_printf(out, "%s%s", v->reason == NULL ? "" : "; ",
                    v->reason == NULL ? "" : v->reason);
        text_printf(out, "%s%s\n",
                    v->remedy == NULL ? "" : "; help: ", v->remedy == NULL ? "" : v->remedy);
    }
}

/* The tree, by the names of the source. */
static void report_nest(const ReportKernel *r, Text *out)
{
    text_put(out, "  loops:\n");
    for (uint32_t i = 0; i < r->nest->n_items; i++) {
        const NestItem *item = &r->nest->items[i];
        const ReportItem *to = &r->items[i];
        text_put(out, "    ");
        for (uint32_t d = 0; d < to->depth; d++) {
            text_put(out, "  ");
        }
        if (!nest_is_loop(item)) {
            const ReportValue *v = &r->values.at[to->value];
            text_printf(out, "%s%s%s\n", v->name, v->indices,
                        item->recompute ? ", computed again" : "");
            continue;
        }
        text_printf(out, "for %s of %s by %lld%s%s%s%s\n", to->index, to->extent,
                    (long long)item->tile, to->from != NULL ? ", each pair once with " : "",
                    to->from != NULL ? to->from : "", item->parallel ? ", parallel" : "",
                    item->online ? ", online" : "");
    }
}

/* Results that no value of the nest is. */
static void report_late(const ReportKernel *r, Text *out)
{
    for (uint32_t k = 0; k < r->late.n; k++) {
        text_printf(out, "    at the end: %s = %s\n", r->late.at[k].name,
                    r->late.at[k].computes);
    }
}

static void report_pairs(const ReportKernel *r, Text *out)
{
    for (uint32_t k = 0; k < r->pairs.n; k++) {
        NodeRef n = r->pairs.at[k];
        text_printf(out, "%s%s%s", k > 0 ? ", " : "  symmetry: pairs count once in ",
                    report_value_name(r->g, n, r->c->arena),
                    r->nest->items[r->nest->values[n].item].mirror ? ", half of which is copied"
                                                                   : "");
    }
    if (r->pairs.n > 0) {
        text_printf(out, "; %lld multiply-adds saved\n", (long long)r->nest->cost.saved);
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

void report_orders_text(const Compilation *c, Text *out)
{
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        report_together(&c->decisions.together.at[k], out);
    }
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        text_printf(out, "contraction order in kernel %s\n", d->kernel->text);
        path_report_text(out, &d->problem, &d->result, d->seconds, c->arena);
    }
}

void compilation_report(const Compilation *c, Text *out)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        if (dist_owner(&c->module->graphs.at[k]->ranks).at != NULL) {
            continue; /* a part of another */
        }
        const ReportKernel *r = report_collect(c, k);
        const Graph *g = r->g;
        text_printf(out, "kernel %s for %s%s\n", g->name->text, c->target->name,
                    has_open_dims(g) ? ", at typical extents" : "");
        for (uint32_t d = 0; d < dims_given(&g->dims); d++) {
            text_printf(out, "%s%s ~ %lld%s", d == 0 ? "  " : ", ",
                        g->dims.list.at[d].name->text, (long long)g->dims.list.at[d].typical,
                        d + 1 == dims_given(&g->dims) ? "\n" : "");
        }
        report_values(r, out);
        report_nest(r, out);
        report_late(r, out);
        report_pairs(r, out);
        if (r->threads != NULL) {
            text_printf(out, "  threads %s\n", r->threads);
        }
        report_price_text(r, out);
        report_sizes_text(c->target->machine, c->nests[k], c->arena, out);
        text_put(out, "  memory: arguments and results ");
        report_bytes(out, sat_add(r->parameters, r->results));
        text_put(out, " (");
        report_bytes(out, r->parameters);
        text_put(out, " and ");
        report_bytes(out, r->results);
        text_char(out, ')');
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
        report_ranks_text(c, k, out);
    }
    report_orders_text(c, out);
}
