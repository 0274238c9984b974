/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the C target run: contractions in every arrangement of their indices, folds, maps, blocks; all element
 * types, extents around the register tile's, open and fixed. */
#include "support.h"

#include <stdio.h>

static const DType all_types[] = {DTYPE_F64, DTYPE_F32, DTYPE_I32,
                                  DTYPE_I64, DTYPE_C64, DTYPE_C128};
#define N_TYPES (sizeof all_types / sizeof *all_types)

/* Extents around the tile of 12 rows, 32 columns and blocks of 256. */
static const int64_t triples[][3] = {
    {0, 3, 4},  {3, 0, 4},   {3, 4, 0},    {0, 0, 0},   {1, 1, 1},    {2, 3, 5},
    {7, 5, 31}, {8, 8, 32},  {9, 1, 33},   {17, 2, 65}, {16, 16, 64}, {1, 40, 33},
    {33, 7, 1}, {3, 257, 4}, {9, 300, 33}, {2, 3, 530},
};
#define N_TRIPLES (sizeof triples / sizeof *triples)

#define OPEN "  dim m ~ 64\n  dim k ~ 64\n  dim n ~ 64\n"

/* #1 is A's access and type, #2 B's, #3 the result's. */
#define PRODUCT(ha, hb, hc, xa, xb, xc)                                                        \
    OPEN "  arg @A : {T}" ha " in\n  arg @B : {T}" hb " in\n  arg @C : {T}" hc " result\n"     \
         "  fill [a in 0..m, b in 0..n] @C" xc " = {0}\n"                                      \
         "  matmul [a in 0..m, b in 0..n, c in 0..k] @C" xc " += mul(@A" xa ", @B" xb ")\n"

static void products_of_two_matrices_are_right_in_every_arrangement(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        PRODUCT("[m,k]", "[k,n]", "[m,n]", "[a,c]", "[c,b]", "[a,b]"),
        PRODUCT("[k,m]", "[k,n]", "[m,n]", "[c,a]", "[c,b]", "[a,b]"),
        PRODUCT("[m,k]", "[n,k]", "[m,n]", "[a,c]", "[b,c]", "[a,b]"),
        PRODUCT("[k,m]", "[n,k]", "[m,n]", "[c,a]", "[b,c]", "[a,b]"),
        PRODUCT("[m,k]", "[k,n]", "[n,m]", "[a,c]", "[c,b]", "[b,a]"),
        PRODUCT("[k,m]", "[n,k]", "[n,m]", "[c,a]", "[b,c]", "[b,a]"),
        PRODUCT("[m,m,k]", "[2,k,n]", "[m,n,1]", "[a,a,c]", "[1,c,b]", "[a,b,0]"),
    };
    Suite *s = suite_new("products");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t t = i % 3; t < N_TYPES; t += i == 0 ? 1 : 3) {
            CaseId id = suite_kernel(s, bodies[i], all_types[t], NULL);
            for (size_t d = (i + t) % 5; d < N_TRIPLES; d += i == 0 && t < 3 ? 1 : 5) {
                suite_run(s, id, triples[d]);
            }
        }
    }
    suite_finish(s);
}

static const char *number(Suite *s, int64_t n)
{
    (void)s;
    static char text[64][24];
    static uint32_t next;
    char *at = text[next++ % 64];
    (void)snprintf(at, sizeof text[0], "%lld", (long long)n);
    return at;
}

static void fixed_extents_are_right(void **state)
{
    (void)state;
    static const char body[] =
        "  arg @A : {T}[#1,#2] in\n  arg @B : {T}[#2,#3] in\n  arg @C : {T}[#1,#3] result\n"
        "  fill [a in 0..#1, b in 0..#3] @C[a,b] = {0}\n"
        "  matmul [a in 0..#1, b in 0..#3, c in 0..#2] @C[a,b] += mul(@A[a,c], @B[c,b])\n";
    static const char turned[] =
        "  arg @A : {T}[#2,#1] in\n  arg @B : {T}[#3,#2] in\n  arg @C : {T}[#3,#1] inout\n"
        "  matmul [b in 0..#3, c in 0..#2, a in 0..#1] @C[b,a] += mul(@B[b,c], @A[c,a])\n";
    static const int64_t sizes[][3] = {{0, 3, 4},  {3, 0, 4},     {1, 1, 1},    {2, 3, 5},
                                       {4, 4, 4},  {8, 8, 32},    {9, 7, 33},   {17, 3, 31},
                                       {5, 6, 23}, {16, 300, 16}, {24, 24, 24}, {3, 10, 600}};
    Suite *s = suite_new("fixed");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *words[3] = {number(s, sizes[i][0]), number(s, sizes[i][1]),
                                number(s, sizes[i][2])};
        for (size_t t = i % 4; t < N_TYPES; t += 4) {
            suite_run(s, suite_kernel(s, body, all_types[t], words), NULL);
            suite_run(s, suite_kernel(s, turned, all_types[t], words), NULL);
        }
    }
    suite_finish(s);
}

