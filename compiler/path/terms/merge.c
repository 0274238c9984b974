/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of summands that are each added in several orders of axes, before any tree is searched.
 * Summands whose networks are equal up to renaming become one term, their orders listed
 * together; the list of a term is written relative to one of its orders, which may be any.
 * Terms whose lists can be written alike are one sum: its terms are added first, and the total
 * is added in each order (P(x) + P(y) = P(x + y)). Lists are picked by the number of terms that
 * can take them, most first. A list that is a product of a picked one and a shorter one gives a
 * choice: the term several times, renamed, in the sum of the picked list (P(Q(x)) = P(x1 +
 * x2)). */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "path/terms/multi.h"

typedef struct Class {     /* summands of one network and result */
    uint32_t first;        /* summand */
    PathLabels legs;       /* of the first, in the order of the key */
    VEC(PathOrder) orders; /* axis: by axis of the result, the leg */
    uint64_t *list;        /* by order: hash of the list relative to it */
    bool done;
    uint32_t base; /* done: the order its result has */
    uint32_t sum;
} Class;

#define COPIES_MOST  24 /* of a term, in one choice */
#define CHOICES_MOST 48 /* of a class */

typedef struct Merge {
    const PathMulti *m; /* labels and sizes */
    const PathSummand *summands;
    Arena *arena;
    VEC(Class) classes;
} Merge;

static void order_add(Merge *g, Class *c, double coef, const uint32_t *axis)
{
    for (uint32_t i = 0; i < c->orders.n; i++) {
        if (memcmp(c->orders.at[i].axis, axis, c->legs.n * sizeof *axis) == 0) {
            c->orders.at[i].coef += coef;
            return;
        }
    }
    PathOrder order = {coef, arena_copy(g->arena, axis, c->legs.n * sizeof *axis)};
    vec_push(g->arena, &c->orders, order);
}

/* Adds the summand's orders to its class. Summands with labels in the output that no operand
 * has, or twice, are a class of their own. */
static void summand_add(Merge *g, SymTable *keys, Map *class_of, uint32_t at)
{
    const PathSummand *s = &g->summands[at];
    const PathTerm *t = &s->term;
    uint32_t all = ((uint32_t)1 << t->n_operands) - 1, id = 0, axis[64];
    PathLabels legs;
    Sym key = canon_key(keys, g->m, t, all, false, g->arena, &legs, NULL);
    bool plain = legs.n == t->output.n && legs.n <= 64;
    uint64_t full = ((uint64_t)key->id << 32) | t->sum;
    if (!plain || !map_get(class_of, full, &id)) {
        id = g->classes.n;
        vec_push(g->arena, &g->classes,
                 ((Class){.first = at, .legs = plain ? legs : t->output}));
        if (plain) {
            map_put(class_of, full, id);
        } else {
            legs = t->output;
        }
    }
    for (uint32_t i = 0; i < s->n_orders; i++) {
        for (uint32_t d = 0; d < legs.n; d++) {
            axis[d] = 0;
            while (plain && legs.at[axis[d]] != t->output.at[s->orders[i].axis[d]]) {
                axis[d]++;
            }
            axis[d] = plain ? axis[d] : s->orders[i].axis[d];
        }
        order_add(g, &g->classes.at[id], s->orders[i].coef, axis);
    }
}

/* ---- lists relative to one order ---- */

static int order_compare(const PathOrder *a, const PathOrder *b, uint32_t n)
{
    return memcmp(a->axis, b->axis, n * sizeof *a->axis);
}

/* Are all factors equal but for their signs? */
static bool orders_even(const PathOrder *orders, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (fabs(orders[i].coef) != fabs(orders[0].coef)) {
            return false;
        }
    }
    return true;
}

/* What the factors of a list are divided by: never rounds, so that exact sums stay exact. */
static double list_scale(const Class *c, uint32_t base)
{
    double at = c->orders.at[base].coef;
    int exponent;
    if (orders_even(c->orders.at, c->orders.n)) {
        return at;
    }
    frexp(at, &exponent);
    return copysign(ldexp(1.0, exponent - 1), at);
}

