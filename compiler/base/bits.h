/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of small integers as arrays of 64-bit words. The caller knows the number of words; sets of one universe
 * share it. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>

#include "base/arena.h"

static inline uint32_t bits_words(uint32_t universe)
{
    return universe == 0 ? 1 : (universe + 63) / 64;
}

static inline void bits_set(uint64_t *s, uint32_t i)
{
    s[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bits_clear(uint64_t *s, uint32_t i)
{
    s[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline bool bits_has(const uint64_t *s, uint32_t i)
{
    return (s[i / 64] >> (i % 64)) & 1;
}

uint32_t bits_count(const uint64_t *s, uint32_t words);
/* The least member >= from, or UINT32_MAX. */
uint32_t bits_next(const uint64_t *s, uint32_t words, uint32_t from);

#endif
