/* SPDX-License-Identifier: Apache-2.0 */
/* See cores.h. A kernel for two cores is half of it (halve.c), lowered like any other, with positions in memory that are a multiple of
 * the core's number further on. Of all indices that can be halved the one is taken with which the half takes least time. Where
 * there is none, one core does all, and the user is told. */
#include "backend/nki/cores.h"
#include "backend/nki/halve.h"
#include "backend/nki/make.h"
#include "backend/nki/part.h"
#include "loop/copy.h"
#include "loop/loop_verify.h"
#include "loop/walk.h"

#include <string.h>

/* A later dimension must take so much of the time of an earlier one, whose halves are longer runs of memory. */
#define LESS  0.99
#define TWICE 1.1 /* a text of two halves that are not alike counts so much more */

bool nki_cores_sound(const Kernel *k)
{
    StmtWalk w;
    uint32_t loops = 0;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        loops += s->kind == STMT_FOR && s->parallel;
    }
    uint32_t parts = nki_parts(k),
             found = parts < 2 && nki_core_loop(k->body, k->n_body) != NULL;
    for (uint32_t i = 0; i < k->n_body && parts > 1; i++) {
        const Stmt *s = k->body[i];
        found += s->kind == STMT_BLOCK && nki_core_loop(s->body, s->n_body) != NULL;
    }
    return loops == found && (found == 0 || found == parts);
}

/* ---- the body, as a loop over cores ---- */

static Stmt *core_loop(Arena *a, const Kernel *k, Stmt *const *body, uint32_t n, VarRef core,
                       int64_t cores)
{
    Stmt *s = ARENA_NEW(a, Stmt);
    *s = (Stmt){.kind = STMT_FOR, .span = k->span, .var = core, .step = 1, .parallel = true};
    s->range = range_whole(dim_fixed(cores));
    s->body = arena_copy(a, body, n * sizeof *body);
    s->n_body = n;
    return s;
}

/* Puts the loop around the body, or that of each part. */
static void put_core_loops(Arena *a, Kernel *k, VarRef core, int64_t cores)
{
    if (nki_parts(k) < 2) {
        Stmt *loop = core_loop(a, k, k->body, k->n_body, core, cores);
        k->body = arena_copy(a, &loop, sizeof(Stmt *));
        k->n_body = 1;
        return;
    }
    for (uint32_t i = 0; i < k->n_body; i++) {
        if (k->body[i]->kind == STMT_BLOCK) {
            Stmt *part = k->body[i];
            Stmt *loop = core_loop(a, k, part->body, part->n_body, core, cores);
            part->body = arena_copy(a, &loop, sizeof(Stmt *));
            part->n_body = 1;
        }
    }
}

/* ---- halves in memory ---- */

typedef struct Placing {
    Arena *arena;
    Kernel *to;
    VarRef core;
    /* [bufs] of the lowered half: which one it is in the whole, and how far halves lie from each other in each dimension (null: each
     * core has its own). */
    BufRef *buf;
    const int64_t **apart;
} Placing;

static const Affine *placed(const Placing *p, BufRef buf, const Affine *at)
{
    uint32_t rank = p->to->bufs.at[buf].rank;
    if (p->apart[buf] == NULL || rank == 0) {
        return at;
    }
    Affine *out = ARENA_ARRAY(p->arena, rank, Affine), core = affine_var(p->arena, p->core);
    for (uint32_t d = 0; d < rank; d++) {
        int64_t apart = p->apart[buf][d];
        out[d] = apart == 0 ? at[d] : affine_add(p->arena, at[d], apart, core);
    }
    return out;
}

static void place_load(void *user, Expr *load)
{
    const Placing *p = user;
    if (load->kind == EXPR_LOAD) {
        load->at = placed(p, load->buf, load->at);
        load->buf = p->buf[load->buf];
    }
}

static void place_stmts(Placing *p, Stmt **body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_TILE) {
            s->at = placed(p, s->dst, s->at);
            s->dst = p->buf[s->dst];
            s->value = expr_with_places(p->arena, s->value, place_load, p);
        } else if (stmt_has_body(s)) {
            place_stmts(p, s->body, s->n_body);
        }
    }
}

/* Of a buffer of the lowered half, which may have a last dimension more (double words). */
static const Dim *whole_extent(const Placing *p, const Buffer *half, const Buffer *whole)
{
    CHECK(half->rank <= whole->rank + 1);
    Dim *extent = ARENA_ARRAY(p->arena, half->rank + 1, Dim);
    for (uint32_t d = 0; d < half->rank; d++) {
        extent[d] = d < whole->rank ? whole->extent[d] : half->extent[d];
    }
    return extent;
}

