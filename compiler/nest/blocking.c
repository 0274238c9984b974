/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products of two operands: how it is cut below its shared loops. Of the
 * labels that stay, the one that runs along lines in the result is the vector of a
 * register tile; the operand that has it (B) is packed block by block into panels of columns,
 * the other (A) into panels of rows:
 *
 *     batches, further summed labels; sum; further columns; columns: pack B;
 *     further rows; rows: pack A; columns of one register tile
 *
 * Hence A is read once for each block of columns, B once, the result once for each block of the
 * sum. Where both operands are small, or few rows are read once, nothing is packed. The scheme is
 * that of Goto and van de Geijn (ACM TOMS 34, 2008).
 *
 * An engine for matrices has many tiles that live at once (target/strips.c). There the columns
 * are those that lie along lines where the result is in memory; a value on chip has its first
 * row on partitions, and that is the label that its readers sum over, if they do. */
#include "nest/contraction.h"

#define NONE UINT32_MAX

/* One label in one execution of the leaf. */
typedef struct Extent {
    int64_t typical;
    int64_t most;  /* INT64_MAX: open */
    int64_t tile;  /* of the loop that cuts it, or 0 */
    bool exact;    /* always `most` positions */
    bool position; /* cut to one: no label of the statement */
} Extent;

typedef struct Product {
    Arena *arena;
    const NestFacts *f;
    const Machine *machine;
    const Nest *nest;
    uint32_t item;
    const Node *node;
    const Use *a, *b; /* a has the row, b the vector */
    uint32_t row, col, sum;
    const Extent *extent;  /* [labels] */
    const uint32_t *order; /* [rank] of an engine: labels that are kept, the fastest first */
    bool chip;             /* of an engine: the result may be on chip */
} Product;

/* ---- labels ---- */

static bool is_kept(const Node *n, uint32_t label)
{
    return !node_reduces(n, (int32_t)label);
}

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static Extent extent_of(const Product *p, uint32_t label)
{
    const Graph *g = p->f->g;
    NodeRef n = p->nest->items[p->item].node;
    Dim d = p->node->extent[label];
    uint32_t loop = nest_loop_of(p->nest, p->nest->items[p->item].parent, n, (int32_t)label);
    Extent x = {.typical = dim_typical(&g->dims, d),
                .most = d.sym < 0 ? d.n : INT64_MAX,
                .exact = d.sym < 0};
    if (loop != NEST_NONE) {
        x.tile = p->nest->items[loop].tile;
        x.exact = nest_loop_is_full(p->nest, loop);
        x.most = smaller(x.most, x.tile);
        x.typical = smaller(x.typical, x.tile);
        x.position = x.tile == 1;
    }
    return x;
}

/* Do elements of the value side by side along `label` stand side by side where it is kept, in the
 * body of loop `home`, when it is read or written at `access`? */
static bool is_unit(const Product *p, NodeRef value, uint32_t home, bool block,
                    const Access *access, uint32_t label)
{
    const Node *n = graph_node(p->f->g, value);
    bool found = false, last = true;
    for (uint32_t d = access->rank; d-- > 0;) {
        uint32_t loop = block ? nest_loop_of(p->nest, home, value, n->out[d]) : NEST_NONE;
        if (loop != NEST_NONE && p->nest->items[loop].tile == 1) {
            continue;
        }
        bool here = access->index[d].label == (int32_t)label;
        if (here && (found || !last)) {
            return false;
        }
        found |= here;
        last = last && !here && dim_is(n->shape[d], 1);
    }
    return found;
}

static bool operand_is_unit(const Product *p, const Use *u, uint32_t label)
{
    const NestValue *v = &p->nest->values[u->node];
    return is_unit(p, u->node, v->home, v->residence == RESIDE_TILE, &u->access, label);
}

/* In the result, or where it is folded when that has another type. */
static bool result_is_unit(const Product *p, uint32_t label)
{
    NodeRef n = p->nest->items[p->item].node;
    const NestValue *v = &p->nest->values[n];
    bool apart = p->node->acc != p->node->dtype;
    uint32_t around = p->nest->items[v->fold != NEST_NONE ? v->fold : v->item].parent;
    Index *index = ARENA_ARRAY(p->arena, p->node->rank, Index);
    for (uint32_t d = 0; d < p->node->rank; d++) {
        index[d] = (Index){p->node->out[d], 0};
    }
    Access out = {p->node->rank, index};
    return is_unit(p, n, apart ? around : v->home, apart || v->residence == RESIDE_TILE, &out,
                   label);
}

