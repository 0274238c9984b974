/* SPDX-License-Identifier: Apache-2.0 */
/* One file that repeats a run of tdslc: a shell script with all that was read, and the command line. */
#ifndef DRIVER_REPRODUCER_H
#define DRIVER_REPRODUCER_H

#include "driver/tool.h"

/* The script, of what has been read so far. Outputs of the run that it repeats land in a folder that it removes. */
void reproducer_print(ToolRun *t, Text *out);

/* Writes it to `path`, "-" is standard output. False after a message (E_FILE). */
bool reproducer_write(ToolRun *t, const char *path);

/* For check_on_failure, `user` is a ToolRun: to --reproducer, else to tdslc-failure.sh where no such file is yet. Says where. */
void reproducer_on_failure(void *user);

#endif
