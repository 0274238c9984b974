/* SPDX-License-Identifier: Apache-2.0 */
/* Trees for many terms that share work: local search over the nodes of multi_parts.h. A group
 * of alternatives is taken out, the cheapest way back in is found exactly over all subsets of
 * each term, given what the other terms hold (that costs nothing), and put in again; the total
 * never rises. To find moves that only pay when several terms make them, early passes divide a
 * cost by the number of places that could use it. When nothing moves any more come trials: one
 * node at a time is forbidden, or all but given away, and what comes of it is kept if it is
 * better. Work is counted in splits. */
#include "path/terms/multi_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double union_cost(const Multi *g, uint32_t term, uint32_t a, uint32_t b)
{
    double product = 1.0;
    for (uint64_t u = g->met[term][a] | g->met[term][b]; u != 0; u &= u - 1) {
        product *= g->extent[term][__builtin_ctzll(u)];
    }
    return fmin(product, 1e300);
}

uint32_t multi_apply(Multi *g, uint32_t term, uint32_t set, uint32_t inner)
{
    uint64_t key = ((uint64_t)g->map_key[term][set] << 32) | g->map_key[term][inner];
    uint32_t id;
    if (!map_get(&g->apply_of, key, &id)) {
        id = g->apply.n;
        map_put(&g->apply_of, key, id);
        vec_push(&g->ctx->arena, &g->apply,
                 ((MultiNode){.cost = union_cost(g, term, inner, set ^ inner)}));
    }
    return id;
}

/* ---- what is held ---- */

static void node_note(Multi *g, MultiNode *n)
{
    if (g->trial) {
        vec_push(g->scratch, &g->nodes, ((UndoNode){n, *n}));
    }
}

static void held_note(Multi *g, uint32_t term)
{
    if (g->trial) {
        vec_push(g->scratch, &g->helds, ((UndoHeld){term, g->held[term]}));
    }
}

static void value_take(Multi *g, uint32_t term, uint32_t set)
{
    if (set_single(set)) {
        return;
    }
    MultiNode *v = &g->value.at[g->value_key[term][set]];
    node_note(g, v);
    if (v->refs++ > 0) {
        return;
    }
    uint32_t part = g->split[set];
    v->cost = union_cost(g, term, part, set ^ part);
    v->term = term;
    v->set = set;
    v->part = part;
    g->total += v->cost;
    for (int i = 0; i < 2; i++) {
        uint32_t half = i == 0 ? part : set ^ part;
        v->child[i] = set_single(half) ? PATH_NONE : g->value_key[term][half];
        value_take(g, term, half); /* as deep as a term has operands, at most MULTI_MOST */
    }
}

static void value_give(Multi *g, uint32_t id)
{
    if (id == PATH_NONE) {
        return;
    }
    node_note(g, &g->value.at[id]);
    if (--g->value.at[id].refs > 0) {
        return;
    }
    g->total -= g->value.at[id].cost;
    value_give(g, g->value.at[id].child[0]);
    value_give(g, g->value.at[id].child[1]);
}

void multi_term_give(Multi *g, uint32_t term)
{
    Held *h = &g->held[term];
    held_note(g, term);
    for (uint32_t i = 0; i + 1 < h->n_spine; i++) {
        uint32_t id = multi_apply(g, term, h->spine[i], h->spine[i + 1]);
        MultiNode *f = &g->apply.at[id];
        node_note(g, f);
        if (--f->refs == 0) {
            g->total -= f->cost;
            value_give(g, f->child[0]);
        }
    }
    if (h->n_spine > 0) {
        uint32_t last = h->spine[h->n_spine - 1];
        value_give(g, set_single(last) ? PATH_NONE : g->value_key[term][last]);
    }
    h->n_spine = 0;
}

void multi_term_take(Multi *g, uint32_t term)
{
    Held *h = &g->held[term];
    held_note(g, term);
    uint32_t set = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    for (;;) {
        h->spine[h->n_spine++] = set;
        uint32_t inner = g->spine_split[set];
        if (inner == 0) {
            break;
        }
        uint32_t id = multi_apply(g, term, set, inner), rest = set ^ inner;
        MultiNode *f = &g->apply.at[id];
        node_note(g, f);
        if (f->refs++ == 0) {
            g->total += f->cost;
            f->term = term;
            f->set = set;
            f->part = inner;
            f->child[0] = set_single(rest) ? PATH_NONE : g->value_key[term][rest];
            value_take(g, term, rest);
        }
        set = inner;
    }
    value_take(g, term, set);
}

