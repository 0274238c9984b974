/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a LEGAL kernel in program order, its loops unrolled. A statement in loops is read once: its positions are sums of loop
 * variables. */
#include "backend/nki/cores.h"
#include "loop/walk.h"

#define WALK_STEPS ((int64_t)64 * NKI_INSTRUCTIONS) /* iterations */

/* A statement in loops: read once, or in each iteration where it may be another instruction. */
typedef struct Decoded {
    Instr instr;
    bool varies;
    uint32_t n_moves;
    InstrMove moves[INSTR_MOVES];
} Decoded;

typedef struct Walk {
    const Kernel *k;
    Arena arena;
    InstrVisit visit;
    void *user;
    int64_t *env;
    Affine *
        least; /* [vars] of loops: the first value, of those that pass the tests of blocks around */
    uint32_t depth;
    VarRef loop[LOOP_DEPTH_LIMIT + 1];
    Decoded **decoded; /* [places] */
    Instr begins;      /* of a tile: nothing else in it is set */
    int64_t steps;
    bool brief, cores; /* cores: all of them, */
    int64_t core;      /* not this one alone */
    int64_t times;
    const Stmt *bad;
    const char *why;
} Walk;

int nki_lnc(const Kernel *k)
{
    const Stmt *s = k->n_body > 0 ? k->body[k->n_body - 1] : NULL;
    bool part = s != NULL && s->kind == STMT_BLOCK;
    const Stmt *loop =
        part ? nki_core_loop(s->body, s->n_body) : nki_core_loop(k->body, k->n_body);
    return loop == NULL ? 1 : NKI_CORES;
}

static bool walk_stops(Walk *w, const Stmt *s, const char *why)
{
    w->bad = s;
    w->why = why;
    return false;
}

/* Statements that have a number. */
static uint32_t count_places(Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    uint32_t count = 0;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        count++;
    }
    return count;
}

/* `place` is the number of the block's first statement, and then of the first one after it. */
static bool walk_block(Walk *w, Stmt *const *body, uint32_t n, uint32_t *place);

/* Does an access to PSUM move with the variable? Banks have borders, which some iterations might cross. */
static bool moves_in_psum(const Kernel *k, const Stmt *s, VarRef v)
{
    ExprWalk w;
    bool moves = k->bufs.at[s->dst].space == SPACE_ACC && access_uses(k, s->dst, s->at, v);
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        moves |= k->bufs.at[x->buf].space == SPACE_ACC && access_uses(k, x->buf, x->at, v);
    }
    return moves;
}

/* Do the iterations differ in positions alone? */
static bool is_uniform(const Walk *w, const Stmt *loop)
{
    StmtWalk walk;
    ArenaMark before = arena_mark(w->k->arena);
    bool *made = ARENA_ARRAY(w->k->arena, w->k->bufs.n + 1, bool);
    bool *read = ARENA_ARRAY(w->k->arena, w->k->bufs.n + 1, bool), uniform = true;
    for (const Stmt *s = stmt_first(&walk, loop->body, loop->n_body); s != NULL;
         s = stmt_next(&walk)) {
        for (uint32_t g = 0; s->kind == STMT_BLOCK && g < s->n_guards; g++) {
            uniform &= !affine_uses(s->guard[g].from, loop->var);
            uniform &= s->guard[g].var != loop->var || /* the last is looked at anyway */
                       (loop->range.start.n == 0 && s->guard[g].lo <= loop->range.start.base &&
                        s->guard[g].hi >= loop->range.limit.n - 1);
        }
        uniform &= s->window == NULL || !affine_uses(s->window->hi, loop->var);
        uniform &= s->kind != STMT_FOR || !affine_uses(s->range.start, loop->var);
        if (s->kind == STMT_ALLOC) {
            made[s->buf] = true;
        } else if (s->kind == STMT_TILE) {
            read[s->dst] = true;
            expr_mark_loads(s->value, read);
            uniform &= !moves_in_psum(w->k, s, loop->var);
        }
    }
    for (uint32_t b = 0; b < w->k->bufs.n; b++) {
        uniform &= !read[b] || made[b] || w->k->bufs.at[b].space != SPACE_ACC;
    }
    arena_reset(w->k->arena, before);
    return uniform;
}

