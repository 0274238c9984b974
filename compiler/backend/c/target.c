/* SPDX-License-Identifier: Apache-2.0 */
/* The C target as numbers. They describe no one machine but what any processor of the last ten
 * years has; a schedule made for them is good on all. */
#include "backend/c/c.h"
#include "backend/ctext/names.h"

#define KIB ((int64_t)1024)

static const Machine machine_c = {
    .n_levels = 3,
    .level = {{.name = "memory", .bytes_per_second = 1.5e10, .granule = 192},
              {.name = "L3", .capacity = 32768 * KIB, .bytes_per_second = 4e10, .granule = 128},
              {.name = "L2", .capacity = 512 * KIB}},
    .tile_level = 2,
    .reads_before_writing = true,
    /* Two vectors of 64 bytes by twelve rows at most, which the widest machines have registers for; others cover it by
     * parts (isa.h). */
    .tile = {.types = 1u << DTYPE_F32 | 1u << DTYPE_F64 | 1u << DTYPE_I32 | 1u << DTYPE_I64 |
                      1u << DTYPE_C64 | 1u << DTYPE_C128,
             .line = 128,
             .bytes = 1536,
             .rows = 12,
             .sum = 256,
             .columns = 256,
             .panels = 1024 * KIB,
             .shared_panels = 8192 * KIB,
             .block = 128 * KIB,
             .gathered = 96 * KIB,
             .direct = 4096},
    .time = {.multiply_add = 2e-11,
             .dot = 7e-12,
             .pack = 1.5e-10,
             .pack_line = 1e-9,
             .convert = 5e-10,
             .row = 1e-9,
             .loop = 2e-9,
             .fold = 8e-9,
             .join = 1e-10,
             .join_edge = 5e-10,
             .op = 5e-11,
             .scalar_op = 4e-10,
             .divide = 5e-10,
             .function = 8e-9,
             .exp = 1e-9,
             .tile = 1e-8,
             .statement = 5e-8,
             .product = 3e-7,
             .piece = 1e-5,
             .region = 5e-6},
    .threads = 16,
    .complex_numbers = true,
    .gathers = true,
    .functions = true,
    .doubles = true,
    .open_extents = true,
    .overwrites = true,
    .adds = true,
    .narrow = true,
    .online = true,
    .pairs = true,
    .mirrors = true,
};

static const TargetPass passes[] = {
    {"legalise", "register tiles, packed panels and vectors for statements over tiles", false,
     c_legalise, false},
    {"sums", "long sums are added up pairwise or in blocks, which bounds how they round", true,
     c_sums, false},
    {"hoist", "what is packed alike in each iteration of a loop is packed before it", true,
     c_hoist, false},
    {"packs", "large panels that all threads read are filled by all of them", true, c_packs,
     false},
    {"share", "buffers that do not live together share bytes", true, c_share, false},
    {"stream", "results that no cache holds are stored past the caches", true, c_stream, false},
    {"threads", "parallel loops that are worth it are shared by threads", true, c_share_loops,
     false},
    {"specialise", "products of short sums run in functions made for their extents", true,
     c_specialise, false},
    {"prefetch", "tiles prefetch what is packed next", true, c_prefetch, false},
    {"exact", "ranges that end before their limit lose it, remainders that are empty go", true,
     c_exact, false},
    {0},
};

static const TargetWrapper wrappers[] = {
    {"hpp", ".hpp"},
    {"fortran", ".f90"},
    {"rust", ".rs"},
    {"manifest", ".json"},
    {"c-lines", ".c"},
    {"shared", ".c"},
    {0},
};

const Target target_c = {
    .name = "c",
    .summary = "portable C11: one .c and one .h that need nothing but libm",
    .suffix = ".c",
    .machine = &machine_c,
    .ranks = true,
    .symbol = c_symbol,
    .wrappers = wrappers,
    .passes = passes,
    .verify = c_verify,
    .emit = c_emit,
};
