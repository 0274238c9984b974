/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a dump of graphs. What reads prints as a text that reads and prints the same, passes of opt leave it
 * well-formed, and it can be evaluated when it is small. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "graph/eval.h"
#include "opt/opt.h"

static const char *module_text(Ctx *c, const Module *m)
{
    Text out;
    text_init(&out, &c->arena);
    module_dump(m, &out);
    return out.at;
}

static void check_round_trip(Ctx *c, const Module *m)
{
    const char *once = module_text(c, m);
    uint32_t source = source_add(&c->sources, "again", str_from(once), (Span){0, 0, 0});
    const Module *again = module_read(c, source);
    MUST(again != NULL);
    MUST(strcmp(module_text(c, again), once) == 0);
}

static bool is_small(const Graph *g)
{
    for (uint32_t r = 0; r < g->nodes.n; r++) {
        int64_t size = 1;
        for (uint32_t l = 0; l < graph_node(g, r)->n_labels; l++) {
            size = sat_mul(size, dim_typical(&g->dims, graph_node(g, r)->extent[l]) + 1);
        }
        if (size > 100000) {
            return false;
        }
    }
    return g->nodes.n < 200;
}

static void check_runs(Ctx *c, const Graph *g)
{
    int64_t *dims = ARENA_ARRAY(&c->arena, g->dims.list.n, int64_t);
    Tensor **args = ARENA_ARRAY(&c->arena, g->params.n, Tensor *);
    Tensor **results = ARENA_ARRAY(&c->arena, g->results.n, Tensor *);
    for (uint32_t k = 0; k < g->dims.list.n; k++) {
        dims[k] = g->dims.list.at[k].typical;
    }
    for (uint32_t p = 0; p < g->params.n; p++) {
        int64_t extent[RANK_LIMIT], count = 1;
        for (uint32_t d = 0; d < g->params.at[p].rank; d++) {
            extent[d] = dim_typical(&g->dims, g->params.at[p].shape[d]);
            count = sat_mul(count, extent[d] + 1);
        }
        if (count > 100000) {
            return;
        }
        args[p] = tensor_new(c, &c->arena, g->params.at[p].dtype, g->params.at[p].rank, extent);
    }
    MUST(graph_eval(c, &c->arena, g, dims, args, results));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx c;
    ctx_init(&c);
    Str text = {str_dup(&c.arena, (Str){(const char *)data, size}), size};
    const Module *m = module_read(&c, source_add(&c.sources, "fuzz", text, (Span){0, 0, 0}));
    MUST((m == NULL) == (diags_exit_code(&c.diags) != 0));
    if (m != NULL) {
        check_round_trip(&c, m);
        Text out;
        text_init(&out, &c.arena);
        module_dump_json(m, &out);
        for (uint32_t k = 0; k < m->graphs.n; k++) {
            const Graph *g = m->graphs.at[k];
            const Graph *simple = opt_simplify(&c, &c.arena, g);
            MUST(graph_verify(&c, simple, "simplify"));
            if (g->form == GRAPH_TENSOR) {
                const Graph *plain =
                    opt_products(&c, &c.arena, opt_powers(&c, &c.arena, simple), true);
                MUST(graph_verify(&c, plain, "products"));
                const Graph *normal = opt_normalise(&c, &c.arena, plain);
                MUST(graph_verify(&c, normal, "normalise"));
            }
            if (is_small(g)) {
                check_runs(&c, g);
            }
        }
    }
    ctx_release(&c);
    return 0;
}
