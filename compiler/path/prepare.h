/* SPDX-License-Identifier: Apache-2.0 */
/* The one preparation of a contraction for the search, of the path tool and of kernels. */
#ifndef PATH_PREPARE_H
#define PATH_PREPARE_H

#include "path/path.h"

typedef struct PathSourceOperand {
    uint32_t rank;
    const int32_t *label; /* by dimension; -1: of extent 1, read at position 0 */
} PathSourceOperand;

/* A contraction as it is written. */
typedef struct PathSource {
    uint32_t n_operands;
    const PathSourceOperand *operands; /* without scalars */
    const uint32_t *place;             /* as in PathProblem */
    uint32_t n_given;
    uint32_t rank;
    const uint32_t *output;
    uint32_t n_labels;
    const int64_t *sizes;
    const char *const *names; /* null: numbers */
    bool typical;
    const char *equation;
} PathSource;

/* *origin (may be null): by label of the result, the label of the source. */
PathProblem path_prepare(const PathSource *s, Arena *arena, const uint32_t **origin);

/* The tree with the scalars of the equation, which multiply the result; and without them. */
PathTree path_tree_given(const PathProblem *p, const PathTree *t, Arena *arena);
/* path_parse_from, of positions among the operands of the equation. */
bool path_parse_given(const char *text, const char *who, const PathProblem *p, Ctx *ctx,
                      PathTree *out);

#endif
