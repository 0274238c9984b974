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
#define DEPTH    8  /* of loops in each other */
#define NOBODY   UINT32_MAX
#define GUARDING 1 /* lines of a guard */

/* A node with its numbers where it stands: in the first iterations of the loops around it. What they grow by, and which tiles
 * are an iteration's own, by loop: those around the list at hand, the one that grows, those within it. Null for the one that
 * grows, of what is to join it. */
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
    const RollNode *loop; /* that grows */
    uint32_t around;      /* loops around it: the number of it among the loops of an item */
    bool before;          /* is the new iteration the first one? else the last */
    uint64_t mark;        /* of the window at hand */
    uint32_t level;       /* loops between the loop that grows and the items at hand */
} Guarding;

/* ---- items ---- */

/* What is in a loop, number `loop` of those of an item, which stands where `at` does. */
static Items items_of(Roll *r, const Item *at, uint32_t loop)
{
    Items out = {0};
    const RollNode *n = at->node;
    uint32_t v = 0, x = 0;
    for (uint32_t i = 0; i < n->n_body; i++) {
        Item item = {n->body[i], at->base + v, at->ref + x, {NULL}, {NULL}};
        for (uint32_t d = 0; d < loop; d++) {
            item.step[d] = at->step[d] == NULL ? NULL : at->step[d] + v;
            item.own[d] = at->own[d] == NULL ? NULL : at->own[d] + x;
        }
        item.step[loop] = n->step + v;
        item.own[loop] = n->own + x;
        vec_push(r->arena, &out, item);
        v += n->body[i]->n_base;
        x += n->body[i]->n_ref;
    }
    return out;
}

static Items items_in(const Guarding *g, const Item *at)
{
    return items_of(g->r, at, g->around + g->level + 1);
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
    return is_tile(g->r, b) && roll_is_here(g->r, b) && buf->mark == g->mark &&
           buf->count == buf->uses;
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
        bool ok = p->base[v] == b->base[v] + trips * b->step[g->around][v];
        for (uint32_t d = 0; d <= g->around + g->level; d++) {
            ok = ok && (d == g->around || p->step[d][v] == b->step[d][v]);
        }
        if (!ok) {
            return false;
        }
    }
    for (uint32_t x = 0; x < p->node->n_ref; x++) {
        BufRef mine = p->ref[x].buf, theirs = b->ref[x].buf;
        bool ok = b->own[g->around][x]
                      ? is_own(g, mine) && same_kind_of_tile(g->r, mine, theirs)
                      : mine == theirs;
        for (uint32_t d = 0; d <= g->around + g->level; d++) {
            ok = ok && (d == g->around || p->own[d][x] == b->own[d][x]);
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
    if (x->kind != STMT_FOR || x->trips != y->trips || x->given != NULL || y->given != NULL) {
        return 0;
    }
    if (g->around + g->level + 2 >= DEPTH || x->n_body > BODY || y->n_body > BODY) {
        return 0;
    }
    Items in_p = items_in(g, p), in_b = items_in(g, b);
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
        bool mine = item->own[g->around] == NULL && is_own(g, ref.buf);
        if (mine && in_loop(g, ref.buf) != ref.buf) {
            ref.buf = in_loop(g, ref.buf);
            g->r->buf.at[ref.buf].uses++;
        }
        vec_push(a, &to->ref, ref);
        for (uint32_t d = 0; d <= g->around + g->level; d++) {
            bool own = item->own[d] != NULL ? item->own[d][x] : mine;
            vec_push(a, &to->own[d].list, own);
        }
    }
    for (uint32_t v = 0; v < n->n_base; v++) {
        for (uint32_t d = 0; d <= g->around + g->level; d++) {
            vec_push(a, &to->step[d].list, item->step[d] == NULL ? 0 : item->step[d][v]);
        }
        int64_t step = item->step[g->around] == NULL ? 0 : item->step[g->around][v];
        vec_push(a, &to->base, item->base[v] + move * step);
    }
}

