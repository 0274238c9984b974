/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that products call: a register tile of one type and shape, once for each instruction set (isa.h). What the
 * processor has is a table of functions, chosen at the first call and read at the entry of a kernel. All rows add in the
 * same order.
 *
 * A function runs over the parts of its tile that fit registers (emit_micro.c). Those of one kind are one macro, and a line
 * for each of them. */
#include <string.h>

#include "backend/c/micro.h"

void tiles_init(Tiles *t, Arena *a, Helpers *help)
{
    *t = (Tiles){.arena = a, .help = help};
    lines_init(&t->folds, a, 0);
    text_init(&t->members, a);
}

/* ---- a function ---- */

/* Are vectors of plain C those of the macro? Not where they are words, or numbers that change places. */
static bool is_plain_vector(const Printer *p)
{
    return p->isa->vector_bytes == 0 && p->whole && p->s->dot.group == 0;
}

/* The next group of columns from `from` on, of at most `most` vectors and elements. */
static Columns next_columns(const Printer *p, int64_t from, int64_t most)
{
    Columns x = {.from = from};
    for (int64_t n = 0; from + x.width < p->width && n < most; n++) {
        int64_t lanes = vector_part(p->isa->vector_bytes, p->part, p->width - from - x.width);
        if (p->s->parts[1] && lanes == 1 && x.width % 2 == 0 && n + 1 == most) {
            break; /* both parts of a number are in one group */
        }
        if (x.n == 0 || x.run[x.n - 1].lanes != lanes) {
            x.run[x.n++] = (Run){.lanes = lanes, .vectors = lanes > 1 || is_plain_vector(p)};
        }
        x.run[x.n - 1].n++;
        x.width += lanes;
    }
    return x;
}

static int64_t count_vectors(const Columns *x)
{
    int64_t n = 0;
    for (uint32_t g = 0; g < x->n; g++) {
        n += x->run[g].n;
    }
    return n;
}

/* Where groups like the first one end: they are as wide, so they are of the same vectors. */
static int64_t groups_end(const Printer *p, const Columns *first, int64_t most)
{
    int64_t to = first->from;
    while (to < p->width && next_columns(p, to, most).width == first->width) {
        to += first->width;
    }
    return to;
}

/* How many loops over the sum there are in a call. */
static int64_t passes_of(const Printer *p, const IsaCover *cover)
{
    int64_t passes = 0;
    for (int64_t from = 0; from < p->width; passes++) {
        from += next_columns(p, from, cover->vectors).width;
    }
    return passes * ((p->s->rows + cover->rows - 1) / cover->rows);
}

/* Rows from..to in blocks; where all groups are alike, by the names of the function's parameters. */
static void blocks_put(Printer *p, int64_t height, const Columns *x, bool equal,
                       const char *from, const char *to, const char *rows)
{
    Arguments all;
    arguments_init(&all, p->w.arena);
    block_arguments(p, x, &all);
    if (p->s->n.sum == 0) {
        argument_number(&all, "COLUMNS", p->width);
    }
    if (p->s->ahead) {
        argument_number(&all, "P", p->passes);
    }
    line_printf(&p->w, "%s(%s, %s, %s, %s)", block_macro(p, height, x), from, to, rows,
                equal ? all.names.at : all.values.at);
}

/* Blocks of equal height, then what is left. */
static void rows_emit(Printer *p, int64_t height, const Columns *x, bool equal)
{
    int64_t rows = p->s->rows, rest = rows % height;
    const char *at[4];
    const char *const names[4] = {rest == 0 ? "ROWS" : "ROWS / R * R", "R", "ROWS", "S"};
    const int64_t values[4] = {rows - rest, height, rows, rest};
    for (int i = 0; i < 4; i++) {
        at[i] = equal ? names[i] : str_format(p->w.arena, "%lld", (long long)values[i]);
    }
    blocks_put(p, height, x, equal, "0", at[0], at[1]);
    if (rest > 0) {
        blocks_put(p, rest, x, equal, at[0], at[2], at[3]);
    }
}

