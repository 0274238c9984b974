/* SPDX-License-Identifier: Apache-2.0 */
/* The model's bytes against those that a kernel's statements move, counted as the interpreter
 * runs them: random graphs under random nests whose tiles are exact, on machines of one level
 * beside memory that holds exactly what one iteration of some loop, or one statement, touches.
 *
 * What is counted, statement by statement: a level that keeps what the iteration of the loop at
 * the cut and the one before it touched. An element comes in when neither did; it is read when it
 * is loaded then, and written once if it is stored before it leaves. What fills a result that
 * loops around the cut fold stands outside of these, and is an iteration before the first if it
 * stays and is no more than one touches.
 *
 * Must agree exactly: bytes across the level, of every nest in which no value is read in two
 * ways by one body (of a diagonal and its matrix the model counts the larger, a bound from
 * below); multiply-adds, where products stand alone. Elements loaded and stored one by one are a
 * bound from above, always. */
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../nest/support_graphs.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/place.h"
#include "nest/price.h"
#include "nest/text.h"
#include "support/quick.h"

#define SEEDS  20000
#define POINTS 6000
#define MOST   24 /* leaves, loops, buffers */

typedef struct Place { /* a statement, and the loops around it */
    const Stmt *stmt;
    uint32_t leaf, depth, loop[MOST];
} Place;

/* Distinct elements of a buffer touched in one iteration, and the most of all iterations. */
typedef struct Set {
    int64_t *stamp; /* [elements] ordinal of the iteration that touched it last, */
    int64_t id, ordinal, now, most;
    bool *dirty;   /* [elements] stored since it came in */
    int64_t moved; /* elements read and written, */
    bool keeps;    /* what the iteration before touched not again */
} Set;

typedef struct Count {
    Ctx ctx;
    Graph *g;
    NestFacts facts;
    Nest *nest;
    Kernel *k;
    uint64_t seed;
    uint32_t n_places, n_loops, n_leaves;
    Place place[4 * MOST];
    const Stmt *loop[MOST];
    uint32_t item[MOST];                      /* of a loop, its item */
    int64_t ticks[MOST];                      /* iterations begun */
    uint32_t leaf[MOST];                      /* items */
    uint32_t around[MOST][MOST], depth[MOST]; /* loops of a leaf */
    BufRef written[MOST];                     /* by a leaf */
    int64_t elements[MOST], bytes[MOST];      /* of a buffer */
    Set of_loop[MOST][MOST];                  /* [loop][buf]: all leaves in it, */
    Set whole[MOST];                          /* and of all */
    Set of_leaf[MOST][MOST][MOST];            /* [leaf][outermost loops][buf] */
    Set fill[MOST];                           /* [leaf] what stands outside of its loops, */
    uint32_t fill_depth[MOST];                /* inside of so many, or MOST: nothing does; */
    bool stays[MOST];                         /* and does it stay until the first iteration? */
    int64_t now[MOST], most[MOST];            /* bytes of one iteration of a loop */
} Count;

static void touch(Count *c, Set *s, BufRef buf, int64_t id, int64_t element, bool stores)
{
    if (s->stamp == NULL) {
        s->stamp = ARENA_ARRAY(&c->ctx.arena, (size_t)c->elements[buf] + 1, int64_t);
        s->dirty = ARENA_ARRAY(&c->ctx.arena, (size_t)c->elements[buf] + 1, bool);
    }
    if (s->id != id) {
        s->id = id;
        s->ordinal++;
        s->now = 0;
    }
    if (s->stamp[element] != s->ordinal) {
        bool kept = s->keeps && s->stamp[element] > 0 && s->stamp[element] == s->ordinal - 1;
        s->moved += !kept && !stores;
        s->dirty[element] = kept && s->dirty[element];
        s->stamp[element] = s->ordinal;
        s->now++;
        s->most = s->now > s->most ? s->now : s->most;
    }
    s->moved += stores && !s->dirty[element];
    s->dirty[element] |= stores;
}

static int64_t width(const Count *c, BufRef buf)
{
    return dtype_bytes(c->k->bufs.at[buf].dtype);
}

