/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what all dumps share (text.h): heads, dims, types, numbers. */
#include "dump/text.h"

#include <math.h>
#include <string.h>

void dump_reader_init(DumpReader *r, Ctx *ctx, Arena *arena)
{
    *r = (DumpReader){.ctx = ctx, .arena = arena};
    places_init(&r->places, ctx, arena);
}

void dump_reader_kernel(DumpReader *r, DimTable *dims)
{
    r->dims = dims;
    map_init(&r->dim_number, r->arena);
}

static bool no_block(DumpReader *r, const DumpLine *line)
{
    return !line->has_block || dump_refuse(r->ctx, line->span, "this line has no block");
}

/* `WORD TERM`, if that is the line at *next. */
static bool head_line(DumpReader *r, const DumpTree *tree, const char *word, TermKind kind,
                      const char *what, uint32_t *next, const Term **found)
{
    *found = NULL;
    if (*next >= tree->n) {
        return true;
    }
    const DumpLine *line = tree->line[*next];
    Cursor c = cursor_line(r->ctx, line);
    if (!cursor_take(&c, TERM_NAME, word)) {
        return true;
    }
    (*next)++;
    *found = cursor_expect(&c, kind, NULL, what);
    return *found != NULL && cursor_expect_end(&c) && no_block(r, line);
}

bool read_module_head(DumpReader *r, const DumpTree *tree, const char *stage, const char **name,
                      uint32_t *next)
{
    *name = NULL;
    *next = 1;
    if (tree->n == 0) {
        return dump_refuse(r->ctx, (Span){0, 0, 0}, "an empty dump");
    }
    Cursor c = cursor_line(r->ctx, tree->line[0]);
    char what[64] = "'tdsl-dump ";
    strncat(what, stage, 32);
    strcat(what, " 1'");
    const Term *version = NULL;
    if (cursor_expect(&c, TERM_NAME, "tdsl", what) == NULL ||
        cursor_expect(&c, TERM_PUNCT, "-", what) == NULL ||
        cursor_expect(&c, TERM_NAME, "dump", what) == NULL ||
        cursor_expect(&c, TERM_NAME, stage, what) == NULL ||
        (version = cursor_expect(&c, TERM_INT, NULL, what)) == NULL || !cursor_expect_end(&c) ||
        !no_block(r, tree->line[0])) {
        return false;
    }
    if (version->value != 1) {
        return dump_refuse(r->ctx, version->span,
                           "only version 1 of the dump language is known here");
    }
    const Term *source = NULL;
    if (!head_line(r, tree, "source", TERM_STRING, "a file name in quotes", next, &source)) {
        return false;
    }
    *name = source == NULL ? NULL : source->text->text;
    return head_line(r, tree, "after", TERM_NAME, "the name of a pass", next, &r->after);
}

/* `WORD "..." [at L:C]` without a block; *text is null where the line begins with another word. */
static bool read_quoted(DumpReader *r, const DumpLine *line, const char *word,
                        const char **text, Span *at)
{
    Cursor c = cursor_line(r->ctx, line);
    *text = NULL;
    if (!cursor_take(&c, TERM_NAME, word)) {
        return true;
    }
    const Term *t = cursor_expect(&c, TERM_STRING, NULL, "a string");
    if (t == NULL || (at != NULL && cursor_take(&c, TERM_NAME, "at") &&
                      !cursor_span(&c, &r->places, r->home, at))) {
        return false;
    }
    *text = t->text->text;
    return cursor_expect_end(&c) && no_block(r, line);
}

