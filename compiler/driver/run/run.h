/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run: the arguments of a kernel from words and files, its run by the interpreter or as compiled C, and what is
 * said of the results. */
#ifndef DRIVER_RUN_RUN_H
#define DRIVER_RUN_RUN_H

#include "driver/files.h"
#include "driver/head.h"
#include "driver/input.h"
#include "driver/run/npy.h"
#include "driver/options.h"
#include "driver/tool.h"

/* Seconds that a rank waits for the others: ranks compile and compute at their own pace. */
#define RUN_TIMEOUT      600
#define RUN_TIMEOUT_MOST 1000000

/* All of it, between reading the command line and writing files. */
bool run_tool(ToolRun *t);

/* One NAME=VALUE; or a VALUE without a name, which is null then: of the operand of -e, or the parameter, of this number. */
typedef struct RunValue {
    Str name;
    uint32_t number;
    const char *text;
    Tensor *array;       /* of a .npy VALUE; null for words and numbers */
    const NpyFile *file; /* the array has no elements here: each rank reads its own */
    bool used;
} RunValue;

typedef struct RunValues {
    VEC(RunValue) list;
} RunValues;

/* Reads the .npy files among the values; casts them to `cast` unless it is DTYPE_NONE. `by_ranks`: of those that need no change only the extents are
 * read. False after a diagnostic. */
bool run_values_read(Ctx *ctx, Arena *arena, const Options *o, bool named, DType cast,
                     bool by_ranks, RunValues *out);

typedef struct RunArguments {
    int64_t *dims;         /* of all: those that are given, then computed ones */
    Tensor **args;         /* [params] */
    const NpyFile **files; /* [params], or null: the array is in memory */
    uint32_t n_args;
} RunArguments;

/* Binds values to the parameters and open dims of the kernel, which came from `in`; -D binds dims too.
 * False after diagnostics. */
bool run_bind(const Input *in, const Head *h, RunValues *values, RunArguments *out);

/* describe.c: --describe of one kernel; `alone`: the input has no other. */
void run_describe(Arena *arena, const Head *h, const char *input, bool alone, Text *out);

/* "name: dtype[shape] min max sum first elements" */
void run_print_summary(const char *name, const Tensor *t, Text *out);
/* "NAME[1,2] is V", or "NAME is V" of no dimensions. */
void run_print_element(const char *name, const Tensor *t, const int64_t *at, Text *out);
/* "NAME sum=S wsum=W", weights (i mod 97) + 1; exact integers where the result is integral. */
void run_print_checksum(const char *name, const Tensor *t, Text *out);

#endif
