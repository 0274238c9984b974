/* SPDX-License-Identifier: Apache-2.0 */
/* From a statement of a LEGAL kernel to the instruction it is. The forms are few (instr_make.c writes them); what matches none is
 * refused with a phrase, since a LEGAL kernel may come from a dump that somebody wrote.
 *
 * The lowering could hand instructions over without statements between; but then a dump could not be edited and read back, nor a pass be
 * checked by interpreting the kernel before and after it. */
#include "backend/nki/nki.h"
#include "loop/walk.h"

#include <math.h>
#include <string.h>

typedef struct Decoder {
    const Kernel *k;
    const Stmt *s;
    const int64_t *env;
    Instr *instr;
    const char *why;
} Decoder;

static bool no(Decoder *d, const char *why)
{
    d->why = why;
    return false;
}

/* Count of values of a local index, or 0 when `v` is none of the statement. */
static int64_t span_of(const Decoder *d, VarRef v)
{
    for (uint32_t i = 0; i < d->s->n_index; i++) {
        const Range *r = &d->s->index[i].range;
        if (d->s->index[i].var == v && r->start.n == 0 && r->start.base == 0) {
            return r->span > 0 && !r->clipped ? r->span : r->limit.n;
        }
    }
    return 0;
}

/* What does not move with the statement's own indices. */
static Affine loop_part(const Decoder *d, Affine x)
{
    uint32_t own = 0, n = 0;
    for (uint32_t i = 0; i < x.n; i++) {
        own += span_of(d, x.term[i].var) > 0;
    }
    if (own == 0 || own == x.n) {
        x.n -= own;
        return x;
    }
    AffineTerm *term = ARENA_ARRAY(d->k->arena, x.n - own, AffineTerm);
    for (uint32_t i = 0; i < x.n; i++) {
        if (span_of(d, x.term[i].var) == 0) {
            term[n++] = x.term[i];
        }
    }
    return (Affine){.base = x.base, .n = n, .term = term};
}

static int64_t value_at(const Decoder *d, Affine x)
{
    return affine_at(x, d->env);
}

/* ---- other iterations ---- */

#define OPERANDS 6

static Operand *operand_of(Instr *i, uint32_t number)
{
    Operand *const all[OPERANDS] = {&i->dst, &i->a, &i->b, &i->s0.tile, &i->s1.tile, &i->sum};
    return all[number];
}

bool instr_moves_partitions(const Instr *i)
{
    return i->dst.at.p.n > 0 || i->a.at.p.n > 0 || i->b.at.p.n > 0 || i->s0.tile.at.p.n > 0 ||
           i->s1.tile.at.p.n > 0 || i->sum.at.p.n > 0;
}

static void add_move(InstrMove *out, uint32_t *n, int64_t *to, Affine by)
{
    if (by.n > 0) {
        out[(*n)++] = (InstrMove){to, by};
    }
}

uint32_t instr_moves(Instr *i, InstrMove *out)
{
    uint32_t n = 0;
    for (uint32_t o = 0; o < OPERANDS; o++) {
        Operand *x = operand_of(i, o);
        add_move(out, &n, &x->f, x->at.f);
        add_move(out, &n, &x->offset, x->at.offset);
        for (uint32_t d = 0; d < x->n && !x->pattern; d++) {
            add_move(out, &n, &x->start[d], x->at.start[d]);
        }
    }
    add_move(out, &n, &i->base, i->base_at);
    return n;
}

/* At most one local index: its variable (or UINT32_MAX) and coefficient. */
static bool one_index(const Decoder *d, Affine x, VarRef *v, int64_t *coef)
{
    *v = UINT32_MAX;
    *coef = 1;
    for (uint32_t i = 0; i < x.n; i++) {
        if (span_of(d, x.term[i].var) > 0) {
            if (*v != UINT32_MAX) {
                return false;
            }
            *v = x.term[i].var;
            *coef = x.term[i].coef;
        }
    }
    return *coef >= 1;
}

/* Where a tile is used. */
static void put_starts(const Decoder *d, const Affine *at, Operand *out)
{
    out->at.p = loop_part(d, at[0]);
    out->at.f = loop_part(d, at[1]);
    out->p = value_at(d, out->at.p);
    out->f = value_at(d, out->at.f);
}

