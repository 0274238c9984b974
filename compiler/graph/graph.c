/* SPDX-License-Identifier: Apache-2.0 */
/* Building tensor graphs. Every node is made in a canonical form (labels numbered by first appearance) and
 * looked up in the graph's table before it is kept, so common subexpressions never exist twice. A candidate's
 * arrays are laid out in the graph's arena first and given back when the node turns out to exist; everything is
 * linear in the number of indices, for many nodes and for one node with very many operands. */
#include "graph/graph.h"

#include "graph/recurrence.h"

#include <math.h>
#include <string.h>

/* ---- canonical labels ---- */

#define SMALL_LABELS 128

/* From the caller's labels to dense ones; small labels by array, others by a map. */
typedef struct Renumber {
    int32_t small[SMALL_LABELS]; /* new label + 1; 0: not seen */
    Map large;
    Arena *arena;
    int32_t n;
} Renumber;

static int32_t renumber_label(Renumber *r, int32_t label)
{
    CHECK(label >= 0);
    if (label < SMALL_LABELS) {
        if (r->small[label] == 0) {
            r->small[label] = ++r->n;
        }
        return r->small[label] - 1;
    }
    if (r->large.arena == NULL) {
        map_init(&r->large, r->arena);
    }
    uint32_t found = 0;
    if (!map_get(&r->large, (uint64_t)label, &found)) {
        found = (uint32_t)r->n++;
        map_put(&r->large, (uint64_t)label, found);
    }
    return (int32_t)found;
}

/* ---- hash-consing ---- */

static uint64_t double_bits(double v)
{
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint64_t hash_dims(uint64_t h, const Dim *d, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        h = hash_mix(h, hash_mix((uint64_t)(int64_t)d[k].sym, (uint64_t)d[k].n));
    }
    return h;
}

uint64_t node_hash(const Node *n)
{
    uint64_t h = hash_mix((uint64_t)n->op, (uint64_t)n->dtype * 32 + (uint64_t)n->acc);
    h = hash_mix(h, n->n_operands * 2 + (n->onto ? 1 : 0));
    for (uint32_t k = 0; k < n->n_operands; k++) {
        h = hash_mix(h, n->operand[k]);
        h = hash_mix(h, n->access[k].rank);
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            const Index *ix = &n->access[k].index[d];
            h = hash_mix(h, hash_mix((uint64_t)(int64_t)ix->label, (uint64_t)ix->offset));
        }
    }
    h = hash_dims(hash_mix(h, n->n_labels), n->extent, n->n_labels);
    h = hash_dims(hash_mix(h, n->rank), n->shape, n->rank);
    for (uint32_t d = 0; n->out != NULL && d < n->rank; d++) {
        h = hash_mix(h, (uint64_t)n->out[d]);
    }
    h = hash_mix(h, hash_mix((uint64_t)n->value.i, double_bits(n->value.re)));
    h = hash_mix(h, hash_mix(double_bits(n->value.im), (uint64_t)(int64_t)n->dim));
    for (uint32_t d = 0; d < node_positions(n); d++) {
        h = hash_mix(h, (uint64_t)n->at[d].base);
        for (uint32_t i = 0; i < n->at[d].n; i++) {
            h = hash_mix(h, hash_mix(n->at[d].term[i].var, (uint64_t)n->at[d].term[i].coef));
        }
    }
    h = hash_mix(h, hash_mix(n->steps.recurrence,
                             hash_mix(n->steps.result, (uint64_t)(int64_t)n->steps.along)));
    return hash_mix(h, n->param);
}

static bool dims_equal(const Dim *a, const Dim *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (!dim_eq(a[k], b[k])) {
            return false;
        }
    }
    return true;
}

bool access_has_label(const Access *a, int32_t label)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->index[d].label == label) {
            return true;
        }
    }
    return false;
}

bool access_eq(Access x, Access y)
{
    bool same = x.rank == y.rank;
    for (uint32_t d = 0; same && d < x.rank; d++) {
        same = x.index[d].label == y.index[d].label && x.index[d].offset == y.index[d].offset;
    }
    return same;
}

