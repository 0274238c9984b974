/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of hints: a store past the caches is one that nothing in the loops around it reads. */
#include "loop/hints.h"

#include "loop/loop_text.h"
#include "loop/walk.h"

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
        if (s->nontemporal && h->k->form != LOOP_LEGAL) {
            h->problem = "only statements of form legal have non-temporal stores";
            return s;
        }
    }
    return NULL;
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
