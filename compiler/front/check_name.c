/* SPDX-License-Identifier: Apache-2.0 */
/* What names mean. Values, dims, indices and functions are four spaces of names. Each dim of a kernel is entered once: bound by -D, fixed or
 * open by the program's `dim`, a constant, or else a new open dimension of the kernel. */
#include <string.h>

#include "front/check_names.h"

/* ---- dims ---- */

static Dim dim_open_new(Kern *k, Sym name, int64_t typical, Span at)
{
    Dim d = dim_open((int32_t)k->k->dims.list.n);
    vec_push(k->c->arena, &k->k->dims.list,
             ((DimInfo){.name = name, .typical = typical, .span = at}));
    return d;
}

/* Dims that a call gives come before those that are computed: a head names them, or the program does. */
static bool is_in_time(Kern *k, Sym name, Span at)
{
    bool in_time = true;
    for (uint32_t d = 0; k->k != NULL && !k->is_called && d < k->k->dims.list.n; d++) {
        in_time = in_time && dim_is_given(&k->k->dims.list.at[d]);
    }
    if (!in_time) {
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, at,
                       "dim '%s' is not declared, and no parameter names it", name->text);
        diag_help(d, "it is declared by: dim %s;", name->text);
    }
    return in_time;
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
        *ok = is_in_time(k, name, at);
        d = k->k != NULL ? dim_open_new(k, name, typical, at) : dim_open(0);
    }
    if (k->k != NULL) {
        map_put(&k->dim_by_name, name->id, k->dims.n);
        vec_push(k->c->arena, &k->dims, ((KernDim){d, *ok}));
    }
    return d;
}

/* ---- element types ---- */

static const struct {
    const char *name;
    DType by_itself; /* where the kernel is looked at without a call */
    bool is_float, is_complex, is_int;
} words[WORDS] = {[WORD_FLOAT] = {"float", DTYPE_F64, true, false, false},
                  [WORD_COMPLEX] = {"complex", DTYPE_C128, false, true, false},
                  [WORD_INT] = {"int", DTYPE_I64, false, false, true},
                  [WORD_NUMBER] = {"number", DTYPE_F64, true, true, true}};

uint32_t dtype_word(Sym name)
{
    uint32_t w = 0;
    while (w < WORDS && strcmp(name->text, words[w].name) != 0) {
        w++;
    }
    return w;
}

bool dtype_suits_word(uint32_t word, DType t)
{
    return (words[word].is_float && dtype_is_float(t)) ||
           (words[word].is_complex && dtype_is_complex(t)) ||
           (words[word].is_int && dtype_is_int(t));
}

DType dtype_of_word(uint32_t word)
{
    return words[word].by_itself;
}

bool dtype_named(const Kern *k, Sym name, DType *out)
{
    uint32_t word = dtype_word(name);
    if (word < WORDS && k->word[word] != DTYPE_NONE) {
        *out = k->word[word];
        return true;
    }
    return dtype_from_name((Str){name->text, name->n}, out);
}

DType dtype_declared(Kern *k, const AstNode *n)
{
    DType t = DTYPE_NONE;
    if (dtype_named(k, n->name, &t)) {
        return t;
    }
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, n->at,
                               "there is no element type '%s'", n->name->text);
    const char *meant = dtype_meant((Str){n->name->text, n->name->n});
    if (meant != NULL) {
        diag_meant(d, n->at, meant);
    } else {
        diag_help(d, "the element types are %s", dtype_names());
    }
    return DTYPE_NONE;
}

/* ---- what is called ---- */

#define CURE_FORM(what)      NULL
#define CURE_REDUCTION(what) NULL
#define CURE_FOLD(what)      NULL
#define CURE_DENSE(what)     NULL
#define CURE_FUNCTION(what)  NULL
#define CURE_FOREIGN(what)   what

static const struct {
    const char *name;
    NameKind kind;
    const char *cure;
} names[] = {
#define NAME(kind, name, what) {name, NAME_##kind, CURE_##kind(what)},
#include "front/names.def"
    {NULL, NAME_NONE, NULL},
};

static uint32_t name_row(Sym name)
{
    uint32_t row = 0;
    while (names[row].name != NULL && strcmp(names[row].name, name->text) != 0) {
        row++;
    }
    return row;
}

NameKind name_kind(Sym name)
{
    return names[name_row(name)].kind;
}

const char *name_at(uint32_t i)
{
    return names[i].kind < NAME_FOREIGN ? names[i].name : NULL;
}

const char *name_cure(Sym name)
{
    return names[name_row(name)].cure;
}

bool einsum_is(const AstNode *n)
{
    return n->kind == AST_CALL && n->name != NULL && strcmp(n->name->text, "einsum") == 0;
}

bool kernel_named(const Kern *k, Sym name, uint32_t *head)
{
    return name != NULL && k->k != NULL && map_get(&k->c->kernel_by_name, name->id, head) &&
           kern_node(k, k->c->heads.at[*head].ast)->kind == AST_KERNEL;
}

bool function_named(Sym name, Op *op)
{
    return op_from_name((Str){name->text, name->n}, op) && op_is_function(*op);
}
