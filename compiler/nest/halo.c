/* SPDX-License-Identifier: Apache-2.0 */
/* Halos: what one iteration of a loop needs of a value that is read at shifted positions. Labels that a view joins are one axis where
 * its position is one of them and a number, or others whose extents are numbers. Of each value all readers stand under the loop; the
 * positions at which they read it, the readers' own halos counted, are its halo. The last readers have none: their labels are as
 * long as the axis. What is computed twice then is no result and folds over nothing twice. Halide's bounds inference does the same for
 * boxes of many dimensions (Ragan-Kelley et al., PLDI 2013). */
#include "nest/axes.h"

/* Positions that `x` reaches while label `l` stands still, from there. */
static bool reach_from(const Node *reader, Affine x, int32_t l, int64_t *lo, int64_t *hi)
{
    *lo = *hi = x.base;
    bool found = false;
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        int64_t reach = 0;
        if (t.var == (VarRef)l) {
            found = t.coef == 1;
            continue;
        }
        if (affine_is_dim(t.var) || reader->extent[t.var].sym >= 0 ||
            reader->extent[t.var].n < 1 ||
            !i64_try_mul(t.coef, reader->extent[t.var].n - 1, &reach)) {
            return false;
        }
        int64_t *side = reach < 0 ? lo : hi;
        if (!i64_try_add(*side, reach, side)) {
            return false;
        }
    }
    return found && *lo >= 0 && *hi <= SIZE_LIMIT;
}

int32_t halo_label(const Graph *g, const Node *reader, Affine x)
{
    int32_t best = -1;
    for (uint32_t i = 0; i < x.n && !affine_is_dim(x.term[i].var); i++) {
        int32_t l = (int32_t)x.term[i].var;
        int64_t lo = 0, hi = 0;
        bool kept = !node_reduces(reader, l);
        bool longer =
            best < 0 || (kept && node_reduces(reader, best)) ||
            (kept == !node_reduces(reader, best) &&
             nest_typical(g, reader->extent[l]) > nest_typical(g, reader->extent[best]));
        best = longer && reach_from(reader, x, l, &lo, &hi) ? l : best;
    }
    return best;
}

typedef struct Reach {
    int64_t lo, hi;
    uint32_t reads;
} Reach;

static uint32_t find(const NestAxis *axis, NodeRef n)
{
    uint32_t k = 0;
    while (k < axis->n && axis->node[k] != n) {
        k++;
    }
    return k;
}

/* Adds what node `k` of the axis reads of the others. */
static bool add_reads(Arena *arena, const NestFacts *f, const NestAxis *axis, uint32_t k,
                      Reach *reach)
{
    const Node *reader = graph_node(f->g, axis->node[k]);
    const UseList *u = &f->uses[axis->node[k]];
    for (uint32_t i = 0; i < u->list.n; i++) {
        const Use *use = &u->list.at[i];
        uint32_t p = find(axis, use->node), d = 0;
        if (p == axis->n) {
            continue;
        }
        while (graph_node(f->g, use->node)->out[d] != axis->label[p]) {
            d++; /* there, since it is read along the axis */
        }
        int64_t lo = 0, hi = 0;
        ArenaMark mark = arena_mark(arena);
        Affine x = use_position(arena, f->g, u, use, d);
        bool fine = reach_from(reader, x, axis->label[k], &lo, &hi) &&
                    i64_try_add(lo, reach[k].lo, &lo) && i64_try_add(hi, reach[k].hi, &hi);
        arena_reset(arena, mark);
        if (!fine) {
            return false;
        }
        Reach *to = &reach[p];
        to->lo = to->reads == 0 || lo < to->lo ? lo : to->lo;
        to->hi = to->reads == 0 || hi > to->hi ? hi : to->hi;
        to->reads++;
    }
    return true;
}

/* May positions of the node be computed in more than one iteration? */
static bool may_repeat(const NestFacts *f, NodeRef n, int32_t label, uint32_t reads)
{
    const Node *node = graph_node(f->g, n);
    NodeRef init = node_init(node);
    return !node_reduces(node, label) && f->result_of[n] < 0 && f->into[n] == NODE_NONE &&
           (init == NODE_NONE || f->into[init] != n) && f->reads[n] == reads;
}

bool halo_set(Arena *arena, const NestFacts *f, NestAxis *axis)
{
    Reach *reach = ARENA_ARRAY(arena, axis->n, Reach);
    NestHalo *halo = ARENA_ARRAY(arena, axis->n, NestHalo);
    axis->extent = graph_node(f->g, axis->node[axis->n - 1])->extent[axis->label[axis->n - 1]];
    for (uint32_t k = axis->n; k-- > 0;) { /* readers come later */
        NodeRef n = axis->node[k];
        const Reach *r = &reach[k];
        Dim extent = graph_node(f->g, n)->extent[axis->label[k]];
        if (!add_reads(arena, f, axis, k, reach)) {
            return false;
        }
        if (r->lo == 0 && r->hi == 0 && dim_eq(extent, axis->extent)) {
            continue;
        }
        if (r->reads == 0 || axis->online || !may_repeat(f, n, axis->label[k], r->reads)) {
            return false;
        }
        halo[k] = (NestHalo){r->lo, r->hi - r->lo + 1};
        axis->halo = halo;
    }
    return true;
}
