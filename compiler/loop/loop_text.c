/* SPDX-License-Identifier: Apache-2.0 */
/* The text of parts of statements: names, positions, accesses and values (loop_dump.h). */
#include "loop/loop_dump.h"

void loop_put_name(Text *out, char sigil, Sym name)
{
    text_char(out, sigil);
    dump_name(out, name);
}

void loop_put_var(const Kernel *k, VarRef v, Text *out)
{
    if (affine_is_dim(v)) {
        text_put(out, "extent(");
        dump_dim(out, &k->dims, dim_open(affine_sym(v)));
        text_char(out, ')');
    } else if (k->vars.at[v].is_loop) {
        loop_put_name(out, '$', k->vars.at[v].name);
    } else {
        dump_name(out, k->vars.at[v].name);
    }
}

void loop_put_affine(const Kernel *k, Affine x, Text *out)
{
    bool first = true;
    for (int pass = 0; pass < 2; pass++) { /* what is added, then what is taken away */
        for (uint32_t i = 0; i < x.n; i++) {
            int64_t coef = x.term[i].coef;
            if ((coef < 0) != (pass == 1)) {
                continue;
            }
            if (coef < 0) {
                text_char(out, '-');
            } else if (!first) {
                text_char(out, '+');
            }
            uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
            if (size != 1) {
                text_printf(out, "%llu*", (unsigned long long)size);
            }
            loop_put_var(k, x.term[i].var, out);
            first = false;
        }
    }
    if (first || x.base != 0) {
        if (!first && x.base > 0) {
            text_char(out, '+');
        }
        text_i64(out, x.base);
    }
}

void loop_text_access(const Kernel *k, BufRef buf, const Affine *at, Text *out)
{
    const Buffer *b = &k->bufs.at[buf];
    loop_put_name(out, '@', b->name);
    text_char(out, '[');
    for (uint32_t d = 0; d < b->rank; d++) {
        text_put(out, d == 0 ? "" : ",");
        loop_put_affine(k, at[d], out);
    }
    text_char(out, ']');
}

DType expr_wanted(Op op, DType made, uint32_t arg)
{
    switch (op_info(op)->rule) {
    case RULE_ANY:
    case RULE_FLOAT:
    case RULE_REAL:
    case RULE_RFLOAT:
    case RULE_NUMBER:
    case RULE_LOGIC:
        return made;
    case RULE_SELECT:
        return arg == 0 ? DTYPE_BOOL : made;
    case RULE_ORDER:
    case RULE_EQUAL:
    case RULE_PART:
    case RULE_CAST:
        return DTYPE_NONE;
    }
    UNREACHABLE();
}

static void put_const(Number v, DType wanted, Text *out)
{
    if (v.dtype == wanted) {
        dump_number(out, v);
        return;
    }
    text_printf(out, "%s(", dtype_name(v.dtype));
    dump_number(out, v);
    text_char(out, ')');
}

static void put_expr(const Kernel *k, const Expr *e, DType wanted, uint32_t depth, Text *out);

static void put_operation(const Kernel *k, const Expr *e, DType wanted, uint32_t depth,
                          Text *out)
{
    text_put(out, op_info(e->op)->name);
    if (e->op == OP_CAST) {
        text_printf(out, ".%s", dtype_name(e->dtype));
    }
    text_char(out, '(');
    bool gathers = e->op == OP_GATHER;
    if (gathers) {
        text_printf(out, "@%s[]", k->bufs.at[e->buf].name->text);
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        text_put(out, i == 0 && !gathers ? "" : ", ");
        put_expr(k, e->arg[i], gathers ? DTYPE_I64 : expr_wanted(e->op, wanted, i), depth + 1,
                 out);
    }
    text_char(out, ')');
}

static void put_expr(const Kernel *k, const Expr *e, DType wanted, uint32_t depth, Text *out)
{
    if (depth > EXPR_DEPTH_LIMIT) {
        text_put(out, "..."); /* such a kernel is refused by loop_verify */
        return;
    }
    switch (e->kind) {
    case EXPR_CONST:
        put_const(e->value, wanted, out);
        return;
    case EXPR_EXTENT:
        text_put(out, "extent");
        if (e->dtype != wanted) {
            text_printf(out, ".%s", dtype_name(e->dtype));
        }
        text_char(out, '(');
        dump_dim(out, &k->dims, dim_open(e->dim));
        text_char(out, ')');
        return;
    case EXPR_INDEX:
        text_put(out, "index");
        if (e->dtype != wanted) {
            text_printf(out, ".%s", dtype_name(e->dtype));
        }
        text_char(out, '(');
        loop_put_affine(k, e->at[0], out);
        text_char(out, ')');
        return;
    case EXPR_LOAD:
        loop_text_access(k, e->buf, e->at, out);
        return;
    case EXPR_OP:
        put_operation(k, e, wanted, depth, out);
        return;
    }
    UNREACHABLE();
}

void loop_put_value(const Kernel *k, const Expr *e, DType wanted, Text *out)
{
    put_expr(k, e, wanted, 0, out);
}
