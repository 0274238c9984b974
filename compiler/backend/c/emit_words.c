/* SPDX-License-Identifier: Apache-2.0 */
/* Packing into panels whose lines are in groups (loop/loop.h), for dot products of integers: functions like those of emit_pack.c. Lines of the
 * operand that run along columns are interleaved, eight bytes of each at a time; lines that run along the sum hold words already, which are
 * transposed four by four. What is no whole group, or of another type, goes element by element. */
#include "backend/c/emit.h"

static const char words_vectors[] =
    "\n#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "typedef int8_t tdsl_words_1 __attribute__((vector_size(16)));\n"
    "typedef int16_t tdsl_words_2 __attribute__((vector_size(16)));\n"
    "typedef int32_t tdsl_words_4 __attribute__((vector_size(16)));\n"
    "typedef int32_t tdsl_words_at __attribute__((vector_size(16), aligned(1), may_alias));\n"
    "typedef int64_t tdsl_words_8 __attribute__((vector_size(16)));\n"
    "TDSL_HELPER tdsl_words_8 tdsl_words_half(const void *p)\n"
    "{\n    int64_t x;\n    TDSL_COPY(&x, p, sizeof x);\n    return (tdsl_words_8){x, 0};\n}\n"
    "\n/* Words of eight bytes of each of four lines, `step` bytes apart, or of two. */\n"
    "TDSL_HELPER void tdsl_words_mix1(void *to, const char *from, int64_t step)\n"
    "{\n"
    "    const tdsl_words_1 a = (tdsl_words_1)tdsl_words_half(from);\n"
    "    const tdsl_words_1 b = (tdsl_words_1)tdsl_words_half(from + step);\n"
    "    const tdsl_words_1 c = (tdsl_words_1)tdsl_words_half(from + 2 * step);\n"
    "    const tdsl_words_1 d = (tdsl_words_1)tdsl_words_half(from + 3 * step);\n"
    "    const tdsl_words_2 p = (tdsl_words_2)TDSL_SHUFFLE(a, b, tdsl_words_1, 0, 16, 1, 17, "
    "2, "
    "18, 3, "
    "19,\n        4, 20, 5, 21, 6, 22, 7, 23);\n"
    "    const tdsl_words_2 q = (tdsl_words_2)TDSL_SHUFFLE(c, d, tdsl_words_1, 0, 16, 1, 17, "
    "2, "
    "18, 3, "
    "19,\n        4, 20, 5, 21, 6, 22, 7, 23);\n"
    "    ((tdsl_words_at *)to)[0] = (tdsl_words_4)TDSL_SHUFFLE(p, q, tdsl_words_2, 0, 8, 1, 9, "
    "2, "
    "10, "
    "3, 11);\n"
    "    ((tdsl_words_at *)to)[1] = (tdsl_words_4)TDSL_SHUFFLE(p, q, tdsl_words_2, 4, 12, 5, "
    "13, "
    "6, "
    "14, 7, 15);\n"
    "}\n"
    "TDSL_HELPER void tdsl_words_mix2(void *to, const char *from, int64_t step)\n"
    "{\n"
    "    const tdsl_words_2 a = (tdsl_words_2)tdsl_words_half(from);\n"
    "    const tdsl_words_2 b = (tdsl_words_2)tdsl_words_half(from + step);\n"
    "    TDSL_TO(tdsl_words, to) = (tdsl_words_4)TDSL_SHUFFLE(a, b, tdsl_words_2, 0, 8, 1, 9, "
    "2, "
    "10, "
    "3, "
    "11);\n"
    "}\n"
    "\n/* Word j of line i becomes word i of line j, for all i, j below 4; steps are bytes. "
    "*/\n"
    "TDSL_HELPER void tdsl_words_turn(char *to, int64_t line, const char *from, int64_t step)\n"
    "{\n"
    "    const tdsl_words_4 a = TDSL_AT(tdsl_words, from);\n"
    "    const tdsl_words_4 b = TDSL_AT(tdsl_words, from + step);\n"
    "    const tdsl_words_4 c = TDSL_AT(tdsl_words, from + 2 * step);\n"
    "    const tdsl_words_4 d = TDSL_AT(tdsl_words, from + 3 * step);\n"
    "    const tdsl_words_4 p = TDSL_SHUFFLE(a, b, tdsl_words_4, 0, 4, 1, 5);\n"
    "    const tdsl_words_4 q = TDSL_SHUFFLE(c, d, tdsl_words_4, 0, 4, 1, 5);\n"
    "    const tdsl_words_4 r = TDSL_SHUFFLE(a, b, tdsl_words_4, 2, 6, 3, 7);\n"
    "    const tdsl_words_4 s = TDSL_SHUFFLE(c, d, tdsl_words_4, 2, 6, 3, 7);\n"
    "    TDSL_TO(tdsl_words, to) = TDSL_SHUFFLE(p, q, tdsl_words_4, 0, 1, 4, 5);\n"
    "    TDSL_TO(tdsl_words, to + line) = TDSL_SHUFFLE(p, q, tdsl_words_4, 2, 3, 6, "
    "7);\n"
    "    TDSL_TO(tdsl_words, to + 2 * line) = TDSL_SHUFFLE(r, s, tdsl_words_4, 0, 1, 4, "
    "5);\n"
    "    TDSL_TO(tdsl_words, to + 3 * line) = TDSL_SHUFFLE(r, s, tdsl_words_4, 2, 3, 6, "
    "7);\n"
    "}\n#endif\n";

