/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of complex numbers as arithmetic of their parts, which compilers make vectors of, while they copy what is whole
 * through memory. Each operation has two variables; the result's are stored last, since it may lie over an operand. */
#include "backend/c/emit.h"

/* The parts of a node's value. */
typedef struct ComplexText {
    const char *re, *im;
} ComplexText;

typedef struct Parts {
    Emitter *e;
    Map done; /* by address, a number of `text` */
    VEC(ComplexText) text;
    uint32_t n_names;
} Parts;

static const char *part_of(CWriter *w, DType t, bool imaginary, const char *x)
{
    return str_format(w->arena, "%s(%s)", help_part(w->help, t, imaginary), x);
}

static ComplexText leaf(Parts *p, const Expr *x)
{
    CWriter *w = &p->e->w;
    const char *whole = expr_text(w, x).at;
    if (x->kind != EXPR_LOAD) {
        const char *name = loaded_name(p->e, p->n_names++);
        line_printf(w, "const %s %s = %s;", c_type(x->dtype), name, whole);
        whole = name;
    }
    return (ComplexText){part_of(w, x->dtype, false, whole), part_of(w, x->dtype, true, whole)};
}

/* Under names: each part is read once or twice by the node above. */
static ComplexText named(Parts *p, DType t, const char *re, const char *im)
{
    CWriter *w = &p->e->w;
    const char *type = c_type(dtype_part(t));
    const char *x = loaded_name(p->e, p->n_names++), *y = loaded_name(p->e, p->n_names++);
    line_printf(w, "const %s %s = %s, %s = %s;", type, x, re, y, im);
    return (ComplexText){x, y};
}

static ComplexText operation(Parts *p, const Expr *x, const ComplexText *arg)
{
    Arena *a = p->e->w.arena;
    const char *r0 = arg[0].re, *i0 = arg[0].im, *r1 = arg[1].re, *i1 = arg[1].im;
    switch ((int)x->op) {
    case OP_NEG:
        return named(p, x->dtype, str_format(a, "-%s", r0), str_format(a, "-%s", i0));
    case OP_CONJ:
        return named(p, x->dtype, r0, str_format(a, "-%s", i0));
    case OP_ADD:
    case OP_SUB: {
        const char *sign = x->op == OP_ADD ? "+" : "-";
        return named(p, x->dtype, str_format(a, "%s %s %s", r0, sign, r1),
                     str_format(a, "%s %s %s", i0, sign, i1));
    }
    default: /* as tdsl_mul_c64 */
        CHECK(x->op == OP_MUL);
        return named(p, x->dtype, str_format(a, "%s * %s - %s * %s", r0, r1, i0, i1),
                     str_format(a, "%s * %s + %s * %s", r0, i1, i0, r1));
    }
}

typedef struct Visit {
    const Expr *x;
    uint32_t next; /* operand to go to */
} Visit;

/* Operands first; no recursion, expressions may be deep. */
static ComplexText value_text(Parts *p, const Expr *root)
{
    Arena *a = p->e->w.arena;
    VEC(Visit) stack = {0};
    vec_push(a, &stack, ((Visit){root, 0}));
    while (stack.n > 0) {
        Visit *top = &stack.at[stack.n - 1];
        const Expr *x = top->x;
        uint32_t at = 0;
        if (map_get(&p->done, (uint64_t)(uintptr_t)x, &at)) {
            stack.n--;
        } else if (x->kind == EXPR_OP && top->next < x->n_args) {
            vec_push(a, &stack, ((Visit){x->arg[top->next++], 0}));
        } else {
            ComplexText arg[2] = {{0}, {0}};
            for (uint32_t i = 0; x->kind == EXPR_OP && i < x->n_args; i++) {
                CHECK(map_get(&p->done, (uint64_t)(uintptr_t)x->arg[i], &at));
                arg[i] = p->text.at[at];
            }
            ComplexText text = x->kind == EXPR_OP ? operation(p, x, arg) : leaf(p, x);
            map_put(&p->done, (uint64_t)(uintptr_t)x, p->text.n);
            vec_push(a, &p->text, text);
            stack.n--;
        }
    }
    return p->text.at[p->text.n - 1];
}

void complex_assign(Emitter *e, const Stmt *s)
{
    Parts p = {.e = e};
    DType t = e->w.k->bufs.at[s->dst].dtype;
    map_init(&p.done, e->w.arena);
    ComplexText value = value_text(&p, s->value);
    const char *type = c_type(dtype_part(t));
    const char *to = loaded_name(e, p.n_names);
    line_printf(&e->w, "%s *const %s = (%s *)&%s;", type, to, type,
                element_text(&e->w, s->dst, s->at));
    line_printf(&e->w, "%s[0] = %s;", to, value.re);
    line_printf(&e->w, "%s[1] = %s;", to, value.im);
}
