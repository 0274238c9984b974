/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a kernel's loops: its prototype, the count of its workspace, and the table that describes it, from which
 * functions that all kernels share (emit_shared.c) check what is given. */
#include <string.h>

#include "backend/c/emit.h"

static const Buffer *arg_buffer(const Kernel *k, uint32_t i)
{
    return &k->bufs.at[k->args.at[i].buf];
}

static bool is_read_only(ArgRole role)
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
static uint32_t n_dims(const Kernel *k)
{
    return dims_given(&k->dims);
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
static const char *args_parameters(const Emitter *e)
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

/* Is a function printed that says how much workspace there must be? */
static bool has_sizes(const Kernel *k)
{
    return any_open_buffer(k) || needs_workspace(k, k->body, k->n_body);
}

/* const int64_t o = dims[0]; of those named in `text`. */
static void dims_emit(Emitter *e, const char *text)
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
    count_block(e, k->body, k->n_body, (Height){NULL, 0});
}

void kernel_sizes_emit(Emitter *e)
{
    Text *out = e->w.out, body;
    const Kernel *k = e->w.k;
    const char *need = e->own.need, *each = e->own.each;
    bool split = any_split(k, k->body, k->n_body, true);
    int64_t most = stack_bytes(k, false);
    if (!has_sizes(k)) {
        return;
    }
    text_printf(out,
                "\n/* The workspace that %s needs; for each further thread. */\n"
                "static size_t tdsl_sizes_%s(const int64_t *dims, size_t *more)\n{\n",
                e->symbol, e->symbol);
    out->indent++;
    if (most > INT32_MAX / 2) { /* numbers that a size_t of 32 bits cannot hold */
        directive_put(out, str_format(e->w.arena, "#if SIZE_MAX / 2 < %lld", (long long)most));
        line_put(out, "(void)dims; (void)more;");
        line_put(out, "return SIZE_MAX;");
        directive_put(out, "#else");
    }
    text_init(&body,
              e->w.arena); /* which dims and products it needs is known when it is written */
    body.indent_width = out->indent_width;
    body.indent = out->indent;
    e->w.out = &body;
    sizes_body_emit(e);
    e->w.out = out;
    line_printf(&e->w, split ? "size_t %s = 0, %s = 0;" : "size_t %s = 0;", need, each);
    Text products;
    text_init(&products, e->w.arena);
    products.indent_width = out->indent_width;
    products.indent = out->indent;
    e->w.out = &products;
    dims_computed_emit(e, body.at);
    e->w.out = out;
    dims_emit(e, str_format(e->w.arena, "%s%s", products.at, body.at));
    line_put(out, "(void)dims;");
    out->indent--;
    text_put(out, products.at);
    text_put(out, body.at);
    out->indent++;
    line_printf(&e->w, split ? "*more = %s;" : "(void)more;", each);
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
        if (s->dst == buf || expr_load_of(s->value, buf) != NULL) {
            return true;
        }
    }
    return false;
}

/* What the loops get beside dims and arguments: with types, or as the caller has it. */
static const char *rest_text(Emitter *e, bool types)
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
        text_printf(&t, types ? "size_t %s, " : "each, ", e->own.each);
    }
    return t.at;
}

/* Without ", " at its end. */
static const char *list_text(Emitter *e, const char *text, const char *empty)
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
    text_init(&products, e->w.arena);
    products.indent_width = out->indent_width;
    products.indent = out->indent;
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
    if (e->uses_isa) {
        line_printf(&e->w, "const tdsl_isa *const %s = tdsl_isa_here();", e->own.isa);
    }
    out->indent--;
    text_put(out, body->at);
    text_put(out, e->streams ? "    TDSL_STREAMED;\n}\n" : "}\n");
}

/* ---- the table ---- */

/* Of multiply-adds: the number of dims that are factors, the product of fixed ones, the dims. */
static void work_factor(Emitter *e, Dim d, Text *dims, uint32_t *n)
{
    const DimInfo *info = d.sym < 0 ? NULL : &e->w.k->dims.list.at[d.sym];
    if (info != NULL && info->n_factors == 0) {
        text_printf(dims, ", %d", dim_number(e, d));
        (*n)++;
    }
    for (uint32_t f = 0; info != NULL && f < info->n_factors; f++) {
        work_factor(e, info->factor[f], dims, n);
    }
}

