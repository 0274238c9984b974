/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions of one kernel planned together, in the graph: what is shared and factored, what
 * it costs then, and that the value is the same. Arguments are small integers: every order of
 * summation gives the same bits. */
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "path/apply.h"
#include "support/texts.h"

typedef struct Case {
    Ctx ctx;
    const Graph *before, *after;
    PathDecisions decisions;
} Case;

static const char params[] = "  param in @g : f64[3,3,4,4]\n  param in @w : f64[3,4,4,3]\n"
                             "  param in @t : f64[4,4,3,3]\n  param in @z : f64[4,4,3,3]\n"
                             "  param in @v : f64[4,4]\n"
                             "  %0 = input @g : f64[3,3,4,4]\n  %1 = input @w : f64[3,4,4,3]\n"
                             "  %2 = input @t : f64[4,4,3,3]\n  %3 = input @z : f64[4,4,3,3]\n"
                             "  %4 = input @v : f64[4,4]\n";

static Case *case_new(const char *lines, const PathControl *control)
{
    Case *c = calloc(1, sizeof *c);
    ctx_init(&c->ctx);
    c->before =
        graph_of_lines(&c->ctx, "tensor", str_format(&c->ctx.arena, "%s%s", params, lines));
    c->after = path_apply(&c->ctx, &c->ctx.arena, c->before, control, &c->decisions);
    assert_non_null(c->after);
    assert_true(graph_verify(&c->ctx, c->after, "path"));
    return c;
}

static Tensor *evaluate(Case *c, const Graph *g)
{
    Tensor *args[8], *result = NULL;
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        int64_t extent[8];
        for (uint32_t d = 0; d < p->rank; d++) {
            extent[d] = p->shape[d].n;
        }
        args[k] = tensor_new(&c->ctx, &c->ctx.arena, p->dtype, p->rank, extent);
        Rng rng = {k + 1};
        for (int64_t i = 0; i < args[k]->count; i++) {
            tensor_set(args[k], i, number_real(p->dtype, (double)rng_below(&rng, 7) - 3.0));
        }
    }
    assert_true(graph_eval(&c->ctx, &c->ctx.arena, g, NULL, args, &result));
    return result;
}

static int64_t multiply_adds(const Graph *g)
{
    int64_t sum = 0;
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        sum += node_multiply_adds(graph_node(g, k), NULL);
    }
    return sum;
}

/* The value is the same; the work is as said. */
static void expect(const char *lines, int64_t work, const char *report)
{
    PathControl control = {.options = {.effort = 1}};
    Case *c = case_new(lines, &control);
    Tensor *x = evaluate(c, c->before), *y = evaluate(c, c->after);
    assert_int_equal(x->count, y->count);
    for (int64_t i = 0; i < x->count; i++) {
        assert_true(tensor_get(x, i).re == tensor_get(y, i).re);
    }
    assert_int_equal(multiply_adds(c->after), work);
    Text out;
    text_init(&out, &c->ctx.arena);
    for (uint32_t k = 0; k < c->decisions.together.n; k++) {
        const PathTogether *t = &c->decisions.together.at[k];
        for (uint32_t i = 0; i < t->shared.n; i++) {
            text_printf(&out, "once %s\n", t->shared.at[i]);
        }
        for (uint32_t i = 0; i < t->factored.n; i++) {
            text_printf(&out, "sum %s\n", t->factored.at[i]);
        }
    }
    assert_string_equal(out.at == NULL ? "" : out.at, report);
    ctx_release(&c->ctx);
    free(c);
}

static void test_terms_with_one_factor_are_added_before_it(void **state)
{
    expect("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %6 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %7 = add %5[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %7\n",
           64 * 27, "sum (z + t) * t\n");
}

static void test_signs_factors_and_orders_of_axes_are_kept(void **state)
{
    /* R = 3 (w t)[abij] - (g t t)[abij] - 3 (w t)[baij] + (g t t)[baij] + z */
    expect(
        "  %5 = einsum %1[a,b,c,d], %2[c,e,f,a] -> [b,e,f,d] : f64[4,4,3,3] as X\n"
        "  %6 = einsum %0[a,b,c,d], %2[d,e,b,f], %2[c,g,h,a] -> [e,g,h,f] : f64[4,4,3,3] as Y\n"
        "  %7 = const 3.0 : f64[]\n"
        "  %8 = mul %5[a,b,c,d], %7[] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  %9 = sub %8[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  %10 = mul %7[], %5[a,b,c,d] -> [b,a,c,d] : f64[4,4,3,3]\n"
        "  %11 = sub %10[a,b,c,d], %6[b,a,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  %12 = sub %9[a,b,c,d], %11[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  %13 = sub %3[a,b,c,d], %12[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  %14 = neg %13[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
        "  result @R = %14\n",
        2 * 64 * 27, "sum (-3 * w + t * g) * t\n");
}

