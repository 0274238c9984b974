/* SPDX-License-Identifier: Apache-2.0 */
/* Trees for many terms that share work. What costs are two kinds of nodes, counted by
 * reference: value  (key of a sub-network)             made by one contraction of two values
 *     apply  (map of a sum, map of its inside)  one contraction of a summed inside with a value
 * A term is a spine of applies from its sum down to one value. Local search: a term is taken
 * out, its cheapest way back in is found exactly over all its subsets, given what the other
 * terms hold (that costs nothing), and put in again; the total never rises. To find moves that
 * only pay when several terms make them, early passes divide a cost by the number of places
 * that could use it. */
#include "path/multi.h"

#include <gmp.h>
#include <math.h>
#include <string.h>

#include "base/map.h"

typedef struct Node { /* a value or an apply */
    uint32_t refs, places;
    double cost;
    uint32_t term, set,
        part; /* how it is made: of `set` of a term, the operands `part` and the rest */
    uint32_t child[2]; /* values; PATH_NONE */
} Node;

typedef struct Held { /* what a term holds */
    uint32_t *spine;  /* subsets, from all operands inwards; the last is a value */
    uint32_t n_spine;
} Held;

typedef struct Multi {
    const PathMulti *m;
    Ctx *ctx;
    Arena *scratch;
    SymTable keys;
    VEC(Node) value, apply;
    Map apply_of;         /* (outer map, inner map) to apply */
    uint32_t **value_key; /* by term, by subset */
    uint32_t **map_key;   /* by term, by subset: the map of what is around it */
    uint64_t *
        *met; /* by term, by subset: its labels that are open, in the term's own numbers */
    double **extent; /* by term, by own label */
    Held *held;
    double *best; /* of the term at hand, by subset: as a value */
    double *spine_best;
    uint32_t *split, *spine_split;
    double total, share;
} Multi;

static double union_cost(const Multi *g, uint32_t term, uint32_t a, uint32_t b)
{
    double product = 1.0;
    for (uint64_t u = g->met[term][a] | g->met[term][b]; u != 0; u &= u - 1) {
        product *= g->extent[term][__builtin_ctzll(u)];
    }
    return product;
}

static uint32_t apply_id(Multi *g, uint32_t term, uint32_t set, uint32_t inner)
{
    uint64_t key = ((uint64_t)g->map_key[term][set] << 32) | g->map_key[term][inner];
    uint32_t id;
    if (!map_get(&g->apply_of, key, &id)) {
        id = g->apply.n;
        map_put(&g->apply_of, key, id);
        vec_push(&g->ctx->arena, &g->apply,
                 ((Node){.cost = union_cost(g, term, inner, set ^ inner)}));
    }
    return id;
}

/* ---- what is held ---- */

static void value_take(Multi *g, uint32_t term, uint32_t set)
{
    if ((set & (set - 1)) == 0) {
        return;
    }
    Node *v = &g->value.at[g->value_key[term][set]];
    if (v->refs++ > 0) {
        return;
    }
    uint32_t part = g->split[set];
    v->cost = union_cost(g, term, part, set ^ part);
    v->term = term;
    v->set = set;
    v->part = part;
    g->total += v->cost;
    for (int i = 0; i < 2; i++) {
        uint32_t half = i == 0 ? part : set ^ part;
        v->child[i] = (half & (half - 1)) == 0 ? PATH_NONE : g->value_key[term][half];
        value_take(g, term, half); /* as deep as a term has operands, at most MULTI_MOST */
    }
}

static void value_give(Multi *g, uint32_t id)
{
    if (id == PATH_NONE || --g->value.at[id].refs > 0) {
        return;
    }
    g->total -= g->value.at[id].cost;
    value_give(g, g->value.at[id].child[0]);
    value_give(g, g->value.at[id].child[1]);
}

static void term_give(Multi *g, uint32_t term)
{
    Held *h = &g->held[term];
    for (uint32_t i = 0; i + 1 < h->n_spine; i++) {
        Node *f = &g->apply.at[apply_id(g, term, h->spine[i], h->spine[i + 1])];
        if (--f->refs == 0) {
            g->total -= f->cost;
            value_give(g, f->child[0]);
        }
    }
    if (h->n_spine > 0) {
        uint32_t last = h->spine[h->n_spine - 1];
        value_give(g, (last & (last - 1)) == 0 ? PATH_NONE : g->value_key[term][last]);
    }
    h->n_spine = 0;
}

