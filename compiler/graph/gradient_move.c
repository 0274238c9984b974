/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of what reads at positions: views, pieces, lookups. */
#include "graph/gradient_parts.h"

/* Has each element a place of its own? */
static bool is_one_to_one(const Node *node, uint32_t rank)
{
    Patch piece = {node->rank, node->extent, node->at};
    bool fine = true;
    for (uint32_t l = 0; l < node->rank; l++) {
        bool found = false;
        for (uint32_t a = 0; a < rank; a++) {
            found = found || affine_uses(node->at[a], l);
        }
        fine = fine && found;
    }
    for (uint32_t a = 0; a < rank; a++) {
        uint32_t labels = 0;
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            labels += !affine_is_dim(node->at[a].term[i].var);
        }
        fine = fine && labels <= 1;
    }
    return fine && !piece_overlaps_itself(rank, &piece);
}

/* Of the view x[2*a + b]: the sum over all a, b of w'[a,b] where 2*a + b is the position. Every position is compared with all. */
static NodeRef moved_back(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank, all = node->rank + rank;
    const Dim *of = o->shape;
    Dim *shape = ARENA_ARRAY(d->arena, all, Dim);
    int32_t *label = ARENA_ARRAY(d->arena, all, int32_t);
    for (uint32_t l = 0; l < all; l++) {
        shape[l] = l < rank ? of[l] : node->extent[l - rank];
        label[l] = (int32_t)l;
    }
    NodeRef is = NODE_NONE;
    for (uint32_t a = 0; a < rank; a++) {
        NodeRef at = graph_const(d->g, number_int(DTYPE_I64, node->at[a].base), d->span);
        at = gradient_filled(d, at, all, shape);
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm term = node->at[a].term[i];
            int32_t own = (int32_t)(rank + term.var);
            NodeRef x =
                affine_is_dim(term.var)
                    ? graph_extent(d->g, affine_sym(term.var), DTYPE_I64, d->span)
                    : gradient_spread(
                          d, graph_index(d->g, node->extent[term.var], DTYPE_I64, d->span),
                          gradient_access_of(d, &own, 1), all, label, shape);
            NodeRef by = graph_const(d->g, number_int(DTYPE_I64, term.coef), d->span);
            at = gradient_two(d, OP_ADD, at, gradient_two(d, OP_MUL, x, by));
        }
        int32_t own = (int32_t)a;
        NodeRef here = gradient_spread(d, graph_index(d->g, of[a], DTYPE_I64, d->span),
                                       gradient_access_of(d, &own, 1), all, label, shape);
        NodeRef same = gradient_compared(d, OP_EQ, at, here), both[2] = {is, same};
        is = is == NODE_NONE ? same : gradient_map(d, OP_AND, DTYPE_BOOL, 2, both);
    }
    NodeRef wide = gradient_spread(d, G, gradient_access_of(d, label + rank, node->rank), all,
                                   label, shape);
    NodeRef part =
        gradient_chosen(d, is, wide, gradient_zeros(d, gradient_type_of(d, G), all, shape));
    return gradient_summed(d, part, label, rank, label);
}

static Dim dim_plus(Grad *d, Dim x, Affine more)
{
    Affine sum = affine_add(d->arena, affine_extent(d->arena, x), 1, more);
    return affine_to_dim(d->arena, d->arena, &d->ctx->syms, &d->g->dims, d->span, sum, 1);
}

/* A view in windows, x[.., a + b, ..]: of w' with zeros around it, at p - b, summed over b. Position a of each dimension is the label
 * `moves[a]` with coefficient 1 and others before it. False where some dimension is not so. */
