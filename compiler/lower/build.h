/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: the statements that nests become (build.c), and those that online loops
 * have in addition (online.c). */
#ifndef LOWER_BUILD_H
#define LOWER_BUILD_H

#include "lower/lower.h"

/* How one label of the node being built is indexed. */
typedef struct Position {
    Affine at;  /* absolute position */
    bool local; /* `at` is the local index `var` over `range` */
    VarRef var;
    Range range;
} Position;

/* Where a value is kept: its buffer, and the loop in whose body that lives. */
typedef struct Place {
    BufRef buf;
    uint32_t alloc_loop; /* NEST_NONE: the kernel's body */
} Place;

typedef struct Leaf {
    NodeRef node;
    Place sum, was; /* where it is folded outside of the loop; as in Builder.accumulator */
    BufRef all;     /* a block for each iteration */
} Leaf;

/* Of the iterations of `outer`, or of all of those of `inner` in these. */
typedef struct Leaves {
    uint32_t outer, inner; /* the same, or the one loop in the body of the other */
    VEC(Leaf) list;
} Leaves;

typedef struct Builder {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    const Nest *nest;
    Kernel *k;
    const Residence *residence; /* [nodes]: the nest's */
    Place *storage;             /* [nodes]: where the value is read */
    Place *accumulator;         /* [nodes]: where it is folded, when that is another buffer */
    Place *running;    /* [nodes]: a maximum so far, as leaves of its online loop read it */
    Place *factor;     /* [rules of online sums]: what takes a sum to its maximum so far */
    BufRef indefinite; /* of a kernel that factors matrices, else BUF_NONE */
    bool
        is_step; /* a recurrence's body: what is around its steps allocates that, and looks at it */
    const BufRef *param; /* [params] */
    BufRef *result;      /* [results] */
    VarRef *loop;        /* [items]: variables of the loops that are open, */
    Affine *start;       /* ... and where the tile of an iteration begins */
    Dim *leaves;         /* [items]: iterations of a parallel loop over which sums fold */
    Leaves *open;        /* those of the parallel loop that is open, or null */
    BufRef weight[DTYPE_COUNT]; /* of a sum over pairs, in the loop over these that is open */
    Map locals;                 /* local indices by name, shared by all statements */
    GraphNames names;           /* of the labels; null: nothing has a name */
} Builder;

typedef struct Block {
    VEC(Stmt *) list;
} Block;

/* ---- build.c ---- */

Stmt *build_stmt(Builder *b, StmtKind kind, Span span, Sym name);
/* Allocates the buffer of a value in the body of the loop `scope`; NEST_NONE: in the kernel's. */
void build_storage(Builder *b, Block *to, NodeRef node, uint32_t scope);
/* Items `first` to `end` of the nest, all of the body of a loop or of the nest. */
void build_items(Builder *b, Block *to, uint32_t first, uint32_t end);

/* ---- all of the others ---- */

/* What the program calls the label, as an identifier; `otherwise` where nothing of the kernel has a name. */
const char *build_name(Builder *b, NodeRef node, uint32_t label, const char *otherwise);

/* Over all of a label, or of dimension `d` of the node's value. */
Position build_whole_position(Builder *b, NodeRef node, uint32_t label, Dim extent);
Position build_dimension_position(Builder *b, NodeRef node, uint32_t d);
/* Where the positions of the node that one iteration computes begin. */
Affine build_start(Builder *b, NodeRef node, uint32_t loop);
/* By label of the node, as statements in the body of loop `scope` see it. */
Position *build_positions(Builder *b, NodeRef node, uint32_t scope);
/* Indices of the buffer at `place`, which holds the value of `node`, read or written at
 * `access`. */
const Affine *build_at(Builder *b, Place place, NodeRef node, Access access,
                       const Position *pos);
