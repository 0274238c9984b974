/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: name, size, alignment. One row each; the numbers are those of abi.h. */
#include "internal.h"

typedef struct DtypeRow {
    const char *name;
    uint8_t bytes;
    uint8_t alignment; /* a complex number is two reals in a row */
} DtypeRow;

static const DtypeRow dtype_rows[] = {
    [TDSL_F64] = {"f64", 8, 8},   [TDSL_F32] = {"f32", 4, 4}, [TDSL_F16] = {"f16", 2, 2},
    [TDSL_BF16] = {"bf16", 2, 2}, [TDSL_I32] = {"i32", 4, 4}, [TDSL_I64] = {"i64", 8, 8},
    [TDSL_BOOL] = {"bool", 1, 1}, [TDSL_C64] = {"c64", 8, 4}, [TDSL_C128] = {"c128", 16, 8},
};

static const DtypeRow no_dtype = {"no dtype", 0, 1};

static const DtypeRow *dtype_row(int32_t dtype)
{
    bool known = dtype > 0 && (size_t)dtype < sizeof dtype_rows / sizeof dtype_rows[0];
    return known ? &dtype_rows[dtype] : &no_dtype;
}

size_t tdsl_dtype_bytes(int32_t dtype)
{
    return dtype_row(dtype)->bytes;
}

size_t tdsl_dtype_alignment(int32_t dtype)
{
    return dtype_row(dtype)->alignment;
}

const char *tdsl_dtype_name(int32_t dtype)
{
    return dtype_row(dtype)->name;
}
