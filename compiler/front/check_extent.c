/* SPDX-License-Identifier: Apache-2.0 */
/* Extents as they are written: a number, a dim, or arithmetic with both. What is not known at compile time is a sum of dims and of
 * products of dims, perhaps divided by a number and rounded down; it becomes a dim that is computed at each call. */
#include <string.h>

#include "front/check_expr.h"

/* Arithmetic with nothing open. */
static Dim extent_computed(Kern *k, AstId id, bool *ok)
{
    CheckedExpr *e = expr_constant(k->c, id, true, k->library);
    Span at = kern_node(k, id)->span;
    *ok = false;
    if (e->weak == WEAK_NO && e->dtype == DTYPE_NONE) {
        return dim_fixed(1);
    }
    if (e->kind == CHECKED_CONST && dtype_is_int(e->value.dtype)) {
        *ok = extent_check(k->c, e->value.i, at);
        return dim_fixed(e->value.i);
    }
    if (e->kind == CHECKED_CONST && dtype_is_float(e->value.dtype)) {
        Text t = text_new(k->c->arena);
        text_f64(&t, e->value.re);
        diag_error(&k->c->ctx->diags, E_EXTENT_RANGE, at, "the extent %s is not an integer",
                   t.at);
        return dim_fixed(1);
    }
    diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, at, "an extent is an integer");
    return dim_fixed(1);
}

/* ---- arithmetic with open dims ---- */

/* (x of open dims) / divisor */
typedef struct Extent {
    Affine x;
    int64_t divisor;
} Extent;

static bool refuse(Kern *k, Span at, const char *what)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, at, "%s", what);
    diag_help(d, "an extent is made of dims and whole numbers by +, - and *, and may be "
                 "divided by a number");
    return false;
}

static bool evaluate(Kern *k, AstId id, Extent *out);

static bool multiply(Kern *k, Span at, Extent *x, const Extent *y)
{
    Arena *a = k->c->arena;
    if (x->divisor > 1 || y->divisor > 1) {
        return refuse(k, at, "a quotient is not multiplied here");
    }
    const Extent *number = x->x.n == 0 ? x : y, *other = number == x ? y : x;
    if (number->x.n == 0) {
        Affine product = affine_const(0);
        if (!affine_try_add(a, product, number->x.base, other->x, &product)) {
            return refuse(k, at, "this extent does not fit 64 bits");
        }
        x->x = product;
        return true;
    }
    Dim factor[2] = {extent_of_sum(k, at, x->x, x->divisor),
                     extent_of_sum(k, at, y->x, y->divisor)};
    Dim product = dims_product(a, a, &k->c->ctx->syms, &k->k->dims, at, 2, factor);
    x->x = affine_extent(a, product);
    return true;
}

static bool divide(Kern *k, Span at, Extent *x, const Extent *y)
{
    if (y->x.n > 0 || y->divisor > 1 || y->x.base < 1 || x->divisor > 1) {
        return refuse(k, at, "an extent is divided by a number above 0, once");
    }
    int64_t by = y->x.base;
    bool whole = x->x.base % by == 0;
    for (uint32_t i = 0; i < x->x.n; i++) {
        whole = whole && x->x.term[i].coef % by == 0;
    }
    if (!whole) {
        x->divisor = by;
        return true;
    }
    AffineTerm *term = ARENA_ARRAY(k->c->arena, x->x.n, AffineTerm);
    for (uint32_t i = 0; i < x->x.n; i++) {
        term[i] = (AffineTerm){x->x.term[i].var, x->x.term[i].coef / by};
    }
    x->x = (Affine){x->x.base / by, x->x.n, term};
    return true;
}

static bool add(Kern *k, Span at, Extent *x, int64_t sign, const Extent *y)
{
    Arena *a = k->c->arena;
    const Extent *quotient = x->divisor > 1 ? x : y, *other = quotient == x ? y : x;
    int64_t divisor = quotient->divisor;
    if (divisor > 1 && (other->x.n > 0 || (quotient == y && sign < 0))) {
        return refuse(k, at, "nothing but a number is added to a quotient");
    }
    Affine left = affine_const(0), sum = affine_const(0);
    bool fits = affine_try_add(a, left, x->divisor > 1 ? 1 : divisor, x->x, &left) &&
                affine_try_add(a, left, y->divisor > 1 ? sign : sign * divisor, y->x, &sum);
    if (!fits) {
        return refuse(k, at, "this extent does not fit 64 bits");
    }
    *x = (Extent){sum, divisor};
    return true;
}

static bool evaluate_name(Kern *k, const AstNode *n, Extent *out)
{
    bool ok = true;
    Dim d = dim_named(k, n->name, n->span, &ok);
    *out = (Extent){affine_extent(k->c->arena, d), 1};
    return ok;
}

