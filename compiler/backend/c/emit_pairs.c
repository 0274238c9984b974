/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of complex numbers, where they are not as others: sums of parts become numbers (see emit_micro.c). */
#include "backend/c/micro.h"

/* Notes that such vectors are used: in Tiles.pairs or Tiles.complex. */
static void pair_use(Tiles *t, uint32_t *bits, DType part, int64_t lanes)
{
    (void)vector_type(t->help, part == DTYPE_F32 ? DTYPE_I32 : DTYPE_I64, lanes); /* masks */
    shuffle_put(t->help);
    *bits |= (part == DTYPE_F32 ? 1u : 1u << 16) * (uint32_t)lanes;
}

/* Is the sign a number that is not 1? Of a short sum it is known. */
static bool has_sign(const Printer *p, int how)
{
    return p->s->n.sum == 0 || (p->s->how & how) != 0;
}

/* Factors of vectors: s of x, t of w with its parts exchanged. */
void pairs_factors(Printer *p, const Columns *x)
{
    for (uint32_t g = 0; g < x->n && p->s->parts[1]; g++) {
        const char *type = run_name(p, "V", g);
        if (!x->run[g].vectors || !(p->both || has_sign(p, TILE_CONJ_COL))) {
            continue;
        }
        pair_use(p->tiles, &p->tiles->pairs, p->part, x->run[g].lanes);
        if (has_sign(p, TILE_CONJ_COL)) {
            line_printf(&p->w, "const %s %s = TDSL_BY_TURNS(%s, 1, cb);", type,
                        run_name(p, "s", g), type);
        }
        if (p->both) {
            line_printf(&p->w, "const %s %s = TDSL_BY_TURNS(%s, -ca * cb, ca);", type,
                        run_name(p, "t", g), type);
        }
    }
}

/* The columns are complex, perhaps the rows: x becomes what is stored. Zeros lose the sign that a factor gives them. */
static void finish_vectors(Printer *p, uint32_t g)
{
    const char *x = run_name(p, "x", g), *w = run_name(p, "w", g);
    if (has_sign(p, TILE_CONJ_COL)) {
        run_put(p, g, "%s[r][v] = %s[r][v] * %s + (T)0;", x, x, run_name(p, "s", g));
    }
    if (p->both) {
        run_put(p, g, "%s[r][v] += TDSL_SWAP(%s, %s[r][v]) * %s;", x, run_name(p, "V", g), w,
                run_name(p, "t", g));
    }
}

/* The same of elements, two by two. */
static void finish_elements(Printer *p, uint32_t g)
{
    const char *x = run_name(p, "x", g), *w = run_name(p, "w", g);
    scope_printf(&p->w, "TDSL_EACH(v, %s, 2) {", run_name(p, "N", g));
    if (p->both) {
        line_printf(&p->w, "%s[r][v] -= ca * cb * %s[r][v + 1];", x, w);
    }
    if (has_sign(p, TILE_CONJ_COL)) {
        line_printf(&p->w, "%s[r][v + 1] = %s[r][v + 1] * cb + (T)0;", x, x);
    }
    if (p->both) {
        line_printf(&p->w, "%s[r][v + 1] += ca * %s[r][v];", x, w);
    }
    scope_end(&p->w);
}

/* The rows alone are complex: x and w become what is stored one after the other. */
static void finish_rows(Printer *p, const Columns *columns, uint32_t g)
{
    const char *x = run_name(p, "x", g), *w = run_name(p, "w", g), *type = run_name(p, "V", g);
    if (has_sign(p, TILE_CONJ_ROW)) {
        run_put(p, g, "%s[r][v] = %s[r][v] * ca + (T)0;", w, w);
    }
    if (columns->run[g].vectors) {
        pair_use(p->tiles, &p->tiles->pairs, p->part, columns->run[g].lanes);
        run_put(p, g, "{ const %s e = TDSL_LOW(%s, %s[r][v], %s[r][v]);", type, type, x, w);
        line_printf(&p->w, "    %s[r][v] = TDSL_HIGH(%s, %s[r][v], %s[r][v]); %s[r][v] = e; }",
                    w, type, x, w, x);
    }
}