static void term_take(Multi *g, uint32_t term)
{
    Held *h = &g->held[term];
    uint32_t set = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    for (;;) {
        h->spine[h->n_spine++] = set;
        uint32_t inner = g->spine_split[set];
        if (inner == 0) {
            break;
        }
        uint32_t id = apply_id(g, term, set, inner), rest = set ^ inner;
        if (g->apply.at[id].refs++ == 0) {
            g->total += g->apply.at[id].cost;
            g->apply.at[id].term = term;
            g->apply.at[id].set = set;
            g->apply.at[id].part = inner;
            g->apply.at[id].child[0] =
                (rest & (rest - 1)) == 0 ? PATH_NONE : g->value_key[term][rest];
            value_take(g, term, rest);
        }
        set = inner;
    }
    value_take(g, term, set);
}

/* ---- the cheapest way in ---- */

static double fair(const Multi *g, const Node *n, double cost)
{
    return cost / (1.0 + g->share * (double)(n->places > 0 ? n->places - 1 : 0));
}

static void term_values(Multi *g, uint32_t term)
{
    uint32_t all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    for (uint32_t set = 1; set <= all; set++) {
        g->best[set] = 0.0;
        g->split[set] = 0;
        if ((set & (set - 1)) == 0) {
            continue;
        }
        const Node *v = &g->value.at[g->value_key[term][set]];
        double least = INFINITY;
        uint32_t rest = set & (set - 1);
        for (uint32_t b = rest; b != 0; b = (b - 1) & rest) {
            double cost = g->best[b] + g->best[set ^ b];
            if (cost < least) {
                cost += fair(g, v, union_cost(g, term, b, set ^ b));
                if (cost < least) {
                    least = cost;
                    g->split[set] = b;
                }
            }
        }
        g->best[set] = v->refs > 0 ? 0.0 : least;
    }
}

static void term_spine(Multi *g, uint32_t term)
{
    uint32_t all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    for (uint32_t set = 1; set <= all; set++) {
        g->spine_best[set] = g->best[set];
        g->spine_split[set] = 0;
        if (!g->m->factor) {
            continue;
        }
        for (uint32_t inner = (set - 1) & set; inner != 0; inner = (inner - 1) & set) {
            const Node *f = &g->apply.at[apply_id(g, term, set, inner)];
            double cost = g->spine_best[inner];
            cost += f->refs > 0 ? 0.0 : fair(g, f, f->cost) + g->best[set ^ inner];
            if (cost < g->spine_best[set] * (1.0 - 1e-12)) {
                g->spine_best[set] = cost;
                g->spine_split[set] = inner;
            }
        }
    }
}

static void pass(Multi *g)
{
    for (uint32_t t = 0; t < g->m->n_terms; t++) {
        term_give(g, t);
        term_values(g, t);
        term_spine(g, t);
        term_take(g, t);
    }
}

/* Passes with the given first share, falling to none; returns the total. */
static double descend(Multi *g, double share)
{
    for (uint32_t t = 0; t < g->m->n_terms; t++) {
        term_give(g, t);
    }
    g->total = 0.0;
    for (g->share = share; g->share > 0.02; g->share *= 0.6) {
        pass(g);
    }
    g->share = 0.0;
    double before = INFINITY;
    for (int i = 0; i < 40 && g->total < before * (1.0 - 1e-9); i++) {
        before = g->total;
        pass(g);
    }
    return g->total;
}

/* ---- tables of a term ---- */

static bool term_labels(Multi *g, uint32_t term)
{
    const PathTerm *t = &g->m->terms[term];
    uint32_t own[64], n = 0, all = ((uint32_t)1 << t->n_operands) - 1;
    uint64_t inside[MULTI_MOST], output = 0;
    for (uint32_t k = 0; k <= t->n_operands; k++) {
        PathLabels at = k < t->n_operands ? t->operands[k] : t->output;
        uint64_t bits = 0;
        for (uint32_t i = 0; i < at.n; i++) {
            uint32_t l = 0;
            while (l < n && own[l] != at.at[i]) {
                l++;
            }
            if (l == n && n == 64) {
                return false;
            }
            if (l == n) {
                g->extent[term][n] = (double)g->m->sizes[at.at[i]];
                own[n++] = at.at[i];
            }
            bits |= (uint64_t)1 << l;
        }
        if (k < t->n_operands) {
            inside[k] = bits;
        } else {
            output = bits;
        }
    }
    for (uint32_t set = 1; set <= all; set++) {
        uint64_t in = 0, out = output;
        for (uint32_t k = 0; k < t->n_operands; k++) {
            in |= (set >> k) & 1 ? inside[k] : 0;
            out |= (set >> k) & 1 ? 0 : inside[k];
        }
        g->met[term][set] = in & out;
    }
    return true;
}