/* The list of the class relative to order `base`: by axis of the result, the axis of the base's
 * result; sorted. */
static PathOrder *list_relative(const Merge *g, const Class *c, uint32_t base)
{
    uint32_t n = c->legs.n, place[64];
    PathOrder *list = ARENA_ARRAY(g->arena, c->orders.n, PathOrder);
    for (uint32_t d = 0; d < n; d++) {
        place[c->orders.at[base].axis[d]] = d;
    }
    for (uint32_t i = 0; i < c->orders.n; i++) {
        uint32_t *axis = ARENA_ARRAY(g->arena, n, uint32_t);
        for (uint32_t d = 0; d < n; d++) {
            axis[d] = place[c->orders.at[i].axis[d]];
        }
        PathOrder order = {c->orders.at[i].coef / list_scale(c, base), axis};
        uint32_t k = i;
        for (; k > 0 && order_compare(&list[k - 1], &order, n) > 0; k--) {
            list[k] = list[k - 1];
        }
        list[k] = order;
    }
    return list;
}

static uint64_t list_hash(const Class *c, uint32_t result, const PathOrder *list)
{
    uint64_t h = hash_mix(result, c->legs.n);
    for (uint32_t i = 0; i < c->orders.n; i++) {
        int64_t coef = llround(list[i].coef * 1e6);
        h = hash_bytes(h, list[i].axis, c->legs.n * sizeof *list[i].axis);
        h = hash_mix(h, (uint64_t)coef);
    }
    return h;
}

static bool list_equal(const PathOrder *a, const PathOrder *b, uint32_t n, uint32_t axes)
{
    for (uint32_t i = 0; i < n; i++) {
        if (order_compare(&a[i], &b[i], axes) != 0 || fabs(a[i].coef - b[i].coef) > 1e-9) {
            return false;
        }
    }
    return true;
}

static void class_lists(Merge *g, Class *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->orders.n; i++) {
        if (c->orders.at[i].coef != 0.0) {
            c->orders.at[kept++] = c->orders.at[i];
        }
    }
    c->orders.n = kept;
    c->list = ARENA_ARRAY(g->arena, kept, uint64_t);
    for (uint32_t i = 0; i < kept; i++) {
        ArenaMark mark = arena_mark(g->arena);
        c->list[i] = list_hash(c, g->summands[c->first].term.sum, list_relative(g, c, i));
        arena_reset(g->arena, mark);
    }
}

/* ---- picking ---- */

static bool class_has(const Class *c, uint64_t list, uint32_t *base)
{
    for (uint32_t i = 0; !c->done && i < c->orders.n; i++) {
        if (c->list[i] == list) {
            *base = i;
            return true;
        }
    }
    return false;
}

/* The first list that most classes left can take; false when none is left. */
static bool list_most(const Merge *g, uint32_t *class, uint32_t *base)
{
    uint32_t most = 0, at = 0;
    Map number;
    VEC(uint32_t) count = {0};
    map_init(&number, g->arena);
    for (int round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < g->classes.n; k++) {
            const Class *c = &g->classes.at[k];
            for (uint32_t i = 0; !c->done && i < c->orders.n; i++) {
                bool again = false;
                for (uint32_t j = 0; j < i; j++) {
                    again |= c->list[j] == c->list[i];
                }
                if (again) {
                    continue;
                }
                if (!map_get(&number, c->list[i], &at)) {
                    at = count.n;
                    map_put(&number, c->list[i], at);
                    vec_push(g->arena, &count, 0);
                }
                count.at[at] += round == 0 ? 1 : 0;
                if (round == 1 && count.at[at] > most) {
                    most = count.at[at];
                    *class = k;
                    *base = i;
                }
            }
        }
    }
    return most > 0;
}

