/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: what each names, which type it has, and which indices it reads. Poison goes in silence: whatever
 * touches it becomes poison, and nothing is reported twice. */
#include <math.h>
#include <string.h>

#include "front/check_parts.h"

/* ---- types of operations ---- */

static void mismatch(Kern *k, const CheckedExpr *a, const CheckedExpr *b)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, b->span,
                               "this is %s but the other operand is %s", dtype_name(b->dtype),
                               dtype_name(a->dtype));
    mark_other(k->c, d, a->span, "the other operand");
    if (steps_help_type(k, d, a, b->dtype) || steps_help_type(k, d, b, a->dtype)) {
        return;
    }
    diag_help(d, "a cast makes it one type: %s(...)",
              dtype_name(dtype_is_float(b->dtype) ? b->dtype : a->dtype));
}

DType joint_type(DType a, DType b)
{
    DType complex = dtype_is_complex(a) ? a : b, other = dtype_is_complex(a) ? b : a;
    DType in = dtype_computes(a), with = dtype_computes(b);
    bool reals =
        (dtype_is_float(a) && dtype_is_float(b)) || (dtype_is_int(a) && dtype_is_int(b));
    if (dtype_is_complex(complex) && dtype_is_float(other)) {
        return dtype_widens(other, complex) ? complex : DTYPE_NONE;
    }
    return a == b || (reals && dtype_widens(b, a)) ? a
           : reals && dtype_widens(a, b)           ? b
           : reals                                 ? (dtype_widens(in, with) ? with : in)
                                                   : DTYPE_NONE;
}

DType result_type(DType t)
{
    return dtype_is_int(t) ? dtype_computes(t) : t;
}

/* A real operand among complex ones. A tensor is read as one, so that products of both are plain. */
static void become_complex(Kern *k, CheckedExpr *e, DType t)
{
    if (e->kind == CHECKED_READ) {
        e->dtype = t;
        return;
    }
    *e = *expr_cast_to(k, arena_copy(k->c->arena, e, sizeof *e), t, true);
}

/* Do all arguments have one type, that of those that have one? Those without keep waiting for the type in which the
 * statement computes. *type is it, or none when all are weak, and *weak says how. False after a report or when
 * poisoned. */
static bool unify(Kern *k, CheckedExpr *const *arg, uint32_t n, DType *type, Weak *weak)
{
    const CheckedExpr *strong = NULL;
    DType joint = DTYPE_NONE;
    *type = DTYPE_NONE;
    *weak = WEAK_NO;
    for (uint32_t a = 0; a < n; a++) {
        if (expr_is_poison(arg[a])) {
            return false;
        }
        if (arg[a]->weak != WEAK_NO) {
            *weak = arg[a]->weak > *weak ? arg[a]->weak : *weak;
        } else if (strong == NULL) {
            strong = arg[a];
            joint = strong->dtype;
        } else {
            DType both = joint_type(joint, arg[a]->dtype);
            if (both == DTYPE_NONE) {
                mismatch(k, strong, arg[a]);
                return false;
            }
            strong = both == joint ? strong : arg[a];
            joint = both;
        }
    }
    if (strong == NULL) {
        return true;
    }
    joint = *weak == WEAK_COMPLEX && dtype_is_float(joint) ? dtype_complex(joint)
                                                           : result_type(joint);
    *weak = WEAK_NO;
    *type = joint;
    for (uint32_t a = 0; a < n; a++) {
        if (!weak_suits(k, arg[a], joint, strong->span)) {
            return false;
        }
        if (arg[a]->weak == WEAK_NO && dtype_is_complex(joint) && arg[a]->dtype != joint) {
            become_complex(k, arg[a], joint);
        }
    }
    return true;
}

/* As the user wrote it: a function's name or an operator. */
static const char *op_spelling(Kern *k, Op op, AstId ast)
{
    const OpInfo *info = op_info(op);
    bool call = kern_node(k, ast)->kind == AST_CALL;
    return call || info->symbol[0] == '\0' ? info->name : info->symbol;
}

static CheckedExpr *bad_type(Kern *k, Op op, AstId ast, Span span, Span at,
                             const CheckedExpr *arg)
{
    DType t = arg->weak == WEAK_NO ? arg->dtype : weak_default(arg->weak);
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_BAD_TYPE, at, "'%s' is not defined for %s",
                               op_spelling(k, op, ast), dtype_name(t));
    if (arg->span.lo != at.lo) {
        mark_other(k->c, d, arg->span, dtype_name(t));
    }
    if (dtype_is_int(t) && op_info(op)->rule != RULE_LOGIC) {
        diag_help(d, "cast it: f64(...)");
    }
    return expr_poison(k, ast, span);
}

