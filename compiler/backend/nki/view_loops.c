/* SPDX-License-Identifier: Apache-2.0 */
/* Views in loops. An operand in HBM that moves with loops, and not with one around them, is made before that one for all their iterations: longer
 * rows of one tile where a label of the free axis goes on, else the views of all iterations side by side,
 *
 *     for j: for k: .. a[k] ..    ->    tile = a[0], a[1], ..;  for j: for k: .. tile[k * width : ..] ..
 */
#include "backend/nki/make.h"
#include "backend/nki/view_parts.h"

#include <string.h>

#define TURNED_AHEAD                                                                           \
    8192 /* bytes of a partition that are turned before a loop for all its iterations */

/* The free labels with this one first; false: one that goes on is before it. */
static bool with_first(Labels f, uint32_t label, const Box *box, Labels *out)
{
    bool found = box->n[label] == 1;
    *out = labels_one(label);
    for (uint32_t i = 0; i < f.n; i++) {
        found |= f.at[i] == label;
        if (box->n[f.at[i]] > 1 && !found) {
            return false;
        }
        if (f.at[i] != label) {
            out->at[out->n++] = f.at[i];
        }
    }
    return true;
}

/* Of an operand in HBM that is turned, and goes on by its own length in each iteration of the innermost loop that it moves with: what all
 * iterations turn, at once before the loop. */
bool view_of_all(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out)
{
    uint32_t within = place_moving_depth(l, x), at = 0, moving = 0;
    if (within == 0 || l->home[x->buf].on_chip || x->n_terms > 0 || l->pair[x->buf] ||
        l->now.flat > 0) {
        return false;
    }
    uint32_t loop = within - 1;
    const OpenLoop *o = &l->loops.open[loop];
    if (o->tiles) {
        return false;
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        moving += affine_uses(x->moves[d], o->var);
        at = affine_uses(x->moves[d], o->var) ? d : at;
    }
    Labels all = {0};
    int32_t label = x->label[at];
    if (moving != 1 || label < 0 || labels_have(p, (uint32_t)label) ||
        !with_first(f, (uint32_t)label, box, &all)) {
        return false;
    }
    int64_t n = box->n[label], trips = o->trips, each = labels_count(all, box);
    int64_t bytes = sat_mul(sat_mul(each, trips), dtype_bytes(l->from->bufs.at[x->buf].dtype));
    if (affine_coef(x->moves[at], o->var) != n || n != l->now.full.n[label]) {
        return false;
    }
    Affine *moves = arena_copy(l->arena, x->moves, x->rank * sizeof *moves);
    moves[at] = affine_subst(l->arena, moves[at], o->var, affine_const(0));
    Place y = *x;
    y.moves = moves;
    bool few =
        view_is_turned(l, x, p, f, box) && o->stmt->kind == STMT_FOR && bytes <= TURNED_AHEAD;
    int64_t positions = sat_mul(labels_count(p, &l->now.full), labels_count(f, &l->now.full));
    int64_t whole =
        sat_mul(sat_mul(positions, trips), dtype_bytes(l->from->bufs.at[x->buf].dtype));
    uint32_t depth = hoist_depth(l, &y, few ? bytes : whole / NKI_PARTITIONS);
    if (depth > loop || (depth == loop && !few)) {
        return false; /* written there, or no room; or they are used once */
    }
    int64_t lo = 0, hi = 0, start = place_start(x, at, box);
    position_range(l, moves[at], &lo, &hi);
    if (start + lo < 0 || start + hi + n * trips > l->from->bufs.at[x->buf].extent[at].n) {
        return false; /* not all iterations are run */
    }
    Box full = l->now.full, wide = *box;
    wide.n[label] = l->now.full.n[label] = n * trips;
    VarRef var = o->var;
    TileView v = view_of(l, &y, p, all, &wide);
    l->now.full = full;
    Affine *by = ARENA_NEW(l->arena, Affine);
    *by = affine_add(l->arena, v.moves == NULL ? affine_const(0) : *v.moves, v.step * each,
                     affine_var(l->arena, var));
    *out = view_part(v, 0, each);
    out->moves = by;
    return true;
}

/* Loops that a view moves with. */
typedef struct StepLoops {
    uint32_t n, loop[LOOP_DEPTH_LIMIT]; /* from the innermost */
    int64_t trips;                      /* of all together */
    int64_t trips_of[LOOP_DEPTH_LIMIT];
    VarRef var[LOOP_DEPTH_LIMIT];
    int64_t *by[LOOP_DEPTH_LIMIT]; /* [rank] positions of a step */
} StepLoops;

static bool moves_with(const Lower *l, const Place *x, uint32_t loop)
{
    bool moves = false;
    for (uint32_t d = 0; d < x->rank && x->moves != NULL; d++) {
        moves |= affine_uses(x->moves[d], l->loops.open[loop].var);
    }
    return moves;
}

/* The place in the first iterations of these loops. */
static Place in_first(const Lower *l, const Place *x, const StepLoops *s)
{
    Place y = *x;
    Affine *moves = arena_copy(l->arena, x->moves, x->rank * sizeof *moves);
    for (uint32_t d = 0; d < x->rank; d++) {
        for (uint32_t i = 0; i < s->n; i++) {
            moves[d] = affine_subst(l->arena, moves[d], l->loops.open[s->loop[i]].var,
                                    affine_const(0));
        }
    }
    y.moves = moves;
    return y;
}

/* The most of the innermost loops that the place moves with, around which there is one that it does not move with, so that all their views
 * are used again, and room for these; and in how many loops they are made. What is turned is made before the innermost of them at least, if
 * that is inside of so many loops, as the Tensor engine would wait for each else. False: there is none. */
