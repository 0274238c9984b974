/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a machine whose engines run side by side (engines.h): what stands in the same loops is as long as the engine that
 * has most to do, and what was read is on chip. */
#include "nest/price_leaf.h"

#include <math.h>

bool price_was_read(const LeafPrice *first, const LeafPrice *l, const Touch *t)
{
    bool was = false;
    for (const LeafPrice *m = first; m < l; m++) {
        bool beside = l->nest->items[m->item].parent == l->nest->items[l->item].parent;
        for (uint32_t i = 0; i < m->n && beside && l->depth > 0; i++) {
            const Touch *o = &m->touch[i];
            was |= o->node == t->node && !o->written && !t->written &&
                   !(o->bytes[m->depth] < t->bytes[l->depth]);
        }
    }
    return was;
}

/* What a systolic machine may pack, a part for one argument that is there for all iterations of loops that do not move it, and one for all
 * of those together. */
#define PACKED     0.4
#define ALL_PACKED 0.8

bool price_is_still(const LeafPrice *l, const Touch *t)
{
    bool still = l->nest->values[t->value].item == NEST_NONE;
    for (uint32_t d = 1; d <= l->depth; d++) {
        still = still && !t->moves[d];
    }
    return still;
}

/* Bytes of such arguments that stand in the same outermost loop, each once. */
static double still_beside(const LeafPrice *leaves, uint32_t n, const LeafPrice *l)
{
    double bytes = 0.0;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < leaves[k].n && leaves[k].depth > 0; i++) {
            const Touch *t = &leaves[k].touch[i];
            bool here = leaves[k].loop[0] == l->loop[0] && price_is_still(&leaves[k], t),
                 was = false;
            for (uint32_t j = 0; j < k && here; j++) {
                for (uint32_t o = 0; o < leaves[j].n; o++) {
                    was |= leaves[j].touch[o].node == t->node &&
                           price_is_still(&leaves[j], &leaves[j].touch[o]);
                }
            }
            bytes += here && !was ? t->block : 0.0;
        }
    }
    return bytes;
}

bool price_still_fits(const LeafPrice *leaves, uint32_t n, const LeafPrice *l, const Touch *t)
{
    double packed = (double)l->p->machine->systolic.packed;
    return t->block <= PACKED * packed &&
           (l->depth == 0 || still_beside(leaves, n, l) <= ALL_PACKED * packed);
}

/* Iterations of the loops that are around all of the leaves. */
static double shared_trips(const LeafPrice *leaves, uint32_t n)
{
    uint32_t shared = leaves[0].depth;
    double trips = 1.0;
    for (uint32_t k = 1; k < n; k++) {
        uint32_t same = 0;
        while (same < shared && same < leaves[k].depth &&
               leaves[k].loop[same] == leaves[0].loop[same]) {
            same++;
        }
        shared = same;
    }
    for (uint32_t p = 0; p < shared; p++) {
        trips *= leaves[0].trips[p];
    }
    return trips;
}

#define LITTLE 0.02    /* of the time: engines are at the rest meanwhile */
#define LATER  0.05    /* of the others' time: engines wait for each other now and then */
#define CHAIN  0.25e-6 /* seconds from one statement to the next, which waits for it */
#define ALONE  1.0e-6  /* the same where nothing else goes on */

static double all_engines(const Engines *e)
{
    return e->tensor + e->vector + e->scalar + e->copies + e->memory;
}

static void add(Engines *sum, const Engines *one, double times)
{
    sum->tensor += times * one->tensor;
    sum->vector += times * one->vector;
    sum->scalar += times * one->scalar;
    sum->copies += times * one->copies;
    sum->memory += one->memory;
}

/* Of what runs in the same loops, in so many statements one after the other: as long as the engine that has most to do, and one iteration
 * until all of them are at it. */
static double seconds_of(const Engines *e, double statements)
{
    double both = 0.5 * (e->vector + e->scalar + e->copies);
    double longest = fmax(fmax(e->vector, e->scalar), fmax(both, e->tensor));
    longest = fmax(longest, fmax(e->memory, CHAIN * statements));
    double all = all_engines(e) + ALONE * statements;
    double others = fmax(e->tensor + e->memory + 2.0 * both - longest, 0.0);
    return longest * (1.0 + 0.5 * LATER) + LATER * others +
           fmax(all - longest, 0.0) / fmax(e->trips, 1.0);
}

/* What stands in the same outermost loop runs together, other statements one after the other. */
void price_engines(const Nest *nest, const LeafPrice *leaves, uint32_t n, NestCost *cost)
{
    for (uint32_t k = 0, first = 0; k < n; first = k) {
        Engines sum = {0}, alone = {0};
        double statements = 0.0;
        uint32_t top = leaves[k].depth > 0 ? leaves[k].loop[0] : leaves[k].item;
        uint32_t end = leaves[k].depth > 0 ? nest->items[top].end : top + 1;
        for (; k < n && leaves[k].item < end; k++) {
            add(&sum, &leaves[k].engines, leaves[k].executions);
            statements += leaves[k].executions;
        }
        double shared = shared_trips(&leaves[first], k - first);
        double all = all_engines(&sum);
        uint32_t deepest = 0;
        for (uint32_t i = first; i < k; i++) {
            deepest = leaves[i].depth > deepest ? leaves[i].depth : deepest;
        }
        sum.trips = INFINITY;
        for (uint32_t i = first; i < k;
             i++) { /* loops around some of them are steps of an iteration */
            double steps = leaves[i].engines.trips * leaves[i].executions / shared;
            double trips = shared * (steps > 1.0 ? steps : 1.0);
            bool little = leaves[i].depth < deepest &&
                          all_engines(&leaves[i].engines) * leaves[i].executions < LITTLE * all;
            sum.trips = trips < sum.trips && !little ? trips : sum.trips;
        }
        sum.trips = sum.trips < INFINITY ? sum.trips : shared;
        alone = sum;
        alone.memory = 0.0;
        double seconds = seconds_of(&sum, statements), busy = seconds_of(&alone, statements);
        cost->arithmetic += busy;
        cost->waits[0] += seconds - busy;
        cost->seconds += seconds;
    }
}
