/* SPDX-License-Identifier: Apache-2.0 */
/* What tdsl-run says of a result. Checksums of integral results are exact (GMP): they are compared as digits. */
#include <gmp.h>
#include <math.h>

#include "driver/run/run.h"

static void put_real(Text *out, int digits, double v)
{
    text_printf(out, "%.*g", digits, unsigned_nan(v));
}

/* With its sign, behind a real part. */
static void put_imaginary(Text *out, int digits, double v)
{
    text_printf(out, "%+.*gi", digits, unsigned_nan(v));
}

static void put_number(Text *out, Number v)
{
    if (v.dtype == DTYPE_BOOL) {
        text_put(out, v.i != 0 ? "true" : "false");
    } else if (dtype_is_int(v.dtype)) {
        text_i64(out, v.i);
    } else if (dtype_is_complex(v.dtype)) {
        put_real(out, 10, v.re);
        put_imaginary(out, 10, v.im);
    } else {
        put_real(out, 10, v.re);
    }
}

void run_print_element(const char *name, const Tensor *t, const int64_t *at, Text *out)
{
    int64_t element = 0;
    text_put(out, name);
    for (uint32_t d = 0; d < t->rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "[" : ",", (long long)at[d]);
        element = element * t->extent[d] + at[d];
    }
    text_put(out, t->rank > 0 ? "] is " : " is ");
    Number v = tensor_get(t, element);
    if (dtype_is_complex(v.dtype)) { /* all digits: places may differ in the last */
        text_put(out, "complex(");
        text_f64(out, v.re);
        text_put(out, ", ");
        text_f64(out, v.im);
        text_char(out, ')');
    } else if (dtype_is_float(v.dtype)) {
        text_f64(out, v.re);
    } else {
        put_number(out, v);
    }
}

static bool is_integral(const Tensor *t)
{
    if (dtype_is_exact(t->dtype)) {
        return true;
    }
    for (int64_t k = 0; k < t->count; k++) {
        Number v = tensor_get(t, k);
        if (!isfinite(v.re) || v.re != floor(v.re) ||
            (dtype_is_complex(t->dtype) && (!isfinite(v.im) || v.im != floor(v.im)))) {
            return false;
        }
    }
    return true;
}

/* sum of part(k) * weight(k); part 0: integer or real, 1: imaginary */
static void exact_sum(const Tensor *t, bool weighted, int part, Text *out)
{
    mpz_t sum, x;
    mpz_init(sum);
    mpz_init(x);
    for (int64_t k = 0; k < t->count; k++) {
        Number v = tensor_get(t, k);
        if (dtype_is_exact(t->dtype)) {
            mpz_set_si(x, (long)v.i);
        } else {
            mpz_set_d(x, part == 0 ? v.re : v.im);
        }
        mpz_mul_ui(x, x, weighted ? (unsigned long)(k % 97) + 1 : 1);
        mpz_add(sum, sum, x);
    }
    char *digits = arena_alloc(out->arena, mpz_sizeinbase(sum, 10) + 2);
    text_put(out, mpz_get_str(digits, 10, sum));
    mpz_clear(sum);
    mpz_clear(x);
}

static double real_sum(const Tensor *t, bool weighted, int part)
{
    long double sum = 0;
    for (int64_t k = 0; k < t->count; k++) {
        Number v = tensor_get(t, k);
        long double x = dtype_is_exact(v.dtype) ? (long double)v.i : part == 0 ? v.re : v.im;
        sum += x * (weighted ? (long double)(k % 97 + 1) : 1);
    }
    return (double)sum;
}

static void put_sum(const Tensor *t, bool weighted, Text *out)
{
    bool complex = dtype_is_complex(t->dtype);
    bool exact = is_integral(t);
    for (int part = 0; part < (complex ? 2 : 1); part++) {
        text_put(out, part == 0 ? "" : ",");
        if (exact) {
            exact_sum(t, weighted, part, out);
        } else {
            put_real(out, 17, real_sum(t, weighted, part));
        }
    }
}

void run_print_checksum(const char *name, const Tensor *t, Text *out)
{
    text_printf(out, "%s sum=", name);
    put_sum(t, false, out);
    text_put(out, " wsum=");
    put_sum(t, true, out);
    text_char(out, '\n');
}

void run_print_summary(const char *name, const Tensor *t, Text *out)
{
    text_printf(out, "%s : %s[", name, dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)t->extent[d]);
    }
    text_put(out, "]");
    if (t->count == 0) {
        text_put(out, "  empty\n");
        return;
    }
    if (t->rank == 0) {
        text_put(out, " = ");
        if (t->dtype == DTYPE_F64) {
            put_real(out, 15, tensor_get(t, 0).re);
        } else {
            put_number(out, tensor_get(t, 0));
        }
        text_char(out, '\n');
        return;
    }
    if (!dtype_is_complex(t->dtype)) {
        Number least = tensor_get(t, 0), most = least;
        for (int64_t k = 1; k < t->count; k++) {
            Number v = tensor_get(t, k);
            bool whole = dtype_is_exact(t->dtype);
            if (whole ? v.i < least.i : v.re < least.re || isnan(v.re)) {
                least = v;
            }
            if (whole ? v.i > most.i : v.re > most.re || isnan(v.re)) {
                most = v;
            }
        }
        text_put(out, "  min ");
        put_number(out, least);
        text_put(out, "  max ");
        put_number(out, most);
    }
    text_put(out, "  sum ");
    put_real(out, 10, real_sum(t, false, 0));
    if (dtype_is_complex(t->dtype)) {
        put_imaginary(out, 10, real_sum(t, false, 1));
    }
    text_put(out, "\n  ");
    for (int64_t k = 0; k < t->count && k < 8; k++) {
        text_put(out, k == 0 ? "" : "  ");
        put_number(out, tensor_get(t, k));
    }
    text_put(out, t->count > 8 ? "  ...\n" : "\n");
}
