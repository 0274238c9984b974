/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a lowering. A TILED statement has labels (its local indices, with ranges that are numbers in the first iteration of the loops
 * around that stay loops). It is cut into boxes of labels; in a box, an operand is a view: some labels on partitions, the others on the
 * free axis, both in row-major order. `view_of` finds or makes the tile that holds it: by DMA, from a block on chip, or by transposing on
 * the Tensor engine; what it made is remembered until the buffer changes or room is needed.
 *
 * Who calls whom, each file only those to the left and in its own column; the largest circle is that of the views:
 *
 *     labels  state  cache   make  home  view*       whole     evaluate*  contract   statement*  product   windows
 *             place  open_         psum  view_turn   label_    memo       blocks*    row_sums    roles     lower
 *             pairs  loops               view_walked shape     scan       panels*    loop_sums   staged    legalise
 *             steady                                                      mirrored                         split
 *
 * What else was tried, over the 1159 kernels of tests/backend/nki/figures.txt:
 *
 * - Copies in front of loops. A view is made before the loops with which it does not move, while there is room (open_loops.h, view_loops.c).
 *   If each is made in its loop, for a pass to move it as backend/c/legalise_hoist.c moves panels, 154 texts change and 73 kernels take
 *   longer, a convolution 234 times: such a pass must make tiles for all iterations of the loops between, find equal copies and share out
 *   SBUF, which is what views do.
 * - Loops of boxes. Statements are emitted for each box of labels, and roll.c finds what repeats. Without it 536 texts are longer, and 193
 *   have more than 150 lines, not 68; loops in some of the emitters keep roll.c from joining the others.
 * - One way to emit a contraction. Without panels.c 2048^3 takes 19 % longer, in 90 lines instead of 50; for panels.c alone, results
 *   that stay in PSUM, banks that batches share, complex numbers and operands that are no views are in the way: blocks.c has these.
 * - Levels lowered as for C. Both read what they mean from schedule/cut.c. C's loops clip an open extent, and panels number positions; here
 *   extents are numbers, what is left has a body of its own, and a tile is a bank: no statement would be the same.
 */
#ifndef BACKEND_NKI_LOWER_H
#define BACKEND_NKI_LOWER_H

#include "backend/nki/labels.h"
#include "backend/nki/nki.h"

/* Most dimensions of the free axis that an engine walks (rule G9); and those of a fold. */
#define WALKED_DIMS 3
#define FOLDED_DIMS 4
#define LOWER_NONE  UINT32_MAX /* no buffer */
#define PART_LABEL                                                                             \
    (LABELS - 1) /* the parts of complex numbers, where a statement has no label */

typedef struct TileView {
    BufRef buf; /* of the LEGAL kernel, on chip */
    int64_t p0, np, f0, nf, step;
    const Affine *moves; /* f0, with the loops that stay; or null */
    uint32_t
        n_outer; /* of an access pattern: dimensions around that of `step`, from the outermost */
    FreeDim outer[WALKED_DIMS - 1];
} TileView;

/* Where a buffer of the TILED kernel lives. */
typedef struct Home {
    bool on_chip;
    bool made;         /* allocated in the new kernel */
    bool flush;        /* on chip, goes to HBM at the end */
    BufRef buf;        /* HBM or SBUF buffer of the new kernel */
    BufRef hbm;        /* flush: the argument */
    uint32_t pdim;     /* dimension on partitions (on chip, rank > 0) */
    int64_t rows_each; /* of a stage (staged.c): rows for each position there; else 0 or 1 */
    int64_t chunks, chunk_stride;
    int64_t stride[NKI_DIMS]; /* on chip: elements on the free axis; HBM: of the flat tensor */
    int64_t wanted, left;     /* not on chip for want of room: bytes of a partition */
    uint64_t version;
    uint32_t depth;  /* loops that were open when it was made */
    bool spread;     /* a number that is set to constants alone: the same on each partition */
    bool has_column; /* of a number: what loops add to it is in a column so far */
    TileView column;
} Home;

