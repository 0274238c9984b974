/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: `op[i, j <= i](x)`. The list binds indices, and may say under which conditions an element takes part. */
#include <string.h>

#include "front/check_expr.h"

/* ---- where an index is listed ---- */

/* Does it name an index, one that is known by now? */
static bool names_index(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    uint32_t label = 0;
    bool any =
        n.kind == AST_NAME && map_get(&k->s.label_by_name, n.name->id, &label) && label > 0;
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
        Affine more = affine_extent(k->c->arena, d);
        more.base++;
        d = extent_of_sum(k, kern_node(k, item->child[1])->span, more, 1);
    }
    k->s.labels.at[label].extent = d;
    k->s.labels.at[label].given = true;
    return ok;
}

/* `k < n[b]`, `tok[n] == v`: a name that stands alone before the sign is a new index, if it was none before. */
static bool value_item(Kern *k, AstId id, int32_t *label, CheckedExpr **condition)
{
    const AstNode n = *kern_node(k, id), name = *kern_node(k, n.child[0]);
    uint32_t known = 0;
    *label = -1;
    if (name.kind == AST_NAME && !position_is_value(k, n.child[0]) &&
        !(map_get(&k->s.label_by_name, name.name->id, &known) && known > 0)) {
        *label = label_new(k, name.name, name.span, false);
        k->s.labels.at[*label].bound = true;
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
    bool listed = any && map_get(&k->s.label_by_name, name.name->id, &known) && known > 0 &&
                  (k->s.labels.at[known - 1].bound || k->s.labels.at[known - 1].left);
    *label = -1;
    if (any && !listed && (!left || (lone && is_order(&n)))) {
        bool range = lone && (n.op == OP_LT || n.op == OP_LE) && !names_index(k, n.child[1]);
        *label = label_new(k, name.name, name.span, left);
        k->s.labels.at[*label].bound = !left;
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

/* ---- the list of indices ---- */

/* `exp(S[q,k] - max[k](S[q,k]))`: the index that is bound needs a name of its own. */
static void help_rename(Diagnostic *d, Sym name)
{
    const char *other = strcmp(name->text, "l") == 0 ? "r" : "l";
    diag_help(d,
              "give the index of this reduction another name, here and in what it reduces: "
              "[%s](... %s ...)",
              other, other);
}

/* A new label for one index of `op[...]`, and what the name meant before; -1 after a report. */
static int32_t reduction_label(Kern *k, AstId id, uint32_t *before)
{
    const AstNode *i = kern_node(k, id);
    Diags *diags = &k->c->ctx->diags;
    if (i->kind != AST_NAME) {
        if (i->kind != AST_BROKEN) {
            diag_error(diags, E_SYNTAX, i->span, "an index is a name");
        }
        return -1;
    }
    *before = 0;
    if (map_get(&k->s.label_by_name, i->name->id, before) && *before > 0) {
        const Label *l = &k->s.labels.at[*before - 1];
        if (l->left) {
            Diagnostic *d =
                diag_error(diags, E_REDUCED_ON_LEFT, i->span,
                           "index '%s' is reduced here but also on the left", i->name->text);
            mark_other(k->c, d, l->span, "on the left here");
            help_rename(d, i->name);
            return -1;
        }
        if (l->bound) {
            Diagnostic *d = diag_error(diags, E_REDUCED_ON_LEFT, i->span,
                                       "index '%s' is reduced twice", i->name->text);
            mark_other(k->c, d, l->span, "first here");
            help_rename(d, i->name);
            return -1;
        }
    }
    int32_t label = label_new(k, i->name, i->span, false);
    k->s.labels.at[label].bound = true;
    return label;
}

CheckedExpr *both_hold(Kern *k, AstId id, Span span, CheckedExpr *when, CheckedExpr *also)
{
    return when == NULL ? also : chain_of_two(k, OP_AND, id, span, when, also);
}

static void join_condition(Kern *k, AstId id, CheckedExpr *condition, CheckedExpr **when)
{
    *when = both_hold(k, id, kern_node(k, id)->span, *when, condition);
}

/* `i < n`, `j <= i`, `k < n[b]` in the list: perhaps a new index, and what the others must be for an element to take part.
 * False after a report. */
static bool reduction_item(Kern *k, AstId id, uint32_t *before, int32_t *label,
                           CheckedExpr **when)
{
    CheckedExpr *condition = NULL;
    AstNode name;
    *before = 0;
    if (condition_index(k, id, &name)) {
        (void)map_get(&k->s.label_by_name, name.name->id, before);
    }
    if (!position_item(k, id, false, label, &condition)) {
        return false;
    }
    if (condition != NULL) {
        join_condition(k, id, condition, when);
    }
    return true;
}

/* `mask[i]`, `!mask[i]`: of bool. False after a report. */
static bool reduction_mask(Kern *k, AstId id, CheckedExpr **when)
{
    CheckedExpr *condition = expr_check(k, id);
    DType t = expr_type(condition);
    if (t == DTYPE_NONE) {
        return false;
    }
    if (t != DTYPE_BOOL) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, condition->span,
                                   "a condition is bool, and this is %s", dtype_name(t));
        diag_help(d, "compare it: x[i] != 0");
        return false;
    }
    join_condition(k, id, condition, when);
    return true;
}

CheckedExpr *fold_where(Kern *k, Op op, CheckedExpr *body, CheckedExpr *when)
{
    DType t = body->weak != WEAK_NO ? weak_default(body->weak) : result_type(body->dtype);
    CheckedExpr *neutral = expr_new(k, CHECKED_CONST, body->ast, body->span);
    neutral->dtype = t;
    neutral->value = op_neutral(op, t);
    if (t != DTYPE_BOOL) { /* it takes the type that the body gets */
        bool whole = dtype_is_int(t);
        neutral = weak_const(k, body->ast, body->span, whole ? WEAK_INT : WEAK_FLOAT,
                             neutral->value.i, neutral->value.re);
    }
    CheckedExpr *three[3] = {when, body, neutral};
    return expr_map(k, OP_SELECT, body->ast, body->span, body->span, three, 3);
}

static void check_reduced_used(Kern *k, const CheckedExpr *e)
{
    for (uint32_t a = 0; a < e->rank && !k->s.poisoned; a++) {
        if (!extent_is_known(k, (uint32_t)e->label[a]) &&
            !position_has(k, (VarRef)e->label[a])) {
            const Label *l = &k->s.labels.at[e->label[a]];
            diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, l->span,
                       "index '%s' is reduced here but is in no operand", l->name->text);
            k->s.poisoned = true;
        }
    }
}

