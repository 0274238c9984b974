/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the printer of NKI modules (print.c): where operands lie, as sums over the loops around. */
#ifndef BACKEND_NKI_PRINT_H
#define BACKEND_NKI_PRINT_H

#include "backend/nki/cores.h"
#include "backend/nki/tile_names.h"
#include "loop/walk.h"

/* What a tile is for, for a comment where it begins. */
typedef struct TileUse {
    bool seen;
    const char *made, *from, *to;
} TileUse;

typedef struct Printer {
    const Kernel *k;
    const NkiChip *chip;
    Text *out;
    NkiBalance balance;
    TileUse *use;  /* [bufs] */
    int64_t *wide; /* [bufs] elements of a bank that are used, of a list of them */
    bool *came_in; /* [instr_places]: reads an inout argument where it came in */
    bool *copied;  /* [args]: an inout argument that is copied to the result first */
    uint32_t place;
    int64_t *env;
    uint32_t depth;
    VarRef loop[LOOP_DEPTH_LIMIT + 1];
    const Range **range; /* [vars] of loops that are open */
    Affine *least;       /* [vars] of them: the first value with which what is printed is run */
    Instr at;            /* the instruction at hand */
    Span span;           /* of the last comment */
    bool commented;
    TileNames names;
    bool noting; /* what is printed is thrown away */
} Printer;

typedef enum Role { ROLE_DST, ROLE_A, ROLE_B, ROLE_S0, ROLE_S1, ROLE_SUM } Role;

static inline const Operand *print_operand_of(const Instr *i, Role role)
{
    switch (role) {
    case ROLE_DST:
        return &i->dst;
    case ROLE_A:
        return &i->a;
    case ROLE_B:
        return &i->b;
    case ROLE_S0:
        return &i->s0.tile;
    case ROLE_S1:
        return &i->s1.tile;
    case ROLE_SUM:
        return &i->sum;
    }
    UNREACHABLE();
}
typedef enum Axis { /* of an operand; AXIS_DIM + d: of HBM */
                    AXIS_P,
                    AXIS_F,
                    AXIS_OFFSET,
                    AXIS_DIM,
                    AXIS_BASE = UINT16_MAX /* of an instruction's positions */
} Axis;

/* What an instruction's source is called: an argument as it came in, or as the kernel has made it. */
const char *print_source(const Printer *p, const Instr *i);
/* `128 * k`; `tensor`: of a dimension in memory, where steps have names. */
void print_term(Printer *p, int64_t coef, const char *var, bool first, bool tensor);
/* Where an operand starts along an axis, and `more`. */
void print_position(Printer *p, Role role, uint32_t axis, int64_t more);
/* The operand, sliced; `name=` before it; and one of an instruction on scalars, a number or a column. */
void print_operand(Printer *p, Role role);
void print_key(Printer *p, const char *name, Role role);
void print_scalar(Printer *p, Role role);
void print_number(Text *out, double v);

#endif
