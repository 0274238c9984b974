/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the legaliser. A TILED statement has labels (its local indices, with ranges that are numbers once the loops around are
 * unrolled). It is cut into boxes of labels; in a box, an operand is a view: some labels on partitions, the others on the free
 * axis, both in row-major order. `view_of` finds or makes the tile that holds it: by DMA, from a block on chip, or by
 * transposing on the Tensor engine; what it made is remembered until the buffer changes or room is needed. */
#ifndef BACKEND_NKI_LOWER_H
#define BACKEND_NKI_LOWER_H

#include "backend/nki/nki.h"
#include "backend/nki/stages.h"
#include "tile/tile.h"

#define LABELS 32
/* Most dimensions of the free axis that an engine walks (rule G9); and those of a fold. */
#define WALKED_DIMS 3
#define FOLDED_DIMS 4
#define LOWER_NONE  UINT32_MAX /* no buffer */
#define PART_LABEL                                                                             \
    (LABELS - 1) /* the parts of complex numbers, where a statement has no label */

typedef struct Labels {
    uint32_t n;
    uint8_t at[LABELS];
} Labels;

typedef struct Box {
    int64_t s[LABELS], n[LABELS];
} Box;

/* Dimension `dim` of an access also moves by `coef` with a label. */
#define PLACE_TERMS 24
typedef struct PlaceTerm {
    uint32_t dim, label;
    int64_t coef;
} PlaceTerm;

/* One access: each dimension is base, or base + label, and what `term` adds to that. `buf` is the TILED kernel's. */
typedef struct Place {
    BufRef buf;
    uint32_t rank;
    int64_t base[NKI_DIMS];
    int32_t label[NKI_DIMS];
    uint32_t n_terms;
    PlaceTerm term[PLACE_TERMS];
    const Affine
        *moves; /* [rank] with the loops that stay, variables of the LEGAL kernel; or null */
} Place;

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
typedef struct Lift {
    uint32_t depth;
    int64_t times;
    struct OpenLoop *around; /* the loops that are open around it */
    VEC(Stmt *) out;
} Lift;

/* stay.c */
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

/* ---- supported.c ---- */
/* Says what the target lacks, once. */
bool lower_refuse(Lower *l, Span span, const char *what);
/* Are all extents numbers, and none of a tensor 0? Says which are not. The first of all checks: what is lowered counts on it. */
bool lower_check_extents(Ctx *ctx, const Target *target, const Kernel *k);
bool lower_check(Lower *l);

/* ---- place.c ---- */
/* Loads of an expression. */
typedef struct Loads {
    uint32_t n;
    Place at[32];
} Loads;
void collect_loads(Lower *l, const Expr *value, Loads *out);
/* With the loops around at their values, those that stay in their first iterations. */
int64_t position_value(const Lower *l, Affine x);
/* ---- stay.c ---- */
/* What it is beyond that in others. */
Affine position_moves(const Lower *l, Affine x);
/* Begins a loop of so many iterations that stays one; false: it is to be unrolled. */
bool stay_open(Lower *l, const Stmt *s, int64_t start, int64_t trips);
/* The same of a loop that begins at `first`, a sum of variables of loops around: from there to `trips`. */
bool stay_open_from(Lower *l, const Stmt *s, int64_t start, Affine first, int64_t trips);
/* How many of the first iterations are not as those after them, which may stay; 0: none, or all. */
int64_t stay_peeled(Lower *l, const Stmt *s, int64_t start, int64_t trips);
void stay_close(Lower *l);
/* The same over a label of the statement, by steps, from iteration `first` on; what is left of it is then in l->now. */
bool stay_open_label(Lower *l, uint32_t label, int64_t step, Affine first, const Stmt *with);
/* The same of what makes tiles, that nobody else writes: its variable is that of the innermost loop then. */
bool stay_open_tiles(Lower *l, const char *name, int64_t trips);
void stay_close_tiles(Lower *l);
void stay_close_label(Lower *l, uint32_t label, int64_t step, const Box *full, Affine moves);
/* In how many of the open loops a view must be made: it moves with the innermost of these, or is of something written there;
 * all, where there is no room for so many bytes more that live as long. */
