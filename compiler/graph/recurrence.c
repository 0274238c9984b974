/* SPDX-License-Identifier: Apache-2.0 */
/* What a recurrence is: copies of it, what must hold of it, and its steps one after the other, as the interpreter takes them. */
#include "graph/recurrence.h"

#include "graph/eval.h"

#include <string.h>

Recurrence *recurrence_copy(Arena *arena, const Recurrence *from)
{
    Recurrence *to = arena_copy(arena, from, sizeof *from);
    uint32_t n_first = from->body->results.n * from->given;
    to->param = arena_copy(arena, from->param, from->body->params.n * sizeof *from->param);
    to->first =
        n_first == 0 ? NULL : arena_copy(arena, from->first, n_first * sizeof *from->first);
    return to;
}

uint32_t recurrence_state_result(const Recurrence *r, uint32_t param)
{
    uint32_t k = 0;
    while (k < r->body->results.n && r->body->results.at[k].param != (int32_t)param) {
        k++;
    }
    return k;
}

/* The results of the body that are kept, numbered anew; `body` and `param`, copies that may have been changed, take the place of its own. */
static void keep_results(Arena *arena, Graph *g, uint32_t number, const bool *keep, Graph *body,
                         StepsParam *param)
{
    Recurrence *r = g->recurrences.at[number];
    uint32_t n = r->body->results.n, kept = 0;
    uint32_t *place = ARENA_ARRAY(arena, n, uint32_t);
    uint32_t *first = ARENA_ARRAY(arena, n * r->given, uint32_t);
    body->results.at = NULL;
    body->results.n = body->results.cap = 0;
    for (uint32_t k = 0; k < n; k++) {
        place[k] = kept;
        for (uint32_t p = 0; keep[k] && p < r->given; p++) {
            first[kept * r->given + p] = r->first[k * r->given + p];
        }
        if (keep[k]) {
            vec_push(arena, &body->results, r->body->results.at[k]);
            kept++;
        }
    }
    for (uint32_t k = 0; k < body->params.n; k++) {
        param[k].result = param[k].role == STEPS_PRIOR ? place[param[k].result] : 0;
    }
    r->first = first;
    r->body = body;
    r->param = param;
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        Node *node = &g->nodes.at[k];
        if (node->op == OP_STEPS && node->steps.recurrence == number) {
            node->steps.result = place[node->steps.result];
        }
    }
}

void recurrence_prune(Arena *arena, Graph *g, uint32_t number)
{
    Recurrence *r = g->recurrences.at[number];
    uint32_t n = r->body->results.n, kept = 0;
    bool *needed = ARENA_ARRAY(arena, n, bool);
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        const Node *node = graph_node(g, k);
        if (node->op == OP_STEPS && node->steps.recurrence == number) {
            needed[node->steps.result] = true;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        needed[k] = needed[k] || r->body->results.at[k].param >= 0;
        kept += needed[k] ? 1 : 0;
    }
    if (kept < n) {
        Graph *body = arena_copy(arena, r->body, sizeof *body);
        keep_results(arena, g, number, needed, body,
                     arena_copy(arena, r->param, body->params.n * sizeof *r->param));
        r->body = graph_prune(arena, body);
    }
}

/* ---- states that are values at each step ---- */

/* The parameter of which the state is what it was: another one, or (the root of a chain) none. */
static uint32_t chained_to(const Recurrence *r, uint32_t param)
{
    const Result *state = &r->body->results.at[recurrence_state_result(r, param)];
    const Node *n = graph_node(r->body, state->node);
    bool other = n->op == OP_INPUT && r->param[n->param].role == STEPS_STATE;
    return other ? n->param : r->body->params.n;
}

static bool is_node_of(const Graph *g, uint32_t number, uint32_t result)
{
    bool any = false;
    for (NodeRef k = 0; k < g->nodes.n && !any; k++) {
        const Node *n = graph_node(g, k);
        any = n->op == OP_STEPS && n->steps.recurrence == number && n->steps.result == result;
    }
    return any;
}

/* Is the parameter read at positions that are values? What a step writes may not be. */
static bool is_gathered(const Graph *body, uint32_t param)
{
    bool any = false;
    for (NodeRef k = 0; k < body->nodes.n && !any; k++) {
        const Node *n = graph_node(body, k);
        const Node *table = n->op == OP_GATHER ? graph_node(body, n->operand[0]) : NULL;
        any = table != NULL && table->op == OP_INPUT && table->param == param;
    }
    return any;
}

