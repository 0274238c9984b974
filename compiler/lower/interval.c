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

/* By a divisor of at least 1, whose sign counts. */
static Interval quotient(Interval a, Interval b)
{
    double up = most(fabs(a.lo), fabs(a.hi)), by = b.lo > 1 ? b.lo : b.hi < -1 ? -b.hi : 1;
    double size = up < (double)INFINITY ? floor(up / by) : up;
    return b.lo > 0 && a.lo >= 0 ? (Interval){0, size} : (Interval){-size, size};
}

/* With the sign of the divisor, and less; as it is where that is less. */
static Interval remainder_of(Interval a, Interval b)
{
    Interval out = {b.lo < 0 ? b.lo + 1 : 0, b.hi > 0 ? b.hi - 1 : 0};
    return a.lo >= 0 && b.lo > 0 ? (Interval){0, least(a.hi, out.hi)} : out;
}

/* Of floats, which are rounded. */
static Interval rounded(const Expr *e, Interval v)
{
    double off = dtype_is_int(e->dtype) ? 0 : ldexp(most(fabs(v.lo), fabs(v.hi)), -20);
    return (Interval){v.lo - off, v.hi + off};
}

/* All of an integer type. */
static Interval of_type(DType t)
{
    return (Interval){(double)dtype_lowest(t), (double)dtype_highest(t)};
}

/* A cast of a float truncates and saturates, one of a NaN is 0; one of an integer takes the low bits. */
static Interval cast(const Expr *e, Interval v)
{
    if (!dtype_is_int(e->dtype)) {
        return v;
    }
    Interval all = of_type(e->dtype);
    if (!dtype_is_float(e->arg[0]->dtype)) {
        return v.lo >= all.lo && v.hi <= all.hi ? v : all;
    }
    v = (Interval){most(trunc(v.lo), all.lo), least(trunc(v.hi), all.hi)};
    return joined(v, (Interval){0, 0});
}

static Interval of_op(const Intervals *iv, const Expr *e)
{
    Interval a = {0, 0}, b = {0, 0}, c = {0, 0};
    Interval *arg[3] = {&a, &b, &c};
    for (uint32_t i = 0; i < e->n_args && i < 3 && e->op != OP_GATHER; i++) {
        *arg[i] = interval_of(iv, e->arg[i]);
    }
    double up = most(fabs(a.lo), fabs(a.hi));
    switch ((int)e->op) {
    case OP_ADD:
        return rounded(e, (Interval){a.lo + b.lo, a.hi + b.hi});
    case OP_SUB:
        return rounded(e, (Interval){a.lo - b.hi, a.hi - b.lo});
    case OP_MUL:
        return rounded(e, product(a, b));
    case OP_DIV:
        return dtype_is_int(e->dtype) ? joined((Interval){0, 0}, quotient(a, b)) : anything;
    case OP_MOD:
        return dtype_is_int(e->dtype) ? remainder_of(a, b) : anything;
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
        return a;
    case OP_GATHER:
        return iv->buf[e->buf];
    case OP_CAST:
        return cast(e, a);
    default:
        return anything;
    }
}

