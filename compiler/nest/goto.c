/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a contraction for a machine with caches: how its labels are cut, by role: register tiles, what is packed in
 * blocks of which size, boxes of several labels. */
#include "nest/parallel.h"
#include "nest/product.h"

#include <math.h>
#include <string.h>

/* Columns of a register tile: few are padding, and short vectors do less. *cost: of all columns, in such of the widest
 * tile. Three quarters of that are worth it where they are exact. */
static int64_t tile_columns(const LabelExtent *x, int64_t widest, double *cost)
{
    int64_t best = 0, third = widest / 4 * 3;
    *cost = 0;
    for (int64_t n = widest; n >= widest / 8 && n >= 2; n /= 2) {
        double all = (double)round_up(x->typical, n) * contraction_width_price(n, widest);
        if ((best == 0 || all < *cost) && (x->tile == 0 || x->tile % n == 0)) {
            best = n;
            *cost = all;
        }
    }
    double all = (double)x->most * contraction_width_price(third, widest);
    if (third >= 2 && x->exact && x->most % third == 0 && x->tile == 0 &&
        (best == 0 || all < *cost)) {
        *cost = all;
        return third;
    }
    return best != 0 ? best : divisor_at_most(x->tile, widest);
}

/* Are the rows complex? */
static bool has_pairs(const Product *p)
{
    return dtype_is_complex(graph_node(p->f->g, p->a->node)->dtype);
}

/* At most so many, and no more than there are. */
static int64_t tile_of(const LabelExtent *x, int64_t most)
{
    int64_t n = smaller(most, x->most);
    return n < 1 ? 1 : n;
}

/* What a tile of so many rows takes: registers may be few, then it is done in halves; and fewer rows than five have too
 * few sums under way to keep the multipliers busy. */
static int64_t tile_time(int64_t rows, int64_t most, bool pairs)
{
    if (pairs) { /* twice the sums of each row: by quarters, and two rows are enough */
        int64_t quarter = most / 4, times = (rows + quarter - 1) / quarter,
                each = (rows + times - 1) / times, last = rows - (times - 1) * each;
        return (times - 1) * each + (last > 2 ? last : 2);
    }
    int64_t busy = most * 5 / 12, half = rows / 2, rest = rows - half;
    if (rows <= most / 2) {
        return rows > busy ? rows : busy;
    }
    return (half > busy ? half : busy) + (rest > busy ? rest : busy);
}

/* Rows of a register tile. All that it can have where they are few. Of many, half: more of them would read a panel of
 * columns less often, which caches hand out fast enough, but rows of the result that are a power of two apart meet in
 * one set of the first cache. All where that `pays`: panels are copied along them, in short runs if they are narrow, or
 * vectors are short. Others where a fiftieth of the time is gained: less is padding. */
static int64_t tile_rows(const LabelExtent *x, int64_t most, bool pays, bool pairs)
{
    if (x->tile > 0 || (x->exact && x->most <= most)) {
        return tile_of(x, x->tile > 0 ? divisor_at_most(x->tile, most) : most);
    }
    int64_t best = pays || most < 4 ? most : most / 2;
    if (!x->exact || most < 4) {
        return best;
    }
    int64_t least = sat_mul((x->most + best - 1) / best, tile_time(best, most, pairs));
    for (int64_t i = most / 2; i <= most; i++) {
        int64_t cost = sat_mul((x->most + i - 1) / i, tile_time(i, most, pairs));
        if (cost < least - least / 50) {
            best = i;
            least = cost;
        }
    }
    return best;
}

/* A block of about `want` positions: all of them while that is no more than two, in whole
 * register tiles. */
static int64_t block_of(const LabelExtent *x, int64_t want, int64_t unit)
{
    if (x->most <= want * 2) {
        return round_up(x->most < 1 ? 1 : x->most, unit);
    }
    int64_t block = x->tile > 0 ? divisor_at_most(x->tile, want) : want;
    return block % unit == 0 ? block : unit * divisor_at_most(x->tile / unit, want / unit);
}

static uint32_t several_labels(const Product *p, const Schedule *b, ScheduleRole r);

