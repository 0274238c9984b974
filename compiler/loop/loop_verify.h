/* SPDX-License-Identifier: Apache-2.0 */
/* What every kernel must be: names, scopes, types; every access inside its buffer for all values of the open dims; parallel loops write
 * disjoint places; assigned places distinct; full tiles proved. */
#ifndef LOOP_LOOP_VERIFY_H
#define LOOP_LOOP_VERIFY_H

#include "loop/loop.h"

/* Reports E_DUMP. */
bool loop_verify(Ctx *ctx, const Kernel *k, const char *stage);

#endif