static void on_access(void *user, const Stmt *tile, BufRef buf, int64_t element, bool stores)
{
    Count *c = user;
    const Place *p = c->place;
    while (p->stmt != tile) {
        p++;
    }
    if (p->leaf == MOST) {
        return; /* a result that is delivered late */
    }
    touch(c, &c->whole[buf], buf, 1, element, stores);
    if (p->depth < c->depth[p->leaf]) {
        int64_t id = p->depth == 0 ? 1 : c->ticks[p->loop[p->depth - 1]];
        touch(c, &c->fill[p->leaf], buf, id, element, stores);
        c->fill_depth[p->leaf] = p->depth;
        for (uint32_t d = p->depth + 1; c->stays[p->leaf] && d <= c->depth[p->leaf]; d++) {
            touch(c, &c->of_leaf[p->leaf][d][buf], buf, -id, element, stores);
        }
    }
    for (uint32_t d = 0; d <= c->depth[p->leaf] && d <= p->depth; d++) {
        int64_t id = d == 0 ? 1 : c->ticks[p->loop[d - 1]];
        touch(c, &c->of_leaf[p->leaf][d][buf], buf, id, element, stores);
        if (d > 0) {
            Set *s = &c->of_loop[p->loop[d - 1]][buf];
            int64_t before = s->id == id ? s->now : 0;
            touch(c, s, buf, id, element, stores);
            c->now[p->loop[d - 1]] += (s->now - before) * width(c, buf);
        }
    }
    for (uint32_t d = 0; d < p->depth; d++) {
        uint32_t l = p->loop[d];
        c->most[l] = c->now[l] > c->most[l] ? c->now[l] : c->most[l];
    }
}

static void on_iteration(void *user, const Stmt *loop)
{
    Count *c = user;
    for (uint32_t l = 0; l < c->n_loops; l++) {
        if (c->loop[l] == loop) {
            c->ticks[l]++;
            c->now[l] = 0;
        }
    }
}

/* ---- which statement is of which leaf ---- */

static bool list_body(Count *c, Stmt *const *body, uint32_t n, Place at)
{
    for (uint32_t k = 0; k < n; k++) {
        const Stmt *s = body[k];
        Place in = at;
        if (s->kind == STMT_FOR) {
            if (c->n_loops == MOST) {
                return false;
            }
            in.loop[in.depth++] = c->n_loops;
            c->loop[c->n_loops++] = s;
        }
        if (s->kind == STMT_TILE) {
            if (c->n_places == 4 * MOST) {
                return false;
            }
            in.stmt = s;
            in.leaf = MOST;
            c->place[c->n_places++] = in;
        }
        if (stmt_has_body(s) && !list_body(c, s->body, s->n_body, in)) {
            return false;
        }
    }
    return true;
}

/* A buffer's last statements come in the order of leaves; late copies come last. */
static void find_leaves(Count *c)
{
    uint32_t leaf = 0;
    for (uint32_t p = 0; p < c->n_places && leaf < c->n_leaves; p++) {
        bool last = true;
        for (uint32_t q = p + 1; q < c->n_places; q++) {
            last = last && c->place[q].stmt->dst != c->place[p].stmt->dst;
        }
        for (uint32_t q = 0; last && q <= p; q++) {
            if (c->place[q].stmt->dst == c->place[p].stmt->dst) {
                c->place[q].leaf = leaf;
            }
        }
        if (last) {
            assert_int_equal(c->place[p].depth, c->depth[leaf]);
            for (uint32_t d = 0; d < c->depth[leaf]; d++) {
                c->around[leaf][d] = c->place[p].loop[d];
            }
            c->written[leaf++] = c->place[p].stmt->dst;
        }
    }
    assert_int_equal(leaf, c->n_leaves);
}

static bool list_nest(Count *c)
{
    Place at = {0};
    uint32_t loops = 0;
    if (c->nest->n_items > MOST || c->k->bufs.n > MOST ||
        !list_body(c, c->k->body, c->k->n_body, at)) {
        return false;
    }
    for (uint32_t k = 0; k < c->nest->n_items; k++) {
        const NestItem *item = &c->nest->items[k];
        if (nest_is_loop(item)) {
            assert_int_equal(c->loop[loops]->step, item->tile);
            c->item[loops++] = k;
            continue;
        }
        for (uint32_t p = item->parent; p != NEST_NONE; p = c->nest->items[p].parent) {
            c->depth[c->n_leaves]++;
        }
        c->leaf[c->n_leaves++] = k;
    }
    assert_int_equal(loops, c->n_loops);
    find_leaves(c);
    return true;
}