bool read_kernel_head(DumpReader *r, const DumpLine *line, KernelHead *head, uint32_t *next)
{
    Cursor c = cursor_line(r->ctx, line);
    *head = (KernelHead){.signature = ""};
    *next = 0;
    if (cursor_expect(&c, TERM_NAME, "kernel", "'kernel'") == NULL ||
        (head->name = cursor_name(&c, "the kernel's name")) == NULL) {
        return false;
    }
    if (cursor_take(&c, TERM_NAME, "at") && !cursor_span(&c, &r->places, 0, &head->span)) {
        return false;
    }
    r->home = head->span.source;
    if (!cursor_expect_end(&c)) {
        return false;
    }
    if (!line->has_block) {
        return dump_refuse(r->ctx, line->span, "a kernel has a block in braces");
    }
    const char *text = NULL;
    if (line->n_body > 0) {
        if (!read_quoted(r, line->body[0], "signature", &text, NULL)) {
            return false;
        }
        head->signature = text != NULL ? text : "";
        *next = text != NULL ? 1 : 0;
    }
    VEC(SourceStatement) statements = {0};
    for (; *next < line->n_body; ++*next) {
        SourceStatement s = {{0, 0, 0}, NULL};
        if (!read_quoted(r, line->body[*next], "statement", &s.text, &s.span)) {
            return false;
        }
        if (s.text == NULL) {
            break;
        }
        vec_push(r->arena, &statements, s);
    }
    head->statements = (SourceStatements){(uint32_t)statements.n, statements.at};
    VEC(const char *) ranks = {0};
    for (const char *rank = ""; *next < line->n_body && rank != NULL; *next += rank != NULL) {
        if (!read_quoted(r, line->body[*next], "ranks", &rank, NULL)) {
            return false;
        }
        if (rank != NULL) {
            vec_push(r->arena, &ranks, rank);
        }
    }
    head->ranks = (TextLines){(uint32_t)ranks.n, ranks.at};
    return true;
}

bool read_span(DumpReader *r, Cursor *c, Span *out)
{
    return cursor_span(c, &r->places, r->home, out);
}

static bool read_divisor(DumpReader *r, Cursor *c, DimInfo *info)
{
    if (cursor_take(c, TERM_PUNCT, "/")) {
        const Term *t = cursor_expect(c, TERM_INT, NULL, "a divisor");
        if (t == NULL || t->value < 2) {
            return t != NULL && dump_refuse(r->ctx, t->span, "a divisor is 2 or more");
        }
        info->divisor = t->value;
    }
    return true;
}

/* `2 * n - 1 * m + 5 / 3`, the sum before the quotient. */
static bool read_sum(DumpReader *r, Cursor *c, DimInfo *info)
{
    VEC(DimTerm) term = {0};
    bool more = true;
    while (more) {
        int64_t sign = cursor_take(c, TERM_PUNCT, "-") ? -1 : 1;
        const Term *t = cursor_expect(c, TERM_INT, NULL, "a number");
        if (t == NULL) {
            return false;
        }
        more = cursor_take(c, TERM_PUNCT, "*");
        if (!more) {
            info->base = sign * t->value;
            break;
        }
        DimTerm x = {dim_fixed(0), sign * t->value};
        t = cursor_peek(c);
        if (t == NULL) {
            return dump_refuse(r->ctx, c->end, "a dim is expected here");
        }
        c->at++;
        if (!read_dim(r, t, &x.dim)) {
            return false;
        }
        vec_push(r->arena, &term, x);
        t = cursor_peek(c);
        if (!cursor_take(c, TERM_PUNCT, "+") &&
            (t == NULL || t->kind != TERM_PUNCT || strcmp(t->text->text, "-") != 0)) {
            return dump_refuse(r->ctx, cursor_place(c), "a number ends the sum");
        }
    }
    info->n_terms = term.n;
    info->term = term.at;
    return read_divisor(r, c, info);
}

/* After the typical size: `= m * 3`, `= m * 3 / 4`, or nothing. */
static bool read_factors(DumpReader *r, Cursor *c, DimInfo *info)
{
    VEC(Dim) factor = {0};
    bool more = cursor_take(c, TERM_PUNCT, "=");
    if (more && c->at + 1 < c->n && c->term[c->at]->kind == TERM_NAME &&
        strcmp(c->term[c->at]->text->text, "sum") == 0 &&
        (c->term[c->at + 1]->kind == TERM_INT ||
         (c->term[c->at + 1]->kind == TERM_PUNCT &&
          strcmp(c->term[c->at + 1]->text->text, "-") == 0))) {
        c->at++;
        return read_sum(r, c, info);
    }
    while (more) {
        Dim d;
        const Term *t = cursor_peek(c);
        if (t == NULL) {
            return dump_refuse(r->ctx, c->end, "an extent is expected here");
        }
        c->at++;
        if (!read_dim(r, t, &d)) {
            return false;
        }
        vec_push(r->arena, &factor, d);
        more = cursor_take(c, TERM_PUNCT, "*");
    }
    info->n_factors = factor.n;
    info->factor = factor.at;
    return factor.n == 0 || read_divisor(r, c, info);
}

