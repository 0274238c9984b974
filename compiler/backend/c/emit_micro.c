/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a register tile that fits registers, as a macro: R rows of a group of columns. A group is runs of vectors, the widest
 * first, and single elements where no vector fits; of each run the type V, its lanes L and their number N are parameters, as is R, so
 * that one text does for every instruction set and most tiles. In plain C a vector is a number, L is 1. Sums are arrays over rows and
 * vectors, which stand in registers once compilers have unrolled the loops over them (TDSL_EACH).
 *
 * A tile of complex numbers adds up vectors of parts, in the order in which they stand in memory: x of the real part of a
 * row's element times the columns, w of its imaginary part times the columns. So operands are read as they lie, packed or
 * not, and a multiply-add of complex numbers is four of real ones. What is left is done once, when a sum is finished:
 *
 *     re = x.re - w.im,  im = x.im + w.re
 *
 * and there signs take in that operands are conjugated. Of real rows there is x alone; of real columns x is re, w im. */
#include "backend/c/micro.h"

static bool is_int(const Printer *p)
{
    return dtype_is_int(p->part);
}

/* Of an element, as it is computed with. */
static const char *number_type(const Printer *p)
{
    return is_int(p) ? "U" : "T";
}

/* An element as it is computed with. */
static const char *as_number(Printer *p, const char *element)
{
    return str_format(p->w.arena,
                      p->s->dot.group != 0 ? "tdsl_word(&%s)"
                      : is_int(p)          ? "(U)%s"
                                           : "%s",
                      element);
}

/* ---- runs ---- */

static const char *type_of_run(Printer *p, const Columns *x, uint32_t g)
{
    return x->run[g].vectors ? run_name(p, "V", g) : number_type(p);
}

/* "(N * L + N1)": the elements of the first g runs. */
static const char *runs_width(Printer *p, const Columns *x, uint32_t g)
{
    Text t;
    text_init(&t, p->w.arena);
    text_put(&t, g > 1 ? "(" : "");
    for (uint32_t i = 0; i < g; i++) {
        text_printf(&t, i > 0 ? " + %s" : "%s", run_name(p, "N", i));
        if (x->run[i].vectors) {
            text_printf(&t, " * %s", run_name(p, "L", i));
        }
    }
    text_put(&t, g > 1 ? ")" : "");
    return t.at;
}

const char *columns_width(Printer *p, const Columns *x)
{
    return runs_width(p, x, x->n);
}

/* "N * L + v * L1": where vector v of run g starts in a line. */
static const char *place_in_line(Printer *p, const Columns *x, uint32_t g)
{
    Arena *a = p->w.arena;
    const char *v = x->run[g].vectors ? str_format(a, "v * %s", run_name(p, "L", g)) : "v";
    return g == 0 ? v : str_format(a, "%s + %s", runs_width(p, x, g), v);
}

static const char *part_text(Printer *p, const Columns *x, uint32_t g, const char *pointer,
                             const char *place, bool written)
{
    Arena *a = p->w.arena;
    if (!x->run[g].vectors) {
        return str_format(a, "%s[%s]", pointer, place);
    }
    place = str_format(a, "%s + %s", pointer, place);
    return (written ? vector_to : vector_at)(a, type_of_run(p, x, g), place);
}

void block_arguments(Printer *p, const Columns *x, Arguments *out)
{
    argument_put(out, "T", c_type(p->part));
    if (is_int(p)) {
        argument_put(out, "U", element_type(p->part));
    }
    for (uint32_t g = 0; g < x->n; g++) {
        const Run *run = &x->run[g];
        if (run->vectors) {
            argument_put(out, run_name(p, "V", g), lanes_type(p->w.help, p->part, run->lanes));
            argument_number(out, run_name(p, "L", g), run->lanes);
        }
        argument_number(out, run_name(p, "N", g), run->n);
    }
    if (p->streams && x->n > 0) {
        argument_number(out, "B", x->run[0].lanes * dtype_bytes(p->part));
    }
}

/* ---- for each row ---- */

