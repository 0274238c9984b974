/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the parts of a value and over statements, in the order of the text, each before
 * what is inside it:
 *
 *     StmtWalk w;
 *     for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w))
 * ...
 *
 * and copies that put something else for what is read. A walk is a stack in the caller's frame.
 * Loops may be nested as deep as loop_verify allows; values twice as deep as that, since passes
 * look at what they are making; a part that is used twice is met twice. */
#ifndef LOOP_WALK_H
#define LOOP_WALK_H

#include "loop/loop.h"

/* ---- values ---- */

typedef struct ExprWalk {
    uint32_t depth;
    struct {
        const Expr *const *at;
        uint32_t left;
    } level[2 * EXPR_DEPTH_LIMIT];
} ExprWalk;

/* The buffer that this part of a value reads, by a load or a gather; BUF_NONE: none. */
BufRef expr_buffer(const Expr *part);
bool expr_reads(const Expr *value, BufRef buf);

/* The parts of a value; null past the last. */
const Expr *expr_first(ExprWalk *w, const Expr *value);
const Expr *expr_next(ExprWalk *w);
/* Leaves out the operands of the part that was given last. */
void expr_skip(ExprWalk *w);
/* The loads alone. */
const Expr *load_first(ExprWalk *w, const Expr *value);
const Expr *load_next(ExprWalk *w);
/* Loads and gathers, what reads buffer `buf`. */
const Expr *read_first(ExprWalk *w, const Expr *value);
const Expr *read_next(ExprWalk *w);

/* Is the value within the limits that loop_verify has for its depth and its parts? For values
 * that nobody has verified; the walks above are for those that fit. */
bool expr_fits(const Expr *value);
/* Parts of the value; `most` when there are as many or more. */
uint32_t expr_size(const Expr *value, uint32_t most);
/* The first load of `buf`, or null. */
const Expr *expr_load_of(const Expr *value, BufRef buf);
uint32_t expr_count_loads(const Expr *value, BufRef buf);
/* What a conversion converts; any other value as it is. */
const Expr *expr_uncast(const Expr *value);
/* Of a factor of a product: what it conjugates, converts once, or both. *conj: is it conjugated? */
const Expr *expr_factor(const Expr *value, bool *conj);
/* The product in `f * (x * y)`, where f is a number, a load or a product of such; any other value as it is, and *factor null. */
const Expr *expr_product(const Expr *value, const Expr **factor);
/* The value in `select(condition, value, n)`, n what joins the fold without a change; any other value as it is, and *condition null. */
const Expr *expr_under(Op fold, const Expr *value, const Expr **condition);
/* A whole number as an expression of indices, loops and open dims; false: it is none. */
bool expr_affine(Arena *a, const Expr *value, Affine *out);
/* Is nothing in it but numbers and scalars? */
bool expr_is_scalar(const Kernel *k, const Expr *value);
/* Does a load, or the value of an index, move with `v`? */
bool expr_uses(const Kernel *k, const Expr *value, VarRef v);
/* Are two values of a kernel the same computation? Equal ones have equal hashes. */
bool expr_eq(const Kernel *k, const Expr *x, const Expr *y);
uint64_t expr_hash(const Kernel *k, const Expr *value);
bool access_uses(const Kernel *k, BufRef buf, const Affine *at, VarRef v);
/* The dimension at which the variable stands alone; the rank: there is none, or it is in another one too. */
uint32_t access_dim(const Kernel *k, BufRef buf, const Affine *at, VarRef v);
/* Sets marked[b] for each buffer that is read. */
void expr_mark_loads(const Expr *value, bool *marked);
/* Marks what a TILE reads or writes, and nothing else, of so many buffers. */
void tile_mark_uses(const Stmt *s, uint32_t n_bufs, bool *marked);

/* A copy of the value, all of it in the arena. `change` is called with a copy of each load and of each
 * value of an index, in order, and may set its buffer and positions. */
typedef void PlaceChange(void *user, Expr *place);
const Expr *expr_with_places(Arena *a, const Expr *value, PlaceChange *change, void *user);

/* A variable, and the position that replaces it: of several, one after the other. */
typedef struct Subst {
    VarRef var;
    Affine by;
} Subst;
const Affine *access_subst(Arena *a, uint32_t rank, const Affine *at, const Subst *s,
                           uint32_t n);
const Expr *expr_subst(Arena *a, const Kernel *k, const Expr *value, const Subst *s,
                       uint32_t n);

/* ---- statements ---- */

typedef VEC(Stmt *) Stmts;

typedef struct StmtWalk {
    bool entered; /* was the statement given last a loop or a block? */
    uint32_t depth;
    struct {
        Stmt *const *at;
        uint32_t left;
    } level[LOOP_DEPTH_LIMIT + 2];
} StmtWalk;

/* The statements of a block and of all blocks inside; null past the last. */
const Stmt *stmt_first(StmtWalk *w, Stmt *const *body, uint32_t n);
const Stmt *stmt_next(StmtWalk *w);
/* Leaves out the body of the loop or block that was given last. */
void stmt_skip(StmtWalk *w);
/* Tile statements alone. */
const Stmt *tile_first(StmtWalk *w, Stmt *const *body, uint32_t n);
const Stmt *tile_next(StmtWalk *w);

/* How many statements read a buffer. */
uint32_t kernel_readers(const Kernel *k, BufRef buf);

/* Does the position lie in the tile of the loop's iteration: is it the loop's variable, of a step of 1, or an index of the statement's over the tile? */
bool position_is_tiled(const Stmt *s, Affine at, const Stmt *loop);

#endif
