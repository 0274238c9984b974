/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of contractions that fold other terms than products (loop/term.h). A tile's shape has the term as a list, each
 * operation before its operands, so that tiles of different kernels are the same where their terms are; here it becomes the
 * tile's name, and lines of C: of vectors, or of single elements. */
#include "backend/c/micro.h"
#include "loop/term.h"

/* ---- the term as a list ---- */

static void put_steps(const Kernel *k, const Product *p, const Expr *e, TileTerm *out)
{
    const Expr *load = expr_uncast(e);
    CHECK(out->n < TILE_TERM_STEPS);
    if (load->kind == EXPR_LOAD) {
        out->step[out->n++] = expr_eq(k, load, p->a) ? TERM_ROW : TERM_COLUMN;
        return;
    }
    out->step[out->n++] = (int32_t)e->op;
    for (uint32_t i = 0; i < e->n_args; i++) { /* TERM_OPS deep at most */
        put_steps(k, p, e->arg[i], out);
    }
}

TileTerm term_of(const Kernel *k, const Product *p)
{
    TileTerm out = {.fold = OP_SUM};
    if (p->term != NULL) {
        out.fold = p->s->fold;
        put_steps(k, p, p->term, &out);
    }
    return out;
}

bool term_eq(const TileTerm *x, const TileTerm *y)
{
    bool same = x->fold == y->fold && x->n == y->n;
    for (uint32_t i = 0; same && i < x->n; i++) {
        same = x->step[i] == y->step[i];
    }
    return same;
}

const char *term_name(Arena *a, const TileTerm *t)
{
    static const char *const folds[] = {"sum", "min", "max"};
    Text name;
    text_init(&name, a);
    if (t->n == 0) {
        return "";
    }
    text_printf(&name, "_%s", folds[t->fold == OP_SUM ? 0 : t->fold == OP_RMIN ? 1 : 2]);
    for (uint32_t i = 0; i < t->n; i++) {
        bool after = i > 0 && t->step[i - 1] < 0;
        if (t->step[i] < 0) {
            text_put(&name, after ? "" : "_");
            text_char(&name, t->step[i] == TERM_ROW ? 'a' : 'b');
        } else {
            text_printf(&name, "_%s", op_info((Op)t->step[i])->name);
        }
    }
    return name.at;
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
    uint32_t at, n_temps;
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

static VectorText term_text(TermLines *l)
{
    int32_t step = l->p->s->term.step[l->at++];
    if (step < 0) {
        bool row = step == TERM_ROW;
        return atom(row ? l->row : l->column, !row && l->type != NULL);
    }
    VectorText x = term_text(l), y = x;
    if (op_info((Op)step)->arity == 2) {
        y = term_text(l);
    }
    return operation(l, (Op)step, x, y);
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
    TermLines l = {p, w, type, row, column, 0, 0, &lines};
    VectorText value = term_text(&l);
    CHECK(l.at == p->s->term.n);
    const char *fold =
        term_fold(p, type, into, type == NULL ? value.text.at : as_vector(&l, value));
    return l.n_temps == 0 ? str_format(p->w.arena, "%s%s", lines.at, fold)
                          : str_format(p->w.arena, "{ %s%s }", lines.at, fold);
}
