/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of dot products: of integers of 8 or 16 bits, whose panels hold the sum in groups (loop/loop.h). To a tile a group is a
 * word of 32 bits: rows, columns, strides and counts are in words, and a step adds the dot product of two words to a sum of 32 bits, that wraps.
 *
 * The instructions of x86 multiply unsigned by signed bytes. Where both operands are alike, the columns' bytes change their top bit as
 * they are loaded: y + 128 of signed ones, which is unsigned, y - 128 of unsigned ones, which is signed. What that is too much, 128 or -128
 * times the sum of the row, is added up beside the tile, in vectors of rows, by the same instruction with a constant operand whose top bits
 * are set: 128 as an unsigned byte, -128 as a signed one; it is taken off at the end. Sums wrap, so this is exact. The instructions of Arm
 * multiply bytes that are alike: there the same is done where they are not.
 *
 * Elsewhere bytes become pairs of 16 bits, even ones and odd ones, which are multiplied and added in pairs. */
#include <stdio.h>
#include <string.h>

#include "backend/c/micro.h"

#define TOP_BITS "0x80808080u"

bool dot_is_flipped(const Printer *p)
{
    const TileDot *d = &p->s->dot;
    bool alike = dtype_lowest(d->row) == dtype_lowest(d->column);
    return d->group == 4 && (p->dots == DOTS_MIXED ? alike : p->dots == DOTS_ALIKE && !alike);
}

/* Of bytes: "i8", or "u8" where it is that. */
static const char *sign_name(bool is_signed)
{
    return is_signed ? "i8" : "u8";
}

static bool is_signed(DType t)
{
    return dtype_lowest(t) < 0;
}

/* "TDSL_DOT_avx2_i8_u8"; of single words a function "tdsl_dot_i8_u8". */
static const char *dot_name(Printer *p, bool vector, bool row, bool column)
{
    Arena *a = p->w.arena;
    const char *types = p->s->dot.group == 2
                            ? "i16"
                            : str_format(a, "%s_%s", sign_name(row), sign_name(column));
    return vector ? str_format(a, "TDSL_DOT_%s_%s", p->isa->name, types)
                  : str_format(a, "tdsl_dot_%s", types);
}

const char *dot_step(Printer *p, const char *type, const char *row, const char *column,
                     const char *into)
{
    const TileDot *d = &p->s->dot;
    bool other = dot_is_flipped(p);
    const char *name =
        dot_name(p, type != NULL, is_signed(d->row), is_signed(d->column) != other);
    return type != NULL
               ? str_format(p->w.arena, "%s(%s, %s, %s, %s);", name, type, into, row, column)
               : str_format(p->w.arena, "%s += %s(%s, %s);", into, name, row, column);
}

/* ---- sums of rows, where the columns' bytes are flipped ---- */

/* The k-th vector of the words of R rows: its first row, so that the last one ends with them; *lanes: 4 or 8, or 1 if there are fewer. */
static int64_t rows_vector(const Printer *p, int64_t rows, int64_t k, int64_t *lanes)
{
    *lanes = rows < 4 ? 1 : rows >= 8 && p->isa->vector_bytes >= 32 ? 8 : 4;
    return k * *lanes + *lanes > rows ? rows - *lanes : k * *lanes;
}

/* Vectors of rows have four words at least: of few rows each has one of its own. */
static const char *rows_type(Printer *p, int64_t lanes)
{
    return vector_type(p->w.help, DTYPE_I32, lanes < 4 ? 4 : lanes);
}

void dot_sums_begin(Printer *p, int64_t rows)
{
    int64_t lanes = 1;
    (void)rows_vector(p, rows, 0, &lanes);
    for (int64_t k = 0; k * lanes < rows; k++) {
        line_printf(&p->w, "%s s%lld = {0};", rows_type(p, lanes), (long long)k);
    }
}

void dot_sums_step(Printer *p, int64_t rows)
{
    int64_t lanes = 1;
    bool row = is_signed(p->s->dot.row), constant = p->dots == DOTS_MIXED ? !row : row;
    (void)rows_vector(p, rows, 0, &lanes);
    const char *name = dot_name(p, true, constant, row), *type = rows_type(p, lanes);
    for (int64_t k = 0; k * lanes < rows; k++) {
        long long from = (long long)rows_vector(p, rows, k, &lanes);
        const char *place = str_format(p->w.arena, "p0 + %lld", from);
        const char *words = lanes == 1
                                ? vector_spread(p->w.arena, type,
                                                str_format(p->w.arena, "tdsl_word(%s)", place))
                                : vector_at(p->w.arena, type, place);
        line_printf(&p->w, "{ const %s w = %s; %s(%s, s%lld, " TOP_BITS ", w); }", type, words,
                    name, type, (long long)k);
    }
}

