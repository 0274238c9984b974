/* SPDX-License-Identifier: Apache-2.0 */
/* What both command-line tools share: one run's state, messages, limits and the exit status. */
#ifndef DRIVER_TOOL_H
#define DRIVER_TOOL_H

#include "driver/files.h"
#include "driver/options.h"

/* Of --diagnostics=json: grows when a field goes or changes. */
#define DIAGNOSTICS_JSON_VERSION 1

typedef struct ToolRun {
    Ctx ctx;
    Arena arena;
    Options options;
    Usage usage;         /* wrong use of the command line: exit 2 */
    Files files;         /* written when the run has succeeded */
    struct Trace *trace; /* of --time-trace, else null */
    /* The input is a program and no stage was read from a file, so a stage that breaks an invariant of its form (E_DUMP)
     * is a defect of the compiler: exit 70. */
    bool stages_are_ours;
    const struct tdsl_comm *comm; /* of tdsl-run-mpi: this process is a rank; else null */
    bool speaks; /* the failure is this rank's own: another one than rank 0 says so */
} ToolRun;

/* Parses arguments, answers --help, --version and --explain, runs `run`, writes files and messages. Returns the exit status. Of a communicator only rank 0
 * writes. */
int tool_main(Tool tool, int argc, char **argv, const struct tdsl_comm *comm,
              bool (*run)(ToolRun *));

/* Reads a whole file; false after a diagnostic (E_FILE). */
bool tool_read(ToolRun *t, const char *path, Str *out);
double tool_clock(void);        /* seconds, monotonic */
double tool_thread_clock(void); /* seconds for which this thread has run */

#endif
