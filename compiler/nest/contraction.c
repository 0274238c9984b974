/* SPDX-License-Identifier: Apache-2.0 */
/* What a sum of products costs that is cut as its schedule says, apart from the traffic between
 * levels of memory: multiply-adds of full register tiles, packing, joining tiles to the result. */
#include "nest/contraction.h"

#include "nest/product.h"

#include <math.h>

#define NONE UINT32_MAX

static bool is_last(const Access *a, uint32_t label)
{
    return a->rank > 0 && a->index[a->rank - 1].label == (int32_t)label;
}

static bool is_last_kept(const Node *n, uint32_t label)
{
    return n->rank > 0 && n->out[n->rank - 1] == (int32_t)label;
}

/* How often what a loop over the label of a role repeats. */
static double trips(double extent, int64_t tile)
{
    double n = extent / (double)tile;
    double whole = (double)(int64_t)n;
    return whole < n ? whole + 1.0 : whole < 1.0 ? 1.0 : whole;
}

/* Positions by role, of all labels together. */
typedef struct RoleExtents {
    const Schedule *b;
    const double *extent;
    bool shared; /* all labels of a role are numbered as one */
    double all[ROLE_BATCH];
} RoleExtents;

static RoleExtents extents_of(const Schedule *b, const double *extent, bool shared)
{
    RoleExtents x = {.b = b, .extent = extent, .shared = shared};
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        x.all[r] = 1.0;
        for (uint32_t i = 0; i < b->n_labels[r]; i++) {
            x.all[r] *= extent[b->label[r][i]];
        }
    }
    return x;
}

/* Iterations of a level over its role's labels. */
static double boxes_of(const RoleExtents *x, const ScheduleLevel *level)
{
    return x->shared ? trips(x->all[level->role], level->tile)
                     : schedule_trips(x->b, level, x->extent);
}

static bool is_packed(const Schedule *b, ScheduleRole role)
{
    for (uint32_t i = 0; i < b->n_levels; i++) {
        if (b->level[i].role == role && b->level[i].pack) {
            return true;
        }
    }
    return false;
}

/* The level that packs the operand with this role, or n_levels. */
static uint32_t pack_level(const Schedule *b, ScheduleRole role)
{
    uint32_t i = 0;
    while (i < b->n_levels && (b->level[i].role != role || !b->level[i].pack)) {
        i++;
    }
    return i;
}

/* Is all of the operand that one execution reads packed at once? */
static bool packs_whole(const Schedule *b, ScheduleRole own, const RoleExtents *x)
{
    uint32_t at = pack_level(b, own);
    bool whole = at < b->n_levels && !x->shared && boxes_of(x, &b->level[at]) <= 1.0;
    for (uint32_t i = 0; i < at; i++) {
        bool sum = b->level[i].role == ROLE_K;
        whole = whole && (!sum || boxes_of(x, &b->level[i]) <= 1.0);
    }
    for (uint32_t i = 0; i < b->n_labels[ROLE_BATCH]; i++) {
        whole = whole && x->extent[b->label[ROLE_BATCH][i]] <= 1.0;
    }
    return whole;
}

/* How often the operand with role `own` is read: once for each position of the loops over the
 * other one's labels that stand around where it is packed, or around its first level when it is
 * not. What is packed at once is packed before these. */
static double reads_of(const Schedule *b, ScheduleRole own, const RoleExtents *x)
{
    ScheduleRole other = own == ROLE_M ? ROLE_N : ROLE_M;
    uint32_t end = packs_whole(b, own, x) ? 0 : b->n_levels;
    for (uint32_t i = 0; i < end; i++) {
        bool mine = b->level[i].role == own;
        end = mine && (b->level[i].pack || !is_packed(b, own)) ? i : end;
    }
    double times = 1.0;
    for (uint32_t i = 0; i < end; i++) {
        if (b->level[i].role == other) {
            times = boxes_of(x, &b->level[i]);
        }
    }
    return times;
}

