/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products of two operands. One label that stays is the row of a register tile, one
 * its vector; the operand with the vector (B) is packed block by block into panels, the other
 * (A) into panels of rows. The order of loops, outermost first:
 *
 *     labels of both operands, further summed labels, k by tile.k, further labels of B,
 *     columns by block_n: pack B; further labels of A, rows by tile.m: pack A; register tiles
 *
 * Hence A is read once for each block of columns, B once, the result once for each block of k. */
#include "nest/contraction.h"

#define NONE UINT32_MAX

typedef struct Product {
    const Node *node;
    const Access *a, *b; /* a has the row, b the vector */
    uint32_t row, col, k;
} Product;

static bool reads(const Access *a, uint32_t label)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->index[d].label == (int32_t)label) {
            return true;
        }
    }
    return false;
}

static bool is_last(const Access *a, uint32_t label)
{
    return a->rank > 0 && a->index[a->rank - 1].label == (int32_t)label;
}

static bool is_kept(const Node *n, uint32_t label)
{
    return !node_reduces(n, (int32_t)label);
}

static bool is_last_kept(const Node *n, uint32_t label)
{
    return n->rank > 0 && n->out[n->rank - 1] == (int32_t)label;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

/* The best vector, or row, of `own` that `other` lacks. */
static uint32_t best_label(const Product *p, const double *extent, const Access *own,
                           const Access *other, bool vector, double *best)
{
    uint32_t found = NONE;
    *best = 0.0;
    for (uint32_t l = 0; l < p->node->n_labels; l++) {
        if (!is_kept(p->node, l) || !reads(own, l) || reads(other, l) || extent[l] <= 1.0) {
            continue;
        }
        double score = vector
                           ? smaller(extent[l], 32.0) * (is_last_kept(p->node, l) ? 8.0 : 1.0) *
                                 (is_last(own, l) ? 2.0 : 1.0)
                           : smaller(extent[l], 64.0) *
                                 (is_last(own, l) || is_last(own, p->k) ? 16.0 : 1.0);
        if (found == NONE || score > *best) {
            *best = score;
            found = l;
        }
    }
    return found;
}

static bool find_product(const NestFacts *f, NodeRef node, const double *extent, Product *p)
{
    const Node *n = graph_node(f->g, node);
    const UseList *u = &f->uses[node];
    *p = (Product){.node = n, .k = NONE};
    if (op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands != 2 || u->list.n != 2 ||
        dtype_is_complex(n->acc)) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (f->residence[n->operand[i]] == RESIDE_INLINE) {
            return false;
        }
    }
    for (uint32_t l = 0; l < n->n_labels; l++) {
        if (!is_kept(n, l) && (p->k == NONE || extent[l] > extent[p->k])) {
            p->k = l;
        }
    }
    if (p->k == NONE) {
        return false;
    }
    const Access *left = &u->list.at[0].access, *right = &u->list.at[1].access;
    double in_left = 0.0, in_right = 0.0, row = 0.0;
    uint32_t l = best_label(p, extent, left, right, true, &in_left);
    uint32_t r = best_label(p, extent, right, left, true, &in_right);
    bool swap = in_left > in_right;
    p->a = swap ? right : left;
    p->b = swap ? left : right;
    p->col = swap ? l : r;
    p->row = best_label(p, extent, p->a, p->b, false, &row);
    return l != NONE && r != NONE;
}

static double blocks(double extent, int64_t by)
{
    double n = extent / (double)by;
    double whole = (double)(int64_t)n;
    return whole < n ? whole + 1.0 : whole < 1.0 ? 1.0 : whole;
}

/* Columns that register tiles compute for `extent` of them, and the part of these that fills
 * no tile: tiles are halved while that wastes less than shorter vectors cost. */
static double padded_columns(double extent, int64_t widest, double *edge)
{
    double best = 0.0, price = 1.0;
    for (int64_t nr = widest; nr >= widest / 8 && nr >= 2; nr /= 2, price *= 1.5) {
        double cost = blocks(extent, nr) * (double)nr * price;
        if (best == 0.0 || cost < best) {
            double full = (double)((int64_t)extent / nr * nr);
            best = cost;
            *edge = (extent - full) / extent;
        }
    }
    return best;
}

/* Both operands are read where they are: the vector lies along lines in B and in the result, and
 * B is small or read for few rows. */
static bool is_direct(const Machine *machine, const Product *p, const double *extent)
{
    return is_last(p->b, p->col) && is_last_kept(p->node, p->col) &&
           (extent[p->row] <= (double)machine->tile.m ||
            extent[p->k] * extent[p->col] <= (double)machine->tile.direct);
}

