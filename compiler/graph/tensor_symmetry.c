/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that are as symmetric as is declared of them. */
#include <math.h>

#include "graph/tensor.h"

static int64_t element_at(const Tensor *t, const int64_t *at)
{
    int64_t element = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        element = element * t->extent[d] + at[d];
    }
    return element;
}

/* The element at whose place the value stands that the one at `at` is, up to sign and conjugation. */
static int64_t image_of(const Tensor *t, const int64_t *at, const uint32_t *to)
{
    int64_t image[RANK_LIMIT];
    for (uint32_t d = 0; d < t->rank; d++) {
        image[d] = at[to[d]];
    }
    return element_at(t, image);
}

static Number negative(Number v)
{
    v.i = number_int(DTYPE_I64, (int64_t)(0 - (uint64_t)v.i)).i;
    v.re = -v.re;
    v.im = -v.im;
    return v;
}

static Number conjugate(Number v)
{
    v.im = -v.im;
    return v;
}

/* Element k, which no earlier one decides: what of it is its own image stays. */
static Number own_image(const Tensor *t, const SymmetryGroup *group, const int64_t *at,
                        int64_t k)
{
    Number v = tensor_get(t, k);
    for (uint32_t i = 0; i < group->n; i++) {
        const Generator *p = &group->at[i];
        if (image_of(t, at, p->to) != k) {
            continue;
        }
        bool no_re = p->sign < 0, no_im = p->conj ? p->sign > 0 : p->sign < 0;
        v.i = no_re ? 0 : v.i;
        v.re = no_re ? 0 : v.re;
        v.im = no_im ? 0 : v.im;
    }
    return v;
}

void tensor_make_symmetric(Arena *scratch, Tensor *t, const Symmetry *declared)
{
    if (declared == NULL) {
        return;
    }
    int64_t at[RANK_LIMIT];
    ArenaMark mark = arena_mark(scratch);
    SymmetryGroup group;
    symmetry_declared_group(scratch, t->rank, declared, &group);
    for (int64_t k = 0; k < t->count; k++) {
        tensor_position(t, k, at);
        int64_t first = k;
        const Generator *by = &group.at[0];
        for (uint32_t i = 1; i < group.n; i++) {
            int64_t image = image_of(t, at, group.at[i].to);
            by = image < first ? &group.at[i] : by;
            first = image < first ? image : first;
        }
        Number v = first == k ? own_image(t, &group, at, k) : tensor_get(t, first);
        v = by->conj ? conjugate(v) : v;
        tensor_set(t, k, by->sign < 0 ? negative(v) : v);
    }
    arena_reset(scratch, mark);
}

static bool same_real(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_image(const Tensor *t, int64_t a, int64_t b, const Generator *exchange)
{
    Number x = tensor_get(t, a), y = tensor_get(t, b);
    y = exchange->conj ? conjugate(y) : y;
    y = exchange->sign < 0 ? negative(y) : y;
    if (!dtype_is_float(t->dtype) && !dtype_is_complex(t->dtype)) {
        return number_cast(y, t->dtype).i == x.i;
    }
    return same_real(x.re, y.re) && same_real(x.im, y.im);
}

bool tensor_is_symmetric(const Tensor *t, const Symmetry *declared, int64_t *at, int64_t *image)
{
    uint32_t to[RANK_LIMIT];
    for (int64_t k = 0; declared != NULL && k < t->count; k++) {
        Generator exchange;
        tensor_position(t, k, at);
        for (uint32_t i = 0; symmetry_generator(declared, t->rank, i, to, &exchange); i++) {
            int64_t other = image_of(t, at, to);
            if (!is_image(t, k, other, &exchange)) {
                tensor_position(t, other, image);
                return false;
            }
        }
    }
    return true;
}
