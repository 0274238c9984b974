/* SPDX-License-Identifier: Apache-2.0 */
/* The checked program as TDSL: every sum written out, einsum strings in index notation, extents as known, types of
 * values in comments. Reading it back gives the same program and so the same text. */
#include <string.h>

#include "front/check.h"

typedef struct Show {
    Ctx *ctx;
    const CheckedKernel *k;
    const CheckedStatement *s;
    Text *out;
    Sym *label;     /* name of each label of the statement */
    uint32_t temps; /* of the kernel, so far */
    Sym *value;     /* name of each value; null: that of the program */
    bool comment;   /* for people: it need not read back */
} Show;

/* ---- names ---- */

static bool is_identifier(const char *t)
{
    if ((*t >= '0' && *t <= '9') || *t == '\0') {
        return false;
    }
    for (; *t != '\0'; t++) {
        bool fine = (*t >= 'a' && *t <= 'z') || (*t >= 'A' && *t <= 'Z') || *t == '_' ||
                    (*t >= '0' && *t <= '9');
        if (!fine) {
            return false;
        }
    }
    return true;
}

static void name_labels(Show *w)
{
    w->label = ARENA_ARRAY(&w->ctx->arena, w->s->n_labels, Sym);
    for (uint32_t l = 0; l < w->s->n_labels; l++) {
        Sym name = w->s->label[l].name;
        bool usable = name != NULL && is_identifier(name->text);
        w->label[l] =
            usable ? name : sym_cstr(&w->ctx->syms, str_format(&w->ctx->arena, "i%u", l));
    }
}

static void name_values(Show *w)
{
    w->value = ARENA_ARRAY(&w->ctx->arena, w->k->values.n, Sym);
    for (uint32_t v = 0; v < w->k->values.n; v++) {
        Sym name = w->k->values.at[v].name;
        w->value[v] =
            name != NULL
                ? name
                : sym_cstr(&w->ctx->syms, str_format(&w->ctx->arena, "einsum_%u", w->temps++));
    }
}

static const char *value_name(const Show *w, uint32_t v)
{
    Sym name = w->k->values.at[v].name;
    return w->value != NULL ? w->value[v]->text : name != NULL ? name->text : "einsum";
}

/* ---- expressions ---- */

static void show_expr(Show *w, const CheckedExpr *e, int place);

/* The step's index in the statement, `t`, or `t - 1` for a read of the step before. */
static void show_step(Show *w, const StepsPlace *p)
{
    if (p->text != NULL) {
        text_put(w->out, p->text);
        return;
    }
    uint32_t step = w->k->values.at[w->s->target].step;
    text_put(w->out, step > 0 ? w->label[w->s->left[step - 1]]->text : "t");
    text_printf(w->out, " %c %lld", p->by < 0 ? '-' : '+',
                (long long)(p->by < 0 ? -p->by : p->by));
}

/* `h[t - 1, n]`, or `h[-1, n < 4]` on the left: the indices of a value that lacks the step's, with that. */
static void show_place_of_step(Show *w, const StepsPlace *p, const int32_t *label, uint32_t n,
                               void (*show)(Show *, const int32_t *, uint32_t))
{
    text_printf(w->out, "%s[", p->of->text);
    show(w, label, p->dim);
    text_put(w->out, p->dim > 0 ? ", " : "");
    show_step(w, p);
    text_put(w->out, p->dim < n ? ", " : "");
    show(w, label + p->dim, n - p->dim);
    text_char(w->out, ']');
}

static void show_labels(Show *w, const int32_t *label, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++) {
        text_put(w->out, a > 0 ? ", " : "");
        text_put(w->out, w->label[label[a]]->text);
    }
}

/* Names that no index has: extent(n), and arithmetic with them for what is computed. */
static void show_extent(Show *w, Dim d)
{
    const DimTable *t = &w->k->dims;
    if (d.sym >= 0 && dim_is_given(&t->list.at[d.sym])) {
        text_printf(w->out, "extent(%s)", t->list.at[d.sym].name->text);
        return;
    }
    const char **name = ARENA_ARRAY(w->out->arena, t->list.n, const char *);
    for (uint32_t i = 0; i < t->list.n; i++) {
        name[i] = str_format(w->out->arena, "extent(%s)", t->list.at[i].name->text);
    }
    text_char(w->out, '(');
    dim_put(w->out, t, d, name);
    text_char(w->out, ')');
}

