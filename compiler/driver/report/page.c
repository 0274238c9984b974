/* SPDX-License-Identifier: Apache-2.0 */
/* --report=html: one page by itself, to be read in light or dark and printed: of each kernel the source beside its nest, where values
 * live, who reads whom, what moves and what was turned down. No scripts, nothing from elsewhere; all text of the user is escaped. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/report/report.h"
#include "driver/report/path.h"
#include "nest/text.h"

/* Of the text of a stage. */
#define TEXT_SHOWN (128 * 1024)

/* ---- numbers ---- */

/* 1.83 ms */
static void put_seconds(Text *out, double s)
{
    static const struct {
        double least, unit;
        const char *name;
    } units[] = {
        {1.0, 1.0, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "&micro;s"}, {0.0, 1e-9, "ns"}};
    size_t k = 0;
    while (s < units[k].least) {
        k++;
    }
    text_printf(out, "%.3g&nbsp;%s", s / units[k].unit, units[k].name);
}

/* 12 345 678 */
static void put_count(Text *out, int64_t n)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    for (int k = 0; k < length; k++) {
        text_put(out, k > 0 && (length - k) % 3 == 0 ? "&#8239;" : "");
        text_char(out, digits[k]);
    }
}

/* ---- the source ---- */

/* Of the values that a line computes, where the worst one lives. */
static const char *line_class(const ReportKernel *r, uint32_t line, const uint32_t *first,
                              const uint32_t *chain)
{
    static const struct {
        Residence residence;
        const char *name;
    } order[] = {{RESIDE_WORKSPACE, "workspace"},
                 {RESIDE_RESULT, "result"},
                 {RESIDE_INTO, "result"},
                 {RESIDE_TILE, "tile"},
                 {RESIDE_INLINE, "register"}};
    size_t best = sizeof order / sizeof order[0];
    for (uint32_t k = first[line]; k != 0; k = chain[k - 1]) {
        for (size_t o = 0; o < best; o++) {
            best = r->values.at[k - 1].residence == order[o].residence ? o : best;
        }
    }
    return best < sizeof order / sizeof order[0] ? order[best].name : NULL;
}

static void html_source(const ReportKernel *r, Text *out)
{
    Str text = r->n_lines > 0 ? r->source : str_from(r->g->signature);
    uint32_t *first = ARENA_ARRAY(r->c->arena, REPORT_LINES, uint32_t);
    uint32_t *chain = ARENA_ARRAY(r->c->arena, r->values.n, uint32_t);
    for (uint32_t k = r->values.n; k-- > 0;) {
        const ReportValue *v = &r->values.at[k];
        if (report_line_is_shown(r, v->line) && v->residence != RESIDE_ARGUMENT) {
            chain[k] = first[v->line - r->first_line];
            first[v->line - r->first_line] = k + 1;
        }
    }
    text_put(out, "<pre class=\"source\">");
    uint32_t shown = 0;
    for (size_t k = 0; k < text.n && shown < REPORT_LINES; shown++) {
        size_t end = k;
        while (end < text.n && text.at[end] != '\n') {
            end++;
        }
        const char *class = line_class(r, shown, first, chain);
        if (r->n_lines > 0) {
            uint32_t line = r->first_line + shown;
            text_printf(out, "<span id=\"k%u-%u\" data-line=\"%u\"%s%s%s>", r->kernel, line,
                        line, class == NULL ? "" : " class=\"", class == NULL ? "" : class,
                        class == NULL ? "" : "\"");
        } else {
            text_put(out, "<span>");
        }
        html_text_n(out, (Str){text.at + k, end - k});
        text_put(out, "</span>");
        k = end + 1;
    }
    text_put(out, "</pre>\n");
    if (shown == REPORT_LINES) {
        text_put(out, "<p class=\"more\">and more lines</p>\n");
    }
}

/* ---- what is to know first ---- */

static void fact_bytes(Text *out, const char *name, int64_t bytes)
{
    text_printf(out, "<div><dt>%s</dt><dd>", name);
    report_bytes(out, bytes);
    text_put(out, "</dd></div>\n");
}

