/* SPDX-License-Identifier: Apache-2.0 */
/* Values as they are read: whole, at indices, at positions; and the results of calls, whose statements stand before this one. */
#include "front/check_positions.h"

DType type_when_read(const Kern *k, const Value *v)
{
    DType t = v->type.dtype;
    return k->c->options->narrow == NARROW_BUT_RESULTS ? dtype_narrower(t) : t;
}

CheckedExpr *expr_read(Kern *k, uint32_t value, AstId ast, Span span, const int32_t *label,
                       uint32_t rank)
{
    Value *v = &k->k->values.at[value];
    v->uses++;
    if (v->type.dtype == DTYPE_NONE) {
        return expr_poison(k, ast, span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_READ, ast, span);
    e->read = value;
    e->dtype = type_when_read(k, v);
    e->rank = rank;
    e->label = rank == 0 ? NULL : arena_copy(k->c->arena, label, rank * sizeof *label);
    return e;
}

/* A tensor written without indices: all of it, when the left side has none either. */
CheckedExpr *expr_whole(Kern *k, uint32_t value, AstId ast, Span at)
{
    const Value *v = &k->k->values.at[value];
    uint32_t rank = v->type.rank;
    if (rank == 0 || v->type.dtype == DTYPE_NONE) {
        return expr_read(k, value, ast, at, NULL, 0);
    }
    const char *name = v->name != NULL ? v->name->text : "einsum";
    if (!k->s.whole || (k->s.whole_rank >= 0 && (uint32_t)k->s.whole_rank != rank)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, at,
                                   "'%s' has %u dimension%s but no indices here", name, rank,
                                   rank == 1 ? "" : "s");
        if (v->name != NULL) {
            diag_note(d, v->span, "it is declared here with shape %s",
                      shape_text(k->c->arena, &k->k->dims, &v->type));
        }
        return expr_poison(k, ast, at);
    }
    if (k->s.whole_rank < 0) {
        k->s.whole_rank = (int32_t)rank;
        k->s.whole_at = at;
        k->s.whole_name = v->name;
        k->s.whole_first = (int32_t)k->s.labels.n;
        for (uint32_t a = 0; a < rank; a++) {
            (void)label_new(k, NULL, at, true);
        }
    }
    int32_t label[RANK_LIMIT];
    k->s.reads++;
    for (uint32_t a = 0; a < rank; a++) {
        label[a] = k->s.whole_first + (int32_t)a;
        label_use(k, label[a], v->type.dims[a], at, value);
    }
    return expr_read(k, value, ast, at, label, rank);
}

void whole_check(Kern *k)
{
    if (k->s.whole_rank > 0 && k->s.indexed) {
        const char *name = k->s.whole_name != NULL ? k->s.whole_name->text : "einsum";
        diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, k->s.whole_at,
                   "'%s' has %d dimension%s but no indices, and others here have", name,
                   k->s.whole_rank, k->s.whole_rank == 1 ? "" : "s");
        k->s.poisoned = true;
    }
}

/* ---- at indices ---- */

bool index_count_fits(Kern *k, const AstNode *n, uint32_t value)
{
    const Value *of = &k->k->values.at[value];
    uint32_t count = n->n - 1, rank = of->type.rank;
    if (count == rank) {
        return true;
    }
    Diagnostic *d = diag_error(
        &k->c->ctx->diags, E_RANK_MISMATCH, n->span,
        "%u ind%s here but '%s' has %u dimension%s", count, count == 1 ? "ex" : "ices",
        of->name != NULL ? of->name->text : "einsum", rank, rank == 1 ? "" : "s");
    if (of->name != NULL) {
        diag_note(d, of->span, "'%s' is declared here with shape %s", of->name->text,
                  shape_text(k->c->arena, &k->k->dims, &of->type));
    }
    return false;
}

bool position_of_axis(Kern *k, uint32_t value, uint32_t axis, AstId id, Affine *out,
                      bool *whole)
{
    const AstNode n = *kern_node(k, id);
    Dim d = k->k->values.at[value].type.dims[axis];
    *whole = false;
    if (!position_affine(k, id, out)) {
        return false;
    }
    bool alone = n.kind == AST_NAME && out->n == 1 && !affine_is_dim(out->term[0].var);
    if (alone && !lone_name_is_index(k, &n, d)) {
        return false;
    }
    const Label *l = alone ? &k->s.labels.at[out->term[0].var] : NULL;
    uint32_t how = 0;
    bool shifted = alone && !l->given && k->s.uses.at[out->term[0].var].n == 0 &&
                   map_get(&k->s.index_names, n.name->id, &how) && (how & INDEX_SHIFTED) != 0 &&
                   !dim_is(d, 1);
    *whole = alone && !shifted && (!l->given || dim_eq(l->extent, d));
    if (*whole) {
        label_use(k, (int32_t)out->term[0].var, d, n.span, value);
    } else {
        position_note(k, value, axis, *out, n.span);
    }
    return true;
}