Interval interval_of(const Intervals *iv, const Expr *e)
{
    if (e->dtype == DTYPE_BOOL) {
        return (Interval){0, 1};
    }
    bool whole = dtype_is_int(e->dtype);
    if (!whole && e->dtype != DTYPE_F32) {
        return anything;
    }
    switch (e->kind) {
    case EXPR_CONST:
        return whole ? (Interval){(double)e->value.i, (double)e->value.i}
                     : (Interval){e->value.re, e->value.re};
    case EXPR_INDEX:
        return of_affine(iv, e->at[0]);
    case EXPR_LOAD:
        return whole ? iv->buf[e->buf] : anything;
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

/* A buffer of whose elements along a dimension one is not 0 at most: that at `other`, less `off`. No `other`: none is known of all that sets it. */
typedef struct HotBuffer {
    const Expr *other;
    Affine off;
    uint32_t dim;
} HotBuffer;

typedef struct Meeting {
    Intervals *iv;
    const Stmt **loop; /* around, outermost first */
    uint32_t n_loops;
    uint32_t *depth; /* [bufs] loops around where it is allocated */
    /* [bufs] What is stored there, and what all sums into one element add to that. */
    Interval *stored, *added;
    HotBuffer *hot; /* [bufs] */
    bool *set;      /* [bufs] */
} Meeting;

/* ---- sums of which one term counts ---- */

#define HOT_MOST 4

/* A factor that is 0 but where position `at` is the number `other`, an expression of this statement or of the one that set buffer `of`;
 * that is of its dimensions but one, at which `load` reads. */
typedef struct Hot {
    Affine at;
    const Expr *other, *load;
} Hot;

/* Does what the position is compared with move with v? */
static bool hot_uses(const Meeting *m, const Hot *h, VarRef v)
{
    const Kernel *k = m->iv->k;
    bool uses = expr_uses(k, h->other, v);
    for (uint32_t d = 0; h->load != NULL && d < k->bufs.at[h->load->buf].rank; d++) {
        uses |= d != m->hot[h->load->buf].dim && affine_uses(h->load->at[d], v);
    }
    return uses;
}

/* Is all that it reads the same in each iteration of a loop? */
static bool is_same(const Expr *e, const Stmt *loop)
{
    ExprWalk v;
    StmtWalk w;
    bool same = true;
    for (const Stmt *s = tile_first(&w, loop->body, loop->n_body); s != NULL;
         s = tile_next(&w)) {
        for (const Expr *x = expr_first(&v, e); x != NULL; x = expr_next(&v)) {
            same &= expr_buffer(x) == BUF_NONE || !tile_sets(s, expr_buffer(x));
        }
    }
    return same;
}

/* Factors of a term, or of a condition: `eq(w, i)`, and elements of buffers that hold such. */
static void find_hot(const Meeting *m, const Expr *e, uint32_t *n, Hot *hot)
{
    if (e->kind == EXPR_LOAD && m->hot[e->buf].other != NULL && *n < HOT_MOST) {
        const HotBuffer *b = &m->hot[e->buf];
        hot[(*n)++] = (Hot){affine_add(m->iv->arena, e->at[b->dim], 1, b->off), b->other, e};
    }
    if (e->kind != EXPR_OP) {
        return;
    }
    const Expr *x = e->arg[0], *y = e->n_args > 1 ? e->arg[1] : NULL;
    if (e->op == OP_CAST || e->op == OP_COPY || e->op == OP_NEG || e->op == OP_MUL ||
        e->op == OP_AND) {
        find_hot(m, x, n, hot);
        if (y != NULL) {
            find_hot(m, y, n, hot);
        }
    } else if (e->op == OP_SELECT && e->arg[2]->kind == EXPR_CONST &&
               number_is_zero(e->arg[2]->value)) {
        find_hot(m, x, n, hot);
    } else if (e->op == OP_EQ) {
        for (uint32_t i = 0; i < 2 && *n < HOT_MOST; i++) {
            const Expr *at = expr_uncast(e->arg[i]);
            if (at->kind == EXPR_INDEX && at->at[0].n > 0) {
                hot[(*n)++] = (Hot){at->at[0], e->arg[1 - i], NULL};
            }
        }
    }
}

/* The one dimension but d that says what value v has, as it moves with that alone beside loops around the allocation. */
static bool has_dimension(const Meeting *m, const Stmt *s, uint32_t d, VarRef v)
{
    const Kernel *k = m->iv->k;
    bool has = false;
    for (uint32_t o = 0; o < k->bufs.at[s->dst].rank; o++) {
        bool alone = o != d && affine_uses(s->at[o], v);
        for (uint32_t t = 0; t < s->at[o].n && alone; t++) {
            VarRef other = s->at[o].term[t].var;
            alone = other == v;
            for (uint32_t l = 0; l < m->depth[s->dst] && !alone; l++) {
                alone = m->loop[l]->var == other;
            }
        }
        has |= alone;
    }
    return has;
}

/* Is the value not 0 at one position of dimension d at most, for all that is stored from the allocation on? */
static bool is_hot_along(const Meeting *m, const Stmt *s, const Hot *h, uint32_t d, Affine off)
{
    uint32_t outer = m->depth[s->dst];
    bool is = s->at[d].n > 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        is &= !affine_uses(off, v) && (!hot_uses(m, h, v) || has_dimension(m, s, d, v));
    }
    for (uint32_t l = outer; l < m->n_loops; l++) {
        VarRef v = m->loop[l]->var;
        is &= !affine_uses(off, v) && (!hot_uses(m, h, v) || has_dimension(m, s, d, v)) &&
              is_same(h->other, m->loop[l]);
    }
    return is;
}

static HotBuffer stored_hot(const Meeting *m, const Stmt *s)
{
    Hot hot[HOT_MOST];
    uint32_t n = 0;
    find_hot(m, s->value, &n, hot);
    for (uint32_t i = 0; s->fold == OP_COPY && i < n; i++) {
        for (uint32_t d = 0; hot[i].load == NULL && d < m->iv->k->bufs.at[s->dst].rank; d++) {
            Affine off = affine_add(m->iv->arena, hot[i].at, -1, s->at[d]);
            if (is_hot_along(m, s, &hot[i], d, off)) {
                return (HotBuffer){hot[i].other, off, d};
            }
        }
    }
    return (HotBuffer){0};
}

/* ---- sums ---- */

/* Values that an index has at a time. */
static double count_index(const Meeting *m, const TileIndex *i)
{
    double n = count(m->iv, i->var, 1);
    return i->range.span > 0 ? least(n, (double)i->range.span) : n;
}

/* Marks an index of s, and loops around, of which one value together makes a term that is not 0. */
static void mark_hot(const Meeting *m, const Stmt *s, const Hot *h, bool *one)
{
    uint32_t best = s->n_index;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        if (one[i] && hot_uses(m, h, v)) {
            return; /* what it is equal to moves with an index that is known by another factor */
        }
        bool longer = best == s->n_index ||
                      count_index(m, &s->index[i]) > count_index(m, &s->index[best]);
        best = affine_uses(h->at, v) && !hot_uses(m, h, v) && !one[i] && longer ? i : best;
    }
    if (best == s->n_index) {
        return;
    }
    one[best] = true;
    const Range *r = &s->index[best].range;
    for (uint32_t l = 0; l < m->n_loops; l++) { /* tiles of that index, which lie apart */
        VarRef v = m->loop[l]->var;
        bool apart = r->span > 0 && affine_coef(r->start, v) == 1 &&
                     m->loop[l]->step >= r->span && r->start.n == 1;
        one[s->n_index + l] |= apart && !affine_uses(h->at, v) && !hot_uses(m, h, v) &&
                               is_same(h->other, m->loop[l]);
    }
}