static int64_t fixed_factor(const Kernel *k, Dim d)
{
    if (d.sym < 0) {
        return d.n;
    }
    int64_t fixed = 1;
    const DimInfo *info = &k->dims.list.at[d.sym];
    for (uint32_t f = 0; f < info->n_factors; f++) {
        fixed = sat_mul(fixed, fixed_factor(k, info->factor[f]));
    }
    return fixed;
}

/* Of a kernel without open dims: the number itself. */
static const char *work_fixed(const Emitter *e)
{
    const Kernel *k = e->w.k;
    uint64_t total = 0;
    for (uint32_t i = 0; i < k->n_work; i++) {
        int64_t fixed = 1;
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            fixed = sat_mul(fixed, fixed_factor(k, k->work[i].factor[f]));
        }
        total = total > UINT64_MAX - (uint64_t)fixed ? UINT64_MAX : total + (uint64_t)fixed;
    }
    return str_format(e->w.arena, "UINT64_C(%llu)", (unsigned long long)total);
}

/* The expression of the number; its table comes before, where there are open dims. */
static const char *work_emit(Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    if (n_dims(k) == 0) {
        return work_fixed(e);
    }
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < k->n_work; i++) {
        int64_t fixed = 1;
        uint32_t n = 0;
        Text dims;
        text_init(&dims, e->w.arena);
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            fixed = sat_mul(fixed, fixed_factor(k, k->work[i].factor[f]));
            work_factor(e, k->work[i].factor[f], &dims, &n);
        }
        text_printf(&t, "%u, %lld%s, ", n, (long long)fixed, dims.at);
    }
    line_printf(&e->w, "static const int64_t tdsl_work_%s[] = {%s-1};", e->symbol, t.at);
    if (e->n_computed > 0) {
        return str_format(e->w.arena, "tdsl_work_of(&tdsl_table_%s, tdsl_work_%s, dims)",
                          e->symbol, e->symbol);
    }
    return str_format(e->w.arena, "tdsl_multiply_adds(tdsl_work_%s, dims)", e->symbol);
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

static void args_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_printf(out, "static const tdsl_arg_info tdsl_args_%s[] = {\n", e->symbol);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = arg_buffer(k, i);
        ArgShape shape = arg_shape(k, i);
        const int32_t *classes = k->args.at[i].symmetry;
        text_put(out, "    {");
        text_literal(out, b->name->text);
        text_printf(out, ", %s, %s, %u, 0, ", role_text(k->args.at[i].role),
                    dtype_text(b->dtype), shape.rank);
        text_put(out, shape.rank == 0 ? "NULL" : "(const tdsl_extent[]){");
        for (uint32_t d = 0; d < shape.rank; d++) {
            text_printf(out, "%s{%d, %d, %lld}", d > 0 ? ", " : "",
                        dim_number(e, shape.extent[d]), classes == NULL ? 0 : (int)classes[d],
                        (long long)shape.extent[d].n);
        }
        text_put(out, shape.rank == 0 ? "},\n" : "}},\n");
    }
    text_put(out, "};\n");
}

static void tables_emit(Emitter *e)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    text_put(out, "\n");
    if (n_dims(k) > 0) {
        text_printf(out, "static const tdsl_dim_info tdsl_dims_%s[] = {", e->symbol);
        for (uint32_t d = 0; d < n_dims(k); d++) {
            const DimInfo *info = &k->dims.list.at[d];
            text_put(out, d > 0 ? ", {" : "{");
            text_literal(out, info->name->text);
            text_printf(out, ", %lld}", (long long)info->typical);
        }
        text_put(out, "};\n");
    }
    computed_emit(e);
    if (k->args.n > 0) {
        args_emit(e);
    }
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

