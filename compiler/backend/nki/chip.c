/* SPDX-License-Identifier: Apache-2.0 */
/* The three generations as numbers. Everything that differs between them is here. */
#include "backend/nki/nki.h"

#include <string.h>

#define MIB ((int64_t)1 << 20)

/* SBUF as the schedule sees it is smaller than it is: blocks are rarely 128 partitions high. */
#define MACHINE(at, sbuf, vector, scalar, both, peak, most_cores)                              \
    {                                                                                          \
        .n_levels = 2,                                                                         \
        .level = {{.name = "HBM", .bytes_per_second = (both)*1e9, .granule = NKI_SHORT_RUN},   \
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
                     .chip = &nki_chips[at],                                                   \
                     .leaf = nki_leaf},                                                        \
        .time = {.multiply_add = 1 / (peak),                                                   \
                 .op = 1 / ((vector)*1e9 * NKI_PARTITIONS),                                    \
                 .exp = 1 / ((scalar)*1e9 * NKI_PARTITIONS),                                   \
                 .start = 3e-6,                                                                \
                 .statement = 1e-7},                                                           \
        .alike = true, .domains = true, .masks = true, .online = true, .pairs = true,          \
        .row_gathers = (most_cores) > 1, .max_instructions = NKI_INSTRUCTIONS, .cores = 1,     \
        .cores_most = (most_cores)                                                             \
    }

/* In the order of NkiChip, then multiply-adds of a second, and cores. */
#define CHIP(at, name, gen, sbuf, tensor, vector, scalar, gpsimd, dma, both, hbm, launch, f32, \
             reciprocal, peak, most_cores)                                                     \
    {                                                                                          \
        name, gen, sbuf, tensor, vector, scalar, gpsimd, dma, both, hbm, launch, f32,          \
            reciprocal, MACHINE(at, sbuf, vector, scalar, both, peak, most_cores)              \
    }

const NkiChip nki_chips[3] = {
    CHIP(0, "trn1", 2, 180224, 2.8, 1.12, 1.4, 1.4, 265, 300, 410, 100, 4, 2.65, 4.6e13, 1),
    CHIP(1, "trn2", 3, 212984, 2.4, 0.96, 1.2, 1.2, 368, 368, 716, 16, 2, 8, 3.95e13, 2),
    CHIP(2, "trn3", 4, 245752, 2.4, 1.2, 1.2, 1.2, 528, 528, 1178, 16, 2, 8, 3.95e13, 2),
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
