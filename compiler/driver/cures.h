/* SPDX-License-Identifier: Apache-2.0 */
/* What people type who know other tools, and what is meant here. */
#ifndef DRIVER_CURES_H
#define DRIVER_CURES_H

#include "driver/options.h"

/* Help for an option that there is not, or null. */
const char *cure_option(Tool tool, const char *given);
/* What to do instead where -o names a file that the target does not write; null: nothing is wrong with it. */
const char *cure_output(Arena *arena, const char *out);

#endif
