/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and scalar expressions as C. An address is a sum over the dimensions, each an affine expression in
 * parentheses times a stride, so that every intermediate number lies inside the buffer. A long expression is cut into
 * temporaries by its text alone, which keeps lines and brackets short whatever the source was. */
#include <string.h>

#include "backend/ctext/ctext.h"
#include "op/affine.h"

#define TEXT_MAX 90 /* characters of an operand before it becomes a temporary */

static CText ctext(const char *at, Binding binding)
{
    return (CText){at, binding};
}

const char *in_parens(CWriter *e, CText x, Binding within)
{
    return x.binding <= within ? x.at : str_format(e->arena, "(%s)", x.at);
}

/* ---- affine expressions ---- */

const char *c_dim_text(const CWriter *e, Dim d)
{
    return d.sym >= 0 ? e->dim[d.sym] : str_format(e->arena, "%lld", (long long)d.n);
}

static void term_put(const CWriter *e, Text *t, AffineTerm term, bool first)
{
    uint64_t size = term.coef < 0 ? 0 - (uint64_t)term.coef : (uint64_t)term.coef;
    if (first) {
        text_put(t, term.coef < 0 ? "-" : "");
    } else {
        text_put(t, term.coef < 0 ? " - " : " + ");
    }
    if (size != 1) {
        text_printf(t, "%llu * ", (unsigned long long)size);
    }
    text_put(t, affine_is_dim(term.var) ? e->dim[affine_sym(term.var)] : e->var[term.var]);
}

/* Positive terms first, so that no intermediate result needs a sign. */
const char *affine_text(const CWriter *e, Affine x, Binding within)
{
    Text t;
    text_init(&t, e->arena);
    uint32_t parts = 0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t i = 0; i < x.n; i++) {
            if ((x.term[i].coef > 0) == (sign > 0)) {
                term_put(e, &t, x.term[i], parts++ == 0);
            }
        }
        if (sign > 0 && x.base > 0) {
            text_printf(&t, parts == 0 ? "%lld" : " + %lld", (long long)x.base);
            parts++;
        }
    }
    if (x.base < 0) {
        text_printf(&t, parts == 0 ? "-%llu" : " - %llu",
                    (unsigned long long)(0 - (uint64_t)x.base));
        parts++;
    }
    if (parts == 0) {
        return "0";
    }
    bool single = parts == 1 && x.base >= 0 && (x.n == 0 || x.term[0].coef == 1);
    bool product = parts == 1 && x.n == 1 && x.term[0].coef > 1;
    Binding binding = single ? BIND_ATOM : product ? BIND_PRODUCT : BIND_SUM;
    return binding <= within ? t.at : str_format(e->arena, "(%s)", t.at);
}

const char *range_lo(const CWriter *e, Range r)
{
    return affine_text(e, r.start, BIND_SUM);
}

const char *count_named(const CWriter *e, Range r)
{
    for (uint32_t i = 0; i < e->counts.n; i++) {
        if (range_eq(&e->counts.at[i].range, &r)) {
            return e->counts.at[i].name;
        }
    }
    return NULL;
}

const char *range_hi(CWriter *e, Range r)
{
    if (r.span == 0) {
        return c_dim_text(e, r.limit);
    }
    const char *end =
        affine_text(e, affine_add(e->arena, r.start, 1, affine_const(r.span)), BIND_SUM);
    if (!r.clipped) {
        return end;
    }
    const char *count = count_named(e, r);
    if (count != NULL) {
        return r.start.n == 0 && r.start.base == 0
                   ? count
                   : str_format(e->arena, "%s + %s", affine_text(e, r.start, BIND_SUM), count);
    }
    if (r.start.n == 0 && r.limit.sym < 0) {
        int64_t last = r.start.base + r.span;
        return c_dim_text(e, dim_fixed(last < r.limit.n ? last : r.limit.n));
    }
    return str_format(e->arena, "%s(%s, %s)", help_fixed(e->help, "tdsl_min"), end,
                      c_dim_text(e, r.limit));
}

/* ---- addresses ---- */

/* The stride of dimension d: its fixed part, and the open part as text ("" when there is none). */
static int64_t stride_of(const CWriter *e, const Buffer *b, uint32_t d, const char **open)
{
    int64_t fixed = 1;
    Text t;
    text_init(&t, e->arena);
    for (uint32_t k = d + 1; k < b->rank; k++) {
        if (b->extent[k].sym < 0) {
            fixed = sat_mul(fixed, b->extent[k].n);
        } else {
            text_printf(&t, t.n == 0 ? "%s" : " * %s", e->dim[b->extent[k].sym]);
        }
    }
    *open = t.at;
    return fixed;
}

