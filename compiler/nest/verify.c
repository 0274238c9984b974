/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for the overlay, checked without the code that made it: the rules of nest.h, and where values live again. */
#include "nest/verify.h"

#include "nest/leaves.h"
#include "nest/verify_parts.h"

/* The last two leaves that read a value, or NEST_NONE, and how many values take its place. */
typedef struct Readers {
    uint32_t last, before, takers;
} Readers;

typedef struct Verifier {
    Ctx *ctx;
    Arena *arena;
    const Nest *nest;
    const Graph *g;
    const char *stage;
    uint32_t depth;   /* loops around each other, at most */
    UseList *uses;    /* [nodes] */
    uint32_t *leaf;   /* [nodes]: its item, or NEST_NONE */
    Readers *readers; /* [nodes] */
    uint32_t *reads;  /* [nodes]: by leaves, how often */
} Verifier;

/* The line of the dump where the value is made, else its place in the program. */
static Span place_of(const Verifier *v, NodeRef n)
{
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        const NestItem *item = &v->nest->items[k];
        if (!nest_is_loop(item) && item->node == n && item->span.source != 0) {
            return item->span;
        }
    }
    return graph_node(v->g, n)->span;
}

static bool refuse(Verifier *v, NodeRef n, const char *what)
{
    return dump_refuse(v->ctx, place_of(v, n), "%s: value %%%u %s", v->stage, n, what);
}

static bool refuse_item(Verifier *v, uint32_t k, const char *what)
{
    Span at = v->nest->items[k].span;
    return dump_refuse(v->ctx, at.source != 0 ? at : v->g->span, "%s: item %u of the nest %s",
                       v->stage, k, what);
}

/* The node's label on the loop's axis, or -1. */
static int32_t label_on(const Verifier *v, uint32_t loop, NodeRef n)
{
    const NestAxis *axis = &v->nest->axes[v->nest->items[loop].axis];
    for (uint32_t k = 0; k < axis->n; k++) {
        if (axis->node[k] == n) {
            return axis->label[k];
        }
    }
    return -1;
}

static bool is_reduced(const Node *n, int32_t label)
{
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] == label) {
            return false;
        }
    }
    return label >= 0;
}

/* ---- form ---- */

static bool check_axes(Verifier *v)
{
    for (uint32_t x = 0; x < v->nest->n_axes; x++) {
        const NestAxis *axis = &v->nest->axes[x];
        for (uint32_t k = 0; k < axis->n; k++) {
            NodeRef n = axis->node[k];
            if (n >= v->g->nodes.n || (k > 0 && axis->node[k - 1] >= n)) {
                return dump_refuse(
                    v->ctx, v->g->span,
                    "%s: axis %u lists values that are not there or out of order", v->stage, x);
            }
            const Node *node = graph_node(v->g, n);
            bool longer = axis->halo != NULL && axis->halo[k].count > 0;
            if (axis->label[k] < 0 || (uint32_t)axis->label[k] >= node->n_labels ||
                !(longer || dim_eq(node->extent[axis->label[k]], axis->extent))) {
                return refuse(v, n, "has an axis with a label of another extent");
            }
        }
    }
    return true;
}

static bool check_links(Verifier *v)
{
    const NestItem *items = v->nest->items;
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        uint32_t around = items[k].parent, last = k == 0 ? NEST_NONE : k - 1;
        while (last != NEST_NONE && items[last].end <= k) {
            last = items[last].parent;
        }
        if (around != last || items[k].end <= k || items[k].end > v->nest->n_items ||
            (around != NEST_NONE && items[k].end > items[around].end)) {
            return refuse_item(v, k, "does not fit into the loop around it");
        }
        if (nest_is_loop(&items[k])) {
            if (items[k].axis >= v->nest->n_axes || items[k].tile < 1 ||
                items[k].tile > SIZE_LIMIT) {
                return refuse_item(v, k, "is a loop over no axis, or by no tile");
            }
            if (items[k].end == k + 1) {
                return refuse_item(v, k, "is a loop around nothing");
            }
            for (uint32_t p = around; p != NEST_NONE; p = items[p].parent) {
                if (items[p].axis == items[k].axis &&
                    (items[p].tile % items[k].tile != 0 || items[p].tile == items[k].tile)) {
                    nest_refuse_tile(v->ctx, v->arena, v->nest, v->stage, k, p);
                    return false;
                }
            }
        } else if (items[k].end != k + 1 || items[k].node >= v->g->nodes.n) {
            return refuse_item(v, k, "is a leaf with a body or without a value");
        } else if (v->leaf[items[k].node] != NEST_NONE) {
            return refuse(v, items[k].node, "has two leaves");
        } else {
            v->leaf[items[k].node] = k;
        }
    }
    return true;
}

