/* SPDX-License-Identifier: Apache-2.0 */
/* The text of hints, and what must hold of them: a store past the caches is of what nothing in the loops around it reads; a loop that threads
 * share is parallel, and in no other. */
#include "loop/hints.h"

#include "dump/text.h"
#include "loop/loop_text.h"
#include "loop/walk.h"

/* 8, 0.5 */
static void put_count(double x, Text *out)
{
    bool whole = x < 1e15 && (double)(int64_t)x == x;
    dump_number(out, whole ? number_int(DTYPE_I64, (int64_t)x) : number_real(DTYPE_F64, x));
}

void hints_dump_threads(const Kernel *k, const Threads *threads, Text *out)
{
    for (uint32_t i = 0; threads != NULL && i < threads->n; i++) {
        text_put(out, i == 0 ? " threads " : " + ");
        put_count(threads->term[i].number, out);
        for (uint32_t f = 0; f < threads->term[i].n; f++) {
            WorthFactor x = threads->term[i].factor[f];
            text_put(out, x.most > 0 ? "*min(" : "*");
            dump_dim(out, &k->dims, dim_open(x.dim));
            if (x.most > 0) {
                text_printf(out, ", %lld)", (long long)x.most);
            }
        }
    }
    text_put(out, threads != NULL && threads->dealt ? " dealt" : "");
}

void hints_dump_tile(const Stmt *s, Text *out)
{
    if (s->nontemporal) {
        text_put(out, " nontemporal");
    }
    if (s->nontemporal && s->larger > 0) {
        text_printf(out, " above %lld", (long long)s->larger);
    }
    text_put(out, s->specialised ? " specialised" : "");
}

typedef struct Hints {
    const Kernel *k;
    uint32_t *read_in; /* [bufs]: the last outermost loop that reads it */
    uint32_t n_loops;
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
        for (const Expr *e = load_first(&x, s->value); e != NULL; e = load_next(&x)) {
            h->read_in[e->buf] = h->n_loops;
        }
        if (!only_stores(s)) {
            h->read_in[s->dst] = h->n_loops;
        }
    }
    for (const Stmt *s = tile_first(&w, body, 1); s != NULL; s = tile_next(&w)) {
        if (s->nontemporal && h->read_in[s->dst] == h->n_loops) {
            h->problem = "a non-temporal store of what its loop reads";
            return s;
        }
        if ((s->nontemporal || s->specialised) && h->k->form != LOOP_LEGAL) {
            h->problem = "only statements of form legal say how they are run";
            return s;
        }
        if (s->specialised && tile_kind(s) != TILE_MATMUL && !tile_multiplies(s)) {
            h->problem = "only products are specialised";
            return s;
        }
    }
    return NULL;
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
        bad = stmt_has_body(s)
                  ? check_threads(h, s->body, s->n_body, shared || s->threads != NULL)
                  : NULL;
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
    Hints h = {.k = k};
    arena_init(&scratch, &ctx->budget);
    h.read_in = ARENA_ARRAY(&scratch, k->bufs.n, uint32_t);
    const Stmt *bad = check_block(&h, k->body, k->n_body);
    bad = bad == NULL ? check_threads(&h, k->body, k->n_body, false) : bad;
    if (bad != NULL) {
        Text in;
        text_init(&in, &scratch);
        loop_text_stmt(k, bad, &in);
        diag_error(&ctx->diags, E_DUMP, bad->span.source != 0 ? bad->span : k->span,
                   "%s: kernel '%.60s': %s, in `%.200s`", stage, k->name->text, h.problem,
                   in.at);
    }
    arena_release(&scratch);
    return bad == NULL;
}
