/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a tile statement, by the shape of its value; and what a contraction folds: a term of elements of two operands. A product
 * may have factors that are converted or conjugated, and a number that all products are multiplied by, and be absent without a condition,
 * `select(c, product, 0)`; any other term has operations of op_is_in_terms over loads of two accesses, each as often as it likes, of one
 * type or converted to it. */
#ifndef LOOP_TERM_H
#define LOOP_TERM_H

#include "loop/walk.h"

typedef enum TileKind { TILE_FILL, TILE_COPY, TILE_MAP, TILE_REDUCE, TILE_MATMUL } TileKind;

TileKind tile_kind(const Stmt *tile);
const char *tile_kind_name(TileKind kind);
/* Is it a matmul, or one of which all products are multiplied by a number or a scalar? */
bool tile_multiplies(const Stmt *tile);
/* Of a map with sums: the value that is added to them. */
const Expr *tile_summed(const Kernel *k, const Stmt *map);

typedef struct FoldTerm {
    const Expr *operand[2]; /* loads, converted or conjugated */
    const Expr *by;         /* of a product: what it is multiplied by; null: nothing */
    const Expr *condition;  /* of a product: without it the term is absent; null: none */
    const Expr *value;      /* of a term that is no product; null: it is one */
} FoldTerm;

/* False: the value is no such term. */
bool fold_term(const Kernel *k, Op fold, const Expr *value, FoldTerm *out);
/* The term with other operands, and without its condition. */
const Expr *fold_term_of(Arena *a, const Kernel *k, const FoldTerm *t,
                         const Expr *const with[2]);

/* A schedule is of a fold of terms, in form tiled, and gives each index the role that it has; else what is wrong with that of the
 * statement. Null: nothing, or it has none. */
const char *fold_schedule_problem(Arena *scratch, const Kernel *k, const Stmt *s);

#endif
