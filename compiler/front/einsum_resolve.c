/* SPDX-License-Identifier: Apache-2.0 */
/* An einsum string meets its operands. Labels are collected over all terms; each gets the one extent its uses agree
 * on, where an extent of 1 stretches to any other (as in NumPy, also for labels that are summed) and `?` becomes what
 * the others say. Within one operand a repeated label takes a diagonal and its extents must be equal. An ellipsis
 * stands for labels of its own, aligned at the right. Everything is linear in the length of the string. */
#include <stdlib.h>

#include "base/map.h"
#include "front/einsum.h"

typedef struct LabelState {
    EinsumLabel label;
    uint32_t fixed_by; /* operand that gave `extent` */
    Span fixed_at;
    uint32_t last; /* operand of the latest use, +1 */
    Dim last_dim;
} LabelState;

typedef struct Resolve {
    Ctx *ctx;
    Arena *arena;
    const EinsumText *text;
    const DimTable *dims;
    const EinsumOperand *operand;
    EinsumSpec *spec;
    VEC(LabelState) labels;
    Map by_code;
    uint32_t dots;      /* dimensions the longest ellipsis covers */
    int32_t *dot_label; /* [dots] */
    Span dots_at;       /* an ellipsis that covers that many */
    bool failed;
} Resolve;

static const EinsumItem *item(const Resolve *r, const EinsumTerm *t, uint32_t k)
{
    return &r->text->items.at[t->first + k];
}

static bool term_has_dots(const Resolve *r, const EinsumTerm *t)
{
    for (uint32_t k = 0; k < t->n; k++) {
        if (item(r, t, k)->code == EINSUM_DOTS) {
            return true;
        }
    }
    return false;
}

static Sym item_name(Resolve *r, const EinsumItem *it)
{
    const Source *s = source_get(&r->ctx->sources, it->span.source);
    return sym_intern(&r->ctx->syms, s->text.at + it->span.lo, it->span.hi - it->span.lo);
}

static int32_t label_new(Resolve *r, const EinsumItem *it)
{
    LabelState s = {
        .label = {.code = it->code, .span = it->span, .extent = dim_fixed(1), .out = -1}};
    s.label.name = item_name(r, it);
    vec_push(r->arena, &r->labels, s);
    return (int32_t)r->labels.n - 1;
}

/* ---- counts and ranks ---- */

static void note_operand(Resolve *r, Diagnostic *d, uint32_t k)
{
    const EinsumOperand *o = &r->operand[k];
    if (o->declared.source != 0) {
        diag_note(d, o->declared, "operand %u is '%s', declared here with shape %s", k + 1,
                  o->name->text, shape_text(r->arena, r->dims, &o->type));
    }
}

static bool check_counts(Resolve *r, uint32_t n_operands)
{
    uint32_t n_terms = r->text->terms.n;
    if (n_terms == n_operands) {
        return true;
    }
    return diag_refuse(&r->ctx->diags, E_EINSUM_OPERANDS, r->text->span,
                       "the string has %u %s but %u %s given", n_terms,
                       n_terms == 1 ? "term" : "terms", n_operands,
                       n_operands == 1 ? "operand is" : "operands are");
}

static void check_rank(Resolve *r, uint32_t k)
{
    const EinsumTerm *t = &r->text->terms.at[k];
    bool dots = term_has_dots(r, t);
    uint32_t labels = t->n - (dots ? 1 : 0), rank = r->operand[k].type.rank;
    if (dots ? labels <= rank : labels == rank) {
        if (dots && rank - labels > r->dots) {
            r->dots = rank - labels;
            r->dots_at = t->span;
        }
        return;
    }
    r->failed = true;
    Diagnostic *d = diag_error(
        &r->ctx->diags, E_RANK_MISMATCH, t->span, "%u %s here but operand %u has %u %s", labels,
        labels == 1 ? "index" : "indices", k + 1, rank, rank == 1 ? "dimension" : "dimensions");
    if (r->operand[k].span.source == t->span.source) {
        diag_mark(d, r->operand[k].span, "%s", "");
    }
    note_operand(r, d, k);
    if (!dots && labels < rank) {
        diag_help(d, "'...' stands for dimensions without an index");
    }
}

/* ---- extents ---- */

