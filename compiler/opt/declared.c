/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are declared symmetric and are not seen to be so: nothing is made of a promise about a result, but who
 * made it should know that nobody keeps it. */
#include "opt/opt.h"

/* The first exchange of what is declared of the result that it is not known to allow. */
static bool find_unseen(Arena *scratch, const Graph *g, const Result *r, uint32_t *to,
                        Generator *unseen)
{
    uint32_t k = 0, rank = graph_node(g, r->node)->rank;
    while (symmetry_generator(r->symmetry, rank, k, to, unseen)) {
        if (!graph_has_symmetry(scratch, g, r->node, *unseen)) {
            return true;
        }
        k++;
    }
    return false;
}

/* "0 and 1", "(0, 1) and (2, 3)": the dimensions that are exchanged. */
static const char *exchanged_text(Arena *arena, uint32_t rank, const uint32_t *to)
{
    Text t = text_new(arena);
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        n += to[d] > d ? 1 : 0;
    }
    for (int side = 0; side < 2; side++) {
        uint32_t k = 0;
        text_put(&t, n > 1 ? side == 0 ? "(" : " and (" : side == 0 ? "" : " and ");
        for (uint32_t d = 0; d < rank; d++) {
            if (to[d] > d) {
                text_printf(&t, "%s%u", k++ > 0 ? ", " : "", side == 0 ? d : to[d]);
            }
        }
        text_put(&t, n > 1 ? ")" : "");
    }
    return t.at;
}

void opt_warn_declared(Ctx *ctx, const Graph *g)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        uint32_t to[RANK_LIMIT];
        Generator unseen;
        if (find_unseen(&scratch, g, r, to, &unseen)) {
            Diagnostic *w =
                diag_warning(&ctx->diags, W_SYMMETRY, r->span,
                             "'%s' is declared %s in dimensions %s, and is not seen to be so",
                             r->name->text, symmetry_word(unseen.sign, unseen.conj),
                             exchanged_text(&scratch, graph_node(g, r->node)->rank, to));
            diag_help(w, "tdsl-run --check-symmetry looks at its elements");
        }
    }
    arena_release(&scratch);
}
