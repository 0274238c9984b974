/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of what one rank computes at once: nodes of the kernel, with blocks where their labels are cut. */
#include <string.h>

#include "dist/parts.h"

typedef struct Local {
    LocalBuild *b;
    Graph *to;
    NodeRef *map; /* [nodes], NODE_NONE: not yet */
    bool *needs;  /* [dims of the kernel] */
    Dim *dim;     /* [dims of the kernel] in the local one */
    Dim block[DIST_CUTS];
    uint32_t cuts;        /* that it has blocks of, a bit for each */
    VEC(uint32_t) values; /* of params */
    DistStep step;
} Local;

bool value_has_shape(const DistValue *v, uint32_t rank, const Dim *shape)
{
    bool same = v->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++) {
        same = dim_eq(v->shape[d], shape[d]);
    }
    return same;
}

static int32_t cut_of(const LocalBuild *b, NodeRef n, int32_t label)
{
    return label < 0 ? -1 : choice_cut(b->choice, class_of(b->classes, n, label));
}

/* Is the node's value one that is there when this section begins? */
static bool is_given(const LocalBuild *b, NodeRef n)
{
    return b->stored[n] != UINT32_MAX && b->section[n] < b->at;
}

/* ---- which dims it has ---- */

static void need_dim(Local *l, Dim d)
{
    if (d.sym < 0 || l->needs[d.sym]) {
        return;
    }
    const DimInfo *info = &l->b->from->dims.list.at[d.sym];
    l->needs[d.sym] = true;
    for (uint32_t i = 0; i < info->n_factors; i++) {
        need_dim(l, info->factor[i]);
    }
    for (uint32_t i = 0; i < info->n_terms; i++) {
        need_dim(l, info->term[i].dim);
    }
}

static void need_affine(Local *l, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (affine_is_dim(x.term[i].var)) {
            need_dim(l, dim_open(affine_sym(x.term[i].var)));
        }
    }
}

static void need_label(Local *l, NodeRef n, int32_t label)
{
    int32_t cut = cut_of(l->b, n, label);
    if (cut >= 0) {
        l->cuts |= 1u << cut;
    } else {
        need_dim(l, graph_node(l->b->from, n)->extent[label]);
    }
}

/* Marks the dims and cuts that node n needs to be computed here. */
static void need_node(Local *l, NodeRef n)
{
    const Graph *g = l->b->from;
    const Node *node = graph_node(g, n);
    for (uint32_t i = 0; i < node->n_labels; i++) {
        need_label(l, n, (int32_t)i);
    }
    if (node->op == OP_EXTENT) {
        need_dim(l, dim_open(node->dim));
    } else if (node->op == OP_INDEX) {
        need_dim(l, node->shape[0]);
    }
    for (uint32_t k = 0; k < node_positions(node); k++) {
        need_affine(l, node->at[k]);
    }
    for (uint32_t k = 0; k < node->n_operands; k++) {
        NodeRef o = node->operand[k];
        const Node *operand = graph_node(g, o);
        if (operand->op != OP_INPUT) {
            continue;
        }
        const Param *p = &g->params.at[operand->param];
        for (uint32_t d = 0; d < param_rank(p); d++) {
            uint32_t root = class_read(l->b->classes, n, k, d);
            if (root == UINT32_MAX || choice_cut(l->b->choice, root) < 0) {
                need_dim(l, param_shape(p)[d]);
            }
        }
        for (uint32_t d = 0; d < p->rank && p->collapsed != NULL; d++) {
            need_dim(l, p->shape[d]);
        }
    }
}

/* The dims of a value where it is not cut. */
static void need_value(Local *l, const DistValue *v)
{
    for (uint32_t d = 0; d < v->rank; d++) {
        if (v->cut[d] < 0) {
            need_dim(l, v->shape[d]);
        }
    }
}

