/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy table, and the way from a problem to a result: prepare, search each connected network, join the results,
 * order the steps, account. */
#include "path/search.h"

#include <string.h>

/* Up to here disconnected networks are searched whole: outer products of parts may pay inside. */
#define WHOLE 20

const PathStrategy path_strategies[] = {
    {"auto", "exact where that is cheap, else all of the others below for starts, then annealing", auto_search},
    {"exact", "the optimum over all trees, outer products included; up to 22 operands", exact_search},
    {"greedy", "one pass: the pair whose result is smallest against what it replaces", greedy_search},
    {"random-greedy", "many greedy passes with bent scores and noise", random_greedy_search},
    {"eliminate", "elimination orders of labels, smallest product first", eliminate_search},
    {"bisect", "recursive bisection of the operands along light cuts", bisect_search},
    {"anneal", "annealing and subtree re-optimisation from one greedy tree", anneal_search},
};
const uint32_t path_strategy_count = sizeof path_strategies / sizeof *path_strategies;

const PathStrategy *path_strategy_find(const char *name)
{
    for (uint32_t i = 0; i < path_strategy_count; i++) {
        if (strcmp(path_strategies[i].name, name) == 0) {
            return &path_strategies[i];
        }
    }
    return NULL;
}

void search_progress(Search *s, const char *strategy, Score best)
{
    if (s->options->progress != NULL) {
        PathProgress now = {strategy, best.cost * 0.30102999566398119521, best.largest, s->done, s->planned};
        s->options->progress(s->options->user, &now);
    }
}

typedef struct Job {
    Search search;
    const PathProblem *p;
    const PathStrategy *row;
    Prepared prepared;
    Reduced reduced;
    uint32_t n_steps;
    PathStep *steps;
    uint32_t *root; /* by part: its result */
    double worst;   /* cost of the costliest part */
} Job;

/* Steps of a part, in the numbers of the whole tree. */
static void job_append(Job *j, uint32_t part, const PathStep *steps)
{
    const Part *at = &j->reduced.parts[part];
    uint32_t n = at->net.n, base = j->p->n_operands + j->n_steps;
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t a = steps[k].a, b = steps[k].b;
        j->steps[j->n_steps++] = (PathStep){a < n ? at->operand[a] : base + (a - n),
                                            b < n ? at->operand[b] : base + (b - n)};
    }
    j->root[part] = n == 1 ? at->operand[0] : j->p->n_operands + j->n_steps - 1;
}

static bool job_part(Job *j, uint32_t part, const char **won, bool *proved)
{
    const Net *net = &j->reduced.parts[part].net;
    ArenaMark mark = arena_mark(j->search.arena);
    PathStep *steps = ARENA_ARRAY(j->search.arena, net->n, PathStep);
    j->search.won = NULL;
    j->search.proved = net->n <= 2;
    bool found = net->n == 1 || j->row->search(&j->search, net, steps);
    if (found) {
        job_append(j, part, steps);
        double cost = net->n > 1 ? tree_score(&j->search.model, net, steps, j->search.arena).cost : -1.0;
        if (cost > j->worst) {
            j->worst = cost;
            *won = j->search.won != NULL ? j->search.won : j->row->name;
        }
        *proved = *proved && j->search.proved;
    }
    arena_reset(j->search.arena, mark);
    return found;
}

/* The results of the parts share no label: smallest first. */
static void job_join(Job *j)
{
    uint32_t n = j->reduced.n_parts, total = 0;
    Arena *arena = j->search.arena;
    for (uint32_t i = 0; i < n; i++) {
        total += j->reduced.parts[i].net.n_labels;
    }
    uint32_t *start = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t), *label = ARENA_ARRAY(arena, total, uint32_t);
    double *weight = ARENA_ARRAY(arena, total, double);
    uint8_t *open = ARENA_ARRAY(arena, total, uint8_t);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Net *net = &j->reduced.parts[i].net;
        start[i] = at;
        for (uint32_t l = 0; l < net->n_labels; l++) {
            if (net->open[l]) {
                weight[at] = net->weight[l];
                open[at] = 1;
                label[at] = at;
                at++;
            }
        }
    }
    start[n] = at;
    Net net = {n, at, start, label, weight, open};
    Live v;
    live_init(&v, &net, arena);
    PathStep *steps = ARENA_ARRAY(arena, n, PathStep);
    uint32_t n_join = 0, base = j->p->n_operands + j->n_steps;
    live_finish(&v, steps, &n_join);
    for (uint32_t k = 0; k < n_join; k++) {
        uint32_t a = steps[k].a, b = steps[k].b;
        j->steps[j->n_steps++] = (PathStep){a < n ? j->root[a] : base + (a - n),
                                            b < n ? j->root[b] : base + (b - n)};
    }
}