bool fold_open(Kern *k, const AstNode *n, CheckedExpr *e, CheckedExpr **when, uint32_t *before)
{
    bool ok = true;
    for (uint32_t a = 1; a < n->n; a++) {
        AstKind kind = kern_node(k, n->child[a])->kind;
        int32_t label = -1;
        bool fine = true;
        if (kind == AST_COMPARE) {
            fine = reduction_item(k, n->child[a], &before[e->rank], &label, when);
        } else if (kind == AST_INDEXED || kind == AST_UNARY || kind == AST_CALL ||
                   kind == AST_CHAIN) {
            fine = reduction_mask(k, n->child[a], when);
        } else {
            label = reduction_label(k, n->child[a], &before[e->rank]);
            fine = label >= 0;
        }
        if (label >= 0) {
            e->label[e->rank++] = label;
        }
        ok = ok && fine;
    }
    return ok;
}

void fold_close(Kern *k, const CheckedExpr *e, const uint32_t *before)
{
    check_reduced_used(k, e);
    for (uint32_t a = e->rank; a-- > 0;) {
        const Sym name = k->s.labels.at[e->label[a]].name;
        map_put(&k->s.label_by_name, name->id, before[a]);
    }
}

/* ---- a fold ---- */

CheckedExpr *fold_check(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition)
{
    if (n->n < 2 || n->n - 1 > RANK_LIMIT) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "'%s' takes 1 to %d indices",
                   n->name->text, RANK_LIMIT);
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_REDUCE, ast, n->span);
    uint32_t before[RANK_LIMIT];
    e->label = ARENA_ARRAY(k->c->arena, n->n - 1, int32_t);
    CheckedExpr *when = NULL;
    bool ok = fold_open(k, n, e, &when, before);
    if (!ok) {
        k->s.poisoned = true; /* the body is still looked at: its own mistakes are reported */
    }
    CheckedExpr *body = make(k, ast, n, e);
    fold_close(k, e, before);
    if (when != NULL && ok && (body->weak != WEAK_NO || body->dtype != DTYPE_NONE)) {
        body = fold_where(k, op, body, when);
    }
    weak_decide(k, body);
    if (!ok || body->dtype == DTYPE_NONE) {
        return expr_poison(k, ast, n->span);
    }
    e->op = op;
    e->n = 1;
    e->arg = arena_copy(k->c->arena, &body, sizeof body);
    const DType of = result_type(body->dtype);
    if (!op_result_type(op, &of, 1, &e->dtype)) {
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_BAD_TYPE, n->at, "'%s' is not defined for %s",
                       n->name->text, dtype_name(body->dtype));
        if (body->dtype == DTYPE_BOOL && op == OP_SUM) {
            diag_help(d, "any[...] and all[...] reduce bool; count[...] counts");
        }
        return expr_poison(k, ast, n->span);
    }
    if (condition != NULL) {
        *condition = when;
    }
    return e;
}

