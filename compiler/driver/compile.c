/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of pipeline.def from nests on, and the runner: it verifies what each has made, times it, and with --check-each runs the
 * program before going on. */
#include "driver/compile_graphs.h"

#include <string.h>

#include "driver/orders.h"
#include "driver/report/report.h"
#include "driver/report/spill.h"
#include "graph/recurrence.h"
#include "lower/lower.h"
#include "nest/plan.h"

static bool pass_unfused(Compilation *c)
{
    c->nests = ARENA_ARRAY(c->arena, c->module->graphs.n, const Nest *);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        nest_recurrences(c->ctx, c->arena, c->module->graphs.at[k], c->target->machine, 0);
        c->nests[k] =
            nest_unfused(c->ctx, c->arena, c->module->graphs.at[k], c->target->machine);
    }
    return true;
}

static bool pass_fuse(Compilation *c)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        compilation_at(c, k);
        nest_recurrences(c->ctx, c->arena, c->module->graphs.at[k], c->target->machine,
                         c->path.options.effort);
        Nest *nest = nest_choose(c->ctx, c->arena, c->module->graphs.at[k], c->target->machine,
                                 c->path.options.effort);
        nest->goes_on = true;
        c->nests[k] = nest;
    }
    return true;
}

/* Nests that nothing was searched for stay as they are. */
static bool is_searched(const Compilation *c)
{
    return !compilation_without(c, PASS_FUSE) && c->path.options.effort > 0;
}

static bool pass_orders(Compilation *c)
{
    for (uint32_t k = 0; is_searched(c) && k < c->module->graphs.n; k++) {
        compilation_at(c, k);
        Nest *nest = orders_choose(c, (Nest *)c->nests[k]);
        nest->goes_on = true;
        c->nests[k] = nest;
        c->module->graphs.at[k] = (Graph *)nest->graph;
    }
    return true;
}

/* The last of the passes that decide of loops: what is in memory now stays there. */
static bool pass_sizes(Compilation *c)
{
    if (compilation_without(c, PASS_FUSE)) { /* values in memory are as wished */
        return true;
    }
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        compilation_at(c, k);
        Nest *nest = (Nest *)c->nests[k];
        nest->goes_on = false;
        if (dist_owner(&nest->graph->ranks).at != NULL) {
            continue; /* one nest: which bits a block has must not depend on its size; and it was warned of the whole */
        }
        if (!compilation_without(c, PASS_SIZES)) {
            nest_choose_sizes(c->ctx, c->arena, c->target->machine, c->path.options.effort,
                              nest);
        }
        nest_warn_spills(c->ctx, nest, c->target->machine);
        report_warn_serial(c->ctx, nest, c->target->machine);
    }
    return true;
}

/* Nests that were made for another target. */
static bool has_online_loops(const Compilation *c, const Nest *nest)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (nest->items[k].online) {
            diag_error(&c->ctx->diags, E_TARGET, nest->graph->span,
                       "loops called online: target '%s' has no infinities", c->target->name);
            return true;
        }
    }
    return false;
}

/* Matrices, which are steps of rows: instructions by the hundred for each. */
static bool has_dense_steps(Compilation *c, const Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (op_info(node->op)->kind == OPKIND_DENSE) {
            diag_unsupported(&c->ctx->diags, E_TARGET, node->span,
                             "target '%s' does not have '%s': it goes to target 'c'",
                             c->target->name, node->op == OP_CHOLESKY ? "cholesky" : "solve");
            return true;
        }
    }
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        if (has_dense_steps(c, g->recurrences.at[k]->body)) {
            return true;
        }
    }
    return false;
}

static bool pass_lower(Compilation *c)
{
    c->tiled = ARENA_NEW(c->arena, KernelModule);
    c->tiled->arena = c->arena;
    c->tiled->source_name = c->module->source_name;
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        compilation_at(c, k);
        if (c->target->machine->kind != MACHINE_CACHES &&
            has_dense_steps(c, c->module->graphs.at[k])) {
            return false;
        }
        for (uint32_t i = 0; !c->target->machine->online && i < nest_count(c->nests[k]); i++) {
            if (has_online_loops(c, nest_at(c->nests[k], i))) {
                return false;
            }
        }
        Kernel *kernel = nest_lower(c->ctx, c->arena, c->nests[k]);
        vec_push(c->arena, &c->tiled->kernels, kernel);
    }
    return true;
}

