/* SPDX-License-Identifier: Apache-2.0 */
/* From a scheduled partition to a kernel of form LOOP_TILED. Mechanism only: every decision is
 * in the schedule and the partition.
 *
 * For each group: workspace for what leaves it, the neutral element into everything that is
 * folded over its loops, the loops, blocks on chip for what stays inside, then one or two tile
 * statements per node, inside the loops up to the last whose axis it has. A node's label is a
 * loop variable (axis cut to tile 1), a local index within the loop's tile (axis cut to a
 * larger tile), or a local index over the whole extent. Blocks have no dimension for axes cut
 * to 1, and are indexed relative to the start of the tile. */
#include <stdio.h>

#include "fuse/uses.h"
#include "loop/schedule.h"

/* How one label of the node being built is indexed. */
typedef struct Position {
    Affine at;       /* absolute position */
    Affine relative; /* within the tile; equals `at` when the label is not cut */
    bool dropped;    /* cut to 1: blocks have no such dimension */
    bool cut;
    int64_t tile;
    bool local; /* `at` is the local index `var` over `range` */
    VarRef var;
    Range range;
} Position;

typedef struct Builder {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    const Partition *p;
    const Schedule *s;
    Kernel *k;
    BufRef *storage;     /* [nodes]: where the value is read */
    BufRef *accumulator; /* [nodes]: where it is folded, when that is another buffer */
    BufRef *result;      /* [results] */
    VEC(VarRef) locals;  /* local index for label 0, 1, ... : shared by all statements */
    /* the group being built */
    const Group *group;
    const GroupSchedule *plan;
    VarRef *loop; /* [plan->n_axes] */
} Builder;

typedef struct Block {
    VEC(Stmt *) list;
} Block;

#define BUF_NONE UINT32_MAX

static VarRef local_var(Builder *b, uint32_t label)
{
    while (b->locals.n <= label) {
        char name[16];
        uint32_t l = b->locals.n;
        if (l < 26) {
            name[0] = (char)('a' + l);
            name[1] = '\0';
        } else {
            (void)snprintf(name, sizeof name, "l%u", l);
        }
        VarRef v = kernel_var(b->k, &b->ctx->syms, name, false);
        vec_push(b->arena, &b->locals, v);
    }
    return b->locals.at[label];
}

/* The axis of the plan that cuts label `l` of the group's node number `at`, or -1. */
static int32_t cutting_axis(const Builder *b, uint32_t at, int32_t l)
{
    for (uint32_t x = 0; x < b->plan->n_axes; x++) {
        if (b->group->axes[b->plan->axes[x].axis].label[at] == l) {
            return (int32_t)x;
        }
    }
    return -1;
}

static Position whole_position(Builder *b, uint32_t label, Dim extent)
{
    Position p = {.local = true};
    p.var = local_var(b, label);
    p.range = range_whole(extent);
    p.at = affine_var(b->arena, p.var);
    p.relative = p.at;
    return p;
}

static Position label_position(Builder *b, const Node *n, uint32_t at, uint32_t label)
{
    int32_t x = cutting_axis(b, at, (int32_t)label);
    if (x < 0) {
        return whole_position(b, label, n->extent[label]);
    }
    Affine start = affine_var(b->arena, b->loop[x]);
    Position p = {.cut = true, .tile = b->plan->axes[x].tile};
    if (p.tile == 1) {
        p.dropped = true;
        p.at = start;
        return p;
    }
    p.local = true;
    p.var = local_var(b, label);
    p.range =
        (Range){.start = start, .span = p.tile, .clipped = true, .limit = n->extent[label]};
    p.at = affine_var(b->arena, p.var);
    p.relative = affine_add(b->arena, p.at, -1, start);
    return p;
}

static Position *node_positions(Builder *b, NodeRef node, uint32_t at)
{
    const Node *n = graph_node(b->g, node);
    Position *list = ARENA_ARRAY(b->arena, n->n_labels, Position);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        list[l] = label_position(b, n, at, l);
    }
    return list;
}

