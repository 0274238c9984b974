/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are computed: what is proved of them for all sizes, what follows from one that is known, quotients, and one shape as
 * another. What is not proved counts as false, so of each proof there is a case that must be refused. */
#include "op/affine.h"
#include "op/factors.h"
#include "support/test.h"

/* n, m and k are given. */
typedef struct World {
    Arena arena;
    SymTable syms;
    DimTable t;
    Dim n, m, k;
} World;

static Dim given(World *w, const char *name, int64_t typical)
{
    DimInfo info = {.name = sym_cstr(&w->syms, name), .typical = typical};
    vec_push(&w->arena, &w->t.list, info);
    return dim_open((int32_t)w->t.list.n - 1);
}

static void begin(World *w)
{
    *w = (World){0};
    arena_init(&w->arena, NULL);
    symtable_init(&w->syms, &w->arena);
    w->n = given(w, "n", 64);
    w->m = given(w, "m", 64);
    w->k = given(w, "k", 3);
}

static Dim product(World *w, Dim x, Dim y)
{
    Dim factor[2] = {x, y};
    return dims_product(&w->arena, &w->arena, &w->syms, &w->t, (Span){0}, 2, factor);
}

static Dim sum(World *w, int64_t x, Dim a, int64_t y, Dim b, int64_t base, int64_t divisor)
{
    DimTerm term[2] = {{a, x}, {b, y}};
    return dims_sum(&w->arena, &w->arena, &w->syms, &w->t, (Span){0}, base, y == 0 ? 1 : 2,
                    term, divisor);
}

static Dim plus(World *w, Dim a, int64_t base)
{
    return sum(w, 1, a, 0, a, base, 1);
}

/* x*a + y*b + base, never below 0 where each dim is at least `least`? */
static bool proved(World *w, int64_t x, Dim a, int64_t y, Dim b, int64_t base, int64_t least)
{
    int64_t *all = ARENA_ARRAY(&w->arena, w->t.list.n, int64_t);
    for (uint32_t d = 0; d < w->t.list.n; d++) {
        all[d] = least;
    }
    Affine e = affine_add(&w->arena, affine_const(base), x, affine_extent(&w->arena, a));
    e = affine_add(&w->arena, e, y, affine_extent(&w->arena, b));
    return dims_prove(&w->arena, &w->t, e, all);
}

static void sums_are_proved_term_by_term(void **state)
{
    World w;
    begin(&w);
    Dim halo = plus(&w, w.n, 2);
    assert_true(proved(&w, 1, w.n, 0, w.n, 0, 0));
    assert_false(proved(&w, 1, w.n, 0, w.n, -1, 0));
    assert_true(proved(&w, 1, w.n, 0, w.n, -1, 1)); /* where there is an element */
    assert_true(proved(&w, 1, halo, -1, w.n, -2, 0));
    assert_false(proved(&w, 1, halo, -1, w.n, -3, 0));
    assert_false(proved(&w, 1, w.n, -1, w.m, 0, 0));
    arena_release(&w.arena);
}

/* No extent is below 0: with n - m there, n >= m; with n - 3, n >= 3. */
static void extents_that_are_there_are_known_of(void **state)
{
    World w;
    begin(&w);
    assert_false(proved(&w, 1, w.n, 0, w.n, -3, 0));
    (void)plus(&w, w.n, -3);
    assert_true(proved(&w, 1, w.n, 0, w.n, -3, 0));
    assert_false(proved(&w, 1, w.n, 0, w.n, -4, 0));
    (void)sum(&w, 1, w.n, -1, w.m, 0, 1);
    assert_true(proved(&w, 1, w.n, -1, w.m, 0, 0));
    assert_false(proved(&w, 1, w.n, -1, w.m, -1, 0));
    assert_false(proved(&w, -1, w.n, 1, w.m, 0, 0));
    arena_release(&w.arena);
}

/* q = (n + 1)/2 rounded down: 2*q <= n + 1 and 2*q >= n. */
static void quotients_are_proved_with_what_rounding_leaves(void **state)
{
    World w;
    begin(&w);
    Dim half = sum(&w, 1, w.n, 0, w.n, 1, 2);
    assert_true(proved(&w, 2, half, -1, w.n, 0, 0));
    assert_false(proved(&w, 2, half, -1, w.n, -1, 0));
    assert_true(proved(&w, -2, half, 1, w.n, 1, 0));
    assert_false(proved(&w, -2, half, 1, w.n, 0, 0));
    arena_release(&w.arena);
}

static void proofs_that_leave_64_bits_are_none(void **state)
{
    World w;
    begin(&w);
    Dim big = sum(&w, INT64_MAX / 2, w.n, 0, w.n, 0, 1);
    assert_true(proved(&w, 1, big, 0, big, 0, 0));
    assert_false(proved(&w, 4, big, 0, big, 0, 0));
    assert_false(proved(&w, INT64_MAX, w.n, 0, w.n, 0, 2));
    arena_release(&w.arena);
}

