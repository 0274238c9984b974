/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels of a kernel's nodes are one: what a node computes at a position is read at that position. A class is cut as a whole,
 * so that no value between has to move. What is read by position, or along two of its dimensions by one class, stays whole. */
#include "base/union_find.h"
#include "dist/parts.h"

static uint32_t find(const Classes *c, uint32_t l)
{
    return union_find(c->parent, l);
}

static void join(Classes *c, uint32_t a, uint32_t b)
{
    if (union_join(c->parent, &a, &b)) {
        c->whole[a] |= c->whole[b];
    }
}

static void keep_whole(Classes *c, uint32_t l)
{
    c->whole[find(c, l)] = true;
}

uint32_t class_of(const Classes *c, NodeRef n, int32_t l)
{
    return find(c, c->base[n] + (uint32_t)l);
}

/* Leaves have no labels: an argument may be read anew by each reader, and positions know where they are. */
static bool has_labels(const Classes *c, NodeRef n)
{
    return op_info(graph_node(c->g, n)->op)->kind != OPKIND_LEAF;
}

/* The label of node n by which dimension d of its operand k is read, all positions in order; -1: by no such label. */
static int32_t label_read(const Node *n, uint32_t k, uint32_t d)
{
    if (n->op != OP_VIEW) {
        return n->access[k].index[d].label;
    }
    int32_t l = affine_index(n->at[d]);
    uint32_t uses = 0;
    for (uint32_t e = 0; e < n->access[0].rank; e++) {
        uses += l >= 0 && affine_uses(n->at[e], (VarRef)l) ? 1 : 0;
    }
    return uses == 1 ? l : -1;
}

uint32_t class_read(const Classes *c, NodeRef n, uint32_t k, uint32_t d)
{
    const Node *node = graph_node(c->g, n);
    bool pieces = op_info(node->op)->kind == OPKIND_JOIN;
    int32_t l = pieces ? -1 : label_read(node, k, d);
    return l < 0 ? UINT32_MAX : class_of(c, n, l);
}

/* Pieces of a result: a dimension along which all of them have all positions is the same in them. */
static void join_pieces(Classes *c, NodeRef r)
{
    const Node *n = graph_node(c->g, r);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        NodeRef o = n->operand[k];
        for (uint32_t d = 0; d < n->rank; d++) {
            Affine at = n->at[(size_t)k * n->rank + d];
            int32_t l = affine_index(at);
            bool same = l >= 0 && has_labels(c, o) &&
                        dim_eq(graph_node(c->g, o)->shape[l], n->shape[d]);
            if (same) {
                join(c, c->base[r] + (uint32_t)n->out[d],
                     c->base[o] + (uint32_t)graph_node(c->g, o)->out[l]);
                continue;
            }
            keep_whole(c, c->base[r] + (uint32_t)n->out[d]);
            for (uint32_t i = 0; i < at.n && has_labels(c, o); i++) {
                if (!affine_is_dim(at.term[i].var)) {
                    keep_whole(c,
                               c->base[o] + (uint32_t)graph_node(c->g, o)->out[at.term[i].var]);
                }
            }
        }
    }
}

static void join_view(Classes *c, NodeRef r)
{
    const Node *n = graph_node(c->g, r);
    for (uint32_t d = 0; d < n->access[0].rank; d++) {
        for (uint32_t i = 0; label_read(n, 0, d) < 0 && i < n->at[d].n; i++) {
            if (!affine_is_dim(n->at[d].term[i].var)) {
                keep_whole(c, c->base[r] + n->at[d].term[i].var);
            }
        }
    }
}

