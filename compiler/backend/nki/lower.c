/* SPDX-License-Identifier: Apache-2.0 */
/* A TILED kernel, or some of its statements, as instructions: loops are unrolled, buffers come
 * and go, and one statement is lowered after the other. An elementwise statement is taken into the
 * contraction before it. */
#include "backend/nki/home.h"
#include "backend/nki/legalise.h"
#include "backend/nki/lower_stmt.h"
#include "backend/nki/make.h"
#include "backend/nki/open_loops.h"
#include "loop/copy.h"
#include "loop/term.h"
#include "loop/walk.h"

/* ---- statements ---- */

void lower_enter(Lower *l, const Stmt *s)
{
    l->now.stmt = s;
    l->now.next = NULL;
    l->now.n_labels = s->n_index;
    for (uint32_t i = 0; i < s->n_index; i++) {
        int64_t start = 0, end = 0;
        range_values(l, s, s->index[i].var, &s->index[i].range, &start, &end);
        l->now.full.s[i] = start;
        l->now.full.n[i] = end - start;
        l->now.moves[i] = position_moves(l, s->index[i].range.start);
    }
    pair_enter(l);
}

static bool is_empty(const Lower *l)
{
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        if (l->now.full.n[i] < 1) {
            return true;
        }
    }
    return false;
}

/* Has its result no position? */
static bool makes_nothing(const Lower *l, const Stmt *s)
{
    bool none = false;
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        none |= l->now.full.n[i] < 1 && access_uses(l->from, s->dst, s->at, s->index[i].var);
    }
    return none;
}

/* Is all that the statement reads but that result an argument, and what it stores in memory? */
static bool in_memory(const Lower *l, const Stmt *s, BufRef result)
{
    ExprWalk w;
    bool memory = !l->home[s->dst].on_chip;
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        memory &= e->buf == result || l->from->bufs.at[e->buf].space == SPACE_ARGUMENT;
    }
    return memory;
}

/* Is a fold's result read by the next statement alone, which stores what it makes of it: a copy, or more? */
static bool goes_on(Lower *l, const Stmt *s, const Stmt *next)
{
    const Buffer *b = &l->from->bufs.at[s->dst];
    bool fold = s->fold != OP_COPY && s->begins && next != NULL && l->now.part < 0 &&
                l->now.turned < 0 && dtype_is_float(b->dtype) && !l->pair[s->dst] &&
                lower_is_epilogue(l, s, next) && !l->pair[next->dst] &&
                dtype_is_float(l->from->bufs.at[next->dst].dtype);
    return fold && (expr_uncast(next->value)->kind == EXPR_LOAD || in_memory(l, next, s->dst));
}

/* *took: the next statement is done, too. */
static void lower_tile(Lower *l, const Stmt *s, const Stmt *next, bool *took)
{
    *took = false;
    lower_enter(l, s);
    if (is_empty(l)) {
        if (s->begins && !makes_nothing(l, s)) {
            lower_refuse(l, s->span, "sums of nothing");
        }
        return;
    }
    if (s->n_first > 0) { /* of instructions alone, which this makes */
        lower_refuse(l, s->span, "sums that begin with a loop");
        return;
    }
    if (s->scan > 0) {
        lower_scan(l, s);
        return;
    }
    if (gathers_rows(s)) {
        gathers_lower(l, s);
        return;
    }
    if (l->home[s->dst].spread) {
        home_set(l, s->dst, s->value->value.re);
        return;
    }
    l->now.next = goes_on(l, s, next) ? next : NULL;
    if (lower_next_value(l, s) != NULL && !lower_is_cut(l, s)) {
        l->now.next = NULL; /* rows of its own suit it better */
    }
    if (s->fold != OP_COPY && tile_kind(s) == TILE_MATMUL && !batch_is_all(l, s)) {
        bool epilogue = s->begins && next != NULL && lower_is_epilogue(l, s, next);
        uint32_t staged = LABELS;
        s = lower_roles(l, s, epilogue ? next : NULL, &staged);
        if (staged < LABELS) {
            lower_staged(l, s, staged);
            return;
        }
        if (lower_panels(l, s, epilogue ? next : NULL) ||
            lower_cut(l, s, epilogue ? next : NULL) ||
            lower_matmul(l, s, s->begins, epilogue ? next : NULL)) {
            *took = epilogue;
            return;
        }
    }
    lower_map(l, s, s->begins);
    *took = l->now.next != NULL;
    l->now.next = NULL;
}