bool read_dim_line(DumpReader *r, Cursor *c)
{
    DimInfo info = {.span = c->end};
    const Term *typical = NULL;
    info.name = cursor_name(c, "the dim's name");
    if (info.name == NULL || cursor_expect(c, TERM_PUNCT, "~", "'~'") == NULL ||
        (typical = cursor_expect(c, TERM_INT, NULL, "a typical size")) == NULL) {
        return false;
    }
    uint32_t old;
    if (map_get(&r->dim_number, info.name->id, &old)) {
        return dump_refuse(r->ctx, c->term[0]->span, "a dim of this name exists");
    }
    info.typical = typical->value;
    info.span = (Span){0, 0, 0};
    if (!read_factors(r, c, &info)) {
        return false;
    }
    map_put(&r->dim_number, info.name->id, r->dims->list.n);
    vec_push(r->arena, &r->dims->list, info);
    return true;
}

bool read_dim(DumpReader *r, const Term *t, Dim *out)
{
    uint32_t number = 0;
    if (t->kind == TERM_INT) {
        *out = dim_fixed(t->value);
        return true;
    }
    if (t->kind != TERM_NAME && t->kind != TERM_STRING) {
        return dump_refuse(r->ctx, t->span, "an extent is a number or the name of a dim");
    }
    if (!map_get(&r->dim_number, t->text->id, &number)) {
        return dump_refuse(r->ctx, t->span, "there is no dim '%s'", t->text->text);
    }
    *out = dim_open((int32_t)number);
    return true;
}

/* A number of a test, at least `least`; *out when there is none. */
static bool read_bound(Cursor *c, int64_t least, bool *is, int64_t *out)
{
    const Term *t = cursor_peek(c);
    *is = t != NULL && t->kind == TERM_INT;
    if (*is && (t->value < least || t->value > SIZE_LIMIT)) {
        return dump_refuse(c->ctx, t->span, "no size is on the other side of this number");
    }
    *out = *is ? t->value : *out;
    c->at += *is ? 1 : 0;
    return true;
}

bool read_dim_test(Cursor *c, const DimTable *dims, DimTest *out)
{
    bool below = false, above = false;
    Sym name = NULL;
    *out = (DimTest){.dim = -1, .least = -1, .most = DIM_ANY_SIZE};
    if (!read_bound(c, 0, &above, &out->least) ||
        (above && cursor_expect(c, TERM_PUNCT, "<", "'<'") == NULL) ||
        (name = cursor_name(c, "the name of an open dim")) == NULL) {
        return false;
    }
    out->least++;
    for (uint32_t d = 0; d < dims->list.n; d++) {
        out->dim = dims->list.at[d].name == name ? (int32_t)d : out->dim;
    }
    if (out->dim < 0) {
        return dump_refuse(c->ctx, c->term[c->at - 1]->span, "there is no dim '%s'",
                           name->text);
    }
    bool less = cursor_take(c, TERM_PUNCT, "<");
    if (!less && above) {
        return true;
    }
    if (!less && cursor_expect(c, TERM_PUNCT, "<", "'<'") == NULL) {
        return false;
    }
    if (!read_bound(c, 1, &below, &out->most)) {
        return false;
    }
    out->most--;
    return below || cursor_expect(c, TERM_INT, NULL, "a number") != NULL;
}

bool read_shape_after(DumpReader *r, Cursor *c, const char *word, uint32_t *rank,
                      const Dim **shape)
{
    *rank = 0;
    *shape = NULL;
    if (!cursor_take(c, TERM_NAME, word)) {
        return true;
    }
    const Term *t = cursor_expect(c, TERM_LIST, NULL, "extents in brackets");
    if (t == NULL || t->n > RANK_LIMIT) {
        return t != NULL && dump_refuse(r->ctx, t->span, "fewer extents are expected here");
    }
    Dim *dims = ARENA_ARRAY(r->arena, (size_t)t->n + 1, Dim);
    for (uint32_t d = 0; d < t->n; d++) {
        if (!read_dim(r, t->child[d], &dims[d])) {
            return false;
        }
    }
    *rank = t->n;
    *shape = dims;
    return true;
}

