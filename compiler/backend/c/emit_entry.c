/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a kernel's loops: its prototype, the check of all sizes (which is also where the workspace is counted),
 * the entry that refuses what cannot be computed, the entry by pointers, and the table that describes the kernel. */
#include <string.h>

#include "backend/c/emit.h"

static const Buffer *arg_buffer(const Kernel *k, uint32_t i)
{
    return &k->bufs.at[k->args.at[i].buf];
}

/* What a caller hands over for it. */
typedef struct ArgShape {
    uint32_t rank;
    const Dim *extent;
} ArgShape;

static ArgShape arg_shape(const Kernel *k, uint32_t i)
{
    const Arg *a = &k->args.at[i];
    const Buffer *b = arg_buffer(k, i);
    return a->shape != NULL ? (ArgShape){a->rank, a->shape} : (ArgShape){b->rank, b->extent};
}

static bool is_read_only(ArgRole role)
{
    return role == ARG_IN;
}

/* "[o][v][3]" */
static const char *shape_text(const Emitter *e, ArgShape s)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < s.rank; d++) {
        text_printf(&t, "[%s]", c_dim_text(&e->w, s.extent[d]));
    }
    return t.at;
}

/* That a caller gives. */
static uint32_t n_dims(const Kernel *k)
{
    return dims_given(&k->dims);
}

/* const int64_t m_n = tdsl_product(m, n); of the dims that are products and named in `text`. */
static void products_emit(Emitter *e, const char *text)
{
    const Kernel *k = e->w.k;
    for (uint32_t d = n_dims(k); d < k->dims.list.n; d++) {
        const DimInfo *info = &k->dims.list.at[d];
        const char *value = c_dim_text(&e->w, info->factor[0]);
        if (strstr(text, e->w.dim[d]) == NULL) {
            continue;
        }
        for (uint32_t f = 1; f < info->n_factors; f++) {
            value = str_format(e->w.arena, "%s(%s, %s)", help_fixed(e->w.help, "tdsl_product"),
                               value, c_dim_text(&e->w, info->factor[f]));
        }
        if (info->divisor > 1) {
            value =
                str_format(e->w.arena, "%s(0, %s, %lld)", help_fixed(e->w.help, "tdsl_steps"),
                           value, (long long)info->divisor);
        }
        line_printf(&e->w, "const int64_t %s = %s;", e->w.dim[d], value);
    }
}

/* "int64_t o, int64_t v", or "void". */
static const char *dims_parameters(const Emitter *e)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < n_dims(e->w.k); d++) {
        text_printf(&t, d == 0 ? "int64_t %s" : ", int64_t %s", e->w.dim[d]);
    }
    return t.n == 0 ? "void" : t.at;
}

/* "dims[0], dims[1]" or "o, v", with `after` behind it if there are any. */
static const char *dims_arguments(const Emitter *e, bool by_pointer, const char *after)
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

typedef enum Entry { ENTRY_STATIC, ENTRY_ONE_THREAD, ENTRY_THREADS } Entry;

/* Inside of the file all goes to the static entry: an exported symbol may be bound to another library's. */
static void prototype_emit(Emitter *e, Text *out, bool header, Entry entry)
{
    const Kernel *k = e->w.k;
    const bool threads = entry != ENTRY_ONE_THREAD;
    text_printf(out, "%stdsl_status %s%s%s(\n",
                header                  ? "TDSL_NODISCARD "
                : entry == ENTRY_STATIC ? "static "
                                        : "",
                entry == ENTRY_STATIC ? "tdsl_entry_" : "", e->symbol,
                entry == ENTRY_THREADS ? "_threads" : "");
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
        text_printf(out, header && shape.rank > 0 ? " /* %s */\n" : "\n", shape_text(e, shape));
    }
    text_printf(out, "    void *TDSL_RESTRICT workspace, size_t workspace_bytes%s)%s\n",
                threads ? ",\n    const tdsl_threads *threads" : "", header ? ";" : "");
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
             "lasts. */\n");
    prototype_emit(e, out, true, ENTRY_ONE_THREAD);
    text_printf(out, "size_t %s_workspace_bytes(%s);\n", e->symbol, dims_parameters(e));
    prototype_emit(e, out, true, ENTRY_THREADS);
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

