/* SPDX-License-Identifier: Apache-2.0 */
/* The static inline functions of a generated file: the scalar ops as their row of the op table says, wrapping integer
 * arithmetic, conversions. One is defined when something first asks for its name, after those it needs itself. */
#include <stdio.h>
#include <string.h>

#include "backend/ctext/ctext.h"

/* ---- ops ---- */

/* The function of our own that the name of a libm function at `p` stands for, or null. */
static const char *own_function(Helpers *h, const char *p, bool single)
{
    size_t n = strcspn(p, "@");
    const char *name =
        str_format(h->arena, "tdsl_%.*s_%s", (int)(n < 8 ? n : 8), p, single ? "f32" : "f64");
    return p[n] == '@' && help_is_fixed(name) ? help_fixed(h, name) : NULL;
}

/* The template of the op table with its four signs replaced, and libm's functions by our own where there are. */
static void expand(Helpers *h, Text *out, const char *c, DType in, DType result)
{
    bool complex = dtype_is_complex(in);
    bool single = in == DTYPE_F32 || in == DTYPE_C64 || dtype_is_half(in);
    for (const char *p = c; *p != '\0'; p++) {
        bool word = p > c && ((p[-1] >= 'a' && p[-1] <= 'z') || (p[-1] >= '0' && p[-1] <= '9'));
        const char *own = complex || word ? NULL : own_function(h, p, single);
        if (own != NULL) {
            text_put(out, own);
            p += strcspn(p, "@");
        } else if (*p == '@') {
            text_put(out, single ? "f" : "");
        } else if (*p == '^') {
            text_put(out, complex ? "c" : "");
        } else if (*p == 'T' && !word) {
            text_put(out, c_compute(result));
        } else {
            text_char(out, *p);
        }
    }
}

static const char *unsigned_of(DType t)
{
    return dtype_computes(t) == DTYPE_I32 ? "uint32_t" : "uint64_t";
}

/* Integer ops for which C's operators are not defined everywhere. */
static bool int_body(Text *out, Op op, DType t)
{
    const char *u = unsigned_of(t);
    const char *s = c_type(t);
    switch ((int)op) {
    case OP_NEG:
        text_printf(out, "(%s)(0u - (%s)x)", s, u);
        return true;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
        text_printf(out, "(%s)((%s)x %s (%s)y)", s, u,
                    op == OP_ADD   ? "+"
                    : op == OP_SUB ? "-"
                                   : "*",
                    u);
        return true;
    case OP_DIV:
        text_printf(out, "y == 0 ? 0 : y == -1 ? (%s)(0u - (%s)x) : x / y", s, u);
        return true;
    case OP_ABS:
        text_printf(out, "x < 0 ? (%s)(0u - (%s)x) : x", s, u);
        return true;
    case OP_MIN:
        text_put(out, "x < y ? x : y");
        return true;
    case OP_MAX:
        text_put(out, "x > y ? x : y");
        return true;
    case OP_CONJ:
    case OP_RE:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_FINITE:
        text_put(out, "x");
        return true;
    case OP_SIGN:
        text_put(out, "(x > 0) - (x < 0)");
        return true;
    case OP_MOD: /* of floor; compilers make one division of both */
        text_put(
            out,
            "y == 0 || y == -1 ? 0 : x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y");
        return true;
    case OP_IM:
        text_put(out, "((void)x, 0)");
        return true;
    default: /* as the table says */
        return false;
    }
}

static bool float_body(Helpers *h, Text *out, Op op, DType t)
{
    switch ((int)op) {
    case OP_ABS:
        h->math = true;
        text_put(out, t == DTYPE_F64 ? "fabs(x)" : "fabsf(x)");
        return true;
    case OP_MIN:
    case OP_MAX:
        h->math = true;
        /* In this order nothing jumps on what is less, which nobody can predict. */
        text_printf(out, "isnan(x) ? x : x %s y ? x : y", op == OP_MIN ? "<" : ">");
        return true;
    case OP_EQ: /* without ==, which compilers warn of; false for NaN */
        text_put(out, "x <= y && x >= y");
        return true;
    case OP_NE:
        text_put(out, "!(x <= y && x >= y)");
        return true;
    case OP_CONJ:
    case OP_RE:
        text_put(out, "x");
        return true;
    case OP_IM:
        text_put(out, t == DTYPE_F64 ? "((void)x, 0.0)" : "((void)x, 0.0f)");
        return true;
    default: /* as the table says */
        return false;
    }
}