/* All arguments are weak and not constant: a weak result, or bool. */
static Weak weak_result(Kern *k, Op op, CheckedExpr *const *arg, uint32_t n, Weak weak)
{
    OpRule rule = op_info(op)->rule;
    if (rule == RULE_ORDER || rule == RULE_EQUAL) {
        for (uint32_t a = 0; a < n; a++) {
            (void)weak_settle(k, arg[a], weak_default(weak), (Span){0});
        }
        return WEAK_NO;
    }
    if (weak == WEAK_COMPLEX) {
        return rule == RULE_PART ? WEAK_FLOAT : weak;
    }
    return rule == RULE_FLOAT || rule == RULE_RFLOAT || op_info(op)->literal == LITERAL_FLOAT
               ? WEAK_FLOAT
               : weak;
}

CheckedExpr *expr_map(Kern *k, Op op, AstId ast, Span span, Span at, CheckedExpr *const *arg,
                      uint32_t n)
{
    uint32_t first = op == OP_SELECT ? 1 : 0; /* the condition has a type of its own */
    Weak weak = WEAK_NO;
    DType type = DTYPE_NONE;
    if (expr_is_poison(arg[0]) || !unify(k, arg + first, n - first, &type, &weak)) {
        return expr_poison(k, ast, span);
    }
    CheckedExpr *folded = weak_fold(k, op, ast, span, arg, n);
    if (folded != NULL) {
        return folded;
    }
    if (weak != WEAK_NO && op_info(op)->rule == RULE_LOGIC) {
        return bad_type(k, op, ast, span, at, arg[0]);
    }
    if (op == OP_SELECT && (arg[0]->weak != WEAK_NO || arg[0]->dtype != DTYPE_BOOL)) {
        diag_error(
            &k->c->ctx->diags, E_BAD_TYPE, arg[0]->span,
            "the condition of 'select' is bool, and this is %s",
            dtype_name(arg[0]->weak != WEAK_NO ? weak_default(arg[0]->weak) : arg[0]->dtype));
        return expr_poison(k, ast, span);
    }
    CheckedExpr *e = expr_new(k, CHECKED_MAP, ast, span);
    e->op = op;
    e->n = n;
    e->arg = arena_copy(k->c->arena, arg, n * sizeof *arg);
    if (weak != WEAK_NO) {
        e->weak = weak_result(k, op, arg, n, weak);
        if (e->weak != WEAK_NO) {
            return e;
        }
    }
    DType in[3] = {DTYPE_NONE};
    for (uint32_t a = 0; a < n; a++) {
        in[a] = a < first ? DTYPE_BOOL : type == DTYPE_NONE ? arg[a]->dtype : type;
    }
    if (!op_result_type(op, in, n, &e->dtype)) {
        return bad_type(k, op, ast, span, at, arg[first]);
    }
    return e;
}

/* ---- chains ---- */

void chain_add(Kern *k, CheckedExpr *chain, Op link, CheckedExpr *arg)
{
    uint32_t cap = chain->cap;
    chain->arg =
        vec_grow(k->c->arena, chain->arg, chain->n, &chain->cap, sizeof(CheckedExpr *));
    if (chain->cap != cap) {
        uint8_t *links = ARENA_ARRAY(k->c->arena, chain->cap, uint8_t);
        if (chain->n > 0) {
            memcpy(links, chain->link, chain->n);
        }
        chain->link = links;
    }
    chain->link[chain->n] = (uint8_t)link;
    chain->arg[chain->n++] = arg;
}

CheckedExpr *chain_type(Kern *k, CheckedExpr *e)
{
    Weak weak = WEAK_NO;
    DType t = DTYPE_NONE;
    if (!unify(k, e->arg, e->n, &t, &weak)) {
        return expr_poison(k, e->ast, e->span);
    }
    bool divides = false;
    for (uint32_t a = 1; a < e->n; a++) {
        divides = divides || e->link[a] == OP_DIV;
    }
    if (weak != WEAK_NO) {
        if (op_info(e->op)->rule == RULE_LOGIC) {
            return bad_type(k, e->op, e->ast, e->span, e->arg[0]->span, e->arg[0]);
        }
        e->weak = divides && weak == WEAK_INT ? WEAK_FLOAT : weak;
        return e;
    }
    DType in[2] = {t, t};
    bool truths =
        t == DTYPE_BOOL && e->op == OP_MUL && !divides; /* a product of bool is "and" */
    if (!truths && !op_result_type(e->op, in, 2, &e->dtype)) {
        return bad_type(k, divides && t == DTYPE_BOOL ? OP_DIV : e->op, e->ast, e->span,
                        e->arg[0]->span, e->arg[0]);
    }
    e->dtype = t;
    return e;
}

