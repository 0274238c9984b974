/* SPDX-License-Identifier: Apache-2.0 */
/* Packing. A statement that copies elements into panels is the call of a function, one for each element type of a file:
 * it splits runs at the borders of panels, copies lines with vectors where the operand has them along columns, and
 * transposes blocks in registers where it has them along the sum, or along columns that are whole panels apart. Lines
 * that are a long way from each other are asked for ahead. Elements of another type are converted first, a block at a
 * time, along lines of memory. */
#include "backend/c/emit.h"

#include "backend/c/legalise.h"
#include "op/affine.h"

/* $N: the element type in names; $T: in C; $W: lanes of vectors, as large (c128: half as large); $M: an integer as large as
 * these; $A: bytes that elements are aligned to; $L: elements in a vector; $V: in a line; $S: bytes of an element; $H: lines
 * of 64 elements that are 16 KiB, at most 64. */
static const char pack_types[] =
    "\n#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "typedef $W tdsl_pack_$N_v __attribute__((vector_size(16)));\n"
    "typedef $W tdsl_pack_$N_at __attribute__((vector_size(16), aligned($A), may_alias));\n"
    "typedef $M tdsl_pack_$N_mask __attribute__((vector_size(16)));\n";

static const char pack_block4[] =
    "/* to[j * line + i] = from[i * step + j] for all i, j below 4 */\n"
    "TDSL_HELPER void tdsl_turn_$N($T *to, int64_t line, const $T *from, int64_t step)\n"
    "{\n"
    "    const tdsl_pack_$N_v a = TDSL_AT(tdsl_pack_$N, from);\n"
    "    const tdsl_pack_$N_v b = TDSL_AT(tdsl_pack_$N, from + step);\n"
    "    const tdsl_pack_$N_v c = TDSL_AT(tdsl_pack_$N, from + 2 * step);\n"
    "    const tdsl_pack_$N_v d = TDSL_AT(tdsl_pack_$N, from + 3 * step);\n"
    "    const tdsl_pack_$N_v p = TDSL_SHUFFLE(a, b, tdsl_pack_$N_mask, 0, 4, 1, 5);\n"
    "    const tdsl_pack_$N_v q = TDSL_SHUFFLE(c, d, tdsl_pack_$N_mask, 0, 4, 1, 5);\n"
    "    const tdsl_pack_$N_v r = TDSL_SHUFFLE(a, b, tdsl_pack_$N_mask, 2, 6, 3, 7);\n"
    "    const tdsl_pack_$N_v s = TDSL_SHUFFLE(c, d, tdsl_pack_$N_mask, 2, 6, 3, 7);\n"
    "    TDSL_TO(tdsl_pack_$N, to) = TDSL_SHUFFLE(p, q, tdsl_pack_$N_mask, 0, 1, 4, 5);\n"
    "    TDSL_TO(tdsl_pack_$N, to + line) = TDSL_SHUFFLE(p, q, tdsl_pack_$N_mask, 2, 3, 6, "
    "7);\n"
    "    TDSL_TO(tdsl_pack_$N, to + 2 * line) = TDSL_SHUFFLE(r, s, tdsl_pack_$N_mask, 0, 1, 4, "
    "5);\n"
    "    TDSL_TO(tdsl_pack_$N, to + 3 * line) = TDSL_SHUFFLE(r, s, tdsl_pack_$N_mask, 2, 3, 6, "
    "7);\n"
    "}\n#endif\n";

static const char pack_block2[] =
    "/* to[j * line + i] = from[i * step + j] for all i, j below 2 */\n"
    "TDSL_HELPER void tdsl_turn_$N($T *to, int64_t line, const $T *from, int64_t step)\n"
    "{\n"
    "    const tdsl_pack_$N_v a = TDSL_AT(tdsl_pack_$N, from);\n"
    "    const tdsl_pack_$N_v b = TDSL_AT(tdsl_pack_$N, from + step);\n"
    "    TDSL_TO(tdsl_pack_$N, to) = TDSL_SHUFFLE(a, b, tdsl_pack_$N_mask, 0, 2);\n"
    "    TDSL_TO(tdsl_pack_$N, to + line) = TDSL_SHUFFLE(a, b, tdsl_pack_$N_mask, 1, 3);\n"
    "}\n#endif\n";