static void extent_mismatch(Resolve *r, const LabelState *s, uint32_t k, Span at, Dim d,
                            Dim other, uint32_t other_operand, Span other_at)
{
    r->failed = true;
    bool dots = s->label.code == EINSUM_DOTS;
    const char *here = dim_text(r->arena, r->dims, d),
               *there = dim_text(r->arena, r->dims, other);
    Diagnostic *e = k == other_operand
                        ? diag_error(&r->ctx->diags, E_EXTENT_MISMATCH, at,
                                     "index '%s' is %s and %s in operand %u",
                                     s->label.name->text, there, here, k + 1)
                        : diag_error(&r->ctx->diags, E_EXTENT_MISMATCH, at,
                                     "%s '%s' is %s in operand %u but %s in operand %u",
                                     dots ? "a dimension of" : "index", s->label.name->text,
                                     here, k + 1, there, other_operand + 1);
    diag_mark(e, other_at, "%s", "");
    note_operand(r, e, k);
    if (other_operand != k) {
        note_operand(r, e, other_operand);
    }
}

static void use_label(Resolve *r, int32_t label, uint32_t k, const EinsumItem *it, Dim d)
{
    LabelState *s = &r->labels.at[label];
    s->label.uses++;
    if (s->last == k + 1 && !dim_eq(s->last_dim, d) && !dim_is_wild(d) &&
        !dim_is_wild(s->last_dim)) {
        extent_mismatch(r, s, k, it->span, d, s->last_dim, k, s->label.span);
        return;
    }
    s->last = k + 1;
    s->last_dim = d;
    bool open = dim_is(s->label.extent, 1) || dim_is_wild(s->label.extent);
    if (dim_is_wild(d) && dim_is_wild(s->label.extent) && d.n > s->label.extent.n) {
        s->label.extent = d; /* the larger one is planned for */
    }
    if (dim_is(d, 1) || (dim_is_wild(d) && !dim_is(s->label.extent, 1))) {
        return;
    }
    if (open) {
        s->label.extent = d;
        s->fixed_by = k;
        s->fixed_at = it->span;
    } else if (!dim_eq(s->label.extent, d)) {
        extent_mismatch(r, s, k, it->span, d, s->label.extent, s->fixed_by, s->fixed_at);
    }
}

static void use_term(Resolve *r, uint32_t k)
{
    const EinsumTerm *t = &r->text->terms.at[k];
    const TensorType *type = &r->operand[k].type;
    int32_t *axis = ARENA_ARRAY(r->arena, type->rank, int32_t);
    uint32_t at = 0, covered = type->rank - (t->n - 1); /* when there is an ellipsis */
    for (uint32_t j = 0; j < t->n; j++) {
        const EinsumItem *it = item(r, t, j);
        if (it->code == EINSUM_DOTS) {
            for (uint32_t c = 0; c < covered; c++) {
                int32_t label = r->dot_label[r->dots - covered + c];
                use_label(r, label, k, it, type->dims[at]);
                axis[at++] = label;
            }
            continue;
        }
        uint32_t label = 0;
        if (!map_get(&r->by_code, it->code, &label)) {
            label = (uint32_t)label_new(r, it);
            map_put(&r->by_code, it->code, label);
        }
        use_label(r, (int32_t)label, k, it, type->dims[at]);
        axis[at++] = (int32_t)label;
    }
    r->spec->axis[k] = axis;
    r->spec->axis_count[k] = type->rank;
}

static void make_dot_labels(Resolve *r)
{
    r->dot_label = ARENA_ARRAY(r->arena, r->dots, int32_t);
    for (uint32_t c = 0; c < r->dots; c++) {
        r->dot_label[c] = label_new(r, &(EinsumItem){EINSUM_DOTS, r->dots_at});
        r->labels.at[r->dot_label[c]].label.name = sym_cstr(&r->ctx->syms, "...");
    }
}

/* ---- the output ---- */

static void out_push(Resolve *r, int32_t label)
{
    EinsumSpec *s = r->spec;
    if (s->rank == RANK_LIMIT) {
        if (!r->failed) {
            diag_limit(&r->ctx->diags, E_LIMIT_SIZE, r->text->span,
                       "the result has more than %d dimensions", RANK_LIMIT);
        }
        r->failed = true;
        return;
    }
    r->labels.at[label].label.out = (int32_t)s->rank;
    s->out[s->rank++] = label;
}

static void out_dots(Resolve *r)
{
    for (uint32_t c = 0; c < r->dots; c++) {
        out_push(r, r->dot_label[c]);
    }
}

typedef struct CodeLabel {
    uint32_t code;
    int32_t label;
} CodeLabel;

static int by_code(const void *a, const void *b)
{
    uint32_t x = ((const CodeLabel *)a)->code, y = ((const CodeLabel *)b)->code;
    return (x > y) - (x < y);
}

