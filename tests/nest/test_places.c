/* SPDX-License-Identifier: Apache-2.0 */
/* Values that take the place of an operand: which ones a planner chooses, and that the verifier,
 * which has its own rules, accepts just these. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/place.h"
#include "nest/plan.h"
#include "nest/text.h"
#include "nest/tree.h"
#include "nest/verify.h"
#include "support_graphs.h"

static const Machine machine = {.n_levels = 1,
                                .level = {{.name = "cache", .capacity = 512 << 10}},
                                .open_extents = true,
                                .overwrites = true};

#define SQUARE                                                                                 \
    "  dim m ~ 8\n  param in @A : i64[m,m]\n  %0 = input @A : i64[m,m]\n"                      \
    "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : i64[m,m]\n"
#define READ(n)    "  %9 = einsum %" n "[a,b], %0[b,c] -> [a,c] : i64[m,m]\n  result @R = %9\n"
#define ONTO(n, x) "  %" n " = einsum %0[a,b], %0[b,c] onto %" x "[a,c] -> [a,c] : i64[m,m]\n"
#define CHANGED                                                                                \
    "  dim m ~ 8\n  param in @A : i64[m,m]\n  param inout @C : i64[m,m]\n"                     \
    "  %0 = input @A : i64[m,m]\n  %1 = input @C : i64[m,m]\n" ONTO("2", "1")                  \
        ONTO("3", "2") "  %4 = neg %1[a,b] -> [a,b] : i64[m,m]\n  update @C = %3\n"            \
                       "  result @R = %4\n"

static const struct {
    const char *what, *graph, *nest, *places;
} rows[] = {
    {"what nobody else reads", SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n" READ("2"),
     "axis i [%1[a], %2[a], %9[a]]\nfor i step 2 {\n%1 tile\n%2 tile\n%9 result 0\n}\n",
     "2 in 1"},
    {"what others have read before",
     SQUARE "  %2 = reduce.sum %1[a,b] -> [a] : i64[m]\n"
            "  %3 = add %1[a,b], %2[a] -> [a,b] : i64[m,m]\n" READ("3"),
     "axis i [%1[a], %2[a], %3[a], %9[a]]\n"
     "for i step 2 {\n%1 tile\n%2 tile\n%3 tile\n%9 result 0\n}\n",
     "3 in 1"},
    {"what is read later",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %9 = einsum %2[a,b], %1[b,c] -> [a,c] : i64[m,m]\n  result @R = %9\n",
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"what is a result too",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n  result @X = %1\n" READ("2"),
     "%1 result 0\n%2 workspace\n%9 result 1\n", ""},
    {"another order", SQUARE "  %2 = neg %1[a,b] -> [b,a] : i64[m,m]\n" READ("2"),
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"both orders", SQUARE "  %2 = add %1[a,b], %1[b,a] -> [a,b] : i64[m,m]\n" READ("2"),
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"a row of it", SQUARE "  %2 = add %1[a,b], %1[a,a] -> [a,b] : i64[m,m]\n" READ("2"),
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"another type",
     SQUARE "  %2 = lt %1[a,b], %0[a,b] -> [a,b] : bool[m,m]\n"
            "  %9 = reduce.any %2[a,b] -> [a] : bool[m]\n  result @R = %9\n",
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"a parameter",
     "  dim m ~ 8\n  param in @A : i64[m,m]\n  %0 = input @A : i64[m,m]\n"
     "  %1 = neg %0[a,b] -> [a,b] : i64[m,m]\n" READ("1"),
     "%1 workspace\n%9 result 0\n", ""},
    {"a fold over it", SQUARE "  %2 = einsum %1[a,b], %0[b,c] -> [a,c] : i64[m,m]\n" READ("2"),
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"one after the other",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %3 = mul %2[a,b], %2[a,b] -> [a,b] : i64[m,m]\n" READ("3"),
     "%1 workspace\n%2 workspace\n%3 workspace\n%9 result 0\n", "2 in 1, 3 in 2"},
    {"the first of two",
     SQUARE "  %2 = einsum %0[a,b], %0[b,c] -> [a,c] : i64[m,m]\n"
            "  %3 = sub %2[a,b], %1[a,b] -> [a,b] : i64[m,m]\n" READ("3"),
     "%1 workspace\n%2 workspace\n%3 workspace\n%9 result 0\n", "3 in 2"},
    {"a block cut otherwise", SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n" READ("2"),
     "axis i [%2[a], %9[a]]\n%1 workspace\nfor i step 2 {\n%2 tile\n%9 result 0\n}\n", ""},
    {"memory, in a loop", SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n" READ("2"),
     "axis i [%2[a]]\n%1 workspace\nfor i step 2 {\n%2 workspace\n}\n%9 result 0\n", "2 in 1"},
    {"memory that the loop reads elsewhere",
     SQUARE "  %2 = reduce.sum %1[a,b] -> [b] : i64[m]\n"
            "  %3 = add %1[a,b], %2[a] -> [a,b] : i64[m,m]\n" READ("3"),
     "axis i [%2[b], %3[a]]\n%1 workspace\nfor i step 2 {\n%2 tile\n%3 workspace\n}\n"
     "%9 result 0\n",
     ""},
    {"memory that the loop makes",
     SQUARE "  %2 = neg %1[a,b] -> [a,b] : i64[m,m]\n"
            "  %9 = einsum %2[a,b], %0[b,c] -> [a,c] : i64[m,m]\n  result @R = %9\n",
     "axis i [%1[a], %2[a]]\nfor i step 2 {\n%1 tile\n%2 workspace\n}\n%9 result 0\n", ""},
    {"what a sum begins with", SQUARE ONTO("2", "1") READ("2"),
     "%1 into %2\n%2 workspace\n%9 result 0\n", "1 in 2"},
    {"what a sum begins with, and others read",
     SQUARE ONTO("2",
                 "1") "  %9 = einsum %2[a,b], %1[b,c] -> [a,c] : i64[m,m]\n  result @R = %9\n",
     "%1 workspace\n%2 workspace\n%9 result 0\n", ""},
    {"an argument that is read before", CHANGED, "%4 result 1\n%2 into %3\n%3 result 0\n",
     "2 in 3"},
    {"an argument that is read later", CHANGED, "%2 into %3\n%4 result 1\n%3 workspace\n",
     "2 in 3"},
};

static const char *places_text(Arena *a, const Nest *nest)
{
    Text out;
    text_init(&out, a);
    text_put(&out, "");
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        if (nest->values[n].in_place != NODE_NONE) {
            text_printf(&out, "%s%u in %u", out.n == 0 ? "" : ", ", n,
                        nest->values[n].in_place);
        }
    }
    return out.n == 0 ? "" : out.at;
}

static void an_expression_takes_the_place_of_what_ends_there(void **state)
{
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        Ctx ctx;
        ctx_init(&ctx);
        Arena *a = &ctx.arena;
        const char *text = str_format(
            a, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", rows[r].graph);
        Module *m = module_read(&ctx, source_add(&ctx.sources, "g", str_from(text), (Span){0}));
        char *lines = str_format(a, "nest {\n%s}\n", rows[r].nest);
        for (char *at = lines; m != NULL && (at = strstr(at, "%9")) != NULL; at++) {
            at[1] = (char)('0' + m->graphs.at[0]->nodes.n - 1); /* texts are renumbered */
        }
        DumpTree *tree =
            dump_tree_read(&ctx, a, source_add(&ctx.sources, "n", str_from(lines), (Span){0}));
        Nest *nest = m == NULL ? NULL : nest_read(&ctx, a, m->graphs.at[0], tree->line[0]);
        Text out;
        text_init(&out, a);
        diags_render(&ctx.diags, &out, false);
        if (nest == NULL) {
            fail_msg("%s: %s", rows[r].what, out.at);
            return;
        }
        NestFacts facts;
        Residence *residence = ARENA_ARRAY(a, nest->graph->nodes.n, Residence);
        for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
            residence[n] = nest->values[n].residence;
        }
        nest_facts_of(a, nest->graph, residence, &facts);
        NestValue *values = nest_place(a, &facts, &machine, nest);
        nest->values = values;
        const char *got = places_text(a, nest);
        if (strcmp(got, rows[r].places) != 0 || !nest_verify(&ctx, nest, "test")) {
            nest_dump(nest, &out);
            fail_msg("%s: '%s', not '%s'\n%s", rows[r].what, got, rows[r].places, out.at);
        }
        /* every other place is refused */
        for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
            for (NodeRef p = 0; values[n].item != NEST_NONE && p < n; p++) {
                NodeRef was = values[n].in_place;
                if (was == NODE_NONE) {
                    values[n].in_place = p;
                    bool accepted = nest_verify(&ctx, nest, "test");
                    if (accepted && strcmp(rows[r].what, "the first of two") != 0) {
                        fail_msg("%s: %u in %u is accepted", rows[r].what, n, p);
                    }
                    values[n].in_place = was;
                }
            }
        }
        ctx_release(&ctx);
    }
}