/* Are there so few columns that rows, which lie along the sum, are read no more often in place than they would be to pack
 * them? Tiles of half the rows: lines of rows that are a power of two apart meet in one set of the first cache. */
static bool rows_in_place(const Product *p, const Schedule *b,
                          const LabelExtent group[ROLE_BATCH])
{
    int64_t wide = p->machine->tile.line / dtype_bytes(p->node->acc);
    int64_t rest = p->extent[p->col].most % wide; /* a tile of its own */
    return group[ROLE_N].most <= p->machine->tile.columns / 2 &&
           (rest == 0 || rest * 4 >= wide) && operand_is_unit(p, p->a, p->sum) &&
           several_labels(p, b, ROLE_K) < 2 && several_labels(p, b, ROLE_N) < 2;
}

/* Sums for which lines of B are read in place for a few tiles of rows, though they lie far apart: packing them takes longer. */
#define SHORT_SUM 64
#define FEW_TILES 4

/* Both operands are read where they are: the vector lies along lines in B and in the result, and
 * B is small along the first of its columns' labels, outside of which loops over the others go, or read for few rows, or there are
 * few columns. */
static bool is_direct(const Product *p, const Schedule *b, const LabelExtent group[ROLE_BATCH],
                      int64_t rows)
{
    const LabelExtent *col = &p->extent[p->col], *row = &p->extent[p->row];
    const Graph *g = p->f->g;
    DType rows_type = graph_node(g, p->a->node)->dtype, type = p->node->acc,
          columns_type = graph_node(g, p->b->node)->dtype;
    bool plain = (rows_type == type || rows_type == dtype_part(type)) &&
                 (columns_type == type || columns_type == dtype_part(type));
    bool wide = col->most >= 2 * p->machine->tile.line / dtype_bytes(type);
    return plain && col->exact && row->exact && result_is_unit(p, p->col) &&
           operand_is_unit(p, p->b, p->col) &&
           (group[ROLE_M].most <= (group[ROLE_K].most <= SHORT_SUM ? FEW_TILES * rows : rows) ||
            rows_in_place(p, b, group) ||
            sat_mul(group[ROLE_K].most, wide ? col->most : group[ROLE_N].most) <=
                p->machine->tile.direct);
}

/* An operand that is read in place and fits no near cache comes from afar in lines of memory, one for each position of the
 * sum: as many as processors follow at once, each to its end, before the next ones. */
#define STREAMS 16

/* What one level of the sum holds of such a product, or 0: all. Else what is read for each tile of rows stays near. */
static int64_t direct_sum(const Product *p, const LabelExtent group[ROLE_BATCH])
{
    int64_t size = dtype_bytes(p->node->acc), line = sat_mul(p->extent[p->col].most, size);
    int64_t bytes = sat_mul(sat_mul(group[ROLE_K].typical, group[ROLE_N].typical), size);
    if (bytes <= machine_tile_capacity(p->machine) || p->extent[p->sum].most <= STREAMS) {
        return 0;
    }
    int64_t most = machine_tile_capacity(p->machine) / 2 / line;
    return line >= p->machine->level[0].granule * STREAMS ? STREAMS
           : most < p->machine->tile.sum                  ? p->machine->tile.sum
                                         : most / p->machine->tile.sum * p->machine->tile.sum;
}

/* ---- boxes of several labels ---- */

/* All labels of a role together: numbered as one while their extents are known. */
static LabelExtent group_of(const Product *p, const Schedule *b, ScheduleRole r)
{
    LabelExtent x = p->extent[b->label[r][0]];
    for (uint32_t i = 1; i < b->n_labels[r]; i++) {
        const LabelExtent *y = &p->extent[b->label[r][i]];
        x.typical = sat_mul(x.typical, y->typical);
        x.most = sat_mul(x.most, y->most);
        x.exact = x.exact && y->exact;
        x.tile = y->most > 1 ? 0 : x.tile; /* tiles reach from one to the next */
    }
    return x;
}

/* Labels of more than one position, that may share boxes. */
static uint32_t several_labels(const Product *p, const Schedule *b, ScheduleRole r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        n += label_planned(&p->extent[b->label[r][i]]) > 1 ? 1 : 0;
    }
    return n;
}

