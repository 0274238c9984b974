/* SPDX-License-Identifier: Apache-2.0 */
/* How a greedy group is cut: tiles start at 1 and are doubled in turn, first the axis along
 * which results are contiguous, while all blocks together fit half of the chip's memory (the
 * other half is for operands and packed panels). */
#include "nest/greedy.h"

#include "nest/place.h"

/* Longer tiles gain nothing, unless the machine's own are longer: loops inside amortise their
 * start by then. */
#define TILE_MAX 64

typedef struct Chooser {
    Greedy *greedy;
    const Graph *g;
    const NestFacts *facts;
    const Group *group;
    uint32_t n_axes;
    const NestAxis *axes;
    bool *internal; /* [nodes of the group]: read in the group, so a block */
    int64_t *tile;
    int64_t *extent; /* [n_axes], typical */
} Chooser;

/* The node among `nodes` whose place nodes[at] takes, or n_nodes. */
static uint32_t place_taken(const Greedy *f, uint32_t n_nodes, const NodeRef *nodes,
                            const int64_t *bytes, const uint32_t *last, uint32_t at)
{
    const Node *n = graph_node(f->g, nodes[at]);
    for (uint32_t p = 0; f->machine->overwrites && node_is_expression(n) && p < at; p++) {
        if (last[p] == at && bytes[p] == bytes[at] &&
            graph_node(f->g, nodes[p])->dtype == n->dtype &&
            nest_reads_own_element(f->facts, nodes[at], nodes[p])) {
            return p;
        }
    }
    return n_nodes;
}

int64_t greedy_peak(Greedy *f, uint32_t n_nodes, const NodeRef *nodes, const int64_t *bytes,
                    const int64_t *more)
{
    uint32_t *last = ARENA_ARRAY(f->arena, n_nodes, uint32_t);
    int64_t *end = ARENA_ARRAY(f->arena, n_nodes + 1, int64_t); /* what ends before each */
    int64_t live = 0, peak = 0;
    for (uint32_t at = 0; at < n_nodes; at++) {
        const UseList *u = &f->facts->uses[nodes[at]];
        last[at] = at;
        for (uint32_t i = 0; i < u->list.n; i++) {
            for (uint32_t p = 0; p < at; p++) {
                last[p] = nodes[p] == u->list.at[i].node ? at : last[p];
            }
        }
    }
    for (uint32_t at = 0; at < n_nodes; at++) {
        bool takes = place_taken(f, n_nodes, nodes, bytes, last, at) < n_nodes;
        live -= end[at];
        live = sat_add(live, takes ? 0 : bytes[at]); /* else it ends here and begins at once */
        end[last[at] + 1] = sat_add(end[last[at] + 1], bytes[at]);
        end[at + 1] -= takes ? bytes[at] : 0;
        peak = sat_add(live, more[at]) > peak ? sat_add(live, more[at]) : peak;
    }
    return peak;
}

static int64_t block_elements(const Chooser *c, uint32_t at)
{
    NodeRef node = c->group->nodes.at[at];
    const Node *n = graph_node(c->g, node);
    int64_t count = 1;
    for (uint32_t d = 0; d < n->rank; d++) {
        int64_t extent = nest_typical(c->g, n->shape[d]);
        for (uint32_t x = 0; x < c->n_axes; x++) {
            if (nest_axis_label(&c->axes[x], node) == n->out[d] && c->tile[x] < extent) {
                extent = c->tile[x];
            }
        }
        count = sat_mul(count, extent);
    }
    return count;
}

/* The most that live at once. */
static int64_t blocks_bytes(const Chooser *c)
{
    ArenaMark mark = arena_mark(c->greedy->arena);
    int64_t *bytes = ARENA_ARRAY(c->greedy->arena, c->group->nodes.n, int64_t);
    int64_t *more = ARENA_ARRAY(c->greedy->arena, c->group->nodes.n, int64_t);
    for (uint32_t at = 0; at < c->group->nodes.n; at++) {
        const Node *n = graph_node(c->g, c->group->nodes.at[at]);
        int64_t count = block_elements(c, at);
        bytes[at] = c->internal[at] ? sat_mul(count, dtype_bytes(n->dtype)) : 0;
        more[at] = n->acc != n->dtype ? sat_mul(count, dtype_bytes(n->acc)) : 0;
    }
    int64_t peak = greedy_peak(c->greedy, c->group->nodes.n, c->group->nodes.at, bytes, more);
    arena_reset(c->greedy->arena, mark);
    return peak;
}

