/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the price (price.h): one leaf, and what its files do with all of them. */
#ifndef NEST_PRICE_LEAF_H
#define NEST_PRICE_LEAF_H

#include "nest/engines.h"
#include "nest/price.h"

/* The part of a level that one operand may fill and still find itself there the next time. */
#define PRICE_KEPT 0.5

/* An operand or the result of a leaf. */
typedef struct Touch {
    NodeRef node;
    NodeRef value; /* of a view of a block: the block's */
    const Access *access;
    bool written, adds;  /* to what is there */
    uint32_t alloc_loop; /* depth of its allocation loop: loops around it */
    double block;        /* bytes of its block */
    double sums;         /* times its bytes while loops add it up */
    double times;        /* how often a statement that does not fit reads it, */
    double part, lines;  /* and what one position of labels that run one by one touches, and
                           how often each line is when that does not fit */
    double bytes[NEST_DEPTH + 1]; /* F(X, p) */
    double runs[NEST_DEPTH + 1];  /* of contiguous ones among them, as they are touched */
    bool moves[NEST_DEPTH + 1];   /* does loop p - 1 have an axis of it? */
    double moved[MACHINE_LEVELS]; /* bytes that leave each level */
} Touch;

/* Runs of contiguous bytes, from the last dimension outward. */
typedef struct PriceRuns {
    double runs, run; /* how many; bytes of one */
    bool contiguous;  /* so far a run is all of its dimensions */
} PriceRuns;

static inline void price_runs_add(PriceRuns *r, double part, double whole)
{
    *(r->contiguous ? &r->run : &r->runs) *= part;
    r->contiguous = r->contiguous && part >= whole;
}

typedef struct LeafPrice {
    const Pricer *p;
    const Nest *nest;
    uint32_t item;
    NodeRef node;
    uint32_t depth;
    uint32_t loop[NEST_DEPTH]; /* outermost first */
    double trips[NEST_DEPTH];
    uint32_t n;
    Touch *touch;
    bool ahead;      /* its memory is asked for while it computes */
    Engines engines; /* of a systolic machine: of one execution */
    double executions;
    double seconds;   /* of all executions */
    double waits;     /* for the slowest level, */
    uint32_t slowest; /* which is this one */
    const Schedule *schedule;
    const double *extent; /* of its labels, in one execution */
    double pack
        [ROLE_BATCH]; /* seconds of the copies of each operand, with the waits for it, in all; */
    uint32_t before[ROLE_BATCH]; /* ... before so many loops around */
    int32_t *on;                 /* [nodes] see engines.h */
} LeafPrice;

static inline double price_typical(const Graph *g, Dim d)
{
    return (double)nest_typical(g, d);
}

/* ---- price_leaf.c ---- */
/* Sets the loops around the leaf and what it touches. */
void price_leaf_begin(Arena *scratch, LeafPrice *l);
/* Positions of label `label` in one iteration of the outermost p loops. */
double price_positions(const LeafPrice *l, int32_t label, uint32_t p);
/* Positions that one run of a loop over pairs reaches, on average. */
double price_pair_extent(const Nest *nest, const NestItem *item, double extent);
/* The role that an operand of a contraction with a schedule has. */
ScheduleRole price_role(const LeafPrice *l, uint32_t operand);
/* What threads leave of `seconds` that are spent in `met` executions of a loop of `n` iterations, of which the last may be a part; infinite: it
 * is not worth two threads. */
double price_shared(const Machine *m, double seconds, double met, double n);

/* ---- dense.c ---- Of a dense step: its arithmetic, and what threads leave of `seconds` (infinite: it is not worth two). */
double dense_seconds(const Machine *m, const Graph *g, const Node *n);
double dense_path(const Machine *m, const Graph *g, const Node *n, double seconds);

/* ---- parallel.c ---- */
#define LEAF_LOOPS 6
/* Loops that may be put around a leaf for threads to share, and the seconds that are left then, the best first. */
typedef struct LeafLoop {
    int32_t label;
    int64_t tile;
    double path;
} LeafLoop;
typedef struct LeafLoops {
    uint32_t n;
    LeafLoop at[LEAF_LOOPS];
} LeafLoops;
void price_leaf_loops(Arena *scratch, const LeafPrice *l, LeafLoops *out);

/* ---- threads.c ---- */
/* What threads share: of each loop, is it they who run its iterations; of each leaf, a level of its schedule, n_levels: the
 * batches, or NEST_NONE. */
typedef struct NestMarks {
    bool *loop;
    uint32_t *level;
    LeafLoops *loops; /* or null */
} NestMarks;
/* Seconds of the nest by the threads of the machine that share what is marked; or with `marks` what is best, which is written there.
 * *more: what one thread takes longer, as packed panels are not kept for all iterations of a loop that is shared. */
double price_path(const Pricer *p, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                  Arena *scratch, NestMarks *marks, double *more);

/* ---- price_count.c ---- */
/* What does not depend on levels: operations, and bytes of the workspace. */
void price_count(const Pricer *p, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                 NestCost *cost);

#endif
