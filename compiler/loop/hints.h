/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: fields of LEGAL statements that say how they are run and change no value; some are clauses (clauses.def). A target's passes set them, or a person in a dump;
 * printers obey. */
#ifndef LOOP_HINTS_H
#define LOOP_HINTS_H

#include "loop/loop.h"

/* Has a prefetch groups, and no numbers that 64 bits are too few for? */
bool prefetch_fits(const Prefetch *p);

/* Do all hints make sense? Reports E_DUMP. All else that loop_verify asks for holds. */
bool hints_verify(Ctx *ctx, const Kernel *k, const char *stage);

#endif
