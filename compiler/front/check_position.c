/* SPDX-License-Identifier: Apache-2.0 */
/* Positions: what stands between brackets beside plain indices. A position is a sum of indices, dims and whole numbers, each with a
 * number as its factor, or dims (check_split.c). A name there is an index if the statement has one of that name (on its left side, in a reduction, or
 * alone between brackets); else it is a dim or a constant. Where an index is listed, `i < n` gives it its extent. */
#include <string.h>

#include "front/check_positions.h"

/* ---- which names are indices ---- */

static void note_name(Kern *k, const AstNode *n, uint32_t how)
{
    uint32_t before = 0;
    if (n->kind == AST_NAME) {
        (void)map_get(&k->s.index_names, n->name->id, &before);
        map_put(&k->s.index_names, n->name->id, before | how);
    }
}

/* A whole number of the kernel, which no index is called like: `x[t]` is the element at that position. */
static bool is_element_position(Kern *k, const AstNode *n)
{
    uint32_t at = 0;
    const Value *v = n->kind == AST_NAME && map_get(&k->value_by_name, n->name->id, &at)
                         ? &k->k->values.at[at]
                         : NULL;
    return v != NULL && v->type.rank == 0 && dtype_is_int(v->type.dtype) &&
           !map_get(&k->s.index_names, n->name->id, &at);
}

bool is_order(const AstNode *n)
{
    return n->kind == AST_COMPARE &&
           (n->op == OP_LT || n->op == OP_LE || n->op == OP_GT || n->op == OP_GE);
}

/* The first name in the expression that is an index so far, or can be nothing else. */
static bool first_index(Kern *k, AstId id, AstNode *name)
{
    const AstNode n = *kern_node(k, id);
    uint32_t how = 0;
    bool found = n.kind == AST_NAME && !is_element_position(k, &n) &&
                 (map_get(&k->s.index_names, n.name->id, &how) || !dim_known(k, n.name));
    if (found) {
        *name = n;
    }
    for (uint32_t c = n.kind == AST_INDEXED ? 1 : 0; c < n.n && !found && n.kind != AST_CALL;
         c++) {
        found = first_index(k, n.child[c], name);
    }
    return found;
}

bool condition_index(Kern *k, AstId id, AstNode *name)
{
    const AstNode n = *kern_node(k, id);
    *name = *kern_node(k, n.child[0]);
    return (name->kind == AST_NAME && !is_element_position(k, name)) ||
           first_index(k, n.child[0], name);
}

/* Is the name of dimension c also that of one before it? */
static bool is_repeated(Kern *k, const AstNode *n, uint32_t c)
{
    bool same = false;
    for (uint32_t d = 1; d < c && !same; d++) {
        const AstNode other = *kern_node(k, n->child[d]);
        same = other.kind == AST_NAME && other.name == kern_node(k, n->child[c])->name;
    }
    return same;
}

static void note_alone(Kern *k, const AstNode *n, uint32_t c, bool named)
{
    const AstNode name = *kern_node(k, n->child[c]);
    uint32_t before = 0;
    if (n->kind == AST_INDEXED && !named && is_element_position(k, &name)) {
        return;
    }
    bool again = n->kind == AST_INDEXED && map_get(&k->s.index_names, name.name->id, &before) &&
                 !is_repeated(k, n, c);
    note_name(k, &name,
              named || again || n->kind == AST_REDUCE ? INDEX_ALONE | INDEX_NAMED
                                                      : INDEX_ALONE);
}

