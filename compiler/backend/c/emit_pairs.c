/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of complex numbers, where they are not as others: sums of parts become numbers (see emit_micro.c). */
#include "backend/c/micro.h"

/* The macros for such vectors are used. */
static void pair_use(Tiles *t, DType part, int64_t lanes)
{
    (void)vector_type(t->help, part == DTYPE_F32 ? DTYPE_I32 : DTYPE_I64, lanes); /* masks */
    t->pairs |= (part == DTYPE_F32 ? 1u : 1u << 16) * (uint32_t)lanes;
}

/* Is the sign a number that is not 1? Of a short sum it is known. */
static bool has_sign(const Printer *p, int how)
{
    return p->s->sum == 0 || (p->s->how & how) != 0;
}

/* Factors of vectors of so many lanes: s of x, t of w with its parts exchanged. */
static void signs_emit(Printer *p, int64_t lanes)
{
    Arena *a = p->tiles->arena;
    const char *type = micro_type(p, lanes);
    Text s, t;
    text_init(&s, a);
    text_init(&t, a);
    for (int64_t i = 0; i < lanes; i += 2) {
        text_printf(&s, "%s1, cb", i > 0 ? ", " : "");
        text_printf(&t, "%s-ca * cb, ca", i > 0 ? ", " : "");
    }
    if (has_sign(p, TILE_CONJ_COL)) {
        micro_put(p, str_format(a, "const %s s%lld = {%s};", type, (long long)lanes, s.at));
    }
    if (p->w) {
        micro_put(p, str_format(a, "const %s t%lld = {%s};", type, (long long)lanes, t.at));
    }
}

static int64_t offset_of(const Parts *parts, uint32_t v)
{
    int64_t at = parts->from;
    for (uint32_t i = 0; i < v; i++) {
        at += parts->lanes[i];
    }
    return at;
}

/* "x0_1" */
static const char *sum_text(Printer *p, char sum, int64_t row, uint32_t v)
{
    return str_format(p->tiles->arena, "%c%lld_%u", sum, (long long)row, v);
}

/* The columns are complex, perhaps the rows: x becomes what is stored. Zeros lose the sign that a factor gives them. */
static void finish_columns(Printer *p, int64_t row, const Parts *parts, uint32_t v)
{
    Arena *a = p->tiles->arena;
    long long n = (long long)parts->lanes[v];
    const char *x = sum_text(p, 'x', row, v), *w = sum_text(p, 'w', row, v);
    const char *sign = n > 1 ? str_format(a, "s%lld", n) : "cb";
    const char *zero = p->part == DTYPE_F32 ? "0.0f" : "0.0";
    bool imaginary = n == 1 && offset_of(parts, v) % 2 != 0;
    if (has_sign(p, TILE_CONJ_COL) && (n > 1 || imaginary)) {
        micro_put(p, str_format(a, "%s = %s * %s + %s;", x, x, sign, zero));
    }
    if (p->w && n > 1) {
        pair_use(p->tiles, p->part, n);
        micro_put(p, str_format(a, "%s += TDSL_SWAP_%sx%lld(%s) * t%lld;", x,
                                dtype_name(p->part), n, w, n));
    } else if (p->w) {
        micro_put(p,
                  imaginary
                      ? str_format(a, "%s += ca * %s;", x, sum_text(p, 'w', row, v - 1))
                      : str_format(a, "%s -= ca * cb * %s;", x, sum_text(p, 'w', row, v + 1)));
    }
}

/* The rows alone are complex: x and w become what is stored one after the other. */
static void finish_rows(Printer *p, int64_t row, const Parts *parts, uint32_t v)
{
    Arena *a = p->tiles->arena;
    long long n = (long long)parts->lanes[v];
    const char *x = sum_text(p, 'x', row, v), *w = sum_text(p, 'w', row, v);
    const char *zero = p->part == DTYPE_F32 ? "0.0f" : "0.0";
    if (has_sign(p, TILE_CONJ_ROW)) {
        micro_put(p, str_format(a, "%s = %s * ca + %s;", w, w, zero));
    }
    if (n > 1) {
        const char *name = dtype_name(p->part), *e = sum_text(p, 'e', row, v);
        pair_use(p->tiles, p->part, n);
        micro_put(p, str_format(a, "const %s %s = TDSL_LOW_%sx%lld(%s, %s);", micro_type(p, n),
                                e, name, n, x, w));
        micro_put(p, str_format(a, "%s = TDSL_HIGH_%sx%lld(%s, %s);", w, name, n, x, w));
        micro_put(p, str_format(a, "%s = %s;", x, e));
    }
}

