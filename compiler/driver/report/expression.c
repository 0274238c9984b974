/* SPDX-License-Identifier: Apache-2.0 */
/* What a value computes, in the notation of the language: expressions that have no place of their own stand where they are used. A
 * person reads it, so it is cut where it gets long; that bounds the work too. */
#include <string.h>

#include "driver/report/report.h"

#define EXPRESSION_BYTES 240
#define EXPRESSION_DEPTH 24

typedef struct Expression {
    const Graph *g;
    const Nest *nest;
    Arena *arena;
    const char *const *label; /* of the node that is told */
    uint32_t depth;
    Text *out;
} Expression;

void report_access(const Access *access, const char *const *label, Text *out)
{
    for (uint32_t d = 0; d < access->rank; d++) {
        text_put(out, d == 0 ? "[" : ",");
        if (access->index[d].label < 0) {
            text_i64(out, access->index[d].offset);
        } else {
            text_put(out, label[access->index[d].label]);
        }
    }
    text_put(out, access->rank > 0 ? "]" : "");
}

static void put_node(Expression *e, NodeRef n, const Access *at, int level);

/* The value read at `access`, binding at least as strongly as `level`. */
static void put_read(Expression *e, NodeRef p, const Access *access, int level)
{
    const Node *from = graph_node(e->g, p);
    if (from->op == OP_CONST) {
        dump_number(e->out, from->value);
    } else if (from->op == OP_EXTENT) {
        bool alone = dim_is_given(&e->g->dims.list.at[from->dim]);
        text_put(e->out, alone ? "" : "(");
        dim_put(e->out, &e->g->dims, dim_open(from->dim), NULL);
        text_put(e->out, alone ? "" : ")");
    } else if (e->nest->values[p].residence == RESIDE_INLINE) {
        put_node(e, p, access, level);
    } else {
        text_put(e->out, report_value_name(e->g, p, e->arena));
        report_access(access, e->label, e->out);
    }
}

/* Operand k of the node, which is read at `at`. */
static void put_operand(Expression *e, const Node *n, uint32_t k, const Access *at, int level)
{
    Access access = at == NULL ? n->access[k] : access_compose(e->arena, n, n->access[k], *at);
    put_read(e, n->operand[k], &access, level);
}

static void put_operator(Expression *e, const Node *n, const Access *at, int level)
{
    const OpInfo *op = op_info(n->op);
    bool inner = op->level < level;
    text_put(e->out, inner ? "(" : "");
    if (n->n_operands == 1) {
        text_put(e->out, op->symbol);
        put_operand(e, n, 0, at, LEVEL_UNARY);
    } else {
        put_operand(e, n, 0, at, op->level);
        text_printf(e->out, " %s ", op->symbol);
        put_operand(e, n, 1, at, op->level + 1);
    }
    text_put(e->out, inner ? ")" : "");
}

static void put_call(Expression *e, const Node *n, const Access *at)
{
    text_printf(e->out, "%s(", n->op == OP_CAST ? dtype_name(n->dtype) : op_info(n->op)->name);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        text_put(e->out, k == 0 ? "" : ", ");
        put_operand(e, n, k, at, 0);
    }
    text_char(e->out, ')');
}

/* sum[k](A[i,k] * B[k,j]), or the product alone when nothing is summed. */
static void put_fold(Expression *e, const Node *n, const Access *at, int level)
{
    bool product = op_info(n->op)->kind == OPKIND_CONTRACT;
    const char *name = product ? (n->dtype == DTYPE_BOOL ? "any" : "sum")
                               : strrchr(op_info(n->op)->name, '.') + 1;
    uint32_t folded = 0;
    if (n->onto) {
        put_operand(e, n, node_factors(n), at, 0);
        text_put(e->out, " + ");
    }
    for (uint32_t l = 0; l < n->n_labels && at == NULL; l++) {
        if (node_reduces(n, (int32_t)l)) {
            text_printf(e->out, "%s%s%s", folded == 0 ? name : ",", folded == 0 ? "[" : "",
                        e->label[l]);
            folded++;
        }
    }
    bool inner = folded > 0 || (product && level > LEVEL_PRODUCT);
    text_put(e->out, folded > 0 ? "](" : inner ? "(" : "");
    for (uint32_t k = 0; k < node_factors(n) && e->out->n < EXPRESSION_BYTES; k++) {
        text_put(e->out, k == 0 ? "" : n->dtype == DTYPE_BOOL ? " && " : " * ");
        put_operand(e, n, k, at,
                    n->n_operands == 1 ? 0
                    : k == 0           ? LEVEL_PRODUCT
                                       : LEVEL_PRODUCT + 1);
    }
    text_put(e->out, inner ? ")" : "");
}