bool access_is_own(const Node *node, Access a)
{
    bool own = a.rank == node->rank;
    for (uint32_t d = 0; own && d < a.rank; d++) {
        own = a.index[d].label == node->out[d] && a.index[d].offset == 0;
    }
    return own;
}

static bool accesses_equal(const Node *a, const Node *b)
{
    bool same = true;
    for (uint32_t k = 0; same && k < a->n_operands; k++) {
        same = a->operand[k] == b->operand[k] && access_eq(a->access[k], b->access[k]);
    }
    return same;
}

static bool outs_equal(const Node *a, const Node *b)
{
    if ((a->out == NULL) != (b->out == NULL)) {
        return a->rank == 0;
    }
    return a->rank == 0 || a->out == NULL ||
           memcmp(a->out, b->out, a->rank * sizeof *a->out) == 0;
}

/* Of two nodes that read operands alike. */
static bool positions_equal(const Node *a, const Node *b)
{
    bool same = true;
    for (uint32_t d = 0; same && d < node_positions(a); d++) {
        same = affine_eq(a->at[d], b->at[d]);
    }
    return same;
}

bool node_equal(const Node *a, const Node *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->acc == b->acc && a->onto == b->onto &&
           a->n_operands == b->n_operands && a->n_labels == b->n_labels && a->rank == b->rank &&
           a->dim == b->dim && a->param == b->param &&
           a->steps.recurrence == b->steps.recurrence && a->steps.result == b->steps.result &&
           a->steps.along == b->steps.along && a->value.dtype == b->value.dtype &&
           a->value.i == b->value.i && double_bits(a->value.re) == double_bits(b->value.re) &&
           double_bits(a->value.im) == double_bits(b->value.im) && accesses_equal(a, b) &&
           positions_equal(a, b) && dims_equal(a->extent, b->extent, a->n_labels) &&
           dims_equal(a->shape, b->shape, a->rank) && outs_equal(a, b);
}

/* The node in the graph that equals `n`, or `n` itself as a new one. `mark` is from before n's arrays. A name and the
 * permission to spill are kept from whoever brings them first: they do not tell nodes apart. */
static NodeRef graph_intern(Graph *g, const Node *n, ArenaMark mark)
{
    uint64_t hash = node_hash(n);
    uint32_t head = NODE_NONE;
    if (map_get(&g->consed, hash, &head)) {
        for (uint32_t r = head; r != NODE_NONE; r = g->next_consed.at[r]) {
            Node *old = &g->nodes.at[r];
            if (node_equal(old, n)) {
                old->name = old->name != NULL ? old->name : n->name;
                old->allow_spill = old->allow_spill || n->allow_spill;
                old->keep = old->keep || n->keep;
                arena_reset(g->arena, mark);
                return r;
            }
        }
    } else {
        head = NODE_NONE;
    }
    uint32_t r = g->nodes.n;
    CHECK(r < NODE_NONE);
    vec_push(g->arena, &g->nodes, *n);
    vec_push(g->arena, &g->next_consed, head);
    map_put(&g->consed, hash, r);
    return r;
}

/* ---- building ---- */

Graph *graph_new(Arena *arena, Sym name)
{
    Graph *g = ARENA_NEW(arena, Graph);
    g->arena = arena;
    g->name = name;
    g->signature = "";
    g->form = GRAPH_TENSOR;
    map_init(&g->consed, arena);
    map_init(&g->slices_of, arena);
    return g;
}

static const Dim *dims_copy(Arena *arena, const Dim *dims, uint32_t n)
{
    return n == 0 ? NULL : arena_copy(arena, dims, n * sizeof *dims);
}

