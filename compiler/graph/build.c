/* SPDX-License-Identifier: Apache-2.0 */
/* From checked programs to tensor graphs. A kernel's statements are built in order; `current` holds the node that
 * is each value now, so an inout parameter is its input until it is assigned. Within a statement an expression becomes a
 * View: a node and the labels of the statement it is read at. Nodes get their indices in the order of the left
 * side, then of first appearance, so the last one usually has the order of the left side; if not, a copy puts it so. */
#include "graph/build.h"

#include "graph/gradient.h"

#include <string.h>

#include "graph/build_parts.h"

/* ---- views ---- */

View build_view(Build *b, NodeRef node, const int32_t *label, uint32_t rank)
{
    View v = {.node = node, .rank = rank, .dtype = graph_node(b->g, node)->dtype};
    v.index = access_of(b->arena, rank, label).index;
    return v;
}

/* Do they for all values of the labels? Those of a step need not: its index lacks the positions that are given. */
static bool positions_lie_inside(Build *b, const CheckedExpr *e, const Node *n)
{
    bool inside = true;
    Dim *extent = ARENA_ARRAY(b->arena, b->s->n_labels, Dim);
    for (uint32_t l = 0; l < b->s->n_labels; l++) {
        extent[l] = dim_fixed(1);
    }
    for (uint32_t a = 0; a < e->rank; a++) {
        extent[e->label[a]] = b->s->label[e->label[a]].extent;
    }
    for (uint32_t d = 0; d < n->rank && inside; d++) {
        inside = position_problem(b->arena, &b->g->dims, extent, b->s->n_labels, e->at[d],
                                  n->shape[d]) == 0;
    }
    return inside;
}

/* An affine position as a number. */
static View position_number(Build *b, Affine x, Span span)
{
    View sum = build_view(b, graph_const(b->g, number_int(DTYPE_I64, x.base), span), NULL, 0);
    for (uint32_t i = 0; i < x.n; i++) {
        int32_t l = (int32_t)x.term[i].var;
        bool dim = affine_is_dim(x.term[i].var);
        View term[2] = {
            build_view(b, graph_const(b->g, number_int(DTYPE_I64, x.term[i].coef), span), NULL,
                       0),
            dim ? build_view(b, graph_extent(b->g, affine_sym(x.term[i].var), DTYPE_I64, span),
                             NULL, 0)
                : build_view(b, graph_index(b->g, b->s->label[l].extent, DTYPE_I64, span), &l,
                             1)};
        View both[2] = {map_add(b, OP_MUL, DTYPE_I64, term, 2, span, NULL), sum};
        sum = map_add(b, OP_ADD, DTYPE_I64, both, 2, span, NULL);
    }
    return sum;
}

static View gather_positions(Build *b, const CheckedExpr *e, NodeRef node)
{
    const Node n = *graph_node(b->g, node);
    View *v = ARENA_ARRAY(b->arena, (size_t)n.rank + 1, View);
    v[0] = (View){node, n.rank, access_whole(b->arena, n.rank).index, n.dtype};
    for (uint32_t d = 0; d < n.rank; d++) {
        v[d + 1] = position_number(b, e->at[d], e->span);
    }
    OutLabels out = {.n = 0};
    for (uint32_t a = 0; a < e->rank; a++) {
        out.label[out.n++] = e->label[a];
    }
    return node_add(b, OP_GATHER, n.dtype, v, n.rank + 1, &out, e->span, NULL);
}

/* A value read at positions that are more than labels. */
static View view_positions_read(Build *b, const CheckedExpr *e, NodeRef node)
{
    uint32_t rank = graph_node(b->g, node)->rank;
    Dim *shape = ARENA_ARRAY(b->arena, e->rank, Dim);
    Access access = access_whole(b->arena, rank);
    for (uint32_t a = 0; a < e->rank; a++) {
        shape[a] = b->s->label[e->label[a]].extent;
    }
    if (!positions_lie_inside(b, e, graph_node(b->g, node))) {
        return gather_positions(b, e, node);
    }
    NodeSpec spec = node_spec(OP_VIEW, graph_node(b->g, node)->dtype, 1, &node, &access,
                              e->rank, e->label, shape, e->span);
    spec.at = e->at;
    spec.names = b->names;
    return build_view(b, graph_add(b->g, &spec), e->label, e->rank);
}

