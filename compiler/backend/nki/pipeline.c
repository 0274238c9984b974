/* SPDX-License-Identifier: Apache-2.0 */
/* Loops in stages: which are right, and the loop that is made of them. Engines run in order, so what an iteration does first waits for
 * what the one before does last, though other engines do that. Here a late piece of an iteration stands among those of the next one.
 * What passes from a stage to a later one has a tile for each iteration, where SBUF has room for that,
 *
 *     for i in range(n + 1) { if i < n: begin(i); if i >= 1: second(i - 1); if i < n: end(i) }
 *
 * or else two tiles, in a loop over pairs of iterations:
 *
 *     begin(0); end(0); for p { begin(2p+1); second(2p); end(2p+1); if there is one: begin(2p+2); second(2p+1); if ..: end(2p+2) }
 */
#include "backend/nki/make.h"
#include "backend/nki/stages.h"
#include "loop/copy.h"

#include <string.h>

/* ---- what is right ---- */

/* Notes what a statement reads and writes, with all in it; false: it is not the same in each iteration, as it stands. */
static bool note_uses(PieceUses *u, const Stmt *s, uint32_t piece, bool *here)
{
    bool same = true;
    switch (s->kind) {
    case STMT_ALLOC:
        u->own[s->buf] = true;
        return u->k->bufs.at[s->buf].space == SPACE_TILE ||
               u->k->bufs.at[s->buf].space == SPACE_ACC;
    case STMT_TILE:
        memset(here, 0, u->k->bufs.n * sizeof *here);
        expr_mark_loads(s->value, here);
        for (uint32_t b = 0; b < u->k->bufs.n; b++) {
            u->read[b] |= here[b] ? 1U << piece : 0;
        }
        u->write[s->dst] |= 1U << piece;
        if (s->sums > 0) {
            u->write[s->sums - 1] |= 1U << piece;
        }
        return true;
    case STMT_FOR:
        same = s->window == NULL && !affine_uses(s->range.start, u->loop->var);
        break;
    case STMT_BLOCK:
        for (uint32_t g = 0; g < s->n_guards; g++) {
            same &=
                s->guard[g].var != u->loop->var && !affine_uses(s->guard[g].from, u->loop->var);
        }
        break;
    }
    for (uint32_t i = 0; i < s->n_body && same; i++) {
        same = note_uses(u, s->body[i], piece, here);
    }
    return same;
}

static void relate(PieceUses *u, uint32_t i, uint32_t j)
{
    for (uint32_t b = 0; b < u->k->bufs.n; b++) {
        uint32_t use = u->read[b] | u->write[b];
        bool both =
            (u->write[b] >> i & 1 && use >> j & 1) || (use >> i & 1 && u->write[b] >> j & 1);
        u->passes[i][j] |= both && u->own[b];
        u->in_psum[i][j] |= both && u->own[b] && u->k->bufs.at[b].space == SPACE_ACC;
        u->carried[i][j] |= both && !u->own[b];
    }
}

bool stages_uses(Arena *a, const Kernel *k, const Stmt *loop, PieceUses *u)
{
    bool *here = ARENA_ARRAY(a, k->bufs.n + 1, bool);
    u->k = k;
    u->loop = loop;
    u->read = ARENA_ARRAY(a, k->bufs.n + 1, uint32_t);
    u->write = ARENA_ARRAY(a, k->bufs.n + 1, uint32_t);
    u->own = ARENA_ARRAY(a, k->bufs.n + 1, bool);
    for (uint32_t i = 0; i < u->n; i++) {
        for (uint32_t s = u->from[i]; s < u->from[i + 1]; s++) {
            if (!note_uses(u, loop->body[s], i, here)) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < u->n; i++) {
        for (uint32_t j = i + 1; j < u->n; j++) {
            relate(u, i, j);
        }
    }
    return true;
}

/* Which piece of the body one of the stages is. */
static uint32_t piece_of(const PieceUses *u, const Piece *p)
{
    uint32_t i = 0;
    while (u->from[i] != p->from) {
        i++;
    }
    return i;
}

/* Of two pieces, `a` first in the body: it comes first for an iteration if it is less late, or as late and first in the order. What
 * iterations share must also be left by `b` before `a` of the next one takes it. */
bool stages_are_right(const PieceUses *u, const Stages *s)
{
    uint32_t at[PIECES], late[PIECES];
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t piece = piece_of(u, &s->piece[i]);
        at[piece] = i;
        late[piece] = s->piece[i].late;
    }
    for (uint32_t a = 0; a < u->n; a++) {
        for (uint32_t b = a + 1; b < u->n; b++) {
            bool before = late[a] < late[b] || (late[a] == late[b] && at[a] < at[b]);
            bool done = late[b] <= late[a] || (late[b] == late[a] + 1 && at[b] < at[a]);
            if (((u->passes[a][b] || u->carried[a][b]) && !before) ||
                (u->carried[a][b] && !done) || (u->in_psum[a][b] && late[a] != late[b])) {
                return false;
            }
        }
    }
    return true;
}