/* The arguments are those of the whole kernel again. */
static void place_args(Placing *p, const Kernel *k, const Halved *half)
{
    Kernel *to = p->to;
    uint32_t n = to->args.n;
    CHECK(n == half->kernel->args.n);
    for (uint32_t i = 0; i < n; i++) {
        BufRef buf = to->args.at[i].buf, of = half->kernel->args.at[i].buf;
        const Buffer *whole = &k->bufs.at[half->whole[of]];
        p->apart[buf] = half->apart[of];
        p->buf[buf] = to->args.at[whole->param].buf;
        if (i < k->args.n) {
            to->bufs.at[buf].extent = whole_extent(p, &to->bufs.at[buf], whole);
        }
    }
    to->args.n = k->args.n;
}

/* Is a temporary (home.c calls it NAME_hbmN) the place in memory of this buffer of the half? */
static bool is_place_of(const Buffer *temporary, const Buffer *half)
{
    size_t n = strlen(half->name->text);
    bool same = temporary->rank == half->rank && temporary->dtype == half->dtype &&
                strncmp(temporary->name->text, half->name->text, n) == 0 &&
                strncmp(temporary->name->text + n, "_hbm", 4) == 0;
    for (uint32_t d = 0; same && d < half->rank; d++) {
        same = temporary->extent[d].n == half->extent[d].n;
    }
    return same;
}

/* What parts hand to each other has all positions again; false: it does not have the index. */
static bool place_temporaries(Placing *p, const Kernel *k, const Halved *half)
{
    BufRef buf = 0;
    for (uint32_t i = 0; nki_temporary(p->to, i, &buf); i++) {
        Buffer *b = &p->to->bufs.at[buf];
        BufRef of = 0;
        while (of < k->bufs.n && !is_place_of(b, &half->kernel->bufs.at[of])) {
            of++;
        }
        bool any = false;
        for (uint32_t d = 0; of < k->bufs.n && d < b->rank; d++) {
            any |= half->apart[of][d] != 0;
        }
        if (!any) {
            return false;
        }
        b->extent = k->bufs.at[of].extent;
        p->apart[buf] = half->apart[of];
    }
    return true;
}

/* A part has consecutive rows of what it writes, so halves do not lie above each other. */
static bool rows_stay(const Placing *p)
{
    bool stay = true;
    for (uint32_t b = 0; b < p->to->bufs.n && nki_parts(p->to) > 1; b++) {
        const Buffer *buf = &p->to->bufs.at[b];
        bool input = buf->param >= 0 && p->to->args.at[p->buf[b]].role == ARG_IN;
        stay &= p->apart[b] == NULL || input || p->apart[b][nki_row_dim(buf)] == 0;
    }
    return stay;
}

static bool has_copies(const Kernel *k)
{
    bool has = false;
    for (uint32_t i = 0; i < k->args.n; i++) {
        has |= nki_copied(k, k->args.at[i].buf, NULL);
    }
    return has;
}

/* A lowered half with its places in the whole, before there is a loop over cores; null: *why. */
static Kernel *place_half(Ctx *ctx, Arena *a, const Kernel *k, const Halved *half,
                          const Kernel *made, VarRef *core, const char **why)
{
    Placing p = {.arena = a, .to = kernel_changeable(a, made)};
    uint32_t n = p.to->bufs.n;
    p.core = *core = kernel_var(p.to, &ctx->syms, "core", true);
    p.buf = ARENA_ARRAY(a, n + 1, BufRef);
    p.apart = (const int64_t **)arena_array(a, n + 1, sizeof *p.apart);
    for (uint32_t b = 0; b < n; b++) {
        p.buf[b] = b;
    }
    if (has_copies(made)) {
        *why = "an argument that is updated would be copied first";
        return NULL;
    }
    place_args(&p, k, half);
    if (!place_temporaries(&p, k, half) || !rows_stay(&p)) {
        *why = "device programs share it out by rows";
        return NULL;
    }
    place_stmts(&p, p.to->body, p.to->n_body);
    return p.to;
}

static Stmt *guarded_by(Arena *a, const Kernel *k, Stmt **body, uint32_t n, VarRef core,
                        int64_t number)
{
    Guard when = {.var = core, .lo = number, .hi = number + 1};
    return stmt_guarded(a, k->span, &when, 1, body, n);
}

