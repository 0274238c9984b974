/* SPDX-License-Identifier: Apache-2.0 */
/* See share.h. The terms go to multi.c with their labels numbered apart; operands are equal when they are the same node
 * read at positions in the same dimensions, in the same accumulator type. */
#include "path/share.h"

#include <string.h>

/* Contractions of one kernel that are planned together: more are planned one by one. */
#define SHARE_MOST 512
/* Splits weighed beyond a first descent: well under a tenth of a second. */
#define SHARE_BUDGET ((uint64_t)1 << 22)

static bool is_term(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_CONTRACT && n->n_operands >= 2 &&
           n->n_operands <= MULTI_MOST;
}

static bool decided_otherwise(const PathControl *c)
{
    return c->linear != NULL || c->plan.at != NULL || c->options.memory_limit != 0 ||
           c->options.search != NULL || c->options.objective != PATH_FLOPS;
}

/* A number for the operand as it is read: dimensions at fixed positions are not seen as labels. */
static uint32_t tensor_number(Map *numbers, uint32_t *next, const Node *n, uint32_t operand)
{
    uint64_t key = hash_mix(n->operand[operand], (uint64_t)n->acc);
    for (uint32_t d = 0; d < n->access[operand].rank; d++) {
        if (n->access[operand].index[d].label < 0) {
            key = hash_mix(key, hash_mix(d + 1, (uint64_t)n->access[operand].index[d].offset));
        }
    }
    uint32_t number = 0;
    if (!map_get(numbers, key, &number)) {
        number = (*next)++;
        map_put(numbers, key, number);
    }
    return number;
}

static PathLabels shifted(Arena *arena, PathLabels from, uint32_t base)
{
    uint32_t *at = ARENA_ARRAY(arena, from.n, uint32_t);
    for (uint32_t k = 0; k < from.n; k++) {
        at[k] = from.at[k] + base;
    }
    return (PathLabels){at, from.n};
}

typedef struct Terms {
    VEC(PathTerm) list;
    VEC(uint32_t) base;
    VEC(int64_t) sizes;
    Map numbers;
    uint32_t n_tensors;
    bool any_tree; /* some term has a choice of orders */
} Terms;

static void add_term(Arena *arena, const Graph *g, NodeRef ref, Terms *t)
{
    const Node *n = graph_node(g, ref);
    PathProblem p = path_problem_of(arena, g, ref);
    PathTerm term = {.n_operands = n->n_operands, .sum = t->list.n};
    uint32_t *tensor = ARENA_ARRAY(arena, n->n_operands, uint32_t);
    PathLabels *operands = ARENA_ARRAY(arena, n->n_operands, PathLabels);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        tensor[k] = tensor_number(&t->numbers, &t->n_tensors, n, k);
        operands[k] = shifted(arena, p.operands[k], t->sizes.n);
    }
    term.tensor = tensor;
    term.operands = operands;
    term.output = shifted(arena, p.output, t->sizes.n);
    vec_push(arena, &t->base, t->sizes.n);
    for (uint32_t l = 0; l < p.n_labels; l++) {
        vec_push(arena, &t->sizes, p.sizes[l]);
    }
    t->any_tree |= n->n_operands > 2;
    vec_push(arena, &t->list, term);
}

bool share_plan(Ctx *ctx, Arena *arena, const Graph *g, const PathControl *control, Sharing *out)
{
    *out = (Sharing){.arena = arena};
    uint32_t *term = ARENA_ARRAY(arena, g->nodes.n, uint32_t);
    Terms t = {0};
    map_init(&t.numbers, arena);
    out->term = term;
    uint32_t count = 0;
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        term[k] = PATH_NONE;
        count += is_term(graph_node(g, k)) ? 1 : 0;
    }
    if (decided_otherwise(control) || count < 2 || count > SHARE_MOST) {
        return true;
    }
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        if (is_term(graph_node(g, k))) {
            term[k] = t.list.n;
            add_term(arena, g, k, &t);
        }
    }
    if (!t.any_tree) {
        return true;
    }
    PathMulti m = {.n_terms = t.list.n, .terms = t.list.at, .n_labels = t.sizes.n,
                   .sizes = t.sizes.at, .budget = SHARE_BUDGET};
    if (!path_multi(&m, ctx, &out->plan)) {
        return false;
    }
    out->base = t.base.at;
    out->active = strcmp(out->plan.separate, out->plan.shared) != 0;
    map_init(&out->made_by_value, arena);
    return true;
}

PathTree share_tree(Sharing *s, uint32_t term, uint32_t n_operands)
{
    PathTree tree = {n_operands, n_operands - 1, ARENA_ARRAY(s->arena, n_operands, PathStep)};
    for (uint32_t k = 0; k < tree.n_steps; k++) {
        tree.steps[k] = (PathStep){s->plan.steps[term][k].a, s->plan.steps[term][k].b};
    }
    return tree;
}

NodeRef share_find(const Sharing *s, uint32_t term, uint32_t step, int32_t *labels, uint32_t *rank)
{
    const PathTermStep *t = &s->plan.steps[term][step];
    uint32_t at = 0;
    if (!map_get(&s->made_by_value, t->value, &at)) {
        return NODE_NONE;
    }
    const SharedValue *v = &s->made.at[at];
    *rank = v->rank;
    for (uint32_t d = 0; d < v->rank; d++) {
        labels[d] = (int32_t)(t->legs.at[v->leg[d]] - s->base[term]);
    }
    return v->node;
}

void share_add(Sharing *s, uint32_t term, uint32_t step, NodeRef node, const int32_t *labels,
               uint32_t rank)
{
    const PathTermStep *t = &s->plan.steps[term][step];
    uint32_t *leg = ARENA_ARRAY(s->arena, rank, uint32_t);
    if (t->value == PATH_NONE || t->legs.n != rank) {
        return;
    }
    for (uint32_t d = 0; d < rank; d++) {
        while (leg[d] < rank && t->legs.at[leg[d]] != s->base[term] + (uint32_t)labels[d]) {
            leg[d]++;
        }
        if (leg[d] == rank) {
            return;
        }
    }
    map_put(&s->made_by_value, t->value, s->made.n);
    SharedValue v = {t->value, node, rank, leg};
    vec_push(s->arena, &s->made, v);
}
