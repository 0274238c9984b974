/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes. A copy that reads along one index and writes along another is the call of a function, one for each element
 * type of a file: indices that follow each other in both arrays are one; blocks that stay in the first cache are turned in registers (emit_pack.c) and leave it line by line,
 * past the caches where the whole result would not stay in them anyway. */
#include "backend/c/emit.h"
#include "backend/c/legalise.h"
#include "op/affine.h"

/* $H: lines of a block of 64 columns; else as in emit_pack.c. */
static const char transpose_head[] =
    "\n/* to[x + y * line] = from[x * step + y] for x below nx and y below ny; past the caches "
    "if it `streams`. */\n"
    "TDSL_ALIGNED static void tdsl_transpose_$N($T *TDSL_RESTRICT to, int64_t line,\n"
    "                   const $T *TDSL_RESTRICT from, int64_t step, int64_t nx, int64_t ny, "
    "int streams)\n"
    "{\n"
    "    $T block[64 * $H];\n"
    "    for (int64_t i = 0; i < (nx + 63) / 64 * ((ny + $H - 1) / $H); ++i) {\n"
    "        const int64_t x0 = i % ((nx + 63) / 64) * 64, y0 = i / ((nx + 63) / 64) * $H;\n"
    "        const int64_t w = nx - x0 < 64 ? nx - x0 : 64, h = ny - y0 < $H ? ny - y0 : $H;\n"
    "        const $T *const at = from + x0 * step + y0;\n"
    "        $T *const out = to + x0 + y0 * line;\n"
    "        int64_t x = 0;\n";

static const char transpose_vectors[] =
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "        const int64_t low = h < $L ? h : 0;\n"
    "        for (; w >= $L && x < w; x += $L) {\n"
    "            const int64_t k = x + $L <= w ? x : w - $L; /* the last: some once more */\n"
    "            for (int64_t y = 0; h >= $L && y < h; y += $L) {\n"
    "                const int64_t l = y + $L <= h ? y : h - $L;\n"
    "                for (int64_t j = 8; y * $S % 64 == 0 && x0 + x + 8 + $L <= nx && j < 8 + "
    "$L; ++j) {\n"
    "                    __builtin_prefetch(at + (x + j) * step + y);\n"
    "                }\n"
    "                tdsl_turn_$N(block + k + l * 64, 64, at + k * step + l, step);\n"
    "            }\n"
    "            for (int64_t y = 0; y < low; ++y) {\n"
    "                for (int64_t j = k; j < k + $L; ++j) {\n"
    "                    block[j + y * 64] = at[j * step + y];\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "        const int64_t few = w < $L ? w : 0;\n"
    "#else\n        const int64_t few = w;\n#endif\n";

static const char transpose_middle[] = "        for (; x < few; ++x) {\n"
                                       "            for (int64_t y = 0; y < h; ++y) {\n"
                                       "                block[x + y * 64] = at[x * step + y];\n"
                                       "            }\n"
                                       "        }\n"
                                       "        for (int64_t y = 0; y < h; ++y) {\n"
                                       "            int64_t j = 0;\n";

static const char transpose_streams[] =
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "            const $T *const done = block + y * 64;\n"
    "            $T *const into = out + y * line;\n"
    "            for (; streams && j < w && (uintptr_t)(into + j) % 64 != 0; ++j) {\n"
    "                into[j] = done[j];\n"
    "            }\n"
    "            for (; streams && j + 64 / $S <= w; j += 64 / $S) {\n"
    "                for (int64_t k = j; k < j + 64 / $S; k += $L) {\n"
    "                    TDSL_STREAM_16(tdsl_pack_$N_v, into + k,\n"
    "                                TDSL_AT(tdsl_pack_$N, done + k));\n"
    "                }\n"
    "            }\n"
    "#endif\n";

static const char transpose_tail[] = "            for (; j < w; ++j) {\n"
                                     "                out[j + y * line] = block[j + y * 64];\n"
                                     "            }\n"
                                     "        }\n"
                                     "    }\n";

/* Others see what was stored past the caches only after a fence. */
static const char transpose_fence[] = "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
                                      "    if (streams) {\n        TDSL_STREAMED;\n    }\n"
                                      "#else\n"
                                      "    (void)streams;\n"
                                      "#endif\n";

