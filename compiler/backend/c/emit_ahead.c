/* SPDX-License-Identifier: Apache-2.0 */
/* What the next iteration packs is asked for while this one multiplies. A block whose operand comes from memory is packed
 * and then multiplied; one after the other, the memory rests while the tiles run and the multipliers rest while panels are
 * filled. So each call of a register tile also walks over some lines of the operand's next block, one for each step of its
 * sum: they are near when they are packed. A hint: nothing is read.
 *
 * Lines of memory are 64 bytes, V elements. What one call asks for, a group, is of V positions of one label, for each step
 * of the sum:
 *
 *     memory runs along columns:   V columns; their line of each step of the sum
 *     memory runs along the sum:   V columns; for each V steps the line of each of them
 *
 * and groups follow each other as tiles do, over at most AHEAD_LABELS labels. Strides and extents must be numbers.
 *
 * Operands need not begin where a line does: those of NumPy and of malloc begin 16 bytes behind. V elements are then parts of two
 * lines, the first of which the block before has read, so the line of the last of them is asked for. */
#include "backend/c/emit.h"

#include "backend/c/legalise.h"
#include "backend/c/product.h"
#include "op/affine.h"

static const char ahead_type[] =
    "/* A walk over the lines of a block: groups of them by label, in bytes. */\n"
    "typedef struct tdsl_ahead {\n"
    "    uintptr_t at;\n"
    "    int64_t step[3], count[3], index[3];\n"
    "} tdsl_ahead;\n";

static const char ahead_text[] = "TDSL_HELPER uintptr_t tdsl_ahead_next(tdsl_ahead *x)\n"
                                 "{\n"
                                 "    const uintptr_t at = x->at;\n"
                                 "    for (int32_t i = 0; i < 3; ++i) {\n"
                                 "        x->at += (uintptr_t)x->step[i];\n"
                                 "        if (++x->index[i] < x->count[i]) {\n"
                                 "            break;\n"
                                 "        }\n"
                                 "        x->at -= (uintptr_t)(x->step[i] * x->count[i]);\n"
                                 "        x->index[i] = 0;\n"
                                 "    }\n"
                                 "    return at;\n"
                                 "}\n";

/* ---- what is packed, and where it is used ---- */

/* A statement and the loops around it, outermost first. */
typedef struct Place {
    const Stmt *s;
    uint32_t n;
    const Stmt *loop[LOOP_DEPTH_LIMIT];
} Place;

typedef bool PlaceTest(const Kernel *k, const Stmt *s, BufRef panels);

static bool fills(const Kernel *k, const Stmt *s, BufRef panels)
{
    (void)k;
    return s->dst == panels && s->fold == OP_COPY && s->value->kind == EXPR_LOAD;
}

static bool multiplies(const Kernel *k, const Stmt *s, BufRef panels)
{
    Product p;
    return stmt_is_product(s) && product_of(k, s, &p) == NULL &&
           (p.a->buf == panels || p.b->buf == panels);
}

static bool place_find(const Kernel *k, Stmt *const *body, uint32_t n, BufRef panels,
                       PlaceTest *test, Place *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_TILE && test(k, s, panels)) {
            out->s = s;
            return true;
        }
        if (s->kind == STMT_FOR && out->n < LOOP_DEPTH_LIMIT) {
            out->loop[out->n++] = s;
            if (place_find(k, s->body, s->n_body, panels, test, out)) {
                return true;
            }
            out->n--;
        }
    }
    return false;
}

/* ---- the walk ---- */

typedef struct Label {
    VarRef var;
    int64_t extent, step; /* elements of the operand for the next position */
} Label;

/* How many elements further the operand is for the next value of v; false: no number. */
static bool step_of(const Kernel *k, const Expr *load, VarRef v, int64_t *out)
{
    const Buffer *b = &k->bufs.at[load->buf];
    int64_t step = 1;
    *out = 0;
    for (uint32_t d = b->rank; d-- > 0;) {
        if (b->extent[d].sym >= 0) {
            return false;
        }
        *out = sat_add(*out, sat_mul(step, affine_coef(load->at[d], v)));
        step = sat_mul(step, b->extent[d].n);
    }
    return *out >= 0 && step < INT64_MAX;
}

static int64_t operand_bytes(const Kernel *k, const Expr *load)
{
    int64_t n = dtype_bytes(load->dtype);
    for (uint32_t d = 0; d < k->bufs.at[load->buf].rank; d++) {
        n = sat_mul(n, k->bufs.at[load->buf].extent[d].n);
    }
    return n;
}