/* The result that has the state at each step, and how many steps before; false: none has, or the state after the last step is asked for. */
static bool read_back_from(const Graph *g, uint32_t number, uint32_t param, StepsParam *out)
{
    const Recurrence *r = g->recurrences.at[number];
    uint32_t root = param, lag = 1;
    for (uint32_t next = chained_to(r, root); next < r->body->params.n && lag < STEPS_LAG;
         next = chained_to(r, root)) {
        root = next;
        lag++;
    }
    const Result *state = &r->body->results.at[recurrence_state_result(r, root)];
    if (is_node_of(g, number, recurrence_state_result(r, param)) ||
        is_gathered(r->body, param) || (r->given == 0 ? lag > 1 : lag > r->given)) {
        return false;
    }
    for (uint32_t k = 0; k < r->body->results.n; k++) {
        if (r->body->results.at[k].param < 0 && r->body->results.at[k].node == state->node &&
            is_node_of(g, number, k)) {
            *out = (StepsParam){STEPS_PRIOR, r->param[param].operand, 0, k, lag};
            return true;
        }
    }
    return false;
}

static void read_back(Arena *arena, Graph *g, uint32_t number)
{
    Recurrence *r = g->recurrences.at[number];
    uint32_t n = r->body->results.n;
    StepsParam *param = arena_copy(arena, r->param, r->body->params.n * sizeof *param);
    bool *gone = ARENA_ARRAY(arena, n, bool), any = false;
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        bool chained = false; /* another state needs it to be one */
        for (uint32_t o = 0; o < r->body->params.n; o++) {
            StepsParam other;
            chained = chained || (r->param[o].role == STEPS_STATE && chained_to(r, o) == k &&
                                  !read_back_from(g, number, o, &other));
        }
        if (r->param[k].role == STEPS_STATE && !chained &&
            read_back_from(g, number, k, &param[k])) {
            gone[recurrence_state_result(r, k)] = any = true;
        }
    }
    if (!any) {
        return;
    }
    Graph *body = arena_copy(arena, r->body, sizeof *body);
    body->params.at =
        arena_copy(arena, r->body->params.at, r->body->params.n * sizeof *body->params.at);
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        Param *p = &body->params.at[k];
        if (param[k].role == STEPS_PRIOR) {
            p->role = p->rank == 0 ? PARAM_SCALAR : PARAM_IN;
        }
    }
    bool *keep = ARENA_ARRAY(arena, n, bool);
    for (uint32_t k = 0; k < n; k++) {
        keep[k] = !gone[k];
    }
    keep_results(arena, g, number, keep, body, param);
}

/* Does the body compute elementwise alone? */
static bool is_elementwise(const Graph *body)
{
    bool fine = true;
    for (NodeRef k = 0; k < body->nodes.n && fine; k++) {
        OpKind kind = op_info(graph_node(body, k)->op)->kind;
        fine = kind == OPKIND_LEAF || kind == OPKIND_MAP;
    }
    return fine;
}

/* What a step waits for is the first operand of a sum or product: compilers make the first product of x * y + z * w a fused one with the
 * sum, so that one operation is between two steps. */
static void put_prior_first(Arena *arena, Recurrence *r)
{
    const Graph *from = r->body;
    if (!is_elementwise(from)) {
        return;
    }
    Graph *to = graph_like(arena, from);
    NodeRef *map = ARENA_ARRAY(arena, from->nodes.n, NodeRef);
    bool *waits = ARENA_ARRAY(arena, from->nodes.n, bool);
    for (NodeRef k = 0; k < from->nodes.n; k++) {
        const Node *n = graph_node(from, k);
        StepsRole role = n->op == OP_INPUT ? r->param[n->param].role : STEPS_WHOLE;
        waits[k] = role == STEPS_STATE || role == STEPS_PRIOR;
        for (uint32_t i = 0; i < n->n_operands; i++) {
            waits[k] = waits[k] || waits[n->operand[i]];
        }
        bool late = (n->op == OP_ADD || n->op == OP_MUL) && !waits[n->operand[0]] &&
                    waits[n->operand[1]];
        if (!late) {
            map[k] = graph_clone_node(to, from, k, map);
            continue;
        }
        NodeSpec spec = graph_spec(from, k);
        NodeRef operand[2] = {map[n->operand[1]], map[n->operand[0]]};
        Access access[2] = {n->access[1], n->access[0]};
        spec.operand = operand;
        spec.access = access;
        map[k] = graph_add(to, &spec);
    }
    graph_copy_results(to, from, map);
    r->body = to;
}

