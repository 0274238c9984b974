/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that are put together of pieces: which are seen to lie apart and to cover the whole for all sizes, and which are refused. */
#include "op/pieces.h"
#include "support/test.h"

typedef struct World {
    Arena arena;
    SymTable syms;
    DimTable t;
    Dim n, m, both, twice; /* n + m, 2*n */
} World;

static Dim given(World *w, const char *name)
{
    DimInfo info = {.name = sym_cstr(&w->syms, name), .typical = 64};
    vec_push(&w->arena, &w->t.list, info);
    return dim_open((int32_t)w->t.list.n - 1);
}

static Dim sum(World *w, int64_t x, int64_t y, int64_t base)
{
    DimTerm term[2] = {{w->n, x}, {w->m, y}};
    return dims_sum(&w->arena, &w->arena, &w->syms, &w->t, (Span){0}, base, y == 0 ? 1 : 2,
                    term, 1);
}

static void begin(World *w)
{
    *w = (World){0};
    arena_init(&w->arena, NULL);
    symtable_init(&w->syms, &w->arena);
    w->n = given(w, "n");
    w->m = given(w, "m");
    w->both = sum(w, 1, 1, 0);
    w->twice = sum(w, 2, 0, 0);
}

/* c*i + d*j + x*n + base */
static Affine at(World *w, int64_t c, int64_t d, int64_t x, int64_t base)
{
    const AffineTerm term[3] = {{0, c}, {1, d}, {affine_dim(w->n.sym), x}};
    Affine sum = affine_const(base);
    for (uint32_t i = 0; i < 3; i++) {
        if (term[i].coef != 0) {
            sum = affine_add(&w->arena, sum, 1, (Affine){0, 1, &term[i]});
        }
    }
    return affine_copy(&w->arena, sum);
}

/* A piece of one dimension, of an index over `extent`. */
static Patch line(World *w, Dim extent, Affine x)
{
    return (Patch){1, arena_copy(&w->arena, &extent, sizeof extent),
                   arena_copy(&w->arena, &x, sizeof x)};
}

static bool meet(World *w, Patch a, Patch b)
{
    bool there = pieces_overlap(&w->arena, &w->t, 1, &a, &b);
    assert_int_equal(pieces_overlap(&w->arena, &w->t, 1, &b, &a), there);
    return there;
}

static void pieces_are_apart_where_one_ends_before_the_other(void **state)
{
    World w;
    begin(&w);
    Patch first = line(&w, w.n, at(&w, 1, 0, 0, 0));
    assert_false(meet(&w, first, line(&w, w.m, at(&w, 1, 0, 1, 0))));
    assert_false(meet(&w, first, line(&w, w.m, at(&w, 1, 0, 1, 7))));
    assert_true(meet(&w, first, line(&w, w.m, at(&w, 1, 0, 1, -1)))); /* one too early */
    assert_true(meet(&w, first, line(&w, w.m, at(&w, 1, 0, 0, 5))));  /* n may be 6 */
    assert_true(meet(&w, first, first));
    assert_false(meet(&w, line(&w, dim_fixed(5), at(&w, 1, 0, 0, 0)),
                      line(&w, w.m, at(&w, 1, 0, 0, 5))));
    /* backwards from 2n - 1 to n */
    assert_false(meet(&w, first, line(&w, w.n, at(&w, -1, 0, 2, -1))));
    assert_true(meet(&w, first, line(&w, w.n, at(&w, -1, 0, 2, -2))));
    assert_true(meet(
        &w, first, line(&w, w.n, at(&w, -1, 0, 1, 3)))); /* it begins behind, and comes back */
    arena_release(&w.arena);
}

static void pieces_are_apart_where_remainders_differ(void **state)
{
    World w;
    begin(&w);
    Patch even = line(&w, w.n, at(&w, 2, 0, 0, 0));
    assert_false(meet(&w, even, line(&w, w.n, at(&w, 2, 0, 0, 1))));
    assert_false(meet(&w, even, line(&w, w.m, at(&w, 4, 0, 0, 3))));
    assert_true(meet(&w, even, line(&w, w.m, at(&w, 4, 0, 0, 2))));
    assert_true(meet(&w, even, line(&w, w.m, at(&w, 3, 0, 0, 1)))); /* 4 is in both */
    assert_false(meet(&w, even, line(&w, w.n, at(&w, 2, 0, 2, 1))));
    assert_true(meet(&w, even, line(&w, w.n, at(&w, 2, 0, 1, 1)))); /* n may be odd */
    arena_release(&w.arena);
}

