/* SPDX-License-Identifier: Apache-2.0 */
/* The printer of C, inside: what its files share. It prints what a LEGAL kernel says, and
 * chooses nothing but instructions; it knows loops, buffers and scalar expressions, and no contractions.
 *
 *   emit.c         the files: helpers, kernels, tables
 *   interface/     what callers see of a kernel: interface/interface.h
 *   emit_gather.c    rows at positions that are values
 *   emit_across.c  what several files share: --emit=shared
 *   emit_declare.c declarations of functions that kernels call
 *   emit_space.c   where buffers lie in the workspace
 *   emit_stmt.c    buffers and blocks; statements, as backend/ctext prints them
 *   emit_counts.c  names for how many positions a range has
 *   emit_captured.c  what a function needs from outside
 *   emit_part.c    parallel loops: a function of a range of iterations, which threads run
 *   emit_product.c products: calls of functions that all kernels of the file share
 *   emit_tiles.c   these functions, for each instruction set
 *   emit_micro.c   the macros that they are made of: rows of vectors
 *   emit_vector.c  vectors, as the text of all tiles loads, stores and computes with them
 *   emit_dot.c     tiles of dot products of integers
 *   emit_words.c   copies into panels in groups of lines, that such tiles read
 *   emit_term.c    tiles that fold other terms than products
 *   emit_tables.c  joins of incomplete tiles; tables of functions by instruction set
 *   emit_pairs.c   what is special in them where numbers are complex
 *   emit_prefetch.c  prefetches of products
 *   emit_tile.c    instruction sets, and the macros of vectors
 *   emit_variants.c  other register tiles: functions of a statement each, which are macros with the instruction set as parameter
 *   emit_unrolled.c  unrolled statements in them
 *   emit_pack.c    copies into panels: calls of functions that all kernels share
 *   emit_stream.c  stores past the caches
 *   emit_transpose.c  copies that read along another index than they write along: the same
 *
 * Names, expressions, lines, loops and helper functions are those of backend/ctext. */
#ifndef BACKEND_C_EMIT_H
#define BACKEND_C_EMIT_H

#include "backend/c/isa.h"
#include "backend/c/product.h"
#include "backend/ctext/ctext.h"

/* What is folded where it is no product: the value in one of the kernels that have it, of the row's load and the column's. */
typedef struct TileTerm {
    Op fold;
    const char *name; /* "_max_add_ab", equal of equal terms; "": a product, summed */
    const Kernel *k;
    const Expr *value, *row;
} TileTerm;

/* Operands are panels in groups of lines, each group of a row or a column a word of these types; group 0: they are not. */
typedef struct TileDot {
    int64_t group;
    DType row, column;
} TileDot;

/* A register tile that products share. Of complex numbers its function gets pointers to the parts, and strides in parts. */
typedef struct TileShape {
    DType t;
    int64_t rows, columns;
    bool parts[2]; /* t is complex: is the rows' operand, is the columns'? One is */
    bool by;       /* what is added up is multiplied by a number */
    bool side;     /* rows are side by side in their operand */
    bool ahead;    /* it asks for what comes next, meanwhile: emit_prefetch.c */
    bool streams;  /* some calls store past the caches; says nothing of which tile it is */
    /* Of a short sum of known extent, for which a call with all of these would take longer than the sum; else 0. */
    ProductNumbers n;
    TileTerm term;
    TileDot dot;
    int how; /* of such a one: TILE_ADDS and the others */
} TileShape;

/* Lines of an operand that is read in place lie so far from each other that no hardware prefetches them. */
#define FAR_BYTES 2048

/* What a tile's function does beside multiplying: it adds to what is there; an operand is conjugated; it stores past
 * the caches if lines of the result are lines of memory. */
#define TILE_ADDS     1
#define TILE_CONJ_ROW 2
#define TILE_CONJ_COL 4
#define TILE_STREAMS  8

/* How results of tiles join what is there: added, or added times a number, or the least or most of both. */
typedef enum JoinKind { JOIN_SUM, JOIN_BY, JOIN_MIN, JOIN_MAX, JOIN_KINDS } JoinKind;

/* Vectors of rows that are a multiple of `most` numbers long: of most lanes, or as many as an instruction set has. Of complex numbers lanes
 * are parts, of which plain C has two. */
typedef struct TileVector {
    DType t;
    int64_t most;
} TileVector;

