/* SPDX-License-Identifier: Apache-2.0 */
/* What every op and every cast makes of a grid of values, in every type that takes it: one line
 * for each in values.txt (target `bless` writes it). And integers against an oracle that rounds
 * them digit by digit: once, to the even neighbour from the middle. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "op/op.h"
#include "support/golden.h"

#define VALUES "tests/op/values.txt"

static const double reals[] = {0.0, -0.0, 1.0, -2.5, 0.1, 7e4, 1e-8, INFINITY, -INFINITY, NAN};
static const int64_t ints[] = {0, 1, -1, 7, -8, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
static const double pairs[][2] = {{0, 0}, {1, -2}, {-0.5, 3}, {4, 0}, {0, -1}};

static uint32_t grid(DType t, Number *out)
{
    uint32_t n = 0;
    if (dtype_is_complex(t)) {
        for (; n < sizeof pairs / sizeof *pairs; n++) {
            out[n] = (Number){.dtype = t, .re = pairs[n][0], .im = pairs[n][1]};
        }
    } else if (dtype_is_float(t)) {
        for (; n < sizeof reals / sizeof *reals; n++) {
            out[n] = number_cast(number_real(DTYPE_F64, reals[n]), t);
        }
    } else if (t == DTYPE_BOOL) {
        for (; n < 2; n++) {
            out[n] = number_int(t, (int64_t)n);
        }
    } else {
        int64_t least = dtype_lowest(t), most = dtype_highest(t);
        for (uint32_t k = 0; k < sizeof ints / sizeof *ints; k++) {
            if (ints[k] >= least && ints[k] <= most) {
                out[n++] = number_int(t, ints[k]);
            }
        }
        if (dtype_computes(t) != t) {
            out[n++] = number_int(t, most);
            out[n++] = number_int(t, least);
        }
    }
    return n;
}

static void put(Text *t, Number v)
{
    if (dtype_is_exact(v.dtype)) {
        text_printf(t, " %lld", (long long)v.i);
        return;
    }
    /* a NaN has no sign of its own */
    text_printf(t, isnan(v.re) ? " nan" : " %.9g", v.re);
    if (dtype_is_complex(v.dtype)) {
        text_printf(t, isnan(v.im) ? ":nan" : ":%.9g", v.im);
    }
}

/* All pairs of the grid, and of those of three operands one in seven. */
static void op_put(Text *t, Op op, DType type, DType out)
{
    Number at[3][16];
    DType first = op == OP_SELECT || op == OP_WHERE ? DTYPE_BOOL : type;
    uint32_t n = (uint32_t)op_info(op)->arity, many = grid(type, at[1]),
             all = grid(first, at[0]);
    memcpy(at[2], at[1], sizeof at[1]);
    for (uint32_t k = 1; k < n; k++) {
        all *= many;
    }
    uint32_t heads = grid(first, at[0]);
    for (uint32_t k = 0; k<all; k += n> 2 ? 7 : 1) {
        Number arg[3] = {at[0][k % heads], at[1][k / heads % many],
                         at[2][k / heads / many % many]};
        put(t, op_value(op, out, arg));
    }
}

static void ops_put(Text *t)
{
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        for (int type = 1; type < DTYPE_COUNT && info->kind == OPKIND_MAP; type++) {
            DType in[3] = {(DType)type, (DType)type, (DType)type}, out;
            in[0] = op == OP_SELECT ? DTYPE_BOOL : in[0];
            uint32_t n = info->arity < 1 ? 1 : (uint32_t)info->arity;
            if (!op_result_type((Op)op, in, n, &out)) {
                text_printf(t, "%s %s: none\n", info->name, dtype_name((DType)type));
                continue;
            }
            text_printf(t, "%s %s -> %s:", info->name, dtype_name((DType)type),
                        dtype_name(out));
            op_put(t, (Op)op, (DType)type, out);
            text_put(t, "\n");
        }
    }
}