/* The statement's indices as an operand has them: one along partitions, or none, and those of the free axis in their order. */
typedef struct Indices {
    VarRef p;
    uint32_t n,
        kept; /* kept: dimensions of the others are apart from those of the first ones, unless all are kept */
    VarRef f[NKI_DIMS];
} Indices;

static bool has_index(const Indices *x, VarRef v)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->f[i] == v) {
            return true;
        }
    }
    return false;
}

/* A dimension more, which is faster than those before it; one with those from `from` on, where it runs on. */
static bool add_free(Operand *o, uint32_t from, int64_t step, int64_t n)
{
    FreeDim *last = o->n_free > from ? &o->free[o->n_free - 1] : NULL;
    o->nf *= n;
    if (n == 1) {
        return true;
    }
    if (last != NULL && last->step == step * n) {
        *last = (FreeDim){step, last->n * n};
        return true;
    }
    if (o->n_free == NKI_FREE_DIMS) {
        return false;
    }
    o->free[o->n_free++] = (FreeDim){step, n};
    return true;
}

/* A tile, walked by those of the indices that move in it; the indices of `walk` that do not move in it read the same elements again,
 * unless none does: *column. */
static bool chip_operand(Decoder *d, BufRef buf, const Affine *at, const Indices *walk,
                         Operand *out, VarRef *pv, bool *column)
{
    int64_t coef = 1;
    uint32_t own = 0, found = 0;
    *out = (Operand){.buf = buf, .on_chip = true, .nf = 1};
    if (!nki_on_chip(d->k, buf) || d->k->bufs.at[buf].rank != 2) {
        return no(d, "an operand of an instruction is no tile [partitions, elements]");
    }
    if (!one_index(d, at[0], pv, &coef) || coef != 1) {
        return no(d, "a tile has more than one index on its partitions");
    }
    put_starts(d, at, out);
    out->np = *pv == UINT32_MAX ? 1 : span_of(d, *pv);
    for (uint32_t i = 0; i < at[1].n; i++) {
        own += span_of(d, at[1].term[i].var) > 0;
    }
    for (uint32_t i = 0; i < walk->n; i++) {
        found += affine_uses(at[1], walk->f[i]);
    }
    *column = found == 0 && walk->n > 0;
    if (found < own) {
        return no(d, "an operand moves with an index that is not walked there");
    }
    uint32_t from = 0;
    for (uint32_t i = 0; i < walk->n && !*column; i++) {
        int64_t step = affine_coef(at[1], walk->f[i]);
        from = i == walk->kept ? out->n_free : from;
        if (step < 0 || !add_free(out, from, step, span_of(d, walk->f[i]))) {
            return no(d, "an operand of more free dimensions than an instruction walks");
        }
    }
    return true;
}

/* What a statement sets: its indices are those that move in it. */
static bool chip_result(Decoder *d, BufRef buf, const Affine *at, Indices *x, Operand *out)
{
    bool column;
    *x = (Indices){0};
    for (uint32_t i = 0; i < d->s->n_index && nki_on_chip(d->k, buf) && i < NKI_DIMS; i++) {
        if (affine_uses(at[1], d->s->index[i].var)) {
            x->f[x->n++] = d->s->index[i].var;
        }
    }
    return chip_operand(d, buf, at, x, out, &x->p, &column);
}

/* ---- copies between HBM and chip ---- */

typedef struct CopySide {
    uint32_t n;
    VarRef var[NKI_DIMS];
} CopySide;

/* The chip side: its partitions row-major in the statement's indices, which come first. `order` lists all of them. */
static bool dma_chip(Decoder *d, BufRef buf, const Affine *at, Operand *out, CopySide *order)
{
    *out = (Operand){.buf = buf, .on_chip = true, .np = 1, .nf = 1};
    put_starts(d, at, out);
    for (uint32_t i = d->s->n_index; i-- > 0;) {
        int64_t coef = affine_coef(at[0], d->s->index[i].var);
        if (coef != 0 && coef != out->np) {
            return no(d, "a copy does not fill its tile row by row");
        }
        out->np *= coef != 0 ? span_of(d, d->s->index[i].var) : 1;
    }
    for (uint32_t i = 0; i < d->s->n_index; i++) {
        VarRef v = d->s->index[i].var;
        int64_t coef = affine_coef(at[1], v);
        bool both = coef != 0 && affine_uses(at[0], v);
        if (coef < 0 || both || (coef > 0 && !add_free(out, 0, coef, span_of(d, v)))) {
            return no(d, "a copy does not fill its tile row by row");
        }
    }
    for (uint32_t i = 0; i < d->s->n_index && i < NKI_DIMS; i++) {
        order->var[order->n++] = d->s->index[i].var;
    }
    return true;
}