uint32_t lift_depth(const Lower *l, const Place *x, int64_t bytes);
/* The same of a tile that holds positions which move so. */
uint32_t lift_depth_of(const Lower *l, Affine moves, int64_t bytes);
/* What is made until the end of it goes where so many loops are open. */
Lift lift_begin(Lower *l, uint32_t depth, int64_t bytes);
void lift_end(Lower *l, const Lift *lift);
/* The least and the most that a sum of loop variables is. */
void stay_range(const Lower *l, Affine x, int64_t *lo, int64_t *hi);
/* Are ranges of the statements the same in each iteration of the loops that are open? */
bool stay_steady(Lower *l, Stmt *const *body, uint32_t n);
/* A loop of `trips` iterations, or where `last` moves of as many as that says; positions of its variable are `start` and what `moves` says. */
bool stay_open_window(Lower *l, const Stmt *s, int64_t start, Affine moves, Affine last);
/* Something in the body cannot move so: the next try unrolls the innermost loop with which it does. */
void stay_refuse(Lower *l, Affine moves);
/* The values [lo, hi) that a statement's variable takes. */
void lower_range(const Lower *l, const Stmt *s, VarRef v, const Range *r, int64_t *lo,
                 int64_t *hi);
/* May `s` be computed from the PSUM tiles of `matmul`, whose result is then nowhere else? */
bool lower_is_epilogue(Lower *l, const Stmt *matmul, const Stmt *s);
/* ---- home.c ---- */
/* The layout on chip; the bytes of a partition it takes. */
int64_t home_on_chip(Lower *l, BufRef buf);
void home_in_hbm(Lower *l, BufRef buf);
/* Allocates it where it lives. */
void home_make(Lower *l, BufRef buf);
/* The buffer that lives in that LEGAL one, or LOWER_NONE. */
BufRef home_of(const Lower *l, BufRef made);
/* Is it a number of which each partition has a copy, as the LEGAL buffer says? Sets all of these. */
bool home_is_spread(const Lower *l, BufRef made);
void home_set(Lower *l, BufRef buf, double value);
/* All of these, where an alloc stands; the bytes of a partition. */
int64_t home_enter(Lower *l, BufRef buf);
/* ---- psum.c ---- */
/* May the block, whose layout is known, stay in PSUM, where its matmuls leave it? */
bool psum_keeps(const Lower *l, BufRef buf);
/* Is it there? */
bool psum_has(const Lower *l, BufRef buf);
/* May one instruction read or write the view of it? */
bool psum_takes(const Lower *l, TileView v);
/* The next try copies it to SBUF. */
void psum_refuse(Lower *l, BufRef buf);
/* The same of the block whose LEGAL buffer is read in pieces, if it has several banks: an instruction reads a whole one. */
void psum_refuse_pieces(Lower *l, BufRef made);
/* Elements of a row that a statement with this value takes at a time. */
int64_t psum_row(const Lower *l, const Expr *value);
/* ---- windows.c ---- */
/* A loop with a window, in loops that stay; false, and nothing done, where its iterations are taken one by one. */
bool lower_window(Lower *l, const Stmt *s);
bool window_is_steady(Lower *l, const Stmt *s); /* may it be in the loops that are open? */
/* ---- lower.c ---- */
void lower_enter(Lower *l, const Stmt *s); /* l->now is the statement's */
void lower_block(Lower *l, Stmt *const *body, uint32_t n);
/* The instructions of l->task.body, tried again until they need not be; null
 * when that failed, was too long or does not fit (`too_many`). */
