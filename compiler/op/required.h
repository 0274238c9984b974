/* SPDX-License-Identifier: Apache-2.0 */
/* What a position that is a value must be: at least 0, and below the extent of what it is a position of. */
#ifndef OP_REQUIRED_H
#define OP_REQUIRED_H

#include "op/types.h"

typedef struct Requirement {
    bool guarded; /* a position that is REQUIRED_NOT stands where nothing is read */
    Dim below;    /* the extent of dimension `dimension` of `array` */
    Sym array;
    uint32_t dimension;
    const char *text;    /* the position as the source has it, */
    const char *indices; /* and what it calls the indices, "b,l" */
    Span span;
} Requirement;

#define REQUIRED_NOT INT64_MIN

static inline bool required_is_outside(const Requirement *r, int64_t at, int64_t below)
{
    return (at < 0 || at >= below) && !(r->guarded && at == REQUIRED_NOT);
}

#endif
