/* SPDX-License-Identifier: Apache-2.0 */
/* See fit.h. */
#include "driver/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/options.h"

const char *fit_types(DType from, DType to)
{
    return dtype_is_complex(from) && !dtype_is_complex(to)
               ? "a complex number does not become a real one: take re, im or abs"
               : NULL;
}

static bool in_range(int64_t v, DType to)
{
    return v >= dtype_lowest(to) && v <= dtype_highest(to);
}

const char *fit_number(Number v, DType to, Number *out)
{
    bool whole = dtype_is_exact(v.dtype);
    const char *why = fit_types(v.dtype, to);
    if (why == NULL && (dtype_is_exact(to))) {
        if (!whole && v.re != floor(v.re)) { /* also of a NaN */
            return isfinite(v.re) ? "it is no whole number" : dtype_info(to)->range;
        }
        if (!whole && !(v.re >= -0x1p63 && v.re < 0x1p63)) {
            return dtype_info(to)->range;
        }
        why = in_range(whole ? v.i : (int64_t)v.re, to) ? NULL : dtype_info(to)->range;
    }
    *out = number_cast(v, to);
    return why;
}

/* Only digits, with or without a sign? */
static bool is_integer(const char *text)
{
    text += text[0] == '-' || text[0] == '+' ? 1 : 0;
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* "2j", "1+2j", as Python writes complex numbers, or with an i, as tdsl-run does. */
static bool read_complex(const char *text, Number *out)
{
    char *end = NULL;
    double first = strtod(text, &end), second = 0;
    const char *rest = end;
    bool both = end != text && (*end == '+' || *end == '-');
    if (both) {
        second = strtod(rest, &end);
    }
    if (both && end == rest) {
        return false;
    }
    *out = number_real(DTYPE_C128, both ? first : 0);
    out->im = both ? second : first;
    return end != text && (end[0] == 'j' || end[0] == 'i') && end[1] == '\0';
}

bool fit_is_text(const char *text)
{
    char *end = NULL;
    Number v;
    (void)strtod(text, &end);
    return (end != text && *end == '\0') || read_complex(text, &v) ||
           strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

const char *fit_text(const char *text, DType to, Number *out)
{
    bool is_true = strcmp(text, "true") == 0;
    Number complex;
    if (is_true || strcmp(text, "false") == 0) {
        return fit_number(number_int(DTYPE_BOOL, is_true), to, out);
    }
    if (read_complex(text, &complex)) {
        return fit_number(complex, to, out);
    }
    Number v = {.dtype = DTYPE_I64};
    bool to_integer = dtype_is_exact(to);
    if (to_integer && is_integer(text)) {
        return parse_i64(text + (text[0] == '+' ? 1 : 0), &v.i) ? fit_number(v, to, out)
                                                                : dtype_info(to)->range;
    }
    char *end = NULL;
    errno = 0;
    v = number_real(DTYPE_F64, strtod(text, &end));
    bool rounded_away = errno == ERANGE;
    if (end == text || *end != '\0') {
        return "it is no number";
    }
    const char *why = fit_number(v, to, out);
    if (why != NULL || to_integer) {
        return why;
    }
    if (isinf(out->re) && (!isinf(v.re) || rounded_away)) {
        return "it is too large";
    }
    return out->re == 0 && (v.re != 0 || rounded_away) ? "it is too small" : NULL;
}
