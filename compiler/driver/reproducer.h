/* SPDX-License-Identifier: Apache-2.0 */
/* One file that repeats a run of tdslc: a shell script with all that was read, and the command line. */
#ifndef DRIVER_REPRODUCER_H
#define DRIVER_REPRODUCER_H

#include "driver/tool.h"

/* Writes the script, of the files read so far, to `path`; "-" is standard output. False after a message (E_FILE). What the
 * script writes lands in a folder that it removes. */
bool reproducer_write(ToolRun *t, const char *path);

/* For check_on_failure, `user` is a ToolRun: to --reproducer, else to tdslc-failure.sh where no such file is yet. Says where. */
void reproducer_on_failure(void *user);

#endif
