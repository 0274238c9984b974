/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and functions that are written with others: argmax, mean, abs2 and their like. Each becomes what a person would write
 * (docs/language.md has the table); nothing behind the checker knows of them. What stands in it twice is checked twice. */
#include <string.h>

#include "front/check_expr.h"

/* Expansions inside of each other: each may check its operand three times. */
#define NESTED 4
/* Groups that perm exchanges: 120 terms. */
#define PERMUTED 5
#define TERMS    720 /* of permutations inside of each other */

typedef struct Call {
    Kern *k;
    AstId ast;
    const AstNode *n;
} Call;

/* ---- how it would be written ---- */

static CheckedExpr *map(const Call *c, Op op, CheckedExpr *x)
{
    return expr_map(c->k, op, c->ast, c->n->span, c->n->at, &x, 1);
}

static CheckedExpr *map_two(const Call *c, Op op, CheckedExpr *x, CheckedExpr *y)
{
    CheckedExpr *two[2] = {x, y};
    return expr_map(c->k, op, c->ast, c->n->span, c->n->at, two, 2);
}

static CheckedExpr *chain_two(const Call *c, Op link, CheckedExpr *x, CheckedExpr *y)
{
    return chain_of_two(c->k, link, c->ast, c->n->span, x, y);
}

static CheckedExpr *argument(const Call *c, uint32_t a)
{
    return expr_check(c->k, c->n->child[a]);
}

/* re(x) * re(x) + im(x) * im(x), of real numbers x * x; `again` is x once more. */
static CheckedExpr *square(const Call *c, CheckedExpr *x, CheckedExpr *again)
{
    if (x->weak != WEAK_NO || !dtype_is_complex(x->dtype)) {
        return chain_two(c, OP_MUL, x, again);
    }
    CheckedExpr *re = chain_two(c, OP_MUL, map(c, OP_RE, x), map(c, OP_RE, again));
    CheckedExpr *im = chain_two(c, OP_MUL, map(c, OP_IM, x), map(c, OP_IM, again));
    return chain_two(c, OP_ADD, re, im);
}

static CheckedExpr *of_kind(const Call *c, CheckedExpr *x, bool fits, const char *help)
{
    if (expr_is_poison(x) || fits) {
        return x;
    }
    Diagnostic *d =
        diag_error(&c->k->c->ctx->diags, E_BAD_TYPE, c->n->at, "'%s' is not defined for %s",
                   c->n->name->text, dtype_name(x->dtype));
    diag_help(d, "%s", help);
    return expr_poison(c->k, c->ast, c->n->span);
}

static bool is_broken(const CheckedExpr *x)
{
    return x->weak == WEAK_NO && (dtype_is_float(x->dtype) || dtype_is_complex(x->dtype));
}

/* ---- positions of the largest and the least ---- */

/* In `min[k](select(x == max[k2](x) || x != x, index(k), extent(k)))`: the position where x is the largest, or a NaN. There is one, unless
 * nothing is folded: the extent is only written where it is not taken. */
static CheckedExpr *position_of(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    const Call c = {k, ast, n};
    if (fold->rank != 1) {
        if (!k->s.poisoned) {
            diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "'%s' is over one index",
                       n->name->text);
        }
        return expr_poison(k, ast, n->span);
    }
    Op op = strcmp(n->name->text, "argmax") == 0 ? OP_RMAX : OP_RMIN;
    CheckedExpr *x = argument(&c, 0);
    CheckedExpr *most = expr_is_poison(x) ? x : fold_again(k, ast, n, op, fold_plain, NULL);
    if (expr_is_poison(most)) {
        return most;
    }
    CheckedExpr *is = map_two(&c, OP_EQ, x, most);
    if (x->weak == WEAK_NO && dtype_is_float(x->dtype)) {
        is = chain_two(&c, OP_OR, is, map_two(&c, OP_NE, argument(&c, 0), argument(&c, 0)));
    }
    const AffineTerm here = {(VarRef)fold->label[0], 1};
    CheckedExpr *at = position_number(k, ast, n->span, (Affine){0, 1, &here});
    Label *label = &k->s.labels.at[fold->label[0]];
    const AffineTerm end = {affine_dim(label->extent.sym), 1};
    Affine extent =
        label->extent.sym < 0 ? affine_const(label->extent.n) : (Affine){0, 1, &end};
    label->valued = true;
    CheckedExpr *three[3] = {is, at, position_number(k, ast, n->span, extent)};
    return expr_is_poison(is) ? is : expr_map(k, OP_SELECT, ast, n->span, n->at, three, 3);
}

