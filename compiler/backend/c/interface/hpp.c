/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=hpp: for each kernel tdsl::try_NAME, which gives what std::expected gives, and tdsl::NAME, which throws. Beside them stands
 * the text of callers/view.hpp. */
#include <string.h>

#include "backend/c/interface/caller.h"

extern const char call_view_hpp[]; /* callers/view.hpp, embedded by the build */

static void axis_put(Text *out, const char *array, uint32_t axis)
{
    text_printf(out, "%s.extent(%u)", array, axis);
}

static void number_put(Text *out, int64_t n)
{
    text_printf(out, "%lldu", (long long)n);
}

static const char *const taken[] = {"args",   "how",     "bytes",   "tdsl",    "std",
                                    "view",   "error",   "outcome", "failure", "memory",
                                    "detail", "options", NULL};
static const Dialect dialect = {
    .taken = taken, .axis = axis_put, .number = number_put, .divide = "detail::divide"};

/* bool is one byte to both sides. */
static const char *element(DType t)
{
    return t == DTYPE_BOOL ? "bool" : c_type(t);
}

static void parameters_put(const Caller *c, Text *out, bool defaults)
{
    const Kernel *k = c->k;
    const char *before = "\n    ";
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        if (c->value[d] == NULL) {
            text_printf(out, "%sstd::uint64_t %s", before, c->dim[d]);
            before = ",\n    ";
        }
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *type = element(caller_buffer(c, i)->dtype);
        const char *constant = caller_writes(c, i) ? "" : "const ";
        text_put(out, before);
        before = ",\n    ";
        if (k->args.at[i].role == ARG_SCALAR) {
            text_printf(out, "%s %s", type, c->arg[i]);
        } else if (caller_is_number(c, i)) {
            text_printf(out, "%s%s &%s", constant, type, c->arg[i]);
        } else {
            text_printf(out, "view<%s%s, %u> %s", constant, type, arg_shape(k, i).rank,
                        c->arg[i]);
        }
    }
    text_printf(out, "%sconst options &how%s", before, defaults ? " = {}" : "");
}

static void takes_put(const Caller *c, Text *out)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        ArgShape s = arg_shape(c->k, i);
        if (c->k->args.at[i].role == ARG_SCALAR) {
            continue;
        }
        text_printf(out, "    args.take(\"%s\", %s", c->arg[i], c->arg[i]);
        for (uint32_t d = 0; d < s.rank; d++) {
            text_printf(out, "%s{%s, \"%s\"}", d == 0 ? ", {" : ", ",
                        caller_extent(c, s.extent[d]), caller_written(c, s.extent[d]));
        }
        text_put(out, s.rank == 0 ? ");\n" : "});\n");
    }
}

/* "m, k, " as the C function takes them. */
static void dims_put(const Caller *c, Text *out)
{
    for (uint32_t d = 0; d < dims_given(&c->k->dims); d++) {
        text_printf(out, "static_cast<std::int64_t>(%s), ", c->dim[d]);
    }
}

static void args_put(const Caller *c, Text *out)
{
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        const Buffer *b = caller_buffer(c, i);
        bool scalar = c->k->args.at[i].role == ARG_SCALAR, number = caller_is_number(c, i);
        const char *at = scalar   ? c->arg[i]
                         : number ? str_format(c->arena, "&%s", c->arg[i])
                                  : str_format(c->arena, "%s.data()", c->arg[i]);
        if (b->dtype == DTYPE_BOOL && !scalar) {
            text_printf(out, "reinterpret_cast<%sstd::uint8_t *>(%s), ",
                        caller_writes(c, i) ? "" : "const ", at);
        } else {
            text_printf(out, "%s, ", at);
        }
    }
}

static void kernel_put(const Caller *c, Text *out)
{
    const Kernel *k = c->k;
    text_put(out, "\n");
    caller_head(c, out, "// ");
    text_printf(out, "[[nodiscard]] inline outcome try_%s(", c->name);
    parameters_put(c, out, true);
    text_put(out, ")\n{\n");
    for (uint32_t f = 0; f < c->n_found; f++) {
        uint32_t d = c->found[f];
        text_printf(out, "    const std::uint64_t %s = %s;\n", c->dim[d], c->value[d]);
    }
    text_printf(out, "    detail::arguments args(\"%s\");\n", k->name->text);
    takes_put(c, out);
    text_put(out,
             "    return args.run(\n        how,\n        [&](std::int32_t threads) { return ");
    text_printf(out, "::%s_workspace_bytes_threads(", c->symbol);
    dims_put(c, out);
    text_put(out, "threads); },\n        [&](void *workspace, std::size_t bytes, const "
                  "tdsl_threads *threads) {\n"
                  "            return ");
    text_printf(out, "::%s_threads(", c->symbol);
    dims_put(c, out);
    args_put(c, out);
    text_put(out, "workspace, bytes, threads);\n        });\n}\n"
                  "#if defined(__cpp_exceptions)\n");
    text_printf(out, "inline void %s(", c->name);
    parameters_put(c, out, true);
    text_printf(out, ")\n{\n    const outcome done = try_%s(", c->name);
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        if (c->value[d] == NULL) {
            text_printf(out, "%s, ", c->dim[d]);
        }
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        text_printf(out, "%s, ", c->arg[i]);
    }
    text_put(out,
             "how);\n    if (!done) {\n        throw error(done.error());\n    }\n}\n#endif\n");
}

void hpp_emit(const CallFile *f, Text *out)
{
    Names module;
    names_init(&module, f->arena);
    text_printf(out, "#ifndef TDSL_CALL_%s_HPP\n#define TDSL_CALL_%s_HPP\n\n#include \"%s\"\n",
                f->stem, f->stem, f->header);
    text_put(out, strchr(call_view_hpp, '\n') + 1); /* after the licence of the original */
    text_put(out, "\nnamespace tdsl {\n");
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        Caller c;
        caller_init(&c, f->arena, f->m->kernels.at[i], f->name[i].symbol, &dialect, &module);
        kernel_put(&c, out);
    }
    text_put(out, "\n} // namespace tdsl\n\n#endif\n");
}