/* `left`: the left side of the statement. */
static void scan_alone(Kern *k, AstId id, bool listed, bool left)
{
    const AstNode n = *kern_node(k, id);
    for (uint32_t c = 0; c < n.n; c++) {
        const AstNode child = *kern_node(k, n.child[c]);
        bool place = listed || ((n.kind == AST_INDEXED || n.kind == AST_REDUCE) && c > 0);
        if (place && child.kind == AST_NAME) {
            note_alone(k, &n, c, left);
        } else if (place && child.kind == AST_COMPARE) {
            AstNode name;
            if (condition_index(k, n.child[c], &name)) {
                bool lone = kern_node(k, child.child[0])->kind == AST_NAME;
                note_name(k, &name,
                          lone && is_order(&child) ? INDEX_ALONE | INDEX_SHIFTED | INDEX_NAMED
                                                   : INDEX_ALONE | INDEX_NAMED);
            }
            scan_alone(k, n.child[c], false, false);
        } else if (!place || child.kind != AST_NAME) {
            scan_alone(k, n.child[c], false, n.kind == AST_ASSIGN && c == 0);
        }
    }
}

/* Names that are indices, in positions of several terms. */
static void scan_shifted(Kern *k, AstId id, bool position)
{
    const AstNode n = *kern_node(k, id);
    uint32_t how = 0;
    if (position && n.kind == AST_NAME && map_get(&k->s.index_names, n.name->id, &how)) {
        note_name(k, &n, INDEX_SHIFTED);
    }
    for (uint32_t c = 0; c < n.n; c++) {
        const AstNode child = *kern_node(k, n.child[c]);
        bool place = (n.kind == AST_INDEXED || n.kind == AST_REDUCE) && c > 0;
        bool inside = place ? child.kind != AST_NAME : position;
        if (n.kind == AST_CALL && strcmp(n.name->text, "index") == 0 &&
            child.kind == AST_NAME && map_get(&k->s.index_names, child.name->id, &how)) {
            note_name(k, &child, INDEX_NAMED);
        }
        scan_shifted(k, n.child[c], inside);
    }
}

void positions_scan(Kern *k, AstId statement)
{
    map_init(&k->s.index_names, k->c->arena);
    scan_alone(k, statement, false, false);
    scan_shifted(k, statement, false);
}

/* ---- positions ---- */

static bool refuse(Kern *k, Span at, const char *what)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_SYNTAX, at, "%s", what);
    diag_help(d,
              "a position is a sum of indices, dims and whole numbers: i, 2*i + d, n - 1 - i");
    return false;
}

static bool refuse_gather(Kern *k, Span at)
{
    return diag_refuse(&k->c->ctx->diags, E_SYNTAX, at,
                       "this position does not depend on values");
}

static bool name_affine(Kern *k, const AstNode *n, Affine *out)
{
    uint32_t label = 0, how = 0;
    bool ok = true;
    if (map_get(&k->s.label_by_name, n->name->id, &label) && label > 0) {
        *out = affine_var(k->c->arena, label - 1);
        return true;
    }
    if (map_get(&k->s.index_names, n->name->id, &how)) {
        int32_t l = label_new(k, n->name, n->span, k->on_left);
        *out = affine_var(k->c->arena, (VarRef)l);
        return true;
    }
    if (k->on_left && !dim_known(k, n->name)) {
        *out = affine_var(k->c->arena, (VarRef)label_new(k, n->name, n->span, true));
        return true;
    }
    if (!dim_known(k, n->name)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, n->span,
                                   "'%s' is no index of this statement, and no dim or constant",
                                   n->name->text);
        const char *near = suggest_dim(k, n->name);
        if (near != NULL) {
            diag_meant(d, n->span, near);
        } else {
            diag_help(d,
                      "an index that only stands in sums is given its range where it is "
                      "listed: [%s < 3]",
                      n->name->text);
        }
        return false;
    }
    Dim d = dim_named(k, n->name, n->span, &ok);
    *out = affine_extent(k->c->arena, d);
    return ok;
}

