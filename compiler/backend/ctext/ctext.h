/* SPDX-License-Identifier: Apache-2.0 */
/* Text that looks like C, for every back end whose language does: what its printer shares with
 * others. A back end names things (names.h), fills in a CWriter and prints statements; which
 * functions, qualifiers and files there are is its own.
 *
 *   names.c       identifiers, comments and strings
 *   number.c      types and numbers
 *   expr.c        addresses and scalar expressions
 *   line.c        lines and scopes
 *   stmt.c        loops and assignments
 *   help.c        static inline functions of operations, made when first used
 *   help_fixed.c  and those whose text is fixed
 *   help_math.c   functions of real numbers of our own
 *   help_trig.c   and sin and cos,
 *   help_pow.c    and pow
 *   help_sum.c    cascades, in which long sums are added up */
#ifndef BACKEND_CTEXT_CTEXT_H
#define BACKEND_CTEXT_CTEXT_H

#include "backend/ctext/names.h"
#include "loop/walk.h"

/* The helper functions of one file, in order of first use (those they need come before). */
typedef struct Helpers {
    Arena *arena;
    Names names;  /* of what is defined */
    Text types;   /* types and macros that a kernel names itself: they come before kernels, */
    Text text;    /* the functions after them */
    bool math;    /* <math.h> is needed */
    bool complex; /* <complex.h> is needed */
    bool least, most, magnitude; /* so are TDSL_LEAST, TDSL_MOST, TDSL_ABS_{type} */
    uint32_t vectors;            /* bit per VectorType used: see emit_tile.c */
} Helpers;

/* A long operand of the expression being printed, and what it was named. */
typedef struct Temp {
    const char *text;
    const char *name;
} Temp;

/* How many positions a range has, as the function being printed calls it. */
typedef struct Count {
    Range range;
    const char *name;
} Count;
typedef VEC(Count) Counts;

/* The kernel being printed, and where to. */
typedef struct CWriter {
    Arena *arena;
    const Kernel *k;
    Helpers *help;
    Names names; /* of the kernel: file scope and function scope in one */
    const char **dim;
    const char **var; /* of the kernel; emit_gather.c has some of its own behind them */
    const char **buf;
    const char *
        far; /* the flag that near forms of functions set (help_near), or null: whole functions are called */
    bool *scalar;            /* [bufs]: a variable rather than an array */
    Text *out;               /* the function being printed */
    VEC(const Stmt *) loops; /* that are open, outermost first, */
    const Stmt *tile;        /* and the statement that is printed inside of them, or null */
    Counts counts;
    VEC(Temp) temps;
    uint32_t n_temps; /* t1, t2, ... in the function being printed; what these are called: */
    VEC(const char *) temp_names;
} CWriter;

/* ---- expr.c ---- */

/* C text and how tightly it binds. */
typedef enum Binding { BIND_ATOM, BIND_UNARY, BIND_PRODUCT, BIND_SUM, BIND_LOOSE } Binding;
typedef struct CText {
    const char *at;
    Binding binding;
} CText;

/* Is it a multiple of `unit` wherever the loops around stand? */
bool affine_is_multiple(const CWriter *e, Affine x, int64_t unit);
/* What the count of the range is called; null: nothing. */
const char *count_named(const CWriter *e, Range r);
const char *c_type(DType t);    /* as stored: "float", "uint16_t", ... */
const char *c_compute(DType t); /* as computed with: "float" for f16 and bf16 */
const char *c_dim_text(const CWriter *e, Dim d);
const char *affine_text(const CWriter *e, Affine x, Binding within);
/* Start and end of a range as C; `atom_hi` is fit for the right side of '<'. */
const char *range_lo(const CWriter *e, Range r);
const char *range_hi(CWriter *e, Range r);
/* The position of buf[at] counted in elements: "(i - m) * x + k". */
const char *offset_text(const CWriter *e, BufRef buf, const Affine *at);
/* How many elements further it is for the next value of v. */
const char *stride_text(const CWriter *e, BufRef buf, const Affine *at, VarRef v);
/* The element itself, fit to be read (converted) or assigned (raw). */
const char *element_text(const CWriter *e, BufRef buf, const Affine *at);
const char *number_text(CWriter *e, Number n);
/* May print temporaries before the statement that uses the value. */
CText expr_text(CWriter *e, const Expr *x);
const char *in_parens(CWriter *e, CText x, Binding within);
/* "a fold x" as an expression of the accumulator's type. */
CText fold_text(CWriter *e, Op fold, DType t, CText a, CText x);
/* A value of type t as it is stored. */
const char *stored_text(CWriter *e, DType t, CText value);

