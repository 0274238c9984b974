/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=dot: values and who reads whom for Graphviz, loops as clusters around what they compute. */
#include "driver/report/report.h"

/* Inside a double-quoted string of dot: quotes and backslashes escaped, other bytes as they are. */
static void dot_text(Text *out, const char *s)
{
    for (; *s != '\0'; s++) {
        text_put(out, *s == '"' || *s == '\\' ? "\\" : "");
        if (*s == '\n') {
            text_put(out, "\\n");
        } else {
            text_char(out, *s);
        }
    }
}

static void dot_value(const ReportValue *v, Text *out)
{
    static const char *const shapes[RESIDE_COUNT] = {
        [RESIDE_ARGUMENT] = "shape=ellipse",
        [RESIDE_VIEW] = "shape=ellipse, style=dotted",
        [RESIDE_RESULT] = "style=bold",
        [RESIDE_INTO] = "style=dashed",
        [RESIDE_TILE] = "style=filled, fillcolor=\"#e2f4e8\"",
        [RESIDE_WORKSPACE] = "style=filled, fillcolor=\"#fdeadd\"",
    };
    text_printf(out, "n%u [label=\"", v->node);
    dot_text(out, v->name);
    dot_text(out, v->indices);
    if (v->computes != NULL) {
        text_put(out, " = ");
        dot_text(out, v->computes);
    }
    text_put(out, "\\n");
    dot_text(out, v->type);
    text_printf(out, ", %s ", v->lives);
    report_bytes(out, v->residence == RESIDE_ARGUMENT ? v->whole : v->bytes);
    text_printf(out, "\", %s]\n", shapes[v->residence]);
}

static void dot_loop(const ReportKernel *r, uint32_t k, Text *out)
{
    const NestItem *item = &r->nest->items[k];
    const ReportItem *to = &r->items[k];
    text_printf(out, "subgraph cluster_%u_%u {\n", r->kernel, k);
    out->indent++;
    text_put(out, "label=\"for ");
    dot_text(out, to->index);
    text_put(out, " of ");
    dot_text(out, to->extent);
    text_printf(out, " by %lld%s%s", (long long)item->tile, item->parallel ? ", parallel" : "",
                item->online ? ", online" : "");
    if (to->from != NULL) {
        text_put(out, ", each pair once with ");
        dot_text(out, to->from);
    }
    text_put(out, "\"\n");
}

static void dot_nest(const ReportKernel *r, Text *out)
{
    const Nest *nest = r->nest;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const ReportItem *to = &r->items[k];
        if (nest_is_loop(&nest->items[k])) {
            dot_loop(r, k, out);
        } else {
            dot_value(&r->values.at[to->value], out);
        }
        for (uint32_t n = nest_loops_ending(nest, k); n > 0; n--) {
            out->indent--;
            text_put(out, "}\n");
        }
    }
}

static void dot_reads(const ReportKernel *r, const ReportValue *v, Text *out)
{
    for (uint32_t k = 0; k < v->reads.list.n; k++) {
        const Use *use = &v->reads.list.at[k];
        Text at = text_new(r->c->arena);
        report_access(&use->access, r->names[v->node], &at);
        text_printf(out, "n%u -> n%u [label=\"", use->node, v->node);
        dot_text(out, at.at);
        text_put(out, "\"]\n");
    }
}

static void dot_late(const ReportLate *late, uint32_t k, Text *out)
{
    text_printf(out, "r%u [label=\"", k);
    dot_text(out, late->name);
    text_put(out, " = ");
    dot_text(out, late->computes);
    text_put(out, "\", style=bold]\n");
    for (uint32_t x = 0; x < late->reads.list.n; x++) {
        text_printf(out, "n%u -> r%u\n", late->reads.list.at[x].node, k);
    }
}

static void dot_kernel(const ReportKernel *r, Text *out)
{
    text_put(out, "digraph \"");
    dot_text(out, r->g->name->text);
    text_put(out, "\" {\n");
    out->indent++;
    text_put(out, "node [shape=box, fontname=\"monospace\"]\n");
    for (uint32_t k = 0; k < r->values.n; k++) {
        if (r->values.at[k].residence == RESIDE_ARGUMENT) {
            dot_value(&r->values.at[k], out);
        }
    }
    dot_nest(r, out);
    for (uint32_t k = 0; k < r->values.n; k++) {
        dot_reads(r, &r->values.at[k], out);
    }
    for (uint32_t k = 0; k < r->late.n; k++) {
        dot_late(&r->late.at[k], k, out);
    }
    out->indent--;
    text_put(out, "}\n");
}

void compilation_dot(const Compilation *c, Text *out)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        dot_kernel(report_collect(c, k), out);
    }
}
