/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of graphs (grammar in docs/ir.md): graph_read.c reads it back to the same graph, so it holds
 * everything that later stages look at. Values are numbered by node, labels are named per node in order of
 * appearance. */
#include "graph/recurrence.h"

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

/* [2*a+b,extent(n)-1-c] */
static void dump_positions(const Graph *g, uint32_t rank, const Affine *at, Text *out)
{
    for (uint32_t d = 0; d < rank; d++) {
        const Affine *x = &at[d];
        text_put(out, d == 0 ? "[" : ",");
        for (uint32_t i = 0; i < x->n; i++) {
            int64_t coef = x->term[i].coef;
            uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
            text_put(out, coef < 0 ? "-" : i > 0 ? "+" : "");
            if (size != 1) {
                text_printf(out, "%llu*", (unsigned long long)size);
            }
            if (affine_is_dim(x->term[i].var)) {
                text_put(out, "extent(");
                dump_dim(out, &g->dims, dim_open(affine_sym(x->term[i].var)));
                text_char(out, ')');
            } else {
                dump_label(out, (int32_t)x->term[i].var);
            }
        }
        if (x->n == 0 || x->base != 0) {
            text_put(out, x->n > 0 && x->base > 0 ? "+" : "");
            text_i64(out, x->base);
        }
    }
    text_put(out, rank == 0 ? "" : "]");
}

static void dump_operands(const Graph *g, const Node *n, Text *out)
{
    if (n->op == OP_STEPS) {
        text_printf(out, " %u result %u", n->steps.recurrence, n->steps.result);
        if (n->steps.along >= 0) {
            text_printf(out, " along %d", (int)n->steps.along);
        }
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        text_put(out, k == 0 ? " " : k == node_factors(n) ? " onto " : ", ");
        dump_value(out, n->operand[k]);
        if (n->op == OP_VIEW) {
            dump_positions(g, n->access[0].rank, n->at, out);
        } else if (op_info(n->op)->kind == OPKIND_JOIN) {
            dump_positions(g, n->rank, n->at + (size_t)k * n->rank, out);
        } else if (!op_takes_whole(n->op) &&
                   (k > 0 || n->op != OP_GATHER)) { /* those are read whole */
            dump_access(&n->access[k], out);
        }
    }
    text_put(out, " -> [");
    for (uint32_t d = 0; d < n->rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        dump_label(out, n->out[d]);
    }
    text_char(out, ']');
}

/* sym(a c, b d): pairs of labels, of dimensions or all, that are exchanged at once */
static void dump_exchange(const char *word, const Generator *generator, uint32_t n,
                          const int32_t *label, Text *out)
{
    text_printf(out, " %s(", word);
    bool first = true;
    for (uint32_t d = 0; d < n; d++) {
        uint32_t to = generator->to[d];
        if (to > d) {
            text_put(out, first ? "" : ", ");
            dump_label(out, label == NULL ? (int32_t)d : label[d]);
            text_char(out, ' ');
            dump_label(out, label == NULL ? (int32_t)to : label[to]);
            first = false;
        }
    }
    text_char(out, ')');
}

/* named [i,_,k]: what the source calls the labels, in their order */
static void dump_label_names(const Node *n, Text *out)
{
    for (uint32_t l = 0; l < n->n_labels; l++) {
        text_put(out, l == 0 ? " named [" : ",");
        if (n->label_name[l] != NULL) {
            dump_name(out, n->label_name[l]);
        } else {
            text_char(out, '_');
        }
    }
    text_char(out, ']');
}

