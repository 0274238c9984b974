/* SPDX-License-Identifier: Apache-2.0 */
/* Being stopped by a signal while something on disk must be taken away first: unfinished
 * outputs, a private folder, a child. Between stop_hold and stop_release the signals that end a
 * program are only noted, system calls return EINTR, and whoever waits looks at stop_signal.
 * stop_release ends the program by the signal that was noted, as if it came then. Signals that
 * the caller ignores (nohup) stay ignored. Signals belong to the process, and so does a hold:
 * there is one at a time. POSIX. */
#ifndef DRIVER_STOP_H
#define DRIVER_STOP_H

void stop_hold(void);
int stop_signal(void); /* the first one noted, or 0 */
void stop_release(void);
void stop_forget(void); /* in a child: as before the hold, whatever came */

#define STOP_SIGNALS 5
extern const int stop_signals[STOP_SIGNALS]; /* their numbers */

#endif
