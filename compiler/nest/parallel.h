/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops may run at the same time. */
#ifndef NEST_PARALLEL_H
#define NEST_PARALLEL_H

#include "nest/nest.h"

/* May iterations of the loop run at the same time? */
bool nest_may_share(const Machine *machine, const Nest *nest, uint32_t k);
/* Folds over outermost loop `k`, and iterations cannot have a part of it each: it is too large, or added into another
 * value's place. NODE_NONE: nothing is. */
NodeRef nest_fold_without_leaves(const Nest *nest, uint32_t k);

#endif
