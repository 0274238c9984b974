/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their heads and bodies, kernels in kernels, and what stands outside of them. */
#ifndef FRONT_CHECK_KERNEL_H
#define FRONT_CHECK_KERNEL_H

#include "front/check_statement.h"

/* ---- check_global.c ---- */
void global_evaluate(Check *c, uint32_t global, Span at);

/* ---- check_shard.c ---- */
/* Attributes of the declaration of `v`, whose type is written as `type`. */
void shard_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v);
void partial_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v);

/* ---- check_inline.c ---- */
/* An index that operands of a call have beside those that it names: the statements of the kernel get it too. */
typedef struct BatchIndex {
    Sym name; /* null: a dimension of operands without indices */
    Dim extent;
    Span at;
} BatchIndex;

/* What a parameter of the kernel that is called is in the one that calls. */
typedef struct Argument {
    CheckedExpr *number; /* a constant; null: */
    uint32_t value;
    uint64_t batch; /* its first dimensions are these of the batch indices: bits */
} Argument;

/* softmax_e, softmax_e_2: no name of the kernel, and none that another call has brought. `kernel` may be null. */
Sym inlined_name(Kern *k, const char *kernel, Sym name);

/* Copies the statements of `of`, which has the dims of k, into k; argument[] are its parameters, result[] become its results and
 * batch[] which batch indices those have. False after a report. */
bool kernel_inline(Kern *k, const CheckedKernel *of, const Argument *argument,
                   const BatchIndex *index, uint32_t n_index, Span at, uint32_t *result,
                   uint64_t *batch);

/* ---- check_kernel.c ---- */
/* A kernel of the program, or of a library, which is only called. */
void kernel_declare(Check *c, AstId ast, bool library);
void kernel_check(Check *c, uint32_t head);
/* Declares what the head of `n` does, and checks its statements. Dims that are known stand in k->dim_by_name. */
void kernel_run(Kern *k, const AstNode *n);
void kern_init(Kern *k, Check *c, CheckedKernel *kernel);

/* ---- check_gradient.c ---- */
/* A kernel, or `kernel dE = grad E(x);`, whose kernel has been checked, or is now. */
void head_check(Check *c, uint32_t head);

#endif
