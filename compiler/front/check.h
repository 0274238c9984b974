/* SPDX-License-Identifier: Apache-2.0 */
/* The checked program: names bound, every expression typed, every sum explicit, every index
 * with one extent. It is what graph/build.c turns into tensor graphs, and it holds nothing that
 * depends on a target.
 *
 * A kernel is a list of statements `target[left] = right`, executed in order. The indices of a
 * statement are its labels: small numbers, first those of the left side. Two statements share
 * no labels. An einsum string becomes a statement like any other (nested in an expression: one
 * of its own before, with a target of kind VALUE_TEMP), so that both notations are the same
 * from here on. */
#ifndef FRONT_CHECK_H
#define FRONT_CHECK_H

#include "front/ast.h"
#include "front/shape.h"
#include "op/affine.h"
#include "op/symmetry.h"

typedef enum CheckedKind {
    CHECKED_POISON, /* already reported */
    CHECKED_CONST,  /* value */
    CHECKED_EXTENT, /* of open dimension `dim` */
    CHECKED_INDEX, /* the position of label `label[0]` as a number; behind the checker, of several labels that are one index together */
    CHECKED_READ,  /* value `read` at labels `label`, or at positions `at` of these labels */
    CHECKED_GATHER, /* value `read` at positions that are the values of arg[], i64, one for each of its dimensions */
    CHECKED_MAP,    /* op of arg[] */
    CHECKED_CHAIN, /* arg[0] link[1] arg[1] ...: OP_ADD OP_SUB | OP_MUL OP_DIV | OP_AND | OP_OR,
                   from left to right */
    CHECKED_DENSE, /* cholesky of arg[0], a matrix of rows label[0] and columns label[1]; or the solution of a triangle, arg[0], with the
                      equation's index label[0], which is folded, and that of what is solved for, label[1]: arg[1] is the right side */
    CHECKED_REDUCE /* op over labels `label` of arg[0] */
} CheckedKind;

/* A number without an element type of its own yet: it takes that of its neighbours. */
typedef enum Weak { WEAK_NO, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX } Weak;

/* A value some of whose dimensions count as several, [s, n*dh] as [s, n, dh]: read or assigned at positions such as h*dh + d. */
typedef struct SplitShape {
    uint32_t rank;
    const Dim *dims;
    const uint32_t
        *axis; /* [rank] the dimension of the value that each is a part of; ascending */
} SplitShape;

typedef struct CheckedExpr {
    CheckedKind kind;
    Op op;
    DType dtype;
    Weak weak;
    AstId ast;
    Span span;
    Number value;
    bool typed;    /* CONST: it had an element type of its own */
    bool implicit; /* MAP: a cast that nobody wrote */
    bool
        placed; /* MAP: arg[0] == arg[1], of which arg[0] is a position in dimension `dim` of value `read` */
    int32_t dim;
    uint32_t read; /* in CheckedKernel.values */
    uint32_t n;    /* arguments */
    uint32_t cap;
    struct CheckedExpr **arg;
    uint8_t *link;  /* CHAIN: [n] */
    uint32_t rank;  /* labels */
    int32_t *label; /* READ: of each axis (extents of 1 may stand under a longer one); REDUCE:
                       those folded */
    const Affine *
        at; /* READ: null, or [rank of the value] positions, of labels (each in `label` once) and open dims */
    const SplitShape *
        split; /* READ with `at`: null, or what the value's shape counts as; then `at` are positions there */
} CheckedExpr;

typedef struct Label {
    Sym name; /* null in statements without indices */
    Span span;
    Dim extent;
    bool left;
    bool bound;   /* by a reduction that names it */
    bool valued;  /* its position is asked for as a number */
    bool counted; /* its positions are counted: a sum names it and reads nothing along it */
    bool
        given; /* its extent is written, or known from the value on the left, and no use of it changes that */
} Label;

/* An array of the caller's is cut along dimension `dim` over the ranks of an axis of the mesh; null: the kernel's only axis. */
typedef struct Shard {
    Sym axis;
    uint32_t dim;
    Sym written; /* the name by which the program says it; null: by number */
} Shard;

/* Of what a recurrence begins with, and of what a step reads of those before: dimension `dim` of value `of` at the position `text`, or
 * (null) at the step's index plus `by`. The value lacks that dimension. */
typedef struct StepsPlace {
    Sym of;
    uint32_t dim;
    int64_t by;
    const char *text;
} StepsPlace;

/* Above the diagonal of dimensions `row` and `column` the value is 0 (below it, if `upper`). */
typedef struct Triangle {
    bool known, upper;
    uint32_t row, column;
} Triangle;

typedef enum ValueKind { VALUE_PARAM, VALUE_RESULT, VALUE_LOCAL, VALUE_TEMP } ValueKind;

