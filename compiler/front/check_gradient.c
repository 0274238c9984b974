/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of kernels: `kernel dE = grad E(x, y) with E;`, `kernel dR = vjp R(x);`. */
#include <string.h>

#include "front/check_kernel.h"

#define ORDER_LIMIT 3 /* each order has several times the work of the one before */

typedef struct Gradients {
    Check *c;
    AstNode n;
    const CheckedKernel *of;
    CheckedGradient *to;
} Gradients;

static const AstNode *node(const Gradients *g, AstId id)
{
    return ast_node(&g->c->program->ast, id);
}

/* The kernel that derivatives are of. Null after a report. */
static const CheckedKernel *kernel_of(Gradients *g)
{
    Check *c = g->c;
    Diags *diags = &c->ctx->diags;
    const AstNode name = *node(g, g->n.child[1]);
    uint32_t head = 0;
    if (!map_get(&c->kernel_by_name, name.name->id, &head)) {
        if (!c->items_damaged) {
            diag_error(diags, E_UNKNOWN_NAME, name.span, "there is no kernel '%s'",
                       name.name->text);
        }
        return NULL;
    }
    if (c->heads.at[head].state == GLOBAL_BUSY) {
        diag_error(diags, E_CYCLE, name.span, "'%s' is the derivative of itself",
                   name.name->text);
        return NULL;
    }
    if (c->calls >= KERNEL_DEPTH) {
        diag_limit(diags, E_LIMIT_NESTING, name.span,
                   "kernels that are made of each other more than %d deep", KERNEL_DEPTH);
        return NULL;
    }
    c->calls++;
    head_check(c, head);
    c->calls--;
    const KernelHead *is = &c->heads.at[head];
    if (is->words) {
        Diagnostic *d = diag_error(diags, E_BAD_TYPE, name.span,
                                   "'%s' has words for its element types", name.name->text);
        diag_help(d, "a kernel with types that calls it has derivatives");
        return NULL;
    }
    uint32_t order = 1;
    for (const CheckedKernel *k = is->kernel; k->gradient != NULL; k = k->gradient->of) {
        order++;
    }
    if (order > ORDER_LIMIT) {
        diag_limit(diags, E_LIMIT_SIZE, name.span, "derivatives of an order above %d",
                   ORDER_LIMIT);
        return NULL;
    }
    return is->wrong ? NULL : is->kernel;
}

/* Has it anything that derivatives cannot be of? */
static bool kernel_fits(const Gradients *g)
{
    Diags *diags = &g->c->ctx->diags;
    Span at = node(g, g->n.child[1])->span;
    uint32_t floats = 0;
    const Value *last = NULL;
    for (uint32_t v = 0; v < g->of->n_params + g->of->n_results; v++) {
        const Value *value = &g->of->values.at[v];
        if (value->is_inout) {
            Diagnostic *d =
                diag_error(diags, E_BAD_TYPE, at,
                           "'%s' changes its parameter '%s', and has no derivatives",
                           g->of->name->text, value->name->text);
            diag_note(d, value->span, "it is declared here");
            return false;
        }
        if (value->kind == VALUE_RESULT) {
            floats += !dtype_is_exact(value->type.dtype);
            last = value;
        }
    }
    bool number =
        g->of->n_results == 1 && last->type.rank == 0 && dtype_is_float(last->type.dtype);
    if (!g->to->seeds && !number) {
        Diagnostic *d = diag_error(diags, E_ARGUMENTS, at, "'%s' does not give one real number",
                                   g->of->name->text);
        diag_help(d, "vjp takes what each result counts as a parameter");
        return false;
    }
    if (floats == 0) {
        diag_error(diags, E_BAD_TYPE, at, "no result of '%s' has derivatives",
                   g->of->name->text);
    }
    return floats > 0;
}

/* The numbers of parameters, or of results, that a list names. Null after a report. */
static const uint32_t *named(const Gradients *g, AstId list, ValueKind kind, uint32_t *n)
{
    const AstNode names = *node(g, list);
    Diags *diags = &g->c->ctx->diags;
    uint32_t *all = ARENA_ARRAY(g->c->arena, names.n + 1, uint32_t);
    for (uint32_t a = 0; a < names.n; a++) {
        const AstNode name = *node(g, names.child[a]);
        const Value *found = NULL;
        for (uint32_t v = 0; v < g->of->n_params + g->of->n_results; v++) {
            const Value *value = &g->of->values.at[v];
            found = value->kind == kind && value->name == name.name ? value : found;
        }
        if (found == NULL) {
            Diagnostic *d = diag_error(
                diags, E_UNKNOWN_NAME, name.span, "'%s' has no %s '%s'", g->of->name->text,
                kind == VALUE_PARAM ? "parameter" : "result", name.name->text);
            diag_note(d, g->of->span, "it is defined here");
            return NULL;
        }
        if (kind == VALUE_PARAM && dtype_is_exact(found->type.dtype)) {
            Diagnostic *d = diag_error(diags, E_BAD_TYPE, name.span,
                                       "'%s' is %s: only floats have derivatives",
                                       name.name->text, dtype_name(found->type.dtype));
            diag_note(d, found->span, "it is declared here");
            return NULL;
        }
        for (uint32_t b = 0; b < a; b++) {
            if (all[b] == found->number) {
                diag_error(diags, E_DUPLICATE_NAME, name.span, "'%s' is named twice",
                           name.name->text);
                return NULL;
            }
        }
        all[a] = found->number;
    }
    *n = names.n;
    return all;
}

