/* SPDX-License-Identifier: Apache-2.0 */
/* How long a LEGAL kernel takes, by the cost model of the emulator (runtime/nki_emulator/cost.py), which schedules the printed
 * text in the same way: every engine runs its instructions in program order; an instruction waits for the columns that it reads and
 * overwrites, with a delay for a semaphore between engines; a tile waits until there is room in SBUF or PSUM; loads and stores are
 * two queues, each with a bandwidth, that share a larger one. */
#include "backend/nki/cores.h"

#include <string.h>

#define DMA_LATENCY_US   1.3
#define SEMAPHORE_CYCLES 64

enum { QUEUE_LOAD = NKI_DMA, QUEUE_STORE, QUEUES }; /* after the engines */

/* A tile from its allocation on, or a tensor in HBM, which has one column. */
typedef struct Tile {
    uint32_t slot; /* of the columns' times */
    uint32_t last; /* record that uses it last */
    int64_t room;  /* bytes of a partition, banks; 0: in HBM */
    bool psum, alive;
    uint32_t written_by, read_by; /* queues, a bit each */
} Tile;

/* Times of the columns of a tile: column c has that of the last run that begins at or before it. */
typedef struct ColumnRun {
    int64_t first;
    double at;
} ColumnRun;

typedef struct ColumnTimes {
    VEC(ColumnRun) runs;
} ColumnTimes;

typedef struct Columns {
    ColumnTimes written, read;
} Columns;

typedef struct Used {
    uint32_t tile;
    int32_t low, high; /* columns */
    bool result;
} Used;

/* An instruction that is run, and what it reads and writes: Timing.used from `first` to that of the next one. There are many. */
typedef struct Record {
    uint32_t queue, first;
    double duration, shared; /* of a copy: of its own direction, and of the line of all */
} Record;

/* Room of a space: what died, and when, soonest first. */
typedef struct Death {
    double at;
    int64_t given;
} Death;

typedef struct Pool {
    int64_t room;
    VEC(Death) dying;
} Pool;

typedef struct Busy {
    double from, to;
} Busy;

typedef struct Timing {
    const Kernel *k;
    const NkiChip *chip;
    Arena *arena;
    NkiBalance *balance; /* of the text, which all cores have */
    bool *came_in;       /* [instr_places] */
    uint32_t *tile;      /* [slots]: the tile that is there now, and one */
    Columns *columns;    /* [slots] */
    VEC(Tile) tiles;
    VEC(Record) records;
    VEC(Used) used;
    int table; /* of the Scalar engine */
    double clock[QUEUES], end;
    Pool pool[2]; /* SBUF, PSUM */
    VEC(Busy) line;
} Timing;

/* ---- records ---- */

/* Slots of a buffer: one for each bank; in HBM the first is what came in, the second what is written. */
static uint32_t slot_of(BufRef buf, uint32_t bank)
{
    return buf * NKI_PSUM_BANKS + bank;
}

static void times_clear(Arena *a, ColumnTimes *t)
{
    t->runs.n = 0;
    vec_push(a, &t->runs, ((ColumnRun){0, 0.0}));
}

/* The run of a column. */
static uint32_t times_run(const ColumnTimes *t, int64_t column)
{
    uint32_t low = 0, high = t->runs.n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        low = t->runs.at[mid].first <= column ? mid : low;
        high = t->runs.at[mid].first <= column ? high : mid;
    }
    return low;
}

static double times_latest(const ColumnTimes *t, int64_t low, int64_t high)
{
    double latest = 0.0;
    for (uint32_t i = times_run(t, low); i < t->runs.n && t->runs.at[i].first <= high; i++) {
        latest = t->runs.at[i].at > latest ? t->runs.at[i].at : latest;
    }
    return latest;
}

/* A run begins at the column; its number. */
static uint32_t times_cut(Arena *a, ColumnTimes *t, int64_t column)
{
    uint32_t i = times_run(t, column);
    if (t->runs.at[i].first == column) {
        return i;
    }
    vec_push(a, &t->runs, ((ColumnRun){0, 0.0}));
    memmove(t->runs.at + i + 1, t->runs.at + i, (t->runs.n - 1 - i) * sizeof *t->runs.at);
    t->runs.at[i + 1].first = column;
    return i + 1;
}

