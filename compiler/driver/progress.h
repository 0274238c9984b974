/* SPDX-License-Identifier: Apache-2.0 */
/* A line on the terminal while a contraction order is searched for: who found the best so far,
 * its cost, the share of the planned steps that is done, the time since the start. Shown by
 * searches that take long only, and gone when they end. Nothing without a terminal. */
#ifndef DRIVER_PROGRESS_H
#define DRIVER_PROGRESS_H

#include "path/path.h"

typedef struct Progress {
    bool terminal; /* standard error is one */
    bool shown;
    double start, last; /* seconds */
} Progress;

/* `o` calls it from now on; *p stays where it is until progress_end. */
void progress_watch(Progress *p, PathOptions *o);
void progress_end(Progress *p);

#endif
