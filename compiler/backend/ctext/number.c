/* SPDX-License-Identifier: Apache-2.0 */
/* Types and numbers as C. */
#include "backend/ctext/ctext.h"

const char *c_type(DType t)
{
    return dtype_info(t)->c;
}

const char *c_compute(DType t)
{
    return c_type(dtype_computes(t));
}

static const char *real_text(CWriter *e, double v, bool single)
{
    if (v != v || v - v != 0) { /* not finite */
        e->help->math = true;
        const char *name = v != v ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY";
        return single ? name
                      : str_format(e->arena, v < 0 ? "-(double)%s" : "(double)%s",
                                   name[0] == '-' ? name + 1 : name);
    }
    Text t;
    text_init(&t, e->arena);
    text_f64(&t, v);
    text_put(&t, single ? "f" : "");
    return t.at;
}

static const char *int_text(CWriter *e, DType t, int64_t v)
{
    if (dtype_computes(t) == DTYPE_I64) {
        if (v == INT64_MIN) {
            return "INT64_MIN";
        }
        return str_format(e->arena, v < 0 ? "-INT64_C(%llu)" : "INT64_C(%llu)",
                          (unsigned long long)(v < 0 ? -v : v));
    }
    if (t == DTYPE_I32 && v == INT32_MIN) {
        return "INT32_MIN";
    }
    return str_format(e->arena, t == DTYPE_BOOL ? "(uint8_t)%lld" : "%lld", (long long)v);
}

const char *number_text(CWriter *e, Number n)
{
    if (dtype_is_exact(n.dtype)) {
        return int_text(e, n.dtype, n.i);
    }
    bool single = dtype_part(n.dtype) != DTYPE_F64;
    if (dtype_is_float(n.dtype)) {
        return real_text(e, n.re, single);
    }
    const char *make = help_make(e->help, n.dtype);
    return str_format(e->arena, "%s(%s, %s)", make, real_text(e, n.re, single),
                      real_text(e, n.im, single));
}
