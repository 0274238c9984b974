/* SPDX-License-Identifier: Apache-2.0 */
/* A register tile that is no product (emit_product.c) as a function, and its call: the statements that use an accumulator of rank >= 1, or
 * one that runs as lanes. Its parameters are what it needs from outside. It is the macro of an instruction set, or, where each line is to
 * say which one of the program it is, a function for each. */
#include <string.h>

#include "backend/c/micro.h"

#include "loop/walk.h"

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

/* Are there vectors of complex numbers? In plain C these are no single numbers. */
static bool has_complex(const Kernel *k, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC && k->bufs.at[s->buf].space == SPACE_ACC &&
            k->bufs.at[s->buf].rank > 0 && dtype_is_complex(k->bufs.at[s->buf].dtype)) {
            return true;
        }
    }
    return false;
}

/* The body for an instruction set, or for all of them. */
static const char *body_text(Emitter *e, const Isa *isa, bool plain, Stmt *const *body,
                             uint32_t n)
{
    Text *outer = e->w.out, t;
    Counts counts = e->w.counts;
    uint32_t temps = e->w.n_temps;
    lines_init(&t, e->w.arena, 1);
    e->w.out = &t;
    line_put(&t, stmt_has_lanes(body[0]) ? "TDSL_EXACT" : "TDSL_CONTRACT");
    e->in_tile = true;
    e->isa = isa;
    e->plain = plain;
    e->vectors.at = NULL; /* those of the last function stay where they are */
    e->vectors.n = e->vectors.cap = 0;
    e->w.n_temps = 0;
    e->w.counts = (Counts){0}; /* those around have no names in the function */
    counts_bind(e, body, n, true, 0);
    block_emit(e, body, n, (WorkspaceTop){NULL, 0});
    e->w.counts = counts;
    e->w.n_temps = temps;
    e->in_tile = false;
    e->plain = false;
    e->isa = NULL;
    e->w.out = outer;
    return t.at;
}

static const char *kind_of(Stmt *const *body)
{
    return stmt_has_lanes(body[0]) ? "TDSL_LANES" : "TDSL_TILE";
}

/* A function for one instruction set, as it is. */
static void function_put(Emitter *e, const TileFold *f, const Isa *isa, const char *parameters,
                         bool plain, Stmt *const *body, uint32_t n)
{
    Text *out = &e->tiles->folds;
    text_printf(out, "\n#if TDSL_ROWS & TDSL_ISA_%s\n", isa->name);
    line_put(out, str_format(e->w.arena, "%s TDSL_FOR_%s static void %s_%s(%s)", kind_of(body),
                             isa->name, f->name, isa->name, parameters));
    text_printf(out, "{\n%s}\n#endif\n", body_text(e, isa, plain, body, n));
}

static const char word_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* Of equal functions the text is the same with the kernel's own names numbered, in the order in which they stand there. */
static const char *text_numbered(Emitter *e, const char *text)
{
    Text t;
    Map number;
    uint32_t n = 0;
    text_init(&t, e->w.arena);
    map_init(&number, e->w.arena);
    for (const char *at = text; *at != '\0';) {
        size_t length = strspn(at, word_letters);
        uint32_t name = 0, own = 0;
        if (length > 0 && names_find(&e->w.names, at, length, &name)) {
            if (!map_get(&number, name, &own)) {
                own = n++;
                map_put(&number, name, own);
            }
            text_printf(&t, "#%u", own);
        } else if (length > 0) {
            text_put_n(&t, at, length);
        } else if (*at != ' ' && *at != '\n') { /* lines break where names are long */
            text_char(&t, *at);
        } else if (t.n > 0 && t.at[t.n - 1] != ' ') {
            text_char(&t, ' ');
        }
        at += length > 0 ? length : 1;
    }
    return t.at;
}

/* Has a kernel of the file an equal function? It takes this name's place. */
static bool is_there(Emitter *e, TileFold *f, const char *text)
{
    Tiles *t = e->tiles;
    Text key;
    text_init(&key, t->arena);
    for (uint32_t i = 0; i < e->vectors.n; i++) {
        text_printf(&key, "%s %lld ", dtype_name(e->vectors.at[i].t),
                    (long long)e->vectors.at[i].most);
    }
    text_put(&key, text_numbered(e, text));
    f->key = key.at;
    uint32_t i = 0;
    while (i < t->fold.n &&
           (t->fold.at[i].key == NULL || strcmp(t->fold.at[i].key, key.at) != 0)) {
        i++;
    }
    f->name = i < t->fold.n ? t->fold.at[i].name : f->name;
    return i < t->fold.n;
}

/* False: the file has an equal function, which is the fold's now. */
static bool functions_put(Emitter *e, TileFold *f, const char *parameters, Stmt *const *body,
                          uint32_t n)
{
    f->plain_apart = has_complex(e->w.k, body, n);
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        bool plain = f->plain_apart && isa_table[r].vector_bytes == 0;
        if (f->macro == NULL || plain) {
            function_put(e, f, &isa_table[r], parameters, plain, body, n);
        }
    }
    if (f->macro == NULL) {
        return true;
    }
    const char *text = body_text(e, NULL, false, body, n);
    if (!f->plain_apart &&
        is_there(e, f,
                 str_format(e->w.arena, "%s (%s) {%s}", kind_of(body), parameters, text))) {
        return false;
    }
    Text lines;
    lines_init(&lines, e->w.arena, 1);
    line_put(&lines, str_format(e->w.arena, "%s TDSL_FOR_##ISA static void %s_##ISA(%s)",
                                kind_of(body), f->name, parameters));
    text_printf(&lines, "{\n%s}\n", text);
    text_put(&e->tiles->folds, "\n");
    macro_put(&e->tiles->folds,
              str_format(e->w.arena, "%s(ISA%s)", f->macro,
                         vector_parameters(e->w.arena, e->vectors.n, "TDSL_V", "TDSL_L")),
              lines.at);
    f->vector = e->vectors.at;
    f->n = e->vectors.n;
    return true;
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
    TileFold fold = {.name = name};
    if (!e->lines) { /* `#line` does not stand in macros */
        fold.macro = str_format(e->tiles->arena, "TDSL_TILE%u_%s", e->n_tiles, e->symbol);
    }
    bool made = functions_put(e, &fold, parameters, body, n);
    if (e->lines) {
        line_unmark(e, &e->tiles->folds);
    }
    if (made) {
        vec_push(e->tiles->arena, &e->tiles->fold, fold);
        text_printf(&e->tiles->members, "    void (*%s)(%s);\n", name + strlen("tdsl_"),
                    parameters);
    }
    line_printf(&e->w, "%s->%s(%s);", e->own.folds, fold.name + strlen("tdsl_"), arguments);
    e->uses_isa = true;
}

/* ---- all of them ---- */