/* What stands before the loops. */
static void locals_emit(Printer *p)
{
    const TileShape *s = p->s;
    if (!p->whole) {
        pairs_signs(p);
    }
    if (s->side) {
        line_printf(&p->w, "(void)rs_a;");
    }
    if (p->streams) {
        line_printf(&p->w,
                    "const int streams = (add & %d) != 0 && ((uintptr_t)c | (uintptr_t)rs_c * "
                    "sizeof(T)) %% %d == 0;",
                    TILE_STREAMS, LINE_BYTES);
    }
    if (s->ahead) {
        line_printf(&p->w, "int64_t asked = 0;");
    }
}

/* The macro of its parameters. */
static const char *parameters_of(const TileShape *s)
{
    return s->n.sum > 0 ? "SHORT" : s->ahead ? "AHEAD" : "TILE";
}

static void head_emit(Printer *p)
{
    const TileShape *s = p->s;
    line_printf(&p->w,
                "TDSL_TILE TDSL_FOR_##ISA static void tdsl_##NAME##_##ISA(TDSL_%s_OF(T)%s)",
                parameters_of(s), s->by ? ", T by" : "");
    scope_printf(&p->w, "{");
    line_put(p->w.out, "TDSL_CONTRACT");
    if (s->n.sum > 0) {
        line_printf(
            &p->w, "const int64_t n = SUM, cs_a = CS_A, rs_a = RS_A, rs_b = RS_B, rs_c = RS_C, "
                   "add = HOW;");
    }
    locals_emit(p);
}

/* How the columns are cut. */
typedef struct Cut {
    IsaCover cover;
    Columns first;
    bool equal; /* all groups are as the first one */
} Cut;

/* Registers that dot products need beside sums: a constant and two vectors of rows' sums; else halves of columns and of a row's word, and
 * products. */
static int64_t held_of(const Printer *p, int64_t parts)
{
    bool bytes = p->s->dot.group == 4, split = bytes && p->dots == DOTS_PAIRS;
    return split ? (parts < 2 ? parts : 2) + 2 : dot_is_flipped(p) ? 3 : 0;
}

static Cut cut_of(Printer *p)
{
    Columns all = next_columns(p, 0, INT64_MAX);
    int64_t n = count_vectors(&all);
    Cut c = {.cover = p->isa->vector_bytes == 0
                          ? (IsaCover){1, n}
                          : isa_cover(p->isa, p->s->rows, n, p->both ? 2 : 1, held_of(p, n))};
    c.first = next_columns(p, 0, c.cover.vectors);
    c.equal = groups_end(p, &c.first, c.cover.vectors) == p->width;
    p->passes = passes_of(p, &c.cover);
    return c;
}

static void vectors_emit(Printer *p, const Cut *c)
{
    for (int64_t from = 0; from < p->width;) {
        Columns x = next_columns(p, from, c->cover.vectors);
        int64_t to = groups_end(p, &x, c->cover.vectors);
        if (c->equal) {
            scope_printf(&p->w, "for (int64_t j = 0; j < COLUMNS; j += %s) {",
                         columns_width(p, &x));
        } else {
            scope_printf(&p->w, "for (int64_t j = %lld; j < %lld; j += %lld) {",
                         (long long)from, (long long)to, (long long)x.width);
        }
        if (c->equal && p->s->rows % c->cover.rows == 0) {
            block_lines(p, c->cover.rows, &x, "0", "ROWS", "COLUMNS");
        } else {
            rows_emit(p, c->cover.rows, &x, c->equal);
        }
        scope_end(&p->w);
        from = to;
    }
}

/* Arguments of a macro of functions. */
static void function_arguments(Printer *p, const Cut *c, Arguments *out)
{
    const TileShape *s = p->s;
    argument_put(out, "ISA", p->isa->name);
    argument_put(out, "NAME", shape_name(p->tiles, s));
    if (c->equal) {
        argument_number(out, "ROWS", s->rows);
        argument_number(out, "COLUMNS", p->width);
        argument_number(out, "R", c->cover.rows);
        block_arguments(p, &c->first, out);
    } else {
        block_arguments(p, &(Columns){.n = 0}, out);
    }
    if (c->equal && s->rows % c->cover.rows != 0) {
        argument_number(out, "S", s->rows % c->cover.rows);
    }
    if (c->equal && s->ahead) {
        argument_number(out, "P", p->passes);
    }
    if (s->n.sum > 0) {
        argument_number(out, "SUM", s->n.sum);
        argument_number(out, "CS_A", s->n.cs_a);
        argument_number(out, "RS_A", s->n.rs_a);
        argument_number(out, "RS_B", s->n.rs_b);
        argument_number(out, "RS_C", s->n.rs_c);
        argument_number(out, "HOW", s->how);
    }
}

