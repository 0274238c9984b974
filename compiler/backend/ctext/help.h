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

/* Of help_math.c, help_trig.c, help_pow.c, help_more.c and help_round.c; null: there is none of the name. */
const FixedHelper *math_helper(const char *name);
const FixedHelper *trig_helper(const char *name);
const FixedHelper *pow_helper(const char *name);
const FixedHelper *more_helper(const char *name);
const FixedHelper *round_helper(const char *name);

#endif
