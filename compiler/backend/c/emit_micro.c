/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a register tile that fits registers, as a macro: so many vectors of a line of columns, for any number of
 * rows. Vectors, their width and rows are its parameters, so that one text does for every instruction set and most tiles.
 * Sums are arrays over rows, which stand in registers once compilers have unrolled the loops over them (TDSL_EACH).
 *
 * A tile of complex numbers adds up vectors of parts, in the order in which they stand in memory: x of the real part of a
 * row's element times the columns, w of its imaginary part times the columns. So operands are read as they lie, packed or
 * not, and a multiply-add of complex numbers is four of real ones. What is left is done once, when a sum is finished:
 *
 *     re = x.re - w.im,  im = x.im + w.re
 *
 * and there signs take in that operands are conjugated. Of real rows there is x alone; of real columns x is re, w im. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/c/micro.h"

/* ---- macros ---- */

static void micro_open(Printer *p, const char *line)
{
    line_put(p->out, line);
    p->out->indent++;
}

/* ---- parts ---- */

static bool is_int(const Printer *p)
{
    return dtype_is_int(p->part);
}

/* Of an element, as it is computed with. */
static const char *number_type(const Printer *p)
{
    return is_int(p) ? "U" : "T";
}

static const char *type_of_part(Printer *p, const Parts *x, uint32_t v)
{
    return x->lanes[v] == 1 ? number_type(p)
                            : str_format(p->tiles->arena, "tdsl_##%s", micro_vector(p, x, v));
}

/* "d + L": where part v starts in the line at `pointer`. */
static const char *place_of_part(Printer *p, const Parts *x, const char *pointer, uint32_t v)
{
    Arena *a = p->tiles->arena;
    return v == 0                ? pointer
           : !parts_are_equal(x) ? str_format(a, "%s + O%u", pointer, v)
           : v == 1              ? str_format(a, "%s + L", pointer)
                                 : str_format(a, "%s + %u * L", pointer, v);
}

static const char *part_text(Printer *p, const Parts *x, const char *pointer, uint32_t v,
                             bool written)
{
    Arena *a = p->tiles->arena;
    const char *place = place_of_part(p, x, pointer, v);
    return x->lanes[v] == 1 ? str_format(a, "*(%s)", place)
                            : str_format(a, "%s(%s, %s)", written ? "TDSL_TO" : "TDSL_AT",
                                         type_of_part(p, x, v), place);
}

static const char *width_of(Printer *p, const Parts *x)
{
    return parts_are_equal(x) ? str_format(p->tiles->arena, "%u * L", x->n) : "W";
}

const char *block_arguments(Printer *p, const Parts *x, bool in_macro)
{
    Text t;
    text_init(&t, p->tiles->arena);
    bool equal = parts_are_equal(x);
    text_put(&t, in_macro ? "T" : c_type(p->part));
    if (is_int(p)) {
        text_printf(&t, ", %s", in_macro ? "U" : element_type(p->part));
    }
    int64_t at = 0;
    for (uint32_t v = 0; v < x->n; at += x->lanes[v++]) {
        if (x->lanes[v] > 1) {
            (void)vector_type(p->tiles->help, p->part, x->lanes[v]);
        }
        if (x->lanes[v] > 1 && (v == 0 || !equal)) {
            text_put(&t, ", ");
            text_put(&t, in_macro ? micro_vector(p, x, v)
                                  : str_format(p->tiles->arena, "%sx%lld", dtype_name(p->part),
                                               (long long)x->lanes[v]));
        }
        if (!equal && v > 0) {
            text_put(&t, ", ");
            text_put(&t, in_macro ? str_format(p->tiles->arena, "O%u", v)
                                  : str_format(p->tiles->arena, "%lld", (long long)at));
        }
    }
    text_put(&t, ", ");
    text_put(&t, !in_macro ? str_format(p->tiles->arena, "%lld",
                                        (long long)(equal ? x->lanes[0] : x->width))
                 : equal   ? "L"
                           : "W");
    if (p->streams) {
        text_put(&t, in_macro ? ", B"
                              : str_format(p->tiles->arena, ", %lld",
                                           (long long)(x->lanes[0] * dtype_bytes(p->part))));
    }
    return t.at;
}

/* ---- rows ---- */

