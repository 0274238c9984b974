/* SPDX-License-Identifier: Apache-2.0 */
/* Levels for machines on which many register tiles live at once. */
#include "schedule/schedule.h"

static int64_t divided_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t schedule_boxes(uint32_t n, const int64_t *extent, int64_t most)
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

Strips schedule_strips_on(const Machine *m, int64_t live)
{
    const SystolicTiles *t = &m->systolic;
    return (Strips){.live = live,
                    .most_rows = t->live_rows,
                    .panel_rows = live,
                    .room = (double)t->packed,
                    .tile = {m->tile.rows, m->tile.line / dtype_bytes(DTYPE_F32), m->tile.sum}};
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
    ScheduleLevel *at;
    uint32_t n;
    int64_t last[ROLE_BATCH];
} Levels;

/* A level, unless it would cut nothing and packs nothing. */
static void add(Levels *l, ScheduleRole role, int64_t tile, bool pack)
{
    if (pack || l->last[role] != tile) {
        l->at[l->n++] = (ScheduleLevel){.role = role, .tile = tile, .pack = pack};
        l->last[role] = tile;
    }
}

#define PASSING 8 /* of the room, one such part is enough for what passes by */

/* One panel of rows stays, and all columns pass by, where that reads less than `again` bytes. */
static uint32_t panel_levels(const Strips *x, double again, ScheduleLevel *level)
{
    int64_t rows = x->panel_rows;
    if (x->mirrored || rows == 0 || x->tiles[ROLE_M] < rows || x->tiles[ROLE_N] < 2) {
        return 0;
    }
    double panels = (double)divided_up(x->tiles[ROLE_M], rows);
    double panel = x->bytes[ROLE_M] * (double)rows / (double)x->tiles[ROLE_M];
    if (panel == 0 || panel > x->room - x->room / PASSING ||
        x->bytes[ROLE_M] + x->bytes[ROLE_N] * panels > again) {
        return 0;
    }
    Levels l = {.at = level};
    add(&l, ROLE_M, sat_mul(rows, x->tile[ROLE_M]), true);
    for (int r = ROLE_N; r >= ROLE_M; r--) {
        add(&l, (ScheduleRole)r, x->tile[r] * (r == ROLE_M ? rows : 1), false);
    }
    add(&l, ROLE_K, x->tile[ROLE_K], false);
    add(&l, ROLE_M, x->tile[ROLE_M], false);
    add(&l, ROLE_N, x->tile[ROLE_N], false);
    return l.n;
}

uint32_t schedule_strips(const Strips *x, ScheduleLevel *level)
{
    int64_t strip[2], strips[2];
    strip[ROLE_M] =
        x->mirrored || x->tiles[ROLE_M] > x->most_rows ? x->most_rows : x->tiles[ROLE_M];
    strip[ROLE_N] = x->mirrored ? 1 : x->live / strip[ROLE_M];
    if (strip[ROLE_N] > x->tiles[ROLE_N]) {
        strip[ROLE_N] = x->tiles[ROLE_N];
    }
    double a = x->bytes[ROLE_M], b = x->bytes[ROLE_N];
    int64_t keep[2];
    for (bool wide = true; wide;) { /* narrower columns, where strips of both do not fit */
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            strips[r] = divided_up(x->tiles[r], strip[r]);
        }
        keep[ROLE_M] = band_of(a, strips[ROLE_M], b, strips[ROLE_N], x->room);
        keep[ROLE_N] = band_of(b, strips[ROLE_N], a, strips[ROLE_M], x->room);
        wide = keep[ROLE_M] < 1 && keep[ROLE_N] < 1 && strip[ROLE_N] > 1;
        strip[ROLE_N] /= wide ? 2 : 1;
    }
    int64_t least_rows = keep[ROLE_M] < 1 ? 1 : keep[ROLE_M];
    int64_t least_columns = keep[ROLE_N] < 1 ? 1 : keep[ROLE_N];
    b = x->mirrored ? 0 : b; /* the same tiles */
    double rows_again = a * (double)divided_up(strips[ROLE_N], least_columns);
    double columns_again = b * (double)divided_up(strips[ROLE_M], least_rows);
    ScheduleRole kept = b + rows_again < a + columns_again ? ROLE_N : ROLE_M;
    ScheduleRole other = kept == ROLE_M ? ROLE_N : ROLE_M;
    int64_t unit[2];
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        unit[r] = sat_mul(strip[r], x->tile[r]);
    }
    if (keep[ROLE_M] < strips[ROLE_M] && keep[ROLE_N] < strips[ROLE_N]) {
        double again = b + rows_again < a + columns_again ? b + rows_again : a + columns_again;
        uint32_t n = panel_levels(x, again, level);
        if (n > 0) {
            return n;
        }
    }
    Levels l = {.at = level};
    if (keep[kept] > 0) {
        add(&l, kept, sat_mul(keep[kept], unit[kept]), true);
        bool both = a + b <= x->room;
        add(&l, other, sat_mul(both ? strips[other] : 1, unit[other]), true);
    }
    add(&l, other, unit[other], false);
    add(&l, kept, unit[kept], false);
    add(&l, ROLE_K, x->tile[ROLE_K], false);
    add(&l, ROLE_M, x->tile[ROLE_M], false);
    add(&l, ROLE_N, x->tile[ROLE_N], false);
    return l.n;
}
