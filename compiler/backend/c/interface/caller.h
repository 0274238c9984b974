/* SPDX-License-Identifier: Apache-2.0 */
/* Wrappers for callers in other languages (--emit=hpp, fortran, rust): they take arrays with their shapes, find the open dims in them,
 * compare every extent with the kernel's head, also those that are computed, and bring the workspace. What all languages share
 * is here: the names of one kernel, and the text of its extents. */
#ifndef BACKEND_C_INTERFACE_CALLER_H
#define BACKEND_C_INTERFACE_CALLER_H

#include "backend/c/interface/entry.h"
#include "backend/ctext/names.h"

/* How a language writes what shapes are made of. */
typedef struct Dialect {
    const char *const *taken; /* words that no parameter is called; ends with null */
    void (*axis)(Text *out, const char *array, uint32_t axis);
    void (*number)(Text *out, int64_t n); /* 0 or more */
    const char *divide;                   /* a function of two numbers, 0 where the second is */
    bool lower;    /* A and a are one name, and 40 characters are enough */
    bool reversed; /* axes are counted from 1, the last one of C first */
} Dialect;

/* A kernel as its callers see it. */
typedef struct Caller {
    Arena *arena;
    const Kernel *k;
    const Dialect *dialect;
    const char *symbol; /* in C */
    const char *name;   /* of the wrapper */
    Names names;        /* of the wrapper's parameters and locals */
    const char **dim;   /* [open dims] */
    const char **arg;   /* [args] */
    const char **value; /* [open dims] how the arguments give it; null: the caller does */
    uint32_t n_found;   /* in the order in which they are found: */
    uint32_t *found;    /* [open dims] */
} Caller;

/* `module`: names of the file, in which the wrapper's is taken. */
void caller_init(Caller *c, Arena *arena, const Kernel *k, const char *symbol,
                 const Dialect *dialect, Names *module);
const Buffer *caller_buffer(const Caller *c, uint32_t arg);
/* An argument that is a pointer in C and one number to the caller. */
bool caller_is_number(const Caller *c, uint32_t arg);
bool caller_writes(const Caller *c, uint32_t arg);
/* "n + k - 1" with the caller's names, in the dialect; as the kernel's head writes it. */
const char *caller_extent(const Caller *c, Dim d);
const char *caller_written(const Caller *c, Dim d);
/* The head as a comment: `mark` before it. */
void caller_head(const Caller *c, Text *out, const char *mark);

/* What is printed into a file. */
typedef struct CallFile {
    Arena *arena;
    const KernelModule *m;
    const ExportedName *name;
    const char *header; /* as it is included */
    const char *stem;   /* of the header, as an identifier */
    const char *source, *tool;
} CallFile;

void hpp_emit(const CallFile *f, Text *out);
void fortran_emit(const CallFile *f, Text *out);
void rust_emit(const CallFile *f, Text *out);
void manifest_emit(const CallFile *f, Text *out);

#endif