typedef struct Value {
    ValueKind kind;
    Sym name;                 /* null: a temp */
    TensorType type;          /* dtype NONE: poison */
    Span span;                /* its declaration or first assignment */
    const Symmetry *symmetry; /* declared; or null */
    Triangle triangle;        /* declared, or seen */
    const Shard *shard;       /* [n_shard], of two cuts of one dimension the outer one first */
    uint32_t n_shard;
    bool partial; /* the value is the sum of what ranks have */
    bool is_inout;
    bool declared; /* LOCAL: with an element type */
    bool allow_spill;
    bool assigned; /* by '=' so far */
    bool updated;  /* by any statement so far */
    uint32_t uses;
    uint32_t wide_uses; /* of an undeclared 16-bit value: that compute with it in f32 */
    uint32_t number;    /* among params or results */
    bool inlined;       /* a call has brought it */
    uint32_t
        step; /* of a value that a recurrence computes: the dimension of the step, from 1 */
    const StepsPlace *place; /* or null */
} Value;

typedef struct CheckedStatement {
    AstId ast;
    Span span;
    uint32_t target; /* value */
    Op op;           /* OP_COPY; OP_ADD, OP_SUB: right is old value + or - what was written */
    uint32_t n_labels;
    const Label *label;
    uint32_t rank;
    const int32_t *left; /* [rank]; labels, each once */
    const Affine *
        at; /* null, or [rank of the target]: a piece of it, at positions of these labels. With `op` COPY what is there, else
                         what is added */
    const SplitShape *split; /* likewise */
    bool completes;          /* the target: the last of its pieces */
    CheckedExpr *
        right; /* of the target's element type; f32 where that is an undeclared 16-bit one and has wide uses */
} CheckedStatement;

/* A value of a recurrence, with the step along dimension `dim`. */
typedef struct CheckedState {
    uint32_t value, dim;
    uint32_t n_lags; /* steps that are read back; 0: it is no state */
    const uint32_t *
        prior; /* [n_lags]: values, what is read of so many steps before, less 1; UINT32_MAX: that is not read */
    const uint32_t *
        given; /* values: at the positions that are given, in the order of steps; or [n_lags] before the first step, the
                              latest first */
} CheckedState;

/* Statements [first, end) that are computed step by step, in the order of positions of an index of this extent. */
typedef struct CheckedSteps {
    uint32_t first, end;
    Dim extent;
    bool backward;
    uint32_t given; /* positions that are no steps */
    uint32_t n, n_states;
    const CheckedState *state; /* [n] */
} CheckedSteps;

/* `kernel dE = grad E(x, y) with E;` */
typedef struct CheckedGradient {
    const struct CheckedKernel *of;
    bool seeds; /* vjp: what each result counts is a parameter */
    uint32_t n_params, n_with;
    const uint32_t *param; /* numbers of those that derivatives are taken by, */
    const uint32_t *with;  /* and of results that are delivered too */
} CheckedGradient;

typedef struct CheckedKernel {
    Sym name;
    Span span;
    const char *signature;
    DimTable dims;     /* open dimensions */
    VEC(Value) values; /* params, results, then what statements define */
    uint32_t n_params, n_results;
    VEC(CheckedStatement) statements;
    VEC(CheckedSteps) steps;
    bool places; /* something is read or assigned at positions that are more than indices */
    const CheckedGradient
        *gradient; /* null; else it has no statements, and the parameters of that kernel */
} CheckedKernel;

typedef struct Program {
    Ast ast;
    uint32_t source; /* the main file */
    VEC(CheckedKernel *) kernels;
    DimTable dims; /* declared, open, and used by some kernel */
} Program;

/* `-D name=value`, `-D name~value` */
typedef struct FrontDefine {
    const char *name;
    int64_t value;
    bool planned; /* ~: the dim stays open, and is planned for that value */
} FrontDefine;

typedef enum IncludeStatus {
    INCLUDE_READ,
    INCLUDE_ABSENT, /* no such file: look further */
    INCLUDE_REFUSED /* there, but not readable: *why says why not */
} IncludeStatus;
/* Reads the file `path` for an include; *text lives as long as the compilation, NUL-terminated beyond its end. */
typedef IncludeStatus (*IncludeReader)(void *user, const char *path, Str *text,
                                       const char **why);

typedef struct FrontOptions {
    const FrontDefine *defines;
    uint32_t n_defines;
    IncludeReader reader; /* null: includes are refused */
    void *user;
    const char *const *include_dirs; /* -I, in order */
    uint32_t n_include_dirs;
    FrontNarrow narrow;
} FrontOptions;

/* Parses and checks `source` and what it includes. Never null; when ctx->diags.n_errors grew, it must not be built. */
Program *program_check(Ctx *ctx, uint32_t source, const FrontOptions *options);

/* The checked program as TDSL with every sum written out and types in comments; reads back as itself. */
void program_dump(Ctx *ctx, const Program *p, Text *out);

/* ` shard(r(0), c(1)) partial`: how the caller's array lies on ranks, dimensions by number, or, if they are `named`, as the program
 * has them; nothing where every rank has all of it. */
void layout_put(Text *out, const Value *value, bool named);
/* `symmetric(0, 1)`, `hermitian((0, 1), (2, 3))`: one class as it is declared. */
void symmetry_put(Text *out, const SymmetryClass *c);

/* The statements of a kernel as program_dump writes them, each on one line, cut where it is long: for comments. */
SourceStatements statement_texts(Ctx *ctx, Arena *arena, const CheckedKernel *k);
/* Likewise a position that is a value. */
const char *position_text(Ctx *ctx, Arena *arena, const CheckedKernel *k,
                          const CheckedStatement *s, const CheckedExpr *position);

#endif
