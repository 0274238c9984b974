/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: the changes of a tree that the search tries, each of which gives a
 * legal tree from a legal one. They reach every tree of the space: loops around runs of items,
 * one axis of each value once, by tiles of powers of two. */
#ifndef NEST_MOVES_H
#define NEST_MOVES_H

#include "nest/facts.h"
#include "nest/tree.h"

/* Calls `take` with every tree one move away from `t`. What it is given is valid during the
 * call; axes are made in `keep`. */
void moves_each(Arena *scratch, Arena *keep, const NestFacts *f, const Tree *t,
                void (*take)(void *, const Tree *), void *self);
/* The same of trees of which a loop gets the tile of an instruction of a systolic machine, and a run in it a loop of such strips. */
void moves_strips(Arena *scratch, Arena *keep, const NestFacts *f, const Tree *t,
                  void (*take)(void *, const Tree *), void *self);

#endif
