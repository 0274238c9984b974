/* SPDX-License-Identifier: Apache-2.0 */
/* Equations of the command line: the operands get names, open extents become dims, and the rest is einsum's. */
#include "front/equation.h"

#include "front/check_statement.h"

typedef struct Eq {
    Ctx *ctx;
    const Equation *e;
    CheckedKernel *k;
    EinsumOperand *operand;
} Eq;

static Sym operand_name(Ctx *ctx, uint32_t k)
{
    return sym_cstr(&ctx->syms, k < 26 ? str_format(&ctx->arena, "%c", 'A' + (char)k)
                                       : str_format(&ctx->arena, "op%u", k));
}

static bool make_operands(Eq *q)
{
    Arena *arena = &q->ctx->arena;
    Span all = {q->e->source, 0, (uint32_t)source_get(&q->ctx->sources, q->e->source)->text.n};
    q->operand = ARENA_ARRAY(arena, q->e->n_operands, EinsumOperand);
    for (uint32_t k = 0; k < q->e->n_operands; k++) {
        uint32_t rank = q->e->operand[k].rank;
        if (rank > RANK_LIMIT) {
            return diag_refuse_limit(&q->ctx->diags, E_LIMIT_SIZE, all,
                                     "operand %u has more than %d dimensions", k + 1,
                                     RANK_LIMIT);
        }
        Dim *dims = ARENA_ARRAY(arena, rank, Dim);
        for (uint32_t d = 0; d < rank; d++) {
            dims[d] = q->e->operand[k].dims[d];
            int64_t n = dims[d].n;
            CHECK(dims[d].sym < 0);
            if (n < 0 || n > SIZE_LIMIT) {
                return diag_refuse(&q->ctx->diags, E_EXTENT_RANGE, all,
                                   "operand %u has the extent %lld, which is out of range",
                                   k + 1, (long long)n);
            }
        }
        q->operand[k] =
            (EinsumOperand){.type = {q->e->dtype, rank, dims}, .name = operand_name(q->ctx, k)};
    }
    return true;
}

/* One dim per label that nobody fixes. */
static void open_dims(Eq *q, EinsumSpec *spec)
{
    uint32_t dots = 0;
    for (uint32_t k = 0; k < spec->n_labels; k++) {
        EinsumLabel *l = &spec->label[k];
        const char *name = NULL;
        if (l->code == EINSUM_DOTS) {
            name = str_format(&q->ctx->arena, "e%u", dots++);
        } else if (l->code >= 'a' && l->code <= 'z') {
            name = l->name->text;
        } else if (l->code < 0x80) {
            name = str_format(&q->ctx->arena, "d_%s", l->name->text);
        } else {
            name = str_format(&q->ctx->arena, "d_%04x", (unsigned)l->code);
        }
        if (dim_is_wild(l->extent)) {
            int64_t planned = l->extent.n;
            l->extent = dim_open((int32_t)q->k->dims.list.n);
            vec_push(&q->ctx->arena, &q->k->dims.list,
                     ((DimInfo){.name = sym_cstr(&q->ctx->syms, name),
                                .typical = planned == 0 ? DIM_TYPICAL_DEFAULT : planned,
                                .span = l->span}));
        }
    }
}

/* The operand's type with `?` replaced by what its label became. */
static TensorType settled_type(Eq *q, const EinsumSpec *spec, uint32_t k)
{
    TensorType type = q->operand[k].type;
    Dim *dims = ARENA_ARRAY(&q->ctx->arena, type.rank, Dim);
    for (uint32_t d = 0; d < type.rank; d++) {
        int32_t label = spec->axis[k][d];
        dims[d] = dim_is_wild(type.dims[d]) ? spec->label[label].extent : type.dims[d];
    }
    type.dims = dims;
    return type;
}

static bool add_value(Eq *q, ValueKind kind, Sym name, TensorType type, uint32_t number,
                      Span span)
{
    int64_t bytes = 0;
    if (!type_bytes(&type, &bytes)) {
        return diag_refuse(&q->ctx->diags, E_EXTENT_RANGE, span,
                           "the size of '%s' overflows 64 bits", name->text);
    }
    Value v = {.kind = kind,
               .name = name,
               .type = type,
               .span = span,
               .number = number,
               .updated = kind == VALUE_RESULT,
               .assigned = kind == VALUE_RESULT,
               .uses = 1};
    vec_push(&q->ctx->arena, &q->k->values, v);
    return true;
}

static const char *signature(Eq *q)
{
    Text t = text_new(&q->ctx->arena);
    text_printf(&t, "kernel %s(", q->k->name->text);
    for (uint32_t v = 0; v < q->k->values.n; v++) {
        const Value *value = &q->k->values.at[v];
        bool result = value->kind == VALUE_RESULT;
        text_put(&t, result ? ") -> (" : v > 0 ? ", " : "");
        text_printf(&t, "%s: ", value->name->text);
        type_print(&t, &q->k->dims, &value->type);
    }
    Str text = source_get(&q->ctx->sources, q->e->source)->text;
    text_put(&t, ") = einsum(\"");
    text_put_n(&t, text.at, text.n);
    text_put(&t, "\")");
    return t.at;
}

static bool make_kernel(Eq *q, EinsumSpec *spec, Span all)
{
    uint32_t n = q->e->n_operands;
    uint32_t *value = ARENA_ARRAY(&q->ctx->arena, n, uint32_t);
    open_dims(q, spec);
    for (uint32_t k = 0; k < n; k++) {
        value[k] = k;
        if (!add_value(q, VALUE_PARAM, q->operand[k].name, settled_type(q, spec, k), k, all)) {
            return false;
        }
    }
    Sym result = sym_cstr(&q->ctx->syms, n > 'R' - 'A' ? "out" : "R");
    TensorType type = einsum_type(&q->ctx->arena, spec, q->e->dtype);
    if (!add_value(q, VALUE_RESULT, result, type, 0, all)) {
        return false;
    }
    q->k->n_params = n;
    q->k->n_results = 1;
    CheckedStatement s = einsum_statement(&q->ctx->arena, spec, value, type.dtype, 0, all);
    Check check = {.ctx = q->ctx, .arena = &q->ctx->arena};
    Kern kern = {.c = &check, .k = q->k};
    s.right = compute_target(&kern, compute_in(&kern, s.right, type.dtype), n);
    s.target = n;
    vec_push(&q->ctx->arena, &q->k->statements, s);
    q->k->signature = signature(q);
    return true;
}

Program *equation_check(Ctx *ctx, const Equation *equation)
{
    Str text = source_get(&ctx->sources, equation->source)->text;
    Span all = {equation->source, 0, (uint32_t)text.n};
    EinsumText *read = einsum_read(ctx, &ctx->arena, all);
    Eq q = {.ctx = ctx, .e = equation, .k = ARENA_NEW(&ctx->arena, CheckedKernel)};
    if (read == NULL || !make_operands(&q)) {
        return NULL;
    }
    EinsumSpec *spec =
        einsum_resolve(ctx, &ctx->arena, read, &q.k->dims, q.operand, equation->n_operands);
    q.k->name = sym_cstr(&ctx->syms, equation->name != NULL ? equation->name : "einsum");
    q.k->span = all;
    if (spec == NULL || !make_kernel(&q, spec, all)) {
        return NULL;
    }
    Program *p = ARENA_NEW(&ctx->arena, Program);
    p->source = equation->source;
    ast_init(&p->ast, &ctx->arena);
    vec_push(&ctx->arena, &p->kernels, q.k);
    return p;
}
