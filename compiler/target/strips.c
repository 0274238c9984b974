/* SPDX-License-Identifier: Apache-2.0 */
/* Levels for machines on which many register tiles live at once. */
#include "target/blocking.h"

static int64_t divided_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t blocking_boxes(uint32_t n, const int64_t *extent, int64_t most)
{
    int64_t count = 1, boxes = 1;
    bool cut = false;
    for (uint32_t i = 0; i < n; i++) {
        if (!cut && sat_mul(count, extent[i]) <= most) {
            count *= extent[i];
        } else {
            boxes = sat_mul(boxes, cut ? extent[i] : divided_up(extent[i], most / count));
            cut = true;
        }
    }
    return boxes;
}

/* How many strips of an operand fit beside one of the other. */
static int64_t band_of(double bytes, int64_t strips, double other, int64_t other_strips,
                       double room)
{
    room -= other / (double)other_strips;
    double fit = bytes > 0 ? room / (bytes / (double)strips) : (double)strips;
    return fit >= (double)strips ? strips : fit < 1 ? 0 : (int64_t)fit;
}

typedef struct Levels {
    BlockLevel *at;
    uint32_t n;
    int64_t last[BLOCK_BATCH];
} Levels;

/* A level, unless it would cut nothing and packs nothing. */
static void add(Levels *l, BlockRole role, int64_t tile, bool pack)
{
    if (pack || l->last[role] != tile) {
        l->at[l->n++] = (BlockLevel){.role = role, .tile = tile, .pack = pack};
        l->last[role] = tile;
    }
}

uint32_t blocking_strips(const Strips *x, BlockLevel *level)
{
    int64_t strip[2], strips[2];
    strip[BLOCK_ROWS] = x->mirrored || x->tiles[BLOCK_ROWS] > x->most_rows
                            ? x->most_rows
                            : x->tiles[BLOCK_ROWS];
    strip[BLOCK_COLUMNS] = x->mirrored ? 1 : x->live / strip[BLOCK_ROWS];
    if (strip[BLOCK_COLUMNS] > x->tiles[BLOCK_COLUMNS]) {
        strip[BLOCK_COLUMNS] = x->tiles[BLOCK_COLUMNS];
    }
    for (BlockRole r = 0; r < BLOCK_SUM; r++) {
        strips[r] = divided_up(x->tiles[r], strip[r]);
    }
    double a = x->bytes[BLOCK_ROWS], b = x->bytes[BLOCK_COLUMNS];
    int64_t keep[2];
    keep[BLOCK_ROWS] = band_of(a, strips[BLOCK_ROWS], b, strips[BLOCK_COLUMNS], x->room);
    keep[BLOCK_COLUMNS] = band_of(b, strips[BLOCK_COLUMNS], a, strips[BLOCK_ROWS], x->room);
    int64_t least_rows = keep[BLOCK_ROWS] < 1 ? 1 : keep[BLOCK_ROWS];
    int64_t least_columns = keep[BLOCK_COLUMNS] < 1 ? 1 : keep[BLOCK_COLUMNS];
    b = x->mirrored ? 0 : b; /* the same tiles */
    double rows_again = a * (double)divided_up(strips[BLOCK_COLUMNS], least_columns);
    double columns_again = b * (double)divided_up(strips[BLOCK_ROWS], least_rows);
    BlockRole kept = b + rows_again < a + columns_again ? BLOCK_COLUMNS : BLOCK_ROWS;
    BlockRole other = kept == BLOCK_ROWS ? BLOCK_COLUMNS : BLOCK_ROWS;
    int64_t unit[2];
    for (BlockRole r = 0; r < BLOCK_SUM; r++) {
        unit[r] = sat_mul(strip[r], x->tile[r]);
    }
    Levels l = {.at = level};
    if (keep[kept] > 0) {
        add(&l, kept, sat_mul(keep[kept], unit[kept]), true);
        bool both = a + b <= x->room;
        add(&l, other, sat_mul(both ? strips[other] : 1, unit[other]), true);
    }
    add(&l, other, unit[other], false);
    add(&l, kept, unit[kept], false);
    add(&l, BLOCK_SUM, x->tile[BLOCK_SUM], false);
    add(&l, BLOCK_ROWS, x->tile[BLOCK_ROWS], false);
    add(&l, BLOCK_COLUMNS, x->tile[BLOCK_COLUMNS], false);
    return l.n;
}
