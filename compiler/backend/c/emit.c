/* SPDX-License-Identifier: Apache-2.0 */
/* The files: one .c and one .h for all kernels of a compilation, or both texts in one file. Text is gathered in parts,
 * since what the top of a file needs is known when its end has been printed. */
#include <string.h>

#include "backend/c/c.h"
#include "backend/c/interface/interface.h"
#include "dist/dist.h"

/* More kernels than this are not listed in the contents. */
#define CONTENTS_KERNELS 30

typedef struct File {
    Ctx *ctx;
    bool lines;         /* see emit_line.c */
    Counters *counters; /* see emit_profile.c; or null */
    Arena *arena;
    OutputSet *set;
    Arena scratch; /* of the kernel being printed */
    Helpers help;
    Tiles tiles;
    Text header;  /* of all kernels */
    Text kernels; /* loops of all kernels */
    Text tables;  /* what describes them */
    Text list;    /* rows of the table of kernels */
    Text ranks;   /* tables of those on ranks, and their declarations */
    Text ranks_header;
    bool complex; /* some kernel has such numbers */
    SharedNeeds needs;
    Across across;
} File;

/* Who writes single elements: those that only the function writes which declares them are scalars. */
typedef struct Writers {
    Emitter *e;
    uint32_t n;         /* functions so far, */
    uint32_t *declared; /* [bufs] in which it is declared; 0: in none */
    bool *apart;        /* [bufs]: another one writes it */
} Writers;

static void writers_find(Writers *w, Stmt *const *body, uint32_t n, uint32_t function,
                         bool in_tile)
{
    const Kernel *k = w->e->w.k;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC && !in_tile && is_register_alloc(k, s)) {
            in_tile = true;
            function = ++w->n;
        }
        if (s->kind == STMT_ALLOC) {
            w->declared[s->buf] = function;
        } else if (s->kind == STMT_TILE) {
            bool own = !in_tile && !stmt_is_product(s) && stmt_has_lanes(s);
            w->apart[s->dst] |= own || w->declared[s->dst] != function;
        } else if (s->threads != NULL) {
            writers_find(w, s->body, s->n_body, ++w->n, in_tile);
        } else {
            writers_find(w, s->body, s->n_body, function, in_tile);
        }
    }
}

static void scalars_find(Emitter *e)
{
    const Kernel *k = e->w.k;
    Writers w = {.e = e, .n = 1};
    w.declared = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, uint32_t);
    w.apart = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
    writers_find(&w, k->body, k->n_body, 1, false);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        const Buffer *x = &k->bufs.at[b];
        e->w.scalar[b] |=
            x->rank == 0 && !x->cascade && x->space != SPACE_ARGUMENT && !w.apart[b];
    }
}

/* Names a caller sees first, so that they are changed least. */
static void emitter_init(Emitter *e, File *f, const Kernel *k, ExportedName name)
{
    *e = (Emitter){.w = {.arena = &f->scratch, .k = k, .help = &f->help},
                   .ctx = f->ctx,
                   .tiles = &f->tiles,
                   .lines = f->lines,
                   .counters = f->counters,
                   .symbol = name.symbol,
                   .macro = name.macro};
    names_init(&e->w.names, &f->scratch);
    map_init(&e->quoted, &f->scratch);
    (void)names_take(&e->w.names, e->symbol);
    e->w.dim = ARENA_ARRAY(&f->scratch, k->dims.list.n + 1, const char *);
    e->w.var = ARENA_ARRAY(&f->scratch, k->vars.n + GATHERED_ROWS * RANK_LIMIT, const char *);
    e->w.buf = ARENA_ARRAY(&f->scratch, k->bufs.n + 1, const char *);
    e->w.scalar = ARENA_ARRAY(&f->scratch, k->bufs.n + 1, bool);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        e->w.dim[d] = names_take(&e->w.names, k->dims.list.at[d].name->text);
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef b = k->args.at[i].buf;
        e->w.buf[b] = names_take(&e->w.names, k->bufs.at[b].name->text);
        e->w.scalar[b] = k->args.at[i].role == ARG_SCALAR;
    }
    e->own.bytes = names_take(&e->w.names, "bytes");
    e->own.size = names_take(&e->w.names, "size");
    e->own.need = names_take(&e->w.names, "need");
    e->own.none = names_take(&e->w.names, "none");
    e->own.ws = names_take(&e->w.names, "ws");
    e->own.isa = names_take(&e->w.names, "isa");
    e->own.folds =
        f->tiles.role == FILE_SHARING ? names_take(&e->w.names, "folds") : e->own.isa;
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (e->w.buf[b] == NULL) {
            const char *text = k->bufs.at[b].name->text;
            bool pack = k->bufs.at[b].panels != 0;
            size_t n = pack ? strcspn(text, "0123456789") : strlen(text);
            e->w.buf[b] = names_take(&e->w.names, str_format(e->w.arena, "%.*s", (int)n, text));
            e->w.scalar[b] = k->bufs.at[b].space == SPACE_ACC && k->bufs.at[b].rank == 0;
        }
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        e->w.var[v] = names_take(&e->w.names, k->vars.at[v].name->text);
    }
    const struct {
        const char **name, *wish;
    } late[] = {
        {&e->own.each, "each"},     {&e->own.space, "space"}, {&e->own.crew, "crew"},
        {&e->own.common, "common"}, {&e->own.work, "work"},   {&e->own.number, "number"},
        {&e->own.first, "i"},       {&e->own.until, "until"}, {&e->own.count, "count"},
        {&e->own.worth, "worth"},   {&e->own.from, "from"},   {&e->own.step, "step"},
        {&e->own.front, "front"},   {&e->own.most, "most"},   {&e->own.next, "next"},
        {&e->own.skip, "skip"},     {&e->own.strip, "strip"}, {&e->own.end, "end"},
        {&e->own.near, "near"},     {&e->own.far, "far"}};
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        *late[i].name = names_take(&e->w.names, late[i].wish);
    }
    text_init(&e->parts, e->w.arena);
}

