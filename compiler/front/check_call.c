/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: elementwise functions by the op table, casts, extent(d), index(i). Functions are looked up here only; their names are no keywords. */
#include "front/check_parts.h"

bool function_named(Sym name, Op *op)
{
    return op_from_name((Str){name->text, name->n}, op) && op_is_function(*op);
}

/* `A(i,j)` as it should be. */
static const char *as_indexed(Kern *k, const AstNode *n)
{
    Text text = text_new(k->c->arena);
    text_printf(&text, "%s[", n->name->text);
    for (uint32_t a = 0; a < n->n && a < 8; a++) {
        const AstNode *i = kern_node(k, n->child[a]);
        text_printf(&text, "%s%s", a == 0 ? "" : ",",
                    i->kind == AST_NAME ? i->name->text : "...");
    }
    text_char(&text, ']');
    return text.at;
}

CheckedExpr *unknown_function(Kern *k, AstId ast, const AstNode *n)
{
    Diags *diags = &k->c->ctx->diags;
    uint32_t value = 0;
    if (map_get(&k->value_by_name, n->name->id, &value) && n->kind == AST_CALL) {
        Diagnostic *d = diag_error(diags, E_UNKNOWN_NAME, n->at,
                                   "'%s' is a value, not a function", n->name->text);
        diag_help(d, "its indices stand in '[' and ']': %s", as_indexed(k, n));
    } else if (n->kind == AST_CALL && is_reduction(n->name)) {
        Diagnostic *d = diag_error(diags, E_ARGUMENTS, n->at,
                                   "'%s' without the indices to reduce over", n->name->text);
        diag_help(d, "write %s[i](...)", n->name->text);
    } else {
        Diagnostic *d =
            diag_error(diags, E_UNKNOWN_NAME, n->at, "there is no %s '%s'",
                       n->kind == AST_REDUCE ? "reduction" : "function", n->name->text);
        const char *near = suggest_function(k, n->name), *cure = name_cure(n->name);
        const char *type = dtype_meant((Str){n->name->text, n->name->n});
        if (cure != NULL) {
            diag_help(d, "%s", cure);
        } else if (type != NULL) {
            diag_help(d, "a cast is written %s(x)", type);
            diag_fix(d, n->at, "%s", type);
        } else if (near != NULL) {
            diag_meant(d, n->at, near);
        }
    }
    return expr_poison(k, ast, n->span);
}

bool arguments_fit(Kern *k, const AstNode *n, uint32_t wanted)
{
    if (n->n == wanted) {
        return true;
    }
    return diag_refuse(&k->c->ctx->diags, E_ARGUMENTS, n->span,
                       "'%s' takes %u argument%s, not %u", n->name->text, wanted,
                       wanted == 1 ? "" : "s", n->n);
}

/* ---- casts and extents ---- */

static CheckedExpr *check_cast(Kern *k, AstId ast, const AstNode *n, DType to)
{
    if (!arguments_fit(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *arg = expr_check(k, n->child[0]);
    if (arg->kind == CHECKED_CONST && arg->weak != WEAK_NO) {
        CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, n->span);
        e->dtype = to;
        e->typed = true;
        e->value = number_cast(arg->value, to);
        return e;
    }
    if (arg->weak != WEAK_NO) {
        bool direct = dtype_is_float(to) || dtype_is_complex(to) ||
                      (arg->weak == WEAK_INT && dtype_is_int(to));
        (void)weak_settle(k, arg, direct ? to : weak_default(arg->weak), (Span){0});
    }
    if (arg->dtype == DTYPE_NONE) {
        return expr_poison(k, ast, n->span);
    }
    if (dtype_is_complex(arg->dtype) && !dtype_is_complex(to)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, n->span,
                                   "a cast from %s to %s would drop the imaginary part",
                                   dtype_name(arg->dtype), dtype_name(to));
        diag_help(d, "take re(...), im(...) or abs(...)");
        return expr_poison(k, ast, n->span);
    }
    if (arg->dtype == to && !dtype_is_half(to)) {
        return arg;
    }
    CheckedExpr *e = expr_cast_to(k, arg, to, false);
    e->ast = ast;
    e->span = n->span;
    return e;
}

CheckedExpr *call_extent(Kern *k, AstId ast, const AstNode *n)
{
    if (!arguments_fit(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    const AstNode *d = kern_node(k, n->child[0]);
    if (d->kind != AST_NAME) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, d->span,
                   "extent(...) takes the name of a dim");
        return expr_poison(k, ast, n->span);
    }
    if (!dim_known(k, d->name)) {
        Diagnostic *e = diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, d->span, "'%s' is no dim",
                                   d->name->text);
        const char *near = suggest_dim(k, d->name);
        if (near != NULL) {
            diag_meant(e, d->span, near);
        }
        return expr_poison(k, ast, n->span);
    }
    bool ok = true;
    Dim dim = dim_named(k, d->name, d->span, &ok);
    if (!ok) {
        return expr_poison(k, ast, n->span);
    }
    if (dim.sym < 0) {
        return weak_const(k, ast, n->span, WEAK_INT, dim.n, 0);
    }
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span, "dim '%s' is open",
                   d->name->text);
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_EXTENT, ast, n->span);
    e->dim = dim.sym;
    e->weak = WEAK_INT;
    return e;
}

/* index(i): the position of an index as a number. */
CheckedExpr *call_index(Kern *k, AstId ast, const AstNode *n)
{
    Affine x;
    if (!arguments_fit(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span,
                   "this is not known at compile time");
        return expr_poison(k, ast, n->span);
    }
    if (!position_affine(k, n->child[0], &x)) {
        return expr_poison(k, ast, n->span);
    }
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        if (!affine_is_dim(v)) {
            v = is_product_var(v) ? k->products.at[v - PRODUCT_VAR].label : v;
            k->labels.at[v].valued = true;
        }
    }
    return position_number(k, ast, n->span, x);
}

/* ---- all calls ---- */

CheckedExpr *call_check(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    NameKind kind = name_kind(n.name);
    if (n.kind == AST_REDUCE) {
        return reduction_check(k, ast, &n);
    }
    DType to = DTYPE_NONE;
    uint32_t head = 0;
    Op op;
    if (kind != NAME_FORM && dtype_named(k, n.name, &to)) {
        return check_cast(k, ast, &n, to);
    }
    if (kind == NAME_FORM || kind == NAME_FUNCTION) {
        return name_check(k, ast, &n);
    }
    bool function = function_named(n.name, &op);
    if (function && op_info(op)->symbol[0] != '\0' && kernel_named(k, n.name, &head)) {
        return kernel_call_check(k, ast); /* `add(x, y)` is how nobody writes x + y */
    }
    if (!function && kernel_named(k, n.name, &head)) {
        return kernel_call_check(k, ast);
    }
    if (!function) {
        return unknown_function(k, ast, &n);
    }
    if (!arguments_fit(k, &n, (uint32_t)op_info(op)->arity)) {
        return expr_poison(k, ast, n.span);
    }
    CheckedExpr *arg[3] = {NULL, NULL, NULL};
    for (uint32_t a = 0; a < n.n; a++) {
        arg[a] = expr_check(k, n.child[a]);
    }
    return expr_map(k, op, ast, n.span, n.at, arg, n.n);
}