/* A loop over pairs: with the loop that it begins at it has equal tiles of equal extents, and nobody else has their axes. */
static bool check_pairs(Verifier *v, uint32_t k)
{
    const NestItem *items = v->nest->items, *inner = &items[k];
    uint32_t from = inner->from - 1, p = inner->parent;
    if (inner->from == 0) {
        return true;
    }
    while (p != NEST_NONE && p != from) {
        p = items[p].parent;
    }
    if (!nest_is_loop(inner) || p == NEST_NONE || inner->tile % items[from].tile != 0 ||
        items[from].axis == inner->axis || inner->parallel ||
        v->nest->axes[inner->axis].halo != NULL ||
        v->nest->axes[items[from].axis].halo != NULL ||
        !dim_eq(v->nest->axes[items[from].axis].extent, v->nest->axes[inner->axis].extent)) {
        return refuse_item(v, k, "begins at no tile of a loop like it around it");
    }
    for (uint32_t i = 0; i < v->nest->n_items; i++) {
        bool related = (i < k && k < items[i].end) || (k < i && i < inner->end);
        bool axis = items[i].axis == inner->axis || items[i].axis == items[from].axis;
        if (related && nest_is_loop(&items[i]) && i != from && (axis || items[i].from != 0)) {
            return refuse_item(v, k, "is not the only loop over its axes, or over pairs");
        }
    }
    return items[from].from == 0 ||
           refuse_item(v, k, "begins at a loop that begins at another");
}

static bool check_depths(Verifier *v)
{
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        if (!check_pairs(v, k)) {
            return false;
        }
        if (nest_depth(v->nest->items, v->nest->items[k].parent) > v->depth) {
            return refuse_item(v, k, "stands in too many loops");
        }
    }
    return true;
}

static bool check_residence(Verifier *v, NodeRef n)
{
    const Node *node = graph_node(v->g, n);
    const NestValue *value = &v->nest->values[n];
    Residence r = value->residence;
    bool leaf = op_info(node->op)->kind == OPKIND_LEAF;
    bool has_item = v->leaf[n] != NEST_NONE;
    if (r == RESIDE_NONE && !has_item) {
        return true; /* whoever reads it is refused below */
    }
    if (node->op == OP_INPUT ? r != RESIDE_ARGUMENT : r == RESIDE_ARGUMENT) {
        return refuse(v, n, "is a parameter and must be an argument, or is none and must not");
    }
    if ((node->op == OP_VIEW) != (r == RESIDE_VIEW) ||
        (r == RESIDE_INLINE && !leaf && !node_is_expression(node))) {
        return refuse(v, n, "is a view or a fold, and is neither read in place nor stored");
    }
    if (leaf && r != RESIDE_ARGUMENT && r != RESIDE_INLINE) {
        return refuse(v, n, "is a constant and is never stored");
    }
    if (residence_is_stored(r) != has_item) {
        return refuse(v, n, "is stored without a leaf, or has a leaf and is not stored");
    }
    NodeRef last = r == RESIDE_INTO ? value->in_place : NODE_NONE;
    if (r == RESIDE_INTO && (last >= v->g->nodes.n || v->leaf[last] == NEST_NONE ||
                             node_init(graph_node(v->g, last)) != n)) {
        return refuse(v, n, "is in the place of what does not begin with it");
    }
    int32_t k = value->result;
    if ((r == RESIDE_RESULT && k < 0) || (k >= 0 && r != RESIDE_RESULT) ||
        (k >= 0 && ((uint32_t)k >= v->g->results.n || v->g->results.at[k].node != n))) {
        return refuse(v, n, "names a result that is not its own");
    }
    return true;
}

