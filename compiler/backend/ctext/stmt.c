/* SPDX-License-Identifier: Apache-2.0 */
/* Loops, and one assignment of a tile statement whose indices are variables. */
#include <string.h>

#include "backend/ctext/ctext.h"

static const char *step_text(const CWriter *e, const char *var, int64_t step)
{
    return step == 1 ? str_format(e->arena, "++%s", var)
                     : str_format(e->arena, "%s += %lld", var, (long long)step);
}

void loop_begin(CWriter *e, VarRef var, Range r, int64_t step, ForPart part)
{
    const char *v = e->var[var];
    const char *lo = range_lo(e, r);
    const char *hi = range_hi(e, r);
    switch (part) {
    case FOR_ALL:
        line_printf(e, "for (int64_t %s = %s; %s < %s; %s) {", v, lo, v, hi,
                    step_text(e, v, step));
        break;
    case FOR_FULL:
        line_printf(e, "for (int64_t %s = %s; %s + %lld <= %s; %s) {", v, lo, v,
                    (long long)step, hi, step_text(e, v, step));
        break;
    case FOR_REST: { /* at most once: where no full tile fits any more */
        bool zero = strcmp(lo, "0") == 0;
        const char *count = r.clipped ? count_named(e, r) : NULL;
        if (count != NULL && !zero) {
            line_printf(e, "for (int64_t %s = %s + %s / %lld * %lld; %s < %s; %s) {", v, lo,
                        count, (long long)step, (long long)step, v, hi, step_text(e, v, step));
            break;
        }
        const char *first =
            zero ? str_format(e->arena, "%s / %lld", hi, (long long)step)
                 : str_format(e->arena, "%s + (%s - %s) / %lld", lo, hi,
                              affine_text(e, r.start, BIND_ATOM), (long long)step);
        line_printf(e, "for (int64_t %s = %s * %lld; %s < %s; %s) {", v, first, (long long)step,
                    v, hi, step_text(e, v, step));
        break;
    }
    }
    scope_begin(e);
}

void loops_begin(CWriter *e, const TileIndex *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        loop_begin(e, index[i].var, index[i].range, 1, FOR_ALL);
    }
}

void window_begin(CWriter *e, const Stmt *s)
{
    const Window *w = s->window;
    const char *v = e->var[s->var], *hi = range_hi(e, s->range), *lo = range_lo(e, s->range);
    if (w->has_lo) {
        const char *x = affine_text(e, w->lo, BIND_ATOM);
        const char *from = affine_text(e, s->range.start, BIND_ATOM);
        const char *after =
            affine_text(e, affine_add(e->arena, w->lo, -1, s->range.start), BIND_ATOM);
        bool zero = strcmp(from, "0") == 0;
        const char *skip = s->step == 1 ? after
                                        : str_format(e->arena, "%s / %lld * %lld", after,
                                                     (long long)s->step, (long long)s->step);
        lo = zero ? str_format(e->arena, "%s > 0 ? %s : 0", x, skip)
                  : str_format(e->arena, "%s > %s ? %s + %s : %s", x, from, from, skip, from);
    }
    if (s->part == FOR_FULL) { /* whole steps */
        hi = str_format(e->arena, "%s - %lld", hi, (long long)(s->step - 1));
    }
    if (w->has_hi) {
        hi = str_format(e->arena, "%s(%s, %s)", help_fixed(e->help, "tdsl_min"), hi,
                        affine_text(e, w->hi, BIND_SUM));
    }
    line_printf(e, "for (int64_t %s = %s; %s < %s; %s) {", v, lo, v, hi,
                step_text(e, v, s->step));
    scope_begin(e);
}

void assign_put(CWriter *e, const Stmt *s)
{
    const Buffer *b = &e->k->bufs.at[s->dst];
    const char *dst = element_text(e, s->dst, s->at);
    CText value = expr_text(e, s->value);
    if (b->cascade && s->fold == OP_SUM) {
        line_printf(e, "%s(%s, %s);", help_sum_add(e->help, b), e->buf[s->dst], value.at);
        return;
    }
    bool plain = b->dtype == DTYPE_F32 || b->dtype == DTYPE_F64;
    if (s->fold == OP_COPY) {
        line_printf(e, "%s = %s;", dst,
                    b->space == SPACE_ACC ? value.at : stored_text(e, b->dtype, value));
    } else if (plain && (s->fold == OP_SUM || s->fold == OP_PROD)) {
        line_printf(e, "%s %s= %s;", dst, s->fold == OP_SUM ? "+" : "*", value.at);
    } else {
        const Expr load = {.kind = EXPR_LOAD, .dtype = b->dtype, .buf = s->dst, .at = s->at};
        CText a = expr_text(e, &load);
        CText folded = fold_text(e, s->fold, b->dtype, a, value);
        line_printf(e, "%s = %s;", dst,
                    b->space == SPACE_ACC ? folded.at : stored_text(e, b->dtype, folded));
    }
}
