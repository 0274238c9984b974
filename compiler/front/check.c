/* SPDX-License-Identifier: Apache-2.0 */
/* The program: its files, its dims and constants, and then its kernels one by one. Front does no input or output: an
 * include is read through the caller's function. */
#include "front/check.h"

#include <string.h>

#include "front/check_kernel.h"
#include "front/library.h"

#define INCLUDE_DEPTH 64

static void warn_defines(Check *c)
{
    for (uint32_t d = 0; d < c->options->n_defines; d++) {
        bool later = false; /* overridden: not its fault */
        for (uint32_t e = d + 1; e < c->options->n_defines; e++) {
            later =
                later || strcmp(c->options->defines[e].name, c->options->defines[d].name) == 0;
        }
        if (!c->define_used[d] && !later) {
            diag_warning(&c->ctx->diags, W_DEFINE, (Span){0}, "-D %s: there is no such %sdim",
                         c->options->defines[d].name,
                         c->options->defines[d].planned ? "open " : "");
        }
    }
}

/* ---- dims and constants ---- */

static void global_add(Check *c, const Item *item)
{
    const AstNode *n = ast_node(&c->program->ast, item->ast);
    uint32_t before = 0;
    if (map_get(&c->global_by_name, n->name->id, &before)) {
        Diagnostic *d = diag_error(&c->ctx->diags, E_DUPLICATE_NAME, n->at,
                                   "'%s' is defined twice", n->name->text);
        mark_other(c, d, ast_node(&c->program->ast, c->globals.at[before].ast)->at,
                   "first here");
        return;
    }
    map_put(&c->global_by_name, n->name->id, c->globals.n);
    Global g = {.ast = item->ast,
                .name = n->name,
                .is_const = n->kind == AST_CONST,
                .in_main = item->in_main,
                .dim = dim_fixed(1),
                .typical = DIM_TYPICAL_DEFAULT};
    vec_push(c->arena, &c->globals, g);
}

static void warn_globals(Check *c)
{
    for (uint32_t g = 0; g < c->globals.n; g++) {
        const Global *global = &c->globals.at[g];
        if (global->uses == 0 && global->in_main) {
            diag_warning(&c->ctx->diags, W_UNUSED, ast_node(&c->program->ast, global->ast)->at,
                         "%s '%s' is never used", global->is_const ? "constant" : "dim",
                         global->name->text);
        }
    }
}

/* ---- includes ---- */

/* A relative path without '..': an include cannot leave its roots. */
static bool path_stays(const char *name)
{
    if (name[0] == '\0' || name[0] == '/' || strchr(name, '\\') != NULL) {
        return false;
    }
    for (const char *at = name; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')) {
            return false;
        }
    }
    return true;
}

/* The folder of the including file, then -I. Null when reported. */
static const char *include_find(Check *c, const AstNode *n, const char *from, Str *text)
{
    Diags *diags = &c->ctx->diags;
    const char *slash = strrchr(from, '/');
    int folder = slash == NULL ? 0 : (int)(slash - from) + 1;
    for (uint32_t k = 0; k <= c->options->n_include_dirs; k++) {
        const char *path = k == 0 ? str_format(c->arena, "%.*s%s", folder, from, n->name->text)
                                  : str_format(c->arena, "%s/%s",
                                               c->options->include_dirs[k - 1], n->name->text);
        const char *why = "";
        IncludeStatus status = c->options->reader(c->options->user, path, text, &why);
        if (status == INCLUDE_READ) {
            return path;
        }
        if (status == INCLUDE_REFUSED) {
            diag_error(diags, E_INCLUDE, n->at, "'%s' cannot be read: %s", path, why);
            return NULL;
        }
    }
    Diagnostic *d = diag_error(diags, E_INCLUDE, n->at, "there is no file '%s'", n->name->text);
    diag_help(d, "it is looked for beside this file and in the folders of -I");
    return NULL;
}

typedef struct FileRole {
    bool in_main, library;
} FileRole;

static AstId read_file(Check *c, uint32_t source, const char *path, FileRole role,
                       uint32_t depth);

/* `include <nn.tdsl>`: from the folders of -I, or what the compiler brings along. Null when reported. */
static const char *library_find(Check *c, const AstNode *n, Str *text)
{
    for (uint32_t k = 0; k < c->options->n_include_dirs; k++) {
        const char *path =
            str_format(c->arena, "%s/%s", c->options->include_dirs[k], n->name->text);
        const char *why = "";
        if (c->options->reader != NULL &&
            c->options->reader(c->options->user, path, text, &why) == INCLUDE_READ) {
            return path;
        }
    }
    const char *own = library_text(n->name->text);
    if (own == NULL) {
        Diagnostic *d = diag_error(&c->ctx->diags, E_INCLUDE, n->at, "there is no library '%s'",
                                   n->name->text);
        diag_help(d, "the compiler brings %s; a file of yours stands in quotes", LIBRARY_NAMES);
        return NULL;
    }
    *text = str_from(own);
    return str_format(c->arena, "<%s>", n->name->text);
}

