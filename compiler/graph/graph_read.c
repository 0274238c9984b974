/* SPDX-License-Identifier: Apache-2.0 */
/* The text of graphs back to graphs. Nodes go through the builder, so all that the builder takes for granted (operands
 * exist, ranks and extents agree, labels of the output are distinct) is checked here with a place in the text; all that a
 * finished graph must satisfy is left to the verifier. A text written by hand may number values and name labels as it likes. */
#include "graph/recurrence.h"

#include <string.h>

#include "graph/read_parts.h"

/* ---- one node ---- */

int32_t graph_reader_label(GraphReader *r, Sym name)
{
    if (r->in->stamp[name->id] != r->in->now) {
        r->in->stamp[name->id] = r->in->now;
        r->in->label_of_sym[name->id] = (int32_t)r->extent.n;
        vec_push(r->scratch, &r->extent, dim_fixed(-1));
        vec_push(r->scratch, &r->in_out, 0);
    }
    return r->in->label_of_sym[name->id];
}

static bool label_extent(GraphReader *r, int32_t label, Dim d, Span span)
{
    Dim *e = &r->extent.at[label];
    if (!dim_is(*e, -1) && !dim_eq(*e, d)) {
        Text t = text_new(r->scratch);
        text_put(&t, "this index has extent ");
        dump_dim(&t, &r->g->dims, d);
        text_put(&t, " here and ");
        dump_dim(&t, &r->g->dims, *e);
        text_put(&t, " before");
        return dump_refuse(r->ctx, span, "%s", t.at);
    }
    *e = d;
    return true;
}

bool graph_reader_value(GraphReader *r, const Term *t, NodeRef *out)
{
    if (!map_get(&r->value_of, (uint64_t)t->value, out)) {
        return dump_refuse(r->ctx, t->span, "there is no value %%%lld before this line",
                           (long long)t->value);
    }
    return true;
}

/* `whole`: it may stand without indices. */
static bool read_operand(GraphReader *r, const Term *t, bool whole, NodeRef *operand,
                         Access *access)
{
    const Term *base = t->kind == TERM_INDEX ? t->child[0] : t;
    if (base->kind != TERM_VALUE) {
        return dump_refuse(r->ctx, t->span,
                           "an operand is a value with its indices, such as %%1[a,b]");
    }
    if (!graph_reader_value(r, base, operand)) {
        return false;
    }
    const Node *n = graph_node(r->g, *operand);
    access->rank = t->kind == TERM_INDEX ? t->n - 1 : 0;
    if (whole && t->kind != TERM_INDEX) {
        *access = access_whole(r->scratch, n->rank);
        return true;
    }
    if (access->rank != n->rank) {
        return dump_refuse(r->ctx, t->span, "%u indices for a value of rank %u", access->rank,
                           n->rank);
    }
    Index *index = ARENA_ARRAY(r->scratch, access->rank, Index);
    for (uint32_t d = 0; d < access->rank; d++) {
        const Term *ix = t->child[d + 1];
        if (ix->kind == TERM_NAME) {
            index[d] = (Index){.label = graph_reader_label(r, ix->text)};
            if (!label_extent(r, index[d].label, n->shape[d], ix->span)) {
                return false;
            }
        } else if (ix->kind == TERM_INT) {
            index[d] = (Index){.label = -1, .offset = ix->value};
        } else {
            return dump_refuse(r->ctx, ix->span, "an index is a name or a position");
        }
    }
    access->index = index;
    return true;
}

static bool read_operands(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    VEC(NodeRef) operand = {0};
    VEC(Access) access = {0};
    while (!cursor_is(c, TERM_PUNCT, "->")) {
        const Term *t = cursor_peek(c);
        NodeRef o = NODE_NONE;
        Access a = {0};
        if (t == NULL) {
            return dump_refuse(r->ctx, c->end, "expected an operand or '->' here");
        }
        bool whole = op_takes_whole(spec->op) || (spec->op == OP_GATHER && operand.n == 0);
        if (!read_operand(r, t, whole, &o, &a)) {
            return false;
        }
        c->at++;
        vec_push(r->scratch, &operand, o);
        vec_push(r->scratch, &access, a);
        if (spec->onto) {
            break;
        }
        spec->onto =
            (spec->op == OP_EINSUM || spec->op == OP_SUM) && cursor_take(c, TERM_NAME, "onto");
        if (!spec->onto && !cursor_take(c, TERM_PUNCT, ",")) {
            break;
        }
    }
    spec->n_operands = operand.n;
    spec->operand = operand.at;
    spec->access = access.at;
    return cursor_expect(c, TERM_PUNCT, "->", "'->'") != NULL;
}

