/* SPDX-License-Identifier: Apache-2.0 */
/* The files beside a kernel: manifest and HLO text (build script and table have files of their
 * own, script.c and table.c). All are made from the LEGAL kernel alone. A kernel of several
 * parts has program, manifest and HLO text for each, and a manifest that lists them. */
#include "backend/ctext/names.h"
#include "backend/nki/cores.h"
#include "backend/nki/part.h"
#include "base/sha256.h"

#include <string.h>

/* ---- manifest ---- */

static void put_row(const Kernel *k, Arg arg, bool output, bool last, Text *out)
{
    const Buffer *b = &k->bufs.at[arg.buf];
    const Dim *extent = NULL;
    uint32_t rank = nki_shape(k, arg.buf, &extent);
    text_printf(out, "    {\"name\": \"%s\", \"role\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                output ? nki_result(k, arg.buf) : nki_param(k, arg.buf),
                output ? "output" : "input", nki_dtype(buffer_stored(b)));
    for (uint32_t d = 0; d < rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)extent[d].n);
    }
    text_printf(out, "%s], \"argument\": %d", b->rank == 0 ? "1, 1" : "", b->param);
    if (arg.whole != DTYPE_NONE) { /* as the caller sees them */
        text_printf(out, ", \"of\": {\"dtype\": \"%s\", \"shape\": [",
                    arg.whole == DTYPE_F64   ? "float64"
                    : arg.whole == DTYPE_I64 ? "int64"
                                             : "complex64");
        for (uint32_t d = 0; d < arg.whole_rank; d++) {
            text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)extent[d].n);
        }
        text_put(out, "]}");
    }
    text_printf(out, "}%s\n", last ? "" : ",");
}

static bool is_input(ArgRole r)
{
    return r != ARG_RESULT;
}

static bool is_output(ArgRole r)
{
    return r == ARG_RESULT || r == ARG_INOUT;
}

static void put_shape(const Buffer *b, Text *out)
{
    text_put(out, "[");
    for (uint32_t d = 0; d < b->rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)b->extent[d].n);
    }
    text_put(out, b->rank == 0 ? "1, 1]" : "]");
}

static void put_part(const Kernel *k, const NkiPart *part, Text *out)
{
    text_printf(out, "    {\"manifest\": \"%s.json\", \"operands\": [\n",
                nki_function(part->kernel));
    for (uint32_t i = 0; i < part->operands.n; i++) {
        const PartOperand *o = &part->operands.at[i];
        text_printf(
            out, "      {\"role\": \"%s\", \"tensor\": \"%s\", \"first\": %lld, \"shape\": ",
            o->output ? "output" : "input",
            o->output ? nki_result(k, o->whole) : nki_param(k, o->whole), (long long)o->first);
        put_shape(&part->kernel->bufs.at[o->whole], out);
        text_put(out, i + 1 < part->operands.n ? "},\n" : "}]}");
    }
    text_put(out, part->number < part->of ? ",\n" : "],\n");
}

/* Parts in the order in which they run, and the tensors they hand to each other. */
static void put_parts(const Kernel *k, const NkiPart *part, Text *out)
{
    BufRef buf = 0;
    text_put(out, "  \"temporaries\": [");
    for (uint32_t i = 0; nki_temporary(k, i, &buf); i++) {
        text_printf(out, "%s\n    {\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": ",
                    i == 0 ? "" : ",", nki_param(k, buf), nki_dtype(k->bufs.at[buf].dtype));
        put_shape(&k->bufs.at[buf], out);
        text_put(out, "}");
    }
    text_put(out, "],\n  \"parts\": [\n");
    for (uint32_t i = 0; i < part->of; i++) {
        put_part(k, &part[i], out);
    }
}

