/* SPDX-License-Identifier: Apache-2.0 */
/* "Sums are never a surprise": which sums may be silent. A term is a plain product when all its indices that are not
 * on the left stand in factors that are tensors: `A[i,k] * B[k,j]`, in any order with factors (of any form) and a minus
 * that have none of them, and divided by such only after the last of them. Its missing indices are summed. When the
 * term is one of several, only indices that occur twice in it are (each term is summed by itself, in the manner of
 * Einstein; an index that occurs once could mean the sum of all terms). Where the index has extent 1 in one term and another
 * in a second, it stretches: the sum of the first is repeated. Everything else names its reductions. */
#include "front/check_sums.h"

typedef struct Sums {
    Kern *k;
    uint32_t first;  /* labels from here on belong to the term */
    uint32_t *count; /* occurrences in plain positions, by label - first */
    Span *at;        /* the latest of them */
    bool *reported;
    bool divided; /* a divisor was met */
    bool failed;
    bool lone;
} Sums;

/* Labels of the term that are neither on the left nor bound by a reduction inside it. */
static bool is_silent(const Sums *s, int32_t label)
{
    if (label < 0 || (uint32_t)label < s->first) {
        return false;
    }
    const Label *l = &s->k->s.labels.at[label];
    return !l->left && !l->bound;
}

static Span label_place(const Sums *s, const CheckedExpr *read, uint32_t axis)
{
    const Ast *ast = &s->k->c->program->ast;
    const AstNode *n = ast_node(ast, read->ast);
    return n->kind == AST_INDEXED && axis + 1 < n->n && read->at == NULL
               ? ast_node(ast, n->child[axis + 1])->span
               : read->span;
}

static void needs_reduction(Kern *k, const Label *l, Span at, const char *why)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_NEEDS_REDUCTION, at,
                               "index '%s' is not on the left, and %s", l->name->text, why);
    diag_help(d, "name the reduction: sum[%s](...)", l->name->text);
}

static void term_needs_reduction(Sums *s, int32_t label, Span at, const char *why)
{
    s->failed = true;
    if (!s->reported[(uint32_t)label - s->first]) {
        s->reported[(uint32_t)label - s->first] = true;
        needs_reduction(s->k, &s->k->s.labels.at[label], at, why);
    }
}

/* Everything below here is no plain product. */
static void scan_other(Sums *s, const CheckedExpr *e)
{
    if (e->kind == CHECKED_READ || e->kind == CHECKED_INDEX) {
        for (uint32_t a = 0; a < e->rank; a++) {
            if (is_silent(s, e->label[a])) {
                term_needs_reduction(s, e->label[a], label_place(s, e, a),
                                     "only a plain product is summed silently");
            }
        }
    }
    for (uint32_t a = 0; a < e->n; a++) {
        scan_other(s, e->arg[a]);
    }
}

static bool divides(const CheckedExpr *e)
{
    for (uint32_t a = 1; a < e->n; a++) {
        if (e->link[a] == OP_DIV) {
            return true;
        }
    }
    return false;
}

/* A tensor read at values: it has the indices that stand in its positions. */
static void scan_gather(Sums *s, const CheckedExpr *e)
{
    for (uint32_t a = 0; a < e->rank && (e->kind == CHECKED_READ || e->kind == CHECKED_INDEX);
         a++) {
        if (is_silent(s, e->label[a])) {
            s->count[(uint32_t)e->label[a] - s->first]++;
            s->at[(uint32_t)e->label[a] - s->first] = label_place(s, e, a);
        }
    }
    for (uint32_t a = 0; a < e->n; a++) {
        scan_gather(s, e->arg[a]);
    }
}