/* ---- roles ---- */

/* Its length as far as a tile uses it; unit stride in the result counts most, since the operand
 * is packed anyway. */
static int64_t column_score(const Product *p, const Use *own, uint32_t label)
{
    return smaller(p->extent[label].typical, 32) * (result_is_unit(p, label) ? 8 : 1) *
           (operand_is_unit(p, own, label) ? 2 : 1);
}

/* Packing must not fetch a line of memory for each element, so it or the summed label runs along
 * lines. */
static int64_t row_score(const Product *p, const Use *own, uint32_t label)
{
    bool lines = operand_is_unit(p, own, label) || operand_is_unit(p, own, p->sum);
    return smaller(p->extent[label].typical, 64) * (lines ? 16 : 1);
}

/* The best column, or row, of `own` that `other` lacks. */
static uint32_t best_label(const Product *p, const Use *own, const Use *other, bool column,
                           int64_t *best)
{
    uint32_t found = NONE;
    *best = 0;
    for (uint32_t d = 0; d < p->node->rank; d++) {
        uint32_t l = (uint32_t)p->node->out[d];
        if (p->extent[l].position || p->extent[l].most == 1 ||
            !access_has_label(&own->access, (int32_t)l) ||
            access_has_label(&other->access, (int32_t)l)) {
            continue;
        }
        int64_t score = column ? column_score(p, own, l) : row_score(p, own, l);
        if (found == NONE || score > *best) {
            *best = score;
            found = l;
        }
    }
    return found;
}

static bool is_engine(const Machine *machine)
{
    return machine->tile.tiles > 0;
}

static bool is_product(const NestFacts *f, const Machine *machine, NodeRef node)
{
    const Node *n = graph_node(f->g, node);
    if (op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands != 2 ||
        f->uses[node].list.n != 2 || (machine->tile.types >> n->acc & 1u) == 0 ||
        node_is_expression(n)) {
        return false;
    }
    return f->residence[n->operand[0]] != RESIDE_INLINE &&
           f->residence[n->operand[1]] != RESIDE_INLINE;
}

/* ---- roles for an engine ---- */

static BlockRole role_of(const Product *p, uint32_t label)
{
    bool in_a = access_has_label(&p->a->access, (int32_t)label),
         in_b = access_has_label(&p->b->access, (int32_t)label);
    if (!is_kept(p->node, label)) {
        return BLOCK_SUM;
    }
    return in_a == in_b ? BLOCK_BATCH : in_a ? BLOCK_ROWS : BLOCK_COLUMNS;
}

/* The statement right after the product that computes with its result, and nothing else does:
 * the tiles are emptied into what it makes. Null: there is none. */
static const Use *following(const Product *p, NodeRef *reader)
{
    const Nest *nest = p->nest;
    NodeRef n = nest->items[p->item].node;
    uint32_t next = p->item + 1;
    if (next >= nest->n_items || nest_is_loop(&nest->items[next]) ||
        nest->items[next].parent != nest->items[p->item].parent ||
        nest->values[n].last != next || nest->values[n].residence == RESIDE_RESULT ||
        !node_is_expression(graph_node(p->f->g, nest->items[next].node))) {
        return NULL;
    }
    *reader = nest->items[next].node;
    const UseList *u = &p->f->uses[*reader];
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (u->list.at[i].node == n) {
            return &u->list.at[i];
        }
    }
    return NULL;
}

/* Might the value be on chip, as far as its size says? */
static bool fits_chip(const Product *p, NodeRef n)
{
    const NestValue *v = &p->nest->values[n];
    bool memory = v->residence == RESIDE_WORKSPACE ||
                  (v->residence == RESIDE_RESULT && v->fold != NEST_NONE);
    return v->residence == RESIDE_TILE ||
           (memory && nest_node_bytes(p->f->g, n) <= machine_tile_capacity(p->machine));
}

