/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy nests: which nodes share loops, over which axes, and where every value lives; and that
 * a nest given from outside is checked. Graphs and nests are texts. */
#include "support/texts.h"

#include <stdlib.h>
#include <string.h>

#include "dump/text.h"
#include "nest/nest.h"
#include "nest/plan.h"
#include "nest/text.h"
#include "nest/verify.h"

typedef struct Case {
    Ctx ctx;
    Graph *g;
    Nest *nest;
} Case;

static const Machine machine = {
    .n_levels = 1, .level = {{.name = "cache", .capacity = 512 << 10}}, .open_extents = true};

static Case *case_new(const char *lines)
{
    Case *c = calloc(1, sizeof *c);
    ctx_init(&c->ctx);
    c->g = graph_of_lines(&c->ctx, "binary", lines);
    c->nest = nest_greedy(&c->ctx, &c->ctx.arena, c->g, &machine);
    assert_true(nest_verify(&c->ctx, c->nest, "test"));
    return c;
}

static void case_free(Case *c)
{
    ctx_release(&c->ctx);
    free(c);
}

static const char *dumped(Case *c)
{
    Text out;
    text_init(&out, &c->ctx.arena);
    nest_dump(c->nest, &out);
    return out.at;
}

static void assert_nest(const char *lines, const char *expected)
{
    Case *c = case_new(lines);
    assert_string_equal(dumped(c), expected);
    case_free(c);
}

static const char mp2[] =
    "  dim o ~ 5\n  dim v ~ 19\n  dim x ~ 84\n"
    "  param in @B : f32[o,v,x]\n  param in @e : f32[o]\n"
    "  %0 = input @B : f32[o,v,x]\n  %1 = input @e : f32[o]\n"
    "  %2 = einsum %0[a,b,c], %0[d,e,c] -> [a,b,d,e] : f32[o,v,o,v] as T\n"
    "  %3 = add %1[a], %1[b] -> [a,c,b,d] : f32[o,v,o,v] as D\n"
    "  %4 = sub %2[a,b,c,d], %2[a,d,c,b] -> [a,b,c,d] : f32[o,v,o,v]\n"
    "  %5 = div %4[a,b,c,d], %3[a,b,c,d] -> [a,b,c,d] : f32[o,v,o,v]\n"
    "  %6 = reduce.sum %5[a,b,c,d] -> [] : f64[]\n  result @E = %6\n";

static void a_transposed_use_leaves_the_other_indices_as_axes(void **state)
{
    assert_nest(mp2, "nest {\n"
                     "  axis i [%2[a], %6[a]] ; o\n"
                     "  axis j [%2[d], %6[c]] ; o\n"
                     "  for i step 8 {\n"
                     "    for j step 8 {\n"
                     "      %2 tile ; T: [8,v,8,v], 36100 bytes\n"
                     "      %6 result 0\n"
                     "    }\n"
                     "  }\n"
                     "}\n");
}

static void a_chain_of_contractions_shares_its_outer_loops(void **state)
{
    assert_nest(
        "  dim o ~ 5\n  dim v ~ 19\n  dim n ~ 24\n  dim x ~ 84\n"
        "  param in @E : f64[n,n,x]\n  param in @Co : f64[n,o]\n  param in @Cv : f64[n,v]\n"
        "  %0 = input @E : f64[n,n,x]\n  %1 = input @Co : f64[n,o]\n"
        "  %2 = input @Cv : f64[n,v]\n"
        "  %3 = einsum %1[a,b], %0[a,c,d] -> [b,c,d] : f64[o,n,x] as H\n"
        "  %4 = einsum %2[a,b], %3[c,a,d] -> [c,b,d] : f64[o,v,x]\n"
        "  result @B = %4\n",
        "nest {\n"
        "  axis i [%3[b], %4[c]] ; o\n"
        "  axis j [%3[d], %4[d]] ; x\n"
        "  for i step 8 parallel {\n"
        "    for j step 64 {\n"
        "      %3 tile ; H: [8,n,64], 61440 bytes\n"
        "      %4 result 0\n"
        "    }\n"
        "  }\n"
        "}\n");
}

static void what_is_reduced_before_it_is_read_is_no_axis(void **state)
{
    /* softmax: the row sum is complete only after the row */
    assert_nest("  dim q ~ 8\n  dim k ~ 8\n  param in @S : f32[q,k]\n"
                "  %0 = input @S : f32[q,k]\n"
                "  %1 = reduce.sum %0[a,b] -> [a] : f32[q]\n"
                "  %2 = div %0[a,b], %1[a] -> [a,b] : f32[q,k]\n  result @P = %2\n",
                "nest {\n"
                "  axis i [%1[a], %2[a]] ; q\n"
                "  for i step 8 parallel {\n"
                "    %1 tile ; [8], 32 bytes\n"
                "    %2 result 0\n"
                "  }\n"
                "}\n");
}

