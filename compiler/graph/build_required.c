/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of the program: what stands between brackets lies inside, wherever a selection takes it. One of a value that is computed
 * first has none: what lies outside is read as 0. */
#include "graph/build_parts.h"

static bool all_known(Build *b, View position)
{
    bool known = graph_is_known_at_call(b->arena, b->g, position.node);
    for (uint32_t k = 0; k < b->conditions.n && known; k++) {
        known = graph_is_known_at_call(b->arena, b->g, b->conditions.at[k].value.node);
    }
    return known;
}

static bool has_label(const View *v, int32_t label)
{
    bool has = false;
    for (uint32_t d = 0; d < v->rank && !has; d++) {
        has = v->index[d].label == label;
    }
    return has;
}

static View operand_view(Build *b, const Node *n, uint32_t k, View outer)
{
    Access a = access_compose(b->arena, n, n->access[k], (Access){outer.rank, outer.index});
    return (View){n->operand[k], a.rank, a.index, graph_node(b->g, n->operand[k])->dtype};
}

static View number_view(Build *b, int64_t n, Span span)
{
    return build_view(b, graph_const(b->g, number_int(DTYPE_I64, n), span), NULL, 0);
}

static View of_two(Build *b, Op op, DType t, View x, View y, Span span)
{
    View two[2] = {x, y};
    return map_add(b, op, t, two, 2, span, NULL);
}

/* `index(l) == x`, where nothing else has l: x is a position of that index. Else all pairs of a sum over row[k] == i would be looked
 * at. Another condition as it is. */
static View somewhere(Build *b, uint32_t at, const View *position)
{
    View c = b->conditions.at[at].value;
    const Node n = *graph_node(b->g, c.node);
    for (uint32_t k = 0; k < 2 && n.op == OP_EQ && !b->conditions.at[at].negated; k++) {
        View index = operand_view(b, &n, k, c), x = operand_view(b, &n, 1 - k, c);
        const Node *leaf = graph_node(b->g, index.node);
        int32_t label = leaf->op == OP_INDEX ? index.index[0].label : -1;
        bool alone = label >= 0 && x.dtype == DTYPE_I64 && !has_label(&x, label) &&
                     !has_label(position, label);
        for (uint32_t i = 0; i < b->conditions.n && alone; i++) {
            alone = i == at || !has_label(&b->conditions.at[i].value, label);
        }
        if (alone) {
            Span s = n.span;
            Dim d = leaf->shape[0];
            View limit = d.sym < 0
                             ? number_view(b, d.n, s)
                             : build_view(b, graph_extent(b->g, d.sym, DTYPE_I64, s), NULL, 0);
            return of_two(b, OP_AND, DTYPE_BOOL,
                          of_two(b, OP_GE, DTYPE_BOOL, x, number_view(b, 0, s), s),
                          of_two(b, OP_LT, DTYPE_BOOL, x, limit, s), s);
        }
    }
    return c;
}

/* REQUIRED_NOT where a condition does not hold, and nowhere else. */
static View guard(Build *b, View position, Span s)
{
    View not_there = number_view(b, REQUIRED_NOT, s);
    View at = position;
    for (uint32_t k = b->conditions.n; k-- > 0;) {
        bool negated = b->conditions.at[k].negated;
        View c = somewhere(b, k, &position);
        at = k + 1 == b->conditions.n
                 ? of_two(b, OP_MAX, DTYPE_I64, at, number_view(b, REQUIRED_NOT + 1, s), s)
                 : at;
        View three[3] = {c, negated ? not_there : at, negated ? at : not_there};
        at = map_add(b, OP_SELECT, DTYPE_I64, three, 3, s, NULL);
    }
    return at;
}

/* As a node whose labels are those that it is read at. */
static View plain(Build *b, View v, Span span)
{
    bool same = true;
    for (uint32_t d = 0; d < v.rank && same; d++) {
        same = v.index[d].label >= 0;
        for (uint32_t e = 0; e < d && same; e++) {
            same = v.index[d].label != v.index[e].label;
        }
    }
    return same ? v : map_add(b, OP_COPY, v.dtype, &v, 1, span, NULL);
}

/* An expression may be built twice. */
static bool is_there(Build *b, const Required *r)
{
    uint64_t h = hash_mix(hash_mix(r->node, r->what.dimension), r->what.array->id);
    uint32_t old = 0;
    if (map_get(&b->required, h, &old)) {
        const Required *o = &b->g->required.at[old];
        return o->node == r->node && o->what.array == r->what.array &&
               o->what.dimension == r->what.dimension && dim_eq(o->what.below, r->what.below);
    }
    map_put(&b->required, h, b->g->required.n);
    return false;
}

/* "b,l": of a value that is read at labels. */
static const char *index_names(Build *b, View v)
{
    Text t = text_new(b->g->arena);
    for (uint32_t d = 0; d < v.rank; d++) {
        Sym name = b->names.n > 0 ? b->names.name[v.index[d].label] : NULL;
        text_put(&t, d == 0 ? "" : ",");
        if (name != NULL) {
            text_put(&t, name->text);
        } else {
            dump_label(&t, (int32_t)d);
        }
    }
    return t.at;
}

void require_position(Build *b, uint32_t read, uint32_t d, const CheckedExpr *at, View position)
{
    const Value *of = &b->k->values.at[read];
    if (!all_known(b, position)) {
        return;
    }
    bool guarded = b->conditions.n > 0;
    View v = plain(b, guarded ? guard(b, position, at->span) : position, at->span);
    Requirement what = {.guarded = guarded,
                        .below = of->type.dims[d],
                        .array =
                            of->name != NULL ? of->name : sym_cstr(&b->ctx->syms, "einsum"),
                        .dimension = d,
                        .span = at->span};
    Required r = {v.node, what};
    if (!is_there(b, &r)) {
        r.what.indices = index_names(b, v);
        r.what.text = position_text(b->ctx, b->g->arena, b->k, b->s, at);
        vec_push(b->g->arena, &b->g->required, r);
    }
}
