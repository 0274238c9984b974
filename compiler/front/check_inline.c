/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in kernels: the checked statements of one, copied into another. What the call's operands have beside the indices that
 * it names, the batch, goes to all that is computed from them: with softmax[k](S[b,k]),
 *
 *     e[k] = exp(x[k] - max[l](x[l]))    becomes    e[b,k] = exp(S[b,k] - max[l](S[b,l]))
 *
 * Batch indices are the first of each value that has them, and the first labels of each statement; a value has those of the values
 * that it is computed from, so what depends on none of them is computed once.
 *
 * Copies of text would catch names, and each notation would have to know of the batch; a call in the graph would hide fusion from every pass.
 * Checked statements have one form, and nothing behind them knows of calls. */
#include <string.h>

#include "base/bits.h"
#include "front/check_kernel.h"

/* Statements that calls may bring into the kernels of a program. */
#define INLINED_LIMIT 100000

typedef struct Inline {
    Kern *k;
    const CheckedKernel *of;
    const BatchIndex *index;
    uint32_t n_index;
    Argument *is; /* of each value of `of` */
    /* the statement that is copied */
    int32_t label[RANK_LIMIT]; /* of each batch index it has; -1: none */
    VarRef *to;                /* what each of its labels becomes */
    bool read[RANK_LIMIT];     /* batch indices that its right side reads */
} Inline;

/* ---- which batch indices each value has ---- */

/* The numbers of batch indices; how many there are. */
static uint32_t batch_list(const Inline *in, uint64_t batch, uint32_t *list)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < in->n_index; b++) {
        if (bits_has(&batch, b)) {
            list[n++] = b;
        }
    }
    return n;
}

static uint64_t batch_of(const Inline *in, const CheckedExpr *e)
{
    uint64_t bits = 0;
    if (e->kind == CHECKED_READ || e->kind == CHECKED_GATHER) {
        bits = in->is[e->read].batch;
    }
    for (uint32_t a = 0; a < e->n; a++) {
        bits |= batch_of(in, e->arg[a]);
    }
    return bits;
}

/* All values of a recurrence have the batch of one, and what they begin with. True when one has got more. */
static bool spread_steps(Inline *in, const CheckedSteps *steps)
{
    uint64_t bits = 0, before = UINT64_MAX;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < steps->n; i++) {
            const CheckedState *s = &steps->state[i];
            uint32_t n_given = s->given == NULL   ? 0
                               : steps->given > 0 ? steps->given
                                                  : s->n_lags;
            for (uint32_t k = 0; k < 1 + s->n_lags + n_given; k++) {
                uint32_t v = k == 0           ? s->value
                             : k <= s->n_lags ? s->prior[k - 1]
                                              : s->given[k - 1 - s->n_lags];
                if (v == UINT32_MAX) {
                    continue;
                }
                before &= round == 0 ? in->is[v].batch : before;
                bits |= in->is[v].batch;
                in->is[v].batch = round == 0 ? in->is[v].batch : bits;
            }
        }
    }
    return (bits & ~before) != 0;
}

/* A value may be put together by several statements: until nothing changes. False when a parameter would have to get a batch that
 * the caller's value has not. */
static bool spread(Inline *in)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t s = 0; s < in->of->statements.n; s++) {
            const CheckedStatement *one = &in->of->statements.at[s];
            uint64_t *batch = &in->is[one->target].batch, bits = batch_of(in, one->right);
            if ((bits & ~*batch) != 0 && in->of->values.at[one->target].kind == VALUE_PARAM) {
                return false;
            }
            changed = changed || (bits & ~*batch) != 0;
            *batch |= bits;
        }
        for (uint32_t r = 0; r < in->of->steps.n; r++) {
            changed = spread_steps(in, &in->of->steps.at[r]) || changed;
        }
    }
    return true;
}

/* ---- names ---- */