static void html_facts(const ReportKernel *r, Text *out)
{
    const NestCost *cost = &r->nest->cost;
    text_put(out, "<dl class=\"facts\">\n");
    fact_bytes(out, "parameters", r->parameters);
    fact_bytes(out, "results", r->results);
    fact_bytes(out, "spilled to memory", cost->spilled);
    text_put(out, "<div><dt>multiply-adds</dt><dd>");
    put_count(out, cost->multiply_adds);
    text_put(out, "</dd></div>\n");
    if (cost->seconds > 0) {
        text_put(out, "<div><dt>a call, by the model</dt><dd>");
        put_seconds(out, cost->seconds);
        text_put(out, "</dd></div>\n<div><dt>without fusion</dt><dd>");
        put_seconds(out, r->nest->unfused.seconds);
        text_put(out, "</dd></div>\n");
    }
    const TextLength *length = output_length(&r->c->outputs, r->g->name->text);
    if (length != NULL && length->workspace >= 0) {
        fact_bytes(out, "workspace of a call", length->workspace);
    }
    text_put(out, "</dl>\n");
    if (length != NULL) {
        text_printf(out, "<p class=\"quiet\">  printed as %" PRId64 " lines, ", length->lines);
        report_bytes(out, length->bytes);
        text_put(out, "</p>\n");
    }
}

static void html_names(const ReportKernel *r, uint32_t n, const NodeRef *nodes, Text *out)
{
    for (uint32_t k = 0; k < n && k < 20; k++) {
        html_in(out, k == 0 ? "<code>" : ", <code>",
                report_value_name(r->g, nodes[k], r->c->arena), "</code>");
    }
    text_put(out, n > 20 ? " and others" : "");
}

static void html_spill(const ReportValue *v, Text *out)
{
    html_in(out, "<li><span class=\"pill workspace\">spills</span> <code>", v->name,
            "</code>, ");
    report_bytes(out, v->bytes);
    if (v->reason != NULL) {
        text_put(out, ": ");
        html_text(out, v->reason);
    }
    if (v->remedy != NULL) {
        text_put(out, ". <b>What helps:</b> ");
        html_text(out, v->remedy);
    }
    text_put(out, "</li>\n");
}

static void html_remarks(const ReportKernel *r, Text *out)
{
    uint32_t spills = 0, online = 0;
    text_put(out, "<ul class=\"remarks\">\n");
    for (uint32_t k = 0; k < r->values.n; k++) {
        if (r->values.at[k].residence == RESIDE_WORKSPACE && spills++ < 12) {
            html_spill(&r->values.at[k], out);
        }
    }
    if (spills > 12) {
        text_printf(out, "<li>and %u more that spill, see below</li>\n", spills - 12);
    }
    if (spills == 0) {
        text_put(out, "<li><span class=\"pill tile\">no spills</span> no intermediate of this "
                      "kernel is sent through memory "
                      "as a whole</li>\n");
    }
    if (r->pairs.n > 0) {
        text_put(out, "<li><span class=\"mark pairs\">symmetry</span> pairs count once in ");
        html_names(r, r->pairs.n, r->pairs.at, out);
        text_put(out, ", which saves ");
        put_count(out, r->nest->cost.saved);
        text_put(out, " multiply-adds</li>\n");
    }
    for (uint32_t k = 0; k < r->nest->n_items; k++) {
        if (nest_is_loop(&r->nest->items[k]) && r->nest->items[k].online && online++ < 12) {
            text_put(out, "<li><span class=\"mark online\">online</span> loop <code>");
            html_text(out, r->items[k].index);
            text_printf(out,
                        "</code> of group %u makes a maximum and the sums that need it in one "
                        "pass: sums so far are scaled "
                        "when the maximum grows</li>\n",
                        r->items[k].group);
        }
    }
    if (r->threads != NULL) {
        html_in(out, "<li>threads ", r->threads, "</li>\n");
    }
    text_put(out, "</ul>\n");
}

/* ---- traffic ---- */

typedef enum Measure { MEASURE_SECONDS, MEASURE_BYTES, MEASURE_COUNT } Measure;

static void put_cell(Text *out, Measure measure, double value, double most, const char *class)
{
    text_put(out, "<td>");
    if (measure == MEASURE_SECONDS) {
        put_seconds(out, value);
    } else if (measure == MEASURE_BYTES) {
        report_bytes(out, report_whole(value));
    } else {
        put_count(out, report_whole(value));
    }
    text_printf(
        out,
        "<span class=\"bar\"><span class=\"%s\" style=\"width:%.1f%%\"></span></span></td>",
        class, most > 0 ? 100.0 * value / most : 0.0);
}

typedef struct Traffic {
    const char *name, *after;
    Measure measure;
    double form[REPORT_FORMS];
    double compulsory; /* below 0: nothing is said */
} Traffic;

