/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of printed instructions: slices and patterns whose bounds are literals, or sums of these times loop variables. */
#include "backend/nki/print.h"

#include <math.h>

const char *print_source(const Printer *p, const Instr *i)
{
    bool came_in = i->kind == INSTR_DMA && p->came_in[i->place];
    return came_in ? nki_param(p->k, i->a.buf) : nki_result(p->k, i->a.buf);
}

static Affine start_at(const Instr *i, Role role, uint32_t axis)
{
    const Operand *o = print_operand_of(i, role);
    return axis == AXIS_BASE     ? i->base_at
           : axis == AXIS_P      ? o->at.p
           : axis == AXIS_F      ? o->at.f
           : axis == AXIS_OFFSET ? o->at.offset
                                 : o->at.start[axis - AXIS_DIM];
}

void print_term(Printer *p, int64_t coef, const char *var, bool first, bool tensor)
{
    uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
    const char *name = tensor ? tile_name(&p->names, var, coef) : NULL;
    if (tensor && p->noting) {
        tile_names_note(&p->names, p->k->arena, var, coef);
    }
    text_put(p->out, coef < 0 ? " - " : first ? "" : " + ");
    if (name != NULL) {
        text_printf(p->out, "%s * ", name);
    } else if (size != 1) {
        text_printf(p->out, "%llu * ", (unsigned long long)size);
    }
    text_put(p->out, var);
}

/* The name of a length that is also the step of a loop along this dimension of a tensor, or null. */
static const char *length_name(const Printer *p, Role role, uint32_t axis, int64_t length)
{
    Affine start = start_at(&p->at, role, axis);
    const char *name = NULL;
    for (uint32_t d = 0; d < p->depth && start.base == 0; d++) {
        if (affine_coef(start, p->loop[d]) == length) {
            name = tile_name(&p->names, p->k->vars.at[p->loop[d]].name->text, length);
        }
    }
    return name;
}

/* A minus sign stands before literals only, so what is positive comes first. */
static void print_affine(Printer *p, Affine x, int64_t more, bool tensor)
{
    int64_t base = x.base + more;
    bool first = true;
    for (int sign = 1; sign >= -1; sign -= 2) {
        if (sign < 0 && first) {
            text_i64(p->out, base);
        }
        for (uint32_t d = 0; d < p->depth; d++) {
            int64_t coef = affine_coef(x, p->loop[d]);
            if (coef != 0 && (coef > 0) == (sign > 0)) {
                print_term(p, coef, p->k->vars.at[p->loop[d]].name->text, first, tensor);
                first = false;
            }
        }
        if (sign > 0 && !first && base != 0) {
            text_printf(p->out, base < 0 ? " - %lld" : " + %lld",
                        (long long)(base < 0 ? -base : base));
        }
    }
}

void print_position(Printer *p, Role role, uint32_t axis, int64_t more)
{
    print_affine(p, start_at(&p->at, role, axis), more, axis >= AXIS_DIM && axis != AXIS_BASE);
}

static void put_range(Printer *p, Role role, uint32_t axis, int64_t count, int64_t step)
{
    print_position(p, role, axis, 0);
    text_put(p->out, ":");
    bool tensor = axis >= AXIS_DIM && axis != AXIS_BASE && step == 1;
    const char *name = tensor ? length_name(p, role, axis, count) : NULL;
    print_position(p, role, axis, name != NULL ? 0 : (count - 1) * step + 1);
    if (name != NULL) {
        text_printf(p->out, " + %s", name);
    }
    if (step > 1 && count > 1) {
        text_printf(p->out, ":%lld", (long long)step);
    }
}

/* A slice of a tensor whose dimensions the caller has apart: a pattern over its elements. */
static void slice_to_pattern(const Kernel *k, Operand *o)
{
    const Buffer *b = &k->bufs.at[o->buf];
    Operand slice = *o;
    int64_t flat = 1;
    o->pattern = true;
    o->at.offset = affine_const(0);
    o->n = 0;
    for (uint32_t d = slice.n; d-- > 0;) {
        o->at.offset = affine_add(k->arena, o->at.offset, flat, slice.at.start[d]);
        slice.start[d] = flat; /* elements from one position to the next */
        flat *= b->extent[d].n;
    }
    for (uint32_t d = 0; d < slice.n; d++) {
        if (slice.count[d] > 0) {
            o->stride[o->n] = slice.start[d] * slice.stride[d];
            o->count[o->n++] = slice.count[d];
        }
    }
    if (o->n == 0) {
        o->stride[0] = o->count[0] = 1;
        o->n = 1;
    }
}