static const char copy_text[] =
    "\n/* Of a few bytes, of any type. */\n"
    "#if defined(__GNUC__)\n#define TDSL_COPY __builtin_memcpy\n#else\n#include <string.h>\n"
    "#define TDSL_COPY memcpy\n#endif\n";

void copy_put(Helpers *h)
{
    if (helper_new(h, "TDSL_COPY")) {
        helper_put(h, copy_text);
    }
}

/* $D: lines of a group; $F, $G: of the operand; as in emit_pack.c. */
static const char words_head[] =
    "\n/* Element (c, y, z) for c below nc, y below ny and z below nz goes to column m = first "
    "+ c + "
    "column * y,\n * line k = top + line * y + line_z * z, in groups of $D lines: to[m / width "
    "* "
    "panel + k / $D * ($D * width) +\n * m % width * $D + k % $D] = from[c * step_c + y * "
    "step_y + z "
    "* step_z]. */\n"
    "TDSL_ALIGNED static void tdsl_words_$N_of_$F($T *TDSL_RESTRICT to, int64_t width,\n"
    "    int64_t panel, int64_t top, int64_t first, int64_t nc, int64_t ny, int64_t nz,\n"
    "    int64_t column, int64_t line, int64_t line_z, const $G *TDSL_RESTRICT from,\n"
    "    int64_t step_c, int64_t step_y, int64_t step_z)\n"
    "{\n"
    "    for (int64_t z = 0; z < nz; ++z) {\n"
    "        const $G *const block = from + z * step_z;\n"
    "        const int64_t lines = top + line_z * z;\n"
    "        int64_t y = 0;\n";

