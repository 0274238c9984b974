/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of small networks: equal where renaming labels and reordering operands makes one network of the other, as all
 * orders tried one by one find, and the orders and legs that come with equal keys are such a renaming. */
#include <string.h>

#include "base/ctx.h"
#include "base/map.h"
#include "path/terms/multi.h"
#include "support/test.h"

static Ctx ctx;

#define LABELS   6
#define OPERANDS 4
#define NETWORKS 250

typedef struct Sample { /* a network, and what its key says */
    PathTerm term;
    PathLabels operand[OPERANDS];
    uint32_t tensor[OPERANDS], label[OPERANDS + 1][LABELS];
    uint32_t member, n; /* the operands that the key is of: n of them */
    bool context;
    Sym key;
    PathLabels legs;
    uint32_t order[MULTI_MOST];
} Sample;

static const int64_t sizes[LABELS] = {2, 2, 2, 2, 3, 3};

/* The sample's operands point into it: samples are not copied. */
static void sample_take(Sample *s, const PathMulti *m, SymTable *keys)
{
    s->term.tensor = s->tensor;
    s->term.operands = s->operand;
    s->n = 0;
    for (uint32_t k = 0; k < s->term.n_operands; k++) {
        s->n += (((s->member >> k) & 1) != 0) != s->context;
    }
    s->key =
        canon_key(keys, m, &s->term, s->member, s->context, &ctx.arena, &s->legs, s->order);
}

/* Labels of one operand alone and labels in no output among them; an output names none twice. */
static void sample_random(Sample *s, Rng *rng)
{
    *s = (Sample){.term.n_operands = 1 + (uint32_t)rng_below(rng, OPERANDS),
                  .context = rng_below(rng, 2) == 0};
    s->member = (uint32_t)rng_below(rng, 1u << s->term.n_operands);
    uint32_t all = (1u << s->term.n_operands) - 1, n = 0,
             most = 2 + (uint32_t)rng_below(rng, LABELS - 1);
    s->member = s->context                                 ? s->member
                : rng_below(rng, 2) == 0 || s->member == 0 ? all
                                                           : s->member;
    for (uint32_t k = 0; k < s->term.n_operands; k++) {
        s->tensor[k] = (uint32_t)rng_below(rng, 2);
        s->operand[k] = (PathLabels){s->label[k], (uint32_t)rng_below(rng, 4)};
        for (uint32_t i = 0; i < s->operand[k].n; i++) {
            s->label[k][i] = (uint32_t)rng_below(rng, most);
        }
    }
    for (uint32_t l = 0; l < most; l++) {
        bool met = false;
        for (uint32_t k = 0; k < s->term.n_operands; k++) {
            for (uint32_t i = 0; i < s->operand[k].n; i++) {
                met = met || s->label[k][i] == l;
            }
        }
        if (met && rng_below(rng, 3) == 0) {
            s->label[OPERANDS][n++] = l;
        }
    }
    s->term.output = (PathLabels){s->label[OPERANDS], n};
    s->term.sum = 0;
}

static void shuffle(Rng *rng, uint32_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        at[i] = i;
        uint32_t j = (uint32_t)rng_below(rng, i + 1), x = at[i];
        at[i] = at[j];
        at[j] = x;
    }
}

/* Other names of labels, other places of operands; what the members' output looks like is kept. */
static void sample_renamed(Sample *s, const Sample *from, Rng *rng)
{
    uint32_t place[OPERANDS], small[4], large[2], name[LABELS];
    shuffle(rng, place, from->term.n_operands);
    shuffle(rng, small, 4);
    shuffle(rng, large, 2);
    for (uint32_t l = 0; l < LABELS; l++) {
        name[l] = l < 4 ? small[l] : 4 + large[l - 4]; /* of its size */
    }
    *s = (Sample){.term = from->term, .context = from->context};
    for (uint32_t k = 0; k < from->term.n_operands; k++) {
        uint32_t to = place[k];
        s->tensor[to] = from->tensor[k];
        s->operand[to] = (PathLabels){s->label[to], from->operand[k].n};
        s->member |= ((from->member >> k) & 1) << to;
        for (uint32_t i = 0; i < from->operand[k].n; i++) {
            s->label[to][i] = name[from->label[k][i]];
        }
    }
    s->term.output.at = s->label[OPERANDS];
    for (uint32_t i = 0; i < from->term.output.n; i++) {
        s->label[OPERANDS][i] = name[from->label[OPERANDS][i]];
    }
}

/* ---- what is equal, tried out ---- */

/* What those outside see of a label: of members, whether it leaves them; of a context, its place in the output and
 * whether the unknown tensor has it. */
static uint32_t seen(const Sample *s, uint32_t l)
{
    uint32_t out = 0;
    for (uint32_t k = 0; k < s->term.n_operands; k++) {
        for (uint32_t i = 0; i < s->operand[k].n; i++) {
            out |= s->label[k][i] == l && (((s->member >> k) & 1) != 0) == s->context;
        }
    }
    for (uint32_t i = 0; i < s->term.output.n; i++) {
        out |= s->label[OPERANDS][i] != l ? 0 : s->context ? 2 * (i + 1) : 1;
    }
    return out;
}

