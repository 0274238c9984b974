/* SPDX-License-Identifier: Apache-2.0 */
/* What can be done with each stage: the functions that pipeline.def names, and the walk over the kernels of a
 * compilation that calls them. */
#include <string.h>

#include "driver/compile.h"
#include "driver/head.h"
#include "front/check.h"
#include "graph/recurrence.h"
#include "graph/eval.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "nest/estimate.h"
#include "nest/plan.h"
#include "nest/text.h"
#include "nest/verify.h"

/* ---- the program's text ---- */

/* Tokens, AST and checked programs are TDSL again under a first line that is a comment; the program's name goes to its
 * end, where input.c looks for it. */
static void put_named(const Compilation *c, const Text *text, Text *out)
{
    size_t first = (size_t)((const char *)memchr(text->at, '\n', text->n) - text->at);
    text_put_n(out, text->at, first);
    text_char(out, ' ');
    text_quoted(out, str_from(c->in->program_name));
    text_put_n(out, text->at + first, text->n - first);
}

static void put_tokens(const Compilation *c, uint32_t k, Text *out)
{
    (void)k;
    Text text = text_new(c->arena);
    tokens_dump(c->ctx, c->in->source, &text);
    put_named(c, &text, out);
}

static void put_ast(const Compilation *c, uint32_t k, Text *out)
{
    (void)k;
    Text text = text_new(c->arena);
    ast_dump(&c->in->program->ast, &text);
    put_named(c, &text, out);
}

static void put_checked(const Compilation *c, uint32_t k, Text *out)
{
    (void)k;
    Text text = text_new(c->arena);
    program_dump(c->ctx, c->in->program, &text);
    put_named(c, &text, out);
}

/* ---- graphs ---- */

static void put_graph(const Compilation *c, uint32_t k, Text *out)
{
    graph_dump(c->module->graphs.at[k], out);
}

static bool take_graph(Compilation *c, uint32_t k, DumpReader *r, const DumpLine *line)
{
    (void)k; /* they come in order */
    Graph *g = graph_read(r, c->arena, line);
    if (g != NULL && dist_planned(&g->ranks)) {
        DistHead head = dist_head(c->arena, g);
        g = dist_read(c->ctx, c->arena, &head, &g->ranks) != NULL ? g : NULL;
    }
    if (g != NULL) {
        vec_push(c->arena, &c->module->graphs, g);
    }
    return g != NULL;
}

static bool verify_graph(Compilation *c, uint32_t k, const char *pass)
{
    return graph_verify(c->ctx, c->module->graphs.at[k], pass);
}

static bool eval_graph(Compilation *c, uint32_t k, const int64_t *dims, Tensor *const *args,
                       Tensor **results)
{
    return graph_eval(c->ctx, c->arena, c->module->graphs.at[k], dims, args, results);
}

/* ---- nests ---- */

static void put_nest(const Compilation *c, uint32_t k, Text *out)
{
    nest_dump(c->nests[k], out);
}

/* What a nest's text does not say: levels of contractions, and prices. */
static void complete_nest(Compilation *c, Nest *nest)
{
    for (uint32_t k = 0; k < nest->graph->recurrences.n; k++) {
        complete_nest(c, (Nest *)nest->graph->recurrences.at[k]->nest);
    }
    for (uint32_t i = 0; i < nest_count(nest); i++) {
        Nest *at = nest->n_sizes == 0 ? nest : nest->sizes[i].nest;
        nest_block(c->ctx, c->arena, c->target->machine, at);
        nest_estimate(c->ctx, c->target->machine, at);
    }
}

static bool take_nest(Compilation *c, uint32_t k, DumpReader *r, const DumpLine *line)
{
    (void)r;
    Nest *nest = nest_read(c->ctx, c->arena, c->module->graphs.at[k], line);
    c->nests[k] = nest;
    if (nest != NULL) {
        complete_nest(c, nest);
    }
    return nest != NULL;
}

static bool verify_nest(Compilation *c, uint32_t k, const char *pass)
{
    return nest_verify(c->ctx, c->nests[k], pass);
}

/* ---- kernels ---- */

static void put_kernel(const KernelModule *m, uint32_t k, Text *out)
{
    text_char(out, '\n');
    kernel_dump(m->kernels.at[k], out);
}