/* Of one side alone: in the new iteration only, or in all others. */
static void push_alone(Guarding *g, Grown *to, const Item *item)
{
    Arena *a = g->r->arena;
    int64_t trips = g->loop->trips;
    bool is_new = item->step[g->around] == NULL;
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

/* A loop of what was put together, number `loop` of those of an item, and its numbers as an item. */
static Item loop_of(Roll *r, const RollNode *like, const Grown *in, uint32_t loop)
{
    RollNode *n = arena_copy(r->arena, like, sizeof *like);
    n->body = in->body.at;
    n->n_body = in->body.n;
    n->base = in->base.at;
    n->n_base = in->base.n;
    n->ref = in->ref.at;
    n->n_ref = in->ref.n;
    n->step = in->step[loop].list.at;
    n->own = in->own[loop].list.at;
    n->guarded = true;
    n->leaves = 0;
    for (uint32_t i = 0; i < n->n_body; i++) {
        n->leaves += n->body[i]->leaves;
    }
    n->bare = roll_loop_key(n);
    n->key = roll_guarded_key(n);
    Item out = {n, n->base, n->ref, {NULL}, {NULL}};
    for (uint32_t d = 0; d < loop; d++) {
        out.step[d] = in->step[d].list.at;
        out.own[d] = in->own[d].list.at;
    }
    return out;
}

/* One loop of two that differ inside. */
static void push_loop(Guarding *g, Grown *to, const Item *p, const Item *b)
{
    Items in_p = items_in(g, p), in_b = items_in(g, b);
    g->level++;
    Grown in = grow(g, &in_p, &in_b);
    Item whole = loop_of(g->r, b->node, &in, g->around + g->level);
    g->level--;
    vec_push(g->r->arena, &to->body, whole.node);
    push_numbers(g, to, &whole, 0);
}

static void push_both(Guarding *g, Grown *to, const Item *p, const Item *b)
{
    if (p->node->bare != b->node->bare) {
        push_loop(g, to, p, b);
    } else {
        for (uint32_t x = 0; x < p->node->n_ref; x++) { /* an own tile is named no more */
            BufRef mine = p->ref[x].buf;
            g->r->buf.at[mine].uses -= !b->own[g->around][x];
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
            Items in_p = items_in(g, x), in_b = items_in(g, y);
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
            if (!y->own[g->around][v]) {
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

/* Items [start, start + n) as the iteration before or after the loop at `at`. */
typedef struct Guess {
    uint32_t at, start, n;
    bool before;
} Guess;

/* The items of a window, and which tiles only they use. */
static Items window_items(Guarding *g, const Items *list, const Guess *w)
{
    Items out = {0};
    Roll *r = g->r;
    g->mark = ++r->mark;
    for (uint32_t i = w->start; i < w->start + w->n; i++) {
        vec_push(r->arena, &out, list->at[i]);
        for (uint32_t x = 0; x < list->at[i].node->n_ref; x++) {
            RollBuf *b = &r->buf.at[list->at[i].ref[x].buf];
            b->count = b->mark == g->mark ? b->count + 1 : 1;
            b->mark = g->mark;
        }
    }
    return out;
}

/* Lines that a guess saves: what is shared, without the guards that it needs. Only what is more than `most` is looked at closely. */
static int64_t saved(Guarding *g, const Items *list, const Guess *w, int64_t most)
{
    ArenaMark mark = arena_mark(g->r->arena);
    Items p = window_items(g, list, w), b = items_of(g->r, &list->at[w->at], g->around);
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

static bool find_best(Roll *r, const Items *list, uint32_t around, Guess *best)
{
    int64_t most = 0;
    for (uint32_t at = 0; at < list->n && r->work > 0; at++) {
        const RollNode *loop = list->at[at].node;
        if (loop->kind != STMT_FOR || loop->given != NULL || loop->n_body > BODY ||
            loop->n_guards > 0) {
            continue;
        }
        for (uint32_t n = 1; n <= WINDOW; n++) {
            for (int before = 0; before < 2; before++) {
                uint32_t room = before != 0 ? at : list->n - at - 1;
                Guess w = {at, before != 0 ? at - n : at + 1, n, before != 0};
                Guarding g = {.r = r, .loop = loop, .around = around, .before = w.before};
                int64_t lines = n > room ? 0 : saved(&g, list, &w, most);
                if (lines > most) {
                    most = lines;
                    *best = w;
                }
            }
        }
    }
    return most > 0;
}

/* Puts the window of a guess into its loop. */
static void take(Roll *r, Items *list, uint32_t around, const Guess *w)
{
    Item *at = &list->at[w->at];
    Guarding g = {.r = r, .loop = at->node, .around = around, .before = w->before};
    Items p = window_items(&g, list, w), b = items_of(r, at, around);
    CHECK(pair_tiles(&g, &p, &b));
    Grown in = grow(&g, &p, &b);
    RollNode like = *at->node;
    like.trips++;
    *at = loop_of(r, &like, &in, around);
    memmove(list->at + w->start, list->at + w->start + w->n,
            (list->n - w->start - w->n) * sizeof *list->at);
    list->n -= w->n;
}

/* A list inside of `around` loops, what is in its loops first. */
static bool guard_list(Roll *r, Items *list, uint32_t around)
{
    bool any = false;
    for (uint32_t i = 0; i < list->n && around + 2 < DEPTH; i++) {
        const RollNode *n = list->at[i].node;
        if (n->kind != STMT_FOR || n->given != NULL) {
            continue;
        }
        Items in = items_of(r, &list->at[i], around);
        if (guard_list(r, &in, around + 1)) {
            Grown body = {0};
            Guarding g = {.r = r, .around = around};
            for (uint32_t j = 0; j < in.n; j++) {
                vec_push(r->arena, &body.body, in.at[j].node);
                push_numbers(&g, &body, &in.at[j], 0);
            }
            list->at[i] = loop_of(r, n, &body, around);
            any = true;
        }
    }
    Guess w;
    while (find_best(r, list, around, &w)) {
        take(r, list, around, &w);
        any = true;
    }
    return any;
}

bool roll_guards(Roll *r)
{
    Items list = {0};
    for (uint32_t i = 0; i < r->list.n; i++) {
        RollNode *n = r->list.at[i];
        roll_refresh(r, n);
        Item item = {n, n->base, n->ref, {NULL}, {NULL}};
        vec_push(r->arena, &list, item);
    }
    bool any = guard_list(r, &list, 0);
    for (uint32_t i = 0; i < list.n; i++) {
        r->list.at[i] = list.at[i].node;
    }
    r->list.n = list.n;
    return any;
}
