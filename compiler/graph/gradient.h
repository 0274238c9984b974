/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that gives derivatives of another one's results. */
#ifndef GRAPH_GRADIENT_H
#define GRAPH_GRADIENT_H

#include "front/check.h"
#include "graph/graph.h"

/* Turns the graph of spec->of into that of its derivatives. With seeds, there is a parameter dR of the type of each float result R after the
 * others. Results are dP for each parameter P that is named, then those of the kernel that are named too. Null after a report. */
Graph *graph_gradient(Ctx *ctx, Arena *arena, Graph *g, const CheckedKernel *kernel);

/* shift.c: are all results of the kernel, whose first n values are its own, the same where maximum `most` is larger by a number? */
bool graph_shifts_out(Arena *arena, const Graph *g, NodeRef most, uint32_t n);

#endif
