/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to 32-bit values, and a hash of bytes. Iteration over the map does not exist
 * on purpose: nothing may depend on hash order; keep a vector beside it when order is wanted. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct Map {
    Arena *arena;
    uint64_t *key;
    uint32_t *value;
    uint8_t *used;
    uint32_t n, cap;
} Map;

void map_init(Map *m, Arena *arena);
void map_put(Map *m, uint64_t key, uint32_t value); /* replaces */
bool map_get(const Map *m, uint64_t key, uint32_t *value);

uint64_t hash_bytes(uint64_t seed, const void *at, size_t n);
uint64_t hash_mix(uint64_t a, uint64_t b);

/* A deterministic random generator (splitmix64): the state is the seed. */
typedef struct Rng {
    uint64_t state;
} Rng;
uint64_t rng_next(Rng *r);
uint64_t rng_below(Rng *r, uint64_t n); /* in [0, n), n > 0 */
double rng_unit(Rng *r);                /* in [0, 1), 53 bits */

#endif
