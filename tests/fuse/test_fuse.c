/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: which nodes share a group, on which axes, and where every value lives; and that a
 * partition given from outside is checked. Graphs and partitions are texts. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "fuse/fuse.h"
#include "dump/text.h"

typedef struct Case {
    Ctx ctx;
    Graph *g;
    Partition *p;
} Case;

static const Machine machine = {
    .space = {[SPACE_TILE] = {.name = "cache", .capacity = 512 << 10}}, .open_extents = true};

static Case *case_new(const char *lines)
{
    Case *c = calloc(1, sizeof *c);
    ctx_init(&c->ctx);
    const char *text = str_format(
        &c->ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s}\n", lines);
    Module *m =
        module_read(&c->ctx, source_add(&c->ctx.sources, "t", str_from(text), (Span){0}));
    if (m == NULL) {
        Text out;
        text_init(&out, &c->ctx.arena);
        diags_render(&c->ctx.diags, &out, false);
        print_error("%s", out.at);
    }
    assert_non_null(m);
    c->g = m->graphs.at[0];
    c->p = fuse_greedy(&c->ctx, &c->ctx.arena, c->g, &machine);
    assert_true(fuse_verify(&c->ctx, c->p, "test"));
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
    fuse_dump(c->p, &out);
    return out.at;
}

static void assert_fused(const char *lines, const char *expected)
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
    (void)state;
    assert_fused(mp2, "partition {\n"
                      "  group 0 [%2, %6] {\n"
                      "    axis [a,a] ; o, reduced\n"
                      "    axis [d,c] ; o, reduced\n"
                      "  }\n"
                      "  value %0 argument\n"
                      "  value %1 argument\n"
                      "  value %2 tile\n"
                      "  value %3 register\n"
                      "  value %4 register\n"
                      "  value %5 register\n"
                      "  value %6 result 0\n"
                      "}\n");
}

static void a_chain_of_contractions_shares_its_outer_loops(void **state)
{
    (void)state;
    assert_fused(
        "  dim o ~ 5\n  dim v ~ 19\n  dim n ~ 24\n  dim x ~ 84\n"
        "  param in @E : f64[n,n,x]\n  param in @Co : f64[n,o]\n  param in @Cv : f64[n,v]\n"
        "  %0 = input @E : f64[n,n,x]\n  %1 = input @Co : f64[n,o]\n"
        "  %2 = input @Cv : f64[n,v]\n"
        "  %3 = einsum %1[a,b], %0[a,c,d] -> [b,c,d] : f64[o,n,x] as H\n"
        "  %4 = einsum %2[a,b], %3[c,a,d] -> [c,b,d] : f64[o,v,x]\n"
        "  result @B = %4\n",
        "partition {\n"
        "  group 0 [%3, %4] {\n"
        "    axis [b,c] ; o\n"
        "    axis [c,a] ; n, reduced\n"
        "    axis [d,d] ; x\n"
        "  }\n"
        "  value %0 argument\n"
        "  value %1 argument\n"
        "  value %2 argument\n"
        "  value %3 tile\n"
        "  value %4 result 0\n"
        "}\n");
}