/* The same of positions of the value, one for each of its dimensions. */
const Affine *build_block_at(Builder *b, Place place, NodeRef node, const Affine *whole);
/* Positions that are affine in what `access` reads. */
const Affine *build_affine(Builder *b, uint32_t n, const Affine *x, Access access,
                           const Position *pos);
/* The value of one step of node `n`: what it assigns, or what joins its fold. */
const Expr *build_value(Builder *b, const Node *n, const Position *pos);
/* What the node is at `access`. */
const Expr *build_expr(Builder *b, NodeRef node, Access access, const Position *pos);
/* Where the node is folded. */
Place build_target(const Builder *b, NodeRef node);
/* A block of the node that lives in the body of loop `alloc_loop`, or all of it in memory. */
Place build_buffer(Builder *b, NodeRef node, uint32_t alloc_loop, Space space, DType t,
                   const char *hint);
void build_alloc(Builder *b, Block *to, BufRef buf);
/* A tile statement over the labels of `n` (those of its output only, unless `all`). */
Stmt *build_tile(Builder *b, Block *to, const Node *n, const Position *pos, bool all);
void build_dst(Builder *b, Stmt *s, NodeRef node, Place place, const Position *pos);
/* The neutral element of a fold. */
void build_fill(Builder *b, Block *to, NodeRef node, Place place, const Position *pos);

/* Does the leaf's statement go on with a fold that has begun before a loop around it? */
bool build_goes_on(const Builder *b, NodeRef node);

/* By what the node's parts are joined. */
Op build_fold(const Node *n);

/* ---- kernel.c ---- */
/* The body of a recurrence, whose statements stand in a loop over steps. */
Kernel *build_step(Ctx *ctx, Arena *arena, const Nest *nest);

/* ---- definite.c ---- */
/* Where matrices that are not positive definite are noted, if the graph, or a step of its recurrences, factors one; else BUF_NONE. */
BufRef build_indefinite_buffer(Builder *b);
/* Before all else: none so far, and arguments that are changed get copies, which are changed; behind all else, these are stored where all
 * matrices were positive definite. */
void build_definite_begin(Builder *b, Block *to);
void build_definite_end(Builder *b, Block *to);
/* Its one element, and what that is while all were. */
const Affine *build_indefinite_at(Builder *b);
const Expr *build_indefinite_none(Builder *b);

/* ---- leaves by their kinds (nest/leaves.def): build.c, scan.c, scatter.c ---- */

/* The statements of a leaf in the body of loop `scope`. */
typedef void BuildLeaf(Builder *b, Block *to, NodeRef node, uint32_t scope);
#define LEAF(id, word, applies, lowers, refused) BuildLeaf lowers;
#include "nest/leaves.def"
/* Those of a plain leaf at these positions: the one that computes it. */
Stmt *build_at_positions(Builder *b, Block *to, NodeRef node, uint32_t scope,
                         const Position *pos);

/* ---- leaves.c: sums over a parallel loop ---- */

/* Does something fold over loop `k`, which is parallel? */
bool build_has_leaves(const Builder *b, uint32_t k);
/* Before the outer loop, its variable's and the inner one's positions; at the beginning of the inner one's body, and at its end; after the
 * outer loop. */
void build_leaves_open(Builder *b, Block *to, uint32_t k, Leaves *out);
void build_leaves_begin(Builder *b, Block *body, Leaves *leaves);
void build_leaves_end(Builder *b, Block *body, const Leaves *leaves);
void build_leaves_join(Builder *b, Block *to, const Leaves *leaves);

/* ---- online.c ---- */

/* Before and after online loop `k`. */
void build_online_begin(Builder *b, Block *to, uint32_t k);
void build_online_end(Builder *b, Block *to, uint32_t k);
/* Before item `k` of the body of an online loop: sums in it follow. */
void build_online_follow(Builder *b, Block *to, uint32_t k);
/* After it: maxima in it have changed. */
void build_online_item(Builder *b, Block *to, uint32_t k);

#endif