typedef struct Renaming { /* both ways, label + 1; 0: not yet */
    uint32_t to[LABELS], from[LABELS];
} Renaming;

static bool rename_label(Renaming *r, const Sample *x, const Sample *y, uint32_t a, uint32_t b)
{
    if (r->to[a] == 0 && r->from[b] == 0) {
        r->to[a] = b + 1;
        r->from[b] = a + 1;
    }
    return r->to[a] == b + 1 && r->from[b] == a + 1 && sizes[a] == sizes[b] &&
           seen(x, a) == seen(y, b);
}

static bool rename_list(Renaming *r, const Sample *x, const Sample *y, PathLabels a,
                        PathLabels b)
{
    bool same = a.n == b.n;
    for (uint32_t i = 0; same && i < a.n; i++) {
        same = rename_label(r, x, y, a.at[i], b.at[i]);
    }
    return same;
}

/* Do the operands of x in that order become y's one by one? */
static bool orders_match(const Sample *x, const uint32_t *in_x, const Sample *y,
                         const uint32_t *in_y, bool legs)
{
    Renaming r = {0};
    bool same = true;
    for (uint32_t i = 0; same && i < x->n; i++) {
        uint32_t a = in_x[i], b = in_y[i];
        same =
            x->tensor[a] == y->tensor[b] && rename_list(&r, x, y, x->operand[a], y->operand[b]);
    }
    same = same && (!x->context || rename_list(&r, x, y, x->term.output, y->term.output));
    return same && (!legs || rename_list(&r, x, y, x->legs, y->legs));
}

static bool any_order_matches(const Sample *x, const Sample *y, uint32_t *order, uint32_t n,
                              uint32_t used)
{
    if (n == y->n) {
        return orders_match(x, x->order, y, order, false);
    }
    bool found = false;
    for (uint32_t k = 0; !found && k < y->term.n_operands; k++) {
        if ((((y->member >> k) & 1) != 0) != y->context && ((used >> k) & 1) == 0) {
            order[n] = k;
            found = any_order_matches(x, y, order, n + 1, used | 1u << k);
        }
    }
    return found;
}

static void test_keys_are_equal_where_a_renaming_makes_one_network_of_the_other(void **state)
{
    PathMulti m = {.n_labels = LABELS, .sizes = sizes};
    static Sample at[2 * NETWORKS];
    SymTable keys;
    symtable_init(&keys, &ctx.arena);
    Rng rng = {7};
    for (uint32_t k = 0; k < NETWORKS; k++) {
        sample_random(&at[2 * k], &rng);
        sample_renamed(&at[2 * k + 1], &at[2 * k], &rng);
        sample_take(&at[2 * k], &m, &keys);
        sample_take(&at[2 * k + 1], &m, &keys);
        assert_ptr_equal(at[2 * k].key, at[2 * k + 1].key);
    }
    uint32_t equal = 0;
    for (uint32_t i = 0; i < 2 * NETWORKS; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const Sample *x = &at[i], *y = &at[j];
            uint32_t order[OPERANDS];
            if (x->context != y->context) {
                assert_ptr_not_equal(x->key, y->key);
            } else if (x->key == y->key) {
                assert_int_equal(x->n, y->n);
                assert_true(orders_match(x, x->order, y, y->order, true));
                equal++;
            } else {
                assert_false(x->n == y->n && any_order_matches(x, y, order, 0, 0));
            }
        }
    }
    assert_in_range(equal, 2 * NETWORKS, 50 * NETWORKS);
}

/* Four operands that nothing tells apart, in a ring: the key is that of the least order, whichever comes first. */
static void test_a_ring_has_one_key_in_all_orders_of_its_operands(void **state)
{
    PathMulti m = {.n_labels = LABELS, .sizes = sizes};
    SymTable keys;
    symtable_init(&keys, &ctx.arena);
    static Sample at[24];
    Rng rng = {3};
    for (uint32_t k = 0; k < 24; k++) {
        Sample *s = &at[k];
        uint32_t place[OPERANDS];
        shuffle(&rng, place, OPERANDS);
        *s = (Sample){.term.n_operands = OPERANDS, .member = (1u << OPERANDS) - 1};
        for (uint32_t i = 0; i < OPERANDS; i++) {
            s->label[place[i]][0] = i;
            s->label[place[i]][1] = (i + 1) % OPERANDS;
            s->operand[place[i]] = (PathLabels){s->label[place[i]], 2};
        }
        s->term.output.at = s->label[OPERANDS];
        sample_take(s, &m, &keys);
        assert_ptr_equal(s->key, at[0].key);
    }
}

TESTS_IN_CTX(TEST(test_a_ring_has_one_key_in_all_orders_of_its_operands),
             TEST(test_keys_are_equal_where_a_renaming_makes_one_network_of_the_other))
