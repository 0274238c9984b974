/* SPDX-License-Identifier: Apache-2.0 */
/* See decisions.h. */
#include "driver/decisions.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "driver/head.h"
#include "driver/follow.h"
#include "front/check.h"
#include "target/machine.h"

/* In which stage what the option decides is settled. --effort is for both searches. */
static const struct {
    OptionId id;
    const char *name;
    Stage stage;
} rows[] = {
    {OPT_SEARCH, "--search", STAGE_PATH},
    {OPT_OBJECTIVE, "--objective", STAGE_PATH},
    {OPT_MEMORY_LIMIT, "--memory-limit", STAGE_PATH},
    {OPT_SEED, "--seed", STAGE_PATH},
    {OPT_PATH, "--path", STAGE_PATH},
    {OPT_PLAN_IN, "--plan-in", STAGE_PATH},
    {OPT_PLAN_OUT, "--plan-out", STAGE_PATH},
    {OPT_EFFORT, "--effort", STAGE_NEST},
};

/* Options that are short for --without. */
static const struct {
    OptionId id;
    const char *name;
    PassId pass;
} spellings[] = {
    {OPT_NO_FUSE, "--no-fuse", PASS_FUSE},
    {OPT_NO_ONLINE, "--no-online", PASS_ONLINE},
    {OPT_ONE_NEST, "--one-nest", PASS_SIZES},
    {OPT_NO_SYMMETRY, "--no-symmetry", PASS_SYMMETRY},
    {OPT_NO_FACTOR, "--no-factor", PASS_FACTOR},
};

/* Multiply-adds that the target does while it moves one element of 8 bytes: what traffic costs
 * in the objectives that count it. 0: unknown. */
static double traffic_factor(const Target *target)
{
    const Machine *m = target->machine;
    bool known = m->time.multiply_add > 0 && m->n_levels > 0;
    return known ? 8.0 / (m->time.multiply_add * m->level[0].bytes_per_second) : 0.0;
}

bool decisions_path(ToolRun *t, const Target *target, PathOptions *out)
{
    int64_t seed = 0, effort = 1, limit = 0;
    bool ok = option_number(&t->options, OPT_SEED, 0, INT64_MAX, &seed, &t->usage) &&
              option_number(&t->options, OPT_EFFORT, 0, 1000000, &effort, &t->usage) &&
              option_number(&t->options, OPT_MEMORY_LIMIT, 1, INT64_MAX, &limit, &t->usage);
    out->seed = (uint64_t)seed;
    out->effort = (uint32_t)effort;
    out->memory_limit = limit;
    out->search = option_last(&t->options, OPT_SEARCH, NULL);
    out->factor = traffic_factor(target);
    if (option_given(&t->options, OPT_PATH) && option_given(&t->options, OPT_PLAN_IN)) {
        return usage_error(&t->usage, "--path and --plan-in decide the same: one at a time");
    }
    static const char *const objectives[] = {"flops", "size", "write", "combo", "roofline"};
    const char *name = option_last(&t->options, OPT_OBJECTIVE, "flops");
    for (uint32_t k = 0; k < sizeof objectives / sizeof objectives[0]; k++) {
        if (strcmp(name, objectives[k]) == 0) {
            out->objective = (PathObjective)k;
            return ok;
        }
    }
    return usage_error(&t->usage, "'--objective=%s': flops, size, write, combo or roofline",
                       name);
}

/* A file that decides is an input; tdsl-run writes arrays, which may stand where they were read. */
static bool read_decision(ToolRun *t, const char *path, Str *out)
{
    if (t->options.tool == TOOL_TDSLC) {
        files_input(&t->files, path);
    }
    return tool_read(t, path, out);
}

/* ---- passes that are left out ---- */

static bool leave_out(ToolRun *t, Compilation *c, const char *name)
{
    uint32_t place = pass_find(c->target, name);
    bool known = place < pass_count(c->target);
    if (!known || pass_at(c->target, place).without == WITHOUT_NEEDED) {
        return usage_error(
            &t->usage, "'--without=%s': %s; passes that can be left out:%s", name,
            known ? "nothing goes on without this pass" : "there is no such pass",
            passes_optional(&t->arena, c->target));
    }
    c->without |= (uint64_t)1 << place;
    return true;
}