/* `top`: the term itself, under minus signs at most; only there may a divisor stand. */
static void scan_plain(Sums *s, const CheckedExpr *e, bool top)
{
    if (e->kind == CHECKED_READ) {
        for (uint32_t a = 0; a < e->rank; a++) {
            if (!is_silent(s, e->label[a])) {
                continue;
            }
            if (s->divided) {
                term_needs_reduction(
                    s, e->label[a], label_place(s, e, a),
                    "a quotient is summed silently only when the divisor comes last");
            }
            s->count[(uint32_t)e->label[a] - s->first]++;
            s->at[(uint32_t)e->label[a] - s->first] = label_place(s, e, a);
        }
        return;
    }
    bool negated = e->kind == CHECKED_MAP && e->op == OP_NEG;
    if (e->kind == CHECKED_GATHER && !s->divided) {
        scan_gather(s, e);
        return;
    }
    if (e->kind == CHECKED_MAP && e->op == OP_CONJ) {
        scan_plain(s, e->arg[0], false);
        return;
    }
    bool product = expr_is_product(e) && (top || !divides(e));
    if (!product && !negated) {
        scan_other(s, e);
        return;
    }
    for (uint32_t a = 0; a < e->n; a++) {
        if (product && a > 0 && e->link[a] == OP_DIV) {
            s->divided = true;
            scan_other(s, e->arg[a]);
        } else {
            scan_plain(s, e->arg[a], top && negated);
        }
    }
}

static void check_counts(Sums *s, const Label *l, uint32_t k)
{
    if (s->count[k] != 1 || s->k->s.poisoned || dim_is(l->extent, 1)) {
        return;
    }
    if (!s->lone) {
        term_needs_reduction(s, (int32_t)(s->first + k), s->at[k],
                             "occurs once in one of several terms");
    } else {
        vec_push(s->k->c->arena, &s->k->s.silent, ((SilentSum){l->name, s->at[k]}));
    }
}

CheckedExpr *sum_over(Kern *k, CheckedExpr *e, int32_t *label, uint32_t n)
{
    CheckedExpr *sum = expr_new(k, CHECKED_REDUCE, e->ast, e->span);
    sum->op = e->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM;
    sum->dtype = e->dtype;
    sum->n = 1;
    sum->arg = arena_copy(k->c->arena, &e, sizeof e);
    sum->rank = n;
    sum->label = label;
    return sum;
}

/* The sum goes around the product and inside what divides it: `sum[k](A[k] * B[k]) / z`. */
static CheckedExpr *wrap(Kern *k, CheckedExpr *e, int32_t *summed, uint32_t n)
{
    if (e->kind == CHECKED_MAP) { /* a minus */
        e->arg[0] = wrap(k, e->arg[0], summed, n);
        return e;
    }
    if (expr_is_product(e) && divides(e)) {
        CheckedExpr *outer = expr_new(k, CHECKED_CHAIN, e->ast, e->span);
        outer->op = OP_MUL;
        outer->dtype = e->dtype;
        CheckedExpr *inner = expr_new(k, CHECKED_CHAIN, e->ast, e->span);
        inner->op = OP_MUL;
        inner->dtype = e->dtype;
        uint32_t a = 0;
        for (; a == 0 || e->link[a] != OP_DIV; a++) {
            chain_add(k, inner, OP_MUL, e->arg[a]);
        }
        CheckedExpr *body = inner->n == 1 ? inner->arg[0] : inner;
        chain_add(k, outer, OP_MUL, wrap(k, body, summed, n));
        for (; a < e->n; a++) {
            chain_add(k, outer, (Op)e->link[a], e->arg[a]);
        }
        return outer;
    }
    return sum_over(k, e, summed, n);
}