/* 2*i + d, n - 1 - j; `more`: it is added to what stands before. */
static void show_position(Show *w, Affine x, bool more)
{
    text_put(w->out, more && x.n == 0 ? " + " : "");
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t coef = x.term[i].coef;
        bool first = i == 0 && !more;
        text_put(w->out, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
        if (coef != 1 && coef != -1) {
            text_printf(w->out, "%lld*", (long long)(coef < 0 ? -coef : coef));
        }
        if (affine_is_dim(x.term[i].var)) {
            show_extent(w, dim_open(affine_sym(x.term[i].var)));
        } else {
            text_put(w->out, w->label[x.term[i].var]->text);
        }
    }
    if (x.base != 0 || x.n == 0) {
        text_printf(w->out,
                    x.n == 0     ? "%lld"
                    : x.base < 0 ? " - %lld"
                                 : " + %lld",
                    (long long)(x.n == 0 || x.base > 0 ? x.base : -x.base));
    }
}

/* [2*i + d, n - 1 - j], and of a dimension that is split (g*r + u)*dh + d: each part times what follows it. */
static void show_positions(Show *w, uint32_t value, const Affine *at, const SplitShape *split)
{
    uint32_t rank = split != NULL ? split->rank : w->k->values.at[value].type.rank;
    for (uint32_t d = 0, last; d < rank; d = last + 1) {
        last = d;
        while (split != NULL && last + 1 < rank && split->axis[last + 1] == split->axis[d]) {
            last++;
        }
        text_put(w->out, d == 0 ? "[" : ", ");
        for (uint32_t p = d; p + 1 < last; p++) {
            text_char(w->out, '(');
        }
        for (uint32_t p = d; p <= last; p++) {
            bool parens = p < last && p == d && affine_index(at[p]) < 0;
            text_put(w->out, parens ? "(" : "");
            show_position(w, at[p], p > d);
            text_put(w->out, parens ? ")" : "");
            text_put(w->out, p > d && p < last ? ")" : "");
            if (p < last) {
                text_char(w->out, '*');
                show_extent(w, split->dims[p + 1]);
            }
        }
    }
    text_char(w->out, ']');
}

/* The range of an index that is given one. */
static void show_ranges(Show *w, const int32_t *label, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++) {
        const Label *l = &w->s->label[label[a]];
        text_put(w->out, a > 0 ? ", " : "");
        text_put(w->out, w->label[label[a]]->text);
        if ((l->given || l->counted) && !w->comment) {
            text_put(w->out, " < ");
            dim_print(w->out, &w->k->dims, l->extent);
        }
    }
}

static void show_number(Show *w, const CheckedExpr *e)
{
    double x = e->value.re;
    if (dtype_is_complex(e->value.dtype) && !(e->value.im <= 0 && e->value.im >= 0)) {
        bool both = !(x <= 0 && x >= 0);
        text_put(w->out, both ? "(" : "");
        if (both) {
            text_f64(w->out, x);
            text_put(w->out, e->value.im < 0 ? " - " : " + ");
        }
        text_f64(w->out, both && e->value.im < 0 ? -e->value.im : e->value.im);
        text_put(w->out, both ? "i)" : "i");
        return;
    }
    bool whole = x > -1e9 && x < 1e9 && x == (double)(int32_t)x;
    if (e->value.dtype == DTYPE_BOOL) {
        text_put(w->out, e->value.i ? "true" : "false");
    } else if (dtype_is_int(e->value.dtype)) {
        text_i64(w->out, e->value.i);
    } else if (w->comment && (whole || x - x != 0)) {
        text_printf(w->out, "%.9g", x);
    } else if (x - x != 0) { /* not finite: no literal says so */
        text_put(w->out, x > 0 ? "(1.0 / 0.0)" : x < 0 ? "(-1.0 / 0.0)" : "(0.0 / 0.0)");
    } else {
        text_f64(w->out, x);
    }
}

/* Casts that nobody wrote follow from the types of what is read and assigned. */
static const CheckedExpr *as_written(const CheckedExpr *e)
{
    while (e->kind == CHECKED_MAP && e->implicit) {
        e = e->arg[0];
    }
    return e;
}

static int strength(const CheckedExpr *e)
{
    if (e->kind == CHECKED_CHAIN || e->kind == CHECKED_MAP) {
        return op_info(e->op)->level;
    }
    bool negative = e->kind == CHECKED_CONST && !e->typed &&
                    (e->value.i < 0 || e->value.re < 0 || e->value.im < 0);
    return negative ? LEVEL_UNARY : LEVEL_CALL;
}