/* A row's element at this k: pointers every three rows, since no machine has as many address registers as rows. */
static const char *row_text(const Printer *p, bool imaginary)
{
    if (p->s->side) {
        return !p->both ? "p0[r]" : imaginary ? "p0[2 * r + 1]" : "p0[2 * r]";
    }
    return imaginary ? "p[r / 3][r % 3 * rs_a + 1]" : "p[r / 3][r % 3 * rs_a]";
}

static const char *sum_start(Printer *p, const Columns *x, uint32_t g)
{
    bool sum = p->s->term.fold == OP_SUM;
    const char *start = sum ? "0" : term_start(p, p->s->term.fold);
    return x->run[g].vectors
               ? vector_spread(p->w.arena, type_of_run(p, x, g), sum ? NULL : start)
               : start;
}

/* The sums of a row: x, and w where it is complex. */
static void sums_begin(Printer *p, const Columns *x)
{
    for (uint32_t g = 0; g < x->n; g++) {
        const char *n = run_name(p, "N", g), *sum = run_name(p, "x", g);
        const char *more =
            p->both ? str_format(p->w.arena, ", %s[R][%s]", run_name(p, "w", g), n) : "";
        line_printf(&p->w, "%s %s[R][%s]%s;", type_of_run(p, x, g), sum, n, more);
    }
    for (uint32_t i = 0; i < (p->both ? 2 : 1); i++) {
        for (uint32_t g = 0; g < x->n; g++) {
            line_printf(&p->w, "TDSL_EACH(r, R, 1) TDSL_EACH(v, %s, 1) %s[r][v] = %s;",
                        run_name(p, "N", g), run_name(p, i == 0 ? "x" : "w", g),
                        sum_start(p, x, g));
        }
    }
}

static const char *step_text(Printer *p, const Columns *x, uint32_t g)
{
    Arena *a = p->w.arena;
    const char *type = x->run[g].vectors ? type_of_run(p, x, g) : NULL;
    const char *y = str_format(a, "%s[v]", run_name(p, "y", g));
    const char *into = str_format(a, "%s[r][v]", run_name(p, "x", g));
    if (p->s->dot.group != 0) {
        return dot_step(p, type, "z", y, into);
    }
    if (p->s->term.value != NULL) {
        return term_step(p, type, "z", y, into);
    }
    return !p->both ? str_format(a, "%s += z * %s;", into, y)
                    : str_format(a, "{ %s += z * %s; %s[r][v] += u * %s; }", into, y,
                                 run_name(p, "w", g), y);
}

static void step_lines(Printer *p, const Columns *x)
{
    for (uint32_t i = 0; i < (p->both ? 2 : 1); i++) {
        line_printf(&p->w, "const %s %c = %s;", number_type(p), "zu"[i],
                    as_number(p, row_text(p, i == 1)));
    }
    for (uint32_t g = 0; g < x->n; g++) {
        run_put(p, g, "%s", step_text(p, x, g));
    }
}

/* What a finished sum does: joins, replaces, or replaces past the caches. */
typedef enum Stores { STORE_ADDS, STORE_PLAIN, STORE_STREAMS } Stores;

/* `both`: x and w are stored, by turns. */
static const char *store_text(Printer *p, const Columns *x, uint32_t g, bool both,
                              bool imaginary, Stores how)
{
    Arena *a = p->w.arena;
    bool vectors = x->run[g].vectors;
    const char *place = place_in_line(p, x, g), *type = type_of_run(p, x, g);
    if (both) {
        place = str_format(a, imaginary ? "2 * (%s) + %s" : "2 * (%s)", place,
                           vectors ? run_name(p, "L", g) : "1");
    }
    const char *by = !p->s->by ? "" : is_int(p) ? "(U)by * " : "by * ";
    const char *value = str_format(a, "%s%s[r][v]", by, run_name(p, imaginary ? "w" : "x", g));
    const char *target = part_text(p, x, g, "d", place, true);
    if (how == STORE_ADDS && p->s->term.fold != OP_SUM) {
        return str_format(a, "{ %s t = %s; %s %s = t; }", type,
                          part_text(p, x, g, "d", place, false),
                          term_fold(p, vectors ? type : NULL, "t", value), target);
    }
    if (vectors && how == STORE_STREAMS) {
        return str_format(a, "TDSL_STREAM_##B(%s, d + %s, %s);", type, place, value);
    }
    if (!vectors && is_int(p)) {
        return str_format(a, how == STORE_ADDS ? "%s = (T)((U)%s + %s);" : "%s = (T)(%s%s);",
                          target, how == STORE_ADDS ? target : "", value);
    }
    return str_format(a, "%s %s %s;", target, how == STORE_ADDS ? "+=" : "=", value);
}

