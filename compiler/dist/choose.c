/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels are cut, each over an axis of a grid of ranks: all choices of up to three classes are priced, for 64 ranks and typical extents. How many
 * parts an axis has is for each call to say (runtime/dist/choose.c). The choice decides in which order sums are added, so it must not depend on the
 * ranks of a call. */
#include <math.h>
#include <string.h>

#include "dist/parts.h"

/* A rank is a node of a cluster of today: multiply-adds, bytes from others, bytes of its memory, seconds of a call. */
#define FLOPS   1.25e12
#define NETWORK 12.5e9
#define MEMORY  1e11
#define CALL    1e-6
#define RANKS   64.0

/* Axes of a grid, at most. */
#define GRID_AXES 3u

/* More classes than this are not tried, the first in the order of the program. */
#define TRIED 24u

/* Times the time of the cheapest choice; and what takes less is not worth to be weighed, in seconds. */
#define LITTLE_MORE 1.25
#define SHORT       1e-3

/* So many of the next best choices are looked at, and told of. */
#define OTHERS 6u
#define TOLD   2u

typedef struct Pricing {
    const Classes *c;
    const DistPlan *plan;
    const Choice *x;
} Pricing;

static double positions(const Pricing *p, Dim d)
{
    return (double)dim_typical(&p->c->g->dims, d);
}

/* Ranks along each of so many axes. */
static double along(uint32_t n_axes)
{
    return n_axes < 2 ? RANKS : n_axes == 2 ? 8 : n_axes == 3 ? 4 : 2;
}

/* Into how many parts a cut, or none, divides positions that a rank has: of mates half of all pairs are dealt. */
static double parts(const Pricing *p, int32_t cut)
{
    if (cut < 0) {
        return 1;
    }
    double ranks = along(p->x->n_grid);
    if (p->x->group[cut] > 0) { /* of all cuts of slices but the first ranks have most leaves */
        double leaves = p->x->leaves[cut];
        return p->x->group[cut] != (uint32_t)cut + 1 ? 1 : leaves < ranks ? leaves : ranks;
    }
    double n = positions(p, p->c->extent[p->x->root[cut]]);
    bool paired = p->x->mate[cut] > 0;
    double most = paired ? n * (n + 1) / 2 : n, used = ranks < most ? ranks : most;
    used = used < 1 ? 1 : used;
    return paired ? sqrt(2 * used) : used;
}

/* What a leaf computes of a node that does not have all labels of its slices, others compute again; what has none is computed once. */
static double slice_shares(const Pricing *p, uint32_t i, NodeRef r)
{
    double all = slices_all(p->x, i), own = slices_told_apart(p->c, p->x, i, r);
    double ranks = along(p->x->n_grid) < all ? along(p->x->n_grid) : all;
    return own > 1 ? own * ranks / all : 1;
}

/* How many ranks share the labels of a node. */
static double shares(const Pricing *p, NodeRef r)
{
    double n = 1;
    for (uint32_t l = 0; l < graph_node(p->c->g, r)->n_labels; l++) {
        int32_t cut = choice_cut(p->x, class_of(p->c, r, (int32_t)l));
        n *= cut >= 0 && p->x->group[cut] > 0 ? 1 : parts(p, cut);
    }
    for (uint32_t i = 0; i < p->x->n; i++) {
        n *= p->x->group[i] == i + 1 ? slice_shares(p, i, r) : 1;
    }
    return n;
}

/* Parts in which dimension d of an argument lies. */
static double lies_in(const Pricing *p, const DistArg *arg, uint32_t d)
{
    double n = 1;
    for (uint32_t i = 0; i < arg->n_pieces; i++) {
        n *= arg->piece[i].dim == d ? along(p->plan->n_axes) : 1;
    }
    return n;
}

static double count(const Pricing *p, const Node *n)
{
    return typical_positions(p->c->g, n->n_labels, n->extent);
}

