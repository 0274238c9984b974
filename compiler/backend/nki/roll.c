/* SPDX-License-Identifier: Apache-2.0 */
/* Makes loops of a flat LEGAL kernel: runs of equal statements whose positions grow by the same
 * steps become one loop, short runs first, so that loops nest. A tile that one run alone uses
 * begins in the loop's body; where each run uses another one of several that live on, they
 * become parts of one larger tile, side by side. The instructions and their order stay what
 * they were: the result is compared with the flat kernel, which is kept where they are not, or
 * where larger tiles do not fit.
 *
 * Copies that gather, rows that are spread, transposes of what is there, a bank filled by several batches, boxes of a map: each of these as
 * a loop of its own was built, too, and taken back. While a loop is open nobody knows what its next iteration finds loaded (a transpose of
 * 256^3 took 1.5 times as long, a matrix times a vector 1.9 times), and 42 of 228 kernels had more than 150 lines where 12 have. */
#include "backend/nki/roll.h"
#include "loop/walk.h"

#include <string.h>

#define BODY_MOST 160 /* nodes of a run */
#define WORK_MOST                                                                              \
    ((int64_t)40000000) /* visits of nodes, per kernel, all its parts together                 \
                         */
#define MATCH_VISITS 4  /* of each node of a run, before its repetitions */
#define SLOWER       1.015 /* that joined tiles, which make others wait for room, may be */
#define SHORT        60    /* statements of a text ... */
#define SLOWER_SHORT 1.08  /* ... for which they may be so much slower */
#define PAIR_LEAVES  6     /* statements of a run that pays when there are two */

static bool on_chip(const Roll *r, BufRef b)
{
    return r->k->bufs.at[b].space == SPACE_TILE || r->k->bufs.at[b].space == SPACE_ACC;
}

/* ---- what a run is ---- */

typedef enum RefClass { REF_SAME, REF_OWN, REF_OUTER } RefClass;

/* A run of `length` nodes from `start` and its repetitions, as far as they are known. */
typedef struct Match {
    uint32_t start, length, trips;
    uint32_t n_base, n_ref;
    int64_t *step;       /* [n_base] */
    BufRef *first;       /* [n_ref] of the first run */
    uint8_t *class;      /* [n_ref], RefClass */
    uint32_t *owner;     /* [n_ref] OWN: the first reference to the same tile */
    uint32_t n_families; /* OUTER: tiles that live on, one for each run */
    struct {
        VEC(BufRef) all;
    } * family;
    uint32_t *in_family; /* [n_ref] */
} Match;

static RollNode *node_at(const Roll *r, const Match *m, uint32_t run, uint32_t j)
{
    return r->list.at[m->start + run * m->length + j];
}

static bool same_shape(const RollNode *a, const RollNode *b)
{
    return a->key == b->key && a->kind == b->kind && a->n_base == b->n_base &&
           a->n_ref == b->n_ref;
}

/* Equal nodes, in HBM and on chip positions that have moved by the steps. */
static bool match_positions(Roll *r, Match *m, uint32_t run)
{
    uint32_t slot = 0;
    for (uint32_t j = 0; j < m->length; j++) {
        RollNode *a = node_at(r, m, run - 1, j), *b = node_at(r, m, run, j);
        r->work--;
        if (!same_shape(a, b)) {
            return false;
        }
        roll_refresh(r, a);
        roll_refresh(r, b);
        for (uint32_t v = 0; v < a->n_base; v++, slot++) {
            int64_t step = b->base[v] - a->base[v];
            if (run > 1 && step != m->step[slot]) {
                return false;
            }
            m->step[slot] = step;
        }
    }
    return true;
}

/* An engine's partitions are the same in each run; only copies from and to HBM may move over
 * them. */
