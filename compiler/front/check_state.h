/* SPDX-License-Identifier: Apache-2.0 */
/* The checker is a row of passes over a statement, each with a header that includes the one before it:
 *
 *   check_state.h      the state of checking a program, a kernel and a statement, and what all make of it
 *   check_names.h      what names mean, recurrences among them, and what is said of those that mean nothing
 *   check_types.h      numbers without a type, types of operations, the type in which a statement computes
 *   check_positions.h  positions, their ranges, and values that are read at them
 *   check_expr.h       expressions: all that stands in another one of its kind
 *   check_sums.h       which sums are silent
 *   check_statement.h  a statement; calls that it needs before
 *   check_kernel.h     kernels, those that others call, and the program
 *
 * Nobody else includes them. */
#ifndef FRONT_CHECK_STATE_H
#define FRONT_CHECK_STATE_H

#include "base/map.h"
#include "front/check.h"
#include "op/pieces.h"

typedef enum GlobalState { GLOBAL_NEW, GLOBAL_BUSY, GLOBAL_DONE } GlobalState;

/* A dim or a const of the program. */
typedef struct Global {
    AstId ast;
    Sym name;
    bool is_const;
    bool in_main; /* not from an include */
    GlobalState state;
    CheckedExpr *value; /* CONST: its value (POISON when it has none); dim: null when open */
    Dim dim;            /* dim: fixed, or open with sym 0 */
    int64_t typical;
    bool poison;
    uint32_t uses;
} Global;

typedef struct Item {
    AstId ast;
    bool in_main; /* not from an include */
    bool library; /* from an include of the compiler's own files */
} Item;

/* Kernels that call, or are derivatives of, each other: one inside of another. */
#define KERNEL_DEPTH 64

/* Words that stand for an element type in the head of a kernel that is only called: each call says which. */
enum { WORD_FLOAT, WORD_COMPLEX, WORD_INT, WORD_NUMBER, WORDS };

/* A kernel of the program, or one that its kernels call. */
typedef struct KernelHead {
    AstId ast;
    CheckedKernel *kernel;
    GlobalState state; /* of checking it by itself */
    bool wrong;        /* there was a mistake in it */
    bool words;        /* its head has words for element types: */
    DType word[WORDS]; /* what they stand for by itself; NONE: it has none of them */
    bool library; /* of the compiler's own files: names of the program mean nothing in it */
} KernelHead;

typedef struct Check {
    Ctx *ctx;
    Arena *arena;
    Program *program;
    const FrontOptions *options;
    bool *define_used;
    VEC(Item) items;    /* of all files, includes in their place */
    bool items_damaged; /* some item did not parse: names may be missing */
    VEC(Global) globals;
    Map global_by_name;
    VEC(KernelHead) heads; /* of all kernels */
    Map kernel_by_name;    /* -> head */
    Map included;          /* path -> 1: being read, 0: read */
    uint32_t depth;        /* of constants evaluated inside others */
    uint32_t calls;        /* kernels that are being checked because others call them */
    uint32_t inlined;      /* statements that calls have copied */
} Check;

typedef struct SilentSum {
    Sym name;
    Span at;
} SilentSum;

/* An index that one of several terms sums silently. */
typedef struct TermSum {
    uint32_t label;
    uint32_t count; /* occurrences in the term */
    Span at;        /* the latest of them */
} TermSum;

typedef struct LabelUse {
    uint32_t n;
    Span at;        /* the use that gave the extent */
    uint32_t value; /* of what */
    uint32_t read;  /* the latest indexed tensor, and the dimension there */
    Dim dim;
} LabelUse;

/* A read at positions that are looked at when all extents are known. */
typedef struct LateRead {
    uint32_t value, axis;
    Affine at;
    Span span;
    Dim extent; /* of that dimension, or of the part of it that `at` is a position in */
    bool part;
    uint32_t slower; /* so many reads before this one are of the parts that are slower */
    const int32_t
        *label; /* of the whole tensor: it is read where each of these has a position */
    uint32_t n_labels;
} LateRead;

/* An index times an open dim: a variable of positions until they are split (check_split.c). */
#define PRODUCT_VAR UINT32_C(0x40000000)

