/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of more instructions than a device program may have becomes several, its parts, that
 * run in order. Cuts lie between statements of the kernel, or between rows of the result of
 * one (iterations of an outermost loop): nothing is on chip there. What one part makes and
 * another uses is a buffer in HBM, as large as the value; each part writes consecutive rows of
 * its own. First it is planned, with all values in HBM, which statements a part has; then each
 * is lowered, with what is its own on chip. */
#include "backend/nki/legalise.h"
#include "backend/nki/lower_stmt.h"
#include "backend/nki/part.h"
#include "loop/copy.h"

#include <string.h>

#define PLACES_MOST 200000 /* statements of the text of all programs */

typedef struct Part {
    Stmts body; /* of the TILED kernel */
    VEC(Limit) limits;
    uint32_t item; /* parts of one number are rows of one statement */
} Part;

/* A part as it was lowered, and finished: others of its item may be the same but for the rows. */
typedef struct Finished {
    Task task;
    Kernel *lowered, *kernel; /* null: there is none */
    Arena *arena;
} Finished;

typedef struct Split {
    const Lower *start;
    Arena *arena;
    const Kernel *from;
    VEC(Part) parts;
    Part open;
    bool *crossing; /* [from->bufs] */
    bool *local;    /* [from->bufs] allocated in a loop or block */
    Sym *shared;    /* [from->bufs] names of those that cross, in the LEGAL kernel */
    uint32_t items;
    const char *why;
    bool failed; /* and reported */
    bool too_long;
    bool decided;   /* is it known whether loops of parts are in stages? */
    Staging stages; /* these, where there are any */
    Finished last;
} Split;

/* ---- trying ---- */

static void append(Split *s, Part *to, const Part *more)
{
    for (uint32_t i = 0; i < more->body.n; i++) {
        vec_push(s->arena, &to->body, more->body.at[i]);
    }
    for (uint32_t i = 0; i < more->limits.n; i++) {
        vec_push(s->arena, &to->limits, more->limits.at[i]);
    }
}

static Lower lower_for_part(const Split *s, Arena *arena, const Part *p)
{
    Lower l = *s->start;
    l.arena = arena;
    l.task.body = p->body.at;
    l.task.n_body = p->body.n;
    l.task.limits = p->limits.at;
    l.task.n_limits = p->limits.n;
    l.task.crossing = s->crossing;
    l.tried.away = ARENA_ARRAY(arena, s->from->bufs.n + 1, bool);
    gathers_mark(s->from, l.tried.away);
    l.tried.copied = ARENA_ARRAY(arena, s->from->bufs.n + 1, bool);
    l.tried.why = ARENA_ARRAY(arena, s->from->bufs.n + 1, Away);
    l.loops.concrete = ARENA_ARRAY(arena, s->from->vars.n + 1, bool);
    for (uint32_t i = 0; i < s->from->args.n; i++) {
        l.tried.away[s->from->args.at[i].buf] = true;
    }
    return l;
}

/* Is the part, with all values in HBM, short enough? */
static bool fits(Split *s, const Part *p)
{
    Arena scratch;
    arena_init(&scratch, s->start->arena->budget);
    Lower start = lower_for_part(s, &scratch, p), l = start;
    bool made = lower_all(&start, &l) != NULL;
    s->failed |= !made && !l.tried.too_many;
    arena_release(&scratch);
    return made;
}

/* ---- rows of a result ---- */

/* Limits a statement to rows [lo, hi) of dimension `dim` of what it makes. */
static bool limit_stmt(Split *s, const Stmt *t, uint32_t dim, int64_t lo, int64_t hi, Part *out)
{
    bool is_index = false;
    if (s->from->bufs.at[t->dst].rank == 0 || !affine_is_var(t->at[dim])) {
        s->why = "its result has no rows";
        return false;
    }
    VarRef v = t->at[dim].term[0].var;
    for (uint32_t i = 0; i < t->n_index; i++) {
        is_index |= t->index[i].var == v;
        if (t->index[i].var == v && t->scan == i + 1) {
            s->why = "a running sum or maximum goes from row to row";
            return false;
        }
    }
    Limit limit = {t, v, lo, hi};
    vec_push(s->arena, &out->limits, limit);
    return is_index;
}

/* Rows [lo, hi) of what a statement and those folded into it make. The last statement makes the
 * result; earlier ones make it too, or what it reads. */
