/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of every stage, and the way back in: a fuse dump is a module's graphs, each followed by
 * its partition; a schedule dump adds the schedule. */
#include <string.h>

#include "driver/compile.h"
#include "dump/text.h"

static const char *const stage_names[STAGE_COUNT] = {
    "tokens", "ast", "checked", "graph", "path", "fuse", "schedule", "loop", "legal", "output"};

const char *stage_name(Stage s)
{
    return stage_names[s];
}

bool stage_from_name(const char *name, Stage *out)
{
    for (Stage s = 0; s < STAGE_OUTPUT; s++) {
        if (strcmp(name, stage_names[s]) == 0) {
            *out = s;
            return true;
        }
    }
    return false;
}

void compilation_dump(const Compilation *c, Stage stage, Text *out)
{
    if (stage == STAGE_LOOP || stage == STAGE_LEGAL) {
        kernel_module_dump(stage == STAGE_LOOP ? c->tiled : c->legal, out);
        return;
    }
    dump_head(out, stage_name(stage), c->module->source_name);
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        graph_dump(c->module->graphs.at[k], out);
        if (stage >= STAGE_FUSE) {
            fuse_dump(c->partitions[k], out);
        }
        if (stage >= STAGE_SCHEDULE) {
            schedule_dump(c->schedules[k], out);
        }
    }
}

void compilation_print_graph(const Compilation *c, bool dot, Text *out)
{
    if (!dot) {
        module_dump_json(c->module, out);
        return;
    }
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        graph_dump_dot(c->module->graphs.at[k], out);
    }
}

/* ---- reading ---- */

static bool is_block(const DumpLine *line, const char *word)
{
    return line->n > 0 && line->term[0]->kind == TERM_NAME &&
           strcmp(line->term[0]->text->text, word) == 0;
}

static bool expect_block(Compilation *c, const DumpTree *tree, uint32_t at, const char *word)
{
    if (at < tree->n && is_block(tree->line[at], word)) {
        return true;
    }
    diag_error(&c->ctx->diags, E_DUMP, at < tree->n ? tree->line[at]->span : (Span){0},
               "'%s' is expected here", word);
    return false;
}

static bool read_kernels(Compilation *c, DumpReader *r, const DumpTree *tree, uint32_t at,
                         Stage stage)
{
    uint32_t room = tree->n - at;
    c->partitions = ARENA_ARRAY(c->arena, room, const Partition *);
    c->schedules = ARENA_ARRAY(c->arena, room, const Schedule *);
    while (at < tree->n) {
        uint32_t k = c->module->graphs.n;
        Graph *g = graph_read(r, c->arena, tree->line[at++]);
        if (g == NULL || !graph_verify(c->ctx, g, "read")) {
            return false;
        }
        vec_push(c->arena, &c->module->graphs, g);
        if (stage >= STAGE_FUSE) {
            if (!expect_block(c, tree, at, "partition")) {
                return false;
            }
            c->partitions[k] = fuse_read(c->ctx, c->arena, g, tree->line[at++]);
            if (c->partitions[k] == NULL) {
                return false;
            }
        }
        if (stage >= STAGE_SCHEDULE) {
            if (!expect_block(c, tree, at, "schedule")) {
                return false;
            }
            c->schedules[k] =
                schedule_read(c->ctx, c->arena, c->partitions[k], tree->line[at++]);
            if (c->schedules[k] == NULL) {
                return false;
            }
        }
    }
    return true;
}

static bool read_module(Compilation *c, uint32_t source, Stage stage)
{
    DumpTree *tree = dump_tree_read(c->ctx, c->arena, source);
    if (tree == NULL) {
        return false;
    }
    DumpReader r;
    dump_reader_init(&r, c->ctx, c->arena);
    uint32_t at = 0;
    c->module = ARENA_NEW(c->arena, Module);
    c->module->arena = c->arena;
    return read_module_head(&r, tree, stage_name(stage), &c->module->source_name, &at) &&
           read_kernels(c, &r, tree, at, stage);
}

static bool read_kernel_module(Compilation *c, uint32_t source)
{
    KernelModule *m = kernel_module_read(c->ctx, source);
    for (uint32_t k = 0; m != NULL && k < m->kernels.n; k++) {
        const Kernel *kernel = m->kernels.at[k];
        bool legal = kernel->form == LOOP_LEGAL;
        c->stage = legal ? STAGE_LEGAL : STAGE_LOOP;
        if (kernel->form != m->kernels.at[0]->form ||
            (legal && strcmp(kernel->target, c->target->name) != 0)) {
            diag_error(
                &c->ctx->diags, E_DUMP, kernel->span,
                "the kernels of a dump have one form, and a legal one is for this target");
            return false;
        }
        if (!loop_verify(c->ctx, kernel, "read") ||
            (legal && !c->target->verify(c->ctx, kernel))) {
            return false;
        }
    }
    *(c->stage == STAGE_LEGAL ? &c->legal : &c->tiled) = m;
    return m != NULL;
}

bool compilation_read_dump(Compilation *c, uint32_t source, const char *stage)
{
    Stage s = 0;
    if (!stage_from_name(stage, &s) || s < STAGE_GRAPH) {
        diag_error(&c->ctx->diags, E_DUMP, (Span){source, 0, 0},
                   "a dump of stage '%s' cannot be read", stage);
        return false;
    }
    c->stage = s;
    return s < STAGE_LOOP ? read_module(c, source, s) : read_kernel_module(c, source);
}