static void join_operands(Classes *c, NodeRef r)
{
    const Node *n = graph_node(c->g, r);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        NodeRef o = n->operand[k];
        const Node *operand = graph_node(c->g, o);
        for (uint32_t d = 0; d < operand->rank; d++) {
            int32_t l = label_read(n, k, d);
            bool split =
                operand->op == OP_INPUT && c->g->params.at[operand->param].collapsed != NULL;
            if (l >= 0 && (operand->op == OP_INDEX || split)) {
                keep_whole(c, c->base[r] + (uint32_t)l); /* positions know where they are */
            } else if (has_labels(c, o)) {
                uint32_t of = c->base[o] + (uint32_t)operand->out[d];
                if (l >= 0) {
                    join(c, c->base[r] + (uint32_t)l, of);
                } else {
                    keep_whole(c, of);
                }
            }
        }
    }
}

/* No node may have one class twice: its blocks would be squares on the diagonal. */
static void refuse_twice(Classes *c)
{
    for (NodeRef r = 0; r < c->g->nodes.n; r++) {
        const Node *n = graph_node(c->g, r);
        for (uint32_t l = 0; has_labels(c, r) && l < n->n_labels; l++) {
            for (uint32_t m = 0; m < l; m++) {
                if (class_of(c, r, (int32_t)l) == class_of(c, r, (int32_t)m)) {
                    keep_whole(c, c->base[r] + l);
                }
            }
        }
    }
}

/* Not of values that the caller has in another shape; a product over a cut label of complex
 * numbers would have to be folded by who knows them. */
static void refuse_others(Classes *c)
{
    for (uint32_t k = 0; k < c->g->results.n; k++) {
        NodeRef r = c->g->results.at[k].node;
        const Node *n = graph_node(c->g, r);
        uint32_t rank = 0;
        bool shaped = result_shape(c->g, &c->g->results.at[k], &rank) != NULL;
        for (uint32_t d = 0; shaped && has_labels(c, r) && d < n->rank; d++) {
            keep_whole(c, c->base[r] + (uint32_t)n->out[d]);
        }
    }
    for (NodeRef r = 0; r < c->g->nodes.n; r++) {
        const Node *n = graph_node(c->g, r);
        bool product = n->op == OP_PROD && dtype_is_complex(n->acc);
        for (uint32_t l = 0; has_labels(c, r) && l < n->n_labels; l++) {
            if (product) {
                keep_whole(c, c->base[r] + l);
            }
        }
    }
}

void classes_find(Arena *arena, const Graph *g, Classes *c)
{
    *c = (Classes){.g = g};
    c->base = ARENA_ARRAY(arena, (size_t)g->nodes.n + 1, uint32_t);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        c->base[r] = c->n;
        c->n += graph_node(g, r)->n_labels;
    }
    c->parent = union_new(arena, c->n);
    c->whole = ARENA_ARRAY(arena, (size_t)c->n + 1, bool);
    c->extent = ARENA_ARRAY(arena, (size_t)c->n + 1, Dim);
    c->root = ARENA_ARRAY(arena, (size_t)c->n + 1, uint32_t);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        if (op_info(n->op)->kind == OPKIND_JOIN) {
            join_pieces(c, r);
        } else if (has_labels(c, r)) {
            if (n->op == OP_VIEW) {
                join_view(c, r);
            }
            join_operands(c, r);
        }
        for (uint32_t l = 0; l < n->n_labels; l++) {
            c->extent[c->base[r] + l] = n->extent[l];
        }
    }
    refuse_twice(c);
    refuse_others(c);
    for (uint32_t l = 0; l < c->n; l++) {
        bool one = dim_is(c->extent[l], 1) || dim_is(c->extent[l], 0);
        if (find(c, l) == l && !c->whole[l] && !one) {
            c->root[c->n_roots++] = l;
        }
    }
}

uint32_t classes_join(Classes *c, uint32_t a, uint32_t b)
{
    join(c, a, b);
    return find(c, a);
}

uint32_t partial_over(const Classes *c, const Choice *x, NodeRef r)
{
    const Node *n = graph_node(c->g, r);
    uint32_t over = 0;
    for (uint32_t l = 0; is_fold(n) && l < n->n_labels; l++) {
        int32_t cut = choice_cut(x, class_of(c, r, (int32_t)l));
        over |= cut >= 0 && node_reduces(n, (int32_t)l) ? 1u << cut : 0;
    }
    return over;
}
