/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels of a contraction are its row, its column and its sum (product.h). */
#include "nest/product.h"

static LabelExtent extent_of(const Product *p, uint32_t label)
{
    const Graph *g = p->f->g;
    NodeRef n = p->nest->items[p->item].node;
    Dim d = p->node->extent[label];
    uint32_t loop = nest_loop_of(p->nest, p->nest->items[p->item].parent, n, (int32_t)label);
    LabelExtent x = {.typical = nest_typical(g, d),
                     .most = d.sym < 0 ? nest_typical(g, d) : INT64_MAX,
                     .exact = d.sym < 0};
    if (loop != NEST_NONE) {
        int64_t span = nest_loop_span(p->nest, loop, n);
        x.tile = span == p->nest->items[loop].tile ? span : 0; /* no multiple of anything */
        x.exact = nest_loop_is_full(p->nest, loop);
        x.most = smaller(x.most, span);
        x.typical = smaller(x.typical, span);
        x.position = span == 1;
    }
    return x;
}

/* Does the view read its operand's elements one after the other along `label`? */
static bool is_unit_view(const Graph *g, const Node *view, const Access *access, uint32_t label)
{
    const Node *of = graph_node(g, view->operand[0]);
    uint32_t last = of->rank;
    while (last > 0 && dim_is(of->shape[last - 1], 1)) {
        last--;
    }
    int64_t stride = 0;
    for (uint32_t d = 0; d < of->rank; d++) {
        for (uint32_t i = 0; i < view->at[d].n; i++) {
            VarRef x = view->at[d].term[i].var;
            if (affine_is_dim(x) || access->index[x].label != (int32_t)label) {
                continue;
            }
            if (d + 1 != last) {
                return false;
            }
            stride += view->at[d].term[i].coef;
        }
    }
    return stride == 1;
}

/* Do elements of the value side by side along `label` stand side by side where it is kept, in the
 * body of loop `alloc_loop`, when it is read or written at `access`? */
static bool is_unit(const Product *p, NodeRef value, uint32_t alloc_loop, bool block,
                    const Access *access, uint32_t label)
{
    const Node *n = graph_node(p->f->g, value);
    if (n->op == OP_VIEW) {
        return is_unit_view(p->f->g, n, access, label);
    }
    bool found = false, last = true;
    for (uint32_t d = access->rank; d-- > 0;) {
        uint32_t loop = block ? nest_loop_of(p->nest, alloc_loop, value, n->out[d]) : NEST_NONE;
        if (loop != NEST_NONE && nest_loop_span(p->nest, loop, value) == 1) {
            continue;
        }
        bool here = access->index[d].label == (int32_t)label;
        if (here && (found || !last)) {
            return false;
        }
        found |= here;
        last = last && !here && dim_is(n->shape[d], 1);
    }
    return found;
}

bool operand_is_unit(const Product *p, const Use *u, uint32_t label)
{
    const NestValue *v = &p->nest->values[u->node];
    return is_unit(p, u->node, v->alloc_loop, v->residence == RESIDE_TILE, &u->access, label);
}

/* In the result, or where it is folded when that has another type. */
bool result_is_unit(const Product *p, uint32_t label)
{
    NodeRef n = p->nest->items[p->item].node;
    const NestValue *v = &p->nest->values[n],
                    *place = &p->nest->values[nest_place_of(p->nest, n)];
    bool apart = p->node->acc != p->node->dtype;
    uint32_t around = p->nest->items[v->fold != NEST_NONE ? v->fold : v->item].parent;
    Index *index = ARENA_ARRAY(p->arena, p->node->rank, Index);
    for (uint32_t d = 0; d < p->node->rank; d++) {
        index[d] = (Index){p->node->out[d], 0};
    }
    Access out = {p->node->rank, index};
    return is_unit(p, n, apart ? around : place->alloc_loop,
                   apart || place->residence == RESIDE_TILE, &out, label);
}

/* Its length as far as a tile uses it; unit stride in the result counts most, since the operand
 * is packed anyway. */
static int64_t column_score(const Product *p, const Use *own, uint32_t label)
{
    return smaller(p->extent[label].typical, 32) * (result_is_unit(p, label) ? 8 : 1) *
           (operand_is_unit(p, own, label) ? 2 : 1);
}

bool result_dominates(const Product *p, const Use *own)
{
    int64_t read = 4, written = 1;
    for (uint32_t l = 0; l < p->node->n_labels; l++) {
        int64_t n = p->extent[l].typical;
        read = access_has_label(&own->access, (int32_t)l) ? sat_mul(read, n) : read;
        written = is_kept(p->node, l) ? sat_mul(written, n) : written;
    }
    return read <= written;
}

/* Packing must not fetch a line of memory for each element, so it or the summed label runs along
 * lines. Where little is packed, rows are those that follow each other in the result. */
static int64_t row_score(const Product *p, const Use *own, uint32_t label)
{
    if (result_dominates(p, own)) {
        return smaller(p->extent[label].typical, p->machine->tile.rows);
    }
    bool lines = operand_is_unit(p, own, label) || operand_is_unit(p, own, p->sum);
    return smaller(p->extent[label].typical, 64) * (lines ? 16 : 1);
}