/* Into `tiled`, whichever form it has: compilation_read_dump moves the module when all are there. */
static bool take_kernel(Compilation *c, uint32_t k, DumpReader *r, const DumpLine *line)
{
    (void)k;
    Kernel *kernel = kernel_read(r, line);
    if (kernel == NULL) {
        return false;
    }
    vec_push(c->arena, &c->tiled->kernels, kernel);
    bool legal = kernel->form == LOOP_LEGAL;
    if (kernel->form != c->tiled->kernels.at[0]->form ||
        (legal && strcmp(kernel->target, c->target->name) != 0)) {
        return dump_refuse(
            c->ctx, kernel->span,
            "the kernels of a dump have one form, and a legal one is for this target");
    }
    return !legal || c->target->verify(c->target, c->ctx, kernel);
}

/* The interpreter gives inout and result arguments in calling order; results are those of the graph, or of the head where there is
 * no graph. */
static bool eval_kernel(Compilation *c, const KernelModule *m, uint32_t k, const int64_t *dims,
                        Tensor *const *args, Tensor **results)
{
    const Kernel *kernel = m->kernels.at[k];
    Head h = c->module == NULL ? head_of_kernel(c->arena, kernel)
                               : head_of_graph(c->arena, c->module->graphs.at[k]);
    Tensor **given = ARENA_ARRAY(c->arena, kernel->args.n, Tensor *);
    if (!loop_eval(c->ctx, c->arena, kernel, dims, args, given)) {
        return false;
    }
    for (uint32_t a = 0, at = 0; a < kernel->args.n; a++) {
        const Arg *arg = &kernel->args.at[a];
        if (arg->role != ARG_INOUT && arg->role != ARG_RESULT) {
            continue;
        }
        for (uint32_t r = 0; r < h.n_results; r++) {
            if (h.results[r].name == kernel->bufs.at[arg->buf].name) {
                results[r] = given[at];
            }
        }
        at++;
    }
    return true;
}

static void put_tiled(const Compilation *c, uint32_t k, Text *out)
{
    put_kernel(c->tiled, k, out);
}

static bool verify_tiled(Compilation *c, uint32_t k, const char *pass)
{
    return loop_verify(c->ctx, c->tiled->kernels.at[k], pass);
}

static bool eval_tiled(Compilation *c, uint32_t k, const int64_t *dims, Tensor *const *args,
                       Tensor **results)
{
    return eval_kernel(c, c->tiled, k, dims, args, results);
}

static void put_legal(const Compilation *c, uint32_t k, Text *out)
{
    put_kernel(c->legal, k, out);
}

static bool verify_legal(Compilation *c, uint32_t k, const char *pass)
{
    const Kernel *kernel = c->legal->kernels.at[k];
    return loop_verify(c->ctx, kernel, pass) && c->target->verify(c->target, c->ctx, kernel);
}

static bool eval_legal(Compilation *c, uint32_t k, const int64_t *dims, Tensor *const *args,
                       Tensor **results)
{
    return eval_kernel(c, c->legal, k, dims, args, results);
}

/* ---- the table ---- */

