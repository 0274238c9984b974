/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that are as symmetric as is declared of them. */
#include <math.h>

#include "graph/tensor.h"

static void place_of(const Tensor *t, int64_t element, int64_t *at)
{
    for (uint32_t d = t->rank; d-- > 0;) {
        at[d] = element % t->extent[d];
        element /= t->extent[d];
    }
}

static int64_t element_at(const Tensor *t, const int64_t *at)
{
    int64_t element = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        element = element * t->extent[d] + at[d];
    }
    return element;
}

static void exchange(int64_t *at, uint32_t a, uint32_t b)
{
    int64_t x = at[a];
    at[a] = at[b];
    at[b] = x;
}

static Number negative(Number v)
{
    v.i = number_int(DTYPE_I64, (int64_t)(0 - (uint64_t)v.i)).i;
    v.re = -v.re;
    v.im = -v.im;
    return v;
}

/* The place with the indices of each class in order, and the sign on the way there: 0 when two are equal that should differ. */
static int sort_place(uint32_t rank, const int32_t *classes, int64_t *at)
{
    int sign = 1;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t e = d, before = symmetry_before(rank, classes, d);
        for (; before < rank && at[before] >= at[e];
             e = before, before = symmetry_before(rank, classes, e)) {
            sign *= classes[d] > 0 ? 1 : at[before] == at[e] ? 0 : -1;
            exchange(at, before, e);
        }
    }
    return sign;
}

void tensor_make_symmetric(Tensor *t, const int32_t *classes)
{
    int64_t at[RANK_LIMIT];
    for (int64_t k = 0; classes != NULL && k < t->count; k++) {
        place_of(t, k, at);
        int sign = sort_place(t->rank, classes, at);
        Number v = tensor_get(t, element_at(t, at)); /* not after k: it stays as it is */
        if (sign == 0) {
            v.i = 0;
            v.re = v.im = 0;
        }
        tensor_set(t, k, sign < 0 ? negative(v) : v);
    }
}

static bool same_real(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool is_image(const Tensor *t, int64_t a, int64_t b, bool negated)
{
    Number x = tensor_get(t, a), y = tensor_get(t, b);
    if (!dtype_is_float(t->dtype) && !dtype_is_complex(t->dtype)) {
        Number other = negated ? negative(y) : y;
        return number_cast(other, t->dtype).i == x.i;
    }
    return negated ? same_real(x.re, -y.re) && same_real(x.im, -y.im)
                   : same_real(x.re, y.re) && same_real(x.im, y.im);
}

bool tensor_is_symmetric(const Tensor *t, const int32_t *classes, int64_t *at, int64_t *image)
{
    for (int64_t k = 0; classes != NULL && k < t->count; k++) {
        place_of(t, k, at);
        for (uint32_t d = 0; d < t->rank; d++) {
            uint32_t next = symmetry_next(t->rank, classes, d);
            if (next == t->rank) {
                continue;
            }
            place_of(t, k, image);
            exchange(image, d, next);
            if (!is_image(t, k, element_at(t, image), classes[d] < 0)) {
                return false;
            }
        }
    }
    return true;
}
