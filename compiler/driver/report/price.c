/* SPDX-License-Identifier: Apache-2.0 */
/* The price part of --report: what the model says of the nest that was chosen, of none at all and
 * of the best that the search turned down, beside the bytes that every nest moves. docs/tools.md
 * says what each number means. */
#include <inttypes.h>

#include "driver/report/report.h"
#include "nest/estimate.h"
#include "nest/text.h"

int64_t report_whole(double bytes)
{
    return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

/* What the form spends most of its time on. */
static const char *binding(const Machine *m, const NestCost *cost)
{
    const char *name = "arithmetic";
    double most = cost->arithmetic;
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        name = cost->waits[v] > most ? m->level[v].name : name;
        most = cost->waits[v] > most ? cost->waits[v] : most;
    }
    return name;
}

/* The printed program as a cost; null: the target has no model of its own. */
static const NestCost *printed_cost(const TextLength *length, const Nest *nest, NestCost *out)
{
    if (length == NULL || length->seconds <= 0) {
        return NULL;
    }
    *out = (NestCost){.seconds = length->seconds,
                      .arithmetic = length->arithmetic,
                      .multiply_adds = nest->cost.multiply_adds,
                      .spilled = nest->cost.spilled};
    out->bytes[0] = length->moved;
    out->waits[0] = out->seconds > out->arithmetic ? out->seconds - out->arithmetic : 0;
    return out;
}

void report_forms(const ReportKernel *r, NestCost *printed, ReportForm form[REPORT_FORMS])
{
    const Machine *m = r->c->target->machine;
    const Nest *nest = r->nest;
    form[0] = (ReportForm){"chosen", "chosen", &nest->cost, NULL};
    form[1] = (ReportForm){"unfused", "unfused", &nest->unfused, NULL};
    form[2] = (ReportForm){"turned down", "turned_down",
                           nest->second == NULL ? NULL : &nest->second->cost, NULL};
    form[3] = (ReportForm){"with -D", "bound", r->bound, NULL};
    const TextLength *length = output_length(&r->c->outputs, r->g->name->text);
    form[4] = (ReportForm){"as printed", "printed", printed_cost(length, nest, printed), NULL};
    for (uint32_t f = 0; f < 4; f++) {
        form[f].binds = form[f].cost == NULL ? NULL : binding(m, form[f].cost);
    }
    form[4].binds = form[4].cost == NULL ? NULL : length->binds;
}

static bool is_priced(const Nest *nest)
{
    return nest->cost.seconds > 0;
}

/* ---- a tree in one line ---- */

void report_tree_line(const Nest *nest, Arena *arena, Text *out)
{
    const Graph *g = nest->graph;
    GraphNames names = graph_names(arena, g);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        text_put(out, k == 0 ? "" : " ");
        if (nest_is_loop(item)) {
            text_printf(out, "for %s of ", report_loop_index(nest, names, k));
            dump_dim(out, &g->dims, nest->axes[item->axis].extent);
            text_printf(out, " by %" PRId64 " {", item->tile);
        } else {
            text_put(out, report_value_name(g, item->node, arena));
        }
        for (uint32_t n = nest_loops_ending(nest, k); n > 0; n--) {
            text_put(out, " }");
        }
    }
}

/* ---- text ---- */

static void put_column(Text *out, Arena *arena, int64_t bytes)
{
    Text t = text_new(arena);
    report_bytes(&t, bytes);
    text_printf(out, "%12s", t.at);
}

static void put_form(const Machine *m, const ReportForm *form, Arena *arena, Text *out)
{
    const NestCost *cost = form->cost;
    text_printf(out, "  %-14s %10.3g %10.3g %16" PRId64, form->name, cost->seconds,
                cost->arithmetic, cost->multiply_adds);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        put_column(out, arena, report_whole(cost->bytes[v]));
    }
    put_column(out, arena, cost->spilled);
    text_printf(out, "  %s\n", form->binds);
}

