/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels from nests: arguments, the statements of each nest (build.c), results that no node wrote, and the positions that must lie inside. */
#include "graph/recurrence.h"
#include "lower/build.h"
#include "loop/copy.h"

static void build_args(Builder *b)
{
    const Graph *g = b->g;
    Kernel *k = b->k;
    BufRef *param = ARENA_ARRAY(b->arena, g->params.n, BufRef);
    for (uint32_t i = 0; i < g->params.n; i++) {
        const Param *p = &g->params.at[i];
        param[i] = kernel_buffer(k, &b->ctx->syms, p->name->text, p->dtype, SPACE_ARGUMENT,
                                 param_rank(p), param_shape(p));
        k->bufs.at[param[i]].span = p->span;
        k->bufs.at[param[i]].param = (int32_t)i;
        Arg arg = {.role = p->role == PARAM_SCALAR  ? ARG_SCALAR
                           : p->role == PARAM_INOUT ? ARG_INOUT
                                                    : ARG_IN,
                   .buf = param[i],
                   .symmetry = p->symmetry,
                   .rank = p->collapsed == NULL ? 0 : p->rank,
                   .shape = p->collapsed == NULL ? NULL : p->shape};
        vec_push(b->arena, &k->args, arg);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        const Result *result = &g->results.at[r];
        const Node *n = graph_node(g, result->node);
        if (result->param >= 0) {
            const Param *p = &g->params.at[result->param];
            bool kept = b->indefinite != BUF_NONE && !b->is_step;
            b->result[r] = !kept
                               ? param[result->param]
                               : kernel_buffer(k, &b->ctx->syms, p->name->text, p->dtype,
                                               SPACE_WORKSPACE, param_rank(p), param_shape(p));
            k->bufs.at[b->result[r]].span = p->span;
            continue;
        }
        b->result[r] = kernel_buffer(k, &b->ctx->syms, result->name->text, n->dtype,
                                     SPACE_ARGUMENT, n->rank, n->shape);
        k->bufs.at[b->result[r]].span = result->span;
        k->bufs.at[b->result[r]].param = (int32_t)k->args.n;
        Arg arg = {.role = ARG_RESULT,
                   .buf = b->result[r],
                   .symmetry = result->symmetry,
                   .rank = result->rank,
                   .shape = result->shape};
        vec_push(b->arena, &k->args, arg);
    }
    b->param = param;
}

/* Nothing has been computed yet. */
static void build_inputs(Builder *b)
{
    for (NodeRef n = 0; n < b->g->nodes.n; n++) {
        b->storage[n] = b->accumulator[n] = b->running[n] = (Place){BUF_NONE, NEST_NONE};
        if (graph_node(b->g, n)->op == OP_INPUT) {
            b->storage[n].buf = b->param[graph_node(b->g, n)->param];
        }
    }
}

/* Results that no node wrote straight: a parameter or constant as it is, a value delivered twice, or an inout
 * parameter whose old value was needed until now. Plain results first: they may still read old values. */
static void build_late_results(Builder *b, Block *to)
{
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < b->g->results.n; r++) {
            const Result *result = &b->g->results.at[r];
            const Node *n = graph_node(b->g, result->node);
            bool unchanged =
                result->param >= 0 && n->op == OP_INPUT && n->param == (uint32_t)result->param;
            if (b->nest->values[result->node].result == (int32_t)r || unchanged ||
                (result->param >= 0) != (pass == 1)) {
                continue;
            }
            Stmt *s = build_stmt(b, STMT_TILE, result->span, result->name);
            Position *pos = ARENA_ARRAY(b->arena, n->rank, Position);
            Index *index = ARENA_ARRAY(b->arena, n->rank, Index);
            TileIndex *tile = ARENA_ARRAY(b->arena, n->rank, TileIndex);
            for (uint32_t d = 0; d < n->rank; d++) {
                pos[d] = build_dimension_position(b, result->node, d);
                index[d] = (Index){(int32_t)d, 0};
                tile[d] = (TileIndex){.var = pos[d].var, .range = pos[d].range};
            }
            Access access = {n->rank, index};
            s->n_index = n->rank;
            s->index = tile;
            s->dst = b->result[r];
            s->at = build_at(b, (Place){s->dst, NEST_NONE}, result->node, access, pos);
            s->value = build_expr(b, result->node, access, pos);
            vec_push(b->arena, &to->list, s);
        }
    }
}

typedef struct Work {
    VEC(struct WorkTerm) list;
} Work;

/* Of contractions of the graph, each run for all values of `steps`. */
static void add_work(Builder *b, const Graph *g, const NestValue *values, uint32_t n_steps,
                     const Dim *steps, Work *work)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if ((values != NULL && values[n].residence == RESIDE_NONE) || node->n_operands < 2 ||
            op_info(node->op)->kind != OPKIND_CONTRACT) {
            continue;
        }
        Dim *factor = ARENA_ARRAY(b->arena, node->n_labels + n_steps, Dim);
        for (uint32_t l = 0; l < node->n_labels + n_steps; l++) {
            factor[l] = l < node->n_labels ? node->extent[l] : steps[l - node->n_labels];
        }
        struct WorkTerm term = {node->n_labels + n_steps, factor};
        vec_push(b->arena, &work->list, term);
    }
    for (uint32_t k = 0; k < g->recurrences.n && n_steps < RANK_LIMIT; k++) {
        const Recurrence *r = g->recurrences.at[k];
        Dim inner[RANK_LIMIT];
        for (uint32_t i = 0; i < n_steps; i++) {
            inner[i] = steps[i];
        }
        inner[n_steps] = r->extent;
        add_work(b, r->body, NULL, n_steps + 1, inner, work);
    }
}

