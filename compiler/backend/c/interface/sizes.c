/* SPDX-License-Identifier: Apache-2.0 */
/* The function that counts what workspace a call needs, whose extents are given then. */
#include "backend/c/interface/entry.h"

/* How often the open dim `sym` is among the extents from `d` on. */
static uint32_t count_dim(ArgShape s, uint32_t d, int32_t sym)
{
    uint32_t count = 0;
    for (; d < s.rank; d++) {
        count += s.extent[d].sym == sym ? 1 : 0;
    }
    return count;
}

static bool buf_is_argument(const Kernel *k, BufRef buf)
{
    return k->bufs.at[buf].space == SPACE_ARGUMENT;
}

/* The same for arrays of as many bytes whatever the open dims are. */
static const char *size_key(const Emitter *e, const Buffer *b, int64_t fixed)
{
    Text t;
    text_init(&t, e->w.arena);
    text_printf(&t, "%lld", (long long)fixed);
    for (uint32_t s = 0; s < e->w.k->dims.list.n; s++) {
        uint32_t count = count_dim((ArgShape){b->rank, b->extent}, 0, (int32_t)s);
        if (count > 0) {
            text_printf(&t, " %u*%u", s, count);
        }
    }
    return t.at;
}

/* Every array's bytes and strides fit: otherwise no address may be computed. `seen` holds the sizes that have been looked
 * at; those of arguments are, by tdsl_check. */
static void check_buffer(Emitter *e, const Buffer *b, bool is_argument, Names *seen)
{
    bool open = false;
    int64_t fixed = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        open |= b->extent[d].sym >= 0;
        fixed =
            b->extent[d].sym < 0 && b->extent[d].n > 0 ? sat_mul(fixed, b->extent[d].n) : fixed;
    }
    if (!open || !names_claim(seen, size_key(e, b, fixed)) || is_argument) {
        return;
    }
    const char *size = str_format(e->w.arena, "%lld", (long long)fixed);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0) {
            size = str_format(e->w.arena, "%s(%s, %s)", help_fixed(e->w.help, "tdsl_grow"),
                              size, e->w.dim[b->extent[d].sym]);
        }
    }
    line_printf(&e->w, "if (%s < 0) {", size);
    line_printf(&e->w, "    return SIZE_MAX;");
    line_printf(&e->w, "}");
}

/* Are there buffers that are no arguments and whose bytes depend on open dims? */
static bool any_open_buffer(const Kernel *k)
{
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        int64_t bytes = 0;
        if (!buf_is_argument(k, i) && !bytes_fixed(&k->bufs.at[i], &bytes)) {
            return true;
        }
    }
    return false;
}

/* Where a stack of buffers stands: a variable plus a number. */
typedef struct Height {
    const char *base; /* null: nothing yet */
    int64_t offset;
} Height;

/* Where a size_t cannot hold the number, no call gets to it. */
static const char *bytes_number(const Emitter *e, int64_t bytes)
{
    const char *cast = bytes > INT32_MAX ? "(size_t)" : "";
    return str_format(e->w.arena, "%s%lld", cast, (long long)bytes);
}

static const char *height_text(Emitter *e, Height h)
{
    if (h.base == NULL) {
        return bytes_number(e, h.offset);
    }
    return h.offset == 0
               ? h.base
               : str_format(e->w.arena, "%s(%s, %s)", help_fixed(e->w.help, "tdsl_plus"),
                            h.base, bytes_number(e, h.offset));
}

static void raise_need(Emitter *e, Height h)
{
    if (h.base == NULL && h.offset == 0) {
        return;
    }
    const char *top = height_text(e, h);
    line_printf(&e->w, "%s = %s < %s ? %s : %s;", e->own.need, e->own.need, top, top,
                e->own.need);
}

static bool count_block(Emitter *e, Stmt *const *body, uint32_t n, Height h);

const char *piece_bytes_emit(Emitter *e, const Stmt *s)
{
    int64_t bytes = 0;
    if (stack_fixed(e->w.k, s->body, s->n_body, &bytes)) {
        return bytes_number(e, bytes);
    }
    const char *need = e->own.need;
    e->own.need = e->own.each;
    line_printf(&e->w, "size_t %s = 0;", e->own.each);
    (void)count_block(e, s->body, s->n_body, (Height){NULL, 0});
    e->own.need = need;
    return e->own.each;
}

/* Prints the counting of a parallel loop: each of the pieces that there are has buffers of its own above `h`. */
static void count_shared(Emitter *e, const Stmt *s, Height h)
{
    scope_printf(&e->w, "{");
    const char *each = piece_bytes_emit(e, s), *name = names_take(&e->w.names, "top");
    const char *pieces = shared_pieces_emit(e, s);
    const char *room = help_fixed(e->w.help, "tdsl_room"), *height = height_text(e, h);
    int64_t cut = cut_bytes(e->w.k, s, e->w.k->bufs.n);
    if (cut == 0) {
        line_printf(&e->w, "const size_t %s = %s(%s, %s, %s);", name, room, height, each,
                    pieces);
    } else {
        const char *n = names_take(&e->w.names, "pieces");
        line_printf(&e->w, "const int32_t %s = %s;", n, pieces);
        line_printf(&e->w, "const size_t %s = %s(%s(%s, %s, %s), %lld, %s, %s, %lld, %lld);",
                    name, help_fixed(e->w.help, "tdsl_room_cut"), room, height, each, n,
                    (long long)cut, n, shared_count_text(e, s), (long long)s->step,
                    (long long)s->threads->cut);
    }
    raise_need(e, (Height){name, 0});
    scope_end(&e->w);
}

