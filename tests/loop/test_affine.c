/* SPDX-License-Identifier: Apache-2.0 */
/* Affine expressions and the making of kernels. */
#include <string.h>

#include "base/ctx.h"
#include "op/affine.h"
#include "loop/loop.h"
#include "loop/term.h"
#include "support/test.h"

/* base + x0*v0 + x1*v1 + x2*v2 */
static Affine affine_of(Arena *a, int64_t base, int64_t x0, int64_t x1, int64_t x2)
{
    Affine sum = affine_const(base);
    const int64_t coef[] = {x0, x1, x2};
    for (VarRef v = 3; v-- > 0;) { /* against the order of the terms */
        sum = affine_add(a, sum, coef[v], affine_var(a, v));
    }
    return sum;
}

static void affine_expressions_are_equal_as_numbers_are(void **state)
{
    Ctx c;
    ctx_init(&c);
    Arena *a = &c.arena;
    Affine x = affine_of(a, 5, 2, 0, -3);
    assert_int_equal(x.n, 2);
    assert_int_equal(affine_coef(x, 0), 2);
    assert_int_equal(affine_coef(x, 1), 0);
    assert_true(affine_uses(x, 2) && !affine_uses(x, 1));
    assert_true(
        affine_eq(affine_add(a, x, 2, affine_of(a, -1, 0, 4, 1)), affine_of(a, 3, 2, 8, -1)));
    assert_true(affine_eq(affine_add(a, x, -1, x), affine_const(0)));
    assert_false(affine_eq(x, affine_of(a, 5, 2, 1, -3)));
    assert_false(affine_eq(x, affine_of(a, 6, 2, 0, -3)));
    ctx_release(&c);
}

static void a_variable_is_replaced_by_an_expression(void **state)
{
    Ctx c;
    ctx_init(&c);
    Arena *a = &c.arena;
    Affine x = affine_of(a, 5, 2, 1, 0);
    Affine by = affine_of(a, -1, 1, 0, 7); /* uses the variable itself */
    assert_true(affine_eq(affine_subst(a, x, 0, by), affine_of(a, 3, 2, 1, 14)));
    assert_true(affine_eq(affine_subst(a, x, 2, by), x));
    ctx_release(&c);
}

static void what_does_not_fit_64_bits_is_noticed(void **state)
{
    Ctx c;
    ctx_init(&c);
    Arena *a = &c.arena;
    Affine most = affine_of(a, INT64_MAX, INT64_MAX, 0, 0), out = affine_const(7);
    assert_false(affine_try_add(a, most, 1, affine_const(1), &out));
    assert_false(affine_try_add(a, most, 1, affine_var(a, 0), &out));
    assert_false(affine_try_add(a, affine_const(0), 2, most, &out));
    assert_false(affine_try_add(a, affine_const(-2), -1, most, &out));
    assert_int_equal(out.base, 7);
    assert_true(affine_try_add(a, affine_const(-1), -1, most, &out));
    assert_true(out.base == INT64_MIN);
    const int64_t edge[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, 2, INT64_MAX};
    for (size_t i = 0; i < 7; i++) {
        for (size_t j = 0; j < 7; j++) {
            int64_t sum = 0, product = 0, s = 0, p = 0;
            bool sum_fits = !__builtin_add_overflow(edge[i], edge[j], &s);
            bool product_fits = !__builtin_mul_overflow(edge[i], edge[j], &p);
            assert_int_equal(i64_try_add(edge[i], edge[j], &sum), sum_fits);
            assert_int_equal(i64_try_mul(edge[i], edge[j], &product), product_fits);
            assert_true((!sum_fits || sum == s) && (!product_fits || product == p));
        }
    }
    ctx_release(&c);
}

