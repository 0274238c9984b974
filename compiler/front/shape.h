/* SPDX-License-Identifier: Apache-2.0 */
/* Types as text, for messages and dumps. */
#ifndef FRONT_SHAPE_H
#define FRONT_SHAPE_H

#include "base/text.h"
#include "op/types.h"

/* An extent not known yet, as `?` or `?~N` of --shape, planned for N (0: not said): exists only until einsum_resolve. */
#define DIM_WILD(N) ((Dim){-2, (N)})

static inline bool dim_is_wild(Dim d)
{
    return d.sym == -2;
}

void dim_print(Text *t, const DimTable *dims, Dim d);                    /* "o", "16", "?" */
void shape_print(Text *t, const DimTable *dims, const TensorType *type); /* "[o, v]" */
void type_print(Text *t, const DimTable *dims, const TensorType *type); /* "f32[o, v]", "f64" */
const char *dim_text(Arena *a, const DimTable *dims, Dim d); /* "dim o", "16", for messages */
const char *shape_text(Arena *a, const DimTable *dims, const TensorType *type);
/* Elements and bytes of a tensor whose open extents count as 1: false on overflow of SIZE_LIMIT. */
bool type_bytes(const TensorType *type, int64_t *bytes);

#endif