/* Of the nodes `wanted` and all that they read; marks in `computed` which of those are computed here. */
static void mark_needed(Local *l, uint32_t n, const NodeRef *wanted, bool *computed)
{
    const Graph *g = l->b->from;
    bool *reached = ARENA_ARRAY(l->b->arena, (size_t)g->nodes.n + 1, bool);
    for (uint32_t k = 0; k < n; k++) {
        reached[wanted[k]] = true;
    }
    for (NodeRef r = g->nodes.n; r-- > 0;) {
        const Node *node = graph_node(g, r);
        if (!reached[r]) {
            continue;
        }
        if (is_given(l->b, r)) {
            for (uint32_t d = 0; d < node->rank; d++) {
                need_label(l, r, node->out[d]);
            }
            need_value(l, &l->b->plan->values.at[l->b->stored[r]]);
            continue;
        }
        if (node->op != OP_INPUT) {
            computed[r] = true;
            need_node(l, r);
        }
        for (uint32_t k = 0; k < node->n_operands; k++) {
            reached[node->operand[k]] = true;
        }
    }
}

/* The dims of a result as it is kept, and of an argument that is one. */
static void need_result(Local *l, NodeRef n, const DistValue *v)
{
    const Node *node = graph_node(l->b->from, n);
    const Param *p = node->op == OP_INPUT ? &l->b->from->params.at[node->param] : NULL;
    need_value(l, v);
    for (uint32_t d = 0; p != NULL && d < p->rank; d++) {
        need_dim(l, p->shape[d]);
    }
    for (uint32_t d = 0; p != NULL && d < node->rank; d++) {
        need_dim(l, node->shape[d]);
    }
}

/* Computed dims of needed ones say that a call has none below 0, as `m - 1` where x[0] is read: positions stand on that. */
static void keep_guards(Local *l)
{
    const DimTable *t = &l->b->from->dims;
    for (uint32_t d = dims_given(t); d < t->list.n; d++) {
        const DimInfo *info = &t->list.at[d];
        bool all = true;
        for (uint32_t i = 0; i < info->n_terms; i++) {
            all = all && (info->term[i].dim.sym < 0 || l->needs[info->term[i].dim.sym]);
        }
        l->needs[d] = l->needs[d] || (all && info->n_terms > 0);
    }
}

/* ---- its dims ---- */

static Affine map_affine(Local *l, Affine x)
{
    Affine to = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        Affine of = affine_is_dim(x.term[i].var)
                        ? affine_extent(l->to->arena,
                                        dim_mapped(l->dim, dim_open(affine_sym(x.term[i].var))))
                        : affine_var(l->to->arena, x.term[i].var);
        to = affine_add(l->to->arena, to, x.term[i].coef, of);
    }
    return to;
}

static bool is_dim_name(const DimTable *t, const char *name)
{
    for (uint32_t d = 0; d < t->list.n; d++) {
        if (strcmp(t->list.at[d].name->text, name) == 0) {
            return true;
        }
    }
    return false;
}

/* `m_block`: of dim m; `block`, where the extent is a number. */
static Sym block_name(const Local *l, const DistCut *cut)
{
    const DimTable *t = &l->b->from->dims;
    const char *of = cut->extent.sym < 0 ? "" : t->list.at[cut->extent.sym].name->text;
    const char *name = str_format(l->b->arena, "%s%sblock", of, of[0] == '\0' ? "" : "_");
    uint32_t k = 2;
    for (const char *base = name; is_dim_name(t, name) || is_dim_name(&l->to->dims, name);
         k++) {
        name = str_format(l->b->arena, "%s%u", base, k);
    }
    return sym_intern(&l->b->ctx->syms, name, strlen(name));
}

static void push_dim(Local *l, DimInfo info, Dim dim, int32_t block)
{
    vec_push(l->to->arena, &l->to->dims.list, info);
    Dim *dims = (Dim *)l->step.dim;
    int32_t *blocks = (int32_t *)l->step.block;
    dims[l->step.n_dims] = dim;
    blocks[l->step.n_dims++] = block;
}

