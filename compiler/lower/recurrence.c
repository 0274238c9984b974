/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrence as loops: its body's kernel, copied into a loop over steps. What are arguments there are parts of values here:
 *
 *     alloc @h_before : f64[n] workspace                      a state
 *     map [n in 0..n] @h_before[n] = @h0[n]
 *     for $t in 0..t step 1 {
 *       map [n in 0..n] @h[$t, n] = add(mul(@a[$t, n], @h_before[n]), @b[$t, n])
 *       map [n in 0..n] @h_before[n] = @h[$t, n]
 *     }
 *
 * Where the body is one loop over an index that has its states to itself (nest/recurrence.c), and what follows it copies states, the loop
 * over steps stands inside of that one. */
#include "graph/recurrence.h"
#include "loop/copy.h"
#include "loop/term.h"
#include "loop/walk.h"
#include "lower/build.h"

typedef struct Steps {
    Builder *b;
    const Node *node;
    const Recurrence *r;
    const Kernel *body;
    VarRef var;
    Affine at; /* the position of the step */
    BufRef *buf;
    StmtPlace *place;
    Dim *dim; /* [dims of the body]: here */
} Steps;

static const Dim *shape_here(const Steps *s, uint32_t rank, const Dim *shape)
{
    Dim *out = ARENA_ARRAY(s->b->arena, rank, Dim);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = dim_mapped(s->dim, shape[d]);
    }
    return out;
}

/* The value of the graph that is this result of the recurrence; NODE_NONE: none is. */
static NodeRef value_of(const Steps *s, uint32_t result)
{
    const Graph *g = s->b->g;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (node->op == OP_STEPS && node->steps.recurrence == s->node->steps.recurrence &&
            node->steps.result == result && s->b->nest->values[n].item != NEST_NONE) {
            return n;
        }
    }
    return NODE_NONE;
}

/* ---- statements over all of a value ---- */

/* `dst` at the positions of the value, without dimension `along` or with its position there as it is given. */
static void build_copy(Steps *s, Block *to, NodeRef value, BufRef dst, const StmtPlace *place,
                       const TileIndex *more)
{
    Builder *b = s->b;
    const Node *n = graph_node(b->g, value);
    Stmt *stmt = build_stmt(b, STMT_TILE, n->span, n->name);
    Position *pos = ARENA_ARRAY(b->arena, n->rank, Position);
    TileIndex *index = ARENA_ARRAY(b->arena, n->rank + 1, TileIndex);
    for (uint32_t d = 0; d < n->rank; d++) {
        pos[d] = build_dimension_position(b, value, d);
        index[d] = (TileIndex){.var = pos[d].var, .range = pos[d].range};
    }
    stmt->n_index = n->rank;
    if (more != NULL) {
        index[stmt->n_index++] = *more;
    }
    stmt->index = index;
    stmt->dst = dst;
    uint32_t rank = b->k->bufs.at[dst].rank;
    Affine *at = ARENA_ARRAY(b->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        bool plain = place == NULL;
        at[d] = plain ? pos[d].at : place->plus[d];
        if (!plain && place->at[d].n == 1) {
            at[d] = pos[place->at[d].term[0].var].at;
        }
    }
    stmt->at = at;
    stmt->value = build_expr(b, value, access_in_order(b->arena, n->rank), pos);
    vec_push(b->arena, &to->list, stmt);
}

/* The dimensions of a value without `along`, which has the position `at`. */
static StmtPlace place_along(Builder *b, uint32_t rank, uint32_t along, Affine at)
{
    Affine *of = ARENA_ARRAY(b->arena, rank, Affine),
           *plus = ARENA_ARRAY(b->arena, rank, Affine);
    for (uint32_t d = 0, q = 0; d < rank; d++) {
        of[d] = d == along ? affine_const(0) : affine_var(b->arena, q++);
        plus[d] = d == along ? at : affine_const(0);
    }
    return (StmtPlace){rank, of, plus};
}

