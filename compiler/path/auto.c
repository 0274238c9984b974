/* SPDX-License-Identifier: Apache-2.0 */
/* The default: exact where the optimum is affordable; else starts from greedy, elimination and bisection, then rounds of
 * annealing and exact subtree re-optimisation from the best trees. Work is counted in proposals. */
#include <string.h>

#include "path/search.h"

#define POOL              6
#define LARGE             600 /* operands to which trees are annealed whole, else by pieces */
#define FAR               1.25 /* times the log of the best cost: a kind of starts that is given up */
#define WHOLE_TREE        2500   /* operands to which the tree is one piece */
#define PIECE             1500   /* leaves of a piece of larger ones */
#define PIECE_MANY        600    /* of those of more than LARGE_MANY operands */
#define FEW_TREES         6000   /* operands to which several are kept */
#define EVERY             1000.0 /* a depth that lets no step drift */
#define GREEDY_MOST       128
#define ORDERS_MOST       16
#define WORK_PER_PROPOSAL 2 /* list elements that starts of one kind may touch */

/* What takes two seconds to so many operands, and more in proportion. */
#define LARGE_MANY 10000
#define LARGE_BASE 90000000u
#define LARGE_EACH 1000u
#define LARGE_MOST 240000000u

/* Networks of more operands whose first plan has no step over more labels are narrow: small
 * treewidth leaves little to find, and working on pieces finds it. Their unit of effort: */
#define NARROW_WIDTH 20
#define NARROW_BASE  14000000u
#define NARROW_EACH  1000u
#define NARROW_PIECE 320

/* Elements of lists that starts touch while a proposal is made. */
#define GREEDY_PACE 8
#define LIST_PACE   3
#define SWEEP_STEPS 40u /* proposals that take as long as one operand of a sweep */

/* First each start is annealed from hot, which settles what region of the trees it ends in;
 * then the best few go on from lower temperatures, each in its own region. Shares of the budget
 * sum to 1. */
typedef struct Round {
    double share, hot, cold, depth;
    uint32_t rank; /* of the trees, best first */
} Round;

#define FIRST_SHARE 0.4 /* of all starts together */
#define FIRST_HOT   1.5
#define COLD        0.03 /* below this nothing moves */
#define ROUNDS      6
static const Round rounds_small[ROUNDS] = {
    {0.1, 0.8, COLD, EVERY, 0}, {0.1, 1.5, COLD, EVERY, 1}, {0.1, 1.5, COLD, EVERY, 0},
    {0.1, 0.8, COLD, 10.0, 0},  {0.1, 0.8, COLD, EVERY, 2}, {0.1, 0.3, 0.02, 20.0, 0},
};
static const Round rounds_large[ROUNDS] = {
    {0.14, 0.8, COLD, EVERY, 0}, {0.14, 0.8, COLD, EVERY, 1}, {0.12, 0.8, COLD, EVERY, 2},
    {0.1, 0.8, 0.05, EVERY, 0},  {0.05, 0.3, 0.02, EVERY, 0}, {0.05, 0.3, 0.02, EVERY, 0},
};
#define SMALL  100 /* operands up to which drifting rounds pay */
#define LEVELS 50

typedef struct Pool { /* the best trees so far, best first */
    PathStep *steps[POOL];
    Score score[POOL];
    const char *from[POOL];
    uint32_t n, most;
} Pool;

