/* SPDX-License-Identifier: Apache-2.0 */
/* From the statements of a recurrence to its body. They have been built like all others, with what a step reads of those before as inputs
 * that no caller gives; what depends on these is one step, and is built again as a graph of its own without the step's index:
 *
 *     %5 = mul %1[t,n], `h[-1]`[n]     ->  body:  %2 = mul %0[n], %1[n]       %0: a slice of %1, %1: the state
 *
 * What does not depend on them stays where it is, and is computed for all steps at once; but elementwise work is done in the step, so
 * that it is not stored. */
#include "graph/build_parts.h"
#include "graph/recurrence.h"

#define NO_STEP (-1) /* the value has no dimension of the step */
#define UNSEEN  (-2)

typedef struct Steps {
    Build *b;
    Graph *g, *body;
    const CheckedSteps *s;
    uint32_t n;    /* nodes of g */
    bool *after;   /* [n]: depends on a step before */
    bool *inside;  /* [n]: is computed in the body */
    bool *needed;  /* [n]: for a state */
    bool *outside; /* [values]: computed for all steps at once */
    bool *numbers; /* [n]: made of indices, extents and numbers alone */
    int32_t *dim;  /* [n]: of those, the dimension of the step */
    NodeRef *map;  /* [n]: in the body */
    VEC(NodeRef) operand;
    VEC(StepsParam) param; /* of the body */
    VEC(uint32_t) first;
    bool wrong;
} Steps;

void steps_open(Build *b, const CheckedSteps *s)
{
    b->steps_required = b->g->required.n;
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t lag = 0; lag < s->state[i].n_lags; lag++) {
            uint32_t v = s->state[i].prior[lag];
            if (v == UINT32_MAX) {
                continue;
            }
            const Value *value = &b->k->values.at[v];
            Param p = {.name = value->name,
                       .role = PARAM_IN,
                       .dtype = value->type.dtype,
                       .rank = value->type.rank,
                       .shape = value->type.dims,
                       .span = value->span};
            vec_push(b->arena, &b->g->params, p);
            b->current[v] = graph_input(b->g, b->g->params.n - 1, value->span);
        }
    }
}

static void unsupported(Steps *s, NodeRef n, const char *what)
{
    if (!s->wrong) {
        diag_unsupported(&s->b->ctx->diags, E_NOT_YET, graph_node(s->g, n)->span,
                         "a step of a recurrence that %s is not compiled by this version",
                         what);
        s->wrong = true;
    }
}

/* Is it computed step by step, and not for all steps at once? */
static bool is_stepwise(const Steps *s, const CheckedState *of)
{
    return !s->outside[of - s->s->state] &&
           (s->after[s->b->current[of->value]] || of->given != NULL);
}

/* ---- which dimension is the step ---- */

/* The dimension of operand `k` that moves with label `l` of `n`, or with its dimension `d`. */
static int32_t operand_dim(Steps *s, NodeRef at, uint32_t k, int32_t d)
{
    const Node *n = graph_node(s->g, at);
    int32_t found = NO_STEP, l = d < 0 ? -1 : n->out[d];
    uint32_t rank = n->access[k].rank, count = 0;
    OpKind kind = op_info(n->op)->kind;
    if (d < 0 || kind == OPKIND_STEPS) {
        return NO_STEP;
    }
    if (kind == OPKIND_DENSE) {
        uint32_t batch = n->access[0].rank - 2, at_d = (uint32_t)d;
        if (at_d == batch || (n->op == OP_CHOLESKY && at_d == batch + 1)) {
            unsupported(s, at, "is of matrices along it");
        }
        return k == 0 && at_d >= batch ? NO_STEP : d;
    }
    if (kind == OPKIND_JOIN) {
        int32_t label = affine_index(n->at[(size_t)k * n->rank + (uint32_t)d]);
        if (label < 0) {
            unsupported(s, at, "puts pieces together along it");
        }
        return label < 0 ? NO_STEP : label;
    }
    for (uint32_t q = 0; q < rank; q++) {
        bool moves = n->access[k].index[q].label == l;
        if (kind == OPKIND_VIEW) {
            moves = affine_coef(n->at[q], (VarRef)l) != 0;
            if (moves && affine_index(n->at[q]) < 0) {
                unsupported(s, at, "reads positions that move with it");
            }
        } else if (kind == OPKIND_GATHER && k == 0) {
            const Access *a = &n->access[q + 1];
            moves =
                graph_node(s->g, n->operand[q + 1])->op == OP_INDEX && a->index[0].label == l;
        }
        found = moves ? (int32_t)q : found;
        count += moves;
    }
    if (count > 1) {
        unsupported(s, at, "reads a diagonal along it");
    }
    return found;
}

