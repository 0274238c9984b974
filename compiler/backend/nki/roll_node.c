/* SPDX-License-Identifier: Apache-2.0 */
/* Statements to nodes and back (see roll.h). */
#include "backend/nki/roll.h"
#include "loop/copy.h"
#include "loop/walk.h"

/* ---- to nodes ---- */

typedef struct Gather {
    const Kernel *k;
    Map *groups;
    const Stmt *of;
    Arena *arena;
    uint64_t key;
    VEC(int64_t) base;
    VEC(RollRef) ref;
} Gather;

static void mix(Gather *g, uint64_t x)
{
    g->key = hash_mix(g->key, x);
}

/* Is the access to all of a tile? */
static bool covers(const Gather *g, const Buffer *b, const Affine *at)
{
    for (uint32_t d = 0; d < b->rank; d++) {
        bool all = false;
        for (uint32_t i = 0; i < g->of->n_index; i++) {
            all |= affine_is(at[d], g->of->index[i].var) &&
                   g->of->index[i].range.limit.n == b->extent[d].n;
        }
        if (!all) {
            return false;
        }
    }
    return true;
}

static void gather_access(Gather *g, BufRef buf, const Affine *at)
{
    const Buffer *b = &g->k->bufs.at[buf];
    RollRef ref = {buf, g->base.n, covers(g, b, at)};
    vec_push(g->arena, &g->ref, ref);
    mix(g, (uint64_t)b->space * 64 + (uint64_t)b->dtype);
    mix(g, nki_on_chip(g->k, buf) ? 0 : 1 + (uint64_t)buf);
    for (uint32_t d = 0; d < b->rank; d++) {
        vec_push(g->arena, &g->base, at[d].base);
        mix(g, at[d].n);
        for (uint32_t t = 0; t < at[d].n; t++) {
            mix(g, at[d].term[t].var);
            mix(g, (uint64_t)at[d].term[t].coef);
        }
    }
}

static void gather_value(Gather *g, const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        mix(g, (uint64_t)e->kind << 32 | (uint64_t)e->dtype << 16 | (uint64_t)e->op);
        mix(g, hash_bytes(1, &e->value.re, sizeof e->value.re));
        mix(g, (uint64_t)e->value.i);
        mix(g, e->n_args);
        mix(g, e->kind == EXPR_OP && e->op == OP_GATHER ? 1 + (uint64_t)e->buf : 0);
        if (e->kind == EXPR_LOAD) {
            gather_access(g, e->buf, e->at);
        } else if (e->kind == EXPR_INDEX) {
            vec_push(g->arena, &g->base, e->at[0].base);
            for (uint32_t t = 0; t < e->at[0].n; t++) {
                mix(g, e->at[0].term[t].var);
                mix(g, (uint64_t)e->at[0].term[t].coef);
            }
        }
    }
}

static bool is_matmul(const Kernel *k, const Stmt *s)
{
    return s->fold == OP_SUM && k->bufs.at[s->dst].space == SPACE_ACC;
}

/* How many matmuls of its group there are before it. */
static int64_t place_in_group(Gather *g, const Stmt *s)
{
    uint64_t group = hash_mix((uint64_t)s->dst, (uint64_t)s->at[1].base);
    for (uint32_t t = 0; t < s->at[1].n; t++) {
        group = hash_mix(group, s->at[1].term[t].var);
    }
    uint32_t before = 0;
    if (!map_get(g->groups, group, &before)) {
        before = 1;
    }
    before = s->begins ? 0 : before;
    map_put(g->groups, group, before + 1);
    return before;
}

static void gather_tile(Gather *g, const Stmt *s)
{
    g->of = s;
    if (is_matmul(g->k, s)) {
        int64_t place = -place_in_group(g, s);
        vec_push(g->arena, &g->base, place);
    } else {
        mix(g, s->begins);
    }
    mix(g, s->n_index);
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        mix(g, s->index[i].var);
        mix(g, (uint64_t)r->start.base);
        mix(g, (uint64_t)r->span);
        mix(g, (uint64_t)r->limit.n);
    }
    mix(g, (uint64_t)s->fold);
    gather_access(g, s->dst, s->at);
    gather_value(g, s->value);
    mix(g, s->sums > 0);
    if (s->sums > 0) {
        gather_access(g, s->sums - 1, s->sums_at);
    }
}

