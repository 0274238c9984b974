/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc --watch: compiles again when a file that was read has changed. Each compilation is a process of its own, so that none can
 * leave anything behind; files are looked at five times a second, which works on every file system. POSIX. */
#ifndef DRIVER_WATCH_H
#define DRIVER_WATCH_H

#include "driver/tool.h"

/* Returns in a process that is to compile once: true, or false after a message. The process that watches does not return;
 * Ctrl-C ends it. */
bool watch(ToolRun *t);
/* At the end of a compilation: which files it has read. */
void watch_tell(const ToolRun *t);

#endif
