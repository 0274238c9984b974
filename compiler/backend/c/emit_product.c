/* SPDX-License-Identifier: Apache-2.0 */
/* Products (product.h). Each is a call of a function (emit_micro.c) that all statements of the file with a tile of this
 * type and shape share. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/micro.h"
#include "backend/c/product.h"
#include "backend/c/legalise.h"

static const char *first_text(Emitter *e, const Product *p, BufRef buf, const Affine *at)
{
    return str_format(e->w.arena, "&%s",
                      element_text(&e->w, buf, access_first(e, p->s, buf, at)));
}

/* The texts of a call: counts and strides. */
typedef struct Call {
    const char *a, *b, *c, *sum, *cs_a, *rs_a, *rs_b, *rs_c, *cs_c;
    const char *by; /* ", " and the factor, or nothing */
} Call;

/* Of panels in groups: pointers to words, and counts and strides of them. */
static void call_in_words(Emitter *e, const Product *p, Call *x)
{
    const Kernel *k = e->w.k;
    copy_put(e->w.help);
    const char *const pointer = "(const int32_t *)(const void *)%s";
    Range sum = p->sum->range;
    x->a = str_format(e->w.arena, pointer, x->a);
    x->b = str_format(e->w.arena, pointer, x->b);
    x->sum = range_is_exact(sum)
                 ? str_format(e->w.arena, "%lld",
                              (long long)(round_up(range_most(sum), p->group) / p->group))
                 : str_format(e->w.arena, "(%s + %lld) / %lld", x->sum, (long long)p->group - 1,
                              (long long)p->group);
    x->cs_a = str_format(e->w.arena, "%lld", (long long)k->bufs.at[p->a->buf].panels);
    x->rs_a = "1";
    x->rs_b = str_format(e->w.arena, "%lld", (long long)k->bufs.at[p->b->buf].panels);
}

/* Of a whole tile. */
static void tile_call(Emitter *e, const Product *p, TileShape *shape, const Call *x,
                      const char *how)
{
    const Ahead *ahead = prefetch_of(e, p->s);
    shape->ahead = ahead != NULL;
    const char *name = tile_use(e->tiles, *shape), *next = x->by;
    if (ahead != NULL) {
        next = str_format(e->w.arena, ", tdsl_ahead_next(&%s), %lld, %lld", ahead->name,
                          (long long)ahead->each, (long long)ahead->turn);
    }
    line_printf(&e->w, "%s->%s(%s, %s, %s, %s, %s, %s, %s, %s, %s%s);", e->own.isa, name,
                x->sum, x->a, x->cs_a, x->rs_a, x->b, x->rs_b, x->c, x->rs_c, how, next);
}

static void join_call(Emitter *e, const Product *p, const TileShape *shape, const Call *x,
                      const char *how)
{
    Tiles *t = e->tiles;
    int64_t most = shape->rows * shape->columns * dtype_bytes(p->t);
    Op fold = shape->term.fold;
    JoinKind kind = shape->by         ? JOIN_BY
                    : fold == OP_RMIN ? JOIN_MIN
                    : fold == OP_RMAX ? JOIN_MAX
                                      : JOIN_SUM;
    t->joins[kind] |= 1u << p->t;
    t->join_bytes = most > t->join_bytes ? most : t->join_bytes;
    t->join_streams |= (shape->streams ? 1u : 0u) << p->t;
    const char *name = tile_use(t, *shape);
    line_printf(
        &e->w, "tdsl_%s(%s->%s, %lld, %lld, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s%s);",
        join_name(t->arena, kind, p->t), e->own.isa, name, (long long)shape->rows,
        (long long)shape->columns, count_text(e, p->row->range),
        count_text(e, p->column->range), x->sum, x->a, x->cs_a, x->rs_a, x->b, x->rs_b, x->c,
        x->rs_c, x->cs_c, how, x->by);
}

/* Of complex numbers the real part. */
static const char *by_text(Emitter *e, const Product *p)
{
    if (p->by == NULL) {
        return "";
    }
    const Expr *by = p->by;
    if (dtype_is_complex(p->t)) {
        by = expr_const(e->w.arena,
                        number_cast(number_real(DTYPE_F64, by->value.re), dtype_part(p->t)));
    }
    return str_format(e->w.arena, ", %s", expr_text(&e->w, by).at);
}

/* Can the sum be of nothing, as the caller's sizes are? */
static bool may_be_empty(const Range *sum)
{
    return sum->limit.sym >= 0 && sum->clipped && sum->start.n == 0;
}

/* In elements, or in the parts of complex ones. */
static const char *stride_in(Emitter *e, bool parts, BufRef buf, const Affine *at, VarRef v)
{
    int64_t n = 0;
    if (stride_known(e->w.k, buf, at, v, &n)) {
        return str_format(e->w.arena, "%lld", (long long)sat_mul(n, parts ? 2 : 1));
    }
    const char *text = stride_text(&e->w, buf, at, v);
    return parts ? str_format(e->w.arena, "2 * (%s)", text) : text;
}

static const char *pointer_to_parts(Emitter *e, DType t, const char *pointer, bool written)
{
    return str_format(e->w.arena, written ? "(%s *)%s" : "(const %s *)%s",
                      c_type(dtype_part(t)), pointer);
}

static void call_in_parts(Emitter *e, const TileShape *shape, Call *x)
{
    x->c = pointer_to_parts(e, shape->t, x->c, true);
    x->a = shape->parts[0] ? pointer_to_parts(e, shape->t, x->a, false) : x->a;
    x->b = shape->parts[1] ? pointer_to_parts(e, shape->t, x->b, false) : x->b;
}

