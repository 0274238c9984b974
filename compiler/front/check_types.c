/* SPDX-License-Identifier: Apache-2.0 */
/* The types of operations: what operands of an operation, and the members of a chain, have in common. */
#include <string.h>

#include "front/check_types.h"

static void mismatch(Kern *k, const CheckedExpr *a, const CheckedExpr *b)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, b->span,
                               "this is %s but the other operand is %s", dtype_name(b->dtype),
                               dtype_name(a->dtype));
    mark_other(k->c, d, a->span, "the other operand");
    if (steps_help_type(k, d, a, b->dtype) || steps_help_type(k, d, b, a->dtype)) {
        return;
    }
    diag_help(d, "a cast makes it one type: %s(...)",
              dtype_name(dtype_is_float(b->dtype) ? b->dtype : a->dtype));
}

/* A real operand among complex ones. A tensor is read as one, so that products of both are plain. */
static void become_complex(Kern *k, CheckedExpr *e, DType t)
{
    if (e->kind == CHECKED_READ) {
        e->dtype = t;
        return;
    }
    *e = *expr_cast_to(k, arena_copy(k->c->arena, e, sizeof *e), t, true);
}

/* Do all arguments have one type, that of those that have one? Those without keep waiting for the type in which the
 * statement computes. *type is it, or none when all are weak, and *weak says how. False after a report or when
 * poisoned. */
static bool unify(Kern *k, CheckedExpr *const *arg, uint32_t n, DType *type, Weak *weak)
{
    const CheckedExpr *strong = NULL;
    DType joint = DTYPE_NONE;
    *type = DTYPE_NONE;
    *weak = WEAK_NO;
    for (uint32_t a = 0; a < n; a++) {
        if (expr_is_poison(arg[a])) {
            return false;
        }
        if (arg[a]->weak != WEAK_NO) {
            *weak = arg[a]->weak > *weak ? arg[a]->weak : *weak;
        } else if (strong == NULL) {
            strong = arg[a];
            joint = strong->dtype;
        } else {
            DType both = joint_type(joint, arg[a]->dtype);
            if (both == DTYPE_NONE) {
                mismatch(k, strong, arg[a]);
                return false;
            }
            strong = both == joint ? strong : arg[a];
            joint = both;
        }
    }
    if (strong == NULL) {
        return true;
    }
    joint = *weak == WEAK_COMPLEX && dtype_is_float(joint) ? dtype_complex(joint)
                                                           : result_type(joint);
    *weak = WEAK_NO;
    *type = joint;
    for (uint32_t a = 0; a < n; a++) {
        if (!weak_suits(k, arg[a], joint, strong->span)) {
            return false;
        }
        if (arg[a]->weak == WEAK_NO && dtype_is_complex(joint) && arg[a]->dtype != joint) {
            become_complex(k, arg[a], joint);
        }
    }
    return true;
}

/* As the user wrote it: a function's name or an operator. */
static const char *op_spelling(Kern *k, Op op, AstId ast)
{
    const OpInfo *info = op_info(op);
    bool call = kern_node(k, ast)->kind == AST_CALL;
    return call || info->symbol[0] == '\0' ? info->name : info->symbol;
}

static CheckedExpr *bad_type(Kern *k, Op op, AstId ast, Span span, Span at,
                             const CheckedExpr *arg)
{
    DType t = expr_type(arg);
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, at, "'%s' is not defined for %s",
                               op_spelling(k, op, ast), dtype_name(t));
    if (arg->span.lo != at.lo) {
        mark_other(k->c, d, arg->span, dtype_name(t));
    }
    if (dtype_is_int(t) && op_info(op)->rule != RULE_LOGIC) {
        diag_help(d, "cast it: f64(...)");
    }
    return expr_poison(k, ast, span);
}

/* All arguments are weak and not constant: a weak result, or bool. */
static Weak weak_result(Kern *k, Op op, CheckedExpr *const *arg, uint32_t n, Weak weak)
{
    OpRule rule = op_info(op)->rule;
    if (rule == RULE_ORDER || rule == RULE_EQUAL) {
        for (uint32_t a = 0; a < n; a++) {
            (void)weak_settle(k, arg[a], weak_default(weak), (Span){0});
        }
        return WEAK_NO;
    }
    if (weak == WEAK_COMPLEX) {
        return rule == RULE_PART ? WEAK_FLOAT : weak;
    }
    return rule == RULE_FLOAT || rule == RULE_RFLOAT || op_info(op)->literal == LITERAL_FLOAT
               ? WEAK_FLOAT
               : weak;
}