static void contractions_of_many_indices_are_right(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        /* pairs */
        OPEN "  arg @B : {T}[m,n,k] in\n  arg @C : {T}[m,n,m,n] result\n"
             "  fill [a in 0..m, b in 0..n, d in 0..m, e in 0..n] @C[a,b,d,e] = {0}\n"
             "  matmul [a in 0..m, b in 0..n, d in 0..m, e in 0..n, p in 0..k] @C[a,b,d,e] += "
             "mul(@B[a,b,p], @B[d,e,p])\n",
        /* a batch index, first and last */
        OPEN
        "  arg @A : {T}[3,m,k] in\n  arg @B : {T}[3,k,n] in\n  arg @C : {T}[3,m,n] result\n"
        "  fill [h in 0..3, a in 0..m, b in 0..n] @C[h,a,b] = {0}\n"
        "  matmul [h in 0..3, a in 0..m, b in 0..n, c in 0..k] @C[h,a,b] += mul(@A[h,a,c], "
        "@B[h,c,b])\n",
        OPEN
        "  arg @A : {T}[m,k,3] in\n  arg @B : {T}[k,n,3] in\n  arg @C : {T}[m,n,3] result\n"
        "  fill [h in 0..3, a in 0..m, b in 0..n] @C[a,b,h] = {0}\n"
        "  matmul [h in 0..3, a in 0..m, b in 0..n, c in 0..k] @C[a,b,h] += mul(@A[a,c,h], "
        "@B[c,b,h])\n",
        /* two summed indices, one of them on one side only */
        OPEN "  arg @A : {T}[m,2,k] in\n  arg @B : {T}[k,n] in\n  arg @C : {T}[m,n] result\n"
             "  fill [a in 0..m, b in 0..n] @C[a,b] = {0}\n"
             "  matmul [a in 0..m, b in 0..n, c in 0..k, d in 0..2] @C[a,b] += mul(@A[a,d,c], "
             "@B[c,b])\n",
        OPEN "  arg @A : {T}[m,k,4] in\n  arg @B : {T}[4,n,k] in\n  arg @C : {T}[n,m] result\n"
             "  fill [a in 0..m, b in 0..n] @C[b,a] = {0}\n"
             "  matmul [a in 0..m, b in 0..n, c in 0..k, d in 0..4] @C[b,a] += mul(@A[a,c,d], "
             "@B[d,b,c])\n",
        /* matrix and vector, both ways; dot; outer product; a diagonal of the result */
        OPEN "  arg @A : {T}[m,k] in\n  arg @B : {T}[k] in\n  arg @C : {T}[m] result\n  arg @D "
             ": {T}[n] result\n"
             "  arg @F : {T}[k,n] in\n  fill [a in 0..m] @C[a] = {0}\n  fill [a in 0..n] @D[a] "
             "= {0}\n"
             "  matmul [a in 0..m, c in 0..k] @C[a] += mul(@A[a,c], @B[c])\n"
             "  matmul [a in 0..n, c in 0..k] @D[a] += mul(@F[c,a], @B[c])\n",
        OPEN
        "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,m] in\n  arg @C : {T}[] result\n  arg @D : "
        "{T}[m,n] result\n  arg @v : {T}[n] in\n"
        "  fill [] @C[] = {0}\n  matmul [a in 0..m, b in 0..k] @C[] += mul(@A[a,b], @A[a,b])\n"
        "  matmul [a in 0..m, b in 0..k] @C[] += mul(@A[a,b], @B[b,a])\n"
        "  fill [a in 0..m, b in 0..n] @D[a,b] = {0}\n"
        "  matmul [a in 0..m, b in 0..n, c in 0..k] @D[a,b] += mul(@A[a,c], @v[b])\n",
        OPEN "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,m] in\n  arg @C : {T}[m,m] result\n"
             "  fill [a in 0..m, b in 0..m] @C[a,b] = {0}\n"
             "  matmul [a in 0..m, c in 0..k] @C[a,a] += mul(@A[a,c], @B[c,a])\n",
    };
    static const int64_t some[][3] = {{0, 2, 3},  {2, 0, 3},  {3, 5, 7}, {5, 70, 9},
                                      {4, 3, 34}, {9, 2, 33}, {1, 1, 1}, {34, 66, 3}};
    Suite *s = suite_new("many");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t t = i % 3; t < N_TYPES; t += 3) {
            CaseId id = suite_kernel(s, bodies[i], all_types[t], NULL);
            for (size_t d = t % 2; d < sizeof some / sizeof *some; d += 2) {
                suite_run(s, id, some[d]);
            }
        }
    }
    suite_finish(s);
}