typedef struct IndexProduct {
    VarRef label;
    Dim factor; /* open */
} IndexProduct;

static inline bool is_product_var(VarRef v)
{
    return v >= PRODUCT_VAR && !affine_is_dim(v);
}

/* What a value is put together of, in several statements. */
typedef struct ValuePiece {
    uint32_t value;
    Patch patch;
    const SplitShape *split; /* of the value, or null */
    Span span;
} ValuePiece;

typedef struct KernDim {
    Dim dim;
    bool ok; /* else already reported */
} KernDim;

/* A call of a kernel in a kernel, or an einsum in an expression, whose statements stand before this one: the values of its results, and the
 * indices with which each is read. */
typedef struct KernelCall {
    AstId ast;
    bool whole; /* operands without indices: so are results */
    uint32_t n; /* results */
    const uint32_t *value;
    const AstId *const *index; /* names, of each dimension; null if `whole` */
} KernelCall;

/* How a statement names an index: alone between brackets; in a sum of several, or with a range; on the left, in a reduction, in
 * index() or in two tensors, so that no position is meant. */
enum { INDEX_ALONE = 1, INDEX_SHIFTED = 2, INDEX_NAMED = 4 };

/* Steps that a recurrence reaches back, and positions that are given, at most. */
#define STEPS_MOST 8

/* `h[-1, n] = ..`: before the first step (below 0), or of position `at`; of backward ones counted from the end. */
typedef struct StepsGiven {
    int64_t at;
    uint32_t statement;
    Sym name; /* of the value that it is, without the step's index */
    const char *text;
} StepsGiven;

/* A value that is computed step by step (check_steps.c). */
typedef struct StepsName {
    Sym name;
    uint32_t axis; /* of the step's index among the indices, from 1 */
    bool backward;
    bool mixed; /* it is read another way too, or along another index, `mixed_axis`, there: */
    Span mixed_at;
    uint32_t mixed_axis;
    uint32_t first, statement; /* that reads it first, and that assigns it */
    Span at;                   /* a read */
    uint32_t n_given;
    StepsGiven given[2 * STEPS_MOST];
    uint32_t n_first; /* the first positions are given, so many */
    uint32_t n_lags;
    bool read[STEPS_MOST]; /* by lag, less 1; and the names of these values */
    Sym prior[STEPS_MOST];
} StepsName;

/* A statement of a recurrence. */
typedef struct StepsMember {
    Sym name, index;
    uint32_t axis, statement;
} StepsMember;

typedef struct StepsGroup {
    uint32_t first, last; /* statements of the body, */
    uint32_t statements;  /* and of the checked kernel: the first */
    VEC(StepsMember) members;
} StepsGroup;

/* The state of one statement, or of an expression that is one of its own. */
typedef struct Statement {
    VEC(Label) labels;
    VEC(LabelUse) uses; /* of each label */
    uint32_t reads;     /* indexed tensors met so far */
    Map label_by_name;  /* sym -> label + 1; 0: none */
    Map index_names; /* sym -> INDEX_ALONE and others: names that are indices in the statement */
    bool whole;      /* the left side has no indices */
    int32_t whole_rank;  /* of the operands without indices; -1: none seen */
    int32_t whole_first; /* label of their first dimension */
    Span whole_at;
    Sym whole_name;
    bool indexed; /* an index was written on the right */
    bool poisoned;
    VEC(LateRead) late;
    VEC(TermSum) sums;     /* of the terms so far */
    VEC(SilentSum) silent; /* warned of when the statement is right otherwise */
} Statement;

