/* SPDX-License-Identifier: Apache-2.0 */
/* Which sums may follow a maximum: found by structure, with near misses that may not; what the
 * finder says is what the verifier derives, and no other rule passes it. */
#include "../graph/support.h"

#include "opt/opt.h"

#include <string.h>

#define HEAD                                                                                   \
    "  param in @S : f32[3,4]\n  param in @V : f32[4,5]\n  param in @c : f32[3,4]\n"           \
    "  param scalar @x : f32[]\n"                                                              \
    "  %0 = input @S : f32[3,4]\n  %1 = input @V : f32[4,5]\n  %2 = input @c : f32[3,4]\n"     \
    "  %3 = input @x : f32[]\n"
#define MAXIMUM HEAD "  %4 = reduce.max %0[a,b] -> [a] : f32[3]\n"
#define SHIFT   MAXIMUM "  %5 = sub %0[a,b], %4[a] -> [a,b] : f32[3,4]\n"
#define FACTOR  SHIFT "  %6 = exp %5[a,b] -> [a,b] : f32[3,4]\n"

typedef struct Case {
    const char *name, *lines, *rules;
} Case;

static const Case cases[] = {
    {"the sum", FACTOR "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n",
     "  online %7 by %4[a] over b\n"},
    {"the sum and a product with it, and what is made of both is none",
     FACTOR "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n"
            "  %8 = einsum %6[a,b], %1[b,c] -> [c,a] : f32[5,3]\n"
            "  %9 = div %8[a,b], %7[b] -> [a,b] : f32[5,3]\n  result @R = %9\n",
     "  online %7 by %4[a] over b\n  online %8 by %4[a] over b\n"},
    {"two maxima",
     FACTOR "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n"
            "  %8 = reduce.max %2[a,b] -> [b] : f32[4]\n"
            "  %9 = sub %2[a,b], %8[b] -> [a,b] : f32[3,4]\n"
            "  %10 = exp %9[a,b] -> [a,b] : f32[3,4]\n"
            "  %11 = einsum %10[a,b], %1[b,c] -> [c,b] : f32[5,4]\n"
            "  %12 = reduce.sum %10[a,b] -> [b] : f32[4]\n"
            "  result @R = %7\n  result @T = %12\n  result @U = %11\n",
     "  online %7 by %4[a] over b\n  online %11 by %8[b] over a\n  online %12 by %8[b] over "
     "a\n"},
    {"a positive number before exp",
     SHIFT "  %6 = const 2.0 : f32[]\n  %7 = mul %6[], %5[a,b] -> [a,b] : f32[3,4]\n"
           "  %8 = exp %7[a,b] -> [a,b] : f32[3,4]\n"
           "  %9 = reduce.sum %8[a,b] -> [a] : f32[3]\n  result @R = %9\n",
     "  online %9 by %4[a] over b scale %6\n"},
    {"powers add up",
     FACTOR "  %7 = mul %6[a,b], %6[a,b] -> [a,b] : f32[3,4]\n"
            "  %8 = einsum %7[a,b], %6[a,b] -> [a] : f32[3]\n  result @R = %8\n",
     "  online %8 by %4[a] over b power 3\n"},
    {"what is linear in the factor",
     FACTOR "  %7 = mul %6[a,b], %2[a,b] -> [a,b] : f32[3,4]\n"
            "  %8 = neg %7[a,b] -> [a,b] : f32[3,4]\n"
            "  %9 = sub %8[a,b], %6[a,b] -> [a,b] : f32[3,4]\n"
            "  %10 = div %9[a,b], %3[] -> [a,b] : f32[3,4]\n"
            "  %11 = cast %10[a,b] -> [a,b] : f64[3,4]\n"
            "  %12 = reduce.sum %11[a,b] -> [a] : f64[3]\n  result @R = %12\n",
     "  online %12 by %4[a] over b\n"},
    {"a selection",
     FACTOR "  %7 = lt %2[a,b], %3[] -> [a,b] : bool[3,4]\n  %8 = const 0.0 : f32[]\n"
            "  %9 = select %7[a,b], %6[a,b], %8[] -> [a,b] : f32[3,4]\n"
            "  %10 = reduce.sum %9[a,b] -> [a] : f32[3]\n  result @R = %10\n",
     ""},
    {"a sum over another index too, of known extent",
     FACTOR "  %7 = einsum %6[a,b], %1[b,c] -> [a] : f32[3]\n  result @R = %7\n",
     "  online %7 by %4[a] over b\n"},
    {"and of an extent that may be 0",
     "  dim n ~ 4\n  param in @S : f32[3,4]\n  param in @V : f32[4,n]\n"
     "  %0 = input @S : f32[3,4]\n  %1 = input @V : f32[4,n]\n"
     "  %4 = reduce.max %0[a,b] -> [a] : f32[3]\n"
     "  %5 = sub %0[a,b], %4[a] -> [a,b] : f32[3,4]\n"
     "  %6 = exp %5[a,b] -> [a,b] : f32[3,4]\n"
     "  %7 = einsum %6[a,b], %1[b,c] -> [a] : f32[3]\n  result @R = %7\n",
     ""},
    {"a product first that keeps the axis",
     FACTOR "  %7 = einsum %6[a,b], %1[c,d] -> [a,b,d] : f32[3,4,5]\n"
            "  %8 = reduce.sum %7[a,b,c] -> [c,a] : f32[5,3]\n  result @R = %8\n",
     "  online %8 by %4[a] over b\n"},
    {"relu instead of exp",
     SHIFT "  %6 = relu %5[a,b] -> [a,b] : f32[3,4]\n"
           "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n",
     ""},
    {"the magnitude of the difference",
     SHIFT "  %6 = abs %5[a,b] -> [a,b] : f32[3,4]\n"
           "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n",
     ""},
    {"a narrowing cast between",
     FACTOR "  %7 = cast %6[a,b] -> [a,b] : f16[3,4]\n"
            "  %8 = cast %7[a,b] -> [a,b] : f32[3,4]\n"
            "  %9 = reduce.sum %8[a,b] -> [a] : f32[3]\n  result @R = %9\n",
     ""},
    {"a comparison with the maximum",
     FACTOR "  %7 = lt %0[a,b], %4[a] -> [a,b] : bool[3,4]\n  %8 = const 0.0 : f32[]\n"
            "  %9 = select %7[a,b], %6[a,b], %8[] -> [a,b] : f32[3,4]\n"
            "  %10 = reduce.sum %9[a,b] -> [a] : f32[3]\n  result @R = %10\n",
     ""},
    {"the maximum beside the factor",
     FACTOR "  %7 = mul %6[a,b], %4[a] -> [a,b] : f32[3,4]\n"
            "  %8 = reduce.sum %7[a,b] -> [a] : f32[3]\n  result @R = %8\n",
     ""},
    {"a number that may be negative",
     SHIFT "  %6 = mul %3[], %5[a,b] -> [a,b] : f32[3,4]\n"
           "  %7 = exp %6[a,b] -> [a,b] : f32[3,4]\n"
           "  %8 = reduce.sum %7[a,b] -> [a] : f32[3]\n  result @R = %8\n",
     ""},
    {"a constant added",
     FACTOR "  %7 = add %6[a,b], %3[] -> [a,b] : f32[3,4]\n"
            "  %8 = reduce.sum %7[a,b] -> [a] : f32[3]\n  result @R = %8\n",
     ""},
    {"division by the factor",
     FACTOR "  %7 = div %2[a,b], %6[a,b] -> [a,b] : f32[3,4]\n"
            "  %8 = reduce.sum %7[a,b] -> [a] : f32[3]\n  result @R = %8\n",
     ""},
    {"the maximum of other elements",
     MAXIMUM "  %5 = sub %2[a,b], %4[a] -> [a,b] : f32[3,4]\n"
             "  %6 = exp %5[a,b] -> [a,b] : f32[3,4]\n"
             "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n",
     ""},
    {"another row's maximum",
     "  param in @S : f32[3,3]\n  %0 = input @S : f32[3,3]\n"
     "  %1 = reduce.max %0[a,b] -> [a] : f32[3]\n  %2 = sub %0[a,b], %1[b] -> [a,b] : "
     "f32[3,3]\n"
     "  %3 = exp %2[a,b] -> [a,b] : f32[3,3]\n  %4 = reduce.sum %3[a,b] -> [a] : f32[3]\n"
     "  %5 = reduce.sum %3[a,b] -> [b] : f32[3]\n  result @R = %4\n  result @T = %5\n",
     ""},
    {"a sum over the rows too",
     FACTOR
     "  %7 = reduce.sum %6[a,b] -> [] : f32[]\n"
     "  %8 = einsum %6[a,b], %1[b,c] -> [c] : f32[5]\n  result @R = %7\n  result @T = %8\n",
     ""},
    {"the maximum of another row",
     MAXIMUM "  %5 = sub %0[c,b], %4[a] -> [a,b,c] : f32[3,4,3]\n"
             "  %6 = exp %5[a,b,c] -> [a,b,c] : f32[3,4,3]\n"
             "  %7 = reduce.sum %6[a,b,c] -> [a,c] : f32[3,3]\n  result @R = %7\n",
     ""},
    {"a maximum of the factor",
     FACTOR "  %7 = reduce.max %6[a,b] -> [a] : f32[3]\n  result @R = %7\n", ""},
    {"a minimum",
     HEAD "  %4 = reduce.min %0[a,b] -> [a] : f32[3]\n"
          "  %5 = sub %0[a,b], %4[a] -> [a,b] : f32[3,4]\n"
          "  %6 = exp %5[a,b] -> [a,b] : f32[3,4]\n"
          "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n",
     ""},
    {"the sum as part of the factor",
     FACTOR "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n"
            "  %8 = div %6[a,b], %7[a] -> [a,b] : f32[3,4]\n"
            "  %9 = einsum %8[a,b], %1[b,c] -> [a,c] : f32[3,5]\n  result @R = %9\n",
     "  online %7 by %4[a] over b\n"},
};

