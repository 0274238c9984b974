/* SPDX-License-Identifier: Apache-2.0 */
/* Beside the functions of register tiles: those that put a tile where not all of it is, and the tables of which an instruction
 * set's is chosen at the first call. */
#include <string.h>

#include "backend/c/micro.h"

const char *shape_name(const Tiles *t, const TileShape *s)
{
    const char *real = !dtype_is_complex(s->t) || (s->parts[0] && s->parts[1]) ? ""
                       : s->parts[0]                                           ? "_real_columns"
                                                                               : "_real_rows";
    const char *dot = s->dot.group == 0
                          ? ""
                          : str_format(t->arena, "_dot_%s_%s", dtype_name(s->dot.row),
                                       dtype_name(s->dot.column));
    const char *name =
        str_format(t->arena, "%s_%lldx%lld%s%s%s%s%s", dtype_name(s->t), (long long)s->rows,
                   (long long)s->columns, s->side ? "s" : "", dot, real, s->term.name,
                   s->by      ? "_by"
                   : s->ahead ? "_ahead"
                              : "");
    return s->n.sum == 0
               ? name
               : str_format(t->arena, "%s_%lld_%lld_%lld_%lld_%lld%s%s%s", name,
                            (long long)s->n.sum, (long long)s->n.cs_a, (long long)s->n.rs_a,
                            (long long)s->n.rs_b, (long long)s->n.rs_c,
                            (s->how & TILE_CONJ_ROW) != 0 ? "_conj_rows" : "",
                            (s->how & TILE_CONJ_COL) != 0 ? "_conj_columns" : "",
                            (s->how & TILE_ADDS) == 0 ? "_first" : "");
}

static const Op join_fold[JOIN_KINDS] = {OP_SUM, OP_SUM, OP_MIN, OP_MAX};

/* A line that joins a vector of the tile to what is there. */
static const char *joined_vector(Tiles *t, JoinKind kind, const char *v)
{
    Arena *a = t->arena;
    const char *at = vector_at(a, v, "d + j"), *to = vector_to(a, v, "d + j");
    const char *x = vector_at(a, v, "x + j");
    return join_fold[kind] == OP_SUM
               ? vector_fold(a, t->help, OP_SUM, v, to, x)
               : str_format(a, "%s y = %s; %s %s = y;", v, at,
                            vector_fold(a, t->help, join_fold[kind], v, "y", x), to);
}

static const char *joined_element(Tiles *t, DType part, JoinKind kind)
{
    return join_fold[kind] == OP_SUM
               ? "d[j * cs_c] + x[j]"
               : str_format(t->arena, "%s(x[j], d[j * cs_c])",
                            help_op(t->help, join_fold[kind], part, part));
}

const char *join_name(Arena *a, JoinKind kind, DType t)
{
    static const char *const names[JOIN_KINDS] = {"", "_by", "_min", "_max"};
    return str_format(a, "join%s_%s", names[kind], dtype_name(t));
}