Kernel *lower_all(const Lower *start, Lower *l);
/* ---- legalise.c ---- */
/* A device program for a kernel, or for a part of one; `kernel` null: there is none. */
typedef struct Lowered {
    Lower l;
    Kernel *kernel;
    NkiCost cost;
    Staging stages; /* of its longest loops; what lower_finish tries, if there are any */
} Lowered;
/* What was lowered, rolled; of a kernel of so many parts. `measure`: and measured, and put into stages where engines wait. */
void lower_finish(const Lower *l, Kernel *made, uint32_t parts, bool measure, Lowered *out);
/* ---- batch.c ---- */
void batch_mark(Lower *l);
/* Are the products of a contraction's batches so small that it is better on the Vector engine? */
bool batch_is_tiny(const Lower *l, const Stmt *s);
/* Does the product keep no index but batches? Each of its matmuls would make one element: it is an elementwise product with sums of rows. */
bool batch_is_all(const Lower *l, const Stmt *s);
/* ---- split.c ---- */
/* The kernel as device programs of at most l->task.most instructions each. */
Kernel *lower_split(const Lower *l, bool last); /* false: says nothing where it cannot */
#define PARTS_MOST 64
/* ---- vector_passes.c ---- */
/* The LEGAL kernel with less for the Vector engine to do, where that makes it quicker, and its cost. */
Kernel *lower_vector_passes(const Lower *l, Kernel *k, NkiCost *cost);

/* interleave.c: the LEGAL kernel with iterations of its longest loops interleaved where that gains, and what it costs then; null: nowhere. */
Kernel *lower_interleaved(const Lower *l, const Kernel *k, NkiCost *cost);
/* late_loads.c: the LEGAL kernel with loads before a loop where the loop first uses them; null: it begins with all. */
Kernel *lower_late_loads(Arena *arena, const Kernel *k);
/* joined_loads.c: loads of short rows that follow each other as loads of longer ones; null where there are none. */
Kernel *lower_joined_loads(const Lower *l, const Kernel *k);
/* bank_copies.c: what transposes leave in PSUM is copied a bank at a time; null where nothing is. */
Kernel *lower_bank_copies(const Lower *l, const Kernel *k);

/* ---- instr_make.c ---- */
/* A block that is run where all its tests hold. */
Stmt *stmt_guarded(Arena *a, Span span, const Guard *guard, uint32_t n_guards, Stmt **body,
                   uint32_t n);
TileView tile_new(Lower *l, const char *hint, DType t, Space space, int64_t np, int64_t nf);
TileView view_part(TileView v, int64_t f, int64_t nf);
TileView view_rows(TileView v, int64_t np);
DType view_dtype(const Lower *l, TileView v);
Space view_space(const Lower *l, TileView v);
const Expr *view_load(Lower *l, TileView v, DType as);   /* [p, f] */
const Expr *view_column(Lower *l, TileView v, DType as); /* [p, 0] */
void make_map(Lower *l, TileView dst, const Expr *value);
/* Over indices of its own. */
void make_value(Lower *l, BufRef dst, const Affine *at, uint32_t n, const TileIndex *index,
                const Expr *value);
/* The same where the rows of operands and result are walked along several labels, each by steps of its own. */
const Expr *view_walked_load(Lower *l, TileView v, uint32_t n, const int64_t *step, DType as);
void make_walked(Lower *l, TileView dst, uint32_t n, const int64_t *count, const int64_t *step,
                 const Expr *value);
void make_copy(Lower *l, TileView dst, TileView src);
void make_memset(Lower *l, TileView dst, double value);
/* `begins`: overwrites what is in dst. */
Stmt *make_matmul(Lower *l, TileView dst, TileView stationary, TileView moving, bool begins);
void make_transpose(Lower *l, TileView dst, TileView src);
/* The sums of the rows of what the last statement made, added to what is in dst unless `first`; false: nothing was made, since it cannot
 * add them. */
bool make_row_sums(Lower *l, TileView dst, TileView src, bool first);
/* Positions along the labels of the free axis, and how result and operand are walked. */
typedef struct PositionWalk {
    uint32_t n;
    int64_t count[LABELS], along[LABELS], dst[LABELS], src[LABELS];
} PositionWalk;
/* base + down * p + the steps along; and where that, beside 0, is so: src, elsewhere a number. */
void make_iota(Lower *l, TileView dst, Affine base, int64_t down, const PositionWalk *w);
void make_affine_select(Lower *l, TileView dst, TileView src, Affine base, int64_t down,
                        const PositionWalk *w, Op op, double other);
