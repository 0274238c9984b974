/* SPDX-License-Identifier: Apache-2.0 */
/* A register tile of one statement as a function, for vectors of each width, and its call: its parameters are what it needs
 * from outside. */
#include <string.h>

#include "backend/c/micro.h"

/* ---- what a tile needs from outside ---- */

typedef struct Free {
    Emitter *e;
    bool *var, *bound;         /* [vars] */
    bool *dim;                 /* [dims] */
    bool *buf, *own, *written; /* [bufs] */
} Free;

static void free_affine(Free *f, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        *(affine_is_dim(v) ? &f->dim[affine_sym(v)] : &f->var[v]) = true;
    }
}

static void free_range(Free *f, Range r)
{
    free_affine(f, r.start);
    if (r.clipped && r.limit.sym >= 0) {
        f->dim[r.limit.sym] = true;
    }
}

static void free_window(Free *f, const Window *w)
{
    if (w != NULL) {
        free_affine(f, w->lo);
        free_affine(f, w->hi);
    }
}

static void free_access(Free *f, BufRef buf, const Affine *at)
{
    const Buffer *b = &f->e->w.k->bufs.at[buf];
    f->buf[buf] = true;
    for (uint32_t d = 0; d < b->rank; d++) {
        free_affine(f, at[d]);
        if (d > 0 && b->extent[d].sym >= 0) {
            f->dim[b->extent[d].sym] = true;
        }
    }
}

/* Positions that are values are tested against all extents. */
static void free_gather(Free *f, BufRef buf)
{
    const Buffer *b = &f->e->w.k->bufs.at[buf];
    f->buf[buf] = true;
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0) {
            f->dim[b->extent[d].sym] = true;
        }
    }
}

static void free_tile(Free *f, const Stmt *s)
{
    for (uint32_t x = 0; x < s->n_index; x++) {
        f->bound[s->index[x].var] = true;
        free_range(f, s->index[x].range);
        free_window(f, s->index[x].window);
    }
    free_access(f, s->dst, s->at);
    f->written[s->dst] = true;
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_LOAD) {
            free_access(f, x->buf, x->at);
        } else if (expr_buffer(x) != BUF_NONE) {
            free_gather(f, x->buf);
        } else if (x->kind == EXPR_EXTENT) {
            f->dim[x->dim] = true;
        } else if (x->kind == EXPR_INDEX) {
            free_affine(f, x->at[0]);
        }
    }
}

static void free_block(Free *f, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        switch (s->kind) {
        case STMT_FOR:
            f->bound[s->var] = true;
            free_range(f, s->range);
            free_window(f, s->window);
            break;
        case STMT_BLOCK:
            break;
        case STMT_ALLOC:
            f->own[s->buf] = true;
            break;
        case STMT_TILE:
            free_tile(f, s);
            break;
        }
    }
}

/* As parameters with types, or as arguments. */
static const char *free_text(const Free *f, bool types)
{
    const Kernel *k = f->e->w.k;
    Text t;
    text_init(&t, f->e->w.arena);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        if (f->dim[d]) {
            text_printf(&t, "%s%s%s", t.n > 0 ? ", " : "", types ? "int64_t " : "",
                        f->e->w.dim[d]);
        }
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        if (f->var[v] && !f->bound[v]) {
            text_printf(&t, "%s%s%s", t.n > 0 ? ", " : "", types ? "int64_t " : "",
                        f->e->w.var[v]);
        }
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (!f->buf[b] || f->own[b]) {
            continue;
        }
        text_put(&t, t.n > 0 ? ", " : "");
        if (types) {
            const Buffer *buf = &k->bufs.at[b];
            const char *type = buf->cascade ? help_sum(f->e->w.help, buf) : c_type(buf->dtype);
            text_printf(&t, f->e->w.scalar[b] ? "%s%s " : "%s%s *TDSL_RESTRICT ",
                        f->written[b] || f->e->w.scalar[b] ? "" : "const ", type);
        }
        text_put(&t, f->e->w.buf[b]);
    }
    return t.n == 0 ? (types ? "void" : "") : t.at;
}

/* ---- the functions ---- */

/* The body for vectors of at most so many bytes. */
static const char *variant_text(Emitter *e, const Isa *isa, Stmt *const *body, uint32_t n)
{
    Text *outer = e->w.out, t;
    int64_t bytes = e->vector_bytes;
    Counts counts = e->w.counts;
    uint32_t temps = e->w.n_temps;
    text_init(&t, e->w.arena);
    t.indent_width = 4;
    t.indent = 1;
    e->w.out = &t;
    e->vector_bytes = isa->vector_bytes;
    line_put(&t, stmt_has_lanes(body[0]) ? "TDSL_EXACT" : "TDSL_CONTRACT");
    e->in_tile = true;
    e->last_origin = NULL;
    e->w.n_temps = 0;
    e->w.counts = (Counts){0}; /* those around have no names in the function */
    counts_bind(e, body, n, true, 0);
    block_emit(e, body, n, (WorkspaceTop){NULL, 0});
    e->w.counts = counts;
    e->w.n_temps = temps;
    e->in_tile = false;
    e->last_origin = NULL;
    e->w.out = outer;
    e->vector_bytes = bytes;
    return t.at;
}