static bool steady_partitions(Roll *r, const Match *m)
{
    uint32_t slot = 0;
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *n = node_at(r, m, 0, j);
        bool hbm = false;
        for (uint32_t x = 0; x < n->n_ref; x++) {
            Space space = r->k->bufs.at[n->ref[x].buf].space;
            hbm |= space != SPACE_TILE && space != SPACE_ACC;
        }
        for (uint32_t x = 0; x < n->n_ref && !(hbm && n->kind == STMT_TILE); x++) {
            Space space = r->k->bufs.at[n->ref[x].buf].space;
            bool chip = space == SPACE_TILE || space == SPACE_ACC;
            if (chip && m->step[slot + n->ref[x].slot] != 0) {
                return false;
            }
        }
        slot += n->n_base;
    }
    return true;
}

/* Counts the accesses to each tile in a run. */
static void count_run(Roll *r, const Match *m, uint32_t run)
{
    uint32_t x = 0;
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *n = node_at(r, m, run, j);
        for (uint32_t i = 0; i < n->n_ref; i++, x++) {
            RollBuf *b = &r->buf.at[n->ref[i].buf];
            b->family = b->mark != r->mark ? UINT32_MAX : b->family;
            if (b->mark != r->mark || b->iteration != run) {
                b->mark = r->mark;
                b->iteration = run;
                b->position = x;
                b->count = 0;
            }
            b->count++;
        }
    }
}

/* Is the tile used by the run that was counted last, and by nothing else? */
static bool is_own(const Roll *r, BufRef buf, uint32_t run)
{
    const RollBuf *b = &r->buf.at[buf];
    return on_chip(r, buf) && roll_is_here(r, buf) && b->mark == r->mark &&
           b->iteration == run && b->count == b->uses;
}

static bool same_tile(const Roll *r, BufRef a, BufRef b)
{
    const Buffer *x = &r->k->bufs.at[a], *y = &r->k->bufs.at[b];
    return x->space == y->space && x->dtype == y->dtype && x->rank == 2 && y->rank == 2 &&
           x->extent[0].n == y->extent[0].n && x->extent[1].n == y->extent[1].n &&
           r->buf.at[a].sums == r->buf.at[b].sums;
}

/* May the tile become a part of a larger one? */
static bool can_join(const Roll *r, BufRef b, BufRef with)
{
    return r->merge > 0 && r->k->bufs.at[b].space == SPACE_TILE && roll_is_here(r, b) &&
           same_tile(r, b, with);
}

/* A tile that lives on: it belongs to one family, and to one run of it. */
static bool join_family(Roll *r, Match *m, uint32_t family, uint32_t run, BufRef buf)
{
    RollBuf *b = &r->buf.at[buf];
    if (b->family != UINT32_MAX) {
        return b->family == family && m->family[family].all.n > run &&
               m->family[family].all.at[run] == buf;
    }
    if (m->family[family].all.n != run ||
        !can_join(r, buf, run == 0 ? buf : m->family[family].all.at[0])) {
        return false;
    }
    b->family = family;
    vec_push(r->arena, &m->family[family].all, buf);
    return true;
}

/* What each reference of the first run is; the second run's is `b`. */
static bool classify(Roll *r, Match *m, uint32_t x, BufRef a, BufRef b)
{
    m->first[x] = a;
    if (a == b) {
        m->class[x] = REF_SAME;
        return true;
    }
    if (m->class[x] == REF_OWN) {
        return true;
    }
    if (!r->outer || !on_chip(r, a)) {
        return false;
    }
    uint32_t family = r->buf.at[a].family;
    m->in_family[x] = family != UINT32_MAX ? family : m->n_families++;
    return join_family(r, m, m->in_family[x], 0, a);
}

/* The first run alone: which tiles could be its own. */
static void match_first(Roll *r, Match *m)
{
    uint32_t x = 0;
    r->mark++;
    count_run(r, m, 0);
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *n = node_at(r, m, 0, j);
        for (uint32_t i = 0; i < n->n_ref; i++, x++) {
            m->class[x] = is_own(r, n->ref[i].buf, 0) ? REF_OWN : REF_OUTER;
            m->owner[x] = r->buf.at[n->ref[i].buf].position;
        }
    }
}

