/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of pipeline.def over graphs (compile_graphs.h). Names and types were settled before: the first pass here makes graphs. */
#include "driver/compile_graphs.h"

#include "graph/recurrence.h"

bool compilation_without(const Compilation *c, PassId pass)
{
    CHECK(pass < PASS_TARGET);
    return (c->without >> pass & 1) != 0;
}

/* Each pass writes new graphs into an arena of their own, and the ones before go: a large
 * program is there twice, not once per pass. The graphs that came from outside stay. */
static Arena *next_graphs(Compilation *c)
{
    Arena *arena = ARENA_NEW(c->arena, Arena);
    arena_init(arena, &c->ctx->budget);
    return arena;
}

static bool replace_graphs(Compilation *c, Arena *arena, bool ok)
{
    Arena *gone = ok ? c->graphs : arena;
    if (gone != NULL) {
        arena_release(gone);
    }
    c->graphs = ok ? arena : c->graphs;
    return ok;
}

void compilation_release(Compilation *c)
{
    replace_graphs(c, NULL, true);
}

static Graph *by_pass(Compilation *c, Arena *arena, Graph *g, GraphPass *pass);

static bool bodies_by_pass(Compilation *c, Arena *arena, Graph *g, GraphPass *pass)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < g->recurrences.n; k++) {
        Graph *body = by_pass(c, arena, g->recurrences.at[k]->body, pass);
        ok = body != NULL;
        g->recurrences.at[k]->body = ok ? body : g->recurrences.at[k]->body;
    }
    return ok;
}

/* The graph by the pass, and the bodies of its recurrences too. */
static Graph *by_pass(Compilation *c, Arena *arena, Graph *g, GraphPass *pass)
{
    Graph *to = pass(c, arena, g);
    return to != NULL && bodies_by_pass(c, arena, to, pass) ? to : NULL;
}

/* Tells the follower which kernel a pass has come to. */
void compilation_at(const Compilation *c, uint32_t k)
{
    ctx_at_kernel(c->ctx, c->module->graphs.at[k]->name->text, k, c->module->graphs.n);
}

static bool each_graph(Compilation *c, Arena *arena, GraphPass *pass, bool told)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < c->module->graphs.n; k++) {
        if (told) {
            compilation_at(c, k);
        }
        Graph *g = by_pass(c, arena, c->module->graphs.at[k], pass);
        ok = g != NULL;
        c->module->graphs.at[k] = ok ? g : c->module->graphs.at[k];
    }
    return ok;
}

/* By a pass that makes every graph anew. */
bool graphs_anew(Compilation *c, GraphPass *pass)
{
    Arena *arena = next_graphs(c);
    return replace_graphs(c, arena, each_graph(c, arena, pass, true));
}

/* By a pass that leaves a graph where it is if there is nothing to do, or changes it there. */
bool graphs_in_place(Compilation *c, GraphPass *pass)
{
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    return each_graph(c, c->graphs, pass, false);
}

bool pass_build(Compilation *c)
{
    if (c->module == NULL) {
        c->module = input_build(c->in, c->only_kernel);
    }
    return c->module != NULL && c->ctx->diags.n_errors == 0;
}

Graph *pass_simplify(Compilation *c, Arena *arena, Graph *g)
{
    return opt_simplify(c->ctx, arena, g);
}

Graph *pass_lookups(Compilation *c, Arena *arena, Graph *g)
{
    const Machine *m = c->target->machine;
    return m->gathers ? g : opt_lookups(c->ctx, arena, g, m->row_gathers);
}

Graph *pass_functions(Compilation *c, Arena *arena, Graph *g)
{
    return c->target->machine->functions ? g : opt_functions(c->ctx, arena, g);
}

Graph *pass_powers(Compilation *c, Arena *arena, Graph *g)
{
    return opt_powers(c->ctx, arena, g);
}

Graph *pass_products(Compilation *c, Arena *arena, Graph *g)
{
    return opt_products(c->ctx, arena, g, c->target->machine->masks);
}

static Graph *groups(Compilation *c, Arena *arena, Graph *g)
{
    return opt_groups(c->ctx, arena, g);
}

/* Not of kernels on ranks, whose labels stay as they are. */
bool pass_groups(Compilation *c)
{
    bool ranks = mesh_is_asked(&c->mesh);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        ranks |= c->module->graphs.at[k]->ranks.n > 0;
    }
    return c->target->machine->kind != MACHINE_CACHES || ranks || graphs_anew(c, groups);
}