/* Bytes that a rank lacks of an array of which dimension d has the cut want[d] and lies as `arg` says: blocks of both lie within each other. */
static double lacks(const Pricing *p, const DistArg *arg, uint32_t rank, const Dim *shape,
                    DType t, const int32_t *want)
{
    double bytes = (double)dtype_bytes(t), has = 1;
    for (uint32_t d = 0; d < rank; d++) {
        double wanted = parts(p, want[d]), lies = lies_in(p, arg, d);
        bool paired = want[d] >= 0 && p->x->mate[want[d]] > 0;
        bytes *= positions(p, shape[d]) / wanted;
        has *= paired ? 1 / lies : lies > wanted ? wanted / lies : 1;
    }
    return bytes * (1 - has);
}

/* Seconds to bring operand k of node n, which is an argument. */
static double read_time(const Pricing *p, NodeRef r, uint32_t k)
{
    const Node *n = graph_node(p->c->g, r), *o = graph_node(p->c->g, n->operand[k]);
    const Param *param = &p->c->g->params.at[o->param];
    int32_t want[RANK_LIMIT];
    for (uint32_t d = 0; d < param->rank; d++) {
        uint32_t root = param->collapsed != NULL ? UINT32_MAX : class_read(p->c, r, k, d);
        want[d] = root == UINT32_MAX ? -1 : choice_cut(p->x, root);
    }
    return lacks(p, &p->plan->arg[o->param], param->rank, param->shape, o->dtype, want) /
           NETWORK;
}

/* Is the node a large sum that is nothing but a result? Then each rank keeps a part of it. */
static bool is_spread(const Pricing *p, NodeRef r, double bytes)
{
    const Graph *g = p->c->g;
    if (bytes <= LARGE_BYTES || partial_over(p->c, p->x, r) == 0) {
        return false;
    }
    for (NodeRef x = r + 1; x < g->nodes.n; x++) {
        const Node *n = graph_node(g, x);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            if (n->operand[k] == r) {
                return false;
            }
        }
    }
    return true;
}

/* Seconds for what a node sums over cut labels: a result for each leaf, and one for each rank that moves. */
static double partial_time(const Pricing *p, NodeRef r)
{
    const Node *n = graph_node(p->c->g, r);
    uint32_t over = partial_over(p->c, p->x, r);
    if (over == 0) {
        return 0;
    }
    double all = node_bytes(p->c->g, n), bytes = all, calls = 1;
    for (uint32_t d = 0; d < n->rank; d++) {
        bytes /= parts(p, choice_cut(p->x, class_of(p->c, r, n->out[d])));
    }
    for (uint32_t i = 0; i < p->x->n; i++) {
        double leaves = all > LARGE_BYTES ? LEAVES_LARGE : LEAVES;
        double most = positions(p, p->c->extent[p->x->root[i]]);
        leaves = most < leaves ? most : leaves;
        if ((over >> i & 1) != 0 && p->x->group[i] > 0) {
            double own = slices_all(p->x, i) / along(p->x->n_grid);
            calls *= p->x->group[i] == i + 1 && own > 1 ? own : 1;
            continue;
        }
        bool paired = p->x->mate[i] > 0;
        if ((over >> i & 1) != 0 && (!paired || p->x->mate[i] <= i)) {
            double each = leaves / parts(p, (int32_t)i);
            calls *= !paired ? (each > 1 ? each : 1)
                             : leaves * (leaves + 1) / 2 / along(p->x->n_grid);
        }
    }
    double moved = bytes * (is_spread(p, r, all) ? 1 : 2);
    double added = bytes * (calls - 1) + bytes; /* of own leaves, and of others' */
    return moved / NETWORK + 3 * added / MEMORY + calls * CALL;
}

static double write_time(const Pricing *p, const Result *result)
{
    const Node *n = graph_node(p->c->g, result->node);
    const DistArg *arg = arg_named(p->plan, result->name);
    uint32_t rank = 0;
    bool shaped = result_shape(p->c->g, result, &rank) != NULL;
    double all = node_bytes(p->c->g, n), bytes = (double)dtype_bytes(n->dtype), has = 1,
           lie = 1;
    for (uint32_t d = 0; d < n->rank; d++) {
        int32_t cut = n->out == NULL || shaped
                          ? -1
                          : choice_cut(p->x, class_of(p->c, result->node, n->out[d]));
        double made = parts(p, cut), lies = lies_in(p, arg, d);
        bytes *= positions(p, n->shape[d]) / lies;
        has *= made > lies ? lies / made : 1;
        lie *= lies;
    }
    if (is_spread(p, result->node, all)) {
        has = lie < RANKS ? lie / RANKS : 1;
    }
    return bytes * (1 - has) / NETWORK;
}

