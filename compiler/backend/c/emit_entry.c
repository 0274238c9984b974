/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a kernel's loops: its prototype, the count of its workspace, the function that they are in. */
#include <string.h>

#include "backend/c/entry.h"

const Buffer *arg_buffer(const Kernel *k, uint32_t i)
{
    return &k->bufs.at[k->args.at[i].buf];
}

bool is_read_only(ArgRole role)
{
    return role == ARG_IN;
}

/* "[o][v][3]", "[n + k - 1]" */
static const char *shape_text(const Emitter *e, ArgShape s)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < s.rank; d++) {
        text_char(&t, '[');
        dim_put(&t, &e->w.k->dims, s.extent[d], e->w.dim);
        text_char(&t, ']');
    }
    return t.at;
}

/* That a caller gives. */
uint32_t n_dims(const Kernel *k)
{
    return dims_given(&k->dims);
}

/* "int64_t o, int64_t v", or "void". */
const char *dims_parameters(const Emitter *e)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < n_dims(e->w.k); d++) {
        text_printf(&t, d == 0 ? "int64_t %s" : ", int64_t %s", e->w.dim[d]);
    }
    return t.n == 0 ? "void" : t.at;
}

/* "dims[0], dims[1]" or "o, v", with `after` behind it if there are any. */
const char *dims_arguments(const Emitter *e, bool by_pointer, const char *after)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < n_dims(e->w.k); d++) {
        text_put(&t, d == 0 ? "" : ", ");
        if (by_pointer) {
            text_printf(&t, "dims[%u]", d);
        } else {
            text_put(&t, e->w.dim[d]);
        }
    }
    text_put(&t, t.n == 0 ? "" : after);
    return t.at;
}

/* ---- prototypes ---- */

/* The entries in the header, for one thread and for several. */
static void prototype_emit(Emitter *e, Text *out, bool threads)
{
    const Kernel *k = e->w.k;
    text_printf(out, "TDSL_NODISCARD tdsl_status %s%s(\n", e->symbol,
                threads ? "_threads" : "");
    for (uint32_t d = 0; d < n_dims(k); d++) {
        text_printf(out, "    int64_t %s,\n", e->w.dim[d]);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = arg_buffer(k, i);
        const char *name = e->w.buf[k->args.at[i].buf];
        if (k->args.at[i].role == ARG_SCALAR) {
            text_printf(out, "    %s %s,\n", c_type(b->dtype), name);
            continue;
        }
        text_printf(out, "    %s%s *TDSL_RESTRICT %s,",
                    is_read_only(k->args.at[i].role) ? "const " : "", c_type(b->dtype), name);
        ArgShape shape = arg_shape(k, i);
        text_printf(out, shape.rank > 0 ? " /* %s */\n" : "\n", shape_text(e, shape));
    }
    text_printf(out, "    void *TDSL_RESTRICT workspace, size_t workspace_bytes%s);\n",
                threads ? ",\n    const tdsl_threads *threads" : "");
}

/* "const double *TDSL_RESTRICT A, double alpha, " */
const char *args_parameters(const Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        const char *type = c_type(arg_buffer(k, i)->dtype), *name = e->w.buf[a->buf];
        if (a->role == ARG_SCALAR) {
            text_printf(&t, "%s %s, ", type, name);
        } else {
            text_printf(&t, "%s%s *TDSL_RESTRICT %s, ", is_read_only(a->role) ? "const " : "",
                        type, name);
        }
    }
    return t.at;
}

