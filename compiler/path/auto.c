/* SPDX-License-Identifier: Apache-2.0 */
/* The default: exact where the optimum is affordable; else starts from greedy, elimination and
 * bisection, then rounds of annealing and exact subtree re-optimisation from the best trees.
 * Work is counted in proposals. */
#include <string.h>

#include "path/search.h"

#define POOL       6
#define LARGE      1500   /* operands from which trees are improved by pieces */
#define WHOLE_TREE 6000   /* operands to which they are annealed whole */
#define EVERY      1000.0 /* a depth that lets no step drift */

/* Rounds differ in heat and depth, because networks do: what one finds easily another never
 * leaves. */
typedef struct Round {
    double hot, depth;
    bool other; /* not from the best tree */
} Round;

#define ROUNDS 8
static const Round rounds_small[ROUNDS] = {
    {1.5, EVERY, false}, {0.3, EVERY, false}, {0.8, 10.0, false},  {1.5, EVERY, true},
    {0.3, 20.0, false},  {0.8, EVERY, true},  {0.3, EVERY, false}, {1.5, 20.0, false},
};
static const Round rounds_large[ROUNDS] = {
    {1.5, EVERY, false}, {0.3, EVERY, false}, {1.5, EVERY, false}, {1.5, EVERY, true},
    {0.3, EVERY, false}, {1.5, EVERY, false}, {1.5, EVERY, false}, {0.3, EVERY, true},
};
#define SMALL  100 /* operands up to which drifting rounds pay */
#define LEVELS 50

typedef struct Pool { /* the best trees so far, best first */
    PathStep *steps[POOL];
    Score score[POOL];
    const char *from[POOL];
    uint32_t n;
} Pool;

static void pool_init(Pool *p, uint32_t n, Arena *arena)
{
    p->n = 0;
    for (uint32_t i = 0; i < POOL; i++) {
        p->steps[i] = ARENA_ARRAY(arena, n, PathStep);
    }
}

static void pool_add(Pool *p, const Net *net, const PathStep *steps, Score score,
                     const char *from)
{
    uint32_t at = p->n;
    while (at > 0 && score_less(score, p->score[at - 1])) {
        at--;
    }
    if (at == POOL || (at > 0 && !score_less(p->score[at - 1], score))) {
        return; /* too bad, or as good as one that is here */
    }
    uint32_t last = p->n < POOL ? p->n++ : POOL - 1;
    PathStep *room = p->steps[last];
    for (uint32_t i = last; i > at; i--) {
        p->steps[i] = p->steps[i - 1];
        p->score[i] = p->score[i - 1];
        p->from[i] = p->from[i - 1];
    }
    memcpy(room, steps, (net->n - 1) * sizeof *room);
    p->steps[at] = room;
    p->score[at] = score;
    p->from[at] = from;
}

static void starts_add(Search *s, const Net *net, Pool *pool, uint64_t budget)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    bool cheap = greedy_run(net, (GreedyStyle){1.0, 0.0}, &s->rng, s->arena, trial);
    pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena), "greedy");
    bool cheap_order = eliminate_run(net, 0.0, &s->rng, s->arena, trial);
    pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena), "eliminate");
    uint64_t runs = budget / 200 / net->n;
    uint64_t most = net->n <= LARGE ? 128 : 80; /* of large ones they take half the time */
    runs = runs > most ? most : runs;
    for (uint64_t i = 0; i < runs && !search_stopped(s); i++) {
        if (cheap) {
            GreedyStyle style = {0.1 + 3.9 * rng_unit(&s->rng),
                                 exp2(-10.0 * rng_unit(&s->rng))};
            cheap = greedy_run(net, style, &s->rng, s->arena, trial);
            pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena),
                     "random-greedy");
        }
        if (cheap_order && i % 8 == 0) {
            cheap_order =
                eliminate_run(net, exp2(-4.0 * rng_unit(&s->rng)), &s->rng, s->arena, trial);
            pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena),
                     "eliminate");
        }
    }
    uint64_t cuts = runs / 6;
    cuts = cuts > 12 ? 12 : cuts;
    for (uint64_t i = 0; i < cuts && net->n > 20 && !search_stopped(s); i++) {
        bisect_run(net, 0.02 + 0.38 * rng_unit(&s->rng), &s->rng, s->arena, trial);
        pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena), "bisect");
    }
    arena_reset(s->arena, mark);
}

/* Proposals: with the square of the operands to about a second at 75, then in proportion; a
 * part gets its share. */