/* For targets whose machines have no complex numbers. */
static bool pass_complex(Compilation *c)
{
    if (c->target->machine->complex_numbers) {
        return true;
    }
    for (uint32_t k = 0; k < c->tiled->kernels.n; k++) {
        Kernel *real = lower_complex(c->ctx, c->arena, c->tiled->kernels.at[k], c->target);
        if (real == NULL) {
            return false;
        }
        c->tiled->kernels.at[k] = real;
    }
    return true;
}

/* One of the target's: kernels that it leaves as they are stay verified, and what it copied to look at them is given back. */
static bool pass_target(Compilation *c, const TargetPass *pass)
{
    Stage gives = pass->tiled ? STAGE_LOOP : STAGE_LEGAL;
    bool (*verify)(Compilation *, uint32_t, const char *) = stage_info(gives)->verify;
    const KernelModule *from = c->stage == STAGE_LEGAL ? c->legal : c->tiled;
    KernelModule *made = ARENA_NEW(c->arena, KernelModule);
    *made = (KernelModule){.arena = c->arena, .source_name = from->source_name};
    for (uint32_t k = 0; k < from->kernels.n; k++) {
        ctx_at_kernel(c->ctx, from->kernels.at[k]->name->text, k, from->kernels.n);
        ArenaMark before = arena_mark(c->arena);
        Kernel *kernel = pass->run(c->target, c->ctx, c->arena, from->kernels.at[k]);
        if (kernel == NULL) {
            return false;
        }
        if (kernel == from->kernels.at[k]) {
            arena_reset(c->arena, before);
        }
        vec_push(c->arena, &made->kernels, kernel);
    }
    *(pass->tiled ? &c->tiled : &c->legal) = made;
    for (uint32_t k = 0; k < made->kernels.n; k++) {
        if (made->kernels.at[k] != from->kernels.at[k] && !verify(c, k, pass->name)) {
            return false;
        }
    }
    return true;
}

static bool pass_emit(Compilation *c)
{
    EmitOptions options = c->emit;
    if (c->legal->source_name != NULL) { /* a dump names the program it was made from */
        options.source_name = c->legal->source_name;
    }
    return c->target->emit(c->target, c->ctx, c->legal, &options, &c->outputs);
}

/* By row of pipeline.def. */
static const struct {
    bool (*whole)(Compilation *);
    GraphPass *anew, *in_place;
} runs[PASS_COUNT] = {
#define WHOLE(f)                                                                               \
    {                                                                                          \
        .whole = f                                                                             \
    }
#define ANEW(f)                                                                                \
    {                                                                                          \
        .anew = f                                                                              \
    }
#define IN_PLACE(f)                                                                            \
    {                                                                                          \
        .in_place = f                                                                          \
    }
#define PASS(id, name, from, to, run, ...) run,
#include "driver/pipeline.def"
};

void compilation_init(Compilation *c, Ctx *ctx, Arena *arena, const Target *target)
{
    *c = (Compilation){.ctx = ctx, .arena = arena, .target = target, .source_name = "-"};
    c->outputs.arena = arena;
    c->path.options.effort = 1;
}

void compilation_alone(Compilation *alone, const Compilation *c, Arena *arena, uint32_t kernel,
                       const Nest *nest)
{
    compilation_init(alone, c->ctx, arena, c->target);
    alone->without = c->without;
    alone->stage = STAGE_NEST;
    alone->next = passes_from(c->target, STAGE_NEST);
    alone->in = c->in;
    alone->source_name = c->source_name;
    alone->emit = c->emit;
    alone->emit.header_name = NULL;
    alone->emit.prefix = NULL;
    alone->emit.warn_names = false;
    alone->module = ARENA_NEW(arena, Module);
    *alone->module = (Module){.arena = arena, .source_name = c->module->source_name};
    vec_push(arena, &alone->module->graphs, c->module->graphs.at[kernel]);
    alone->nests = ARENA_ARRAY(arena, 1, const Nest *);
    alone->nests[0] = nest;
}