static void lower_parts_stmt(Lower *l, const Stmt *re, const Stmt *im)
{
    lower_enter(l, re);
    if (!is_empty(l)) {
        lower_parts(l, re, im);
    }
}

/* One iteration after the other, from `v` on. */
static void lower_each(Lower *l, const Stmt *s, int64_t v, int64_t end)
{
    const Window *w = s->window;
    bool has_lo = w != NULL && w->has_lo, has_hi = w != NULL && w->has_hi;
    int64_t lo = has_lo ? position_value(l, w->lo) : 0;
    int64_t hi = has_hi ? position_value(l, w->hi) : INT64_MAX;
    for (; v < end && v < hi && !l->tried.failed; v += s->step) {
        bool full = v + s->step <= end;
        if (!(has_lo && v + s->step <= lo) && /* changes nothing */
            (s->part == FOR_ALL || (s->part == FOR_FULL) == full)) {
            l->value[s->var] = v;
            lower_block(l, s->body, s->n_body);
        }
    }
}

static void lower_for(Lower *l, const Stmt *s)
{
    int64_t start = 0, end = 0;
    range_values(l, s, s->var, &s->range, &start, &end);
    int64_t trips = s->part == FOR_REST ? 0 : (end - start) / s->step;
    bool begins = s->range.span == 0 && position_moves(l, s->range.start).n > 0;
    if ((s->window != NULL || begins) && lower_window(l, s)) {
        start += trips * s->step;
    } else if (s->window == NULL) {
        int64_t peeled = loop_peeled(l, s, start, trips) * s->step;
        lower_each(l, s, start, start + peeled);
        start += peeled;
        trips -= peeled / s->step;
        if (!l->tried.failed && open_loop(l, s, start, trips)) {
            lower_block(l, s->body, s->n_body);
            lower_end_loop(l);
            start += trips * s->step;
        }
    }
    lower_each(l, s, start, end);
}

/* Does the statement, or one inside, name the buffer? */
static bool names(const Stmt *s, BufRef buf)
{
    StmtWalk w;
    Stmt *one = (Stmt *)(uintptr_t)s;
    const Stmt *t = tile_first(&w, &one, 1);
    while (t != NULL && t->dst != buf && expr_load_of(t->value, buf) == NULL) {
        t = tile_next(&w);
    }
    return t != NULL;
}

/* A block that has been made in this body, until the last statement that names it. */
typedef struct Living {
    BufRef buf;
    uint32_t last;
    int64_t bytes;
} Living;

typedef struct Livings {
    VEC(Living) list;
} Livings;

static void block_enter(Lower *l, Livings *living, Stmt *const *body, uint32_t n, uint32_t at)
{
    uint32_t last = n - 1;
    while (last > at && !names(body[last], body[at]->buf)) {
        last--;
    }
    Living b = {body[at]->buf, last, home_enter(l, body[at]->buf)};
    if (b.bytes > 0) {
        vec_push(l->arena, &living->list, b);
    }
}

/* What is named no more after statement `at` makes room. */
static void blocks_leave(Lower *l, Livings *living, uint32_t at)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < living->list.n; i++) {
        Living b = living->list.at[i];
        l->room.home_bytes -= b.last <= at ? b.bytes : 0;
        living->list.at[kept] = b;
        kept += b.last > at;
    }
    living->list.n = kept;
}

/* Lowers the function at `at` with the sum of its rows right behind it, and with a copy in a narrower type behind that, where nothing else
 * reads the function: the last statement that was lowered, or `at`: none was. */
