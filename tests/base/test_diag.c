/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, positions, and diagnostics as they are printed: whole texts are compared, since they
 * are a product. */
#include "base/diag.h"

#include <string.h>

#include "base/ctx.h"
#include "support/test.h"

static Ctx ctx;

static uint32_t add(const char *name, const char *text)
{
    return source_add(&ctx.sources, name, str_from(text), (Span){0, 0, 0});
}

/* The first place of `what` in the source. */
static Span find(uint32_t source, const char *what)
{
    const char *text = source_get(&ctx.sources, source)->text.at, *at = strstr(text, what);
    assert_non_null(at);
    uint32_t lo = (uint32_t)(at - text);
    return (Span){source, lo, lo + (uint32_t)strlen(what)};
}

static const char *rendered(void)
{
    Text t;
    text_init(&t, &ctx.arena);
    diags_render(&ctx.diags, &t, false);
    return t.at;
}

static int setup(void **state)
{
    ctx_init(&ctx);
    return 0;
}

static int teardown(void **state)
{
    ctx_release(&ctx);
    return 0;
}

static void positions_count_lines_and_code_points(void **state)
{
    uint32_t s = add("p.tdsl", "a\n\n\xc3\xa9\xe2\x82\xac x\r\nlast");
    uint32_t line, column;
    source_position(&ctx.sources, find(s, "x"), &line, &column);
    assert_int_equal(line, 3);
    assert_int_equal(column, 4);
    source_position(&ctx.sources, (Span){s, 0, 0}, &line, &column);
    assert_int_equal(line, 1);
    assert_int_equal(column, 1);
    source_position(&ctx.sources, (Span){s, 9999, 9999}, &line, &column);
    assert_int_equal(line, 4);
    assert_int_equal(column, 5);
    assert_true(str_eq_cstr(source_line(&ctx.sources, s, 3), "\xc3\xa9\xe2\x82\xac x"));
    assert_true(str_eq_cstr(source_line(&ctx.sources, s, 2), ""));
    assert_true(str_eq_cstr(source_line(&ctx.sources, s, 4), "last"));
}

/* Where lines begin is kept when it is first asked for: whatever takes memory after that leaves it alone. */
static void positions_of_files_of_any_length_stay(void **state)
{
    for (uint32_t n = 0; n < 20; n++) {
        char *text = arena_alloc(&ctx.arena, n + 2);
        memset(text, '\n', n);
        text[n] = 'x';
        uint32_t s = add("a.tdsl", text);
        for (int again = 0; again < 2; again++) {
            uint32_t line, column;
            source_position(&ctx.sources, (Span){s, n, n + 1}, &line, &column);
            assert_int_equal(line, n + 1);
            assert_int_equal(column, 1);
            memset(arena_alloc(&ctx.arena, 64), 0xff, 64);
        }
    }
}

static void a_mismatch_shows_both_parties_the_declaration_and_help(void **state)
{
    uint32_t s =
        add("mlp.tdsl", "kernel f(X: f32[128, 256], W: f32[128, 512]) -> (Y: f32[128, 512])\n"
                        "    Y = einsum(\"ik,kj->ij\", X, W);\n");
    Diagnostic *d = diag_error(&ctx.diags, E_EXTENT_MISMATCH, (Span){s, 84, 85},
                               "index '%s' is %d here", "k", 256);
    diag_mark(d, (Span){s, 86, 87}, "but %d here", 128);
    diag_note(d, find(s, "W"), "'W' is declared here with shape [128, 512]");
    diag_help(d, "did you mean '%s'?", "kj,ik->ij");
    assert_string_equal(
        rendered(),
        "mlp.tdsl:2:18: error[E0203]: index 'k' is 256 here\n"
        "    2 |     Y = einsum(\"ik,kj->ij\", X, W);\n"
        "      |                  ^ ~ but 128 here\n"
        "mlp.tdsl:1:28: note: 'W' is declared here with shape [128, 512]\n"
        "    1 | kernel f(X: f32[128, 256], W: f32[128, 512]) -> (Y: f32[128, 512])\n"
        "      |                            ^\n"
        "      = help: did you mean 'kj,ik->ij'?\n");
    assert_int_equal(diags_exit_code(&ctx.diags), 1);
}