static bool complex_body(Helpers *h, Text *out, Op op, DType t)
{
    const char *s = t == DTYPE_C64 ? "f" : "";
    DType part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    h->complex = true;
    switch ((int)op) {
    case OP_ABS:
        text_printf(out, "cabs%s(x)", s);
        return true;
    case OP_MUL: /* without the recovery of infinities that C's own product has */
        text_printf(
            out,
            "%s(creal%s(x) * creal%s(y) - cimag%s(x) * cimag%s(y),\n"
            "                         creal%s(x) * cimag%s(y) + cimag%s(x) * creal%s(y))",
            help_make(h, t), s, s, s, s, s, s, s, s);
        return true;
    case OP_EQ:
    case OP_NE: {
        const char *eq = help_op(h, OP_EQ, part, DTYPE_BOOL);
        text_printf(out,
                    "%s(%s(creal%s(x), creal%s(y)) != 0 && %s(cimag%s(x), cimag%s(y)) != 0)",
                    op == OP_NE ? "!" : "", eq, s, s, eq, s, s);
        return true;
    }
    default: /* as the table says */
        return false;
    }
}

static void op_body(Helpers *h, Text *out, Op op, DType in, DType result)
{
    const OpInfo *info = op_info(op);
    bool real = dtype_is_float(in), whole = dtype_is_int(in);
    if (op == OP_SCALE) {
        DType t = in;
        CWriter none = {.arena = h->arena, .help = h};
        const char *zero = number_text(&none, number_int(t, 0));
        const char *equal = help_op(h, OP_EQ, t, DTYPE_BOOL), *times = help_op(h, OP_MUL, t, t);
        text_printf(out, "%s(x, %s) != 0 ? %s : %s(x, y)", equal, zero, zero, times);
        return;
    }
    if ((whole && int_body(out, op, in)) || (real && float_body(h, out, op, in)) ||
        (dtype_is_complex(in) && complex_body(h, out, op, in))) {
        return;
    }
    h->math |= real && strchr(info->c, '@') != NULL;
    if (in == DTYPE_BOOL && (op == OP_EQ || op == OP_NE)) {
        text_printf(out, "(x != 0) %s (y != 0)", op == OP_EQ ? "==" : "!=");
    } else if (op == OP_SELECT) {
        text_put(out, "x != 0 ? y : z");
    } else {
        expand(h, out, info->c, in, result);
    }
}

const char *help_part(Helpers *h, DType complex, bool imaginary)
{
    h->complex = true;
    return complex == DTYPE_C64 ? (imaginary ? "cimagf" : "crealf")
                                : (imaginary ? "cimag" : "creal");
}

const char *help_make(Helpers *h, DType complex)
{
    return help_fixed(h, complex == DTYPE_C64 ? "tdsl_make_c64" : "tdsl_make_c128");
}

const char *help_op(Helpers *h, Op op, DType in, DType out)
{
    const OpInfo *info = op_info(op);
    const char *name = str_format(h->arena, "tdsl_%s_%s", info->name, dtype_name(in));
    if (help_is_fixed(name)) {
        return help_fixed(h, name);
    }
    if (!helper_new(h, name)) {
        return name;
    }
    Text body, t;
    text_init(&body, h->arena);
    op_body(h, &body, op, in, out);
    text_init(&t, h->arena);
    text_printf(&t, "TDSL_HELPER %s %s(", c_compute(out), name);
    for (int k = 0; k < info->arity; k++) {
        bool condition = op == OP_SELECT && k == 0;
        text_printf(&t, k == 0 ? "%s %c" : ", %s %c", c_compute(condition ? DTYPE_BOOL : in),
                    "xyz"[k]);
    }
    if (dtype_is_half(out)) {
        const char *round = help_rounds(h, out);
        text_printf(&t, ")\n{\n    return %s(%s);\n}\n", round, body.at);
    } else if (out == DTYPE_BOOL) {
        text_printf(&t, ")\n{\n    return (uint8_t)(%s);\n}\n", body.at);
    } else {
        text_printf(&t, ")\n{\n    return %s;\n}\n", body.at);
    }
    helper_put(h, t.at);
    return name;
}

