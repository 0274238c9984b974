/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "driver/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/tool.h"

#define SECONDS_BEFORE  0.5
#define SECONDS_BETWEEN 0.1

static volatile sig_atomic_t interrupted;
static struct sigaction before;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void show(void *user, const PathProgress *now)
{
    Progress *p = user;
    double at = tool_clock();
    if (at - p->start < SECONDS_BEFORE || at - p->last < SECONDS_BETWEEN) {
        return;
    }
    double done = now->steps_planned == 0
                      ? 0
                      : 100.0 * (double)now->steps_done / (double)now->steps_planned;
    fprintf(stderr, "\r%-13s 10^%.3f  largest 2^%.1f  %3.0f %%  %.0f s\033[K", now->strategy,
            now->log10_cost, now->log2_largest, done < 100 ? done : 100, at - p->start);
    (void)fflush(stderr);
    p->last = at;
    p->shown = true;
}

void progress_watch(Progress *p, PathOptions *o)
{
    const char *kind = getenv("TERM");
    bool dumb = kind == NULL || strcmp(kind, "dumb") == 0; /* it cannot take a line back */
    *p = (Progress){.terminal = isatty(STDERR_FILENO) != 0 && !dumb, .start = tool_clock()};
    if (p->terminal) {
        o->progress = show;
        o->user = p;
    }
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    interrupted = 0;
    o->interrupt = &interrupted;
    (void)sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) {
        (void)sigaction(SIGINT, &action, NULL);
    }
}

void progress_end(Progress *p, bool kept)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        p->shown = false;
    }
    (void)sigaction(SIGINT, &before, NULL);
    if (interrupted != 0 && !kept) {
        (void)raise(SIGINT);
    }
}