static void a_mark_on_another_line_gets_a_line_of_its_own(void **state)
{
    uint32_t s = add("a.tdsl", "first one\nsecond\n");
    Diagnostic *d =
        diag_error(&ctx.diags, E_DUPLICATE_NAME, find(s, "second"), "defined twice");
    diag_mark(d, find(s, "one"), "also here");
    assert_string_equal(rendered(), "a.tdsl:2:1: error[E0202]: defined twice\n"
                                    "    2 | second\n"
                                    "      | ^^^^^^\n"
                                    "a.tdsl:1:7: note: also here\n"
                                    "    1 | first one\n"
                                    "      |       ~~~\n");
}

static void a_note_has_its_own_line_even_beside_the_culprit(void **state)
{
    uint32_t s = add("a.tdsl", "one two\n");
    Diagnostic *d = diag_error(&ctx.diags, E_SYNTAX, find(s, "two"), "wrong");
    diag_note(d, find(s, "one"), "declared here");
    assert_string_equal(rendered(), "a.tdsl:1:5: error[E0101]: wrong\n"
                                    "    1 | one two\n"
                                    "      |     ^^^\n"
                                    "a.tdsl:1:1: note: declared here\n"
                                    "    1 | one two\n"
                                    "      | ^^^\n");
}

static void several_labels_on_one_line_are_all_printed(void **state)
{
    uint32_t s = add("a.tdsl", "aa bb cc dd\n");
    Diagnostic *d = diag_error(&ctx.diags, E_SYNTAX, find(s, "bb"), "wrong");
    diag_mark(d, find(s, "aa"), "left");
    diag_mark(d, find(s, "dd"), "last");
    diag_mark(d, find(s, "cc"), "%s", "");
    assert_string_equal(rendered(), "a.tdsl:1:4: error[E0101]: wrong\n"
                                    "    1 | aa bb cc dd\n"
                                    "      | ~~ ^^ ~~ ~~ last\n"
                                    "      | left\n");
}

static void tabs_wide_and_hidden_characters_keep_the_caret_in_its_column(void **state)
{
    uint32_t s = add("a\033.tdsl", "\tx\t\xe6\xbc\xa2\x1b[31m\xe2\x80\xae\xff Q");
    diag_error(&ctx.diags, E_CHARACTER, find(s, "Q"), "bad '%s'", "\x07\xff");
    assert_string_equal(rendered(), "a\\x1b.tdsl:1:13: error[E0103]: bad '\\x07\\xff'\n"
                                    "    1 |     x   \xe6\xbc\xa2\\x1b[31m<U+202E>\\xff Q\n"
                                    "      |                                ^\n");
}

/* From which code point on a character takes how many columns, to the next line of the table; an escape takes
 * those of its text. */
static const struct {
    uint32_t from, width;
} columns[] = {
    {0x0e, 4},    {0x20, 1},    {0x7f, 4},    {0x80, 8},    {0xa0, 1},    {0xad, 8},
    {0xae, 1},    {0x300, 0},   {0x370, 1},   {0x1100, 2},  {0x1160, 1},  {0x200b, 8},
    {0x2010, 1},  {0x2028, 8},  {0x202f, 1},  {0x2060, 8},  {0x2070, 1},  {0x20d0, 0},
    {0x2100, 1},  {0x2e80, 2},  {0xa4d0, 1},  {0xac00, 2},  {0xd7a4, 1},  {0xf900, 2},
    {0xfb00, 1},  {0xfe00, 0},  {0xfe10, 1},  {0xfe30, 2},  {0xfe70, 1},  {0xfeff, 8},
    {0xff00, 2},  {0xff61, 1},  {0xfff9, 8},  {0xfffc, 1},  {0x1f300, 2}, {0x1fb00, 1},
    {0x20000, 2}, {0x3fffe, 1}, {0xe0000, 9}, {0xe1000, 1}, {0x110000, 0}};

static void every_character_takes_its_columns(void **state)
{
    for (size_t i = 0; i + 1 < sizeof columns / sizeof *columns; i++) {
        uint32_t from = columns[i].from, to = columns[i + 1].from;
        const uint32_t codes[] = {from, from + (to - from) / 2, to - 1};
        for (size_t k = 0; k < 3; k++) {
            char text[8] = "";
            uint32_t n = (uint32_t)utf8_from_code(codes[k], text);
            text[n] = 'Q';
            uint32_t s = add("a.tdsl", text);
            ctx.diags.list.n = ctx.diags.n_errors = 0;
            diag_error(&ctx.diags, E_SYNTAX, (Span){s, n, n + 1}, "here");
            const char *under = strstr(rendered(), "\n      | ") + 9,
                       *caret = strchr(under, '^');
            if (caret == NULL || (uint32_t)(caret - under) != columns[i].width) {
                fail_msg("U+%04X: %d columns, not %u", codes[k],
                         caret ? (int)(caret - under) : -1, columns[i].width);
            }
        }
    }
}