static void dump_node(const Graph *g, NodeRef r, Text *out)
{
    const Node *n = graph_node(g, r);
    Slices sliced = graph_slices(g, r);
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
    } else if (n->op != OP_INDEX) {
        dump_operands(g, n, out);
    }
    text_put(out, " : ");
    dump_type(out, &g->dims, n->dtype, n->rank, n->shape);
    if (n->acc != n->dtype) {
        text_printf(out, " acc %s", dtype_name(n->acc));
    }
    text_put(out, n->allow_spill ? " spill" : "");
    text_put(out, n->keep ? " keep" : "");
    for (uint32_t k = 0; k < sliced.n; k++) {
        text_put(out, k == 0 ? " slice [" : ",");
        dump_label(out, sliced.label[k]);
        text_put(out, k + 1 == sliced.n ? "]" : "");
    }
    for (uint32_t k = 0; n->out != NULL && k < n->n_generators; k++) {
        const Generator *s = &n->generator[k];
        dump_exchange(symmetry_short_word(s->sign, s->conj), s, n->rank, n->out, out);
    }
    for (uint32_t k = 0; k < n->n_exchanges; k++) {
        dump_exchange("terms", &n->exchange[k], n->n_labels, NULL, out);
    }
    if (n->name != NULL && n->op != OP_INPUT) {
        text_put(out, " as ");
        dump_name(out, n->name);
    }
    if (n->label_name != NULL) {
        dump_label_names(n, out);
    }
    dump_span(out, g->sources, n->span, g->span.source);
    text_char(out, '\n');
}

/* online %10 by %7[a,b] over c scale %5 power 2 */
static void dump_online(const Online *o, Text *out)
{
    text_put(out, "online ");
    dump_value(out, o->node);
    text_put(out, " by ");
    dump_value(out, o->base);
    dump_access(&o->at, out);
    text_put(out, " over ");
    dump_label(out, o->t);
    if (o->scale != NODE_NONE) {
        text_put(out, " scale ");
        dump_value(out, o->scale);
    }
    if (o->power != 1) {
        text_printf(out, " power %d", (int)o->power);
    }
    text_char(out, '\n');
}

static const char *const role_names[] = {
    [PARAM_IN] = "in", [PARAM_INOUT] = "inout", [PARAM_SCALAR] = "scalar"};

/* as [m_n,3]: dimensions taken together; of [m,n,3]: what they are to the caller */
static void dump_dims_as(const char *word, const DimTable *dims, uint32_t n, const Dim *shape,
                         Text *out)
{
    if (shape != NULL) {
        text_printf(out, " %s ", word);
        dump_shape(out, dims, n, shape);
    }
}

void graph_dump(const Graph *g, Text *out)
{
    dump_kernel_head(out, g->sources,
                     &(KernelHead){g->name, g->span, g->signature, g->statements, g->ranks});
    if (g->program != NULL) {
        text_put(out, "program ");
        text_quoted(out, str_from(g->program));
        text_char(out, '\n');
    }
    text_printf(out, "form %s\n", graph_form_name(g->form));
    dump_dims(out, &g->dims);
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        text_printf(out, "param %s @", role_names[p->role]);
        dump_name(out, p->name);
        text_put(out, " : ");
        dump_type(out, &g->dims, p->dtype, p->rank, p->shape);
        dump_dims_as("as", &g->dims, p->n_collapsed, p->collapsed, out);
        dump_symmetry(out, p->symmetry);
        dump_span(out, g->sources, p->span, g->span.source);
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        recurrence_dump(g, k, out);
    }
    for (uint32_t r = 0; r < g->nodes.n; r++) {
        dump_node(g, r, out);
    }
    for (uint32_t k = 0; k < g->online.n; k++) {
        dump_online(&g->online.at[k], out);
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *result = &g->results.at[k];
        text_put(out, result->param >= 0 ? "update @" : "result @");
        dump_name(out, result->name);
        text_put(out, " = ");
        dump_value(out, result->node);
        dump_dims_as("of", &g->dims, result->rank, result->shape, out);
        dump_symmetry(out, result->symmetry);
        dump_span(out, g->sources, result->span, g->span.source);
        text_char(out, '\n');
    }
    for (uint32_t k = 0; k < g->required.n; k++) {
        const Required *r = &g->required.at[k];
        text_put(out, "require ");
        dump_value(out, r->node);
        dump_requirement(out, &g->dims, g->sources, g->span.source, &r->what);
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

void module_dump(const Module *m, Text *out)
{
    dump_head(out, "graph", m->source_name, NULL);
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        text_char(out, '\n');
        graph_dump(m->graphs.at[k], out);
    }
}
