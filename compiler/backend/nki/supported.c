/* SPDX-License-Identifier: Apache-2.0 */
/* What the target has: element types, operations, extents and ranks of a TILED kernel, looked at
 * before anything is lowered. */
#include "backend/nki/evaluate.h"
#include "backend/nki/legalise.h"
#include "backend/nki/lower_stmt.h"
#include "loop/walk.h"

static bool dtype_works(DType t, bool in_memory)
{
    return t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_BOOL ||
           (in_memory ? t == DTYPE_I32 : t == DTYPE_F8E4M3 || t == DTYPE_F8E5M2);
}

/* A buffer of a type that the device has not, and the word to write instead. */
static bool refuse_type(Lower *l, const Buffer *b, DType t)
{
    if (!l->tried.failed) {
        Diagnostic *d = diag_unsupported(&l->ctx->diags, E_TARGET, b->span,
                                         "target '%s' does not have %s (of '%s'): its engines "
                                         "compute in f32, tiles are f32, "
                                         "f16 or bf16; it goes to target 'c'",
                                         l->target->name, dtype_name(t), b->name->text);
        if (l->words_why != NULL) {
            diag_note(d, l->words_where, "an f64 result may be the sum of f32 terms; here %s",
                      l->words_why);
        }
        if (t == DTYPE_F8E4M3FN) {
            diag_help(d, "f8e4m3, whose largest number is 240, and f8e5m2 are there");
        }
        if (dtype_narrower(t) != t) {
            diag_help(
                d,
                "--f64=f32 reads %s as %s, arrays too%s; or write %s in the kernel's head: "
                "results then have the accuracy of f32 sums",
                dtype_name(t), dtype_name(dtype_narrower(t)),
                t == DTYPE_F64 ? ", --f64=sums all but f64 results, which may be sums" : "",
                dtype_name(dtype_narrower(t)));
        }
    }
    l->tried.failed = true;
    return false;
}

/* Integers that pass `integers` left: sums of positions, and what is stored in an argument, where GpSimd may have put it together. */
static const char *integer_lacks(Lower *l, const Stmt *s, const Expr *e)
{
    Affine x;
    bool cast = e->op == OP_CAST && e->arg[0]->dtype == DTYPE_F32;
    bool words = dtype_is_int(s->value->dtype) && e->dtype == DTYPE_I32;
    return (cast && (e == s->value || words)) ||
                   (words && (e->op == OP_ADD || e->op == OP_MUL)) ||
                   expr_affine(l->arena, e, &x)
               ? NULL
               : str_format(l->arena, "'%s' of %s", op_info(e->op)->name, dtype_name(e->dtype));
}

static bool check_value(Lower *l, const Stmt *s)
{
    ExprWalk w;
    if (gathers_rows(s)) {
        return true;
    }
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        const char *what = e->kind != EXPR_OP              ? NULL
                           : dtype_is_int(e->dtype)        ? integer_lacks(l, s, e)
                           : !dtype_works(e->dtype, false) ? dtype_name(e->dtype)
                           : !evaluate_has(e->op)          ? op_info(e->op)->name
                                                           : NULL;
        if (what != NULL) {
            return lower_refuse(l, s->span,
                                str_format(l->arena, "%s here; it goes to target 'c'", what));
        }
    }
    return true;
}

static bool check_stmts(Lower *l)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        if (s->n_index > PART_LABEL) {
            return lower_refuse(l, s->span,
                                str_format(l->arena, "statements of %u indices (at most %d)",
                                           s->n_index, PART_LABEL));
        }
        if (!check_value(l, s)) {
            return false;
        }
    }
    return true;
}

/* Is the tensor one that the device can address? */
static bool check_size(Lower *l, const Buffer *b)
{
    int64_t left = (NKI_TENSOR_BYTES - 1) / dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        left /= b->extent[d].n;
    }
    if (left > 0) {
        return true;
    }
    Diagnostic *d = diag_limit(&l->ctx->diags, E_LIMIT_SIZE, b->span,
                               "'%s' has 4 GiB or more; a tensor of target '%s' has less",
                               b->name->text, l->target->name);
    diag_help(d, "make the extents smaller, and call the kernel for each part");
    return false;
}

static bool check_open(Ctx *ctx, const Target *target, const Kernel *k)
{
    if (k->dims.list.n == 0) {
        return true;
    }
    Text names;
    text_init(&names, &ctx->arena);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        text_printf(&names, "%s'%s'", d == 0 ? "" : ", ", k->dims.list.at[d].name->text);
    }
    Diagnostic *d = diag_unsupported(
        &ctx->diags, E_TARGET, k->span,
        "target '%s' needs every extent as a number; open here: %s", target->name, names.at);
    diag_help(d, "bind them: -D %s=...", k->dims.list.at[0].name->text);
    return false;
}

bool lower_check_extents(Ctx *ctx, const Target *target, const Kernel *k)
{
    if (!check_open(ctx, target, k)) {
        return false;
    }
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        const Buffer *b = &k->bufs.at[i];
        for (uint32_t d = 0; d < b->rank; d++) {
            if (b->extent[d].n < 1) {
                diag_unsupported(&ctx->diags, E_TARGET, b->span,
                                 "target '%s' does not have empty tensors ('%s' has extent 0)",
                                 target->name, b->name->text);
                return false;
            }
        }
    }
    return true;
}

bool lower_check(Lower *l)
{
    const Kernel *k = l->from;
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        const Buffer *b = &k->bufs.at[i];
        if (!dtype_works(b->dtype, b->space != SPACE_TILE)) {
            DType whole = b->param < 0 ? DTYPE_NONE : k->args.at[b->param].whole;
            DType t = whole == DTYPE_NONE ? b->dtype : whole;
            return refuse_type(l, b, t);
        }
        if (!check_size(l, b)) {
            return false;
        }
        if (b->rank > NKI_DIMS - 4) {
            return lower_refuse(l, b->span, "tensors of so many dimensions");
        }
    }
    return check_stmts(l);
}
