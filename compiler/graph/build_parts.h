/* SPDX-License-Identifier: Apache-2.0 */
/* What build.c (statements, nodes) and build_product.c (chains and reductions) share. Nobody else includes this. */
#ifndef GRAPH_BUILD_PARTS_H
#define GRAPH_BUILD_PARTS_H

#include "graph/build.h"

/* A node as an expression reads it: by labels of the statement. */
typedef struct View {
    NodeRef node;
    uint32_t rank;
    const Index *index;
    DType dtype;
} View;

typedef struct OutLabels {
    uint32_t n;
    int32_t label[RANK_LIMIT];
} OutLabels;

/* What the statement's last node is called. */
typedef struct Root {
    Sym name;
    bool allow_spill, keep;
} Root;

/* The pieces of a value so far, and where they go: [rank of the value] positions of each. */
typedef struct BuildPieces {
    VEC(NodeRef) node;
    VEC(Affine) at;
} BuildPieces;

/* What holds where an expression is read: it stands in a selection. */
typedef struct Condition {
    View value;
    bool negated;
} Condition;

typedef struct Build {
    BuildPieces *pieces; /* [values] */
    Ctx *ctx;
    Arena *arena;
    Graph *g;
    const CheckedKernel *k;
    const CheckedKernel *written; /* the same with the shapes that callers see */
    NodeRef *current;             /* of each value */

    const CheckedStatement *s;
    uint32_t *order; /* of each label: position on the left, from 1; 0: not there */
    uint32_t *stamp; /* of each label, against `serial` */
    uint32_t serial;
    LabelNames names;          /* of the statement's labels */
    VEC(Condition) conditions; /* of what is built now, outermost first */
    Map required;              /* hash -> place in the graph's list */
    uint32_t steps_required;   /* of them, before the recurrence that is open */
    bool too_many, limited;
} Build;

View build_view(Build *b, NodeRef node, const int32_t *label, uint32_t rank);
OutLabels out_labels(Build *b, const View *v, uint32_t n, const int32_t *dropped,
                     uint32_t n_dropped);
/* `root` may be null. */
NodeRef root_add(Build *b, NodeSpec *spec, const Root *root);
View node_add(Build *b, Op op, DType dtype, const View *v, uint32_t n, const OutLabels *out,
              Span span, const Root *root);
View map_add(Build *b, Op op, DType dtype, const View *v, uint32_t n, Span span,
             const Root *root);

/* ---- build_required.c ---- */

/* Dimension d of value `read` is read at `position`, the value of `at`: it must lie inside. */
void require_position(Build *b, uint32_t read, uint32_t d, const CheckedExpr *at,
                      View position);

/* ---- build_steps.c ---- */

/* Before the first and after the last of the statements; false after a report. */
void steps_open(Build *b, const CheckedSteps *s);
bool steps_close(Build *b, const CheckedSteps *s);
/* Is the value of a recurrence read at its last position alone? Then that is a value that needs no other; else NODE_NONE. */
NodeRef steps_last(Build *b, NodeRef node, const CheckedExpr *read);

/* ---- build_split.c ---- */

/* The kernel with the dimensions that graphs have, where some count as several; null after a report. */
const CheckedKernel *kernel_split(Ctx *ctx, Arena *arena, const CheckedKernel *k);

/* The value of `e` in type `want`, which is its own or a wider one. `root`: this is all of the right side. */
View expr_build(Build *b, const CheckedExpr *e, DType want, const Root *root);
/* An operand of a sum or a fold, which convert what they read themselves: tensors in the type that they have, unless that
 * is wider than the one they are read in. */
View operand_build(Build *b, const CheckedExpr *e);
View chain_build(Build *b, const CheckedExpr *e, const Root *root);
View reduce_build(Build *b, const CheckedExpr *e, const Root *root);

/* ---- build_dense.c ---- */
View dense_build(Build *b, const CheckedExpr *e, const Root *root);

#endif
