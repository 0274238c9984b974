/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for other tools to compute with, as JSON. One way only. */
#include "graph/graph.h"

#include <math.h>

#include "dump/text.h"

static void json_shape(Text *out, const DimTable *dims, uint32_t rank, const Dim *shape)
{
    text_put(out, "\"shape\": [");
    for (uint32_t d = 0; d < rank; d++) {
        text_put(out, d == 0 ? "" : ", ");
        if (shape[d].sym < 0) {
            text_i64(out, shape[d].n);
        } else {
            text_json(out, dim_written(out->arena, dims, shape[d]));
        }
    }
    text_char(out, ']');
}

/* A JSON number, or a string for what JSON has no numbers for. */
static void json_real(Text *out, double v)
{
    text_put(out, isfinite(v) ? "" : "\"");
    text_f64(out, v);
    text_put(out, isfinite(v) ? "" : "\"");
}

static void json_value(Text *out, Number v)
{
    if (v.dtype == DTYPE_BOOL) {
        text_put(out, v.i != 0 ? "true" : "false");
    } else if (dtype_is_int(v.dtype)) {
        text_i64(out, v.i);
    } else if (dtype_is_complex(v.dtype)) {
        text_char(out, '[');
        json_real(out, v.re);
        text_put(out, ", ");
        json_real(out, v.im);
        text_char(out, ']');
    } else {
        json_real(out, v.re);
    }
}

static void json_labels(Text *out, const Index *index, const int32_t *label, uint32_t n)
{
    text_char(out, '[');
    for (uint32_t d = 0; d < n; d++) {
        text_put(out, d == 0 ? "" : ", ");
        int32_t l = index != NULL ? index[d].label : label[d];
        if (l >= 0) {
            text_char(out, '"');
            dump_label(out, l);
            text_char(out, '"');
        } else {
            text_i64(out, index[d].offset);
        }
    }
    text_char(out, ']');
}

static void json_node(const Graph *g, NodeRef r, Text *out)
{
    const Node *n = graph_node(g, r);
    text_printf(out, "{\"id\": %u, ", r);
    text_member(out, "\"op\": ", op_info(n->op)->name);
    text_put(out, ", ");
    text_member(out, "\"dtype\": ", dtype_name(n->dtype));
    text_put(out, ", ");
    json_shape(out, &g->dims, n->rank, n->shape);
    if (n->acc != n->dtype) {
        text_put(out, ", ");
        text_member(out, "\"accumulator\": ", dtype_name(n->acc));
    }
    if (n->name != NULL) {
        text_put(out, ", ");
        text_member(out, "\"name\": ", n->name->text);
    }
    if (n->op == OP_CONST) {
        text_put(out, ", \"value\": ");
        json_value(out, n->value);
    } else if (n->op == OP_EXTENT) {
        text_put(out, ", ");
        text_member(out, "\"dim\": ", dim_written(out->arena, &g->dims, dim_open(n->dim)));
    } else if (n->at != NULL) {
        text_put(out, ", \"operands\": [");
        for (uint32_t k = 0; k < n->n_operands; k++) {
            text_printf(out, "%s{\"id\": %u}", k == 0 ? "" : ", ", n->operand[k]);
        }
        text_put(out, "], \"out\": ");
        json_labels(out, NULL, n->out, n->rank);
    } else if (n->op != OP_INPUT && n->op != OP_INDEX) {
        text_put(out, ", \"operands\": [");
        for (uint32_t k = 0; k < n->n_operands; k++) {
            text_printf(out, "%s{\"id\": %u, \"index\": ", k == 0 ? "" : ", ", n->operand[k]);
            json_labels(out, n->access[k].index, NULL, n->access[k].rank);
            text_char(out, '}');
        }
        text_printf(out, "], %s\"out\": ", n->onto ? "\"onto\": true, " : "");
        json_labels(out, NULL, n->out, n->rank);
    }
    text_char(out, '}');
}

static void json_list_open(Text *out, const char *name)
{
    text_printf(out, ",\n\"%s\": [", name);
    out->indent++;
}

static void json_list_next(Text *out, uint32_t k)
{
    text_put(out, k == 0 ? "\n" : ",\n");
}