/* "for each row": the loop that compilers unroll. */
static void rows_open(Printer *p)
{
    scope_printf(&p->w, "TDSL_EACH(r, R, 1) {");
}

static void store_rows(Printer *p, const Columns *x, Stores how)
{
    bool both = p->both && !p->s->parts[1];
    rows_open(p);
    for (uint32_t g = 0; g < x->n; g++) {
        const char *text = store_text(p, x, g, both, false, how);
        if (both) {
            run_put(p, g, "{ %s %s }", text, store_text(p, x, g, both, true, how));
        } else {
            run_put(p, g, "%s", text);
        }
    }
    line_put(p->w.out, "if (r + 1 < R) { d += rs_c; }");
    scope_end(&p->w);
}

static void finish_rows(Printer *p, const Columns *x)
{
    rows_open(p);
    for (uint32_t g = 0; p->whole && g < x->n; g++) {
        run_put(p, g, "%s[r][v] -= s[r];", run_name(p, "x", g));
    }
    if (!p->whole) {
        pairs_finish(p, x);
    }
    scope_end(&p->w);
}

/* ---- the block ---- */

/* Those of the tile of columns after this one are prefetched meanwhile. */
static void far_emit(Printer *p, const Columns *x, const char *columns)
{
    scope_printf(&p->w, "if (far) {");
    line_printf(&p->w, "TDSL_EACH(l, %s * (int64_t)sizeof(T), %d)", columns_width(p, x),
                LINE_BYTES);
    line_printf(&p->w, "    TDSL_PREFETCH(q + %s + l / (int64_t)sizeof(T));", columns);
    scope_end(&p->w);
}

/* One line of those that come next, for each step of the sum in the tile: where registers are few and it runs in P parts,
 * each of them asks for as many. */
static void ahead_emit(Printer *p)
{
    scope_printf(&p->w, "if (k %% P == 0) {");
    line_put(p->w.out, "TDSL_PREFETCH((const void *)ahead, 0, 2);");
    line_printf(
        &p->w, "ahead += (uintptr_t)(++asked %% (%d / (int64_t)sizeof(T)) == 0 ? turn : each);",
        LINE_BYTES);
    scope_end(&p->w);
}

static void columns_emit(Printer *p, int64_t rows, const Columns *x)
{
    const char *flipped = dot_is_flipped(p) ? " ^ 0x80808080u" : "";
    for (uint32_t g = 0; g < x->n; g++) {
        const char *y = run_name(p, "y", g);
        const char *part = part_text(p, x, g, "q", place_in_line(p, x, g), false);
        line_printf(&p->w, "%s %s[%s];", type_of_run(p, x, g), y, run_name(p, "N", g));
        bool vectors = x->run[g].vectors;
        if (vectors && (rows > 1 || x->run[g].lanes == 1)) { /* plain C holds nothing */
            run_put(p, g, "{ %s[v] = %s%s; TDSL_HOLD(%s[v]); }", y, part, flipped, y);
        } else {
            run_put(p, g, "%s[v] = %s%s;", y, vectors ? part : as_number(p, part), flipped);
        }
    }
}

static void steps_emit(Printer *p, int64_t rows, const Columns *x, const char *columns)
{
    bool far = p->s->n.sum == 0 && p->tiles->far;
    if (far) {
        line_printf(&p->w, "const int far = rs_b >= %d / (int64_t)sizeof(T);", FAR_BYTES);
    }
    scope_printf(&p->w, "for (int64_t k = 0; k < n; ++k) {");
    if (far) {
        far_emit(p, x, columns);
    }
    if (p->s->ahead) {
        ahead_emit(p);
    }
    columns_emit(p, rows, x);
    if (dot_is_flipped(p)) {
        dot_sums_step(p, rows);
    }
    rows_open(p);
    step_lines(p, x);
    scope_end(&p->w);
    line_put(p->w.out,
             p->s->side ? "p0 += cs_a;" : "TDSL_EACH(r, (R + 2) / 3, 1) p[r] += cs_a;");
    line_put(p->w.out, "q += rs_b;");
    scope_end(&p->w);
}

