/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a kernel that differ in their rows alone (split.c): one of them is finished, the others are that one with other rows,
 *
 *     rows 0..512 of Q -> S -> O        rows 512..1024 of Q -> S -> O        ...
 *
 * if their instructions, before loops are found and put in stages, are the same once each tensor in memory is moved by as many rows as the
 * statements say. */
#include "backend/nki/lower_stmt.h"
#include "backend/nki/part.h"
#include "loop/copy.h"
#include "loop/loop_text.h"

#include <string.h>

/* How far an access of the statement moves with a step of the variable, its own or that of the loop around in which its indices begin, and along
 * which dimension; false: along several. */
static bool moves_along(const Kernel *k, const Stmt *t, BufRef buf, const Affine *at, VarRef v,
                        struct StmtShift *out)
{
    uint32_t n = 0;
    *out = (struct StmtShift){0};
    for (uint32_t d = 0; d < k->bufs.at[buf].rank; d++) {
        int64_t by = affine_coef(at[d], v);
        for (uint32_t i = 0; i < t->n_index; i++) {
            by += affine_coef(at[d], t->index[i].var) * affine_coef(t->index[i].range.start, v);
        }
        *out = by != 0 ? (struct StmtShift){d, by} : *out;
        n += by != 0;
    }
    return n < 2;
}

/* Takes in how far what the statement touches moves with so many steps of the variable. Where two accesses of a buffer move apart, the
 * parts differ in more than rows: then their texts say so. */
static bool add_shifts(const Kernel *k, const Stmt *t, VarRef v, int64_t steps,
                       struct StmtShift *shift)
{
    ExprWalk w;
    struct StmtShift by;
    bool one = moves_along(k, t, t->dst, t->at, v, &by);
    shift[t->dst] = by.by != 0 ? (struct StmtShift){by.dim, -by.by * steps} : shift[t->dst];
    for (const Expr *e = load_first(&w, t->value); e != NULL; e = load_next(&w)) {
        one &= moves_along(k, t, e->buf, e->at, v, &by);
        shift[e->buf] = by.by != 0 ? (struct StmtShift){by.dim, -by.by * steps} : shift[e->buf];
    }
    return one;
}

const struct StmtShift *part_shift(Arena *a, const Kernel *k, const Task *from, const Task *to)
{
    struct StmtShift *shift = ARENA_ARRAY(a, k->bufs.n + 1, struct StmtShift);
    bool same = from->n_body == to->n_body && from->n_limits == to->n_limits;
    for (uint32_t i = 0; same && i < to->n_body; i++) {
        same = from->body[i] == to->body[i];
    }
    for (uint32_t i = 0; same && i < to->n_limits; i++) {
        const Limit *x = &from->limits[i], *y = &to->limits[i];
        same = x->stmt == y->stmt && x->var == y->var && x->hi - x->lo == y->hi - y->lo;
        Stmt *one = (Stmt *)(uintptr_t)x->stmt;
        StmtWalk w;
        for (const Stmt *t = same ? tile_first(&w, &one, 1) : NULL; t != NULL && same;
             t = tile_next(&w)) {
            same = add_shifts(k, t, x->var, y->lo - x->lo, shift);
        }
    }
    return same ? shift : NULL;
}

Kernel *part_moved(Arena *a, const Kernel *from, const Sym *shared,
                   const struct StmtShift *shift, const Kernel *part)
{
    Kernel *to = kernel_like(a, part);
    BufRef *buf = ARENA_ARRAY(a, part->bufs.n + 1, BufRef);
    VarRef *var = ARENA_ARRAY(a, part->vars.n + 1, VarRef);
    struct StmtShift *by = ARENA_ARRAY(a, part->bufs.n + 1, struct StmtShift);
    for (uint32_t b = 0; b < part->bufs.n; b++) {
        buf[b] = b;
        for (uint32_t i = 0; i < from->bufs.n; i++) {
            by[b] = shared[i] != NULL && shared[i] == part->bufs.at[b].name ? shift[i] : by[b];
        }
    }
    for (uint32_t i = 0; i < part->args.n; i++) {
        by[part->args.at[i].buf] = shift[from->args.at[i].buf];
    }
    for (uint32_t v = 0; v < part->vars.n; v++) {
        var[v] = v;
    }
    StmtCopy copy = {.arena = a, .from = part, .buf = buf, .var = var, .shift = by};
    to->body = stmts_copy(&copy, part->body, part->n_body);
    return to;
}

bool part_same_text(Arena *a, const Kernel *x, const Kernel *y)
{
    Text one = text_new(a), other = text_new(a);
    kernel_dump(x, &one);
    kernel_dump(y, &other);
    return one.n == other.n && memcmp(one.at, other.at, one.n) == 0;
}
