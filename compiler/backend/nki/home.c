/* SPDX-License-Identifier: Apache-2.0 */
/* Where each buffer lives, and how it lies there: on chip while there is room, with one dimension
 * on partitions; else in HBM, as a tensor does. */
#include "backend/nki/blocks.h"
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "loop/term.h"

/* The dimension that goes on partitions is the one that fills most of them, each weighed by how
 * the engines use it. The weights are chosen by hand, from what an operand costs that lies the
 * other way (a transpose for each tile), and not measured:
 *   a matmul contracts over partitions: an operand that has the dimension elsewhere is turned;
 *   other folds run along the free axis;
 *   batches are taken one by one, as what loops set one position after the other: any other dimension of 4 or more is better.
 * What a contraction with levels makes has the first of its rows there. */
#define WEIGHT_CONTRACTED 3.0
#define WEIGHT_SECOND     2.9 /* where levels name another label of the sum first */
#define WEIGHT_FOLDED     0.7
#define WEIGHT_BATCH      0.02
#define WEIGHT_ALONG      0.3   /* what is stored of it would be turned */
#define WEIGHT_SUM        0.001 /* positions that are sums or multiples: never on partitions */

static bool has_levels(const Lower *l, const Stmt *s)
{
    return s->schedule != NULL && s->schedule->n_levels > 0 && !batch_is_tiny(l, s);
}

/* The first index of a role in a statement with levels. */
static VarRef role_var(const Stmt *s, ScheduleRole role)
{
    return s->index[s->schedule->label[role][0]].var;
}

/* Indices of the statement in a position, and whether one has a factor. */
static bool is_sum(const Stmt *s, Affine at)
{
    uint32_t own = 0;
    bool factor = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        own += affine_uses(at, s->index[i].var);
        factor |= affine_uses(at, s->index[i].var) && affine_coef(at, s->index[i].var) != 1;
    }
    return own > 1 || factor;
}

/* Does an elementwise statement that reads the value there store rows in memory that lie along this position? */
static bool lies_along(const Lower *l, const Stmt *s, Affine at)
{
    const Buffer *b = &l->from->bufs.at[s->dst];
    bool memory = b->space == SPACE_ARGUMENT || b->space == SPACE_WORKSPACE, along = false;
    for (uint32_t t = 0; t < at.n && memory && b->rank > 1 && s->fold == OP_COPY; t++) {
        along |= affine_uses(s->at[b->rank - 1], at.term[t].var);
    }
    return along;
}

/* Does a loop set one position after the other, and the statement none but that? */
static bool is_one(const Stmt *s, Affine at)
{
    bool one = at.n > 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        one &= !affine_uses(at, s->index[i].var);
    }
    return one;
}

static void score_store(const Lower *l, const Stmt *s, double *score)
{
    for (uint32_t d = 0; d < l->from->bufs.at[s->dst].rank; d++) {
        score[d] *= is_sum(s, s->at[d]) ? WEIGHT_SUM : is_one(s, s->at[d]) ? WEIGHT_BATCH : 1.0;
    }
}

/* `load` is of the block of so many dimensions, or of the operand that is made of it (Turn). */
static void score_load(const Lower *l, const Stmt *s, const Expr *load, uint32_t rank,
                       double *score)
{
    for (uint32_t d = 0; d < rank; d++) {
        score[d] *= is_sum(s, load->at[d])   ? WEIGHT_SUM
                    : is_one(s, load->at[d]) ? WEIGHT_BATCH
                                             : 1.0;
        score[d] *= lies_along(l, s, load->at[d]) ? WEIGHT_ALONG : 1.0;
        bool kept = false;
        for (uint32_t t = 0; t < load->at[d].n; t++) {
            kept |= access_uses(l->from, s->dst, s->at, load->at[d].term[t].var);
        }
        if (s->fold != OP_COPY && !kept && load->at[d].n > 0) {
            bool second = has_levels(l, s) && !affine_uses(load->at[d], role_var(s, ROLE_K));
            bool rows =
                tile_kind(s) != TILE_MATMUL || batch_is_all(l, s) || batch_is_tiny(l, s);
            score[d] *= rows ? WEIGHT_FOLDED : second ? WEIGHT_SECOND : WEIGHT_CONTRACTED;
        }
    }
}

