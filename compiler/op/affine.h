/* SPDX-License-Identifier: Apache-2.0 */
/* Affine expressions: a number and terms `coefficient * variable`. A variable is an index of whoever holds the
 * expression (a label of a graph's node, a loop or local index of a kernel), or an open dim of its kernel. They
 * are values: nothing changes a term array after it was made, so copies share it. */
#ifndef OP_AFFINE_H
#define OP_AFFINE_H

#include "base/arena.h"
#include "op/types.h"

typedef uint32_t VarRef;

/* Open dim s as a variable; those come behind all indices. */
#define AFFINE_DIM UINT32_C(0x80000000)

static inline VarRef affine_dim(int32_t sym)
{
    return AFFINE_DIM | (uint32_t)sym;
}

static inline bool affine_is_dim(VarRef v)
{
    return v >= AFFINE_DIM;
}

/* The open dim that such a variable is. */
static inline int32_t affine_sym(VarRef v)
{
    return (int32_t)(v & ~AFFINE_DIM);
}

typedef struct AffineTerm {
    VarRef var;
    int64_t coef;
} AffineTerm;

/* base + sum of coef * var; vars ascending by number, coefficients not 0, so that two are the same expression if and
 * only if they are the same numbers. */
typedef struct Affine {
    int64_t base;
    uint32_t n;
    const AffineTerm *term;
} Affine;

/* For builders, whose numbers are in range if the compiler is right. */
Affine affine_const(int64_t base);
Affine affine_var(Arena *a, VarRef v);
Affine affine_extent(Arena *a, Dim d); /* a number, or an open dim as a variable */
Affine affine_add(Arena *a, Affine x, int64_t scale,
                  Affine y);                                  /* x + scale*y; CHECKs overflow */
Affine affine_subst(Arena *a, Affine x, VarRef v, Affine by); /* v := by */
/* Index v becomes to[v], another one for each; open dims stay. */
Affine affine_rename(Arena *a, Affine x, const VarRef *to);
/* The terms of indices by their coefficients, the least first: their number, 0 where one is below 0. */
uint32_t affine_steps(Affine x, AffineTerm *term);
bool affine_eq(Affine x, Affine y);
bool affine_uses(Affine x, VarRef v);
/* The coefficient of v, 0 when x does not use it. */
int64_t affine_coef(Affine x, VarRef v);
/* Its value where each variable has the one in `env`, by number; saturated. It has no open dims. */
int64_t affine_at(Affine x, const int64_t *env);
Affine affine_copy(Arena *a, Affine x);
/* Is it one variable and nothing else? */
static inline bool affine_is_var(Affine x)
{
    return x.n == 1 && x.base == 0 && x.term[0].coef == 1;
}
/* Is it variable v and nothing else? */
static inline bool affine_is(Affine x, VarRef v)
{
    return affine_is_var(x) && x.term[0].var == v;
}
/* The index that it is, and nothing else; -1: it is an open dim or more. */
static inline int32_t affine_index(Affine x)
{
    return affine_is_var(x) && !affine_is_dim(x.term[0].var) ? (int32_t)x.term[0].var : -1;
}

/* The dim that x, of open dims alone, divided by a number and rounded down is (dims_sum). */
Dim affine_to_dim(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                  Affine x, int64_t divisor);

/* For readers and verifiers: what they are given may be anything. */
/* Ascending variables, below n_vars or of one of n_dims open dims, and no coefficient 0? */
bool affine_is_canonical(Affine x, uint32_t n_vars, uint32_t n_dims);
/* x + scale*y; false, and *out untouched, when a number leaves 64 bits. */
bool affine_try_add(Arena *a, Affine x, int64_t scale, Affine y, Affine *out);
bool i64_try_add(int64_t a, int64_t b, int64_t *out);
bool i64_try_mul(int64_t a, int64_t b, int64_t *out);

/* ---- dims.c ---- */
/* Is x, an expression of open dims alone, never below 0, where each dim is at least least[dim]? Sums are looked into; what is
 * not seen counts as false. */
bool dims_prove(Arena *scratch, const DimTable *t, Affine x, const int64_t *least);

/* Does x, of labels of these extents and open dims, lie in [0, extent) wherever all labels have positions? 0: so it is proved; -1:
 * perhaps it is below, 1: perhaps it is not. */
int position_problem(Arena *scratch, const DimTable *dims, const Dim *label_extent,
                     uint32_t n_labels, Affine x, Dim extent);

#endif
