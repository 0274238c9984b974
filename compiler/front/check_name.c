/* SPDX-License-Identifier: Apache-2.0 */
/* What names mean, and what may have been meant. Values, dims, indices and functions are four spaces of names. Each
 * dim of a kernel is entered once: bound by -D, fixed or open by the program's `dim`, a constant, or else a new open
 * dimension of the kernel. */
#include <string.h>

#include "front/check_parts.h"

/* ---- dims ---- */

static Dim dim_open_new(Kern *k, Sym name, int64_t typical, Span at)
{
    Dim d = dim_open((int32_t)k->k->dims.list.n);
    vec_push(k->c->arena, &k->k->dims.list,
             ((DimInfo){.name = name, .typical = typical, .span = at}));
    return d;
}

/* A constant of the program as an extent. */
static Dim dim_of_const(Kern *k, const Global *g, Span at, bool *ok)
{
    if (g->poison || g->value == NULL) {
        *ok = false;
        return dim_fixed(1);
    }
    if (g->value->kind != CHECKED_CONST || g->value->value.dtype == DTYPE_BOOL ||
        !(dtype_is_int(g->value->value.dtype))) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_NOT_CONSTANT, at,
                                   "'%s' is not an integer", g->name->text);
        diag_note(d, kern_node(k, g->ast)->at, "it is defined here");
        *ok = false;
        return dim_fixed(1);
    }
    return dim_fixed(g->value->value.i);
}

bool global_named(const Kern *k, Sym name, uint32_t *global)
{
    return !k->library && map_get(&k->c->global_by_name, name->id, global);
}

bool dim_known(Kern *k, Sym name)
{
    uint32_t at = 0;
    return map_get(&k->dim_by_name, name->id, &at) || global_named(k, name, &at);
}

Dim dim_named(Kern *k, Sym name, Span at, bool *ok)
{
    uint32_t found = 0;
    *ok = true;
    if (k->k != NULL && map_get(&k->dim_by_name, name->id, &found)) {
        *ok = k->dims.at[found].ok;
        return k->dims.at[found].dim;
    }
    Dim d;
    int64_t bound = 0;
    if (global_named(k, name, &found)) {
        global_evaluate(k->c, found, at);
        Global *g = &k->c->globals.at[found];
        g->uses++;
        *ok = !g->poison;
        d = g->dim;
        if (g->is_const) {
            d = dim_of_const(k, g, at, ok);
            *ok = *ok && extent_check(k->c, d.n, at);
        } else if (d.sym >= 0 && k->k != NULL) {
            d = dim_open_new(k, name, g->typical, kern_node(k, g->ast)->at);
        }
    } else if (!k->library && define_find(k->c, name, &bound)) {
        d = dim_fixed(bound);
        *ok = extent_check(k->c, bound, at);
    } else {
        int64_t typical = define_typical(k->c, name, DIM_TYPICAL_DEFAULT);
        d = k->k != NULL ? dim_open_new(k, name, typical, at) : dim_open(0);
    }
    if (k->k != NULL) {
        map_put(&k->dim_by_name, name->id, k->dims.n);
        vec_push(k->c->arena, &k->dims, ((KernDim){d, *ok}));
    }
    return d;
}

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

const char *suggest_function(Kern *k, Sym name)
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

/* ---- a name that means nothing here ---- */

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
        if (map_get(&k->label_by_name, name->id, &label) && label > 0) {
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
