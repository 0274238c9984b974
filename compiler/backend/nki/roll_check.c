/* SPDX-License-Identifier: Apache-2.0 */
/* Does a rolled kernel run the instructions of the flat one? Both are walked; what is not
 * memory must be equal, and each tile of the flat one must lie in one tile of the rolled one,
 * always at the same place. */
#include "backend/nki/roll.h"

#include <string.h>

#define OPERANDS 6

typedef struct Step {
    uint64_t shape;
    uint32_t n;
    struct {
        uint32_t tile; /* number of an allocation on chip, in the order of the walk */
        int64_t f;
    } at[OPERANDS];
} Step;

typedef struct Trace {
    const Kernel *k;
    Arena *arena;
    uint32_t *tile; /* [bufs] its allocation */
    uint32_t tiles;
    VEC(Step) steps;
} Trace;

static void put_operand(Trace *t, Step *s, const Operand *o)
{
    const Buffer *b = &t->k->bufs.at[o->buf];
    uint64_t h = hash_mix(s->shape, (uint64_t)b->dtype * 8 + (uint64_t)b->space);
    if (o->on_chip) {
        CHECK(s->n < OPERANDS);
        s->at[s->n].tile = t->tile[o->buf];
        s->at[s->n++].f = o->f;
        const int64_t numbers[3] = {o->p, o->np, o->nf};
        h = hash_bytes(h, numbers, sizeof numbers);
        s->shape = hash_bytes(h, o->free, o->n_free * sizeof o->free[0]);
        return;
    }
    h = hash_bytes(h, b->name->text, b->param >= 0 ? strlen(b->name->text) : 0);
    h = hash_mix(hash_mix(h, (uint64_t)o->offset), o->n * 2 + (uint32_t)o->pattern);
    h = hash_bytes(h, o->start, o->n * sizeof o->start[0]);
    h = hash_bytes(h, o->count, o->n * sizeof o->count[0]);
    s->shape = hash_bytes(h, o->stride, o->n * sizeof o->stride[0]);
}

static void put_scalar(Trace *t, Step *s, const ScalarOperand *o)
{
    s->shape = hash_mix(s->shape, (uint64_t)o->given + 2 * (uint64_t)o->is_tile +
                                      4 * (uint64_t)o->reverse + 8 * (uint64_t)o->op);
    if (o->given && o->is_tile) {
        put_operand(t, s, &o->tile);
    } else if (o->given) {
        s->shape = hash_bytes(s->shape, &o->number, sizeof o->number);
    }
}

static bool put_instr(void *user, const Instr *i)
{
    Trace *t = user;
    if (i->kind == INSTR_ALLOC) {
        t->tile[i->dst.buf] = t->tiles++;
        return true;
    }
    Step s = {
        .shape = hash_mix((uint64_t)i->kind + 64 * (uint64_t)i->sums + 128 * (uint64_t)i->adds +
                              256 * (uint64_t)i->begins,
                          (uint64_t)i->op * 4 + 2 * (uint64_t)i->reverse + (uint64_t)i->recip)};
    s.shape = hash_bytes(s.shape, &i->value, sizeof i->value);
    s.shape = hash_bytes(s.shape, &i->scale, sizeof i->scale);
    int64_t position[2] = {i->base, i->down};
    s.shape = hash_bytes(s.shape, position, sizeof position);
    s.shape = hash_bytes(s.shape, i->along, i->n_along * sizeof i->along[0]);
    put_operand(t, &s, &i->dst);
    if (instr_reads(i)) {
        put_operand(t, &s, &i->a);
    }
    if (instr_reads_two(i)) {
        put_operand(t, &s, &i->b);
    }
    if (i->sums) {
        put_operand(t, &s, &i->sum);
    }
    put_scalar(t, &s, &i->s0);
    put_scalar(t, &s, &i->s1);
    vec_push(t->arena, &t->steps, s);
    return true;
}

static bool trace(Trace *t)
{
    const Stmt *bad = NULL;
    const char *why = NULL;
    t->tile = ARENA_ARRAY(t->arena, t->k->bufs.n + 1, uint32_t);
    return instr_walk(t->k, put_instr, t, &bad, &why);
}

typedef struct Match {
    bool known;
    uint32_t tile;
    int64_t offset;
} Match;

bool roll_same(Arena *arena, const Kernel *unrolled, const Kernel *rolled)
{
    Trace a = {.k = unrolled, .arena = arena}, b = {.k = rolled, .arena = arena};
    if (!trace(&a) || !trace(&b) || a.steps.n != b.steps.n) {
        return false;
    }
    Match *match = ARENA_ARRAY(arena, a.tiles + 1, Match);
    Map taken;
    map_init(&taken, arena);
    for (uint32_t i = 0; i < a.steps.n; i++) {
        const Step *x = &a.steps.at[i], *y = &b.steps.at[i];
        if (x->shape != y->shape || x->n != y->n) {
            return false;
        }
        for (uint32_t o = 0; o < x->n; o++) {
            Match *m = &match[x->at[o].tile];
            int64_t offset = y->at[o].f - x->at[o].f;
            if (!m->known) {
                *m = (Match){true, y->at[o].tile, offset};
                uint64_t place = hash_mix(m->tile, (uint64_t)offset);
                uint32_t other = 0;
                if (map_get(&taken, place, &other)) {
                    return false; /* two tiles have become one */
                }
                map_put(&taken, place, 1);
            }
            if (m->tile != y->at[o].tile || m->offset != offset) {
                return false;
            }
        }
    }
    return true;
}
