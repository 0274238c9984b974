/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that products call: a register tile of one type and shape, printed once for each instruction set (isa.h),
 * with every vector of sums a variable of its own: arrays and loops would be left to the compiler's vectoriser, which
 * cannot be trusted with them. What the processor has is a table of functions, chosen at the first call and read at the
 * entry of a kernel. All rows add in the same order.
 *
 * A tile of complex numbers adds up vectors of parts, in the order in which they stand in memory: x of the real part of a
 * row's element times the columns, w of its imaginary part times the columns. So operands are read as they lie, packed or
 * not, and a multiply-add of complex numbers is four of real ones. What is left is done once, when a sum is finished:
 *
 *     re = x.re - w.im,  im = x.im + w.re
 *
 * and there signs take in that operands are conjugated. Of real rows there is x alone; of real columns x is re, w im. */
#include <string.h>

#include "backend/c/micro.h"

void tiles_init(Tiles *t, Arena *a, Helpers *help)
{
    *t = (Tiles){.arena = a, .help = help};
    text_init(&t->folds, a);
    text_init(&t->members, a);
    t->folds.indent_width = 4;
}

static const char *shape_name(const Tiles *t, const TileShape *s)
{
    const char *real = !dtype_is_complex(s->t) || (s->parts[0] && s->parts[1]) ? ""
                       : s->parts[0]                                           ? "_real_columns"
                                                                               : "_real_rows";
    const char *name =
        str_format(t->arena, "%s_%lldx%lld%s%s%s", dtype_name(s->t), (long long)s->rows,
                   (long long)s->columns, s->side ? "s" : "", real,
                   s->by      ? "_by"
                   : s->ahead ? "_ahead"
                              : "");
    return s->sum == 0 ? name
                       : str_format(t->arena, "%s_%lld_%lld_%lld_%lld_%lld%s%s%s", name,
                                    (long long)s->sum, (long long)s->sak, (long long)s->sar,
                                    (long long)s->sbk, (long long)s->scr,
                                    (s->how & TILE_CONJ_ROW) != 0 ? "_conj_rows" : "",
                                    (s->how & TILE_CONJ_COL) != 0 ? "_conj_columns" : "",
                                    (s->how & TILE_ADDS) == 0 ? "_first" : "");
}

