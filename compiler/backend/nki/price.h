/* SPDX-License-Identifier: Apache-2.0 */
/* How long the engines of a chip take: the one table that nests (leaf.c), layouts (shape.c), roles (roles.c), the count of a text (cost.c)
 * and its schedule (predict.c) read. Numbers that differ between generations are those of NkiChip. */
#ifndef BACKEND_NKI_PRICE_H
#define BACKEND_NKI_PRICE_H

#include "backend/nki/nki.h"

#define NKI_LEAST_CYCLES 64 /* for the elements of an instruction, however few */
#define NKI_START_CYCLES                                                                       \
    64 /* each of the engines for vectors and functions, beside its elements */
#define NKI_ROW                                                                                \
    2048 /* elements of a partition that an elementwise instruction takes, at most */
#define NKI_TABLE_US 1.283 /* until a function's table is there */
/* Multiply-adds of a batch, at most, for the Vector engine to take batches side by side rather than the Tensor engine one by one. */
#define NKI_TINY 512

static inline double price_least(double cycles)
{
    return cycles < NKI_LEAST_CYCLES ? NKI_LEAST_CYCLES : cycles;
}

/* Cycles of an instruction of the Vector or Scalar engine that passes over so many elements of a partition. */
static inline double price_row(double elements)
{
    return price_least(elements) + NKI_START_CYCLES;
}

/* Cycles of a matmul of so many columns, or of a transpose of so many rows. */
double price_array(const NkiChip *chip, DType t, double columns, bool transposes);
/* Cycles of matmuls over f32 rows of so many columns, a bank each: sums or copies over partitions. */
double price_banks(const NkiChip *chip, double columns);
/* Descriptors, each as long as one of NKI_SHORT_RUN, of so many elements in contiguous runs. */
double price_descriptors(double elements, double run, int64_t size);

/* What a statement gives the engines to do: descriptors as long as those of NKI_SHORT_RUN; cycles of the Vector engine, of that or the
 * Scalar engine, and of the Tensor engine. */
typedef struct EngineLoad {
    double descriptors, vector, either, tensor;
} EngineLoad;
/* Nanoseconds of engines side by side: the busiest, and a quarter of what all have to do. */
double price_beside(const NkiChip *chip, const EngineLoad *x);

#endif