/* Are the positions labels alone, each of the extent of its dimension? */
static bool is_plain_read(const Build *b, const CheckedExpr *e, const Node *n)
{
    bool plain = true;
    for (uint32_t d = 0; d < n->rank && plain; d++) {
        int32_t label = affine_index(e->at[d]);
        plain = label >= 0 && dim_eq(b->s->label[label].extent, n->shape[d]);
    }
    return plain;
}

/* The same positions of a value that lacks dimension `d`. */
static View view_without(Build *b, const CheckedExpr *e, NodeRef node, uint32_t d)
{
    uint32_t rank = graph_node(b->g, node)->rank;
    CheckedExpr *read = arena_copy(b->arena, e, sizeof *e);
    Affine *at = ARENA_ARRAY(b->arena, rank, Affine);
    for (uint32_t k = 0; k < rank; k++) {
        at[k] = e->at[k < d ? k : k + 1];
    }
    read->at = at;
    if (!is_plain_read(b, read, graph_node(b->g, node))) {
        return view_positions_read(b, read, node);
    }
    int32_t *label = ARENA_ARRAY(b->arena, rank, int32_t);
    for (uint32_t k = 0; k < rank; k++) {
        label[k] = (int32_t)at[k].term[0].var;
    }
    return build_view(b, node, label, rank);
}

/* A value read at labels; extents of 1 under a longer label are read at 0. */
static View view_read(Build *b, const CheckedExpr *e)
{
    NodeRef node = b->current[e->read];
    CHECK(node != NODE_NONE);
    const Node *n = graph_node(b->g, node);
    NodeRef last = e->at != NULL ? steps_last(b, node, e) : NODE_NONE;
    if (last != NODE_NONE) {
        return view_without(b, e, last, (uint32_t)graph_node(b->g, node)->steps.along);
    }
    if (e->at != NULL && !is_plain_read(b, e, n)) {
        return view_positions_read(b, e, node);
    }
    Index *index = ARENA_ARRAY(b->arena, n->rank, Index);
    for (uint32_t a = 0; a < n->rank; a++) {
        int32_t l = e->at == NULL ? e->label[a] : (int32_t)e->at[a].term[0].var;
        bool stretched = dim_is(n->shape[a], 1) && !dim_is(b->s->label[l].extent, 1);
        index[a] = stretched ? (Index){-1, 0} : (Index){l, 0};
    }
    return (View){node, n->rank, index, n->dtype};
}

/* ---- labels of a result ---- */

static uint32_t label_rank(const Build *b, int32_t label)
{
    return b->order[label] != 0 ? b->order[label] : RANK_LIMIT + 1;
}

static void out_add(Build *b, OutLabels *out, int32_t label)
{
    if (label < 0 || b->stamp[label] == b->serial) {
        return;
    }
    b->stamp[label] = b->serial;
    if (out->n == RANK_LIMIT) {
        b->too_many = true;
        return;
    }
    uint32_t at = out->n++;
    for (; at > 0 && label_rank(b, out->label[at - 1]) > label_rank(b, label); at--) {
        out->label[at] = out->label[at - 1];
    }
    out->label[at] = label;
}