CheckedExpr *sums_explicit(Kern *k, CheckedExpr *term, uint32_t first_label, bool lone)
{
    uint32_t n = k->s.labels.n - first_label;
    Arena *arena = k->c->arena;
    Sums s = {.k = k, .first = first_label, .lone = lone};
    s.count = ARENA_ARRAY(arena, n, uint32_t);
    s.at = ARENA_ARRAY(arena, n, Span);
    s.reported = ARENA_ARRAY(arena, n, bool);
    scan_plain(&s, term, true);
    if (s.failed) {
        return expr_poison(k, term->ast, term->span);
    }
    int32_t *summed = ARENA_ARRAY(arena, n, int32_t);
    uint32_t n_summed = 0;
    for (uint32_t j = 0; j < n; j++) {
        check_counts(&s, &k->s.labels.at[first_label + j], j);
        if (s.count[j] > 0) {
            summed[n_summed++] = (int32_t)(first_label + j);
        }
    }
    if (s.failed) {
        return expr_poison(k, term->ast, term->span);
    }
    if (n_summed == 0) {
        return term;
    }
    term = wrap(k, term, summed, n_summed);
    for (uint32_t j = 0; j < n && !lone; j++) {
        if (s.count[j] > 0) {
            vec_push(arena, &k->s.sums, ((TermSum){first_label + j, s.count[j], s.at[j]}));
        }
    }
    return term;
}

void sums_warn(Kern *k)
{
    for (uint32_t s = 0; s < k->s.silent.n; s++) {
        diag_warning(&k->c->ctx->diags, W_SILENT_SUM, k->s.silent.at[s].at,
                     "index '%s' occurs once and is summed", k->s.silent.at[s].name->text);
    }
}

/* ---- extents of 1 stretch to those of other terms ---- */

/* What the terms say of an index that several of them sum: places among the sums, +1; 0: none. */
typedef struct Agreed {
    uint32_t long_one; /* the first whose extent is not 1 */
    uint32_t other;    /* the first with yet another extent */
} Agreed;

/* By place among the sums: what all that have its index say. */
static Agreed **find_agreed(Kern *k)
{
    Arena *arena = k->c->arena;
    Agreed **of = ARENA_ARRAY(arena, k->s.sums.n, Agreed *);
    Map seen; /* name -> first place + 1 */
    map_init(&seen, arena);
    for (uint32_t j = 0; j < k->s.sums.n; j++) {
        const Label *l = &k->s.labels.at[k->s.sums.at[j].label];
        uint32_t first = 0;
        if (map_get(&seen, l->name->id, &first)) {
            of[j] = of[first - 1];
        } else {
            of[j] = ARENA_NEW(arena, Agreed);
            map_put(&seen, l->name->id, j + 1);
        }
        Agreed *a = of[j];
        if (!dim_is(l->extent, 1) && a->long_one == 0) {
            a->long_one = j + 1;
        } else if (!dim_is(l->extent, 1) && a->other == 0) {
            Dim extent = k->s.labels.at[k->s.sums.at[a->long_one - 1].label].extent;
            a->other = dim_eq(extent, l->extent) ? 0 : j + 1;
        }
    }
    return of;
}

/* To which of two extents is an index of extent 1 stretched? */
static void stretches_to_both(Kern *k, const Agreed *a)
{
    uint32_t x = k->s.sums.at[a->long_one - 1].label, y = k->s.sums.at[a->other - 1].label;
    const LabelUse *u = &k->s.uses.at[y], *v = &k->s.uses.at[x];
    extent_mismatch(k, &k->s.labels.at[y], k->s.labels.at[y].extent, u->at, u->value,
                    k->s.labels.at[x].extent, v->at, v->value);
}

bool sums_agree(Kern *k)
{
    Agreed **agreed = find_agreed(k);
    bool ok = true;
    for (uint32_t j = 0; j < k->s.sums.n && !k->s.poisoned; j++) {
        const TermSum *s = &k->s.sums.at[j];
        Label *l = &k->s.labels.at[s->label];
        if (!dim_is(l->extent, 1) || agreed[j]->long_one == 0) {
            continue;
        }
        if (agreed[j]->other != 0) {
            stretches_to_both(k, agreed[j]);
        } else if (s->count == 1) { /* with extent 1 it would sum nothing */
            needs_reduction(k, l, s->at, "occurs once in one of several terms");
            ok = false;
        } else {
            uint32_t place = agreed[j]->long_one - 1;
            l->extent = k->s.labels.at[k->s.sums.at[place].label].extent;
            l->counted = true;
        }
    }
    return ok && !k->s.poisoned;
}
