/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: what each names, which type it has, and which indices it reads. Poison goes in silence: whatever
 * touches it becomes poison, and nothing is reported twice. */
#include <math.h>
#include <string.h>

#include "front/check_expr.h"

/* ---- types of operations ---- */

/* ---- chains ---- */

static CheckedExpr *check_chain(Kern *k, AstId ast, uint32_t from, uint32_t to)
{
    const AstNode *n = kern_node(k, ast);
    CheckedExpr *first = expr_check(k, n->child[from]);
    uint32_t c = from + 1;
    for (; c < to; c++) { /* constants at the beginning */
        if (first->kind != CHECKED_CONST || first->weak == WEAK_NO) {
            break;
        }
        CheckedExpr *next = expr_check(k, n->child[c]);
        CheckedExpr *two[2] = {first, next};
        CheckedExpr *folded = weak_fold(k, (Op)n->link[c], ast, n->span, two, 2);
        if (folded == NULL) {
            CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, n->span);
            chain->op = n->op;
            chain_add(k, chain, n->op, first);
            chain_add(k, chain, (Op)n->link[c], next);
            first = chain;
            c++;
            break;
        }
        first = folded;
    }
    if (c == to && first->kind != CHECKED_CHAIN) {
        return first;
    }
    CheckedExpr *chain = first;
    if (first->kind != CHECKED_CHAIN || first->ast != ast) {
        chain = expr_new(k, CHECKED_CHAIN, ast, n->span);
        chain->op = n->op;
        chain_add(k, chain, n->op, first);
    }
    for (; c < to; c++) {
        chain_add(k, chain, (Op)n->link[c], expr_check(k, n->child[c]));
    }
    return chain_type(k, chain);
}

/* ---- names and tensors ---- */

static CheckedExpr *const_read(Kern *k, uint32_t global, AstId ast, Span at)
{
    Global *g = &k->c->globals.at[global];
    g->uses++;
    if (g->poison || g->value == NULL) {
        return expr_poison(k, ast, at);
    }
    CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, at);
    *e = *g->value;
    e->typed = e->weak == WEAK_NO;
    e->ast = ast;
    e->span = at;
    return e;
}

/* The value of a dim where everything must be known: in constants and in arithmetic of extents. */
static CheckedExpr *const_dim(Kern *k, AstId ast, const AstNode *n)
{
    int64_t bound = 0;
    bool ok = true;
    if (dim_known(k, n->name) || (!k->library && define_find(k->c, n->name, &bound))) {
        Dim d = dim_named(k, n->name, n->span, &ok);
        if (ok && d.sym < 0) {
            return weak_const(k, ast, n->span, WEAK_INT, d.n, 0);
        }
    } else if (!k->in_extent) {
        return unknown_value(k, n->name, n->span);
    }
    if (ok) {
        Diagnostic *e =
            k->in_extent
                ? diag_unsupported(
                      &k->c->ctx->diags, E_NOT_YET, n->span,
                      "arithmetic with the open dim '%s' is not compiled by this version",
                      n->name->text)
                : diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span,
                             "dim '%s' is open, so this is not known here", n->name->text);
        diag_help(e, "bind it: -D %s=...", n->name->text);
    }
    return expr_poison(k, ast, n->span);
}

/* Numbers that have a name where nothing else has it. */
static bool number_named(const char *name, double *out)
{
    *out = strcmp(name, "inf") == 0   ? (double)INFINITY
           : strcmp(name, "nan") == 0 ? (double)NAN
                                      : 3.14159265358979323846;
    return strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0 || strcmp(name, "pi") == 0;
}

static CheckedExpr *check_name(Kern *k, AstId ast, const AstNode *n)
{
    uint32_t found = 0;
    if (k->k != NULL && map_get(&k->value_by_name, n->name->id, &found)) {
        const Value *v = &k->k->values.at[found];
        if (v->kind == VALUE_RESULT && !v->updated) {
            return unknown_value(k, n->name, n->span);
        }
        return expr_whole(k, found, ast, n->span);
    }
    if (global_named(k, n->name, &found)) {
        if (k->c->globals.at[found].is_const) {
            return const_read(k, found, ast, n->span);
        }
    }
    double number = 0;
    if (number_named(n->name->text, &number) && (k->k != NULL || !dim_known(k, n->name))) {
        return weak_const(k, ast, n->span, WEAK_FLOAT, 0, number);
    }
    if (k->k == NULL) {
        return const_dim(k, ast, n);
    }
    CheckedExpr *e = unknown_value(k, n->name, n->span);
    e->ast = ast;
    return e;
}

/* ---- indices ---- */

/* Indices of a tensor that is poison: they count as used. */
static void poison_labels(Kern *k, const AstNode *n)
{
    for (uint32_t a = 1; a < n->n; a++) {
        Affine x;
        if (kern_node(k, n->child[a])->kind != AST_NAME) {
            (void)position_affine(k, n->child[a], &x);
        }
    }
}

static CheckedExpr *check_indexed(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    const AstNode base = *kern_node(k, n.child[0]);
    uint32_t found = UINT32_MAX;
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n.span,
                   "this is not known at compile time");
        return expr_poison(k, ast, n.span);
    }
    if (base.kind == AST_CALL && !call_is_done(k, n.child[0])) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                   "'%s' gives a number, which has no indices", base.name->text);
        return expr_poison(k, ast, n.span);
    } else if (base.kind == AST_CALL) {
        found = call_value(k, n.child[0]);
    } else if (!map_get(&k->value_by_name, base.name->id, &found) &&
               global_named(k, base.name, &found) && k->c->globals.at[found].is_const) {
        k->c->globals.at[found].uses++;
        diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, n.span,
                   "'%s' is a constant and has no indices", base.name->text);
        found = UINT32_MAX;
    } else if (!value_named(k, &base, &found)) {
        found = UINT32_MAX;
    }
    if (found == UINT32_MAX) {
        poison_labels(k, &n);
        return expr_poison(k, ast, n.span);
    }
    if (k->k->values.at[found].type.dtype == DTYPE_NONE) {
        poison_labels(k, &n);
        return expr_read(k, found, ast, n.span, NULL, 0);
    }
    return gather_is(k, &n) ? gather_check(k, ast, found) : expr_indexed(k, ast, found, ast);
}

