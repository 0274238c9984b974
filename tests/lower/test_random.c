/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs under random legal nests. Each nest is accepted, prints, reads and prints the
 * same, and becomes a kernel that is accepted and computes what the graph does, to the bit, for
 * extents around the tiles of its loops. On failure the seed, the graph and the nest are
 * printed; test_lower_random SEED runs that one alone. */
#include "support/texts.h"
#include "support/quick.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nest/support_graphs.h"
#include "graph/eval.h"
#include "loop/loop_eval.h"
#include "loop/loop_verify.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/parallel.h"
#include "nest/place.h"
#include "nest/text.h"
#include "nest/verify.h"
#include "opt/opt.h"

#define GRAPHS 400
#define NESTS  5 /* of each */
/* Elements that the interpreter visits for one set of extents. */
#define POINTS 1500

static uint64_t first_seed = 1, n_seeds = GRAPHS;

/* What the nests had in them: the test is of no use without. */
typedef struct Seen {
    uint32_t nests, shared, folded, tiles_of_tiles, recompute, parallel, in_place, late, blocks;
    uint32_t places_taken, accepted, refused; /* of those changed at random */
    uint32_t over;                            /* buffers that lie over others */
    uint32_t several;                         /* nests for some sizes each */
    uint32_t pairs;                           /* loops over each pair of tiles once, */
    uint32_t mirror;                          /* values stored at mirror places */
    uint32_t into; /* values in the place of a sum that begins with them */
} Seen;

typedef struct Trial {
    Ctx ctx;
    Rng rng;
    uint64_t seed;
    Graph *g, *asked; /* as it is, and before contractions began with others */
    NestFacts facts;
    const Machine *machine;
    Nest *nest;
    Kernel *k;
    Seen *seen;
} Trial;

static const Machine machine = {.n_levels = 1,
                                .threads = 4,
                                .level = {{.name = "cache", .capacity = 64 << 10}},
                                .open_extents = true,
                                .pairs = true,
                                .mirrors = true,
                                .overwrites = true,
                                .adds = true};

static void broken(Trial *t, const char *what)
{
    print_all(&t->ctx, t->g, t->nest, t->k);
    fail_msg("seed %" PRIu64 ": %s", t->seed, what);
}

/* ---- text ---- */

static Nest *read_back(Trial *t)
{
    Text text, again;
    text_init(&text, &t->ctx.arena);
    text_init(&again, &t->ctx.arena);
    nest_dump(t->nest, &text);
    uint32_t source = source_add(&t->ctx.sources, "nest", text_str(&text), (Span){0});
    DumpTree *tree = dump_tree_read(&t->ctx, &t->ctx.arena, source);
    Nest *nest = tree == NULL ? NULL : nest_read(&t->ctx, &t->ctx.arena, t->g, tree->line[0]);
    if (nest == NULL) {
        broken(t, "the nest that was printed is not read");
        return NULL;
    }
    nest_dump(nest, &again);
    if (strcmp(text.at, again.at) != 0) {
        broken(t, "the nest prints, reads and prints something else");
    }
    return nest;
}

/* ---- values ---- */

static Tensor *argument(Trial *t, const Param *p, const int64_t *dims)
{
    Tensor *x = param_tensor(&t->ctx, p, dims);
    for (int64_t k = 0; k < x->count; k++) {
        tensor_set(x, k, number_int(p->dtype, (int64_t)rng_below(&t->rng, 9) - 3));
    }
    return x;
}

static void compare(Trial *t, const int64_t *dims)
{
    Arena *arena = &t->ctx.arena;
    Tensor **args = ARENA_ARRAY(arena, t->g->params.n, Tensor *);
    Tensor **expected = ARENA_ARRAY(arena, t->g->results.n, Tensor *);
    Tensor **got = ARENA_ARRAY(arena, t->k->args.n, Tensor *);
    for (uint32_t p = 0; p < t->g->params.n; p++) {
        args[p] = argument(t, &t->g->params.at[p], dims);
    }
    if (!graph_eval(&t->ctx, arena, t->asked, dims, args, expected) ||
        !loop_eval(&t->ctx, arena, t->k, dims, args, got)) {
        broken(t, "the interpreter refuses it");
    }
    for (uint32_t r = 0; r < t->g->results.n; r++) {
        const Tensor *x = result_named(t->k, got, t->g->results.at[r].name);
        if (x == NULL || x->count != expected[r]->count ||
            (x->count > 0 && memcmp(x->data, expected[r]->data,
                                    (size_t)(x->count * dtype_bytes(x->dtype))) != 0)) {
            broken(t, str_format(arena, "result %u differs for %lld, %lld, %lld", r,
                                 (long long)dims[0], (long long)dims[1], (long long)dims[2]));
        }
    }
}