void recurrence_read_back(Arena *arena, Graph *g)
{
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        read_back(arena, g, k);
        put_prior_first(arena, g->recurrences.at[k]);
    }
}

/* ---- what must hold ---- */

static bool shapes_equal(uint32_t n, const Dim *a, const Dim *b)
{
    bool same = true;
    for (uint32_t d = 0; d < n && same; d++) {
        same = dim_eq(a[d], b[d]);
    }
    return same;
}

/* Is the shape, but for dimension `along` of extent `extent`, the other one? */
static bool shape_has_slice(uint32_t rank, const Dim *shape, uint32_t along, Dim extent,
                            uint32_t n, const Dim *slice)
{
    return rank == n + 1 && along < rank && dim_eq(shape[along], extent) &&
           shapes_equal(along, shape, slice) &&
           shapes_equal(n - along, shape + along + 1, slice + along);
}

static const char *param_problem(const Graph *g, const Node *n, const Recurrence *r, uint32_t k)
{
    const Param *p = &r->body->params.at[k];
    const StepsParam *of = &r->param[k];
    if (of->role == STEPS_NUMBER) {
        return p->rank == 0 && p->dtype == DTYPE_I64 && p->role == PARAM_SCALAR
                   ? NULL
                   : "its number of the step is no whole number";
    }
    if (of->operand >= n->n_operands) {
        return "a parameter of its body is no operand";
    }
    const Node *o = graph_node(g, n->operand[of->operand]);
    if (of->role == STEPS_PRIOR) {
        const Result *from =
            of->result < r->body->results.n ? &r->body->results.at[of->result] : NULL;
        const Node *made = from == NULL ? NULL : graph_node(r->body, from->node);
        if (made == NULL || from->param >= 0 || of->lag == 0 || of->lag > STEPS_LAG ||
            (r->given < of->lag && (r->given > 0 || of->lag > 1)) || made->dtype != p->dtype ||
            made->rank != p->rank || !shapes_equal(p->rank, made->shape, p->shape)) {
            return "what it reads of steps before is no result of them";
        }
    }
    bool fits = o->dtype == p->dtype && p->collapsed == NULL &&
                (p->role == PARAM_INOUT) == (of->role == STEPS_STATE);
    fits =
        fits && (of->role == STEPS_EACH
                     ? shape_has_slice(o->rank, o->shape, of->dim, r->extent, p->rank, p->shape)
                     : o->rank == p->rank && shapes_equal(p->rank, o->shape, p->shape));
    return fits ? NULL : "an operand is no argument of its body";
}

static const char *first_problem(const Graph *g, const Node *n, const Recurrence *r, uint32_t k)
{
    const Result *result = &r->body->results.at[k];
    const Node *value = graph_node(r->body, result->node);
    for (uint32_t p = 0; result->param < 0 && p < r->given; p++) {
        uint32_t at = r->first[k * r->given + p];
        const Node *o = at < n->n_operands ? graph_node(g, n->operand[at]) : NULL;
        if (o == NULL || o->dtype != value->dtype || o->rank != value->rank ||
            !shapes_equal(o->rank, o->shape, value->shape)) {
            return "a given position is no operand of the shape of a step";
        }
    }
    return NULL;
}

static const char *result_problem(const Node *n, const Recurrence *r)
{
    if (n->steps.result >= r->body->results.n) {
        return "its body has no such result";
    }
    const Result *result = &r->body->results.at[n->steps.result];
    const Node *value = graph_node(r->body, result->node);
    bool last = n->steps.along < 0;
    bool fits =
        value->dtype == n->dtype && last == (result->param >= 0) && result->shape == NULL;
    fits =
        fits && (last ? n->rank == value->rank && shapes_equal(n->rank, n->shape, value->shape)
                      : shape_has_slice(n->rank, n->shape, (uint32_t)n->steps.along, r->extent,
                                        value->rank, value->shape));
    return fits ? NULL : "it is not what the body computes";
}

NodeRef recurrence_value(const Graph *g, uint32_t recurrence, uint32_t result)
{
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        if (n->op == OP_STEPS && n->steps.recurrence == recurrence &&
            n->steps.result == result && n->steps.along >= 0) {
            return r;
        }
    }
    return NODE_NONE;
}