/* Prints the counting of one block's buffers, which stand above `h`: the highest point of each run of fixed sizes is compared
 * once. Returns whether the need is `h` or more then, whichever sizes blocks inside are run for. */
static bool count_block(Emitter *e, Stmt *const *body, uint32_t n, Height h)
{
    bool grown = false, raised = false;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->threads != NULL && needs_workspace(e->w.k, body + i, 1)) {
            count_shared(e, s, h);
            raised = true;
        } else if (stmt_has_body(s) && needs_workspace(e->w.k, s->body, s->n_body)) {
            bool tested = s->kind == STMT_BLOCK && s->when != NULL;
            if (tested) {
                test_begin(e, s->when);
            }
            bool inner = count_block(e, s->body, s->n_body, h);
            if (tested) {
                scope_end(&e->w);
            }
            raised = raised || (inner && !tested);
        } else if (needs_workspace(e->w.k, body + i, 1)) {
            Room room = room_of(e, body + i, n - i);
            if (room.text == NULL) {
                h.offset = sat_add(h.offset, room.bytes);
            } else {
                const char *name = names_take(&e->w.names, "top");
                const char *top = height_text(e, h);
                line_printf(&e->w, "const size_t %s = %s(%s, %s);", name,
                            help_fixed(e->w.help, "tdsl_plus"), top, room.text);
                h = (Height){name, 0};
            }
            grown = true;
            raised = false;
        }
    }
    if (grown && !raised) {
        raise_need(e, h);
    }
    return grown || raised;
}

bool has_sizes(const Kernel *k)
{
    return any_open_buffer(k) || needs_workspace(k, k->body, k->n_body);
}

bool sizes_fixed(const Kernel *k, int64_t *bytes)
{
    bool fixed = !any_open_buffer(k) && !any_split(k, k->body, k->n_body, true) &&
                 stack_fixed(k, k->body, k->n_body, bytes);
    *bytes = workspace_bytes(k, false);
    return fixed && *bytes <= INT32_MAX / 2;
}

void dims_emit(Emitter *e, const char *text)
{
    for (uint32_t d = 0; d < n_dims(e->w.k); d++) {
        if (mentions(text, e->w.dim[d])) {
            line_printf(&e->w, "const int64_t %s = dims[%u];", e->w.dim[d], d);
        }
    }
}

/* What is in the function of sizes, but for its variables. */
static void sizes_body_emit(Emitter *e)
{
    const Kernel *k = e->w.k;
    Names seen;
    names_init(&seen, e->w.arena);
    for (uint32_t pass = 0; pass < 2; pass++) { /* arguments first */
        for (uint32_t i = 0; i < k->bufs.n; i++) {
            if (buf_is_argument(k, i) == (pass == 0)) {
                check_buffer(e, &k->bufs.at[i], pass == 0, &seen);
            }
        }
    }
    (void)count_block(e, k->body, k->n_body, (Height){NULL, 0});
}

void kernel_sizes_emit(Emitter *e)
{
    Text *out = e->w.out, body;
    const Kernel *k = e->w.k;
    const char *need = e->own.need;
    int64_t most = stack_bytes(k, false), bytes = 0;
    if (sizes_fixed(k, &bytes)) {
        return;
    }
    text_printf(out,
                "\n/* The workspace that %s needs. */\n"
                "static size_t tdsl_sizes_%s(const int64_t *dims, int32_t threads)\n{\n",
                e->symbol, e->symbol);
    out->indent++;
    if (most > INT32_MAX / 2) { /* numbers that a size_t of 32 bits cannot hold */
        directive_put(out, str_format(e->w.arena, "#if SIZE_MAX / 2 < %lld", (long long)most));
        line_put(out, "(void)dims; (void)threads;");
        line_put(out, "return SIZE_MAX;");
        directive_put(out, "#else");
    }
    lines_init(&body, e->w.arena,
               out->indent); /* which dims and products it needs is known then */
    e->w.out = &body;
    e->w.counts = (Counts){0}; /* those of the loops have no names here */
    sizes_body_emit(e);
    e->w.out = out;
    line_printf(&e->w, "size_t %s = 0;", need);
    Text products;
    lines_init(&products, e->w.arena, out->indent);
    e->w.out = &products;
    dims_computed_emit(e, body.at);
    e->w.out = out;
    dims_emit(e, str_format(e->w.arena, "%s%s", products.at, body.at));
    line_put(out, "(void)dims; (void)threads;");
    out->indent--;
    text_put(out, products.at);
    text_put(out, body.at);
    out->indent++;
    if (needs_workspace(k, k->body, k->n_body)) {
        line_printf(&e->w, "return %s == 0 ? 0 : %s(%s, %d); /* it may begin anywhere */", need,
                    help_fixed(e->w.help, "tdsl_plus"), need, WORKSPACE_ALIGNMENT);
    } else {
        line_printf(&e->w, "return %s;", need);
    }
    if (most > INT32_MAX / 2) {
        directive_put(out, "#endif");
    }
    out->indent--;
    text_put(out, "}\n");
}