/* The function of a statement's tile. Its macro has an instruction set as parameter, and a type and a number of lanes for each of these. */
typedef struct TileFold {
    const char *name, *macro; /* null: functions are printed as they are */
    const TileVector *vector;
    uint32_t n;
    const char *key; /* equal of equal functions; or null */
} TileFold;

/* Of --emit=shared: what a file has of what kernels of several files share. ALONE: all that its own need. */
typedef enum FileRole { FILE_ALONE, FILE_SHARED, FILE_SHARING } FileRole;

/* The functions of one file that are there once for each instruction set. */
typedef struct Tiles {
    Arena *arena;
    Helpers *help;
    VEC(TileShape) shapes;
    uint32_t joins[JOIN_KINDS]; /* bit 1 << DType: of a tile not all may join */
    uint32_t join_streams;      /* some of the first may be told to store past the caches */
    uint32_t pairs;             /* bit per vector type whose neighbours change places */
    uint32_t complex;           /* ... whose elements are multiplied as complex numbers */
    int64_t join_bytes;
    Text folds, members; /* functions of single statements; as members of the table */
    VEC(TileFold) fold;
    bool turns; /* there is a function without rows of its own that asks which they are */
    FileRole role;
    /* Does some call add to what is there, does one read lines of columns that are far from each other? */
    bool adds, far;
} Tiles;

/* The walk over what fills these panels next: its variable, and how far, in bytes, it goes from step to step of a sum, at the last one of a
 * line of memory. */
typedef struct Ahead {
    BufRef panels;
    const char *name;
    int64_t each, turn;
} Ahead;

/* A name of the kernel that functions of its statements may need. */
typedef struct Known {
    enum { KNOWN_NOT, KNOWN_DIM, KNOWN_VAR, KNOWN_BUF, KNOWN_ISA, KNOWN_FOLDS } kind;
    uint32_t number;   /* of the dim, loop variable or buffer */
    bool shares;       /* a buffer: its place has another name */
    uint32_t function; /* the last one that declares it or needs it */
} Known;

typedef struct Emitter {
    CWriter w;
    Ctx *ctx;
    Tiles *tiles;
    bool uses_isa;
    bool lines;                /* marks of lines are printed: emit_line.c */
    struct Counters *counters; /* or numbers of counters: emit_profile.c; or null */
    const char *symbol;        /* of the kernel */
    int32_t *number;           /* [dims] in the kernel's table: see dim_number */
    uint32_t n_computed;       /* extents in the kernel's table that are computed from others */
    bool file_computes;        /* some kernel of the file has such */
    bool file_requires;        /* some kernel of the file requires positions to lie inside */
    bool file_factors;         /* some kernel of the file factors matrices */
    const char *macro;         /* of its workspace's size; null: it has none */
    struct {
        const char *bytes, *size, *need, *none, *ws, *isa;
        const char *
            folds; /* the functions of single statements: those of `isa`, or a table of their own */
        const char *each, *space, *crew, *common, *work, *number; /* where loops are parallel */
        const char *first, *until, *count, *worth, *from, *step, *next, *skip, *front, *most;
        const char *strip, *end, *near, *far; /* see emit_strips.c */
    } own;                                    /* variables of the entry functions */
    Text parts;                               /* functions of parallel loops, */
    uint32_t n_parts;                         /* how many */
    Known *known;                             /* by number of the name, of the first n_known */
    uint32_t n_known, n_functions;            /* see emit_captured.c */
    bool in_part;                             /* one is being printed */
    const Stmt *cut;                          /* the loop that it is a part of */
    const Stmt
        *flat; /* the inner one of the two loops that it shares, until it is met; or null */
    /* Are there stores past the caches in the entry, in the part? */
    bool streams, part_streams;
    VEC(Ahead) aheads;
    VEC(Temp) count_names; /* that counts were given, and what was wished for: emit_counts.c */
    Map quoted;            /* statements of the program that comments have said, by address */
    uint32_t n_tiles;      /* register tiles of the kernel */
    /* register tiles */
    bool in_tile;            /* a register tile is being printed, */
    const Isa *isa;          /* for this instruction set; null: for all, as a macro */
    VEC(TileVector) vectors; /* that are its parameters */
    VEC(Temp) loads;         /* of the statement being printed */
    VEC(const char *) load_names;
} Emitter;

