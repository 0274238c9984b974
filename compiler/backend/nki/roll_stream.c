/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of a stream: each loaded whole from HBM, from places that grow by equal steps, such as
 * the slabs of an operand, or turned on the way. They become parts of one tile before loops are looked for: loads
 * that run ahead of their use would else hide that each iteration does the same. */
#include "backend/nki/roll.h"

#include <string.h>

/* The loads of one shape from one tensor, in order. */
typedef struct Stream {
    VEC(const RollNode *) load;
    VEC(uint32_t) cut; /* loads before which all tiles of the stream have been used up */
    uint32_t live;     /* tiles that are still used */
} Stream;

/* A load of a whole tile that nothing has touched. */
static bool is_load(const Roll *r, const RollNode *n, const bool *seen)
{
    if (n->kind != STMT_TILE || n->n_ref != 2 || n->stmt->fold != OP_COPY) {
        return false;
    }
    const Buffer *dst = &r->k->bufs.at[n->ref[0].buf], *src = &r->k->bufs.at[n->ref[1].buf];
    bool hbm = src->space == SPACE_ARGUMENT || src->space == SPACE_WORKSPACE;
    int64_t points = 1;
    for (uint32_t i = 0; i < n->stmt->n_index; i++) {
        points = sat_mul(points, n->stmt->index[i].range.limit.n);
    }
    return hbm && dst->space == SPACE_TILE && !seen[n->ref[0].buf] &&
           roll_is_here(r, n->ref[0].buf) && points == dst->extent[0].n * dst->extent[1].n;
}

/* A copy from PSUM into a tile that nothing has touched, and that does not leave: an operand that was turned. */
static bool is_operand(const Roll *r, const RollNode *n, const bool *seen)
{
    if (n->kind != STMT_TILE || n->n_ref != 2 || n->stmt->fold != OP_COPY) {
        return false;
    }
    BufRef to = n->ref[0].buf;
    const Buffer *dst = &r->k->bufs.at[to], *src = &r->k->bufs.at[n->ref[1].buf];
    bool stays =
        src->space == SPACE_ACC && dst->space == SPACE_TILE && !seen[to] && roll_is_here(r, to);
    for (uint32_t i = 0; stays && i < r->users[to].n; i++) {
        Space space = r->k->bufs.at[r->users[to].at[i]->ref[0].buf].space;
        stays = space == SPACE_TILE || space == SPACE_ACC;
    }
    return stays;
}

/* Is load `b` as far from `a` as `d` is from `c`? */
static bool same_step(const Stream *s, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const RollNode *const *n = s->load.at;
    for (uint32_t v = n[a]->ref[1].slot; v < n[a]->n_base; v++) {
        if (n[b]->base[v] - n[a]->base[v] != n[d]->base[v] - n[c]->base[v]) {
            return false;
        }
    }
    return true;
}

/* How many loads from `at` on lie in equal steps: `inner` of them, or several such groups that
 * lie in equal steps themselves. */
static uint32_t group_at(const Stream *s, uint32_t at, uint32_t most)
{
    uint32_t left = s->load.n - at, inner = left < 2 ? left : 2;
    while (inner >= 2 && inner < left && inner < most &&
           same_step(s, at, at + 1, at + inner - 1, at + inner)) {
        inner++;
    }
    uint32_t groups = 1;
    bool equal = inner > 0;
    while (equal && (groups + 1) * inner <= left && (groups + 1) * inner <= most) {
        uint32_t next = at + groups * inner;
        for (uint32_t j = 0; j < inner && equal; j++) {
            equal = same_step(s, at, at + j, next, next + j);
        }
        equal = equal && same_step(s, at, at + inner, next - inner, next);
        groups += equal;
    }
    return groups * inner;
}

/* The largest that is not above n. */
static uint32_t power_of_two(uint32_t n)
{
    uint32_t power = 1;
    while (power <= n / 2) {
        power *= 2;
    }
    return power;
}

static void join_loads(Roll *r, const Stream *s, uint32_t at, uint32_t n)
{
    BufRef *part = ARENA_ARRAY(r->arena, n, BufRef);
    for (uint32_t j = 0; j < n; j++) {
        part[j] = s->load.at[at + j]->ref[0].buf;
    }
    if (n > 1 && roll_may_join(r, part, n)) {
        (void)roll_join(r, part, n);
    }
}

/* The loads [from, to): those that lie in equal steps, or, of operands, as many as fit. */
static void join_stream(Roll *r, const Stream *all, uint32_t from, uint32_t to, int64_t most,
                        bool steps)
{
    Stream s = *all;
    s.load.n = to;
    const Buffer *b = &r->k->bufs.at[s.load.at[from]->ref[0].buf];
    int64_t fit = most / (b->extent[1].n * dtype_bytes(b->dtype));
    uint32_t n = 0, room = fit < UINT32_MAX ? (uint32_t)fit : UINT32_MAX;
    for (uint32_t at = from; at < to && fit >= 2; at += n) {
        n = to - at < room ? to - at : room;
        if (steps) {
            n = group_at(&s, at, room);
            n = n + 1 >= room && at + n < to ? power_of_two(n) : n;
        }
        join_loads(r, &s, at, n);
    }
}

