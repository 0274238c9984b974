/* SPDX-License-Identifier: Apache-2.0 */
/* Values that take the place of an operand: which ones a planner chooses, and that the verifier,
 * which has its own rules, accepts just these. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "nest/parts.h"

static const Machine machine = {.n_levels = 1,
                                .level = {{.name = "cache", .capacity = 512 << 10}},
                                .open_extents = true,
                                .overwrites = true};

#define SQUARE                                                                                 \
    "  dim m ~ 8\n  param in @A : i64[m,m]\n  %0 = input @A : i64[m,m]\n"                      \
    "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : i64[m,m]\n"
#define READ(n) "  %9 = einsum %" n "[a,b], %0[b,c] -> [a,c] : i64[m,m]\n  result @R = %9\n"

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
    (void)state;
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
    (void)state;
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

TESTS(TEST(an_expression_takes_the_place_of_what_ends_there),
      TEST(a_machine_that_writes_once_takes_no_places))