/* ---- readers of steps that need not be steps ---- */

static bool is_state(const CheckedState *of)
{
    return of->n_lags > 0 || of->given != NULL;
}

/* What states are computed of. */
static void find_needed(Steps *s)
{
    for (uint32_t i = 0; i < s->s->n; i++) {
        NodeRef n = s->b->current[s->s->state[i].value];
        s->needed[n] = s->needed[n] || is_state(&s->s->state[i]);
    }
    for (NodeRef n = s->n; n-- > 0;) {
        for (uint32_t k = 0; s->needed[n] && k < graph_node(s->g, n)->n_operands; k++) {
            s->needed[graph_node(s->g, n)->operand[k]] = true;
        }
    }
}

static bool is_value(const Steps *s, NodeRef n)
{
    bool is = false;
    for (uint32_t i = 0; i < s->s->n && !is; i++) {
        is = s->b->current[s->s->state[i].value] == n;
    }
    return is;
}

/* Is a product of all steps in the value, with a tensor that is the same in each, and is it made of values of steps, of no step before?
 * `d` is its dimension of the step. */
static bool is_product_of_all(Steps *s, NodeRef top, int32_t d)
{
    int32_t *dim = ARENA_ARRAY(s->b->arena, top + 1, int32_t);
    bool product = false;
    for (NodeRef n = 0; n <= top; n++) {
        dim[n] = n == top ? d : UNSEEN;
    }
    for (NodeRef at = top + 1; at-- > 0;) {
        const Node *n = graph_node(s->g, at);
        bool sums = op_info(n->op)->kind == OPKIND_CONTRACT && n->n_labels > n->rank;
        if (dim[at] == UNSEEN || !s->after[at]) {
            continue;
        }
        if (n->op == OP_INPUT) {
            return false;
        }
        if (at != top && is_value(s, at)) { /* it has all steps by itself */
            continue;
        }
        for (uint32_t k = 0; k < n->n_operands; k++) {
            NodeRef o = n->operand[k];
            dim[o] = operand_dim(s, at, k, dim[at]);
            product = product ||
                      (sums && !s->after[o] && dim[o] < 0 && graph_node(s->g, o)->rank > 1);
        }
    }
    return product;
}

/* Values that are computed for all steps at once. */
static void find_outside(Steps *s)
{
    find_needed(s);
    for (uint32_t i = 0; i < s->s->n; i++) {
        const CheckedState *of = &s->s->state[i];
        NodeRef n = s->b->current[of->value];
        s->outside[i] = !is_state(of) && s->after[n] && !s->needed[n] &&
                        is_product_of_all(s, n, (int32_t)of->dim);
    }
}

/* Is it elementwise, so that it may as well be done in the step? */
static bool is_elementwise(const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    return kind == OPKIND_MAP || (kind == OPKIND_CONTRACT && n->n_labels == n->rank);
}

static void see_operand(Steps *s, NodeRef at, uint32_t k)
{
    NodeRef o = graph_node(s->g, at)->operand[k];
    int32_t d = operand_dim(s, at, k, s->dim[at]);
    bool own =
        s->after[o] || ((d >= 0 || s->numbers[o]) && is_elementwise(graph_node(s->g, o)));
    if (!own) {
        return;
    }
    if (s->dim[o] != UNSEEN && s->dim[o] != d) {
        if (s->after[o]) {
            unsupported(s, o, "is read in two ways");
        }
        return;
    }
    s->dim[o] = d;
    s->inside[o] = true;
}

