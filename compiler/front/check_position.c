/* SPDX-License-Identifier: Apache-2.0 */
/* Positions: what stands between brackets beside plain indices. A position is a sum of indices, dims and whole numbers, each with a
 * number as its factor, or dims (check_split.c). A name there is an index if the statement has one of that name (on its left side, in a reduction, or
 * alone between brackets); else it is a dim or a constant. Where an index is listed, `i < n` gives it its extent. */
#include <string.h>

#include "front/check_parts.h"

/* ---- which names are indices ---- */

static void note_name(Kern *k, const AstNode *n, uint32_t how)
{
    uint32_t before = 0;
    if (n->kind == AST_NAME) {
        (void)map_get(&k->index_names, n->name->id, &before);
        map_put(&k->index_names, n->name->id, before | how);
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
           !map_get(&k->index_names, n->name->id, &at);
}

static bool is_order(const AstNode *n)
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
                 (map_get(&k->index_names, n.name->id, &how) || !dim_known(k, n.name));
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
    bool again = n->kind == AST_INDEXED && map_get(&k->index_names, name.name->id, &before) &&
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
    if (position && n.kind == AST_NAME && map_get(&k->index_names, n.name->id, &how)) {
        note_name(k, &n, INDEX_SHIFTED);
    }
    for (uint32_t c = 0; c < n.n; c++) {
        const AstNode child = *kern_node(k, n.child[c]);
        bool place = (n.kind == AST_INDEXED || n.kind == AST_REDUCE) && c > 0;
        bool inside = place ? child.kind != AST_NAME : position;
        if (n.kind == AST_CALL && strcmp(n.name->text, "index") == 0 &&
            child.kind == AST_NAME && map_get(&k->index_names, child.name->id, &how)) {
            note_name(k, &child, INDEX_NAMED);
        }
        scan_shifted(k, n.child[c], inside);
    }
}

