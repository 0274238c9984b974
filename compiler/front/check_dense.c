/* SPDX-License-Identifier: Apache-2.0 */
/* Dense steps: cholesky and solve are operations, inverse and logdet are written with them:
 *
 *     inverse[i,j](S)   solve[q](L[i,q], solve[p](L[p,q], unit[p,j]))    L[p,q] = cholesky[p,q](S[p,q])
 *     logdet[i,j](S)    2 * sum[i](log(sum[j](diagonal of L)))
 *
 * A solve needs a triangle: a parameter that is declared one, or what a cholesky has made. */
#include "front/check_expr.h"

/* Which triangle an expression is: 0 above the diagonal (below it, if `upper`) of these labels. */
typedef struct Corner {
    bool known, upper;
    int32_t row, column;
} Corner;

static bool has_label(const CheckedExpr *e, int32_t label)
{
    bool has = false;
    bool leaf = e->kind == CHECKED_READ || e->kind == CHECKED_INDEX;
    for (uint32_t a = 0; a < e->rank && leaf; a++) {
        has |= e->label[a] == label;
    }
    for (uint32_t a = 0; a < e->n && !has; a++) {
        has = has_label(e->arg[a], label);
    }
    return has;
}

/* The label that a value is read at in dimension `d`; -1: it is none alone. */
static int32_t label_at(const CheckedExpr *read, uint32_t d)
{
    return read->at == NULL ? read->label[d] : affine_index(read->at[d]);
}

static Corner corner_of(const Kern *k, const CheckedExpr *e)
{
    if (e->kind == CHECKED_MAP && (e->op == OP_CAST || e->op == OP_NEG)) {
        return corner_of(k, e->arg[0]);
    }
    if (e->kind == CHECKED_DENSE && e->op == OP_CHOLESKY) {
        return (Corner){true, false, e->label[0], e->label[1]};
    }
    Triangle t = {.known = false};
    if (e->kind == CHECKED_READ && e->split == NULL) {
        t = k->k->values.at[e->read].triangle;
    }
    int32_t row = t.known ? label_at(e, t.row) : -1,
            column = t.known ? label_at(e, t.column) : -1;
    return row < 0 || column < 0 ? (Corner){0} : (Corner){true, t.upper, row, column};
}

Triangle dense_triangle(const Kern *k, const CheckedExpr *e, const int32_t *left, uint32_t rank)
{
    Corner s = corner_of(k, e);
    Triangle t = {.known = false};
    uint32_t found = 0;
    for (uint32_t d = 0; d < rank && s.known; d++) {
        t.row = left[d] == s.row ? d : t.row;
        t.column = left[d] == s.column ? d : t.column;
        found += left[d] == s.row || left[d] == s.column ? 1 : 0;
    }
    t.known = found == 2 && s.row != s.column;
    t.upper = s.upper;
    return t;
}

void triangle_check(Kern *k, const AstNode *attr, Value *v, bool is_param, uint32_t row,
                    uint32_t column)
{
    Diags *diags = &k->c->ctx->diags;
    if (!is_param) {
        diag_error(diags, E_ARGUMENTS, attr->span,
                   "'%s' is promised of a parameter; what a kernel computes is looked at",
                   attr->name->text);
    } else if (v->triangle.known) {
        diag_error(diags, E_ARGUMENTS, attr->span, "'%s' is declared a triangle twice",
                   v->name->text);
    } else {
        v->triangle = (Triangle){true, attr->name->text[0] == 'u', row, column};
    }
}

/* ---- steps ---- */

/* Of real floats, and with its indices; poison after a report. */
static CheckedExpr *operand(Kern *k, AstId ast, const AstNode *n, AstId id)
{
    CheckedExpr *e = expr_check(k, id);
    if (expr_is_poison(e)) {
        return e;
    }
    weak_decide(k, e);
    if (dtype_is_float(e->dtype)) {
        return e;
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_BAD_TYPE, n->at, "'%s' is not defined for %s",
                   n->name->text, dtype_name(e->dtype));
    if (dtype_is_complex(e->dtype)) {
        diag_help(d, "of complex numbers this version computes no dense steps");
    } else {
        diag_help(d, "a cast makes it one of floats: f64(...)");
    }
    return expr_poison(k, ast, n->span);
}

static bool refuse(Kern *k, const AstNode *n, const char *what)
{
    if (!k->s.poisoned) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "%s", what);
    }
    return false;
}

