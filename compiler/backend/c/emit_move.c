/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements that go from block to block as they are, or are added there: the call of a function, with vectors that
 * compilers do not see in short loops over two places which might be one to them; and zeros in lines of a panel. */
#include "backend/c/emit.h"
#include "backend/c/legalise.h"
#include "op/affine.h"

/* Held, else compilers make it a string instruction, which is slow for short runs. */
static const char move_text[] =
    "\n/* to[i] = from[i], or += if it `adds`, for i below n. */\n"
    "TDSL_HELPER void tdsl_move_$N($T *TDSL_RESTRICT to, const $T *TDSL_RESTRICT from, "
    "int64_t n, int adds)\n"
    "{\n"
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "    const int64_t whole = n - n % $L;\n"
    "    for (int64_t i = 0; i < whole; i += $L) {\n"
    "        tdsl_$Nx$L x = TDSL_AT(tdsl_$Nx$L, from + i);\n"
    "        TDSL_HOLD(x);\n"
    "        if (adds) {\n"
    "            x += TDSL_AT(tdsl_$Nx$L, to + i);\n"
    "        }\n"
    "        TDSL_TO(tdsl_$Nx$L, to + i) = x;\n"
    "    }\n"
    "#else\n    const int64_t whole = 0;\n#endif\n"
    "    for (int64_t i = whole; i < n; ++i) {\n"
    "        to[i] = adds ? to[i] + from[i] : from[i];\n"
    "    }\n"
    "}\n";

bool move_emit(Emitter *e, const Stmt *s)
{
    const Kernel *k = e->w.k;
    const Expr *load = s->value;
    DType t = k->bufs.at[s->dst].dtype, part = dtype_part(t);
    if (!e->uses_isa || e->in_tile || s->n_index == 0 || load->kind != EXPR_LOAD ||
        load->dtype != t || (part != DTYPE_F32 && part != DTYPE_F64) ||
        e->w.scalar[load->buf] || e->w.scalar[s->dst] || load->buf == s->dst ||
        (s->fold != OP_COPY && s->fold != OP_SUM) || k->bufs.at[s->dst].panels != 0 ||
        k->bufs.at[load->buf].panels != 0) {
        return false;
    }
    Stmt run = *s;
    run.index = &s->index[s->n_index - 1];
    run.n_index = 1;
    VarRef x = run.index[0].var;
    if (!access_is_unit(k, s->dst, s->at, x) || !access_is_unit(k, load->buf, load->at, x)) {
        return false;
    }
    if (helper_new(e->w.help, str_format(e->w.arena, "tdsl_move_%s", dtype_name(part)))) {
        (void)vector_type(e->w.help, part, 16 / dtype_bytes(part));
        template_put(e, move_text, part);
    }
    for (uint32_t i = 0; i < s->n_index - 1; i++) {
        loop_begin(&e->w, s->index[i].var, s->index[i].range, 1, FOR_ALL);
    }
    const char *count = count_text(e, run.index[0].range);
    const char *pointer = part == t ? "" : str_format(e->w.arena, "%s *)", c_type(part));
    line_printf(&e->w,
                part == t ? "tdsl_move_%s(%s&%s, %s&%s, %s, %d);"
                          : "tdsl_move_%s((%s&%s, (const %s&%s, 2 * (%s), %d);",
                dtype_name(part), pointer,
                element_text(&e->w, s->dst, access_first(e, &run, s->dst, s->at)), pointer,
                element_text(&e->w, load->buf, access_first(e, &run, load->buf, load->at)),
                count, s->fold == OP_SUM);
    for (uint32_t i = 0; i < s->n_index - 1; i++) {
        scope_end(&e->w);
    }
    return true;
}

/* ---- zeros ---- */

static const char zero_text[] =
    "\n/* to[i] = 0 for i below n. */\n"
    "TDSL_HELPER void tdsl_zero_$N($T *to, int64_t n)\n"
    "{\n    for (int64_t i = 0; i < n; ++i) {\n        to[i] = 0;\n    }\n}\n";

/* Is it a multiple of `unit` wherever the loops around stand? */
static bool is_multiple(Emitter *e, Affine x, int64_t unit)
{
    bool steps = true;
    for (uint32_t i = e->loops.n; i-- > 0;) {
        const Stmt *loop = e->loops.at[i];
        int64_t coef = affine_coef(x, loop->var);
        steps &= (coef % unit) * (loop->step % unit) % unit == 0;
        x = coef == 0 ? x : affine_subst(e->w.arena, x, loop->var, loop->range.start);
    }
    return steps && x.n == 0 && x.base % unit == 0;
}

/* Does it fill whole lines of one panel, one after the other? */
static bool fills_lines(Emitter *e, const Stmt *s)
{
    int64_t width = e->w.k->bufs.at[s->dst].panels;
    if (width == 0 || s->n_index != 2 || s->fold != OP_COPY || s->value->kind != EXPR_CONST ||
        !number_is_zero(s->value->value)) {
        return false;
    }
    VarRef y = s->index[0].var, z = s->index[1].var;
    Range across = s->index[1].range;
    Affine first = affine_subst(e->w.arena, s->at[1], z, across.start);
    return !across.clipped && across.span == width && affine_coef(s->at[0], y) == 1 &&
           affine_coef(s->at[0], z) == 0 && affine_coef(s->at[1], z) == 1 &&
           affine_coef(s->at[1], y) == 0 && is_multiple(e, first, width);
}

bool zero_emit(Emitter *e, const Stmt *s)
{
    if (e->in_tile || !fills_lines(e, s)) {
        return false;
    }
    DType t = e->w.k->bufs.at[s->dst].dtype, part = dtype_part(t);
    if (helper_new(e->w.help, str_format(e->w.arena, "tdsl_zero_%s", dtype_name(part)))) {
        template_put(e, zero_text, part);
    }
    int64_t width = e->w.k->bufs.at[s->dst].panels * (part == t ? 1 : 2);
    const char *pointer = part == t ? "" : str_format(e->w.arena, "(%s *)", c_type(part));
    line_printf(&e->w, "tdsl_zero_%s(%s&%s, %lld * (%s));", dtype_name(part), pointer,
                element_text(&e->w, s->dst, access_first(e, s, s->dst, s->at)),
                (long long)width, count_text(e, s->index[0].range));
    return true;
}
