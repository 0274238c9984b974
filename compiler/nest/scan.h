/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: `C[i] = sum[j <= i](x[j])` takes each element of x once. */
#ifndef NEST_SCAN_H
#define NEST_SCAN_H

#include "nest/leaves.h"

/* A reduction over `folded` whose mask leaves, at position i of `along`, the positions up to i (from i on, if `reverse`);
 * without i itself if `exclusive`. Nothing else of what is folded depends on `along`. */
typedef struct Scan {
    int32_t folded, along; /* labels of the node, of one extent */
    bool reverse, exclusive;
    NodeRef value; /* what is folded, */
    Access access; /* ... in labels of the node */
} Scan;

/* Can node `n`, a leaf of the nest, be computed so, if no loop of the nest is along either label? */
bool nest_scan(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n, Scan *out);

#endif