static void find_inside(Steps *s)
{
    for (NodeRef n = 0; n < s->n; n++) {
        s->dim[n] = UNSEEN;
        const Node *node = graph_node(s->g, n);
        s->numbers[n] = node->op != OP_INPUT;
        for (uint32_t k = 0; k < node->n_operands; k++) {
            s->after[n] = s->after[n] || s->after[node->operand[k]];
            s->numbers[n] = s->numbers[n] && s->numbers[node->operand[k]];
        }
    }
    find_outside(s);
    for (uint32_t i = 0; i < s->s->n; i++) {
        NodeRef n = s->b->current[s->s->state[i].value];
        if (s->after[n] && is_stepwise(s, &s->s->state[i])) {
            s->dim[n] = (int32_t)s->s->state[i].dim;
            s->inside[n] = true;
        }
    }
    for (NodeRef n = s->n; n-- > 0 && !s->wrong;) {
        for (uint32_t k = 0; s->inside[n] && k < graph_node(s->g, n)->n_operands; k++) {
            see_operand(s, n, k);
        }
    }
    /* What is read otherwise too is an operand. */
    for (NodeRef n = 0; n < s->n && !s->wrong; n++) {
        for (uint32_t k = 0; s->inside[n] && k < graph_node(s->g, n)->n_operands; k++) {
            NodeRef o = graph_node(s->g, n)->operand[k];
            if (s->inside[o] && s->dim[o] != operand_dim(s, n, k, s->dim[n])) {
                s->inside[o] = false;
            }
        }
    }
}

/* The node again, over values that are steps by now: made[old]. */
static NodeRef build_outside(Steps *s, NodeRef top, NodeRef *made)
{
    bool *reached = ARENA_ARRAY(s->b->arena, top + 1, bool);
    reached[top] = true;
    for (NodeRef n = top + 1; n-- > 0;) {
        bool again = reached[n] && s->after[n] && made[n] == NODE_NONE;
        for (uint32_t k = 0; again && k < graph_node(s->g, n)->n_operands; k++) {
            reached[graph_node(s->g, n)->operand[k]] = true;
        }
    }
    for (NodeRef n = 0; n <= top; n++) {
        if (!reached[n] || made[n] != NODE_NONE) {
            continue;
        }
        made[n] = n;
        if (s->after[n]) {
            NodeSpec spec = graph_spec(s->g, n);
            NodeRef *operand = ARENA_ARRAY(s->b->arena, spec.n_operands, NodeRef);
            for (uint32_t k = 0; k < spec.n_operands; k++) {
                operand[k] = made[spec.operand[k]];
            }
            spec.operand = operand;
            made[n] = graph_add(s->g, &spec);
        }
    }
    return made[top];
}

/* ---- the body ---- */

static Sym unique_name(Steps *s, const char *text)
{
    SymTable *syms = &s->b->ctx->syms;
    Sym name = sym_cstr(syms, text);
    uint32_t again = 1;
    for (uint32_t k = 0; k < s->body->params.n + s->body->results.n; k++) {
        Sym other = k < s->body->params.n ? s->body->params.at[k].name
                                          : s->body->results.at[k - s->body->params.n].name;
        if (other == name &&
            (k < s->body->params.n || s->body->results.at[k - s->body->params.n].param < 0)) {
            name = sym_cstr(syms, str_format(s->b->arena, "%s_%u", text, ++again));
            k = UINT32_MAX; /* from the first one on */
        }
    }
    return name;
}

static uint32_t operand_number(Steps *s, NodeRef o)
{
    uint32_t k = 0;
    while (k < s->operand.n && s->operand.at[k] != o) {
        k++;
    }
    if (k == s->operand.n) {
        vec_push(s->b->arena, &s->operand, o);
    }
    return k;
}