/* Label l of a node whose result has one dimension for each. */
static const char *label_of(const Expression *e, const Access *at, uint32_t l)
{
    int32_t label = at == NULL ? (int32_t)l : at->index[l].label;
    return label < 0 ? str_format(e->arena, "%lld", (long long)at->index[l].offset)
                     : e->label[label];
}

static void put_position(Expression *e, Affine x, const Access *at)
{
    bool any = false;
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        int64_t size = t.coef < 0 ? -t.coef : t.coef;
        text_put(e->out, !any ? (t.coef < 0 ? "-" : "") : t.coef < 0 ? " - " : " + ");
        if (size != 1) {
            text_printf(e->out, "%lld*", (long long)size);
        }
        if (affine_is_dim(t.var)) {
            bool alone = dim_is_given(&e->g->dims.list.at[affine_sym(t.var)]);
            text_put(e->out, alone ? "" : "(");
            dim_put(e->out, &e->g->dims, dim_open(affine_sym(t.var)), NULL);
            text_put(e->out, alone ? "" : ")");
        } else {
            text_put(e->out, label_of(e, at, t.var));
        }
        any = true;
    }
    if (x.base != 0 || !any) {
        text_printf(e->out,
                    !any         ? "%lld"
                    : x.base < 0 ? " - %lld"
                                 : " + %lld",
                    (long long)(any && x.base < 0 ? -x.base : x.base));
    }
}

/* x[2*i + 1] */
static void put_view(Expression *e, const Node *n, const Access *at)
{
    text_put(e->out, report_value_name(e->g, n->operand[0], e->arena));
    for (uint32_t d = 0; d < n->access[0].rank; d++) {
        text_put(e->out, d == 0 ? "[" : ",");
        put_position(e, n->at[d], at);
    }
    text_put(e->out, n->access[0].rank > 0 ? "]" : "");
}

/* `at`: how its result is read, in labels of the node that is told; null: it is that node. */
static void put_node(Expression *e, NodeRef ref, const Access *at, int level)
{
    const Node *n = graph_node(e->g, ref);
    if (e->depth >= EXPRESSION_DEPTH || e->out->n >= EXPRESSION_BYTES) {
        text_put(e->out, "...");
        return;
    }
    e->depth++;
    if (n->op == OP_INDEX) {
        text_printf(e->out, "index(%s)", label_of(e, at, 0));
    } else if (n->op == OP_VIEW) {
        put_view(e, n, at);
    } else if (op_info(n->op)->kind != OPKIND_MAP) {
        put_fold(e, n, at, level);
    } else if (op_info(n->op)->symbol[0] != '\0') {
        put_operator(e, n, at, level);
    } else if (n->op == OP_COPY) {
        put_operand(e, n, 0, at, level);
    } else {
        put_call(e, n, at);
    }
    e->depth--;
}

const char *report_expression(Arena *arena, const Nest *nest, GraphNames names, NodeRef n)
{
    Text out = text_new(arena);
    Expression e = {nest->graph, nest, arena, names[n], 0, &out};
    put_node(&e, n, NULL, 0);
    return out.at;
}

const char *report_result(Arena *arena, const Nest *nest, GraphNames names, NodeRef n)
{
    Text out = text_new(arena);
    Expression e = {nest->graph, nest, arena, names[n], 0, &out};
    bool leaf = op_info(graph_node(nest->graph, n)->op)->kind == OPKIND_LEAF;
    if (nest->values[n].residence == RESIDE_INLINE && !leaf) {
        put_node(&e, n, NULL, 0);
    } else {
        put_read(&e, n, &(Access){0}, 0);
    }
    return out.at;
}
