/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays on an arena: `VEC(int) v = {0}; vec_push(arena, &v, 3); v.at[i]`. Growth
 * copies into a new place and drops the old, so pointers into a vector do not survive a push. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/arena.h"

#define VEC(Type)                                                                              \
    struct {                                                                                   \
        Type *at;                                                                              \
        uint32_t n, cap;                                                                       \
    }

/* Returns the (possibly moved) array with room for one more element. */
void *vec_grow(Arena *a, void *at, uint32_t n, uint32_t *cap, size_t size);

#define vec_push(a, v, value)                                                                  \
    do {                                                                                       \
        (v)->at = vec_grow((a), (v)->at, (v)->n, &(v)->cap, sizeof *(v)->at);                  \
        (v)->at[(v)->n++] = (value);                                                           \
    } while (0)

#endif