static void blocks_inside_loops_are_right(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        OPEN
        "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,n] in\n  arg @C : {T}[m,n] result\n  arg @S "
        ": {T}[] result\n"
        "  fill [] @S[] = {0}\n"
        "  for $i in 0..m step #1 {\n    for $j in 0..n step #2 {\n      alloc @H : {T}[#1,#2] "
        "tile\n"
        "      fill [a in $i:#1<m, b in $j:#2<n] @H[a-$i,b-$j] = {0}\n"
        "      matmul [a in $i:#1<m, b in $j:#2<n, c in 0..k] @H[a-$i,b-$j] += mul(@A[a,c], "
        "@B[c,b])\n"
        "      map [a in $i:#1<m, b in $j:#2<n] @C[a,b] = mul(@H[a-$i,b-$j], @H[a-$i,b-$j])\n"
        "      reduce [a in $i:#1<m, b in $j:#2<n] @S[] += @H[a-$i,b-$j]\n    }\n  }\n",
        OPEN "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,n] in\n  arg @C : {T}[m,n] result\n"
             "  fill [a in 0..m, b in 0..n] @C[a,b] = {0}\n"
             "  for $i in 0..m step #1 {\n    for $p in 0..k step #2 {\n"
             "      matmul [a in $i:#1<m, b in 0..n, c in $p:#2<k] @C[a,b] += mul(@A[a,c], "
             "@B[c,b])\n    }\n  }\n",
        OPEN "  arg @A : {T}[m,k] in\n  arg @B : {T}[n,k] in\n  arg @C : {T}[m,n] result\n"
             "  alloc @W : {T}[n,m] workspace\n  fill [a in 0..m, b in 0..n] @W[b,a] = {0}\n"
             "  for $i in 0..m step #1 parallel {\n    for $j in 0..n step #2 {\n"
             "      matmul [c in 0..k, b in $j:#2<n, a in $i:#1<m] @W[b,a] += mul(@A[a,c], "
             "@B[b,c])\n    }\n  }\n"
             "  copy [a in 0..m, b in 0..n] @C[a,b] = @W[b,a]\n",
        OPEN "  arg @A : {T}[m] in\n  arg @S : {T}[] result\n  fill [] @S[] = {0}\n"
             "  for $i in 0..m step #1 {\n"
             "    reduce [a in $i:#1<m] @S[] += add(@A[a], @A[a])\n  }\n",
    };
    static const char *const tiles[][2] = {{"8", "32"},  {"16", "64"},  {"1", "7"},
                                           {"12", "24"}, {"33", "100"}, {"4", "8"},
                                           {"30", "60"}};
    static const int64_t some[][3] = {{0, 2, 3},   {17, 9, 70}, {33, 4, 33},
                                      {8, 32, 64}, {5, 0, 30},  {40, 101, 25}};
    static const DType types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_C128};
    Suite *s = suite_new("blocks");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
            CaseId id = suite_kernel(s, bodies[i], types[(i + t) % 4], tiles[t]);
            for (size_t d = 0; d < sizeof some / sizeof *some; d++) {
                suite_run(s, id, some[d]);
            }
        }
    }
    suite_finish(s);
}

static int64_t padded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t larger(int64_t x, int64_t y)
{
    return x < y ? y : x;
}

/* The workspace holds what lives at once, and 64 bytes to begin anywhere. */
/* Too short for sums to need blocks of their own, in any type. */
#define SHORT "  dim m ~ 32\n  dim k ~ 32\n  dim n ~ 32\n"

