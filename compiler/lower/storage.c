/* SPDX-License-Identifier: Apache-2.0 */
/* See storage.h. */
#include "lower/storage.h"

#include <math.h>

#include "loop/copy.h"
#include "loop/walk.h"
#include "lower/interval.h"

typedef struct Storage {
    Arena *arena;
    Intervals iv; /* of the kernel as it was */
    Kernel *to;
} Storage;

static bool is_byte(DType t)
{
    return t == DTYPE_F8E4M3 || t == DTYPE_F8E5M2;
}

static const Expr *number(Storage *s, double v)
{
    return expr_const(s->arena, number_real(DTYPE_F32, v));
}

static const Expr *make(Storage *s, Op op, DType t, const Expr *x, const Expr *y)
{
    const Expr *both[2] = {x, y};
    return expr_op(s->arena, op, t, y == NULL ? 1 : 2, both);
}

static const Expr *choose(Storage *s, const Expr *condition, const Expr *x, const Expr *y)
{
    const Expr *three[3] = {condition, x, y};
    return expr_op(s->arena, OP_SELECT, DTYPE_F32, 3, three);
}

/* An f32 that a cast to `t` rounds without asking what is beyond the largest. */
static const Expr *within(Storage *s, const Expr *x, DType t)
{
    double most = dtype_most(t);
    if (dtype_info(t)->beyond ==
        BEYOND_SATURATES) { /* but infinities, which stay, as NaN does */
        const Expr *near =
            make(s, OP_MIN, DTYPE_F32, make(s, OP_MAX, DTYPE_F32, x, number(s, -most)),
                 number(s, most));
        const Expr *nothing = make(s, OP_MUL, DTYPE_F32, x, number(s, 0));
        return choose(s, make(s, OP_EQ, DTYPE_BOOL, nothing, number(s, 0)), near, x);
    }
    int exponent = 0;
    (void)frexp(most, &exponent);
    double end =
        most + ldexp(dtype_epsilon(t), exponent - 2); /* half a step: ties go up there */
    const Expr *near =
        make(s, OP_LT, DTYPE_BOOL, make(s, OP_ABS, DTYPE_F32, x, NULL), number(s, end));
    return choose(s, near, x, make(s, OP_MUL, DTYPE_F32, x, number(s, 0x1p120)));
}

static const Expr *value(Storage *s, const Expr *e)
{
    DType t = is_byte(e->dtype) ? DTYPE_BF16 : e->dtype;
    if (e->kind == EXPR_CONST) {
        return t == e->dtype ? e : expr_const(s->arena, number_cast(e->value, t));
    }
    if (e->kind == EXPR_LOAD) {
        return t == e->dtype ? e : expr_load(s->arena, s->to, e->buf, e->at);
    }
    if (e->kind != EXPR_OP) {
        return e;
    }
    const Expr **arg = ARENA_ARRAY(s->arena, e->n_args + 1, const Expr *);
    bool same = t == e->dtype;
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = value(s, e->arg[i]);
        same &= arg[i] == e->arg[i];
    }
    if (same) {
        return e;
    }
    if (e->op == OP_GATHER) {
        return expr_gather(s->arena, s->to, e->buf, arg);
    }
    if (e->op != OP_CAST || t == e->dtype) {
        return e->op == OP_CAST ? expr_cast(s->arena, arg[0], t)
                                : expr_op(s->arena, e->op, t, e->n_args, arg);
    }
    const Expr *x = expr_cast(s->arena, arg[0], DTYPE_F32);
    Interval v = interval_of(&s->iv, e->arg[0]);
    double most = dtype_most(e->dtype);
    x = v.lo >= -most && v.hi <= most ? x : within(s, x, e->dtype);
    return expr_cast(s->arena, expr_cast(s->arena, x, e->dtype), t);
}

static bool has_bytes(const Kernel *k)
{
    StmtWalk w;
    ExprWalk v;
    bool any = false;
    for (BufRef b = 0; b < k->bufs.n; b++) {
        any |= is_byte(k->bufs.at[b].dtype);
    }
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        for (const Expr *e = expr_first(&v, s->value); e != NULL; e = expr_next(&v)) {
            any |= is_byte(e->dtype);
        }
    }
    return any;
}

static void change_all(Storage *s, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *t = body[i];
        if (t->kind == STMT_TILE) {
            t->value = value(s, t->value);
        } else if (stmt_has_body(t)) {
            change_all(s, t->body, t->n_body);
        }
    }
}

Kernel *lower_storage(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    (void)ctx;
    Storage s = {.arena = arena};
    if (k->dims.list.n > 0 || !has_bytes(k)) {
        return (Kernel *)(uintptr_t)k;
    }
    intervals_find(&s.iv, arena, k, 0x1p24);
    s.to = kernel_changeable(arena, k);
    s.to->bufs.at = arena_copy(arena, k->bufs.at, k->bufs.n * sizeof *k->bufs.at);
    for (BufRef i = 0; i < k->bufs.n; i++) {
        Buffer *b = &s.to->bufs.at[i];
        if (is_byte(b->dtype)) {
            b->stored = b->param < 0 ? DTYPE_NONE : b->dtype;
            b->dtype = DTYPE_BF16;
        }
    }
    change_all(&s, s.to->body, s.to->n_body);
    return kernel_numbered(arena, s.to);
}
