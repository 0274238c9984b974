/* SPDX-License-Identifier: Apache-2.0 */
/* TILED -> LEGAL for NKI: decides where every buffer lives, unrolls the loops, and lowers one
 * statement after the other. A fill is taken into the fold that follows it, an elementwise
 * statement into the contraction before it. When the result does not fit SBUF it is made again
 * with less kept on chip. */
#include "backend/nki/lower.h"

/* ---- places ---- */

static int64_t affine_value(const Lower *l, Affine x)
{
    int64_t v = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        v += x.term[i].coef * l->value[x.term[i].var];
    }
    return v;
}

Place place_of(Lower *l, BufRef buf, const Affine *at)
{
    Place out = {.buf = buf, .rank = l->from->bufs.at[buf].rank};
    pair_refresh(l, buf);
    for (uint32_t d = 0; d < out.rank; d++) {
        out.base[d] = at[d].base;
        out.label[d] = -1;
        for (uint32_t i = 0; i < at[d].n; i++) {
            VarRef v = at[d].term[i].var;
            uint32_t label = l->n_labels;
            for (uint32_t j = 0; j < l->n_labels; j++) {
                label = l->stmt->index[j].var == v ? j : label;
            }
            if (label == l->n_labels) {
                out.base[d] += at[d].term[i].coef * l->value[v];
            } else if (out.label[d] >= 0 || at[d].term[i].coef != 1) {
                lower_refuse(l, l->stmt->span, "an index that is a sum of indices");
            } else {
                out.label[d] = (int32_t)label;
            }
        }
        if (l->flat > 0 && out.label[d] == 0) {
            out.high_label = 1;
            out.high_dim = d;
            out.high_step = l->flat;
        }
    }
    return out;
}

/* ---- homes ---- */

static void score_load(const Lower *l, const Stmt *s, const Expr *load, double *score)
{
    for (uint32_t d = 0; d < l->from->bufs.at[load->buf].rank; d++) {
        bool kept = false;
        for (uint32_t t = 0; t < load->at[d].n; t++) {
            kept |= access_uses(l->from, s->dst, s->at, load->at[d].term[t].var);
        }
        if (s->fold != OP_COPY && !kept && load->at[d].n > 0) {
            score[d] *= tile_kind(s) == TILE_MATMUL ? 3.0 : 0.7;
        }
    }
}

static void score_uses(const Lower *l, BufRef buf, double *score)
{
    StmtWalk w;
    ExprWalk v;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        for (const Expr *x = load_first(&v, s->value); x != NULL; x = load_next(&v)) {
            if (x->buf == buf) {
                score_load(l, s, x, score);
            }
        }
    }
}