/* Is anything taken away in it? */
static bool affine_falls(Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].coef < 0) {
            return true;
        }
    }
    return x.base < 0;
}

bool affine_is_multiple(const CWriter *e, Affine x, int64_t unit)
{
    bool steps = true;
    for (uint32_t i = e->loops.n; i-- > 0;) {
        const Stmt *loop = e->loops.at[i];
        int64_t coef = affine_coef(x, loop->var);
        steps &= (coef % unit) * (loop->step % unit) % unit == 0;
        x = coef == 0 ? x : affine_subst(e->arena, x, loop->var, loop->range.start);
    }
    return steps && x.n == 0 && x.base % unit == 0;
}

/* Where within one panel the column is, (i - ir) beside the panel at which a tile begins: the index, or null. */
static const TileIndex *index_in_panel(const CWriter *e, Affine column, int64_t width,
                                       Affine *panel)
{
    for (uint32_t i = 0; e->tile != NULL && i < e->tile->n_index; i++) {
        const TileIndex *x = &e->tile->index[i];
        if (affine_coef(column, x->var) == 1 && x->range.span > 0 && x->range.span <= width) {
            *panel = affine_subst(e->arena, column, x->var, x->range.start);
            return affine_is_multiple(e, *panel, width) ? x : NULL;
        }
    }
    return NULL;
}

/* Of panels in groups of lines. */
static const char *in_groups(const CWriter *e, const Buffer *b, const Affine *at)
{
    long long width = b->panels, depth = b->extent[0].n, group = b->group;
    const char *k = affine_text(e, at[0], BIND_ATOM), *m = affine_text(e, at[1], BIND_ATOM);
    bool whole = affine_is_multiple(e, at[0], group),
         panel = affine_is_multiple(e, at[1], width);
    Text t;
    text_init(&t, e->arena);
    if (at[1].n > 0 || at[1].base != 0) {
        text_printf(&t, panel ? "%s * %lld" : "%s / %lld * %lld", m, panel ? depth : width,
                    depth * width);
        if (!panel) {
            text_printf(&t, " + %s %% %lld * %lld", m, width, group);
        }
    }
    if (at[0].n > 0 || at[0].base != 0) {
        text_printf(&t, whole ? "%s%s * %lld" : "%s%s / %lld * %lld", t.n > 0 ? " + " : "", k,
                    whole ? width : group, group * width);
        if (!whole) {
            text_printf(&t, " + %s %% %lld", k, group);
        }
    }
    return t.n == 0 ? "0" : t.at;
}

static const char *in_panels(const CWriter *e, const Buffer *b, const Affine *at)
{
    Affine panel = at[1];
    int64_t width = b->panels, depth = b->extent[0].n;
    Text t;
    text_init(&t, e->arena);
    if (b->group != 0) {
        return in_groups(e, b, at);
    }
    const TileIndex *inside = index_in_panel(e, at[1], width, &panel);
    if (inside != NULL || affine_is_multiple(e, at[1], width)) { /* of whole panels */
        if (panel.n > 0 || panel.base != 0) {
            text_printf(&t, "%s * %lld", affine_text(e, panel, BIND_ATOM), (long long)depth);
        }
        if (inside != NULL) {
            Affine column = affine_add(e->arena, affine_var(e->arena, inside->var), -1,
                                       inside->range.start);
            text_printf(&t, "%s%s", t.n == 0 ? "" : " + ", affine_text(e, column, BIND_ATOM));
        }
    } else {
        const char *m = affine_text(e, at[1], BIND_ATOM);
        text_printf(&t, "%s / %lld * %lld + %s %% %lld", m, (long long)width,
                    (long long)(depth * width), m, (long long)width);
    }
    if (at[0].n > 0 || at[0].base != 0) {
        text_printf(&t, t.n == 0 ? "%s * %lld" : " + %s * %lld",
                    affine_text(e, at[0], BIND_ATOM), (long long)width);
    }
    return t.n == 0 ? "0" : t.at;
}

