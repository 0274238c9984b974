/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, vectors and index sets. */
#include "base/arena.h"

#include <setjmp.h>
#include <string.h>

#include "base/bits.h"
#include "base/check.h"
#include "base/vec.h"
#include "support/test.h"

static void memory_is_zeroed_and_aligned_also_after_a_reset(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    arena_alloc(&a, 1); /* so that the mark is inside a block, which is then used again */
    for (int round = 0; round < 3; round++) {
        ArenaMark m = arena_mark(&a);
        for (size_t n = 0; n < 3000; n += 7) {
            unsigned char *p = arena_alloc(&a, n);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(p[i], 0);
            }
            memset(p, 0xff, n);
        }
        arena_reset(&a, m);
    }
    arena_release(&a);
    assert_int_equal(a.used, 0);
}

static void a_reset_keeps_what_was_there_before_the_mark(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    int *kept = ARENA_ARRAY(&a, 1000, int);
    kept[999] = 7;
    ArenaMark m = arena_mark(&a);
    size_t used = a.used;
    void *next = arena_alloc(&a, 40);
    for (int i = 0; i < 100; i++) {
        memset(arena_alloc(&a, 100000), 1, 100000);
    }
    assert_true(a.used > used);
    arena_reset(&a, m);
    assert_int_equal(a.used, used);
    assert_ptr_equal(arena_alloc(&a, 40), next);
    assert_int_equal(kept[999], 7);
    int *again = ARENA_NEW(&a, int);
    assert_int_equal(*again, 0);
    arena_release(&a);
}

static void a_block_that_is_needed_again_and_again_is_not_made_anew(void **state)
{
    MemoryBudget budget = {0};
    Arena a;
    arena_init(&a, &budget);
    (void)arena_alloc(&a, 4000); /* nearly all of the first block */
    ArenaMark m = arena_mark(&a);
    unsigned char *first = arena_alloc(&a, 1000);
    size_t held = budget.used;
    for (int round = 0; round < 3; round++) {
        memset(first, 0xff, 1000);
        arena_reset(&a, m);
        assert_int_equal(budget.used, held);
        assert_ptr_equal(arena_alloc(&a, 1000), first);
        for (size_t i = 0; i < 1000; i++) {
            assert_int_equal(first[i], 0);
        }
    }
    arena_release(&a);
    assert_int_equal(a.used, 0);
    assert_int_equal(budget.used, 0);
}

typedef struct Trap {
    jmp_buf back;
    size_t seen;
} Trap;

static void trap(void *user, size_t bytes)
{
    Trap *t = user;
    t->seen = bytes;
    longjmp(t->back, 1);
}

static void arenas_share_a_budget_and_the_trap_is_called_beyond_it(void **state)
{
    Trap t = {.seen = 0};
    MemoryBudget budget = {.limit = 1 << 20, .trap = trap, .user = &t};
    Arena a, b;
    arena_init(&a, &budget);
    arena_init(&b, &budget);
    volatile int rounds = 0;
    if (setjmp(t.back) == 0) {
        for (;;) {
            arena_alloc(&a, 10000);
            arena_alloc(&b, 10000);
            rounds++;
        }
    }
    assert_in_range(rounds, 20, 55);
    assert_in_range(t.seen, 400000, 1 << 20);
    arena_release(&a);
    arena_release(&b);
    assert_int_equal(budget.used, 0);
}

static void sizes_that_overflow_end_in_the_trap(void **state)
{
    Trap t = {.seen = 1};
    MemoryBudget budget = {.trap = trap, .user = &t};
    Arena a;
    arena_init(&a, &budget);
    volatile int caught = 0;
    static const size_t bad[][2] = {
        {SIZE_MAX, 1}, {SIZE_MAX / 2, 4}, {(size_t)1 << 33, (size_t)1 << 33}};
    for (volatile int i = 0; i < 3; i++) {
        if (setjmp(t.back) == 0) {
            arena_array(&a, bad[i][0], bad[i][1]);
        } else {
            caught++;
        }
    }
    assert_int_equal(caught, 3);
    arena_release(&a);
}

static void a_vector_keeps_its_elements_while_it_grows(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    VEC(int) v = {0};
    for (int i = 0; i < 100000; i++) {
        vec_push(&a, &v, i * 3);
    }
    assert_int_equal(v.n, 100000);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(v.at[i], i * 3);
    }
    arena_release(&a);
}