static void test_orders_of_unequal_factors_do_not_round(void **state)
{
    /* 3 and 7, whose quotient is no number: 3 x + 7 x' + 6 y + 14 y', x' and y' with two axes
     * exchanged */
    expect("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %6 = einsum %3[b,e,c,f], %2[a,b,c,d] -> [e,a,d,f] : f64[4,4,3,3]\n"
           "  %7 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %8 = const 3.0 : f64[]\n"
           "  %9 = const 7.0 : f64[]\n"
           "  %10 = const 6.0 : f64[]\n"
           "  %11 = const 14.0 : f64[]\n"
           "  %12 = mul %5[a,b,c,d], %8[] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %13 = mul %6[a,b,c,d], %9[] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %14 = mul %7[a,b,c,d], %10[] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %15 = mul %7[a,b,c,d], %11[] -> [b,a,c,d] : f64[4,4,3,3]\n"
           "  %16 = add %12[a,b,c,d], %13[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %17 = add %14[a,b,c,d], %15[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %18 = add %16[a,b,c,d], %17[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %18\n",
           64 * 27, "sum (2 * z + 4 * t) * t\n");
}

static void test_a_contraction_that_others_read_is_left_as_it_is(void **state)
{
    expect("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %6 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %7 = add %5[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %8 = mul %7[a,b,c,d], %5[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %8\n",
           2 * 64 * 27, "");
}

static void test_what_is_not_linear_is_added_as_it_is(void **state)
{
    /* also where it reads one operand, or two as a sum does */
    expect("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %6 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %7 = abs %3[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %8 = max %2[a,b,c,d], %3[b,a,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %9 = mul %2[a,b,c,d], %3[a,b,d,c] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %10 = add %5[a,b,c,d], %7[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %11 = sub %10[a,b,c,d], %8[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %12 = add %11[a,b,c,d], %9[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %13 = add %12[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %13\n",
           64 * 27, "sum (z + t) * t\n");
}

static void test_two_factors_in_one_sum_do_not_meet(void **state)
{
    expect("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %6 = einsum %3[a,b,c,d], %4[b,e] -> [a,e,c,d] : f64[4,4,3,3]\n"
           "  %7 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
           "  %8 = einsum %1[c,a,b,d], %4[b,e] -> [a,e,c,d] : f64[4,4,3,3]\n"
           "  %9 = add %5[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %10 = sub %9[a,b,c,d], %7[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %11 = sub %10[a,b,c,d], %8[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %11\n",
           64 * 27 + 576, "sum (z - t) * t\nsum (z - w) * v\n");
}

static void test_sums_nest(void **state)
{
    /* z v v + t v v + w v = ((z + t) v + w) v */
    expect("  %5 = einsum %3[a,b,c,d], %4[b,e], %4[e,f] -> [a,f,c,d] : f64[4,4,3,3]\n"
           "  %6 = einsum %2[a,b,c,d], %4[b,e], %4[e,f] -> [a,f,c,d] : f64[4,4,3,3]\n"
           "  %7 = einsum %1[c,a,e,d], %4[e,f] -> [a,f,c,d] : f64[4,4,3,3]\n"
           "  %8 = add %5[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  %9 = add %8[a,b,c,d], %7[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
           "  result @R = %9\n",
           2 * 576, "sum (z * v + t * v + w) * v\nsum (z + t) * v\n");
}

static void test_equal_intermediates_of_several_results_are_made_once(void **state)
{
    expect("  %5 = einsum %3[a,b,c,d], %4[b,e], %2[a,f,c,d] -> [e,f] : f64[4,4]\n"
           "  %6 = einsum %3[a,b,c,d], %4[e,b], %2[a,f,c,d] -> [e,f] : f64[4,4]\n"
           "  %7 = mul %5[a,b], %6[a,b] -> [a,b] : f64[4,4]\n"
           "  result @R = %7\n",
           576 + 2 * 64, "once t * z\n");
}

static void test_factoring_can_be_turned_off(void **state)
{
    PathControl control = {.options = {.effort = 1}, .no_factor = true};
    Case *c = case_new("  %5 = einsum %2[a,b,c,d], %3[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
                       "  %6 = einsum %2[a,b,c,d], %2[b,e,c,f] -> [a,e,d,f] : f64[4,4,3,3]\n"
                       "  %7 = add %5[a,b,c,d], %6[a,b,c,d] -> [a,b,c,d] : f64[4,4,3,3]\n"
                       "  result @R = %7\n",
                       &control);
    assert_int_equal(multiply_adds(c->after), 2 * 64 * 27);
    ctx_release(&c->ctx);
    free(c);
}

TESTS(TEST(test_terms_with_one_factor_are_added_before_it),
      TEST(test_signs_factors_and_orders_of_axes_are_kept),
      TEST(test_orders_of_unequal_factors_do_not_round),
      TEST(test_a_contraction_that_others_read_is_left_as_it_is),
      TEST(test_what_is_not_linear_is_added_as_it_is),
      TEST(test_two_factors_in_one_sum_do_not_meet), TEST(test_sums_nest),
      TEST(test_equal_intermediates_of_several_results_are_made_once),
      TEST(test_factoring_can_be_turned_off))