/* A row's element at this k: pointers every three rows, since no machine has as many address registers as rows. */
static const char *row_text(const Printer *p, bool imaginary)
{
    if (p->s->side) {
        return !p->w ? "p0[r]" : imaginary ? "p0[2 * r + 1]" : "p0[2 * r]";
    }
    return imaginary ? "p[r / 3][r % 3 * rs_a + 1]" : "p[r / 3][r % 3 * rs_a]";
}

/* ---- for each row ---- */

/* The sums of a row: x, and w where it is complex. */
static uint32_t sums_of(const Printer *p)
{
    return p->w ? 2 : 1;
}

static const char *sum_start(Printer *p, const Parts *x, uint32_t v)
{
    bool sum = p->s->term.fold == OP_SUM, vector = x->lanes[v] > 1;
    const char *start = sum ? "0" : term_start(p, p->s->term.fold);
    return !vector ? start
                   : str_format(p->tiles->arena, sum ? "(%s){0}" : "(%s){0} + %s",
                                type_of_part(p, x, v), start);
}

/* The sums of all rows: an array for each part of a line. */
static void sums_declare(Printer *p, const Parts *x)
{
    for (uint32_t i = 0; i < sums_of(p); i++) {
        Text t;
        text_init(&t, p->tiles->arena);
        for (uint32_t v = 0; v < x->n; v++) {
            bool same = v > 0 && x->lanes[v] == x->lanes[v - 1];
            text_printf(&t, "%s%s %c%u[R]",
                        v == 0 ? ""
                        : same ? ","
                               : "; ",
                        same ? "" : type_of_part(p, x, v), "xw"[i], v);
        }
        micro_put(p, "%s;", t.at);
    }
}

static void sum_lines(Printer *p, const Parts *x)
{
    for (uint32_t i = 0; i < sums_of(p); i++) {
        for (uint32_t v = 0; v < x->n; v++) {
            micro_put(p, "TDSL_EACH(r, R, 1) %c%u[r] = %s;", "xw"[i], v, sum_start(p, x, v));
        }
    }
}

static const char *term_lines(Printer *p, const Parts *x, uint32_t v)
{
    Arena *a = p->tiles->arena;
    const char *type = x->lanes[v] > 1 ? type_of_part(p, x, v) : NULL;
    if (p->s->dot.group != 0) {
        return dot_step(p, type, "z", str_format(a, "y%u", v), str_format(a, "x%u[r]", v));
    }
    return term_step(p, type, "z", str_format(a, "y%u", v), str_format(a, "x%u[r]", v));
}

static void step_lines(Printer *p, const Parts *x)
{
    for (uint32_t i = 0; i < sums_of(p); i++) {
        Text t;
        char z = i == 0 ? 'z' : 'u';
        text_init(&t, p->tiles->arena);
        micro_put(
            p, p->s->dot.group != 0 ? "const %s %c = tdsl_word(&%s%s);" : "const %s %c = %s%s;",
            number_type(p), z, p->s->dot.group == 0 && is_int(p) ? "(U)" : "",
            row_text(p, i == 1));
        for (uint32_t v = 0; v < x->n; v++) {
            text_put(&t, v > 0 ? " " : "");
            if (p->s->term.n > 0 || p->s->dot.group != 0) {
                text_put(&t, term_lines(p, x, v));
            } else {
                text_printf(&t, "%c%u[r] += %c * y%u;", "xw"[i], v, z, v);
            }
        }
        line_put(p->out, t.at);
    }
}

/* What a finished sum does: joins, replaces, or replaces past the caches. */
typedef enum Stores { STORE_ADDS, STORE_PLAIN, STORE_STREAMS } Stores;

/* Where the i-th of what is stored goes, of x and w by turns if w is stored too. */
static const char *target_place(Printer *p, const Parts *x, uint32_t i, bool both)
{
    Arena *a = p->tiles->arena;
    const char *d = "d";
    if (!both || i == 0) {
        return place_of_part(p, x, d, i);
    }
    if (parts_are_equal(x)) {
        return str_format(a, i == 1 ? "%s + L" : "%s + %u * L", d, i);
    }
    const char *from = i / 2 == 0 ? "0" : str_format(a, "O%u", i / 2);
    const char *to = i % 2 == 0         ? from
                     : i / 2 + 1 < x->n ? str_format(a, "O%u", i / 2 + 1)
                                        : "W";
    return str_format(a, "%s + %s + %s", d, from, to);
}

