/* SPDX-License-Identifier: Apache-2.0 */
/* The two kinds of machine, and what planning does otherwise for one than for the other. caches.c and systolic.c each fill in one row;
 * nothing else in the folder asks which kind a machine is. */
#ifndef NEST_KINDS_H
#define NEST_KINDS_H

#include "nest/levels.h"
#include "nest/price_leaf.h"
#include "nest/scan.h"

typedef struct Weights {
#define WEIGHT(name, caches, systolic, what) double name;
#include "nest/weights.def"
} Weights;

/* What comes from a level: bytes, those of them that come for the first time, and runs of contiguous ones. */
typedef struct Copied {
    double bytes, first, runs;
    bool once; /* it stays in the level inside, whoever reads it */
} Copied;

typedef struct MachineRules {
    Weights weights;
    bool halos; /* loops may compute positions more than once */
    bool
        blocks_grow; /* a block may be larger than the level that blocks live in: else it is a value in memory */
    bool
        masked; /* loops are put around restricted sums, and sums over bands take a band's time */
    bool scatters;  /* is what a key lets in stored where it says? */
    bool batches;   /* a recurrence may be a loop around all of its steps */
    bool wide_sums; /* what loops add to is in the type of the sum */
    bool cuts;      /* contractions may be cut to have no values in memory */
    bool
        neighbours; /* the search begins with all neighbours of no fusion, and with strips: some are two moves away, with worse ones between */
    bool (*scans)(const Node *n, const Scan *scan); /* null: all */

    /* Of a contraction with a row and a column (schedule.c): has it a schedule? And its levels, from the labels by role. */
    bool (*product)(Product *p);
    void (*levels)(const Product *p, Schedule *b);

    /* Has the machine the nest; null: all. Is the value in memory, though not in the workspace; null: none is. */
    bool (*has)(const Pricer *p, const Nest *nest);
    bool (*spills)(const Machine *m, const Nest *nest, NodeRef n);

    /* Seconds of what one execution of a leaf computes, of so many positions. Sets how often it reads its operands. */
    double (*arithmetic)(Arena *scratch, LeafPrice *l, double count);
    /* Is it an argument that all iterations read (null: what all do is not known); and does it stay on chip with the others? */
    bool (*is_still)(const LeafPrice *l, const Touch *t);
    bool (*stays)(const LeafPrice *leaves, uint32_t n, const LeafPrice *l, const Touch *t);
    /* Bytes in whose time short runs come, beside what is copied; sets that to 0 where it is there already. */
    double (*short_runs)(const LeafPrice *leaves, const LeafPrice *l, const Touch *t,
                         double granule, Copied *c);
    /* Adds up leaves, of which each has its seconds and waits. */
    void (*add)(const Nest *nest, LeafPrice *leaves, uint32_t n, NestCost *cost);
} MachineRules;

extern const MachineRules caches_rules, systolic_rules;

static inline const MachineRules *machine_rules(const Machine *m)
{
    return m->kind == MACHINE_SYSTOLIC ? &systolic_rules : &caches_rules;
}

#endif
