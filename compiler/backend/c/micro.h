/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of register tiles, as the files see them that print them: macros that are instantiated for each instruction set. */
#ifndef BACKEND_C_MICRO_H
#define BACKEND_C_MICRO_H

#include "backend/c/emit.h"
#include "backend/c/isa.h"

/* Vectors of one type side by side, or single elements; in plain C both are numbers. */
typedef struct Run {
    int64_t lanes, n;
    bool vectors;
} Run;

/* A group of columns: vectors, the widest first, and what is left of them. */
#define MOST_RUNS 5 /* of 64, 32 and 16 bytes, or fewer, and elements */
typedef struct Columns {
    int64_t from, width; /* elements */
    uint32_t n;
    Run run[MOST_RUNS];
} Columns;

/* Parameters of a macro, and what stands for them in a call. */
typedef struct Arguments {
    Text names, values;
} Arguments;

/* Macros that are printed: each text once, whoever needs it. */
typedef struct Macro {
    const char *name, *text; /* '@' stands for the name in the text */
} Macro;

typedef struct Macros {
    Arena *arena;
    VEC(Macro) list;
    Names names;
    Text text; /* all of them */
} Macros;

typedef struct Printer {
    Tiles *tiles;
    Macros *macros;
    CWriter w; /* of lines of the macro being printed */
    const TileShape *s;
    const Isa *isa;
    DType part;     /* of the numbers in vectors */
    int64_t width;  /* of them in a line of the columns */
    bool both;      /* rows are complex: a sum is x and w */
    bool whole;     /* nothing is complex */
    bool streams;   /* it can store past the caches */
    int64_t passes; /* loops over the sum */
    IsaDots
        dots; /* what the instruction set adds in words, where this is a tile of dot products */
} Printer;

/* ---- emit_micro.c: the part of a tile that fits registers ---- */

/* The macro for so many rows of these columns. */
const char *block_macro(Printer *p, int64_t rows, const Columns *x);
/* Its lines, for these rows of a tile of so many columns. */
void block_lines(Printer *p, int64_t rows, const Columns *x, const char *from, const char *to,
                 const char *columns);
/* What it gets beside its rows. */
void block_arguments(Printer *p, const Columns *x, Arguments *out);
/* How many elements a line of them has. */
const char *columns_width(Printer *p, const Columns *x);

/* ---- emit_macro.c ---- */

/* A line for all vectors of run g. */
void run_put(Printer *p, uint32_t g, const char *format, ...) PRINTF_LIKE(3, 4);
/* "V", "V1": a name of run g. */
const char *run_name(Printer *p, const char *name, uint32_t g);
/* Begins without any; adds one. */
void arguments_init(Arguments *x, Arena *a);
void argument_put(Arguments *x, const char *name, const char *value);
void argument_number(Arguments *x, const char *name, int64_t value);
/* The macro of this text, which is printed unless there is one. '@' in it stands for its name: `wish`, or one like it. */
const char *macro_use(Macros *m, const char *wish, const char *text);
/* "#define HEAD" and the lines, which go on behind each other's ends. */
void macro_put(Text *out, const char *head, const char *lines);

/* ---- emit_pairs.c: tiles of complex numbers ---- */
/* The signs that conjugated operands have, as variables. */
void pairs_signs(Printer *p);
/* Variables that the next ones need. */
void pairs_factors(Printer *p, const Columns *x);
/* A line for each: the sums of row r become what is stored. */
void pairs_finish(Printer *p, const Columns *x);

/* ---- emit_term.c: what tiles fold that is no product ---- */
TileTerm term_of(Arena *a, const Kernel *k, const Product *p);
/* What accumulators begin with. */
const char *term_start(Printer *p, Op fold);
/* Statements that fold the term of a row's and a column's element into a variable, or a value into it; `type`: of vectors, null: these are
 * elements. */
const char *term_step(Printer *p, const char *type, const char *row, const char *column,
                      const char *into);
const char *term_fold(Printer *p, const char *type, const char *into, const char *value);

/* ---- emit_dot.c: tiles of dot products of integers ---- */
/* Do the columns' bytes change their top bit? Then sums of rows are taken off at the end. */
bool dot_is_flipped(const Printer *p);
/* A statement that adds the dot products of a row's word and a column's, or a vector's, words to a variable. */
const char *dot_step(Printer *p, const char *type, const char *row, const char *column,
                     const char *into);
/* The sums of R rows, side by side, as variables; a step of them; as an array s[R]. */
void dot_sums_begin(Printer *p, int64_t rows);
void dot_sums_step(Printer *p, int64_t rows);
void dot_sums_end(Printer *p, int64_t rows);
/* Functions and macros of dot products that the text of the tiles uses. */
void dots_emit(const Tiles *t, const char *used, Text *out);

/* ---- emit_tables.c: tables of functions, and which runs ---- */
const char *shape_name(const Tiles *t, const TileShape *s);
const char *tiles_table(const Tiles *t); /* the type of the tables of functions */
void join_emit(Tiles *t, DType type, JoinKind kind, Text *out);
void table_macro(const Tiles *t, Text *out); /* TDSL_TABLE(ISA), or TDSL_TABLE(ISA, BASE) */
void best_emit(const Tiles *t, Text *out);

#endif