static bool match_refs(Roll *r, Match *m, uint32_t run)
{
    uint32_t x = 0;
    count_run(r, m, run);
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *a = node_at(r, m, 0, j), *b = node_at(r, m, run, j);
        for (uint32_t i = 0; i < a->n_ref; i++, x++) {
            BufRef have = b->ref[i].buf;
            if (run == 1 && !classify(r, m, x, a->ref[i].buf, have)) {
                return false;
            }
            bool ok = false;
            switch ((RefClass)m->class[x]) {
            case REF_SAME:
                ok = have == m->first[x];
                break;
            case REF_OWN:
                ok = is_own(r, have, run) && r->buf.at[have].position == m->owner[x] &&
                     same_tile(r, have, m->first[x]);
                break;
            case REF_OUTER:
                ok = join_family(r, m, m->in_family[x], run, have);
                break;
            }
            if (!ok) {
                return false;
            }
        }
    }
    return true;
}

static void match_room(Roll *r, Match *m)
{
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *n = node_at(r, m, 0, j);
        m->n_base += n->n_base;
        m->n_ref += n->n_ref;
    }
    m->step = ARENA_ARRAY(r->arena, m->n_base, int64_t);
    m->first = ARENA_ARRAY(r->arena, m->n_ref, BufRef);
    m->class = ARENA_ARRAY(r->arena, m->n_ref, uint8_t);
    m->owner = ARENA_ARRAY(r->arena, m->n_ref, uint32_t);
    m->in_family = ARENA_ARRAY(r->arena, m->n_ref, uint32_t);
    m->family = arena_array(r->arena, m->n_ref, sizeof *m->family);
}

/* How often the run repeats. */
static void match_find(Roll *r, Match *m)
{
    m->trips = 1;
    r->work -= MATCH_VISITS * (int64_t)m->length;
    match_room(r, m);
    match_first(r, m);
    while (m->start + (m->trips + 1) * m->length <= r->list.n && r->work > 0) {
        if (!match_positions(r, m, m->trips) || (m->trips == 1 && !steady_partitions(r, m)) ||
            !match_refs(r, m, m->trips)) {
            break;
        }
        m->trips++;
    }
    for (uint32_t f = 0; f < m->n_families; f++) { /* of a run that failed half way */
        m->family[f].all.n = m->family[f].all.n > m->trips ? m->trips : m->family[f].all.n;
    }
}

/* ---- tiles that live on ---- */

static bool fits(const Roll *r, BufRef buf, uint32_t n)
{
    const Buffer *b = &r->k->bufs.at[buf];
    return sat_mul(sat_mul(b->extent[1].n, n), dtype_bytes(b->dtype)) <= r->merge;
}

static bool may_join_all(Roll *r, const Match *m)
{
    for (uint32_t f = 0; f < m->n_families; f++) {
        const BufRef *part = m->family[f].all.at;
        if (!fits(r, part[0], m->trips) || !roll_may_join(r, part, m->trips)) {
            return false;
        }
    }
    return true;
}

/* ---- the loop ---- */

uint64_t roll_loop_key(const RollNode *loop)
{
    uint64_t key = hash_mix((uint64_t)STMT_FOR, (uint64_t)loop->trips);
    for (uint32_t j = 0; j < loop->n_body; j++) {
        key = hash_mix(key, loop->body[j]->key);
    }
    return hash_bytes(key, loop->step, loop->n_base * sizeof *loop->step);
}