/* Does a tile of the body pass from one stage to another? */
static bool crosses(const PieceUses *u, const Stages *s, BufRef b)
{
    uint32_t use = u->own[b] ? u->read[b] | u->write[b] : 0, first = 0, last = 0;
    bool any = false;
    for (uint32_t i = 0; i < s->n && use != 0; i++) {
        if (use >> piece_of(u, &s->piece[i]) & 1) {
            uint32_t late = s->piece[i].late;
            first = any && first < late ? first : late;
            last = any && last > late ? last : late;
            any = true;
        }
    }
    return first != last;
}

int64_t stages_pass(const PieceUses *u, const Stages *s)
{
    int64_t bytes = 0;
    for (uint32_t b = 0; b < u->k->bufs.n; b++) {
        const Buffer *buf = &u->k->bufs.at[b];
        bytes += crosses(u, s, b) ? sat_mul(buf->extent[1].n, dtype_bytes(buf->dtype)) : 0;
    }
    return bytes;
}

/* ---- the loop ---- */

typedef struct Pipeline {
    Ctx *ctx;
    Arena *arena;
    const PieceUses *uses;
    const Kernel *from;
    Kernel *to;
    const Stmt *loop;
    const Stages *stages;
    int64_t trips;
    uint32_t latest; /* the stage that is most late */
    bool wide;       /* a tile for each iteration */
    bool *crosses;   /* [bufs] passes from one stage to another */
    uint32_t *
        home; /* [bufs] position of the piece before or in which a tile of the body is allocated */
    bool *outside;   /* [bufs] before the run of pieces that begins there */
    bool *in_place;  /* [bufs] where it stands in that piece */
    VarRef pair;     /* the loop over pairs, or over all */
    BufRef *copy[2]; /* [bufs] of even iterations, of odd ones */
    VarRef *var;     /* [vars] of loops inside, as the last copy of them calls it */
    bool *used;      /* [vars] has one that name already? */
} Pipeline;

/* ---- stages at an iteration ---- */

typedef struct Stage {
    Pipeline *p;
    Affine at; /* the loop's variable */
    uint32_t parity;
} Stage;

static Affine moved_position(const Stage *g, Affine at)
{
    Affine out = affine_subst(g->p->arena, at, g->p->loop->var, g->at);
    for (uint32_t i = 0; i < at.n; i++) {
        VarRef v = at.term[i].var;
        if (g->p->var[v] != v) {
            out = affine_subst(g->p->arena, out, v, affine_var(g->p->arena, g->p->var[v]));
        }
    }
    return out;
}

static const Affine *moved(const Stage *g, BufRef buf, const Affine *at)
{
    uint32_t rank = g->p->from->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(g->p->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = moved_position(g, at[d]);
    }
    if (g->p->wide && g->p->crosses[buf]) {
        out[1] = affine_add(g->p->arena, out[1], g->p->from->bufs.at[buf].extent[1].n, g->at);
    }
    return out;
}

static BufRef copy_of(const Stage *g, BufRef buf)
{
    return g->p->copy[g->parity][buf];
}

static void moved_load(void *user, Expr *load)
{
    const Stage *g = user;
    if (load->kind == EXPR_LOAD) {
        load->at = moved(g, load->buf, load->at);
        load->buf = copy_of(g, load->buf);
    } else if (load->kind == EXPR_INDEX) {
        Affine at = moved_position(g, load->at[0]);
        load->at = arena_copy(g->p->arena, &at, sizeof at);
    }
}