bool read_type(DumpReader *r, Cursor *c, DType *dtype, uint32_t *rank, const Dim **shape)
{
    const Term *t = cursor_peek(c);
    const Term *name = t;
    *rank = 0;
    *shape = NULL;
    if (t != NULL && t->kind == TERM_INDEX) {
        name = t->child[0];
        *rank = t->n - 1;
    }
    if (name == NULL || name->kind != TERM_NAME ||
        !dtype_from_name((Str){name->text->text, name->text->n}, dtype)) {
        return dump_refuse(r->ctx, cursor_place(c), "expected a type such as f64[3,n] here");
    }
    if (*rank > RANK_LIMIT) {
        return diag_refuse_limit(&r->ctx->diags, E_LIMIT_SIZE, t->span,
                                 "a rank of %u; at most %d are possible", *rank, RANK_LIMIT);
    }
    Dim *dims = ARENA_ARRAY(r->arena, *rank, Dim);
    for (uint32_t d = 0; d < *rank; d++) {
        if (!read_dim(r, t->child[d + 1], &dims[d])) {
            return false;
        }
    }
    *shape = *rank == 0 ? NULL : dims;
    c->at++;
    return true;
}

/* `0 1 2` or `0 2, 1 3` in the parentheses: the dimensions of a class, or of groups place by place. */
static bool read_class(DumpReader *r, const Term *call, uint32_t rank, SymmetryClass *c)
{
    uint32_t n = call->n > 0 && call->child[0]->kind == TERM_SEQ ? call->child[0]->n : 0;
    uint32_t *dim = ARENA_ARRAY(r->arena, (size_t)n * call->n, uint32_t);
    bool ok = n > 0 && call->n <= rank;
    for (uint32_t p = 0; ok && p < call->n; p++) {
        const Term *list = call->child[p];
        ok = list->kind == TERM_SEQ && list->n == n;
        for (uint32_t g = 0; ok && g < n; g++) {
            const Term *t = list->child[g];
            ok = t->kind == TERM_INT && t->value < (int64_t)rank;
            dim[g * call->n + p] = ok ? (uint32_t)t->value : 0;
        }
    }
    for (uint32_t k = 0; ok && k < n * call->n; k++) {
        for (uint32_t i = 0; ok && i < k; i++) {
            ok = dim[i] != dim[k];
        }
    }
    c->n = n;
    c->width = call->n;
    c->dim = dim;
    return ok || dump_refuse(r->ctx, call->span, "dimensions are expected, each once");
}

bool read_symmetry(DumpReader *r, Cursor *c, DType dtype, uint32_t rank, const Dim *shape,
                   const Symmetry **declared)
{
    SymmetryClass one;
    *declared = NULL;
    for (const Term *call = cursor_peek(c); call != NULL && call->kind == TERM_CALL &&
                                            symmetry_from_short_word(call->text->text, &one);
         call = cursor_peek(c)) {
        if (!read_class(r, call, rank, &one)) {
            return false;
        }
        *declared = symmetry_with(r->arena, *declared, &one);
        const char *problem = symmetry_problem(r->arena, dtype, rank, shape, *declared);
        if (problem != NULL) {
            return dump_refuse(r->ctx, call->span, "%s", problem);
        }
        c->at++;
    }
    return true;
}

/* One real number, or false without a report when there is none. */
static bool take_real(Cursor *c, Number *out)
{
    uint32_t start = c->at;
    bool minus = cursor_take(c, TERM_PUNCT, "-");
    const Term *t = cursor_peek(c);
    *out = (Number){.dtype = DTYPE_F64};
    if (t != NULL && t->kind == TERM_INT) {
        *out = (Number){.dtype = DTYPE_I64, .i = minus ? -t->value : t->value};
    } else if (t != NULL && t->kind == TERM_FLOAT) {
        out->re = minus ? -t->real : t->real;
    } else if (cursor_is(c, TERM_NAME, "inf")) {
        out->re = minus ? -(double)INFINITY : (double)INFINITY;
    } else if (cursor_is(c, TERM_NAME, "nan")) {
        out->re = (double)NAN;
    } else {
        c->at = start;
        return false;
    }
    c->at++;
    return true;
}