void dot_sums_end(Printer *p, int64_t rows)
{
    int64_t lanes = 1;
    (void)rows_vector(p, rows, 0, &lanes);
    line_printf(&p->w, "U s[%lld];", (long long)rows);
    for (int64_t k = 0; k * lanes < rows; k++) {
        long long from = (long long)rows_vector(p, rows, k, &lanes), number = (long long)k;
        if (lanes == 1) {
            line_printf(&p->w, "s[%lld] = s%lld[0];", from, number);
        } else {
            line_printf(&p->w, "TDSL_TO(%s, s + %lld) = s%lld;", rows_type(p, lanes), from,
                        number);
        }
    }
}

/* ---- what stands before tiles ---- */

static const char word_text[] =
    "\n/* Words hold four bytes, or two elements of 16 bits, of a row or a column. Dot "
    "products of "
    "two words: */\n"
    "TDSL_HELPER uint32_t tdsl_word(const void *p)\n"
    "{\n    uint32_t x;\n    TDSL_COPY(&x, p, sizeof x);\n    return x;\n}\n";

static const char pair_text[] =
    "TDSL_HELPER uint32_t tdsl_dot_i16(uint32_t x, uint32_t y)\n"
    "{\n    return (uint32_t)((int16_t)(x & 65535) * (int16_t)(y & 65535)) +\n"
    "        (uint32_t)((int16_t)(x >> 16) * (int16_t)(y >> 16));\n}\n";

/* Not all compilers' __builtin_cpu_supports knows it. */
static const char avxvnni_text[] =
    "\n#if TDSL_ROWS & TDSL_DOTS_avxvnni\n"
    "TDSL_HELPER int tdsl_has_avxvnni(void)\n"
    "{\n    unsigned a = 7, b, c = 1, d; /* what AVX2 says is there */\n"
    "    __asm__(\"cpuid\" : \"+a\"(a), \"=b\"(b), \"+c\"(c), \"=d\"(d));\n"
    "    return (int)(a >> 4 & 1);\n}\n#endif\n";

/* Of vectors of words, for each instruction set: x += the dot products of y and of the word z; of pairs first. */
static const char pairs_text[] =
    "\n#if !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "/* x += the dot products of the vector y and the word z; even and odd bytes as 16 bits, "
    "and "
    "16 bits as 32. */\n"
    "#define TDSL_WORDS(V, z) const V tdsl_z = (V){0} + (z)\n"
    "#define TDSL_HALVES(V, BYTES) typedef int16_t V##_half "
    "__attribute__((vector_size(BYTES)));\n"
    "#define TDSL_EVEN_i8(V, x) ((V)((V##_half)((x) << 8) >> 8))\n"
    "#define TDSL_ODD_i8(V, x) ((V)((V##_half)(x) >> 8))\n"
    "#define TDSL_EVEN_u8(V, x) ((x) & 0x00ff00ffu)\n"
    "#define TDSL_ODD_u8(V, x) ((x) >> 8 & 0x00ff00ffu)\n"
    "#define TDSL_LOW_i16(x) ((((x) & 65535u) ^ 32768u) - 32768u)\n"
    "#define TDSL_HIGH_i16(x) (((x) >> 16 ^ 32768u) - 32768u)\n"
    "#define TDSL_ASM(NAME, R, x, a, b) \\\n"
    "    __asm__(NAME \" {%2, %1, %0|%0, %1, %2}\" : \"+\" R(x) : R(a), R(b))\n"
    "#define TDSL_MADD(V, R, x, a, b) { V tdsl_p; \\\n"
    "    __asm__(\"vpmaddwd {%2, %1, %0|%0, %1, %2}\" : \"=\" R(tdsl_p) : R(a), R(b)); x += "
    "tdsl_p; }\n"
    "#if defined(__AVX__)\n"
    "#define TDSL_PAIRS_vectors(V, x, a, b) TDSL_MADD(V, \"x\", x, a, b)\n"
    "#elif defined(__SSE2__)\n"
    "#define TDSL_PAIRS_vectors(V, x, a, b) { V tdsl_p = a; \\\n"
    "    __asm__(\"pmaddwd {%1, %0|%0, %1}\" : \"+x\"(tdsl_p) : \"x\"(b)); x += tdsl_p; }\n"
    "#else\n"
    "#define TDSL_PAIRS_vectors(V, x, a, b) \\\n"
    "    { x += TDSL_LOW_i16(a) * TDSL_LOW_i16(b) + TDSL_HIGH_i16(a) * TDSL_HIGH_i16(b); }\n"
    "#endif\n"
    "#define TDSL_PAIRS_neon TDSL_PAIRS_vectors\n"
    "#define TDSL_PAIRS_dotprod TDSL_PAIRS_vectors\n"
    "#define TDSL_PAIRS_avx2(V, x, a, b) TDSL_MADD(V, \"x\", x, a, b)\n"
    "#define TDSL_PAIRS_avx512(V, x, a, b) TDSL_MADD(V, \"v\", x, a, b)\n"
    "#define TDSL_PAIRS_avxvnni(V, x, a, b) TDSL_ASM(\"%{vex%} vpdpwssd\", \"x\", x, a, b);\n"
    "#define TDSL_PAIRS_avx512vnni(V, x, a, b) TDSL_ASM(\"vpdpwssd\", \"v\", x, a, b);\n";

