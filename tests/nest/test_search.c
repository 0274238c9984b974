/* SPDX-License-Identifier: Apache-2.0 */
/* The search against all trees that its moves reach, on graphs small enough to make them all;
 * and what its choice may not depend on. The machine is so small and so slow at its memory that
 * loops over a few positions pay. */
#include "support/quick.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/moves.h"
#include "nest/objective.h"
#include "nest/place.h"
#include "nest/plan.h"
#include "nest/price.h"
#include "nest/text.h"
#include "nest/tree.h"
#include "nest/verify.h"
#include "support_graphs.h"

/* Trees of one graph; those with more are left out. */
#define TREES  4000
#define STORED 5
#define EFFORT 16

/* Any block is on chip. */
static const Machine machine = {SMALL_MACHINE};

typedef struct Closure {
    Ctx ctx;
    Arena scratch;
    Graph *g;
    NestFacts facts;
    Pricer pricer;
    VEC(Tree) trees;
    Map seen;
    double sure, unsure; /* the least seconds of trees that cut no contraction, and of others */
} Closure;

static double price(Closure *c, const Tree *t)
{
    ArenaMark mark = arena_mark(&c->scratch);
    Nest *nest = tree_nest(&c->scratch, c->g, t);
    nest->values = nest_place(&c->scratch, &c->facts, &machine, nest);
    NestCost cost = nest_price(&c->scratch, &c->pricer, nest, NULL);
    double seconds =
        nest_preference(&machine, &cost, nest_compulsory(&c->scratch, &c->facts, &machine));
    arena_reset(&c->scratch, mark);
    return seconds;
}

static uint64_t identity(const Tree *t)
{
    uint64_t h = 1;
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        h = hash_mix(h, d->depth * 2 + d->is_loop);
        h = hash_mix(h, d->is_loop ? (uint64_t)d->tile : d->node);
        for (uint32_t i = 0; d->is_loop && i < d->axis.n; i++) {
            h = hash_mix(h, d->axis.node[i] * 64u + (uint64_t)d->axis.label[i]);
        }
    }
    return h;
}

static bool cuts_contraction(const Graph *g, const Tree *t)
{
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        if (!d->is_loop && d->depth > 0 &&
            op_info(graph_node(g, d->node)->op)->kind == OPKIND_CONTRACT &&
            !node_is_expression(graph_node(g, d->node))) {
            return true;
        }
    }
    return false;
}

static void add_tree(void *self, const Tree *t)
{
    Closure *c = self;
    uint32_t was = 0;
    uint64_t id = identity(t);
    if (c->trees.n >= TREES || map_get(&c->seen, id, &was)) {
        return;
    }
    map_put(&c->seen, id, 1);
    Tree copy = {0};
    for (uint32_t k = 0; k < t->list.n; k++) {
        vec_push(&c->ctx.arena, &copy.list, t->list.at[k]);
    }
    vec_push(&c->ctx.arena, &c->trees, copy);
    double seconds = price(c, t);
    double *least = cuts_contraction(c->g, t) ? &c->unsure : &c->sure;
    *least = seconds < *least ? seconds : *least;
}

/* All trees that moves reach from no fusion; false when they are too many. */
static bool close_over_moves(Closure *c)
{
    Tree none = {0};
    map_init(&c->seen, &c->ctx.arena);
    c->sure = c->unsure = 1e300;
    greedy_tree(&c->ctx, &c->ctx.arena, &c->facts, &machine, false, &none);
    add_tree(c, &none);
    for (uint32_t k = 0; k < c->trees.n && c->trees.n < TREES; k++) {
        Tree from = c->trees.at[k];
        moves_each(&c->scratch, &c->ctx.arena, &c->facts, &from, add_tree, c);
    }
    return c->trees.n < TREES;
}

