/* SPDX-License-Identifier: Apache-2.0 */
/* One statement: its left side, its indices and their extents, which of its sums are silent, and the element type of
 * what it assigns. */
#include <string.h>

#include "front/check_statement.h"

/* ---- labels ---- */

/* Index names of labels [from, n) that are neither on the left nor bound mean nothing any more. */
static void forget_labels(Kern *k, uint32_t from)
{
    for (uint32_t j = from; j < k->s.labels.n; j++) {
        const Label *l = &k->s.labels.at[j];
        if (l->name != NULL && !l->left && !l->bound) {
            map_put(&k->s.label_by_name, l->name->id, 0);
        }
    }
}

/* ---- the left side ---- */

typedef struct Left {
    Op op;
    const AstNode *n;
    DType declared; /* NONE: no type is written */
    Sym name;
    Span span;
    bool known;      /* there is such a value */
    uint32_t pieces; /* still to come, this one among them; 0: it is assigned whole */
    bool placed;     /* at positions */
    bool scattered;  /* at positions that are values */
    const Affine *at;
    const SplitShape *split;
    uint32_t target; /* if known */
    uint32_t rank;
    int32_t label[RANK_LIMIT];
    ScatterLeft scatter;
} Left;

/* Is there something before the statement? */
static bool updates(const Left *l)
{
    return l->op != OP_COPY || l->scattered;
}

static bool left_assignable(Kern *k, Left *l)
{
    Diags *diags = &k->c->ctx->diags;
    const char *name = l->name->text;
    uint32_t global = 0;
    if (!l->known) {
        if (global_named(k, l->name, &global) && k->c->globals.at[global].is_const) {
            Diagnostic *d =
                diag_error(diags, E_NOT_ASSIGNABLE, l->span, "'%s' is a constant", name);
            diag_note(d, kern_node(k, k->c->globals.at[global].ast)->at, "it is defined here");
            return false;
        }
        if (updates(l) && !k->damaged) {
            Diagnostic *d =
                diag_error(diags, E_NOT_ASSIGNABLE, l->span, "'%s' has no value yet to %s",
                           name, l->op == OP_COPY ? "change" : "add to");
            diag_help(d, "begin with '='%s", l->scattered ? " for all of it" : "");
        }
        return !updates(l);
    }
    Value *v = &k->k->values.at[l->target];
    if (v->kind == VALUE_PARAM && !v->is_inout) {
        Diagnostic *d =
            diag_error(diags, E_NOT_ASSIGNABLE, l->span, "'%s' is a parameter", name);
        diag_note(d, v->span, "declare it inout to update it");
        return false;
    }
    if (!updates(l) && v->assigned && l->pieces == 0) {
        Diagnostic *d =
            diag_error(diags, E_DUPLICATE_NAME, l->span, "'%s' is assigned twice", name);
        mark_other(k->c, d, v->span, v->kind == VALUE_LOCAL ? "first here" : "declared here");
        diag_help(d, "'+=' and '-=' add to a value");
        return false;
    }
    if (updates(l) && v->kind == VALUE_RESULT && !v->updated) {
        Diagnostic *d =
            diag_error(diags, E_NOT_ASSIGNABLE, l->span, "'%s' has no value yet to %s", name,
                       l->op == OP_COPY ? "change" : "add to");
        diag_help(d, "begin with '=', or declare '%s' as an inout parameter", name);
        v->updated = v->assigned = true;
        return false;
    }
    return true;
}

/* An index that stands in sums too has the extent of what is declared: where it stands alone, there may be more. */
static void give_declared(Kern *k, const Left *l, Sym name, uint32_t axis)
{
    uint32_t how = 0;
    const TensorType *type = l->known ? &k->k->values.at[l->target].type : NULL;
    if (type != NULL && type->dtype != DTYPE_NONE && axis < type->rank &&
        map_get(&k->s.index_names, name->id, &how) && (how & INDEX_SHIFTED) != 0) {
        Label *label = &k->s.labels.at[k->s.labels.n - 1];
        label->extent = type->dims[axis];
        label->given = true;
    }
}