double contraction_together(const Schedule *b, int32_t label, const double *extent)
{
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        uint32_t at = r == ROLE_BATCH ? b->n_levels : pack_level(b, r);
        const ScheduleLevel *level = r == ROLE_K        ? schedule_outermost(b, ROLE_K)
                                     : at < b->n_levels ? &b->level[at]
                                                        : NULL;
        for (uint32_t i = 0; i < b->n_labels[r]; i++) {
            if ((int32_t)b->label[r][i] != label) {
                continue;
            }
            double n = extent[label],
                   step = level == NULL ? n : (double)schedule_step(level, i);
            bool one = r == ROLE_BATCH || (level == NULL && i > 0);
            return one ? 1.0 : step < n ? step : n;
        }
    }
    return label < 0 ? 1.0 : extent[label];
}

/* Of one element that is copied into a panel of `width` positions: in runs along memory, of so many as are packed
 * together, if that is several. One of another type is converted. */
static double pack_seconds(const MachineTimes *t, const Graph *g, const Node *n, const Use *u,
                           const Schedule *b, ScheduleRole role, const double *extent,
                           double width, int64_t group)
{
    double words = (double)dtype_bytes(n->acc) / 4.0;
    const Access *a = &u->access;
    int64_t held = dtype_bytes(n->acc) / group,
            bytes = dtype_bytes(graph_node(g, u->node)->dtype);
    bool same = graph_node(g, u->node)->dtype == n->acc || (group > 1 && bytes == held);
    double convert = same ? 0.0 : t->convert;
    int32_t last = a->rank > 0 ? a->index[a->rank - 1].label : -1;
    double run = last < 0 ? 1.0 : contraction_together(b, last, extent);
    run = last == (int32_t)b->label[role][0] && run > width ? width : run;
    return convert + (run > 1.0 ? t->pack + t->row / run / words : t->pack_line);
}

static double positions(const Access *a, const Node *n, const double *extent)
{
    double count = 1.0;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        count *= a == NULL                         ? (is_kept(n, l) ? extent[l] : 1.0)
                 : access_has_label(a, (int32_t)l) ? extent[l]
                                                   : 1.0;
    }
    return count;
}

/* Do tiles of the role reach from label to label within a packed box? */
static bool tiles_cross(const RoleExtents *x, ScheduleRole r)
{
    uint32_t at = pack_level(x->b, r), several = 0;
    double first = 1.0, tile = (double)schedule_innermost(x->b, r)->tile;
    for (uint32_t i = 0; at < x->b->n_levels && i < x->b->n_labels[r]; i++) {
        double n = x->extent[x->b->label[r][i]],
               step = (double)schedule_step(&x->b->level[at], i);
        n = step < n ? step : n;
        first = n > 1.0 && several == 0 ? n : first;
        several += n > 1.0 ? 1 : 0;
    }
    return several > 1 && ceil(first / tile) * tile > first;
}

/* Register tiles of the role, the last of each box filled up. */
static double tiles_of(const RoleExtents *x, ScheduleRole r)
{
    int64_t tile = schedule_innermost(x->b, r)->tile;
    uint32_t at = pack_level(x->b, r);
    double along = trips(x->extent[x->b->label[r][0]], tile), all = x->all[r];
    if (x->shared || x->b->n_labels[r] == 1) {
        return trips(all, tile);
    }
    if (!tiles_cross(x, r)) {
        return along * all / x->extent[x->b->label[r][0]];
    }
    double boxes = boxes_of(x, &x->b->level[at]);
    return boxes * trips(all / boxes, tile);
}

/* Do results of a box go through a block of their own, since tiles reach from label to label? */
static bool gathers(const RoleExtents *x)
{
    return tiles_cross(x, ROLE_M) || tiles_cross(x, ROLE_N);
}

/* Of a term that is no product: what its operations and fold take, of a multiply-add's time. Half of them run beside the others,
 * and a maximum takes three, for NaN. */
