/* SPDX-License-Identifier: Apache-2.0 */
/* Optimal triangulation of a convex polygon whose triangles cost the product of their corners'
 * weights, in O(n log n): the order of a chain or ring of matrices. Hu and Shing (1982, 1984):
 * one sweep finds at most n chords (pieces here) that hold every chord of some optimum which
 * does not end at the centre of a fan; what is left is which of them to cut.
 *
 * A region below a cut piece is a fan from the lighter end of that piece, so its cost depends on
 * the region above only by that centre's weight L: keeping a piece within the region above costs
 * a concave, piecewise linear function of L, cutting it L * (weight of the chord) + a constant.
 * A piece is cut from some L upwards. Pieces carry their function as the line that holds at the
 * largest L still of interest and a heap of the places where it bends, greatest first; the
 * pieces above ask for smaller L only, so that places beyond are dropped for good. */
#include "path/search.h"

#define NONE UINT32_MAX

typedef struct
    Piece { /* a side, or a chord (u, v) with the two pieces (u, t) and (t, v) below */
    uint32_t u, v, below[2];
    double slope, base; /* of the line that holds at the largest L of interest */
    double total;       /* of the region below, once cut */
    double from;        /* cut from this L on; INFINITY: never */
    uint32_t heap;      /* of bends; by piece that bends */
} Piece;

typedef struct Bend {
    double at, slope, base; /* where, and what the line gains there */
    uint32_t left, right, rank;
} Bend;

typedef struct Polygon {
    const double *w; /* the lightest first */
    Piece *piece;
    Bend *bend; /* by piece */
    uint32_t n_pieces;
} Polygon;

/* Leftist heaps: the right spine is logarithmic. */
static uint32_t heap_meld(Bend *b, uint32_t x, uint32_t y)
{
    if (x == NONE || y == NONE) {
        return x == NONE ? y : x;
    }
    if (b[x].at < b[y].at) {
        uint32_t z = x;
        x = y;
        y = z;
    }
    b[x].right = heap_meld(b, b[x].right, y);
    uint32_t left = b[x].left == NONE ? 0 : b[b[x].left].rank;
    if (left < b[b[x].right].rank) {
        uint32_t z = b[x].left;
        b[x].left = b[x].right;
        b[x].right = z;
    }
    b[x].rank = b[x].right == NONE ? 1 : b[b[x].right].rank + 1;
    return x;
}

static void piece_unbend(Polygon *g, Piece *p)
{
    const Bend *b = &g->bend[p->heap];
    p->slope -= b->slope;
    p->base -= b->base;
    p->heap = heap_meld(g->bend, b->left, b->right);
}

/* The cost of keeping the piece in a region of centre weight L; larger L are asked no more. */
static double piece_kept(Polygon *g, Piece *p, double l)
{
    while (p->heap != NONE && g->bend[p->heap].at > l) {
        piece_unbend(g, p);
    }
    return p->slope * l + p->base;
}

static uint32_t side_new(Polygon *g, uint32_t u, uint32_t v)
{
    uint32_t id = g->n_pieces++;
    g->piece[id] = (Piece){u, v, {NONE, NONE}, g->w[u] * g->w[v], 0.0, 0.0, INFINITY, NONE};
    return id;
}

static uint32_t piece_centre(const Polygon *g, const Piece *p)
{
    return g->w[p->u] <= g->w[p->v] ? p->u : p->v;
}

