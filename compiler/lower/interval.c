/* SPDX-License-Identifier: Apache-2.0 */
/* See interval.h. Statements are met in the order of the text, until nothing changes: a value may come from an iteration before. */
#include "lower/interval.h"

#include <math.h>

#include "loop/walk.h"

#define ROUNDS 4

static const Interval anything = {-(double)INFINITY, (double)INFINITY};
static const Interval nothing = {(double)INFINITY, -(double)INFINITY};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static Interval joined(Interval a, Interval b)
{
    return (Interval){least(a.lo, b.lo), most(a.hi, b.hi)};
}

/* 0 times what may be infinite is 0: nothing is infinite. */
static double times(double a, double b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

static Interval product(Interval a, Interval b)
{
    double p[4] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
    return (Interval){least(least(p[0], p[1]), least(p[2], p[3])),
                      most(most(p[0], p[1]), most(p[2], p[3]))};
}

/* ---- variables ---- */

static Interval of_affine(const Intervals *iv, Affine x)
{
    Interval out = {(double)x.base, (double)x.base};
    for (uint32_t t = 0; t < x.n; t++) {
        double c = (double)x.term[t].coef;
        Interval p = product((Interval){c, c}, iv->var[x.term[t].var]);
        out = (Interval){out.lo + p.lo, out.hi + p.hi};
    }
    return out;
}

static void enter(Intervals *iv, VarRef v, const Range *r)
{
    Interval start = of_affine(iv, r->start);
    double end = r->clipped ? (double)r->limit.n : (double)INFINITY;
    if (r->span > 0) {
        end = least(end, start.hi + (double)r->span);
    }
    iv->var[v] = (Interval){start.lo, end - 1};
}

/* How many values it takes, at most; a loop by its step. */
static double count(const Intervals *iv, VarRef v, int64_t step)
{
    double n = floor((iv->var[v].hi - iv->var[v].lo) / (double)step) + 1;
    return n > 1 ? n : 1;
}

/* ---- values ---- */

static Interval of_op(const Intervals *iv, const Expr *e)
{
    Interval a = {0, 0}, b = {0, 0}, c = {0, 0};
    Interval *arg[3] = {&a, &b, &c};
    for (uint32_t i = 0; i < e->n_args && i < 3; i++) {
        *arg[i] = interval_of(iv, e->arg[i]);
    }
    double up = most(fabs(a.lo), fabs(a.hi));
    switch ((int)e->op) {
    case OP_ADD:
        return (Interval){a.lo + b.lo, a.hi + b.hi};
    case OP_SUB:
        return (Interval){a.lo - b.hi, a.hi - b.lo};
    case OP_MUL:
        return product(a, b);
    case OP_MIN:
        return (Interval){least(a.lo, b.lo), least(a.hi, b.hi)};
    case OP_MAX:
        return (Interval){most(a.lo, b.lo), most(a.hi, b.hi)};
    case OP_SELECT:
        return joined(b, c);
    case OP_NEG:
        return (Interval){-a.hi, -a.lo};
    case OP_ABS:
        return (Interval){a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, up};
    case OP_SIGN:
        return (Interval){-1, 1};
    case OP_COPY:
    case OP_CAST:
        return a;
    default:
        return anything;
    }
}

Interval interval_of(const Intervals *iv, const Expr *e)
{
    if (e->dtype == DTYPE_BOOL) {
        return (Interval){0, 1};
    }
    if (!dtype_is_int(e->dtype)) {
        return anything;
    }
    switch (e->kind) {
    case EXPR_CONST:
        return (Interval){(double)e->value.i, (double)e->value.i};
    case EXPR_INDEX:
        return of_affine(iv, e->at[0]);
    case EXPR_LOAD:
        return iv->buf[e->buf];
    case EXPR_OP:
        return of_op(iv, e);
    case EXPR_EXTENT:
        break;
    }
    return anything;
}

/* ---- statements ---- */

const Expr *interval_added(const Kernel *k, const Stmt *s)
{
    const Expr *v = s->value;
    if (s->fold != OP_COPY) {
        return s->fold == OP_SUM ? v : NULL;
    }
    const Expr *own = v->kind == EXPR_OP && v->op == OP_ADD ? v->arg[0] : NULL;
    bool same = own != NULL && own->kind == EXPR_LOAD && own->buf == s->dst;
    for (uint32_t d = 0; same && d < k->bufs.at[s->dst].rank; d++) {
        same = affine_eq(own->at[d], s->at[d]);
    }
    return same ? v->arg[1] : NULL;
}

typedef struct Meeting {
    Intervals *iv;
    const Stmt **loop; /* around, outermost first */
    uint32_t n_loops;
    uint32_t *depth; /* [bufs] loops around where it is allocated */
    /* [bufs] What is stored there, and what all sums into one element add to that. */
    Interval *stored, *added;
} Meeting;

/* Is the term, or the condition, 0 but at one position of v: by `eq(w, v)` in it, where w does not move with v? */
static bool is_one_hot(const Kernel *k, const Expr *e, VarRef v)
{
    if (e->kind != EXPR_OP) {
        return false;
    }
    const Expr *x = e->arg[0], *y = e->n_args > 1 ? e->arg[1] : NULL;
    switch ((int)e->op) {
    case OP_CAST:
    case OP_COPY:
    case OP_NEG:
        return is_one_hot(k, x, v);
    case OP_MUL:
    case OP_AND:
        return is_one_hot(k, x, v) || is_one_hot(k, y, v);
    case OP_SELECT:
        return is_one_hot(k, x, v) && e->arg[2]->kind == EXPR_CONST &&
               number_is_zero(e->arg[2]->value);
    case OP_EQ:
        for (uint32_t i = 0; i < 2; i++) {
            const Expr *at = expr_uncast(e->arg[i]);
            if (at->kind == EXPR_INDEX && affine_coef(at->at[0], v) != 0 &&
                !expr_uses(k, e->arg[1 - i], v)) {
                return true;
            }
        }
        return false;
    default:
        return false;
    }
}

/* Terms of a sum that may come together in one element. */
static double terms(const Meeting *m, const Stmt *s)
{
    const Kernel *k = m->iv->k;
    double n = 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        bool kept = s->scan != i + 1 && access_uses(k, s->dst, s->at, v);
        kept = kept || is_one_hot(k, s->value, v);
        n *= kept ? 1 : count(m->iv, v, 1);
    }
    uint32_t begins = s->begins && s->n_first == 0 ? m->n_loops : m->depth[s->dst];
    for (uint32_t i = begins; i < m->n_loops; i++) {
        const Stmt *loop = m->loop[i];
        bool kept = access_uses(k, s->dst, s->at, loop->var);
        n *= kept ? 1 : count(m->iv, loop->var, loop->step);
    }
    return n;
}

