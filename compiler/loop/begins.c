/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a fold that begins (loop.h): the loops that it begins with stand around it, and run in order; and of the sum beside a map. */
#include "loop/parallel.h"
#include "loop/walk.h"

static bool is_parallel(const ParallelLoop *const *parallel, uint32_t n, VarRef v)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        any |= parallel[i]->loop->var == v;
    }
    return any;
}

const char *begins_problem(const Kernel *k, const Bounds *b,
                           const ParallelLoop *const *parallel, uint32_t n_parallel,
                           const Stmt *s)
{
    bool scan = s->fold != OP_COPY && s->begins && s->n_first == 0 && s->schedule == NULL &&
                expr_load_of(s->value, s->dst) == NULL;
    if (s->scan > 0 && !scan) {
        return "a scan is a fold that always begins, is no product and reads nothing that it "
               "writes";
    }
    if (!s->begins) {
        return s->n_first == 0 ? NULL : "a fold goes on, and names loops that it begins with";
    }
    for (uint32_t i = 0; i < s->n_first; i++) {
        VarRef v = s->first[i];
        if (v >= k->vars.n || !k->vars.at[v].is_loop || !bounds_in_scope(b, v)) {
            return "a fold begins with what is no loop around it";
        }
        if (is_parallel(parallel, n_parallel, v)) {
            return "a fold begins with a loop whose iterations run at the same time";
        }
    }
    return s->fold == OP_COPY && s->sums == 0 ? "what begins is no fold" : NULL;
}

bool buffer_is_writable(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    return param < 0 || k->args.at[param].role == ARG_INOUT ||
           k->args.at[param].role == ARG_RESULT;
}

const char *sums_problem(const Kernel *k, const Stmt *s)
{
    BufRef buf = s->sums - 1;
    DType t = k->bufs.at[buf].dtype, made = DTYPE_NONE;
    if (tile_kind(s) != TILE_MAP || s->schedule != NULL || buf == s->dst) {
        return "only a map has sums beside it, in another buffer";
    }
    if (!buffer_is_writable(k, buf)) {
        return "a map adds up into what is only read by this kernel";
    }
    if (expr_load_of(s->value, buf) != NULL) {
        return "a map reads the sums that it adds to";
    }
    bool sums = op_result_type(OP_SUM, &t, 1, &made) && made == t;
    return sums && tile_summed(k, s)->dtype == t
               ? NULL
               : "the values of a map and its sums are of two types";
}
