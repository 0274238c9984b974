/* SPDX-License-Identifier: Apache-2.0 */
/* The exact account of a tree: big integers, from the problem and the steps alone, sharing with the searches only the
 * free preparation. Reported numbers come from here. */
#include <gmp.h>
#include <string.h>

#include "path/search.h"

typedef struct Account {
    Live live;
    const PathProblem *p;
    const uint32_t *origin;
    mpz_t *size; /* by tensor; only live ones are initialised */
} Account;

/* A running product that goes to the big integer only when a machine word is full. */
static void times(mpz_t product, uint64_t *word, int64_t by)
{
    uint64_t next;
    if (__builtin_mul_overflow(*word, (uint64_t)by, &next)) {
        mpz_mul_ui(product, product, *word);
        next = (uint64_t)by;
    }
    *word = next;
}

static int64_t extent(const Account *c, uint32_t label)
{
    return c->p->sizes[c->origin[label]];
}

static void tensor_size(const Account *c, uint32_t t, mpz_t out)
{
    uint64_t word = 1;
    mpz_set_ui(out, 1);
    for (uint32_t i = 0; i < c->live.n_legs[t]; i++) {
        times(out, &word, extent(c, c->live.legs[t][i]));
    }
    mpz_mul_ui(out, out, word);
}

static void union_size(const Account *c, uint32_t a, uint32_t b, mpz_t out)
{
    const uint32_t *x = c->live.legs[a], *y = c->live.legs[b];
    const uint32_t *x_end = x + c->live.n_legs[a], *y_end = y + c->live.n_legs[b];
    uint64_t word = 1;
    mpz_set_ui(out, 1);
    while (x < x_end || y < y_end) {
        bool take_x = y == y_end || (x < x_end && *x <= *y);
        uint32_t l = take_x ? *x : *y;
        y += y < y_end && *y == l;
        x += x < x_end && take_x;
        times(out, &word, extent(c, l));
    }
    mpz_mul_ui(out, out, word);
}

static const char *digits(mpz_t v, Arena *arena)
{
    char *text = ARENA_ARRAY(arena, mpz_sizeinbase(v, 10) + 2, char);
    return mpz_get_str(text, 10, v);
}

/* log2, 0 for 0. */
static double mpz_log2(mpz_t v)
{
    if (mpz_sgn(v) <= 0) {
        return 0.0;
    }
    long power;
    double part = mpz_get_d_2exp(&power, v);
    return log2(part) + (double)power;
}

typedef struct Sums {
    mpz_t macs, written, largest, peak, alive, made, slices;
} Sums;

static void account_steps(Account *c, const PathTree *t, Sums *s)
{
    for (uint32_t k = 0; k < t->n_leaves; k++) {
        mpz_init(c->size[k]);
        tensor_size(c, k, c->size[k]);
        mpz_add(s->alive, s->alive, c->size[k]);
        if (mpz_cmp(c->size[k], s->largest) > 0) {
            mpz_set(s->largest, c->size[k]);
        }
    }
    mpz_set(s->peak, s->alive);
    for (uint32_t k = 0; k < t->n_steps; k++) {
        uint32_t a = t->steps[k].a, b = t->steps[k].b;
        union_size(c, a, b, s->made);
        mpz_add(s->macs, s->macs, s->made);
        uint32_t r = live_merge(&c->live, a, b);
        mpz_init(c->size[r]);
        tensor_size(c, r, c->size[r]);
        mpz_add(s->written, s->written, c->size[r]);
        mpz_add(s->alive, s->alive, c->size[r]);
        if (mpz_cmp(c->size[r], s->largest) > 0) {
            mpz_set(s->largest, c->size[r]);
        }
        if (mpz_cmp(s->alive, s->peak) > 0) {
            mpz_set(s->peak, s->alive);
        }
        mpz_sub(s->alive, s->alive, c->size[a]);
        mpz_sub(s->alive, s->alive, c->size[b]);
        mpz_clear(c->size[a]);
        mpz_clear(c->size[b]);
    }
    if (t->n_leaves > 0) {
        mpz_clear(c->size[t->n_leaves + t->n_steps - 1]);
    }
}

/* One loop nest over all labels: extents, times factors less one (at least one). */
static void account_naive(const Account *c, uint32_t n_kept, mpz_t out)
{
    uint64_t word = c->p->n_operands > 2 ? c->p->n_operands - 1 : 1;
    mpz_set_ui(out, 1);
    for (uint32_t l = 0; l < n_kept; l++) {
        times(out, &word, extent(c, l));
    }
    mpz_mul_ui(out, out, word);
}

void path_account(const PathProblem *p, const PathTree *t, PathLabels sliced, Arena *arena,
                  PathCosts *out)
{
    memset(out, 0, sizeof *out);
    uint8_t *skip = ARENA_ARRAY(arena, p->n_labels, uint8_t);
    Sums s;
    mpz_inits(s.macs, s.written, s.largest, s.peak, s.alive, s.made, s.slices, NULL);
    Prepared full, within;
    net_prepare(p, skip, arena, &full);
    Account all = {.p = p, .origin = full.origin};
    account_naive(&all, full.net.n_labels, s.made);
    out->naive = digits(s.made, arena);
    mpz_set_ui(s.slices, 1);
    for (uint32_t i = 0; i < sliced.n; i++) {
        skip[sliced.at[i]] = 1;
        mpz_mul_ui(s.slices, s.slices, (unsigned long)p->sizes[sliced.at[i]]);
    }
    net_prepare(p, skip, arena, &within);
    Account c = {.p = p, .origin = within.origin};
    c.size = ARENA_ARRAY(arena, (size_t)t->n_leaves * 2, mpz_t);
    live_init(&c.live, &within.net, arena);
    account_steps(&c, t, &s);
    mpz_mul(s.macs, s.macs, s.slices);
    mpz_mul(s.written, s.written, s.slices);
    out->multiply_adds = digits(s.macs, arena);
    out->written = digits(s.written, arena);
    out->largest = digits(s.largest, arena);
    out->peak = digits(s.peak, arena);
    out->slices = digits(s.slices, arena);
    out->log10_multiply_adds = mpz_log2(s.macs) * 0.30102999566398119521;
    out->log2_largest = mpz_log2(s.largest);
    out->log2_written = mpz_log2(s.written);
    out->log2_peak = mpz_log2(s.peak);
    mpz_clears(s.macs, s.written, s.largest, s.peak, s.alive, s.made, s.slices, NULL);
}
