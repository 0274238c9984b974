/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of runtime/dist share. */
#ifndef TDSL_DIST_WALK_H
#define TDSL_DIST_WALK_H

#include <stdbool.h>

#include "../src/internal.h"
#include "pairs.h"
#include "tdsl/dist.h"

/* Some positions of each dimension. */
typedef struct Box {
    int32_t rank;
    bool none; /* not even of rank 0 there is an element */
    int64_t lo[TDSL_MAX_RANK], hi[TDSL_MAX_RANK];
} Box;

int64_t tdsl_box_count(const Box *b);
bool tdsl_box_meet(const Box *a, const Box *b,
                   Box *out); /* false: they have nothing in common */
/* Elements of `size` bytes at `region` from one dense array to another, whose boxes hold it. */
void tdsl_box_copy(char *to, const Box *to_box, const char *from, const Box *from_box,
                   const Box *region, int64_t size);
/* Do the region's elements lie side by side in the array of this box? Then *first is where. */
bool tdsl_box_is_run(const Box *box, const Box *region, int64_t *first);

/* A call at the sizes of its dims. */
typedef struct Setting {
    const tdsl_dist_info *dist;
    const tdsl_mesh *mesh;
    tdsl_grid grid;
    int32_t n_grid; /* axes of it, one at least */
    int32_t used;   /* ranks that have work */
    int32_t ranks;
    const int64_t *all; /* open dims, then computed ones */
    Pairs pairs;        /* of two cuts that are mates, if there are any */
} Setting;

int64_t tdsl_extent_of(const Setting *s, tdsl_dist_dim d);
int64_t tdsl_arg_extent(const Setting *s, int32_t arg, int32_t dim);
void tdsl_place_of(const Setting *s, int32_t rank, int32_t *at);   /* [n_axes] */
void tdsl_grid_place(const Setting *s, int32_t rank, int32_t *at); /* [n_grid] */
bool tdsl_is_idle(const Setting *s, int32_t rank);
int64_t tdsl_leaves_in(int64_t n, int64_t leaves);
int64_t tdsl_leaf_first(int64_t n, int64_t leaves, int64_t leaf);
/* Leaves [lo, hi) of part `part` of `parts`. */
void tdsl_part_leaves(int64_t leaves, int64_t parts, int64_t part, int64_t *lo, int64_t *hi);
void tdsl_arg_box(const Setting *s, int32_t arg, int32_t rank, Box *out);
void tdsl_value_box(const Setting *s, int32_t value, int32_t rank, Box *out);
/* Of the value's box the part of leaf number `leaf`, of those that the rank has of this cut; none where it has fewer. */
void tdsl_leaf_box(const Setting *s, int32_t value, int32_t cut, int32_t rank, int64_t leaf,
                   Box *box);
/* Which leaves of a cut a rank has. */
void tdsl_cut_leaves(const Setting *s, int32_t cut, int32_t rank, int64_t *lo, int64_t *hi);
/* The leaves of some cuts that a rank has, one after the other, of the last cut fastest. */
typedef struct Leaves {
    int32_t n;
    int64_t lo[TDSL_DIST_CUTS], hi[TDSL_DIST_CUTS], all[TDSL_DIST_CUTS];
    int64_t at[TDSL_DIST_CUTS];    /* the leaf at hand */
    int32_t group[TDSL_DIST_CUTS]; /* of slices; 0: none */
    int64_t first[TDSL_DIST_CUTS],
        last[TDSL_DIST_CUTS]; /* tuples of the group that the rank has */
    int32_t row, column;      /* which of the cuts are mates; -1: none */
    PairPiece piece;          /* that the rank has of them */
} Leaves;
/* Begins with the first; false: the rank has none. */
bool tdsl_leaves_begin(const Setting *s, int32_t n, const int32_t *cuts, int32_t rank,
                       Leaves *out);
bool tdsl_leaves_next(Leaves *l);            /* false: there are no more */
bool tdsl_leaves_twice(const Leaves *l);     /* it stands for its mirror image too */
int64_t tdsl_leaves_number(const Leaves *l); /* of the leaf at hand, among those of all ranks */
/* Of which axes of the mesh the argument, or of the grid the value, has different blocks; a bit for each. */
uint32_t tdsl_arg_axes(const Setting *s, int32_t arg);
uint32_t tdsl_value_axes(const Setting *s, int32_t value);
/* Is the argument's array the value as it stands? */
bool tdsl_is_same_layout(const Setting *s, int32_t arg, int32_t value);
int64_t tdsl_dtype_size(int32_t dtype);

