/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of pipeline.def, and the runner: it verifies what each has made, times it, and with --check-each runs the
 * program before going on. Names and types were settled before: the first pass here makes graphs. */
#include "driver/compile.h"

#include <string.h>

#include "driver/orders.h"
#include "driver/report.h"
#include "graph/recurrence.h"
#include "lower/lower.h"

/* Each pass writes new graphs into an arena of their own, and the ones before go: a large
 * program is there twice, not once per pass. The graphs that came from outside stay. */
static Arena *next_graphs(Compilation *c)
{
    Arena *arena = ARENA_NEW(c->arena, Arena);
    arena_init(arena, &c->ctx->budget);
    return arena;
}

static void replace_graphs(Compilation *c, Arena *arena)
{
    if (c->graphs != NULL) {
        arena_release(c->graphs);
    }
    c->graphs = arena;
}

void compilation_release(Compilation *c)
{
    replace_graphs(c, NULL);
}

/* The graph by the pass, and the bodies of its recurrences too. */
static Graph *with_bodies(Ctx *ctx, Arena *arena, const Graph *g,
                          Graph *(*pass)(Ctx *, Arena *, const Graph *))
{
    Graph *to = pass(ctx, arena, g);
    for (uint32_t k = 0; k < to->recurrences.n; k++) {
        Recurrence *r = to->recurrences.at[k];
        r->body = with_bodies(ctx, arena, r->body, pass);
    }
    return to;
}

/* Tells the follower which kernel a pass has come to. */
static void at_graph(const Compilation *c, uint32_t k)
{
    ctx_at_kernel(c->ctx, c->module->graphs.at[k]->name->text, k, c->module->graphs.n);
}

static void each_graph(Compilation *c, Graph *(*pass)(Ctx *, Arena *, const Graph *))
{
    Arena *arena = next_graphs(c);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        at_graph(c, k);
        c->module->graphs.at[k] = with_bodies(c->ctx, arena, c->module->graphs.at[k], pass);
    }
    replace_graphs(c, arena);
}

static bool pass_build(Compilation *c)
{
    if (c->module == NULL) {
        c->module = input_build(c->in, c->only_kernel);
    }
    return c->module != NULL && c->ctx->diags.n_errors == 0;
}

static bool pass_simplify(Compilation *c)
{
    each_graph(c, opt_simplify);
    return true;
}

static Graph *lookups(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_lookups(ctx, arena, g, false);
}

static Graph *lookups_by_rows(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_lookups(ctx, arena, g, true);
}

static bool pass_lookups(Compilation *c)
{
    if (!c->target->machine->gathers) {
        each_graph(c, c->target->machine->row_gathers ? lookups_by_rows : lookups);
    }
    return true;
}

static bool pass_functions(Compilation *c)
{
    if (!c->target->machine->functions) {
        each_graph(c, opt_functions);
    }
    return true;
}

static bool pass_powers(Compilation *c)
{
    each_graph(c, opt_powers);
    return true;
}

static Graph *products(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_products(ctx, arena, g, false);
}

static Graph *products_masked(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_products(ctx, arena, g, true);
}

static bool pass_products(Compilation *c)
{
    each_graph(c, c->target->machine->masks ? products_masked : products);
    return true;
}

/* Not of kernels on ranks, whose labels stay as they are. */
static bool pass_groups(Compilation *c)
{
    bool ranks = mesh_is_asked(&c->mesh);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        ranks |= c->module->graphs.at[k]->ranks.n > 0;
    }
    if (c->target->machine->kind == MACHINE_CACHES && !ranks) {
        each_graph(c, opt_groups);
    }
    return true;
}

static bool pass_normalise(Compilation *c)
{
    each_graph(c, opt_normalise);
    return true;
}

static bool pass_absorb(Compilation *c)
{
    each_graph(c, path_absorb);
    return true;
}

/* Decisions that are taken from a file speak of the kernel alone. */
static bool pairwise_bodies(Compilation *c, Arena *arena, Graph *g)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < g->recurrences.n; k++) {
        PathDecisions own = {0};
        Graph *body = path_apply(c->ctx, arena, g->recurrences.at[k]->body, &c->path, &own);
        ok = body != NULL && pairwise_bodies(c, arena, body);
        g->recurrences.at[k]->body = body;
    }
    return ok;
}

static bool pass_pairwise(Compilation *c)
{
    Arena *arena = next_graphs(c);
    bool ok = true;
    for (uint32_t k = 0; ok && k < c->module->graphs.n; k++) {
        at_graph(c, k);
        Graph *g = path_apply(c->ctx, arena, c->module->graphs.at[k], &c->path, &c->decisions);
        ok = g != NULL && pairwise_bodies(c, arena, g);
        c->module->graphs.at[k] = ok ? g : c->module->graphs.at[k];
    }
    if (ok) {
        replace_graphs(c, arena);
    } else {
        arena_release(arena);
    }
    return ok;
}

/* Local kernels stand behind all others, in the order of their kernels. */
static bool pass_dist(Compilation *c)
{
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    uint32_t n = c->module->graphs.n;
    for (uint32_t k = 0; c->target->ranks && k < n; k++) {
        Graph *g = c->module->graphs.at[k];
        bool wanted = dist_wanted(&g->ranks) || (mesh_is_asked(&c->mesh) && g->ranks.n == 0);
        if (wanted && !dist_plan(c->ctx, c->graphs, g, c->module)) {
            return false;
        }
    }
    return true;
}