static bool limit_group(Split *s, const Part *item, int64_t lo, int64_t hi, Part *out)
{
    const Stmt *last = item->body.at[item->body.n - 1];
    uint32_t row = nki_row_dim(&s->from->bufs.at[last->dst]);
    for (uint32_t i = 0; i < item->body.n; i++) {
        const Stmt *t = item->body.at[i];
        uint32_t dim = row;
        if (t->dst != last->dst) {
            const Expr *load = expr_load_of(last->value, t->dst);
            dim = 0;
            while (load != NULL && dim < s->from->bufs.at[t->dst].rank &&
                   !affine_eq(load->at[dim], last->at[row])) {
                dim++;
            }
            if (load == NULL || dim == s->from->bufs.at[t->dst].rank) {
                s->why = "its rows are not those of what it reads";
                return false;
            }
        }
        if (!limit_stmt(s, t, dim, lo, hi, out)) {
            return false;
        }
    }
    return true;
}

static bool allocates(const Stmt *loop, BufRef buf)
{
    StmtWalk w;
    const Stmt *s = stmt_first(&w, loop->body, loop->n_body);
    while (s != NULL && !(s->kind == STMT_ALLOC && s->buf == buf)) {
        s = stmt_next(&w);
    }
    return s != NULL;
}

/* Does what the statement in the loop makes lie in the rows of the iteration? */
static bool writes_rows(const Split *s, const Stmt *loop, const Stmt *t)
{
    const Buffer *b = &s->from->bufs.at[t->dst];
    return b->rank > 0 && position_is_tiled(t, t->at[nki_row_dim(b)], loop);
}

/* Does all that the loop leaves behind lie in the rows of its iterations? */
static bool leaves_rows(const Split *s, const Stmt *loop)
{
    StmtWalk w;
    for (const Stmt *t = tile_first(&w, loop->body, loop->n_body); t != NULL;
         t = tile_next(&w)) {
        if (!allocates(loop, t->dst) && !writes_rows(s, loop, t)) {
            return false;
        }
    }
    return true;
}

/* How many rows the item has; 0: it has none that can be told apart. */
static int64_t item_rows(Split *s, const Part *item, int64_t *step)
{
    const Stmt *last = item->body.at[item->body.n - 1];
    *step = 1;
    if (last->kind == STMT_FOR) {
        *step = last->step;
        if (last->range.start.n > 0 || last->range.start.base != 0 || last->range.span != 0 ||
            last->part != FOR_ALL || !leaves_rows(s, last)) {
            s->why = "the iterations of a loop write more than rows of their own";
            return 0;
        }
        return last->range.limit.n;
    }
    if (last->kind == STMT_BLOCK) {
        s->why = "the statements of a block stay together";
        return 0;
    }
    const Buffer *b = &s->from->bufs.at[last->dst];
    bool pair = s->start->pair[last->dst]; /* its last dimension is no row */
    if (b->rank == 0 || b->extent[nki_row_dim(b)].n < 2 ||
        (pair && nki_row_dim(b) + 1 == b->rank)) {
        s->why = "its result is a single number";
        return 0;
    }
    return b->extent[nki_row_dim(b)].n;
}

static bool item_part(Split *s, const Part *item, int64_t lo, int64_t hi, Part *out)
{
    *out = (Part){0};
    for (uint32_t i = 0; i < item->body.n; i++) {
        vec_push(s->arena, &out->body, item->body.at[i]);
    }
    const Stmt *last = item->body.at[item->body.n - 1];
    if (last->kind == STMT_FOR) {
        Limit limit = {last, last->var, lo, hi};
        vec_push(s->arena, &out->limits, limit);
        return true;
    }
    return limit_group(s, item, lo, hi, out);
}

/* The next number of parts to try. */
static int64_t next_count(int64_t n, int64_t most)
{
    int64_t next = n + (n < 8 ? 1 : n / 4);
    return n < most && next > most ? most : next;
}

/* Are runs of so many rows short enough: the first, the second, which lies as all others, and the last? */
static bool rows_fit(Split *s, const Part *item, int64_t rows, int64_t each)
{
    Part part;
    int64_t last = (rows - 1) / each * each;
    if (!item_part(s, item, 0, each < rows ? each : rows, &part)) {
        return false;
    }
    bool fit = fits(s, &part);
    for (int64_t lo = each; lo <= last && fit; lo += last > each ? last - each : 1) {
        CHECK(item_part(s, item, lo, lo + each < rows ? lo + each : rows, &part));
        fit = fits(s, &part);
    }
    s->why = fit ? s->why : "a row of it alone takes as many";
    return fit;
}