/* The columns have that time at least. */
static void times_raise(Arena *a, ColumnTimes *t, int64_t low, int64_t high, double at)
{
    uint32_t from = times_cut(a, t, low), to = times_cut(a, t, high + 1), left = from;
    for (uint32_t i = from; i < to; i++) {
        double now = t->runs.at[i].at > at ? t->runs.at[i].at : at;
        if (left == from || t->runs.at[left - 1].at != now) {
            t->runs.at[left++] = (ColumnRun){t->runs.at[i].first, now};
        }
    }
    memmove(t->runs.at + left, t->runs.at + to, (t->runs.n - to) * sizeof *t->runs.at);
    t->runs.n -= to - left;
}

static Tile new_tile(const Timing *s, const Operand *o, uint32_t slot, int64_t bank)
{
    const Buffer *b = &s->k->bufs.at[o->buf];
    Tile t = {.slot = slot, .psum = b->space == SPACE_ACC};
    Columns *c = &s->columns[slot];
    if (c->written.runs.n == 0) {
        times_clear(s->arena, &c->written);
        times_clear(s->arena, &c->read);
    }
    if (o->on_chip) {
        int64_t bytes = (bank > 0 ? bank : b->extent[1].n) * dtype_bytes(b->dtype);
        t.room = t.psum ? (bytes + NKI_PSUM_BANK - 1) / NKI_PSUM_BANK : (bytes + 3) / 4 * 4;
    }
    return t;
}

/* The next record uses the operand. */
static void use(Timing *s, const Operand *o, bool result, bool came_in)
{
    int64_t bank = o->on_chip ? nki_bank(s->k, o->buf) : 0;
    uint32_t at = bank > 0 ? (uint32_t)(o->f / bank) : !o->on_chip && !came_in ? 1 : 0;
    uint32_t slot = slot_of(o->buf, at);
    if (s->tile[slot] == 0) {
        vec_push(s->arena, &s->tiles, new_tile(s, o, slot, bank));
        s->tile[slot] = s->tiles.n;
    }
    Used u = {.tile = s->tile[slot] - 1, .result = result};
    if (o->on_chip) {
        int64_t low = bank > 0 ? o->f % bank : o->f, high = low + operand_reach(o);
        CHECK(low >= 0 && high <= INT32_MAX); /* a partition has fewer */
        u.low = (int32_t)low;
        u.high = (int32_t)high;
    }
    vec_push(s->arena, &s->used, u);
    s->tiles.at[u.tile].last = s->records.n;
}

static double engine_us(Timing *s, const Instr *i, uint32_t *queue)
{
    const double ghz[4] = {s->chip->tensor_ghz, s->chip->vector_ghz, s->chip->scalar_ghz,
                           s->chip->gpsimd_ghz};
    bool scalar = nki_on_scalar(s->balance, s->k, s->chip, i);
    int64_t cycles = 0;
    int engine = nki_instr_cycles(s->k, s->chip, i, scalar, &cycles);
    *queue = (uint32_t)engine;
    return (double)cycles / (ghz[engine] * 1000) + nki_table_us(&s->table, i);
}

static bool record(void *user, const Instr *i)
{
    Timing *s = user;
    Record r = {.first = s->used.n};
    if (i->kind == INSTR_ALLOC) {
        for (uint32_t bank = 0; bank < NKI_PSUM_BANKS; bank++) {
            s->tile[slot_of(i->dst.buf, bank)] = 0;
        }
    }
    if (i->kind == INSTR_ALLOC) {
        return true;
    }
    bool dma = i->kind == INSTR_DMA;
    if (dma) {
        int64_t bytes = 0, descriptors = 0;
        r.queue = i->dst.on_chip ? QUEUE_LOAD : QUEUE_STORE;
        double charged = nki_dma_charge(s->k, i, &bytes, &descriptors);
        r.duration = charged / (s->chip->dma_gbps * 1000);
        r.shared = charged / (s->chip->dma_both_gbps * 1000);
    } else {
        r.duration = engine_us(s, i, &r.queue);
    }
    use(s, &i->dst, true, false);
    if (instr_reads(i)) {
        use(s, &i->a, false, dma && s->came_in[i->place]);
    }
    if (instr_reads_two(i)) {
        use(s, &i->b, false, false);
    }
    if (i->s0.given && i->s0.is_tile) {
        use(s, &i->s0.tile, false, false);
    }
    if (i->s1.given && i->s1.is_tile) {
        use(s, &i->s1.tile, false, false);
    }
    if (i->sums) {
        use(s, &i->sum, true, false);
    }
    if (i->kind == INSTR_REDUCE && r.queue == NKI_SCALAR) { /* beside a copy onto itself */
        use(s, &i->a, true, false);
    }
    if (i->adds) {
        use(s, &i->sum, false, false);
    }
    vec_push(s->arena, &s->records, r);
    return true;
}