/* Of what a rank computes. */
static double work_time(const Pricing *p, NodeRef r)
{
    const Node *n = graph_node(p->c->g, r);
    bool sums = op_info(n->op)->kind == OPKIND_CONTRACT;
    return op_info(n->op)->kind == OPKIND_LEAF
               ? 0
               : count(p, n) / shares(p, r) / (sums ? FLOPS : FLOPS / 4);
}

static double price(const Pricing *p)
{
    const Graph *g = p->c->g;
    double seconds = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        if (op_info(n->op)->kind == OPKIND_LEAF) {
            continue;
        }
        seconds += work_time(p, r) + partial_time(p, r);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            bool given = graph_node(g, n->operand[k])->op == OP_INPUT;
            seconds += given ? read_time(p, r, k) : 0;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        seconds += write_time(p, &g->results.at[k]);
    }
    return seconds;
}

/* What may be cut: classes, then pairs of them; and slices, by themselves. */
typedef struct Options {
    const Classes *c;
    uint32_t classes;
    const Together *together;
} Options;

static bool add_cut(Choice *x, uint32_t root, uint32_t axis, uint32_t mate)
{
    if (x->n == DIST_CUTS || choice_cut(x, root) >= 0) {
        return false;
    }
    x->root[x->n] = root;
    x->axis[x->n] = axis;
    x->group[x->n] = x->leaves[x->n] = 0;
    x->mate[x->n++] = mate;
    return true;
}

/* Adds an option, which has an axis of its own. False: a class twice, or two pairs. */
static bool add_option(const Options *o, uint32_t which, Choice *x)
{
    uint32_t axis = x->n_grid++;
    if (which < o->classes) {
        return add_cut(x, o->c->root[which], axis, 0);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->mate[i] > 0) {
            return false;
        }
    }
    const PairOfClasses *p = &o->together->pair[which - o->classes];
    return add_cut(x, p->a, axis, x->n + 2) && add_cut(x, p->b, axis, x->n);
}

/* Has a node labels of both classes? Then its blocks would be squares on the diagonal. */
static bool meet(const Classes *c, uint32_t a, uint32_t b)
{
    for (NodeRef r = 0; r < c->g->nodes.n; r++) {
        const Node *n = graph_node(c->g, r);
        bool has[2] = {false, false};
        for (uint32_t l = 0; l < n->n_labels; l++) {
            uint32_t root = class_of(c, r, (int32_t)l);
            has[0] |= root == a;
            has[1] |= root == b;
        }
        if (has[0] && has[1]) {
            return true;
        }
    }
    return false;
}

/* May a class be cut over an axis beside what is? */
static bool fits_axis(const Classes *c, const Choice *x, uint32_t b, uint32_t axis)
{
    bool fits = choice_cut(x, b) < 0;
    for (uint32_t i = 0; fits && i < x->n; i++) {
        fits = x->axis[i] != axis || !meet(c, x->root[i], b);
    }
    return fits;
}

/* Cuts another class over the axis of cut i: as one with that where it has its extent, which keeps what both read in one place; beside it where that
 * is dealt as pairs. */
static Choice beside(Classes *c, const Choice *x, uint32_t i, uint32_t b)
{
    Choice made = *x;
    if (x->mate[i] > 0) {
        (void)add_cut(&made, b, x->axis[i], 0);
    } else {
        made.root[i] = classes_join(c, x->root[i], b);
    }
    return made;
}