/* A piece of two indices in one dimension: 8*i + j. */
static bool meets_itself(World *w, int64_t c, int64_t d, Dim i, Dim j)
{
    const Dim extent[2] = {i, j};
    Affine x = at(w, c, d, 0, 0);
    Patch p = {2, extent, &x};
    return piece_overlaps_itself(1, &p);
}

static void elements_of_a_piece_have_places_of_their_own(void **state)
{
    World w;
    begin(&w);
    assert_false(meets_itself(&w, 8, 1, w.n, dim_fixed(8)));
    assert_true(meets_itself(&w, 8, 1, w.n, dim_fixed(9)));
    assert_true(meets_itself(&w, 8, 1, w.n, w.m));
    assert_false(meets_itself(&w, 8, -1, w.n, dim_fixed(8)));
    assert_false(meets_itself(&w, 1, 4, dim_fixed(4), w.n));
    assert_true(meets_itself(&w, 1, 1, w.n, dim_fixed(2)));
    assert_false(meets_itself(&w, 1, 1, w.n, dim_fixed(1)));
    assert_true(meets_itself(&w, 1, 0, w.n, dim_fixed(2))); /* j stands nowhere */
    assert_true(meets_itself(&w, INT64_MAX, INT64_MAX / 2, w.n, dim_fixed(5)));
    Affine diagonal[2] = {at(&w, 1, 0, 0, 0), at(&w, 1, 0, 0, 0)};
    Patch p = {1, &w.n, diagonal};
    assert_true(
        piece_overlaps_itself(2, &p)); /* an index in two dimensions is not looked into */
    arena_release(&w.arena);
}

static bool whole(World *w, Dim shape, Dim a, Dim b)
{
    const Patch piece[2] = {{1, &a, NULL}, {1, &b, NULL}};
    return pieces_are_all(&w->arena, &w->t, 1, &shape, 2, piece);
}

static void pieces_cover_where_their_elements_add_up(void **state)
{
    World w;
    begin(&w);
    assert_true(whole(&w, w.both, w.n, w.m));
    assert_false(whole(&w, w.both, w.n, w.n));
    assert_false(whole(&w, sum(&w, 1, 1, 1), w.n, w.m));
    assert_true(whole(&w, w.twice, w.n, w.n));
    assert_false(whole(&w, w.twice, w.n, dim_fixed(64))); /* the typical size is one of many */
    assert_true(whole(&w, dim_fixed(7), dim_fixed(3), dim_fixed(4)));
    assert_false(whole(&w, dim_fixed(7), dim_fixed(3), dim_fixed(3)));
    assert_true(whole(&w, dim_fixed(0), dim_fixed(0), dim_fixed(0)));
    arena_release(&w.arena);
}

static void pieces_of_several_dimensions_count_as_products(void **state)
{
    World w;
    begin(&w);
    const Dim shape[2] = {w.both, w.both};
    const Dim extents[4][2] = {{w.n, w.n}, {w.n, w.m}, {w.m, w.n}, {w.m, w.m}};
    Patch piece[4];
    for (uint32_t i = 0; i < 4; i++) {
        piece[i] = (Patch){2, extents[i], NULL};
    }
    assert_true(pieces_are_all(&w.arena, &w.t, 2, shape, 4, piece));
    assert_false(pieces_are_all(&w.arena, &w.t, 2, shape, 3, piece));
    piece[3] = piece[0];
    assert_false(pieces_are_all(&w.arena, &w.t, 2, shape, 4, piece));
    assert_false(pieces_are_all(&w.arena, &w.t, 2, shape, 0, piece));
    arena_release(&w.arena);
}