static void buffers_that_do_not_live_together_share_bytes(void **state)
{
    (void)state;
    /* a and b, then d in the place of a and e in that of b */
    static const char fixed[] =
        "  arg @A : {T}[12,20] in\n  arg @C : {T}[12,20] result\n  alloc @a : {T}[12,20] tile\n"
        "  map [i in 0..12, j in 0..20] @a[i,j] = add(@A[i,j], @A[i,j])\n"
        "  alloc @b : {T}[20,12] workspace\n"
        "  map [i in 0..12, j in 0..20] @b[j,i] = sub(@a[i,j], @A[0,j])\n"
        "  alloc @d : {T}[12,20] tile\n"
        "  map [i in 0..12, j in 0..20] @d[i,j] = sub(@b[j,i], @b[j,0])\n"
        "  alloc @e : {T}[240] tile\n"
        "  map [i in 0..12, j in 0..20] @e[20*i+j] = add(@d[i,j], @d[0,j])\n"
        "  copy [i in 0..12, j in 0..20] @C[i,j] = @e[20*i+j]\n";
    /* d in the place of a, which is larger or smaller */
    static const char open[] = SHORT
        "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,n] in\n  arg @C : {T}[m,n] result\n"
        "  alloc @a : {T}[m,k] workspace\n"
        "  map [i in 0..m, c in 0..k] @a[i,c] = add(@A[i,c], @A[i,c])\n"
        "  alloc @b : {T}[k,n] workspace\n  copy [c in 0..k, j in 0..n] @b[c,j] = @B[c,j]\n"
        "  reduce [c in 0..k, j in 0..n, i in 0..m] @b[c,j] += @a[i,c]\n"
        "  alloc @d : {T}[m,n] workspace\n  fill [i in 0..m, j in 0..n] @d[i,j] = {0}\n"
        "  reduce [c in 0..k, j in 0..n, i in 0..m] @d[i,j] += @b[c,j]\n"
        "  copy [i in 0..m, j in 0..n] @C[i,j] = @d[i,j]\n";
    /* p and u in one place, q and r in another on top of it while p lives */
    static const char nested[] =
        OPEN "  arg @A : {T}[m,n] in\n  arg @C : {T}[m,n] result\n"
             "  for $i in 0..m step 4 {\n    alloc @p : {T}[4,n] tile\n"
             "    copy [a in $i:4<m, j in 0..n] @p[a-$i,j] = @A[a,j]\n"
             "    for $l in 0..n step 8 {\n      alloc @q : {T}[4,8] tile\n"
             "      copy [a in $i:4<m, b in $l:8<n] @q[a-$i,b-$l] = @p[a-$i,b]\n"
             "      copy [a in $i:4<m, b in $l:8<n] @C[a,b] = @q[a-$i,b-$l]\n"
             "      alloc @r : {T}[8,4] tile\n"
             "      map [a in $i:4<m, b in $l:8<n] @r[b-$l,a-$i] = sub(@p[a-$i,b], @C[a,b])\n"
             "      copy [a in $i:4<m, b in $l:8<n] @p[a-$i,b] = @r[b-$l,a-$i]\n    }\n"
             "    map [a in $i:4<m, j in 0..n] @C[a,j] = add(@C[a,j], @p[a-$i,j])\n"
             "    alloc @u : {T}[n,4] tile\n"
             "    map [a in $i:4<m, j in 0..n] @u[j,a-$i] = add(@C[a,j], @C[a,j])\n"
             "    copy [a in $i:4<m, j in 0..n] @C[a,j] = @u[j,a-$i]\n  }\n";
    Suite *s = suite_new("shared");
    for (size_t t = 0; t < N_TYPES; t++) {
        int64_t size = dtype_bytes(all_types[t]);
        suite_run_in(s, suite_kernel(s, fixed, all_types[t], NULL), NULL,
                     2 * padded(240 * size) + 64);
        CaseId opened = suite_kernel(s, open, all_types[t], NULL);
        CaseId inside = suite_kernel(s, nested, all_types[t], NULL);
        for (size_t d = 0; d < N_TRIPLES; d++) {
            int64_t m = triples[d][0], k = triples[d][1], n = triples[d][2];
            int64_t need = larger(padded(size * m * k), padded(size * m * n));
            need += padded(size * k * n);
            suite_run_in(s, opened, triples[d], need == 0 ? 0 : need + 64);
            need = padded(size * 4 * n) + padded(size * 32);
            suite_run_in(s, inside, triples[d], need + 64);
        }
    }
    suite_finish(s);
}

/* Of blocks for some sizes each, one runs, and the workspace is what that one needs. */
static void the_block_for_the_size_at_hand_runs(void **state)
{
    (void)state;
    static const char body[] = SHORT
        "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,n] in\n  arg @C : {T}[m,n] result\n"
        "  arg @D : {T}[2] result\n  alloc @d : {T}[2] tile\n  fill [i in 0:2] @d[i] = {0}\n"
        "  block when m < 8 {\n    fill [a in 0..m, b in 0..n] @C[a,b] = {0}\n"
        "    matmul [a in 0..m, b in 0..n, c in 0..k] @C[a,b] += mul(@A[a,c], @B[c,b])\n  }\n"
        "  block when 7 < m < 17 {\n    alloc @t : {T}[m,n] workspace\n"
        "    fill [a in 0..m, b in 0..n] @t[a,b] = {0}\n"
        "    matmul [b in 0..n, a in 0..m, c in 0..k] @t[a,b] += mul(@A[a,c], @B[c,b])\n"
        "    map [a in 0..m, b in 0..n] @C[a,b] = add(@t[a,b], @t[a,b])\n"
        "    alloc @u : {T}[33] tile\n    fill [i in 0:33] @u[i] = {0}\n"
        "    copy [i in 0:2] @d[i] = @u[i]\n  }\n"
        "  block when 16 < m {\n    alloc @w : {T}[512] workspace\n"
        "    fill [i in 0:512] @w[i] = {0}\n"
        "    fill [a in 0..m, b in 0..n] @C[a,b] = {0}\n"
        "    reduce [a in 0..m, b in 0..n, c in 0..k] @C[a,b] += sub(@w[7], @B[c,b])\n  }\n"
        "  copy [i in 0:2] @D[i] = @d[i]\n";
    static const int64_t some[][3] = {{0, 2, 3},  {7, 9, 70}, {8, 9, 70},  {9, 1, 2},
                                      {16, 3, 0}, {16, 5, 9}, {17, 4, 33}, {40, 1, 5}};
    Suite *s = suite_new("sizes");
    for (size_t t = 0; t < N_TYPES; t++) {
        int64_t size = dtype_bytes(all_types[t]);
        CaseId id = suite_kernel(s, body, all_types[t], NULL);
        for (size_t d = 0; d < sizeof some / sizeof *some; d++) {
            int64_t m = some[d][0], n = some[d][2];
            int64_t need = m < 8    ? 0
                           : m < 17 ? larger(padded(size * m * n), padded(size * 33))
                                    : padded(size * 512);
            suite_run_in(s, id, some[d], padded(2 * size) + need + 64);
        }
    }
    suite_finish(s);
}

