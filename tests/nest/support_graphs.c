/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs and random trees over them: see the header. */
#include "support_graphs.h"

#include "nest/facts.h"
#include "nest/moves.h"
#include "nest/tree.h"

#define POOL_DIMS   4
#define MOST_LABELS 6
#define MOST_RANK   4

typedef struct Making {
    Ctx *ctx;
    Rng *rng;
    Graph *g;
    DType dtype, acc;
    Dim pool[POOL_DIMS];
    VEC(NodeRef) values; /* to read */
    uint32_t n_inputs;   /* of these, the first */
} Making;

/* A node in the making. */
typedef struct Sketch {
    uint32_t n_labels;
    Dim extent[MOST_LABELS];
    Index index[2][MOST_RANK];
    Access access[2];
    NodeRef operand[2];
    uint32_t n_operands;
} Sketch;

static uint32_t below(Rng *rng, uint32_t n)
{
    return (uint32_t)rng_below(rng, n);
}

static bool chance(Rng *rng, uint32_t percent)
{
    return below(rng, 100) < percent;
}

/* ---- graphs ---- */

static void make_dims(Making *m)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 8};
    static const char *const names[] = {"m", "n", "k"};
    for (uint32_t d = 0; d < 3; d++) {
        DimInfo info = {.name = sym_cstr(&m->ctx->syms, names[d]),
                        .typical = sizes[1 + below(m->rng, 4)]};
        vec_push(m->g->arena, &m->g->dims.list, info);
    }
    for (uint32_t d = 0; d < POOL_DIMS; d++) {
        m->pool[d] = chance(m->rng, 60) ? dim_open((int32_t)below(m->rng, 3))
                                        : dim_fixed(sizes[below(m->rng, 5)]);
    }
}

static void make_params(Making *m)
{
    uint32_t n = 2 + below(m->rng, 3);
    for (uint32_t k = 0; k < n; k++) {
        Dim *shape = ARENA_ARRAY(m->g->arena, MOST_RANK, Dim);
        Param p = {.name = sym_cstr(&m->ctx->syms, str_format(m->g->arena, "P%u", k)),
                   .dtype = m->dtype,
                   .rank = below(m->rng, 4),
                   .shape = shape};
        p.role = p.rank == 0 ? PARAM_SCALAR : chance(m->rng, 30) ? PARAM_INOUT : PARAM_IN;
        for (uint32_t d = 0; d < p.rank; d++) {
            shape[d] = m->pool[below(m->rng, POOL_DIMS)];
        }
        vec_push(m->g->arena, &m->g->params, p);
        NodeRef input = graph_input(m->g, k, (Span){0});
        vec_push(m->g->arena, &m->values, input);
    }
    m->n_inputs = m->values.n;
}

/* Mostly what was made last. */
static NodeRef pick(Making *m)
{
    uint32_t n = m->values.n;
    uint32_t back = chance(m->rng, 60) ? below(m->rng, n < 3 ? n : 3) : below(m->rng, n);
    return m->values.at[n - 1 - back];
}

static bool has_index(const Access *a, uint32_t n, int32_t label)
{
    for (uint32_t d = 0; d < n; d++) {
        if (a->index[d].label == label) {
            return true;
        }
    }
    return false;
}

/* A label for dimension `d` of operand `k`: one there is, or a new one; -1: neither. */
static int32_t choose_label(Making *m, Sketch *s, uint32_t k, uint32_t d, Dim extent)
{
    for (uint32_t tries = 0; tries < 4 && s->n_labels > 0; tries++) {
        int32_t l = (int32_t)below(m->rng, s->n_labels);
        bool again = has_index(&s->access[k], d, l);
        if (dim_eq(s->extent[l], extent) && chance(m->rng, again ? 10 : 80)) {
            return l;
        }
    }
    if (s->n_labels == MOST_LABELS) {
        return -1;
    }
    s->extent[s->n_labels] = extent;
    return (int32_t)s->n_labels++;
}

static bool sketch_operand(Making *m, Sketch *s, NodeRef n)
{
    uint32_t k = s->n_operands++;
    const Node *node = graph_node(m->g, n);
    s->operand[k] = n;
    s->access[k] = (Access){node->rank, s->index[k]};
    for (uint32_t d = 0; d < node->rank; d++) {
        bool fixed = dim_is(node->shape[d], 1) && chance(m->rng, 30);
        int32_t l = fixed ? -1 : choose_label(m, s, k, d, node->shape[d]);
        if (!fixed && l < 0) {
            return false;
        }
        s->index[k][d] = (Index){l, 0};
    }
    return true;
}