void join_emit(Tiles *t, DType type, JoinKind kind, Text *out)
{
    DType part = dtype_part(type);
    bool by = kind == JOIN_BY;
    const char *c = c_type(part), *u = element_type(part);
    const char *v = vector_type(t->help, part, 16 / dtype_bytes(part));
    bool whole = dtype_is_int(type), pairs = part != type;
    bool streams = (t->join_streams >> type & 1u) != 0; /* not into e */
    const char *with = by ? ", by" : "", *param = by ? str_format(t->arena, ", %s by", c) : "";
    text_printf(out,
                "\n/* The m x n elements there are of a tile of rows x columns join what is "
                "there, if `add`. */\n"
                "TDSL_ALIGNED static void tdsl_%s(tdsl_tile%s_%s *tile, int64_t rows, "
                "int64_t columns, "
                "int64_t m, int64_t n,\n"
                "    int64_t k, const %s *a, int64_t cs_a, int64_t rs_a, const %s *b, int64_t "
                "rs_b,\n    %s *c, int64_t rs_c, int64_t cs_c, int add%s)\n{\n"
                "    %s e[%lld];\n",
                join_name(t->arena, kind, type), by ? "_by" : "", dtype_name(part), c, c, c,
                param, c, (long long)(t->join_bytes / dtype_bytes(part)));
    text_printf(
        out,
        "    if (m == rows && n == columns && cs_c == %d) {\n"
        "        tile(k, a, cs_a, rs_a, b, rs_b, c, rs_c, add%s);\n        return;\n    }\n",
        pairs ? 2 : 1, with);
    text_printf(out,
                pairs ? "    columns *= 2;\n    n *= 2;\n"
                        "    tile(k, a, cs_a, rs_a, b, rs_b, e, columns, add & %s%s);\n"
                      : "    tile(k, a, cs_a, rs_a, b, rs_b, e, columns, 0%s%s);\n",
                !pairs    ? ""
                : streams ? "~9"
                          : "~1",
                with);
    text_put(out, pairs || streams ? "    add &= 1;\n" : "");
    text_printf(out,
                "    for (int64_t i = 0; i < m; ++i) {\n"
                "        const %s *x = e + i * columns;\n        %s *d = c + i * rs_c;\n",
                c, c);
    long long lanes = (long long)(16 / dtype_bytes(part));
    text_printf(out,
                "#if TDSL_ROWS & TDSL_ISA_plain\n        const int64_t whole = 0;\n#else\n"
                "        const int64_t whole = cs_c == %d ? n - n %% %lld : 0;\n"
                "        for (int64_t j = 0; j < whole; j += %lld) {\n"
                "            if (add) {\n",
                pairs ? 2 : 1, lanes, lanes);
    text_printf(out,
                "                %s\n            } else {\n                %s = %s;\n"
                "            }\n        }\n#endif\n",
                joined_vector(t, kind, v), vector_to(t->arena, v, "d + j"),
                vector_at(t->arena, v, "x + j"));
    text_put(out, "        for (int64_t j = whole; j < n; ++j) {\n");
    if (whole) {
        text_printf(
            out, "            d[j * cs_c] = add ? (%s)((%s)d[j * cs_c] + (%s)x[j]) : x[j];\n",
            c, u, u);
    } else if (pairs) {
        text_printf(out, "            %s *z = d + j / 2 * cs_c + j %% 2;\n", c);
        text_put(out, "            *z = add ? *z + x[j] : x[j];\n");
    } else {
        text_printf(out, "            d[j * cs_c] = add ? %s : x[j];\n",
                    joined_element(t, part, kind));
    }
    text_put(out, "        }\n    }\n}\n");
}

const char *tiles_table(const Tiles *t)
{
    return t->role == FILE_SHARING ? "tdsl_folds" : "tdsl_isa";
}

/* The table of an instruction set. */
void table_macro(const Tiles *t, Text *out)
{
    Text lines;
    text_init(&lines, t->arena);
    text_printf(&lines, "    static const %s %s_##ISA = {\n", tiles_table(t), tiles_table(t));
    text_put(&lines, t->role == FILE_SHARED ? "        TDSL_ISA_##ISA,\n" : "");
    bool dots = tiles_have_dots(t);
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        bool base = dots && t->shapes.at[i].dot.group == 0;
        text_printf(&lines, "        tdsl_%s_##%s,\n", shape_name(t, &t->shapes.at[i]),
                    base ? "BASE" : "ISA");
    }
    for (uint32_t i = 0; i < t->fold.n; i++) {
        text_printf(&lines, "        %s_##%s,\n", t->fold.at[i].name, dots ? "BASE" : "ISA");
    }
    text_put(&lines, "    };\n");
    macro_put(out, dots ? "TDSL_TABLE(ISA, BASE)" : "TDSL_TABLE(ISA)", lines.at);
}

