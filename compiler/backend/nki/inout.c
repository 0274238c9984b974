/* SPDX-License-Identifier: Apache-2.0 */
/* Which inout arguments a printed kernel copies to their results first: those of which it reads
 * what it has not written, or leaves something as it was. Found by walking the instructions
 * with a mark for each element; a kernel that reads first, as updates do, ends the walk at
 * once. */
#include "backend/nki/nki.h"

#define MOST_MARKED (INT64_C(1) << 28) /* elements; beyond that, the copy is made */

typedef struct Marks {
    const Kernel *k;
    BufRef buf;
    uint8_t *stored; /* a bit for each element */
    int64_t count;   /* of bits that are set */
} Marks;

static int64_t element_count(const Buffer *b, uint32_t from)
{
    int64_t n = 1;
    for (uint32_t d = from; d < b->rank; d++) {
        n = sat_mul(n, b->extent[d].n);
    }
    return n;
}

/* Marks one element as stored; or says whether it is. */
static bool visit_element(Marks *m, int64_t at, bool store)
{
    uint8_t bit = (uint8_t)(1u << (at & 7));
    bool known = (m->stored[at >> 3] & bit) != 0;
    if (store && !known) {
        m->stored[at >> 3] |= bit;
        m->count++;
    }
    return store || known;
}

/* All elements of an operand; false at the first that is read and not stored. */
static bool visit_operand(Marks *m, const Operand *o, bool store)
{
    const Buffer *b = &m->k->bufs.at[m->buf];
    int64_t at = o->pattern ? o->offset : 0, step[NKI_DIMS], count[NKI_DIMS];
    int64_t done[NKI_DIMS] = {0};
    for (uint32_t d = 0; d < o->n; d++) {
        int64_t unit = o->pattern ? 1 : element_count(b, d + 1);
        at += o->pattern ? 0 : unit * o->start[d];
        step[d] = unit * o->stride[d];
        count[d] = o->count[d] == 0 ? 1 : o->count[d];
    }
    for (uint32_t d = o->n;;) {
        if (!visit_element(m, at, store)) {
            return false;
        }
        for (d = o->n; d > 0; d--) { /* the next one, last dimension first */
            at += step[d - 1];
            if (++done[d - 1] < count[d - 1]) {
                break;
            }
            at -= step[d - 1] * count[d - 1];
            done[d - 1] = 0;
        }
        if (d == 0) {
            return true;
        }
    }
}

static bool visit_instr(void *user, const Instr *i)
{
    Marks *m = user;
    bool dma = i->kind == INSTR_DMA;
    if (dma && !i->a.on_chip && i->a.buf == m->buf && !visit_operand(m, &i->a, false)) {
        return false;
    }
    return !dma || i->dst.on_chip || i->dst.buf != m->buf || visit_operand(m, &i->dst, true);
}

bool nki_copied(const Kernel *k, BufRef buf)
{
    int32_t param = k->bufs.at[buf].param;
    if (param < 0 || k->args.at[param].role != ARG_INOUT) {
        return false;
    }
    int64_t size = element_count(&k->bufs.at[buf], 0);
    if (size > MOST_MARKED) {
        return true;
    }
    Arena scratch;
    arena_init(&scratch, k->arena->budget);
    Marks m = {
        .k = k, .buf = buf, .stored = ARENA_ARRAY(&scratch, (size_t)(size / 8 + 1), uint8_t)};
    const Stmt *bad = NULL;
    const char *why = NULL;
    bool all = instr_walk(k, visit_instr, &m, &bad, &why) && m.count == size;
    arena_release(&scratch);
    return !all;
}