static uint32_t chord_new(Polygon *g, uint32_t first, uint32_t second)
{
    uint32_t id = g->n_pieces++;
    Piece *a = &g->piece[first], *b = &g->piece[second], *p = &g->piece[id];
    *p = (Piece){.u = a->u, .v = b->v, .below = {first, second}, .from = INFINITY};
    bool at_u = piece_centre(g, p) == p->u;
    double l = g->w[at_u ? p->u : p->v], line = g->w[p->u] * g->w[p->v];
    /* The piece at the centre is part of the fan, whether cut or not. */
    double kept_a = piece_kept(g, a, l), kept_b = piece_kept(g, b, l);
    p->total = at_u ? a->total + kept_b : b->total + kept_a;
    p->slope = a->slope + b->slope;
    p->base = a->base + b->base;
    p->heap = heap_meld(g->bend, a->heap, b->heap);
    while (p->heap != NONE) { /* bends where the cut is no worse already */
        double at = g->bend[p->heap].at;
        if (line * at + p->total > p->slope * at + p->base) {
            break;
        }
        piece_unbend(g, p);
    }
    double from = p->slope > line ? (p->total - p->base) / (p->slope - line) : INFINITY;
    if (from < l) {
        p->from = from;
        g->bend[id] = (Bend){from, line - p->slope, p->total - p->base, NONE, NONE, 1};
        p->slope = line;
        p->base = p->total;
        p->heap = heap_meld(g->bend, p->heap, id);
    }
    return id;
}

/* The pieces about the fan from vertex 0, in order; returns their number. */
static uint32_t polygon_sweep(Polygon *g, uint32_t n, uint32_t *vertex, uint32_t *held,
                              uint32_t *about)
{
    uint32_t depth = 0, n_about = 0; /* held[k]: the piece (vertex[k - 1], vertex[k]) */
    vertex[depth++] = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t last = i > 1 ? side_new(g, i - 1, i) : NONE;
        while (depth > 1 && g->w[vertex[depth - 1]] > g->w[i]) {
            depth--;
            if (depth > 1) {
                last = chord_new(g, held[depth], last);
            } else {
                about[n_about++] = last;
            }
        }
        held[depth] = last;
        vertex[depth++] = i;
    }
    for (uint32_t k = 2; k < depth; k++) {
        about[n_about++] = held[k];
    }
    return n_about;
}

typedef struct Visit {
    uint32_t piece, centre;
} Visit;

/* Rotated so that vertex 0 is the lightest. */
static uint32_t polygon_cut(Polygon *g, uint32_t n_about, const uint32_t *about, Visit *stack,
                            PolygonTriangle *out)
{
    uint32_t depth = 0, n = 0;
    for (uint32_t i = 0; i < n_about; i++) {
        stack[depth++] = (Visit){about[i], 0};
    }
    while (depth > 0) {
        Visit x = stack[--depth];
        const Piece *p = &g->piece[x.piece];
        bool at_centre = p->u == x.centre || p->v == x.centre, side = p->below[0] == NONE;
        bool cut = !at_centre && (side || p->from <= g->w[x.centre]);
        if (cut) {
            out[n++] = (PolygonTriangle){{x.centre, p->u, p->v}};
            x.centre = piece_centre(g, p);
        }
        for (int i = 0; i < 2 && !side; i++) {
            stack[depth++] = (Visit){p->below[i], x.centre};
        }
    }
    return n;
}

void polygon_triangulate(const double *weight, uint32_t n, Arena *arena, PolygonTriangle *out)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < n; i++) {
        first = weight[i] < weight[first] ? i : first;
    }
    ArenaMark mark = arena_mark(arena);
    double *w = ARENA_ARRAY(arena, n, double);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = weight[(first + i) % n];
    }
    size_t pieces = (size_t)2 * n;
    Polygon g = {w, ARENA_ARRAY(arena, pieces, Piece), ARENA_ARRAY(arena, pieces, Bend), 0};
    uint32_t *about = ARENA_ARRAY(arena, n, uint32_t);
    uint32_t n_about = polygon_sweep(&g, n, ARENA_ARRAY(arena, n, uint32_t),
                                     ARENA_ARRAY(arena, n, uint32_t), about);
    uint32_t made = polygon_cut(&g, n_about, about, ARENA_ARRAY(arena, pieces, Visit), out);
    CHECK(made == n - 2);
    for (uint32_t i = 0; i < made; i++) {
        for (int k = 0; k < 3; k++) {
            out[i].at[k] = (out[i].at[k] + first) % n;
        }
    }
    arena_reset(arena, mark);
}
