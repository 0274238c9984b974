/* SPDX-License-Identifier: Apache-2.0 */
/* The printer of C, inside: what its files share. It prints what a LEGAL kernel says and
 * decides nothing; it knows loops, buffers and scalar expressions, and no contractions.
 *
 *   emit.c         the files: header, helpers, kernels, list
 *   emit_entry.c   signatures, checks of sizes, workspace, tables
 *   emit_stmt.c    loops, buffers, scalar tile statements
 *   emit_tile.c    register tiles: functions of named vectors, in variants by instruction set
 *   emit_expr.c    addresses and scalar expressions
 *   emit_help.c    static inline functions, made when first used */
#ifndef BACKEND_C_EMIT_H
#define BACKEND_C_EMIT_H

#include "backend/c/names.h"
#include "loop/walk.h"

/* The helper functions of one file, in order of first use (those they need come before). */
typedef struct Helpers {
    Arena *arena;
    Names names;  /* of what is defined */
    Names macros; /* of kernels' headers */
    Text text;
    bool math;        /* <math.h> is needed */
    bool complex;     /* <complex.h> is needed */
    uint32_t vectors; /* bit per VectorType used: see emit_tile.c */
} Helpers;

/* A long operand of the expression being printed, and what it was named. */
typedef struct Temp {
    const char *text;
    const char *name;
} Temp;

typedef struct Emitter {
    Ctx *ctx;
    Arena *arena;
    const Kernel *k;
    const char *symbol; /* of the kernel */
    Helpers *help;
    Names names; /* of the kernel: file scope and function scope in one */
    const char **dim;
    const char **var;
    const char **buf;
    struct {
        const char *bytes, *size, *need, *none, *ws;
    } own;           /* variables of the entry functions */
    bool *scalar;    /* [bufs]: a C variable rather than an array */
    Text *out;       /* the function being printed */
    Text *functions; /* register tiles, printed before it */
    VEC(Temp) temps;
    uint32_t n_temps; /* t1, t2, ... in the function being printed */
    Sym last_name;    /* the last value announced in a comment */
    uint32_t n_tiles; /* register tiles of the kernel */
    /* register tiles */
    bool in_tile;         /* a register tile is being printed */
    int64_t vector_bytes; /* of its widest vectors; 0: plain C */
    VEC(Temp) loads;      /* of the statement being printed */
    VEC(const char *) load_names;
    Map part_at; /* parts of accumulators: see part_name */
    VEC(const char *) part_names;
    int64_t acc_lane; /* of the element last asked for within its part; -1: the part is an
                         element */
} Emitter;

/* ---- emit_expr.c ---- */

/* C text and how tightly it binds. */
typedef enum Binding { BIND_ATOM, BIND_UNARY, BIND_PRODUCT, BIND_SUM, BIND_LOOSE } Binding;
typedef struct CText {
    const char *at;
    Binding binding;
} CText;

const char *c_type(DType t);    /* as stored: "float", "uint16_t", ... */
const char *c_compute(DType t); /* as computed with: "float" for f16 and bf16 */
const char *c_dim_text(const Emitter *e, Dim d);
const char *affine_text(const Emitter *e, Affine x, Binding within);
/* Start and end of a range as C; `atom_hi` is fit for the right side of '<'. */
const char *range_lo(const Emitter *e, Range r);
const char *range_hi(Emitter *e, Range r);
/* The position of buf[at] counted in elements: "(i - m) * x + k". */
const char *offset_text(const Emitter *e, BufRef buf, const Affine *at);
/* The element itself, fit to be read (converted) or assigned (raw). */
const char *element_text(const Emitter *e, BufRef buf, const Affine *at);
const char *number_text(Emitter *e, Number n);
/* May print temporaries before the statement that uses the value. */
CText expr_text(Emitter *e, const Expr *x);
const char *in_parens(Emitter *e, CText x, Binding within);
/* "a fold x" as an expression of the accumulator's type. */
CText fold_text(Emitter *e, Op fold, DType t, CText a, CText x);
/* A value of type t as it is stored. */
const char *stored_text(Emitter *e, DType t, CText value);

/* ---- emit_help.c: each returns the function's name ---- */
void helpers_init(Helpers *h, Arena *arena);
const char *help_op(Helpers *h, Op op, DType in, DType out);
const char *help_cast(Helpers *h, DType from, DType to); /* null: a plain C cast does it */
const char *help_fixed(Helpers *h, const char *name);    /* "tdsl_min", ... */

/* More tile statements than this are not printed into one file: no C compiler takes it in
 * reasonable time. */
#define EMIT_STATEMENTS 40000

/* ---- emit_stmt.c ---- */
/* One line of C, broken at blanks where it is too long. */
void line_put(Text *out, const char *line);
/* A line for the preprocessor. */
void directive_put(Text *out, const char *line);
void line_printf(Emitter *e, const char *format, ...) PRINTF_LIKE(2, 3);
/* Where the next buffer of the workspace goes: `base` + `offset`. */
typedef struct Place {
    const char *base;
    int64_t offset;
} Place;
void block_emit(Emitter *e, Stmt *const *body, uint32_t n, Place ws);
void tile_emit(Emitter *e, const Stmt *s);
/* Are there buffers of the workspace among these statements? */
bool needs_workspace(const Kernel *k, Stmt *const *body, uint32_t n);
bool bytes_fixed(const Buffer *b, int64_t *bytes); /* rounded up to 64 */
const char *bytes_text(Emitter *e, const Buffer *b);

/* ---- emit_tile.c ---- */
/* Does this block, from an ACC buffer of rank >= 1 on, make a register tile? */
bool is_register_alloc(const Kernel *k, const Stmt *s);
/* Prints the statements as a function, and its call where we are. */
void register_tile_emit(Emitter *e, Stmt *const *body, uint32_t n);
bool is_unrolled(const Stmt *s);
void unrolled_emit(Emitter *e, const Stmt *s);
void acc_declare(Emitter *e, BufRef buf);
void vector_types_emit(const Helpers *h, Text *out);

/* ---- emit_entry.c: what has no `out` prints to e->out ---- */
void prototype_emit(Emitter *e, Text *out, bool header);
void kernel_header_emit(Emitter *e, Text *out);
void kernel_sizes_emit(Emitter *e);
void kernel_entry_emit(Emitter *e, const Text *body);
void kernel_info_emit(Emitter *e, const char *source);

#endif