/* dx, of x; where the kernel has that name, ddx. */
static Sym derivative_name(const Gradients *g, const CheckedKernel *k, Sym of)
{
    Sym name = of;
    for (bool taken = true; taken;) {
        name = sym_cstr(&g->c->ctx->syms, str_format(g->c->arena, "d%s", name->text));
        taken = false;
        for (uint32_t v = 0; v < k->values.n; v++) {
            taken = taken || k->values.at[v].name == name;
        }
        for (uint32_t w = 0; w < g->to->n_with; w++) {
            taken = taken || g->of->values.at[g->of->n_params + g->to->with[w]].name == name;
        }
    }
    return name;
}

static void add_value(const Gradients *g, CheckedKernel *k, const Value *of, ValueKind kind,
                      Sym name)
{
    Value v = {.kind = kind,
               .name = name,
               .type = of->type,
               .span = of->span,
               .assigned = true,
               .updated = true,
               .uses = 1};
    v.number = kind == VALUE_PARAM ? k->n_params++ : k->n_results++;
    vec_push(g->c->arena, &k->values, v);
}

/* Its parameters and results, for derivatives of it. */
static void add_values(const Gradients *g, CheckedKernel *k)
{
    const Value *value = g->of->values.at;
    uint32_t n = g->of->n_params;
    k->dims = g->of->dims;
    for (uint32_t p = 0; p < n; p++) {
        add_value(g, k, &value[p], VALUE_PARAM, value[p].name);
    }
    for (uint32_t r = 0; r < g->of->n_results && g->to->seeds; r++) {
        if (!dtype_is_exact(value[n + r].type.dtype)) {
            add_value(g, k, &value[n + r], VALUE_PARAM,
                      derivative_name(g, k, value[n + r].name));
        }
    }
    for (uint32_t p = 0; p < g->to->n_params; p++) {
        const Value *of = &value[g->to->param[p]];
        add_value(g, k, of, VALUE_RESULT, derivative_name(g, k, of->name));
    }
    for (uint32_t r = 0; r < g->to->n_with; r++) {
        const Value *of = &value[n + g->to->with[r]];
        add_value(g, k, of, VALUE_RESULT, of->name);
    }
}

static void gradient_check(Check *c, uint32_t head)
{
    const KernelHead h = c->heads.at[head];
    Diags *diags = &c->ctx->diags;
    Gradients g = {.c = c, .n = *ast_node(&c->program->ast, h.ast)};
    const AstNode word = *node(&g, g.n.child[0]);
    bool grad = strcmp(word.name->text, "grad") == 0;
    if (!grad && strcmp(word.name->text, "vjp") != 0) {
        Diagnostic *d = diag_error(diags, E_SYNTAX, word.span,
                                   "'%s' makes no kernel of a kernel", word.name->text);
        diag_help(d, "grad and vjp do: kernel dE = grad E(x);");
        return;
    }
    if (g.n.n == 5 && strcmp(node(&g, g.n.child[3])->name->text, "with") != 0) {
        diag_error(diags, E_SYNTAX, node(&g, g.n.child[3])->span, "'with' is expected here");
        return;
    }
    g.to = ARENA_NEW(c->arena, CheckedGradient);
    g.to->seeds = !grad;
    g.of = kernel_of(&g);
    if (g.of == NULL || !kernel_fits(&g)) {
        return;
    }
    g.to->of = g.of;
    g.to->param = named(&g, g.n.child[2], VALUE_PARAM, &g.to->n_params);
    if (g.to->param != NULL && g.n.n == 5) {
        g.to->with = named(&g, g.n.child[4], VALUE_RESULT, &g.to->n_with);
    }
    if (g.to->param == NULL || (g.n.n == 5 && g.to->with == NULL)) {
        return;
    }
    add_values(&g, h.kernel);
    Text signature = text_new(c->arena);
    ast_dump_head(&c->program->ast, h.ast, &signature);
    h.kernel->signature = signature.at;
    h.kernel->gradient = g.to;
}

void head_check(Check *c, uint32_t head)
{
    if (ast_node(&c->program->ast, c->heads.at[head].ast)->kind != AST_GRADIENT) {
        kernel_check(c, head);
        return;
    }
    if (c->heads.at[head].state == GLOBAL_NEW) {
        uint32_t errors = c->ctx->diags.n_errors;
        c->heads.at[head].state = GLOBAL_BUSY;
        gradient_check(c, head);
        c->heads.at[head].wrong = c->ctx->diags.n_errors != errors;
        c->heads.at[head].state = GLOBAL_DONE;
    }
}
