/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel IR: loops over tiles, buffers with explicit spaces, and one kind of tile
 * statement.
 *
 *     kernel @mlp(o ~ 16) {
 *       arg @X : f32[o,256] in
 *       arg @Y : f32[o,512] result
 *       for $m in 0..o step 16 {
 *         alloc @acc : f32[16,512] tile
 *         matmul [i in $m:16<o, j in 0..512, k in 0..256] @acc[i-$m, j] += @X[i,k] * @W[k,j] begins
 *         map [i in $m:16<o, j in 0..512] @Y[i,j] = relu(@acc[i-$m, j] + @b[j])
 *       }
 *     }
 *   (the dump writes values as calls: `mul(@X[i,k], @W[k,j])`; a matmul may say how it is cut
 *   into blocks: schedule/schedule.h.)
 *
 * Variables run over absolute positions, so a tile of a tile is still a position: a range [start, start+span) clipped
 * to [.., limit). Loop variables are printed $m, the local indices of a tile statement without '$'; both are Vars.
 *
 * A tile statement means: for every value of its local indices, in any order,
 *     dst[at] = value                  (fold OP_COPY), or
 *     dst[at] = fold(dst[at], value)
 * A fold that `begins` has no `dst[at]` before the first of the values of indices that `at` lacks: it is the neutral element then,
 * and stays that where they have no values.
 * With a fold, local indices that `at` lacks are reduced; without one, `at` must be different for different index values.
 * A map may add its values up as well, `map [i, j] @W[i,j] = exp(..) sums @L[i] begins`: as a `+=` of the same indices.
 * The value must not read `dst` (unless at the very element it assigns). Keyword by shape (tile_kind): fill, copy, map,
 * reduce, matmul. A reduce of a product that is multiplied by numbers and scalars, `mul(-1.0, mul(@A[i,k], @B[k,j]))`, may be
 * cut like a matmul.
 *
 * Forms. LOOP_TILED: as built. LOOP_LEGAL: as a target's legalise leaves it; local indices then
 * have a mode (loop, unroll, vector), a target's verify has the rest. All sizes 64-bit. Extents
 * are Dims: the kernel's open dims are its parameters. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "op/affine.h"
#include "op/op.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "schedule/schedule.h"
#include "target/target.h"

/* A dump may be nested NESTING_LIMIT deep in all: loops, then the operations of a value in
 * them. */
#define EXPR_DEPTH_LIMIT     128
#define LOOP_DEPTH_LIMIT     64
#define PARALLEL_DEPTH_LIMIT 8
#define AFFINE_TERMS_LIMIT   256
/* Nodes of one value, shared ones counted each time they are used. */
#define EXPR_SIZE_LIMIT 100000

typedef enum LoopForm { LOOP_TILED, LOOP_LEGAL } LoopForm;

/* VarRef: into Kernel.vars, or an open dim (op/affine.h). */
typedef uint32_t BufRef; /* into Kernel.bufs */
#define BUF_NONE UINT32_MAX

typedef struct Var {
    Sym name;     /* unique in the kernel */
    bool is_loop; /* printed with '$' */
    Sym wish;     /* what it would be called if it were the only one */
} Var;

/* start <= v < start + span (span 0: no such bound), and v < limit (when clipped).
 *     0..N        whole: start 0, span 0, limit N
 *     $m:16<N     clipped tile
 *     $m:16       full tile: the enclosing `full` loop, or constant extents, prove that it fits */
typedef struct Range {
    Affine start;
    int64_t span;
    bool clipped;
    Dim limit;
} Range;

/* The fields of a clause by its operand: clauses.def. */
#define CLAUSE_FLAG(field)   bool field;
#define CLAUSE_NUMBER(field) int64_t field;
#define CLAUSE_INDEX(field)  uint32_t field;
#define CLAUSE_BUFFER(field) uint32_t field;
#define CLAUSE_ACCESS(field)                                                                   \
    uint32_t field;                                                                            \
    const Affine *field##_at;
#define CLAUSE_LOOPS(field)                                                                    \
    uint32_t n_##field;                                                                        \
    const VarRef *field;