/* The lines of the dump that are rules. */
static const char *rules_of(Bench *b, const Graph *g)
{
    Text out;
    text_init(&out, &b->ctx.arena);
    for (const char *at = bench_dump(b, g); *at != '\0'; at += strcspn(at, "\n") + 1) {
        if (strncmp(at, "  online ", 9) == 0) {
            text_put_n(&out, at, strcspn(at, "\n") + 1);
        }
    }
    return out.at == NULL ? "" : out.at;
}

static void rules_are_found_by_structure(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        Bench *b = bench_new();
        Graph *g = bench_graph(b, cases[k].lines);
        opt_online(&b->ctx, g, true);
        if (strcmp(rules_of(b, g), cases[k].rules) != 0) {
            print_error("%s: expected\n%sgot\n%s", cases[k].name, cases[k].rules,
                        rules_of(b, g));
            fail();
        }
        if (!graph_verify(&b->ctx, g, "the pass")) {
            print_error("%s: %s", cases[k].name, bench_messages(b));
            fail();
        }
        const char *once = bench_dump(b, g);
        opt_online(&b->ctx, g, true);
        assert_string_equal(bench_dump(b, g), once);
        bench_free(b);
    }
}

/* Any rule for any two values, with the indices and powers that there could be: the verifier takes
 * what the finder finds, and nothing else. */
