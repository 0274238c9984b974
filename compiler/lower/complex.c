/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of a complex kernel as statements of a real one; see complex.h. A value that treats
 * both parts alike keeps one statement, with the part as a label more. Any other is two
 * statements, one after the other over the same indices, that the legaliser takes together. A
 * block that only renames a contraction's operand (conjugated or widened to complex) is not
 * made: its users read the operand. */
#include "lower/complex.h"
#include "lower/lower.h"
#include "loop/copy.h"

#define VALUE_LIMIT 20000 /* parts of one value, shared ones counted each time */

/* ---- elementwise, and reductions of one value ---- */

static void check_size(Splitter *s, const Stmt *old, const Expr *value)
{
    if (!expr_fits(value) || expr_size(value, VALUE_LIMIT) >= VALUE_LIMIT) {
        split_refuse(s, old->span, "values of so many complex products in one statement");
    }
}

static Stmt *of_part(Splitter *s, const Stmt *old, int64_t part, const Expr *value)
{
    Stmt *out = arena_copy(s->arena, old, sizeof *old);
    out->at = split_at(s, old->dst, old->at, affine_const(part));
    out->value = value == NULL
                     ? expr_const(s->arena, number_real(s->to->bufs.at[old->dst].dtype, 0))
                     : value;
    check_size(s, old, out->value);
    return out;
}

static bool reads_part(const Expr *value, BufRef buf, uint32_t rank, int64_t part)
{
    ExprWalk w;
    for (const Expr *e = load_first(&w, value); e != NULL; e = load_next(&w)) {
        if (e->buf == buf && e->at[rank - 1].n == 0 && e->at[rank - 1].base == part) {
            return true;
        }
    }
    return false;
}

/* The last index of the destination that moves. */
static VarRef last_index(const Splitter *s, const Stmt *stmt)
{
    VarRef last = UINT32_MAX;
    for (uint32_t d = 0; d < s->from->bufs.at[stmt->dst].rank; d++) {
        for (uint32_t i = 0; i < stmt->n_index; i++) {
            const Range *r = &stmt->index[i].range;
            bool single = r->clipped && r->start.n == 0 && dim_is(r->limit, r->start.base + 1);
            last = affine_uses(stmt->at[d], stmt->index[i].var) && !single ? stmt->index[i].var
                                                                           : last;
        }
    }
    return last;
}

/* Copies the block `from` to where `stmt` delivers, both parts. */
static void emit_copy_back(Splitter *s, const Stmt *stmt, BufRef from)
{
    Stmt *out = split_with_part(s, stmt);
    uint32_t kept = 0;
    TileIndex *index = ARENA_ARRAY(s->arena, out->n_index, TileIndex);
    for (uint32_t i = 0; i < out->n_index; i++) {
        if (out->index[i].var == s->part || split_keeps(s, stmt, out->index[i].var)) {
            index[kept++] = out->index[i];
        }
    }
    out->index = index;
    out->n_index = kept;
    out->fold = OP_COPY;
    out->begins = false;
    out->value = expr_load(s->arena, s->to, from, out->at);
    split_emit(s, out);
}

/* Two statements. A reduction into an argument goes through a block, so that both parts leave
 * together; so does an assignment whose second part reads what the first one writes. */
static void split_apart(Splitter *s, const Stmt *old)
{
    Parts v = split_parts(s, old->span, old->value);
    Stmt *half[2] = {of_part(s, old, 0, v.re), of_part(s, old, 1, v.im)};
    const Buffer like = s->to->bufs.at[old->dst];
    bool fold = old->fold != OP_COPY;
    bool block = fold ? old->begins && like.space == SPACE_ARGUMENT
                      : reads_part(half[1]->value, old->dst, like.rank, 0);
    if (!block || s->failed) {
        split_emit(s, half[0]);
        split_emit(s, half[1]);
        return;
    }
    BufRef t = split_new_block(s, "both", &like, false);
    split_alloc(s, t, old->span);
    for (uint32_t r = 0; r < 2; r++) {
        half[r]->dst = t;
        split_emit(s, half[r]);
    }
    emit_copy_back(s, old, t);
}