typedef struct Buffer {
    Sym name; /* unique in the kernel */
    DType dtype;
    DType
        stored; /* of an argument: the type of its elements in memory, which copies convert; DTYPE_NONE: dtype */
    Space space;
    uint32_t rank;
    const Dim *extent; /* C order, dense */
    int32_t param;     /* ARGUMENT: index into Kernel.args, else -1 */
    Span span;
    /* Allocated: */
#define BUFFER_CLAUSE(word, operand, field, expected) CLAUSE_##operand(field)
#include "loop/clauses.def"
} Buffer;

/* An argument of the kernel in calling order: parameters, then results. `whole`: the caller has numbers of this type and
 * of rank `whole_rank`, the buffer what they are made of along a last dimension of extent 2 (a rank of 0 is f32[1,2]): the parts of
 * complex numbers or the low and the high word of an i64, the same bytes; or two f32 whose sum is the f64 of a result. DTYPE_NONE: the caller has the buffer as it is. */
typedef enum ArgRole { ARG_IN, ARG_INOUT, ARG_SCALAR, ARG_RESULT } ArgRole;
typedef struct Arg {
    ArgRole role;
    BufRef buf;
    DType whole;
    uint32_t whole_rank;
    const Symmetry *symmetry; /* of what the caller has, as declared; or null */
    /* As the caller has it, where the buffer takes neighbouring dimensions together, or one apart; null: as the buffer. Beside `whole`
     * with the last dimension of 2. */
    uint32_t rank;
    const Dim *shape;
} Arg;

typedef enum ExprKind { EXPR_CONST, EXPR_EXTENT, EXPR_INDEX, EXPR_LOAD, EXPR_OP } ExprKind;

typedef struct Expr {
    ExprKind kind;
    DType dtype;
    Op op; /* EXPR_OP: a MAP op (OP_CAST converts arg[0] to dtype) */
    uint32_t n_args;
    const struct Expr *const *arg;
    Number value;     /* EXPR_CONST */
    int32_t dim;      /* EXPR_EXTENT: open dim */
    BufRef buf;       /* EXPR_LOAD; OP_GATHER: read at positions that are the values of arg[] */
    const Affine *at; /* LOAD: [rank of buf]; INDEX: whose value this is */
} Expr;

/* Iterations of a loop whose tiles lie before `lo`, or at `hi` or behind it, would change nothing, and are left out. */
typedef struct Window {
    bool has_lo, has_hi;
    Affine lo, hi;
} Window;

/* How many threads a loop is worth: a sum of products. The extent of a dim, or `most` where that is less and not 0. */
typedef struct WorthFactor {
    int32_t dim;
    int64_t most;
} WorthFactor;
typedef struct WorthTerm {
    double number;
    uint32_t n;
    const WorthFactor *factor;
} WorthTerm;
typedef struct Threads {
    uint32_t n;
    const WorthTerm *term;
    /* Iterations are more and more work, or less and less: each thread has some of both. */
    bool dealt;
    /* Not 0: a thread's part of the range may begin at each multiple of so many positions, inside of an iteration too, and is cut into
     * iterations of at most a step (loop/cuts.h). */
    int64_t cut;
    /* What they share are the iterations of the loop that the body ends in, those of all iterations of this one (loop/flat.h). */
    bool flat;
} Threads;

/* What fills panels next, as a product prefetches it: for each of its tiles a group of lines of memory, one for each step of its sum. Groups
 * follow each other along up to PREFETCH_LABELS labels. A hint: nothing is read at positions past the end of the buffer. */
#define PREFETCH_LABELS 3
typedef struct Prefetch {
    BufRef buf;
    const Affine *at;   /* where it begins; */
    VarRef var;         /* behind the last iteration of this loop, */
    const Affine *past; /* it begins here; or null */
    uint32_t n;         /* labels; of others counts are 1 */
    int64_t count[PREFETCH_LABELS], step[PREFETCH_LABELS]; /* groups; elements to the next */
    /* Elements from a line to that of the next step; where a line of memory ends that runs along the sum. */
    int64_t each, turn;
    int64_t reach; /* from the first to the last element that is packed of a line */
} Prefetch;

/* A BLOCK in a loop may be run for some of its iterations only: those with lo <= var < hi. */
typedef struct Guard {
    VarRef var; /* of a loop around it, from a number to a number by one */
    int64_t lo, hi;
    Affine
        from; /* loops around that one, to which the first number is added; by none or more of each */
} Guard;