/* ---- running ---- */

static Tensor *argument(Count *c, const Param *p, const int64_t *dims)
{
    Tensor *x = param_tensor(&c->ctx, p, dims);
    for (int64_t k = 0; k < x->count; k++) { /* what is scaled by 0 is not looked at */
        tensor_set(x, k, number_int(p->dtype, 1));
    }
    return x;
}

static int64_t run(Count *c, const int64_t *dims)
{
    Arena *arena = &c->ctx.arena;
    LoopCounts counts = {.loaded = ARENA_ARRAY(arena, c->k->bufs.n, int64_t),
                         .stored = ARENA_ARRAY(arena, c->k->bufs.n, int64_t),
                         .access = on_access,
                         .iteration = on_iteration,
                         .user = c};
    Tensor **args = ARENA_ARRAY(arena, c->g->params.n, Tensor *);
    Tensor **got = ARENA_ARRAY(arena, c->k->args.n, Tensor *);
    for (uint32_t p = 0; p < c->g->params.n; p++) {
        args[p] = argument(c, &c->g->params.at[p], dims);
    }
    assert_true(loop_eval_counted(&c->ctx, arena, c->k, dims, args, got, &counts));
    for (uint32_t b = 0; b < c->k->bufs.n; b++) {
        int64_t all = counts.loaded[b] + counts.stored[b];
        assert_true(all >= c->whole[b].most * width(c, b));
        assert_true(all % width(c, b) == 0);
    }
    return counts.multiply_adds;
}

/* ---- what the level must be ---- */

static int64_t footprint(const Count *c, uint32_t leaf, uint32_t d)
{
    int64_t sum = 0;
    if (d > 0) {
        return c->most[c->around[leaf][d - 1]];
    }
    for (uint32_t b = 0; b < c->k->bufs.n; b++) {
        sum += c->of_leaf[leaf][0][b].most * width(c, b);
    }
    return sum;
}

static uint32_t cut_of(const Count *c, uint32_t leaf, int64_t capacity)
{
    uint32_t d = 0;
    while (d < c->depth[leaf] && footprint(c, leaf, d) > capacity) {
        d++;
    }
    return d;
}

static const NestValue *value_of(const Count *c, BufRef buf)
{
    for (uint32_t l = 0; l < c->n_leaves; l++) {
        if (c->written[l] == buf) {
            return &c->nest->values[c->nest->items[c->leaf[l]].node];
        }
    }
    return NULL;
}

/* Is what is said above to agree exactly? */
static bool is_exact(const Count *c, int64_t capacity)
{
    for (uint32_t l = 0; l < c->n_leaves; l++) {
        if (footprint(c, l, c->depth[l]) > capacity) {
            return false; /* cut by its own levels */
        }
    }
    for (uint32_t b = 0; b < c->k->bufs.n; b++) {
        const NestValue *v = value_of(c, b);
        if (v != NULL && v->residence == RESIDE_TILE && 2 * c->bytes[b] > capacity) {
            return false;
        }
    }
    return true;
}