/* Is the extent the first one that is this open dim? */
static bool is_new_dim(ArgShape s, uint32_t d)
{
    int32_t sym = s.extent[d].sym;
    return sym >= 0 && count_dim(s, 0, sym) == count_dim(s, d, sym);
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

/* Every array's bytes and strides fit: otherwise no address may be computed. `seen` holds the
 * sizes that have been looked at. */
static void check_buffer(Emitter *e, const Buffer *b, Names *seen)
{
    bool open = false;
    int64_t fixed = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        open |= b->extent[d].sym >= 0;
        fixed =
            b->extent[d].sym < 0 && b->extent[d].n > 0 ? sat_mul(fixed, b->extent[d].n) : fixed;
    }
    if (!open || !names_claim(seen, size_key(e, b, fixed))) {
        return;
    }
    line_printf(&e->w, "%s = %lld;", e->own.size, (long long)fixed);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0) {
            line_printf(&e->w, "%s = %s(%s, %s);", e->own.size,
                        help_fixed(e->w.help, "tdsl_grow"), e->own.size,
                        e->w.dim[b->extent[d].sym]);
        }
    }
    line_printf(&e->w, "if (%s < 0) {", e->own.size);
    line_printf(&e->w, "    return TDSL_E_OVERFLOW;");
    line_printf(&e->w, "}");
}

