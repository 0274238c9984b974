/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: what the verifier checks in a file of its own, with nothing of the planners. */
#ifndef NEST_VERIFY_H
#define NEST_VERIFY_H

#include "nest/nest.h"
#include "nest/uses.h"

/* verify_online.c: what is wrong with a loop that is called online, of value *at, or null. Its form and all else that it says
 * is right. */
const char *nest_online_problem(Arena *arena, const Nest *nest, const UseList *uses,
                                const uint32_t *leaf, uint32_t loop, NodeRef *at);

#endif