/* Halves that are not alike: each core has a text of its own. */
static void join_halves(Ctx *ctx, Arena *a, Kernel *first, const Kernel *second, VarRef core)
{
    BufRef *buf = ARENA_ARRAY(a, second->bufs.n + 1, BufRef);
    VarRef *var = ARENA_ARRAY(a, second->vars.n + 1, VarRef);
    for (uint32_t b = 0; b < second->bufs.n; b++) {
        const Buffer *of = &second->bufs.at[b];
        bool arg = of->space == SPACE_ARGUMENT && (uint32_t)of->param < first->args.n;
        buf[b] = arg ? first->args.at[of->param].buf
                     : kernel_buffer(first, &ctx->syms, of->name->text, of->dtype, of->space,
                                     of->rank, of->extent);
        first->bufs.at[buf[b]].span = of->span;
    }
    for (uint32_t v = 0; v < second->vars.n; v++) {
        const Var *of = &second->vars.at[v];
        bool is_core =
            of->is_loop && strcmp(of->name->text, first->vars.at[core].name->text) == 0;
        var[v] = is_core ? core : kernel_var(first, &ctx->syms, of->name->text, of->is_loop);
    }
    StmtCopy copy = {.arena = a, .from = second, .buf = buf, .var = var};
    Stmt *both[NKI_CORES];
    both[0] = guarded_by(a, first, first->body, first->n_body, core, 0);
    both[1] = guarded_by(a, first, stmts_copy(&copy, second->body, second->n_body),
                         second->n_body, core, 1);
    Stmt *loop = core_loop(a, first, both, NKI_CORES, core, NKI_CORES);
    first->body = arena_copy(a, &loop, sizeof(Stmt *));
    first->n_body = 1;
}

/* ---- which half ---- */

/* Is it seen that no core writes what the other uses? And are there few enough runs of memory, which halves of rows have more of? */
static bool lies_apart(Ctx *ctx, const Kernel *k, const char **why)
{
    if (nki_most_descriptors(k, nki_chip(k->target)).descriptors > NKI_DESCRIPTORS) {
        *why = "halves would take more DMA descriptors than a queue holds";
        return false;
    }
    Diags before = ctx->diags;
    bool apart = loop_verify(ctx, k, "legal");
    if (!apart) {
        ctx->diags = before;
        *why = "it is not seen that halves lie apart";
    }
    return apart;
}

/* Both halves along a dimension, lowered; null: *why, or there was an error. */
static Kernel *halves_along(const Target *target, Ctx *ctx, Arena *a, const Kernel *k,
                            LowerOne *one, uint32_t dim, double *weight, const char **why)
{
    Kernel *placed[NKI_CORES] = {NULL};
    VarRef core[NKI_CORES] = {0};
    bool uneven = true;
    for (int i = 0; i < NKI_CORES && uneven; i++) {
        Halved half;
        if (!lower_halve(ctx, a, k, dim, i > 0, &half, why)) {
            return NULL;
        }
        const Kernel *made = one(target, ctx, a, half.kernel);
        placed[i] = made == NULL ? NULL : place_half(ctx, a, k, &half, made, &core[i], why);
        if (placed[i] == NULL) {
            return NULL;
        }
        uneven = half.uneven;
    }
    Kernel *to = placed[0];
    if (uneven && (nki_parts(to) > 1 || nki_parts(placed[1]) > 1)) {
        *why = "its extent is odd, and there are several device programs";
        return NULL;
    }
    if (uneven) {
        join_halves(ctx, a, to, placed[1], core[0]);
        *weight = TWICE;
    } else {
        put_core_loops(a, to, core[0], NKI_CORES);
    }
    return kernel_numbered(a, to);
}

static Kernel *both_halves(const Target *target, Ctx *ctx, Arena *a, const Kernel *k,
                           LowerOne *one, const char **why)
{
    Kernel *best = NULL;
    double least = 0;
    Diags before = ctx->diags, after = ctx->diags;
    for (uint32_t dim = 0; dim < lower_halvings(k); dim++) {
        const char *here = NULL;
        double weight = 1;
        ctx->diags = before;
        ctx->diags.list.cap =
            ctx->diags.list.n; /* what is said now goes into a list of its own */
        Kernel *placed = halves_along(target, ctx, a, k, one, dim, &weight, &here);
        placed = placed != NULL && lies_apart(ctx, placed, &here) ? placed : NULL;
        *why = *why == NULL ? here : *why;
        double us = placed == NULL
                        ? 0
                        : weight * nki_programs_us(ctx, a, placed, nki_chip(target->name));
        if (us > 0 && (best == NULL || us < least * LESS)) {
            best = placed;
            least = us;
            after = ctx->diags;
        }
    }
    ctx->diags = best == NULL ? before : after;
    return best;
}

Kernel *lower_cores(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k,
                    LowerOne *one)
{
    const char *why = NULL;
    Kernel *both = both_halves(target, ctx, arena, k, one, &why);
    if (both != NULL) {
        return both;
    }
    const Kernel *made = one(target, ctx, arena, k);
    if (made == NULL) {
        return NULL;
    }
    Kernel *alone = kernel_changeable(arena, made);
    VarRef core = kernel_var(alone, &ctx->syms, "core", true);
    put_core_loops(arena, alone, core, 1);
    Diagnostic *d =
        diag_warning(&ctx->diags, W_CORES, k->span,
                     "one of two cores has nothing to do in kernel '%s'", k->name->text);
    diag_because(d, "no index can be halved: %s",
                 why == NULL ? "its results are single numbers" : why);
    diag_help(d, "cores share an index that every result has and no sum runs over");
    return kernel_numbered(arena, alone);
}
