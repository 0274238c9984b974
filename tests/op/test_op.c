/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, the type rules of operations, and numbers of every type. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/symmetry.h"
#include "support/test.h"

static void names_of_types_and_ops_read_back(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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
    (void)state;
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

/* Classes have two members or more, and all their exchanges are counted: 5! = 120 are few enough, 6! = 720 and 4! 3! = 144 are not. */
static void classes_of_symmetry_are_whole_and_few(void **state)
{
    (void)state;
    Dim cube[7];
    for (int d = 0; d < 7; d++) {
        cube[d] = dim_fixed(3);
    }
    const int32_t none[7] = {0}, one[7] = {1}, five[7] = {1, 1, 1, 1, 1},
                  six[7] = {1, 1, 1, 1, 1, 1};
    const int32_t two[7] = {1, 1, 1, 1, 5, 5, 5}, small[7] = {1, 1, 1, 4, 4, 4};
    assert_null(symmetry_problem(DTYPE_F64, 7, cube, none));
    assert_string_equal(symmetry_problem(DTYPE_F64, 7, cube, one),
                        "dimensions are in no class, or in one of several");
    assert_null(symmetry_problem(DTYPE_F64, 7, cube, five));
    assert_null(symmetry_problem(DTYPE_F64, 7, cube, small));
    assert_string_equal(symmetry_problem(DTYPE_F64, 7, cube, six), "it has too many exchanges");
    assert_string_equal(symmetry_problem(DTYPE_F64, 7, cube, two), "it has too many exchanges");
}

TESTS(TEST(names_of_types_and_ops_read_back), TEST(widening_loses_nothing),
      TEST(rules_say_which_types_an_op_takes), TEST(casts_round_wrap_and_saturate),
      TEST(nothing_reduces_to_the_neutral_element),
      TEST(every_row_computes_what_its_rule_takes), TEST(every_row_is_complete),
      TEST(signs_pass_as_their_column_says), TEST(tests_of_a_size_name_a_dim_that_there_is),
      TEST(classes_of_symmetry_are_whole_and_few))
