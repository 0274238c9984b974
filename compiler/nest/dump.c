/* SPDX-License-Identifier: Apache-2.0 */
/* The nest as text, after its graph: axes by name, then the tree. A leaf line says where its
 * value lives; comments say what follows from that: the value's name, its block and its bytes.
 *
 *     nest {
 *       axis i [%3[a], %12[a]] ; o
 *       for i step 2 parallel {
 *         %3 tile              ; T: [2,v,o,v], 512.0 KiB
 *         %12 result 0         ; E
 *       }
 *       %13 workspace "why"
 *
 *     }
 *
 * A contraction that is added into the place of another says so, and the sum that both are terms of:
 * `%4 into %3 term of %6`, `%4 into result 0 term of %6`. And a contraction's how it is cut inside of its loops (schedule/schedule.h). Several nests stand
 * in blocks of one nest, each after the sizes that it is for. */
#include "graph/recurrence.h"
#include "dump/text.h"
#include "nest/leaves.h"
#include "nest/text.h"

/* Names of axes: i, j, ... p, then i8, i9, ... */
static void dump_axis_name(Text *out, uint32_t axis)
{
    if (axis < 8) {
        text_char(out, (char)('i' + (int)axis));
    } else {
        text_printf(out, "i%u", axis);
    }
}

static void dump_axis(const Nest *nest, uint32_t x, Text *out)
{
    const NestAxis *axis = &nest->axes[x];
    text_put(out, "axis ");
    dump_axis_name(out, x);
    text_put(out, " [");
    for (uint32_t k = 0; k < axis->n; k++) {
        text_printf(out, "%s%%%u[", k == 0 ? "" : ", ", axis->node[k]);
        dump_label(out, axis->label[k]);
        NestHalo halo = axis->halo == NULL ? (NestHalo){0, 0} : axis->halo[k];
        if (halo.count > 0 && halo.from != 0) {
            text_printf(out, "%+lld", (long long)halo.from);
        }
        if (halo.count > 0) {
            text_printf(out, ":%lld", (long long)halo.count);
        }
        text_char(out, ']');
    }
    text_put(out, "] ; ");
    dump_dim(out, &nest->graph->dims, axis->extent);
    text_char(out, '\n');
}

static void dump_block(const Nest *nest, NodeRef n, Text *out)
{
    const Node *node = graph_node(nest->graph, n);
    uint32_t alloc_loop = nest->values[n].alloc_loop;
    bool first = true;
    text_char(out, '[');
    for (uint32_t d = 0; d < node->rank; d++) {
        uint32_t loop = nest_loop_of(nest, alloc_loop, n, node->out[d]);
        int64_t tile = loop == NEST_NONE ? 0 : nest_loop_span(nest, loop, n);
        if (tile == 1) {
            continue;
        }
        text_put(out, first ? "" : ",");
        first = false;
        bool whole = loop == NEST_NONE || (node->shape[d].sym < 0 && node->shape[d].n <= tile);
        dump_dim(out, &nest->graph->dims, whole ? node->shape[d] : dim_fixed(tile));
    }
    text_printf(out, "], %lld bytes", (long long)nest->values[n].bytes);
}

static void put_label(void *user, uint32_t label, Text *out)
{
    (void)user;
    dump_label(out, (int32_t)label);
}

static void dump_leaf(const Nest *nest, const NestItem *item, Text *out)
{
    NodeRef n = item->node;
    const NestValue *value = &nest->values[n];
    Sym name = graph_node(nest->graph, n)->name;
    text_printf(out, "%%%u %s", n, residence_name(value->residence));
    if (value->residence == RESIDE_RESULT) {
        text_printf(out, " %d", (int)value->result);
    }
    if (value->in_place != NODE_NONE) {
        bool into = value->residence == RESIDE_INTO;
        text_printf(out, into ? " %%%u" : " in %%%u", value->in_place);
    }
    if (*leaf_word(value->kind) != '\0') {
        text_printf(out, " %s", leaf_word(value->kind));
    }
    text_put(out, item->recompute ? " again" : "");
    text_put(out, item->mirror ? " both" : "");
    if (value->schedule != NULL) {
        text_char(out, ' ');
        schedule_dump(value->schedule, put_label, NULL, out);
    }
    if (name != NULL || value->residence == RESIDE_TILE) {
        text_printf(out, " ;%s%s", name == NULL ? "" : " ", name == NULL ? "" : name->text);
    }
    if (value->residence == RESIDE_TILE) {
        text_put(out, name == NULL ? " " : ": ");
        dump_block(nest, n, out);
    }
    text_char(out, '\n');
}

static void dump_loop(const Nest *nest, const NestItem *item, Text *out)
{
    text_put(out, "for ");
    dump_axis_name(out, item->axis);
    text_printf(out, " step %lld", (long long)item->tile);
    if (item->from != 0) {
        text_put(out, " from ");
        dump_axis_name(out, nest->items[item->from - 1].axis);
    }
    text_printf(out, "%s%s {\n", item->parallel ? " parallel" : "",
                item->online ? " online" : "");
    out->indent++;
}

static void dump_tree(const Nest *nest, Text *out)
{
    out->indent++;
    for (uint32_t x = 0; x < nest->n_axes; x++) {
        dump_axis(nest, x, out);
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (nest_is_loop(&nest->items[k])) {
            dump_loop(nest, &nest->items[k], out);
        } else {
            dump_leaf(nest, &nest->items[k], out);
        }
        for (uint32_t n = nest_loops_ending(nest, k); n > 0; n--) {
            out->indent--;
            text_put(out, "}\n");
        }
    }
    out->indent--;
    text_put(out, "}\n");
}

void nest_dump(const Nest *nest, Text *out)
{
    text_put(out, "nest ");
    if (nest->goes_on) {
        text_printf(out, "steps %llu ", (unsigned long long)nest->steps);
    }
    text_put(out, "{\n");
    for (uint32_t k = 0; k < nest->graph->recurrences.n; k++) {
        const Recurrence *r = nest->graph->recurrences.at[k];
        out->indent++;
        text_printf(out, "recurrence %u%s ", k, r->batch ? " batch" : "");
        nest_dump(r->nest, out);
        out->indent--;
    }
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        const NestSize *s = &nest->sizes[k];
        out->indent++;
        dump_dim_test(out, &nest->graph->dims, &s->when);
        text_printf(out, " ~ %lld {\n", (long long)s->size);
        dump_tree(s->nest, out);
        out->indent--;
    }
    if (nest->n_sizes == 0) {
        dump_tree(nest, out);
    } else {
        text_put(out, "}\n");
    }
}
