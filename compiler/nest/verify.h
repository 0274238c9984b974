/* SPDX-License-Identifier: Apache-2.0 */
/* What every nest must be (nest.h). */
#ifndef NEST_VERIFY_H
#define NEST_VERIFY_H

#include "nest/nest.h"

/* Reports the first broken rule as E_DUMP. */
bool nest_verify(Ctx *ctx, const Nest *nest, const char *stage);

#endif