static void maps_of_complex_numbers_are_right(void **state)
{
    (void)state;
    static const char body[] =
        OPEN "  arg @A : {T}[m,n] in\n  arg @v : {T}[n] in\n  arg @C : {T}[m,n] inout\n"
             "  arg @D : {T}[m,n] result\n"
             "  map [a in 0..m, b in 0..n] @D[a,b] = mul(@A[a,b], conj(@v[b]))\n"
             "  map [a in 0..m, b in 0..n] @C[a,b] = sub(mul(@C[a,b], neg(@A[a,b])), "
             "add(conj(@C[a,b]), complex(3.0, -2.0)))\n";
    Suite *s = suite_new("complex");
    for (DType t = DTYPE_C64; t <= DTYPE_C128; t++) {
        CaseId id = suite_kernel(s, body, t, NULL);
        for (int64_t n = 0; n < 36; n++) {
            suite_run(s, id, (int64_t[]){n % 3 + 1, 0, n});
        }
    }
    suite_finish(s);
}

static void folds_are_right(void **state)
{
    (void)state;
    static const char body[] = OPEN
        "  arg @A : {T}[m,n] in\n  arg @r : {T}[m] result\n  arg @c : {T}[n] result\n  arg @s "
        ": {T}[] result\n"
        "  fill [a in 0..m] @r[a] = #2\n  fill [b in 0..n] @c[b] = #2\n  fill [] @s[] = #2\n"
        "  reduce [a in 0..m, b in 0..n] @r[a] #1 @A[a,b]\n"
        "  reduce [a in 0..m, b in 0..n] @c[b] #1 @A[a,b]\n"
        "  #4 [a in 0..m, b in 0..n] @s[] #1 #3\n";
    static const struct {
        DType type;
        const char *words[4];
    } rows[] = {
        {DTYPE_F32, {"+=", "0.0", "sub(mul(@A[a,b], 3.0), @A[a,b])", "reduce"}},
        {DTYPE_F64, {"+=", "2.0", "neg(@A[a,b])", "reduce"}},
        {DTYPE_I32, {"+=", "0", "sub(mul(@A[a,b], 3), @A[a,b])", "reduce"}},
        {DTYPE_I64, {"+=", "5", "add(@A[a,b], 7)", "reduce"}},
        {DTYPE_C64, {"+=", "complex(0.0, 1.0)", "mul(@A[a,b], @A[a,b])", "matmul"}},
        {DTYPE_C128,
         {"+=", "complex(0.0, 0.0)", "sub(conj(@A[a,b]), complex(2.0, 1.0))", "reduce"}},
        {DTYPE_C64, {"+=", "complex(0.0, 0.0)", "neg(mul(conj(@A[a,b]), @A[a,b]))", "reduce"}},
        {DTYPE_C128, {"+=", "complex(0.0, 0.0)", "mul(complex(2.0, 1.0), @A[a,b])", "reduce"}},
        {DTYPE_I64, {"reduce.prod=", "1", "add(@A[a,b], 7)", "reduce"}}, /* wraps */
        {DTYPE_I32, {"reduce.prod=", "1", "add(@A[a,b], 8)", "reduce"}},
        {DTYPE_F64, {"reduce.min=", "inf", "mul(@A[a,b], @A[a,b])", "reduce"}},
        {DTYPE_F32, {"reduce.max=", "-inf", "@A[a,b]", "reduce"}},
        {DTYPE_I32, {"reduce.min=", "2147483647", "@A[a,b]", "reduce"}},
        {DTYPE_I64, {"reduce.max=", "-5", "@A[a,b]", "reduce"}},
        {DTYPE_BOOL, {"reduce.any=", "false", "and(@A[a,b], @A[a,b])", "matmul"}},
        {DTYPE_BOOL, {"reduce.all=", "true", "not(@A[a,b])", "reduce"}},
    };
    static const int64_t some[][3] = {{0, 0, 3},   {3, 0, 0},  {1, 0, 1},  {5, 0, 200},
                                      {70, 0, 33}, {3, 0, 64}, {130, 0, 2}};
    Suite *s = suite_new("folds");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CaseId id = suite_kernel(s, body, rows[i].type, rows[i].words);
        for (size_t d = 0; d < sizeof some / sizeof *some; d++) {
            suite_run(s, id, some[d]);
        }
    }
    suite_finish(s);
}

