/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `packs`: large panels that are filled outside of all parallel loops, while other threads would wait, are filled by all:
 *
 *     alloc @B_pack                                        alloc @B_pack
 *     copy [p in .., j in $jc:2048<n] @B_pack = @B[p,j] -> for $jp in $jc:2048<n step 2048 parallel {
 *                                                            copy [p in .., j in $jp:2048<n] @B_pack = @B[p,j]
 *                                                          }
 *
 * It is one iteration, which threads cut between panels (pass `threads`): one thread fills them as before. Where the copy stands in loops
 * already, the outermost one whose iterations fill places of their own becomes parallel. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "op/affine.h"

/* Panels of so many bytes are worth it. */
#define LARGE ((int64_t)256 << 10)

/* A loop of fewer iterations is shared only if there is none of more. */
#define ENOUGH 8

/* A copy into panels, and the loops that are around it alone, outermost first. */
typedef struct Filling {
    const Stmt *copy;
    uint32_t n_loops;
    Stmt *loop[LOOP_DEPTH_LIMIT];
} Filling;

/* How far the index of a dimension moves while `v` has all values of its range; INT64_MAX: that is not known. */
static int64_t moves_by(Affine at, VarRef v, Range r, int64_t step)
{
    int64_t coef = affine_coef(at, v), most = range_most(r);
    bool known = coef > 0 && most < INT64_MAX && (r.span > 0 || r.start.n == 0);
    return coef == 0 || most < 1 ? 0
           : known               ? sat_mul(coef, (most - 1) / step * step)
                                 : INT64_MAX;
}

/* Do iterations of the loop of this number fill places that lie apart in a dimension of the panels? */
static bool fills_apart(const Filling *f, uint32_t loop)
{
    const Stmt *own = f->loop[loop];
    bool apart = false;
    for (uint32_t d = 0; d < 2 && !apart; d++) {
        Affine at = f->copy->at[d];
        int64_t width = 0;
        for (uint32_t i = loop + 1; i < f->n_loops; i++) {
            const Stmt *s = f->loop[i];
            width = sat_add(width, moves_by(at, s->var, s->range, s->step));
        }
        for (uint32_t i = 0; i < f->copy->n_index; i++) {
            const TileIndex *x = &f->copy->index[i];
            width = sat_add(width, moves_by(at, x->var, x->range, 1));
        }
        int64_t coef = affine_coef(at, own->var);
        apart = coef > 0 && width < sat_mul(coef, own->step);
    }
    return apart;
}

/* The one copy that the statement is, or that loops are around; null. */
static bool filling_of(Stmt *s, BufRef panels, Filling *f)
{
    *f = (Filling){0};
    for (; s->kind == STMT_FOR && s->n_body == 1 && s->window == NULL; s = s->body[0]) {
        if (s->part == FOR_REST || f->n_loops == LOOP_DEPTH_LIMIT) {
            return false;
        }
        f->loop[f->n_loops++] = s;
    }
    f->copy = s;
    return s->kind == STMT_TILE && s->dst == panels && s->fold == OP_COPY &&
           expr_uncast(s->value)->kind == EXPR_LOAD;
}

/* The loop that threads share, of those whose iterations fill places that lie apart: the outermost that has enough of them, else the
 * longest; null: there is none. */
static Stmt *shared_loop(const Kernel *k, const Filling *f)
{
    Stmt *best = NULL;
    int64_t most = 1;
    for (uint32_t i = 0; i < f->n_loops && most < ENOUGH; i++) {
        Stmt *s = f->loop[i];
        int64_t n = (range_typical(k, s->range) + s->step - 1) / s->step;
        if (n > most && fills_apart(f, i)) {
            best = s;
            most = n;
        }
    }
    return best;
}

