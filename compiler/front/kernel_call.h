/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a kernel while it is looked at: what check_operands.c finds out of its operands, and check_kernel_call.c then does. Nobody
 * else includes this. */
#ifndef FRONT_KERNEL_CALL_H
#define FRONT_KERNEL_CALL_H

#include "front/check_kernel.h"

typedef struct Operand {
    AstId ast;
    CheckedExpr *e;
    Statement own; /* that it is */
    bool indexed;  /* its indices have names */
    uint32_t n_own;
    int32_t own_label[RANK_LIMIT]; /* of the parameter's dimensions */
    uint64_t batch;
    int32_t batch_label[64];
    bool in_place; /* the value itself is the argument */
    uint32_t value;
} Operand;

typedef struct Named {
    AstId ast;
    Sym name;
    Sym dim; /* of the called kernel, as a parameter names it; null: none does */
    bool used;
} Named;

typedef struct Calling {
    Kern *k;
    AstId ast;
    AstNode n;
    uint32_t head;
    AstNode params, results; /* of the kernel */
    uint32_t n_operands;
    Operand *operand;
    uint32_t n_named;
    Named named[RANK_LIMIT];
    uint32_t n_index;
    BatchIndex index[64];
} Calling;

/* The name of the kernel that is called. */
static inline const char *kernel_name(const Calling *c)
{
    return c->k->c->heads.at[c->head].kernel->name->text;
}

/* Is there a parameter that the kernel changes? */
bool takes_inout(const Calling *c);
/* The operands as statements of their own, the indices that the brackets name, and which of each operand's are those or batch.
 * False after a report. */
bool operands_check(Calling *c);
bool named_check(Calling *c);
bool indices_check(Calling *c);
/* Of the operand, the extent of dimension d of its parameter. */
Dim own_extent(const Calling *c, const Operand *o, uint32_t d);
/* What words for element types stand for in this call: of several operands the widest. False after a report. */
bool words_bind(const Calling *c, DType *word);
/* The operand in the type t of parameter p. False after a report. */
bool operand_typed(const Calling *c, uint32_t p, DType t);
/* What parameter p is in the caller; the operand's statement is added where it is no value. */
Argument argument_of(const Calling *c, uint32_t p, const Value *param);
void say_param(const Calling *c, Diagnostic *d, uint32_t p);

#endif
