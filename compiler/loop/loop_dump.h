/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the printer of kernels: the text of parts of statements. */
#ifndef LOOP_LOOP_DUMP_H
#define LOOP_LOOP_DUMP_H

#include "dump/text.h"
#include "loop/loop_text.h"

/* ---- loop_text.c ---- */
void loop_put_name(Text *out, char sigil, Sym name);
void loop_put_var(const Kernel *k, VarRef v, Text *out);
void loop_put_affine(const Kernel *k, Affine x, Text *out);
/* `wanted`: the type that a plain constant has in its place. */
void loop_put_value(const Kernel *k, const Expr *e, DType wanted, Text *out);

/* ---- loop_dump_hints.c ---- */
/* After the words of a tile statement's value, or of an alloc's declaration, whose buffer it is. */
void clauses_dump(const Kernel *k, const Stmt *s, Text *out);
/* After the words of the statement that they belong to. */
void hints_dump_threads(const Kernel *k, const Threads *threads, Text *out);
void hints_dump_alloc(const Kernel *k, const Prefetch *p, Text *out);

#endif
