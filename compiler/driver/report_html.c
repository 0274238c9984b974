/* SPDX-License-Identifier: Apache-2.0 */
/* --report=html: one self-contained page with the source, the residence of every value, the graph and the loops, for
 * reading side by side. No scripts, no links; all text of the user passes the escape below. */
#include "driver/report.h"

static void html_text(Text *out, Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        switch (s.at[i]) {
        case '<':
            text_put(out, "&lt;");
            break;
        case '>':
            text_put(out, "&gt;");
            break;
        case '&':
            text_put(out, "&amp;");
            break;
        case '"':
            text_put(out, "&quot;");
            break;
        default:
            text_char(out, s.at[i]);
        }
    }
}

static void html_section(Text *out, const char *title, Str body)
{
    text_put(out, "<section><h2>");
    html_text(out, str_from(title));
    text_put(out, "</h2><pre>");
    html_text(out, body);
    text_put(out, "</pre></section>\n");
}

static void html_dump(const Compilation *c, Text *out, const char *title, Stage stage)
{
    Text dump;
    if (c->stage < stage) {
        return;
    }
    text_init(&dump, c->arena);
    compilation_dump(c, stage, &dump);
    html_section(out, title, text_str(&dump));
}

/* The source a span of the first kernel points into, unless it has places only. */
static void html_source(const Compilation *c, Text *out)
{
    if (c->module->graphs.n == 0) {
        return;
    }
    uint32_t number = c->module->graphs.at[0]->span.source;
    const Source *source = number == 0 ? NULL : source_get(&c->ctx->sources, number);
    if (source != NULL && source->text.n > 0) {
        html_section(out, source->name, source->text);
    }
}

static void html_row(const Compilation *c, uint32_t k, NodeRef n, Text *out)
{
    static const char *const classes[RESIDE_COUNT] = {[RESIDE_ARGUMENT] = "argument",
                                                      [RESIDE_RESULT] = "result",
                                                      [RESIDE_INLINE] = "register",
                                                      [RESIDE_TILE] = "tile",
                                                      [RESIDE_WORKSPACE] = "workspace"};
    const Nest *nest = c->nests[k];
    const NestValue *v = &nest->values[n];
    text_printf(out, "<tr class=\"%s\"><td>", classes[v->residence]);
    html_text(out, str_from(report_value_name(nest->graph, n, c->arena)));
    text_printf(out, "</td><td>%s</td><td>%s</td><td class=\"n\">%lld</td><td>",
                dtype_name(graph_node(nest->graph, n)->dtype), report_residence(nest, n),
                (long long)(residence_is_stored(v->residence) ? v->bytes : 0));
    const char *reason = report_reason(c, k, n);
    html_text(out, str_from(reason == NULL ? "" : reason));
    text_put(out, "</td></tr>\n");
}

static void html_table(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nest = c->nests[k];
    text_put(out, "<section><h2>kernel ");
    html_text(out, str_from(nest->graph->name->text));
    text_put(out, ": where every value "
                  "lives</h2>\n<table><tr><th>value</th><th>type</th><th>lives in</th>"
                  "<th>bytes</th><th>why not on chip, or how long</th></tr>\n");
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        Op op = graph_node(nest->graph, n)->op;
        if (nest->values[n].residence != RESIDE_NONE && op != OP_CONST && op != OP_EXTENT) {
            html_row(c, k, n, out);
        }
    }
    text_put(out, "</table></section>\n");
}

/* The nests that the prices in the report are of. */
static void html_nests(const Compilation *c, uint32_t k, Text *out)
{
    const Nest *nests[] = {c->nests[k], c->nests[k]->second};
    static const char *const titles[] = {"chosen nest", "turned down"};
    for (uint32_t i = 0; i < 2 && nests[i] != NULL; i++) {
        Text dump;
        text_init(&dump, c->arena);
        nest_dump(nests[i], &dump);
        html_section(
            out, str_format(c->arena, "kernel %s: %s", nests[i]->graph->name->text, titles[i]),
            text_str(&dump));
    }
}

void compilation_report_html(const Compilation *c, Text *out)
{
    text_put(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                  "charset=\"utf-8\"><title>TDSL report</title>\n<style>\n"
                  "body{font:14px sans-serif;margin:1em auto;max-width:80em;padding:0 1em}\n"
                  "pre{background:#f6f6f6;padding:.6em;overflow-x:auto;font-size:12px}\n"
                  "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em "
                  ".6em;text-align:left}\n"
                  ".n{text-align:right}.tile{background:#e6f4e6}.register{background:#eef6ff}."
                  "workspace{background:#fbe3dc}\n"
                  "</style></head><body>\n<h1>");
    html_text(out, str_from(c->module->source_name));
    text_printf(out, " for %s</h1>\n<p>Bytes are for typical extents.</p>\n", c->target->name);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        html_table(c, k, out);
    }
    Text report;
    text_init(&report, c->arena);
    compilation_report(c, &report);
    html_section(out, "report", text_str(&report));
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        html_nests(c, k, out);
    }
    html_source(c, out);
    html_dump(c, out, "tensor graph, two operands at a time", STAGE_PATH);
    html_dump(c, out, "loops", STAGE_LOOP);
    text_put(out, "</body></html>\n");
}