static bool any_open_buffer(const Kernel *k)
{
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        int64_t bytes = 0;
        if (!bytes_fixed(&k->bufs.at[i], &bytes)) {
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

static const char *height_text(Emitter *e, Height h)
{
    if (h.base == NULL) {
        return str_format(e->w.arena, "%lld", (long long)h.offset);
    }
    return h.offset == 0
               ? h.base
               : str_format(e->w.arena, "%s(%s, %lld)", help_fixed(e->w.help, "tdsl_plus"),
                            h.base, (long long)h.offset);
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

static void count_block(Emitter *e, Stmt *const *body, uint32_t n, Height h);

/* What each further thread needs: the most of all parallel loops. */
static void count_each(Emitter *e, const Stmt *s)
{
    if (!e->in_part && loop_is_split(e->w.k, s) &&
        needs_workspace(e->w.k, s->body, s->n_body)) {
        const char *need = e->own.need;
        e->own.need = e->own.each;
        e->in_part = true;
        count_block(e, s->body, s->n_body, (Height){NULL, 0});
        e->in_part = false;
        e->own.need = need;
    }
}

/* Prints the counting of one block's buffers; the highest point of each run of fixed sizes is compared once. */
static void count_block(Emitter *e, Stmt *const *body, uint32_t n, Height h)
{
    bool raised = true;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        count_each(e, s);
        if (stmt_has_body(s) && needs_workspace(e->w.k, s->body, s->n_body)) {
            bool tested = s->kind == STMT_BLOCK && s->when != NULL;
            if (tested) {
                test_begin(e, s->when);
            }
            count_block(e, s->body, s->n_body, h);
            if (tested) {
                scope_end(&e->w);
            }
            raised = raised || !tested;
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
            raised = false;
        }
    }
    if (!raised) {
        raise_need(e, h);
    }
}

/* Numbers that a size_t of 32 bits cannot hold are not printed for it: such a kernel has no
 * workspace there. True: directive_put "#endif" after what is. */
static bool large_sizes_emit(Emitter *e, bool each)
{
    const Kernel *k = e->w.k;
    int64_t most = stack_bytes(k, false);
    if (most <= INT32_MAX / 2) {
        return false;
    }
    directive_put(e->w.out, str_format(e->w.arena, "#if SIZE_MAX / 2 < %lld", (long long)most));
    for (uint32_t d = 0; d < n_dims(k); d++) {
        line_printf(&e->w, "(void)%s;", e->w.dim[d]);
    }
    line_printf(&e->w, "(void)%s;", e->own.bytes);
    if (each) {
        line_printf(&e->w, "(void)%s;", e->own.more);
    }
    line_printf(&e->w, "return TDSL_E_OVERFLOW;");
    directive_put(e->w.out, "#else");
    return true;
}

/* The functions that say how much workspace a call needs. */
static void bytes_emit(Emitter *e, bool each)
{
    Text *out = e->w.out;
    bool dims = n_dims(e->w.k) > 0;
    const char *bytes = e->own.bytes, *more = e->own.each;
    const char *parameters = dims ? dims_parameters(e) : "";
    text_printf(out,
                "\nstatic size_t tdsl_need_%s(%s%sint32_t threads)\n{\n    size_t %s = 0%s;\n",
                e->symbol, parameters, dims ? ", " : "", bytes,
                each ? str_format(e->w.arena, ", %s = 0", more) : "");
    text_put(out, each ? "" : "    (void)threads;\n");
    text_printf(out, "    return tdsl_sizes_%s(%s&%s%s) == TDSL_OK ? ", e->symbol,
                dims_arguments(e, false, ", "), bytes,
                each ? str_format(e->w.arena, ", &%s", more) : "");
    if (each) {
        text_printf(out, "%s(%s, %s, threads)", help_fixed(e->w.help, "tdsl_room"), bytes,
                    more);
    } else {
        text_put(out, bytes);
    }
    text_printf(out, " : SIZE_MAX;\n}\n");
    const char *arguments = dims_arguments(e, false, ", ");
    text_printf(out,
                "\nsize_t %s_workspace_bytes_threads(%s%sint32_t threads)\n{\n"
                "    return tdsl_need_%s(%sthreads);\n}\n",
                e->symbol, parameters, dims ? ", " : "", e->symbol, arguments);
    text_printf(out, "\nsize_t %s_workspace_bytes(%s)\n{\n    return tdsl_need_%s(%s1);\n}\n",
                e->symbol, dims ? parameters : "void", e->symbol, arguments);
}

void kernel_sizes_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_printf(out,
                "\n/* Are the extents possible, and how much workspace do they need? */\n");
    const char *dims = dims_parameters(e);
    bool each = any_split(k, k->body, k->n_body, true);
    text_printf(out, "static tdsl_status tdsl_sizes_%s(%s%ssize_t *%s%s)\n{\n", e->symbol,
                n_dims(k) > 0 ? dims : "", n_dims(k) > 0 ? ", " : "", e->own.bytes,
                each ? str_format(e->w.arena, ", size_t *%s", e->own.more) : "");
    out->indent++;
    bool large = large_sizes_emit(e, each);
    if (any_open_buffer(k)) {
        line_printf(&e->w, "int64_t %s;", e->own.size);
    }
    line_printf(&e->w, each ? "size_t %s = 0, %s = 0;" : "size_t %s = 0;", e->own.need,
                e->own.each);
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < n_dims(k); d++) {
        text_printf(&t, d == 0 ? "%s < 0" : " || %s < 0", e->w.dim[d]);
    }
    if (n_dims(k) > 0) {
        line_printf(&e->w, "if (%s) {", t.at);
        line_printf(&e->w, "    return TDSL_E_SHAPE;");
        line_printf(&e->w, "}");
    }
    Text counts; /* which products they need is known when they are written */
    text_init(&counts, e->w.arena);
    counts.indent_width = out->indent_width;
    counts.indent = out->indent;
    e->w.out = &counts;
    Names seen;
    names_init(&seen, e->w.arena);
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        check_buffer(e, &k->bufs.at[i], &seen);
    }
    count_block(e, k->body, k->n_body, (Height){NULL, 0});
    e->w.out = out;
    products_emit(e, counts.at);
    out->indent--;
    text_put(out, counts.at);
    out->indent++;
    if (needs_workspace(k, k->body, k->n_body)) {
        line_printf(&e->w, "%s = %s == 0 ? 0 : %s(%s, %d); /* it may begin anywhere */",
                    e->own.need, e->own.need, help_fixed(e->w.help, "tdsl_plus"), e->own.need,
                    WORKSPACE_ALIGNMENT);
    }
    line_printf(&e->w, "*%s = %s;", e->own.bytes, e->own.need);
    if (each) {
        line_printf(&e->w, "*%s = %s;", e->own.more, e->own.each);
    }
    line_printf(&e->w, "return %s == SIZE_MAX ? TDSL_E_OVERFLOW : TDSL_OK;", e->own.need);
    if (large) {
        directive_put(out, "#endif");
    }
    out->indent--;
    text_put(out, "}\n");
    bytes_emit(e, each);
}