static void make_dims(Local *l, uint32_t over)
{
    const DimTable *t = &l->b->from->dims;
    Arena *a = l->to->arena;
    l->step.dim = ARENA_ARRAY(a, (size_t)t->list.n + DIST_CUTS, Dim);
    l->step.block = ARENA_ARRAY(a, (size_t)t->list.n + DIST_CUTS, int32_t);
    uint32_t given = dims_given(t);
    for (uint32_t d = 0; d < given; d++) {
        if (l->needs[d]) {
            l->dim[d] = dim_open((int32_t)l->to->dims.list.n);
            push_dim(l, t->list.at[d], dim_open((int32_t)d), -1);
        }
    }
    for (uint32_t i = 0; i < l->b->choice->n; i++) {
        if ((l->cuts >> i & 1) != 0) {
            const DistCut *cut = &l->b->plan->cuts.at[i];
            if ((over >> i & 1) != 0 && dist_cut_is_single(cut)) {
                l->block[i] = dim_fixed(1);
                continue;
            }
            int64_t all = dim_typical(t, cut->extent),
                    parts = (over >> i & 1) != 0 ? cut->leaves : 4;
            DimInfo info = {.name = block_name(l, cut),
                            .typical = all / parts > 1 ? all / parts : 1};
            l->block[i] = dim_open((int32_t)l->to->dims.list.n);
            push_dim(l, info, dim_fixed(0), (int32_t)i);
        }
    }
    for (uint32_t d = given; d < t->list.n; d++) {
        if (!l->needs[d]) {
            continue;
        }
        DimInfo info = dim_info_mapped(a, l->dim, t->list.at[d]);
        l->dim[d] = dim_open((int32_t)l->to->dims.list.n);
        vec_push(a, &l->to->dims.list, info);
    }
}

/* ---- its params ---- */

static bool same_value(const DistValue *x, const DistValue *y)
{
    bool same = x->dtype == y->dtype && x->rank == y->rank;
    for (uint32_t d = 0; same && d < x->rank; d++) {
        same = x->cut[d] == y->cut[d];
    }
    return same;
}

/* The value that brings argument `arg` cut so; its step is made if there is none. */
static uint32_t read_value(LocalBuild *b, uint32_t arg, DistValue v)
{
    for (uint32_t s = 0; s < b->plan->steps.n; s++) {
        const DistStep *step = &b->plan->steps.at[s];
        if (step->kind == DIST_READ && step->arg == arg &&
            same_value(&b->plan->values.at[step->value], &v)) {
            return step->value;
        }
    }
    DistStep step = {.kind = DIST_READ, .arg = arg, .value = b->plan->values.n};
    vec_push(b->arena, &b->plan->values, v);
    vec_push(b->arena, &b->plan->steps, step);
    return step.value;
}