/* R[e] = A[a,b] B[b,c] C[c,d] D[d,e] in slices of b and d: %5 lacks b, %4 lacks d. */
static const char *chain_in_slices(Arena *arena, int b)
{
    return str_format(arena,
                      "  param in @A : f64[6,%d]\n  param in @B : f64[%d,6]\n"
                      "  param in @C : f64[6,5]\n  param in @D : f64[5,6]\n"
                      "  %%0 = input @A : f64[6,%d]\n  %%1 = input @B : f64[%d,6]\n"
                      "  %%2 = input @C : f64[6,5]\n  %%3 = input @D : f64[5,6]\n"
                      "  %%4 = einsum %%0[a,b], %%1[b,c] -> [b,c] : f64[%d,6]\n"
                      "  %%5 = einsum %%2[a,b], %%3[b,c] -> [a,b,c] : f64[6,5,6]\n"
                      "  %%6 = einsum %%4[a,b], %%5[b,c,d] -> [a,c,d] : f64[%d,5,6]\n"
                      "  %%7 = reduce.sum %%6[a,b,c] -> [c] : f64[6] slice [a,b]\n"
                      "  result @R = %%7\n",
                      b, b, b, b, b, b);
}

static void assert_slices(int b, const char *expected)
{
    Ctx ctx;
    ctx_init(&ctx);
    Case *c = case_new(chain_in_slices(&ctx.arena, b));
    assert_non_null(strstr(dumped(c), expected));
    case_free(c);
    ctx_release(&ctx);
}

static void slices_are_ordered_so_that_little_is_computed_again(void **state)
{
    /* the other order would compute %5, the dearer one, at every position of b */
    assert_slices(40, "  for i step 1 {\n"
                      "    %5 tile ; [6,6], 288 bytes\n"
                      "    for j step 1 {\n"
                      "      %4 tile again ; [6], 48 bytes\n"
                      "      %6 tile ; [6], 48 bytes\n"
                      "      %7 result 0\n"
                      "    }\n"
                      "  }\n"
                      "}\n");
}

static void what_is_small_enough_is_kept_whole_before_the_slices(void **state)
{
    assert_slices(4, "  %4 tile ; [4,6], 192 bytes\n"
                     "  for i step 1 {\n"
                     "    %5 tile ; [6,6], 288 bytes\n"
                     "    for j step 1 {\n"
                     "      %6 tile ; [6], 48 bytes\n"
                     "      %7 result 0\n"
                     "    }\n"
                     "  }\n"
                     "}\n");
}

static void a_dear_expression_read_twice_is_stored(void **state)
{
    Case *c = case_new(
        "  dim n ~ 8\n  param in @A : f64[n]\n  %0 = input @A : f64[n]\n"
        "  %1 = exp %0[a] -> [a] : f64[n]\n  %2 = neg %0[a] -> [a] : f64[n]\n"
        "  %3 = reduce.sum %1[a] -> [] : f64[]\n  %4 = reduce.max %1[a] -> [] : f64[]\n"
        "  %5 = reduce.sum %2[a] -> [] : f64[]\n  %6 = reduce.max %2[a] -> [] : f64[]\n"
        "  result @s = %3\n  result @t = %4\n  result @u = %5\n  result @v = %6\n");
    assert_true(residence_is_stored(c->nest->values[1].residence));
    assert_int_equal(c->nest->values[2].residence, RESIDE_INLINE);
    case_free(c);
}

static void a_parameter_is_updated_in_place_only_when_nothing_else_reads_it(void **state)
{
    Case *c = case_new("  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
                       "  %1 = add %0[a,b], %0[a,b] -> [a,b] : f64[n,n]\n  update @C = %1\n");
    assert_int_equal(c->nest->values[1].residence, RESIDE_RESULT);
    case_free(c);
    c = case_new("  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
                 "  %1 = add %0[a,b], %0[b,a] -> [a,b] : f64[n,n]\n  update @C = %1\n");
    assert_int_equal(c->nest->values[1].residence, RESIDE_WORKSPACE);
    case_free(c);
    c = case_new(
        "  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
        "  %1 = neg %0[a,b] -> [a,b] : f64[n,n]\n  update @C = %1\n  result @old = %0\n");
    assert_int_equal(c->nest->values[1].residence, RESIDE_WORKSPACE);
    case_free(c);
}