static void home_in_hbm(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    int64_t flat = 1;
    h->on_chip = false;
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

/* Layout on chip; the bytes of a partition it takes. */
static int64_t home_on_chip(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    double score[NKI_DIMS];
    h->on_chip = true;
    h->pdim = UINT32_MAX;
    for (uint32_t d = 0; d < b->rank; d++) {
        int64_t n = b->extent[d].n;
        score[d] = (double)(n < NKI_PARTITIONS ? n : NKI_PARTITIONS);
    }
    if (l->pair[buf]) {
        score[b->rank - 1] = 0; /* parts are never on partitions */
    }
    score_uses(l, buf, score);
    for (uint32_t d = 0; d < b->rank && d < 64; d++) {
        score[d] *= l->batch[buf] >> d & 1 ? 0.02 : 1.0;
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        h->pdim = h->pdim == UINT32_MAX || score[d] > score[h->pdim] ? d : h->pdim;
    }
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
    return sat_mul(sat_mul(flat, h->chunks), nki_bytes(b->dtype));
}

static void home_make(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    h->version++;
    h->made = true;
    if (h->on_chip) {
        int64_t n = b->rank == 0 ? 1 : b->extent[h->pdim].n;
        int64_t np = n < NKI_PARTITIONS ? n : NKI_PARTITIONS;
        h->buf =
            tile_new(l, b->name->text, b->dtype, SPACE_TILE, np, h->chunks * h->chunk_stride)
                .buf;
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

static int64_t enter_buffer(Lower *l, BufRef buf)
{
    int64_t bytes = home_on_chip(l, buf);
    const Buffer *b = &l->from->bufs.at[buf];
    bool vector = b->rank == 1 && b->extent[0].n >= LONG_VECTOR && only_vectors(l->from, buf);
    if (vector || l->away[buf] || bytes > l->home_limit - l->home_bytes) {
        home_in_hbm(l, buf);
        bytes = 0;
    }
    home_make(l, buf);
    l->home_bytes += bytes;
    return bytes;
}

/* ---- statements ---- */

/* The values a statement's variable takes. */
static void range_of(const Lower *l, const Stmt *s, VarRef v, const Range *r, int64_t *lo,
                     int64_t *hi)
{
    *lo = affine_value(l, r->start);
    *hi = r->span == 0 ? r->limit.n : *lo + r->span;
    *hi = r->clipped && r->limit.n < *hi ? r->limit.n : *hi;
    for (uint32_t i = 0; i < l->n_limits; i++) {
        const Limit *x = &l->limits[i];
        if (x->stmt == s && x->var == v) {
            *lo = x->lo > *lo ? x->lo : *lo;
            *hi = x->hi < *hi ? x->hi : *hi;
        }
    }
}

static void enter_stmt(Lower *l, const Stmt *s)
{
    l->stmt = s;
    l->n_labels = s->n_index;
    for (uint32_t i = 0; i < s->n_index; i++) {
        int64_t start = 0, end = 0;
        range_of(l, s, s->index[i].var, &s->index[i].range, &start, &end);
        l->full.s[i] = start;
        l->full.n[i] = end - start;
    }
    pair_enter(l);
}

static bool is_empty(const Lower *l)
{
    for (uint32_t i = 0; i < l->n_labels; i++) {
        if (l->full.n[i] < 1) {
            return true;
        }
    }
    return false;
}

static bool is_neutral(const Stmt *fill, const Stmt *fold)
{
    if (fill->kind != STMT_TILE || fold->kind != STMT_TILE || fill->value->kind != EXPR_CONST ||
        fill->fold != OP_COPY || fold->fold == OP_COPY || fill->dst != fold->dst) {
        return false;
    }
    Number want = op_neutral(fold->fold, fill->value->dtype), have = fill->value->value;
    return want.i == have.i && !(want.re < have.re) && !(want.re > have.re);
}

/* Does the fold meet exactly the places the fill sets? */
bool lower_opens(const Lower *l, const Stmt *fill, const Stmt *fold)
{
    if (!is_neutral(fill, fold)) {
        return false;
    }
    for (uint32_t d = 0; d < l->from->bufs.at[fill->dst].rank; d++) {
        if (!affine_eq(fill->at[d], fold->at[d])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < fill->n_index; i++) {
        bool same = false;
        for (uint32_t j = 0; j < fold->n_index; j++) {
            same |= fill->index[i].var == fold->index[j].var &&
                    range_eq(&fill->index[i].range, &fold->index[j].range);
        }
        if (!same) {
            return false;
        }
    }
    return true;
}

/* Statements that read a buffer. */
static uint32_t count_users(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    uint32_t count = 0;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        count += expr_load_of(s->value, buf) != NULL;
    }
    return count;
}

/* The positions an affine of one statement takes in a dimension: [lo, hi), by one index or
 * none. */
static bool positions(const Lower *l, const Stmt *s, Affine x, int64_t *lo, int64_t *hi,
                      int32_t *by)
{
    *by = -1;
    *lo = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        int32_t index = -1;
        for (uint32_t j = 0; j < s->n_index; j++) {
            index = s->index[j].var == x.term[i].var ? (int32_t)j : index;
        }
        if (index < 0) {
            *lo += x.term[i].coef * l->value[x.term[i].var];
        } else if (*by >= 0 || x.term[i].coef != 1) {
            return false;
        } else {
            *by = index;
        }
    }
    *hi = *lo + 1;
    if (*by >= 0) {
        int64_t first = 0, end = 0;
        range_of(l, s, s->index[*by].var, &s->index[*by].range, &first, &end);
        *hi = *lo + end;
        *lo += first;
    }
    return true;
}

/* Does the load in `s` read exactly what the matmul makes, with an index of `s` in each
 * dimension in which one moves? */
static bool reads_result(const Lower *l, const Stmt *matmul, const Stmt *s, const Expr *load)
{
    uint32_t indices = 0;
    for (uint32_t d = 0; d < l->from->bufs.at[load->buf].rank; d++) {
        int64_t lo, hi, lo2, hi2;
        int32_t by, by2;
        if (!positions(l, s, load->at[d], &lo, &hi, &by) ||
            !positions(l, matmul, matmul->at[d], &lo2, &hi2, &by2) || lo != lo2 || hi != hi2 ||
            (by >= 0) != (by2 >= 0)) {
            return false;
        }
        for (uint32_t c = 0; c < d; c++) { /* no index twice */
            int32_t earlier;
            if (positions(l, s, load->at[c], &lo, &hi, &earlier) && earlier == by && by >= 0) {
                return false;
            }
        }
        indices += by >= 0;
    }
    return indices == s->n_index;
}

/* All loads of the result in `s`: of all of it, and in one order of the indices. */
static bool same_loads(const Lower *l, const Stmt *matmul, const Stmt *s)
{
    ExprWalk w;
    const Expr *first = expr_load_of(s->value, matmul->dst);
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        if (x->buf != matmul->dst) {
            continue;
        }
        for (uint32_t d = 0; d < l->from->bufs.at[x->buf].rank; d++) {
            if (!affine_eq(x->at[d], first->at[d])) {
                return false;
            }
        }
        if (!reads_result(l, matmul, s, x)) {
            return false;
        }
    }
    return true;
}

/* May `s` be computed from the PSUM tiles of `matmul`, whose result is then nowhere else? */
bool lower_is_epilogue(Lower *l, const Stmt *matmul, const Stmt *s)
{
    return s->kind == STMT_TILE && s->fold == OP_COPY && s->dst != matmul->dst &&
           l->from->bufs.at[matmul->dst].space != SPACE_ARGUMENT &&
           expr_load_of(s->value, matmul->dst) != NULL &&
           count_users(l->from, matmul->dst) == 1 && same_loads(l, matmul, s);
}

static void lower_fold_stmt(Lower *l, const Stmt *s, bool overwrite, const Stmt *next,
                            bool *took)
{
    *took = false;
    enter_stmt(l, s);
    if (is_empty(l)) {
        return;
    }
    if (s->fold != OP_COPY && tile_kind(s) == TILE_MATMUL) {
        bool epilogue = overwrite && next != NULL && lower_is_epilogue(l, s, next);
        if (lower_matmul(l, s, overwrite, epilogue ? next : NULL)) {
            *took = epilogue;
            return;
        }
    }
    lower_map(l, s, overwrite);
}

static void lower_parts_stmt(Lower *l, const Stmt *re, const Stmt *im)
{
    enter_stmt(l, re);
    if (!is_empty(l)) {
        lower_parts(l, re, im);
    }
}

static void lower_block(Lower *l, Stmt *const *body, uint32_t n);

static void lower_for(Lower *l, const Stmt *s)
{
    int64_t start = 0, end = 0;
    range_of(l, s, s->var, &s->range, &start, &end);
    for (int64_t v = start; v < end && !l->failed; v += s->step) {
        bool full = v + s->step <= end;
        if (s->part == FOR_ALL || (s->part == FOR_FULL) == full) {
            l->value[s->var] = v;
            lower_block(l, s->body, s->n_body);
        }
    }
}

static void lower_block(Lower *l, Stmt *const *body, uint32_t n)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < n && !l->failed; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_FOR) {
            lower_for(l, s);
            continue;
        }
        if (s->kind == STMT_BLOCK) {
            lower_block(l, s->body, s->n_body);
            continue;
        }
        if (l->turn[s->kind == STMT_ALLOC ? s->buf : s->dst].is) {
            continue; /* only views of it are made */
        }
        if (s->kind == STMT_ALLOC) {
            bytes += enter_buffer(l, s->buf);
            continue;
        }
        if (i + 1 < n && pair_is_split(l, s, body[i + 1])) {
            lower_parts_stmt(l, s, body[++i]);
            continue;
        }
        bool overwrite = i + 1 < n && lower_opens(l, s, body[i + 1]);
        bool took = false;
        uint32_t at = overwrite ? i + 1 : i;
        lower_fold_stmt(l, body[at], overwrite, at + 1 < n ? body[at + 1] : NULL, &took);
        i = took ? at + 1 : at;
    }
    l->home_bytes -= bytes;
}