typedef struct CacheEntry {
    uint32_t n;
    const int64_t *key;
    TileView view;
    int64_t bytes;
    uint64_t used;
    uint32_t tag;   /* strip of an operand that streams, or 0 */
    bool passes;    /* of an operand that passes by one that stays */
    uint32_t depth; /* loops that were open when it was made: it ends with the innermost */
    bool raw;       /* loaded to be transposed: the first to be forgotten, when ... */
    int64_t left;   /* ... no columns of it are left to transpose */
} CacheEntry;

/* E[.., r, s] = plus or minus B[.., s == 0 ? r : 1 - r]: the operand of a contraction of complex
 * numbers of which only the tiles that are not B itself are made. */
typedef struct Turn {
    bool is;          /* is the buffer one? */
    BufRef of;        /* B */
    bool minus[2][2]; /* [s][r]: negated */
} Turn;

/* A subexpression of the statement at hand, or several that are equal; `value` once it is known, in this box. */
typedef struct Memo {
    const Expr *e;
    bool shared; /* used more than once */
    const void *value;
} Memo;

/* A statement, or loop, takes a variable's values in [lo, hi) only. */
typedef struct Limit {
    const Stmt *stmt;
    VarRef var;
    int64_t lo, hi;
} Limit;

/* A partition of SBUF: what is kept there of what was made, and what may be. */
typedef struct Room {
    VEC(CacheEntry) cache;
    int64_t cache_bytes, cache_limit;
    int64_t home_bytes, home_limit; /* blocks that live now */
    int64_t slab_bytes;             /* of a widened load; 0: SLAB_BYTES */
    int64_t tile_elements;          /* of an elementwise step */
    bool loads_first; /* are all rows loaded before the first of them is turned? */
    bool turning;     /* is what is loaded to be turned? */
    bool as_it_lies;  /* are rows of memory loaded as they are? */
    bool halves;      /* does what was turned leave PSUM as two copies, one for each engine? */
    uint32_t tag;     /* of entries made or found now */
    bool passes;      /* likewise */
    uint64_t clock;
} Room;

/* What is lowered: all of `from`, or some of its statements under limits, as one part of a
 * kernel. `crossing` buffers are in HBM, made by another part or for it. */
typedef struct Task {
    Stmt *const *body;
    uint32_t n_body, n_limits;
    const Limit *limits;
    const bool *crossing; /* [from->bufs], or null */
    int64_t most;         /* instructions */
    bool descriptors;     /* so few, since there would be too many of these */
    bool unrolled;        /* are no loops kept? */
    bool strips;          /* do loops over strips of rows leave out what masks do? */
} Task;

/* What a block on chip cannot give a statement, that a DMA from HBM can. */
typedef enum AwayKind {
    AWAY_DIAGONAL, /* a diagonal of partitions */
    AWAY_ACROSS,   /* rows from two groups of 128 partitions as one */
    AWAY_BOOL,     /* booleans turned */
    AWAY_SUM,      /* positions that are sums of indices, or every n-th */
    AWAY_STEPS,    /* in each iteration of a loop other partitions */
    AWAY_OTHER     /* several indices on partitions, of which it has one there, and the like */
} AwayKind;

typedef struct Away {
    AwayKind kind;
    const Stmt *stmt;
} Away;

/* How it goes. */
typedef struct Tried {
    int64_t count; /* instructions so far */
    bool failed, too_many;
    bool *copied; /* [from->bufs]: leaves PSUM by a copy; set by a try, for the next one */
    bool *away;   /* [from->bufs]: not to be kept on chip; likewise, */
    Away *why;    /* [from->bufs] and for what */
    bool again;   /* the try ended for that */
} Tried;

/* A loop that stays one, and the statements before it. */
typedef struct OpenLoop {
    const Stmt *stmt;   /* TILED: a loop, or a statement that is cut, */
    const Stmt *with;   /* and the one that is computed from its tiles, or null */
    VarRef var;         /* of the LEGAL kernel, from 0 by one */
    bool probed;        /* it was not opened, only looked at */
    bool tiles;         /* it makes tiles, and nothing else */
    int64_t trips;      /* at most, */
    int64_t mean;       /* and on average */
    Affine first, last; /* iteration, by the variables of the loops around */
    VEC(Stmt *) out;
    uint64_t clock; /* of the views, when it was opened */
    int64_t lifted; /* bytes of a partition that were made before it for all its iterations */
} OpenLoop;