static RollNode *node_of(Roll *r, const Stmt *s)
{
    Gather g = {.k = r->k, .groups = &r->groups, .arena = r->arena, .key = (uint64_t)s->kind};
    mix(&g, (uint64_t)s->span.source << 40 ^ (uint64_t)s->span.lo << 20 ^ s->span.hi);
    if (s->kind == STMT_ALLOC) { /* in HBM, one allocation stays one */
        mix(&g, s->buf);
    }
    if (s->kind == STMT_TILE) {
        gather_tile(&g, s);
    }
    RollNode *n = ARENA_NEW(r->arena, RollNode);
    *n = (RollNode){.key = g.key, .kind = s->kind, .stmt = s, .leaves = 1};
    n->base = g.base.at;
    n->n_base = g.base.n;
    n->ref = g.ref.at;
    n->n_ref = g.ref.n;
    return n;
}

/* Where each tile is allocated, and which hold sums of matmuls. */
static void find_allocations(Roll *r, Stmt *const *body, uint32_t n, uint32_t depth, bool *seen)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            r->buf.at[s->buf].alloc = s;
            r->buf.at[s->buf].depth = depth;
        }
        if (stmt_has_body(s)) {
            find_allocations(r, s->body, s->n_body, depth + 1, seen);
        }
        if (s->kind == STMT_TILE) {
            expr_mark_loads(s->value, seen);
            r->buf.at[s->dst].sums |= !seen[s->dst] && s->begins && is_matmul(r->k, s);
            seen[s->dst] = true;
        }
    }
}

static void push_node(Roll *r, const Stmt *s)
{
    RollNode *n = node_of(r, s);
    vec_push(r->arena, &r->list, n);
    for (uint32_t x = 0; x < n->n_ref; x++) {
        r->buf.at[n->ref[x].buf].uses++;
        r->buf.at[n->ref[x].buf].partly |= !n->ref[x].all;
    }
}

static void push_body(Roll *r, Stmt *const *body, uint32_t n_body);

/* A loop that the kernel has: so far what is in it, by itself. */
static void push_given(Roll *r, const Stmt *s)
{
    RollNodes around = r->list;
    r->list = (RollNodes){0};
    push_body(r, s->body, s->n_body);
    RollNode *n = ARENA_NEW(r->arena, RollNode);
    *n = (RollNode){.kind = STMT_FOR, .given = s};
    n->trips = s->kind == STMT_FOR ? s->range.limit.n : 1;
    n->body = r->list.at;
    n->n_body = r->list.n;
    r->list = around;
    vec_push(r->arena, &r->list, n);
}

static void push_body(Roll *r, Stmt *const *body, uint32_t n_body)
{
    const Kernel *k = r->from;
    for (uint32_t i = 0; i < n_body; i++) {
        const Stmt *s = body[i];
        if (stmt_has_body(s)) {
            push_given(r, s);
        } else if (s->kind != STMT_ALLOC || !nki_on_chip(k, s->buf)) {
            push_node(r, s);
        }
    }
}

void roll_nodes(Roll *r)
{
    map_init(&r->groups, r->arena);
    bool *seen = ARENA_ARRAY(r->arena, r->k->bufs.n + 1, bool);
    find_allocations(r, r->from->body, r->from->n_body, 0, seen);
    push_body(r, r->from->body, r->from->n_body);
    roll_list(r);
}