/* Is a value touched in two ways in one iteration of a loop, or in all? */
static bool is_read_in_two_ways(const Count *c)
{
    for (uint32_t b = 0; b < c->k->bufs.n; b++) {
        for (uint32_t l = 0; l <= c->n_loops; l++) {
            const Set *all = l < c->n_loops ? &c->of_loop[l][b] : &c->whole[b];
            int64_t most = 0;
            for (uint32_t k = 0; k < c->n_leaves; k++) {
                for (uint32_t d = 0; d <= c->depth[k]; d++) {
                    bool here = l < c->n_loops ? d > 0 && c->around[k][d - 1] == l : d == 0;
                    int64_t own = here ? c->of_leaf[k][d][b].most : 0;
                    most = own > most ? own : most;
                }
            }
            if (most != all->most) {
                return true;
            }
        }
    }
    for (uint32_t k = 0; k < c->n_leaves; k++) {
        const UseList *u = &c->facts.uses[c->nest->items[c->leaf[k]].node];
        for (uint32_t i = 0; i < u->list.n; i++) {
            for (uint32_t j = 0; j < i; j++) {
                if (u->list.at[i].node == u->list.at[j].node) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Bytes that come in, the sets being as the first run left them. */
static int64_t moved(const Count *c, int64_t capacity)
{
    int64_t sum = 0;
    for (uint32_t b = 0; b < c->k->bufs.n; b++) {
        const NestValue *v = value_of(c, b);
        bool outer = v == NULL || v->residence == RESIDE_RESULT;
        if (2 * c->bytes[b] <= capacity) {
            sum += outer ? c->whole[b].most * width(c, b) : 0;
            continue;
        }
        for (uint32_t l = 0; l < c->n_leaves; l++) {
            uint32_t cut = cut_of(c, l, capacity);
            bool fills = c->written[l] == b && c->fill_depth[l] < cut && !c->stays[l];
            sum += c->of_leaf[l][cut][b].moved * width(c, b);
            sum += fills ? c->fill[l].moved * width(c, b) : 0;
        }
    }
    return sum;
}

static void set_keeps(Count *c, int64_t capacity, const Count *first)
{
    for (uint32_t l = 0; l < c->n_leaves; l++) {
        const Set *piece = &first->of_leaf[l][cut_of(first, l, capacity)][c->written[l]];
        c->stays[l] = 2 * first->fill[l].most * width(c, c->written[l]) <= capacity &&
                      first->fill[l].most <= piece->most;
        for (uint32_t d = 0; d <= c->depth[l]; d++) {
            for (uint32_t b = 0; b < c->k->bufs.n; b++) {
                c->of_leaf[l][d][b].keeps =
                    2 * first->of_leaf[l][d][b].most * width(c, b) <= capacity;
            }
        }
    }
}

/* ---- trials ---- */

static void make_exact(const Graph *g, Tree *t)
{
    for (uint32_t k = 0; k < t->list.n; k++) {
        Draft *d = &t->list.at[k];
        while (d->is_loop && dim_typical(&g->dims, d->axis.extent) % d->tile != 0) {
            d->tile--;
        }
    }
}

static Count *count_new(uint64_t seed)
{
    Count *c = calloc(1, sizeof *c);
    Rng rng = {seed};
    Tree none = {0};
    ctx_init(&c->ctx);
    c->seed = seed;
    for (uint32_t l = 0; l < MOST; l++) {
        c->fill_depth[l] = MOST;
    }
    c->g = random_graph(&c->ctx, &rng, 5);
    for (uint32_t d = 0; d < c->g->dims.list.n; d++) {
        c->g->dims.list.at[d].typical = 4 << rng_below(&rng, 2);
    }
    nest_facts(&c->ctx.arena, c->g, &c->facts);
    greedy_tree(&c->ctx, &c->ctx.arena, &c->facts, &(Machine){.n_levels = 1}, false, &none);
    Tree t = random_walk(&c->ctx.arena, &rng, &c->facts, &none, 4);
    make_exact(c->g, &t);
    c->nest = tree_nest(&c->ctx.arena, c->g, &t);
    c->nest->values = nest_place(&c->ctx.arena, &c->facts, NULL, c->nest);
    c->k = nest_lower(&c->ctx, &c->ctx.arena, c->nest);
    for (BufRef b = 0; b < c->k->bufs.n && b < MOST; b++) {
        const Buffer *buf = &c->k->bufs.at[b];
        c->elements[b] = 1;
        for (uint32_t d = 0; d < buf->rank; d++) {
            c->elements[b] *= dim_typical(&c->g->dims, buf->extent[d]);
        }
        c->bytes[b] = c->elements[b] * width(c, b);
    }
    return c;
}

static void count_free(Count *c)
{
    ctx_release(&c->ctx);
    free(c);
}

/* Of a zero's product the other factor is not read. */
static bool scales_differences(const Graph *g)
{
    bool scales = false, differs = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        scales |= graph_node(g, n)->op == OP_SCALE;
        differs |= graph_node(g, n)->op == OP_SUB;
    }
    return scales && differs;
}

/* Of these a statement has places of its own. */
static bool updates_or_accumulates(const Count *c)
{
    const Graph *g = c->g;
    for (uint32_t k = 0; k < c->facts.n_stored; k++) {
        const Node *n = graph_node(g, c->facts.stored[k]);
        if (n->acc != n->dtype) {
            return true;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        if (g->results.at[k].param >= 0) {
            return true;
        }
    }
    return false;
}

static double model_bytes(Count *c, int64_t capacity, int64_t *multiply_adds)
{
    const Machine machine = {
        .n_levels = 2,
        .level = {{.name = "memory", .bytes_per_second = 1e9},
                  {.name = "cache", .capacity = capacity, .bytes_per_second = 1e9}},
        .tile_level = 1,
        .open_extents = true};
    Pricer pricer;
    pricer_init(&c->ctx.arena, &c->facts, &machine, &pricer);
    NestCost cost = nest_price(&c->ctx.arena, &pricer, c->nest, NULL);
    *multiply_adds = cost.multiply_adds;
    return cost.bytes[0];
}

static bool products_stand_alone(const Count *c)
{
    for (NodeRef n = 0; n < c->g->nodes.n; n++) {
        const Node *node = graph_node(c->g, n);
        Residence r = c->nest->values[n].residence;
        if (op_info(node->op)->kind != OPKIND_LEAF && r != RESIDE_NONE &&
            (r == RESIDE_INLINE ||
             (op_info(node->op)->kind == OPKIND_CONTRACT && node_is_expression(node)))) {
            return false;
        }
    }
    return true;
}

typedef struct Seen {
    uint32_t exact, inner, products, fills;
} Seen;

/* The second run knows what is kept at this capacity. */
static void compare(const Count *first, int64_t capacity, const int64_t *dims, Seen *seen)
{
    Count *c = count_new(first->seed);
    int64_t multiply_adds = 0;
    assert_true(list_nest(c));
    set_keeps(c, capacity, first);
    (void)run(c, dims);
    double model = model_bytes(c, capacity, &multiply_adds);
    int64_t counted = moved(c, capacity);
    if (model != (double)counted) {
        Text out;
        text_init(&out, &c->ctx.arena);
        graph_dump(c->g, &out);
        nest_dump(c->nest, &out);
        kernel_dump(c->k, &out);
        fprintf(stderr, "%s", out.at);
        fail_msg("seed %" PRIu64 ", %" PRId64
                 " bytes: the model moves %.0f bytes, counted are %" PRId64,
                 c->seed, capacity, model, counted);
    }
    seen->exact++;
    for (uint32_t l = 0; l < c->n_leaves; l++) {
        seen->inner += cut_of(c, l, capacity) > 0;
        seen->fills += c->fill_depth[l] < cut_of(c, l, capacity);
    }
    count_free(c);
}

static void the_model_moves_what_statements_move(void **state)
{
    Seen seen = {0};
    unsigned share = one_of(4);
    for (uint64_t seed = 1; seed <= SEEDS; seed += share) {
        Count *c = count_new(seed);
        int64_t dims[8] = {0}, model_work = 0;
        for (uint32_t d = 0; d < c->g->dims.list.n; d++) {
            dims[d] = c->g->dims.list.at[d].typical;
        }
        if (updates_or_accumulates(c) || scales_differences(c->g) ||
            graph_points(c->g, dims) > POINTS || !list_nest(c)) {
            count_free(c);
            continue;
        }
        int64_t work = run(c, dims);
        (void)model_bytes(c, 1 << 20, &model_work);
        if (products_stand_alone(c)) {
            assert_int_equal(work, model_work);
            seen.products += work > 0;
        }
        for (uint32_t l = 0; l < c->n_leaves && !is_read_in_two_ways(c); l++) {
            for (uint32_t d = 0; d <= c->depth[l]; d++) {
                if (is_exact(c, footprint(c, l, d))) {
                    compare(c, footprint(c, l, d), dims, &seen);
                }
            }
        }
        count_free(c);
    }
    assert_true(seen.exact > 2500 / share && seen.inner > 1000 / share);
    assert_true(seen.products > 1000 / share && seen.fills > 80 / share);
}

TESTS(TEST(the_model_moves_what_statements_move))
