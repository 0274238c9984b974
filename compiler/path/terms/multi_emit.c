/* SPDX-License-Identifier: Apache-2.0 */
/* What a search of several terms has found, as steps, and what it costs, exactly. */
#include <gmp.h>
#include <math.h>
#include <string.h>

#include "path/terms/multi_parts.h"

/* ---- the result ---- */

typedef struct Emit {
    Multi *g;
    uint32_t term;
    PathTermStep *steps;
    uint32_t n;
    uint32_t number[(size_t)1 << MULTI_MOST]; /* by subset: tensor */
} Emit;

/* The part of `set` that its value's maker took, in this term's operands: by places in the key. */
static uint32_t value_part(Emit *e, uint32_t set)
{
    Multi *g = e->g;
    const MultiNode *v = &g->value.at[g->value_key[e->term][set]];
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
    if (set_single(set)) {
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
        step_emit(e, set, inner, set ^ inner, multi_apply(g, term, set, inner));
    }
    return e->steps;
}

/* The exact sum over held nodes. */
static void add_exact(const Multi *g, const MultiNode *n, mpz_t sum)
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
void multi_separate(Multi *g, PathMultiResult *out)
{
    mpz_t sum, one;
    mpz_inits(sum, one, NULL);
    g->share = 0.0;
    for (uint32_t k = 0; k < g->n_groups; k++) {
        double ignored;
        uint32_t t = g->choices[g->group[k]].first;
        uint32_t all = ((uint32_t)1 << g->m->terms[t].n_operands) - 1;
        multi_term_values(g, t);
        memset(g->spine_split, 0, ((size_t)all + 1) * sizeof *g->spine_split);
        multi_term_take(g, t);
        ArenaMark mark = arena_mark(&g->ctx->arena);
        mpz_set_str(one, total_exact(g, &ignored), 10);
        arena_reset(&g->ctx->arena, mark);
        mpz_add(sum, sum, one);
        multi_term_give(g, t);
    }
    char *text = ARENA_ARRAY(&g->ctx->arena, mpz_sizeinbase(sum, 10) + 2, char);
    out->separate = mpz_get_str(text, 10, sum);
    mpz_clears(sum, one, NULL);
}

void multi_emit(Multi *g, PathMultiResult *out)
{
    out->shared = total_exact(g, &out->log10_shared);
    out->steps = ARENA_ARRAY(&g->ctx->arena, g->m->n_terms, PathTermStep *);
    Emit *emit = ARENA_NEW(&g->ctx->arena, Emit);
    for (uint32_t k = 0; k < g->n_groups; k++) {
        PathChoice c = g->choices[g->taken[k]];
        for (uint32_t i = 0; i < c.n; i++) {
            out->steps[c.first + i] = term_emit(g, c.first + i, emit);
        }
    }
}