/* More tile statements than this are not printed into one file: no C compiler takes it in reasonable time. */
#define EMIT_STATEMENTS 100000

/* ---- emit_profile.c ---- */
typedef struct Counter {
    const char *text; /* the statement of the program, or the value */
    uint32_t line;    /* of the source; 0: not known */
} Counter;

typedef struct Counters {
    Arena *arena;
    uint32_t n, cap;
    Counter *at;
} Counters;
/* From 1. */
uint32_t counter_of(Counters *c, const char *text, uint32_t line);
void counters_emit(Arena *arena, Text *out, const Counters *c);

/* ---- emit_line.c ---- */
#define LINE_MARK '\x01'
/* What is printed from here on is of the line of the first TILE among these; of no line. */
void line_mark(Emitter *e, Text *out, Stmt *const *body, uint32_t n);
void line_unmark(Emitter *e, Text *out);
/* emit_stmt.c. What a statement of the kernel is part of: a statement of the program, else the value that it computes; null where neither is known. */
const char *origin_of(const Kernel *k, const Stmt *s);
/* The text with `#line` instead of marks; `name`: of the C file. */
void lines_emit(Arena *arena, Text *out, const Sources *sources, const char *name);

/* ---- emit_space.c: the workspace ---- */
/* Are there buffers among these statements that lie over no other? */
bool needs_workspace(const Kernel *k, Stmt *const *body, uint32_t n);
/* What body[0]'s buffer and all over it in the block need, together: `text` when an extent is
 * open, else `bytes`. */
typedef struct Room {
    const char *text;
    int64_t bytes;
    bool shared; /* there is one over it */
} Room;
Room room_of(Emitter *e, Stmt *const *body, uint32_t n);
/* Of panels in the loop that threads cut: for each position of an iteration; those before `until` alone. */
int64_t cut_bytes(const Kernel *k, const Stmt *loop, BufRef until);
bool bytes_fixed(const Buffer *b, int64_t *bytes); /* rounded up to 64 */
/* Is what the buffers of these statements need the same for all extents? */
bool stack_fixed(const Kernel *k, Stmt *const *body, uint32_t n, int64_t *bytes);
/* The deepest stack of buffers, of those whose extents are numbers, or with typical ones for the
 * others; and what is asked for then. */
int64_t stack_bytes(const Kernel *k, bool typical);
int64_t workspace_bytes(const Kernel *k, bool typical);
/* Buffers stand at multiples of this. A workspace may begin anywhere: what is asked for holds
 * as much more, and the entry begins at the first multiple. */
#define WORKSPACE_ALIGNMENT 64

/* ---- emit_stmt.c ---- */
/* Where the next buffer of the workspace goes: `base` + `offset`. */
typedef struct WorkspaceTop {
    const char *base;
    int64_t offset;
} WorkspaceTop;
/* The head of a block that is run for these sizes (null: all); scope_end ends it. */
void test_begin(Emitter *e, const DimTest *when);
void block_emit(Emitter *e, Stmt *const *body, uint32_t n, WorkspaceTop ws);
void tile_emit(Emitter *e, const Stmt *s);
/* The statement, without what stands over it. */
void statement_put(Emitter *e, const Stmt *s);

/* ---- emit_captured.c ---- */
/* Numbers in Emitter.known, in the order of names. */
typedef struct Captured {
    uint32_t n, cap, *at;
} Captured;
/* What the text of a function that runs the statements needs from outside. */
Captured captured_find(Emitter *e, Stmt *const *body, uint32_t n, const char *text);
/* "const float *" */
const char *captured_type(Emitter *e, const Known *x);

/* ---- emit_part.c ---- */
/* Is there a loop that threads share among these statements; with buffers inside? */
bool any_split(const Kernel *k, Stmt *const *body, uint32_t n, bool with_buffers);
void shared_loop_emit(Emitter *e, const Stmt *s, WorkspaceTop ws);
/* Begins Emitter.flat. */
void flat_inner_begin(Emitter *e, const Stmt *s);
/* Into how many pieces `threads` threads cut the loop at most, wherever the loops around it are. */
const char *shared_pieces_emit(Emitter *e, const Stmt *s);
/* How many iterations, or places where they may be cut, there are at most to be dealt. */
const char *shared_count_text(Emitter *e, const Stmt *s);

