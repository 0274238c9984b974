/* SPDX-License-Identifier: Apache-2.0 */
/* The function of a register tile being printed, as the files see it that print it. */
#ifndef BACKEND_C_MICRO_H
#define BACKEND_C_MICRO_H

#include "backend/c/emit.h"
#include "backend/c/isa.h"

/* Vectors and single elements side by side: those of one group of columns. */
typedef struct Parts {
    int64_t from, width; /* elements */
    uint32_t n;
    int64_t lanes[16];
} Parts;

typedef struct Printer {
    Tiles *tiles;
    Text *out;
    const TileShape *s;
    const Isa *isa;
    DType part;     /* of the numbers in vectors */
    int64_t width;  /* of them in a line of the columns */
    bool w;         /* rows are complex */
    bool whole;     /* nothing is complex */
    bool streams;   /* it can store past the caches */
    int64_t passes; /* loops over the sum */
} Printer;

/* ---- emit_micro.c ---- */
void micro_put(Printer *p, const char *line);
void micro_open_loop(Printer *p, const char *var, int64_t from, int64_t to, int64_t step);
void micro_close(Printer *p);
/* Of a vector of so many lanes, or of an element. */
const char *micro_type(Printer *p, int64_t lanes);

/* ---- emit_pairs.c: tiles of complex numbers ---- */
/* The signs that conjugated operands have, as variables. */
void pairs_signs(Printer *p);
/* The sums of a part of the tile become what is stored. */
void pairs_finish(Printer *p, int64_t rows, const Parts *x);
/* The body of a function without vectors. */
void pairs_plain(Printer *p);

#endif