static double term_price(const NestFacts *f, NodeRef node)
{
    uint32_t ops = nest_term_ops(f->g, f->residence, node);
    Op fold = graph_node(f->g, node)->op;
    return ops == 0 ? 1.0 : 0.5 + 0.5 * (double)ops + (fold == OP_SUM ? 0.0 : 0.5);
}

int64_t contraction_group(const NestFacts *f, const Machine *machine, NodeRef node)
{
    const Use *use = f->uses[node].list.at;
    bool dots = machine->time.dot > 0 && uses_count(&f->uses[node]) == 2 &&
                nest_term_ops(f->g, f->residence, node) == 0;
    return !dots ? 1
                 : dtype_dot_group(graph_node(f->g, use[0].node)->dtype,
                                   graph_node(f->g, use[1].node)->dtype,
                                   graph_node(f->g, node)->acc);
}

/* Multiply-adds of vectors for each vector of the result: two where both operands are complex. */
static double products_of(const NestFacts *f, NodeRef node)
{
    const Use *use = f->uses[node].list.at;
    bool both = dtype_is_complex(graph_node(f->g, use[0].node)->dtype) &&
                dtype_is_complex(graph_node(f->g, use[1].node)->dtype);
    return both ? 2.0 : 1.0;
}

double contraction_width_price(int64_t columns, int64_t widest)
{
    if (columns >= widest) {
        return 1.0;
    }
    double price = columns * 4 == widest * 3 ? 1.25 : 1.1;
    for (int64_t wide = columns * 2; wide < widest && columns * 4 != widest * 3; wide *= 2) {
        price *= 1.75;
    }
    return price;
}

/* Do tiles ask ahead for the operand with this role (schedule/schedule.h)? */
static bool asks_ahead(const NestFacts *f, const Schedule *b, ScheduleRole own, const Use *u,
                       double other_tiles, double sums)
{
    const Graph *g = f->g;
    const Node *n = graph_node(g, u->node);
    double bytes = (double)dtype_bytes(n->dtype), group = LINE_BYTES / bytes;
    for (uint32_t d = 0; d < n->rank; d++) {
        bytes *= (double)nest_typical(g, n->shape[d]);
    }
    double calls = other_tiles * group / (double)schedule_innermost(b, own)->tile;
    return is_packed(b, own) && b->n_labels[ROLE_K] == 1 && sums <= 1.0 &&
           bytes >= AHEAD_BYTES && calls * 2.0 >= 1.0 && calls <= AHEAD_MOST_CALLS &&
           !dtype_is_complex(n->dtype);
}

/* Iterations of a loop around the leaf. */
static double loop_trips(const Nest *nest, uint32_t loop)
{
    const NestItem *item = &nest->items[loop];
    double extent = (double)nest_loop_extent(nest, loop);
    for (uint32_t at = item->parent; at != NEST_NONE; at = nest->items[at].parent) {
        double tile = (double)nest->items[at].tile; /* a tile of a tile */
        extent = nest->items[at].axis == item->axis && tile < extent ? tile : extent;
    }
    return trips(extent, item->tile);
}

double contraction_runs(const NestFacts *f, const Nest *nest, uint32_t item, const Use *operand,
                        uint32_t *loops)
{
    double runs = 1.0;
    *loops = 0;
    uint32_t made = nest->values[operand->node].item;
    for (uint32_t at = nest->items[item].parent; at != NEST_NONE; at = nest->items[at].parent) {
        const NestItem *loop = &nest->items[at];
        int32_t label = nest_loop_label(nest, at, nest->items[item].node);
        bool shared =
            loop->parent == NEST_NONE && !nest_axis_is_folded(f->g, &nest->axes[loop->axis]);
        if (label < 0 || access_has_label(&operand->access, label) || shared ||
            nest_is_in(nest, made, at)) {
            break;
        }
        runs *= loop_trips(nest, at);
        (*loops)++;
    }
    return runs;
}