void positions_scan(Kern *k, AstId statement)
{
    map_init(&k->index_names, k->c->arena);
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
    if (map_get(&k->label_by_name, n->name->id, &label) && label > 0) {
        *out = affine_var(k->c->arena, label - 1);
        return true;
    }
    if (map_get(&k->index_names, n->name->id, &how)) {
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
    global_evaluate(k->c, found, n->span);
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
    (void)map_get(&k->index_names, n->name->id, &how);
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
    for (uint32_t i = first; i < k->late.n; i++) {
        k->late.at[i].label = own;
        k->late.at[i].n_labels = n;
    }
}

/* ---- as values ---- */

static CheckedExpr *variable_number(Kern *k, AstId ast, Span span, VarRef v)
{
    if (is_product_var(v)) {
        IndexProduct p = k->products.at[v - PRODUCT_VAR];
        return chain_of_two(k, OP_MUL, ast, span, variable_number(k, ast, span, p.label),
                            variable_number(k, ast, span, affine_dim(p.factor.sym)));
    }
    CheckedExpr *e = expr_new(k, affine_is_dim(v) ? CHECKED_EXTENT : CHECKED_INDEX, ast, span);
    e->weak = WEAK_INT;
    if (affine_is_dim(v)) {
        e->dim = affine_sym(v);
    } else {
        int32_t label = (int32_t)v;
        e->rank = 1;
        e->label = arena_copy(k->c->arena, &label, sizeof label);
    }
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

/* ---- where an index is listed ---- */

/* Does it name an index, one that is known by now? */
static bool names_index(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    uint32_t label = 0;
    bool any =
        n.kind == AST_NAME && map_get(&k->label_by_name, n.name->id, &label) && label > 0;
    for (uint32_t c = 0; c < n.n && !any; c++) {
        any = names_index(k, n.child[c]);
    }
    return any;
}

static bool give_extent(Kern *k, const AstNode *item, int32_t label)
{
    bool ok = true;
    Dim d = extent_of(k, item->child[1], &ok);
    if (ok && item->op == OP_LE) {
        AstId one = item->child[1];
        if (d.sym < 0) {
            d = dim_fixed(d.n + 1);
        } else {
            DimTerm term = {d, 1};
            d = dims_sum(k->c->arena, k->c->arena, &k->c->ctx->syms, &k->k->dims,
                         kern_node(k, one)->span, 1, 1, &term, 1);
        }
    }
    k->labels.at[label].extent = d;
    k->labels.at[label].given = true;
    return ok;
}

/* `k < n[b]`, `tok[n] == v`: a name that stands alone before the sign is a new index, if it was none before. */
static bool value_item(Kern *k, AstId id, int32_t *label, CheckedExpr **condition)
{
    const AstNode n = *kern_node(k, id), name = *kern_node(k, n.child[0]);
    uint32_t known = 0;
    *label = -1;
    if (name.kind == AST_NAME && !position_is_value(k, n.child[0]) &&
        !(map_get(&k->label_by_name, name.name->id, &known) && known > 0)) {
        *label = label_new(k, name.name, name.span, false);
        k->labels.at[*label].bound = true;
    }
    CheckedExpr *two[2] = {position_computed(k, n.child[0]), position_computed(k, n.child[1])};
    *condition = expr_map(k, n.op, id, n.span, n.at, two, 2);
    return (*condition)->kind != CHECKED_POISON;
}

bool position_item(Kern *k, AstId id, bool left, int32_t *label, CheckedExpr **condition)
{
    const AstNode n = *kern_node(k, id);
    AstNode name;
    uint32_t known = 0;
    if (!left && (position_is_value(k, n.child[0]) || position_is_value(k, n.child[1]))) {
        return value_item(k, id, label, condition);
    }
    bool any = condition_index(k, id, &name), lone = kern_node(k, n.child[0])->kind == AST_NAME;
    *condition = NULL;
    bool listed = any && map_get(&k->label_by_name, name.name->id, &known) && known > 0 &&
                  (k->labels.at[known - 1].bound || k->labels.at[known - 1].left);
    *label = -1;
    if (any && !listed && (!left || (lone && is_order(&n)))) {
        bool range = lone && (n.op == OP_LT || n.op == OP_LE) && !names_index(k, n.child[1]);
        *label = label_new(k, name.name, name.span, left);
        k->labels.at[*label].bound = !left;
        if (range) {
            return give_extent(k, &n, *label);
        }
    }
    if (left) {
        return diag_refuse(
            &k->c->ctx->diags, E_SYNTAX, n.span,
            "on the left an index is given its range by dims and numbers alone: i < n");
    }
    Affine x, y;
    if (!position_affine(k, n.child[0], &x) || !position_affine(k, n.child[1], &y)) {
        return false;
    }
    CheckedExpr *two[2] = {position_number(k, id, n.span, x),
                           position_number(k, id, n.span, y)};
    *condition = expr_map(k, n.op, id, n.span, n.at, two, 2);
    return true;
}

/* ---- bounds ---- */

static void put_affine(Kern *k, Text *t, Affine x)
{
    bool first = true;
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t coef = x.term[i].coef, size = coef < 0 ? -coef : coef;
        text_put(t, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
        if (size != 1) {
            text_printf(t, "%lld*", (long long)size);
        }
        dim_print(t, &k->k->dims, dim_open(affine_sym(x.term[i].var)));
        first = false;
    }
    if (x.base != 0 || first) {
        text_printf(t,
                    first        ? "%lld"
                    : x.base < 0 ? " - %lld"
                                 : " + %lld",
                    (long long)(first || x.base > 0 ? x.base : -x.base));
    }
}

/* The largest (or least) position, of dims; false when it does not fit. */
static bool extreme(Kern *k, Affine x, bool most, Affine *out)
{
    Arena *a = k->c->arena;
    *out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        const AffineTerm t = x.term[i];
        Affine own = {0, 1, &t};
        int64_t coef = 1;
        if (!affine_is_dim(t.var)) {
            own = affine_extent(a, k->labels.at[t.var].extent);
            own.base--;
            coef = (t.coef > 0) == most ? t.coef : 0;
        }
        if (!affine_try_add(a, *out, coef, own, out)) {
            return false;
        }
    }
    return true;
}

static void report(Kern *k, const LateRead *r, int problem)
{
    const Value *v = &k->k->values.at[r->value];
    const char *name = v->name != NULL ? v->name->text : "the einsum";
    Affine reached;
    Text t = text_new(k->c->arena);
    bool fits = extreme(k, r->at, problem > 0, &reached);
    if (fits) {
        put_affine(k, &t, reached);
    }
    const char *where = r->part ? "a part of " : "";
    Diagnostic *e = diag_error(
        &k->c->ctx->diags, E_EXTENT_MISMATCH, r->span,
        problem > 0 ? "this reaches position %s, and %sdimension %u of '%s' has %s positions"
                    : "this may reach position %s of %sdimension %u of '%s', before the first "
                      "(it has %s)",
        fits ? t.at : "beyond 64 bits", where, r->axis, name,
        shape_text(k->c->arena, &k->k->dims, &(TensorType){v->type.dtype, 1, &r->extent}));
    note_shape(k, e, r->value);
    if (problem > 0 && fits) {
        Text need = text_new(k->c->arena);
        reached.base++;
        put_affine(k, &need, reached);
        diag_help(e, "it needs an extent of %s there", need.at);
    } else if (problem < 0 && fits && reached.n == 0 && r->at.n == 0 && v->name != NULL) {
        diag_help(e,
                  "%s[%lld] is what the steps of a recurrence begin with, where one reads "
                  "%s[t - %lld]",
                  name, (long long)reached.base, name, -(long long)reached.base);
    }
    k->poisoned = true;
}

/* x in dims that a call gives or products of them, what is added up of them in their place; false where something is divided. */
static bool spread(Kern *k, Affine x, Affine *out)
{
    Arena *a = k->c->arena;
    for (uint32_t d = k->k->dims.list.n; d-- > 0;) {
        const DimInfo *info = &k->k->dims.list.at[d];
        VarRef v = affine_dim((int32_t)d);
        if (info->n_terms == 0 || !affine_uses(x, v)) {
            continue;
        }
        Affine sum = affine_const(info->base);
        for (uint32_t i = 0; i < info->n_terms; i++) {
            const AffineTerm t = {affine_dim(info->term[i].dim.sym), info->term[i].coef};
            sum = affine_add(a, sum, 1, (Affine){0, 1, &t});
        }
        const AffineTerm own = {v, affine_coef(x, v)};
        if (info->divisor > 1 || !affine_try_add(a, x, -1, (Affine){0, 1, &own}, &x) ||
            !affine_try_add(a, x, own.coef, sum, &x)) {
            return false;
        }
    }
    *out = x;
    return true;
}

bool extent_of_room(Kern *k, Affine room, Span at, Dim *out)
{
    Arena *a = k->c->arena;
    if (!spread(k, room, &room)) {
        return false;
    }
    DimTerm *term = ARENA_ARRAY(a, room.n, DimTerm);
    for (uint32_t i = 0; i < room.n; i++) {
        term[i] = (DimTerm){dim_open(affine_sym(room.term[i].var)), room.term[i].coef};
    }
    *out = dims_sum(a, a, &k->c->ctx->syms, &k->k->dims, at, room.base, room.n, term, 1);
    return out->sym >= 0 || (out->n >= 0 && out->n <= SIZE_LIMIT);
}

bool slower_reach_end(Kern *k, const LateRead *r)
{
    Arena *a = k->c->arena;
    bool all = true;
    for (uint32_t i = 1; i <= r->slower && all; i++) {
        const LateRead *slower = r - i;
        Affine most, room;
        for (uint32_t t = 0; t < slower->at.n && all; t++) {
            VarRef v = slower->at.term[t].var;
            all = affine_is_dim(v) || k->labels.at[v].given || k->uses.at[v].n > 0;
        }
        all = all && extreme(k, slower->at, true, &most) &&
              affine_try_add(a, affine_extent(a, slower->extent), -1, most, &room) &&
              spread(k, room, &room) && room.n == 0 && room.base == 1;
    }
    return all;
}

/* The range of an index that stands in sums alone, from one of them: the largest with which that stays inside. */
static bool infer(Kern *k, const LateRead *r, VarRef label, Dim *out)
{
    Arena *a = k->c->arena;
    Affine rest = affine_const(r->at.base), most, room;
    if (!slower_reach_end(k, r)) {
        return false;
    }
    for (uint32_t i = 0; i < r->at.n; i++) {
        const AffineTerm t = r->at.term[i];
        bool known =
            affine_is_dim(t.var) || k->labels.at[t.var].given || k->uses.at[t.var].n > 0;
        if (t.var == label ? t.coef != 1 : !known) {
            return false;
        }
        if (t.var != label) {
            rest = affine_add(a, rest, 1, (Affine){0, 1, &t});
        }
    }
    return extreme(k, rest, true, &most) &&
           affine_try_add(a, affine_extent(a, r->extent), -1, most, &room) &&
           extent_of_room(k, room, r->span, out);
}

bool extent_at_most(Kern *k, Dim x, Dim y)
{
    Arena *a = k->c->arena;
    int64_t *least = ARENA_ARRAY(a, (size_t)k->k->dims.list.n + 1, int64_t);
    Affine room;
    return affine_try_add(a, affine_extent(a, y), -1, affine_extent(a, x), &room) &&
           dims_prove(a, &k->k->dims, room, least);
}

/* The range with which the index stays inside wherever it stands; false where that is not known. */
static bool infer_label(Kern *k, VarRef v, Dim *out)
{
    bool any = false, fine = true;
    for (uint32_t i = 0; i < k->late.n && fine; i++) {
        Dim d;
        if (!affine_uses(k->late.at[i].at, v) || !infer(k, &k->late.at[i], v, &d)) {
            continue;
        }
        fine = !any || extent_at_most(k, *out, d) || extent_at_most(k, d, *out);
        *out = !any || !extent_at_most(k, *out, d) ? d : *out;
        any = true;
    }
    return any && fine;
}

void positions_infer(Kern *k)
{
    for (bool more = true; more;) {
        more = false;
        for (VarRef v = 0; v < k->labels.n; v++) {
            Dim d;
            if (!k->labels.at[v].given && k->uses.at[v].n == 0 && infer_label(k, v, &d)) {
                k->labels.at[v].extent = d;
                k->labels.at[v].given = more = true;
            }
        }
        more = more || rows_infer(k);
    }
}

/* A sum that may be below 0 for some sizes and is not for others: the call sees to it, as that a computed extent is none below 0. */
static bool checked_at_call(Kern *k, const LateRead *r, int problem)
{
    Arena *a = k->c->arena;
    Affine most, room;
    if (!extreme(k, r->at, problem > 0, &most) ||
        (problem > 0 && (!affine_try_add(a, affine_extent(a, r->extent), -1, most, &most) ||
                         !affine_try_add(a, most, 1, affine_const(-1), &most))) ||
        !spread(k, most, &room)) {
        return false;
    }
    bool ever = room.base >= 0;
    DimTerm *term = ARENA_ARRAY(a, room.n, DimTerm);
    for (uint32_t i = 0; i < room.n; i++) {
        ever = ever || room.term[i].coef > 0;
        term[i] = (DimTerm){dim_open(affine_sym(room.term[i].var)), room.term[i].coef};
    }
    if (room.n == 0 || !ever) {
        return false;
    }
    (void)dims_sum(a, a, &k->c->ctx->syms, &k->k->dims, r->span, room.base, room.n, term, 1);
    return true;
}

/* Of a step, whose index has not the positions that are given; 0: it lies inside. */
static int problem_in_step(Kern *k, const Dim *extent, const LateRead *r, Affine low,
                           Affine high)
{
    Arena *a = k->c->arena;
    Affine room = affine_add(a, affine_extent(a, r->extent), 1, affine_const(-1));
    Dim most = dim_fixed(SIZE_LIMIT);
    if (position_problem(a, &k->k->dims, extent, k->labels.n, low, most) < 0) {
        return -1;
    }
    room = affine_add(a, room, -1, high);
    return position_problem(a, &k->k->dims, extent, k->labels.n, room, most) < 0 ? 1 : 0;
}

/* Other indices of the statement may have no position where the tensor is read all the same. */
void positions_check(Kern *k)
{
    Arena *a = k->c->arena;
    Dim *extent = ARENA_ARRAY(a, k->labels.n, Dim); /* of the labels of one read */
    for (uint32_t l = 0; l < k->labels.n; l++) {
        extent[l] = dim_fixed(1);
    }
    for (uint32_t i = 0; i < k->late.n && !k->poisoned; i++) {
        const LateRead *r = &k->late.at[i];
        bool known = true;
        for (uint32_t t = 0; t < r->at.n && known; t++) {
            VarRef v = r->at.term[t].var;
            if (!affine_is_dim(v) && !k->labels.at[v].given && k->uses.at[v].n == 0) {
                const Label *l = &k->labels.at[v];
                Diagnostic *d =
                    diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, r->span,
                               "the range of index '%s' is not known", l->name->text);
                diag_help(d, "give it where the index is listed: [%s < 3]", l->name->text);
                known = false;
                k->poisoned = true;
            }
        }
        int problem = 0;
        for (uint32_t l = 0; l < r->n_labels; l++) {
            extent[r->label[l]] = k->labels.at[r->label[l]].extent;
        }
        Affine low, high;
        bool step = known && steps_shift(k, r->at, &low, &high);
        if (step) {
            problem = problem_in_step(k, extent, r, low, high);
        }
        for (uint32_t round = 0; known && !step && round < 3;
             round++) { /* below 0, and past the end */
            problem = position_problem(a, &k->k->dims, extent, k->labels.n, r->at, r->extent);
            if (problem == 0 || !checked_at_call(k, r, problem)) {
                break;
            }
        }
        for (uint32_t l = 0; l < r->n_labels; l++) {
            extent[r->label[l]] = dim_fixed(1);
        }
        if (problem != 0) {
            report(k, r, problem);
        }
    }
}

bool position_has(const Kern *k, VarRef label)
{
    bool any = false;
    for (uint32_t i = 0; i < k->late.n && !any; i++) {
        any = affine_uses(k->late.at[i].at, label);
    }
    return any;
}
