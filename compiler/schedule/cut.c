/* SPDX-License-Identifier: Apache-2.0 */
/* What levels mean: how many positions of each label one iteration of a level has, and how many iterations there are. */
#include "schedule/schedule.h"

#include <math.h>

int64_t label_planned(const LabelExtent *x)
{
    int64_t n = x->typical < x->most ? x->typical : x->most;
    return n < 1 ? 1 : n;
}

int64_t schedule_step(const ScheduleLevel *level, uint32_t i)
{
    return level->step != NULL ? level->step[i] : i == 0 ? level->tile : 1;
}

void schedule_cut(uint32_t n, const LabelExtent *const *x, int64_t tile, int64_t first,
                  int64_t *step)
{
    int64_t count = 1;
    bool cut = false;
    uint32_t last = 0; /* of several positions */
    for (uint32_t i = 0; i < n; i++) {
        last = !x[i]->exact || x[i]->most > 1 ? i : last;
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t all = label_planned(x[i]), room = cut ? 1 : tile / count;
        int64_t most = i == 0 && first < room ? first : room;
        cut |= all > room;
        bool grows =
            i == last && !x[i]->exact; /* nothing follows that would be numbered wrongly */
        step[i] = all > most      ? x[i]->tile > 0 ? divisor_at_most(x[i]->tile, most) : most
                  : grows && !cut ? most
                                  : all;
        step[i] = step[i] < 1 ? 1 : step[i];
        count = sat_mul(count, step[i]);
    }
}

double schedule_trips(const Schedule *b, const ScheduleLevel *level, const double *extent)
{
    double trips = 1.0;
    for (uint32_t i = 0; i < b->n_labels[level->role]; i++) {
        double n = ceil(extent[b->label[level->role][i]] / (double)schedule_step(level, i));
        trips *= n < 1.0 ? 1.0 : n;
    }
    return trips;
}
