/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the reports: what their forms share. */
#ifndef DRIVER_REPORT_H
#define DRIVER_REPORT_H

#include "driver/compile.h"
#include "dump/text.h"

/* What a value is called. */
const char *report_value_name(const Graph *g, NodeRef n, Arena *arena);
/* "tile", "workspace", ...; what grows with an open dim is a "block". */
const char *report_residence(const Nest *nest, NodeRef n);
/* Why it is in memory, and up to which sizes it stays on chip all the same; null: nothing to say. */
const char *report_reason(const Compilation *c, uint32_t kernel, NodeRef n);
/* In the largest unit of which there is one. */
void report_bytes(Text *out, int64_t bytes);

/* report_price.c */
void report_price_text(const Machine *m, const Nest *nest, Arena *arena, Text *out);
/* A member `model` of the kernel's object. */
void report_price_json(const Machine *m, const Nest *nest, Arena *arena, Text *out);
/* The tree of loops and values, by the names of the source. */
void report_tree_line(const Nest *nest, Arena *arena, Text *out);

/* report_sizes.c, of a kernel with several nests: lines of text, a member `nests`. */
void report_sizes_text(const Machine *m, const Nest *nest, Arena *arena, Text *out);
void report_sizes_json(const Machine *m, const Nest *nest, Arena *arena, Text *out);

#endif
