/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs from texts, and texts of all that a test has where it fails. */
#ifndef SUPPORT_TEXTS_H
#define SUPPORT_TEXTS_H

#include <stdio.h>
#include <string.h>

#include "loop/loop.h"
#include "loop/loop_text.h"
#include "nest/nest.h"
#include "nest/text.h"
#include "support/test.h"

/* All diagnostics. */
static inline const char *messages(Ctx *ctx)
{
    Text out;
    text_init(&out, &ctx->arena);
    diags_render(&ctx->diags, &out, false);
    return out.at;
}

/* The graph of a kernel of this form, from its lines; they have no fault. */
static inline Graph *graph_of_lines(Ctx *ctx, const char *form, const char *lines)
{
    const char *text = str_format(
        &ctx->arena, "tdsl-dump graph 1\nkernel k {\n  signature \"\"\n  form %s\n%s}\n", form,
        lines);
    Module *m = module_read(ctx, source_add(&ctx->sources, "test", str_from(text), (Span){0}));
    if (m == NULL) {
        fail_msg("%s\n%s", lines, messages(ctx));
        return NULL;
    }
    return m->graphs.at[0];
}

/* Prints what there is of a graph, its nest and its kernel. */
static inline void print_all(Ctx *ctx, const Graph *g, const Nest *nest, const Kernel *k)
{
    Text out;
    text_init(&out, &ctx->arena);
    diags_render(&ctx->diags, &out, false);
    graph_dump(g, &out);
    if (nest != NULL) {
        nest_dump(nest, &out);
    }
    if (k != NULL) {
        kernel_dump(k, &out);
    }
    fprintf(stderr, "%s", out.at); /* print_error cuts long texts */
}

/* Kernel results come in calling order, parameters first. */
static inline const Tensor *result_named(const Kernel *k, Tensor **results, Sym name)
{
    uint32_t at = 0;
    for (uint32_t a = 0; a < k->args.n; a++) {
        ArgRole role = k->args.at[a].role;
        if (role != ARG_INOUT && role != ARG_RESULT) {
            continue;
        }
        if (strcmp(k->bufs.at[k->args.at[a].buf].name->text, name->text) == 0) {
            return results[at];
        }
        at++;
    }
    return NULL;
}

#endif
