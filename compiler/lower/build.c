/* SPDX-License-Identifier: Apache-2.0 */
/* From a nest to a kernel of form LOOP_TILED. Mechanism only: every decision is in the nest.
 *
 * Each loop of the tree becomes a loop, each leaf one or two tile statements. A buffer is
 * allocated in the body of its value's allocation loop, right before the first item that uses it. A fold
 * begins (loop.h); but what is folded over loops gets its neutral element before the outermost of
 * these, and goes on. What is folded in another type is converted at its end. What begins with another value goes on with
 * what is there. A block has no dimension where a loop at or around its allocation loop cuts to 1, and is
 * indexed relative to the start of that loop's tile. */
#include "lower/build.h"
#include "nest/masks.h"
#include "nest/uses.h"

/* ---- statements ---- */

/* dst = (dtype) accumulator */
static void emit_convert(Builder *b, Block *to, NodeRef node, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, b->storage[node], pos);
    Place acc = b->accumulator[node];
    const Affine *at = build_at(b, acc, node, node_own_access(b->arena, n), pos);
    s->value = expr_cast(b->arena, expr_load(b->arena, b->k, acc.buf, at), n->dtype);
}

/* The node's schedule, in the indices of its statement. */
static const Schedule *build_schedule(Builder *b, NodeRef node, const Stmt *s,
                                      const Position *pos)
{
    const Schedule *from = b->nest->values[node].schedule;
    if (from == NULL) {
        return NULL;
    }
    Schedule *to = arena_copy(b->arena, from, sizeof *from);
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        uint32_t *index = ARENA_ARRAY(b->arena, from->n_labels[r], uint32_t);
        for (uint32_t i = 0; i < from->n_labels[r]; i++) {
            VarRef v = pos[from->label[r][i]].var;
            while (s->index[index[i]].var != v) {
                index[i]++;
                CHECK(index[i] < s->n_index);
            }
        }
        to->label[r] = index;
    }
    return to;
}

/* Does the node sum over a loop at or around `scope` that has each pair once? */
static bool is_weighted(const Builder *b, NodeRef node, uint32_t scope)
{
    for (uint32_t at = scope; at != NEST_NONE; at = b->nest->items[at].parent) {
        if (b->nest->items[at].from != 0 && nest_folds_over(b->nest, at, node)) {
            return true;
        }
    }
    return false;
}

/* How often what is summed in type `t` counts. */
static void set_weight(Builder *b, Block *to, DType t, const Expr *value)
{
    Stmt *s = build_stmt(b, STMT_TILE, (Span){0}, NULL);
    s->dst = b->weight[t];
    s->value = value;
    vec_push(b->arena, &to->list, s);
}

static const Expr *weight_of(Builder *b, DType t, int64_t value)
{
    return expr_const(b->arena, number_int(t, value));
}

/* In any iteration of the loop over pairs `k`, whichever was before: 1 on the diagonal, else 2. */
static const Expr *weight_of_pair(Builder *b, DType t, uint32_t k)
{
    const uint32_t loop[2] = {b->nest->items[k].from - 1, k};
    const Expr *number[2];
    for (uint32_t i = 0; i < 2; i++) {
        number[i] = expr_index(b->arena, DTYPE_I64, affine_var(b->arena, b->loop[loop[i]]));
    }
    const Expr *choice[3] = {expr_op(b->arena, OP_LT, DTYPE_BOOL, 2, number),
                             weight_of(b, t, 2), weight_of(b, t, 1)};
    return expr_op(b->arena, OP_SELECT, t, 3, choice);
}

/* Weights for the sums of a loop over pairs: 1 in its first tile, which is the diagonal's. `alone`: in its body, for each iteration. */
static void begin_weights(Builder *b, Block *to, uint32_t k, bool alone, bool *used)
{
    for (uint32_t i = k + 1; i < b->nest->items[k].end; i++) {
        const NestItem *item = &b->nest->items[i];
        if (!nest_is_loop(item) && is_weighted(b, item->node, item->parent)) {
            used[graph_node(b->g, item->node)->acc] = true;
        }
    }
    for (DType t = 0; t < DTYPE_COUNT; t++) {
        if (used[t]) {
            b->weight[t] = kernel_buffer(b->k, &b->ctx->syms, "weight", t, SPACE_TILE, 0, NULL);
            build_alloc(b, to, b->weight[t]);
            set_weight(b, to, t, alone ? weight_of_pair(b, t, k) : weight_of(b, t, 1));
        }
    }
}