static void folds_put(Text *t)
{
    for (int op = 0; op < OP_COUNT; op++) {
        for (int type = 1; type < DTYPE_COUNT; type++) {
            DType in = (DType)type, out;
            OpKind kind = op_info((Op)op)->kind;
            if ((kind != OPKIND_REDUCE && op != OP_EINSUM) ||
                !op_result_type((Op)op, &in, 1, &out)) {
                continue;
            }
            Number x[16], sum = op_neutral((Op)op, in);
            uint32_t n = grid(in, x);
            text_printf(t, "%s %s from", op_info((Op)op)->name, dtype_name(in));
            put(t, sum);
            text_put(t, ":");
            for (uint32_t k = 0; k < n; k++) {
                sum = op_fold((Op)op, in, sum, x[k]);
                put(t, sum);
                put(t, op_fold((Op)op, in, x[(k + 3) % n], x[k]));
            }
            text_put(t, "\n");
        }
    }
}

static void casts_put(Text *t)
{
    for (int from = 0; from < DTYPE_COUNT; from++) {
        text_printf(t, "%s: %lld bytes, sums in %s, widens to", dtype_name((DType)from),
                    (long long)dtype_bytes((DType)from),
                    dtype_name(dtype_accumulator((DType)from)));
        for (int to = 1; to < DTYPE_COUNT; to++) {
            if (dtype_widens((DType)from, (DType)to)) {
                text_printf(t, " %s", dtype_name((DType)to));
            }
        }
        text_put(t, "\n");
        for (int to = 1; to < DTYPE_COUNT && from > 0; to++) {
            Number x[16];
            uint32_t n = grid((DType)from, x);
            text_printf(t, "cast %s to %s:", dtype_name((DType)from), dtype_name((DType)to));
            for (uint32_t k = 0; k < n; k++) {
                put(t, number_cast(x[k], (DType)to));
            }
            text_put(t, "\n");
        }
    }
}

static void test_values_are_what_they_were(void **state)
{
    Arena arena;
    arena_init(&arena, NULL);
    Text t;
    text_init(&t, &arena);
    ops_put(&t);
    folds_put(&t);
    casts_put(&t);
    assert_golden(&arena, VALUES, t.at);
    arena_release(&arena);
}

/* v with `digits` binary digits, nearest, ties to even. */
static double rounded(int64_t v, int digits)
{
    uint64_t m = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    int drop = 0;
    while (digits + drop < 64 && m >> (digits + drop) != 0) {
        drop++;
    }
    uint64_t kept = m >> drop, rest = m - (kept << drop);
    uint64_t half = drop > 0 ? (uint64_t)1 << (drop - 1) : 0;
    kept += drop > 0 && (rest > half || (rest == half && kept % 2 == 1)) ? 1 : 0;
    double x = ldexp((double)kept, drop);
    return v < 0 ? -x : x;
}

static void test_an_integer_is_rounded_once_to_every_type(void **state)
{
    static const struct {
        DType type;
        int digits;
        double most;
    } types[] = {{DTYPE_F64, 53, 1e300},
                 {DTYPE_F32, 24, 1e30},
                 {DTYPE_BF16, 8, 1e30},
                 {DTYPE_F16, 11, 65504.0}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int e = types[i].digits; e < 63; e++) {
            /* the middle of two neighbours with an even and with an odd lower one, and beside */
            int64_t unit = (int64_t)1 << (e - types[i].digits);
            for (int64_t odd = 0; odd < 2; odd++) {
                int64_t middle = ((int64_t)1 << (e - 1)) + odd * unit + unit / 2;
                int64_t near[] = {middle, middle - 1, middle + 1, middle - unit / 4,
                                  middle + unit / 4};
                for (size_t k = 0; k < 10; k++) {
                    int64_t v = k < 5 ? near[k] : -near[k - 5];
                    double want = rounded(v, types[i].digits);
                    want = fabs(want) > types[i].most ? copysign(INFINITY, want) : want;
                    double got = number_cast(number_int(DTYPE_I64, v), types[i].type).re;
                    if (got < want || got > want) {
                        fail_msg("%lld to %s is %.17g, not %.17g", (long long)v,
                                 dtype_name(types[i].type), got, want);
                    }
                }
            }
        }
    }
}

TESTS(TEST(test_values_are_what_they_were), TEST(test_an_integer_is_rounded_once_to_every_type))
