/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and statements. Buffers of the workspace are laid out as a stack
 * that follows the blocks: each starts where the one before it in the same scope ends, so what
 * scopes beside each other use is shared. */
#include "backend/c/emit.h"

/* ---- buffers ---- */

static bool in_workspace(const Buffer *b)
{
    return b->space == SPACE_WORKSPACE || b->space == SPACE_TILE;
}

bool needs_workspace(const Kernel *k, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC && in_workspace(&k->bufs.at[s->buf])) {
            return true;
        }
    }
    return false;
}

bool bytes_fixed(const Buffer *b, int64_t *bytes)
{
    int64_t size = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0) {
            return false;
        }
        size = sat_mul(size, b->extent[d].n);
    }
    CHECK(size <= SIZE_LIMIT);
    *bytes = (size + 63) / 64 * 64;
    return true;
}

const char *bytes_text(Emitter *e, const Buffer *b)
{
    int64_t size = dtype_bytes(b->dtype);
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym < 0) {
            size = sat_mul(size, b->extent[d].n);
        } else {
            text_printf(&t, " * %s", e->w.dim[b->extent[d].sym]);
        }
    }
    return str_format(e->w.arena, "%s(%lld%s)", help_fixed(e->w.help, "tdsl_pad"),
                      (long long)size, t.at);
}

/* The address where the buffer starts. */
static const char *place_text(Emitter *e, WorkspaceTop ws)
{
    return ws.offset == 0 ? ws.base
                          : str_format(e->w.arena, "%s + %lld", ws.base, (long long)ws.offset);
}

/* Declares the buffer; returns where the next one goes. `more`: there is a next one. */
static WorkspaceTop alloc_emit(Emitter *e, BufRef buf, WorkspaceTop ws, bool more)
{
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
    if (e->in_tile) {
        int64_t size = 0;
        CHECK(bytes_fixed(b, &size));
        line_printf(&e->w, "%s %s[%lld];", c_type(b->dtype), name,
                    (long long)(size / dtype_bytes(b->dtype)));
        return ws;
    }
    line_printf(&e->w, "%s *TDSL_RESTRICT const %s = (%s *)(void *)(%s);", c_type(b->dtype),
                name, c_type(b->dtype), place_text(e, ws));
    int64_t bytes = 0;
    if (bytes_fixed(b, &bytes)) {
        ws.offset += bytes;
    } else if (more) {
        const char *base = names_take(&e->w.names, "ws");
        line_printf(&e->w, "unsigned char *const %s = %s + %s;", base, place_text(e, ws),
                    bytes_text(e, b));
        ws = (WorkspaceTop){base, 0};
    }
    return ws;
}

/* Which value the next statements compute; said once. Not its line: a token, AST or checked dump is laid out in another
 * way than its program, and the C of all dumps is the same. */
static void name_comment(Emitter *e, const Stmt *s)
{
    if (s->name == NULL || s->name == e->last_name) {
        return;
    }
    Text t;
    text_init(&t, e->w.arena);
    text_comment(&t, (Str){s->name->text, s->name->n});
    line_printf(&e->w, "/* %s */", t.at);
    e->last_name = s->name;
}

void tile_emit(Emitter *e, const Stmt *s)
{
    name_comment(e, s);
    if (e->vector_bytes > 0 && is_unrolled(s)) {
        unrolled_emit(e, s);
        return;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        loop_begin(&e->w, s->index[i].var, s->index[i].range, 1, FOR_ALL);
    }
    assign_put(&e->w, s);
    for (uint32_t i = 0; i < s->n_index; i++) {
        scope_end(&e->w);
    }
}

void block_emit(Emitter *e, Stmt *const *body, uint32_t n, WorkspaceTop ws)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        switch (s->kind) {
        case STMT_ALLOC:
            if (!e->in_tile && is_register_alloc(e->w.k, s)) {
                register_tile_emit(e, body + i, n - i);
                return;
            }
            ws = alloc_emit(e, s->buf, ws, needs_workspace(e->w.k, body + i + 1, n - i - 1));
            break;
        case STMT_FOR:
            loop_begin(&e->w, s->var, s->range, s->step, s->part);
            block_emit(e, s->body, s->n_body, ws);
            scope_end(&e->w);
            break;
        case STMT_BLOCK:
            line_put(e->w.out, "{");
            scope_begin(&e->w);
            block_emit(e, s->body, s->n_body, ws);
            scope_end(&e->w);
            break;
        case STMT_TILE:
            tile_emit(e, s);
            break;
        }
    }
}