/* What one pair of tiles adds to a sum over pairs, in a place of its own. */
static Place begin_part(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    Place part = build_buffer(b, node, scope, SPACE_TILE, graph_node(b->g, node)->acc, "part");
    build_alloc(b, to, part.buf);
    return part;
}

/* It joins the sum as often as it counts. */
static void end_part(Builder *b, Block *to, NodeRef node, Place sum, Place part,
                     const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, sum, pos);
    const Affine *at = build_at(b, part, node, node_own_access(b->arena, n), pos);
    const Expr *pair[2] = {expr_load(b->arena, b->k, b->weight[n->acc], NULL),
                           expr_load(b->arena, b->k, part.buf, at)};
    s->value = expr_op(b->arena, OP_MUL, n->acc, 2, pair);
    s->fold = build_fold(n);
    s->begins = !build_goes_on(b, node);
}

/* A statement for each piece, over the piece's dimensions. */
void build_join(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    (void)scope;
    const Node *n = graph_node(b->g, node);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Node *o = graph_node(b->g, n->operand[k]);
        bool empty = false;
        for (uint32_t d = 0; d < o->rank; d++) {
            empty = empty || dim_is(o->shape[d], 0);
        }
        if (empty) { /* its indices may move nothing: an index times a dim that is 0 */
            continue;
        }
        Position *pos = ARENA_ARRAY(b->arena, o->rank, Position);
        TileIndex *index = ARENA_ARRAY(b->arena, o->rank, TileIndex);
        Index *own = ARENA_ARRAY(b->arena, o->rank, Index);
        for (uint32_t d = 0; d < o->rank; d++) {
            pos[d] = build_dimension_position(b, n->operand[k], d);
            index[d] = (TileIndex){.var = pos[d].var, .range = pos[d].range};
            own[d] = (Index){(int32_t)d, 0};
        }
        Stmt *s = build_stmt(b, STMT_TILE, n->span, n->name);
        s->n_index = o->rank;
        s->index = index;
        s->dst = b->storage[node].buf;
        s->at =
            build_affine(b, n->rank, n->at + (size_t)k * n->rank, (Access){o->rank, own}, pos);
        s->value = build_expr(b, n->operand[k], (Access){o->rank, own}, pos);
        s->fold =
            n->op == OP_UPDATE && k > 0 ? (n->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM) : OP_COPY;
        vec_push(b->arena, &to->list, s);
    }
}

/* What a contraction begins with, if it is not there yet. */
static void build_init(Builder *b, Block *to, NodeRef node, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    if (nest_begins_there(b->nest, node)) {
        return;
    }
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, build_target(b, node), pos);
    s->value = build_expr(b, node_init(n), n->access[n->n_operands - 1], pos);
}

Stmt *build_at_positions(Builder *b, Block *to, NodeRef node, uint32_t scope,
                         const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    bool fold = !node_is_expression(n);
    bool outer = fold && b->nest->values[node].fold != NEST_NONE;
    Place dst = fold ? build_target(b, node) : b->storage[node];
    bool counts = is_weighted(b, node, scope);
    Place part = counts ? begin_part(b, to, node, scope) : dst;
    if (n->onto && !outer) {
        build_init(b, to, node, pos);
    }
    Stmt *s = build_tile(b, to, n, pos, true);
    build_dst(b, s, node, part, pos);
    s->value = build_value(b, n, pos);
    s->fold = fold ? build_fold(n) : OP_COPY;
    s->begins = counts || (fold && !n->onto && !build_goes_on(b, node));
    s->schedule = build_schedule(b, node, s, pos);
    if (counts) {
        end_part(b, to, node, dst, part, pos);
    }
    if (fold && !outer && dst.buf != b->storage[node].buf) {
        emit_convert(b, to, node, pos);
    }
    return s;
}

void build_plain(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    (void)build_at_positions(b, to, node, scope, build_positions(b, node, scope));
}

/* ---- buffers of values ---- */

/* The loop in whose body the fold begins and ends. */
static uint32_t fold_scope(const Builder *b, NodeRef node)
{
    const NestValue *v = &b->nest->values[node];
    return v->fold != NEST_NONE ? b->nest->items[v->fold].parent
                                : b->nest->items[v->item].parent;
}

