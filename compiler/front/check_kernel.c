/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: the head, and what its body leaves behind. The statements between are check_statement.c's. */
#include <string.h>

#include "front/check_kernel.h"

/* ---- types ---- */

static TensorType type_of(Kern *k, AstId id, const AstNode *decl)
{
    const AstNode n = *kern_node(k, id);
    TensorType type = {DTYPE_NONE, 0, NULL};
    if (n.kind != AST_TYPE) {
        return type;
    }
    type.dtype = dtype_declared(k, &n);
    if (n.n > RANK_LIMIT) {
        diag_limit(&k->c->ctx->diags, E_LIMIT_SIZE, n.span,
                   "a tensor has at most %d dimensions", RANK_LIMIT);
        return (TensorType){DTYPE_NONE, 0, NULL};
    }
    Dim *dims = ARENA_ARRAY(k->c->arena, n.n, Dim);
    bool all_ok = true;
    for (uint32_t d = 0; d < n.n; d++) {
        bool ok = true;
        dims[d] = extent_of(k, n.child[d], &ok);
        all_ok = all_ok && ok;
    }
    type.rank = n.n;
    type.dims = dims;
    int64_t bytes = 0;
    if (all_ok && !type_bytes(&type, &bytes)) {
        diag_error(&k->c->ctx->diags, E_EXTENT_RANGE, n.span,
                   "the size of '%s' overflows 64 bits", decl->name->text);
        all_ok = false;
    }
    if (!all_ok) {
        type.dtype = DTYPE_NONE;
    }
    return type;
}

/* ---- the head ---- */

/* The dimension that an attribute names by its number; RANK_LIMIT when it is none of the tensor's, or is named before. */
static uint32_t named_dimension(Kern *k, AstId id, uint32_t rank, uint64_t *named)
{
    Diags *diags = &k->c->ctx->diags;
    Span at = kern_node(k, id)->span;
    CheckedExpr *e = expr_constant(k->c, id, true, k->library);
    if (e->kind == CHECKED_POISON) {
        return RANK_LIMIT;
    }
    if (e->kind != CHECKED_CONST || !dtype_is_int(e->value.dtype)) {
        diag_error(diags, E_NOT_CONSTANT, at, "the number of a dimension is an integer");
        return RANK_LIMIT;
    }
    if (e->value.i < 0 || e->value.i >= (int64_t)rank) {
        diag_error(diags, E_ARGUMENTS, at, "there is no dimension %lld: the first of %u is 0",
                   (long long)e->value.i, rank);
        return RANK_LIMIT;
    }
    if ((*named >> e->value.i & 1) != 0) {
        diag_error(diags, E_ARGUMENTS, at, "dimension %lld is named twice",
                   (long long)e->value.i);
        return RANK_LIMIT;
    }
    *named |= UINT64_C(1) << e->value.i;
    return (uint32_t)e->value.i;
}

/* `(0, 1)` or `((0, 1), (2, 3))` behind an attribute's word: the class of dimensions, or of groups of them. */
static bool attribute_class(Kern *k, const AstNode *attr, uint32_t rank, SymmetryClass *c)
{
    Diags *diags = &k->c->ctx->diags;
    uint64_t named = 0;
    c->n = attr->n;
    c->width = 1;
    if (attr->n > 0 && kern_node(k, attr->child[0])->kind == AST_GROUP) {
        c->width = kern_node(k, attr->child[0])->n;
    }
    uint32_t *dim = ARENA_ARRAY(k->c->arena, (size_t)c->n * c->width, uint32_t);
    for (uint32_t g = 0; g < attr->n; g++) {
        const AstNode *item = kern_node(k, attr->child[g]);
        bool group = item->kind == AST_GROUP;
        if (group != (c->width > 1) || (group && item->n != c->width)) {
            return diag_refuse(diags, E_ARGUMENTS, item->span,
                               "what is exchanged has as many dimensions everywhere");
        }
        for (uint32_t p = 0; p < c->width; p++) {
            AstId id = group ? kern_node(k, attr->child[g])->child[p] : attr->child[g];
            uint32_t d = named_dimension(k, id, rank, &named);
            if (d == RANK_LIMIT) {
                return false;
            }
            dim[g * c->width + p] = d;
        }
    }
    c->dim = dim;
    if (attr->n < 2) {
        diag_error(diags, E_ARGUMENTS, attr->span, "'%s' names two %s or more",
                   attr->name->text, c->width > 1 ? "groups of dimensions" : "dimensions");
    }
    return attr->n >= 2;
}

