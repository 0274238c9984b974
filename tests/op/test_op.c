/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, the type rules of operations, and numbers of every type. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/symmetry.h"
#include "support/test.h"

static void names_of_types_and_ops_read_back(void **state)
{
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        DType back = DTYPE_NONE;
        assert_true(dtype_from_name(str_from(dtype_name((DType)t)), &back));
        assert_int_equal(back, t);
    }
    for (int op = 0; op < OP_COUNT; op++) {
        Op back = OP_COUNT;
        assert_true(op_from_name(str_from(op_info((Op)op)->name), &back));
        assert_int_equal(back, op);
    }
    DType t;
    assert_false(dtype_from_name(str_from("f65"), &t));
}

static void widening_loses_nothing(void **state)
{
    assert_true(dtype_widens(DTYPE_F32, DTYPE_F64));
    assert_true(dtype_widens(DTYPE_BF16, DTYPE_F32));
    assert_true(dtype_widens(DTYPE_I32, DTYPE_I64));
    assert_true(dtype_widens(DTYPE_F32, DTYPE_C64));
    assert_true(dtype_widens(DTYPE_C64, DTYPE_C128));
    assert_false(dtype_widens(DTYPE_F64, DTYPE_F32));
    assert_false(dtype_widens(DTYPE_F64, DTYPE_C64));
    assert_false(dtype_widens(DTYPE_I32, DTYPE_F32));
    assert_false(dtype_widens(DTYPE_F16, DTYPE_BF16));
    assert_false(dtype_widens(DTYPE_BOOL, DTYPE_I32));
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        assert_true(dtype_widens((DType)t, (DType)t));
        assert_true(dtype_widens((DType)t, dtype_accumulator((DType)t)));
    }
}

static DType result(Op op, DType a, DType b)
{
    DType in[2] = {a, b}, out = DTYPE_COUNT;
    return op_result_type(op, in, (uint32_t)op_info(op)->arity, &out) ? out : DTYPE_COUNT;
}

static void rules_say_which_types_an_op_takes(void **state)
{
    assert_int_equal(result(OP_ADD, DTYPE_F32, DTYPE_F32), DTYPE_F32);
    assert_int_equal(result(OP_ADD, DTYPE_F32, DTYPE_F64), DTYPE_COUNT);
    assert_int_equal(result(OP_ADD, DTYPE_BOOL, DTYPE_BOOL), DTYPE_COUNT);
    assert_int_equal(result(OP_LT, DTYPE_I32, DTYPE_I32), DTYPE_BOOL);
    assert_int_equal(result(OP_LT, DTYPE_C64, DTYPE_C64), DTYPE_COUNT);
    assert_int_equal(result(OP_EQ, DTYPE_C64, DTYPE_C64), DTYPE_BOOL);
    assert_int_equal(result(OP_ABS, DTYPE_C128, DTYPE_NONE + 1), DTYPE_F64);
    assert_int_equal(result(OP_EXP, DTYPE_C64, DTYPE_F64), DTYPE_C64);
    assert_int_equal(result(OP_EXP, DTYPE_I64, DTYPE_F64), DTYPE_COUNT);
    assert_int_equal(result(OP_ERF, DTYPE_C64, DTYPE_F64), DTYPE_COUNT);
    assert_int_equal(result(OP_MAX, DTYPE_C64, DTYPE_C64), DTYPE_COUNT);
    assert_int_equal(result(OP_NOT, DTYPE_BOOL, DTYPE_F64), DTYPE_BOOL);
    assert_int_equal(result(OP_ADD, DTYPE_NONE, DTYPE_F64), DTYPE_NONE);
    DType in[3] = {DTYPE_BOOL, DTYPE_F32, DTYPE_F32}, out = DTYPE_NONE;
    assert_true(op_result_type(OP_SELECT, in, 3, &out));
    assert_int_equal(out, DTYPE_F32);
    in[0] = DTYPE_F32;
    assert_false(op_result_type(OP_SELECT, in, 3, &out));
    const DType unlike[3] = {DTYPE_BOOL, DTYPE_F32, DTYPE_F64};
    assert_false(op_result_type(OP_SELECT, unlike, 3, &out));
    const DType swapped[3] = {DTYPE_F32, DTYPE_BOOL, DTYPE_F32};
    assert_false(op_result_type(OP_SELECT, swapped, 3, &out));
    assert_false(op_result_type(OP_ADD, in, 3, &out));
}