static bool dma_slices(const Decoder *d, BufRef buf, const Affine *at, const CopySide *order,
                       Operand *out)
{
    uint32_t next = 0;
    for (uint32_t dim = 0; dim < d->k->bufs.at[buf].rank; dim++) {
        VarRef v;
        int64_t coef;
        if (!one_index(d, at[dim], &v, &coef)) {
            return false;
        }
        out->at.start[dim] = loop_part(d, at[dim]);
        out->start[dim] = value_at(d, out->at.start[dim]);
        out->stride[dim] = coef;
        out->count[dim] = v == UINT32_MAX ? 0 : span_of(d, v); /* 0: one position */
        if (v != UINT32_MAX) {
            if (next >= order->n || order->var[next] != v) {
                return false;
            }
            next++;
        }
    }
    out->n = d->k->bufs.at[buf].rank;
    return next == order->n;
}

static bool dma_pattern(Decoder *d, BufRef buf, const Affine *at, const CopySide *order,
                        Operand *out)
{
    const Buffer *b = &d->k->bufs.at[buf];
    out->pattern = true;
    out->n = order->n;
    memset(&d->instr->dims, 0, sizeof d->instr->dims);
    int64_t flat = 1;
    for (uint32_t dim = b->rank; dim-- > 0;) {
        out->at.offset = affine_add(d->k->arena, out->at.offset, flat, loop_part(d, at[dim]));
        for (uint32_t i = 0; i < order->n; i++) {
            for (uint32_t t = 0; t < at[dim].n; t++) {
                if (at[dim].term[t].var == order->var[i]) {
                    out->stride[i] += flat * at[dim].term[t].coef;
                }
            }
        }
        flat *= b->extent[dim].n;
    }
    for (uint32_t i = 0; i < order->n; i++) {
        out->count[i] = span_of(d, order->var[i]);
    }
    out->offset = value_at(d, out->at.offset);
    return true;
}

static bool dma_hbm(Decoder *d, BufRef buf, const Affine *at, const CopySide *order,
                    Operand *out)
{
    *out = (Operand){.buf = buf,
                     .start = d->instr->dims.start,
                     .count = d->instr->dims.count,
                     .stride = d->instr->dims.stride,
                     .at.start = d->instr->dims.at};
    if (dma_slices(d, buf, at, order, out)) {
        return true;
    }
    return dma_pattern(d, buf, at, order, out);
}

static bool decode_dma(Decoder *d, const Expr *load, Instr *out)
{
    bool store = !nki_on_chip(d->k, d->s->dst);
    BufRef chip = store ? load->buf : d->s->dst, hbm = store ? d->s->dst : load->buf;
    CopySide order = {0};
    if (d->k->bufs.at[hbm].rank > NKI_DIMS || d->s->n_index > NKI_DIMS) {
        return no(d, "a copy of too many dimensions");
    }
    if (nki_on_chip(d->k, hbm) || !nki_on_chip(d->k, chip) || d->k->bufs.at[chip].rank != 2 ||
        d->k->bufs.at[chip].space != SPACE_TILE) {
        return no(d, "a copy that is not between HBM and SBUF");
    }
    out->kind = INSTR_DMA;
    return dma_chip(d, chip, store ? load->at : d->s->at, store ? &out->a : &out->dst,
                    &order) &&
           dma_hbm(d, hbm, store ? d->s->at : load->at, &order, store ? &out->dst : &out->a);
}

