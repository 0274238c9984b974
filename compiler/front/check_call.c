/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: elementwise functions by the op table, casts, extent(d), and reductions with their indices.
 * Functions are looked up here only; their names are no keywords. */
#include <string.h>

#include "front/check_parts.h"

/* Constructs of the language that a later version compiles. */
static const char *const later[] = {"argmin",   "argmax", "logsumexp",
                                    "cholesky", "trsm",   "solve_triangular"};

static bool is_later(Sym name)
{
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strcmp(name->text, later[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool reduction_named(Sym name, Op *op)
{
    static const struct {
        const char *name;
        Op op;
    } rows[] = {{"sum", OP_SUM},  {"prod", OP_PROD}, {"min", OP_RMIN},
                {"max", OP_RMAX}, {"any", OP_ANY},   {"all", OP_ALL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(name->text, rows[i].name) == 0) {
            *op = rows[i].op;
            return true;
        }
    }
    return false;
}

static bool function_named(Sym name, Op *op)
{
    return op_from_name((Str){name->text, name->n}, op) && op_info(*op)->kind == OPKIND_MAP &&
           *op != OP_COPY && *op != OP_CAST && *op != OP_SCALE && *op != OP_WHERE;
}

/* `A(i,j)` as it should be. */
static const char *as_indexed(Kern *k, const AstNode *n)
{
    Text text;
    text_init(&text, k->c->arena);
    text_printf(&text, "%s[", n->name->text);
    for (uint32_t a = 0; a < n->n && a < 8; a++) {
        const AstNode *i = ast_node(&k->c->program->ast, n->child[a]);
        text_printf(&text, "%s%s", a == 0 ? "" : ",",
                    i->kind == AST_NAME ? i->name->text : "...");
    }
    text_char(&text, ']');
    return text.at;
}

static CheckedExpr *unknown_function(Kern *k, AstId ast, const AstNode *n)
{
    Diags *diags = &k->c->ctx->diags;
    uint32_t value = 0;
    Op op;
    if (is_later(n->name)) {
        diag_unsupported(diags, E_NOT_YET, n->at, "'%s' is not compiled by this version",
                         n->name->text);
    } else if (map_get(&k->value_by_name, n->name->id, &value) && n->kind == AST_CALL) {
        Diagnostic *d = diag_error(diags, E_UNKNOWN_NAME, n->at,
                                   "'%s' is a value, not a function", n->name->text);
        diag_help(d, "its indices stand in '[' and ']': %s", as_indexed(k, n));
    } else if (n->kind == AST_CALL && reduction_named(n->name, &op)) {
        Diagnostic *d = diag_error(diags, E_ARGUMENTS, n->at,
                                   "'%s' without the indices to reduce over", n->name->text);
        diag_help(d, "write %s[i](...)", n->name->text);
    } else {
        Diagnostic *d =
            diag_error(diags, E_UNKNOWN_NAME, n->at, "there is no %s '%s'",
                       n->kind == AST_REDUCE ? "reduction" : "function", n->name->text);
        const char *near = suggest_function(k, n->name), *cure = cure_function(n->name->text);
        const char *type = dtype_meant((Str){n->name->text, n->name->n});
        if (cure != NULL) {
            diag_help(d, "%s", cure);
        } else if (type != NULL) {
            diag_help(d, "a cast is written %s(x)", type);
        } else if (near != NULL) {
            diag_help(d, "did you mean '%s'?", near);
        }
    }
    return expr_poison(k, ast, n->span);
}

static bool arguments(Kern *k, const AstNode *n, uint32_t wanted)
{
    if (n->n == wanted) {
        return true;
    }
    diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "'%s' takes %u argument%s, not %u",
               n->name->text, wanted, wanted == 1 ? "" : "s", n->n);
    return false;
}

/* ---- casts and extents ---- */

static CheckedExpr *check_cast(Kern *k, AstId ast, const AstNode *n, DType to)
{
    if (!arguments(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *arg = expr_check(k, n->child[0]);
    if (arg->kind == CHECKED_CONST && arg->weak != WEAK_NO) {
        CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, n->span);
        e->dtype = to;
        e->typed = true;
        e->value = number_cast(arg->value, to);
        return e;
    }
    if (arg->weak != WEAK_NO) {
        bool direct = dtype_is_float(to) || dtype_is_complex(to) ||
                      (arg->weak == WEAK_INT && dtype_is_int(to));
        (void)weak_settle(k, arg, direct ? to : weak_default(arg->weak), (Span){0});
    }
    if (arg->dtype == DTYPE_NONE) {
        return expr_poison(k, ast, n->span);
    }
    if (dtype_is_complex(arg->dtype) && !dtype_is_complex(to)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, n->span,
                                   "a cast from %s to %s would drop the imaginary part",
                                   dtype_name(arg->dtype), dtype_name(to));
        diag_help(d, "take re(...), im(...) or abs(...)");
        return expr_poison(k, ast, n->span);
    }
    if (arg->dtype == to && !dtype_is_half(to)) {
        return arg;
    }
    CheckedExpr *e = expr_new(k, CHECKED_MAP, ast, n->span);
    e->op = OP_CAST;
    e->dtype = to;
    e->n = 1;
    e->arg = arena_copy(k->c->arena, &arg, sizeof arg);
    return e;
}

static CheckedExpr *check_extent(Kern *k, AstId ast, const AstNode *n)
{
    if (!arguments(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    const AstNode *d = ast_node(&k->c->program->ast, n->child[0]);
    if (d->kind != AST_NAME) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, d->span,
                   "extent(...) takes the name of a dim");
        return expr_poison(k, ast, n->span);
    }
    if (!dim_known(k, d->name)) {
        Diagnostic *e = diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, d->span, "'%s' is no dim",
                                   d->name->text);
        const char *near = suggest_dim(k, d->name);
        if (near != NULL) {
            diag_help(e, "did you mean '%s'?", near);
        }
        return expr_poison(k, ast, n->span);
    }
    bool ok = true;
    Dim dim = dim_named(k, d->name, d->span, &ok);
    if (!ok) {
        return expr_poison(k, ast, n->span);
    }
    if (dim.sym < 0) {
        return weak_const(k, ast, n->span, WEAK_INT, dim.n, 0);
    }
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span, "dim '%s' is open",
                   d->name->text);
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_EXTENT, ast, n->span);
    e->dim = dim.sym;
    e->weak = WEAK_INT;
    return e;
}