/* The digest of a module from its imports on: what is above them names the file that it was made from. */
static void put_digest(const Text *module, Text *out)
{
    const char *code = strstr(module->at, "\nimport nki\n");
    CHECK(code != NULL);
    char hex[SHA256_HEX_BYTES];
    sha256_hex(str_from(code + 1), hex);
    text_printf(out, "  \"sha256\": \"%s\",\n", hex);
}

/* `part`: its parts, where there are several, or null; then `module` is its text. */
static void nki_print_manifest(const Kernel *k, const NkiCost *cost, const NkiPart *part,
                               const EmitOptions *o, const Text *module, Text *out)
{
    NkiCost c = *cost;
    const char *fn = nki_function(k);
    text_printf(out, "{\n  \"format\": %d,\n  \"compiler\": \"tdslc %s\",\n", NKI_FORMAT,
                o->tool_version == NULL ? "" : o->tool_version);
    text_printf(out, "  \"kernel\": \"%s\",\n  \"signature\": ", fn);
    text_json(out, k->signature != NULL ? k->signature : "");
    text_put(out, ",\n");
    if (part == NULL) {
        text_printf(out, "  \"file\": \"%s.py\",\n  \"function\": \"%s\",\n", fn, fn);
        put_digest(module, out);
    } else {
        put_parts(k, part, out);
    }
    text_printf(out,
                "  \"target\": \"%s\",\n  \"dialect\": \"0.3.0 to 0.6.0\",\n  \"grid\": %d,\n  "
                "\"lnc\": %d,\n",
                k->target, nki_lnc(k), nki_lnc(k));
    text_printf(out, "  \"instructions\": %lld,\n", (long long)c.instructions);
    text_printf(out, "  \"matmul_macs\": %lld,\n", (long long)c.matmul_macs);
    text_printf(out, "  \"multiply_adds\": %lld,\n", (long long)kernel_multiply_adds(k, NULL));
    text_put(out, "  \"predicted\": {");
    for (int e = 0; e < 4; e++) {
        text_printf(out, "\"%s_cycles\": %lld, ", nki_engine_names[e], (long long)c.cycles[e]);
    }
    text_printf(
        out,
        "\"hbm_read_bytes\": %lld, \"hbm_written_bytes\": %lld, \"compulsory_bytes\": %lld, ",
        (long long)c.read_bytes, (long long)c.written_bytes, (long long)c.compulsory_bytes);
    text_printf(
        out,
        "\"dma_descriptors\": %lld, \"sbuf_bytes_per_partition\": %lld, \"psum_banks\": %lld, ",
        (long long)c.descriptors, (long long)c.sbuf_peak, (long long)c.psum_peak);
    text_printf(out, "\"bound_by\": \"%s\", \"bound_us\": ", nki_engine_names[c.bound_by]);
    text_printf(out, "%.3f, \"predicted_us\": %.3f},\n  \"spills\": [", c.busy_us[c.bound_by],
                c.predicted_us);
    bool first = true;
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        if (k->bufs.at[i].space == SPACE_WORKSPACE) {
            text_printf(out, "%s\"%s\"", first ? "" : ", ", nki_param(k, i));
            first = false;
        }
    }
    text_put(out, "],\n  \"args\": [\n");
    uint32_t left = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        left +=
            (uint32_t)is_input(k->args.at[i].role) + (uint32_t)is_output(k->args.at[i].role);
    }
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < k->args.n; i++) {
            Arg a = k->args.at[i];
            if (side == 0 ? is_input(a.role) : is_output(a.role)) {
                put_row(k, a, side == 1, --left == 0, out);
            }
        }
    }
    text_put(out, "  ]\n}\n");
}

/* ---- HLO ---- */

static void put_base64(Str in, Text *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < in.n; i += 3) {
        uint32_t left = in.n - i < 3 ? (uint32_t)(in.n - i) : 3;
        uint32_t word = 0;
        for (uint32_t j = 0; j < 3; j++) {
            word = word << 8 | (j < left ? (unsigned char)in.at[i + j] : 0u);
        }
        for (uint32_t j = 0; j < 4; j++) {
            text_char(out, j <= left ? digits[word >> (18 - 6 * j) & 63] : '=');
        }
    }
}