bool position_affine(Kern *k, AstId id, Affine *out)
{
    const AstNode n = *kern_node(k, id);
    *out = affine_const(0);
    if (n.kind == AST_INT) {
        out->base = n.value.i;
        return true;
    }
    if (n.kind == AST_NAME) {
        return name_affine(k, &n, out);
    }
    if (n.kind == AST_UNARY && n.op == OP_NEG) {
        Affine x;
        return position_affine(k, n.child[0], &x) &&
               (affine_try_add(k->c->arena, *out, -1, x, out) ||
                refuse(k, n.span, "this position does not fit 64 bits"));
    }
    bool sum = n.kind == AST_CHAIN && (n.op == OP_ADD || n.op == OP_SUB);
    bool product = n.kind == AST_CHAIN && (n.op == OP_MUL || n.op == OP_DIV);
    if (n.kind == AST_CALL && strcmp(n.name->text, "extent") == 0 && n.n == 1 &&
        kern_node(k, n.child[0])->kind == AST_NAME &&
        dim_known(k, kern_node(k, n.child[0])->name)) {
        const AstNode d = *kern_node(k, n.child[0]);
        bool ok = true;
        *out = affine_extent(k->c->arena, dim_named(k, d.name, d.span, &ok));
        return ok;
    }
    if (!sum && !product) {
        return n.kind == AST_BROKEN    ? false
               : n.kind == AST_INDEXED ? refuse_gather(k, n.span)
                                       : refuse(k, n.span, "this is no position");
    }
    if (!position_affine(k, n.child[0], out)) {
        return false;
    }
    for (uint32_t c = 1; c < n.n; c++) {
        Affine y;
        if (!position_affine(k, n.child[c], &y)) {
            return false;
        }
        if (n.link[c] == OP_DIV) {
            return refuse(k, n.span, "a position is not divided");
        }
        if (product
                ? !position_times(k, n.span, out, y)
                : !affine_try_add(k->c->arena, *out, n.link[c] == OP_SUB ? -1 : 1, y, out) &&
                      !refuse(k, n.span, "this position does not fit 64 bits")) {
            return false;
        }
    }
    return out->n <= 64 || refuse(k, n.span, "a position has at most 64 terms");
}

/* ---- labels of positions ---- */

static int64_t size_of(int64_t coef)
{
    return coef < 0 ? -coef : coef;
}

/* The labels of the positions, each once: in the order of dimensions, in one the faster ones last. */
uint32_t positions_labels(const Affine *at, uint32_t rank, int32_t *label)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t first = n;
        for (uint32_t i = 0; i < at[d].n; i++) {
            int32_t l = (int32_t)at[d].term[i].var;
            bool seen = affine_is_dim(at[d].term[i].var) || n == RANK_LIMIT;
            for (uint32_t k = 0; k < n && !seen; k++) {
                seen = label[k] == l;
            }
            uint32_t to = n;
            for (; !seen && to > first &&
                   size_of(at[d].term[i].coef) >
                       size_of(affine_coef(at[d], (VarRef)label[to - 1]));
                 to--) {
                label[to] = label[to - 1];
            }
            if (!seen) {
                label[to] = l;
                n++;
            }
        }
    }
    return n;
}

/* Can the name be a number here: a dim of the kernel's head, or a whole number of the program? *d: it. */
static bool is_number(Kern *k, const AstNode *n, Dim *d)
{
    uint32_t found = 0;
    bool ok = true;
    if (map_get(&k->dim_by_name, n->name->id, &found)) {
        *d = k->dims.at[found].dim;
        return k->dims.at[found].ok;
    }
    if (!global_named(k, n->name, &found)) {
        return false;
    }
    const CheckedExpr *value = k->c->globals.at[found].value;
    if (value == NULL || value->kind != CHECKED_CONST || !dtype_is_int(value->value.dtype)) {
        return false;
    }
    *d = dim_named(k, n->name, n->span, &ok);
    return ok;
}

