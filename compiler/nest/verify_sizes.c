/* SPDX-License-Identifier: Apache-2.0 */
/* Nests for sizes of one dim: exactly one of them for each size. */
#include "nest/verify_parts.h"

/* What is wrong with the sizes that the nests are for, or null. */
const char *nest_sizes_problem(const Nest *nest)
{
    const DimTable *dims = &nest->graph->dims;
    const DimTest *tests[NEST_SIZES];
    bool own = false;
    if (nest->n_sizes > NEST_SIZES) {
        return "there are too many nests";
    }
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        tests[k] = &nest->sizes[k].when;
    }
    const char *problem = dim_tests_problem(dims, nest->n_sizes, tests);
    for (uint32_t k = 0; problem == NULL && k < nest->n_sizes; k++) {
        const NestSize *s = &nest->sizes[k];
        const Graph *g = s->nest->graph;
        bool is_own = s->nest == nest;
        if (!dim_test_holds(&s->when, s->size) || g->nodes.at != nest->graph->nodes.at ||
            g->dims.list.at[s->when.dim].typical != s->size ||
            (!is_own && s->nest->n_sizes > 0)) {
            problem = "a nest is not made for a size that it is for";
        }
        own = own || is_own;
    }
    return problem != NULL || own ? problem : "none of the nests is for the typical size";
}

void nest_refuse_tile(Ctx *ctx, Arena *arena, const Nest *nest, const char *stage, uint32_t k,
                      uint32_t around)
{
    const NestItem *in = &nest->items[k], *out = &nest->items[around];
    const NestAxis *axis = &nest->axes[in->axis];
    const char *name = axis->n == 0
                           ? "an index"
                           : graph_names(arena, nest->graph)[axis->node[0]][axis->label[0]];
    const char *what = in->tile == out->tile ? "is that of" : "does not divide the tile of";
    Span at = in->span.source != 0 ? in->span : nest->graph->span;
    Diagnostic *d = diag_error(&ctx->diags, E_DUMP, at,
                               "%s: the tile of %s, %lld, %s the loop around it, %lld", stage,
                               name, (long long)in->tile, what, (long long)out->tile);
    if (out->span.source != 0) {
        diag_mark(d, out->span, "around it");
    }
}