/* Rows of an argument: those of `a` begin at 0, and are told apart by column `b`. */
static bool decode_gather(Decoder *d, const Expr *e, Instr *out)
{
    CopySide order = {0};
    VarRef p;
    bool column;
    const Expr *at = nki_bare(e->arg[0]);
    const Buffer *b = &d->k->bufs.at[e->buf];
    if (b->rank > NKI_DIMS || d->s->n_index > NKI_DIMS || d->s->n_index == 0 ||
        at->kind != EXPR_LOAD || b->param < 0 || !nki_on_chip(d->k, d->s->dst) ||
        d->k->bufs.at[d->s->dst].space != SPACE_TILE ||
        d->k->bufs.at[d->s->dst].dtype != b->dtype) {
        return no(d, "a gather that is not of rows of an argument, into SBUF");
    }
    Affine *row = ARENA_ARRAY(d->k->arena, b->rank, Affine);
    for (uint32_t i = 1; i < b->rank; i++) {
        if (e->arg[i]->kind != EXPR_INDEX) {
            return no(d, "a gather at values along more than the first dimension");
        }
        row[i] = e->arg[i]->at[0];
    }
    const Indices none = {0};
    out->kind = INSTR_DMA;
    out->gathers = true;
    out->a = (Operand){.buf = e->buf,
                       .start = out->dims.start,
                       .count = out->dims.count,
                       .stride = out->dims.stride,
                       .at.start = out->dims.at};
    return (dma_chip(d, d->s->dst, d->s->at, &out->dst, &order) &&
            chip_operand(d, at->buf, at->at, &none, &out->b, &p, &column) &&
            p == order.var[0] && out->b.np == out->dst.np &&
            dma_pattern(d, e->buf, row, &order, &out->a)) ||
           no(d, "a gather of more than a row for each partition");
}

/* ---- on chip ---- */

/* A load as a tile of the statement's shape, or as a column. */
static bool is_load(const Expr *e)
{
    return nki_bare(e)->kind == EXPR_LOAD;
}

static bool tile_load(Decoder *d, const Expr *e, const Indices *x, Operand *out, bool *column)
{
    VarRef p;
    e = nki_bare(e);
    if (e->kind != EXPR_LOAD || !chip_operand(d, e->buf, e->at, x, out, &p, column)) {
        return no(d, "an operand that is no tile");
    }
    return p == x->p || no(d, "an operand has another index on its partitions");
}

static bool number_value(const Expr *e, double *out)
{
    e = nki_bare(e);
    if (e->kind != EXPR_CONST) {
        return false;
    }
    bool whole = dtype_is_exact(e->value.dtype);
    *out = whole ? (double)e->value.i : e->value.re;
    return true;
}

/* A number or column: the operand of a scalar operation. */
static bool small_operand(Decoder *d, const Expr *e, const Indices *x, ScalarOperand *out)
{
    bool column = false;
    *out = (ScalarOperand){.given = true};
    if (number_value(e, &out->number)) {
        return true;
    }
    if (!is_load(e) || !tile_load(d, e, x, &out->tile, &column) || !column) {
        return false;
    }
    out->is_tile = true;
    return true;
}

static bool full_operand(Decoder *d, const Expr *e, const Indices *x, Operand *out)
{
    bool column = false;
    return is_load(e) && tile_load(d, e, x, out, &column) && !column;
}

/* The same, or a column whose elements are read again for each element of the result. */
static bool repeated_operand(Decoder *d, const Expr *e, const Indices *x, int64_t times,
                             Operand *out)
{
    bool column = false, ok = is_load(e) && tile_load(d, e, x, out, &column);
    return ok && (!column || add_free(out, 0, 0, times));
}

/* tile op small, or small op tile. */
static bool scalar_form(Decoder *d, const Expr *e, const Indices *x, Operand *tile,
                        ScalarOperand *s)
{
    e = nki_bare(e);
    if (e->kind != EXPR_OP || e->n_args != 2) {
        return false;
    }
    bool right = full_operand(d, e->arg[0], x, tile) && small_operand(d, e->arg[1], x, s);
    bool left =
        !right && full_operand(d, e->arg[1], x, tile) && small_operand(d, e->arg[0], x, s);
    s->op = e->op;
    s->reverse = left;
    return right || left;
}