/* Planned for many columns, so that a few lines at a time are folded along all of them. */
static void folds_of_long_lines_are_right(void **state)
{
    (void)state;
    static const char body[] =
        "  dim m ~ 40\n  dim k ~ 2\n  dim n ~ 3000\n"
        "  arg @A : {T}[m,n] in\n  arg @v : {T}[k,m] in\n  arg @c : {T}[n] result\n"
        "  arg @d : {T}[n] result\n  arg @e : {T}[n] result\n"
        "  fill [b in 0..n] @c[b] = {0}\n  fill [b in 0..n] @d[b] = {0}\n"
        "  fill [b in 0..n] @e[b] = #2\n"
        "  reduce [a in 0..m, b in 0..n] @c[b] += @A[a,b]\n"
        "  matmul [a in 0..m, b in 0..n, x in 0..k] @d[b] += mul(@A[a,b], @v[x,a])\n"
        "  for $i in 0..n step 300 {\n"
        "    reduce [a in 0..m, b in $i:300<n] @e[b] #1 sub(@A[a,b], @A[a,0])\n  }\n";
    static const struct {
        DType type;
        const char *words[3];
    } rows[] = {
        {DTYPE_F32, {"+=", "1.0"}},         {DTYPE_F64, {"+=", "2.0"}},
        {DTYPE_I32, {"reduce.prod=", "1"}}, /* wraps */
        {DTYPE_I64, {"reduce.prod=", "1"}}, {DTYPE_C64, {"+=", "complex(0.0, 1.0)"}},
    };
    static const int64_t some[][3] = {{0, 2, 3},    {3, 1, 0},    {1, 1, 1},     {7, 2, 31},
                                      {8, 1, 2047}, {9, 2, 2049}, {33, 1, 4100}, {150, 1, 130}};
    Suite *s = suite_new("lines");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CaseId id = suite_kernel(s, body, rows[i].type, rows[i].words);
        for (size_t d = 0; d < sizeof some / sizeof *some; d++) {
            suite_run(s, id, some[d]);
        }
    }
    suite_finish(s);
}

static void scalar_functions_are_right(void **state)
{
    (void)state;
    /* #1: the value in terms of @A[a] and @B[a] of type {T}; #2: the type of the result */
    static const char body[] =
        "  dim n ~ 8\n  arg @A : {T}[n] in\n  arg @B : {T}[n] in\n  arg @x : {T}[] scalar\n"
        "  arg @C : #2[n] result\n  map [a in 0..n] @C[a] = #1\n";
    static const struct {
        DType type;
        const char *words[2];
    } rows[] = {
        {DTYPE_I32, {"div(@A[a], @B[a])", "i32"}},
        {DTYPE_I64, {"div(@A[a], @B[a])", "i64"}},
        {DTYPE_I32, {"abs(sub(@A[a], @x[]))", "i32"}},
        {DTYPE_I32, {"mul(mul(@A[a], 1000000), mul(@B[a], 1000000))", "i32"}},
        {DTYPE_I32, {"div(sub(@A[a], add(@A[a], 2147483647)), sub(@B[a], @B[a]))", "i32"}},
        {DTYPE_I64, {"min(max(@A[a], @B[a]), relu(@x[]))", "i64"}},
        {DTYPE_F32, {"min(max(@A[a], @B[a]), relu(@x[]))", "f32"}},
        {DTYPE_F64, {"div(div(@A[a], 0.0), @B[a])", "f64"}},
        {DTYPE_F64, {"scale(@x[], @A[a])", "f64"}},
        {DTYPE_F64, {"scale(@A[a], div(@B[a], @B[a]))", "f64"}},
        {DTYPE_F32, {"scale(add(@A[a], @B[a]), @B[a])", "f32"}},
        {DTYPE_C64, {"scale(@A[a], @B[a])", "c64"}},
        {DTYPE_F32, {"sqrt(mul(@A[a], @A[a]))", "f32"}},
        {DTYPE_F64, {"select(lt(@A[a], @B[a]), @A[a], neg(@B[a]))", "f64"}},
        {DTYPE_F64, {"eq(@A[a], div(@B[a], @B[a]))", "bool"}},
        {DTYPE_F64, {"ne(@A[a], div(@B[a], @B[a]))", "bool"}},
        {DTYPE_C128, {"eq(@A[a], @B[a])", "bool"}},
        {DTYPE_C128, {"ne(conj(@A[a]), @B[a])", "bool"}},
        {DTYPE_C128, {"re(mul(@A[a], conj(@B[a])))", "f64"}},
        {DTYPE_C64, {"im(mul(@A[a], sub(@B[a], @x[])))", "f32"}},
        {DTYPE_I32, {"ge(@A[a], @B[a])", "bool"}},
        {DTYPE_BOOL, {"or(and(@A[a], not(@B[a])), @x[])", "bool"}},
        {DTYPE_BOOL, {"eq(@A[a], @B[a])", "bool"}},
        {DTYPE_F64, {"cast.i32(mul(@A[a], f64(1.0e300)))", "i32"}},
        {DTYPE_F64, {"cast.i64(div(@A[a], f64(0.0)))", "i64"}},
        {DTYPE_F32, {"cast.i64(mul(@A[a], f32(1.25)))", "i64"}},
        {DTYPE_I64, {"cast.i32(mul(@A[a], i64(4000000000)))", "i32"}},
        {DTYPE_I64, {"cast.f32(mul(@A[a], i64(16777217)))", "f32"}},
        {DTYPE_F32, {"cast.bool(div(@A[a], @B[a]))", "bool"}},
        {DTYPE_C64, {"cast.bool(@A[a])", "bool"}},
        {DTYPE_C64, {"cast.c128(@A[a])", "c128"}},
        {DTYPE_C64, {"cast.i32(@A[a])", "i32"}},
        {DTYPE_BOOL, {"cast.c64(@A[a])", "c64"}},
        {DTYPE_I32, {"cast.f64(@A[a])", "f64"}},
        {DTYPE_F32, {"add(@A[a], extent(n))", "f32"}},
        {DTYPE_F16, {"add(@A[a], mul(@B[a], 0.0999755859375))", "f16"}},
        {DTYPE_BF16, {"add(@A[a], mul(@B[a], 0.10009765625))", "bf16"}},
        {DTYPE_F32, {"cast.f16(mul(@A[a], f32(9.999999747378752e-06)))", "f16"}},
        {DTYPE_F32, {"cast.f16(mul(@A[a], f32(30000.0)))", "f16"}},
        {DTYPE_F16, {"cast.f32(@A[a])", "f32"}},
    };
    static const int64_t some[][1] = {{0}, {1}, {40}};
    Suite *s = suite_new("scalars");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CaseId id = suite_kernel(s, body, rows[i].type, rows[i].words);
        for (size_t d = 0; d < 3; d++) {
            suite_run(s, id, some[d]);
        }
    }
    suite_finish(s);
}