/* ---- rules ---- */

/* The loops around the leaf, one by one. */
static bool check_leaf(Verifier *v, uint32_t item)
{
    NodeRef n = v->nest->items[item].node;
    const NestValue *value = &v->nest->values[n];
    bool own = !graph_node(v->g, n)->onto && value->residence != RESIDE_INTO, lacks = false;
    for (uint32_t p = v->nest->items[item].parent; p != NEST_NONE;
         p = v->nest->items[p].parent) {
        int32_t l = label_on(v, p, n);
        lacks |= l < 0;
        if (l >= 0 && is_reduced(graph_node(v->g, n), l) && v->nest->items[p].parallel &&
            (v->nest->items[p].parent != NEST_NONE || v->nest->items[p].online || !own)) {
            return refuse(v, n, "is folded over a loop whose iterations run at the same time");
        }
        for (uint32_t q = v->nest->items[p].parent; l >= 0 && q != NEST_NONE;
             q = v->nest->items[q].parent) {
            if (label_on(v, q, n) == l && v->nest->items[q].axis != v->nest->items[p].axis) {
                return refuse(v, n, "has one index on two axes");
            }
        }
    }
    const char *problem = nest_leaf_problem(v->arena, v->nest, item);
    if (problem != NULL) {
        return refuse(v, n, problem);
    }
    return lacks == v->nest->items[item].recompute ||
           refuse(v, n,
                  lacks ? "lacks the axis of a loop around it"
                        : "is said to be computed again and is not");
}

/* Is the loop around item `at`? */
static bool is_around(const Nest *nest, uint32_t loop, uint32_t at)
{
    return loop < at && at < nest->items[loop].end;
}

/* A use under loops that the producer stands in too. */
static bool check_shared(Verifier *v, NodeRef reader, const Use *use, uint32_t loop)
{
    NodeRef p = use->node;
    const Node *producer = graph_node(v->g, p);
    int32_t made = label_on(v, loop, p), read = label_on(v, loop, reader);
    if (use->apart && is_reduced(graph_node(v->g, reader), read)) {
        bool together =
            v->nest->values[p].residence == RESIDE_INTO && is_reduced(producer, made);
        return together || refuse(v, reader, "begins with a value that its loops compute");
    }
    if (made < 0) {
        for (uint32_t d = 0; d < producer->rank; d++) {
            if (read >= 0 && use->access.index[d].label == read) {
                return refuse(v, reader, "reads along an axis a value that lacks the axis");
            }
        }
        return true; /* computed again at each position */
    }
    if (is_reduced(producer, made) && v->nest->items[loop].online) {
        return true; /* checked with all that depends on it */
    }
    if (is_reduced(producer, made)) {
        return refuse(v, reader, "reads a value before its loops have completed it");
    }
    for (uint32_t d = 0; d < producer->rank; d++) {
        Index index = use->access.index[d];
        if (producer->out[d] == made && !use->whole && /* else checked with the halo */
            (read < 0 || index.label != read || index.offset != 0)) {
            return refuse(v, reader,
                          "reads a value of its loop along the axis at other "
                          "indices");
        }
    }
    return true;
}

/* A reader outside of a loop reads what the loop has left there: all of it. */
static bool check_outside(Verifier *v, NodeRef reader, NodeRef p, uint32_t loop)
{
    if (label_on(v, loop, p) < 0) {
        return refuse(v, reader, "reads a value outside of the loop that computes it again");
    }
    return true;
}

