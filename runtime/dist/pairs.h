/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs a <= b of the leaves of one extent, dealt to the parts of an axis, so that a part needs few rows and all have about as much work. */
#ifndef TDSL_DIST_PAIRS_H
#define TDSL_DIST_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

/* Leaves, at most: as many as a cut has. */
#define TDSL_PAIR_LEAVES 64
#define TDSL_PAIR_PIECES (TDSL_PAIR_LEAVES * (TDSL_PAIR_LEAVES + 1) / 2)

typedef struct Pairs {
    int64_t n;     /* leaves */
    int32_t parts; /* of the axis */
    /* Columns b are in strips [bound[k], bound[k + 1]); the pairs of a strip, row after row, are dealt evenly to so many pieces. */
    int32_t n_strips;
    int64_t bound[TDSL_PAIR_LEAVES + 1], pieces[TDSL_PAIR_LEAVES];
    int64_t all;                    /* pieces */
    int64_t owners;                 /* the first parts have leaves of their own, */
    int64_t own[TDSL_PAIR_LEAVES];  /* and this piece; -1: none */
    int64_t n_rest;                 /* pieces that no owner has, */
    int16_t rest[TDSL_PAIR_PIECES]; /* in order: later parts have them */
} Pairs;

/* What a part has: pairs number [first, last) of a strip, which are of these rows and columns. */
typedef struct PairPiece {
    int64_t strip, end; /* columns of the strip */
    int64_t first, last;
    int64_t row_lo, row_hi, col_lo, col_hi; /* the same, if they overlap */
} PairPiece;

void tdsl_pairs_make(Pairs *p, int64_t n, int32_t parts);
/* Of part `part`; empty where it has none. */
PairPiece tdsl_pairs_piece(const Pairs *p, int32_t part);
bool tdsl_pairs_has(const PairPiece *piece, int64_t a, int64_t b);

#endif