static const Dim *shape_without(Steps *s, uint32_t rank, const Dim *shape, int32_t d)
{
    Dim *out = ARENA_ARRAY(s->b->arena, rank, Dim);
    uint32_t n = 0;
    for (uint32_t k = 0; k < rank; k++) {
        if ((int32_t)k != d) {
            out[n++] = shape[k];
        }
    }
    return out;
}

static NodeRef add_param(Steps *s, StepsParam of, DType t, uint32_t rank, const Dim *shape,
                         const char *name, Span span)
{
    Param p = {.name = unique_name(s, name),
               .role = of.role == STEPS_STATE ? PARAM_INOUT
                       : rank == 0            ? PARAM_SCALAR
                                              : PARAM_IN,
               .dtype = t,
               .rank = rank,
               .shape = shape,
               .span = span};
    vec_push(s->b->arena, &s->body->params, p);
    vec_push(s->b->arena, &s->param, of);
    return graph_input(s->body, s->body->params.n - 1, span);
}

/* An operand of the recurrence as a parameter: whole, or its slice along dimension `d`. */
static NodeRef input_of(Steps *s, NodeRef o, int32_t d)
{
    const Node *n = graph_node(s->g, o);
    StepsParam of = {.role = d < 0 ? STEPS_WHOLE : STEPS_EACH,
                     .operand = operand_number(s, o),
                     .dim = d < 0 ? 0 : (uint32_t)d};
    for (uint32_t k = 0; k < s->param.n; k++) {
        const StepsParam *p = &s->param.at[k];
        if (p->role == of.role && p->operand == of.operand && p->dim == of.dim) {
            return graph_input(s->body, k, n->span);
        }
    }
    return add_param(s, of, n->dtype, d < 0 ? n->rank : n->rank - 1,
                     shape_without(s, n->rank, n->shape, d),
                     n->name == NULL ? "x" : n->name->text, n->span);
}

static NodeRef number_of_step(Steps *s, DType t, Span span)
{
    NodeRef at = NODE_NONE;
    for (uint32_t k = 0; k < s->param.n && at == NODE_NONE; k++) {
        at = s->param.at[k].role == STEPS_NUMBER ? graph_input(s->body, k, span) : at;
    }
    if (at == NODE_NONE) {
        at = add_param(s, (StepsParam){.role = STEPS_NUMBER}, DTYPE_I64, 0, NULL, "step", span);
    }
    Access none = {0, NULL};
    NodeSpec cast = node_spec(OP_CAST, t, 1, &at, &none, 0, NULL, NULL, span);
    return t == DTYPE_I64 ? at : graph_add(s->body, &cast);
}

/* The value of the outer graph in the body, where `d` is its dimension of the step. */
static NodeRef in_body(Steps *s, NodeRef o, int32_t d)
{
    const Node *n = graph_node(s->g, o);
    if (s->inside[o]) {
        return s->map[o];
    }
    if (n->op == OP_INDEX && d >= 0) {
        return number_of_step(s, n->dtype, n->span);
    }
    if (op_info(n->op)->kind == OPKIND_LEAF && n->op != OP_INPUT) {
        return graph_clone_node(s->body, s->g, o, s->map);
    }
    return input_of(s, o, d);
}

static Access access_without(Steps *s, Access a, int32_t d)
{
    Index *index = ARENA_ARRAY(s->b->arena, a.rank, Index);
    uint32_t n = 0;
    for (uint32_t k = 0; k < a.rank; k++) {
        if ((int32_t)k != d) {
            index[n++] = a.index[k];
        }
    }
    return (Access){n, index};
}

/* Variables behind `gone` are one less. */
static Affine renumbered(Steps *s, Affine x, int32_t gone)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        t.var -= !affine_is_dim(t.var) && gone >= 0 && t.var > (VarRef)gone;
        out = affine_add(s->b->arena, out, 1, (Affine){0, 1, &t});
    }
    return out;
}