static bool read_complex(Cursor *c, const Term *call, Number *out)
{
    Number part[2];
    for (uint32_t k = 0; call->n == 2 && k < 2; k++) {
        Cursor in = cursor_seq(c->ctx, call->child[k]);
        if (!take_real(&in, &part[k]) || !cursor_done(&in)) {
            break;
        }
        if (k == 1) {
            part[0] = number_cast(part[0], DTYPE_F64);
            part[1] = number_cast(part[1], DTYPE_F64);
            *out = (Number){.dtype = DTYPE_C128, .re = part[0].re, .im = part[1].re};
            c->at++;
            return true;
        }
    }
    return dump_refuse(c->ctx, call->span, "a complex number is complex(re, im)");
}

bool read_number(Cursor *c, Number *out)
{
    if (cursor_is(c, TERM_CALL, "complex")) {
        return read_complex(c, cursor_peek(c), out);
    }
    if (cursor_is(c, TERM_NAME, "true") || cursor_is(c, TERM_NAME, "false")) {
        *out = (Number){.dtype = DTYPE_BOOL, .i = cursor_is(c, TERM_NAME, "true")};
        c->at++;
        return true;
    }
    if (!take_real(c, out)) {
        return dump_refuse(c->ctx, cursor_place(c), "expected a number here");
    }
    if (out->dtype == DTYPE_I64 && out->i == -INT64_MAX && cursor_is(c, TERM_PUNCT, "-")) {
        c->at++; /* the least integer, -9223372036854775807 - 1 */
        const Term *one = cursor_expect(c, TERM_INT, NULL, "1");
        if (one == NULL) {
            return false;
        }
        if (one->value != 1) {
            return dump_refuse(c->ctx, one->span, "only 1 is subtracted from a number");
        }
        out->i = INT64_MIN;
    }
    return true;
}

bool number_fit(Ctx *ctx, Number v, DType dtype, Span span, Number *out)
{
    bool integral = v.dtype == DTYPE_I64, real = v.dtype == DTYPE_F64;
    bool kind = dtype == DTYPE_BOOL     ? v.dtype == DTYPE_BOOL
                : dtype_is_int(dtype)   ? integral
                : dtype_is_float(dtype) ? integral || real
                                        : integral || real || v.dtype == DTYPE_C128;
    Number to = number_cast(v, dtype);
    bool same = dtype_is_int(dtype) ? to.i == v.i
                : integral          ? fabs((double)v.i) <= 0x1p53 && to.re == (double)v.i
                                    : (to.re == v.re || (isnan(to.re) && isnan(v.re))) &&
                                 (to.im == v.im || (isnan(to.im) && isnan(v.im)));
    if (!kind || !same) {
        return dump_refuse(ctx, span, "this number is no %s", dtype_name(dtype));
    }
    *out = to;
    return true;
}

bool read_requirement(DumpReader *r, Cursor *c, Requirement *out)
{
    const Term *text = cursor_expect(c, TERM_STRING, NULL, "the position as a string");
    const Term *indices = NULL, *of = NULL, *dimension = NULL;
    *out = (Requirement){.indices = ""};
    if (cursor_take(c, TERM_NAME, "at")) {
        indices = cursor_expect(c, TERM_STRING, NULL, "names of indices as a string");
        if (indices == NULL) {
            return false;
        }
        out->indices = indices->text->text;
    }
    if (text == NULL || cursor_expect(c, TERM_NAME, "of", "'of'") == NULL ||
        (of = cursor_expect(c, TERM_AT, NULL, "a name such as @A")) == NULL ||
        (dimension = cursor_expect(c, TERM_INT, NULL, "a dimension")) == NULL ||
        cursor_expect(c, TERM_NAME, "below", "'below'") == NULL) {
        return false;
    }
    if (cursor_done(c) || dimension->value < 0 || dimension->value >= RANK_LIMIT) {
        return dump_refuse(c->ctx, dimension->span,
                           "a dimension, and behind 'below' its extent, are expected here");
    }
    if (!read_dim(r, c->term[c->at++], &out->below)) {
        return false;
    }
    out->guarded = cursor_take(c, TERM_NAME, "guarded");
    out->array = of->text;
    out->dimension = (uint32_t)dimension->value;
    out->text = text->text->text;
    if (cursor_take(c, TERM_NAME, "at") && !read_span(r, c, &out->span)) {
        return false;
    }
    return cursor_expect_end(c);
}
