/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of online sums, for the verifier. */
#ifndef GRAPH_VERIFY_ONLINE_H
#define GRAPH_VERIFY_ONLINE_H

#include "graph/graph.h"

/* What is wrong with the first broken rule of the graph, number *at, or null. The nodes are right. */
const char *graph_online_problem(const Graph *g, Arena *scratch, uint32_t *at);

#endif