/* index(i): the position of an index as a number. */
static CheckedExpr *check_index(Kern *k, AstId ast, const AstNode *n)
{
    Affine x;
    if (!arguments(k, n, 1)) {
        return expr_poison(k, ast, n->span);
    }
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span,
                   "this is not known at compile time");
        return expr_poison(k, ast, n->span);
    }
    if (!position_affine(k, n->child[0], &x)) {
        return expr_poison(k, ast, n->span);
    }
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        if (!affine_is_dim(v)) {
            v = is_product_var(v) ? k->products.at[v - PRODUCT_VAR].label : v;
            k->labels.at[v].valued = true;
        }
    }
    return position_number(k, ast, n->span, x);
}

/* ---- reductions ---- */

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
    const AstNode *i = ast_node(&k->c->program->ast, id);
    Diags *diags = &k->c->ctx->diags;
    if (i->kind != AST_NAME) {
        if (i->kind != AST_BROKEN) {
            diag_error(diags, E_SYNTAX, i->span, "an index is a name");
        }
        return -1;
    }
    *before = 0;
    if (map_get(&k->label_by_name, i->name->id, before) && *before > 0) {
        const Label *l = &k->labels.at[*before - 1];
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
    k->labels.at[label].bound = true;
    return label;
}

/* `i < n`, `j <= i`, `i - w < j` in the list: perhaps a new index, and what the others must be for an element to take part.
 * False after a report. */
static bool reduction_item(Kern *k, AstId id, uint32_t *before, int32_t *label,
                           CheckedExpr **when)
{
    const AstNode n = *ast_node(&k->c->program->ast, id);
    CheckedExpr *condition = NULL;
    AstNode name;
    *before = 0;
    if (condition_index(k, id, &name)) {
        (void)map_get(&k->label_by_name, name.name->id, before);
    }
    if (!position_item(k, id, false, label, &condition)) {
        return false;
    }
    if (condition != NULL && *when != NULL) {
        CheckedExpr *both = expr_new(k, CHECKED_CHAIN, id, n.span);
        both->op = OP_AND;
        chain_add(k, both, OP_AND, *when);
        chain_add(k, both, OP_AND, condition);
        condition = chain_type(k, both);
    }
    *when = condition != NULL ? condition : *when;
    return true;
}