static bool read_out(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    const Term *t = cursor_expect(c, TERM_LIST, NULL, "the indices of the result in brackets");
    if (t == NULL) {
        return false;
    }
    int32_t *out = ARENA_ARRAY(r->scratch, t->n, int32_t);
    for (uint32_t d = 0; d < t->n; d++) {
        const Term *ix = t->child[d];
        if (ix->kind != TERM_NAME) {
            return dump_refuse(r->ctx, ix->span, "an index of the result is a name");
        }
        out[d] = graph_reader_label(r, ix->text);
        if (r->in_out.at[out[d]]) {
            return dump_refuse(r->ctx, ix->span, "this index is repeated in the result");
        }
        r->in_out.at[out[d]] = 1;
    }
    spec->rank = t->n;
    spec->out = out;
    return true;
}

/* `at 4:12`, perhaps, and the end of the line. */
static bool read_place_and_end(GraphReader *r, Cursor *c, Span *out)
{
    if (cursor_take(c, TERM_NAME, "at") && !read_span(r->in, c, out)) {
        return false;
    }
    return cursor_expect_end(c);
}

/* `[a,b]` after `slice`: labels of this node, each once. */
static bool read_sliced(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "a list of labels");
    if (list == NULL || list->n > RANK_LIMIT) {
        return list != NULL && dump_refuse(r->ctx, list->span, "too many labels");
    }
    int32_t *sliced = ARENA_ARRAY(r->scratch, list->n, int32_t);
    for (uint32_t k = 0; k < list->n; k++) {
        uint32_t known = r->extent.n;
        const Term *t = list->child[k];
        sliced[k] = t->kind == TERM_NAME ? graph_reader_label(r, t->text) : -1;
        bool ok = sliced[k] >= 0 && (uint32_t)sliced[k] < known;
        for (uint32_t e = 0; ok && e < k; e++) {
            ok = sliced[e] != sliced[k];
        }
        if (!ok) {
            return dump_refuse(r->ctx, t->span, "a label of this value is expected here, once");
        }
    }
    spec->sliced = (Slices){list->n, sliced};
    return true;
}

/* The dimension of a label of the result, or its place among all labels; or `n`. */
static uint32_t place_of_label(GraphReader *r, const int32_t *out, uint32_t n, const Term *t)
{
    uint32_t d = 0, known = r->extent.n;
    int32_t label = t->kind == TERM_NAME ? graph_reader_label(r, t->text) : -1;
    bool is_known = label >= 0 && (uint32_t)label < known;
    while (d < n && (!is_known || (out == NULL ? (int32_t)d : out[d]) != label)) {
        d++;
    }
    return d;
}

/* `sym(a c, b d)`, `antisym(a c, b d)`, ... or `terms(a c, b d)`: pairs of labels, each once. Those of terms are numbered as
 * the text has them, the operands' first, then the result's; so are those of a node. */
static bool read_exchange(GraphReader *r, const Term *call, SymmetryClass kind,
                          const int32_t *out, uint32_t n)
{
    uint32_t *to = ARENA_ARRAY(r->scratch, n, uint32_t);
    for (uint32_t d = 0; d < n; d++) {
        to[d] = d;
    }
    bool ok = call->n > 0;
    for (uint32_t k = 0; ok && k < call->n; k++) {
        const Term *pair = call->child[k];
        ok = pair->kind == TERM_SEQ && pair->n == 2;
        uint32_t a = ok ? place_of_label(r, out, n, pair->child[0]) : n;
        uint32_t b = ok ? place_of_label(r, out, n, pair->child[1]) : n;
        ok = ok && a < n && b < n && a != b && to[a] == a && to[b] == b;
        if (ok) {
            to[a] = b;
            to[b] = a;
        }
    }
    Generator read = {to, kind.sign, kind.conj};
    if (out == NULL) {
        vec_push(r->scratch, &r->exchanges, read);
    } else {
        vec_push(r->scratch, &r->generators, read);
    }
    return ok || dump_refuse(r->ctx, call->span, "pairs of indices are expected, each once");
}