static void split_value(Splitter *s, const Stmt *old)
{
    if (!split_is_complex(s, old->dst)) {
        Stmt *out = arena_copy(s->arena, old, sizeof *old);
        out->value = split_real(s, old->span, old->value);
        check_size(s, old, out->value);
        split_emit(s, out);
        return;
    }
    if (old->fold != OP_COPY && old->fold != OP_SUM) {
        split_refuse(s, old->span, "products over complex numbers; they go to target 'c'");
        return;
    }
    VarRef last = old->fold == OP_COPY ? last_index(s, old) : UINT32_MAX;
    if (!split_is_uniform(s, old->value, last)) {
        split_apart(s, old);
        return;
    }
    Stmt *out = split_with_part(s, old);
    s->type = dtype_part(old->value->dtype);
    out->value = split_uniform(s, old->value);
    split_emit(s, out);
}

/* ---- blocks that rename an operand ---- */

typedef struct Uses {
    uint32_t n, written;
    bool good; /* each is an operand of a contraction */
} Uses;

static void find_uses(Splitter *s, Stmt *const *body, uint32_t n, BufRef buf, Uses *out)
{
    StmtWalk w;
    for (const Stmt *stmt = tile_first(&w, body, n); stmt != NULL; stmt = tile_next(&w)) {
        out->written += stmt->dst == buf;
        uint32_t loads = expr_count_loads(stmt->value, buf);
        Factor a, b;
        out->n += loads;
        out->good = out->good && (loads == 0 || split_is_product(s, stmt, &a, &b));
    }
}

/* conj(cast(load)): the load, or null when the value is anything else. */
static const Expr *renamed(const Expr *e, bool *conj)
{
    *conj = false;
    while (e->kind == EXPR_OP && (e->op == OP_CONJ || e->op == OP_CAST || e->op == OP_COPY)) {
        *conj = *conj != (e->op == OP_CONJ);
        e = e->arg[0];
    }
    return e->kind == EXPR_LOAD ? e : NULL;
}

/* Each index alone in one dimension of the block, and found from the position there. */
static bool is_invertible(const Splitter *s, const Stmt *def)
{
    for (uint32_t i = 0; i < def->n_index; i++) {
        uint32_t count = 0;
        for (uint32_t d = 0; d < s->from->bufs.at[def->dst].rank; d++) {
            const Affine *x = &def->at[d];
            for (uint32_t t = 0; t < x->n; t++) {
                bool own = x->term[t].var == def->index[i].var;
                count += own && x->term[t].coef == 1 ? 1 : own ? 2 : 0;
            }
        }
        if (count != 1) {
            return false;
        }
    }
    for (uint32_t d = 0; d < s->from->bufs.at[def->dst].rank; d++) {
        uint32_t own = 0;
        for (uint32_t i = 0; i < def->n_index; i++) {
            own += affine_uses(def->at[d], def->index[i].var);
        }
        if (own > 1) {
            return false;
        }
    }
    return true;
}

/* body[at] makes a block that only renames an argument, and all that reads it comes after, in
 * contractions: they can read the argument. */
