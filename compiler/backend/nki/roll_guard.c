/* SPDX-License-Identifier: Apache-2.0 */
/* Loops with stage guards. The statements before a loop, or after it, may be one more of its
 * iterations in which some of its statements are left out or a few more are run: the first
 * block loads what all blocks share, a pipeline begins with its first stage alone. They become
 * part of the loop, and what is not in all iterations is guarded. Statements of both are put
 * side by side in their order, such that as many as possible are the same; loops of equal trips
 * may differ inside, and are put together likewise. */
#include "backend/nki/roll.h"

#include <string.h>

#define WINDOW   24 /* nodes that are tried as one more iteration */
#define BODY     48 /* nodes of a loop that is tried */
#define DEPTH    6  /* of loops in each other */
#define NOBODY   UINT32_MAX
#define GUARDING 1 /* lines of a guard */

/* A node with its numbers where it stands: in the first iterations of the loops around it. What they grow by, and which tiles
 * are an iteration's own, by loop: the one that grows, then those within it. Null for the first, of what is to join it. */
typedef struct Item {
    RollNode *node;
    const int64_t *base;
    const RollRef *ref;
    const int64_t *step[DEPTH];
    const bool *own[DEPTH];
} Item;

typedef VEC(Item) Items;

typedef struct Guarding {
    Roll *r;
    RollNode *loop;
    bool before; /* is the new iteration the first one? else the last */
    /* of the window at hand */
    uint64_t mark;
    uint32_t level; /* loops between the loop that grows and the items at hand */
} Guarding;

/* ---- items ---- */

/* What is in a loop, which stands where `at` does. */
static Items items_of(const Guarding *g, const Item *at)
{
    Items out = {0};
    const RollNode *n = at->node;
    uint32_t v = 0, x = 0;
    for (uint32_t i = 0; i < n->n_body; i++) {
        Item item = {n->body[i], at->base + v, at->ref + x, {NULL}, {NULL}};
        for (uint32_t d = 0; d <= g->level; d++) {
            item.step[d] = at->step[d] == NULL ? NULL : at->step[d] + v;
            item.own[d] = at->own[d] == NULL ? NULL : at->own[d] + x;
        }
        item.step[g->level + 1] = n->step + v;
        item.own[g->level + 1] = n->own + x;
        vec_push(g->r->arena, &out, item);
        v += n->body[i]->n_base;
        x += n->body[i]->n_ref;
    }
    return out;
}

static const RollGuard *guard_of(const RollNode *n, uint32_t up)
{
    for (uint32_t i = 0; i < n->n_guards; i++) {
        if (n->guard[i].up == up) {
            return &n->guard[i];
        }
    }
    return NULL;
}

/* Are all guards equal but those of the loop that grows? */
static bool same_guards(const Guarding *g, const RollNode *p, const RollNode *b)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < b->n_guards; i++) {
        const RollGuard *x = &b->guard[i];
        if (x->up == g->level) {
            continue;
        }
        const RollGuard *y = guard_of(p, x->up);
        if (y == NULL || y->lo != x->lo || y->hi != x->hi) {
            return false;
        }
        others++;
    }
    return others == p->n_guards;
}

/* Is the statement also in the iteration beside the new one? */
static bool is_beside(const Guarding *g, const RollNode *b)
{
    const RollGuard *x = guard_of(b, g->level);
    return x == NULL || (g->before ? x->lo == 0 : x->hi == g->loop->trips);
}

/* ---- what can be the same ---- */

static bool is_tile(const Roll *r, BufRef b)
{
    return r->k->bufs.at[b].space == SPACE_TILE || r->k->bufs.at[b].space == SPACE_ACC;
}

/* Are all uses of the tile in the window? */
static bool is_own(const Guarding *g, BufRef b)
{
    const RollBuf *buf = &g->r->buf.at[b];
    return is_tile(g->r, b) && buf->mark == g->mark && buf->count == buf->uses;
}

static bool same_kind_of_tile(const Roll *r, BufRef a, BufRef b)
{
    const Buffer *x = &r->k->bufs.at[a], *y = &r->k->bufs.at[b];
    return x->space == y->space && x->dtype == y->dtype && x->extent[0].n == y->extent[0].n &&
           x->extent[1].n == y->extent[1].n && r->buf.at[a].banks == r->buf.at[b].banks &&
           (r->buf.at[a].fill == NULL) == (r->buf.at[b].fill == NULL);
}