void roll_given(Roll *r, RollNode *n)
{
    VEC(int64_t) base = {0};
    VEC(RollRef) ref = {0};
    RollNodes around = r->list;
    r->list = (RollNodes){0};
    for (uint32_t i = 0; i < n->n_body; i++) {
        vec_push(r->arena, &r->list, n->body[i]);
    }
    r->depth++;
    roll_list(r);
    r->depth--;
    n->body = r->list.at;
    n->n_body = r->list.n;
    r->list = around;
    for (uint32_t j = 0; j < n->n_body; j++) {
        const RollNode *in = n->body[j];
        for (uint32_t x = 0; x < in->n_ref; x++) {
            RollRef moved = in->ref[x];
            moved.slot += base.n;
            vec_push(r->arena, &ref, moved);
        }
        for (uint32_t v = 0; v < in->n_base; v++) {
            vec_push(r->arena, &base, in->base[v]);
        }
        n->leaves += in->leaves;
    }
    n->base = base.at;
    n->n_base = base.n;
    n->ref = ref.at;
    n->n_ref = ref.n;
    n->step = ARENA_ARRAY(r->arena, n->n_base + 1, int64_t);
    n->own = ARENA_ARRAY(r->arena, n->n_ref + 1, bool);
    for (uint32_t x = 0; x < n->n_ref; x++) {
        n->own[x] =
            nki_on_chip(r->k, ref.at[x].buf) && r->buf.at[ref.at[x].buf].depth > r->depth;
    }
    n->key = hash_mix(roll_loop_key(n), ++r->n_given); /* like no other */
}

/* ---- to statements ---- */

typedef struct Level {
    VarRef var;
    int64_t start;
    const int64_t *step; /* of the node at hand */
} Level;

typedef struct Emit {
    Roll *r;
    Kernel *to;
    BufRef *buf; /* [r->k->bufs] in `to`, or UINT32_MAX */
    bool *begun; /* [r->k->bufs] */
    VarRef loop[LOOP_DEPTH_LIMIT + 1];
    uint32_t n_loops, depth;
    Level level[LOOP_DEPTH_LIMIT + 1];
    /* of the statement at hand */
    const int64_t *base;
    const RollRef *ref;
    uint32_t next; /* access, */
    uint32_t
        slot; /* and the number after those of the last one: of a position that is a value */
} Emit;

static BufRef emit_buf(Emit *e, BufRef b)
{
    if (e->buf[b] == UINT32_MAX) {
        const Buffer *old = &e->r->k->bufs.at[b];
        const char *hint = e->r->hint.at[b];
        e->buf[b] = kernel_buffer_like(e->to, &e->r->ctx->syms, hint, old);
    }
    return e->buf[b];
}

/* A position in the loops that have been made. */
static Affine emit_position(Emit *e, Affine at, uint32_t slot)
{
    Arena *a = e->r->arena;
    Affine out = {e->base[slot], at.n, at.term};
    for (uint32_t i = 0; i < e->depth; i++) {
        if (e->level[i].step[slot] != 0) {
            out = affine_add(a, out, e->level[i].step[slot], affine_var(a, e->level[i].var));
        }
    }
    return out;
}

/* The next access of the statement: its buffer and its positions. */
static const Affine *emit_access(Emit *e, const Affine *at, BufRef *buf)
{
    const RollRef *ref = &e->ref[e->next++];
    uint32_t rank = e->r->k->bufs.at[ref->buf].rank;
    Affine *out = rank == 0 ? NULL : ARENA_ARRAY(e->r->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = emit_position(e, at[d], ref->slot + d);
    }
    e->slot = ref->slot + rank;
    *buf = emit_buf(e, ref->buf);
    return out;
}

static void emit_load(void *user, Expr *load)
{
    Emit *e = user;
    if (load->kind == EXPR_LOAD) {
        load->at = emit_access(e, load->at, &load->buf);
    } else if (load->kind == EXPR_INDEX) {
        Affine at = emit_position(e, load->at[0], e->slot++);
        load->at = arena_copy(e->r->arena, &at, sizeof at);
    }
}