static void show_call(Show *w, const CheckedExpr *e)
{
    const OpInfo *info = op_info(e->op);
    if (info->level == LEVEL_COMPARISON) {
        show_expr(w, e->arg[0], LEVEL_SUM);
        text_printf(w->out, " %s ", info->symbol);
        show_expr(w, e->arg[1], LEVEL_SUM);
        return;
    }
    if (info->level == LEVEL_UNARY) {
        text_put(w->out, info->symbol);
        show_expr(w, e->arg[0], LEVEL_CALL);
        return;
    }
    text_printf(w->out, "%s(", e->op == OP_CAST ? dtype_name(e->dtype) : info->name);
    for (uint32_t a = 0; a < e->n; a++) {
        text_put(w->out, a > 0 ? ", " : "");
        show_expr(w, e->arg[a], 0);
    }
    text_char(w->out, ')');
}

/* A position that is a value: in its sums an index is called by its name. */
static void show_place(Show *w, const CheckedExpr *shown)
{
    const CheckedExpr *e = as_written(shown);
    if (e->kind == CHECKED_INDEX) {
        for (uint32_t p = 1; p < e->rank; p++) {
            text_put(w->out, p + 1 < e->rank ? "((" : "(");
        }
        text_put(w->out, w->label[e->label[0]]->text);
        for (uint32_t p = 1; p < e->rank; p++) {
            text_put(w->out, " * ");
            show_extent(w, w->s->label[e->label[p]].extent);
            text_printf(w->out, p + 1 < e->rank ? ") + %s)" : ") + %s",
                        w->label[e->label[p]]->text);
        }
        return;
    }
    if (e->kind != CHECKED_CHAIN) {
        show_expr(w, e, LEVEL_SUM);
        return;
    }
    for (uint32_t a = 0; a < e->n; a++) {
        const CheckedExpr *arg = as_written(e->arg[a]);
        bool parens =
            arg->kind == CHECKED_CHAIN || (arg->kind == CHECKED_INDEX && arg->rank > 1);
        if (a > 0) {
            text_printf(w->out, " %s ", op_info((Op)e->link[a])->symbol);
        }
        text_put(w->out, parens ? "(" : "");
        show_place(w, e->arg[a]);
        text_put(w->out, parens ? ")" : "");
    }
}

static void show_gather(Show *w, const CheckedExpr *e)
{
    const StepsPlace *p = w->k->values.at[e->read].place;
    text_printf(w->out, "%s[", p != NULL ? p->of->text : value_name(w, e->read));
    for (uint32_t a = 0, d = 0; a < e->n + (p != NULL); a++) {
        text_put(w->out, a == 0 ? "" : ", ");
        if (p != NULL && a == p->dim) {
            show_step(w, p);
        } else {
            show_place(w, as_written(e->arg[d++]));
        }
    }
    text_char(w->out, ']');
}

static void show_bare(Show *w, const CheckedExpr *e)
{
    switch (e->kind) {
    case CHECKED_POISON:
        break;
    case CHECKED_CONST:
        if (e->typed && e->dtype != DTYPE_BOOL) {
            text_printf(w->out, "%s(", dtype_name(e->dtype));
        }
        show_number(w, e);
        text_put(w->out, e->typed && e->dtype != DTYPE_BOOL ? ")" : "");
        break;
    case CHECKED_EXTENT:
        text_printf(w->out, "extent(%s)", w->k->dims.list.at[e->dim].name->text);
        break;
    case CHECKED_INDEX:
        text_printf(w->out, "index(%s)", w->label[e->label[0]]->text);
        break;
    case CHECKED_READ:
        if (w->k->values.at[e->read].place != NULL) {
            show_place_of_step(w, w->k->values.at[e->read].place, e->label, e->rank,
                               show_labels);
            break;
        }
        text_put(w->out, value_name(w, e->read));
        if (e->at != NULL) {
            show_positions(w, e->read, e->at, e->split);
        } else if (e->rank > 0) {
            text_char(w->out, '[');
            show_labels(w, e->label, e->rank);
            text_char(w->out, ']');
        }
        break;
    case CHECKED_GATHER:
        show_gather(w, e);
        break;
    case CHECKED_MAP:
        show_call(w, e);
        break;
    case CHECKED_CHAIN:
        for (uint32_t a = 0; a < e->n; a++) {
            if (a > 0) {
                text_printf(w->out, " %s ", op_info((Op)e->link[a])->symbol);
            }
            show_expr(w, e->arg[a], strength(e) + (a > 0));
        }
        break;
    case CHECKED_DENSE:
        text_printf(w->out, "%s[", e->op == OP_CHOLESKY ? "cholesky" : "solve");
        show_labels(w, e->label, e->op == OP_CHOLESKY ? 2 : 1);
        text_put(w->out, "](");
        show_expr(w, e->arg[0], 0);
        text_put(w->out, e->n > 1 ? ", " : "");
        if (e->n > 1) {
            show_expr(w, e->arg[1], 0);
        }
        text_char(w->out, ')');
        break;
    case CHECKED_REDUCE:
        text_printf(w->out, "%s[", op_info(e->op)->name + sizeof "reduce");
        show_ranges(w, e->label, e->rank);
        text_put(w->out, "](");
        show_expr(w, e->arg[0], 0);
        text_char(w->out, ')');
        break;
    }
}