/* Marks the classes that can take the list of `class` relative to `base`. */
static void take_list(Merge *g, uint32_t class, uint32_t base, Arena *arena, PathMerged *out)
{
    const Class *first = &g->classes.at[class];
    uint32_t axes = first->legs.n, n = first->orders.n;
    uint64_t hash = first->list[base];
    PathOrder *list = list_relative(g, first, base);
    PathOrder *kept = arena_copy(arena, list, n * sizeof *list);
    for (uint32_t i = 0; i < n; i++) {
        kept[i].axis = arena_copy(arena, list[i].axis, axes * sizeof *list[i].axis);
    }
    PathSumOrders sum = {g->summands[first->first].term.sum, axes, n, kept};
    for (uint32_t k = 0; k < g->classes.n; k++) {
        Class *c = &g->classes.at[k];
        uint32_t at = 0;
        if (class_has(c, hash, &at) && c->legs.n == axes && c->orders.n == n &&
            g->summands[c->first].term.sum == sum.result &&
            list_equal(list_relative(g, c, at), list, n, axes)) {
            c->done = true;
            c->base = at;
            c->sum = out->n_sums;
        }
    }
    out->sums[out->n_sums++] = sum;
}

/* ---- terms and choices ---- */

typedef struct Terms {
    Arena *arena; /* of the result */
    VEC(PathTerm) list;
    VEC(double) coef;
    VEC(uint32_t) summand;
    VEC(PathChoice) choices;
} Terms;

/* A term of the class whose result axis d is leg axis[d]. */
static void term_push(const Merge *g, Terms *to, const Class *c, const uint32_t *axis,
                      uint32_t sum, double coef)
{
    PathTerm t = g->summands[c->first].term;
    uint32_t *output = ARENA_ARRAY(to->arena, c->legs.n, uint32_t);
    for (uint32_t d = 0; d < c->legs.n; d++) {
        output[d] = c->legs.at[axis[d]];
    }
    t.output = (PathLabels){output, c->legs.n};
    t.sum = sum;
    vec_push(to->arena, &to->list, t);
    vec_push(to->arena, &to->coef, coef);
    vec_push(to->arena, &to->summand, c->first);
}

/* Are the orders of `sum` over a result placed as `axis` all left? Takes them when told to. */
static bool orders_left(const Class *c, const PathSumOrders *sum, const uint32_t *axis,
                        double coef, bool *left, bool take)
{
    uint32_t placed[64];
    for (uint32_t j = 0; j < sum->n_orders; j++) {
        for (uint32_t d = 0; d < c->legs.n; d++) {
            placed[d] = axis[sum->orders[j].axis[d]];
        }
        uint32_t k = 0;
        while (k < c->orders.n &&
               (!left[k] ||
                memcmp(c->orders.at[k].axis, placed, c->legs.n * sizeof *placed) != 0 ||
                fabs(c->orders.at[k].coef - coef * sum->orders[j].coef) > 1e-9 * fabs(coef))) {
            k++;
        }
        if (k == c->orders.n) {
            return false;
        }
        left[k] = !take;
    }
    return true;
}

/* The result's placement for which order `k` of the class is order `i` of the sum. */
static double placement(const Class *c, const PathSumOrders *sum, uint32_t k, uint32_t i,
                        uint32_t *axis)
{
    for (uint32_t d = 0; d < c->legs.n; d++) {
        axis[sum->orders[i].axis[d]] = c->orders.at[k].axis[d];
    }
    return c->orders.at[k].coef / sum->orders[i].coef;
}

/* One more term for order `k`, which is left, in a way that takes a whole list: the one most
 * like the first term's. */
static bool copy_find(const Merge *g, const Class *c, const PathMerged *out, uint32_t sum,
                      uint32_t k, const uint32_t *like, bool *left, Terms *to)
{
    const PathSumOrders *s = &out->sums[sum];
    uint32_t axis[64], best = s->n_orders, most = 0;
    for (uint32_t i = 0; i < s->n_orders; i++) {
        uint32_t same = 1;
        double coef = placement(c, s, k, i, axis);
        for (uint32_t d = 0; d < c->legs.n; d++) {
            same += axis[d] == like[d] ? 1 : 0;
        }
        if (same > most && orders_left(c, s, axis, coef, left, false)) {
            most = same;
            best = i;
        }
    }
    if (best < s->n_orders) {
        double coef = placement(c, s, k, best, axis);
        orders_left(c, s, axis, coef, left, true);
        term_push(g, to, c, axis, sum, coef);
    }
    return best < s->n_orders;
}