static void put_hbm(Printer *p, Role role)
{
    const Operand *o = print_operand_of(&p->at, role);
    if (!o->pattern && nki_is_collapsed(p->k, o->buf)) {
        slice_to_pattern(p->k, (Operand *)(uintptr_t)o);
    }
    if (o->pattern) {
        bool gathers = p->at.gathers && role == ROLE_A;
        text_put(p->out, ".ap(pattern=[");
        for (uint32_t i = 0; i < o->n; i++) {
            int64_t step =
                gathers && i == 0 ? buffer_elements(&p->k->bufs.at[o->buf], 1) : o->stride[i];
            text_printf(p->out, "%s[%lld, %lld]", i == 0 ? "" : ", ", (long long)step,
                        (long long)o->count[i]);
        }
        if (gathers) {
            text_put(p->out, o->n == 1 ? ", [1, 1]], offset=" : "], offset=");
            print_position(p, role, AXIS_OFFSET, 0);
            text_put(p->out, ", vector_offset=");
            print_operand(p, ROLE_B);
            text_put(p->out, ", indirect_dim=0)");
            return;
        }
        text_put(p->out, o->n == 1 && o->stride[0] == 0 ? ", [1, 1]], offset=" : "], offset=");
        print_position(p, role, AXIS_OFFSET, 0);
        text_put(p->out, ")");
        return;
    }
    bool any = false;
    text_put(p->out, "[");
    for (uint32_t d = 0; d < o->n; d++) {
        text_put(p->out, d == 0 ? "" : ", ");
        bool single = o->count[d] == 0 && (any || d + 1 < o->n);
        if (single) {
            print_position(p, role, AXIS_DIM + d, 0);
        } else {
            put_range(p, role, AXIS_DIM + d, o->count[d] == 0 ? 1 : o->count[d], o->stride[d]);
            any = true;
        }
    }
    text_put(p->out, o->n == 0 ? "0:1, 0:1]" : "]");
}

/* One tile of a list: its number, as a sum over the loops. */
static void put_bank(Printer *p, Affine at, int64_t bank)
{
    Affine number = affine_const(at.base / bank);
    for (uint32_t i = 0; i < at.n; i++) {
        Affine one = affine_var(p->k->arena, at.term[i].var);
        number = affine_add(p->k->arena, number, at.term[i].coef / bank, one);
    }
    text_put(p->out, "[");
    print_affine(p, number, 0, false);
    text_put(p->out, "]");
}

/* All of a tile, in each iteration: its name says so. */
static bool is_whole(const Printer *p, Role role)
{
    const Operand *o = print_operand_of(&p->at, role);
    const Buffer *b = &p->k->bufs.at[o->buf];
    return o->np == b->extent[0].n && o->nf == b->extent[1].n && operand_is_run(o);
}

/* A tile whose rows are walked otherwise than by equal steps forward. */
static void put_pattern(Printer *p, const Operand *o)
{
    int64_t row = p->k->bufs.at[o->buf].extent[1].n;
    text_printf(p->out, ".ap(pattern=[[%lld, %lld]", (long long)row, (long long)o->np);
    for (uint32_t d = 0; d < o->n_free; d++) {
        text_printf(p->out, ", [%lld, %lld]", (long long)o->free[d].step,
                    (long long)o->free[d].n);
    }
    text_put(p->out, "], offset=");
    print_affine(p, affine_add(p->k->arena, o->at.f, row, o->at.p), 0, false);
    text_put(p->out, ")");
}

void print_operand(Printer *p, Role role)
{
    const Operand *o = print_operand_of(&p->at, role);
    text_put(p->out, role == ROLE_A ? print_source(p, &p->at) : nki_result(p->k, o->buf));
    if (!o->on_chip) {
        put_hbm(p, role);
        return;
    }
    if (nki_bank(p->k, o->buf) > 0) {
        put_bank(p, o->at.f, nki_bank(p->k, o->buf));
        if (o->np < p->k->bufs.at[o->buf].extent[0].n || o->nf < p->wide[o->buf]) {
            text_printf(p->out, "[0:%lld, 0:%lld]", (long long)o->np, (long long)o->nf);
        }
        return;
    }
    if (o->n_free > 1 || (o->n_free == 1 && o->free[0].step == 0)) {
        put_pattern(p, o);
        return;
    }
    if (is_whole(p, role)) {
        return;
    }
    text_put(p->out, "[");
    put_range(p, role, AXIS_P, o->np, 1);
    text_put(p->out, ", ");
    put_range(p, role, AXIS_F, o->nf, o->n_free == 0 ? 1 : o->free[0].step);
    text_put(p->out, "]");
}

void print_number(Text *out, double v)
{
    if (isinf(v)) {
        text_put(out, v < 0 ? "-float('inf')" : "float('inf')");
    } else {
        text_f64(out, v);
    }
}

void print_scalar(Printer *p, Role role)
{
    const ScalarOperand *s = role == ROLE_S0 ? &p->at.s0 : &p->at.s1;
    if (s->is_tile) {
        print_operand(p, role);
    } else {
        print_number(p->out, s->number);
    }
}

void print_key(Printer *p, const char *name, Role role)
{
    text_printf(p->out, "%s=", name);
    print_operand(p, role);
}
