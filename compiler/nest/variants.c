/* SPDX-License-Identifier: Apache-2.0 */
/* See variants.h. A change that breaks a rule of levels is made to keep it, by rounding the blocks around; one that
 * cannot is dropped. */
#include "nest/variants.h"

#include "nest/estimate.h"
#include "nest/plan.h"

#include <string.h>

/* Contractions whose levels are changed: those with the most multiply-adds. */
#define CONTRACTIONS 8
/* The least block of a sum: less is all joining. */
#define LEAST_SUM 32

typedef struct Changes {
    Ctx *ctx;
    Arena *arena;
    const Machine *machine;
    const Nest *nest;
    NodeRef node; /* the contraction at hand */
    NestVariants *out;
} Changes;

/* ---- one nest for another ---- */

/* The variant at the place of `nest` among the nests for several sizes. */
static void add_nest(Arena *arena, const Nest *nest, Nest *variant, const char *what,
                     NestVariants *out)
{
    NestVariant v = {variant, what};
    NestSize *sizes = NULL;
    if (nest->n_sizes > 0) {
        sizes = arena_copy(arena, nest->sizes, nest->n_sizes * sizeof *sizes);
        for (uint32_t k = 0; k < nest->n_sizes; k++) {
            sizes[k].nest = sizes[k].nest == nest ? variant : sizes[k].nest;
        }
    }
    variant->n_sizes = nest->n_sizes;
    variant->sizes = sizes;
    vec_push(arena, &out->list, v);
}

void nest_other_trees(Ctx *ctx, Arena *arena, const Machine *machine, const Nest *chosen,
                      NestVariants *out)
{
    add_nest(arena, chosen, nest_unfused(ctx, arena, chosen->graph, machine), "no fusion", out);
    if (chosen->second != NULL) {
        Nest *second = arena_copy(arena, chosen->second, sizeof *second);
        nest_estimate(ctx, machine, second);
        add_nest(arena, chosen, second, "what the search turned down", out);
    }
}

/* ---- levels ---- */

/* Tiles of a role are whole numbers of the tiles inside of them, from the innermost out; a level that no longer cuts goes. */
static void fit_levels(Schedule *b, ScheduleLevel *level)
{
    int64_t inner[ROLE_COUNT] = {0};
    uint32_t n = b->n_levels;
    for (uint32_t i = n; i-- > 0;) {
        ScheduleLevel *l = &level[i];
        int64_t unit = inner[l->role];
        l->tile = unit > 0 ? round_up(l->tile, unit) : l->tile;
        if (unit > 0 && l->tile == unit) { /* the level inside of it is the same */
            uint32_t same = i + 1;
            while (level[same].role != l->role) {
                same++;
            }
            l->parallel |= level[same].parallel;
            l->pack |= level[same].pack;
            memmove(&level[same], &level[same + 1], (n - same - 1) * sizeof *level);
            n--;
        }
        inner[l->role] = l->tile;
    }
    b->level = level;
    b->n_levels = n;
}

static bool is_same(const Schedule *a, const Schedule *b)
{
    bool same = a->n_levels == b->n_levels;
    for (uint32_t i = 0; same && i < a->n_levels; i++) {
        const ScheduleLevel *x = &a->level[i], *y = &b->level[i];
        same = x->role == y->role && x->tile == y->tile && x->pack == y->pack;
        for (uint32_t d = 0; same && x->step != NULL && d < a->n_labels[x->role]; d++) {
            same = y->step != NULL && x->step[d] == y->step[d];
        }
    }
    return same;
}

static void put_levels(const Schedule *b, Text *out)
{
    for (uint32_t i = 0; i < b->n_levels; i++) {
        const ScheduleLevel *l = &b->level[i];
        text_printf(out, "%s%s %lld%s", i == 0 ? "" : ", ", schedule_role_name(l->role),
                    (long long)l->tile, l->pack ? " pack" : "");
    }
}

