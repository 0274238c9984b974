/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text (grammar: dump/tree.h, meaning: docs/ir-loop.md). Everything a back end
 * may look at is in the text, so what is compiled from a dump is byte for byte what is compiled
 * from the program.
 *
 * Numbers of variables and buffers are not printed: the reader counts them as they appear.
 * Where the kernel counts differently, or has some that nothing uses, an `order` line lists
 * them. */
#include "loop/loop_dump.h"

#include "loop/loop_text.h"
#include "loop/term.h"

/* ---- statements ---- */

static void put_range(const Kernel *k, const Range *r, Text *out)
{
    loop_put_affine(k, r->start, out);
    if (r->span == 0) {
        text_put(out, "..");
        dump_dim(out, &k->dims, r->limit);
        return;
    }
    text_char(out, ':');
    text_i64(out, r->span);
    if (r->clipped) {
        text_char(out, '<');
        dump_dim(out, &k->dims, r->limit);
    }
}

static const char *mode_suffix(IndexMode mode)
{
    static const char *const names[] = {[MODE_LOOP] = "",
                                        [MODE_UNROLL] = " unroll",
                                        [MODE_VECTOR] = " vector",
                                        [MODE_LANES] = " lanes"};
    return names[mode];
}

static const char *part_suffix(ForPart part)
{
    static const char *const names[] = {
        [FOR_ALL] = "", [FOR_FULL] = " full", [FOR_REST] = " rest"};
    return names[part];
}

static const char *role_name(ArgRole role)
{
    static const char *const names[] = {[ARG_IN] = "in",
                                        [ARG_INOUT] = "inout",
                                        [ARG_SCALAR] = "scalar",
                                        [ARG_RESULT] = "result"};
    return names[role];
}

static void put_declaration(const Kernel *k, BufRef buf, const char *last, Text *out)
{
    const Buffer *b = &k->bufs.at[buf];
    loop_put_name(out, '@', b->name);
    text_put(out, " : ");
    dump_type(out, &k->dims, b->dtype, b->rank, b->extent);
    text_printf(out, " %s", last);
}

static void put_window(const Kernel *k, const Window *w, Text *out)
{
    if (w == NULL) {
        return;
    }
    text_put(out, " within ");
    if (w->has_lo) {
        loop_put_affine(k, w->lo, out);
    }
    text_put(out, "..");
    if (w->has_hi) {
        loop_put_affine(k, w->hi, out);
    }
}

static void put_for_head(const Kernel *k, const Stmt *s, Text *out)
{
    text_put(out, "for ");
    loop_put_var(k, s->var, out);
    text_put(out, " in ");
    put_range(k, &s->range, out);
    text_printf(out, " step %lld%s%s", (long long)s->step, part_suffix(s->part),
                s->parallel ? " parallel" : "");
    hints_dump_threads(k, s->threads, out);
    put_window(k, s->window, out);
}

/* A statement's indices by name. */
typedef struct Indices {
    const Kernel *k;
    const Stmt *s;
} Indices;

static void put_index(void *user, uint32_t index, Text *out)
{
    const Indices *x = user;
    loop_put_var(x->k, x->s->index[index].var, out);
}

static void put_tile(const Kernel *k, const Stmt *s, Text *out)
{
    text_printf(out, "%s [", tile_kind_name(tile_kind(s)));
    for (uint32_t i = 0; i < s->n_index; i++) {
        text_put(out, i == 0 ? "" : ", ");
        loop_put_var(k, s->index[i].var, out);
        text_put(out, " in ");
        put_range(k, &s->index[i].range, out);
        text_put(out, mode_suffix(s->index[i].mode));
        put_window(k, s->index[i].window, out);
    }
    text_put(out, "] ");
    loop_text_access(k, s->dst, s->at, out);
    if (s->fold == OP_COPY) {
        text_put(out, " = ");
    } else if (s->fold == OP_SUM) {
        text_put(out, " += ");
    } else {
        text_printf(out, " %s= ", op_info(s->fold)->name);
    }
    loop_put_value(k, s->value, k->bufs.at[s->dst].dtype, out);
    clauses_dump(k, s, out);
    if (s->schedule != NULL) {
        Indices indices = {k, s};
        text_char(out, ' ');
        schedule_dump(s->schedule, put_index, &indices, out);
    }
    if (s->name != NULL) {
        text_put(out, " as ");
        dump_name(out, s->name);
    }
}

void loop_text_stmt(const Kernel *k, const Stmt *s, Text *out)
{
    switch (s->kind) {
    case STMT_FOR:
        put_for_head(k, s, out);
        return;
    case STMT_BLOCK:
        text_put(out, "block");
        if (s->when != NULL) {
            text_char(out, ' ');
            dump_dim_test(out, &k->dims, s->when);
        }
        for (uint32_t i = 0; i < s->n_guards; i++) {
            text_put(out, i == 0 ? " if " : ", ");
            loop_put_var(k, s->guard[i].var, out);
            text_put(out, " in ");
            Affine lo = s->guard[i].from;
            lo.base = s->guard[i].lo;
            loop_put_affine(k, lo, out);
            text_printf(out, "..%lld", (long long)s->guard[i].hi);
        }
        return;
    case STMT_ALLOC:
        text_put(out, "alloc ");
        put_declaration(k, s->buf, space_name(k->bufs.at[s->buf].space), out);
        clauses_dump(k, s, out);
        hints_dump_alloc(k, s->prefetch, out);
        return;
    case STMT_TILE:
        put_tile(k, s, out);
        return;
    }
    UNREACHABLE();
}