static void casts_round_wrap_and_saturate(void **state)
{
    assert_int_equal(number_cast(number_int(DTYPE_I64, 4294967297), DTYPE_I32).i, 1);
    assert_int_equal(number_cast(number_int(DTYPE_I64, 2147483648), DTYPE_I32).i, INT32_MIN);
    assert_int_equal(number_real(DTYPE_I32, -2.9).i, -2);
    assert_int_equal(number_real(DTYPE_I32, 1e20).i, INT32_MAX);
    assert_true(number_real(DTYPE_I64, -1e300).i == INT64_MIN);
    assert_int_equal(number_real(DTYPE_I64, (double)NAN).i, 0);
    assert_true(number_real(DTYPE_F32, 0.1).re == (double)0.1f);
    assert_true(number_real(DTYPE_F32, 1e-45).re == (double)1e-45f);
    assert_true(number_real(DTYPE_F16, 65519.0).re == 65504.0);
    assert_true(isinf(number_real(DTYPE_F16, 65520.0).re));
    assert_true(number_real(DTYPE_F16, 2049.0).re == 2048.0); /* a tie, to even */
    assert_true(number_real(DTYPE_F16, 0x1.8p-25).re == 0x1p-24);
    assert_true(number_real(DTYPE_BF16, 257.0).re == 256.0);
    assert_true(isnan(number_real(DTYPE_F16, (double)NAN).re));
    assert_int_equal(number_real(DTYPE_BOOL, 0.5).i, 1);
    assert_true(number_cast((Number){DTYPE_C128, 0, 1, 0.1}, DTYPE_C64).im == (double)0.1f);
}

static void nothing_reduces_to_the_neutral_element(void **state)
{
    assert_true(op_neutral(OP_RMAX, DTYPE_F32).re == -(double)INFINITY);
    assert_true(op_neutral(OP_RMIN, DTYPE_F64).re == (double)INFINITY);
    assert_int_equal(op_neutral(OP_RMAX, DTYPE_I32).i, INT32_MIN);
    assert_true(op_neutral(OP_RMIN, DTYPE_I64).i == INT64_MAX);
    assert_true(op_neutral(OP_PROD, DTYPE_C64).re == 1);
    assert_int_equal(op_neutral(OP_ALL, DTYPE_BOOL).i, 1);
    assert_true(number_is_zero(op_neutral(OP_ANY, DTYPE_BOOL)));
    assert_true(number_is_zero(op_neutral(OP_EINSUM, DTYPE_C128)));
}

static const DType ALL_TYPES[] = {DTYPE_F64, DTYPE_F32,  DTYPE_F16, DTYPE_BF16, DTYPE_I32,
                                  DTYPE_I64, DTYPE_BOOL, DTYPE_C64, DTYPE_C128};
#define N_TYPES (sizeof ALL_TYPES / sizeof ALL_TYPES[0])

/* Operands of type `t`, as far as the rule has a say. */
static uint32_t operands_of(Op op, DType t, DType *in)
{
    uint32_t n = (uint32_t)op_info(op)->arity;
    for (uint32_t k = 0; k < n; k++) {
        in[k] = op_info(op)->rule == RULE_SELECT && k == 0 ? DTYPE_BOOL : t;
    }
    return n;
}

/* The row has a value for each class of numbers that its rule lets in: what is missing ends the program. */
static void every_row_computes_what_its_rule_takes(void **state)
{
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        uint32_t taken = 0;
        for (size_t k = 0; info->kind == OPKIND_MAP && k < N_TYPES; k++) {
            DType in[3], out = DTYPE_F32; /* a cast's own type */
            uint32_t n = operands_of((Op)op, ALL_TYPES[k], in);
            if (info->rule != RULE_CAST && !op_result_type((Op)op, in, n, &out)) {
                continue;
            }
            taken++;
            Number arg[3];
            for (uint32_t a = 0; a < n; a++) {
                arg[a] = number_int(in[a], 1);
            }
            assert_int_equal(op_value((Op)op, out, arg).dtype, out);
        }
        assert_true(info->kind != OPKIND_MAP || taken > 0);
    }
}

static void every_row_is_complete(void **state)
{
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        bool written = info->kind == OPKIND_MAP && info->symbol[0] != '\0';
        assert_true(info->name != NULL && info->name[0] != '\0');
        if (info->kind == OPKIND_MAP) {
            assert_true(info->arity >= 1 && info->arity <= 3 && info->c != NULL &&
                        info->nki != NULL);
            assert_int_equal(written, info->level != LEVEL_CALL);
            assert_true(info->level >= 1 && info->level <= LEVEL_CALL);
        } else if (info->kind == OPKIND_CONTRACT || info->kind == OPKIND_REDUCE) {
            assert_int_equal(op_info(info->by[0])->kind, OPKIND_MAP);
            assert_int_equal(op_info(info->by[0])->arity, 2);
            assert_int_equal(op_info(info->by[1])->rule, RULE_LOGIC);
            assert_true(op_info(info->by[0])->nki[0] != '\0');
        }
    }
}

