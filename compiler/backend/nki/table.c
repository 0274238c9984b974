/* SPDX-License-Identifier: Apache-2.0 */
/* The C table of the forms in a folder: what a program hands to tdsl_register_nki_all, so that
 * it need not know what the compiler knows. One form for each kernel, of the extents it was
 * compiled for; paths are relative to TDSL_NKI_FOLDER, which whoever compiles the table may
 * define. A NEFF is made later and elsewhere: build_neff.py writes its path and digest into the
 * table, on the line marked with the kernel's name. */
#include "backend/nki/part.h"

#include <string.h>

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
    const Dim *extent = NULL;
    return arg.whole == DTYPE_NONE ? nki_shape(k, arg.buf, &extent) : arg.whole_rank;
}

static uint32_t put_extents(const Kernel *k, Text *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg arg = k->args.at[i];
        const Dim *extent = NULL;
        (void)nki_shape(k, arg.buf, &extent);
        for (uint32_t d = 0; d < outer_rank(k, arg); d++, n++) {
            if (n == 0) {
                text_printf(out, "\nstatic const int64_t tdsl_extents_%s[] = {", k->name->text);
            }
            text_printf(out, "%s%lld", n == 0 ? "" : ", ", (long long)extent[d].n);
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
                text_printf(out, "    {\"%s\", %s, %u, 0, 0, %d, NULL},\n",
                            nki_param(k, arg.buf), side == 0 ? "TDSL_IN" : "TDSL_OUT", i,
                            arg.whole == DTYPE_F64 ? 2 : 0);
                n++;
            }
        }
    }
    text_put(out, "};\n");
    return n;
}

static void put_program(const Kernel *k, const char *operands, uint32_t n_operands, Text *out)
{
    const char *file = nki_function(k);
    text_put(out, "    {NULL, 0,\n");
    text_printf(out, "     NULL, NULL, /* NEFF of %s */\n", file);
    text_printf(out,
                "     TDSL_NKI_FOLDER \"%s.py\", \"%s\", TDSL_NKI_FOLDER \"%s.json\", "
                "tdsl_operands_%s, %u, 0},\n",
                file, file, file, operands, n_operands);
}

/* ---- kernels of several parts ---- */

static void put_numbers(const char *what, const char *name, const Buffer *b, uint32_t rank,
                        Text *out)
{
    text_printf(out, "static const int64_t tdsl_%s_%s[] = {", what, name);
    for (uint32_t d = 0; d < rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)b->extent[d].n);
    }
    text_put(out, "};\n");
}

/* Number of a tensor: of an argument, or after them of a temporary. */
static uint32_t tensor_number(const Kernel *k, BufRef buf)
{
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].buf == buf) {
            return i;
        }
    }
    BufRef temporary = 0;
    uint32_t n = 0;
    while (nki_temporary(k, n, &temporary) && temporary != buf) {
        n++;
    }
    return k->args.n + n;
}

/* What the caller sees as another type: two elements of the last dimension are one. */
static DType whole_of(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    return param >= 0 ? k->args.at[param].whole : DTYPE_NONE;
}

static void put_part_operands(const Kernel *k, const NkiPart *part, Text *out)
{
    const char *name = part->kernel->name->text;
    text_put(out, "\n");
    for (uint32_t i = 0; i < part->operands.n; i++) {
        const Buffer *b = &part->kernel->bufs.at[part->operands.at[i].whole];
        if (part->operands.at[i].rows) {
            bool two = whole_of(k, part->operands.at[i].whole) != DTYPE_NONE;
            put_numbers("rows", str_format(out->arena, "%s_%u", name, i), b,
                        b->rank - (two ? 1 : 0), out);
        }
    }
    text_printf(out, "static const tdsl_nki_operand tdsl_operands_%s[] = {\n", name);
    for (uint32_t i = 0; i < part->operands.n; i++) {
        const PartOperand *o = &part->operands.at[i];
        const Buffer *b = &part->kernel->bufs.at[o->whole];
        DType whole = whole_of(k, o->whole);
        int words = whole == DTYPE_F64 ? 2 : 0; /* which the runtime puts together */
        text_printf(out, "    {\"%s\", %s, %u, %lld, ", nki_param(part->kernel, o->whole),
                    o->output ? "TDSL_OUT" : "TDSL_IN", tensor_number(k, o->whole),
                    (long long)(whole != DTYPE_NONE ? o->first / 2 : o->first));
        if (o->rows) {
            text_printf(out, "%u, %d, tdsl_rows_%s_%u},\n",
                        b->rank - (whole != DTYPE_NONE ? 1 : 0), words, name, i);
        } else {
            text_printf(out, "0, %d, NULL},\n", words);
        }
    }
    text_put(out, "};\n");
}

