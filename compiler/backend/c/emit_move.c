/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements that go from block to block as they are, or are added there: the call of a function, with vectors that
 * compilers do not see in short loops over two places which might be one to them; and zeros in blocks and in lines of a panel. */
#include <string.h>

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
    loops_begin(&e->w, s->index, s->n_index - 1);
    const char *count = count_text(e, run.index[0].range);
    const char *pointer = part == t ? "" : str_format(e->w.arena, "%s *)", c_type(part));
    line_printf(&e->w,
                part == t ? "tdsl_move_%s(%s&%s, %s&%s, %s, %d);"
                          : "tdsl_move_%s((%s&%s, (const %s&%s, 2 * (%s), %d);",
                dtype_name(part), pointer,
                element_text(&e->w, s->dst, access_first(e, &run, s->dst, s->at)), pointer,
                element_text(&e->w, load->buf, access_first(e, &run, load->buf, load->at)),
                count, s->fold == OP_SUM);
    scopes_end(&e->w, s->n_index - 1);
    return true;
}

/* ---- zeros ---- */

static const char zero_text[] =
    "\n/* to[i] = 0 for i below n. */\n"
    "TDSL_HELPER void tdsl_zero_$N($T *to, int64_t n)\n"
    "{\n    for (int64_t i = 0; i < n; ++i) {\n        to[i] = 0;\n    }\n}\n";

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
    int64_t group = e->w.k->bufs.at[s->dst].group;
    Affine line = affine_subst(e->w.arena, s->at[0], y, s->index[0].range.start);
    if (group != 0 && !affine_is_multiple(&e->w, line, group)) {
        return false;
    }
    Affine first = affine_subst(e->w.arena, s->at[1], z, across.start);
    return !across.clipped && across.span == width && affine_coef(s->at[0], y) == 1 &&
           affine_coef(s->at[0], z) == 0 && affine_coef(s->at[1], z) == 1 &&
           affine_coef(s->at[1], y) == 0 && affine_is_multiple(&e->w, first, width);
}

/* Does it fill a block, line after line without a gap, from any position of the first dimension on? */
static bool fills_block(Emitter *e, const Stmt *s)
{
    const Buffer *b = &e->w.k->bufs.at[s->dst];
    bool real = dtype_part(b->dtype) == DTYPE_F32 || dtype_part(b->dtype) == DTYPE_F64;
    if (!real || b->panels != 0 || b->rank == 0 || s->n_index != b->rank ||
        s->fold != OP_COPY || s->value->kind != EXPR_CONST ||
        !number_is_zero(s->value->value)) {
        return false;
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        Range r = s->index[d].range;
        Affine at = affine_subst(e->w.arena, s->at[d], s->index[d].var, r.start);
        bool whole =
            r.span == 0 && r.start.n == 0 && r.start.base == 0 && dim_eq(r.limit, b->extent[d]);
        whole |= b->extent[d].sym < 0 && range_is_exact(r) && range_most(r) == b->extent[d].n;
        if (affine_coef(s->at[d], s->index[d].var) != 1 ||
            (d > 0 && (at.n != 0 || at.base != 0 || !whole))) {
            return false;
        }
    }
    return true;
}

static const char *zero_function(Emitter *e, DType part)
{
    const char *name = str_format(e->w.arena, "tdsl_zero_%s", dtype_name(part));
    if (helper_new(e->w.help, name)) {
        template_put(e, zero_text, part);
    }
    return name;
}

/* "m - i" in a product. */
static const char *factor_text(Emitter *e, Range r)
{
    const char *text = count_text(e, r);
    return strchr(text, ' ') != NULL ? str_format(e->w.arena, "(%s)", text) : text;
}

/* Of panels in groups, which are filled up: whole groups of lines. */
static const char *lines_text(Emitter *e, const Buffer *b, const char *lines)
{
    long long group = (long long)b->group;
    return b->group == 0 ? lines
                         : str_format(e->w.arena, "(%s + %lld) / %lld * %lld", lines, group - 1,
                                      group, group);
}

