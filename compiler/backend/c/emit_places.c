/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters and lookups (loop/places.h): one element, or row, after the other goes to the place that its keys say. Where rows go, those that
 * come later are asked for meanwhile: no hardware foresees where they lie. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/legalise.h"
#include "loop/places.h"

/* Rows that are prefetched are so many before they change, and have so many bytes at most; the hardware foresees the rest. */
#define ROWS_AHEAD 8
#define ROW_MOST   2048
/* ... into an array of more bytes than a near cache has: elsewhere the hint costs more than it saves. */
#define ROWS_LARGER (4 << 20)

/* The place along each index that has a key, by the name of its variable, and whether it is inside. */
static const char *places_put(Emitter *e, const Stmt *s, const Scattered *p)
{
    Text inside;
    text_init(&inside, e->w.arena);
    for (uint32_t i = s->places - 1; i < s->n_index; i++) {
        if (p->key[i] != NULL) {
            const TileIndex *x = &s->index[i];
            const char *v = e->w.var[x->var];
            line_printf(&e->w, "const int64_t %s = %s;", v, expr_text(&e->w, p->key[i]).at);
            text_printf(&inside, "%s%s >= %s && %s < %s", inside.n > 0 ? " && " : "", v,
                        range_lo(&e->w, x->range), v, range_hi(&e->w, x->range));
        }
    }
    return inside.at;
}

/* Can the key be read ahead? */
static bool is_plain_key(const Expr *key)
{
    return key == NULL || expr_uncast(key)->kind == EXPR_LOAD;
}

/* Asks for the row that is ROWS_AHEAD iterations of the innermost loop away: the index `row` of the statement, and no other, is left. */
static void ahead_put(Emitter *e, const Stmt *s, const Scattered *p, const TileIndex *row)
{
    const TileIndex *loop = s->places > 1 ? &s->index[s->places - 2] : NULL;
    const Buffer *b = &e->w.k->bufs.at[s->dst];
    bool fits = loop != NULL && (b->space == SPACE_ARGUMENT || b->space == SPACE_WORKSPACE);
    int64_t known = dtype_bytes(b->dtype);
    bool open = false;
    for (uint32_t d = 0; d < b->rank; d++) {
        open |= b->extent[d].sym >= 0;
        known = b->extent[d].sym < 0 ? sat_mul(known, b->extent[d].n) : known;
    }
    fits = fits && (open || known > ROWS_LARGER);
    for (uint32_t i = s->places - 1; fits && i < s->n_index; i++) {
        fits = is_plain_key(p->key[i]);
    }
    if (!fits) {
        return;
    }
    const char **own = arena_copy(e->w.arena, e->w.var, e->w.k->vars.n * sizeof *e->w.var);
    int64_t size = dtype_bytes(b->dtype);
    const char *hi = range_hi(&e->w, row->range), *lo = range_lo(&e->w, row->range);
    bool all = strcmp(lo, "0") == 0;
    const char *bytes = str_format(e->w.arena, "%lld * %s(%s%s%s, %lld)", (long long)size,
                                   help_fixed(e->w.help, "tdsl_min"), hi, all ? "" : " - ",
                                   all ? "" : lo, (long long)(ROW_MOST / size));
    if (range_is_exact(row->range)) {
        int64_t most = size * range_most(row->range);
        bytes = str_format(e->w.arena, "%lld", (long long)(most < ROW_MOST ? most : ROW_MOST));
    }
    Affine *at = ARENA_ARRAY(e->w.arena, b->rank, Affine);
    for (uint32_t d = 0; d < b->rank; d++) {
        at[d] = affine_subst(e->w.arena, s->at[d], row->var, row->range.start);
    }
    const char *ahead = names_take(&e->w.names, "ahead");
    line_printf(&e->w, "const int64_t %s = %s + %d;", ahead, own[loop->var], ROWS_AHEAD);
    scope_printf(&e->w, "if (%s < %s%s%s) {", ahead, range_hi(&e->w, loop->range),
                 open ? " && " : "", open ? larger_text(e, s->dst, ROWS_LARGER) : "");
    e->w.var[loop->var] = ahead;
    for (uint32_t i = s->places - 1; i < s->n_index; i++) {
        if (p->key[i] != NULL) {
            e->w.var[s->index[i].var] = names_take(&e->w.names, "to");
        }
    }
    const char *inside = places_put(e, s, p);
    scope_printf(&e->w, "if (%s) {", inside);
    line_printf(&e->w, "%s(%s + %s, %s);", help_fixed(e->w.help, "tdsl_near"), e->w.buf[s->dst],
                offset_text(&e->w, s->dst, at), bytes);
    scope_end(&e->w);
    scope_end(&e->w);
    for (VarRef v = 0; v < e->w.k->vars.n; v++) {
        e->w.var[v] = own[v];
    }
}

/* Loops over the indices before the place; the place, if there is one; the statement over the others. */
void places_emit(Emitter *e, const Stmt *s)
{
    Scattered p;
    CHECK(stmt_places(e->w.arena, e->w.k, s, &p));
    TileIndex *rest = ARENA_ARRAY(e->w.arena, s->n_index, TileIndex);
    Stmt one = *s;
    one.places = one.n_index = 0;
    one.value = p.value;
    one.index = rest;
    for (uint32_t i = 0; i + 1 < s->places; i++) {
        loop_begin(&e->w, s->index[i].var, s->index[i].range, 1, FOR_ALL);
    }
    for (uint32_t i = s->places; i < s->n_index; i++) {
        if (p.key[i] == NULL) {
            rest[one.n_index++] = s->index[i];
        }
    }
    scope_printf(&e->w, "{");
    if (one.n_index == 1 && stmt_has_lanes(&one)) {
        ahead_put(e, s, &p, &rest[0]);
    }
    scope_printf(&e->w, "if (%s) {", places_put(e, s, &p));
    if (p.condition != NULL) {
        scope_printf(&e->w, "if (%s) {", expr_text(&e->w, p.condition).at);
    }
    if (s->fold != OP_COPY && stmt_has_lanes(&one)) { /* a map, as other rows of vectors are */
        DType t = e->w.k->bufs.at[s->dst].dtype;
        const Expr *two[2] = {expr_load(e->w.arena, e->w.k, s->dst, s->at), p.value};
        one.fold = OP_COPY;
        one.value = expr_op(e->w.arena, op_joined_by(s->fold, t), t, 2, two);
    }
    statement_put(e, &one);
    scopes_end(&e->w, s->places + 1 + (p.condition != NULL ? 1 : 0));
}