static void half_operands_are_summed_in_f32(void **state)
{
    (void)state;
    static const char body[] =
        OPEN "  arg @A : {T}[m,k] in\n  arg @B : {T}[k,n] in\n  arg @C : f32[m,n] result\n"
             "  fill [a in 0..m, b in 0..n] @C[a,b] = 0.0\n"
             "  matmul [a in 0..m, b in 0..n, c in 0..k] @C[a,b] += mul(cast.f32(@A[a,c]), "
             "cast.f32(@B[c,b]))\n";
    static const char truth[] =
        OPEN "  arg @A : bool[m,k] in\n  arg @B : bool[k,n] in\n  arg @C : bool[m,n] result\n"
             "  fill [a in 0..m, b in 0..n] @C[a,b] = false\n"
             "  matmul [a in 0..m, b in 0..n, c in 0..k] @C[a,b] reduce.any= and(@A[a,c], "
             "@B[c,b])\n";
    Suite *s = suite_new("half");
    CaseId ids[3] = {suite_kernel(s, body, DTYPE_F16, NULL),
                     suite_kernel(s, body, DTYPE_BF16, NULL),
                     suite_kernel(s, truth, DTYPE_BOOL, NULL)};
    for (size_t d = 0; d < N_TRIPLES; d++) {
        suite_run(s, ids[d % 3], triples[d]);
    }
    suite_finish(s);
}