/* Positions of pieces in the result without its dimension `d`, in dimensions of pieces without theirs. */
static const Affine *pieces_without(Steps *s, NodeRef at, int32_t d)
{
    const Node *n = graph_node(s->g, at);
    Affine *out = ARENA_ARRAY(s->b->arena, (size_t)n->n_operands * n->rank, Affine);
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        int32_t gone = operand_dim(s, at, k, d);
        for (uint32_t q = 0; q < n->rank; q++) {
            if ((int32_t)q != d) {
                out[count++] = renumbered(s, n->at[(size_t)k * n->rank + q], gone);
            }
        }
    }
    return out;
}

/* Of a view, whose labels are those of its result in order: without positions in dimension `gone` of its operand. */
static const Affine *positions_without(Steps *s, const Node *n, int32_t gone)
{
    Affine *out = ARENA_ARRAY(s->b->arena, n->access[0].rank, Affine);
    uint32_t count = 0;
    for (uint32_t q = 0; q < n->access[0].rank; q++) {
        if ((int32_t)q != gone) {
            out[count++] = n->at[q];
        }
    }
    return out;
}

static NodeRef build_inside(Steps *s, NodeRef at)
{
    NodeSpec spec = graph_spec(s->g, at);
    const Node *n = graph_node(s->g, at);
    OpKind kind = op_info(n->op)->kind;
    int32_t d = s->dim[at];
    uint32_t count = 0;
    NodeRef *operand = ARENA_ARRAY(s->b->arena, n->n_operands, NodeRef);
    Access *access = ARENA_ARRAY(s->b->arena, n->n_operands, Access);
    int32_t gone = -1; /* of the first operand */
    for (uint32_t k = 0; k < n->n_operands; k++) {
        int32_t q = operand_dim(s, at, k, d);
        gone = k == 0 ? q : gone;
        if (kind == OPKIND_GATHER && k > 0 && gone >= 0 && (int32_t)k == gone + 1) {
            continue; /* the position along the step */
        }
        operand[count] = in_body(s, n->operand[k], q);
        access[count++] = access_without(s, n->access[k], q);
    }
    spec.n_operands = count;
    spec.operand = operand;
    spec.access = access;
    int32_t *out = ARENA_ARRAY(s->b->arena, n->rank, int32_t);
    spec.rank = 0;
    for (uint32_t q = 0; q < n->rank; q++) {
        if ((int32_t)q != d) {
            out[spec.rank++] = n->out[q];
        }
    }
    spec.out = out;
    spec.out_shape = shape_without(s, n->rank, n->shape, d);
    if (kind == OPKIND_VIEW) {
        spec.at = positions_without(s, n, gone);
    } else if (kind == OPKIND_JOIN) {
        spec.at = pieces_without(s, at, d);
        spec.out = labels_in_order(s->b->arena, spec.rank);
    }
    if (n->op == OP_GATHER && gone >= 0 && graph_node(s->body, operand[0])->rank == 0) {
        unsupported(s, at, "chooses a number");
        return NODE_NONE;
    }
    return graph_add(s->body, &spec);
}

/* ---- states and results ---- */

static void add_states(Steps *s)
{
    for (uint32_t i = 0; i < s->s->n; i++) {
        const CheckedState *of = &s->s->state[i];
        for (uint32_t lag = 0; lag < of->n_lags; lag++) {
            uint32_t from = s->s->given > 0 ? s->s->given - 1 - lag : lag;
            NodeRef begin = s->b->current[of->given[from]];
            const Node *n = graph_node(s->g, begin);
            const char *name = s->b->k->values.at[of->value].name->text;
            StepsParam state = {.role = STEPS_STATE, .operand = operand_number(s, begin)};
            NodeRef in =
                add_param(s, state, n->dtype, n->rank, n->shape,
                          str_format(s->b->arena, "%s_before%s", name,
                                     lag == 0 ? "" : str_format(s->b->arena, "%u", lag + 1)),
                          n->span);
            if (of->prior[lag] != UINT32_MAX) {
                NodeRef input = s->b->current[of->prior[lag]];
                s->map[input] = in;
                s->inside[input] = true;
            }
        }
    }
}

