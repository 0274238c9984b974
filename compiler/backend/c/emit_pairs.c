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

/* The first part whose vectors are of the same type: their factors are variables of this number. */
static uint32_t first_alike(const Parts *x, uint32_t v)
{
    uint32_t first = 0;
    while (x->lanes[first] != x->lanes[v]) {
        first++;
    }
    return first;
}

/* Factors of vectors: s of x, t of w with its parts exchanged. */
void pairs_factors(Printer *p, const Parts *x)
{
    for (uint32_t v = 0; v < x->n && p->s->parts[1]; v++) {
        if (x->lanes[v] == 1 || first_alike(x, v) != v ||
            !(p->w || has_sign(p, TILE_CONJ_COL))) {
            continue;
        }
        const char *type = micro_vector(p, x, v);
        pair_use(p->tiles, p->part, x->lanes[v]);
        if (has_sign(p, TILE_CONJ_COL)) {
            micro_put(p, "const tdsl_##%s s%u = TDSL_BY_TURNS_tdsl_##%s(1, cb);", type, v,
                      type);
        }
        if (p->w) {
            micro_put(p, "const tdsl_##%s t%u = TDSL_BY_TURNS_tdsl_##%s(-ca * cb, ca);", type,
                      v, type);
        }
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

/* The columns are complex, perhaps the rows: x becomes what is stored. Zeros lose the sign that a factor gives them. */
static void finish_columns(Printer *p, const Parts *parts, uint32_t v)
{
    bool vector = parts->lanes[v] > 1;
    uint32_t first = first_alike(parts, v);
    const char *sign = vector ? str_format(p->tiles->arena, "s%u", first) : "cb";
    bool imaginary = !vector && offset_of(parts, v) % 2 != 0;
    if (has_sign(p, TILE_CONJ_COL) && (vector || imaginary)) {
        micro_put(p, "x%u[r] = x%u[r] * %s + (T)0;", v, v, sign);
    }
    if (p->w && vector) {
        micro_put(p, "x%u[r] += TDSL_SWAP_tdsl_##%s(w%u[r]) * t%u;", v,
                  micro_vector(p, parts, v), v, first);
    } else if (p->w && imaginary) {
        micro_put(p, "x%u[r] += ca * w%u[r];", v, v - 1);
    } else if (p->w) {
        micro_put(p, "x%u[r] -= ca * cb * w%u[r];", v, v + 1);
    }
}

/* The rows alone are complex: x and w become what is stored one after the other. */
static void finish_rows(Printer *p, const Parts *parts, uint32_t v)
{
    if (has_sign(p, TILE_CONJ_ROW)) {
        micro_put(p, "w%u[r] = w%u[r] * ca + (T)0;", v, v);
    }
    if (parts->lanes[v] > 1) {
        const char *type = micro_vector(p, parts, v);
        pair_use(p->tiles, p->part, parts->lanes[v]);
        micro_put(p, "const tdsl_##%s e%u = TDSL_LOW_tdsl_##%s(x%u[r], w%u[r]);", type, v, type,
                  v, v);
        micro_put(p, "w%u[r] = TDSL_HIGH_tdsl_##%s(x%u[r], w%u[r]);", v, type, v, v);
        micro_put(p, "x%u[r] = e%u;", v, v);
    }
}

void pairs_finish(Printer *p, const Parts *x)
{
    for (uint32_t v = 0; v < x->n; v++) {
        (p->s->parts[1] ? finish_columns : finish_rows)(p, x, v);
    }
}

/* The same of complex numbers. */
void pairs_plain(Printer *p)
{
    bool columns = p->s->parts[1];
    const char *by = p->s->by ? "by * " : "", *each = columns ? "2" : "1";
    micro_put(p, "for (int64_t i = 0; i < ROWS; ++i) {");
    p->out->indent++;
    micro_put(p, p->w ? "T x[COLUMNS] = {0}, w[COLUMNS] = {0};" : "T x[COLUMNS] = {0};");
    micro_put(p, "for (int64_t k = 0; k < n; ++k) {");
    p->out->indent++;
    micro_put(p, "const T *z = a + k * cs_a + i * rs_a;");
    micro_put(p, "for (int64_t j = 0; j < COLUMNS; ++j) {");
    p->out->indent++;
    micro_put(p, "x[j] += z[0] * b[k * rs_b + j];");
    if (p->w) {
        micro_put(p, "w[j] += z[1] * b[k * rs_b + j];");
    }
    micro_close(p);
    micro_close(p);
    micro_put(p, "for (int64_t j = 0; j < COLUMNS; j += %s) {", each);
    p->out->indent++;
    micro_put(p, "T *d = c + i * rs_c + %s;", columns ? "j" : "2 * j");
    micro_put(p, "const T re = %s, im = %s;",
              columns && p->w ? "x[j] - ca * cb * w[j + 1]" : "x[j]",
              !columns ? "ca * w[j] + 0"
              : p->w   ? "cb * x[j + 1] + 0 + ca * w[j]"
                       : "cb * x[j + 1] + 0");
    micro_put(p, "d[0] = (add & 1) != 0 ? d[0] + %sre : %sre;", by, by);
    micro_put(p, "d[1] = (add & 1) != 0 ? d[1] + %sim : %sim;", by, by);
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
            micro_put(p, "const T %s = (add & %d) != 0 ? -(T)1 : (T)1;", side[i].name,
                      side[i].how);
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
    text_printf(out,
                "#define TDSL_%s_tdsl_%sx%lld(%s) \\\n    __builtin_shufflevector(%s, %s)\n",
                name[s], t->type, (long long)t->n, args, two ? args : "x, x", lanes);
    text_put(out, "#else\n");
    text_printf(
        out,
        "#define TDSL_%s_tdsl_%sx%lld(%s) \\\n    __builtin_shuffle(%s, (tdsl_%sx%lld){%s})\n",
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
    text_printf(out, "#define TDSL_BY_TURNS_tdsl_%sx%lld(x, y) {%s}\n", t.type, (long long)t.n,
                signs_text(a, t.n, "x", "y"));
    if ((tiles->complex >> bit & 1u) != 0) {
        long long n = (long long)t.n;
        shuffle_macro(a, &t, SHUFFLE_RE, out);
        shuffle_macro(a, &t, SHUFFLE_IM, out);
        text_printf(out,
                    "#define TDSL_TIMES_I_tdsl_%sx%lld(x) \\\n    (TDSL_SWAP_tdsl_%sx%lld(x) * "
                    "(tdsl_%sx%lld){%s})\n"
                    "#define TDSL_CONJ_tdsl_%sx%lld(x) ((x) * (tdsl_%sx%lld){%s})\n",
                    t.type, n, t.type, n, t.type, n, signs_text(a, t.n, "-1", "1"), t.type, n,
                    t.type, n, signs_text(a, t.n, "1", "-1"));
    }
}

void pairs_note(Tiles *t, DType part, int64_t lanes)
{
    (void)vector_type(t->help, part == DTYPE_F32 ? DTYPE_I32 : DTYPE_I64, lanes); /* masks */
    t->complex |= (part == DTYPE_F32 ? 1u : 1u << 16) * (uint32_t)lanes;
}

/* What is done with the vectors of a macro that has their type as parameter. */
static const char complex_macros[] = "#define TDSL_BY_TURNS(V, x, y) TDSL_BY_TURNS_##V(x, y)\n"
                                     "#define TDSL_RE(V, x) TDSL_RE_##V(x)\n"
                                     "#define TDSL_IM(V, x) TDSL_IM_##V(x)\n"
                                     "#define TDSL_TIMES_I(V, x) TDSL_TIMES_I_##V(x)\n"
                                     "#define TDSL_CONJ(V, x) TDSL_CONJ_##V(x)\n";

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
    text_put(out, t->complex != 0 ? complex_macros : "");
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((all >> bit & 1u) != 0) {
            pair_macros(t, bit, out);
        }
    }
    text_put(out, "#endif\n");
}
