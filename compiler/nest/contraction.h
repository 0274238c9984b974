/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: how a contraction is blocked below its shared loops, and what that
 * takes. */
#ifndef NEST_CONTRACTION_H
#define NEST_CONTRACTION_H

#include "nest/facts.h"

typedef struct ContractionPrice {
    double seconds;          /* of one execution, without traffic, */
    double pack[ROLE_BATCH]; /* ... and of these the copies of operands, */
    bool whole
        [ROLE_BATCH]; /* ... all at once, before loops around that leave the operand as it is */
    double a_times, b_times, c_times; /* how often one that fits no level reads each operand,
                                         and its result, in the order of the uses */
    NodeRef
        ahead; /* the operand that tiles ask ahead for, if it is in memory: memory and arithmetic go on at once;
                      or NEST_NONE */
} ContractionPrice;

/* Iterations of the innermost loops around the leaf at `item` that leave one of its operands as it is: what is packed of it in
 * one piece is packed once for all of them; *loops: how many these are. Outermost loops that threads may share are none. */
double contraction_runs(const NestFacts *f, const Nest *nest, uint32_t item, const Use *operand,
                        uint32_t *loops);
/* Positions of the sum that instructions for dot products of integers take at once where both operands are packed: 4 or 2; 1: they do not. */
int64_t contraction_group(const NestFacts *f, const Machine *machine, NodeRef node);
/* For the extents of its labels in one execution, cut so; runs[k]: contraction_runs of its k-th use. */
void contraction_price(const NestFacts *f, const Machine *machine, NodeRef node,
                       const Schedule *b, const double *extent, const double runs[2],
                       ContractionPrice *out);
/* How often an engine that adds up in tiles, of which all labels of a role share one, reads the operand with each role. */
void contraction_reads(const Schedule *b, const double *extent, double times[ROLE_K]);
/* Positions of the label that are packed together, of its extents in one execution: the steps of the level that packs, of
 * K those of its outermost level; of what is not packed all of the first label of a role and one of the others. */
double contraction_together(const Schedule *b, int32_t label, const double *extent);
/* Time of a register tile of so many columns of the widest's, for each column. Vectors half as long keep any machine
 * busy if there are rows enough; shorter ones are a part of what wide registers hold. Two of different length side by
 * side, three quarters, wait for each other. */
double contraction_width_price(int64_t columns, int64_t widest);
/* For the extents of its labels in one execution: operands of which a loop along the innermost
 * label reads one element of a line at a time. */
uint32_t contraction_columns(const NestFacts *f, const Nest *nest, NodeRef node,
                             const double *extent);
/* The label that a plain loop nest over the node runs along innermost: the last that is folded, or
 * the last of the result of more than one position; or UINT32_MAX. */
uint32_t contraction_innermost(const Node *n, const double *extent);
/* A sum of products of two operands whose elements stand side by side along different summed labels: only pieces of both
 * labels read whole lines of both, and these are what a loop over one of them cuts, around a statement that cuts the other. */
bool contraction_crosses_lines(const NestFacts *f, NodeRef node);
/* A fold that runs along lines of memory: some label is last in all that it reads, or last in
 * its result and in what it reads. */
bool contraction_has_rows(const NestFacts *f, NodeRef node);

#endif