/* The class as several terms of a shorter sum, where its list is a product: one choice for each
 * place in the list that the class's first order can have. */
static void choices_add(const Merge *g, const Class *c, const PathMerged *out, uint32_t sum,
                        uint32_t group, Terms *to)
{
    const PathSumOrders *s = &out->sums[sum];
    bool left[COPIES_MOST * COPIES_MOST];
    if (s->result != g->summands[c->first].term.sum || s->n_axes != c->legs.n ||
        s->n_orders < 2 || s->n_orders >= c->orders.n || c->orders.n % s->n_orders != 0 ||
        c->orders.n / s->n_orders > COPIES_MOST || c->orders.n > sizeof left ||
        !orders_even(c->orders.at, c->orders.n) || !orders_even(s->orders, s->n_orders)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_orders; i++) {
        uint32_t first = to->list.n, axis[64];
        memset(left, true, sizeof left);
        double coef = placement(c, s, 0, i, axis);
        bool whole = orders_left(c, s, axis, coef, left, true);
        if (whole) {
            term_push(g, to, c, axis, sum, coef);
        }
        for (uint32_t k = 1; whole && k < c->orders.n; k++) {
            whole = !left[k] || copy_find(g, c, out, sum, k, axis, left, to);
        }
        if (whole) {
            PathChoice choice = {group, first, to->list.n - first};
            vec_push(to->arena, &to->choices, choice);
        } else {
            to->list.n = to->coef.n = to->summand.n = first;
        }
    }
}

static void terms_make(const Merge *g, Arena *arena, PathMerged *out)
{
    Terms to = {.arena = arena};
    for (uint32_t k = 0; k < g->classes.n; k++) {
        const Class *c = &g->classes.at[k];
        if (c->orders.n == 0) {
            continue;
        }
        PathChoice own = {k, to.list.n, 1};
        uint32_t most = to.choices.n + CHOICES_MOST;
        term_push(g, &to, c, c->orders.at[c->base].axis, c->sum, list_scale(c, c->base));
        vec_push(arena, &to.choices, own);
        for (uint32_t s = 0; s < out->n_sums && to.choices.n < most; s++) {
            choices_add(g, c, out, s, k, &to);
        }
    }
    out->n_terms = to.list.n;
    out->terms = to.list.at;
    out->coef = to.coef.at;
    out->summand = to.summand.at;
    out->n_choices = to.choices.n;
    out->choices = to.choices.at;
}

void path_merge(const PathMulti *m, const PathSummand *summands, uint32_t n, Ctx *ctx,
                PathMerged *out)
{
    Arena scratch;
    SymTable keys;
    Map class_of;
    Merge g = {.m = m, .summands = summands, .arena = &scratch};
    arena_init(&scratch, &ctx->budget);
    symtable_init(&keys, &scratch);
    map_init(&class_of, &scratch);
    for (uint32_t i = 0; i < n; i++) {
        summand_add(&g, &keys, &class_of, i);
    }
    *out = (PathMerged){.sums = ARENA_ARRAY(&ctx->arena, g.classes.n, PathSumOrders)};
    for (uint32_t k = 0; k < g.classes.n; k++) {
        class_lists(&g, &g.classes.at[k]);
    }
    uint32_t class = 0, base = 0;
    for (;;) {
        ArenaMark mark = arena_mark(&scratch);
        if (!list_most(&g, &class, &base)) {
            break;
        }
        take_list(&g, class, base, &ctx->arena, out);
        arena_reset(&scratch, mark);
    }
    terms_make(&g, &ctx->arena, out);
    arena_release(&scratch);
}
