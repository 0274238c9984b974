/* SPDX-License-Identifier: Apache-2.0 */
/* From an equation, or the contraction of a kernel, to the problem that is searched: one form for both, so that one's plan is
 * the other's. Gone are dimensions of extent 1 (stretched ones too, which their operand does not have), repeats inside an operand
 * and labels that one operand alone has and the output lacks: those are summed before the first step. Scalars are factors of
 * the result. Labels are numbered as they come. */
#include <string.h>

#include "path/prepare.h"

typedef struct Census {
    uint32_t *holders; /* by label: operands that have it, the output counting as one */
    uint32_t *last;    /* operand seen last + 1 */
    uint32_t *number;  /* in the prepared problem, + 1 */
} Census;

static bool is_held(const PathSource *s, int32_t label)
{
    return label >= 0 && s->sizes[label] != 1;
}

static Census census_of(const PathSource *s, Arena *arena)
{
    Census c = {ARENA_ARRAY(arena, s->n_labels, uint32_t),
                ARENA_ARRAY(arena, s->n_labels, uint32_t),
                ARENA_ARRAY(arena, s->n_labels, uint32_t)};
    for (uint32_t k = 0; k < s->n_operands; k++) {
        for (uint32_t d = 0; d < s->operands[k].rank; d++) {
            int32_t l = s->operands[k].label[d];
            if (is_held(s, l) && c.last[l] != k + 1) {
                c.last[l] = k + 1;
                c.holders[l]++;
            }
        }
    }
    for (uint32_t d = 0; d < s->rank; d++) {
        c.holders[s->output[d]]++;
    }
    memset(c.last, 0, s->n_labels * sizeof *c.last);
    return c;
}

static PathLabels operand_labels(const PathSource *s, Census *c, uint32_t k, uint32_t *n_labels,
                                 Arena *arena)
{
    uint32_t *at = ARENA_ARRAY(arena, s->operands[k].rank, uint32_t), n = 0;
    for (uint32_t d = 0; d < s->operands[k].rank; d++) {
        int32_t l = s->operands[k].label[d];
        if (!is_held(s, l) || c->holders[l] < 2 || c->last[l] == k + 1) {
            continue;
        }
        c->last[l] = k + 1;
        if (c->number[l] == 0) {
            c->number[l] = ++*n_labels;
        }
        at[n++] = c->number[l] - 1;
    }
    return (PathLabels){at, n};
}

PathProblem path_prepare(const PathSource *s, Arena *arena, const uint32_t **origin)
{
    Census c = census_of(s, arena);
    PathProblem p = {.n_operands = s->n_operands,
                     .typical = s->typical,
                     .place = s->place,
                     .n_given = s->place == NULL ? s->n_operands : s->n_given,
                     .equation = s->equation};
    PathLabels *operands = ARENA_ARRAY(arena, s->n_operands, PathLabels);
    for (uint32_t k = 0; k < s->n_operands; k++) {
        operands[k] = operand_labels(s, &c, k, &p.n_labels, arena);
    }
    uint32_t *output = ARENA_ARRAY(arena, s->rank, uint32_t);
    for (uint32_t d = 0; d < s->rank; d++) {
        if (c.number[s->output[d]] > 0) {
            output[p.output.n++] = c.number[s->output[d]] - 1;
        }
    }
    int64_t *sizes = ARENA_ARRAY(arena, p.n_labels, int64_t);
    const char **names = ARENA_ARRAY(arena, p.n_labels, const char *);
    uint32_t *from = ARENA_ARRAY(arena, p.n_labels, uint32_t);
    for (uint32_t l = 0; l < s->n_labels; l++) {
        if (c.number[l] > 0) {
            sizes[c.number[l] - 1] = s->sizes[l];
            names[c.number[l] - 1] = s->names == NULL ? NULL : s->names[l];
            from[c.number[l] - 1] = l;
        }
    }
    p.operands = operands;
    p.output.at = output;
    p.sizes = sizes;
    p.names = s->names == NULL ? NULL : names;
    if (origin != NULL) {
        *origin = from;
    }
    return p;
}

PathTree path_tree_given(const PathProblem *p, const PathTree *t, Arena *arena)
{
    if (p->place == NULL) {
        return *t;
    }
    uint32_t n = p->n_given;
    PathTree all = {n, 0, ARENA_ARRAY(arena, n, PathStep)};
    uint8_t *is_tensor = ARENA_ARRAY(arena, n, uint8_t);
    for (uint32_t k = 0; k < t->n_leaves; k++) {
        is_tensor[p->place[k]] = 1;
    }
    for (; all.n_steps < t->n_steps; all.n_steps++) {
        uint32_t a = t->steps[all.n_steps].a, b = t->steps[all.n_steps].b;
        all.steps[all.n_steps] =
            (PathStep){a < t->n_leaves ? p->place[a] : n + (a - t->n_leaves),
                       b < t->n_leaves ? p->place[b] : n + (b - t->n_leaves)};
    }
    uint32_t factor = UINT32_MAX; /* scalars among themselves, then times the result */
    uint32_t result = t->n_steps > 0    ? n + t->n_steps - 1
                      : t->n_leaves > 0 ? p->place[0]
                                        : UINT32_MAX;
    for (uint32_t k = 0; k <= n; k++) {
        uint32_t next = k == n ? result : k;
        if ((k < n && is_tensor[k]) || next == UINT32_MAX) {
            continue;
        }
        if (factor != UINT32_MAX) {
            all.steps[all.n_steps] = (PathStep){factor, next};
            next = n + all.n_steps++;
        }
        factor = next;
    }
    return all;
}

static PathTree path_tree_own(const PathProblem *p, const PathTree *t, Arena *arena)
{
    if (p->place == NULL) {
        return *t;
    }
    PathTree own = {p->n_operands, 0, ARENA_ARRAY(arena, p->n_operands, PathStep)};
    uint32_t *of = ARENA_ARRAY(arena, (size_t)t->n_leaves + t->n_steps, uint32_t);
    memset(of, 0xff, ((size_t)t->n_leaves + t->n_steps) * sizeof *of);
    for (uint32_t k = 0; k < p->n_operands; k++) {
        of[p->place[k]] = k;
    }
    for (uint32_t s = 0; s < t->n_steps; s++) {
        uint32_t a = of[t->steps[s].a], b = of[t->steps[s].b];
        if (a != UINT32_MAX && b != UINT32_MAX) {
            own.steps[own.n_steps] = (PathStep){a, b};
            of[t->n_leaves + s] = own.n_leaves + own.n_steps++;
        } else {
            of[t->n_leaves + s] = a == UINT32_MAX ? b : a;
        }
    }
    return own;
}

bool path_parse_given(const char *text, const char *who, const PathProblem *p, Ctx *ctx,
                      PathTree *out)
{
    PathTree all;
    uint32_t n = p->place == NULL ? p->n_operands : p->n_given;
    if (!path_parse_from(text, who, n, ctx, &all)) {
        return false;
    }
    *out = path_tree_own(p, &all, &ctx->arena);
    return true;
}
