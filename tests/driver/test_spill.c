/* SPDX-License-Identifier: Apache-2.0 */
/* Why a value is in memory: the dimensions over which writer and readers may share a loop are those that axes.c finds, on random
 * graphs; each kind of barrier and its place; at which size a block leaves its level; and what is said. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "driver/report/spill.h"
#include "driver/report/trace.h"
#include "../nest/support_graphs.h"
#include "nest/axes.h"
#include "nest/facts.h"
#include "nest/plan.h"

static const Machine machine = {
    .n_levels = 1, .level = {{.name = "cache", .capacity = 512 << 10}}, .open_extents = true};

/* Loops that axes.c has for what is on the ways, along dimensions of `from`. */
static uint32_t count_axes(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to,
                           const NodeRef *to)
{
    uint32_t n = f->g->nodes.n, count = 0, n_nodes = 0;
    bool *in = ARENA_ARRAY(arena, n, bool);
    NodeRef *nodes = ARENA_ARRAY(arena, n, NodeRef);
    const NestAxis *axes = NULL;
    assert_true(nest_ways(arena, f, from, n_to, to, in, &count));
    for (NodeRef x = 0; x < n; x++) {
        if (in[x]) {
            nodes[n_nodes++] = x;
        }
    }
    assert_int_equal(n_nodes, count);
    assert_int_equal(nodes[0], from);
    uint32_t n_axes = nest_common_axes(arena, f, n_nodes, nodes, false, &axes);
    for (uint32_t k = 0; k < n_axes; k++) {
        assert_false(node_reduces(graph_node(f->g, from), nest_axis_label(&axes[k], from)));
    }
    return n_axes;
}

static uint32_t count_free(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to,
                           const NodeRef *to, uint32_t *kinds)
{
    uint32_t rank = graph_node(f->g, from)->rank, count = 0;
    NestBarrier *dim = ARENA_ARRAY(arena, rank, NestBarrier);
    assert_true(nest_trace(arena, f, from, n_to, to, dim));
    for (uint32_t d = 0; d < rank; d++) {
        count += dim[d].kind == BARRIER_NONE;
        kinds[dim[d].kind]++;
        assert_true(dim[d].kind == BARRIER_NONE || dim[d].at > from);
    }
    return count;
}

static void the_free_dimensions_are_the_axes_of_random_graphs(void **state)
{
    uint32_t kinds[BARRIER_POSITION + 1] = {0}, pairs = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        Ctx ctx;
        ctx_init(&ctx);
        Rng rng = {seed * 77 + 5};
        NestFacts f;
        Graph *g = random_graph(&ctx, &rng, 2 + (uint32_t)(seed % 9));
        nest_facts(&ctx.arena, g, &f);
        NodeRef *readers = ARENA_ARRAY(&ctx.arena, f.n_stored, NodeRef);
        for (uint32_t k = 0; k < f.n_stored; k++) {
            uint32_t n = 0;
            for (uint32_t j = k + 1; j < f.n_stored; j++) {
                bool reads = false;
                for (uint32_t i = 0; i < f.uses[f.stored[j]].list.n; i++) {
                    reads |= f.uses[f.stored[j]].list.at[i].node == f.stored[k];
                }
                if (reads) {
                    readers[n++] = f.stored[j];
                    assert_int_equal(
                        count_free(&ctx.arena, &f, f.stored[k], 1, &f.stored[j], kinds),
                        count_axes(&ctx.arena, &f, f.stored[k], 1, &f.stored[j]));
                    pairs++;
                }
            }
            if (n > 1) {
                assert_int_equal(count_free(&ctx.arena, &f, f.stored[k], n, readers, kinds),
                                 count_axes(&ctx.arena, &f, f.stored[k], n, readers));
            }
        }
        ctx_release(&ctx);
    }
    assert_true(pairs > 500);
    for (uint32_t k = 0; k <= BARRIER_POSITION; k++) {
        assert_true(kinds[k] > 10); /* all kinds are met */
    }
}

/* ---- graphs as texts ---- */