/* 0, 1 and what lies around the tile of some loop over the dimension. */
static int64_t random_extent(Trial *t, int32_t dim)
{
    int64_t tile = 1 + (int64_t)rng_below(&t->rng, 5);
    uint32_t seen = 0;
    for (uint32_t k = 0; k < t->nest->n_items; k++) {
        const NestItem *item = &t->nest->items[k];
        if (nest_is_loop(item) && t->nest->axes[item->axis].extent.sym == dim &&
            rng_below(&t->rng, ++seen) == 0) {
            tile = item->tile;
        }
    }
    const int64_t extents[] = {0, 1, tile - 1, tile, tile + 1, 2 * tile + 1, tile + 1};
    return extents[rng_below(&t->rng, sizeof extents / sizeof extents[0])];
}

static void random_extents(Trial *t, int64_t *dims)
{
    uint32_t n = t->g->dims.list.n, largest = 0;
    for (uint32_t d = 0; d < n; d++) {
        dims[d] = random_extent(t, (int32_t)d);
    }
    while (graph_points(t->g, dims) > POINTS) {
        for (uint32_t d = 0; d < n; d++) {
            largest = dims[d] > dims[largest] ? d : largest;
        }
        if (dims[largest] <= 1) {
            break;
        }
        dims[largest] -= 1 + dims[largest] / 3;
    }
}

/* ---- one nest, one graph ---- */

static void count(Seen *seen, const Nest *nest)
{
    seen->nests++;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        if (!nest_is_loop(item)) {
            const NestValue *v = &nest->values[item->node];
            const Node *n = graph_node(nest->graph, item->node);
            seen->recompute += item->recompute;
            seen->mirror += item->mirror;
            seen->folded += v->fold != NEST_NONE;
            seen->blocks +=
                v->residence == RESIDE_TILE && v->alloc_loop != NEST_NONE && n->rank > 0;
            seen->late += v->residence == RESIDE_WORKSPACE && v->last == nest->n_items;
            seen->into += v->residence == RESIDE_INTO;
            seen->places_taken += v->in_place != NODE_NONE;
            seen->in_place += v->result >= 0 && nest->graph->results.at[v->result].param >= 0;
            continue;
        }
        seen->parallel += item->parallel;
        seen->pairs += item->from != 0;
        seen->shared += item->end > k + 2;
        for (uint32_t p = item->parent; p != NEST_NONE; p = nest->items[p].parent) {
            seen->tiles_of_tiles += nest->items[p].axis == item->axis;
        }
    }
}

/* From here on buffers share bytes. */
static void share(Trial *t)
{
    StmtWalk w;
    kernel_share(&t->ctx, t->k);
    if (!loop_verify(&t->ctx, t->k, "share")) {
        broken(t, "its kernel is refused when buffers share bytes");
    }
    for (const Stmt *s = stmt_first(&w, t->k->body, t->k->n_body); s != NULL;
         s = stmt_next(&w)) {
        t->seen->over += s->kind == STMT_ALLOC && s->over > 0;
    }
}

static void check_accepted(Trial *t)
{
    count(t->seen, t->nest);
    t->k = nest_lower(&t->ctx, &t->ctx.arena, read_back(t));
    if (!loop_verify(&t->ctx, t->k, "test")) {
        broken(t, "its kernel is refused");
    }
    int64_t dims[8] = {0};
    for (uint32_t k = 0; k < 3; k++) {
        random_extents(t, dims);
        compare(t, dims);
        if (k == 0) {
            share(t);
        }
    }
}

/* Some of the loops that threads may share, none in another. */
static void mark_some(Trial *t)
{
    NestItem *items =
        arena_copy(&t->ctx.arena, t->nest->items, t->nest->n_items * sizeof *items);
    for (uint32_t k = 0, end = 0; k < t->nest->n_items; k++) {
        bool inside = k < end, loop = nest_is_loop(&items[k]);
        items[k].parallel = loop && !inside && nest_may_share(&machine, t->nest, k) &&
                            rng_below(&t->rng, 2) == 0;
        end = items[k].parallel ? items[k].end : end;
    }
    t->nest->items = items;
}