static const char pack_block1[] =
    "TDSL_HELPER void tdsl_turn_$N($T *to, int64_t line, const $T *from, int64_t step)\n"
    "{\n"
    "    TDSL_TO(tdsl_pack_$N, to) = TDSL_AT(tdsl_pack_$N, from);\n"
    "    (void)line;\n"
    "    (void)step;\n"
    "}\n#endif\n";

static const char pack_text[] =
    "\n/* Element (c, y, z) for c below nc, y below ny and z below nz goes to column first + c "
    "+ column * y, line\n"
    " * line * y + line_z * z: to[column / width * panel + line * width + column % width] =\n"
    " * from[c * step_c + y * step_y + z * step_z]. */\n"
    "TDSL_ALIGNED static void tdsl_pack_$N($T *TDSL_RESTRICT to, int64_t width, int64_t "
    "panel,\n"
    "                   int64_t first, int64_t nc, int64_t ny, int64_t nz, int64_t column,\n"
    "                   int64_t line, int64_t line_z, const $T *TDSL_RESTRICT from,\n"
    "                   int64_t step_c, int64_t step_y, int64_t step_z)\n"
    "{\n"
    "    line *= width;\n"
    "    line_z *= width;\n"
    "    if (step_y == 1 && column % width == 0 && step_c != 1) {\n"
    "        line += column / width * panel;\n"
    "        for (int64_t c = 0; c < nc;) {\n"
    "            const int64_t at = first + c, rest = width - at % width;\n"
    "            $T *const panel_at = to + at / width * panel + at % width;\n"
    "            const $T *const lines = from + c * step_c;\n"
    "            const int64_t n = rest < nc - c ? rest : nc - c;\n"
    "            c += n;\n"
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "            /* Whole lines of the panel at a time, from a line of each column. Those of "
    "the "
    "block after the\n"
    "             * next one are asked for, into a cache where columns that are pages apart do "
    "not "
    "meet. */\n"
    "            const int64_t parts = (ny + $V - 1) / $V;\n"
    "            const int64_t blocks = n >= $L && ny >= $L ? parts * nz : 0;\n"
    "            for (int64_t t = 0; t < blocks; ++t) {\n"
    "                const int64_t z = t / parts, y = t % parts * $V, t2 = t + 2;\n"
    "                const int64_t u = t2 < blocks ? t2 : (t2 - blocks) % blocks;\n"
    "                const $T *const next = lines + (t2 < blocks ? 0 : n * step_c) +\n"
    "                    u / parts * step_z + u % parts * $V;\n"
    "                for (int64_t i = 0; i < n; i += $L) {\n"
    "                    const int64_t k = i + $L <= n ? i : n - $L; /* the last: some once "
    "more */\n"
    "                    for (int64_t j = k; j < k + $L; ++j) {\n"
    "                        __builtin_prefetch(next + j * step_c, 0, 2);\n"
    "                    }\n"
    "                    for (int64_t x = y; x < y + $V && x < ny; x += $L) {\n"
    "                        const int64_t l = x + $L <= ny ? x : ny - $L;\n"
    "                        tdsl_turn_$N(panel_at + k + l * line + z * line_z, line,\n"
    "                                     lines + k * step_c + l + z * step_z, step_c);\n"
    "                    }\n"
    "                }\n"
    "            }\n"
    "            if (blocks > 0) {\n"
    "                continue;\n"
    "            }\n"
    "#endif\n"
    "            for (int64_t i = 0; i < n * nz; ++i) {\n"
    "                for (int64_t y = 0; y < ny; ++y) {\n"
    "                    panel_at[i / nz + y * line + i % nz * line_z] =\n"
    "                        lines[i / nz * step_c + y + i % nz * step_z];\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "        return;\n"
    "    }\n";

