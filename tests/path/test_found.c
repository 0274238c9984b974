/* SPDX-License-Identifier: Apache-2.0 */
/* What every search finds on a list of networks, by its costs: one line for each in found.txt,
 * so that a change of a search shows as costs that rise or fall. Target `bless` writes the file.
 * Networks are made here; searches get little work, so that all of them take about a second. */
#include <stdio.h>
#include <string.h>

#include "path/search.h"
#include "support/golden.h"

#define FOUND "tests/path/found.txt"
#define MOST  7000

typedef enum Kind { CHAIN, RING, TREE, LATTICE, REGULAR, HYPER, MIXED, PARTS, DENSE } Kind;
static const char *const kind_names[] = {"chain", "ring",  "tree",  "lattice", "regular",
                                         "hyper", "mixed", "parts", "dense"};

/* Labels are added with their holders; operands list them in that order. */
typedef struct Maker {
    Arena *arena;
    Rng rng;
    uint32_t n;
    VEC(uint32_t) held[MOST];
    VEC(int64_t) sizes;
    VEC(uint32_t) output;
} Maker;

static Ctx ctx;
static Maker maker;

static uint32_t label_new(Maker *m, int64_t size)
{
    vec_push(m->arena, &m->sizes, size);
    return m->sizes.n - 1;
}

static void join(Maker *m, uint32_t a, uint32_t b, int64_t size)
{
    uint32_t l = label_new(m, size);
    vec_push(m->arena, &m->held[a], l);
    vec_push(m->arena, &m->held[b], l);
}

static int64_t some_size(Maker *m, int64_t most)
{
    return 2 + (int64_t)rng_below(&m->rng, (uint64_t)most - 1);
}

static void make_regular(Maker *m, int64_t most)
{
    for (uint32_t k = 0; k < m->n; k++) {
        join(m, k, (k + 1) % m->n, some_size(m, most));
        uint32_t other = (uint32_t)rng_below(&m->rng, m->n);
        if (k % 2 == 0 && other != k) {
            join(m, k, other, some_size(m, most));
        }
    }
}

static void make_hyper(Maker *m, int64_t most)
{
    for (uint32_t k = 0; k < m->n; k++) {
        uint32_t l = label_new(m, some_size(m, most));
        for (uint32_t i = 0; i < 2 + k % 3; i++) {
            uint32_t at = (k + i * (1 + (uint32_t)rng_below(&m->rng, m->n / 3))) % m->n;
            vec_push(m->arena, &m->held[at], l);
        }
    }
}

/* Everything at once: batch labels, diagonals, labels of one operand, of extent 1 and 0. */
static void make_mixed(Maker *m, int64_t most)
{
    make_hyper(m, most);
    uint32_t batch = label_new(m, 3), one = label_new(m, 1), own = label_new(m, 4);
    for (uint32_t k = 0; k < m->n; k += 2) {
        vec_push(m->arena, &m->held[k], batch);
    }
    vec_push(m->arena, &m->output, batch);
    vec_push(m->arena, &m->held[0], one);
    vec_push(m->arena, &m->held[1], own);
    vec_push(m->arena, &m->held[1], own);
}

static void make_pairs(Maker *m, Kind kind, int64_t most)
{
    uint32_t side = 1;
    while (side * side < m->n) {
        side++;
    }
    for (uint32_t k = 0; k < m->n; k++) {
        switch (kind) {
        case CHAIN:
        case RING:
            if (k + 1 < m->n || kind == RING) {
                join(m, k, (k + 1) % m->n, some_size(m, most));
            }
            break;
        case TREE:
            if (k > 0) {
                int64_t size = some_size(m, most);
                join(m, k, (uint32_t)rng_below(&m->rng, k), size);
            }
            break;
        case LATTICE:
            if (k % side + 1 < side && k + 1 < m->n) {
                join(m, k, k + 1, some_size(m, most));
            }
            if (k + side < m->n) {
                join(m, k, k + side, some_size(m, most));
            }
            break;
        case PARTS: /* rings of five, twins among them */
            join(m, k, k % 5 == 4 || k + 1 == m->n ? k - k % 5 : k + 1, some_size(m, most));
            break;
        case DENSE: /* every pair of operands: more labels than a word has bits */
            for (uint32_t i = 0; i < k; i++) {
                join(m, i, k, some_size(m, most));
            }
            break;
        default:
            break;
        }
    }
}

