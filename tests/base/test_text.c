/* SPDX-License-Identifier: Apache-2.0 */
/* The text writer: indentation, numbers, quoting. */
#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "support/test.h"

static Arena arena;

static const char *f64_text(double v)
{
    Text t;
    text_init(&t, &arena);
    text_f64(&t, v);
    return t.at;
}

static void indentation_begins_each_line_that_is_not_empty(void **state)
{
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    assert_string_equal(t.at, "");
    text_put(&t, "a {\n");
    t.indent = 1;
    text_put(&t, "b\n\nc");
    text_printf(&t, " %d\n", 7);
    t.indent = 0;
    text_put(&t, "}\n");
    assert_string_equal(t.at, "a {\n  b\n\n  c 7\n}\n");
    assert_int_equal(text_str(&t).n, strlen(t.at));
    arena_release(&arena);
}

static void long_texts_and_long_formats_arrive_whole(void **state)
{
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    char *large = arena_alloc(&arena, 100001);
    memset(large, 'y', 100000);
    for (int i = 0; i < 30; i++) {
        text_printf(&t, "<%s>", large);
    }
    assert_int_equal(t.n, 30 * 100002);
    assert_int_equal(t.at[t.n], 0);
    assert_int_equal(t.at[100001], '>');
    assert_int_equal(t.at[100002], '<');
    arena_release(&arena);
}

static void integers_are_written_to_both_ends(void **state)
{
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    text_i64(&t, INT64_MIN);
    text_char(&t, ' ');
    text_i64(&t, INT64_MAX);
    text_char(&t, ' ');
    text_i64(&t, 0);
    assert_string_equal(t.at, "-9223372036854775808 9223372036854775807 0");
    arena_release(&arena);
}

static void doubles_have_their_shortest_digits(void **state)
{
    arena_init(&arena, NULL);
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {100, "100.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e16"},
        {1.5e300, "1.5e300"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {123456789.125, "123456789.125"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e308"},
        {0x1p-44, "5.684341886080802e-14"}, /* a power of two, where 17 digits by rounding are
                                               not needed */
        {0x1p+63, "9.223372036854776e18"},
        {9007199254740993.0, "9007199254740992.0"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(f64_text(cases[i].v), cases[i].want);
    }
    assert_string_equal(f64_text(-(double)NAN), "nan");
    arena_release(&arena);
}

/* Random bit patterns, all powers of two, and short decimals: read back exactly, and no shorter
 * digits would do. */
static void check_round_trip(double v)
{
    ArenaMark m = arena_mark(&arena);
    const char *s = f64_text(v);
    double back = strtod(s, NULL);
    if (memcmp(&back, &v, sizeof v) != 0) {
        fail_msg("%a is written as %s", v, s);
    }
    if (strpbrk(s, ".e") == NULL) {
        fail_msg("%s does not read as a float", s);
    }
    int digits = 0, zeros = 0;
    for (const char *p = s; *p != '\0' && *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9' && (digits > 0 || *p != '0')) {
            digits++;
            zeros = *p == '0' ? zeros + 1 : 0;
        }
    }
    digits -= zeros;
    char fewer[64];
    snprintf(fewer, sizeof fewer, "%.*e", digits >= 2 ? digits - 2 : 0, v);
    if (digits >= 2 && strtod(fewer, NULL) == v) {
        fail_msg("%s has more digits than %s", s, fewer);
    }
    arena_reset(&arena, m);
}

static void doubles_read_back_as_themselves(void **state)
{
    arena_init(&arena, NULL);
    Rng r = {.state = 1};
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = rng_next(&r);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v)) {
            check_round_trip(v);
        }
        check_round_trip((double)(int64_t)rng_below(&r, 100000) / 1000);
    }
    for (int e = -1074; e < 1024; e++) {
        check_round_trip(ldexp(1, e));
        check_round_trip(nextafter(ldexp(1, e), 0));
        check_round_trip(nextafter(ldexp(1, e), INFINITY));
    }
    arena_release(&arena);
}

static void quoted_strings_hold_printable_ascii_only(void **state)
{
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    text_quoted(&t, (Str){"a\"\\\n\t\x01\xc3\xa9\0z", 10});
    assert_string_equal(t.at, "\"a\\\"\\\\\\n\\t\\x01\\xc3\\xa9\\x00z\"");
    arena_release(&arena);
}

static void json_strings_escape_controls_and_keep_unicode(void **state)
{
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    text_json(&t, "a\"\\\n\x7f\xc3\xa9");
    assert_string_equal(t.at, "\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\"");
    arena_release(&arena);
}

TESTS(TEST(indentation_begins_each_line_that_is_not_empty),
      TEST(long_texts_and_long_formats_arrive_whole), TEST(integers_are_written_to_both_ends),
      TEST(doubles_have_their_shortest_digits), TEST(doubles_read_back_as_themselves),
      TEST(quoted_strings_hold_printable_ascii_only),
      TEST(json_strings_escape_controls_and_keep_unicode))
