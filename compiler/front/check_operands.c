/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a call of a kernel: each is a statement of its own, whose indices are those that the call's brackets name, in
 * the order of its parameter's dimensions, and batch. */
#include "base/bits.h"
#include "front/kernel_call.h"

void say_param(const Calling *c, Diagnostic *d, uint32_t p)
{
    const AstNode *param = kern_node(c->k, c->params.child[p]);
    diag_note(d, param->at, "'%s' is declared here", param->name->text);
}

/* ---- operands ---- */

/* An operand is a statement of its own: its indices are what is left of it. */
static bool operand_check(Calling *c, Operand *o)
{
    Kern *k = c->k;
    const Statement around = statement_open(k, true);
    positions_scan(k, o->ast);
    calls_check(k, o->ast);
    o->e = expr_check(k, o->ast);
    for (uint32_t l = 0; l < k->s.labels.n; l++) {
        k->s.labels.at[l].left = !k->s.labels.at[l].bound;
    }
    positions_infer(k);
    if (!k->s.poisoned) {
        positions_check(k);
    }
    o->indexed = k->s.indexed;
    if (!k->s.poisoned) {
        whole_check(k);
    }
    o->own = k->s;
    k->s = around;
    return !o->own.poisoned && !expr_is_poison(o->e);
}

/* `update(C, A)`: an inout parameter is given a value that the kernel may change. */
static bool inout_check(Calling *c, Operand *o, uint32_t p)
{
    Kern *k = c->k;
    Diags *diags = &k->c->ctx->diags;
    const AstNode n = *kern_node(k, o->ast);
    const AstNode param = *kern_node(k, c->params.child[p]);
    if (n.kind != AST_NAME) {
        Diagnostic *d =
            diag_error(diags, E_ARGUMENTS, n.span,
                       "'%s' changes its parameter '%s': it takes the name of a value",
                       kernel_name(c), param.name->text);
        say_param(c, d, p);
        return false;
    }
    if (!value_named(k, &n, &o->value)) {
        return false;
    }
    Value *v = &k->k->values.at[o->value];
    if (v->kind == VALUE_PARAM && !v->is_inout) {
        Diagnostic *d =
            diag_error(diags, E_NOT_ASSIGNABLE, n.span, "'%s' is a parameter", n.name->text);
        diag_note(d, v->span, "declare it inout to update it");
        return false;
    }
    v->updated = true;
    v->uses++;
    o->in_place = true;
    return v->type.dtype != DTYPE_NONE;
}

bool takes_inout(const Calling *c)
{
    bool any = false;
    for (uint32_t p = 0; p < c->params.n; p++) {
        any = any || kern_node(c->k, c->params.child[p])->flag;
    }
    return any;
}

bool operands_check(Calling *c)
{
    Kern *k = c->k;
    bool reduce = c->n.kind == AST_REDUCE;
    const AstNode *body = reduce ? kern_node(k, c->n.child[0]) : NULL;
    bool list = reduce && body->kind == AST_LIST;
    c->n_operands = !reduce ? c->n.n : list ? body->n : 1;
    const AstId *operand = !reduce ? c->n.child : list ? body->child : c->n.child;
    c->operand = ARENA_ARRAY(k->c->arena, c->n_operands, Operand);
    if (c->n_operands != c->params.n) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_ARGUMENTS, c->n.span,
                                   "'%s' takes %u operand%s, not %u", kernel_name(c),
                                   c->params.n, c->params.n == 1 ? "" : "s", c->n_operands);
        diag_note(d, k->c->heads.at[c->head].kernel->span, "it is defined here");
        return false;
    }
    bool ok = true;
    for (uint32_t p = 0; p < c->n_operands; p++) {
        Operand *o = &c->operand[p];
        o->ast = operand[p];
        ok = (kern_node(k, c->params.child[p])->flag ? inout_check(c, o, p)
                                                     : operand_check(c, o)) &&
             ok;
    }
    return ok;
}

/* ---- indices ---- */

bool named_check(Calling *c)
{
    Kern *k = c->k;
    for (uint32_t a = 1; c->n.kind == AST_REDUCE && a < c->n.n; a++) {
        const AstNode i = *kern_node(k, c->n.child[a]);
        bool again = false;
        for (uint32_t b = 0; b < c->n_named; b++) {
            again = again || c->named[b].name == i.name;
        }
        if (i.kind != AST_NAME || again || c->n_named == RANK_LIMIT) {
            return diag_refuse(&k->c->ctx->diags,
                               i.kind == AST_NAME ? E_REPEATED_INDEX : E_SYNTAX, i.span,
                               again ? "this index is named twice" : "an index is a name");
        }
        c->named[c->n_named++] = (Named){.ast = c->n.child[a], .name = i.name};
    }
    return true;
}

static Named *named_find(Calling *c, Sym name)
{
    for (uint32_t j = 0; j < c->n_named; j++) {
        if (c->named[j].name == name) {
            return &c->named[j];
        }
    }
    return NULL;
}

