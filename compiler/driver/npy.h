/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: versions 1.0 to 3.0, C and Fortran order, little endian are read; version 1.0, C order is written.
 * Format: numpy/lib/format.py, "Format Version 1.0". */
#ifndef DRIVER_NPY_H
#define DRIVER_NPY_H

#include "graph/tensor.h"

/* Null after a diagnostic (E_NPY) that names the file. */
Tensor *npy_parse(Ctx *ctx, Arena *arena, const char *path, Str bytes);
Str npy_format(Arena *arena, const Tensor *t);

#endif
