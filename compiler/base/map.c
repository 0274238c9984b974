/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing, at most three quarters full; keys are mixed first, since callers' keys
 * are often small numbers or packed pairs. Nothing is ever removed. */
#include "base/map.h"

#include "base/check.h"

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    /* The finaliser of splitmix64 over both words. */
    uint64_t x = a + UINT64_C(0x9e3779b97f4a7c15) * (b + 1);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t hash_bytes(uint64_t seed, const void *at, size_t n)
{
    const unsigned char *p = at;
    uint64_t h = hash_mix(seed, n);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        size_t m = n - i < 8 ? n - i : 8;
        for (size_t k = 0; k < m; k++) { /* byte by byte: the same on every machine */
            word |= (uint64_t)p[i + k] << (8 * k);
        }
        h = hash_mix(h, word);
    }
    return h;
}

void map_init(Map *m, Arena *arena)
{
    *m = (Map){.arena = arena};
}

/* The slot that holds the key, or the free slot where it belongs. */
static uint32_t map_slot(const Map *m, uint64_t key)
{
    uint32_t at = (uint32_t)hash_mix(key, 0) & (m->cap - 1);
    while (m->used[at] && m->key[at] != key) {
        at = (at + 1) & (m->cap - 1);
    }
    return at;
}

static void map_grow(Map *m)
{
    Map old = *m;
    CHECK(old.cap <= UINT32_MAX / 4);
    m->cap = old.cap == 0 ? 16 : old.cap * 2;
    m->key = ARENA_ARRAY(m->arena, m->cap, uint64_t);
    m->value = ARENA_ARRAY(m->arena, m->cap, uint32_t);
    m->used = ARENA_ARRAY(m->arena, m->cap, uint8_t);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (old.used[i]) {
            uint32_t at = map_slot(m, old.key[i]);
            m->key[at] = old.key[i];
            m->value[at] = old.value[i];
            m->used[at] = 1;
        }
    }
    arena_drop(m->arena, old.key, old.cap * sizeof *old.key);
    arena_drop(m->arena, old.value, old.cap * sizeof *old.value);
    arena_drop(m->arena, old.used, old.cap * sizeof *old.used);
}

void map_put(Map *m, uint64_t key, uint32_t value)
{
    if (m->n >= m->cap / 4 * 3) {
        map_grow(m);
    }
    uint32_t at = map_slot(m, key);
    if (!m->used[at]) {
        m->used[at] = 1;
        m->key[at] = key;
        m->n++;
    }
    m->value[at] = value;
}

bool map_get(const Map *m, uint64_t key, uint32_t *value)
{
    if (m->cap == 0) {
        return false;
    }
    uint32_t at = map_slot(m, key);
    if (!m->used[at]) {
        return false;
    }
    *value = m->value[at];
    return true;
}

uint64_t rng_next(Rng *r)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t rng_below(Rng *r, uint64_t n)
{
    CHECK(n > 0);
    uint64_t reject =
        (UINT64_MAX - n + 1) % n; /* 2^64 mod n: below it the remainders are uneven */
    uint64_t x;
    do {
        x = rng_next(r);
    } while (x < reject);
    return x % n;
}

double rng_unit(Rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}