/* The copy of an inout argument with which the text begins. */
static void record_copy(Timing *s, BufRef buf)
{
    const Buffer *b = &s->k->bufs.at[buf];
    int64_t bytes = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        bytes = sat_mul(bytes, b->extent[d].n);
    }
    Operand o = {.buf = buf};
    double charged = (double)(bytes < NKI_SHORT_RUN ? NKI_SHORT_RUN : bytes);
    Record r = {.queue = QUEUE_STORE,
                .first = s->used.n,
                .duration = charged / (s->chip->dma_gbps * 1000),
                .shared = charged / (s->chip->dma_both_gbps * 1000)};
    use(s, &o, true, false);
    use(s, &o, false, true);
    vec_push(s->arena, &s->records, r);
}

/* ---- room and bandwidth ---- */

/* When so much is free. */
static double pool_take(Pool *p, int64_t amount)
{
    double ready = 0.0;
    uint32_t used = 0;
    while (p->room < amount && used < p->dying.n) {
        ready = p->dying.at[used].at > ready ? p->dying.at[used].at : ready;
        p->room += p->dying.at[used++].given;
    }
    for (uint32_t i = used; i < p->dying.n; i++) {
        p->dying.at[i - used] = p->dying.at[i];
    }
    p->dying.n -= used;
    p->room -= amount;
    return ready;
}

static void pool_give(Arena *arena, Pool *p, int64_t amount, double at)
{
    vec_push(arena, &p->dying, ((Death){at, amount}));
    for (uint32_t i = p->dying.n - 1; i > 0 && p->dying.at[i - 1].at > at; i--) {
        p->dying.at[i] = p->dying.at[i - 1];
        p->dying.at[i - 1] = (Death){at, amount};
    }
}

/* A transfer takes what earlier ones have left free from `start` on; returns when it ends. */
static double line_take(Timing *s, double start, double duration)
{
    uint32_t at = 0, n = s->line.n;
    while (at < n && s->line.at[n - 1 - at].to > start) { /* most begin near the end */
        at++;
    }
    at = n - at;
    uint32_t first = at;
    double now = start, left = duration, begin = -1.0;
    for (; at < n; at++) {
        double gap = s->line.at[at].from - now;
        if (gap > 0) {
            begin = begin < 0 ? now : begin;
            if (gap >= left) {
                break;
            }
            left -= gap;
        }
        now = s->line.at[at].to;
    }
    begin = begin < 0 ? now : begin;
    Busy busy = {begin, now + left};
    double end = busy.to;
    if (first > 0 && s->line.at[first - 1].to >= begin) {
        first--;
    }
    busy.from =
        first < at && s->line.at[first].from < begin ? s->line.at[first].from : busy.from;
    if (at < n && s->line.at[at].from <= end) {
        busy.to = s->line.at[at++].to;
    }
    if (first == at) {
        vec_push(s->arena, &s->line, busy);
        memmove(s->line.at + first + 1, s->line.at + first, (n - first) * sizeof busy);
    } else {
        memmove(s->line.at + first + 1, s->line.at + at, (n - at) * sizeof busy);
        s->line.n -= at - first - 1;
    }
    s->line.at[first] = busy;
    return end;
}

/* ---- times ---- */

/* From when on earlier uses of the columns let an instruction of this queue begin. A queue needs no semaphore with itself, and does
 * not wait where order is enough. */
static double after(const Timing *s, uint32_t queue, const ColumnTimes *times, const Used *u,
                    uint32_t by, bool in_order)
{
    bool alone = by == 1u << queue;
    if (by == 0 || (alone && in_order)) {
        return 0.0;
    }
    double latest = times_latest(times, u->low, u->high);
    double delay = alone ? 0.0 : SEMAPHORE_CYCLES / (s->chip->vector_ghz * 1000);
    return latest > 0.0 ? latest + delay : 0.0;
}