/* A tile for the buffer, of one iteration or of all. */
static void put_alloc(Pipeline *p, Stmts *out, const Stmt *s, uint32_t parity)
{
    const Buffer *b = &p->from->bufs.at[s->buf];
    Stmt *t = arena_copy(p->arena, s, sizeof *s);
    Dim extent[2] = {b->extent[0], b->extent[1]};
    if (p->wide && p->crosses[s->buf]) {
        extent[1] = dim_fixed(sat_mul(extent[1].n, p->trips));
    }
    t->buf = p->copy[parity][s->buf] =
        kernel_buffer(p->to, &p->ctx->syms, b->name->text, b->dtype, b->space, b->rank, extent);
    vec_push(p->arena, out, t);
}

/* When a sum begins in that iteration: the loop is at a number, or goes on after its first iteration, or is the one that is made. */
static void move_begins(const Stage *g, const Stmt *s, Stmt *t)
{
    Pipeline *p = g->p;
    VarRef *first = ARENA_ARRAY(p->arena, s->n_first + 1, VarRef);
    bool one = g->at.n == 0, follows = g->at.n == 1 && g->at.term[0].coef == 1;
    t->first = first;
    t->n_first = 0;
    for (uint32_t i = 0; i < s->n_first; i++) {
        bool own = s->first[i] == p->loop->var;
        if (!own || !one) {
            first[t->n_first++] = own ? p->pair : p->var[s->first[i]];
        }
        t->begins &= !own || follows || (one && g->at.base == p->loop->range.start.base);
    }
    t->n_first = t->begins ? t->n_first : 0;
}

/* A copy of a statement in that iteration, with all in it. */
static Stmt *moved_stmt(const Stage *g, const Stmt *s)
{
    Pipeline *p = g->p;
    Stmt *t = arena_copy(p->arena, s, sizeof *s);
    if (s->kind == STMT_TILE) {
        t->at = moved(g, s->dst, s->at);
        t->dst = copy_of(g, s->dst);
        t->value = expr_with_places(p->arena, s->value, moved_load, (void *)(uintptr_t)g);
        if (s->sums > 0) {
            t->sums_at = moved(g, s->sums - 1, s->sums_at);
            t->sums = 1 + copy_of(g, s->sums - 1);
        }
        move_begins(g, s, t);
        return t;
    }
    if (s->kind == STMT_FOR) {
        const char *name = p->from->vars.at[s->var].name->text;
        p->var[s->var] =
            p->used[s->var] ? kernel_var(p->to, &p->ctx->syms, name, true) : s->var;
        p->used[s->var] = true;
        t->var = p->var[s->var];
        t->range.start = moved_position(g, s->range.start);
    }
    Guard *guard = ARENA_ARRAY(p->arena, s->n_guards + 1, Guard);
    for (uint32_t i = 0; i < s->n_guards; i++) {
        guard[i] = s->guard[i];
        guard[i].var = p->var[guard[i].var];
        guard[i].from = moved_position(g, guard[i].from);
    }
    t->guard = guard;
    Stmts in = {0};
    for (uint32_t i = 0; i < s->n_body; i++) {
        if (s->body[i]->kind == STMT_ALLOC) {
            put_alloc(p, &in, s->body[i], g->parity);
        } else {
            Stmt *inside = moved_stmt(g, s->body[i]);
            vec_push(p->arena, &in, inside);
        }
    }
    t->body = in.at;
    t->n_body = in.n;
    return t;
}

/* Past the last of the pieces from `i` on that are equally late. */
static uint32_t run_end(const Stages *s, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < s->n && s->piece[end].late == s->piece[i].late) {
        end++;
    }
    return end;
}

/* Where tiles of the body are allocated that do not pass from one stage to another: in the run of pieces that uses them, or before the
 * first of several. */