static void pool_init(Pool *p, uint32_t n, uint32_t most, Arena *arena)
{
    *p = (Pool){.most = most};
    for (uint32_t i = 0; i < most; i++) {
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
    if (at == p->most || (at > 0 && !score_less(p->score[at - 1], score))) {
        return; /* too bad, or as good as one that is here */
    }
    uint32_t last = p->n < p->most ? p->n++ : p->most - 1;
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

/* Adds the best of `from`, if any. */
static void pool_join(Pool *p, const Net *net, const Pool *from)
{
    if (from->n > 0) {
        pool_add(p, net, from->steps[0], from->score[0], from->from[0]);
    }
}

/* A better tree takes the place of the one it was made from. */
static void pool_better(Pool *p, const Net *net, uint32_t rank, const PathStep *steps,
                        Score score)
{
    if (!score_less(score, p->score[rank])) {
        return;
    }
    PathStep *room = p->steps[rank];
    while (rank > 0 && score_less(score, p->score[rank - 1])) {
        p->steps[rank] = p->steps[rank - 1];
        p->score[rank] = p->score[rank - 1];
        p->from[rank] = p->from[rank - 1];
        rank--;
    }
    memcpy(room, steps, (net->n - 1) * sizeof *room);
    p->steps[rank] = room;
    p->score[rank] = score;
    p->from[rank] = "anneal";
}

#define STARTS_EACH 2
typedef struct Starts { /* the best few of each kind: kinds end in different regions */
    Pool greedy, eliminate, bisect;
} Starts;

static void starts_note(Search *s, const Net *net, Pool *kind, Pool *pool,
                        const PathStep *trial, const char *from, uint64_t work)
{
    Score score = tree_score(&s->model, net, trial, s->arena);
    pool_add(kind, net, trial, score, from);
    pool_add(pool, net, trial, score, from);
    search_count(s, net->n + work);
}

#define RUNS_MOST (GREEDY_MOST + ORDERS_MOST + 8) /* of all starts */

/* Most labels in a step of the tree. */
static uint32_t tree_width(const Net *net, const PathStep *steps, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    Live v;
    live_init(&v, net, scratch);
    uint32_t most = 0;
    for (uint32_t k = 0; k + 1 < net->n; k++) {
        uint32_t a = steps[k].a, b = steps[k].b, i = 0, j = 0, n = 0;
        for (; i < v.n_legs[a] || j < v.n_legs[b]; n++) {
            bool x = j == v.n_legs[b] || (i < v.n_legs[a] && v.legs[a][i] <= v.legs[b][j]);
            bool y = i == v.n_legs[a] || (j < v.n_legs[b] && v.legs[b][j] <= v.legs[a][i]);
            i += x;
            j += y;
        }
        most = n > most ? n : most;
        live_merge(&v, a, b);
    }
    arena_reset(scratch, mark);
    return most;
}

static bool is_narrow(Search *s, const Net *net, const Pool *pool)
{
    return net->n > LARGE && tree_width(net, pool->steps[0], s->arena) <= NARROW_WIDTH;
}

typedef struct Effort { /* list elements touched by the starts so far */
    uint64_t greedy, order;
    double greedy_cost, order_cost; /* log2, of the first of each kind */
} Effort;

/* Sweeps from one end, and away from a light cut. */
static void starts_swept(Search *s, const Net *net, Starts *kinds, Pool *pool)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    uint8_t *side = ARENA_ARRAY(s->arena, net->n, uint8_t);
    uint32_t *level = ARENA_ARRAY(s->arena, net->n, uint32_t);
    for (int cut = 0; cut < 2 && !search_stopped(s); cut++) {
        if (cut) {
            search_count(s, bisect_halves(net, 0.1, &s->rng, s->arena, side) / LIST_PACE);
        }
        sweep_levels(net, cut ? side : NULL, s->arena, level);
        for (uint32_t ahead = 0; ahead <= 8; ahead += ahead < 4 ? 2 : 4) {
            Score score;
            if (sweep_run(&s->model, net, level, ahead, s->arena, trial, &score)) {
                pool_add(&kinds->bisect, net, trial, score, "sweep");
                pool_add(pool, net, trial, score, "sweep");
            }
            search_count(s, SWEEP_STEPS * (uint64_t)net->n);
        }
    }
    arena_reset(s->arena, mark);
}

/* Both kinds without noise. */
static Effort starts_first(Search *s, const Net *net, Starts *kinds, Pool *pool)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    uint64_t greedy = greedy_run(net, (GreedyStyle){1.0, 0.0, 0}, &s->rng, s->arena, trial);
    starts_note(s, net, &kinds->greedy, pool, trial, "greedy", greedy / GREEDY_PACE);
    double greedy_cost = tree_score(&s->model, net, trial, s->arena).cost;
    uint64_t order = eliminate_run(net, 0.0, &s->rng, s->arena, trial);
    starts_note(s, net, &kinds->eliminate, pool, trial, "eliminate", order / LIST_PACE);
    double order_cost = tree_score(&s->model, net, trial, s->arena).cost;
    if (net->n > LARGE) {
        starts_swept(s, net, kinds, pool);
    }
    arena_reset(s->arena, mark);
    return (Effort){greedy, order, greedy_cost, order_cost};
}