static void a_machine_that_writes_once_takes_no_places(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Machine once = machine;
    const char *text = str_format(
        &ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", rows[1].graph);
    Module *m = module_read(&ctx, source_add(&ctx.sources, "g", str_from(text), (Span){0}));
    for (int k = 0; k < 2; k++) {
        once.overwrites = k == 1;
        Nest *nest = nest_greedy(&ctx, &ctx.arena, m->graphs.at[0], &once);
        assert_string_equal(places_text(&ctx.arena, nest), k == 0 ? "" : "3 in 1");
    }
    ctx_release(&ctx);
}

/* ---- what lives at once ---- */

/* Which item of the body of `home` has item `at` inside, counted from 0; past the last: after
 * all of them. */
static uint32_t turn(const Nest *nest, uint32_t home, uint32_t at)
{
    uint32_t count = 0;
    uint32_t k = home == NEST_NONE ? 0 : home + 1;
    uint32_t end = home == NEST_NONE ? nest->n_items : nest->items[home].end;
    for (; k < end && nest->items[k].end <= at; k = nest->items[k].end) {
        count++;
    }
    return count;
}

static bool is_in(const Nest *nest, uint32_t loop, uint32_t item)
{
    return loop == NEST_NONE || (item > loop && item < nest->items[loop].end);
}

/* Is the block of `n`, or one that takes its place, needed while leaf `at` runs? */
static bool lives(const Nest *nest, const NestFacts *f, NodeRef n, uint32_t at)
{
    const NestValue *v = &nest->values[n];
    uint32_t first = turn(nest, v->alloc_loop, v->fold != NEST_NONE ? v->fold : v->item);
    bool needed = false;
    for (NodeRef x = node_init(graph_node(nest->graph, n));
         x != NODE_NONE && nest->values[x].residence == RESIDE_INTO;
         x = node_init(graph_node(nest->graph, x))) {
        const NestValue *b = &nest->values[x];
        first = turn(nest, v->alloc_loop, b->fold != NEST_NONE ? b->fold : b->item);
    }
    for (NodeRef r = 0; r < nest->graph->nodes.n; r++) { /* up to some reader, or itself */
        for (uint32_t i = 0; i < f->uses[r].list.n; i++) {
            if (f->uses[r].list.at[i].node == n && nest->values[r].item != NEST_NONE) {
                needed = needed || turn(nest, v->alloc_loop, at) <=
                                       turn(nest, v->alloc_loop, nest->values[r].item);
            }
        }
        needed = needed || (nest->values[r].in_place == n && lives(nest, f, r, at));
    }
    needed = needed || turn(nest, v->alloc_loop, at) == first;
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        needed = needed || f->late.list.at[i].node == n;
    }
    return needed && first <= turn(nest, v->alloc_loop, at) && is_in(nest, v->alloc_loop, at);
}