/* Are the dimensions that a class exchanges of one extent? */
static bool class_extents(Kern *k, const AstNode *attr, const TensorType *type,
                          const SymmetryClass *c)
{
    for (uint32_t i = 0; i < c->n * c->width; i++) {
        uint32_t first = c->dim[i % c->width], d = c->dim[i];
        if (!dim_eq(type->dims[d], type->dims[first])) {
            return diag_refuse(
                &k->c->ctx->diags, E_EXTENT_MISMATCH, attr->span,
                "dimension %u is %s and dimension %u is %s: only equal ones can be "
                "exchanged",
                first, dim_text(k->c->arena, &k->k->dims, type->dims[first]), d,
                dim_text(k->c->arena, &k->k->dims, type->dims[d]));
        }
    }
    return true;
}

/* Adds what the attribute says to what is declared before it. */
static const Symmetry *check_symmetry(Kern *k, const AstNode *attr, const TensorType *type,
                                      SymmetryClass c, const Symmetry *before)
{
    Diags *diags = &k->c->ctx->diags;
    if (!attribute_class(k, attr, type->rank, &c)) {
        return before;
    }
    const Symmetry *all = symmetry_with(k->c->arena, before, &c);
    for (uint32_t i = 0; i < all->n; i++) {
        if (!class_extents(k, attr, type, &all->at[i])) {
            return before;
        }
    }
    if (c.conj && !dtype_is_complex(type->dtype)) {
        c.conj = false;
        Text real = text_new(k->c->arena);
        symmetry_put(&real, &c);
        diag_error(diags, E_ARGUMENTS, attr->span, "of real numbers %s is %s", attr->name->text,
                   real.at);
        return before;
    }
    SymmetryGroup group;
    symmetry_declared_group(k->c->arena, type->rank, all, &group);
    if (c.sign < 0 && type->dtype == DTYPE_BOOL) {
        diag_error(diags, E_BAD_TYPE, attr->span, "a truth value has no negative");
    } else if (group.zero || group.real || group.imaginary) {
        const char *what = group.zero   ? "symmetric and antisymmetric: only 0 is both"
                           : group.real ? "symmetric and hermitian: only real numbers are both"
                                        : "antisymmetric and hermitian: only imaginary numbers "
                                          "are both";
        Diagnostic *d =
            diag_error(diags, E_ARGUMENTS, attr->span, "these dimensions are %s", what);
        diag_help(d, "of exchanges that share a dimension, all change the %s or none",
                  group.zero ? "sign" : "sign of the imaginary part");
    } else if (group.n > SYMMETRY_LIMIT) {
        diag_limit(diags, E_LIMIT_SIZE, attr->span,
                   "a tensor has at most %d permutations of its dimensions", SYMMETRY_LIMIT);
    } else {
        return all;
    }
    return before;
}

/* `lower(0, 1)`: 0 above the diagonal of these dimensions, rows and columns. */
static void check_triangle(Kern *k, const AstNode *attr, Value *v)
{
    uint64_t named = 0;
    uint32_t dim[2] = {0};
    SymmetryClass two = {.n = 2, .width = 1, .dim = dim};
    if (attr->n != 2) {
        diag_error(&k->c->ctx->diags, E_ARGUMENTS, attr->span,
                   "'%s' names two dimensions, rows and columns", attr->name->text);
        return;
    }
    for (uint32_t a = 0; a < 2; a++) {
        dim[a] = named_dimension(k, attr->child[a], v->type.rank, &named);
        if (dim[a] == RANK_LIMIT) {
            return;
        }
    }
    if (class_extents(k, attr, &v->type, &two)) {
        triangle_check(k, attr, v, v->kind == VALUE_PARAM, dim[0], dim[1]);
    }
}