/* Of one element that is copied into a panel of `width` positions of label `own`: in runs along
 * memory, if its last label is that of the panel or the summed one. */
static double pack_seconds(const MachineTimes *t, const Product *p, const double *extent,
                           const Access *a, uint32_t own, double width)
{
    double words = (double)dtype_bytes(p->node->acc) / 4.0;
    if (is_last(a, own)) {
        return t->pack + t->row / smaller(extent[own], width) / words;
    }
    if (is_last(a, p->k)) {
        return t->pack + t->row / extent[p->k] / words;
    }
    return t->pack_line;
}

bool contraction_price(const NestFacts *f, const Machine *machine, NodeRef node,
                       const double *extent, ContractionPrice *out)
{
    Product p;
    if (!find_product(f, node, extent, &p)) {
        return false;
    }
    const MachineTimes *t = &machine->time;
    const ContractionTiles *tile = &machine->tile;
    double words = (double)dtype_bytes(p.node->acc) / 4.0;
    double a = 1.0, b = 1.0, c = 1.0, all = 1.0, b_blocks = 1.0, k_blocks = 1.0;
    for (uint32_t l = 0; l < p.node->n_labels; l++) {
        bool in_a = reads(p.a, l), in_b = reads(p.b, l), kept = is_kept(p.node, l);
        a *= in_a ? extent[l] : 1.0;
        b *= in_b ? extent[l] : 1.0;
        c *= kept ? extent[l] : 1.0;
        all *= l == p.row || l == p.col ? 1.0 : extent[l];
        b_blocks *= in_b && !in_a && l != p.col ? extent[l] : 1.0;
        k_blocks *= !kept && l != p.k ? extent[l] : 1.0;
    }
    b_blocks *= blocks(extent[p.col], tile->block_n);
    k_blocks *= blocks(extent[p.k], tile->k);
    double rows = blocks(extent[p.row], tile->m) * (double)tile->m;
    rows = extent[p.row] < (double)tile->m ? extent[p.row] : rows;
    /* A tile with few rows waits for its operands: no less than half of the tile's time. */
    double busy = rows < (double)tile->m ? 0.5 * (rows + (double)tile->m) : rows;
    double edge = 0.0;
    double columns =
        padded_columns(extent[p.col], tile->n * 4 / dtype_bytes(p.node->acc), &edge);
    double lanes = (double)(tile->n * 4 / dtype_bytes(p.node->acc));
    double a_pack = pack_seconds(t, &p, extent, p.a, p.row, (double)tile->m);
    double b_pack = pack_seconds(t, &p, extent, p.b, p.col, lanes);
    double join = (is_last_kept(p.node, p.col) ? t->join : t->join + t->pack_line) +
                  t->row / smaller(extent[p.col], lanes) / words + edge * t->join_edge;
    double tiles = all * blocks(extent[p.row], tile->m) *
                   blocks(extent[p.col], (int64_t)lanes) /
                   smaller(extent[p.k], (double)tile->k);
    if (is_direct(machine, &p, extent)) {
        a_pack = b_pack = 0.0;
    }
    out->seconds = t->product + tiles * t->tile +
                   words * (all * busy * columns * t->multiply_add + a * b_blocks * a_pack +
                            b * b_pack + c * k_blocks * join);
    bool swapped = p.a != &f->uses[node].list.at[0].access;
    out->a_times = swapped ? 1.0 : b_blocks;
    out->b_times = swapped ? b_blocks : 1.0;
    out->c_times = k_blocks;
    return true;
}

uint32_t contraction_innermost(const Node *n)
{
    for (uint32_t l = n->n_labels; l-- > 0;) {
        if (!is_kept(n, l)) {
            return l;
        }
    }
    return n->rank == 0 ? NONE : (uint32_t)n->out[n->rank - 1];
}

uint32_t contraction_columns(const NestFacts *f, NodeRef node)
{
    const UseList *u = &f->uses[node];
    uint32_t inner = contraction_innermost(graph_node(f->g, node)), strided = 0;
    for (uint32_t i = 0; inner != NONE && i < u->list.n; i++) {
        const Access *a = &u->list.at[i].access;
        strided += reads(a, inner) && !is_last(a, inner) ? 1 : 0;
    }
    return strided;
}

bool contraction_has_rows(const NestFacts *f, NodeRef node)
{
    const Node *n = graph_node(f->g, node);
    const UseList *u = &f->uses[node];
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool all = !is_kept(n, l) || is_last_kept(n, l), any = false;
        for (uint32_t i = 0; i < u->list.n; i++) {
            bool read = reads(&u->list.at[i].access, l);
            all &= !read || is_last(&u->list.at[i].access, l);
            any |= read;
        }
        if (all && any) {
            return true;
        }
    }
    return false;
}
