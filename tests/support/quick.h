/* SPDX-License-Identifier: Apache-2.0 */
/* The quick set (ctest --preset quick) sets TDSL_QUICK, the gate (tests/run) TDSL_GATE: long tests then do a share of their work. */
#ifndef SUPPORT_QUICK_H
#define SUPPORT_QUICK_H

#include <stdlib.h>

/* 1, or `quick` in the quick set: a loop's step, a divisor of its rounds. */
static inline unsigned one_of(unsigned quick)
{
    return getenv("TDSL_QUICK") != NULL ? quick : 1;
}

/* 1, or `gate` in the gate. */
static inline unsigned one_in_gate_of(unsigned gate)
{
    return getenv("TDSL_GATE") != NULL ? gate : 1;
}

#endif
