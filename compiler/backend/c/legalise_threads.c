/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `threads`: which parallel loops threads share, the outermost ones that are worth two, and how many a call is worth: the time of a
 * loop's work over that of starting a thread, as a sum of products of extents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"
#include "loop/cuts.h"
#include "loop/flat.h"
#include "loop/places.h"
#include "op/affine.h"

/* Different products of extents that are counted; of more the rest is left out. */
#define TERMS 32
/* Where a loop may be cut anywhere, it is at multiples of so many elements: lines of memory. */
#define LINE 16

typedef struct Worth {
    const Kernel *k;
    Arena *arena;
    double
        dot; /* multiply-adds in whose time is one of 8-bit integers by instructions for dot products */
    uint32_t n;
    WorthTerm term[TERMS];
} Worth;

/* A number times extents, which are in the order of their texts. */
typedef struct Length {
    double number;
    VEC(WorthFactor) factors;
} Length;

static const char *factor_text(const Worth *w, WorthFactor f)
{
    const char *name = w->k->dims.list.at[f.dim].name->text;
    return f.most == 0 ? name
                       : str_format(w->arena, "tdsl_min(%s, %lld)", name, (long long)f.most);
}

static void factor_add(const Worth *w, Length *x, WorthFactor f)
{
    uint32_t at = x->factors.n;
    vec_push(w->arena, &x->factors, f);
    while (at > 0 && strcmp(factor_text(w, x->factors.at[at - 1]), factor_text(w, f)) > 0) {
        x->factors.at[at] = x->factors.at[at - 1];
        at--;
    }
    x->factors.at[at] = f;
}

/* Positions of a range, whose start moves with a loop inside of the shared one if `inner`: up to the limit they are half of all. */
static void length_times(const Worth *w, Length *x, Range r, bool inner)
{
    bool open = r.clipped && r.limit.sym >= 0;
    x->number *= inner && r.span == 0 ? 0.5 : 1.0;
    if (!r.clipped || (inner && r.span > 0)) {
        x->number *= r.span > 0 ? (double)r.span : 1.0;
    } else if (!open) {
        x->number *= r.span > 0 && r.span < r.limit.n ? (double)r.span : (double)r.limit.n;
    } else {
        factor_add(w, x, (WorthFactor){r.limit.sym, r.span});
    }
}

/* The loops around a statement up to the shared one, from inside out. */
typedef struct Loops {
    VarRef var;
    const Length *around; /* iterations of those outside of it */
    const struct Loops *outer;
} Loops;

static bool starts_inside(const Loops *loops, Range r)
{
    bool any = false;
    for (; loops != NULL; loops = loops->outer) {
        any |= affine_uses(r.start, loops->var);
    }
    return any;
}

static bool is_product_of(const WorthTerm *t, const Length *x)
{
    bool same = t->n == x->factors.n;
    for (uint32_t i = 0; same && i < t->n; i++) {
        same = t->factor[i].dim == x->factors.at[i].dim &&
               t->factor[i].most == x->factors.at[i].most;
    }
    return same;
}

static void worth_add(Worth *w, double number, const Length *x)
{
    uint32_t i = 0;
    while (i < w->n && !is_product_of(&w->term[i], x)) {
        i++;
    }
    if (i == w->n && w->n < TERMS) {
        w->term[w->n++] = (WorthTerm){0, x->factors.n, x->factors.at};
    }
    if (i < w->n) {
        w->term[i].number += number;
    }
}

/* Multiply-adds in whose time is one of the product. */
static double product_worth(const Worth *w, const Stmt *s)
{
    Product p;
    return product_of(w->k, s, &p) != NULL || p.group == 0 ? 1.0
                                                           : w->dot * 4.0 / (double)p.group;
}

/* In all iterations of a loop over ranges of places together an element goes to one place. */
static const Length *around_places(const Stmt *s, const Loops *loops, const Length *around)
{
    const TileIndex *place = &s->index[s->places - 1];
    return loops != NULL && affine_uses(place->range.start, loops->var) ? loops->around
                                                                        : around;
}