static const char words_whole[] =
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "        /* Whole groups. */\n"
    "        const int64_t fits = column == 0 && line == 1 && lines % $D == 0;\n"
    "        const int64_t whole = fits ? ny - ny % $D : 0;\n"
    "        const int64_t step = step_y * $S;\n"
    "        for (int64_t c = 0; step_y == 1 && c < nc && whole >= 16 / $S;) {\n"
    "            const int64_t at = first + c, rest = width - at % width;\n"
    "            const int64_t n = rest < nc - c ? rest : nc - c;\n"
    "            $T *const panel_at = to + at / width * panel + at % width * $D + lines * "
    "width;\n"
    "            const $G *const rows = block + c * step_c;\n"
    "            c += n;\n"
    "            y = whole;\n"
    "            for (int64_t i = 0; i < n && n >= 4; i += 4) {\n"
    "                const int64_t k = i + 4 <= n ? i : n - 4; /* the last: some once more */\n"
    "                for (int64_t x = 0; x < whole; x += 16 / $S) {\n"
    "                    const int64_t l = x + 16 / $S <= whole ? x : whole - 16 / $S;\n"
    "                    tdsl_words_turn((char *)(panel_at + k * $D + l * width), width * 4,\n"
    "                                    (const char *)(rows + k * step_c + l), step_c * $S);\n"
    "                }\n"
    "            }\n"
    "            for (int64_t x = 0; x < whole && n < 4; x += $D) {\n"
    "                for (int64_t i = 0; i < n; ++i) {\n"
    "                    TDSL_COPY(panel_at + i * $D + x * width, rows + i * step_c + x, 4);\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "        for (; step_c == 1 && y < whole; y += $D) {\n"
    "            for (int64_t c = 0; c < nc;) {\n"
    "                const int64_t at = first + c, rest = width - at % width;\n"
    "                const int64_t n = rest < nc - c ? rest : nc - c;\n"
    "                $T *const words =\n"
    "                    to + at / width * panel + at % width * $D + (lines + y) * width;\n"
    "                const $G *const row = block + c + y * step_y;\n"
    "                c += n;\n"
    "                for (int64_t i = 0; i < n && n >= 8 / $S; i += 8 / $S) {\n"
    "                    const int64_t k = i + 8 / $S <= n ? i : n - 8 / $S;\n"
    "                    tdsl_words_mix$S(words + k * $D, (const char *)(row + k), step);\n"
    "                }\n"
    "                for (int64_t i = 0; i < n && n < 8 / $S; ++i) {\n"
    "                    for (int64_t k = 0; k < $D; ++k) {\n"
    "                        words[i * $D + k] = row[i + k * step_y];\n"
    "                    }\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "#endif\n";

static const char words_rest[] =
    "        for (; y < ny; ++y) {\n"
    "            const int64_t k = lines + line * y;\n"
    "            for (int64_t c = 0; c < nc;) {\n"
    "                const int64_t at = first + c + column * y, rest = width - at % width;\n"
    "                const int64_t n = rest < nc - c ? rest : nc - c;\n"
    "                $T *const words =\n"
    "                    to + at / width * panel + at % width * $D + k / $D * ($D * width) + k "
    "% $D;\n"
    "                for (int64_t i = 0; i < n; ++i) {\n"
    "                    words[i * $D] = ($T)block[(c + i) * step_c + y * step_y];\n"
    "                }\n"
    "                c += n;\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

const char *words_function(Emitter *e, DType t, DType from)
{
    const char *name =
        str_format(e->w.arena, "tdsl_words_%s_of_%s", dtype_name(t), dtype_name(from));
    if (helper_new(e->w.help, name)) {
        copy_put(e->w.help);
        if (t == from && helper_new(e->w.help, "tdsl_words_turn")) {
            shuffle_put(e->w.help);
            helper_put(e->w.help, words_vectors);
        }
        Text all;
        text_init(&all, e->w.arena);
        text_put(&all, words_head);
        text_put(&all, t == from ? words_whole : "");
        text_put(&all, words_rest);
        converted_put(e, all.at, t, from);
    }
    return name;
}

void converted_put(Emitter *e, const char *text, DType t, DType from)
{
    int64_t size = dtype_bytes(t);
    Text out;
    text_init(&out, e->w.arena);
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            text_char(&out, *text);
            continue;
        }
        switch (*++text) {
        case 'D':
            text_printf(&out, "%lld", (long long)(4 / size));
            break;
        case 'F':
            text_put(&out, dtype_name(from));
            break;
        case 'G':
            text_put(&out, c_type(from));
            break;
        case 'C':
            text_put(&out, dtype_is_half(from) ? help_loads(e->w.help, from) : "");
            break;
        case 'N':
            text_put(&out, dtype_name(t));
            break;
        case 'T':
            text_put(&out, c_type(t));
            break;
        case 'W':
            text_put(&out, dtype_is_complex(t) ? "double" : c_type(t));
            break;
        case 'A':
            text_printf(&out, "%lld", (long long)dtype_bytes(dtype_part(t)));
            break;
        case 'M':
            text_put(&out, size == 4 ? "int32_t" : "int64_t");
            break;
        case 'V':
            text_printf(&out, "%lld", (long long)(64 / size));
            break;
        case 'L':
            text_printf(&out, "%lld", (long long)(16 / size));
            break;
        case 'H':
            text_printf(&out, "%lld", (long long)(size > 4 ? 256 / size : 64));
            break;
        default:
            text_printf(&out, "%lld", (long long)size);
        }
    }
    helper_put(e->w.help, out.at);
}