static const char *transpose_function(Emitter *e, DType t)
{
    const char *name = str_format(e->w.arena, "tdsl_transpose_%s", dtype_name(t));
    bool vectors = dtype_has_vectors(t);
    if (!helper_new(e->w.help, name)) {
        return name;
    }
    if (vectors) {
        turn_put(e, t);
        e->tiles->turns = true;
        stream_put(e->w.help);
    }
    Text out;
    text_init(&out, e->w.arena);
    text_put(&out, transpose_head);
    text_put(&out, vectors ? transpose_vectors : "        const int64_t few = w;\n");
    text_put(&out, transpose_middle);
    text_put(&out, vectors ? transpose_streams : "");
    text_put(&out, transpose_tail);
    text_put(&out, vectors ? transpose_fence : "    (void)streams;\n");
    text_put(&out, "}\n");
    template_put(e, out.at, t);
    return name;
}

/* Does index i go on, in both buffers, where n positions of index j end? */
static bool goes_on(const Kernel *k, const Stmt *s, const TileIndex *i, const TileIndex *j,
                    int64_t n)
{
    const Expr *load = s->value;
    int64_t to[2], from[2];
    return range_is_exact(i->range) && range_is_exact(j->range) && n > 0 &&
           stride_known(k, s->dst, s->at, i->var, &to[0]) &&
           stride_known(k, s->dst, s->at, j->var, &to[1]) &&
           stride_known(k, load->buf, load->at, i->var, &from[0]) &&
           stride_known(k, load->buf, load->at, j->var, &from[1]) &&
           to[0] == sat_mul(n, to[1]) && from[0] == sat_mul(n, from[1]);
}

/* A copy as a transpose of two sides, y and x, of several indices each. */
typedef struct Turn {
    TileIndex *index; /* loops around it first, then the indices of the sides */
    uint32_t n_loops;
    const TileIndex *side[2];
    int64_t count[2]; /* positions; of more than one index they are known */
    bool several[2];
} Turn;

static Turn turn_of(Emitter *e, const Stmt *s)
{
    uint32_t n = s->n_index;
    Turn t = {.index = arena_copy(e->w.arena, s->index, n * sizeof *s->index),
              .n_loops = n - 2,
              .side = {&s->index[n - 2], &s->index[n - 1]}};
    for (uint32_t d = 0; d < 2; d++) {
        t.count[d] = range_most(t.side[d]->range);
    }
    for (uint32_t i = 0; i < t.n_loops;) {
        TileIndex x = t.index[i];
        uint32_t d = goes_on(e->w.k, s, &x, t.side[0], t.count[0]) ? 0 : 1;
        if (!goes_on(e->w.k, s, &x, t.side[d], t.count[d])) {
            i++;
            continue;
        }
        t.count[d] = sat_mul(t.count[d], range_most(x.range));
        t.several[d] = true;
        t.n_loops--;
        for (uint32_t j = i; j < t.n_loops; j++) {
            t.index[j] = t.index[j + 1];
        }
        t.index[t.n_loops] = x;
        i = 0; /* others may go on now */
    }
    return t;
}

static const char *side_text(Emitter *e, const Turn *t, uint32_t d)
{
    return t->several[d] ? str_format(e->w.arena, "%lld", (long long)t->count[d])
                         : count_text(e, t->side[d]->range);
}

bool transpose_emit(Emitter *e, const Stmt *s)
{
    if (!copy_is_transposed(e->w.k, s) || e->w.scalar[s->value->buf] || e->in_tile) {
        return false;
    }
    Turn t = turn_of(e, s);
    Stmt inner = *s;
    inner.index = &t.index[t.n_loops];
    inner.n_index = s->n_index - t.n_loops;
    const Expr *load = s->value;
    const char *function = transpose_function(e, load->dtype);
    loops_begin(&e->w, t.index, t.n_loops);
    const Affine *at = access_first(e, &inner, s->dst, s->at);
    const Affine *from = access_first(e, &inner, load->buf, load->at);
    const char *streams = nontemporal_text(e, s);
    line_printf(
        &e->w, "%s(&%s, %s, &%s, %s, %s, %s, %s);", function, element_text(&e->w, s->dst, at),
        stride_text(&e->w, s->dst, s->at, t.side[0]->var), element_text(&e->w, load->buf, from),
        stride_text(&e->w, load->buf, load->at, t.side[1]->var), side_text(e, &t, 1),
        side_text(e, &t, 0), streams == NULL ? "0" : streams);
    scopes_end(&e->w, t.n_loops);
    return true;
}