/* ---- arguments of the body ---- */

/* A view's positions in what it is of, of the dimensions of its slice. */
static StmtPlace place_viewed(Builder *b, const Node *view, bool each, uint32_t along,
                              Affine at)
{
    uint32_t rank = view->access[0].rank;
    Affine *of = ARENA_ARRAY(b->arena, rank, Affine),
           *plus = ARENA_ARRAY(b->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        of[d] = affine_const(view->at[d].base);
        plus[d] = affine_const(0);
        for (uint32_t i = 0; i < view->at[d].n; i++) {
            AffineTerm t = view->at[d].term[i];
            if (each && t.var == along) {
                plus[d] = affine_add(b->arena, plus[d], t.coef, at);
                continue;
            }
            t.var -= each && !affine_is_dim(t.var) && t.var > along;
            of[d] = affine_add(b->arena, of[d], 1, (Affine){0, 1, &t});
        }
    }
    return (StmtPlace){rank, of, plus};
}

static BufRef new_buffer(Steps *s, Block *to, const Buffer *like)
{
    Builder *b = s->b;
    Space space = like->rank == 0 ? SPACE_TILE : SPACE_WORKSPACE;
    BufRef buf = kernel_buffer(b->k, &b->ctx->syms, like->name->text, like->dtype, space,
                               like->rank, shape_here(s, like->rank, like->extent));
    b->k->bufs.at[buf].span = like->span;
    build_alloc(b, to, buf);
    return buf;
}

static void map_operand(Steps *s, Block *to, uint32_t param)
{
    Builder *b = s->b;
    const StepsParam *p = &s->r->param[param];
    BufRef own = s->body->args.at[param].buf;
    NodeRef operand = s->node->operand[p->operand];
    const Node *o = graph_node(b->g, operand);
    bool each = p->role == STEPS_EACH;
    if (o->op == OP_VIEW) {
        s->buf[own] = b->storage[o->operand[0]].buf;
        s->place[own] = place_viewed(b, o, each, p->dim, s->at);
    } else if (b->storage[operand].buf != BUF_NONE) {
        s->buf[own] = b->storage[operand].buf;
        if (each) {
            s->place[own] = place_along(b, o->rank, p->dim, s->at);
        }
    } else { /* a number */
        CHECK(o->rank == 0);
        s->buf[own] = new_buffer(s, to, &s->body->bufs.at[own]);
        build_copy(s, to, operand, s->buf[own], NULL, NULL);
    }
}

/* What is the same in the first step and in the others. */
static void map_params(Steps *s, Block *to)
{
    for (uint32_t k = 0; k < s->r->body->params.n; k++) {
        BufRef own = s->body->args.at[k].buf;
        const StepsParam *p = &s->r->param[k];
        if (p->role == STEPS_STATE) {
            s->buf[own] = new_buffer(s, to, &s->body->bufs.at[own]);
            build_copy(s, to, s->node->operand[p->operand], s->buf[own], NULL, NULL);
        } else if (p->role == STEPS_WHOLE) {
            map_operand(s, to, k);
        }
    }
}

/* What a result was some steps before: what the operand is, in the first step. */
static void map_prior(Steps *s, Block *to, uint32_t param, bool first)
{
    Builder *b = s->b;
    const StepsParam *p = &s->r->param[param];
    BufRef own = s->body->args.at[param].buf;
    s->place[own] = (StmtPlace){0, NULL, NULL};
    if (first) {
        map_operand(s, to, param);
        return;
    }
    NodeRef value = value_of(s, p->result);
    const Node *n = graph_node(b->g, value);
    int64_t by = s->r->backward ? p->lag : -(int64_t)p->lag;
    Affine before = affine_add(b->arena, s->at, 1, affine_const(by));
    s->buf[own] = b->storage[value].buf;
    s->place[own] = place_along(b, n->rank, (uint32_t)n->steps.along, before);
}