const char *offset_text(const CWriter *e, BufRef buf, const Affine *at)
{
    const Buffer *b = &e->k->bufs.at[buf];
    if (b->panels != 0) {
        return in_panels(e, b, at);
    }
    Text t;
    text_init(&t, e->arena);
    int64_t constant = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        if (at[d].n == 0 && at[d].base == 0) {
            continue;
        }
        const char *open = NULL;
        int64_t fixed = stride_of(e, b, d, &open);
        bool unit = fixed == 1 && open[0] == '\0';
        if (at[d].n == 0 && open[0] == '\0') { /* inside the array, which fits */
            constant = sat_add(constant, sat_mul(at[d].base, fixed));
            continue;
        }
        text_put(&t, t.n == 0 ? "" : " + ");
        bool alone = unit && (t.n == 0 || !affine_falls(at[d]));
        text_put(&t, affine_text(e, at[d], alone ? BIND_SUM : unit ? BIND_PRODUCT : BIND_ATOM));
        if (fixed != 1 && open[0] != '\0') {
            text_printf(&t, " * (%lld * %s)", (long long)fixed, open);
        } else if (open[0] != '\0') {
            text_printf(&t, strchr(open, ' ') != NULL ? " * (%s)" : " * %s", open);
        } else if (fixed != 1) {
            text_printf(&t, " * %lld", (long long)fixed);
        }
    }
    if (constant != 0 || t.n == 0) {
        text_printf(&t, t.n == 0 ? "%lld" : " + %lld", (long long)constant);
    }
    return t.at;
}

const char *stride_text(const CWriter *e, BufRef buf, const Affine *at, VarRef v)
{
    const Buffer *b = &e->k->bufs.at[buf];
    Text t;
    text_init(&t, e->arena);
    int64_t constant = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        const char *open = NULL;
        int64_t step = stride_of(e, b, d, &open);
        step = b->panels != 0 && d == 0 ? b->panels : step; /* within one panel */
        int64_t fixed = sat_mul(step, affine_coef(at[d], v));
        if (open[0] == '\0') {
            constant = sat_add(constant, fixed);
        } else if (fixed != 0) {
            text_put(&t, t.n == 0 ? "" : " + ");
            if (fixed != 1) {
                text_printf(&t, "%lld * ", (long long)fixed);
            }
            text_put(&t, open);
        }
    }
    if (constant != 0 || t.n == 0) {
        text_printf(&t, t.n == 0 ? "%lld" : " + %lld", (long long)constant);
    }
    return t.at;
}

const char *element_text(const CWriter *e, BufRef buf, const Affine *at)
{
    if (e->scalar[buf]) {
        return e->buf[buf];
    }
    return str_format(e->arena, "%s[%s]", e->buf[buf], offset_text(e, buf, at));
}

/* ---- expressions ---- */

static CText number_ctext(CWriter *e, Number n)
{
    const char *text = number_text(e, n);
    return ctext(text, text[0] == '-' || text[0] == '(' ? BIND_UNARY : BIND_ATOM);
}

static const char *temp_name(CWriter *e, uint32_t number)
{
    while (e->temp_names.n <= number) {
        const char *wish = str_format(e->arena, "t%u", e->temp_names.n + 1);
        vec_push(e->arena, &e->temp_names, names_take(&e->names, wish));
    }
    return e->temp_names.at[number];
}

/* `x` in a temporary of its own when it has grown long. */
static CText shorten(CWriter *e, CText x, DType t)
{
    if (strlen(x.at) <= TEXT_MAX) {
        return x;
    }
    for (uint32_t k = 0; k < e->temps.n;
         k++) { /* equal text is equal value: shared or not in memory */
        if (strcmp(e->temps.at[k].text, x.at) == 0) {
            return ctext(e->temps.at[k].name, BIND_ATOM);
        }
    }
    const char *name = temp_name(e, e->n_temps++);
    vec_push(e->arena, &e->temps, ((Temp){x.at, name}));
    line_printf(e, "const %s %s = %s;", c_compute(t), name, x.at);
    return ctext(name, BIND_ATOM);
}

/* An element in memory, as what expressions compute with. */
static const char *loaded_text(CWriter *e, DType t, const char *raw)
{
    return dtype_is_half(t) ? str_format(e->arena, "%s(%s)", help_loads(e->help, t), raw) : raw;
}