CheckedExpr *expr_map(Kern *k, Op op, AstId ast, Span span, Span at, CheckedExpr *const *arg,
                      uint32_t n)
{
    uint32_t first = op == OP_SELECT ? 1 : 0; /* the condition has a type of its own */
    Weak weak = WEAK_NO;
    DType type = DTYPE_NONE;
    if (expr_is_poison(arg[0]) || !unify(k, arg + first, n - first, &type, &weak)) {
        return expr_poison(k, ast, span);
    }
    CheckedExpr *folded = weak_fold(k, op, ast, span, arg, n);
    if (folded != NULL) {
        return folded;
    }
    if (weak != WEAK_NO && op_info(op)->rule == RULE_LOGIC) {
        return bad_type(k, op, ast, span, at, arg[0]);
    }
    if (op == OP_SELECT && (arg[0]->weak != WEAK_NO || arg[0]->dtype != DTYPE_BOOL)) {
        diag_error(&k->c->ctx->diags, E_BAD_TYPE, arg[0]->span,
                   "the condition of 'select' is bool, and this is %s",
                   dtype_name(expr_type(arg[0])));
        return expr_poison(k, ast, span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_MAP, ast, span);
    e->op = op;
    e->n = n;
    e->arg = arena_copy(k->c->arena, arg, n * sizeof *arg);
    if (weak != WEAK_NO) {
        e->weak = weak_result(k, op, arg, n, weak);
        if (e->weak != WEAK_NO) {
            return e;
        }
    }
    DType in[3] = {DTYPE_NONE};
    for (uint32_t a = 0; a < n; a++) {
        in[a] = a < first ? DTYPE_BOOL : type == DTYPE_NONE ? arg[a]->dtype : type;
    }
    if (!op_result_type(op, in, n, &e->dtype)) {
        return bad_type(k, op, ast, span, at, arg[first]);
    }
    return e;
}

/* ---- chains ---- */

void chain_add(Kern *k, CheckedExpr *chain, Op link, CheckedExpr *arg)
{
    uint32_t cap = chain->cap;
    chain->arg =
        vec_grow(k->c->arena, chain->arg, chain->n, &chain->cap, sizeof(CheckedExpr *));
    if (chain->cap != cap) {
        uint8_t *links = ARENA_ARRAY(k->c->arena, chain->cap, uint8_t);
        if (chain->n > 0) {
            memcpy(links, chain->link, chain->n);
        }
        chain->link = links;
    }
    chain->link[chain->n] = (uint8_t)link;
    chain->arg[chain->n++] = arg;
}

CheckedExpr *chain_type(Kern *k, CheckedExpr *e)
{
    Weak weak = WEAK_NO;
    DType t = DTYPE_NONE;
    if (!unify(k, e->arg, e->n, &t, &weak)) {
        return expr_poison(k, e->ast, e->span);
    }
    bool divides = false;
    for (uint32_t a = 1; a < e->n; a++) {
        divides = divides || e->link[a] == OP_DIV;
    }
    if (weak != WEAK_NO) {
        if (op_info(e->op)->rule == RULE_LOGIC) {
            return bad_type(k, e->op, e->ast, e->span, e->arg[0]->span, e->arg[0]);
        }
        e->weak = divides && weak == WEAK_INT ? WEAK_FLOAT : weak;
        return e;
    }
    DType in[2] = {t, t};
    bool truths =
        t == DTYPE_BOOL && e->op == OP_MUL && !divides; /* a product of bool is "and" */
    if (!truths && !op_result_type(e->op, in, 2, &e->dtype)) {
        return bad_type(k, divides && t == DTYPE_BOOL ? OP_DIV : e->op, e->ast, e->span,
                        e->arg[0]->span, e->arg[0]);
    }
    e->dtype = t;
    return e;
}

CheckedExpr *chain_of_two(Kern *k, Op link, AstId ast, Span span, CheckedExpr *x,
                          CheckedExpr *y)
{
    CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, span);
    chain->op = link == OP_SUB ? OP_ADD : link == OP_DIV ? OP_MUL : link;
    chain_add(k, chain, chain->op, x);
    chain_add(k, chain, link, y);
    return chain_type(k, chain);
}