/* Every graph by a rewrite that leaves it where it is if there is nothing to do: beside the path's decisions. */
static Graph *rewritten(Ctx *ctx, Arena *arena, Graph *g,
                        Graph *(*rewrite)(Ctx *, Arena *, Graph *))
{
    Graph *to = rewrite(ctx, arena, g);
    for (uint32_t k = 0; k < to->recurrences.n; k++) {
        Recurrence *r = to->recurrences.at[k];
        r->body = rewritten(ctx, arena, r->body, rewrite);
    }
    return to;
}

static bool rewrite_in_place(Compilation *c, Graph *(*rewrite)(Ctx *, Arena *, Graph *))
{
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        c->module->graphs.at[k] =
            rewritten(c->ctx, c->graphs, c->module->graphs.at[k], rewrite);
    }
    return true;
}

/* Pairs of reals have an extent more, which shapes of callers have not: those of complex numbers, and of f64 as two words. */
static Graph *collapse_real(Ctx *ctx, Arena *arena, Graph *g)
{
    bool pairs = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        pairs |= dtype_is_complex(graph_node(g, n)->dtype);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        const Node *made = graph_node(g, g->results.at[r].node);
        pairs |= made->dtype == DTYPE_F64 && made->rank > 0; /* the machine has no f64 either */
    }
    return pairs ? g : opt_collapse(ctx, arena, g);
}

static bool pass_collapse(Compilation *c)
{
    const Machine *m = c->target->machine;
    if (!m->open_extents && m->kind != MACHINE_SYSTOLIC) {
        return true;
    }
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    for (uint32_t k = 0; k < c->module->graphs.n;
         k++) { /* steps see slices: bodies stay as they are */
        Graph *g = c->module->graphs.at[k];
        c->module->graphs.at[k] = m->complex_numbers ? opt_collapse(c->ctx, c->graphs, g)
                                                     : collapse_real(c->ctx, c->graphs, g);
    }
    return true;
}

static bool pass_narrow(Compilation *c)
{
    const Machine *m = c->target->machine;
    return (!m->narrow && !m->alike) ||
           rewrite_in_place(c, m->narrow ? opt_narrow : opt_narrow_alike);
}

static bool pass_domains(Compilation *c)
{
    return !c->target->machine->domains || rewrite_in_place(c, opt_domains);
}

static void find_symmetry(Compilation *c, Graph *g, bool look)
{
    opt_symmetry(c->ctx, g, look);
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        find_symmetry(c, g->recurrences.at[k]->body, look);
    }
}

static bool pass_symmetry(Compilation *c)
{
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        bool look = !compilation_without(c, PASS_SYMMETRY);
        find_symmetry(c, c->module->graphs.at[k], look);
        if (look) {
            opt_warn_declared(c->ctx, c->module->graphs.at[k]);
        }
    }
    return true;
}

static void find_online(Compilation *c, Graph *g, bool look)
{
    opt_online(c->ctx, g, look);
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        find_online(c, g->recurrences.at[k]->body, look);
    }
}

static bool pass_online(Compilation *c)
{
    bool look = !compilation_without(c, PASS_ONLINE) && c->target->machine->online;
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        find_online(c, c->module->graphs.at[k], look);
    }
    return true;
}

Graph *compilation_onto(const Compilation *c, Arena *arena, Graph *g)
{
    const Machine *m = c->target->machine;
    Graph *to = m->adds && !compilation_without(c, PASS_ONTO) ? opt_onto(c->ctx, arena, g) : g;
    if (to != g) {
        opt_symmetry(c->ctx, to, !compilation_without(c, PASS_SYMMETRY));
        opt_online(c->ctx, to, !compilation_without(c, PASS_ONLINE) && m->online);
    }
    for (uint32_t k = 0; k < to->recurrences.n; k++) {
        Recurrence *r = to->recurrences.at[k];
        r->body = compilation_onto(c, arena, r->body);
    }
    return to;
}

static void read_back_all(Arena *arena, Graph *g)
{
    recurrence_read_back(arena, g);
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        read_back_all(arena, g->recurrences.at[k]->body);
    }
}

static bool pass_onto(Compilation *c)
{
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        c->module->graphs.at[k] = compilation_onto(c, c->graphs, c->module->graphs.at[k]);
        read_back_all(c->graphs, c->module->graphs.at[k]);
    }
    return true;
}

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
        at_graph(c, k);
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
        at_graph(c, k);
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
        at_graph(c, k);
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
        at_graph(c, k);
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

/* By row of pipeline.def; null: a part of another pass, or the target's own. */
static bool (*const runs[PASS_COUNT])(Compilation *) = {
#define STAGE(...)
#define PASS(id, name, from, to, run, ...) run,
#include "driver/pipeline.def"
#undef STAGE
#undef PASS
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
    diag_error(&c->ctx->diags, E_UNKNOWN_NAME, (Span){0}, "there is no kernel '%s'", name);
    return false;
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

bool compilation_without(const Compilation *c, PassId pass)
{
    CHECK(pass < PASS_TARGET);
    return (c->without >> pass & 1) != 0;
}

static bool run_pass(Compilation *c, const Pass *pass)
{
    double start = c->clock == NULL ? 0 : c->clock();
    const Follower *follower = c->ctx->follower;
    if (follower != NULL) {
        follower->begins(follower->user, pass->name);
    }
    if (pass->own != NULL ? !pass_target(c, pass->own) : !runs[pass->id](c)) {
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