static bool evaluate(Kern *k, AstId id, Extent *out)
{
    const AstNode n = *kern_node(k, id);
    *out = (Extent){affine_const(0), 1};
    if (n.kind == AST_INT) {
        out->x.base = n.value.i;
        return true;
    }
    if (n.kind == AST_NAME) {
        return evaluate_name(k, &n, out);
    }
    if (n.kind == AST_UNARY && n.op == OP_NEG) {
        Extent zero = {affine_const(0), 1}, x;
        if (!evaluate(k, n.child[0], &x) || !add(k, n.span, &zero, -1, &x)) {
            return false;
        }
        *out = zero;
        return true;
    }
    if (n.kind != AST_CHAIN || n.op == OP_AND || n.op == OP_OR) {
        return n.kind == AST_BROKEN ? false : refuse(k, n.span, "this is no extent");
    }
    if (!evaluate(k, n.child[0], out)) {
        return false;
    }
    for (uint32_t c = 1; c < n.n; c++) {
        Extent y;
        Op op = (Op)n.link[c];
        if (!evaluate(k, n.child[c], &y) ||
            !(op == OP_MUL   ? multiply(k, n.span, out, &y)
              : op == OP_DIV ? divide(k, n.span, out, &y)
                             : add(k, n.span, out, op == OP_SUB ? -1 : 1, &y))) {
            return false;
        }
    }
    return true;
}

/* Does it name a dim that is open? Those that it names are known from now on. */
static bool names_open(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    if (n.kind == AST_NAME) {
        bool ok = true;
        return dim_named(k, n.name, n.span, &ok).sym >= 0 && ok;
    }
    bool open = false;
    for (uint32_t c = 0; c < n.n && n.kind != AST_CALL; c++) {
        open = names_open(k, n.child[c]) || open;
    }
    return open;
}

Dim extent_of(Kern *k, AstId id, bool *ok)
{
    const AstNode *n = kern_node(k, id);
    Span at = n->span;
    if (n->kind == AST_NAME) {
        return dim_named(k, n->name, n->span, ok);
    }
    if (!k->is_called && !names_open(k, id)) {
        return extent_computed(k, id, ok);
    }
    Extent e;
    *ok = evaluate(k, id, &e);
    Dim d = *ok ? extent_of_sum(k, at, e.x, e.divisor) : dim_fixed(1);
    if (*ok && d.sym < 0) {
        *ok = extent_check(k->c, d.n, at);
    }
    return d;
}

/* ---- which dims there are ---- */

static void scan_params(Kern *k, AstId list)
{
    const AstNode params = *kern_node(k, list);
    for (uint32_t p = 0; p < params.n; p++) {
        const AstNode param = *kern_node(k, params.child[p]);
        if (param.kind != AST_PARAM) {
            continue;
        }
        const AstNode type = *kern_node(k, param.child[0]);
        for (uint32_t d = 0; d < type.n && type.kind == AST_TYPE; d++) {
            (void)names_open(k, type.child[d]);
        }
    }
}

/* Dims of the program that positions and ranges of a statement name, and no index is called like. */
static void scan_positions(Kern *k, AstId id, bool position)
{
    const AstNode n = *kern_node(k, id);
    uint32_t index = 0;
    bool ok = true;
    if (n.kind == AST_NAME && position && dim_known(k, n.name) &&
        !map_get(&k->s.index_names, n.name->id, &index)) {
        (void)dim_named(k, n.name, n.span, &ok);
    }
    if (n.kind == AST_CALL && strcmp(n.name->text, "extent") == 0 && n.n == 1) {
        const AstNode d = *kern_node(k, n.child[0]);
        if (d.kind == AST_NAME && dim_known(k, d.name)) {
            (void)dim_named(k, d.name, d.span, &ok);
        }
        return;
    }
    for (uint32_t c = 0; c < n.n; c++) {
        bool listed = (n.kind == AST_INDEXED || n.kind == AST_REDUCE) && c > 0;
        bool sum = n.kind == AST_CHAIN || n.kind == AST_UNARY || n.kind == AST_COMPARE;
        scan_positions(k, n.child[c], listed || (position && sum));
    }
}

void dims_scan(Kern *k, const AstNode *kernel)
{
    scan_params(k, kernel->child[0]);
    scan_params(k, kernel->child[1]);
    const AstNode body = *kern_node(k, kernel->child[2]);
    for (uint32_t s = 0; s < body.n; s++) {
        if (kern_node(k, body.child[s])->kind == AST_ASSIGN) {
            positions_scan(k, body.child[s]);
            scan_positions(k, body.child[s], false);
        }
    }
}