/* Indices of buffer `buf`, which holds a value read or written at `index`. */
static const Affine *buffer_at(Builder *b, BufRef buf, Access access, const Position *pos,
                               const bool *dropped)
{
    const Buffer *buffer = &b->k->bufs.at[buf];
    Affine *at = ARENA_ARRAY(b->arena, buffer->rank, Affine);
    uint32_t out = 0;
    for (uint32_t d = 0; d < access.rank; d++) {
        Index index = access.index[d];
        if (buffer->space == SPACE_TILE && dropped != NULL && dropped[d]) {
            continue;
        }
        if (index.label < 0) {
            at[out++] = affine_const(index.offset);
            continue;
        }
        const Position *p = &pos[index.label];
        Affine x = buffer->space == SPACE_TILE ? p->relative : p->at;
        at[out++] = affine_add(b->arena, affine_const(index.offset), 1, x);
    }
    CHECK(out == buffer->rank);
    return at;
}

/* Which dimensions of a node's block are dropped: those cut to 1 by the group's loops. */
static bool *dropped_dims(Builder *b, NodeRef node)
{
    const Node *n = graph_node(b->g, node);
    bool *dropped = ARENA_ARRAY(b->arena, n->rank, bool);
    uint32_t at = 0;
    while (at < b->group->n_nodes && b->group->nodes[at] != node) {
        at++;
    }
    for (uint32_t d = 0; at < b->group->n_nodes && d < n->rank; d++) {
        int32_t x = cutting_axis(b, at, n->out[d]);
        dropped[d] = x >= 0 && b->plan->axes[x].tile == 1;
    }
    return dropped;
}

/* ---- expressions ---- */

static const Expr *build_expr(Builder *b, NodeRef node, Access access, const Position *pos);

static const Expr *build_operation(Builder *b, const Node *n, Access access,
                                   const Position *pos)
{
    const Expr **arg = ARENA_ARRAY(b->arena, n->n_operands, const Expr *);
    for (uint32_t i = 0; i < n->n_operands; i++) {
        arg[i] = build_expr(b, n->operand[i], access_compose(b->arena, n, n->access[i], access),
                            pos);
    }
    if (op_info(n->op)->kind == OPKIND_MAP) {
        return n->op == OP_COPY ? arg[0]
                                : expr_op(b->arena, n->op, n->dtype, n->n_operands, arg);
    }
    const Expr *product = expr_cast(b->arena, arg[0], n->dtype);
    for (uint32_t i = 1; i < n->n_operands; i++) {
        const Expr *pair[2] = {product, expr_cast(b->arena, arg[i], n->dtype)};
        product =
            expr_op(b->arena, n->dtype == DTYPE_BOOL ? OP_AND : OP_MUL, n->dtype, 2, pair);
    }
    return product;
}

static const Expr *build_expr(Builder *b, NodeRef node, Access access, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    if (n->op == OP_CONST) {
        return expr_const(b->arena, n->value);
    }
    if (n->op == OP_EXTENT) {
        Expr *e = ARENA_NEW(b->arena, Expr);
        *e = (Expr){.kind = EXPR_EXTENT, .dtype = n->dtype, .dim = n->dim};
        return e;
    }
    if (b->p->residence[node] == RESIDE_INLINE) {
        return build_operation(b, n, access, pos);
    }
    BufRef buf = b->storage[node];
    CHECK(buf != BUF_NONE);
    return expr_load(b->arena, b->k, buf,
                     buffer_at(b, buf, access, pos, dropped_dims(b, node)));
}