/* What a line of memory that a box has a part of takes, of a position's time, at most. */
#define TORN 1.0

/* The labels of the role. */
static const LabelExtent *const *labels_of(const Product *p, const Schedule *b, ScheduleRole r)
{
    const LabelExtent **x = ARENA_ARRAY(p->arena, b->n_labels[r], const LabelExtent *);
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        x[i] = &p->extent[b->label[r][i]];
    }
    return x;
}

/* Would tiles of `unit` positions reach from label to label within such a box? */
static bool crosses(const Product *p, const Schedule *b, ScheduleRole r, const int64_t *step,
                    int64_t unit)
{
    uint32_t several = 0;
    int64_t first = 1;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        int64_t n = smaller(step[i], p->extent[b->label[r][i]].most);
        first = n > 1 && several == 0 ? n : first;
        several += n > 1 ? 1 : 0;
    }
    return several > 1 && first % unit != 0;
}

/* Positions of `n` in pieces of `step`, each `times` over and in whole tiles of `unit`. */
static int64_t padded_pieces(int64_t n, int64_t step, int64_t times, int64_t unit)
{
    return sat_add(sat_mul(n / step, round_up(step * times, unit)),
                   round_up(n % step * times, unit));
}

/* How many boxes there are, and the positions of all of them in whole tiles. */
typedef struct Cut {
    int64_t boxes, padded;
} Cut;

static Cut cut_of(const Product *p, const Schedule *b, ScheduleRole r, const int64_t *step,
                  int64_t unit, double torn_line)
{
    const Use *operand = r == ROLE_N ? p->b : p->a;
    int64_t wide = LINE_BYTES / dtype_bytes(p->node->acc), count = 1, last_step = 1, last = 1;
    Cut x = {1, 1};
    double lines = 1.0; /* of memory that boxes touch, over those there are */
    bool across = crosses(p, b, r, step, unit), tiled = across;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        int64_t n = label_planned(&p->extent[b->label[r][i]]), one = smaller(step[i], n);
        int64_t boxes = (n + one - 1) / one;
        bool torn = torn_line > 0.0 && one % wide != 0 && one < n &&
                    operand_is_unit(p, operand, b->label[r][i]);
        lines = torn ? 1.0 + (double)(wide - 1) / (double)one : lines;
        x.boxes = sat_mul(x.boxes, boxes);
        if (across && one > 1) { /* numbers end where the last label does */
            x.padded = sat_mul(x.padded, (last + last_step - 1) / last_step);
            count = sat_mul(count, last_step);
            last = n;
            last_step = one;
        } else {
            bool along = !tiled && one > 1;
            x.padded = sat_mul(x.padded, along ? padded_pieces(n, one, 1, unit) : n);
            tiled |= along;
        }
    }
    x.padded =
        across ? sat_mul(x.padded, padded_pieces(last, last_step, count, unit)) : x.padded;
    x.padded += (int64_t)((double)x.padded * (lines - 1.0) * torn_line);
    return x;
}

/* Positions of one iteration of a level, of all labels and, if its role has several, of each. */
typedef struct Block {
    int64_t tile;
    const int64_t *step;
} Block;

static void add_level(ScheduleLevel *level, uint32_t *n, ScheduleRole role, Block block,
                      bool pack)
{
    level[(*n)++] =
        (ScheduleLevel){.role = role, .tile = block.tile, .step = block.step, .pack = pack};
}

/* Of the first label, the others position by position. */
static Block block_along(int64_t tile)
{
    return (Block){tile, NULL};
}

/* At most `tile` positions of all labels. */
static Block box_of_all(const Product *p, const Schedule *b, ScheduleRole r, int64_t tile)
{
    int64_t *step = ARENA_ARRAY(p->arena, b->n_labels[r], int64_t);
    schedule_cut(b->n_labels[r], labels_of(p, b, r), tile, tile, step);
    return (Block){tile, b->n_labels[r] > 1 ? step : NULL};
}