static CheckedExpr *expand_position(const Call *c)
{
    return fold_check(c->k, c->ast, c->n, OP_RMIN, position_of, NULL);
}

/* ---- sums ---- */

/* How many elements a fold takes: `sum[k](1)`, of those under its condition. */
static CheckedExpr *count_of(const Call *c, const CheckedExpr *fold, CheckedExpr *when)
{
    Kern *k = c->k;
    DType t = dtype_is_complex(fold->dtype) ? dtype_part(fold->dtype) : fold->dtype;
    CheckedExpr *one = expr_new(k, CHECKED_CONST, c->ast, c->n->span);
    CheckedExpr *count = expr_new(k, CHECKED_REDUCE, c->ast, c->n->span);
    one->dtype = t;
    one->typed = true;
    one->value = number_cast(number_int(DTYPE_I64, 1), t);
    *count = *fold;
    count->op = OP_SUM;
    count->dtype = t;
    CheckedExpr *term = when == NULL ? one : fold_where(k, OP_SUM, one, when);
    count->arg = arena_copy(k->c->arena, &term, sizeof term);
    for (uint32_t a = 0; a < fold->rank; a++) {
        k->s.labels.at[fold->label[a]].counted = true;
    }
    return count;
}

/* sum / count; a complex sum has its parts divided by it. */
static CheckedExpr *mean_by(const Call *c, FoldBody *body, bool again)
{
    CheckedExpr *when = NULL;
    CheckedExpr *sum = again ? fold_again(c->k, c->ast, c->n, OP_SUM, body, &when)
                             : fold_check(c->k, c->ast, c->n, OP_SUM, body, &when);
    sum = of_kind(c, sum, is_broken(sum), "a cast makes it a float: f64(...)");
    if (expr_is_poison(sum)) {
        return sum;
    }
    CheckedExpr *count = count_of(c, sum, when);
    if (dtype_is_complex(sum->dtype)) {
        count = expr_cast_to(c->k, count, sum->dtype, false);
    }
    return chain_two(c, OP_DIV, sum, count);
}

static CheckedExpr *expand_mean(const Call *c)
{
    return mean_by(c, fold_plain, false);
}

static CheckedExpr *deviation(const Call *c)
{
    CheckedExpr *x = argument(c, 0);
    CheckedExpr *mean = expr_is_poison(x) ? x : mean_by(c, fold_plain, true);
    return expr_is_poison(mean) ? mean : chain_two(c, OP_SUB, x, mean);
}

static CheckedExpr *deviation_square(Kern *k, AstId ast, const AstNode *n,
                                     const CheckedExpr *fold)
{
    (void)fold;
    const Call c = {k, ast, n};
    CheckedExpr *x = deviation(&c);
    return expr_is_poison(x) ? x : square(&c, x, deviation(&c));
}

static CheckedExpr *expand_var(const Call *c)
{
    return mean_by(c, deviation_square, false);
}

static CheckedExpr *plain_square(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    (void)fold;
    const Call c = {k, ast, n};
    CheckedExpr *x = argument(&c, 0);
    return expr_is_poison(x) ? x : square(&c, x, argument(&c, 0));
}

static CheckedExpr *expand_norm(const Call *c)
{
    CheckedExpr *sum = fold_check(c->k, c->ast, c->n, OP_SUM, plain_square, NULL);
    sum = of_kind(c, sum, is_broken(sum), "a cast makes it a float: f64(...)");
    return expr_is_poison(sum) ? sum : map(c, OP_SQRT, sum);
}

static CheckedExpr *as_number(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    (void)fold;
    const Call c = {k, ast, n};
    CheckedExpr *x = argument(&c, 0);
    x = of_kind(&c, x, x->weak == WEAK_NO && x->dtype == DTYPE_BOOL,
                "it counts where a condition holds: count[i](x[i] != 0)");
    return expr_is_poison(x) ? x : expr_cast_to(k, x, DTYPE_I64, false);
}

