/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as the files see it that choose its schedule: schedule.c finds which labels are rows, columns and sum,
 * levels.c how they are cut. */
#ifndef NEST_LEVELS_H
#define NEST_LEVELS_H

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

/* ---- schedule.c ---- */
/* Do elements of the operand side by side along `label` stand side by side where it is kept? */
bool operand_is_unit(const Product *p, const Use *u, uint32_t label);
bool result_is_unit(const Product *p, uint32_t label);
bool is_engine(const Machine *machine);
/* Is the result so much larger than the operand that how it is written counts, not how the operand is read? */
bool result_dominates(const Product *p, const Use *own);
/* Might the value be on chip, as far as its size says? */
bool fits_chip(const Product *p, NodeRef n);
/* The statement right after the product that computes with its result, and nothing else does: the
 * tiles are emptied into what it makes. Null: there is none. */
const Use *product_following(const Product *p, NodeRef *reader);

/* ---- levels.c: from the labels by role ---- */
void set_levels(const Product *p, Schedule *b);

#endif