static const char *near_name(char (*out)[32], Op op, DType in)
{
    DType t = dtype_is_half(in) ? DTYPE_F32 : in;
    (void)snprintf(*out, sizeof *out, "tdsl_%s_near_%s", op_info(op)->name, dtype_name(t));
    return *out;
}

bool help_has_near(Op op, DType in)
{
    char name[32];
    return help_is_fixed(near_name(&name, op, in));
}

const char *help_near(Helpers *h, Op op, DType in)
{
    char name[32];
    return help_has_near(op, in) ? help_fixed(h, near_name(&name, op, in)) : NULL;
}

const char *help_gather(Helpers *h, DType t, uint32_t n)
{
    const char *name = str_format(h->arena, "tdsl_gather%u_%s", n, dtype_name(t));
    if (!helper_new(h, name)) {
        return name;
    }
    Text head, test, place;
    text_init(&head, h->arena);
    text_init(&test, h->arena);
    text_init(&place, h->arena);
    for (uint32_t k = 0; k < n; k++) {
        text_printf(&head, ", int64_t at%u, int64_t n%u, int64_t step%u", k, k, k);
        text_printf(&test, "%s(uint64_t)at%u < (uint64_t)n%u", k == 0 ? "" : " && ", k, k);
        text_printf(&place, "%sat%u * step%u", k == 0 ? "" : " + ", k, k);
    }
    helper_put(h,
               str_format(h->arena,
                          "TDSL_HELPER %s %s(const %s *x%s)\n{\n    return %s%sx[%s]%s;\n}\n",
                          c_type(t), name, c_type(t), head.at, test.at, n == 0 ? "" : " ? ",
                          n == 0 ? "0" : place.at, n == 0 ? "" : " : 0"));
    return name;
}

/* ---- conversions ---- */

static const char *narrow_helper(Helpers *h, const char *name, const char *type,
                                 const char *from, const char *body)
{
    if (helper_new(h, name)) {
        helper_put(h, str_format(h->arena, "TDSL_HELPER %s %s(%s x)\n{\n    return %s;\n}\n",
                                 type, name, from, body));
    }
    return name;
}

/* The real part first, then as a real number. */
static const char *cast_from_complex(Helpers *h, DType from, DType to)
{
    const char *s = from == DTYPE_C64 ? "f" : "";
    const char *name = str_format(h->arena, "tdsl_%s_of_%s", dtype_name(to), dtype_name(from));
    h->complex = true;
    if (dtype_is_complex(to)) {
        const char *make = help_make(h, to);
        const char *part = to == DTYPE_C64 ? "float" : "double";
        return narrow_helper(
            h, name, c_type(to), c_type(from),
            str_format(h->arena, "%s((%s)creal%s(x), (%s)cimag%s(x))", make, part, s, part, s));
    }
    if (to == DTYPE_BOOL) {
        const char *f = help_fixed(h, "tdsl_bool_of_f64");
        return narrow_helper(
            h, name, "uint8_t", c_type(from),
            str_format(h->arena, "(uint8_t)(%s((double)creal%s(x)) | %s((double)cimag%s(x)))",
                       f, s, f, s));
    }
    DType part = from == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    const char *f = help_cast(h, part, to);
    const char *body = f != NULL ? str_format(h->arena, "%s(creal%s(x))", f, s)
                                 : str_format(h->arena, "(%s)creal%s(x)", c_compute(to), s);
    return narrow_helper(h, name, c_compute(to), c_type(from), body);
}

