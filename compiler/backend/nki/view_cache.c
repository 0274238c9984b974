/* SPDX-License-Identifier: Apache-2.0 */
/* The views that are in SBUF, by what tells them apart, and which of them is forgotten first. */
#include "backend/nki/open_loops.h"

#include <string.h>

/* Was the entry kept for another pass of the operand (even tags: of one side, odd: the other)? */
static bool is_past(const CacheEntry *e, uint32_t tag)
{
    return e->tag != 0 && tag != 0 && e->tag != tag && e->tag % 2 == tag % 2;
}

bool cache_find(Lower *l, const int64_t *key, uint32_t n, TileView *out)
{
    for (uint32_t i = l->room.cache.n; i-- > 0;) {
        CacheEntry *e = &l->room.cache.at[i];
        if (e->n == n && !is_past(e, l->room.tag) &&
            memcmp(e->key, key, n * sizeof *key) == 0) {
            e->used = ++l->room.clock;
            e->tag = l->room.tag != 0 ? l->room.tag : e->tag;
            *out = e->view;
            return true;
        }
    }
    return false;
}

static void cache_remove(Lower *l, uint32_t at)
{
    l->room.cache_bytes -= l->room.cache.at[at].bytes;
    l->room.cache.at[at] = l->room.cache.at[--l->room.cache.n];
}

/* The entry to forget: one that has been transposed, or that passes by, else the oldest; none of those that are there for all
 * iterations of a loop that is open. Their number, if there is no other. */
static uint32_t cache_victim(const Lower *l)
{
    uint32_t oldest = l->room.cache.n;
    bool spent = false;
    for (uint32_t i = 0; i < l->room.cache.n; i++) {
        const CacheEntry *e = &l->room.cache.at[i];
        bool done = (e->raw && e->left <= 0) || e->passes;
        bool inside = e->depth < l->loops.depth && e->used >= l->loops.open[e->depth].clock;
        if (inside && !done) {
            continue;
        }
        bool older = oldest == l->room.cache.n || e->used < l->room.cache.at[oldest].used;
        if (spent ? done && older : done || older) {
            oldest = i;
            spent = done;
        }
    }
    return oldest;
}

void cache_put(Lower *l, const int64_t *key, uint32_t n, TileView v)
{
    int64_t bytes = l->to->bufs.at[v.buf].extent[1].n * dtype_bytes(view_dtype(l, v));
    uint32_t victim = 0;
    while (l->room.cache_bytes + bytes > l->room.cache_limit &&
           (victim = cache_victim(l)) < l->room.cache.n) {
        cache_remove(l, victim);
    }
    CacheEntry e = {n,
                    arena_copy(l->arena, key, n * sizeof *key),
                    v,
                    bytes,
                    ++l->room.clock,
                    l->room.tag,
                    l->room.passes,
                    l->loops.depth,
                    false,
                    v.nf};
    vec_push(l->arena, &l->room.cache, e);
    l->room.cache_bytes += bytes;
}

uint32_t cache_depth(const Lower *l, BufRef buf)
{
    uint32_t depth = l->loops.depth;
    for (uint32_t i = 0; i < l->room.cache.n; i++) {
        const CacheEntry *e = &l->room.cache.at[i];
        depth = e->view.buf == buf && e->depth < depth ? e->depth : depth;
    }
    return depth;
}

void cache_leave(Lower *l, uint64_t since)
{
    for (uint32_t i = l->room.cache.n; i-- > 0;) {
        const CacheEntry *e = &l->room.cache.at[i];
        if (e->depth > l->loops.depth && e->used > since) {
            cache_remove(l, i);
        }
    }
}

void cache_drop(Lower *l, BufRef buf, uint32_t tag)
{
    for (uint32_t i = l->room.cache.n; i-- > 0;) {
        const CacheEntry *e = &l->room.cache.at[i];
        if (e->key[0] == (int64_t)buf && is_past(e, tag)) {
            cache_remove(l, i);
        }
    }
}

void cache_mark_raw(Lower *l, TileView part)
{
    for (uint32_t i = l->room.cache.n; i-- > 0;) {
        if (l->room.cache.at[i].view.buf == part.buf) {
            l->room.cache.at[i].raw = true;
            l->room.cache.at[i].left -= part.nf;
        }
    }
}

/* What tells one view of a buffer from another: its version, and strides and counts in the flat tensor. */
uint32_t view_key(Lower *l, const Place *x, Labels p, Labels f, const Box *box, int64_t *key)
{
    const Buffer *b = &l->from->bufs.at[x->buf];
    int64_t stride[NKI_DIMS], offset = 0, flat = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        stride[d] = flat;
        flat *= b->extent[d].n;
        offset += stride[d] * place_start(x, d, box);
    }
    uint32_t n = 0;
    key[n++] = (int64_t)x->buf;
    key[n++] = (int64_t)l->home[x->buf].version;
    key[n++] = offset;
    for (uint32_t i = 0; x->moves != NULL && i < l->loops.depth; i++) {
        int64_t by = 0;
        for (uint32_t d = 0; d < x->rank; d++) {
            by += stride[d] * affine_coef(x->moves[d], l->loops.open[i].var);
        }
        if (by != 0) {
            key[n++] = -2 - (int64_t)i;
            key[n++] = by;
        }
    }
    for (uint32_t side = 0; side < 2; side++) {
        Labels list = side == 0 ? p : f;
        key[n++] = -1;
        for (uint32_t i = 0; i < list.n; i++) {
            uint32_t label = list.at[i];
            if (box->n[label] == 1) {
                continue;
            }
            int64_t s = 0;
            for (uint32_t d = 0; d < x->rank; d++) {
                s += place_coef(x, d, label) * stride[d];
            }
            key[n++] = s;
            key[n++] = box->n[label];
        }
    }
    return n;
}