static int64_t live_bytes(const Nest *nest, const NestFacts *f, uint32_t loop, uint32_t at)
{
    int64_t bytes = 0;
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        const NestValue *v = &nest->values[n];
        const Node *node = graph_node(nest->graph, n);
        if (v->item == NEST_NONE) {
            continue;
        }
        bool inside =
            loop == NEST_NONE || v->alloc_loop == loop || is_in(nest, loop, v->alloc_loop);
        if (v->residence == RESIDE_TILE && v->in_place == NODE_NONE &&
            (loop == NEST_NONE || (v->alloc_loop != NEST_NONE && inside)) &&
            lives(nest, f, n, at)) {
            bytes += v->bytes;
        }
        uint32_t runs = v->fold != NEST_NONE ? v->fold : v->item;
        uint32_t scope = nest->items[runs].parent;
        bool sums = node->acc != node->dtype && !node_is_expression(node);
        if (sums && at >= runs && at < nest->items[runs].end &&
            (scope != NEST_NONE || v->fold == NEST_NONE) &&
            (loop == NEST_NONE || scope == loop ||
             (scope != NEST_NONE && is_in(nest, loop, scope)))) {
            bytes += nest_block_elements(nest, n, scope) * dtype_bytes(node->acc);
        }
    }
    return bytes;
}

