/* SPDX-License-Identifier: Apache-2.0 */
/* Nests as text, after the graph; byte for byte both ways. */
#ifndef NEST_TEXT_H
#define NEST_TEXT_H

#include "nest/nest.h"

void nest_dump(const Nest *nest, Text *out);
Nest *nest_read(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line);

#endif
