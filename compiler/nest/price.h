/* SPDX-License-Identifier: Apache-2.0 */
/* What a nest costs, by one model for every target: bytes that cross each level of memory, and
 * seconds. For typical extents. */
#ifndef NEST_PRICE_H
#define NEST_PRICE_H

#include "nest/facts.h"
#include "nest/kinds.h"

/* What is known of a graph and a machine before any nest: shared by the prices of all. */
typedef struct Pricer {
    const NestFacts *facts;
    const Machine *machine;
    const MachineTraits *kind;
    const double *ops;    /* [nodes]: seconds of one evaluation of an expression, expanded, as
                             vectors */
    const double *scalar; /* [nodes]: and one by one */
    const int64_t *dims;  /* typical extents */
    int64_t inlined;      /* multiply-adds of expressions that no nest stores */
    bool masked;          /* some positions are values: masks may leave out iterations */
    double *leaf;         /* [items] takes the seconds of each leaf; or null */
} Pricer;

void pricer_init(Arena *arena, const NestFacts *f, const Machine *machine, Pricer *p);

struct NestMarks;
/* The same for the expressions that a nest has chosen. */
void pricer_of(Arena *scratch, const Nest *nest, const Machine *machine, NestFacts *facts,
               Pricer *pricer);

/* Of the nest, whose values are placed; by threads that share what is marked in it or, if `marks` are to be made, what they best share. */
NestCost nest_price(Arena *scratch, const Pricer *p, const Nest *nest, struct NestMarks *marks);
/* Bytes of the outermost level that every nest moves: what is read of each argument once, each
 * result once. */
double nest_compulsory(Arena *scratch, const NestFacts *f, const Machine *machine);

/* Adds what the steps of recurrences take. */
void price_add_steps(const Machine *machine, const Nest *nest, NestCost *cost);

#endif