/* The number of the step, at its beginning. */
static void set_number(Steps *s, Block *step, uint32_t param)
{
    BufRef own = s->body->args.at[param].buf;
    s->buf[own] = new_buffer(s, step, &s->body->bufs.at[own]);
    Stmt *set = build_stmt(s->b, STMT_TILE, s->node->span, NULL);
    set->dst = s->buf[own];
    set->value = expr_index(s->b->arena, DTYPE_I64, s->at);
    vec_push(s->b->arena, &step->list, set);
}

static void map_params_at(Steps *s, Block *to, Block *step, bool first)
{
    for (uint32_t k = 0; k < s->r->body->params.n; k++) {
        const StepsParam *p = &s->r->param[k];
        if (p->role == STEPS_NUMBER) {
            set_number(s, step, k);
        } else if (p->role == STEPS_PRIOR) {
            map_prior(s, to, k, first);
        } else if (p->role == STEPS_EACH) {
            map_operand(s, to, k);
        }
    }
}

static void map_results(Steps *s, Block *to)
{
    uint32_t arg = s->r->body->params.n;
    for (uint32_t k = 0; k < s->r->body->results.n; k++) {
        if (s->r->body->results.at[k].param >= 0) {
            continue;
        }
        BufRef own = s->body->args.at[arg++].buf;
        NodeRef value = value_of(s, k);
        if (value == NODE_NONE) { /* nobody reads it */
            s->buf[own] = new_buffer(s, to, &s->body->bufs.at[own]);
            continue;
        }
        const Node *n = graph_node(s->b->g, value);
        s->buf[own] = s->b->storage[value].buf;
        s->place[own] = place_along(s->b, n->rank, (uint32_t)n->steps.along, s->at);
    }
}

/* What the body has of its own. */
static void map_blocks(Steps *s, VarRef *var)
{
    Builder *b = s->b;
    for (BufRef k = 0; k < s->body->bufs.n; k++) {
        const Buffer *from = &s->body->bufs.at[k];
        if (from->space == SPACE_ARGUMENT) {
            continue;
        }
        if (from->indefinite) {
            s->buf[k] = b->indefinite;
            continue;
        }
        s->buf[k] =
            kernel_buffer(b->k, &b->ctx->syms, from->name->text, from->dtype, from->space,
                          from->rank, shape_here(s, from->rank, from->extent));
        b->k->bufs.at[s->buf[k]].span = from->span;
        b->k->bufs.at[s->buf[k]].may_spill = from->may_spill;
    }
    for (VarRef v = 0; v < s->body->vars.n; v++) {
        const Var *from = &s->body->vars.at[v];
        const char *name = from->wish != NULL ? from->wish->text : from->name->text;
        var[v] = kernel_var(b->k, &b->ctx->syms, name, from->is_loop);
    }
}

/* ---- around the steps ---- */

/* The positions that are given; of too few positions only those that there are. */
static void build_given(Steps *s, Block *to)
{
    Builder *b = s->b;
    for (uint32_t k = 0; k < s->r->body->results.n; k++) {
        NodeRef value = s->r->body->results.at[k].param < 0 ? value_of(s, k) : NODE_NONE;
        for (uint32_t p = 0; value != NODE_NONE && p < s->r->given; p++) {
            const Node *n = graph_node(b->g, value);
            VarRef var = kernel_var(b->k, &b->ctx->syms, "given", false);
            TileIndex at = {.var = var,
                            .range = {.start = affine_const(p),
                                      .span = 1,
                                      .clipped = true,
                                      .limit = s->r->extent}};
            Affine position = affine_var(b->arena, var);
            if (s->r->backward) {
                position =
                    affine_add(b->arena,
                               affine_add(b->arena, affine_extent(b->arena, s->r->extent), 1,
                                          affine_const(-1)),
                               -1, position);
            }
            StmtPlace place = place_along(b, n->rank, (uint32_t)n->steps.along, position);
            build_copy(s, to, s->node->operand[s->r->first[k * s->r->given + p]],
                       b->storage[value].buf, &place, &at);
        }
    }
}