static void names_are_made_identifiers_and_unique(void **state)
{
    Ctx c;
    ctx_init(&c);
    Kernel *k = kernel_new(&c.arena, sym_cstr(&c.syms, "k"));
    static const struct {
        const char *hint, *name;
    } rows[] = {{"a", "a"}, {"a", "a2"},   {"a", "a3"},        {"a2", "a22"}, {"", "_"},
                {"", "_2"}, {"3x", "_3x"}, {"\xce\xb1", "__"}, {"p q", "p_q"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i % 2 == 0) {
            VarRef v = kernel_var(k, &c.syms, rows[i].hint, true);
            assert_string_equal(k->vars.at[v].name->text, rows[i].name);
        } else { /* buffers share the names */
            BufRef b = kernel_buffer(k, &c.syms, rows[i].hint, DTYPE_F32, SPACE_TILE, 0, NULL);
            assert_string_equal(k->bufs.at[b].name->text, rows[i].name);
        }
    }
    ctx_release(&c);
}

static void a_copy_of_a_kernel_grows_on_its_own(void **state)
{
    Ctx c;
    ctx_init(&c);
    Kernel *k = kernel_new(&c.arena, sym_cstr(&c.syms, "k"));
    kernel_var(k, &c.syms, "a", true);
    Kernel *copy = kernel_like(&c.arena, k);
    kernel_var(copy, &c.syms, "b", true);
    kernel_var(k, &c.syms, "c", true);
    assert_string_equal(copy->vars.at[1].name->text, "b");
    assert_string_equal(k->vars.at[1].name->text, "c");
    assert_int_equal(k->vars.n, 2);
    ctx_release(&c);
}

static void a_statement_is_named_by_its_shape(void **state)
{
    Ctx c;
    ctx_init(&c);
    Arena *a = &c.arena;
    Kernel *k = kernel_new(a, sym_cstr(&c.syms, "k"));
    BufRef buf = kernel_buffer(k, &c.syms, "b", DTYPE_F32, SPACE_TILE, 0, NULL);
    const Expr *load = expr_load(a, k, buf, NULL);
    const Expr *pair[2] = {load, load};
    const Expr *product = expr_op(a, OP_MUL, DTYPE_F32, 2, pair);
    const Expr *wide[2] = {expr_cast(a, load, DTYPE_F64), expr_cast(a, load, DTYPE_F64)};
    const Expr *three[2] = {product, load};
    assert_ptr_equal(expr_cast(a, load, DTYPE_F32), load);
    const struct {
        Op fold;
        const Expr *value;
        TileKind kind;
    } rows[] = {
        {OP_COPY, expr_const(a, number_real(DTYPE_F32, 1)), TILE_FILL},
        {OP_COPY, load, TILE_COPY},
        {OP_COPY, product, TILE_MAP},
        {OP_COPY, wide[0], TILE_MAP},
        {OP_SUM, load, TILE_REDUCE},
        {OP_SUM, product, TILE_MATMUL},
        {OP_SUM, expr_cast(a, product, DTYPE_F64), TILE_MATMUL},
        {OP_SUM, expr_op(a, OP_MUL, DTYPE_F64, 2, wide), TILE_MATMUL},
        {OP_SUM, expr_op(a, OP_MUL, DTYPE_F32, 2, three), TILE_REDUCE},
        {OP_RMAX, product, TILE_REDUCE},
        {OP_ANY, expr_op(a, OP_AND, DTYPE_BOOL, 2, pair), TILE_MATMUL},
        {OP_ALL, expr_op(a, OP_AND, DTYPE_BOOL, 2, pair), TILE_REDUCE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Stmt s = {.kind = STMT_TILE, .fold = rows[i].fold, .value = rows[i].value};
        assert_int_equal(tile_kind(&s), rows[i].kind);
    }
    ctx_release(&c);
}

TESTS(TEST(affine_expressions_are_equal_as_numbers_are),
      TEST(a_variable_is_replaced_by_an_expression), TEST(what_does_not_fit_64_bits_is_noticed),
      TEST(names_are_made_identifiers_and_unique), TEST(a_copy_of_a_kernel_grows_on_its_own),
      TEST(a_statement_is_named_by_its_shape))