static void find_homes(Pipeline *p)
{
    const Stages *s = p->stages;
    for (uint32_t b = 0; b < p->from->bufs.n; b++) {
        uint32_t use = p->uses->own[b] ? p->uses->read[b] | p->uses->write[b] : 0;
        uint32_t first = s->n, last = 0;
        for (uint32_t i = 0; i < s->n; i++) {
            if (use >> piece_of(p->uses, &s->piece[i]) & 1) {
                first = first == s->n ? i : first;
                last = i;
            }
        }
        p->home[b] = first;
        p->outside[b] = first < s->n && last >= run_end(s, first);
        while (p->outside[b] && p->home[b] > 0 && run_end(s, p->home[b] - 1) > first) {
            p->home[b]--; /* to where the run begins */
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t at = s->piece[i].from; at < s->piece[i].to; at++) {
            const Stmt *alloc = p->loop->body[at];
            if (alloc->kind == STMT_ALLOC) {
                bool in_run = !p->outside[alloc->buf] && p->home[alloc->buf] == i;
                p->in_place[alloc->buf] = in_run;
            }
        }
    }
}

/* Tiles that are allocated before that piece, or before the run of pieces that begins with it. */
static void put_allocs(Pipeline *p, Stmts *out, uint32_t at, bool outside, uint32_t parity)
{
    for (uint32_t i = 0; i < p->loop->n_body; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind == STMT_ALLOC && !p->crosses[s->buf] && p->home[s->buf] == at &&
            p->outside[s->buf] == outside && !p->in_place[s->buf]) {
            put_alloc(p, out, s, parity);
        }
    }
}

static void put_crossing(Pipeline *p, Stmts *out, uint32_t parity)
{
    for (uint32_t i = 0; i < p->loop->n_body; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind == STMT_ALLOC && p->crosses[s->buf]) {
            put_alloc(p, out, s, parity);
        }
    }
}

/* Pieces [from, to) of that iteration. */
static void put_pieces(Pipeline *p, Stmts *out, uint32_t from, uint32_t to, Affine at,
                       uint32_t parity)
{
    Stage g = {p, at, parity};
    for (uint32_t i = from; i < to; i++) {
        put_allocs(p, out, i, false, parity);
        for (uint32_t j = p->stages->piece[i].from; j < p->stages->piece[i].to; j++) {
            const Stmt *s = p->loop->body[j];
            if (s->kind != STMT_ALLOC) {
                Stmt *t = moved_stmt(&g, s);
                vec_push(p->arena, out, t);
            } else if (p->in_place[s->buf] && !p->crosses[s->buf]) {
                put_alloc(p, out, s, parity);
            }
        }
    }
}

/* What a stage works for, in a step of the loop. */
typedef struct Step {
    bool is, guarded;
    Affine at;
    uint32_t parity;
    Guard when;
} Step;

/* All pieces once; by stage. */
static void put_step(Pipeline *p, Stmts *out, const Step *step)
{
    const Stages *s = p->stages;
    for (uint32_t i = 0; i < s->n; i = run_end(s, i)) {
        const Step *now = &step[s->piece[i].late];
        if (!now->is) {
            continue;
        }
        put_allocs(p, out, i, true, now->parity);
        if (!now->guarded) {
            put_pieces(p, out, i, run_end(s, i), now->at, now->parity);
            continue;
        }
        Stmts in = {0};
        put_pieces(p, &in, i, run_end(s, i), now->at, now->parity);
        if (in.n == 0) {
            continue;
        }
        Stmt *block = stmt_guarded(p->arena, p->loop->span, &now->when, 1, in.at, in.n);
        vec_push(p->arena, out, block);
    }
}

static void put_loop_over(Pipeline *p, Stmts *out, const Stmts *body, int64_t trips)
{
    Stmt *loop = arena_copy(p->arena, p->loop, sizeof *loop);
    loop->var = p->pair;
    loop->range = range_whole(dim_fixed(trips));
    loop->body = (*body).at;
    loop->n_body = (*body).n;
    vec_push(p->arena, out, loop);
}

static void put_wide(Pipeline *p, Stmts *out)
{
    Affine start = p->loop->range.start;
    Step step[STAGES_MOST] = {0};
    Stmts body = {0};
    for (uint32_t i = 0; i <= p->latest; i++) {
        step[i] = (Step){.is = true, .guarded = p->latest > 0};
        step[i].at =
            affine_add(p->arena, affine_const(-(int64_t)i), 1, affine_var(p->arena, p->pair));
        step[i].when = (Guard){p->pair, start.base + i, p->trips + i, start};
        step[i].when.from.base = 0;
        step[i].when.from.n = i > 0 ? start.n : 0; /* the loop itself begins there */
    }
    put_crossing(p, out, 0);
    put_step(p, &body, step);
    put_loop_over(p, out, &body, p->trips + p->latest);
    out->at[out->n - 1]->range.start = start;
}