/* The value of one step of node `n`: what it assigns, or what joins its fold. */
static const Expr *node_value(Builder *b, const Node *n, const Position *pos)
{
    Index *index = ARENA_ARRAY(b->arena, n->n_labels, Index);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        index[l] = (Index){(int32_t)l, 0};
    }
    const Expr *value = NULL;
    bool fold = !node_is_expression(n);
    DType t = fold ? n->acc : n->dtype;
    const Expr **arg = ARENA_ARRAY(b->arena, n->n_operands, const Expr *);
    for (uint32_t i = 0; i < n->n_operands; i++) {
        arg[i] = build_expr(b, n->operand[i], n->access[i], pos);
    }
    if (op_info(n->op)->kind == OPKIND_MAP) {
        return n->op == OP_COPY ? arg[0]
                                : expr_op(b->arena, n->op, n->dtype, n->n_operands, arg);
    }
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const Expr *x = expr_cast(b->arena, arg[i], t);
        const Expr *pair[2] = {value, x};
        value = value == NULL
                    ? x
                    : expr_op(b->arena, t == DTYPE_BOOL ? OP_AND : OP_MUL, t, 2, pair);
    }
    return value;
}

static Op node_fold(const Node *n)
{
    if (op_info(n->op)->kind == OPKIND_CONTRACT) {
        return n->acc == DTYPE_BOOL ? OP_ANY : OP_SUM;
    }
    return n->op;
}

/* ---- statements ---- */

static Stmt *stmt_new(Builder *b, StmtKind kind, Span span, Sym name)
{
    Stmt *s = ARENA_NEW(b->arena, Stmt);
    s->kind = kind;
    s->span = span;
    s->name = name;
    s->fold = OP_COPY;
    return s;
}

static void emit_alloc(Builder *b, Block *to, BufRef buf)
{
    Stmt *s = stmt_new(b, STMT_ALLOC, b->k->bufs.at[buf].span, NULL);
    s->buf = buf;
    vec_push(b->arena, &to->list, s);
}

/* A tile statement over the labels of `n` (those of its output only, unless `all`). */
static Stmt *emit_tile(Builder *b, Block *to, const Node *n, const Position *pos, bool all)
{
    Stmt *s = stmt_new(b, STMT_TILE, n->span, n->name);
    TileIndex *index = ARENA_ARRAY(b->arena, n->n_labels, TileIndex);
    for (uint32_t pass = 0; pass < 2; pass++) {
        /* output labels in output order, then the reduced ones */
        uint32_t count = pass == 0 ? n->rank : all ? n->n_labels : 0;
        for (uint32_t i = 0; i < count; i++) {
            int32_t l = pass == 0 ? n->out[i] : (int32_t)i;
            if (pos[l].local && (pass == 0 || node_reduces(n, l))) {
                index[s->n_index++] =
                    (TileIndex){.var = pos[l].var, .range = pos[l].range, .mode = MODE_LOOP};
            }
        }
    }
    s->index = index;
    vec_push(b->arena, &to->list, s);
    return s;
}

static Access output_access(Builder *b, const Node *n)
{
    Index *index = ARENA_ARRAY(b->arena, n->rank, Index);
    for (uint32_t d = 0; d < n->rank; d++) {
        index[d] = (Index){n->out[d], 0};
    }
    return (Access){n->rank, index};
}

static void set_dst(Builder *b, Stmt *s, const Node *n, BufRef buf, const Position *pos,
                    const bool *dropped)
{
    s->dst = buf;
    s->at = buffer_at(b, buf, output_access(b, n), pos, dropped);
}

static void emit_fill(Builder *b, Block *to, NodeRef node, BufRef buf, const Position *pos,
                      const bool *dropped)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = emit_tile(b, to, n, pos, false);
    set_dst(b, s, n, buf, pos, dropped);
    s->value = expr_const(b->arena, op_neutral(node_fold(n), n->acc));
}

/* dst = (dtype) accumulator */
static void emit_convert(Builder *b, Block *to, NodeRef node, const Position *pos,
                         const bool *dropped)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = emit_tile(b, to, n, pos, false);
    set_dst(b, s, n, b->storage[node], pos, dropped);
    BufRef acc = b->accumulator[node];
    const Affine *at = buffer_at(b, acc, output_access(b, n), pos, dropped);
    s->value = expr_cast(b->arena, expr_load(b->arena, b->k, acc, at), n->dtype);
}

