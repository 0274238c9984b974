/* SPDX-License-Identifier: Apache-2.0 */
/* Names that mean nothing where they stand, and what may have been meant. */
#include <string.h>

#include "front/check_names.h"

/* ---- suggestions ---- */

typedef struct Near {
    Str name;
    const char *best;
    int distance;
} Near;

static Near near_start(Kern *k, Sym name)
{
    Diags *d = &k->c->ctx->diags;
    bool wanted = d->n_errors < d->limit; /* beyond it nobody reads them */
    int reach = name->n <= 4 ? 1 : name->n <= 8 ? 2 : 3;
    return (Near){{name->text, name->n}, NULL, wanted ? reach : 0};
}

static void near_offer(Near *n, const char *candidate)
{
    int d = str_distance(n->name, str_from(candidate), n->distance);
    /* a name with nothing in common is no suggestion */
    if (d > 0 && (size_t)d < n->name.n &&
        (d < n->distance || (d == n->distance && n->best == NULL))) {
        n->distance = d;
        n->best = candidate;
    }
}

static void near_globals(Kern *k, Near *n, bool consts)
{
    for (uint32_t g = 0; g < k->c->globals.n; g++) {
        if (k->c->globals.at[g].is_const == consts) {
            near_offer(n, k->c->globals.at[g].name->text);
        }
    }
}

/* The nearest of the visible values and constants, functions, or dims; null when none is near. */
static const char *suggest_value(Kern *k, Sym name)
{
    Near n = near_start(k, name);
    if (n.distance == 0) {
        return NULL;
    }
    for (uint32_t v = 0; k->k != NULL && v < k->k->values.n; v++) {
        if (k->k->values.at[v].name != NULL) {
            near_offer(&n, k->k->values.at[v].name->text);
        }
    }
    near_globals(k, &n, true);
    return n.best;
}

const char *suggest_dim(Kern *k, Sym name)
{
    Near n = near_start(k, name);
    if (n.distance == 0) {
        return NULL;
    }
    for (uint32_t d = 0; k->k != NULL && d < k->k->dims.list.n; d++) {
        near_offer(&n, k->k->dims.list.at[d].name->text);
    }
    near_globals(k, &n, false);
    return n.best;
}

static const char *suggest_function(Kern *k, Sym name)
{
    Near n = near_start(k, name);
    if (n.distance == 0) {
        return NULL;
    }
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_is_function((Op)op)) {
            near_offer(&n, op_info((Op)op)->name);
        }
    }
    const char *other = NULL;
    for (uint32_t i = 0; (other = name_at(i)) != NULL; i++) {
        near_offer(&n, other);
    }
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        near_offer(&n, dtype_name((DType)t));
    }
    return n.best;
}

/* ---- values ---- */

/* Does statement `from` need the value that statement `to` assigns, by way of later statements? Each statement is
 * looked at once. */
typedef struct Needs {
    Kern *k;
    bool *seen;
    VEC(uint32_t) todo;
    uint32_t to;
    bool found;
} Needs;

static void needs_scan(Needs *n, AstId id)
{
    const AstNode *a = ast_node(&n->k->c->program->ast, id);
    uint32_t at = 0;
    if ((a->kind == AST_NAME) && map_get(&n->k->assigned_later, a->name->id, &at)) {
        n->found = n->found || at == n->to;
        if (!n->seen[at]) {
            n->seen[at] = true;
            vec_push(n->k->c->arena, &n->todo, at);
        }
    }
    for (uint32_t c = 0; c < a->n; c++) {
        needs_scan(n, a->child[c]);
    }
}

static bool statement_needs(Kern *k, uint32_t from, uint32_t to)
{
    Needs n = {.k = k, .to = to};
    n.seen = ARENA_ARRAY(k->c->arena, k->body->n, bool);
    vec_push(k->c->arena, &n.todo, from);
    while (n.todo.n > 0 && !n.found) {
        const AstNode *s = kern_node(k, k->body->child[n.todo.at[--n.todo.n]]);
        if (s->kind == AST_ASSIGN) {
            needs_scan(&n, s->child[1]);
        }
    }
    return n.found;
}

static void report_later(Kern *k, Sym name, Span at, uint32_t later)
{
    Diags *diags = &k->c->ctx->diags;
    Span there = kern_node(k, k->body->child[later])->span;
    if (diags->n_errors >= diags->limit) {
        diag_error(diags, E_UNKNOWN_NAME, at, "'%s' has no value yet", name->text);
    } else if (later == k->statement || statement_needs(k, later, k->statement)) {
        Diagnostic *d = diag_error(diags, E_CYCLE, at, "'%s' depends on itself", name->text);
        if (later != k->statement) {
            diag_note(d, there, "it is assigned here, from a value that needs this one");
        }
    } else {
        Diagnostic *d =
            diag_error(diags, E_UNKNOWN_NAME, at, "'%s' has no value yet", name->text);
        diag_note(d, there, "it is assigned here, further down");
    }
}

