/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose operands are nearly always near 0, such as sin: a loop with their branch for the others does not become
 * vectors. So a loop is cut into strips: each is computed without branches into an array, and only where no operand was
 * far is that the result, else the strip is computed again, element by element. Results are written last, since they may
 * take the place of operands. */
#include "backend/c/emit.h"

#define STRIP 256 /* elements */

bool strips_needed(const Stmt *s)
{
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_OP && help_has_near(x->op, x->dtype)) {
            return true;
        }
    }
    return false;
}

static void elements_begin(Emitter *e, VarRef var, const char *first, const char *end)
{
    const char *v = e->w.var[var];
    line_printf(&e->w, "for (int64_t %s = %s; %s < %s; ++%s) {", v, first, v, end, v);
    scope_begin(&e->w);
}

void strips_emit(Emitter *e, const Stmt *s)
{
    CHECK(s->fold == OP_COPY && s->n_index > 0);
    uint32_t n = s->n_index - 1;
    VarRef var = s->index[n].var;
    DType t = e->w.k->bufs.at[s->dst].dtype;
    const char *v = e->w.var[var], *hi = range_hi(&e->w, s->index[n].range);
    const char *first = e->own.strip, *end = e->own.end, *near = e->own.near;
    loops_begin(&e->w, s->index, n);
    line_printf(&e->w, "for (int64_t %s = %s; %s < %s; %s += %d) {", first,
                range_lo(&e->w, s->index[n].range), first, hi, first, STRIP);
    scope_begin(&e->w);
    line_printf(&e->w, "const int64_t %s = %s - %s < %d ? %s : %s + %d;", end, hi, first, STRIP,
                hi, first, STRIP);
    line_printf(&e->w, "%s %s[%d];", c_type(t), near, STRIP);
    line_printf(&e->w, "uint%d_t %s = 0;", t == DTYPE_F64 ? 64 : 32, e->own.far);
    elements_begin(e, var, first, end);
    e->w.far = e->own.far;
    CText value = expr_text(&e->w, s->value);
    e->w.far = NULL;
    line_printf(&e->w, "%s[%s - %s] = %s;", near, v, first, stored_text(&e->w, t, value));
    scope_end(&e->w);
    scope_printf(&e->w, "if (%s == 0) {", e->own.far);
    elements_begin(e, var, first, end);
    line_printf(&e->w, "%s = %s[%s - %s];", element_text(&e->w, s->dst, s->at), near, v, first);
    scope_end(&e->w);
    scope_else(&e->w);
    elements_begin(e, var, first, end);
    assign_put(&e->w, s);
    scope_end(&e->w);
    scope_end(&e->w);
    scope_end(&e->w);
    scopes_end(&e->w, n);
}