/* The body where the condition holds, and what changes nothing elsewhere. */
static CheckedExpr *restricted(Kern *k, Op op, CheckedExpr *body, CheckedExpr *when)
{
    DType t = body->weak != WEAK_NO ? weak_default(body->weak) : body->dtype;
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
    for (uint32_t a = 0; a < e->rank && !k->poisoned; a++) {
        if (k->uses.at[e->label[a]].n == 0 && !k->labels.at[e->label[a]].given &&
            !position_has(k, (VarRef)e->label[a])) {
            const Label *l = &k->labels.at[e->label[a]];
            diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, l->span,
                       "index '%s' is reduced here but is in no operand", l->name->text);
            k->poisoned = true;
        }
    }
}

static CheckedExpr *check_reduce(Kern *k, AstId ast, const AstNode *n)
{
    Op op;
    if (is_later(n->name) || !reduction_named(n->name, &op)) {
        return unknown_function(k, ast, n);
    }
    if (n->n < 2 || n->n - 1 > RANK_LIMIT) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span, "'%s' takes 1 to %d indices",
                   n->name->text, RANK_LIMIT);
        return expr_poison(k, ast, n->span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_REDUCE, ast, n->span);
    uint32_t before[RANK_LIMIT];
    e->label = ARENA_ARRAY(k->c->arena, n->n - 1, int32_t);
    bool ok = true;
    CheckedExpr *when = NULL;
    for (uint32_t a = 1; a < n->n; a++) {
        bool item = ast_node(&k->c->program->ast, n->child[a])->kind == AST_COMPARE;
        int32_t label = -1;
        bool fine = true;
        if (item) {
            fine = reduction_item(k, n->child[a], &before[e->rank], &label, &when);
        } else {
            label = reduction_label(k, n->child[a], &before[e->rank]);
            fine = label >= 0;
        }
        if (label >= 0) {
            e->label[e->rank++] = label;
        }
        ok = ok && fine;
    }
    if (!ok) {
        k->poisoned = true; /* the body is still looked at: its own mistakes are reported */
    }
    CheckedExpr *body = expr_check(k, n->child[0]);
    check_reduced_used(k, e);
    for (uint32_t a = e->rank; a-- > 0;) {
        const Sym name = k->labels.at[e->label[a]].name;
        map_put(&k->label_by_name, name->id, before[a]);
    }
    if (when != NULL && ok && (body->weak != WEAK_NO || body->dtype != DTYPE_NONE)) {
        body = restricted(k, op, body, when);
    }
    if (body->weak != WEAK_NO) {
        (void)weak_settle(k, body, weak_default(body->weak), (Span){0});
    }
    if (!ok || body->dtype == DTYPE_NONE) {
        return expr_poison(k, ast, n->span);
    }
    e->op = op;
    e->n = 1;
    e->arg = arena_copy(k->c->arena, &body, sizeof body);
    if (!op_result_type(op, &body->dtype, 1, &e->dtype)) {
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_BAD_TYPE, n->at, "'%s' is not defined for %s",
                       n->name->text, dtype_name(body->dtype));
        if (body->dtype == DTYPE_BOOL && op == OP_SUM) {
            diag_help(d, "any[...] and all[...] reduce bool; i64(...) counts");
        }
        return expr_poison(k, ast, n->span);
    }
    return e;
}

/* ---- all calls ---- */

CheckedExpr *call_check(Kern *k, AstId ast)
{
    const AstNode n = *ast_node(&k->c->program->ast, ast);
    if (n.kind == AST_REDUCE) {
        return check_reduce(k, ast, &n);
    }
    DType to = DTYPE_NONE;
    Op op;
    if (einsum_is(&n)) {
        return einsum_check(k, ast);
    }
    if (strcmp(n.name->text, "extent") == 0) {
        return check_extent(k, ast, &n);
    }
    if (strcmp(n.name->text, "index") == 0) {
        return check_index(k, ast, &n);
    }
    if (dtype_from_name((Str){n.name->text, n.name->n}, &to)) {
        return check_cast(k, ast, &n, to);
    }
    if (is_later(n.name) || !function_named(n.name, &op)) {
        return unknown_function(k, ast, &n);
    }
    if (!arguments(k, &n, (uint32_t)op_info(op)->arity)) {
        return expr_poison(k, ast, n.span);
    }
    CheckedExpr *arg[3] = {NULL, NULL, NULL};
    for (uint32_t a = 0; a < n.n; a++) {
        arg[a] = expr_check(k, n.child[a]);
    }
    return expr_map(k, op, ast, n.span, n.at, arg, n.n);
}