/* Cuts an item that is too long by itself into the fewest equal runs of rows that fit, or one
 * more where they are whole strips of a contraction then. */
static bool cut_rows(Split *s, const Part *item)
{
    int64_t step = 1, rows = item_rows(s, item, &step);
    int64_t unit = step > 1 ? step : rows >= 2 * NKI_PARTITIONS ? NKI_PARTITIONS : 1;
    int64_t units = (rows + unit - 1) / unit;
    int64_t strip = s->start->target->machine->systolic.live_rows * NKI_PARTITIONS;
    s->items++;
    int64_t most = units < PARTS_MOST ? units : PARTS_MOST;
    for (int64_t n = 2; rows > 0 && n <= most && !s->failed; n = next_count(n, most)) {
        int64_t each = (units + n - 1) / n * unit, whole = each / strip * strip;
        bool few = whole > 0 && whole < each && (rows + whole - 1) / whole <= n + 1;
        if (few && strip % unit == 0 && rows_fit(s, item, rows, whole)) {
            each = whole;
        } else if (!rows_fit(s, item, rows, each)) {
            continue;
        }
        for (int64_t lo = 0; lo < rows; lo += each) {
            Part part;
            CHECK(item_part(s, item, lo, lo + each < rows ? lo + each : rows, &part));
            part.item = s->items;
            vec_push(s->arena, &s->parts, part);
        }
        return true;
    }
    return false;
}

/* ---- the plan ---- */

/* The statements from `at` that belong together; the next one after them. */
static uint32_t next_item(Split *s, Lower *l, uint32_t at, Part *item)
{
    const Kernel *k = s->from;
    *item = (Part){0};
    vec_push(s->arena, &item->body, k->body[at]);
    if (k->body[at]->kind != STMT_TILE) {
        return at + 1;
    }
    uint32_t end = at + 1;
    while (end < k->n_body && k->body[end]->kind == STMT_TILE) {
        const Stmt *t = k->body[end], *before = k->body[end - 1];
        bool same = t->dst == k->body[at]->dst;
        bool epilogue = !same && before->fold != OP_COPY && lower_is_epilogue(l, before, t);
        if (!same && !epilogue) {
            break;
        }
        vec_push(s->arena, &item->body, k->body[end]);
        end++;
        if (epilogue) {
            break;
        }
    }
    return end;
}

static void close_part(Split *s)
{
    if (s->open.body.n > 0) {
        s->open.item = ++s->items;
        vec_push(s->arena, &s->parts, s->open);
        s->open = (Part){0};
    }
}

/* Does it read sums that others have made, which are complete only then? */
static bool reads_sums(const Split *s, const Part *item)
{
    bool reads = false;
    for (uint32_t b = 0; s->start->sums != NULL && b < s->from->bufs.n; b++) {
        StmtWalk w;
        const Stmt *t = s->start->sums[b] ? tile_first(&w, item->body.at, item->body.n) : NULL;
        for (; t != NULL; t = tile_next(&w)) {
            reads |= expr_load_of(t->value, b) != NULL;
        }
    }
    return reads;
}

static bool place_item(Split *s, const Part *item)
{
    if (reads_sums(s, item)) {
        close_part(s);
    }
    Part with = {0};
    append(s, &with, &s->open);
    append(s, &with, item);
    if (fits(s, &with)) {
        s->open = with;
        return true;
    }
    close_part(s);
    if (!s->failed && fits(s, item)) {
        append(s, &s->open, item);
        return true;
    }
    return !s->failed && cut_rows(s, item);
}

/* What the statements of an item touch. */
typedef struct Touch {
    uint32_t item;
    uint32_t *user, *writer; /* [from->bufs] the last item, or 0 */
    bool *crossing;
    const bool *local; /* [from->bufs] allocated in a loop or block */
    const bool *sums;  /* as of the Lower, */
    const Turn *turn;  /* likewise */
    bool twice;        /* something is written by two */
} Touch;

static void touch_read(Touch *t, BufRef b)
{
    if (!t->local[b]) {
        t->crossing[b] |= t->user[b] != 0 && t->user[b] != t->item;
        t->user[b] = t->item;
    }
    if (t->turn[b].is) { /* made where it is read, of that */
        touch_read(t, t->turn[b].of);
    }
}