static uint32_t row_sums(Lower *l, Livings *living, Stmt *const *body, uint32_t n, uint32_t at)
{
    const Stmt *s = body[at], *sum = at + 1 < n ? body[at + 1] : NULL;
    const Stmt *copy = at + 2 < n ? body[at + 2] : NULL;
    if (sum == NULL || s->kind != STMT_TILE || sum->kind != STMT_TILE || sum->fold != OP_SUM ||
        sum->scan > 0 || sum->n_first > 0) {
        return at;
    }
    lower_enter(l, s);
    if (is_empty(l) || l->now.part >= 0 || !lower_row_sums(l, s, NULL, sum, false)) {
        return at;
    }
    bool narrow = copy != NULL && copy->kind == STMT_TILE && lower_narrows(l, s, copy) &&
                  kernel_readers(l->from, s->dst) == 2;
    for (uint32_t i = 0; i < living->list.n && narrow;
         i++) { /* the function's own is not made */
        Living *own = &living->list.at[i];
        l->room.home_bytes -= own->buf == s->dst ? own->bytes : 0;
        own->bytes = own->buf == s->dst ? 0 : own->bytes;
    }
    (void)lower_row_sums(l, s, narrow ? copy : NULL, sum, true);
    return narrow ? at + 2 : at + 1;
}

void lower_block(Lower *l, Stmt *const *body, uint32_t n)
{
    Livings living = {0};
    for (uint32_t i = 0; i < n && !l->tried.failed; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_FOR) {
            lower_for(l, s);
            blocks_leave(l, &living, i);
            continue;
        }
        if (s->kind == STMT_BLOCK) {
            lower_block(l, s->body, s->n_body);
            blocks_leave(l, &living, i);
            continue;
        }
        if (l->turn[s->kind == STMT_ALLOC ? s->buf : s->dst].is) {
            continue; /* only views of it are made */
        }
        if (s->kind == STMT_ALLOC) {
            block_enter(l, &living, body, n, i);
            continue;
        }
        if (i + 1 < n && pair_is_split(l, s, body[i + 1])) {
            lower_parts_stmt(l, s, body[++i]);
            blocks_leave(l, &living, i);
            continue;
        }
        uint32_t sum = row_sums(l, &living, body, n, i);
        if (sum > i) {
            i = sum;
            blocks_leave(l, &living, i);
            continue;
        }
        bool took = false;
        lower_tile(l, s, i + 1 < n ? body[i + 1] : NULL, &took);
        i += took ? 1 : 0;
        blocks_leave(l, &living, i);
    }
    blocks_leave(l, &living, n);
}

/* ---- arguments ---- */

static bool in_body(const Task *t, const Stmt *s)
{
    bool in = false;
    for (uint32_t i = 0; i < t->n_body; i++) {
        in |= t->body[i] == s;
    }
    return in;
}

/* Does a statement add to what others before it, or earlier iterations, in this program, have set of the buffer? */
static bool is_added_to(Lower *l, BufRef buf)
{
    bool set = false, adds = false;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, l->task.body, l->task.n_body); s != NULL;
         s = tile_next(&w)) {
        if (s->dst != buf) {
            continue;
        }
        bool add = s->fold != OP_COPY && !s->begins;
        if (add && !set && l->task.crossing != NULL && in_body(&l->task, s)) {
            lower_refuse(l, s->span, "a value that two programs of a kernel add to");
        } else if (add && !set && l->task.crossing != NULL) {
            l->tried.too_many = l->tried.failed = true; /* another cut, or none */
        }
        set |= !add;
        adds |= add;
    }
    return adds;
}

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
            yes |= !s->begins;
        }
    }
    return yes;
}

#define SCATTERED_BYTES ((int64_t)1 << 20) /* of a result: less is not worth the copies */

/* Positions of the last dimension that follow each other in what a statement stores; 1: every n-th of them. */
static int64_t stored_run(const Stmt *s, Affine at)
{
    int64_t run = 1;
    for (uint32_t t = 0; t < at.n; t++) {
        for (uint32_t i = 0; i < s->n_index && at.term[t].coef == 1; i++) {
            const Range *r = &s->index[i].range;
            int64_t n = r->clipped ? r->limit.n - r->start.base : r->span;
            n = r->span > 0 && r->span < n ? r->span : n;
            run = s->index[i].var == at.term[t].var && n > run ? n : run;
        }
    }
    return run;
}