static bool folds_over_loops(const Builder *b, NodeRef node, uint32_t at)
{
    const Node *n = graph_node(b->g, node);
    for (uint32_t x = 0; x < b->plan->n_axes; x++) {
        int32_t l = b->group->axes[b->plan->axes[x].axis].label[at];
        if (l >= 0 && node_reduces(n, l)) {
            return true;
        }
    }
    return false;
}

static BufRef fold_target(const Builder *b, NodeRef node)
{
    return b->accumulator[node] != BUF_NONE ? b->accumulator[node] : b->storage[node];
}

static void build_node(Builder *b, Block *to, NodeRef node, uint32_t at)
{
    const Node *n = graph_node(b->g, node);
    Position *pos = node_positions(b, node, at);
    bool *dropped = dropped_dims(b, node);
    bool fold = !node_is_expression(n);
    bool outer = fold && folds_over_loops(b, node, at);
    BufRef dst = fold ? fold_target(b, node) : b->storage[node];
    if (fold && !outer) {
        emit_fill(b, to, node, dst, pos, dropped);
    }
    Stmt *s = emit_tile(b, to, n, pos, true);
    set_dst(b, s, n, dst, pos, dropped);
    s->value = node_value(b, n, pos);
    s->fold = fold ? node_fold(n) : OP_COPY;
    if (fold && !outer && dst != b->storage[node]) {
        emit_convert(b, to, node, pos, dropped);
    }
}

/* ---- buffers ---- */

static const char *node_hint(const Node *n)
{
    return n->name == NULL ? "t" : n->name->text;
}

static BufRef whole_buffer(Builder *b, const Node *n, DType t, const char *hint)
{
    BufRef buf =
        kernel_buffer(b->k, &b->ctx->syms, hint, t, SPACE_WORKSPACE, n->rank, n->shape);
    b->k->bufs.at[buf].span = n->span;
    return buf;
}

static BufRef block_buffer(Builder *b, NodeRef node, uint32_t at, DType t, const char *hint)
{
    const Node *n = graph_node(b->g, node);
    Dim *extent = ARENA_ARRAY(b->arena, n->rank, Dim);
    uint32_t rank = 0;
    for (uint32_t d = 0; d < n->rank; d++) {
        int32_t x = cutting_axis(b, at, n->out[d]);
        int64_t tile = x < 0 ? 0 : b->plan->axes[x].tile;
        if (tile == 1) {
            continue;
        }
        bool smaller = n->shape[d].sym < 0 && n->shape[d].n <= tile;
        extent[rank++] = x < 0 || smaller ? n->shape[d] : dim_fixed(tile);
    }
    BufRef buf = kernel_buffer(b->k, &b->ctx->syms, hint, t, SPACE_TILE, rank, extent);
    b->k->bufs.at[buf].span = n->span;
    b->k->bufs.at[buf].may_spill = n->allow_spill;
    return buf;
}

/* Buffers of the group's values: workspace before the loops (`before`), blocks inside as many
 * loops as the node (`inside`). */
static void build_buffers(Builder *b, uint32_t number, Block *before, Block *insides)
{
    for (uint32_t at = 0; at < b->group->n_nodes; at++) {
        Block *inside = &insides[schedule_depth(b->s, number, at)];
        NodeRef node = b->group->nodes[at];
        const Node *n = graph_node(b->g, node);
        bool fold = !node_is_expression(n);
        bool outer = fold && folds_over_loops(b, node, at);
        if (b->p->residence[node] == RESIDE_WORKSPACE) {
            b->storage[node] = whole_buffer(b, n, n->dtype, node_hint(n));
            emit_alloc(b, before, b->storage[node]);
        } else if (b->p->residence[node] == RESIDE_TILE) {
            b->storage[node] = block_buffer(b, node, at, n->dtype, node_hint(n));
            emit_alloc(b, inside, b->storage[node]);
        } else {
            b->storage[node] = b->result[b->p->result_of[node]];
        }
        if (fold && n->acc != n->dtype) {
            b->accumulator[node] = outer ? whole_buffer(b, n, n->acc, "acc")
                                         : block_buffer(b, node, at, n->acc, "acc");
            emit_alloc(b, outer ? before : inside, b->accumulator[node]);
        }
    }
}