/* All values of a recurrence are computed together, of the operands of one of them; what steps read back is one of them. */
static const char *together_problem(const Graph *g, const Node *n, const Recurrence *r)
{
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        if (r->param[k].role == STEPS_PRIOR &&
            recurrence_value(g, n->steps.recurrence, r->param[k].result) == NODE_NONE) {
            return "what its steps read of steps before is no value";
        }
    }
    for (NodeRef o = 0; o < g->nodes.n; o++) {
        const Node *other = graph_node(g, o);
        bool same = other->op == OP_STEPS && other->steps.recurrence == n->steps.recurrence;
        for (uint32_t k = 0; same && k < n->n_operands; k++) {
            if (k >= other->n_operands || other->operand[k] != n->operand[k]) {
                return "another value of its recurrence has other operands";
            }
        }
    }
    return NULL;
}

const char *recurrence_problem(const Graph *g, const Node *n)
{
    if (n->steps.recurrence >= g->recurrences.n) {
        return "there is no such recurrence";
    }
    const Recurrence *r = node_recurrence(g, n);
    if (n->n_operands != r->n_operands || r->given > STEPS_LAG || n->n_labels != n->rank ||
        n->acc != n->dtype || r->body->required.n > 0) {
        return "it is no value of a recurrence";
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            if (n->access[k].index[d].label != -1 || n->access[k].index[d].offset != 0) {
                return "an operand is not read whole";
            }
        }
    }
    const char *problem = result_problem(n, r);
    for (uint32_t k = 0; k < r->body->params.n && problem == NULL; k++) {
        problem = param_problem(g, n, r, k);
        if (problem == NULL && r->param[k].role == STEPS_STATE &&
            recurrence_state_result(r, k) == r->body->results.n) {
            problem = "a state is not computed by the body";
        }
    }
    for (uint32_t k = 0; k < r->body->results.n && problem == NULL; k++) {
        problem = first_problem(g, n, r, k);
    }
    return problem != NULL ? problem : together_problem(g, n, r);
}

/* ---- the steps ---- */

/* Copies between a slice and its place in the whole, `at` along dimension `dim`. */
static void copy_slice(Tensor *whole, uint32_t dim, int64_t at, Tensor *slice, bool to_whole)
{
    int64_t inner = dtype_bytes(whole->dtype), outer = 1;
    for (uint32_t d = 0; d < whole->rank; d++) {
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : whole->extent[d];
    }
    for (int64_t o = 0; o < outer; o++) {
        char *in = (char *)whole->data + (o * whole->extent[dim] + at) * inner;
        char *part = (char *)slice->data + o * inner;
        memcpy(to_whole ? in : part, to_whole ? part : in, (size_t)inner);
    }
}

static Tensor *slice_of(Ctx *ctx, Arena *arena, Tensor *whole, uint32_t dim, int64_t at)
{
    int64_t extent[RANK_LIMIT + 1];
    for (uint32_t d = 0; d + 1 < whole->rank; d++) {
        extent[d] = whole->extent[d < dim ? d : d + 1];
    }
    Tensor *slice = tensor_new(ctx, arena, whole->dtype, whole->rank - 1, extent);
    if (slice != NULL && slice->count > 0) {
        copy_slice(whole, dim, at, slice, false);
    }
    return slice;
}

/* Values of results at the steps before, the latest first. */
typedef struct Past {
    Tensor *at[STEPS_LAG];
} Past;

typedef struct Steps {
    Ctx *ctx;
    Arena *scratch; /* of one step */
    const Recurrence *r;
    const int64_t *dims;
    Tensor *const *operand;
    Tensor **state; /* [params] */
    Tensor **result;
    Past *past; /* [results] */
} Steps;

static bool run_step(Steps *s, int64_t at)
{
    const Graph *body = s->r->body;
    Tensor **arg = ARENA_ARRAY(s->scratch, body->params.n, Tensor *);
    for (uint32_t k = 0; k < body->params.n; k++) {
        const StepsParam *p = &s->r->param[k];
        switch (p->role) {
        case STEPS_STATE:
            arg[k] = s->state[k];
            break;
        case STEPS_PRIOR:
            arg[k] = s->past[p->result].at[p->lag - 1];
            break;
        case STEPS_EACH:
            arg[k] = slice_of(s->ctx, s->scratch, s->operand[p->operand], p->dim, at);
            break;
        case STEPS_WHOLE:
            arg[k] = s->operand[p->operand];
            break;
        case STEPS_NUMBER:
            arg[k] = tensor_new(s->ctx, s->scratch, DTYPE_I64, 0, NULL);
            if (arg[k] != NULL) {
                tensor_set(arg[k], 0, number_int(DTYPE_I64, at));
            }
            break;
        }
        if (arg[k] == NULL) {
            return false;
        }
    }
    return graph_eval(s->ctx, s->scratch, body, s->dims, arg, s->result);
}