static const char *store_text(Printer *p, const Parts *x, uint32_t i, bool both, Stores how)
{
    Arena *a = p->tiles->arena;
    uint32_t v = both ? i / 2 : i;
    const char *place = target_place(p, x, i, both), *type = type_of_part(p, x, v);
    const char *value = str_format(a, "%s%c%u[r]",
                                   !p->s->by   ? ""
                                   : is_int(p) ? "(U)by * "
                                               : "by * ",
                                   both && i % 2 != 0 ? 'w' : 'x', v);
    const char *target = x->lanes[v] == 1 ? str_format(a, "*(%s)", place)
                                          : str_format(a, "TDSL_TO(%s, %s)", type, place);
    if (how == STORE_ADDS && p->s->term.fold != OP_SUM) {
        const char *old =
            x->lanes[v] == 1 ? target : str_format(a, "TDSL_AT(%s, %s)", type, place);
        return str_format(a, "{ %s y = %s; %s %s = y; }", type, old,
                          term_fold(p, x->lanes[v] == 1 ? NULL : type, "y", value), target);
    }
    if (x->lanes[v] > 1 && how == STORE_STREAMS) {
        return str_format(a, "TDSL_STREAM_##B(%s, %s, %s);", type, place, value);
    }
    if (x->lanes[v] == 1 && is_int(p)) {
        return str_format(a, "%s = (T)(%s%s);", target,
                          how == STORE_ADDS ? str_format(a, "(U)%s + ", target) : "", value);
    }
    return str_format(a, "%s %s %s;", target, how == STORE_ADDS ? "+=" : "=", value);
}

static void store_lines(Printer *p, const Parts *x, Stores how)
{
    bool both = p->w && !p->s->parts[1];
    Text t;
    text_init(&t, p->tiles->arena);
    for (uint32_t i = 0; i < x->n * (both ? 2 : 1); i++) {
        text_put(&t, i > 0 ? " " : "");
        text_put(&t, store_text(p, x, i, both, how));
    }
    line_put(p->out, t.at);
    line_put(p->out, "if (r + 1 < R) { d += rs_c; }");
}

/* "for each row": the loop that compilers unroll. */
static void rows_open(Printer *p)
{
    micro_open(p, "TDSL_EACH(r, R, 1) {");
}

static void finish_rows(Printer *p, const Parts *x)
{
    rows_open(p);
    for (uint32_t v = 0; p->whole && v < x->n; v++) {
        micro_put(p, "x%u[r] -= s[r];", v);
    }
    if (!p->whole) {
        pairs_finish(p, x);
    }
    micro_close(p);
}

static void store_rows(Printer *p, const Parts *x, Stores how)
{
    rows_open(p);
    store_lines(p, x, how);
    micro_close(p);
}

/* ---- the block ---- */

/* Those of the tile of columns after this one are prefetched meanwhile. */
static void far_emit(Printer *p, const Parts *x, const char *columns)
{
    Text t;
    text_init(&t, p->tiles->arena);
    micro_open(p, "if (far) {");
    micro_put(p, "__builtin_prefetch(q + %s);", columns);
    for (uint32_t i = 1; i < x->n; i++) {
        uint32_t bytes = i * LINE_BYTES;
        micro_open(p, str_format(p->tiles->arena, "if (%s * sizeof(T) > %u) {", width_of(p, x),
                                 bytes));
        micro_put(p, "__builtin_prefetch(q + %s + %u / sizeof(T));", columns, bytes);
        micro_close(p);
    }
    micro_close(p);
}

/* One line of those that come next, for each step of the sum in the tile: where registers are few and it runs in P parts,
 * each of them asks for as many. */
static void ahead_emit(Printer *p)
{
    micro_open(p, "if (k % P == 0) {");
    line_put(p->out, "__builtin_prefetch((const void *)ahead, 0, 2);");
    micro_put(p,
              "ahead += (uintptr_t)(++asked %% (%d / (int64_t)sizeof(T)) == 0 ? turn : each);",
              LINE_BYTES);
    micro_close(p);
}

static void columns_emit(Printer *p, int64_t rows, const Parts *x)
{
    for (uint32_t v = 0; v < x->n; v++) {
        const char *part = part_text(p, x, "q", v, false);
        if (x->lanes[v] == 1 && is_int(p)) {
            part = p->s->dot.group == 0 ? str_format(p->tiles->arena, "(U)%s", part)
                                        : str_format(p->tiles->arena, "tdsl_word(&%s)", part);
        }
        bool held = rows > 1 && x->lanes[v] > 1;
        micro_put(p, held ? "%s%s y%u = %s%s; TDSL_HOLD(y%u);" : "%s%s y%u = %s%s;",
                  held ? "" : "const ", type_of_part(p, x, v), v, part,
                  dot_is_flipped(p) ? " ^ 0x80808080u" : "", v);
    }
}

