/* SPDX-License-Identifier: Apache-2.0 */
/* Moves:
 *   tile    a loop gets a longer or shorter tile
 *   tiles   two loops over equal extents get the same tile, where that lets pairs come once
 *   unwrap  a loop goes, its body takes its place
 *   wrap    a loop is put around a run of neighbours that have an axis in common, or around one
 *           whose statement cannot read whole lines of both operands; position by position, or in
 *           tiles, since what lies between may be dearer than both
 *   fuse    two neighbours lose their outer loops and get common ones around both
 *   swap    two loops directly inside each other change places
 *   both    a value that is its own mirror image, with what is before it, gets loops over both labels
 *   pairs   a sum over pairs of equal terms, with what it reads, gets loops over both labels
 *   order   two neighbours that do not read each other change places */
#include "nest/moves.h"

#include "nest/axes.h"
#include "nest/contraction.h"
#include "nest/place.h"

/* Runs of neighbours longer than this are wrapped only as a whole body. */
#define RUN_MOST 8
#define STRIP    512 /* positions that an instruction of a systolic machine takes */

typedef struct Moves {
    Arena *scratch, *keep;
    const NestFacts *f;
    const Tree *t;
    void (*take)(void *, const Tree *);
    void *self;
} Moves;

static uint32_t end_of(const Tree *t, uint32_t k)
{
    uint32_t end = k + 1;
    while (end < t->list.n && t->list.at[end].depth > t->list.at[k].depth) {
        end++;
    }
    return end;
}

/* Appends items [from, to) with `by` added to their depths. */
static void copy_items(Arena *arena, Tree *out, const Tree *t, uint32_t from, uint32_t to,
                       int32_t by)
{
    for (uint32_t k = from; k < to; k++) {
        Draft d = t->list.at[k];
        d.depth = (uint32_t)((int32_t)d.depth + by);
        vec_push(arena, &out->list, d);
    }
}

static void give(Moves *m, const Tree *t)
{
    m->take(m->self, t);
}

/* ---- tile ---- */

static void move_tile(Moves *m, uint32_t k)
{
    const Draft *d = &m->t->list.at[k];
    int64_t extent = nest_typical(m->f->g, d->axis.extent);
    int64_t tiles[] = {d->tile / 4, d->tile / 2, d->tile * 2, d->tile * 4, d->tile * 16, 1};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        int64_t tile = tiles[i];
        if (tile < 1 || tile == d->tile || tile >= extent) {
            continue;
        }
        Tree out = {0};
        copy_items(m->scratch, &out, m->t, 0, m->t->list.n, 0);
        out.list.at[k].tile = tile;
        give(m, &out);
    }
}

/* Loops over pairs have the same tile: both change. */
static void move_tiles(Moves *m, uint32_t k)
{
    const Draft *outer = &m->t->list.at[k];
    int64_t extent = nest_typical(m->f->g, outer->axis.extent);
    uint32_t end = nest_has_pairs(m->f) ? end_of(m->t, k) : 0;
    for (uint32_t i = k + 1; i < end; i++) {
        const Draft *inner = &m->t->list.at[i];
        if (!inner->is_loop || !dim_eq(inner->axis.extent, outer->axis.extent)) {
            continue;
        }
        int64_t tiles[] = {outer->tile / 2, outer->tile * 2, outer->tile};
        for (size_t x = 0; x < sizeof tiles / sizeof tiles[0]; x++) {
            if (tiles[x] >= 1 && tiles[x] < extent) {
                Tree out = {0};
                copy_items(m->scratch, &out, m->t, 0, m->t->list.n, 0);
                out.list.at[k].tile = out.list.at[i].tile = tiles[x];
                give(m, &out);
            }
        }
    }
}

/* ---- unwrap, swap ---- */

static void move_unwrap(Moves *m, uint32_t k)
{
    uint32_t end = end_of(m->t, k);
    Tree out = {0};
    copy_items(m->scratch, &out, m->t, 0, k, 0);
    copy_items(m->scratch, &out, m->t, k + 1, end, -1);
    copy_items(m->scratch, &out, m->t, end, m->t->list.n, 0);
    give(m, &out);
}

