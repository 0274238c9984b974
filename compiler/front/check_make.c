/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the checker makes and says: expressions, labels, values, statements, the bounds of extents and the
 * second place of a message. Nothing here looks into a tree. */
#include <string.h>

#include "front/check_state.h"

void mark_other(Check *c, Diagnostic *d, Span other, const char *text)
{
    uint32_t line = 0, other_line = 0, column = 0;
    Diags *diags = &c->ctx->diags;
    if (diags->n_errors <= diags->limit && d->span.source == other.source &&
        other.source != 0) {
        source_position(&c->ctx->sources, d->span, &line, &column);
        source_position(&c->ctx->sources, other, &other_line, &column);
    }
    diag_mark(d, other, "%s", line != 0 && line == other_line ? "" : text);
}

void fix_call(Check *c, Diagnostic *d, Span at, const char *function)
{
    Str text = at.source == 0 ? (Str){"", 0} : source_get(&c->ctx->sources, at.source)->text;
    if (at.hi <= text.n && at.lo < at.hi && at.hi - at.lo < 1000) {
        diag_fix(d, at, "%s(%.*s)", function, (int)(at.hi - at.lo), text.at + at.lo);
    }
}

bool extent_check(Check *c, int64_t n, Span at)
{
    if (n < 0) {
        diag_error(&c->ctx->diags, E_EXTENT_RANGE, at, "the extent %lld is below 0",
                   (long long)n);
    } else if (n > SIZE_LIMIT) {
        diag_error(&c->ctx->diags, E_EXTENT_RANGE, at, "the extent %lld is too large",
                   (long long)n);
    }
    return n >= 0 && n <= SIZE_LIMIT;
}

Dim extent_of_sum(Kern *k, Span at, Affine x, int64_t divisor)
{
    Arena *a = k->c->arena;
    return affine_to_dim(a, a, &k->c->ctx->syms, &k->k->dims, at, x, divisor);
}

static bool find_define(Check *c, Sym name, bool planned, int64_t *value)
{
    for (uint32_t d = c->options->n_defines; d-- > 0;) { /* the last one counts */
        if (strcmp(c->options->defines[d].name, name->text) == 0 &&
            c->options->defines[d].planned == planned) {
            c->define_used[d] = true;
            *value = c->options->defines[d].value;
            return true;
        }
    }
    return false;
}

bool define_find(Check *c, Sym name, int64_t *value)
{
    return find_define(c, name, false, value);
}

int64_t define_typical(Check *c, Sym name, int64_t otherwise)
{
    int64_t typical = 0;
    return find_define(c, name, true, &typical) ? typical : otherwise;
}

CheckedExpr *expr_new(Kern *k, CheckedKind kind, AstId ast, Span span)
{
    CheckedExpr *e = ARENA_NEW(k->c->arena, CheckedExpr);
    e->kind = kind;
    e->ast = ast;
    e->span = span;
    return e;
}

CheckedExpr *expr_of_index(Kern *k, AstId ast, Span span, int32_t label)
{
    CheckedExpr *e = expr_new(k, CHECKED_INDEX, ast, span);
    e->rank = 1;
    e->label = arena_copy(k->c->arena, &label, sizeof label);
    return e;
}

CheckedExpr *expr_cast_to(Kern *k, CheckedExpr *e, DType t, bool implicit)
{
    CheckedExpr *cast = expr_new(k, CHECKED_MAP, e->ast, e->span);
    cast->op = OP_CAST;
    cast->dtype = t;
    cast->implicit = implicit;
    cast->n = 1;
    cast->arg = arena_copy(k->c->arena, &e, sizeof e);
    return cast;
}

CheckedExpr *expr_poison(Kern *k, AstId ast, Span span)
{
    k->s.poisoned = true;
    return expr_new(k, CHECKED_POISON, ast, span);
}

uint32_t value_new(Kern *k, Value v)
{
    uint32_t id = k->k->values.n;
    vec_push(k->c->arena, &k->k->values, v);
    if (v.name != NULL) {
        map_put(&k->value_by_name, v.name->id, id);
    }
    return id;
}

void statement_add(Kern *k, CheckedStatement s)
{
    vec_push(k->c->arena, &k->k->statements, s);
}

static const char *value_text(Kern *k, uint32_t value)
{
    Sym name = k->k->values.at[value].name;
    return name != NULL ? str_format(k->c->arena, "'%s'", name->text) : "the einsum";
}