/* In two dimensions one is enough. */
static void blocks_are_apart_in_one_dimension(void **state)
{
    World w;
    begin(&w);
    const Dim square[2] = {w.n, w.n}, wide[2] = {w.n, w.m};
    const Affine first[2] = {at(&w, 1, 0, 0, 0), at(&w, 0, 1, 0, 0)};
    const Affine right[2] = {at(&w, 1, 0, 0, 0), at(&w, 0, 1, 1, 0)};
    const Affine near[2] = {at(&w, 1, 0, 0, 0), at(&w, 0, 1, 1, -1)};
    const Patch a = {2, square, first}, b = {2, wide, right}, c = {2, wide, near};
    assert_false(pieces_overlap(&w.arena, &w.t, 2, &a, &b));
    assert_true(pieces_overlap(&w.arena, &w.t, 2, &a, &c));
    assert_true(pieces_overlap(&w.arena, &w.t, 2, &b, &c));
    arena_release(&w.arena);
}

/* Random boxes and strided rows, of which few or many meet, beside what a comparison of all pairs says. */
/* With all pairs compared this takes minutes. */
static void pieces_of_an_open_dim_stand_in_a_row(void **state)
{
    enum { PIECES = 3000 };
    World w;
    begin(&w);
    Patch *piece = ARENA_ARRAY(&w.arena, PIECES, Patch);
    for (int64_t k = 0; k < PIECES; k++) {
        piece[(k * 7) % PIECES] = line(&w, w.n, at(&w, 1, 0, k, 0));
    }
    uint32_t x = 0, y = 0;
    assert_false(pieces_meet(&w.arena, &w.t, 1, PIECES, piece, &x, &y));
    const Patch few[3] = {
        line(&w, w.n, at(&w, 1, 0, 2, 0)), line(&w, w.both, at(&w, 1, 0, 0, 0)),
        line(&w, w.n, at(&w, 1, 0, 1, 0))}; /* of the second m positions too many */
    assert_true(pieces_meet(&w.arena, &w.t, 1, 3, few, &x, &y));
    assert_true(x == 0 && y == 1);
    arena_release(&w.arena);
}

static void the_first_two_that_meet_are_found(void **state)
{
    World w;
    begin(&w);
    uint64_t random = 1;
    uint32_t met = 0;
    for (uint32_t round = 0; round < 400; round++) {
        enum { COUNT = 8 };
        Dim extent[COUNT][2];
        Affine where[COUNT][2];
        Patch piece[COUNT];
        for (uint32_t k = 0; k < COUNT; k++) {
            int64_t r[6];
            for (uint32_t i = 0; i < 6; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                r[i] = (int64_t)(random >> 40);
            }
            bool open = round % 5 == 4 && r[4] % 3 == 0;
            extent[k][0] = open ? w.n : dim_fixed(r[0] % 4);
            extent[k][1] = dim_fixed(1 + r[1] % 3);
            where[k][0] = at(&w, 1 + r[4] % 2, 0, 0, r[2] % (10 + round / 4));
            where[k][1] = at(&w, 0, 1, 0, r[3] % 8);
            piece[k] = (Patch){2, extent[k], where[k]};
        }
        uint32_t x = 0, y = 0, first = 0, second = 0;
        bool any = false;
        for (uint32_t i = 0; i < COUNT && !any; i++) {
            for (uint32_t j = 0; j < i && !any; j++) {
                any = pieces_overlap(&w.arena, &w.t, 2, &piece[j], &piece[i]);
                first = j;
                second = i;
            }
        }
        assert_int_equal(pieces_meet(&w.arena, &w.t, 2, COUNT, piece, &x, &y), any);
        if (any) {
            assert_int_equal(x, first);
            assert_int_equal(y, second);
        }
        met += any;
    }
    assert_in_range(met, 40, 360);
    arena_release(&w.arena);
}

TESTS(TEST(pieces_of_an_open_dim_stand_in_a_row), TEST(the_first_two_that_meet_are_found),
      TEST(pieces_are_apart_where_one_ends_before_the_other),
      TEST(pieces_are_apart_where_remainders_differ),
      TEST(elements_of_a_piece_have_places_of_their_own),
      TEST(pieces_cover_where_their_elements_add_up),
      TEST(pieces_of_several_dimensions_count_as_products),
      TEST(blocks_are_apart_in_one_dimension))