static void what_is_reduced_before_it_is_read_is_no_axis(void **state)
{
    (void)state;
    /* softmax: the row sum is complete only after the row */
    assert_fused("  dim q ~ 8\n  dim k ~ 8\n  param in @S : f32[q,k]\n"
                 "  %0 = input @S : f32[q,k]\n"
                 "  %1 = reduce.sum %0[a,b] -> [a] : f32[q]\n"
                 "  %2 = div %0[a,b], %1[a] -> [a,b] : f32[q,k]\n  result @P = %2\n",
                 "partition {\n"
                 "  group 0 [%1, %2] {\n"
                 "    axis [a,a] ; q\n"
                 "  }\n"
                 "  value %0 argument\n"
                 "  value %1 tile\n"
                 "  value %2 result 0\n"
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

static void slices_are_ordered_so_that_little_is_computed_again(void **state)
{
    (void)state;
    static const char expected[] = "  group 0 [%4, %5, %6, %7] {\n"
                                   "    axis [_,b,c,b] ; 5, reduced\n"
                                   "    axis [b,_,a,a] ; 40, reduced\n";
    Ctx ctx;
    ctx_init(&ctx);
    /* the other order would compute %5, the dearer one, at every position of b */
    Case *c = case_new(chain_in_slices(&ctx.arena, 40));
    const char *at = strstr(dumped(c), "  group 0");
    assert_non_null(at);
    assert_memory_equal(at, expected, strlen(expected));
    case_free(c);
    ctx_release(&ctx);
}

static void what_is_small_enough_is_kept_whole_before_the_slices(void **state)
{
    (void)state;
    static const char expected[] = "  group 0 [%4] {\n"
                                   "    axis [a] ; 6, reduced\n"
                                   "    axis [b] ; 4\n"
                                   "    axis [c] ; 6\n"
                                   "  }\n"
                                   "  group 1 [%5, %6, %7] {\n"
                                   "    axis [b,c,b] ; 5, reduced\n"
                                   "    axis [_,a,a] ; 4, reduced\n";
    Ctx ctx;
    ctx_init(&ctx);
    Case *c = case_new(chain_in_slices(&ctx.arena, 4));
    const char *at = strstr(dumped(c), "  group 0");
    assert_non_null(at);
    assert_memory_equal(at, expected, strlen(expected));
    case_free(c);
    ctx_release(&ctx);
}

static void what_shares_no_loop_and_does_not_fit_is_a_spill(void **state)
{
    (void)state;
    Case *c = case_new("  dim n ~ 1000\n  param in @A : f64[n,n]\n  %0 = input @A : f64[n,n]\n"
                       "  %1 = einsum %0[a,b], %0[b,c] -> [a,c] : f64[n,n] as S\n"
                       "  %2 = einsum %1[a,b], %1[b,a] -> [] : f64[]\n"
                       "  %3 = einsum %1[a,b], %1[c,a] -> [c,b] : f64[n,n]\n"
                       "  result @x = %2\n  result @y = %3\n");
    assert_int_equal(c->p->residence[1], RESIDE_WORKSPACE);
    assert_non_null(c->p->reason[1]);
    fuse_warn_spills(&c->ctx, c->p);
    assert_int_equal(c->ctx.diags.list.n, 1);
    assert_int_equal(c->ctx.diags.list.at[0]->code, W_SPILL);
    assert_string_equal(c->ctx.diags.list.at[0]->message,
                        "'S' goes to memory: 8000000 bytes for the typical extents");
    case_free(c);
}

static void a_dear_expression_read_twice_is_stored(void **state)
{
    (void)state;
    Case *c = case_new(
        "  dim n ~ 8\n  param in @A : f64[n]\n  %0 = input @A : f64[n]\n"
        "  %1 = exp %0[a] -> [a] : f64[n]\n  %2 = neg %0[a] -> [a] : f64[n]\n"
        "  %3 = reduce.sum %1[a] -> [] : f64[]\n  %4 = reduce.max %1[a] -> [] : f64[]\n"
        "  %5 = reduce.sum %2[a] -> [] : f64[]\n  %6 = reduce.max %2[a] -> [] : f64[]\n"
        "  result @s = %3\n  result @t = %4\n  result @u = %5\n  result @v = %6\n");
    assert_int_equal(c->p->residence[1], RESIDE_TILE);
    assert_int_equal(c->p->residence[2], RESIDE_INLINE);
    case_free(c);
}

static void a_parameter_is_updated_in_place_only_when_nothing_else_reads_it(void **state)
{
    (void)state;
    Case *c = case_new("  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
                       "  %1 = add %0[a,b], %0[a,b] -> [a,b] : f64[n,n]\n  update @C = %1\n");
    assert_int_equal(c->p->residence[1], RESIDE_RESULT);
    case_free(c);
    c = case_new("  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
                 "  %1 = add %0[a,b], %0[b,a] -> [a,b] : f64[n,n]\n  update @C = %1\n");
    assert_int_equal(c->p->residence[1], RESIDE_WORKSPACE);
    case_free(c);
    c = case_new(
        "  dim n ~ 8\n  param inout @C : f64[n,n]\n  %0 = input @C : f64[n,n]\n"
        "  %1 = neg %0[a,b] -> [a,b] : f64[n,n]\n  update @C = %1\n  result @old = %0\n");
    assert_int_equal(c->p->residence[1], RESIDE_WORKSPACE);
    case_free(c);
}

static void partitions_print_read_and_print_the_same(void **state)
{
    (void)state;
    Case *c = case_new(mp2);
    const char *text = dumped(c);
    uint32_t source = source_add(&c->ctx.sources, "p", str_from(text), (Span){0});
    DumpTree *tree = dump_tree_read(&c->ctx, &c->ctx.arena, source);
    assert_non_null(tree);
    Partition *p = fuse_read(&c->ctx, &c->ctx.arena, c->g, tree->line[0]);
    assert_non_null(p);
    Text again;
    text_init(&again, &c->ctx.arena);
    fuse_dump(p, &again);
    assert_string_equal(again.at, text);
    case_free(c);
}

/* Replaces `from` by `to` in the partition of mp2; reading it must be refused with a message
 * that holds `why`. */
static void assert_partition_refused(const char *from, const char *to, const char *why)
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
    assert_null(fuse_read(&c->ctx, &c->ctx.arena, c->g, tree->line[0]));
    assert_int_equal(c->ctx.diags.list.n, 1);
    const char *message = c->ctx.diags.list.at[0]->message;
    if (strstr(message, why) == NULL) {
        print_error("'%s' is not in '%s'\n", why, message);
    }
    assert_non_null(strstr(message, why));
    case_free(c);
}

static void a_partition_that_would_compute_something_else_is_refused(void **state)
{
    (void)state;
    assert_partition_refused("axis [a,a]", "axis [b,b]", "at other indices");
    assert_partition_refused("axis [a,a]", "axis [c,a]", "another extent");
    assert_partition_refused("axis [d,c]", "axis [a,a]", "one index on two axes");
    assert_partition_refused("[%2, %6]", "[%6, %2]", "lacks an axis");
    assert_partition_refused("%2 tile", "%2 register", "cannot stay in registers");
    assert_partition_refused("%2 tile", "%2 result 0", "not its own");
    assert_partition_refused("%5 register", "%5 tile", "without a group");
    assert_partition_refused("  value %2 tile\n", "", "or in a group and not stored");
    assert_partition_refused("%0 argument", "%0 tile", "is a parameter");
    assert_partition_refused(
        "group 0 [%2, %6] {\n    axis [a,a] ; o, reduced\n    axis [d,c] ; o, "
        "reduced\n  }\n",
        "group 0 [%2] {\n  }\n  group 1 [%6] {\n  }\n", "block of another group");
    assert_partition_refused("group 0 [%2, %6]", "group 1 [%2, %6]", "numbered from 0");
    assert_partition_refused("[%2, %6]", "[%2, %77]", "a value of the graph");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transposed_use_leaves_the_other_indices_as_axes),
        cmocka_unit_test(a_chain_of_contractions_shares_its_outer_loops),
        cmocka_unit_test(what_is_reduced_before_it_is_read_is_no_axis),
        cmocka_unit_test(slices_are_ordered_so_that_little_is_computed_again),
        cmocka_unit_test(what_is_small_enough_is_kept_whole_before_the_slices),
        cmocka_unit_test(what_shares_no_loop_and_does_not_fit_is_a_spill),
        cmocka_unit_test(a_dear_expression_read_twice_is_stored),
        cmocka_unit_test(a_parameter_is_updated_in_place_only_when_nothing_else_reads_it),
        cmocka_unit_test(partitions_print_read_and_print_the_same),
        cmocka_unit_test(a_partition_that_would_compute_something_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
