/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a kernel's loops: its prototype, the count of its workspace, the function that they are in. */
#include <string.h>

#include "backend/c/interface/entry.h"

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