static bool read_without(ToolRun *t, Compilation *c)
{
    const OptionValues *v = &t->options.given[OPT_WITHOUT];
    CHECK(pass_count(c->target) <= 64);
    for (uint32_t k = 0; k < v->at.n; k++) {
        const char *at = v->at.at[k];
        for (bool more = true; more;) {
            size_t n = strcspn(at, ",");
            if (!leave_out(t, c, str_dup(&t->arena, (Str){at, n}))) {
                return false;
            }
            more = at[n] == ',';
            at += n + 1;
        }
    }
    for (size_t k = 0; k < sizeof spellings / sizeof spellings[0]; k++) {
        bool given = option_given(&t->options, spellings[k].id);
        c->without |= given ? (uint64_t)1 << spellings[k].pass : 0;
    }
    c->path.no_factor = compilation_without(c, PASS_FACTOR);
    return true;
}

/* As the command line calls it. */
static const char *without_name(ToolRun *t, const Compilation *c, uint32_t place)
{
    for (size_t k = 0; k < sizeof spellings / sizeof spellings[0]; k++) {
        if (spellings[k].pass == place && option_given(&t->options, spellings[k].id)) {
            return spellings[k].name;
        }
    }
    return str_format(&t->arena, "--without=%s", pass_at(c->target, place).name);
}

/* The target with the machine of the file; null after a message. */
static const Target *read_machine(ToolRun *t, const Target *target, const char *path)
{
    Str text = {0};
    if (target->machine->kind != MACHINE_CACHES) {
        (void)usage_error(&t->usage,
                          "--machine says what target 'c' plans for: '%s' is a device",
                          target->name);
        return NULL;
    }
    if (!read_decision(t, path, &text)) {
        return NULL;
    }
    Machine *machine = arena_copy(&t->arena, target->machine, sizeof *machine);
    Target *changed = arena_copy(&t->arena, target, sizeof *changed);
    changed->machine = machine;
    uint32_t source = source_add(&t->ctx.sources, path, text, (Span){0});
    return machine_read(&t->ctx, &t->arena, source, text, machine) ? changed : NULL;
}

const Target *decisions_target(ToolRun *t, const Target *target)
{
    int64_t most = 0, cores = 1, threads = 0;
    if (!option_number(&t->options, OPT_MAX_INSTRUCTIONS, 1, INT64_MAX, &most, &t->usage) ||
        !option_number(&t->options, OPT_LNC, 1, 2, &cores, &t->usage) ||
        !option_number(&t->options, OPT_PLANNED_THREADS, 1, THREADS_MOST, &threads,
                       &t->usage)) {
        return NULL;
    }
    const char *file = option_last(&t->options, OPT_MACHINE, NULL);
    target = file == NULL ? target : read_machine(t, target, file);
    if (target == NULL) {
        return NULL;
    }
    if (cores > 1 && target->machine->cores_most < cores) {
        (void)usage_error(&t->usage, "'--lnc=2': programs of target '%s' have one core",
                          target->name);
        return NULL;
    }
    if (threads > 0 && target->machine->threads == 0) {
        (void)usage_error(&t->usage,
                          "'--threads~%lld': programs of target '%s' have no threads",
                          (long long)threads, target->name);
        return NULL;
    }
    return target_limited(&t->arena, target, most, cores, threads);
}

uint32_t decisions_files(const Options *o, const char *file[DECISION_FILES])
{
    static const OptionId id[DECISION_FILES] = {OPT_NEST, OPT_PLAN_IN, OPT_MACHINE};
    uint32_t n = 0;
    for (uint32_t k = 0; k < DECISION_FILES; k++) {
        const char *name = option_last(o, id[k], NULL);
        if (name != NULL) {
            file[n++] = name;
        }
    }
    return n;
}