/* How a number is written that other languages have a name for; null of other names. */
static const char *number_of_name(const char *name)
{
    static const struct {
        const char *name, *ours;
    } others[] = {{"Inf", "inf"},      {"INF", "inf"}, {"infinity", "inf"}, {"Infinity", "inf"},
                  {"INFINITY", "inf"}, {"NaN", "nan"}, {"Nan", "nan"},      {"NAN", "nan"},
                  {"PI", "pi"},        {"Pi", "pi"},   {"M_PI", "pi"},      {"True", "true"},
                  {"False", "false"}};
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++) {
        if (strcmp(name, others[n].name) == 0) {
            return others[n].ours;
        }
    }
    return NULL;
}

CheckedExpr *unknown_value(Kern *k, Sym name, Span at)
{
    Diags *diags = &k->c->ctx->diags;
    uint32_t later = 0, label = 0;
    if (k->k != NULL && recurrence_reported(k, name, at)) {
        return expr_poison(k, 0, at);
    }
    if (k->k != NULL && map_get(&k->assigned_later, name->id, &later) &&
        later >= k->statement) {
        report_later(k, name, at, later);
    } else if (k->k != NULL && map_get(&k->value_by_name, name->id, &later)) {
        diag_error(diags, E_UNKNOWN_NAME, at, "'%s' has no value yet", name->text);
    } else if (!k->damaged && !k->c->items_damaged) {
        Diagnostic *d =
            diag_error(diags, E_UNKNOWN_NAME, at, "'%s' is not defined", name->text);
        const char *near = suggest_value(k, name);
        if (map_get(&k->s.label_by_name, name->id, &label) && label > 0) {
            diag_help(d, "'%s' is an index; its position as a number is index(%s)", name->text,
                      name->text);
            diag_fix(d, at, "index(%s)", name->text);
        } else if (number_of_name(name->text) != NULL) {
            diag_meant(d, at, number_of_name(name->text));
        } else if (near != NULL) {
            diag_meant(d, at, near);
        } else if (dim_known(k, name)) {
            diag_help(d, "the extent of a dim is written extent(%s)", name->text);
            diag_fix(d, at, "extent(%s)", name->text);
        }
    }
    return expr_poison(k, 0, at);
}

bool value_named(Kern *k, const AstNode *n, uint32_t *value)
{
    bool known = map_get(&k->value_by_name, n->name->id, value);
    const Value *v = known ? &k->k->values.at[*value] : NULL;
    if (v == NULL || (v->kind == VALUE_RESULT && !v->updated)) {
        (void)unknown_value(k, n->name, n->span);
        return false;
    }
    return true;
}

/* ---- functions ---- */

/* `A(i,j)` as it should be. */
static const char *as_indexed(Kern *k, const AstNode *n)
{
    Text text = text_new(k->c->arena);
    text_printf(&text, "%s[", n->name->text);
    for (uint32_t a = 0; a < n->n && a < 8; a++) {
        const AstNode *i = kern_node(k, n->child[a]);
        text_printf(&text, "%s%s", a == 0 ? "" : ",",
                    i->kind == AST_NAME ? i->name->text : "...");
    }
    text_char(&text, ']');
    return text.at;
}

CheckedExpr *unknown_function(Kern *k, AstId ast, const AstNode *n)
{
    Diags *diags = &k->c->ctx->diags;
    uint32_t value = 0;
    if (map_get(&k->value_by_name, n->name->id, &value) && n->kind == AST_CALL) {
        Diagnostic *d = diag_error(diags, E_UNKNOWN_NAME, n->at,
                                   "'%s' is a value, not a function", n->name->text);
        diag_help(d, "its indices stand in '[' and ']': %s", as_indexed(k, n));
    } else if (n->kind == AST_CALL && is_reduction(n->name)) {
        Diagnostic *d = diag_error(diags, E_ARGUMENTS, n->at,
                                   "'%s' without the indices to reduce over", n->name->text);
        diag_help(d, "write %s[i](...)", n->name->text);
    } else {
        Diagnostic *d =
            diag_error(diags, E_UNKNOWN_NAME, n->at, "there is no %s '%s'",
                       n->kind == AST_REDUCE ? "reduction" : "function", n->name->text);
        const char *near = suggest_function(k, n->name), *cure = name_cure(n->name);
        const char *type = dtype_meant((Str){n->name->text, n->name->n});
        if (cure != NULL) {
            diag_help(d, "%s", cure);
        } else if (type != NULL) {
            diag_help(d, "a cast is written %s(x)", type);
            diag_fix(d, n->at, "%s", type);
        } else if (near != NULL) {
            diag_meant(d, n->at, near);
        }
    }
    return expr_poison(k, ast, n->span);
}