/* The batch index of this name, or of whole operands the one of this number; -1 after a report. */
static int batch_index(Calling *c, Sym name, uint32_t number, Dim extent, Span at)
{
    uint32_t b = 0;
    while (b < c->n_index && (name != NULL ? c->index[b].name != name : b != number)) {
        b++;
    }
    if (b == 64) {
        diag_limit(&c->k->c->ctx->diags, E_LIMIT_SIZE, at,
                   "a tensor has at most 64 dimensions");
        return -1;
    }
    if (b == c->n_index) {
        c->index[c->n_index++] = (BatchIndex){name, extent, at};
    } else if (dim_is(c->index[b].extent, 1)) {
        c->index[b].extent = extent;
    } else if (!dim_is(extent, 1) && !dim_eq(c->index[b].extent, extent)) {
        Arena *a = c->k->c->arena;
        Diagnostic *d =
            diag_error(&c->k->c->ctx->diags, E_EXTENT_MISMATCH, at,
                       "%s is %s here but %s in another operand",
                       name != NULL ? str_format(a, "index '%s'", name->text) : "a dimension",
                       dim_text(a, &c->k->k->dims, extent),
                       dim_text(a, &c->k->k->dims, c->index[b].extent));
        mark_other(c->k->c, d, c->index[b].at, "here");
        return -1;
    }
    return (int)b;
}

/* Which indices of the operand are dimensions of the parameter, and which are batch. */
static bool operand_indices(Calling *c, uint32_t p)
{
    Operand *o = &c->operand[p];
    Kern *k = c->k;
    const AstNode param = *kern_node(k, c->params.child[p]);
    const AstNode type = *kern_node(k, param.child[0]);
    Span span = kern_node(k, o->ast)->span;
    uint32_t whole = 0;
    if (o->in_place || o->e->kind == CHECKED_CONST) {
        const Value *v = o->in_place ? &k->k->values.at[o->value] : NULL;
        o->n_own = v != NULL ? v->type.rank : 0;
        if (o->n_own != type.n) {
            Diagnostic *d =
                diag_error(&k->c->ctx->diags, E_RANK_MISMATCH, span,
                           "this has %u dimension%s, and parameter '%s' has %u", o->n_own,
                           o->n_own == 1 ? "" : "s", param.name->text, type.n);
            say_param(c, d, p);
        }
        return o->n_own == type.n;
    }
    bool elementwise = !o->indexed && type.n == 0;
    for (uint32_t l = 0; l < o->own.labels.n; l++) {
        const Label *label = &o->own.labels.at[l];
        if (label->bound) {
            continue;
        }
        Named *named = o->indexed ? named_find(c, label->name) : NULL;
        if (named != NULL || (!o->indexed && !elementwise)) {
            o->own_label[o->n_own++] = (int32_t)l;
            const AstNode *extent =
                o->n_own <= type.n ? kern_node(k, type.child[o->n_own - 1]) : NULL;
            if (named != NULL && extent != NULL) {
                named->used = true;
                named->dim =
                    named->dim == NULL && extent->kind == AST_NAME ? extent->name : named->dim;
            }
            continue;
        }
        int b = batch_index(c, o->indexed ? label->name : NULL, whole++, label->extent, span);
        if (b < 0) {
            return false;
        }
        o->batch |= UINT64_C(1) << b;
        o->batch_label[b] = (int32_t)l;
    }
    if (o->n_own != type.n) {
        Diagnostic *d = diag_error(
            &k->c->ctx->diags, o->indexed ? E_ARGUMENTS : E_RANK_MISMATCH, span,
            o->indexed ? "parameter '%s' of '%s' has %u dimension%s, and %u of these indices "
                         "%s named in the brackets"
                       : "parameter '%s' of '%s' has %u dimension%s, and this has %u%.0s",
            param.name->text, kernel_name(c), type.n, type.n == 1 ? "" : "s", o->n_own,
            o->n_own == 1 ? "is" : "are");
        say_param(c, d, p);
        if (o->indexed && o->n_own < type.n) {
            diag_help(d, "what it runs over is named: %s[k](x[b,k])", kernel_name(c));
        }
        return false;
    }
    return true;
}

bool indices_check(Calling *c)
{
    bool any_named = c->n_named > 0, any_whole = false;
    for (uint32_t p = 0; p < c->n_operands; p++) {
        if (!operand_indices(c, p)) {
            return false;
        }
        const Operand *o = &c->operand[p];
        any_named = any_named || (!o->in_place && o->indexed);
        any_whole = any_whole || (!o->in_place && !o->indexed && o->own.whole_rank > 0);
    }
    if (any_named && any_whole) {
        diag_error(&c->k->c->ctx->diags, E_RANK_MISMATCH, c->n.span,
                   "operands with and without indices in one call");
    }
    return !(any_named && any_whole);
}

/* ---- types ---- */

static DType operand_type(const Calling *c, const Operand *o)
{
    return o->in_place             ? c->k->k->values.at[o->value].type.dtype
           : o->e->weak != WEAK_NO ? DTYPE_NONE
                                   : o->e->dtype;
}