void kernel_header_emit(Emitter *e, Text *out)
{
    const Kernel *k = e->w.k;
    text_put(out, "\n/* ");
    const char *head = k->signature != NULL ? k->signature : k->name->text;
    text_comment(out, str_from(head));
    text_put(out,
             "\n * Row-major. Inputs may overlap each other; nothing else may overlap. The "
             "workspace may\n * begin at any address; a call needs it no longer than it "
             "lasts.");
    if (e->n_computed > 0) {
        text_printf(out,
                    " The caller gives %s;\n * extents made of them are computed, and refused "
                    "where one is below 0.",
                    dims_arguments(e, false, ""));
    }
    text_put(out, " */\n");
    prototype_emit(e, out, false);
    text_printf(out, "size_t %s_workspace_bytes(%s);\n", e->symbol, dims_parameters(e));
    prototype_emit(e, out, true);
    text_printf(out, "size_t %s_workspace_bytes_threads(%sint32_t threads);\n", e->symbol,
                n_dims(k) == 0 ? "" : str_format(e->w.arena, "%s, ", dims_parameters(e)));
    if (n_dims(k) == 0 && e->macro != NULL) {
        text_printf(out, "#define %s ((size_t)%lld)\n", e->macro,
                    (long long)workspace_bytes(k, false));
    }
    text_printf(out, "extern const tdsl_kernel_info %s_info;\n", e->symbol);
}

/* ---- sizes ---- */

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
    line_put(e->w.out, "{");
    scope_begin(&e->w);
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

/* ---- the loops ---- */

/* Does any statement name the argument? */
static bool arg_is_used(const Kernel *k, uint32_t arg)
{
    StmtWalk w;
    BufRef buf = k->args.at[arg].buf;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        if (s->dst == buf || expr_reads(s->value, buf)) {
            return true;
        }
    }
    return false;
}

/* What the loops get beside dims and arguments: with types, or as the caller has it. */
const char *rest_text(Emitter *e, bool types)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    if (needs_workspace(k, k->body, k->n_body)) {
        text_printf(&t, types ? "unsigned char *%s, " : "ws, ", e->own.ws);
    }
    if (e->n_parts > 0) {
        text_printf(&t, types ? "const tdsl_threads *threads, int32_t %s, " : "threads, crew, ",
                    e->own.crew);
    }
    if (e->n_parts > 0 && any_split(k, k->body, k->n_body, true)) {
        text_printf(&t, types ? "size_t %s, " : "space, ", e->own.space);
    }
    return t.at;
}

/* Without ", " at its end. */
const char *list_text(Emitter *e, const char *text, const char *empty)
{
    size_t n = strlen(text);
    return n < 2 ? empty : str_format(e->w.arena, "%.*s", (int)(n - 2), text);
}

void kernel_loops_emit(Emitter *e, const Text *body)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    const char *dims = n_dims(k) == 0 ? "" : str_format(e->w.arena, "%s, ", dims_parameters(e));
    const char *all =
        str_format(e->w.arena, "%s%s%s", dims, args_parameters(e), rest_text(e, true));
    text_put(out, e->parts.at);
    text_put(out, "\n");
    line_printf(&e->w, "static void tdsl_loops_%s(%s)", e->symbol, list_text(e, all, "void"));
    line_put(out, "{");
    out->indent++;
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (!arg_is_used(k, i)) {
            line_printf(&e->w, "(void)%s;", e->w.buf[k->args.at[i].buf]);
        }
    }
    Text products;
    lines_init(&products, e->w.arena, out->indent);
    e->w.out = &products;
    dims_computed_emit(e, body->at);
    e->w.out = out;
    for (uint32_t d = 0; d < n_dims(k); d++) {
        if (!mentions(body->at, e->w.dim[d]) && !mentions(products.at, e->w.dim[d])) {
            line_printf(&e->w, "(void)%s;", e->w.dim[d]);
        }
    }
    if (needs_workspace(k, k->body, k->n_body) && !mentions(body->at, e->own.ws)) {
        line_printf(&e->w, "(void)%s;", e->own.ws); /* all of it became locals */
    }
    out->indent--;
    text_put(out, products.at);
    out->indent++;
    bool apart = e->own.folds != e->own.isa;
    if (e->uses_isa && (!apart || mentions(body->at, e->own.isa))) {
        line_printf(&e->w, "const tdsl_isa *const %s = tdsl_isa_here();", e->own.isa);
    }
    if (apart && mentions(body->at, e->own.folds)) {
        line_printf(&e->w, "const tdsl_folds *const %s = tdsl_folds_here();", e->own.folds);
    }
    out->indent--;
    text_put(out, body->at);
    text_put(out, e->streams ? "    TDSL_STREAMED;\n}\n" : "}\n");
}
