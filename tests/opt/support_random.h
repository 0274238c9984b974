/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs, small enough for the interpreter. */
#ifndef TESTS_OPT_SUPPORT_RANDOM_H
#define TESTS_OPT_SUPPORT_RANDOM_H

#include "../graph/support.h"

/* Some nodes over three parameters of ranks 0, 1 and 2 and element type `t`; all extents are 2. It has no result yet. */
Graph *random_graph(Bench *b, Rng *rng, DType t);

#endif
