/* SPDX-License-Identifier: Apache-2.0 */
/* What strategies share: the task at hand (model, random numbers, budget, scratch), the list
 * form of a network under contraction, and the bitset form of a tree. */
#ifndef PATH_SEARCH_H
#define PATH_SEARCH_H

#include "base/map.h"
#include "path/cost.h"

struct Search {
    Model model;
    Arena *arena; /* scratch: reset by whoever took the mark */
    Rng rng;
    uint32_t effort;
    uint32_t n_all; /* operands of the whole problem: each connected part gets its share of the
                       work */
    const PathOptions *options;
    const char *won; /* the row that found the tree */
    bool proved;
    /* Steps, for progress: one is a proposal of the annealer, a contraction of a greedy or
     * elimination run, a subset of the exact search. */
    uint64_t done, planned;
    uint64_t base;  /* done before the part at hand */
    uint64_t later; /* guess for what comes after it */
    uint64_t told;  /* done when progress was last told */
    const char *doing;
    Score best; /* as last told */
    /* Slicing (memory limit): labels of the net at hand with `sliced` set have extent 1 and
     * multiply the cost. */
    uint8_t *sliced; /* by label of the net; null: the strategy must not slice */
};

static inline bool search_stopped(const Search *s)
{
    return s->options->interrupt != NULL && *s->options->interrupt != 0;
}

/* A strategy says how many steps it plans, then counts them; one that ends a phase early
 * reaches the phase's end at once. Progress is told when the best so far is, and every few
 * million steps. */
void search_plan(Search *s, uint64_t steps);
void search_count(Search *s, uint64_t steps);
/* Says how far it is, to who asked for that. */
void search_tell(Search *s);
void search_reach(Search *s, uint64_t steps);
void search_progress(Search *s, const char *strategy, Score best);

/* ---- a network under contraction, as sorted lists (any size) ---- */

typedef struct Live {
    const Net *net;
    Arena *arena;
    uint32_t n; /* tensors so far, dead ones included */
    uint32_t **legs;
    uint32_t *n_legs;
    double *size; /* log2 */
    uint8_t *dead;
    uint32_t *holders;  /* by label: live tensors that hold it, plus one when open */
    uint32_t *pool[33]; /* free lists by size class */
    uint64_t work;      /* list elements touched, to bound searches on hostile networks */
} Live;

void live_init(Live *v, const Net *net, Arena *arena);
/* log2 of the union and, in *result, of what stays after contracting a and b. */
double live_sizes(Live *v, uint32_t a, uint32_t b, double *result);
/* Contracts; returns the new tensor. */
uint32_t live_merge(Live *v, uint32_t a, uint32_t b);
/* Merges what is left, smallest first, appending steps. */
void live_finish(Live *v, PathStep *out, uint32_t *n_steps);

Score tree_score(const Model *m, const Net *net, const PathStep *steps, Arena *scratch);

/* ---- a tree as bitsets: leaves 0 .. n-1, inner nodes n .. 2n-2, the root last ---- */

typedef struct Run { /* words of the bitsets whose labels all weigh the same */
    uint32_t from, to;
    uint64_t blocks; /* of a sparse tree: those it has words in */
    double weight;
} Run;

typedef struct Tree {
    uint32_t n, words;
    uint32_t n_runs; /* uniform runs; words from `mixed` on hold unlike weights */
    uint32_t mixed;
    Run *run;
    uint32_t *bit;   /* by label of the net: its bit */
    uint32_t *label; /* by bit: label of the net, or UINT32_MAX */
    double *bit_weight;
    uint64_t *open;         /* labels of the output */
    uint64_t *keep;         /* labels not sliced */
    uint32_t *left, *right; /* by node; meaningless for leaves */
    uint64_t *leaf;         /* by leaf, `words` each: all labels */
    uint64_t *legs;         /* by node, `words` each: what is open and not sliced */
    double *size, *cost;    /* by node: log2 of the tensor, of the step */
    double *both;           /* by inner node: log2 of all labels of its step */
    bool edges;             /* no label has more than two holders, the output being one */
    bool sparse;            /* wide sets: `some` tells which blocks of words hold anything */
    uint32_t block;         /* words of a block: 64 blocks or fewer */
    uint64_t *some;         /* by node */
} Tree;

void tree_init(Tree *t, const Net *net, Arena *arena);
/* Copies shape and caches. Both made for the same net. */
void tree_copy(Tree *to, const Tree *from);
Tree tree_clone(const Tree *t, Arena *arena);
void tree_set(Tree *t, const Model *m, const PathStep *steps, Arena *scratch);
void tree_get(const Tree *t, PathStep *steps, Arena *scratch);
/* Recomputes legs, sizes and costs bottom up, after a change of shape or of `keep`. */
void tree_refresh(Tree *t, const Model *m, Arena *scratch);
/* One label is sliced, or no more: what tree_refresh would make of it, in time independent of
 * the number of labels. */
void tree_slice(Tree *t, const Model *m, uint32_t bit);
void tree_unslice(Tree *t, const Model *m, uint32_t bit, Arena *scratch);
Score tree_total(const Tree *t, const Model *m);
/* log2 of the sum of what the steps cost: of the score only where that is the objective. */
double tree_energy(const Tree *t);
/* Nodes with children before parents: inner nodes only, n - 1 of them. */
void tree_postorder(const Tree *t, uint32_t *order, uint32_t *stack);

static inline uint64_t *tree_legs(const Tree *t, uint32_t node)
{
    return t->legs + (size_t)node * t->words;
}