static bool same_numbers(const Guarding *g, const Item *p, const Item *b)
{
    int64_t trips = g->before ? -1 : g->loop->trips;
    for (uint32_t v = 0; v < p->node->n_base; v++) {
        bool ok = p->base[v] == b->base[v] + trips * b->step[0][v];
        for (uint32_t d = 1; d <= g->level; d++) {
            ok = ok && p->step[d][v] == b->step[d][v];
        }
        if (!ok) {
            return false;
        }
    }
    for (uint32_t x = 0; x < p->node->n_ref; x++) {
        BufRef mine = p->ref[x].buf, theirs = b->ref[x].buf;
        bool ok = b->own[0][x] ? is_own(g, mine) && same_kind_of_tile(g->r, mine, theirs)
                               : mine == theirs;
        for (uint32_t d = 1; d <= g->level; d++) {
            ok = ok && p->own[d][x] == b->own[d][x];
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

static uint32_t align(Guarding *g, const Items *p, const Items *b, uint32_t *with);

/* How many lines are one, where the two may be: 0, or all of them, or, in loops, some. */
static uint32_t shared(Guarding *g, const Item *p, const Item *b)
{
    const RollNode *x = p->node, *y = b->node;
    g->r->work--;
    if (x->kind != y->kind || !same_guards(g, x, y) || !is_beside(g, y)) {
        return 0;
    }
    if (x->bare == y->bare && x->n_base == y->n_base && x->n_ref == y->n_ref) {
        return same_numbers(g, p, b) ? x->leaves + (x->kind == STMT_FOR) : 0;
    }
    if (x->kind != STMT_FOR || x->trips != y->trips) {
        return 0;
    }
    if (g->level + 2 >= DEPTH || x->n_body > BODY || y->n_body > BODY) {
        return 0;
    }
    Items in_p = items_of(g, p), in_b = items_of(g, b);
    uint32_t with[BODY];
    g->level++;
    uint32_t lines = align(g, &in_p, &in_b, with);
    g->level--;
    return lines > 0 ? lines + 1 : 0;
}

/* Pairs items in order such that most lines are shared; with[i] is the partner of p's item i. */
static uint32_t align(Guarding *g, const Items *p, const Items *b, uint32_t *with)
{
    uint32_t best[BODY + 1][BODY + 1] = {{0}}, lines[BODY][BODY];
    for (uint32_t i = p->n; i-- > 0;) {
        for (uint32_t j = b->n; j-- > 0;) {
            lines[i][j] = shared(g, &p->at[i], &b->at[j]);
            uint32_t both = lines[i][j] == 0 ? 0 : lines[i][j] + best[i + 1][j + 1];
            best[i][j] = best[i + 1][j] > best[i][j + 1] ? best[i + 1][j] : best[i][j + 1];
            best[i][j] = both > best[i][j] ? both : best[i][j];
        }
    }
    for (uint32_t i = 0, j = 0; i < p->n; i++) {
        while (j < b->n && best[i][j] == best[i][j + 1]) {
            j++;
        }
        bool take =
            j < b->n && lines[i][j] > 0 && best[i][j] == lines[i][j] + best[i + 1][j + 1];
        with[i] = take ? j++ : NOBODY;
    }
    return best[0][0];
}

/* ---- the loop that grew ---- */

typedef struct Grown {
    RollNodes body;
    VEC(int64_t) base;
    VEC(RollRef) ref;
    struct {
        VEC(int64_t) list;
    } step[DEPTH];
    struct {
        VEC(bool) list;
    } own[DEPTH];
} Grown;

uint64_t roll_guarded_key(const RollNode *n)
{
    uint64_t key = n->bare;
    for (uint32_t i = 0; i < n->n_guards; i++) {
        key = hash_mix(hash_mix(key, n->guard[i].up), (uint64_t)n->guard[i].lo);
        key = hash_mix(key, (uint64_t)n->guard[i].hi);
    }
    return key;
}

static void set_guard(Arena *a, RollNode *n, uint32_t up, int64_t lo, int64_t hi, int64_t trips)
{
    VEC(RollGuard) list = {0};
    for (uint32_t i = 0; i < n->n_guards; i++) {
        if (n->guard[i].up != up) {
            vec_push(a, &list, n->guard[i]);
        }
    }
    if (lo > 0 || hi < trips) {
        RollGuard own = {up, lo, hi};
        vec_push(a, &list, own);
    }
    n->guard = list.at;
    n->n_guards = list.n;
    n->key = roll_guarded_key(n);
}

/* A copy of a body's node whose guards of the loop that grows are of one iteration later. */
static RollNode *shifted(Guarding *g, const RollNode *n, uint32_t level)
{
    Arena *a = g->r->arena;
    RollNode *out = arena_copy(a, n, sizeof *n);
    const RollGuard *own = guard_of(n, level);
    if (n->kind == STMT_FOR && n->guarded) {
        out->body = (RollNode **)arena_array(a, n->n_body, sizeof *out->body);
        for (uint32_t i = 0; i < n->n_body; i++) {
            out->body[i] = shifted(g, n->body[i], level + 1);
        }
        out->bare = roll_loop_key(out);
    }
    if (own != NULL) {
        set_guard(a, out, level, own->lo + g->before, own->hi + g->before, INT64_MAX);
    }
    out->key = roll_guarded_key(out);
    return out;
}

static BufRef in_loop(const Guarding *g, BufRef b)
{
    const RollBuf *buf = &g->r->buf.at[b];
    return buf->paired == g->mark ? buf->pair : b;
}

static void push_numbers(Guarding *g, Grown *to, const Item *item, int64_t move)
{
    Arena *a = g->r->arena;
    const RollNode *n = item->node;
    for (uint32_t x = 0; x < n->n_ref; x++) {
        RollRef ref = {item->ref[x].buf, n->ref[x].slot + to->base.n, n->ref[x].all};
        bool mine = item->own[0] == NULL && is_own(g, ref.buf);
        if (mine && in_loop(g, ref.buf) != ref.buf) {
            ref.buf = in_loop(g, ref.buf);
            g->r->buf.at[ref.buf].uses++;
        }
        vec_push(a, &to->ref, ref);
        for (uint32_t d = 0; d <= g->level; d++) {
            bool own = item->own[d] != NULL ? item->own[d][x] : mine;
            vec_push(a, &to->own[d].list, own);
        }
    }
    for (uint32_t v = 0; v < n->n_base; v++) {
        for (uint32_t d = 0; d <= g->level; d++) {
            vec_push(a, &to->step[d].list, item->step[d] == NULL ? 0 : item->step[d][v]);
        }
        int64_t step = item->step[0] == NULL ? 0 : item->step[0][v];
        vec_push(a, &to->base, item->base[v] + move * step);
    }
}

/* Of one side alone: in the new iteration only, or in all others. */
static void push_alone(Guarding *g, Grown *to, const Item *item)
{
    Arena *a = g->r->arena;
    int64_t trips = g->loop->trips;
    bool is_new = item->step[0] == NULL;
    RollNode *n = is_new ? arena_copy(a, item->node, sizeof *item->node)
                         : shifted(g, item->node, g->level);
    if (is_new) {
        int64_t at = g->before ? 0 : trips;
        set_guard(a, n, g->level, at, at + 1, trips + 1);
    } else if (guard_of(n, g->level) == NULL) {
        set_guard(a, n, g->level, g->before, trips + g->before, trips + 1);
    }
    vec_push(a, &to->body, n);
    push_numbers(g, to, item, g->before && !is_new ? -1 : 0);
}

static Grown grow(Guarding *g, const Items *p, const Items *b);

/* One loop of two that differ inside. */
static void push_loop(Guarding *g, Grown *to, const Item *p, const Item *b)
{
    Items in_p = items_of(g, p), in_b = items_of(g, b);
    g->level++;
    Grown in = grow(g, &in_p, &in_b);
    RollNode *n = arena_copy(g->r->arena, b->node, sizeof *b->node);
    *n = (RollNode){
        .kind = STMT_FOR, .trips = n->trips, .guard = n->guard, .n_guards = n->n_guards};
    n->body = in.body.at;
    n->n_body = in.body.n;
    n->base = in.base.at;
    n->n_base = in.base.n;
    n->step = in.step[g->level].list.at;
    n->own = in.own[g->level].list.at;
    n->ref = in.ref.at;
    n->n_ref = in.ref.n;
    n->guarded = true;
    g->level--;
    for (uint32_t i = 0; i < n->n_body; i++) {
        n->leaves += n->body[i]->leaves;
    }
    n->bare = roll_loop_key(n);
    n->key = roll_guarded_key(n);
    Item whole = {n, n->base, n->ref, {NULL}, {NULL}};
    for (uint32_t d = 0; d <= g->level; d++) {
        whole.step[d] = in.step[d].list.at;
        whole.own[d] = in.own[d].list.at;
    }
    vec_push(g->r->arena, &to->body, n);
    push_numbers(g, to, &whole, 0);
}

static void push_both(Guarding *g, Grown *to, const Item *p, const Item *b)
{
    if (p->node->bare != b->node->bare) {
        push_loop(g, to, p, b);
    } else {
        for (uint32_t x = 0; x < p->node->n_ref; x++) { /* an own tile is named no more */
            BufRef mine = p->ref[x].buf;
            g->r->buf.at[mine].uses -= !b->own[0][x];
        }
        vec_push(g->r->arena, &to->body, arena_copy(g->r->arena, b->node, sizeof *b->node));
        push_numbers(g, to, b, g->before ? -1 : 0);
    }
    RollNode *n = to->body.at[to->body.n - 1];
    const RollGuard *own = guard_of(n, g->level);
    if (own != NULL) {
        set_guard(g->r->arena, n, g->level, own->lo, own->hi + 1, g->loop->trips + 1);
    }
}

static Grown grow(Guarding *g, const Items *p, const Items *b)
{
    Grown out = {0};
    uint32_t with[BODY], j = 0;
    (void)align(g, p, b, with);
    for (uint32_t i = 0; i <= p->n; i++) {
        uint32_t until = i == p->n ? b->n : with[i];
        for (; until != NOBODY && j < until; j++) {
            push_alone(g, &out, &b->at[j]);
        }
        if (i < p->n && until == NOBODY) {
            push_alone(g, &out, &p->at[i]);
        } else if (i < p->n) {
            push_both(g, &out, &p->at[i], &b->at[j++]);
        }
    }
    return out;
}

/* Which tiles of the window are which of the loop: false where one would be two. */
static bool pair_tiles(Guarding *g, const Items *p, const Items *b)
{
    uint32_t with[BODY];
    (void)align(g, p, b, with);
    for (uint32_t i = 0; i < p->n; i++) {
        if (with[i] == NOBODY) {
            continue;
        }
        const Item *x = &p->at[i], *y = &b->at[with[i]];
        if (x->node->bare != y->node->bare) {
            Items in_p = items_of(g, x), in_b = items_of(g, y);
            g->level++;
            bool ok = pair_tiles(g, &in_p, &in_b);
            g->level--;
            if (!ok) {
                return false;
            }
            continue;
        }
        for (uint32_t v = 0; v < x->node->n_ref; v++) {
            RollBuf *mine = &g->r->buf.at[x->ref[v].buf],
                    *theirs = &g->r->buf.at[y->ref[v].buf];
            if (!y->own[0][v]) {
                continue;
            }
            bool new = mine->paired != g->mark && theirs->paired != g->mark;
            if (!new && (mine->paired != g->mark || theirs->paired != g->mark ||
                         mine->pair != y->ref[v].buf || theirs->pair != x->ref[v].buf)) {
                return false;
            }
            mine->paired = theirs->paired = g->mark;
            mine->pair = y->ref[v].buf;
            theirs->pair = x->ref[v].buf;
        }
    }
    return true;
}

/* ---- the best place ---- */

/* Nodes [start, start + n) as the iteration before or after the loop at `at`. */
typedef struct Guess {
    uint32_t at, start, n;
    bool before;
} Guess;

static Items loop_items(Guarding *g, RollNode *loop)
{
    Items out = {0};
    uint32_t v = 0, x = 0;
    roll_refresh(g->r, loop);
    for (uint32_t i = 0; i < loop->n_body; i++) {
        Item item = {
            loop->body[i], loop->base + v, loop->ref + x, {loop->step + v}, {loop->own + x}};
        vec_push(g->r->arena, &out, item);
        v += loop->body[i]->n_base;
        x += loop->body[i]->n_ref;
    }
    return out;
}

/* The nodes of a window, and which tiles only they use. */
static Items window_items(Guarding *g, const Guess *w)
{
    Items out = {0};
    Roll *r = g->r;
    g->mark = ++r->mark;
    for (uint32_t i = w->start; i < w->start + w->n; i++) {
        RollNode *n = r->list.at[i];
        roll_refresh(r, n);
        Item item = {n, n->base, n->ref, {NULL}, {NULL}};
        vec_push(r->arena, &out, item);
        for (uint32_t x = 0; x < item.node->n_ref; x++) {
            RollBuf *b = &r->buf.at[item.ref[x].buf];
            b->count = b->mark == g->mark ? b->count + 1 : 1;
            b->mark = g->mark;
        }
    }
    return out;
}

/* Lines that a guess saves: what is shared, without the guards that it needs. Only what is more than `most` is looked at closely. */
static int64_t saved(Guarding *g, const Guess *w, int64_t most)
{
    ArenaMark mark = arena_mark(g->r->arena);
    Items p = window_items(g, w), b = loop_items(g, g->loop);
    uint32_t with[BODY];
    int64_t lines = align(g, &p, &b, with);
    bool edge = with[w->before ? 0 : w->n - 1] != NOBODY;
    int64_t guards = 0;
    uint32_t next = 0;
    bool alone = false; /* is the last one of the window in a guard? */
    for (uint32_t i = 0; i < p.n; i++) {
        guards += with[i] == NOBODY && !alone;
        alone = with[i] == NOBODY;
        guards += with[i] != NOBODY && with[i] > next;
        next = with[i] != NOBODY ? with[i] + 1 : next;
    }
    guards += next < b.n;
    lines = edge ? lines - GUARDING * guards : 0;
    lines = lines > most && !pair_tiles(g, &p, &b) ? 0 : lines;
    arena_reset(g->r->arena, mark);
    return lines;
}

static bool find_best(Roll *r, Guess *best)
{
    int64_t most = 0;
    for (uint32_t at = 0; at < r->list.n && r->work > 0; at++) {
        RollNode *loop = r->list.at[at];
        if (loop->kind != STMT_FOR || loop->n_body > BODY) {
            continue;
        }
        for (uint32_t n = 1; n <= WINDOW; n++) {
            for (int before = 0; before < 2; before++) {
                uint32_t room = before != 0 ? at : r->list.n - at - 1;
                Guess w = {at, before != 0 ? at - n : at + 1, n, before != 0};
                Guarding g = {.r = r, .loop = loop, .before = w.before};
                int64_t lines = n > room ? 0 : saved(&g, &w, most);
                if (lines > most) {
                    most = lines;
                    *best = w;
                }
            }
        }
    }
    return most > 0;
}

bool roll_guards(Roll *r)
{
    Guess w;
    if (!find_best(r, &w)) {
        return false;
    }
    Guarding g = {.r = r, .loop = r->list.at[w.at], .before = w.before};
    Items p = window_items(&g, &w), b = loop_items(&g, g.loop);
    CHECK(pair_tiles(&g, &p, &b));
    Grown in = grow(&g, &p, &b);
    RollNode *loop = ARENA_NEW(r->arena, RollNode);
    *loop = (RollNode){.kind = STMT_FOR, .trips = g.loop->trips + 1, .guarded = true};
    loop->body = in.body.at;
    loop->n_body = in.body.n;
    loop->base = in.base.at;
    loop->n_base = in.base.n;
    loop->step = in.step[0].list.at;
    loop->own = in.own[0].list.at;
    loop->ref = in.ref.at;
    loop->n_ref = in.ref.n;
    for (uint32_t i = 0; i < loop->n_body; i++) {
        loop->leaves += loop->body[i]->leaves;
    }
    loop->bare = loop->key = roll_loop_key(loop);
    r->list.at[w.at] = loop;
    memmove(r->list.at + w.start, r->list.at + w.start + w.n,
            (r->list.n - w.start - w.n) * sizeof(RollNode *));
    r->list.n -= w.n;
    return true;
}