/* Arguments of the loops, from arrays of dims and of pointers. */
static const char *loops_arguments(Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    text_put(&t, dims_arguments(e, true, ", "));
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        const char *type = c_type(arg_buffer(k, i)->dtype);
        if (a->role == ARG_SCALAR) {
            text_printf(&t, "*(const %s *)args[%u], ", type, i);
        } else {
            text_printf(&t, "args[%u], ", i);
        }
    }
    text_put(&t, rest_text(e, false));
    return list_text(e, t.at, "");
}

/* Pointers to the arguments of the entry that others link to. */
static const char *pointers_text(const Emitter *e)
{
    const Kernel *k = e->w.k;
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        text_printf(&t,
                    a->role == ARG_SCALAR   ? "&%s, "
                    : is_read_only(a->role) ? "TDSL_READ(%s), "
                                            : "%s, ",
                    e->w.buf[a->buf]);
    }
    return t.at;
}

/* Of a kernel without a workspace: small calls go to the loops after these tests, without a table. */
static const char *fast_text(Emitter *e)
{
    const Kernel *k = e->w.k;
    int digits = safe_digits(e);
    if (has_sizes(k) || digits < 8) {
        return "";
    }
    Text test, call, more;
    text_init(&test, e->w.arena);
    text_init(&more, e->w.arena);
    text_init(&call, e->w.arena);
    text_put(&test, n_dims(k) == 0 ? "" : "sizeof(size_t) >= 8");
    for (uint32_t d = 0; d < n_dims(k); d++) {
        text_printf(&test, " && (uint64_t)%s - 1 < %lld", e->w.dim[d], 1ll << digits);
        text_printf(&call, "%s, ", e->w.dim[d]);
    }
    const char *computed = computed_tests(e, &more);
    Text *last = computed[0] == '\0' ? &test : &more;
    for (uint32_t i = 0; i < k->args.n; i++) {
        const char *name = e->w.buf[k->args.at[i].buf];
        text_printf(&call, "%s, ", name);
        if (k->args.at[i].role != ARG_SCALAR) {
            text_printf(last, last->n == 0 ? "%s != NULL" : " && %s != NULL", name);
        }
    }
    text_put(&call, e->n_parts > 0 ? "NULL, 1, " : "");
    const char *inner =
        str_format(e->w.arena, "if (%s) { tdsl_loops_%s(%s); return TDSL_OK; }",
                   last->n == 0 ? "1" : last->at, e->symbol, list_text(e, call.at, ""));
    return last == &test ? inner
                         : str_format(e->w.arena, "if (%s) { %s%s }", test.at, computed, inner);
}

void kernel_info_emit(Emitter *e, const char *source)
{
    Text *out = e->w.out;
    const Kernel *k = e->w.k;
    const char *s = e->symbol, *dims = n_dims(k) == 0 ? "" : dims_parameters(e);
    Arena *a = e->w.arena;
    tables_emit(e);
    const char *work = work_emit(e);
    text_printf(out, "TDSL_KERNEL(%s,\n    ", s);
    text_literal(out, k->name->text);
    text_put(out, ", ");
    text_literal(out, source);
    text_put(out, ",\n    ");
    text_literal(out, k->signature != NULL ? k->signature : k->name->text);
    text_printf(out, ",\n    \"%s\",\n", digest_text(e));
    out->indent++;
    line_printf(&e->w, "%u, %s, %u, %s, %s, %s, (%s),", n_dims(k),
                n_dims(k) == 0 ? "NULL" : str_format(a, "tdsl_dims_%s", s), k->args.n,
                k->args.n == 0 ? "NULL" : str_format(a, "tdsl_args_%s", s),
                has_sizes(k) ? str_format(a, "tdsl_sizes_%s", s) : "NULL", work,
                dims_parameters(e));
    if (e->file_computes) {
        line_printf(&e->w, e->n_computed == 0 ? "(NULL, 0)," : "(tdsl_computed_%s, %u),", s,
                    e->n_computed);
    }
    line_printf(&e->w, "(%s),", fast_text(e));
    line_printf(&e->w, "(%s%s), (%s),", dims, dims[0] == '\0' ? "" : ", ",
                dims_arguments(e, false, ", "));
    line_printf(&e->w, "(%s), (%s),", args_parameters(e), pointers_text(e));
    line_printf(&e->w, "(%s))", loops_arguments(e));
    out->indent--;
}