Sym inlined_name(Kern *k, const char *kernel, Sym name)
{
    Arena *arena = k->c->arena;
    const char *text =
        kernel == NULL ? name->text : str_format(arena, "%s_%s", kernel, name->text);
    Sym plain = sym_cstr(&k->c->ctx->syms, text);
    uint32_t number = 0, at = 0;
    (void)map_get(&k->inlined_names, plain->id, &number);
    for (;;) {
        Sym sym = number == 0 ? plain
                              : sym_cstr(&k->c->ctx->syms,
                                         str_format(arena, "%s_%u", text, number + 1));
        number++;
        if (!map_get(&k->value_by_name, sym->id, &at) &&
            !map_get(&k->assigned_later, sym->id, &at) &&
            !map_get(&k->c->global_by_name, sym->id, &at) &&
            (sym == plain || !map_get(&k->inlined_names, sym->id, &at))) {
            map_put(&k->inlined_names, plain->id, number);
            if (sym != plain) {
                map_put(&k->inlined_names, sym->id, 1);
            }
            return sym;
        }
    }
}

static bool is_label_name(const Label *label, uint32_t n, Sym name)
{
    for (uint32_t l = 0; l < n; l++) {
        if (label[l].name == name) {
            return true;
        }
    }
    return false;
}

/* A batch index and an index of the kernel that is called may have one name. */
static void part_names(Inline *in, Label *label, uint32_t n_batch, uint32_t n)
{
    for (uint32_t l = n_batch; l < n; l++) {
        Sym name = label[l].name;
        for (uint32_t number = 2; name != NULL && is_label_name(label, n_batch, name);) {
            Sym other =
                sym_cstr(&in->k->c->ctx->syms,
                         str_format(in->k->c->arena, "%s%u", label[l].name->text, number++));
            name = is_label_name(label, n, other) ? name : other;
        }
        label[l].name = name;
    }
}

/* ---- values ---- */

/* The type in which a statement without a declared type would compute its value; NONE: numbers decide. */
static DType natural_type(const CheckedExpr *e)
{
    if (e->kind == CHECKED_CONST) {
        return e->typed ? e->dtype : DTYPE_NONE;
    }
    if (e->kind == CHECKED_EXTENT || e->kind == CHECKED_INDEX) {
        return DTYPE_NONE;
    }
    if (e->kind != CHECKED_CHAIN && !(e->kind == CHECKED_MAP && e->implicit) &&
        !(e->kind == CHECKED_MAP && e->op == OP_SELECT) && e->kind != CHECKED_REDUCE &&
        e->kind != CHECKED_DENSE) {
        return e->dtype;
    }
    DType t = DTYPE_NONE;
    for (uint32_t a = e->kind == CHECKED_MAP && e->op == OP_SELECT ? 1 : 0; a < e->n; a++) {
        DType other = natural_type(e->arg[a]);
        t = t == DTYPE_NONE || dtype_widens(t, other) ? other : t;
    }
    return t;
}

static bool needs_type(const Inline *in, uint32_t value, const Value *v)
{
    if (v->declared || dtype_is_half(v->type.dtype)) {
        return v->declared || v->kind == VALUE_RESULT;
    }
    for (uint32_t s = 0; s < in->of->statements.n; s++) {
        const CheckedStatement *one = &in->of->statements.at[s];
        if (one->target == value) {
            return natural_type(one->right) != v->type.dtype;
        }
    }
    return false;
}