/* The labels that the names in brackets stand for, of the value of `e`: the two dimensions of a matrix. */
static bool matrix_labels(Kern *k, const AstNode *n, const CheckedExpr *e, int32_t *label)
{
    for (uint32_t a = 0; a < 2; a++) {
        const AstNode *name = kern_node(k, n->child[a + 1]);
        uint32_t at = 0;
        bool is = name->kind == AST_NAME && map_get(&k->s.label_by_name, name->name->id, &at) &&
                  at > 0 && has_label(e, (int32_t)at - 1);
        if (!is) {
            if (!k->s.poisoned) {
                diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, name->span,
                           "'%s' names two indices of its matrix", n->name->text);
            }
            return false;
        }
        label[a] = (int32_t)at - 1;
    }
    return label[0] != label[1] || refuse(k, n, "a matrix has two indices");
}

/* A matrix has as many rows as columns; what is not known now is looked at when the graph is built. */
static bool is_square(Kern *k, const AstNode *n, int32_t row, int32_t column)
{
    const Label *i = &k->s.labels.at[row], *j = &k->s.labels.at[column];
    if (dim_eq(i->extent, j->extent) || !extent_is_known(k, (uint32_t)row) ||
        !extent_is_known(k, (uint32_t)column)) {
        return true;
    }
    if (!k->s.poisoned) {
        diag_error(&k->c->ctx->diags, E_EXTENT_MISMATCH, n->span,
                   "'%s' is of square matrices: index '%s' is %s but index '%s' is %s",
                   n->name->text, i->name->text, dim_text(k->c->arena, &k->k->dims, i->extent),
                   j->name->text, dim_text(k->c->arena, &k->k->dims, j->extent));
    }
    return false;
}

/* The operand with the labels of rows and columns, which are square; poison after a report. */
static CheckedExpr *matrix(Kern *k, AstId ast, const AstNode *n, int32_t *label)
{
    CheckedExpr *x = operand(k, ast, n, n->child[0]);
    bool fits = !expr_is_poison(x) && matrix_labels(k, n, x, label) &&
                is_square(k, n, label[0], label[1]);
    return fits ? x : expr_poison(k, ast, n->span);
}

/* Is it 0 on one side of the diagonal of these labels? */
static bool is_triangle(const Kern *k, const CheckedExpr *x, const int32_t *label)
{
    Corner s = corner_of(k, x);
    return s.known && ((s.row == label[0] && s.column == label[1]) ||
                       (s.row == label[1] && s.column == label[0]));
}

static CheckedExpr *step_new(Kern *k, Op op, AstId ast, const AstNode *n, DType t, int32_t x,
                             int32_t y)
{
    CheckedExpr *e = expr_new(k, CHECKED_DENSE, ast, n->span);
    int32_t label[2] = {x, y};
    e->op = op;
    e->dtype = t;
    e->rank = 2;
    e->label = arena_copy(k->c->arena, label, sizeof label);
    return e;
}

static CheckedExpr *factor(Kern *k, AstId ast, const AstNode *n, CheckedExpr *x, int32_t row,
                           int32_t column)
{
    CheckedExpr *e = step_new(k, OP_CHOLESKY, ast, n, x->dtype, row, column);
    e->n = 1;
    e->arg = arena_copy(k->c->arena, &x, sizeof x);
    return e;
}

/* `count` names in brackets, and nothing else. */
static bool brackets_fit(Kern *k, const AstNode *n, uint32_t count, const char *form)
{
    bool fit = n->n == count + 1;
    for (uint32_t a = 1; a < n->n && fit; a++) {
        fit = kern_node(k, n->child[a])->kind == AST_NAME;
    }
    const AstNode *body = kern_node(k, n->child[0]);
    uint32_t operands = body->kind == AST_LIST ? body->n : 1;
    fit = fit && operands == (count == 1 ? 2 : 1);
    return fit || refuse(k, n, str_format(k->c->arena, "it is written %s", form));
}