/* How well label `label` of a value lies on partitions: it fills them, is summed by products
 * that read it, and not folded otherwise, along the free axis. */
static double partition_score(const Product *p, NodeRef n, int32_t label, double extent)
{
    const NestValue *v = &p->nest->values[n];
    double most = (double)(p->machine->tile.bytes / p->machine->tile.line);
    double score = extent < most ? extent : most;
    for (uint32_t k = v->item + 1; k <= v->last && k < p->nest->n_items; k++) {
        NodeRef r = p->nest->items[k].node;
        if (nest_is_loop(&p->nest->items[k]) || node_is_expression(graph_node(p->f->g, r))) {
            continue;
        }
        const UseList *u = &p->f->uses[r];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Access *a = &u->list.at[i].access;
            for (uint32_t d = 0; u->list.at[i].node == n && d < a->rank; d++) {
                bool here = graph_node(p->f->g, n)->out[d] == label && a->index[d].label >= 0;
                if (here && node_reduces(graph_node(p->f->g, r), a->index[d].label)) {
                    score *= u->list.n == 2 ? 3.0 : 0.7;
                }
            }
        }
    }
    return score;
}

/* The labels of the product in the order of what its tiles are emptied into, and the one that
 * goes on partitions there, or NONE in memory. */
static uint32_t final_labels(const Product *p, uint32_t *label, uint32_t *count)
{
    const Node *n = p->node;
    NodeRef node = p->nest->items[p->item].node, into = node;
    const Use *u = following(p, &into);
    const Node *final = graph_node(p->f->g, into);
    uint32_t best = NONE;
    double most = 0;
    bool chip = fits_chip(p, into);
    *count = 0;
    for (uint32_t d = 0; d < final->rank; d++) {
        uint32_t l = u == NULL ? (uint32_t) final->out[d] : NONE;
        for (uint32_t e = 0; u != NULL && e < u->access.rank; e++) {
            l = u->access.index[e].label == final->out[d] ? (uint32_t)n->out[e] : l;
        }
        if (l == NONE) {
            continue;
        }
        label[(*count)++] = l;
        bool side = access_has_label(&p->a->access, (int32_t)l) !=
                    access_has_label(&p->b->access, (int32_t)l);
        if (chip && side && !p->extent[l].position) {
            double score =
                partition_score(p, into, final->out[d], (double)p->extent[l].typical);
            best = best == NONE || score > most ? l : best;
            most = best == l ? score : most;
        }
    }
    return best;
}

/* Which operand has the rows; false: the engine does not do such a product. */
static bool find_sides(Product *p)
{
    const Node *n = p->node;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool both = access_has_label(&p->a->access, (int32_t)l) &&
                    access_has_label(&p->b->access, (int32_t)l);
        if (!is_kept(n, l) && !p->extent[l].position && !both) {
            return false;
        }
    }
    if (graph_node(p->f->g, p->a->node)->dtype != graph_node(p->f->g, p->b->node)->dtype) {
        return false;
    }
    const Use *left = &p->f->uses[p->nest->items[p->item].node].list.at[0];
    uint32_t *label = ARENA_ARRAY(p->arena, n->rank + 1, uint32_t), count = 0, last = NONE;
    uint32_t partition = final_labels(p, label, &count);
    for (uint32_t i = 0; i < count; i++) {
        last =
            p->extent[label[i]].typical > 1 && !p->extent[label[i]].position ? label[i] : last;
    }
    const Use *rows = left;
    if (partition != NONE) {
        rows = access_has_label(&p->a->access, (int32_t)partition) ? p->a : p->b;
    } else if (last != NONE && access_has_label(&p->a->access, (int32_t)last) !=
                                   access_has_label(&p->b->access, (int32_t)last)) {
        rows = access_has_label(&p->a->access, (int32_t)last) ? p->b : p->a;
    }
    if (rows != p->a) {
        p->b = p->a;
        p->a = rows;
    }
    uint32_t *order = ARENA_ARRAY(p->arena, n->rank + 1, uint32_t), at = 0;
    for (uint32_t i = count; i-- > 0;) {
        order[at++] = label[i];
    }
    for (uint32_t d = n->rank; d-- > 0;) { /* what is not there */
        bool there = false;
        for (uint32_t i = 0; i < count; i++) {
            there |= label[i] == (uint32_t)n->out[d];
        }
        if (!there) {
            order[at++] = (uint32_t)n->out[d];
        }
    }
    p->order = order;
    p->chip = partition != NONE;
    p->row = partition;
    p->col = NONE;
    for (uint32_t i = 0; i < at; i++) {
        BlockRole r = p->extent[order[i]].position ? BLOCK_ROLES : role_of(p, order[i]);
        p->row = r == BLOCK_ROWS && p->row == NONE ? order[i] : p->row;
        p->col = r == BLOCK_COLUMNS && p->col == NONE ? order[i] : p->col;
    }
    return p->row != NONE && p->col != NONE;
}