/* Do statements store pieces of its rows that a DMA charges as longer ones? */
static bool is_scattered(const Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    StmtWalk w;
    bool scattered = false, short_runs = false, maps = true;
    for (const Stmt *s = tile_first(&w, l->task.body, l->task.n_body); s != NULL && b->rank > 1;
         s = tile_next(&w)) {
        if (s->dst == buf) {
            const Affine at = s->at[b->rank - 1];
            int64_t run = stored_run(s, at);
            for (uint32_t t = 0; t < at.n; t++) {
                scattered |= at.term[t].coef > 1;
            }
            short_runs |= at.n > 0 && run < b->extent[b->rank - 1].n &&
                          run * dtype_bytes(b->dtype) < NKI_SHORT_RUN;
            maps &= s->fold == OP_COPY && at.n == 1;
        }
    }
    bool large = buffer_elements(b, 0) * dtype_bytes(b->dtype) >= SCATTERED_BYTES;
    return (scattered || (short_runs && maps && large)) && l->task.crossing == NULL;
}

static void enter_args(Lower *l)
{
    for (uint32_t i = 0; i < l->from->args.n; i++) {
        Arg arg = l->from->args.at[i];
        const Buffer *b = &l->from->bufs.at[arg.buf];
        Home *h = &l->home[arg.buf];
        BufRef made = kernel_buffer_like(l->to, &l->ctx->syms, b->name->text, b);
        arg.buf = made;
        vec_push(l->arena, &l->to->args, arg);
        BufRef old = l->from->args.at[i].buf;
        h->hbm = h->buf = made;
        int64_t room = l->room.home_limit / 2;
        bool added = arg.role == ARG_RESULT && is_added_to(l, old);
        if (arg.role == ARG_RESULT &&
            (added || is_scattered(l, old) ||
             folded_in_loops(l, l->from->body, l->from->n_body, old, false)) &&
            !l->tried.away[old] && home_on_chip(l, old) <= room) {
            home_make(l, old);
            h->flush = true;
        } else if (added) { /* a result is stored once: put together elsewhere in HBM */
            home_in_hbm(l, old);
            home_make(l, old);
            h->flush = true;
        } else {
            home_in_hbm(l, old);
        }
    }
}

/* Is the position that of a variable, or of an index that begins there? *from: what is added. */
static bool begins_at(const Stmt *s, Affine at, VarRef var, int64_t *from)
{
    *from = at.base;
    for (uint32_t i = 0; i < s->n_index && at.n == 1; i++) {
        if (at.term[0].var == s->index[i].var && at.term[0].coef == 1) {
            at = s->index[i].range.start;
            *from += at.base;
            break;
        }
    }
    return at.n == 1 && at.term[0].var == var && at.term[0].coef == 1;
}

/* Of a buffer that a loop makes, the rows of the iterations that the program has. */
static void take_iterations(const Lower *l, const Limit *x, BufRef buf, Box *out)
{
    const Buffer *b = &l->from->bufs.at[buf];
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, x->stmt->body, x->stmt->n_body); s != NULL;
         s = tile_next(&w)) {
        for (uint32_t d = 0; s->dst == buf && d < b->rank; d++) {
            int64_t from = 0;
            if (begins_at(s, s->at[d], x->var, &from)) {
                int64_t end = sat_add(x->hi, from), all = b->extent[d].n;
                out->s[d] = x->lo + from;
                out->n[d] = (end < all ? end : all) - out->s[d];
            }
        }
    }
}

/* What the program makes of a buffer: all of it, or rows. */
static Box rows_of_part(const Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Box out = {.s = {0}, .n = {0}};
    for (uint32_t d = 0; d < b->rank; d++) {
        out.n[d] = b->extent[d].n;
    }
    for (uint32_t i = 0; i < l->task.n_limits; i++) {
        const Limit *x = &l->task.limits[i];
        if (x->stmt->kind == STMT_FOR) {
            take_iterations(l, x, buf, &out);
            continue;
        }
        for (uint32_t d = 0; d < b->rank && x->stmt->dst == buf; d++) {
            if (affine_uses(x->stmt->at[d], x->var)) {
                out.s[d] = x->lo;
                out.n[d] = (x->hi < b->extent[d].n ? x->hi : b->extent[d].n) - x->lo;
            }
        }
    }
    return out;
}