static void put_pairs(Pipeline *p, Stmts *out)
{
    Arena *a = p->arena;
    int64_t pairs = p->trips / 2;
    Affine twice = affine_add(a, affine_const(0), 2, affine_var(a, p->pair)), at[3];
    for (int64_t i = 0; i < 3; i++) {
        at[i] = affine_add(a, affine_const(i), 1, twice);
    }
    Guard more = {.var = p->pair, .hi = pairs - 1};
    Step first[STAGES_MOST] = {{.is = true, .at = affine_const(0)}};
    Step odd[STAGES_MOST] = {{.is = true, .at = at[1], .parity = 1}, {.is = true, .at = at[0]}};
    Step even[STAGES_MOST] = {{.is = true, .guarded = true, .at = at[2], .when = more},
                              {.is = true, .at = at[1], .parity = 1}};
    Stmts body = {0};
    put_crossing(p, out, 0);
    put_crossing(p, out, 1);
    put_step(p, out, first);
    put_step(p, &body, odd);
    put_step(p, &body, even);
    put_loop_over(p, out, &body, pairs);
}

/* A copy of the statements with the loop in its new form. */
static void rebuild(Pipeline *p, Stmts *out, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (body[i] == p->loop) {
            (p->wide ? put_wide : put_pairs)(p, out);
            continue;
        }
        Stmt *s = body[i];
        if (stmt_has_body(body[i])) {
            Stmts inside = {0};
            rebuild(p, &inside, body[i]->body, body[i]->n_body);
            s = arena_copy(p->arena, body[i], sizeof *s);
            s->body = inside.at;
            s->n_body = inside.n;
        }
        vec_push(p->arena, out, s);
    }
}

Kernel *lower_pipelined(Ctx *ctx, Arena *arena, const PieceUses *uses, const Stages *s,
                        int64_t trips)
{
    const Kernel *k = uses->k;
    const Stmt *loop = uses->loop;
    Pipeline p = {
        .ctx = ctx, .arena = arena, .uses = uses, .from = k, .loop = loop, .stages = s};
    p.trips = trips > 0 && trips < loop->range.limit.n ? trips : loop->range.limit.n;
    for (uint32_t i = 0; i < s->n; i++) {
        p.latest = s->piece[i].late > p.latest ? s->piece[i].late : p.latest;
    }
    bool at_zero = loop->range.start.n == 0 && loop->range.start.base == 0;
    p.trips =
        at_zero ? p.trips : loop->range.limit.n; /* positions, of which it begins at some */
    p.wide = s->wide || p.latest == 0;
    if (loop->window != NULL || loop->step != 1 || loop->part != FOR_ALL || p.trips < 4 ||
        (!p.wide && (!at_zero || p.trips % 2 != 0 || p.latest > 1))) {
        return NULL;
    }
    p.crosses = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    p.home = ARENA_ARRAY(arena, k->bufs.n + 1, uint32_t);
    p.outside = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    p.in_place = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        p.crosses[b] = crosses(uses, s, b);
    }
    find_homes(&p);
    p.var = ARENA_ARRAY(arena, k->vars.n + 1, VarRef);
    p.used = ARENA_ARRAY(arena, k->vars.n + 1, bool);
    for (VarRef v = 0; v < k->vars.n; v++) {
        p.var[v] = v;
    }
    p.to = kernel_like(arena, k);
    p.pair = kernel_var(p.to, &ctx->syms, k->vars.at[loop->var].name->text, true);
    for (int parity = 0; parity < 2; parity++) {
        p.copy[parity] = ARENA_ARRAY(arena, k->bufs.n + 1, BufRef);
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            p.copy[parity][b] = b;
        }
    }
    Stmts out = {0};
    rebuild(&p, &out, k->body, k->n_body);
    p.to->body = out.at;
    p.to->n_body = out.n;
    return kernel_numbered(arena, p.to);
}