/* Prefetches the lines of the result while the sum runs: they are far from each other, so nothing else does. */
static void prefetch_result(Printer *p, const Columns *x, const char *j)
{
    if (p->s->n.sum > 0) {
        return;
    }
    const char *twice = p->both && !p->s->parts[1] ? "2 * " : "", *width = columns_width(p, x);
    scope_printf(&p->w, "for (int64_t r = 0; %sr < R; ++r) {",
                 p->streams ? "!streams && " : "");
    line_printf(&p->w, "TDSL_PREFETCH(c + (i + r) * rs_c + %s, 1);", j);
    scope_printf(&p->w, "if (%s%s * sizeof(T) > 32) {", twice, width);
    line_printf(&p->w, "TDSL_PREFETCH(c + (i + r) * rs_c + %s + %s%s - 1, 1);", j, twice,
                width);
    scope_end(&p->w);
    scope_end(&p->w);
}

static void stores_emit(Printer *p, const Columns *x)
{
    if (!p->tiles->adds && p->whole && !p->s->streams) {
        line_put(p->w.out, "(void)add; /* none adds to what is there */");
        store_rows(p, x, STORE_PLAIN);
        return;
    }
    scope_printf(&p->w, p->whole && !p->s->streams ? "if (add) {" : "if ((add & 1) != 0) {");
    store_rows(p, x, STORE_ADDS);
    p->w.out->indent--;
    if (p->streams) {
        scope_printf(&p->w, "} else if (streams) {");
        store_rows(p, x, STORE_STREAMS);
        p->w.out->indent--;
    }
    scope_printf(&p->w, "} else {");
    store_rows(p, x, STORE_PLAIN);
    scope_end(&p->w);
}

void block_lines(Printer *p, int64_t rows, const Columns *x, const char *from, const char *to,
                 const char *columns)
{
    const char *j = p->both && !p->s->parts[1] ? "2 * j" : "j"; /* of the result */
    scope_printf(&p->w, "for (int64_t i = %s; i < %s; i += R) {", from, to);
    prefetch_result(p, x, j);
    if (p->s->side) {
        line_put(p->w.out, p->both ? "const T *p0 = a + i * 2;" : "const T *p0 = a + i;");
    } else {
        line_put(p->w.out, "const T *p[(R + 2) / 3];");
        line_put(p->w.out, "TDSL_EACH(r, (R + 2) / 3, 1) p[r] = a + (i + 3 * r) * rs_a;");
    }
    line_put(p->w.out, "const T *q = b + j;");
    sums_begin(p, x);
    if (dot_is_flipped(p)) {
        dot_sums_begin(p, rows);
    }
    steps_emit(p, rows, x, columns);
    if (!p->whole) {
        pairs_factors(p, x);
    }
    if (dot_is_flipped(p)) {
        dot_sums_end(p, rows);
    }
    if (!p->whole || dot_is_flipped(p)) {
        finish_rows(p, x);
    }
    line_printf(&p->w, "T *d = c + i * rs_c + %s;", j);
    stores_emit(p, x);
    scope_end(&p->w);
}

const char *block_macro(Printer *p, int64_t rows, const Columns *x)
{
    Arena *a = p->w.arena;
    Text all, t, *out = p->w.out;
    text_init(&all, a);
    lines_init(&t, a, 1);
    text_printf(&all, "\n/* R rows%s of columns of %u %s. */\n",
                p->s->side ? ", side by side in A," : "", x->n, x->n == 1 ? "width" : "widths");
    p->w.out = &t;
    block_lines(p, rows, x, "FROM", "TO", "C");
    p->w.out = out;
    Arguments own;
    arguments_init(&own, a);
    block_arguments(p, x, &own);
    const char *head = str_format(a, "@(FROM, TO, R, %s%s%s)", own.names.at,
                                  p->s->n.sum == 0 ? ", C" : "", p->s->ahead ? ", P" : "");
    macro_put(&all, head, t.at);
    return macro_use(p->macros, str_format(a, "TDSL_BLOCK_%u", x->n), all.at);
}