/* ---- walk.c ---- */
/* Of plan, sizes and mesh. */
uint64_t tdsl_setting_hash(const Setting *s);
/* Without a grid. */
tdsl_status tdsl_setting_make(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                              const int64_t *dims, int64_t *all, Setting *s);
tdsl_status tdsl_setting_grid(Setting *s, const tdsl_grid *grid);

/* ---- choose.c ---- */
/* Of least time on the machine that tdsl/dist.h has numbers of; the same as last time where the setting is. */
tdsl_grid tdsl_grid_best(const Setting *s);

/* ---- tree.c: sums of leaves in one order, whoever has them ---- */
typedef struct TreeNode {
    int64_t first; /* leaf */
    int32_t level; /* it is the sum of 2^level leaves, fewer at the end */
    char *data;
} TreeNode;
/* Pushes a node whose leaves follow those before; joins what can be joined, and combines data where there is any. The number of nodes. */
int64_t tdsl_tree_push(const tdsl_threads *threads, const tdsl_dist_value *v, TreeNode *nodes,
                       int64_t n, TreeNode node, int64_t count);
/* The nodes that a rank has of a value that is partial over these cuts; `most` at once while they are made. The number of nodes. */
int64_t tdsl_tree_nodes(const Setting *s, const tdsl_dist_value *v, int32_t rank,
                        TreeNode *nodes, int64_t *most);
/* All leaves of all ranks, [n] in any order, to one in nodes[0].data. */
void tdsl_tree_fold(const tdsl_threads *threads, const tdsl_dist_value *v, TreeNode *nodes,
                    int64_t n, int64_t count);

/* ---- exchange.c ---- */
/* Partial values of more bytes are reduced piece by piece, each rank one piece. */
#define TDSL_WHOLE_BYTES 65536

typedef struct Walk {
    Setting setting;
    const tdsl_comm *comm; /* null: only counted */
    int32_t rank;
    void *const *args;
    char *base;       /* of the workspace */
    size_t top, most; /* bytes of it: taken now, at most so far */
    size_t size;      /* bytes of it that there are, not of a count */
    char **value;     /* [n_values] where it is; null: nothing yet, or in a count */
    char **terms;     /* [n_values] of a partial value: those behind the first */
    /* [n_values] the step that reads it leaf by leaf; null: none */
    const tdsl_dist_step **read;
    TreeNode *scratch; /* for nodes of all ranks, and once more behind scratch_half of them */
    int64_t scratch_half;
    tdsl_dist_bytes *send, *receive; /* [ranks] */
    const tdsl_threads *threads;
    const tdsl_dist_store *store; /* null in a count too */
    tdsl_dist_count count;
} Walk;

double tdsl_walk_clock(const Walk *w); /* seconds; 0 in a count */
/* Bytes of the workspace, null in a count; freed down to a mark. */
char *tdsl_walk_take(Walk *w, int64_t bytes);
/* The step that writes the value to a result, where it may be made since it lies there as it is; null: none. Terms of a sum that one rank has whole
 * begin where the sum is made. */
const tdsl_dist_step *tdsl_place_of_value(const Setting *s, int32_t value);
/* Do the ranks of the grid have each all leaves of the cuts that the value is partial over? */
bool tdsl_is_whole_sum(const Setting *s, const tdsl_dist_value *v);
/* Memory of a value: of the result that it is, or of the workspace. */
char *tdsl_walk_take_value(Walk *w, int32_t value);
tdsl_status tdsl_walk_read(Walk *w, const tdsl_dist_step *step);
tdsl_status tdsl_walk_write(Walk *w, const tdsl_dist_step *step);
tdsl_status tdsl_walk_reduce(Walk *w, const tdsl_dist_step *step);
/* The part of leaf `leaf` of the rank's, counted from 0, that `step` reads by leaf, along cut `cut`; *out where it is, whose box is *box. */
tdsl_status tdsl_walk_read_leaf(Walk *w, const tdsl_dist_step *step, int32_t cut, int64_t leaf,
                                Box *box, char **out);
/* *local: of the kernel. */
tdsl_status tdsl_walk_local(Walk *w, const tdsl_dist_step *step, tdsl_status *local);

#endif
