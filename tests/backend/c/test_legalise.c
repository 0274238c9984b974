/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that legalisation cuts by, against their definition. */
#include "backend/c/legalise.h"
#include "support.h"

static void a_divisor_divides_and_none_that_is_larger_does(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 100; n++) {
        for (int64_t most = 1; most <= 110; most++) {
            int64_t d = divisor_at_most(n, most);
            assert_true(d >= 1 && d <= most && n % d == 0);
            for (int64_t larger = d + 1; larger <= most; larger++) {
                assert_true(n % larger != 0);
            }
        }
    }
}

/* One block where all fit in one tile, else blocks of a tile. */
static void blocks_hold_a_tile_at_most(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 60; n++) {
        for (int64_t tile = 1; tile <= 20; tile++) {
            for (int64_t unit = 1; unit <= 4; unit++) {
                Range r = {affine_const(3), n, false, dim_fixed(0)},
                      clipped = range_whole(dim_fixed(n));
                Blocks b = range_blocks(r, tile, unit), c = range_blocks(clipped, tile, unit);
                int64_t held = n <= tile ? n : tile;
                assert_true(b.looped == (n > tile) && c.looped == b.looped);
                assert_true(b.looped ? b.step == tile && c.step == tile
                                     : range_eq(&b.whole, &r));
                assert_true(!b.looped ||
                            (range_eq(&b.loop, &r) && range_eq(&c.loop, &clipped)));
                assert_true(b.most >= held && b.most < held + unit && b.most % unit == 0);
                assert_int_equal(c.most, b.most);
                assert_true(c.looped || (c.whole.clipped && c.whole.span == c.most));
            }
        }
    }
    assert_true(range_blocks(range_whole(dim_open(0)), 8, 4).looped);
    assert_int_equal(range_blocks(range_whole(dim_fixed(0)), 8, 1).most, 1);
    assert_int_equal(range_blocks(range_whole(dim_fixed(0)), 8, 4).most, 4);
}

/* A range that is clipped may have fewer values at its end. */
static void a_range_is_exact_where_nothing_can_cut_it(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    Affine v = affine_var(&arena, 0);
    for (int64_t span = 0; span <= 4; span++) {
        for (int64_t limit = 0; limit <= 10; limit++) {
            bool fits = span == 0 || 3 + span <= limit;
            Range fixed = {affine_const(3), span, true, dim_fixed(limit)};
            Range moving = {v, span, true, dim_fixed(limit)};
            Range open = {affine_const(3), span, true, dim_open(0)};
            assert_int_equal(range_is_exact(fixed), fits);
            assert_false(range_is_exact(moving) || range_is_exact(open));
            fixed.clipped = moving.clipped = false;
            assert_true(range_is_exact(fixed) && range_is_exact(moving));
        }
    }
    arena_release(&arena);
}

TESTS(TEST(a_divisor_divides_and_none_that_is_larger_does), TEST(blocks_hold_a_tile_at_most),
      TEST(a_range_is_exact_where_nothing_can_cut_it))