/* ---- the cheapest way in ---- */

static double fair(const Multi *g, const MultiNode *n, double cost)
{
    cost *= n->weight != 0.0 ? n->weight : 1.0;
    return cost / (1.0 + g->share * (double)(n->places > 0 ? n->places - 1 : 0));
}

void multi_term_values(Multi *g, uint32_t term)
{
    uint32_t all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    for (uint32_t set = 1; set <= all; set++) {
        g->best[set] = 0.0;
        g->split[set] = 0;
        if (set_single(set)) {
            continue;
        }
        const MultiNode *v = &g->value.at[g->value_key[term][set]];
        double least = INFINITY;
        uint32_t rest = set & (set - 1);
        for (uint32_t b = rest; b != 0; b = (b - 1) & rest) {
            double cost = g->best[b] + g->best[set ^ b];
            if (cost < least) {
                cost += fair(g, v, union_cost(g, term, b, set ^ b));
                if (cost < least) {
                    least = cost;
                    g->split[set] = b;
                }
            }
        }
        g->best[set] = v->refs > 0 && v->weight == 0.0 ? 0.0 : least;
    }
}

static void term_spine(Multi *g, uint32_t term)
{
    uint32_t all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
    const uint32_t *apply = g->applies[term];
    for (uint32_t set = 1; set <= all; set++) {
        g->spine_best[set] = g->best[set];
        g->spine_split[set] = 0;
        if (!g->factor) {
            continue;
        }
        for (uint32_t inner = (set - 1) & set; inner != 0; inner = (inner - 1) & set) {
            const MultiNode *f = &g->apply.at[*apply++];
            double cost = g->spine_best[inner];
            cost += f->refs > 0 && f->weight == 0.0
                        ? 0.0
                        : fair(g, f, f->cost) + g->best[set ^ inner];
            if (cost < g->spine_best[set] - 1e-12 * fabs(g->spine_best[set])) {
                g->spine_best[set] = cost;
                g->spine_split[set] = inner;
            }
        }
    }
}

/* ---- passes ---- */

static void choice_give(Multi *g, uint32_t choice)
{
    for (uint32_t i = 0; i < g->choices[choice].n; i++) {
        multi_term_give(g, g->choices[choice].first + i);
    }
}

/* Takes the terms of a choice, each at its best; returns what was to be paid, as shared. */
static double choice_take(Multi *g, uint32_t choice)
{
    double cost = 0.0;
    for (uint32_t i = 0; i < g->choices[choice].n; i++) {
        uint32_t term = g->choices[choice].first + i;
        uint32_t all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
        multi_term_values(g, term);
        term_spine(g, term);
        cost += g->spine_best[all];
        multi_term_take(g, term);
    }
    return cost;
}

static void group_give(Multi *g, uint32_t group)
{
    if (g->trial) {
        vec_push(g->scratch, &g->takens, ((UndoTaken){group, g->taken[group]}));
    }
    if (g->taken[group] != PATH_NONE) {
        choice_give(g, g->taken[group]);
    }
    g->taken[group] = PATH_NONE;
}

static void group_take(Multi *g, uint32_t group)
{
    uint32_t first = g->group[group], n = g->group[group + 1] - first, pick = first;
    double least = INFINITY;
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        double cost = choice_take(g, first + i);
        choice_give(g, first + i);
        if (cost < least - 1e-12 * fabs(cost)) {
            least = cost;
            pick = first + i;
        }
    }
    choice_take(g, pick);
    g->taken[group] = pick;
}

static void regroup(Multi *g, uint32_t group)
{
    group_give(g, group);
    group_take(g, group);
    for (uint32_t i = g->group[group]; i < g->group[group + 1]; i++) {
        g->work += g->choice_work[i];
    }
}

static void pass(Multi *g)
{
    for (uint32_t k = 0; k < g->n_groups; k++) {
        regroup(g, k);
    }
}

static void settle(Multi *g)
{
    double before = INFINITY;
    g->share = 0.0;
    for (int i = 0; i < 40 && g->total < before * (1.0 - 1e-9); i++) {
        before = g->total;
        pass(g);
    }
}

/* Passes with the given first share, falling to none; returns the total. */
static double descend(Multi *g, double share)
{
    for (uint32_t k = 0; k < g->n_groups; k++) {
        group_give(g, k);
    }
    g->total = 0.0;
    for (g->share = share; g->share > 0.02; g->share *= 0.6) {
        pass(g);
    }
    settle(g);
    return g->total;
}