static void put_block(const Kernel *k, Stmt *const *body, uint32_t n, uint32_t depth, Text *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        loop_text_stmt(k, s, out);
        dump_span(out, k->sources, s->span, k->span.source);
        if (!stmt_has_body(s)) {
            text_char(out, '\n');
            continue;
        }
        text_put(out, " {\n");
        out->indent++;
        if (depth >= LOOP_DEPTH_LIMIT) {
            text_put(out, "...\n"); /* such a kernel is refused by loop_verify */
        } else {
            put_block(k, s->body, s->n_body, depth + 1, out);
        }
        out->indent--;
        text_put(out, "}\n");
    }
}

/* ---- the order of variables and buffers ---- */

/* Numbers in the order of first appearance in the text. */
typedef struct Appearance {
    bool *var_seen, *buf_seen;
    uint32_t n_vars, n_bufs; /* seen so far */
    bool in_order;           /* each was the next number */
} Appearance;

static void appear(bool *seen, uint32_t *n, uint32_t number, bool *in_order)
{
    if (!seen[number]) {
        seen[number] = true;
        *in_order = *in_order && number == *n;
        (*n)++;
    }
}

static void appear_stmt(const Stmt *s, Appearance *a)
{
    switch (s->kind) {
    case STMT_FOR:
        appear(a->var_seen, &a->n_vars, s->var, &a->in_order);
        break;
    case STMT_BLOCK:
        break;
    case STMT_ALLOC:
        appear(a->buf_seen, &a->n_bufs, s->buf, &a->in_order);
        break;
    case STMT_TILE:
        for (uint32_t x = 0; x < s->n_index; x++) {
            appear(a->var_seen, &a->n_vars, s->index[x].var, &a->in_order);
        }
        break;
    }
}

static void put_order(const Kernel *k, Text *out)
{
    Appearance a = {.in_order = true};
    a.var_seen = ARENA_ARRAY(out->arena, k->vars.n, bool);
    a.buf_seen = ARENA_ARRAY(out->arena, k->bufs.n, bool);
    for (uint32_t i = 0; i < k->args.n; i++) {
        appear(a.buf_seen, &a.n_bufs, k->args.at[i].buf, &a.in_order);
    }
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        appear_stmt(s, &a);
        if (w.depth > LOOP_DEPTH_LIMIT + 1) {
            stmt_skip(&w); /* such a kernel is refused by loop_verify */
        }
    }
    if (a.in_order && a.n_vars == k->vars.n && a.n_bufs == k->bufs.n) {
        return;
    }
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        if (!a.buf_seen[i]) {
            text_put(out, "unused ");
            put_declaration(k, i, space_name(k->bufs.at[i].space), out);
            text_char(out, '\n');
        }
    }
    text_put(out, "order [");
    for (uint32_t i = 0; i < k->vars.n; i++) {
        text_put(out, i == 0 ? "" : ", ");
        loop_put_var(k, i, out);
    }
    text_put(out, "] [");
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        text_put(out, i == 0 ? "" : ", ");
        loop_put_name(out, '@', k->bufs.at[i].name);
    }
    text_put(out, "]\n");
}

/* ---- kernels ---- */

static void put_work(const Kernel *k, Text *out)
{
    if (k->n_work == 0) {
        return;
    }
    text_put(out, "work");
    for (uint32_t i = 0; i < k->n_work; i++) {
        text_put(out, " [");
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            text_put(out, f == 0 ? "" : ",");
            dump_dim(out, &k->dims, k->work[i].factor[f]);
        }
        text_char(out, ']');
    }
    text_char(out, '\n');
}

static void put_head(const Kernel *k, Text *out)
{
    text_put(out, k->form == LOOP_TILED ? "form tiled" : "form legal");
    if (k->target != NULL) {
        text_char(out, ' ');
        text_quoted(out, str_from(k->target));
    }
    text_char(out, '\n');
    dump_dims(out, &k->dims);
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef buf = k->args.at[i].buf;
        text_put(out, "arg ");
        put_declaration(k, buf, role_name(k->args.at[i].role), out);
        if (k->bufs.at[buf].stored != DTYPE_NONE) {
            text_printf(out, " stored %s", dtype_name(k->bufs.at[buf].stored));
        }
        if (k->args.at[i].whole != DTYPE_NONE) {
            text_put(out, " of ");
            dump_type(out, &k->dims, k->args.at[i].whole, k->args.at[i].whole_rank,
                      k->args.at[i].shape != NULL ? k->args.at[i].shape
                                                  : k->bufs.at[buf].extent);
        }
        if (k->args.at[i].shape != NULL) {
            text_put(out, " shaped ");
            dump_shape(out, &k->dims, k->args.at[i].rank, k->args.at[i].shape);
        }
        dump_symmetry(out, k->args.at[i].symmetry);
        dump_span(out, k->sources, k->bufs.at[buf].span, k->span.source);
        text_char(out, '\n');
    }
    put_work(k, out);
    put_order(k, out);
}

void kernel_dump(const Kernel *k, Text *out)
{
    dump_kernel_head(out, k->sources,
                     &(KernelHead){k->name, k->span, k->signature, k->statements, k->ranks});
    put_head(k, out);
    put_block(k, k->body, k->n_body, 0, out);
    for (uint32_t r = 0; r < k->n_required; r++) {
        text_put(out, "require");
        dump_requirement(out, &k->dims, k->sources, k->span.source, &k->required[r]);
    }
    if (k->positions != NULL) {
        Kernel positions = *k->positions;
        positions.sources = k->sources;
        kernel_dump(&positions, out);
    }
    out->indent--;
    text_put(out, "}\n");
}

void kernel_module_dump(const KernelModule *m, Text *out)
{
    dump_head(out, "loop", m->source_name, NULL);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        text_char(out, '\n');
        kernel_dump(m->kernels.at[i], out);
    }
}
