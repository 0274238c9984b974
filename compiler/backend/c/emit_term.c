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
    return help_op(p->tiles->help, op, p->part, p->part);
}

const char *term_start(Printer *p, Op fold)
{
    CWriter none = {.arena = p->tiles->arena, .help = p->tiles->help};
    return number_text(&none, op_neutral(fold, p->part));
}

/* A text of C, and whether it is a vector. */
typedef struct TermText {
    const char *at;
    bool vector;
} TermText;

typedef struct TermLines {
    Printer *p;
    const char *type; /* of vectors, null: elements */
    const char *row, *column;
    const TileTerm *term;
    uint32_t at, n_temps;
    Text *out;
} TermLines;

static void note_folds(Printer *p, Op op)
{
    p->tiles->help->least |= op == OP_MIN || op == OP_RMIN;
    p->tiles->help->most |= op == OP_MAX || op == OP_RMAX;
}

/* An element as a vector: a difference, since a sum would lose the sign of -0. */
static const char *as_vector(TermLines *l, TermText x)
{
    return x.vector ? x.at : str_format(l->p->tiles->arena, "(%s - (%s){0})", x.at, l->type);
}

static TermText operation(TermLines *l, Op op, TermText x, TermText y)
{
    Arena *a = l->p->tiles->arena;
    bool vector = x.vector || y.vector;
    const char *sign = op_info(op)->symbol;
    switch ((int)op) {
    case OP_NEG:
        return (TermText){str_format(a, "(-%s)", x.at), vector};
    case OP_ABS:
        if (vector) {
            l->p->tiles->help->magnitude = true;
            return (TermText){
                str_format(a, "TDSL_ABS_%s(%s, %s)", dtype_name(l->p->part), l->type, x.at),
                true};
        }
        return (TermText){str_format(a, "%s(%s)", term_function(l->p, op), x.at), false};
    case OP_MIN:
    case OP_MAX: {
        if (!vector) {
            return (TermText){str_format(a, "%s(%s, %s)", term_function(l->p, op), x.at, y.at),
                              false};
        }
        const char *temp = str_format(a, "t%u", l->n_temps++);
        note_folds(l->p, op);
        text_printf(l->out, "%s %s = %s; TDSL_%s(%s, %s, %s); ", l->type, temp, as_vector(l, y),
                    op == OP_MIN ? "LEAST" : "MOST", l->type, temp, as_vector(l, x));
        return (TermText){temp, true};
    }
    default:
        return (TermText){str_format(a, "(%s %s %s)", x.at, sign, y.at), vector};
    }
}

static TermText term_text(TermLines *l)
{
    int32_t step = l->term->step[l->at++];
    if (step < 0) {
        bool row = step == TERM_ROW;
        return (TermText){row ? l->row : l->column, !row && l->type != NULL};
    }
    TermText x = term_text(l), y = {"", false};
    if (op_info((Op)step)->arity == 2) {
        y = term_text(l);
    }
    return operation(l, (Op)step, x, y);
}

const char *term_fold(Printer *p, const char *type, const char *into, const char *value)
{
    Arena *a = p->tiles->arena;
    Op fold = p->s->term.fold;
    if (fold == OP_SUM) {
        return str_format(a, "%s += %s;", into, value);
    }
    note_folds(p, fold);
    return type == NULL
               ? str_format(a, "%s = %s(%s, %s);", into,
                            term_function(p, fold == OP_RMIN ? OP_MIN : OP_MAX), value, into)
               : str_format(a, "TDSL_%s(%s, %s, %s);", fold == OP_RMIN ? "LEAST" : "MOST", type,
                            into, value);
}

const char *term_step(Printer *p, const char *type, const char *row, const char *column,
                      const char *into)
{
    Text lines;
    text_init(&lines, p->tiles->arena);
    TermLines l = {p, type, row, column, &p->s->term, 0, 0, &lines};
    TermText value = term_text(&l);
    CHECK(l.at == p->s->term.n);
    const char *fold = term_fold(p, type, into, type == NULL ? value.at : as_vector(&l, value));
    return l.n_temps == 0 ? str_format(p->tiles->arena, "%s%s", lines.at, fold)
                          : str_format(p->tiles->arena, "{ %s%s }", lines.at, fold);
}