static void best_row(Text *out, const Isa *isa)
{
    text_printf(out, "        isa = %s ? &tdsl_isa_%s : isa;\n", isa->test, isa->name);
}

/* Where functions of products are another file's: the row that it has found, unless the compiler is told which. */
static void same_row_emit(Text *out)
{
    text_put(out, "\n/* Of the instruction set that tdsl_isa_here() has found. */\n"
                  "TDSL_HELPER const tdsl_folds *tdsl_folds_here(void)\n{\n"
                  "#if defined(TDSL_ISA)\n    const int row = TDSL_ROWS;\n#else\n"
                  "    const int row = tdsl_isa_here()->row;\n#endif\n");
    for (uint32_t r = ISA_COUNT; r-- > 0;) {
        const char *name = isa_table[r].name;
        text_printf(out,
                    "#if TDSL_ROWS & TDSL_ISA_%s\n    if (row & TDSL_ISA_%s) {\n"
                    "        return &tdsl_folds_%s;\n    }\n#endif\n",
                    name, name, name);
    }
    text_put(out, "    return NULL; /* never: it has a row of these */\n}\n");
}

void best_emit(const Tiles *t, Text *out)
{
    if (t->role == FILE_SHARING) {
        same_row_emit(out);
        return;
    }
    text_put(out, "\n/* The best that this processor has. Found at the first call: threads "
                  "that do not see it yet "
                  "find the same. */\n");
    text_put(out, t->role == FILE_ALONE ? "TDSL_HELPER " : "");
    text_put(out, "const tdsl_isa *tdsl_isa_here(void)\n{\n#if defined(TDSL_ISA)\n"
                  "    return &TDSL_PASTE(tdsl_isa_, TDSL_ISA);\n#else\n"
                  "    static const tdsl_isa *found;\n"
                  "    const tdsl_isa *isa = __atomic_load_n(&found, __ATOMIC_RELAXED);\n"
                  "    if (isa == NULL) {\n        isa = &tdsl_isa_vectors;\n");
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        if (isa_table[r].test != NULL) {
            best_row(out, &isa_table[r]);
        }
        for (uint32_t i = 0; tiles_have_dots(t) && i < ISA_DOT_COUNT; i++) {
            const Isa *dots = &isa_dot_table[i].isa;
            if (isa_dot_table[i].base == r && dots->test != NULL) {
                text_printf(out, "#if TDSL_ROWS & TDSL_DOTS_%s\n", dots->name);
                best_row(out, dots);
                text_put(out, "#endif\n");
            }
        }
    }
    text_put(out, "        __atomic_store_n(&found, isa, __ATOMIC_RELAXED);\n    }\n"
                  "    return isa;\n#endif\n}\n");
}

static bool shape_eq(const TileShape *x, const TileShape *y)
{
    return x->t == y->t && x->rows == y->rows && x->columns == y->columns &&
           x->parts[0] == y->parts[0] && x->parts[1] == y->parts[1] && x->side == y->side &&
           x->ahead == y->ahead && x->by == y->by && strcmp(x->term.name, y->term.name) == 0 &&
           x->dot.group == y->dot.group && x->dot.row == y->dot.row &&
           x->dot.column == y->dot.column && x->how == y->how &&
           memcmp(&x->n, &y->n, sizeof x->n) == 0;
}

const char *tile_use(Tiles *t, TileShape s)
{
    uint32_t i = 0;
    while (i < t->shapes.n && !shape_eq(&t->shapes.at[i], &s)) {
        i++;
    }
    if (i == t->shapes.n) {
        vec_push(t->arena, &t->shapes, s);
    }
    t->shapes.at[i].streams |= s.streams;
    return shape_name(t, &s);
}

bool tiles_have_dots(const Tiles *t)
{
    uint32_t i = 0;
    while (i < t->shapes.n && t->shapes.at[i].dot.group == 0) {
        i++;
    }
    return i < t->shapes.n;
}