/* ---- arguments ---- */

/* Is `buf` folded into inside loops (so that it is better kept on chip until the end)? */
static bool folded_in_loops(const Lower *l, Stmt *const *body, uint32_t n, BufRef buf,
                            bool inside)
{
    bool yes = false;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (stmt_has_body(s)) {
            bool loop = inside || s->kind == STMT_FOR;
            yes |= folded_in_loops(l, s->body, s->n_body, buf, loop);
        } else if (inside && s->kind == STMT_TILE && s->dst == buf && s->fold != OP_COPY) {
            yes |= i == 0 || !lower_opens(l, body[i - 1], s);
        }
    }
    return yes;
}

static void enter_args(Lower *l)
{
    for (uint32_t i = 0; i < l->from->args.n; i++) {
        Arg arg = l->from->args.at[i];
        const Buffer *b = &l->from->bufs.at[arg.buf];
        Home *h = &l->home[arg.buf];
        BufRef made = kernel_buffer(l->to, &l->ctx->syms, b->name->text, b->dtype,
                                    SPACE_ARGUMENT, b->rank, b->extent);
        l->to->bufs.at[made].span = b->span;
        l->to->bufs.at[made].param = (int32_t)i;
        arg.buf = made;
        vec_push(l->arena, &l->to->args, arg);
        BufRef old = l->from->args.at[i].buf;
        h->hbm = h->buf = made;
        int64_t room = l->home_limit / 4;
        if (arg.role == ARG_RESULT &&
            folded_in_loops(l, l->from->body, l->from->n_body, old, false) && !l->away[old] &&
            home_on_chip(l, old) <= room) {
            home_make(l, old);
            h->flush = true;
        } else {
            home_in_hbm(l, old);
        }
    }
}