static void put_hlo_type(const Kernel *k, BufRef buf, Text *out)
{
    const Buffer *b = &k->bufs.at[buf];
    text_printf(out, "%s[", dtype_info(buffer_stored(b))->hlo);
    const Dim *extent = NULL;
    uint32_t rank = nki_shape(k, buf, &extent);
    for (uint32_t d = 0; d < rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ",", (long long)extent[d].n);
    }
    text_put(out, rank == 0 ? "1,1]" : "]");
}

static void put_names(const Kernel *k, bool outputs, Text *out)
{
    bool first = true;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg a = k->args.at[i];
        if (outputs ? is_output(a.role) : is_input(a.role)) {
            text_printf(out, "%s\"%s\"", first ? "" : ", ",
                        outputs ? nki_result(k, a.buf) : nki_param(k, a.buf));
            first = false;
        }
    }
}

static void put_config(const Kernel *k, const char *target, Text *out)
{
    text_printf(out,
                "{\"func_name\": \"%s\", \"grid\": %d, \"has_collectives\": false, "
                "\"kernel_format\": \"bir\", "
                "\"kernel_version\": 1, \"klir_binary\": {\"aliases\": [], \"binary\": \"\", "
                "\"input_names\": [",
                nki_function(k), nki_lnc(k));
    put_names(k, false, out);
    text_put(out, "], \"output_names\": [");
    put_names(k, true, out);
    text_printf(
        out,
        "], \"version_identifier\": \"\"}, \"mac_count\": %lld, \"platform_target\": \"%s\"}",
        (long long)kernel_multiply_adds(k, NULL), target);
}

static uint32_t count_outputs(const Kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        n += is_output(k->args.at[i].role);
    }
    return n;
}

static void put_result_type(const Kernel *k, Text *out)
{
    bool tuple = count_outputs(k) > 1, first = true;
    text_put(out, tuple ? "(" : "");
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (is_output(k->args.at[i].role)) {
            text_put(out, first ? "" : ", ");
            put_hlo_type(k, k->args.at[i].buf, out);
            first = false;
        }
    }
    text_put(out, tuple ? ")" : "");
}

static void nki_print_hlo(const Kernel *k, const char *target, const NkiChip *chip, Text *out)
{
    (void)chip;
    text_printf(out, "HloModule %s\n\nENTRY main {\n", nki_function(k));
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (is_input(k->args.at[i].role)) {
            text_printf(out, "  %%p%u = ", n);
            put_hlo_type(k, k->args.at[i].buf, out);
            text_printf(out, " parameter(%u)\n", n);
            n++;
        }
    }
    text_put(out, "  ROOT %call = ");
    put_result_type(k, out);
    text_put(out, " custom-call(");
    for (uint32_t i = 0; i < n; i++) {
        text_printf(out, "%s%%p%u", i == 0 ? "" : ", ", i);
    }
    text_put(out, "), custom_call_target=\"AwsNeuronCustomNativeKernel\", "
                  "api_version=API_VERSION_STATUS_RETURNING, backend_config=\"");
    Text config;
    text_init(&config, out->arena);
    put_config(k, target, &config);
    put_base64(text_str(&config), out);
    text_put(out, "\"\n}\n");
}

/* ---- all of them ---- */

static void add_file(OutputSet *out, const char *name, const char *suffix, const Text *text)
{
    OutputFile f = {.name = name, .suffix = suffix, .text = text_str(text)};
    vec_push(out->arena, &out->files, f);
}

