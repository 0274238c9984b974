/* SPDX-License-Identifier: Apache-2.0 */
/* The contractions of one kernel planned together: which intermediates are equal up to renaming, so that apply.c computes
 * them once; and in sums of contractions, what is added before it is contracted, which factor.c builds. */
#ifndef PATH_TERMS_SHARE_H
#define PATH_TERMS_SHARE_H

#include "path/apply.h"
#include "path/terms/multi.h"
#include "path/terms/sums.h"

/* An intermediate that has been made: dimension d of the node is leg `leg[d]` of the value. */
typedef struct SharedValue {
    uint32_t value;
    NodeRef node;
    uint32_t rank;
    const uint32_t *leg;
} SharedValue;

typedef struct Sharing {
    Arena *arena;
    bool active;   /* planning together saves something */
    bool factored; /* sums are built by the plan: `sums`, `merged` */
    uint32_t
        *term; /* [nodes of the graph]: number of the contraction in the plan, or PATH_NONE */
    const uint32_t *base; /* [terms]: its label 0 in the numbering of all */
    const NodeRef *node;  /* [terms]: the contraction, of the old graph */
    GraphSums sums;
    PathMerged merged;
    PathMultiResult plan;
    VEC(SharedValue) made;
    Map made_by_value;
    PathTogether report;
    Map told; /* values that the report has */
} Sharing;

/* Inactive when the control decides otherwise, or when nothing is shared. False after a diagnostic. */
bool share_plan(Ctx *ctx, Arena *arena, const Graph *g, const PathControl *control,
                Sharing *out);

/* The tree of contraction `term` as a path. */
PathTree share_tree(Sharing *s, uint32_t term, uint32_t n_operands);

/* The node of step `step` if it has been made already: its dimensions as labels of the contraction go to `labels`
 * ([rank], room for RANK_LIMIT). NODE_NONE when it has not. */
NodeRef share_find(Sharing *s, const Graph *g, uint32_t term, uint32_t step, int32_t *labels,
                   uint32_t *rank);
/* Tensor `at` of the term, as "A * B". */
const char *share_describe(const Sharing *s, const Graph *g, uint32_t term, uint32_t at);
/* Remembers that `node`, whose dimensions are `labels`, is the result of the step. */
void share_add(Sharing *s, uint32_t term, uint32_t step, NodeRef node, const int32_t *labels,
               uint32_t rank);

#endif