/* What the declaration says beside the type. */
static void check_attributes(Kern *k, const AstNode *n, Value *v)
{
    SymmetryClass exchanged;
    for (uint32_t a = 1; a < n->n; a++) {
        const AstNode *attr = kern_node(k, n->child[a]);
        const char *name = attr->kind == AST_ATTRIBUTE ? attr->name->text : "";
        bool triangle = strcmp(name, "lower") == 0 || strcmp(name, "upper") == 0;
        if (attr->kind != AST_ATTRIBUTE || (k->is_called && !triangle)) {
            continue;
        }
        bool typed = v->type.dtype != DTYPE_NONE;
        if (strcmp(name, "accumulate") == 0) {
            diag_unsupported(&k->c->ctx->diags, E_NOT_YET, attr->span,
                             "the attribute '%s' is not compiled by this version", name);
        } else if (symmetry_from_word(name, &exchanged)) {
            if (typed) {
                v->symmetry = check_symmetry(k, attr, &v->type, exchanged, v->symmetry);
            }
        } else if (triangle) {
            if (typed) {
                check_triangle(k, attr, v);
            }
        } else if (strcmp(name, "shard") == 0 || strcmp(name, "partial") == 0) {
            if (typed) {
                void (*check)(Kern *, const AstNode *, const AstNode *, Value *) =
                    name[0] == 's' ? shard_check : partial_check;
                check(k, attr, kern_node(k, n->child[0]), v);
            }
        } else {
            diag_error(&k->c->ctx->diags, E_UNKNOWN_NAME, attr->at,
                       "there is no attribute '%s'", name);
        }
    }
}

static void check_decl(Kern *k, AstId id, bool is_result)
{
    const AstNode n = *kern_node(k, id);
    Diags *diags = &k->c->ctx->diags;
    if (n.kind != AST_PARAM) {
        return;
    }
    Value v = {.kind = is_result ? VALUE_RESULT : VALUE_PARAM,
               .name = n.name,
               .type = type_of(k, n.child[0], &n),
               .span = n.at,
               .is_inout = n.flag && !is_result};
    if (k->is_called) {
        v.type.dtype = is_result ? type_when_read(k, &v) : v.type.dtype;
    }
    check_attributes(
        k, &n,
        &v); /* in a call triangles alone count: what solves with one does not look at the rest */
    if (is_result && n.flag) {
        diag_error(diags, E_NOT_ASSIGNABLE, n.span, "a result is not inout");
    }
    uint32_t before = 0;
    if (map_get(&k->value_by_name, n.name->id, &before)) {
        Diagnostic *d =
            diag_error(diags, E_DUPLICATE_NAME, n.at, "'%s' is declared twice", n.name->text);
        mark_other(k->c, d, k->k->values.at[before].span, "first here");
        return;
    }
    v.number = is_result ? k->k->n_results++ : k->k->n_params++;
    (void)value_new(k, v);
}

/* ---- the end of the body ---- */

static void check_results(Kern *k)
{
    bool delivers = k->k->n_results > 0;
    for (uint32_t v = 0; v < k->k->values.n; v++) {
        const Value *value = &k->k->values.at[v];
        delivers = delivers || (value->is_inout && value->updated);
        if (value->kind == VALUE_RESULT && !value->updated && !k->damaged) {
            diag_error(&k->c->ctx->diags, E_NO_RESULT, value->span,
                       "result '%s' is never assigned", value->name->text);
        }
    }
    if (!delivers && !k->damaged) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_NO_RESULT, k->k->span,
                                   "kernel '%s' has no result", k->k->name->text);
        diag_help(d, "declare one, '-> (R: f64[n])', or update an inout parameter");
    }
}

static void warn_unused(Kern *k)
{
    static const char *const what[] = {[VALUE_PARAM] = "parameter",
                                       [VALUE_RESULT] = "result",
                                       [VALUE_LOCAL] = "value",
                                       [VALUE_TEMP] = "value"};
    for (uint32_t v = 0; v < k->k->values.n; v++) {
        const Value *value = &k->k->values.at[v];
        bool candidate = value->kind == VALUE_PARAM || value->kind == VALUE_LOCAL;
        if (candidate && value->uses == 0 && !(value->is_inout && value->updated)) {
            diag_warning(&k->c->ctx->diags, W_UNUSED, value->span, "%s '%s' is never used",
                         what[value->kind], value->name->text);
        } else if (value->is_inout && !value->updated) {
            diag_warning(&k->c->ctx->diags, W_UNUSED, value->span,
                         "inout parameter '%s' is never updated", value->name->text);
        }
    }
}