/* `level` has room for n + 2, and is kept. */
static void offer(Changes *c, ScheduleLevel *level, uint32_t n)
{
    const Graph *g = c->nest->graph;
    const Schedule *was = c->nest->values[c->node].schedule;
    Schedule *b = arena_copy(c->arena, was, sizeof *was);
    b->n_levels = n;
    fit_levels(b, level);
    if (is_same(b, was)) {
        return;
    }
    Text what = text_new(c->arena);
    const Node *node = graph_node(g, c->node);
    text_printf(&what, "%%%u %s: ", c->node, node->name != NULL ? node->name->text : "");
    put_levels(b, &what);
    Nest *nest = arena_copy(c->arena, c->nest, sizeof *c->nest);
    NestValue *values =
        arena_copy(c->arena, c->nest->values, g->nodes.n * sizeof *c->nest->values);
    values[c->node].schedule = b;
    nest->values = values;
    nest_estimate(c->ctx, c->machine, nest);
    add_nest(c->arena, c->nest, nest, what.at, c->out);
}

static ScheduleLevel *copy_levels(const Changes *c, const Schedule *b)
{
    ScheduleLevel *level = ARENA_ARRAY(c->arena, b->n_levels + 2, ScheduleLevel);
    memcpy(level, b->level, b->n_levels * sizeof *level);
    return level;
}

/* Steps for another tile of a level that is a box, as it was made for the typical extents. */
static const int64_t *other_steps(const Changes *c, const Schedule *b, ScheduleRole r,
                                  int64_t tile)
{
    const Graph *g = c->nest->graph;
    const Node *node = graph_node(g, c->node);
    uint32_t n = b->n_labels[r];
    LabelExtent *x = ARENA_ARRAY(c->arena, n, LabelExtent);
    const LabelExtent **at = ARENA_ARRAY(c->arena, n, const LabelExtent *);
    int64_t *step = ARENA_ARRAY(c->arena, n, int64_t);
    for (uint32_t i = 0; i < n; i++) {
        Dim d = node->extent[b->label[r][i]];
        bool open = d.sym >= 0;
        int64_t typical = nest_typical(g, d);
        x[i] = (LabelExtent){typical, open ? INT64_MAX : typical, 0, !open, false};
        at[i] = &x[i];
    }
    schedule_cut(n, at, tile, tile, step);
    return step;
}

static void set_tile(const Changes *c, const Schedule *b, ScheduleLevel *level, int64_t tile)
{
    level->tile = tile;
    if (level->step != NULL) {
        level->step = other_steps(c, b, level->role, tile);
    }
}

static void offer_tile(Changes *c, uint32_t at, int64_t tile)
{
    const Schedule *b = c->nest->values[c->node].schedule;
    ScheduleLevel *level = copy_levels(c, b);
    set_tile(c, b, &level[at], tile);
    offer(c, level, b->n_levels);
}

static int64_t typical(const Changes *c, const Schedule *b, ScheduleRole r)
{
    const Graph *g = c->nest->graph;
    int64_t count = 1;
    for (uint32_t i = 0; i < b->n_labels[r]; i++) {
        Dim d = graph_node(g, c->node)->extent[b->label[r][i]];
        count = sat_mul(count, nest_typical(g, d));
    }
    return count;
}

/* Half of it, twice of it. */
static void other_blocks(Changes *c, const Schedule *b, uint32_t at)
{
    const ScheduleLevel *l = &b->level[at];
    int64_t least = l->role == ROLE_K ? LEAST_SUM : schedule_innermost(b, l->role)->tile;
    if (l->tile / 2 >= least) {
        offer_tile(c, at, l->tile / 2);
    }
    if (l->tile < typical(c, b, l->role)) {
        offer_tile(c, at, l->tile * 2);
    }
}

static void other_sums(Changes *c, const Schedule *b)
{
    const ScheduleLevel *k = schedule_outermost(b, ROLE_K);
    ScheduleLevel *level = ARENA_ARRAY(c->arena, b->n_levels + 3, ScheduleLevel);
    int64_t all = typical(c, b, ROLE_K);
    if (k == NULL && all >= 2 * LEAST_SUM) {
        level[0] = (ScheduleLevel){.role = ROLE_K, .tile = (all + 1) / 2};
        memcpy(level + 1, b->level, b->n_levels * sizeof *level);
        offer(c, level, b->n_levels + 1);
    } else if (k != NULL) { /* whole */
        uint32_t n = 0;
        for (uint32_t i = 0; i < b->n_levels; i++) {
            if (b->level[i].role != ROLE_K) {
                level[n++] = b->level[i];
            }
        }
        offer(c, level, n);
    }
}