static inline uint32_t word_bits(uint64_t x)
{
#if defined(__POPCNT__) || defined(__aarch64__)
    return (uint32_t)__builtin_popcountll(x);
#else
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)((x * 0x0101010101010101u) >> 56);
#endif
}

/* To be called where legs were written. */
void tree_mark(Tree *t, uint32_t node);
double tree_weigh(const Tree *t, const uint64_t *set);

/* ---- the strategies, and the parts others build on ---- */

bool exact_search(Search *s, const Net *net, PathStep *out);
bool greedy_search(Search *s, const Net *net, PathStep *out);
bool random_greedy_search(Search *s, const Net *net, PathStep *out);
bool eliminate_search(Search *s, const Net *net, PathStep *out);
bool bisect_search(Search *s, const Net *net, PathStep *out);
bool anneal_search(Search *s, const Net *net, PathStep *out);
bool auto_search(Search *s, const Net *net, PathStep *out);

typedef struct GreedyStyle {
    double cost_mod;    /* 1: opt_einsum's */
    double temperature; /* 0: none */
    uint64_t most;      /* list elements that it may touch; 0: RUN_WORK_MOST */
} GreedyStyle;
/* Both return the work done, in elements of lists touched; RUN_WORK_MOST when a run was cut
 * short because it took more (the tree is complete all the same). */
#define RUN_WORK_MOST 400000000u
uint64_t greedy_run(const Net *net, GreedyStyle style, Rng *rng, Arena *scratch, PathStep *out);
uint64_t eliminate_run(const Net *net, double temperature, Rng *rng, Arena *scratch,
                       PathStep *out);
/* By operand: how far it is from one end, or, where `side` is not null, from the cut between sides. */
void sweep_levels(const Net *net, const uint8_t *side, Arena *scratch, uint32_t *level);
/* Looks `ahead` of the nearest operand left. False where the network is in parts. */
bool sweep_run(const Model *m, const Net *net, const uint32_t *level, uint32_t ahead,
               Arena *scratch, PathStep *out, Score *score);
uint64_t bisect_run(const Net *net, double imbalance, Rng *rng, Arena *scratch, PathStep *out);
/* Sides of a light cut through the whole network. */
uint64_t bisect_halves(const Net *net, double imbalance, Rng *rng, Arena *scratch,
                       uint8_t *side);

/* Corners of a triangle. */
typedef struct PolygonTriangle {
    uint32_t at[3];
} PolygonTriangle;
/* n - 2 triangles of least total product of their corners' weights (all above 0); n >= 3. */
void polygon_triangulate(const double *weight, uint32_t n, Arena *scratch,
                         PolygonTriangle *out);
/* The optimum for multiply-adds of a chain or ring of matrices; false: it is none. */
bool chain_run(const Net *net, Arena *scratch, PathStep *out);
/* The same of a tree without open labels whose operands have few labels each. */
bool inward_run(const Model *m, const Net *net, Arena *scratch, PathStep *out);

/* Exact search over all subsets of at most EXACT_MOST operands; `known` is the score of a known
 * tree, which bounds the search where it is not over the limit. False when nothing as good
 * within the limit exists, or when `watch` (may be null: its steps are counted) was stopped. */
#define EXACT_MOST 24
bool exact_run(const Model *m, const Net *net, Score known, Arena *scratch, Search *watch,
               PathStep *out);

/* Replaces subtrees of up to `leaves` leaves by exact ones; rounds until nothing improves or
 * `rounds` is reached. Returns whether anything did. */
bool subtree_improve(Search *s, Tree *t, uint32_t leaves, uint32_t rounds);

typedef struct Schedule {
    double hot, cold; /* temperatures, in log2 of the local cost */
    double depth;     /* steps cheaper than the tree by more than this (log2) move freely */
    uint32_t levels, sweeps;
} Schedule;
/* Words of a set that take as long to weigh as all else of a proposal. */
#define ANNEAL_WIDE 24u
double schedule_heat(const Schedule *plan, uint32_t level);
void anneal_run(Search *s, Tree *t, Schedule plan);

/* The same for networks of any size on steps, piece by piece of `piece` leaves, until `budget` steps are done. */
void large_improve(Search *s, const Net *net, PathStep *steps, uint64_t budget, uint32_t piece);

#define WALK_STEPS 512
typedef struct Walk {    /* what sweeps carry along */
    uint64_t state;      /* of the random numbers */
    const double *table; /* -ln at WALK_STEPS points of (0, 1) */
    uint32_t *node;      /* those to visit */
    uint32_t n_nodes;
    double least; /* cost of the best tree met between sweeps */
} Walk;
Walk walk_new(Search *s, uint32_t n);
/* As many proposals as `sweeps` visits of all nodes are. */
void anneal_sweeps(Search *s, Tree *t, Walk *walk, double heat, double depth, uint32_t sweeps);

/* Finds a tree and the labels to slice (s->sliced, by label of the net) together, so that no
 * tensor is above the limit. `out` holds a first tree. Returns the log2 cost over all slices.
 */
double slice_search(Search *s, const Net *net, PathStep *out);
/* The proposals that it plans. */
uint64_t slice_budget(const Search *s, const Net *net);
/* Proposals that one unit of effort grants. */
uint64_t search_budget(const Search *s, const Net *net);
/* Work comes in stages, each a search of its own that goes on from the best so far: one unit of
 * effort first, so that every effort begins with what the least does; then larger ones. Units
 * of stage `stage`; 0: no more. */
uint32_t search_stage(uint32_t effort, uint32_t stage);

#endif