/* What fetching a line of memory for one element takes, of the time in which a position meets all of the other role's. */
static double line_price(const Product *p, const Schedule *b, ScheduleRole r)
{
    const MachineTimes *t = &p->machine->time;
    ScheduleRole other = r == ROLE_N ? ROLE_M : ROLE_N;
    double meets = t->multiply_add;
    for (uint32_t i = 0; i < b->n_labels[other]; i++) {
        meets *= (double)label_planned(&p->extent[b->label[other][i]]);
    }
    return t->pack_line < TORN * meets ? t->pack_line / meets : TORN;
}

/* Does the operand with this role lie in lines along a label of it that is not the first? Then boxes that are short along the
 * first have runs of both. */
static bool lines_behind(const Product *p, const Schedule *b, ScheduleRole r)
{
    bool behind = false;
    for (uint32_t i = 1; r != ROLE_K && i < b->n_labels[r]; i++) {
        behind |= operand_is_unit(p, r == ROLE_N ? p->b : p->a, b->label[r][i]);
    }
    return behind;
}

/* The box of about `want` positions, in whole tiles, that wastes least: positions of tiles that
 * are none, lines of memory that it has a part of, and for each box as much as `each` positions cost. */
static Block box_of(const Product *p, const Schedule *b, ScheduleRole r, int64_t want,
                    int64_t unit, int64_t each)
{
    uint32_t n = b->n_labels[r];
    const LabelExtent *const *label = labels_of(p, b, r);
    int64_t *step = ARENA_ARRAY(p->arena, n, int64_t),
            *best = ARENA_ARRAY(p->arena, n, int64_t);
    double line = r == ROLE_K ? 0.0 : line_price(p, b, r);
    int64_t least = INT64_MAX, best_tile = 0, all = label_planned(label[0]),
            shortest = lines_behind(p, b, r) ? unit : all;
    for (int64_t tile = unit; tile <= want + want / 4 || best_tile == 0; tile += unit) {
        for (int64_t first = shortest; first > 0; first = first < all ? sat_mul(first, 2) : 0) {
            schedule_cut(n, label, tile, first, step);
            Cut x = cut_of(p, b, r, step, unit, line);
            int64_t cost = sat_add(x.padded, sat_mul(x.boxes, each));
            if (cost < least || best_tile == 0) {
                least = cost;
                best_tile = tile;
                memcpy(best, step, n * sizeof *best);
            }
        }
    }
    return (Block){best_tile, n > 1 ? best : NULL};
}

static bool block_crosses(const Product *p, const Schedule *b, ScheduleRole r, const Block *x,
                          int64_t unit)
{
    return x->step != NULL && crosses(p, b, r, x->step, unit);
}

/* Lines of panels that are a group of words, or 1. */
static int64_t lines_together(const Product *p)
{
    return contraction_group(p->f, p->machine, p->nest->items[p->item].node);
}

/* Bytes that an element takes in panels: a word's part. */
static int64_t packed_size(const Product *p)
{
    return dtype_bytes(p->node->acc) / lines_together(p);
}

/* Of one label: blocks as long as it allows, and as long as each other: each of them is one pass over the result. Of
 * several: boxes. */
static Block sum_box(const Product *p, const Schedule *b, const LabelExtent *group)
{
    const LabelExtent *sum = &p->extent[p->sum];
    int64_t want = p->machine->tile.sum * lines_together(p), unit = lines_together(p);
    if (several_labels(p, b, ROLE_K) < 2) {
        bool even = sum->exact && sum->tile == 0 && sum->most > want * 2;
        int64_t parts = even ? sum->most / want + (sum->most % want >= want / 2) : 1;
        return block_along(even ? round_up((sum->most + parts - 1) / parts, unit)
                                : block_of(sum, want, 1));
    }
    int64_t all = group->most < 1 ? 1 : group->most;
    return all <= want + want / 2 ? box_of_all(p, b, ROLE_K, all)
                                  : box_of(p, b, ROLE_K, want, 1, want / 8);
}

/* Columns and rows of a register tile. `gathers`: tiles reach from label to label. */
typedef struct TileChoice {
    int64_t columns, rows;
    bool gathers;
} TileChoice;

static int64_t tile_most_rows(const Product *p, int64_t columns)
{
    const ContractionTiles *t = &p->machine->tile;
    return smaller(t->bytes / dtype_bytes(p->node->acc) / columns, t->rows);
}

