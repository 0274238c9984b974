/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that stay in PSUM. A product's tiles are copied to SBUF where a matmul reads them, or where they are many; what only the
 * Vector and Scalar engines read, a block of a few banks, they can read from the banks themselves, which saves the copy. Each
 * instruction then reads one bank. */
#include "backend/nki/home.h"

#include "loop/term.h"

#define BLOCK_BANKS 4 /* the others are for what is transposed and added up meanwhile */

static int64_t bank_elements(void)
{
    return NKI_PSUM_BANK / dtype_bytes(DTYPE_F32);
}

/* Does the statement make all that it sets by matmuls? */
static bool is_product(const Stmt *s)
{
    return s->fold == OP_SUM && s->begins && s->n_first == 0 && tile_kind(s) == TILE_MATMUL &&
           s->schedule != NULL && s->schedule->n_levels > 0;
}

/* Is the buffer made by one product, and read by what is none? */
static bool is_read_by_rows(const Lower *l, BufRef buf)
{
    StmtWalk w;
    uint32_t writers = 0, readers = 0;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        bool reads = expr_load_of(s->value, buf) != NULL;
        if ((s->dst == buf && (reads || !is_product(s))) ||
            (reads && (s->scan > 0 || (s->fold != OP_COPY && tile_kind(s) == TILE_MATMUL)))) {
            return false;
        }
        writers += s->dst == buf;
        readers += reads;
    }
    return writers == 1 && readers > 0;
}

bool psum_keeps(const Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    const Home *h = &l->home[buf];
    int64_t bank = bank_elements(), n = h->chunk_stride, all = sat_mul(n, h->chunks);
    bool size = all <= bank || (n % bank == 0 && all <= BLOCK_BANKS * bank);
    size = size && (h->chunks == 1 || b->extent[h->pdim].n % NKI_PARTITIONS == 0);
    return !l->tried.copied[buf] && h->on_chip && b->rank > 1 && size &&
           b->space == SPACE_TILE && b->dtype == DTYPE_F32 && !l->pair[buf] &&
           !l->turn[buf].is && is_read_by_rows(l, buf);
}

bool psum_has(const Lower *l, BufRef buf)
{
    const Home *h = &l->home[buf];
    return h->made && h->on_chip && l->to->bufs.at[h->buf].space == SPACE_ACC;
}

bool psum_takes(const Lower *l, TileView v)
{
    const Dim *extent = l->to->bufs.at[v.buf].extent;
    int64_t bank = nki_bank(l->to, v.buf);
    bool whole = v.p0 == 0 && v.np == extent[0].n && v.step == 1 && v.moves == NULL;
    return bank == 0 || (whole && v.f0 % bank == 0 && v.nf == bank);
}

int64_t psum_row(const Lower *l, const Expr *value)
{
    ExprWalk w;
    int64_t most = l->room.tile_elements, bank = bank_elements();
    for (const Expr *e = load_first(&w, value); e != NULL; e = load_next(&w)) {
        most = psum_has(l, e->buf) && most > bank ? bank : most;
    }
    return most;
}