static bool term_tables(Multi *g, uint32_t term)
{
    const PathTerm *t = &g->m->terms[term];
    Arena *arena = &g->ctx->arena;
    uint32_t all = ((uint32_t)1 << t->n_operands) - 1;
    g->value_key[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint32_t);
    g->map_key[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint32_t);
    g->met[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint64_t);
    g->extent[term] = ARENA_ARRAY(arena, 64, double);
    g->held[term].spine = ARENA_ARRAY(arena, (size_t)t->n_operands + 1, uint32_t);
    if (!term_labels(g, term)) {
        return false;
    }
    for (uint32_t set = 1; set <= all; set++) {
        ArenaMark mark = arena_mark(g->scratch);
        uint32_t id = canon_key(&g->keys, g->m, t, set, false, g->scratch, NULL, NULL)->id;
        while (g->value.n <= id) {
            vec_push(arena, &g->value, (Node){0});
        }
        g->value_key[term][set] = id;
        g->value.at[id].places++;
        if (g->m->factor) {
            g->map_key[term][set] =
                canon_key(&g->keys, g->m, t, set, true, g->scratch, NULL, NULL)->id;
        }
        arena_reset(g->scratch, mark);
    }
    for (uint32_t set = 1; g->m->factor && set <= all; set++) {
        for (uint32_t inner = (set - 1) & set; inner != 0; inner = (inner - 1) & set) {
            uint32_t id = apply_id(g, term, set, inner);
            g->apply.at[id].places++;
        }
    }
    return true;
}

/* ---- the result ---- */

typedef struct Emit {
    Multi *g;
    uint32_t term;
    PathTermStep *steps;
    uint32_t n;
    uint32_t number[(size_t)1 << MULTI_MOST]; /* by subset: tensor */
} Emit;

/* The part of `set` that its value's maker took, in this term's operands: by places in the key.
 */
static uint32_t value_part(Emit *e, uint32_t set)
{
    Multi *g = e->g;
    const Node *v = &g->value.at[g->value_key[e->term][set]];
    uint32_t there[MULTI_MOST], here[MULTI_MOST], part = 0;
    ArenaMark mark = arena_mark(g->scratch);
    canon_key(&g->keys, g->m, &g->m->terms[v->term], v->set, false, g->scratch, NULL, there);
    canon_key(&g->keys, g->m, &g->m->terms[e->term], set, false, g->scratch, NULL, here);
    arena_reset(g->scratch, mark);
    for (uint32_t i = 0, n = (uint32_t)__builtin_popcount(set); i < n; i++) {
        part |= (v->part >> there[i]) & 1 ? (uint32_t)1 << here[i] : 0;
    }
    return part;
}

static void step_emit(Emit *e, uint32_t set, uint32_t a, uint32_t b, uint32_t apply)
{
    Multi *g = e->g;
    const PathTerm *t = &g->m->terms[e->term];
    PathTermStep *s = &e->steps[e->n];
    *s =
        (PathTermStep){e->number[a], e->number[b], g->value_key[e->term][set], apply, {0}, {0}};
    PathLabels legs;
    ArenaMark mark = arena_mark(g->scratch);
    canon_key(&g->keys, g->m, t, set, false, g->scratch, &legs, NULL);
    s->legs =
        (PathLabels){arena_copy(&g->ctx->arena, legs.at, legs.n * sizeof *legs.at), legs.n};
    if (apply != PATH_NONE) {
        canon_key(&g->keys, g->m, t, a, true, g->scratch, &legs, NULL);
        s->apply_legs =
            (PathLabels){arena_copy(&g->ctx->arena, legs.at, legs.n * sizeof *legs.at), legs.n};
    }
    arena_reset(g->scratch, mark);
    e->number[set] = t->n_operands + e->n++;
}

static void value_emit(Emit *e, uint32_t set)
{
    if ((set & (set - 1)) == 0) {
        e->number[set] = (uint32_t)__builtin_ctz(set);
        return;
    }
    uint32_t part = value_part(e, set);
    value_emit(e, part); /* as deep as a term has operands */
    value_emit(e, set ^ part);
    step_emit(e, set, part, set ^ part, PATH_NONE);
}

static PathTermStep *term_emit(Multi *g, uint32_t term, Emit *e)
{
    const Held *h = &g->held[term];
    e->g = g;
    e->term = term;
    e->n = 0;
    e->steps = ARENA_ARRAY(&g->ctx->arena, g->m->terms[term].n_operands, PathTermStep);
    value_emit(e, h->spine[h->n_spine - 1]);
    for (uint32_t i = h->n_spine - 1; i-- > 0;) {
        uint32_t set = h->spine[i], inner = h->spine[i + 1];
        value_emit(e, set ^ inner);
        step_emit(e, set, inner, set ^ inner, apply_id(g, term, set, inner));
    }
    return e->steps;
}

/* The exact sum over held nodes. */
static void add_exact(const Multi *g, const Node *n, mpz_t sum)
{
    uint64_t met = g->met[n->term][n->part] | g->met[n->term][n->set ^ n->part];
    mpz_t product;
    mpz_init_set_ui(product, 1);
    for (; met != 0; met &= met - 1) {
        mpz_mul_ui(product, product, (unsigned long)g->extent[n->term][__builtin_ctzll(met)]);
    }
    mpz_add(sum, sum, product);
    mpz_clear(product);
}

