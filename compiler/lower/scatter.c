/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters (nest/scatter.h): the statement of the fold, its indices in the order in which elements go to their places. */
#include "lower/build.h"
#include "nest/scatter.h"
#include "nest/uses.h"

/* What is folded first, in its order, then what the keys depend on, the indices of the place, the others. */
static uint32_t rank_of(const Node *n, const PlaceKeys *keys, int32_t label)
{
    uint32_t rank = node_reduces(n, label) ? 0 : 3 + PLACE_KEYS;
    for (uint32_t k = 0; k < keys->n; k++) {
        bool used = access_has_label(&keys->at[k].key, label);
        rank = label == keys->at[k].along ? 2 + k : rank > 1 && used ? 1 : rank;
    }
    return rank;
}

/* Places whose elements are looked for at once, by one thread; threads cut it as they are. */
#define RANGE_PLACES (1 << 24)

/* A loop over ranges of places around the statement, the last of the block: each takes what goes to its own. */
static void build_ranges(Builder *b, Block *to, const Node *n, Stmt *s, TileIndex *place)
{
    Stmt *loop = build_stmt(b, STMT_FOR, n->span, NULL);
    loop->var = kernel_var(b->k, &b->ctx->syms, "range", true);
    loop->range = place->range;
    loop->step = RANGE_PLACES;
    loop->parallel = true;
    place->range.start = affine_var(b->arena, loop->var);
    place->range.span = RANGE_PLACES;
    loop->body = ARENA_NEW(b->arena, Stmt *);
    loop->body[0] = s;
    loop->n_body = 1;
    to->list.at[to->list.n - 1] = loop;
}

void build_scatter(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    const Node *n = graph_node(b->g, node);
    const Position *pos = build_positions(b, node, scope);
    Stmt *s = build_at_positions(b, to, node, scope, pos);
    PlaceKeys keys;
    CHECK(nest_scatter(b->arena, b->nest, b->nest->values, node, &keys));
    TileIndex *index = ARENA_ARRAY(b->arena, s->n_index, TileIndex);
    uint32_t done = 0;
    for (uint32_t rank = 0; rank < 4 + PLACE_KEYS; rank++) {
        for (uint32_t i = 0; i < s->n_index; i++) {
            uint32_t l = 0;
            while (!pos[l].local || pos[l].var != s->index[i].var) {
                l++;
                CHECK(l < n->n_labels);
            }
            if (rank_of(n, &keys, (int32_t)l) == rank) {
                s->places = rank == 2 ? done + 1 : s->places;
                index[done++] = s->index[i];
            }
        }
    }
    s->index = index;
    if (scope == NEST_NONE && nest_leaf_shape(b->arena, b->nest, node).ranges &&
        to->list.at[to->list.n - 1] == s) {
        build_ranges(b, to, n, s, &index[s->places - 1]);
    }
}