static CheckedExpr *expand_count(const Call *c)
{
    return fold_check(c->k, c->ast, c->n, OP_SUM, as_number, NULL);
}

/* ---- logsumexp ---- */

/* In `finite(m) + log(sum[k](exp(x - finite(m))))`, m = max[k2](x): the exponential. */
static CheckedExpr *relative_exp(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    (void)fold;
    const Call c = {k, ast, n};
    CheckedExpr *x = argument(&c, 0);
    CheckedExpr *most =
        expr_is_poison(x) ? x : fold_again(k, ast, n, OP_RMAX, fold_plain, NULL);
    return expr_is_poison(most)
               ? most
               : map(&c, OP_EXP, chain_two(&c, OP_SUB, x, map(&c, OP_FINITE, most)));
}

static CheckedExpr *expand_logsumexp(const Call *c)
{
    CheckedExpr *most = fold_check(c->k, c->ast, c->n, OP_RMAX, fold_plain, NULL);
    most = of_kind(c, most, is_broken(most) && !dtype_is_complex(most->dtype),
                   "a cast makes it a float: f64(...)");
    if (expr_is_poison(most)) {
        return most;
    }
    CheckedExpr *sum = fold_check(c->k, c->ast, c->n, OP_SUM, relative_exp, NULL);
    return expr_is_poison(sum)
               ? sum
               : chain_two(c, OP_ADD, map(c, OP_FINITE, most), map(c, OP_LOG, sum));
}

/* ---- permutations ---- */

/* What changes places: `n` groups of `each` indices, and the labels that their names stand for. */
typedef struct Groups {
    uint32_t n, each;
    AstNode name[RANK_LIMIT];
    uint32_t label[RANK_LIMIT];
} Groups;

static bool group_add(const Call *c, Groups *g, AstId id)
{
    const AstNode item = *ast_node(&c->k->c->program->ast, id);
    bool group = item.kind == AST_GROUP;
    uint32_t each = group ? item.n : 1;
    g->each = g->n == 0 ? each : g->each;
    for (uint32_t i = 0; i < each; i++) {
        AstId at = group ? item.child[i] : id;
        AstNode *name = &g->name[g->n * g->each + i];
        Affine x;
        *name = *ast_node(&c->k->c->program->ast, at);
        if (each != g->each || g->n * g->each + i >= RANK_LIMIT || name->kind != AST_NAME) {
            return diag_refuse(
                &c->k->c->ctx->diags, E_ARGUMENTS, item.span,
                "'%s' exchanges indices, or groups of as many indices: %s[(i,a), (j,b)]",
                c->n->name->text, c->n->name->text);
        }
        if (!position_affine(c->k, at, &x)) {
            return false;
        }
        if (!map_get(&c->k->s.label_by_name, name->name->id, &g->label[g->n * g->each + i])) {
            return diag_refuse(&c->k->c->ctx->diags, E_UNBOUND_INDEX, name->span,
                               "'%s' is no index of this statement", name->name->text);
        }
    }
    g->n++;
    return true;
}

/* The k-th of n! in lexicographic order. Is it odd? */
static bool permutation(uint32_t n, uint32_t k, uint32_t *out)
{
    bool used[RANK_LIMIT] = {false}, odd = false;
    uint32_t of = 1;
    for (uint32_t i = 2; i <= n; i++) {
        of *= i;
    }
    for (uint32_t i = 0; i < n; i++) {
        of /= n - i;
        uint32_t skip = k / of, at = 0;
        k %= of;
        odd ^= skip % 2 == 1;
        for (;; at++) {
            if (!used[at] && skip-- == 0) {
                break;
            }
        }
        used[at] = true;
        out[i] = at;
    }
    return odd;
}

