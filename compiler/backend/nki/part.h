/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a LEGAL kernel, each as a kernel of its own: its arguments are what it reads and
 * what it writes of the whole's arguments and of the temporaries that parts hand to each
 * other. */
#ifndef BACKEND_NKI_PART_H
#define BACKEND_NKI_PART_H

#include "backend/nki/nki.h"

/* One argument of a part: a tensor of the whole, or consecutive rows of it. */
typedef struct PartOperand {
    BufRef whole; /* buffer of the whole kernel */
    bool output;
    bool rows;     /* not all of the tensor */
    bool inout;    /* of an argument that the part reads and writes */
    int64_t first; /* element of the tensor */
} PartOperand;

typedef struct NkiPart {
    Kernel *kernel; /* named WHOLE_partN */
    uint32_t number, of;
    VEC(PartOperand) operands; /* what it reads, in order, then what it returns */
} NkiPart;

void nki_part(Arena *arena, SymTable *syms, const Kernel *k, uint32_t number, NkiPart *out);
/* The dimension of which a part has consecutive rows. */
uint32_t nki_row_dim(const Buffer *b);
/* Does each part read, of a tensor that it writes and of inout arguments, only the rows that are
 * its own, and write none that another writes? */
bool nki_parts_sound(const Kernel *k);
/* How long its programs take, one after the other; each but the first with a launch. 0: that is not known. */
double nki_programs_us(Ctx *ctx, Arena *a, const Kernel *k, const NkiChip *chip);
/* The temporaries that parts hand to each other, in order; false past the last. */
bool nki_temporary(const Kernel *k, uint32_t i, BufRef *out);

/* The cost of the program with most DMA descriptors. */
NkiCost nki_most_descriptors(const Kernel *k, const NkiChip *chip);

#endif
