/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses schedules from the machine's numbers and typical extents, and prints, reads and
 * checks them.
 *
 * A group with blocks on chip is looped over all its axes: tiles start at 1 and are doubled in
 * turn, first the axis along which results are contiguous, while all blocks together fit half
 * of the chip's memory (the other half is for operands and packed panels). Anything else, a
 * lone contraction too, is one statement: how it is blocked inside is the target's to decide,
 * and needs no loop here. */
#include "loop/schedule.h"

/* Longer tiles gain nothing, unless the machine's own are longer: loops inside amortise their
 * start by then. */
#define TILE_MAX 64

typedef struct Chooser {
    const Partition *p;
    const Graph *g;
    const Machine *machine;
    const Group *group;
    int64_t *tile;   /* [n_axes] */
    int64_t *extent; /* [n_axes], typical */
} Chooser;

static int64_t block_elements(const Chooser *c, uint32_t at)
{
    const Node *n = graph_node(c->g, c->group->nodes[at]);
    int64_t count = 1;
    for (uint32_t d = 0; d < n->rank; d++) {
        int64_t extent = dim_typical(&c->g->dims, n->shape[d]);
        for (uint32_t x = 0; x < c->group->n_axes; x++) {
            if (c->group->axes[x].label[at] == n->out[d] && c->tile[x] < extent) {
                extent = c->tile[x];
            }
        }
        count = sat_mul(count, extent);
    }
    return count;
}

static int64_t blocks_bytes(const Chooser *c)
{
    int64_t bytes = 0;
    for (uint32_t at = 0; at < c->group->n_nodes; at++) {
        NodeRef node = c->group->nodes[at];
        const Node *n = graph_node(c->g, node);
        if (c->p->residence[node] == RESIDE_TILE) {
            bytes = sat_add(bytes, sat_mul(block_elements(c, at), dtype_bytes(n->dtype)));
        }
        if (n->acc != n->dtype) {
            bytes = sat_add(bytes, sat_mul(block_elements(c, at), dtype_bytes(n->acc)));
        }
    }
    return bytes;
}

static bool has_blocks(const Chooser *c)
{
    for (uint32_t at = 0; at < c->group->n_nodes; at++) {
        if (c->p->residence[c->group->nodes[at]] == RESIDE_TILE) {
            return true;
        }
    }
    return false;
}

/* Is the axis the last dimension of what some node of the group writes? */
static bool is_contiguous(const Chooser *c, uint32_t x)
{
    for (uint32_t at = 0; at < c->group->n_nodes; at++) {
        const Node *n = graph_node(c->g, c->group->nodes[at]);
        if (n->rank > 0 && n->out[n->rank - 1] == c->group->axes[x].label[at]) {
            return true;
        }
    }
    return false;
}

static bool try_double(Chooser *c, uint32_t x, int64_t capacity, int64_t most)
{
    if (c->tile[x] >= c->extent[x] || c->tile[x] * 2 > most) {
        return false;
    }
    c->tile[x] *= 2;
    if (capacity > 0 && blocks_bytes(c) > capacity) {
        c->tile[x] /= 2;
        return false;
    }
    return true;
}

/* Cutting a reduced axis makes every tile read and write the folded results again. That is
 * worth it when they are small beside the blocks (the energy of all pairs beside the block of
 * one pair). */
static bool folds_into_little(const Chooser *c, uint32_t x)
{
    int64_t folded = 0, blocks = 0;
    for (uint32_t at = 0; at < c->group->n_nodes; at++) {
        NodeRef node = c->group->nodes[at];
        int32_t l = c->group->axes[x].label[at];
        if (l >= 0 && node_reduces(graph_node(c->g, node), l)) {
            folded = sat_add(folded, block_elements(c, at));
        } else if (c->p->residence[node] == RESIDE_TILE) {
            blocks = sat_add(blocks, block_elements(c, at));
        }
    }
    return sat_mul(folded, 4) <= blocks;
}

/* Which axes are cut at all: those that are not reduced; reduced ones if it pays or else the
 * blocks do not fit. */
