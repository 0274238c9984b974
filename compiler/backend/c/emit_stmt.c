/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and statements; where in the workspace a buffer lies says emit_space.c. */
#include <string.h>

#include "backend/c/emit.h"
#include "backend/c/product.h"

/* ---- buffers ---- */

/* The address where the buffer starts. */
static const char *place_text(Emitter *e, WorkspaceTop ws)
{
    return ws.offset == 0 ? ws.base
                          : str_format(e->w.arena, "%s + %lld", ws.base, (long long)ws.offset);
}

/* Declares the buffer of body[0]; returns where the next one goes. Pointers to one place are not
 * restricted: what is written through one is written through the others, earlier or later. */
static WorkspaceTop alloc_emit(Emitter *e, Stmt *const *body, uint32_t n, WorkspaceTop ws)
{
    BufRef buf = body[0]->buf;
    const Buffer *b = &e->w.k->bufs.at[buf];
    const char *name = e->w.buf[buf];
    if (b->space == SPACE_ACC) {
        if (b->rank > 0) {
            acc_declare(e, buf);
        } else {
            line_printf(&e->w, "%s %s;", c_compute(b->dtype), name);
        }
        return ws;
    }
    if (b->cascade) {
        line_printf(&e->w, "%s %s[1]; %s->n = 0;", help_sum(e->w.help, b), name, name);
        return ws;
    }
    if (e->in_tile) {
        int64_t size = 0;
        CHECK(bytes_fixed(b, &size));
        line_printf(&e->w, "%s %s[%lld];", c_type(b->dtype), name,
                    (long long)(size / dtype_bytes(b->dtype)));
        return ws;
    }
    if (b->rank == 0) {
        line_printf(&e->w, e->w.scalar[buf] ? "%s %s;" : "%s %s[1];", c_type(b->dtype), name);
        return ws;
    }
    if (body[0]->over > 0) {
        line_printf(&e->w, "%s *const %s = %s;", c_type(b->dtype), name,
                    e->w.buf[body[0]->over - 1]);
        return ws;
    }
    if (b->cut) {
        int64_t before = cut_bytes(e->w.k, e->cut, buf);
        const char *at = before == 0 ? e->own.front
                                     : str_format(e->w.arena, "%s + %s * %lld", e->own.front,
                                                  e->own.most, (long long)before);
        line_printf(&e->w, "%s *TDSL_RESTRICT const %s = (%s *)(void *)(%s);", c_type(b->dtype),
                    name, c_type(b->dtype), at);
        return ws;
    }
    Room room = room_of(e, body, n);
    line_printf(&e->w, "%s *%sconst %s = (%s *)(void *)(%s);", c_type(b->dtype),
                room.shared ? "" : "TDSL_RESTRICT ", name, c_type(b->dtype), place_text(e, ws));
    if (room.text == NULL) {
        ws.offset += room.bytes;
    } else if (needs_workspace(e->w.k, body + 1, n - 1)) {
        const char *base = names_take(&e->w.names, "ws");
        line_printf(&e->w, "unsigned char *const %s = %s + %s;", base, place_text(e, ws),
                    room.text);
        ws = (WorkspaceTop){base, 0};
    }
    return ws;
}

/* The same of all that is computed in a loop: false where they differ. */
static bool is_one_origin(const Kernel *k, Stmt *const *body, uint32_t n, const char **origin)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *own = body[i]->kind == STMT_TILE ? origin_of(k, body[i]) : NULL;
        if (own != NULL && *origin != NULL && *origin != own) {
            return false;
        }
        *origin = own != NULL ? own : *origin;
        if (!is_one_origin(k, body[i]->body, body[i]->n_body, origin)) {
            return false;
        }
    }
    return true;
}

/* Over what computes it, once in the functions of a kernel: elsewhere a name alone would say nothing. */
static void origin_comment(Emitter *e, Stmt *const *body, uint32_t n)
{
    const char *origin = NULL;
    if (e->in_tile || !is_one_origin(e->w.k, body, n, &origin) || origin == NULL) {
        return;
    }
    uint64_t key = (uint64_t)(uintptr_t)origin;
    if (map_get(&e->quoted, key, &(uint32_t){0})) {
        return;
    }
    map_put(&e->quoted, key, 1);
    Text t;
    text_init(&t, e->w.arena);
    text_comment(&t, str_from(origin));
    comment_put(e->w.out, t.at);
}

