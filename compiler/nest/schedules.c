/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction of two operands, a sum of products or a fold of other terms: how it is cut below its shared loops. Of the
 * labels that stay, the one that runs along lines in the result is the vector of a
 * register tile; the operand that has it (B) is packed block by block into panels of columns,
 * the other (A) into panels of rows:
 *
 *     batches, further summed labels; sum; further columns; columns: pack B;
 *     further rows; rows: pack A; columns of one register tile
 *
 * Hence A is read once for each block of columns, B once, the result once for each block of the
 * sum. Where both operands are small, or few rows are read once, nothing is packed. The scheme is
 * that of Goto and van de Geijn (ACM TOMS 34, 2008).
 *
 * An engine for matrices has many tiles that live at once (schedule/strips.c). There the columns
 * are those that lie along lines where the result is in memory; a value on chip has its first
 * row on partitions, and that is the label that its readers sum over, if they do. */
#include "nest/schedules.h"

#include "nest/policy.h"

const Schedule *contraction_schedule(Arena *arena, const NestFacts *f, const Machine *machine,
                                     const Nest *nest, uint32_t item)
{
    Product p = {.arena = arena, .f = f, .machine = machine, .nest = nest, .item = item};
    if (!product_find(&p) || !machine_rules(machine)->product(&p)) {
        return NULL;
    }
    Schedule *b = ARENA_NEW(arena, Schedule);
    product_labels(&p, b);
    machine_rules(machine)->levels(&p, b);
    return b;
}

NestValue *nest_set_schedules(Arena *arena, const NestFacts *f, const Machine *machine,
                              Nest *nest)
{
    NestValue *values = arena_copy(arena, nest->values, f->g->nodes.n * sizeof *values);
    nest->values = values;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef node = nest->items[k].node;
        if (!nest_is_loop(&nest->items[k]) && values[node].schedule == NULL) {
            values[node].schedule = contraction_schedule(arena, f, machine, nest, k);
        }
    }
    return values;
}