/* Cuts more classes over axes that have cuts, where that is cheaper: what is computed apart from the rest, as of several results. */
static double extend(Arena *arena, Classes *c, const DistPlan *plan, Choice *x, double least)
{
    uint32_t tried = c->n_roots < TRIED ? c->n_roots : TRIED;
    uint32_t *parent = ARENA_ARRAY(arena, (size_t)c->n + 1, uint32_t);
    for (uint32_t k = 0; k < tried; k++) {
        uint32_t b = c->root[k];
        for (uint32_t i = 0; i < x->n && choice_cut(x, b) < 0; i++) {
            bool alike = dim_eq(c->extent[x->root[i]], c->extent[b]);
            if (!alike || x->group[i] > 0 || x->n == DIST_CUTS ||
                !fits_axis(c, x, b, x->axis[i])) {
                continue;
            }
            memcpy(parent, c->parent, c->n * sizeof *parent);
            Choice made = beside(c, x, i, b);
            double seconds = price(&(Pricing){c, plan, &made});
            if (seconds < least) {
                least = seconds;
                *x = made;
                break;
            }
            memcpy(c->parent, parent, c->n * sizeof *parent);
        }
    }
    return least;
}

/* The best choices so far, the cheapest first. */
typedef struct Best {
    uint32_t n;
    Choice x[OTHERS + 1];
    double seconds[OTHERS + 1];
} Best;

static void keep(Best *b, const Choice *x, double seconds)
{
    uint32_t at = b->n;
    while (at > 0 && seconds < b->seconds[at - 1]) {
        at--;
    }
    for (uint32_t k = b->n < OTHERS ? b->n : OTHERS; k > at; k--) {
        b->x[k] = b->x[k - 1];
        b->seconds[k] = b->seconds[k - 1];
    }
    if (at <= OTHERS) {
        b->x[at] = *x;
        b->seconds[at] = seconds;
        b->n += b->n <= OTHERS ? 1 : 0;
    }
}

/* Do they look alike to who reads extents? */
static bool alike(const Classes *c, const Choice *x, const Choice *y)
{
    bool same = x->n == y->n;
    for (uint32_t i = 0; same && i < x->n; i++) {
        same = x->axis[i] == y->axis[i] && dim_eq(c->extent[x->root[i]], c->extent[y->root[i]]);
    }
    return same;
}

static void add_other(Arena *arena, const Classes *c, DistPlan *plan, const Choice *x,
                      double times)
{
    DistCut *cut = ARENA_ARRAY(arena, DIST_CUTS, DistCut);
    for (uint32_t i = 0; i < x->n; i++) {
        cut[i] =
            (DistCut){.extent = c->extent[x->root[i]], .axis = x->axis[i], .mate = x->mate[i]};
    }
    double percent = times < 0.01 ? 1 : times < 600 ? times * 100 + 0.5 : 60000;
    vec_push(arena, &plan->others, ((DistOther){(uint32_t)percent, x->n, cut}));
}

/* ---- slices ---- */

static bool add_slices(const Classes *c, Choice *x, const SliceGroup *group)
{
    uint32_t first = x->n;
    for (uint32_t k = 0; k < group->n; k++) {
        if (!fits_axis(c, x, group->root[k], 0)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < group->n; k++) {
        if (!add_cut(x, group->root[k], 0, 0)) {
            return false;
        }
        x->group[first + k] = first + 1;
        x->leaves[first + k] = group->leaves[k];
    }
    x->n_grid = 1;
    return true;
}

/* Of leaves: what they compute, and large results that they add. */
static double work(const Pricing *p)
{
    double seconds = 0;
    for (NodeRef r = 0; r < p->c->g->nodes.n; r++) {
        bool large = node_bytes(p->c->g, graph_node(p->c->g, r)) > LARGE_BYTES;
        seconds += work_time(p, r) + (large ? partial_time(p, r) : 0);
    }
    return seconds;
}

/* Adds the slices of the contraction that ends with `step`, the most that cost little more work than fewer: each leaf computes again what lacks some of
 * its labels. */
static void add_finest(const Options *o, const DistPlan *plan, NodeRef step, Choice *x)
{
    const Choice base = *x;
    double least = HUGE_VAL, most = 1;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < o->together->n_groups; k++) {
            Choice more = base;
            const SliceGroup *group = &o->together->group[k];
            if (group->step != step || !add_slices(o->c, &more, group)) {
                continue;
            }
            double seconds = work(&(Pricing){o->c, plan, &more}),
                   leaves = slices_all(&more, base.n);
            least = pass == 0 && seconds < least ? seconds : least;
            if (pass == 1 && seconds <= LITTLE_MORE * least && leaves > most) {
                most = leaves;
                *x = more;
            }
        }
    }
}