CheckedExpr *chain_of_two(Kern *k, Op link, AstId ast, Span span, CheckedExpr *x,
                          CheckedExpr *y)
{
    CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, span);
    chain->op = link == OP_SUB ? OP_ADD : link == OP_DIV ? OP_MUL : link;
    chain_add(k, chain, chain->op, x);
    chain_add(k, chain, link, y);
    return chain_type(k, chain);
}

static CheckedExpr *check_chain(Kern *k, AstId ast, uint32_t from, uint32_t to)
{
    const AstNode *n = kern_node(k, ast);
    CheckedExpr *first = expr_check(k, n->child[from]);
    uint32_t c = from + 1;
    for (; c < to; c++) { /* constants at the beginning */
        if (first->kind != CHECKED_CONST || first->weak == WEAK_NO) {
            break;
        }
        CheckedExpr *next = expr_check(k, n->child[c]);
        CheckedExpr *two[2] = {first, next};
        CheckedExpr *folded = weak_fold(k, (Op)n->link[c], ast, n->span, two, 2);
        if (folded == NULL) {
            CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, ast, n->span);
            chain->op = n->op;
            chain_add(k, chain, n->op, first);
            chain_add(k, chain, (Op)n->link[c], next);
            first = chain;
            c++;
            break;
        }
        first = folded;
    }
    if (c == to && first->kind != CHECKED_CHAIN) {
        return first;
    }
    CheckedExpr *chain = first;
    if (first->kind != CHECKED_CHAIN || first->ast != ast) {
        chain = expr_new(k, CHECKED_CHAIN, ast, n->span);
        chain->op = n->op;
        chain_add(k, chain, n->op, first);
    }
    for (; c < to; c++) {
        chain_add(k, chain, (Op)n->link[c], expr_check(k, n->child[c]));
    }
    return chain_type(k, chain);
}

/* ---- names and tensors ---- */

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
    if (!k->whole || (k->whole_rank >= 0 && (uint32_t)k->whole_rank != rank)) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, at,
                                   "'%s' has %u dimension%s but no indices here", name, rank,
                                   rank == 1 ? "" : "s");
        if (v->name != NULL) {
            diag_note(d, v->span, "it is declared here with shape %s",
                      shape_text(k->c->arena, &k->k->dims, &v->type));
        }
        return expr_poison(k, ast, at);
    }
    if (k->whole_rank < 0) {
        k->whole_rank = (int32_t)rank;
        k->whole_at = at;
        k->whole_name = v->name;
        k->whole_first = (int32_t)k->labels.n;
        for (uint32_t a = 0; a < rank; a++) {
            (void)label_new(k, NULL, at, true);
        }
    }
    int32_t label[RANK_LIMIT];
    k->reads++;
    for (uint32_t a = 0; a < rank; a++) {
        label[a] = k->whole_first + (int32_t)a;
        label_use(k, label[a], v->type.dims[a], at, value);
    }
    return expr_read(k, value, ast, at, label, rank);
}

static CheckedExpr *const_read(Kern *k, uint32_t global, AstId ast, Span at)
{
    global_evaluate(k->c, global, at);
    Global *g = &k->c->globals.at[global];
    g->uses++;
    if (g->poison || g->value == NULL) {
        return expr_poison(k, ast, at);
    }
    CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, at);
    *e = *g->value;
    e->typed = e->weak == WEAK_NO;
    e->ast = ast;
    e->span = at;
    return e;
}

/* The value of a dim where everything must be known: in constants and in arithmetic of extents. */
static CheckedExpr *const_dim(Kern *k, AstId ast, const AstNode *n)
{
    int64_t bound = 0;
    bool ok = true;
    if (dim_known(k, n->name) || (!k->library && define_find(k->c, n->name, &bound))) {
        Dim d = dim_named(k, n->name, n->span, &ok);
        if (ok && d.sym < 0) {
            return weak_const(k, ast, n->span, WEAK_INT, d.n, 0);
        }
    } else if (!k->in_extent) {
        return unknown_value(k, n->name, n->span);
    }
    if (ok) {
        Diagnostic *e =
            k->in_extent
                ? diag_unsupported(
                      &k->c->ctx->diags, E_NOT_YET, n->span,
                      "arithmetic with the open dim '%s' is not compiled by this version",
                      n->name->text)
                : diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n->span,
                             "dim '%s' is open, so this is not known here", n->name->text);
        diag_help(e, "bind it: -D %s=...", n->name->text);
    }
    return expr_poison(k, ast, n->span);
}