/* The two loops in the other order; each with its tile, and then with the other one's. */
static void move_swap(Moves *m, uint32_t k)
{
    const Draft *outer = &m->t->list.at[k];
    if (k + 1 >= m->t->list.n || !m->t->list.at[k + 1].is_loop ||
        m->t->list.at[k + 1].depth != outer->depth + 1 ||
        end_of(m->t, k) != end_of(m->t, k + 1)) {
        return;
    }
    Tree out = {0};
    copy_items(m->scratch, &out, m->t, 0, m->t->list.n, 0);
    Draft inner = out.list.at[k + 1];
    out.list.at[k + 1] = out.list.at[k];
    out.list.at[k + 1].depth++;
    inner.depth--;
    out.list.at[k] = inner;
    give(m, &out);
    int64_t most = nest_typical(m->f->g, inner.axis.extent),
            most_inside = nest_typical(m->f->g, outer->axis.extent);
    if (inner.from == 0 && inner.tile != outer->tile && outer->tile < most &&
        inner.tile < most_inside) {
        Tree too = {0};
        copy_items(m->scratch, &too, &out, 0, out.list.n, 0);
        too.list.at[k].tile = outer->tile;
        too.list.at[k + 1].tile = inner.tile;
        give(m, &too);
    }
}

/* ---- order ---- */