/* A position of labels: i over n, d over k. */
static int position(World *w, int64_t i, int64_t d, int64_t base, Dim extent)
{
    const AffineTerm term[2] = {{0, i}, {1, d}};
    const Dim extents[2] = {w->n, w->k};
    Affine x = affine_add(&w->arena, affine_const(base), 1, (Affine){0, 2, term});
    return position_problem(&w->arena, &w->t, extents, 2, x, extent);
}

static void positions_lie_inside_or_it_is_said_where_not(void **state)
{
    World w;
    begin(&w);
    Dim valid = sum(&w, 1, w.n, 1, w.k, -1, 1), strided = sum(&w, 2, w.n, 1, w.k, -2, 1);
    assert_int_equal(position(&w, 1, 1, 0, valid), 0);
    assert_int_equal(position(&w, 1, 1, 1, valid), 1);
    assert_int_equal(position(&w, 1, 1, -1, valid), -1);
    assert_int_equal(position(&w, 2, 1, 0, strided), 0);
    assert_int_equal(position(&w, 2, 2, 0, strided), 1);
    assert_int_equal(position(&w, 1, -1, 0, valid), -1);
    assert_int_equal(position(&w, 1, 1, 0, w.n), 1);
    arena_release(&w.arena);
}

static int64_t solved(World *w, Dim of, int64_t value, Dim known, int64_t size, Dim want)
{
    int64_t given[3] = {-1, -1, -1};
    if (known.sym >= 0) {
        given[known.sym] = size;
    }
    (void)dims_solve(&w->arena, &w->t, of.sym, value, given);
    return given[want.sym];
}

static void one_unknown_follows_from_an_extent(void **state)
{
    World w;
    begin(&w);
    Dim valid = sum(&w, 1, w.n, 1, w.k, -1, 1), rows = product(&w, w.n, w.m);
    Dim twice = sum(&w, 2, w.n, 0, w.n, 1, 1), half = sum(&w, 1, w.n, 0, w.n, 1, 2);
    assert_int_equal(solved(&w, valid, 12, w.k, 3, w.n), 10);
    assert_int_equal(solved(&w, valid, 12, dim_fixed(0), 0, w.n), -1); /* two unknowns */
    assert_int_equal(solved(&w, rows, 12, w.m, 4, w.n), 3);
    assert_int_equal(solved(&w, rows, 13, w.m, 4, w.n), -1);
    assert_int_equal(solved(&w, rows, 0, w.m, 0, w.n), -1); /* any n */
    assert_int_equal(solved(&w, twice, 9, dim_fixed(0), 0, w.n), 4);
    assert_int_equal(solved(&w, twice, 8, dim_fixed(0), 0, w.n), -1);
    assert_int_equal(solved(&w, half, 4, dim_fixed(0), 0, w.n), -1); /* 7 or 8 */
    arena_release(&w.arena);
}

static int64_t size(World *w, Dim d, int64_t n, int64_t m, int64_t k)
{
    const int64_t given[3] = {n, m, k};
    return dims_complete(&w->arena, &w->t, given)[d.sym];
}

static void sizes_round_as_they_should_and_overflow_is_seen(void **state)
{
    World w;
    begin(&w);
    Dim less = sum(&w, 1, w.n, -1, w.m, 0, 1), half = sum(&w, 1, w.n, 0, w.n, 0, 2);
    Dim blocks = dims_quotient(&w.arena, &w.arena, &w.syms, &w.t, (Span){0}, w.n, 2);
    Dim rows = product(&w, w.n, w.m), of_none = product(&w, less, w.k);
    assert_int_equal(size(&w, less, 5, 3, 1), 2);
    assert_int_equal(size(&w, less, 3, 5, 1), -1);
    assert_int_equal(size(&w, of_none, 3, 5, 1), -1);
    assert_int_equal(size(&w, half, 5, 1, 1), 2);
    assert_int_equal(size(&w, blocks, 5, 1, 1), 3);
    assert_int_equal(size(&w, rows, 5, 3, 1), 15);
    assert_true(size(&w, rows, INT64_C(1) << 40, INT64_C(1) << 40, 1) > SIZE_LIMIT);
    arena_release(&w.arena);
}

/* x / by, or dim -2 */
static Dim quotient(World *w, Dim x, Dim by)
{
    Dim q = {-2, 0};
    (void)dims_divide(&w->arena, &w->arena, &w->syms, &w->t, (Span){0}, x, by, &q);
    return q;
}

