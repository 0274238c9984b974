/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for stages in which engines wait for each other least: first some pieces of the end of a loop's body are run late, then pieces are
 * moved one by one, as long as that gains. What an order takes is read off the schedule of predict.c, of a loop of a few iterations.
 *
 * A rule, modulo scheduling with the resources of an iteration, would have to know that engines run in order and which engine copies, as the
 * schedule does, which takes a tenth of a millisecond. Loops are looked at as they are printed, after roll.c: a loop of eight copies is one
 * statement with one engine. What passes from one stage to another has a tile for each iteration, as positions are affine, and i % 2 is not. */
#include "backend/nki/stages.h"

#include <math.h>
#include <string.h>

#define BODY    1500    /* statements, at most */
#define LOOPS   6       /* the longest ones */
#define SHORT   8       /* iterations of the loop while it is looked for */
#define EFFORT  300000  /* instructions of all schedules of a loop, */
#define EFFORTS 2000000 /* and of all loops */
#define GAIN    0.995   /* of the time, of a move */

/* A loop, and how many statements all its iterations are, those of loops inside counted once. */
typedef struct Candidate {
    const Stmt *loop;
    int64_t weight;
} Candidate;

typedef struct Candidates {
    VEC(Candidate) list; /* in the order of the text */
} Candidates;

static int64_t find_loops(Arena *a, Stmt *const *body, uint32_t n, int64_t times,
                          Candidates *out)
{
    int64_t tiles = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        tiles += s->kind == STMT_TILE;
        if (s->kind == STMT_FOR) {
            int64_t all = sat_mul(times, s->range.limit.n);
            uint32_t at = out->list.n;
            vec_push(a, &out->list, ((Candidate){s, 0}));
            int64_t inside = find_loops(a, s->body, s->n_body, all, out);
            out->list.at[at].weight = sat_mul(all, inside);
            tiles += inside;
        } else if (s->kind == STMT_BLOCK) {
            tiles += find_loops(a, s->body, s->n_body, times, out);
        }
    }
    return tiles;
}

/* ---- pieces ---- */

static bool goes_to_psum(const Kernel *k, const Stmt *s)
{
    return (s->kind == STMT_ALLOC && k->bufs.at[s->buf].space == SPACE_ACC) ||
           (s->kind == STMT_TILE && k->bufs.at[s->dst].space == SPACE_ACC);
}

/* Do pieces end before statement `i`? Between statements of the program, and where the Tensor engine goes on with what others have
 * made; fine ones also where a new value begins. */
static bool is_border(const Kernel *k, const Stmt *loop, uint32_t i, bool fine)
{
    const Stmt *before = loop->body[i - 1], *s = loop->body[i];
    bool loops = stmt_has_body(s) || stmt_has_body(before);
    bool other = before->span.lo != s->span.lo || before->span.hi != s->span.hi;
    bool allocs = s->kind == STMT_ALLOC && before->kind == STMT_ALLOC;
    bool psum = goes_to_psum(k, s) && !goes_to_psum(k, before) && !allocs;
    bool value = s->kind == STMT_ALLOC && before->kind != STMT_ALLOC;
    return loops || other || psum || (fine && value);
}

/* What a run of statements uses that others use as well, and what it does with it: equal runs one after the other are one piece. */
typedef struct Run {
    uint32_t from;
    uint64_t does, uses;
} Run;

static uint64_t mixed(uint64_t a, uint64_t b)
{
    return (a ^ b) * UINT64_C(0x9E3779B97F4A7C15) + (a >> 29);
}

/* Marks of buffers: in which run it is used, from 1; UINT32_MAX: in several. */
static void mark_uses(const Kernel *k, const Stmt *s, uint32_t run, uint32_t *in, bool *here)
{
    if (s->kind == STMT_TILE) {
        tile_mark_uses(s, k->bufs.n, here);
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            in[b] = !here[b] ? in[b] : in[b] == 0 || in[b] == run ? run : UINT32_MAX;
        }
    }
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body; i++) {
        mark_uses(k, s->body[i], run, in, here);
    }
}

