/* SPDX-License-Identifier: Apache-2.0 */
/* A dense tensor in C order: what the interpreters compute with and the tools read and write. */
#ifndef GRAPH_TENSOR_H
#define GRAPH_TENSOR_H

#include "base/ctx.h"
#include "op/op.h"
#include "op/symmetry.h"

typedef struct Tensor {
    DType dtype;
    uint32_t rank;
    const int64_t *extent;
    int64_t count; /* elements */
    void *data;    /* in the layout of tdsl/abi.h */
} Tensor;

/* Zeroed. Null (and reported as E_LIMIT_SIZE) when bytes overflow SIZE_LIMIT or pass `max_bytes`. */
Tensor *tensor_new(Ctx *ctx, Arena *arena, DType dtype, uint32_t rank, const int64_t *extent);
/* Of element `at` in C order. */
void tensor_position(const Tensor *t, int64_t at, int64_t *position);
Number tensor_get(const Tensor *t, int64_t at);
void tensor_set(Tensor *t, int64_t at, Number v); /* rounds or wraps to t's type */

/* Makes the tensor as symmetric as is declared, from some of its elements: of those that are their own image, real and imaginary
 * parts that this excludes become 0. */
void tensor_make_symmetric(Arena *scratch, Tensor *t, const Symmetry *declared);
/* Is it, element by element, exactly, one NaN being as good as another? If not, at[] and image[] ([rank] each) are the first two places
 * that differ, in C order of the first. */
bool tensor_is_symmetric(const Tensor *t, const Symmetry *declared, int64_t *at,
                         int64_t *image);

/* The same elements in another shape of as many; `dims` are complete. The data is shared. */
Tensor *tensor_as(Arena *arena, const Tensor *t, uint32_t rank, const Dim *shape,
                  const int64_t *dims);

#endif
