/* SPDX-License-Identifier: Apache-2.0 */
/* The three generations as targets. */

#include "backend/nki/nki.h"
#include "lower/integers.h"
#include "lower/storage.h"

extern const Target target_trn1, target_trn2, target_trn3;

/* A part of a kernel is rolled before the next one is lowered, so that no two of them are there unrolled: one pass makes instructions and
 * loops. */
static const TargetPass passes[] = {
    {"gathers", "rows of arguments, at positions of others, are read before all else", false,
     nki_gathers, true},
    {"storage", "floats of 8 bits are bf16 on chip", false, lower_storage, true},
    {"integers", "whole numbers are f32, where that is exact", false, lower_integers, true},
    {"steps", "steps of linear recurrences are scans", true, tile_linear_steps, true},
    {"diagonals", "numbers of 16 bits for each row are diagonals of matrices", true,
     tile_diagonals, true},
    {"pairs", "what a tile of pairs adds, times its weight, goes to the sum at once", true,
     tile_pair_sums, true},
    {"vectors", "long vectors of complex numbers are matrices of many rows", true, tile_vectors,
     true},
    {"rows", "sums over short rows of arguments take neighbours on one partition", true,
     tile_short_rows, true},
    {"legalise", "instructions of the device, and loops of what repeats", false, nki_legalise,
     false},
    {0},
};

const Target target_trn1 = {
    .name = "trn1",
    .summary = "Trainium 1 (NeuronCore-v2): NKI kernels, a manifest and how to build them",
    .machine = &nki_chips[0].machine,
    .passes = passes,
    .verify = nki_verify,
    .emit = nki_emit,
};

const Target target_trn2 = {
    .name = "trn2",
    .summary = "Trainium 2 (NeuronCore-v3): NKI kernels, a manifest and how to build them",
    .machine = &nki_chips[1].machine,
    .passes = passes,
    .verify = nki_verify,
    .emit = nki_emit,
};

const Target target_trn3 = {
    .name = "trn3",
    .summary = "Trainium 3 (NeuronCore-v4): NKI kernels, a manifest and how to build them",
    .machine = &nki_chips[2].machine,
    .passes = passes,
    .verify = nki_verify,
    .emit = nki_emit,
};