Graph *pass_normalise(Compilation *c, Arena *arena, Graph *g)
{
    return opt_normalise(c->ctx, arena, g);
}

Graph *pass_absorb(Compilation *c, Arena *arena, Graph *g)
{
    return path_absorb(c->ctx, arena, g);
}

/* Decisions that are taken from a file speak of the kernel alone. */
static Graph *pairwise_body(Compilation *c, Arena *arena, Graph *g)
{
    PathDecisions own = {0};
    return path_apply(c->ctx, arena, g, &c->path, &own);
}

bool pass_pairwise(Compilation *c)
{
    Arena *arena = next_graphs(c);
    bool ok = true;
    for (uint32_t k = 0; ok && k < c->module->graphs.n; k++) {
        compilation_at(c, k);
        Graph *g = path_apply(c->ctx, arena, c->module->graphs.at[k], &c->path, &c->decisions);
        ok = g != NULL && bodies_by_pass(c, arena, g, pairwise_body);
        c->module->graphs.at[k] = ok ? g : c->module->graphs.at[k];
    }
    return replace_graphs(c, arena, ok);
}

/* Local kernels stand behind all others, in the order of their kernels. */
bool pass_dist(Compilation *c)
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

/* Pairs of reals have an extent more, which shapes of callers have not: those of complex numbers, and of f64 as two words. */
static bool has_pairs(const Graph *g)
{
    bool pairs = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        pairs |= dtype_is_complex(graph_node(g, n)->dtype);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        const Node *made = graph_node(g, g->results.at[r].node);
        pairs |= made->dtype == DTYPE_F64 && made->rank > 0; /* the machine has no f64 either */
    }
    return pairs;
}

bool pass_collapse(Compilation *c)
{
    const Machine *m = c->target->machine;
    c->graphs = c->graphs == NULL ? next_graphs(c) : c->graphs;
    for (uint32_t k = 0; k < c->module->graphs.n;
         k++) { /* steps see slices: bodies stay as they are */
        Graph *g = c->module->graphs.at[k];
        if ((m->open_extents || m->kind == MACHINE_SYSTOLIC) &&
            (m->complex_numbers || !has_pairs(g))) {
            c->module->graphs.at[k] = opt_collapse(c->ctx, c->graphs, g);
        }
    }
    return true;
}

Graph *pass_narrow(Compilation *c, Arena *arena, Graph *g)
{
    const Machine *m = c->target->machine;
    return m->narrow  ? opt_narrow(c->ctx, arena, g)
           : m->alike ? opt_narrow_alike(c->ctx, arena, g)
                      : g;
}

Graph *pass_domains(Compilation *c, Arena *arena, Graph *g)
{
    return c->target->machine->domains ? opt_domains(c->ctx, arena, g) : g;
}

static Graph *symmetry(Compilation *c, Arena *arena, Graph *g)
{
    (void)arena;
    opt_symmetry(c->ctx, g, !compilation_without(c, PASS_SYMMETRY));
    return g;
}

bool pass_symmetry(Compilation *c)
{
    graphs_in_place(c, symmetry);
    for (uint32_t k = 0; !compilation_without(c, PASS_SYMMETRY) && k < c->module->graphs.n;
         k++) {
        opt_warn_declared(c->ctx, c->module->graphs.at[k]);
    }
    return true;
}

Graph *pass_online(Compilation *c, Arena *arena, Graph *g)
{
    (void)arena;
    opt_online(c->ctx, g, !compilation_without(c, PASS_ONLINE) && c->target->machine->online);
    return g;
}

static Graph *onto(Compilation *c, Arena *arena, Graph *g)
{
    bool wanted = c->target->machine->adds && !compilation_without(c, PASS_ONTO);
    Graph *to = wanted ? opt_onto(c->ctx, arena, g) : g;
    return to == g ? g : pass_online(c, arena, symmetry(c, arena, to));
}

Graph *compilation_onto(Compilation *c, Arena *arena, Graph *g)
{
    return by_pass(c, arena, g, onto);
}

static Graph *read_back(Compilation *c, Arena *arena, Graph *g)
{
    (void)c;
    recurrence_read_back(arena, g);
    return g;
}

bool pass_onto(Compilation *c)
{
    return graphs_in_place(c, onto) && graphs_in_place(c, read_back);
}