void note_shape(Kern *k, Diagnostic *d, uint32_t value)
{
    const Value *v = &k->k->values.at[value];
    if (v->name != NULL) {
        diag_note(d, v->span, "'%s' is declared here with shape %s", v->name->text,
                  shape_text(k->c->arena, &k->k->dims, &v->type));
    }
}

/* A dim that no `dim` declares, named nearly as one that is: f64[vrit] beside `dim virt`. */
static void help_misspelled(Kern *k, Diagnostic *e, Dim d, Dim other)
{
    Sym name = k->k->dims.list.at[d.sym].name, meant = k->k->dims.list.at[other.sym].name;
    uint32_t global = 0;
    if (name != NULL && meant != NULL && name->n > 2 &&
        !map_get(&k->c->global_by_name, name->id, &global) &&
        map_get(&k->c->global_by_name, meant->id, &global) &&
        str_distance((Str){name->text, name->n}, (Str){meant->text, meant->n}, 2) <= 2) {
        diag_help(e, "no dim '%s' is declared: did you mean '%s'?", name->text, meant->text);
    }
}

void extent_mismatch(Kern *k, const Label *l, Dim d, Span at, uint32_t of, Dim other,
                     Span other_at, uint32_t other_of)
{
    Arena *a = k->c->arena;
    const char *what =
        l->name != NULL ? str_format(a, "index '%s'", l->name->text) : "a dimension";
    Diagnostic *e = diag_error(&k->c->ctx->diags, E_EXTENT_MISMATCH, at,
                               "%s is %s in %s but %s in %s", what, dim_text(a, &k->k->dims, d),
                               value_text(k, of), dim_text(a, &k->k->dims, other),
                               of == other_of ? "it" : value_text(k, other_of));
    mark_other(k->c, e, other_at, "here");
    note_shape(k, e, of);
    if (other_of != of) {
        note_shape(k, e, other_of);
    }
    if ((d.sym >= 0) != (other.sym >= 0)) {
        Dim open = d.sym >= 0 ? d : other, fixed = d.sym >= 0 ? other : d;
        const char *name = k->k->dims.list.at[open.sym].name->text;
        diag_help(e, "'%s' is open; -D %s=%lld makes them equal", name, name,
                  (long long)fixed.n);
    } else if (d.sym >= 0 && other.sym >= 0) {
        help_misspelled(k, e, d, other);
        help_misspelled(k, e, other, d);
    }
    k->s.poisoned = true;
}

int32_t label_new(Kern *k, Sym name, Span span, bool left)
{
    Label l = {.name = name, .span = span, .extent = dim_fixed(1), .left = left};
    vec_push(k->c->arena, &k->s.labels, l);
    vec_push(k->c->arena, &k->s.uses, ((LabelUse){.at = span}));
    if (name != NULL) {
        map_put(&k->s.label_by_name, name->id, k->s.labels.n);
    }
    return (int32_t)k->s.labels.n - 1;
}

void label_use(Kern *k, int32_t label, Dim d, Span at, uint32_t of)
{
    Label *l = &k->s.labels.at[label];
    LabelUse *u = &k->s.uses.at[label];
    bool again = u->n > 0 && u->read == k->s.reads; /* a diagonal: extents are equal */
    Dim last = u->dim;
    u->n++;
    u->read = k->s.reads;
    u->dim = d;
    if (again && !dim_eq(last, d)) {
        extent_mismatch(k, l, d, at, of, last, u->at, of);
    } else if (dim_is(l->extent, 1)) {
        l->extent = d;
        u->at = at;
        u->value = of;
    } else if (!dim_is(d, 1) && !dim_eq(d, l->extent)) {
        extent_mismatch(k, l, d, at, of, l->extent, u->at, u->value);
    }
}

CheckedStatement statement_made(Kern *k, const Statement *s, AstId ast, uint32_t target,
                                const int32_t *left, uint32_t rank, CheckedExpr *right)
{
    return (CheckedStatement){
        .ast = ast,
        .span = kern_node(k, ast)->span,
        .target = target,
        .op = OP_COPY,
        .n_labels = s->labels.n,
        .label = s->labels.at,
        .rank = rank,
        .left = rank == 0 ? NULL : arena_copy(k->c->arena, left, rank * sizeof *left),
        .right = right};
}

Statement statement_open(Kern *k, bool whole)
{
    const Statement before = k->s;
    k->s = (Statement){.whole = whole, .whole_rank = -1};
    map_init(&k->s.label_by_name, k->c->arena);
    map_init(&k->s.index_names, k->c->arena);
    return before;
}