static void put_body(Roll *r, const Match *m, RollNode *loop)
{
    VEC(int64_t) base = {0}, step = {0};
    VEC(RollRef) ref = {0};
    RollNodes body = {0};
    loop->own = ARENA_ARRAY(r->arena, m->n_ref, bool);
    for (uint32_t j = 0; j < m->length; j++) {
        RollNode *n = node_at(r, m, 0, j), *next = node_at(r, m, 1, j);
        roll_refresh(r, n);
        roll_refresh(r, next);
        for (uint32_t x = 0; x < n->n_ref; x++) {
            RollRef moved = n->ref[x];
            moved.slot += base.n;
            loop->own[ref.n] = m->class[ref.n] == REF_OWN;
            vec_push(r->arena, &ref, moved);
        }
        for (uint32_t v = 0; v < n->n_base; v++) {
            int64_t by = next->base[v] - n->base[v];
            vec_push(r->arena, &base, n->base[v]);
            vec_push(r->arena, &step, by);
        }
        loop->leaves += n->leaves;
        vec_push(r->arena, &body, n);
    }
    loop->base = base.at;
    loop->n_base = base.n;
    loop->step = step.at;
    loop->ref = ref.at;
    loop->n_ref = ref.n;
    loop->body = body.at;
    loop->n_body = body.n;
}

/* A loop around one loop that goes on where that ends is one loop. */
static void flatten(RollNode *loop)
{
    const RollNode *inner = loop->body[0];
    if (loop->n_body != 1 || inner->kind != STMT_FOR) {
        return;
    }
    for (uint32_t v = 0; v < loop->n_base; v++) {
        if (loop->step[v] != inner->trips * inner->step[v]) {
            return;
        }
    }
    for (uint32_t x = 0; x < loop->n_ref; x++) {
        if (loop->own[x] && !inner->own[x]) {
            return;
        }
    }
    loop->trips *= inner->trips;
    loop->step = inner->step;
    loop->own = inner->own;
    loop->body = inner->body;
    loop->n_body = inner->n_body;
}

/* The runs in the list give way to one loop. */
static void replace(Roll *r, const Match *m)
{
    for (uint32_t f = 0; f < m->n_families; f++) {
        (void)roll_join(r, m->family[f].all.at, m->trips);
    }
    for (uint32_t run = 1; run < m->trips; run++) {
        for (uint32_t j = 0; j < m->length; j++) {
            RollNode *n = node_at(r, m, run, j);
            roll_refresh(r, n);
            for (uint32_t x = 0; x < n->n_ref; x++) {
                r->buf.at[n->ref[x].buf].uses--;
            }
        }
    }
    RollNode *loop = ARENA_NEW(r->arena, RollNode);
    *loop = (RollNode){.kind = STMT_FOR, .trips = m->trips};
    put_body(r, m, loop);
    flatten(loop);
    loop->key = roll_loop_key(loop);
    r->list.at[m->start] = loop;
    for (uint32_t i = m->start + 1; i < m->start + m->trips * m->length; i++) {
        r->list.at[i] = NULL;
    }
}

/* Is a loop shorter to read than what it stands for? */
static bool loop_pays(const Roll *r, const Match *m)
{
    uint32_t leaves = 0;
    for (uint32_t j = 0; j < m->length; j++) {
        const RollNode *n = node_at(r, m, 0, j);
        leaves += n->kind == STMT_FOR ? PAIR_LEAVES : n->leaves;
    }
    return m->trips > 2 || leaves >= PAIR_LEAVES;
}

/* Makes a loop at `start` if the run repeats; the node after it. */
static uint32_t roll_at(Roll *r, uint32_t start, uint32_t length)
{
    for (uint32_t j = 0; j < length; j++, r->work--) { /* most end here, at once */
        if (!same_shape(r->list.at[start + j], r->list.at[start + length + j])) {
            return start + 1;
        }
    }
    ArenaMark before_match = arena_mark(r->arena);
    Match m = {.start = start, .length = length};
    match_find(r, &m);
    if (m.trips < 2 || !loop_pays(r, &m) || !may_join_all(r, &m)) {
        arena_reset(r->arena, before_match);
        return start + 1;
    }
    replace(r, &m);
    return start + m.trips * length;
}