/* States after the last step. */
static void build_last(Steps *s, Block *to)
{
    Builder *b = s->b;
    for (uint32_t k = 0; k < s->r->body->results.n; k++) {
        int32_t param = s->r->body->results.at[k].param;
        NodeRef value = param >= 0 ? value_of(s, k) : NODE_NONE;
        if (value == NODE_NONE) {
            continue;
        }
        const Node *n = graph_node(b->g, value);
        Place state = {s->buf[s->body->args.at[param].buf], NEST_NONE};
        Stmt *stmt = build_stmt(b, STMT_TILE, n->span, n->name);
        Position *pos = ARENA_ARRAY(b->arena, n->rank, Position);
        TileIndex *index = ARENA_ARRAY(b->arena, n->rank, TileIndex);
        Affine *at = ARENA_ARRAY(b->arena, n->rank, Affine);
        for (uint32_t d = 0; d < n->rank; d++) {
            pos[d] = build_dimension_position(b, value, d);
            index[d] = (TileIndex){.var = pos[d].var, .range = pos[d].range};
            at[d] = pos[d].at;
        }
        stmt->n_index = n->rank;
        stmt->index = index;
        stmt->dst = b->storage[value].buf;
        stmt->at = at;
        stmt->value = expr_load(b->arena, b->k, state.buf, at);
        vec_push(b->arena, &to->list, stmt);
    }
}

static Stmt *loop_over_steps(Steps *s, Range range, const Block *body)
{
    Stmt *loop = build_stmt(s->b, STMT_FOR, s->node->span, NULL);
    loop->var = s->var;
    loop->range = range;
    loop->step = 1;
    loop->part = FOR_ALL;
    loop->body = body->list.at;
    loop->n_body = body->list.n;
    return loop;
}

/* ---- inside of a loop over a batch ---- */

/* Which index of a copy has all of the range that the loop has; n_index: none. */
static uint32_t batch_index(const Stmt *tile, const Stmt *loop)
{
    uint32_t i = 0;
    while (i < tile->n_index && !range_eq(&tile->index[i].range, &loop->range)) {
        i++;
    }
    return i;
}

/* Is the body one loop over a batch, and then copies over all of its range? */
static bool is_batch(const Steps *s)
{
    const Kernel *k = s->body;
    bool fine = s->r->batch && k->n_body > 0 && k->body[0]->kind == STMT_FOR;
    for (uint32_t i = 1; i < k->n_body && fine; i++) {
        fine = k->body[i]->kind == STMT_TILE && tile_kind(k->body[i]) == TILE_COPY &&
               batch_index(k->body[i], k->body[0]) < k->body[i]->n_index;
    }
    return fine;
}

/* A copy of what follows the loop, of what its iteration has. */
static Stmt *batch_copy(Steps *s, Stmt *copy, const Stmt *loop, uint32_t at, VarRef var)
{
    TileIndex *index = arena_copy(s->b->arena, copy->index, copy->n_index * sizeof *index);
    index[at].range.start = affine_var(s->b->arena, var);
    index[at].range.span = loop->step;
    index[at].range.clipped = true;
    copy->index = index;
    return copy;
}