/* The labels of the views that are not `dropped`, in the order of results. */
OutLabels out_labels(Build *b, const View *v, uint32_t n, const int32_t *dropped,
                     uint32_t n_dropped)
{
    OutLabels out = {.n = 0};
    b->serial++;
    for (uint32_t d = 0; d < n_dropped; d++) {
        b->stamp[dropped[d]] = b->serial;
    }
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < v[k].rank; a++) {
            out_add(b, &out, v[k].index[a].label);
        }
    }
    if (b->too_many && !b->limited) {
        b->limited = true;
        diag_limit(&b->ctx->diags, E_LIMIT_SIZE, b->s->span,
                   "an intermediate of this statement has more than %d dimensions", RANK_LIMIT);
    }
    return out;
}

/* ---- nodes ---- */

/* An intermediate that nobody could address is a limit met here, not a broken graph later. */
static void check_size(Build *b, DType dtype, const OutLabels *out, Span span)
{
    Dim dims[RANK_LIMIT];
    for (uint32_t d = 0; d < out->n; d++) {
        dims[d] = b->s->label[out->label[d]].extent;
    }
    int64_t bytes = 0;
    TensorType type = {dtype, out->n, dims};
    if (!type_bytes(&type, &bytes) && !b->limited) {
        b->limited = true;
        diag_limit(&b->ctx->diags, E_LIMIT_SIZE, span,
                   "the size of an intermediate overflows 64 bits");
    }
}

NodeRef root_add(Build *b, NodeSpec *spec, const Root *root)
{
    if (root != NULL) {
        spec->name = root->name;
        spec->allow_spill = root->allow_spill;
        spec->keep = root->keep;
    }
    return graph_add(b->g, spec);
}

View node_add(Build *b, Op op, DType dtype, const View *v, uint32_t n, const OutLabels *out,
              Span span, const Root *root)
{
    check_size(b, dtype, out, span);
    NodeRef *operand = ARENA_ARRAY(b->arena, n, NodeRef);
    Access *access = ARENA_ARRAY(b->arena, n, Access);
    for (uint32_t k = 0; k < n; k++) {
        operand[k] = v[k].node;
        access[k] = (Access){v[k].rank, v[k].index};
    }
    Dim *shape = ARENA_ARRAY(b->arena, out->n, Dim);
    for (uint32_t d = 0; d < out->n; d++) {
        shape[d] = b->s->label[out->label[d]].extent;
    }
    NodeSpec spec = node_spec(op, dtype, n, operand, access, out->n, out->label, shape, span);
    spec.names = b->names;
    return build_view(b, root_add(b, &spec, root), out->label, out->n);
}

View map_add(Build *b, Op op, DType dtype, const View *v, uint32_t n, Span span,
             const Root *root)
{
    OutLabels out = out_labels(b, v, n, NULL, 0);
    return node_add(b, op, dtype, v, n, &out, span, root);
}

static View as_type(Build *b, View v, DType t, Span span, const Root *root)
{
    return v.dtype == t ? v : map_add(b, OP_CAST, t, &v, 1, span, root);
}

/* ---- expressions ---- */

static View build_map(Build *b, const CheckedExpr *e, DType want, const Root *root)
{
    View v[3];
    CHECK(e->n >= 1 && e->n <= 3);
    for (uint32_t a = 0; a < e->n; a++) {
        bool chosen = e->op == OP_SELECT && a > 0; /* only where the condition says so */
        if (chosen) {
            Condition here = {v[0], a == 2};
            vec_push(b->arena, &b->conditions, here);
        }
        v[a] = expr_build(b, e->arg[a], e->arg[a]->dtype, NULL);
        b->conditions.n -= chosen ? 1 : 0;
    }
    if (e->placed) {
        require_position(b, e->read, (uint32_t)e->dim, e->arg[0], v[0]);
    }
    if (e->op == OP_CAST &&
        v[0].dtype == e->dtype) { /* f32(x) of an x that is computed in f32 */
        return as_type(b, v[0], want, e->span, root);
    }
    View r = map_add(b, e->op, e->dtype, v, e->n, e->span, e->dtype == want ? root : NULL);
    return as_type(b, r, want, e->span, root);
}

