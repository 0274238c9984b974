/* SPDX-License-Identifier: Apache-2.0 */
/* What several C files of one build share (--emit=shared): a C file with the functions of register tiles, the choice of an instruction set
 * and the checks of arguments, and its header with types, vectors, small functions and macros. A file that shares them (--shared) holds
 * kernels, functions of their single statements, and tables.
 *
 * The names of what is linked end in a digest of both texts, so that no object meets a C file of another header. What a file needs and its
 * header may lack is either a name, for which compilers look, or in a condition in front of an #error. */
#include <string.h>

#include "backend/c/interface/interface.h"
#include "backend/c/micro.h"

/* Functions that other files call. */
static const char *const linked[] = {"tdsl_isa_here", "tdsl_need", "tdsl_call",
                                     "tdsl_multiply_adds", "tdsl_work_of"};
#define N_LINKED (sizeof linked / sizeof *linked)

/* Is the definition at the line `at` of one of them? */
static bool is_linked(const char *at)
{
    const char *open = strchr(at, '('), *end = strchr(at, '\n');
    if (strncmp(at, "static ", 7) != 0 || open == NULL || end == NULL || open > end) {
        return false;
    }
    size_t i = 0;
    for (; i < N_LINKED; i++) {
        size_t n = strlen(linked[i]);
        if ((size_t)(open - at) > n && memcmp(open - n, linked[i], n) == 0) {
            break;
        }
    }
    return i < N_LINKED;
}

/* The text without `static` before them, and their prototypes. */
static void link_functions(const char *text, Text *definitions, Text *prototypes)
{
    for (const char *at = text; *at != '\0';) {
        if (is_linked(at)) {
            at += strlen("static ");
            text_printf(prototypes, "TDSL_SHARED %.*s;\n", (int)(strstr(at, "\n{") - at), at);
        }
        const char *end = strchr(at, '\n') + 1;
        text_printf(definitions, "%.*s", (int)(end - at), at);
        at = end;
    }
}

/* One for each version of the compiler, as a number of the preprocessor. */
static uint32_t version_number(const char *version)
{
    return (uint32_t)hash_bytes(1, version, strlen(version)) & 0x7fffffff;
}

/* Of each tile and join a line with its name, and 2 where it stores past the caches, else 1. */
static void named_put(const Tiles *t, const char *before, const char *after, Text *out)
{
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        text_printf(out, "%sTDSL_SHARES_%s%s%d", before, shape_name(t, s), after,
                    s->streams ? 2 : 1);
    }
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        for (JoinKind kind = 0; kind < JOIN_KINDS; kind++) {
            if (t->joins[kind] >> type & 1u) {
                text_printf(out, "%sTDSL_SHARES_%s%s%d", before,
                            join_name(t->arena, kind, type), after,
                            (t->join_streams >> type & 1u) != 0 ? 2 : 1);
            }
        }
    }
}

void across_include(const Tiles *t, const Across *x, Text *out)
{
    text_printf(out, "\n#include \"%s\"\n", x->header);
    text_printf(out, "#if TDSL_SHARED_BY != %u || TDSL_EXTENTS < %u || TDSL_JOIN_BYTES < %lld",
                version_number(x->version), x->needs->extents, (long long)t->join_bytes);
    named_put(t, " || \\\n    ", " < ", out);
    if (strstr(t->folds.at, "TDSL_LANES") != NULL) {
        text_put(out, " || \\\n    !defined(TDSL_LANES)");
    }
    text_put(out, "\n#error \"the shared header is of other programs, other options or another "
                  "tdslc: write it again, by --emit=shared\"\n#endif\n");
}

/* What differs by the file's own options is part of the names too. */
static void names_emit(uint64_t digest, Text *out)
{
    static const char head[] = "\n/* Linked names: they say which texts belong together. */\n"
                               "#if defined(__GNUC__) && !defined(_WIN32)\n"
                               "#define TDSL_SHARED __attribute__((visibility(\"hidden\")))\n"
                               "#else\n#define TDSL_SHARED\n#endif\n#if defined(TDSL_NO_FMA)\n";
    text_put(out, head);
    text_printf(out,
                "#define TDSL_LINKED(x) x##_0%016llx_without_fma\n#else\n"
                "#define TDSL_LINKED(x) x##_0%016llx\n#endif\n",
                (unsigned long long)digest, (unsigned long long)digest);
    for (size_t i = 0; i < N_LINKED; i++) {
        text_printf(out, "#define %s TDSL_LINKED(%s)\n", linked[i], linked[i]);
    }
}

/* What of the header depends on the kernels, and the C behind it. */
typedef struct AcrossTexts {
    Text types, names, functions, entries, macros, prototypes, c;
} AcrossTexts;

static void texts_make(Tiles *t, const Across *x, AcrossTexts *out)
{
    Arena *a = t->arena;
    Text tiles, joins, checks, all;
    Text *const texts[] = {
        &out->types, &out->names, &out->functions,  &out->entries, &out->macros, &out->c,
        &tiles,      &joins,      &out->prototypes, &checks,       &all};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lines_init(texts[i], a, 0);
    }
    shared_needs(t->help, x->needs);
    tiles_emit(t, &all); /* says which vectors other files use */
    text_clear(&all);
    Tiles products = *t; /* without functions of single statements */
    products.fold.n = 0;
    text_init(&products.folds, a);
    text_init(&products.members, a);
    joins_emit(&products, &joins);
    tiles_emit(&products, &tiles);
    text_printf(&out->functions, "%s%s", t->help->text.at, joins.at);
    text_printf(&all, "%s%s%s", out->functions.at, tiles.at, t->folds.at);
    text_put(&out->types, t->help->types.at);
    tiles_type_emit(&products, &out->types);
    products.fold = t->fold;
    isa_names_emit(&products, &out->names, all.at);
    shared_types_emit(&out->entries, x->needs);
    shared_functions_emit(&checks, x->needs);
    shared_macros_emit(&out->macros, x->needs);
    text_put(&out->prototypes, "TDSL_SHARED const tdsl_isa *tdsl_isa_here(void);\n");
    text_put(&out->c, tiles.at);
    text_put(&out->c, "\n");
    link_functions(checks.at, &out->c, &out->prototypes);
}

void across_emit(Tiles *t, const Across *x, const char *about, Text *h, Text *c)
{
    AcrossTexts all;
    texts_make(t, x, &all);
    const Text *const in_header[] = {&all.types,   &all.names,      &all.functions,
                                     &all.entries, &all.prototypes, &all.macros};
    uint64_t digest = hash_bytes(1, all.c.at, all.c.n);
    for (size_t i = 0; i < sizeof in_header / sizeof *in_header; i++) {
        digest = hash_bytes(digest, in_header[i]->at, in_header[i]->n);
    }
    text_put(h, about);
    names_emit(digest, h);
    text_printf(h, "\n#define TDSL_SHARED_BY %u\n#define TDSL_JOIN_BYTES %lld",
                version_number(x->version), (long long)t->join_bytes);
    named_put(t, "\n#define ", " ", h);
    text_put(h, "\n");
    for (size_t i = 0; i < sizeof in_header / sizeof *in_header; i++) {
        text_put(h, in_header[i]->at);
    }
    text_put(c, all.c.at);
}