static bool copy_values(Inline *in, Span at)
{
    Kern *k = in->k;
    for (uint32_t v = in->of->n_params; v < in->of->values.n; v++) {
        Value value = in->of->values.at[v];
        uint64_t batch = in->is[v].batch;
        uint32_t b[RANK_LIMIT], n = batch_list(in, batch, b);
        if (value.type.rank + n > RANK_LIMIT) {
            return diag_refuse_limit(&k->c->ctx->diags, E_LIMIT_SIZE, at,
                                     "a tensor has at most %d dimensions", RANK_LIMIT);
        }
        Dim *dims = ARENA_ARRAY(k->c->arena, n + value.type.rank, Dim);
        for (uint32_t d = 0; d < n + value.type.rank; d++) {
            dims[d] = d < n ? in->index[b[d]].extent : value.type.dims[d - n];
        }
        value.declared = needs_type(in, v, &value);
        value.kind = value.kind == VALUE_RESULT ? VALUE_LOCAL : value.kind;
        if (value.name != NULL) {
            value.name = inlined_name(k, value.inlined ? NULL : in->of->name->text, value.name);
        }
        value.inlined = true;
        value.type.rank += n;
        value.type.dims = dims;
        value.triangle.row += n;
        value.triangle.column += n;
        value.uses += 1;
        int64_t bytes = 0;
        if (!type_bytes(&value.type, &bytes)) {
            return diag_refuse(&k->c->ctx->diags, E_EXTENT_RANGE, at,
                               "the size of '%s' overflows 64 bits", value.name->text);
        }
        if (value.step > 0) {
            value.step += n;
        }
        if (value.place != NULL) {
            StepsPlace *place = arena_copy(k->c->arena, value.place, sizeof *place);
            place->dim += n;
            value.place = place;
        }
        in->is[v].value = k->k->values.n;
        vec_push(k->c->arena, &k->k->values, value);
    }
    return true;
}

/* ---- recurrences ---- */

static uint32_t *values_here(const Inline *in, uint32_t n, const uint32_t *value)
{
    uint32_t *out = ARENA_ARRAY(in->k->c->arena, n, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = value[i] == UINT32_MAX ? UINT32_MAX : in->is[value[i]].value;
    }
    return out;
}

/* What a step reads, and begins with, is called after the value as it is called here. */
static void name_places(Inline *in, uint32_t n, const uint32_t *value, Sym name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (value[i] != UINT32_MAX) {
            StepsPlace *place = (StepsPlace *)(uintptr_t)in->k->k->values.at[value[i]].place;
            if (place != NULL) { /* a copy of ours */
                place->of = name;
            }
        }
    }
}

/* `first`: the number here of the kernel's first statement. */
static void copy_steps(Inline *in, const CheckedSteps *from, uint32_t first)
{
    CheckedSteps steps = *from;
    CheckedState *state = ARENA_ARRAY(in->k->c->arena, from->n, CheckedState);
    steps.first += first;
    steps.end += first;
    for (uint32_t i = 0; i < from->n; i++) {
        CheckedState s = from->state[i];
        uint32_t n_given = s.given == NULL ? 0 : from->given > 0 ? from->given : s.n_lags;
        s.dim += bits_count(&in->is[s.value].batch, 1);
        s.value = in->is[s.value].value;
        s.prior = s.prior == NULL ? NULL : values_here(in, s.n_lags, s.prior);
        s.given = s.given == NULL ? NULL : values_here(in, n_given, s.given);
        Sym name = in->k->k->values.at[s.value].name;
        name_places(in, s.n_lags, s.prior, name);
        name_places(in, n_given, s.given, name);
        state[i] = s;
    }
    steps.state = state;
    vec_push(in->k->c->arena, &in->k->k->steps, steps);
}

/* ---- expressions ---- */

/* The batch labels, then `label`. */
static int32_t *with_batch(const Inline *in, uint64_t batch, const int32_t *label, uint32_t n)
{
    uint32_t b[RANK_LIMIT], first = batch_list(in, batch, b);
    int32_t *all = ARENA_ARRAY(in->k->c->arena, first + n, int32_t);
    for (uint32_t a = 0; a < first + n; a++) {
        all[a] = a < first ? in->label[b[a]] : (int32_t)in->to[label[a - first]];
    }
    return all;
}

static const Affine *positions_with_batch(const Inline *in, uint64_t batch, const Affine *at,
                                          uint32_t rank)
{
    Arena *arena = in->k->c->arena;
    uint32_t b[RANK_LIMIT], first = batch_list(in, batch, b);
    Affine *all = ARENA_ARRAY(arena, first + rank, Affine);
    for (uint32_t a = 0; a < first + rank; a++) {
        all[a] = a < first ? affine_var(arena, (VarRef)in->label[b[a]])
                           : affine_rename(arena, at[a - first], in->to);
    }
    return all;
}

