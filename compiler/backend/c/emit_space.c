/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace. Buffers are laid out as a stack that follows the blocks: each starts where the
 * one before it in the same block ends, so what blocks beside each other use is shared; and a
 * buffer that lies over another starts where that one does. A room is what the buffers over each
 * other need: as much as the largest. Addresses and sizes are both counted with it. */
#include <string.h>

#include "backend/c/emit.h"

/* Single elements are variables of the function; panels that are cut lie before all others of their piece. */
static bool in_workspace(const Buffer *b)
{
    return b->rank > 0 && !b->cut &&
           (b->space == SPACE_WORKSPACE || (b->space == SPACE_TILE && !b->cascade));
}

int64_t cut_bytes(const Kernel *k, const Stmt *loop, BufRef until)
{
    StmtWalk w;
    int64_t bytes = 0;
    if (loop->threads == NULL || loop->threads->cut == 0) {
        return 0;
    }
    for (const Stmt *s = stmt_first(&w, loop->body, loop->n_body);
         s != NULL && !(s->kind == STMT_ALLOC && s->buf == until); s = stmt_next(&w)) {
        const Buffer *b = s->kind == STMT_ALLOC ? &k->bufs.at[s->buf] : NULL;
        bytes += b != NULL && b->cut ? dtype_bytes(b->dtype) * b->extent[0].n : 0;
    }
    return bytes;
}

bool needs_workspace(const Kernel *k, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if ((s->kind == STMT_ALLOC && s->over == 0 && in_workspace(&k->bufs.at[s->buf])) ||
            (s->kind == STMT_FOR && cut_bytes(k, s, k->bufs.n) > 0)) {
            return true;
        }
    }
    return false;
}

/* With typical extents for open ones if `k` is given. */
static bool bytes_known(const Kernel *k, const Buffer *b, int64_t *bytes)
{
    int64_t size = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0 && k == NULL) {
            return false;
        }
        size = sat_mul(size, k == NULL ? b->extent[d].n : dim_typical(&k->dims, b->extent[d]));
    }
    *bytes = size > SIZE_LIMIT - 63 ? SIZE_LIMIT : (size + 63) / 64 * 64;
    return true;
}

bool bytes_fixed(const Buffer *b, int64_t *bytes)
{
    bool fixed = bytes_known(NULL, b, bytes);
    CHECK(!fixed || *bytes < SIZE_LIMIT);
    return fixed;
}

static const char *bytes_text(Emitter *e, const Buffer *b)
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

/* The next alloc that lies over what was allocated last in the room of `*buf`, from statement i
 * on; n when there is none. */
static uint32_t next_over(Stmt *const *body, uint32_t n, uint32_t i, BufRef *buf)
{
    while (i < n && !(body[i]->kind == STMT_ALLOC && body[i]->over == 1 + *buf)) {
        i++;
    }
    *buf = i < n ? body[i]->buf : *buf;
    return i;
}

/* Of those in the room whose extents are numbers, or typical ones. */
static int64_t room_fixed(const Kernel *k, Stmt *const *body, uint32_t n, bool typical)
{
    BufRef buf = body[0]->buf;
    int64_t most = 0, bytes = 0;
    for (uint32_t i = 0; i < n; i = next_over(body, n, i + 1, &buf)) {
        if (bytes_known(typical ? k : NULL, &k->bufs.at[buf], &bytes) && bytes > most) {
            most = bytes;
        }
    }
    return most;
}

/* Those whose extents are open, each size once. */
static const char *room_text(Emitter *e, Stmt *const *body, uint32_t n, int64_t fixed)
{
    BufRef buf = body[0]->buf;
    int64_t bytes = 0;
    VEC(const char *) seen = {0};
    const char *text = NULL;
    if (fixed > 0) {
        text = str_format(e->w.arena, "%lld", (long long)fixed);
    }
    for (uint32_t i = 0; i < n; i = next_over(body, n, i + 1, &buf)) {
        const Buffer *b = &e->w.k->bufs.at[buf];
        const char *own = bytes_fixed(b, &bytes) ? NULL : bytes_text(e, b);
        for (uint32_t k = 0; own != NULL && k < seen.n; k++) {
            own = strcmp(own, seen.at[k]) == 0 ? NULL : own;
        }
        if (own != NULL) {
            vec_push(e->w.arena, &seen, own);
            text = text == NULL ? own
                                : str_format(e->w.arena, "%s(%s, %s)",
                                             help_fixed(e->w.help, "tdsl_larger"), text, own);
        }
    }
    return seen.n > 0 ? text : NULL;
}

Room room_of(Emitter *e, Stmt *const *body, uint32_t n)
{
    BufRef buf = body[0]->buf;
    Room room = {.bytes = room_fixed(e->w.k, body, n, false)};
    room.shared = next_over(body, n, 1, &buf) < n;
    room.text = room_text(e, body, n, room.bytes);
    return room;
}

/* In one piece. */
static int64_t cut_height(const Kernel *k, const Stmt *loop, bool typical)
{
    const Range *r = &loop->range;
    int64_t bytes = cut_bytes(k, loop, k->bufs.n), most = loop->step;
    bool known = bytes > 0 && r->clipped && (typical || r->limit.sym < 0) && r->start.n == 0;
    if (known) {
        int64_t count = dim_typical(&k->dims, r->limit) - r->start.base;
        count = r->span > 0 && r->span < count ? r->span : count < 0 ? 0 : count;
        count = (count + loop->threads->cut - 1) / loop->threads->cut * loop->threads->cut;
        most = count < most ? count : most;
    }
    return sat_mul(bytes, most);
}

static int64_t stack_height(const Kernel *k, Stmt *const *body, uint32_t n, int64_t at,
                            bool typical)
{
    int64_t most = at;
    for (uint32_t i = 0; i < n; i++) {
        const DimTest *when = body[i]->kind == STMT_BLOCK ? body[i]->when : NULL;
        if (typical && when != NULL &&
            !dim_test_holds(when, dim_typical(&k->dims, dim_open(when->dim)))) {
            continue;
        }
        if (stmt_has_body(body[i])) {
            int64_t inner = stack_height(k, body[i]->body, body[i]->n_body, at, typical);
            inner = sat_add(inner, cut_height(k, body[i], typical));
            most = inner > most ? inner : most;
        } else if (needs_workspace(k, body + i, 1)) {
            at = sat_add(at, room_fixed(k, body + i, n - i, typical));
            most = at > most ? at : most;
        }
    }
    return most;
}

bool stack_fixed(const Kernel *k, Stmt *const *body, uint32_t n, int64_t *bytes)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        int64_t own = 0;
        bool tested = s->kind == STMT_BLOCK && s->when != NULL;
        if ((tested && needs_workspace(k, s->body, s->n_body)) ||
            (s->kind == STMT_FOR && cut_bytes(k, s, k->bufs.n) > 0) ||
            (s->kind == STMT_ALLOC && in_workspace(&k->bufs.at[s->buf]) &&
             !bytes_fixed(&k->bufs.at[s->buf], &own))) {
            return false;
        }
    }
    *bytes = stack_height(k, body, n, 0, false);
    return true;
}

int64_t stack_bytes(const Kernel *k, bool typical)
{
    return stack_height(k, k->body, k->n_body, 0, typical);
}

int64_t workspace_bytes(const Kernel *k, bool typical)
{
    int64_t bytes = stack_bytes(k, typical);
    return bytes == 0 ? 0 : sat_add(bytes, WORKSPACE_ALIGNMENT);
}