static bool find_product(Product *p)
{
    NodeRef node = p->nest->items[p->item].node;
    const Node *n = p->node = graph_node(p->f->g, node);
    if (!is_product(p->f, p->machine, node)) {
        return false;
    }
    Extent *extent = ARENA_ARRAY(p->arena, n->n_labels, Extent);
    p->extent = extent;
    p->sum = NONE;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        extent[l] = extent_of(p, l);
        if (!is_kept(n, l) && !extent[l].position &&
            (p->sum == NONE || extent[l].typical > extent[p->sum].typical)) {
            p->sum = l;
        }
    }
    if (p->sum == NONE) {
        return false;
    }
    const Use *left = &p->f->uses[node].list.at[0], *right = &p->f->uses[node].list.at[1];
    int64_t in_left = 0, in_right = 0, row = 0;
    uint32_t l = best_label(p, left, right, true, &in_left);
    uint32_t r = best_label(p, right, left, true, &in_right);
    bool swap = in_left > in_right;
    p->a = swap ? right : left;
    p->b = swap ? left : right;
    p->col = swap ? l : r;
    if (l == NONE || r == NONE) {
        return false;
    }
    p->row = best_label(p, p->a, p->b, false, &row);
    return !is_engine(p->machine) || find_sides(p);
}

/* After the first the label in which an operand that is packed lies along lines: a box has runs of it. */
static void lines_second(const Product *p, BlockRole r, uint32_t *label, uint32_t n)
{
    for (uint32_t i = 2; i < n; i++) {
        bool lines = (r != BLOCK_COLUMNS && operand_is_unit(p, p->a, label[i])) ||
                     (r != BLOCK_ROWS && operand_is_unit(p, p->b, label[i]));
        for (uint32_t k = i; lines && k > 1; k--) {
            uint32_t before = label[k - 1];
            label[k - 1] = label[k];
            label[k] = before;
        }
    }
}

/* The labels by role: the one that is cut first, then as the statement has them. */
static void set_labels(const Product *p, Blocking *b)
{
    const Node *n = p->node;
    const uint32_t first[BLOCK_ROLES] = {[BLOCK_ROWS] = p->row,
                                         [BLOCK_COLUMNS] = p->col,
                                         [BLOCK_SUM] = p->sum,
                                         [BLOCK_BATCH] = NONE};
    for (BlockRole r = 0; r < BLOCK_ROLES; r++) {
        uint32_t *label = ARENA_ARRAY(p->arena, n->n_labels, uint32_t), count = 0;
        if (first[r] != NONE) {
            label[count++] = first[r];
        }
        for (uint32_t i = 0; i < n->rank + n->n_labels; i++) {
            uint32_t l = i >= n->rank       ? i - n->rank
                         : p->order != NULL ? p->order[i]
                                            : (uint32_t)n->out[n->rank - 1 - i];
            bool again = i >= n->rank && is_kept(n, l);
            if (!again && l != first[r] && !p->extent[l].position && role_of(p, l) == r) {
                label[count++] = l;
            }
        }
        if (p->order == NULL && r != BLOCK_BATCH) {
            lines_second(p, r, label, count);
        }
        b->label[r] = label;
        b->n_labels[r] = count;
    }
}

/* ---- levels ---- */