/* ---- entries ---- */

/* "B == NULL && o > 0 && v > 0": a null pointer where there are elements; null when there are none. */
static const char *missing_text(Emitter *e, uint32_t arg)
{
    ArgShape b = arg_shape(e->w.k, arg);
    Text t;
    text_init(&t, e->w.arena);
    text_printf(&t, "%s == NULL", e->w.buf[e->w.k->args.at[arg].buf]);
    for (uint32_t d = 0; d < b.rank; d++) {
        if (is_new_dim(b, d)) {
            text_printf(&t, " && %s > 0", e->w.dim[b.extent[d].sym]);
        } else if (b.extent[d].sym < 0 && b.extent[d].n == 0) {
            return NULL;
        }
    }
    return t.at;
}

static bool arg_is_used(const Kernel *k, uint32_t arg);

static void entry_checks(Emitter *e, bool each)
{
    const Kernel *k = e->w.k;
    const char *need = e->own.need, *sizes = e->own.size;
    const char *more = each ? str_format(e->w.arena, ", &%s", e->own.each) : "";
    line_printf(&e->w, each ? "size_t %s = 0, %s = 0;" : "size_t %s = 0;", need, e->own.each);
    line_printf(&e->w, "const tdsl_status %s = tdsl_sizes_%s(%s&%s%s);", sizes, e->symbol,
                dims_arguments(e, false, ", "), need, more);
    line_printf(&e->w, "if (%s != TDSL_OK) {", sizes);
    line_printf(&e->w, "    return %s;", sizes);
    line_printf(&e->w, "}");
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *missing = k->args.at[i].role == ARG_SCALAR ? NULL : missing_text(e, i);
        if (missing != NULL) {
            line_printf(&e->w, "if (%s) {", missing);
            line_printf(&e->w, "    return TDSL_E_ARGUMENT;");
            line_printf(&e->w, "}");
        } else if (!arg_is_used(k, i)) {
            line_printf(&e->w, "(void)%s;", e->w.buf[k->args.at[i].buf]);
        }
    }
    line_printf(&e->w, "if (workspace_bytes < %s || (%s > 0 && workspace == NULL)) {", need,
                need);
    line_printf(&e->w, "    return TDSL_E_WORKSPACE;");
    line_printf(&e->w, "}");
}

/* Does any statement name the argument? */
static bool arg_is_used(const Kernel *k, uint32_t arg)
{
    StmtWalk w;
    BufRef buf = k->args.at[arg].buf;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        if (s->dst == buf || expr_load_of(s->value, buf) != NULL) {
            return true;
        }
    }
    return false;
}

/* "o == 0 || v == 0": no element; null when there always is one. */
static const char *empty_text(const Emitter *e, ArgShape b)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t d = 0; d < b.rank; d++) {
        if (is_new_dim(b, d)) {
            text_printf(&t, t.n == 0 ? "%s == 0" : " || %s == 0", e->w.dim[b.extent[d].sym]);
        }
    }
    return t.n == 0 ? NULL : t.at;
}