static void no_other_rule_passes_the_verifier(void **state)
{
    uint32_t tried = 0, passed = 0;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        Bench *b = bench_new();
        Graph *g = bench_graph(b, cases[k].lines);
        opt_online(&b->ctx, g, true);
        VEC(Online) found = {0};
        for (uint32_t i = 0; i < g->online.n; i++) {
            vec_push(&b->ctx.arena, &found, g->online.at[i]);
        }
        for (NodeRef y = 0; y < g->nodes.n; y++) {
            for (NodeRef r = y + 1; r < g->nodes.n; r++) {
                for (int32_t label = 0; label < 3; label++) {
                    for (int32_t power = 1; power < 4; power++) {
                        Index index = {label, 0};
                        Online rule = {r, y, {1, &index}, label == 0 ? 1 : 0, NODE_NONE, power};
                        bool is_found = false;
                        for (uint32_t i = 0; i < found.n; i++) {
                            const Online *o = &found.at[i];
                            is_found |= o->node == r && o->base == y && o->power == power &&
                                        o->scale == NODE_NONE && o->at.index[0].label == label;
                        }
                        g->online.n = 0;
                        vec_push(g->arena, &g->online, rule);
                        bool passes = graph_verify(&b->ctx, g, "test");
                        if (passes != is_found) {
                            print_error("%s: online %%%u by %%%u[%d] power %d passes: %d\n",
                                        cases[k].name, r, y, (int)label, (int)power, passes);
                            fail();
                        }
                        tried++;
                        passed += passes;
                        b->ctx.diags.list.n = 0;
                    }
                }
            }
        }
        bench_free(b);
    }
    assert_true(tried > 5000 && passed >= 8);
}

static void rules_read_back_and_wrong_ones_do_not(void **state)
{
    static const char *const wrong[][2] = {
        {"  online %7 by %4[b] over b\n", "the sum does not keep"},
        {"  online %7 by %4[a] over b power 2\n", "does not have that power"},
        {"  online %7 by %4[a] over b power 99\n", "a small power"},
        {"  online %7 by %4[a] over b scale %3\n", "no positive number"},
        {"  online %7 by %4 over b\n", "too few indices"},
        {"  online %7 by %4[a,a] over b\n", "too few indices"},
        {"  online %7 by %4[0] over b\n", "an index of the value that follows"},
        {"  online %7 by 4\n", "is expected here"},
        {"  online %7\n", "'by'"},
        {"  online %7 by %4[a]\n", "'over'"},
        {"  online %7 by %4[a] over a\n", "does not sum over the index"},
        {"  online %7 by %4[a] over q\n", "does not sum over the index"},
        {"  online %7 by %4[a] over 3\n", "an index of the value that follows"},
        {"  online %7 by %4[a] over b then\n", "the line should end here"},
        {"  online %4 by %7[a] over b\n", "no value after the one"},
        {"  online %6 by %4[a] over b\n", "is of no sum"},
        {"  online %7 by %5[a,b] over b\n", "follows no maximum"},
        {"  online %7 by %4[a] over b\n  online %7 by %4[a] over b\n", "is not in order"},
    };
    const char *good = FACTOR "  %7 = reduce.sum %6[a,b] -> [a] : f32[3]\n  result @R = %7\n";
    Bench *b = bench_new();
    Graph *g =
        bench_graph(b, str_format(&b->ctx.arena, "%s  online %%7 by %%4[a] over b\n", good));
    assert_round_trip(str_format(&b->ctx.arena, "tdsl-dump graph 1\n\n%s", bench_dump(b, g)));
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        assert_lines_refused(str_format(&b->ctx.arena, "%s%s", good, wrong[k][0]), wrong[k][1]);
    }
    bench_free(b);
}

TESTS(TEST(rules_are_found_by_structure), TEST(no_other_rule_passes_the_verifier),
      TEST(rules_read_back_and_wrong_ones_do_not))
