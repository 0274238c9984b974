/* SPDX-License-Identifier: Apache-2.0 */
/* What never changes in a search of several terms: keys of all sub-networks and of what is
 * around them, open labels, and which terms are alternatives. */
#include <string.h>

#include "path/terms/multi_parts.h"

/* ---- tables of a term ---- */

static bool term_labels(Multi *g, uint32_t term)
{
    const PathTerm *t = &g->m->terms[term];
    uint32_t own[64], n = 0, all = ((uint32_t)1 << t->n_operands) - 1;
    uint64_t inside[MULTI_MOST], output = 0;
    for (uint32_t k = 0; k <= t->n_operands; k++) {
        PathLabels at = k < t->n_operands ? t->operands[k] : t->output;
        uint64_t bits = 0;
        for (uint32_t i = 0; i < at.n; i++) {
            uint32_t l = 0;
            while (l < n && own[l] != at.at[i]) {
                l++;
            }
            if (l == n && n == 64) {
                return false;
            }
            if (l == n) {
                g->extent[term][n] = (double)g->m->sizes[at.at[i]];
                own[n++] = at.at[i];
            }
            bits |= (uint64_t)1 << l;
        }
        if (k < t->n_operands) {
            inside[k] = bits;
        } else {
            output = bits;
        }
    }
    for (uint32_t set = 1; set <= all; set++) {
        uint64_t in = 0, out = output;
        for (uint32_t k = 0; k < t->n_operands; k++) {
            in |= (set >> k) & 1 ? inside[k] : 0;
            out |= (set >> k) & 1 ? 0 : inside[k];
        }
        g->met[term][set] = in & out;
    }
    return true;
}

static void node_meet(MultiNode *n, uint32_t group)
{
    n->places += n->last != group + 1 ? 1 : 0;
    n->last = group + 1;
}

static bool term_tables(Multi *g, uint32_t term, uint32_t group)
{
    const PathTerm *t = &g->m->terms[term];
    Arena *arena = &g->ctx->arena;
    uint32_t all = ((uint32_t)1 << t->n_operands) - 1;
    g->value_key[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint32_t);
    g->map_key[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint32_t);
    g->met[term] = ARENA_ARRAY(arena, (size_t)all + 1, uint64_t);
    g->extent[term] = ARENA_ARRAY(arena, 64, double);
    if (!term_labels(g, term)) {
        return false;
    }
    for (uint32_t set = 1; set <= all; set++) {
        ArenaMark mark = arena_mark(g->scratch);
        uint32_t id = canon_key(&g->keys, g->m, t, set, false, g->scratch, NULL, NULL)->id;
        while (g->value.n <= id) {
            vec_push(arena, &g->value, (MultiNode){0});
        }
        g->value_key[term][set] = id;
        node_meet(&g->value.at[id], group);
        if (g->factor) {
            g->map_key[term][set] =
                canon_key(&g->keys, g->m, t, set, true, g->scratch, NULL, NULL)->id;
        }
        arena_reset(g->scratch, mark);
    }
    uint32_t n = 0;
    g->applies[term] = ARENA_ARRAY(arena, g->factor ? multi_pairs(t->n_operands) : 0, uint32_t);
    for (uint32_t set = 1; g->factor && set <= all; set++) {
        for (uint32_t inner = (set - 1) & set; inner != 0; inner = (inner - 1) & set) {
            uint32_t id = multi_apply(g, term, set, inner);
            node_meet(&g->apply.at[id], group);
            g->applies[term][n++] = id;
        }
    }
    g->pairs[term] = n;
    return true;
}

/* Alternatives; every term is its only choice where none are given. */
static void choice_tables(Multi *g, uint32_t *group_of)
{
    Arena *arena = &g->ctx->arena;
    uint32_t n = g->m->n_choices > 0 ? g->m->n_choices : g->m->n_terms;
    g->choices = ARENA_ARRAY(arena, n, PathChoice);
    g->group = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t);
    for (uint32_t k = 0; k < n; k++) {
        g->choices[k] = g->m->n_choices > 0 ? g->m->choices[k] : (PathChoice){k, k, 1};
        if (k == 0 || g->choices[k].group != g->choices[k - 1].group) {
            g->group[g->n_groups++] = k;
        }
        for (uint32_t i = 0; i < g->choices[k].n; i++) {
            group_of[g->choices[k].first + i] = g->n_groups - 1;
        }
    }
    g->group[g->n_groups] = n;
    g->taken = ARENA_ARRAY(arena, g->n_groups, uint32_t);
    for (uint32_t k = 0; k < g->n_groups; k++) {
        g->taken[k] = PATH_NONE;
    }
}

static uint64_t choice_work(const Multi *g, PathChoice c)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < c.n; i++) {
        work += multi_pairs(g->m->terms[c.first + i].n_operands);
    }
    return work;
}

/* Can every term of the choice be added to terms of other groups before its last step? */
static bool choice_meets(Multi *g, PathChoice c)
{
    for (uint32_t i = 0; i < c.n; i++) {
        uint32_t term = c.first + i, all = ((uint32_t)1 << g->m->terms[term].n_operands) - 1;
        bool meets = false;
        for (uint32_t inner = (all - 1) & all; inner != 0; inner = (inner - 1) & all) {
            uint32_t id = multi_apply(g, term, all, inner);
            meets = meets || g->apply.at[id].places > 1;
        }
        if (!meets) {
            return false;
        }
    }
    return true;
}