View operand_build(Build *b, const CheckedExpr *e)
{
    const CheckedExpr *read = e;
    if (e->kind == CHECKED_MAP && e->op == OP_CAST) {
        read = e->arg[0]; /* f32(x) of 16 bits */
    }
    if (read->kind == CHECKED_READ) {
        View v = view_read(b, read);
        bool stored = v.dtype != e->dtype && dtype_computes(v.dtype) == e->dtype;
        if (dtype_widens(v.dtype, e->dtype) && (read == e || stored)) {
            return v;
        }
    }
    return expr_build(b, e, e->dtype, NULL);
}

/* `W[tok[n], e]`; a dimension of 1 under a longer index is read at 0. */
static View build_gather(Build *b, const CheckedExpr *e)
{
    NodeRef table = b->current[e->read];
    const Node n = *graph_node(b->g, table);
    View *v = ARENA_ARRAY(b->arena, (size_t)e->n + 1, View);
    CHECK(n.rank == e->n);
    for (uint32_t d = 0; d < e->n; d++) {
        const CheckedExpr *at = e->arg[d];
        bool index = at->kind == CHECKED_INDEX && at->rank == 1;
        bool stretched = index && dim_is(n.shape[d], 1);
        v[d + 1] =
            stretched
                ? build_view(b, graph_const(b->g, number_int(DTYPE_I64, 0), e->span), NULL, 0)
                : expr_build(b, at, DTYPE_I64, NULL);
        if (!index) {
            require_position(b, e->read, d, at, v[d + 1]);
        }
    }
    v[0] = (View){table, n.rank, access_whole(b->arena, n.rank).index, n.dtype};
    OutLabels out = out_labels(b, v + 1, e->n, NULL, 0);
    return node_add(b, OP_GATHER, n.dtype, v, e->n + 1, &out, e->span, NULL);
}

static View number_build(Build *b, Dim d, DType t, Span span)
{
    NodeRef n = d.sym < 0 ? graph_const(b->g, number_cast(number_int(DTYPE_I64, d.n), t), span)
                          : graph_extent(b->g, d.sym, t, span);
    return build_view(b, n, NULL, 0);
}

/* The position of an index, or of several that are one: h*dh + d. */
static View build_index(Build *b, const CheckedExpr *e, DType want, const Root *root)
{
    DType t = e->rank > 1 ? e->dtype : want;
    View two[2];
    for (uint32_t p = 0; p < e->rank; p++) {
        Dim extent = b->s->label[e->label[p]].extent;
        const Root *last = p + 1 == e->rank && t == want ? root : NULL;
        if (p > 0) {
            two[1] = number_build(b, extent, t, e->span);
            two[0] = map_add(b, OP_MUL, t, two, 2, e->span, NULL);
        }
        DType real = dtype_is_complex(t) ? dtype_part(t) : t; /* as positions are */
        NodeRef n = graph_index(b->g, extent, real, e->span);
        two[p > 0] = as_type(b, build_view(b, n, &e->label[p], 1), t, e->span, NULL);
        two[0] = p > 0 ? map_add(b, OP_ADD, t, two, 2, e->span, last) : two[0];
    }
    return as_type(b, two[0], want, e->span, root);
}

View expr_build(Build *b, const CheckedExpr *e, DType want, const Root *root)
{
    switch (e->kind) {
    case CHECKED_CONST:
        return build_view(b, graph_const(b->g, number_cast(e->value, want), e->span), NULL, 0);
    case CHECKED_EXTENT:
        return build_view(b, graph_extent(b->g, e->dim, want, e->span), NULL, 0);
    case CHECKED_INDEX:
        return build_index(b, e, want, root);
    case CHECKED_READ:
        return as_type(b, view_read(b, e), want, e->span, root);
    case CHECKED_GATHER:
        return as_type(b, build_gather(b, e), want, e->span, root);
    case CHECKED_MAP:
        return build_map(b, e, want, root);
    case CHECKED_CHAIN:
        return as_type(b, chain_build(b, e, e->dtype == want ? root : NULL), want, e->span,
                       root);
    case CHECKED_DENSE:
        return as_type(b, dense_build(b, e, e->dtype == want ? root : NULL), want, e->span,
                       root);
    case CHECKED_REDUCE:
        return as_type(b, reduce_build(b, e, e->dtype == want ? root : NULL), want, e->span,
                       root);
    case CHECKED_POISON:
        break;
    }
    UNREACHABLE(); /* programs with errors are not built */
}