static bool decode_binary(Decoder *d, const Expr *e, const Indices *x, Instr *out)
{
    out->op = e->op;
    if (full_operand(d, e->arg[0], x, &out->a) && full_operand(d, e->arg[1], x, &out->b)) {
        out->kind = INSTR_TENSOR;
        return true;
    }
    if (scalar_form(d, e, x, &out->a, &out->s0)) {
        out->kind = INSTR_SCALAR;
        return true;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *inner = e->arg[i], *other = e->arg[1 - i];
        if (!scalar_form(d, inner, x, &out->a, &out->s0)) {
            continue;
        }
        if (small_operand(d, other, x, &out->s1)) {
            out->kind = INSTR_SCALAR;
            out->s1.op = e->op;
            out->s1.reverse = i == 1;
            return true;
        }
        if (full_operand(d, other, x, &out->b)) {
            out->kind = INSTR_BOTH;
            out->reverse = i == 1;
            return true;
        }
    }
    return no(d, "an expression that no one instruction computes");
}

/* data * scale + bias */
static bool decode_activation(Decoder *d, const Expr *arg, const Indices *x, Instr *out)
{
    out->kind = INSTR_ACTIVATION;
    out->scale = 1.0;
    if (full_operand(d, arg, x, &out->a)) {
        return true;
    }
    ScalarOperand s;
    const Expr *sum = nki_bare(arg);
    for (uint32_t i = 0; i < 2 && sum->kind == EXPR_OP && sum->op == OP_ADD; i++) {
        if (small_operand(d, sum->arg[1 - i], x, &out->s1) &&
            scalar_form(d, sum->arg[i], x, &out->a, &out->s0) && out->s0.op == OP_MUL) {
            out->s1.op = OP_ADD;
            return true;
        }
        out->s0 = out->s1 = (ScalarOperand){0};
    }
    if (!scalar_form(d, arg, x, &out->a, &s)) {
        return no(d, "a function of an expression that the engine cannot form");
    }
    if (s.op == OP_MUL) {
        out->s0 = s; /* scale */
        return true;
    }
    out->s1 = s; /* bias */
    if (s.op == OP_SUB && s.reverse) {
        out->scale = -1.0;
    } else if (s.op == OP_SUB && !s.is_tile) {
        out->s1.number = -s.number;
    } else if (s.op != OP_ADD) {
        return no(d, "a function of an expression that the engine cannot form");
    }
    return true;
}

/* base + down * p + a step with each index of the free axis; the base moves with loops. */
static bool decode_position(Decoder *d, const Expr *e, const Indices *x, Instr *out)
{
    out->base_at = loop_part(d, e->at[0]);
    for (uint32_t i = 0; i < e->at[0].n; i++) {
        VarRef v = e->at[0].term[i].var;
        if (v != x->p && !has_index(x, v) && !d->k->vars.at[v].is_loop) {
            return no(d, "a position that moves with another index than the tile's");
        }
    }
    out->down = x->p == UINT32_MAX ? 0 : affine_coef(e->at[0], x->p);
    Operand walk = {.nf = 1};
    for (uint32_t i = 0; i < x->n; i++) {
        if (!add_free(&walk, 0, affine_coef(e->at[0], x->f[i]), span_of(d, x->f[i]))) {
            return no(d, "positions that move with too many indices");
        }
    }
    out->n_along = walk.n_free;
    memcpy(out->along, walk.free, sizeof walk.free);
    out->base = value_at(d, out->base_at);
    return true;
}

/* Does the select compare a position with 0? */
static bool is_affine_select(const Expr *e)
{
    const Expr *c = nki_bare(e->arg[0]);
    double zero = 1;
    return c->kind == EXPR_OP && c->n_args == 2 && c->arg[0]->kind == EXPR_INDEX &&
           number_value(c->arg[1], &zero) && !(zero < 0) && !(zero > 0);
}

static bool decode_op(Decoder *d, const Expr *e, const Indices *x, Instr *out)
{
    double one = 0;
    if (e->op == OP_SELECT && is_affine_select(e)) {
        const Expr *c = nki_bare(e->arg[0]);
        out->kind = INSTR_AFFINE;
        out->op = c->op;
        return decode_position(d, c->arg[0], x, out) &&
               repeated_operand(d, e->arg[1], x, out->dst.nf, &out->a) &&
               (number_value(e->arg[2], &out->value) ||
                no(d, "a select by position of something else than a tile and a number"));
    }
    if (e->op == OP_SELECT) {
        Operand same;
        out->kind = INSTR_PREDICATED;
        return full_operand(d, e->arg[0], x, &out->a) &&
               full_operand(d, e->arg[1], x, &out->b) && full_operand(d, e->arg[2], x, &same) &&
               same.buf == d->s->dst;
    }
    if (e->n_args == 1) {
        out->op = e->op;
        return decode_activation(d, e->arg[0], x, out);
    }
    if (e->op == OP_DIV && number_value(e->arg[0], &one) && !(one < 1.0) && !(one > 1.0)) {
        out->recip = true;
        return decode_activation(d, e->arg[1], x, out);
    }
    return decode_binary(d, e, x, out);
}