static void put_traffic(const Traffic *t, const ReportForm *form, Text *out)
{
    static const char *const classes[REPORT_FORMS] = {"tile", "argument", "argument"};
    double most = t->compulsory;
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        most = form[f].cost != NULL && t->form[f] > most ? t->form[f] : most;
    }
    text_put(out, "<tr><th scope=\"row\">");
    html_text(out, t->name);
    text_printf(out, "%s</th>", t->after);
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        if (form[f].cost != NULL) {
            put_cell(out, t->measure, t->form[f], most, classes[f]);
        }
    }
    if (t->compulsory >= 0) {
        put_cell(out, t->measure, t->compulsory, most, "result");
    } else {
        text_put(out, "<td></td>");
    }
    text_put(out, "</tr>\n");
}

static void put_all_traffic(const ReportKernel *r, const ReportForm *form, Text *out)
{
    const Machine *m = r->c->target->machine;
    Traffic seconds = {"a call", "", MEASURE_SECONDS, {0}, -1};
    Traffic arithmetic = {"arithmetic that no traffic hides", "", MEASURE_SECONDS, {0}, -1};
    Traffic spilled = {"spilled", "", MEASURE_BYTES, {0}, -1};
    Traffic adds = {"multiply-adds", "", MEASURE_COUNT, {0}, -1};
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        const NestCost *cost = form[f].cost;
        seconds.form[f] = cost == NULL ? 0 : cost->seconds;
        arithmetic.form[f] = cost == NULL ? 0 : cost->arithmetic;
        spilled.form[f] = cost == NULL ? 0 : (double)cost->spilled;
        adds.form[f] = cost == NULL ? 0 : (double)cost->multiply_adds;
    }
    put_traffic(&seconds, form, out);
    put_traffic(&arithmetic, form, out);
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        Traffic bytes = {m->level[v].name,
                         ": bytes to and from it",
                         MEASURE_BYTES,
                         {0},
                         v == 0 ? r->nest->compulsory : -1};
        Traffic waits = {m->level[v].name, ": waited for", MEASURE_SECONDS, {0}, -1};
        for (uint32_t f = 0; f < REPORT_FORMS; f++) {
            bytes.form[f] = form[f].cost == NULL ? 0 : form[f].cost->bytes[v];
            waits.form[f] = form[f].cost == NULL ? 0 : form[f].cost->waits[v];
        }
        put_traffic(&bytes, form, out);
        put_traffic(&waits, form, out);
    }
    put_traffic(&spilled, form, out);
    put_traffic(&adds, form, out);
}

static void html_traffic(const ReportKernel *r, Text *out)
{
    static const char *const heads[REPORT_FORMS] = {
        "chosen", "without fusion", "best of those turned down", "with -D", "as printed"};
    ReportForm form[REPORT_FORMS];
    NestCost printed = {0};
    if (r->nest->cost.seconds <= 0) {
        return;
    }
    report_forms(r, &printed, form);
    text_put(out, "<h3>Traffic and time, by the model</h3>\n<table "
                  "class=\"traffic\"><thead><tr><th scope=\"col\"></th>");
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        if (form[f].cost != NULL) {
            text_printf(out, "<th scope=\"col\">%s</th>", heads[f]);
        }
    }
    text_put(out, "<th scope=\"col\">compulsory</th></tr></thead><tbody>\n");
    put_all_traffic(r, form, out);
    text_put(out, "<tr><th scope=\"row\">most time goes to</th>");
    for (uint32_t f = 0; f < REPORT_FORMS; f++) {
        if (form[f].cost != NULL) {
            html_in(out, "<td>", form[f].binds, "</td>");
        }
    }
    text_put(out, "<td></td></tr>\n</tbody></table>\n");
    if (r->nest->second != NULL) {
        Text line = text_new(r->c->arena);
        report_tree_line(r->nest->second, r->c->arena, &line);
        bool cut = line.n > 2000;
        html_in(out, "<p><b>Turned down</b>, since it ", r->nest->turned_down, ": <code>");
        html_text_n(out, (Str){line.at, cut ? 2000 : line.n});
        text_printf(out, "%s</code></p>\n", cut ? " ..." : "");
    }
}

/* ---- text of other forms ---- */

static void html_more(Text *out, const char *title, const Text *body)
{
    size_t n = body->n < TEXT_SHOWN ? body->n : TEXT_SHOWN;
    while (n > 0 && n < body->n && ((unsigned char)body->at[n] & 0xc0) == 0x80) {
        n--;
    }
    if (body->n == 0) {
        return;
    }
    html_in(out, "<details><summary>", title, "</summary>\n<pre>");
    html_text_n(out, (Str){body->at, n});
    text_printf(out, "</pre>%s</details>\n",
                n < body->n ? "<p class=\"more\">and more</p>" : "");
}

static void html_stage(const Compilation *c, Text *out, const char *title, Stage stage)
{
    Text dump = text_new(c->arena);
    if (c->stage >= stage) {
        compilation_dump(c, stage, &dump);
        html_more(out, title, &dump);
    }
}

