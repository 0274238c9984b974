/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about element types: each question of types.h is a look-up in the table. */
#include "op/types.h"

#include <math.h>

static const DTypeInfo table[DTYPE_COUNT] = {
    [DTYPE_NONE] = {.name = "?", .c = "void", .numpy = "", .nki = "", .hlo = ""},
#define TYPE(id, name_, class_, bytes_, exponent_, fraction_, beyond_, range_, computes_,      \
             sums_, c_, numpy_, nki_, hlo_, fortran_, rust_)                                   \
    [DTYPE_##id] = {.name = name_,                                                             \
                    .is = DTYPE_IS_##class_,                                                   \
                    .bytes = bytes_,                                                           \
                    .exponent = exponent_,                                                     \
                    .fraction = fraction_,                                                     \
                    .beyond = BEYOND_##beyond_,                                                \
                    .range = range_,                                                           \
                    .computes = DTYPE_##computes_,                                             \
                    .sums = DTYPE_##sums_,                                                     \
                    .abi = "TDSL_" #id,                                                        \
                    .c = c_,                                                                   \
                    .numpy = numpy_,                                                           \
                    .nki = nki_,                                                               \
                    .hlo = hlo_,                                                               \
                    .fortran = fortran_,                                                       \
                    .rust = rust_},
#include "op/types.def"
};

const DTypeInfo *dtype_info(DType t)
{
    CHECK((unsigned)t < DTYPE_COUNT);
    return &table[t];
}

const char *dtype_name(DType t)
{
    return table[t].name;
}

const char *dtype_names(void)
{
#define TYPE(id, name, ...) " " name
    static const char names[] =
#include "op/types.def"
        ;
    return names + 1;
}

bool dtype_from_name(Str name, DType *out)
{
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        if (str_eq_cstr(name, table[t].name)) {
            *out = (DType)t;
            return true;
        }
    }
    return false;
}

int64_t dtype_bytes(DType t)
{
    return table[t].bytes;
}

bool dtype_is_float(DType t)
{
    return table[t].is == DTYPE_IS_FLOAT;
}

bool dtype_is_int(DType t)
{
    return table[t].is == DTYPE_IS_INT || table[t].is == DTYPE_IS_UINT;
}

bool dtype_is_exact(DType t)
{
    return dtype_is_int(t) || table[t].is == DTYPE_IS_BOOL;
}

bool dtype_is_half(DType t)
{
    return dtype_is_float(t) && table[t].computes != t;
}

bool dtype_is_storage(DType t)
{
    return table[t].computes != t;
}

bool dtype_is_complex(DType t)
{
    return table[t].is == DTYPE_IS_COMPLEX;
}

DType dtype_computes(DType t)
{
    return table[t].computes;
}

DType dtype_complex(DType t)
{
    return table[t].fraction == table[DTYPE_F64].fraction ? DTYPE_C128 : DTYPE_C64;
}

DType dtype_part(DType t)
{
    return !dtype_is_complex(t) ? t : t == dtype_complex(DTYPE_F64) ? DTYPE_F64 : DTYPE_F32;
}

/* What is added to the exponents of a float type, so that they are not below 0. */
static int bias_of(const DTypeInfo *x)
{
    return (1 << (x->exponent - 1)) - 1;
}

double dtype_most(DType t)
{
    const DTypeInfo *x = &table[t];
    return x->beyond == BEYOND_FINITE ? ldexp(2 - ldexp(2, -x->fraction), bias_of(x) + 1)
                                      : ldexp(2 - ldexp(1, -x->fraction), bias_of(x));
}

double dtype_epsilon(DType t)
{
    return ldexp(1, -table[t].fraction);
}

int dtype_unit(DType t)
{
    return 1 - bias_of(&table[t]) - table[t].fraction;
}

int64_t dtype_lowest(DType t)
{
    return table[t].is == DTYPE_IS_INT ? -dtype_highest(t) - 1 : 0;
}