static const SplitShape *split_with_batch(const Inline *in, uint64_t batch,
                                          const SplitShape *split)
{
    uint32_t b[RANK_LIMIT], n = batch_list(in, batch, b);
    if (split == NULL || n == 0) {
        return split;
    }
    Dim *dims = ARENA_ARRAY(in->k->c->arena, n + split->rank, Dim);
    uint32_t *axis = ARENA_ARRAY(in->k->c->arena, n + split->rank, uint32_t);
    for (uint32_t d = 0; d < n + split->rank; d++) {
        dims[d] = d < n ? in->index[b[d]].extent : split->dims[d - n];
        axis[d] = d < n ? d : split->axis[d - n] + n;
    }
    SplitShape *all = ARENA_NEW(in->k->c->arena, SplitShape);
    *all = (SplitShape){n + split->rank, dims, axis};
    return all;
}

/* `first` batch positions, then the arguments there are. */
static void gather_with_batch(Inline *in, uint64_t batch, CheckedExpr *e)
{
    uint32_t b[RANK_LIMIT], n = batch_list(in, batch, b);
    CheckedExpr **all = ARENA_ARRAY(in->k->c->arena, n + e->n, CheckedExpr *);
    for (uint32_t d = 0; d < n; d++) {
        all[d] = expr_of_index(in->k, e->ast, e->span, in->label[b[d]]);
        all[d]->dtype = DTYPE_I64;
    }
    memcpy(all + n, e->arg, e->n * sizeof *all);
    e->arg = all;
    e->n += n;
}

static CheckedExpr *number_as(Inline *in, const CheckedExpr *read, const CheckedExpr *number)
{
    CheckedExpr *e = expr_new(in->k, CHECKED_CONST, read->ast, read->span);
    e->dtype = read->dtype;
    e->typed = true;
    e->value = number_cast(number->value, read->dtype);
    return e;
}

static CheckedExpr *copy_expr(Inline *in, const CheckedExpr *from)
{
    Arena *arena = in->k->c->arena;
    bool reads = from->kind == CHECKED_READ || from->kind == CHECKED_GATHER;
    const Argument *is = reads || from->placed ? &in->is[from->read] : NULL;
    if (reads && is->number != NULL) {
        return number_as(in, from, is->number);
    }
    CheckedExpr *e = arena_copy(arena, from, sizeof *from);
    if (e->n > 0) {
        e->arg = ARENA_ARRAY(arena, from->n, CheckedExpr *);
        e->cap = from->n;
    }
    for (uint32_t a = 0; a < from->n; a++) {
        e->arg[a] = copy_expr(in, from->arg[a]);
    }
    if (is != NULL) {
        e->read = is->value;
        e->dim += e->placed ? (int32_t)bits_count(&is->batch, 1) : 0;
    }
    for (uint32_t b = 0; reads && b < in->n_index; b++) {
        in->read[b] = in->read[b] || bits_has(&is->batch, b);
    }
    if (from->kind == CHECKED_GATHER) {
        gather_with_batch(in, is->batch, e);
        return e;
    }
    uint64_t batch = from->kind == CHECKED_READ ? is->batch : 0;
    if (from->kind == CHECKED_READ && from->at != NULL) {
        uint32_t rank =
            from->split != NULL ? from->split->rank : in->of->values.at[from->read].type.rank;
        e->at = positions_with_batch(in, batch, from->at, rank);
        e->split = split_with_batch(in, batch, from->split);
    }
    if (from->rank > 0 || batch != 0) {
        e->label = with_batch(in, batch, from->label, from->rank);
        e->rank = from->rank + bits_count(&batch, 1);
    }
    return e;
}

/* ---- statements ---- */