/* ---- statements ---- */

static bool is_left_order(const CheckedStatement *s, const View *v)
{
    if (v->rank != s->rank) {
        return false;
    }
    for (uint32_t a = 0; a < v->rank; a++) {
        if (v->index[a].label != s->left[a]) {
            return false;
        }
    }
    return true;
}

/* The dimensions that `...` stands for have no names. */
static LabelNames label_names(Build *b, const CheckedStatement *s)
{
    Sym *name = ARENA_ARRAY(b->arena, s->n_labels, Sym);
    bool any = false;
    for (uint32_t l = 0; l < s->n_labels; l++) {
        bool named = s->label[l].name != NULL && s->label[l].name->text[0] != '.';
        name[l] = named ? s->label[l].name : NULL;
        any |= named;
    }
    return any ? (LabelNames){s->n_labels, name} : (LabelNames){0, NULL};
}

/* The position of an index that has one is 0: it assigns to no other place. */
static Affine without_ones(Build *b, Affine x)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        if (affine_is_dim(v) || !dim_is(b->s->label[v].extent, 1)) {
            out = affine_add(b->arena, out, 1, (Affine){0, 1, &x.term[i]});
        }
    }
    return out;
}

/* Positions of a piece, in dimensions of the node that has it. */
static void push_positions(Build *b, BuildPieces *p, const CheckedStatement *s, uint32_t n)
{
    VarRef *number = ARENA_ARRAY(b->arena, s->n_labels, VarRef);
    for (uint32_t i = 0; i < s->rank; i++) {
        number[s->left[i]] = i;
    }
    for (uint32_t d = 0; d < n; d++) {
        Affine at = without_ones(b, s->at[d]);
        vec_push(b->arena, &p->at, affine_rename(b->arena, at, number));
    }
}

static NodeRef add_join(Build *b, Op op, const BuildPieces *p, const TensorType *type,
                        const CheckedStatement *s, const Root *root)
{
    Access *access = ARENA_ARRAY(b->arena, p->node.n, Access);
    for (uint32_t k = 0; k < p->node.n; k++) {
        access[k] = access_whole(b->arena, graph_node(b->g, p->node.at[k])->rank);
    }
    NodeSpec spec =
        node_spec(op, graph_node(b->g, p->node.at[0])->dtype, p->node.n, p->node.at, access,
                  type->rank, labels_in_order(b->arena, type->rank), type->dims, s->span);
    spec.at = p->at.at;
    return root_add(b, &spec, root);
}

/* One piece of the statement's target: the last of several puts it together; one that is added changes what there is. */
static void build_piece(Build *b, const CheckedStatement *s, NodeRef node, const Root *root)
{
    const TensorType *type = &b->k->values.at[s->target].type;
    BuildPieces update = {0}, *p = s->op == OP_COPY ? &b->pieces[s->target] : &update;
    if (s->op != OP_COPY) {
        vec_push(b->arena, &p->node, b->current[s->target]);
        for (uint32_t d = 0; d < type->rank; d++) {
            vec_push(b->arena, &p->at, affine_var(b->arena, d));
        }
    }
    vec_push(b->arena, &p->node, node);
    push_positions(b, p, s, type->rank);
    if (s->op != OP_COPY || s->completes) {
        b->current[s->target] =
            add_join(b, s->op == OP_COPY ? OP_JOIN : OP_UPDATE, p, type, s, root);
    }
}