/* An index times a dim that is 0 moves nothing, and is an index of the left all the same: labels from `first` on. */
static void keep_idle_labels(Kern *k, Left *l, uint32_t first)
{
    for (uint32_t v = first; v < k->s.labels.n && l->rank < RANK_LIMIT; v++) {
        uint32_t a = 0;
        while (a < l->rank && l->label[a] != (int32_t)v) {
            a++;
        }
        if (a == l->rank) {
            l->label[l->rank++] = (int32_t)v;
        }
    }
}

/* `R[i + n, a]`: a piece of what is declared, or of what has a value. */
static bool left_positions(Kern *k, Left *l)
{
    Diags *diags = &k->c->ctx->diags;
    uint32_t n = l->n->n - 1, first = k->s.late.n, first_label = k->s.labels.n;
    bool ok = true;
    l->placed = true;
    if (n > RANK_LIMIT) {
        return diag_refuse_limit(diags, E_LIMIT_SIZE, l->span,
                                 "a tensor has at most %d dimensions", RANK_LIMIT);
    }
    if (!l->known) {
        Diagnostic *d =
            diag_error(diags, E_NOT_ASSIGNABLE, l->span,
                       "'%s' is no result: its extents are not known", l->name->text);
        diag_help(d, "begin with a value for all of it, %s[i < n] = 0, and add pieces: +=",
                  l->name->text);
        return false;
    }
    Affine *position = ARENA_ARRAY(k->c->arena, n, Affine);
    Span *span = ARENA_ARRAY(k->c->arena, n, Span);
    const TensorType type = k->k->values.at[l->target].type;
    if (type.dtype != DTYPE_NONE && type.rank != n) {
        Diagnostic *d = diag_error(diags, E_RANK_MISMATCH, l->n->span,
                                   "'%s' has %u dimension%s but %u here", l->name->text,
                                   type.rank, type.rank == 1 ? "" : "s", n);
        note_shape(k, d, l->target);
        return false;
    }
    k->on_left = true;
    for (uint32_t a = 0; a < n && type.dtype != DTYPE_NONE; a++) {
        const AstNode i = *kern_node(k, l->n->child[a + 1]);
        CheckedExpr *none = NULL;
        int32_t label = -1;
        bool fine = i.kind == AST_COMPARE
                        ? position_item(k, l->n->child[a + 1], true, &label, &none)
                        : position_affine(k, l->n->child[a + 1], &position[a]);
        span[a] = i.span;
        if (label >= 0) {
            position[a] = affine_var(k->c->arena, (VarRef)label);
        }
        if (fine) {
            position_note(k, l->target, a, position[a], i.span);
        }
        ok = ok && fine;
    }
    k->on_left = false;
    l->at = position;
    ok = ok && positions_split(k, l->target, span, &n, &l->at, &l->split);
    l->rank = ok ? positions_labels(l->at, n, l->label) : 0;
    if (ok) {
        keep_idle_labels(k, l, first_label);
    }
    positions_are_of(k, first, l->label, l->rank);
    return ok;
}

/* `w[j < n] += x[j]` with fewer than all positions of w: they are a part of it. */
static void left_part(Kern *k, Left *l)
{
    const TensorType type = l->known ? k->k->values.at[l->target].type : (TensorType){0};
    bool part = false;
    for (uint32_t a = 0; l->op != OP_COPY && type.rank == l->rank && a < l->rank; a++) {
        const Label *label = &k->s.labels.at[l->label[a]];
        bool ranged = kern_node(k, l->n->child[a + 1])->kind == AST_COMPARE;
        part = part || (ranged && !dim_eq(label->extent, type.dims[a]));
    }
    if (!part || type.dtype == DTYPE_NONE) {
        return;
    }
    uint32_t first = k->s.late.n;
    Affine *position = ARENA_ARRAY(k->c->arena, l->rank, Affine);
    for (uint32_t a = 0; a < l->rank; a++) {
        position[a] = affine_var(k->c->arena, (VarRef)l->label[a]);
        position_note(k, l->target, a, position[a], kern_node(k, l->n->child[a + 1])->span);
    }
    positions_are_of(k, first, l->label, l->rank);
    l->placed = true;
    l->at = position;
}