/* The dimension that the first row of a contraction with levels has in the block, when the
 * contraction, or the statement right after it that reads its tiles, sets it. Else UINT32_MAX. */
static uint32_t dim_of_rows(const Lower *l, BufRef buf)
{
    StmtWalk w;
    const Stmt *product = NULL;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        const Expr *load =
            product == NULL || s->fold != OP_COPY ? NULL : expr_load_of(s->value, product->dst);
        for (uint32_t d = 0; s->dst == buf && d < l->from->bufs.at[buf].rank; d++) {
            if (has_levels(l, s) && affine_uses(s->at[d], role_var(s, ROLE_M))) {
                return d;
            }
            uint32_t rank = load == NULL ? 0 : l->from->bufs.at[load->buf].rank;
            for (uint32_t e = 0; e < rank; e++) {
                for (uint32_t i = 0; i < s->n_index; i++) {
                    if (affine_uses(product->at[e], role_var(product, ROLE_M)) &&
                        affine_uses(load->at[e], s->index[i].var) &&
                        affine_uses(s->at[d], s->index[i].var)) {
                        return d;
                    }
                }
            }
        }
        product = has_levels(l, s) ? s : NULL;
    }
    return UINT32_MAX;
}

static void score_uses(const Lower *l, BufRef buf, double *score)
{
    StmtWalk w;
    ExprWalk v;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        if (s->dst == buf) {
            score_store(l, s, score);
        }
        for (const Expr *x = load_first(&v, s->value); x != NULL; x = load_next(&v)) {
            const Turn *t = &l->turn[x->buf];
            if (x->buf == buf || (t->is && t->of == buf)) {
                score_load(l, s, x, l->from->bufs.at[buf].rank, score);
            }
        }
    }
}

void home_in_hbm(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    int64_t flat = 1;
    h->on_chip = h->spread = false;
    for (uint32_t d = b->rank; d-- > 0;) {
        h->stride[d] = flat;
        flat = sat_mul(flat, b->extent[d].n);
    }
}

/* The first statement that reads a buffer, with its load. */
static const Stmt *first_reader(const Kernel *k, BufRef buf, const Expr **load)
{
    StmtWalk w;
    const Stmt *s = tile_first(&w, k->body, k->n_body);
    while (s != NULL && (*load = expr_load_of(s->value, buf)) == NULL) {
        s = tile_next(&w);
    }
    return s;
}

/* Where a dimension of a load lies in what its statement sets; what is reduced is last. */
static uint32_t place_in_result(const Lower *l, const Stmt *s, Affine at)
{
    uint32_t rank = l->from->bufs.at[s->dst].rank;
    for (uint32_t d = 0; d < rank; d++) {
        for (uint32_t t = 0; t < at.n; t++) {
            if (affine_uses(s->at[d], at.term[t].var)) {
                return d;
            }
        }
    }
    return at.n == 0 ? 0 : rank;
}

