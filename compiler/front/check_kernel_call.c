/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernels: `P[b,k] = softmax[k](S[b,k]);`, `C = product(A, B);`, `(m, c) = update(m0, x);`. An index in the brackets is a
 * dimension of the parameters, in the order in which each operand has them; what else an operand has is batch. The kernel is
 * checked once more with the extents and types of the call, and its statements are copied (check_inline.c): one dispatch. */
#include "base/bits.h"
#include "front/kernel_call.h"

/* ---- what is called ---- */

/* A kernel is checked by itself before others call it. False when it is wrong, or needs the one that calls it. */
static bool callee_ready(const Calling *c)
{
    Kern *k = c->k;
    Diags *diags = &k->c->ctx->diags;
    const KernelHead *head = &k->c->heads.at[c->head];
    if (head->state == GLOBAL_BUSY) {
        Diagnostic *d =
            diag_error(diags, E_CYCLE, c->n.at, "kernel '%s' calls itself", kernel_name(c));
        diag_note(d, head->kernel->span, "it is defined here");
        return false;
    }
    if (k->c->calls >= KERNEL_DEPTH) {
        return diag_refuse_limit(diags, E_LIMIT_NESTING, c->n.at,
                                 "kernels that call each other more than %d deep",
                                 KERNEL_DEPTH);
    }
    k->c->calls++;
    kernel_check(k->c, c->head);
    k->c->calls--;
    return !k->c->heads.at[c->head].wrong;
}

/* ---- extents ---- */

static void dim_bind(Kern *inner, Sym name, Dim d)
{
    map_put(&inner->dim_by_name, name->id, inner->dims.n);
    vec_push(inner->c->arena, &inner->dims, ((KernDim){d, true}));
}

/* Is the name that of a number of the program, `dim n = 5` or a constant? What -D says of a dim is of the caller's. */
static bool is_fixed(const Kern *inner, Sym name)
{
    uint32_t global = 0;
    if (!global_named(inner, name, &global)) {
        return false;
    }
    const Global *g = &inner->c->globals.at[global];
    return g->is_const || ast_node(&inner->c->program->ast, g->ast)->op == OP_CONST;
}

/* Dims of the kernel that is called: those of the operands, and else the program's that the caller has too. */
static void dims_bind(const Calling *c, Kern *inner)
{
    for (uint32_t p = 0; p < c->n_operands; p++) {
        const AstNode *type = kern_node(c->k, kern_node(c->k, c->params.child[p])->child[0]);
        for (uint32_t d = 0; d < type->n; d++) {
            const AstNode *extent = kern_node(c->k, type->child[d]);
            uint32_t before = 0;
            if (extent->kind == AST_NAME &&
                !map_get(&inner->dim_by_name, extent->name->id, &before) &&
                !is_fixed(inner, extent->name)) {
                dim_bind(inner, extent->name, own_extent(c, &c->operand[p], d));
            }
        }
    }
    for (uint32_t g = 0; g < c->k->c->globals.n && !inner->library; g++) {
        const Global *global = &c->k->c->globals.at[g];
        uint32_t own = 0, before = 0;
        if (!global->is_const && global->dim.sym >= 0 &&
            map_get(&c->k->dim_by_name, global->name->id, &own) &&
            !map_get(&inner->dim_by_name, global->name->id, &before)) {
            dim_bind(inner, global->name, c->k->dims.at[own].dim);
        }
    }
}

/* Do the operands have the extents that the parameters ask for? */
static bool extents_fit(const Calling *c, const Kern *inner)
{
    bool ok = true;
    Arena *a = c->k->c->arena;
    for (uint32_t p = 0; p < c->n_operands; p++) {
        const Value *v = &inner->k->values.at[p];
        for (uint32_t d = 0; d < v->type.rank; d++) {
            Dim is = own_extent(c, &c->operand[p], d);
            if (v->type.dtype != DTYPE_NONE && !dim_eq(is, v->type.dims[d])) {
                Diagnostic *e = diag_error(&c->k->c->ctx->diags, E_EXTENT_MISMATCH,
                                           kern_node(c->k, c->operand[p].ast)->span,
                                           "dimension %u of '%s' in '%s' is %s but %s here", d,
                                           v->name->text, kernel_name(c),
                                           dim_text(a, &inner->k->dims, v->type.dims[d]),
                                           dim_text(a, &inner->k->dims, is));
                say_param(c, e, p);
                if (c->operand[p].n_own > 1 && c->operand[p].indexed) {
                    diag_help(e,
                              "the named indices are the dimensions of '%s' in the order in "
                              "which this operand has them",
                              v->name->text);
                }
                ok = false;
            }
        }
    }
    return ok;
}

/* Dims that the kernel has and no operand gives. */
static bool dims_given_all(const Calling *c, const Kern *inner, uint32_t before)
{
    for (uint32_t d = before; d < inner->k->dims.list.n; d++) {
        if (dim_is_given(&inner->k->dims.list.at[d])) {
            Diagnostic *e = diag_error(&c->k->c->ctx->diags, E_ARGUMENTS, c->n.span,
                                       "dim '%s' of '%s' follows from no operand",
                                       inner->k->dims.list.at[d].name->text, kernel_name(c));
            diag_note(e, inner->k->dims.list.at[d].span, "it is named here");
            return false;
        }
    }
    return true;
}

