/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that values may share. */
#ifndef NEST_AXES_H
#define NEST_AXES_H

#include "nest/facts.h"

/* axes.c: the axes that all of `nodes` (ascending) have in common and could be looped over
 * together. Returns their number, written to *axes (from `arena`). `online`: those too that one of
 * them is folded over although another reads it, if the graph has a rule that may allow it; and those along which
 * views shift, if the facts say that there are halos. */
uint32_t nest_common_axes(Arena *arena, const NestFacts *f, uint32_t n_nodes,
                          const NodeRef *nodes, bool online, const NestAxis **axes);
/* halo.c: the label of the reader with which the position moves one by one, other labels moving it only as far as a number; or -1. */
int32_t halo_label(const Graph *g, const Node *reader, Affine x);
/* Finds the extent and the halos of an axis whose nodes read each other at such positions. False: there is no such loop. */
bool halo_set(Arena *arena, const NestFacts *f, NestAxis *axis);

#endif