/* One pass over the list for runs of one length; true when something became a loop. */
static bool sweep(Roll *r, uint32_t length)
{
    bool any = false;
    uint32_t n = r->list.n;
    for (uint32_t at = 0; at + 2 * length <= n && r->work > 0;) {
        uint32_t next = at + 1;
        for (uint32_t part = 1; part <= length && next == at + 1; part++) {
            if (length % part == 0) { /* an earlier loop of this sweep may allow shorter runs */
                next = roll_at(r, at, part);
            }
        }
        any |= next > at + 1;
        at = next;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (r->list.at[i] != NULL) {
            r->list.at[kept++] = r->list.at[i];
        }
    }
    r->list.n = kept;
    return any;
}

/* The shortest runs first, and again from them after each change. Tiles that began before the
 * runs that use them are joined last: most are by then, where they began. */
static void roll_all(Roll *r)
{
    uint32_t length = 1;
    while (length <= BODY_MOST && 2 * length <= r->list.n) {
        bool changed = sweep(r, length);
        r->outer &= !changed;
        length = changed ? 1 : length + 1;
        if (!r->outer && (length > BODY_MOST || 2 * length > r->list.n)) {
            r->outer = true;
            length = 1;
        }
    }
}

static void find_users(Roll *r, RollNode *const *list, uint32_t n_list)
{
    for (uint32_t i = 0; i < n_list; i++) {
        RollNode *n = list[i];
        if (n->given != NULL) {
            find_users(r, n->body, n->n_body);
        }
        for (uint32_t x = 0; x < n->n_ref && n->given == NULL; x++) {
            vec_push(r->arena, &r->users[n->ref[x].buf], n);
        }
    }
}

void roll_list(Roll *r)
{
    if (r->stream > 0) { /* first: what is in given loops uses tiles that began before them */
        for (uint32_t i = 0; i < r->list.n; i++) {
            roll_refresh(r, r->list.at[i]);
        }
        r->users = (RollNodes *)arena_array(r->arena, r->k->bufs.n, sizeof *r->users);
        find_users(r, r->list.at, r->list.n);
        roll_streams(r, r->stream, r->operands);
        roll_banks(r);
        r->users = NULL;
    }
    for (uint32_t i = 0; i < r->list.n; i++) {
        if (r->list.at[i]->given != NULL) {
            roll_given(r, r->list.at[i]);
        }
    }
    r->outer = false;
    roll_all(r);
    for (uint32_t i = 0; i < r->list.n; i++) {
        roll_refresh(r, r->list.at[i]);
    }
}

bool roll_is_here(const Roll *r, BufRef buf)
{
    return r->buf.at[buf].depth == r->depth;
}

/* How tiles may be joined: to so large ones, as shares of SBUF. */
typedef struct RollTry {
    int64_t merge, stream;
    bool operands;
} RollTry;

static Kernel *roll_with(Ctx *ctx, Arena *arena, const Kernel *k, const NkiChip *chip,
                         const RollTry *how, int64_t work)
{
    Roll r = {.ctx = ctx, .arena = arena, .chip = chip, .from = k};
    r.merge = how->merge == 0 ? 0 : chip->sbuf_bytes / how->merge;
    r.stream = how->stream == 0 ? 0 : chip->sbuf_bytes / how->stream;
    r.operands = how->operands;
    r.k = kernel_like(arena, k);
    r.work = work;
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        RollBuf info = {.to = b, .family = UINT32_MAX};
        vec_push(arena, &r.buf, info);
    }
    roll_names(&r);
    roll_nodes(&r);
    return roll_kernel(&r);
}

#define BRIEF                                                                                  \
    3 /* iterations of loops that the kernel has, by which what is made of their bodies is judged */

