/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the C target share: kernels from text, taken through every stage. A suite collects kernels with
 * the extents they are to run with; run at the end, it prints all of them into one file, compiles that with every warning,
 * loads it and compares each result, bit for bit, with what the interpreter made of the kernel as it was given. */
#ifndef TESTS_BACKEND_C_SUPPORT_H
#define TESTS_BACKEND_C_SUPPORT_H

#include "support/test.h"

#include "backend/c/c.h"
#include "base/map.h"

#define MOST_DIMS 8

typedef struct Suite Suite;

/* `name` is that of no other suite of these tests: what is compiled lies in build/tests/c-NAME*, and two tests may run at once. */
Suite *suite_new(const char *name);
/* `body` is a kernel of form tiled without its first line; placeholders: {T} the type, {0} its zero, and $1 .. $9 in
 * `words`. The kernel is given a name of its own. Reads, legalises, verifies. */
typedef struct CaseId {
    uint32_t kernel;
} CaseId;
/* After all passes of the C target, each of which leaves a kernel that loop_verify takes. */
Kernel *c_legal(Ctx *ctx, Arena *arena, const Kernel *k);
CaseId suite_kernel(Suite *s, const char *body, DType t, const char *const *words);
/* One run with these values of the open dims. Both forms are interpreted now and must agree. */
void suite_run(Suite *s, CaseId id, const int64_t *dims);
/* And it asks for so many bytes of workspace. */
void suite_run_in(Suite *s, CaseId id, const int64_t *dims, int64_t workspace);
/* Compiles with gcc and clang and runs everything. */
void suite_finish(Suite *s);
/* The same, with every instruction set. */
void suite_finish_all(Suite *s);

/* ---- for single kernels ---- */
KernelModule *read_module(Ctx *ctx, const char *text);
const char *messages(Ctx *ctx);
/* The files of a module, legalised: .c and .h (h null: one file). */
void emit_module(Ctx *ctx, const KernelModule *m, bool with_header, Str *c, Str *h);
/* Writes, compiles with `flags`, returns 0 when the compiler was content; *library then names what was made. */
int compile_text(const char *compiler, const char *flags, Str c, Str h, const char *name,
                 char *library, size_t size);

#endif