/* From where it was put together in HBM, by tiles of rows of its longest dimension but the last. */
static void flush_copy(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home *h = &l->home[buf];
    BufRef from = h->buf;
    Place x = {.buf = buf, .rank = b->rank};
    Labels p = {0}, f = {0};
    Box full = rows_of_part(l, buf), rows, box;
    uint32_t best = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        x.label[d] = (int32_t)d;
        best = d + 1 < b->rank && full.n[d] > full.n[best] ? d : best;
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        Labels *to = d == best && b->rank > 1 ? &p : &f;
        to->at[to->n++] = (uint8_t)d;
    }
    int64_t pstep[LABELS], fstep[LABELS];
    box_steps(p, &full, NKI_PARTITIONS, pstep);
    box_steps(f, &full, l->room.tile_elements, fstep);
    rows = full;
    for (bool a = true; box_next(p, &full, pstep, &rows, a) && !l->tried.failed; a = false) {
        box = rows;
        for (bool c = true; box_next(f, &full, fstep, &box, c) && !l->tried.failed; c = false) {
            TileView tile = tile_new(l, b->name->text, b->dtype, SPACE_TILE,
                                     labels_count(p, &box), labels_count(f, &box));
            h->buf = from;
            make_dma(l, &x, p, f, &box, tile, false);
            h->buf = h->hbm;
            make_dma(l, &x, p, f, &box, tile, true);
        }
    }
}

static void flush_result(Lower *l, BufRef buf)
{
    const Buffer *b = &l->from->bufs.at[buf];
    Home chip = l->home[buf];
    if (!chip.on_chip) {
        l->now.stmt = NULL;
        l->now.flat = 0;
        flush_copy(l, buf);
        return;
    }
    Place x = {.buf = buf, .rank = b->rank};
    Labels p = {0}, f = {0};
    Box box = {.s = {0}, .n = {0}};
    l->now.stmt = NULL;
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
        TileView v = {.buf = chip.buf,
                      .np = np,
                      .f0 = c * chip.chunk_stride,
                      .nf = chip.chunk_stride,
                      .step = 1};
        make_dma(l, &x, p, f, &box, v, true);
    }
}

/* ---- the whole ---- */

/* Buffers that other parts make or use. */
static void enter_crossing(Lower *l)
{
    for (uint32_t b = 0; l->task.crossing != NULL && b < l->from->bufs.n; b++) {
        if (l->task.crossing[b] && l->from->bufs.at[b].space != SPACE_ARGUMENT) {
            home_in_hbm(l, b);
            home_make(l, b);
            if (is_added_to(l, b)) {
                l->home[b].hbm = l->home[b].buf;
                home_make(l, b);
                l->home[b].flush = true;
            }
        }
    }
}

/* A statement that writes a buffer, and the next one. */
typedef struct Writer {
    const Stmt *stmt;
    const struct Writer *next;
} Writer;

/* Marks the buffers that something off chip is made of. */
static void mark_needed(const Lower *l, bool *needed)
{
    const Kernel *k = l->to;
    const Writer **of = ARENA_ARRAY(l->arena, k->bufs.n + 1, const Writer *);
    BufRef *open = ARENA_ARRAY(l->arena, k->bufs.n + 1, BufRef);
    uint32_t n = 0;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, l->out.at, l->out.n); s != NULL; s = tile_next(&w)) {
        BufRef to[2] = {s->dst, s->sums > 0 ? s->sums - 1 : s->dst};
        for (int i = 0; i < (s->sums > 0 ? 2 : 1); i++) {
            Writer *x = ARENA_NEW(l->arena, Writer);
            *x = (Writer){s, of[to[i]]};
            of[to[i]] = x;
        }
    }
    for (BufRef b = 0; b < k->bufs.n; b++) { /* memory without a writer need not be there */
        needed[b] = !nki_on_chip(k, b) && of[b] != NULL;
        open[n] = b;
        n += needed[b] ? 1 : 0;
    }
    while (n > 0) {
        for (const Writer *x = of[open[--n]]; x != NULL; x = x->next) {
            BufRef dst = x->stmt->dst; /* even where only the row sums are needed */
            open[n] = dst;
            n += needed[dst] ? 0 : 1;
            needed[dst] = true;
            ExprWalk v;
            for (const Expr *e = expr_first(&v, x->stmt->value); e != NULL; e = expr_next(&v)) {
                BufRef b = expr_buffer(e);
                if (b != BUF_NONE && !needed[b]) {
                    needed[b] = true;
                    open[n++] = b;
                }
            }
        }
    }
}

