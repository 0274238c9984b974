/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a compilation: on a terminal a line says which pass is at which kernel, and how far a search for loops is; with
 * --time-trace each pass, and each kernel in it, becomes an event that browsers draw (Perfetto, chrome://tracing). */
#ifndef DRIVER_FOLLOW_H
#define DRIVER_FOLLOW_H

#include "driver/progress.h"
#include "driver/tool.h"

/* The events of a run, in the trace event format: JSON objects with commas between. */
typedef struct Trace {
    Text events;
    double start; /* seconds of tool_clock */
} Trace;

typedef struct Follow {
    Ctx *ctx;
    Trace *trace; /* null: none is asked for */
    Progress line;
    Follower follower;
    const char *pass, *kernel;
    double pass_start, kernel_start;
    uint32_t number, of;
} Follow;

/* The trace of a run, if one is asked for; its first event may be older than this. */
void trace_begin(ToolRun *t, double start);
/* What took from `start` to now. */
void trace_add(Trace *trace, const char *name, const char *kind, double start);
/* To the file that --time-trace names, when the run has succeeded. */
void trace_write(ToolRun *t);

/* *f stays where it is until follow_end. */
void follow_begin(Follow *f, ToolRun *t);
void follow_end(Follow *f);

#endif