/* A contraction twice more, times 3 and then times 4 onto that, and the negative, where there is one that sums. */
static void add_sums(Ctx *ctx, Graph *g)
{
    NodeRef n = 0, operand[4] = {0};
    Access access[4] = {0};
    while (n < g->nodes.n &&
           (graph_node(g, n)->op != OP_EINSUM || graph_node(g, n)->n_operands != 2 ||
            graph_node(g, n)->n_labels == graph_node(g, n)->rank ||
            graph_node(g, n)->acc != graph_node(g, n)->dtype)) {
        n++;
    }
    if (n == g->nodes.n || graph_node(g, n)->dtype == DTYPE_BOOL) {
        return;
    }
    NodeSpec spec = graph_spec(g, n);
    Index *own = ARENA_ARRAY(&ctx->arena, spec.rank, Index);
    for (uint32_t k = 0; k < spec.rank; k++) {
        own[k] = (Index){spec.out[k], 0};
    }
    memcpy(operand, spec.operand, 2 * sizeof *operand);
    memcpy(access, spec.access, 2 * sizeof *access);
    spec.operand = operand;
    spec.access = access;
    for (spec.n_operands = 3; spec.n_operands < 5; spec.n_operands++) {
        operand[2] = graph_const(g, number_int(spec.dtype, spec.n_operands), (Span){0});
        operand[3] = graph_add(g, &spec);
        access[3] = (Access){spec.rank, own};
        spec.onto = true;
    }
    spec = (NodeSpec){.op = OP_NEG,
                      .dtype = spec.dtype,
                      .n_operands = 1,
                      .operand = operand + 3,
                      .access = access + 3,
                      .rank = spec.rank,
                      .out = spec.out};
    operand[3] = graph_add(g, &spec);
    Result r = {.name = sym_cstr(&ctx->syms, "sums"), .param = -1, .node = operand[3]};
    vec_push(g->arena, &g->results, r);
}

static void the_peak_is_the_most_that_lives_at_any_leaf(void **state)
{
    uint32_t loops = 0, shared = 0, places = 0, into = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Ctx ctx;
        ctx_init(&ctx);
        Arena *a = &ctx.arena;
        Rng rng = {seed};
        NestFacts facts;
        Tree none = {0};
        Graph *g = random_graph(&ctx, &rng, 8);
        if (seed % 3 == 0) {
            add_sums(&ctx, g);
        }
        nest_facts(a, g, &facts);
        greedy_tree(&ctx, a, &facts, &machine, false, &none);
        for (uint32_t k = 0; k < 4 && none.list.n > 0; k++) {
            Tree tree = random_walk(a, &rng, &facts, &none, 1 + (uint32_t)rng_below(&rng, 12));
            Nest *nest = tree_nest(a, g, &tree);
            NestPlaces live = {0};
            nest->values = nest_place(a, &facts, &machine, nest);
            nest_places(a, nest, &live);
            for (uint32_t loop = 0; loop <= nest->n_items; loop++) {
                uint32_t body = loop < nest->n_items ? loop : NEST_NONE;
                int64_t most = 0, sum = 0;
                if (body != NEST_NONE && !nest_is_loop(&nest->items[loop])) {
                    continue;
                }
                for (uint32_t at = 0; at < nest->n_items; at++) {
                    if (!nest_is_loop(&nest->items[at]) && is_in(nest, body, at)) {
                        int64_t bytes = live_bytes(nest, &facts, body, at);
                        most = bytes > most ? bytes : most;
                    }
                }
                for (uint32_t i = 0; i < live.list.n; i++) {
                    sum += body == NEST_NONE ? live.list.at[i].bytes : 0;
                }
                double peak = nest_peak(a, nest, &live, body);
                if (peak != (double)most) {
                    Text out;
                    text_init(&out, a);
                    graph_dump(g, &out);
                    nest_dump(nest, &out);
                    fail_msg("seed %d, loop %d: %lld, not %lld\n%s", (int)seed, (int)body,
                             (long long)peak, (long long)most, out.at);
                }
                loops += body != NEST_NONE;
                shared += peak < (double)sum;
            }
            for (NodeRef n = 0; n < g->nodes.n; n++) {
                places += nest->values[n].in_place != NODE_NONE;
                into += nest->values[n].residence == RESIDE_INTO;
            }
        }
        ctx_release(&ctx);
    }
    assert_true(loops > 600 && shared > 100 && places > 15 && into > 50);
}