/* The best column, or row, of `own` that `other` lacks. */
static uint32_t best_label(const Product *p, const Use *own, const Use *other, bool column,
                           int64_t *best)
{
    uint32_t found = NONE;
    *best = 0;
    for (uint32_t d = 0; d < p->node->rank; d++) {
        uint32_t l = (uint32_t)p->node->out[d];
        if (p->extent[l].position || p->extent[l].most == 1 ||
            !access_has_label(&own->access, (int32_t)l) ||
            access_has_label(&other->access, (int32_t)l)) {
            continue;
        }
        int64_t score = column ? column_score(p, own, l) : row_score(p, own, l);
        /* Of rows that are as good, those side by side in the result. */
        if (found == NONE || score > *best || (!column && score == *best)) {
            *best = score;
            found = l;
        }
    }
    return found;
}

static bool is_contraction(const NestFacts *f, const Machine *machine, NodeRef node)
{
    const Node *n = graph_node(f->g, node);
    return (machine->tile.types >> n->acc & 1u) != 0 &&
           nest_contracts(f->g, f->residence, node, &f->uses[node]);
}

ScheduleRole product_role(const Product *p, uint32_t label)
{
    bool in_a = access_has_label(&p->a->access, (int32_t)label),
         in_b = access_has_label(&p->b->access, (int32_t)label);
    if (!is_kept(p->node, label)) {
        return ROLE_K;
    }
    return in_a == in_b ? ROLE_BATCH : in_a ? ROLE_M : ROLE_N;
}

/* Where the operands have their lines along different sums, the shorter one is first if boxes have room for half a granule
 * of the other then. */
static void first_of_lines(Product *p, NodeRef node)
{
    const UseList *u = &p->f->uses[node];
    int64_t line = p->machine->level[0].granule / 2 / dtype_bytes(p->node->acc);
    for (uint32_t i = 0; i < 2 && contraction_crosses_lines(p->f, node); i++) {
        const Access *a = &u->list.at[i].access;
        uint32_t l = (uint32_t)a->index[a->rank - 1].label;
        if (!p->extent[l].position && p->extent[l].exact &&
            p->extent[l].most < p->extent[p->sum].most &&
            sat_mul(p->extent[l].most, line) <=
                p->machine->tile.sum + p->machine->tile.sum / 2) {
            p->sum = l;
        }
    }
}

bool product_find(Product *p)
{
    NodeRef node = p->nest->items[p->item].node;
    const Node *n = p->node = graph_node(p->f->g, node);
    if (!is_contraction(p->f, p->machine, node)) {
        return false;
    }
    LabelExtent *extent = ARENA_ARRAY(p->arena, n->n_labels, LabelExtent);
    p->extent = extent;
    p->sum = NONE;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        extent[l] = extent_of(p, l);
        if (!is_kept(n, l) && !extent[l].position &&
            (p->sum == NONE || extent[l].typical > extent[p->sum].typical)) {
            p->sum = l;
        }
    }
    if (p->sum == NONE) {
        return false;
    }
    first_of_lines(p, node);
    const Use *left = &p->f->uses[node].list.at[0], *right = &p->f->uses[node].list.at[1];
    int64_t in_left = 0, in_right = 0, row = 0;
    uint32_t l = best_label(p, left, right, true, &in_left);
    uint32_t r = best_label(p, right, left, true, &in_right);
    bool swap = in_left > in_right;
    p->a = swap ? right : left;
    p->b = swap ? left : right;
    p->col = swap ? l : r;
    if (l == NONE || r == NONE) {
        return false;
    }
    p->row = best_label(p, p->a, p->b, false, &row);
    return true;
}

/* After the first the label in which an operand that is packed lies along lines: a box has runs of it. */
static void lines_second(const Product *p, ScheduleRole r, uint32_t *label, uint32_t n)
{
    for (uint32_t i = 2; i < n; i++) {
        bool lines = (r != ROLE_N && operand_is_unit(p, p->a, label[i])) ||
                     (r != ROLE_M && operand_is_unit(p, p->b, label[i]));
        for (uint32_t k = i; lines && k > 1; k--) {
            uint32_t before = label[k - 1];
            label[k - 1] = label[k];
            label[k] = before;
        }
    }
}

void product_labels(const Product *p, Schedule *b)
{
    const Node *n = p->node;
    const uint32_t first[ROLE_COUNT] = {
        [ROLE_M] = p->row, [ROLE_N] = p->col, [ROLE_K] = p->sum, [ROLE_BATCH] = NONE};
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        uint32_t *label = ARENA_ARRAY(p->arena, n->n_labels, uint32_t), count = 0;
        if (first[r] != NONE) {
            label[count++] = first[r];
        }
        for (uint32_t i = 0; i < n->rank + n->n_labels; i++) {
            uint32_t l = i >= n->rank       ? i - n->rank
                         : p->order != NULL ? p->order[i]
                                            : (uint32_t)n->out[n->rank - 1 - i];
            bool again = i >= n->rank && is_kept(n, l);
            if (!again && l != first[r] && !p->extent[l].position && product_role(p, l) == r) {
                label[count++] = l;
            }
        }
        if (p->order == NULL && r != ROLE_BATCH) {
            lines_second(p, r, label, count);
        }
        b->label[r] = label;
        b->n_labels[r] = count;
    }
}