static bool uses_complex(const Kernel *k)
{
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (dtype_is_complex(k->bufs.at[b].dtype)) {
            return true;
        }
    }
    return false;
}

/* Beside the kernel, whose names it does not share. */
static void positions_emit(File *f, const Kernel *k, ExportedName name)
{
    Emitter e;
    if (k->positions != NULL) {
        emitter_init(&e, f, k->positions, name);
        computed_begin(&e, f->needs.extents > 0);
        e.w.out = &f->tables;
        required_emit(&e, k);
    }
}

static void kernel_emit(File *f, const Kernel *k, ExportedName name, const char *source)
{
    Emitter e;
    ArenaMark mark = arena_mark(&f->scratch);
    emitter_init(&e, f, k, name);
    computed_begin(&e, f->needs.extents > 0);
    e.file_requires = f->needs.requires;
    e.file_factors = f->needs.factors;
    Text body;
    size_t folds = f->tiles.folds.n, from = f->kernels.n, tables = f->tables.n;
    lines_init(&body, &f->scratch, 1);
    e.w.out = &body;
    scalars_find(&e);
    counts_bind(&e, k->body, k->n_body, true, 0);
    block_emit(&e, k->body, k->n_body, (WorkspaceTop){e.own.ws, 0});
    e.w.out = &f->kernels;
    kernel_loops_emit(&e, &body);
    e.w.out = &f->tables;
    kernel_sizes_emit(&e);
    positions_emit(f, k, name);
    kernel_info_emit(&e, source);
    output_count(f->set, k->name->text, str_from(f->tiles.folds.at + folds));
    output_count(f->set, k->name->text, str_from(f->kernels.at + from));
    output_count(f->set, k->name->text, str_from(f->tables.at + tables));
    output_workspace(f->set, k->name->text, workspace_bytes(k, true));
    kernel_header_emit(&e, &f->header);
    if (dist_owner(&k->ranks).at == NULL) { /* local kernels are no kernels of the program */
        text_printf(&f->list, "    &tdsl_table_%s,\n", e.symbol);
    }
    f->complex |= uses_complex(k);
    needs_add(&f->needs, &e);
    arena_reset(&f->scratch, mark);
}

/* Of kernels with a plan: when all kernels are there. */
static bool tables_of_ranks(File *f, const KernelModule *m, const ExportedName *name)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < m->kernels.n; k++) {
        if (dist_planned(&m->kernels.at[k]->ranks)) {
            Emitter e;
            ArenaMark mark = arena_mark(&f->scratch);
            emitter_init(&e, f, m->kernels.at[k], name[k]);
            computed_begin(&e, f->needs.extents > 0);
            ok = ranks_emit(&e, m, name, &f->ranks);
            text_printf(&f->ranks_header,
                        "extern const tdsl_dist_info %s_dist;\n"
                        "/* What rank `rank` has of dimension `dim` of argument `arg`. */\n"
                        "tdsl_range %s_cut(int32_t arg, int32_t dim, const int64_t *dims, "
                        "const tdsl_mesh *mesh, int32_t rank);\n",
                        e.symbol, e.symbol);
            arena_reset(&f->scratch, mark);
        }
    }
    return ok;
}