/* Rows may be of a few elements: nothing is divided for each. */
static const char pack_rows[] =
    "    const int64_t begin = first % width, over = column % width;\n"
    "    const int64_t skip = line + column / width * panel;\n"
    "    for (int64_t z = 0; z < nz; ++z) {\n"
    "        int64_t start = begin, row_at = first / width * panel + z * line_z;\n"
    "        for (int64_t y = 0; y < ny; ++y) {\n"
    "            const $T *const row = from + y * step_y + z * step_z;\n"
    "            int64_t at = start;\n"
    "            $T *panel_at = to + row_at;\n"
    "#if defined(__GNUC__)\n"
    "            for (int64_t c = 0; step_c == 1 && c < nc && nc * $S <= 2048 && y + 8 < ny;\n"
    "                 c += $V) {\n"
    "                __builtin_prefetch(row + c + 8 * step_y);\n"
    "            }\n"
    "#endif\n"
    "            for (int64_t c = 0; c < nc;) {\n"
    "                const $T *const element = row + c * step_c;\n"
    "                const int64_t n = width - at < nc - c ? width - at : nc - c;\n"
    "                int64_t j = 0;\n"
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "                for (; step_c == 1 && n >= $L && j < n; j += $L) {\n"
    "                    const int64_t k = j + $L <= n ? j : n - $L; /* the last: some once "
    "more */\n"
    "                    TDSL_TO(tdsl_pack_$N, panel_at + at + k) = TDSL_AT(tdsl_pack_$N, "
    "element + k);\n"
    "                }\n"
    "#endif\n"
    "                for (; j < n; ++j) {\n"
    "                    panel_at[at + j] = element[j * step_c];\n"
    "                }\n"
    "                c += n;\n"
    "                panel_at += panel;\n"
    "                at = 0;\n"
    "            }\n"
    "            start += over;\n"
    "            row_at += skip + (start < width ? 0 : panel);\n"
    "            start -= start < width ? 0 : width;\n"
    "        }\n"
    "    }\n"
    "}\n";

/* $F: the element type that is there in names; $G: in C; $C: what converts one, to $T but for a cast. */
static const char pack_converted[] =
    "\n/* The same of elements of another type. */\n"
    "TDSL_LANES static void tdsl_pack_$N_of_$F($T *TDSL_RESTRICT to, int64_t width,\n"
    "    int64_t panel, int64_t first, int64_t nc, int64_t ny, int64_t nz, int64_t column,\n"
    "    int64_t line, int64_t line_z, const $G *TDSL_RESTRICT from, int64_t step_c,\n"
    "    int64_t step_y, int64_t step_z)\n"
    "{\n"
    "    $T block[1024];\n"
    "    const int64_t most_c = step_c == 1 ? 128 : 16, most_y = 1024 / most_c;\n"
    "    const int64_t parts = (ny + most_y - 1) / most_y;\n"
    "    for (int64_t c = 0; c < nc; c += most_c) {\n"
    "        const int64_t n = c + most_c < nc ? most_c : nc - c;\n"
    "        for (int64_t part = 0; part < parts * nz; ++part) {\n"
    "            const int64_t y = part % parts * most_y, z = part / parts;\n"
    "            const int64_t m = y + most_y < ny ? most_y : ny - y;\n"
    "            const $G *const at = from + c * step_c + y * step_y + z * step_z;\n"
    "            for (int64_t i = 0; step_c == 1 && i < m; ++i) {\n"
    "                for (int64_t j = 0; j < n; ++j) {\n"
    "                    block[i * 128 + j] = ($T)$C(at[i * step_y + j]);\n"
    "                }\n"
    "            }\n"
    "            for (int64_t j = 0; step_c != 1 && step_y == 1 && j < n; ++j) {\n"
    "                for (int64_t i = 0; i < m; ++i) {\n"
    "                    block[j * 64 + i] = ($T)$C(at[j * step_c + i]);\n"
    "                }\n"
    "            }\n"
    "            for (int64_t j = 0; step_c != 1 && step_y != 1 && j < n; ++j) {\n"
    "                for (int64_t i = 0; i < m; ++i) {\n"
    "                    block[j * 64 + i] = ($T)$C(at[j * step_c + i * step_y]);\n"
    "                }\n"
    "            }\n"
    "            tdsl_pack_$N(to + (line * y + line_z * z) * width, width, panel,\n"
    "                         first + c + column * y, n, m, 1, column, line, 0, block,\n"
    "                         step_c == 1 ? 1 : 64, step_c == 1 ? 128 : 1, 0);\n"
    "        }\n"
    "    }\n"
    "}\n";

void template_put(Emitter *e, const char *text, DType t)
{
    converted_put(e, text, t, t);
}