static void apply_spills(Kern *k)
{
    for (uint32_t s = 0; s < k->body->n; s++) {
        const AstNode *n = kern_node(k, k->body->child[s]);
        for (uint32_t c = 0; n->kind == AST_SPILL && c < n->n; c++) {
            const AstNode *name = kern_node(k, n->child[c]);
            uint32_t found = 0;
            k->statement = UINT32_MAX;
            if (!map_get(&k->value_by_name, name->name->id, &found)) {
                (void)unknown_value(k, name->name, name->span);
            } else if (k->k->values.at[found].kind == VALUE_PARAM) {
                diag_error(
                    &k->c->ctx->diags, E_NOT_ASSIGNABLE, name->span,
                    "'%s' is in memory anyway; a value that the kernel computes may spill",
                    name->name->text);
            } else {
                k->k->values.at[found].allow_spill = true;
            }
        }
    }
}

/* ---- all of it ---- */

/* Which statement first assigns a name: to tell "not yet" from "never". */
static void find_assignments(Kern *k)
{
    for (uint32_t s = 0; s < k->body->n; s++) {
        const AstNode *n = kern_node(k, k->body->child[s]);
        uint32_t before = 0;
        if (n->kind != AST_ASSIGN) {
            continue;
        }
        Sym name = kern_node(k, n->child[0])->name;
        if (name != NULL && !map_get(&k->assigned_later, name->id, &before)) {
            map_put(&k->assigned_later, name->id, s);
        }
    }
}

/* `(m, c) = f(x);` is one assignment for each name, which takes the result of this number. */
static AstNode single_assignments(Kern *k, const AstNode *body)
{
    Ast *tree = &k->c->program->ast;
    VEC(AstId) all = {0};
    AstNode list = *body;
    for (uint32_t s = 0; s < body->n; s++) {
        const AstNode n = *kern_node(k, body->child[s]);
        const AstNode left = n.kind == AST_ASSIGN ? *kern_node(k, n.child[0]) : (AstNode){0};
        if (left.kind != AST_GROUP || left.n == 0) {
            vec_push(k->c->arena, &all, body->child[s]);
            continue;
        }
        const AstNode right = *kern_node(k, n.child[1]);
        uint32_t head = 0;
        bool call = (right.kind == AST_CALL || right.kind == AST_REDUCE) &&
                    kernel_named(k, right.name, &head);
        uint32_t count =
            call ? kern_node(k, kern_node(k, k->c->heads.at[head].ast)->child[1])->n : left.n;
        if (!call) {
            diag_error(&k->c->ctx->diags, E_ARGUMENTS, right.span,
                       "several values come from the call of a kernel");
        } else if (count != left.n) {
            diag_error(&k->c->ctx->diags, E_ARGUMENTS, left.span,
                       "'%s' has %u result%s, and %u are taken", right.name->text, count,
                       count == 1 ? "" : "s", left.n);
        }
        list.flag = list.flag || !call || count != left.n; /* names are missing */
        for (uint32_t r = 0; r < left.n && call && count == left.n; r++) {
            AstId one = ast_new(k->c->ctx, tree, AST_ASSIGN, n.span, NULL, n.at,
                                (AstId[]){left.child[r], n.child[1]}, 2);
            tree->nodes.at[one].op = OP_COPY;
            tree->nodes.at[one].value.i = r + 1;
            vec_push(k->c->arena, &all, one);
        }
    }
    list.child = all.at;
    list.n = all.n;
    return list;
}

