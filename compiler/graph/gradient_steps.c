/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of recurrences. Steps run the other way round, and their states are what the states of the recurrence count:
 *
 *     s', y = body(s, x[t], W)     ->     ds, dx[t], dW + .. = the derivatives of body at (s, x[t], W), by s' ds and by y dy[t]
 *
 * ds begins as what the last state counts, and is in the end what the recurrence begins with counts; dW is summed over the steps. The body
 * is computed again in each step: the recurrence delivers its states before each step for that. Positions that are given are no steps:
 * values are read behind them. Where dW is a product of values of the step, these are delivered, and the product is one of all steps. */
#include "graph/gradient_parts.h"
#include "graph/recurrence.h"

#include <string.h>

typedef struct Back {
    Grad *d;
    uint32_t number;
    Recurrence *r;
    const Node *node; /* of the recurrence: its operands */
    NodeRef *before;  /* [params]: of a state, its values before each step */
    Dim steps;        /* positions that are steps */
    Graph *body;      /* of the derivatives */
    VEC(NodeRef) operand;
    VEC(StepsParam) param;
    NodeRef *in;    /* [params]: what the body reads, in the new one */
    NodeRef *state; /* [params]: what is carried: of a state or a sum; NODE_NONE */
    NodeRef *
        product; /* [params]: of an operand that is the same in each step, in the body; NODE_NONE */
    uint32_t *
        result; /* [params]: of the body: of a slice, of what is carried, or the first of a product */
} Back;

/* The node of the recurrence that is this result; NODE_NONE. */
static NodeRef value_of(const Back *b, uint32_t result)
{
    NodeRef found = NODE_NONE;
    for (NodeRef n = 0; n < b->d->n && found == NODE_NONE; n++) {
        const Node *node = graph_node(b->d->g, n);
        bool is = node->op == OP_STEPS && node->steps.recurrence == b->number &&
                  node->steps.result == result;
        found = is ? n : NODE_NONE;
    }
    return found;
}

static Sym name_of(Back *b, const char *what, uint32_t number)
{
    return sym_cstr(&b->d->ctx->syms, str_format(b->d->arena, "%s_%u", what, number));
}

/* ---- what the recurrence delivers more ---- */

static const Dim *shape_with(Back *b, uint32_t rank, const Dim *shape, uint32_t along,
                             Dim extent)
{
    Dim *out = ARENA_ARRAY(b->d->arena, rank + 1, Dim);
    for (uint32_t k = 0; k <= rank; k++) {
        out[k] = k < along ? shape[k] : k == along ? extent : shape[k - 1];
    }
    return out;
}

/* A value of recurrence `number`, of which `like` has the operands. */
static NodeRef add_value(Back *b, const Node *like, StepsOf of, DType t, uint32_t rank,
                         const Dim *shape)
{
    NodeSpec spec = node_spec(OP_STEPS, t, like->n_operands, like->operand, like->access, rank,
                              labels_in_order(b->d->arena, rank), shape, b->d->span);
    spec.steps = of;
    return graph_add(b->d->g, &spec);
}

static void add_before(Back *b)
{
    Arena *arena = b->d->arena;
    Recurrence *r = b->r;
    Graph *body = r->body;
    uint32_t n = body->results.n, given = r->given;
    for (uint32_t p = 0; p < body->params.n; p++) {
        if (r->param[p].role == STEPS_STATE) {
            Result more = {.name = name_of(b, "before", p),
                           .node = graph_input(body, p, b->d->span),
                           .param = -1,
                           .span = b->d->span};
            vec_push(arena, &body->results, more);
        }
    }
    uint32_t *first = ARENA_ARRAY(arena, body->results.n * given, uint32_t);
    for (uint32_t k = 0; k < n * given; k++) {
        first[k] = r->first[k];
    }
    for (uint32_t p = 0, k = n; p < body->params.n; p++) {
        if (r->param[p].role != STEPS_STATE) {
            continue;
        }
        for (uint32_t i = 0; i < given; i++) { /* nobody reads them */
            first[k * given + i] = r->param[p].operand;
        }
        const Param *of = &body->params.at[p];
        b->before[p] =
            add_value(b, b->node, (StepsOf){b->number, k++, 0}, of->dtype, of->rank + 1,
                      shape_with(b, of->rank, of->shape, 0, r->extent));
    }
    r->first = first;
}

/* ---- the body of the derivatives ---- */

