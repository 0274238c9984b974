/* SPDX-License-Identifier: Apache-2.0 */
/* Products on register tiles, run with every instruction set at every size around the tile's; the functions that they
 * share. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#define PRODUCT(ha, hb, hc, xa, xb, xc, l)                                                     \
    "  dim m ~ 64\n  dim k ~ 64\n  dim n ~ 64\n"                                               \
    "  arg @A : {T}" ha " in\n  arg @B : {T}" hb " in\n  arg @C : {T}" hc " inout\n"           \
    "  matmul [a in 0..m, b in 0..n, c in 0..k] @C" xc " += mul(@A" xa ", @B" xb ")" TILES(l)

#define TILES(l) " rows [a] columns [b] sum [c] levels [" l "]\n"

/* Cut into register tiles as Machine has them: rows 12, columns 128 bytes, from panels. */
static const char *number(int64_t n)
{
    static char text[64][24];
    static uint32_t next;
    char *at = text[next++ % 64];
    (void)snprintf(at, sizeof text[0], "%lld", (long long)n);
    return at;
}

static void products_on_register_tiles_are_right_at_every_size(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        PRODUCT("[m,k]", "[k,n]", "[m,n]", "[a,c]", "[c,b]", "[a,b]",
                "sum 4, columns #3 pack, rows 12 pack, columns #2"),
        PRODUCT("[k,m]", "[n,k]", "[n,m]", "[c,a]", "[b,c]", "[b,a]",
                "sum 6, rows 12 pack, columns #1 pack"),
    };
    static const DType types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64};
    Suite *s = suite_new("tiles");
    for (size_t t = 0; t < 4; t++) {
        int64_t wide = 128 / dtype_bytes(types[t]);
        const char *words[] = {number(wide / 2), number(wide), number(wide * 2)};
        for (size_t i = 0; i < 2; i++) {
            CaseId id = suite_kernel(s, bodies[i], types[t], words);
            int64_t step = i == 0 ? 1 : 5, columns = i == 0 ? wide : wide / 2;
            for (int64_t m = 0; m <= 25; m += step) {
                suite_run(s, id, (int64_t[]){m, 3, columns + 1});
            }
            for (int64_t n = 0; n <= 2 * columns + 1; n += step) {
                suite_run(s, id, (int64_t[]){13, 2, n});
            }
            for (int64_t k = 0; k <= 9; k += step) {
                suite_run(s, id, (int64_t[]){14, k, 5});
            }
        }
    }
    suite_finish_all(s);
}

/* Read where they are, with tiles of every number of rows and many of columns. */
static void products_of_unpacked_operands_are_right_at_every_size(void **state)
{
    (void)state;
    static const char body[] =
        "  dim k ~ 64\n  arg @A : {T}[#1,k] in\n  arg @B : {T}[k,#2] in\n"
        "  arg @C : {T}[#1,#2] inout\n"
        "  matmul [a in 0..#1, b in 0..#2, c in 0..k] @C[a,b] += mul(@A[a,c], @B[c,b])\n";
    static const char tiles[] = TILES("rows #3, columns #4");
    static const DType types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64};
    static const int64_t columns[] = {32, 1, 13, 4, 31, 16, 3, 24, 7, 8, 29, 5};
    char text[2][600];
    for (int turned = 0; turned < 2; turned++) {
        (void)snprintf(text[turned], sizeof text[turned], "%.*s%s", (int)sizeof body - 2, body,
                       tiles);
    }
    char *a = strstr(text[1], "[#1,k]");
    memcpy(a, "[k,#1]", 6);
    memcpy(strstr(text[1], "@A[a,c]"), "@A[c,a]", 7);
    Suite *s = suite_new("unpacked");
    for (int64_t i = 0; i < 12; i++) {
        DType t = types[i % 4];
        int64_t most = 128 / dtype_bytes(t), n = columns[i] < most ? columns[i] : most;
        const char *words[] = {number(2 * i + 3), number(2 * n + (i % 3 > 0)), number(i + 1),
                               number(n)};
        CaseId id = suite_kernel(s, text[i % 2], t, words);
        for (int64_t k = 0; k < 4; k++) {
            suite_run(s, id, &k);
        }
        suite_run(s, id, (int64_t[]){600});
    }
    suite_finish_all(s);
}