static bool add_node(Making *m, const Sketch *s, Op op, uint32_t rank, const int32_t *out)
{
    Dim shape[MOST_LABELS];
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = s->extent[out[d]];
    }
    bool sums = op == OP_EINSUM || op == OP_SUM || op == OP_PROD;
    bool folds = op_info(op)->kind != OPKIND_MAP;
    NodeSpec spec = {.op = op,
                     .dtype = m->dtype,
                     .acc = sums    ? m->acc
                            : folds ? m->dtype
                                    : DTYPE_NONE,
                     .n_operands = s->n_operands,
                     .operand = s->operand,
                     .access = s->access,
                     .rank = rank,
                     .out = out,
                     .out_shape = shape};
    uint32_t had = m->g->nodes.n;
    NodeRef n = graph_add(m->g, &spec);
    if (n >= had) {
        vec_push(m->g->arena, &m->values, n);
    }
    return n >= had;
}

/* Random order of the labels, `keep` percent of them. */
static uint32_t choose_out(Making *m, const Sketch *s, uint32_t keep, int32_t *out)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < s->n_labels; l++) {
        if (chance(m->rng, keep)) {
            uint32_t at = below(m->rng, n + 1);
            out[n++] = out[at];
            out[at] = (int32_t)l;
        }
    }
    return n;
}

static bool add_value(Making *m)
{
    static const Op maps[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_SCALE};
    static const Op single[] = {OP_COPY, OP_NEG, OP_RELU};
    static const Op folds[] = {OP_SUM, OP_RMAX, OP_RMIN, OP_PROD};
    Sketch s = {0};
    int32_t out[MOST_LABELS] = {0};
    uint32_t kind = below(m->rng, 10);
    bool reduces = kind < 2, contracts = kind >= 2 && kind < 6;
    bool two = contracts || (!reduces && chance(m->rng, 70));
    NodeRef first = pick(m);
    if (!sketch_operand(m, &s, first) ||
        (two && !sketch_operand(m, &s, chance(m->rng, 25) ? first : pick(m)))) {
        return false;
    }
    if (!reduces && !contracts && s.n_labels < MOST_RANK && chance(m->rng, 10)) {
        s.extent[s.n_labels++] = m->pool[below(m->rng, POOL_DIMS)]; /* a broadcast */
    }
    uint32_t rank = choose_out(m, &s, reduces || contracts ? 55 : 100, out);
    if (rank > MOST_RANK || (reduces && rank == s.n_labels)) {
        return false;
    }
    Op op = contracts ? OP_EINSUM
            : reduces ? folds[below(m->rng, 4)]
            : two     ? maps[below(m->rng, 6)]
                      : single[below(m->rng, 3)];
    return add_node(m, &s, op, rank, out);
}

static void deliver(Making *m, NodeRef n, int32_t param)
{
    const char *name = str_format(m->g->arena, "R%u", m->g->results.n);
    Result r = {.name = param < 0 ? sym_cstr(&m->ctx->syms, name) : m->g->params.at[param].name,
                .node = n,
                .param = param};
    vec_push(m->g->arena, &m->g->results, r);
}

/* The new value of parameter `p`: of its old one, read straight or in another order, and of
 * something else. */
static void update(Making *m, uint32_t p)
{
    const Param *param = &m->g->params.at[p];
    for (uint32_t tries = 0; tries < 20; tries++) {
        Sketch s = {0};
        int32_t out[MOST_LABELS];
        for (uint32_t d = 0; d < param->rank; d++) {
            s.extent[d] = param->shape[d];
            out[d] = (int32_t)d;
        }
        s.n_labels = param->rank;
        NodeRef first = chance(m->rng, 70) ? m->values.at[p] : pick(m);
        bool ok = sketch_operand(m, &s, first) && s.n_labels == param->rank &&
                  sketch_operand(m, &s, pick(m)) && s.n_labels == param->rank;
        if (ok && add_node(m, &s, chance(m->rng, 50) ? OP_ADD : OP_SUB, param->rank, out)) {
            deliver(m, m->values.at[m->values.n - 1], (int32_t)p);
            return;
        }
    }
    deliver(m, m->values.at[p], (int32_t)p);
}