static void a_wide_line_is_shown_around_the_culprit(void **state)
{
    char *text = arena_alloc(&ctx.arena, (1 << 20) + 1);
    memset(text, 'x', 1 << 20);
    static const uint32_t places[] = {0,   50,   110,    111,           112,
                                      113, 5000, 500000, (1 << 20) - 1, 1 << 20};
    uint32_t s = add("a.tdsl", text);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint32_t at = places[i];
        if (at < 1 << 20) {
            text[at] = 'Q';
        }
        ctx.diags.list.n = 0;
        Diagnostic *d = diag_error(&ctx.diags, E_SYNTAX, (Span){s, at, at + 1}, "here");
        diag_mark(d, (Span){s, 0, 1}, "the start");
        const char *out = rendered(), *line = strchr(out, '\n') + 1,
                   *under = strchr(line, '\n') + 1;
        const char *end = strchr(under, '\n');
        assert_true(under - line <= 121);
        const char *caret = strchr(under, '^');
        assert_true(caret != NULL && caret < end);
        if (at < 1 << 20) {
            assert_int_equal(line[caret - under], 'Q');
            text[at] = 'x';
        }
    }
}

static void spans_at_odd_places_are_harmless(void **state)
{
    uint32_t s = add("a.tdsl", "one\r\n\r\ntwo");
    uint32_t empty = add("empty.tdsl", "");
    static const Span spans[] = {{1, 3, 3},   {1, 3, 5},  {1, 4, 4}, {1, 5, 7}, {1, 0, 99},
                                 {1, 10, 10}, {1, 99, 3}, {2, 0, 0}, {2, 5, 9}, {0, 3, 4}};
    (void)s;
    (void)empty;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        Diagnostic *d = diag_error(&ctx.diags, E_SYNTAX, spans[i], "number %d", (int)i);
        for (size_t k = 0; k < sizeof spans / sizeof *spans; k++) {
            diag_mark(d, spans[k], "mark");
        }
    }
    const char *out = rendered();
    assert_non_null(strstr(out, "tdsl: error[E0101]: number 9\n"));
    assert_non_null(strstr(out, "empty.tdsl:1:1: error[E0101]: number 7\n    1 |\n      | ^"));
}

static void records_are_ordered_by_place_and_kept_once(void **state)
{
    uint32_t s = add("a.tdsl", "a b c\n");
    diag_error(&ctx.diags, E_UNKNOWN_NAME, find(s, "c"), "unknown name 'c'");
    diag_warning(&ctx.diags, W_UNUSED, find(s, "b"), "'b' is not used");
    diag_error(&ctx.diags, E_UNKNOWN_NAME, find(s, "a"), "unknown name 'a'");
    diag_help(diag_error(&ctx.diags, E_UNKNOWN_NAME, find(s, "a"), "unknown name 'a'"),
              "not printed");
    assert_int_equal(ctx.diags.n_errors, 2);
    assert_string_equal(rendered(), "a.tdsl:1:1: error[E0201]: unknown name 'a'\n"
                                    "    1 | a b c\n      | ^\n"
                                    "a.tdsl:1:3: warning: 'b' is not used [-Wunused]\n"
                                    "    1 | a b c\n      |   ^\n"
                                    "a.tdsl:1:5: error[E0201]: unknown name 'c'\n"
                                    "    1 | a b c\n      |     ^\n");
}

static void errors_beyond_the_limit_are_counted(void **state)
{
    for (int i = 0; i < 100000; i++) {
        Diagnostic *d = diag_error(&ctx.diags, E_SYNTAX, (Span){0, 0, 0}, "number %d", i);
        diag_note(d, (Span){0, 0, 0}, "note");
        diag_help(d, "help");
        diag_warning(&ctx.diags, W_SPILL, (Span){0, 0, 0}, "warning %d", i);
    }
    const char *out = rendered();
    assert_non_null(strstr(out, "number 19\n"));
    assert_null(strstr(out, "number 20\n"));
    assert_non_null(
        strstr(out, "tdsl: and 99980 more errors\ntdsl: and 99980 more warnings\n"));
    assert_int_equal(ctx.diags.n_errors, 100000);
    assert_true(ctx.arena.used < 1 << 18);
}