/* The whole network at once, since a sliced label of one part multiplies the others. */
static bool job_sliced(Job *j, PathResult *out)
{
    Search *s = &j->search;
    const Part *part = &j->reduced.parts[0];
    ArenaMark mark = arena_mark(s->arena);
    PathStep *steps = ARENA_ARRAY(s->arena, part->net.n, PathStep);
    s->sliced = ARENA_ARRAY(s->arena, part->net.n_labels, uint8_t);
    s->model.limit = INFINITY;
    uint32_t effort = s->effort;
    s->effort = effort > 0;
    bool found = auto_search(s, &part->net, steps);
    s->effort = effort;
    s->model.limit = log2((double)s->options->memory_limit);
    slice_search(s, &part->net, steps, search_budget(s, &part->net));
    job_append(j, 0, steps);
    for (uint32_t l = 0; l < part->net.n_labels; l++) {
        if (s->sliced[l]) {
            out->sliced[out->n_sliced++] = j->prepared.origin[part->label[l]];
        }
    }
    arena_reset(s->arena, mark);
    return found;
}

bool path_search(const PathProblem *p, const PathOptions *o, Ctx *ctx, PathResult *out)
{
    memset(out, 0, sizeof *out);
    Job j = {.p = p, .row = path_strategy_find(o->search != NULL ? o->search : "auto"), .worst = -1e300};
    if (j.row == NULL) {
        diag_error(&ctx->diags, E_ARGUMENTS, (Span){0, 0, 0}, "no search is named '%s'", o->search);
        return false;
    }
    Arena *arena = &ctx->arena;
    out->tree = (PathTree){p->n_operands, 0, ARENA_ARRAY(arena, p->n_operands, PathStep)};
    Search *s = &j.search;
    s->options = o;
    s->arena = arena;
    s->effort = o->effort;
    s->n_all = p->n_operands;
    s->rng.state = hash_mix(o->seed, 0x7d5c);
    s->model = (Model){o->objective, log2(o->factor > 0.0 ? o->factor : 64.0), INFINITY, soft_table_new(arena)};
    bool proved = true;
    const char *won = j.row->name;
    if (p->n_operands > 0) {
        net_prepare(p, NULL, arena, &j.prepared);
        bool limited = o->memory_limit > 0;
        net_reduce(&j.prepared.net, !limited, !limited && p->n_operands > WHOLE, arena, &j.reduced);
        j.steps = out->tree.steps;
        memcpy(j.steps, j.reduced.steps, j.reduced.n_steps * sizeof *j.steps);
        j.n_steps = j.reduced.n_steps;
        j.root = ARENA_ARRAY(arena, j.reduced.n_parts, uint32_t);
        out->sliced = ARENA_ARRAY(arena, p->n_labels, uint32_t);
        if (limited) {
            job_sliced(&j, out);
        }
        for (uint32_t i = 0; !limited && i < j.reduced.n_parts; i++) {
            if (!job_part(&j, i, &won, &proved)) {
                return false;
            }
        }
        job_join(&j);
        out->tree.n_steps = j.n_steps;
    }
    out->strategy = won;
    out->proved = proved;
    out->interrupted = search_stopped(s);
    path_order_for_peak(p, &out->tree, (PathLabels){out->sliced, out->n_sliced}, arena);
    path_account(p, &out->tree, (PathLabels){out->sliced, out->n_sliced}, arena, &out->costs);
    return true;
}