/* Where a matmul begins its group: in the first iterations of loops that go on with it. */
static void emit_begins(Emit *e, const Stmt *s, uint32_t slot, Stmt *out)
{
    Arena *a = e->r->arena;
    int64_t before = e->base[slot];
    VEC(VarRef) first = {0};
    for (uint32_t i = 0; i < e->depth; i++) {
        const Level *x = &e->level[i];
        bool goes_on = x->step[slot] != 0;
        before += x->start * x->step[slot];
        for (uint32_t j = 0; j < s->n_first; j++) {
            goes_on |= s->first[j] == x->var;
        }
        if (goes_on) {
            vec_push(a, &first, x->var);
        }
    }
    out->begins = before == 0;
    out->n_first = out->begins ? first.n : 0;
    out->first = first.at;
}

static Stmt *emit_tile(Emit *e, const Stmt *s)
{
    Stmt *out = arena_copy(e->r->arena, s, sizeof *s);
    if (is_matmul(e->r->from, s)) {
        emit_begins(e, s, e->ref[e->next].slot - 1, out);
    }
    out->at = emit_access(e, s->at, &out->dst);
    Expr *value = (Expr *)(uintptr_t)expr_with_places(e->r->arena, s->value, emit_load, e);
    if (value->kind == EXPR_OP && value->op == OP_GATHER) {
        value->buf = emit_buf(e, value->buf);
    }
    out->value = value;
    if (s->sums > 0) {
        BufRef buf = 0;
        out->sums_at = emit_access(e, s->sums_at, &buf);
        out->sums = buf + 1;
    }
    return out;
}

/* The first value of a loop that makes the most positions multiples of the variable. */
static int64_t best_start(const RollNode *n, const int64_t *base)
{
    int64_t best = 0;
    uint32_t most = 0;
    for (uint32_t v = 0; v < n->n_base; v++) {
        int64_t step = n->step[v];
        if (step <= 0 || base[v] < 0 || base[v] % step != 0) {
            continue;
        }
        uint32_t votes = 0;
        for (uint32_t w = 0; w < n->n_base; w++) {
            votes += n->step[w] > 0 && base[w] % n->step[w] == 0 &&
                     base[w] / n->step[w] == base[v] / step;
        }
        if (votes > most && base[v] / step < INT32_MAX) {
            most = votes;
            best = base[v] / step;
        }
    }
    return best;
}

static void emit_node(Emit *e, const RollNode *n, const int64_t *base, const RollRef *ref,
                      Stmts *out);

/* The tile begins here. */
static void emit_begin(Emit *e, BufRef b, Stmts *out)
{
    Arena *a = e->r->arena;
    const RollBuf *buf = &e->r->buf.at[b];
    if (e->begun[b] || buf->alloc == NULL || !nki_on_chip(e->r->k, b)) {
        return;
    }
    e->begun[b] = true;
    Stmt *s = arena_copy(a, buf->alloc, sizeof *buf->alloc);
    s->buf = emit_buf(e, b);
    vec_push(a, out, s);
}

/* A node of a block, after the tiles that begin there. */
static void emit_in_block(Emit *e, const RollNode *n, const int64_t *base, const RollRef *ref,
                          Stmts *out)
{
    for (uint32_t x = 0; x < n->n_ref; x++) {
        if (n->kind != STMT_FOR || !n->own[x]) {
            emit_begin(e, ref[x].buf, out);
        }
    }
    emit_node(e, n, base, ref, out);
}