static void add_result(Steps *s, Sym name, NodeRef node, int32_t param, Span span)
{
    Result r = {.name = name, .node = node, .param = param, .span = span};
    vec_push(s->b->arena, &s->body->results, r);
    for (uint32_t p = 0; p < s->s->given && param >= 0; p++) {
        vec_push(s->b->arena, &s->first, 0);
    }
}

/* What the value is in a step. */
static NodeRef value_in_step(Steps *s, const CheckedState *of)
{
    return in_body(s, s->b->current[of->value], (int32_t)of->dim);
}

/* Values of steps first, then what states become, in the order of parameters. */
static void add_results(Steps *s)
{
    for (uint32_t i = 0; i < s->s->n; i++) {
        const CheckedState *of = &s->s->state[i];
        const Value *value = &s->b->k->values.at[of->value];
        if (!is_stepwise(s, of)) {
            continue;
        }
        add_result(s, unique_name(s, value->name->text), value_in_step(s, of), -1, value->span);
        for (uint32_t p = 0; p < s->s->given; p++) {
            if (of->given == NULL) {
                unsupported(s, s->b->current[of->value],
                            "computes a value of which the first positions are not given");
                return;
            }
            vec_push(s->b->arena, &s->first, operand_number(s, s->b->current[of->given[p]]));
        }
    }
    uint32_t param = 0;
    for (uint32_t i = 0; i < s->s->n; i++) {
        const CheckedState *of = &s->s->state[i];
        Span span = s->b->k->values.at[of->value].span;
        for (uint32_t lag = 0; lag < of->n_lags; lag++, param++) {
            NodeRef node =
                lag == 0 ? value_in_step(s, of) : graph_input(s->body, param - 1, span);
            add_result(s, s->body->params.at[param].name, node, (int32_t)param, span);
        }
    }
}

static void forget_required(Steps *s)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->g->required.n; k++) {
        bool given = s->s->given > 0 &&
                     k >= s->b->steps_required; /* positions of no step may be outside */
        if (!s->after[s->g->required.at[k].node] && !given) {
            s->g->required.at[n++] = s->g->required.at[k];
        }
    }
    if (n < s->g->required.n) { /* places in the list are others now */
        s->g->required.n = n;
        map_init(&s->b->required, s->b->arena);
    }
}

static void add_values(Steps *s, Recurrence *r)
{
    Graph *g = s->g;
    uint32_t result = 0;
    Access *access = ARENA_ARRAY(s->b->arena, s->operand.n, Access);
    for (uint32_t k = 0; k < s->operand.n; k++) {
        access[k] = access_whole(s->b->arena, graph_node(g, s->operand.at[k])->rank);
    }
    r->n_operands = s->operand.n;
    vec_push(s->b->arena, &g->recurrences, r);
    NodeRef *made = ARENA_ARRAY(s->b->arena, s->n, NodeRef);
    NodeRef *was = ARENA_ARRAY(s->b->arena, s->s->n, NodeRef);
    for (NodeRef n = 0; n < s->n; n++) {
        made[n] = NODE_NONE;
    }
    for (uint32_t i = 0; i < s->s->n; i++) {
        was[i] = s->b->current[s->s->state[i].value];
    }
    for (uint32_t i = 0; i < s->s->n; i++) {
        const CheckedState *of = &s->s->state[i];
        const Value *value = &s->b->k->values.at[of->value];
        if (!is_stepwise(s, of)) {
            continue;
        }
        NodeSpec spec = node_spec(OP_STEPS, graph_node(g, s->b->current[of->value])->dtype,
                                  s->operand.n, s->operand.at, access, value->type.rank,
                                  labels_in_order(s->b->arena, value->type.rank),
                                  value->type.dims, value->span);
        spec.steps = (StepsOf){g->recurrences.n - 1, result++, (int32_t)of->dim};
        spec.name = value->name;
        spec.allow_spill = value->allow_spill;
        spec.keep = value->declared;
        s->b->current[of->value] = made[was[i]] = graph_add(g, &spec);
    }
    for (uint32_t i = 0; i < s->s->n; i++) {
        if (s->outside[i]) {
            s->b->current[s->s->state[i].value] = build_outside(s, was[i], made);
        }
    }
}