/* Buffers of `node` that live in the body of loop `scope`. */
static void build_buffers(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    const Node *n = graph_node(b->g, node);
    const NestValue *v = &b->nest->values[node];
    bool fold = !node_is_expression(n);
    if (v->residence ==
        RESIDE_INTO) { /* the place of a later one, which the first of them needs */
        NodeRef last = nest_place_of(b->nest, node);
        if (b->storage[last].buf == BUF_NONE) {
            build_storage(b, to, last, scope);
        }
        b->storage[node] = b->storage[last];
    } else if (b->storage[node].buf == BUF_NONE) {
        build_storage(b, to, node, scope);
    }
    if (fold && n->acc != n->dtype && fold_scope(b, node) == scope) {
        /* Folded over all loops around it: nothing but the chip's memory bounds its block. */
        bool tile = scope != NEST_NONE || v->fold == NEST_NONE;
        b->accumulator[node] =
            build_buffer(b, node, scope, tile ? SPACE_TILE : SPACE_WORKSPACE, n->acc, "acc");
        build_alloc(b, to, b->accumulator[node].buf);
    }
}

/* ---- items ---- */

/* Folds over item `k` of the body of loop `scope` begin before it, if no leaves of it are joined, and end after it. */
static void build_folds(Builder *b, Block *to, uint32_t k, bool begin)
{
    const Nest *nest = b->nest;
    for (uint32_t i = k; i < nest->items[k].end; i++) {
        NodeRef node = nest->items[i].node;
        if (nest_is_loop(&nest->items[i]) || nest->values[node].fold != k) {
            continue;
        }
        Position *pos = build_positions(b, node, nest->items[k].parent);
        if (begin && nest->items[k].parallel) {
            continue;
        }
        if (begin && graph_node(b->g, node)->onto) {
            build_init(b, to, node, pos);
        } else if (begin) {
            build_fill(b, to, node, build_target(b, node), pos);
        } else if (b->accumulator[node].buf != BUF_NONE) {
            emit_convert(b, to, node, pos);
        }
    }
}

/* A value of the loop over pairs `k` once more, at the mirrored place: all that lies behind the diagonal's tile. */
static void build_mirror(Builder *b, Block *to, NodeRef node, uint32_t k)
{
    const Node *n = graph_node(b->g, node);
    const NestItem *inner = &b->nest->items[k], *outer = &b->nest->items[inner->from - 1];
    int32_t x = nest_axis_label(&b->nest->axes[outer->axis], node);
    int32_t y = nest_axis_label(&b->nest->axes[inner->axis], node);
    Position *pos = build_positions(b, node, inner->parent);
    const Generator *mirror = NULL;
    for (uint32_t i = 0; i < n->n_generators && mirror == NULL; i++) {
        for (uint32_t d = 0; d < n->rank; d++) {
            bool is = n->out[d] == x && n->out[n->generator[i].to[d]] == y;
            mirror = is ? &n->generator[i] : mirror;
        }
    }
    CHECK(mirror != NULL);
    pos[y] = build_whole_position(b, node, (uint32_t)y, n->extent[y]);
    pos[y].range.start =
        affine_add(b->arena, b->start[inner->from - 1], 1, affine_const(outer->tile));
    Access from = node_own_access(b->arena, n);
    Index *index = ARENA_ARRAY(b->arena, n->rank, Index);
    for (uint32_t d = 0; d < n->rank; d++) {
        index[d] = from.index[mirror->to[d]];
    }
    Stmt *s = build_tile(b, to, n, pos, false);
    s->dst = b->storage[node].buf;
    s->at = build_at(b, b->storage[node], node, (Access){n->rank, index}, pos);
    s->value =
        expr_load(b->arena, b->k, s->dst, build_at(b, b->storage[node], node, from, pos));
    if (mirror->conj) {
        s->value = expr_op(b->arena, OP_CONJ, n->dtype, 1, &s->value);
    }
    if (mirror->sign < 0) {
        s->value = expr_op(b->arena, OP_NEG, n->dtype, 1, &s->value);
    }
}

/* After the loop over pairs `k`. */
static void build_mirrors(Builder *b, Block *to, uint32_t k)
{
    for (uint32_t i = k + 1; i < b->nest->items[k].end; i++) {
        if (b->nest->items[i].mirror) {
            build_mirror(b, to, b->nest->items[i].node, k);
        }
    }
}

/* Where loop `k` has anything to do, or null: everywhere. */
static const Window *build_window(Builder *b, uint32_t k)
{
    MaskWindow mask = nest_mask_window(b->arena, b->nest, k);
    Window *w = ARENA_NEW(b->arena, Window);
    *w = (Window){mask.has_lo, mask.has_hi, affine_const(0), affine_const(0)};
    for (uint32_t side = 0; side < 2; side++) {
        Affine x = side == 0 ? mask.lo : mask.hi, at = affine_const(x.base);
        for (uint32_t i = 0; (side == 0 ? mask.has_lo : mask.has_hi) && i < x.n; i++) {
            VarRef v = x.term[i].var;
            at = affine_add(b->arena, at, x.term[i].coef,
                            affine_is_dim(v) ? affine_var(b->arena, v) : b->start[v]);
        }
        *(side == 0 ? &w->lo : &w->hi) = at;
    }
    return mask.has_lo || mask.has_hi ? w : NULL;
}