static CText load_text(CWriter *e, const Expr *x)
{
    const Buffer *b = &e->k->bufs.at[x->buf];
    if (b->cascade && b->rank == 0) { /* of rows, back ends print the total before */
        const char *f = help_sum_of(e->help, b);
        return ctext(str_format(e->arena, "%s(%s)", f, e->buf[x->buf]), BIND_ATOM);
    }
    const char *raw = element_text(e, x->buf, x->at);
    return ctext(b->space != SPACE_ACC ? loaded_text(e, x->dtype, raw) : raw, BIND_ATOM);
}

static CText cast_text(CWriter *e, CText x, DType from, DType to)
{
    const char *f = help_cast(e->help, from, to);
    if (f != NULL) {
        return ctext(str_format(e->arena, "%s(%s)", f, x.at), BIND_ATOM);
    }
    return ctext(str_format(e->arena, "(%s)%s", c_compute(to), in_parens(e, x, BIND_UNARY)),
                 BIND_UNARY);
}

static bool is_plain_float(DType t)
{
    return t == DTYPE_F32 || t == DTYPE_F64;
}

/* Arithmetic that C's operators do as the op table means it. */
static bool infix_text(CWriter *e, Op op, DType t, const CText *arg, CText *out)
{
    if (!is_plain_float(t)) {
        return false;
    }
    const char *const left =
        in_parens(e, arg[0], op == OP_MUL || op == OP_DIV ? BIND_PRODUCT : BIND_SUM);
    switch ((int)op) {
    case OP_NEG:
        *out = ctext(str_format(e->arena, "-%s", in_parens(e, arg[0], BIND_ATOM)), BIND_UNARY);
        return true;
    case OP_ADD:
        *out = ctext(str_format(e->arena, "%s + %s", left, in_parens(e, arg[1], BIND_PRODUCT)),
                     BIND_SUM);
        return true;
    case OP_SUB:
        *out = ctext(str_format(e->arena, "%s - %s", left, in_parens(e, arg[1], BIND_PRODUCT)),
                     BIND_SUM);
        return true;
    case OP_MUL:
        *out = ctext(str_format(e->arena, "%s * %s", left, in_parens(e, arg[1], BIND_UNARY)),
                     BIND_PRODUCT);
        return true;
    case OP_DIV:
        *out = ctext(str_format(e->arena, "%s / %s", left, in_parens(e, arg[1], BIND_UNARY)),
                     BIND_PRODUCT);
        return true;
    default: /* not arithmetic */
        return false;
    }
}

static bool is_word(const char *s)
{
    return strpbrk(s, " ()[]") == NULL;
}

static CText apply_text(CWriter *e, Op op, DType in, DType out, uint32_t n, const CText *arg)
{
    CText done;
    if (op == OP_COPY) {
        return arg[0];
    }
    if (op == OP_CAST) {
        return cast_text(e, arg[0], in, out);
    }
    if (infix_text(e, op, out, arg, &done)) {
        return done;
    }
    if (op == OP_SCALE && is_word(arg[0].at)) { /* the second factor is not even read */
        CText zero = number_ctext(e, number_int(in, 0));
        const char *test =
            str_format(e->arena, "%s(%s, %s)", help_op(e->help, OP_EQ, in, DTYPE_BOOL),
                       arg[0].at, zero.at);
        CText product = apply_text(e, OP_MUL, in, in, 2, arg);
        return ctext(str_format(e->arena, "%s != 0 ? %s : %s", test, zero.at, product.at),
                     BIND_LOOSE);
    }
    const char *near = e->far != NULL ? help_near(e->help, op, in) : NULL;
    Text t;
    text_init(&t, e->arena);
    if (near != NULL && dtype_is_half(out)) {
        text_printf(&t, "%s(", help_rounds(e->help, out));
    }
    text_printf(&t, "%s(", near != NULL ? near : help_op(e->help, op, in, out));
    for (uint32_t k = 0; k < n; k++) {
        text_printf(&t, k == 0 ? "%s" : ", %s", arg[k].at);
    }
    if (near != NULL) {
        text_printf(&t, ", &%s%s", e->far, dtype_is_half(out) ? ")" : "");
    }
    text_put(&t, ")");
    return ctext(t.at, BIND_ATOM);
}

static DType operand_type(const Expr *x)
{
    return x->arg[x->op == OP_SELECT ? 1 : 0]->dtype;
}