/* Without tiles that nothing reads: a block that matmuls leave in PSUM for the statement after them, or what was loaded early for
 * statements that found it elsewhere. */
static uint32_t without_unused(Stmt **body, uint32_t n, const bool *needed)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        bool keeps = true;
        if (stmt_has_body(s)) {
            s->n_body = without_unused(s->body, s->n_body, needed);
            keeps = s->n_body > 0;
        } else if (s->kind == STMT_ALLOC) {
            keeps = needed[s->buf];
        } else {
            keeps = needed[s->dst];
        }
        if (keeps) {
            body[kept++] = s;
        }
    }
    return kept;
}

static void drop_unused(Lower *l)
{
    bool *needed = ARENA_ARRAY(l->arena, l->to->bufs.n + 1, bool);
    mark_needed(l, needed);
    l->out.n = without_unused(l->out.at, l->out.n, needed);
    for (uint32_t i = 0; i < l->from->bufs.n; i++) {
        l->home[i].made = l->home[i].made && needed[l->home[i].buf];
    }
}

/* Null when it failed, was too long (`too_many`), or must be tried again (`again`). */
static Kernel *lower_once(Lower *l)
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
    l->loops.moves = ARENA_ARRAY(l->arena, k->vars.n, Affine);
    l->loops.times = 1;
    enter_args(l); /* first, so that they keep their names */
    l->p = kernel_var(l->to, &l->ctx->syms, "p", false);
    l->f = kernel_var(l->to, &l->ctx->syms, "f", false);
    l->k = kernel_var(l->to, &l->ctx->syms, "k", false);
    for (uint32_t i = 0; i < LABELS; i++) {
        l->q[i] = kernel_var(l->to, &l->ctx->syms, str_format(l->arena, "q%u", i), false);
    }
    enter_crossing(l);
    lower_block(l, l->task.body, l->task.n_body);
    for (uint32_t b = 0; b < k->bufs.n && !l->tried.failed; b++) {
        if (l->home[b].flush) {
            flush_result(l, b);
        }
    }
    drop_unused(l);
    l->to->body = l->out.at;
    l->to->n_body = l->out.n;
    kernel_name_vars(l->to, &l->ctx->syms); /* loops have the program's names first */
    return l->tried.failed ? NULL : kernel_numbered(l->arena, l->to);
}

#define TILE_ELEMENTS 2048 /* of a row, of an elementwise step */

/* Blocks that the engines cannot read as some statement wants them go through HBM: one more in
 * each try. */
Kernel *lower_all(const Lower *start, Lower *l)
{
    Lower first = *start;
    first.room.cache_limit = start->target->machine->systolic.packed / NKI_PARTITIONS;
    first.room.home_limit = machine_tile_capacity(start->target->machine) / NKI_PARTITIONS;
    first.room.tile_elements = TILE_ELEMENTS;
    Kernel *made = NULL;
    for (uint32_t i = 0; i <= start->from->bufs.n + start->from->vars.n; i++) {
        *l = first;
        made = lower_once(l);
        if (!l->tried.again) {
            break;
        }
    }
    NkiCost cost;
    bool known = made != NULL && nki_cost(made, l->chip, &cost);
    if (known && (cost.sbuf_peak > l->chip->sbuf_bytes || cost.psum_peak > NKI_PSUM_BANKS)) {
        l->tried.too_many = true; /* for one program */
        return NULL;
    }
    return made;
}
