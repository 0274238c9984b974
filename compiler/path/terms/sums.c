/* SPDX-License-Identifier: Apache-2.0 */
/* See sums.h. A node is taken apart when the sum alone reads it, in all its dimensions. Roots are
 * found from the end, so that every sum is as large as it can be. Floats and complex numbers only. */
#include "path/terms/sums.h"

typedef struct Finder {
    Arena *arena;
    const Graph *g;
    uint32_t *uses; /* by node: operands and results that are it */
    uint32_t *met;  /* by node: pieces of the sum at hand that are it */
    GraphSums *out;
} Finder;

typedef struct Item {
    NodeRef node;
    double coef;
    Access access;
} Item;

/* Types that are accumulated in themselves and have the quotients that merging makes. */
static bool type_adds(DType t)
{
    return t == DTYPE_F32 || t == DTYPE_F64 || dtype_is_complex(t);
}

/* The factor of a product with a constant, and which operand is the other; 0: no such product. */
static double scale_of(const Graph *g, const Node *n, uint32_t *other)
{
    for (uint32_t k = 0; n->op == OP_MUL && k < 2; k++) {
        const Node *c = graph_node(g, n->operand[k]);
        if (c->op == OP_CONST && dtype_is_float(n->dtype)) {
            *other = 1 - k;
            return number_cast(c->value, DTYPE_F64).re;
        }
    }
    return 0.0;
}

static bool is_linear(const Graph *g, const Node *n)
{
    uint32_t other;
    return type_adds(n->dtype) && (n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG ||
                                   scale_of(g, n, &other) != 0.0);
}

/* Every dimension of the node is another label, and all `rank` of them are there. */
static bool reads_all(const Access *a, uint32_t rank)
{
    uint64_t met = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t l = a->index[d].label;
        if (l < 0 || (met >> l) & 1) {
            return false;
        }
        met |= (uint64_t)1 << l;
    }
    return a->rank == rank;
}

/* Operand k of `n` as it is read through the access of `n`. */
static Access read_through(Finder *f, const Node *n, uint32_t k, const Access *through)
{
    const Access *a = &n->access[k];
    Index *index = arena_copy(f->arena, a->index, a->rank * sizeof *index);
    for (uint32_t d = 0; d < a->rank; d++) {
        for (uint32_t x = 0; a->index[d].label >= 0 && x < n->rank; x++) {
            if (n->out[x] == a->index[d].label) {
                index[d].label = through->index[x].label;
            }
        }
    }
    return (Access){a->rank, index};
}

/* Operands of a linear node, the first on top. */
static bool item_split(Finder *f, const Item *item, NodeRef root, Item *to, uint32_t *n)
{
    const Node *node = graph_node(f->g, item->node), *top = graph_node(f->g, root);
    if (!is_linear(f->g, node) || node->dtype != top->dtype ||
        (item->node != root &&
         (f->uses[item->node] != 1 || !reads_all(&item->access, top->rank)))) {
        return false;
    }
    uint32_t other = 0;
    double scale = scale_of(f->g, node, &other);
    *n = 0;
    if (node->op == OP_MUL) {
        to[(*n)++] = (Item){node->operand[other], item->coef * scale,
                            read_through(f, node, other, &item->access)};
        return true;
    }
    for (uint32_t k = node->n_operands; k-- > 0;) {
        bool minus = node->op == OP_NEG || (node->op == OP_SUB && k == 1);
        to[(*n)++] = (Item){node->operand[k], minus ? -item->coef : item->coef,
                            read_through(f, node, k, &item->access)};
    }
    return true;
}

static bool is_plain_contraction(const Graph *g, const Node *n, DType t)
{
    if (op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands < 2 ||
        n->n_operands > SUM_OPERANDS || n->dtype != t || n->acc != t) {
        return false;
    }
    uint32_t *count = ARENA_ARRAY(g->arena, n->n_labels, uint32_t);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        uint64_t met = 0;
        if (graph_node(g, n->operand[k])->dtype != t || n->n_labels > 64) {
            return false;
        }
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            int32_t l = n->access[k].index[d].label;
            if (l >= 0 && (met >> l) & 1) {
                return false; /* a diagonal */
            }
            if (l >= 0) {
                met |= (uint64_t)1 << l;
                count[l]++;
            }
        }
    }
    for (int32_t l = 0; l < (int32_t)n->n_labels; l++) {
        uint32_t least = node_reduces(n, l) ? 2 : 1; /* summed in one operand, or in none */
        if (count[l] < least) {
            return false;
        }
    }
    return true;
}