/* A fold that meets each element once: it assigns where it begins. */
static void begins_emit(Emitter *e, const Stmt *s)
{
    const char *goes_on = goes_on_text(e, s);
    Stmt once = *s;
    once.begins = false;
    once.n_first = 0;
    if (goes_on != NULL) {
        scope_printf(&e->w, "if (%s) {", goes_on);
        tile_emit(e, &once);
        scope_else(&e->w);
    }
    once.fold = OP_COPY;
    tile_emit(e, &once);
    if (goes_on != NULL) {
        e->w.out->indent--;
        line_put(e->w.out, "}");
    }
}

/* Of dst = dst + (c ? x : 0), where c reads values and is the same at all positions of a row: c, and the statement where it holds.
 * Elsewhere nothing changes. Null: it is none. */
static const Expr *row_condition(const Kernel *k, const Stmt *s, Stmt *taken)
{
    static const Op folds[] = {OP_SUM, OP_PROD, OP_RMIN, OP_RMAX, OP_ANY, OP_ALL};
    const Expr *e = s->value, *condition = NULL;
    ExprWalk w;
    bool own = s->n_index == 1 && s->fold == OP_COPY && e->kind == EXPR_OP && e->n_args == 2 &&
               e->arg[0]->kind == EXPR_LOAD && e->arg[0]->buf == s->dst;
    for (uint32_t d = 0; own && d < k->bufs.at[s->dst].rank; d++) {
        own = affine_eq(e->arg[0]->at[d], s->at[d]);
    }
    for (uint32_t i = 0; own && condition == NULL && i < sizeof folds / sizeof *folds; i++) {
        if (op_joined_by(folds[i], e->dtype) == e->op) {
            *taken = *s;
            taken->fold = folds[i];
            taken->value = expr_under(folds[i], e->arg[1], &condition);
        }
    }
    bool row = condition != NULL && load_first(&w, condition) != NULL &&
               !expr_uses(k, condition, s->index[0].var);
    return row ? condition : NULL;
}

void statement_put(Emitter *e, const Stmt *s)
{
    if (s->places > 0) {
        places_emit(e, s);
        return;
    }
    if (stmt_is_product(s)) {
        product_emit(e, s);
        return;
    }
    if (s->begins) {
        begins_emit(e, s);
        return;
    }
    if (e->in_tile && is_unrolled(s)) {
        unrolled_emit(e, s);
        return;
    }
    if (!e->in_tile && stmt_has_lanes(s)) {
        Stmt *body[1] = {arena_copy(e->w.arena, s, sizeof *s)};
        register_tile_emit(e, body, 1);
        return;
    }
    if (pack_emit(e, s) || transpose_emit(e, s) || move_emit(e, s) || zero_emit(e, s)) {
        return;
    }
    if (e->in_tile && stmt_has_lanes(s) && strips_needed(s)) {
        strips_emit(e, s);
        return;
    }
    Stmt taken;
    const Expr *condition = row_condition(e->w.k, s, &taken);
    if (condition != NULL) {
        scope_printf(&e->w, "if (%s) {", expr_text(&e->w, condition).at);
        s = &taken;
    }
    if (condition == NULL && gather_emit(e, s)) {
        return;
    }
    loops_begin(&e->w, s->index, s->n_index);
    if (stmt_has_lanes(s) && dtype_is_complex(e->w.k->bufs.at[s->dst].dtype)) {
        complex_assign(e, s);
    } else {
        assign_put(&e->w, s);
    }
    scopes_end(&e->w, s->n_index + (condition != NULL ? 1 : 0));
}

static void statement_emit(Emitter *e, const Stmt *s)
{
    const Stmt *outer = e->w.tile;
    e->w.tile = s;
    statement_put(e, s);
    e->w.tile = outer;
}

/* Does the statement add to a cascade of rows, or read one? */
static bool has_rows(const Kernel *k, const Stmt *s, BufRef *buf)
{
    *buf = s->fold == OP_SUM && k->bufs.at[s->dst].cascade ? s->dst
           : s->value->kind == EXPR_LOAD                   ? s->value->buf
                                                           : s->dst;
    return k->bufs.at[*buf].cascade && k->bufs.at[*buf].rank > 0;
}

/* The statement with an array in the cascade's place: a row to be added, or the total. */
static void rows_emit(Emitter *e, const Stmt *s, BufRef buf)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    const char *cascade = e->w.buf[buf], *type = c_type(b->dtype);
    const char *row = names_take(&e->w.names, str_format(e->w.arena, "%s_row", cascade));
    Stmt made = *s;
    scope_printf(&e->w, "{");
    e->w.buf[buf] = row;
    if (buf == s->dst) {
        made.fold = OP_COPY;
        line_printf(&e->w, "%s %s[%lld];", type, row, (long long)b->extent[0].n);
        statement_emit(e, &made);
        line_printf(&e->w, "%s(%s, %s);", help_sum_add(e->w.help, b), cascade, row);
    } else {
        line_printf(&e->w, "const %s *const %s = %s(%s);", type, row, help_sum_of(e->w.help, b),
                    cascade);
        statement_emit(e, s);
    }
    e->w.buf[buf] = cascade;
    scope_end(&e->w);
}

