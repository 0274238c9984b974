/* SPDX-License-Identifier: Apache-2.0 */
/* The C table of the forms in a folder: what a program hands to tdsl_register_nki_all, so that
 * it need not know what the compiler knows. One form for each kernel, of the extents it was
 * compiled for; paths are relative to TDSL_NKI_FOLDER, which whoever compiles the table may
 * define. A NEFF is made later and elsewhere: build_neff.py writes its path and digest into the
 * table, on the line marked with the kernel's name. */
#include <string.h>

#include "backend/nki/nki.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *nki_table_name(Arena *arena, const char *source, const char *target)
{
    const char *slash = source != NULL ? strrchr(source, '/') : NULL;
    const char *from = source == NULL ? "kernels" : slash != NULL ? slash + 1 : source;
    const char *dot = strchr(from, '.');
    size_t n = dot != NULL ? (size_t)(dot - from) : strlen(from);
    char *word = ARENA_ARRAY(arena, n + 2, char);
    size_t at = 0;
    if (n == 0 || !is_word(from[0]) || (from[0] >= '0' && from[0] <= '9')) {
        word[at++] = 'm';
    }
    for (size_t i = 0; i < n; i++) {
        word[at++] = is_word(from[i]) ? from[i] : '_';
    }
    return str_format(arena, "%s_%s", word, target);
}

/* The caller's axes: without the parts of complex numbers. */
static uint32_t outer_rank(const Kernel *k, Arg arg)
{
    return arg.whole == DTYPE_NONE ? k->bufs.at[arg.buf].rank : arg.whole_rank;
}

static uint32_t put_extents(const Kernel *k, Text *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg arg = k->args.at[i];
        for (uint32_t d = 0; d < outer_rank(k, arg); d++, n++) {
            if (n == 0) {
                text_printf(out, "\nstatic const int64_t tdsl_extents_%s[] = {", k->name->text);
            }
            text_printf(out, "%s%lld", n == 0 ? "" : ", ",
                        (long long)k->bufs.at[arg.buf].extent[d].n);
        }
    }
    text_put(out, n > 0 ? "};\n" : "");
    return n;
}

/* Operands as the program has them: what it reads, then what it returns. */
static uint32_t put_operands(const Kernel *k, Text *out)
{
    uint32_t n = 0;
    text_printf(out, "\nstatic const tdsl_nki_operand tdsl_operands_%s[] = {\n", k->name->text);
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < k->args.n; i++) {
            Arg arg = k->args.at[i];
            if (side == 0 ? arg.role != ARG_RESULT
                          : arg.role == ARG_RESULT || arg.role == ARG_INOUT) {
                text_printf(out, "    {\"%s\", %s, %u, 0, 0, 0, NULL},\n",
                            nki_param(k, arg.buf), side == 0 ? "TDSL_IN" : "TDSL_OUT", i);
                n++;
            }
        }
    }
    text_put(out, "};\n");
    return n;
}

static void put_form(const Kernel *k, Text *out)
{
    const char *name = k->name->text;
    const char *file = nki_function(k);
    uint32_t n_extents = put_extents(k, out);
    uint32_t n_operands = put_operands(k, out);
    text_printf(out, "\nstatic const tdsl_nki_part tdsl_parts_%s[] = {\n    {NULL, 0,\n", name);
    text_printf(out, "     NULL, NULL, /* NEFF of %s */\n", file);
    text_printf(out,
                "     TDSL_NKI_FOLDER \"%s.py\", \"%s\", TDSL_NKI_FOLDER \"%s.json\", "
                "tdsl_operands_%s, %u, 0},\n};\n",
                file, file, file, name, n_operands);
    text_printf(
        out,
        "\nstatic const tdsl_nki_form tdsl_form_%s = {\n"
        "    (uint32_t)sizeof(tdsl_nki_form), TDSL_NKI_VERSION, \"%s\", \"%s\", NULL,\n",
        name, name, k->target);
    if (n_extents > 0) {
        text_printf(out, "    tdsl_extents_%s, %u,", name, n_extents);
    } else {
        text_put(out, "    NULL, 0,");
    }
    text_printf(out, " 0, tdsl_parts_%s, NULL, 1, 0,\n};\n", name);
}

void nki_print_table(const KernelModule *m, const char *list, Text *out)
{
    text_printf(out,
                "/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* NKI forms for tdsl_register_nki_all, written by tdslc beside the programs; "
                "build_neff.py adds the NEFFs.\n"
                " * Declare it as: extern const tdsl_nki_form *const %s_forms[]; */\n"
                "#include <tdsl/tdsl.h>\n\n"
                "#ifndef TDSL_NKI_FOLDER\n"
                "#define TDSL_NKI_FOLDER \"\" /* of the files below, with a '/' at its end */\n"
                "#endif\n\n"
                "TDSL_BEGIN\nextern const tdsl_nki_form *const %s_forms[];\nTDSL_END\n",
                list, list);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        put_form(m->kernels.at[i], out);
    }
    text_printf(out, "\nconst tdsl_nki_form *const %s_forms[] = {\n", list);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        text_printf(out, "    &tdsl_form_%s,\n", m->kernels.at[i]->name->text);
    }
    text_put(out, "    NULL,\n};\n");
}
