/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of floats that are storage: f16 and bf16 as help_fixed.c has them, all others made from the row of their type. Like those
 * they have no branches, so that loops over them become vectors. */
#include "backend/ctext/ctext.h"

/* The parts of a format, as f32 and as its own patterns see them. */
typedef struct Format {
    const char *name, *type;
    unsigned sign, size; /* the sign's bit, and all below it */
    unsigned least;      /* the least pattern that is no subnormal */
    unsigned infinite;   /* the pattern of infinity; of a type without any, that of NaN */
    unsigned nan, most;  /* a NaN, the largest finite number */
    unsigned rebias,
        cut;  /* what is between the exponents, in place in f32; bits of f32 that are cut */
    int unit; /* exponent of the least subnormal */
    DTypeBeyond beyond;
} Format;

static Format format_of(DType t)
{
    const DTypeInfo *x = dtype_info(t);
    unsigned sign = 1u << (x->exponent + x->fraction), least = 1u << x->fraction;
    unsigned top = sign - least;
    bool finite = x->beyond == BEYOND_FINITE;
    return (Format){.name = x->name,
                    .type = x->c,
                    .sign = sign,
                    .size = sign - 1,
                    .least = least,
                    .infinite = finite ? sign - 1 : top,
                    .nan = finite ? sign - 1 : top | least >> 1,
                    .most = finite ? sign - 2 : top - 1,
                    .rebias = (128u - (1u << (x->exponent - 1))) << 23,
                    .cut = 23u - (unsigned)x->fraction,
                    .unit = dtype_unit(t),
                    .beyond = x->beyond};
}

static unsigned shift_of(const Format *f)
{
    unsigned shift = 31;
    for (unsigned bit = f->sign; bit > 1; bit >>= 1) {
        shift--;
    }
    return shift;
}

static void loads_put(Helpers *h, const Format *f, const char *name)
{
    Text large;
    text_init(&large, h->arena);
    text_printf(&large, "(size << %u) + 0x%xu", f->cut, f->rebias);
    if (f->beyond == BEYOND_FINITE) {
        text_printf(&large, " + (size == 0x%xu ? 0x%xu : 0u)", f->infinite,
                    0x7fc00000u - ((f->infinite << f->cut) + f->rebias));
    } else {
        text_printf(&large, " + (size >= 0x%xu ? 0x%xu : 0u)", f->infinite,
                    0x7f800000u - ((f->infinite << f->cut) + f->rebias));
    }
    helper_put(
        h,
        str_format(
            h->arena,
            "TDSL_HELPER float %s(%s x)\n{\n"
            "    const uint32_t sign = (uint32_t)(x & 0x%xu) << %u, size = x & 0x%xu;\n"
            "    const uint32_t small = tdsl_bits_of_float((float)(int32_t)size * 0x1p%df);\n"
            "    const uint32_t large = %s;\n"
            "    return tdsl_float_of_bits(sign | (size < 0x%xu ? small : large));\n}\n",
            name, f->type, f->sign, shift_of(f), f->size, f->unit, large.at, f->least));
}

/* To nearest, ties to even: below the least normal number by adding one whose last digit is the least subnormal. */
static void stores_put(Helpers *h, const Format *f, const char *name)
{
    unsigned normal = f->rebias + (1u << 23), magic = (unsigned)(127 + f->unit + 23) << 23;
    const char *last = f->beyond == BEYOND_SATURATES
                           ? str_format(h->arena, "size == 0x7f800000u ? 0x%xu : ", f->infinite)
                           : "";
    unsigned most = f->beyond == BEYOND_INFINITE ? f->infinite : f->most;
    helper_put(
        h, str_format(
               h->arena,
               "TDSL_HELPER %s %s(float x)\n{\n"
               "    const uint32_t bits = tdsl_bits_of_float(x), size = bits & 0x7fffffffu;\n"
               "    const uint32_t near = (size - 0x%xu + 0x%xu + ((size >> %u) & 1u)) >> %u;\n"
               "    const uint32_t tiny = size < 0x%xu ? size : 0u;\n"
               "    const uint32_t small = tdsl_bits_of_float(tdsl_float_of_bits(tiny) + "
               "0x1p%df) - 0x%xu;\n"
               "    const uint32_t large = near < 0x%xu ? near : 0x%xu;\n"
               "    const uint32_t value = size > 0x7f800000u ? 0x%xu : %ssize >= 0x%xu ? "
               "large : small;\n"
               "    return (%s)(((bits >> %u) & 0x%xu) | value);\n}\n",
               f->type, name, f->rebias, (1u << (f->cut - 1)) - 1, f->cut, f->cut, normal,
               f->unit + 23, magic, most, most, f->nan, last, normal, f->type, shift_of(f),
               f->sign));
}

/* The name of a conversion, which `put` prints where no fixed helper has it. */
static const char *converts(Helpers *h, DType t, const char *name,
                            void (*put)(Helpers *h, const Format *f, const char *name))
{
    if (help_is_fixed(name)) {
        return help_fixed(h, name);
    }
    (void)help_fixed(h, "tdsl_float_of_bits");
    (void)help_fixed(h, "tdsl_bits_of_float");
    if (helper_new(h, name)) {
        Format f = format_of(t);
        put(h, &f, name);
    }
    return name;
}

const char *help_loads(Helpers *h, DType t)
{
    return converts(h, t, str_format(h->arena, "tdsl_float_of_%s", dtype_name(t)), loads_put);
}

const char *help_stores(Helpers *h, DType t)
{
    return converts(h, t, str_format(h->arena, "tdsl_%s_of_float", dtype_name(t)), stores_put);
}

const char *help_rounds(Helpers *h, DType t)
{
    const char *name = str_format(h->arena, "tdsl_nearest_%s", dtype_name(t));
    if (help_is_fixed(name)) {
        return help_fixed(h, name);
    }
    const char *loads = help_loads(h, t), *stores = help_stores(h, t);
    if (helper_new(h, name)) {
        helper_put(h, str_format(h->arena,
                                 "TDSL_HELPER float %s(float x)\n{\n    return %s(%s(x));\n}\n",
                                 name, loads, stores));
    }
    return name;
}