static void build_loop(Builder *b, Block *to, uint32_t k)
{
    static const char *const names[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
    const NestItem *item = &b->nest->items[k];
    uint32_t depth = nest_depth(b->nest->items, item->parent);
    const NestAxis *axis = &b->nest->axes[item->axis];
    Stmt *loop = build_stmt(b, STMT_FOR, graph_node(b->g, axis->node[0])->span, NULL);
    Block body = {0};
    bool weights[DTYPE_COUNT] = {0};
    const char *name =
        build_name(b, axis->node[0], (uint32_t)axis->label[0], names[depth < 8 ? depth : 7]);
    b->loop[k] = kernel_var(b->k, &b->ctx->syms, name, true);
    b->start[k] = affine_var(b->arena, b->loop[k]);
    bool leaves = build_has_leaves(b, k);
    Leaves own;
    if (leaves) {
        build_leaves_open(b, to, k, &own);
    }
    Leaves *sums = b->open != NULL && (leaves || b->open->inner == k) ? b->open : NULL;
    bool pairs = sums != NULL && !leaves; /* counted from the outer loop's number on */
    if (sums != NULL) {
        b->start[k] = affine_add(b->arena, affine_const(0), item->tile, b->start[k]);
    }
    if (item->from != 0) {
        begin_weights(b, pairs ? &body : to, k, pairs, weights);
    }
    if (sums != NULL && sums->inner == k) {
        build_leaves_begin(b, &body, sums);
    }
    build_items(b, &body, k + 1, item->end);
    if (sums != NULL && sums->inner == k) {
        build_leaves_end(b, &body, sums);
    }
    for (DType t = 0; t < DTYPE_COUNT; t++) {
        if (weights[t] && !pairs) {
            set_weight(b, &body, t, weight_of(b, t, 2));
        }
    }
    loop->var = b->loop[k];
    loop->range = range_whole(sums != NULL ? b->leaves[k] : axis->extent);
    if (item->from != 0) {
        loop->range.start =
            pairs ? affine_var(b->arena, b->loop[item->from - 1]) : b->start[item->from - 1];
    }
    for (uint32_t p = item->parent; p != NEST_NONE; p = b->nest->items[p].parent) {
        if (b->nest->items[p].axis == item->axis) { /* a tile of a tile */
            loop->range.start = b->start[p];
            loop->range.span = b->nest->items[p].tile;
            break;
        }
    }
    loop->window = build_window(b, k);
    loop->step = sums != NULL ? 1 : item->tile;
    loop->part = FOR_ALL;
    loop->parallel = item->parallel;
    loop->body = body.list.at;
    loop->n_body = body.list.n;
    vec_push(b->arena, &to->list, loop);
    if (leaves) {
        build_leaves_join(b, to, &own);
    }
    if (item->from != 0) {
        build_mirrors(b, to, k);
    }
}

/* The items of one body. The recursion is as deep as the tree: NEST_DEPTH. */
void build_items(Builder *b, Block *to, uint32_t first, uint32_t end)
{
    static BuildLeaf *const leaves[LEAF_COUNT] = {
#define LEAF(id, word, applies, lowers, refused) lowers,
#include "nest/leaves.def"
    };
    const Nest *nest = b->nest;
    for (uint32_t k = first; k < end; k = nest->items[k].end) {
        uint32_t scope = nest->items[k].parent;
        for (uint32_t i = k; i < nest->items[k].end; i++) {
            if (!nest_is_loop(&nest->items[i])) {
                build_buffers(b, to, nest->items[i].node, scope);
            }
        }
        build_folds(b, to, k, true);
        if (nest->items[k].online) {
            build_online_begin(b, to, k);
        }
        if (scope != NEST_NONE && nest->items[scope].online) {
            build_online_follow(b, to, k);
        }
        if (nest_is_loop(&nest->items[k])) {
            build_loop(b, to, k);
        } else {
            NodeRef node = nest->items[k].node;
            leaves[nest->values[node].kind](b, to, node, scope);
        }
        if (nest->items[k].online) {
            build_online_end(b, to, k);
        }
        build_folds(b, to, k, false);
        if (scope != NEST_NONE && nest->items[scope].online) {
            build_online_item(b, to, k);
        }
    }
}