Affine instr_least(Affine around, const Guard *g)
{
    Affine least = g->from;
    least.base = g->lo;
    return least.n > 0 || (around.n == 0 && least.base > around.base) ? least : around;
}

/* A positive sum of variables of the loops around; false: it is something else. */
static bool find_sum(const Walk *w, Affine x, int64_t *at)
{
    *at = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].coef <= 0 || affine_is_dim(x.term[i].var)) {
            return false;
        }
        *at += x.term[i].coef * w->env[x.term[i].var];
    }
    return true;
}

/* Where a loop begins and ends in these iterations of the ones around: at sums of their variables, where it begins with one of them or has
 * a window. False: there is another window, or it ends past the loop. */
static bool find_ends(const Walk *w, const Stmt *s, int64_t *start, int64_t *end)
{
    int64_t limit = *end = s->range.limit.n;
    bool plain = find_sum(w, s->range.start, start);
    if (s->window != NULL) {
        plain &= !s->window->has_lo && s->window->has_hi && find_sum(w, s->window->hi, end);
    }
    return plain && *end <= limit;
}

static bool walk_for(Walk *w, const Stmt *s, uint32_t *place)
{
    bool plain =
        s->range.span == 0 && s->range.limit.sym < 0 && s->part == FOR_ALL && s->step == 1;
    if (!plain) {
        return walk_stops(w, s, "a loop that is not to a number by one");
    }
    uint32_t first = *place;
    if (w->depth == LOOP_DEPTH_LIMIT) {
        return walk_stops(w, s, "loops nested too deep");
    }
    w->loop[w->depth++] = s->var;
    int64_t start = 0, end = 0, times = w->times;
    if (!find_ends(w, s, &start, &end)) {
        return walk_stops(w, s, "a loop whose ends are no sums of loop variables within it");
    }
    if (s->parallel && !w->cores) {
        start += w->core;
        end = start < end ? start + 1 : end;
    }
    w->least[s->var] = s->range.start;
    bool brief = w->brief && end - start > 3 && is_uniform(w, s);
    w->steps = sat_add(w->steps, brief ? sat_mul(times, end - start) : 0);
    for (int64_t v = start; v < end; v = brief && v == start + 1 ? end - 1 : v + 1) {
        w->env[s->var] = v;
        w->times = brief && v == start + 1 ? sat_mul(times, end - start - 2) : times;
        *place = first;
        if (++w->steps > WALK_STEPS) {
            return walk_stops(w, s, "more iterations than any kernel that is printed has");
        }
        if (!walk_block(w, s->body, s->n_body, place)) {
            return false;
        }
    }
    *place = first + count_places(s->body, s->n_body);
    w->depth--;
    w->times = times;
    w->env[s->var] = 0;
    return true;
}

/* Is what is at the destination of the fold no part of it? */
static bool begins(const Walk *w, const Stmt *s)
{
    bool all = s->begins;
    for (uint32_t i = 0; i < s->n_first; i++) {
        int64_t least = 0;
        all = all && find_sum(w, w->least[s->first[i]], &least) && w->env[s->first[i]] == least;
    }
    return all;
}

/* ---- a statement ---- */

static bool visit_instr(Walk *w, Instr *i, uint32_t number)
{
    i->place = number;
    i->env = w->env;
    i->times = w->times;
    i->begins = begins(w, i->stmt);
    return w->visit(w->user, i);
}

static bool visit_in_loop(Walk *w, const Stmt *s, uint32_t number)
{
    Decoded *d = w->decoded[number];
    bool first = d == NULL;
    if (first) {
        d = w->decoded[number] = ARENA_NEW(&w->arena, Decoded);
    }
    if ((first || d->varies) && !instr_decode(w->k, s, w->env, &d->instr, &w->why)) {
        w->bad = s;
        return false;
    }
    if (first) {
        d->varies = instr_moves_partitions(&d->instr);
        d->n_moves = d->varies ? 0 : instr_moves(&d->instr, d->moves);
    }
    for (uint32_t i = 0; i < d->n_moves; i++) {
        *d->moves[i].to = affine_at(d->moves[i].by, w->env);
    }
    return visit_instr(w, &d->instr, number);
}