static void check(Trial *t, const Tree *tree)
{
    Arena *arena = &t->ctx.arena;
    t->k = NULL;
    t->nest = tree_nest(arena, t->g, tree);
    t->nest->values = nest_place(arena, &t->facts, t->machine, t->nest);
    nest_set_pairs(arena, &t->facts, &machine, t->nest);
    mark_some(t);
    if (!nest_verify(&t->ctx, t->nest, "test")) {
        broken(t, "the nest is refused");
    }
    check_accepted(t);
}

/* Where some value lives is decided otherwise, as a reader of nests might find it. */
static void change_value(Trial *t, NestValue *values)
{
    Arena *arena = &t->ctx.arena;
    NodeRef at = (NodeRef)rng_below(&t->rng, t->g->nodes.n);
    NestValue *v = &values[at];
    const UseList *reads = &t->facts.uses[at];
    NestFacts facts;
    uint64_t what = rng_below(&t->rng, 5);
    if (v->item == NEST_NONE) {
        return;
    }
    v->residence = what == 0   ? RESIDE_RESULT
                   : what == 1 ? RESIDE_WORKSPACE
                   : what == 2 ? RESIDE_TILE
                               : v->residence;
    v->result =
        v->residence == RESIDE_RESULT ? (int32_t)rng_below(&t->rng, t->g->results.n) : -1;
    if (reads->list.n > 0 && v->residence == RESIDE_TILE) {
        v->in_place = reads->list.at[rng_below(&t->rng, reads->list.n)].node;
    }
    Residence *residence = ARENA_ARRAY(arena, t->g->nodes.n, Residence);
    for (NodeRef n = 0; n < t->g->nodes.n; n++) {
        residence[n] = values[n].residence;
    }
    nest_facts_of(arena, t->g, residence, &facts);
    nest_derive(&facts, t->nest, values);
    nest_set_bytes(t->nest, values);
}

/* A loop begins elsewhere, and values in it are stored once or twice. */
static void change_pairs(Trial *t)
{
    Arena *arena = &t->ctx.arena;
    uint32_t n = t->nest->n_items, k = (uint32_t)rng_below(&t->rng, n);
    NestItem *items = arena_copy(arena, t->nest->items, n * sizeof *items);
    t->nest->items = items;
    if (!nest_is_loop(&items[k]) || k == 0) {
        return;
    }
    items[k].from = items[k].from == 0 ? 1 + (uint32_t)rng_below(&t->rng, k) : 0;
    if (items[k].parent != NEST_NONE && rng_below(&t->rng, 4) > 0) {
        items[k].from = 1 + items[k].parent;
        items[k].tile = items[items[k].parent].tile * (1 + (int64_t)rng_below(&t->rng, 2));
        items[k].parallel = false;
    }
    for (uint32_t i = k + 1; i < items[k].end; i++) {
        items[i].mirror = !nest_is_loop(&items[i]) && rng_below(&t->rng, 3) > 0;
    }
}

/* Whatever is changed, a nest is refused or right. */
static bool check_changed(Trial *t, const Tree *tree)
{
    Arena *arena = &t->ctx.arena;
    t->k = NULL;
    t->nest = tree_nest(arena, t->g, tree);
    if (t->nest->n_items > 0 && rng_below(&t->rng, 2) == 0) {
        change_pairs(t);
    }
    NestValue *values = nest_place(arena, &t->facts, t->machine, t->nest);
    if (rng_below(&t->rng, 2) == 0) {
        change_value(t, values);
    }
    t->nest->values = values;
    if (!nest_verify(&t->ctx, t->nest, "test")) {
        t->ctx.diags.list.n = 0;
        return false;
    }
    check_accepted(t);
    return true;
}

/* The nest on a graph whose typical size of `dim` is another. */
static Nest *made_for(Trial *t, const Tree *tree, int32_t dim, int64_t size, bool typical)
{
    Arena *arena = &t->ctx.arena;
    const Graph *g = typical ? t->g : nest_graph_at(arena, t->g, dim, size);
    NestFacts facts;
    nest_facts(arena, g, &facts);
    Nest *nest = tree_nest(arena, g, tree);
    nest->values = nest_place(arena, &facts, t->machine, nest);
    return nest;
}