static void make_results(Making *m)
{
    bool *read = ARENA_ARRAY(m->g->arena, m->g->nodes.n, bool);
    for (NodeRef n = 0; n < m->g->nodes.n; n++) {
        const Node *node = graph_node(m->g, n);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            read[node->operand[k]] = true;
        }
    }
    uint32_t n_values = m->values.n;
    for (uint32_t k = m->n_inputs; k < n_values; k++) {
        if (!read[m->values.at[k]] ? chance(m->rng, 95) : chance(m->rng, 20)) {
            deliver(m, m->values.at[k], -1);
        }
    }
    if (chance(m->rng, 10) || m->g->results.n == 0) {
        deliver(m, m->values.at[below(m->rng, n_values)], -1);
    }
    for (uint32_t p = 0; p < m->g->params.n; p++) {
        if (m->g->params.at[p].role == PARAM_INOUT) {
            update(m, p);
        }
    }
}

Graph *random_graph(Ctx *ctx, Rng *rng, uint32_t most)
{
    static const DType types[][2] = {
        {DTYPE_I64, DTYPE_I64}, {DTYPE_I32, DTYPE_I32}, {DTYPE_I32, DTYPE_I64}};
    uint32_t t = below(rng, 3), n = 1 + below(rng, most);
    Graph *g = graph_new(&ctx->arena, sym_cstr(&ctx->syms, "k"));
    Making m = {.ctx = ctx, .rng = rng, .g = g, .dtype = types[t][0], .acc = types[t][1]};
    g->form = GRAPH_BINARY;
    g->signature = "kernel k";
    make_dims(&m);
    make_params(&m);
    for (uint32_t k = 0, tries = 0; k < n && tries < 100; tries++) {
        k += add_value(&m);
    }
    make_results(&m);
    return g;
}

/* X[a,b] = sum v[a,..] v[b,..], or with one index kept, times itself or raised, summed over a and b. */
void random_pairs(Ctx *ctx, Rng *rng, Graph *g)
{
    NodeRef v = below(rng, g->nodes.n);
    const Node *n = graph_node(g, v);
    uint32_t rank = n->rank;
    if (rank == 0 || rank > 3) {
        return;
    }
    Index x[3], y[3];
    for (uint32_t d = 0; d < rank; d++) {
        x[d] = y[d] = (Index){(int32_t)d + 2, 0};
    }
    uint32_t at = below(rng, rank);
    bool keep = rank > 1 && chance(rng, 40);
    int32_t kept = (int32_t)((at + 1) % rank) + 2, out[3] = {0, 1, kept};
    x[at].label = 0;
    y[at].label = 1;
    NodeSpec product = {.op = OP_EINSUM,
                        .dtype = n->dtype,
                        .n_operands = 2,
                        .operand = (NodeRef[]){v, v},
                        .access = (Access[]){{rank, x}, {rank, y}},
                        .rank = keep ? 3 : 2,
                        .out = out};
    NodeRef of_pairs = graph_add(g, &product);
    Index all[3] = {{0, 0}, {1, 0}, {2, 0}};
    uint32_t n_all = keep ? 3 : 2;
    const int32_t last = 2;
    NodeSpec sum = {.op = chance(rng, 50) ? OP_EINSUM : OP_SUM,
                    .dtype = n->dtype,
                    .operand = (NodeRef[]){of_pairs, of_pairs},
                    .access = (Access[]){{n_all, all}, {n_all, all}},
                    .rank = keep ? 1 : 0,
                    .out = &last};
    sum.n_operands = sum.op == OP_SUM ? 1 : 2;
    Result r = {.name = sym_cstr(&ctx->syms, "pairs"), .param = -1};
    r.node = graph_add(g, &sum);
    vec_push(g->arena, &g->results, r);
    if (chance(rng, 60)) { /* what is summed is delivered too, perhaps an expression of it */
        r = (Result){.name = sym_cstr(&ctx->syms, "mirrored"), .param = -1, .node = of_pairs};
        if (chance(rng, 30)) {
            Index turned[3] = {{1, 0}, {0, 0}, {2, 0}};
            bool minus = chance(rng, 50);
            NodeSpec both = {.op = minus ? OP_SUB : OP_ADD,
                             .dtype = n->dtype,
                             .n_operands = 2,
                             .operand = (NodeRef[]){of_pairs, of_pairs},
                             .access = (Access[]){{n_all, all}, {n_all, turned}},
                             .rank = n_all,
                             .out = (const int32_t[]){0, 1, 2}};
            r.node = graph_add(g, &both);
        }
        vec_push(g->arena, &g->results, r);
    }
}

