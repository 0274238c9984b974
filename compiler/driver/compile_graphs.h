/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the compilation: passes over graphs. */
#ifndef DRIVER_COMPILE_GRAPHS_H
#define DRIVER_COMPILE_GRAPHS_H

#include "driver/compile.h"

/* A pass over one graph gives another one, or the same, changed or not; null after a diagnostic. */
typedef Graph *GraphPass(Compilation *c, Arena *arena, Graph *g);
/* By a pass that makes every graph anew. */
bool graphs_anew(Compilation *c, GraphPass *pass);
/* By a pass that leaves a graph where it is if there is nothing to do, or changes it there. */
bool graphs_in_place(Compilation *c, GraphPass *pass);
/* Tells the follower which kernel a pass has come to. */
void compilation_at(const Compilation *c, uint32_t kernel);

/* Functions of the rows of pipeline.def. */
GraphPass pass_lookups, pass_functions, pass_simplify, pass_powers, pass_products,
    pass_normalise, pass_absorb, pass_narrow, pass_domains, pass_online;
bool pass_build(Compilation *c);
bool pass_groups(Compilation *c);
bool pass_pairwise(Compilation *c);
bool pass_dist(Compilation *c);
bool pass_collapse(Compilation *c);
bool pass_symmetry(Compilation *c);
bool pass_onto(Compilation *c);

#endif
