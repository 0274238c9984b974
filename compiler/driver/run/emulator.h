/* SPDX-License-Identifier: Apache-2.0 */
/* Emitted kernels of a target whose programs are run as text by an emulator: the files in a
 * private temporary folder, arrays as bare elements, the emulator's run.py by argument vector.
 * Errors are diagnostics (E_RUN). */
#ifndef DRIVER_RUN_EMULATOR_H
#define DRIVER_RUN_EMULATOR_H

#include "driver/head.h"
#include "driver/run/profile.h"
#include "target/target.h"

/* The target of this name if its kernels are emulated; "emulator" is the first such target. Null: none. */
const Target *emulated_target(const char *name);

/* Runs the kernel of that head; results as it lists them. Environment: one variable names run.py (the
 * runtime has the same), TDSL_PYTHON the interpreter. */
bool run_emulator(Ctx *ctx, Arena *arena, const OutputSet *files, const Head *h,
                  const int64_t *dims, Tensor *const *args, Tensor **results,
                  RunProfile *profile);

#endif
