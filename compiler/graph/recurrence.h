/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences: values that are computed step by step along one index, each step from what the steps before have left.
 *
 *     h[-1,n] = h0[n];  h[t,n] = a[t,n] * h[t - 1,n] + b[t,n];
 *
 * One step is a graph of its own, the body: its parameters are the states (inout: `h` of the step before), slices of values at the
 * step's position, and values that are the same in each step; its results are what the states become, and values of the step. What
 * does not depend on a state stays outside, where it is computed for all steps at once:
 *
 *     states = their begins
 *     for each position of the index, in order (backward: from the last one)
 *         results = body(states, slices of operands there, operands)
 *         values along the index get those results at this position
 *
 * The first `given` positions (backward: the last) are no steps: the values have elements there that are operands.
 *
 * A cycle in the graph would be a case in every pass. A body is a graph as any other: passes, the path search, the nest and both interpreters
 * know nothing of steps. What hides in it is lost to fusion, so build_steps.c cuts out what depends on a step before and no more, but for
 * elementwise work, of which nothing is stored then. */
#ifndef GRAPH_RECURRENCE_H
#define GRAPH_RECURRENCE_H

#include "graph/graph.h"
#include "graph/tensor.h"

/* What a parameter of the body is, of the operand with this number: */
typedef enum StepsRole {
    STEPS_STATE, /* an inout parameter, which begins as the operand is */
    STEPS_PRIOR, /* what result `result` was `lag` steps before; the operand before the first step */
    STEPS_EACH,  /* the operand's slice at the position of the step, along dimension `dim` */
    STEPS_WHOLE, /* the operand */
    STEPS_NUMBER /* the position, a number; no operand */
} StepsRole;

typedef struct StepsParam {
    StepsRole role;
    uint32_t operand, dim;
    uint32_t result, lag; /* PRIOR */
} StepsParam;

typedef struct Recurrence {
    Graph *body;
    Dim extent;     /* positions of the index */
    uint32_t given; /* of them, no steps */
    bool backward;
    uint32_t n_operands;     /* of each of its values */
    const StepsParam *param; /* [params of the body] */
    const uint32_t *
        first; /* [results of the body][given]: operands, in the order of positions in which steps run; of states
                                nothing is meant */
    const struct Nest *nest; /* of the body; null: not planned yet */
    bool
        batch; /* the nest is a loop over an index that has its states to itself: around the steps */
} Recurrence;

/* Given positions and lags of one recurrence, at most. */
#define STEPS_LAG 8

Recurrence *recurrence_copy(Arena *arena, const Recurrence *from);
static inline const Recurrence *node_recurrence(const Graph *g, const Node *n)
{
    return g->recurrences.at[n->steps.recurrence];
}
/* The body's result that state parameter `param` becomes; the number of results if there is none. */
uint32_t recurrence_state_result(const Recurrence *r, uint32_t param);
/* The node that is this result of the recurrence at each step; NODE_NONE: none is. */
NodeRef recurrence_value(const Graph *g, uint32_t recurrence, uint32_t result);
/* Values of steps that no node is are not computed; a recurrence that no node is of keeps its number, and a body of states alone. */
void recurrence_prune(Arena *arena, Graph *g, uint32_t number);
/* States that the graph has at each step anyway are read from there, and are no states any more: where that is one step before, or the
 * first positions are given. */
void recurrence_read_back(Arena *arena, Graph *g);
/* What is wrong with a STEPS node of the graph, or with the recurrence that it is of; null: nothing. */
const char *recurrence_problem(const Graph *g, const Node *n);
/* The value of the node, of operands [n_operands]; `dims` are complete. False after a report. */
bool recurrence_eval(Ctx *ctx, Arena *arena, const Graph *g, const Node *n, const int64_t *dims,
                     Tensor *const *operand, Tensor *out);

/* ---- recurrence_text.c ---- */
void recurrence_dump(const Graph *g, uint32_t number, Text *out);
/* One block of a graph's text; the graph gets it. */
bool recurrence_read(DumpReader *in, Arena *scratch, Graph *g, const DumpLine *line);

#endif
