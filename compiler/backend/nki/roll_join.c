/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that become parts of one larger tile, side by side (see roll.h). */
#include "backend/nki/roll.h"

#include <string.h>

/* Accesses to a tile that has become a part of another are to that one. */
void roll_refresh(Roll *r, RollNode *n)
{
    for (uint32_t x = 0; x < n->n_ref; x++) {
        RollRef *ref = &n->ref[x];
        while (r->buf.at[ref->buf].to != ref->buf) {
            const RollBuf *b = &r->buf.at[ref->buf];
            n->base[ref->slot + 1] += b->offset;
            ref->buf = b->to;
        }
    }
}

/* Does a statement of the node write one of the marked tiles and read another? The reader of a
 * kernel takes that for one that reads what it writes. */
static bool node_clashes(Roll *r, const RollNode *n, const RollRef *ref)
{
    r->work--;
    if (n->kind == STMT_FOR) {
        for (uint32_t j = 0; j < n->n_body; j++) {
            if (node_clashes(r, n->body[j], ref)) {
                return true;
            }
            ref += n->body[j]->n_ref;
        }
        return false;
    }
    if (n->kind != STMT_TILE) {
        return false;
    }
    bool dst = r->buf.at[ref[0].buf].joins == r->mark, sums = n->stmt->sums > 0;
    uint32_t end = n->n_ref - (sums ? 1 : 0);
    sums = sums && r->buf.at[ref[end].buf].joins == r->mark;
    bool clashes = dst && sums;
    for (uint32_t x = 1; x < end; x++) {
        clashes |= (dst || sums) && r->buf.at[ref[x].buf].joins == r->mark;
    }
    return clashes;
}

static bool list_clashes(Roll *r, const RollNodes *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        RollNode *node = list->at[i];
        if (node != NULL) {
            roll_refresh(r, node);
            if (node_clashes(r, node, node->ref)) {
                return true;
            }
        }
    }
    return false;
}

bool roll_may_join(Roll *r, const BufRef *part, uint32_t n)
{
    r->mark++;
    for (uint32_t i = 0; i < n; i++) {
        r->buf.at[part[i]].joins = r->mark;
    }
    if (r->users == NULL) {
        return !list_clashes(r, &r->list);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (list_clashes(r, &r->users[part[i]])) {
            return false;
        }
    }
    return true;
}

/* Joins tiles of one shape, the i-th at i times their length. */
BufRef roll_join(Roll *r, const BufRef *part, uint32_t n)
{
    Buffer big = r->k->bufs.at[part[0]];
    Dim extent[2] = {big.extent[0], dim_fixed(big.extent[1].n * n)};
    int64_t length = big.extent[1].n;
    big.extent = arena_copy(r->arena, extent, sizeof extent);
    BufRef to = r->k->bufs.n;
    vec_push(r->arena, &r->k->bufs, big);
    const char *hint = r->hint.at[part[0]];
    size_t n_hint = strlen(hint);
    if (n_hint > 5 && strcmp(hint + n_hint - 5, "_tile") == 0) {
        hint = str_format(r->arena, "%ss", hint);
    }
    vec_push(r->arena, &r->hint, hint);
    RollBuf info = {.to = to, .family = UINT32_MAX};
    info.alloc = r->buf.at[part[0]].alloc;
    info.sums = r->buf.at[part[0]].sums;
    info.depth = r->buf.at[part[0]].depth;
    for (uint32_t i = 0; i < n; i++) {
        RollBuf *b = &r->buf.at[part[i]];
        info.uses += b->uses;
        b->to = to;
        b->offset = i * length;
    }
    vec_push(r->arena, &r->buf, info);
    return to;
}