/* Kernel k, and the local ones that are parts of it, which stand behind it. */
static void keep_with_parts(Compilation *c, KernelModule *kernels, uint32_t k, uint32_t n)
{
    Sym name = kernels != NULL ? kernels->kernels.at[k]->name : c->module->graphs.at[k]->name;
    uint32_t kept = 0;
    for (uint32_t i = k; i < n; i++) {
        const TextLines *lines =
            kernels != NULL ? &kernels->kernels.at[i]->ranks : &c->module->graphs.at[i]->ranks;
        Str owner = dist_owner(lines);
        if (i != k && (owner.at == NULL || !str_eq_cstr(owner, name->text))) {
            continue;
        }
        if (kernels != NULL) {
            kernels->kernels.at[kept++] = kernels->kernels.at[i];
        } else {
            c->module->graphs.at[kept] = c->module->graphs.at[i];
            c->nests[kept++] = c->nests[i];
        }
    }
    *(kernels != NULL ? &kernels->kernels.n : &c->module->graphs.n) = kept;
}

/* Of a dump, which has been read whole. */
static bool keep_kernel(Compilation *c, const char *name)
{
    KernelModule *kernels = c->legal != NULL ? c->legal : c->tiled;
    uint32_t n = kernels != NULL ? kernels->kernels.n : c->module->graphs.n;
    for (uint32_t k = 0; k < n; k++) {
        Sym at = kernels != NULL ? kernels->kernels.at[k]->name : c->module->graphs.at[k]->name;
        if (strcmp(at->text, name) != 0) {
            continue;
        }
        keep_with_parts(c, kernels, k, n);
        return true;
    }
    return diag_refuse(&c->ctx->diags, E_UNKNOWN_NAME, (Span){0}, "there is no kernel '%s'",
                       name);
}

bool compilation_start(Compilation *c, Input *in, const char *only_kernel)
{
    c->in = in;
    c->only_kernel = only_kernel;
    c->source_name = in->name;
    c->stage = STAGE_CHECKED;
    return in->dump == NULL || (compilation_read_dump(c, in->source, in->dump) &&
                                (only_kernel == NULL || keep_kernel(c, only_kernel)));
}

static bool run_function(Compilation *c, PassId id)
{
    return runs[id].whole != NULL  ? runs[id].whole(c)
           : runs[id].anew != NULL ? graphs_anew(c, runs[id].anew)
                                   : graphs_in_place(c, runs[id].in_place);
}

static bool run_pass(Compilation *c, const Pass *pass)
{
    double start = c->clock == NULL ? 0 : c->clock();
    const Follower *follower = c->ctx->follower;
    if (follower != NULL) {
        follower->begins(follower->user, pass->name);
    }
    if (pass->own != NULL ? !pass_target(c, pass->own) : !run_function(c, pass->id)) {
        return false;
    }
    if (follower != NULL) {
        follower->ends(follower->user);
    }
    PassTime time = {pass->name, c->clock == NULL ? 0 : c->clock() - start};
    vec_push(c->arena, &c->times, time);
    c->stage = pass->to;
    return (pass->own != NULL || compilation_verify(c, c->stage, pass->name)) &&
           (!c->check_each || compilation_check(c, c->stage, pass->name));
}

bool compilation_run_to(Compilation *c, uint32_t end)
{
    for (; c->next < end; c->next++) {
        Pass pass = pass_at(c->target, c->next);
        bool skipped = pass.without == WITHOUT_SKIPPED && (c->without >> c->next & 1) != 0;
        if (pass.without != WITHOUT_PART && !skipped && !run_pass(c, &pass)) {
            return false;
        }
    }
    return c->ctx->diags.n_errors == 0;
}

bool compilation_run(Compilation *c, Stage stage)
{
    return compilation_run_to(c, passes_until(c->target, stage));
}
