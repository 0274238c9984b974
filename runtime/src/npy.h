/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays as .npy files (version 1.0, C order, little endian): how the emulator is spoken to. */
#ifndef TDSL_RUNTIME_NPY_H
#define TDSL_RUNTIME_NPY_H

#include "fault.h"

bool tdsl_npy_write(const char *path, int32_t dtype, int32_t rank, const int64_t *extents,
                    const void *data, size_t bytes, Fault *fault);
/* Reads exactly `bytes` bytes of elements as wide as dtype's; any shape of that size will do. */
bool tdsl_npy_read(const char *path, int32_t dtype, void *data, size_t bytes, Fault *fault);

#endif
