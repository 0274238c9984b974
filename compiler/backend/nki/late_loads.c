/* SPDX-License-Identifier: Apache-2.0 */
/* Loads before a loop that the loop does not begin with. Loads run one after the other, so what the first iteration begins with would
 * come last; such a load goes to where its tile is first used,
 *
 *     load W; for i: { load X[i]; .. X ..; .. W .. }   ->   for i: { load X[i]; .. X ..; if i == 0: load W; .. W .. }
 */
#include "backend/nki/legalise.h"
#include "backend/nki/make.h"
#include "loop/copy.h"

typedef struct LateLoads {
    Arena *arena;
    const Kernel *k;
    bool *written;  /* [bufs] by any statement */
    uint32_t *uses; /* [bufs] statements that read or write it */
    bool moved;
} LateLoads;

static void count_uses(const Kernel *k, Stmt *const *body, uint32_t n, uint32_t *uses,
                       bool *written)
{
    Arena *a = k->arena;
    ArenaMark before = arena_mark(a);
    bool *here = ARENA_ARRAY(a, k->bufs.n + 1, bool);
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        tile_mark_uses(s, k->bufs.n, here);
        written[s->dst] = true;
        if (s->sums > 0) {
            written[s->sums - 1] = true;
        }
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            uses[b] += here[b];
        }
    }
    arena_reset(a, before);
}

/* Is it a load of a tile from what nobody writes, or a loop of such loads? */
static bool is_load(const LateLoads *x, const Stmt *s, uint32_t *n, BufRef *tile)
{
    if (s->kind == STMT_FOR && !s->parallel) {
        bool all = true;
        for (uint32_t i = 0; i < s->n_body && all; i++) {
            all = is_load(x, s->body[i], n, tile);
        }
        return all && *n > 0;
    }
    if (s->kind != STMT_TILE || s->fold != OP_COPY || s->value->kind != EXPR_LOAD) {
        return false;
    }
    bool loads = x->k->bufs.at[s->dst].space == SPACE_TILE &&
                 x->k->bufs.at[s->value->buf].space == SPACE_ARGUMENT &&
                 !x->written[s->value->buf] && (*n == 0 || *tile == s->dst);
    *tile = s->dst;
    *n += 1;
    return loads;
}

/* In which iteration of the loop is a statement of its body first run? -1: who knows. */
static int64_t first_run(const Stmt *loop, const Stmt *s)
{
    int64_t first = 0;
    for (uint32_t g = 0; s->kind == STMT_BLOCK && g < s->n_guards; g++) {
        bool own = s->guard[g].var == loop->var && s->guard[g].from.n == 0;
        first = !own || first < 0 ? -1 : s->guard[g].lo;
    }
    return first;
}

/* A load that goes into a loop. */
typedef struct Late {
    Stmt *load;
    uint32_t at; /* before this statement of the body */
    int64_t iteration;
} Late;

/* Does one of its loops have this variable? Loops one after the other may share one. */
static bool runs_over(const Stmt *load, VarRef v)
{
    bool runs = load->kind == STMT_FOR && load->var == v;
    for (uint32_t i = 0; stmt_has_body(load) && i < load->n_body; i++) {
        runs |= runs_over(load->body[i], v);
    }
    return runs;
}

/* Where in the loop the tile is used first, which must be used there alone, and not by what begins the loop. */
static bool goes_into(const LateLoads *x, const Stmt *loop, BufRef tile, uint32_t loads,
                      Late *out)
{
    Arena *a = x->arena;
    ArenaMark before = arena_mark(a);
    uint32_t *uses = ARENA_ARRAY(a, x->k->bufs.n + 1, uint32_t), all = 0;
    bool *written = ARENA_ARRAY(a, x->k->bufs.n + 1, bool), known = true, any = false;
    for (uint32_t i = 0; i < loop->n_body; i++) {
        uint32_t was = uses[tile];
        count_uses(x->k, &loop->body[i], 1, uses, written);
        int64_t first = first_run(loop, loop->body[i]);
        if (uses[tile] > was) {
            known &= first >= 0;
            if (!any || first < out->iteration) {
                out->at = i;
                out->iteration = first;
            }
            any = true;
        }
    }
    all = uses[tile];
    bool only = any && known && !written[tile] && all + loads == x->uses[tile];
    arena_reset(a, before);
    return only && (out->at > 0 || out->iteration > 0);
}

static Stmt *with_loads(LateLoads *x, const Stmt *loop, const Late *late, uint32_t n)
{
    Stmts body = {0};
    for (uint32_t i = 0; i < loop->n_body; i++) {
        for (uint32_t l = 0; l < n; l++) {
            if (late[l].at == i) {
                Guard when = {
                    .var = loop->var, .lo = late[l].iteration, .hi = late[l].iteration + 1};
                Stmt **load = arena_copy(x->arena, &late[l].load, sizeof late[l].load);
                Stmt *block = stmt_guarded(x->arena, late[l].load->span, &when, 1, load, 1);
                vec_push(x->arena, &body, block);
            }
        }
        vec_push(x->arena, &body, loop->body[i]);
    }
    Stmt *out = arena_copy(x->arena, loop, sizeof *loop);
    out->body = body.at;
    out->n_body = body.n;
    return out;
}

static Stmts rebuilt(LateLoads *x, Stmt *const *body, uint32_t n)
{
    Stmts out = {0};
    bool *gone = ARENA_ARRAY(x->arena, n + 1, bool);
    Stmt **as = ARENA_ARRAY(x->arena, n + 1, Stmt *);
    Late *late = ARENA_ARRAY(x->arena, n + 1, Late);
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = as[i] = body[i];
        if (!stmt_has_body(s)) {
            continue;
        }
        Stmts in = rebuilt(x, s->body, s->n_body);
        Stmt *copy = arena_copy(x->arena, s, sizeof *s);
        copy->body = in.at;
        copy->n_body = in.n;
        as[i] = copy;
        bool zero = s->kind == STMT_FOR && !s->parallel && s->range.start.n == 0 &&
                    s->range.start.base == 0 && s->step == 1 && s->window == NULL;
        uint32_t found = 0;
        for (uint32_t j = 0; j < i && zero; j++) {
            BufRef tile = 0;
            uint32_t loads = 0;
            late[found].load = body[j];
            if (!gone[j] && !runs_over(body[j], s->var) && is_load(x, body[j], &loads, &tile) &&
                goes_into(x, copy, tile, loads, &late[found])) {
                gone[j] = x->moved = true;
                found++;
            }
        }
        as[i] = found > 0 ? with_loads(x, copy, late, found) : copy;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!gone[i]) {
            vec_push(x->arena, &out, as[i]);
        }
    }
    return out;
}

Kernel *lower_late_loads(Arena *arena, const Kernel *k)
{
    LateLoads x = {.arena = arena, .k = k};
    x.written = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    x.uses = ARENA_ARRAY(arena, k->bufs.n + 1, uint32_t);
    count_uses(k, k->body, k->n_body, x.uses, x.written);
    Stmts body = rebuilt(&x, k->body, k->n_body);
    if (!x.moved) {
        return NULL;
    }
    Kernel *out = kernel_like(arena, k);
    out->body = body.at;
    out->n_body = body.n;
    return kernel_numbered(arena, out);
}
