/* SPDX-License-Identifier: Apache-2.0 */
/* What each name of a program is, from its tree alone: a text with mistakes has names too. Types and extents come from the
 * checked program where it has them. */
#ifndef DRIVER_LSP_NAMES_H
#define DRIVER_LSP_NAMES_H

#include "base/map.h"
#include "front/check.h"

typedef enum LspKind {
#define LSP_KIND(id, word, token) LSP_##id,
#include "driver/lsp/kinds.def"
    LSP_KINDS
} LspKind;
const char *lsp_kind_word(LspKind kind);

#define LSP_NO_KERNEL UINT32_MAX

typedef struct LspSymbol {
    LspKind kind;
    Sym name;
    uint32_t kernel;    /* that it is a name of, in `kernels`; or LSP_NO_KERNEL */
    Span at;            /* its definition; source 0: the language's own */
    Span statement;     /* of an index: where it has this meaning */
    const char *detail; /* a line of the language, "T: f64[o, v]"; or null */
    const char *about;  /* a phrase, or null */
} LspSymbol;

typedef struct LspUse {
    Span at;
    uint32_t symbol;
    bool writes;
} LspUse;

typedef struct LspKernel {
    Sym name;
    Span span, at; /* all of it, and its name */
    uint32_t symbol;
    const CheckedKernel *checked; /* or null: only others call it, or it is of another file */
} LspKernel;

typedef struct LspNames {
    VEC(LspSymbol) symbols;
    VEC(LspUse) uses; /* of the main file, in the order of its text */
    VEC(LspKernel) kernels;
    bool includes; /* files, not only libraries */
} LspNames;

void lsp_names(Ctx *ctx, const Program *p, LspNames *out);

/* words.c: the words of the language by number, null past the last. */
typedef struct LspWord {
    LspKind kind;
    const char *name, *detail, *about;
} LspWord;
bool lsp_word(Arena *arena, uint32_t number, LspWord *out);

#endif