static bool left_indices(Kern *k, Left *l)
{
    bool ok = true;
    if (l->scattered) {
        ok = l->known && k->k->values.at[l->target].type.dtype != DTYPE_NONE &&
             scatter_left(k, l->n, l->target, &l->scatter) &&
             (l->op != OP_COPY || scatter_is_one(k, l->n, &l->scatter));
        l->rank = ok ? l->scatter.rank : 0;
        for (uint32_t a = 0; a < l->rank; a++) {
            l->label[a] = l->scatter.label[a];
        }
        return ok;
    }
    if (l->pieces > 0 || left_has_positions(k, l->n)) {
        return left_positions(k, l);
    }
    if (l->n->n - 1 > RANK_LIMIT) {
        return diag_refuse_limit(&k->c->ctx->diags, E_LIMIT_SIZE, l->span,
                                 "a tensor has at most %d dimensions", RANK_LIMIT);
    }
    for (uint32_t a = 1; a < l->n->n; a++) {
        const AstNode *i = kern_node(k, l->n->child[a]);
        if (i->kind == AST_COMPARE) {
            CheckedExpr *none = NULL;
            ok = position_item(k, l->n->child[a], true, &l->label[l->rank], &none) && ok;
            l->rank += l->label[l->rank] >= 0;
        } else if (i->kind != AST_NAME) {
            if (i->kind != AST_BROKEN) {
                diag_error(&k->c->ctx->diags, E_SYNTAX, i->span, "an index is a name");
            }
            ok = false;
        } else if (left_index(k, i, &l->label[l->rank])) {
            l->rank++;
            give_declared(k, l, i->name, a - 1);
        } else {
            ok = false;
        }
    }
    if (ok) {
        left_part(k, l);
    }
    return ok;
}

/* `S: f32[q,k] = ...`: the element type of a value that the statement defines. */
static bool left_type(Kern *k, Left *l, const AstNode *type)
{
    l->declared = dtype_declared(k, type);
    if (l->declared == DTYPE_NONE) {
        return false;
    }
    if (l->known && k->k->values.at[l->target].kind != VALUE_LOCAL) {
        const Value *v = &k->k->values.at[l->target];
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_DUPLICATE_NAME, type->span,
                       "'%s' has its type from the head of the kernel", l->name->text);
        mark_other(k->c, d, v->span, "declared here");
        return false;
    }
    return true;
}

static bool left_check(Kern *k, const AstNode *s, Left *l)
{
    *l = (Left){.op = s->op, .n = kern_node(k, s->child[0]), .declared = DTYPE_NONE};
    l->name = l->n->name;
    l->span = l->n->at;
    if (l->name == NULL) {
        return false;
    }
    l->known = map_get(&k->value_by_name, l->name->id, &l->target);
    l->scattered = l->n->kind == AST_INDEXED && gather_is(k, l->n);
    l->pieces = s->op == OP_COPY && !l->scattered ? pieces_left(k, l->name) : 0;
    calls_check(k, s->child[0]);
    bool ok = (s->n < 3 || left_type(k, l, kern_node(k, s->child[2]))) && left_assignable(k, l);
    l->declared = l->declared == DTYPE_NONE && !l->known ? steps_type(k, l->name) : l->declared;
    return (k->s.whole || left_indices(k, l)) && ok;
}

/* ---- the right side ---- */

/* Terms of a sum are looked at one by one: each has its own silent sums. */
static CheckedExpr *right_terms(Kern *k, AstId ast, const AstNode *n)
{
    CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, n->span);
    chain->op = OP_ADD;
    for (uint32_t c = 0; c < n->n; c++) {
        uint32_t first = k->s.labels.n;
        CheckedExpr *term = expr_check(k, n->child[c]);
        term = sums_explicit(k, term, first, false);
        forget_labels(k, first);
        chain_add(k, chain, (Op)n->link[c], term);
    }
    return sums_agree(k) ? chain_type(k, chain) : expr_poison(k, ast, n->span);
}

