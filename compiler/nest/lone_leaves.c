/* SPDX-License-Identifier: Apache-2.0 */
/* Loops around leaves that stand in none. A restricted sum, `sum[j <= i](A[i,j] * x[j])`, stands in no loop of its own accord: there is
 * nothing to fuse; in tiles of both indices half of them are left out. Others get a loop that threads share, if these gain by it. */
#include "nest/estimate.h"
#include "nest/kinds.h"
#include "nest/make.h"
#include "nest/masks.h"
#include "nest/objective.h"
#include "nest/share.h"

/* Tiles that are tried: of the other index, of the one that is folded. */
static const int64_t tiles[][2] = {{32, 256}, {64, 256}, {128, 512}, {16, 128}};

/* What a loop around a leaf that is no product may cost by the price of one thread, which takes the runs of memory that the loop cuts for too dear. */
#define RUNS 1.25
/* Leaves for which loops are tried; of longer nests fewer, since each try makes the nest anew. */
#define MOST_LEAVES 32
#define LONG_NEST   512

typedef struct Maker {
    Ctx *ctx;
    Arena *arena;
    const NestFacts *facts;
    const Machine *machine;
} Maker;

static Nest *make(const Maker *m, const Tree *tree)
{
    return nest_of_tree(m->ctx, m->arena, m->facts, m->machine, m->machine, tree);
}

static bool is_alone(const Nest *nest, uint32_t k)
{
    const NestItem *item = &nest->items[k];
    return !nest_is_loop(item) && item->parent == NEST_NONE && !item->recompute &&
           graph_slices(nest->graph, item->node).n == 0;
}

/* Two loops around leaves that fold what a mask leaves of two indices, where that is cheaper. */
static Nest *add_for_masks(const Maker *m, Nest *nest, Tree *tree)
{
    for (uint32_t k = 0; machine_traits(m->machine)->masked && k < tree->list.n; k++) {
        int32_t folded = -1, other = -1;
        if (!is_alone(nest, k) ||
            !nest_mask_labels(m->arena, nest->graph, nest->items[k].node, &folded, &other)) {
            continue;
        }
        Tree best = *tree;
        for (uint32_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
            const int32_t label[2] = {other, folded};
            Tree looped = tree_around(m->arena, nest->graph, tree, k, 2, label, tiles[t]);
            Nest *tried = make(m, &looped);
            if (tried->cost.seconds < nest->cost.seconds) {
                nest = tried;
                best = looped;
            }
        }
        k += best.list.n - tree->list.n;
        *tree = best;
    }
    return nest;
}

/* A loop around leaves by which threads gain. */
static Nest *add_for_threads(const Maker *m, Nest *nest, Tree *tree)
{
    const Machine *machine = m->machine;
    LeafLoops *loops = ARENA_ARRAY(m->arena, tree->list.n, LeafLoops);
    uint32_t tried = 0, added = 0, n = tree->list.n;
    uint32_t most_tried = n <= LONG_NEST ? MOST_LEAVES : MOST_LEAVES * LONG_NEST / n;
    if (machine->threads < 2) {
        return nest;
    }
    nest_share(m->ctx, m->arena, machine, nest, loops);
    for (uint32_t k = 0; k < n && tried < most_tried; k++) {
        bool taken = false;
        tried += loops[k].n > 0 ? 1 : 0;
        for (uint32_t i = 0; i < loops[k].n && !taken; i++) {
            const Node *node = graph_node(nest->graph, tree->list.at[k + added].node);
            double most = op_info(node->op)->kind == OPKIND_CONTRACT
                              ? machine_traits(machine)->even
                              : RUNS;
            const LeafLoop *loop = &loops[k].at[i];
            Tree looped = tree_around(m->arena, nest->graph, tree, k + added, 1, &loop->label,
                                      &loop->tile);
            Nest *other = make(m, &looped);
            taken = other->items[k + added].parallel &&
                    nest_worth(machine, other) < nest_worth(machine, nest) &&
                    other->cost.seconds <= most * nest->cost.seconds;
            nest = taken ? other : nest;
            *tree = taken ? looped : *tree;
        }
        added += taken ? 1 : 0;
    }
    return nest;
}

Nest *nest_with_loops(Ctx *ctx, Arena *arena, const NestFacts *facts, const Machine *machine,
                      const Tree *tree)
{
    const Maker m = {ctx, arena, facts, machine};
    Tree looped = *tree;
    Nest *nest = add_for_masks(&m, make(&m, tree), &looped);
    return add_for_threads(&m, nest, &looped);
}