/* Tiles along the first labels alone. *cost: of a step of the sum with all of the first labels' positions over what full
 * tiles of the widest kind would take. */
static TileChoice tile_along(const Product *p, int64_t widest, double *cost)
{
    const LabelExtent *column = &p->extent[p->col], *row = &p->extent[p->row];
    TileChoice x = {0};
    double columns = 0;
    x.columns = tile_columns(column, widest, &columns);
    x.rows = tile_rows(row, tile_most_rows(p, x.columns),
                       x.columns < widest || operand_is_unit(p, p->a, p->row) ||
                           lines_together(p) > 1,
                       has_pairs(p));
    double padded = (double)((row->typical + x.rows - 1) / x.rows * x.rows);
    *cost = columns / (double)column->typical * padded / (double)row->typical;
    return x;
}

/* A result that is gathered in a block and then moved takes as long as so many steps of the sum. */
#define GATHER_STEPS 64.0

static Block columns_box(const Product *p, const Schedule *b, int64_t unit, int64_t want)
{
    return several_labels(p, b, ROLE_N) < 2
               ? block_along(block_of(&p->extent[p->col], want, unit))
               : box_of(p, b, ROLE_N, want, unit, want / 16);
}

static TileChoice tile_choice(const Product *p, const Schedule *b,
                              const LabelExtent group[ROLE_BATCH], int64_t k)
{
    const ContractionTiles *t = &p->machine->tile;
    int64_t size = dtype_bytes(p->node->acc), widest = t->line / size;
    bool wide = several_labels(p, b, ROLE_N) > 1, high = several_labels(p, b, ROLE_M) > 1;
    double along_cost = 0, columns = 0;
    TileChoice along = tile_along(p, widest, &along_cost), x = along;
    if (!wide && !high) {
        return along;
    }
    if (wide) {
        x.columns = tile_columns(&group[ROLE_N], widest, &columns);
    }
    if (high) {
        x.rows = tile_of(&group[ROLE_M], tile_most_rows(p, x.columns));
    }
    Block block = columns_box(p, b, x.columns, t->columns);
    Block box = box_of(p, b, ROLE_M, t->gathered / (block.tile * size), x.rows, x.rows);
    x.gathers = block_crosses(p, b, ROLE_N, &block, x.columns) ||
                block_crosses(p, b, ROLE_M, &box, x.rows);
    bool one = wide && label_planned(&p->extent[p->col]) % along.columns != 0;
    double gather_cost = 1.0 + GATHER_STEPS / (double)k;
    return x.gathers && !one && along_cost <= gather_cost ? along : x;
}

/* Of a block that is `want` in size, what another size costs for each time that it is smaller. */
#define SMALLER 0.04

/* Rows in blocks, in order, by threads with as many blocks as each other, or one more: those of the first, over an equal share. */
static double first_share(int64_t rows, int64_t block, int64_t threads)
{
    int64_t blocks = (rows + block - 1) / block;
    int64_t first = smaller((blocks + threads - 1) / threads * block, rows);
    return (double)first * (double)threads / (double)rows;
}

/* A block of rows in whole tiles, about `want`, of which two, four and eight threads have as much to do as each other. */
static int64_t even_block(int64_t rows, int64_t want, int64_t unit)
{
    int64_t best = want;
    double least = INFINITY;
    for (int64_t block = round_up(want / 2, unit); block <= want + want / 4; block += unit) {
        double cost = SMALLER * (double)want / (double)block;
        for (int64_t threads = 2; threads <= 8; threads *= 2) {
            cost += first_share(rows, block, threads) / 3;
        }
        if (cost < least) {
            best = block;
            least = cost;
        }
    }
    return best;
}

/* May threads have a loop around, with iterations for half of them? Then they share none of this one's. */
static bool is_in_shared_loop(const Product *p)
{
    for (uint32_t k = p->nest->items[p->item].parent; k != NEST_NONE;
         k = p->nest->items[k].parent) {
        const NestItem *loop = &p->nest->items[k];
        if (nest_loop_extent(p->nest, k) / loop->tile >= p->machine->threads / 2 &&
            nest_may_share(p->machine, p->nest, k)) {
            return true;
        }
    }
    return false;
}