uint64_t search_budget(const Search *s, const Net *net)
{
    uint64_t all = s->n_all < net->n ? net->n : s->n_all;
    uint64_t few = 200000 + all * all * 4000, many = all * 60000;
    uint64_t base = many < 24000000 ? 24000000 : many > 300000000 ? 300000000 : many;
    base = all < 75 && few < base ? few : base;
    return base / all * net->n * s->effort;
}

static bool exact_pays(const Search *s, const Net *net)
{
    double splits = 1.0;
    for (uint32_t k = 0; k < net->n && splits < 1e12; k++) {
        splits *= 3.0;
    }
    uint32_t all = s->n_all < net->n ? net->n : s->n_all;
    return splits <= 1e5 || splits <= 4e9 * net->n / all;
}

static void anneal_rounds(Search *s, const Net *net, Pool *pool, uint64_t budget)
{
    ArenaMark mark = arena_mark(s->arena);
    Tree t;
    tree_init(&t, net, s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    const Round *rounds = net->n <= SMALL ? rounds_small : rounds_large;
    for (uint32_t r = 0; r < ROUNDS && !search_stopped(s); r++) {
        bool other = rounds[r].other && pool->n > 1;
        uint32_t from = other ? 1 + (uint32_t)rng_below(&s->rng, pool->n - 1) : 0;
        tree_set(&t, &s->model, pool->steps[from], s->arena);
        subtree_improve(s, &t, 8, 1);
        uint64_t sweeps = budget / ROUNDS / net->n / LEVELS;
        Schedule plan = {rounds[r].hot, 0.02, rounds[r].depth, LEVELS, (uint32_t)sweeps + 1};
        anneal_run(s, &t, plan);
        subtree_improve(s, &t, 8, 20);
        tree_get(&t, trial, s->arena);
        pool_add(pool, net, trial, tree_total(&t, &s->model), "anneal");
        search_progress(s, "anneal", pool->score[0]);
    }
    tree_set(&t, &s->model, pool->steps[0], s->arena);
    subtree_improve(s, &t, 10, 20);
    tree_get(&t, trial, s->arena);
    pool_add(pool, net, trial, tree_total(&t, &s->model), pool->from[0]);
    arena_reset(s->arena, mark);
}

/* Improves the best few by pieces: which start is best shows only after a little work. */
static void large_rounds(Search *s, const Net *net, Pool *pool, uint64_t budget)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    uint32_t starts = net->n <= WHOLE_TREE && pool->n > 2 ? 3 : 1;
    for (uint32_t i = 0; i < starts; i++) {
        memcpy(trial, pool->steps[i], (net->n - 1) * sizeof *trial);
        large_improve(s, net, trial, budget / starts, starts > 1 ? 2 : 6);
        pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena), "anneal");
    }
    arena_reset(s->arena, mark);
}

static void improve(Search *s, const Net *net, Pool *pool, uint64_t budget)
{
    if (net->n > LARGE) {
        large_rounds(s, net, pool, net->n > WHOLE_TREE ? budget : budget / 8);
    }
    if (net->n <= WHOLE_TREE) {
        uint64_t wide = net->n_labels / 1024 + 1; /* wide sets take longer to weigh */
        anneal_rounds(s, net, pool, budget / wide);
    }
}

bool anneal_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    Pool pool;
    pool_init(&pool, net->n, s->arena);
    greedy_run(net, (GreedyStyle){1.0, 0.0}, &s->rng, s->arena, out);
    pool_add(&pool, net, out, tree_score(&s->model, net, out, s->arena), "greedy");
    improve(s, net, &pool, search_budget(s, net));
    memcpy(out, pool.steps[0], (net->n - 1) * sizeof *out);
    arena_reset(s->arena, mark);
    return true;
}

bool auto_search(Search *s, const Net *net, PathStep *out)
{
    if (net->n <= 10) {
        s->won = "exact";
        return exact_search(s, net, out);
    }
    ArenaMark mark = arena_mark(s->arena);
    Pool pool;
    pool_init(&pool, net->n, s->arena);
    uint64_t budget = search_budget(s, net);
    bool exact = exact_pays(s, net);
    budget = exact && budget > 500000 ? 500000 : budget;
    starts_add(s, net, &pool, budget);
    if (s->effort > 0) {
        improve(s, net, &pool, budget);
    }
    s->won = pool.from[0];
    memcpy(out, pool.steps[0], (net->n - 1) * sizeof *out);
    if (exact && exact_run(&s->model, net, pool.score[0].cost, s->arena, out)) {
        s->won = "exact";
        s->proved = true;
    }
    arena_reset(s->arena, mark);
    return true;
}
