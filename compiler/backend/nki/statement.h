/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of statements that are no matmul (statement.c, row_sums.c). */
#ifndef BACKEND_NKI_STATEMENT_H
#define BACKEND_NKI_STATEMENT_H

#include "backend/nki/lower_stmt.h"
#include "backend/nki/price.h"

typedef struct Shape {
    Labels p, keep, fold;
    bool fold_p;     /* the partition labels are reduced */
    bool fold_first; /* on the free axis, before those that are kept */
} Shape;

/* ---- shape.c ---- */
/* Which labels lie on partitions, which are kept on the free axis, and which are folded. */
Shape statement_shape(Lower *l, const Place *dst, const Expr *value, uint32_t n);
/* The same, and how long it takes: an estimate. */
Shape statement_shape_ns(Lower *l, const Place *dst, const Expr *value, uint32_t n, double *ns);
/* Adds all tiles of an access with these labels on partitions and on the free axis; `box` is one tile. `between`: elements of a partition
 * that are used between two positions of the contiguous label (0: none). Where SBUF does not hold long rows of so many, rows are priced as
 * loaded again at each position. */
void shape_add_access(Lower *l, const Place *x, Labels partitions, Labels free, const Box *box,
                      double elements, double between, bool store, EngineLoad *to);
/* The labels of the free axis, in their order. */
Labels shape_free(const Shape *s);

/* ---- label_cut.c ---- */
/* A label as two, so that all of its partitions are filled, or all of its chunks are taken, by one instruction. */
typedef enum CutKind {
    CUT_NONE,
    CUT_ROWS,  /* of memory: long rows, one on each partition */
    CUT_CHUNKS /* of blocks, which lie in chunks of 128 rows side by side: position 128 c + r is chunk c of partition r */
} CutKind;

typedef struct LabelCut {
    CutKind kind;
    uint32_t label;
} LabelCut;

/* Into how many rows so many positions are cut: as many as leave no rest, where these fill most of the partitions. */
int64_t cut_rows_of(int64_t n);
/* The outer label is number n_labels then. */
void cut_label(Lower *l, LabelCut c);
/* And is none again, with these extents. */
void cut_end(Lower *l, const Box *full);
/* The cut that makes the statement much quicker, if there is one, and how long it takes. */
LabelCut cut_find(Lower *l, const Stmt *s, double *least);

/* ---- statement.c ---- */
/* How long the statement takes by itself, without a matmul: an estimate, in nanoseconds. */
double lower_map_ns(Lower *l, const Stmt *s);
/* Is what is kept of the box a run of the block, where instructions can write it? */
bool statement_target(Lower *l, const Place *dst, const Shape *s, const Box *box,
                      TileView *out);
/* Is a load turned, so that its rows reach over several boxes of partitions? */
bool statement_turns(Lower *l, const Stmt *s, const Shape *shape);
/* What is in the box: in its block (*direct), or in a tile, `spare` if that is given. */
TileView statement_evaluate(Lower *l, const Stmt *s, const Place *dst, const Shape *shape,
                            const Box *box, const TileView *spare, bool *direct);
/* Puts it where the statement keeps it, unless it is there. */
void statement_keep(Lower *l, const Place *dst, const Shape *shape, const Box *box, TileView v,
                    bool direct);
/* Stores a fold, joined to what is there unless it overwrites that. */
void statement_fold_store(Lower *l, const Stmt *s, const Place *dst, Labels p, Labels keep,
                          const Box *box, TileView v, bool overwrite);

/* ---- fold_terms.c ---- */
/* Terms as an instruction walks them: of `n` labels the first `kept` are not folded. */
typedef struct FoldTerms {
    TileView v;
    uint32_t n, kept;
    int64_t count[LABELS], step[LABELS];
} FoldTerms;
/* Each element of `to` from terms of its own: by one instruction, or by several that two engines share. */
void fold_terms(Lower *l, TileView to, Op fold, FoldTerms t);
/* The terms of a fold where they are a value that lies on chip, or is loaded in long rows, in any order of labels. */
bool fold_terms_lie(Lower *l, const Shape *shape, const Expr *value, const Box *box,
                    FoldTerms *t);
/* Terms that were evaluated, those of the kept labels or of the folded ones first. */
FoldTerms fold_terms_of(TileView v, bool fold_first, int64_t kept, int64_t folded);

/* loop_sums.c */
/* Does the statement add to a number that nothing in the loops around it reads? */
bool statement_adds_in_loops(const Lower *l, const Stmt *s, bool overwrite);
/* Adds a column, times another one or null, to that of the number. */
void statement_column_add(Lower *l, BufRef number, TileView acc, const TileView *factor);

#endif