static bool is_ready(const Node *n, const NodeRef *map)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (map[n->operand[k]] == NODE_NONE) {
            return false;
        }
    }
    return true;
}

Graph *random_order(Ctx *ctx, Rng *rng, const Graph *g)
{
    Graph *to = graph_like(&ctx->arena, g);
    NodeRef *map = ARENA_ARRAY(&ctx->arena, g->nodes.n, NodeRef);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        map[n] = NODE_NONE;
    }
    for (uint32_t done = 0; done < g->nodes.n;) {
        NodeRef n = below(rng, g->nodes.n);
        if (map[n] == NODE_NONE && is_ready(graph_node(g, n), map)) {
            map[n] = graph_clone_node(to, g, n, map);
            to->nodes.at[map[n]].name =
                sym_cstr(&ctx->syms, str_format(&ctx->arena, "v%u", below(rng, 1000000)));
            done++;
        }
    }
    graph_copy_results(to, g, map);
    return to;
}

int64_t graph_points(const Graph *g, const int64_t *dims)
{
    int64_t points = 0;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        int64_t count = 1;
        for (uint32_t l = 0; l < node->n_labels; l++) {
            Dim d = node->extent[l];
            count = sat_mul(count, d.sym < 0 ? d.n : dims[d.sym]);
        }
        points = sat_add(points, count);
    }
    return points;
}

Tensor *param_tensor(Ctx *ctx, const Param *p, const int64_t *dims)
{
    int64_t extent[MOST_RANK];
    for (uint32_t d = 0; d < p->rank; d++) {
        extent[d] = p->shape[d].sym < 0 ? p->shape[d].n : dims[p->shape[d].sym];
    }
    return tensor_new(ctx, &ctx->arena, p->dtype, p->rank, extent);
}

/* ---- trees ---- */

typedef struct Choice {
    Arena *arena;
    Rng *rng;
    uint32_t seen;
    Tree tree;
} Choice;

static void copy_tree(Arena *arena, Tree *to, const Tree *from)
{
    to->list.n = 0;
    for (uint32_t k = 0; k < from->list.n; k++) {
        vec_push(arena, &to->list, from->list.at[k]);
    }
}

/* Each of those that are offered with the same chance; axes may live shorter than the tree. */
static void choose_one(void *self, const Tree *t)
{
    Choice *c = self;
    if (below(c->rng, ++c->seen) == 0) {
        copy_tree(c->arena, &c->tree, t);
    }
}

Tree random_walk(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t, uint32_t steps)
{
    Choice c = {.arena = arena, .rng = rng};
    Tree at = {0};
    copy_tree(arena, &at, t);
    for (uint32_t k = 0; k < steps; k++) {
        c.seen = 0;
        moves_each(arena, arena, f, &at, choose_one, &c);
        if (c.seen == 0) {
            break;
        }
        copy_tree(arena, &at, &c.tree);
    }
    return at;
}

static uint32_t end_of(const Tree *t, uint32_t k)
{
    uint32_t end = k + 1;
    while (end < t->list.n && t->list.at[end].depth > t->list.at[k].depth) {
        end++;
    }
    return end;
}

/* Puts `loop` around items [from, to). */
static void wrap(Arena *arena, Tree *t, uint32_t from, uint32_t to, Draft loop)
{
    Tree out = {0};
    for (uint32_t k = 0; k < t->list.n; k++) {
        Draft d = t->list.at[k];
        if (k == from) {
            loop.depth = d.depth;
            vec_push(arena, &out.list, loop);
        }
        d.depth += k >= from && k < to;
        vec_push(arena, &out.list, d);
    }
    *t = out;
}

/* Does a loop around item `k` cut label `l` of its node? */
static bool is_cut(const Tree *t, uint32_t k, NodeRef node, int32_t l)
{
    uint32_t depth = t->list.at[k].depth;
    for (uint32_t p = k; p-- > 0;) {
        const Draft *d = &t->list.at[p];
        if (d->is_loop && d->depth < depth) {
            depth = d->depth;
            if (nest_axis_label(&d->axis, node) == l) {
                return true;
            }
        }
    }
    return false;
}