/* ---- help_fixed.c ---- */
void helpers_init(Helpers *h, Arena *arena);
/* Takes the name; false when there is such a function. */
bool helper_new(Helpers *h, const char *name);
/* Its text, after what it needs; of a type or macro that kernels name. */
void helper_put(Helpers *h, const char *text);
void helper_type_put(Helpers *h, const char *text);
/* ---- help.c, help_fixed.c: each returns the function's name ---- */
const char *help_op(Helpers *h, Op op, DType in, DType out);
/* Of C: crealf, cimagf, creal, cimag. */
const char *help_part(Helpers *h, DType complex, bool imaginary);
/* And of both parts the number. */
const char *help_make(Helpers *h, DType complex);
/* The form of a function for operands near 0, without branches: f(x, &far) sets far where the result is wrong. Null: there is no
 * such form of the operation, and the whole function has no branches. */
const char *help_near(Helpers *h, Op op, DType in);
bool help_has_near(Op op, DType in);
/* The element of an array of elements of this type, at `n` positions that are tested. */
const char *help_gather(Helpers *h, DType t, uint32_t n);
/* Of floats that are storage: from memory to f32, to memory, and f32 rounded to one of them. */
const char *help_loads(Helpers *h, DType t);
const char *help_stores(Helpers *h, DType t);
const char *help_rounds(Helpers *h, DType t);
const char *help_cast(Helpers *h, DType from, DType to); /* null: a plain C cast does it */
const char *help_fixed(Helpers *h, const char *name);    /* "tdsl_min", ... */
bool help_is_fixed(const char *name);                    /* is there one? */

/* ---- help_sum.c ---- */
/* The cascade's type, "tdsl_sum_f64", and functions "tdsl_sum_add_f64", "tdsl_sum_of_f64". */
const char *help_sum(Helpers *h, const Buffer *cascade);
const char *help_sum_add(Helpers *h, const Buffer *cascade);
const char *help_sum_of(Helpers *h, const Buffer *cascade);

/* ---- line.c ---- */
/* A text of lines of C, indented by so many steps. */
void lines_init(Text *t, Arena *a, int indent);
/* One line of C, broken at blanks where it is too long. */
void line_put(Text *out, const char *line);
/* A comment of C around this text, broken as lines are; the text is as text_comment left it. */
void comment_put(Text *out, const char *text);
/* A line for the preprocessor. */
void directive_put(Text *out, const char *line);
void line_printf(CWriter *e, const char *format, ...) PRINTF_LIKE(2, 3);
void scope_begin(CWriter *e); /* indents; the '{' is printed */
/* A line that ends with '{', and what it begins; "} else {". */
void scope_printf(CWriter *e, const char *format, ...) PRINTF_LIKE(2, 3);
void scope_else(CWriter *e);
void scope_end(CWriter *e);
void scopes_end(CWriter *e, uint32_t n);

/* ---- stmt.c ---- */
/* The head of a loop; scope_end ends it. */
void loop_begin(CWriter *e, VarRef var, Range r, int64_t step, ForPart part);
/* Loops over all positions of the indices; scopes_end ends them. */
void loops_begin(CWriter *e, const TileIndex *index, uint32_t n);
/* The same of a loop with a window. */
void window_begin(CWriter *e, const Stmt *s);
/* The statement for one value of its indices. */
void assign_put(CWriter *e, const Stmt *s);

#endif
