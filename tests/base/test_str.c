/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, symbols, maps, random numbers, UTF-8. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "support/test.h"

static void a_million_symbols_are_each_interned_once(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    SymTable t;
    symtable_init(&t, &a);
    enum { N = 1000000 };
    Sym *seen = ARENA_ARRAY(&a, N, Sym);
    char name[16];
    for (uint32_t i = 0; i < N; i++) {
        int n = snprintf(name, sizeof name, "s%u", i);
        seen[i] = sym_intern(&t, name, (size_t)n);
        if (seen[i]->id != i) {
            fail_msg("symbol %u got id %u", i, seen[i]->id);
        }
    }
    for (uint32_t i = 0; i < N; i += 7) {
        snprintf(name, sizeof name, "s%u", i);
        assert_ptr_equal(sym_cstr(&t, name), seen[i]);
        assert_string_equal(seen[i]->text, name);
    }
    assert_int_equal(t.n, N);
    arena_release(&a);
}

static void symbols_of_any_bytes_are_told_apart(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    SymTable t;
    symtable_init(&t, &a);
    char *large = arena_alloc(&a, 1 << 20);
    memset(large, 'x', 1 << 20);
    Sym empty = sym_intern(&t, NULL, 0);
    assert_int_equal(empty->n, 0);
    assert_ptr_equal(empty, sym_cstr(&t, ""));
    assert_ptr_not_equal(sym_intern(&t, "ab", 1), sym_intern(&t, "ab", 2));
    assert_ptr_equal(sym_intern(&t, large, 1 << 20), sym_intern(&t, large, 1 << 20));
    assert_ptr_not_equal(sym_intern(&t, large, 1 << 20), sym_intern(&t, large, (1 << 20) - 1));
    for (uint32_t n = 5000; n > 0; n--) { /* prefixes of one another, some in the same slot */
        assert_int_equal(sym_intern(&t, large, n)->n, n);
    }
    arena_release(&a);
}

static void distance_counts_edits_and_swaps_up_to_its_limit(void **state)
{
    static const struct {
        const char *a, *b;
        int limit, want;
    } cases[] = {
        {"abc", "abc", 3, 0},        {"abc", "abd", 3, 1},        {"abc", "acb", 3, 1},
        {"abc", "ab", 3, 1},         {"", "abc", 3, 3},           {"xb", "by", 3, 2},
        {"kitten", "sitting", 5, 3}, {"kitten", "sitting", 2, 3}, {"gemm", "emgm", 4, 2},
        {"a", "bcdefgh", 2, 3},      {"matmul", "matuml", 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            str_distance(str_from(cases[i].a), str_from(cases[i].b), cases[i].limit),
            cases[i].want);
        assert_int_equal(
            str_distance(str_from(cases[i].b), str_from(cases[i].a), cases[i].limit),
            cases[i].want);
    }
    char large[1000];
    memset(large, 'x', sizeof large);
    assert_int_equal(str_distance((Str){large, 1000}, (Str){large, 999}, 3), 4);
    assert_int_equal(str_distance((Str){large, 1000}, (Str){large, 1000}, 3), 0);
}

static void utf8_refuses_every_malformed_sequence(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        int bad; /* -1: valid */
    } cases[] = {
        {"", 0, -1},
        {"a\xc3\xa9z", 4, -1},
        {"\xe2\x82\xac", 3, -1},
        {"\xf0\x9f\x98\x80", 4, -1},
        {"\xf4\x8f\xbf\xbf", 4, -1},
        {"ab\0c", 4, 2},            /* NUL */
        {"a\x80", 2, 1},            /* lone continuation */
        {"a\xc3", 2, 1},            /* cut short */
        {"\xc0\xaf", 2, 0},         /* overlong */
        {"\xe0\x9f\xbf", 3, 0},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, 0}, /* beyond the last */
        {"\xff", 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bad = 99;
        bool valid = utf8_valid((Str){cases[i].text, cases[i].n}, &bad);
        assert_int_equal(valid, cases[i].bad < 0);
        if (!valid) {
            assert_int_equal(bad, cases[i].bad);
        }
    }
}

static void every_code_point_is_read_back_as_written(void **state)
{
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        if (c >= 0xd800 && c < 0xe000) {
            continue;
        }
        char b[4];
        int n = utf8_from_code(c, b), length = 0;
        if (utf8_decode(b, b + n, &length) != c || length != n) {
            fail_msg("U+%04X", c);
        }
    }
}

static void a_map_gives_back_the_last_value_of_each_key(void **state)
{
    Arena a;
    arena_init(&a, NULL);
    Map m;
    map_init(&m, &a);
    uint32_t v = 0;
    assert_false(map_get(&m, 0, &v));
    for (uint64_t k = 0; k < 100000; k++) {
        map_put(&m, k << 20, (uint32_t)k);
        if (k < 1000) {
            assert_false(map_get(&m, 1, &v)); /* ends, however full the table is */
        }
    }
    map_put(&m, 5 << 20, 77);
    map_put(&m, UINT64_MAX, 1);
    assert_int_equal(m.n, 100001);
    for (uint64_t k = 0; k < 100000; k++) {
        assert_true(map_get(&m, k << 20, &v));
        assert_int_equal(v, k == 5 ? 77 : k);
    }
    assert_false(map_get(&m, 3, &v));
    arena_release(&a);
}

static void random_numbers_are_the_same_everywhere_and_in_range(void **state)
{
    Rng r = {.state = 0}; /* published first outputs of splitmix64 with seed 0 */
    assert_true(rng_next(&r) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(rng_next(&r) == UINT64_C(0x6e789e6aa1b965f4));
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        seen[rng_below(&r, 7)]++;
        double u = rng_unit(&r);
        assert_true(u >= 0 && u < 1);
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(seen[i], 850, 1150);
    }
    int low = 0; /* 3/4 of 2^64: remainders of a plain modulo would fall in the first third half
                    of the time */
    for (int i = 0; i < 3000; i++) {
        low += rng_below(&r, UINT64_C(3) << 62) < UINT64_C(1) << 62;
    }
    assert_in_range(low, 850, 1150);
}

TESTS(TEST(a_million_symbols_are_each_interned_once), TEST(symbols_of_any_bytes_are_told_apart),
      TEST(distance_counts_edits_and_swaps_up_to_its_limit),
      TEST(utf8_refuses_every_malformed_sequence),
      TEST(every_code_point_is_read_back_as_written),
      TEST(a_map_gives_back_the_last_value_of_each_key),
      TEST(random_numbers_are_the_same_everywhere_and_in_range))