static int64_t loop_trips(const Stmt *loop)
{
    int64_t most =
        range_is_exact(loop->range) || loop->range.span > 0 ? range_most(loop->range) : 0;
    return (most + loop->step - 1) / loop->step;
}

/* The columns of what is packed, the one of which lines are taken first; the step of its sum. */
static bool labels_of(const Kernel *k, const Place *pack, Label *sum, Label *own, uint32_t *n)
{
    const Stmt *s = pack->s;
    bool sums = false;
    *n = 0;
    for (uint32_t i = 0; i < s->n_index + pack->n; i++) {
        const Stmt *loop = i < s->n_index ? NULL : pack->loop[pack->n - 1 - (i - s->n_index)];
        Label x = {.var = loop == NULL ? s->index[i].var : loop->var};
        Range r = loop == NULL ? s->index[i].range : loop->range;
        bool is_sum = affine_coef(s->at[0], x.var) != 0;
        bool known = range_is_exact(r) || r.span > 0; /* the last block may be shorter */
        x.extent = known && (loop == NULL || loop->step == 1) ? range_most(r) : 0;
        if (x.extent < 1 || !step_of(k, s->value, x.var, &x.step) || (is_sum && sums) ||
            (!is_sum && *n == AHEAD_LABELS)) {
            return false;
        }
        sums |= is_sum;
        *(is_sum ? sum : &own[(*n)++]) = x;
    }
    return sums && *n > 0;
}

static void label_first(Label *own, uint32_t i)
{
    Label x = own[i];
    own[i] = own[0];
    own[0] = x;
}

/* Would most of the lines have left the second cache before they are packed? Those that are a power of two apart meet in few of
 * its sets: here of 512 KiB, as small as any processor with wide vectors has. */
#define SETS  1024
#define WAYS  8
#define LINES 65536 /* of a block, at most */

static bool lines_meet(const Ahead *x, int64_t steps, int64_t wide)
{
    uint8_t in_set[SETS] = {0};
    int64_t groups = sat_mul(x->count[0], sat_mul(x->count[1], x->count[2])), kept = 0;
    if (sat_mul(groups, steps) > LINES) {
        return true;
    }
    for (int64_t g = 0; g < groups; g++) {
        int64_t at = g % x->count[0] * x->step[0] + g / x->count[0] % x->count[1] * x->step[1] +
                     g / x->count[0] / x->count[1] * x->step[2];
        for (int64_t k = 1; k <= steps; k++) {
            uint8_t *set = &in_set[(uint64_t)at / LINE_BYTES % SETS];
            kept += *set < WAYS;
            *set = (uint8_t)(*set + (*set < WAYS));
            at += k % wide == 0 ? x->turn : x->each;
        }
    }
    return kept * 4 < groups * steps;
}

static bool walk_of(const Kernel *k, const Place *pack, int64_t calls, Ahead *out)
{
    Label sum = {0}, own[AHEAD_LABELS];
    uint32_t n = 0;
    int64_t size = dtype_bytes(pack->s->value->dtype), wide = LINE_BYTES / size, groups = 1;
    if (!labels_of(k, pack, &sum, own, &n)) {
        return false;
    }
    bool along = false;
    for (uint32_t i = 0; i < n && !along; i++) {
        along = own[i].step == 1;
        label_first(own, along ? i : 0);
    }
    for (uint32_t i = 1; i < n && !along; i++) {
        label_first(own, own[i].extent > own[0].extent ? i : 0);
    }
    if (!along && (sum.step != 1 || own[0].extent < wide)) {
        return false;
    }
    for (uint32_t i = 0; i < AHEAD_LABELS; i++) {
        int64_t each = i == 0 ? wide : 1;
        out->count[i] = i < n ? (own[i].extent + each - 1) / each : 1;
        out->step[i] = i < n ? size * each * own[i].step : 0;
        groups = sat_mul(groups, out->count[i]);
    }
    int64_t run = along ? own[0].extent : sum.extent;
    out->last = size * ((run < wide ? run : wide) - 1);
    out->each = size * (along ? sum.step : own[0].step);
    out->turn = along ? out->each : LINE_BYTES - (wide - 1) * out->each;
    return calls * 2 >= groups && calls <= AHEAD_MOST_CALLS * groups &&
           !lines_meet(out, sum.extent, wide);
}

/* ---- where the next block is ---- */

