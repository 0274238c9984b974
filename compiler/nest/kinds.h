/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers and flags of a kind of machine: the table kinds.def. */
#ifndef NEST_KINDS_H
#define NEST_KINDS_H

#include "target/machine.h"

typedef struct MachineTraits {
#define WEIGHT(name, caches, systolic, what) double name;
#define FLAG(name, caches, systolic, what)   bool name;
#include "nest/kinds.def"
} MachineTraits;

const MachineTraits *machine_traits(const Machine *m);

#endif