static bool visit_once(Walk *w, const Stmt *s, uint32_t number)
{
    Instr instr = {0};
    if (!instr_decode(w->k, s, w->env, &instr, &w->why)) {
        w->bad = s;
        return false;
    }
    return visit_instr(w, &instr, number);
}

static bool visit_alloc(Walk *w, const Stmt *s)
{
    w->begins.kind = INSTR_ALLOC;
    w->begins.stmt = s;
    w->begins.dst.buf = s->buf;
    w->begins.dst.on_chip = true;
    return w->visit(w->user, &w->begins);
}

/* A block that is run in this iteration, its tests from `at` on: what begins in it begins in the first such. */
static bool walk_guarded(Walk *w, const Stmt *s, uint32_t at, uint32_t *place)
{
    if (at == s->n_guards) {
        return walk_block(w, s->body, s->n_body, place);
    }
    VarRef v = s->guard[at].var;
    Affine around = w->least[v];
    int64_t before = 0, least = 0, here = guard_least(&s->guard[at], w->env);
    w->least[v] = instr_least(around, &s->guard[at]);
    if (!find_sum(w, around, &before) || !find_sum(w, w->least[v], &least) ||
        least != (here > before ? here : before)) {
        return walk_stops(w, s, "a test of a loop that begins now before and now behind it");
    }
    bool ok = walk_guarded(w, s, at + 1, place);
    w->least[v] = around;
    return ok;
}

static bool walk_stmt(Walk *w, const Stmt *s, uint32_t *place)
{
    switch (s->kind) {
    case STMT_FOR:
        return walk_for(w, s, place);
    case STMT_BLOCK:
        if (!stmt_guards_hold(s, w->env)) {
            *place += count_places(s->body, s->n_body);
            return true;
        }
        return walk_guarded(w, s, 0, place);
    case STMT_ALLOC:
        return !nki_on_chip(w->k, s->buf) || visit_alloc(w, s);
    case STMT_TILE:
        return w->depth > 0 ? visit_in_loop(w, s, (*place)++) : visit_once(w, s, (*place)++);
    }
    UNREACHABLE();
}

static bool walk_block(Walk *w, Stmt *const *body, uint32_t n, uint32_t *place)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!walk_stmt(w, body[i], place)) {
            return false;
        }
    }
    return true;
}

static bool walk_kernel(Walk *w, const Stmt **bad, const char **why)
{
    uint32_t place = 0;
    arena_init(&w->arena, w->k->arena->budget);
    w->env = ARENA_ARRAY(&w->arena, w->k->vars.n + 1, int64_t);
    w->least = ARENA_ARRAY(&w->arena, w->k->vars.n + 1, Affine);
    w->decoded = (Decoded **)arena_array(&w->arena, instr_places(w->k) + 1, sizeof *w->decoded);
    w->times = 1;
    bool ok = walk_block(w, w->k->body, w->k->n_body, &place);
    *bad = w->bad;
    *why = w->why;
    arena_release(&w->arena);
    return ok;
}

bool instr_walk(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                const char **why)
{
    Walk w = {.k = k, .visit = visit, .user = user};
    return walk_kernel(&w, bad, why);
}

bool instr_walk_core(const Kernel *k, int64_t core, InstrVisit visit, void *user,
                     const Stmt **bad, const char **why)
{
    Walk w = {.k = k, .visit = visit, .user = user, .core = core};
    return walk_kernel(&w, bad, why);
}

bool instr_walk_brief(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                      const char **why)
{
    Walk w = {.k = k, .visit = visit, .user = user, .brief = true};
    return walk_kernel(&w, bad, why);
}

bool instr_walk_all(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                    const char **why)
{
    Walk w = {.k = k, .visit = visit, .user = user, .cores = true};
    return walk_kernel(&w, bad, why);
}

bool instr_walk_cores(const Kernel *k, InstrVisit visit, void *user, const Stmt **bad,
                      const char **why)
{
    Walk w = {.k = k, .visit = visit, .user = user, .brief = true, .cores = true};
    return walk_kernel(&w, bad, why);
}

uint32_t instr_places(const Kernel *k)
{
    return count_places(k->body, k->n_body);
}
