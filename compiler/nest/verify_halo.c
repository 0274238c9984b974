/* SPDX-License-Identifier: Apache-2.0 */
/* The halo of a value along the loops around it is what its readers there read: found again from the readers, one loop at a time. */
#include "nest/verify_parts.h"

/* Positions at which a value is read, beside one of the axis: [first, end). */
typedef struct ReadSpan {
    int64_t first, end;
    bool any, wrong; /* a read at all; one at no such position */
} ReadSpan;

/* Where the axis lists the node, or -1. */
static int32_t place_on(const NestAxis *axis, NodeRef n)
{
    for (uint32_t k = 0; k < axis->n; k++) {
        if (axis->node[k] == n) {
            return (int32_t)k;
        }
    }
    return -1;
}

static NestHalo halo_at(const NestAxis *axis, int32_t k)
{
    bool has = axis->halo != NULL && axis->halo[k].count > 0;
    return has ? axis->halo[k] : (NestHalo){0, 1};
}

/* Adds the positions beside one of the axis at which the reader reads dimension `d`. */
static void add_use(Arena *arena, const Nest *nest, const NestAxis *axis, const UseList *u,
                    const Use *use, NodeRef reader, uint32_t d, ReadSpan *s)
{
    int32_t at = place_on(axis, reader);
    Affine x = use_position(arena, nest->graph, u, use, d);
    if (at < 0 || affine_coef(x, (VarRef)axis->label[at]) != 1) {
        s->wrong = true;
        return;
    }
    NestHalo own = halo_at(axis, at);
    int64_t first = own.from, last = own.from + own.count - 1;
    s->wrong |= !i64_try_add(first, x.base, &first) || !i64_try_add(last, x.base, &last);
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        Dim extent = affine_is_dim(v) ? dim_open(affine_sym(v))
                                      : graph_node(nest->graph, reader)->extent[v];
        int64_t far = 0;
        if (v == (VarRef)axis->label[at]) {
            continue;
        }
        bool number = !affine_is_dim(v) && extent.sym < 0 && extent.n > 0 &&
                      i64_try_mul(x.term[i].coef, extent.n - 1, &far);
        int64_t *side = far > 0 ? &last : &first;
        s->wrong |= !number || !i64_try_add(*side, far, side);
    }
    s->first = !s->any || first < s->first ? first : s->first;
    s->end = !s->any || last >= s->end ? last + 1 : s->end;
    s->any = true;
}

/* What is read of the leaf's value along dimension `d` in the loop. */
static ReadSpan reads_in(Arena *arena, const Nest *nest, const UseList *uses, uint32_t loop,
                         NodeRef n, uint32_t d)
{
    ReadSpan s = {0};
    for (uint32_t k = loop + 1; k < nest->items[loop].end; k++) {
        NodeRef reader = nest->items[k].node;
        for (uint32_t i = 0; !nest_is_loop(&nest->items[k]) && i < uses[reader].list.n; i++) {
            const Use *use = &uses[reader].list.at[i];
            if (use->node == n) {
                add_use(arena, nest, &nest->axes[nest->items[loop].axis], &uses[reader], use,
                        reader, d, &s);
            }
        }
    }
    return s;
}

static const char *problem_in(Arena *arena, const Nest *nest, const UseList *uses,
                              uint32_t loop, uint32_t item, uint32_t d)
{
    NodeRef n = nest->items[item].node;
    const NestValue *v = &nest->values[n];
    NestHalo halo = nest_halo(nest, loop, n), has = {0, 1};
    ReadSpan s = reads_in(arena, nest, uses, loop, n, d);
    if (s.any || s.wrong) {
        has = halo.count > 0 ? halo : has;
        if (s.wrong || s.first != has.from || s.end != has.from + has.count) {
            return "is made in its loop at other positions than it is read at";
        }
    } else if (halo.count > 0) {
        return "has a halo in a loop where nothing reads it";
    }
    bool inside = v->alloc_loop != NEST_NONE && loop <= v->alloc_loop &&
                  v->alloc_loop < nest->items[loop].end;
    if (halo.count > 0 && (v->residence != RESIDE_TILE || !inside || halo.from < 0)) {
        return "is computed once more by the next iteration, and needed after the loop";
    }
    return NULL;
}

const char *nest_halo_problem(Arena *arena, const Nest *nest, const UseList *uses,
                              uint32_t item)
{
    NodeRef n = nest->items[item].node;
    const Node *node = graph_node(nest->graph, n);
    const char *problem = NULL;
    for (uint32_t p = nest->items[item].parent; p != NEST_NONE && problem == NULL;
         p = nest->items[p].parent) {
        const NestAxis *axis = &nest->axes[nest->items[p].axis];
        int32_t at = place_on(axis, n);
        bool has = at >= 0 && axis->halo != NULL && axis->halo[at].count > 0;
        if (has && (node_reduces(node, axis->label[at]) || nest->items[p].online)) {
            return "is folded, and computed once more by the next iteration";
        }
        for (uint32_t d = 0; at >= 0 && d < node->rank && problem == NULL; d++) {
            problem = node->out[d] == axis->label[at]
                          ? problem_in(arena, nest, uses, p, item, d)
                          : NULL;
        }
    }
    return problem;
}
