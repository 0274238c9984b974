/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=manifest: what a caller of the C has to know, as JSON, for programs that make bindings. Its schema is docs/manifest.schema.json. */
#include "backend/c/interface/caller.h"

static const char *role_text(ArgRole role)
{
    return role == ARG_IN       ? "in"
           : role == ARG_INOUT  ? "inout"
           : role == ARG_SCALAR ? "scalar"
                                : "out";
}

static void kernel_put(const Kernel *k, const char *symbol, Arena *arena, Text *out)
{
    text_put(out, "    {\n      \"name\": ");
    text_json(out, k->name->text);
    text_put(out, ",\n      \"symbol\": ");
    text_json(out, symbol);
    text_put(out, ",\n      \"signature\": ");
    text_json(out, k->signature != NULL ? k->signature : k->name->text);
    text_put(out, ",\n      \"dims\": [");
    for (uint32_t d = 0; d < dims_given(&k->dims); d++) {
        const DimInfo *info = &k->dims.list.at[d];
        text_put(out, d == 0 ? "{\"name\": " : ", {\"name\": ");
        text_json(out, info->name->text);
        text_printf(out, ", \"typical\": %lld}", (long long)info->typical);
    }
    text_put(out, "],\n      \"arguments\": [");
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape s = arg_shape(k, i);
        text_put(out, i == 0 ? "\n        {\"name\": " : ",\n        {\"name\": ");
        text_json(out, arg_buffer(k, i)->name->text);
        text_printf(out, ", \"role\": \"%s\", \"dtype\": \"%s\", \"shape\": [",
                    role_text(k->args.at[i].role), dtype_name(arg_buffer(k, i)->dtype));
        for (uint32_t d = 0; d < s.rank; d++) {
            text_put(out, d == 0 ? "" : ", ");
            text_json(out, dim_written(arena, &k->dims, s.extent[d]));
        }
        text_put(out, "]}");
    }
    text_put(out, k->args.n == 0 ? "],\n" : "\n      ],\n");
    text_printf(out, "      \"workspace_bytes\": ");
    if (dims_given(&k->dims) == 0) {
        text_printf(out, "%lld\n    }", (long long)workspace_bytes(k, false));
    } else {
        text_put(out, "null\n    }");
    }
}

void manifest_emit(const CallFile *f, Text *out)
{
    text_put(out, "{\n  \"version\": 1,\n  \"tool\": ");
    text_json(out, f->tool);
    text_put(out, ",\n  \"source\": ");
    text_json(out, f->source);
    text_put(out, ",\n  \"header\": ");
    text_json(out, f->header);
    text_put(out, ",\n  \"kernels\": [");
    for (uint32_t i = 0; i < f->m->kernels.n; i++) {
        text_put(out, i == 0 ? "\n" : ",\n");
        kernel_put(f->m->kernels.at[i], f->name[i].symbol, f->arena, out);
    }
    text_put(out, f->m->kernels.n == 0 ? "]\n}\n" : "\n  ]\n}\n");
}