NodeRef graph_input(Graph *g, uint32_t param, Span span)
{
    CHECK(param < g->params.n);
    const Param *p = &g->params.at[param];
    ArenaMark mark = arena_mark(g->arena);
    Node n = {
        .op = OP_INPUT, .dtype = p->dtype, .acc = p->dtype, .span = span, .name = p->name};
    n.rank = param_rank(p);
    n.shape = dims_copy(g->arena, param_shape(p), n.rank);
    n.param = param;
    uint32_t before = g->nodes.n;
    NodeRef r = graph_intern(g, &n, mark);
    if (g->nodes.n > before) {
        graph_add_promised(g, r, p->symmetry);
    }
    return r;
}

NodeRef graph_const(Graph *g, Number value, Span span)
{
    Number v = {.dtype = value.dtype};
    if (dtype_is_float(value.dtype) || dtype_is_complex(value.dtype)) {
        v.re =
            isnan(value.re) ? (double)NAN : value.re; /* one NaN, so that dumps are one text */
        if (dtype_is_complex(value.dtype)) {
            v.im = isnan(value.im) ? (double)NAN : value.im;
        }
    } else {
        v.i = value.i;
    }
    Node n = {.op = OP_CONST, .dtype = v.dtype, .acc = v.dtype, .span = span, .value = v};
    return graph_intern(g, &n, arena_mark(g->arena));
}

NodeRef graph_extent(Graph *g, int32_t dim, DType dtype, Span span)
{
    CHECK(dim >= 0 && (uint32_t)dim < g->dims.list.n);
    Node n = {.op = OP_EXTENT, .dtype = dtype, .acc = dtype, .span = span, .dim = dim};
    return graph_intern(g, &n, arena_mark(g->arena));
}

NodeRef graph_index(Graph *g, Dim extent, DType dtype, Span span)
{
    ArenaMark mark = arena_mark(g->arena);
    Node n = {.op = OP_INDEX, .dtype = dtype, .acc = dtype, .span = span, .rank = 1};
    n.shape = dims_copy(g->arena, &extent, 1);
    return graph_intern(g, &n, mark);
}

/* Positions in labels of the result, which are numbered in its order. */
static void take_positions(Graph *g, const NodeSpec *spec, Node *n)
{
    uint32_t rank = graph_node(g, spec->operand[0])->rank;
    Affine *at = ARENA_ARRAY(g->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = affine_const(spec->at[d].base);
        for (uint32_t i = 0; i < spec->at[d].n; i++) {
            AffineTerm term = spec->at[d].term[i];
            uint32_t l = 0;
            while (!affine_is_dim(term.var) && spec->out[l] != (int32_t)term.var) {
                l++;
                CHECK(l < spec->rank);
            }
            term.var = affine_is_dim(term.var) ? term.var : l;
            at[d] = affine_add(g->arena, at[d], 1, (Affine){0, 1, &term});
        }
    }
    n->at = at;
}

static void take_pieces(Graph *g, const NodeSpec *spec, Node *n)
{
    uint32_t count = spec->n_operands * spec->rank;
    Affine *at = ARENA_ARRAY(g->arena, count, Affine);
    for (uint32_t d = 0; d < count; d++) {
        at[d] = affine_copy(g->arena, spec->at[d]);
    }
    n->at = at;
}

/* Copies operands and accesses into `n` with canonical labels. */
static void take_operands(Graph *g, const NodeSpec *spec, Renumber *labels, Node *n)
{
    size_t total = 0;
    for (uint32_t k = 0; k < spec->n_operands; k++) {
        CHECK(spec->operand[k] < g->nodes.n);
        CHECK(spec->access[k].rank == graph_node(g, spec->operand[k])->rank);
        total += spec->access[k].rank;
    }
    NodeRef *operand = ARENA_ARRAY(g->arena, spec->n_operands, NodeRef);
    Access *access = ARENA_ARRAY(g->arena, spec->n_operands, Access);
    Index *index = ARENA_ARRAY(g->arena, total, Index);
    for (uint32_t k = 0; k < spec->n_operands; k++) {
        const Access *from = &spec->access[k];
        operand[k] = spec->operand[k];
        access[k] = (Access){.rank = from->rank, .index = index};
        for (uint32_t d = 0; d < from->rank; d++, index++) {
            *index = from->index[d];
            if (index->label >= 0) {
                index->label = renumber_label(labels, index->label);
            } else {
                index->label = -1;
            }
        }
    }
    n->n_operands = spec->n_operands;
    n->operand = operand;
    n->access = access;
}