static void an_included_place_says_who_included_it(void **state)
{
    uint32_t outer = add("main.tdsl", "\n  include \"chem.tdsl\"\n");
    uint32_t inner =
        source_add(&ctx.sources, "chem.tdsl", str_from("dim q\n"), find(outer, "include"));
    diag_error(&ctx.diags, E_SYNTAX, find(inner, "q"), "unexpected end of line");
    assert_string_equal(rendered(), "in file included from main.tdsl:2:3:\n"
                                    "chem.tdsl:1:5: error[E0101]: unexpected end of line\n"
                                    "    1 | dim q\n      |     ^\n");
}

static void limits_unsupported_and_warnings_have_their_own_exit_codes(void **state)
{
    Diags *d = &ctx.diags;
    assert_int_equal(diags_exit_code(d), 0);
    diag_warning(d, W_SPILL, (Span){0, 0, 0}, "'T' goes to memory");
    assert_int_equal(diags_exit_code(d), 0);
    d->warnings_are_errors = true;
    assert_int_equal(diags_exit_code(d), 1);
    assert_string_equal(rendered(), "tdsl: error: 'T' goes to memory [-Werror, -Wspill]\n");
    d->warnings_are_errors = false;
    diag_limit(d, E_LIMIT_NESTING, (Span){0, 0, 0}, "deeper than 200 levels");
    assert_int_equal(diags_exit_code(d), 4);
    assert_non_null(strstr(rendered(), "tdsl: error[E0601]: limit: deeper than 200 levels\n"));
    diag_unsupported(d, E_TARGET, (Span){0, 0, 0}, "no f64 there");
    assert_int_equal(diags_exit_code(d), 1);
    assert_non_null(strstr(rendered(), "tdsl: error[E0501]: unsupported: no f64 there\n"));
}

static void a_warning_switched_off_leaves_no_trace(void **state)
{
    ctx.diags.disabled[W_UNUSED] = true;
    diag_warning(&ctx.diags, W_UNUSED, (Span){0, 0, 0}, "x");
    ctx.diags.no_warnings = true;
    diag_note(diag_warning(&ctx.diags, W_SPILL, (Span){0, 0, 0}, "x"), (Span){0, 0, 0}, "y");
    ctx.diags.warnings_are_errors = true;
    assert_string_equal(rendered(), "");
    assert_int_equal(diags_exit_code(&ctx.diags), 0);
}

static void a_message_as_long_as_a_file_is_cut_in_the_middle(void **state)
{
    char *name = arena_alloc(&ctx.arena, 1000001);
    memset(name, 'n', 1000000);
    diag_error(&ctx.diags, E_UNKNOWN_NAME, (Span){0, 0, 0}, "unknown name '%s' in kernel 'k'",
               name);
    const char *out = rendered();
    assert_true(strlen(out) < 700);
    assert_non_null(strstr(out, "unknown name 'nnn"));
    assert_non_null(strstr(out, "n...n"));
    assert_non_null(strstr(out, "nnn' in kernel 'k'\n"));
}

static void every_code_is_unique_and_explained(void **state)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        const char *a = diag_code_text((DiagCode)i);
        assert_true(strlen(diag_code_about((DiagCode)i)) > 10);
        assert_true(a[0] == 'E' ? strlen(a) == 5 : strncmp(a, "-W", 2) == 0);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(a, diag_code_text((DiagCode)k));
        }
    }
}

#define DIAG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
TESTS(DIAG_TEST(positions_count_lines_and_code_points),
      DIAG_TEST(positions_of_files_of_any_length_stay),
      DIAG_TEST(a_mismatch_shows_both_parties_the_declaration_and_help),
      DIAG_TEST(a_mark_on_another_line_gets_a_line_of_its_own),
      DIAG_TEST(a_note_has_its_own_line_even_beside_the_culprit),
      DIAG_TEST(several_labels_on_one_line_are_all_printed),
      DIAG_TEST(tabs_wide_and_hidden_characters_keep_the_caret_in_its_column),
      DIAG_TEST(every_character_takes_its_columns),
      DIAG_TEST(a_wide_line_is_shown_around_the_culprit),
      DIAG_TEST(spans_at_odd_places_are_harmless),
      DIAG_TEST(records_are_ordered_by_place_and_kept_once),
      DIAG_TEST(errors_beyond_the_limit_are_counted),
      DIAG_TEST(an_included_place_says_who_included_it),
      DIAG_TEST(limits_unsupported_and_warnings_have_their_own_exit_codes),
      DIAG_TEST(a_warning_switched_off_leaves_no_trace),
      DIAG_TEST(a_message_as_long_as_a_file_is_cut_in_the_middle),
      DIAG_TEST(every_code_is_unique_and_explained))