void make_reduce(Lower *l, TileView dst, Op fold, TileView src);
/* Each element of `dst` by itself. The terms are walked along `n` labels, of which the first `kept` are those of `dst`, row by row. */
void make_reduce_each(Lower *l, TileView dst, Op fold, TileView src, uint32_t n, uint32_t kept,
                      const int64_t *count, const int64_t *step);
/* Between HBM buffer `place` and the tile: p labels on partitions, f labels on the free axis of the box. */
void make_dma(Lower *l, const Place *place, Labels p, Labels f, const Box *box, TileView tile,
              bool store);
TileView view_ones(Lower *l);

/* ---- view.c ---- */
int64_t labels_count(Labels x, const Box *b);
bool labels_have(Labels x, uint32_t label);
Labels labels_one(uint32_t label);
bool place_has(const Place *x, uint32_t label);
/* Labels of `list` that the place has and that vary in the box. */
Labels labels_varying(const Place *x, Labels list, const Box *box);
/* Elements of the access, over all of its labels. */
double place_elements(const Lower *l, const Place *x);
TileView view_of(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* What an engine walks as it lies in at most so many dimensions, without a copy: *out is its first element of each partition, `step` of each
 * label of `f` the elements from one position to the next. False, and nothing done: there is no such tile. */
bool view_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box, uint32_t most,
                 TileView *out, int64_t *step);
/* The same as an access pattern. */
bool view_pattern(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out);
/* The view of what is used in each iteration of a loop that it does not move with: what all iterations of loops inside of that see is then made
 * before it, side by side in a tile, where there is room; likewise what is turned in loops that are open beyond the `block`'s. */