int64_t dtype_highest(DType t)
{
    return (int64_t)(((uint64_t)1 << table[t].fraction) - 1);
}

bool dtype_widens(DType from, DType to)
{
    const DTypeInfo *a = &table[from], *b = &table[to];
    if (dtype_is_float(from) || dtype_is_complex(from)) {
        bool family = b->is == DTYPE_IS_COMPLEX || b->is == a->is;
        bool infinite = a->beyond == BEYOND_FINITE || b->beyond != BEYOND_FINITE;
        return family && infinite && a->exponent <= b->exponent && a->fraction <= b->fraction &&
               dtype_most(from) <= dtype_most(to);
    }
    if (dtype_is_int(from)) {
        return dtype_is_int(to) && a->fraction <= b->fraction &&
               (a->is == DTYPE_IS_UINT || b->is == DTYPE_IS_INT);
    }
    return from == to && from != DTYPE_NONE;
}

bool dtype_keeps_range(DType from, DType to)
{
    const DTypeInfo *a = &table[from], *b = &table[to];
    return dtype_widens(from, to) || (dtype_is_float(from) && dtype_is_float(to) &&
                                      a->exponent == b->exponent && a->beyond == b->beyond);
}

int64_t dtype_dot_group(DType a, DType b, DType sum)
{
    bool ints = sum == DTYPE_I32 && dtype_is_int(a) && dtype_is_int(b);
    bool bytes = ints && table[a].bytes == 1 && table[b].bytes == 1;
    return bytes ? 4 : ints && dtype_widens(a, DTYPE_I16) && dtype_widens(b, DTYPE_I16) ? 2 : 1;
}

DType dtype_accumulator(DType t)
{
    return table[t].sums;
}

DType dtype_narrower(DType t)
{
    return t == DTYPE_F64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_C64 : t;
}

static const struct {
    const char *name, *ours;
} others[] = {
    {"float64", "f64"},
    {"double", "f64"},
    {"float32", "f32"},
    {"float", "f32"},
    {"single", "f32"},
    {"float16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"int32", "i32"},
    {"int", "i32"},
    {"int64", "i64"},
    {"long", "i64"},
    {"int32_t", "i32"},
    {"int64_t", "i64"},
    {"bool_", "bool"},
    {"boolean", "bool"},
    {"complex64", "c64"},
    {"complex128", "c128"},
    {"complex", "c128"},
    {"real", "f64"},
    {"fp64", "f64"},
    {"fp32", "f32"},
    {"fp16", "f16"},
    {"F64", "f64"},
    {"F32", "f32"},
    {"cfloat", "c64"},
    {"cdouble", "c128"},
    {"s32", "i32"},
    {"s64", "i64"},
    {"f4", "f32"},
    {"f2", "f16"},
    {"i4", "i32"},
    {"float8_e4m3", "f8e4m3"},
    {"float8_e5m2", "f8e5m2"},
    {"float8_e4m3fn", "f8e4m3fn"},
    {"e4m3", "f8e4m3"},
    {"e5m2", "f8e5m2"},
    {"fp8", "f8e4m3"},
    {"f8", "f8e4m3"},
    {"int8", "i8"},
    {"uint8", "u8"},
    {"int16", "i16"},
    {"uint16", "u16"},
    {"uint32", "u32"},
    {"int8_t", "i8"},
    {"uint8_t", "u8"},
    {"int16_t", "i16"},
    {"uint16_t", "u16"},
    {"uint32_t", "u32"},
    {"byte", "u8"},
    {"short", "i16"},
    {"s8", "i8"},
    {"s16", "i16"},
    {"c8", "c64"},
    {"c16", "c128"},
};

const char *dtype_meant(Str name)
{
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        if (str_eq_cstr(name, others[k].name)) {
            return others[k].ours;
        }
    }
    return NULL;
}