/* Numbers that have a name where nothing else has it. */
static bool number_named(const char *name, double *out)
{
    *out = strcmp(name, "inf") == 0   ? (double)INFINITY
           : strcmp(name, "nan") == 0 ? (double)NAN
                                      : 3.14159265358979323846;
    return strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0 || strcmp(name, "pi") == 0;
}

static CheckedExpr *check_name(Kern *k, AstId ast, const AstNode *n)
{
    uint32_t found = 0;
    if (k->k != NULL && map_get(&k->value_by_name, n->name->id, &found)) {
        const Value *v = &k->k->values.at[found];
        if (v->kind == VALUE_RESULT && !v->updated) {
            return unknown_value(k, n->name, n->span);
        }
        return expr_whole(k, found, ast, n->span);
    }
    if (global_named(k, n->name, &found)) {
        if (k->c->globals.at[found].is_const) {
            return const_read(k, found, ast, n->span);
        }
    }
    double number = 0;
    if (number_named(n->name->text, &number) && (k->k != NULL || !dim_known(k, n->name))) {
        return weak_const(k, ast, n->span, WEAK_FLOAT, 0, number);
    }
    if (k->k == NULL) {
        return const_dim(k, ast, n);
    }
    CheckedExpr *e = unknown_value(k, n->name, n->span);
    e->ast = ast;
    return e;
}

/* ---- indices ---- */

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
    const Label *l = alone ? &k->labels.at[out->term[0].var] : NULL;
    uint32_t how = 0;
    bool shifted = alone && !l->given && k->uses.at[out->term[0].var].n == 0 &&
                   map_get(&k->index_names, n.name->id, &how) && (how & INDEX_SHIFTED) != 0 &&
                   !dim_is(d, 1);
    *whole = alone && !shifted && (!l->given || dim_eq(l->extent, d));
    if (*whole) {
        label_use(k, (int32_t)out->term[0].var, d, n.span, value);
    } else {
        position_note(k, value, axis, *out, n.span);
    }
    return true;
}

bool index_labels(Kern *k, AstId ast, uint32_t value, int32_t *label, uint32_t *n_labels,
                  const Affine **at, const SplitShape **split)
{
    const AstNode *n = kern_node(k, ast);
    uint32_t count = n->n - 1;
    k->indexed = true;
    k->reads++;
    if (!index_count_fits(k, n, value)) {
        return false;
    }
    *at = NULL;
    *split = NULL;
    *n_labels = count;
    Affine *position = ARENA_ARRAY(k->c->arena, count, Affine);
    Span *span = ARENA_ARRAY(k->c->arena, count, Span);
    uint32_t first = k->late.n;
    bool ok = true, plain = true;
    for (uint32_t a = 0; a < count; a++) {
        bool whole = false;
        span[a] = kern_node(k, n->child[a + 1])->span;
        ok = position_of_axis(k, value, a, n->child[a + 1], &position[a], &whole) && ok;
        label[a] = whole ? (int32_t)position[a].term[0].var : -1;
        plain = plain && whole;
    }
    if (ok && !plain) {
        *at = position;
        ok = positions_split(k, value, span, &count, at, split);
        *n_labels = positions_labels(*at, count, label);
        positions_are_of(k, first, label, *n_labels);
    }
    return ok;
}

/* Indices of a tensor that is poison: they count as used. */
static void poison_labels(Kern *k, const AstNode *n)
{
    for (uint32_t a = 1; a < n->n; a++) {
        Affine x;
        if (kern_node(k, n->child[a])->kind != AST_NAME) {
            (void)position_affine(k, n->child[a], &x);
        }
    }
}

