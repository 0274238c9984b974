/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels are cut over which axes: all choices are priced, one class or none for each axis, for a mesh of four ranks an axis and
 * typical extents. The choice decides in which order sums are added, so it must not depend on the mesh of a call. */
#include <string.h>

#include "dist/parts.h"

/* A rank is a node of a cluster of today: multiply-adds, bytes from others, bytes of its memory, seconds of a call. */
#define FLOPS   1.25e12
#define NETWORK 12.5e9
#define MEMORY  1e11
#define CALL    1e-6
#define RANKS   4.0

/* More classes than this are not tried for one axis, the first in the order of the program. */
#define TRIED 24u

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

/* Into how many parts a cut, or none, divides positions that a rank has: of mates half of all pairs are dealt. */
static double parts(const Pricing *p, int32_t cut)
{
    static const double pairs = 2.8284271247461903; /* whose square is 2 RANKS */
    return cut < 0 ? 1 : p->x->mate[cut] > 0 ? pairs : RANKS;
}

/* How many ranks share the labels of a node. */
static double shares(const Pricing *p, NodeRef r)
{
    double n = 1;
    for (uint32_t l = 0; l < graph_node(p->c->g, r)->n_labels; l++) {
        n *= parts(p, choice_cut(p->x, class_of(p->c, r, (int32_t)l)));
    }
    return n;
}

static double count(const Pricing *p, const Node *n)
{
    double all = 1;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        all *= positions(p, n->extent[l]);
    }
    return all;
}