/* ---- the kernel with these operands ---- */

/* Checks the kernel as it is called. Its messages say where that is. False after a report. */
static bool callee_check(const Calling *c, Kern *inner)
{
    Diags *diags = &c->k->c->ctx->diags;
    uint32_t errors = diags->n_errors, before = c->k->k->dims.list.n;
    uint32_t first = diags->list.n;
    bool silent = diags->no_warnings;
    const AstNode n = *kern_node(c->k, c->k->c->heads.at[c->head].ast);
    CheckedKernel *own = ARENA_NEW(c->k->c->arena, CheckedKernel);
    own->name = n.name;
    own->span = n.at;
    own->dims = c->k->k->dims;
    kern_init(inner, c->k->c, own);
    inner->is_called = true;
    inner->library = c->k->c->heads.at[c->head].library;
    if (c->k->c->heads.at[c->head].words && !words_bind(c, inner->word)) {
        return false;
    }
    dims_bind(c, inner);
    diags->no_warnings = true; /* they have been said of it by itself */
    c->k->c->calls++;
    kernel_run(inner, &n);
    c->k->c->calls--;
    diags->no_warnings = silent;
    for (uint32_t d = first; d < diags->list.n; d++) {
        diag_note(diags->list.at[d], c->n.at, "'%s' is called here", kernel_name(c));
    }
    return !inner->wrong && diags->n_errors == errors && dims_given_all(c, inner, before) &&
           extents_fit(c, inner);
}

/* ---- results ---- */

static AstId index_node(Kern *k, Sym name, Span span)
{
    return ast_new(k->c->ctx, &k->c->program->ast, AST_NAME, span, name, span, NULL, 0);
}

/* With which indices result r is read: its batch, then of each dimension the index that is named for its dim, in the order of the
 * brackets; what no operand has takes what is left. Null after a report. */
static const AstId *result_indices(Calling *c, uint32_t r, uint64_t batch)
{
    Kern *k = c->k;
    const AstNode decl = *kern_node(k, c->results.child[r]);
    const AstNode type = *kern_node(k, decl.child[0]);
    AstId *index = ARENA_ARRAY(k->c->arena, 64 + type.n, AstId);
    bool taken[RANK_LIMIT] = {false};
    uint32_t n = 0;
    for (uint32_t b = 0; b < c->n_index; b++) {
        if (bits_has(&batch, b)) {
            index[n++] = index_node(k, c->index[b].name, c->n.span);
        }
    }
    for (uint32_t d = 0; d < type.n; d++) {
        const AstNode extent = *kern_node(k, type.child[d]);
        Named *found = NULL;
        for (uint32_t pass = 0; pass < 2 && found == NULL; pass++) {
            for (uint32_t j = 0; j < c->n_named && found == NULL; j++) {
                Named *named = &c->named[j];
                bool fits = pass == 0 ? named->dim != NULL && extent.kind == AST_NAME &&
                                            named->dim == extent.name
                                      : named->dim == NULL;
                found = fits && !taken[j] ? named : NULL;
            }
        }
        if (found == NULL) {
            Diagnostic *e = diag_error(&k->c->ctx->diags, E_ARGUMENTS, c->n.span,
                                       "dimension %u of the result '%s' of '%s' has no index",
                                       d, decl.name->text, kernel_name(c));
            diag_note(e, decl.at, "it is declared here");
            diag_help(e, "an index in the brackets that no operand has stands for it");
            return NULL;
        }
        taken[found - c->named] = true;
        found->dim = found->dim == NULL && extent.kind == AST_NAME ? extent.name : found->dim;
        found->used = true;
        index[n++] = index_node(k, found->name, c->n.span);
    }
    return index;
}

static bool results_bind(Calling *c, KernelCall *call, const uint64_t *batch)
{
    const AstId **index = ARENA_ARRAY(c->k->c->arena, call->n, const AstId *);
    for (uint32_t r = 0; r < call->n && !call->whole; r++) {
        index[r] = result_indices(c, r, batch[r]);
        if (index[r] == NULL) {
            return false;
        }
    }
    for (uint32_t j = 0; j < c->n_named; j++) {
        if (!c->named[j].used) {
            return diag_refuse(
                &c->k->c->ctx->diags, E_UNBOUND_INDEX, kern_node(c->k, c->named[j].ast)->span,
                "index '%s' is in no operand and no result", c->named[j].name->text);
        }
    }
    call->index = index;
    return true;
}

/* ---- all of it ---- */

