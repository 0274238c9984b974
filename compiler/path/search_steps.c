/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that a search has taken and may take, and what is told of it meanwhile. */
#include "path/search.h"

#define TELL_EVERY 4000000u /* steps: a tenth of a second or two */

void search_tell(Search *s)
{
    s->told = s->done;
    if (s->options->progress != NULL && s->doing != NULL) {
        PathProgress now = {s->doing, s->best.cost * 0.30102999566398119521, s->best.largest,
                            s->done, s->done > s->planned ? s->done : s->planned};
        s->options->progress(s->options->user, &now);
    }
}

void search_progress(Search *s, const char *strategy, Score best)
{
    s->doing = strategy;
    s->best = best;
    search_tell(s);
}

void search_plan(Search *s, uint64_t steps)
{
    s->planned = s->base + steps + s->later;
}

void search_count(Search *s, uint64_t steps)
{
    s->done += steps;
    if (s->done - s->told >= TELL_EVERY) {
        search_tell(s);
    }
}

void search_reach(Search *s, uint64_t steps)
{
    if (!search_stopped(s) && s->done < s->base + steps) {
        search_count(s, s->base + steps - s->done);
    }
}

uint32_t search_stage(uint32_t effort, uint32_t stage)
{
    uint32_t done = 0, size = effort > 0 ? 1 : 0;
    for (uint32_t i = 0; i < stage; i++) {
        done += size;
        uint32_t most = done > UINT32_MAX / 15 ? UINT32_MAX : done * 15;
        size = effort - done < most ? effort - done : most;
    }
    return size;
}