static void a_large_vector_gives_back_what_it_has_outgrown(void **state)
{
    MemoryBudget budget = {0};
    Arena a;
    arena_init(&a, &budget);
    VEC(uint64_t) v = {0};
    for (uint32_t k = 0; k < (1U << 20) + 1; k++) {
        vec_push(&a, &v, k);
    }
    assert_true(budget.used < (size_t)v.cap * sizeof *v.at + ((size_t)1 << 20));
    for (uint32_t k = 0; k < v.n; k++) {
        assert_true(v.at[k] == k);
    }
    ArenaMark mark = arena_mark(&a);
    size_t used = budget.used;
    (void)arena_alloc(&a, (size_t)1 << 22);
    arena_reset(&a, mark);
    assert_int_equal(budget.used, used);
    arena_release(&a);
    assert_int_equal(budget.used, 0);
}

static void index_sets_count_and_walk_their_members(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    static const uint32_t members[] = {0, 1, 63, 64, 127, 128, 299};
    uint32_t words = bits_words(300);
    assert_int_equal(words, 5);
    assert_int_equal(bits_words(0), 1);
    assert_int_equal(bits_words(64), 1);
    uint64_t *s = ARENA_ARRAY(&a, words, uint64_t);
    assert_int_equal(bits_next(s, words, 0), UINT32_MAX);
    for (size_t i = 0; i < 7; i++) {
        bits_set(s, members[i]);
    }
    assert_int_equal(bits_count(s, words), 7);
    uint32_t k = 0;
    for (uint32_t i = bits_next(s, words, 0); i != UINT32_MAX; i = bits_next(s, words, i + 1)) {
        assert_int_equal(i, members[k++]);
    }
    assert_int_equal(k, 7);
    bits_clear(s, 64);
    assert_false(bits_has(s, 64));
    assert_int_equal(bits_next(s, words, 64), 127);
    assert_int_equal(bits_next(s, words, 320), UINT32_MAX);
    arena_release(&a);
}

static void checked_sizes_refuse_what_leaves_the_limit(void **state)
{
    int64_t v = 5;
    assert_true(size_mul((int64_t)1 << 31, (int64_t)1 << 31, &v));
    assert_true(v == SIZE_LIMIT);
    assert_false(size_mul((int64_t)1 << 31, ((int64_t)1 << 31) + 1, &v));
    assert_true(size_mul(0, SIZE_LIMIT, &v) && v == 0);
    assert_true(size_mul(SIZE_LIMIT, 0, &v) && v == 0);
}

static void saturating_sums_and_products_stop_at_the_ends(void **state)
{
    assert_true(sat_add(INT64_MAX, 1) == INT64_MAX);
    assert_true(sat_add(INT64_MIN, -1) == INT64_MIN);
    assert_true(sat_add(INT64_MAX, INT64_MIN) == -1);
    assert_true(sat_mul(INT64_MAX, 2) == INT64_MAX);
    assert_true(sat_mul(INT64_MIN, 2) == INT64_MIN);
    assert_true(sat_mul(INT64_MIN, -1) == INT64_MAX);
    assert_true(sat_mul(INT64_MIN, 1) == INT64_MIN);
    assert_true(sat_mul(-3, 7) == -21);
    assert_true(sat_mul((int64_t)1 << 32, (int64_t)1 << 31) == INT64_MAX);
    assert_true(sat_mul((int64_t)1 << 31, (int64_t)1 << 31) == (int64_t)1 << 62);
}

TESTS(TEST(memory_is_zeroed_and_aligned_also_after_a_reset),
      TEST(a_reset_keeps_what_was_there_before_the_mark),
      TEST(a_block_that_is_needed_again_and_again_is_not_made_anew),
      TEST(arenas_share_a_budget_and_the_trap_is_called_beyond_it),
      TEST(sizes_that_overflow_end_in_the_trap),
      TEST(a_vector_keeps_its_elements_while_it_grows),
      TEST(a_large_vector_gives_back_what_it_has_outgrown),
      TEST(index_sets_count_and_walk_their_members),
      TEST(checked_sizes_refuse_what_leaves_the_limit),
      TEST(saturating_sums_and_products_stop_at_the_ends))