static void include_item(Check *c, AstId id, const char *from, FileRole role, uint32_t depth)
{
    const AstNode include = *ast_node(&c->program->ast, id), *n = &include;
    Diags *diags = &c->ctx->diags;
    if (!path_stays(n->name->text)) {
        diag_error(diags, E_INCLUDE, n->at, "an include is a relative path without '..'");
        return;
    }
    if (c->options->reader == NULL && !n->flag) {
        diag_error(diags, E_INCLUDE, n->at, "includes are not available here");
        return;
    }
    Str text = {NULL, 0};
    const char *path = n->flag ? library_find(c, n, &text) : include_find(c, n, from, &text);
    if (path == NULL) {
        c->items_damaged = true;
        return;
    }
    uint32_t state = 0;
    Sym key = sym_cstr(&c->ctx->syms, path);
    if (map_get(&c->included, key->id, &state)) {
        if (state != 0) {
            diag_error(diags, E_INCLUDE, n->at, "'%s' includes itself", path);
        }
        return; /* once is enough */
    }
    if (depth >= INCLUDE_DEPTH) {
        diag_limit(diags, E_LIMIT_NESTING, n->at, "includes nested more than %d deep",
                   INCLUDE_DEPTH);
        return;
    }
    if (text.n > INT32_MAX) {
        diag_limit(diags, E_LIMIT_SIZE, n->at, "'%s' is larger than 2 GiB", path);
        return;
    }
    uint32_t source = source_add(&c->ctx->sources, path, text, n->span);
    role = (FileRole){false, role.library || n->flag};
    ast_set_file(&c->program->ast, id, read_file(c, source, path, role, depth + 1));
}

static AstId read_file(Check *c, uint32_t source, const char *path, FileRole role,
                       uint32_t depth)
{
    Sym key = sym_cstr(&c->ctx->syms, path);
    map_put(&c->included, key->id, 1);
    AstId file = ast_parse(c->ctx, &c->program->ast, source);
    const AstNode n = *ast_node(&c->program->ast, file);
    c->items_damaged = c->items_damaged || n.flag;
    for (uint32_t k = 0; k < n.n; k++) {
        const AstNode item = *ast_node(&c->program->ast, n.child[k]);
        if (item.kind == AST_INCLUDE) {
            include_item(c, n.child[k], path, role, depth);
        } else if (item.kind != AST_BROKEN) {
            vec_push(c->arena, &c->items, ((Item){n.child[k], role.in_main, role.library}));
        }
    }
    map_put(&c->included, key->id, 0);
    return file;
}

/* ---- all of it ---- */

static void keep_open_dims(Check *c)
{
    for (uint32_t g = 0; g < c->globals.n; g++) {
        const Global *global = &c->globals.at[g];
        if (!global->is_const && global->dim.sym >= 0 && global->uses > 0) {
            Span at = ast_node(&c->program->ast, global->ast)->at;
            vec_push(c->arena, &c->program->dims.list,
                     ((DimInfo){.name = global->name, .typical = global->typical, .span = at}));
        }
    }
}

static bool is_kernel(const Check *c, uint32_t item)
{
    AstKind kind = ast_node(&c->program->ast, c->items.at[item].ast)->kind;
    return kind == AST_KERNEL || kind == AST_GRADIENT;
}

static void check_items(Check *c)
{
    for (uint32_t k = 0; k < c->items.n; k++) {
        if (!is_kernel(c, k)) {
            global_add(c, &c->items.at[k]);
        }
    }
    for (uint32_t g = 0; g < c->globals.n; g++) {
        global_evaluate(c, g, ast_node(&c->program->ast, c->globals.at[g].ast)->at);
    }
    for (uint32_t k = 0; k < c->items.n; k++) {
        if (is_kernel(c, k)) {
            kernel_declare(c, c->items.at[k].ast, c->items.at[k].library);
        }
    }
    for (uint32_t h = 0; h < c->heads.n; h++) {
        head_check(c, h);
    }
}

Program *program_check(Ctx *ctx, uint32_t source, const FrontOptions *options)
{
    static const FrontOptions none = {0};
    Program *p = ARENA_NEW(&ctx->arena, Program);
    p->source = source;
    ast_init(&p->ast, &ctx->arena);
    Check c = {.ctx = ctx, .arena = &ctx->arena, .program = p, .options = options};
    if (options == NULL) {
        c.options = &none;
    }
    p->ast.narrow = c.options->narrow;
    c.define_used = ARENA_ARRAY(c.arena, c.options->n_defines, bool);
    map_init(&c.global_by_name, c.arena);
    map_init(&c.kernel_by_name, c.arena);
    map_init(&c.included, c.arena);
    uint32_t errors = ctx->diags.n_errors;
    (void)read_file(&c, source, source_get(&ctx->sources, source)->name,
                    (FileRole){true, false}, 0);
    check_items(&c);
    keep_open_dims(&c);
    if (ctx->diags.n_errors == errors) {
        if (p->kernels.n == 0) {
            Diagnostic *d = diag_error(&ctx->diags, E_NO_RESULT, (Span){source, 0, 0},
                                       "there is no kernel here");
            if (c.heads.n > 0) {
                diag_help(d, "kernels of a library, and those with a word such as 'float' in "
                             "their head, are compiled where others call them");
            }
        } else {
            warn_globals(&c);
            warn_defines(&c);
        }
    }
    return p;
}