void pairs_finish(Printer *p, int64_t rows, const Parts *x)
{
    int64_t last = 1;
    for (uint32_t v = 0; v < x->n && p->s->parts[1]; v++) {
        if (x->lanes[v] > 1 && x->lanes[v] != last) {
            signs_emit(p, x->lanes[v]);
        }
        last = x->lanes[v];
    }
    for (int64_t i = 0; i < rows * x->n; i++) {
        (p->s->parts[1] ? finish_columns : finish_rows)(p, i / x->n, x, (uint32_t)(i % x->n));
    }
}

/* The same of complex numbers. */
void pairs_plain(Printer *p)
{
    Arena *a = p->tiles->arena;
    const char *t = c_type(p->part);
    long long width = (long long)p->width;
    bool columns = p->s->parts[1];
    const char *line = columns ? "c + i * scr" : "c + i * scr + 2 * j";
    micro_open_loop(p, "i", 0, p->s->rows, 1);
    micro_put(p, str_format(a, p->w ? "%s x[%lld] = {0}, w[%lld] = {0};" : "%s x[%lld] = {0};",
                            t, width, width));
    micro_put(p, "for (int64_t k = 0; k < n; ++k) {");
    p->out->indent++;
    micro_put(p, str_format(a, "const %s *z = a + k * sak + i * sar;", t));
    micro_open_loop(p, "j", 0, width, 1);
    micro_put(p, "x[j] += z[0] * b[k * sbk + j];");
    micro_put(p, p->w ? "w[j] += z[1] * b[k * sbk + j];" : "");
    micro_close(p);
    micro_close(p);
    micro_open_loop(p, "j", 0, width, columns ? 2 : 1);
    micro_put(p, str_format(a, "%s *d = %s%s;", t, line, columns ? " + j" : ""));
    micro_put(p, str_format(a, "const %s re = %s, im = %s;", t,
                            columns && p->w ? "x[j] - ca * cb * w[j + 1]" : "x[j]",
                            !columns ? "ca * w[j] + 0"
                            : p->w   ? "cb * x[j + 1] + 0 + ca * w[j]"
                                     : "cb * x[j + 1] + 0"));
    const char *by = p->s->by ? "by * " : "";
    micro_put(p, str_format(a, "d[0] = (add & 1) != 0 ? d[0] + %sre : %sre;", by, by));
    micro_put(p, str_format(a, "d[1] = (add & 1) != 0 ? d[1] + %sim : %sim;", by, by));
    micro_close(p);
    micro_close(p);
}

/* -1 of a conjugated operand. */
void pairs_signs(Printer *p)
{
    static const struct {
        const char *name;
        int how;
    } side[2] = {{"ca", TILE_CONJ_ROW}, {"cb", TILE_CONJ_COL}};
    for (uint32_t i = 0; i < 2; i++) {
        bool both = p->s->parts[0] && p->s->parts[1];
        if (p->s->parts[i] && (both || has_sign(p, side[i].how) || p->isa->vector_bytes == 0)) {
            const char *t = c_type(p->part);
            const char *one = p->part == DTYPE_F32 ? "1.0f" : "1.0";
            micro_put(p,
                      str_format(p->tiles->arena, "const %s %s = (add & %d) != 0 ? -%s : %s;",
                                 t, side[i].name, side[i].how, one, one));
        }
    }
}

/* ---- macros of vectors ---- */

/* What is done with the parts of one vector, or of two, one behind the other. */
typedef enum Shuffle {
    SHUFFLE_SWAP,
    SHUFFLE_LOW,
    SHUFFLE_HIGH,
    SHUFFLE_RE,
    SHUFFLE_IM
} Shuffle;

/* Which of n lanes comes to lane i. */
static int64_t lane_of(Shuffle s, int64_t n, int64_t i)
{
    switch (s) {
    case SHUFFLE_SWAP:
        return i ^ 1;
    case SHUFFLE_LOW:
        return i / 2 + i % 2 * n;
    case SHUFFLE_HIGH:
        return n / 2 + i / 2 + i % 2 * n;
    case SHUFFLE_RE:
        return i / 2 * 2;
    case SHUFFLE_IM:
        return i / 2 * 2 + 1;
    }
    UNREACHABLE();
}