static const DType byte_types[2] = {DTYPE_I8, DTYPE_U8};

/* The function of two words, of bytes of these types. */
static void word_function(Text *out, DType row, DType column)
{
    text_printf(out,
                "TDSL_HELPER uint32_t tdsl_dot_%s_%s(uint32_t x, uint32_t y)\n"
                "{\n    uint32_t sum = 0;\n    for (int i = 0; i < 32; i += 8) {\n"
                "        sum += (uint32_t)((%s)(x >> i & 255) * (%s)(y >> i & 255));\n    }\n"
                "    return sum;\n}\n",
                dtype_name(row), dtype_name(column), c_type(row), c_type(column));
}

/* The macro of bytes of these types, of a row of instruction sets. */
static void bytes_macro(Text *out, const char *isa, IsaDots dots, DType row, DType column)
{
    const char *r = dtype_name(row), *c = dtype_name(column);
    text_printf(out, "#define TDSL_DOT_%s_%s_%s(V, x, z, y) { TDSL_WORDS(V, z); \\\n", isa, r,
                c);
    if (dots == DOTS_PAIRS) {
        text_printf(
            out,
            "    const V tdsl_e = TDSL_EVEN_%s(V, tdsl_z), tdsl_o = TDSL_ODD_%s(V, "
            "tdsl_z), \\\n        tdsl_f = TDSL_EVEN_%s(V, y), tdsl_q = TDSL_ODD_%s(V, "
            "y); \\\n    TDSL_PAIRS_%s(V, x, tdsl_e, tdsl_f) TDSL_PAIRS_%s(V, x, tdsl_o, "
            "tdsl_q) }\n",
            r, r, c, c, isa, isa);
    } else if (dots == DOTS_ALIKE) {
        text_printf(
            out,
            "    __asm__(\"%cdot %%0.4s, %%1.16b, %%2.16b\" : \"+w\"(x) : \"w\"(tdsl_z), "
            "\"w\"(y)); }\n",
            row == DTYPE_I8 ? 's' : 'u');
    } else {
        bool vex = strcmp(isa, "avxvnni") == 0, unsigned_row = row == DTYPE_U8;
        text_printf(out, "    TDSL_ASM(\"%svpdpbusd\", \"%s\", x, %s, %s); }\n",
                    vex ? "%{vex%} " : "", vex ? "x" : "v", unsigned_row ? "tdsl_z" : "y",
                    unsigned_row ? "y" : "tdsl_z");
    }
}

static void isa_macros(Text *out, const char *isa, IsaDots dots, const char *used)
{
    char name[64];
    (void)snprintf(name, sizeof name, "TDSL_DOT_%s_i16(", isa);
    if (strstr(used, name) != NULL) {
        text_printf(out,
                    "#define TDSL_DOT_%s_i16(V, x, z, y) { TDSL_WORDS(V, z); TDSL_PAIRS_%s(V, "
                    "x, tdsl_z, y) }\n",
                    isa, isa);
    }
    for (uint32_t i = 0; i < 4; i++) {
        DType row = byte_types[i / 2], column = byte_types[i % 2];
        (void)snprintf(name, sizeof name, "TDSL_DOT_%s_%s_%s(", isa, dtype_name(row),
                       dtype_name(column));
        if (strstr(used, name) != NULL) {
            bytes_macro(out, isa, dots, row, column);
        }
    }
}

void dots_emit(const Tiles *t, const char *used, Text *out)
{
    if (!tiles_have_dots(t)) {
        return;
    }
    text_put(out, word_text);
    text_put(out, strstr(used, "tdsl_dot_i16(") != NULL ? pair_text : "");
    for (uint32_t i = 0; i < 4; i++) {
        DType row = byte_types[i / 2], column = byte_types[i % 2];
        char name[64];
        (void)snprintf(name, sizeof name, "tdsl_dot_%s_%s(", dtype_name(row),
                       dtype_name(column));
        if (strstr(used, name) != NULL) {
            word_function(out, row, column);
        }
    }
    text_put(out, avxvnni_text);
    text_put(out, pairs_text);
    for (uint32_t r = 1; r < ISA_COUNT; r++) {
        isa_macros(out, isa_table[r].name, DOTS_PAIRS, used);
    }
    for (uint32_t r = 0; r < ISA_DOT_COUNT; r++) {
        isa_macros(out, isa_dot_table[r].isa.name, isa_dot_table[r].dots, used);
    }
    for (int64_t lanes = 4; lanes <= 16; lanes *= 2) {
        const char *v = vector_type(t->help, DTYPE_I32, lanes);
        text_printf(out, "TDSL_HALVES(%s, %lld)\n", v, (long long)(4 * lanes));
    }
    text_put(out, "#endif\n");
}