bool zero_emit(Emitter *e, const Stmt *s)
{
    bool block = fills_block(e, s);
    if (e->in_tile || (!block && !fills_lines(e, s))) {
        return false;
    }
    DType t = e->w.k->bufs.at[s->dst].dtype, part = dtype_part(t);
    const char *pointer = part == t ? "" : str_format(e->w.arena, "(%s *)", c_type(part));
    int64_t width = (block ? 1 : e->w.k->bufs.at[s->dst].panels) * (part == t ? 1 : 2);
    Text n;
    text_init(&n, e->w.arena);
    if (width > 1) {
        text_printf(&n, "%lld * ", (long long)width);
    }
    for (uint32_t i = 0; i < (block ? s->n_index : 1); i++) {
        const char *count = n.n == 0 && s->n_index == 1 ? count_text(e, s->index[i].range)
                                                        : factor_text(e, s->index[i].range);
        const Buffer *b = &e->w.k->bufs.at[s->dst];
        text_printf(&n, i > 0 ? " * %s" : "%s", block ? count : lines_text(e, b, count));
    }
    const Affine *first = access_first(e, s, s->dst, s->at);
    const char *to =
        str_format(e->w.arena, "%s&%s", pointer, element_text(&e->w, s->dst, first));
    bool all = block && first[0].n == 0 && first[0].base == 0;
    line_printf(&e->w, "%s(%s, %s);", zero_function(e, part),
                all ? str_format(e->w.arena, "%s%s", pointer, e->w.buf[s->dst]) : to, n.at);
    return true;
}

/* ---- the panel in which columns end ---- */

static const char edge_text[] =
    "/* Zeros in k lines of the panel in which n columns end, unless they fill it. */\n"
    "TDSL_ALIGNED static void tdsl_edge_$N($T *to, int64_t width, int64_t panel, int64_t n, "
    "int64_t k)\n"
    "{\n    const int64_t most = n > 0 && n % width != 0 ? width * k : 0;\n"
    "    for (int64_t i = 0; i < most; ++i) {\n        to[n / width * panel + i] = 0;\n    "
    "}\n}\n";

bool edge_emit(Emitter *e, const Stmt *loop)
{
    const Stmt *s = loop->n_body == 1 ? loop->body[0] : NULL;
    if (e->in_tile || loop->part != FOR_REST || s == NULL || s->kind != STMT_TILE) {
        return false;
    }
    vec_push(e->w.arena, &e->w.loops, loop);
    bool lines = fills_lines(e, s) && e->w.k->bufs.at[s->dst].panels == loop->step;
    e->w.loops.n--;
    const Affine *at = access_first(e, s, s->dst, s->at);
    Affine column =
        lines ? affine_subst(e->w.arena, at[1], loop->var, loop->range.start) : affine_const(1);
    if (!lines || affine_coef(at[1], loop->var) != 1 || column.n != 0 || column.base != 0 ||
        at[0].n != 0 || at[0].base != 0) {
        return false;
    }
    const Buffer *b = &e->w.k->bufs.at[s->dst];
    DType part = dtype_part(b->dtype);
    const char *name = str_format(e->w.arena, "tdsl_edge_%s", dtype_name(part));
    if (helper_new(e->w.help, name)) {
        template_put(e, edge_text, part);
    }
    int64_t width = b->panels * (part == b->dtype ? 1 : 2);
    const char *columns = count_text(e, loop->range);
    line_printf(&e->w,
                part == b->dtype ? "%s(%s%s, %lld, %lld, %s, %s);"
                                 : "%s((%s *)%s, %lld, %lld, 2 * (%s), %s);",
                name, part == b->dtype ? "" : c_type(part), e->w.buf[s->dst], (long long)width,
                (long long)(width * b->extent[0].n), columns,
                lines_text(e, b, count_text(e, s->index[0].range)));
    return true;
}