/* ---- emit_product.c ---- */
void product_emit(Emitter *e, const Stmt *s);
/* When a fold that begins goes on with what earlier iterations have left; null: never. */
const char *goes_on_text(Emitter *e, const Stmt *s);

/* ---- emit_access.c ---- */
/* Of a call in place of a statement: positions of a range that there are, as a number or text;
 * where an access is at the first positions of all indices. */
const char *count_text(Emitter *e, Range r);
const Affine *access_first(Emitter *e, const Stmt *s, BufRef buf, const Affine *at);

/* ---- emit_counts.c ---- */
/* Names the counts that a block needs more than once: where it is the body of a loop, those that begin with its variable, of the
 * outermost block of a function all whose start is known. */
void counts_bind(Emitter *e, Stmt *const *body, uint32_t n, bool outermost, VarRef var);
/* Names the count of an iteration of a loop that threads cut: where it is open, it may be shorter than its step. */
void counts_bind_cut(Emitter *e, const Stmt *loop);

/* ---- emit_prefetch.c ---- */
/* Begins the walk that the alloc of panels says. */
void prefetch_begin(Emitter *e, const Stmt *alloc);
/* Of a product; null: it prefetches nothing. */
const Ahead *prefetch_of(const Emitter *e, const Stmt *s);

/* ---- emit_tiles.c, emit_tables.c ---- */
void tiles_init(Tiles *t, Arena *a, Helpers *help);
bool tiles_have_dots(const Tiles *t);
/* The name that the function has in the table of an instruction set; it is printed later. */
const char *tile_use(Tiles *t, TileShape s);
/* Those that put a tile where not all of it is; "join_by_f32". */
const char *join_name(Arena *a, JoinKind kind, DType t);
void joins_emit(Tiles *t, Text *out);
/* All functions of register tiles and the tables of them: once every kernel has been printed. */
void tiles_emit(Tiles *t, Text *out);
/* The type of such a table, as kernels see it. */
void tiles_type_emit(Tiles *t, Text *out);

/* ---- emit_complex.c ---- */
/* The assignment of a map of complex numbers, part by part. */
void complex_assign(Emitter *e, const Stmt *s);

/* ---- emit_pairs.c ---- */
/* The macros of vectors that tiles of complex numbers use. */
void pairs_emit(const Tiles *t, Text *out);
/* The macros for complex numbers in vectors of so many parts are used (TDSL_RE(V, x), ...). */
void pairs_note(Tiles *t, DType part, int64_t lanes);

/* ---- emit_unrolled.c ---- */
bool is_unrolled(const Stmt *s);
void unrolled_emit(Emitter *e, const Stmt *s);
/* The name of a value in a register: r0, r1, ... of the statement being printed. */
const char *loaded_name(Emitter *e, uint32_t number);
void acc_declare(Emitter *e, BufRef buf);

/* ---- emit_vector.c ---- */
/* Is its innermost index run as vectors? */
bool stmt_has_lanes(const Stmt *s);
/* As computed with in registers: integers without a sign, which wrap. */
const char *element_type(DType t);
/* Lanes of the widest vector of at most `bytes` that fits into `span` lanes, else 1. */
int64_t vector_part(int64_t bytes, DType t, int64_t span);
/* "tdsl_f32x16"; noted as used. */
const char *vector_type(Helpers *h, DType t, int64_t lanes);
/* The same, or of one lane a number. */
const char *lanes_type(Helpers *h, DType t, int64_t lanes);
/* What an instruction set has for them: in plain C single numbers. */
int64_t isa_lanes(const Isa *isa, TileVector v);
const char *isa_vector(Tiles *t, const Isa *isa, TileVector v);
/* "TDSL_AT(V, p)": the vector that stands at a place; as what is assigned to. */
const char *vector_at(Arena *a, const char *type, const char *place);
const char *vector_to(Arena *a, const char *type, const char *place);
/* The macro that takes lanes of two vectors. */
void shuffle_put(Helpers *h);
/* A vector of equal elements; null: of zeros. */
const char *vector_spread(Arena *a, const char *type, const char *value);
/* The statement that folds a value into a vector, or assigns it. */
const char *vector_fold(Arena *a, Helpers *h, Op fold, const char *type, const char *into,
                        const char *value);
