/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy table, and the way from a problem to a result: prepare, search each connected network, join the results,
 * order the steps, account. */
#include "path/search.h"

#include <string.h>

/* Up to here disconnected networks are searched whole: outer products of parts may pay inside. */
#define WHOLE         20
#define OPERANDS_MOST 20000000u

const PathStrategy path_strategies[] = {
    {"auto",
     "exact where that is cheap, else all of the others below for starts, then annealing",
     auto_search},
    {"exact", "the optimum over all trees, outer products included; up to 24 operands",
     exact_search},
    {"greedy", "one pass: the pair whose result is smallest against what it replaces",
     greedy_search},
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

/* Steps that a part may take, before its strategy says so. */
static uint64_t search_guess(const Search *s, const Net *net)
{
    return net->n + s->effort * search_budget(s, net);
}

static bool job_part(Job *j, uint32_t part, const char **won, bool *proved)
{
    const Net *net = &j->reduced.parts[part].net;
    ArenaMark mark = arena_mark(j->search.arena);
    PathStep *steps = ARENA_ARRAY(j->search.arena, net->n, PathStep);
    j->search.won = NULL;
    j->search.proved = net->n <= 2;
    j->search.doing = NULL;
    j->search.base = j->search.done;
    j->search.later -= search_guess(&j->search, net);
    search_plan(&j->search, net->n);
    bool found = net->n == 1 || j->row->search(&j->search, net, steps);
    if (found) {
        job_append(j, part, steps);
        double cost =
            net->n > 1 ? tree_score(&j->search.model, net, steps, j->search.arena).cost : -1.0;
        if (cost > j->worst) {
            j->worst = cost;
            *won = j->search.won != NULL ? j->search.won : j->row->name;
        }
        *proved = *proved && j->search.proved;
    }
    search_plan(&j->search, j->search.done - j->search.base);
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
    uint32_t *start = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t),
             *label = ARENA_ARRAY(arena, total, uint32_t);
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

/* Under a limit the whole network is searched at once, since a sliced label of one part multiplies the others. First
 * without the limit; when that does not fit, with it. False: too many operands for the strategy. */
static bool job_limited(Job *j, PathResult *out, bool *proved)
{
    Search *s = &j->search;
    const Part *part = &j->reduced.parts[0];
    double limit = log2((double)s->options->memory_limit);
    ArenaMark mark = arena_mark(s->arena);
    PathStep *steps = ARENA_ARRAY(s->arena, part->net.n, PathStep);
    uint32_t effort = s->effort;
    s->sliced = ARENA_ARRAY(s->arena, part->net.n_labels, uint8_t);
    s->effort = effort > 1 ? 1 : effort;
    s->later = slice_budget(s, &part->net);
    bool found = part->net.n == 1 || j->row->search(s, &part->net, steps);
    s->effort = effort;
    s->model.limit = limit;
    s->later = 0;
    s->base = s->done;
    if (!found) {
        arena_reset(s->arena, mark);
        return false;
    }
    Score score = tree_score(&s->model, &part->net, steps, s->arena);
    out->strategy = s->won != NULL ? s->won : j->row->name;
    *proved = s->proved && score.over <= 0.0;
    if (score.over > 0.0) {
        /* The limit says how large tensors are; what is left to minimise is the work. */
        s->model.objective = s->model.objective == PATH_SIZE ? PATH_FLOPS : s->model.objective;
        slice_search(s, &part->net, steps);
        out->strategy = "slice";
    }
    job_append(j, 0, steps);
    for (uint32_t l = 0; l < part->net.n_labels; l++) {
        if (s->sliced[l]) {
            out->sliced[out->n_sliced++] = j->prepared.origin[part->label[l]];
        }
    }
    arena_reset(s->arena, mark);
    return true;
}

static bool job_parts(Job *j, PathResult *out, bool *proved)
{
    bool found = true;
    out->strategy = j->row->name;
    for (uint32_t i = 0; i < j->reduced.n_parts; i++) {
        j->search.later += search_guess(&j->search, &j->reduced.parts[i].net);
    }
    for (uint32_t i = 0; found && i < j->reduced.n_parts; i++) {
        found = job_part(j, i, &out->strategy, proved);
    }
    if (found) {
        job_join(j);
    }
    return found;
}

/* digits > limit? */
static bool exceeds(const char *digits, int64_t limit, Arena *arena)
{
    const char *most = str_format(arena, "%lld", (long long)limit);
    size_t n = strlen(digits), m = strlen(most);
    return n > m || (n == m && strcmp(digits, most) > 0);
}

static bool options_valid(const PathProblem *p, const PathOptions *o, Ctx *ctx)
{
    Span nowhere = {0, 0, 0};
    const char *name = o->search != NULL ? o->search : "auto";
    if (path_strategy_find(name) == NULL) {
        Diagnostic *d =
            diag_error(&ctx->diags, E_ARGUMENTS, nowhere, "no search is named '%s'", name);
        const char *near = NULL;
        int best = 3;
        Text all = text_new(&ctx->arena);
        for (uint32_t i = 0; i < path_strategy_count; i++) {
            int distance = str_distance(str_from(name), str_from(path_strategies[i].name), 2);
            near = distance < best ? path_strategies[i].name : near;
            best = distance < best ? distance : best;
            text_printf(&all, "%s'%s'", i == 0 ? "" : ", ", path_strategies[i].name);
        }
        diag_help(d, "%s%s%sthe searches are %s", near != NULL ? "did you mean '" : "",
                  near != NULL ? near : "", near != NULL ? "'? " : "", all.at);
        return false;
    }
    if (o->memory_limit < 0) {
        return diag_refuse(&ctx->diags, E_ARGUMENTS, nowhere,
                           "the memory limit must be a positive number of elements");
    }
    if (p->n_operands > OPERANDS_MOST) {
        return diag_refuse_limit(&ctx->diags, E_LIMIT_SIZE, nowhere,
                                 "%u operands, the limit is %u", p->n_operands, OPERANDS_MOST);
    }
    return true;
}

bool path_search(const PathProblem *p, const PathOptions *o, Ctx *ctx, PathResult *out)
{
    memset(out, 0, sizeof *out);
    if (!options_valid(p, o, ctx)) {
        return false;
    }
    Arena *arena = &ctx->arena;
    Job j = {.p = p,
             .row = path_strategy_find(o->search != NULL ? o->search : "auto"),
             .worst = -1e300};
    j.search = (Search){.arena = arena,
                        .options = o,
                        .effort = o->effort,
                        .n_all = p->n_operands,
                        .rng = {hash_mix(o->seed, 0x7d5c)},
                        .model = {o->objective, log2(o->factor > 0.0 ? o->factor : 64.0),
                                  INFINITY, soft_table_new(arena, SOFT_STEPS),
                                  soft_table_new(arena, ROUGH_STEPS)}};
    out->tree = (PathTree){p->n_operands, 0, ARENA_ARRAY(arena, p->n_operands, PathStep)};
    out->sliced = ARENA_ARRAY(arena, p->n_labels, uint32_t);
    out->strategy = "none";
    bool proved = true, limited = o->memory_limit > 0;
    if (p->n_operands > 0) {
        net_prepare(p, NULL, arena, &j.prepared);
        net_reduce(&j.prepared.net, !limited, !limited && p->n_operands > WHOLE, arena,
                   &j.reduced);
        j.steps = out->tree.steps;
        memcpy(j.steps, j.reduced.steps, j.reduced.n_steps * sizeof *j.steps);
        j.n_steps = j.reduced.n_steps;
        j.root = ARENA_ARRAY(arena, j.reduced.n_parts, uint32_t);
        bool found = limited ? job_limited(&j, out, &proved) : job_parts(&j, out, &proved);
        if (!found) {
            return diag_refuse_limit(&ctx->diags, E_LIMIT_SIZE, (Span){0, 0, 0},
                                     "the search '%s' takes at most %d operands", j.row->name,
                                     EXACT_MOST);
        }
        out->tree.n_steps = j.n_steps;
    }
    out->proved = proved;
    out->interrupted = search_stopped(&j.search);
    if (!out->interrupted) {
        j.search.planned = j.search.done;
        search_tell(&j.search);
    }
    PathLabels sliced = {out->sliced, out->n_sliced};
    path_order_for_peak(p, &out->tree, sliced, arena);
    path_account(p, &out->tree, sliced, arena, &out->costs);
    if (o->memory_limit > 1 && exceeds(out->costs.largest, o->memory_limit, arena)) {
        PathOptions less = *o; /* a logarithm does not tell numbers of ten digits apart */
        less.memory_limit -= o->memory_limit / 1000000000 + 1;
        return path_search(p, &less, ctx, out);
    }
    return true;
}
