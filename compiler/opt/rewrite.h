/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting, for the passes of this folder: one walk over the nodes in order. Each node is made anew over operands that are
 * rewritten already, as a spec to which rules apply until none does. A rule looks at the spec and at finished nodes, and
 * either changes the spec, or says that a finished node is the value. Since operands are done, one walk reaches everything;
 * every rule makes its spec smaller or plainer, so the rounds are few (and bounded). */
#ifndef OPT_REWRITE_H
#define OPT_REWRITE_H

#include "graph/graph.h"

typedef struct Rewriter {
    Ctx *ctx;
    Graph *to;
    Arena scratch; /* for specs; reset after each node */
    const struct Rule *rules;
    uint32_t n_rules;
} Rewriter;

typedef enum Verdict {
    RULE_NO,   /* does not apply, nothing was changed */
    RULE_SPEC, /* the spec is another, of the same value */
    RULE_DONE  /* *done, a node of `to` of the same type, is the value */
} Verdict;

/* For one op, or for all (OP_COUNT). */
typedef struct Rule {
    const char *name;
    Op op;
    Verdict (*apply)(Rewriter *r, NodeSpec *spec, NodeRef *done);
} Rule;

Graph *rewrite_graph(Ctx *ctx, Arena *arena, const Graph *g, const Rule *rules,
                     uint32_t n_rules);
/* A node of `to` for the spec, by the rules: for rules that need one more node. */
NodeRef rewrite_add(Rewriter *r, NodeSpec *spec);

/* ---- what rules are made of ---- */

static inline const Node *spec_operand(const Rewriter *r, const NodeSpec *s, uint32_t k)
{
    return graph_node(r->to, s->operand[k]);
}

/* Operand k is a constant; its value in *v. */
bool spec_const(const Rewriter *r, const NodeSpec *s, uint32_t k, Number *v);
/* Operands k and l are the same value read the same way. */
bool spec_same(const NodeSpec *s, uint32_t k, uint32_t l);
/* The spec becomes `op` of these operands, which are copied, as its type and labels are. */
Verdict spec_set(Rewriter *r, NodeSpec *s, Op op, uint32_t n, const NodeRef *operand,
                 const Access *access);
/* The spec becomes `op` of some of its operands, in this order, read as before. */
Verdict spec_become(Rewriter *r, NodeSpec *s, Op op, uint32_t n, const uint32_t *operands);
/* The spec becomes this constant, everywhere. */
Verdict spec_become_const(Rewriter *r, NodeSpec *s, Number v);
/* Indices for the operand of `through`, a MAP of one operand, when `through` itself is read by `a`. */
Access access_see_through(Rewriter *r, const Node *through, const Access *a);
/* Operand k of a MAP, itself a MAP of one operand, is replaced by that operand read through it. */
void spec_see_through(Rewriter *r, NodeSpec *s, uint32_t k);

/* Where the labels of a spec occur. */
typedef struct LabelCount {
    uint32_t operands; /* operands that have it */
    uint32_t last;     /* the last of them */
    bool out;
    Dim extent;
} LabelCount;

typedef struct Uses {
    uint32_t n; /* labels are below n */
    LabelCount *of;
} Uses;
Uses spec_uses(Rewriter *r, const NodeSpec *s);

/* ---- copies.c: rules for the tables of all passes ---- */

/* Users read a copied value themselves (all ops). */
Verdict rule_read_through_copies(Rewriter *r, NodeSpec *s, NodeRef *done);
/* A copy that moves nothing is its operand (OP_COPY). */
Verdict rule_drop_idle_copy(Rewriter *r, NodeSpec *s, NodeRef *done);
/* A fold over no index is its operand, cast if need be (all ops; looks at REDUCE). */
Verdict rule_drop_idle_reduction(Rewriter *r, NodeSpec *s, NodeRef *done);

#endif