/* Columns of a register tile: few are padding, and few vectors are short. */
static int64_t tile_columns(const Extent *x, int64_t widest)
{
    int64_t best = 0, best_cost = INT64_MAX;
    for (int64_t n = widest, price = 4; n >= widest / 8 && n >= 2; n /= 2, price += price / 2) {
        int64_t cost = sat_mul((x->typical + n - 1) / n, n * price);
        if (cost < best_cost && (x->tile == 0 || x->tile % n == 0)) {
            best = n;
            best_cost = cost;
        }
    }
    return best != 0 ? best : divisor_at_most(x->tile, widest);
}

/* At most so many, and no more than there are. */
static int64_t tile_of(const Extent *x, int64_t most)
{
    int64_t n = smaller(most, x->most);
    return n < 1 ? 1 : n;
}

/* Rows of a register tile. All that it can have where they are few. Of many, half: more of them would read a panel of
 * columns less often, which caches hand out fast enough, but rows that are a power of two apart meet in one set of
 * the first cache, and more would be padding. `along`: panels are copied along them, in short runs if they are narrow.
 * Two thirds, where a fiftieth less is padding. */
static int64_t tile_rows(const Extent *x, int64_t most, bool along)
{
    if (x->tile > 0 || (x->exact && x->most <= most)) {
        return tile_of(x, x->tile > 0 ? divisor_at_most(x->tile, most) : most);
    }
    int64_t n = along || most < 4 ? most : most / 2, other = most * 2 / 3;
    if (!x->exact || most < 4) {
        return n;
    }
    if (x->most <= 4 * most && x->most % most == 0) {
        return most;
    }
    int64_t padded = round_up(x->most, n);
    return padded - round_up(x->most, other) > padded / 50 ? other : n;
}

/* A block of about `want` positions: all of them while that is no more than two, in whole
 * register tiles. */
static int64_t block_of(const Extent *x, int64_t want, int64_t unit)
{
    if (x->most <= want * 2) {
        return round_up(x->most < 1 ? 1 : x->most, unit);
    }
    int64_t block = x->tile > 0 ? divisor_at_most(x->tile, want) : want;
    return block % unit == 0 ? block : unit * divisor_at_most(x->tile / unit, want / unit);
}

/* Both operands are read where they are: the vector lies along lines in B and in the result, and
 * B is small or read for few rows. */
static bool is_direct(const Product *p, const Extent group[BLOCK_BATCH], int64_t rows)
{
    const Extent *col = &p->extent[p->col], *row = &p->extent[p->row];
    const Graph *g = p->f->g;
    bool plain = graph_node(g, p->a->node)->dtype == p->node->acc &&
                 graph_node(g, p->b->node)->dtype == p->node->acc;
    return plain && col->exact && row->exact && result_is_unit(p, p->col) &&
           operand_is_unit(p, p->b, p->col) &&
           (group[BLOCK_ROWS].most <= rows ||
            sat_mul(group[BLOCK_SUM].most, group[BLOCK_COLUMNS].most) <=
                p->machine->tile.direct);
}

static void add_level(BlockLevel *level, uint32_t *n, BlockRole role, int64_t tile, bool pack)
{
    level[(*n)++] = (BlockLevel){role, tile, pack};
}

/* Are the operands one, with the labels of rows and columns exchanged? */
static bool is_mirrored(const Product *p, const Blocking *b)
{
    const Access *x = &p->a->access, *y = &p->b->access;
    bool same = p->a->node == p->b->node && b->n_labels[BLOCK_ROWS] == 1 &&
                b->n_labels[BLOCK_COLUMNS] == 1 && b->n_labels[BLOCK_BATCH] == 0;
    for (uint32_t d = 0; same && d < x->rank; d++) {
        int32_t want =
            x->index[d].label == (int32_t)p->row ? (int32_t)p->col : x->index[d].label;
        same = y->index[d].label == want && y->index[d].offset == x->index[d].offset;
    }
    return same;
}

/* Does its contiguous label lie on partitions, or might it on chip? */
static bool may_turn(const Product *p, const Blocking *b, const Use *u)
{
    const NestValue *v = &p->nest->values[u->node];
    bool turns = v->residence != RESIDE_ARGUMENT && fits_chip(p, u->node);
    for (uint32_t i = 0; i < b->n_labels[BLOCK_SUM]; i++) {
        turns |= operand_is_unit(p, u, b->label[BLOCK_SUM][i]);
    }
    return turns || v->residence == RESIDE_RESULT;
}