void contraction_price(const NestFacts *f, const Machine *machine, NodeRef node,
                       const Schedule *b, const double *extent, const double runs[2],
                       ContractionPrice *out)
{
    const MachineTimes *t = &machine->time;
    const Node *n = graph_node(f->g, node);
    double words = (double)dtype_bytes(n->acc) / 4.0;
    uint32_t row = b->label[ROLE_M][0], col = b->label[ROLE_N][0];
    const Use *left = &f->uses[node].list.at[0], *right = &f->uses[node].list.at[1];
    bool swapped = !access_has_label(&left->access, (int32_t)row);
    const Use *of_rows = swapped ? right : left, *of_columns = swapped ? left : right;
    const Access *a = &of_rows->access, *v = &of_columns->access;
    const ScheduleLevel *rows = schedule_innermost(b, ROLE_M),
                        *columns = schedule_innermost(b, ROLE_N),
                        *k = schedule_outermost(b, ROLE_K);
    RoleExtents x = extents_of(b, extent, false);
    double high_of = x.all[ROLE_M], wide_of = x.all[ROLE_N], deep = x.all[ROLE_K];
    double k_times = k == NULL ? 1.0 : boxes_of(&x, k);
    if (!is_packed(b, ROLE_M)) { /* further labels run around */
        k_times = deep / extent[b->label[ROLE_K][0]];
        k_times *= k == NULL ? 1.0 : trips(extent[b->label[ROLE_K][0]], k->tile);
    }
    double depth = deep / k_times;
    double all = positions(NULL, n, extent) / high_of / wide_of * deep;
    double mr = (double)rows->tile, nr = (double)columns->tile;
    double row_tiles = tiles_of(&x, ROLE_M), column_tiles = tiles_of(&x, ROLE_N);
    double high = row_tiles * mr;
    /* A tile with few rows waits for its operands; half of those that fit suffice. */
    double most = 0.5 * (double)(machine->tile.bytes / machine->tile.line);
    double products = products_of(f, node);
    most /= products;
    high = high_of < mr ? high_of : high;
    high = mr < most ? 0.5 * (high + row_tiles * most) : high;
    int64_t widest = machine->tile.line / dtype_bytes(n->acc);
    double padded = column_tiles * nr * contraction_width_price(columns->tile, widest);
    double edge = 1.0;
    edge -= (double)((int64_t)wide_of / columns->tile * columns->tile) / wide_of;
    bool packed = is_packed(b, ROLE_M) && is_packed(b, ROLE_N);
    int64_t group = packed ? contraction_group(f, machine, node) : 1;
    double multiply_add = group == 1 ? t->multiply_add : t->dot * 4.0 / (double)group;
    double a_pack = pack_seconds(t, f->g, n, of_rows, b, ROLE_M, extent, mr, group);
    double b_pack = pack_seconds(t, f->g, n, of_columns, b, ROLE_N, extent, nr, group);
    double join = (is_last_kept(n, col) ? t->join : t->join + t->pack_line) +
                  t->row / (extent[col] < nr ? extent[col] : nr) / words + edge * t->join_edge;
    join += gathers(&x) ? t->pack : 0.0;
    double tiles = all * row_tiles * column_tiles / depth;
    double a_times = reads_of(b, ROLE_M, &x), b_times = reads_of(b, ROLE_N, &x);
    a_pack = is_packed(b, ROLE_M) ? positions(a, n, extent) * a_times * a_pack : 0.0;
    b_pack = is_packed(b, ROLE_N) ? positions(v, n, extent) * b_times * b_pack : 0.0;
    a_pack /= packs_whole(b, ROLE_M, &x) ? runs[swapped ? 1 : 0] : 1.0;
    b_pack /= packs_whole(b, ROLE_N, &x) ? runs[swapped ? 0 : 1] : 1.0;
    out->pack[ROLE_M] = words * a_pack;
    out->pack[ROLE_N] = words * b_pack;
    out->pack[ROLE_K] = 0.0;
    out->whole[ROLE_M] = packs_whole(b, ROLE_M, &x);
    out->whole[ROLE_N] = packs_whole(b, ROLE_N, &x);
    bool in_place = !is_packed(b, ROLE_M) && !is_packed(b, ROLE_N);
    out->seconds =
        (in_place ? t->statement : t->product) + tiles * t->tile +
        words * (products * term_price(f, node) * all * high * padded * multiply_add + a_pack +
                 b_pack + positions(NULL, n, extent) * k_times * join);
    bool columns_ahead = asks_ahead(f, b, ROLE_N, of_columns, row_tiles, k_times),
         rows_ahead = asks_ahead(f, b, ROLE_M, of_rows, column_tiles, k_times);
    out->ahead = columns_ahead ? of_columns->node : rows_ahead ? of_rows->node : NEST_NONE;
    out->a_times = swapped ? b_times : a_times;
    out->b_times = swapped ? a_times : b_times;
    out->c_times = k_times;
}

