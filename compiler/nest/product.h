/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as the files see it that choose its schedule: product.c finds which labels are rows, columns and sum, goto.c and systolic.c
 * how they are cut, for either kind of machine (policy.h). */
#ifndef NEST_PRODUCT_H
#define NEST_PRODUCT_H

#include "nest/contraction.h"

#define NONE UINT32_MAX

typedef struct Product {
    Arena *arena;
    const NestFacts *f;
    const Machine *machine;
    const Nest *nest;
    uint32_t item;
    const Node *node;
    const Use *a, *b; /* a has the row, b the vector */
    uint32_t row, col, sum;
    const LabelExtent *extent; /* [labels] */
    const uint32_t *order; /* [rank] of an engine: labels that are kept, the fastest first */
    bool chip;             /* of an engine: the result may be on chip */
} Product;

static inline int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Does the result have the label? */
static inline bool is_kept(const Node *n, uint32_t label)
{
    return !node_reduces(n, (int32_t)label);
}

/* ---- product.c ---- */
/* Sets the labels of a contraction of two operands with an index of its own each; false: it is none. */
bool product_find(Product *p);
/* The labels by role: the one that is cut first, then as the statement has them. */
void product_labels(const Product *p, Schedule *b);
/* Do elements of the operand side by side along `label` stand side by side where it is kept? */
bool operand_is_unit(const Product *p, const Use *u, uint32_t label);
bool result_is_unit(const Product *p, uint32_t label);
ScheduleRole product_role(const Product *p, uint32_t label);
/* Is the result so much larger than the operand that how it is written counts, not how the operand is read? */
bool result_dominates(const Product *p, const Use *own);
/* ---- goto.c: levels for caches, from the labels by role ---- */
void goto_levels(const Product *p, Schedule *b);

#endif
