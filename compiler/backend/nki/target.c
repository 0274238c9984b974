/* SPDX-License-Identifier: Apache-2.0 */
/* The three generations as numbers. Everything that differs between them is here. */
#include <string.h>

#include "backend/nki/nki.h"

extern const Target target_trn1, target_trn2, target_trn3;

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

static const NkiChip chips[] = {
    {2, 180224, 2.8, 1.12, 1.4, 1.4, 272, 410, MACHINE(4.6e13, 2.72e11)},
    {3, 212984, 2.4, 0.96, 1.2, 1.2, 368, 716, MACHINE(3.95e13, 3.68e11)},
    {4, 245752, 2.4, 1.2, 1.2, 1.2, 528, 1178, MACHINE(3.95e13, 5.28e11)},
};

static const Target *const targets[] = {&target_trn1, &target_trn2, &target_trn3};

const NkiChip *nki_chip(const char *target)
{
    for (size_t i = 0; target != NULL && i < sizeof targets / sizeof targets[0]; i++) {
        if (strcmp(targets[i]->name, target) == 0) {
            return &chips[i];
        }
    }
    return NULL;
}

const Target target_trn1 = {
    .name = "trn1",
    .summary = "Trainium 1 (NeuronCore-v2): NKI kernels, a manifest and how to build them",
    .machine = &chips[0].machine,
    .legalise = nki_legalise,
    .verify = nki_verify,
    .emit = nki_emit,
};

const Target target_trn2 = {
    .name = "trn2",
    .summary = "Trainium 2 (NeuronCore-v3): NKI kernels, a manifest and how to build them",
    .machine = &chips[1].machine,
    .legalise = nki_legalise,
    .verify = nki_verify,
    .emit = nki_emit,
};

const Target target_trn3 = {
    .name = "trn3",
    .summary = "Trainium 3 (NeuronCore-v4): NKI kernels, a manifest and how to build them",
    .machine = &chips[2].machine,
    .legalise = nki_legalise,
    .verify = nki_verify,
    .emit = nki_emit,
};