static NodeRef add_param(Back *b, StepsParam of, NodeRef operand, const char *name, DType t,
                         uint32_t rank, const Dim *shape)
{
    uint32_t k = 0;
    while (k < b->operand.n && b->operand.at[k] != operand) {
        k++;
    }
    if (operand != NODE_NONE && k == b->operand.n) {
        vec_push(b->d->arena, &b->operand, operand);
    }
    of.operand = operand == NODE_NONE ? 0 : k;
    Param p = {.name = name_of(b, name, b->body->params.n),
               .role = of.role == STEPS_STATE ? PARAM_INOUT
                       : rank == 0            ? PARAM_SCALAR
                                              : PARAM_IN,
               .dtype = t,
               .rank = rank,
               .shape = shape,
               .span = b->d->span};
    vec_push(b->d->arena, &b->body->params, p);
    vec_push(b->d->arena, &b->param, of);
    return graph_input(b->body, b->body->params.n - 1, b->d->span);
}

/* The value at the positions along `along` that are steps. */
static NodeRef of_steps(Back *b, NodeRef x, uint32_t along)
{
    const Node n = *graph_node(b->d->g, x);
    if (b->r->given == 0) {
        return x;
    }
    Dim *shape = arena_copy(b->d->arena, n.shape, n.rank * sizeof *shape);
    Affine *at = ARENA_ARRAY(b->d->arena, n.rank, Affine);
    for (uint32_t k = 0; k < n.rank; k++) {
        int64_t by = k == along && !b->r->backward ? b->r->given : 0;
        at[k] = affine_add(b->d->arena, affine_var(b->d->arena, k), 1, affine_const(by));
    }
    shape[along] = b->steps;
    return gradient_view(b->d, x, n.rank, shape, at);
}

static bool is_wanted(const Back *b, uint32_t param)
{
    const StepsParam *p = &b->r->param[param];
    bool real = !dtype_is_exact(b->r->body->params.at[param].dtype);
    return real && (p->role == STEPS_STATE ||
                    (p->role != STEPS_NUMBER && b->d->wanted[b->node->operand[p->operand]]));
}

/* What is carried from step to step: what states count. */
static void add_states(Back *b)
{
    Grad *d = b->d;
    for (uint32_t p = 0; p < b->r->body->params.n; p++) {
        const Param *of = &b->r->body->params.at[p];
        StepsRole role = b->r->param[p].role;
        b->state[p] = b->product[p] = NODE_NONE;
        if (role != STEPS_STATE || !is_wanted(b, p)) {
            continue;
        }
        DType t = dtype_computes(of->dtype);
        NodeRef last = value_of(b, recurrence_state_result(b->r, p));
        NodeRef begin = last == NODE_NONE ? NODE_NONE : d->adjoint[last];
        begin = begin == NODE_NONE ? gradient_zeros(d, t, of->rank, of->shape) : begin;
        b->state[p] = add_param(b, (StepsParam){.role = STEPS_STATE}, begin, "state", t,
                                of->rank, of->shape);
    }
}

static void add_inputs(Back *b)
{
    for (uint32_t p = 0; p < b->r->body->params.n; p++) {
        const Param of = b->r->body->params.at[p];
        StepsParam role = b->r->param[p];
        NodeRef operand =
            role.role == STEPS_NUMBER ? NODE_NONE : b->node->operand[role.operand];
        if (role.role == STEPS_STATE) {
            role = (StepsParam){.role = STEPS_EACH};
            operand = of_steps(b, b->before[p], 0);
        } else if (role.role == STEPS_EACH) {
            operand = of_steps(b, operand, role.dim);
        }
        b->in[p] = add_param(b, role, operand, "x", of.dtype, of.rank, of.shape);
    }
}

/* The number of the step counts from the first step on. */
static NodeRef number_in(Back *b, NodeRef at)
{
    if (b->r->given == 0 || b->r->backward) {
        return at;
    }
    NodeRef both[2] = {at,
                       graph_const(b->body, number_int(DTYPE_I64, b->r->given), b->d->span)};
    Access none[2] = {{0, NULL}, {0, NULL}};
    NodeSpec sum = node_spec(OP_ADD, DTYPE_I64, 2, both, none, 0, NULL, NULL, b->d->span);
    return graph_add(b->body, &sum);
}

static NodeRef *copy_body(Back *b)
{
    const Graph *from = b->r->body;
    NodeRef *map = ARENA_ARRAY(b->d->arena, from->nodes.n, NodeRef);
    for (uint32_t k = 0; k < from->recurrences.n; k++) {
        vec_push(b->d->arena, &b->body->recurrences,
                 recurrence_copy(b->d->arena, from->recurrences.at[k]));
    }
    for (NodeRef n = 0; n < from->nodes.n; n++) {
        const Node *node = graph_node(from, n);
        bool number = node->op == OP_INPUT && b->r->param[node->param].role == STEPS_NUMBER;
        map[n] = node->op != OP_INPUT ? graph_clone_node(b->body, from, n, map)
                 : number             ? number_in(b, b->in[node->param])
                                      : b->in[node->param];
    }
    return map;
}