/* Rows that are packed at once: their block stays in a near cache, and each panel of columns is read once for all of them.
 * Of several labels it is a box in which tiles cross none. */
static Block rows_block(const Product *p, const Schedule *b, int64_t unit, int64_t k)
{
    const LabelExtent *row = &p->extent[p->row];
    int64_t size = packed_size(p);
    int64_t want = p->machine->tile.block / size / k / unit * unit;
    want = want < unit ? unit : want;
    if (several_labels(p, b, ROLE_M) > 1) {
        Block box = box_of(p, b, ROLE_M, want, unit, unit);
        return block_crosses(p, b, ROLE_M, &box, unit)
                   ? block_along(smaller(want, round_up(row->most, unit)))
                   : box;
    }
    if (row->tile > 0 || !row->exact || is_in_shared_loop(p)) {
        return block_along(block_of(row, want, unit));
    }
    return block_along(row->most <= want ? round_up(row->most < 1 ? 1 : row->most, unit)
                                         : even_block(row->most, want, unit));
}

/* Do tiles of so many columns side by side go on with lines of the result, which are what takes time? Along one label they do
 * if their block of `bytes` stays where one of rows would, as which it is read then. */
static bool columns_go_on(const Product *p, const Schedule *b, int64_t tile, int64_t bytes)
{
    uint32_t d = p->node->rank;
    while (d > 0 && ((uint32_t)p->node->out[d - 1] == p->col ||
                     p->extent[p->node->out[d - 1]].most == 1)) {
        d--;
    }
    bool goes_on = d < p->node->rank && p->extent[p->col].most > tile &&
                   bytes <= 2 * p->machine->tile.block;
    for (uint32_t i = 0; d > 0 && i < b->n_labels[ROLE_N]; i++) {
        goes_on |= b->label[ROLE_N][i] == (uint32_t)p->node->out[d - 1];
    }
    return goes_on && result_dominates(p, p->a);
}

/* So few tiles of rows that a block of columns is hardly read again: rows are packed once, and what comes next of the columns
 * is near beside the block, asked for ahead. */
static bool is_few(const LabelExtent group[ROLE_BATCH], const TileChoice *x)
{
    return group[ROLE_M].exact && group[ROLE_M].most <= 4 * x->rows;
}

/* Tiles of rows from which threads share rows rather than columns: enough for each of many. */
#define ROWS_MANY 64

/* Do threads pack the columns together, and then share the rows? So it is where no loop is around but over the sum, which are met one after
 * the other: then panels are of all columns, as far as they have room. */
static bool packs_together(const Product *p, const LabelExtent group[ROLE_BATCH],
                           const TileChoice *x)
{
    bool alone = true;
    for (uint32_t k = p->nest->items[p->item].parent; k != NEST_NONE;
         k = p->nest->items[k].parent) {
        alone = alone && nest_folds_over(p->nest, k, p->nest->items[p->item].node);
    }
    return alone && !x->gathers && group[ROLE_M].typical >= ROWS_MANY * x->rows;
}

/* The operand that loops around leave as it is: all of it is packed first, before any loop of the contraction, and so once
 * for them all, if it has room in the level of blocks; ROLE_COUNT: none. */
static ScheduleRole packed_once(const Product *p, const Schedule *b,
                                const LabelExtent group[ROLE_BATCH])
{
    int64_t size = packed_size(p);
    uint32_t loops = 0;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        int64_t bytes = sat_mul(sat_mul(group[r].most, group[ROLE_K].most), size);
        const Use *operand = r == ROLE_M ? p->a : p->b;
        if (bytes <= machine_tile_capacity(p->machine) && b->n_labels[ROLE_BATCH] == 0 &&
            contraction_runs(p->f, p->nest, p->item, operand, &loops) >= 2.0) {
            return r;
        }
    }
    return ROLE_COUNT;
}