static void worth_block(Worth *w, const Loops *loops, const Length *around, Stmt *const *body,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        const Loops own = {s->var, around, loops}, *inside = loops;
        Scattered p;
        bool scattered =
            s->kind == STMT_TILE && s->places > 0 && stmt_places(w->arena, w->k, s, &p);
        const Length *from = scattered ? around_places(s, loops, around) : around;
        Length x = {.number = from->number};
        for (uint32_t f = 0; f < from->factors.n; f++) {
            vec_push(w->arena, &x.factors, from->factors.at[f]);
        }
        if (s->kind == STMT_FOR) {
            length_times(w, &x, s->range, starts_inside(inside, s->range));
            x.number /= s->part == FOR_REST ? 1e3 : (double)s->step; /* the rest is rare */
            inside = &own;
        }
        if (stmt_has_body(s)) {
            worth_block(w, inside, &x, s->body, s->n_body);
        } else if (s->kind == STMT_TILE) {
            for (uint32_t k = 0; k < s->n_index; k++) {
                Range r = s->index[k].range;
                if (!scattered || p.key[k] == NULL) { /* of a place there is one position */
                    length_times(w, &x, r, starts_inside(inside, r));
                }
            }
            double element = stmt_is_product(s) ? product_worth(w, s) : THREADS_ELEMENT;
            worth_add(w, element * x.number, &x);
        }
    }
}

/* Does a loop inside begin where this one is and go on to the end, so that iterations are more and more, or less and less, work? */
static bool is_triangle(const Stmt *s)
{
    StmtWalk w;
    bool any = false;
    for (const Stmt *x = stmt_first(&w, s->body, s->n_body); x != NULL; x = stmt_next(&w)) {
        any |= x->kind == STMT_FOR && x->range.span == 0 && affine_uses(x->range.start, s->var);
        any |= x->window != NULL && x->window->has_lo != x->window->has_hi &&
               (affine_uses(x->window->lo, s->var) || affine_uses(x->window->hi, s->var));
        for (uint32_t i = 0; i < x->n_index; i++) {
            any |= x->index[i].window != NULL; /* rows of the sum's panel */
        }
    }
    return any;
}

/* Four digits are more than is known. */
static double rounded(double x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.3e", x);
    return strtod(text, NULL);
}

/* Null: it is not worth two threads, whatever its open extents are. */
static const Threads *threads_of(const Target *target, const Kernel *k, Stmt *loop)
{
    const MachineTimes *t = &target->machine->time;
    Worth w = {.k = k, .arena = k->arena, .dot = t->dot / t->multiply_add};
    const Length one = {.number = t->multiply_add / t->piece};
    bool enough = false;
    worth_block(&w, NULL, &one, &loop, 1);
    for (uint32_t i = 0; i < w.n; i++) {
        enough |= w.term[i].number >= 2 || (w.term[i].n > 0 && w.term[i].number > 0);
        w.term[i].number = rounded(w.term[i].number);
    }
    Threads *out = ARENA_NEW(k->arena, Threads);
    *out = (Threads){w.n, arena_copy(k->arena, w.term, w.n * sizeof *w.term), is_triangle(loop),
                     0, false};
    return enough ? out : NULL;
}

/* What the walk over a kernel's loops needs everywhere. */
typedef struct Sharing {
    const Target *target;
    Kernel *k;
    Arena *scratch;   /* reset after each loop */
    uint32_t *allocs; /* of each buffer: the statements that allocate it */
} Sharing;

/* Of full tiles of a known extent: its ranges say where the extent ends, so that iterations may be shorter. */
static void end_range(Range *r, const Stmt *loop)
{
    if (!r->clipped && r->span == loop->step && affine_is(r->start, loop->var)) {
        r->clipped = true;
        r->limit = loop->range.limit;
    }
}

static void end_ranges(Arena *arena, const Stmt *loop, Stmt **body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i] = arena_copy(arena, body[i], sizeof *s);
        if (s->kind == STMT_TILE) {
            TileIndex *index = arena_copy(arena, s->index, s->n_index * sizeof *index);
            for (uint32_t x = 0; x < s->n_index; x++) {
                end_range(&index[x].range, loop);
            }
            s->index = index;
        } else if (stmt_has_body(s)) {
            end_range(&s->range, loop);
            s->body = arena_copy(arena, s->body, s->n_body * sizeof *s->body);
            end_ranges(arena, loop, s->body, s->n_body);
        }
    }
}