bool words_bind(const Calling *c, DType *word)
{
    for (uint32_t p = 0; p < c->n_operands; p++) {
        const AstNode *type = kern_node(c->k, kern_node(c->k, c->params.child[p])->child[0]);
        uint32_t w = dtype_word(type->name);
        DType t = operand_type(c, &c->operand[p]);
        if (w == WORDS || t == DTYPE_NONE) {
            continue;
        }
        if (!dtype_suits_word(w, t)) {
            Diagnostic *d = diag_error(
                &c->k->c->ctx->diags, E_BAD_TYPE, kern_node(c->k, c->operand[p].ast)->span,
                "this is %s, which is no '%s'", dtype_name(t), type->name->text);
            say_param(c, d, p);
            return false;
        }
        word[w] = word[w] == DTYPE_NONE || dtype_widens(word[w], t) ? t : word[w];
    }
    for (uint32_t w = 0; w < WORDS; w++) {
        word[w] = word[w] == DTYPE_NONE ? dtype_of_word(w) : word[w];
    }
    return true;
}

bool operand_typed(const Calling *c, uint32_t p, DType t)
{
    Operand *o = &c->operand[p];
    Kern *k = c->k;
    Span declared = kern_node(k, c->params.child[p])->at, span = kern_node(k, o->ast)->span;
    DType from = operand_type(c, o);
    if (!o->in_place && o->e->weak != WEAK_NO) {
        return weak_settle(k, o->e, t, declared);
    }
    if (from == t || (!o->in_place && dtype_widens(from, t))) {
        return true;
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, span, "this is %s", dtype_name(from));
    diag_note(d, declared, "but parameter '%s' of '%s' is %s",
              kern_node(k, c->params.child[p])->name->text, kernel_name(c), dtype_name(t));
    if (!o->in_place && !dtype_is_complex(from)) {
        diag_help(d, "a cast says so: %s(...)", dtype_name(t));
        fix_call(k->c, d, span, dtype_name(t));
    }
    return false;
}

Dim own_extent(const Calling *c, const Operand *o, uint32_t d)
{
    return o->in_place ? c->k->k->values.at[o->value].type.dims[d]
                       : o->own.labels.at[o->own_label[d]].extent;
}

/* ---- arguments ---- */

/* Does it read all of a value as the parameter has it, batch first? Then that value is the argument. */
static bool reads_in_order(const Calling *c, uint32_t p, DType t)
{
    const Operand *o = &c->operand[p];
    const CheckedExpr *e = o->e;
    const Value *v = e->kind == CHECKED_READ ? &c->k->k->values.at[e->read] : NULL;
    uint32_t d = 0;
    if (v == NULL || e->at != NULL || e->dtype != t || v->type.dtype != t ||
        (dtype_is_half(t) && !v->declared && v->kind != VALUE_PARAM)) {
        return false;
    }
    for (uint32_t q = 0; q < c->n_operands; q++) {
        if (c->operand[q].in_place && c->operand[q].value == e->read) {
            return false; /* it is changed */
        }
    }
    for (uint32_t b = 0; b < c->n_index; b++) {
        if (bits_has(&o->batch, b)) {
            if (d >= e->rank || e->label[d] != o->batch_label[b]) {
                return false;
            }
            d++;
        }
    }
    for (uint32_t a = 0; a < o->n_own; a++, d++) {
        if (d >= e->rank || e->label[d] != o->own_label[a]) {
            return false;
        }
    }
    return d == e->rank;
}

Argument argument_of(const Calling *c, uint32_t p, const Value *param)
{
    Operand *o = &c->operand[p];
    Kern *k = c->k;
    DType t = param->type.dtype;
    if (o->in_place) {
        return (Argument){.value = o->value};
    }
    if (o->e->kind == CHECKED_CONST) {
        return (Argument){.number = o->e};
    }
    if (reads_in_order(c, p, t)) {
        return (Argument){.value = o->e->read, .batch = o->batch};
    }
    int32_t left[RANK_LIMIT + 64];
    uint32_t rank = 0;
    for (uint32_t b = 0; b < c->n_index; b++) {
        if (bits_has(&o->batch, b)) {
            left[rank++] = o->batch_label[b];
        }
    }
    for (uint32_t a = 0; a < o->n_own; a++) {
        left[rank++] = o->own_label[a];
    }
    Dim *dims = ARENA_ARRAY(k->c->arena, rank, Dim);
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = o->own.labels.at[left[d]].extent;
    }
    DType natural = o->e->dtype;
    CheckedExpr *right = compute_in(k, o->e, t);
    Sym name = inlined_name(k, kernel_name(c), param->name);
    uint32_t value = k->k->values.n;
    vec_push(k->c->arena, &k->k->values,
             ((Value){.kind = VALUE_LOCAL,
                      .name = name,
                      .type = {t, rank, dims},
                      .span = kern_node(k, o->ast)->span,
                      .inlined = true,
                      .declared = natural != t || dtype_is_half(t),
                      .assigned = true,
                      .updated = true,
                      .uses = 1}));
    statement_add(k, statement_made(k, &o->own, o->ast, value, left, rank,
                                    compute_target(k, right, value)));
    return (Argument){.value = value, .batch = o->batch};
}