static bool read_exchanges(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    bool ok = true;
    const int32_t none = 0, *out = spec->rank == 0 ? &none : spec->out;
    r->generators.n = r->exchanges.n = 0;
    while (ok && out != NULL) {
        const Term *call = cursor_peek(c);
        SymmetryClass kind = {.sign = 1};
        if (cursor_is(c, TERM_CALL, "terms")) {
            ok = read_exchange(r, call, kind, NULL, r->extent.n);
        } else if (call != NULL && call->kind == TERM_CALL &&
                   symmetry_from_short_word(call->text->text, &kind)) {
            ok = read_exchange(r, call, kind, out, spec->rank);
        } else {
            break;
        }
        c->at++;
    }
    return ok;
}

/* `named [i,_,k]`: what the source calls the labels, as many as there are. */
static bool read_label_names(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "a list of names");
    if (list == NULL || list->n != r->extent.n) {
        return list != NULL &&
               dump_refuse(r->ctx, list->span, "a name is expected for each index");
    }
    Sym *name = ARENA_ARRAY(r->scratch, list->n, Sym);
    for (uint32_t l = 0; l < list->n; l++) {
        const Term *t = list->child[l];
        if (t->kind != TERM_NAME && t->kind != TERM_STRING) {
            return dump_refuse(r->ctx, t->span, "a name or '_' is expected here");
        }
        name[l] = t->kind == TERM_NAME && str_eq_cstr((Str){t->text->text, t->text->n}, "_")
                      ? NULL
                      : t->text;
    }
    spec->names = (LabelNames){list->n, name};
    return true;
}

/* What may follow the type: `acc f32`, `spill`, `keep`, `slice [a]`, `sym(a b)`, `as NAME`, `named [i,j]`, `at 4:12`. */
static bool read_rest(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    if (cursor_take(c, TERM_NAME, "acc")) {
        const Term *t = cursor_expect(c, TERM_NAME, NULL, "the accumulator's type");
        if (t == NULL) {
            return false;
        }
        if (!dtype_from_name((Str){t->text->text, t->text->n}, &spec->acc)) {
            return dump_refuse(r->ctx, t->span, "no element type has this name");
        }
    }
    spec->allow_spill = cursor_take(c, TERM_NAME, "spill");
    spec->keep = cursor_take(c, TERM_NAME, "keep");
    if (cursor_take(c, TERM_NAME, "slice") && !read_sliced(r, c, spec)) {
        return false;
    }
    if (!read_exchanges(r, c, spec)) {
        return false;
    }
    if (cursor_take(c, TERM_NAME, "as") && (spec->name = cursor_name(c, "a name")) == NULL) {
        return false;
    }
    if (cursor_take(c, TERM_NAME, "named") && !read_label_names(r, c, spec)) {
        return false;
    }
    return read_place_and_end(r, c, &spec->span);
}

static bool read_type_and_rest(GraphReader *r, Cursor *c, NodeSpec *spec, Span *type_span)
{
    uint32_t rank = 0;
    if (cursor_expect(c, TERM_PUNCT, ":", "':' and a type") == NULL) {
        return false;
    }
    *type_span = cursor_place(c);
    if (!read_type(r->in, c, &spec->dtype, &rank, &spec->out_shape)) {
        return false;
    }
    if (rank != spec->rank) {
        return dump_refuse(r->ctx, *type_span, "a type of rank %u for a value of rank %u", rank,
                           spec->rank);
    }
    return read_rest(r, c, spec);
}

