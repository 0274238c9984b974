/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps keep what a tree knows of itself: after them its label sets, block maps, sizes and
 * costs are those of the same shape built from scratch; with narrow and wide sets, with labels
 * of two holders and of many, with few and many extents, with a limit and without; and with the
 * processor's instructions or without them every tree is the same. */
#include <string.h>

#include "path/search.h"
#include "support/test.h"

typedef struct Case {
    uint32_t n, extra; /* operands in a ring, labels that join two or more at random */
    uint32_t holders;  /* of each of those */
    uint32_t weights;  /* different extents */
    double limit;      /* log2, INFINITY: none */
    PathObjective objective;
    uint32_t words;     /* least that the sets must have */
    bool sparse, edges; /* what the tree must be */
} Case;

static const Case cases[] = {
    {40, 30, 2, 1, INFINITY, PATH_FLOPS, 2, false, true},
    {40, 30, 2, 40, INFINITY, PATH_FLOPS, 1, false, true},
    {60, 30, 4, 3, INFINITY, PATH_FLOPS, 2, false, false},
    {60, 30, 4, 3, 14.0, PATH_FLOPS, 2, false, false},
    {60, 40, 2, 2, 12.0, PATH_COMBO, 2, false, true},
    {1100, 550, 2, 1, INFINITY, PATH_FLOPS, 24, true, true},
    {1100, 550, 3, 5, INFINITY, PATH_FLOPS, 24, true, false},
    {1100, 550, 3, 5, INFINITY, PATH_WRITE, 24, true, false},
    {1100, 550, 2, 3, 60.0, PATH_FLOPS, 24, true, true},
    {3000, 1500, 2, 2, INFINITY, PATH_FLOPS, 65, true, true}, /* blocks of two words */
    {3000, 1500, 3, 9, INFINITY, PATH_ROOFLINE, 65, true, false},
};
#define CASES (sizeof cases / sizeof *cases)

static uint64_t dice_state;

static uint32_t dice(uint32_t below)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice_state >> 33) % below);
}

/* A ring, so that it is connected, and labels at random; open ends at two operands. */
static void net_make(const Case *c, Arena *arena, Net *net)
{
    uint32_t n_labels = c->n + c->extra, used = 0;
    uint32_t most = c->n * 2 + c->extra * c->holders;
    uint32_t *holder = ARENA_ARRAY(arena, most, uint32_t),
             *held = ARENA_ARRAY(arena, most, uint32_t);
    for (uint32_t l = 0; l < n_labels; l++) {
        uint32_t first = l < c->n ? l : dice(c->n), times = l < c->n ? 2 : c->holders;
        for (uint32_t i = 0; i < times; i++) {
            uint32_t step = l < c->n ? i : i * (1 + dice(c->n / c->holders - 1));
            holder[used] = (first + step) % c->n;
            held[used++] = l;
        }
    }
    uint32_t *start = ARENA_ARRAY(arena, c->n + 1, uint32_t),
             *label = ARENA_ARRAY(arena, used, uint32_t), at = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        start[k] = at;
        for (uint32_t i = 0; i < used; i++) { /* by label, so that lists are sorted */
            if (holder[i] == k && (at == start[k] || label[at - 1] != held[i])) {
                label[at++] = held[i];
            }
        }
    }
    start[c->n] = at;
    double *weight = ARENA_ARRAY(arena, n_labels, double);
    for (uint32_t l = 0; l < n_labels; l++) {
        weight[l] = 1.0 + (double)(l % c->weights) / 4096.0;
    }
    *net = (Net){c->n, n_labels, start, label, weight, ARENA_ARRAY(arena, n_labels, uint8_t)};
}

typedef struct Bench {
    Ctx ctx;
    PathOptions options;
    Search search;
    Net net;
    Tree tree;
} Bench;

static void bench_open(Bench *b, const Case *c, bool portable)
{
    ctx_init(&b->ctx);
    Arena *arena = &b->ctx.arena;
    dice_state = 7;
    net_make(c, arena, &b->net);
    b->options = (PathOptions){.objective = c->objective, .portable = portable};
    b->search =
        (Search){.arena = arena,
                 .options = &b->options,
                 .rng = {99},
                 .model = {c->objective, 6.0, c->limit, soft_table_new(arena, SOFT_STEPS),
                           soft_table_new(arena, ROUGH_STEPS)}};
    PathStep *steps = ARENA_ARRAY(arena, b->net.n, PathStep);
    greedy_run(&b->net, (GreedyStyle){1.0, 0.0, 0}, &b->search.rng, arena, steps);
    tree_init(&b->tree, &b->net, arena);
    tree_set(&b->tree, &b->search.model, steps, arena);
    Walk walk = walk_new(&b->search, b->net.n);
    for (int i = 0; i < 3; i++) { /* hot, then cooler: many moves, then few */
        anneal_sweeps(&b->search, &b->tree, &walk, i == 0 ? 1.0 : 0.3, i == 1 ? 10.0 : 1000.0,
                      c->n > 1000 ? 12 : 200);
    }
}