/* Four rows of what lives at once fit where two fitted side by side. */
static void blocks_that_share_bytes_have_longer_tiles(void **state)
{
    static const char graph[] =
        "  param in @A : f32[64,8192]\n  %0 = input @A : f32[64,8192]\n"
        "  %1 = exp %0[a,b] -> [a,b] : f32[64,8192]\n"
        "  %2 = reduce.max %1[a,b] -> [a] : f32[64]\n"
        "  %3 = div %1[a,b], %2[a] -> [a,b] : f32[64,8192]\n"
        "  %4 = exp %3[a,b] -> [a,b] : f32[64,8192]\n"
        "  %5 = reduce.sum %4[a,b] -> [a] : f32[64]\n"
        "  %6 = div %4[a,b], %5[a] -> [a,b] : f32[64,8192]\n  result @R = %6\n";
    for (int k = 0; k < 2; k++) {
        Ctx ctx;
        ctx_init(&ctx);
        Machine m = machine;
        m.overwrites = k == 1;
        const char *text = str_format(
            &ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", graph);
        Module *module =
            module_read(&ctx, source_add(&ctx.sources, "g", str_from(text), (Span){0}));
        Nest *nest = nest_greedy(&ctx, &ctx.arena, module->graphs.at[0], &m);
        assert_true(nest_is_loop(&nest->items[0]));
        assert_int_equal(nest->items[0].tile, k == 1 ? 4 : 2);
        ctx_release(&ctx);
    }
}

/* What crosses top-level items stays on chip while what lives at once fits. */
static void values_on_chip_one_after_the_other_need_room_once(void **state)
{
    /* 160 KiB each, of 256: %1, %2 and %3 follow each other, and only %2 reads %1 */
    static const char graph[] =
        "  param in @A : f32[200,200]\n  %0 = input @A : f32[200,200]\n"
        "  %1 = einsum %0[a,b], %0[b,c] -> [a,c] : f32[200,200]\n"
        "  %2 = reduce.sum %1[a,b] -> [b] : f32[200]\n"
        "  %3 = einsum %0[a,b], %0[c,b], %2[c] -> [a,c] : f32[200,200]\n"
        "  %4 = einsum %3[a,b], %3[a,c] -> [b,c] : f32[200,200]\n  result @R = %4\n";
    Ctx ctx;
    ctx_init(&ctx);
    Arena *a = &ctx.arena;
    const char *text =
        str_format(a, "tdsl-dump graph 1\n\nkernel k {\n  form tensor\n%s}\n", graph);
    Module *m = module_read(&ctx, source_add(&ctx.sources, "g", str_from(text), (Span){0}));
    NestFacts facts;
    Tree none = {0};
    nest_facts(a, m->graphs.at[0], &facts);
    greedy_tree(&ctx, a, &facts, &machine, false, &none);
    Nest *nest = tree_nest(a, m->graphs.at[0], &none);
    const NestValue *values = nest_place(a, &facts, &machine, nest);
    for (NodeRef n = 1; n <= 3; n++) {
        assert_int_equal(values[n].residence, RESIDE_TILE);
    }
    ctx_release(&ctx);
}

TESTS(TEST(an_expression_takes_the_place_of_what_ends_there),
      TEST(a_machine_that_writes_once_takes_no_places),
      TEST(the_peak_is_the_most_that_lives_at_any_leaf),
      TEST(blocks_that_share_bytes_have_longer_tiles),
      TEST(values_on_chip_one_after_the_other_need_room_once))
