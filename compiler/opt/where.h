/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the terms of a sum of products that a loop over a summed label keeps by its bounds, so that terms without them are
 * not computed at all. */
#ifndef OPT_WHERE_H
#define OPT_WHERE_H

#include "graph/graph.h"

/* Which summed labels have a least and a greatest position so far. */
typedef struct Bounded {
    uint64_t least, most;
} Bounded;

/* Does node `condition` of `g`, read by `at` in labels of `sum`, bound one summed label by positions of the others? The bounds are
 * added to `to`, where none of its kind may be yet. `negated`: it is to hold where the node does not. */
bool where_bounds(Arena *scratch, const Graph *g, const Node *sum, NodeRef condition, Access at,
                  bool negated, Bounded *to);

/* `node`, read by `at` in labels of `sum`, is exp(s - m), or that of its product with a number, or a cast of it, where m is the maximum of the same s
 * under the condition, which some position of each row fulfils: then exp(select(condition, s, -inf) - m) is the same where the
 * condition holds, and 0 elsewhere. Adds that to `to`, of which map[old] are the nodes of `g`; NODE_NONE: it is none. */
NodeRef where_exponential(Arena *scratch, const Graph *g, Graph *to, const NodeRef *map,
                          NodeRef node, Access at, NodeRef condition, Access holds);

#endif