/* The nests that the prices in the report are of. */
static void html_nests(const ReportKernel *r, Text *out)
{
    const Nest *nests[] = {r->nest, r->nest->second};
    static const char *const titles[] = {"chosen nest", "turned down"};
    for (uint32_t i = 0; i < 2 && nests[i] != NULL; i++) {
        Text dump = text_new(r->c->arena);
        nest_dump(nests[i], &dump);
        html_more(out, str_format(r->c->arena, "The %s, as --dump=nest writes it", titles[i]),
                  &dump);
    }
}

/* ---- the page ---- */

static void html_kernel(const Compilation *c, uint32_t k, Text *out)
{
    const ReportKernel *r = report_collect(c, k);
    Text sizes = text_new(c->arena);
    text_printf(out, "<section id=\"k%u\"><h2>kernel ", k);
    html_text(out, r->g->name->text);
    text_put(out, "</h2>\n");
    for (uint32_t d = 0; d < dims_given(&r->g->dims); d++) {
        text_put(out, d == 0 ? "<p class=\"lead\">At typical extents: " : ", ");
        html_text(out, r->g->dims.list.at[d].name->text);
        text_printf(out, " = %" PRId64, r->g->dims.list.at[d].typical);
    }
    text_put(out, r->g->dims.list.n > 0 ? "</p>\n" : "");
    html_facts(r, out);
    html_remarks(r, out);
    text_put(out, "<div class=\"beside\"><div><h3>Source</h3>\n");
    html_source(r, out);
    text_put(out, "</div><div><h3>Nest</h3>\n");
    report_picture_nest(r, out);
    text_put(out, "</div></div>\n<h3>Where values live</h3>\n");
    report_picture_memory(r, out);
    text_put(out, "<h3>Who reads whom</h3>\n");
    report_picture_graph(r, out);
    report_picture_moves(r, out);
    report_picture_roofline(r, out);
    html_traffic(r, out);
    report_sizes_text(c->target->machine, r->nest, c->arena, &sizes);
    if (sizes.n > 0) {
        text_put(out, "<h3>Nests for other sizes</h3>\n<pre>");
        html_text_n(out, text_str(&sizes));
        text_put(out, "</pre>\n");
    }
    html_nests(r, out);
    text_put(out, "</section>\n");
}

/* Each order of contractions as a tree and in words. */
static void html_orders(const Compilation *c, Text *out)
{
    Text words = text_new(c->arena);
    report_orders_text(c, &words);
    if (words.n == 0) {
        return;
    }
    text_put(out, "<section><h2>Order of contractions</h2>\n");
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        const PathDecision *d = &c->decisions.list.at[k];
        html_in(out, "<h3>In kernel ", d->kernel->text, "</h3>\n");
        report_picture_path(&d->problem, &d->result, k, c->arena, out);
    }
    text_put(out, "<pre>");
    html_text_n(out, text_str(&words));
    text_put(out, "</pre></section>\n");
}

void compilation_report_html(const Compilation *c, Text *out)
{
    report_page_begin(out, c->module->source_name);
    text_put(out, "<header><h1>");
    html_text(out, c->module->source_name);
    text_printf(out, " for %s</h1>\n", c->target->name);
    text_put(out, "<p class=\"key\"><span class=\"pill argument\">argument</span><span "
                  "class=\"pill register\">register: an "
                  "expression, where it is used</span><span class=\"pill tile\">tile or block: "
                  "on chip, within loops</span>"
                  "<span class=\"pill result\">result</span><span class=\"pill "
                  "workspace\">workspace: spilled to "
                  "memory</span> <span class=\"quiet\">%3: a value that the source has no name "
                  "for</span></p>\n");
    if (c->module->graphs.n > 1) {
        text_put(out, "<nav aria-label=\"kernels\"><p>Kernels:");
        for (uint32_t k = 0; k < c->module->graphs.n; k++) {
            text_printf(out, " <a href=\"#k%u\">", k);
            html_text(out, c->module->graphs.at[k]->name->text);
            text_put(out, "</a>");
        }
        text_put(out, "</p></nav>\n");
    }
    text_put(out, "</header>\n<main>\n");
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        html_kernel(c, k, out);
    }
    html_orders(c, out);
    text_put(out, "<section><h2>Stages</h2>\n");
    html_stage(c, out, "The tensor graph, two operands at a time", STAGE_PATH);
    html_stage(c, out, "Loops over tiles", STAGE_LOOP);
    text_put(out, "</section>\n</main>\n</body></html>\n");
}