/* Of register tiles: rows by one or two, columns by halves. */
static void other_tiles(Changes *c, const Schedule *b)
{
    const ContractionTiles *t = &c->machine->tile;
    const ScheduleLevel *rows = schedule_innermost(b, ROLE_M),
                        *columns = schedule_innermost(b, ROLE_N);
    int64_t size = dtype_bytes(graph_node(c->nest->graph, c->node)->acc);
    int64_t most = t->bytes / size / columns->tile;
    most = most < t->rows ? most : t->rows;
    for (int64_t by = -2; by <= 2; by++) {
        int64_t tile = rows->tile + by;
        if (by != 0 && tile >= 1 && tile <= most) {
            offer_tile(c, (uint32_t)(rows - b->level), tile);
        }
    }
    for (int64_t wide = t->line / size; wide >= t->line / size / 8 && wide >= 1; wide /= 2) {
        ScheduleLevel *level = copy_levels(c, b);
        int64_t high = t->bytes / size / wide;
        set_tile(c, b, &level[rows - b->level], rows->tile < high ? rows->tile : high);
        set_tile(c, b, &level[columns - b->level], wide);
        offer(c, level, b->n_levels);
    }
}

static void other_orders(Changes *c, const Schedule *b)
{
    for (uint32_t i = 0; i + 1 < b->n_levels; i++) {
        if (b->level[i].role != b->level[i + 1].role) {
            ScheduleLevel *level = copy_levels(c, b);
            level[i] = b->level[i + 1];
            level[i + 1] = b->level[i];
            offer(c, level, b->n_levels);
        }
    }
}

/* Both operands packed where they are not, and the other way round. */
static void other_packing(Changes *c, const Schedule *b)
{
    const ScheduleLevel *rows = schedule_innermost(b, ROLE_M),
                        *columns = schedule_innermost(b, ROLE_N);
    ScheduleLevel *level = ARENA_ARRAY(c->arena, 6, ScheduleLevel);
    bool packed = false, parallel[ROLE_COUNT] = {false};
    for (uint32_t i = 0; i < b->n_levels; i++) {
        packed |= b->level[i].pack;
        parallel[b->level[i].role] |= b->level[i].parallel;
    }
    ScheduleLevel outer[2] = {{.role = ROLE_N, .tile = c->machine->tile.columns, .pack = true},
                              {.role = ROLE_M, .tile = rows->tile * 8, .pack = true}};
    uint32_t n = 0;
    for (; n < 2 && !packed; n++) {
        level[n] = outer[n];
        level[n].parallel = parallel[outer[n].role];
    }
    level[n++] = (ScheduleLevel){
        .role = ROLE_M, .tile = rows->tile, .parallel = packed && parallel[ROLE_M]};
    level[n++] = (ScheduleLevel){
        .role = ROLE_N, .tile = columns->tile, .parallel = packed && parallel[ROLE_N]};
    offer(c, level, n);
}

static void other_levels(Changes *c)
{
    const Schedule *b = c->nest->values[c->node].schedule;
    other_sums(c, b);
    for (uint32_t i = 0; i < b->n_levels; i++) {
        if (b->level[i].pack || b->level[i].role == ROLE_K) {
            other_blocks(c, b, i);
        }
    }
    other_tiles(c, b);
    other_orders(c, b);
    other_packing(c, b);
}

void nest_other_levels(Ctx *ctx, Arena *arena, const Machine *machine, const Nest *nest,
                       NestVariants *out)
{
    Changes c = {ctx, arena, machine, nest, NODE_NONE, out};
    const Graph *g = nest->graph;
    bool *done = ARENA_ARRAY(arena, g->nodes.n, bool);
    int64_t *dims = ARENA_ARRAY(arena, g->dims.list.n, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        dims[d] = g->dims.list.at[d].typical;
    }
    for (uint32_t k = 0; k < CONTRACTIONS; k++) {
        int64_t most = -1;
        for (NodeRef n = 0; n < g->nodes.n; n++) {
            const Schedule *b = nest->values[n].schedule;
            int64_t work = node_multiply_adds(graph_node(g, n), dims);
            if (!done[n] && b != NULL && b->n_levels > 0 && work > most) {
                most = work;
                c.node = n;
            }
        }
        if (most < 0) {
            return;
        }
        done[c.node] = true;
        other_levels(&c);
    }
}