static const char about_sums[] =
    "\n/* Sums run over the summed indices in the order of the loops below, in the element "
    "type of their accumulator;\n"
    " * vectors and blocks hold partial sums, which are added in order. Products may be "
    "contracted into fused\n"
    " * multiply-adds: in register tiles unless TDSL_NO_FMA is defined, elsewhere where the C "
    "compiler is allowed to\n * (-ffp-contract). Integers wrap. */\n";

static const char about_helpers[] =
    "\n#if defined(__GNUC__)\n"
    "#define TDSL_HELPER static inline __attribute__((unused, always_inline))\n"
    "#define TDSL_ALIGNED __attribute__((unused, aligned(64))) /* as fast wherever it stands "
    "*/\n#else\n"
    "#define TDSL_HELPER static inline\n#define TDSL_ALIGNED\n#endif\n";

/* Where what is, in the order of the file; a row is left out if its text is. */
static void contents_emit(File *f, const KernelModule *m, const ExportedName *name, Text *out,
                          bool tiles)
{
    text_put(out, "\n/* In this file, in this order:\n *\n");
    for (uint32_t k = 0; k < m->kernels.n && k < CONTENTS_KERNELS; k++) {
        text_printf(out, " *   tdsl_loops_%-18s ", name[k].symbol);
        text_comment(out, str_from(m->kernels.at[k]->signature != NULL
                                       ? m->kernels.at[k]->signature
                                       : m->kernels.at[k]->name->text));
        text_put(out, "\n");
    }
    if (m->kernels.n > CONTENTS_KERNELS) {
        text_printf(out, " *   and %u more\n", m->kernels.n - CONTENTS_KERNELS);
    }
    bool alone = f->tiles.role == FILE_ALONE;
    text_put(out, f->help.text.n == 0 || !alone ? "" : " *   functions that they share\n");
    text_put(out, tiles ? " *   register tiles, and tables of them by instruction set\n" : "");
    text_put(out, alone ? " *   tdsl_call, which checks arguments; " : " *   ");
    text_put(out, "what other files call\n */\n");
}

static void includes_put(const File *f, Text *out)
{
    text_put(out, "\n#include <stddef.h>\n#include <stdint.h>\n");
    text_put(out, f->help.complex ? "#include <complex.h>\n" : "");
    text_put(out, f->help.math ? "#include <math.h>\n" : "");
}

static void source_text(File *f, const KernelModule *m, const ExportedName *name, Text *out,
                        const char *list)
{
    Text tiles, entries, all, include;
    Text *const new[] = {&tiles, &entries, &all, &include};
    bool alone = f->tiles.role == FILE_ALONE;
    for (size_t i = 0; i < sizeof new / sizeof *new; i++) {
        lines_init(new[i], f->arena, 0);
    }
    if (!alone) {
        across_include(&f->tiles, &f->across, &include);
        f->tiles.shapes.n = 0; /* another file has them */
    } else if (f->list.n > 0) {
        shared_needs(&f->help, &f->needs);
        shared_types_emit(&entries, &f->needs);
        shared_functions_emit(&entries, &f->needs);
        shared_macros_emit(&entries, &f->needs);
    }
    tiles_emit(&f->tiles, &tiles); /* says which vectors are used */
    text_put(&all, alone ? f->help.text.at : "");
    text_put(&all, tiles.at);
    contents_emit(f, m, name, out, tiles.n > 0);
    text_put(out, about_sums);
    text_put(out, include.at);
    if (alone) {
        includes_put(f, out);
        bool helpers =
            strstr(all.at, "TDSL_HELPER") != NULL || strstr(all.at, "TDSL_ALIGNED") != NULL;
        text_put(out, helpers ? about_helpers : "");
        text_put(out, f->help.types.at);
    }
    tiles_type_emit(&f->tiles, out);
    text_put(out, "\n"); /* what kernels call, defined below */
    declare_used(f->arena, out, f->kernels.at, all.at);
    text_put(out, f->kernels.at);
    if (alone) {
        isa_names_emit(&f->tiles, out, all.at);
    }
    text_put(out, all.at);
    text_put(out, entries.at);
    text_put(out, f->tables.at);
    text_put(out, f->ranks.at);
    text_printf(out, "\nconst tdsl_kernel_info *const %s[] = {\n%s    NULL,\n};\n", list,
                f->list.at);
}

