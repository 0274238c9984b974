/* SPDX-License-Identifier: Apache-2.0 */
/* From checked programs to tensor graphs, one graph per kernel. What becomes of an expression is fixed here and
 * nowhere else (docs/language.md, "What is computed"):
 *
 *   - a sum of products is one n-ary einsum node of its tensors and of its other factors with summed indices; scalars and
 *     the rest are applied to its result; with one tensor it is a reduce.sum; of bool: any of alls. A sum of
 *     products with a factor that is no tensor and a factor that has all indices is maps and a reduce.sum
 *   - a product that sums nothing is a chain of mul (and, for bool), from left to right; a lone tensor is a copy
 *   - everything else elementwise is one MAP node per operation, over the indices its operands have
 *   - `beta * C[i,j]`, with C the inout parameter being assigned, is scale: with beta 0, C is not read. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "front/equation.h"
#include "graph/graph.h"

/* `only_kernel`: null for all. Null when there is no such kernel, or a limit was met, or rows are read in two ways (reported). The program has been
 * checked without an error. */
Module *module_build(Ctx *ctx, Arena *arena, const Program *program, const char *only_kernel);

/* equation_check and module_build. */
Module *graph_from_equation(Ctx *ctx, Arena *arena, const Equation *equation);

#endif