/* Rounded once: f32 stands between only where it keeps all that decides. No integer that f32
 * does not hold is below what f16 has. */
static const char *cast_to_half(Helpers *h, DType from, DType to, const char *name)
{
    const char *round = help_rounds(h, to);
    const char *single = "(float)x";
    const DTypeInfo *in = dtype_info(from);
    const double held = 0x1p24; /* up to here f32 holds all integers */
    bool beyond = dtype_is_int(from) && in->fraction > 24 && dtype_most(to) > held;
    if (from == DTYPE_F64 || beyond) {
        const char *cut = help_fixed(h, "tdsl_cut_to_float");
        bool whole = dtype_computes(from) == DTYPE_I64;
        const char *wide = from == DTYPE_F64 ? "x"
                           : whole           ? "tdsl_double_near(x)"
                                             : "(double)x";
        if (whole) {
            (void)help_fixed(h, "tdsl_double_near");
        }
        single = str_format(h->arena, "%s(%s)", cut, wide);
    }
    return narrow_helper(h, name, "float", c_compute(from),
                         str_format(h->arena, "%s(%s)", round, single));
}

/* Truncated; beyond the range the nearest end; 0 for NaN. */
static const char *saturating_helper(Helpers *h, const char *name, DType from, DType to)
{
    const char *wide = help_cast(h, from, dtype_computes(to));
    const char *t = c_compute(to);
    if (helper_new(h, name)) {
        helper_put(h,
                   str_format(h->arena,
                              "TDSL_HELPER %s %s(%s x)\n{\n    const %s i = %s(x);\n    return "
                              "i < %lld ? %lld : i > %lld ? %lld : i;\n}\n",
                              t, name, c_compute(from), t, wide, (long long)dtype_lowest(to),
                              (long long)dtype_lowest(to), (long long)dtype_highest(to),
                              (long long)dtype_highest(to)));
    }
    return name;
}

const char *help_cast(Helpers *h, DType from, DType to)
{
    const char *name = str_format(h->arena, "tdsl_%s_of_%s", dtype_name(to), dtype_name(from));
    if (dtype_is_complex(from)) {
        return cast_from_complex(h, from, to);
    }
    if (dtype_is_complex(to)) {
        bool single = to == DTYPE_C64;
        const char *make = help_make(h, to);
        return narrow_helper(
            h, name, c_type(to), c_compute(from),
            str_format(h->arena, single ? "%s((float)x, 0.0f)" : "%s((double)x, 0.0)", make));
    }
    if (dtype_is_half(to)) {
        return cast_to_half(h, from, to, name);
    }
    if (to == DTYPE_BOOL) {
        bool real = dtype_is_float(from);
        const char *f = help_fixed(h, real ? "tdsl_bool_of_f64" : "tdsl_bool_of_i64");
        return narrow_helper(
            h, str_format(h->arena, "%s_cast", name), "uint8_t", c_compute(from),
            str_format(h->arena, real ? "%s((double)x)" : "%s((int64_t)x)", f));
    }
    if (dtype_is_int(to) && dtype_is_float(from)) {
        if (dtype_computes(to) != to) {
            return saturating_helper(h, name, from, to);
        }
        const char *f = help_fixed(h, to == DTYPE_I32 ? "tdsl_i32_of_f64" : "tdsl_i64_of_f64");
        return from == DTYPE_F64 ? f
                                 : narrow_helper(h, name, c_type(to), "float",
                                                 str_format(h->arena, "%s((double)x)", f));
    }
    if (dtype_is_int(to) && dtype_is_int(from) && !dtype_widens(from, to)) { /* the low bits */
        bool is_signed = dtype_info(to)->is == DTYPE_IS_INT;
        return narrow_helper(h, name, c_compute(to), c_compute(from),
                             is_signed
                                 ? str_format(h->arena, "(%s)(u%s)x", c_type(to), c_type(to))
                                 : str_format(h->arena, "(%s)x", c_type(to)));
    }
    return NULL;
}
