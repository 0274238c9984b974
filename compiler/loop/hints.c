/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of hints: a store past the caches is of what nothing in the loops around it reads; a loop that threads
 * share is parallel, and in no other; a prefetch is for panels that are there. */
#include "loop/hints.h"

#include "loop/cuts.h"
#include "loop/flat.h"
#include "loop/loop_text.h"
#include "loop/walk.h"

typedef struct Hints {
    const Kernel *k;
    Arena *scratch;
    uint32_t *read_in; /* [bufs]: the last outermost loop that reads it */
    uint32_t n_loops;
    bool *visible; /* [bufs] */
    bool *open;    /* [vars]: loops around this place */
    uint32_t *
        said_in; /* [bufs]: where its alloc says what fills it next: 0, nowhere, 1, in no shared loop, else in this one */
    bool *done;  /* [bufs]: a product prefetches that */
    uint32_t n_shared;
    const char *problem;
} Hints;

/* Is it an assignment, or a fold that always begins? */
static bool only_stores(const Stmt *s)
{
    return s->fold == OP_COPY || (s->begins && s->n_first == 0);
}

/* Statements that are run one after the other in an outermost loop, or one alone. */
static const Stmt *check_loop(Hints *h, Stmt *const *body)
{
    StmtWalk w;
    h->n_loops++;
    for (const Stmt *s = tile_first(&w, body, 1); s != NULL; s = tile_next(&w)) {
        ExprWalk x;
        for (const Expr *e = read_first(&x, s->value); e != NULL; e = read_next(&x)) {
            h->read_in[e->buf] = h->n_loops;
        }
        if (!only_stores(s)) {
            h->read_in[s->dst] = h->n_loops;
        }
        if (s->sums > 0) {
            h->read_in[s->sums - 1] = h->n_loops;
        }
    }
    for (const Stmt *s = tile_first(&w, body, 1); s != NULL; s = tile_next(&w)) {
        if (s->nontemporal && h->read_in[s->dst] == h->n_loops) {
            h->problem = "a non-temporal store of what its loop reads";
            return s;
        }
    }
    return NULL;
}

/* May the loop be cut there? */
static bool cut_fits(const Hints *h, const Stmt *loop)
{
    int64_t cut = loop->threads->cut;
    int64_t unit = cut == 0 ? 1 : loop_cuts(h->scratch, h->k, loop);
    return cut == 0 || (cut > 0 && !loop->threads->dealt && unit > 0 && cut % unit == 0 &&
                        loop->step % cut == 0);
}

/* The alloc in the loop, or block, of panels that are cut though nothing says that there may be fewer; `shared`: the loop around that
 * threads share, or null. */
static const Stmt *uncut_panels(const Hints *h, Stmt *const *body, uint32_t n,
                                const Stmt *shared)
{
    const Stmt *bad = NULL;
    for (uint32_t i = 0; i < n && bad == NULL; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC && h->k->bufs.at[s->buf].cut) {
            bool fits = shared != NULL && shared->threads->cut > 0 &&
                        loop_cuts_panels(h->scratch, h->k, shared, s->buf);
            bad = fits ? NULL : s;
        } else if (stmt_has_body(s)) {
            bad = uncut_panels(h, s->body, s->n_body, s->threads != NULL ? s : shared);
        }
    }
    return bad;
}

/* Is the body's last loop one with this one, and parallel? */
static bool flat_fits(const Hints *h, const Stmt *loop)
{
    const Threads *t = loop->threads;
    const Stmt *inner = t->flat ? loop_flat_inner(h->scratch, h->k, loop) : NULL;
    return !t->flat || (inner != NULL && inner->parallel && t->cut == 0 && !t->dealt);
}

/* Of loops that threads share, one is not in another. */
static const Stmt *check_threads(Hints *h, Stmt *const *body, uint32_t n, bool shared)
{
    const Stmt *bad = NULL;
    for (uint32_t i = 0; bad == NULL && i < n; i++) {
        const Stmt *s = body[i];
        if (s->threads != NULL &&
            (!s->parallel || s->part == FOR_REST || h->k->form != LOOP_LEGAL)) {
            h->problem =
                "threads share a loop of form legal that is parallel, and more than a rest";
            return s;
        }
        if (s->threads != NULL && shared) {
            h->problem = "threads share a loop in one that they share";
            return s;
        }
        if (s->threads != NULL && !cut_fits(h, s)) {
            h->problem = "threads cut a loop where an iteration cannot be cut";
            return s;
        }
        if (s->threads != NULL && !flat_fits(h, s)) {
            h->problem = "threads share two loops as one of which the inner one is not "
                         "parallel, not the last in the other, or not all "
                         "else that stands there its own";
            return s;
        }
        bad = stmt_has_body(s)
                  ? check_threads(h, s->body, s->n_body, shared || s->threads != NULL)
                  : NULL;
    }
    return bad;
}

static bool in_scope(const Hints *h, BufRef buf, const Affine *at)
{
    bool all = h->visible[buf];
    for (uint32_t d = 0; d < h->k->bufs.at[buf].rank; d++) {
        for (uint32_t i = 0; i < at[d].n; i++) {
            VarRef v = at[d].term[i].var;
            all = all && (affine_is_dim(v) || h->open[v]);
        }
    }
    return all;
}

/* Elements of nothing that is in memory. */
#define TOO_MANY ((int64_t)1 << 40)