static void append(Builder *b, Block *to, const Block *from)
{
    for (uint32_t i = 0; i < from->list.n; i++) {
        vec_push(b->arena, &to->list, from->list.at[i]);
    }
}

/* Statements outside the loops of the group see no cut labels. */
static Position *uncut_positions(Builder *b, NodeRef node)
{
    const Node *n = graph_node(b->g, node);
    Position *list = ARENA_ARRAY(b->arena, n->n_labels, Position);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        list[l] = whole_position(b, l, n->extent[l]);
    }
    return list;
}

static void build_group(Builder *b, Block *to, uint32_t number)
{
    static const char *const loop_names[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
    b->group = &b->p->groups[number];
    b->plan = &b->s->groups[number];
    b->loop = ARENA_ARRAY(b->arena, b->plan->n_axes, VarRef);
    for (uint32_t x = 0; x < b->plan->n_axes; x++) {
        b->loop[x] = kernel_var(b->k, &b->ctx->syms, loop_names[x < 8 ? x : 7], true);
    }
    Block *inside = ARENA_ARRAY(b->arena, (size_t)b->plan->n_axes + 1, Block), after = {0};
    build_buffers(b, number, to, inside);
    for (uint32_t at = 0; at < b->group->n_nodes; at++) {
        NodeRef node = b->group->nodes[at];
        const Node *n = graph_node(b->g, node);
        if (!node_is_expression(n) && folds_over_loops(b, node, at)) {
            Position *pos = uncut_positions(b, node);
            emit_fill(b, to, node, fold_target(b, node), pos, NULL);
            if (b->accumulator[node] != BUF_NONE) {
                emit_convert(b, &after, node, pos, NULL);
            }
        }
        build_node(b, &inside[schedule_depth(b->s, number, at)], node, at);
    }
    for (uint32_t x = b->plan->n_axes; x-- > 0;) {
        const AxisSchedule *axis = &b->plan->axes[x];
        NodeRef first = b->group->nodes[0];
        Stmt *loop = stmt_new(b, STMT_FOR, graph_node(b->g, first)->span, NULL);
        loop->var = b->loop[x];
        loop->range = range_whole(b->group->axes[axis->axis].extent);
        loop->step = axis->tile;
        loop->part = FOR_ALL;
        loop->parallel = axis->parallel;
        loop->body = inside[x + 1].list.at;
        loop->n_body = inside[x + 1].list.n;
        vec_push(b->arena, &inside[x].list, loop);
    }
    append(b, to, &inside[0]);
    append(b, to, &after);
}

/* ---- the kernel ---- */

static void build_args(Builder *b)
{
    const Graph *g = b->g;
    Kernel *k = b->k;
    BufRef *param = ARENA_ARRAY(b->arena, g->params.n, BufRef);
    for (uint32_t i = 0; i < g->params.n; i++) {
        const Param *p = &g->params.at[i];
        param[i] = kernel_buffer(k, &b->ctx->syms, p->name->text, p->dtype, SPACE_ARGUMENT,
                                 p->rank, p->shape);
        k->bufs.at[param[i]].span = p->span;
        k->bufs.at[param[i]].param = (int32_t)i;
        Arg arg = {.role = p->role == PARAM_SCALAR  ? ARG_SCALAR
                           : p->role == PARAM_INOUT ? ARG_INOUT
                                                    : ARG_IN,
                   .buf = param[i]};
        vec_push(b->arena, &k->args, arg);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        const Result *result = &g->results.at[r];
        const Node *n = graph_node(g, result->node);
        if (result->param >= 0) {
            b->result[r] = param[result->param];
            continue;
        }
        b->result[r] = kernel_buffer(k, &b->ctx->syms, result->name->text, n->dtype,
                                     SPACE_ARGUMENT, n->rank, n->shape);
        k->bufs.at[b->result[r]].span = result->span;
        k->bufs.at[b->result[r]].param = (int32_t)k->args.n;
        Arg arg = {.role = ARG_RESULT, .buf = b->result[r]};
        vec_push(b->arena, &k->args, arg);
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        b->storage[n] = BUF_NONE;
        b->accumulator[n] = BUF_NONE;
        if (graph_node(g, n)->op == OP_INPUT) {
            b->storage[n] = param[graph_node(g, n)->param];
        }
    }
}

/* Results that no node wrote straight: a parameter or constant as it is, a value delivered
 * twice, or an inout parameter whose old value was needed until now. Plain results first: they
 * may still read old values. */
static void build_late_results(Builder *b, Block *to)
{
    static const Group no_group = {0};
    static const GroupSchedule no_plan = {0};
    b->group = &no_group;
    b->plan = &no_plan;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < b->g->results.n; r++) {
            const Result *result = &b->g->results.at[r];
            const Node *n = graph_node(b->g, result->node);
            bool unchanged =
                result->param >= 0 && n->op == OP_INPUT && n->param == (uint32_t)result->param;
            if (b->p->result_of[result->node] == (int32_t)r || unchanged ||
                (result->param >= 0) != (pass == 1)) {
                continue;
            }
            Stmt *s = stmt_new(b, STMT_TILE, result->span, result->name);
            Position *pos = ARENA_ARRAY(b->arena, n->rank, Position);
            Index *index = ARENA_ARRAY(b->arena, n->rank, Index);
            TileIndex *tile = ARENA_ARRAY(b->arena, n->rank, TileIndex);
            for (uint32_t d = 0; d < n->rank; d++) {
                pos[d] = whole_position(b, d, n->shape[d]);
                index[d] = (Index){(int32_t)d, 0};
                tile[d] = (TileIndex){.var = pos[d].var, .range = pos[d].range};
            }
            Access access = {n->rank, index};
            s->n_index = n->rank;
            s->index = tile;
            s->dst = b->result[r];
            s->at = buffer_at(b, s->dst, access, pos, NULL);
            s->value = build_expr(b, result->node, access, pos);
            vec_push(b->arena, &to->list, s);
        }
    }
}