typedef struct Case {
    Ctx ctx;
    Graph *g;
    Nest *nest;
    NestFacts f;
} Case;

static Case *case_new(const char *lines)
{
    Case *c = calloc(1, sizeof *c);
    ctx_init(&c->ctx);
    const char *text = str_format(
        &c->ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", lines);
    Module *m =
        module_read(&c->ctx, source_add(&c->ctx.sources, "t", str_from(text), (Span){0}));
    assert_non_null(m);
    c->g = m->graphs.at[0];
    nest_facts(&c->ctx.arena, c->g, &c->f);
    c->nest = nest_greedy(&c->ctx, &c->ctx.arena, c->g, &machine);
    return c;
}

static void case_free(Case *c)
{
    ctx_release(&c->ctx);
    free(c);
}

static void assert_barriers(const char *lines, NodeRef from, NodeRef to, uint32_t rank,
                            const NestBarrier *expected)
{
    Case *c = case_new(lines);
    NestBarrier dim[4];
    assert_int_equal(graph_node(c->g, from)->rank, rank);
    assert_true(nest_trace(&c->ctx.arena, &c->f, from, 1, &to, dim));
    for (uint32_t d = 0; d < rank; d++) {
        assert_int_equal(dim[d].kind, expected[d].kind);
        assert_int_equal(dim[d].at, expected[d].at);
    }
    case_free(c);
}

#define MADE                                                                                   \
    "  param in @A : f64[900,900]\n  %0 = input @A : f64[900,900]\n"                           \
    "  %1 = einsum %0[a,b], %0[b,c] -> [a,c] : f64[900,900] as X\n"

static void each_barrier_has_its_kind_and_its_place(void **state)
{
    static const NestBarrier orders[] = {{BARRIER_ORDERS, 2, 2}, {BARRIER_ORDERS, 2, 2}};
    assert_barriers(MADE
                    "  %2 = sub %1[a,b], %1[b,a] -> [a,b] : f64[900,900]\n  result @R = %2\n",
                    1, 2, 2, orders);
    static const NestBarrier rows[] = {{BARRIER_NONE, 0, 0}, {BARRIER_FOLD, 2, 2}};
    assert_barriers(MADE "  %2 = reduce.sum %1[a,b] -> [a] : f64[900]\n"
                         "  %3 = div %1[a,b], %2[a] -> [a,b] : f64[900,900]\n"
                         "  result @R = %3\n",
                    1, 3, 2, rows);
    static const NestBarrier diagonal[] = {{BARRIER_DIAGONAL, 2, 1}, {BARRIER_DIAGONAL, 2, 1}};
    assert_barriers(MADE "  %2 = exp %1[a,a] -> [a] : f64[900]\n  result @R = %2\n", 1, 2, 2,
                    diagonal);
    static const NestBarrier position[] = {{BARRIER_POSITION, 2, 1}, {BARRIER_NONE, 0, 0}};
    assert_barriers("  param in @A : f64[1,900]\n  %0 = input @A : f64[1,900]\n"
                    "  %1 = einsum %0[a,b], %0[c,b] -> [a,b] : f64[1,900]\n"
                    "  %2 = einsum %1[0,a], %0[b,a] -> [a,b] : f64[900,1]\n  result @R = %2\n",
                    1, 2, 2, position);
}

/* ---- sizes ---- */

static const char open[] =
    "  dim n ~ 100\n  dim m ~ 10\n  param in @A : f64[n,m]\n"
    "  %0 = input @A : f64[n,m]\n"
    "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : f64[n,n] as X\n"
    "  %2 = sub %1[a,b], %1[b,a] -> [a,b] : f64[n,n]\n  result @R = %2\n";

static void a_block_stays_up_to_the_largest_size_that_fits(void **state)
{
    Case *c = case_new(open);
    assert_true(nest_grows(c->nest, 1) && nest_grows_with(c->nest, 1, 0));
    assert_false(nest_grows_with(c->nest, 1, 1));
    assert_int_equal(nest_stays_to(c->nest, 1, 0, 8 * 100 * 100), 100);
    assert_int_equal(nest_stays_to(c->nest, 1, 0, 8 * 101 * 101 - 1), 100);
    assert_int_equal(nest_stays_to(c->nest, 1, 0, 7), 0);
    assert_string_equal(nest_stays_words(&c->ctx.arena, c->nest, &machine, 1),
                        "stays in cache up to n = 256 (typical sizes else)");
    nest_warn_spills(&c->ctx, c->nest, &machine);
    assert_int_equal(c->ctx.diags.list.n, 0); /* at 100 it is small */
    Machine tiny = machine;
    tiny.level[0].capacity = 8 * 100 * 100 - 1;
    nest_warn_spills(&c->ctx, c->nest, &tiny);
    assert_int_equal(c->ctx.diags.list.n, 1);
    assert_string_equal(
        c->ctx.diags.list.at[0]->because,
        "'R' reads X[a,b] and X[b,a]; stays in cache up to n = 99 (typical sizes else)");
    case_free(c);
}

static void what_shares_no_loop_and_does_not_fit_is_a_spill(void **state)
{
    Case *c = case_new("  dim n ~ 1000\n  param in @A : f64[n,n]\n  %0 = input @A : f64[n,n]\n"
                       "  %1 = einsum %0[a,b], %0[b,c] -> [a,c] : f64[n,n] as S\n"
                       "  %2 = einsum %1[a,b], %1[b,a] -> [] : f64[]\n"
                       "  %3 = einsum %1[a,b], %1[c,a] -> [c,b] : f64[n,n]\n"
                       "  result @x = %2\n  result @y = %3\n");
    assert_int_equal(c->nest->values[1].residence, RESIDE_WORKSPACE);
    nest_warn_spills(&c->ctx, c->nest, &machine);
    assert_int_equal(c->ctx.diags.list.n, 1);
    assert_int_equal(c->ctx.diags.list.at[0]->code, W_SPILL);
    assert_string_equal(c->ctx.diags.list.at[0]->message,
                        "'S' goes to memory: 8000000 bytes for the typical extents");
    case_free(c);
}

static void a_block_in_loops_that_no_level_holds_is_warned_of(void **state)
{
    Case *c = case_new("  dim n ~ 100\n  dim v ~ 300\n  param in @A : f64[n,v]\n"
                       "  %0 = input @A : f64[n,v]\n"
                       "  %1 = mul %0[a,b], %0[a,c] -> [a,b,c] : f64[n,v,v] as X\n"
                       "  %2 = einsum %1[a,b,c], %1[a,c,b] -> [] : f64[] as R\n"
                       "  result @R = %2\n");
    Machine large = machine;
    large.level[0].capacity = 800000; /* one position of n is 720000 */
    c->nest = nest_greedy(&c->ctx, &c->ctx.arena, c->g, &large);
    assert_int_equal(c->nest->values[1].residence, RESIDE_TILE);
    nest_warn_spills(&c->ctx, c->nest, &large);
    Machine two = machine; /* with a larger level outside */
    two.n_levels = 2;
    two.level[1] = machine.level[0];
    two.level[0].capacity = 720000;
    two.tile_level = 1;
    nest_warn_spills(&c->ctx, c->nest, &two);
    assert_int_equal(c->ctx.diags.list.n, 0);
    nest_warn_spills(&c->ctx, c->nest, &machine);
    assert_int_equal(c->ctx.diags.list.n, 1);
    const Diagnostic *d = c->ctx.diags.list.at[0];
    assert_string_equal(d->message,
                        "'X' goes to memory: blocks of 720000 bytes for the typical "
                        "extents, cache holds 524288");
    assert_string_equal(
        d->because, "a block in loops; it stays in cache up to v = 256 (typical sizes else)");
    case_free(c);
}

TESTS(TEST(the_free_dimensions_are_the_axes_of_random_graphs),
      TEST(each_barrier_has_its_kind_and_its_place),
      TEST(a_block_stays_up_to_the_largest_size_that_fits),
      TEST(what_shares_no_loop_and_does_not_fit_is_a_spill),
      TEST(a_block_in_loops_that_no_level_holds_is_warned_of))