/* Slices are dealt, if that costs little more than the cheapest choice: they are independent, and where a run begins again. Those of several
 * contractions share the ranks one after the other. */
static bool prefer_slices(const Options *o, const DistPlan *plan, double *least, Choice *chosen)
{
    Choice x = {0};
    for (uint32_t k = 0; k < o->together->n_groups; k++) {
        NodeRef step = o->together->group[k].step;
        if (k == 0 || o->together->group[k - 1].step != step) {
            add_finest(o, plan, step, &x);
        }
    }
    double seconds = x.n == 0 ? HUGE_VAL : price(&(Pricing){o->c, plan, &x});
    if (seconds > LITTLE_MORE * *least && seconds >= SHORT) {
        return false;
    }
    *least = seconds;
    *chosen = x;
    return true;
}

/* All choices of more options, from number `from` on, with which there are `left` axes more. */
static void try_options(Best *best, const Options *o, const DistPlan *plan, const Choice *x,
                        uint32_t from, uint32_t left)
{
    if (left == 0) {
        keep(best, x, price(&(Pricing){o->c, plan, x}));
        return;
    }
    for (uint32_t k = from; k < o->classes + o->together->n_pairs; k++) {
        Choice more = *x;
        if (add_option(o, k, &more)) {
            try_options(best, o, plan, &more, k + 1, left - 1);
        }
    }
}

/* The best choice with so many axes, and more classes over these; `best` has all choices. */
static double try_axes(Arena *arena, const Options *o, Classes *c, const DistPlan *plan,
                       uint32_t axes, Best *best, Choice *out)
{
    Best of_these = {0};
    try_options(&of_these, o, plan, &(Choice){0}, 0, axes);
    for (uint32_t k = 0; k < of_these.n; k++) {
        keep(best, &of_these.x[k], of_these.seconds[k]);
    }
    *out = of_these.x[0];
    return of_these.n == 0 ? HUGE_VAL : extend(arena, c, plan, out, of_these.seconds[0]);
}

Choice choose_cuts(Arena *arena, Classes *c, DistPlan *plan, const Together *together)
{
    Best best = {0};
    Options options = {c, c->n_roots < TRIED ? c->n_roots : TRIED, together};
    Choice chosen = {0};
    double least = HUGE_VAL;
    uint32_t *before = ARENA_ARRAY(arena, (size_t)c->n + 1, uint32_t),
             *after = ARENA_ARRAY(arena, (size_t)c->n + 1, uint32_t);
    memcpy(before, c->parent, c->n * sizeof *before);
    memcpy(after, before, c->n * sizeof *before);
    for (uint32_t axes = 0; axes <= GRID_AXES; axes++) {
        Choice x;
        double seconds = try_axes(arena, &options, c, plan, axes, &best, &x);
        if (seconds < least) {
            least = seconds;
            chosen = x;
            memcpy(after, c->parent, c->n * sizeof *after);
        }
        memcpy(c->parent, before, c->n * sizeof *before);
    }
    if (!prefer_slices(&options, plan, &least, &chosen)) {
        memcpy(c->parent, after, c->n * sizeof *after);
    }
    for (uint32_t k = 0; k < best.n && least > 0 && plan->others.n < TOLD; k++) {
        bool again = alike(c, &best.x[k], &chosen);
        for (uint32_t i = 0; i < k; i++) {
            again |= alike(c, &best.x[k], &best.x[i]);
        }
        if (!again) {
            add_other(arena, c, plan, &best.x[k], best.seconds[k] / least);
        }
    }
    return chosen;
}
