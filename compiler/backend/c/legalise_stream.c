/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `stream`: what is stored past the caches. Results that nothing in the kernel reads again and that would not stay in the last
 * cache: else each line of them is read from memory before it is written, and takes the place of operands. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"

bool stmt_may_stream(const Kernel *k, const Stmt *s)
{
    Product p;
    if (!stmt_is_product(s)) {
        return copy_is_transposed(k, s);
    }
    return product_of(k, s, &p) == NULL && s->begins && s->n_first == 0 &&
           p.column->range.span * dtype_bytes(p.t) % LINE_BYTES == 0 &&
           access_is_unit(k, s->dst, s->at, p.column->var);
}

/* Of each buffer: is it read, or written by what is neither a copy nor a product that stores? */
static void find_joined(const Kernel *k, bool *joined)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        bool stores = stmt_is_product(s) ? s->begins && s->n_first == 0 : s->fold == OP_COPY;
        expr_mark_loads(s->value, joined);
        joined[s->dst] |= !stores;
    }
}

typedef struct Stream {
    const Kernel *k;
    int64_t most; /* bytes that the last cache holds */
    bool *joined; /* [bufs] */
    bool any;
} Stream;

/* Would the destination not stay in the cache? `*larger`: where it has more bytes than this, 0: always. */
static bool is_large(const Stream *x, BufRef buf, int64_t *larger)
{
    const Buffer *b = &x->k->bufs.at[buf];
    int64_t size = dtype_bytes(b->dtype);
    bool open = false;
    for (uint32_t d = 0; d < b->rank; d++) {
        open |= b->extent[d].sym >= 0;
        size = b->extent[d].sym < 0 ? sat_mul(size, b->extent[d].n) : size;
    }
    *larger = open ? x->most : 0;
    return open || size > x->most;
}

/* Register tiles are stored as they are. */
static void stream_block(Stream *x, Stmt **body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        int64_t larger = 0;
        if (s->kind == STMT_ALLOC && is_register_alloc(x->k, s)) {
            return;
        }
        if (stmt_has_body(s)) {
            stream_block(x, s->body, s->n_body);
        } else if (s->kind == STMT_TILE && !s->nontemporal && !x->joined[s->dst] &&
                   stmt_may_stream(x->k, s) &&
                   (!stmt_is_product(s) || x->k->bufs.at[s->dst].space == SPACE_ARGUMENT) &&
                   is_large(x, s->dst, &larger)) {
            s->nontemporal = x->any = true;
            s->larger = larger;
        }
    }
}

Kernel *c_stream(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)ctx;
    Kernel *out = kernel_changeable(arena, k);
    Stream x = {.k = out, .joined = ARENA_ARRAY(arena, (size_t)k->bufs.n + 1, bool)};
    for (uint32_t i = 0; i < target->machine->n_levels && x.most == 0; i++) {
        x.most = target->machine->level[i].capacity;
    }
    find_joined(out, x.joined);
    stream_block(&x, out->body, out->n_body);
    return x.any ? out : (Kernel *)(uintptr_t)k;
}