/* ---- calls ---- */

bool arguments_fit(Kern *k, const AstNode *n, uint32_t wanted)
{
    if (n->n == wanted) {
        return true;
    }
    return diag_refuse(&k->c->ctx->diags, E_ARGUMENTS, n->span,
                       "'%s' takes %u argument%s, not %u", n->name->text, wanted,
                       wanted == 1 ? "" : "s", n->n);
}

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

/* An einsum in a kernel has a statement before this one. */
CheckedExpr *call_einsum(Kern *k, AstId ast, const AstNode *n)
{
    diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span, "this is not known at compile time");
    return expr_poison(k, ast, n->span);
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
            k->s.labels.at[v].valued = true;
        }
    }
    return position_number(k, ast, n->span, x);
}

static CheckedExpr *call_check(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    NameKind kind = name_kind(n.name);
    if (call_is_done(k, ast)) {
        return call_read(k, ast);
    }
    if (n.kind == AST_REDUCE) {
        return reduction_check(k, ast, &n);
    }
    DType to = DTYPE_NONE;
    Op op;
    if (kind != NAME_FORM && dtype_named(k, n.name, &to)) {
        return check_cast(k, ast, &n, to);
    }
    if (kind == NAME_FORM || kind == NAME_FUNCTION) {
        return name_check(k, ast, &n);
    }
    if (!function_named(n.name, &op)) {
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

/* ---- all kinds ---- */

static bool is_index_name(Kern *k, const AstNode *n)
{
    uint32_t label = 0, value = 0;
    return n->kind == AST_NAME && map_get(&k->s.label_by_name, n->name->id, &label) &&
           label > 0 && !map_get(&k->value_by_name, n->name->id, &value);
}

/* `k <= q` of two indices: true after a report. */
static bool indices_compared(Kern *k, const AstNode *n)
{
    const AstNode *x = kern_node(k, n->child[0]), *y = kern_node(k, n->child[1]);
    static const char *const signs[] = {[OP_EQ] = "==", [OP_NE] = "!=", [OP_LT] = "<",
                                        [OP_LE] = "<=", [OP_GT] = ">",  [OP_GE] = ">="};
    if (!is_index_name(k, x) || !is_index_name(k, y)) {
        return false;
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, n->span,
                   "'%s' and '%s' are indices, not values", x->name->text, y->name->text);
    diag_help(d, "their positions are compared by index(%s) %s index(%s)", x->name->text,
              signs[n->op], y->name->text);
    return true;
}

CheckedExpr *expr_check(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    CheckedExpr *e = NULL;
    CheckedExpr *arg[2] = {NULL, NULL};
    switch (n.kind) {
    case AST_INT:
        return weak_const(k, ast, n.span, WEAK_INT, n.value.i, 0);
    case AST_FLOAT:
        return weak_const(k, ast, n.span, WEAK_FLOAT, 0, n.value.f);
    case AST_IMAGINARY:
        return weak_complex(k, ast, n.span, 0, n.value.f);
    case AST_BOOL:
        e = expr_new(k, CHECKED_CONST, ast, n.span);
        e->dtype = DTYPE_BOOL;
        e->value = number_int(DTYPE_BOOL, n.value.i);
        return e;
    case AST_NAME:
        return check_name(k, ast, &n);
    case AST_INDEXED:
        return check_indexed(k, ast);
    case AST_CALL:
    case AST_REDUCE:
        return call_check(k, ast);
    case AST_UNARY:
        arg[0] = expr_check(k, n.child[0]);
        return expr_map(k, n.op, ast, n.span, n.at, arg, 1);
    case AST_COMPARE:
        if (indices_compared(k, &n)) {
            return expr_poison(k, ast, n.span);
        }
        arg[0] = expr_check(k, n.child[0]);
        arg[1] = expr_check(k, n.child[1]);
        return expr_map(k, n.op, ast, n.span, n.at, arg, 2);
    case AST_CHAIN:
        return check_chain(k, ast, 0, n.n);
    case AST_STRING:
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                   "a string stands only in einsum(...)");
        return expr_poison(k, ast, n.span);
    case AST_GROUP:
        diag_error(&k->c->ctx->diags, E_SYNTAX, n.span,
                   "indices in parentheses stand only in perm[...] and antisym[...]");
        return expr_poison(k, ast, n.span);
    case AST_NONE:
    case AST_BROKEN:
    case AST_FILE:
    case AST_INCLUDE:
    case AST_DIM:
    case AST_CONST:
    case AST_KERNEL:
    case AST_GRADIENT:
    case AST_LIST:
    case AST_PARAM:
    case AST_TYPE:
    case AST_ATTRIBUTE:
    case AST_ASSIGN:
    case AST_SPILL:
    case AST_KIND_COUNT:
        break;
    }
    return expr_poison(k, ast, n.span);
}

CheckedExpr *expr_constant(Check *c, AstId ast, bool in_extent, bool library)
{
    Kern k = {.c = c, .in_extent = in_extent, .library = library};
    (void)statement_open(&k, false);
    return expr_check(&k, ast);
}