/* With no element to write nothing is to be done, however long the other loops are. */
static void nothing_to_do_emit(Emitter *e)
{
    const Kernel *k = e->w.k;
    Names empty; /* each text once: a set */
    names_init(&empty, e->w.arena);
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].role == ARG_RESULT || k->args.at[i].role == ARG_INOUT) {
            const char *text = empty_text(e, arg_shape(k, i));
            if (text == NULL) {
                return;
            }
            (void)names_claim(&empty, text);
        }
    }
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < empty.list.n; i++) {
        bool several = empty.list.n > 1 && strchr(empty.list.at[i], '|') != NULL;
        text_put(&t, i > 0 ? " && " : "");
        text_printf(&t, several ? "(%s)" : "%s", empty.list.at[i]);
    }
    if (t.n > 0) {
        line_printf(&e->w, "if (%s) {", t.at);
        line_printf(&e->w, "    return TDSL_OK;");
        line_printf(&e->w, "}");
    }
}

/* The entry that takes arguments by pointer, as tables hold it, for one thread and for several. */
static void call_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_printf(out,
                "\nstatic tdsl_status tdsl_threaded_call_%s(const int64_t *dims, void *const "
                "*args, void *workspace,\n"
                "    size_t workspace_bytes, const tdsl_threads *threads)\n{\n",
                e->symbol);
    if (n_dims(k) == 0) {
        text_put(out, "    (void)dims;\n");
    }
    if (k->args.n == 0) {
        text_put(out, "    (void)args;\n");
    }
    text_printf(out, "    return tdsl_entry_%s(%s", e->symbol, dims_arguments(e, true, ","));
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        const char *type = c_type(arg_buffer(k, i)->dtype);
        text_printf(out, "\n        %s(%s%s *)args[%u],", a->role == ARG_SCALAR ? "*" : "",
                    a->role == ARG_SCALAR || is_read_only(a->role) ? "const " : "", type, i);
    }
    text_printf(out,
                "\n        workspace, workspace_bytes, threads);\n}\n\n"
                "static tdsl_status tdsl_call_%s(const int64_t *dims, void *const *args, "
                "void *workspace,\n    size_t workspace_bytes)\n{\n"
                "    return tdsl_threaded_call_%s(dims, args, workspace, workspace_bytes, "
                "NULL);\n}\n",
                e->symbol, e->symbol);
}

/* An entry that others link to. */
static void exported_entry_emit(Emitter *e, Entry entry)
{
    Text *out = e->w.out, t;
    const Kernel *k = e->w.k;
    text_init(&t, e->w.arena);
    text_put(out, "\n");
    prototype_emit(e, out, false, entry);
    text_printf(&t, "    return tdsl_entry_%s(%s", e->symbol, dims_arguments(e, false, ", "));
    for (uint32_t i = 0; i < k->args.n; i++) {
        text_printf(&t, "%s, ", e->w.buf[k->args.at[i].buf]);
    }
    text_printf(&t, "workspace, workspace_bytes, %s);",
                entry == ENTRY_THREADS ? "threads" : "NULL");
    text_put(out, "{\n");
    line_put(out, t.at);
    text_put(out, "}\n");
}