/* Of statements that fill tiles of one shape in one way. */
static uint64_t tile_key(const Roll *r, const RollNode *n)
{
    const Buffer *b = &r->k->bufs.at[n->ref[0].buf];
    const char *hint = r->hint.at[n->ref[0].buf]; /* of turned ones, whose they are */
    uint64_t key = hash_bytes(hash_mix(n->key, (uint64_t)b->extent[0].n), hint, strlen(hint));
    return hash_mix(key, (uint64_t)b->extent[1].n);
}

void roll_streams(Roll *r, int64_t most, bool operands)
{
    VEC(Stream) streams = {0};
    bool *seen = ARENA_ARRAY(r->arena, (size_t)r->k->bufs.n + r->list.n + 1, bool);
    uint32_t *left = ARENA_ARRAY(r->arena, (size_t)r->k->bufs.n + 1, uint32_t); /* uses */
    for (uint32_t b = 0; b < r->k->bufs.n; b++) {
        left[b] = r->buf.at[b].uses;
    }
    uint32_t *stream = ARENA_ARRAY(r->arena, (size_t)r->k->bufs.n + 1, uint32_t); /* + 1 */
    Map by_key;
    map_init(&by_key, r->arena);
    for (uint32_t i = 0; i < r->list.n && most > 0; i++) {
        RollNode *n = r->list.at[i];
        if (is_load(r, n, seen) || (operands && is_operand(r, n, seen))) {
            uint32_t at = 0;
            uint64_t key = tile_key(r, n);
            if (!map_get(&by_key, key, &at)) {
                Stream made = {0};
                at = streams.n;
                vec_push(r->arena, &streams, made);
                map_put(&by_key, key, at);
            }
            Stream *s = &streams.at[at];
            if (s->live == 0) {
                vec_push(r->arena, &s->cut, s->load.n);
            }
            s->live++;
            stream[n->ref[0].buf] = at + 1;
            vec_push(r->arena, &s->load, n);
        }
        for (uint32_t x = 0; x < n->n_ref; x++) {
            BufRef b = n->ref[x].buf;
            seen[b] = true;
            if (--left[b] == 0 && stream[b] > 0) {
                streams.at[stream[b] - 1].live--;
            }
        }
    }
    for (uint32_t i = 0; i < streams.n; i++) {
        Stream *s = &streams.at[i];
        const RollNode *first = s->load.at[0];
        bool loads = r->k->bufs.at[first->ref[1].buf].space != SPACE_ACC;
        vec_push(r->arena, &s->cut, s->load.n);
        for (uint32_t c = 0; c + 1 < s->cut.n; c++) {
            join_stream(r, s, s->cut.at[c], s->cut.at[c + 1], most, loads);
        }
    }
}

/* ---- PSUM ---- */

static void join_banks(Roll *r, const BufRef *bank, uint32_t n)
{
    if (n > 1 && roll_may_join(r, bank, n)) {
        (void)roll_join(r, bank, n);
    }
}

static bool is_bank(const Roll *r, BufRef buf)
{
    const Buffer *b = &r->k->bufs.at[buf];
    const RollBuf *info = &r->buf.at[buf];
    return b->space == SPACE_ACC && info->sums && !info->partly && roll_is_here(r, buf) &&
           b->extent[1].n * dtype_bytes(b->dtype) == NKI_PSUM_BANK;
}

void roll_banks(Roll *r)
{
    BufRef bank[NKI_PSUM_BANKS];
    uint32_t n = 0;
    bool *seen = ARENA_ARRAY(r->arena, (size_t)r->k->bufs.n + 2 * r->list.n + 1, bool);
    for (uint32_t i = 0; i < r->list.n; i++) {
        const RollNode *node = r->list.at[i];
        BufRef dst = node->n_ref > 0 ? node->ref[0].buf : 0;
        bool dma = false;
        for (uint32_t x = 0; x < node->n_ref; x++) {
            Space space = r->k->bufs.at[node->ref[x].buf].space;
            dma |= space != SPACE_TILE && space != SPACE_ACC;
        }
        bool opens = node->n_ref > 0 && !seen[dst] && is_bank(r, dst);
        bool goes_on =
            opens && (n == 0 || (n < NKI_PSUM_BANKS && r->k->bufs.at[dst].extent[0].n ==
                                                           r->k->bufs.at[bank[0]].extent[0].n));
        for (uint32_t x = 0; x < node->n_ref; x++) {
            seen[node->ref[x].buf] = true;
        }
        if (!dma && !goes_on) {
            join_banks(r, bank, n);
            n = 0;
        }
        if (opens) {
            bank[n++] = dst;
        }
    }
    join_banks(r, bank, n);
}
