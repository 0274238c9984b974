/* SPDX-License-Identifier: Apache-2.0 */
/* The static inline functions of a generated file: the scalar ops as their row of the op table says, wrapping integer
 * arithmetic, conversions. One is defined when something first asks for its name, after those it needs itself. */
#include <string.h>

#include "backend/ctext/ctext.h"

typedef struct FixedHelper {
    const char *name;
    const char *needs; /* other fixed helpers with blanks between, or null */
    bool math;
    const char *text;
} FixedHelper;

static const FixedHelper fixed_helpers[] = {
    {"tdsl_min", NULL, false,
     "TDSL_HELPER int64_t tdsl_min(int64_t x, int64_t y)\n{\n    return x < y ? x : y;\n}\n"},
    {"tdsl_pad", NULL, false,
     "/* Rounded up to whole lines of 64 bytes. */\n"
     "TDSL_HELPER size_t tdsl_pad(int64_t bytes)\n{\n    return ((size_t)bytes + 63) & "
     "~(size_t)63;\n}\n"},
    {"tdsl_grow", NULL, false,
     "/* size * extent, or -1 when that is too large for one object. An extent of 0 counts as "
     "1: strides must be in\n"
     " * range too. */\n"
     "TDSL_HELPER int64_t tdsl_grow(int64_t size, int64_t extent)\n{\n"
     "    const int64_t most = (int64_t)(PTRDIFF_MAX / 2);\n"
     "    if (extent < 1) {\n        return size;\n    }\n"
     "    return size < 0 || size > most / extent ? -1 : size * extent;\n}\n"},
    {"tdsl_plus", NULL, false,
     "/* x + y, or SIZE_MAX when that is too large. */\n"
     "TDSL_HELPER size_t tdsl_plus(size_t x, size_t y)\n{\n    return x > SIZE_MAX - y ? "
     "SIZE_MAX : x + y;\n}\n"},
    {"tdsl_count", NULL, false,
     "/* count * extent, or UINT64_MAX when that is too large. */\n"
     "TDSL_HELPER uint64_t tdsl_count(uint64_t count, int64_t extent)\n{\n"
     "    if (extent <= 0) {\n        return 0;\n    }\n"
     "    return count > UINT64_MAX / (uint64_t)extent ? UINT64_MAX : count * "
     "(uint64_t)extent;\n}\n"},
    {"tdsl_tally", NULL, false,
     "/* x + y, or UINT64_MAX when that is too large. */\n"
     "TDSL_HELPER uint64_t tdsl_tally(uint64_t x, uint64_t y)\n{\n    return x > UINT64_MAX - "
     "y ? UINT64_MAX : x + y;\n}\n"},
    {"tdsl_make_c64", NULL, false,
     "TDSL_HELPER tdsl_c64 tdsl_make_c64(float re, float im)\n{\n"
     "    union {\n        float part[2];\n        tdsl_c64 whole;\n    } z;\n"
     "    z.part[0] = re;\n    z.part[1] = im;\n    return z.whole;\n}\n"},
    {"tdsl_make_c128", NULL, false,
     "TDSL_HELPER tdsl_c128 tdsl_make_c128(double re, double im)\n{\n"
     "    union {\n        double part[2];\n        tdsl_c128 whole;\n    } z;\n"
     "    z.part[0] = re;\n    z.part[1] = im;\n    return z.whole;\n}\n"},
    {"tdsl_i32_of_f64", NULL, true,
     "/* Truncated; beyond the range the nearest end; 0 for NaN. */\n"
     "TDSL_HELPER int32_t tdsl_i32_of_f64(double x)\n{\n"
     "    if (isnan(x)) {\n        return 0;\n    }\n"
     "    if (x <= -2147483648.0) {\n        return INT32_MIN;\n    }\n"
     "    return x >= 2147483647.0 ? INT32_MAX : (int32_t)x;\n}\n"},
    {"tdsl_i64_of_f64", NULL, true,
     "/* Truncated; beyond the range the nearest end; 0 for NaN. */\n"
     "TDSL_HELPER int64_t tdsl_i64_of_f64(double x)\n{\n"
     "    if (isnan(x)) {\n        return 0;\n    }\n"
     "    if (x <= -9223372036854775808.0) {\n        return INT64_MIN;\n    }\n"
     "    return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;\n}\n"},
    {"tdsl_bool_of_f64", NULL, false,
     "TDSL_HELPER uint8_t tdsl_bool_of_f64(double x)\n{\n    return (uint8_t)!(x <= 0.0 && x "
     ">= 0.0);\n}\n"},
    {"tdsl_bool_of_i64", NULL, false,
     "TDSL_HELPER uint8_t tdsl_bool_of_i64(int64_t x)\n{\n    return (uint8_t)(x != 0);\n}\n"},
    {"tdsl_bits_of_float", NULL, false,
     "TDSL_HELPER uint32_t tdsl_bits_of_float(float x)\n{\n"
     "    union {\n        float x;\n        uint32_t bits;\n    } u;\n    u.x = x;\n    "
     "return u.bits;\n}\n"},
    {"tdsl_float_of_bits", NULL, false,
     "TDSL_HELPER float tdsl_float_of_bits(uint32_t bits)\n{\n"
     "    union {\n        float x;\n        uint32_t bits;\n    } u;\n    u.bits = bits;\n    "
     "return u.x;\n}\n"},
    {"tdsl_float_of_bf16", "tdsl_float_of_bits", false,
     "TDSL_HELPER float tdsl_float_of_bf16(uint16_t x)\n{\n    return "
     "tdsl_float_of_bits((uint32_t)x << 16);\n}\n"},
    {"tdsl_bf16_of_float", "tdsl_bits_of_float", false,
     "/* To nearest, ties to even. */\n"
     "TDSL_HELPER uint16_t tdsl_bf16_of_float(float x)\n{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x);\n"
     "    if ((bits & 0x7fffffffu) > 0x7f800000u) {\n        return (uint16_t)((bits >> 16) | "
     "0x40u);\n    }\n"
     "    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n}\n"},
    {"tdsl_float_of_f16", "tdsl_float_of_bits", false,
     "TDSL_HELPER float tdsl_float_of_f16(uint16_t x)\n{\n"
     "    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;\n"
     "    const uint32_t exponent = (x >> 10) & 31u;\n"
     "    const uint32_t digits = x & 1023u;\n"
     "    if (exponent == 31u) {\n        return tdsl_float_of_bits(sign | 0x7f800000u | "
     "(digits << 13));\n    }\n"
     "    if (exponent == 0u) {\n        const float small = (float)digits * 0x1p-24f;\n"
     "        return sign != 0u ? -small : small;\n    }\n"
     "    return tdsl_float_of_bits(sign | ((exponent + 112u) << 23) | (digits << 13));\n}\n"},
    {"tdsl_f16_of_float", "tdsl_bits_of_float", false,
     "/* To nearest, ties to even. */\n"
     "TDSL_HELPER uint16_t tdsl_f16_of_float(float x)\n{\n"
     "    const uint32_t bits = tdsl_bits_of_float(x);\n"
     "    const uint32_t sign = (bits >> 16) & 0x8000u;\n"
     "    const uint32_t size = bits & 0x7fffffffu;\n"
     "    if (size > 0x7f800000u) {\n        return (uint16_t)(sign | 0x7e00u);\n    }\n"
     "    if (size >= 0x477ff000u) {\n        return (uint16_t)(sign | 0x7c00u);\n    }\n"
     "    if (size >= 0x38800000u) {\n"
     "        return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> "
     "13));\n    }\n"
     "    if (size < 0x33000000u) {\n        return (uint16_t)sign;\n    }\n"
     "    const uint32_t digits = (size & 0x7fffffu) | 0x800000u;\n"
     "    const uint32_t drop = 126u - (size >> 23);\n"
     "    const uint32_t kept = digits >> drop;\n"
     "    const uint32_t lost = digits & (((uint32_t)1 << drop) - 1u);\n"
     "    const uint32_t half = (uint32_t)1 << (drop - 1u);\n"
     "    const uint32_t up = lost > half || (lost == half && (kept & 1u) != 0u) ? 1u : 0u;\n"
     "    return (uint16_t)(sign | (kept + up));\n}\n"},
    {"tdsl_round_bf16", "tdsl_bf16_of_float tdsl_float_of_bf16", false,
     "TDSL_HELPER float tdsl_round_bf16(float x)\n{\n    return "
     "tdsl_float_of_bf16(tdsl_bf16_of_float(x));\n}\n"},
    {"tdsl_cut_to_float", "tdsl_bits_of_float tdsl_float_of_bits", false,
     "/* Cut to f32, with an odd last digit when anything was cut off: rounded from there to "
     "16 "
     "bits it\n * is x rounded. */\n"
     "TDSL_HELPER float tdsl_cut_to_float(double x)\n{\n"
     "    const float near = (float)x;\n    const double back = (double)near;\n"
     "    uint32_t bits = tdsl_bits_of_float(near);\n"
     "    if ((bits & 1u) == 0u && (back < x || back > x)) {\n"
     "        bits = (back < x) == (x > 0.0) ? bits + 1u : bits - 1u;\n    }\n"
     "    return tdsl_float_of_bits(bits);\n}\n"},
    {"tdsl_double_near", NULL, false,
     "/* Rounds to 16 bits as x does: digits that do not fit only say whether there are any. "
     "*/\n"
     "TDSL_HELPER double tdsl_double_near(int64_t x)\n{\n"
     "    const int64_t exact = INT64_C(1) << 53, low = x % 2048;\n"
     "    if (x >= -exact && x <= exact) {\n        return (double)x;\n    }\n"
     "    return (double)(x - low + (low > 0 ? 1024 : low < 0 ? -1024 : 0));\n}\n"},
    {"tdsl_round_f16", "tdsl_f16_of_float tdsl_float_of_f16", false,
     "TDSL_HELPER float tdsl_round_f16(float x)\n{\n    return "
     "tdsl_float_of_f16(tdsl_f16_of_float(x));\n}\n"},
};

