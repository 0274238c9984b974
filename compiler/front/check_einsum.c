/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum strings as statements: the product of the operands, summed over what the output lacks. Both the einsum() of
 * the language and an equation of the command line become one, so they mean the same as index notation does. */
#include <string.h>

#include "front/check_statement.h"

static CheckedExpr *new_expr(Arena *arena, CheckedKind kind, Op op, DType dtype, AstId ast,
                             Span span)
{
    CheckedExpr *e = ARENA_NEW(arena, CheckedExpr);
    *e = (CheckedExpr){.kind = kind, .op = op, .dtype = dtype, .ast = ast, .span = span};
    return e;
}

TensorType einsum_type(Arena *arena, const EinsumSpec *spec, DType t)
{
    bool computes = spec->n_operands != 1;
    for (uint32_t j = 0; j < spec->n_labels; j++) {
        computes = computes || spec->label[j].out < 0;
    }
    Dim *dims = ARENA_ARRAY(arena, spec->rank, Dim);
    for (uint32_t d = 0; d < spec->rank; d++) {
        dims[d] = spec->label[spec->out[d]].extent;
    }
    return (TensorType){computes ? result_type(t) : t, spec->rank, dims};
}

CheckedStatement einsum_statement(Arena *arena, const EinsumSpec *spec, const uint32_t *value,
                                  DType dtype, AstId ast, Span span)
{
    uint32_t n = spec->n_operands;
    CheckedExpr *right = new_expr(arena, CHECKED_CHAIN, OP_MUL, dtype, ast, span);
    right->n = right->cap = n;
    right->arg = ARENA_ARRAY(arena, n, CheckedExpr *);
    right->link = ARENA_ARRAY(arena, n, uint8_t);
    for (uint32_t j = 0; j < n; j++) {
        CheckedExpr *read = new_expr(arena, CHECKED_READ, OP_INPUT, dtype, ast, span);
        read->read = value[j];
        read->rank = spec->axis_count[j];
        read->label = spec->axis[j];
        right->arg[j] = read;
        right->link[j] = OP_MUL;
    }
    right = n == 1 ? right->arg[0] : right;
    Label *label = ARENA_ARRAY(arena, spec->n_labels, Label);
    int32_t *summed = ARENA_ARRAY(arena, spec->n_labels, int32_t);
    uint32_t n_summed = 0;
    for (uint32_t j = 0; j < spec->n_labels; j++) {
        const EinsumLabel *l = &spec->label[j];
        label[j] =
            (Label){.name = l->name, .span = l->span, .extent = l->extent, .left = l->out >= 0};
        if (l->out < 0) {
            summed[n_summed++] = (int32_t)j;
        }
    }
    if (n_summed > 0) {
        CheckedExpr *sum = new_expr(arena, CHECKED_REDUCE,
                                    dtype == DTYPE_BOOL ? OP_ANY : OP_SUM, dtype, ast, span);
        sum->n = 1;
        sum->arg = arena_copy(arena, &right, sizeof right);
        sum->rank = n_summed;
        sum->label = summed;
        right = sum;
    }
    return (CheckedStatement){.ast = ast,
                              .span = span,
                              .op = OP_COPY,
                              .n_labels = spec->n_labels,
                              .label = label,
                              .rank = spec->rank,
                              .left = spec->out,
                              .right = right};
}

/* The tensors of einsum("...", A, 2*B): names, and expressions of whole tensors. */
static bool einsum_operand(Kern *k, AstId id, EinsumOperand *out, uint32_t *value)
{
    const AstNode *n = kern_node(k, id);
    if (n->kind == AST_INDEXED) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span,
                                   "an operand of einsum is a tensor without indices");
        diag_help(d, "the string names the indices: write '%s'", n->name->text);
        return false;
    }
    if (n->kind != AST_NAME) {
        Span span = n->span;
        *value = tensor_value(k, id);
        if (*value == UINT32_MAX) {
            return false;
        }
        const Value *v = &k->k->values.at[*value];
        *out = (EinsumOperand){v->type, sym_cstr(&k->c->ctx->syms, "the operand"), span, span};
        return v->type.dtype != DTYPE_NONE;
    }
    if (!value_named(k, n, value)) {
        return false;
    }
    Value *v = &k->k->values.at[*value];
    v->uses++;
    TensorType type = v->type;
    type.dtype = type_when_read(k, v);
    *out = (EinsumOperand){type, v->name, n->span, v->span};
    return v->type.dtype != DTYPE_NONE;
}

static bool einsum_types(Kern *k, const EinsumOperand *o, uint32_t n)
{
    for (uint32_t j = 1; j < n; j++) {
        if (o[j].type.dtype != o[0].type.dtype) {
            Diagnostic *d =
                diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, o[j].span, "'%s' is %s",
                           o[j].name->text, dtype_name(o[j].type.dtype));
            diag_mark(d, o[0].span, "but '%s' is %s", o[0].name->text,
                      dtype_name(o[0].type.dtype));
            return false;
        }
    }
    return true;
}

uint32_t einsum_value(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    const Ast *tree = &k->c->program->ast;
    if (n.n == 0 || ast_node(tree, n.child[0])->kind != AST_STRING) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                   "einsum takes a string and then its operands");
        return UINT32_MAX;
    }
    EinsumText *text = einsum_read(k->c->ctx, k->c->arena, ast_node(tree, n.child[0])->at);
    uint32_t count = n.n - 1;
    EinsumOperand *operand = ARENA_ARRAY(k->c->arena, count, EinsumOperand);
    uint32_t *value = ARENA_ARRAY(k->c->arena, count, uint32_t);
    bool ok = text != NULL;
    for (uint32_t j = 0; j < count; j++) {
        ok = einsum_operand(k, n.child[j + 1], &operand[j], &value[j]) && ok;
    }
    if (!ok || !einsum_types(k, operand, count)) {
        return UINT32_MAX;
    }
    EinsumSpec *spec =
        einsum_resolve(k->c->ctx, k->c->arena, text, &k->k->dims, operand, count);
    if (spec == NULL) {
        return UINT32_MAX;
    }
    TensorType type =
        einsum_type(k->c->arena, spec, count > 0 ? operand[0].type.dtype : DTYPE_NONE);
    CheckedStatement s = einsum_statement(k->c->arena, spec, value, type.dtype, ast, n.span);
    s.target = value_new(
        k, (Value){.kind = VALUE_TEMP, .type = type, .span = n.span, .updated = true});
    statement_add(k, s);
    return s.target;
}

uint32_t einsum_nested(Kern *k, AstId ast)
{
    uint32_t value = einsum_value(k, ast);
    if (value != UINT32_MAX) {
        CheckedStatement *s = &k->k->statements.at[k->k->statements.n - 1];
        s->right = compute_in(k, s->right, s->right->dtype);
    }
    return value;
}
