/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are declared symmetric and are not seen to be so: nothing is made of a promise about a result, but who
 * made it should know that nobody keeps it. */
#include "opt/opt.h"

/* Two dimensions of one class with which the value is not known to do what is declared: false when there are none. */
static bool find_unseen(Arena *scratch, const Graph *g, const Result *r, uint32_t *d,
                        uint32_t *other)
{
    uint32_t to[RANK_LIMIT], rank = graph_node(g, r->node)->rank;
    for (*d = 0; *d < rank; (*d)++) {
        *other = symmetry_next(rank, r->symmetry, *d);
        for (uint32_t e = 0; e < rank; e++) {
            to[e] = e == *d && *other < rank ? *other : e == *other ? *d : e;
        }
        int sign = r->symmetry[*d] > 0 ? 1 : -1;
        if (*other < rank && graph_symmetry_sign(scratch, g, r->node, to) != sign) {
            return true;
        }
    }
    return false;
}

void opt_warn_declared(Ctx *ctx, const Graph *g)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        uint32_t d = 0, other = 0;
        if (r->symmetry != NULL && find_unseen(&scratch, g, r, &d, &other)) {
            Diagnostic *w = diag_warning(
                &ctx->diags, W_SYMMETRY, r->span,
                "'%s' is declared %s in dimensions %u and %u, and is not seen to "
                "be so",
                r->name->text, r->symmetry[d] > 0 ? "symmetric" : "antisymmetric", d, other);
            diag_help(w, "tdsl-run --check-symmetry looks at its elements");
        }
    }
    arena_release(&scratch);
}
