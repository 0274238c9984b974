/* SPDX-License-Identifier: Apache-2.0 */
/* References of statements (refers.h). */
#include "loop/refers.h"

#include "loop/clauses.h"
#include "loop/walk.h"

typedef struct Refers {
    const Kernel *k;
    uint32_t expr_nodes; /* of the value at hand */
    const char *wrong;
} Refers;

static bool malformed(Refers *r, const char *what)
{
    r->wrong = what;
    return false;
}

static bool affine_refers(Refers *r, Affine x)
{
    return affine_is_canonical(x, r->k->vars.n, r->k->dims.list.n) ||
           malformed(r, "an index is not in canonical form");
}

static bool access_refers(Refers *r, BufRef buf, const Affine *at)
{
    if (buf >= r->k->bufs.n) {
        return malformed(r, "an access of no buffer");
    }
    for (uint32_t d = 0; d < r->k->bufs.at[buf].rank; d++) {
        if (!affine_refers(r, at[d])) {
            return false;
        }
    }
    return true;
}

static bool extent_refers(Refers *r, Dim d)
{
    bool open = d.sym >= 0;
    if (d.sym < -1 || (open && ((uint32_t)d.sym >= r->k->dims.list.n || d.n != 0))) {
        return malformed(r, "an extent is no dim of the kernel");
    }
    return true;
}

static bool range_refers(Refers *r, const Range *x)
{
    return affine_refers(r, x->start) && (!x->clipped || extent_refers(r, x->limit));
}

static bool expr_refers(Refers *r, const Expr *e, uint32_t depth)
{
    if (depth > EXPR_DEPTH_LIMIT || r->expr_nodes++ > EXPR_SIZE_LIMIT) {
        return malformed(r, "a value is nested too deeply or has too many parts");
    }
    if (!dtype_known(e->dtype)) {
        return malformed(r, "a part of a value has no type");
    }
    switch (e->kind) {
    case EXPR_CONST:
        return e->value.dtype == e->dtype || malformed(r, "a constant has two types");
    case EXPR_EXTENT:
        return e->dtype == DTYPE_BOOL || e->dim < 0
                   ? malformed(r, "the extent of no dim, or as bool")
                   : extent_refers(r, dim_open(e->dim));
    case EXPR_INDEX:
        return affine_refers(r, e->at[0]);
    case EXPR_LOAD:
        return access_refers(r, e->buf, e->at);
    case EXPR_OP:
        break;
    }
    bool gathers = e->kind == EXPR_OP && e->op == OP_GATHER;
    if (gathers && (e->buf >= r->k->bufs.n || r->k->bufs.at[e->buf].rank != e->n_args)) {
        return malformed(r, "a gather from no buffer, or with other positions than it has");
    }
    if (!gathers &&
        (e->kind != EXPR_OP || (int)e->op < 0 || e->op >= OP_COUNT ||
         op_info(e->op)->kind != OPKIND_MAP || op_info(e->op)->arity != (int)e->n_args)) {
        return malformed(r, "an operation that is not elementwise, or of other arity");
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (!expr_refers(r, e->arg[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool var_refers(Refers *r, VarRef var, bool is_loop)
{
    return (var < r->k->vars.n && r->k->vars.at[var].is_loop == is_loop) ||
           malformed(r, "a loop or an index without a variable of its kind");
}

static bool window_refers(Refers *r, const Window *w)
{
    return w == NULL || (affine_refers(r, w->lo) && affine_refers(r, w->hi));
}

static bool clauses_refer(Refers *r, const Stmt *s)
{
    bool ok = true;
    Clauses has;
    clauses_of(r->k, s, &has);
    for (const Clause *c = has.at; ok && c < has.at + has.n; c++) {
        ok = ((c->index == NULL || *c->index <= s->n_index) &&
              (c->buf == NULL || *c->buf <= r->k->bufs.n)) ||
             malformed(r, "a clause of no index or no buffer");
        ok = ok && (c->at == NULL || access_refers(r, *c->buf - 1, *c->at));
        for (uint32_t i = 0; c->loop != NULL && ok && i < *c->n_loops; i++) {
            ok = var_refers(r, (*c->loop)[i], true);
        }
    }
    return ok;
}

static bool statement_refers(Refers *r, const Stmt *s)
{
    switch (s->kind) {
    case STMT_FOR:
        return var_refers(r, s->var, true) && range_refers(r, &s->range) &&
               window_refers(r, s->window);
    case STMT_BLOCK:
        for (uint32_t i = 0; i < s->n_guards; i++) {
            if (!var_refers(r, s->guard[i].var, true) || !affine_refers(r, s->guard[i].from)) {
                return false;
            }
        }
        return true;
    case STMT_ALLOC:
        if (s->prefetch != NULL &&
            (!access_refers(r, s->prefetch->buf, s->prefetch->at) ||
             (s->prefetch->past != NULL &&
              (!var_refers(r, s->prefetch->var, true) ||
               !access_refers(r, s->prefetch->buf, s->prefetch->past))))) {
            return false;
        }
        return (s->buf < r->k->bufs.n && clauses_refer(r, s)) ||
               malformed(r, "an alloc without a buffer");
    case STMT_TILE:
        for (uint32_t i = 0; i < s->n_index; i++) {
            if (!var_refers(r, s->index[i].var, false) ||
                !range_refers(r, &s->index[i].range) || !window_refers(r, s->index[i].window)) {
                return false;
            }
        }
        if ((int)s->fold < 0 || s->fold >= OP_COUNT ||
            (s->fold != OP_COPY && op_info(s->fold)->kind != OPKIND_REDUCE)) {
            return malformed(r, "a fold that is no reduction");
        }
        r->expr_nodes = 0;
        return access_refers(r, s->dst, s->at) && expr_refers(r, s->value, 0) &&
               clauses_refer(r, s);
    }
    return malformed(r, "a statement of no kind");
}

const char *dim_refers(const Kernel *k, Dim d)
{
    Refers r = {.k = k};
    (void)extent_refers(&r, d);
    return r.wrong;
}

const char *stmt_refers(const Kernel *k, const Stmt *s)
{
    Refers r = {.k = k};
    (void)statement_refers(&r, s);
    return r.wrong;
}
