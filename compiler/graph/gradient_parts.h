/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make derivatives share: the adjoints so far, and nodes made of them. gradient.c has the rules in a picture. */
#ifndef GRAPH_GRADIENT_PARTS_H
#define GRAPH_GRADIENT_PARTS_H

#include "graph/gradient.h"

typedef struct Grad {
    Ctx *ctx;
    Graph *g;
    Arena *arena;
    NodeRef *adjoint; /* of each value of the kernel; NODE_NONE: nothing so far */
    bool *wanted;     /* does it change with a parameter that is named? */
    uint32_t n;       /* values of the kernel */
    Span span;
} Grad;

/* ---- gradient.c ---- */
/* Which values change with those that are wanted; and the adjoints of all, from the last one on. */
void gradient_spread_wanted(Grad *d);
void gradient_sweep(Grad *d);

/* ---- gradient_steps.c ---- Of all values of the recurrence of which the node is the first. */
void gradient_back_steps(Grad *d, NodeRef first);

/* ---- gradient_nodes.c ---- */
/* A node; its positions `at`, and its shape, may be null. */
NodeRef gradient_add(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x,
                     const Access *access, uint32_t rank, const int32_t *out, const Dim *shape,
                     const Affine *at);
/* With these labels, one for each dimension. */
Access gradient_access_of(Grad *d, const int32_t *label, uint32_t rank);
/* Element by element; operands of rank 0 stand beside all. */
NodeRef gradient_map(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x);
DType gradient_type_of(Grad *d, NodeRef x);
NodeRef gradient_one(Grad *d, Op op, NodeRef x);
NodeRef gradient_two(Grad *d, Op op, NodeRef x, NodeRef y);
NodeRef gradient_compared(Grad *d, Op op, NodeRef x, NodeRef y);
NodeRef gradient_chosen(Grad *d, NodeRef c, NodeRef x, NodeRef y);
NodeRef gradient_number(Grad *d, DType t, double x);
NodeRef gradient_cast(Grad *d, NodeRef x, DType t);
NodeRef gradient_conjugate(Grad *d, NodeRef x);
/* Read with these labels, as a tensor over others; labels that it lacks repeat it. */
NodeRef gradient_spread(Grad *d, NodeRef x, Access read, uint32_t rank, const int32_t *out,
                        const Dim *shape);
NodeRef gradient_filled(Grad *d, NodeRef x, uint32_t rank, const Dim *shape);
NodeRef gradient_zeros(Grad *d, DType t, uint32_t rank, const Dim *shape);
NodeRef gradient_view(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at);
/* Zeros of a shape, with x at positions of its own dimensions. */
NodeRef gradient_placed(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at);
/* The sum over the labels that `out` lacks. */
NodeRef gradient_summed(Grad *d, NodeRef x, const int32_t *label, uint32_t rank,
                        const int32_t *out);
/* Adds a part to the adjoint of value `to`: a tensor of its shape, */
void gradient_give(Grad *d, NodeRef to, NodeRef part);
/* over the labels of an access, each once, in their order there, */
void gradient_give_read(Grad *d, NodeRef to, Access read, NodeRef part);
/* The labels that an access has, each once. */
uint32_t gradient_labels_of(Access a, int32_t *label);
const Dim *gradient_extents_of(Grad *d, const Node *node, const int32_t *label, uint32_t n);
/* or of the shape of the node that reads it as operand k. */
void gradient_give_operand(Grad *d, const Node *node, uint32_t k, NodeRef part);

/* ---- gradient_map.c ---- */
void gradient_back_map(Grad *d, NodeRef r, const Node *node, NodeRef G);

/* ---- gradient_fold.c ---- */
void gradient_back_factor(Grad *d, const Node *node, uint32_t k, NodeRef G);
void gradient_back_fold(Grad *d, NodeRef r, const Node *node, NodeRef G);

/* ---- gradient_move.c ---- */
void gradient_back_view(Grad *d, const Node *node, NodeRef G);
void gradient_back_join(Grad *d, const Node *node, NodeRef G);
void gradient_back_gather(Grad *d, const Node *node, NodeRef G);

/* ---- gradient_dense.c ---- */
void gradient_back_dense(Grad *d, NodeRef r, const Node *node, NodeRef G);

#endif