bool lone_name_is_index(Kern *k, const AstNode *n, Dim extent)
{
    uint32_t how = 0;
    Dim number = {0};
    (void)map_get(&k->s.index_names, n->name->id, &how);
    if ((how & INDEX_NAMED) != 0 || !is_number(k, n, &number) || dim_eq(number, extent)) {
        return true; /* a position of the extent would be past the end */
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_NEEDS_REDUCTION, n->span,
                   "index or position? '%s' is the name of a dim or a constant", n->name->text);
    diag_help(d, "write %s + 0 for the position; as an index, name the reduction: sum[%s](...)",
              n->name->text, n->name->text);
    note_name(k, n, INDEX_NAMED); /* said once */
    return false;
}

void positions_are_of(Kern *k, uint32_t first, const int32_t *label, uint32_t n)
{
    const int32_t *own = arena_copy(k->c->arena, label, n * sizeof *label);
    for (uint32_t i = first; i < k->s.late.n; i++) {
        k->s.late.at[i].label = own;
        k->s.late.at[i].n_labels = n;
    }
}

bool left_index(Kern *k, const AstNode *i, int32_t *label)
{
    uint32_t before = 0;
    if (map_get(&k->s.label_by_name, i->name->id, &before) && before > 0) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_REPEATED_INDEX, i->span,
                                   "index '%s' is twice on the left", i->name->text);
        mark_other(k->c, d, k->s.labels.at[before - 1].span, "first here");
        return false;
    }
    *label = label_new(k, i->name, i->span, true);
    return true;
}

/* ---- positions that are values ---- */

bool position_is_value(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    uint32_t at = 0;
    bool scalar = n.kind == AST_NAME && map_get(&k->value_by_name, n.name->id, &at) &&
                  !map_get(&k->s.index_names, n.name->id, &at) && !dim_known(k, n.name);
    bool call =
        n.kind == AST_REDUCE || (n.kind == AST_CALL && strcmp(n.name->text, "extent") != 0);
    bool has = n.kind == AST_INDEXED || scalar || call;
    for (uint32_t c = 0; c < n.n && !has; c++) {
        has = position_is_value(k, n.child[c]);
    }
    return has;
}

bool gather_is(Kern *k, const AstNode *n)
{
    bool any = false;
    for (uint32_t c = 1; c < n->n && !any; c++) {
        any = position_is_value(k, n->child[c]);
    }
    return any;
}

/* ---- as values ---- */

static CheckedExpr *variable_number(Kern *k, AstId ast, Span span, VarRef v)
{
    if (is_product_var(v)) {
        IndexProduct p = k->products.at[v - PRODUCT_VAR];
        return chain_of_two(k, OP_MUL, ast, span, variable_number(k, ast, span, p.label),
                            variable_number(k, ast, span, affine_dim(p.factor.sym)));
    }
    CheckedExpr *e = affine_is_dim(v) ? expr_new(k, CHECKED_EXTENT, ast, span)
                                      : expr_of_index(k, ast, span, (int32_t)v);
    e->dim = affine_is_dim(v) ? affine_sym(v) : 0;
    e->weak = WEAK_INT;
    return e;
}

CheckedExpr *position_number(Kern *k, AstId ast, Span span, Affine x)
{
    CheckedExpr *sum = NULL;
    for (uint32_t i = 0; i < x.n; i++) {
        CheckedExpr *e = variable_number(k, ast, span, x.term[i].var);
        if (x.term[i].coef != 1) {
            CheckedExpr *by = weak_const(k, ast, span, WEAK_INT, x.term[i].coef, 0);
            e = chain_of_two(k, OP_MUL, ast, span, by, e);
        }
        if (sum == NULL && x.n == 1 && x.base == 0) {
            return e;
        }
        if (sum == NULL) {
            sum = expr_new(k, CHECKED_CHAIN, ast, span);
            sum->op = OP_ADD;
        }
        chain_add(k, sum, OP_ADD, e);
    }
    if (sum == NULL) {
        return weak_const(k, ast, span, WEAK_INT, x.base, 0);
    }
    if (x.base != 0) {
        chain_add(k, sum, OP_ADD, weak_const(k, ast, span, WEAK_INT, x.base, 0));
    }
    return chain_type(k, sum);
}