static PathProblem problem_make(Kind kind, uint32_t n, int64_t most, uint32_t n_output)
{
    Maker *m = &maker;
    memset(m, 0, sizeof *m);
    m->arena = &ctx.arena;
    m->rng = (Rng){n * 31 + (uint64_t)kind};
    m->n = n;
    if (kind == REGULAR) {
        make_regular(m, most);
    } else if (kind == HYPER) {
        make_hyper(m, most);
    } else if (kind == MIXED) {
        make_mixed(m, most);
    } else {
        make_pairs(m, kind, most);
    }
    for (uint32_t i = 0; i < n_output; i++) {
        uint32_t l = label_new(m, some_size(m, most));
        vec_push(m->arena, &m->held[i * 7 % n], l);
        vec_push(m->arena, &m->output, l);
    }
    PathLabels *operands = ARENA_ARRAY(m->arena, n, PathLabels);
    for (uint32_t k = 0; k < n; k++) {
        operands[k] = (PathLabels){m->held[k].at, m->held[k].n};
    }
    return (PathProblem){
        n, operands, {m->output.at, m->output.n}, m->sizes.n, m->sizes.at, NULL, false, NULL,
        0, NULL};
}

typedef struct Case {
    Kind kind;
    uint32_t n;
    int64_t most; /* largest extent */
    uint32_t n_output;
    const char *search; /* null: all that take no time, and those that do where n is small */
    PathOptions options;
} Case;

static const Case cases[] = {
    {CHAIN, 12, 20, 2, NULL, {0}},
    {RING, 17, 9, 0, NULL, {0}},
    {REGULAR, 14, 2, 0, NULL, {0}},
    {HYPER, 13, 6, 2, NULL, {0}},
    {MIXED, 12, 5, 1, NULL, {0}},
    {PARTS, 14, 7, 2, NULL, {0}},
    {TREE, 24, 6, 3, NULL, {0}},
    {REGULAR, 26, 2, 0, NULL, {0}},
    {HYPER, 22, 4, 1, NULL, {0}},
    {DENSE, 13, 3, 2, "exact", {.effort = 1}},
    {DENSE, 13, 3, 2, "exact", {.effort = 1, .objective = PATH_WRITE}},
    {REGULAR, 60, 5, 4, NULL, {0}},
    {HYPER, 70, 3, 0, NULL, {0}},
    {MIXED, 50, 4, 3, NULL, {0}},
    {LATTICE, 81, 3, 0, NULL, {0}},
    {PARTS, 63, 4, 3, NULL, {0}},
    {CHAIN, 300, 9, 2, NULL, {0}},
    {TREE, 400, 9, 5, NULL, {0}},
    {REGULAR, 300, 2, 2, NULL, {0}},
    {REGULAR, 1600, 2, 0, "auto", {0}},
    {LATTICE, 6400, 2, 0, "auto", {0}},
    {REGULAR, 12, 6, 2, "exact", {.effort = 1, .objective = PATH_SIZE}},
    {REGULAR, 12, 6, 2, "exact", {.effort = 1, .objective = PATH_WRITE}},
    {REGULAR, 12, 6, 2, "exact", {.effort = 1, .objective = PATH_COMBO, .factor = 3.0}},
    {HYPER, 12, 6, 3, "exact", {.effort = 1, .objective = PATH_COMBO}},
    {HYPER, 12, 6, 3, "exact", {.effort = 1, .objective = PATH_ROOFLINE}},
    {REGULAR, 22, 5, 2, "anneal", {.effort = 1, .objective = PATH_SIZE}},
    {REGULAR, 22, 5, 2, "anneal", {.effort = 1, .objective = PATH_COMBO}},
    {REGULAR, 22, 5, 2, "anneal", {.effort = 1, .objective = PATH_ROOFLINE, .factor = 3.0}},
    {REGULAR, 40, 5, 2, "random-greedy", {.effort = 1, .objective = PATH_SIZE}},
    {REGULAR, 40, 5, 2, "random-greedy", {.effort = 2, .objective = PATH_WRITE}},
    {REGULAR, 23, 3, 0, "auto", {.effort = 1, .seed = 5}},
    {LATTICE, 20, 3, 2, "anneal", {.effort = 1}},
    {HYPER, 20, 3, 2, "anneal", {.effort = 1, .seed = 3}},
    {REGULAR, 12, 6, 0, "auto", {.effort = 1, .memory_limit = 200}},
    {REGULAR, 12, 6, 0, "auto", {.effort = 1, .memory_limit = 40}},
    {REGULAR, 12, 6, 0, "auto", {.effort = 1, .memory_limit = 1}},
    {HYPER, 12, 5, 2, "auto", {.effort = 1, .memory_limit = 300}},
    {MIXED, 12, 5, 2, "auto", {.effort = 1, .memory_limit = 150}},
    {PARTS, 12, 8, 2, "auto", {.effort = 1, .memory_limit = 50}},
    {LATTICE, 16, 4, 0, "auto", {.effort = 1, .memory_limit = 30}},
    {REGULAR, 24, 3, 0, "auto", {.effort = 1, .memory_limit = 60}},
    {REGULAR, 24, 3, 0, "auto", {.effort = 1, .memory_limit = 30, .objective = PATH_WRITE}},
    {HYPER, 14, 4, 1, "greedy", {.effort = 1, .memory_limit = 100}},
    {LATTICE, 400, 2, 0, "auto", {.memory_limit = 4096}},
};

