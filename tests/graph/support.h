/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of graph share: a compilation per test, dumps as text in and text out. */
#ifndef TESTS_GRAPH_SUPPORT_H
#define TESTS_GRAPH_SUPPORT_H

#include "support/test.h"

#include "dump/text.h"
#include "graph/eval.h"
#include "graph/graph.h"

typedef struct Bench {
    Ctx ctx;
} Bench;

Bench *bench_new(void);
void bench_free(Bench *b);
uint32_t bench_source(Bench *b, const char *text);
/* All messages so far, rendered. */
const char *bench_messages(Bench *b);
/* The module of a graph dump; the test fails, with the messages, when it does not read. */
Module *bench_module(Bench *b, const char *text);
/* The graph of a dump given as the lines inside a kernel's braces. */
Graph *bench_graph(Bench *b, const char *lines);
const char *bench_dump(Bench *b, const Graph *g);
/* Reading `text` fails, and the messages hold `message`. */
void assert_refused(const char *text, const char *message);
/* The same for the lines inside a kernel's braces. */
void assert_lines_refused(const char *lines, const char *message);
/* The text reads, and prints as itself. */
void assert_round_trip(const char *text);

/* ---- running ---- */

/* A tensor of `dtype` from a text: extents in brackets, then its elements in C order as numbers of the dump language
 * without commas: "[2,2] 1 2 3 -0.5"; complex numbers as two. */
Tensor *bench_tensor(Bench *b, DType dtype, const char *text);
/* Results of the graph for arguments given as texts (types are the parameters'), dims as numbers; null when evaluation
 * is refused. */
Tensor **bench_eval(Bench *b, const Graph *g, const int64_t *dims, const char *const *args);
/* The only result of the kernel of `lines` with these arguments prints as `expected` ("[2] 1 2.5"). */
void assert_evaluates(const char *lines, const char *const *args, const char *expected);
const char *bench_print(Bench *b, const Tensor *t);

#endif