static bool reads_from(const Moves *m, uint32_t reader, uint32_t reader_end, uint32_t writer,
                       uint32_t writer_end)
{
    for (uint32_t r = reader; r < reader_end; r++) {
        const Draft *d = &m->t->list.at[r];
        const UseList *u = d->is_loop ? NULL : &m->f->uses[d->node];
        for (uint32_t i = 0; u != NULL && i < u->list.n; i++) {
            for (uint32_t w = writer; w < writer_end; w++) {
                if (!m->t->list.at[w].is_loop && m->t->list.at[w].node == u->list.at[i].node) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void move_order(Moves *m, uint32_t k)
{
    uint32_t next = end_of(m->t, k);
    if (next >= m->t->list.n || m->t->list.at[next].depth != m->t->list.at[k].depth) {
        return;
    }
    uint32_t end = end_of(m->t, next);
    if (reads_from(m, next, end, k, next)) {
        return;
    }
    Tree out = {0};
    copy_items(m->scratch, &out, m->t, 0, k, 0);
    copy_items(m->scratch, &out, m->t, next, end, 0);
    copy_items(m->scratch, &out, m->t, k, next, 0);
    copy_items(m->scratch, &out, m->t, end, m->t->list.n, 0);
    give(m, &out);
}

/* ---- wrap ---- */

/* Nodes of items [from, to), ascending. */
static NodeRef *nodes_of(Moves *m, uint32_t from, uint32_t to, uint32_t *n)
{
    NodeRef *nodes = ARENA_ARRAY(m->scratch, to - from, NodeRef);
    *n = 0;
    for (uint32_t k = from; k < to; k++) {
        const Draft *d = &m->t->list.at[k];
        uint32_t at = *n;
        if (d->is_loop) {
            continue;
        }
        for (; at > 0 && nodes[at - 1] > d->node; at--) {
            nodes[at] = nodes[at - 1];
        }
        nodes[at] = d->node;
        (*n)++;
    }
    return nodes;
}

/* Has a loop at, around or inside items [from, to), other than in `except`, a label of the axis
 * already, or is there nothing to cut? */
static bool is_cut(const Moves *m, uint32_t from, uint32_t to, const bool *except,
                   const NestAxis *axis)
{
    if (nest_typical(m->f->g, axis->extent) <= 1) {
        return true;
    }
    for (uint32_t k = 0; k < m->t->list.n; k++) {
        const Draft *d = &m->t->list.at[k];
        if (!d->is_loop || (except != NULL && except[k])) {
            continue;
        }
        uint32_t end = end_of(m->t, k);
        bool around = k < from && end >= to, inside = k >= from && k < to;
        for (uint32_t i = 0; (around || inside) && i < axis->n; i++) {
            if (nest_axis_label(&d->axis, axis->node[i]) == axis->label[i]) {
                return true;
            }
        }
    }
    return false;
}

static int64_t first_tile(const Moves *m, const NestAxis *axis, int64_t want)
{
    int64_t extent = nest_typical(m->f->g, axis->extent), tile = want;
    while (tile > 1 && tile >= extent) {
        tile /= 2;
    }
    return tile;
}

static void wrap_with(Moves *m, uint32_t from, uint32_t to, const NestAxis *axis, int64_t tile)
{
    Tree out = {0};
    uint32_t depth = m->t->list.at[from].depth;
    copy_items(m->scratch, &out, m->t, 0, from, 0);
    tree_loop(m->scratch, &out, depth, *axis, tile);
    copy_items(m->scratch, &out, m->t, from, to, 1);
    copy_items(m->scratch, &out, m->t, to, m->t->list.n, 0);
    give(m, &out);
}

static bool is_deep(const Moves *m, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k < to; k++) {
        if (m->t->list.at[k].depth + 1 >= NEST_DEPTH) {
            return true;
        }
    }
    return false;
}

static void wrap_run(Moves *m, uint32_t from, uint32_t to)
{
    const NestAxis *axes = NULL;
    uint32_t n_nodes = 0;
    NodeRef *nodes = nodes_of(m, from, to, &n_nodes);
    bool one = n_nodes == 1;
    if (n_nodes == 0 || is_deep(m, from, to) ||
        (one && !contraction_crosses_lines(m->f, nodes[0]))) {
        return; /* a loop around one value is below the nest: the levels of its statement */
    }
    uint32_t n = nest_common_axes(m->keep, m->f, n_nodes, nodes, true, &axes);
    for (uint32_t x = 0; x < n; x++) {
        bool wanted = !one || nest_axis_is_folded(m->f->g, &axes[x]);
        if (wanted && !is_cut(m, from, to, NULL, &axes[x])) {
            wrap_with(m, from, to, &axes[x], first_tile(m, &axes[x], 16));
            wrap_with(m, from, to, &axes[x], first_tile(m, &axes[x], 128));
            wrap_with(m, from, to, &axes[x], 1);
        }
    }
}

static void move_wrap(Moves *m, uint32_t k)
{
    uint32_t to = k, count = 0;
    while (to < m->t->list.n && m->t->list.at[to].depth == m->t->list.at[k].depth &&
           count < RUN_MOST) {
        to = end_of(m->t, to);
        count++;
        wrap_run(m, k, to);
    }
}

/* ---- strip ---- */

/* Rows as long as one instruction takes, in place of shorter ones; what no longer fits is made and used in strips. */
static void move_strip(Moves *m, uint32_t k)
{
    const Draft *d = &m->t->list.at[k];
    if (!d->is_loop || d->tile >= STRIP || nest_typical(m->f->g, d->axis.extent) < STRIP) {
        return;
    }
    Tree longer = {0};
    copy_items(m->scratch, &longer, m->t, 0, m->t->list.n, 0);
    longer.list.at[k].tile = STRIP;
    Moves in = *m;
    in.t = &longer;
    for (uint32_t from = k + 1; from < end_of(m->t, k); from++) {
        uint32_t to = from + 1, depth = longer.list.at[from].depth;
        for (; to < longer.list.n && longer.list.at[to].depth == depth && to - from < RUN_MOST;
             to++) {
            const NestAxis *axes = NULL;
            uint32_t n_nodes = 0;
            NodeRef *nodes = nodes_of(&in, from, to + 1, &n_nodes);
            uint32_t n = n_nodes == to + 1 - from && !is_deep(&in, from, to + 1)
                             ? nest_common_axes(m->keep, m->f, n_nodes, nodes, true, &axes)
                             : 0;
            for (uint32_t x = 0; x < n; x++) {
                if (nest_typical(m->f->g, axes[x].extent) > STRIP &&
                    !is_cut(&in, from, to + 1, NULL, &axes[x])) {
                    wrap_with(&in, from, to + 1, &axes[x], STRIP);
                }
            }
        }
    }
}

/* ---- fuse ---- */

/* The items inside the loops directly around each other at `k`; the loops are marked. */
static uint32_t strip(const Moves *m, uint32_t k, bool *gone)
{
    uint32_t end = end_of(m->t, k);
    while (m->t->list.at[k].is_loop) {
        gone[k] = true;
        k++;
        if (!m->t->list.at[k].is_loop || end_of(m->t, k) != end) {
            break;
        }
    }
    return k;
}

/* Both neighbours without their outer loops, in loops over the axes of `chosen`. */
static void fuse_with(Moves *m, uint32_t k, uint32_t next, uint32_t end, const bool *gone,
                      uint32_t n, const NestAxis *const *chosen, int64_t want)
{
    Tree out = {0};
    uint32_t depth = m->t->list.at[k].depth;
    copy_items(m->scratch, &out, m->t, 0, k, 0);
    for (uint32_t x = 0; x < n; x++) {
        tree_loop(m->scratch, &out, depth + x, *chosen[x], first_tile(m, chosen[x], want));
    }
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t from = half == 0 ? k : next, to = half == 0 ? next : end, inner = from;
        while (inner < to && gone[inner]) {
            inner++;
        }
        copy_items(m->scratch, &out, m->t, inner, to,
                   (int32_t)n - (int32_t)(m->t->list.at[inner].depth - depth));
    }
    copy_items(m->scratch, &out, m->t, end, m->t->list.n, 0);
    give(m, &out);
}

static void move_fuse(Moves *m, uint32_t k)
{
    uint32_t next = end_of(m->t, k), n_nodes = 0, n_kept = 0, n_all = 0;
    if (next >= m->t->list.n || m->t->list.at[next].depth != m->t->list.at[k].depth) {
        return;
    }
    uint32_t end = end_of(m->t, next);
    bool *gone = ARENA_ARRAY(m->scratch, m->t->list.n, bool);
    (void)strip(m, k, gone);
    (void)strip(m, next, gone);
    const NestAxis *axes = NULL;
    NodeRef *nodes = nodes_of(m, k, end, &n_nodes);
    uint32_t n = nest_common_axes(m->keep, m->f, n_nodes, nodes, true, &axes);
    const NestAxis **kept = ARENA_ARRAY(m->scratch, n, const NestAxis *);
    const NestAxis **all = ARENA_ARRAY(m->scratch, n, const NestAxis *);
    for (uint32_t pass = 0; pass < 2; pass++) { /* folded axes innermost */
        for (uint32_t x = 0; x < n; x++) {
            bool folded = nest_axis_is_folded(m->f->g, &axes[x]);
            if (folded != (pass == 1) || is_cut(m, k, end, gone, &axes[x])) {
                continue;
            }
            all[n_all++] = &axes[x];
            if (!folded) {
                kept[n_kept++] = &axes[x];
            }
        }
    }
    if (n_all == 0 || m->t->list.at[k].depth + n_all + 8 >= NEST_DEPTH) {
        return;
    }
    static const int64_t wants[] = {1, 8, 64};
    for (size_t w = 0; w < sizeof wants / sizeof wants[0]; w++) {
        if (n_kept > 0) {
            fuse_with(m, k, next, end, gone, n_kept, kept, wants[w]);
        }
        if (n_all > n_kept) {
            fuse_with(m, k, next, end, gone, n_all, all, wants[w]);
        }
    }
    for (uint32_t x = 0; n_all > 1 && x < n_all; x++) {
        fuse_with(m, k, next, end, gone, 1, &all[x], 16);
        fuse_with(m, k, next, end, gone, 1, &all[x], 128);
    }
}

/* ---- pairs ---- */

/* The sum at `k`, and what it reads when that is the last leaf of the item before it, in loops of one tile over two labels
 * whose exchange leaves its terms; the other leaves of that item stand before them without loops. */
static void pairs_with(Moves *m, uint32_t from, uint32_t k, uint32_t first, const NestAxis *x,
                       const NestAxis *y, int64_t tile, int64_t inner)
{
    Tree out = {0};
    uint32_t depth = m->t->list.at[k].depth;
    copy_items(m->scratch, &out, m->t, 0, from, 0);
    for (uint32_t i = from; i < first; i++) {
        if (!m->t->list.at[i].is_loop) {
            tree_leaf(m->scratch, &out, depth, m->t->list.at[i].node, false);
        }
    }
    tree_loop(m->scratch, &out, depth, *x, tile);
    tree_loop(m->scratch, &out, depth + 1, *y, inner);
    for (uint32_t i = first; i <= k; i++) {
        tree_leaf(m->scratch, &out, depth + 2, m->t->list.at[i].node, false);
    }
    copy_items(m->scratch, &out, m->t, k + 1, m->t->list.n, 0);
    give(m, &out);
}

static const NestAxis *axis_with(const NestAxis *axes, uint32_t n, NodeRef node, uint32_t label)
{
    for (uint32_t x = 0; x < n; x++) {
        if (nest_axis_label(&axes[x], node) == (int32_t)label) {
            return &axes[x];
        }
    }
    return NULL;
}

/* Loops over two labels of one extent, and what is to be in them. */
typedef struct PairRun {
    uint32_t from, k,
        first; /* items [first, k], all leaves, in the loops, and those from `from` on without */
    const NestAxis *axes;
    uint32_t n_axes;
    bool *gone;
} PairRun;

static PairRun pair_run(Moves *m, uint32_t from, uint32_t k, uint32_t first)
{
    PairRun r = {.from = from, .k = k, .first = first};
    uint32_t n_nodes = 0;
    NodeRef *nodes = nodes_of(m, first, k + 1, &n_nodes);
    r.gone = ARENA_ARRAY(m->scratch, m->t->list.n, bool);
    for (uint32_t i = from; i < k; i++) {
        r.gone[i] = m->t->list.at[i].is_loop;
    }
    r.n_axes = nest_common_axes(m->keep, m->f, n_nodes, nodes, false, &r.axes);
    return r;
}

/* Over labels l and `to` of the last leaf; for tiles below the extent. */
static void pair_give(Moves *m, const PairRun *r, uint32_t l, uint32_t to, int64_t tile,
                      int64_t inner)
{
    NodeRef last = m->t->list.at[r->k].node;
    const NestAxis *x = axis_with(r->axes, r->n_axes, last, l);
    const NestAxis *y = axis_with(r->axes, r->n_axes, last, to);
    if (x != NULL && y != NULL && !is_cut(m, r->from, r->k + 1, r->gone, x) &&
        !is_cut(m, r->from, r->k + 1, r->gone, y) && tile < nest_typical(m->f->g, x->extent)) {
        pairs_with(m, r->from, r->k, r->first, x, y, tile, inner);
    }
}

static void pairs_of(Moves *m, uint32_t from, uint32_t k, uint32_t first)
{
    static const int64_t tiles[] = {1, 2, 4, 16, 64, 256};
    const Node *n = graph_node(m->f->g, m->t->list.at[k].node);
    PairRun r = pair_run(m, from, k, first);
    for (uint32_t e = 0; e < n->n_exchanges; e++) {
        for (uint32_t l = 0; l < n->n_labels; l++) {
            uint32_t to = n->exchange[e].to[l];
            for (size_t i = 0; to > l && i < sizeof tiles / sizeof tiles[0]; i++) {
                pair_give(m, &r, l, to, tiles[i], tiles[i]);
            }
        }
    }
}

/* Is item `i` a leaf beside the one at `k`, which reads it? */
static bool is_read_leaf(const Moves *m, uint32_t k, uint32_t i)
{
    const Draft *d = &m->t->list.at[i];
    return !d->is_loop && !d->recompute && d->depth == m->t->list.at[k].depth &&
           reads_from(m, k, k + 1, i, i + 1);
}

static void move_pairs(Moves *m, uint32_t k)
{
    const Draft *leaf = &m->t->list.at[k];
    if (leaf->is_loop || leaf->recompute || leaf->depth + 2 >= NEST_DEPTH ||
        graph_node(m->f->g, leaf->node)->n_exchanges == 0) {
        return;
    }
    bool alone = true;
    for (uint32_t i = 0; i < m->f->uses[leaf->node].list.n; i++) {
        NodeRef read = m->f->uses[leaf->node].list.at[i].node;
        alone = alone && m->f->residence[read] == RESIDE_ARGUMENT;
    }
    if (alone) { /* else what it reads is most of the work */
        pairs_of(m, k, k, k);
        return;
    }
    uint32_t from = k;
    while (from > 0 && m->t->list.at[from - 1].depth > leaf->depth) {
        from--;
    }
    from -= from > 0 && m->t->list.at[from - 1].depth == leaf->depth ? 1 : 0;
    bool any = from < k && m->t->list.at[from].depth == leaf->depth;
    for (uint32_t i = from; i < k; i++) {
        any = any && !m->t->list.at[i].recompute;
    }
    if (any && reads_from(m, k, k + 1, k - 1, k)) {
        uint32_t first = k - 1;
        pairs_of(m, from, k, first);
        while (first > 0 && is_read_leaf(m, k, first - 1)) {
            first--;
        }
        if (first + 1 < k) { /* all that it reads, leaf by leaf */
            pairs_of(m, first < from ? first : from, k, first);
        }
    }
}

/* ---- both ---- */

/* A value that is its own mirror image, alone or with up to BOTH leaves before it, in loops over the two labels: strips of one tile
 * from the diagonal on, since what a product packs is shared along them. */
#define BOTH 3

/* The innermost loop around item `k` that cuts label l of its node, or k. */
static uint32_t loop_around(const Moves *m, uint32_t k, int32_t l)
{
    uint32_t depth = m->t->list.at[k].depth;
    for (uint32_t i = k; i-- > 0 && depth > 0;) {
        const Draft *d = &m->t->list.at[i];
        if (d->is_loop && d->depth < depth) {
            depth = d->depth;
            if (nest_axis_label(&d->axis, m->t->list.at[k].node) == l) {
                return i;
            }
        }
    }
    return k;
}

/* The other label gets a loop of its own, inside of one that there is over the first. */
static void wrap_both(Moves *m, uint32_t k)
{
    const Node *n = graph_node(m->f->g, m->t->list.at[k].node);
    PairRun r = pair_run(m, k, k, k);
    for (uint32_t e = 0; e < n->n_generators; e++) {
        for (uint32_t d = 0; d < n->rank; d++) {
            uint32_t loop = loop_around(m, k, n->out[d]), to = n->generator[e].to[d];
            int64_t tile = m->t->list.at[loop].tile;
            const NestAxis *y =
                axis_with(r.axes, r.n_axes, m->t->list.at[k].node, (uint32_t)n->out[to]);
            if (loop < k && to != d && y != NULL && tile <= STRIP &&
                !is_cut(m, k, k + 1, NULL, y)) {
                wrap_with(m, k, k + 1, y, STRIP / tile * tile);
            }
        }
    }
}

static void move_both(Moves *m, uint32_t k)
{
    static const int64_t tiles[] = {32, 64, 96, 128, 192, 256};
    const Draft *leaf = &m->t->list.at[k];
    const Node *n = graph_node(m->f->g, leaf->node);
    if (leaf->is_loop || leaf->recompute || leaf->depth + 2 >= NEST_DEPTH ||
        n->n_generators == 0) {
        return;
    }
    wrap_both(m, k);
    for (uint32_t first = k; k - first <= BOTH; first--) {
        const Draft *before = &m->t->list.at[first];
        if (before->is_loop || before->recompute || before->depth != leaf->depth) {
            return;
        }
        PairRun r = pair_run(m, first, k, first);
        for (uint32_t e = 0; r.n_axes > 1 && e < n->n_generators; e++) {
            for (uint32_t d = 0; d < n->rank; d++) {
                uint32_t to = n->generator[e].to[d];
                for (size_t i = 0; to > d && i < sizeof tiles / sizeof tiles[0]; i++) {
                    pair_give(m, &r, (uint32_t)n->out[d], (uint32_t)n->out[to], tiles[i],
                              STRIP / tiles[i] * tiles[i]);
                }
            }
        }
        if (first == 0) {
            return;
        }
    }
}

void moves_each(Arena *scratch, Arena *keep, const NestFacts *f, const Tree *t,
                void (*take)(void *, const Tree *), void *self)
{
    Arena own;
    arena_init(&own, scratch->budget);
    Moves m = {&own, keep, f, t, take, self};
    static void (*const of_loops[])(Moves *, uint32_t) = {move_tile, move_unwrap, move_swap,
                                                          move_tiles};
    static void (*const of_items[])(Moves *, uint32_t) = {move_fuse, move_wrap, move_order,
                                                          move_pairs, move_both};
    for (uint32_t k = 0; k < t->list.n; k++) {
        for (size_t i = 0; i < sizeof of_items / sizeof of_items[0]; i++) {
            ArenaMark mark = arena_mark(&own);
            if (t->list.at[k].is_loop && i < sizeof of_loops / sizeof of_loops[0]) {
                of_loops[i](&m, k);
            }
            of_items[i](&m, k);
            arena_reset(&own, mark);
        }
    }
    arena_release(&own);
}

void moves_strips(Arena *scratch, Arena *keep, const NestFacts *f, const Tree *t,
                  void (*take)(void *, const Tree *), void *self)
{
    Arena own;
    arena_init(&own, scratch->budget);
    Moves m = {&own, keep, f, t, take, self};
    for (uint32_t k = 0; k < t->list.n; k++) {
        move_strip(&m, k);
    }
    arena_release(&own);
}