static bool window_labels(const Node *node, uint32_t rank, int32_t *moves)
{
    bool taken[RANK_LIMIT] = {false};
    for (uint32_t a = 0; a < rank; a++) {
        moves[a] = -1;
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            bool dim = affine_is_dim(t.var);
            if (t.coef < 0 && !dim) {
                return false;
            }
            if (!dim && taken[t.var]) {
                return false;
            }
            if (!dim) {
                taken[t.var] = true;
                moves[a] = t.coef == 1 && moves[a] < 0 ? (int32_t)t.var : moves[a];
            }
        }
        bool stays = true; /* one position for all labels */
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            stays = stays && affine_is_dim(node->at[a].term[i].var);
        }
        if (moves[a] < 0 && !stays) {
            return false;
        }
    }
    for (uint32_t l = 0; l < node->rank; l++) {
        if (!taken[l]) {
            return false;
        }
    }
    return true;
}

static NodeRef windows_back(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank, n = 0, m = 0;
    const Dim *of = o->shape;
    int32_t moves[RANK_LIMIT], slot[RANK_LIMIT];
    if (!window_labels(node, rank, moves)) {
        return NODE_NONE;
    }
    /* labels of the sum: the operand's dimensions that have one, then those that stay in windows */
    int32_t *place = ARENA_ARRAY(d->arena, node->rank, int32_t);
    Dim *shape = ARENA_ARRAY(d->arena, rank + node->rank, Dim);
    Affine *padded = ARENA_ARRAY(d->arena, node->rank, Affine);
    Affine *at = ARENA_ARRAY(d->arena, node->rank, Affine);
    Dim *room = ARENA_ARRAY(d->arena, node->rank, Dim);
    for (uint32_t a = 0; a < rank; a++) {
        if (moves[a] >= 0) {
            slot[a] = (int32_t)m;
            shape[m++] = of[a];
        }
    }
    for (uint32_t l = 0; l < node->rank; l++) {
        place[l] = -1;
        for (uint32_t a = 0; a < rank; a++) {
            place[l] = moves[a] == (int32_t)l ? slot[a] : place[l];
        }
        if (place[l] < 0) {
            place[l] = (int32_t)(m + n);
            shape[m + n++] = node->extent[l];
        }
        padded[l] = affine_var(d->arena, l);
        at[l] = affine_var(d->arena, (VarRef)place[l]);
        room[l] = node->extent[l];
    }
    for (uint32_t a = 0; a < rank; a++) {
        if (moves[a] < 0) {
            continue;
        }
        uint32_t l = (uint32_t)moves[a];
        Affine fixed = affine_const(node->at[a].base); /* p = l + fixed + others */
        Affine others = affine_const(0), most = affine_const(0);
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            if (affine_is_dim(t.var)) {
                fixed = affine_add(d->arena, fixed, 1, (Affine){0, 1, &t});
            } else if (t.var != l) {
                Affine last = affine_extent(d->arena, node->extent[t.var]);
                last.base--;
                most = affine_add(d->arena, most, t.coef, last);
                others = affine_add(d->arena, others, t.coef,
                                    affine_var(d->arena, (VarRef)place[t.var]));
            }
        }
        /* zeros before w' along l: the most that is added to it; it is read at p - others - fixed behind them */
        padded[l] = affine_add(d->arena, affine_add(d->arena, padded[l], 1, fixed), 1, most);
        at[l] = affine_add(d->arena, affine_add(d->arena, at[l], 1, most), -1, others);
        room[l] = dim_plus(d, of[a], most);
    }
    for (uint32_t l = 0; l < node->rank; l++) { /* what cannot be proven is not built */
        if (room[l].sym < 0 && room[l].n < 0) {
            return NODE_NONE;
        }
        if (position_problem(d->arena, &d->g->dims, node->extent, node->rank, padded[l],
                             room[l]) != 0 ||
            position_problem(d->arena, &d->g->dims, shape, m + n, at[l], room[l]) != 0) {
            return NODE_NONE;
        }
    }
    NodeRef wide = gradient_placed(d, G, node->rank, room, padded);
    NodeRef part = gradient_view(d, wide, m + n, shape, at);
    part = gradient_summed(d, part, labels_in_order(d->arena, m + n), m,
                           labels_in_order(d->arena, m));
    if (m == rank) {
        return part;
    }
    Affine *alone = ARENA_ARRAY(d->arena, rank, Affine);
    for (uint32_t a = 0; a < rank; a++) {
        alone[a] = moves[a] < 0 ? node->at[a] : affine_var(d->arena, (VarRef)slot[a]);
    }
    return gradient_placed(d, part, rank, of, alone);
}