/* What the results of the body count: of a state that it becomes, what is carried; of a value of the step, its adjoint there. */
static void seed(Back *b, Grad *step, const NodeRef *map)
{
    const Graph *from = b->r->body;
    for (uint32_t k = 0; k < from->results.n; k++) {
        const Result *r = &from->results.at[k];
        NodeRef value = r->param < 0 ? value_of(b, k) : NODE_NONE;
        NodeRef counts = value == NODE_NONE ? NODE_NONE : b->d->adjoint[value];
        if (r->param >= 0 && b->state[r->param] != NODE_NONE) {
            gradient_give(step, map[r->node], b->state[r->param]);
        } else if (counts != NODE_NONE) {
            uint32_t along = (uint32_t)graph_node(b->d->g, value)->steps.along;
            const Node n = *graph_node(from, r->node);
            NodeRef in = add_param(b, (StepsParam){.role = STEPS_EACH, .dim = along},
                                   of_steps(b, counts, along), "counts",
                                   gradient_type_of(b->d, counts), n.rank, n.shape);
            gradient_give(step, map[r->node], in);
        }
    }
}

/* ---- results ---- */

static void add_result(Back *b, Sym name, NodeRef node, int32_t param)
{
    Result r = {.name = name, .node = node, .param = param, .span = b->d->span};
    vec_push(b->d->arena, &b->body->results, r);
}

/* The value, or zeros. */
static NodeRef adjoint_of(Grad *step, NodeRef in, DType t, const Param *of)
{
    NodeRef x = step->adjoint[in];
    return x == NODE_NONE ? gradient_zeros(step, t, of->rank, of->shape)
                          : gradient_cast(step, x, t);
}

/* A sum for an operand that is the same in each step. */
static void add_sum(Back *b, uint32_t p)
{
    const Param *of = &b->r->body->params.at[p];
    DType t = dtype_computes(of->dtype);
    b->state[p] = add_param(b, (StepsParam){.role = STEPS_STATE},
                            gradient_zeros(b->d, t, of->rank, of->shape), "state", t, of->rank,
                            of->shape);
}

/* Is the value a product over indices of the step, which all steps can make at once? */
static bool is_product(const Back *b, NodeRef x)
{
    const Node *n = x == NODE_NONE ? NULL : graph_node(b->body, x);
    bool fine = n != NULL && n->op == OP_EINSUM && n->n_operands == 2 && n->rank > 0;
    for (uint32_t k = 0; fine && k < n->n_operands; k++) {
        fine = graph_node(b->body, n->operand[k])->rank > 0;
    }
    return fine;
}

/* What the value in the body is outside: the slice of an operand, or one that is the same in each step; else null. */
static const StepsParam *param_of(const Back *b, NodeRef x)
{
    const Node *n = graph_node(b->body, x);
    const StepsParam *p = n->op == OP_INPUT ? &b->param.at[n->param] : NULL;
    return p != NULL && (p->role == STEPS_EACH || p->role == STEPS_WHOLE) ? p : NULL;
}

/* Operands of a product that are values of the step. */
static void add_factors(Back *b, uint32_t p)
{
    b->result[p] = b->body->results.n;
    for (uint32_t k = 0; k < 2; k++) {
        NodeRef o = graph_node(b->body, b->product[p])->operand[k];
        if (param_of(b, o) == NULL) {
            add_result(b, name_of(b, "factor", b->body->results.n), o, -1);
        }
    }
}

/* Values of steps. */
static void add_values(Back *b, Grad *step)
{
    const Graph *from = b->r->body;
    for (uint32_t p = 0; p < from->params.n; p++) {
        const Param *of = &from->params.at[p];
        StepsRole role = b->r->param[p].role;
        NodeRef x = step->adjoint[b->in[p]];
        if (!is_wanted(b, p)) {
            continue;
        }
        if (role == STEPS_EACH) {
            b->result[p] = b->body->results.n;
            add_result(b, name_of(b, "d", p),
                       adjoint_of(step, b->in[p], dtype_computes(of->dtype), of), -1);
        } else if (role == STEPS_WHOLE && is_product(b, x)) {
            b->product[p] = x;
            add_factors(b, p);
        } else if (role == STEPS_WHOLE && x != NODE_NONE) {
            add_sum(b, p);
        }
    }
}