static void wrap_leaf(Arena *arena, Rng *rng, const NestFacts *f, Tree *t)
{
    uint32_t k = below(rng, t->list.n);
    const Draft *d = &t->list.at[k];
    const Node *n = d->is_loop ? NULL : graph_node(f->g, d->node);
    if (n == NULL || n->n_labels == 0) {
        return;
    }
    int32_t *label = ARENA_ARRAY(arena, 1, int32_t);
    *label = (int32_t)below(rng, n->n_labels);
    if (is_cut(t, k, d->node, *label)) {
        return;
    }
    NestAxis axis = {.extent = n->extent[*label], .n = 1, .label = label};
    axis.node = arena_copy(arena, &d->node, sizeof d->node);
    Draft loop = {.axis = axis, .is_loop = true, .tile = 1 + below(rng, 4), .node = NODE_NONE};
    wrap(arena, t, k, k + 1, loop);
}

/* Do all that read `node` stand in items (from, to) and read it nowhere along `axis`, nor before they begin? */
static bool is_private(const NestFacts *f, const Tree *t, NodeRef node, uint32_t from,
                       uint32_t to, const NestAxis *axis)
{
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        if (f->late.list.at[i].node == node) {
            return false;
        }
    }
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        for (uint32_t i = 0; !d->is_loop && i < f->uses[d->node].list.n; i++) {
            const Use *use = &f->uses[d->node].list.at[i];
            if (use->node != node) {
                continue;
            }
            int32_t l = nest_axis_label(axis, d->node);
            for (uint32_t x = 0; x < use->access.rank; x++) {
                if (l >= 0 && use->access.index[x].label == l) {
                    return false;
                }
            }
            if (k <= from || k >= to || use->apart) {
                return false;
            }
        }
    }
    NodeRef init = node_init(graph_node(f->g, node));
    return f->result_of[node] < 0 && (init == NODE_NONE || f->into[init] != node);
}

/* A leaf moves into the loop after it, to be computed again there. */
static void compute_again(const NestFacts *f, Tree *t, uint32_t k)
{
    Draft leaf = t->list.at[k];
    if (leaf.is_loop || k + 1 >= t->list.n || !t->list.at[k + 1].is_loop ||
        t->list.at[k + 1].depth != leaf.depth ||
        !is_private(f, t, leaf.node, k + 1, end_of(t, k + 1), &t->list.at[k + 1].axis)) {
        return;
    }
    t->list.at[k] = t->list.at[k + 1];
    leaf.depth++;
    leaf.recompute = true;
    t->list.at[k + 1] = leaf;
}

/* A second loop of the same axis around some of the body of loop `k`. */
static void cut_again(Arena *arena, Rng *rng, Tree *t, uint32_t k)
{
    Draft loop = t->list.at[k];
    uint32_t end = end_of(t, k), from = k + 1;
    while (loop.is_loop && chance(rng, 40) && end_of(t, from) < end) {
        from = end_of(t, from);
    }
    if (!loop.is_loop || (loop.tile % 2 != 0 && loop.tile % 3 != 0)) {
        return;
    }
    uint32_t to = end_of(t, from);
    while (to < end && chance(rng, 60)) {
        to = end_of(t, to);
    }
    for (uint32_t i = from; i < to; i++) {
        const NestAxis *axis = &t->list.at[i].axis;
        if (t->list.at[i].recompute ||
            (t->list.at[i].is_loop &&
             nest_axis_label(axis, loop.axis.node[0]) == loop.axis.label[0])) {
            return; /* computed again and read outside of the new loop; cut already */
        }
    }
    loop.tile /= loop.tile % 2 == 0 ? 2 : 3;
    loop.parallel = false;
    wrap(arena, t, from, to, loop);
}

static bool folds(const NestFacts *f, const Tree *t, uint32_t k)
{
    for (uint32_t i = k + 1; i < end_of(t, k); i++) {
        const Draft *d = &t->list.at[i];
        int32_t l = d->is_loop ? -1 : nest_axis_label(&t->list.at[k].axis, d->node);
        if (l >= 0 && node_reduces(graph_node(f->g, d->node), l)) {
            return true;
        }
    }
    return false;
}

Tree random_extras(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t)
{
    Tree out = {0};
    copy_tree(arena, &out, t);
    for (uint32_t k = 0; k < out.list.n; k++) {
        if (out.list.at[k].is_loop && chance(rng, 30)) {
            out.list.at[k].tile = 1 + below(rng, 9);
        }
    }
    for (uint32_t k = 0; k < 2; k++) {
        wrap_leaf(arena, rng, f, &out);
    }
    for (uint32_t k = out.list.n; k-- > 0;) {
        if (chance(rng, 60)) {
            compute_again(f, &out, k);
        }
    }
    for (uint32_t k = 0; k < 2; k++) {
        cut_again(arena, rng, &out, below(rng, out.list.n));
    }
    for (uint32_t k = 0; k < out.list.n; k++) {
        Draft *d = &out.list.at[k];
        d->parallel = d->is_loop && chance(rng, 40) && !folds(f, &out, k);
    }
    return out;
}