static void touch_stmts(Touch *t, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    ExprWalk v;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        for (const Expr *x = load_first(&v, s->value); x != NULL; x = load_next(&v)) {
            touch_read(t, x->buf);
        }
        if (t->local[s->dst]) {
            continue;
        }
        bool own = t->sums != NULL && t->sums[s->dst]; /* each a row of its own */
        t->twice |= !own && t->writer[s->dst] != 0 && t->writer[s->dst] != t->item;
        t->crossing[s->dst] |= t->user[s->dst] != 0 && t->user[s->dst] != t->item;
        t->writer[s->dst] = t->user[s->dst] = t->item;
    }
}

/* Which values cross cuts; those that the rows of one item make for themselves are each part's
 * own. The allocations of a part's own values go to its head. */
static bool find_crossing(Split *s)
{
    const Kernel *k = s->from;
    Touch t = {.crossing = s->crossing, .local = s->local};
    t.sums = s->start->sums;
    t.turn = s->start->turn;
    t.user = ARENA_ARRAY(s->arena, k->bufs.n + 1, uint32_t);
    t.writer = ARENA_ARRAY(s->arena, k->bufs.n + 1, uint32_t);
    memset(s->crossing, 0, (k->bufs.n + 1) * sizeof *s->crossing);
    for (uint32_t p = 0; p < s->parts.n; p++) {
        t.item = s->parts.at[p].item;
        touch_stmts(&t, s->parts.at[p].body.at, s->parts.at[p].body.n);
    }
    if (t.twice) {
        s->why = "a value is changed after another part has made it";
        return false;
    }
    for (uint32_t p = 0; p < s->parts.n; p++) {
        Part *part = &s->parts.at[p];
        Stmts body = {0};
        for (uint32_t i = 0; i < k->n_body; i++) {
            Stmt *a = k->body[i];
            if (a->kind == STMT_ALLOC && t.user[a->buf] == part->item && !s->crossing[a->buf]) {
                vec_push(s->arena, &body, a);
            }
        }
        for (uint32_t i = 0; i < part->body.n; i++) {
            vec_push(s->arena, &body, part->body.at[i]);
        }
        part->body = body;
    }
    return true;
}

static bool plan(Split *s)
{
    const Kernel *k = s->from;
    Lower l = *s->start;
    l.value = ARENA_ARRAY(s->arena, k->vars.n + 1, int64_t);
    l.loops.moves = ARENA_ARRAY(s->arena, k->vars.n + 1, Affine);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        s->crossing[b] = k->bufs.at[b].space != SPACE_ARGUMENT;
    }
    for (uint32_t i = 0; i < k->n_body; i++) { /* what loops and blocks allocate is theirs */
        for (uint32_t b = 0; stmt_has_body(k->body[i]) && b < k->bufs.n; b++) {
            s->local[b] |= allocates(k->body[i], b);
            s->crossing[b] &= !s->local[b];
        }
    }
    for (uint32_t at = 0; at < k->n_body;) {
        Part item;
        if (k->body[at]->kind == STMT_ALLOC) {
            at++;
            continue;
        }
        at = next_item(s, &l, at, &item);
        if (!place_item(s, &item)) {
            return false;
        }
        if (s->parts.n > PARTS_MOST) {
            s->why = "it would be more than 128 programs";
            return false;
        }
    }
    close_part(s);
    return true;
}

/* ---- the kernel of all parts ---- */

typedef struct Whole {
    Split *s;
    Kernel *to;
    Stmts shared; /* allocations of what crosses */
    Stmts blocks;
} Whole;

static BufRef whole_buf(Whole *w, const Buffer *b, bool shared)
{
    for (uint32_t i = 0; shared && i < w->to->bufs.n; i++) {
        if (w->to->bufs.at[i].name == b->name) {
            return i;
        }
    }
    return kernel_buffer_like(w->to, &w->s->start->ctx->syms, b->name->text, b);
}

/* The variable of that name of an earlier part, of which there are `earlier`, or a new one. A new one may be called what another of this
 * part is called, whose own name something else has. */
static VarRef whole_var(Whole *w, const Var *v, uint32_t earlier)
{
    for (uint32_t i = 0; i < earlier; i++) {
        if (w->to->vars.at[i].name == v->name && w->to->vars.at[i].is_loop == v->is_loop) {
            return i;
        }
    }
    return kernel_var(w->to, &w->s->start->ctx->syms, v->name->text, v->is_loop);
}

static bool is_shared(const Split *s, const Buffer *b)
{
    for (uint32_t i = 0; i < s->from->bufs.n; i++) {
        if (s->shared[i] != NULL && s->shared[i] == b->name) {
            return true;
        }
    }
    return b->param >= 0;
}