void turn_put(Emitter *e, DType t)
{
    if (helper_new(e->w.help, str_format(e->w.arena, "tdsl_turn_%s", dtype_name(t)))) {
        if (dtype_bytes(t) < 16) {
            shuffle_put(e->w.help);
        }
        template_put(e, pack_types, t);
        int64_t size = dtype_bytes(t);
        template_put(e, size == 4 ? pack_block4 : size == 8 ? pack_block2 : pack_block1, t);
    }
}

static const char *pack_function(Emitter *e, DType t, DType from)
{
    const char *name = str_format(e->w.arena, "tdsl_pack_%s", dtype_name(t));
    if (helper_new(e->w.help, name)) {
        turn_put(e, t);
        template_put(e, pack_text, t);
        template_put(e, pack_rows, t);
    }
    if (from != t) {
        name = str_format(e->w.arena, "%s_of_%s", name, dtype_name(from));
        if (helper_new(e->w.help, name)) {
            converted_put(e, pack_converted, t, from);
        }
    }
    return name;
}

/* Which index is what to the function. */
typedef struct PackIndices {
    const TileIndex *column, *other, *line; /* line: null, or goes from line to line alone */
    int64_t columns, lines, lines_z;        /* of a step of `other`, of one of `line` */
} PackIndices;

static bool pack_indices(const Stmt *s, PackIndices *out)
{
    *out = (PackIndices){0};
    for (uint32_t i = s->n_index; i-- > 0;) {
        const TileIndex *x = &s->index[i];
        int64_t line = affine_coef(s->at[0], x->var), column = affine_coef(s->at[1], x->var);
        if (line < 0 || column < 0) {
            return false;
        }
        if (column == 1 && line == 0 && out->column == NULL) {
            out->column = x;
        } else if (out->other == NULL && (column != 0 || s->n_index == 2)) {
            out->other = x;
            out->lines = line;
            out->columns = column;
        } else if (out->line == NULL && column == 0) {
            out->line = x;
            out->lines_z = line;
        } else {
            return false;
        }
    }
    return out->column != NULL && out->other != NULL;
}

bool pack_emit(Emitter *e, const Stmt *s)
{
    const Kernel *k = e->w.k;
    const Buffer *to = &k->bufs.at[s->dst];
    const Expr *load = expr_uncast(s->value);
    PackIndices x;
    if (to->panels == 0 || s->n_index < 2 || s->n_index > 3 || s->fold != OP_COPY ||
        load->kind != EXPR_LOAD || !dtype_widens(load->dtype, to->dtype) ||
        load->dtype == DTYPE_BOOL || s->value->dtype != to->dtype ||
        (dtype_is_complex(to->dtype) && load->dtype != to->dtype) ||
        (to->group == 0 && !dtype_has_vectors(to->dtype)) || e->w.scalar[load->buf] ||
        k->bufs.at[load->buf].panels != 0 || !pack_indices(s, &x)) {
        return false;
    }
    bool words = to->group != 0;
    const char *function = words ? words_function(e, to->dtype, load->dtype)
                                 : pack_function(e, to->dtype, load->dtype);
    const Affine *at = access_first(e, s, s->dst, s->at);
    const Affine *from = access_first(e, s, load->buf, load->at);
    Affine line = affine_add(e->w.arena, affine_const(0), words ? 0 : to->panels, at[0]);
    bool begin = line.n == 0 && line.base == 0;
    line_printf(
        &e->w, "%s(%s%s%s, %lld, %lld%s%s, %s, %s, %s, %s, %lld, %lld, %lld, &%s, %s, %s, %s);",
        function, e->w.buf[s->dst], begin ? "" : " + ",
        begin ? "" : affine_text(&e->w, line, BIND_PRODUCT), (long long)to->panels,
        (long long)(to->panels * to->extent[0].n), words ? ", " : "",
        words ? affine_text(&e->w, at[0], BIND_SUM) : "", affine_text(&e->w, at[1], BIND_SUM),
        count_text(e, x.column->range), count_text(e, x.other->range),
        x.line == NULL ? "1" : count_text(e, x.line->range), (long long)x.columns,
        (long long)x.lines, (long long)x.lines_z, element_text(&e->w, load->buf, from),
        stride_text(&e->w, load->buf, load->at, x.column->var),
        stride_text(&e->w, load->buf, load->at, x.other->var),
        x.line == NULL ? "0" : stride_text(&e->w, load->buf, load->at, x.line->var));
    return true;
}