static bool read_input(GraphReader *r, Cursor *c, NodeSpec *spec, NodeRef *out)
{
    Span type_span;
    uint32_t param = 0;
    const Term *t = cursor_expect(c, TERM_AT, NULL, "a parameter such as @A");
    if (t == NULL) {
        return false;
    }
    if (!map_get(&r->param_of, t->text->id, &param)) {
        return dump_refuse(r->ctx, t->span, "there is no parameter '%s'", t->text->text);
    }
    const Param *p = &r->g->params.at[param];
    spec->rank = param_rank(p);
    if (!read_type_and_rest(r, c, spec, &type_span)) {
        return false;
    }
    for (uint32_t d = 0; d < spec->rank; d++) {
        if (!dim_eq(param_shape(p)[d], spec->out_shape[d])) {
            return dump_refuse(r->ctx, type_span, "the parameter has another shape");
        }
    }
    if (p->dtype != spec->dtype) {
        return dump_refuse(r->ctx, type_span, "the parameter has another element type");
    }
    *out = graph_input(r->g, param, spec->span);
    return true;
}

static bool read_constant(GraphReader *r, Cursor *c, NodeSpec *spec, NodeRef *out)
{
    Number v;
    Span type_span, span = cursor_place(c);
    if (!read_number(c, &v) || !read_type_and_rest(r, c, spec, &type_span) ||
        !number_fit(r->ctx, v, spec->dtype, span, &v)) {
        return false;
    }
    *out = graph_const(r->g, v, spec->span);
    return true;
}

static bool read_extent(GraphReader *r, Cursor *c, NodeSpec *spec, NodeRef *out)
{
    Span type_span;
    Dim d;
    const Term *t = cursor_peek(c);
    if (t == NULL || t->kind == TERM_INT) {
        return dump_refuse(r->ctx, cursor_place(c), "expected the name of a dim here");
    }
    c->at++;
    if (!read_dim(r->in, t, &d) || !read_type_and_rest(r, c, spec, &type_span)) {
        return false;
    }
    *out = graph_extent(r->g, d.sym, spec->dtype, spec->span);
    return true;
}

static bool read_index_leaf(GraphReader *r, Cursor *c, NodeSpec *spec, NodeRef *out)
{
    Span type_span;
    spec->rank = 1;
    if (!read_type_and_rest(r, c, spec, &type_span)) {
        return false;
    }
    *out = graph_index(r->g, spec->out_shape[0], spec->dtype, spec->span);
    return true;
}

/* `0 result 1 along 0` */
static bool read_steps_of(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    const Term *number = cursor_expect(c, TERM_INT, NULL, "the number of a recurrence"),
               *t = NULL;
    if (number == NULL || cursor_expect(c, TERM_NAME, "result", "'result'") == NULL ||
        (t = cursor_expect(c, TERM_INT, NULL, "the number of a result")) == NULL) {
        return false;
    }
    bool along = cursor_take(c, TERM_NAME, "along");
    const Term *dim = along ? cursor_expect(c, TERM_INT, NULL, "a dimension") : NULL;
    if (along && dim == NULL) {
        return false;
    }
    if (number->value < 0 || number->value >= r->g->recurrences.n || t->value < 0 ||
        t->value > UINT32_MAX || (along && (dim->value < 0 || dim->value >= RANK_LIMIT))) {
        return dump_refuse(r->ctx, number->span, "there is no such value of a recurrence");
    }
    spec->steps = (StepsOf){(uint32_t)number->value, (uint32_t)t->value,
                            along ? (int32_t)dim->value : -1};
    return true;
}

static bool read_computed(GraphReader *r, Cursor *c, NodeSpec *spec, NodeRef *out)
{
    Span type_span;
    OpKind kind = op_info(spec->op)->kind;
    if (kind == OPKIND_STEPS && !read_steps_of(r, c, spec)) {
        return false;
    }
    bool ok = kind == OPKIND_VIEW   ? graph_read_viewed(r, c, spec)
              : kind == OPKIND_JOIN ? graph_read_pieces(r, c, spec)
                                    : read_operands(r, c, spec);
    uint32_t rank = spec->rank;
    if (!ok || !read_out(r, c, spec) || !read_type_and_rest(r, c, spec, &type_span)) {
        return false;
    }
    if (kind == OPKIND_JOIN && rank != spec->rank) {
        return dump_refuse(r->ctx, type_span,
                           "pieces have other positions than the result has dimensions");
    }
    if (!graph_positions_have_labels(r, spec)) {
        return dump_refuse(r->ctx, type_span,
                           "a position has an index that the result has not");
    }
    for (uint32_t d = 0; d < spec->rank; d++) {
        if (!label_extent(r, spec->out[d], spec->out_shape[d], type_span)) {
            return false;
        }
    }
    uint32_t before = r->g->nodes.n;
    *out = graph_add(r->g, spec);
    for (uint32_t k = 0; r->g->nodes.n > before && k < r->generators.n; k++) {
        graph_add_generator(r->g, *out, &r->generators.at[k]);
    }
    for (uint32_t k = 0; r->g->nodes.n > before && k < r->exchanges.n; k++) {
        graph_add_exchange(r->g, *out, &r->exchanges.at[k]);
    }
    return true;
}