static bool legal_start(int64_t p, int64_t np)
{
    return np > 64 ? p == 0 : np > 32 ? p % 64 == 0 : p % 32 == 0;
}

static bool decode_move(Decoder *d, const Expr *load, const Indices *x, Instr *out)
{
    VarRef p;
    bool column;
    if (chip_operand(d, load->buf, load->at, x, &out->a, &p, &column) && p == x->p) {
        bool same = affine_eq(out->a.at.p, out->dst.at.p) && legal_start(out->a.p, out->a.np);
        out->kind = same ? INSTR_COPY : INSTR_DMA;
        if (column) { /* the same element again and again */
            (void)add_free(&out->a, 0, 0, out->dst.nf);
        }
        return same || !column || no(d, "a copy between partitions that repeats elements");
    }
    Indices rows = {.n = x->p != UINT32_MAX, .f = {x->p}};
    out->kind = INSTR_TRANSPOSE;
    return (chip_operand(d, load->buf, load->at, &rows, &out->a, &p, &column) &&
            p == (x->n > 0 ? x->f[0] : UINT32_MAX) && x->n <= 1 && !column) ||
           no(d, "a copy on chip with indices it does not set");
}

static bool decode_matmul(Decoder *d, const Expr *e, const Indices *x, Instr *out)
{
    VarRef k, k2;
    bool no_rows, no_columns;
    const Expr *a = nki_bare(e->arg[0]), *b = nki_bare(e->arg[1]);
    Indices rows = {.n = x->p != UINT32_MAX, .f = {x->p}};
    out->kind = INSTR_MATMUL;
    if (!chip_operand(d, a->buf, a->at, &rows, &out->a, &k, &no_rows) ||
        !chip_operand(d, b->buf, b->at, x, &out->b, &k2, &no_columns)) {
        return false;
    }
    return (k == k2 && !no_rows && !no_columns && k != x->p && !has_index(x, k)) ||
           no(d, "a product that is no matmul");
}

static bool decode_fold(Decoder *d, const Indices *x, Instr *out)
{
    const Expr *e = nki_bare(d->s->value);
    out->op = d->s->fold;
    if (d->s->fold == OP_SUM && e->kind == EXPR_OP && e->op == OP_MUL && is_load(e->arg[0]) &&
        is_load(e->arg[1])) {
        return decode_matmul(d, e, x, out);
    }
    VarRef p;
    bool column = false;
    out->kind = INSTR_REDUCE;
    Indices all = *x; /* what is folded is walked last */
    all.kept = x->n;
    for (uint32_t i = 0; i < d->s->n_index && all.n < NKI_DIMS; i++) {
        VarRef v = d->s->index[i].var;
        if (v != x->p && !has_index(x, v)) {
            all.f[all.n++] = v;
        }
    }
    if (e->kind != EXPR_LOAD || !chip_operand(d, e->buf, e->at, &all, &out->a, &p, &column)) {
        return no(d, "a fold of something that is no tile");
    }
    int64_t kept = 1;
    while (out->fold_from < out->a.n_free && kept < out->dst.nf) {
        kept *= out->a.free[out->fold_from++].n;
    }
    bool folds = kept == out->dst.nf && (kept == 1 || out->fold_from < out->a.n_free);
    return (p == x->p && !column && folds && d->s->begins && d->s->n_first == 0) ||
           no(d, "a reduction that is not of whole rows into a fresh column");
}