/* A text of C, and whether it is a vector. */
typedef struct VectorText {
    CText text;
    bool vector;
} VectorText;
/* Of real numbers: - x, x + y, x - y, x * y, x / y. */
VectorText vector_arithmetic(CWriter *w, Op op, VectorText x, VectorText y);

/* ---- emit_tile.c ---- */
/* The instruction sets that the C compiler is to know, and the vectors and macros that `functions` use. */
void isa_names_emit(const Tiles *t, Text *out, const char *functions);

/* ---- emit_fold.c ---- */
/* The macros of vectors' minima, maxima and magnitudes that are used. */
void folds_emit(const Helpers *h, Text *out);

/* ---- emit_variants.c ---- */
/* Prints the statements as a function, and its call where we are. */
void register_tile_emit(Emitter *e, Stmt *const *body, uint32_t n);

/* ---- emit_folds.c ---- */
/* "V, L, V2, L2": the parameters of so many types of vectors. */
const char *vector_parameters(Arena *a, uint32_t n, const char *vector, const char *lanes);
/* The macro of all such functions of an instruction set; a row of the table of instruction sets makes them. */
void folds_macro(const Tiles *t, Text *out);
void folds_of(Tiles *t, const Isa *isa, Text *out);

/* ---- emit_strips.c ---- */
/* Does the statement call functions that have a form for operands near 0 (help_near)? */
bool strips_needed(const Stmt *s);
/* Its innermost loop in strips, for vectors: near forms first, and whole functions where an operand was not near. */
void strips_emit(Emitter *e, const Stmt *s);

/* ---- emit_pack.c ---- */
/* A copy into panels, as the call of a function; false: it is none of the kind. */
bool pack_emit(Emitter *e, const Stmt *s);
/* The function that turns a block of a few elements in registers; the types of its vectors. */
void turn_put(Emitter *e, DType t);
/* A helper function's text, with signs for both types replaced, that of the panels and another one that is converted. */
void converted_put(Emitter *e, const char *text, DType t, DType from);
/* ---- emit_words.c ---- */
/* The macro that copies a few bytes. */
void copy_put(Helpers *h);
/* The name of the function that copies into panels in groups of lines. */
const char *words_function(Emitter *e, DType t, DType from);
/* A helper function's text, with its signs replaced for the element type. */
void template_put(Emitter *e, const char *text, DType t);

/* ---- emit_stream.c ---- */
/* The macros of stores past the caches. */
void stream_put(Helpers *h);
/* The condition that the buffer has more bytes. */
const char *larger_text(Emitter *e, BufRef buf, int64_t bytes);
/* Does the statement store past the caches? Null: never; else a condition of the extents of what it writes. */
const char *nontemporal_text(Emitter *e, const Stmt *s);

/* ---- emit_transpose.c ---- */
/* A transposing copy, as the call of a function; false: it is none. */
bool transpose_emit(Emitter *e, const Stmt *s);

/* ---- emit_move.c ---- */
/* A copy along lines beside products, as calls of a function; false: it is none. */
bool move_emit(Emitter *e, const Stmt *s);
/* Zeros that fill a block or lines of a panel; the loop of those at the edge of panels: calls too. */
bool zero_emit(Emitter *e, const Stmt *s);
bool edge_emit(Emitter *e, const Stmt *loop);

/* ---- emit_gather.c ---- */
/* Gathers of one statement whose rows are loops of their own. */
#define GATHERED_ROWS 4
/* A statement with elements at positions that are values, which are the same in its inner loops; false: it is none, and nothing is
 * printed. */
bool gather_emit(Emitter *e, const Stmt *s);

/* ---- emit_places.c ---- */
/* A statement that has `places`. */
void places_emit(Emitter *e, const Stmt *s);

/* ---- emit_across.c: what files of one build share ---- */
typedef struct Across {
    const struct SharedNeeds *needs;
    const char *header, *version; /* its name; of the compiler */
} Across;
/* The header's text behind the types of the interface, and that of the C file; `about`: what stands before all. */
void across_emit(Tiles *t, const Across *x, const char *about, Text *h, Text *c);
/* In a file that shares them. */
void across_include(const Tiles *t, const Across *x, Text *out);

/* ---- emit_declare.c ---- */
/* Is the name in the text, as a word? */
bool mentions(const char *text, const char *name);
/* Prototypes of what is defined in `definitions` and called in `kernels`. */
void declare_used(Arena *a, Text *out, const char *kernels, const char *definitions);

#endif