/* `%4 = op ...` */
static bool read_node(GraphReader *r, const DumpLine *line)
{
    Cursor c = cursor_line(r->ctx, line);
    const Term *value = cursor_expect(&c, TERM_VALUE, NULL, "a value such as %4");
    const Term *name = NULL;
    NodeSpec spec = {0};
    NodeRef node = NODE_NONE;
    if (value == NULL || cursor_expect(&c, TERM_PUNCT, "=", "'='") == NULL ||
        (name = cursor_expect(&c, TERM_NAME, NULL, "an operation")) == NULL) {
        return false;
    }
    if (!op_from_name((Str){name->text->text, name->text->n}, &spec.op)) {
        return dump_refuse(r->ctx, name->span, "there is no operation '%s'", name->text->text);
    }
    if (map_get(&r->value_of, (uint64_t)value->value, &node)) {
        return dump_refuse(r->ctx, value->span, "a value of this number exists");
    }
    r->in->now++;
    r->extent.n = 0;
    r->in_out.n = 0;
    bool ok = spec.op == OP_INPUT    ? read_input(r, &c, &spec, &node)
              : spec.op == OP_CONST  ? read_constant(r, &c, &spec, &node)
              : spec.op == OP_INDEX  ? read_index_leaf(r, &c, &spec, &node)
              : spec.op == OP_EXTENT ? read_extent(r, &c, &spec, &node)
                                     : read_computed(r, &c, &spec, &node);
    if (ok && spec.acc != DTYPE_NONE && spec.acc != graph_node(r->g, node)->acc) {
        ok = dump_refuse(r->ctx, line->span, "only sums and reductions have an accumulator");
    }
    if (ok) {
        map_put(&r->value_of, (uint64_t)value->value, node);
        while (r->place.n < r->g->nodes.n) {
            vec_push(r->scratch, &r->place, line->span);
        }
    }
    return ok;
}

/* ---- one kernel ---- */

static bool read_form(GraphReader *r, Cursor *c)
{
    const Term *t = cursor_expect(c, TERM_NAME, NULL, "a form");
    if (t == NULL) {
        return false;
    }
    for (int f = GRAPH_TENSOR; f <= GRAPH_BINARY; f++) {
        if (str_eq_cstr((Str){t->text->text, t->text->n}, graph_form_name((GraphForm)f))) {
            r->g->form = (GraphForm)f;
            return cursor_expect_end(c);
        }
    }
    return dump_refuse(r->ctx, t->span, "a form is tensor or binary");
}

static bool read_program(GraphReader *r, Cursor *c)
{
    const Term *t = cursor_expect(c, TERM_STRING, NULL, "a string");
    r->g->program = t == NULL ? NULL : t->text->text;
    return t != NULL && cursor_expect_end(c);
}

