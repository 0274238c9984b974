/* SPDX-License-Identifier: Apache-2.0 */
/* Values in pieces: `R[i, a] = ...; R[i + n, a] = ...;`. A name that is assigned at positions anywhere in the body is so everywhere: its
 * statements are pieces, and it has a value once the last of them has been. They lie apart and cover it. */
#include "front/check_positions.h"

bool left_has_positions(const Kern *k, const AstNode *left)
{
    for (uint32_t a = 1; left->kind == AST_INDEXED && a < left->n; a++) {
        AstKind kind = kern_node(k, left->child[a])->kind;
        if (kind != AST_NAME && kind != AST_COMPARE && kind != AST_BROKEN) {
            return true;
        }
    }
    return false;
}

void pieces_scan(Kern *k)
{
    map_init(&k->pieces_of, k->c->arena);
    map_init(&k->pieces_lost, k->c->arena);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t s = 0; s < k->body->n; s++) {
            const AstNode *n = kern_node(k, k->body->child[s]);
            const AstNode *left = n->kind == AST_ASSIGN ? kern_node(k, n->child[0]) : NULL;
            uint32_t before = 0;
            if (left == NULL || left->name == NULL || n->op != OP_COPY ||
                (left->kind == AST_INDEXED &&
                 gather_is(k, left))) { /* a scatter changes what is there */
                continue;
            }
            bool known = map_get(&k->pieces_of, left->name->id, &before);
            if (pass == 0 && left_has_positions(k, left)) {
                map_put(&k->pieces_of, left->name->id, 0);
            } else if (pass == 1 && known) {
                map_put(&k->pieces_of, left->name->id, before + 1);
            }
        }
    }
}

uint32_t pieces_left(Kern *k, Sym name)
{
    uint32_t left = 0;
    (void)map_get(&k->pieces_of, name->id, &left);
    return left;
}

void piece_done(Kern *k, Sym name, bool fine)
{
    uint32_t left = pieces_left(k, name);
    if (left > 0) {
        map_put(&k->pieces_of, name->id, left - 1);
    }
    if (!fine) {
        map_put(&k->pieces_lost, name->id, 1);
    }
}

static void report(Kern *k, uint32_t value, Span at, Span other, const char *what,
                   const char *how)
{
    const Value *v = &k->k->values.at[value];
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_PIECES, at, "%s of '%s' %s", what, v->name->text, how);
    if (other.source != 0) {
        mark_other(k->c, d, other, "the other piece");
    }
    note_shape(k, d, value);
    k->s.poisoned = true;
}

static bool same_split(const SplitShape *x, const SplitShape *y)
{
    bool same = (x == NULL) == (y == NULL) && (x == NULL || x->rank == y->rank);
    for (uint32_t d = 0; same && x != NULL && d < x->rank; d++) {
        same = dim_eq(x->dims[d], y->dims[d]) && x->axis[d] == y->axis[d];
    }
    return same;
}

static void check_all(Kern *k, uint32_t value, Span at)
{
    Arena *a = k->c->arena;
    TensorType type = k->k->values.at[value].type;
    const SplitShape *split = NULL;
    Patch *patch = ARENA_ARRAY(a, k->pieces.n, Patch);
    Span *span = ARENA_ARRAY(a, k->pieces.n, Span);
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->pieces.n; i++) {
        if (k->pieces.at[i].value == value) {
            patch[n] = k->pieces.at[i].patch;
            if (n > 0 && !same_split(split, k->pieces.at[i].split)) {
                Diagnostic *d =
                    diag_unsupported(&k->c->ctx->diags, E_NOT_YET, k->pieces.at[i].span,
                                     "pieces in which one dimension counts as different ones "
                                     "are not compiled by this version");
                mark_other(k->c, d, span[0], "the other piece");
                k->s.poisoned = true;
                return;
            }
            split = k->pieces.at[i].split;
            span[n++] = k->pieces.at[i].span;
        }
    }
    if (split != NULL) {
        type.rank = split->rank;
        type.dims = split->dims;
    }
    uint32_t x = 0, y = 0;
    if (pieces_meet(a, &k->k->dims, type.rank, n, patch, &x, &y)) {
        report(k, value, span[y], span[x], "two pieces", "may meet");
        return;
    }
    if (!pieces_are_all(a, &k->k->dims, type.rank, type.dims, n, patch)) {
        report(k, value, at, (Span){0}, "the pieces", "leave a part of it out");
    }
}

void piece_check(Kern *k, uint32_t value, const int32_t *label, uint32_t rank, const Affine *at,
                 const SplitShape *split, Span span, bool adds, bool last)
{
    Arena *a = k->c->arena;
    uint32_t n = split != NULL ? split->rank : k->k->values.at[value].type.rank;
    Dim *extent = ARENA_ARRAY(a, rank, Dim);
    Affine *own = ARENA_ARRAY(a, n, Affine);
    VarRef *number = ARENA_ARRAY(a, k->s.labels.n, VarRef);
    for (uint32_t i = 0; i < rank; i++) {
        extent[i] = k->s.labels.at[label[i]].extent;
        number[label[i]] = i;
    }
    for (uint32_t d = 0; d < n; d++) { /* of the piece's indices, numbered as its dimensions */
        own[d] = affine_rename(a, at[d], number);
    }
    ValuePiece piece = {value, {rank, extent, own}, split, span};
    if (piece_overlaps_itself(n, &piece.patch)) {
        report(k, value, span, (Span){0}, "two elements of this piece", "may have one place");
        return;
    }
    if (!adds) {
        vec_push(a, &k->pieces, piece);
    }
    uint32_t lost = 0;
    if (last && !map_get(&k->pieces_lost, k->k->values.at[value].name->id, &lost)) {
        check_all(k, value, span);
    }
}
