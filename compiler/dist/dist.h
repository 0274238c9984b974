/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel on ranks: which labels are cut over which axes of the mesh, what each rank computes (local kernels, which are graphs
 * as any other), and what moves between ranks. The plan is a list of lines of the kernel's head (`ranks "..."`), which stages
 * carry along without reading them; here they are made, read and checked.
 *
 * Owner computes: a label that is cut has one owner for each block of it, and everything with that label is computed there from
 * operands that lie there. What is summed over a cut label is partial until it is reduced. The plan does not depend on how many
 * ranks there are: blocks are whole leaves, sums over a cut label add up leaves in a fixed tree, and the mesh decides only who
 * computes which leaf, on a grid of ranks that each call chooses for itself. So results have the same bits on every mesh.
 *
 * Operands of a large sum over a cut label come leaf by leaf: for matrices SUMMA, with memory for one panel of each. A ring of shifts would
 * move the same bytes and hold two blocks; half a ring halves the bytes of a symmetric product, pairs divide them by the square root of the
 * ranks. There are no layouts that change inside of a kernel, and no `rank` reductions, whose bits depend on the number of ranks. */
#ifndef DIST_DIST_H
#define DIST_DIST_H

#include "graph/graph.h"

/* Axes, and cuts of one dimension, at most. */
#define DIST_AXES 8
/* Cuts, at most: those of slices are many, of few leaves each. */
#define DIST_CUTS 16
/* Leaves of a group of slices, at most. */
#define DIST_SLICES 1024

/* How a caller's array lies. */
typedef struct DistPiece {
    uint32_t axis, dim;
    uint32_t leaves; /* the dimension is dealt in so many, or as many as it has positions */
} DistPiece;

typedef struct DistArg {
    Sym name;
    bool partial, result; /* of an inout parameter: not result */
    uint32_t n_pieces;
    const DistPiece *piece; /* of one dimension: the outer axis first */
} DistArg;

/* A label of the kernel that is cut over an axis of the grid: the ranks, as work is shared out among them. */
typedef struct DistCut {
    Dim extent;
    uint32_t axis, leaves;
    /* 1 + the number of the cut with which it is dealt as pairs of leaves; 0: none */
    uint32_t mate;
    /* 1 + the number of the first cut of its slices, which are dealt as one range of tuples of leaves; 0: it is none of slices */
    uint32_t group;
} DistCut;

/* Has each leaf of slices one position, whatever the sizes of a call? Local kernels that are called for leaves know it. */
static inline bool dist_cut_is_single(const DistCut *c)
{
    return c->group > 0 && c->extent.sym < 0 && c->extent.n <= (int64_t)c->leaves;
}

/* What a rank holds: a whole argument, a block of it, or of a value of the kernel. */
typedef struct DistValue {
    DType dtype;
    uint32_t rank;
    const Dim *shape;
    const int32_t *cut; /* [rank]: the cut of each dimension, or -1 */
    Op fold;            /* OP_COPY: complete; else what leaves are combined by */
    uint32_t n_over;    /* partial: over these cuts, the outer first */
    const uint32_t *over;
    /* complete, with cuts in `over`: this dimension of the block is dealt once more, over their axes */
    uint32_t spread;
} DistValue;

/* Cuts that were not chosen. */
typedef struct DistOther {
    uint32_t percent; /* its time, of the chosen one's, on 64 ranks */
    uint32_t n_cuts;  /* 0: every rank computes all */
    const DistCut *cut;
} DistOther;

typedef enum DistKind { DIST_READ, DIST_LOCAL, DIST_REDUCE, DIST_WRITE } DistKind;

typedef struct DistStep {
    DistKind kind;
    uint32_t arg;      /* READ, WRITE */
    bool by_leaf;      /* READ: the step that reads the value brings what it needs, by leaf */
    uint32_t value;    /* READ: to; REDUCE, WRITE: from */
    uint32_t complete; /* REDUCE: to */
    /* LOCAL: a call for each leaf of some cuts (of each rank's block, where there are none). */
    Sym kernel;
    uint32_t n_dims;
    const Dim *dim;       /* [n_dims] of the local kernel: a dim of this one ... */
    const int32_t *block; /* ... or how much of a cut a call has; -1: the dim */
    uint32_t n_values, n_over;
    const uint32_t *values, *over; /* arguments in calling order; the cuts of the leaves */
} DistStep;

typedef struct DistPlan {
    uint32_t n_axes;
    const Sym *axis; /* null: the only one, without a name */
    uint32_t n_grid; /* axes of the grid */
    uint32_t n_args;
    const DistArg *arg; /* parameters, then results, as the kernel is called */
    VEC(DistCut) cuts;
    VEC(DistOther) others; /* the next best ones first */
    VEC(DistValue) values;
    VEC(DistStep) steps;
} DistPlan;

/* ---- text.c ---- */
/* Do the lines say how arguments lie, without a plan so far? */
bool dist_wanted(const TextLines *lines);
/* Do they hold a plan? */
bool dist_planned(const TextLines *lines);
/* The kernel that this is a part of, as `local of NAME` says; at null: none. */
Str dist_owner(const TextLines *lines);

/* What a plan is of: a kernel's arguments and dims. */
typedef struct DistHead {
    Span span;
    const DimTable *dims;
    uint32_t n_args;
    const struct DistHeadArg {
        Sym name;
        bool result;
        DType dtype;
        uint32_t rank;
        const Dim *shape;
    } * arg; /* [n_args] */
} DistHead;
DistHead dist_head(Arena *arena, const Graph *g);
/* The layouts of arguments, and the plan if there is one. Null after a diagnostic (E_DUMP). */
DistPlan *dist_read(Ctx *ctx, Arena *arena, const DistHead *head, const TextLines *lines);
TextLines dist_write(Arena *arena, const DistHead *head, const DistPlan *plan);

/* ---- plan.c ---- */
/* The plan of a kernel whose arguments lie on ranks, as lines of `g`; its local kernels are pushed to `m`. BINARY. */
bool dist_plan(Ctx *ctx, Arena *arena, Graph *g, Module *m);

#endif