static void line_put(Text *t, const Case *c, const PathResult *r)
{
    static const char *const objectives[] = {"flops", "size", "write", "combo", "roofline"};
    text_printf(t, "%s %u of %lld, %u open: %s", kind_names[c->kind], c->n, (long long)c->most,
                c->n_output, c->search);
    if (c->options.effort != 1) {
        text_printf(t, " effort %u", c->options.effort);
    }
    if (c->options.seed != 0) {
        text_printf(t, " seed %llu", (unsigned long long)c->options.seed);
    }
    if (c->options.objective != PATH_FLOPS) {
        text_printf(t, " %s", objectives[c->options.objective]);
        if (c->options.factor > 0.0) {
            text_printf(t, " of %g", c->options.factor);
        }
    }
    if (c->options.memory_limit > 0) {
        text_printf(t, " within %lld", (long long)c->options.memory_limit);
    }
    text_printf(t, ": 10^%.4f, largest 2^%.3f, written 2^%.3f, peak 2^%.3f, ",
                r->costs.log10_multiply_adds, r->costs.log2_largest, r->costs.log2_written,
                r->costs.log2_peak);
    text_printf(t, "slices %s, %s%s\n", r->costs.slices, r->strategy,
                r->proved ? " proved" : "");
}

static void case_run(Text *t, const Case *c)
{
    ctx_init(&ctx);
    PathProblem p = problem_make(c->kind, c->n, c->most, c->n_output);
    PathOptions o = c->options;
    o.search = c->search;
    PathResult r;
    if (path_search(&p, &o, &ctx, &r)) {
        assert_true(path_tree_valid(&r.tree, p.n_operands));
        line_put(t, c, &r);
    } else {
        text_printf(t, "%s %u: %s\n", kind_names[c->kind], c->n,
                    ctx.diags.list.at[ctx.diags.list.n - 1]->message);
    }
    ctx_release(&ctx);
}

/* A greedy tree improved by exact subtrees under limits that some, or all, of its tensors break. */
static void limits_put(Text *t)
{
    for (int limit = 0; limit < 12; limit++) {
        ctx_init(&ctx);
        PathProblem p = problem_make(limit % 2 == 0 ? REGULAR : LATTICE, 36, 3, 2);
        Prepared prepared;
        net_prepare(&p, NULL, &ctx.arena, &prepared);
        const Net *net = &prepared.net;
        PathOptions o = {.effort = 1};
        Search s = {.arena = &ctx.arena, .options = &o, .rng = {5}};
        s.model = (Model){PATH_FLOPS, 6.0, limit, soft_table_new(&ctx.arena, SOFT_STEPS),
                          soft_table_new(&ctx.arena, ROUGH_STEPS)};
        PathStep *steps = ARENA_ARRAY(&ctx.arena, net->n, PathStep);
        greedy_run(net, (GreedyStyle){1.0, 0.0, 0}, &s.rng, &ctx.arena, steps);
        Tree tree;
        tree_init(&tree, net, &ctx.arena);
        tree_set(&tree, &s.model, steps, &ctx.arena);
        Score before = tree_total(&tree, &s.model);
        subtree_improve(&s, &tree, 6, 20);
        Score after = tree_total(&tree, &s.model);
        assert_false(score_less(before, after));
        text_printf(t, "subtrees within 2^%d: over %.4f to %.4f, cost %.4f to %.4f\n", limit,
                    before.over, after.over, before.cost, after.cost);
        ctx_release(&ctx);
    }
}

static void test_searches_find_what_they_found(void **state)
{
    static const char *const quick[] = {"greedy", "eliminate", "bisect"};
    static const char *const slow[] = {"random-greedy", "auto"};
    Text t;
    Arena out;
    arena_init(&out, NULL);
    text_init(&t, &out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Case c = cases[i];
        if (c.search != NULL) {
            case_run(&t, &c);
            continue;
        }
        c.search = "auto";
        case_run(&t, &c);
        c.options.effort = 1;
        for (size_t k = 0; k < sizeof quick / sizeof *quick; k++) {
            c.search = quick[k];
            case_run(&t, &c);
        }
        for (size_t k = 0; k < sizeof slow / sizeof *slow && c.n <= 26; k++) {
            c.search = slow[k];
            case_run(&t, &c);
        }
    }
    limits_put(&t);
    assert_golden(&out, FOUND, t.at);
    arena_release(&out);
}

TESTS(TEST(test_searches_find_what_they_found))
