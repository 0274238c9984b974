/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the evaluation of expressions (evaluate.c): values over a box, and what makes them. */
#ifndef BACKEND_NKI_EVALUATE_H
#define BACKEND_NKI_EVALUATE_H

#include "backend/nki/lower.h"

#define KEY_LIMIT 256

typedef enum ValKind { VAL_NUMBER, VAL_TILE, VAL_PENDING } ValKind;

typedef struct Val {
    ValKind kind;
    double number;
    TileView v;
    bool hp;  /* varies over partitions */
    Labels f; /* the labels of the free axis it varies over, in the evaluation's order */
    Op op;    /* PENDING: x op y, both numbers or tiles, or x pending with a number */
    const struct Val *x, *y;
} Val;

static inline double eval_number_of(const Number *n)
{
    return n->dtype == DTYPE_BOOL || dtype_is_int(n->dtype) ? (double)n->i : n->re;
}

/* ---- evaluate.c ---- */
const Val *eval(Evaluation *ev, const Expr *e, const TileView *into);
int64_t eval_partitions(const Evaluation *ev);
Val *val_number(Evaluation *ev, double number);
Val *val_tile(Evaluation *ev, TileView v, bool hp, Labels f);
Val *eval_binary(Evaluation *ev, Op op, const Val *x, const Val *y);
/* A pending value, made. */
Val *eval_force(Evaluation *ev, const Val *v, DType t, const TileView *into);
/* The same outside of PSUM. */
const Val *eval_out_of_psum(Evaluation *ev, const Val *v);
/* A tile of the full box, of type t. */
TileView eval_full_tile(Evaluation *ev, const Val *v, DType t, const TileView *into);

/* ---- evaluate_position.c ---- */
/* Positions, as a tile over the labels they depend on. */
const Val *eval_position(Evaluation *ev, IndexSum x);
/* What is made of positions in ways of its own, or null. */
const Val *eval_of_positions(Evaluation *ev, const Expr *e);

/* ---- evaluate_key.c ---- */
bool eval_key(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t *seen);
bool eval_key_finish(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t seen);

#endif