static uint32_t used_end(const Timing *s, uint32_t at)
{
    return at + 1 < s->records.n ? s->records.at[at + 1].first : s->used.n;
}

static double begins(Timing *s, uint32_t at)
{
    const Record *r = &s->records.at[at];
    double start = s->clock[r->queue];
    for (uint32_t i = r->first; i < used_end(s, at); i++) {
        const Used *u = &s->used.at[i];
        Tile *t = &s->tiles.at[u->tile];
        Columns *c = &s->columns[t->slot];
        double ready = 0.0;
        if (t->room > 0 && !t->alive) {
            t->alive = true;
            ready = pool_take(&s->pool[t->psum], t->room);
            start = ready > start ? ready : start;
            times_clear(s->arena, &c->written);
            times_clear(s->arena, &c->read);
        }
        if (u->result && t->room == 0) {
            continue; /* stores go to different places of a tensor in HBM */
        }
        ready = after(s, r->queue, &c->written, u, t->written_by, u->result);
        start = ready > start ? ready : start;
        ready = u->result ? after(s, r->queue, &c->read, u, t->read_by, true) : 0.0;
        start = ready > start ? ready : start;
    }
    return start;
}

static void place(Timing *s, uint32_t at)
{
    const Record *r = &s->records.at[at];
    bool dma = r->queue == QUEUE_LOAD || r->queue == QUEUE_STORE;
    double start = begins(s, at);
    double end = start + r->duration, free = dma ? line_take(s, start, r->shared) : 0.0;
    end = free > end ? free : end;
    double done = end + (dma ? DMA_LATENCY_US : 0.0);
    s->clock[r->queue] = end;
    s->end = done > s->end ? done : s->end;
    for (uint32_t i = r->first; i < used_end(s, at); i++) {
        const Used *u = &s->used.at[i];
        Tile *t = &s->tiles.at[u->tile];
        Columns *c = &s->columns[t->slot];
        times_raise(s->arena, u->result ? &c->written : &c->read, u->low, u->high, done);
        *(u->result ? &t->written_by : &t->read_by) |= 1u << r->queue;
        if (t->last == at && t->room > 0 && t->alive) {
            pool_give(s->arena, &s->pool[t->psum], t->room, done);
            t->alive = false;
        }
    }
}

/* When the last instruction of a core is done. */
static double core_ends(const Kernel *k, const NkiChip *chip, int64_t core, NkiBalance *balance)
{
    Arena scratch;
    arena_init(&scratch, k->arena->budget);
    size_t slots = (size_t)(k->bufs.n + 1) * NKI_PSUM_BANKS;
    Timing s = {.k = k, .chip = chip, .arena = &scratch, .balance = balance};
    s.came_in = ARENA_ARRAY(&scratch, instr_places(k) + 1, bool);
    s.tile = ARENA_ARRAY(&scratch, slots, uint32_t);
    s.columns = ARENA_ARRAY(&scratch, slots, Columns);
    s.pool[0].room = chip->sbuf_bytes;
    s.pool[1].room = NKI_PSUM_BANKS;
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (nki_copied(k, k->args.at[i].buf, s.came_in)) {
            record_copy(&s, k->args.at[i].buf);
        }
    }
    const Stmt *bad = NULL;
    const char *why = NULL;
    CHECK(instr_walk_core(k, core, record, &s, &bad, &why));
    for (uint32_t r = 0; r < s.records.n; r++) {
        place(&s, r);
    }
    double end = s.end;
    arena_release(&scratch);
    return end;
}

static double predicted_us(const Kernel *k, const NkiChip *chip, NkiBalance *balance,
                           const NkiCost *cost)
{
    double end = cost->busy_us[cost->bound_by];
    for (int64_t core = 0; core < nki_lnc(k); core++) {
        double own = core_ends(k, chip, core, balance);
        end = own > end ? own : end;
    }
    return end;
}

bool nki_measure(const Kernel *k, const NkiChip *chip, NkiCost *out)
{
    ArenaMark before = arena_mark(k->arena);
    NkiBalance balance = nki_balance(k, chip);
    bool ok = nki_count(k, chip, &balance, out);
    out->predicted_us = ok ? predicted_us(k, chip, &balance, out) : 0.0;
    arena_reset(k->arena, before);
    return ok;
}