static CheckedExpr *right_check(Kern *k, AstId ast)
{
    calls_check(k, ast);
    const AstNode n = *kern_node(k, ast);
    if (n.kind == AST_CHAIN && (n.op == OP_ADD || n.op == OP_SUB)) {
        return right_terms(k, ast, &n);
    }
    uint32_t first = k->s.labels.n;
    return sums_explicit(k, expr_check(k, ast), first, true);
}

/* ---- both ---- */

/* The indices of the left side are those of the operands without indices. */
static void whole_left(Kern *k, Left *l)
{
    if (k->s.whole_rank <= 0) {
        return;
    }
    whole_check(k);
    l->rank = (uint32_t)k->s.whole_rank;
    for (uint32_t a = 0; a < l->rank; a++) {
        l->label[a] = k->s.whole_first + (int32_t)a;
    }
}

static void check_declared(Kern *k, const Left *l)
{
    const Value *v = &k->k->values.at[l->target];
    k->s.poisoned = k->s.poisoned || v->type.dtype == DTYPE_NONE;
    if (k->s.poisoned || l->placed) {
        return;
    }
    if (v->type.rank != l->rank) {
        const char *here =
            l->rank == 0 && k->s.whole ? "no indices" : str_format(k->c->arena, "%u", l->rank);
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, l->n->span,
                                   "'%s' has %u dimension%s but %s here", l->name->text,
                                   v->type.rank, v->type.rank == 1 ? "" : "s", here);
        note_shape(k, d, l->target);
        k->s.poisoned = true;
        return;
    }
    for (uint32_t a = 0; a < l->rank && !k->s.poisoned; a++) {
        Label *label = &k->s.labels.at[l->label[a]];
        LabelUse *u = &k->s.uses.at[l->label[a]];
        bool own =
            l->op != OP_COPY || !k->s.indexed || label->valued || steps_index(k, label->name);
        if (u->n == 0 && !label->given && own) {
            label->extent = v->type.dims[a]; /* only what is declared has it */
            u->n = 1;
        } else if ((u->n > 0 || label->given) && !dim_eq(label->extent, v->type.dims[a])) {
            Span at = label->name != NULL ? label->span : l->span;
            extent_mismatch(k, label, v->type.dims[a], at, l->target, label->extent, u->at,
                            u->value);
        }
    }
}

static void check_unbound(Kern *k, const Left *l)
{
    for (uint32_t a = 0; a < l->rank && !k->s.poisoned; a++) {
        steps_bind(k, l->name, a, l->label[a]);
        const Label *label = &k->s.labels.at[l->label[a]];
        if (!extent_is_known(k, (uint32_t)l->label[a])) {
            Diagnostic *d =
                diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, label->span,
                           "index '%s' is on the left but in no operand", label->name->text);
            diag_help(
                d, "if the value is the same for all of them, say how many there are: [%s < n]",
                label->name->text);
            k->s.poisoned = true;
        }
    }
}

/* ---- element types ---- */

/* Does it compute, of values of type t among others? */
static bool computes_of(const CheckedExpr *e, DType t)
{
    bool has = false;
    for (uint32_t a = 0; a < e->n && e->kind != CHECKED_GATHER && !has; a++) {
        has =
            (e->arg[a]->weak == WEAK_NO && e->arg[a]->dtype == t) || computes_of(e->arg[a], t);
    }
    return has;
}

static const char *operation_name(const CheckedExpr *e)
{
    const OpInfo *op = op_info(e->kind == CHECKED_CHAIN ? (Op)e->link[1] : e->op);
    const char *point = strrchr(op->name, '.');
    return op->symbol != NULL && op->symbol[0] != '\0' ? op->symbol
           : point != NULL                             ? point + 1
                                                       : op->name;
}