static const char *address_text(Emitter *e, const Expr *load, const Affine *at, int64_t last)
{
    return str_format(e->w.arena, "(uintptr_t)%s + (uintptr_t)(%lld * (%s) + %lld)",
                      e->w.buf[load->buf], (long long)dtype_bytes(load->dtype),
                      offset_text(&e->w, load->buf, at), (long long)last);
}

static const Affine *subst_all(Emitter *e, uint32_t rank, const Affine *at, VarRef v, Affine by)
{
    Affine *out = ARENA_ARRAY(e->w.arena, (size_t)rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(e->w.arena, at[d], v, by);
    }
    return out;
}

/* In the next iteration of the innermost loop that moves it; where that ends, of the one around. */
static const char *next_text(Emitter *e, const Place *pack, int64_t last)
{
    const Expr *load = pack->s->value;
    uint32_t rank = e->w.k->bufs.at[load->buf].rank, n = 0;
    const Affine *at = access_first(e, pack->s, load->buf, load->at);
    const Stmt *loop[2];
    for (uint32_t i = pack->n; i-- > 0;) {
        at = subst_all(e, rank, at, pack->loop[i]->var, pack->loop[i]->range.start);
    }
    for (uint32_t i = e->loops.n; i-- > 0 && n < 2;) {
        if (access_uses(e->w.k, load->buf, at, e->loops.at[i]->var)) {
            loop[n++] = e->loops.at[i];
        }
    }
    if (n == 0) {
        return NULL;
    }
    const Affine *next[2];
    Arena *a = e->w.arena;
    for (uint32_t i = 0; i < n; i++) {
        Affine v = affine_var(a, loop[i]->var);
        next[i] = subst_all(
            e, rank, i == 0 ? at : subst_all(e, rank, at, loop[0]->var, loop[0]->range.start),
            loop[i]->var, affine_add(a, affine_const(loop[i]->step), 1, v));
    }
    if (n == 1) {
        return address_text(e, load, next[0], last);
    }
    int64_t reach = loop[0]->part == FOR_FULL ? 2 * loop[0]->step - 1 : loop[0]->step;
    return str_format(a, "%s + %lld < %s ? %s : %s", e->w.var[loop[0]->var], (long long)reach,
                      range_hi(&e->w, loop[0]->range), address_text(e, load, next[0], last),
                      address_text(e, load, next[1], last));
}

void ahead_begin(Emitter *e, Stmt *const *body, uint32_t n)
{
    const Kernel *k = e->w.k;
    BufRef panels = body[0]->buf;
    const Buffer *b = &k->bufs.at[panels];
    Place *pack = ARENA_NEW(e->w.arena, Place), *use = ARENA_NEW(e->w.arena, Place);
    if (b->panels == 0 || dtype_is_complex(b->dtype) ||
        !place_find(k, body + 1, n - 1, panels, fills, pack) ||
        !place_find(k, body + 1, n - 1, panels, multiplies, use)) {
        return;
    }
    const Expr *load = pack->s->value;
    Space from = k->bufs.at[load->buf].space;
    int64_t calls = 1;
    for (uint32_t i = 0; i < use->n; i++) {
        calls = sat_mul(calls, loop_trips(use->loop[i]));
    }
    Ahead x = {.panels = panels};
    if ((from != SPACE_ARGUMENT && from != SPACE_WORKSPACE) || load->dtype != b->dtype ||
        operand_bytes(k, load) < AHEAD_BYTES || !walk_of(k, pack, calls, &x)) {
        return;
    }
    const char *next = next_text(e, pack, x.last);
    if (next == NULL) {
        return;
    }
    if (helper_new(e->w.help, "tdsl_ahead")) {
        helper_type_put(e->w.help, ahead_type);
        helper_put(e->w.help, ahead_text);
    }
    x.name = names_take(&e->w.names, "ahead");
    line_printf(
        &e->w,
        "tdsl_ahead %s = {.at = %s, .step = {%lld, %lld, %lld}, .count = {%lld, %lld, %lld}};",
        x.name, next, (long long)x.step[0], (long long)x.step[1], (long long)x.step[2],
        (long long)x.count[0], (long long)x.count[1], (long long)x.count[2]);
    vec_push(e->w.arena, &e->aheads, x);
}

const Ahead *ahead_of(const Emitter *e, const Expr *a, const Expr *b)
{
    for (uint32_t i = e->aheads.n; i-- > 0;) {
        BufRef panels = e->aheads.at[i].panels;
        if (a->buf == panels || b->buf == panels) {
            return &e->aheads.at[i];
        }
    }
    return NULL;
}
