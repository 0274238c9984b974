/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc --tune: nests are run on this machine, those that the model likes first, and the fastest is kept. The only part of
 * the compiler whose choice depends on clocks. */
#ifndef DRIVER_TUNE_TUNE_H
#define DRIVER_TUNE_TUNE_H

#include "driver/compile.h"
#include "driver/tool.h"

/* Before any pass: a plan says which program it is for. False after a diagnostic. */
bool tune_start(Compilation *c);

/* At stage NEST: the nest of each kernel becomes the fastest of those that `seconds` suffice to try, all kernels together,
 * and the model's own at least. Of one thread the time of the thread counts, which other programs do not make longer; of
 * several the time on the clock. Says on standard error what was predicted and measured, and at the end of a kernel which
 * nest was made from which. False after a diagnostic. */
bool tune(ToolRun *t, Compilation *c, double seconds, int32_t threads);

#endif