void report_price_text(const ReportKernel *r, Text *out)
{
    const Machine *m = r->c->target->machine;
    const Nest *nest = r->nest;
    Arena *arena = r->c->arena;
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    if (!is_priced(nest)) {
        return;
    }
    report_forms(r, &printed, form);
    text_printf(out, "  %-14s %10s %10s %16s", "by the model", "seconds", "arithmetic",
                "multiply-adds");
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        text_printf(out, "%12s", m->level[v].name);
    }
    text_printf(out, "%12s  binds\n", "spilled");
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        if (form[f].cost != NULL) {
            put_form(m, &form[f], arena, out);
        }
    }
    if (m->n_levels > 1) {
        text_printf(out, "  %-14s %10s %10s %16s", "compulsory", "", "", "");
        put_column(out, arena, report_whole(nest->compulsory));
        text_char(out, '\n');
    }
    if (nest->second != NULL) {
        text_put(out, "  turned down: ");
        report_tree_line(nest->second, arena, out);
        text_printf(out, "; it %s\n", nest->turned_down);
    }
}

/* ---- JSON ---- */

static void json_levels(const Machine *m, const char *name, const double *number, Text *out)
{
    text_printf(out, ", \"%s\": {", name);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        text_member(out, v == 0 ? "" : ", ", m->level[v].name);
        text_printf(out, ": %.9g", number[v]);
    }
    text_char(out, '}');
}

static void json_nest_text(const Nest *nest, Arena *arena, Text *out)
{
    Text dump = text_new(arena);
    nest_dump(nest, &dump);
    text_member(out, ", \"nest\": ", dump.at);
}

void report_price_json(const ReportKernel *r, Text *out)
{
    const Machine *m = r->c->target->machine;
    const Nest *nest = r->nest;
    Arena *arena = r->c->arena;
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    report_forms(r, &printed, form);
    text_put(out, ", \"model\": {");
    uint32_t forms = form[4].cost == NULL ? 4 : REPORT_FORMS;
    for (uint32_t f = 0; f < forms; f++) {
        const NestCost *cost = form[f].cost;
        text_printf(out, "%s\n  \"%s\": ", f == 0 ? "" : ",", form[f].key);
        if (cost == NULL) {
            text_put(out, "null");
            continue;
        }
        text_printf(out, "{\"total_seconds\": %.9g, \"arithmetic_seconds\": %.9g, \"binds\": ",
                    cost->seconds, cost->arithmetic);
        text_json(out, form[f].binds);
        text_printf(out, ", \"multiply_adds\": %" PRId64 ", \"bytes_spilled\": %" PRId64,
                    cost->multiply_adds, cost->spilled);
        json_levels(m, "bytes", cost->bytes, out);
        json_levels(m, "wait_seconds", cost->waits, out);
        if (f == 0 || f == 2) {
            json_nest_text(f == 0 ? nest : nest->second, arena, out);
        }
        if (f == 2) {
            text_member(out, ", \"because\": ", nest->turned_down);
        }
        text_char(out, '}');
    }
    text_printf(out, ",\n  \"compulsory_bytes\": %.9g", nest->compulsory);
    double peak = report_peak(r);
    if (m->kind == MACHINE_CACHES && peak > 0) {
        double most[MACHINE_LEVELS];
        for (uint32_t v = 0; v < m->n_levels; v++) {
            most[v] = m->level[v].bytes_per_second;
        }
        text_printf(out, ",\n  \"most\": {\"multiply_adds_per_second\": %.9g", peak);
        json_levels(m, "bytes_per_second", most, out);
        text_char(out, '}');
    }
    text_char(out, '}');
}

double report_peak(const ReportKernel *r)
{
    double seconds = 0, adds = 0;
    nest_full_tiles(r->nest, r->nest->graph, r->c->target->machine, r->c->arena, &adds,
                    &seconds);
    return seconds > 0 ? adds / seconds : 0;
}