/* Sums of so few steps that a tile is printed with its strides. */
static void short_sums_are_right(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "  arg @A : {T}[2,#1,#3] in\n  arg @B : {T}[#3,#2,2] in\n  arg @C : {T}[#1,3,#2] "
        "inout\n"
        "  for $h in 0..2 step 1 {\n    alloc @D : {T}[#3,#2] tile\n"
        "    copy [c in 0..#3, b in 0..#2] @D[c,b] = @B[c,b,$h]\n"
        "    matmul [a in 0..#1, b in 0..#2, c in 0..#3] @C[a,$h,b] += mul(@A[$h,a,c], "
        "@D[c,b])" TILES("rows #4, columns #5") "  }\n",
        "  arg @A : {T}[#3,#1] in\n  arg @B : {T}[#3,#2] in\n  arg @C : {T}[#1,#2] inout\n"
        "  matmul [a in 0..#1, b in 0..#2, c in 0..#3] @C[a,b] += mul(@A[c,a], @B[c,b])" TILES(
            "rows #4, columns #5"),
    };
    static const DType types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64};
    static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},     {4, 4, 4, 4, 4}, {7, 9, 2, 3, 8},
                                       {12, 16, 3, 12, 16}, {8, 8, 8, 8, 8}, {25, 5, 16, 12, 5},
                                       {5, 33, 17, 5, 13}};
    Suite *s = suite_new("short");
    for (size_t i = 0; i < 14; i++) {
        const char *words[5];
        for (size_t k = 0; k < 5; k++) {
            words[k] = number(sizes[i / 2][k]);
        }
        suite_run(s, suite_kernel(s, bodies[i % 2], types[(i + i / 4) % 4], words), NULL);
    }
    suite_finish_all(s);
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word)) {
        n++;
    }
    return n;
}

/* One function for each type, shape and instruction set, whoever calls it. */
static void a_tile_is_printed_once(void **state)
{
    (void)state;
    static const char head[] =
        "kernel k%d {\n  form tiled\n  dim m ~ 64\n  arg @A : %s[m,500] in\n"
        "  arg @B : %s[500,m] in\n  arg @C : %s[m,m] inout\n  arg @D : %s[m,m] inout\n";
    static const char body[] =
        "  matmul [a in 0..m, b in 0..m, c in 0..500] @%s += mul(@A[a,c], @B[c,b])"
        " rows [a] columns [b] sum [c] levels [%s]\n";
    Ctx ctx;
    ctx_init(&ctx);
    Text text;
    text_init(&text, &ctx.arena);
    text_put(&text, "tdsl-dump loop 1\n");
    for (int i = 0; i < 6; i++) {
        const char *t = i % 2 == 0 ? "f32" : "f64";
        text_printf(&text, head, i, t, t, t, t);
        text_printf(&text, body, "C[a,b]", "columns 64 pack, rows 12 pack, columns 16");
        text_printf(&text, body, "D[b,a]", "sum 16, rows 12 pack, columns 32 pack, columns 16");
        text_put(&text, "}\n");
    }
    KernelModule *m = read_module(&ctx, text.at);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        m->kernels.at[i] = c_legal(&ctx, &ctx.arena, m->kernels.at[i]);
    }
    Str c, h;
    emit_module(&ctx, m, true, &c, &h);
    static const char *const isas[] = {"plain", "vectors", "neon", "avx2", "avx512"};
    for (size_t i = 0; i < 5; i++) {
        char word[100];
        (void)snprintf(word, sizeof word, "(%s, f32_12x16s, ", isas[i]);
        assert_int_equal(count(c.at, word), 1);
        (void)snprintf(word, sizeof word, "(%s, f64_12x16s, ", isas[i]);
        assert_int_equal(count(c.at, word), 1);
    }
    assert_int_equal(count(c.at, "isa->f32_12x16s"), 6);
    assert_int_equal(count(c.at, "isa->f64_12x16s"), 6);
    ctx_release(&ctx);
}

TESTS(TEST(products_on_register_tiles_are_right_at_every_size),
      TEST(products_of_unpacked_operands_are_right_at_every_size), TEST(short_sums_are_right),
      TEST(a_tile_is_printed_once))