static void json_list_close(Text *out)
{
    out->indent--;
    text_put(out, "]");
}

static void json_params(const Graph *g, Text *out)
{
    static const char *const roles[] = {
        [PARAM_IN] = "in", [PARAM_INOUT] = "inout", [PARAM_SCALAR] = "scalar"};
    json_list_open(out, "params");
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        json_list_next(out, k);
        text_char(out, '{');
        text_member(out, "\"name\": ", p->name->text);
        text_put(out, ", ");
        text_member(out, "\"role\": ", roles[p->role]);
        text_put(out, ", ");
        text_member(out, "\"dtype\": ", dtype_name(p->dtype));
        text_put(out, ", ");
        json_shape(out, &g->dims, p->rank, p->shape);
        text_char(out, '}');
    }
    json_list_close(out);
}

/* Extents that are computed, each made of those before it: what shapes call it, and what it is the sum or the product of. */
static void json_computed(const Graph *g, Text *out)
{
    uint32_t given = dims_given(&g->dims);
    for (uint32_t k = given; k < g->dims.list.n; k++) {
        const DimInfo *info = &g->dims.list.at[k];
        if (k == given) {
            json_list_open(out, "computed");
        }
        json_list_next(out, k - given);
        text_char(out, '{');
        text_member(out,
                    "\"extent\": ", dim_written(out->arena, &g->dims, dim_open((int32_t)k)));
        text_printf(out, ", \"base\": %lld, \"divisor\": %lld, \"%s\": [",
                    (long long)(info->n_terms > 0 ? info->base : 1),
                    (long long)(info->divisor > 1 ? info->divisor : 1),
                    info->n_terms > 0 ? "sum" : "product");
        uint32_t n = info->n_terms > 0 ? info->n_terms : info->n_factors;
        for (uint32_t i = 0; i < n; i++) {
            Dim d = info->n_terms > 0 ? info->term[i].dim : info->factor[i];
            text_put(out, i == 0 ? "[" : ", [");
            if (d.sym < 0) {
                text_i64(out, d.n);
            } else {
                text_json(out, dim_written(out->arena, &g->dims, d));
            }
            text_printf(out, ", %lld]",
                        (long long)(info->n_terms > 0 ? info->term[i].coef : 1));
        }
        text_put(out, "]}");
        if (k + 1 == g->dims.list.n) {
            json_list_close(out);
        }
    }
}

static void graph_json(const Graph *g, Text *out)
{
    text_put(out, "{");
    text_member(out, "\"name\": ", g->name->text);
    text_put(out, ",\n");
    text_member(out, "\"signature\": ", g->signature);
    text_put(out, ",\n");
    text_member(out, "\"form\": ", graph_form_name(g->form));
    json_list_open(out, "dims");
    for (uint32_t k = 0; k < dims_given(&g->dims); k++) {
        json_list_next(out, k);
        text_char(out, '{');
        text_member(out, "\"name\": ", g->dims.list.at[k].name->text);
        text_printf(out, ", \"typical\": %lld}", (long long)g->dims.list.at[k].typical);
    }
    json_list_close(out);
    json_computed(g, out);
    json_params(g, out);
    json_list_open(out, "nodes");
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        json_list_next(out, r);
        json_node(g, r, out);
    }
    json_list_close(out);
    json_list_open(out, "results");
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *result = &g->results.at[k];
        json_list_next(out, k);
        text_char(out, '{');
        text_member(out, "\"name\": ", result->name->text);
        text_printf(out, ", \"node\": %u, \"updates\": %s}", result->node,
                    result->param >= 0 ? "true" : "false");
    }
    json_list_close(out);
    text_char(out, '}');
}

void module_dump_json(const Module *m, Text *out)
{
    text_put(out, "{");
    text_member(out, "\"stage\": ", "graph");
    text_put(out, ",\n\"version\": 1,\n");
    text_member(out, "\"source\": ", m->source_name != NULL ? m->source_name : "");
    json_list_open(out, "kernels");
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        json_list_next(out, k);
        graph_json(m->graphs.at[k], out);
    }
    json_list_close(out);
    text_put(out, "}\n");
}
