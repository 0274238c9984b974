/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of a loop interleaved (unroll and jam). Engines run in order: where a value goes from one engine to another and back, the
 * first one waits in each iteration. Several iterations share a loop around such a chain, and each half of it has a loop of its own:
 *
 *     for i in 0..112 {                        for i in 0..28 {
 *       load @x; @e = exp(@x) (Scalar)           for u in 0..4 { load @x[u]; @e = exp(@x[u]); @a[u] = add(@e, 1) }
 *       @a = add(@e, 1) (Vector)         ->      for u in 0..4 { @r = recip(@a[u]); @y = mul(@x[u], @r); store @y }
 *       @r = recip(@a) (Scalar)                }
 *       @y = mul(@x, @r) (Vector)
 *       store @y
 *     }
 *
 * A tile that several of the loops use has a part for each iteration. The Scalar engine changes its table of functions less often, too. */
#include "backend/nki/legalise.h"
#include "loop/clauses.h"
#include "loop/copy.h"

#include <string.h>

#define TIMES_LEAST 2 /* iterations that are interleaved */
#define TIMES_MOST  8
#define GAIN        0.97 /* of the time, of a loop */
#define LOOPS       4    /* the longest ones */

/* ---- groups: pieces of the body that share a loop ---- */

/* Engines that a piece keeps busy: bits. */
typedef struct Engines {
    const Kernel *k;
    const NkiChip *chip;
    const Stmt *loop;
    NkiBalance balance;
    uint32_t of[PIECES];
    const PieceUses *uses;
} Engines;

/* Is it the variable of the loop, or of one in it? */
static bool loop_has(const Stmt *s, VarRef var)
{
    bool has = s->kind == STMT_FOR && s->var == var;
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body && !has; i++) {
        has = loop_has(s->body[i], var);
    }
    return has;
}

/* Do sums begin in the first iteration of the loop? */
static bool begins_sums(const Stmt *s, VarRef loop)
{
    bool begins = false;
    for (uint32_t i = 0; s->kind == STMT_TILE && i < s->n_first; i++) {
        begins |= s->first[i] == loop;
    }
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body && !begins; i++) {
        begins = begins_sums(s->body[i], loop);
    }
    return begins;
}

static bool contains(const Stmt *s, const Stmt *one)
{
    bool has = s == one;
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body && !has; i++) {
        has = contains(s->body[i], one);
    }
    return has;
}

static bool note_engine(void *user, const Instr *i)
{
    Engines *e = user;
    if (i->kind == INSTR_ALLOC) {
        return true;
    }
    bool scalar = i->kind != INSTR_DMA && nki_on_scalar(&e->balance, e->k, e->chip, i);
    int64_t cycles = 0;
    int engine =
        i->kind == INSTR_DMA ? NKI_DMA : nki_instr_cycles(e->k, e->chip, i, scalar, &cycles);
    for (uint32_t p = 0; p < e->uses->n && engine >= 0; p++) {
        for (uint32_t s = e->uses->from[p]; s < e->uses->from[p + 1]; s++) {
            e->of[p] |= contains(e->loop->body[s], i->stmt) ? 1U << engine : 0;
        }
    }
    return true;
}

/* Each statement that is no allocation ends a piece. */
static bool find_pieces(const Stmt *loop, PieceUses *uses)
{
    uses->n = 0;
    for (uint32_t i = 0; i < loop->n_body; i++) {
        if (loop->body[i]->kind != STMT_ALLOC) {
            if (uses->n == PIECES) {
                return false;
            }
            uses->from[++uses->n] = i + 1;
        }
    }
    return uses->n > 1 && uses->from[uses->n] == loop->n_body;
}

/* A group ends before a piece that goes back to an engine which another one of the group has followed. */
static uint32_t find_groups(const PieceUses *uses, const uint32_t *engines, uint32_t *group)
{
    uint32_t n = 0, used = 0, last = 0;
    for (uint32_t p = 0; p < uses->n; p++) {
        uint32_t now = engines[p] & ~(1U << NKI_DMA);
        bool back = (now & used & ~last) != 0 || (now & (now - 1)) != 0;
        if (back && used != 0) {
            n++;
            used = last = 0;
        }
        group[p] = n;
        used |= now;
        last = now != 0 ? now : last;
    }
    return n + 1;
}

/* ---- the loop ---- */