bool decisions_given(const Options *o)
{
    return option_given(o, OPT_NEST) || option_given(o, OPT_PLAN_IN);
}

bool decisions_read(ToolRun *t, Compilation *c)
{
    const char *plan = option_last(&t->options, OPT_PLAN_IN, NULL);
    c->path.linear = option_last(&t->options, OPT_PATH, NULL);
    c->path.equation = option_given(&t->options, OPT_EQUATION);
    return read_without(t, c) && decisions_path(t, c->target, &c->path.options) &&
           (plan == NULL || read_decision(t, plan, &c->path.plan));
}

Stage decisions_stage(const ToolRun *t, const Compilation *c)
{
    Stage last = option_given(&t->options, OPT_NEST) ? STAGE_NEST : STAGE_NONE;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        bool later = last == STAGE_NONE || rows[k].stage > last;
        last = option_given(&t->options, rows[k].id) && later ? rows[k].stage : last;
    }
    for (uint32_t place = 0; place < pass_count(c->target); place++) {
        Pass pass = pass_at(c->target, place);
        Stage shows = pass.from == STAGE_PATH  ? STAGE_NEST /* what it finds is for loops */
                      : pass.id == PASS_FACTOR ? STAGE_PATH
                                               : pass.to;
        bool given = (c->without >> place & 1) != 0;
        last = given && (last == STAGE_NONE || shows > last) ? shows : last;
    }
    return last;
}

/* Nothing is left to decide of what `who` holds: all stages up to `settled`, and what the passes before place `next` give. */
static bool refuse_late(ToolRun *t, const Compilation *c, Stage settled, uint32_t next,
                        const char *who)
{
    const char *name = NULL, *what = NULL;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (option_given(&t->options, rows[k].id) && rows[k].stage <= settled) {
            name = rows[k].name;
            what = rows[k].stage == STAGE_PATH ? "its contraction order" : "its loops";
        }
    }
    for (uint32_t place = 0; place < next; place++) {
        if ((c->without >> place & 1) != 0) {
            name = without_name(t, c, place);
            what = "its outcome";
        }
    }
    return name == NULL ||
           usage_error(&t->usage, "%s has nothing to decide: %s holds %s already", name, who,
                       what);
}

/* What -D binds of the dims of a nest when it is run; null: not while compiling. */
static bool bound_dims(ToolRun *t, const Head *h, int64_t **bound)
{
    FrontDefine *defines = NULL;
    uint32_t n = 0;
    *bound = NULL;
    if (t->options.tool == TOOL_TDSLC) {
        return true;
    }
    if (!input_defines(&t->ctx, &t->arena, &t->options, &defines, &n)) {
        return false;
    }
    *bound = ARENA_ARRAY(&t->arena, h->dims->list.n, int64_t);
    for (uint32_t d = 0; d < h->dims->list.n; d++) {
        (*bound)[d] = -1;
        for (uint32_t k = 0; k < n; k++) {
            bool match = !defines[k].planned &&
                         strcmp(defines[k].name, h->dims->list.at[d].name->text) == 0;
            (*bound)[d] = match ? defines[k].value : (*bound)[d];
        }
    }
    return true;
}

/* A plan that was tuned says what its kernel computes: compiling a stale one would give the program of then. */
static bool check_program(ToolRun *t, const Graph *made, const Graph *asked, Span place)
{
    if (made->program == NULL || strcmp(made->program, graph_digest(&t->arena, asked)) == 0) {
        return true;
    }
    Diagnostic *d =
        diag_error(&t->ctx.diags, E_PLAN, place,
                   "the plan is of another program: kernel '%s' computes something else here",
                   made->name->text);
    diag_help(d, "tdslc --tune makes a new plan; without --nest the model decides");
    return false;
}