CheckedExpr *dense_cholesky(Kern *k, AstId ast, const AstNode *n)
{
    int32_t label[2];
    if (!brackets_fit(k, n, 2, "cholesky[i,j](S[i,j])")) {
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *x = matrix(k, ast, n, label);
    return expr_is_poison(x) ? x : factor(k, ast, n, x, label[0], label[1]);
}

/* X of sum[q](T[p,q] * X[q]) = B[p], T a triangle. */
static CheckedExpr *solution(Kern *k, AstId ast, const AstNode *n, int32_t p, CheckedExpr *T,
                             CheckedExpr *B)
{
    Corner s = corner_of(k, T);
    if (!s.known || (s.row != p && s.column != p)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, T->span,
                                   "'solve' takes a triangle with the index in brackets");
        diag_help(d, "declare the parameter lower(0, 1) or upper(0, 1), or solve with its "
                     "cholesky twice");
        return expr_poison(k, ast, n->span);
    }
    int32_t q = s.row == p ? s.column : s.row;
    bool upper = s.row == p ? s.upper : !s.upper;
    if (!has_label(B, p) || has_label(B, q)) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, B->span,
                   has_label(B, q) ? "index '%s' is that of what is solved for: the right side "
                                     "lacks it"
                                   : "the right side of 'solve' has its index '%s'",
                   k->s.labels.at[has_label(B, q) ? q : p].name->text);
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *both = chain_of_two(k, OP_MUL, ast, n->span, T, B); /* for its type */
    if (expr_is_poison(both) || !is_square(k, n, p, q)) {
        return expr_poison(k, ast, n->span);
    }
    for (uint32_t a = 0; a < 2; a++) {
        (void)weak_settle(k, both->arg[a], both->dtype, (Span){0});
    }
    CheckedExpr *e =
        step_new(k, upper ? OP_SOLVE_UPPER : OP_SOLVE_LOWER, ast, n, both->dtype, p, q);
    e->n = 2;
    e->arg = both->arg;
    return e;
}