static CText leaf_text(CWriter *e, const Expr *x)
{
    switch (x->kind) {
    case EXPR_CONST:
        return number_ctext(e, x->value);
    case EXPR_EXTENT:
        return cast_text(e, ctext(e->dim[x->dim], BIND_ATOM), DTYPE_I64, x->dtype);
    case EXPR_INDEX:
        return cast_text(e, ctext(affine_text(e, x->at[0], BIND_ATOM), BIND_ATOM), DTYPE_I64,
                         x->dtype);
    case EXPR_LOAD:
        return load_text(e, x);
    case EXPR_OP:
        break;
    }
    UNREACHABLE();
}

/* The element at positions that are values, of which those that are no indices are tested: outside it is 0. */
static CText gather_text(CWriter *e, const Expr *x, const CText *at)
{
    const Buffer *b = &e->k->bufs.at[x->buf];
    Text rest, tested;
    uint32_t n = 0;
    text_init(&rest, e->arena);
    text_init(&tested, e->arena);
    text_put(&rest, e->buf[x->buf]);
    for (uint32_t d = 0; d < b->rank; d++) {
        const char *open = NULL;
        long long fixed = stride_of(e, b, d, &open);
        const char *step = open[0] == '\0' ? str_format(e->arena, "%lld", fixed)
                                           : str_format(e->arena, "%lld * (%s)", fixed, open);
        Dim extent = b->extent[d];
        const char *most = extent.sym < 0
                               ? str_format(e->arena, "INT64_C(%lld)", (long long)extent.n)
                               : e->dim[extent.sym];
        if (x->arg[d]->kind == EXPR_INDEX) {
            text_printf(&rest, " + %s * (%s)", in_parens(e, at[d], BIND_PRODUCT), step);
        } else {
            text_printf(&tested, ", %s, %s, %s", at[d].at, most, step);
            n++;
        }
    }
    const char *raw =
        str_format(e->arena, "%s(%s%s)", help_gather(e->help, x->dtype, n), rest.at, tested.at);
    return ctext(loaded_text(e, x->dtype, raw), BIND_ATOM);
}

/* Nodes in an order with operands first; shared nodes once. No recursion: expressions may be deep. */
typedef struct Walk {
    const Expr *x;
    uint32_t next; /* operand to go to */
} Walk;

CText expr_text(CWriter *e, const Expr *root)
{
    Map done;
    e->temps.n = 0;
    map_init(&done, e->arena);
    VEC(CText) text = {0};
    VEC(Walk) stack = {0};
    vec_push(e->arena, &stack, ((Walk){root, 0}));
    while (stack.n > 0) {
        Walk *top = &stack.at[stack.n - 1];
        const Expr *x = top->x;
        uint32_t at = 0;
        if (map_get(&done, (uint64_t)(uintptr_t)x, &at)) {
            stack.n--;
            continue;
        }
        if (top->next < x->n_args && x->kind == EXPR_OP) {
            const Expr *operand = x->arg[top->next++];
            vec_push(e->arena, &stack, ((Walk){operand, 0}));
            continue;
        }
        CText result;
        if (x->kind == EXPR_OP) {
            CText arg[RANK_LIMIT];
            CHECK(x->n_args >= 1 && (x->n_args <= 3 || x->op == OP_GATHER));
            for (uint32_t k = 0; k < x->n_args; k++) {
                CHECK(map_get(&done, (uint64_t)(uintptr_t)x->arg[k], &at));
                arg[k] = shorten(e, text.at[at], x->arg[k]->dtype);
                text.at[at] = arg[k];
            }
            result = x->op == OP_GATHER
                         ? gather_text(e, x, arg)
                         : apply_text(e, x->op, operand_type(x), x->dtype, x->n_args, arg);
        } else {
            result = leaf_text(e, x);
        }
        map_put(&done, (uint64_t)(uintptr_t)x, text.n);
        vec_push(e->arena, &text, result);
        stack.n--;
    }
    return text.at[text.n - 1];
}

/* ---- folds ---- */

CText fold_text(CWriter *e, Op fold, DType t, CText a, CText x)
{
    CText arg[2] = {a, x};
    if (fold == OP_RMIN || fold == OP_RMAX) { /* the new element is asked for NaN first */
        arg[0] = x;
        arg[1] = a;
    }
    return apply_text(e, op_joined_by(fold, t), t, t, 2, arg);
}

const char *stored_text(CWriter *e, DType t, CText value)
{
    return dtype_is_half(t) ? str_format(e->arena, "%s(%s)", help_stores(e->help, t), value.at)
           : dtype_computes(t) != t
               ? str_format(e->arena, "(%s)%s", c_type(t), in_parens(e, value, BIND_UNARY))
               : value.at;
}