/* One tree for small sizes of a dim and others for larger ones, run on both sides of the borders. */
static void check_sizes(Trial *t, const Tree *trees, uint32_t n)
{
    Arena *arena = &t->ctx.arena;
    int32_t dim = (int32_t)rng_below(&t->rng, t->g->dims.list.n);
    int64_t typical = t->g->dims.list.at[dim].typical, from = 0;
    NestSize *s = ARENA_ARRAY(arena, n, NestSize);
    Nest *own = NULL;
    for (uint32_t k = 0; k < n; k++) {
        int64_t next = from + 2 + (int64_t)rng_below(&t->rng, 3);
        int64_t most = k + 1 < n ? next - 1 : DIM_ANY_SIZE;
        bool is_own = from <= typical && typical <= most;
        s[k].when = (DimTest){dim, from, most};
        s[k].size = is_own ? typical : from + 1;
        s[k].nest = made_for(t, &trees[k], dim, s[k].size, is_own);
        own = is_own ? s[k].nest : own;
        from = next;
    }
    own->n_sizes = n;
    own->sizes = s;
    t->nest = own;
    t->k = NULL;
    if (!nest_verify(&t->ctx, own, "test")) {
        broken(t, "the nests for several sizes are refused");
    }
    t->k = nest_lower(&t->ctx, arena, read_back(t));
    if (!loop_verify(&t->ctx, t->k, "test")) {
        broken(t, "the kernel of several nests is refused");
    }
    int64_t dims[8] = {0};
    for (uint32_t k = 0; k + 1 < n; k++) {
        for (int64_t at = s[k].when.most - 1; at <= s[k].when.most + 2; at++) {
            random_extents(t, dims);
            dims[dim] = at;
            compare(t, dims);
        }
        share(t);
    }
    t->seen->several++;
}

static void run_seed(uint64_t seed, Seen *seen)
{
    Trial *t = calloc(1, sizeof *t);
    Tree none = {0};
    t->seed = seed;
    t->seen = seen;
    t->rng.state = seed;
    ctx_init(&t->ctx);
    Arena *arena = &t->ctx.arena;
    t->g = random_graph(&t->ctx, &t->rng, 7);
    t->machine = seed % 2 == 0 ? &machine : NULL;
    if (seed % 3 == 0) {
        random_pairs(&t->ctx, &t->rng, t->g);
    }
    if (seed % 3 == 1) {
        random_terms(&t->ctx, &t->rng, t->g);
    }
    opt_symmetry(&t->ctx, t->g, true);
    t->asked = t->g;
    t->g = opt_onto(&t->ctx, arena, t->asked);
    opt_symmetry(&t->ctx, t->g, true);
    if (!graph_verify(&t->ctx, t->g, "test")) {
        broken(t, "the graph is refused");
    }
    nest_facts(arena, t->g, &t->facts);
    greedy_tree(&t->ctx, arena, &t->facts, &machine, false, &none);
    Tree trees[NESTS];
    uint32_t n_trees = 0;
    for (uint32_t k = 0; k < NESTS && none.list.n > 0; k++) {
        uint32_t steps = (uint32_t)rng_below(&t->rng, 12);
        Tree tree = random_walk(arena, &t->rng, &t->facts, &none, steps);
        check(t, &tree);
        tree = random_extras(arena, &t->rng, &t->facts, &tree);
        check(t, &tree);
        trees[n_trees++] = tree;
        for (uint32_t i = 0; i < 4; i++) {
            Tree changed = random_fault(arena, &t->rng, &t->facts, &tree);
            changed = i < 2 ? changed : random_fault(arena, &t->rng, &t->facts, &changed);
            bool accepted = check_changed(t, &changed);
            seen->accepted += accepted;
            seen->refused += !accepted;
        }
    }
    if (n_trees > 0 && t->g->dims.list.n > 0) {
        check_sizes(t, trees, 2 + (uint32_t)rng_below(&t->rng, 2));
    }
    ctx_release(&t->ctx);
    free(t);
}

static void a_kernel_computes_what_its_graph_does_whatever_its_nest(void **state)
{
    Seen seen = {0};
    n_seeds = n_seeds == GRAPHS ? GRAPHS / one_of(4) : n_seeds;
    for (uint64_t k = 0; k < n_seeds; k++) {
        run_seed(first_seed + k, &seen);
    }
    if (n_seeds == GRAPHS) { /* about half of what is usual */
        assert_true(seen.nests > 4000 && seen.shared > 4000 && seen.folded > 1600);
        assert_true(seen.tiles_of_tiles > 1000 && seen.recompute > 60 && seen.parallel > 1700);
        assert_true(seen.in_place > 1500 && seen.late > 900 && seen.blocks > 900);
        assert_true(seen.accepted > 1800 && seen.refused > 2000);
        assert_true(seen.over > 900 && seen.places_taken > 20);
        assert_true(seen.several > 100 && seen.pairs > 90 && seen.mirror > 60);
        assert_true(seen.into > 240);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_computes_what_its_graph_does_whatever_its_nest),
    };
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        n_seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
