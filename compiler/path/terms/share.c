/* SPDX-License-Identifier: Apache-2.0 */
/* See share.h. The terms go to multi.c with their labels numbered apart; operands are equal when they are the same node
 * read at positions in the same dimensions, in the same accumulator type. */
#include "path/terms/share.h"

#include <string.h>

/* Contractions of one kernel that are planned together: more are planned one by one. */
#define SHARE_MOST 512
/* Splits weighed beyond a first descent: well under a tenth of a second. */
#define SHARE_BUDGET ((uint64_t)1 << 22)
/* Splits of all terms, for factoring: some tens of mebibytes. */
#define SHARE_PAIRS ((uint64_t)1 << 18)

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
    VEC(NodeRef) node;
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
    vec_push(arena, &t->node, ref);
    for (uint32_t l = 0; l < p.n_labels; l++) {
        vec_push(arena, &t->sizes, p.sizes[l]);
    }
    t->any_tree |= n->n_operands > 2;
    vec_push(arena, &t->list, term);
}

/* ---- with sums ---- */

static PathOrder whole_order(Arena *arena, uint32_t rank, double coef)
{
    uint32_t *axis = ARENA_ARRAY(arena, rank, uint32_t);
    for (uint32_t d = 0; d < rank; d++) {
        axis[d] = d;
    }
    return (PathOrder){coef, axis};
}

/* A result for each sum and for each contraction in none; pieces of a sum are added to it in
 * their orders. */
static PathSummand *summands(const Sharing *s, const Terms *t)
{
    PathSummand *list = ARENA_ARRAY(s->arena, t->list.n, PathSummand);
    uint32_t n_sums = s->sums.list.n;
    for (uint32_t k = 0; k < t->list.n; k++) {
        uint32_t sum = s->sums.of[t->node.at[k]];
        list[k].term = t->list.at[k];
        VEC(PathOrder) orders = {0};
        list[k].term.sum = sum != 0 ? sum - 1 : n_sums + k;
        for (uint32_t i = 0; sum != 0 && i < s->sums.list.at[sum - 1].pieces.n; i++) {
            const SumPiece *p = &s->sums.list.at[sum - 1].pieces.at[i];
            if (p->node == t->node.at[k]) {
                PathOrder order = {p->coef, p->axis};
                vec_push(s->arena, &orders, order);
            }
        }
        if (sum == 0) {
            vec_push(s->arena, &orders, whole_order(s->arena, t->list.at[k].output.n, 1.0));
        }
        list[k].n_orders = orders.n;
        list[k].orders = orders.at;
    }
    return list;
}

/* Sums that cost this much less by factoring are rebuilt. */
#define FACTOR_GAIN 0.02 /* log10: 5 % */

static bool plan_sums(Ctx *ctx, const Terms *t, const PathMulti *plain, Sharing *out)
{
    PathMultiResult plan;
    PathMerged merged;
    path_merge(plain, summands(out, t), t->list.n, ctx, &merged);
    PathMulti m = {.n_terms = merged.n_terms,
                   .terms = merged.terms,
                   .n_labels = plain->n_labels,
                   .sizes = plain->sizes,
                   .factor = true,
                   .budget = SHARE_BUDGET,
                   .n_choices = merged.n_choices,
                   .choices = merged.choices};
    uint64_t pairs = 0;
    for (uint32_t k = 0; k < m.n_terms; k++) {
        uint64_t one = 1;
        for (uint32_t i = 0; i < m.terms[k].n_operands; i++) {
            one *= 3;
        }
        pairs += one;
    }
    if (pairs > SHARE_PAIRS) {
        return true;
    }
    if (!path_multi(&m, ctx, &plan)) {
        return false;
    }
    if (plan.log10_shared > out->plan.log10_shared - FACTOR_GAIN) {
        return true;
    }
    uint32_t *base = ARENA_ARRAY(out->arena, merged.n_terms, uint32_t);
    NodeRef *node = ARENA_ARRAY(out->arena, merged.n_terms, NodeRef);
    for (uint32_t k = merged.n_terms; k-- > 0;) {
        uint32_t from = merged.summand[k];
        base[k] = t->base.at[from];
        node[k] = t->node.at[from];
        if (plan.steps[k] != NULL) {
            out->term[node[k]] = k;
        }
    }
    plan.separate = out->plan.separate; /* of the contractions as they were written */
    out->plan = plan;
    out->base = base;
    out->node = node;
    out->merged = merged;
    out->factored = true;
    return true;
}