void tile_emit(Emitter *e, const Stmt *s)
{
    BufRef buf = 0;
    Stmt *one[1] = {(Stmt *)s};
    origin_comment(e, one, 1);
    if (has_rows(e->w.k, s, &buf)) {
        rows_emit(e, s, buf);
    } else {
        statement_emit(e, s);
    }
}

void test_begin(Emitter *e, const DimTest *when)
{
    const char *dim = when == NULL ? NULL : e->w.dim[when->dim];
    if (when == NULL) {
        line_put(e->w.out, "{");
    } else if (when->least == 0) {
        line_printf(&e->w, "if (%s <= %lld) {", dim, (long long)when->most);
    } else if (when->most == DIM_ANY_SIZE) {
        line_printf(&e->w, "if (%s >= %lld) {", dim, (long long)when->least);
    } else {
        line_printf(&e->w, "if (%s >= %lld && %s <= %lld) {", dim, (long long)when->least, dim,
                    (long long)when->most);
    }
    scope_begin(&e->w);
}

/* Are there declarations of buffers in the block itself, not in blocks inside? */
static bool declares(const Emitter *e, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_body; i++) {
        if (s->body[i]->kind == STMT_ALLOC) {
            return e->in_tile || !is_register_alloc(e->w.k, s->body[i]);
        }
    }
    return false;
}

static void loop_emit(Emitter *e, const Stmt *s, WorkspaceTop ws)
{
    uint32_t counts = e->w.counts.n;
    if (s == e->flat) {
        flat_inner_begin(e, s);
    } else if (s->window != NULL) {
        window_begin(&e->w, s);
    } else {
        loop_begin(&e->w, s->var, s->range, s->step, s->part);
    }
    vec_push(e->w.arena, &e->w.loops, s);
    counts_bind(e, s->body, s->n_body, false, s->var);
    block_emit(e, s->body, s->n_body, ws);
    e->w.counts.n = counts;
    e->w.loops.n--;
    scope_end(&e->w);
}

/* A single element that the next statement sets: its value where it is declared. */
static bool declared_with_value(Emitter *e, Stmt *const *body, uint32_t n)
{
    const Stmt *s = n > 1 ? body[1] : NULL;
    BufRef buf = body[0]->buf;
    const Buffer *b = &e->w.k->bufs.at[buf];
    if (s == NULL || s->kind != STMT_TILE || s->dst != buf || !e->w.scalar[buf] ||
        b->space == SPACE_ACC || s->fold != OP_COPY || s->begins || s->n_index > 0 ||
        expr_load_of(s->value, buf) != NULL) {
        return false;
    }
    origin_comment(e, body + 1, 1);
    CText value = expr_text(&e->w, s->value);
    line_printf(&e->w, "%s %s = %s;", c_type(b->dtype), e->w.buf[buf],
                stored_text(&e->w, b->dtype, value));
    e->w.temps.n = 0;
    return true;
}

void block_emit(Emitter *e, Stmt *const *body, uint32_t n, WorkspaceTop ws)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        switch (s->kind) {
        case STMT_ALLOC:
            if (!e->in_tile && is_register_alloc(e->w.k, s)) {
                line_mark(e, e->w.out, body + i, n - i);
                register_tile_emit(e, body + i, n - i);
                line_unmark(e, e->w.out);
                return;
            }
            if (declared_with_value(e, body + i, n - i)) {
                i++;
                break;
            }
            ws = alloc_emit(e, body + i, n - i, ws);
            if (s->prefetch != NULL) {
                prefetch_begin(e, s);
            }
            break;
        case STMT_FOR:
            origin_comment(e, body + i, 1);
            if (s->threads != NULL) {
                shared_loop_emit(e, s, ws);
                break;
            }
            if (s == e->flat || !edge_emit(e, s)) {
                loop_emit(e, s, ws);
            }
            break;
        case STMT_BLOCK:
            if (s->when == NULL && !declares(e, s)) {
                block_emit(e, s->body, s->n_body, ws);
                break;
            }
            origin_comment(e, body + i, 1);
            test_begin(e, s->when);
            block_emit(e, s->body, s->n_body, ws);
            scope_end(&e->w);
            break;
        case STMT_TILE:
            line_mark(e, e->w.out, body + i, 1);
            tile_emit(e, s);
            line_unmark(e, e->w.out);
            break;
        }
    }
}
