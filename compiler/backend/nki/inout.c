/* SPDX-License-Identifier: Apache-2.0 */
/* Where a printed kernel finds an inout argument: what it has not stored yet where the argument
 * came in, else in the result. A kernel with a statement that reads of both, or that leaves an
 * element as it was, copies the argument to the result first and reads there. Found by walking
 * the instructions with a mark for each element. */
#include "backend/nki/nki.h"

#define MOST_MARKED (INT64_C(1) << 28) /* elements; beyond that, the copy is made */

typedef struct Marks {
    const Kernel *k;
    BufRef buf;
    uint64_t *stored; /* a bit for each element */
    int64_t count;    /* of bits that are set */
    uint8_t *where;   /* [instr_places]: not read yet, or what the statement has read */
} Marks;

typedef enum Where { WHERE_NONE, WHERE_CAME_IN, WHERE_RESULT } Where;

/* Marks a run of elements as stored (no `where`); or says whether they lie where the statement's
 * others do. */
static bool visit_run(Marks *m, int64_t at, int64_t count, uint8_t *where)
{
    for (int64_t end = at + count, n = 0; at < end; at += n) {
        n = 64 - (at & 63) < end - at ? 64 - (at & 63) : end - at;
        uint64_t bits = UINT64_MAX >> (64 - n) << (at & 63), *stored = &m->stored[at >> 6];
        uint64_t known = *stored & bits;
        if (where == NULL) {
            m->count += n;
            for (uint64_t again = known; again != 0; again &= again - 1) {
                m->count--;
            }
            *stored |= bits;
            continue;
        }
        Where here = known != 0 ? WHERE_RESULT : WHERE_CAME_IN;
        if ((known != 0 && known != bits) || (*where != WHERE_NONE && *where != here)) {
            return false;
        }
        *where = (uint8_t)here;
    }
    return true;
}

/* All elements of an operand; false at the first that lies elsewhere than others. */
static bool visit_operand(Marks *m, const Operand *o, uint8_t *where)
{
    const Buffer *b = &m->k->bufs.at[m->buf];
    int64_t at = o->pattern ? o->offset : 0, step[NKI_DIMS], count[NKI_DIMS];
    int64_t done[NKI_DIMS] = {0};
    for (uint32_t d = 0; d < o->n; d++) {
        int64_t unit = o->pattern ? 1 : buffer_elements(b, d + 1);
        at += o->pattern ? 0 : unit * o->start[d];
        step[d] = unit * o->stride[d];
        count[d] = o->count[d] == 0 ? 1 : o->count[d];
    }
    uint32_t n = o->n;
    int64_t run = n > 0 && step[n - 1] == 1 ? count[--n] : 1;
    for (uint32_t d = n;;) {
        if (!visit_run(m, at, run, where)) {
            return false;
        }
        for (d = n; d > 0; d--) { /* the next one, last dimension first */
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
    if (dma && !i->a.on_chip && i->a.buf == m->buf &&
        !visit_operand(m, &i->a, &m->where[i->place])) {
        return false;
    }
    return !dma || i->dst.on_chip || i->dst.buf != m->buf || visit_operand(m, &i->dst, NULL);
}

bool nki_copied(const Kernel *k, BufRef buf, bool *came_in)
{
    int32_t param = k->bufs.at[buf].param;
    if (param < 0 || k->args.at[param].role != ARG_INOUT) {
        return false;
    }
    int64_t size = buffer_elements(&k->bufs.at[buf], 0);
    if (size > MOST_MARKED) {
        return true;
    }
    Arena scratch;
    arena_init(&scratch, k->arena->budget);
    uint32_t places = instr_places(k);
    Marks m = {.k = k,
               .buf = buf,
               .stored = ARENA_ARRAY(&scratch, (size_t)(size / 64 + 1), uint64_t),
               .where = ARENA_ARRAY(&scratch, (size_t)places + 1, uint8_t)};
    const Stmt *bad = NULL;
    const char *why = NULL;
    bool all = instr_walk_all(k, visit_instr, &m, &bad, &why) && m.count == size;
    for (uint32_t i = 0; all && came_in != NULL && i < places; i++) {
        came_in[i] |= m.where[i] == WHERE_CAME_IN;
    }
    arena_release(&scratch);
    return !all;
}