/* The kernels of the nest are those of the program. */
static bool check_nest(ToolRun *t, const Module *made, const Module *program, Span place)
{
    uint32_t n = program->graphs.n;
    if (made->graphs.n != n) {
        return diag_refuse(&t->ctx.diags, E_PLAN, place,
                           "the nest has %u kernels, the program %u; --kernel chooses one",
                           made->graphs.n, n);
    }
    for (uint32_t k = 0; k < n; k++) {
        const Graph *g = made->graphs.at[k];
        Head has = head_of_graph(&t->arena, g);
        Head asked = head_of_graph(&t->arena, program->graphs.at[k]);
        const char *what = "the program has another one at its place";
        int64_t *bound = NULL;
        if (!bound_dims(t, &has, &bound)) {
            return false;
        }
        if (has.name != asked.name || !head_serves(&t->arena, &has, bound, &asked, &what)) {
            return diag_refuse(&t->ctx.diags, E_PLAN, place,
                               "the nest is of another program: kernel '%s': %s", g->name->text,
                               what);
        }
        if (!check_program(t, g, program->graphs.at[k], place)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < n && option_given(&t->options, OPT_TUNE); k++) {
        made->graphs.at[k]->program = graph_digest(&t->arena, program->graphs.at[k]);
    }
    return true;
}

/* A nest's dump holds the program that it belongs to; compiling that is using its decisions. */
static bool start_from_nest(ToolRun *t, Compilation *c, Input *in, const char *path)
{
    Str text = {0};
    const char *only = option_last(&t->options, OPT_KERNEL, NULL);
    const Module *program = c->module;
    if (program == NULL) {
        program = input_build(in, only);
    }
    if (program == NULL || !read_decision(t, path, &text)) {
        return false;
    }
    Input nest = *in;
    nest.source = source_add(&t->ctx.sources, path, text, (Span){0});
    nest.dump = dump_stage(text, &t->arena);
    Span place = {nest.source, 0, 0};
    if (nest.dump == NULL || strcmp(nest.dump, stage_name(STAGE_NEST)) != 0) {
        return diag_refuse(&t->ctx.diags, E_PLAN, place, "this is no dump of a nest");
    }
    bool ok = compilation_start(c, &nest, only) && check_nest(t, c->module, program, place);
    c->in = in;
    c->source_name = in->name;
    return ok;
}

bool decisions_start(ToolRun *t, Compilation *c, Input *in)
{
    const char *nest = option_last(&t->options, OPT_NEST, NULL);
    if (!compilation_start(c, in, option_last(&t->options, OPT_KERNEL, NULL))) {
        return false;
    }
    if (in->dump != NULL) {
        const char *who = str_format(&t->arena, "a dump of stage '%s'", stage_name(c->stage));
        if (nest != NULL && c->stage >= STAGE_NEST) {
            return usage_error(&t->usage,
                               "--nest has nothing to decide: %s holds its loops already", who);
        }
        if (!refuse_late(t, c, c->stage, c->next, who)) {
            return false;
        }
    }
    uint32_t next = passes_from(c->target, STAGE_NEST);
    return nest == NULL || (refuse_late(t, c, STAGE_NEST, next, "the nest of --nest") &&
                            start_from_nest(t, c, in, nest));
}

bool decisions_make(ToolRun *t, Compilation *c, uint32_t end)
{
    uint32_t path = passes_until(c->target, STAGE_PATH);
    Progress progress;
    Follow follow;
    bool kept = false;
    progress_watch(&progress, &c->path.options);
    follow_begin(&follow, t);
    bool ok = compilation_run_to(c, end < path ? end : path);
    for (uint32_t k = 0; k < c->decisions.list.n; k++) {
        kept |= c->decisions.list.at[k].result.interrupted;
    }
    progress_clear(&follow.line);
    progress_end(&progress, ok && kept);
    if (ok && kept) {
        /* who stops one search does not want the next one to be as long */
        c->path.options.effort = c->path.options.effort < 1 ? 0 : 1;
        fprintf(stderr, "%s: interrupted: the best contraction order so far is used\n",
                tool_name(t->options.tool));
    }
    ok = ok && compilation_run_to(c, end);
    follow_end(&follow);
    return ok;
}