static void add_results(Back *b, Grad *step)
{
    const Graph *from = b->r->body;
    add_values(b, step);
    for (uint32_t p = 0; p < from->params.n; p++) {
        if (b->state[p] == NODE_NONE) {
            continue;
        }
        const Param *of = &from->params.at[p];
        uint32_t param = graph_node(b->body, b->state[p])->param;
        NodeRef x = adjoint_of(step, b->in[p], dtype_computes(of->dtype), of);
        if (b->r->param[p].role == STEPS_WHOLE) {
            x = gradient_two(step, OP_ADD, b->state[p], x);
        }
        b->result[p] = b->body->results.n;
        add_result(b, b->body->params.at[param].name, x, (int32_t)param);
    }
}

/* ---- for all steps ---- */

/* One of a product's factors, read with the index `t` for all steps too. */
static NodeRef factor_of(Back *b, const Node *like, uint32_t number, NodeRef o, Access read,
                         int32_t t, uint32_t *result, Access *access)
{
    const Node n = *graph_node(b->body, o);
    const StepsParam *p = param_of(b, o);
    uint32_t more = p != NULL && p->role == STEPS_WHOLE ? 0 : 1, along = p != NULL ? p->dim : 0;
    Index *index = ARENA_ARRAY(b->d->arena, read.rank + more, Index);
    for (uint32_t d = 0; d < read.rank + more; d++) {
        index[d] = more == 0 || d < along ? read.index[d]
                   : d == along           ? (Index){t, 0}
                                          : read.index[d - 1];
    }
    *access = (Access){read.rank + more, index};
    return p != NULL ? b->operand.at[p->operand]
                     : add_value(b, like, (StepsOf){number, (*result)++, 0}, n.dtype,
                                 n.rank + 1, shape_with(b, n.rank, n.shape, 0, b->steps));
}

static NodeRef product_of_all(Back *b, const Node *like, uint32_t number, uint32_t p)
{
    const Node n = *graph_node(b->body, b->product[p]);
    uint32_t result = b->result[p];
    NodeRef operand[2];
    Access access[2];
    for (uint32_t k = 0; k < 2; k++) {
        operand[k] = factor_of(b, like, number, n.operand[k], n.access[k], (int32_t)n.n_labels,
                               &result, &access[k]);
    }
    return gradient_add(b->d, OP_EINSUM, n.dtype, 2, operand, access, n.rank, n.out, NULL,
                        NULL);
}

/* Adds what the new recurrence delivers to the adjoints of what the old one reads. */
static void give(Back *b, const Node *like, uint32_t number)
{
    Grad *d = b->d;
    for (uint32_t p = 0; p < b->r->body->params.n; p++) {
        const StepsParam *role = &b->r->param[p];
        if (role->role != STEPS_EACH || !is_wanted(b, p)) {
            continue;
        }
        NodeRef to = b->node->operand[role->operand];
        const Node whole = *graph_node(d->g, to);
        const Param *of = &b->r->body->params.at[p];
        NodeRef part = add_value(b, like, (StepsOf){number, b->result[p], (int32_t)role->dim},
                                 dtype_computes(of->dtype), whole.rank,
                                 shape_with(b, of->rank, of->shape, role->dim, b->steps));
        if (b->r->given > 0) {
            Affine *at = ARENA_ARRAY(d->arena, whole.rank, Affine);
            for (uint32_t k = 0; k < whole.rank; k++) {
                int64_t by = k == role->dim && !b->r->backward ? b->r->given : 0;
                at[k] = affine_add(d->arena, affine_var(d->arena, k), 1, affine_const(by));
            }
            part = gradient_placed(d, part, whole.rank, whole.shape, at);
        }
        gradient_give(d, to, part);
    }
    for (uint32_t p = 0; p < b->r->body->params.n; p++) {
        const Param *of = &b->r->body->params.at[p];
        const StepsParam *role = &b->r->param[p];
        if (b->product[p] != NODE_NONE) {
            gradient_give(d, b->node->operand[role->operand],
                          product_of_all(b, like, number, p));
        } else if (b->state[p] != NODE_NONE) {
            NodeRef part = add_value(b, like, (StepsOf){number, b->result[p], -1},
                                     dtype_computes(of->dtype), of->rank, of->shape);
            gradient_give(d, b->node->operand[role->operand], part);
        }
    }
}