static CheckedExpr *coerce(Kern *k, CheckedExpr *e, const Value *v)
{
    DType t = v->type.dtype;
    if (e->weak != WEAK_NO) {
        return weak_settle(k, e, t, v->span) ? e : expr_poison(k, e->ast, e->span);
    }
    if (e->dtype == t || dtype_widens(e->dtype, t)) {
        return compute_in(k, e, t);
    }
    bool wider = dtype_is_int(t) && result_type(t) == e->dtype && computes_of(e, t);
    Diagnostic *d = wider ? diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, e->span,
                                       "'%s' of %s computes in %s", operation_name(e),
                                       dtype_name(t), dtype_name(e->dtype))
                          : diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, e->span,
                                       "this is %s", dtype_name(e->dtype));
    diag_note(d, v->span, "but '%s' is declared here as %s", v->name->text, dtype_name(t));
    if (dtype_is_complex(e->dtype) && !dtype_is_complex(t)) {
        diag_help(d, "take re(...), im(...) or abs(...)");
    } else if (wider) {
        diag_help(d, "%s(...) wraps it around", dtype_name(t));
        fix_call(k->c, d, e->span, dtype_name(t));
    } else {
        diag_help(d, "a cast says so: %s(...)", dtype_name(t));
        fix_call(k->c, d, e->span, dtype_name(t));
    }
    return expr_poison(k, e->ast, e->span);
}

/* `+=` and `-=` of integers that compute in a wider type. */
static void check_update(Kern *k, const Left *l)
{
    DType t = k->k->values.at[l->target].type.dtype;
    if (result_type(t) != t) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, l->n->span,
                                   "'%s=' of %s computes in %s", op_info(l->op)->symbol,
                                   dtype_name(t), dtype_name(result_type(t)));
        diag_help(d, "%s = %s(... %s ...) wraps it around", l->name->text, dtype_name(t),
                  op_info(l->op)->symbol);
        k->s.poisoned = true;
    }
}

/* ---- the whole statement ---- */

/* The right side in the type of what it is assigned to; `right` alone when that is a value not seen before. */
static CheckedExpr *right_typed(Kern *k, const Left *l, CheckedExpr *e)
{
    if (l->known) {
        return coerce(k, e, &k->k->values.at[l->target]);
    }
    if (l->declared != DTYPE_NONE) {
        Value v = {.name = l->name, .type = {.dtype = l->declared}, .span = l->span};
        return coerce(k, e, &v);
    }
    if (e->weak != WEAK_NO) {
        weak_decide(k, e);
        return e;
    }
    return compute_in(k, e, e->dtype);
}

static TensorType local_type(Kern *k, const Left *l, DType dtype)
{
    Dim *dims = ARENA_ARRAY(k->c->arena, l->rank, Dim);
    for (uint32_t a = 0; a < l->rank; a++) {
        dims[a] = k->s.labels.at[l->label[a]].extent;
    }
    TensorType type = {dtype, l->rank, dims};
    int64_t bytes = 0;
    if (dtype != DTYPE_NONE && !type_bytes(&type, &bytes)) {
        diag_error(&k->c->ctx->diags, E_EXTENT_RANGE, l->span,
                   "the size of '%s' overflows 64 bits", l->name->text);
        type.dtype = DTYPE_NONE;
    }
    return type;
}

static void mark_assigned(Kern *k, Left *l, TensorType type)
{
    if (!l->known) {
        l->target = value_new(k, (Value){.kind = VALUE_LOCAL,
                                         .name = l->name,
                                         .type = type,
                                         .span = l->span,
                                         .declared = l->declared != DTYPE_NONE});
    }
    Value *v = &k->k->values.at[l->target];
    v->updated = v->updated || l->pieces <= 1;
    v->assigned = v->assigned || (!updates(l) && l->pieces <= 1);
}

/* Changing a value is no use of it. */
static CheckedExpr *old_value(Kern *k, const Left *l, AstId ast)
{
    CheckedExpr *old = expr_read(k, l->target, ast, l->n->span, l->label, l->rank);
    k->k->values.at[l->target].uses--;
    return old;
}