/* `perm[i,j](x[i,j])`: x[i,j] + x[j,i]. In antisym those of odd permutations are taken away. */
static CheckedExpr *expand_permutations(const Call *c)
{
    Kern *k = c->k;
    Groups g = {0};
    uint32_t count = 1, order[RANK_LIMIT];
    bool ok = c->n->n - 1 <= PERMUTED, sign = strcmp(c->n->name->text, "antisym") == 0;
    if (!ok) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, c->n->span,
                   "'%s' exchanges at most %d indices or groups", c->n->name->text, PERMUTED);
    }
    for (uint32_t a = 1; a < c->n->n && ok; a++) {
        ok = group_add(c, &g, c->n->child[a]);
        count *= a;
    }
    uint32_t around = k->terms == 0 ? 1 : k->terms;
    if (ok && around * count > TERMS) {
        diag_limit(&k->c->ctx->diags, E_LIMIT_SIZE, c->n->span,
                   "permutations inside of each other make more than %d terms", TERMS);
        ok = false;
    }
    if (!ok) {
        return expr_poison(k, c->ast, c->n->span);
    }
    k->terms = around * count;
    CheckedExpr *sum = expr_new(k, CHECKED_CHAIN, c->ast, c->n->span);
    sum->op = OP_ADD;
    for (uint32_t p = 0; p < count && ok; p++) {
        bool odd = permutation(g.n, p, order) && sign;
        for (uint32_t i = 0; i < g.n * g.each; i++) {
            uint32_t from = order[i / g.each] * g.each + i % g.each;
            map_put(&k->s.label_by_name, g.name[i].name->id, g.label[from]);
        }
        CheckedExpr *term = argument(c, 0);
        ok = !expr_is_poison(term);
        chain_add(k, sum, odd ? OP_SUB : OP_ADD, term);
    }
    k->terms = around;
    for (uint32_t i = 0; i < g.n * g.each; i++) {
        map_put(&k->s.label_by_name, g.name[i].name->id, g.label[i]);
    }
    return ok && count == 1 ? sum->arg[0]
           : ok             ? chain_type(k, sum)
                            : expr_poison(k, c->ast, c->n->span);
}

/* ---- functions ---- */

static CheckedExpr *expand_abs2(const Call *c)
{
    CheckedExpr *x = argument(c, 0);
    return expr_is_poison(x) ? x : square(c, x, argument(c, 0));
}

static CheckedExpr *expand_arg(const Call *c)
{
    CheckedExpr *z = argument(c, 0);
    if (expr_is_poison(z)) {
        return z;
    }
    CheckedExpr *im = map(c, OP_IM, z);
    return expr_is_poison(im) ? im : map_two(c, OP_ATAN2, im, map(c, OP_RE, argument(c, 0)));
}

/* ---- the table ---- */

typedef struct Name {
    const char *name;
    NameKind kind;
    Op op;
    CheckedExpr *(*form)(Kern *k, AstId ast, const AstNode *n);
    CheckedExpr *(*expand)(const Call *c);
} Name;

#define WHAT_FORM(what)      .form = (what)
#define WHAT_REDUCTION(what) .op = (what)
#define WHAT_FOLD(what)      .expand = (what)
#define WHAT_DENSE(what)     .form = (what)
#define WHAT_FUNCTION(what)  .expand = (what)
#define WHAT_FOREIGN(what)   .expand = NULL

static const Name names[] = {
#define NAME(kind, name, what) {name, NAME_##kind, WHAT_##kind(what)},
#include "front/names.def"
    {NULL, NAME_NONE, .expand = NULL},
};

static const Name *name_row(Sym name)
{
    const Name *row = names;
    while (row->name != NULL && strcmp(row->name, name->text) != 0) {
        row++;
    }
    return row;
}

CheckedExpr *name_check(Kern *k, AstId ast, const AstNode *n)
{
    const Call c = {k, ast, n};
    const Name *row = name_row(n->name);
    if (row->kind == NAME_FORM) {
        return row->form(k, ast, n);
    }
    if (row->kind == NAME_REDUCTION) {
        return fold_check(k, ast, n, row->op, fold_plain, NULL);
    }
    if (row->kind == NAME_FUNCTION && !arguments_fit(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    if (k->nested == NESTED) {
        diag_limit(&k->c->ctx->diags, E_LIMIT_SIZE, n->span,
                   "'%s' is nested more than %d deep in others like it", n->name->text, NESTED);
        return expr_poison(k, ast, n->span);
    }
    k->nested++;
    CheckedExpr *e = row->kind == NAME_DENSE ? row->form(k, ast, n) : row->expand(&c);
    k->nested--;
    return expr_is_poison(e) ? expr_poison(k, ast, n->span) : e;
}