/* Where the loop of that name ends in `like`, or where it does in `k` if there is none; null: in brief. */
static int64_t limit_of(const Kernel *k, VarRef v, const Kernel *like)
{
    StmtWalk w;
    const Kernel *in = like == NULL ? k : like;
    int64_t limit = 0;
    for (int pass = 0; pass < 2 && limit == 0; pass++) {
        for (const Stmt *s = stmt_first(&w, in->body, in->n_body); s != NULL;
             s = stmt_next(&w)) {
            bool same = s->kind == STMT_FOR && in->vars.at[s->var].name == k->vars.at[v].name;
            limit = same ? s->range.limit.n : limit;
        }
        in = k;
    }
    return like == NULL && limit > BRIEF ? BRIEF : limit;
}

/* A copy of the statements whose loops end where those of `like` do, by their variables' names; null: after BRIEF iterations. */
static Stmt **with_limits(Arena *a, const Kernel *k, Stmt *const *body, uint32_t n,
                          const Kernel *like)
{
    Stmt **out = (Stmt **)arena_array(a, n + 1, sizeof *out);
    StmtWalk w;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = arena_copy(a, body[i], sizeof *body[i]);
        if (!stmt_has_body(body[i])) {
            continue;
        }
        out[i]->body = with_limits(a, k, body[i]->body, body[i]->n_body, like);
        Dim *limit = &out[i]->range.limit;
        bool loop = body[i]->kind == STMT_FOR;
        Guard *guard = body[i]->n_guards == 0
                           ? NULL
                           : arena_copy(a, body[i]->guard, body[i]->n_guards * sizeof *guard);
        for (uint32_t g = 0; g < body[i]->n_guards; g++) { /* from the end of the loop on */
            guard[g].hi += limit_of(k, guard[g].var, like) - limit_of(k, guard[g].var, k);
        }
        out[i]->guard = guard;
        if (loop && (body[i]->window != NULL || body[i]->range.start.n > 0)) {
            continue; /* those around it say how many iterations it has */
        }
        if (loop && like == NULL) {
            limit->n = limit->n < BRIEF ? limit->n : BRIEF;
        } else if (loop) {
            Sym name = k->vars.at[body[i]->var].name;
            for (const Stmt *s = stmt_first(&w, like->body, like->n_body); s != NULL;
                 s = stmt_next(&w)) {
                bool same = s->kind == STMT_FOR && like->vars.at[s->var].name == name;
                limit->n = same ? s->range.limit.n : limit->n;
            }
        }
    }
    return out;
}

static Kernel *roll_brief(Ctx *ctx, Arena *arena, const Kernel *k, const NkiChip *chip,
                          uint32_t parts)
{
    static const RollTry tries[3] = {{1, 1, true}, {2, 4, false}, {0, 0, false}};
    NkiCost cost;
    double flat = nki_measure(k, chip, &cost) ? cost.predicted_us : 0;
    for (int i = 0; i < 3; i++) {
        ArenaMark before = arena_mark(arena);
        Kernel *rolled = roll_with(ctx, arena, k, chip, &tries[i], WORK_MOST / parts);
        bool known = i == 0 ? nki_measure(rolled, chip, &cost) : nki_cost(rolled, chip, &cost);
        double most = flat * (instr_places(rolled) <= SHORT ? SLOWER_SHORT : SLOWER);
        if (known && cost.sbuf_peak <= chip->sbuf_bytes && cost.psum_peak <= NKI_PSUM_BANKS &&
            roll_same(arena, k, rolled) && (i > 0 || cost.predicted_us <= most)) {
            return rolled;
        }
        arena_reset(arena, before);
    }
    return NULL;
}

Kernel *nki_roll(Ctx *ctx, Arena *arena, const Kernel *k, const NkiChip *chip, uint32_t parts)
{
    Kernel *brief = kernel_like(arena, k);
    brief->body = with_limits(arena, k, k->body, k->n_body, NULL);
    Kernel *out = roll_brief(ctx, arena, brief, chip, parts);
    if (out != NULL) {
        out->body = with_limits(arena, out, out->body, out->n_body, k);
    }
    return out;
}
