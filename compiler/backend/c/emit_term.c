/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of contractions that fold other terms than products (loop/term.h). A term's name has each operation before its operands,
 * so that tiles of different kernels are the same where their terms are; here are that name, and lines of C: of vectors, or of single
 * elements. */
#include "backend/c/micro.h"
#include "loop/term.h"

/* ---- the term's name ---- */

/* Letters of operands stand together: `leaf` if the last one was an operand. */
static void name_put(const TileTerm *t, const Expr *e, bool *leaf, Text *out)
{
    const Expr *load = expr_uncast(e);
    if (load->kind == EXPR_LOAD) {
        text_put(out, *leaf ? "" : "_");
        text_char(out, expr_eq(t->k, load, t->row) ? 'a' : 'b');
        *leaf = true;
        return;
    }
    text_printf(out, "_%s", op_info(e->op)->name);
    *leaf = false;
    for (uint32_t i = 0; i < e->n_args; i++) { /* TERM_OPS deep at most */
        name_put(t, e->arg[i], leaf, out);
    }
}

TileTerm term_of(Arena *a, const Kernel *k, const Product *p)
{
    TileTerm t = {.fold = OP_SUM, .name = ""};
    if (p->term != NULL) {
        bool leaf = false;
        Text name;
        t = (TileTerm){.fold = p->s->fold, .k = k, .value = p->term, .row = p->a};
        text_init(&name, a);
        text_put(&name, t.fold == OP_SUM ? "_sum" : t.fold == OP_RMIN ? "_min" : "_max");
        name_put(&t, t.value, &leaf, &name);
        t.name = name.at;
    }
    return t;
}

/* ---- its lines ---- */

/* The type's and the operation's function, of single elements. */
static const char *term_function(Printer *p, Op op)
{
    return help_op(p->w.help, op, p->part, p->part);
}

const char *term_start(Printer *p, Op fold)
{
    CWriter none = {.arena = p->w.arena, .help = p->w.help};
    return number_text(&none, op_neutral(fold, p->part));
}

typedef struct TermLines {
    Printer *p;
    CWriter w;
    const char *type; /* of vectors, null: elements */
    const char *row, *column;
    uint32_t n_temps;
    Text *out;
} TermLines;

/* An element as a vector: a difference, since a sum would lose the sign of -0. */
static const char *as_vector(TermLines *l, VectorText x)
{
    return x.vector ? x.text.at
                    : str_format(l->w.arena, "%s - (%s){0}", in_parens(&l->w, x.text, BIND_SUM),
                                 l->type);
}

static VectorText atom(const char *text, bool vector)
{
    return (VectorText){{text, BIND_ATOM}, vector};
}

static VectorText operation(TermLines *l, Op op, VectorText x, VectorText y)
{
    Arena *a = l->w.arena;
    bool vector = x.vector || y.vector;
    if (op != OP_ABS && op != OP_MIN && op != OP_MAX) {
        return vector_arithmetic(&l->w, op, x, y);
    }
    if (!vector) {
        const char *f = term_function(l->p, op);
        return atom(op == OP_ABS ? str_format(a, "%s(%s)", f, x.text.at)
                                 : str_format(a, "%s(%s, %s)", f, x.text.at, y.text.at),
                    false);
    }
    if (op == OP_ABS) {
        l->w.help->magnitude = true;
        return atom(
            str_format(a, "TDSL_ABS_%s(%s, %s)", dtype_name(l->p->part), l->type, x.text.at),
            true);
    }
    const char *temp = str_format(a, "t%u", l->n_temps++);
    text_printf(l->out, "%s %s = %s; %s ", l->type, temp, as_vector(l, y),
                vector_fold(a, l->w.help, op, l->type, temp, as_vector(l, x)));
    return atom(temp, true);
}

static VectorText term_text(TermLines *l, const Expr *e)
{
    const TileTerm *t = &l->p->s->term;
    const Expr *load = expr_uncast(e);
    if (load->kind == EXPR_LOAD) {
        bool row = expr_eq(t->k, load, t->row);
        return atom(row ? l->row : l->column, !row && l->type != NULL);
    }
    VectorText x = term_text(l, e->arg[0]), y = e->n_args > 1 ? term_text(l, e->arg[1]) : x;
    return operation(l, e->op, x, y);
}

const char *term_fold(Printer *p, const char *type, const char *into, const char *value)
{
    Arena *a = p->w.arena;
    Op fold = p->s->term.fold;
    return type != NULL || fold == OP_SUM
               ? vector_fold(a, p->w.help, fold, type, into, value)
               : str_format(a, "%s = %s(%s, %s);", into,
                            term_function(p, fold == OP_RMIN ? OP_MIN : OP_MAX), value, into);
}

const char *term_step(Printer *p, const char *type, const char *row, const char *column,
                      const char *into)
{
    Text lines;
    text_init(&lines, p->w.arena);
    CWriter w = {.arena = p->w.arena, .help = p->w.help};
    TermLines l = {p, w, type, row, column, 0, &lines};
    VectorText value = term_text(&l, p->s->term.value);
    const char *fold =
        term_fold(p, type, into, type == NULL ? value.text.at : as_vector(&l, value));
    return l.n_temps == 0 ? str_format(p->w.arena, "%s%s", lines.at, fold)
                          : str_format(p->w.arena, "{ %s%s }", lines.at, fold);
}