static void set_packed_levels(const Product *p, Schedule *b,
                              const LabelExtent group[ROLE_BATCH])
{
    const ContractionTiles *t = &p->machine->tile;
    int64_t size = packed_size(p), result = dtype_bytes(p->node->acc);
    Block sums = sum_box(p, b, &group[ROLE_K]);
    int64_t k = sums.tile;
    ScheduleLevel *level = ARENA_ARRAY(p->arena, 5, ScheduleLevel);
    uint32_t n = 0;
    TileChoice x = tile_choice(p, b, group, k);
    int64_t panels = packs_together(p, group, &x) ? t->shared_panels : t->panels;
    int64_t want =
        x.gathers ? t->columns : panels / size / smaller(k, 8 * t->sum * lines_together(p));
    Block rows = x.gathers ? block_along(0) : rows_block(p, b, x.rows, k);
    bool few = rows.tile >= group[ROLE_M].most && is_few(group, &x);
    want /= few ? 2 : 1;
    want = smaller(round_up(want > t->columns ? want : t->columns, x.columns), 8192);
    Block columns = columns_box(p, b, x.columns, want);
    if (!x.gathers && block_crosses(p, b, ROLE_N, &columns, x.columns)) {
        /* The box of tile_choice was smaller, and its tiles crossed no label. */
        double cost = 0;
        TileChoice along = tile_along(p, t->line / result, &cost);
        if (p->extent[p->col].most % along.columns == 0) {
            x = along;
            rows = rows_block(p, b, x.rows, k);
            columns = columns_box(p, b, x.columns, round_up(want, x.columns));
        }
    }
    if (x.gathers) {
        rows = box_of(p, b, ROLE_M, t->gathered / (columns.tile * result), x.rows, x.rows);
    }
    ScheduleRole once = x.gathers ? ROLE_COUNT : packed_once(p, b, group);
    rows =
        once == ROLE_M ? box_of_all(p, b, ROLE_M, round_up(group[ROLE_M].most, x.rows)) : rows;
    columns = once == ROLE_N ? box_of_all(p, b, ROLE_N, round_up(group[ROLE_N].most, x.columns))
                             : columns;
    bool rows_before = once == ROLE_M || (few && once == ROLE_COUNT);
    ScheduleRole first = rows_before ? ROLE_M : ROLE_N;
    if (once != ROLE_COUNT) {
        add_level(level, &n, first, rows_before ? rows : columns, true);
    }
    if (k < group[ROLE_K].most) {
        add_level(level, &n, ROLE_K, sums, false);
    }
    if (once == ROLE_COUNT) {
        add_level(level, &n, first, rows_before ? rows : columns, true);
    }
    add_level(level, &n, rows_before ? ROLE_N : ROLE_M, rows_before ? columns : rows, true);
    bool rows_first = columns_go_on(p, b, x.columns, sat_mul(sat_mul(k, columns.tile), size));
    if (rows.tile > x.rows && rows_first) {
        add_level(level, &n, ROLE_M, block_along(x.rows), false);
    }
    if (columns.tile > x.columns) {
        add_level(level, &n, ROLE_N, block_along(x.columns), false);
    }
    if (rows.tile > x.rows && !rows_first) {
        add_level(level, &n, ROLE_M, block_along(x.rows), false);
    }
    b->level = level;
    b->n_levels = n;
}

void goto_levels(const Product *p, Schedule *b)
{
    const ContractionTiles *t = &p->machine->tile;
    LabelExtent group[ROLE_BATCH];
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        group[r] = group_of(p, b, r);
    }
    if (!is_direct(p, b, group, t->bytes / t->line)) {
        set_packed_levels(p, b, group);
        return;
    }
    ScheduleLevel *level = ARENA_ARRAY(p->arena, 3, ScheduleLevel);
    uint32_t n = 0;
    if (direct_sum(p, group) > 0) {
        add_level(level, &n, ROLE_K, block_along(direct_sum(p, group)), false);
    }
    int64_t rows = tile_rows(&p->extent[p->row], t->bytes / t->line, false, has_pairs(p)),
            columns = tile_of(&p->extent[p->col], t->line / dtype_bytes(p->node->acc));
    add_level(level, &n, ROLE_M, block_along(rows), false);
    add_level(level, &n, ROLE_N, block_along(columns), false);
    b->level = level;
    b->n_levels = n;
}
