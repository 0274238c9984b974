/* SPDX-License-Identifier: Apache-2.0 */
/* What schedules and prices do otherwise for one kind of machine than for the other. caches.c and systolic.c each fill in one row; numbers
 * and flags are in kinds.def; nothing else in the folder asks which kind a machine is. */
#ifndef NEST_POLICY_H
#define NEST_POLICY_H

#include "nest/price_leaf.h"
#include "nest/product.h"

/* What comes from a level: bytes, those of them that come for the first time, and runs of contiguous ones. */
typedef struct Copied {
    double bytes, first, runs;
    bool once; /* it stays in the level inside, whoever reads it */
} Copied;

typedef struct MachineRules {
    /* Of a contraction with a row and a column (schedules.c): has it a schedule? And its levels, from the labels by role. */
    bool (*product)(Product *p);
    void (*levels)(const Product *p, Schedule *b);

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
    const MachineRules *const row[] = {
        [MACHINE_CACHES] = &caches_rules, [MACHINE_SYSTOLIC] = &systolic_rules};
    return row[m->kind];
}

#endif
