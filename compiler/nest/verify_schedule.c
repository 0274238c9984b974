/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a contraction: its labels have the roles that they have there. */
#include "nest/verify_parts.h"

/* Is the label cut to one position by a loop around the item? */
static bool is_position(const Nest *nest, uint32_t item, uint32_t label)
{
    NodeRef n = nest->items[item].node;
    for (uint32_t p = nest->items[item].parent; p != NEST_NONE; p = nest->items[p].parent) {
        if (nest_loop_label(nest, p, n) == (int32_t)label && nest_loop_span(nest, p, n) == 1) {
            return true;
        }
    }
    return false;
}

/* Is it a fold of terms of two operands? */
static bool folds_terms(Arena *arena, const Nest *nest, NodeRef n, const UseList *u)
{
    ArenaMark mark = arena_mark(arena);
    Residence *residence = ARENA_ARRAY(arena, nest->graph->nodes.n, Residence);
    for (NodeRef k = 0; k < nest->graph->nodes.n; k++) {
        residence[k] = nest->values[k].residence;
    }
    bool folds = nest_contracts(nest->graph, residence, n, u);
    arena_reset(arena, mark);
    return folds;
}

const char *nest_schedule_problem(Arena *arena, const Nest *nest, const UseList *u,
                                  uint32_t item)
{
    NodeRef n = nest->items[item].node;
    const Node *node = graph_node(nest->graph, n);
    const Schedule *b = nest->values[n].schedule;
    if (b == NULL) {
        return NULL;
    }
    bool product = op_info(node->op)->kind == OPKIND_CONTRACT && uses_count(u) == 2;
    if ((!product && !folds_terms(arena, nest, n, u)) || b->n_labels[ROLE_M] == 0 ||
        b->n_labels[ROLE_N] == 0 || b->n_labels[ROLE_K] == 0) {
        return "is no contraction with rows, columns and a sum that could be cut into blocks";
    }
    NodeRef c = NODE_NONE;
    Access at;
    if (b->needed && (node->onto || !mask_needed(arena, nest->graph, n, &c, &at))) {
        return "leaves out what is not needed, but all of it is";
    }
    const Access *x = &u->list.at[0].access, *y = &u->list.at[1].access;
    bool rows_in_x = access_has_label(x, (int32_t)b->label[ROLE_M][0]);
    ScheduleRole *role = ARENA_ARRAY(arena, node->n_labels, ScheduleRole);
    for (uint32_t l = 0; l < node->n_labels; l++) {
        bool in_x = access_has_label(x, (int32_t)l), in_y = access_has_label(y, (int32_t)l);
        role[l] = is_position(nest, item, l)
                      ? ROLE_COUNT
                      : schedule_role(!node_reduces(node, (int32_t)l), in_x, in_y, rows_in_x);
    }
    return schedule_problem(b, node->n_labels, role);
}