/* The dimensions in the order in which the first reader wants them on the free axis. */
static void dims_as_read(const Lower *l, BufRef buf, uint32_t *order)
{
    uint32_t rank = l->from->bufs.at[buf].rank, key[NKI_DIMS] = {0};
    const Expr *load = NULL;
    bool fixed = l->pair[buf] || l->from->bufs.at[buf].space == SPACE_ARGUMENT;
    const Stmt *s = fixed ? NULL : first_reader(l->from, buf, &load);
    for (uint32_t d = 0; d < rank; d++) {
        key[d] = s == NULL ? d : place_in_result(l, s, load->at[d]);
        uint32_t at = d;
        for (; at > 0 && key[order[at - 1]] > key[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
}

/* Is it a number of the program's own that nothing but constants is stored to? */
static bool is_set_to_constants(const Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    bool constants = b->rank == 0 && b->space == SPACE_TILE && b->dtype == DTYPE_F32;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL && constants;
         s = tile_next(&w)) {
        constants = s->dst != buf || (s->fold == OP_COPY && s->value->kind == EXPR_CONST);
    }
    return constants;
}

/* Layout on chip; the bytes of a partition it takes. */
int64_t home_on_chip(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    double score[NKI_DIMS];
    h->on_chip = true;
    h->spread = is_set_to_constants(l, buf);
    for (uint32_t d = 0; d < b->rank; d++) {
        int64_t n = b->extent[d].n;
        score[d] = (double)(n < NKI_PARTITIONS ? n : NKI_PARTITIONS);
    }
    if (l->pair[buf]) {
        score[b->rank - 1] = 0; /* parts are never on partitions */
    }
    score_uses(l, buf, score);
    for (uint32_t d = 0; d < b->rank && d < 64; d++) {
        score[d] *= l->batch[buf] >> d & 1 ? WEIGHT_BATCH : 1.0;
    }
    uint32_t best = UINT32_MAX, rows = dim_of_rows(l, buf);
    for (uint32_t d = 0; d < b->rank; d++) {
        best = best == UINT32_MAX || score[d] > score[best] ? d : best;
    }
    h->pdim = rows != UINT32_MAX ? rows : best;
    uint32_t order[NKI_DIMS];
    dims_as_read(l, buf, order);
    int64_t flat = 1;
    for (uint32_t i = b->rank; i-- > 0;) {
        uint32_t d = order[i];
        h->stride[d] = d == h->pdim ? 0 : flat;
        flat = d == h->pdim ? flat : sat_mul(flat, b->extent[d].n);
    }
    int64_t n = b->rank == 0 ? 1 : b->extent[h->pdim].n;
    h->chunks = (n + NKI_PARTITIONS - 1) / NKI_PARTITIONS;
    h->chunk_stride = flat;
    return sat_mul(sat_mul(flat, h->chunks), dtype_bytes(b->dtype));
}

void home_set(Lower *l, BufRef buf, double value)
{
    Home *h = &l->home[buf];
    make_memset(l, (TileView){.buf = h->buf, .np = NKI_PARTITIONS, .nf = 1, .step = 1}, value);
    h->version++;
}

void home_make(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    h->version++;
    h->made = true;
    h->depth = l->loops.depth;
    if (h->on_chip) {
        int64_t n = h->spread ? NKI_PARTITIONS : b->rank == 0 ? 1 : b->extent[h->pdim].n;
        int64_t np = n < NKI_PARTITIONS ? n : NKI_PARTITIONS;
        Space space = psum_keeps(l, buf) && !h->spread ? SPACE_ACC : SPACE_TILE;
        h->buf =
            tile_new(l, b->name->text, b->dtype, space, np, h->chunks * h->chunk_stride).buf;
        return;
    }
    const char *name = str_format(l->arena, "%s_hbm%u", b->name->text, l->names++);
    h->buf = kernel_buffer(l->to, &l->ctx->syms, name, b->dtype, SPACE_WORKSPACE, b->rank,
                           b->extent);
    l->to->bufs.at[h->buf].span = b->span;
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    *s = (Stmt){.kind = STMT_ALLOC, .span = b->span, .buf = h->buf};
    vec_push(l->arena, &l->out, s);
}

#define LONG_VECTOR 4096

/* Is the buffer used in statements of one index only? Those are quick in HBM, where a vector
 * can be cut as one likes. */
static bool only_vectors(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        bool used = s->dst == buf || expr_load_of(s->value, buf) != NULL;
        if (used && s->n_index > 1) {
            return false;
        }
    }
    return true;
}

int64_t home_enter(Lower *l, BufRef buf)
{
    int64_t bytes = home_on_chip(l, buf);
    const Buffer *b = &l->from->bufs.at[buf];
    bool vector = b->rank == 1 && b->extent[0].n >= LONG_VECTOR && only_vectors(l->from, buf);
    if (vector || l->tried.away[buf] || bytes > l->room.home_limit - l->room.home_bytes) {
        home_in_hbm(l, buf);
        bool full = !vector && !l->tried.away[buf];
        l->home[buf].wanted = full ? bytes : 0;
        l->home[buf].left = l->room.home_limit - l->room.home_bytes;
        bytes = 0;
    }
    home_make(l, buf);
    l->room.home_bytes += bytes;
    return bytes;
}
