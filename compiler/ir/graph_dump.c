/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of graphs (grammar in docs/ir.md): graph_read.c reads it back to the same
 * graph, so it holds everything that later stages look at. Values are numbered by node, labels
 * are named per node in order of appearance. */
#include "ir/graph.h"

#include "ir/dump_text.h"

/* ---- pieces of all dumps (dump_text.h) ---- */

void dump_label(Text *out, int32_t label)
{
    if (label < 26) {
        text_char(out, (char)('a' + label));
    } else if (label < 52) {
        text_char(out, (char)('A' + label - 26));
    } else {
        text_printf(out, "l%d", (int)label);
    }
}

void dump_dim(Text *out, const DimTable *dims, Dim d)
{
    if (d.sym < 0) {
        text_i64(out, d.n);
    } else {
        dump_name(out, dims->list.at[d.sym].name);
    }
}

void dump_type(Text *out, const DimTable *dims, DType dtype, uint32_t rank, const Dim *shape)
{
    text_put(out, dtype_name(dtype));
    text_char(out, '[');
    for (uint32_t d = 0; d < rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        dump_dim(out, dims, shape[d]);
    }
    text_char(out, ']');
}

void dump_number(Text *out, Number v)
{
    if (v.dtype == DTYPE_BOOL) {
        text_put(out, v.i != 0 ? "true" : "false");
    } else if (dtype_is_int(v.dtype)) {
        if (v.i == INT64_MIN) { /* its magnitude is no INT of the dump language */
            text_put(out, "-9223372036854775807 - 1");
        } else {
            text_i64(out, v.i);
        }
    } else if (dtype_is_complex(v.dtype)) {
        text_put(out, "complex(");
        text_f64(out, v.re);
        text_put(out, ", ");
        text_f64(out, v.im);
        text_char(out, ')');
    } else {
        text_f64(out, v.re);
    }
}

void dump_dims(Text *out, const DimTable *dims)
{
    for (uint32_t k = 0; k < dims->list.n; k++) {
        text_put(out, "dim ");
        dump_name(out, dims->list.at[k].name);
        text_printf(out, " ~ %lld\n", (long long)dims->list.at[k].typical);
    }
}

void dump_value(Text *out, NodeRef r)
{
    text_printf(out, "%%%u", r);
}

/* ---- graphs ---- */

static void dump_access(const Access *a, Text *out)
{
    text_char(out, '[');
    for (uint32_t d = 0; d < a->rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        if (a->index[d].label >= 0) {
            dump_label(out, a->index[d].label);
        } else {
            text_i64(out, a->index[d].offset);
        }
    }
    text_char(out, ']');
}

static void dump_operands(const Node *n, Text *out)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        text_put(out, k == 0 ? " " : ", ");
        dump_value(out, n->operand[k]);
        dump_access(&n->access[k], out);
    }
    text_put(out, " -> [");
    for (uint32_t d = 0; d < n->rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        dump_label(out, n->out[d]);
    }
    text_char(out, ']');
}

static void dump_node(const Graph *g, NodeRef r, Text *out)
{
    const Node *n = graph_node(g, r);
    dump_value(out, r);
    text_printf(out, " = %s", op_info(n->op)->name);
    if (n->op == OP_INPUT) {
        text_put(out, " @");
        dump_name(out, g->params.at[n->param].name);
    } else if (n->op == OP_CONST) {
        text_char(out, ' ');
        dump_number(out, n->value);
    } else if (n->op == OP_EXTENT) {
        text_char(out, ' ');
        dump_name(out, g->dims.list.at[n->dim].name);
    } else {
        dump_operands(n, out);
    }
    text_put(out, " : ");
    dump_type(out, &g->dims, n->dtype, n->rank, n->shape);
    if (n->acc != n->dtype) {
        text_printf(out, " acc %s", dtype_name(n->acc));
    }
    text_put(out, n->allow_spill ? " spill" : "");
    for (uint32_t k = 0; k < n->n_sliced; k++) {
        text_put(out, k == 0 ? " slice [" : ",");
        dump_label(out, n->sliced[k]);
        text_put(out, k + 1 == n->n_sliced ? "]" : "");
    }
    if (n->name != NULL && n->op != OP_INPUT) {
        text_put(out, " as ");
        dump_name(out, n->name);
    }
    dump_span(out, g->sources, n->span, g->span.source);
    text_char(out, '\n');
}

void dump_kernel_head(Text *out, Sym name, Sources *sources, Span span, const char *signature)
{
    text_put(out, "kernel ");
    dump_name(out, name);
    dump_span(out, sources, span, 0);
    text_put(out, " {\n");
    out->indent++;
    if (signature[0] != '\0') {
        text_put(out, "signature ");
        text_quoted(out, str_from(signature));
        text_char(out, '\n');
    }
}

static const char *const role_names[] = {
    [PARAM_IN] = "in", [PARAM_INOUT] = "inout", [PARAM_SCALAR] = "scalar"};

void graph_dump(const Graph *g, Text *out)
{
    dump_kernel_head(out, g->name, g->sources, g->span, g->signature);
    text_printf(out, "form %s\n", graph_form_name(g->form));
    dump_dims(out, &g->dims);
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        text_printf(out, "param %s @", role_names[p->role]);
        dump_name(out, p->name);
        text_put(out, " : ");
        dump_type(out, &g->dims, p->dtype, p->rank, p->shape);
        dump_span(out, g->sources, p->span, g->span.source);
        text_char(out, '\n');
    }
    for (uint32_t r = 0; r < g->nodes.n; r++) {
        dump_node(g, r, out);
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *result = &g->results.at[k];
        text_put(out, result->param >= 0 ? "update @" : "result @");
        dump_name(out, result->name);
        text_put(out, " = ");
        dump_value(out, result->node);
        dump_span(out, g->sources, result->span, g->span.source);
        text_char(out, '\n');
    }
    out->indent--;
    text_put(out, "}\n");
}

const char *graph_form_name(GraphForm form)
{
    switch (form) {
    case GRAPH_TENSOR:
        return "tensor";
    case GRAPH_BINARY:
        return "binary";
    }
    UNREACHABLE();
}

void module_dump_head(const Module *m, const char *stage, Text *out)
{
    text_printf(out, "tdsl-dump %s 1\n", stage);
    if (m->source_name != NULL) {
        text_put(out, "source ");
        text_quoted(out, str_from(m->source_name));
        text_char(out, '\n');
    }
}

void module_dump(const Module *m, Text *out)
{
    module_dump_head(m, "graph", out);
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        text_char(out, '\n');
        graph_dump(m->graphs.at[k], out);
    }
}