/* Is the axis the last dimension of what some node of the group writes? */
static bool is_contiguous(const Chooser *c, uint32_t x)
{
    for (uint32_t at = 0; at < c->group->nodes.n; at++) {
        NodeRef node = c->group->nodes.at[at];
        const Node *n = graph_node(c->g, node);
        if (n->rank > 0 && n->out[n->rank - 1] == nest_axis_label(&c->axes[x], node)) {
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

/* Cutting a folded axis makes every tile read and write the folded results again. That is
 * worth it when they are small beside the blocks (the energy of all pairs beside the block of
 * one pair). */
static bool folds_into_little(const Chooser *c, uint32_t x)
{
    int64_t folded = 0, blocks = 0;
    for (uint32_t at = 0; at < c->group->nodes.n; at++) {
        NodeRef node = c->group->nodes.at[at];
        int32_t l = nest_axis_label(&c->axes[x], node);
        if (l >= 0 && node_reduces(graph_node(c->g, node), l)) {
            folded = sat_add(folded, block_elements(c, at));
        } else if (c->internal[at]) {
            blocks = sat_add(blocks, block_elements(c, at));
        }
    }
    return sat_mul(folded, 4) <= blocks;
}

/* Which axes are cut at all: those that are not folded; folded ones if it pays or else the
 * blocks do not fit. */
static void choose_cuts(Chooser *c, int64_t capacity)
{
    for (uint32_t x = 0; x < c->n_axes; x++) {
        if (nest_axis_is_folded(c->g, &c->axes[x]) && !folds_into_little(c, x)) {
            c->tile[x] = INT64_MAX;
        }
    }
    for (uint32_t x = 0; x < c->n_axes; x++) {
        if (c->tile[x] == INT64_MAX && blocks_bytes(c) > capacity) {
            c->tile[x] = 1;
        }
    }
}

static void find_internal(Chooser *c)
{
    for (uint32_t at = 0; at < c->group->nodes.n; at++) {
        const UseList *u = &c->facts->uses[c->group->nodes.at[at]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            for (uint32_t p = 0; p < at; p++) {
                c->internal[p] |= c->group->nodes.at[p] == u->list.at[i].node &&
                                  c->facts->result_of[c->group->nodes.at[p]] < 0;
            }
        }
    }
}

void greedy_tiles(Greedy *f, const Group *group, uint32_t n_axes, const NestAxis *axes,
                  int64_t *tile)
{
    Chooser c = {.greedy = f,
                 .g = f->g,
                 .facts = f->facts,
                 .group = group,
                 .n_axes = n_axes,
                 .axes = axes,
                 .tile = tile};
    c.internal = ARENA_ARRAY(f->arena, group->nodes.n, bool);
    c.extent = ARENA_ARRAY(f->arena, n_axes, int64_t);
    for (uint32_t x = 0; x < n_axes; x++) {
        tile[x] = 1;
        c.extent[x] = nest_typical(f->g, axes[x].extent);
    }
    find_internal(&c);
    int64_t capacity = machine_tile_capacity(f->machine) / 2;
    int64_t line = f->machine->tile.line / dtype_bytes(DTYPE_F32);
    int64_t most = line > TILE_MAX ? line : TILE_MAX;
    choose_cuts(&c, capacity);
    for (uint32_t pass = 0; pass < 2; pass++) {
        bool grown = true;
        while (grown) {
            grown = false;
            for (uint32_t x = 0; x < n_axes; x++) {
                if (pass == 1 || is_contiguous(&c, x)) {
                    grown |= try_double(&c, x, capacity, most);
                }
            }
        }
    }
}