/* Extents of the labels, from whoever uses them; all must agree. */
static void take_extents(Graph *g, const NodeSpec *spec, Node *n)
{
    Dim *extent = ARENA_ARRAY(g->arena, n->n_labels, Dim);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        extent[l] = dim_fixed(-1);
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Node *o = graph_node(g, n->operand[k]);
        for (uint32_t d = 0; d < o->rank; d++) {
            int32_t l = n->access[k].index[d].label;
            if (l >= 0) {
                CHECK(dim_is(extent[l], -1) || dim_eq(extent[l], o->shape[d]));
                extent[l] = o->shape[d];
            }
        }
    }
    Dim *shape = ARENA_ARRAY(g->arena, n->rank, Dim);
    for (uint32_t d = 0; d < n->rank; d++) {
        int32_t l = n->out[d];
        if (spec->out_shape != NULL) {
            CHECK(dim_is(extent[l], -1) || dim_eq(extent[l], spec->out_shape[d]));
            extent[l] = spec->out_shape[d];
        }
        CHECK(!dim_is(extent[l], -1));
        shape[d] = extent[l];
    }
    n->extent = extent;
    n->shape = shape;
}

/* Sliced labels are labels of the node by now; to be kept in ascending order. */
static void renumber_sliced(Slices given, Renumber *labels, int32_t *sliced)
{
    CHECK(given.n <= RANK_LIMIT);
    for (uint32_t k = 0; k < given.n; k++) {
        int32_t l = renumber_label(labels, given.label[k]);
        uint32_t at = k;
        while (at > 0 && sliced[at - 1] > l) {
            sliced[at] = sliced[at - 1];
            at--;
        }
        sliced[at] = l;
    }
}

static void keep_sliced(Graph *g, NodeRef r, uint32_t n, const int32_t *sliced)
{
    if (n > 0 && graph_slices(g, r).n == 0) {
        Slices kept = {n, arena_copy(g->arena, sliced, n * sizeof *sliced)};
        map_put(&g->slices_of, r, g->slices.n);
        vec_push(g->arena, &g->slices, kept);
    }
}

/* The node's labels have been numbered anew: its operands and result say which is which. */
static void keep_names(Graph *g, NodeRef r, const NodeSpec *spec)
{
    Node *n = &g->nodes.at[r];
    if (spec->names.name == NULL || n->label_name != NULL || n->n_labels == 0) {
        return;
    }
    Sym *name = ARENA_ARRAY(g->arena, n->n_labels, Sym);
    const LabelNames *from = &spec->names;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            int32_t l = spec->access[k].index[d].label;
            if (l >= 0 && (uint32_t)l < from->n) {
                name[n->access[k].index[d].label] = from->name[l];
            }
        }
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if ((uint32_t)spec->out[d] < from->n) {
            name[n->out[d]] = from->name[spec->out[d]];
        }
    }
    n->label_name = name;
}

Slices graph_slices(const Graph *g, NodeRef n)
{
    uint32_t at = 0;
    bool any = g->slices.n > 0 && map_get(&g->slices_of, n, &at);
    return any ? g->slices.at[at] : (Slices){0, NULL};
}

bool graph_is_positive(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    switch (n->op) {
    case OP_CONST:
        return dtype_is_float(n->dtype) && n->value.re > 0;
    case OP_EXTENT:
    case OP_ABS:
    case OP_EXP:
    case OP_SQRT:
    case OP_RSQRT:
        return dtype_is_float(n->dtype);
    default:
        return false;
    }
}

