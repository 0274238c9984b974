/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum strings, the one meaning of them: for the einsum() of the language and for equations of the command line.
 * Parsing knows letters only; resolving matches them with the operands' shapes. docs/language.md lists where NumPy,
 * opt_einsum and torch disagree and what is done here. Spans are those of the text the string stands in. */
#ifndef FRONT_EINSUM_H
#define FRONT_EINSUM_H

#include "base/ctx.h"
#include "front/shape.h"

#define EINSUM_DOTS 0u /* the "code point" of an ellipsis */

typedef struct EinsumItem {
    uint32_t code; /* Unicode, or EINSUM_DOTS */
    Span span;
} EinsumItem;

typedef struct EinsumTerm {
    uint32_t first, n; /* in EinsumText.items */
    Span span;
} EinsumTerm;

typedef struct EinsumText {
    Span span;
    VEC(EinsumItem) items;
    VEC(EinsumTerm) terms; /* of the operands */
    bool has_output;
    EinsumTerm output;
} EinsumText;

/* Parses the bytes of `text`; null on an error (reported). */
EinsumText *einsum_read(Ctx *ctx, Arena *arena, Span text);

/* ---- resolving ---- */

typedef struct EinsumOperand {
    TensorType type;
    Sym name;      /* or null */
    Span span;     /* where it is given */
    Span declared; /* source 0: nowhere */
} EinsumOperand;

typedef struct EinsumLabel {
    uint32_t code; /* EINSUM_DOTS for the dimensions of an ellipsis */
    Sym name;      /* as written; "..." for those */
    Span span;     /* its first use */
    Dim extent;    /* DIM_WILD when only `?` and 1 are known of it */
    uint32_t uses;
    int32_t out; /* position in the output, or -1: summed */
} EinsumLabel;

typedef struct EinsumSpec {
    uint32_t n_labels;
    EinsumLabel *label;
    uint32_t n_operands;
    uint32_t *axis_count; /* [operand] dimensions */
    int32_t *
        *axis; /* [operand][dimension]: a label; extents of 1 may stand under a longer one */
    uint32_t rank;
    int32_t *out; /* [rank] labels */
} EinsumSpec;

/* `dims` names the open extents of the operands. Null on an error (reported). */
EinsumSpec *einsum_resolve(Ctx *ctx, Arena *arena, const EinsumText *text, const DimTable *dims,
                           const EinsumOperand *operand, uint32_t n_operands);

#endif
