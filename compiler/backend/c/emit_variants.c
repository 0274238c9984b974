/* SPDX-License-Identifier: Apache-2.0 */
/* A register tile that is no product (emit_product.c) as a function, and its call: the statements that use an accumulator of rank >= 1, or
 * one that runs as lanes. Its parameters are what it needs from outside. It is the macro of an instruction set, or, where each line is to
 * say which one of the program it is, a function for each. */
#include <string.h>

#include "backend/c/micro.h"

#include "loop/walk.h"

/* What the text of the tile needs from outside, as parameters with types, or as arguments. */
static const char *parameters_text(Emitter *e, const Captured *c, const bool *written,
                                   bool types)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t i = 0; i < c->n; i++) {
        const Known *x = &e->known[c->at[i]];
        text_put(&t, i > 0 ? ", " : "");
        if (types && x->kind == KNOWN_BUF) {
            const Buffer *b = &e->w.k->bufs.at[x->number];
            const char *type = b->cascade ? help_sum(e->w.help, b) : c_type(b->dtype);
            bool scalar = e->w.scalar[x->number];
            text_printf(&t, scalar ? "%s%s " : "%s%s *TDSL_RESTRICT ",
                        written[x->number] || scalar ? "" : "const ", type);
        } else if (types) {
            text_put(&t, "int64_t ");
        }
        text_put(&t, e->w.names.list.at[c->at[i]]);
    }
    return t.n == 0 && types ? "void" : t.at;
}

/* ---- the functions ---- */

/* The body for an instruction set, or for all of them. */
static const char *body_text(Emitter *e, const Isa *isa, Stmt *const *body, uint32_t n)
{
    Text *outer = e->w.out, t;
    Counts counts = e->w.counts;
    uint32_t temps = e->w.n_temps;
    lines_init(&t, e->w.arena, 1);
    e->w.out = &t;
    line_put(&t, stmt_has_lanes(body[0]) ? "TDSL_EXACT" : "TDSL_CONTRACT");
    e->in_tile = true;
    e->isa = isa;
    e->vectors.at = NULL; /* those of the last function stay where they are */
    e->vectors.n = e->vectors.cap = 0;
    e->w.n_temps = 0;
    e->w.counts = (Counts){0}; /* those around have no names in the function */
    counts_bind(e, body, n, true, 0);
    block_emit(e, body, n, (WorkspaceTop){NULL, 0});
    e->w.counts = counts;
    e->w.n_temps = temps;
    e->in_tile = false;
    e->isa = NULL;
    e->w.out = outer;
    return t.at;
}

static const char *kind_of(Stmt *const *body)
{
    return stmt_has_lanes(body[0]) ? "TDSL_LANES" : "TDSL_TILE";
}

/* A function for one instruction set, as it is. */
static void function_put(Emitter *e, const TileFold *f, const char *parameters, const Isa *isa,
                         Stmt *const *body, uint32_t n)
{
    Text *out = &e->tiles->folds;
    text_printf(out, "\n#if TDSL_ROWS & TDSL_ISA_%s\n", isa->name);
    line_put(out, str_format(e->w.arena, "%s TDSL_FOR_%s static void %s_%s(%s)", kind_of(body),
                             isa->name, f->name, isa->name, parameters));
    text_printf(out, "{\n%s}\n#endif\n", body_text(e, isa, body, n));
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

typedef struct Signature {
    const char *parameters, *arguments;
} Signature;

/* False: the file has an equal function, which is the fold's now. */
static bool functions_put(Emitter *e, TileFold *f, Signature *of, Stmt *const *body, uint32_t n)
{
    bool macro = f->macro != NULL;
    bool *written = ARENA_ARRAY(e->w.arena, (size_t)e->w.k->bufs.n + 1, bool);
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        written[s->dst] = true;
    }
    const char *text = body_text(e, macro ? NULL : isa_table, body, n);
    Captured used = captured_find(e, body, n, text);
    of->parameters = parameters_text(e, &used, written, true);
    of->arguments = parameters_text(e, &used, written, false);
    for (uint32_t r = 0; !macro && r < ISA_COUNT; r++) {
        function_put(e, f, of->parameters, &isa_table[r], body, n);
    }
    if (!macro) {
        return true;
    }
    if (is_there(e, f,
                 str_format(e->w.arena, "%s (%s) {%s}", kind_of(body), of->parameters, text))) {
        return false;
    }
    Text lines;
    lines_init(&lines, e->w.arena, 1);
    line_put(&lines, str_format(e->w.arena, "%s TDSL_FOR_##ISA static void %s_##ISA(%s)",
                                kind_of(body), f->name, of->parameters));
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
    const char *name = str_format(e->tiles->arena, "tdsl_tile%u_%s", ++e->n_tiles, e->symbol);
    if (e->lines) { /* counters count where it is called */
        line_mark(e, &e->tiles->folds, body, n);
    }
    TileFold fold = {.name = name};
    if (!e->lines) { /* `#line` does not stand in macros */
        fold.macro = str_format(e->tiles->arena, "TDSL_TILE%u_%s", e->n_tiles, e->symbol);
    }
    Signature of;
    bool made = functions_put(e, &fold, &of, body, n);
    if (e->lines) {
        line_unmark(e, &e->tiles->folds);
    }
    if (made) {
        vec_push(e->tiles->arena, &e->tiles->fold, fold);
        text_printf(&e->tiles->members, "    void (*%s)(%s);\n", name + strlen("tdsl_"),
                    of.parameters);
    }
    line_printf(&e->w, "%s->%s(%s);", e->own.folds, fold.name + strlen("tdsl_"), of.arguments);
    e->uses_isa = true;
}
