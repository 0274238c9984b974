/* SPDX-License-Identifier: Apache-2.0 */
/* See positions.h. */
#include "driver/run/positions.h"

#include <string.h>

#include "graph/eval.h"
#include "loop/loop_eval.h"

bool positions_report(Ctx *ctx, Span span, const Outside *o)
{
    Text at = text_new(&ctx->arena);
    const char *name = o->indices;
    for (uint32_t i = 0; i < o->n_indices; i++) {
        size_t n = strcspn(name, ",");
        text_printf(&at, "%s%.*s = %lld", i == 0 ? " at " : ", ", (int)n, name,
                    (long long)o->index[i]);
        name += n + (name[n] == ',' ? 1 : 0);
    }
    return diag_refuse(&ctx->diags, E_POSITION, span,
                       "dimension %u of '%s' has %lld positions, and %s is %lld%s",
                       o->dimension, o->array, (long long)o->extent, o->text,
                       (long long)o->position, at.at);
}

bool definite_report(Ctx *ctx, int64_t code)
{
    return diag_refuse(&ctx->diags, E_DEFINITE, (Span){0},
                       "matrix %lld of a cholesky is not positive definite: pivot %lld",
                       (long long)(code >> 31), (long long)(code & INT32_MAX));
}

static bool positions_hold(Ctx *ctx, Arena *arena, const Requirement *r, const Tensor *at,
                           const int64_t *dims)
{
    int64_t below = r->below.sym < 0 ? r->below.n : dims[r->below.sym];
    for (int64_t i = 0; i < at->count; i++) {
        int64_t position = tensor_get(at, i).i;
        if (!required_is_outside(r, position, below)) {
            continue;
        }
        int64_t *index = ARENA_ARRAY(arena, at->rank, int64_t);
        tensor_position(at, i, index);
        const Outside o = {r->array->text, r->text,  r->indices, r->dimension,
                           at->rank,       position, below,      index};
        return positions_report(ctx, r->span, &o);
    }
    return true;
}

bool graph_positions_hold(Ctx *ctx, Arena *arena, const Graph *g, const int64_t *dims,
                          Tensor *const *args)
{
    const Graph *at = graph_positions(ctx, arena, g);
    if (at == NULL) {
        return true;
    }
    const int64_t *all = dims_complete(arena, &g->dims, dims);
    Tensor **positions = ARENA_ARRAY(arena, at->results.n, Tensor *);
    bool ok = graph_eval(ctx, arena, at, dims, args, positions);
    for (uint32_t k = 0; ok && k < g->required.n; k++) {
        ok = positions_hold(ctx, arena, &g->required.at[k].what, positions[k], all);
    }
    return ok;
}

bool kernel_positions_hold(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
                           Tensor *const *args)
{
    if (k->positions == NULL) {
        return true;
    }
    const int64_t *all = dims_complete(arena, &k->dims, dims);
    Tensor **given = ARENA_ARRAY(arena, k->positions->args.n, Tensor *), **positions = given;
    bool ok = loop_eval(ctx, arena, k->positions, dims, args, given);
    for (uint32_t i = 0; i < k->positions->args.n;
         i++) { /* those of inout arguments come first */
        positions += k->positions->args.at[i].role == ARG_INOUT ? 1 : 0;
    }
    for (uint32_t r = 0; ok && r < k->n_required; r++) {
        ok = positions_hold(ctx, arena, &k->required[r], positions[r], all);
    }
    return ok;
}
