/* SPDX-License-Identifier: Apache-2.0 */
/* Dims and constants of a program: each may name others, in any order, which are evaluated before it. */
#include "front/check_kernel.h"

static void evaluate_const(Check *c, uint32_t global)
{
    const AstNode n = *ast_node(&c->program->ast, c->globals.at[global].ast);
    CheckedExpr *e = expr_constant(c, n.child[1], false, false);
    const AstNode type = *ast_node(&c->program->ast, n.child[0]);
    bool poison = e->weak == WEAK_NO && e->dtype == DTYPE_NONE;
    if (!poison && e->kind != CHECKED_CONST) {
        diag_error(&c->ctx->diags, E_NOT_CONSTANT, e->span,
                   "this is not known at compile time");
        poison = true;
    }
    DType t = DTYPE_NONE;
    if (type.kind == AST_TYPE) {
        if (!dtype_from_name((Str){type.name->text, type.name->n}, &t) || type.n > 0) {
            diag_error(&c->ctx->diags, E_UNKNOWN_NAME, type.span,
                       "a constant has an element type and no extents");
            poison = true;
        } else if (!poison) {
            Kern k = {.c = c};
            if (e->weak == WEAK_NO && e->dtype != t) {
                diag_error(&c->ctx->diags, E_DTYPE_MISMATCH, e->span, "this is %s, not %s",
                           dtype_name(e->dtype), dtype_name(t));
                poison = true;
            }
            poison = poison || !weak_settle(&k, e, t, type.span);
        }
    }
    c->globals.at[global].value = e;
    c->globals.at[global].poison = poison;
}

/* The integer of `dim o = ...`, `dim o ~ ...`. */
static bool dim_number(Check *c, AstId ast, int64_t *out)
{
    CheckedExpr *e = expr_constant(c, ast, false, false);
    if (e->weak == WEAK_NO && e->dtype == DTYPE_NONE) {
        return false;
    }
    if (e->kind != CHECKED_CONST || !dtype_is_int(e->value.dtype)) {
        return diag_refuse(&c->ctx->diags, E_EXTENT_RANGE, e->span, "an extent is an integer");
    }
    *out = e->value.i;
    return extent_check(c, e->value.i, e->span);
}

static void evaluate_dim(Check *c, uint32_t global)
{
    const AstNode n = *ast_node(&c->program->ast, c->globals.at[global].ast);
    int64_t number = 0, bound = 0;
    bool ok = n.op == OP_EXTENT || dim_number(c, n.child[0], &number);
    bool is_bound = define_find(c, n.name, &bound);
    if (ok && n.op == OP_CONST && is_bound && bound != number) {
        diag_error(&c->ctx->diags, E_EXTENT_MISMATCH, n.at,
                   "dim '%s' is %lld here but -D says %lld", n.name->text, (long long)number,
                   (long long)bound);
        ok = false;
    }
    if (ok && is_bound && n.op != OP_CONST) {
        ok = extent_check(c, bound, n.at);
    }
    Global *g = &c->globals.at[global];
    g->dim = n.op == OP_CONST ? dim_fixed(number) : is_bound ? dim_fixed(bound) : dim_open(0);
    g->typical = n.op == OP_COPY && number > 0 ? number : DIM_TYPICAL_DEFAULT;
    if (g->dim.sym >= 0) {
        g->typical = define_typical(c, n.name, g->typical);
    }
    g->poison = !ok;
}

/* What the node names is evaluated. */
static void evaluate_named(Check *c, AstId id)
{
    const AstNode n = *ast_node(&c->program->ast, id);
    uint32_t global = 0;
    if (n.kind == AST_NAME && map_get(&c->global_by_name, n.name->id, &global)) {
        global_evaluate(c, global, n.span);
    }
    for (uint32_t i = 0; i < n.n; i++) {
        evaluate_named(c, n.child[i]);
    }
}

void global_evaluate(Check *c, uint32_t global, Span at)
{
    Global *g = &c->globals.at[global];
    if (g->state == GLOBAL_DONE) {
        return;
    }
    Span there = ast_node(&c->program->ast, g->ast)->at;
    if (g->state == GLOBAL_BUSY || c->depth >= NESTING_LIMIT) {
        if (g->state == GLOBAL_BUSY && !g->poison) {
            Diagnostic *d = diag_error(&c->ctx->diags, E_CYCLE, at, "'%s' depends on itself",
                                       g->name->text);
            diag_note(d, there, "it is defined here");
        } else if (!g->poison) {
            diag_limit(&c->ctx->diags, E_LIMIT_NESTING, at,
                       "constants that need each other more than %d deep", NESTING_LIMIT);
        }
        g->poison = true;
        return;
    }
    g->state = GLOBAL_BUSY;
    c->depth++;
    evaluate_named(c, g->ast);
    if (g->is_const) {
        evaluate_const(c, global);
    } else {
        evaluate_dim(c, global);
    }
    c->depth--;
    g = &c->globals.at[global];
    g->state = GLOBAL_DONE;
}