/* Terms of a sum that may come together in one element. */
static double terms(const Meeting *m, const Stmt *s)
{
    const Kernel *k = m->iv->k;
    bool *one = ARENA_ARRAY(m->iv->arena, (size_t)s->n_index + m->n_loops + 1, bool);
    Hot hot[HOT_MOST];
    uint32_t n_hot = 0;
    double n = 1;
    find_hot(m, s->value, &n_hot, hot);
    for (uint32_t i = 0; i < n_hot; i++) {
        mark_hot(m, s, &hot[i], one);
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        bool kept = s->scan != i + 1 && access_uses(k, s->dst, s->at, v);
        n *= kept || one[i] ? 1 : count_index(m, &s->index[i]);
    }
    uint32_t begins = s->begins && s->n_first == 0 ? m->n_loops : m->depth[s->dst];
    for (uint32_t i = begins; i < m->n_loops; i++) {
        const Stmt *loop = m->loop[i];
        bool kept = access_uses(k, s->dst, s->at, loop->var);
        n *= kept || one[s->n_index + i] ? 1 : count(m->iv, loop->var, loop->step);
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
    m->hot[s->dst] = m->set[s->dst] ? (HotBuffer){0} : stored_hot(m, s);
    m->set[s->dst] = true;
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
                 .hot = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, HotBuffer),
                 .set = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, bool),
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
            Interval all = from_caller ? of_type(k->bufs.at[b].dtype) : nothing;
            m.stored[b] =
                from_caller ? (Interval){most(all.lo, -given), least(all.hi, given)} : nothing;
            m.added[b] = (Interval){0, 0};
            m.hot[b] = (HotBuffer){0};
            m.set[b] = false;
        }
        meet(&m, k->body, k->n_body);
        changes = false;
        for (BufRef b = 0; b < k->bufs.n; b++) {
            changes |= take(&m, b, round >= ROUNDS);
        }
    }
}