static void flush_result(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home chip = l->home[buf];
    Place x = {.buf = buf, .rank = b->rank};
    Labels p = {0}, f = {0};
    Box box = {.s = {0}, .n = {0}};
    l->stmt = NULL;
    for (uint32_t d = 0; d < b->rank; d++) {
        x.label[d] = (int32_t)d;
        Labels *to = d == chip.pdim ? &p : &f;
        to->at[to->n++] = (uint8_t)d;
        box.n[d] = b->extent[d].n;
    }
    home_in_hbm(l, buf);
    l->home[buf].buf = chip.hbm;
    for (int64_t c = 0; c < chip.chunks; c++) {
        int64_t np = 1;
        if (b->rank > 0) {
            box.s[chip.pdim] = c * NKI_PARTITIONS;
            int64_t left = b->extent[chip.pdim].n - box.s[chip.pdim];
            np = box.n[chip.pdim] = left < NKI_PARTITIONS ? left : NKI_PARTITIONS;
        }
        View v = {chip.buf, 0, np, c * chip.chunk_stride, chip.chunk_stride, 1};
        make_dma(l, &x, p, f, &box, v, true);
    }
}

/* ---- the whole ---- */

/* Buffers that other parts make or use. */
static void enter_crossing(Lower *l)
{
    for (uint32_t b = 0; l->crossing != NULL && b < l->from->bufs.n; b++) {
        if (l->crossing[b] && l->from->bufs.at[b].space != SPACE_ARGUMENT) {
            home_in_hbm(l, b);
            home_make(l, b);
        }
    }
}

/* A block that matmuls leave in PSUM for the statement after them has got a home, and nothing
 * goes there: it was not made. */
