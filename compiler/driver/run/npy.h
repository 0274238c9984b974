/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: versions 1.0 to 3.0, C and Fortran order, either order of bytes are read; version 1.0, C order, little
 * endian is written. Format: numpy/lib/format.py, "Format Version 1.0". NumPy itself has no bf16; ml_dtypes, which adds it,
 * saves it as 'V2', two bytes without a meaning, and that is what is read and written here; floats of 8 bits are 'V1', which is
 * u8 unless somebody knows better. */
#ifndef DRIVER_RUN_NPY_H
#define DRIVER_RUN_NPY_H

#include "graph/tensor.h"

/* With elements of type `cast`, which have to fit (driver/fit.h), or DTYPE_NONE: as the file has them. Null after a diagnostic
 * (E_NPY) that names the file. */
Tensor *npy_parse(Ctx *ctx, Arena *arena, const char *path, Str bytes, DType cast);
Str npy_format(Arena *arena, const Tensor *t);
/* What stands before the elements. */
Str npy_header(Arena *arena, DType dtype, uint32_t rank, const int64_t *extent);

/* A file whose elements are read where they lie, some of them by each rank. */
typedef struct NpyFile {
    const char *path;
    DType dtype;
    uint32_t rank;
    const int64_t *extent;
    int64_t at; /* of the first element */
} NpyFile;

/* Null where there is no such file, or none whose elements are in C order and this machine's order of bytes: npy_parse says why, or reads it. */
const NpyFile *npy_open(Arena *arena, const char *path);

#endif
