/* SPDX-License-Identifier: Apache-2.0 */
/* See head.h. */
#include "driver/head.h"

#include <string.h>

#include "loop/walk.h"

Head head_of_graph(Arena *arena, const Graph *g)
{
    HeadResult *results = ARENA_ARRAY(arena, g->results.n, HeadResult);
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        const Node *n = graph_node(g, r->node);
        const Param *p = r->param < 0 ? NULL : &g->params.at[r->param];
        uint32_t rank = p != NULL ? p->rank : r->shape != NULL ? r->rank : n->rank;
        const Dim *shape = p != NULL ? p->shape : r->shape != NULL ? r->shape : n->shape;
        results[k] = (HeadResult){r->name, n->dtype, rank, shape, r->param, r->symmetry};
    }
    return (Head){g->name, &g->dims, g->params.n, g->results.n, g->params.at, results};
}

static ParamRole param_role(ArgRole role)
{
    return role == ARG_INOUT ? PARAM_INOUT : role == ARG_SCALAR ? PARAM_SCALAR : PARAM_IN;
}

static bool is_written(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    const Stmt *s = tile_first(&w, k->body, k->n_body);
    while (s != NULL && s->dst != buf) {
        s = tile_next(&w);
    }
    return s != NULL;
}

Head head_of_kernel(Arena *arena, const Kernel *k)
{
    Param *params = ARENA_ARRAY(arena, k->args.n, Param);
    HeadResult *results = ARENA_ARRAY(arena, k->args.n, HeadResult);
    Head h = {.name = k->name, .dims = &k->dims, .params = params, .results = results};
    for (uint32_t a = 0; a < k->args.n; a++) {
        const Arg *arg = &k->args.at[a];
        const Buffer *b = &k->bufs.at[arg->buf];
        bool parts = arg->whole != DTYPE_NONE; /* the caller has complex numbers */
        DType dtype = parts ? arg->whole : buffer_stored(b);
        uint32_t rank = parts ? arg->whole_rank : arg->shape != NULL ? arg->rank : b->rank;
        const Dim *shape = arg->shape != NULL ? arg->shape : b->extent;
        if (arg->role == ARG_RESULT || (arg->role == ARG_INOUT && is_written(k, arg->buf))) {
            int32_t param = arg->role == ARG_INOUT ? (int32_t)h.n_params : -1;
            results[h.n_results++] =
                (HeadResult){b->name, dtype, rank, shape, param, arg->symmetry};
        }
        if (arg->role != ARG_RESULT) {
            params[h.n_params++] = (Param){.name = b->name,
                                           .role = param_role(arg->role),
                                           .dtype = dtype,
                                           .rank = rank,
                                           .shape = shape,
                                           .span = b->span,
                                           .symmetry = arg->symmetry};
        }
    }
    return h;
}

/* ---- one head for another ---- */

typedef struct Match {
    const Head *made, *asked;
    const int64_t *bound;
    Dim *is; /* [asked dims]: what each is in `made`; sym -2: nothing yet */
} Match;

static bool dims_match(Match *m, Dim made, Dim asked)
{
    if (made.sym >= 0 && m->bound != NULL && m->bound[made.sym] >= 0) {
        made = dim_fixed(m->bound[made.sym]);
    }
    if (asked.sym < 0) {
        return made.sym < 0 && made.n == asked.n;
    }
    Dim *is = &m->is[asked.sym];
    if (is->sym == -2) {
        *is = made;
        return made.sym < 0 ||
               m->made->dims->list.at[made.sym].name == m->asked->dims->list.at[asked.sym].name;
    }
    return is->sym == made.sym && is->n == made.n;
}

static bool shapes_match(Match *m, uint32_t rank, const Dim *made, const Dim *asked)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (!dims_match(m, made[d], asked[d])) {
            return false;
        }
    }
    return true;
}

/* A parameter or a result. */
typedef struct Declared {
    const char *kind;
    Sym name;
    int32_t place; /* the role of a parameter; the parameter that a result updates */
    TensorType type;
    const Symmetry *symmetry;
} Declared;

static Declared of_param(const Param *p)
{
    return (Declared){
        "parameter", p->name, (int32_t)p->role, {p->dtype, p->rank, p->shape}, p->symmetry};
}

static Declared of_result(const HeadResult *r)
{
    return (Declared){"result", r->name, r->param, {r->dtype, r->rank, r->shape}, r->symmetry};
}

/* "result 'R' is f64[n] here, f64[5] there"; null: none. */
static const char *difference(Arena *arena, Match *m, Declared made, Declared asked)
{
    Text t = text_new(arena);
    if (made.name == asked.name && made.place == asked.place &&
        made.type.dtype == asked.type.dtype && made.type.rank == asked.type.rank &&
        shapes_match(m, made.type.rank, made.type.dims, asked.type.dims) &&
        symmetry_eq(made.symmetry, asked.symmetry)) {
        return NULL;
    }
    text_printf(&t, "%s '%s' ", asked.kind, asked.name->text);
    if (made.name != asked.name) {
        text_printf(&t, "is '%s' there", made.name->text);
        return t.at;
    }
    if (made.place != asked.place && strcmp(asked.kind, "parameter") == 0) {
        text_put(&t, "has another role");
        return t.at;
    }
    text_put(&t, "is ");
    dump_type(&t, m->asked->dims, asked.type.dtype, asked.type.rank, asked.type.dims);
    dump_symmetry(&t, asked.symmetry);
    text_put(&t, " here, ");
    dump_type(&t, m->made->dims, made.type.dtype, made.type.rank, made.type.dims);
    dump_symmetry(&t, made.symmetry);
    text_put(&t, " there");
    return t.at;
}

bool head_serves(Arena *arena, const Head *made, const int64_t *bound, const Head *asked,
                 const char **what)
{
    Match m = {made, asked, bound, ARENA_ARRAY(arena, asked->dims->list.n, Dim)};
    for (uint32_t d = 0; d < asked->dims->list.n; d++) {
        m.is[d].sym = -2;
    }
    if (made->n_params != asked->n_params || made->n_results != asked->n_results) {
        *what = "it has another number of parameters or results";
        return false;
    }
    const char *found = NULL;
    for (uint32_t k = 0; k < made->n_params && found == NULL; k++) {
        found = difference(arena, &m, of_param(&made->params[k]), of_param(&asked->params[k]));
    }
    for (uint32_t k = 0; k < made->n_results && found == NULL; k++) {
        found =
            difference(arena, &m, of_result(&made->results[k]), of_result(&asked->results[k]));
    }
    *what = found != NULL ? found : *what;
    return found == NULL;
}

Tensor *head_new_result(Ctx *ctx, Arena *arena, const HeadResult *r, const int64_t *dims)
{
    int64_t *extent = ARENA_ARRAY(arena, r->rank, int64_t);
    for (uint32_t d = 0; d < r->rank; d++) {
        extent[d] = r->shape[d].sym < 0 ? r->shape[d].n : dims[r->shape[d].sym];
    }
    return tensor_new(ctx, arena, r->dtype, r->rank, extent);
}