TileView view_in_loops(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                       uint32_t block);
/* How the elements of a block on chip move along its free axis with the loops that stay; or null. */
const Affine *block_moves(const Lower *l, const Place *x);
/* How far the element moves on the free axis of a block with a label; of rows, with whole chunks of them. */
int64_t block_stride(const Lower *l, const Place *x, uint32_t label);
/* ---- view_gather.c ---- */
/* The label along which the place lies contiguous in HBM, or LABELS. */
uint32_t view_unit(const Lower *l, const Place *x);
/* Rows of memory as they lie, from which a view is read as an access pattern. */
typedef struct Slab {
    Place place; /* its own labels for the dimensions that have several positions */
    Labels p, rows;
    Box box;
    int64_t elements;     /* of a partition */
    int64_t run;          /* elements that follow each other in HBM */
    int64_t first;        /* of the view, in the slab */
    int64_t step[LABELS]; /* of the view's labels there */
    Affine moves;         /* how the view moves there with loops, */
    uint32_t depth;       /* inside of so many */
    Labels free;          /* of the view, those that vary */
    int64_t copied;       /* elements that one copy walks */
    double loads, direct; /* descriptors of a view by way of it, and without */
} Slab;
/* Does such a slab need fewer descriptors than the view by itself? */
bool view_slab(Lower *l, const Place *x, Labels p, Labels f, const Box *box, Slab *out);
/* Is a row quicker spread over partitions by a DMA that reads it for each of them than by a matmul with ones? */
bool view_spreads(const Lower *l, const Place *x, Labels f, const Box *box, int64_t partitions);
/* Elements at the end of the free axis that follow each other in HBM. */
int64_t view_run(const Lower *l, const Place *x, Labels f, const Box *box);
/* The run of the free axis of a block on chip that the labels `f` of the box are, if they are one. */
bool view_block_run(const Lower *l, const Place *x, Labels f, const Box *box, TileView *out);
/* Does the view take transposes on the Tensor engine? */
bool view_turns(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* Writes a tile of the box to where `x` lives. */
void view_store(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView src);
TileView view_broadcast(Lower *l, TileView row, int64_t np);
bool cache_find(Lower *l, const int64_t *key, uint32_t n, TileView *out);
void cache_put(Lower *l, const int64_t *key, uint32_t n, TileView v);
/* Loops that were open when the tile of a view was made, of which it is all; else those that are. */
uint32_t cache_depth(const Lower *l, BufRef buf);
/* Forgets what was made in the loop that ends. */
void cache_leave(Lower *l, uint64_t since);
/* Part of the view has been transposed. */
void cache_mark_raw(Lower *l, TileView part);
/* Forgets tagged views of a buffer, but those of `tag`. */
void cache_drop(Lower *l, BufRef buf, uint32_t tag);
/* Cuts labels into boxes of at most `most` points: step sizes. */
void box_steps(Labels x, const Box *full, int64_t most, int64_t *step);
/* How many boxes of such steps there are. */
int64_t box_count(Labels x, const Box *full, const int64_t *step);
/* The next box, or false past the last. `first` starts. */
bool box_next(Labels x, const Box *full, const int64_t *step, Box *box, bool first);

/* What tells one view of a buffer from another; at most 4 * LABELS + 8 words. */
uint32_t view_key(Lower *l, const Place *x, Labels p, Labels f, const Box *box, int64_t *key);

/* ---- pairs.c ---- */
void pair_find(Lower *l);  /* l->pair and l->turn */
void pair_enter(Lower *l); /* the labels of l->now.stmt */
void pair_refresh(Lower *l, BufRef buf);
/* An access of one part in HBM, as one of a label at one position. */
bool pair_one_part(Lower *l, const Place *x, const Box *box, Place *y, Box *at);
bool pair_is_unit(const Lower *l, const Place *x, uint32_t label);
TileView turn_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* Do two statements assign the two parts of the same elements? */
bool pair_is_split(const Lower *l, const Stmt *re, const Stmt *im);
/* Subexpressions that two values share are computed once for each box. */
void memo_begin(Lower *l, const Expr *re, const Expr *im); /* im: or null */
void memo_clear(Lower *l);
Memo *memo_of(Lower *l, const Expr *e);

/* ---- whole.c: whole numbers made of positions ---- */
#define WHOLE_MOST ((int64_t)1 << 24) /* exact in f32 */
/* base + the sum of coef * label */
typedef struct IndexSum {
    int64_t base, coef[LABELS];
    Affine moves; /* what it is beyond that in other iterations of the loops that stay */
} IndexSum;
bool whole_of(const Lower *l, const Expr *e, IndexSum *out);
void whole_range(const Lower *l, const IndexSum *x, const Box *box, int64_t *lo, int64_t *hi);
/* Does `e` compare two sums of indices? *out: the left one less the right one. */
bool whole_compares(const Lower *l, const Expr *e, IndexSum *out);
/* Does a condition hold in all of the box, or nowhere? Else -1. */
int whole_decides(const Lower *l, const Expr *e, const Box *box);
/* What is left of a select, and, or whose condition is known in the box; else `e`. */
const Expr *whole_branch(const Lower *l, const Expr *e, const Box *box);
/* x of 0 + x, which the graph has for a sum of one term: only the sign of a zero tells them apart. Else the value itself. */
const Expr *whole_term(const Expr *e);
/* Does a value choose by conditions on positions, the same ones in all iterations of the loops that stay? */
bool whole_is_masked(const Lower *l, const Expr *value);
/* Does the box add nothing to the fold? */
bool whole_is_neutral(const Lower *l, const Stmt *s, const Box *box);
/* Does it move by equal steps along the partitions? */
bool whole_on_partitions(const IndexSum *x, Labels p, const Box *box);
TileView whole_tile(Lower *l, const IndexSum *x, Labels p, Labels f, const Box *box);
/* dst = x op 0 ? src : other; `step` of each label of `f` in src. */
void whole_select(Lower *l, TileView dst, TileView src, const int64_t *step, const IndexSum *x,
                  Op op, double other, Labels p, Labels f, const Box *box);

/* ---- statements ---- */
Place place_of(Lower *l, BufRef buf, const Affine *at);
/* Do both move alike with the loops that stay, in a dimension? */
bool place_moves_eq(const Place *x, const Place *y, uint32_t dim);
/* The coefficient of a label in a dimension. */
int64_t place_coef(const Place *x, uint32_t dim, uint32_t label);
/* The first position of a dimension over a box. */
int64_t place_start(const Place *x, uint32_t dim, const Box *box);
/* How far the element moves in HBM with a label. */
int64_t place_stride(const Lower *l, const Place *x, uint32_t label);
/* False, and nothing done, when the Tensor engine cannot do it as it is. */
bool lower_matmul(Lower *l, const Stmt *s, bool overwrite, const Stmt *epilogue);
/* A function and the sums of its rows, in one pass, once it is known that that can be (not `go`: only asks). `narrow`: the copy of its
 * values in a narrower type, which is made and not they; or null. */
bool lower_row_sums(Lower *l, const Stmt *s, const Stmt *narrow, const Stmt *fold, bool go);
/* Is `copy` such a copy of what `s` makes? */
bool lower_narrows(Lower *l, const Stmt *s, const Stmt *copy);
/* Where a fold's result goes. */
Place lower_target(Lower *l, const Stmt *s);
/* Is a label of a statement without matmuls cut into a row for each partition? */
bool lower_is_cut(Lower *l, const Stmt *s);
/* What now.next makes of the result, in indices of `s`; null: a copy, or nothing. */
const Expr *lower_next_value(Lower *l, const Stmt *s);
/* Can it? Of a statement without levels. */
bool lower_is_product(Lower *l, const Stmt *s);
/* The same as loops over all its tiles (panels.c); false, and nothing done, where it is too irregular. */
bool lower_panels(Lower *l, const Stmt *s, const Stmt *epilogue);
/* roles.c: the statement with the roles of its labels as they suit what lies in HBM; or, *staged < LABELS, itself, to be staged with that
 * label on partitions. */
const Stmt *lower_roles(Lower *l, const Stmt *s, const Stmt *epilogue, uint32_t *staged);
/* staged.c: the contraction by way of blocks that lie as its result does. */
void lower_staged(Lower *l, const Stmt *s, uint32_t row);
/* block_loops.c: the same as loops over blocks; false, and nothing done, where it is not to be cut. */
bool lower_cut(Lower *l, const Stmt *s, const Stmt *epilogue);
void lower_map(Lower *l, const Stmt *s, bool overwrite);
/* Numbers that the loop which ends has added up in columns get them. */
void lower_columns(Lower *l);
/* Is the statement one over vectors in HBM, long enough to be spread over partitions? */
bool lower_is_flat(Lower *l, const Stmt *s);
/* Labels of the statement, rows of the one that is cut among them. */
uint32_t lower_labels(const Lower *l);
void lower_parts(Lower *l, const Stmt *re, const Stmt *im);
/* Evaluates `e` over a box; `bound` (or BUF_NONE) is a buffer whose value is the tile `bound_view`. */
typedef struct Evaluation {
    Lower *l;
    Labels p, f;
    const Box *box;
    BufRef bound;
    TileView bound_view;
    bool narrow; /* may the result be of a narrower type of floats? */
} Evaluation;
/* ---- scan.c ---- */
void lower_scan(Lower *l, const Stmt *s);
void make_scan(Lower *l, TileView dst, Op fold, const TileView *factor,
               TileView src); /* instr_make.c; factor: of what decays, else null */

/* ---- gathers.c ---- */
/* Is it one that pass `gathers` made: rows of an argument, at positions in memory, into memory? */
bool gathers_rows(const Stmt *s);
/* Marks what these statements read positions from, and what they set. */
void gathers_mark(const Kernel *k, bool *in_memory);
void gathers_lower(Lower *l, const Stmt *s);

TileView evaluate(Evaluation *ev, const Expr *e, DType t, const TileView *into);
/* Evaluates the parts of `e` that do not depend on all labels, which are remembered. */
void evaluate_narrow(Evaluation *ev, const Expr *e);
/* Is it a function that one instruction of the Scalar engine ends with? */
bool evaluate_is_function(Op op);
/* Can it be evaluated? */
bool evaluate_has(Op op);
/* evaluate_in_place.c: may the statement's value be computed where it is kept, though it reads it? */
bool evaluate_in_place(const Stmt *s);

/* ---- spill.c: -Wspill ---- */
void spill_warn_crossing(const Lower *l, BufRef buf); /* of a kernel of several programs */
void spill_warn_all(const Lower *l);                  /* of a finished try */

#endif
