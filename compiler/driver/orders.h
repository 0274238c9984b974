/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of graphs that compute a value more than once on purpose. */
#ifndef DRIVER_ORDERS_H
#define DRIVER_ORDERS_H

#include "driver/compile.h"

/* Where a contraction's value is in memory and is read in several orders, computing it once for each of them keeps it in its
 * readers' loops: the nest of the graph in which that is so, where it is the better one; else `chosen`. */
Nest *orders_choose(Compilation *c, Nest *chosen);

#endif