static const char *total_exact(const Multi *g, double *log10_total)
{
    mpz_t sum;
    mpz_init(sum);
    for (uint32_t i = 0; i < g->value.n; i++) {
        if (g->value.at[i].refs > 0) {
            add_exact(g, &g->value.at[i], sum);
        }
    }
    for (uint32_t i = 0; i < g->apply.n; i++) {
        if (g->apply.at[i].refs > 0) {
            add_exact(g, &g->apply.at[i], sum);
        }
    }
    char *text = ARENA_ARRAY(&g->ctx->arena, mpz_sizeinbase(sum, 10) + 2, char);
    mpz_get_str(text, 10, sum);
    *log10_total = mpz_sgn(sum) > 0 ? log10(mpz_get_d(sum)) : 0.0;
    mpz_clear(sum);
    return text;
}

/* Each term by itself: taken in and out alone. */
static void separate_exact(Multi *g, PathMultiResult *out)
{
    mpz_t sum, one;
    mpz_inits(sum, one, NULL);
    g->share = 0.0;
    for (uint32_t t = 0; t < g->m->n_terms; t++) {
        double ignored;
        uint32_t all = ((uint32_t)1 << g->m->terms[t].n_operands) - 1;
        term_values(g, t);
        memset(g->spine_split, 0, ((size_t)all + 1) * sizeof *g->spine_split);
        term_take(g, t);
        ArenaMark mark = arena_mark(&g->ctx->arena);
        mpz_set_str(one, total_exact(g, &ignored), 10);
        arena_reset(&g->ctx->arena, mark);
        mpz_add(sum, sum, one);
        term_give(g, t);
    }
    char *text = ARENA_ARRAY(&g->ctx->arena, mpz_sizeinbase(sum, 10) + 2, char);
    out->separate = mpz_get_str(text, 10, sum);
    out->log10_separate = mpz_sgn(sum) > 0 ? log10(mpz_get_d(sum)) : 0.0;
    mpz_clears(sum, one, NULL);
}

static bool multi_begin(Multi *g)
{
    Arena *arena = &g->ctx->arena;
    uint32_t n = g->m->n_terms, most = 1;
    symtable_init(&g->keys, arena);
    map_init(&g->apply_of, arena);
    g->value_key = ARENA_ARRAY(arena, n, uint32_t *);
    g->map_key = ARENA_ARRAY(arena, n, uint32_t *);
    g->met = ARENA_ARRAY(arena, n, uint64_t *);
    g->extent = ARENA_ARRAY(arena, n, double *);
    g->held = ARENA_ARRAY(arena, n, Held);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t k = g->m->terms[t].n_operands;
        if (k < 1 || k > MULTI_MOST || !term_tables(g, t)) {
            diag_limit(&g->ctx->diags, E_LIMIT_SIZE, (Span){0, 0, 0},
                       "term %u has %u operands; terms planned together have 1 to %d, and 64 "
                       "labels at most",
                       t + 1, k, MULTI_MOST);
            return false;
        }
        most = k > most ? k : most;
    }
    g->best = ARENA_ARRAY(arena, (size_t)1 << most, double);
    g->spine_best = ARENA_ARRAY(arena, (size_t)1 << most, double);
    g->split = ARENA_ARRAY(arena, (size_t)1 << most, uint32_t);
    g->spine_split = ARENA_ARRAY(arena, (size_t)1 << most, uint32_t);
    return true;
}

bool path_multi(const PathMulti *m, Ctx *ctx, PathMultiResult *out)
{
    static const double shares[] = {0.0, 0.2, 1.0, 4.0};
    Arena scratch;
    memset(out, 0, sizeof *out);
    arena_init(&scratch, &ctx->budget);
    Multi g = {.m = m, .ctx = ctx, .scratch = &scratch};
    bool ok = multi_begin(&g);
    if (ok) {
        separate_exact(&g, out);
        double best = INFINITY, total = INFINITY;
        size_t pick = 0;
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
            total = descend(&g, shares[i]);
            if (total < best * (1.0 - 1e-12)) {
                best = total;
                pick = i;
            }
        }
        descend(&g, shares[pick]);
        out->shared = total_exact(&g, &out->log10_shared);
        out->steps = ARENA_ARRAY(&ctx->arena, m->n_terms, PathTermStep *);
        Emit *emit = ARENA_NEW(&ctx->arena, Emit);
        for (uint32_t t = 0; t < m->n_terms; t++) {
            out->steps[t] = term_emit(&g, t, emit);
        }
    }
    arena_release(&scratch);
    return ok;
}
