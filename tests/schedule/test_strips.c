/* SPDX-License-Identifier: Apache-2.0 */
/* Levels for an engine of matrices: of the operand that is kept as many strips are as fit beside one of the other, counted
 * here one by one, and the operand is the one with which less is read again. */
#include "base/map.h"
#include "support/test.h"
#include "schedule/schedule.h"

#define SAMPLES 2000

static int64_t up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Of strips of `mine` bytes, at most `strips`, beside one of `other` bytes. */
static int64_t most_that_fit(int64_t strips, double mine, double other, double room)
{
    int64_t n = 0;
    while (n < strips && (double)(n + 1) * mine + other <= room) {
        n++;
    }
    return n;
}

static void test_as_many_strips_are_kept_as_fit_beside_one_of_the_other(void **state)
{
    Rng rng = {3};
    uint32_t exact = 0, kept_columns = 0, packless = 0;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        Strips x = {.live = 2 + (int64_t)rng_below(&rng, 7),
                    .most_rows = 1 + (int64_t)rng_below(&rng, 2)};
        int64_t strip[2], strips[2], keep[2];
        double each[2];
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            x.tiles[r] = 1 + (int64_t)rng_below(&rng, 12);
        }
        strip[ROLE_M] = x.tiles[ROLE_M] < x.most_rows ? x.tiles[ROLE_M] : x.most_rows;
        strip[ROLE_N] = x.live / strip[ROLE_M];
        strip[ROLE_N] = x.tiles[ROLE_N] < strip[ROLE_N] ? x.tiles[ROLE_N] : strip[ROLE_N];
        for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
            x.tile[r] = 1 + (int64_t)rng_below(&rng, 5);
        }
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            strips[r] = up(x.tiles[r], strip[r]);
            each[r] = (double)(1 + rng_below(&rng, 6));
            x.bytes[r] = each[r] * (double)strips[r];
        }
        x.room = (double)rng_below(&rng, 20);
        double again[2];
        keep[0] = keep[1] = 0;
        for (bool first = true; first || (keep[0] + keep[1] == 0 && strip[ROLE_N] > 1);) {
            strip[ROLE_N] /=
                first ? 1 : 2; /* narrower, where no strip fits beside one of the other */
            first = false;
            for (ScheduleRole r = 0; r < ROLE_K; r++) {
                strips[r] = up(x.tiles[r], strip[r]);
                each[r] = x.bytes[r] / (double)strips[r];
            }
            for (ScheduleRole r = 0; r < ROLE_K; r++) {
                keep[r] = most_that_fit(strips[r], each[r], each[1 - r], x.room);
            }
        }
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            ScheduleRole o = r == ROLE_M ? ROLE_N : ROLE_M;
            exact += keep[r] == 1 && each[r] + each[o] == x.room;
            again[r] =
                x.bytes[r] + x.bytes[o] * (double)up(strips[r], keep[r] > 0 ? keep[r] : 1);
        }
        ScheduleRole kept = again[ROLE_N] < again[ROLE_M] ? ROLE_N : ROLE_M;
        ScheduleLevel level[STRIP_LEVELS];
        uint32_t n = schedule_strips(&x, level);
        assert_in_range(n, 1, STRIP_LEVELS);
        assert_int_equal(level[0].pack, keep[kept] > 0);
        if (keep[kept] > 0) {
            assert_int_equal(level[0].role, kept);
            assert_int_equal(level[0].tile, keep[kept] * strip[kept] * x.tile[kept]);
            assert_true(level[1].pack && level[1].role != kept);
            bool both = x.bytes[0] + x.bytes[1] <= x.room;
            assert_int_equal(level[1].tile,
                             (both ? strips[!kept] : 1) * strip[!kept] * x.tile[!kept]);
        }
        int64_t last[ROLE_BATCH] = {0};
        for (uint32_t i = 0; i < n;
             i++) { /* nothing is cut into what it is, nor packed inside */
            assert_true(level[i].pack == (i < 2 && keep[kept] > 0));
            assert_true(level[i].pack || last[level[i].role] != level[i].tile);
            last[level[i].role] = level[i].tile;
        }
        for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
            assert_int_equal(last[r], x.tile[r]);
        }
        kept_columns += kept == ROLE_N;
        packless += keep[kept] == 0;
    }
    assert_true(exact > 20 && kept_columns > SAMPLES / 4 && packless > SAMPLES / 20);
}

/* Where neither operand stays, a panel of rows does, and all columns pass by. */
static void test_a_panel_stays_where_it_reads_no_more(void **state)
{
    Strips x = {.live = 8, .most_rows = 4, .panel_rows = 8, .room = 20};
    x.tiles[ROLE_M] = 64;
    x.tiles[ROLE_N] = 16;
    x.bytes[ROLE_M] = x.bytes[ROLE_N] = 128;
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        x.tile[r] = 3;
    }
    ScheduleLevel level[STRIP_LEVELS];
    assert_int_equal(schedule_strips(&x, level),
                     4); /* rows of the result, columns, sum, rows */
    assert_true(level[0].pack && level[0].role == ROLE_M && level[0].tile == 8 * 3);
    assert_true(!level[1].pack && level[1].role == ROLE_N && level[1].tile == 3);
    x.room = 18; /* no room for what passes beside the panel */
    (void)schedule_strips(&x, level);
    assert_false(level[0].tile == 8 * 3 && !level[1].pack);
    x.room = 1000; /* both stay */
    (void)schedule_strips(&x, level);
    assert_true(level[0].pack && level[1].pack);
}

TESTS(TEST(test_a_panel_stays_where_it_reads_no_more),
      TEST(test_as_many_strips_are_kept_as_fit_beside_one_of_the_other))
