/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the evaluation of expressions (evaluate.c): values over a box, and what makes them. */
#ifndef BACKEND_NKI_EVALUATE_PARTS_H
#define BACKEND_NKI_EVALUATE_PARTS_H

#include "backend/nki/evaluate.h"
#include "backend/nki/whole.h"

#define KEY_LIMIT 256

typedef enum ValKind { VAL_NUMBER, VAL_TILE, VAL_PENDING } ValKind;

typedef struct Val {
    ValKind kind;
    double number;
    TileView v;
    bool hp;  /* varies over partitions */
    Labels f; /* the labels of the free axis it varies over, in the evaluation's order */
    int64_t step[LABELS]; /* TILE: elements from one position of these to the next */
    Op op; /* PENDING: x op y, both numbers or tiles, or x pending with a number */
    const struct Val *x, *y;
} Val;

static inline double eval_number_of(const Number *n)
{
    return n->dtype == DTYPE_BOOL || dtype_is_int(n->dtype) ? (double)n->i : n->re;
}

/* ---- evaluate.c ---- */
const Val *eval(Evaluation *ev, const Expr *e, const TileView *into);
int64_t eval_partitions(const Evaluation *ev);
Val *val_new(Evaluation *ev, ValKind kind);
Val *val_number(Evaluation *ev, double number);
Val *eval_binary(Evaluation *ev, Op op, const Val *x, const Val *y);
/* A pending value, made. */
Val *eval_force(Evaluation *ev, const Val *v, DType t, const TileView *into);
/* The same outside of PSUM. */
const Val *eval_out_of_psum(Evaluation *ev, const Val *v);
/* A tile of the full box, of type t. */
TileView eval_full_tile(Evaluation *ev, const Val *v, DType t, const TileView *into);

/* ---- evaluate_pieces.c ---- */
/* The labels of the free axis that one instruction walks; at the positions of the others there is one each. */
typedef struct Taken {
    Labels f;      /* all */
    uint32_t bits; /* of these */
} Taken;
Val *val_tile(Evaluation *ev, TileView v, bool hp, Labels f); /* row by row */
/* Does the tile lie row by row in its labels? */
bool val_is_run(const Evaluation *ev, const Val *v);
bool eval_in_psum(const Evaluation *ev, const Val *v);
/* Elements of a tile from one position of the label to the next: 0 if it lacks it. */
int64_t eval_step(const Val *leaf, uint32_t label);
/* Has each partition one value of the leaf in the instruction? */
bool eval_is_column(const Val *leaf, Taken t);
/* How instructions take it in the least time; the cycles of all of them, or -1. `function`: of the Scalar engine. */
double eval_taken(const Evaluation *ev, const Val *v, bool function, Labels f, Taken *out);
/* Cycles of one instruction over whole rows. */
double eval_row_cycles(const Evaluation *ev, Labels f);
/* dst = fn(value), by as many instructions as that takes. OP_COPY: the value itself. */
void eval_pieces(Evaluation *ev, const Val *v, Op fn, TileView dst, Labels f);

/* ---- evaluate_position.c ---- */
/* Positions, as a tile over the labels they depend on. */
const Val *eval_position(Evaluation *ev, IndexSum x);
/* What is made of positions in ways of its own, or null. */
const Val *eval_of_positions(Evaluation *ev, const Expr *e);

/* ---- evaluate_key.c ---- */
bool eval_key(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t *seen);
bool eval_key_finish(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t seen);

#endif
