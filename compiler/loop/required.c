/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that computes the positions which another one requires to lie inside (refers.h). */
#include "loop/refers.h"

#include "loop/walk.h"

/* Its loops may have made `k` others, behind those. */
static bool same_dims(const Kernel *k, const Kernel *p)
{
    bool same = p->dims.list.n <= k->dims.list.n;
    for (uint32_t d = 0; same && d < p->dims.list.n; d++) {
        same = k->dims.list.at[d].name == p->dims.list.at[d].name;
    }
    return same;
}

/* Is the parameter of the one what callers of the other have? That may have it as parts or as words. */
static bool same_param(const Kernel *k, const Arg *x, const Kernel *p, const Arg *y)
{
    const Buffer *a = &k->bufs.at[x->buf], *b = &p->bufs.at[y->buf];
    bool parts = x->whole != DTYPE_NONE && y->whole == DTYPE_NONE;
    uint32_t rank = !parts ? a->rank : x->whole_rank == 0 ? 0 : a->rank - 1;
    bool same = x->role == y->role && (parts || x->whole == y->whole) && b->rank == rank &&
                b->dtype == (parts ? x->whole : buffer_stored(a));
    for (uint32_t d = 0; same && d < rank; d++) {
        same = dim_eq(a->extent[d], b->extent[d]);
    }
    return same;
}

/* The parameters of `k`, and a result for each requirement. */
static bool same_params(const Kernel *k, const Kernel *p)
{
    uint32_t n = 0;
    while (n < k->args.n && k->args.at[n].role != ARG_RESULT) {
        n++;
    }
    bool same = p->args.n == n + k->n_required;
    for (uint32_t i = 0; same && i < p->args.n; i++) {
        const Arg *x = i < n ? &k->args.at[i] : NULL, *y = &p->args.at[i];
        same = x != NULL ? same_param(k, x, p, y) : y->role == ARG_RESULT;
    }
    return same;
}

const char *required_problem(Arena *scratch, const Kernel *k)
{
    const Kernel *p = k->positions;
    if (p == NULL) {
        return k->n_required == 0 ? NULL : "requirements without positions";
    }
    if (p->positions != NULL || p->form != LOOP_TILED || p->n_body != k->n_required ||
        !same_dims(k, p) || !same_params(k, p)) {
        return "positions are not of the parameters, one for each requirement";
    }
    for (uint32_t r = 0; r < k->n_required; r++) {
        const Stmt *s = p->body[r];
        BufRef to = p->args.at[p->args.n - k->n_required + r].buf;
        bool whole = s->kind == STMT_TILE && s->fold == OP_COPY && s->sums == 0 &&
                     s->dst == to && p->bufs.at[to].dtype == DTYPE_I64 &&
                     p->bufs.at[to].rank == s->n_index;
        for (uint32_t i = 0; whole && i < s->n_index; i++) {
            const Range *x = &s->index[i].range;
            whole = x->span == 0 && x->start.n == 0 && x->start.base == 0 &&
                    dim_eq(x->limit, p->bufs.at[to].extent[i]) &&
                    affine_is(s->at[i], s->index[i].var);
        }
        if (!whole) {
            return "a position is no statement over all of its indices";
        }
        bool *read = ARENA_ARRAY(scratch, p->bufs.n, bool);
        expr_mark_loads(s->value, read);
        for (uint32_t a = p->args.n - k->n_required; a < p->args.n; a++) {
            if (read[p->args.at[a].buf]) {
                return "a position is made of another one";
            }
        }
        if (dim_refers(k, k->required[r].below) != NULL || k->required[r].array == NULL ||
            k->required[r].text == NULL || k->required[r].indices == NULL) {
            return "a requirement does not say of what";
        }
    }
    return NULL;
}