static bool is_param_name(const Graph *g, const char *name)
{
    for (uint32_t k = 0; k < g->params.n; k++) {
        if (strcmp(g->params.at[k].name->text, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The param that is this value of the plan. */
static NodeRef param_of(Local *l, uint32_t value, const Param *like)
{
    for (uint32_t k = 0; k < l->values.n; k++) {
        if (l->values.at[k] == value) {
            return graph_input(l->to, k, like->span);
        }
    }
    const DistValue *v = &l->b->plan->values.at[value];
    Param p = *like;
    Dim *shape = ARENA_ARRAY(l->to->arena, v->rank, Dim);
    bool cut = false;
    for (uint32_t d = 0; d < v->rank; d++) {
        shape[d] = v->cut[d] >= 0 ? l->block[v->cut[d]] : dim_mapped(l->dim, v->shape[d]);
        cut |= v->cut[d] >= 0;
    }
    const char *name = like->name->text;
    for (uint32_t count = 2; is_param_name(l->to, name); count++) {
        name = str_format(l->b->arena, "%s_%u", like->name->text, count);
    }
    p.name = sym_intern(&l->b->ctx->syms, name, strlen(name));
    p.role = v->rank == 0 ? PARAM_SCALAR : PARAM_IN;
    p.rank = v->rank;
    p.shape = shape;
    p.symmetry = cut ? NULL : p.symmetry;
    if (p.collapsed != NULL) {
        Dim *collapsed = ARENA_ARRAY(l->to->arena, p.n_collapsed, Dim);
        for (uint32_t d = 0; d < p.n_collapsed; d++) {
            collapsed[d] = dim_mapped(l->dim, p.collapsed[d]);
        }
        p.collapsed = collapsed;
    }
    vec_push(l->to->arena, &l->to->params, p);
    vec_push(l->b->arena, &l->values, value);
    return graph_input(l->to, l->to->params.n - 1, like->span);
}

/* Operand k of node n, an argument of the kernel. */
static NodeRef read_argument(Local *l, NodeRef n, uint32_t k)
{
    LocalBuild *b = l->b;
    const Node *node = graph_node(b->from, n);
    const Node *operand = graph_node(b->from, node->operand[k]);
    const Param *p = &b->from->params.at[operand->param];
    int32_t *cut = ARENA_ARRAY(b->arena, p->rank, int32_t);
    for (uint32_t d = 0; d < p->rank; d++) {
        uint32_t root = p->collapsed != NULL ? UINT32_MAX : class_read(b->classes, n, k, d);
        cut[d] = root == UINT32_MAX ? -1 : choice_cut(b->choice, root);
    }
    DistValue v = {
        .dtype = p->dtype, .rank = p->rank, .shape = p->shape, .cut = cut, .fold = OP_COPY};
    return param_of(l, read_value(b, operand->param, v), p);
}

static NodeRef read_whole(Local *l, const Param *p, uint32_t arg)
{
    int32_t *cut = ARENA_ARRAY(l->b->arena, p->rank, int32_t);
    for (uint32_t d = 0; d < p->rank; d++) {
        cut[d] = -1;
    }
    DistValue v = {
        .dtype = p->dtype, .rank = p->rank, .shape = p->shape, .cut = cut, .fold = OP_COPY};
    return param_of(l, read_value(l->b, arg, v), p);
}

static NodeRef read_stored(Local *l, NodeRef n)
{
    const Node *node = graph_node(l->b->from, n);
    const DistValue *v = &l->b->plan->values.at[l->b->stored[n]];
    const char *name = node->name != NULL ? node->name->text : "value";
    Param like = {.name = sym_intern(&l->b->ctx->syms, name, strlen(name)),
                  .dtype = v->dtype,
                  .span = node->span};
    if (!value_has_shape(v, node->rank, node->shape)) { /* it is kept as its result has it */
        like.n_collapsed = node->rank;
        like.collapsed = node->shape;
    }
    NodeRef param = param_of(l, l->b->stored[n], &like);
    if (v->dtype == node->dtype) {
        return param;
    }
    NodeSpec cast = {.op = OP_CAST,
                     .dtype = node->dtype,
                     .n_operands = 1,
                     .operand = &param,
                     .rank = node->rank,
                     .span = node->span};
    Access access = access_in_order(l->b->arena, node->rank);
    cast.access = &access;
    cast.out = labels_in_order(l->b->arena, node->rank);
    return graph_add(l->to, &cast);
}

/* ---- its nodes ---- */

static NodeRef operand_of(Local *l, NodeRef n, uint32_t k)
{
    NodeRef o = graph_node(l->b->from, n)->operand[k];
    if (graph_node(l->b->from, o)->op == OP_INPUT) {
        return read_argument(l, n, k);
    }
    if (l->map[o] == NODE_NONE) {
        CHECK(is_given(l->b, o));
        l->map[o] = read_stored(l, o);
    }
    return l->map[o];
}

static NodeRef copy_leaf(Local *l, const Node *n)
{
    switch (n->op) {
    case OP_CONST:
        return graph_const(l->to, n->value, n->span);
    case OP_EXTENT: {
        Dim d = dim_mapped(l->dim, dim_open(n->dim));
        return graph_extent(l->to, d.sym, n->dtype, n->span);
    }
    default:
        return graph_index(l->to, dim_mapped(l->dim, n->shape[0]), n->dtype, n->span);
    }
}

static void copy_node(Local *l, NodeRef r, bool partial)
{
    const Graph *g = l->b->from;
    const Node *n = graph_node(g, r);
    if (op_info(n->op)->kind == OPKIND_LEAF) {
        l->map[r] = copy_leaf(l, n);
        return;
    }
    NodeSpec spec = graph_spec(g, r);
    NodeRef *operand = ARENA_ARRAY(l->b->arena, n->n_operands, NodeRef);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        operand[k] = operand_of(l, r, k);
    }
    Dim *shape = ARENA_ARRAY(l->b->arena, n->rank, Dim);
    for (uint32_t d = 0; d < n->rank; d++) {
        int32_t cut = cut_of(l->b, r, n->out[d]);
        shape[d] = cut >= 0 ? l->block[cut] : dim_mapped(l->dim, n->shape[d]);
    }
    uint32_t n_at = node_positions(n);
    Affine *at = ARENA_ARRAY(l->b->arena, n_at, Affine);
    for (uint32_t k = 0; k < n_at; k++) {
        at[k] = map_affine(l, n->at[k]);
    }
    int32_t *sliced = ARENA_ARRAY(l->b->arena, spec.sliced.n, int32_t);
    uint32_t n_sliced = 0;
    for (uint32_t k = 0; k < spec.sliced.n; k++) { /* leaves of one position are no loops */
        int32_t cut = cut_of(l->b, r, spec.sliced.label[k]);
        if (cut < 0 || !dim_is(l->block[cut], 1)) {
            sliced[n_sliced++] = spec.sliced.label[k];
        }
    }
    spec.sliced = (Slices){n_sliced, sliced};
    spec.operand = operand;
    spec.out_shape = shape;
    spec.at = n_at == 0 ? n->at : at;
    spec.dtype = partial ? n->acc : n->dtype;
    l->map[r] = graph_add(l->to, &spec);
}

static void add_results(Local *l, uint32_t n, const NodeRef *wanted, const uint32_t *values)
{
    for (uint32_t k = 0; k < n; k++) {
        const Node *node = graph_node(l->b->from, wanted[k]);
        const char *name = k == 0 ? "out" : str_format(l->b->arena, "out%u", k);
        while (is_param_name(l->to, name)) {
            name = str_format(l->b->arena, "%s_", name);
        }
        NodeRef made = l->map[wanted[k]] != NODE_NONE ? l->map[wanted[k]]
                       : node->op == OP_INPUT
                           ? read_whole(l, &l->b->from->params.at[node->param], node->param)
                           : read_stored(l, wanted[k]);
        Result r = {.name = sym_intern(&l->b->ctx->syms, name, strlen(name)),
                    .node = made,
                    .param = -1,
                    .span = node->span};
        const DistValue *v = &l->b->plan->values.at[values[k]];
        if (!value_has_shape(v, node->rank, node->shape)) {
            Dim *shape = ARENA_ARRAY(l->to->arena, v->rank, Dim);
            for (uint32_t d = 0; d < v->rank; d++) {
                shape[d] = dim_mapped(l->dim, v->shape[d]);
            }
            r.rank = v->rank;
            r.shape = shape;
        }
        vec_push(l->to->arena, &l->to->results, r);
        vec_push(l->b->arena, &l->values, values[k]);
    }
}

/* Positions that must lie inside are looked at by the first kernel that a rank computes: those of parameters element by element, and whole
 * where a parameter is such positions itself. */
static bool has_requirements(const Local *l)
{
    bool first = l->b->from->required.n > 0;
    for (uint32_t s = 0; s < l->b->plan->steps.n && first; s++) {
        first = l->b->plan->steps.at[s].kind != DIST_LOCAL;
    }
    return first;
}

/* The nodes wanted, and behind them those that requirements are of. */
static const NodeRef *with_required(Local *l, uint32_t *n, const NodeRef *wanted)
{
    const Graph *g = l->b->from;
    NodeRef *all = ARENA_ARRAY(l->b->arena, (size_t)*n + g->required.n, NodeRef);
    for (uint32_t k = 0; k < *n; k++) {
        all[k] = wanted[k];
    }
    for (uint32_t k = 0; k < g->required.n; k++) {
        const Required *r = &g->required.at[k];
        const Node *node = graph_node(g, r->node);
        for (uint32_t d = 0; node->op == OP_INPUT && d < node->rank; d++) {
            need_dim(l, node->shape[d]);
        }
        need_dim(l, r->what.below);
        all[(*n)++] = r->node;
    }
    return all;
}

static void add_required(Local *l)
{
    const Graph *g = l->b->from;
    for (uint32_t k = 0; k < g->required.n; k++) {
        Required r = g->required.at[k];
        const Node *node = graph_node(g, r.node);
        r.node = node->op == OP_INPUT ? read_whole(l, &g->params.at[node->param], node->param)
                                      : l->map[r.node];
        r.what.below = dim_mapped(l->dim, r.what.below);
        vec_push(l->to->arena, &l->to->required, r);
    }
}

static Sym local_name(LocalBuild *b, const Module *m)
{
    for (;; b->n_locals++) {
        const char *name = str_format(b->arena, "%s_part%u", b->from->name->text, b->n_locals);
        bool free = true;
        for (uint32_t k = 0; k < m->graphs.n; k++) {
            free = free && strcmp(m->graphs.at[k]->name->text, name) != 0;
        }
        if (free) {
            b->n_locals++;
            return sym_intern(&b->ctx->syms, name, strlen(name));
        }
    }
}

static Graph *local_graph(LocalBuild *b, Sym name)
{
    Graph *to = graph_new(b->arena, name);
    const char **lines = ARENA_ARRAY(b->arena, 1, const char *);
    to->span = b->from->span;
    to->sources = b->from->sources;
    to->statements = b->from->statements;
    to->form = GRAPH_BINARY;
    to->signature = str_format(b->arena, "%s: what one rank computes of %s", name->text,
                               b->from->name->text);
    lines[0] = str_format(b->arena, "local of %s", b->from->name->text);
    to->ranks = (TextLines){1, lines};
    return to;
}

void local_build(LocalBuild *b, Module *m, uint32_t n, const NodeRef *wanted,
                 const uint32_t *values, uint32_t over, bool partial)
{
    const Graph *g = b->from;
    Local l = {.b = b, .to = local_graph(b, local_name(b, m))};
    bool *computed = ARENA_ARRAY(b->arena, (size_t)g->nodes.n + 1, bool);
    l.map = ARENA_ARRAY(b->arena, (size_t)g->nodes.n + 1, NodeRef);
    l.needs = ARENA_ARRAY(b->arena, (size_t)g->dims.list.n + 1, bool);
    l.dim = ARENA_ARRAY(b->arena, (size_t)g->dims.list.n + 1, Dim);
    memset(l.map, 0xff, ((size_t)g->nodes.n + 1) * sizeof *l.map);
    bool required = has_requirements(&l);
    uint32_t n_all = n;
    const NodeRef *all = required ? with_required(&l, &n_all, wanted) : wanted;
    mark_needed(&l, n_all, all, computed);
    for (uint32_t k = 0; k < n; k++) {
        need_result(&l, wanted[k], &b->plan->values.at[values[k]]);
    }
    keep_guards(&l);
    make_dims(&l, over);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        bool term = false;
        for (uint32_t k = 0; k < n; k++) {
            term |= wanted[k] == r && partial;
        }
        if (computed[r]) {
            copy_node(&l, r, term);
        }
    }
    if (required) {
        add_required(&l);
    }
    add_results(&l, n, wanted, values);
    uint32_t *loops = ARENA_ARRAY(b->arena, DIST_CUTS, uint32_t);
    l.step.kind = DIST_LOCAL;
    l.step.kernel = l.to->name;
    for (uint32_t i = 0; i < b->choice->n; i++) {
        if ((over >> i & 1) != 0) {
            loops[l.step.n_over++] = i;
        }
    }
    l.step.over = loops;
    l.step.values = l.values.at;
    l.step.n_values = l.values.n;
    vec_push(b->arena, &b->plan->steps, l.step);
    vec_push(m->arena, &m->graphs, l.to);
}