static void same(double x, double y, const char *what, size_t at, uint32_t node)
{
    if (x < y || x > y) {
        fail_msg("case %zu, node %u: %s is %.17g, from scratch %.17g", at, node, what, x, y);
    }
}

/* The tree is the one that its steps make from scratch. */
static void assert_fresh(Bench *b, Tree *fresh, size_t at)
{
    const Tree *t = &b->tree;
    tree_refresh(fresh, &b->search.model, &b->ctx.arena);
    for (uint32_t x = 0; x < 2 * t->n - 1; x++) {
        assert_memory_equal(tree_legs(t, x), tree_legs(fresh, x), t->words * sizeof(uint64_t));
        assert_true(t->some[x] == fresh->some[x]);
        same(t->size[x], fresh->size[x], "size", at, x);
        if (x >= t->n) {
            same(t->both[x], fresh->both[x], "the step's labels", at, x);
            same(t->cost[x], fresh->cost[x], "cost", at, x);
        }
    }
}

static void test_what_sweeps_keep_up_to_date_is_what_a_tree_from_scratch_has(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        static Bench b;
        bench_open(&b, &cases[i], false);
        Tree *t = &b.tree;
        assert_true(t->words >= cases[i].words);
        assert_int_equal(t->sparse, cases[i].sparse);
        assert_int_equal(t->edges, cases[i].edges);
        Tree fresh = tree_clone(t, &b.ctx.arena);
        memset(fresh.some, 0, (size_t)t->n * 2 * sizeof *fresh.some);
        assert_fresh(&b, &fresh, i);
        ctx_release(&b.ctx);
    }
}

static void test_slicing_one_label_is_what_a_refresh_makes_of_it(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        static Bench b;
        bench_open(&b, &cases[i], false);
        Tree *t = &b.tree;
        for (uint32_t l = 0; l < 12; l++) {
            tree_slice(t, &b.search.model, t->bit[l * 3]);
        }
        for (uint32_t l = 0; l < 12; l += 2) {
            tree_unslice(t, &b.search.model, t->bit[l * 3], &b.ctx.arena);
        }
        Tree fresh = tree_clone(t, &b.ctx.arena);
        assert_fresh(&b, &fresh, i);
        ctx_release(&b.ctx);
    }
}

static void test_trees_are_the_same_with_and_without_special_instructions(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        static Bench b[2];
        bench_open(&b[0], &cases[i], false);
        bench_open(&b[1], &cases[i], true);
        size_t inner = (size_t)(cases[i].n - 1) * sizeof(uint32_t);
        assert_memory_equal(b[0].tree.left + cases[i].n, b[1].tree.left + cases[i].n, inner);
        assert_memory_equal(b[0].tree.right + cases[i].n, b[1].tree.right + cases[i].n, inner);
        ctx_release(&b[0].ctx);
        ctx_release(&b[1].ctx);
    }
}

static void test_sweeps_move_and_keep_the_limit(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        static Bench b;
        bench_open(&b, &cases[i], false);
        Tree before = tree_clone(&b.tree, &b.ctx.arena);
        double over = tree_total(&b.tree, &b.search.model).over;
        Walk walk = walk_new(&b.search, b.net.n);
        anneal_sweeps(&b.search, &b.tree, &walk, 2.0, 1000.0, 20);
        assert_true(memcmp(before.left, b.tree.left, 2 * cases[i].n * sizeof(uint32_t)) != 0);
        assert_true(tree_total(&b.tree, &b.search.model).over <= over);
        ctx_release(&b.ctx);
    }
}

TESTS(TEST(test_what_sweeps_keep_up_to_date_is_what_a_tree_from_scratch_has),
      TEST(test_slicing_one_label_is_what_a_refresh_makes_of_it),
      TEST(test_trees_are_the_same_with_and_without_special_instructions),
      TEST(test_sweeps_move_and_keep_the_limit))