void helpers_init(Helpers *h, Arena *arena)
{
    *h = (Helpers){.arena = arena};
    names_init(&h->names, arena);
    names_init(&h->macros, arena);
    text_init(&h->text, arena);
}

/* True the first time. */
static bool helper_new(Helpers *h, const char *name)
{
    const char *key = name + strlen("tdsl_"); /* the scope of names refuses our own prefix */
    char *tagged = str_format(h->arena, "h_%s", key);
    return names_claim(&h->names, tagged);
}

static void helper_put(Helpers *h, const char *text)
{
    text_put(&h->text, "\n");
    text_put(&h->text, text);
}

const char *help_fixed(Helpers *h, const char *name)
{
    for (size_t k = 0; k < sizeof fixed_helpers / sizeof *fixed_helpers; k++) {
        const FixedHelper *f = &fixed_helpers[k];
        if (strcmp(f->name, name) != 0) {
            continue;
        }
        if (helper_new(h, name)) {
            for (const char *n = f->needs; n != NULL; n = strchr(n, ' ')) {
                n += *n == ' ' ? 1 : 0;
                (void)help_fixed(h, str_format(h->arena, "%.*s", (int)strcspn(n, " "), n));
            }
            h->math |= f->math;
            helper_put(h, f->text);
        }
        return f->name;
    }
    UNREACHABLE();
}