/* What the column says of signs is what the values do: for each op of real floats at some places. */
static void signs_pass_as_their_column_says(void **state)
{
    static const double at[] = {0.0, 0.25, 1.0, 2.5, 700.0};
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        bool even = true, odd = true;
        DType in[3], out;
        if (info->kind != OPKIND_MAP ||
            !op_result_type((Op)op, in, operands_of((Op)op, DTYPE_F64, in), &out) ||
            out != DTYPE_F64) {
            continue;
        }
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
            for (int a = 0; a < info->arity; a++) {
                Number arg[3];
                for (int b = 0; b < info->arity; b++) {
                    arg[b] = number_real(DTYPE_F64, b == a ? at[k] : 3.0);
                }
                if (in[a] == DTYPE_BOOL) {
                    continue;
                }
                double plus = op_value((Op)op, out, arg).re;
                arg[a].re = -arg[a].re;
                double minus = op_value((Op)op, out, arg).re;
                even =
                    even && minus <= plus && minus >= plus && !signbit(minus) == !signbit(plus);
                odd =
                    odd &&
                    ((minus <= -plus && minus >= -plus && !signbit(minus) == !signbit(-plus)) ||
                     (isnan(minus) && isnan(plus)));
            }
        }
        if (info->sign != SIGN_NONE && (info->sign == SIGN_EVEN ? !even : !odd)) {
            fail_msg("%s is not as its row says", info->name);
        }
    }
}

static void tests_of_a_size_name_a_dim_that_there_is(void **state)
{
    DimInfo info[2] = {{.typical = 8}, {.typical = 8}};
    DimTable table = {.list = {.at = info, .n = 2, .cap = 2}};
    for (int32_t dim = -1; dim <= 3; dim++) {
        DimTest all = {dim, 0, DIM_ANY_SIZE};
        const DimTest *test = &all;
        const char *problem = dim_tests_problem(&table, 1, &test);
        if (dim >= 0 && dim < 2) {
            assert_null(problem);
        } else {
            assert_string_equal(problem, "a test is of no open dim");
        }
    }
}

#define CLASS(sign, conj, width, ...)                                                          \
    {                                                                                          \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t) / (width), width,           \
            (const uint32_t[]){__VA_ARGS__}, sign, conj                                        \
    }

static const char *problem_of(Arena *arena, DType dtype, uint32_t n, const SymmetryClass *c)
{
    Dim shape[8];
    const Symmetry *s = NULL;
    for (int d = 0; d < 8; d++) {
        shape[d] = dim_fixed(d < 7 ? 3 : 4);
    }
    for (uint32_t k = 0; k < n; k++) {
        s = symmetry_with(arena, s, &c[k]);
    }
    return symmetry_problem(arena, dtype, 8, shape, s);
}

/* All exchanges are counted, and no permutation is of two kinds: 5! = 120 are few enough, 6! = 720 and 4! 3! = 144 are not; integrals
 * have 8. */
static void what_is_declared_of_symmetry_is_whole_and_agrees(void **state)
{
    const struct {
        SymmetryClass of[3];
        DType dtype;
        const char *problem;
    } cases[] = {
        {{CLASS(1, false, 1, 0, 1, 2, 3, 4)}, DTYPE_F64, NULL},
        {{CLASS(1, false, 1, 0, 1, 2), CLASS(1, false, 1, 3, 4, 5)}, DTYPE_F64, NULL},
        {{CLASS(1, false, 1, 0, 1), CLASS(1, false, 1, 2, 3), CLASS(1, false, 2, 0, 1, 2, 3)},
         DTYPE_F64,
         NULL},
        {{CLASS(1, false, 1, 0)}, DTYPE_F64, "an exchange is of two dimensions or more"},
        {{CLASS(1, false, 1, 0, 7)},
         DTYPE_F64,
         "dimensions of different extents are exchanged"},
        {{CLASS(1, false, 2, 0, 1, 2, 7)},
         DTYPE_F64,
         "dimensions of different extents are exchanged"},
        {{CLASS(1, false, 1, 0, 8)},
         DTYPE_F64,
         "a dimension is none of the tensor's, or named twice"},
        {{CLASS(1, false, 2, 0, 1, 1, 2)},
         DTYPE_F64,
         "a dimension is none of the tensor's, or named twice"},
        {{CLASS(1, false, 1, 0, 1, 2, 3, 4, 5)}, DTYPE_F64, "it has too many exchanges"},
        {{CLASS(1, false, 1, 0, 1, 2, 3), CLASS(1, false, 1, 4, 5, 6)},
         DTYPE_F64,
         "it has too many exchanges"},
        {{CLASS(1, false, 1, 0, 1), CLASS(-1, false, 1, 1, 2)}, DTYPE_F64, "only 0 has it"},
        {{CLASS(1, false, 1, 0, 1), CLASS(-1, false, 1, 2, 3), CLASS(1, false, 2, 0, 1, 2, 3)},
         DTYPE_F64,
         "only 0 has it"},
        {{CLASS(1, true, 1, 0, 1)}, DTYPE_F64, "a real number is its own conjugate"},
        {{CLASS(1, true, 1, 0, 1, 2)}, DTYPE_C128, NULL},
        {{CLASS(1, true, 1, 0, 1), CLASS(1, false, 1, 1, 2)},
         DTYPE_C128,
         "only real numbers have it"},
        {{CLASS(1, true, 1, 0, 1), CLASS(-1, false, 1, 0, 1)},
         DTYPE_C128,
         "only imaginary numbers have it"},
        {{CLASS(-1, false, 1, 0, 1)}, DTYPE_BOOL, "a truth value has no negative"},
    };
    Arena arena;
    arena_init(&arena, NULL);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        uint32_t n = 0;
        while (n < 3 && cases[k].of[n].n > 0) {
            n++;
        }
        const char *problem = problem_of(&arena, cases[k].dtype, n, cases[k].of);
        if (cases[k].problem == NULL) {
            assert_null(problem);
        } else {
            assert_non_null(problem);
            assert_string_equal(problem, cases[k].problem);
        }
    }
    arena_release(&arena);
}