static void try_forward(Splitter *s, Forward *forward, Stmt *const *body, uint32_t n,
                        uint32_t at)
{
    const Stmt *def = body[at];
    bool conj = false;
    const Expr *load =
        def->kind == STMT_TILE && def->fold == OP_COPY ? renamed(def->value, &conj) : NULL;
    if (load == NULL || s->from->bufs.at[def->dst].space != SPACE_TILE ||
        !split_is_complex(s, def->dst) || s->forward[load->buf].def != NULL) {
        return;
    }
    const Buffer *from = &s->from->bufs.at[load->buf];
    for (uint32_t d = 0; d < from->rank; d++) { /* one index in each position of the operand */
        uint32_t own = 0;
        for (uint32_t i = 0; i < def->n_index; i++) {
            own += affine_uses(load->at[d], def->index[i].var);
        }
        if (own > 1) {
            return;
        }
    }
    if (from->param < 0 || s->from->args.at[from->param].role != ARG_IN ||
        !is_invertible(s, def)) {
        return;
    }
    forward[def->dst] = (Forward){def, load->buf, load->at, conj};
    Uses all = {.good = true}, after = {.good = true};
    find_uses(s, s->from->body, s->from->n_body, def->dst, &all);
    find_uses(s, body + at + 1, n - at - 1, def->dst, &after);
    if (!all.good || all.written != 1 || all.n != after.n) {
        forward[def->dst].def = NULL;
    }
}

static void find_forwards(Splitter *s, Forward *forward, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (stmt_has_body(body[i])) {
            find_forwards(s, forward, body[i]->body, body[i]->n_body);
        } else {
            try_forward(s, forward, body, n, i);
        }
    }
}

/* ---- the kernel ---- */

static Stmt **split_block(Splitter *s, Stmt *const *body, uint32_t n, uint32_t *n_out)
{
    StmtList list = {NULL, 0, 0};
    StmtList *outer = s->body;
    s->body = &list;
    for (uint32_t i = 0; i < n && !s->failed; i++) {
        const Stmt *old = body[i];
        BufRef makes = old->kind == STMT_ALLOC ? old->buf : old->dst;
        Factor a, b;
        if (stmt_has_body(old)) {
            Stmt *out = arena_copy(s->arena, old, sizeof *old);
            out->body = split_block(s, old->body, old->n_body, &out->n_body);
            s->body = &list;
            split_emit(s, out);
        } else if (s->forward[makes].def != NULL) {
            continue;
        } else if (old->kind == STMT_ALLOC) {
            split_alloc(s, old->buf, old->span);
        } else if (split_is_product(s, old, &a, &b)) {
            split_contract(s, old, a, b);
        } else {
            split_value(s, old);
        }
    }
    s->body = outer;
    *n_out = list.n;
    return list.at;
}

/* Buffers and arguments; false when the kernel has nothing complex. */
static bool split_buffers(Splitter *s)
{
    Kernel *to = s->to;
    bool any = false;
    to->bufs.at = arena_copy(s->arena, to->bufs.at, to->bufs.n * sizeof *to->bufs.at);
    to->args.at = arena_copy(s->arena, to->args.at, to->args.n * sizeof *to->args.at);
    for (uint32_t i = 0; i < to->args.n; i++) {
        const Buffer *b = &to->bufs.at[to->args.at[i].buf];
        if (dtype_is_complex(b->dtype)) {
            arg_set_whole(s->arena, &to->args.at[i], b->dtype, b->rank);
        }
    }
    for (uint32_t i = 0; i < to->bufs.n; i++) {
        Buffer *b = &to->bufs.at[i];
        if (!dtype_is_complex(b->dtype)) {
            continue;
        }
        b->dtype = dtype_part(b->dtype);
        b->parts = b->param < 0;
        buffer_set_pairs(s->arena, b);
        any = true;
    }
    return any;
}

Kernel *lower_complex(Ctx *ctx, Arena *arena, const Kernel *k, const Target *target)
{
    Splitter s = {.ctx = ctx, .arena = arena, .target = target, .from = k};
    s.to = kernel_like(arena, k);
    if (!split_buffers(&s)) {
        return s.to;
    }
    s.part = kernel_var(s.to, &ctx->syms, "r", false);
    s.turned = kernel_var(s.to, &ctx->syms, "s", false);
    Forward *forward = ARENA_ARRAY(arena, k->bufs.n, Forward);
    s.forward = forward;
    find_forwards(&s, forward, k->body, k->n_body);
    s.to->body = split_block(&s, k->body, k->n_body, &s.to->n_body);
    return s.failed ? NULL : kernel_numbered(arena, s.to);
}
