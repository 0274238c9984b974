/* SPDX-License-Identifier: Apache-2.0 */
/* The pass between the two forms of the tensor graph: every contraction of three operands or more becomes a tree of
 * contractions of two, in the order that the search (or a decision from outside) gives. */
#ifndef PATH_APPLY_H
#define PATH_APPLY_H

#include "graph/graph.h"
#include "path/path.h"

/* One decision, kept for reports. */
typedef struct PathDecision {
    Sym kernel;
    Span span;
    PathProblem problem;
    PathResult result;
    double seconds; /* of the search; filled by the caller's clock, 0 here */
} PathDecision;

/* What planning the contractions of one kernel together has saved; lines for people. */
typedef struct PathTogether {
    Sym kernel;
    const char *separate, *together; /* multiply-adds, as digits */
    VEC(const char *) shared;        /* an intermediate that several contractions use */
    VEC(const char *) factored;      /* a sum that is made before a contraction */
} PathTogether;

typedef struct PathDecisions {
    VEC(PathDecision) list;
    VEC(PathTogether) together; /* of the kernels where it saves something */
} PathDecisions;

typedef struct PathControl {
    PathOptions options;
    bool no_factor;     /* terms of sums are contracted one by one */
    const char *linear; /* --path: for the only contraction of the program; null: search */
    Str plan;           /* --plan-in: likewise; at null: none */
    bool
        equation; /* the program is an equation: positions are those of its operands, scalars included */
} PathControl;

/* GRAPH_TENSOR -> GRAPH_BINARY. Null after a diagnostic. */
Graph *path_apply(Ctx *ctx, Arena *arena, const Graph *g, const PathControl *control,
                  PathDecisions *out);

/* absorb.c. GRAPH_TENSOR -> GRAPH_TENSOR: a contraction that only one contraction reads, and that is no result and has no declared
 * type, becomes part of it where the order that is found for both saves a tenth of the multiply-adds at typical sizes. */
Graph *path_absorb(Ctx *ctx, Arena *arena, const Graph *g);

/* The contraction of one node as a problem; labels are the node's, extents typical. */
PathProblem path_problem_of(Arena *arena, const Graph *g, NodeRef node);

#endif