/* Statements go before loops that are open. */
typedef struct Hoist {
    uint32_t depth;
    int64_t times;
    struct OpenLoop *around; /* the loops that are open around it */
    VEC(Stmt *) out;
} Hoist;

/* The loops that are open (open_loops.c). */
typedef struct Loops {
    bool *
        concrete; /* [from->vars], and for all that is cut: unrolled, as a try has found for the next one */
    Affine *
        moves; /* [from->vars] what a loop's variable is beyond its value in the first iterations */
    int64_t times; /* iterations of all that are open */
    uint32_t depth;
    OpenLoop open[LOOP_DEPTH_LIMIT];
} Loops;

/* The TILED statement being lowered. */
typedef struct Now {
    const Stmt *stmt;
    uint32_t n_labels;
    Box full;             /* in the first iterations of loops that stay */
    Affine moves[LABELS]; /* how a label's positions move with these */
    int64_t flat; /* > 0: label `cut` is cut into rows of so many, which are label n_labels */
    uint32_t cut;
    int32_t part, turned; /* labels of parts of complex numbers, r and s, or -1 */
    const Expr *factor;   /* of all terms of a sum, which is multiplied by it; or null */
    const Stmt
        *next; /* what is computed of a fold's result, which goes nowhere else; or null */
    VEC(Memo) memo;
    Map memo_hash, memo_at; /* by hash, and by address of the subexpression: place in `memo` */
} Now;

typedef struct Lower {
    Ctx *ctx;
    Arena *arena;
    const Target *target;
    const NkiChip *chip;
    /* the TILED kernel and what is known of it */
    const Kernel *from;
    const char *words_why; /* f64 results cannot be double words: why, or null */
    Span words_where;
    uint64_t *batch;  /* [from->bufs]: bits of dimensions that are batches */
    const bool *pair; /* [from->bufs]: the last dimension holds parts */
    const Turn *turn; /* [from->bufs] */
    const bool *sums; /* [from->bufs] see tile_pieces; or null */
    int64_t *value;   /* [from->vars] of loops entered */
    Loops loops;
    Home *home; /* [from->bufs] */
    /* the LEGAL one */
    Kernel *to;
    VEC(Stmt *) out;
    VarRef p, f, k;   /* local indices of 2-D statements */
    VarRef q[LABELS]; /* of copies */
    uint32_t names;
    TileView ones;
    bool has_ones;
    Room room;
    Task task;
    Tried tried;
    Now now;
} Lower;

static inline DType view_dtype(const Lower *l, TileView v)
{
    return l->to->bufs.at[v.buf].dtype;
}

static inline Space view_space(const Lower *l, TileView v)
{
    return l->to->bufs.at[v.buf].space;
}

/* ---- state.c ---- */

/* The buffer that lives in that LEGAL one, or LOWER_NONE. */
BufRef home_of(const Lower *l, BufRef made);
/* Is it a number of which each partition has a copy, as the LEGAL buffer says? */
bool home_is_spread(const Lower *l, BufRef made);
/* How many loops are open up to the innermost one with which that moves; 0: it moves with none. */
uint32_t moving_depth(const Lower *l, Affine moves);
/* Says what the target lacks, once; false. */
bool lower_refuse(Lower *l, Span span, const char *what);

/* What the next try does otherwise; this one ends. The statement at hand wants of the block what only a DMA can do. */
void retry_away(Lower *l, BufRef buf, AwayKind kind);
/* The block is copied out of PSUM. */
void retry_copied(Lower *l, BufRef buf);
/* The same of the block whose LEGAL buffer is read in pieces, if it has several banks: an instruction reads a whole one. */
void retry_copied_pieces(Lower *l, BufRef made);
/* The innermost open loop with which that moves is unrolled. */
void retry_unrolled(Lower *l, Affine moves);

#endif