/* The loop over these steps; `batch`: the variable of the loop around it. */
static Stmt *build_range(Steps *s, Block *to, Range range, bool first, const VarRef *batch)
{
    Builder *b = s->b;
    Block step = {0};
    VarRef *var = ARENA_ARRAY(b->arena, s->body->vars.n, VarRef);
    s->var = kernel_var(b->k, &b->ctx->syms, "step", true);
    s->at = affine_var(b->arena, s->var);
    if (s->r->backward) {
        Affine last =
            affine_add(b->arena, affine_extent(b->arena, s->r->extent), 1, affine_const(-1));
        s->at = affine_add(b->arena, last, -1, s->at);
    }
    map_params_at(s, to, &step, first);
    map_results(s, to);
    map_blocks(s, var);
    Stmt *const *body = s->body->body;
    const Stmt *loop = body[0];
    if (batch != NULL) {
        var[loop->var] = *batch;
    }
    StmtCopy copy = {.arena = b->arena,
                     .from = s->body,
                     .buf = s->buf,
                     .var = var,
                     .dim = s->dim,
                     .place = s->place};
    Stmt **inner = batch != NULL ? stmts_copy(&copy, loop->body, loop->n_body)
                                 : stmts_copy(&copy, body, s->body->n_body);
    for (uint32_t i = 0; i < (batch != NULL ? loop->n_body : s->body->n_body); i++) {
        vec_push(b->arena, &step.list, inner[i]);
    }
    Stmt **late = batch != NULL ? stmts_copy(&copy, body + 1, s->body->n_body - 1) : NULL;
    for (uint32_t i = 0; batch != NULL && i + 1 < s->body->n_body; i++) {
        uint32_t at = batch_index(body[i + 1], loop);
        vec_push(b->arena, &step.list, batch_copy(s, late[i], loop, at, *batch));
    }
    return loop_over_steps(s, range, &step);
}

/* Is there a step that reads what no step before it has made? */
static bool begins_apart(const Recurrence *r)
{
    bool any = false;
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        any = any || (r->param[k].role == STEPS_PRIOR && r->given < r->param[k].lag);
    }
    return any;
}

/* The first step by itself, if need be, and the others. */
static void build_ranges(Steps *s, Block *to, Block *into, const VarRef *batch)
{
    Builder *b = s->b;
    Range all = range_whole(s->r->extent);
    all.start = affine_const(s->r->given);
    if (begins_apart(s->r)) {
        Range first = {
            .start = affine_const(0), .span = 1, .clipped = true, .limit = s->r->extent};
        Stmt *loop = build_range(s, to, first, true, batch);
        vec_push(b->arena, &into->list, loop);
        all.start = affine_const(1);
    }
    Stmt *loop = build_range(s, to, all, false, batch);
    vec_push(b->arena, &into->list, loop);
}

void build_steps(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    (void)scope; /* nothing stands around it */
    const Node *n = graph_node(b->g, node);
    Steps s = {.b = b, .node = n, .r = node_recurrence(b->g, n)};
    for (uint32_t k = 0; k < s.r->body->results.n; k++) {
        NodeRef value = value_of(&s, k);
        if (value != NODE_NONE && b->nest->values[value].item < b->nest->values[node].item) {
            return; /* it is computed with that */
        }
    }
    for (uint32_t k = 0; k < s.r->body->results.n; k++) {
        NodeRef value = value_of(&s, k);
        if (value != NODE_NONE && b->storage[value].buf == BUF_NONE) {
            build_storage(b, to, value, NEST_NONE);
        }
    }
    s.body = build_step(b->ctx, b->arena, s.r->nest);
    s.dim = ARENA_ARRAY(b->arena, s.body->dims.list.n, Dim);
    dims_import(b->arena, b->k->arena, &b->ctx->syms, &b->k->dims, &s.body->dims, s.dim);
    s.buf = ARENA_ARRAY(b->arena, s.body->bufs.n, BufRef);
    s.place = ARENA_ARRAY(b->arena, s.body->bufs.n, StmtPlace);
    map_params(&s, to);
    build_given(&s, to);
    if (!is_batch(&s)) {
        build_ranges(&s, to, to, NULL);
    } else {
        Stmt *loop = arena_copy(b->arena, s.body->body[0], sizeof *loop);
        Block body = {0};
        loop->var = kernel_var(b->k, &b->ctx->syms,
                               s.body->vars.at[s.body->body[0]->var].name->text, true);
        build_ranges(&s, to, &body, &loop->var);
        loop->range.limit = dim_mapped(s.dim, loop->range.limit);
        loop->body = body.list.at;
        loop->n_body = body.list.n;
        loop->parallel = true;
        vec_push(b->arena, &to->list, loop);
    }
    build_last(&s, to);
}
