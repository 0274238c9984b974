/* SPDX-License-Identifier: Apache-2.0 */
/* Products of complex numbers on register tiles, run with every instruction set at every size around the tile's: each
 * operand as it is, conjugated, or real. */
#include "support.h"

#include <stdio.h>
#include <string.h>

/* #1, #2 and #3: an operand's type, what stands before its element, and after; #4 to #6: of the other one. */
#define PRODUCT(ha, hb, hc, xa, xb, xc, l)                                                     \
    "  arg @A : #1" ha " in\n  arg @B : #4" hb " in\n  arg @C : {T}" hc " inout\n"             \
    "  matmul [a in 0..#7, b in 0..#8, c in 0..#9] @C" xc " += mul(#2@A" xa "#3, #5@B" xb      \
    "#6) rows [a] columns [b] sum [c] levels [" l "]\n"
#define DIMS  "  dim m ~ 64\n  dim k ~ 64\n  dim n ~ 64\n"
#define FORMS 8

/* How the operands of form `i` are read. */
static void set_form(DType t, int i, const char *words[9])
{
    static const int form[FORMS][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1},
                                       {2, 0}, {2, 1}, {0, 2}, {1, 2}};
    const char *cast = t == DTYPE_C64 ? "cast.c64(" : "cast.c128(";
    for (int side = 0; side < 2; side++) {
        const char *const before[3] = {"", "conj(", cast};
        int how = form[i][side];
        words[3 * side] = dtype_name(how == 2 ? dtype_part(t) : t);
        words[3 * side + 1] = before[how];
        words[3 * side + 2] = how == 0 ? "" : ")";
    }
}

static const DType types[] = {DTYPE_C64, DTYPE_C128};

static const char *number(int64_t n)
{
    static char text[64][24];
    static uint32_t next;
    char *at = text[next++ % 64];
    (void)snprintf(at, sizeof text[0], "%lld", (long long)n);
    return at;
}