/* Four blanks more before each line. */
static const char *indented(Emitter *e, const char *text)
{
    Text t;
    text_init(&t, e->w.arena);
    t.indent_width = 4;
    t.indent = 1;
    text_put(&t, text);
    return t.at;
}

/* A function for vectors of one width: those of all instruction sets that have it. */
typedef struct Variant {
    const Isa *isa;
    const char *rows, *text;
} Variant;

static uint32_t find_variants(Emitter *e, Variant *v, Stmt *const *body, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        Text rows;
        text_init(&rows, e->w.arena);
        bool first = true;
        for (uint32_t q = 0; q < ISA_COUNT; q++) {
            if (isa_table[q].vector_bytes == isa_table[r].vector_bytes) {
                first &= q >= r;
                text_printf(&rows, rows.n > 0 ? " | TDSL_ISA_%s" : "TDSL_ISA_%s",
                            isa_table[q].name);
            }
        }
        if (first) {
            const char *text = variant_text(e, &isa_table[r], body, n);
            v[count++] = (Variant){&isa_table[r], rows.at, text};
        }
    }
    return count;
}

/* Once for each width of vectors: rows that have the same share it. Where they do not differ, from one macro. */
static void variants_emit(Emitter *e, const char *name, const char *parameters,
                          Stmt *const *body, uint32_t n)
{
    Variant v[ISA_COUNT];
    Text *out = &e->tiles->folds;
    uint32_t count = find_variants(e, v, body, n);
    const char *kind = stmt_has_lanes(body[0]) ? "TDSL_LANES" : "TDSL_TILE";
    for (uint32_t i = 0; i < count; i++) {
        bool macro = i + 1 < count && strcmp(v[i].text, v[i + 1].text) == 0;
        bool again = i > 0 && strcmp(v[i].text, v[i - 1].text) == 0;
        if (macro && !again) {
            const char *head = str_format(
                e->w.arena, "    %s TDSL_FOR_##ISA static void %s_##BYTES(%s)\n    {\n", kind,
                name, parameters);
            text_put(out, "\n");
            macro_put(out, "TDSL_FUNCTION(ISA, BYTES)",
                      str_format(e->w.arena, "%s%s    }\n", head, indented(e, v[i].text)));
        }
        text_printf(out, "%s#if TDSL_ROWS & (%s)\n", macro || again ? "" : "\n", v[i].rows);
        if (macro || again) {
            text_printf(out, "TDSL_FUNCTION(%s, %lld)\n#endif\n%s", v[i].isa->name,
                        (long long)v[i].isa->vector_bytes,
                        macro ? "" : "#undef TDSL_FUNCTION\n");
        } else {
            line_put(out, str_format(e->w.arena, "%s TDSL_FOR_%s static void %s_%lld(%s)", kind,
                                     v[i].isa->name, name, (long long)v[i].isa->vector_bytes,
                                     parameters));
            text_printf(out, "{\n%s}\n#endif\n", v[i].text);
        }
    }
}

void register_tile_emit(Emitter *e, Stmt *const *body, uint32_t n)
{
    const Kernel *k = e->w.k;
    Free f = {.e = e};
    f.var = ARENA_ARRAY(e->w.arena, (size_t)k->vars.n + 1, bool);
    f.bound = ARENA_ARRAY(e->w.arena, (size_t)k->vars.n + 1, bool);
    f.dim = ARENA_ARRAY(e->w.arena, (size_t)k->dims.list.n + 1, bool);
    f.buf = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
    f.own = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
    f.written = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
    free_block(&f, body, n);
    const char *name = str_format(e->tiles->arena, "tdsl_tile%u_%s", ++e->n_tiles, e->symbol);
    const char *parameters = free_text(&f, true), *arguments = free_text(&f, false);
    if (e->lines) { /* counters count where it is called */
        line_mark(e, &e->tiles->folds, body, n);
    }
    variants_emit(e, name, parameters, body, n);
    if (e->lines) {
        line_unmark(e, &e->tiles->folds);
    }
    vec_push(e->tiles->arena, &e->tiles->fold_names, name);
    text_printf(&e->tiles->members, "    void (*%s)(%s);\n", name + strlen("tdsl_"),
                parameters);
    line_printf(&e->w, "%s->%s(%s);", e->own.isa, name + strlen("tdsl_"), arguments);
    e->uses_isa = true;
}