/* A line that makes the function of a macro, which may be there already. */
static void function_emit(Printer *p)
{
    Arena *a = p->w.arena;
    Cut cut = cut_of(p);
    Text lines, all, *out = p->w.out;
    lines_init(&lines, a, 1);
    text_init(&all, a);
    p->w.out = &lines;
    head_emit(p);
    vectors_emit(p, &cut);
    scope_end(&p->w);
    p->w.out = out;
    Arguments own;
    arguments_init(&own, a);
    function_arguments(p, &cut, &own);
    macro_put(&all, str_format(a, "@(%s)", own.names.at), lines.at);
    const char *wish = str_format(a, "TDSL_TILE_%u", cut.first.n);
    line_printf(&p->w, "%s(%s)", macro_use(p->macros, wish, all.at), own.values.at);
}

static const char tile_parameters[] =
    "\n/* A register tile: c[r, v], or c[r, v] + what is there, = the sum over k of a[k, r] * "
    "b[k, v]. */\n"
    "#define TDSL_TILE_OF(T) int64_t n, const T *TDSL_RESTRICT a, int64_t cs_a, int64_t rs_a, "
    "\\\n"
    "    const T *TDSL_RESTRICT b, int64_t rs_b, T *TDSL_RESTRICT c, int64_t rs_c, int add\n";
static const char ahead_parameters[] =
    "/* The same, and it asks for memory that is read next. */\n"
    "#define TDSL_AHEAD_OF(T) TDSL_TILE_OF(T), uintptr_t ahead, int64_t each, int64_t turn\n";
static const char short_parameters[] =
    "/* A register tile whose counts and strides are numbers. */\n"
    "#define TDSL_SHORT_OF(T) const T *TDSL_RESTRICT a, const T *TDSL_RESTRICT b, T "
    "*TDSL_RESTRICT c\n";

/* Of the narrowest vectors of which a tile has whole lines of memory at once, as stores past the caches must. */
#define STREAM_BYTES 32

/* The type of a function of this shape: of what is a number in it. */
static const char *function_type(const Tiles *t, const TileShape *s)
{
    return str_format(t->arena, "tdsl_%s_%s",
                      s->n.sum > 0 ? "short"
                      : s->ahead   ? "ahead"
                      : s->by      ? "tile_by"
                                   : "tile",
                      dtype_name(dtype_part(s->t)));
}

/* The macros of parameters that are used, and types of functions. */
static void types_emit(Tiles *t, Text *out)
{
    bool tile = false, ahead = false, is_short = false;
    Names seen;
    names_init(&seen, t->arena);
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        tile |= s->n.sum == 0;
        ahead |= s->n.sum == 0 && s->ahead;
        is_short |= s->n.sum > 0;
    }
    text_put(out, tile ? tile_parameters : "");
    text_put(out, ahead ? ahead_parameters : "");
    text_put(out, is_short ? short_parameters : "");
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        DType type = dtype_part(s->t);
        const char *name = function_type(t, s), *c = c_type(type);
        if (names_claim(&seen, name)) {
            text_printf(out, "typedef void %s(TDSL_%s_OF(%s)%s);\n", name, parameters_of(s), c,
                        s->by ? str_format(t->arena, ", %s by", c) : "");
        }
    }
}

/* Of tiles of dot products, or of all others. */
static void functions_emit(Tiles *t, Macros *m, const Isa *isa, IsaDots dots, bool of_dots,
                           Text *out)
{
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        if ((s->dot.group != 0) != of_dots) {
            continue;
        }
        DType type = dtype_part(s->t);
        (void)vector_type(t->help, type, 16 / dtype_bytes(type)); /* tiles may be narrower */
        Printer p = {.tiles = t,
                     .macros = m,
                     .w = {.arena = t->arena, .help = t->help, .out = out},
                     .s = s,
                     .isa = isa,
                     .dots = dots,
                     .part = dtype_part(s->t),
                     .width = s->parts[1] ? 2 * s->columns : s->columns,
                     .both = s->parts[0],
                     .whole = dtype_part(s->t) == s->t,
                     .streams = s->streams && isa->vector_bytes >= STREAM_BYTES};
        function_emit(&p);
    }
}