/* The range with its end: of full tiles where their loop ends, which is one of the `n` around. */
static bool range_ended(Range *r, Stmt *const *around, uint32_t n)
{
    if (r->clipped) {
        return true;
    }
    if (r->start.n == 0) {
        *r = (Range){
            .start = r->start, .clipped = true, .limit = dim_fixed(r->start.base + r->span)};
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *loop = around[i];
        if (affine_is(r->start, loop->var) && loop->part == FOR_FULL && loop->range.clipped &&
            loop->range.span == 0) {
            r->clipped = true;
            r->limit = loop->range.limit;
        }
    }
    return r->clipped;
}

/* Do all other indices move the column less than one step of this one does? */
static bool moves_apart(const Stmt *copy, uint32_t index)
{
    int64_t coef = affine_coef(copy->at[1], copy->index[index].var), width = 0;
    for (uint32_t i = 0; i < copy->n_index; i++) {
        const TileIndex *x = &copy->index[i];
        width = sat_add(width, i == index ? 0 : moves_by(copy->at[1], x->var, x->range, 1));
    }
    return width < coef;
}

/* In a loop of one iteration over an index that moves in the columns; null: there is none. */
static Stmt *shared_copy(Legaliser *l, const Stmt *copy, Stmt *const *around, uint32_t n_around)
{
    uint32_t best = UINT32_MAX;
    int64_t most = 1;
    for (uint32_t i = 0; i < copy->n_index; i++) {
        int64_t n = range_most(copy->index[i].range);
        if (n > most && n < INT64_MAX && moves_apart(copy, i)) {
            best = i;
            most = n;
        }
    }
    if (best == UINT32_MAX) {
        return NULL;
    }
    TileIndex *index = arena_copy(l->arena, copy->index, copy->n_index * sizeof *index);
    Range r = index[best].range;
    Stmt *inner = arena_copy(l->arena, copy, sizeof *copy);
    if (!range_ended(&r, around, n_around)) {
        return NULL; /* nothing says where shorter iterations end */
    }
    const char *name = l->k->bufs.at[copy->dst].name->text;
    StmtBlock inside = {0}, *block = l->block;
    l->from = copy;
    l->block = &inside;
    VarRef v = loop_open(l, name[0] == 'A' ? "ip" : "jp", r, most, FOR_ALL);
    index[best].range = range_at(affine_var(l->arena, v), most, &r);
    inner->index = index;
    stmt_add(l, inner);
    loop_close(l);
    l->block = block;
    return inside.list.at[0];
}

static int64_t panels_bytes(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    return b->panels == 0
               ? 0
               : sat_mul(dtype_bytes(b->dtype), sat_mul(b->extent[0].n, b->extent[1].n));
}

/* `around`: loops, outermost first. */
static bool packs_block(Legaliser *l, Stmt **body, uint32_t n, Stmt **around, uint32_t n_around)
{
    bool any = false;
    BufRef panels = 0;
    bool large = false;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        Filling f;
        if (s->kind == STMT_ALLOC && panels_bytes(l->k, s->buf) >= LARGE) {
            panels = s->buf;
            large = true;
        } else if (large && filling_of(s, panels, &f)) {
            Stmt *shared =
                f.n_loops == 0 ? shared_copy(l, s, around, n_around) : shared_loop(l->k, &f);
            if (shared != NULL) {
                shared->parallel = true;
                body[i] = f.n_loops == 0 ? shared : s;
            }
            any |= shared != NULL;
        } else if (stmt_has_body(s) && !(s->kind == STMT_FOR && s->parallel) &&
                   n_around < LOOP_DEPTH_LIMIT) {
            around[n_around] = s;
            any |= packs_block(l, s->body, s->n_body, around,
                               n_around + (s->kind == STMT_FOR ? 1 : 0));
        }
    }
    return any;
}

Kernel *c_packs(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Legaliser l = legaliser_start(target, ctx, arena, k);
    Stmt *around[LOOP_DEPTH_LIMIT];
    l.k = kernel_changeable(arena, l.k);
    bool any = packs_block(&l, l.k->body, l.k->n_body, around, 0);
    kernel_name_vars(l.k, &ctx->syms);
    return any ? l.k : (Kernel *)(uintptr_t)k;
}