/* Copies and maps that read along one index and write along another, around blocks of 64 by 32. */
static void transposes_are_right(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        OPEN "  arg @A : {T}[m,n] in\n  arg @C : {T}[n,m] result\n"
             "  copy [a in 0..m, b in 0..n] @C[b,a] = @A[a,b]\n",
        OPEN "  arg @A : {T}[3,m,n] in\n  arg @C : {T}[n,3,m] result\n"
             "  for $i in 0..m step 40 {\n    copy [h in 0..3, a in $i:40<m, b in 0..n] "
             "@C[b,2-h,a] = @A[h,a,b]\n  }\n",
        OPEN "  arg @A : {T}[m,n] in\n  arg @B : {T}[n,m] in\n  arg @C : {T}[n,m] result\n"
             "  map [a in 0..m, b in 0..n] @C[b,a] = sub(mul(@A[a,b], @B[b,a]), @A[a,b])\n",
        OPEN "  arg @A : {T}[k,m,n] in\n  arg @B : {T}[m,n,k] in\n  arg @D : f64[m,n] in\n"
             "  arg @C : {T}[n,k,m] result\n  fill [a in 0..m, b in 0..n, c in 0..k] @C[b,c,a] "
             "= #1\n"
             "  reduce [a in 0..m, b in 0..n, c in 0..k] @C[b,c,a] += add(add(@A[c,a,b], "
             "@B[a,b,c]), cast.{T}(@D[a,b]))\n",
        /* indices that follow each other: all of two sides, some of them, in blocks */
        "  arg @A : {T}[5,17,3,21] in\n  arg @C : {T}[3,21,5,17] result\n"
        "  copy [a in 0..5, b in 0..17, c in 0..3, d in 0..21] @C[c,d,a,b] = @A[a,b,c,d]\n",
        OPEN "  arg @A : {T}[m,19,7,9] in\n  arg @C : {T}[m,7,9,24] result\n"
             "  fill [a in 0..m, b in 0..7, c in 0..9, d in 0..24] @C[a,b,c,d] = #1\n"
             "  copy [a in 0..m, d in 0..19, b in 0..7, c in 0..9] @C[a,b,c,d] = @A[a,d,b,c]\n",
        OPEN "  arg @A : {T}[17,6,9] in\n  arg @C : {T}[2,6,9,17] result\n"
             "  fill [h in 0..2, a in 0..17, b in 0..6, c in 0..9] @C[h,b,c,a] = #1\n"
             "  for $i in 0..6 step 4 {\n    copy [a in 0..17, b in $i:4<6, c in 0..9] "
             "@C[1,b,c,a] = @A[a,b,c]\n  }\n",
    };
    static const DType types[] = {DTYPE_F32,  DTYPE_F64, DTYPE_I32, DTYPE_I64,
                                  DTYPE_C128, DTYPE_F16, DTYPE_BF16};
    static const int64_t some[][3] = {{0, 2, 3},   {3, 1, 0},    {1, 1, 1},   {63, 2, 31},
                                      {64, 3, 64}, {65, 1, 130}, {130, 2, 7}, {5, 3, 97}};
    Suite *s = suite_new("transposes");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            bool complex = dtype_is_complex(types[t]);
            const char *words[1] = {complex                  ? "complex(0.0, 1.0)"
                                    : dtype_is_int(types[t]) ? "3"
                                                             : "3.0"};
            if (i != 3 || !complex) {
                CaseId id = suite_kernel(s, bodies[i], types[t], words);
                for (size_t d = 0; d < sizeof some / sizeof *some; d++) {
                    suite_run(s, id, some[d]);
                }
            }
        }
    }
    suite_finish(s);
}

/* The triangle of a square of tiles, which must be summed as the whole. */
static void pairs_once_are_right(void **state)
{
    (void)state;
    static const char body[] =
        OPEN "  arg @B : {T}[m,n,k] in\n  arg @E : {T}[] result\n  fill [] @E[] = {0}\n"
             "  for $i in 0..m step #1 {\n    alloc @w : {T}[] tile\n    fill [] @w[] = #2\n"
             "    for $j in $i..m step #1 {\n      alloc @t : {T}[#1,n,#1,n] tile\n"
             "      fill [a in $i:#1<m, b in 0..n, d in $j:#1<m, e in 0..n] "
             "@t[a-$i,b,d-$j,e] = {0}\n"
             "      matmul [a in $i:#1<m, b in 0..n, d in $j:#1<m, e in 0..n, c in 0..k] "
             "@t[a-$i,b,d-$j,e] += mul(@B[a,b,c], @B[d,e,c])\n"
             "      reduce [a in $i:#1<m, b in 0..n, d in $j:#1<m, e in 0..n] @E[] += "
             "mul(@w[], mul(@t[a-$i,b,d-$j,e], @t[a-$i,e,d-$j,b]))\n"
             "      fill [] @w[] = #3\n    }\n  }\n";
    static const char *const tiles[] = {"1", "2", "5"};
    static const DType types[] = {DTYPE_I32, DTYPE_I64, DTYPE_F32, DTYPE_F64};
    Suite *s = suite_new("pairs");
    for (size_t i = 0; i < 3; i++) {
        for (size_t t = 0; t < 4; t++) {
            bool whole = dtype_is_int(types[t]);
            const char *words[3] = {tiles[i], whole ? "1" : "1.0", whole ? "2" : "2.0"};
            CaseId id = suite_kernel(s, body, types[t], words);
            int64_t tile = tiles[i][0] - '0';
            const int64_t extents[] = {0, 1, tile - 1, tile, tile + 1, 2 * tile + 1};
            for (size_t x = 0; x < 6; x++) {
                suite_run(s, id, (const int64_t[]){extents[x], 2, 3});
                suite_run(s, id, (const int64_t[]){3, 2, extents[x]});
            }
            suite_run(s, id, (const int64_t[]){3, 0, 3});
        }
    }
    suite_finish(s);
}

TESTS(TEST(pairs_once_are_right), TEST(products_of_two_matrices_are_right_in_every_arrangement),
      TEST(fixed_extents_are_right), TEST(contractions_of_many_indices_are_right),
      TEST(blocks_inside_loops_are_right), TEST(buffers_that_do_not_live_together_share_bytes),
      TEST(the_block_for_the_size_at_hand_runs), TEST(maps_of_complex_numbers_are_right),
      TEST(folds_are_right), TEST(folds_of_long_lines_are_right),
      TEST(scalar_functions_are_right), TEST(half_operands_are_summed_in_f32),
      TEST(transposes_are_right))