/* `most`: list elements that each kind may touch once it has a few runs. */
static void starts_more(Search *s, const Net *net, Starts *kinds, Pool *pool, uint64_t budget,
                        uint64_t most, Effort first)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    uint64_t greedy = first.greedy, order = first.order, least = budget / 1000 / net->n;
    bool large = net->n > LARGE;
    uint64_t few = net->n > FEW_TREES ? 1 : 2;
    least = large && budget > 0 ? 1 : least > 6 ? 6 : least;
    uint64_t halvings = net->n <= 20 || budget == 0 ? 0 : large ? few : least;
    double far = large ? pool->score[0].cost * FAR : INFINITY;
    bool cheap = greedy < RUN_WORK_MOST && first.greedy_cost <= far;
    bool cheap_order = order < RUN_WORK_MOST && first.order_cost <= far;
    for (uint64_t i = 0; i < GREEDY_MOST && cheap && !search_stopped(s); i++) {
        if (i >= least && greedy >= most) {
            break;
        }
        double cost_mod = 0.1 + 3.9 * rng_unit(&s->rng);
        double temperature = exp2(-10.0 * rng_unit(&s->rng));
        GreedyStyle style = {cost_mod, temperature, large ? most / 4 : 0};
        uint64_t work = greedy_run(net, style, &s->rng, s->arena, trial);
        cheap = work < RUN_WORK_MOST;
        greedy += work;
        work = large && !cheap ? most / 4 : work;
        starts_note(s, net, &kinds->greedy, pool, trial, "random-greedy", work / GREEDY_PACE);
    }
    for (uint64_t i = 0; i < ORDERS_MOST && cheap_order && !search_stopped(s); i++) {
        if (i >= least && order >= most) {
            break;
        }
        uint64_t work =
            eliminate_run(net, exp2(-4.0 * rng_unit(&s->rng)), &s->rng, s->arena, trial);
        cheap_order = work < RUN_WORK_MOST;
        order += work;
        starts_note(s, net, &kinds->eliminate, pool, trial, "eliminate", work / LIST_PACE);
    }
    for (uint64_t i = 0; i < halvings && !search_stopped(s); i++) {
        double imbalance = (large ? 0.01 : 0.02) + (large ? 0.04 : 0.38) * rng_unit(&s->rng);
        uint64_t work = bisect_run(net, imbalance, &s->rng, s->arena, trial);
        starts_note(s, net, &kinds->bisect, pool, trial, "bisect", work / LIST_PACE);
    }
    arena_reset(s->arena, mark);
}

/* Proposals: with the square of the operands to about a second at 75, then in proportion to
 * LARGE; from there all that is done counts, and the bound is in steps: see docs/paths.md. A part
 * gets its share. */
uint64_t search_budget(const Search *s, const Net *net)
{
    uint64_t all = s->n_all < net->n ? net->n : s->n_all;
    uint64_t few = 200000 + all * all * 4000, many = all * 75000;
    uint64_t more = all > LARGE_MANY ? (all - LARGE_MANY) * LARGE_EACH : 0;
    uint64_t large = LARGE_BASE + (more < LARGE_MOST ? more : LARGE_MOST);
    uint64_t base = many < 26000000 ? 26000000 : all <= LARGE ? many : large;
    base = all < 75 && few < base ? few : base;
    return base / all * net->n;
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

/* Tells of the best tree of all, which may be one of an earlier stage. */
static void search_note(Search *s, const Pool *pool)
{
    bool better = s->doing == NULL || score_less(pool->score[0], s->best);
    search_progress(s, better ? pool->from[0] : s->doing, better ? pool->score[0] : s->best);
}

/* One fall of the temperature from a tree, exact re-optimisation before and after. */
static Score anneal_round(Search *s, Tree *t, const PathStep *from, Schedule plan,
                          PathStep *trial)
{
    tree_set(t, &s->model, from, s->arena);
    subtree_improve(s, t, 8, 1);
    anneal_run(s, t, plan);
    subtree_improve(s, t, 8, 20);
    tree_get(t, trial, s->arena);
    return tree_total(t, &s->model);
}

/* Under the size objective some rounds anneal for multiply-adds, with no tensor larger than the
 * tree's largest, or each below it; all trees are scored alike. */
static Score anneal_mixed(Search *s, Tree *t, const Pool *pool, uint32_t rank, uint32_t r,
                          Schedule plan, PathStep *trial)
{
    Model asked = s->model;
    if (asked.objective == PATH_SIZE && r % 2 == 1) {
        double most = pool->score[rank].largest - (r % 4 == 1 ? 1e-6 : 0.0);
        s->model.objective = PATH_FLOPS;
        s->model.limit = most < asked.limit ? most : asked.limit;
    }
    anneal_round(s, t, pool->steps[rank], plan, trial);
    s->model = asked;
    return tree_total(t, &s->model);
}

static void anneal_starts(Search *s, const Net *net, const Starts *starts, Tree *t, Pool *pool,
                          double sweeps)
{
    uint64_t base = s->done - s->base;
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    const Pool *kind[] = {&starts->greedy, &starts->eliminate, &starts->bisect};
    uint32_t n = kind[0]->n + kind[1]->n + kind[2]->n;
    if (n == 0) {
        return;
    }
    uint32_t each = (uint32_t)(sweeps * FIRST_SHARE / n) + 1;
    Schedule plan = {FIRST_HOT, COLD, EVERY, LEVELS, each};
    PathStep *first = arena_copy(s->arena, pool->steps[0], (net->n - 1) * sizeof *first);
    Score first_score = pool->score[0];
    const char *first_from = pool->from[0];
    pool->n = 0; /* starts that were not annealed are no match for those that were */
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < kind[i]->n && !search_stopped(s); k++) {
            Score score = anneal_round(s, t, kind[i]->steps[k], plan, trial);
            pool_add(pool, net, trial, score, "anneal");
            search_note(s, pool);
        }
    }
    search_reach(s, base + (uint64_t)(sweeps * FIRST_SHARE) * LEVELS * net->n);
    pool_add(pool, net, first, first_score, first_from); /* when the search was stopped */
}