static bool shape_eq(const TileShape *x, const TileShape *y)
{
    return x->t == y->t && x->rows == y->rows && x->columns == y->columns &&
           x->parts[0] == y->parts[0] && x->parts[1] == y->parts[1] && x->side == y->side &&
           x->ahead == y->ahead && x->by == y->by && x->sum == y->sum && x->sak == y->sak &&
           x->sar == y->sar && x->sbk == y->sbk && x->scr == y->scr && x->how == y->how;
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

/* ---- a function ---- */

void micro_put(Printer *p, const char *line)
{
    line_put(p->out, line);
}

void micro_open_loop(Printer *p, const char *var, int64_t from, int64_t to, int64_t step)
{
    micro_put(p, str_format(p->tiles->arena, "for (int64_t %s = %lld; %s < %lld; %s += %lld) {",
                            var, (long long)from, var, (long long)to, var, (long long)step));
    p->out->indent++;
}

void micro_close(Printer *p)
{
    p->out->indent--;
    micro_put(p, "}");
}

static const char *at_text(Printer *p, const char *pointer, int64_t at)
{
    return at == 0 ? pointer : str_format(p->tiles->arena, "%s + %lld", pointer, (long long)at);
}

/* The part of the columns' operand, or of the destination, that starts `at` elements further. */
static const char *part_text(Printer *p, const char *pointer, int64_t at, int64_t lanes,
                             bool written)
{
    Arena *a = p->tiles->arena;
    if (lanes == 1) {
        return str_format(a, "%s[%lld]", pointer, (long long)at);
    }
    return str_format(a, "%s(%s, %s)", written ? "TDSL_TO" : "TDSL_AT",
                      vector_type(p->tiles->help, p->part, lanes), at_text(p, pointer, at));
}

const char *micro_type(Printer *p, int64_t lanes)
{
    return lanes == 1 ? element_type(p->part) : vector_type(p->tiles->help, p->part, lanes);
}

static bool is_int(const Printer *p)
{
    return dtype_is_int(p->part);
}

/* Element r of the rows' operand at this k, or its imaginary part: pointers every three rows, since no machine has as
 * many address registers as rows. */
static const char *row_text(Printer *p, int64_t r, bool imaginary)
{
    Arena *a = p->tiles->arena;
    const char *cast = is_int(p) ? str_format(a, "(%s)", element_type(p->part)) : "";
    if (p->s->side) {
        return str_format(a, "%sp0[%lld]", cast, (long long)(p->w ? 2 * r + imaginary : r));
    }
    static const char *const step[2][3] = {{"0", "sar", "2 * sar"},
                                           {"1", "sar + 1", "2 * sar + 1"}};
    return str_format(a, "%sp%lld[%s]", cast, (long long)(r / 3 * 3), step[imaginary][r % 3]);
}

static void pointers_emit(Printer *p, int64_t rows, const char *i, const char *j)
{
    Arena *a = p->tiles->arena;
    const char *type = c_type(p->part);
    const char *by = !p->s->side ? " * sar" : p->w ? " * 2" : "";
    Text t;
    text_init(&t, a);
    for (int64_t r = 0; r < (p->s->side ? 1 : rows); r += 3) {
        const char *row = r == 0 ? i : str_format(a, "(%s + %lld)", i, (long long)r);
        text_printf(&t, "%s *p%lld = a + %s%s, ", r == 0 ? str_format(a, "const %s", type) : "",
                    (long long)r, row, by);
    }
    text_printf(&t, "*q = b + %s;", j);
    micro_put(p, t.at);
}

/* The sums of a row: x, and w where it is complex. */
static uint32_t sums_of(const Printer *p)
{
    return p->w ? 2 : 1;
}

static void sums_emit(Printer *p, int64_t rows, const Parts *x)
{
    Arena *a = p->tiles->arena;
    for (int64_t r = 0; r < rows * sums_of(p); r++) {
        Text t;
        text_init(&t, a);
        for (uint32_t v = 0; v < x->n; v++) {
            text_printf(&t, "%s%s %c%lld_%u = %s;", v > 0 ? " " : "",
                        micro_type(p, x->lanes[v]), r < rows ? 'x' : 'w', (long long)(r % rows),
                        v, x->lanes[v] > 1 ? "{0}" : "0");
        }
        micro_put(p, t.at);
    }
}

/* Lines of an operand that is read in place lie so far from each other that no hardware foresees them: those of the tile of
 * columns after this one are asked for meanwhile. */
#define FAR_BYTES 2048

static void far_emit(Printer *p, const Parts *x)
{
    Arena *a = p->tiles->arena;
    int64_t size = dtype_bytes(p->part), wide = p->width;
    Text t;
    text_init(&t, a);
    text_put(&t, "if (far) {");
    for (int64_t at = 0; at < x->width; at += 64 / size) {
        text_printf(&t, " __builtin_prefetch(q + %lld);", (long long)(wide + at));
    }
    text_put(&t, " }");
    micro_put(p, t.at);
}

/* One line of those that come next, for each step of the sum in the tile: where registers are few and it runs in parts,
 * each of them asks for as many. */
static void ahead_emit(Printer *p)
{
    Arena *a = p->tiles->arena;
    long long wide = (long long)(LINE_BYTES / dtype_bytes(p->part));
    if (p->passes > 1) {
        micro_put(p, str_format(a, "if (k %% %lld == 0) {", (long long)p->passes));
        p->out->indent++;
    }
    micro_put(p, "__builtin_prefetch((const void *)ahead, 0, 2);");
    micro_put(p,
              str_format(a, "ahead += (uintptr_t)(++asked %% %lld == 0 ? turn : each);", wide));
    if (p->passes > 1) {
        micro_close(p);
    }
}

static void steps_emit(Printer *p, int64_t rows, const Parts *x)
{
    Arena *a = p->tiles->arena;
    bool far = p->s->sum == 0;
    if (far) {
        micro_put(p, str_format(a, "const int far = sbk >= %lld;",
                                (long long)(FAR_BYTES / dtype_bytes(p->part))));
    }
    micro_put(p, "for (int64_t k = 0; k < n; ++k) {");
    p->out->indent++;
    if (far) {
        far_emit(p, x);
    }
    if (p->s->ahead) {
        ahead_emit(p);
    }
    int64_t at = 0;
    for (uint32_t v = 0; v < x->n; at += x->lanes[v++]) {
        const char *type = micro_type(p, x->lanes[v]);
        const char *cast = x->lanes[v] == 1 && is_int(p) ? str_format(a, "(%s)", type) : "";
        bool held = rows > 1 && x->lanes[v] > 1;
        micro_put(p, str_format(a, "%s%s y%u = %s%s;", held ? "" : "const ", type, v, cast,
                                part_text(p, "q", at, x->lanes[v], false)));
        if (held) {
            micro_put(p, str_format(a, "TDSL_HOLD(y%u);", v));
        }
    }
    for (int64_t i = 0; i < rows * sums_of(p); i++) {
        Text t;
        long long r = (long long)(p->w ? i / 2 : i);
        bool imaginary = p->w && i % 2 != 0;
        text_init(&t, a);
        text_printf(&t, "const %s %c%lld = %s;", element_type(p->part), imaginary ? 'u' : 'z',
                    r, row_text(p, r, imaginary));
        for (uint32_t v = 0; v < x->n; v++) {
            text_printf(&t,
                        imaginary ? " w%lld_%u += u%lld * y%u;" : " x%lld_%u += z%lld * y%u;",
                        r, v, r, v);
        }
        micro_put(p, t.at);
    }
    Text t;
    text_init(&t, a);
    for (int64_t r = 0; r < (p->s->side ? 1 : rows); r += 3) {
        text_printf(&t, "p%lld += sak; ", (long long)r);
    }
    text_put(&t, "q += sbk;");
    micro_put(p, t.at);
    micro_close(p);
}

/* What a finished sum does: joins, replaces, or replaces past the caches. */
typedef enum Stores { STORE_ADDS, STORE_PLAIN, STORE_STREAMS } Stores;

static void store_emit(Printer *p, int64_t rows, const Parts *x, Stores how)
{
    Arena *a = p->tiles->arena;
    bool add = how == STORE_ADDS;
    uint32_t each = p->w && !p->s->parts[1] ? 2 : 1; /* vectors stored of one of columns */
    for (int64_t r = 0; r < rows; r++) {
        Text t;
        text_init(&t, a);
        int64_t at = 0;
        for (uint32_t i = 0; i < x->n * each; at += x->lanes[i++ / each]) {
            uint32_t v = i / each;
            const char *target = part_text(p, "d", at, x->lanes[v], true);
            text_put(&t, i > 0 ? " " : "");
            const char *value =
                str_format(a, i % each == 0 ? "x%lld_%u" : "w%lld_%u", (long long)r, v);
            if (p->s->by) {
                value = str_format(a, "by * %s", value);
            }
            if (x->lanes[v] > 1 && how == STORE_STREAMS) {
                text_printf(&t, "TDSL_STREAM_%lld(%s, %s, %s);",
                            (long long)(x->lanes[v] * dtype_bytes(p->part)),
                            micro_type(p, x->lanes[v]), at_text(p, "d", at), value);
            } else if (x->lanes[v] == 1 && is_int(p)) {
                const char *u = element_type(p->part);
                const char *old = add ? str_format(a, "(%s)%s + ", u, target) : "";
                text_printf(&t, "%s = (%s)(%s%s);", target, c_type(p->part), old, value);
            } else {
                text_printf(&t, add ? "%s += %s;" : "%s = %s;", target, value);
            }
        }
        text_put(&t, r + 1 < rows ? " d += scr;" : "");
        micro_put(p, t.at);
    }
}

/* Asks for the lines of the result while the sum runs: they are far from each other, so nothing else foresees them. */
static void foresee_emit(Printer *p, int64_t rows, const Parts *x, const char *i, const char *j)
{
    Arena *a = p->tiles->arena;
    int64_t width = p->w && !p->s->parts[1] ? 2 * x->width : x->width;
    if (p->s->sum > 0) {
        return;
    }
    micro_put(p, str_format(a, "for (int64_t r = 0; %sr < %lld; ++r) {",
                            p->streams ? "!streams && " : "", (long long)rows));
    p->out->indent++;
    micro_put(p, str_format(a, "__builtin_prefetch(c + (%s + r) * scr + %s, 1);", i, j));
    if (width * dtype_bytes(p->part) > 32) {
        micro_put(p, str_format(a, "__builtin_prefetch(c + (%s + r) * scr + %s + %lld, 1);", i,
                                j, (long long)(width - 1)));
    }
    micro_close(p);
}

/* Does it add to what is there? */
static const char *add_text(const Printer *p)
{
    return p->whole && !p->s->streams ? "add" : "(add & 1) != 0";
}

/* One part of the tile that fits registers. */
static void block_of_rows(Printer *p, int64_t rows, const Parts *x, const char *i,
                          const char *j)
{
    const char *at = p->w && !p->s->parts[1] ? "2 * j" : j; /* of the result */
    foresee_emit(p, rows, x, i, at);
    pointers_emit(p, rows, i, j);
    sums_emit(p, rows, x);
    steps_emit(p, rows, x);
    if (!p->whole) {
        pairs_finish(p, rows, x);
    }
    micro_put(
        p, str_format(p->tiles->arena, "%s *d = c + %s * scr + %s;", c_type(p->part), i, at));
    micro_put(p, str_format(p->tiles->arena, "if (%s) {", add_text(p)));
    p->out->indent++;
    store_emit(p, rows, x, STORE_ADDS);
    p->out->indent--;
    if (p->streams) {
        micro_put(p, "} else if (streams) {");
        p->out->indent++;
        store_emit(p, rows, x, STORE_STREAMS);
        p->out->indent--;
    }
    micro_put(p, "} else {");
    p->out->indent++;
    store_emit(p, rows, x, STORE_PLAIN);
    micro_close(p);
}

/* The rows of one group of columns: parts of equal height, then what is left. */
static void rows_emit(Printer *p, int64_t height, const Parts *x, const char *j)
{
    int64_t rows = p->s->rows, whole = rows / height * height;
    micro_open_loop(p, "i", 0, whole, height);
    block_of_rows(p, height, x, "i", j);
    micro_close(p);
    if (whole < rows) {
        micro_open_loop(p, "i", whole, rows, rows - whole);
        block_of_rows(p, rows - whole, x, "i", j);
        micro_close(p);
    }
}

/* The next group of columns from `from` on, of at most `most` parts. */
static Parts next_parts(const Printer *p, int64_t from, int64_t most)
{
    Parts x = {.from = from};
    while (from + x.width < p->width && x.n < most) {
        int64_t lanes = vector_part(p->isa->vector_bytes, p->part, p->width - from - x.width);
        if (p->s->parts[1] && lanes == 1 && x.width % 2 == 0 && x.n + 1 == most) {
            break; /* both parts of a number are in one group */
        }
        x.lanes[x.n] = lanes;
        x.width += x.lanes[x.n++];
    }
    return x;
}

static bool same_parts(const Parts *x, const Parts *y)
{
    return x->n == y->n && memcmp(x->lanes, y->lanes, x->n * sizeof x->lanes[0]) == 0;
}

/* How many loops over the sum there are in a call. */
static int64_t passes_of(const Printer *p, const IsaCover *cover)
{
    int64_t passes = 0;
    for (int64_t from = 0; from < p->width; passes++) {
        from += next_parts(p, from, cover->vectors).width;
    }
    return passes * ((p->s->rows + cover->rows - 1) / cover->rows);
}

static void vectors_emit(Printer *p)
{
    Parts all = next_parts(p, 0, 16);
    int64_t parts = all.width < p->width ? 16 : all.n;
    IsaCover cover = isa_cover(p->isa, p->s->rows, parts, sums_of(p));
    p->passes = passes_of(p, &cover);
    if (p->s->ahead) {
        micro_put(p, "int64_t asked = 0;");
    }
    for (int64_t from = 0; from < p->width;) {
        Parts x = next_parts(p, from, cover.vectors), y = x;
        int64_t to = from;
        while (to < p->width && same_parts(&x, &y)) {
            to += x.width;
            y = next_parts(p, to, cover.vectors);
        }
        micro_open_loop(p, "j", from, to, x.width);
        rows_emit(p, cover.rows, &x, "j");
        micro_close(p);
        from = to;
    }
}

static void plain_emit(Printer *p)
{
    Arena *a = p->tiles->arena;
    const char *u = element_type(p->part), *t = c_type(p->part);
    long long columns = (long long)p->s->columns;
    const char *cast = is_int(p) ? str_format(a, "(%s)", u) : "";
    const char *x = !p->s->by ? "x[j]" : str_format(a, "%sby * x[j]", cast);
    micro_open_loop(p, "i", 0, p->s->rows, 1);
    micro_put(p, str_format(a, "%s x[%lld] = {0};", u, columns));
    micro_put(p, "for (int64_t k = 0; k < n; ++k) {");
    p->out->indent++;
    micro_put(p, str_format(a, "const %s z = %sa[k * sak + i * sar];", u, cast));
    micro_open_loop(p, "j", 0, columns, 1);
    micro_put(p, str_format(a, "x[j] += z * %sb[k * sbk + j];", cast));
    micro_close(p);
    micro_close(p);
    micro_open_loop(p, "j", 0, columns, 1);
    micro_put(p, str_format(a, "const %s y = %s ? %sc[i * scr + j] + %s : %s;", u, add_text(p),
                            cast, x, x));
    micro_put(p,
              str_format(a, is_int(p) ? "c[i * scr + j] = (%s)y;" : "c[i * scr + j] = y;", t));
    micro_close(p);
    micro_close(p);
}

/* The macro of its parameters. */
static const char *parameters_of(const TileShape *s)
{
    return s->sum > 0 ? "SHORT" : s->ahead ? "AHEAD" : "TILE";
}

static void function_emit(Printer *p)
{
    Arena *a = p->tiles->arena;
    text_put(p->out, "\n");
    const TileShape *s = p->s;
    micro_put(p, str_format(a, "TDSL_TILE TDSL_FOR_%s static void tdsl_%s_%s(TDSL_%s_OF(%s)%s)",
                            p->isa->name, shape_name(p->tiles, s), p->isa->name,
                            parameters_of(s), c_type(p->part),
                            s->by ? str_format(a, ", %s by", c_type(p->part)) : ""));
    micro_put(p, "{");
    p->out->indent++;
    micro_put(p, "TDSL_CONTRACT");
    if (s->sum > 0) {
        micro_put(
            p, str_format(a,
                          "const int64_t n = %lld, sak = %lld, sar = %lld, sbk = %lld, scr = "
                          "%lld, add = %d;",
                          (long long)s->sum, (long long)s->sak, (long long)s->sar,
                          (long long)s->sbk, (long long)s->scr, s->how));
    }
    if (!p->whole) {
        pairs_signs(p);
    }
    if (p->isa->vector_bytes == 0 && s->ahead) {
        micro_put(p, "(void)ahead;");
        micro_put(p, "(void)each;");
        micro_put(p, "(void)turn;");
    }
    if (p->isa->vector_bytes == 0 && p->whole) {
        plain_emit(p);
    } else if (p->isa->vector_bytes == 0) {
        pairs_plain(p);
    } else {
        if (p->s->side) {
            micro_put(p, "(void)sar;");
        }
        if (p->streams) {
            micro_put(p, str_format(a,
                                    "const int streams = (add & %d) != 0 && ((uintptr_t)c | "
                                    "(uintptr_t)scr * %lld) %% %d == 0;",
                                    TILE_STREAMS, (long long)dtype_bytes(p->part), LINE_BYTES));
        }
        vectors_emit(p);
    }
    micro_close(p);
}

static void join_emit(Tiles *t, DType type, bool by, Text *out)
{
    DType part = dtype_part(type);
    const char *name = dtype_name(type), *c = c_type(part), *u = element_type(part);
    const char *v = vector_type(t->help, part, 16 / dtype_bytes(part));
    bool whole = dtype_is_int(type), pairs = part != type;
    bool streams = (t->join_streams >> type & 1u) != 0; /* not into e */
    const char *with = by ? ", by" : "", *param = by ? str_format(t->arena, ", %s by", c) : "";
    text_printf(
        out,
        "\n/* The m x n elements there are of a tile of rows x columns join what is "
        "there, if `add`. */\n"
        "static void tdsl_join%s_%s(tdsl_tile%s_%s *tile, int64_t rows, int64_t columns, "
        "int64_t m, int64_t n,\n"
        "    int64_t k, const %s *a, int64_t sak, int64_t sar, const %s *b, int64_t "
        "sbk,\n    %s *c, int64_t scr, int64_t scc, int add%s)\n{\n"
        "    %s e[%lld];\n",
        by ? "_by" : "", name, by ? "_by" : "", dtype_name(part), c, c, c, param, c,
        (long long)(t->join_bytes / dtype_bytes(part)));
    text_printf(
        out,
        "    if (m == rows && n == columns && scc == %d) {\n"
        "        tile(k, a, sak, sar, b, sbk, c, scr, add%s);\n        return;\n    }\n",
        pairs ? 2 : 1, with);
    text_printf(out,
                pairs ? "    columns *= 2;\n    n *= 2;\n"
                        "    tile(k, a, sak, sar, b, sbk, e, columns, add & %s%s);\n"
                      : "    tile(k, a, sak, sar, b, sbk, e, columns, 0%s%s);\n",
                !pairs    ? ""
                : streams ? "~9"
                          : "~1",
                with);
    text_put(out, pairs || streams ? "    add &= 1;\n" : "");
    text_printf(out,
                "    for (int64_t i = 0; i < m; ++i) {\n"
                "        const %s *x = e + i * columns;\n        %s *d = c + i * scr;\n",
                c, c);
    long long lanes = (long long)(16 / dtype_bytes(part));
    text_printf(
        out,
        "#if TDSL_ROWS & TDSL_ISA_plain\n        const int64_t whole = 0;\n#else\n"
        "        const int64_t whole = scc == %d ? n - n %% %lld : 0;\n"
        "        for (int64_t j = 0; j < whole; j += %lld) {\n"
        "            if (add) {\n                TDSL_TO(%s, d + j) += TDSL_AT(%s, x + j);\n"
        "            } else {\n                TDSL_TO(%s, d + j) = TDSL_AT(%s, x + j);\n"
        "            }\n        }\n#endif\n",
        pairs ? 2 : 1, lanes, lanes, v, v, v, v);
    text_put(out, "        for (int64_t j = whole; j < n; ++j) {\n");
    if (whole) {
        text_printf(out,
                    "            d[j * scc] = add ? (%s)((%s)d[j * scc] + (%s)x[j]) : x[j];\n",
                    c, u, u);
    } else if (pairs) {
        text_printf(out, "            %s *z = d + j / 2 * scc + j %% 2;\n", c);
        text_put(out, "            *z = add ? *z + x[j] : x[j];\n");
    } else {
        text_put(out, "            d[j * scc] = add ? d[j * scc] + x[j] : x[j];\n");
    }
    text_put(out, "        }\n    }\n}\n");
}

/* Of the narrowest vectors of which a tile has whole lines of memory at once, as stores past the caches must. */
#define STREAM_BYTES 32

void tiles_emit(Tiles *t, Text *out)
{
    uint32_t types = 0, scaled = 0;
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        DType type = dtype_part(t->shapes.at[i].t);
        if ((types >> type & 1u) == 0) {
            (void)vector_type(t->help, type,
                              16 / dtype_bytes(type)); /* tiles may be narrower */
            text_printf(out, types == 0 ? "\n" : "");
            text_printf(out,
                        "typedef void tdsl_tile_%s(TDSL_TILE_OF(%s));\n"
                        "typedef void tdsl_ahead_%s(TDSL_AHEAD_OF(%s));\n"
                        "typedef void tdsl_short_%s(TDSL_SHORT_OF(%s));\n",
                        dtype_name(type), c_type(type), dtype_name(type), c_type(type),
                        dtype_name(type), c_type(type));
        }
        types |= 1u << type;
        if (t->shapes.at[i].by && (scaled >> type & 1u) == 0) {
            text_printf(out, "typedef void tdsl_tile_by_%s(TDSL_TILE_OF(%s), %s by);\n",
                        dtype_name(type), c_type(type), c_type(type));
            scaled |= 1u << type;
        }
    }
    for (uint32_t r = 0; r < ISA_COUNT && t->shapes.n > 0; r++) {
        text_printf(out, "\n#if TDSL_ROWS & TDSL_ISA_%s\n", isa_table[r].name);
        for (uint32_t i = 0; i < t->shapes.n; i++) {
            const TileShape *s = &t->shapes.at[i];
            Printer p = {.tiles = t,
                         .out = out,
                         .s = s,
                         .isa = &isa_table[r],
                         .part = dtype_part(s->t),
                         .width = s->parts[1] ? 2 * s->columns : s->columns,
                         .w = s->parts[0],
                         .whole = dtype_part(s->t) == s->t,
                         .streams = s->streams && isa_table[r].vector_bytes >= STREAM_BYTES};
            function_emit(&p);
        }
        text_put(out, "#endif\n");
    }
    for (DType type = 0; type < DTYPE_COUNT; type++) {
        if (t->joins >> type & 1u) {
            join_emit(t, type, false, out);
        }
        if (t->joins_by >> type & 1u) {
            join_emit(t, type, true, out);
        }
    }
    text_put(out, t->folds.at);
}