static bool check_use(Verifier *v, NodeRef reader, const Use *use)
{
    NodeRef p = use->node;
    const Nest *nest = v->nest;
    if (residence_is_read_in_place(nest->values[p].residence)) {
        return true;
    }
    if (v->leaf[p] == NEST_NONE) {
        return refuse(v, reader, "reads a value that is kept nowhere");
    }
    if (v->leaf[p] >= v->leaf[reader]) {
        return refuse(v, reader, "reads a value before it is computed");
    }
    for (uint32_t loop = nest->items[v->leaf[p]].parent; loop != NEST_NONE;
         loop = nest->items[loop].parent) {
        bool ok = is_around(nest, loop, v->leaf[reader]) ? check_shared(v, reader, use, loop)
                                                         : check_outside(v, reader, p, loop);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* ---- where values live ---- */

/* Homes once more: the innermost loop around the writer, not counting loops the writer folds
 * over or that stand in these, that is around all readers; of what is added up in one place the outermost. */
static uint32_t *find_homes(const Verifier *v, const bool *kept)
{
    const Nest *nest = v->nest;
    uint32_t *alloc_loop = ARENA_ARRAY(v->arena, v->g->nodes.n, uint32_t);
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        uint32_t around = v->leaf[n] == NEST_NONE ? NEST_NONE : nest->items[v->leaf[n]].parent;
        alloc_loop[n] = around;
        for (uint32_t p = around; p != NEST_NONE; p = nest->items[p].parent) {
            if (is_reduced(graph_node(v->g, n), label_on(v, p, n))) {
                alloc_loop[n] = nest->items[p].parent;
            }
        }
        alloc_loop[n] = kept[n] ? NEST_NONE : alloc_loop[n];
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef r = nest->items[k].node;
        for (uint32_t i = 0; !nest_is_loop(&nest->items[k]) && i < v->uses[r].list.n; i++) {
            uint32_t *h = &alloc_loop[v->uses[r].list.at[i].node];
            while (*h != NEST_NONE && !is_around(nest, *h, k)) {
                *h = nest->items[*h].parent;
            }
        }
    }
    for (uint32_t k = 0; k < 2 * nest->n_items; k++) { /* to the last, and back */
        NodeRef n = nest->items[k % nest->n_items].node;
        if (!nest_is_loop(&nest->items[k % nest->n_items])) {
            uint32_t *last = &alloc_loop[nest_place_of(nest, n)];
            bool outer = *last == NEST_NONE ||
                         (alloc_loop[n] != NEST_NONE && is_around(nest, *last, alloc_loop[n]));
            *last = outer ? *last : alloc_loop[n];
            alloc_loop[n] = *last;
        }
    }
    return alloc_loop;
}

static bool reads_parameter(const Verifier *v, NodeRef n, uint32_t param, const Use **use)
{
    for (uint32_t i = 0; i < v->uses[n].list.n; i++) {
        *use = &v->uses[n].list.at[i];
        const Node *p = graph_node(v->g, (*use)->node);
        if (p->op == OP_INPUT && p->param == param) {
            return true;
        }
    }
    return false;
}

/* An inout argument is written by `n`, or what that begins with, element by element, after everybody else has read it. */
static bool check_overwritten(Verifier *v, NodeRef n, uint32_t param)
{
    uint32_t top = v->leaf[n];
    const Use *use = NULL;
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        bool first = !nest_is_loop(&v->nest->items[k]) && k < top;
        top = first && nest_place_of(v->nest, v->nest->items[k].node) == n ? k : top;
    }
    NodeRef writer = v->nest->items[top].node;
    while (v->nest->items[top].parent != NEST_NONE) {
        top = v->nest->items[top].parent;
    }
    for (uint32_t k = top; k < v->nest->n_items; k++) {
        const NestItem *item = &v->nest->items[k];
        if (!nest_is_loop(item) && item->node != writer &&
            reads_parameter(v, item->node, param, &use)) {
            return refuse(v, n, "overwrites a parameter that is still read");
        }
    }
    const Node *node = graph_node(v->g, writer);
    for (uint32_t i = 0; i < v->uses[writer].list.n; i++) {
        use = &v->uses[writer].list.at[i];
        const Node *p = graph_node(v->g, use->node);
        bool own = p->op == OP_INPUT && p->param == param;
        bool same = (node_is_expression(node) || use->apart) &&
                    use->access.rank == node->rank &&
                    !v->nest->items[v->leaf[writer]].recompute;
        for (uint32_t d = 0; own && same && d < node->rank; d++) {
            same =
                use->access.index[d].label == node->out[d] && use->access.index[d].offset == 0;
        }
        if (own && !same) {
            return refuse(v, n, "overwrites a parameter while it reads it elsewhere");
        }
    }
    return true;
}