static CheckedExpr *with_old_value(Kern *k, const Left *l, AstId ast, CheckedExpr *right)
{
    DType in = right->dtype;
    CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, right->span);
    chain->op = in == DTYPE_BOOL ? OP_OR : OP_ADD; /* as sums of bool are */
    chain->dtype = in;
    CheckedExpr *old = old_value(k, l, ast);
    chain_add(k, chain, chain->op, compute_in(k, old, in));
    chain_add(k, chain, in == DTYPE_BOOL ? OP_OR : l->op, right);
    return chain;
}

/* What the statement is where positions on its left are values. */
static CheckedExpr *scattered(Kern *k, Left *l, AstId ast, CheckedExpr *right)
{
    if (l->op == OP_SUB) {
        right = expr_map(k, OP_NEG, ast, right->span, right->span, &right, 1);
        l->op = OP_ADD;
    }
    CheckedExpr *when = scatter_where(k, ast, l->n->span, &l->scatter);
    if (expr_is_poison(when)) {
        return when;
    }
    if (l->op == OP_COPY) {
        DType t = k->k->values.at[l->target].type.dtype;
        CheckedExpr *three[3] = {when, right, old_value(k, l, ast)};
        CheckedExpr *e = expr_map(k, OP_SELECT, ast, right->span, l->n->span, three, 3);
        return dtype_is_int(t) && e->dtype != t ? expr_cast_to(k, e, t, true) : e;
    }
    return scatter_sum(k, &l->scatter, right, when);
}

/* `B = einsum(...)`: the einsum's own statement, with B as its target. */
static bool assign_einsum(Kern *k, Left *l, AstId ast)
{
    uint32_t temp = einsum_value(k, ast);
    if (temp == UINT32_MAX) {
        k->s.poisoned = true;
        return false;
    }
    CheckedStatement s = k->k->statements.at[--k->k->statements.n];
    TensorType type = k->k->values.at[--k->k->values.n].type;
    CHECK(s.target == temp && temp == k->k->values.n);
    if (l->known) {
        l->rank = type.rank;
        for (uint32_t a = 0; a < type.rank; a++) { /* check_declared speaks of labels */
            l->label[a] = label_new(k, NULL, l->span, true);
            k->s.reads++;
            label_use(k, l->label[a], type.dims[a], s.span, l->target);
        }
        check_declared(k, l);
    }
    if (!k->s.poisoned) {
        s.right = right_typed(k, l, s.right);
        type.dtype = l->declared != DTYPE_NONE ? l->declared : type.dtype;
    }
    mark_assigned(k, l, type);
    s.target = l->target;
    if (!k->s.poisoned) {
        s.right = compute_target(k, s.right, s.target);
        statement_add(k, s);
    }
    return true;
}

