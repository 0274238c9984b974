/* SPDX-License-Identifier: Apache-2.0 */
/* Small random graphs of integers, exact whatever the order of sums: contractions, elementwise
 * operations, folds, values read in two orders, diagonals, broadcasts, results of the same value,
 * updates; ranks 0 to 4, extents open and fixed. And random trees of loops over them, each legal
 * by construction. */
#ifndef NEST_SUPPORT_GRAPHS_H
#define NEST_SUPPORT_GRAPHS_H

#include "base/ctx.h"
#include "graph/tensor.h"
#include "nest/facts.h"
#include "nest/tree.h"

/* Of a machine: so small and so slow at its memory that loops over a few positions pay. */
#define SMALL_MACHINE                                                                          \
    .n_levels = 2,                                                                             \
    .level = {{.name = "memory", .bytes_per_second = 1e9, .granule = 8},                       \
              {.name = "cache", .capacity = 256}},                                             \
    .tile = {.types = 1u << DTYPE_F32,                                                         \
             .line = 16,                                                                       \
             .bytes = 32,                                                                      \
             .rows = 2,                                                                        \
             .sum = 4,                                                                         \
             .columns = 4,                                                                     \
             .direct = 64},                                                                    \
    .time = {.multiply_add = 2e-11, .op = 5e-11, .scalar_op = 1e-10, .statement = 1e-10},      \
    .open_extents = true

/* Of another, whose numbers all differ, with a cache of `outer` bytes around one of `inner`, and blocks of `sum` x `columns`. */
#define UNCOMMON_MACHINE(outer_, inner_, bytes_, sum_, columns_, direct_)                      \
    .n_levels = 3,                                                                             \
    .level = {{.name = "memory", .bytes_per_second = 1.1e9, .granule = 8},                     \
              {.name = "outer", .capacity = outer_, .bytes_per_second = 1.3e10, .granule = 7}, \
              {.name = "inner", .capacity = inner_}},                                          \
    .tile_level = 1, .reads_before_writing = true,                                             \
    .tile = {.types = 1u << DTYPE_F32 | 1u << DTYPE_F64,                                       \
             .line = 64,                                                                       \
             .bytes = bytes_,                                                                  \
             .rows = 7,                                                                        \
             .sum = sum_,                                                                      \
             .columns = columns_,                                                              \
             .direct = direct_},                                                               \
    .time = {.multiply_add = 1.9e-11,                                                          \
             .pack = 2.3e-10,                                                                  \
             .pack_line = 2.9e-9,                                                              \
             .row = 3.1e-9,                                                                    \
             .loop = 3.3e-9,                                                                   \
             .join = 3.7e-10,                                                                  \
             .join_edge = 4.1e-9,                                                              \
             .op = 4.3e-11,                                                                    \
             .scalar_op = 4.7e-10,                                                             \
             .divide = 5.3e-10,                                                                \
             .function = 5.9e-9,                                                               \
             .exp = 5.9e-9,                                                                    \
             .tile = 6.1e-9,                                                                   \
             .statement = 6.7e-8,                                                              \
             .product = 7.1e-8},                                                               \
    .open_extents = true

/* With at most `most` computed values, but for what updates of parameters take. */
Graph *random_graph(Ctx *ctx, Rng *rng, uint32_t most);
/* Adds a sum over pairs whose terms stay with both exchanged, of products of a value's lines; a result. */
void random_pairs(Ctx *ctx, Rng *rng, Graph *g);
/* Adds a sum of contractions of equal shape, of what is there; a result, or the new value of an argument of rank 2, or read. */
void random_terms(Ctx *ctx, Rng *rng, Graph *g);
/* The same program: values in another order that keeps writers before readers, all names others
 * of the same alphabetical order or not. */
Graph *random_order(Ctx *ctx, Rng *rng, const Graph *g);
/* A tree that random moves make of `t`, at most `steps` of them. */
Tree random_walk(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t, uint32_t steps);
/* The tree with what no search makes but a reader may: tiles of tiles, tiles that are no power of
 * two, values computed again inside a loop, loops around one value, parallel loops. */
Tree random_extras(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t);
/* The tree with one thing changed at random, which may make it illegal. */
Tree random_fault(Arena *arena, Rng *rng, const NestFacts *f, const Tree *t);
/* An argument for the parameter, when open dims are so large; zeros. */
Tensor *param_tensor(Ctx *ctx, const Param *p, const int64_t *dims);
/* Multiply-adds and the like of the graph. */
int64_t graph_points(const Graph *g, const int64_t *dims);

#endif