typedef struct Interleaving {
    Ctx *ctx;
    Arena *arena;
    const PieceUses *uses;
    const Kernel *from;
    Kernel *to;
    const Stmt *loop;
    int64_t times;
    uint32_t group[PIECES], n_groups;
    int64_t *part; /* [bufs] columns from an iteration's part to the next; 0: a tile of one */
    VarRef inner;  /* variable of the loop of the group at hand */
    VarRef var;    /* variable of the original loop, which statements have ... */
    Affine now;    /* ... and the position that replaces it */
} Interleaving;

static Affine moved_position(const Interleaving *x, Affine at)
{
    return affine_subst(x->arena, at, x->var, x->now);
}

static const Affine *moved(const Interleaving *x, BufRef buf, const Affine *at)
{
    uint32_t rank = x->to->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(x->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = moved_position(x, at[d]);
    }
    if (buf < x->from->bufs.n && x->part[buf] > 0) {
        out[1] = affine_add(x->arena, out[1], x->part[buf], affine_var(x->arena, x->inner));
    }
    return out;
}

static void moved_load(void *user, Expr *load)
{
    const Interleaving *x = user;
    if (load->kind == EXPR_LOAD) {
        load->at = moved(x, load->buf, load->at);
    } else if (load->kind == EXPR_INDEX) {
        Affine at = moved_position(x, load->at[0]);
        load->at = arena_copy(x->arena, &at, sizeof at);
    }
}

static Stmt *moved_stmt(const Interleaving *x, const Stmt *s)
{
    Stmt *t = arena_copy(x->arena, s, sizeof *s);
    if (s->kind == STMT_TILE) {
        t->at = moved(x, s->dst, s->at);
        t->value = expr_with_places(x->arena, s->value, moved_load, (void *)(uintptr_t)x);
        Clauses has;
        clauses_of(x->to, t, &has);
        for (const Clause *c = has.at; c < has.at + has.n; c++) {
            if (c->at != NULL) {
                *c->at = moved(x, *c->buf - 1, *c->at);
            }
        }
        VarRef *first = ARENA_ARRAY(x->arena, s->n_first + 1, VarRef);
        for (uint32_t i = 0; i < s->n_first; i++) {
            first[i] = s->first[i];
            if (s->first[i] == x->var) {
                first[t->n_first++] = x->inner;
            }
        }
        t->first = first;
        return t;
    }
    if (s->kind == STMT_FOR) {
        t->range.start = moved_position(x, s->range.start);
    }
    Stmt **body = ARENA_ARRAY(x->arena, s->n_body + 1, Stmt *);
    for (uint32_t i = 0; i < s->n_body; i++) {
        body[i] = moved_stmt(x, s->body[i]);
    }
    t->body = s->n_body > 0 ? body : s->body;
    return t;
}

/* Do the statements use whole banks of the tile alone, each from where it begins? (rule G4) */
static bool uses_banks(const Kernel *k, const Stmt *s, BufRef buf, const Affine *at)
{
    int64_t bank = NKI_PSUM_BANK / dtype_bytes(k->bufs.at[buf].dtype);
    bool whole = at[0].base == 0 && at[1].base % bank == 0;
    for (uint32_t t = 0; t < at[1].n; t++) {
        bool own = false;
        for (uint32_t i = 0; i < s->n_index; i++) {
            own |= s->index[i].var == at[1].term[t].var;
        }
        whole &= own ? at[1].term[t].coef == 1 : at[1].term[t].coef % bank == 0;
    }
    return whole && at[1].n <= 2;
}

static bool keeps_banks(const Kernel *k, const Stmt *s, BufRef buf)
{
    bool whole = true;
    if (s->kind == STMT_TILE) {
        whole = s->dst != buf || uses_banks(k, s, buf, s->at);
        ExprWalk w;
        for (const Expr *e = expr_first(&w, s->value); e != NULL && whole; e = expr_next(&w)) {
            whole = e->kind != EXPR_LOAD || e->buf != buf || uses_banks(k, s, buf, e->at);
        }
    }
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body && whole; i++) {
        whole = keeps_banks(k, s->body[i], buf);
    }
    return whole;
}

