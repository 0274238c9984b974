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

void progress_line(Progress *p)
{
    const char *kind = getenv("TERM");
    bool dumb = kind == NULL || strcmp(kind, "dumb") == 0; /* it cannot take a line back */
    *p = (Progress){.terminal = isatty(STDERR_FILENO) != 0 && !dumb, .start = tool_clock()};
}

void progress_begin(Progress *p)
{
    progress_line(p);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    interrupted = 0;
    (void)sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) {
        (void)sigaction(SIGINT, &action, NULL);
    }
}

bool progress_interrupted(void)
{
    return interrupted != 0;
}

double progress_elapsed(const Progress *p)
{
    return tool_clock() - p->start;
}

bool progress_due(Progress *p)
{
    double at = tool_clock();
    if (!p->terminal || at - p->start < SECONDS_BEFORE || at - p->last < SECONDS_BETWEEN) {
        return false;
    }
    p->last = at;
    p->shown = true;
    return true;
}

void progress_clear(Progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        p->shown = false;
    }
}

void progress_end(Progress *p, bool kept)
{
    progress_clear(p);
    (void)sigaction(SIGINT, &before, NULL);
    if (interrupted != 0 && !kept) {
        (void)raise(SIGINT);
    }
}

static void show(void *user, const PathProgress *now)
{
    Progress *p = user;
    if (!progress_due(p)) {
        return;
    }
    double done = now->steps_planned == 0
                      ? 0
                      : 100.0 * (double)now->steps_done / (double)now->steps_planned;
    fprintf(stderr, "\r%-13s 10^%.3f  largest 2^%.1f  %3.0f %%  %.0f s\033[K", now->strategy,
            now->log10_cost, now->log2_largest, done < 100 ? done : 100, progress_elapsed(p));
    (void)fflush(stderr);
}

void progress_watch(Progress *p, PathOptions *o)
{
    progress_begin(p);
    if (p->terminal) {
        o->progress = show;
        o->user = p;
    }
    o->interrupt = &interrupted;
}
