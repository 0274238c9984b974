/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel on ranks, as data: which extents are cut over which axes of a mesh of ranks, what a rank holds, and the steps of a call,
 * which all ranks take in the same order. Nothing here moves anything: tdsl/dist.h walks such a table over any tdsl_comm. The
 * compiler pastes this text, without the line above, behind tdsl/abi.h into headers of kernels with `shard`. */
#ifndef TDSL_DIST_ABI_H
#define TDSL_DIST_ABI_H

#ifndef TDSL_ABI_H
#include "tdsl/abi.h"
#endif

#define TDSL_DIST_VERSION 3

#define TDSL_DIST_AXES 8  /* at most */
#define TDSL_DIST_CUTS 16 /* over which one value is partial, at most */

/* The ranks among which work is shared out: rank r is number r / stride[a] mod size[a] along axis a. Those from the product of the sizes on have no
 * work. size[0] of 0: chosen for the least time. */
typedef struct tdsl_grid {
    int32_t size[TDSL_DIST_AXES];
    int32_t stride[TDSL_DIST_AXES];
} tdsl_grid;

/* The ranks of a communicator as a mesh, over which arrays lie: the product of the sizes is the number of ranks, the last axis is the fastest. */
typedef struct tdsl_mesh {
    int32_t n_axes; /* the kernel's, and behind them axes over which no array lies */
    int32_t size[TDSL_DIST_AXES];
    tdsl_grid grid; /* tdsl_dist_choose */
} tdsl_mesh;

/* Positions first, first + 1, ..., so many. */
typedef struct tdsl_range {
    int64_t first, count;
} tdsl_range;

/* An extent: the number `fixed` where `dim` is -1, else open dimension `dim` of the kernel, or its computed extent `dim` - n_dims.
 * Where `cut` is not -1: so much of that cut as a call has. */
typedef struct tdsl_dist_dim {
    int32_t dim;
    int32_t cut;
    int64_t fixed;
} tdsl_dist_dim;

/* The caller's array is cut along dimension `dim` over axis `axis`. Of the pieces of one dimension the first is the outer one. */
typedef struct tdsl_dist_piece {
    int32_t axis;
    int32_t dim;
    int64_t leaves;
} tdsl_dist_piece;

typedef struct tdsl_dist_arg {
    int32_t partial; /* 1: the value is the sum of what ranks have that differ in other axes */
    int32_t n_pieces;
    const tdsl_dist_piece *pieces;
} tdsl_dist_arg;

/* An extent of N positions that is cut has min(N, leaves) leaves, one at least: leaf i of L begins at position i N / L, rounded up, so that leaves of
 * finer cuts lie within those of coarser ones. The parts of an axis have whole leaves in the same way. Of two cuts that are mates a part has pairs of leaves, that of the first cut not behind that of the
 * second one; a sum over both counts pairs of different leaves twice, as its terms are the same with the two exchanged. Cuts of one group are slices: a part has a range of their
 * tuples of leaves, the first cut slowest, and positions of each cut from the first to the last that the range has. */
typedef struct tdsl_dist_cut {
    tdsl_dist_dim extent;
    int64_t leaves;
    int32_t axis; /* of the grid */
    int32_t
        mate; /* 1 + the number of a cut of the same extent over the same axis: both are dealt as pairs of leaves; 0: none */
    int32_t group; /* 1 + the number of the first cut of its slices; 0: none */
    int32_t reserved;
} tdsl_dist_cut;

/* How leaves are combined. */
#define TDSL_FOLD_NONE 0 /* the value is complete */
#define TDSL_FOLD_SUM  1
#define TDSL_FOLD_PROD 2
#define TDSL_FOLD_MIN  3
#define TDSL_FOLD_MAX  4
#define TDSL_FOLD_ANY  5
#define TDSL_FOLD_ALL  6

/* What a rank holds: dense, in C order, of each dimension its part of a cut, or all of it. A partial value has a term for each leaf of the cuts
 * in `over`, the first slowest. A complete value with `over` is spread: dimension `spread` of its block is dealt once more, to the parts of the axes of those
 * cuts, the first slowest. */
typedef struct tdsl_dist_value {
    int32_t dtype; /* tdsl_dtype */
    int32_t rank;
    const tdsl_dist_dim *extents; /* [rank] */
    const int32_t *cuts;          /* [rank]: a cut, or -1 */
    int32_t fold;
    int32_t n_over;
    const int32_t *over;
    int64_t spread;
} tdsl_dist_value;

#define TDSL_STEP_READ                                                                         \
    1 /* argument `arg` to `value`; with `by_leaf` what each call of the step that reads it needs, before the call */
#define TDSL_STEP_LOCAL                                                                        \
    2 /* calls of `kernel`, one for each leaf of the cuts in `over` that the rank has */
#define TDSL_STEP_REDUCE 3 /* `value`, which is partial, to `complete` */
#define TDSL_STEP_WRITE  4 /* `value` to argument `arg` */

typedef struct tdsl_dist_step {
    int32_t kind;
    int32_t arg;
    int32_t value;
    int32_t complete;
    const tdsl_kernel_info *kernel;
    const tdsl_dist_dim *dims; /* [kernel->n_dims] */
    const int32_t *values;     /* [kernel->n_args] */
    const int32_t *over;       /* [n_over] */
    int32_t n_over;
    int32_t by_leaf;
} tdsl_dist_step;

typedef struct tdsl_dist_info {
    uint32_t struct_size;
    uint32_t version;
    const tdsl_kernel_info *kernel; /* the same for one rank */
    int32_t n_axes, n_cuts, n_values, n_steps;
    int32_t n_grid, reserved;      /* axes of the grid */
    const char *const *axes;       /* [n_axes]; "" for the only one, without a name */
    const tdsl_dist_arg *args;     /* [kernel->n_args] */
    const tdsl_dist_cut *cuts;     /* [n_cuts] */
    const tdsl_dist_value *values; /* [n_values] */
    const tdsl_dist_step *steps;   /* [n_steps] */
} tdsl_dist_info;

#endif
