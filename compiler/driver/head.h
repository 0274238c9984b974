/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel takes and gives, whatever stage it is at: all that a caller has to know of it. Results are in the order of the
 * graph's; of a kernel without a graph, the inout arguments that it writes and its results in calling order. */
#ifndef DRIVER_HEAD_H
#define DRIVER_HEAD_H

#include "graph/graph.h"
#include "loop/loop.h"

typedef struct HeadResult {
    Sym name;
    DType dtype;
    uint32_t rank;
    const Dim *shape;
    int32_t param;            /* index of the inout parameter, or -1 */
    const Symmetry *symmetry; /* declared, as a graph's result; or null */
} HeadResult;

typedef struct Head {
    Sym name;
    const DimTable *dims;
    uint32_t n_params, n_results;
    const Param *params;
    const HeadResult *results;
} Head;

Head head_of_graph(Arena *arena, const Graph *g);
Head head_of_kernel(Arena *arena, const Kernel *k);

/* May a kernel with the head `made` stand for one with `asked`? Equal but for extents, what is declared of symmetry too: what is open in `asked` may be a number in
 * `made`, the same wherever it stands, and what is open in `made` a number in `asked` where `bound` says that it will be this one
 * ([dims of made], -1: nothing; null: nothing at all). On false, *what says what differs. */
bool head_serves(Arena *arena, const Head *made, const int64_t *bound, const Head *asked,
                 const char **what);

/* An array of these extents; null after a diagnostic. */
Tensor *head_new_result(Ctx *ctx, Arena *arena, const HeadResult *r, const int64_t *dims);

#endif