/* Is the position of a batch index asked for in the statement? Gathers do so. */
static bool gathers_batch(const Inline *in, const CheckedExpr *e)
{
    bool found = e->kind == CHECKED_GATHER && in->is[e->read].batch != 0;
    for (uint32_t a = 0; a < e->n && !found; a++) {
        found = gathers_batch(in, e->arg[a]);
    }
    return found;
}

static void copy_statement(Inline *in, const CheckedStatement *from)
{
    Kern *k = in->k;
    uint64_t batch = in->is[from->target].batch;
    uint32_t n = bits_count(&batch, 1), d = 0;
    Label *label = ARENA_ARRAY(k->c->arena, n + from->n_labels, Label);
    for (uint32_t b = 0; b < in->n_index; b++) {
        in->read[b] = false;
        in->label[b] = -1;
        if (bits_has(&batch, b)) {
            in->label[b] = (int32_t)d;
            label[d++] = (Label){.name = in->index[b].name,
                                 .span = in->index[b].at,
                                 .extent = in->index[b].extent,
                                 .left = true,
                                 .valued = gathers_batch(in, from->right)};
        }
    }
    in->to = ARENA_ARRAY(k->c->arena, from->n_labels, VarRef);
    for (uint32_t l = 0; l < from->n_labels; l++) {
        label[n + l] = from->label[l];
        in->to[l] = n + l;
    }
    part_names(in, label, n, n + from->n_labels);
    CheckedStatement s = *from;
    s.target = in->is[from->target].value;
    s.n_labels = n + from->n_labels;
    s.label = label;
    s.rank = n + from->rank;
    s.left = with_batch(in, batch, from->left, from->rank);
    if (from->at != NULL) {
        uint32_t rank =
            from->split != NULL ? from->split->rank : in->of->values.at[from->target].type.rank;
        s.at = positions_with_batch(in, batch, from->at, rank);
        s.split = split_with_batch(in, batch, from->split);
    }
    s.right = copy_expr(in, from->right);
    for (uint32_t b = 0; b < in->n_index; b++) {
        if (in->label[b] >= 0 && !in->read[b]) {
            label[in->label[b]].given = true;
        }
    }
    statement_add(k, s);
}

bool kernel_inline(Kern *k, const CheckedKernel *of, const Argument *argument,
                   const BatchIndex *index, uint32_t n_index, Span at, uint32_t *result,
                   uint64_t *batch)
{
    Inline in = {.k = k, .of = of, .index = index, .n_index = n_index};
    in.is = ARENA_ARRAY(k->c->arena, of->values.n, Argument);
    if (of->n_params > 0) {
        memcpy(in.is, argument, of->n_params * sizeof *argument);
    }
    k->c->inlined += of->statements.n;
    if (k->c->inlined > INLINED_LIMIT) {
        return diag_refuse_limit(&k->c->ctx->diags, E_LIMIT_SIZE, at,
                                 "calls of kernels make more than %d statements",
                                 INLINED_LIMIT);
    }
    if (!spread(&in)) {
        return diag_refuse(&k->c->ctx->diags, E_ARGUMENTS, at,
                           "'%s' changes an operand that lacks an index of the others",
                           of->name->text);
    }
    if (!copy_values(&in, at)) {
        return false;
    }
    if (of->steps.n > 0 && k->body != NULL && steps_group(k, k->statement) != NULL) {
        diag_unsupported(&k->c->ctx->diags, E_NOT_YET, at,
                         "a recurrence in a step of a recurrence is not compiled by this "
                         "version");
        return false;
    }
    uint32_t first = k->k->statements.n;
    for (uint32_t s = 0; s < of->statements.n; s++) {
        copy_statement(&in, &of->statements.at[s]);
    }
    for (uint32_t r = 0; r < of->steps.n; r++) {
        copy_steps(&in, &of->steps.at[r], first);
    }
    k->k->places = k->k->places || of->places;
    for (uint32_t r = 0; r < of->n_results; r++) {
        result[r] = in.is[of->n_params + r].value;
        batch[r] = in.is[of->n_params + r].batch;
    }
    return true;
}
