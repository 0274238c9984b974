/* SPDX-License-Identifier: Apache-2.0 */
/* Expansion of INLINE operands. The recursion follows expressions whose size inline.c limits
 * (EXPRESSION_LIMIT), so its depth is bounded; an explicit stack keeps it off the C stack all
 * the same. */
#include "nest/uses.h"

bool node_reads_apart(const Graph *g, const Node *n, uint32_t k)
{
    bool scale = n->op == OP_EINSUM && k >= 2 && graph_node(g, n->operand[k])->rank == 0;
    return scale || k == node_factors(n);
}

uint32_t uses_count(const UseList *u)
{
    uint32_t n = u->list.n;
    while (n > 0 && (u->list.at[n - 1].whole || u->list.at[n - 1].apart)) {
        n--;
    }
    return n;
}

bool use_is_again(const UseList *u, uint32_t i)
{
    bool again = false;
    for (uint32_t k = 0; k < i && !again; k++) {
        again = u->list.at[k].node == u->list.at[i].node &&
                access_eq(u->list.at[k].access, u->list.at[i].access);
    }
    return again;
}

typedef struct Pending {
    NodeRef node;
    Access access;
} Pending;

static bool is_value(const Node *n)
{
    return n->op != OP_CONST && n->op != OP_EXTENT && n->op != OP_INDEX;
}

/* All of a value: dimensions as those of the k-th piece of a join. */
static Access whole_access(Arena *arena, const Graph *g, NodeRef value, uint32_t k)
{
    uint32_t rank = graph_node(g, value)->rank;
    Index *index = ARENA_ARRAY(arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        index[d] = (Index){PIECE_LABEL(k, d), 0};
    }
    return (Access){rank, index};
}

/* Does it gather from an argument that nothing changes? That lies where it lies. */
static bool skips_first(const Graph *g, const Node *n)
{
    const Node *o = n->op == OP_GATHER ? graph_node(g, n->operand[0]) : NULL;
    return o != NULL && o->op == OP_INPUT && g->params.at[o->param].role != PARAM_INOUT;
}

static void expand(Arena *arena, const Graph *g, const Residence *residence, NodeRef operand,
                   Access access, bool apart, UseList *out)
{
    VEC(Pending) stack = {0};
    Pending first = {operand, access};
    vec_push(arena, &stack, first);
    while (stack.n > 0) {
        Pending p = stack.at[--stack.n];
        const Node *n = graph_node(g, p.node);
        if (residence[p.node] != RESIDE_INLINE) {
            if (is_value(n)) {
                Use use = {.node = p.node, .access = p.access, .apart = apart};
                vec_push(arena, &out->list, use);
            }
            continue;
        }
        for (uint32_t k = n->n_operands; k-- > (skips_first(g, n) ? 1u : 0u);) {
            Access a = n->op == OP_GATHER && k == 0
                           ? whole_access(arena, g, n->operand[0], 0)
                           : access_compose(arena, n, n->access[k], p.access);
            Pending next = {n->operand[k], a};
            vec_push(arena, &stack, next);
        }
    }
}

/* Leaves out what is read again. */
static void read_once(UseList *u)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->list.n; i++) {
        u->list.at[n] = u->list.at[i];
        n += use_is_again(u, n) ? 0 : 1;
    }
    u->list.n = n;
}

static void add_viewed(Arena *arena, const Graph *g, UseList *out)
{
    for (uint32_t i = 0, n = out->list.n; i < n; i++) {
        const Node *view = graph_node(g, out->list.at[i].node);
        if (view->op == OP_VIEW) {
            Use use = {view->operand[0], view->access[0], true, i, out->list.at[i].apart};
            vec_push(arena, &out->list, use);
        }
    }
}

void node_uses(Arena *arena, const Graph *g, const Residence *residence, NodeRef n,
               UseList *out)
{
    const Node *node = graph_node(g, n);
    bool joins = node_is_whole(node);
    for (uint32_t k = skips_first(g, node) ? 1 : 0; k < node->n_operands; k++) {
        bool apart = node_reads_apart(g, node, k);
        bool whole = joins || (node->op == OP_GATHER && k == 0);
        Access a = whole ? whole_access(arena, g, node->operand[k], k) : node->access[k];
        expand(arena, g, residence, node->operand[k], a, apart, out);
    }
    if (op_info(node->op)->kind == OPKIND_REDUCE) {
        read_once(out);
    }
    add_viewed(arena, g, out);
}

void result_uses(Arena *arena, const Graph *g, const Residence *residence, NodeRef n,
                 UseList *out)
{
    const Node *node = graph_node(g, n);
    expand(arena, g, residence, n, access_in_order(arena, node->rank), false, out);
    add_viewed(arena, g, out);
}

static Affine index_affine(Arena *arena, Index index)
{
    Affine x = affine_const(index.offset);
    return index.label < 0 ? x
                           : affine_add(arena, x, 1, affine_var(arena, (VarRef)index.label));
}

Affine use_position(Arena *arena, const Graph *g, const UseList *u, const Use *use, uint32_t d)
{
    if (!use->whole) {
        return index_affine(arena, use->access.index[d]);
    }
    const Use *at = &u->list.at[use->view];
    Affine of = graph_node(g, at->node)->at[d], x = affine_const(of.base);
    for (uint32_t i = 0; i < of.n; i++) {
        AffineTerm t = of.term[i];
        Affine y = affine_is_dim(t.var) ? affine_var(arena, t.var)
                                        : index_affine(arena, at->access.index[t.var]);
        x = affine_add(arena, x, t.coef, y);
    }
    return x;
}