/* ---- which functions run ---- */

static void table_row(Tiles *t, const Isa *isa, Text *out)
{
    text_printf(out, "#if TDSL_ROWS & TDSL_ISA_%s\nstatic const tdsl_isa tdsl_isa_%s = {\n",
                isa->name, isa->name);
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        text_printf(out, "    tdsl_%s_%s,\n", shape_name(t, &t->shapes.at[i]), isa->name);
    }
    for (uint32_t i = 0; i < t->fold_names.n; i++) {
        text_printf(out, "    %s_%lld,\n", t->fold_names.at[i], (long long)isa->vector_bytes);
    }
    text_put(out, "};\n#endif\n");
}

void isa_tables_emit(Tiles *t, Text *out)
{
    if (t->shapes.n == 0 && t->fold_names.n == 0) {
        return;
    }
    text_put(out, "\n/* The functions of one instruction set. */\ntypedef struct tdsl_isa {\n");
    for (uint32_t i = 0; i < t->shapes.n; i++) {
        const TileShape *s = &t->shapes.at[i];
        text_printf(out, "    tdsl_%s_%s *%s;\n",
                    s->sum > 0 ? "short"
                    : s->ahead ? "ahead"
                    : s->by    ? "tile_by"
                               : "tile",
                    dtype_name(dtype_part(s->t)), shape_name(t, s));
    }
    text_put(out, t->members.at);
    text_put(out, "} tdsl_isa;\n\n");
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        table_row(t, &isa_table[r], out);
    }
    text_put(out, "\n/* The best that this processor has. Found at the first call: threads "
                  "that do not see it yet "
                  "find the same. */\n"
                  "static const tdsl_isa *tdsl_isa_here(void)\n{\n#if defined(TDSL_ISA)\n"
                  "    return &TDSL_PASTE(tdsl_isa_, TDSL_ISA);\n#else\n"
                  "    static const tdsl_isa *found;\n"
                  "    const tdsl_isa *isa = __atomic_load_n(&found, __ATOMIC_RELAXED);\n"
                  "    if (isa == NULL) {\n        isa = &tdsl_isa_vectors;\n");
    for (uint32_t r = 0; r < ISA_COUNT; r++) {
        if (isa_table[r].test != NULL) {
            text_printf(out, "        isa = %s ? &tdsl_isa_%s : isa;\n", isa_table[r].test,
                        isa_table[r].name);
        }
    }
    text_put(out, "        __atomic_store_n(&found, isa, __ATOMIC_RELAXED);\n    }\n"
                  "    return isa;\n#endif\n}\n");
}
