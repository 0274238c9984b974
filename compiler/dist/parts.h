/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of compiler/dist share. Nobody else includes this. */
#ifndef DIST_PARTS_H
#define DIST_PARTS_H

#include "dist/dist.h"

/* Leaves of a cut, at most, that nothing is summed over. */
#define LEAVES_ROWS 4096u
/* Of one that is: each leaf is a call. */
#define LEAVES 64u
/* Bytes from which on a sum is large. */
#define LARGE_BYTES 65536
/* Of a cut over which large results are summed: each leaf makes such a result. */
#define LEAVES_LARGE 8u

/* The argument of that name; null: there is none. */
static inline const DistArg *arg_named(const DistPlan *plan, Sym name)
{
    for (uint32_t k = 0; k < plan->n_args; k++) {
        if (plan->arg[k].name == name) {
            return &plan->arg[k];
        }
    }
    return NULL;
}

/* How many positions all of these dims have together, of typical extents. */
static inline double typical_positions(const Graph *g, uint32_t n, const Dim *dim)
{
    double all = 1;
    for (uint32_t k = 0; k < n; k++) {
        all *= (double)dim_typical(&g->dims, dim[k]);
    }
    return all;
}

/* Bytes of what a node adds up in, or makes, of typical extents. */
static inline double node_bytes(const Graph *g, const Node *n)
{
    return (double)dtype_bytes(n->acc) * typical_positions(g, n->rank, n->shape);
}

/* text.c: may argument `arg` be read to this value leaf by leaf: is it read by the calls of one step alone, each of which needs a leaf of it? */
bool can_read_by_leaf(const DistPlan *plan, const DistStep *read);

/* Labels of all nodes in classes: labels of one class run over the same positions of the same values. */
typedef struct Classes {
    const Graph *g;
    uint32_t n;       /* labels of all nodes */
    uint32_t *base;   /* [nodes]: the number of a node's label 0 */
    uint32_t *parent; /* [n] */
    bool *whole;      /* [n], of a root: it is not cut */
    Dim *extent;      /* [n], of a root */
    uint32_t n_roots;
    uint32_t *root; /* [n_roots]: those that may be cut, in order */
} Classes;

void classes_find(Arena *arena, const Graph *g, Classes *c);
/* Makes two classes one, whose root is returned. */
uint32_t classes_join(Classes *c, uint32_t a, uint32_t b);
/* The class of label l of node n. */
uint32_t class_of(const Classes *c, NodeRef n, int32_t l);
/* Dimension d of operand k of node n: the class that it is read by, or UINT32_MAX: all of it, or some of it by position. */
uint32_t class_read(const Classes *c, NodeRef n, uint32_t k, uint32_t d);

/* Which classes are cut, as a plan is made. */
typedef struct Choice {
    uint32_t n_grid;            /* axes */
    uint32_t n;                 /* cuts */
    uint32_t root[DIST_CUTS];   /* the class of each */
    uint32_t axis[DIST_CUTS];   /* its axis of the grid */
    uint32_t mate[DIST_CUTS];   /* 1 + the cut that is its mate; 0: none */
    uint32_t group[DIST_CUTS];  /* 1 + the first cut of its slices; 0: none */
    uint32_t leaves[DIST_CUTS]; /* of slices */
} Choice;

static inline int32_t choice_cut(const Choice *x, uint32_t root)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->root[i] == root) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* Does a node add up, or fold in another way, what it reads? */
static inline bool is_fold(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_CONTRACT || op_info(n->op)->kind == OPKIND_REDUCE;
}

/* Cuts over which node n is partial, a bit for each. */
uint32_t partial_over(const Classes *c, const Choice *x, NodeRef n);

/* pairs.c: two classes of which all that has labels of them ends in sums over both that stay as they are when the two are exchanged, so that pairs of
 * leaves need be computed once. */
typedef struct PairOfClasses {
    uint32_t a, b;
} PairOfClasses;
/* At most `most` of them. Says what is symmetric of g's values. */
uint32_t pairs_find(Ctx *ctx, Graph *g, const Classes *c, PairOfClasses *out, uint32_t most);

/* slices.c: labels that the order of a contraction made loops of the kernel, and that its last step sums: a leaf is some positions of each. Or one that its
 * result has. */
typedef struct SliceGroup {
    NodeRef step; /* the last one */
    uint32_t n;
    uint32_t root[DIST_CUTS], leaves[DIST_CUTS];
} SliceGroup;
/* At most `most` of them, of which some are of the same contraction: of its first labels. */
uint32_t slices_find(const Graph *g, const Classes *c, SliceGroup *out, uint32_t most);
/* Leaves of the group of cut i; of those, leaves that a node with these labels tells apart. */
double slices_all(const Choice *x, uint32_t i);
double slices_told_apart(const Classes *c, const Choice *x, uint32_t i, NodeRef n);

/* What may be cut together. */
typedef struct Together {
    uint32_t n_pairs, n_groups;
    const PairOfClasses *pair;
    const SliceGroup *group;
} Together;

/* choose.c: the cheapest cuts for these layouts; classes that are cut alike are made one. The next best ones are added to the plan. */
Choice choose_cuts(Arena *arena, Classes *c, DistPlan *plan, const Together *together);

/* local.c: a graph that computes `wanted` from values of the plan. */
typedef struct LocalBuild {
    Ctx *ctx;
    Arena *arena;
    const Graph *from;
    const Classes *classes;
    const Choice *choice;
    DistPlan *plan;
    const uint32_t *section; /* [nodes] */
    uint32_t *stored;        /* [nodes]: the value that holds it, complete; UINT32_MAX: none */
    uint32_t at;             /* the section that is built */
    uint32_t n_locals;
} LocalBuild;
/* The shape in which the caller has the result, and its rank; null, and nothing set: that of its node. */
static inline const Dim *result_shape(const Graph *g, const Result *r, uint32_t *rank)
{
    const Param *p = r->param < 0 ? NULL : &g->params.at[r->param];
    const Dim *shape = p != NULL && p->collapsed != NULL ? p->shape : r->shape;
    *rank = shape == NULL ? *rank : shape == r->shape ? r->rank : p->rank;
    return shape;
}
/* Is the value of this shape? */
bool value_has_shape(const DistValue *v, uint32_t rank, const Dim *shape);
/* Pushes the graph to `m` and its step to the plan. `values`: of the results. `over`: the leaves that it is called for; of `partial` results these are
 * terms, of others parts. */
void local_build(LocalBuild *b, Module *m, uint32_t n, const NodeRef *wanted,
                 const uint32_t *values, uint32_t over, bool partial);

#endif
