/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the checker share: the state of checking a program and a kernel. check.c: files, dims and
 * constants; check_kernel.c: heads; check_statement.c: statements and indices; check_expr.c: expressions; check_call.c:
 * calls; check_kernel_call.c, check_operands.c, check_inline.c: kernels in kernels; check_gather.c: positions that are values; check_fold.c: reductions; check_expand.c: those that are written with others; check_dense.c: dense steps; check_einsum.c: einsum strings; check_sums.c: which sums are silent; check_weak.c: numbers without a type;
 * check_compute.c: the type in which a statement computes;
 * check_name.c: what names mean. Nobody else includes this. */
#ifndef FRONT_CHECK_PARTS_H
#define FRONT_CHECK_PARTS_H

#include "base/map.h"
#include "front/check.h"
#include "front/einsum.h"
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
    bool words;        /* its head has words for element types */
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

/* A call of a kernel in a kernel, whose statements have been copied: the values of its results, and the indices with which each is
 * read. */
typedef struct KernelCall {
    AstId ast;
    uint32_t head;
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

    /* the statement being checked */
    VEC(Label) labels;
    VEC(LabelUse) uses;  /* of each label */
    uint32_t reads;      /* indexed tensors met so far */
    VEC(Sym) named;      /* index names to forget afterwards */
    Map label_by_name;   /* sym -> label + 1; 0: none */
    bool whole;          /* the left side has no indices */
    int32_t whole_rank;  /* of the operands without indices; -1: none seen */
    int32_t whole_first; /* label of their first dimension */
    Span whole_at;
    Sym whole_name;
    bool indexed; /* an index was written on the right */
    bool poisoned;
    bool on_left;    /* names in positions that are nothing else are indices of the left side */
    Map index_names; /* sym -> INDEX_ALONE and others: names that are indices in the statement */
    VEC(LateRead) late;
    VEC(IndexProduct) products; /* of all statements; labels are theirs */
    VEC(TermSum) sums;          /* of the terms so far */
    uint32_t nested;            /* expansions around */
    uint32_t terms;             /* that permutations around make of one; 0: none */
    VEC(SilentSum) silent;      /* warned of when the statement is right otherwise */
} Kern;

static inline const AstNode *kern_node(const Kern *k, AstId id)
{
    return ast_node(&k->c->program->ast, id);
}