const Online *graph_online(const Graph *g, NodeRef node, NodeRef base)
{
    for (uint32_t k = 0; k < g->online.n; k++) {
        if (g->online.at[k].node == node && g->online.at[k].base == base) {
            return &g->online.at[k];
        }
    }
    return NULL;
}

NodeRef graph_add(Graph *g, const NodeSpec *spec)
{
    OpKind kind = op_info(spec->op)->kind;
    CHECK(kind != OPKIND_LEAF);
    ArenaMark mark = arena_mark(g->arena);
    Node n = {.op = spec->op, .dtype = spec->dtype, .acc = spec->dtype, .span = spec->span};
    n.name = spec->name;
    n.allow_spill = spec->allow_spill;
    n.keep = spec->keep;
    n.onto = spec->onto;
    n.steps = spec->steps;
    if (kind == OPKIND_CONTRACT || kind == OPKIND_REDUCE) {
        n.acc = spec->acc != DTYPE_NONE ? spec->acc : dtype_accumulator(spec->dtype);
    }
    Renumber labels = {.arena = g->arena};
    take_operands(g, spec, &labels, &n);
    if (kind == OPKIND_VIEW) {
        take_positions(g, spec, &n);
    } else if (kind == OPKIND_JOIN) {
        take_pieces(g, spec, &n);
    }
    n.rank = spec->rank;
    int32_t *out = ARENA_ARRAY(g->arena, spec->rank, int32_t);
    for (uint32_t d = 0; d < spec->rank; d++) {
        out[d] = renumber_label(&labels, spec->out[d]);
    }
    n.out = out;
    int32_t sliced[RANK_LIMIT];
    renumber_sliced(spec->sliced, &labels, sliced);
    n.n_labels = (uint32_t)labels.n;
    take_extents(g, spec, &n);
    NodeRef r = graph_intern(g, &n, mark);
    keep_sliced(g, r, spec->sliced.n, sliced);
    keep_names(g, r, spec);
    return r;
}

/* ---- copying ---- */

static SourceStatements statements_copy(Arena *arena, const SourceStatements *from)
{
    SourceStatement *to = ARENA_ARRAY(arena, from->n, SourceStatement);
    for (uint32_t k = 0; k < from->n; k++) {
        to[k] = (SourceStatement){from->at[k].span, str_dup(arena, str_from(from->at[k].text))};
    }
    return (SourceStatements){from->n, to};
}

static TextLines lines_copy(Arena *arena, const TextLines *from)
{
    const char **to = ARENA_ARRAY(arena, from->n, const char *);
    for (uint32_t k = 0; k < from->n; k++) {
        to[k] = str_dup(arena, str_from(from->at[k]));
    }
    return (TextLines){from->n, to};
}

Graph *graph_like(Arena *arena, const Graph *g)
{
    Graph *to = graph_new(arena, g->name);
    to->span = g->span;
    to->sources = g->sources;
    to->signature = str_dup(arena, str_from(g->signature));
    to->statements = statements_copy(arena, &g->statements);
    to->ranks = lines_copy(arena, &g->ranks);
    to->program = g->program == NULL ? NULL : str_dup(arena, str_from(g->program));
    to->form = g->form;
    for (uint32_t k = 0; k < g->dims.list.n; k++) {
        DimInfo d = g->dims.list.at[k];
        d.factor = dims_copy(arena, d.factor, d.n_factors);
        d.term = d.n_terms == 0 ? NULL : arena_copy(arena, d.term, d.n_terms * sizeof *d.term);
        vec_push(arena, &to->dims.list, d);
    }
    for (uint32_t k = 0; k < g->params.n; k++) {
        Param p = g->params.at[k];
        p.shape = dims_copy(arena, p.shape, p.rank);
        p.collapsed = dims_copy(arena, p.collapsed, p.n_collapsed);
        p.symmetry = symmetry_copy(arena, p.symmetry);
        vec_push(arena, &to->params, p);
    }
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        vec_push(arena, &to->recurrences, recurrence_copy(arena, g->recurrences.at[k]));
    }
    return to;
}