/* ---- trials ---- */

static void trial_undo(Multi *g)
{
    for (uint32_t i = g->nodes.n; i-- > 0;) {
        *g->nodes.at[i].node = g->nodes.at[i].was;
    }
    for (uint32_t i = g->helds.n; i-- > 0;) {
        g->held[g->helds.at[i].term] = g->helds.at[i].was;
    }
    for (uint32_t i = g->takens.n; i-- > 0;) {
        g->taken[g->takens.at[i].group] = g->takens.at[i].was;
    }
}

#define FORBID  1e4
#define PROMOTE (-1e-3)
#define LARGE   1e-3 /* of the total: worth passes over all */
#define HOPE    0.02 /* a trial that is worse by more is not looked into */

/* Forbids a node that is held, or all but gives one away that is not, for the groups that could
 * hold it; whether what comes of it was better, and is kept. */
static bool trial(Multi *g, uint32_t at)
{
    bool is_value = at < g->value.n;
    uint32_t id = is_value ? at : at - g->value.n;
    MultiNode *node = is_value ? &g->value.at[id] : &g->apply.at[id];
    const uint32_t *of = is_value ? g->value_group : g->apply_group;
    const uint32_t *offset = is_value ? g->value_at : g->apply_at;
    double before = g->total;
    g->nodes.n = g->helds.n = g->takens.n = 0;
    g->trial = true;
    double weight = node->refs > 0 ? FORBID : PROMOTE;
    bool large = node->cost > LARGE * g->total;
    for (int round = 0; round < 3; round++) {
        node->weight = round < 2 ? weight : 0.0;
        for (uint32_t i = offset[id]; round == 0 && i < offset[id + 1]; i++) {
            group_give(g,
                       of[i]); /* all together: what they hold in common keeps none of them */
        }
        for (uint32_t i = offset[id]; i < offset[id + 1]; i++) {
            regroup(g, of[i]);
        }
        for (uint32_t k = 0; large && round == 0 && k < g->n_groups; k++) {
            regroup(g, k);
        }
    }
    if (g->total < before * (1.0 + HOPE)) {
        settle(g);
    }
    g->trial = false;
    if (g->total < before * (1.0 - 1e-9)) {
        return true;
    }
    trial_undo(g);
    node->weight = 0.0;
    g->total = before;
    return false;
}

typedef struct Candidate {
    double worth;
    uint32_t at; /* value, or number of values + apply */
} Candidate;

static int by_worth(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    return x->worth != y->worth ? (x->worth < y->worth ? 1 : -1)
                                : (x->at > y->at) - (x->at < y->at);
}

/* Nodes that several groups could hold, the costliest first, until none helps or the work is
 * done.
 */
static void trials(Multi *g, uint64_t budget)
{
    VEC(Candidate) list = {0};
    for (uint32_t i = 0; i < g->value.n + g->apply.n; i++) {
        const MultiNode *n = i < g->value.n ? &g->value.at[i] : &g->apply.at[i - g->value.n];
        if (n->places > 1 && n->cost > 1e-6 * g->total && n->cost < g->total) {
            Candidate c = {n->cost * (double)n->places, i};
            vec_push(g->scratch, &list, c);
        }
    }
    if (list.n == 0) {
        return;
    }
    qsort(list.at, list.n, sizeof *list.at, by_worth);
    bool better = true;
    for (uint64_t until = g->work + budget; better && g->work < until;) {
        better = false;
        for (uint32_t i = 0; i < list.n && g->work < until; i++) {
            better |= trial(g, list.at[i].at);
        }
    }
}

static void descend_best(Multi *g, uint64_t budget)
{
    static const double shares[] = {0.0, 0.2, 1.0, 4.0};
    double best = INFINITY;
    size_t pick = 0;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double total = descend(g, shares[i]);
        if (total < best * (1.0 - 1e-12)) {
            best = total;
            pick = i;
        }
    }
    descend(g, shares[pick]);
    trials(g, budget);
}

bool path_multi(const PathMulti *m, Ctx *ctx, PathMultiResult *out)
{
    Arena scratch;
    memset(out, 0, sizeof *out);
    arena_init(&scratch, &ctx->budget);
    Multi g = {.m = m, .ctx = ctx, .scratch = &scratch};
    bool ok = multi_begin(&g);
    if (ok) {
        multi_separate(&g, out);
        descend_best(&g, m->budget);
        multi_emit(&g, out);
    }
    arena_release(&scratch);
    return ok;
}