static int64_t boxes_of(const Product *p, const Blocking *b, BlockRole r, uint32_t n,
                        int64_t most, int64_t *count)
{
    int64_t *extent = ARENA_ARRAY(p->arena, n + 1, int64_t);
    *count = 1;
    for (uint32_t i = 0; i < n; i++) {
        extent[i] = p->extent[b->label[r][i]].typical;
        extent[i] = extent[i] < 1 ? 1 : extent[i];
        *count = sat_mul(*count, extent[i]);
    }
    return blocking_boxes(n, extent, most);
}

/* How many labels of rows share a tile: on chip one has the partitions. */
static uint32_t shared_rows(const Product *p, const Blocking *b)
{
    uint32_t n = 1;
    int64_t count = p->extent[p->row].typical, most = p->machine->tile.rows;
    while (!p->chip && n < b->n_labels[BLOCK_ROWS] &&
           sat_mul(count, p->extent[b->label[BLOCK_ROWS][n]].typical) <= most) {
        count *= p->extent[b->label[BLOCK_ROWS][n++]].typical;
    }
    return p->chip || count * 2 > most ? n : b->n_labels[BLOCK_ROWS];
}

/* The price of an operand's bytes in SBUF: each step of the sum takes all partitions. */
static double packed_bytes(const Product *p, const Use *u, int64_t steps, int64_t positions)
{
    bool there = p->nest->values[u->node].residence == RESIDE_TILE;
    int64_t size = dtype_bytes(graph_node(p->f->g, u->node)->dtype);
    return there ? 0
                 : (double)sat_mul(steps, p->machine->tile.sum) * (double)positions *
                       (double)size;
}

static void set_engine_levels(const Product *p, Blocking *b)
{
    const ContractionTiles *t = &p->machine->tile;
    NodeRef node = p->nest->items[p->item].node, into = node;
    const NestValue *v = &p->nest->values[node];
    Strips x = {.most_rows = t->tile_rows, .room = (double)t->packed};
    x.tile[BLOCK_ROWS] = smaller(t->rows, t->bytes / t->line);
    x.tile[BLOCK_COLUMNS] = t->line / dtype_bytes(p->node->acc);
    x.tile[BLOCK_SUM] = t->sum;
    int64_t rows = 0, columns = 0, sums = 0;
    x.tiles[BLOCK_ROWS] =
        boxes_of(p, b, BLOCK_ROWS, shared_rows(p, b), x.tile[BLOCK_ROWS], &rows);
    x.tiles[BLOCK_COLUMNS] = boxes_of(p, b, BLOCK_COLUMNS, b->n_labels[BLOCK_COLUMNS],
                                      x.tile[BLOCK_COLUMNS], &columns);
    int64_t steps = boxes_of(p, b, BLOCK_SUM, b->n_labels[BLOCK_SUM], t->sum, &sums);
    x.bytes[BLOCK_ROWS] = packed_bytes(p, p->a, steps, rows);
    x.bytes[BLOCK_COLUMNS] = packed_bytes(p, p->b, steps, columns);
    bool plain = v->fold == NEST_NONE && following(p, &into) == NULL && !p->chip;
    x.live = plain && !may_turn(p, b, p->a) && !may_turn(p, b, p->b) ? t->tiles : t->tiles_busy;
    x.mirrored = plain && is_mirrored(p, b);
    BlockLevel *level = ARENA_ARRAY(p->arena, STRIP_LEVELS, BlockLevel);
    b->n_levels = blocking_strips(&x, level);
    b->level = level;
}

/* ---- boxes of several labels ---- */

/* All labels of a role together: numbered as one while their extents are known. */
static Extent group_of(const Product *p, const Blocking *b, BlockRole r)
{
    Extent x = p->extent[b->label[r][0]];
    for (uint32_t i = 1; i < b->n_labels[r]; i++) {
        const Extent *y = &p->extent[b->label[r][i]];
        x.typical = sat_mul(x.typical, y->typical);
        x.most = sat_mul(x.most, y->most);
        x.exact = x.exact && y->exact;
        x.tile = y->most > 1 ? 0 : x.tile; /* tiles reach from one to the next */
    }
    return x;
}

