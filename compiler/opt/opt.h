/* SPDX-License-Identifier: Apache-2.0 */
/* Graph to graph: passes that make a program smaller or plainer, or say what is known of it, and never change what it computes, signs of zero and
 * infinities included. Each writes a new graph into `arena`; what no result needs is gone from it. */
#ifndef OPT_OPT_H
#define OPT_OPT_H

#include "graph/graph.h"

/* simplify.c. GRAPH_TENSOR -> GRAPH_TENSOR (BINARY works as well): constants folded where the machine's arithmetic is
 * exact, identities of the algebra that hold bit for bit, copies read through by their users' indices. */
Graph *opt_simplify(Ctx *ctx, Arena *arena, const Graph *g);

/* lookups.c. GRAPH_TENSOR -> GRAPH_TENSOR without gathers, for machines that have none; `rows`: but of rows of an argument at positions of
 * another one, where that is quicker. */
Graph *opt_lookups(Ctx *ctx, Arena *arena, const Graph *g, bool rows);
/* functions.c. GRAPH_TENSOR -> GRAPH_TENSOR: rounding, exp2, log2, expm1, log1p and finite of f32 by other functions. */
Graph *opt_functions(Ctx *ctx, Arena *arena, const Graph *g);

/* groups.c. GRAPH_TENSOR -> GRAPH_TENSOR: products with matrices that rows choose run in blocks of rows that choose the same one, where
 * rows are planned to be many; for machines with caches. Values stay up to rounding. */
Graph *opt_groups(Ctx *ctx, Arena *arena, const Graph *g);

/* powers.c. GRAPH_TENSOR -> GRAPH_TENSOR: powers of small whole numbers, and squares of magnitudes of complex numbers, are products;
 * with at most two roundings, where the function of the library has one or more. */
Graph *opt_powers(Ctx *ctx, Arena *arena, const Graph *g);

/* products.c. GRAPH_TENSOR -> GRAPH_TENSOR: sums over products, quotients and selections that are written element by element become
 * contractions where that is less work; values stay up to rounding. `masks`: a term that a condition leaves out may be multiplied
 * by 0, so that an infinity or a NaN there comes through. */
Graph *opt_products(Ctx *ctx, Arena *arena, const Graph *g, bool masks);

/* normalise.c. GRAPH_TENSOR -> GRAPH_TENSOR. Afterwards every contraction has two operands or more and is a sum; sums that
 * concern one operand alone are taken first where that is less work; summed indices of extent 1 are positions (a sum of one term is added
 * to 0). */
Graph *opt_normalise(Ctx *ctx, Arena *arena, const Graph *g);

/* collapse.c. GRAPH_BINARY -> GRAPH_BINARY: neighbouring dimensions of which an extent is open become one, where all that
 * reads or writes them takes both along (Param.collapsed, Result.shape). The graph itself where there are none. */
Graph *opt_collapse(Ctx *ctx, Arena *arena, Graph *g);

/* narrow.c. Of any form: contractions of real numbers read what casts to their type only widened; for machines that say
 * `narrow`. Each operand may then have a type of its own. The graph itself where there is nothing to do. */
Graph *opt_narrow(Ctx *ctx, Arena *arena, Graph *g);
/* The same where all operands of a contraction then have one type of 16 bits; products of two types read f32. For machines that say
 * `alike`. */
Graph *opt_narrow_alike(Ctx *ctx, Arena *arena, Graph *g);

/* domains.c. GRAPH_BINARY -> GRAPH_BINARY, for machines that say `domains`: functions see no operand outside of theirs where a
 * selection leaves the value out, nor roots a 0. Values are the same, but roots of less than 2^-116 are 0. */
Graph *opt_domains(Ctx *ctx, Arena *arena, Graph *g);

/* orders.c. GRAPH_BINARY -> GRAPH_BINARY: the value is computed once for each order in which elementwise operations read it, *n
 * of them, and all of these read it in the order of their own dimensions. Null: there is one order, or too many, or slices, or the
 * value is no operation's. */
Graph *opt_split_orders(Ctx *ctx, Arena *arena, const Graph *g, NodeRef value, uint32_t *n);

/* symmetry.c. Of any form, in place: says of every value which exchanges of its labels leave it as it is, or make it its
 * negative. Values stay; what was said before is dropped, and all of it unless `look`. */
void opt_symmetry(Ctx *ctx, Graph *g, bool look);
/* declared.c. Warns -Wsymmetry of results that are not seen to be as symmetric as they are declared; after opt_symmetry. */
void opt_warn_declared(Ctx *ctx, const Graph *g);
/* online.c. Of any form, in place: finds which sums may follow a maximum over the same axis (Online). Values stay; what was
 * found before is dropped, and all of it unless `look`. */
void opt_online(Ctx *ctx, Graph *g, bool look);

/* onto.c. GRAPH_BINARY -> GRAPH_BINARY, after these two, for machines that say `adds`: contractions that are terms of one sum begin
 * with each other, and with the other terms; values stay up to rounding. The graph itself where there are none; else nothing is
 * said of the new one. */
Graph *opt_onto(Ctx *ctx, Arena *arena, Graph *g);

#endif
