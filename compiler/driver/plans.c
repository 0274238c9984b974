/* SPDX-License-Identifier: Apache-2.0 */
/* See plans.h. */
#include "driver/plans.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/sha256.h"
#include "driver/decisions.h"
#include "driver/head.h"
#include "target/machine.h"

static void put_shape(Text *out, const DimTable *dims, DType t, uint32_t rank, const Dim *shape)
{
    text_put(out, dtype_name(t));
    for (uint32_t d = 0; d < rank; d++) {
        text_char(out, ' ');
        dim_put(out, dims, shape[d], NULL);
    }
    text_char(out, '\n');
}

/* All that a plan has to agree with (decisions.c, check_nest), and the machine. */
static void put_program(Arena *arena, const Module *m, Text *out)
{
    for (uint32_t k = 0; k < m->graphs.n; k++) {
        const Graph *g = m->graphs.at[k];
        Head h = head_of_graph(arena, g);
        text_printf(out, "kernel %s %s\n", h.name->text, graph_digest(arena, g));
        for (uint32_t p = 0; p < h.n_params; p++) {
            const Param *x = &h.params[p];
            text_printf(out, "%s %d ", x->name->text, (int)x->role);
            put_shape(out, h.dims, x->dtype, x->rank, x->shape);
        }
        for (uint32_t r = 0; r < h.n_results; r++) {
            const HeadResult *x = &h.results[r];
            text_printf(out, "%s %d ", x->name->text, (int)x->param);
            put_shape(out, h.dims, x->dtype, x->rank, x->shape);
        }
    }
}

const char *plans_folder(void)
{
    const char *folder = getenv("TDSL_PLANS");
    return folder == NULL || folder[0] == '\0' ? NULL : folder;
}

const char *plans_file(ToolRun *t, const Compilation *c, Input *in)
{
    const char *folder = plans_folder();
    if (folder == NULL || in->dump != NULL || mesh_is_asked(&c->mesh) ||
        c->target->machine->kind != MACHINE_CACHES) {
        return NULL;
    }
    const Module *m = input_build(in, option_last(&t->options, OPT_KERNEL, NULL));
    if (m == NULL) {
        return NULL;
    }
    char hex[SHA256_HEX_BYTES];
    Text text = text_new(&t->arena);
    text_printf(&text, "plan 1\n%s %s\n", TDSL_VERSION, c->target->name);
    machine_print(c->target->machine, &text);
    put_program(&t->arena, m, &text);
    sha256_hex(text_str(&text), hex);
    return str_format(&t->arena, "%s/%s.nest", folder, hex);
}

void plans_use(ToolRun *t, const Compilation *c, Input *in)
{
    bool decided = option_given(&t->options, OPT_NEST) || option_given(&t->options, OPT_TUNE) ||
                   option_given(&t->options, OPT_PLAN_OUT) ||
                   option_given(&t->options, OPT_PLAN_IN) ||
                   decisions_stage(t, c) != STAGE_NONE;
    const char *file = decided ? NULL : plans_file(t, c, in);
    if (file == NULL || access(file, R_OK) != 0) {
        return;
    }
    vec_push(&t->arena, &t->options.given[OPT_NEST].at, file);
    if (!t->ctx.diags.no_warnings) {
        diags_tell(&t->ctx.diags, "the plan '%s' of TDSL_PLANS is used", file);
    }
}