/* Labels of more than one position, that may share boxes. */
static uint32_t several_labels(const Product *p, const Blocking *b, BlockRole r)
{
    uint32_t n = 0;
    if (!p->extent[b->label[r][0]].exact) {
        return 1;
    }
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        n += p->extent[b->label[r][i]].most > 1 ? 1 : 0;
    }
    return n;
}

/* A box of at most `tile` positions: how many it has, how many boxes there are, and the positions
 * of all of them in whole tiles of `unit`. */
typedef struct Cut {
    int64_t count, boxes, padded;
} Cut;

static Cut cut_of(const Product *p, const Blocking *b, BlockRole r, int64_t tile, int64_t unit)
{
    Cut x = {1, 1, 0};
    int64_t full = 1, rest = 0;
    bool cut = false;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        const Extent *y = &p->extent[b->label[r][i]];
        int64_t n = smaller(y->most, y->typical < 1 ? 1 : y->typical), step = tile / x.count;
        n = n < 1 ? 1 : n;
        if (!cut && n <= step && y->exact) {
            x.count *= n;
            continue;
        }
        if (cut || step < 2) {
            x.boxes = sat_mul(x.boxes, n);
        } else {
            step = smaller(y->tile > 0 ? divisor_at_most(y->tile, step) : step, n);
            full = n / step;
            rest = n % step * x.count;
            x.count *= step;
            x.boxes = sat_mul(x.boxes, full + (rest > 0 ? 1 : 0));
        }
        cut = true;
    }
    int64_t pieces = full + (rest > 0 ? 1 : 0);
    x.padded = sat_mul(x.boxes / pieces, full * round_up(x.count, unit) + round_up(rest, unit));
    return x;
}

/* The box of about `want` positions, in whole tiles, that wastes least: positions of tiles that
 * are none, and for each box as much as `each` positions cost. */
static int64_t box_of(const Product *p, const Blocking *b, BlockRole r, int64_t want,
                      int64_t unit, int64_t each)
{
    int64_t best = unit, least = INT64_MAX;
    for (int64_t tile = unit; tile <= want + want / 4; tile += unit) {
        Cut x = cut_of(p, b, r, tile, unit);
        int64_t cost = sat_add(x.padded, sat_mul(x.boxes, each));
        if (cost < least) {
            least = cost;
            best = tile;
        }
    }
    return best;
}

/* Would tiles of `unit` positions reach from label to label within such a box? */
static bool crosses(const Product *p, const Blocking *b, BlockRole r, int64_t tile,
                    int64_t unit)
{
    uint32_t several = 0;
    int64_t first = 1, count = 1;
    for (uint32_t i = 0; i < b->n_labels[r] && count <= tile; i++) {
        const Extent *x = &p->extent[b->label[r][i]];
        bool there = x->most > 1 && tile / count > 1;
        first = there && several == 0 ? x->most : first;
        several += there ? 1 : 0;
        count = sat_mul(count, x->exact ? x->most : INT64_MAX);
    }
    return several > 1 && first % unit != 0;
}

/* Of one label: blocks as long as it allows. Of several: boxes. */
static int64_t sum_box(const Product *p, const Blocking *b, const Extent *group)
{
    int64_t want = p->machine->tile.sum;
    if (several_labels(p, b, BLOCK_SUM) < 2) {
        return block_of(&p->extent[p->sum], want, 1);
    }
    return group->most <= want + want / 2 ? group->most
                                          : box_of(p, b, BLOCK_SUM, want, 1, want / 8);
}

static int64_t columns_box(const Product *p, const Blocking *b, int64_t unit)
{
    int64_t want = p->machine->tile.columns;
    return several_labels(p, b, BLOCK_COLUMNS) < 2
               ? block_of(&p->extent[p->col], want, unit)
               : box_of(p, b, BLOCK_COLUMNS, want, unit, want / 16);
}

