/* SPDX-License-Identifier: Apache-2.0 */
/* Between format.c, which reads pieces and puts them in lines, and format_line.c, which lays out one of these lines. */
#ifndef FRONT_FORMAT_PARTS_H
#define FRONT_FORMAT_PARTS_H

#include "base/text.h"
#include "base/vec.h"

#define FORMAT_WIDTH 100

typedef enum PieceKind {
    PIECE_NAME,   /* or a keyword */
    PIECE_NUMBER, /* a truth value too */
    PIECE_STRING,
    PIECE_SIGN,    /* an operator, a bracket, a comma */
    PIECE_COMMENT, /* between the tokens of one line */
    PIECE_LINE     /* a comment after which a new line begins */
} PieceKind;

/* A token or a comment, with what is known of its place. */
typedef struct Piece {
    PieceKind kind;
    Str text;
    uint32_t depth; /* of brackets around it; a bracket is at the depth of what is around it */
    uint32_t group; /* of operands and operators between two commas or brackets */
    bool unary, in_index, tight_comma, boxed; /* boxed: between '[' and ']' */
    bool own_line;                            /* a comment that begins its line */
} Piece;

typedef struct Pieces {
    VEC(Piece) at;
    VEC(bool) sums; /* of each group: does it add or subtract? */
} Pieces;

/* Fills in all of a piece but its text and kind. */
void format_places(Pieces *p, Arena *arena);
/* The pieces [from, to) as one line or several, each but the first `indent` blanks and four more from the margin. */
void format_line(const Pieces *p, uint32_t from, uint32_t to, uint32_t indent, Text *out);
/* The columns that they take on one line, or UINT32_MAX where a comment ends the line between them. */
uint32_t format_width(const Pieces *p, uint32_t from, uint32_t to);
bool piece_is(const Piece *piece, const char *text);

#endif
