/* SPDX-License-Identifier: Apache-2.0 */
/* Between grammar/einsum.{l,y} and front/einsum.c. Nobody else includes this. */
#ifndef FRONT_EINSUM_PARSE_H
#define FRONT_EINSUM_PARSE_H

#include "front/einsum.h"

typedef union EinsumValue {
    uint32_t code;
} EinsumValue;

typedef struct EinsumScan {
    Ctx *ctx;
    Arena *arena;
    EinsumText *text;
    uint32_t source;
    uint32_t at;    /* offset of the next byte */
    uint32_t first; /* item with which the current term begins */
    bool dots;      /* the current term has an ellipsis */
    bool failed;
} EinsumScan;

void einsum_scan_advance(EinsumScan *s, Span *span, size_t n);
bool einsum_scan_label(EinsumScan *s, EinsumValue *value, const char *text, size_t n,
                       Span span);
void einsum_scan_dot(EinsumScan *s, Span span);
void einsum_scan_bad(EinsumScan *s, char c, Span span);
void einsum_label(EinsumScan *s, uint32_t code, Span span);
void einsum_dots(EinsumScan *s, Span span);
void einsum_term_end(EinsumScan *s);
void einsum_output(EinsumScan *s, Span span);
void einsum_unexpected(EinsumScan *s, Span span, const char *found);

#endif
