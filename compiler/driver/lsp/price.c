/* SPDX-License-Identifier: Apache-2.0 */
/* What the model says of a kernel, for who looks at one of its lines: seconds of what the line computes, and where values
 * live. The report has both. */
#include "driver/decisions.h"
#include "driver/lsp/meaning.h"
#include "driver/report/report.h"
#include "nest/estimate.h"

static const char *seconds_text(Arena *arena, double s)
{
    return s >= 1      ? str_format(arena, "%.3g s", s)
           : s >= 1e-3 ? str_format(arena, "%.3g ms", s * 1e3)
           : s >= 1e-6 ? str_format(arena, "%.3g \xc2\xb5s", s * 1e6)
                       : str_format(arena, "%.3g ns", s * 1e9);
}

static const char *bytes_text(Arena *arena, int64_t bytes)
{
    Text t = text_new(arena);
    report_bytes(&t, bytes);
    return t.at;
}

/* Where a value lives, as a phrase; null: nothing to say. */
static const char *home_of(Arena *arena, const ReportValue *v)
{
    const char *whole = bytes_text(arena, v->whole), *own = bytes_text(arena, v->bytes);
    const char *reason = v->reason == NULL ? "" : str_format(arena, "; %s", v->reason);
    switch (v->residence) {
    case RESIDE_ARGUMENT:
        return str_format(arena, "in memory: %s, an argument", whole);
    case RESIDE_RESULT:
        return str_format(arena, "in memory: %s, a result", whole);
    case RESIDE_INLINE:
        return "in registers: computed where it is read";
    case RESIDE_TILE:
        return str_format(arena, "on chip: %s in %s, of %s%s", own, v->level, whole, reason);
    case RESIDE_WORKSPACE:
        return str_format(
            arena, "in memory: %s of the workspace%s%s%s", whole, reason,
            v->remedy == NULL ? "" : "; help: ", v->remedy == NULL ? "" : v->remedy);
    case RESIDE_INTO:
        return v->in_place == NULL ? NULL
                                   : str_format(arena, "in the place of %s", v->in_place);
    case RESIDE_VIEW:
        return "read where the value is that it is a part of";
    default:
        return NULL;
    }
}

static json_t *homes(Arena *arena, const ReportKernel *r)
{
    json_t *made = json_object();
    for (uint32_t k = 0; k < r->values.n; k++) {
        const ReportValue *v = &r->values.at[k];
        const char *home = v->name[0] == '%' ? NULL : home_of(arena, v);
        if (home != NULL) {
            json_object_set_new(made, v->name, uri_string(home));
        }
    }
    return made;
}

/* Seconds of the leaves whose values stand on each line, and of all of them. */
static json_t *lines(Arena *arena, const ReportKernel *r)
{
    json_t *made = json_object();
    const Nest *nest = r->nest;
    if (r->c->target->machine->kind != MACHINE_CACHES || nest->cost.seconds <= 0) {
        return made; /* engines overlap: their times do not add up */
    }
    double *leaf = ARENA_ARRAY(arena, nest->n_items, double), all = 0;
    double *line = ARENA_ARRAY(arena, (size_t)r->n_lines + 1, double);
    nest_leaf_seconds(r->c->ctx, r->c->target->machine, nest, leaf);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (!nest_is_loop(&nest->items[k])) {
            const ReportValue *v = &r->values.at[r->items[k].value];
            bool here = v->line >= r->first_line && v->line - r->first_line < r->n_lines;
            line[here ? v->line - r->first_line : r->n_lines] += leaf[k];
            all += leaf[k];
        }
    }
    for (uint32_t k = 0; k < r->n_lines && all > 0; k++) {
        if (line[k] > 0) {
            json_object_set_new(
                made, str_format(arena, "%u", r->first_line + k),
                uri_string(str_format(arena, "%s of %s, %.0f %%", seconds_text(arena, line[k]),
                                      seconds_text(arena, all), 100 * line[k] / all)));
        }
    }
    return made;
}

static const char *sizes_text(Arena *arena, const DimTable *dims)
{
    Text t = text_new(arena);
    for (uint32_t d = 0; d < dims->list.n; d++) {
        const DimInfo *dim = &dims->list.at[d];
        if (dim_is_given(dim)) {
            text_printf(&t, "%s%s = %lld", t.n == 0 ? " at " : ", ", dim->name->text,
                        (long long)dim->typical);
        }
    }
    return t.at;
}

static const char *kernel_text(Arena *arena, const ReportKernel *r)
{
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    const Nest *nest = r->nest;
    if (nest->cost.seconds <= 0) {
        return "no price is known";
    }
    report_forms(r, &printed, form);
    return str_format(arena,
                      "a call takes %s of one thread%s; %s binds; %s go through memory, %s of "
                      "them spilled",
                      seconds_text(arena, nest->cost.seconds), sizes_text(arena, &r->g->dims),
                      form[0].binds, bytes_text(arena, report_whole(nest->cost.bytes[0])),
                      bytes_text(arena, nest->cost.spilled));
}

json_t *lsp_prices(ToolRun *tool, Ctx *ctx, Arena *arena, const LspText *t, const char *kernel)
{
    Input in;
    Compilation c = {0};
    const char *name = option_last(&tool->options, OPT_TARGET, "c");
    const Target *target = target_find(name);
    target = target == NULL ? NULL : decisions_target(tool, target);
    if (target == NULL || !lsp_read(ctx, arena, t, &in) || in.program == NULL) {
        return json_null();
    }
    compilation_init(&c, ctx, arena, target);
    if (!decisions_read(tool, &c) || !compilation_start(&c, &in, kernel) ||
        !compilation_run(&c, STAGE_NEST) || c.nests == NULL) {
        return json_null();
    }
    const ReportKernel *r = report_collect(&c, 0);
    return json_pack("{s:o, s:o, s:o}", "about", uri_string(kernel_text(arena, r)), "lines",
                     lines(arena, r), "values", homes(arena, r));
}