void gradient_back_view(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank;
    const Dim *shape = o->shape;
    NodeRef part = NODE_NONE;
    if (!d->wanted[node->operand[0]]) {
        return;
    }
    if (is_one_to_one(node, rank)) {
        part = gradient_placed(d, G, rank, shape, node->at);
    } else {
        part = windows_back(d, node, G);
    }
    gradient_give(d, node->operand[0], part != NODE_NONE ? part : moved_back(d, node, G));
}

/* Pieces read where they lie; what an update begins with is read all. */
void gradient_back_join(Grad *d, const Node *node, NodeRef G)
{
    for (uint32_t k = 0; k < node->n_operands; k++) {
        if (!d->wanted[node->operand[k]]) {
            continue;
        }
        const Node *o = graph_node(d->g, node->operand[k]);
        uint32_t rank = o->rank;
        const Dim *shape = o->shape;
        NodeRef part =
            node->op == OP_UPDATE && k == 0
                ? G
                : gradient_view(d, G, rank, shape, node->at + (size_t)k * node->rank);
        gradient_give(d, node->operand[k], part);
    }
}

/* The table's dimension of a position that is an index is that label; of other positions it is one of its own, which is compared. */
void gradient_back_gather(Grad *d, const Node *node, NodeRef G)
{
    const NodeRef table = node->operand[0];
    if (!d->wanted[table]) {
        return;
    }
    uint32_t rank = graph_node(d->g, table)->rank, all = node->rank, n = 0;
    const Dim *of = graph_node(d->g, table)->shape;
    int32_t *out = ARENA_ARRAY(d->arena, rank, int32_t);
    int32_t *label = ARENA_ARRAY(d->arena, node->rank + rank, int32_t);
    Dim *shape = ARENA_ARRAY(d->arena, node->rank + rank, Dim);
    bool taken[RANK_LIMIT] = {false};
    for (uint32_t a = 0; a < node->rank; a++) {
        label[n] = node->out[a];
        shape[n++] = node->shape[a];
    }
    NodeRef is = NODE_NONE;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t a = 0; a < rank; a++) {
            const Node *at = graph_node(d->g, node->operand[a + 1]);
            int32_t l = at->op == OP_INDEX ? node->access[a + 1].index[0].label : -1;
            if (pass == 0) {
                bool direct = l >= 0 && !taken[l] && dim_eq(node->extent[l], of[a]);
                out[a] = direct ? l : (int32_t)(node->n_labels + a);
                if (direct) {
                    taken[l] = true;
                } else {
                    label[n] = out[a];
                    shape[n++] = of[a];
                    all++;
                }
            } else if (out[a] >= (int32_t)node->n_labels) {
                NodeRef here =
                    gradient_spread(d, graph_index(d->g, of[a], DTYPE_I64, d->span),
                                    gradient_access_of(d, &out[a], 1), all, label, shape);
                NodeRef there = gradient_spread(d, node->operand[a + 1], node->access[a + 1],
                                                all, label, shape);
                NodeRef same = gradient_compared(d, OP_EQ, there, here), both[2] = {is, same};
                is = is == NODE_NONE ? same : gradient_map(d, OP_AND, DTYPE_BOOL, 2, both);
            }
        }
    }
    NodeRef part =
        gradient_spread(d, G, gradient_access_of(d, node->out, node->rank), all, label, shape);
    if (is != NODE_NONE) {
        part =
            gradient_chosen(d, is, part, gradient_zeros(d, gradient_type_of(d, G), all, shape));
    }
    gradient_give(d, table, gradient_summed(d, part, label, rank, out));
}
