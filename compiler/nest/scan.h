/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: `C[i] = sum[j <= i](x[j])` takes each element of x once. */
#ifndef NEST_SCAN_H
#define NEST_SCAN_H

#include "nest/nest.h"

/* A reduction over `folded` whose mask leaves, at position i of `along`, the positions up to i (from i on, if `reverse`);
 * without i itself if `exclusive`. Nothing else of what is folded depends on `along`. */
typedef struct Scan {
    int32_t folded, along; /* labels of the node, of one extent */
    bool reverse, exclusive;
    NodeRef value; /* what is folded, */
    Access access; /* ... in labels of the node */
} Scan;

/* Can node `n`, a leaf of the nest, be computed so? Not where a loop of the nest is along either label. */
bool nest_scan(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n, Scan *out);

/* How often fewer positions a leaf looks at for being a scan, of those that its labels have; 1: it is none. The folded label has
 * one from here on. */
double nest_scan_repeats(Arena *scratch, const Nest *nest, NodeRef n, double *extent);

/* All that can on this machine: any in caches, on Trainium forward sums, maxima and minima along rows that fit. */
void nest_set_scans(Arena *arena, const Machine *machine, const Nest *nest, NestValue *values);

#endif