static void packed_products_are_right_at_every_size(void **state)
{
    (void)state;
    static const char *const bodies[2][2] = {
        {DIMS PRODUCT("[m,k]", "[k,n]", "[m,n]", "[a,c]", "[c,b]", "[a,b]",
                      "sum 4, columns 32 pack, rows 12 pack, columns 16"),
         DIMS PRODUCT("[k,m]", "[n,k]", "[n,m]", "[c,a]", "[b,c]", "[b,a]",
                      "sum 6, rows 6 pack, columns 8 pack, columns 4")},
        {DIMS PRODUCT("[m,k]", "[k,n]", "[m,n]", "[a,c]", "[c,b]", "[a,b]",
                      "sum 4, columns 16 pack, rows 12 pack, columns 8"),
         DIMS PRODUCT("[k,m]", "[n,k]", "[n,m]", "[c,a]", "[b,c]", "[b,a]",
                      "sum 6, rows 5 pack, columns 6 pack, columns 2")},
    };
    Suite *s = suite_new("pairs-packed");
    for (int form = 0; form < FORMS; form++) {
        for (int turned = 0; turned < 2; turned++) {
            int t = (form + turned) % 2;
            const char *words[9] = {[6] = "m", [7] = "n", [8] = "k"};
            set_form(types[t], form, words);
            CaseId id = suite_kernel(s, bodies[t][turned], types[t], words);
            int64_t step = form == 0 && turned == 0 ? 1 : form % 4 == 0 ? 4 : 7;
            int64_t columns = turned != 0 ? 8 : t == 0 ? 16 : 8;
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

/* Read where they are, with tiles of every number of rows and columns. */
static void unpacked_products_are_right(void **state)
{
    (void)state;
    static const char body[] = "  dim k ~ 64\n" PRODUCT(
        "[#7,k]", "[k,#8]", "[#7,#8]", "[a,c]", "[c,b]", "[a,b]", "rows %d, columns %d");
    static const char side[] = "  dim k ~ 64\n" PRODUCT(
        "[k,#7]", "[k,#8]", "[#7,#8]", "[c,a]", "[c,b]", "[a,b]", "rows %d, columns %d");
    Suite *s = suite_new("pairs-unpacked");
    for (int i = 0; i < 24; i++) {
        DType t = types[i % 2];
        int rows = i % 12 + 1, columns = t == DTYPE_C64 ? (7 * i + 3) % 16 + 1 : 3 * i % 8 + 1;
        char text[1000];
        (void)snprintf(text, sizeof text, i % 3 == 0 ? side : body, rows, columns);
        const char *words[9] = {
            [6] = number(2 * rows + i % 2), [7] = number(2 * columns + i % 3), [8] = "k"};
        set_form(t, i / 3, words);
        CaseId id = suite_kernel(s, text, t, words);
        for (int64_t k = 0; k < 4; k++) {
            suite_run(s, id, &k);
        }
        suite_run(s, id, (int64_t[]){600});
    }
    suite_finish_all(s);
}

/* Printed with their strides, and storing in place of zeros that stand before. */
static void short_sums_are_right(void **state)
{
    (void)state;
    static const char body[] =
        "  fill [a in 0..#7, b in 0..#8] @C[a,b] = {0}\n"
        "  matmul [a in 0..#7, b in 0..#8, c in 0..#9] @C[a,b] += mul(#2@A[a,c]#3, #5@B[c,b]#6)"
        " rows [a] columns [b] sum [c] levels [rows %d, columns %d]\n";
    static const char head[] = "  arg @A : #1[#7,#9] in\n  arg @B : #4[#9,#8] in\n"
                               "  arg @C : {T}[#7,#8] %s\n%s";
    static const int sizes[][5] = {{1, 1, 1, 1, 1},    {4, 4, 4, 4, 4},    {7, 9, 2, 3, 8},
                                   {12, 16, 3, 12, 8}, {25, 5, 16, 12, 5}, {5, 3, 17, 5, 3}};
    Suite *s = suite_new("pairs-short");
    for (int i = 0; i < 3 * FORMS; i++) {
        const int *n = sizes[i % 6];
        char text[1000], whole[1400];
        bool stores = i % 5 != 0;
        (void)snprintf(text, sizeof text, body, n[3], n[4]);
        (void)snprintf(whole, sizeof whole, head, stores ? "result" : "inout",
                       stores ? text : strchr(text, '\n') + 1);
        const char *words[9] = {[6] = number(n[0]), [7] = number(n[1]), [8] = number(n[2])};
        DType t = types[(i + i / 6) % 2];
        set_form(t, i % FORMS, words);
        suite_run(s, suite_kernel(s, whole, t, words), NULL);
    }
    suite_finish_all(s);
}

/* Tiles that cross labels go through a block. */
static void products_of_several_labels_are_right(void **state)
{
    (void)state;
    static const char body[] =
        "  arg @A : #1[5,3,7,2] in\n  arg @B : #4[7,2,4,5] in\n  arg @C : {T}[5,4,3,5] result\n"
        "  fill [a in 0..5, b in 0..4, c in 0..3, d in 0..5] @C[a,b,c,d] = {0}\n"
        "  matmul [a in 0..5, b in 0..4, c in 0..3, d in 0..5, e in 0..7, f in 0..2] "
        "@C[a,b,c,d] += mul(#2@A[a,c,e,f]#3, #5@B[e,f,b,d]#6) rows [c, a] columns [d, b] "
        "sum [e, f] levels [#7columns 16 [5, 3] pack, rows 12 [3, 4] pack, #8rows 6, columns "
        "8]\n";
    Suite *s = suite_new("pairs-labels");
    for (int i = 0; i < 2 * FORMS; i++) {
        const char *words[9] = {[6] = i / FORMS == 0 ? "" : "sum 7, ", [7] = ""};
        DType t = types[(i + i / FORMS) % 2];
        set_form(t, i % FORMS, words);
        suite_run(s, suite_kernel(s, body, t, words), NULL);
    }
    suite_finish_all(s);
}

TESTS(TEST(packed_products_are_right_at_every_size), TEST(unpacked_products_are_right),
      TEST(short_sums_are_right), TEST(products_of_several_labels_are_right))
