/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the arrays of a call, by a kernel's description. For a program that has included a header of kernels. */
#ifndef TESTS_BACKEND_C_SIZES_H
#define TESTS_BACKEND_C_SIZES_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t extent_of(const tdsl_kernel_info *k, const int64_t *dims, int64_t dim)
{
    if (dim < k->n_dims) {
        return dims[dim];
    }
    const tdsl_computed *c = &k->computed[dim - k->n_dims];
    int64_t value = c->base;
    for (int32_t t = 0; t < c->n_terms; t++) {
        int64_t extent = extent_of(k, dims, c->terms[t].dim);
        value = c->product != 0 ? value * extent : value + c->terms[t].coefficient * extent;
    }
    return c->product != 0 ? value : value / c->divisor;
}

static inline size_t bytes_of(const tdsl_kernel_info *k, const tdsl_arg_info *a,
                              const int64_t *dims)
{
    static const size_t bytes[] = {0, 8, 4, 2, 2, 4, 8, 1, 8, 16, 1, 1, 2, 2, 4, 1, 1, 1};
    size_t size = bytes[a->dtype];
    for (int32_t d = 0; d < a->rank; d++) {
        const tdsl_extent *e = &a->extents[d];
        size *= (size_t)(e->dim < 0 ? e->fixed : extent_of(k, dims, e->dim));
    }
    return size;
}

#endif