/* ---- faults ---- */

/* Labels of the loop's values, chosen at random where the extent allows it. */
static NestAxis random_axis(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t,
                            uint32_t from, uint32_t to)
{
    NodeRef *node = ARENA_ARRAY(arena, to - from, NodeRef);
    int32_t *label = ARENA_ARRAY(arena, to - from, int32_t);
    NestAxis axis = {.node = node, .label = label};
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        const Node *x = graph_node(f->g, n);
        for (uint32_t k = from; k < to; k++) {
            if (t->list.at[k].is_loop || t->list.at[k].node != n || x->n_labels == 0) {
                continue;
            }
            int32_t l = (int32_t)below(rng, x->n_labels);
            if (axis.n == 0) {
                axis.extent = x->extent[l];
            }
            for (uint32_t tries = 0; tries < x->n_labels; tries++) {
                if (dim_eq(x->extent[l], axis.extent)) {
                    node[axis.n] = n;
                    label[axis.n++] = l;
                    break;
                }
                l = (int32_t)(((uint32_t)l + 1) % x->n_labels);
            }
        }
    }
    return axis;
}

static void fault_loop(Arena *arena, Rng *rng, const NestFacts *f, Tree *t)
{
    uint32_t from = below(rng, t->list.n), to = end_of(t, from);
    while (to < t->list.n && t->list.at[to].depth == t->list.at[from].depth &&
           chance(rng, 60)) {
        to = end_of(t, to);
    }
    NestAxis axis = random_axis(arena, rng, f, t, from, to);
    if (axis.n > 0) {
        Draft loop = {
            .axis = axis, .is_loop = true, .tile = 1 + below(rng, 4), .node = NODE_NONE};
        for (uint32_t k = from; k < to; k++) {
            Draft *d = &t->list.at[k];
            d->recompute |= !d->is_loop && nest_axis_label(&axis, d->node) < 0;
        }
        wrap(arena, t, from, to, loop);
    }
}

/* One label of a loop's axis is another, everywhere in the tree or in that loop alone. */
static void fault_label(Arena *arena, Rng *rng, const NestFacts *f, Draft *loop)
{
    NestAxis *axis = &loop->axis;
    uint32_t k = below(rng, axis->n);
    int32_t *label = arena_copy(arena, axis->label, axis->n * sizeof *label);
    label[k] = (int32_t)below(rng, graph_node(f->g, axis->node[k])->n_labels);
    axis->label = label;
}

/* A leaf goes one place on, whatever is there: into a loop, out of one, or past a leaf. */
static void fault_place(Rng *rng, Tree *t, uint32_t k)
{
    if (k + 1 >= t->list.n || t->list.at[k].is_loop) {
        return;
    }
    Draft leaf = t->list.at[k], next = t->list.at[k + 1];
    if (next.depth < leaf.depth) { /* out of its loop, unless it is alone there */
        if (k > 0 && !t->list.at[k - 1].is_loop && t->list.at[k - 1].depth == leaf.depth) {
            t->list.at[k].depth = next.depth;
        }
        return;
    }
    leaf.depth = next.depth + next.is_loop;
    leaf.recompute = leaf.recompute != (next.is_loop && chance(rng, 70));
    if (k > 0 && t->list.at[k - 1].is_loop && t->list.at[k - 1].depth + 1 == next.depth + 1) {
        return; /* the loop before would be empty */
    }
    t->list.at[k] = next;
    t->list.at[k + 1] = leaf;
}

Tree random_fault(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t)
{
    Tree out = {0};
    copy_tree(arena, &out, t);
    uint32_t k = below(rng, out.list.n);
    Draft *d = &out.list.at[k];
    switch (below(rng, 5)) {
    case 0:
        fault_loop(arena, rng, f, &out);
        break;
    case 1:
        d->parallel = d->is_loop;
        break;
    case 2:
        if (d->is_loop) {
            fault_label(arena, rng, f, d);
        } else {
            d->recompute = !d->recompute;
        }
        break;
    case 3:
        fault_place(rng, &out, k);
        break;
    default:
        if (d->is_loop) {
            d->tile = 1 + below(rng, 7);
        }
        break;
    }
    return out;
}