/* `best` (may be empty) is of an earlier stage. */
static void anneal_rounds(Search *s, const Net *net, const Starts *starts, const Pool *best,
                          Pool *pool, uint64_t budget)
{
    ArenaMark mark = arena_mark(s->arena);
    Tree t;
    tree_init(&t, net, s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    double sweeps = (double)budget / net->n / LEVELS;
    anneal_starts(s, net, starts, &t, pool, sweeps);
    pool_join(pool, net, best);
    for (uint32_t r = 0; r < ROUNDS && !search_stopped(s); r++) {
        const Round *round = net->n <= SMALL ? &rounds_small[r] : &rounds_large[r];
        uint32_t rank = round->rank < pool->n ? round->rank : 0;
        uint32_t each = (uint32_t)(sweeps * round->share) + 1;
        Schedule plan = {round->hot, round->cold, round->depth, LEVELS, each};
        Score score = anneal_mixed(s, &t, pool, rank, r, plan, trial);
        pool_better(pool, net, rank, trial, score);
        search_note(s, pool);
    }
    tree_set(&t, &s->model, pool->steps[0], s->arena);
    subtree_improve(s, &t, 10, 20);
    tree_get(&t, trial, s->arena);
    pool_better(pool, net, 0, trial, tree_total(&t, &s->model));
    arena_reset(s->arena, mark);
}

/* Improves the best few by pieces: which start is best shows only after a little work. */
static void large_rounds(Search *s, const Net *net, Pool *pool, uint64_t budget,
                         uint32_t starts, uint32_t piece)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    for (uint32_t i = 0; i < starts && i < pool->n && !search_stopped(s); i++) {
        memcpy(trial, pool->steps[i], (net->n - 1) * sizeof *trial);
        large_improve(s, net, trial, budget / starts, piece);
        pool_add(pool, net, trial, tree_score(&s->model, net, trial, s->arena), "anneal");
        search_note(s, pool);
    }
    arena_reset(s->arena, mark);
}

static void improve(Search *s, const Net *net, const Starts *starts, const Pool *best,
                    Pool *pool, uint64_t budget)
{
    if (net->n > LARGE) {
        pool_join(pool, net, best);
        uint32_t piece = net->n <= LARGE_MANY ? PIECE : PIECE_MANY;
        large_rounds(s, net, pool, budget, 1, net->n <= WHOLE_TREE ? net->n : piece);
    } else {
        uint64_t wide = net->n_labels / 1024 + 1; /* wide sets take longer to weigh */
        anneal_rounds(s, net, starts, best, pool, budget / wide);
    }
}

/* Trees of large networks take room, and few of them are gone on with. */
static uint32_t pool_most(const Net *net)
{
    return net->n <= FEW_TREES ? POOL : 1;
}

static void pools_init(Starts *starts, Pool *pool, uint32_t most, uint32_t each, const Net *net,
                       Arena *arena)
{
    pool_init(pool, net->n, most, arena);
    pool_init(&starts->greedy, net->n, each, arena);
    pool_init(&starts->eliminate, net->n, each, arena);
    pool_init(&starts->bisect, net->n, each, arena);
}