/* Results that no leaf writes are delivered last, plain ones before inout ones. */
static bool check_delivered(Verifier *v, bool *kept)
{
    Residence *residence = ARENA_ARRAY(v->arena, v->g->nodes.n, Residence);
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        residence[n] = v->nest->values[n].residence;
    }
    for (uint32_t k = 0; k < v->g->results.n; k++) {
        NodeRef n = v->g->results.at[k].node;
        const NestValue *value = &v->nest->values[n];
        if (value->residence == RESIDE_RESULT && value->result == (int32_t)k) {
            continue;
        }
        if (value->residence == RESIDE_NONE) {
            return refuse(v, n, "is a result and not kept");
        }
        kept[n] = true;
        UseList late = {0};
        result_uses(v->arena, v->g, residence, n, &late);
        for (uint32_t i = 0; i < late.list.n; i++) {
            NodeRef p = late.list.at[i].node;
            const Node *leaf = graph_node(v->g, p);
            kept[p] = true;
            for (uint32_t r = 0; leaf->op == OP_INPUT && r < v->g->results.n; r++) {
                NodeRef writer = v->g->results.at[r].node;
                if (v->g->results.at[r].param == (int32_t)leaf->param && r != k &&
                    v->nest->values[writer].result == (int32_t)r) {
                    return refuse(v, writer, "overwrites a parameter that is still read");
                }
            }
        }
    }
    return true;
}

/* Are the blocks of `n` and `p`, which live in the same body, cut alike? */
static bool is_same_block(const Verifier *v, NodeRef n, NodeRef p, uint32_t alloc_loop)
{
    const Node *a = graph_node(v->g, n), *b = graph_node(v->g, p);
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = dim_eq(a->shape[d], b->shape[d]);
        for (uint32_t loop = alloc_loop; same && loop != NEST_NONE;
             loop = v->nest->items[loop].parent) {
            NestHalo x = nest_halo(v->nest, loop, n), y = nest_halo(v->nest, loop, p);
            same = (label_on(v, loop, n) == a->out[d]) == (label_on(v, loop, p) == b->out[d]) &&
                   x.from == y.from && x.count == y.count;
        }
    }
    return same;
}

/* Does `n` read of `p` the element that it writes, and no other? */
static bool check_own_element(const Verifier *v, NodeRef n, const Use *use)
{
    const Node *node = graph_node(v->g, n);
    bool same = true;
    for (uint32_t d = 0; same && d < use->access.rank; d++) {
        Index index = use->access.index[d];
        same = index.label == node->out[d] && index.offset == 0;
    }
    return same;
}

/* What `n` begins with is in its place if, and only if, nothing else reads it. */
static bool check_begin(Verifier *v, NodeRef n, const bool *kept)
{
    const Nest *nest = v->nest;
    NodeRef x = node_init(graph_node(v->g, n));
    if (x == NODE_NONE || v->leaf[x] == NEST_NONE) {
        return true;
    }
    bool into = nest->values[x].residence == RESIDE_INTO;
    if (into != (v->reads[x] == 1 && !kept[x] && nest->values[x].result < 0 &&
                 nest_goes_into(graph_node(v->g, n), graph_node(v->g, x)))) {
        return refuse(v, x,
                      into ? "is in the place of a sum, and read elsewhere"
                           : "is read at the beginning of a sum alone, and not there");
    }
    return !into || !(nest->items[v->leaf[x]].recompute || nest->items[v->leaf[n]].recompute) ||
           refuse(v, x, "is computed again, and added up");
}

