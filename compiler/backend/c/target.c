/* SPDX-License-Identifier: Apache-2.0 */
/* The C target as numbers. They describe no one machine but what any processor of the last ten
 * years has; a schedule made for them is good on all. */
#include "backend/c/c.h"
#include "backend/ctext/names.h"

#define KIB ((int64_t)1024)

static const Machine machine_c = {
    .space =
        {
            [SPACE_ARGUMENT] = {.name = "memory"},
            [SPACE_WORKSPACE] = {.name = "memory"},
            [SPACE_TILE] = {.name = "cache", .capacity = 512 * KIB},
            [SPACE_ACC] = {.name = "registers", .capacity = 2 * KIB},
        },
    .open_extents = true,
    .dtypes = 1u << DTYPE_F64 | 1u << DTYPE_F32 | 1u << DTYPE_F16 | 1u << DTYPE_BF16 |
              1u << DTYPE_I32 | 1u << DTYPE_I64 | 1u << DTYPE_BOOL | 1u << DTYPE_C64 |
              1u << DTYPE_C128,
    .vector_bytes = 64,
    .tile_m = 8,
    .tile_n = 32,
    .tile_k = 256,
    .acc_tiles = 1,
    .multiply_adds_per_second = 5e10,
    .bytes_per_second = 1e10,
};

const Target target_c = {
    .name = "c",
    .summary = "portable C11: one .c and one .h that need nothing but libm",
    .suffix = ".c",
    .machine = &machine_c,
    .symbol = c_symbol,
    .legalise = c_legalise,
    .verify = c_verify,
    .emit = c_emit,
};