/* The state of one kernel. */
typedef struct Kern {
    Check *c;
    CheckedKernel *k; /* null while a constant of the program is evaluated */
    bool damaged;     /* some statement did not parse: names may be missing */
    bool in_extent;   /* an extent is evaluated: names are dims */
    Map value_by_name;
    Map dim_by_name;    /* sym -> place in dims */
    VEC(KernDim) dims;  /* values of dim_by_name */
    Map assigned_later; /* sym -> statement of the body that first assigns it */
    Map pieces_of;      /* sym -> statements that assign it, of which one at positions */
    Map pieces_lost;    /* sym -> 1: a statement of them was refused */
    VEC(ValuePiece) pieces;
    const AstNode *body;
    uint32_t statement; /* being checked */
    bool wrong;         /* some statement has a mistake */
    bool library;       /* it is of the compiler's own files */
    bool is_called;     /* its statements are to be copied into another one */
    DType word
        [WORDS]; /* what words for element types stand for; NONE: the head has none of them */
    VEC(KernelCall) kernel_calls;
    Map call_by_ast;   /* -> kernel_calls */
    Map inlined_names; /* of values that calls have brought */
    VEC(StepsName) steps_names;
    VEC(StepsGroup) steps_groups;
    Map steps_of; /* sym -> steps_names */
    bool steps_wrong;
    uint32_t
        result_taken; /* of `(a, b) = f(..)`: which result this statement takes, counted from 1 */

    Statement s;  /* that is checked */
    bool on_left; /* names in positions that are nothing else are indices of the left side */
    VEC(IndexProduct) products; /* of all statements; labels are theirs */
    uint32_t nested;            /* expansions around */
    uint32_t terms;             /* that permutations around make of one; 0: none */
} Kern;

static inline const AstNode *kern_node(const Kern *k, AstId id)
{
    return ast_node(&k->c->program->ast, id);
}

/* Where an index has a range somewhere in the statement, extents of its reads are looked at later. */
static inline bool extent_is_known(const Kern *k, uint32_t label)
{
    return k->s.labels.at[label].given || k->s.uses.at[label].n > 0;
}

static inline bool expr_is_product(const CheckedExpr *e)
{
    return e->kind == CHECKED_CHAIN && (e->op == OP_MUL || e->op == OP_DIV);
}

/* ---- check_make.c ---- */
CheckedExpr *expr_new(Kern *k, CheckedKind kind, AstId ast, Span span);
CheckedExpr *expr_poison(Kern *k, AstId ast, Span span);
static inline bool expr_is_poison(const CheckedExpr *e)
{
    return e->weak == WEAK_NO && e->dtype == DTYPE_NONE;
}
CheckedExpr *expr_of_index(Kern *k, AstId ast, Span span, int32_t label);
/* A cast, at the place of what it takes. `implicit`: nobody wrote it. */
CheckedExpr *expr_cast_to(Kern *k, CheckedExpr *e, DType t, bool implicit);
uint32_t value_new(Kern *k, Value v);
void statement_add(Kern *k, CheckedStatement s);
/* `target[left] = right`, of the labels of `s`; `left` is copied. */
CheckedStatement statement_made(Kern *k, const Statement *s, AstId ast, uint32_t target,
                                const int32_t *left, uint32_t rank, CheckedExpr *right);
/* Begins a statement, or an expression that is one of its own, in the place of the one that is checked, which is returned. */
Statement statement_open(Kern *k, bool whole);
int32_t label_new(Kern *k, Sym name, Span span, bool left);
/* The label takes part in a dimension of extent d of value `of`; a misfit is reported. */
void label_use(Kern *k, int32_t label, Dim d, Span at, uint32_t of);
/* "index i is 3 in A[3,4] but 4 in B[...]": label `l` has extents `d` and `other`, read in values `of` and `other_of`. */
void extent_mismatch(Kern *k, const Label *l, Dim d, Span at, uint32_t of, Dim other,
                     Span other_at, uint32_t other_of);
/* Notes how a value was declared. */
void note_shape(Kern *k, Diagnostic *d, uint32_t value);
/* What -D says of a dim. */
bool define_find(Check *c, Sym name, int64_t *value);
/* What -D says to plan an open dim for. */
int64_t define_typical(Check *c, Sym name, int64_t otherwise);
/* What x, of open dims, is as an extent of the kernel. */
Dim extent_of_sum(Kern *k, Span at, Affine x, int64_t divisor);
/* Is an extent within its bounds? */
bool extent_check(Check *c, int64_t n, Span at);
/* Offers a call of `function` around what stands there. */
void fix_call(Check *c, Diagnostic *d, Span at, const char *function);
/* Marks the other party; the text is for a line of its own only. */
void mark_other(Check *c, Diagnostic *d, Span other, const char *text);

#endif