/* The loops, and the checks before them: for several threads where there are loops for them. */
void kernel_entry_emit(Emitter *e, const Text *body)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    bool split = e->n_parts > 0, each = any_split(k, k->body, k->n_body, true);
    text_put(out, e->parts.at);
    text_put(out, "\n");
    prototype_emit(e, out, false, ENTRY_STATIC);
    text_put(out, "{\n");
    out->indent++;
    entry_checks(e, each);
    nothing_to_do_emit(e);
    products_emit(e, body->at);
    if (split) {
        line_printf(&e->w, "const int32_t %s = %s(threads, %s, %s);", e->own.crew,
                    help_fixed(e->w.help, "tdsl_crew"),
                    each ? str_format(e->w.arena, "workspace_bytes - %s", e->own.need) : "0",
                    each ? e->own.each : "0");
    } else {
        line_printf(&e->w, "(void)threads;");
    }
    if (needs_workspace(k, k->body, k->n_body)) {
        line_printf(&e->w, "unsigned char %s[1];",
                    e->own.none); /* no arithmetic on a null pointer */
        line_printf(&e->w,
                    "unsigned char *const %s = workspace == NULL ? %s : "
                    "(unsigned char *)workspace + (-(uintptr_t)workspace & %du);",
                    e->own.ws, e->own.none, WORKSPACE_ALIGNMENT - 1);
    }
    if (e->uses_isa) {
        line_printf(&e->w, "const tdsl_isa *const %s = tdsl_isa_here();", e->own.isa);
    }
    out->indent--;
    text_put(out, body->at);
    text_put(out, e->streams ? "    TDSL_STREAMED;\n" : "");
    text_put(out, "    return TDSL_OK;\n}\n");
    exported_entry_emit(e, ENTRY_ONE_THREAD);
    exported_entry_emit(e, ENTRY_THREADS);
    call_emit(e);
}

/* ---- the table ---- */

static void work_factor(Emitter *e, Dim d)
{
    const DimInfo *info = d.sym < 0 ? NULL : &e->w.k->dims.list.at[d.sym];
    if (info != NULL && info->n_factors == 0) {
        text_printf(e->w.out, "    count = %s(count, dims[%d]);\n",
                    help_fixed(e->w.help, "tdsl_count"), d.sym);
    }
    for (uint32_t f = 0; info != NULL && f < info->n_factors; f++) {
        Dim factor = info->factor[f];
        if (factor.sym < 0) {
            text_printf(e->w.out, "    count = %s(count, %lld);\n",
                        help_fixed(e->w.help, "tdsl_count"), (long long)factor.n);
        } else {
            work_factor(e, factor);
        }
    }
}

static void work_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_printf(
        out,
        "\nstatic size_t tdsl_threaded_bytes_%s(const int64_t *dims, int32_t threads)\n{\n"
        "%s    return tdsl_need_%s(%sthreads);\n}\n",
        e->symbol, n_dims(k) == 0 ? "    (void)dims;\n" : "", e->symbol,
        dims_arguments(e, true, ", "));
    text_printf(out,
                "\nstatic size_t tdsl_bytes_%s(const int64_t *dims)\n{\n"
                "    return tdsl_threaded_bytes_%s(dims, 1);\n}\n",
                e->symbol, e->symbol);
    text_printf(
        out,
        "\nstatic uint64_t tdsl_work_%s(const int64_t *dims)\n{\n    uint64_t total = 0;\n",
        e->symbol);
    if (k->n_work > 0) {
        text_put(out, "    uint64_t count;\n");
    }
    text_put(out, "    (void)dims;\n");
    for (uint32_t i = 0; i < k->n_work; i++) {
        uint64_t fixed = 1;
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            Dim d = k->work[i].factor[f];
            fixed = d.sym < 0 ? (uint64_t)sat_mul((int64_t)fixed, d.n) : fixed;
        }
        text_printf(out, "    count = UINT64_C(%llu);\n", (unsigned long long)fixed);
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            work_factor(e, k->work[i].factor[f]);
        }
        text_printf(out, "    total = %s(total, count);\n",
                    help_fixed(e->w.help, "tdsl_tally"));
    }
    text_put(out, "    return total;\n}\n");
}

static const char *role_text(ArgRole role)
{
    switch (role) {
    case ARG_IN:
        return "TDSL_IN";
    case ARG_INOUT:
        return "TDSL_INOUT";
    case ARG_SCALAR:
        return "TDSL_SCALAR";
    case ARG_RESULT:
        return "TDSL_OUT";
    }
    UNREACHABLE();
}

static const char *dtype_text(DType t)
{
    static const char *const names[DTYPE_COUNT] = {
        "0",        "TDSL_F64", "TDSL_F32",  "TDSL_F16", "TDSL_BF16",
        "TDSL_I32", "TDSL_I64", "TDSL_BOOL", "TDSL_C64", "TDSL_C128",
    };
    return names[t];
}

