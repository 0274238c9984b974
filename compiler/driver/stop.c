/* SPDX-License-Identifier: Apache-2.0 */
/* See stop.h. SIGPIPE is among the signals: a reader that goes away ends a filter, and must not
 * leave the other outputs half made. */
#include "driver/stop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

const int stop_signals[STOP_SIGNALS] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};

/* What the process had before the hold; the note is what a handler can write to. */
static struct sigaction before[STOP_SIGNALS];
static bool holding;
static volatile sig_atomic_t noted;

static void note(int number)
{
    if (noted == 0) {
        noted = number;
    }
}

void stop_hold(void)
{
    struct sigaction action = {.sa_handler = note}; /* no SA_RESTART: waits end */
    CHECK(!holding);
    (void)sigfillset(&action.sa_mask);
    holding = true;
    noted = 0;
    for (size_t k = 0; k < STOP_SIGNALS; k++) {
        (void)sigaction(stop_signals[k], NULL, &before[k]);
        if (before[k].sa_handler != SIG_IGN) {
            (void)sigaction(stop_signals[k], &action, NULL);
        }
    }
}

int stop_signal(void)
{
    return (int)noted;
}

void stop_forget(void)
{
    for (size_t k = 0; k < STOP_SIGNALS; k++) {
        (void)sigaction(stop_signals[k], &before[k], NULL);
    }
    holding = false;
    noted = 0;
}

void stop_release(void)
{
    int number = stop_signal();
    stop_forget();
    if (number != 0) {
        (void)raise(number);
    }
}
