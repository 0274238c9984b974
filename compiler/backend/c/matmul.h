/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products of two operands that is cut by levels, as the files see it that make loops of it. */
#ifndef BACKEND_C_MATMUL_H
#define BACKEND_C_MATMUL_H

#include "backend/c/legalise.h"
#include "loop/term.h"

#define PANEL_MOST ((int64_t)1 << 28) /* elements */
#define SUM_MOST   512                /* of a sum that is one block, */
#define SUM_BLOCK  256                /* else blocks of so many */

/* Rows are the operand's that is packed row by row, columns the vectors'. */
#define SIDES 2

typedef struct Matmul {
    Legaliser *l;
    const Stmt *s;
    const Schedule *b;
    DType t;
    FoldTerm term;         /* its operands by role: ROLE_M, ROLE_N */
    uint32_t index[3];     /* the first label, by role */
    int64_t tile[SIDES];   /* of the register tile */
    bool packed, unit_dst; /* the first column has unit stride in the destination */
    int64_t group; /* lines of a group of the panels, for dot products of integers; or 0 */
    Subst *subst;  /* of the indices that have become loops */
    uint32_t n_subst;
    StmtBlock *around; /* where the statement stands */
    uint32_t
        n_bounds; /* of a term's condition (legalise_where.c): what must be at least 0 for it */
    Affine bound[MASK_CONDITIONS];
    Affine first[SIDES]; /* the row and the column at which the register tile begins */
} Matmul;

/* The variable of an index of the statement. */
static inline VarRef matmul_var(const Matmul *m, uint32_t index)
{
    return m->s->index[index].var;
}

/* ---- matmul.c ---- */
void matmul_subst(Matmul *m, uint32_t index, Affine by);
/* A loop over an index, one position at a time. */
Affine matmul_loop(Matmul *m, uint32_t index, Range range);
/* Marks as parallel, of the loops that were opened inside of `outside`, the outermost that has enough iterations to be cut
 * well, or else the longest. */
void matmul_share(Matmul *m, const StmtBlock *outside);
/* The load that a factor is made of. */
const Expr *matmul_load(const Matmul *m, ScheduleRole side);
/* What panels hold of an operand: that of the sum, or the parts of it where the operand is real and the sum is not; in groups the operand's
 * own type, or i16 beside one of 16 bits. */
DType matmul_panel_type(const Matmul *m, ScheduleRole side);
/* The load with the loops' variables in place, as panels hold it. */
const Expr *matmul_packed(Matmul *m, ScheduleRole side);
/* The factor as the sum has it, made of what panels hold, or of the load where it stands. */
const Expr *matmul_factor(Matmul *m, ScheduleRole side, const Expr *held);
/* Says what the target cannot do. */
void matmul_refuse(Matmul *m, const char *problem);

/* Does matmul_sum_block open no loop, since the sum is short, or of integers in groups? */
bool matmul_sum_is_one(const Matmul *m, Range sum);
/* Opens a loop over blocks of a long sum; else there is one block. */
Range matmul_sum_block(Matmul *m, Range sum);
/* The statement just added begins with all loops over parts of the sum that are open. */
void matmul_begins(Matmul *m);
/* Does a product add to what is there, not, or not in the first iteration of the loops over parts of the sum? */
typedef enum MatmulBegins { BEGINS_NOT, BEGINS_ALWAYS, BEGINS_FIRST } MatmulBegins;
/* dst[at] += sum of a * b, or of the term of both, for a register tile (product.h). By role: the indices and their ranges.
 * Where that is the statement's destination, times `by`. */
void matmul_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                    const Affine *at, const Expr *a, const Expr *b, MatmulBegins begins);

/* ---- legalise_where.c: sums of products under a condition on row or column and the position in the sum ---- */
/* Takes the condition of the term apart. False: it does not bound the one index of the sum from below
 * and above once at most, by the row, the column and loops around. */
bool where_of(Matmul *m);
/* The innermost open loop, if it is the one that the range of `role`, rows or columns, begins at, leaves out those that the condition
 * leaves nothing of within the ranges of the others. */
void where_loop(Matmul *m, ScheduleRole role, const Range *range);
/* The product with terms absent that the condition leaves out, as matmul_product; it begins not. */
void where_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                   const Affine *at, const Expr *product);

/* ---- legalise_packed.c: both operands are packed; opens loops that the caller closes ---- */
void packed_emit(Matmul *m);

#endif