/* A BLOCK groups statements: what is allocated in it ends with it. One with a test is run for
 * these sizes only. Such blocks stand beside each other so that exactly one is run; each is right
 * for every size, the test says for which it is fast. */
typedef enum StmtKind { STMT_FOR, STMT_BLOCK, STMT_ALLOC, STMT_TILE } StmtKind;

/* Which iterations a loop has, for step T: all (the last tile clipped), the full tiles only, or the rest: at most one
 * iteration, at the first position no full tile covers. */
typedef enum ForPart { FOR_ALL, FOR_FULL, FOR_REST } ForPart;

/* LANES: a loop of any length that the target runs as vectors, in any order. */
typedef enum IndexMode { MODE_LOOP, MODE_UNROLL, MODE_VECTOR, MODE_LANES } IndexMode;

typedef struct TileIndex {
    VarRef var;
    Range range;
    IndexMode mode; /* LOOP in TILED form; UNROLL and VECTOR need full tiles of constant span */
    const Window *
        window; /* LEGAL form, of the sum of a product: positions outside are left out; or null */
} TileIndex;

typedef struct Stmt {
    StmtKind kind;
    Span span; /* of the source */
    Sym name;  /* TILE: the user's name of the value it computes, or null */
    /* FOR */
    VarRef var;
    Range range;
    int64_t step; /* >= 1 */
    ForPart part;
    bool parallel;          /* iterations write disjoint places */
    const Threads *threads; /* LEGAL form: they share its iterations; or null: one runs them */
    const Window *window;   /* or null: all */
    /* FOR, BLOCK; else null */
    struct Stmt **body;
    uint32_t n_body;
    const DimTest *when; /* BLOCK: or null, always */
    uint32_t n_guards;   /* BLOCK: all of them hold where it is run; form LEGAL */
    const Guard *guard;
    /* ALLOC: from here to the end of the enclosing block; content undefined */
    BufRef buf;
    const Prefetch *prefetch; /* LEGAL form, of panels: what fills them next; or null */
    /* TILE */
    uint32_t n_index;
    const TileIndex *index;
    BufRef dst;
    const Affine *at; /* [rank of dst] */
    Op fold;          /* OP_COPY: assign; else a REDUCE op */
    const Expr *value;
    const Schedule *schedule; /* TILED form: how a sum of products is cut, over its indices */
    /* TILE, ALLOC */
#define STMT_CLAUSE(of, word, operand, field, expected, problem) CLAUSE_##operand(field)
#include "loop/clauses.def"
} Stmt;

typedef struct Kernel {
    Arena *arena;
    Sym name;
    Span span;
    Sources *sources; /* where spans point, for dumps (`at 4:12`); null: none are printed */
    const char *signature;       /* as Graph.signature */
    SourceStatements statements; /* as Graph.statements */
    TextLines ranks;             /* as Graph.ranks */
    LoopForm form;
    const char *target; /* LEGAL: for whom, else null */
    DimTable dims;
    VEC(Var) vars;
    VEC(Buffer) bufs;
    Map names; /* of vars and bufs: private to loop.c */
    uint32_t n_named_vars, n_named_bufs;
    VEC(Arg) args;
    Stmt **body;
    uint32_t n_body;
    /* Positions that must lie inside, before anything else is done: the results of a kernel of the same parameters, whose statements
     * compute one each of parameters alone. */
    uint32_t n_required;
    const Requirement *required;    /* [n_required] */
    const struct Kernel *positions; /* null where none is required */
    /* Multiply-adds as a sum of products of extents: one term per contraction. */
    uint32_t n_work;
    const struct WorkTerm {
        uint32_t n;
        const Dim *factor;
    } * work;
} Kernel;

/* The buffer with the clause `indefinite`, or BUF_NONE. */
#define INDEFINITE_NONE INT64_MAX
BufRef kernel_indefinite(const Kernel *k);

/* The statement that computes the k-th position. */
static inline const Stmt *kernel_position(const Kernel *k, uint32_t at)
{
    return k->positions->body[at];
}

typedef struct KernelModule {
    Arena *arena;
    const char *source_name;
    VEC(Kernel *) kernels;
} KernelModule;