static void steps_emit(Printer *p, int64_t rows, const Parts *x, const char *columns)
{
    bool far = p->s->sum == 0 && p->tiles->far;
    if (far) {
        micro_put(p, "const int far = rs_b >= %d / (int64_t)sizeof(T);", FAR_BYTES);
    }
    micro_open(p, "for (int64_t k = 0; k < n; ++k) {");
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
    micro_close(p);
    line_put(p->out, p->s->side ? "p0 += cs_a;" : "TDSL_EACH(r, (R + 2) / 3, 1) p[r] += cs_a;");
    line_put(p->out, "q += rs_b;");
    micro_close(p);
}

/* Prefetches the lines of the result while the sum runs: they are far from each other, so nothing else does. */
static void prefetch_result(Printer *p, const Parts *x, const char *j)
{
    if (p->s->sum > 0) {
        return;
    }
    const char *width = width_of(p, x);
    if (p->w && !p->s->parts[1]) {
        width = str_format(p->tiles->arena, "2 * %s", width);
    }
    micro_put(p, "for (int64_t r = 0; %sr < R; ++r) {", p->streams ? "!streams && " : "");
    p->out->indent++;
    micro_put(p, "__builtin_prefetch(c + (i + r) * rs_c + %s, 1);", j);
    micro_open(p, str_format(p->tiles->arena, "if (%s * sizeof(T) > 32) {", width));
    micro_put(p, "__builtin_prefetch(c + (i + r) * rs_c + %s + %s - 1, 1);", j, width);
    micro_close(p);
    micro_close(p);
}

static void stores_emit(Printer *p, const Parts *x)
{
    if (!p->tiles->adds && p->whole && !p->s->streams) {
        line_put(p->out, "(void)add; /* none adds to what is there */");
        store_rows(p, x, STORE_PLAIN);
        return;
    }
    micro_open(p, p->whole && !p->s->streams ? "if (add) {" : "if ((add & 1) != 0) {");
    store_rows(p, x, STORE_ADDS);
    p->out->indent--;
    if (p->streams) {
        micro_open(p, "} else if (streams) {");
        store_rows(p, x, STORE_STREAMS);
        p->out->indent--;
    }
    micro_open(p, "} else {");
    store_rows(p, x, STORE_PLAIN);
    micro_close(p);
}

void block_lines(Printer *p, int64_t rows, const Parts *x, const char *from, const char *to,
                 const char *columns)
{
    const char *j = p->w && !p->s->parts[1] ? "2 * j" : "j"; /* of the result */
    micro_open(p,
               str_format(p->tiles->arena, "for (int64_t i = %s; i < %s; i += R) {", from, to));
    prefetch_result(p, x, j);
    if (p->s->side) {
        line_put(p->out, p->w ? "const T *p0 = a + i * 2;" : "const T *p0 = a + i;");
    } else {
        line_put(p->out, "const T *p[(R + 2) / 3];");
        line_put(p->out, "TDSL_EACH(r, (R + 2) / 3, 1) p[r] = a + (i + 3 * r) * rs_a;");
    }
    line_put(p->out, "const T *q = b + j;");
    sums_declare(p, x);
    sum_lines(p, x);
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
    micro_put(p, "T *d = c + i * rs_c + %s;", j);
    stores_emit(p, x);
    micro_close(p);
}

const char *block_macro(Printer *p, int64_t rows, const Parts *x)
{
    Arena *a = p->tiles->arena;
    Text all, t, *out = p->out;
    text_init(&all, a);
    lines_init(&t, a, 1);
    text_printf(&all, "\n/* %u %s of columns, R rows%s. */\n", x->n,
                x->n == 1 ? "vector" : "vectors", p->s->side ? ", side by side in A" : "");
    p->out = &t;
    block_lines(p, rows, x, "FROM", "TO", "C");
    p->out = out;
    const char *head = str_format(a, "@(FROM, TO, R, %s%s%s)", block_arguments(p, x, true),
                                  p->s->sum == 0 ? ", C" : "", p->s->ahead ? ", P" : "");
    macro_put(&all, head, t.at);
    return macro_use(p->macros, str_format(a, "TDSL_BLOCK_%u", x->n), all.at);
}
