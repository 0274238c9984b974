/* SPDX-License-Identifier: Apache-2.0 */
/* What the dumps of graphs, fusion, schedules and kernels have in common beyond terms: how types, dims, numbers, values
 * and the heads of modules and kernels are printed, and how they are read back. */
#ifndef DUMP_TEXT_H
#define DUMP_TEXT_H

#include "dump/tree.h"
#include "op/number.h"
#include "op/required.h"
#include "op/symmetry.h"

/* ---- printing (write.c) ---- */
void dump_label(Text *out, int32_t label); /* a..z, A..Z, l52, l53, ... */
int32_t dump_label_number(Sym name);       /* of a name that it prints, or -1 */
void dump_dim(Text *out, const DimTable *dims, Dim d);
void dump_type(Text *out, const DimTable *dims, DType dtype, uint32_t rank, const Dim *shape);
void dump_shape(Text *out, const DimTable *dims, uint32_t rank, const Dim *shape);
/* ` sym(0 1 2) antisym(3 4)`: what is declared; of groups of dimensions what is exchanged at once, ` sym(0 2, 1 3)` for (0, 1)
 * and (2, 3). Nothing for none. */
void dump_symmetry(Text *out, const Symmetry *declared);
void dump_dim_test(Text *out, const DimTable *dims, const DimTest *test); /* when 15 < o < 64 */
void dump_number(Text *out, Number v);
void dump_value(Text *out, uint32_t value);      /* %4 */
void dump_dims(Text *out, const DimTable *dims); /* a line `dim o ~ 16` for each */
/* ` "tok[n]" at "n" of @W 0 below v guarded at 2:16`, and the end of the line. */
void dump_requirement(Text *out, const DimTable *dims, Sources *sources, uint32_t home,
                      const Requirement *r);
/* `tdsl-dump STAGE 1`, the source's name (null: none), and the pass that left it where others of the stage follow (null: none
 * do). */
void dump_head(Text *out, const char *stage, const char *source_name, const char *after);
/* What all dumps say of a kernel first. */
typedef struct KernelHead {
    Sym name;
    Span span;
    const char *signature;
    SourceStatements statements;
    TextLines ranks;
} KernelHead;
/* `kernel NAME at "FILE" L:C {`, the signature and the statements; one level of indentation is left open. */
void dump_kernel_head(Text *out, Sources *sources, const KernelHead *head);

/* ---- reading (read.c); all report E_DUMP at the place and return false ---- */

/* The state that reading a module's dump needs: dims of the kernel at hand by name, and places. */
typedef struct DumpReader {
    Ctx *ctx;
    Arena *arena; /* of what is made */
    Places places;
    const Term *after; /* of the head: the pass that left the text; null: it does not say */
    uint32_t home;     /* source of the kernel at hand */
    DimTable *dims;    /* of the kernel at hand */
    Map dim_number;    /* by Sym id */
    /* Numbers of names within one line (labels of a node), valid where stamp[id] == now; made by graph_read. */
    int32_t *label_of_sym; /* [syms] */
    uint32_t *stamp;       /* [syms] */
    uint32_t now;
} DumpReader;

void dump_reader_init(DumpReader *r, Ctx *ctx, Arena *arena);
/* Before the lines of a kernel: forgets the dims of the one before. */
void dump_reader_kernel(DumpReader *r, DimTable *dims);
/* The head of a dump of `stage`; *next is the first line after it. *name is null when there is no source line. */
bool read_module_head(DumpReader *r, const DumpTree *tree, const char *stage, const char **name,
                      uint32_t *next);
/* `kernel NAME [at ...] {`, and `signature "..."`, `statement "..." at L:C` and `ranks "..."` as the first lines of its block; *next
 * is the line after. */
bool read_kernel_head(DumpReader *r, const DumpLine *line, KernelHead *head, uint32_t *next);
bool read_dim_line(DumpReader *r, Cursor *c); /* after `dim` */
bool read_dim(DumpReader *r, const Term *t, Dim *out);
/* After `when`, of these dims. */
bool read_dim_test(Cursor *c, const DimTable *dims, DimTest *out);
bool read_type(DumpReader *r, Cursor *c, DType *dtype, uint32_t *rank, const Dim **shape);
/* `WORD [3,n]`; without the word *shape is null. */
bool read_shape_after(DumpReader *r, Cursor *c, const char *word, uint32_t *rank,
                      const Dim **shape);
/* What dump_symmetry prints, of a tensor of this type; *declared is null when there is none. */
bool read_symmetry(DumpReader *r, Cursor *c, DType dtype, uint32_t rank, const Dim *shape,
                   const Symmetry **declared);
/* What dump_requirement prints. */
bool read_requirement(DumpReader *r, Cursor *c, Requirement *out);
/* A number; int, float, bool and complex as I64, F64, BOOL and C128. */
bool read_number(Cursor *c, Number *out);
/* The number as a `dtype`; false (reported) when it is none. */
bool number_fit(Ctx *ctx, Number v, DType dtype, Span span, Number *out);
bool read_span(DumpReader *r, Cursor *c, Span *out); /* after `at` */

#endif