static const char *lanes_text(Arena *a, Shuffle s, int64_t n)
{
    Text t;
    text_init(&t, a);
    for (int64_t i = 0; i < n; i++) {
        text_printf(&t, i > 0 ? ", %lld" : "%lld", (long long)lane_of(s, n, i));
    }
    return t.at;
}

/* first, second, first, ... */
static const char *signs_text(Arena *a, int64_t n, const char *first, const char *second)
{
    Text t;
    text_init(&t, a);
    for (int64_t i = 0; i < n; i++) {
        text_printf(&t, "%s%s", i > 0 ? ", " : "", i % 2 == 0 ? first : second);
    }
    return t.at;
}

/* A vector type and the mask that gcc wants. */
typedef struct PairType {
    const char *type, *mask;
    int64_t n;
} PairType;

static void shuffle_macro(Arena *a, const PairType *t, Shuffle s, Text *out)
{
    static const char *const name[] = {"SWAP", "LOW", "HIGH", "RE", "IM"};
    bool two = s == SHUFFLE_LOW || s == SHUFFLE_HIGH;
    const char *args = two ? "x, y" : "x", *lanes = lanes_text(a, s, t->n);
    text_put(out, "#if defined(__clang__)\n");
    text_printf(out, "#define TDSL_%s_%sx%lld(%s) \\\n    __builtin_shufflevector(%s, %s)\n",
                name[s], t->type, (long long)t->n, args, two ? args : "x, x", lanes);
    text_put(out, "#else\n");
    text_printf(
        out, "#define TDSL_%s_%sx%lld(%s) \\\n    __builtin_shuffle(%s, (tdsl_%sx%lld){%s})\n",
        name[s], t->type, (long long)t->n, args, args, t->mask, (long long)t->n, lanes);
    text_put(out, "#endif\n");
}

static void pair_macros(const Tiles *tiles, uint32_t bit, Text *out)
{
    Arena *a = tiles->arena;
    bool single = bit < 16, exchanged = (tiles->pairs >> bit & 1u) != 0;
    PairType t = {single ? "f32" : "f64", single ? "i32" : "i64", (int64_t)1 << bit % 16};
    shuffle_macro(a, &t, SHUFFLE_SWAP, out);
    if (exchanged) {
        shuffle_macro(a, &t, SHUFFLE_LOW, out);
        shuffle_macro(a, &t, SHUFFLE_HIGH, out);
    }
    if ((tiles->complex >> bit & 1u) != 0) {
        long long n = (long long)t.n;
        shuffle_macro(a, &t, SHUFFLE_RE, out);
        shuffle_macro(a, &t, SHUFFLE_IM, out);
        text_printf(out,
                    "#define TDSL_TIMES_I_%sx%lld(x) \\\n    (TDSL_SWAP_%sx%lld(x) * "
                    "(tdsl_%sx%lld){%s})\n"
                    "#define TDSL_CONJ_%sx%lld(x) ((x) * (tdsl_%sx%lld){%s})\n",
                    t.type, n, t.type, n, t.type, n, signs_text(a, t.n, "-1", "1"), t.type, n,
                    t.type, n, signs_text(a, t.n, "1", "-1"));
    }
}

const char *pairs_type(Tiles *t, DType part, int64_t lanes)
{
    (void)vector_type(t->help, part == DTYPE_F32 ? DTYPE_I32 : DTYPE_I64, lanes); /* masks */
    t->complex |= (part == DTYPE_F32 ? 1u : 1u << 16) * (uint32_t)lanes;
    return str_format(t->arena, "%sx%lld", dtype_name(part), (long long)lanes);
}

void pairs_emit(const Tiles *t, Text *out)
{
    uint32_t all = t->pairs | t->complex;
    if (all == 0) {
        return;
    }
    text_printf(
        out, "/* Neighbours exchanged%s%s. */\n#if !(TDSL_ROWS & TDSL_ISA_plain)\n",
        t->pairs == 0 ? "" : "; the first halves of two vectors by turns, the second ones",
        t->complex == 0 ? "" : "; of complex numbers: each part twice, times i, conjugated");
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((all >> bit & 1u) != 0) {
            pair_macros(t, bit, out);
        }
    }
    text_put(out, "#endif\n");
}