static void nests_print_read_and_print_the_same(void **state)
{
    Case *c = case_new(mp2);
    const char *text = dumped(c);
    uint32_t source = source_add(&c->ctx.sources, "p", str_from(text), (Span){0});
    DumpTree *tree = dump_tree_read(&c->ctx, &c->ctx.arena, source);
    assert_non_null(tree);
    Nest *nest = nest_read(&c->ctx, &c->ctx.arena, c->g, tree->line[0]);
    assert_non_null(nest);
    Text again;
    text_init(&again, &c->ctx.arena);
    nest_dump(nest, &again);
    assert_string_equal(again.at, text);
    case_free(c);
}

/* Replaces `from` by `to` in the nest of mp2; reading it must be refused with a message
 * that holds `why`. */
static void assert_refused(const char *from, const char *to, const char *why)
{
    Case *c = case_new(mp2);
    const char *text = dumped(c);
    const char *at = strstr(text, from);
    assert_non_null(at);
    const char *broken =
        str_format(&c->ctx.arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    uint32_t source = source_add(&c->ctx.sources, "p", str_from(broken), (Span){0});
    DumpTree *tree = dump_tree_read(&c->ctx, &c->ctx.arena, source);
    assert_non_null(tree);
    assert_null(nest_read(&c->ctx, &c->ctx.arena, c->g, tree->line[0]));
    assert_int_equal(c->ctx.diags.list.n, 1);
    const char *message = c->ctx.diags.list.at[0]->message;
    if (strstr(message, why) == NULL) {
        print_error("'%s' is not in '%s'\n", why, message);
    }
    assert_non_null(strstr(message, why));
    case_free(c);
}

static void a_nest_that_would_compute_something_else_is_refused(void **state)
{
    assert_refused("axis i [%2[a], %6[a]]", "axis i [%2[b], %6[b]]", "at other indices");
    assert_refused("axis i [%2[a], %6[a]]", "axis i [%2[b], %6[a]]", "another extent");
    assert_refused("axis j [%2[d], %6[c]]", "axis k [%2[d], %6[c]]", "no axis of this name");
    assert_refused("axis j [%2[d], %6[c]]", "axis j [%2[a], %6[c]]", "one index on two axes");
    assert_refused("axis i [%2[a], %6[a]]", "axis i [%2[a]]", "lacks the axis");
    assert_refused("axis i [%2[a], %6[a]]", "axis i [%6[a], %2[a]]", "ascending");
    assert_refused("for j step 8 {", "for j step 8 parallel {", "at the same time");
    assert_refused("for i step 8 {", "for i step 0 {", "by no tile");
    assert_refused("for j step 8 {", "for i step 3 {",
                   "does not divide the tile of the loop around it");
    assert_refused("%2 tile", "%2 tile again", "computed again and is not");
    assert_refused("%2 tile", "%2 register", "one of result, tile, workspace");
    assert_refused("%2 tile", "%2 result 0", "not its own");
    assert_refused("%2 tile", "%2 workspace", "shares a loop with it");
    assert_refused("      %2 tile ; T: [8,v,8,v], 36100 bytes\n", "", "has no leaf");
    assert_refused("      %6 result 0\n", "      %6 result 0\n      %6 result 0\n",
                   "two leaves");
    assert_refused("      %2 tile ; T: [8,v,8,v], 36100 bytes\n      %6 result 0\n",
                   "      %6 result 0\n      %2 tile\n", "before it is computed");
    assert_refused("%6[a]", "%77[a]", "a value of the graph");
    assert_refused("%6[a]", "%6[z]", "a label of that value");
}

/* mp2's nest three times, for sizes of v; `at` of these texts is replaced by `to`. */
static Nest *read_sizes(Case *c, const char *from, const char *to)
{
    const char *body = strchr(dumped(c), '\n') + 1;
    Arena *a = &c->ctx.arena;
    body = str_format(a, "%.*s}\n", (int)(strrchr(body, '}') - body), body);
    const char *text = str_format(a,
                                  "nest {\n  when v < 10 ~ 7 {\n%s  when 9 < v < 40 ~ 19 {\n%s"
                                  "  when 39 < v ~ 400 {\n%s}\n",
                                  body, body, body);
    const char *at = strstr(text, from);
    assert_non_null(at);
    text = str_format(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    uint32_t source = source_add(&c->ctx.sources, "p", str_from(text), (Span){0});
    DumpTree *tree = dump_tree_read(&c->ctx, a, source);
    assert_non_null(tree);
    return nest_read(&c->ctx, a, c->g, tree->line[0]);
}

static void a_kernel_may_have_a_nest_for_each_of_some_sizes(void **state)
{
    Case *c = case_new(mp2);
    Nest *nest = read_sizes(c, "", "");
    assert_non_null(nest);
    assert_int_equal(nest->n_sizes, 3);
    assert_ptr_equal(nest->sizes[1].nest, nest);
    assert_ptr_equal(nest->graph, c->g);
    /* bytes are for the size that each is made for: [8,v,8,v] of ... */
    assert_int_equal(nest->sizes[0].nest->values[2].bytes, 100 * 7 * 7);
    assert_int_equal(nest->values[2].bytes, 100 * 19 * 19);
    assert_int_equal(nest->sizes[2].nest->values[2].bytes, 100 * 400 * 400);
    Text once, again;
    text_init(&once, &c->ctx.arena);
    text_init(&again, &c->ctx.arena);
    nest_dump(nest, &once);
    uint32_t source = source_add(&c->ctx.sources, "p", text_str(&once), (Span){0});
    DumpTree *tree = dump_tree_read(&c->ctx, &c->ctx.arena, source);
    nest_dump(nest_read(&c->ctx, &c->ctx.arena, c->g, tree->line[0]), &again);
    assert_string_equal(once.at, again.at);
    case_free(c);
}

static void nests_whose_sizes_overlap_or_leave_a_gap_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *why;
    } rows[] = {
        {"when v < 10", "when v < 11", "two tests hold for one size"},
        {"when v < 10", "when v < 9", "there is a size for which no test holds"},
        {"when v < 10", "when 1 < v < 10", "there is a size for which no test holds"},
        {"when 39 < v ~", "when 39 < v < 500 ~", "there is a size for which no test holds"},
        {"when 39 < v", "when 39 < o", "two dims"},
        {"when v < 10", "when w < 10", "no dim 'w'"},
        {"~ 7", "~ 10", "is made for one of them"},
        {"~ 7", "~ 0", "is made for one of them"},
        {"~ 19", "~ 20", "none of the nests is for the typical size"},
        {"~ 7", "", "'~'"},
        {"~ 7", "~ v", "a typical size"},
        {"%2 tile", "%2 workspace", "shares a loop with it"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        Case *c = case_new(mp2);
        assert_null(read_sizes(c, rows[k].from, rows[k].to));
        assert_int_equal(c->ctx.diags.list.n, 1);
        if (strstr(c->ctx.diags.list.at[0]->message, rows[k].why) == NULL) {
            fail_msg("'%s' is not in '%s'", rows[k].why, c->ctx.diags.list.at[0]->message);
        }
        case_free(c);
    }
}

/* What no text gives: a nest that is made for another size than it says, one inside another, or
 * of another graph. */
static void nests_for_sizes_that_they_are_not_made_for_are_refused(void **state)
{
    for (int fault = 0; fault < 4; fault++) {
        Case *c = case_new(mp2), *other = case_new(mp2);
        Nest *nest = read_sizes(c, "", "");
        NestSize *s = arena_copy(&c->ctx.arena, nest->sizes, 3 * sizeof *s);
        nest->sizes = s;
        if (fault == 0) {
            s[0].size = 6;
        } else if (fault == 1) {
            s[0].nest->n_sizes = 3;
            s[0].nest->sizes = s;
        } else if (fault == 2) {
            s[0].nest->graph = nest_graph_at(&other->ctx.arena, other->g, 1, 7);
        } else {
            s[1].nest = arena_copy(&c->ctx.arena, nest, sizeof *nest);
            s[1].nest->n_sizes = 0;
        }
        assert_false(nest_verify(&c->ctx, nest, "test"));
        case_free(c);
        case_free(other);
    }
}

TESTS(TEST(a_transposed_use_leaves_the_other_indices_as_axes),
      TEST(a_chain_of_contractions_shares_its_outer_loops),
      TEST(what_is_reduced_before_it_is_read_is_no_axis),
      TEST(slices_are_ordered_so_that_little_is_computed_again),
      TEST(what_is_small_enough_is_kept_whole_before_the_slices),
      TEST(a_dear_expression_read_twice_is_stored),
      TEST(a_parameter_is_updated_in_place_only_when_nothing_else_reads_it),
      TEST(nests_print_read_and_print_the_same),
      TEST(a_nest_that_would_compute_something_else_is_refused),
      TEST(a_kernel_may_have_a_nest_for_each_of_some_sizes),
      TEST(nests_whose_sizes_overlap_or_leave_a_gap_are_refused),
      TEST(nests_for_sizes_that_they_are_not_made_for_are_refused))