static void set_packed_levels(const Product *p, Blocking *b, const Extent group[BLOCK_BATCH])
{
    const ContractionTiles *t = &p->machine->tile;
    int64_t size = dtype_bytes(p->node->acc), widest = t->line / size;
    BlockLevel *level = ARENA_ARRAY(p->arena, 5, BlockLevel);
    uint32_t n = 0;
    bool wide = several_labels(p, b, BLOCK_COLUMNS) > 1,
         high = several_labels(p, b, BLOCK_ROWS) > 1;
    int64_t columns = wide ? tile_columns(&group[BLOCK_COLUMNS], widest)
                           : tile_columns(&p->extent[p->col], widest);
    int64_t most = smaller(t->bytes / size / columns, t->rows);
    int64_t rows = high ? tile_of(&group[BLOCK_ROWS], most)
                        : tile_rows(&p->extent[p->row], most, operand_is_unit(p, p->a, p->row));
    int64_t block = columns_box(p, b, columns), k = sum_box(p, b, &group[BLOCK_SUM]);
    int64_t box = box_of(p, b, BLOCK_ROWS, t->gathered / (block * size), rows, rows);
    bool gathers =
        crosses(p, b, BLOCK_COLUMNS, block, columns) || crosses(p, b, BLOCK_ROWS, box, rows);
    if (k < group[BLOCK_SUM].most) {
        add_level(level, &n, BLOCK_SUM, k, false);
    }
    add_level(level, &n, BLOCK_COLUMNS, block, true);
    add_level(level, &n, BLOCK_ROWS, gathers ? box : rows, true);
    if (gathers && box > rows) {
        add_level(level, &n, BLOCK_ROWS, rows, false);
    }
    if (block > columns) {
        add_level(level, &n, BLOCK_COLUMNS, columns, false);
    }
    b->level = level;
    b->n_levels = n;
}

static void set_levels(const Product *p, Blocking *b)
{
    if (is_engine(p->machine)) {
        set_engine_levels(p, b);
        return;
    }
    const ContractionTiles *t = &p->machine->tile;
    Extent group[BLOCK_BATCH];
    for (BlockRole r = 0; r < BLOCK_BATCH; r++) {
        group[r] = group_of(p, b, r);
    }
    if (!is_direct(p, group, t->bytes / t->line)) {
        set_packed_levels(p, b, group);
        return;
    }
    BlockLevel *level = ARENA_ARRAY(p->arena, 2, BlockLevel);
    uint32_t n = 0;
    add_level(level, &n, BLOCK_ROWS, tile_rows(&p->extent[p->row], t->bytes / t->line, false),
              false);
    add_level(level, &n, BLOCK_COLUMNS,
              tile_of(&p->extent[p->col], t->line / dtype_bytes(p->node->acc)), false);
    b->level = level;
    b->n_levels = n;
}

const Blocking *contraction_blocking(Arena *arena, const NestFacts *f, const Machine *machine,
                                     const Nest *nest, uint32_t item)
{
    Product p = {.arena = arena, .f = f, .machine = machine, .nest = nest, .item = item};
    if (!find_product(&p)) {
        return NULL;
    }
    Blocking *b = ARENA_NEW(arena, Blocking);
    set_labels(&p, b);
    set_levels(&p, b);
    return b;
}

void nest_set_blocking(Arena *arena, const NestFacts *f, const Machine *machine,
                       const Nest *nest, NestValue *values)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef node = nest->items[k].node;
        if (!nest_is_loop(&nest->items[k]) && values[node].blocking == NULL) {
            values[node].blocking = contraction_blocking(arena, f, machine, nest, k);
        }
    }
}

void nest_block(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest)
{
    Arena scratch;
    NestFacts facts;
    uint32_t n = nest->graph->nodes.n;
    arena_init(&scratch, &ctx->budget);
    Residence *residence = ARENA_ARRAY(&scratch, n, Residence);
    NestValue *values = arena_copy(arena, nest->values, n * sizeof *values);
    for (NodeRef k = 0; k < n; k++) {
        residence[k] = values[k].residence;
    }
    nest_facts_of(&scratch, nest->graph, residence, &facts);
    nest_set_blocking(arena, &facts, machine, nest, values);
    nest->values = values;
    arena_release(&scratch);
}
