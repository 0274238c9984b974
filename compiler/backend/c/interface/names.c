/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a file exports. Each kernel has one, and with it those that end in _threads, _info and the like; two
 * kernels never share one. A name that C, its library or the generated text has is changed, and the user told. */
#include <string.h>

#include "backend/c/interface/interface.h"
#include "dist/dist.h"

static const char *with_prefix(Arena *a, const EmitOptions *o, const char *name)
{
    return o->prefix == NULL ? name : str_format(a, "%s%s", o->prefix, name);
}

static const char *upper(Arena *a, const char *name)
{
    char *copy = str_format(a, "%s", name);
    for (char *p = copy; *p != '\0'; p++) {
        if (*p >= 'a' && *p <= 'z') {
            *p = (char)(*p - 'a' + 'A');
        }
    }
    return copy;
}

static void warn_of_change(Ctx *ctx, Arena *a, const Kernel *k, const char *wish,
                           const char *symbol)
{
    const char *why = c_symbol_why(a, wish);
    if (why == NULL) {
        return;
    }
    Diagnostic *d = diag_warning(&ctx->diags, W_NAME, k->span,
                                 "kernel '%s' is called '%s' in C", k->name->text, symbol);
    diag_because(d, "%s", why);
    diag_help(d, "another name, or --prefix=NAME_ before all exported names");
}

/* The name of workspace's size in the header. `a` and `A` would share it, so neither has one. */
static void choose_macros(Arena *a, const KernelModule *m, ExportedName *name)
{
    Names all;
    names_init(&all, a);
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        uint32_t other = 0;
        const char *key = upper(a, name[k].symbol);
        if (names_find(&all, key, strlen(key), &other)) {
            name[other].macro = NULL;
            (void)names_claim(&all, str_format(a, "%u", k)); /* one for each kernel */
        } else {
            (void)names_claim(&all, key);
            name[k].macro = str_format(a, "%s_WORKSPACE_BYTES", key);
        }
    }
}

/* A kernel on ranks has a table and a function of its name as well, which no other kernel is called. */
static bool ranks_have_names(Ctx *ctx, Arena *a, const KernelModule *m,
                             const ExportedName *name, const Names *symbols)
{
    static const char *const ending[] = {"dist", "cut"};
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        for (size_t i = 0; dist_planned(&m->kernels.at[k]->ranks) && i < 2; i++) {
            const char *own = str_format(a, "%s_%s", name[k].symbol, ending[i]);
            uint32_t other = 0;
            if (names_find(symbols, own, strlen(own), &other)) {
                diag_error(&ctx->diags, E_DUPLICATE_NAME, m->kernels.at[other]->span,
                           "kernel '%s' would be called as what kernel '%s' has for ranks",
                           m->kernels.at[other]->name->text, m->kernels.at[k]->name->text);
                return false;
            }
        }
    }
    return true;
}

ExportedName *exported_names(Ctx *ctx, Arena *a, const KernelModule *m, const EmitOptions *o)
{
    ExportedName *name = ARENA_ARRAY(a, (size_t)m->kernels.n + 1, ExportedName);
    Names symbols;
    bool ok = true;
    names_init(&symbols, a);
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        const Kernel *kernel = m->kernels.at[k];
        const char *wish = with_prefix(a, o, kernel->name->text), *symbol = c_symbol(a, wish);
        uint32_t other = 0;
        name[k].symbol = symbol;
        if (o->warn_names) {
            warn_of_change(ctx, a, kernel, wish, symbol);
        }
        if (ok && !names_claim(&symbols, symbol)) {
            (void)names_find(&symbols, symbol, strlen(symbol), &other);
            Diagnostic *d =
                diag_error(&ctx->diags, E_DUPLICATE_NAME, kernel->span,
                           "kernel '%s' would be called '%s' in C", kernel->name->text, symbol);
            diag_note(d, m->kernels.at[other]->span, "so is kernel '%s'",
                      m->kernels.at[other]->name->text);
            ok = false;
        }
    }
    choose_macros(a, m, name);
    return ok && ranks_have_names(ctx, a, m, name, &symbols) ? name : NULL;
}

const char *exported_list(Arena *a, const EmitOptions *o, const char *base)
{
    return with_prefix(a, o, str_format(a, "%s_kernels", base));
}

const char *exported_stem(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *from = slash != NULL ? slash + 1 : path;
    const char *dot = strchr(from, '.');
    size_t n = dot != NULL ? (size_t)(dot - from) : strlen(from);
    char *word = ARENA_ARRAY(a, n + 3, char);
    size_t at = 0;
    if (n == 0 || (from[0] >= '0' && from[0] <= '9') || from[0] == '_') {
        word[at++] = 'm';
    }
    for (size_t i = 0; i < n; i++) {
        char c = from[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        word[at++] = ok ? c : '_';
    }
    return word;
}
