/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc --tune: nests are run on this machine, those that the model likes first, and the fastest is kept. The only part of
 * the compiler whose choice depends on clocks. */
#ifndef DRIVER_TUNE_H
#define DRIVER_TUNE_H

#include "driver/compile.h"
#include "driver/tool.h"

/* Before any pass: a plan says which program it is for. False after a diagnostic. */
bool tune_start(Compilation *c);

/* At stage NEST: the nest of each kernel becomes the fastest of those that `seconds` suffice to try, all kernels together,
 * and the model's own at least. Says on standard error what was predicted and measured. False after a diagnostic. */
bool tune(ToolRun *t, Compilation *c, double seconds);

#endif