/* ---- ops ---- */

static bool is_half(DType t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

/* The template of the op table with its four signs replaced. */
static void expand(Text *out, const char *c, DType in, DType result)
{
    bool complex = dtype_is_complex(in);
    bool single = in == DTYPE_F32 || in == DTYPE_C64 || is_half(in);
    for (const char *p = c; *p != '\0'; p++) {
        bool word = p > c && ((p[-1] >= 'a' && p[-1] <= 'z') || (p[-1] >= '0' && p[-1] <= '9'));
        if (*p == '@') {
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
    return t == DTYPE_I32 ? "uint32_t" : "uint64_t";
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
        text_put(out, "x");
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
        text_printf(out, "x %s y || isnan(x) ? x : y", op == OP_MIN ? "<" : ">");
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
    const char *name = t == DTYPE_C64 ? "tdsl_make_c64" : "tdsl_make_c128";
    DType part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    h->complex = true;
    switch ((int)op) {
    case OP_ABS:
        text_printf(out, "cabs%s(x)", s);
        return true;
    case OP_MUL: /* without the recovery of infinities that C's own product has */
        (void)help_fixed(h, name);
        text_printf(
            out,
            "%s(creal%s(x) * creal%s(y) - cimag%s(x) * cimag%s(y),\n"
            "                         creal%s(x) * cimag%s(y) + cimag%s(x) * creal%s(y))",
            name, s, s, s, s, s, s, s, s);
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
        text_printf(out, "%s(x, %s) != 0 ? ", help_op(h, OP_EQ, t, DTYPE_BOOL),
                    number_text(&none, number_int(t, 0)));
        text_printf(out, "%s : %s(x, y)", number_text(&none, number_int(t, 0)),
                    help_op(h, OP_MUL, t, t));
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
        expand(out, info->c, in, result);
    }
}

const char *help_op(Helpers *h, Op op, DType in, DType out)
{
    const OpInfo *info = op_info(op);
    const char *name = str_format(h->arena, "tdsl_%s_%s", info->name, dtype_name(in));
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
    if (is_half(out)) {
        const char *round =
            help_fixed(h, out == DTYPE_F16 ? "tdsl_round_f16" : "tdsl_round_bf16");
        text_printf(&t, ")\n{\n    return %s(%s);\n}\n", round, body.at);
    } else if (out == DTYPE_BOOL) {
        text_printf(&t, ")\n{\n    return (uint8_t)(%s);\n}\n", body.at);
    } else {
        text_printf(&t, ")\n{\n    return %s;\n}\n", body.at);
    }
    helper_put(h, t.at);
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
        const char *make = help_fixed(h, to == DTYPE_C64 ? "tdsl_make_c64" : "tdsl_make_c128");
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
    const char *round = help_fixed(h, to == DTYPE_F16 ? "tdsl_round_f16" : "tdsl_round_bf16");
    const char *single = "(float)x";
    if (from == DTYPE_F64 || (to == DTYPE_BF16 && dtype_is_int(from))) {
        const char *cut = help_fixed(h, "tdsl_cut_to_float");
        const char *wide = from == DTYPE_F64   ? "x"
                           : from == DTYPE_I64 ? "tdsl_double_near(x)"
                                               : "(double)x";
        if (from == DTYPE_I64) {
            (void)help_fixed(h, "tdsl_double_near");
        }
        single = str_format(h->arena, "%s(%s)", cut, wide);
    }
    return narrow_helper(h, name, "float", c_compute(from),
                         str_format(h->arena, "%s(%s)", round, single));
}

const char *help_cast(Helpers *h, DType from, DType to)
{
    const char *name = str_format(h->arena, "tdsl_%s_of_%s", dtype_name(to), dtype_name(from));
    if (dtype_is_complex(from)) {
        return cast_from_complex(h, from, to);
    }
    if (dtype_is_complex(to)) {
        bool single = to == DTYPE_C64;
        const char *make = help_fixed(h, single ? "tdsl_make_c64" : "tdsl_make_c128");
        return narrow_helper(
            h, name, c_type(to), c_compute(from),
            str_format(h->arena, single ? "%s((float)x, 0.0f)" : "%s((double)x, 0.0)", make));
    }
    if (is_half(to)) {
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
        const char *f = help_fixed(h, to == DTYPE_I32 ? "tdsl_i32_of_f64" : "tdsl_i64_of_f64");
        return from == DTYPE_F64 ? f
                                 : narrow_helper(h, name, c_type(to), "float",
                                                 str_format(h->arena, "%s((double)x)", f));
    }
    if (to == DTYPE_I32 && from == DTYPE_I64) {
        return narrow_helper(h, name, "int32_t", "int64_t", "(int32_t)(uint32_t)x");
    }
    return NULL;
}