static Closure *closure_new(Rng *rng, uint32_t most)
{
    Closure *c = calloc(1, sizeof *c);
    ctx_init(&c->ctx);
    arena_init(&c->scratch, NULL);
    c->g = random_graph(&c->ctx, rng, most);
    nest_facts(&c->ctx.arena, c->g, &c->facts);
    pricer_init(&c->ctx.arena, &c->facts, &machine, &c->pricer);
    return c;
}

static void closure_free(Closure *c)
{
    arena_release(&c->scratch);
    ctx_release(&c->ctx);
    free(c);
}

static Nest *choose(Closure *c, uint32_t effort)
{
    return nest_choose(&c->ctx, &c->ctx.arena, c->g, &machine, effort);
}

static const char *dumped(Closure *c, const Nest *nest)
{
    Text out;
    text_init(&out, &c->ctx.arena);
    nest_dump(nest, &out);
    return out.at;
}

static void assert_at_most(uint64_t seed, double seconds, double most, const char *what)
{
    if (seconds > most * (1 + 1e-9)) {
        fail_msg("seed %" PRIu64 ": %g s, %s takes %g s", seed, seconds, what, most);
    }
}

static bool has_value_in_memory(const Nest *nest)
{
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        if (nest->values[n].residence == RESIDE_WORKSPACE) {
            return true;
        }
    }
    return false;
}

/* What cuts contractions is chosen when it saves a fifth, at the latest; what has no value in
 * memory may be a twentieth dearer. */
static void no_tree_within_reach_is_cheaper_than_the_choice(void **state)
{
    uint32_t whole = 0, gains = 0;
    for (uint64_t seed = 1; seed <= 500; seed += one_of(3)) {
        Rng rng = {seed};
        Closure *c = closure_new(&rng, STORED);
        if (c->facts.n_stored >= 2 && c->facts.n_stored <= STORED && close_over_moves(c)) {
            Nest *nest = choose(c, EFFORT);
            double plain = nest->unfused.seconds, got = nest->cost.seconds;
            double slack = has_value_in_memory(nest) ? 1.0 : 1.05;
            whole++;
            gains += got < plain;
            if (c->sure < plain) {
                assert_at_most(seed, got, slack * c->sure, "a tree that cuts no contraction");
            }
            if (c->unsure < 0.8 * plain) {
                assert_at_most(seed, got, slack * c->unsure, "a tree that cuts contractions");
            }
        }
        closure_free(c);
    }
    assert_true(whole > 350 / one_of(3) && gains > 110 / one_of(3));
}

/* Values on chip may cost a quarter more than values in memory. */
static void assert_no_worse(uint64_t seed, Closure *c, const Nest *nest, const Nest *greedy)
{
    double plain = nest->unfused.seconds;
    assert_true(nest_verify(&c->ctx, nest, "test"));
    assert_true(nest_verify(&c->ctx, greedy, "test"));
    assert_at_most(seed, nest->cost.seconds, 1.25 * plain, "no fusion and a quarter");
    if (greedy->cost.seconds < 0.9 * plain && c->facts.n_stored <= 12) {
        assert_at_most(seed, nest->cost.seconds, 1.05 * greedy->cost.seconds,
                       "greedy fusion and a twentieth");
    }
}

static void the_choice_is_no_worse_than_no_fusion_and_greedy_fusion(void **state)
{
    uint32_t gains = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        Rng rng = {seed};
        Closure *c = closure_new(&rng, 10);
        Nest *nest = choose(c, 1);
        assert_no_worse(seed, c, nest, nest_greedy(&c->ctx, &c->ctx.arena, c->g, &machine));
        gains += nest->cost.seconds < nest->unfused.seconds;
        closure_free(c);
    }
    assert_true(gains > 100);
}