Sym fold_unused_name(Kern *k, Sym name)
{
    for (uint32_t number = 2;; number++) {
        Sym other =
            sym_cstr(&k->c->ctx->syms, str_format(k->c->arena, "%s%u", name->text, number));
        uint32_t at = 0;
        bool used = map_get(&k->s.index_names, other->id, &at);
        for (uint32_t l = 0; l < k->s.labels.n && !used; l++) {
            used = k->s.labels.at[l].name == other;
        }
        if (!used) {
            return other;
        }
    }
}

CheckedExpr *fold_again(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition)
{
    uint32_t meant[RANK_LIMIT + 1], count = 0;
    Sym name[RANK_LIMIT + 1];
    for (uint32_t a = 1; a < n->n && count <= RANK_LIMIT; a++) {
        AstNode item = *kern_node(k, n->child[a]);
        bool named = item.kind == AST_NAME ||
                     (item.kind == AST_COMPARE && condition_index(k, n->child[a], &item));
        if (named) {
            name[count] = item.name;
            meant[count] = 0;
            (void)map_get(&k->s.label_by_name, item.name->id, &meant[count]);
            map_put(&k->s.label_by_name, item.name->id, 0);
            count++;
        }
    }
    CheckedExpr *e = fold_check(k, ast, n, op, make, condition);
    for (uint32_t a = 0; a < e->rank && e->kind == CHECKED_REDUCE; a++) {
        Label *l = &k->s.labels.at[e->label[a]];
        l->name = fold_unused_name(k, l->name);
        map_put(&k->s.label_by_name, l->name->id, 0);
    }
    while (count-- > 0) {
        map_put(&k->s.label_by_name, name[count]->id, meant[count]);
    }
    return e;
}

/* ---- reductions ---- */

CheckedExpr *fold_plain(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold)
{
    (void)ast;
    (void)fold;
    return expr_check(k, n->child[0]);
}

CheckedExpr *reduction_check(Kern *k, AstId ast, const AstNode *n)
{
    if (!is_reduction(n->name)) {
        return unknown_function(k, ast, n);
    }
    const AstNode *body = kern_node(k, n->child[0]);
    if (body->kind == AST_LIST && name_kind(n->name) != NAME_DENSE) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "'%s' takes 1 argument, not %u",
                   n->name->text, body->n);
        return expr_poison(k, ast, n->span);
    }
    return name_check(k, ast, n);
}
