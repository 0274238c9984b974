/* SPDX-License-Identifier: Apache-2.0 */
/* Emitted C as a loaded library: compiled by a C compiler into a private temporary folder, called through the metadata
 * table of a kernel as any program would. Errors are diagnostics (E_RUN). */
#ifndef DRIVER_C_LIBRARY_H
#define DRIVER_C_LIBRARY_H

#include "driver/head.h"

typedef struct CLibrary {
    Ctx *ctx;
    Arena *arena;
    void *handle;
    bool has_threads; /* that OpenMP keeps: they run its code until the process ends */
} CLibrary;

typedef struct CTiming {
    int64_t repeat;  /* calls to time after a warm one; 0: one call, not timed */
    int32_t threads; /* of a call, at most; more than 1 need OpenMP */
    double median, least;
    uint64_t multiply_adds;
} CTiming;

/* `cflags` are separated by blanks. Close it even when this fails. */
bool c_library_open(CLibrary *b, Ctx *ctx, Arena *arena, Str text, const char *cc,
                    const char *cflags);
void c_library_close(CLibrary *b);

/* Calls the kernel of that head that is named `symbol` in the C text; results as the head lists them. */
bool c_library_call(CLibrary *b, const Head *h, const char *symbol, const int64_t *dims,
                    Tensor *const *args, Tensor **results, CTiming *timing);

#endif