static uint32_t put_temporaries(const Kernel *k, Text *out)
{
    uint32_t n = 0;
    BufRef buf = 0;
    for (; nki_temporary(k, n, &buf); n++) {
        text_put(out, n == 0 ? "\n" : "");
        put_numbers("shape", str_format(out->arena, "%s_%u", k->name->text, n),
                    &k->bufs.at[buf], k->bufs.at[buf].rank, out);
    }
    for (uint32_t i = 0; nki_temporary(k, i, &buf); i++) {
        if (i == 0) {
            text_printf(out, "static const tdsl_nki_temporary tdsl_temporaries_%s[] = {\n",
                        k->name->text);
        }
        text_printf(out, "    {\"%s\", %s, %u, tdsl_shape_%s_%u},\n", nki_param(k, buf),
                    dtype_info(k->bufs.at[buf].dtype)->abi, k->bufs.at[buf].rank, k->name->text,
                    i);
    }
    text_put(out, n > 0 ? "};\n" : "");
    return n;
}

static uint32_t put_parts(Ctx *ctx, const Kernel *k, Text *out)
{
    uint32_t n = nki_parts(k);
    NkiPart *part = ARENA_ARRAY(out->arena, n, NkiPart);
    for (uint32_t i = 0; i < n; i++) {
        nki_part(out->arena, &ctx->syms, k, i, &part[i]);
        put_part_operands(k, &part[i], out);
    }
    text_printf(out, "\nstatic const tdsl_nki_part tdsl_parts_%s[] = {\n", k->name->text);
    for (uint32_t i = 0; i < n; i++) {
        put_program(part[i].kernel, part[i].kernel->name->text, part[i].operands.n, out);
    }
    text_put(out, "};\n");
    return n;
}

static void put_form(Ctx *ctx, const Kernel *k, Text *out)
{
    const char *name = k->name->text;
    uint32_t n_extents = put_extents(k, out), n_parts = 1, n_temporaries = 0;
    if (nki_parts(k) > 1) {
        n_temporaries = put_temporaries(k, out);
        n_parts = put_parts(ctx, k, out);
    } else {
        uint32_t n_operands = put_operands(k, out);
        text_printf(out, "\nstatic const tdsl_nki_part tdsl_parts_%s[] = {\n", name);
        put_program(k, name, n_operands, out);
        text_put(out, "};\n");
    }
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
    const char *temporaries =
        n_temporaries > 0 ? str_format(out->arena, "tdsl_temporaries_%s", name) : "NULL";
    text_printf(out, " %u, tdsl_parts_%s, %s, %u, 0,\n};\n", n_temporaries, name, temporaries,
                n_parts);
}

void nki_print_table(Ctx *ctx, const KernelModule *m, const char *list, Text *out)
{
    text_printf(out,
                "/* NKI forms for tdsl_register_nki_all, written by tdslc beside the programs; "
                "build_neff.py adds the NEFFs.\n"
                " * " GENERATED_TERMS "\n"
                " * Declare it as: extern const tdsl_nki_form *const %s_forms[]; */\n"
                "#include <tdsl/tdsl.h>\n\n"
                "#ifndef TDSL_NKI_FOLDER\n"
                "#define TDSL_NKI_FOLDER \"\" /* of the files below, with a '/' at its end */\n"
                "#endif\n\n"
                "TDSL_BEGIN\nextern const tdsl_nki_form *const %s_forms[];\nTDSL_END\n",
                list, list);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        put_form(ctx, m->kernels.at[i], out);
    }
    text_printf(out, "\nconst tdsl_nki_form *const %s_forms[] = {\n", list);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        text_printf(out, "    &tdsl_form_%s,\n", m->kernels.at[i]->name->text);
    }
    text_put(out, "    NULL,\n};\n");
}