static void tables_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    if (n_dims(k) > 0) {
        text_printf(out, "\nstatic const tdsl_dim_info tdsl_dims_%s[] = {\n", e->symbol);
        for (uint32_t d = 0; d < n_dims(k); d++) {
            const DimInfo *info = &k->dims.list.at[d];
            text_put(out, "    {");
            text_literal(out, info->name->text);
            text_printf(out, ", %lld},\n", (long long)info->typical);
        }
        text_put(out, "};\n");
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape b = arg_shape(k, i);
        if (b.rank == 0) {
            continue;
        }
        text_printf(out, "\nstatic const tdsl_extent tdsl_extents_%s_%u[] = {\n", e->symbol, i);
        for (uint32_t d = 0; d < b.rank; d++) {
            const int32_t *classes = k->args.at[i].symmetry;
            text_printf(out, "    {%d, %d, %lld},\n", b.extent[d].sym,
                        classes == NULL ? 0 : (int)classes[d], (long long)b.extent[d].n);
        }
        text_put(out, "};\n");
    }
    if (k->args.n == 0) {
        return;
    }
    text_printf(out, "\nstatic const tdsl_arg_info tdsl_args_%s[] = {\n", e->symbol);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = arg_buffer(k, i);
        text_put(out, "    {");
        text_literal(out, b->name->text);
        text_printf(out, ", %s, %s, %u, 0, ", role_text(k->args.at[i].role),
                    dtype_text(b->dtype), arg_shape(k, i).rank);
        if (arg_shape(k, i).rank == 0) {
            text_put(out, "NULL},\n");
        } else {
            text_printf(out, "tdsl_extents_%s_%u},\n", e->symbol, i);
        }
    }
    text_put(out, "};\n");
}

/* Of the plan as it is dumped, without places: equal plans have equal digests, wherever they came from. */
static const char *digest_text(const Emitter *e)
{
    Text t;
    Kernel plan = *e->w.k;
    plan.sources = NULL;
    text_init(&t, e->w.arena);
    kernel_dump(&plan, &t);
    uint64_t a = hash_bytes(1, t.at, t.n), b = hash_bytes(2, t.at, t.n);
    return str_format(e->w.arena, "%016llx%016llx", (unsigned long long)a,
                      (unsigned long long)b);
}

static void table_emit(Emitter *e, const char *head, const char *source, const char *digest)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    const char *s = e->symbol;
    text_printf(out, "\n%s = {\n    TDSL_ABI_HEAD,\n    ", head);
    text_literal(out, k->name->text);
    text_put(out, ",\n    ");
    text_literal(out, source);
    text_put(out, ",\n    ");
    text_literal(out, k->signature != NULL ? k->signature : k->name->text);
    text_printf(out, ",\n    \"%s\",\n    %u,\n    %u,\n", digest, n_dims(k), k->args.n);
    text_printf(out, n_dims(k) > 0 ? "    tdsl_dims_%s,\n" : "    NULL,\n", s);
    text_printf(out, k->args.n > 0 ? "    tdsl_args_%s,\n" : "    NULL,\n", s);
    text_printf(out,
                "    tdsl_bytes_%s,\n    tdsl_work_%s,\n    tdsl_call_%s,\n"
                "    tdsl_threaded_bytes_%s,\n    tdsl_threaded_call_%s,\n};\n",
                s, s, s, s, s);
}

/* Twice: the list of kernels names no symbol that may be bound to another library's. */
void kernel_info_emit(Emitter *e, const char *source)
{
    const char *digest = digest_text(e);
    work_emit(e);
    tables_emit(e);
    table_emit(e,
               str_format(e->w.arena, "static const tdsl_kernel_info tdsl_table_%s", e->symbol),
               source, digest);
    table_emit(e, str_format(e->w.arena, "const tdsl_kernel_info %s_info", e->symbol), source,
               digest);
}
