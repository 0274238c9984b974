/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters and lookups: statements whose value is select(key == index(v), x, neutral), of a map select(key == index(v), x, what lies there), perhaps under other conditions too. At all positions
 * of the index v but the key's nothing changes. */
#ifndef LOOP_PLACES_H
#define LOOP_PLACES_H

#include "loop/walk.h"

typedef struct Scattered {
    const Expr *const *
        key; /* of each index: where the element goes along it, a whole number made of the indices before v; or null */
    const Expr *condition; /* the other conditions, or null */
    const Expr *value;     /* what is folded there, or stored */
} Scattered;

/* Of a statement that says `places`: false where it is no such. */
bool stmt_places(Arena *arena, const Kernel *k, const Stmt *s, Scattered *out);

#endif