/* ---- loop.c: making things ---- */
Kernel *kernel_new(Arena *arena, Sym name);
/* A copy whose lists may grow on their own; statements and expressions are shared. */
Kernel *kernel_like(Arena *arena, const Kernel *k);
/* A copy whose statements may be changed; what they point to is shared. */
Kernel *kernel_changeable(Arena *arena, const Kernel *k);
/* Gives variables the names that were wished for: loops first. */
void kernel_name_vars(Kernel *k, SymTable *syms);
/* The kernel with the n-th outermost block that has a test in place of all of these; null: it has
 * fewer. */
Kernel *kernel_alone(Arena *arena, const Kernel *k, uint32_t n);
/* Names are made identifiers and unique among variables and buffers: a, a2, a3, ... */
VarRef kernel_var(Kernel *k, SymTable *syms, const char *hint, bool is_loop);
BufRef kernel_buffer(Kernel *k, SymTable *syms, const char *hint, DType t, Space s,
                     uint32_t rank, const Dim *extent);
/* One of the type and the shape of `like`, which may be of another kernel and an argument. */
BufRef kernel_buffer_like(Kernel *k, SymTable *syms, const char *hint, const Buffer *like);
Range range_whole(Dim extent);
/* All positions from 0 on, of which the number is known? */
bool range_is_whole(const Range *r);
bool range_eq(const Range *x, const Range *y);
/* The most values the range can have; INT64_MAX when only open dims bound it. */
int64_t range_most(Range r);
Expr *expr_const(Arena *a, Number v);
Expr *expr_load(Arena *a, const Kernel *k, BufRef buf, const Affine *at);
/* The value of a position. */
Expr *expr_index(Arena *a, DType t, Affine at);
/* The element of the buffer, an argument, at positions that are values: [rank of buf] of i64; outside of it 0. */
Expr *expr_gather(Arena *a, const Kernel *k, BufRef buf, const Expr *const *at);
Expr *expr_op(Arena *a, Op op, DType t, uint32_t n, const Expr *const *arg);
Expr *expr_cast(Arena *a, const Expr *e, DType t); /* e itself when it is of that type */
/* The first value that passes a test, with loop variables at the values in `var`. */
static inline int64_t guard_least(const Guard *g, const int64_t *var)
{
    int64_t lo = g->lo;
    for (uint32_t t = 0; t < g->from.n; t++) {
        lo += g->from.term[t].coef * var[g->from.term[t].var];
    }
    return lo;
}
/* Do the tests of a block hold? */
static inline bool stmt_guards_hold(const Stmt *s, const int64_t *var)
{
    for (uint32_t i = 0; i < s->n_guards; i++) {
        const Guard *g = &s->guard[i];
        if (var[g->var] < guard_least(g, var) || var[g->var] >= g->hi) {
            return false;
        }
    }
    return true;
}

/* A loop or a block. */
static inline bool stmt_has_body(const Stmt *s)
{
    return s->kind == STMT_FOR || s->kind == STMT_BLOCK;
}
/* Does it set elements of the buffer? */
static inline bool tile_sets(const Stmt *tile, BufRef buf)
{
    return tile->dst == buf || tile->sums == buf + 1;
}
/* Is the buffer what `arg` says of it: the parts of larger numbers, or anything when it says nothing; of dimensions that are as
 * symmetric as is declared? */
bool arg_fits(const Kernel *k, const Arg *arg);
/* The caller has such numbers, of that rank unless `arg` says another; the buffer what they are made of. */
void arg_set_whole(Arena *a, Arg *arg, DType whole, uint32_t rank);
/* The buffer has pairs: a last dimension of 2 more, and at least one before it. */
void buffer_set_pairs(Arena *a, Buffer *b);
/* The position of one of a pair, `part`, behind those of an element of rank `rank`. */
const Affine *pair_at(Arena *a, uint32_t rank, const Affine *at, Affine part);
/* Of what the caller has. */
uint32_t arg_rank(const Kernel *k, const Arg *arg);
/* Does its last dimension hold the parts of complex numbers, or the two words of an f64? */
bool buffer_has_parts(const Kernel *k, BufRef buf);
/* Elements of the dimensions from one on; of an open extent that is in it, none. */
int64_t buffer_elements(const Buffer *b, uint32_t from);
/* Is it inout, a result, or allocated? */
bool buffer_is_writable(const Kernel *k, BufRef buf);
/* The type of its elements in memory. */
DType buffer_stored(const Buffer *b);

/* For these values of the open dims; saturating. */
int64_t kernel_multiply_adds(const Kernel *k, const int64_t *dims);

#endif
