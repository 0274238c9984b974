/* SPDX-License-Identifier: Apache-2.0 */
/* Helper functions whose text is fixed: what help_fixed.c and help_math.c share. */
#ifndef BACKEND_CTEXT_HELP_H
#define BACKEND_CTEXT_HELP_H

#include "backend/ctext/ctext.h"

typedef struct FixedHelper {
    const char *name;
    const char *needs; /* other fixed helpers with blanks between, or null */
    bool math;         /* <math.h> is needed */
    const char *text;
} FixedHelper;

/* Of help_math.c and the others; behind the last one a null name. */
extern const FixedHelper math_helpers[], trig_helpers[], pow_helpers[], more_helpers[],
    round_helpers[];

#endif