/* One part of the kernel: a block of its statements. */
static void add_part(Whole *w, const Kernel *part)
{
    Arena *a = w->s->arena;
    BufRef *buf = ARENA_ARRAY(a, part->bufs.n + 1, BufRef);
    VarRef *var = ARENA_ARRAY(a, part->vars.n + 1, VarRef);
    Stmts own = {0};
    for (uint32_t i = 0; i < part->n_body; i++) {
        Stmt *t = part->body[i];
        if (t->kind != STMT_ALLOC || !is_shared(w->s, &part->bufs.at[t->buf])) {
            vec_push(a, &own, t);
        }
    }
    StmtWalk walk;
    if (tile_first(&walk, own.at, own.n) == NULL) {
        return; /* views of complex numbers, turned, are made where they are read */
    }
    for (uint32_t b = 0; b < part->bufs.n; b++) {
        bool shared = is_shared(w->s, &part->bufs.at[b]);
        uint32_t before = w->to->bufs.n;
        buf[b] = whole_buf(w, &part->bufs.at[b], shared);
        if (shared && w->to->bufs.n > before) {
            Stmt *t = ARENA_NEW(a, Stmt);
            *t = (Stmt){.kind = STMT_ALLOC, .span = part->bufs.at[b].span, .buf = buf[b]};
            vec_push(a, &w->shared, t);
        }
    }
    uint32_t earlier = w->to->vars.n;
    for (uint32_t v = 0; v < part->vars.n; v++) {
        var[v] = whole_var(w, &part->vars.at[v], earlier);
    }
    StmtCopy copy = {.arena = a, .from = part, .buf = buf, .var = var};
    Stmt *block = ARENA_NEW(a, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .n_body = own.n};
    block->body = stmts_copy(&copy, own.at, own.n);
    vec_push(a, &w->blocks, block);
}

/* ---- lowering each ---- */

/* The part as the last one with other rows, if that is what it is; else null. */
static Kernel *moved_from_last(const Split *s, Arena *a, const Lower *l, const Kernel *lowered)
{
    const Finished *last = &s->last;
    const struct StmtShift *shift =
        last->kernel == NULL ? NULL : part_shift(a, s->from, &last->task, &l->task);
    bool same =
        shift != NULL &&
        part_same_text(a, lowered, part_moved(a, s->from, s->shared, shift, last->lowered));
    return same ? part_moved(a, s->from, s->shared, shift, last->kernel) : NULL;
}

/* The part with values that cross called as in all other parts, by the name in the first one: another part may have numbered it otherwise. */
static Kernel *name_shared(Split *s, const Lower *l, const Kernel *finished)
{
    Arena *a = finished->arena;
    Kernel *part = kernel_like(a, finished);
    part->bufs.at = arena_copy(a, part->bufs.at, part->bufs.n * sizeof *part->bufs.at);
    for (uint32_t b = 0; b < s->from->bufs.n; b++) {
        if (!s->crossing[b] || s->from->bufs.at[b].space == SPACE_ARGUMENT || l->turn[b].is) {
            continue;
        }
        Sym own = l->to->bufs.at[l->home[b].buf].name;
        s->shared[b] = s->shared[b] == NULL ? own : s->shared[b];
        for (uint32_t i = 0; i < part->bufs.n && own != s->shared[b]; i++) {
            Buffer *x = &part->bufs.at[i];
            x->name = x->name == own ? s->shared[b] : x->name == s->shared[b] ? own : x->name;
        }
    }
    return part;
}

static void take_last(Split *s, Finished last)
{
    if (s->last.arena != NULL) {
        arena_release(s->last.arena);
    }
    s->last = last;
}

/* A part, lowered and rolled, in a kernel of its own. */
static void lower_part(Split *s, Arena *scratch, const Part *p, Lowered *out)
{
    out->kernel = NULL;
    out->stages = s->stages;
    for (int all_away = 0; all_away < 2; all_away++) {
        Lower start = lower_for_part(s, scratch, p);
        for (uint32_t b = 0; b < s->from->bufs.n; b++) {
            start.tried.away[b] |= all_away > 0 || s->crossing[b];
        }
        Kernel *made = lower_all(&start, &out->l);
        if (made != NULL) {
            out->kernel = moved_from_last(s, scratch, &start, made);
            if (out->kernel == NULL) {
                lower_finish(&out->l, made, s->parts.n, !s->decided || s->stages.n > 0, out);
                out->kernel = name_shared(s, &out->l, out->kernel);
                take_last(s, (Finished){start.task, made, out->kernel, scratch});
            }
            return;
        }
        if (!out->l.tried.too_many) {
            break;
        }
    }
}