static bool decode_scan(Decoder *d, const Indices *x, Instr *out)
{
    const Expr *e = nki_bare(d->s->value), *a = e, *b = e;
    VarRef p, p2;
    bool column, column2;
    out->kind = INSTR_SCAN;
    out->op = d->s->fold;
    if (d->s->fold == OP_SUM && e->kind == EXPR_OP && e->op == OP_MUL) {
        a = nki_bare(e->arg[0]);
        b = nki_bare(e->arg[1]);
    }
    bool same = (d->s->fold == OP_SUM) == (a != b) && d->s->scan == 2 && !d->s->exclusive;
    if (!same || a->kind != EXPR_LOAD || b->kind != EXPR_LOAD ||
        !chip_operand(d, a->buf, a->at, x, &out->a, &p, &column) ||
        !chip_operand(d, b->buf, b->at, x, &out->b, &p2, &column2)) {
        return no(d, "a scan of something that is no tile");
    }
    return (p == x->p && p2 == x->p && x->n == 1 && !column && !column2) ||
           no(d, "a scan that is not along whole rows");
}

static bool same_operand(const Operand *x, const Operand *y)
{
    return x->buf == y->buf && affine_eq(x->at.p, y->at.p) && affine_eq(x->at.f, y->at.f) &&
           operand_walks_alike(x, y);
}

bool instr_squares(const Instr *i)
{
    return i->kind == INSTR_TENSOR && i->op == OP_MUL && same_operand(&i->a, &i->b);
}

#define RECIPROCAL_MOST 16 /* columns */

bool nki_vector_reciprocal(const Instr *i)
{
    bool plain = !i->s0.given && !i->s1.given && !(i->scale < 1.0) && !i->sums;
    return i->kind == INSTR_ACTIVATION && i->recip && plain && i->dst.nf <= RECIPROCAL_MOST;
}

bool instr_may_sum(const Instr *i)
{
    return (i->kind == INSTR_ACTIVATION && !nki_vector_reciprocal(i)) || instr_squares(i);
}

/* The rows of a function, or of a square, are added up into a column of f32 beside them. */
static bool decode_sums(Decoder *d, const Indices *x, Instr *out)
{
    const Stmt *s = d->s;
    const Buffer *b = &d->k->bufs.at[s->sums - 1];
    const Indices none = {0};
    VarRef p = UINT32_MAX;
    bool column = false, may = instr_may_sum(out) && !(s->begins && s->n_first > 0);
    out->kind = INSTR_ACTIVATION;
    out->sums = true;
    out->adds = !s->begins;
    return (may && b->space == SPACE_TILE && b->dtype == DTYPE_F32 &&
            chip_operand(d, s->sums - 1, s->sums_at, &none, &out->sum, &p, &column) &&
            p == x->p && affine_eq(out->sum.at.p, out->dst.at.p)) ||
           no(d, "a sum that is not of the rows of a function into a column beside them");
}

bool instr_decode(const Kernel *k, const Stmt *s, const int64_t *env, Instr *out,
                  const char **why)
{
    Decoder d = {k, s, env, out, "a statement that is no instruction"};
    *out = (Instr){.stmt = s, .scale = 1.0};
    bool ok = false;
    const Expr *e = nki_bare(s->value);
    Indices x;
    if (e->kind == EXPR_LOAD && s->fold == OP_COPY &&
        (!nki_on_chip(k, s->dst) || !nki_on_chip(k, e->buf))) {
        ok = decode_dma(&d, e, out);
    } else if (e->kind == EXPR_OP && e->op == OP_GATHER && s->fold == OP_COPY) {
        ok = decode_gather(&d, e, out);
    } else if (!chip_result(&d, s->dst, s->at, &x, &out->dst)) {
        ok = false;
    } else if (s->scan > 0) {
        ok = decode_scan(&d, &x, out);
    } else if (s->fold != OP_COPY) {
        ok = decode_fold(&d, &x, out);
    } else if (e->kind == EXPR_CONST) {
        out->kind = INSTR_MEMSET;
        ok = number_value(e, &out->value);
    } else if (e->kind == EXPR_INDEX) {
        out->kind = INSTR_IOTA;
        ok = decode_position(&d, e, &x, out);
    } else if (e->kind == EXPR_LOAD) {
        ok = decode_move(&d, e, &x, out);
    } else if (e->kind == EXPR_OP) {
        ok = decode_op(&d, e, &x, out);
    }
    ok = ok && (s->sums == 0 || decode_sums(&d, &x, out));
    *why = d.why;
    return ok;
}
