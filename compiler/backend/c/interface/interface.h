/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of printed C: all that its callers see of a kernel, and what stands between a call and the loops.
 *
 *   header.c       the .h file
 *   names.c        names that the file exports
 *   entry.c        prototypes, the function around the loops
 *   sizes.c        the function that counts the workspace
 *   computed.c     extents that are computed from others
 *   required.c     positions that must lie inside
 *   info.c         the table that describes a kernel, and its exported functions
 *   shared.c       checks of calls, macros of exported functions: the same for all kernels of a file
 *   ranks.c        the table of a kernel on ranks
 *   wrapper.c      files for callers in other languages, from caller.c: hpp.c, fortran.c, rust.c, manifest.c; in callers/ what each
 *                  begins with
 *
 * Here is what the printer of the files calls, entry.h and caller.h are within. What has no `out` prints to e->out. */
#ifndef BACKEND_C_INTERFACE_INTERFACE_H
#define BACKEND_C_INTERFACE_INTERFACE_H

#include "backend/c/emit.h"

/* ---- names.c ---- */
typedef struct ExportedName {
    const char *symbol, *macro; /* see Emitter */
} ExportedName;
/* Of all kernels; null after a diagnostic. */
ExportedName *exported_names(Ctx *ctx, Arena *a, const KernelModule *m, const EmitOptions *o);
/* The list of the kernels of file `base`. */
const char *exported_list(Arena *a, const EmitOptions *o, const char *base);
/* "out/ccsd.h" -> "ccsd" as an identifier. */
const char *exported_stem(Arena *a, const char *path);

/* ---- header.c ---- */
/* Says that the file is generated, as comments of C; `mark`: of a language that has them to the end of a line. */
void generated_emit(Text *out, const EmitOptions *o, const char *source, const char *mark);
/* tdsl/abi.h, and the types of complex numbers. */
void abi_emit(Text *out, bool complex);
/* `list`: the name of the table of all kernels; `kernels`, `ranks`: declarations of all, of those on ranks. */
void header_emit(Text *out, const char *list, bool complex, const Text *kernels,
                 const Text *ranks);

/* ---- entry.c, sizes.c, info.c ---- */
void kernel_header_emit(Emitter *e, Text *out);
void kernel_sizes_emit(Emitter *e);
/* The bytes of one piece of a parallel loop, as a number or a variable, which is printed. */
const char *piece_bytes_emit(Emitter *e, const Stmt *s);
void kernel_loops_emit(Emitter *e, const Text *body);
void kernel_info_emit(Emitter *e, const char *source);

/* ---- computed.c ---- */
/* Before anything is printed. */
void computed_begin(Emitter *e, bool file_computes);

/* ---- required.c ---- */
/* The function that looks for positions outside, of a kernel that requires some; `e` is of the kernel that computes them. */
void required_emit(Emitter *e, const Kernel *k);

/* ---- ranks.c ---- */
/* The table of a kernel with a plan for ranks, whose dims have numbers; local kernels are among those of `m`. False after a
 * diagnostic. */
bool ranks_emit(Emitter *e, const KernelModule *m, const ExportedName *name, Text *out);

/* ---- shared.c: what all kernels of a file share ---- */
typedef struct SharedNeeds {
    bool open;      /* some kernel has open dims, */
    bool parallel;  /* a parallel loop, */
    bool requires;  /* positions that must lie inside, */
    bool factors;   /* matrices that it factors, */
    bool workspace; /* or needs one, */
    bool empty;     /* or an argument of known extents that has no elements */
    uint32_t
        extents; /* where some kernel has computed ones, the most that one has, open and computed; else 0 */
} SharedNeeds;
/* What is known before kernels are printed, */
SharedNeeds needs_of_module(Arena *scratch, const KernelModule *m, FileRole role);
/* and of each when its loops have been. */
void needs_add(SharedNeeds *n, const Emitter *e);
void shared_needs(Helpers *h, const SharedNeeds *n); /* the helper functions in it */
/* Types, functions, the macro of a kernel's functions and tables. */
void shared_types_emit(Text *out, const SharedNeeds *n);
void shared_functions_emit(Text *out, const SharedNeeds *n);
void shared_macros_emit(Text *out, const SharedNeeds *n);

/* ---- wrapper.c ---- */
/* The file of --emit=hpp, fortran, rust or manifest. */
void wrapper_emit(const KernelModule *m, const ExportedName *name, const EmitOptions *o,
                  const char *source, OutputSet *set);

#endif
