/* SPDX-License-Identifier: Apache-2.0 */
/* Non-temporal stores: their macros, and the condition of a statement that has them. */
#include "backend/c/emit.h"

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

const char *larger_text(Emitter *e, BufRef buf, int64_t bytes)
{
    const Buffer *b = &e->w.k->bufs.at[buf];
    int64_t size = dtype_bytes(b->dtype);
    Text open;
    text_init(&open, e->w.arena);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym < 0) {
            size = sat_mul(size, b->extent[d].n);
        } else {
            text_printf(&open, " * %s", e->w.dim[b->extent[d].sym]);
        }
    }
    return str_format(e->w.arena, "%lld%s > %lld", (long long)size, open.at, (long long)bytes);
}

const char *nontemporal_text(Emitter *e, const Stmt *s)
{
    return !s->nontemporal ? NULL : s->larger == 0 ? "1" : larger_text(e, s->dst, s->larger);
}