static void choose_cuts(Chooser *c, int64_t capacity)
{
    for (uint32_t x = 0; x < c->group->n_axes; x++) {
        if (c->group->axes[x].reduced && !folds_into_little(c, x)) {
            c->tile[x] = INT64_MAX;
        }
    }
    for (uint32_t x = 0; x < c->group->n_axes; x++) {
        if (c->tile[x] == INT64_MAX && blocks_bytes(c) > capacity) {
            c->tile[x] = 1;
        }
    }
}

static void choose_blocks(Chooser *c)
{
    int64_t capacity = c->machine->space[SPACE_TILE].capacity / 2;
    int64_t most = c->machine->tile_n > TILE_MAX ? c->machine->tile_n : TILE_MAX;
    choose_cuts(c, capacity);
    for (uint32_t pass = 0; pass < 2; pass++) {
        bool grown = true;
        while (grown) {
            grown = false;
            for (uint32_t x = 0; x < c->group->n_axes; x++) {
                if (pass == 1 || is_contiguous(c, x)) {
                    grown |= try_double(c, x, capacity, most);
                }
            }
        }
    }
}

static bool has_slices(const Chooser *c)
{
    for (uint32_t at = 0; at < c->group->n_nodes; at++) {
        if (graph_node(c->g, c->group->nodes[at])->n_sliced > 0) {
            return true;
        }
    }
    return false;
}