static void keep_states(Steps *s)
{
    for (uint32_t k = 0; k < s->r->body->results.n; k++) {
        int32_t p = s->r->body->results.at[k].param;
        if (p >= 0) {
            Tensor *to = s->state[p];
            memcpy(to->data, s->result[k]->data, (size_t)(to->count * dtype_bytes(to->dtype)));
        }
    }
}

static Tensor *tensor_copied(Ctx *ctx, Arena *arena, const Tensor *from)
{
    Tensor *to = tensor_new(ctx, arena, from->dtype, from->rank, from->extent);
    if (to != NULL) {
        memcpy(to->data, from->data, (size_t)(to->count * dtype_bytes(to->dtype)));
    }
    return to;
}

/* `value` is the result's at the step that has been taken. */
static bool keep_past(Steps *s, Arena *arena, uint32_t result, const Tensor *value)
{
    Past *p = &s->past[result];
    Tensor *oldest = p->at[STEPS_LAG - 1];
    if (oldest == NULL) {
        oldest = tensor_new(s->ctx, arena, value->dtype, value->rank, value->extent);
    }
    for (uint32_t k = STEPS_LAG - 1; k > 0; k--) {
        p->at[k] = p->at[k - 1];
    }
    if (oldest != NULL) {
        memcpy(oldest->data, value->data, (size_t)(value->count * dtype_bytes(value->dtype)));
    }
    p->at[0] = oldest;
    return oldest != NULL;
}

bool recurrence_eval(Ctx *ctx, Arena *arena, const Graph *g, const Node *n, const int64_t *dims,
                     Tensor *const *operand, Tensor *out)
{
    const Recurrence *r = node_recurrence(g, n);
    int64_t extent = r->extent.sym < 0 ? r->extent.n : dims[r->extent.sym];
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Steps s = {.ctx = ctx, .scratch = &scratch, .r = r, .dims = dims, .operand = operand};
    s.state = ARENA_ARRAY(arena, r->body->params.n, Tensor *);
    s.result = ARENA_ARRAY(arena, r->body->results.n, Tensor *);
    s.past = ARENA_ARRAY(arena, r->body->results.n, Past);
    bool ok = true;
    for (uint32_t k = 0; ok && k < r->body->params.n; k++) {
        if (r->param[k].role == STEPS_PRIOR && r->given == 0) {
            ok = keep_past(&s, arena, r->param[k].result, operand[r->param[k].operand]);
        }
        if (r->param[k].role == STEPS_STATE) {
            s.state[k] = tensor_copied(ctx, arena, operand[r->param[k].operand]);
            ok = s.state[k] != NULL;
        }
    }
    for (int64_t step = 0; ok && step < extent; step++) {
        int64_t at = r->backward ? extent - 1 - step : step;
        bool given = step < r->given;
        Tensor *value = NULL;
        if (given && n->steps.along >= 0) {
            value = operand[r->first[n->steps.result * r->given + step]];
        } else if (!given) {
            ok = run_step(&s, at);
            value = ok ? s.result[n->steps.result] : NULL;
            if (ok) {
                keep_states(&s);
            }
        }
        for (uint32_t k = 0; ok && k < r->body->results.n; k++) {
            bool kept = r->body->results.at[k].param < 0;
            ok = !kept ||
                 keep_past(&s, arena, k,
                           given ? operand[r->first[k * r->given + step]] : s.result[k]);
        }
        if (value != NULL && n->steps.along >= 0 && value->count > 0) {
            copy_slice(out, (uint32_t)n->steps.along, at, value, true);
        }
        arena_release(&scratch);
        arena_init(&scratch, &ctx->budget);
    }
    if (ok && n->steps.along < 0) {
        const Tensor *last = s.state[r->body->results.at[n->steps.result].param];
        memcpy(out->data, last->data, (size_t)(out->count * dtype_bytes(out->dtype)));
    }
    arena_release(&scratch);
    return ok;
}