static bool read_param(GraphReader *r, Cursor *c)
{
    Param p = {.role = PARAM_IN};
    const Term *t = NULL;
    uint32_t old;
    if (cursor_take(c, TERM_NAME, "inout")) {
        p.role = PARAM_INOUT;
    } else if (cursor_take(c, TERM_NAME, "scalar")) {
        p.role = PARAM_SCALAR;
    } else if (cursor_expect(c, TERM_NAME, "in", "in, inout or scalar") == NULL) {
        return false;
    }
    if ((t = cursor_expect(c, TERM_AT, NULL, "a name such as @A")) == NULL ||
        cursor_expect(c, TERM_PUNCT, ":", "':' and a type") == NULL ||
        !read_type(r->in, c, &p.dtype, &p.rank, &p.shape) ||
        !read_shape_after(r->in, c, "as", &p.n_collapsed, &p.collapsed) ||
        !read_symmetry(r->in, c, p.dtype, p.rank, p.shape, &p.symmetry) ||
        !read_place_and_end(r, c, &p.span)) {
        return false;
    }
    if (map_get(&r->param_of, t->text->id, &old)) {
        return dump_refuse(r->ctx, t->span, "a parameter of this name exists");
    }
    p.name = t->text;
    map_put(&r->param_of, p.name->id, r->g->params.n);
    vec_push(r->g->arena, &r->g->params, p);
    return true;
}

static bool read_result(GraphReader *r, Cursor *c, bool update)
{
    Result result = {.param = -1};
    const Term *t = cursor_expect(c, TERM_AT, NULL, "a name such as @C");
    const Term *value = NULL;
    if (t == NULL || cursor_expect(c, TERM_PUNCT, "=", "'='") == NULL ||
        (value = cursor_expect(c, TERM_VALUE, NULL, "a value such as %4")) == NULL ||
        !graph_reader_value(r, value, &result.node)) {
        return false;
    }
    const Node *n = graph_node(r->g, result.node);
    if (!read_shape_after(r->in, c, "of", &result.rank, &result.shape) ||
        !read_symmetry(r->in, c, n->dtype, n->rank, n->shape, &result.symmetry) ||
        !read_place_and_end(r, c, &result.span)) {
        return false;
    }
    result.name = t->text;
    uint32_t param = 0;
    if (update) {
        if (!map_get(&r->param_of, t->text->id, &param)) {
            return dump_refuse(r->ctx, t->span, "there is no parameter of this name");
        }
        result.param = (int32_t)param;
    }
    vec_push(r->g->arena, &r->g->results, result);
    return true;
}

/* After `require`: `%2 "tok[n]" at "n" of @W 0 below v`. */
static bool read_required(GraphReader *r, Cursor *c)
{
    Required required;
    const Term *value = cursor_expect(c, TERM_VALUE, NULL, "a value such as %4");
    if (value == NULL || !graph_reader_value(r, value, &required.node) ||
        !read_requirement(r->in, c, &required.what)) {
        return false;
    }
    vec_push(r->g->arena, &r->g->required, required);
    return true;
}

/* After `by`: `%7[a,b]`, in labels of the node as they are printed. */
static bool read_base(GraphReader *r, Cursor *c, Online *o)
{
    const Term *t = cursor_peek(c);
    const Term *base = t != NULL && t->kind == TERM_INDEX ? t->child[0] : t;
    if (base == NULL || base->kind != TERM_VALUE || !graph_reader_value(r, base, &o->base)) {
        return base != NULL && base->kind == TERM_VALUE
                   ? false
                   : dump_refuse(r->ctx, cursor_place(c),
                                 "a value with indices, %%7[a], is expected here");
    }
    c->at++;
    o->at.rank = t->kind == TERM_INDEX ? t->n - 1 : 0;
    Index *index = ARENA_ARRAY(r->g->arena, o->at.rank, Index);
    for (uint32_t d = 0; d < o->at.rank; d++) {
        const Term *ix = t->child[d + 1];
        index[d].label = ix->kind == TERM_NAME ? dump_label_number(ix->text) : -1;
        if (index[d].label < 0) {
            return dump_refuse(r->ctx, ix->span,
                               "an index of the value that follows is expected here");
        }
    }
    o->at.index = index;
    return true;
}