void contraction_reads(const Schedule *b, const double *extent, double times[ROLE_K])
{
    RoleExtents x = extents_of(b, extent, true);
    times[ROLE_M] = reads_of(b, ROLE_M, &x);
    times[ROLE_N] = reads_of(b, ROLE_N, &x);
}

/* ---- other statements ---- */

uint32_t contraction_innermost(const Node *n, const double *extent)
{
    for (uint32_t l = n->n_labels; l-- > 0;) {
        if (!is_kept(n, l)) {
            return l;
        }
    }
    uint32_t d = n->rank;
    while (d > 1 && extent[n->out[d - 1]] <= 1.0) {
        d--;
    }
    return d == 0 ? NONE : (uint32_t)n->out[d - 1];
}

/* Are neighbours along the label neighbours in memory? Of a block, what loops cut to one position
 * takes no room. */
static bool runs_along(const Access *a, uint32_t label, bool block, const double *extent)
{
    uint32_t rank = a->rank;
    while (block && rank > 0 && a->index[rank - 1].label >= 0 &&
           a->index[rank - 1].label != (int32_t)label &&
           extent[a->index[rank - 1].label] <= 1.0) {
        rank--;
    }
    return rank > 0 && a->index[rank - 1].label == (int32_t)label;
}

uint32_t contraction_columns(const NestFacts *f, const Nest *nest, NodeRef node,
                             const double *extent)
{
    const UseList *u = &f->uses[node];
    uint32_t inner = contraction_innermost(graph_node(f->g, node), extent), strided = 0;
    for (uint32_t i = 0; inner != NONE && i < u->list.n && !u->list.at[i].apart; i++) {
        const Use *use = &u->list.at[i];
        bool block = nest->values[use->node].residence == RESIDE_TILE;
        bool along = runs_along(&use->access, inner, block, extent);
        bool jumps = access_has_label(&use->access, (int32_t)inner) && !along;
        strided += jumps && !use_is_again(u, i) ? 1 : 0;
    }
    return strided;
}

bool contraction_crosses_lines(const NestFacts *f, NodeRef node)
{
    const Node *n = graph_node(f->g, node);
    const UseList *u = &f->uses[node];
    int32_t last[2] = {-1, -1};
    for (uint32_t i = 0; uses_count(u) == 2 && i < 2; i++) {
        const Access *a = &u->list.at[i].access;
        last[i] = a->rank > 0 ? a->index[a->rank - 1].label : -1;
    }
    return last[0] >= 0 && last[1] >= 0 && last[0] != last[1] && node_reduces(n, last[0]) &&
           node_reduces(n, last[1]);
}

bool contraction_has_rows(const NestFacts *f, NodeRef node)
{
    const Node *n = graph_node(f->g, node);
    const UseList *u = &f->uses[node];
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool all = !is_kept(n, l) || is_last_kept(n, l), any = false;
        for (uint32_t i = 0; i < u->list.n && !u->list.at[i].apart; i++) {
            bool read = access_has_label(&u->list.at[i].access, (int32_t)l);
            all &= !read || is_last(&u->list.at[i].access, l);
            any |= read;
        }
        if (all && any) {
            return true;
        }
    }
    return false;
}
