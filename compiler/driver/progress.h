/* SPDX-License-Identifier: Apache-2.0 */
/* Work that takes long: a line on the terminal that says how far it is, and Ctrl-C, which ends the work with the best so far, a
 * second one the program. The line is shown by work that takes long only, and gone when it ends. Nothing is shown without a
 * terminal. Signals belong to the process: one watch at a time. POSIX. */
#ifndef DRIVER_PROGRESS_H
#define DRIVER_PROGRESS_H

#include "path/path.h"

typedef struct Progress {
    bool terminal; /* standard error is one */
    bool shown;
    double start, last; /* seconds */
} Progress;

/* A line alone: Ctrl-C does what it did. */
void progress_line(Progress *p);
/* *p stays where it is until progress_end. */
void progress_begin(Progress *p);
/* Has Ctrl-C been pressed since? */
bool progress_interrupted(void);
/* Seconds since the beginning. */
double progress_elapsed(const Progress *p);
/* Is it time for a new line? The caller prints it then, between "\r" and "\033[K", without its end. */
bool progress_due(Progress *p);
/* Takes the line away, before something else is printed. */
void progress_clear(Progress *p);
/* `kept`: has the work ended with the best so far? A Ctrl-C that nothing has heard ends the program now, as it would have. */
void progress_end(Progress *p, bool kept);

/* Begins; searches with `o` show who found the best so far, its cost, and the share of the planned steps that is done. */
void progress_watch(Progress *p, PathOptions *o);

#endif
