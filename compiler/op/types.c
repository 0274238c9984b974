/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about element types, as one table: each question of types.h is a look-up in it. */
#include "op/types.h"

typedef enum DTypeKind { KIND_NONE, KIND_FLOAT, KIND_INT, KIND_BOOL, KIND_COMPLEX } DTypeKind;

typedef struct DTypeInfo {
    const char *name;
    DTypeKind kind;
    int64_t bytes;
    uint32_t widens; /* bit t: a value becomes type t without loss and without a cast */
    DType accumulator;
} DTypeInfo;

#define TO(t) (1u << DTYPE_##t)

static const DTypeInfo dtype_info[DTYPE_COUNT] = {
    [DTYPE_NONE] = {"?", KIND_NONE, 0, 0, DTYPE_NONE},
    [DTYPE_F64] = {"f64", KIND_FLOAT, 8, TO(F64) | TO(C128), DTYPE_F64},
    [DTYPE_F32] = {"f32", KIND_FLOAT, 4, TO(F32) | TO(F64) | TO(C64) | TO(C128), DTYPE_F32},
    [DTYPE_F16] = {"f16", KIND_FLOAT, 2, TO(F16) | TO(F32) | TO(F64) | TO(C64) | TO(C128),
                   DTYPE_F32},
    [DTYPE_BF16] = {"bf16", KIND_FLOAT, 2, TO(BF16) | TO(F32) | TO(F64) | TO(C64) | TO(C128),
                    DTYPE_F32},
    [DTYPE_I32] = {"i32", KIND_INT, 4, TO(I32) | TO(I64), DTYPE_I32},
    [DTYPE_I64] = {"i64", KIND_INT, 8, TO(I64), DTYPE_I64},
    [DTYPE_BOOL] = {"bool", KIND_BOOL, 1, TO(BOOL), DTYPE_BOOL},
    [DTYPE_C64] = {"c64", KIND_COMPLEX, 8, TO(C64) | TO(C128), DTYPE_C64},
    [DTYPE_C128] = {"c128", KIND_COMPLEX, 16, TO(C128), DTYPE_C128},
};

const char *dtype_name(DType t)
{
    return dtype_info[t].name;
}

bool dtype_from_name(Str name, DType *out)
{
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        if (str_eq_cstr(name, dtype_info[t].name)) {
            *out = (DType)t;
            return true;
        }
    }
    return false;
}

int64_t dtype_bytes(DType t)
{
    return dtype_info[t].bytes;
}

bool dtype_is_float(DType t)
{
    return dtype_info[t].kind == KIND_FLOAT;
}

bool dtype_is_half(DType t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

bool dtype_is_int(DType t)
{
    return dtype_info[t].kind == KIND_INT;
}

bool dtype_is_complex(DType t)
{
    return dtype_info[t].kind == KIND_COMPLEX;
}

DType dtype_complex(DType t)
{
    return t == DTYPE_F64 || t == DTYPE_C128 ? DTYPE_C128 : DTYPE_C64;
}

DType dtype_part(DType t)
{
    return t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t;
}

bool dtype_widens(DType from, DType to)
{
    return (dtype_info[from].widens >> to) & 1u;
}

bool dtype_keeps_range(DType from, DType to)
{
    return dtype_widens(from, to) || (from == DTYPE_F32 && to == DTYPE_BF16);
}

DType dtype_accumulator(DType t)
{
    return dtype_info[t].accumulator;
}

DType dtype_narrower(DType t)
{
    return t == DTYPE_F64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_C64 : t;
}

static const struct {
    const char *name, *ours;
} others[] = {
    {"float64", "f64"},   {"double", "f64"},      {"float32", "f32"},  {"float", "f32"},
    {"single", "f32"},    {"float16", "f16"},     {"half", "f16"},     {"bfloat16", "bf16"},
    {"int32", "i32"},     {"int", "i32"},         {"int64", "i64"},    {"long", "i64"},
    {"int32_t", "i32"},   {"int64_t", "i64"},     {"bool_", "bool"},   {"boolean", "bool"},
    {"complex64", "c64"}, {"complex128", "c128"}, {"complex", "c128"}, {"real", "f64"},
    {"fp64", "f64"},      {"fp32", "f32"},        {"fp16", "f16"},     {"F64", "f64"},
    {"F32", "f32"},       {"cfloat", "c64"},      {"cdouble", "c128"}, {"s32", "i32"},
    {"s64", "i64"},       {"f8", "f64"},          {"f4", "f32"},       {"f2", "f16"},
    {"i4", "i32"},        {"i8", "i64"},          {"c8", "c64"},       {"c16", "c128"},
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
