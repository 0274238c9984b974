/* SPDX-License-Identifier: Apache-2.0 */
/* Faults planted in texts: a piece of a good text replaced, and what becomes of it. */
#ifndef SUPPORT_FAULTS_H
#define SUPPORT_FAULTS_H

#include <string.h>

#include "graph/eval.h"
#include "loop/loop.h"
#include "loop/loop_text.h"
#include "nest/nest.h"
#include "nest/text.h"
#include "support/test.h"

/* A graph and a nest of it, before a fault is planted. */
typedef struct FaultGood {
    const char *name, *graph, *nest;
} FaultGood;

/* Extents of the first two dims at which a good text and a faulty one are compared. */
#define FAULT_SETS 4
static const int64_t fault_extents[FAULT_SETS][2] = {{5, 3}, {8, 8}, {9, 4}, {1, 1}};

static inline const FaultGood *fault_good(const FaultGood *goods, size_t n, const char *name)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(goods[k].name, name) == 0) {
            return &goods[k];
        }
    }
    fail_msg("there is no '%s'", name);
    return NULL;
}

/* Null: it is refused. */
static inline Graph *fault_graph(Ctx *ctx, const char *body)
{
    const char *text =
        str_format(&ctx->arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", body);
    Module *m = module_read(ctx, source_add(&ctx->sources, "g", str_from(text), (Span){0}));
    return m == NULL ? NULL : m->graphs.at[0];
}

static inline Nest *fault_nest(Ctx *ctx, Graph *g, const char *text)
{
    uint32_t source = source_add(&ctx->sources, "n", str_from(text), (Span){0});
    DumpTree *tree = dump_tree_read(ctx, &ctx->arena, source);
    assert_non_null(tree);
    return nest_read(ctx, &ctx->arena, g, tree->line[0]);
}

/* `text` with the one `from` in it replaced. */
static inline const char *fault_planted(Arena *arena, const char *text, const char *what,
                                        const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL || strstr(at + 1, from) != NULL) {
        fail_msg("%s: '%s' is not there, or twice, in\n%s", what, from, text);
        return NULL;
    }
    return str_format(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* Arguments of the graph at these sizes: number(a, k) is element k of argument a. */
static inline void fault_arguments(Ctx *ctx, const Graph *g, const int64_t *dims,
                                   int64_t (*number)(uint32_t a, int64_t k), Tensor **arg)
{
    for (uint32_t a = 0; a < g->params.n; a++) {
        const Param *p = &g->params.at[a];
        int64_t extent[RANK_LIMIT] = {0};
        for (uint32_t d = 0; d < p->rank; d++) {
            extent[d] = p->shape[d].sym < 0 ? p->shape[d].n : dims[p->shape[d].sym];
        }
        arg[a] = tensor_new(ctx, &ctx->arena, p->dtype, p->rank, extent);
        for (int64_t k = 0; k < arg[a]->count; k++) {
            tensor_set(arg[a], k, number_int(p->dtype, number(a, k)));
        }
    }
}

static inline bool fault_same_results(const Graph *g, Tensor *const *expected,
                                      Tensor *const *got)
{
    bool same = true;
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Tensor *a = expected[k], *b = got[k];
        same = same && a->count == b->count &&
               (a->count == 0 || memcmp(a->data, b->data, (size_t)a->count * 8) == 0);
    }
    return same;
}

/* The kernel with a piece of its dump replaced; null: it is refused. */
static inline Kernel *fault_kernel(Ctx *ctx, const Kernel *k, const char *what,
                                   const char *from, const char *to)
{
    Text text;
    text_init(&text, &ctx->arena);
    text_put(&text, "tdsl-dump loop 1\n\n");
    kernel_dump(k, &text);
    const char *broken = fault_planted(&ctx->arena, text.at, what, from, to);
    uint32_t source = source_add(&ctx->sources, "k", str_from(broken), (Span){0});
    KernelModule *m = kernel_module_read(ctx, source);
    return m == NULL ? NULL : m->kernels.at[0];
}

#endif
