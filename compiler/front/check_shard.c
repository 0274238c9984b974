/* SPDX-License-Identifier: Apache-2.0 */
/* `shard(o)`, `shard(r(m), c(k))`, `partial`: how an array of the caller's lies on ranks. */
#include "front/check_kernel.h"

static bool refuse(Kern *k, Span at, const char *what)
{
    return diag_refuse(&k->c->ctx->diags, E_ARGUMENTS, at, "%s", what);
}

/* The dimension that the type writes as this name; names the others that it could be. */
static bool dim_by_name(Kern *k, const AstNode *n, const AstNode *type, uint32_t *dim)
{
    uint32_t found = 0;
    const AstNode *near = NULL;
    for (uint32_t d = 0; d < type->n; d++) {
        const AstNode *extent = kern_node(k, type->child[d]);
        if (extent->kind != AST_NAME) {
            continue;
        }
        if (extent->name == n->name) {
            *dim = found++ == 0 ? d : *dim;
        } else if (n->name->n > 2 && str_distance(str_from(extent->name->text),
                                                  str_from(n->name->text), 2) <= 2) {
            near = extent;
        }
    }
    if (found == 1) {
        return true;
    }
    if (found == 0) {
        Diagnostic *e = diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, n->span,
                                   "no dimension of the tensor is '%s'", n->name->text);
        if (near != NULL) {
            diag_meant(e, n->span, near->name->text);
        } else {
            diag_help(e, "a dimension has a number, too: the first is 0");
        }
        return false;
    }
    Diagnostic *e = diag_error(&k->c->ctx->diags, E_ARGUMENTS, n->span,
                               "%u dimensions of the tensor are '%s'", found, n->name->text);
    diag_help(e, "say which by its number: the first is '%u'", *dim);
    return false;
}

/* `o` or `0`: a dimension of the tensor. */
static bool dim_meant(Kern *k, AstId id, const AstNode *type, Shard *cut)
{
    const AstNode *n = kern_node(k, id);
    if (n->kind == AST_NAME) {
        cut->written = n->name;
        return dim_by_name(k, n, type, &cut->dim);
    }
    if (n->kind != AST_INT) {
        return n->kind != AST_BROKEN &&
               refuse(k, n->span, "a dimension of the tensor is expected, by name or number");
    }
    if (n->value.i < 0 || n->value.i >= (int64_t)type->n) {
        return diag_refuse(&k->c->ctx->diags, E_ARGUMENTS, n->span,
                           "there is no dimension %lld: the first of %u is 0",
                           (long long)n->value.i, type->n);
    }
    cut->dim = (uint32_t)n->value.i;
    return true;
}

/* `o`, `0`, `r(o)`, `r(0)`. */
static bool cut_meant(Kern *k, AstId id, const AstNode *type, Shard *cut)
{
    const AstNode *n = kern_node(k, id);
    if (n->kind != AST_CALL) {
        return dim_meant(k, id, type, cut);
    }
    cut->axis = n->name;
    return n->n == 1 ? dim_meant(k, n->child[0], type, cut)
                     : refuse(k, n->span,
                              "an axis of ranks cuts one dimension: 'r(m)'; several cuts are "
                              "'r(m), c(k)'");
}

/* An axis without a name is the only one of its kernel. */
static bool axis_fits(Kern *k, Span at, const Shard *cut)
{
    for (uint32_t v = 0; v <= k->k->values.n; v++) {
        uint32_t n = v < k->k->values.n ? k->k->values.at[v].n_shard : 0;
        for (uint32_t i = 0; i < n; i++) {
            Sym other = k->k->values.at[v].shard[i].axis;
            if ((other == NULL) != (cut->axis == NULL)) {
                Sym named = other == NULL ? cut->axis : other;
                Diagnostic *e = diag_error(&k->c->ctx->diags, E_ARGUMENTS, at,
                                           "one cut of kernel '%s' names its axis of ranks, "
                                           "another does not",
                                           k->k->name->text);
                diag_help(e, "name it everywhere: 'shard(%s(...))'", named->text);
                return false;
            }
        }
    }
    return true;
}

void shard_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v)
{
    if (type->n == 0 || attr->n == 0) {
        (void)refuse(k, attr->span,
                     type->n == 0 ? "a scalar has no dimension to cut"
                                  : "'shard' names the dimensions that are cut: 'shard(o)'");
        return;
    }
    if (v->n_shard > 0) {
        (void)refuse(k, attr->span, "one 'shard' has all cuts: 'shard(r(m), c(k))'");
        return;
    }
    Shard *cuts = ARENA_ARRAY(k->c->arena, attr->n, Shard);
    for (uint32_t a = 0; a < attr->n; a++) {
        Span at = kern_node(k, attr->child[a])->span;
        if (!cut_meant(k, attr->child[a], type, &cuts[a]) || !axis_fits(k, at, &cuts[a])) {
            return;
        }
        for (uint32_t b = 0; b < a; b++) {
            if (cuts[b].axis == cuts[a].axis) {
                Diagnostic *e = diag_error(&k->c->ctx->diags, E_ARGUMENTS, at,
                                           "an axis of ranks cuts one dimension of a tensor");
                diag_help(e, "two cuts need two axes: 'shard(r(%u), c(%u))'", cuts[b].dim,
                          cuts[a].dim);
                return;
            }
            if ((cuts[b].axis == NULL) != (cuts[a].axis == NULL)) {
                (void)refuse(k, at, "several cuts of a tensor name their axes: 'r(m), c(k)'");
                return;
            }
        }
    }
    v->shard = cuts;
    v->n_shard = attr->n;
}

void partial_check(Kern *k, const AstNode *attr, const AstNode *type, Value *v)
{
    if (attr->n > 0) {
        (void)refuse(k, attr->span, "'partial' takes nothing in parentheses");
    } else if (v->type.dtype == DTYPE_BOOL) {
        diag_error(&k->c->ctx->diags, E_BAD_TYPE, attr->span,
                   "ranks add up what is 'partial': a bool is no number");
    } else if (v->kind == VALUE_PARAM && type->n == 0) {
        (void)refuse(k, attr->span, "a scalar parameter is the same on every rank");
    } else if (v->is_inout) {
        (void)refuse(k, attr->span,
                     "an 'inout' parameter is not 'partial': name a parameter and a result");
    } else {
        v->partial = true;
    }
}