static void show_expr(Show *w, const CheckedExpr *shown, int place)
{
    const CheckedExpr *e = as_written(shown);
    bool parens = strength(e) < place;
    text_put(w->out, parens ? "(" : "");
    show_bare(w, e);
    text_put(w->out, parens ? ")" : "");
}

/* ---- statements and kernels ---- */

static void show_statement(Show *w, const CheckedStatement *s)
{
    const Value *target = &w->k->values.at[s->target];
    w->s = s;
    name_labels(w);
    if (target->place == NULL) {
        text_put(w->out, w->value[s->target]->text);
    }
    if (target->declared && target->kind == VALUE_LOCAL && s->op == OP_COPY) {
        text_printf(w->out, target->place != NULL ? "" : ": %s",
                    dtype_name(target->type.dtype));
    }
    if (target->place != NULL) {
        show_place_of_step(w, target->place, s->left, s->rank, show_ranges);
    } else if (s->at != NULL) {
        show_positions(w, s->target, s->at, s->split);
    } else if (s->rank > 0) {
        text_char(w->out, '[');
        show_ranges(w, s->left, s->rank);
        text_char(w->out, ']');
    }
    if (s->op == OP_COPY) {
        text_put(w->out, " = ");
        show_expr(w, s->right, 0);
    } else {
        text_put(w->out, s->op == OP_ADD ? " += " : " -= ");
        const CheckedExpr *right = as_written(s->right);
        show_expr(w,
                  s->at == NULL     ? right->arg[1]
                  : s->op == OP_SUB ? right->arg[0] /* its negative is added */
                                    : right,
                  0);
    }
}

void symmetry_put(Text *out, const SymmetryClass *c)
{
    text_printf(out, "%s(", symmetry_word(c->sign, c->conj));
    for (uint32_t d = 0; d < c->n * c->width; d++) {
        bool first = c->width > 1 && d % c->width == 0;
        bool last = c->width > 1 && d % c->width == c->width - 1;
        text_printf(out, "%s%s%u%s", d > 0 ? ", " : "", first ? "(" : "", c->dim[d],
                    last ? ")" : "");
    }
    text_char(out, ')');
}

/* One attribute for each class. */
static void show_symmetry(Show *w, const Symmetry *declared)
{
    for (uint32_t k = 0; declared != NULL && k < declared->n; k++) {
        text_char(w->out, ' ');
        symmetry_put(w->out, &declared->at[k]);
    }
}

void layout_put(Text *out, const Value *value, bool named)
{
    for (uint32_t i = 0; i < value->n_shard; i++) {
        const Shard *cut = &value->shard[i];
        text_put(out, i == 0 ? " shard(" : ", ");
        text_printf(out, "%s%s", cut->axis == NULL ? "" : cut->axis->text,
                    cut->axis == NULL ? "" : "(");
        if (named && cut->written != NULL && value->type.dims[cut->dim].sym >= 0) {
            text_put(out, cut->written->text);
        } else {
            text_printf(out, "%u", cut->dim);
        }
        text_put(out, cut->axis == NULL ? "" : ")");
        text_put(out, i + 1 == value->n_shard ? ")" : "");
    }
    text_put(out, value->partial ? " partial" : "");
}