/* Panels of the loop's iterations are as many as a thread's part has. */
static void cut_panels(const Sharing *sh, const Stmt *loop)
{
    Kernel *k = sh->k;
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, loop->body, loop->n_body); s != NULL;
         s = stmt_next(&w)) {
        Buffer *b = s->kind == STMT_ALLOC ? &k->bufs.at[s->buf] : NULL;
        if (b != NULL && b->panels > 0 && sh->allocs[s->buf] == 1 && b->space != SPACE_ACC &&
            sat_mul(dtype_bytes(b->dtype), sat_mul(b->extent[0].n, loop->threads->cut)) % 64 ==
                0) {
            b->cut = loop_cuts_panels(sh->scratch, k, loop, s->buf);
        }
    }
}

/* Threads cut the loop between register tiles rather than between its blocks, if they can. */
static void cut_loop(const Sharing *sh, Stmt *loop)
{
    Kernel *k = sh->k;
    Stmt other = *loop;
    Range r = loop->range;
    bool whole = loop->part == FOR_FULL && r.span == 0 && r.start.n == 0 && r.clipped &&
                 r.limit.sym < 0 && (r.limit.n - r.start.base) % loop->step == 0;
    if (whole) {
        other.part = FOR_ALL;
        other.body = arena_copy(k->arena, loop->body, loop->n_body * sizeof *loop->body);
        end_ranges(k->arena, loop, other.body, other.n_body);
    }
    int64_t unit = loop_cuts(sh->scratch, k, &other);
    unit = unit == 1 ? LINE : unit;
    if (unit > 0 && loop->step % unit == 0 && unit < loop->step && !loop->threads->dealt) {
        Threads *threads = arena_copy(k->arena, loop->threads, sizeof *threads);
        threads->cut = unit;
        other.threads = threads;
        *loop = other;
        cut_panels(sh, loop);
    }
}

/* Threads share the loop's iterations and those of the one that its body ends in as one sequence, if they can. */
static void flatten(const Sharing *sh, const Stmt *const *around, uint32_t n, Stmt *loop)
{
    const Kernel *k = sh->k;
    const Stmt *all[LOOP_DEPTH_LIMIT + 1];
    Stmt *inner = loop->threads->cut > 0 ? NULL : loop_flat_inner(sh->scratch, k, loop);
    for (uint32_t i = 0; i < n; i++) {
        all[i] = around[i];
    }
    all[n] = loop;
    if (inner != NULL &&
        (inner->parallel || loop_is_apart(sh->scratch, k, all, n + 1, inner))) {
        Threads *threads = arena_copy(k->arena, loop->threads, sizeof *threads);
        threads->flat = inner->parallel = true;
        threads->dealt = false;
        loop->threads = threads;
    }
}

/* One whose threads a person has chosen stays. A loop in a shared one is a plain one, and so are those of register tiles. */
static bool share_block(const Sharing *sh, const Stmt **around, uint32_t n_around, Stmt **body,
                        uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_ALLOC && is_register_alloc(sh->k, s)) {
            return any;
        }
        if (s->kind == STMT_FOR && s->parallel && s->part != FOR_REST && s->threads == NULL) {
            s->threads = threads_of(sh->target, sh->k, s);
            any |= s->threads != NULL;
            if (s->threads != NULL) {
                ArenaMark before = arena_mark(sh->scratch);
                cut_loop(sh, s);
                flatten(sh, around, n_around, s);
                arena_reset(sh->scratch, before);
            }
        }
        if (stmt_has_body(s) && s->threads == NULL) {
            around[n_around] = s;
            any |= share_block(sh, around, n_around + (s->kind == STMT_FOR ? 1 : 0), s->body,
                               s->n_body);
        }
    }
    return any;
}

Kernel *c_share_loops(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Kernel *out = kernel_changeable(arena, k);
    const Sharing sh = {target, out, &scratch, ARENA_ARRAY(&scratch, out->bufs.n, uint32_t)};
    const Stmt *around[LOOP_DEPTH_LIMIT + 1];
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, out->body, out->n_body); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC) {
            sh.allocs[s->buf]++;
        }
    }
    bool any = share_block(&sh, around, 0, out->body, out->n_body);
    arena_release(&scratch);
    return any ? out : (Kernel *)(uintptr_t)k;
}
