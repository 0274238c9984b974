/* SPDX-License-Identifier: Apache-2.0 */
/* See kinds.h. */
#include "nest/kinds.h"

#include <math.h>

static const MachineTraits row[] = {
    [MACHINE_CACHES] =
        {
#define WEIGHT(name, caches, systolic, what) .name = (caches),
#define FLAG(name, caches, systolic, what)   .name = (caches),
#include "nest/kinds.def"
        },
    [MACHINE_SYSTOLIC] =
        {
#define WEIGHT(name, caches, systolic, what) .name = (systolic),
#define FLAG(name, caches, systolic, what)   .name = (systolic),
#include "nest/kinds.def"
        },
};

const MachineTraits *machine_traits(const Machine *m)
{
    return &row[m->kind];
}
