/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor graph: one per kernel of the source. A node is a tensor computed from tensors by one op of the op
 * table; every operand is read through index labels of the node, in the manner of an einsum string:
 *
 *     %4 = einsum %1[a,b,c], %1[d,e,c] -> [a,b,d,e]        : f32[o,v,o,v]
 *     %5 = sub %4[a,b,c,d], %4[a,d,c,b] -> [a,b,c,d]       : f32[o,v,o,v]      (a transposed use is just indices)
 *     %5 = einsum %1[a,b], %2[b,c] onto %4[a,c] -> [a,c]   : f64[o,v]          (added to what is there)
 *     %6 = reduce.sum %5[a,b,c,d] -> []                    : f64[]
 *     %7 = copy %1[a,a] -> [a]                             : f64[n]            (a diagonal)
 *     %8 = view %1[2*a+b, 0] -> [a,b]                      : f64[m,3]          (positions that are sums)
 *     %9 = join %3[a], %4[a+extent(m)] -> [a]               : f64[m_n]          (pieces of a tensor)
 *     %9 = gather %0, %3[a], %4[b] -> [a,b]                : f32[n,e]          (at positions that are values)
 *     %9 = steps 0 output 1 along 0 %3, %4 -> [a,b]        : f64[t,n]          (of a recurrence: each step's)
 *     %9 = solve.lower %3, %4 -> [a,b]                     : f64[n,k]          (operands read whole)
 *     %9 = index                                           : i64[n]            (0, 1, 2, ... along a dimension)
 *
 * Meaning of a node with labels 0..n_labels-1 of extents `extent`: for every value of the labels in `out`, combine
 * the operands read at their indices: MAP applies the op; CONTRACT multiplies all operands and sums over the labels
 * that `out` lacks, beginning with 0 or, `onto`, with its last operand, which is no factor; REDUCE folds over them; VIEW reads its operand at positions that are affine in its labels, which all
 * others see as labels of a value like any other; JOIN puts its operands, whole, at positions that are affine in their
 * dimensions, which cover the result; GATHER reads its first operand at positions that are the values of the others, whole numbers, one for each of its dimensions (0 where that is outside); UPDATE is its first operand, with the second added so to a part of it; STEPS is a result of the body of a recurrence (graph/recurrence.h), which reads its operands whole, as DENSE steps do. Operands are converted to the node's dtype first where dtype_widens
 * (CONTRACT, REDUCE), sums run in `acc`.
 *
 * Invariants (graph_verify): operands come before their node; labels are numbered by first appearance over operands,
 * then output; `out` holds each label once at most; every label of a MAP is in `out`; each label has one extent, equal (as a Dim)
 * wherever it is used (a view's labels are its result's, in order; its operand's indices are all position 0, `at` has what
 * they are, inside of the operand for all sizes: view.c); an Index with label -1 reads position `offset` of its dimension (broadcast of an extent-1
 * dimension, later slices); nodes are hash-consed: equal nodes are one node, spans apart. All memory is the graph's arena's.
 *
 * Affine positions are nodes of their own, VIEW, JOIN and UPDATE, not indices of every operand: some 150 places that read labels would ask
 * what two sums of labels have in common, whether they may be one axis, whether two reads meet, how large a block is. Now one kind of node
 * asks it. The price: an axis goes through a view of a value of the same kernel only as a halo (nest/halo.c), else that value is in memory.
 *
 * Forms: GRAPH_TENSOR as built. GRAPH_BINARY: CONTRACT nodes have exactly two operands; but those that sum may have scales
 * after them, which are numbers or parameters of rank 0, and an initial value (opt/onto.c). */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "dump/text.h"
#include "op/affine.h"
#include "op/op.h"
#include "op/pieces.h"
#include "op/required.h"

typedef uint32_t NodeRef;
#define NODE_NONE UINT32_MAX

typedef enum GraphForm { GRAPH_TENSOR, GRAPH_BINARY } GraphForm;

typedef struct Index {
    int32_t label;  /* -1: constant position */
    int64_t offset; /* added to the label's value; must be 0 today unless label is -1 */
} Index;

/* How one operand is read: one Index per dimension of the operand. */
typedef struct Access {
    uint32_t rank;
    const Index *index;
} Access;

/* A value of a recurrence: result `result` of the body of graph->recurrences.at[recurrence], of each step with the steps along
 * dimension `along` of the value, or, if that is -1, of a state after the last step. */
typedef struct StepsOf {
    uint32_t recurrence, result;
    int32_t along;
} StepsOf;

typedef struct Node {
    Op op;
    DType dtype;
    DType acc;        /* accumulator of CONTRACT and REDUCE; == dtype otherwise */
    bool allow_spill; /* the user wrote `spill`: no warning when it goes to memory */
    bool
        keep; /* the user gave it a type: it is computed as written, and is no part of what reads it */
    bool onto; /* CONTRACT, SUM: the last operand is what the sum begins with */
    Span span;
    Sym name; /* as the user called it, or null; for dumps' comments and reports */
    uint32_t n_operands;
    const NodeRef *operand;
    const Access *access; /* [n_operands] */
    uint32_t n_labels;
    const Dim *extent;  /* [n_labels] */
    uint32_t rank;      /* of the result */
    const int32_t *out; /* [rank] labels, distinct; null for leaves (which have no labels) */
    const Dim *
        shape; /* [rank]; shape[d] is extent[out[d]]; for INPUT the parameter's, for INDEX its dimension */
    /* Positions, of open dims and VIEW: of labels, [rank of the operand] (label d is out[d]); JOIN, UPDATE: of each operand's
     * dimensions, [n_operands][rank] in the result. */
    const Affine *at;
    const Sym *
        label_name; /* [n_labels] as the source calls them, nulls among them, or null: for people only */
    Number value;   /* CONST */
    int32_t dim;    /* EXTENT: open dimension */
    uint32_t param; /* INPUT */
    StepsOf steps;  /* STEPS */
    /* What is known of its symmetry (opt/symmetry.c), with their products at most SYMMETRY_LIMIT permutations; graphs that are made from this one begin without, but for inputs, which
     * have what their parameters promise. */
    uint32_t n_generators;
    const Generator *generator;
    /* Of a sum: exchanges of labels that it adds up over which leave its terms as they are; their `to` has all labels. */
    uint32_t n_exchanges;
    const Generator *exchange;
} Node;

typedef enum ParamRole { PARAM_IN, PARAM_INOUT, PARAM_SCALAR } ParamRole;

typedef struct Param {
    Sym name;
    ParamRole role;
    DType dtype;
    uint32_t rank;
    const Dim *shape;
    Span span;
    const Symmetry *symmetry; /* that the caller promises; or null */
    /* As nodes read it, with neighbouring dimensions taken together (opt/collapse.c) or one as several (build_split.c); null: as the
     * caller has it. */
    uint32_t n_collapsed;
    const Dim *collapsed;
} Param;

static inline uint32_t param_rank(const Param *p)
{
    return p->collapsed == NULL ? p->rank : p->n_collapsed;
}

static inline const Dim *param_shape(const Param *p)
{
    return p->collapsed == NULL ? p->shape : p->collapsed;
}

/* What the kernel delivers: a named result, or the new value of an inout parameter. */
typedef struct Result {
    Sym name;
    NodeRef node;
    int32_t param; /* index of the inout parameter, or -1 */
    Span span;
    const Symmetry *symmetry; /* that it is said to have; or null */
    /* As the caller has it, where the node takes dimensions together or apart; null: as the node. */
    uint32_t rank;
    const Dim *shape;
} Result;

/* `node`, a whole number, is a position that must lie inside. It is made of parameters element by element (required.c), so that a call
 * finds those outside before it writes anything. */
typedef struct Required {
    NodeRef node;
    Requirement what;
} Required;

/* A sum that may run over the same axis as a maximum that it needs, in one pass: `node` sums over t
 * what has the factor exp(-scale * y)^power, y the `base`, a maximum over t too (found by opt/online.c).
 * Then node * exp(scale * power * (y_old - y_new)) is the sum so far of what y_new makes: the factors
 * of several tiles telescope. What exp is taken of is never above 0, with any y of the elements so far. */
typedef struct Online {
    NodeRef node, base;
    Access at;     /* dimensions of base in labels of node, all of them in its result */
    int32_t t;     /* and the label of node that is the maximum's axis */
    NodeRef scale; /* a positive number, of rank 0; NODE_NONE: 1 */
    int32_t power;
} Online;

/* Of one rule: what is added to make the maximum, times the others. */
#define ONLINE_POWER 8

/* On the last node of a sliced contraction: labels that its order made loops of the kernel, around everything that has
 * them. */
typedef struct Slices {
    uint32_t n;
    const int32_t *label; /* [n] ascending */
} Slices;

typedef struct Graph {
    Arena *arena;
    Sym name; /* of the kernel */
    Span span;
    Sources *sources; /* where spans point, for dumps (`at 4:12`); null: none are printed */
    const char *signature; /* the kernel's head as written, one line; printed into the generated
                              header */
    SourceStatements
        statements; /* of the kernel, canonical text: comments in what is generated */
    TextLines
        ranks; /* how arguments lie on ranks, and the plan for them: read by compiler/dist */
    const char *
        program; /* graph_digest of the kernel in the program that decisions were taken for, which a
                            program that uses them must have; null: not said */
    GraphForm form;
    DimTable dims; /* open dimensions of this kernel, in the order of first use in its head */
    VEC(Param) params;
    VEC(Result) results;
    VEC(Required) required;
    VEC(Node) nodes; /* topological order */
    Map consed;      /* hash -> first node of the chain */
    VEC(uint32_t) next_consed;
    VEC(struct Recurrence *) recurrences;
    VEC(Slices) slices;
    Map slices_of;      /* node -> its place there */
    VEC(Online) online; /* by base, then by node */
} Graph;

/* What flows through the pipeline: the kernels of one compilation, in source order. */
typedef struct Module {
    Arena *arena;
    const char *source_name; /* as given on the command line; "-e" for an equation */
    VEC(Graph *) graphs;
} Module;

/* ---- graph.c: building. Every builder returns an existing equal node if there is one. Labels may be given with any
 * numbering below n_labels; the builder renumbers canonically. Arrays are copied. Extents of labels are taken from the operands,
 * and from `out_shape` for labels that no operand has (broadcast); CHECKs that they agree. ---- */

Graph *graph_new(Arena *arena, Sym name);
NodeRef graph_input(Graph *g, uint32_t param, Span span);
NodeRef graph_const(Graph *g, Number value, Span span);
NodeRef graph_extent(Graph *g, int32_t dim, DType dtype, Span span);
/* The positions of a dimension of this extent. */
NodeRef graph_index(Graph *g, Dim extent, DType dtype, Span span);

/* What the labels of a spec are called in the source, those below n; null: not said. */
typedef struct LabelNames {
    uint32_t n;
    const Sym *name;
} LabelNames;

typedef struct NodeSpec {
    Op op;
    DType dtype;
    DType acc; /* DTYPE_NONE: dtype_accumulator(dtype) for CONTRACT and REDUCE */
    uint32_t n_operands;
    const NodeRef *operand;
    const Access *access;
    uint32_t rank;
    const int32_t *out;
    const Dim *out_shape; /* [rank], or null when every output label occurs in an operand */
    const Affine *at;     /* VIEW, JOIN, UPDATE */
    StepsOf steps;        /* STEPS */
    Span span;
    Sym name;
    bool allow_spill, keep, onto;
    Slices sliced;    /* the first to bring any decide */
    LabelNames names; /* likewise */
} NodeSpec;
static inline NodeSpec node_spec(Op op, DType dtype, uint32_t n_operands,
                                 const NodeRef *operand, const Access *access, uint32_t rank,
                                 const int32_t *out, const Dim *out_shape, Span span)
{
    return (NodeSpec){.op = op,
                      .dtype = dtype,
                      .n_operands = n_operands,
                      .operand = operand,
                      .access = access,
                      .rank = rank,
                      .out = out,
                      .out_shape = out_shape,
                      .span = span};
}
NodeRef graph_add(Graph *g, const NodeSpec *spec);

static inline const Node *graph_node(const Graph *g, NodeRef r)
{
    return &g->nodes.at[r];
}

/* A new graph with the same name, dims, params and signature, without nodes or results. */
Graph *graph_like(Arena *arena, const Graph *g);
/* The spec that would build this node again: start of every rewrite. Points into the node. */
NodeSpec graph_spec(const Graph *g, NodeRef n);
/* None of most nodes. */
Slices graph_slices(const Graph *g, NodeRef n);
/* ---- symmetry.c ---- */

/* Add to what is known of the symmetry of a node; `to` is copied. */
void graph_add_generator(Graph *g, NodeRef n, const Generator *generator);
void graph_add_exchange(Graph *g, NodeRef n, const Generator *exchange);
/* What is declared of it; `declared` may be null. */
void graph_add_promised(Graph *g, NodeRef n, const Symmetry *declared);
/* Is the value known, by its generators, to have this symmetry too? */
bool graph_has_symmetry(Arena *scratch, const Graph *g, NodeRef n, Generator exchange);

/* ---- graph.c, again ---- */

/* Is an extent of it open? */
static inline bool node_is_open(const Node *n)
{
    bool open = false;
    for (uint32_t d = 0; d < n->rank; d++) {
        open |= n->shape[d].sym >= 0;
    }
    return open;
}

/* The operands that a CONTRACT multiplies, and what it begins with, or NODE_NONE. */
static inline uint32_t node_factors(const Node *n)
{
    return n->n_operands - (n->onto ? 1 : 0);
}

static inline NodeRef node_init(const Node *n)
{
    return n->onto ? n->operand[n->n_operands - 1] : NODE_NONE;
}

/* Does it sum numbers that are real, and nothing else? */
bool node_sums_reals(const Node *n);
/* Is the value above 0, or perhaps 0 or NaN, by its operation? */
bool graph_is_positive(const Graph *g, NodeRef n);
/* The rule by which `node` may follow `base`, or null. */
const Online *graph_online(const Graph *g, NodeRef node, NodeRef base);
/* The hash and equality of hash-consing: all but span, names, allow_spill, keep and symmetry. */
uint64_t node_hash(const Node *n);
bool node_equal(const Node *a, const Node *b);
/* Copies the results and the requirements of `from`, nodes given by `map[old] = new`. */
void graph_copy_results(Graph *to, const Graph *from, const NodeRef *map);
/* Copies `node` of `from` into `to`, operands given by `map[old] = new`. Returns the new node. */
NodeRef graph_clone_node(Graph *to, const Graph *from, NodeRef node, const NodeRef *map);
/* [nodes]: how many operands of nodes, results and requirements a value is. */
uint32_t *graph_readers(Arena *arena, const Graph *g);
/* Does the access move with the label? */
bool access_has_label(const Access *a, int32_t label);
/* Are the same positions read, of values of one rank? */
bool access_eq(Access x, Access y);
/* Is each element of the result of `node`, in whose labels the access is, made of the element at its own place? */
bool access_is_own(const Node *node, Access a);
/* [rank]: 0, 1, 2, ...; what reads each dimension at that label; and at position 0, as views, gathers and what puts pieces
 * together read what they are of. */
const int32_t *labels_in_order(Arena *arena, uint32_t rank);
/* At a label for each dimension. */
Access access_of(Arena *arena, uint32_t rank, const int32_t *label);
/* Every element at its own place, in the labels of the node. */
static inline Access node_own_access(Arena *arena, const Node *n)
{
    return access_of(arena, n->rank, n->out);
}
Access access_in_order(Arena *arena, uint32_t rank);
Access access_whole(Arena *arena, uint32_t rank);
/* Indices of `inner` (given in some node's labels) rewritten in the labels of its reader, which reads that node at
 * `outer`: label out[d] of the node becomes outer.index[d]. */
Access access_compose(Arena *arena, const Node *node, Access inner, Access outer);
/* Nodes that no result and no requirement needs are dropped (inputs stay only if used). */
Graph *graph_prune(Arena *arena, const Graph *g);
/* [nodes]: those that a result needs, or a requirement where these count, and values that steps of such read back. */
bool *graph_needed(Arena *arena, const Graph *g, bool required);
/* The same with each open dim as the number that is planned for; to be priced, not to be added to. */
Graph *graph_typical(Arena *arena, const Graph *g);
/* Is the value computed at once, of operands that are read whole: put together of pieces, step by step, or of matrices? */
static inline bool node_is_whole(const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    return kind == OPKIND_JOIN || op_takes_whole(n->op);
}
/* True when label `l` of the node is not in its output: it is summed or folded. */
bool node_reduces(const Node *n, int32_t label);
/* Multiply-adds of the node for these values of the open dims (saturating): the product of all its label extents for
 * CONTRACT with two or more operands, else 0. */
int64_t node_multiply_adds(const Node *n, const int64_t *dims);

/* ---- key.c ---- */

/* Of a condition, perhaps with others: key == index(along). */
typedef struct PlaceKey {
    int32_t along; /* label of the node */
    Access key;    /* what the key depends on, in labels of the node */
} PlaceKey;
/* Keys of different labels, none of which depends on one of these labels. */
#define PLACE_KEYS 4
typedef struct PlaceKeys {
    uint32_t n;
    PlaceKey at[PLACE_KEYS];
} PlaceKeys;
/* `condition`, read by `access` in labels of `n`: adds the keys in it, through conjunctions, of those nodes alone that `may`, which may
 * be null, looks into. */
void graph_place_keys(Arena *arena, const Graph *g, const Node *n, NodeRef condition,
                      Access access, bool (*may)(const void *user, NodeRef node),
                      const void *user, PlaceKeys *out);

/* ---- required.c ---- */

/* Is the value made of parameters element by element? */
bool graph_is_known_at_call(Arena *scratch, const Graph *g, NodeRef n);
/* The requirements, nodes given by `map[old] = new`. */
void graph_copy_required(Graph *to, const Graph *from, const NodeRef *map);
/* A kernel of the same parameters whose results are the positions that requirements are of; null where there is none. */
Graph *graph_positions(Ctx *ctx, Arena *arena, const Graph *g);
/* What is wrong with the requirement, or null. */
const char *graph_required_problem(Arena *scratch, const Graph *g, const Required *r);

/* ---- names.c ---- */
/* [nodes][n_labels]: what to call the labels of each node when people read it; different in one node. A label that has no name
 * of the source is called as those that read the value call it, or as what it reads was called; else by a letter. */
typedef const char *const *const *GraphNames;
GraphNames graph_names(Arena *arena, const Graph *g);
/* Of one node by itself. */
const char *const *node_names(Arena *arena, const Node *n);

/* ---- digest.c ---- Names, places and extents apart, graphs that compute something else have another one. */
const char *graph_digest(Arena *arena, const Graph *g);

/* ---- graph_dump.c, graph_read.c: text, byte for byte both ways ---- */
const char *graph_form_name(GraphForm form); /* "tensor", "binary" */
void graph_dump(const Graph *g, Text *out);
void module_dump(const Module *m, Text *out); /* first line says what it is and its version */
/* Reports through ctx->diags; null on error. The result is verified. */
Module *module_read(Ctx *ctx, uint32_t source);
/* One kernel of a dump that holds graphs, verified; null after reporting. */
Graph *graph_read(DumpReader *in, Arena *scratch, const DumpLine *line);
void module_dump_json(const Module *m, Text *out);

/* ---- view.c ---- */
/* How many positions a node has in `at`. */
uint32_t node_positions(const Node *n);
/* The k-th operand of a join or an update as a piece of it. */
Patch node_piece(const Graph *g, const Node *n, uint32_t k);
/* Of the d-th dimension of a view's operand: how many positions it reads where each label has so many, at most all of them. */
double view_positions(const Graph *g, const Node *view, uint32_t d, const double *of_label);
/* Do two views with the same labels read the same elements, but for few at the ends? */
bool views_overlap(const Graph *g, const Node *x, const Node *y);

/* ---- mask.c ---- */
#define MASK_CONDITIONS 8

/* Of a value: `value` where one of the conditions does not hold; none: nothing is known. */
typedef struct Mask {
    uint32_t n;
    Affine holds
        [MASK_CONDITIONS]; /* where that is at least 0, in the node's labels and open dims */
    Number value;
} Mask;

/* Of select(c, x, m), or where(c, x, 0), m a number. */
Mask mask_of_select(Arena *a, const Graph *g, const Node *select);
/* Of a bool node, in its labels; n 0: not known. */
Mask mask_of_condition(Arena *a, const Graph *g, NodeRef condition);
/* What of node `n` is read, if only `select(c, n, number)` reads it, element by element: where c holds, which is read by *at in labels
 * of n. False: all of it. */
bool mask_needed(Arena *a, const Graph *g, NodeRef n, NodeRef *c, Access *at);
/* An expression of an operand's labels, in labels of the node that reads it. */
Affine mask_in_reader(Arena *a, const Node *operand, Access access, Affine x);

/* ---- graph_verify.c ---- */
/* Reports the first broken invariant of `g` in its form as E_DUMP; `stage` names who made it. */
bool graph_verify(Ctx *ctx, const Graph *g, const char *stage);
/* The same with a place for each node to report at (null: the node's span). */
bool graph_verify_at(Ctx *ctx, const Graph *g, const char *stage, const Span *place);

#endif