/* Drops the choices beyond the first of a group that nothing can come of. */
static void choices_prune(Multi *g)
{
    uint32_t n = 0;
    g->choice_work = ARENA_ARRAY(&g->ctx->arena, g->group[g->n_groups], uint64_t);
    for (uint32_t k = 0; k < g->n_groups; k++) {
        uint32_t first = g->group[k];
        g->group[k] = n;
        for (uint32_t i = first; i < g->group[k + 1]; i++) {
            if (i == first || (g->factor && choice_meets(g, g->choices[i]))) {
                g->choices[n++] = g->choices[i];
                g->choice_work[n - 1] = choice_work(g, g->choices[n - 1]);
            }
        }
    }
    g->group[g->n_groups] = n;
}

/* Once to count (`to` is null), once to fill: the groups of each node, by what is left of
 * choices.
 */
static void group_meet(MultiNode *n, uint32_t id, uint32_t group, uint32_t *at, uint32_t *to)
{
    if (n->last == group + 1) {
        return;
    }
    n->last = group + 1;
    if (to == NULL) {
        at[id + 1]++;
    } else {
        to[at[id]++] = group;
    }
}

static void groups_meet(Multi *g, uint32_t *value_to, uint32_t *apply_to)
{
    for (uint32_t i = 0; i < g->value.n; i++) {
        g->value.at[i].last = 0;
    }
    for (uint32_t i = 0; i < g->apply.n; i++) {
        g->apply.at[i].last = 0;
    }
    for (uint32_t k = 0; k < g->n_groups; k++) {
        for (uint32_t c = g->group[k]; c < g->group[k + 1]; c++) {
            for (uint32_t i = 0; i < g->choices[c].n; i++) {
                uint32_t t = g->choices[c].first + i, n = g->m->terms[t].n_operands;
                for (uint32_t set = 1; set < (uint32_t)1 << n; set++) {
                    uint32_t id = g->value_key[t][set];
                    if (!set_single(set)) {
                        group_meet(&g->value.at[id], id, k, g->value_at, value_to);
                    }
                }
                for (size_t p = 0; g->factor && p < g->pairs[t]; p++) {
                    uint32_t id = g->applies[t][p];
                    group_meet(&g->apply.at[id], id, k, g->apply_at, apply_to);
                }
            }
        }
    }
}

static uint32_t *offsets_end(uint32_t *at, uint32_t n, Arena *arena)
{
    for (uint32_t i = 0; i < n; i++) {
        at[i + 1] += at[i];
    }
    return ARENA_ARRAY(arena, at[n], uint32_t);
}

static void offsets_back(uint32_t *at, uint32_t n)
{
    memmove(at + 1, at, n * sizeof *at);
    at[0] = 0;
}

static void node_groups(Multi *g)
{
    Arena *arena = &g->ctx->arena;
    g->value_at = ARENA_ARRAY(arena, (size_t)g->value.n + 1, uint32_t);
    g->apply_at = ARENA_ARRAY(arena, (size_t)g->apply.n + 1, uint32_t);
    groups_meet(g, NULL, NULL);
    g->value_group = offsets_end(g->value_at, g->value.n, arena);
    g->apply_group = offsets_end(g->apply_at, g->apply.n, arena);
    groups_meet(g, g->value_group, g->apply_group);
    offsets_back(g->value_at, g->value.n);
    offsets_back(g->apply_at, g->apply.n);
    for (uint32_t i = 0; i < g->value.n; i++) {
        g->value.at[i].places = g->value_at[i + 1] - g->value_at[i];
    }
    for (uint32_t i = 0; i < g->apply.n; i++) {
        g->apply.at[i].places = g->apply_at[i + 1] - g->apply_at[i];
    }
}

bool multi_begin(Multi *g)
{
    Arena *arena = &g->ctx->arena;
    uint32_t n = g->m->n_terms, most = 1;
    symtable_init(&g->keys, arena);
    map_init(&g->apply_of, arena);
    g->value_key = ARENA_ARRAY(arena, n, uint32_t *);
    g->applies = ARENA_ARRAY(arena, n, uint32_t *);
    g->pairs = ARENA_ARRAY(arena, n, uint32_t);
    g->map_key = ARENA_ARRAY(arena, n, uint32_t *);
    g->met = ARENA_ARRAY(arena, n, uint64_t *);
    g->extent = ARENA_ARRAY(arena, n, double *);
    g->held = ARENA_ARRAY(arena, n, Held);
    uint32_t *group_of = ARENA_ARRAY(arena, n, uint32_t);
    choice_tables(g, group_of);
    uint64_t pairs = 0;
    for (uint32_t t = 0; t < n && g->m->terms[t].n_operands <= MULTI_MOST; t++) {
        pairs += multi_pairs(g->m->terms[t].n_operands);
    }
    g->factor = g->m->factor && pairs <= MULTI_PAIRS;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t k = g->m->terms[t].n_operands;
        if (k < 1 || k > MULTI_MOST || !term_tables(g, t, group_of[t])) {
            return diag_refuse_limit(
                &g->ctx->diags, E_LIMIT_SIZE, (Span){0, 0, 0},
                "term %u has %u operands; terms planned together have 1 to %d, and 64 "
                "labels at most",
                t + 1, k, MULTI_MOST);
        }
        most = k > most ? k : most;
    }
    choices_prune(g);
    node_groups(g);
    g->best = ARENA_ARRAY(arena, (size_t)1 << most, double);
    g->spine_best = ARENA_ARRAY(arena, (size_t)1 << most, double);
    g->split = ARENA_ARRAY(arena, (size_t)1 << most, uint32_t);
    g->spine_split = ARENA_ARRAY(arena, (size_t)1 << most, uint32_t);
    return true;
}