void pairs_finish(Printer *p, const Columns *x)
{
    for (uint32_t g = 0; g < x->n; g++) {
        if (!p->s->parts[1]) {
            finish_rows(p, x, g);
        } else if (x->run[g].vectors) {
            finish_vectors(p, g);
        } else {
            finish_elements(p, g);
        }
    }
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
        if (p->s->parts[i] && (both || has_sign(p, side[i].how))) {
            line_printf(&p->w, "const T %s = (add & %d) != 0 ? -(T)1 : (T)1;", side[i].name,
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

/* `type`: f32 or f64, of n lanes. */
static void shuffle_macro(Arena *a, const char *type, int64_t n, Shuffle s, Text *out)
{
    static const char *const name[] = {"SWAP", "LOW", "HIGH", "RE", "IM"};
    bool two = s == SHUFFLE_LOW || s == SHUFFLE_HIGH;
    text_printf(
        out, "#define TDSL_%s_tdsl_%sx%lld(%s) \\\n    TDSL_SHUFFLE(%s, tdsl_i%sx%lld, %s)\n",
        name[s], type, (long long)n, two ? "x, y" : "x", two ? "x, y" : "x, x", type + 1,
        (long long)n, lanes_text(a, s, n));
}

static void pair_macros(const Tiles *tiles, uint32_t bit, Text *out)
{
    Arena *a = tiles->arena;
    const char *type = bit < 16 ? "f32" : "f64";
    int64_t n = (int64_t)1 << bit % 16;
    const char *own = str_format(a, "tdsl_%sx%lld", type, (long long)n);
    shuffle_macro(a, type, n, SHUFFLE_SWAP, out);
    if ((tiles->pairs >> bit & 1u) != 0) {
        shuffle_macro(a, type, n, SHUFFLE_LOW, out);
        shuffle_macro(a, type, n, SHUFFLE_HIGH, out);
    }
    text_printf(out, "#define TDSL_BY_TURNS_%s(x, y) {%s}\n", own, signs_text(a, n, "x", "y"));
    if ((tiles->complex >> bit & 1u) != 0) {
        shuffle_macro(a, type, n, SHUFFLE_RE, out);
        shuffle_macro(a, type, n, SHUFFLE_IM, out);
    }
}

void pairs_note(Tiles *t, DType part, int64_t lanes)
{
    DType whole = part == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128;
    pair_use(t, &t->complex, part, lanes);
    (void)help_make(t->help, whole);
    (void)help_part(t->help, whole, false); /* of plain C */
}

/* Of vectors whose type is a macro's parameter. */
static const char turns_text[] = "#define TDSL_BY_TURNS(V, x, y) TDSL_BY_TURNS_##V(x, y)\n";
static const char parts_text[] = "#define TDSL_RE(V, x) TDSL_RE_##V(x)\n"
                                 "#define TDSL_IM(V, x) TDSL_IM_##V(x)\n";
static const char swap_text[] = "#define TDSL_SWAP(V, x) TDSL_SWAP_##V(x)\n";
static const char exchange_text[] = "#define TDSL_LOW(V, x, y) TDSL_LOW_##V(x, y)\n"
                                    "#define TDSL_HIGH(V, x, y) TDSL_HIGH_##V(x, y)\n";
static const char complex_text[] =
    "#define TDSL_TIMES_I(V, x) (TDSL_SWAP(V, x) * (V)TDSL_BY_TURNS(V, -1, 1))\n"
    "#define TDSL_CONJ(V, x) ((x) * (V)TDSL_BY_TURNS(V, 1, -1))\n"
    "#define TDSL_NUMBER(make, x, l) make((x)[l], (x)[(l) + 1])\n";
static const char plain_text[] =
    "#define TDSL_TIMES_I(V, x) TDSL_BY_TURNS(V, -TDSL_IM(V, x), TDSL_RE(V, x))\n"
    "#define TDSL_CONJ(V, x) TDSL_BY_TURNS(V, TDSL_RE(V, x), -TDSL_IM(V, x))\n"
    "#define TDSL_NUMBER(make, x, l) (x)\n";

/* In plain C a vector is a complex number. */
static void plain_macros(const Tiles *t, DType type, Text *out)
{
    const char *c = c_type(type);
    if ((t->complex & (type == DTYPE_C64 ? 0xffffu : 0xffff0000u)) != 0) {
        text_printf(out,
                    "#define TDSL_BY_TURNS_%s %s\n#define TDSL_RE_%s %s\n#define TDSL_IM_%s "
                    "%s\n",
                    c, help_make(t->help, type), c, help_part(t->help, type, false), c,
                    help_part(t->help, type, true));
    }
}

void pairs_emit(const Tiles *t, Text *out)
{
    uint32_t all = t->pairs | t->complex;
    if (all == 0) {
        return;
    }
    text_printf(
        out, "/* Neighbours exchanged%s%s. */\n",
        t->pairs == 0 ? "" : "; the first halves of two vectors by turns, the second ones",
        t->complex == 0 ? "" : "; of complex numbers: each part twice, times i, conjugated");
    text_put(out, turns_text);
    text_put(out, t->complex != 0 ? parts_text : "");
    text_put(out, "#if !(TDSL_ROWS & TDSL_ISA_plain)\n");
    text_put(out, swap_text);
    text_put(out, t->pairs != 0 ? exchange_text : "");
    text_put(out, t->complex != 0 ? complex_text : "");
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((all >> bit & 1u) != 0) {
            pair_macros(t, bit, out);
        }
    }
    if (t->complex != 0) {
        text_put(out, "#else\n");
        text_put(out, plain_text);
        plain_macros(t, DTYPE_C64, out);
        plain_macros(t, DTYPE_C128, out);
    }
    text_put(out, "#endif\n");
}