const char *goes_on_text(Emitter *e, const Stmt *s)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < s->n_first; i++) {
        uint32_t k = 0;
        while (e->w.loops.at[k]->var != s->first[i]) {
            k++;
        }
        text_printf(&t, "%s%s > %s", i > 0 ? " || " : "", e->w.var[s->first[i]],
                    range_lo(&e->w, e->w.loops.at[k]->range));
    }
    return s->n_first == 0 ? NULL : t.at;
}

/* `adds`: when it adds, `streams`: when it stores past the caches; or null. */
static const char *how_text(Emitter *e, int how, const char *adds, const char *streams)
{
    if (adds != NULL) {
        return how == 0 ? adds : str_format(e->w.arena, "(%s) | %d", adds, how);
    }
    if (streams == NULL || strcmp(streams, "1") == 0) {
        return str_format(e->w.arena, "%d", streams == NULL ? how : how | TILE_STREAMS);
    }
    return str_format(e->w.arena, "%s ? %d : %d", streams, how | TILE_STREAMS, how);
}

/* Of a sum that a window cuts: declares where it begins, by the index's own name; how many positions there are from there on. */
static const char *window_count(Emitter *e, const TileIndex *sum)
{
    CWriter *w = &e->w;
    const Window *by = sum->window;
    const char *lo = range_lo(w, sum->range), *hi = range_hi(w, sum->range),
               *v = w->var[sum->var];
    if (by->has_lo) {
        lo = str_format(w->arena, "%s(%s, %s)", help_fixed(w->help, "tdsl_max"), lo,
                        affine_text(w, by->lo, BIND_SUM));
    }
    if (by->has_hi) {
        hi = str_format(w->arena, "%s(%s, %s)", help_fixed(w->help, "tdsl_min"), hi,
                        affine_text(w, by->hi, BIND_SUM));
    }
    line_printf(w, "const int64_t %s = %s;", v, lo);
    return str_format(w->arena, "%s - %s", hi, v);
}

/* May the lines of the columns' operand be far apart? */
static bool lines_are_far(const Kernel *k, const Product *p)
{
    const Buffer *b = &k->bufs.at[p->b->buf];
    int64_t n = 0;
    return b->panels == 0 && (!stride_known(k, p->b->buf, p->b->at, p->sum->var, &n) ||
                              sat_mul(n, dtype_bytes(b->dtype)) >= FAR_BYTES);
}

void product_emit(Emitter *e, const Stmt *s)
{
    Product p;
    ProductNumbers n;
    const char *adds = goes_on_text(e, s);
    const Kernel *k = e->w.k;
    CHECK(product_of(k, s, &p) == NULL);
    CWriter *w = &e->w;
    bool complex = dtype_is_complex(p.t), whole = product_is_whole(k, &p);
    const char *cut = NULL;
    if (p.sum->window != NULL) {
        scope_printf(w, "{");
        cut = window_count(e, p.sum);
    }
    TileShape shape = {.t = p.t,
                       .rows = p.row->range.span,
                       .columns = p.column->range.span,
                       .parts = {complex && p.a->dtype == p.t, complex && p.b->dtype == p.t},
                       .by = p.by != NULL,
                       .dot = {p.group, p.group != 0 ? p.a->dtype : DTYPE_NONE,
                               p.group != 0 ? p.b->dtype : DTYPE_NONE},
                       .term = term_of(e->tiles->arena, k, &p)};
    int64_t side = 0;
    shape.side =
        p.group != 0 || (stride_known(k, p.a->buf, p.a->at, p.row->var, &side) && side == 1);
    Call x = {.a = first_text(e, &p, p.a->buf, p.a->at),
              .b = first_text(e, &p, p.b->buf, p.b->at),
              .c = first_text(e, &p, s->dst, s->at),
              .sum = cut != NULL ? cut : count_text(e, p.sum->range),
              .cs_a = stride_in(e, shape.parts[0], p.a->buf, p.a->at, p.sum->var),
              .rs_a = stride_in(e, shape.parts[0], p.a->buf, p.a->at, p.row->var),
              .rs_b = stride_in(e, shape.parts[1], p.b->buf, p.b->at, p.sum->var),
              .rs_c = stride_in(e, complex, s->dst, s->at, p.row->var),
              .cs_c = stride_in(e, complex, s->dst, s->at, p.column->var),
              .by = by_text(e, &p)};
    if (p.group != 0) {
        call_in_words(e, &p, &x);
    }
    if (complex) {
        call_in_parts(e, &shape, &x);
    }
    int how = (s->begins ? 0 : TILE_ADDS) | (p.a_conj ? TILE_CONJ_ROW : 0) |
              (p.b_conj ? TILE_CONJ_COL : 0);
    const char *streams = nontemporal_text(e, s), *does = how_text(e, how, adds, streams);
    if (streams != NULL) {
        shape.streams = true;
        stream_put(w->help);
        *(e->in_part ? &e->part_streams : &e->streams) = true;
    }
    e->tiles->adds |= adds != NULL || !s->begins;
    e->tiles->far |= lines_are_far(k, &p);
    bool empty = cut != NULL || (!s->begins && may_be_empty(&p.sum->range));
    e->uses_isa = true;
    if (empty) { /* an operand without elements has no such address */
        scope_printf(w, "if (%s > 0) {", x.sum);
    }
    if (s->specialised && product_numbers(k, &p, &n)) {
        shape.n = n;
        shape.how = streams == NULL ? how : how | TILE_STREAMS;
        line_printf(w, "%s->%s(%s, %s, %s);", e->own.isa, tile_use(e->tiles, shape), x.a, x.b,
                    x.c);
    } else if (whole) {
        tile_call(e, &p, &shape, &x, does);
    } else {
        join_call(e, &p, &shape, &x, does);
    }
    if (empty) {
        scope_end(w);
    }
    if (cut != NULL) {
        scope_end(w);
    }
}