/* `n` takes the place of `p`, whose last reader it is, element by element. Where loops of the
 * body of their allocation loop are around it, it does so over all of their iterations: nothing else in
 * there may touch the place. */
static bool check_in_place(Verifier *v, NodeRef n, const bool *kept, const uint32_t *homes)
{
    const Nest *nest = v->nest;
    NodeRef p = nest->values[n].in_place;
    if (p == NODE_NONE || nest->values[n].residence == RESIDE_INTO) {
        return true;
    }
    Residence r = nest->values[n].residence;
    if (p >= v->g->nodes.n || v->leaf[p] == NEST_NONE || v->leaf[p] >= v->leaf[n] || kept[p] ||
        (r != RESIDE_TILE && r != RESIDE_WORKSPACE) || nest->values[p].residence != r ||
        !node_is_expression(graph_node(v->g, n)) || homes[p] != homes[n] ||
        !is_same_block(v, n, p, homes[n])) {
        return refuse(v, n, "takes the place of a value whose block is not like its own");
    }
    uint32_t first = v->leaf[n];
    while (nest->items[first].parent != homes[n]) {
        first = nest->items[first].parent;
    }
    if (v->leaf[p] > first) {
        return refuse(v, n, "takes the place of a value that its loop still computes");
    }
    const Readers *of = &v->readers[p];
    if (of->takers > 1) {
        return refuse(v, n, "takes a place that another value takes");
    }
    uint32_t last = of->last == v->leaf[n] ? of->before : of->last;
    bool read = last != NEST_NONE && last >= first;
    for (uint32_t i = 0; i < v->uses[n].list.n; i++) {
        const Use *use = &v->uses[n].list.at[i];
        read |= use->node == p && !check_own_element(v, n, use);
    }
    return !read || refuse(v, n, "takes the place of a value that is still read");
}

static void find_readers(Verifier *v)
{
    v->readers = ARENA_ARRAY(v->arena, v->g->nodes.n, Readers);
    v->reads = ARENA_ARRAY(v->arena, v->g->nodes.n, uint32_t);
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        v->readers[n] = (Readers){NEST_NONE, NEST_NONE, 0};
    }
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        NodeRef n = v->nest->items[k].node;
        if (nest_is_loop(&v->nest->items[k])) {
            continue;
        }
        NodeRef place = v->nest->values[n].in_place;
        if (v->nest->values[n].residence != RESIDE_INTO && place < v->g->nodes.n) {
            v->readers[place].takers++;
        }
        for (uint32_t i = 0; i < v->uses[n].list.n; i++) {
            Readers *of = &v->readers[v->uses[n].list.at[i].node];
            v->reads[v->uses[n].list.at[i].node]++;
            if (of->last != k) {
                of->before = of->last;
                of->last = k;
            }
        }
    }
}

/* The outermost loop around the leaf that it folds over. */
static uint32_t folded_over(const Verifier *v, uint32_t leaf)
{
    NodeRef n = v->nest->items[leaf].node;
    uint32_t found = NEST_NONE;
    for (uint32_t p = v->nest->items[leaf].parent; p != NEST_NONE;
         p = v->nest->items[p].parent) {
        found = is_reduced(graph_node(v->g, n), label_on(v, p, n)) ? p : found;
    }
    return found;
}

/* Is the value a sum over both of what stays with the two exchanged: a fold of one value, or a product that is no matrix
 * product? Those come in equal tiles, the first of which is the diagonal's. */
static bool is_weighted(const Verifier *v, NodeRef n, uint32_t outer, uint32_t inner)
{
    const Node *node = graph_node(v->g, n);
    int32_t a = label_on(v, outer, n), b = label_on(v, inner, n);
    bool same = false;
    for (uint32_t x = 0; a >= 0 && b >= 0 && x < node->n_exchanges; x++) {
        same = same || node->exchange[x].to[a] == (uint32_t)b;
    }
    for (uint32_t d = 0; node->op == OP_EINSUM && d < node->rank; d++) {
        for (uint32_t i = 0; i < node->n_operands; i++) {
            same = same && access_has_label(&node->access[i], node->out[d]);
        }
    }
    return same && v->nest->items[outer].tile == v->nest->items[inner].tile;
}