/* Tiles that several groups use get a part for each iteration. False: a tile in PSUM cannot. */
static bool widen_tiles(Interleaving *x)
{
    const PieceUses *u = x->uses;
    for (uint32_t b = 0; b < x->from->bufs.n; b++) {
        uint32_t use = u->own[b] ? u->read[b] | u->write[b] : 0;
        uint32_t first = UINT32_MAX, last = 0;
        for (uint32_t p = 0; p < u->n; p++) {
            if (use >> p & 1) {
                first = first == UINT32_MAX ? x->group[p] : first;
                last = x->group[p];
            }
        }
        if (use == 0 || first == last) {
            continue;
        }
        Buffer *wide = &x->to->bufs.at[b];
        int64_t columns = wide->extent[1].n;
        int64_t bank = NKI_PSUM_BANK / dtype_bytes(wide->dtype);
        bool psum = wide->space == SPACE_ACC;
        if (psum && !keeps_banks(x->from, x->loop, b)) {
            return false;
        }
        x->part[b] = psum ? (columns + bank - 1) / bank * bank : columns;
        Dim *extent = ARENA_ARRAY(x->arena, wide->rank + 1, Dim);
        memcpy(extent, wide->extent, wide->rank * sizeof *extent);
        extent[1] = dim_fixed(sat_mul(x->part[b], x->times));
        wide->extent = extent;
        if (psum && extent[1].n > NKI_PSUM_BANKS * bank) {
            return false;
        }
    }
    return true;
}

/* The loop over iterations of one group, behind the tiles that groups share. */
static Stmt *make_group(Interleaving *x, uint32_t group, Stmts *shared)
{
    const PieceUses *u = x->uses;
    Stmts body = {0};
    x->inner = kernel_var(x->to, &x->ctx->syms, "u", true);
    x->var = x->loop->var;
    x->now = affine_add(x->arena, affine_var(x->arena, x->inner), x->times,
                        affine_var(x->arena, x->var));
    for (uint32_t p = 0; p < u->n; p++) {
        for (uint32_t i = u->from[p]; i < u->from[p + 1] && x->group[p] == group; i++) {
            const Stmt *s = x->loop->body[i];
            if (s->kind == STMT_ALLOC && x->part[s->buf] > 0) {
                Stmt *t = arena_copy(x->arena, s, sizeof *s);
                vec_push(x->arena, shared, t);
            } else {
                Stmt *t = moved_stmt(x, s);
                vec_push(x->arena, &body, t);
            }
        }
    }
    Stmt *loop = arena_copy(x->arena, x->loop, sizeof *loop);
    loop->var = x->inner;
    loop->range = range_whole(dim_fixed(x->times));
    loop->body = body.at;
    loop->n_body = body.n;
    return loop;
}

static Stmt *make_loop(Interleaving *x)
{
    Stmts groups = {0}, body = {0};
    for (uint32_t g = 0; g < x->n_groups; g++) {
        Stmt *loop = make_group(x, g, &body);
        vec_push(x->arena, &groups, loop);
    }
    for (uint32_t g = 0; g < groups.n; g++) {
        vec_push(x->arena, &body, groups.at[g]);
    }
    Stmt *loop = arena_copy(x->arena, x->loop, sizeof *loop);
    loop->range = range_whole(dim_fixed(x->loop->range.limit.n / x->times));
    loop->body = body.at;
    loop->n_body = body.n;
    return loop;
}

/* The iterations that are left over, with tiles of their own. */
static void put_rest(Interleaving *x, Stmts *out)
{
    const Kernel *k = x->from;
    BufRef *buf = ARENA_ARRAY(x->arena, k->bufs.n + 1, BufRef);
    VarRef *var = ARENA_ARRAY(x->arena, k->vars.n + 1, VarRef);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        const Buffer *of = &k->bufs.at[b];
        buf[b] = x->uses->own[b] ? kernel_buffer(x->to, &x->ctx->syms, of->name->text,
                                                 of->dtype, of->space, of->rank, of->extent)
                                 : b;
    }
    for (VarRef v = 0; v < k->vars.n; v++) {
        const Var *of = &k->vars.at[v];
        var[v] = of->is_loop && loop_has(x->loop, v)
                     ? kernel_var(x->to, &x->ctx->syms, of->name->text, true)
                     : v;
    }
    StmtCopy copy = {.arena = x->arena, .from = k, .buf = buf, .var = var};
    Stmt *one = (Stmt *)(uintptr_t)x->loop; /* only read */
    Stmt *rest = stmts_copy(&copy, &one, 1)[0];
    int64_t n = x->loop->range.limit.n;
    rest->range.start.base = n - n % x->times;
    if (n % x->times > 1) {
        vec_push(x->arena, out, rest);
        return;
    }
    x->var = rest->var;
    x->now = affine_const(n - 1);
    for (uint32_t i = 0; i < rest->n_body; i++) {
        Stmt *s = moved_stmt(x, rest->body[i]);
        vec_push(x->arena, out, s);
    }
}

