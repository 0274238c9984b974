/* SPDX-License-Identifier: Apache-2.0 */
/* Cascades: what they are made of, how they are used, and their sums. */
#include "loop/cascade.h"

#include "loop/loop_text.h"
#include "loop/walk.h"

/* Of f32, f64 or complex numbers of them, one or a row, on chip. */
static bool is_possible(const Kernel *k, const Buffer *b)
{
    DType part = dtype_part(b->dtype);
    bool row = b->rank == 0 || (b->rank == 1 && b->extent[0].sym < 0 && b->extent[0].n >= 1 &&
                                b->extent[0].n <= CASCADE_WIDTH);
    return k->form == LOOP_LEGAL && b->space == SPACE_TILE && row && !b->parts &&
           (part == DTYPE_F32 || part == DTYPE_F64);
}

typedef struct Uses {
    const Kernel *k;
    uint32_t *named; /* [bufs]: statements and loads that name a cascade, wherever they stand */
    uint32_t *found; /* [bufs]: those between its allocs and what reads it */
    const Stmt **last; /* [bufs]: the last statement that names it */
    BufRef buf;
    const char *problem;
} Uses;

/* What is wrong between the alloc body[0] and the statement that reads it. */
static const Stmt *follow(Uses *u, Stmt *const *body, uint32_t n)
{
    BufRef buf = u->buf = body[0]->buf;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t loads = body[i]->kind == STMT_TILE ? expr_count_loads(body[i]->value, buf) : 0;
        if (loads > 0) {
            u->found[buf] += loads;
            return NULL;
        }
        StmtWalk w;
        for (const Stmt *s = tile_first(&w, body + i, 1); s != NULL; s = tile_next(&w)) {
            u->problem =
                "is a cascade: it is only added to, and then read where it is allocated";
            if ((s->dst == buf && s->fold != OP_SUM) || expr_count_loads(s->value, buf) > 0) {
                return s;
            }
            u->found[buf] += tile_sets(s, buf);
        }
    }
    u->problem = "is a cascade that nothing reads";
    return body[0];
}

static const Stmt *misused(Uses *u, Stmt *const *body, uint32_t n)
{
    const Stmt *bad = NULL;
    for (uint32_t i = 0; bad == NULL && i < n; i++) {
        if (stmt_has_body(body[i])) {
            bad = misused(u, body[i]->body, body[i]->n_body);
        } else if (body[i]->kind == STMT_ALLOC && u->k->bufs.at[body[i]->buf].cascade) {
            bad = follow(u, body + i, n - i);
        }
    }
    return bad;
}

static void name(Uses *u, BufRef buf, const Stmt *s)
{
    if (u->k->bufs.at[buf].cascade) {
        u->named[buf]++;
        u->last[buf] = s;
    }
}

/* The statement that does not do what it may, or null. */
static const Stmt *find_misuse(Arena *scratch, Uses *u)
{
    const Kernel *k = u->k;
    u->named = ARENA_ARRAY(scratch, k->bufs.n, uint32_t);
    u->found = ARENA_ARRAY(scratch, k->bufs.n, uint32_t);
    u->last = ARENA_ARRAY(scratch, k->bufs.n, const Stmt *);
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        ExprWalk x;
        name(u, s->dst, s);
        if (s->sums > 0) {
            name(u, s->sums - 1, s);
        }
        for (const Expr *e = load_first(&x, s->value); e != NULL; e = load_next(&x)) {
            name(u, e->buf, s);
        }
    }
    const Stmt *bad = misused(u, k->body, k->n_body);
    for (BufRef b = 0; bad == NULL && b < k->bufs.n; b++) {
        if (u->named[b] != u->found[b]) {
            u->buf = b;
            u->problem = "is a cascade that has been read";
            bad = u->last[b];
        }
    }
    return bad;
}

bool cascades_verify(Ctx *ctx, const Kernel *k, const char *stage)
{
    Arena scratch;
    Uses u = {.k = k};
    bool any = false, ok = true;
    arena_init(&scratch, &ctx->budget);
    Text in = text_new(&scratch);
    for (BufRef b = 0; ok && b < k->bufs.n; b++) {
        any |= k->bufs.at[b].cascade;
        ok = !k->bufs.at[b].cascade || is_possible(k, &k->bufs.at[b]);
        u.buf = b;
        u.problem =
            "cannot be a cascade: that is a tile of form legal, a number or a short row "
            "of f32, f64, c64 or c128";
    }
    const Stmt *bad = ok && any ? find_misuse(&scratch, &u) : NULL;
    ok = ok && bad == NULL;
    if (bad != NULL) {
        text_put(&in, ", in `");
        loop_text_stmt(k, bad, &in);
        text_char(&in, '`');
    }
    if (!ok) {
        diag_error(&ctx->diags, E_DUMP, bad != NULL ? bad->span : k->span,
                   "%s: kernel '%.60s': '@%.60s' %s%.200s", stage, k->name->text,
                   k->bufs.at[u.buf].name->text, u.problem, in.at);
    }
    arena_release(&scratch);
    return ok;
}

void cascade_add(Cascade *c, Number x)
{
    uint32_t i = 0;
    for (uint64_t m = c->n++; (m & 1) != 0; m >>= 1) {
        x = op_fold(OP_SUM, x.dtype, c->part[i++], x);
    }
    c->part[i] = x;
}

Number cascade_total(const Cascade *c, DType t)
{
    Number x = op_neutral(OP_SUM, t);
    for (uint32_t i = 0; i < CASCADE_PARTS; i++) {
        x = (c->n >> i & 1) != 0 ? op_fold(OP_SUM, t, c->part[i], x) : x;
    }
    return x;
}
