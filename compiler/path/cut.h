/* SPDX-License-Identifier: Apache-2.0 */
/* Light cuts of hypergraphs: what bisection and sweeps begin with. */
#ifndef PATH_CUT_H
#define PATH_CUT_H

#include "base/map.h"
#include "path/net.h"

typedef struct Hyper {
    uint32_t n, n_nets;
    uint32_t *first,
        *pin;       /* by net: its vertices, two or more, each once; n_nets + 1 offsets */
    double *weight; /* by net */
    uint32_t *mass; /* by vertex: operands in it */
    uint32_t *start, *net; /* by vertex: its nets; made by cut_run */
} Hyper;

/* Sides (0 or 1) of the vertices, two or more, with at least about 0.5 - imbalance of the mass on each. Returns the work
 * done, in elements of lists touched. */
uint64_t cut_run(Hyper *h, double imbalance, Rng *rng, Arena *scratch, uint8_t *side);

#endif