static void emit_for(Emit *e, const RollNode *n, const int64_t *base, const RollRef *ref,
                     Stmts *out)
{
    static const char *const names[] = {"i", "j", "u", "v", "w", "x"};
    CHECK(e->depth < LOOP_DEPTH_LIMIT);
    Arena *a = e->r->arena;
    if (e->depth == e->n_loops) {
        e->loop[e->n_loops] =
            kernel_var(e->to, &e->r->ctx->syms, names[e->n_loops < 6 ? e->n_loops : 5], true);
        e->n_loops++;
    }
    int64_t start = n->given != NULL ? 0 : best_start(n, base);
    int64_t *from = ARENA_ARRAY(a, n->n_base, int64_t);
    for (uint32_t v = 0; v < n->n_base; v++) {
        from[v] = base[v] - start * n->step[v];
    }
    Stmt *s = ARENA_NEW(a, Stmt);
    *s = (Stmt){.kind = STMT_FOR, .var = e->loop[e->depth], .step = 1, .part = FOR_ALL};
    s->var = n->given != NULL ? n->given->var : s->var;
    if (n->given != NULL && n->given->kind == STMT_BLOCK) {
        *s = (Stmt){
            .kind = STMT_BLOCK, .n_guards = n->given->n_guards, .guard = n->given->guard};
    }
    if (s->kind == STMT_FOR) {
        s->range = (Range){affine_const(start), 0, true, dim_fixed(start + n->trips)};
        s->window = n->given != NULL ? n->given->window : NULL;
        s->range.start = n->given != NULL ? n->given->range.start : s->range.start;
    }
    Stmts body = {0};
    uint32_t at_base = 0, at_ref = 0;
    e->level[e->depth++] = (Level){s->var, start, n->step};
    Level saved[LOOP_DEPTH_LIMIT + 1];
    for (uint32_t i = 0; i < e->depth; i++) {
        saved[i] = e->level[i];
    }
    for (uint32_t i = 0; i < n->n_body; i++) {
        for (uint32_t d = 0; d < e->depth; d++) {
            e->level[d].step = saved[d].step + at_base;
        }
        RollRef *part = ARENA_ARRAY(a, n->body[i]->n_ref, RollRef);
        for (uint32_t x = 0; x < n->body[i]->n_ref; x++) {
            part[x] = ref[at_ref + x];
            part[x].slot -= at_base;
        }
        emit_in_block(e, n->body[i], from + at_base, part, &body);
        at_base += n->body[i]->n_base;
        at_ref += n->body[i]->n_ref;
    }
    for (uint32_t i = 0; i < e->depth; i++) {
        e->level[i] = saved[i];
    }
    e->depth--;
    s->body = body.at;
    s->n_body = body.n;
    if (body.n > 0) { /* what was only allocated is gone */
        vec_push(a, out, s);
    }
}

static void emit_node(Emit *e, const RollNode *n, const int64_t *base, const RollRef *ref,
                      Stmts *out)
{
    Arena *a = e->r->arena;
    if (n->kind == STMT_FOR) {
        emit_for(e, n, base, ref, out);
        return;
    }
    e->base = base;
    e->ref = ref;
    e->next = 0;
    if (n->kind == STMT_ALLOC) {
        Stmt *s = arena_copy(a, n->stmt, sizeof *n->stmt);
        s->buf = emit_buf(e, n->stmt->buf);
        vec_push(a, out, s);
    }
    if (n->kind == STMT_TILE) {
        Stmt *s = emit_tile(e, n->stmt);
        vec_push(a, out, s);
    }
}

Kernel *roll_kernel(Roll *r)
{
    Emit e = {.r = r, .to = kernel_like(r->arena, r->from)};
    Stmts out = {0};
    e.to->bufs.at = NULL;
    e.to->bufs.n = e.to->bufs.cap = 0;
    e.buf = ARENA_ARRAY(r->arena, r->k->bufs.n, BufRef);
    e.begun = ARENA_ARRAY(r->arena, r->k->bufs.n, bool);
    for (uint32_t b = 0; b < r->k->bufs.n; b++) {
        e.buf[b] = UINT32_MAX;
    }
    e.to->args.at = NULL;
    e.to->args.n = e.to->args.cap = 0;
    for (uint32_t i = 0; i < r->from->args.n; i++) {
        Arg arg = r->from->args.at[i];
        int32_t param = r->from->bufs.at[arg.buf].param;
        arg.buf = emit_buf(&e, arg.buf);
        e.to->bufs.at[arg.buf].param = param;
        vec_push(r->arena, &e.to->args, arg);
    }
    for (uint32_t i = 0; i < r->list.n; i++) {
        const RollNode *n = r->list.at[i];
        if (n->kind != STMT_ALLOC || r->buf.at[n->stmt->buf].uses > 0) {
            emit_in_block(&e, n, n->base, n->ref, &out);
        }
    }
    e.to->body = out.at;
    e.to->n_body = out.n;
    return kernel_numbered(r->arena, e.to);
}