static void show_params(Show *w, ValueKind kind)
{
    uint32_t shown = 0;
    for (uint32_t v = 0; v < w->k->n_params + w->k->n_results; v++) {
        const Value *value = &w->k->values.at[v];
        if (value->kind == kind) {
            text_printf(w->out, "%s%s: %s", shown++ > 0 ? ", " : "", value->name->text,
                        value->is_inout ? "inout " : "");
            type_print(w->out, &w->k->dims, &value->type);
            show_symmetry(w, value->symmetry);
            if (value->triangle.known && kind == VALUE_PARAM) {
                text_printf(w->out, " %s(%u, %u)", value->triangle.upper ? "upper" : "lower",
                            value->triangle.row, value->triangle.column);
            }
            layout_put(w->out, value, true);
        }
    }
}

static void show_kernel(Ctx *ctx, const CheckedKernel *k, Text *out)
{
    Show w = {.ctx = ctx, .k = k, .out = out};
    name_values(&w);
    text_printf(out, "kernel %s(", k->name->text);
    show_params(&w, VALUE_PARAM);
    text_put(out, ")");
    if (k->n_results > 0) {
        text_put(out, " -> (");
        show_params(&w, VALUE_RESULT);
        text_put(out, ")");
    }
    text_put(out, " {\n");
    out->indent++;
    for (uint32_t v = 0; v < k->values.n; v++) {
        if (k->values.at[v].allow_spill) {
            text_printf(out, "spill %s;\n", w.value[v]->text);
        }
    }
    for (uint32_t s = 0; s < k->statements.n; s++) {
        show_statement(&w, &k->statements.at[s]);
        text_put(out, "; // ");
        type_print(out, &k->dims, &k->values.at[k->statements.at[s].target].type);
        text_char(out, '\n');
    }
    out->indent--;
    text_put(out, "}\n");
}

void program_dump(Ctx *ctx, const Program *p, Text *out)
{
    text_put(out, "// tdsl-dump checked 1\n");
    for (uint32_t d = 0; d < p->dims.list.n;
         d++) { /* their order is that of a kernel's C arguments */
        const DimInfo *dim = &p->dims.list.at[d];
        text_printf(out, "dim %s ~ %lld;\n", dim->name->text, (long long)dim->typical);
    }
    for (uint32_t k = 0; k < p->kernels.n; k++) {
        if (p->kernels.at[k]->gradient != NULL) {
            text_printf(out, "%s;\n", p->kernels.at[k]->signature);
        } else {
            show_kernel(ctx, p->kernels.at[k], out);
        }
    }
}

#define STATEMENT_TEXT 400 /* bytes: about as long as a comment should be */

/* Indices close together, and no more than that. */
static const char *tidy(Text *text)
{
    uint32_t depth = 0;
    size_t n = 0;
    for (size_t i = 0; i < text->n; i++) {
        char c = text->at[i];
        depth += (uint32_t)(c == '[') - (uint32_t)(c == ']');
        if (c != ' ' || depth == 0) {
            text->at[n++] = c;
        }
    }
    text->at[n] = '\0';
    if (n > STATEMENT_TEXT) {
        memcpy(text->at + STATEMENT_TEXT, " ...", 5);
    }
    return text->at;
}

SourceStatements statement_texts(Ctx *ctx, Arena *arena, const CheckedKernel *k)
{
    VEC(SourceStatement) all = {0};
    Show w = {.ctx = ctx, .k = k, .comment = true};
    name_values(&w);
    for (uint32_t s = 0; s < k->statements.n; s++) {
        const CheckedStatement *checked = &k->statements.at[s];
        if (k->values.at[checked->target].name !=
            NULL) { /* an einsum in an expression is part of it */
            Text text = text_new(arena);
            w.out = &text;
            show_statement(&w, checked);
            SourceStatement statement = {checked->span, tidy(&text)};
            vec_push(arena, &all, statement);
        }
    }
    return (SourceStatements){all.n, all.at};
}

const char *position_text(Ctx *ctx, Arena *arena, const CheckedKernel *k,
                          const CheckedStatement *s, const CheckedExpr *position)
{
    Show w = {.ctx = ctx, .k = k, .s = s, .comment = true};
    Text text = text_new(arena);
    w.out = &text;
    name_labels(&w);
    text_char(&text, '['); /* as it stands in brackets */
    show_place(&w, position);
    return tidy(&text) + 1;
}