static bool read_online(GraphReader *r, Cursor *c)
{
    Online o = {.scale = NODE_NONE, .power = 1};
    const Term *t = cursor_expect(c, TERM_VALUE, NULL, "a value such as %4");
    if (t == NULL || !graph_reader_value(r, t, &o.node) ||
        cursor_expect(c, TERM_NAME, "by", "'by'") == NULL || !read_base(r, c, &o) ||
        cursor_expect(c, TERM_NAME, "over", "'over'") == NULL ||
        (t = cursor_expect(c, TERM_NAME, NULL, "an index of the value that follows")) == NULL) {
        return false;
    }
    o.t = dump_label_number(t->text);
    if (cursor_take(c, TERM_NAME, "scale") &&
        ((t = cursor_expect(c, TERM_VALUE, NULL, "a value such as %4")) == NULL ||
         !graph_reader_value(r, t, &o.scale))) {
        return false;
    }
    if (cursor_take(c, TERM_NAME, "power")) {
        t = cursor_expect(c, TERM_INT, NULL, "a power");
        if (t == NULL || t->value < 1 || t->value > ONLINE_POWER) {
            return t != NULL && dump_refuse(r->ctx, t->span, "a small power is expected here");
        }
        o.power = (int32_t)t->value;
    }
    vec_push(r->g->arena, &r->g->online, o);
    return cursor_expect_end(c);
}

static bool read_line(GraphReader *r, const DumpLine *line)
{
    if (line->has_block && line->term[0]->kind == TERM_NAME &&
        strcmp(line->term[0]->text->text, "recurrence") == 0) {
        return recurrence_read(r->in, r->scratch, r->g, line);
    }
    if (line->has_block) {
        return dump_refuse(r->ctx, line->span, "this line has no block");
    }
    if (line->term[0]->kind == TERM_VALUE) {
        return read_node(r, line);
    }
    Cursor c = cursor_line(r->ctx, line);
    if (cursor_take(&c, TERM_NAME, "form")) {
        return read_form(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "program")) {
        return read_program(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "dim")) {
        return read_dim_line(r->in, &c) && cursor_expect_end(&c);
    }
    if (cursor_take(&c, TERM_NAME, "param")) {
        return read_param(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "online")) {
        return read_online(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "require")) {
        return read_required(r, &c);
    }
    if (cursor_is(&c, TERM_NAME, "result") || cursor_is(&c, TERM_NAME, "update")) {
        bool update = cursor_is(&c, TERM_NAME, "update");
        c.at++;
        return read_result(r, &c, update);
    }
    return dump_refuse(r->ctx, line->term[0]->span,
                       "a line of a graph is program, form, dim, param, a value, "
                       "online, result, update or require");
}

Graph *graph_read(DumpReader *in, Arena *scratch, const DumpLine *line)
{
    GraphReader r = {.in = in, .ctx = in->ctx, .scratch = scratch};
    KernelHead head;
    uint32_t next;
    if (!read_kernel_head(in, line, &head, &next)) {
        return NULL;
    }
    r.g = graph_new(in->arena, head.name);
    r.g->span = head.span;
    r.g->signature = head.signature;
    r.g->statements = head.statements;
    r.g->ranks = head.ranks;
    r.g->sources = &r.ctx->sources;
    dump_reader_kernel(in, &r.g->dims);
    map_init(&r.value_of, scratch);
    map_init(&r.param_of, scratch);
    if (in->stamp == NULL) {
        in->label_of_sym = ARENA_ARRAY(scratch, r.ctx->syms.n, int32_t);
        in->stamp = ARENA_ARRAY(scratch, r.ctx->syms.n, uint32_t);
    }
    bool ok = true;
    for (uint32_t k = next; ok && k < line->n_body; k++) {
        ok = read_line(&r, line->body[k]);
    }
    return ok && graph_verify_at(r.ctx, r.g, "the dump", r.place.at) ? r.g : NULL;
}

Module *module_read(Ctx *ctx, uint32_t source)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Module *m = ARENA_NEW(&ctx->arena, Module);
    m->arena = &ctx->arena;
    DumpReader in;
    dump_reader_init(&in, ctx, &ctx->arena);
    uint32_t next = 0;
    const DumpTree *tree = dump_tree_read(ctx, &scratch, source);
    bool ok = tree != NULL && read_module_head(&in, tree, "graph", &m->source_name, &next);
    for (uint32_t k = next; ok && k < tree->n; k++) {
        Graph *g = graph_read(&in, &scratch, tree->line[k]);
        ok = g != NULL;
        if (ok) {
            vec_push(m->arena, &m->graphs, g);
        }
    }
    arena_release(&scratch);
    return ok ? m : NULL;
}