/* Bytes that a rank lacks of an array of which dimension d has the cut want[d] and lies cut by `arg`. */
static double lacks(const Pricing *p, const DistArg *arg, uint32_t rank, const Dim *shape,
                    DType t, const int32_t *want)
{
    double bytes = (double)dtype_bytes(t), has = 1;
    for (uint32_t d = 0; d < rank; d++) {
        bytes *= positions(p, shape[d]) / parts(p, want[d]);
    }
    for (uint32_t i = 0; i < arg->n_pieces; i++) {
        int32_t cut = want[arg->piece[i].dim];
        bool same = cut >= 0 && p->x->axis[cut] == arg->piece[i].axis && p->x->mate[cut] == 0;
        has /= same ? 1 : RANKS;
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

/* Seconds for what a node sums over cut labels: a result for each leaf, and one for each rank that moves. */
static double partial_time(const Pricing *p, NodeRef r)
{
    const Node *n = graph_node(p->c->g, r);
    uint32_t over = partial_over(p->c, p->x, r);
    if (over == 0) {
        return 0;
    }
    double bytes = (double)dtype_bytes(n->acc), calls = LEAVES / RANKS;
    for (uint32_t d = 0; d < n->rank; d++) {
        bytes *= positions(p, n->shape[d]) /
                 parts(p, choice_cut(p->x, class_of(p->c, r, n->out[d])));
    }
    for (uint32_t i = 0; i < p->x->n; i++) {
        double leaves = positions(p, p->c->extent[p->x->root[i]]);
        leaves = leaves < LEAVES ? leaves : LEAVES;
        if ((over >> i & 1) != 0 && p->x->mate[i] > 0) {
            calls = leaves * (leaves + 1) / 2 / RANKS;
        }
    }
    return bytes * 2 / NETWORK + calls * (bytes / MEMORY + CALL);
}

static double write_time(const Pricing *p, const Result *result)
{
    const Node *n = graph_node(p->c->g, result->node);
    int32_t want[RANK_LIMIT];
    const DistArg *arg = arg_named(p->plan, result->name);
    double bytes = (double)dtype_bytes(n->dtype), has = 1;
    for (uint32_t d = 0; d < n->rank; d++) {
        int32_t cut = n->out == NULL || result->shape != NULL
                          ? -1
                          : choice_cut(p->x, class_of(p->c, result->node, n->out[d]));
        want[d] = cut < 0 ? -1 : (int32_t)p->x->axis[cut];
        bytes *= positions(p, n->shape[d]);
    }
    for (uint32_t i = 0; i < arg->n_pieces; i++) {
        bytes /= RANKS;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        bool same = want[d] < 0;
        for (uint32_t i = 0; i < arg->n_pieces; i++) {
            same = same || (arg->piece[i].dim == d && (int32_t)arg->piece[i].axis == want[d]);
        }
        has /= same ? 1 : RANKS;
    }
    return bytes * (1 - has) / NETWORK;
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
        bool sums = op_info(n->op)->kind == OPKIND_CONTRACT;
        seconds += count(p, n) / shares(p, r) / (sums ? FLOPS : FLOPS / 4) + partial_time(p, r);
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

/* What may be cut over an axis: classes, then pairs of them. */
typedef struct Options {
    const Classes *c;
    uint32_t classes, pairs;
    const PairOfClasses *pair;
} Options;

static bool add_cut(Choice *x, uint32_t root, uint32_t axis, uint32_t mate)
{
    if (x->n == DIST_AXES || choice_cut(x, root) >= 0) {
        return false;
    }
    x->root[x->n] = root;
    x->axis[x->n] = axis;
    x->mate[x->n++] = mate;
    return true;
}

/* The choice with this number: an option or none for each axis, the first axis slowest. False: a class twice, or two pairs. */
static bool choice_make(const Options *o, uint32_t n_axes, uint64_t number, Choice *x)
{
    bool paired = false;
    uint32_t all = o->classes + o->pairs + 1;
    *x = (Choice){0};
    for (uint32_t axis = n_axes; axis-- > 0; number /= all) {
        uint32_t which = (uint32_t)(number % all);
        if (which > o->classes) {
            const PairOfClasses *p = &o->pair[which - o->classes - 1];
            if (paired || !add_cut(x, p->a, axis, x->n + 2) || !add_cut(x, p->b, axis, x->n)) {
                return false;
            }
            paired = true;
        } else if (which > 0 && !add_cut(x, o->c->root[which - 1], axis, 0)) {
            return false;
        }
    }
    return true;
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
            if (!alike || x->n == DIST_AXES || !fits_axis(c, x, b, x->axis[i])) {
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
    DistCut *cut = ARENA_ARRAY(arena, DIST_AXES, DistCut);
    for (uint32_t i = 0; i < x->n; i++) {
        cut[i] =
            (DistCut){.extent = c->extent[x->root[i]], .axis = x->axis[i], .mate = x->mate[i]};
    }
    double percent = times < 600 ? times * 100 + 0.5 : 60000;
    vec_push(arena, &plan->others, ((DistOther){(uint32_t)percent, x->n, cut}));
}

Choice choose_cuts(Arena *arena, Classes *c, DistPlan *plan, const PairOfClasses *pair,
                   uint32_t n_pairs)
{
    Best best = {0};
    Options options = {c, c->n_roots < TRIED ? c->n_roots : TRIED, n_pairs, pair};
    uint32_t n_axes = plan->n_axes < 3 ? plan->n_axes : 3; /* more are left whole */
    uint64_t all = 1;
    for (uint32_t a = 0; a < n_axes; a++) {
        all *= options.classes + options.pairs + 1;
    }
    for (uint64_t number = 0; number < all; number++) {
        Choice x;
        if (choice_make(&options, n_axes, number, &x)) {
            keep(&best, &x, price(&(Pricing){c, plan, &x}));
        }
    }
    double least = extend(arena, c, plan, &best.x[0], best.seconds[0]);
    for (uint32_t k = 1; k < best.n && least > 0 && plan->others.n < TOLD; k++) {
        bool again = false;
        for (uint32_t i = 0; i < k; i++) {
            again |= alike(c, &best.x[k], &best.x[i]);
        }
        if (again) {
            continue;
        }
        add_other(arena, c, plan, &best.x[k], best.seconds[k] / least);
    }
    return best.x[0];
}
