/* SPDX-License-Identifier: Apache-2.0 */
/* A store of tuned plans, the folder that TDSL_PLANS names: `--tune` puts a plan there, a build of the same program for the same machine
 * finds it. A plan's file is called by a digest of what its kernels take, give and compute, and of the machine that is planned for. */
#ifndef DRIVER_PLANS_H
#define DRIVER_PLANS_H

#include "driver/compile.h"
#include "driver/tool.h"

/* What TDSL_PLANS says; null: nothing. */
const char *plans_folder(void);
/* The file of the program's plan, there or not; null: there is no store, or the input is no program for it. */
const char *plans_file(ToolRun *t, const Compilation *c, Input *in);
/* Takes the plan that the store has as if --nest had named it, unless something is decided on the command line. */
void plans_use(ToolRun *t, const Compilation *c, Input *in);

#endif