/* Functions of one type on a line. */
static void set_type_emit(const Tiles *t, Text *out)
{
    const char *last = "";
    Text line;
    text_init(&line, t->arena);
    text_printf(out, "\n/* The functions of one instruction set. */\ntypedef struct %s {\n",
                tiles_table(t));
    out->indent++;
    if (t->role == FILE_SHARED) {
        line_put(out, "int row; /* TDSL_ISA_avx2 or another */");
    }
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        const char *type = function_type(t, s);
        if (strcmp(type, last) != 0 && i > 0) {
            line_put(out, str_format(t->arena, "%s;", line.at));
        }
        if (strcmp(type, last) != 0) {
            text_clear(&line);
            text_put(&line, type);
        }
        text_printf(&line, strcmp(type, last) == 0 ? ", *%s" : " *%s", shape_name(t, s));
        last = type;
    }
    if (t->shapes.n > 0) {
        line_put(out, str_format(t->arena, "%s;", line.at));
    }
    out->indent--;
    text_put(out, t->members.at);
    text_printf(out, "} %s;\n", tiles_table(t));
}

/* Of no functions it is needed where other files ask which row runs. */
static bool has_table(const Tiles *t)
{
    return t->shapes.n > 0 || t->fold.n > 0 || t->role == FILE_SHARED;
}

void tiles_type_emit(Tiles *t, Text *out)
{
    if (!has_table(t)) {
        return;
    }
    types_emit(t, out);
    set_type_emit(t, out);
}

/* What a row of the second table has of its own, behind the row that it stands on. */
static void dot_row_emit(Tiles *t, Macros *m, const IsaDotRow *row, Text *out)
{
    text_printf(out, "#if TDSL_ROWS & TDSL_DOTS_%s\n", row->isa.name);
    functions_emit(t, m, &row->isa, row->dots, true, out);
    text_printf(out, "TDSL_TABLE(%s, %s)\n#endif\n", row->isa.name, isa_table[row->base].name);
}

static void row_emit(Tiles *t, Macros *m, uint32_t r, Text *out)
{
    const Isa *isa = &isa_table[r];
    text_printf(out, "#if TDSL_ROWS & TDSL_ISA_%s\n", isa->name);
    functions_emit(t, m, isa, DOTS_PAIRS, false, out);
    folds_of(t, isa, out);
    if (!tiles_have_dots(t)) {
        text_printf(out, "TDSL_TABLE(%s)\n#endif\n", isa->name);
        return;
    }
    text_put(out, "#endif\n");
    text_printf(out, "#if (TDSL_ROWS & TDSL_ISA_%s) && !TDSL_ONLY_DOTS\n", isa->name);
    functions_emit(t, m, isa, DOTS_PAIRS, true, out);
    text_printf(out, "TDSL_TABLE(%s, %s)\n#endif\n", isa->name, isa->name);
    for (uint32_t i = 0; i < ISA_DOT_COUNT; i++) {
        if (isa_dot_table[i].base == r) {
            dot_row_emit(t, m, &isa_dot_table[i], out);
        }
    }
}

void joins_emit(Tiles *t, Text *out)
{
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        for (JoinKind kind = 0; kind < JOIN_KINDS; kind++) {
            if (t->joins[kind] >> type & 1u) {
                join_emit(t, type, kind, out);
            }
        }
    }
}

void tiles_emit(Tiles *t, Text *out)
{
    Macros macros = {.arena = t->arena};
    Text rows;
    if (!has_table(t)) {
        return;
    }
    names_init(&macros.names, t->arena);
    text_init(&macros.text, t->arena);
    lines_init(&rows, t->arena, 0);
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        row_emit(t, &macros, r, &rows);
    }
    if (t->role == FILE_ALONE) {
        joins_emit(t, out);
    }
    text_put(out, t->folds.at);
    folds_macro(t, out);
    dots_emit(t, macros.text.at, out);
    text_put(out, "\n");
    text_put(out, macros.text.at);
    table_macro(t, out);
    text_put(out, "\n");
    text_put(out, rows.at);
    best_emit(t, out);
}