static bool is_distance(int64_t x)
{
    return x > -TOO_MANY && x < TOO_MANY;
}

bool prefetch_fits(const Prefetch *p)
{
    bool fits = p->n >= 1 && p->n <= PREFETCH_LABELS && is_distance(p->each) &&
                is_distance(p->turn) && is_distance(p->reach);
    for (uint32_t i = 0; fits && i < PREFETCH_LABELS; i++) {
        fits = p->count[i] >= 1 && is_distance(p->step[i]) &&
               is_distance(sat_mul(p->count[i], p->step[i])) && is_distance(p->count[i]);
    }
    return fits;
}

/* Null, or what is wrong. */
static const char *prefetch_problem(const Hints *h, const Stmt *alloc)
{
    const Prefetch *p = alloc->prefetch;
    if (h->k->form != LOOP_LEGAL || h->k->bufs.at[alloc->buf].panels == 0) {
        return "what is prefetched fills panels, in form legal";
    }
    if (!in_scope(h, p->buf, p->at) ||
        (p->past != NULL && (!h->open[p->var] || !in_scope(h, p->buf, p->past)))) {
        return "a prefetch from outside of the block that allocates it, or beyond loops around";
    }
    return prefetch_fits(p) ? NULL : "a prefetch without groups, or of too large numbers";
}

/* A product prefetches what fills panels next that it reads, and whose alloc says what that is; in the same function, which a shared loop is. */
static const Stmt *check_prefetches(Hints *h, Stmt *const *body, uint32_t n, uint32_t function)
{
    const Stmt *bad = NULL;
    uint32_t done = 0;
    for (; bad == NULL && done < n; done++) {
        const Stmt *s = body[done];
        h->problem = s->prefetch != NULL ? prefetch_problem(h, s) : NULL;
        if (s->kind == STMT_TILE && s->prefetches > 0 &&
            (expr_load_of(s->value, s->prefetches - 1) == NULL ||
             h->said_in[s->prefetches - 1] != function)) {
            h->problem =
                "a prefetch for panels that it does not read, or whose alloc here does not say "
                "what fills them next";
        }
        bad = h->problem != NULL ? s : NULL;
        if (s->kind == STMT_TILE && s->prefetches > 0) {
            h->done[s->prefetches - 1] = true;
        }
        if (s->kind == STMT_ALLOC) {
            h->done[s->buf] = false;
            h->visible[s->buf] = true;
            h->said_in[s->buf] = s->prefetch != NULL ? function : 0;
        } else if (bad == NULL && stmt_has_body(s)) {
            bool loop = s->kind == STMT_FOR;
            h->open[s->var] |= loop;
            bad = check_prefetches(h, s->body, s->n_body,
                                   s->threads != NULL ? ++h->n_shared : function);
            h->open[s->var] &= !loop;
        }
    }
    for (uint32_t i = 0; i < done; i++) {
        if (body[i]->kind == STMT_ALLOC) {
            if (bad == NULL && body[i]->prefetch != NULL && !h->done[body[i]->buf]) {
                h->problem = "a prefetch that no product does";
                bad = body[i];
            }
            h->visible[body[i]->buf] = false;
            h->said_in[body[i]->buf] = 0;
        }
    }
    return bad;
}

static const Stmt *check_block(Hints *h, Stmt *const *body, uint32_t n)
{
    const Stmt *bad = NULL;
    for (uint32_t i = 0; bad == NULL && i < n; i++) {
        bad = body[i]->kind == STMT_BLOCK ? check_block(h, body[i]->body, body[i]->n_body)
                                          : check_loop(h, body + i);
    }
    return bad;
}

bool hints_verify(Ctx *ctx, const Kernel *k, const char *stage)
{
    Arena scratch;
    Hints h = {.k = k, .scratch = &scratch, .n_shared = 1};
    arena_init(&scratch, &ctx->budget);
    h.read_in = ARENA_ARRAY(&scratch, k->bufs.n, uint32_t);
    h.visible = ARENA_ARRAY(&scratch, k->bufs.n, bool);
    h.open = ARENA_ARRAY(&scratch, (size_t)k->vars.n + 1, bool); /* a block has variable 0 */
    h.done = ARENA_ARRAY(&scratch, k->bufs.n, bool);
    h.said_in = ARENA_ARRAY(&scratch, k->bufs.n, uint32_t);
    for (uint32_t i = 0; i < k->args.n; i++) {
        h.visible[k->args.at[i].buf] = true;
    }
    const Stmt *bad = check_block(&h, k->body, k->n_body);
    bad = bad == NULL ? check_threads(&h, k->body, k->n_body, false) : bad;
    if (bad == NULL) {
        bad = uncut_panels(&h, k->body, k->n_body, NULL);
        h.problem = bad == NULL ? NULL
                                : "panels are cut in no loop that threads cut, or named by "
                                  "more than where they lie in its iteration";
    }
    bad = bad == NULL ? check_prefetches(&h, k->body, k->n_body, 1) : bad;
    if (bad != NULL) {
        Text in = text_new(&scratch);
        loop_text_stmt(k, bad, &in);
        diag_error(&ctx->diags, E_DUMP, bad->span.source != 0 ? bad->span : k->span,
                   "%s: kernel '%.60s': %s, in `%.200s`", stage, k->name->text, h.problem,
                   in.at);
    }
    arena_release(&scratch);
    return bad == NULL;
}
