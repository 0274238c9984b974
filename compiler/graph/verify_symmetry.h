/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAPH_VERIFY_SYMMETRY_H
#define GRAPH_VERIFY_SYMMETRY_H

#include "graph/graph.h"

/* What is wrong with the symmetry said of the first node with a false claim, *at; null: nothing. What is said of parameters
 * is taken as true. */
const char *graph_symmetry_problem(Arena *scratch, const Graph *g, NodeRef *at);

#endif