/* What other files share of these kernels. */
static void shared_files(File *f, const EmitOptions *o, const char *source)
{
    Arena *a = f->arena;
    Text about, h, c;
    Text *const new[] = {&about, &h, &c};
    for (size_t i = 0; i < sizeof new / sizeof *new; i++) {
        lines_init(new[i], a, 0);
    }
    abi_emit(&about, f->complex);
    includes_put(f, &about);
    text_put(&about, about_helpers);
    const char *guard = str_format(a, "TDSL_SHARED_%s_H", exported_stem(a, o->header_name));
    generated_emit(&h, o, source, NULL);
    text_printf(&h, "\n#ifndef %s\n#define %s\n\n", guard, guard);
    across_emit(&f->tiles, &f->across, about.at, &h, &c);
    text_put(&h, "\n#endif\n");
    Text all;
    text_init(&all, a);
    generated_emit(&all, o, source, NULL);
    text_printf(&all, "\n#include \"%s\"\n%s", o->header_name, c.at);
    vec_push(a, &f->set->files, ((OutputFile){".c", NULL, text_str(&all)}));
    vec_push(a, &f->set->files, ((OutputFile){".h", NULL, text_str(&h)}));
}

static uint32_t count_tiles(const Kernel *k)
{
    StmtWalk w;
    uint32_t count = 0;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        count++;
    }
    return count;
}

static bool is_printable(Ctx *ctx, const KernelModule *m)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        count += count_tiles(m->kernels.at[k]);
        if (count > EMIT_STATEMENTS) {
            diag_limit(&ctx->diags, E_LIMIT_SIZE, m->kernels.at[k]->span,
                       "more than %d tile statements for one C file", EMIT_STATEMENTS);
            return false;
        }
    }
    return true;
}

bool c_emit(const Target *target, Ctx *ctx, const KernelModule *m, const EmitOptions *o,
            OutputSet *set)
{
    (void)target;
    Arena *a = set->arena;
    const ExportedName *name = is_printable(ctx, m) ? exported_names(ctx, a, m, o) : NULL;
    if (name == NULL) {
        return false;
    }
    const char *source = o->source_name != NULL   ? o->source_name
                         : m->source_name != NULL ? m->source_name
                                                  : "";
    bool lines = o->wrapper != NULL && strcmp(o->wrapper, "c-lines") == 0;
    if (o->wrapper != NULL && !lines && strcmp(o->wrapper, "shared") != 0) {
        wrapper_emit(m, name, o, source, set);
        return true;
    }
    Counters counters = {.arena = a};
    FileRole role = o->wrapper != NULL && !lines ? FILE_SHARED
                    : o->shared != NULL          ? FILE_SHARING
                                                 : FILE_ALONE;
    File f = {.ctx = ctx,
              .lines = lines,
              .counters = o->profile ? &counters : NULL,
              .arena = a,
              .set = set};
    arena_init(&f.scratch, &ctx->budget);
    helpers_init(&f.help, a);
    tiles_init(&f.tiles, a, &f.help);
    f.tiles.role = role;
    f.tiles.adds = f.tiles.far = role != FILE_ALONE; /* in other files */
    f.across = (Across){&f.needs, o->shared, o->tool_version != NULL ? o->tool_version : ""};
    text_init(&f.header, a);
    lines_init(&f.kernels, a, 0);
    lines_init(&f.tables, a, 0);
    text_init(&f.list, a);
    text_init(&f.ranks, a);
    text_init(&f.ranks_header, a);
    f.needs = needs_of_module(&f.scratch, m, role);
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        kernel_emit(&f, m->kernels.at[k], name[k], source);
    }
    bool ok = tables_of_ranks(&f, m, name);
    arena_release(&f.scratch);
    if (!ok) {
        return false;
    }
    if (role == FILE_SHARED) {
        shared_files(&f, o, source);
        return true;
    }
    const char *base = exported_stem(a, o->header_name != NULL ? o->header_name : source);
    const char *list = exported_list(a, o, base);
    Text c, h;
    lines_init(&c, a, 0);
    text_init(&h, a);
    text_reserve(&c, f.kernels.n + f.kernels.n / 16);
    generated_emit(&h, o, source, NULL);
    header_emit(&h, list, f.complex, &f.header, &f.ranks_header);
    if (o->header_name == NULL) {
        text_put(&c, h.at);
    } else {
        generated_emit(&c, o, source, NULL);
        text_printf(&c, "\n#include \"%s\"\n", o->header_name);
    }
    source_text(&f, m, name, &c, list);
    if (lines && m->kernels.n > 0) {
        lines_emit(a, &c, m->kernels.at[0]->sources, str_format(a, "%s.c", base));
    }
    if (o->profile) {
        counters_emit(a, &c, &counters);
    }
    vec_push(a, &set->files, ((OutputFile){".c", NULL, text_str(&c)}));
    if (o->header_name != NULL) {
        vec_push(a, &set->files, ((OutputFile){".h", NULL, text_str(&h)}));
    }
    return true;
}