CheckedExpr *dense_solve(Kern *k, AstId ast, const AstNode *n)
{
    if (!brackets_fit(k, n, 1, "solve[i](L[i,j], B[i])")) {
        return expr_poison(k, ast, n->span);
    }
    const AstNode body = *kern_node(k, n->child[0]);
    CheckedExpr bound = {.label = ARENA_ARRAY(k->c->arena, 1, int32_t)};
    uint32_t before[1];
    if (!fold_open(k, n, &bound, NULL, before)) {
        k->s.poisoned = true;
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *T = operand(k, ast, n, body.child[0]);
    CheckedExpr *B = operand(k, ast, n, body.child[1]);
    bool bad = expr_is_poison(T) || expr_is_poison(B);
    CheckedExpr *e =
        bad ? expr_poison(k, ast, n->span) : solution(k, ast, n, bound.label[0], T, B);
    fold_close(k, &bound, before);
    return e;
}

/* ---- expansions ---- */

/* The k-th name in brackets with another label: one of its own, that is folded. */
static int32_t rename(Kern *k, const AstNode *n, uint32_t at, uint32_t *before)
{
    const AstNode name = *kern_node(k, n->child[at]);
    *before = 0;
    (void)map_get(&k->s.label_by_name, name.name->id, before);
    int32_t label = label_new(k, name.name, name.span, false);
    k->s.labels.at[label].bound = true;
    return label;
}

static void rename_back(Kern *k, const AstNode *n, uint32_t at, int32_t label, uint32_t before)
{
    const Sym name = kern_node(k, n->child[at])->name;
    Label *l = &k->s.labels.at[label];
    l->name = fold_unused_name(k, name);
    map_put(&k->s.label_by_name, l->name->id, 0);
    map_put(&k->s.label_by_name, name->id, before);
}

/* The triangle itself, or the cholesky of what is none; poison after a report. */
static CheckedExpr *triangle(Kern *k, AstId ast, const AstNode *n)
{
    int32_t label[2];
    CheckedExpr *x = matrix(k, ast, n, label);
    return expr_is_poison(x) || is_triangle(k, x, label)
               ? x
               : factor(k, ast, n, x, label[0], label[1]);
}

/* 1 where the two indices are equal, else `other`. */
static CheckedExpr *where_equal(Kern *k, AstId ast, const AstNode *n, int32_t x, int32_t y,
                                CheckedExpr *equal)
{
    int32_t label[2] = {x, y};
    CheckedExpr *at[2];
    for (uint32_t a = 0; a < 2; a++) {
        const AffineTerm here = {(VarRef)label[a], 1};
        k->s.labels.at[label[a]].valued = true;
        at[a] = position_number(k, ast, n->span, (Affine){0, 1, &here});
    }
    CheckedExpr *three[3] = {expr_map(k, OP_EQ, ast, n->span, n->at, at, 2), equal,
                             weak_const(k, ast, n->span, WEAK_FLOAT, 0, 0.0)};
    return expr_map(k, OP_SELECT, ast, n->span, n->at, three, 3);
}

CheckedExpr *dense_inverse(Kern *k, AstId ast, const AstNode *n)
{
    uint32_t outer[2] = {0}, before[2] = {0};
    if (!brackets_fit(k, n, 2, "inverse[i,j](S[i,j])")) {
        return expr_poison(k, ast, n->span);
    }
    int32_t own[2];
    CheckedExpr *x = matrix(k, ast, n, own); /* for its labels */
    if (expr_is_poison(x)) {
        return x;
    }
    bool given = is_triangle(k, x, own);
    int32_t q = given ? own[0] : rename(k, n, 2, &outer[1]);
    CheckedExpr *second = given ? NULL : triangle(k, ast, n);
    int32_t p = rename(k, n, given ? 2 : 1, &before[0]);
    if (given) { /* sum[p](T[i,p] * X[p,j]) = unit[i,j]; the names of T are those of X exchanged */
        map_put(&k->s.label_by_name, kern_node(k, n->child[2])->name->id, (uint32_t)own[0] + 1);
        map_put(&k->s.label_by_name, kern_node(k, n->child[1])->name->id, (uint32_t)p + 1);
    }
    CheckedExpr *first = triangle(k, ast, n);
    if (given) {
        map_put(&k->s.label_by_name, kern_node(k, n->child[1])->name->id, (uint32_t)own[0] + 1);
    }
    CheckedExpr *unit =
        where_equal(k, ast, n, p, own[1], weak_const(k, ast, n->span, WEAK_FLOAT, 0, 1.0));
    if (extent_is_known(k, (uint32_t)own[1])) { /* nothing else may have it */
        k->s.labels.at[own[1]].given = true;
    }
    bool wrong = expr_is_poison(first) || expr_is_poison(unit);
    CheckedExpr *e = wrong ? expr_poison(k, ast, n->span) : solution(k, ast, n, p, first, unit);
    rename_back(k, n, given ? 2 : 1, p, before[0]);
    if (!given) {
        bool bad = expr_is_poison(e) || expr_is_poison(second);
        e = bad ? expr_poison(k, ast, n->span) : solution(k, ast, n, q, second, e);
        rename_back(k, n, 2, q, outer[1]);
    }
    return e;
}

static CheckedExpr *diagonal_element(Kern *k, AstId ast, const AstNode *n,
                                     const CheckedExpr *fold)
{
    (void)fold;
    int32_t label[2];
    const AstNode all = *kern_node(k, ast);
    CheckedExpr *x = triangle(k, ast, &all);
    return expr_is_poison(x) || !matrix_labels(k, &all, x, label)
               ? x
               : where_equal(k, ast, n, label[0], label[1], x);
}

/* A fold over one of the two names, of which the other is an index already. */
static AstNode over_one(Kern *k, const AstNode *n, uint32_t at)
{
    AstNode one = *n;
    AstId child[2] = {n->child[0], n->child[at]};
    one.child = arena_copy(k->c->arena, child, sizeof child);
    one.n = 2;
    return one;
}

/* The logarithm of an element of the diagonal, which is a sum over the other index. */
static CheckedExpr *diagonal_log(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    (void)fold;
    const AstNode all = *kern_node(k, ast);
    const AstNode inner = over_one(k, &all, 2);
    CheckedExpr *x = fold_check(k, ast, &inner, OP_SUM, diagonal_element, NULL);
    return expr_is_poison(x) ? x : expr_map(k, OP_LOG, ast, n->span, n->at, &x, 1);
}

/* Has the call made a cholesky of its own? */
static bool has_factor(const CheckedExpr *e, AstId ast)
{
    bool has = e->kind == CHECKED_DENSE && e->ast == ast;
    for (uint32_t a = 0; a < e->n && !has; a++) {
        has = has_factor(e->arg[a], ast);
    }
    return has;
}

CheckedExpr *dense_logdet(Kern *k, AstId ast, const AstNode *n)
{
    if (!brackets_fit(k, n, 2, "logdet[i,j](S[i,j])")) {
        return expr_poison(k, ast, n->span);
    }
    const AstNode outer = over_one(k, n, 1);
    CheckedExpr *sum = fold_check(k, ast, &outer, OP_SUM, diagonal_log, NULL);
    return expr_is_poison(sum) || !has_factor(sum, ast)
               ? sum
               : chain_of_two(k, OP_MUL, ast, n->span,
                              weak_const(k, ast, n->span, WEAK_INT, 2, 0), sum);
}
