/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and buffers numbered as they appear in the text, those that nothing uses left out:
 * what a reader would make of the kernel's dump, which then needs no `order` line. Builders
 * make things in the order they need them; this is their last step. */
#include "loop/clauses.h"
#include "loop/copy.h"
#include "loop/walk.h"

#define UNNUMBERED UINT32_MAX

typedef struct Numbering {
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    VarRef *var; /* [from->vars] new number, or UNNUMBERED */
    BufRef *buf; /* [from->bufs] */
} Numbering;

static void number_var(Numbering *n, VarRef v)
{
    if (n->var[v] == UNNUMBERED) {
        n->var[v] = n->to->vars.n;
        vec_push(n->arena, &n->to->vars, n->from->vars.at[v]);
    }
}

static BufRef number_buf(Numbering *n, BufRef b)
{
    if (n->buf[b] == UNNUMBERED) {
        n->buf[b] = n->to->bufs.n;
        vec_push(n->arena, &n->to->bufs, n->from->bufs.at[b]);
    }
    return n->buf[b];
}

static void number_affine(Numbering *n, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (!affine_is_dim(x.term[i].var)) {
            number_var(n, x.term[i].var);
        }
    }
}

static void number_access(Numbering *n, BufRef buf, const Affine *at)
{
    (void)number_buf(n, buf);
    for (uint32_t d = 0; d < n->from->bufs.at[buf].rank; d++) {
        number_affine(n, at[d]);
    }
}

static void number_window(Numbering *n, const Window *w)
{
    if (w != NULL) {
        number_affine(n, w->lo);
        number_affine(n, w->hi);
    }
}

static void number_stmt(Numbering *n, const Stmt *s)
{
    ExprWalk w;
    switch (s->kind) {
    case STMT_FOR:
        number_affine(n, s->range.start);
        number_var(n, s->var);
        number_window(n, s->window);
        break;
    case STMT_BLOCK:
        break;
    case STMT_ALLOC:
        (void)number_buf(n, s->buf);
        break;
    case STMT_TILE:
        for (uint32_t i = 0; i < s->n_index; i++) {
            number_affine(n, s->index[i].range.start);
            number_var(n, s->index[i].var);
            number_window(n, s->index[i].window);
        }
        number_access(n, s->dst, s->at);
        for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
            if (x->kind == EXPR_LOAD) {
                number_access(n, x->buf, x->at);
            } else if (x->kind == EXPR_INDEX) {
                number_affine(n, x->at[0]);
            } else if (expr_buffer(x) != BUF_NONE) {
                (void)number_buf(n, x->buf);
            }
        }
        break;
    }
    Clauses has;
    clauses_of(n->from, s, &has);
    for (const Clause *c = has.at; c < has.at + has.n; c++) {
        if (c->at != NULL) {
            number_access(n, *c->buf - 1, *c->at);
        } else if (c->buf != NULL) {
            (void)number_buf(n, *c->buf - 1);
        }
    }
}

/* Within what loop_verify allows? */
static bool kernel_fits(const Kernel *k)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        if (w.depth > LOOP_DEPTH_LIMIT + 1 || (s->kind == STMT_TILE && !expr_fits(s->value))) {
            return false;
        }
    }
    return true;
}

Kernel *kernel_numbered(Arena *arena, const Kernel *k)
{
    if (!kernel_fits(k)) {
        return kernel_like(arena, k); /* loop_verify will say so */
    }
    Numbering n = {.arena = arena, .from = k, .to = kernel_like(arena, k)};
    n.var = ARENA_ARRAY(arena, k->vars.n, VarRef);
    n.buf = ARENA_ARRAY(arena, k->bufs.n, BufRef);
    for (uint32_t i = 0; i < k->vars.n; i++) {
        n.var[i] = UNNUMBERED;
    }
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        n.buf[i] = UNNUMBERED;
    }
    n.to->vars.at = NULL;
    n.to->vars.n = n.to->vars.cap = 0;
    n.to->bufs.at = NULL;
    n.to->bufs.n = n.to->bufs.cap = 0;
    n.to->args.at = NULL;
    n.to->args.n = n.to->args.cap = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg arg = k->args.at[i];
        arg.buf = number_buf(&n, arg.buf);
        vec_push(arena, &n.to->args, arg);
    }
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        number_stmt(&n, s);
    }
    StmtCopy copy = {.arena = arena, .from = k, .buf = n.buf, .var = n.var};
    n.to->body = stmts_copy(&copy, k->body, k->n_body);
    return n.to;
}