static CheckedExpr *check_indexed(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    const AstNode base = *kern_node(k, n.child[0]);
    uint32_t found = UINT32_MAX;
    if (k->k == NULL) {
        diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, n.span,
                   "this is not known at compile time");
        return expr_poison(k, ast, n.span);
    }
    uint32_t head = 0;
    if (base.kind == AST_CALL) {
        if (!einsum_is(&base) && kernel_named(k, base.name, &head)) {
            found = kernel_call_value(k, n.child[0]);
        } else if (!einsum_is(&base)) {
            diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                       "'%s' gives a number, which has no indices", base.name->text);
            return expr_poison(k, ast, n.span);
        } else {
            found = einsum_nested(k, n.child[0]);
        }
    } else if (!map_get(&k->value_by_name, base.name->id, &found)) {
        uint32_t global = 0;
        if (global_named(k, base.name, &global) && k->c->globals.at[global].is_const) {
            k->c->globals.at[global].uses++;
            diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, n.span,
                       "'%s' is a constant and has no indices", base.name->text);
        } else {
            (void)unknown_value(k, base.name, base.span);
        }
    } else if (k->k->values.at[found].kind == VALUE_RESULT && !k->k->values.at[found].updated) {
        (void)unknown_value(k, base.name, base.span);
        found = UINT32_MAX;
    }
    if (found == UINT32_MAX) {
        poison_labels(k, &n);
        return expr_poison(k, ast, n.span);
    }
    const TensorType type = k->k->values.at[found].type;
    int32_t label[RANK_LIMIT];
    uint32_t n_labels = 0;
    const Affine *at = NULL;
    const SplitShape *split = NULL;
    if (type.dtype != DTYPE_NONE && gather_is(k, &n)) {
        return gather_check(k, ast, found);
    }
    if (type.dtype == DTYPE_NONE) {
        poison_labels(k, &n);
    } else if (!index_labels(k, ast, found, label, &n_labels, &at, &split)) {
        k->k->values.at[found].uses++;
        return expr_poison(k, ast, n.span);
    }
    CheckedExpr *e = expr_read(k, found, ast, n.span, label, n_labels);
    e->at = at;
    e->split = split;
    return e;
}

/* ---- all kinds ---- */

static bool is_index_name(Kern *k, const AstNode *n)
{
    uint32_t label = 0, value = 0;
    return n->kind == AST_NAME && map_get(&k->label_by_name, n->name->id, &label) &&
           label > 0 && !map_get(&k->value_by_name, n->name->id, &value);
}

/* `k <= q` of two indices: true after a report. */
static bool indices_compared(Kern *k, const AstNode *n)
{
    const AstNode *x = kern_node(k, n->child[0]), *y = kern_node(k, n->child[1]);
    static const char *const signs[] = {[OP_EQ] = "==", [OP_NE] = "!=", [OP_LT] = "<",
                                        [OP_LE] = "<=", [OP_GT] = ">",  [OP_GE] = ">="};
    if (!is_index_name(k, x) || !is_index_name(k, y)) {
        return false;
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, n->span,
                   "'%s' and '%s' are indices, not values", x->name->text, y->name->text);
    diag_help(d, "their positions are compared by index(%s) %s index(%s)", x->name->text,
              signs[n->op], y->name->text);
    return true;
}

CheckedExpr *expr_check(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    CheckedExpr *e = NULL;
    CheckedExpr *arg[2] = {NULL, NULL};
    switch (n.kind) {
    case AST_INT:
        return weak_const(k, ast, n.span, WEAK_INT, n.value.i, 0);
    case AST_FLOAT:
        return weak_const(k, ast, n.span, WEAK_FLOAT, 0, n.value.f);
    case AST_IMAGINARY:
        return weak_complex(k, ast, n.span, 0, n.value.f);
    case AST_BOOL:
        e = expr_new(k, CHECKED_CONST, ast, n.span);
        e->dtype = DTYPE_BOOL;
        e->value = number_int(DTYPE_BOOL, n.value.i);
        return e;
    case AST_NAME:
        return check_name(k, ast, &n);
    case AST_INDEXED:
        return check_indexed(k, ast);
    case AST_CALL:
    case AST_REDUCE:
        return call_check(k, ast);
    case AST_UNARY:
        arg[0] = expr_check(k, n.child[0]);
        return expr_map(k, n.op, ast, n.span, n.at, arg, 1);
    case AST_COMPARE:
        if (indices_compared(k, &n)) {
            return expr_poison(k, ast, n.span);
        }
        arg[0] = expr_check(k, n.child[0]);
        arg[1] = expr_check(k, n.child[1]);
        return expr_map(k, n.op, ast, n.span, n.at, arg, 2);
    case AST_CHAIN:
        return check_chain(k, ast, 0, n.n);
    case AST_STRING:
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                   "a string stands only in einsum(...)");
        return expr_poison(k, ast, n.span);
    case AST_GROUP:
        diag_error(&k->c->ctx->diags, E_SYNTAX, n.span,
                   "indices in parentheses stand only in perm[...] and antisym[...]");
        return expr_poison(k, ast, n.span);
    case AST_NONE:
    case AST_BROKEN:
    case AST_FILE:
    case AST_INCLUDE:
    case AST_DIM:
    case AST_CONST:
    case AST_KERNEL:
    case AST_GRADIENT:
    case AST_LIST:
    case AST_PARAM:
    case AST_TYPE:
    case AST_ATTRIBUTE:
    case AST_ASSIGN:
    case AST_SPILL:
    case AST_KIND_COUNT:
        break;
    }
    return expr_poison(k, ast, n.span);
}
