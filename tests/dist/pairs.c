/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of leaves are dealt each once, lie among the rows and columns of their part, and the parts have about as much work and few rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

static void expect(bool ok, const char *what, int64_t n, int32_t parts)
{
    if (!ok) {
        printf("%s: %lld leaves, %d parts\n", what, (long long)n, (int)parts);
        exit(1);
    }
}

static int64_t rows_needed(const PairPiece *p)
{
    int64_t columns = p->col_hi - p->col_lo;
    return p->row_lo == p->col_lo ? columns : columns + p->row_hi - p->row_lo;
}

/* The most pairs and rows of a part. */
static void deal(int64_t n, int32_t parts, int64_t *most, int64_t *rows)
{
    static int32_t times[TDSL_PAIR_LEAVES][TDSL_PAIR_LEAVES];
    Pairs p;
    memset(times, 0, sizeof times);
    *most = *rows = 0;
    tdsl_pairs_make(&p, n, parts);
    for (int32_t part = 0; part < parts; part++) {
        PairPiece piece = tdsl_pairs_piece(&p, part);
        int64_t has = 0;
        for (int64_t a = piece.row_lo; a < piece.row_hi; a++) {
            for (int64_t b = piece.col_lo; b < piece.col_hi; b++) {
                bool own = tdsl_pairs_has(&piece, a, b);
                times[a][b] += own ? 1 : 0;
                has += own ? 1 : 0;
            }
        }
        *most = has > *most ? has : *most;
        *rows = rows_needed(&piece) > *rows ? rows_needed(&piece) : *rows;
    }
    for (int64_t a = 0; a < n; a++) {
        for (int64_t b = 0; b < n; b++) {
            expect(times[a][b] == (a <= b ? 1 : 0), "a pair is not dealt once", n, parts);
        }
    }
}

int main(void)
{
    static const int64_t leaves[] = {1, 2, 3, 5, 7, 16, 31, 63, 64};
    static const int32_t parts[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 64, 100, 1000, 2080, 2500};
    int64_t most = 0, rows = 0;
    for (size_t k = 0; k < sizeof leaves / sizeof leaves[0]; k++) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            deal(leaves[k], parts[i], &most, &rows);
            double even = (double)(leaves[k] * (leaves[k] + 1) / 2) / parts[i];
            expect((double)most <= 1.2 * even + 1, "uneven", leaves[k], parts[i]);
        }
    }
    deal(64, 64, &most, &rows);
    expect(rows <= 12 && most <= 35, "rows of 64", 64,
           64); /* one of the rows is the part's own */
    printf("each pair once\n");
    return 0;
}
