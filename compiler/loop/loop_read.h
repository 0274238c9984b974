/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the reader of kernels: what its files share. Functions report what is wrong and
 * return false then. */
#ifndef LOOP_LOOP_READ_H
#define LOOP_LOOP_READ_H

#include "base/map.h"
#include "dump/text.h"
#include "loop/loop.h"

typedef struct LoopReader {
    DumpReader in;
    Ctx *ctx;
    Arena *arena;
    Kernel *k;
    Map var_of;         /* Sym id -> VarRef */
    Map buf_of;         /* Sym id -> BufRef */
    VEC(bool) declared; /* [bufs]: false while only an `order` line has named it */
} LoopReader;

/* ---- loop_read_parts.c ---- */
bool reader_refuse_name(LoopReader *r, Span span, const char *what, Sym name);
bool reader_affine(LoopReader *r, Cursor *c, Affine *out);
/* The variable that a term `$x` or `x` binds: a new one, or the one of this name. */
bool reader_bind_var(LoopReader *r, const Term *t, VarRef *out);
/* What a term names: `$x` or `x`, `@T`, `@T[i,j]`. */
bool reader_find_var(LoopReader *r, const Term *t, VarRef *out);
bool reader_find_buffer(LoopReader *r, const Term *t, BufRef *out);
bool reader_access(LoopReader *r, const Term *t, BufRef *buf, const Affine **at);
/* `@T : f64[i,j]`, then a last word, which the caller reads. */
bool reader_declaration(LoopReader *r, Cursor *c, const Term **name, Buffer *out);
bool reader_space(LoopReader *r, Cursor *c, Space *out);
/* A buffer of this name: a new number, the one an `order` line gave it, or the one of an alloc
 * in another block. */
bool reader_buffer(LoopReader *r, Span span, const Buffer *b, BufRef *out);
/* End of a statement, with its place in the program. */
bool reader_end(LoopReader *r, Cursor *c, Span *span);

/* ---- loop_read_value.c ---- */
/* `wanted` is the type that a plain constant would have in this place; null after a report. Depth is limited by the tree's. */
const Expr *reader_value(LoopReader *r, Cursor *c, DType wanted);

/* ---- loop_read_clauses.c ---- */
/* Behind the value of a tile statement, or the declaration of an alloc's buffer. */
bool clauses_read(LoopReader *r, Cursor *c, Stmt *s, Buffer *declared);

/* ---- loop_read_hints.c ---- */
bool reader_threads(LoopReader *r, Cursor *c, const Threads **out);
bool reader_prefetch(LoopReader *r, Cursor *c, const Prefetch **out);

/* ---- loop_read_head.c ---- */
/* One line of the head; *is_head is false, and nothing done, when it is a statement. */
bool reader_head_line(LoopReader *r, const DumpLine *line, bool *is_head);

#endif