static void assign(Kern *k, Left *l, AstId id, AstId right)
{
    bool ok_left = !k->s.poisoned;
    if (k->s.whole && l->op == OP_COPY && ok_left && einsum_is(kern_node(k, right))) {
        if (!assign_einsum(k, l, right)) {
            mark_assigned(k, l, (TensorType){DTYPE_NONE, 0, NULL});
        }
        return;
    }
    CheckedExpr *e = right_check(k, right);
    whole_left(k, l);
    positions_infer(k);
    if (l->known) {
        check_declared(k, l);
    }
    check_unbound(k, l);
    if (!k->s.poisoned) {
        positions_check(k);
    }
    if (e->weak == WEAK_NO && e->dtype == DTYPE_NONE) {
        k->s.poisoned = true;
    }
    DType named = l->declared != DTYPE_NONE ? l->declared : expr_type(e);
    if (!k->s.poisoned && l->op != OP_COPY &&
        dtype_is_int(k->k->values.at[l->target].type.dtype)) {
        check_update(k, l);
    }
    if (!k->s.poisoned && l->scattered) { /* it is added in the type of what it is added to */
        bool other = e->weak != WEAK_NO || e->dtype != k->k->values.at[l->target].type.dtype;
        e = scattered(k, l, right, other ? right_typed(k, l, e) : e);
    }
    if (!k->s.poisoned) {
        e = right_typed(k, l, e);
    }
    if (!k->s.poisoned && l->op == OP_SUB && e->dtype == DTYPE_BOOL) {
        diag_error(&k->c->ctx->diags, E_BAD_TYPE, l->n->span, "'-=' is not defined for bool");
        k->s.poisoned = true;
    }
    bool poison = k->s.poisoned || e->dtype == DTYPE_NONE;
    if (!poison) {
        sums_warn(k);
    }
    if (!poison && l->op != OP_COPY) {
        recurrence_warn(k, id);
    }
    TensorType type = local_type(k, l, poison ? DTYPE_NONE : named);
    if (!poison && l->placed) {
        piece_check(k, l->target, l->label, l->rank, l->at, l->split, l->n->span,
                    l->op != OP_COPY, l->pieces == 1);
        poison = k->s.poisoned;
    } else if (!poison && l->op != OP_COPY) {
        e = with_old_value(k, l, right, e);
    }
    if (!poison && l->placed && l->op == OP_SUB) {
        e = expr_map(k, OP_NEG, right, e->span, e->span, &e, 1);
    }
    if (l->pieces > 0) {
        piece_done(k, l->name, !poison);
    }
    mark_assigned(k, l, type);
    if (!poison) {
        e = compute_target(k, e, l->target);
        CheckedStatement s = statement_made(k, &k->s, id, l->target, l->label, l->rank, e);
        s.op = l->op;
        if (l->placed) {
            s.at = l->at;
            s.split = l->split;
            s.completes = l->pieces == 1;
            k->k->places = true;
        }
        bool whole = !l->placed && !l->scattered && l->op == OP_COPY;
        k->k->values.at[l->target].triangle =
            whole ? dense_triangle(k, e, l->label, l->rank) : (Triangle){.known = false};
        statement_add(k, s);
    }
}

void statement_check(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    if (n.kind != AST_ASSIGN) {
        return; /* broken, or `spill`: looked at in the end */
    }
    (void)statement_open(k, kern_node(k, n.child[0])->kind == AST_NAME);
    if (kern_node(k, n.child[0])->kind == AST_GROUP) { /* of no names */
        kernel_call_statement(k, n.child[1]);
        return;
    }
    positions_scan(k, id);
    k->result_taken = (uint32_t)n.value.i;
    Left l;
    bool ok = left_check(k, &n, &l);
    if (l.name == NULL) {
        return;
    }
    k->s.poisoned = !ok;
    if (ok) {
        assign(k, &l, id, n.child[1]);
        return;
    }
    /* what is on the right is looked at for its own mistakes */
    (void)right_check(k, n.child[1]);
    bool param = l.known && k->k->values.at[l.target].kind == VALUE_PARAM &&
                 !k->k->values.at[l.target].is_inout;
    if (l.known && k->k->values.at[l.target].is_inout) {
        k->k->values.at[l.target].updated = true; /* or would be */
    }
    if (l.pieces > 0) {
        piece_done(k, l.name, false);
    }
    if (!param && !(l.known && k->k->values.at[l.target].assigned) && l.op == OP_COPY) {
        mark_assigned(k, &l, (TensorType){DTYPE_NONE, 0, NULL});
    }
}

uint32_t tensor_value(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    const Statement around = statement_open(k, true);
    Left l = {.op = OP_COPY, .n = kern_node(k, ast), .span = n.span};
    CheckedExpr *e = right_check(k, ast);
    whole_left(k, &l);
    uint32_t value = UINT32_MAX;
    if (!k->s.poisoned && !expr_is_poison(e)) {
        DType t = expr_type(e);
        e = right_typed(k, &l, e);
        TensorType type = local_type(k, &l, t);
        value = value_new(
            k,
            (Value){
                .kind = VALUE_TEMP, .type = type, .span = n.span, .updated = true, .uses = 1});
        e = compute_target(k, e, value);
        statement_add(k, statement_made(k, &k->s, ast, value, l.label, l.rank, e));
    }
    bool poisoned = k->s.poisoned;
    k->s = around;
    k->s.poisoned = k->s.poisoned || poisoned;
    return value;
}