/* What is given counts what its elements count. */
static void give_first(Back *b, uint32_t n_results)
{
    Grad *d = b->d;
    for (uint32_t k = 0; k < n_results; k++) {
        NodeRef value = b->r->body->results.at[k].param < 0 ? value_of(b, k) : NODE_NONE;
        NodeRef counts = value == NODE_NONE ? NODE_NONE : d->adjoint[value];
        for (uint32_t p = 0; counts != NODE_NONE && p < b->r->given; p++) {
            const Node n = *graph_node(d->g, value);
            uint32_t along = (uint32_t)n.steps.along;
            Affine *at = ARENA_ARRAY(d->arena, n.rank, Affine);
            Dim *shape = ARENA_ARRAY(d->arena, n.rank, Dim);
            for (uint32_t q = 0, l = 0; q < n.rank; q++) {
                if (q != along) {
                    shape[l] = n.shape[q];
                    at[q] = affine_var(d->arena, l++);
                    continue;
                }
                at[q] = affine_const(p);
                if (b->r->backward) {
                    at[q] = affine_add(d->arena, affine_extent(d->arena, b->r->extent), 1,
                                       affine_const(-1 - (int64_t)p));
                }
            }
            NodeRef part = gradient_view(d, counts, n.rank - 1, shape, at);
            gradient_give(d, b->node->operand[b->r->first[k * b->r->given + p]], part);
        }
    }
}

static Dim steps_of(Back *b)
{
    const Recurrence *r = b->r;
    if (r->given == 0 || r->extent.sym < 0) {
        int64_t n = r->extent.n - (int64_t)r->given;
        return r->given == 0 ? r->extent : dim_fixed(n < 0 ? 0 : n);
    }
    DimTerm term = {r->extent, 1};
    Graph *g = b->d->g;
    return dims_sum(b->d->arena, g->arena, &b->d->ctx->syms, &g->dims, b->d->span,
                    -(int64_t)r->given, 1, &term, 1);
}

void gradient_back_steps(Grad *d, NodeRef lowest)
{
    const Node node = *graph_node(d->g, lowest);
    Back b = {.d = d, .number = node.steps.recurrence, .node = &node};
    b.r = d->g->recurrences.at[b.number];
    uint32_t n_params = b.r->body->params.n, n_results = b.r->body->results.n;
    d->span = node.span;
    b.before = ARENA_ARRAY(d->arena, n_params, NodeRef);
    b.in = ARENA_ARRAY(d->arena, n_params, NodeRef);
    b.state = ARENA_ARRAY(d->arena, n_params, NodeRef);
    b.product = ARENA_ARRAY(d->arena, n_params, NodeRef);
    b.result = ARENA_ARRAY(d->arena, n_params, uint32_t);
    b.steps = steps_of(&b);
    give_first(&b, n_results);
    add_before(&b);
    b.body = graph_new(d->arena, d->g->name);
    b.body->span = d->g->span;
    b.body->sources = d->g->sources;
    for (uint32_t k = 0; k < d->g->dims.list.n; k++) {
        vec_push(d->arena, &b.body->dims.list, d->g->dims.list.at[k]);
    }
    add_states(&b);
    add_inputs(&b);
    NodeRef *map = copy_body(&b);
    Grad step = {
        .ctx = d->ctx, .g = b.body, .arena = d->arena, .n = b.body->nodes.n, .span = d->span};
    step.adjoint = ARENA_ARRAY(d->arena, step.n, NodeRef);
    step.wanted = ARENA_ARRAY(d->arena, step.n, bool);
    memset(step.adjoint, 0xff, step.n * sizeof *step.adjoint);
    for (uint32_t k = 0; k < b.r->body->results.n; k++) { /* which maxima results depend on */
        Result r = b.r->body->results.at[k];
        r.node = map[r.node];
        vec_push(d->arena, &b.body->results, r);
    }
    for (uint32_t p = 0; p < n_params; p++) {
        step.wanted[b.in[p]] = is_wanted(&b, p);
    }
    gradient_spread_wanted(&step);
    seed(&b, &step, map);
    gradient_sweep(&step);
    b.body->results.n = 0;
    add_results(&b, &step);
    Recurrence *back = ARENA_NEW(d->arena, Recurrence);
    *back = (Recurrence){.body = b.body,
                         .extent = b.steps,
                         .backward = !b.r->backward,
                         .n_operands = b.operand.n,
                         .param = b.param.at};
    vec_push(d->arena, &d->g->recurrences, back);
    Access *access = ARENA_ARRAY(d->arena, b.operand.n, Access);
    for (uint32_t k = 0; k < b.operand.n; k++) {
        access[k] = access_whole(d->arena, graph_node(d->g, b.operand.at[k])->rank);
    }
    Node like = {.n_operands = b.operand.n, .operand = b.operand.at, .access = access};
    give(&b, &like, d->g->recurrences.n - 1);
}
