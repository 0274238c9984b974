/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the price (price.h): one leaf, and what its files do with all of them. */
#ifndef NEST_PRICE_LEAF_H
#define NEST_PRICE_LEAF_H

#include "nest/engines.h"
#include "nest/price.h"

/* An operand or the result of a leaf. */
typedef struct Touch {
    NodeRef node;
    NodeRef value; /* of a view of a block: the block's */
    const Access *access;
    bool written, adds; /* to what is there */
    uint32_t home;      /* depth of its home: loops around it */
    double block;       /* bytes of its block */
    double times;       /* how often a statement that does not fit reads it, */
    double part, lines; /* and what one position of labels that run one by one touches, and
                           how often each line is when that does not fit */
    double bytes[NEST_DEPTH + 1]; /* F(X, p) */
    double runs[NEST_DEPTH + 1];  /* of contiguous ones among them, as they are touched */
    bool moves[NEST_DEPTH + 1];   /* does loop p - 1 have an axis of it? */
} Touch;

typedef struct LeafPrice {
    const Pricer *p;
    const Nest *nest;
    uint32_t item;
    NodeRef node;
    uint32_t depth;
    uint32_t loop[NEST_DEPTH]; /* outermost first */
    double trips[NEST_DEPTH];
    uint32_t n;
    Touch *touch;
    bool ahead;      /* its memory is asked for while it computes */
    Engines engines; /* of a systolic machine: of one execution */
    double executions;
    int32_t *on; /* [nodes] see engines.h */
} LeafPrice;

/* ---- price_engines.c: of a machine whose engines run side by side ---- */
/* Has a leaf before it in the same body, the first of all is `first`, read the same? Then it is on chip. */
bool price_was_read(const LeafPrice *first, const LeafPrice *l, const Touch *t);
/* Adds the time of all leaves. */
void price_engines(const Nest *nest, const LeafPrice *leaves, uint32_t n, NestCost *cost);

/* ---- price_count.c ---- */
/* What does not depend on levels: operations, and bytes of the workspace. */
void price_count(const Pricer *p, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                 NestCost *cost);

#endif
