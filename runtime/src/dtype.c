/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: name, size, alignment. One row each; the numbers are those of abi.h, and row 0 stands
 * for every number that is none. A complex number is two reals in a row. */
#include "internal.h"

const DtypeRow tdsl_dtype_rows[DTYPE_ROWS] = {
    [0] = {"no dtype", 0, 1},         [TDSL_F64] = {"f64", 8, 8},
    [TDSL_F32] = {"f32", 4, 4},       [TDSL_F16] = {"f16", 2, 2},
    [TDSL_BF16] = {"bf16", 2, 2},     [TDSL_I32] = {"i32", 4, 4},
    [TDSL_I64] = {"i64", 8, 8},       [TDSL_BOOL] = {"bool", 1, 1},
    [TDSL_C64] = {"c64", 8, 4},       [TDSL_C128] = {"c128", 16, 8},
    [TDSL_I8] = {"i8", 1, 1},         [TDSL_U8] = {"u8", 1, 1},
    [TDSL_I16] = {"i16", 2, 2},       [TDSL_U16] = {"u16", 2, 2},
    [TDSL_U32] = {"u32", 4, 4},       [TDSL_F8E4M3] = {"f8e4m3", 1, 1},
    [TDSL_F8E5M2] = {"f8e5m2", 1, 1}, [TDSL_F8E4M3FN] = {"f8e4m3fn", 1, 1},
};