static void find_words(const Check *c, AstId list, KernelHead *head)
{
    const AstNode params = *ast_node(&c->program->ast, list);
    for (uint32_t p = 0; p < params.n; p++) {
        const AstNode *param = ast_node(&c->program->ast, params.child[p]);
        if (param->kind == AST_PARAM) {
            const AstNode *type = ast_node(&c->program->ast, param->child[0]);
            uint32_t word = type->kind == AST_TYPE ? dtype_word(type->name) : WORDS;
            if (word < WORDS) {
                head->word[word] = dtype_of_word(word);
                head->words = true;
            }
        }
    }
}

void kernel_declare(Check *c, AstId ast, bool library)
{
    const AstNode *n = ast_node(&c->program->ast, ast);
    CheckedKernel *kernel = ARENA_NEW(c->arena, CheckedKernel);
    kernel->name = n->name;
    kernel->span = n->at;
    KernelHead head = {.ast = ast, .kernel = kernel, .library = library};
    if (n->kind == AST_KERNEL) {
        find_words(c, n->child[0], &head);
        find_words(c, n->child[1], &head);
    }
    uint32_t before = 0;
    if (map_get(&c->kernel_by_name, kernel->name->id, &before)) {
        Diagnostic *d = diag_error(&c->ctx->diags, E_DUPLICATE_NAME, kernel->span,
                                   "kernel '%s' is defined twice", kernel->name->text);
        mark_other(c, d, c->heads.at[before].kernel->span, "first here");
    } else {
        map_put(&c->kernel_by_name, kernel->name->id, c->heads.n);
        if (!library && !head.words) {
            vec_push(c->arena, &c->program->kernels, kernel);
        }
    }
    vec_push(c->arena, &c->heads, head);
}

void kern_init(Kern *k, Check *c, CheckedKernel *kernel)
{
    *k = (Kern){.c = c, .k = kernel};
    map_init(&k->value_by_name, c->arena);
    map_init(&k->dim_by_name, c->arena);
    map_init(&k->assigned_later, c->arena);
    map_init(&k->s.label_by_name, c->arena);
    map_init(&k->call_by_ast, c->arena);
    map_init(&k->inlined_names, c->arena);
}

void kernel_run(Kern *k, const AstNode *n)
{
    const AstNode params = *kern_node(k, n->child[0]), results = *kern_node(k, n->child[1]);
    const AstNode written = *kern_node(k, n->child[2]);
    AstNode body = single_assignments(k, &written);
    k->damaged = body.flag;
    k->body = &body;
    for (uint32_t p = 0; p < params.n; p++) {
        check_decl(k, params.child[p], false);
    }
    for (uint32_t r = 0; r < results.n; r++) {
        check_decl(k, results.child[r], true);
    }
    if (!steps_scan(k, &body)) {
        k->wrong = true;
        k->body = NULL;
        return;
    }
    find_assignments(k);
    pieces_scan(k);
    for (k->statement = 0; k->statement < body.n; k->statement++) {
        steps_begin(k);
        statement_check(k, body.child[k->statement]);
        k->wrong = k->wrong || k->s.poisoned;
        steps_end(k);
    }
    if (!k->is_called) {
        check_results(k);
    }
    apply_spills(k);
    compute_locals(k);
    k->body = NULL;
}

void kernel_check(Check *c, uint32_t number)
{
    if (c->heads.at[number].state != GLOBAL_NEW) {
        return;
    }
    c->heads.at[number].state = GLOBAL_BUSY;
    const KernelHead head = c->heads.at[number];
    const AstNode n = *ast_node(&c->program->ast, head.ast);
    uint32_t errors = c->ctx->diags.n_errors;
    Kern k;
    kern_init(&k, c, head.kernel);
    k.library = head.library;
    memcpy(k.word, head.word, sizeof k.word);
    /* Open dimensions lead the C signature, so their order is a contract: that of their first use here, whatever else
     * is declared, since a hint for planning must not change it. */
    dims_scan(&k, &n);
    Text signature = text_new(c->arena);
    ast_dump_head(&c->program->ast, head.ast, &signature);
    head.kernel->signature = signature.at;
    kernel_run(&k, &n);
    if (c->ctx->diags.n_errors == errors && !c->program->ast.damaged) {
        warn_unused(&k);
    }
    c->heads.at[number].wrong = c->ctx->diags.n_errors != errors;
    c->heads.at[number].state = GLOBAL_DONE;
}