static Stmt **rebuild(Interleaving *x, Stmt *const *body, uint32_t n, uint32_t *made)
{
    Stmts out = {0};
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s == x->loop) {
            s = make_loop(x);
        } else if (stmt_has_body(s)) {
            s = arena_copy(x->arena, s, sizeof *s);
            s->body = rebuild(x, s->body, s->n_body, &s->n_body);
        }
        vec_push(x->arena, &out, s);
        if (body[i] == x->loop && x->loop->range.limit.n % x->times > 0) {
            put_rest(x, &out);
        }
    }
    *made = out.n;
    return out.at;
}

/* Is the order of groups right: does nothing that iterations share pass from one to another? */
static bool is_right(const PieceUses *u, const uint32_t *group)
{
    for (uint32_t i = 0; i < u->n; i++) {
        for (uint32_t j = i + 1; j < u->n; j++) {
            if (u->carried[i][j] && group[i] != group[j]) {
                return false;
            }
        }
    }
    return true;
}

static bool may_interleave(const Stmt *loop)
{
    return loop->range.start.n == 0 && loop->range.start.base == 0 && loop->step == 1 &&
           loop->window == NULL && loop->part == FOR_ALL && !loop->parallel;
}

/* The kernel with so many iterations of the loop interleaved, or null. */
static Kernel *interleaved(Ctx *ctx, Arena *arena, const PieceUses *uses, const uint32_t *group,
                           uint32_t n_groups, int64_t times)
{
    Interleaving x = {.ctx = ctx, .arena = arena, .uses = uses, .from = uses->k};
    x.loop = uses->loop;
    x.times = times;
    x.n_groups = n_groups;
    memcpy(x.group, group, sizeof x.group);
    x.to = kernel_like(arena, x.from);
    x.part = ARENA_ARRAY(arena, x.from->bufs.n + 1, int64_t);
    if (!widen_tiles(&x)) {
        return NULL;
    }
    x.to->body = rebuild(&x, x.from->body, x.from->n_body, &x.to->n_body);
    return kernel_numbered(arena, x.to);
}

/* ---- which loops, and how many iterations ---- */

/* The kernel with the loop interleaved as that gains most, and what it costs then; null: nothing gains. */
static Kernel *best_of_loop(const Lower *l, const Kernel *k, const Stmt *loop, NkiCost *cost)
{
    PieceUses *uses = ARENA_NEW(l->arena, PieceUses);
    if (!may_interleave(loop) || !find_pieces(loop, uses) ||
        !stages_uses(l->arena, k, loop, uses)) {
        return NULL;
    }
    Engines engines = {k, l->chip, loop, nki_balance(k, l->chip), {0}, uses};
    uint32_t group[PIECES] = {0};
    const Stmt *bad = NULL;
    const char *why = NULL;
    bool known = instr_walk_brief(k, note_engine, &engines, &bad, &why);
    uint32_t n = find_groups(uses, engines.of, group);
    if (!known || n < 2 || !is_right(uses, group)) {
        return NULL;
    }
    Kernel *best = NULL;
    double least = cost->predicted_us * GAIN;
    for (int64_t times = TIMES_LEAST; times <= TIMES_MOST; times++) {
        NkiCost now;
        int64_t rest = loop->range.limit.n % times;
        if (loop->range.limit.n < 2 * times || (rest > 0 && begins_sums(loop, loop->var))) {
            continue;
        }
        Kernel *made = interleaved(l->ctx, l->arena, uses, group, n, times);
        if (made != NULL && nki_measure(made, l->chip, &now) && now.predicted_us < least &&
            now.sbuf_peak <= l->chip->sbuf_bytes && now.psum_peak <= NKI_PSUM_BANKS) {
            least = now.predicted_us * GAIN;
            best = made;
            *cost = now;
        }
    }
    return best;
}

Kernel *lower_interleaved(const Lower *l, const Kernel *k, NkiCost *cost)
{
    Kernel *best = NULL;
    bool *tried = ARENA_ARRAY(l->arena, k->vars.n + 1, bool);
    for (uint32_t i = 0; i < LOOPS; i++) {
        const Stmt *loop = stages_longest_loop(l->arena, k, tried);
        if (loop == NULL) {
            break;
        }
        tried[loop->var] = true;
        Kernel *made = best_of_loop(l, k, loop, cost);
        if (made != NULL) {
            bool *next = ARENA_ARRAY(l->arena, made->vars.n + 1, bool);
            memset(next, true, made->vars.n);
            memcpy(next, tried, k->vars.n * sizeof *next);
            tried = next;
            k = best = made;
        }
    }
    return best;
}