bool steps_close(Build *b, const CheckedSteps *steps)
{
    Graph *g = b->g;
    Steps s = {.b = b, .g = g, .s = steps, .n = g->nodes.n};
    s.after = ARENA_ARRAY(b->arena, s.n, bool);
    s.inside = ARENA_ARRAY(b->arena, s.n, bool);
    s.numbers = ARENA_ARRAY(b->arena, s.n, bool);
    s.needed = ARENA_ARRAY(b->arena, s.n, bool);
    s.outside = ARENA_ARRAY(b->arena, steps->n, bool);
    s.dim = ARENA_ARRAY(b->arena, s.n, int32_t);
    s.map = ARENA_ARRAY(b->arena, s.n, NodeRef);
    s.body = graph_new(b->arena, g->name);
    s.body->span = g->span;
    s.body->sources = g->sources;
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        vec_push(b->arena, &s.body->dims.list, g->dims.list.at[d]);
    }
    for (uint32_t i = 0; i < steps->n; i++) {
        for (uint32_t lag = 0; lag < steps->state[i].n_lags; lag++) {
            uint32_t prior = steps->state[i].prior[lag];
            if (prior != UINT32_MAX) {
                s.after[b->current[prior]] = true;
            }
        }
    }
    find_inside(&s);
    if (!s.wrong) {
        add_states(&s);
    }
    for (NodeRef n = 0; n < s.n && !s.wrong; n++) {
        if (s.inside[n] && graph_node(g, n)->op != OP_INPUT) {
            s.map[n] = build_inside(&s, n);
        }
    }
    if (!s.wrong) {
        add_results(&s);
    }
    if (s.wrong) {
        return false;
    }
    forget_required(&s);
    Recurrence *r = ARENA_NEW(b->arena, Recurrence);
    *r = (Recurrence){.body = s.body,
                      .extent = steps->extent,
                      .given = steps->given,
                      .backward = steps->backward,
                      .param = s.param.at,
                      .first = s.first.at};
    add_values(&s, r);
    return true;
}

/* ---- the last state ---- */

NodeRef steps_last(Build *b, NodeRef node, const CheckedExpr *read)
{
    const Node *n = graph_node(b->g, node);
    if (n->op != OP_STEPS || n->steps.along < 0) {
        return NODE_NONE;
    }
    const Recurrence *r = node_recurrence(b->g, n);
    const Result *result = &r->body->results.at[n->steps.result];
    Affine last = r->backward ? affine_const(0)
                              : affine_add(b->arena, affine_extent(b->arena, r->extent), 1,
                                           affine_const(-1));
    if (!affine_eq(read->at[n->steps.along], last)) {
        return NODE_NONE;
    }
    for (uint32_t k = 0; k < r->body->results.n; k++) {
        const Result *state = &r->body->results.at[k];
        if (state->param >= 0 && state->node == result->node) {
            NodeSpec spec = graph_spec(b->g, node);
            Dim *shape = ARENA_ARRAY(b->arena, n->rank, Dim);
            for (uint32_t d = 0; d + 1 < n->rank; d++) {
                shape[d] = n->shape[d < (uint32_t)n->steps.along ? d : d + 1];
            }
            spec.rank = n->rank - 1;
            spec.out = labels_in_order(b->arena, spec.rank);
            spec.out_shape = shape;
            spec.names = (LabelNames){0, NULL};
            spec.steps = (StepsOf){n->steps.recurrence, k, -1};
            return graph_add(b->g, &spec);
        }
    }
    return NODE_NONE;
}
