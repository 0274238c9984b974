/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored past the caches: results that nothing in the kernel reads again and that would not stay in the last cache.
 * Else each line of them is read from memory before it is written, and takes the place of operands. */
#include "backend/c/c.h"
#include "backend/c/emit.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"

/* Of vectors of 16, 32 and 64 bytes, to multiples of these. */
static const char stream_text[] =
    "\n/* Stores past the caches; they are in order with others behind TDSL_STREAMED only. */\n"
    "#if defined(__clang__)\n"
    "#define TDSL_STREAM_16(T, to, x) __builtin_nontemporal_store(x, (T *)(void *)(to))\n"
    "#define TDSL_STREAM_32 TDSL_STREAM_16\n"
    "#define TDSL_STREAM_64 TDSL_STREAM_16\n"
    "#elif defined(__SSE2__)\n"
    "typedef float tdsl_stream_16 __attribute__((vector_size(16)));\n"
    "typedef float tdsl_stream_32 __attribute__((vector_size(32)));\n"
    "typedef float tdsl_stream_64 __attribute__((vector_size(64)));\n"
    "#define TDSL_STREAM_AT(to) ((float *)(void *)(to))\n"
    "#define TDSL_STREAM_16(T, to, x) \\\n"
    "    __builtin_ia32_movntps(TDSL_STREAM_AT(to), (tdsl_stream_16)(x))\n"
    "#define TDSL_STREAM_32(T, to, x) \\\n"
    "    __builtin_ia32_movntps256(TDSL_STREAM_AT(to), (tdsl_stream_32)(x))\n"
    "#define TDSL_STREAM_64(T, to, x) \\\n"
    "    __builtin_ia32_movntps512(TDSL_STREAM_AT(to), (tdsl_stream_64)(x))\n"
    "#else\n"
    "#define TDSL_STREAM_16(T, to, x) (*(T *)(void *)(to) = (x))\n"
    "#define TDSL_STREAM_32 TDSL_STREAM_16\n"
    "#define TDSL_STREAM_64 TDSL_STREAM_16\n"
    "#endif\n";

static const char streamed_text[] =
    "/* Puts stores past the caches in order with others. */\n"
    "#if defined(__GNUC__)\n#define TDSL_STREAMED __sync_synchronize()\n"
    "#else\n#define TDSL_STREAMED (void)0\n#endif\n";

void stream_put(Helpers *h)
{
    if (helper_new(h, "TDSL_STREAM")) {
        helper_type_put(h, streamed_text);
        helper_put(h, stream_text);
    }
}

/* Of each buffer: is it loaded, or written by what is neither a copy nor a product that stores? Once per kernel. */
static void find_joined(Emitter *e, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (stmt_has_body(s)) {
            find_joined(e, s->body, s->n_body);
        } else if (s->kind == STMT_TILE) {
            bool stores =
                stmt_is_product(s) ? s->begins && s->n_first == 0 : s->fold == OP_COPY;
            expr_mark_loads(s->value, e->joined);
            e->joined[s->dst] |= !stores;
        }
    }
}

const char *streams_text(Emitter *e, BufRef buf)
{
    const Machine *m = target_c.machine;
    const Kernel *k = e->w.k;
    const Buffer *b = &k->bufs.at[buf];
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
    if (open.n == 0 && size <= most) {
        return NULL;
    }
    if (e->joined == NULL) {
        e->joined = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
        find_joined(e, k->body, k->n_body);
    }
    return e->joined[buf] ? NULL
           : open.n == 0  ? "1"
                          : str_format(e->w.arena, "%lld%s > %lld", (long long)size, open.at,
                                       (long long)most);
}

const char *product_streams(Emitter *e, const Product *p)
{
    const Buffer *b = &e->w.k->bufs.at[p->s->dst];
    bool lines = p->column->range.span * dtype_bytes(p->t) % LINE_BYTES == 0;
    return lines && b->space == SPACE_ARGUMENT && b->dtype == p->t &&
                   access_is_unit(e->w.k, p->s->dst, p->s->at, p->column->var)
               ? streams_text(e, p->s->dst)
               : NULL;
}
