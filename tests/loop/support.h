/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the kernel IR share: reading a kernel from text, running it on data that
 * follows from a seed, and comparing with a reference written here in plain loops, which knows
 * nothing of kernels. */
#ifndef TESTS_LOOP_SUPPORT_H
#define TESTS_LOOP_SUPPORT_H

#include <stdio.h>
#include <string.h>

#include "dump/tree.h"
#include "loop/loop.h"
#include "support/test.h"

/* tests/loop/kernels/NAME.tir */
char *kernel_text(Arena *a, const char *name);
/* The module, or null after reporting into ctx. */
KernelModule *read_text(Ctx *ctx, const char *text);
/* All diagnostics as text. */
const char *messages(Ctx *ctx);
/* `text` with the n-th (from 0) occurrence of `from` replaced; fails the test when there is
 * none. */
char *replaced(Arena *a, const char *text, const char *from, uint32_t nth, const char *to);

/* Numbers in [-1, 1) that follow from the seed. */
Tensor *random_tensor(Ctx *ctx, uint64_t seed, DType t, uint32_t rank, const int64_t *extent);

/* Runs the first kernel of the module for these dims, every argument of role in, inout and
 * scalar being random. Returns its results (one after the other) or null; args[] are given back
 * as well. */
#define MOST_ARGS 8
typedef struct Run {
    Tensor *args[MOST_ARGS];
    Tensor *results[MOST_ARGS];
} Run;
bool run_kernel(Ctx *ctx, const Kernel *k, const int64_t *dims, uint64_t seed, Run *run);

/* The reference results of the kernels in tests/loop/kernels, from the arguments; one result
 * each. */
typedef double *(*Reference)(Arena *a, const int64_t *dims, Tensor *const *args);
double *reference_matmul(Arena *a, const int64_t *dims, Tensor *const *args);
double *reference_cascade(Arena *a, const int64_t *dims, Tensor *const *args);
double *reference_mlp(Arena *a, const int64_t *dims, Tensor *const *args);
double *reference_mp2(Arena *a, const int64_t *dims, Tensor *const *args);
double *reference_attention(Arena *a, const int64_t *dims, Tensor *const *args);

/* Is the tensor within rounding of these numbers (f32 sums of some hundred terms)? */
bool agrees(const Tensor *t, const double *expected);

#endif