/* A label that a value folds over becomes a loop around all that leads to that value. */
static bool slice_fold(Closure *c, Rng *rng)
{
    Graph *g = c->g;
    uint32_t seen = 0;
    NodeRef root = NODE_NONE;
    int32_t label = 0;
    for (uint32_t k = 0; k < c->facts.n_stored; k++) {
        const Node *n = graph_node(g, c->facts.stored[k]);
        for (int32_t l = 0; l < (int32_t)n->n_labels; l++) {
            if (node_reduces(n, l) && rng_below(rng, ++seen) == 0) {
                root = c->facts.stored[k];
                label = l;
            }
        }
    }
    if (root != NODE_NONE) {
        NodeSpec spec = graph_spec(g, root);
        spec.sliced = (Slices){1, &label};
        assert_int_equal(graph_add(g, &spec), root);
    }
    return root != NODE_NONE;
}

static void of_a_kernel_with_slices_both_are_priced_too(void **state)
{
    uint32_t sliced = 0, losses = 0, gains = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        Rng rng = {seed};
        Closure *c = closure_new(&rng, 10);
        if (slice_fold(c, &rng)) {
            Nest *nest = choose(c, 1);
            Nest *greedy = nest_greedy(&c->ctx, &c->ctx.arena, c->g, &machine);
            assert_no_worse(seed, c, nest, greedy);
            assert_true(nest->steps <= 2);
            sliced++;
            losses += greedy->cost.seconds > nest->cost.seconds;
            gains += nest->cost.seconds < nest->unfused.seconds;
        }
        closure_free(c);
    }
    assert_true(sliced > 300 && losses > 2 && gains > 20);
}

static void the_same_is_chosen_every_time_and_under_other_names(void **state)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        Rng rng = {seed};
        Closure *c = closure_new(&rng, 9);
        Nest *nest = choose(c, 1), *again = choose(c, 1);
        assert_string_equal(dumped(c, nest), dumped(c, again));
        assert_int_equal(nest->steps, again->steps);
        for (uint32_t d = 0; d < c->g->dims.list.n; d++) {
            c->g->dims.list.at[d].name =
                sym_cstr(&c->ctx.syms, str_format(&c->ctx.arena, "z%u", 9 - d));
        }
        for (uint32_t p = 0; p < c->g->params.n; p++) {
            c->g->params.at[p].name =
                sym_cstr(&c->ctx.syms, str_format(&c->ctx.arena, "A%u", 9 - p));
        }
        again = choose(c, 1);
        assert_true(again->cost.seconds == nest->cost.seconds);
        assert_int_equal(nest->n_items, again->n_items);
        for (uint32_t k = 0; k < nest->n_items; k++) {
            const NestItem *a = &nest->items[k], *b = &again->items[k];
            assert_true(a->parent == b->parent && a->axis == b->axis && a->tile == b->tile &&
                        a->node == b->node);
        }
        closure_free(c);
    }
}

/* Where the search sees all trees, the order of lines that do not read each other is nothing. */
static void the_price_does_not_depend_on_the_order_of_lines(void **state)
{
    uint32_t n = 0;
    for (uint64_t seed = 1; seed <= 500; seed += one_of(3)) {
        Rng rng = {seed};
        Closure *c = closure_new(&rng, STORED);
        double first = choose(c, EFFORT)->cost.seconds;
        c->g = random_order(&c->ctx, &rng, c->g);
        assert_true(graph_verify(&c->ctx, c->g, "test"));
        if (c->facts.n_stored <= STORED) {
            double second = choose(c, EFFORT)->cost.seconds;
            assert_at_most(seed, first, second, "the same in another order");
            assert_at_most(seed, second, first, "the same as it was");
            n++;
        }
        closure_free(c);
    }
    assert_true(n > 350 / one_of(3));
}

TESTS(TEST(no_tree_within_reach_is_cheaper_than_the_choice),
      TEST(the_choice_is_no_worse_than_no_fusion_and_greedy_fusion),
      TEST(of_a_kernel_with_slices_both_are_priced_too),
      TEST(the_same_is_chosen_every_time_and_under_other_names),
      TEST(the_price_does_not_depend_on_the_order_of_lines))