static void note_run(const Kernel *k, const Stmt *s, const uint32_t *in, bool *here, Run *run)
{
    if (s->kind == STMT_TILE) {
        tile_mark_uses(s, k->bufs.n, here);
        uint64_t does = mixed((uint64_t)s->fold, (uint64_t)k->bufs.at[s->dst].space);
        does = mixed(does, (uint64_t)s->value->kind);
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            does = here[b] ? mixed(does, (uint64_t)k->bufs.at[b].space) : does;
            run->uses |= here[b] && in[b] == UINT32_MAX ? UINT64_C(1) << mixed(b, 1) % 64 : 0;
        }
        run->does |= UINT64_C(1) << does % 64;
    }
    for (uint32_t i = 0; stmt_has_body(s) && i < s->n_body; i++) {
        note_run(k, s->body[i], in, here, run);
    }
}

static bool are_alike(const Stmt *loop, const Run *a, const Run *b)
{
    Span x = loop->body[a->from]->span, y = loop->body[b->from]->span;
    return a->does == b->does && a->uses == b->uses && x.lo == y.lo && x.hi == y.hi;
}

/* The pieces of the body; false: there are none, or too many. */
static bool find_pieces(Arena *a, const Kernel *k, const Stmt *loop, bool fine, PieceUses *uses)
{
    Run *run = ARENA_ARRAY(a, loop->n_body + 1, Run);
    uint32_t *in = ARENA_ARRAY(a, k->bufs.n + 1, uint32_t), n = 0;
    bool *here = ARENA_ARRAY(a, k->bufs.n + 1, bool);
    bool works = false; /* tiles that begin, and numbers that fill them, alone are no piece */
    for (uint32_t i = 0; i < loop->n_body; i++) {
        const Stmt *s = loop->body[i];
        if (i == 0 || (works && is_border(k, loop, i, fine))) {
            run[n++].from = i;
            works = false;
        }
        works |= stmt_has_body(s) || (s->kind == STMT_TILE && s->value->kind != EXPR_CONST);
        mark_uses(k, loop->body[i], n, in, here);
    }
    run[n].from = loop->n_body;
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t i = run[r].from; i < run[r + 1].from; i++) {
            note_run(k, loop->body[i], in, here, &run[r]);
        }
    }
    uses->n = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (r > 0 && are_alike(loop, &run[r - 1], &run[r])) {
            continue;
        }
        if (uses->n == PIECES) {
            return false;
        }
        uses->from[uses->n++] = run[r].from;
    }
    uses->from[uses->n] = loop->n_body;
    return uses->n > 1;
}

/* ---- the search ---- */

typedef struct Search {
    Ctx *ctx;
    Arena *arena;
    const NkiChip *chip;
    const Kernel *k;
    const Stmt *loop;
    const NkiCost *cost;
    int64_t effort; /* instructions that may still be scheduled */
    PieceUses *uses;
    Stages best;
    double us; /* of the best */
} Search;

static Stages pieces_in_order(const PieceUses *uses)
{
    Stages s = {.n = uses->n, .wide = true};
    for (uint32_t i = 0; i < uses->n; i++) {
        s.piece[i] = (Piece){uses->from[i], uses->from[i + 1], 0};
    }
    return s;
}

/* How long a short loop takes in these stages; infinite: they cannot be. Says whether what passes between them is wide. */
static double time_of(Search *x, Stages *s)
{
    int64_t n = x->uses->loop->range.limit.n;
    int64_t bytes = sat_mul(stages_pass(x->uses, s), n - 1);
    s->wide = x->cost->sbuf_peak + bytes <= x->chip->sbuf_bytes;
    if (!stages_are_right(x->uses, s) || x->effort <= 0) {
        return INFINITY;
    }
    ArenaMark mark = arena_mark(x->arena);
    NkiCost cost;
    Kernel *k = lower_pipelined(x->ctx, x->arena, x->uses, s, SHORT);
    double us = INFINITY;
    if (k != NULL && nki_measure(k, x->chip, &cost) && cost.sbuf_peak <= x->chip->sbuf_bytes &&
        cost.psum_peak <= NKI_PSUM_BANKS) {
        us = cost.predicted_us;
        x->effort -= cost.instructions;
    }
    arena_reset(x->arena, mark);
    return us;
}

