/* SPDX-License-Identifier: Apache-2.0 */
/* Of a kernel with several nests, one for each of some ranges of an open dim: for which sizes each
 * is, and what all of them take by the model at the sizes that they are made for. */
#include <inttypes.h>

#include "driver/report/report.h"
#include "nest/estimate.h"

static double seconds_at(const Machine *m, const Nest *nest, uint32_t k, uint32_t size,
                         Arena *arena)
{
    const NestSize *s = &nest->sizes[size];
    return nest_cost_at(arena, m, nest->sizes[k].nest, s->when.dim, s->size).seconds;
}

static const char *dim_name(Arena *arena, const Nest *nest)
{
    return dim_written(arena, &nest->graph->dims, dim_open(nest->sizes[0].when.dim));
}

static void put_row(const Machine *m, const Nest *nest, uint32_t k, Arena *arena, Text *out)
{
    const NestSize *s = &nest->sizes[k];
    Text test = text_new(arena);
    dump_dim_test(&test, &nest->graph->dims, &s->when);
    text_printf(out, "    %-24s", test.at);
    for (uint32_t size = 0; size < nest->n_sizes; size++) {
        text_printf(out, " %14.3g", seconds_at(m, nest, k, size, arena));
    }
    text_put(out, "  ");
    if (s->nest == nest) {
        text_put(out, "the one above");
    } else {
        report_tree_line(s->nest, arena, out);
    }
    if (s->nest != nest && s->nest->cost.spilled > 0) {
        text_put(out, ", spilled ");
        report_bytes(out, s->nest->cost.spilled);
    }
    text_char(out, '\n');
}

void report_sizes_text(const Machine *m, const Nest *nest, Arena *arena, Text *out)
{
    if (nest->n_sizes == 0) {
        return;
    }
    text_printf(
        out, "  nests, one of which is chosen at the call, in seconds by the model:\n    %-24s",
        "");
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        text_printf(
            out, " %14s",
            str_format(arena, "%s = %" PRId64, dim_name(arena, nest), nest->sizes[k].size));
    }
    text_char(out, '\n');
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        put_row(m, nest, k, arena, out);
    }
}

void report_sizes_json(const Machine *m, const Nest *nest, Arena *arena, Text *out)
{
    if (nest->n_sizes == 0) {
        return;
    }
    text_put(out, ", \"nests\": [");
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        const NestSize *s = &nest->sizes[k];
        text_member(out, k == 0 ? "\n  {\"dim\": " : ",\n  {\"dim\": ", dim_name(arena, nest));
        text_printf(out, ", \"from\": %" PRId64 ", \"to\": ", s->when.least);
        if (s->when.most == DIM_ANY_SIZE) {
            text_put(out, "null");
        } else {
            text_i64(out, s->when.most);
        }
        text_printf(
            out, ", \"made_for\": %" PRId64 ", \"bytes_spilled\": %" PRId64 ", \"seconds\": {",
            s->size, s->nest->cost.spilled);
        for (uint32_t size = 0; size < nest->n_sizes; size++) {
            text_printf(out, "%s\"%" PRId64 "\": %.9g", size == 0 ? "" : ", ",
                        nest->sizes[size].size, seconds_at(m, nest, k, size, arena));
        }
        text_put(out, "}}");
    }
    text_char(out, ']');
}
