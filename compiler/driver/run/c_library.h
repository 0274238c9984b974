/* SPDX-License-Identifier: Apache-2.0 */
/* Emitted C as a loaded library: compiled by a C compiler into a private temporary folder, called through the metadata
 * table of a kernel as any program would. Errors are diagnostics (E_RUN). */
#ifndef DRIVER_RUN_C_LIBRARY_H
#define DRIVER_RUN_C_LIBRARY_H

#include "driver/head.h"
#include "driver/options.h"

typedef struct CLibrary {
    Ctx *ctx;
    Arena *arena;
    void *handle;
    int32_t
        threads; /* that a call may have; OpenMP keeps several, which run its code until the process ends */
    bool without_openmp; /* the C compiler has no OpenMP, and the text could use it */
    double counted_from,
        counted; /* seconds between the begin and the end of counting: profile.h */
} CLibrary;

/* A kernel with its arguments, to be called again and again. `head` to `threads` are the caller's to set; the results are
 * made, as the head lists them. */
typedef struct CCall {
    const Head *head;
    const int64_t *dims;
    Tensor *const *args;
    Tensor **results;      /* [results] */
    int32_t threads;       /* at most; more than 1 need OpenMP */
    double (*clock)(void); /* that times calls; null: tool_clock */
    CLibrary *library;
    const struct tdsl_kernel_info *info;
    void **pointers, *workspace;
    size_t bytes; /* of the workspace */
} CCall;

typedef struct CTiming {
    int64_t repeat;  /* calls to time after a warm one; 0: one call, not timed */
    int32_t threads; /* of a call, at most; more than 1 need OpenMP */
    double median, least, mean;
    uint64_t multiply_adds;
    /* of the fastest call on ranks, seconds of the rank that has most of each; 0: no ranks */
    double moving, computing;
} CTiming;

/* The C compiler and its flags by --cc and --cflags: by default $CC, or cc, and -O2. */
typedef struct CCompiler {
    const char *cc, *cflags;
} CCompiler;
CCompiler c_compiler(Arena *arena, const Options *o);

/* cpus.c: threads of a call by default, `most` at most: the first number of $OMP_NUM_THREADS, as OpenMP reads it; where that says
 * none, the CPUs that this process may use. */
int64_t c_threads(int64_t most);

/* The C file among what was emitted. */
Str c_library_text(const struct OutputSet *outputs);

/* `cflags` are separated by blanks. Close it even when this fails. */
bool c_library_open(CLibrary *b, Ctx *ctx, Arena *arena, Str text, const char *cc,
                    const char *cflags);
/* With OpenMP, if there are several threads and the text has a loop for them; where the C compiler cannot do that, without it and for one
 * thread, or false where they `must` be. `text` ends with a NUL. */
bool c_library_open_threads(CLibrary *b, Ctx *ctx, Arena *arena, Str text,
                            const CCompiler *with, int32_t threads, bool must);
void c_library_close(CLibrary *b);

/* The kernel that is named `symbol` in the C text. Close it even when this fails, before the library. */
bool c_call_open(CCall *call, CLibrary *b, const char *symbol);
/* So many times, from the arguments as they are where an inout changes them; *seconds: of all. */
bool c_call_run(CCall *call, int64_t times, double *seconds);
void c_call_close(CCall *call);

/* Calls the kernel of that head that is named `symbol` in the C text; results as the head lists them. */
bool c_library_call(CLibrary *b, const Head *h, const char *symbol, const int64_t *dims,
                    Tensor *const *args, Tensor **results, CTiming *timing);

/* Of doubles, for qsort. */
int compare_times(const void *x, const void *y);

#endif