static bool try_stages(Search *x, Stages s)
{
    double us = time_of(x, &s);
    bool better = us < x->us * GAIN;
    x->best = better ? s : x->best;
    x->us = better ? us : x->us;
    return better;
}

/* The pieces from `cut` on are late, and run before what `at` and those that follow it do for the next iteration. */
static void try_late(Search *x, uint32_t cut, uint32_t at)
{
    Stages plain = pieces_in_order(x->uses), s = plain;
    uint32_t n = at;
    for (uint32_t i = cut; i < plain.n; i++) {
        s.piece[n] = plain.piece[i];
        s.piece[n++].late = 1;
    }
    memcpy(s.piece + n, plain.piece + at, (cut - at) * sizeof *s.piece);
    (void)try_stages(x, s);
}

/* The piece at `from` is moved to `to`, and is so late. False: it would be later than can be. */
static bool moved(const Stages *s, uint32_t from, uint32_t to, int late, Stages *out)
{
    Piece p = s->piece[from];
    int least = late;
    *out = *s;
    memmove(out->piece + from, out->piece + from + 1, (s->n - from - 1) * sizeof p);
    memmove(out->piece + to + 1, out->piece + to, (s->n - to - 1) * sizeof p);
    out->piece[to] = p;
    for (uint32_t i = 0; i < s->n; i++) {
        int own = (int)out->piece[i].late;
        least = i != to && own < least ? own : least;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        int own = i == to ? late : (int)out->piece[i].late;
        if (own - least >= STAGES_MOST) {
            return false;
        }
        out->piece[i].late = (uint32_t)(own - least);
    }
    return true;
}

/* Moves one piece to where that gains most. */
static bool move_piece(Search *x, uint32_t from)
{
    Stages start = x->best, next;
    bool better = false;
    for (int by = -1; by <= 1; by++) {
        for (uint32_t to = 0; to < start.n; to++) {
            if ((by != 0 || to != from) &&
                moved(&start, from, to, (int)start.piece[from].late + by, &next)) {
                better |= try_stages(x, next);
            }
        }
    }
    return better;
}

static void search(Search *x)
{
    Stages plain = pieces_in_order(x->uses);
    x->us = INFINITY;
    (void)try_stages(x, plain);
    for (uint32_t cut = 1; cut < plain.n && isfinite(x->us); cut++) {
        for (uint32_t at = 0; at <= cut && x->effort > EFFORT / 2; at++) {
            try_late(x, cut, at);
        }
    }
    bool better = isfinite(x->us);
    while (better && x->effort > 0) {
        better = false;
        for (uint32_t i = 0; i < plain.n; i++) {
            better |= move_piece(x, i);
        }
    }
}

/* All of a loop in these stages, measured; null: it does not fit. */
static Kernel *staged(Ctx *ctx, Arena *arena, const NkiChip *chip, const PieceUses *uses,
                      const Stages *s, NkiCost *cost)
{
    Kernel *k = stages_are_right(uses, s) ? lower_pipelined(ctx, arena, uses, s, 0) : NULL;
    bool fits = k != NULL && nki_measure(k, chip, cost) &&
                cost->sbuf_peak <= chip->sbuf_bytes && cost->psum_peak <= NKI_PSUM_BANKS;
    return fits ? k : NULL;
}

/* The loop in stages as those of another kernel's are. */
static Kernel *staged_alike(Ctx *ctx, Arena *arena, const NkiChip *chip, const Kernel *k,
                            const Stmt *loop, const Stages *stages)
{
    PieceUses *uses = ARENA_NEW(arena, PieceUses);
    NkiCost cost;
    for (uint32_t i = 0; i < stages->n; i++) { /* as they stand in the body */
        uint32_t at = uses->n++;
        for (; at > 0 && uses->from[at - 1] > stages->piece[i].from; at--) {
            uses->from[at] = uses->from[at - 1];
        }
        uses->from[at] = stages->piece[i].from;
        uses->from[PIECES] =
            stages->piece[i].to > uses->from[PIECES] ? stages->piece[i].to : uses->from[PIECES];
    }
    uint32_t end = uses->from[PIECES];
    uses->from[uses->n] = end;
    return end == loop->n_body && stages_uses(arena, k, loop, uses)
               ? staged(ctx, arena, chip, uses, stages, &cost)
               : NULL;
}