CheckedExpr *expr_indexed(Kern *k, AstId list, uint32_t value, AstId ast)
{
    const AstNode *n = kern_node(k, list);
    uint32_t count = n->n - 1;
    int32_t label[RANK_LIMIT];
    Span at = kern_node(k, ast)->span;
    k->s.indexed = true;
    k->s.reads++;
    if (!index_count_fits(k, n, value)) {
        k->k->values.at[value].uses++;
        return expr_poison(k, ast, at);
    }
    const Affine *positions = NULL;
    const SplitShape *split = NULL;
    Affine *position = ARENA_ARRAY(k->c->arena, count, Affine);
    Span *span = ARENA_ARRAY(k->c->arena, count, Span);
    uint32_t first = k->s.late.n;
    bool ok = true, plain = true;
    for (uint32_t a = 0; a < count; a++) {
        bool whole = false;
        span[a] = kern_node(k, n->child[a + 1])->span;
        ok = position_of_axis(k, value, a, n->child[a + 1], &position[a], &whole) && ok;
        label[a] = whole ? (int32_t)position[a].term[0].var : -1;
        plain = plain && whole;
    }
    if (ok && !plain) {
        positions = position;
        k->k->places = true;
        ok = positions_split(k, value, span, &count, &positions, &split);
        count = positions_labels(positions, count, label);
        positions_are_of(k, first, label, count);
    }
    CheckedExpr *e = expr_read(k, value, ast, at, label, count);
    e->at = positions;
    e->split = split;
    return ok ? e : expr_poison(k, ast, at);
}

/* ---- results of calls ---- */

bool call_is_done(const Kern *k, AstId ast)
{
    uint32_t at = 0;
    return k->k != NULL && map_get(&k->call_by_ast, ast, &at);
}

/* Null: it was refused. */
static const KernelCall *call_of(Kern *k, AstId ast)
{
    uint32_t at = 0;
    (void)map_get(&k->call_by_ast, ast, &at);
    return at == 0 ? NULL : &k->kernel_calls.at[at - 1];
}

/* The result that is meant where a call stands in an expression; UINT32_MAX after a report. */
static uint32_t result_of(Kern *k, AstId ast, const KernelCall *call)
{
    const AstNode n = *kern_node(k, ast);
    uint32_t taken = k->result_taken;
    if (taken > 0 && taken <= call->n) {
        return taken - 1;
    }
    if (call->n != 1) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                                   "'%s' has %u results", n.name->text, call->n);
        diag_help(d,
                  call->n == 0 ? "such a call is a statement: %s(...);"
                               : "each gets a name: (a, b) = %s(...);",
                  n.name->text);
        return UINT32_MAX;
    }
    return 0;
}

CheckedExpr *call_read(Kern *k, AstId ast)
{
    Span span = kern_node(k, ast)->span;
    const KernelCall *call = call_of(k, ast);
    uint32_t r = call == NULL ? UINT32_MAX : result_of(k, ast, call);
    if (r == UINT32_MAX) {
        return expr_poison(k, ast, span);
    }
    uint32_t value = call->value[r], rank = k->k->values.at[value].type.rank;
    if (call->whole) {
        return expr_whole(k, value, ast, span);
    }
    AstId read =
        ast_new(k->c->ctx, &k->c->program->ast, AST_INDEXED, span, NULL, span, &ast, 1);
    for (uint32_t d = 0; d < rank; d++) {
        ast_append(k->c->ctx, &k->c->program->ast, read, call->index[r][d]);
    }
    return rank > 0 ? expr_indexed(k, read, value, ast)
                    : expr_read(k, value, ast, span, NULL, 0);
}

uint32_t call_value(Kern *k, AstId ast)
{
    const KernelCall *call = call_of(k, ast);
    if (call != NULL && !call->whole) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, kern_node(k, ast)->span,
                   "the result of this call has its indices already");
        call = NULL;
    }
    uint32_t r = call == NULL ? UINT32_MAX : result_of(k, ast, call);
    if (r == UINT32_MAX) {
        k->s.poisoned = true;
        return UINT32_MAX;
    }
    return call->value[r];
}