/* No '->': the ellipsis, then every label used once, in the order of Unicode. */
static void implicit_output(Resolve *r)
{
    out_dots(r);
    CodeLabel *once = ARENA_ARRAY(r->arena, r->labels.n, CodeLabel);
    size_t n = 0;
    for (uint32_t k = 0; k < r->labels.n; k++) {
        const EinsumLabel *l = &r->labels.at[k].label;
        if (l->code != EINSUM_DOTS && l->uses == 1) {
            once[n++] = (CodeLabel){l->code, (int32_t)k};
        }
    }
    if (n > 1) {
        qsort(once, n, sizeof *once, by_code);
    }
    for (size_t k = 0; k < n; k++) {
        out_push(r, once[k].label);
    }
}

static void output_label(Resolve *r, const EinsumItem *it)
{
    uint32_t label = 0;
    const char *name = item_name(r, it)->text;
    if (!map_get(&r->by_code, it->code, &label)) {
        r->failed = true;
        diag_error(&r->ctx->diags, E_EINSUM_OUTPUT, it->span,
                   "index '%s' of the output is in no operand", name);
    } else if (r->labels.at[label].label.out >= 0) {
        r->failed = true;
        Diagnostic *d = diag_error(&r->ctx->diags, E_EINSUM_OUTPUT, it->span,
                                   "index '%s' is twice in the output", name);
        const EinsumTerm *t = &r->text->output;
        for (uint32_t k = 0; k < t->n; k++) {
            if (item(r, t, k)->code == it->code) {
                diag_mark(d, item(r, t, k)->span, "%s", "");
                break;
            }
        }
    } else {
        out_push(r, (int32_t)label);
    }
}

static void explicit_output(Resolve *r)
{
    const EinsumTerm *t = &r->text->output;
    for (uint32_t k = 0; k < t->n; k++) {
        if (item(r, t, k)->code == EINSUM_DOTS) {
            out_dots(r);
        } else {
            output_label(r, item(r, t, k));
        }
    }
    if (r->dots > 0 && !term_has_dots(r, t)) {
        r->failed = true;
        Span at = t->n > 0 ? t->span : r->text->span;
        Diagnostic *d = diag_error(&r->ctx->diags, E_EINSUM_ELLIPSIS, at,
                                   "the output lacks the '...' of the operands");
        diag_mark(d, r->dots_at, "%s", "");
        diag_help(d, "dimensions without an index are never summed; name them to sum them");
    }
}

/* ---- all of it ---- */

static void warn_silent_sums(Resolve *r)
{
    for (uint32_t k = 0; k < r->labels.n && r->spec->n_operands > 1; k++) {
        const EinsumLabel *l = &r->labels.at[k].label;
        if (l->uses == 1 && l->out < 0 && !dim_is(l->extent, 1)) {
            diag_warning(&r->ctx->diags, W_SILENT_SUM, l->span,
                         "index '%s' occurs once and is summed", l->name->text);
        }
    }
}

EinsumSpec *einsum_resolve(Ctx *ctx, Arena *arena, const EinsumText *text, const DimTable *dims,
                           const EinsumOperand *operand, uint32_t n_operands)
{
    Resolve r = {.ctx = ctx, .arena = arena, .text = text, .dims = dims, .operand = operand};
    map_init(&r.by_code, arena);
    if (!check_counts(&r, n_operands)) {
        return NULL;
    }
    for (uint32_t k = 0; k < n_operands; k++) {
        check_rank(&r, k);
    }
    if (r.failed) {
        return NULL;
    }
    r.spec = ARENA_NEW(arena, EinsumSpec);
    r.spec->n_operands = n_operands;
    r.spec->axis_count = ARENA_ARRAY(arena, n_operands, uint32_t);
    r.spec->axis = ARENA_ARRAY(arena, n_operands, int32_t *);
    r.spec->out = ARENA_ARRAY(arena, RANK_LIMIT, int32_t);
    make_dot_labels(&r);
    for (uint32_t k = 0; k < n_operands; k++) {
        use_term(&r, k);
    }
    if (text->has_output) {
        explicit_output(&r);
    } else {
        implicit_output(&r);
    }
    if (r.failed) {
        return NULL;
    }
    warn_silent_sums(&r);
    r.spec->n_labels = r.labels.n;
    r.spec->label = ARENA_ARRAY(arena, r.labels.n, EinsumLabel);
    for (uint32_t k = 0; k < r.labels.n; k++) {
        r.spec->label[k] = r.labels.at[k].label;
    }
    return r.spec;
}