bool share_plan(Ctx *ctx, Arena *arena, const Graph *g, const PathControl *control,
                Sharing *out)
{
    *out = (Sharing){.arena = arena};
    out->term = ARENA_ARRAY(arena, g->nodes.n, uint32_t);
    Terms t = {0};
    map_init(&t.numbers, arena);
    uint32_t count = 0;
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        out->term[k] = PATH_NONE;
        count += is_term(graph_node(g, k)) ? 1 : 0;
    }
    if (decided_otherwise(control) || count < 2 || count > SHARE_MOST) {
        return true;
    }
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        if (is_term(graph_node(g, k))) {
            out->term[k] = t.list.n;
            add_term(arena, g, k, &t);
        }
    }
    if (!control->no_factor) {
        out->sums = sums_find(arena, g);
    }
    if (!t.any_tree && out->sums.list.n == 0) {
        return true;
    }
    PathMulti m = {.n_terms = t.list.n,
                   .terms = t.list.at,
                   .n_labels = t.sizes.n,
                   .sizes = t.sizes.at,
                   .budget = SHARE_BUDGET};
    out->base = t.base.at;
    out->node = t.node.at;
    map_init(&out->made_by_value, arena);
    map_init(&out->told, arena);
    if (!path_multi(&m, ctx, &out->plan) ||
        (out->sums.list.n > 0 && !plan_sums(ctx, &t, &m, out))) {
        return false;
    }
    out->active = strcmp(out->plan.separate, out->plan.shared) != 0;
    out->report = (PathTogether){g->name, out->plan.separate, out->plan.shared, {0}, {0}};
    return true;
}

/* ---- the report ---- */

static const char *operand_name(const Sharing *s, const Graph *g, NodeRef ref)
{
    const Node *n = graph_node(g, ref);
    if (n->op == OP_INPUT) {
        return g->params.at[n->param].name->text;
    }
    return n->name != NULL ? n->name->text : str_format(s->arena, "%%%u", ref);
}

const char *share_describe(const Sharing *s, const Graph *g, uint32_t term, uint32_t at)
{
    const Node *n = graph_node(g, s->node[term]);
    const PathTermStep *steps = s->plan.steps[term];
    uint32_t stack[2 * MULTI_MOST], depth = 0;
    Text text = text_new(s->arena);
    stack[depth++] = at;
    while (depth > 0) {
        at = stack[--depth];
        if (at < n->n_operands) {
            text_printf(&text, "%s%s", text.n > 0 ? " * " : "",
                        operand_name(s, g, n->operand[at]));
        } else {
            stack[depth++] = steps[at - n->n_operands].b;
            stack[depth++] = steps[at - n->n_operands].a;
        }
    }
    return text.at;
}

PathTree share_tree(Sharing *s, uint32_t term, uint32_t n_operands)
{
    PathTree tree = {n_operands, n_operands - 1, ARENA_ARRAY(s->arena, n_operands, PathStep)};
    for (uint32_t k = 0; k < tree.n_steps; k++) {
        tree.steps[k] = (PathStep){s->plan.steps[term][k].a, s->plan.steps[term][k].b};
    }
    return tree;
}

NodeRef share_find(Sharing *s, const Graph *g, uint32_t term, uint32_t step, int32_t *labels,
                   uint32_t *rank)
{
    const PathTermStep *t = &s->plan.steps[term][step];
    uint32_t at = 0;
    if (!map_get(&s->made_by_value, t->value, &at)) {
        return NODE_NONE;
    }
    if (!map_get(&s->told, t->value, &at)) {
        uint32_t n = graph_node(g, s->node[term])->n_operands;
        map_put(&s->told, t->value, 0);
        vec_push(s->arena, &s->report.shared, share_describe(s, g, term, n + step));
    }
    map_get(&s->made_by_value, t->value, &at);
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
