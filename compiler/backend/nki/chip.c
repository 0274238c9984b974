/* SPDX-License-Identifier: Apache-2.0 */
/* The three generations as numbers. Everything that differs between them is here. */
#include <string.h>

#include "backend/nki/nki.h"

#define MIB ((int64_t)1 << 20)

/* SBUF as the schedule sees it is smaller than it is: blocks are rarely 128 partitions high. */
#define MACHINE(macs, rate, sbuf, vector, scalar, turns, recip, pair)                          \
    {                                                                                          \
        .n_levels = 2,                                                                         \
        .level = {{.name = "HBM", .bytes_per_second = (rate), .granule = NKI_SHORT_RUN},       \
                  {.name = "SBUF", .capacity = 8 * MIB}},                                      \
        .tile_level = 1,                                                                       \
        .tile = {.types = 1u << DTYPE_F32,                                                     \
                 .line = NKI_PSUM_BANK,                                                        \
                 .bytes = NKI_PSUM_BANK * NKI_STATIONARY,                                      \
                 .rows = NKI_STATIONARY,                                                       \
                 .sum = NKI_PARTITIONS},                                                       \
        .kind = MACHINE_SYSTOLIC,                                                              \
        .systolic = {.live = NKI_PSUM_BANKS,                                                   \
                     .live_busy = NKI_PSUM_BANKS / 2,                                          \
                     .live_rows = 4,                                                           \
                     .packed = (int64_t)(sbuf)*NKI_PARTITIONS / 16 * 14,                       \
                     .slab = (int64_t)NKI_SLAB * NKI_PARTITIONS,                               \
                     .cycles = {.least = NKI_LEAST_CYCLES,                                     \
                                .instruction = 64,                                             \
                                .matmul = 48,                                                  \
                                .matmul_f32 = 2 * NKI_STATIONARY + 48,                         \
                                .passes_f32 = NKI_F32_PASSES,                                  \
                                .transpose_passes_f32 = (turns),                               \
                                .reciprocal = (recip),                                         \
                                .table = 1.283e-6}},                                           \
        .time = {.multiply_add = 1 / (macs),                                                   \
                 .join = 1e-12,                                                                \
                 .op = 1 / ((vector)*1e9 * NKI_PARTITIONS),                                    \
                 .scalar_op = 1 / ((vector)*1e9 * NKI_PARTITIONS),                             \
                 .divide = 1 / ((scalar)*1e9 * NKI_PARTITIONS),                                \
                 .function = 1 / ((scalar)*1e9 * NKI_PARTITIONS),                              \
                 .exp = 1 / ((scalar)*1e9 * NKI_PARTITIONS),                                   \
                 .start = 3e-6,                                                                \
                 .statement = 1e-7,                                                            \
                 .product = 2e-7},                                                             \
        .domains = true, .masks = true, .online = true, .pairs = true,                         \
        .row_gathers = (pair) > 1, .max_instructions = NKI_INSTRUCTIONS, .cores = 1,           \
        .cores_most = (pair)                                                                   \
    }

const NkiChip nki_chips[3] = {
    {"trn1", 2, 180224, 2.8, 1.12, 1.4, 1.4, 265, 300, 410, 100,
     MACHINE(4.6e13, 3e11, 180224, 1.12, 1.4, 4, 2.65, 1)},
    {"trn2", 3, 212984, 2.4, 0.96, 1.2, 1.2, 368, 368, 716, 16,
     MACHINE(3.95e13, 3.68e11, 212984, 0.96, 1.2, 2, 8, 2)},
    {"trn3", 4, 245752, 2.4, 1.2, 1.2, 1.2, 528, 528, 1178, 16,
     MACHINE(3.95e13, 5.28e11, 245752, 1.2, 1.2, 2, 8, 2)},
};

const NkiChip *nki_chip(const char *target)
{
    for (size_t i = 0; target != NULL && i < sizeof nki_chips / sizeof nki_chips[0]; i++) {
        if (strcmp(nki_chips[i].target, target) == 0) {
            return &nki_chips[i];
        }
    }
    return NULL;
}