static void extents_are_divided_where_that_is_whole(void **state)
{
    World w;
    begin(&w);
    Dim nm = product(&w, w.n, w.m), nmk = product(&w, nm, w.k), wide = plus(&w, w.m, 2);
    Dim three = sum(&w, 3, nm, 0, nm, 0, 1), packed = sum(&w, 1, nm, 2, nmk, 0, 1);
    assert_true(dim_eq(quotient(&w, nm, w.m), w.n));
    assert_true(dim_eq(quotient(&w, nm, w.n), w.m));
    assert_true(dim_eq(quotient(&w, nmk, product(&w, w.k, w.m)), w.n));
    assert_true(dim_eq(quotient(&w, nm, nm), dim_fixed(1)));
    assert_true(dim_eq(quotient(&w, three, w.m), sum(&w, 3, w.n, 0, w.n, 0, 1)));
    assert_true(dim_eq(quotient(&w, three, dim_fixed(3)), nm));
    assert_true(dim_eq(quotient(&w, product(&w, w.n, wide), wide), w.n));
    assert_true(dim_eq(quotient(&w, sum(&w, 5, w.m, 0, w.m, 10, 1), wide), dim_fixed(5)));
    assert_true(dim_eq(quotient(&w, dim_fixed(12), dim_fixed(4)), dim_fixed(3)));
    Dim heads = quotient(&w, packed, w.m);
    assert_int_equal(size(&w, heads, 5, 7, 3), 5 + 2 * 5 * 3);
    assert_int_equal(quotient(&w, w.n, w.m).sym, -2);
    assert_int_equal(quotient(&w, plus(&w, nm, 1), w.m).sym, -2);
    assert_int_equal(quotient(&w, three, dim_fixed(2)).sym, -2);
    assert_int_equal(quotient(&w, sum(&w, 5, w.m, 0, w.m, 9, 1), wide).sym, -2);
    assert_int_equal(quotient(&w, nm, product(&w, w.m, w.m)).sym, -2);
    assert_int_equal(quotient(&w, dim_fixed(12), w.m).sym, -2);
    assert_int_equal(quotient(&w, dim_fixed(12), dim_fixed(0)).sym, -2);
    assert_int_equal(quotient(&w, sum(&w, 1, nm, 0, nm, 0, 2), w.m).sym, -2);
    arena_release(&w.arena);
}

static void shapes_hold_the_same_elements_together_or_apart(void **state)
{
    World w;
    begin(&w);
    Dim nm = product(&w, w.n, w.m), nmk = product(&w, nm, w.k), mk = product(&w, w.m, w.k);
    const Dim apart[3] = {w.n, w.m, w.k}, first[2] = {nm, w.k}, last[2] = {w.n, mk};
    const Dim other[3] = {w.m, w.n, w.k}, few[2] = {w.n, w.m}, one[1] = {nmk};
    const Dim numbers[2] = {dim_fixed(4), dim_fixed(6)}, all[1] = {dim_fixed(24)};
    const Dim none[3] = {dim_fixed(5), dim_fixed(0), w.n}, empty[1] = {dim_fixed(0)};
    Arena *a = &w.arena;
    assert_true(dims_same_elements(a, &w.t, 3, apart, 2, first));
    assert_true(dims_same_elements(a, &w.t, 2, first, 2, last));
    assert_true(dims_same_elements(a, &w.t, 1, one, 3, apart));
    assert_true(dims_same_elements(a, &w.t, 2, numbers, 1, all));
    assert_true(dims_same_elements(a, &w.t, 0, NULL, 0, NULL));
    assert_true(dims_same_elements(a, &w.t, 3, none, 1, empty));
    assert_false(dims_same_elements(a, &w.t, 3, apart, 3, other));
    assert_false(dims_same_elements(a, &w.t, 3, apart, 2, few));
    assert_false(dims_same_elements(a, &w.t, 2, few, 2, last));
    assert_false(dims_same_elements(a, &w.t, 2, few, 1, &w.m));
    assert_false(dims_same_elements(a, &w.t, 1, all, 2, few));
    assert_true(dims_only_split(a, &w.t, 2, first, 3, apart));
    assert_false(dims_only_split(a, &w.t, 3, apart, 2, first));
    assert_false(dims_only_split(a, &w.t, 2, first, 2, last));
    arena_release(&w.arena);
}

