/* SPDX-License-Identifier: Apache-2.0 */
/* From TILED to LEGAL: one program or several, and the forms of each, of which the quickest is taken. */
#ifndef BACKEND_NKI_LEGALISE_H
#define BACKEND_NKI_LEGALISE_H

#include "backend/nki/lower.h"
#include "backend/nki/stages.h"

/* A device program for a kernel, or for a part of one; `kernel` null: there is none. */
typedef struct Lowered {
    Lower l;
    Kernel *kernel;
    NkiCost cost;
    Staging stages; /* of its longest loops; what lower_finish tries, if there are any */
} Lowered;
/* What was lowered, rolled; of a kernel of so many parts. `measure`: and measured, and put into stages where engines wait. */
void lower_finish(const Lower *l, Kernel *made, uint32_t parts, bool measure, Lowered *out);

/* ---- supported.c ---- */

/* Are all extents numbers, and none of a tensor 0? Says which are not. The first of all checks: what is lowered counts on it. */
bool lower_check_extents(Ctx *ctx, const Target *target, const Kernel *k);
bool lower_check(Lower *l);

/* ---- lower.c ---- */

/* The instructions of l->task.body, tried again until they need not be; null
 * when that failed, was too long or does not fit (`too_many`). */
Kernel *lower_all(const Lower *start, Lower *l);

/* ---- split.c ---- */

/* The kernel as device programs of at most l->task.most instructions each. */
Kernel *lower_split(const Lower *l, bool last); /* false: says nothing where it cannot */
#define PARTS_MOST 128

/* ---- LEGAL kernels that do the same ---- */

/* vector_passes.c: with less for the Vector engine to do, where that makes it quicker, and its cost. */
Kernel *lower_vector_passes(const Lower *l, Kernel *k, NkiCost *cost);
/* interleave.c: with iterations of its longest loops interleaved where that gains, and what it costs then; null: nowhere. */
Kernel *lower_interleaved(const Lower *l, const Kernel *k, NkiCost *cost);
/* late_loads.c: with loads before a loop where the loop first uses them; null: it begins with all. */
Kernel *lower_late_loads(Arena *arena, const Kernel *k);
/* joined_loads.c: loads of short rows that follow each other as loads of longer ones; null where there are none. */
Kernel *lower_joined_loads(const Lower *l, const Kernel *k);
/* bank_copies.c: what transposes leave in PSUM is copied a bank at a time; null where nothing is. */
Kernel *lower_bank_copies(const Lower *l, const Kernel *k);

/* ---- spill.c: -Wspill ---- */

void spill_warn_crossing(const Lower *l, BufRef buf); /* of a kernel of several programs */
void spill_warn_all(const Lower *l);                  /* of a finished try */

#endif