/* Where an index has a range somewhere in the statement, extents of its reads are looked at later. */
static inline bool extent_is_known(const Kern *k, uint32_t label)
{
    return k->labels.at[label].given || k->uses.at[label].n > 0;
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
/* A cast, at the place of what it takes. `implicit`: nobody wrote it. */
CheckedExpr *expr_cast_to(Kern *k, CheckedExpr *e, DType t, bool implicit);
uint32_t value_new(Kern *k, Value v);
void statement_add(Kern *k, CheckedStatement s);
/* What belongs to one statement, put aside in `other` while another one is checked that it needs before. */
void statement_swap(Kern *k, Kern *other);
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
/* Is an extent within its bounds? */
bool extent_check(Check *c, int64_t n, Span at);
/* Offers a call of `function` around what stands there. */
void fix_call(Check *c, Diagnostic *d, Span at, const char *function);
/* Marks the other party; the text is for a line of its own only. */
void mark_other(Check *c, Diagnostic *d, Span other, const char *text);

/* ---- check_global.c ---- */
void global_evaluate(Check *c, uint32_t global, Span at);

/* The kinds of names.def, and what it says of a name. */
typedef enum NameKind {
    NAME_NONE,
    NAME_FORM,
    NAME_REDUCTION,
    NAME_FOLD,
    NAME_DENSE,
    NAME_FUNCTION,
    NAME_FOREIGN
} NameKind;
NameKind name_kind(Sym name);
/* Is it written with indices in brackets? */
static inline bool is_reduction(Sym name)
{
    NameKind kind = name_kind(name);
    return kind == NAME_REDUCTION || kind == NAME_FOLD || kind == NAME_DENSE;
}
/* The i-th name that stands for something here, or null. */
const char *name_at(uint32_t i);
/* How what is called so elsewhere is written here, or null. */
const char *name_cure(Sym name);
bool einsum_is(const AstNode *n);
/* Is there a kernel of this name? */
bool kernel_named(const Kern *k, Sym name, uint32_t *head);
/* An elementwise function of the op table. */
bool function_named(Sym name, Op *op);
/* The element type of this name; false where there is none. */
bool dtype_named(const Kern *k, Sym name, DType *out);
/* The element type that a declaration names; NONE after a report. */
DType dtype_declared(Kern *k, const AstNode *type);
/* What a word for element types stands for: WORDS if it is none. */
uint32_t dtype_word(Sym name);
bool dtype_suits_word(uint32_t word, DType t);
/* The type that it is where nothing says which. */
DType dtype_of_word(uint32_t word);

/* ---- check_kernel.c ---- */
/* A kernel of the program, or of a library, which is only called. */
void kernel_declare(Check *c, AstId ast, bool library);
void kernel_check(Check *c, uint32_t head);
/* Declares what the head of `n` does, and checks its statements. Dims that are known stand in k->dim_by_name. */
void kernel_run(Kern *k, const AstNode *n);
void kern_init(Kern *k, Check *c, CheckedKernel *kernel);

/* ---- check_steps.c ---- */
/* The value of a recurrence that is called so, or null; the statement as a part of one, or null; what is given of a value at a position,
 * or null. */
StepsName *steps_named(Kern *k, Sym name);
StepsMember *steps_member(StepsGroup *g, uint32_t statement);
const StepsGiven *steps_given_at(const StepsName *v, int64_t at);
/* `t`, of `t` or `t < n`; null: it is no index alone. */
Sym steps_index_alone(const Kern *k, AstId id);
/* `t - 2`: the name, and the number behind it, of at most STEPS_MOST; null: it is no such position. */
Sym steps_shifted(const Kern *k, AstId id, int64_t *by);
bool steps_has_name(const Kern *k, AstId id, Sym name);
/* The recurrence that the statement stands in, or null. */
StepsGroup *steps_group(Kern *k, uint32_t statement);
/* Finds the recurrences of the body, and writes it anew; false after a report. */
bool steps_scan(Kern *k, AstNode *body);

/* ---- check_steps_messages.c ---- */
void steps_refuse_two(Kern *k, Span at, const char *x, const char *y);
void steps_refuse_mixed(Kern *k, const StepsName *v);
void steps_refuse_both(Kern *k, const StepsName *v);
void steps_refuse_late(Kern *k, const StepsName *v, uint32_t statement);
/* `own`: at the position that the step computes. */
void steps_refuse_read(Kern *k, const StepsName *v, AstId read, Sym index, bool own);
/* The step reads position `at` (-1: the one before the first), which nothing gives. */
void steps_refuse_missing(Kern *k, const StepsName *v, int64_t at);
/* Says how to declare what a step reads of those before, if that began with a whole number and another type is meant. */
bool steps_help_type(Kern *k, Diagnostic *d, const CheckedExpr *read, DType t);
/* Does the statement read `name`, which it assigns, at other positions? Then that is reported. */
bool recurrence_reported(Kern *k, Sym name, Span at);
/* Warns where `+=` looks like steps. */
void recurrence_warn(Kern *k, AstId statement);

/* ---- check_steps_values.c ---- */
/* Before and after the statement that is looked at. */
void steps_begin(Kern *k);
void steps_end(Kern *k);
/* The element type that a value of a recurrence has from what it begins with, or what it begins with from the value; NONE: neither. */
DType steps_type(Kern *k, Sym name);
/* The label of index `axis` on the left of `target`, which no operand has, gets the extent of what is given for a value that is known, or
 * of the steps. */
void steps_bind(Kern *k, Sym target, uint32_t axis, int32_t label);
/* A position in a step, where its index has its least and its greatest value: those that are given are no steps; false: it has no such
 * index. */
bool steps_shift(Kern *k, Affine x, Affine *low, Affine *high);
/* Is it the step's index of the statement that is looked at? */
bool steps_index(Kern *k, Sym name);
/* ---- check_gradient.c ---- A kernel, or `kernel dE = grad E(x);`, whose kernel has been checked, or is now. */
void head_check(Check *c, uint32_t head);

/* ---- check_kernel_call.c ---- */
/* The statements of calls of kernels, and of einsum strings, that the expression needs before it; what they give is read by it. */
void calls_check(Kern *k, AstId id);
/* `update(C, A);` */
void kernel_call_statement(Kern *k, AstId ast);

/* ---- check_inline.c ---- */
/* An index that operands of a call have beside those that it names: the statements of the kernel get it too. */
typedef struct BatchIndex {
    Sym name; /* null: a dimension of operands without indices */
    Dim extent;
    Span at;
} BatchIndex;

/* What a parameter of the kernel that is called is in the one that calls. */
typedef struct Argument {
    CheckedExpr *number; /* a constant; null: */
    uint32_t value;
    uint64_t batch; /* its first dimensions are these of the batch indices: bits */
} Argument;

/* softmax_e, softmax_e_2: no name of the kernel, and none that another call has brought. `kernel` may be null. */
Sym inlined_name(Kern *k, const char *kernel, Sym name);

/* Copies the statements of `of`, which has the dims of k, into k; argument[] are its parameters, result[] become its results and
 * batch[] which batch indices those have. False after a report. */
bool kernel_inline(Kern *k, const CheckedKernel *of, const Argument *argument,
                   const BatchIndex *index, uint32_t n_index, Span at, uint32_t *result,
                   uint64_t *batch);

/* ---- check_statement.c ---- */
void statement_check(Kern *k, AstId ast);

/* ---- check_extent.c ---- */
/* The extent that an expression of numbers and dims says; *ok false after a report. */
Dim extent_of(Kern *k, AstId id, bool *ok);
/* The dims that the kernel's head and body name, in their order: those that a call gives come before all that are computed. */
void dims_scan(Kern *k, const AstNode *kernel);

/* ---- check_position.c ---- */
/* Which names stand for indices in the statement. */
void positions_scan(Kern *k, AstId statement);
/* `i`, `2*i + d - 1`, `n - 1 - i`, of known indices, dims and numbers; false after a report. */
bool position_affine(Kern *k, AstId id, Affine *out);
/* Notes that `value` is read or assigned at position *x of a dimension. */
void position_note(Kern *k, uint32_t value, uint32_t axis, Affine x, Span span);
/* The labels of positions, each once: in the order of dimensions, in one the faster ones last. At most RANK_LIMIT. */
uint32_t positions_labels(const Affine *at, uint32_t rank, int32_t *label);
/* The positions noted from `first` on are of one tensor, which has these labels. */
void positions_are_of(Kern *k, uint32_t first, const int32_t *label, uint32_t n);
/* The value of such a position. */
CheckedExpr *position_number(Kern *k, AstId ast, Span span, Affine x);
/* The index that a condition begins with, `j` in `2*j <= i`; false where it begins with none. */
bool condition_index(Kern *k, AstId id, AstNode *name);
/* `<`, `<=`, `>` or `>=`. */
bool is_order(const AstNode *n);
/* A new index of the left side. False after a report: it has one of this name. */
bool left_index(Kern *k, const AstNode *i, int32_t *label);
/* Does a value stand in a position of this indexed tensor? */
bool gather_is(Kern *k, const AstNode *n);
/* Does a value stand in what is written for a position? */
bool position_is_value(Kern *k, AstId id);
/* Of a name alone between brackets on the right, in a dimension of this extent; false after a report that a position may be
 * meant. */
bool lone_name_is_index(Kern *k, const AstNode *n, Dim extent);

/* ---- check_range.c ---- */
/* Does the index stand in a sum so far? */
bool position_has(const Kern *k, VarRef label);
/* Indices that stand in sums alone get all the range that fits. */
void positions_infer(Kern *k);
/* Marks positions that leave what they read. */
void positions_check(Kern *k);

/* ---- check_split.c ---- */
/* x * y, of which one may have indices and the other open dims; false after a report. */
bool position_times(Kern *k, Span at, Affine *x, Affine y);
/* The positions of all dimensions of a value, none of them with a product of an index: *rank and *at become those of the shape
 * that it counts as, and *split that shape, null if it is its own. Each part is noted. False after a report. */
bool positions_split(Kern *k, uint32_t value, const Span *span, uint32_t *rank,
                     const Affine **at, const SplitShape **split);

/* ---- check_pieces.c ---- */
/* Which names of the body are assigned piece by piece. */
void pieces_scan(Kern *k);
/* How many pieces of the name are still to come, this one among them; 0: it is assigned whole. */
uint32_t pieces_left(Kern *k, Sym name);
/* One of them has been looked at; false: it was refused. */
void piece_done(Kern *k, Sym name, bool fine);
/* The statement's piece of `value` is looked at; with the last one, whether they cover it and where they meet. */
void piece_check(Kern *k, uint32_t value, const int32_t *label, uint32_t rank, const Affine *at,
                 const SplitShape *split, Span span, bool adds, bool last);

/* A tensor expression without indices as a value of its own, whose statement is the kernel's last; poison: UINT32_MAX. */
uint32_t tensor_value(Kern *k, AstId ast);

/* ---- check_name.c ---- */
/* Is it a dim or a constant of the program? Kernels of a library know none of them. */
bool global_named(const Kern *k, Sym name, uint32_t *global);
Dim dim_named(Kern *k, Sym name, Span at, bool *ok);
/* Known already, as the kernel's or the program's? */
bool dim_known(Kern *k, Sym name);

/* ---- check_unknown.c ---- */
const char *suggest_dim(Kern *k, Sym name);
CheckedExpr *unknown_value(Kern *k, Sym name, Span at);
/* Reports a call, or a reduction, of a name that stands for none. */
CheckedExpr *unknown_function(Kern *k, AstId ast, const AstNode *n);

/* ---- check_read.c ---- */
/* What a value is read as: where all f64 but results are f32, results that are read are, too. A statement that computes in f64 reads them
 * as they are. */
DType type_when_read(const Kern *k, const Value *v);
CheckedExpr *expr_read(Kern *k, uint32_t value, AstId ast, Span span, const int32_t *label,
                       uint32_t rank);
/* A value written without indices. */
CheckedExpr *expr_whole(Kern *k, uint32_t value, AstId ast, Span at);
/* Has the call its statements? Else it is none of a kernel. */
bool call_is_done(const Kern *k, AstId ast);
/* What such a call gives: its only result, or the one that the statement takes. */
CheckedExpr *call_read(Kern *k, AstId ast);
/* The value of one without indices; UINT32_MAX after a report. */
uint32_t call_value(Kern *k, AstId ast);

/* ---- check_types.c ---- */
CheckedExpr *expr_map(Kern *k, Op op, AstId ast, Span span, Span at, CheckedExpr *const *arg,
                      uint32_t n);
/* The labels of the index list child[1..] of `ast`, and their positions where they are more than labels (null else); false when
 * something is not an index (reported). */
bool index_labels(Kern *k, AstId ast, uint32_t value, int32_t *label, uint32_t *n,
                  const Affine **at, const SplitShape **split);
void chain_add(Kern *k, CheckedExpr *chain, Op link, CheckedExpr *arg);
CheckedExpr *chain_type(Kern *k, CheckedExpr *chain); /* once all arguments are there */
/* x link y, for OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_AND and OP_OR. */
CheckedExpr *chain_of_two(Kern *k, Op link, AstId ast, Span span, CheckedExpr *x,
                          CheckedExpr *y);

/* The position *out that is read in a dimension of the value, which is noted; *whole: an index alone, which runs over all of it.
 * False after a report. */
bool position_of_axis(Kern *k, uint32_t value, uint32_t axis, AstId id, Affine *out,
                      bool *whole);
/* Are there as many indices as the value has dimensions? False after a report. */
bool index_count_fits(Kern *k, const AstNode *n, uint32_t value);

/* ---- check_expr.c ---- */
CheckedExpr *expr_check(Kern *k, AstId ast);
CheckedExpr *call_einsum(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *call_extent(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *call_index(Kern *k, AstId ast, const AstNode *n);
/* Has the call so many arguments? False after a report. */
bool arguments_fit(Kern *k, const AstNode *n, uint32_t wanted);

/* ---- check_gather.c ---- */
/* What is written so as a number: an index in it is its position. Poison after a report. */
CheckedExpr *position_computed(Kern *k, AstId id);
/* The position in one dimension of a value, as a number of i64. Poison after a report. */
CheckedExpr *position_check(Kern *k, uint32_t value, uint32_t axis, AstId id);
CheckedExpr *gather_check(Kern *k, AstId ast, uint32_t value);

/* ---- check_scatter.c ---- */
/* The left side of `G[tok[n], e] += ..`. */
typedef struct ScatterLeft {
    uint32_t target, rank;
    int32_t label[RANK_LIMIT];      /* of each dimension */
    CheckedExpr *place[RANK_LIMIT]; /* where the position is no plain index; else null */
    int32_t *summed;
    uint32_t n_summed;
} ScatterLeft;
/* False after a report. */
bool scatter_left(Kern *k, const AstNode *left, uint32_t target, ScatterLeft *s);
/* Has each place one element at most? False after a report. */
bool scatter_is_one(Kern *k, const AstNode *left, const ScatterLeft *s);
/* Where an element takes part. */
CheckedExpr *scatter_where(Kern *k, AstId ast, Span at, const ScatterLeft *s);
/* The sum, over what stands in positions, of what takes part. */
CheckedExpr *scatter_sum(Kern *k, const ScatterLeft *s, CheckedExpr *value, CheckedExpr *when);

/* ---- check_fold.c ---- */
/* `i < n` where an index is listed: *label is a new index of extent n. Or `j <= i`, `i - w < j`: a condition, *label new or -1.
 * False after a report. */
bool position_item(Kern *k, AstId id, bool left, int32_t *label, CheckedExpr **condition);
/* What a fold folds, once its indices are bound; `fold` has their labels. Poison after a report. */
typedef CheckedExpr *FoldBody(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold);
/* The fold of `op` over the indices that `n`, a reduction, names, of those elements for which its conditions hold; *condition is
 * all of them (null: none; may be null). Poison after a report. */
CheckedExpr *fold_check(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition);
/* The same inside of a fold over the same names: the indices are others, with names of their own. */
CheckedExpr *fold_again(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition);
/* Two conditions; `when` may be null. */
CheckedExpr *both_hold(Kern *k, AstId id, Span span, CheckedExpr *when, CheckedExpr *also);
/* The body where the condition holds, and what changes nothing elsewhere. */
CheckedExpr *fold_where(Kern *k, Op op, CheckedExpr *body, CheckedExpr *when);
/* The labels of the list of `n`, to e->label, in which there is room for them, and the conditions; false after a report. At the end names
 * mean what they did before. */
bool fold_open(Kern *k, const AstNode *n, CheckedExpr *e, CheckedExpr **when, uint32_t *before);
void fold_close(Kern *k, const CheckedExpr *e, const uint32_t *before);
/* A name that no index of the statement has: this one with a number behind it. */
Sym fold_unused_name(Kern *k, Sym name);
FoldBody fold_plain; /* what stands in parentheses */
CheckedExpr *reduction_check(Kern *k, AstId ast, const AstNode *n);

/* ---- check_dense.c ---- */
CheckedExpr *dense_cholesky(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_solve(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_inverse(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_logdet(Kern *k, AstId ast, const AstNode *n);
/* Which triangle a value is that is assigned this, at these labels. */
Triangle dense_triangle(const Kern *k, const CheckedExpr *e, const int32_t *left,
                        uint32_t rank);
/* `lower(0, 1)` of a declaration. */
void triangle_check(Kern *k, const AstNode *attr, Value *v, bool is_param, uint32_t row,
                    uint32_t column);

/* ---- check_expand.c ---- */
/* What stands so in a program, by its name: none that is FOREIGN. */
CheckedExpr *name_check(Kern *k, AstId ast, const AstNode *n);

/* ---- check_einsum.c ---- */
/* The product of the values, summed over what the output lacks; the target is the caller's to set. */
/* The type of what it makes of operands of type t: their own where they are moved only. */
DType einsum_type(const EinsumSpec *spec, DType t);
CheckedStatement einsum_statement(Arena *arena, const EinsumSpec *spec, const uint32_t *value,
                                  DType dtype, AstId ast, Span span);
/* The call einsum(...): its value as a temp, whose statement is the kernel's last and still to be computed in a type;
 * poison: UINT32_MAX. */
uint32_t einsum_value(Kern *k, AstId ast);
/* The same, where it stands in an expression. */
uint32_t einsum_nested(Kern *k, AstId ast);

/* ---- check_sums.c ---- */
/* Wraps the silent sums of a term in a reduction; `lone`: the term is the whole right side. */
CheckedExpr *sums_explicit(Kern *k, CheckedExpr *term, uint32_t first_label, bool lone);
/* Over these labels, which are kept; of bool it is whether any is true. */
CheckedExpr *sum_over(Kern *k, CheckedExpr *e, int32_t *label, uint32_t n);
/* Of indices that occur once and are summed silently, in a statement that is right otherwise. */
void sums_warn(Kern *k);
/* After the last of several terms: an index that one sums with extent 1 stretches to its extent in others. False after a
 * report. */
bool sums_agree(Kern *k);

/* ---- check_compute.c ---- */
/* The type that arithmetic on values of type t runs in: f32 for 16 bits, else t. */
/* The type in which two operands may stand together, or none: the wider of two floats or of two integers, complex numbers that
 * hold the other's real ones. */
DType joint_type(DType a, DType b);
/* What an operation gives whose operands have type t: integers that are storage are computed in a wider type. */
DType result_type(DType t);
/* The right side of a statement whose value has type t, a type that `e` widens to, computed in dtype_computes(t). */
CheckedExpr *compute_in(Kern *k, CheckedExpr *e, DType t);
/* What was computed so, as value `target` holds it: rounded once if that is stored in 16 bits. */
CheckedExpr *compute_target(Kern *k, CheckedExpr *e, uint32_t target);
/* At the end of a kernel: undeclared 16-bit values that nobody computes with in f32 are rounded where they are made. */
void compute_locals(Kern *k);

/* ---- check_shard.c ---- Attributes of the declaration of `v`, whose type is written as `type`. */
void shard_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v);
void partial_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v);

/* ---- check_weak.c ---- */
CheckedExpr *weak_const(Kern *k, AstId ast, Span span, Weak weak, int64_t i, double f);
CheckedExpr *weak_complex(Kern *k, AstId ast, Span span, double re, double im);
/* May `e` become a t? A decimal that meets an integer is reported, with `why` as what it meets. */
bool weak_suits(Kern *k, const CheckedExpr *e, DType t, Span why);
/* Gives all weak parts of `e` the type t; false when a decimal meets an integer or a number does not fit (reported). */
bool weak_settle(Kern *k, CheckedExpr *e, DType t, Span why);
/* The type of a weak expression nobody else decides. */
DType weak_default(Weak w);
/* The value of `op` on weak constants, or null when it is no constant. Reports overflow. */
CheckedExpr *weak_fold(Kern *k, Op op, AstId ast, Span span, CheckedExpr *const *arg,
                       uint32_t n);

#endif