static const StageInfo infos[STAGE_COUNT] = {
#define STAGE(id, name, form, onto, put, take, verify, eval)                                   \
    [STAGE_##id] = {STAGE_##onto, put, take, verify, eval},
#include "driver/pipeline.def"
};

const StageInfo *stage_info(Stage s)
{
    return &infos[s];
}

/* ---- all kernels ---- */

/* What kernels are dumped as, whichever form they have: they say it themselves. */
#define KERNEL_HEAD "loop"

static const KernelModule *kernels_of(const Compilation *c, Stage s)
{
    return s == STAGE_LEGAL ? c->legal : c->tiled;
}

static uint32_t n_kernels(const Compilation *c, Stage s)
{
    return stage_form(s) == FORM_KERNEL ? kernels_of(c, s)->kernels.n : c->module->graphs.n;
}

static void put_onto(const Compilation *c, Stage s, uint32_t k, Text *out)
{
    if (infos[s].onto != STAGE_NONE) {
        put_onto(c, infos[s].onto, k, out);
    }
    infos[s].put(c, k, out);
}

void compilation_dump(const Compilation *c, Stage s, Text *out)
{
    if (stage_form(s) == FORM_TEXT) {
        infos[s].put(c, 0, out);
        return;
    }
    bool kernels = stage_form(s) == FORM_KERNEL;
    dump_head(out, kernels ? KERNEL_HEAD : stage_name(s),
              kernels ? kernels_of(c, s)->source_name : c->module->source_name,
              s == c->stage ? passes_after(c->target, c->next) : NULL);
    for (uint32_t k = 0; k < n_kernels(c, s); k++) {
        put_onto(c, s, k, out);
    }
}

bool compilation_verify(Compilation *c, Stage s, const char *pass)
{
    for (uint32_t k = 0; infos[s].verify != NULL && k < n_kernels(c, s); k++) {
        if (!infos[s].verify(c, k, pass)) {
            return false;
        }
    }
    return true;
}

/* ---- the way back in ---- */

/* Empty modules for a dump of stage `s` with at most `n` kernels. */
static void make_room(Compilation *c, Stage s, const char *source_name, uint32_t n)
{
    if (stage_form(s) == FORM_KERNEL) {
        c->tiled = ARENA_NEW(c->arena, KernelModule);
        *c->tiled = (KernelModule){.arena = c->arena, .source_name = source_name};
        return;
    }
    c->module = ARENA_NEW(c->arena, Module);
    *c->module = (Module){.arena = c->arena, .source_name = source_name};
    c->nests = ARENA_ARRAY(c->arena, n, const Nest *);
}

/* The parts of one kernel, from the graph on; *at is the line after. */
static bool take_onto(Compilation *c, Stage s, uint32_t k, DumpReader *r, const DumpTree *tree,
                      uint32_t *at)
{
    if (infos[s].onto != STAGE_NONE && !take_onto(c, infos[s].onto, k, r, tree, at)) {
        return false;
    }
    if (*at == tree->n) {
        return dump_refuse(c->ctx, tree->line[*at - 1]->span,
                           "the dump ends before the '%s' of this kernel", stage_name(s));
    }
    return infos[s].take(c, k, r, tree->line[(*at)++]);
}

/* Goes on behind the pass that has left the text. */
static bool go_on(Compilation *c, const Term *after)
{
    c->next = passes_from(c->target, c->stage);
    if (after == NULL) {
        return true;
    }
    uint32_t place = pass_find(c->target, after->text->text);
    Pass pass = pass_at(c->target, place < pass_count(c->target) ? place : 0);
    if (pass.to != c->stage || pass.without == WITHOUT_PART ||
        strcmp(pass.name, after->text->text) != 0) {
        return dump_refuse(c->ctx, after->span,
                           "no pass '%.60s' of target '%s' leaves such a dump",
                           after->text->text, c->target->name);
    }
    c->next = place + 1;
    return true;
}

bool compilation_read_dump(Compilation *c, uint32_t source, const char *stage)
{
    Stage s = STAGE_NONE;
    if (!stage_from_name(stage, &s) || infos[s].take == NULL) {
        return dump_refuse(c->ctx, (Span){source, 0, 0}, "a dump of stage '%s' cannot be read",
                           stage);
    }
    DumpTree *tree = dump_tree_read(c->ctx, c->arena, source);
    DumpReader r;
    dump_reader_init(&r, c->ctx, c->arena);
    const char *name = NULL;
    uint32_t at = 0;
    if (tree == NULL || !read_module_head(&r, tree, stage, &name, &at)) {
        return false;
    }
    make_room(c, s, name, tree->n - at);
    Map names;
    map_init(&names, c->arena);
    for (uint32_t k = 0; at < tree->n; k++) {
        const DumpLine *line = tree->line[at];
        if (!take_onto(c, s, k, &r, tree, &at)) {
            return false;
        }
        Sym kernel = stage_form(s) == FORM_KERNEL ? c->tiled->kernels.at[k]->name
                                                  : c->module->graphs.at[k]->name;
        uint32_t before = 0;
        if (map_get(&names, kernel->id, &before)) {
            return dump_refuse(c->ctx, line->span, "there are two kernels called '%s'",
                               kernel->text);
        }
        map_put(&names, kernel->id, k);
    }
    c->stage = s;
    if (stage_form(s) == FORM_KERNEL && c->tiled->kernels.n > 0 &&
        c->tiled->kernels.at[0]->form == LOOP_LEGAL) {
        c->stage = STAGE_LEGAL;
        c->legal = c->tiled;
        c->tiled = NULL;
    }
    return go_on(c, r.after);
}