NodeRef graph_clone_node(Graph *to, const Graph *from, NodeRef node, const NodeRef *map)
{
    const Node *n = graph_node(from, node);
    switch (op_info(n->op)->kind) {
    case OPKIND_LEAF:
        if (n->op == OP_INPUT) {
            return graph_input(to, n->param, n->span);
        }
        if (n->op == OP_INDEX) {
            return graph_index(to, n->shape[0], n->dtype, n->span);
        }
        return n->op == OP_CONST ? graph_const(to, n->value, n->span)
                                 : graph_extent(to, n->dim, n->dtype, n->span);
    case OPKIND_VIEW:
    case OPKIND_JOIN:
    case OPKIND_GATHER:
    case OPKIND_STEPS:
    case OPKIND_DENSE:
    case OPKIND_CONTRACT:
    case OPKIND_MAP:
    case OPKIND_REDUCE:
        break;
    }
    ArenaMark mark = arena_mark(to->arena);
    NodeRef *operand = ARENA_ARRAY(to->arena, n->n_operands, NodeRef);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        operand[k] = map[n->operand[k]];
    }
    NodeSpec spec = graph_spec(from, node);
    spec.operand = operand;
    uint32_t before = to->nodes.n;
    NodeRef r = graph_add(to, &spec);
    if (to->nodes.n == before && spec.sliced.n == 0 && spec.names.name == NULL) {
        arena_reset(to->arena, mark);
    }
    return r;
}

NodeSpec graph_spec(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    return (NodeSpec){.op = n->op,
                      .dtype = n->dtype,
                      .acc = n->acc,
                      .n_operands = n->n_operands,
                      .operand = n->operand,
                      .access = n->access,
                      .rank = n->rank,
                      .out = n->out,
                      .out_shape = n->shape,
                      .at = n->at,
                      .steps = n->steps,
                      .span = n->span,
                      .name = n->name,
                      .allow_spill = n->allow_spill,
                      .keep = n->keep,
                      .onto = n->onto,
                      .sliced = graph_slices(g, at),
                      .names = {n->n_labels, n->label_name}};
}

void graph_copy_results(Graph *to, const Graph *from, const NodeRef *map)
{
    for (uint32_t k = 0; k < from->results.n; k++) {
        Result r = from->results.at[k];
        r.node = map[r.node];
        r.symmetry = symmetry_copy(to->arena, r.symmetry);
        r.shape = dims_copy(to->arena, r.shape, r.rank);
        vec_push(to->arena, &to->results, r);
    }
    graph_copy_required(to, from, map);
}

/* What the steps of a value read of steps before is stored at each step. True where there is more now. */
static bool need_read_back(const Graph *g, const Node *n, bool *needed)
{
    const Recurrence *r = node_recurrence(g, n);
    bool more = false;
    for (uint32_t k = 0; k < r->body->params.n; k++) {
        NodeRef value = r->param[k].role == STEPS_PRIOR
                            ? recurrence_value(g, n->steps.recurrence, r->param[k].result)
                            : NODE_NONE;
        if (value != NODE_NONE && !needed[value]) {
            needed[value] = more = true;
        }
    }
    return more;
}

bool *graph_needed(Arena *arena, const Graph *g, bool required)
{
    bool *needed = ARENA_ARRAY(arena, g->nodes.n, bool), more = true;
    for (uint32_t k = 0; k < g->results.n; k++) {
        needed[g->results.at[k].node] = true;
    }
    for (uint32_t k = 0; required && k < g->required.n; k++) {
        needed[g->required.at[k].node] = true;
    }
    while (more) {
        more = false;
        for (NodeRef r = g->nodes.n; r-- > 0;) {
            const Node *n = graph_node(g, r);
            for (uint32_t k = 0; needed[r] && k < n->n_operands; k++) {
                needed[n->operand[k]] = true;
            }
            more |= needed[r] && n->op == OP_STEPS && need_read_back(g, n, needed);
        }
    }
    return needed;
}

