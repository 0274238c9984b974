/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by phase: an arena hands out zeroed bytes and is released whole. Nothing in the compiler is freed
 * singly. An arena counts its bytes and has a limit; past the limit, or when the system has no memory, it
 * calls the trap (longjmp-free: a function that must not return, set by the driver, which reports the stated
 * limit and ends with exit code 4). Library users set a trap of their own. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct ArenaBlock ArenaBlock;

/* Called with the number of bytes in use; must not return. */
typedef void (*ArenaTrap)(void *user, size_t bytes_in_use);

/* Limits are shared by all arenas of one compilation. */
typedef struct MemoryBudget {
    size_t used;
    size_t limit;  /* bytes; 0: none */
    size_t wanted; /* the allocation that went past it, for the trap */
    ArenaTrap trap;
    void *user;
} MemoryBudget;

typedef struct Arena {
    ArenaBlock *block; /* newest first */
    ArenaBlock
        *spare; /* the largest that a reset has left unused, for the next one that is needed */
    ArenaBlock *large; /* pieces that own their block, newest first */
    size_t n_large;    /* made so far */
    MemoryBudget *budget;
    size_t used;
} Arena;

typedef struct ArenaMark {
    ArenaBlock *block;
    size_t at, n_large;
} ArenaMark;

/* The budget may be null: no limit, abort when the system has no memory. */
void arena_init(Arena *a, MemoryBudget *budget);
void arena_release(Arena *a);
ArenaMark arena_mark(const Arena *a);
/* Poisons what it gives back under AddressSanitizer. */
void arena_reset(Arena *a, ArenaMark mark);

/* Zeroed, aligned to 16 bytes, never null. `count * size` is checked. */
void *arena_alloc(Arena *a, size_t size);
void *arena_array(Arena *a, size_t count, size_t size);
void *arena_copy(Arena *a, const void *from, size_t size);
/* Gives a large piece of `size` bytes back to the system; a small one stays. For what grows by doubling: it then holds
 * at most three times its size, and less than twice once it has grown. */
void arena_drop(Arena *a, void *at, size_t size);

#define ARENA_NEW(a, Type)          ((Type *)arena_alloc((a), sizeof(Type)))
#define ARENA_ARRAY(a, count, Type) ((Type *)arena_array((a), (count), sizeof(Type)))

#endif