static GroupSchedule choose_group(Arena *arena, Chooser *c)
{
    const Group *group = c->group;
    GroupSchedule plan = {0};
    AxisSchedule *axes = ARENA_ARRAY(arena, group->n_axes, AxisSchedule);
    bool sliced = has_slices(c);
    if (!sliced && !has_blocks(c)) {
        return plan;
    }
    if (!sliced) { /* slices are taken one position at a time: tiles stay 1 */
        choose_blocks(c);
    }
    /* Reduced axes innermost, so that outer loops write disjoint places; slices in the order
     * they are given. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t x = 0; x < group->n_axes; x++) {
            Dim extent = group->axes[x].extent;
            bool whole = c->tile[x] == INT64_MAX || (extent.sym < 0 && c->tile[x] >= extent.n);
            bool now = sliced ? pass == 0 : group->axes[x].reduced == (pass == 1);
            if (now && !whole) {
                axes[plan.n_axes] = (AxisSchedule){.axis = x, .tile = c->tile[x]};
                axes[plan.n_axes].parallel = plan.n_axes == 0 && pass == 0 && !sliced;
                plan.n_axes++;
            }
        }
    }
    plan.axes = axes;
    return plan;
}

uint32_t schedule_depth(const Schedule *s, uint32_t group, uint32_t at)
{
    uint32_t depth = 0;
    for (uint32_t x = 0; x < s->groups[group].n_axes; x++) {
        uint32_t axis = s->groups[group].axes[x].axis;
        depth = s->partition->groups[group].axes[axis].label[at] >= 0 ? x + 1 : depth;
    }
    return depth;
}

Schedule *schedule_choose(Ctx *ctx, Arena *arena, const Partition *p, const Machine *machine)
{
    (void)ctx;
    Schedule *s = ARENA_NEW(arena, Schedule);
    GroupSchedule *groups = ARENA_ARRAY(arena, p->n_groups, GroupSchedule);
    for (uint32_t k = 0; k < p->n_groups; k++) {
        const Group *group = &p->groups[k];
        Chooser c = {.p = p, .g = p->graph, .machine = machine, .group = group};
        c.tile = ARENA_ARRAY(arena, group->n_axes, int64_t);
        c.extent = ARENA_ARRAY(arena, group->n_axes, int64_t);
        for (uint32_t x = 0; x < group->n_axes; x++) {
            c.tile[x] = 1;
            c.extent[x] = dim_typical(&p->graph->dims, group->axes[x].extent);
        }
        groups[k] = choose_group(arena, &c);
    }
    s->partition = p;
    s->groups = groups;
    return s;
}

/* ---- checking ---- */

static bool refuse(Ctx *ctx, const char *stage, uint32_t group, const char *what)
{
    diag_error(&ctx->diags, E_PLAN, (Span){0}, "%s: schedule of group %u %s", stage, group,
               what);
    return false;
}

bool schedule_verify(Ctx *ctx, const Schedule *s, const char *stage)
{
    for (uint32_t k = 0; k < s->partition->n_groups; k++) {
        const Group *group = &s->partition->groups[k];
        const GroupSchedule *plan = &s->groups[k];
        for (uint32_t x = 0; x < plan->n_axes; x++) {
            const AxisSchedule *axis = &plan->axes[x];
            if (axis->axis >= group->n_axes) {
                return refuse(ctx, stage, k, "names an axis that the group does not have");
            }
            if (axis->tile < 1 || axis->tile > SIZE_LIMIT) {
                return refuse(ctx, stage, k, "has a tile below 1 or too large");
            }
            if (axis->parallel && group->axes[axis->axis].reduced) {
                return refuse(ctx, stage, k, "runs a reduced axis in parallel");
            }
            for (uint32_t y = 0; y < x; y++) {
                if (plan->axes[y].axis == axis->axis) {
                    return refuse(ctx, stage, k, "loops over an axis twice");
                }
            }
        }
    }
    return true;
}

/* ---- text ---- */

void schedule_dump(const Schedule *s, Text *out)
{
    text_printf(out, "schedule {\n");
    out->indent++;
    for (uint32_t k = 0; k < s->partition->n_groups; k++) {
        text_printf(out, "group %u {\n", k);
        out->indent++;
        for (uint32_t x = 0; x < s->groups[k].n_axes; x++) {
            const AxisSchedule *axis = &s->groups[k].axes[x];
            text_printf(out, "axis %u tile %lld%s\n", axis->axis, (long long)axis->tile,
                        axis->parallel ? " parallel" : "");
        }
        out->indent--;
        text_put(out, "}\n");
    }
    out->indent--;
    text_put(out, "}\n");
}

static bool read_axis(Ctx *ctx, const DumpLine *line, AxisSchedule *axis)
{
    Cursor c = cursor_line(ctx, line);
    const Term *number = NULL, *tile = NULL;
    bool ok = cursor_expect(&c, TERM_NAME, "axis", "'axis'") != NULL &&
              (number = cursor_expect(&c, TERM_INT, NULL, "the number of an axis")) != NULL &&
              cursor_expect(&c, TERM_NAME, "tile", "'tile'") != NULL &&
              (tile = cursor_expect(&c, TERM_INT, NULL, "a tile size")) != NULL;
    if (!ok) {
        return false;
    }
    axis->axis = number->value > UINT32_MAX ? UINT32_MAX : (uint32_t)number->value;
    axis->tile = tile->value;
    axis->parallel = cursor_take(&c, TERM_NAME, "parallel");
    return cursor_expect_end(&c);
}

Schedule *schedule_read(Ctx *ctx, Arena *arena, const Partition *p, const DumpLine *line)
{
    Schedule *s = ARENA_NEW(arena, Schedule);
    GroupSchedule *groups = ARENA_ARRAY(arena, p->n_groups, GroupSchedule);
    if (line->n_body != p->n_groups) {
        diag_error(&ctx->diags, E_PLAN, line->span,
                   "the schedule has %u groups, the program %u", line->n_body, p->n_groups);
        return NULL;
    }
    for (uint32_t k = 0; k < p->n_groups; k++) {
        const DumpLine *group = line->body[k];
        Cursor c = cursor_line(ctx, group);
        const Term *number = NULL;
        if (cursor_expect(&c, TERM_NAME, "group", "'group'") == NULL ||
            (number = cursor_expect(&c, TERM_INT, NULL, "the number of a group")) == NULL) {
            return NULL;
        }
        if (number->value != (int64_t)k) {
            diag_error(&ctx->diags, E_PLAN, number->span, "group %u is expected here", k);
            return NULL;
        }
        AxisSchedule *axes = ARENA_ARRAY(arena, group->n_body, AxisSchedule);
        for (uint32_t x = 0; x < group->n_body; x++) {
            if (!read_axis(ctx, group->body[x], &axes[x])) {
                return NULL;
            }
        }
        groups[k] = (GroupSchedule){group->n_body, axes};
    }
    s->partition = p;
    s->groups = groups;
    return schedule_verify(ctx, s, "read") ? s : NULL;
}