/* In stages where the first part is better so. */
static Kernel *make_part(Split *s, Arena *scratch, const Part *p)
{
    Lowered made;
    lower_part(s, scratch, p, &made);
    s->stages = s->decided || made.kernel == NULL ? s->stages : made.stages;
    s->decided = true;
    return made.kernel;
}

static Kernel *whole_kernel(Split *s)
{
    const Kernel *k = s->from;
    Whole w = {.s = s, .to = kernel_new(s->arena, k->name)};
    w.to->span = k->span;
    w.to->sources = k->sources;
    w.to->signature = k->signature;
    w.to->n_work = k->n_work;
    w.to->work = k->work;
    w.to->form = LOOP_LEGAL;
    w.to->target = s->start->target->name;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg arg = k->args.at[i];
        Buffer b = k->bufs.at[arg.buf];
        b.param = (int32_t)i;
        arg.buf = whole_buf(&w, &b, false);
        vec_push(s->arena, &w.to->args, arg);
    }
    int64_t places = 0;
    for (uint32_t p = 0; p < s->parts.n; p++) {
        Arena *scratch = ARENA_NEW(s->arena, Arena);
        arena_init(scratch, s->arena->budget);
        Kernel *part = make_part(s, scratch, &s->parts.at[p]);
        places += part == NULL ? 0 : instr_places(part);
        if (part != NULL) {
            add_part(&w, part);
        }
        if (s->last.arena != scratch) {
            arena_release(scratch);
        }
        if (places > PLACES_MOST) {
            s->why = "its programs have so few loops that their text would be too long";
            s->too_long = true;
            return NULL;
        }
        if (part == NULL) {
            s->why = "a part of it is as long";
            return NULL;
        }
    }
    for (uint32_t i = 0; i < w.blocks.n && w.blocks.n > 1; i++) {
        vec_push(s->arena, &w.shared, w.blocks.at[i]);
    }
    for (uint32_t i = 0; w.blocks.n == 1 && i < w.blocks.at[0]->n_body; i++) {
        vec_push(s->arena, &w.shared, w.blocks.at[0]->body[i]);
    }
    w.to->body = w.shared.at;
    w.to->n_body = w.shared.n;
    return kernel_numbered(s->arena, w.to);
}

/* What a program would have too many of. */
static const char *too_many(const Lower *l)
{
    if (l->task.descriptors) {
        return str_format(l->arena, "%lld DMA descriptors", (long long)NKI_DESCRIPTORS);
    }
    return str_format(l->arena, "%lld instructions", (long long)l->task.most);
}

Kernel *lower_split(const Lower *l, bool last)
{
    Split s = {.start = l, .arena = l->arena, .from = l->from};
    s.crossing = ARENA_ARRAY(l->arena, l->from->bufs.n + 1, bool);
    s.local = ARENA_ARRAY(l->arena, l->from->bufs.n + 1, bool);
    s.shared = (Sym *)(void *)ARENA_ARRAY(l->arena, l->from->bufs.n + 1, Sym);
    s.why = "no cut was found";
    Kernel *made = NULL;
    if (plan(&s) && find_crossing(&s)) {
        made = whole_kernel(&s);
        take_last(&s, (Finished){0});
        if (made != NULL && s.parts.n > 1 && !nki_parts_sound(made)) {
            s.why = "a part reads what another has changed, or writes rows that another has "
                    "written";
            made = NULL;
        }
    }
    if (made == NULL && !s.failed && (last || s.too_long)) {
        diag_limit(&l->ctx->diags, E_LIMIT_SIZE, l->from->span,
                   "kernel '%s' takes more than %s for target '%s' (its loops "
                   "are unrolled), and is not cut into several programs: %s; make two "
                   "kernels of it, or its extents smaller",
                   l->from->name->text, too_many(l), l->target->name, s.why);
    } else if (made != NULL && s.parts.n > 1) {
        Diagnostic *d = diag_warning(&l->ctx->diags, W_SPLIT, l->from->span,
                                     "kernel '%s' is %u device programs: it takes more than %s",
                                     l->from->name->text, s.parts.n, too_many(l));
        diag_help(d, "they run in order as one call; what crosses a cut goes through memory");
        for (uint32_t b = 0; b < l->from->bufs.n; b++) {
            if (s.crossing[b]) {
                spill_warn_crossing(l, b);
            }
        }
    }
    return made;
}