static void build_statement(Build *b, const CheckedStatement *s)
{
    const Value *target = &b->k->values.at[s->target];
    Root root = {target->name, target->allow_spill, target->declared};
    b->s = s;
    b->names = label_names(b, s);
    b->order = ARENA_ARRAY(b->arena, s->n_labels, uint32_t);
    b->stamp = ARENA_ARRAY(b->arena, s->n_labels, uint32_t);
    b->serial = 0;
    for (uint32_t a = 0; a < s->rank; a++) {
        b->order[s->left[a]] = a + 1;
    }
    View v = expr_build(b, s->right, s->right->dtype, &root);
    CheckedKind kind = s->right->kind;
    bool piece = s->at != NULL; /* of a node of its own: it is read whole */
    bool bare = piece || kind == CHECKED_READ || kind == CHECKED_CONST ||
                kind == CHECKED_EXTENT || (kind == CHECKED_INDEX && s->right->rank == 1);
    if ((bare || !is_left_order(s, &v)) && !b->limited) {
        OutLabels out = {.n = s->rank};
        if (s->rank > 0) {
            memcpy(out.label, s->left, s->rank * sizeof *s->left);
        }
        v = node_add(b, OP_COPY, v.dtype, &v, 1, &out, s->span, &root);
    }
    if (s->at == NULL) {
        b->current[s->target] = v.node;
    } else {
        build_piece(b, s, v.node, &root);
    }
}

/* ---- kernels ---- */

static void build_params(Build *b)
{
    for (uint32_t v = 0; v < b->k->n_params + b->k->n_results; v++) {
        const Value *value = &b->k->values.at[v];
        if (value->kind != VALUE_PARAM) {
            continue;
        }
        ParamRole role = value->is_inout         ? PARAM_INOUT
                         : value->type.rank == 0 ? PARAM_SCALAR
                                                 : PARAM_IN;
        const TensorType *type = &b->written->values.at[v].type;
        uint32_t rank = type->rank;
        bool split = value->type.rank > rank;
        Param p = {.name = value->name,
                   .role = role,
                   .dtype = value->type.dtype,
                   .rank = rank,
                   .shape = arena_copy(b->g->arena, type->dims, rank * sizeof(Dim)),
                   .span = value->span,
                   .symmetry = symmetry_copy(b->g->arena, value->symmetry),
                   .n_collapsed = split ? value->type.rank : 0,
                   .collapsed = split ? value->type.dims : NULL};
        vec_push(b->g->arena, &b->g->params, p);
        b->current[v] = graph_input(b->g, value->number, value->span);
    }
}

/* Results, then (`changed`) parameters that the kernel changes. */
static void build_results(Build *b, bool changed)
{
    for (uint32_t v = 0; v < b->k->n_params + b->k->n_results; v++) {
        const Value *value = &b->k->values.at[v];
        const TensorType *type = &b->written->values.at[v].type;
        if (changed ? !value->is_inout || !value->updated : value->kind != VALUE_RESULT) {
            continue;
        }
        Result r = {.name = value->name,
                    .node = b->current[v],
                    .param = changed ? (int32_t)value->number : -1,
                    .span = value->span,
                    .symmetry = value->symmetry};
        if (!changed && value->type.rank > type->rank) {
            r.rank = type->rank;
            r.shape = type->dims;
        }
        vec_push(b->g->arena, &b->g->results, r);
    }
}

/* `@A shard(r(0), c(1))` */
static TextLines build_layouts(Arena *arena, const CheckedKernel *k)
{
    VEC(const char *) lines = {0};
    for (uint32_t v = 0; v < k->n_params + k->n_results; v++) {
        const Value *value = &k->values.at[v];
        if (value->n_shard > 0 || value->partial) {
            Text line = text_new(arena);
            text_char(&line, '@');
            dump_name(&line, value->name);
            layout_put(&line, value, false);
            vec_push(arena, &lines, line.at);
        }
    }
    return (TextLines){(uint32_t)lines.n, lines.at};
}