static bool call_inline(Calling *c, KernelCall *call)
{
    Kern *k = c->k;
    Kern inner;
    if (!callee_ready(c) || !named_check(c) || !operands_check(c) || !indices_check(c) ||
        !callee_check(c, &inner)) {
        return false;
    }
    k->k->dims = inner.k->dims;
    Argument *argument = ARENA_ARRAY(k->c->arena, c->n_operands, Argument);
    for (uint32_t p = 0; p < c->n_operands; p++) {
        const Value *param = &inner.k->values.at[p];
        if (param->type.dtype == DTYPE_NONE || !operand_typed(c, p, param->type.dtype)) {
            return false;
        }
    }
    for (uint32_t p = 0; p < c->n_operands; p++) {
        argument[p] = argument_of(c, p, &inner.k->values.at[p]);
    }
    call->n = inner.k->n_results;
    call->whole = c->n_named == 0;
    for (uint32_t b = 0; b < c->n_index; b++) {
        call->whole = call->whole && c->index[b].name == NULL;
    }
    uint32_t *value = ARENA_ARRAY(k->c->arena, call->n, uint32_t);
    uint64_t *batch = ARENA_ARRAY(k->c->arena, call->n, uint64_t);
    call->value = value;
    return kernel_inline(k, inner.k, argument, c->index, c->n_index, c->n.span, value, batch) &&
           results_bind(c, call, batch);
}

static const KernelCall *call_done(Kern *k, KernelCall call)
{
    vec_push(k->c->arena, &k->kernel_calls, call);
    map_put(&k->call_by_ast, call.ast, k->kernel_calls.n);
    return &k->kernel_calls.at[k->kernel_calls.n - 1];
}

/* Copies the statements of the kernel. Null after a report. */
static const KernelCall *call_kernel(Kern *k, AstId ast, bool alone)
{
    Calling c = {.k = k, .ast = ast, .n = *kern_node(k, ast)};
    KernelCall call = {.ast = ast};
    (void)kernel_named(k, c.n.name, &c.head);
    const AstNode kernel = *kern_node(k, k->c->heads.at[c.head].ast);
    c.params = *kern_node(k, kernel.child[0]);
    c.results = *kern_node(k, kernel.child[1]);
    if (takes_inout(&c) && !alone) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_ARGUMENTS, c.n.span,
                                   "'%s' changes a parameter", kernel_name(&c));
        diag_help(d, "such a call is a statement: %s(...);", kernel_name(&c));
        return NULL;
    }
    if (!call_inline(&c, &call)) {
        k->s.poisoned = true;
        return NULL;
    }
    return call_done(k, call);
}

/* `softmax[k](S[b,k])`, `f(A)`; names that mean something else come first, but for functions that are operators: nobody writes x + y as
 * `add(x, y)`. */
static bool is_kernel_call(const Kern *k, const AstNode *n)
{
    uint32_t head = 0;
    DType t = DTYPE_NONE;
    Op op;
    if ((n->kind != AST_CALL && n->kind != AST_REDUCE) || !kernel_named(k, n->name, &head)) {
        return false;
    }
    if (n->kind == AST_REDUCE) {
        return !is_reduction(n->name);
    }
    NameKind kind = name_kind(n->name);
    bool function = function_named(n->name, &op) && op_info(op)->symbol[0] == '\0';
    return kind != NAME_FORM && kind != NAME_FUNCTION && !function &&
           !dtype_named(k, n->name, &t);
}

/* `einsum("ij,j->i", A, x)` in an expression. */
static void call_einsum_string(Kern *k, AstId id)
{
    uint32_t value = einsum_nested(k, id);
    if (value != UINT32_MAX) {
        const uint32_t *one = arena_copy(k->c->arena, &value, sizeof value);
        (void)call_done(k, (KernelCall){.ast = id, .whole = true, .n = 1, .value = one});
    }
}

/* `indexed`: it stands before brackets, where no function does. */
static void check_call(Kern *k, AstId id, bool indexed)
{
    const AstNode n = *kern_node(k, id);
    uint32_t head = 0;
    bool einsum = einsum_is(&n);
    bool kernel = is_kernel_call(k, &n) ||
                  (indexed && n.kind == AST_CALL && kernel_named(k, n.name, &head));
    if (call_is_done(k, id)) {
        return;
    }
    if (einsum || kernel) {
        map_put(&k->call_by_ast, id, 0);
    }
    if (einsum) {
        call_einsum_string(k, id);
        return;
    }
    if (kernel) {
        (void)call_kernel(k, id, false);
        return;
    }
    for (uint32_t c = 0; c < n.n; c++) {
        check_call(k, n.child[c], n.kind == AST_INDEXED && c == 0);
    }
}

/* What stands before a mistake is looked at as if that were not yet known. */
void calls_check(Kern *k, AstId id)
{
    bool poisoned = k->s.poisoned;
    check_call(k, id, false);
    k->s.poisoned = poisoned;
}

void kernel_call_statement(Kern *k, AstId ast)
{
    const AstNode n = *kern_node(k, ast);
    uint32_t head = 0;
    if (!kernel_named(k, n.name, &head)) {
        (void)unknown_function(k, ast, &n);
        return;
    }
    const KernelCall *call = call_kernel(k, ast, true);
    if (call != NULL && call->n > 0) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_ARGUMENTS, n.span,
                                   "the results of '%s' go nowhere", n.name->text);
        diag_help(d,
                  call->n == 1 ? "a value takes it: x = %s(...);"
                               : "values take them: (x, y) = %s(...);",
                  n.name->text);
    }
}
