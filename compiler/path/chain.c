/* SPDX-License-Identifier: Apache-2.0 */
/* Chains and rings: networks whose operands all have two neighbours, or one at an end, and no
 * open label but at the ends. Contracting a run of them makes a matrix again, so an order is a
 * triangulation of the polygon whose corners are the labels (path/polygon.c); at an end without
 * an open label the corner weighs 1. A ring's last step joins two runs at two labels, which any
 * optimum has for its two lightest: they are joined by a chord or side of some optimal
 * triangulation, and no other pair costs less. Outer products, of runs that do not touch, never
 * pay where no extent is below 2. */
#include "path/search.h"

#define WEIGHT_MOST 300.0 /* log2 of an extent: products of three stay in a double */

typedef struct Links { /* of an operand: up to two closed labels, one open */
    uint32_t closed[2], n_closed, open;
} Links;

#define NONE UINT32_MAX

typedef struct Chain {
    const Net *net;
    Links *links;
    uint32_t *holder; /* by label, two */
    uint32_t *run;    /* operands in order */
    double *corner;   /* weights of the labels between, in order, the ends included */
    bool ring;
} Chain;

static bool chain_links(Chain *c, Arena *arena)
{
    const Net *net = c->net;
    uint8_t *held = ARENA_ARRAY(arena, net->n_labels, uint8_t);
    c->links = ARENA_ARRAY(arena, net->n, Links);
    c->holder = ARENA_ARRAY(arena, (size_t)net->n_labels * 2, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        Links *to = &c->links[k];
        to->open = NONE;
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            uint32_t l = net_legs(net, k)[i];
            if (net->open[l]) {
                if (to->open != NONE || held[l]++ > 0) {
                    return false;
                }
                to->open = l;
            } else {
                if (to->n_closed == 2 || held[l] == 2) {
                    return false;
                }
                c->holder[2 * l + held[l]++] = k;
                to->closed[to->n_closed++] = l;
            }
            if (net->weight[l] < 1.0 || net->weight[l] > WEIGHT_MOST) {
                return false;
            }
        }
        if (to->n_closed == 0 || (to->n_closed == 2 && to->open != NONE)) {
            return false;
        }
    }
    return true;
}

/* From an end, or anywhere in a ring. False when it comes back too soon. */
static bool chain_walk(Chain *c, Arena *arena)
{
    uint32_t n = c->net->n, at = 0;
    c->run = ARENA_ARRAY(arena, n, uint32_t);
    c->corner = ARENA_ARRAY(arena, (size_t)n + 1, double);
    while (at < n && c->links[at].n_closed == 2) {
        at++;
    }
    c->ring = at == n;
    at = c->ring ? 0 : at;
    const Links *first = &c->links[at];
    uint32_t in = c->ring ? first->closed[1] : first->open;
    uint32_t label = first->closed[0];
    c->corner[0] = in != NONE ? exp2(c->net->weight[in]) : 1.0;
    for (uint32_t k = 0; k < n; k++) {
        c->run[k] = at;
        if (k + 1 == n) {
            uint32_t open = c->links[at].open;
            c->corner[n] = c->ring        ? c->corner[0]
                           : open != NONE ? exp2(c->net->weight[open])
                                          : 1.0;
            break;
        }
        c->corner[k + 1] = exp2(c->net->weight[label]);
        at = c->holder[2 * label] == at ? c->holder[2 * label + 1] : c->holder[2 * label];
        const Links *to = &c->links[at];
        if (to->n_closed < 2 && k + 2 < n) {
            return false;
        }
        label = to->closed[0] == label ? to->closed[1] : to->closed[0];
    }
    return true;
}

/* Corners a < b < c of an order's step: runs (a, b) and (b, c) become (a, c). */
typedef struct Join {
    uint32_t a, b, c;
} Join;

static Join join_of(PolygonTriangle t)
{
    uint32_t x = t.at[0], y = t.at[1], z = t.at[2];
    uint32_t lo = x < y ? x : y, hi = x < y ? y : x;
    uint32_t a = lo < z ? lo : z, c = hi > z ? hi : z;
    return (Join){a, x ^ y ^ z ^ a ^ c, c};
}

static uint32_t run_number(const Chain *c, const Map *made, uint32_t a, uint32_t b)
{
    uint32_t number = 0;
    CHECK(b == a + 1 || map_get(made, (uint64_t)a << 32 | b, &number));
    return b == a + 1 ? c->run[a] : number;
}

/* Shorter runs first. */
static void chain_steps(const Chain *c, const Join *join, uint32_t n_joins, PathStep *out,
                        Arena *arena)
{
    uint32_t n = c->net->n, *first = ARENA_ARRAY(arena, (size_t)n + 2, uint32_t);
    Join *by = ARENA_ARRAY(arena, n_joins, Join);
    Map made;
    map_init(&made, arena);
    for (uint32_t i = 0; i < n_joins; i++) {
        first[join[i].c - join[i].a + 1]++;
    }
    for (uint32_t i = 1; i < n + 2; i++) {
        first[i] += first[i - 1];
    }
    for (uint32_t i = 0; i < n_joins; i++) {
        by[first[join[i].c - join[i].a]++] = join[i];
    }
    for (uint32_t i = 0; i < n_joins; i++) {
        Join j = by[i];
        out[i] = (PathStep){run_number(c, &made, j.a, j.b), run_number(c, &made, j.b, j.c)};
        map_put(&made, (uint64_t)j.a << 32 | j.c, n + i);
    }
}

/* A ring is opened at its lightest label, corner 0 and n at once. */
static uint32_t ring_joins(Chain *c, Join *join, Arena *arena)
{
    uint32_t n = c->net->n, light = 0, next = 1;
    uint32_t *run = ARENA_ARRAY(arena, n, uint32_t);
    double *corner = ARENA_ARRAY(arena, (size_t)n + 1, double);
    PolygonTriangle *t = ARENA_ARRAY(arena, n, PolygonTriangle);
    for (uint32_t k = 1; k < n; k++) {
        light = c->corner[k] < c->corner[light] ? k : light;
    }
    for (uint32_t k = 0; k < n; k++) {
        run[k] = c->run[(light + k) % n];
        corner[k] = c->corner[(light + k) % n];
    }
    for (uint32_t k = 2; k < n; k++) {
        next = corner[k] < corner[next] ? k : next;
    }
    c->run = run;
    polygon_triangulate(corner, n, arena, t);
    for (uint32_t i = 0; i + 2 < n; i++) {
        join[i] = join_of(t[i]);
        if (join[i].a == 0 && join[i].b >= next) { /* on the other side of the last step */
            join[i] = (Join){join[i].b, join[i].c, n};
        }
    }
    join[n - 2] = (Join){0, next, n};
    return n - 1;
}

bool chain_run(const Net *net, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Chain c = {.net = net};
    bool found = net->n >= 3 && chain_links(&c, scratch) && chain_walk(&c, scratch);
    if (found) {
        Join *join = ARENA_ARRAY(scratch, net->n, Join);
        uint32_t n_joins = net->n - 1;
        if (c.ring) {
            n_joins = ring_joins(&c, join, scratch);
        } else {
            PolygonTriangle *t = ARENA_ARRAY(scratch, net->n, PolygonTriangle);
            polygon_triangulate(c.corner, net->n + 1, scratch, t);
            for (uint32_t i = 0; i < n_joins; i++) {
                join[i] = join_of(t[i]);
            }
        }
        chain_steps(&c, join, n_joins, out, scratch);
    }
    arena_reset(scratch, mark);
    return found;
}
