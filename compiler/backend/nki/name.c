/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the printed text. A kernel, its parameters and its results are called as in the program unless Python, NKI
 * or another name of the kernel is in the way; tiles and blocks have names that end in a number (instr_make.c,
 * legalise.c), which none made here does. */
#include "backend/nki/nki.h"

#include <string.h>

static const char *const reserved = " False None True and as assert async await break class "
                                    "continue def del elif else except finally for from "
                                    "global if import in is lambda nonlocal not or pass raise "
                                    "return try while with yield match case type nki nl "
                                    "nisa range print min max abs len int float str bool list "
                                    "tuple dict slice isinstance divmod math psum sbuf pmem "
                                    "hbm build_neff ";

static bool is_reserved(const char *word)
{
    size_t n = strlen(word);
    for (const char *at = strstr(reserved, word); at != NULL; at = strstr(at + 1, word)) {
        if (at[-1] == ' ' && at[n] == ' ') {
            return true;
        }
    }
    return strncmp(word, "nki", 3) == 0 || word[0] == '_';
}

const char *nki_function(const Kernel *k)
{
    const char *name = k->name->text;
    return is_reserved(name) ? str_format(k->arena, "k_%s", name) : name;
}

/* `name`, with as many underscores as it takes to be unlike the kernel and its arguments. */
static const char *unlike_arguments(const Kernel *k, const char *name)
{
    bool taken = strcmp(name, nki_function(k)) == 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        taken |= strcmp(name, k->bufs.at[k->args.at[i].buf].name->text) == 0;
    }
    return taken ? unlike_arguments(k, str_format(k->arena, "%s_", name)) : name;
}

const char *nki_param(const Kernel *k, BufRef buf)
{
    const char *name = k->bufs.at[buf].name->text;
    bool taken = is_reserved(name) || strcmp(name, nki_function(k)) == 0;
    return taken ? unlike_arguments(k, str_format(k->arena, "v_%s", name)) : name;
}

static bool is_inout(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    return param >= 0 && k->args.at[param].role == ARG_INOUT;
}

const char *nki_result(const Kernel *k, BufRef buf)
{
    const char *name = nki_param(k, buf);
    return is_inout(k, buf) ? unlike_arguments(k, str_format(k->arena, "%s_out", name)) : name;
}

static const Arg *collapsed_arg(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    const Arg *arg = param < 0 || (uint32_t)param >= k->args.n ? NULL : &k->args.at[param];
    return arg != NULL && arg->buf == buf && arg->shape != NULL ? arg : NULL;
}

bool nki_is_collapsed(const Kernel *k, BufRef buf)
{
    return collapsed_arg(k, buf) != NULL;
}

uint32_t nki_shape(const Kernel *k, BufRef buf, const Dim **extent)
{
    const Arg *arg = collapsed_arg(k, buf);
    *extent = arg != NULL ? arg->shape : k->bufs.at[buf].extent;
    return arg != NULL ? arg->rank : k->bufs.at[buf].rank;
}