Graph *graph_prune(Arena *arena, const Graph *g)
{
    Graph *to = graph_like(arena, g);
    NodeRef *map = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    const bool *needed = graph_needed(arena, g, true);
    for (uint32_t r = 0; r < g->nodes.n; r++) {
        if (needed[r]) {
            map[r] = graph_clone_node(to, g, r, map);
        }
    }
    graph_copy_results(to, g, map);
    for (uint32_t k = 0; k < to->recurrences.n; k++) {
        recurrence_prune(arena, to, k);
    }
    return to;
}

const int32_t *labels_in_order(Arena *arena, uint32_t rank)
{
    int32_t *label = ARENA_ARRAY(arena, rank, int32_t);
    for (uint32_t d = 0; d < rank; d++) {
        label[d] = (int32_t)d;
    }
    return label;
}

Access access_of(Arena *arena, uint32_t rank, const int32_t *label)
{
    Index *index = ARENA_ARRAY(arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        index[d] = (Index){label[d], 0};
    }
    return (Access){rank, index};
}

Access access_in_order(Arena *arena, uint32_t rank)
{
    return access_of(arena, rank, labels_in_order(arena, rank));
}

Access access_whole(Arena *arena, uint32_t rank)
{
    Index *index = ARENA_ARRAY(arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        index[d] = (Index){-1, 0};
    }
    return (Access){rank, index};
}

Access access_compose(Arena *arena, const Node *node, Access inner, Access outer)
{
    Index *index = ARENA_ARRAY(arena, inner.rank, Index);
    for (uint32_t d = 0; d < inner.rank; d++) {
        index[d] = inner.index[d];
        if (index[d].label < 0) {
            continue;
        }
        uint32_t at = 0;
        while (at < node->rank && node->out[at] != index[d].label) {
            at++;
        }
        CHECK(at < node->rank); /* an expression's labels are all in its output */
        index[d] = outer.index[at];
        index[d].offset += inner.index[d].offset;
    }
    return (Access){inner.rank, index};
}

uint32_t *graph_readers(Arena *arena, const Graph *g)
{
    uint32_t *readers = ARENA_ARRAY(arena, g->nodes.n, uint32_t);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            readers[n->operand[k]]++;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        readers[g->results.at[k].node]++;
    }
    for (uint32_t k = 0; k < g->required.n; k++) {
        readers[g->required.at[k].node]++;
    }
    return readers;
}

/* ---- facts about one node ---- */

bool node_reduces(const Node *n, int32_t label)
{
    for (uint32_t d = 0; n->out != NULL && d < n->rank; d++) {
        if (n->out[d] == label) {
            return false;
        }
    }
    return true;
}

bool node_sums_reals(const Node *n)
{
    return (n->op == OP_SUM || n->op == OP_EINSUM) && n->dtype != DTYPE_BOOL &&
           !dtype_is_complex(n->dtype);
}

static int64_t extent_of(const Dim *e, const int64_t *dims)
{
    return e->sym < 0 ? e->n : dims[e->sym];
}

/* A sixth of the cube of the rows for each matrix; half of their square for each right side. */
static int64_t dense_multiply_adds(const Node *n, const int64_t *dims)
{
    int64_t count = 1, rows = extent_of(&n->shape[n->access[0].rank - 2], dims);
    for (uint32_t d = 0; d < n->rank; d++) {
        count = sat_mul(count, extent_of(&n->shape[d], dims));
    }
    return sat_mul(count, rows) / (n->op == OP_CHOLESKY ? 6 : 2);
}

int64_t node_multiply_adds(const Node *n, const int64_t *dims)
{
    if (op_info(n->op)->kind == OPKIND_DENSE) {
        return dense_multiply_adds(n, dims);
    }
    if (op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands < 2) {
        return 0;
    }
    int64_t count = 1;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        int64_t e = extent_of(&n->extent[l], dims);
        if (e <= 0) {
            return 0;
        }
        count = sat_mul(count, e);
    }
    return count;
}
