/* SPDX-License-Identifier: Apache-2.0 */
/* Which reductions are scans: those of select(index(j) <= index(i), x, neutral) over j, where x does not depend on i. */
#include "nest/scan.h"

#include "nest/kinds.h"
#include "nest/masks.h"
#include "nest/uses.h"

/* j <= i is i - j >= 0. */
static bool is_prefix(const Node *n, const Affine *holds, Scan *out)
{
    int64_t own = mask_compares(n, holds, &out->folded, &out->along);
    out->reverse = own > 0;
    out->exclusive = holds->base != 0;
    return own != 0 && (holds->base == 0 || holds->base == -1);
}

/* Is nothing else summed? A scan has one index that runs, and no other. */
static bool folds_alone(const Node *n, int32_t folded)
{
    for (uint32_t l = 0; l < n->n_labels; l++) {
        if ((int32_t)l != folded && node_reduces(n, (int32_t)l)) {
            return false;
        }
    }
    return true;
}

bool nest_scan(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n, Scan *out)
{
    const Graph *g = nest->graph;
    const Node *node = graph_node(g, n);
    if (op_info(node->op)->kind != OPKIND_REDUCE || dtype_is_complex(node->acc) ||
        node->acc != node->dtype || node->n_operands != 1 || values[n].item == NEST_NONE) {
        return false;
    }
    const Node *select = graph_node(g, node->operand[0]);
    if (select->op != OP_SELECT || values[node->operand[0]].residence != RESIDE_INLINE) {
        return false;
    }
    Mask mask = mask_of_select(arena, g, select);
    if (mask.n != 1 || !op_is_neutral(node->op, number_cast(mask.value, node->acc))) {
        return false;
    }
    Affine holds = mask_in_reader(arena, select, node->access[0], mask.holds[0]);
    if (!is_prefix(node, &holds, out) || !folds_alone(node, out->folded)) {
        return false;
    }
    out->value = select->operand[1];
    out->access = access_compose(arena, select, select->access[1], node->access[0]);
    return !access_has_label(&out->access, out->along);
}

#define ROW 8192 /* positions that a scan of an engine may have: tiles of 32 KiB a partition */

/* Engines go forward along whole rows. */
static bool is_along_rows(const Node *n, const Scan *scan)
{
    Dim extent = n->extent[scan->along];
    return (n->op == OP_SUM || n->op == OP_RMAX || n->op == OP_RMIN) && n->acc == DTYPE_F32 &&
           !scan->reverse && !scan->exclusive && extent.sym < 0 && extent.n <= ROW;
}

bool leaf_is_scan(Arena *arena, const Machine *machine, const Nest *nest,
                  const NestValue *values, NodeRef n, LeafShape *out)
{
    Scan scan;
    bool all = machine == NULL || machine_traits(machine)->scans;
    bool is = nest_scan(arena, nest, values, n, &scan) &&
              (all || is_along_rows(graph_node(nest->graph, n), &scan));
    if (is) {
        *out = (LeafShape){.alone = {scan.folded, scan.along, -1, -1}, .n_once = 1};
    }
    return is;
}
