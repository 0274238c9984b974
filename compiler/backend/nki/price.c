/* SPDX-License-Identifier: Apache-2.0 */
/* See price.h. The numbers are the vendor's published averages, and what kernels timed on a trn1 show beside: loads of weights are not
 * hidden behind matmuls of f32, which are four passes, and each instruction waits a little. */
#include "backend/nki/price.h"

#define WAIT    48                   /* cycles of the Tensor engine, each instruction */
#define WEIGHTS (2 * NKI_STATIONARY) /* of f32, to load them */
#define OTHERS  0.25                 /* of what engines do that wait for the busiest */

double price_array(const NkiChip *chip, DType t, double columns, bool transposes)
{
    bool wide = dtype_part(t) == DTYPE_F32;
    double passes = !wide ? 1 : transposes ? chip->transpose_passes : NKI_F32_PASSES;
    return passes * price_least(columns) + WAIT + (wide ? WEIGHTS : 0);
}

double price_banks(const NkiChip *chip, double columns)
{
    double bank = NKI_PSUM_BANK / (double)dtype_bytes(DTYPE_F32);
    double count = columns > bank ? columns / bank : 1;
    return count * price_array(chip, DTYPE_F32, columns / count, false);
}

double price_descriptors(double elements, double run, int64_t size)
{
    double bytes = run * (double)size;
    return elements / run * (bytes < NKI_SHORT_RUN ? 1 : bytes / NKI_SHORT_RUN);
}

double price_beside(const NkiChip *chip, const EngineLoad *x)
{
    double t[3] = {x->descriptors * NKI_SHORT_RUN / chip->dma_both_gbps,
                   (x->vector + x->either / 2) / chip->vector_ghz, /* the latter is shared */
                   x->tensor / chip->tensor_ghz};
    double most = t[0] > t[1] ? t[0] : t[1], sum = t[0] + t[1] + t[2];
    return (most > t[2] ? most : t[2]) + OTHERS * sum;
}