/* Does the value stay, up to its sign, with its indices of the two loops exchanged, and is it in a place of its own? */
static bool check_both(Verifier *v, NodeRef n, uint32_t outer, uint32_t inner)
{
    const Node *node = graph_node(v->g, n);
    const NestValue *value = &v->nest->values[n];
    int32_t a = label_on(v, outer, n), b = label_on(v, inner, n);
    const uint32_t *to = NULL; /* of the generator that lowering takes, the first */
    for (uint32_t x = 0; to == NULL && x < node->n_generators; x++) {
        for (uint32_t d = 0; a >= 0 && b >= 0 && d < node->rank; d++) {
            uint32_t e = node->generator[x].to[d];
            to = node->out[d] == a && node->out[e] == b ? node->generator[x].to : to;
        }
    }
    if (to == NULL) {
        return refuse(v, n, "is not its own mirror image and stored as such");
    }
    for (uint32_t p = v->nest->items[inner].parent; p != NEST_NONE;
         p = v->nest->items[p].parent) {
        for (uint32_t d = 0; d < node->rank; d++) {
            if (p != outer && to[d] != d && label_on(v, p, n) == node->out[d]) {
                return refuse(v, n, "has a mirror image in other iterations of a loop");
            }
        }
    }
    uint32_t fold = folded_over(v, v->leaf[n]);
    if (fold != NEST_NONE && !is_around(v->nest, inner, fold)) {
        return refuse(v, n,
                      "is folded over a loop around, and stored at the mirrored place inside");
    }
    for (uint32_t k = outer + 1; k < v->nest->items[outer].end; k++) {
        NodeRef r = v->nest->items[k].node;
        bool between = !nest_is_loop(&v->nest->items[k]) && !is_around(v->nest, inner, k);
        for (uint32_t i = 0; between && i < v->uses[r].list.n; i++) {
            if (v->uses[r].list.at[i].node == n) {
                return refuse(v, n, "is read before all of it is stored at the mirrored place");
            }
        }
    }
    bool update = value->result >= 0 && v->g->results.at[value->result].param >= 0;
    if (update || value->in_place != NODE_NONE || v->readers[n].takers > 0) {
        return refuse(v, n, "is stored at the mirrored place, where another value is");
    }
    return true;
}

/* What leaves a loop over pairs is such a sum, or says `both`; nothing else says so. */
static bool check_pair_leaves(Verifier *v, uint32_t leaf, uint32_t alloc_loop)
{
    const Nest *nest = v->nest;
    NodeRef n = nest->items[leaf].node;
    bool kept = nest->values[n].residence != RESIDE_TILE, both = false;
    for (uint32_t k = nest->items[leaf].parent; k != NEST_NONE && (kept || k != alloc_loop);
         k = nest->items[k].parent) {
        uint32_t outer = nest->items[k].from - 1;
        if (nest->items[k].from == 0) {
            continue;
        }
        if (nest->items[leaf].mirror) {
            both = true;
            if (!check_both(v, n, outer, k)) {
                return false;
            }
        } else if (!is_weighted(v, n, outer, k)) {
            return refuse(v, n, "leaves a loop over pairs and is no sum over these");
        }
    }
    return both || !nest->items[leaf].mirror ||
           refuse(v, n, "leaves no loop over pairs and is said to be stored twice");
}