static void piece_settle(Finder *f, const GraphSum *sum, SumPiece *p)
{
    const Node *n = graph_node(f->g, p->node), *root = graph_node(f->g, sum->root);
    if (!is_plain_contraction(f->g, n, root->dtype) || f->met[p->node] != f->uses[p->node] ||
        !reads_all(&p->access, root->rank)) {
        return;
    }
    uint32_t *axis = ARENA_ARRAY(f->arena, root->rank, uint32_t);
    for (uint32_t d = 0; d < root->rank; d++) {
        axis[p->access.index[d].label] = d;
    }
    p->axis = axis;
}

static void sum_find(Finder *f, NodeRef root)
{
    const Node *top = graph_node(f->g, root);
    GraphSum sum = {.root = root};
    VEC(Item) stack = {0};
    VEC(NodeRef) inside = {0};
    Item first = {root, 1.0, access_in_order(f->arena, top->rank)}, part[2];
    vec_push(f->arena, &stack, first);
    while (stack.n > 0) {
        Item item = stack.at[--stack.n];
        uint32_t n;
        if (item_split(f, &item, root, part, &n)) {
            vec_push(f->arena, &inside, item.node);
            for (uint32_t k = 0; k < n; k++) {
                vec_push(f->arena, &stack, part[k]);
            }
        } else {
            SumPiece piece = {item.node, item.coef, item.access, NULL};
            f->met[item.node]++;
            vec_push(f->arena, &sum.pieces, piece);
        }
    }
    for (uint32_t k = 0; k < sum.pieces.n; k++) {
        piece_settle(f, &sum, &sum.pieces.at[k]);
    }
    for (uint32_t k = 0; k < sum.pieces.n; k++) {
        NodeRef node = sum.pieces.at[k].node;
        if (sum.pieces.at[k].axis != NULL && f->out->of[node] == 0) {
            f->out->of[node] = f->out->list.n + 1;
            sum.n_contractions++;
        }
        f->met[node] = 0;
    }
    for (uint32_t k = 0; sum.n_contractions < 2 && k < sum.pieces.n; k++) {
        if (sum.pieces.at[k].axis != NULL) {
            f->out->of[sum.pieces.at[k].node] = 0;
        }
    }
    for (uint32_t k = 0; sum.n_contractions >= 2 && k < inside.n; k++) {
        f->out->of[inside.at[k]] = f->out->list.n + 1;
    }
    if (sum.n_contractions >= 2) {
        vec_push(f->arena, &f->out->list, sum);
    }
}

GraphSums sums_find(Arena *arena, const Graph *g)
{
    GraphSums out = {.of = ARENA_ARRAY(arena, g->nodes.n, uint32_t)};
    Finder f = {arena, g, ARENA_ARRAY(arena, g->nodes.n, uint32_t),
                ARENA_ARRAY(arena, g->nodes.n, uint32_t), &out};
    uint8_t *seen = ARENA_ARRAY(arena, g->nodes.n, uint8_t);
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        for (uint32_t i = 0; i < graph_node(g, k)->n_operands; i++) {
            f.uses[graph_node(g, k)->operand[i]]++;
        }
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        f.uses[g->results.at[r].node]++;
    }
    for (uint32_t r = 0; r < g->required.n; r++) {
        f.uses[g->required.at[r].node]++;
    }
    for (NodeRef k = g->nodes.n; k-- > 0;) {
        const Node *n = graph_node(g, k);
        bool root = (n->op == OP_ADD || n->op == OP_SUB) && is_linear(g, n) && !seen[k];
        if (root && n->rank <= 64) {
            sum_find(&f, k);
        }
        /* Whatever a sum has taken apart is no root of another. */
        for (uint32_t i = 0; is_linear(g, n) && i < n->n_operands; i++) {
            NodeRef p = n->operand[i];
            seen[p] |= f.uses[p] == 1 && (root || seen[k] != 0);
        }
    }
    return out;
}
