/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of the statement at hand, with the loops around it at their values: where they begin, and how they move. */
#ifndef BACKEND_NKI_PLACE_H
#define BACKEND_NKI_PLACE_H

#include "backend/nki/lower.h"

/* Dimension `dim` of an access also moves by `coef` with a label. */
#define PLACE_TERMS 24
typedef struct PlaceTerm {
    uint32_t dim, label;
    int64_t coef;
} PlaceTerm;

/* One access: each dimension is base, or base + label, and what `term` adds to that. `buf` is the TILED kernel's. */
typedef struct Place {
    BufRef buf;
    uint32_t rank;
    int64_t base[NKI_DIMS];
    int32_t label[NKI_DIMS];
    uint32_t n_terms;
    PlaceTerm term[PLACE_TERMS];
    const Affine
        *moves; /* [rank] with the loops that stay, variables of the LEGAL kernel; or null */
} Place;

/* With the loops around at their values, those that stay in their first iterations. */
int64_t position_value(const Lower *l, Affine x);
/* What it is beyond that in others. */
Affine position_moves(const Lower *l, Affine x);
/* The least and the most that a sum of loop variables is. */
void position_range(const Lower *l, Affine x, int64_t *lo, int64_t *hi);
/* The values [lo, hi) that a statement's variable takes. */
void range_values(const Lower *l, const Stmt *s, VarRef v, const Range *r, int64_t *lo,
                  int64_t *hi);
/* Labels of the statement, rows of the one that is cut among them. */
uint32_t statement_labels(const Lower *l);

Place place_of(Lower *l, BufRef buf, const Affine *at);
/* The coefficient of a label in a dimension. */
int64_t place_coef(const Place *x, uint32_t dim, uint32_t label);
bool place_has(const Place *x, uint32_t label);
/* The first position of a dimension over a box. */
int64_t place_start(const Place *x, uint32_t dim, const Box *box);
/* How far the element moves in HBM with a label. */
int64_t place_stride(const Lower *l, const Place *x, uint32_t label);
/* Do both move alike with the loops that stay, in a dimension? */
bool place_moves_eq(const Place *x, const Place *y, uint32_t dim);
/* How many loops are open up to the innermost one with which it moves; 0: it moves with none. */
uint32_t place_moving_depth(const Lower *l, const Place *x);
/* Elements of the access, over all of its labels. */
double place_elements(const Lower *l, const Place *x);
/* Is the statement one over vectors in HBM, long enough to be spread over partitions? */
bool place_is_flat(Lower *l, const Stmt *s);
/* Labels of `list` that the place has and that vary in the box. */
Labels labels_varying(const Place *x, Labels list, const Box *box);
/* `x` then `y`, or as they lie in a place where the labels of `y` lie at equal steps in that
 * order. */
Labels labels_as_placed(const Lower *l, const Place *place, Labels x, Labels y);

/* Loads of an expression. */
typedef struct Loads {
    uint32_t n;
    Place at[32];
} Loads;
void collect_loads(Lower *l, const Expr *value, Loads *out);

/* ---- pairs.c ---- */

void pair_find(Lower *l);  /* l->pair and l->turn */
void pair_enter(Lower *l); /* the labels of l->now.stmt */
void pair_refresh(Lower *l, BufRef buf);
/* An access of one part in HBM, as one of a label at one position. */
bool pair_one_part(Lower *l, const Place *x, const Box *box, Place *y, Box *at);
bool pair_is_unit(const Lower *l, const Place *x, uint32_t label);
/* Do two statements assign the two parts of the same elements? */
bool pair_is_split(const Lower *l, const Stmt *re, const Stmt *im);

#endif
