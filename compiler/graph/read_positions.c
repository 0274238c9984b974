/* SPDX-License-Identifier: Apache-2.0 */
/* Views and pieces in the text of a graph. */
#include <string.h>

#include "graph/read_parts.h"

/* `2*a+b-1`, `extent(n)-1-a`; letters are labels of the node, or, of a piece, dimensions of the operand */
static bool read_position(GraphReader *r, Term *seq, bool piece, Affine *out)
{
    Cursor c = cursor_seq(r->ctx, seq);
    int64_t sign = cursor_take(&c, TERM_PUNCT, "-") ? -1 : 1;
    *out = affine_const(0);
    do {
        Affine one = affine_const(1);
        Dim d = dim_fixed(0);
        const Term *t = cursor_peek(&c);
        int64_t factor = sign;
        bool number = t != NULL && t->kind == TERM_INT;
        if (number) {
            factor *= t->value;
            c.at++;
        }
        if (!number || cursor_take(&c, TERM_PUNCT, "*")) {
            t = cursor_peek(&c);
            if (t != NULL && t->kind == TERM_NAME) {
                int32_t label =
                    piece ? dump_label_number(t->text) : graph_reader_label(r, t->text);
                if (label < 0) {
                    return dump_refuse(r->ctx, t->span, "a dimension is called by its letter");
                }
                one = affine_var(r->scratch, (VarRef)label);
            } else if (t != NULL && t->kind == TERM_CALL && t->n == 1 &&
                       strcmp(t->text->text, "extent") == 0) {
                if (!read_dim(r->in, t->child[0], &d)) {
                    return false;
                }
                one = affine_extent(r->scratch, d);
            } else {
                return dump_refuse(r->ctx, t == NULL ? c.end : t->span,
                                   "an index or a number is expected");
            }
            c.at++;
        }
        if (!affine_try_add(r->scratch, *out, factor, one, out) || out->n > 64) {
            return dump_refuse(r->ctx, seq->span,
                               "this position has too many terms or is too large");
        }
        sign = cursor_is(&c, TERM_PUNCT, "-") ? -1 : 1;
    } while (cursor_take(&c, TERM_PUNCT, "+") || cursor_take(&c, TERM_PUNCT, "-"));
    return cursor_expect_end(&c);
}

/* `%1[2*a+b,0]`: a value and `n` positions, of its own for a view, of the result for a piece (UINT32_MAX: not known yet) */
static bool read_placed(GraphReader *r, Cursor *c, bool piece, uint32_t *n, NodeRef *operand,
                        Access *access, Affine **at)
{
    const Term *t = cursor_peek(c);
    const Term *base = t != NULL && t->kind == TERM_INDEX ? t->child[0] : t;
    if (base == NULL || base->kind != TERM_VALUE) {
        return dump_refuse(r->ctx, cursor_place(c), "a value with positions is expected here");
    }
    if (!graph_reader_value(r, base, operand)) {
        return false;
    }
    c->at++;
    uint32_t positions = t->kind == TERM_INDEX ? t->n - 1 : 0;
    access->rank = graph_node(r->g, *operand)->rank;
    *n = !piece ? access->rank : *n == UINT32_MAX ? positions : *n;
    if (positions != *n) {
        return dump_refuse(r->ctx, t->span,
                           "there are more or fewer positions than dimensions");
    }
    *at = ARENA_ARRAY(r->scratch, positions, Affine);
    for (uint32_t d = 0; d < positions; d++) {
        if (!read_position(r, t->child[d + 1], piece, &(*at)[d])) {
            return false;
        }
    }
    *access = access_whole(r->scratch, access->rank);
    return true;
}

/* `%1[2*a+b,0] ->` */
bool graph_read_viewed(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    NodeRef *operand = ARENA_NEW(r->scratch, NodeRef);
    Access *access = ARENA_NEW(r->scratch, Access);
    Affine *at = NULL;
    uint32_t n = 0;
    if (!read_placed(r, c, false, &n, operand, access, &at)) {
        return false;
    }
    spec->n_operands = 1;
    spec->operand = operand;
    spec->access = access;
    spec->at = at;
    return cursor_expect(c, TERM_PUNCT, "->", "'->'") != NULL;
}

/* `%1[a], %2[a+extent(m)] ->` */
bool graph_read_pieces(GraphReader *r, Cursor *c, NodeSpec *spec)
{
    VEC(NodeRef) operand = {0};
    VEC(Access) access = {0};
    VEC(Affine) all = {0};
    uint32_t n = UINT32_MAX;
    do {
        NodeRef o = NODE_NONE;
        Access a = {0};
        Affine *at = NULL;
        if (!read_placed(r, c, true, &n, &o, &a, &at)) {
            return false;
        }
        vec_push(r->scratch, &operand, o);
        vec_push(r->scratch, &access, a);
        for (uint32_t d = 0; d < n; d++) {
            vec_push(r->scratch, &all, at[d]);
        }
    } while (cursor_take(c, TERM_PUNCT, ","));
    spec->n_operands = operand.n;
    spec->operand = operand.at;
    spec->access = access.at;
    spec->at = all.at;
    spec->rank = n;
    return cursor_expect(c, TERM_PUNCT, "->", "'->'") != NULL;
}

/* Is each label of a position one of the result's? */
bool graph_positions_have_labels(const GraphReader *r, const NodeSpec *spec)
{
    bool fine = true;
    for (uint32_t d = 0; spec->op == OP_VIEW && d < spec->access[0].rank; d++) {
        for (uint32_t i = 0; i < spec->at[d].n; i++) {
            VarRef x = spec->at[d].term[i].var;
            fine = fine && (affine_is_dim(x) || r->in_out.at[x]);
        }
    }
    return fine;
}