static void build_work(Builder *b)
{
    VEC(struct WorkTerm) work = {0};
    for (NodeRef n = 0; n < b->g->nodes.n; n++) {
        const Node *node = graph_node(b->g, n);
        if (b->p->residence[n] == RESIDE_NONE || node->n_operands < 2 ||
            op_info(node->op)->kind != OPKIND_CONTRACT) {
            continue;
        }
        struct WorkTerm term = {
            node->n_labels, arena_copy(b->arena, node->extent, node->n_labels * sizeof(Dim))};
        vec_push(b->arena, &work, term);
    }
    b->k->n_work = work.n;
    b->k->work = work.at;
}

Kernel *loop_build(Ctx *ctx, Arena *arena, const Schedule *s)
{
    const Graph *g = s->partition->graph;
    Builder b = {.ctx = ctx, .arena = arena, .g = g, .p = s->partition, .s = s};
    b.k = kernel_new(arena, g->name);
    b.k->span = g->span;
    b.k->sources = g->sources;
    b.k->signature = g->signature;
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        vec_push(arena, &b.k->dims.list, g->dims.list.at[d]);
    }
    b.storage = ARENA_ARRAY(arena, g->nodes.n, BufRef);
    b.accumulator = ARENA_ARRAY(arena, g->nodes.n, BufRef);
    b.result = ARENA_ARRAY(arena, g->results.n, BufRef);
    build_args(&b);
    Block body = {0};
    for (uint32_t group = 0; group < s->partition->n_groups; group++) {
        build_group(&b, &body, group);
    }
    build_late_results(&b, &body);
    build_work(&b);
    b.k->body = body.list.at;
    b.k->n_body = body.list.n;
    return kernel_numbered(arena, b.k);
}