bool anneal_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    Pool best;
    pool_init(&best, net->n, 1, s->arena);
    uint64_t unit = search_budget(s, net);
    search_plan(s, net->n + s->effort * unit);
    for (uint32_t k = 0; k == 0 || (search_stage(s->effort, k) > 0 && !search_stopped(s));
         k++) {
        ArenaMark stage = arena_mark(s->arena);
        Pool pool;
        Starts starts;
        pools_init(&starts, &pool, pool_most(net), 1, net, s->arena);
        greedy_run(net, (GreedyStyle){1.0, 0.0, 0}, &s->rng, s->arena, out);
        starts_note(s, net, &starts.greedy, &pool, out, "greedy", 0);
        search_note(s, &pool);
        improve(s, net, &starts, &best, &pool, search_stage(s->effort, k) * unit);
        pool_join(&best, net, &pool);
        arena_reset(s->arena, stage);
    }
    memcpy(out, best.steps[0], (net->n - 1) * sizeof *out);
    arena_reset(s->arena, mark);
    return true;
}

/* One stage of the default: starts, and work on the best of them and on `best`, which takes the
 * result when it is better. */
static void auto_stage(Search *s, const Net *net, uint64_t unit, uint32_t units, Pool *best)
{
    ArenaMark mark = arena_mark(s->arena);
    uint64_t base = s->done - s->base, budget = units * unit;
    Pool pool;
    Starts starts; /* larger networks go on from the pool */
    pools_init(&starts, &pool, pool_most(net), net->n <= LARGE ? STARTS_EACH : 0, net,
               s->arena);
    Effort first = starts_first(s, net, &starts, &pool);
    search_note(s, &pool);
    bool narrow = is_narrow(s, net, &pool);
    if (narrow) {
        uint64_t enough = units * (NARROW_BASE + (uint64_t)NARROW_EACH * net->n);
        enough = budget < enough ? budget : enough;
        s->planned -= budget - enough;
        budget = enough;
    }
    uint64_t most = net->n > LARGE ? budget / 4 : budget * WORK_PER_PROPOSAL;
    starts_more(s, net, &starts, &pool, budget, most, first);
    search_reach(s, base + (uint64_t)RUNS_MOST * net->n);
    search_note(s, &pool);
    if (budget > 0 && narrow) {
        pool_join(&pool, net, best);
        large_rounds(s, net, &pool, budget, pool.n > 1 ? 2 : 1, NARROW_PIECE);
    } else if (budget > 0) {
        uint64_t used = s->done - s->base - base;
        bool shared = net->n > LARGE && used < budget / 2;
        improve(s, net, &starts, best, &pool,
                net->n <= LARGE ? budget
                : shared        ? budget - used
                                : budget / 2);
    }
    pool_join(best, net, &pool);
    search_reach(s, base + (uint64_t)RUNS_MOST * net->n + budget);
    arena_reset(s->arena, mark);
}

bool auto_search(Search *s, const Net *net, PathStep *out)
{
    if (net->n <= 10) {
        s->won = "exact";
        return exact_search(s, net, out);
    }
    bool free = s->model.limit >= INFINITY && s->model.objective == PATH_FLOPS;
    if (free && (chain_run(net, s->arena, out) || inward_run(&s->model, net, s->arena, out))) {
        s->won = "structure";
        s->proved = true;
        search_count(s, net->n);
        return true;
    }
    ArenaMark mark = arena_mark(s->arena);
    Pool best;
    pool_init(&best, net->n, 1, s->arena);
    bool exact = exact_pays(s, net);
    uint64_t unit = search_budget(s, net), subsets = exact ? (uint64_t)1 << net->n : 0;
    uint32_t effort = exact && s->effort > 1 ? 1 : s->effort; /* it only bounds the exact one */
    unit = exact && unit > 500000 ? 500000 : unit;
    search_plan(s, (uint64_t)RUNS_MOST * net->n + effort * unit + subsets);
    auto_stage(s, net, unit, search_stage(effort, 0), &best);
    for (uint32_t k = 1; search_stage(effort, k) > 0 && !search_stopped(s); k++) {
        auto_stage(s, net, unit, search_stage(effort, k), &best);
    }
    s->won = best.from[0];
    memcpy(out, best.steps[0], (net->n - 1) * sizeof *out);
    if (exact && exact_run(&s->model, net, best.score[0], s->arena, s, out)) {
        s->won = "exact";
        s->proved = true;
    }
    arena_reset(s->arena, mark);
    return true;
}