static void a_refinement_has_the_parts_of_both(void **state)
{
    World w;
    begin(&w);
    const Dim a[2] = {product(&w, w.n, w.m), w.k}, b[2] = {w.n, product(&w, w.m, w.k)};
    Dim out[4];
    uint32_t n = 4, of_a[4], of_b[4];
    assert_true(dims_refine(&w.arena, &w.arena, &w.syms, &w.t, (Span){0}, 2, a, 2, b, &n, out,
                            of_a, of_b));
    assert_int_equal(n, 3);
    assert_true(dim_eq(out[0], w.n) && dim_eq(out[1], w.m) && dim_eq(out[2], w.k));
    assert_true(of_a[0] == 0 && of_a[1] == 0 && of_a[2] == 1);
    assert_true(of_b[0] == 0 && of_b[1] == 1 && of_b[2] == 1);
    n = 2;
    assert_false(dims_refine(&w.arena, &w.arena, &w.syms, &w.t, (Span){0}, 2, a, 2, b, &n, out,
                             of_a, of_b)); /* no room */
    const Dim fours[2] = {dim_fixed(4), w.n}, sixes[2] = {dim_fixed(6), w.n};
    n = 4;
    assert_false(dims_refine(&w.arena, &w.arena, &w.syms, &w.t, (Span){0}, 2, fours, 2, sixes,
                             &n, out, of_a, of_b));
    arena_release(&w.arena);
}

static void common_factors_are_those_of_all(void **state)
{
    World w;
    begin(&w);
    Dim nm = product(&w, w.n, w.m), mk = product(&w, w.m, w.k), nmk = product(&w, nm, w.k);
    const Dim two[2] = {nm, mk}, three[3] = {nmk, nm, mk}, apart[2] = {w.n, mk};
    Arena *a = &w.arena;
    assert_true(dim_eq(dims_common(a, a, &w.syms, &w.t, (Span){0}, 2, two), w.m));
    assert_true(dim_eq(dims_common(a, a, &w.syms, &w.t, (Span){0}, 3, three), w.m));
    assert_true(dim_eq(dims_common(a, a, &w.syms, &w.t, (Span){0}, 1, &nmk), nmk));
    const Dim square[2] = {product(&w, w.n, w.n), nm};
    assert_true(dim_eq(dims_common(a, a, &w.syms, &w.t, (Span){0}, 2, square), w.n));
    assert_true(dim_is(dims_common(a, a, &w.syms, &w.t, (Span){0}, 2, apart), 1));
    arena_release(&w.arena);
}

/* Products of products, as a dump may have them, are 2^40 factors. */
static void what_has_too_many_factors_is_one(void **state)
{
    World w;
    begin(&w);
    Dim d = w.n;
    for (int i = 0; i < 40; i++) {
        Dim *factor = ARENA_ARRAY(&w.arena, 2, Dim);
        factor[0] = factor[1] = d;
        DimInfo info = {
            .name = sym_cstr(&w.syms, "d"), .typical = 1, .n_factors = 2, .factor = factor};
        vec_push(&w.arena, &w.t.list, info);
        d = dim_open((int32_t)w.t.list.n - 1);
    }
    assert_true(dims_same_elements(&w.arena, &w.t, 1, &d, 1, &d));
    assert_false(dims_same_elements(&w.arena, &w.t, 1, &d, 1, &w.n));
    arena_release(&w.arena);
}

static void terms_are_renamed_and_sorted(void **state)
{
    World w;
    begin(&w);
    const AffineTerm term[4] = {{0, 6}, {1, 2}, {2, 1}, {affine_dim(w.n.sym), -3}};
    const VarRef to[3] = {2, 0, 1};
    const Affine x = {5, 4, term}, renamed = affine_rename(&w.arena, x, to);
    const AffineTerm expected[4] = {{0, 2}, {1, 1}, {2, 6}, {affine_dim(w.n.sym), -3}};
    assert_true(affine_eq(renamed, (Affine){5, 4, expected}));
    AffineTerm sorted[4];
    assert_int_equal(affine_steps(renamed, sorted), 3); /* dims are no steps */
    assert_int_equal(sorted[0].var, 1);
    assert_int_equal(sorted[1].var, 0);
    assert_int_equal(sorted[2].var, 2);
    const AffineTerm backward[2] = {{0, 4}, {1, -1}};
    assert_int_equal(affine_steps((Affine){0, 2, backward}, sorted), 0);
    arena_release(&w.arena);
}

TESTS(TEST(sums_are_proved_term_by_term), TEST(extents_that_are_there_are_known_of),
      TEST(quotients_are_proved_with_what_rounding_leaves),
      TEST(proofs_that_leave_64_bits_are_none),
      TEST(positions_lie_inside_or_it_is_said_where_not),
      TEST(one_unknown_follows_from_an_extent),
      TEST(sizes_round_as_they_should_and_overflow_is_seen),
      TEST(extents_are_divided_where_that_is_whole),
      TEST(shapes_hold_the_same_elements_together_or_apart),
      TEST(a_refinement_has_the_parts_of_both), TEST(common_factors_are_those_of_all),
      TEST(what_has_too_many_factors_is_one), TEST(terms_are_renamed_and_sorted))