/* What says the same is the same: classes that share a dimension, groups in any order. */
static void what_is_declared_of_symmetry_has_one_form(void **state)
{
    const SymmetryClass ab = CLASS(1, false, 1, 1, 0), bc = CLASS(1, false, 1, 2, 1),
                        abc = CLASS(1, false, 1, 0, 1, 2),
                        pairs = CLASS(-1, false, 2, 0, 1, 2, 3),
                        turned = CLASS(-1, false, 2, 3, 2, 1, 0);
    Arena arena;
    arena_init(&arena, NULL);
    const Symmetry *both = symmetry_with(&arena, symmetry_with(&arena, NULL, &ab), &bc);
    assert_true(symmetry_eq(both, symmetry_with(&arena, NULL, &abc)));
    assert_true(symmetry_eq(symmetry_copy(&arena, both), both));
    assert_false(symmetry_eq(both, NULL));
    assert_true(
        symmetry_eq(symmetry_with(&arena, NULL, &pairs), symmetry_with(&arena, NULL, &turned)));
    assert_true(symmetry_eq(symmetry_with(&arena, symmetry_with(&arena, NULL, &ab), &pairs),
                            symmetry_with(&arena, symmetry_with(&arena, NULL, &turned), &ab)));
    arena_release(&arena);
}

/* All patterns of floats of at most 16 bits, and values between. */
static void short_floats_convert_exactly_and_round_to_even(void **state)
{
    for (DType t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        for (uint32_t k = 0; dtype_is_half(t) && k < 1u << 8 * dtype_bytes(t); k++) {
            double v = number_of_bits(t, k), near = nextafter(v, INFINITY);
            if (isnan(v)) {
                assert_true(isnan(number_of_bits(t, number_bits(t, v))));
                continue;
            }
            assert_int_equal(number_bits(t, v), k);
            bool kept = !isinf(v) || dtype_info(t)->beyond != BEYOND_FINITE;
            assert_true(kept && number_real(t, v).re == v);
            assert_true(isinf(near) || number_real(t, near).re == v || isinf(v));
        }
    }
    assert_int_equal(number_bits(DTYPE_F16, 65504), 0x7bff);
    assert_true(number_real(DTYPE_F16, 65519).re == 65504);
    assert_true(isinf(number_real(DTYPE_F16, 65520).re));
    assert_true(number_real(DTYPE_F16, 0x1p-25).re == 0);
    assert_int_equal(number_bits(DTYPE_F16, number_real(DTYPE_F16, -0x1.8p-24).re), 0x8002);
    assert_true(number_of_bits(DTYPE_BF16, 0x3f81) == 0x1.02p0);
}

TESTS(TEST(short_floats_convert_exactly_and_round_to_even),
      TEST(names_of_types_and_ops_read_back), TEST(widening_loses_nothing),
      TEST(rules_say_which_types_an_op_takes), TEST(casts_round_wrap_and_saturate),
      TEST(nothing_reduces_to_the_neutral_element),
      TEST(every_row_computes_what_its_rule_takes), TEST(every_row_is_complete),
      TEST(signs_pass_as_their_column_says), TEST(tests_of_a_size_name_a_dim_that_there_is),
      TEST(what_is_declared_of_symmetry_is_whole_and_agrees),
      TEST(what_is_declared_of_symmetry_has_one_form))