static bool find_steps(const Lower *l, const Place *x, int64_t bytes, uint32_t turned,
                       StepLoops *out, uint32_t *depth)
{
    StepLoops s = {.trips = 1};
    bool found = false;
    for (uint32_t d = l->loops.depth; d-- > 0;) {
        const OpenLoop *o = &l->loops.open[d];
        if (!moves_with(l, x, d)) {
            continue;
        }
        if (o->tiles || o->first.n > 0 || o->last.n > 0) {
            break;
        }
        s.loop[s.n++] = d;
        s.trips = sat_mul(s.trips, o->trips);
        Place y = in_first(l, x, &s);
        uint32_t at = hoist_depth(l, &y, sat_mul(bytes, s.trips));
        if (at < d || (d >= turned && !found && at == d)) {
            *out = s;
            *depth = at;
            found = true;
        }
    }
    return found;
}

/* Are all positions those of the tensor, in all iterations of the loops around? Some may never be run. */
bool view_is_inside(const Lower *l, const Place *x, const Box *box)
{
    bool inside = true;
    for (uint32_t d = 0; d < x->rank && inside; d++) {
        int64_t lo = 0, hi = 0, start = place_start(x, d, box);
        if (x->moves != NULL) {
            position_range(l, x->moves[d], &lo, &hi);
        }
        for (uint32_t label = 0; label < LABELS; label++) {
            int64_t by = place_coef(x, d, label);
            by = by == 0 ? 0 : by * (box->n[label] - 1);
            lo += by < 0 ? by : 0;
            hi += by > 0 ? by : 0;
        }
        inside = start + lo >= 0 && start + hi < l->from->bufs.at[x->buf].extent[d].n;
    }
    return inside;
}

/* Fills the tile with the views of all steps, those of the innermost loop side by side. */
static void fill_steps(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                       const StepLoops *s, uint32_t at, Affine from, TileView tile)
{
    int64_t nf = labels_count(f, box), each = nf;
    if (at == 0) {
        TileView part = view_part(tile, 0, nf);
        part.moves = from.n == 0 ? NULL : arena_copy(l->arena, &from, sizeof from);
        view_fill(l, x, p, f, box, part);
        return;
    }
    for (uint32_t i = 0; i + 1 < at; i++) {
        each *= s->trips_of[i];
    }
    const char *name = l->to->vars.at[s->var[at - 1]].wish->text;
    if (!open_tiles(l, name, s->trips_of[at - 1])) {
        return;
    }
    VarRef v = l->loops.open[l->loops.depth - 1].var;
    Place y = *x;
    Affine *moves = arena_copy(l->arena, x->moves, x->rank * sizeof *moves);
    for (uint32_t d = 0; d < x->rank; d++) {
        moves[d] = affine_add(l->arena, moves[d], s->by[at - 1][d], affine_var(l->arena, v));
    }
    y.moves = moves;
    fill_steps(l, &y, p, f, box, s, at - 1,
               affine_add(l->arena, from, each, affine_var(l->arena, v)), tile);
    close_tiles(l);
}

/* Of an operand in HBM: the views of all iterations of loops that it moves with, side by side in a tile that is made before a loop around these
 * with which it does not move. */
static bool view_of_steps(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                          uint32_t block, TileView *out)
{
    int64_t key[4 * LABELS + 8 + LOOP_DEPTH_LIMIT * (NKI_DIMS + 1)];
    StepLoops s;
    uint32_t depth = 0;
    const Buffer *b = &l->from->bufs.at[x->buf];
    if (l->home[x->buf].on_chip || l->pair[x->buf] || l->now.flat > 0 ||
        !find_steps(l, x, labels_count(f, &l->now.full) * dtype_bytes(b->dtype),
                    view_is_turned(l, x, p, f, box) ? block : UINT32_MAX, &s, &depth)) {
        return false;
    }
    if (!view_is_inside(l, x, box)) {
        return false;
    }
    Place y = in_first(l, x, &s);
    int64_t nf = labels_count(f, box), each = nf;
    uint32_t n = view_key(l, &y, p, f, box, key);
    Affine *by = ARENA_NEW(l->arena, Affine);
    *by = affine_const(0);
    for (uint32_t i = 0; i < s.n; i++) {
        const OpenLoop *o = &l->loops.open[s.loop[i]];
        s.trips_of[i] = key[n++] = o->trips;
        s.var[i] = o->var;
        s.by[i] = ARENA_ARRAY(l->arena, x->rank, int64_t);
        for (uint32_t d = 0; d < x->rank; d++) {
            s.by[i][d] = key[n++] = affine_coef(x->moves[d], o->var);
        }
        *by = affine_add(l->arena, *by, each, affine_var(l->arena, o->var));
        each *= o->trips;
    }
    TileView tile;
    if (!cache_find(l, key, n, &tile)) {
        Hoist hoist = hoist_begin(l, depth, each * dtype_bytes(b->dtype));
        tile = tile_new(l, b->name->text, b->dtype, SPACE_TILE, labels_count(p, box), each);
        cache_put(l, key, n, tile);
        fill_steps(l, &y, p, f, box, &s, s.n, affine_const(0), tile);
        hoist_end(l, &hoist);
    }
    *out = view_part(tile, 0, nf);
    out->moves = by;
    return true;
}

TileView view_in_loops(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                       uint32_t block)
{
    TileView v;
    return view_of_steps(l, x, p, f, box, block, &v) ? v : view_of(l, x, p, f, box);
}