static void meet_tile(Meeting *m, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        enter(m->iv, s->index[i].var, &s->index[i].range);
    }
    const Expr *term = interval_added(m->iv->k, s);
    Interval v = interval_of(m->iv, term == NULL ? s->value : term);
    Interval *stored = &m->stored[s->dst], *added = &m->added[s->dst];
    if (!dtype_is_int(m->iv->k->bufs.at[s->dst].dtype)) {
        return;
    }
    if (term != NULL) {
        double n = terms(m, s);
        *added = (Interval){added->lo + times(least(v.lo, 0), n),
                            added->hi + times(most(v.hi, 0), n)};
    } else if (s->fold == OP_PROD && !(v.lo >= -1 && v.hi <= 1)) {
        *stored = anything;
    } else {
        *stored = joined(*stored, v);
    }
}

static void meet(Meeting *m, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            m->depth[s->buf] = m->n_loops;
        } else if (s->kind == STMT_TILE) {
            meet_tile(m, s);
        } else if (s->kind == STMT_FOR) {
            enter(m->iv, s->var, &s->range);
            m->loop[m->n_loops++] = s;
            meet(m, s->body, s->n_body);
            m->n_loops--;
        } else {
            meet(m, s->body, s->n_body);
        }
    }
}

/* What the round before did not have becomes `anything` in the last one: a value that grows with each iteration. */
static bool take(Meeting *m, BufRef buf, bool last)
{
    Interval was = m->iv->buf[buf], base = m->stored[buf], add = m->added[buf];
    base = base.lo > base.hi ? (Interval){0, 0} : base;
    Interval now = joined(was, (Interval){base.lo + add.lo, base.hi + add.hi});
    bool same = now.lo >= was.lo && now.hi <= was.hi;
    m->iv->buf[buf] = same ? was : last ? anything : now;
    return !same;
}

void intervals_find(Intervals *iv, Arena *arena, const Kernel *k, double given)
{
    *iv = (Intervals){arena, k, ARENA_ARRAY(arena, (size_t)k->vars.n + 1, Interval),
                      ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, Interval)};
    Meeting m = {.iv = iv,
                 .loop = ARENA_ARRAY(arena, LOOP_DEPTH_LIMIT + 1, const Stmt *),
                 .depth = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, uint32_t),
                 .stored = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, Interval),
                 .added = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, Interval)};
    for (BufRef b = 0; b < k->bufs.n; b++) {
        iv->buf[b] = (Interval){0, 0};
    }
    bool changes = true;
    for (uint32_t round = 0; changes && round <= ROUNDS + k->bufs.n; round++) {
        for (BufRef b = 0; b < k->bufs.n; b++) {
            int32_t param = k->bufs.at[b].param;
            bool from_caller = param >= 0 && k->args.at[param].role != ARG_RESULT;
            m.stored[b] = from_caller ? (Interval){-given, given} : nothing;
            m.added[b] = (Interval){0, 0};
        }
        meet(&m, k->body, k->n_body);
        changes = false;
        for (BufRef b = 0; b < k->bufs.n; b++) {
            changes |= take(&m, b, round >= ROUNDS);
        }
    }
}