static void build_work(Builder *b)
{
    Work work = {0};
    add_work(b, b->g, b->nest->values, 0, NULL, &work);
    b->k->n_work = work.list.n;
    b->k->work = work.list.at;
}

static bool has_names(const Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (graph_node(g, n)->label_name != NULL) {
            return true;
        }
    }
    return false;
}

/* One nest of the kernel. */
static void build_nest(Builder *b, Block *to, const Nest *nest)
{
    b->nest = nest;
    Residence *residence = ARENA_ARRAY(b->arena, nest->graph->nodes.n, Residence);
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        residence[n] = nest->values[n].residence;
    }
    b->residence = residence;
    b->loop = ARENA_ARRAY(b->arena, nest->n_items, VarRef);
    b->start = ARENA_ARRAY(b->arena, nest->n_items, Affine);
    b->leaves = ARENA_ARRAY(b->arena, nest->n_items, Dim);
    b->names = has_names(nest->graph) ? graph_names(b->arena, nest->graph) : NULL;
    build_inputs(b);
    build_items(b, to, 0, nest->n_items);
    build_late_results(b, to);
}

/* A block for each nest of several. */
static void build_sizes(Builder *b, Block *to, const Nest *nest)
{
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        Block body = {0};
        Stmt *s = build_stmt(b, STMT_BLOCK, (Span){0}, NULL);
        build_nest(b, &body, nest->sizes[k].nest);
        s->when = &nest->sizes[k].when;
        s->body = body.list.at;
        s->n_body = body.list.n;
        vec_push(b->arena, &to->list, s);
    }
}

static Kernel *kernel_of_graph(Arena *arena, const Graph *g)
{
    Kernel *k = kernel_new(arena, g->name);
    k->span = g->span;
    k->sources = g->sources;
    k->signature = g->signature;
    k->statements = g->statements;
    k->ranks = g->ranks;
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        vec_push(arena, &k->dims.list, g->dims.list.at[d]);
    }
    return k;
}

static void begin_builder(Builder *b)
{
    const Graph *g = b->g;
    map_init(&b->locals, b->arena);
    b->storage = ARENA_ARRAY(b->arena, g->nodes.n, Place);
    b->accumulator = ARENA_ARRAY(b->arena, g->nodes.n, Place);
    b->running = ARENA_ARRAY(b->arena, g->nodes.n, Place);
    b->factor = ARENA_ARRAY(b->arena, g->online.n + 1, Place);
    b->result = ARENA_ARRAY(b->arena, g->results.n, BufRef);
    b->indefinite = build_indefinite_buffer(b);
    build_args(b);
}

static Kernel *end_builder(Builder *b, const Block *body)
{
    b->k->body = body->list.at;
    b->k->n_body = body->list.n;
    Kernel *k = kernel_numbered(b->arena, b->k);
    kernel_name_vars(k, &b->ctx->syms);
    return k;
}

/* A statement for each position, which has all expressions in it. */
static void build_required(Ctx *ctx, Arena *arena, const Graph *g, Kernel *k)
{
    const Graph *at = graph_positions(ctx, arena, g);
    if (at == NULL) {
        return;
    }
    NestValue *values = ARENA_ARRAY(arena, at->nodes.n, NestValue);
    for (NodeRef n = 0; n < at->nodes.n; n++) {
        bool input = graph_node(at, n)->op == OP_INPUT;
        values[n] =
            (NestValue){.residence = input ? RESIDE_ARGUMENT : RESIDE_INLINE, .result = -1};
    }
    Nest nest = {.graph = at, .values = values};
    Builder b = {.ctx = ctx, .arena = arena, .g = at, .nest = &nest};
    Block body = {0};
    Requirement *required = ARENA_ARRAY(arena, g->required.n, Requirement);
    b.k = kernel_of_graph(arena, at);
    b.names = has_names(at) ? graph_names(arena, at) : NULL;
    begin_builder(&b);
    build_inputs(&b);
    build_late_results(&b, &body);
    for (uint32_t r = 0; r < g->required.n; r++) {
        required[r] = g->required.at[r].what;
    }
    k->positions = end_builder(&b, &body);
    k->n_required = g->required.n;
    k->required = required;
}

static Kernel *lower(Ctx *ctx, Arena *arena, const Nest *nest, bool is_step)
{
    const Graph *g = nest->graph;
    Builder b = {.ctx = ctx, .arena = arena, .g = g, .nest = nest, .is_step = is_step};
    b.k = kernel_of_graph(arena, g);
    Block body = {0};
    begin_builder(&b);
    bool notes = b.indefinite != BUF_NONE && !is_step;
    if (notes) {
        build_definite_begin(&b, &body);
    }
    if (nest->n_sizes == 0) {
        build_nest(&b, &body, nest);
    } else {
        build_sizes(&b, &body, nest);
    }
    if (notes) {
        build_definite_end(&b, &body);
    }
    b.nest = nest;
    build_work(&b);
    build_required(ctx, arena, g, b.k);
    return end_builder(&b, &body);
}

Kernel *nest_lower(Ctx *ctx, Arena *arena, const Nest *nest)
{
    return lower(ctx, arena, nest, false);
}

Kernel *build_step(Ctx *ctx, Arena *arena, const Nest *nest)
{
    return lower(ctx, arena, nest, true);
}
