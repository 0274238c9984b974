/* SPDX-License-Identifier: Apache-2.0 */
/* While a contraction order is searched for: a line on the terminal that says who found the best so far, its cost, the share of
 * the planned steps that is done, the time since the start; and Ctrl-C, which ends the search with the best so far, a second one
 * the program. The line is shown by searches that take long only, and gone when they end. Nothing is shown without a terminal.
 * Signals belong to the process: one watch at a time. POSIX. */
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
/* `kept`: has a search ended with the best so far? A Ctrl-C that none has heard ends the program now, as it would have. */
void progress_end(Progress *p, bool kept);

#endif