/* The kernel with the loop in the stages that gain most, if it takes less time than `least` so, which it costs then. */
static Kernel *best_of_loop(Search *x, bool fine, NkiCost *least)
{
    x->uses = ARENA_NEW(x->arena, PieceUses);
    if (x->loop->n_body > BODY || !find_pieces(x->arena, x->k, x->loop, fine, x->uses) ||
        !stages_uses(x->arena, x->k, x->loop, x->uses)) {
        return NULL;
    }
    NkiCost all;
    search(x);
    Kernel *made =
        isfinite(x->us) ? staged(x->ctx, x->arena, x->chip, x->uses, &x->best, &all) : NULL;
    if (made == NULL || !(all.predicted_us < least->predicted_us)) {
        return NULL;
    }
    *least = all;
    return made;
}

/* The number of the longest loop that has not been tried; false: there is none. */
static bool next_loop(const Candidates *all, const bool *tried, uint32_t *at)
{
    bool found = false;
    for (uint32_t i = 0; i < all->list.n; i++) {
        const Candidate *c = &all->list.at[i];
        if (!tried[c->loop->var] && (!found || c->weight > all->list.at[*at].weight)) {
            *at = i;
            found = true;
        }
    }
    return found;
}

const Stmt *stages_longest_loop(Arena *arena, const Kernel *k, const bool *tried)
{
    Candidates all = {0};
    uint32_t at = 0;
    (void)find_loops(arena, k->body, k->n_body, 1, &all);
    return next_loop(&all, tried, &at) ? all.list.at[at].loop : NULL;
}

static Kernel *as_said(Ctx *ctx, Arena *arena, const NkiChip *chip, const Kernel *k,
                       const Staging *staging)
{
    Kernel *out = NULL;
    for (uint32_t i = 0; i < staging->n; i++) {
        Candidates all = {0};
        (void)find_loops(arena, k->body, k->n_body, 1, &all);
        uint32_t at = staging->of[i].loop;
        out = at < all.list.n
                  ? staged_alike(ctx, arena, chip, k, all.list.at[at].loop, &staging->of[i])
                  : NULL;
        if (out == NULL) {
            return NULL;
        }
        k = out;
    }
    return out;
}

Kernel *lower_in_stages(Ctx *ctx, Arena *arena, const NkiChip *chip, const Kernel *k,
                        Staging *staging)
{
    if (staging->n > 0) {
        return as_said(ctx, arena, chip, k, staging);
    }
    Kernel *best = NULL;
    NkiCost now;
    CHECK(nki_measure(k, chip, &now));
    int64_t effort = EFFORTS;
    bool *tried = ARENA_ARRAY(arena, k->vars.n + 1, bool);
    for (uint32_t i = 0; i < LOOPS && staging->n < STAGED_MOST && effort > 0; i++) {
        Candidates all = {0};
        uint32_t at = 0;
        (void)find_loops(arena, k->body, k->n_body, 1, &all);
        if (!next_loop(&all, tried, &at)) {
            break;
        }
        const Stmt *loop = all.list.at[at].loop;
        Stages how;
        NkiCost least = now;
        least.predicted_us *= GAIN;
        Kernel *made = NULL;
        tried[loop->var] = true;
        for (int fine = 0; fine < 2; fine++) {
            Search x = {
                ctx, arena, chip, k, loop, &now, .effort = effort < EFFORT ? effort : EFFORT};
            int64_t before = x.effort;
            Kernel *here = best_of_loop(&x, fine > 0, &least);
            effort -= before - x.effort;
            made = here != NULL ? here : made;
            how = here != NULL ? x.best : how;
        }
        if (made != NULL) {
            how.loop = at;
            staging->of[staging->n++] = how;
            bool *next = ARENA_ARRAY(arena, made->vars.n + 1, bool);
            memset(next, true, made->vars.n); /* new loops are in stages, or in such loops */
            memcpy(next, tried, k->vars.n * sizeof *next);
            tried = next;
            k = best = made;
            now = least;
        }
    }
    return best;
}
