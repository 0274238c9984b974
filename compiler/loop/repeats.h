/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that are computed twice. */
#ifndef LOOP_REPEATS_H
#define LOOP_REPEATS_H

#include "loop/loop.h"

/* The kernel without maps and copies into a tile on chip that another tile of the same block holds already: what reads them reads
 * that one. LEGAL -> LEGAL; every value stays as it is. Null where there are none. */
Kernel *kernel_without_repeats(Arena *arena, const Kernel *k);

#endif