static Graph *build_kernel(Ctx *ctx, Arena *arena, const CheckedKernel *written)
{
    const CheckedKernel *k = kernel_split(ctx, arena, written);
    if (k == NULL) {
        return NULL;
    }
    Graph *g = graph_new(arena, k->name);
    g->span = k->span;
    g->sources = &ctx->sources;
    g->signature = k->signature;
    g->statements = statement_texts(ctx, arena, written);
    g->ranks = build_layouts(arena, written);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        vec_push(arena, &g->dims.list, k->dims.list.at[d]);
    }
    Build b = {.ctx = ctx, .arena = arena, .g = g, .k = k, .written = written};
    b.pieces = ARENA_ARRAY(arena, k->values.n, BuildPieces);
    b.current = ARENA_ARRAY(arena, k->values.n, NodeRef);
    map_init(&b.required, arena);
    memset(b.current, 0xff, k->values.n * sizeof *b.current);
    build_params(&b);
    uint32_t n_params = g->params.n;
    for (uint32_t s = 0, at = 0; s < k->statements.n; s++) {
        const CheckedSteps *steps = at < k->steps.n ? &k->steps.at[at] : NULL;
        if (steps != NULL && s == steps->first) {
            steps_open(&b, steps);
        }
        build_statement(&b, &k->statements.at[s]);
        if (b.limited) {
            return NULL;
        }
        if (steps != NULL && s + 1 == steps->end) {
            if (!steps_close(&b, steps)) {
                return NULL;
            }
            at++;
        }
    }
    g->params.n = n_params; /* without what steps read of others */
    build_results(&b, false);
    build_results(&b, true);
    return graph_prune(arena, g);
}

/* The graph of a kernel, or of the derivatives of one. */
static Graph *build_derived(Ctx *ctx, Arena *arena, const CheckedKernel *kernel)
{
    if (kernel->gradient == NULL) {
        return build_kernel(ctx, arena, kernel);
    }
    Graph *g = build_derived(ctx, arena, kernel->gradient->of);
    return g == NULL ? NULL : graph_gradient(ctx, arena, g, kernel);
}

static const CheckedKernel *kernel_near(const Program *p, const char *name)
{
    const CheckedKernel *best = NULL;
    int distance = 4;
    for (uint32_t k = 0; k < p->kernels.n; k++) {
        int d = str_distance(str_from(name), str_from(p->kernels.at[k]->name->text), 3);
        if (d < distance) {
            best = p->kernels.at[k];
            distance = d;
        }
    }
    return best;
}

Module *module_build(Ctx *ctx, Arena *arena, const Program *program, const char *only_kernel)
{
    Module *m = ARENA_NEW(arena, Module);
    m->arena = arena;
    m->source_name = source_get(&ctx->sources, program->source)->name;
    for (uint32_t k = 0; k < program->kernels.n; k++) {
        const CheckedKernel *kernel = program->kernels.at[k];
        if (only_kernel != NULL && strcmp(only_kernel, kernel->name->text) != 0) {
            continue;
        }
        Graph *g = build_derived(ctx, arena, kernel);
        if (g == NULL) {
            return NULL;
        }
        vec_push(arena, &m->graphs, g);
    }
    if (only_kernel != NULL && m->graphs.n == 0) {
        Diagnostic *d = diag_error(&ctx->diags, E_UNKNOWN_NAME, (Span){0},
                                   "there is no kernel '%s'", only_kernel);
        const CheckedKernel *near = kernel_near(program, only_kernel);
        if (near != NULL) {
            diag_help(d, "did you mean '%s'?", near->name->text);
        }
        return NULL;
    }
    return m;
}

Module *graph_from_equation(Ctx *ctx, Arena *arena, const Equation *equation)
{
    Program *p = equation_check(ctx, equation);
    return p == NULL ? NULL : module_build(ctx, arena, p, NULL);
}