static bool check_values(Verifier *v)
{
    bool *kept = ARENA_ARRAY(v->arena, v->g->nodes.n, bool);
    if (!check_delivered(v, kept)) {
        return false;
    }
    const uint32_t *homes = find_homes(v, kept);
    find_readers(v);
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        if (nest_is_loop(&v->nest->items[k])) {
            continue;
        }
        NodeRef n = v->nest->items[k].node;
        const NestValue *value = &v->nest->values[n];
        uint32_t alloc_loop = homes[n];
        if (value->item != k || value->alloc_loop != alloc_loop) {
            return refuse(v, n, "does not live where its readers are");
        }
        if (!check_pair_leaves(v, k, alloc_loop)) {
            return false;
        }
        if (value->fold != folded_over(v, k)) {
            return refuse(v, n, "does not begin its fold where its loops do");
        }
        if (v->nest->items[k].recompute && (kept[n] || value->residence == RESIDE_RESULT)) {
            return refuse(v, n, "is a result, which a loop without its axis may never compute");
        }
        if (value->residence == RESIDE_WORKSPACE && alloc_loop != NEST_NONE) {
            return refuse(v, n, "is in memory though all that reads it shares a loop with it");
        }
        if (!check_in_place(v, n, kept, homes) || !check_begin(v, n, kept)) {
            return false;
        }
        const char *problem = nest_halo_problem(v->arena, v->nest, v->uses, k);
        if (problem != NULL) {
            return refuse(v, n, problem);
        }
        const Result *result = value->result < 0 ? NULL : &v->g->results.at[value->result];
        int32_t param = result == NULL || result->node != n ? -1 : result->param;
        if (param >= 0 && !check_overwritten(v, n, (uint32_t)param)) {
            return false;
        }
    }
    return true;
}

static bool check_online(Verifier *v)
{
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        NodeRef n = 0;
        const NestItem *item = &v->nest->items[k];
        const char *problem =
            !item->online ? NULL
            : !nest_is_loop(item)
                ? "is no loop and called online"
                : nest_online_problem(v->arena, v->nest, v->uses, v->leaf, k, &n);
        if (problem != NULL) {
            return refuse(v, n, problem);
        }
    }
    return true;
}

static bool verify(Verifier *v)
{
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        v->leaf[n] = NEST_NONE;
    }
    if (!check_axes(v) || !check_links(v) || !check_depths(v)) {
        return false;
    }
    Residence *residence = ARENA_ARRAY(v->arena, v->g->nodes.n, Residence);
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        residence[n] = v->nest->values[n].residence;
        if (!check_residence(v, n)) {
            return false;
        }
    }
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        if (residence_is_stored(residence[n])) {
            node_uses(v->arena, v->g, residence, n, &v->uses[n]);
        }
    }
    for (uint32_t k = 0; k < v->nest->n_items; k++) {
        NodeRef n = v->nest->items[k].node;
        if (nest_is_loop(&v->nest->items[k])) {
            continue;
        }
        const char *problem = nest_schedule_problem(v->arena, v->nest, &v->uses[n], k);
        if (!check_leaf(v, k) || (problem != NULL && !refuse(v, n, problem))) {
            return false;
        }
        for (uint32_t i = 0; i < v->uses[n].list.n; i++) {
            if (!check_use(v, n, &v->uses[n].list.at[i])) {
                return false;
            }
        }
    }
    return check_values(v) && check_online(v);
}

static bool verify_one(Ctx *ctx, const Nest *nest, const char *stage, uint32_t depth)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Verifier v = {.ctx = ctx,
                  .arena = &scratch,
                  .nest = nest,
                  .g = nest->graph,
                  .stage = stage,
                  .depth = depth};
    v.uses = ARENA_ARRAY(&scratch, nest->graph->nodes.n, UseList);
    v.leaf = ARENA_ARRAY(&scratch, nest->graph->nodes.n, uint32_t);
    bool ok = verify(&v);
    arena_release(&scratch);
    return ok;
}

bool nest_verify(Ctx *ctx, const Nest *nest, const char *stage)
{
    const char *problem = nest->n_sizes == 0 ? NULL : nest_sizes_problem(nest);
    bool ok = problem == NULL;
    if (!ok) {
        diag_error(&ctx->diags, E_DUMP, nest->graph->span, "%s: %s", stage, problem);
    }
    ok = ok && nest_recurrences_hold(ctx, nest, stage);
    for (uint32_t k = 0; ok && k < nest_count(nest);
         k++) { /* a block of a kernel around each */
        ok = verify_one(ctx, nest_at(nest, k), stage, NEST_DEPTH - (nest->n_sizes > 0 ? 1 : 0));
    }
    return ok;
}