/* One device program, whole or a part of `kernel`. */
static NkiCost emit_program(const Kernel *k, const EmitOptions *options, const char *note,
                            const char *kernel, OutputSet *out)
{
    const NkiChip *chip = nki_chip(k->target);
    const char *name = nki_function(k);
    Text text[3];
    for (int t = 0; t < 3; t++) {
        text_init(&text[t], out->arena);
    }
    NkiCost c;
    CHECK(nki_measure(k, chip, &c));
    nki_print_kernel(k, &c, options, note, &text[0]);
    nki_print_manifest(k, &c, NULL, options, &text[0], &text[1]);
    nki_print_hlo(k, k->target, chip, &text[2]);
    add_file(out, name, ".py", &text[0]);
    output_count(out, kernel, text_str(&text[0]));
    double arithmetic = 0, bytes = (double)(c.read_bytes + c.written_bytes);
    for (int e = 0; e < 4; e++) {
        arithmetic = c.busy_us[e] > arithmetic ? c.busy_us[e] : arithmetic;
    }
    output_predict(out, kernel, c.predicted_us * 1e-6, arithmetic * 1e-6, bytes,
                   nki_engine_names[c.bound_by]);
    add_file(out, name, ".json", &text[1]);
    add_file(out, name, ".hlo.txt", &text[2]);
    return c;
}

static void emit_parts(Ctx *ctx, const Kernel *k, const EmitOptions *options, OutputSet *out)
{
    NkiPart *part = ARENA_ARRAY(out->arena, nki_parts(k), NkiPart);
    double predicted_us = 0;
    for (uint32_t i = 0; i < nki_parts(k); i++) {
        nki_part(out->arena, &ctx->syms, k, i, &part[i]);
        const char *note = str_format(
            out->arena,
            "Part %u of %u of kernel %s, which is too long for one device program: they run in "
            "order, as\none call; see %s.json for the tensors of each.",
            part[i].number, part[i].of, nki_function(k), nki_function(k));
        predicted_us +=
            emit_program(part[i].kernel, options, note, k->name->text, out).predicted_us;
    }
    NkiCost all;
    Text text;
    text_init(&text, out->arena);
    CHECK(nki_cost(k, nki_chip(k->target), &all));
    all.predicted_us = predicted_us; /* one after the other */
    nki_print_manifest(k, &all, part, options, NULL, &text);
    add_file(out, nki_function(k), ".json", &text);
}

/* Files and functions are called as kernels are: no two the same. */
static bool names_differ(Ctx *ctx, const KernelModule *m, Arena *a)
{
    Names names;
    names_init(&names, a);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        const Kernel *k = m->kernels.at[i];
        const char *name = nki_function(k);
        uint32_t other = 0;
        if (!names_claim(&names, name)) {
            (void)names_find(&names, name, strlen(name), &other);
            Diagnostic *d =
                diag_error(&ctx->diags, E_DUPLICATE_NAME, k->span,
                           "kernel '%s' would be called '%s' in Python", k->name->text, name);
            diag_note(d, m->kernels.at[other]->span, "so is kernel '%s'",
                      m->kernels.at[other]->name->text);
            return false;
        }
    }
    return true;
}

bool nki_emit(const Target *target, Ctx *ctx, const KernelModule *m, const EmitOptions *options,
              OutputSet *out)
{
    (void)target; /* each kernel names its chip */
    if (!names_differ(ctx, m, out->arena)) {
        return false;
    }
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        const Kernel *k = m->kernels.at[i];
        if (nki_parts(k) > 1) {
            emit_parts(ctx, k, options, out);
        } else {
            (void)emit_program(k, options, NULL, k->name->text, out);
        }
    }
    if (m->kernels.n > 0) {
        const char *list =
            nki_table_name(out->arena, options->source_name, m->kernels.at[0]->target);
        Text script, table;
        text_init(&script, out->arena);
        text_init(&table, out->arena);
        nki_print_build_script(&script);
        add_file(out, "build_neff", ".py", &script);
        nki_print_table(ctx, m,
                        options->prefix == NULL
                            ? list
                            : str_format(out->arena, "%s%s", options->prefix, list),
                        &table);
        add_file(out, list, ".c", &table);
    }
    return true;
}
