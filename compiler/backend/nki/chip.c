/* SPDX-License-Identifier: Apache-2.0 */
/* The three generations as numbers. Everything that differs between them is here. */
#include <string.h>

#include "backend/nki/nki.h"

#define DTYPES (1u << DTYPE_F32 | 1u << DTYPE_F16 | 1u << DTYPE_BF16)
#define MIB    ((int64_t)1 << 20)

/* SBUF as the schedule sees it is smaller than it is: blocks are rarely 128 partitions high. */
#define MACHINE(macs, bytes)                                                                   \
    {                                                                                          \
        .space =                                                                               \
            {                                                                                  \
                [SPACE_ARGUMENT] = {.name = "HBM"},                                            \
                [SPACE_WORKSPACE] = {.name = "HBM"},                                           \
                [SPACE_TILE] = {.name = "SBUF",                                                \
                                .capacity = 8 * MIB,                                           \
                                .partitions = 128,                                             \
                                .max_free = 64 * 1024},                                        \
                [SPACE_ACC] = {.name = "PSUM",                                                 \
                               .capacity = 2 * MIB,                                            \
                               .partitions = 128,                                              \
                               .max_free = NKI_PSUM_BANK},                                     \
            },                                                                                 \
        .dtypes = DTYPES, .max_instructions = NKI_INSTRUCTIONS, .tile_m = 128, .tile_n = 512,  \
        .tile_k = 128, .acc_tiles = 8, .multiply_adds_per_second = (macs),                     \
        .bytes_per_second = (bytes)                                                            \
    }

const NkiChip nki_chips[3] = {
    {"trn1", 2, 180224, 2.8, 1.12, 1.4, 1.4, 272, 410, MACHINE(4.6e13, 2.72e11)},
    {"trn2", 3, 212984, 2.4, 0.96, 1.2, 1.2, 368, 716, MACHINE(3.95e13, 3.68e11)},
    {"trn3", 4, 245752, 2.4, 1.2, 1.2, 1.2, 528, 1178, MACHINE(3.95e13, 5.28e11)},
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
