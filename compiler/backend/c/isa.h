/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets, as a table: one C file holds the functions of a register tile once for each row, and takes
 * the best row that the processor has, at the first call. Another instruction set is another row.
 *
 * A row covers a register tile of any shape by parts that fit its registers: all rows of it and all columns if
 * they do, else columns in groups of two vectors and rows as many as are left registers. So the shape of the tile,
 * and with it the order in which operands are packed, is the same whatever runs.
 *
 * Instructions for dot products of integers are rows of a second table: each stands on a row of the first, whose functions it has for all
 * other tiles, and is printed where a file has tiles of dot products. */
#ifndef BACKEND_C_ISA_H
#define BACKEND_C_ISA_H

#include <stdint.h>

typedef struct Isa {
    const char *name;      /* as in -DTDSL_ISA= and in the names of functions */
    int64_t vector_bytes;  /* of the widest vector; 0: plain C */
    int64_t registers;     /* vectors that they hold */
    const char *attribute; /* of functions */
    const char *test;      /* does the processor have it? Null: it has where the compiler has */
    const char
        *promised; /* where the compiler knows that it runs: nothing else is compiled then */
} Isa;

#define ISA_COUNT 5
extern const Isa isa_table[ISA_COUNT];

/* How neighbouring products are added in a word of 32 bits: pairs of 16 bits alone; four of 8 bits, unsigned by signed (x86); four of 8
 * bits that are both signed or both unsigned (Arm). */
typedef enum IsaDots { DOTS_PAIRS, DOTS_MIXED, DOTS_ALIKE } IsaDots;

typedef struct IsaDotRow {
    Isa isa;
    uint32_t base; /* in isa_table */
    IsaDots dots;
    const char *compiler; /* that knows the instructions; null: `promised` says it */
} IsaDotRow;

#define ISA_DOT_COUNT 3
extern const IsaDotRow isa_dot_table[ISA_DOT_COUNT];

/* How a row covers a tile of `rows` times `vectors` (the last of them may be narrow), each of which takes `sums`
 * registers: two of complex rows. Beside these `held` registers more are in use. */
typedef struct IsaCover {
    int64_t rows, vectors; /* at once */
} IsaCover;
IsaCover isa_cover(const Isa *isa, int64_t rows, int64_t vectors, int64_t sums, int64_t held);

#endif
