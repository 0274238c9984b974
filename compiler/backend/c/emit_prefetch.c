/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches of products: a walk over the lines of the block that fills their panels next, begun where the panels are declared. */
#include "backend/c/emit.h"

static const char ahead_type[] =
    "/* A walk over the lines of a block: groups of them by label, in bytes. */\n"
    "typedef struct tdsl_ahead {\n"
    "    uintptr_t at;\n"
    "    int64_t step[3], count[3], index[3];\n"
    "} tdsl_ahead;\n";

static const char ahead_text[] = "TDSL_HELPER uintptr_t tdsl_ahead_next(tdsl_ahead *x)\n"
                                 "{\n"
                                 "    const uintptr_t at = x->at;\n"
                                 "    for (int32_t i = 0; i < 3; ++i) {\n"
                                 "        x->at += (uintptr_t)x->step[i];\n"
                                 "        if (++x->index[i] < x->count[i]) {\n"
                                 "            break;\n"
                                 "        }\n"
                                 "        x->at -= (uintptr_t)(x->step[i] * x->count[i]);\n"
                                 "        x->index[i] = 0;\n"
                                 "    }\n"
                                 "    return at;\n"
                                 "}\n";

static const char *address_text(Emitter *e, const Prefetch *p, const Affine *at)
{
    int64_t size = dtype_bytes(e->w.k->bufs.at[p->buf].dtype);
    return str_format(e->w.arena, "(uintptr_t)%s + (uintptr_t)(%lld * (%s) + %lld)",
                      e->w.buf[p->buf], (long long)size, offset_text(&e->w, p->buf, at),
                      (long long)(size * p->reach));
}

/* Behind the last iteration of a loop the next block is elsewhere. */
static const char *next_text(Emitter *e, const Prefetch *p)
{
    const char *next = address_text(e, p, p->at);
    if (p->past == NULL) {
        return next;
    }
    uint32_t i = e->w.loops.n;
    while (e->w.loops.at[--i]->var != p->var) {
    }
    const Stmt *loop = e->w.loops.at[i];
    int64_t reach = loop->part == FOR_FULL ? 2 * loop->step - 1 : loop->step;
    return str_format(e->w.arena, "%s + %lld < %s ? %s : %s", e->w.var[p->var],
                      (long long)reach, range_hi(&e->w, loop->range), next,
                      address_text(e, p, p->past));
}

void prefetch_begin(Emitter *e, const Stmt *alloc)
{
    const Prefetch *p = alloc->prefetch;
    int64_t size = dtype_bytes(e->w.k->bufs.at[p->buf].dtype);
    Ahead x = {.panels = alloc->buf, .each = size * p->each, .turn = size * p->turn};
    const char *next = next_text(e, p);
    if (helper_new(e->w.help, "tdsl_ahead")) {
        helper_type_put(e->w.help, ahead_type);
        helper_put(e->w.help, ahead_text);
    }
    x.name = names_take(&e->w.names, "ahead");
    line_printf(
        &e->w,
        "tdsl_ahead %s = {.at = %s, .step = {%lld, %lld, %lld}, .count = {%lld, %lld, %lld}};",
        x.name, next, (long long)(size * p->step[0]), (long long)(size * p->step[1]),
        (long long)(size * p->step[2]), (long long)p->count[0], (long long)p->count[1],
        (long long)p->count[2]);
    vec_push(e->w.arena, &e->aheads, x);
}

const Ahead *prefetch_of(const Emitter *e, const Stmt *s)
{
    uint32_t i = e->aheads.n;
    while (i-- > 0 && e->aheads.at[i].panels + 1 != s->prefetches) {
    }
    return s->prefetches == 0 ? NULL : &e->aheads.at[i];
}