static void drop_unused(Lower *l)
{
    bool *used = ARENA_ARRAY(l->arena, l->to->bufs.n, bool);
    for (uint32_t i = 0; i < l->out.n; i++) {
        const Stmt *s = l->out.at[i];
        if (s->kind == STMT_TILE) {
            used[s->dst] = true;
            expr_mark_loads(s->value, used);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->out.n; i++) {
        Stmt *s = l->out.at[i];
        if (s->kind != STMT_ALLOC || used[s->buf]) {
            l->out.at[kept++] = s;
        }
    }
    l->out.n = kept;
    for (uint32_t i = 0; i < l->from->bufs.n; i++) {
        l->home[i].made = l->home[i].made && used[l->home[i].buf];
    }
}

Kernel *lower_once(Lower *l)
{
    const Kernel *k = l->from;
    l->to = kernel_new(l->arena, k->name);
    l->to->span = k->span;
    l->to->sources = k->sources;
    l->to->signature = k->signature;
    l->to->n_work = k->n_work;
    l->to->work = k->work;
    l->to->form = LOOP_LEGAL;
    l->to->target = l->target->name;
    l->home = ARENA_ARRAY(l->arena, k->bufs.n, Home);
    batch_mark(l);
    l->value = ARENA_ARRAY(l->arena, k->vars.n, int64_t);
    enter_args(l); /* first, so that they keep their names */
    l->p = kernel_var(l->to, &l->ctx->syms, "p", false);
    l->f = kernel_var(l->to, &l->ctx->syms, "f", false);
    l->k = kernel_var(l->to, &l->ctx->syms, "k", false);
    for (uint32_t i = 0; i < LABELS; i++) {
        l->q[i] = kernel_var(l->to, &l->ctx->syms, str_format(l->arena, "q%u", i), false);
    }
    enter_crossing(l);
    lower_block(l, l->body, l->n_body);
    for (uint32_t i = 0; i < k->args.n && !l->failed; i++) {
        if (l->home[k->args.at[i].buf].flush) {
            flush_result(l, k->args.at[i].buf);
        }
    }
    drop_unused(l);
    l->to->body = l->out.at;
    l->to->n_body = l->out.n;
    return l->failed ? NULL : kernel_numbered(l->arena, l->to);
}

/* Blocks that the engines cannot read as some statement wants them go through HBM: one more in
 * each try. */
static Kernel *lower_again(const Lower *start, Lower *l)
{
    Kernel *made = NULL;
    for (uint32_t i = 0; i <= start->from->bufs.n; i++) {
        *l = *start;
        made = lower_once(l);
        if (!l->again) {
            break;
        }
    }
    return made;
}

Kernel *lower_all(const Lower *start, Lower *l)
{
    Kernel *made = NULL;
    Lower first = *start;
    static const int64_t kept[5] = {14, 12, 6, 3, 1}; /* sixteenths of SBUF for loaded tiles */
    for (int64_t part = 1, at = 0; at < 5; part *= at == 0 ? 1 : 2, at++) {
        first.cache_limit = start->chip->sbuf_bytes * kept[at] / 16;
        first.home_limit = start->chip->sbuf_bytes / 4 / part;
        first.tile_elements = 2048 / part;
        made = lower_again(&first, l);
        NkiCost cost;
        if (made == NULL || !nki_cost(made, l->chip, &cost) ||
            cost.sbuf_peak <= l->chip->sbuf_bytes) {
            break;
        }
    }
    return made;
}

Kernel *nki_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    const NkiChip *chip = nki_chip(target->name);
    Lower first = {.ctx = ctx, .arena = arena, .target = target, .chip = chip, .from = k};
    if (!lower_check(&first)) {
        return NULL;
    }
    pair_find(&first);
    first.away = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    first.body = k->body;
    first.n_body = k->n_body;
    first.most = target->machine->max_instructions;
    Lower l = first;
    Kernel *made = lower_all(&first, &l);
    if (l.too_many) {
        return lower_split(&first);
    }
    spill_warn_all(&l);
    Kernel *rolled = made == NULL ? NULL : nki_roll(ctx, arena, made, chip, 1);
    return rolled == NULL ? made : rolled;
}
