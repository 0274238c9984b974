/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes. A copy that reads along one index and writes along another is the call of a function, one for each element
 * type of a file: blocks that stay in the first cache are turned in registers (emit_pack.c) and leave it line by line,
 * past the caches where the whole result would not stay in them anyway. */
#include "backend/c/c.h"
#include "backend/c/emit.h"
#include "backend/c/legalise.h"

/* Stores past the caches, 16 bytes at a time. */
static const char stream_text[] =
    "\n#if defined(__clang__)\n"
    "#define TDSL_STREAM(T, to, x) __builtin_nontemporal_store(x, (T *)(void *)(to))\n"
    "#elif defined(__SSE2__)\n"
    "typedef float tdsl_stream __attribute__((vector_size(16)));\n"
    "#define TDSL_STREAM(T, to, x) __builtin_ia32_movntps((float *)(void *)(to), "
    "(tdsl_stream)(x))\n"
    "#else\n"
    "#define TDSL_STREAM(T, to, x) (*(T *)(void *)(to) = (x))\n"
    "#endif\n";

/* $H: lines of a block of 64 columns; else as in emit_pack.c. */
static const char transpose_head[] =
    "\n/* to[x + y * line] = from[x * step + y] for x below nx and y below ny; past the caches "
    "if it `streams`. */\n"
    "static void tdsl_transpose_$N($T *TDSL_RESTRICT to, int64_t line,\n"
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
    "        for (; x + $L <= w; x += $L) {\n"
    "            int64_t y = 0;\n"
    "            for (; y + $L <= h; y += $L) {\n"
    "                for (int64_t j = 8; y * $S % 64 == 0 && x0 + x + 8 + $L <= nx && j < 8 + "
    "$L; ++j) {\n"
    "                    __builtin_prefetch(at + (x + j) * step + y);\n"
    "                }\n"
    "                tdsl_turn_$N(block + x + y * 64, 64, at + x * step + y, step);\n"
    "            }\n"
    "            for (; y < h; ++y) {\n"
    "                for (int64_t j = x; j < x + $L; ++j) {\n"
    "                    block[j + y * 64] = at[j * step + y];\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "#endif\n";

static const char transpose_middle[] = "        for (; x < w; ++x) {\n"
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
    "                    TDSL_STREAM(tdsl_pack_$N_v, into + k,\n"
    "                                *(const tdsl_pack_$N_at *)(const void *)(done + k));\n"
    "                }\n"
    "            }\n"
    "#endif\n";

static const char transpose_tail[] = "            for (; j < w; ++j) {\n"
                                     "                out[j + y * line] = block[j + y * 64];\n"
                                     "            }\n"
                                     "        }\n"
                                     "    }\n";

/* Others see what was stored past the caches only after a fence. */
static const char transpose_fence[] =
    "#if defined(__GNUC__) && !(TDSL_ROWS & TDSL_ISA_plain)\n"
    "    if (streams) {\n        __sync_synchronize();\n    }\n"
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
        if (helper_new(e->w.help, "TDSL_STREAM")) {
            helper_put(e->w.help, stream_text);
        }
    }
    Text out;
    text_init(&out, e->w.arena);
    text_put(&out, transpose_head);
    text_put(&out, vectors ? transpose_vectors : "");
    text_put(&out, transpose_middle);
    text_put(&out, vectors ? transpose_streams : "");
    text_put(&out, transpose_tail);
    text_put(&out, vectors ? transpose_fence : "    (void)streams;\n");
    text_put(&out, "}\n");
    template_put(e, out.at, t);
    return name;
}

/* Does another statement read what this one writes? */
static bool is_read(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    const Stmt *s = tile_first(&w, k->body, k->n_body);
    while (s != NULL && expr_load_of(s->value, buf) == NULL) {
        s = tile_next(&w);
    }
    return s != NULL;
}

/* Is the buffer larger than the last cache? As a condition, for open extents. */
static const char *streams_text(Emitter *e, BufRef buf)
{
    const Machine *m = target_c.machine;
    const Buffer *b = &e->w.k->bufs.at[buf];
    int64_t most = 0, size = dtype_bytes(b->dtype);
    for (uint32_t i = 0; i < m->n_levels && most == 0; i++) {
        most = m->level[i].capacity;
    }
    Text open;
    text_init(&open, e->w.arena);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym < 0) {
            size = sat_mul(size, b->extent[d].n);
        } else {
            text_printf(&open, " * %s", e->w.dim[b->extent[d].sym]);
        }
    }
    if (is_read(e->w.k, buf) || (open.n == 0 && size <= most)) {
        return "0";
    }
    return open.n == 0 ? "1"
                       : str_format(e->w.arena, "%lld%s > %lld", (long long)size, open.at,
                                    (long long)most);
}

bool transpose_emit(Emitter *e, const Stmt *s)
{
    if (!copy_is_transposed(e->w.k, s) || e->w.scalar[s->value->buf] || e->in_tile) {
        return false;
    }
    Stmt inner = *s;
    inner.index = &s->index[s->n_index - 2];
    inner.n_index = 2;
    const Expr *load = s->value;
    const char *function = transpose_function(e, load->dtype);
    for (uint32_t i = 0; i < s->n_index - 2; i++) {
        loop_begin(&e->w, s->index[i].var, s->index[i].range, 1, FOR_ALL);
    }
    const TileIndex *y = &inner.index[0], *x = &inner.index[1];
    const Affine *at = access_first(e, &inner, s->dst, s->at);
    const Affine *from = access_first(e, &inner, load->buf, load->at);
    line_printf(&e->w, "%s(&%s, %s, &%s, %s, %s, %s, %s);", function,
                element_text(&e->w, s->dst, at), stride_text(&e->w, s->dst, s->at, y->var),
                element_text(&e->w, load->buf, from),
                stride_text(&e->w, load->buf, load->at, x->var), count_text(e, x->range),
                count_text(e, y->range), streams_text(e, s->dst));
    for (uint32_t i = 0; i < s->n_index - 2; i++) {
        scope_end(&e->w);
    }
    return true;
}
