/* SPDX-License-Identifier: Apache-2.0 */
/* What strategies search: a network whose labels all have extents above 1 (or 0), occur in two operands or in
 * one and the output, and never twice in one operand. Label lists are sorted. Sizes are log2 doubles; exact
 * numbers come back with path/account.c. */
#ifndef PATH_NET_H
#define PATH_NET_H

#include "path/path.h"

struct Net {
    uint32_t n; /* operands, 1 or more */
    uint32_t n_labels;
    const uint32_t *start; /* n + 1 offsets into `label` */
    const uint32_t *label;
    const double *weight; /* log2 of the extent; 0 for extent 0 */
    const uint8_t *open;  /* occurs in the output */
};

static inline uint32_t net_degree(const Net *net, uint32_t operand)
{
    return net->start[operand + 1] - net->start[operand];
}

static inline const uint32_t *net_legs(const Net *net, uint32_t operand)
{
    return net->label + net->start[operand];
}

/* The problem after the free preparation: same operands, kept labels renumbered. */
typedef struct Prepared {
    Net net;
    uint32_t *origin; /* by kept label: the problem's label */
} Prepared;

/* Labels with `skip` set (may be null) count as extent 1. */
void net_prepare(const PathProblem *p, const uint8_t *skip, Arena *arena, Prepared *out);

/* Steps that any best tree may begin with: operands of equal label sets are multiplied, to a fixpoint. What is
 * left is split into connected parts, each a Net of its own. */
typedef struct Part {
    Net net;
    uint32_t
        *operand;    /* by operand of the part: tensor number in the tree under construction */
    uint32_t *label; /* by label of the part: lowest label of the prepared net (others fused
                        with it follow) */
} Part;

typedef struct Reduced {
    PathStep *steps; /* room for n - 1 */
    uint32_t n_steps;
    Part *parts;
    uint32_t n_parts;
} Reduced;

/* `simplify`: multiply twins, and make labels with the same occurrences one (their weights add); not where labels may
 * be sliced. `split`: into connected parts. */
void net_reduce(const Net *net, bool simplify, bool split, Arena *arena, Reduced *out);

/* The operands of label l: holder[start[l] .. start[l + 1]), ascending. */
void net_holders(const Net *net, Arena *arena, const uint32_t **start, const uint32_t **holder);

#endif
