/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of the bodies of recurrences hold like others; one that stands around the steps is a loop over a batch. */
#include "graph/recurrence.h"
#include "nest/plan.h"
#include "nest/verify.h"
#include "nest/verify_parts.h"

bool nest_recurrences_hold(Ctx *ctx, const Nest *nest, const char *stage)
{
    for (uint32_t k = 0; k < nest->graph->recurrences.n; k++) {
        const Recurrence *r = nest->graph->recurrences.at[k];
        if (!nest_verify(ctx, r->nest, stage)) {
            return false;
        }
        if (r->batch && !nest_is_batch(r)) {
            return dump_refuse(ctx, nest->graph->span,
                               "%s: the nest of recurrence %u is no loop over a batch", stage,
                               k);
        }
    }
    return true;
}
