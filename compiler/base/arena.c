/* SPDX-License-Identifier: Apache-2.0 */
/* An arena is a list of blocks, newest first; allocation moves an offset in the newest one. Blocks double up
 * to a limit, so that a small compilation costs little and a large one few calls. A block keeps how far it was
 * ever used: only that part has to be zeroed when it is handed out again after a reset. The budget counts
 * whole blocks, since that is what the process really holds. Under AddressSanitizer everything not handed out is
 * poisoned, with a gap after each piece. */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif
#ifndef ARENA_POISONS
#define ARENA_POISONS 0
#endif

#if ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define POISON(at, n)   __asan_poison_memory_region((at), (n))
#define UNPOISON(at, n) __asan_unpoison_memory_region((at), (n))
#else
#define POISON(at, n)   ((void)(at), (void)(n))
#define UNPOISON(at, n) ((void)(at), (void)(n))
#endif

#define ALIGNMENT     ((size_t)16)
#define GAP           (ARENA_POISONS ? ALIGNMENT : (size_t)0)
#define FIRST_BLOCK   ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)
/* From here on a piece has a block of its own, which can be given back alone. Marks do not point to such blocks; they
 * know how many there were. Sanitized builds do so early, to find pointers into what has grown since. */
#ifndef LARGE
#define LARGE ((size_t)1 << (ARENA_POISONS ? 12 : 17))
#endif

struct ArenaBlock {
    ArenaBlock *older;
    size_t number; /* of a large piece: how many were made before it */
    size_t size;   /* of bytes */
    size_t at;     /* bytes handed out */
    size_t high;   /* bytes that may be other than zero */
};

/* The header is a multiple of the alignment, so the bytes after it are aligned as malloc's result is. */
#define HEADER ((sizeof(ArenaBlock) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

static char *block_bytes(ArenaBlock *b)
{
    return (char *)b + HEADER;
}

NORETURN static void arena_exhausted(const Arena *a, const char *why)
{
    if (a->budget != NULL && a->budget->trap != NULL) {
        a->budget->trap(a->budget->user, a->budget->used);
    }
    fprintf(stderr, "tdsl: %s\n", why);
    abort();
}

void arena_init(Arena *a, MemoryBudget *budget)
{
    *a = (Arena){.budget = budget};
}

/* Drops the first block of a list. */
static void block_drop(Arena *a, ArenaBlock **list)
{
    ArenaBlock *b = *list;
    *list = b->older;
    a->used -= b->size;
    if (a->budget != NULL) {
        a->budget->used -= b->size;
    }
    UNPOISON(block_bytes(b), b->size);
    free(b);
}

/* The spare block counts in the budget only. */
static void spare_drop(Arena *a)
{
    if (a->spare != NULL) {
        a->used += a->spare->size;
        block_drop(a, &a->spare);
    }
}

void arena_release(Arena *a)
{
    while (a->block != NULL) {
        block_drop(a, &a->block);
    }
    while (a->large != NULL) {
        block_drop(a, &a->large);
    }
    spare_drop(a);
}

/* The newest block is unused from here on. One is kept: what is marked, allocated and reset again and again at a block's end would
 * make and clear a new block each time. */
static void block_spare(Arena *a)
{
    ArenaBlock *b = a->block;
    if (a->spare != NULL && a->spare->size >= b->size) {
        block_drop(a, &a->block);
        return;
    }
    spare_drop(a);
    a->used -= b->size;
    a->block = b->older;
    *b = (ArenaBlock){.size = b->size, .high = b->high};
    a->spare = b;
    POISON(block_bytes(b), b->size);
}

ArenaMark arena_mark(const Arena *a)
{
    return (ArenaMark){a->block, a->block == NULL ? 0 : a->block->at, a->n_large};
}

void arena_reset(Arena *a, ArenaMark mark)
{
    while (a->block != mark.block) {
        CHECK(a->block != NULL);
        block_spare(a);
    }
    while (a->large != NULL && a->large->number >= mark.n_large) {
        block_drop(a, &a->large);
    }
    if (a->block != NULL) {
        CHECK(mark.at <= a->block->at);
        a->block->at = mark.at;
        POISON(block_bytes(a->block) + mark.at, a->block->size - mark.at);
    }
}

/* A block of zeros, counted. */
static ArenaBlock *block_new(Arena *a, size_t size)
{
    MemoryBudget *budget = a->budget;
    if (a->spare != NULL && budget != NULL && budget->limit != 0 &&
        (budget->used > budget->limit || size > budget->limit - budget->used)) {
        spare_drop(a);
    }
    if (budget != NULL && budget->limit != 0 &&
        (budget->used > budget->limit || size > budget->limit - budget->used)) {
        budget->wanted = size;
        arena_exhausted(a, "out of memory: a stated limit was reached");
    }
    ArenaBlock *b = size > SIZE_MAX - HEADER ? NULL : calloc(1, HEADER + size);
    if (b == NULL) {
        if (budget != NULL) {
            budget->wanted = size;
        }
        arena_exhausted(a, "out of memory");
    }
    b->size = size;
    a->used += size;
    if (budget != NULL) {
        budget->used += size;
    }
    return b;
}

static void block_push(Arena *a, size_t need)
{
    size_t size = a->block == NULL ? FIRST_BLOCK : a->block->size * 2;
    if (size > LARGEST_BLOCK) {
        size = LARGEST_BLOCK;
    }
    if (size < need) {
        size = need;
    }
    ArenaBlock *b = a->spare;
    if (b != NULL && b->size >= size) {
        a->spare = NULL;
        a->used += b->size;
    } else {
        b = block_new(a, size);
    }
    b->older = a->block;
    a->block = b;
    POISON(block_bytes(b), b->size);
}

static void *large_new(Arena *a, size_t size)
{
    ArenaBlock *b = block_new(a, size);
    b->older = a->large;
    b->number = a->n_large++;
    a->large = b;
    return block_bytes(b);
}

void *arena_alloc(Arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) {
        arena_exhausted(a, "out of memory: a size beyond all limits was asked for");
    }
    if (size >= LARGE) {
        return large_new(a, size);
    }
    size_t need = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
    need = need == 0 ? ALIGNMENT : need;
    if (a->block == NULL || need > a->block->size - a->block->at) {
        block_push(a, need);
    }
    ArenaBlock *b = a->block;
    char *at = block_bytes(b) + b->at;
    UNPOISON(at, size);
    if (b->at < b->high) {
        size_t dirty = b->high - b->at;
        memset(at, 0, size < dirty ? size : dirty);
    }
    b->at += need;
    if (b->high < b->at) {
        b->high = b->at;
    }
    return at;
}

void *arena_array(Arena *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / 2 / size) {
        arena_exhausted(a, "out of memory: a size beyond all limits was asked for");
    }
    return arena_alloc(a, count * size);
}

void *arena_copy(Arena *a, const void *from, size_t size)
{
    void *to = arena_alloc(a, size);
    if (size != 0) {
        memcpy(to, from, size);
    }
    return to;
}

void arena_drop(Arena *a, void *at, size_t size)
{
    for (ArenaBlock **b = &a->large; size >= LARGE && *b != NULL; b = &(*b)->older) {
        if (block_bytes(*b) == at) {
            block_drop(a, b);
            return;
        }
    }
}
