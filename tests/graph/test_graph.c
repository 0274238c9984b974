/* SPDX-License-Identifier: Apache-2.0 */
/* The builder of graphs: equal nodes are one, labels are canonical, copies keep everything; large graphs stay quick. */
#include "graph/support.h"

#include <stdlib.h>
#include <string.h>

static const Span nowhere = {0, 0, 0};

static Graph *matrix_graph(Bench *b)
{
    Graph *g = graph_new(&b->ctx.arena, sym_cstr(&b->ctx.syms, "k"));
    static const Dim shape[2] = {{-1, 3}, {-1, 3}};
    Param p = {.name = sym_cstr(&b->ctx.syms, "A"),
               .role = PARAM_IN,
               .dtype = DTYPE_F64,
               .rank = 2,
               .shape = shape};
    vec_push(g->arena, &g->params, p);
    assert_int_equal(graph_input(g, 0, nowhere), 0);
    return g;
}

static NodeRef einsum2(Graph *g, NodeRef x, NodeRef y, const int32_t *labels,
                       const int32_t *out, uint32_t rank)
{
    Index index[4];
    for (int k = 0; k < 4; k++) {
        index[k] = (Index){.label = labels[k]};
    }
    NodeRef operand[2] = {x, y};
    Access access[2] = {{2, index}, {2, index + 2}};
    NodeSpec s = {.op = OP_EINSUM,
                  .dtype = DTYPE_F64,
                  .n_operands = 2,
                  .operand = operand,
                  .access = access,
                  .rank = rank,
                  .out = out};
    return graph_add(g, &s);
}

static void equal_nodes_are_one_whatever_their_labels_are_called(void **state)
{
    Bench *b = bench_new();
    Graph *g = matrix_graph(b);
    NodeRef x = einsum2(g, 0, 0, (int32_t[]){0, 1, 1, 2}, (int32_t[]){0, 2}, 2);
    NodeRef y = einsum2(g, 0, 0, (int32_t[]){9, 4, 4, 100000}, (int32_t[]){9, 100000}, 2);
    NodeRef z = einsum2(g, 0, 0, (int32_t[]){0, 1, 1, 2}, (int32_t[]){2, 0}, 2);
    assert_int_equal(x, y);
    assert_int_not_equal(x, z);
    assert_int_equal(graph_node(g, x)->n_labels, 3);
    assert_int_equal(graph_node(g, z)->out[0], 2);
    assert_int_equal(g->nodes.n, 3);
    assert_int_equal(graph_input(g, 0, nowhere), 0);
    bench_free(b);
}

static void constants_are_equal_by_value_and_sign(void **state)
{
    Bench *b = bench_new();
    Graph *g = matrix_graph(b);
    NodeRef zero = graph_const(g, number_real(DTYPE_F64, 0), nowhere);
    assert_int_equal(graph_const(g, number_real(DTYPE_F64, 0), nowhere), zero);
    assert_int_not_equal(graph_const(g, number_real(DTYPE_F64, -0.0), nowhere), zero);
    assert_int_not_equal(graph_const(g, number_real(DTYPE_F32, 0), nowhere), zero);
    NodeRef nan = graph_const(g, (Number){DTYPE_F64, 5, strtod("nan", NULL), 7}, nowhere);
    assert_int_equal(graph_const(g, (Number){DTYPE_F64, 0, -strtod("nan", NULL), 0}, nowhere),
                     nan);
    bench_free(b);
}

static void the_first_name_and_any_permission_to_spill_are_kept(void **state)
{
    Bench *b = bench_new();
    Graph *g = matrix_graph(b);
    Index ab[2] = {{0, 0}, {1, 0}};
    NodeRef operand = 0;
    Access access = {2, ab};
    NodeSpec s = {.op = OP_NEG,
                  .dtype = DTYPE_F64,
                  .n_operands = 1,
                  .operand = &operand,
                  .access = &access,
                  .rank = 2,
                  .out = (int32_t[]){0, 1}};
    NodeRef first = graph_add(g, &s);
    s.name = sym_cstr(&b->ctx.syms, "T");
    s.allow_spill = true;
    assert_int_equal(graph_add(g, &s), first);
    s.name = sym_cstr(&b->ctx.syms, "U");
    s.allow_spill = false;
    assert_int_equal(graph_add(g, &s), first);
    assert_string_equal(graph_node(g, first)->name->text, "T");
    assert_true(graph_node(g, first)->allow_spill);
    bench_free(b);
}

static void pruning_keeps_what_results_need_and_nothing_else(void **state)
{
    Bench *b = bench_new();
    Graph *g = bench_graph(b, "dim n ~ 9\nparam in @A : f64[n]\nparam in @B : f64[n]\n"
                              "%0 = input @B : f64[n]\n%1 = input @A : f64[n]\n"
                              "%2 = exp %0[a] -> [a] : f64[n]\n"
                              "%3 = neg %1[a] -> [a] : f64[n] spill as T\nresult @R = %3");
    Graph *p = graph_prune(&b->ctx.arena, g);
    assert_true(graph_verify(&b->ctx, p, "prune"));
    assert_string_equal(bench_dump(b, p), "kernel k {\n  form tensor\n  dim n ~ 9\n"
                                          "  param in @A : f64[n]\n  param in @B : f64[n]\n"
                                          "  %0 = input @A : f64[n]\n"
                                          "  %1 = neg %0[a] -> [a] : f64[n] spill as T\n"
                                          "  result @R = %1\n}\n");
    bench_free(b);
}

static void a_product_has_a_cost(void **state)
{
    Bench *b = bench_new();
    const Graph *g = bench_graph(
        b, "dim n ~ 9\nparam in @A : f64[2,3,4,5,n]\n%0 = input @A : f64[2,3,4,5,n]\n"
           "%1 = einsum %0[a,b,c,d,e], %0[a,f,c,g,e] -> [f,a,b,e] : f64[3,2,3,n]\n"
           "%2 = reduce.sum %0[a,b,c,d,e] -> [] : f64[]\nresult @R = %1\nresult @S = %2");
    int64_t n = 10, zero = 0, huge = INT64_MAX / 2;
    assert_int_equal(node_multiply_adds(graph_node(g, 1), &n), 2 * 3 * 4 * 5 * 10 * 3 * 5);
    assert_int_equal(node_multiply_adds(graph_node(g, 1), &zero), 0);
    assert_int_equal(node_multiply_adds(graph_node(g, 1), &huge), INT64_MAX);
    assert_int_equal(node_multiply_adds(graph_node(g, 2), &n), 0);
    assert_true(node_reduces(graph_node(g, 1), 2));
    assert_false(node_reduces(graph_node(g, 1), 0));
    bench_free(b);
}

/* Quadratic work would not end within the test's time. */
static void large_graphs_and_long_products_stay_quick(void **state)
{
    enum { MANY = 40000 };
    Bench *b = bench_new();
    Text t;
    text_init(&t, &b->ctx.arena);
    text_put(&t, "param in @A : f64[2]\n%0 = input @A : f64[2]\n");
    for (int k = 1; k < MANY; k++) {
        text_printf(&t, "%%%d = exp %%%d[i] -> [i] : f64[2]\n", k, k - 1);
    }
    text_printf(&t, "%%%d = einsum ", MANY);
    for (int k = 0; k < MANY; k++) {
        text_printf(&t, "%s%%%d[x%d]", k == 0 ? "" : ", ", k, k);
    }
    text_printf(&t, " -> [x0] : f64[2]\nresult @R = %%%d", MANY);
    const Graph *g = bench_graph(b, t.at);
    assert_int_equal(g->nodes.n, MANY + 1);
    assert_int_equal(graph_node(g, MANY)->n_labels, MANY);
    Graph *p = graph_prune(&b->ctx.arena, g);
    assert_string_equal(bench_dump(b, p), bench_dump(b, g));
    bench_free(b);
}

/* What labels of node `n` are called, joined by blanks. */
static const char *named(Bench *b, const Graph *g, NodeRef n)
{
    GraphNames names = graph_names(&b->ctx.arena, g);
    Text t;
    text_init(&t, &b->ctx.arena);
    for (uint32_t l = 0; l < graph_node(g, n)->n_labels; l++) {
        text_printf(&t, "%s%s", l == 0 ? "" : " ", names[n][l]);
    }
    return t.at;
}

static void labels_are_called_as_the_program_calls_them(void **state)
{
    Bench *b = bench_new();
    const Graph *g =
        bench_graph(b, "param in @A : f64[2,3]\n%0 = input @A : f64[2,3]\n"
                       "%1 = neg %0[a,b] -> [a,b] : f64[2,3]\n" /* from its reader */
                       "%2 = exp %1[a,b] -> [b,a] : f64[3,2] named [i,q]\n"
                       "%3 = log %2[a,b] -> [a,b] : f64[3,2]\n" /* from what it reads */
                       "%4 = mul %0[a,b], %0[a,c] -> [a,b,c] : f64[2,3,3] named "
                       "[k,b,b]\n" /* two of one name */
                       "%5 = mul %0[a,b], %0[a,c] -> [a,c,b] : f64[2,3,3] named "
                       "[_,a,_]\n" /* letters not in use */
                       "result @R = %3\nresult @S = %4\nresult @T = %5\nresult @U = "
                       "%2");
    assert_string_equal(named(b, g, 1), "i q");
    assert_string_equal(named(b, g, 2), "i q");
    assert_string_equal(named(b, g, 3), "q i");
    assert_string_equal(named(b, g, 4), "k b b'");
    assert_string_equal(named(b, g, 5), "b a c");
    assert_string_equal(node_names(&b->ctx.arena, graph_node(g, 1))[1], "b");
    bench_free(b);
}

static void names_do_not_tell_nodes_apart(void **state)
{
    Bench *b = bench_new();
    const Graph *one =
        bench_graph(b, "param in @A : f64[2]\n%0 = input @A : f64[2]\n"
                       "%1 = neg %0[a] -> [a] : f64[2] named [i]\nresult @R = %1");
    const Graph *other =
        bench_graph(b, "param in @A : f64[2]\n%0 = input @A : f64[2]\n"
                       "%1 = neg %0[a] -> [a] : f64[2] named [k]\nresult @R = %1");
    assert_true(node_hash(graph_node(one, 1)) == node_hash(graph_node(other, 1)));
    assert_true(node_equal(graph_node(one, 1), graph_node(other, 1)));
    assert_string_equal(graph_digest(&b->ctx.arena, one), graph_digest(&b->ctx.arena, other));
    Graph *g = graph_like(&b->ctx.arena, one);
    NodeRef map[2] = {graph_clone_node(g, one, 0, NULL), 0};
    map[1] = graph_clone_node(g, one, 1, map);
    assert_int_equal(graph_clone_node(g, other, 1, map), map[1]);
    assert_string_equal(graph_node(g, map[1])->label_name[0]->text, "i");
    bench_free(b);
}

static void json_holds_the_graph(void **state)
{
    Bench *b = bench_new();
    const Module *m = bench_module(
        b, "tdsl-dump graph 1\nsource \"a\\\"b.tdsl\"\nkernel k {\ndim n ~ 9\n"
           "param in @A : f64[n,2]\n%0 = input @A : f64[n,2]\n%1 = const -inf : f64[]\n"
           "%2 = const complex(1.0, nan) : c64[]\n%3 = extent n : f64[]\n%4 = const true : "
           "bool[]\n"
           "%5 = add %0[a,1], %1[] -> [a] : f64[n] as T\nresult @R = %5\n}\n");
    Text out;
    text_init(&out, &b->ctx.arena);
    module_dump_json(m, &out);
    assert_non_null(strstr(out.at, "\"source\": \"a\\\"b.tdsl\""));
    assert_non_null(strstr(out.at, "{\"id\": 5, \"op\": \"add\", \"dtype\": \"f64\", "
                                   "\"shape\": [\"n\"], \"name\": \"T\", \"operands\": "
                                   "[{\"id\": 0, \"index\": [\"a\", 1]}, "
                                   "{\"id\": 1, \"index\": []}], \"out\": [\"a\"]}"));
    assert_non_null(strstr(out.at, "\"value\": \"-inf\""));
    assert_non_null(strstr(out.at, "\"value\": [1.0, \"nan\"]"));
    assert_non_null(strstr(out.at, "{\"name\": \"n\", \"typical\": 9}"));
    bench_free(b);
}

/* What is computed tells programs apart; what it is called, where it stands and how large it is, do not. */
static void a_digest_is_of_what_is_computed(void **state)
{
    Bench *b = bench_new();
    static const char *const lines[] = {
        "dim n ~ 9\n param in @A : f32[n,n]\n %0 = input @A : f32[n,n]\n"
        "%1 = einsum %0[a,b], %0[b,c] -> [a,c] : f32[n,n] as T\n result @R = %1\n",
        "param in @B : f32[3,3]\n %0 = input @B : f32[3,3]\n"
        "%1 = einsum %0[a,b], %0[b,c] -> [a,c] : f32[3,3] as U\n result @R = %1\n",
        "param in @A : f32[3,3]\n %0 = input @A : f32[3,3]\n"
        "%1 = einsum %0[a,b], %0[c,b] -> [a,c] : f32[3,3]\n result @R = %1\n",
        "param in @A : f32[3,3]\n %0 = input @A : f32[3,3]\n"
        "%1 = einsum %0[a,b], %0[b,c] -> [a,c] : f32[3,3] acc f64\n result @R = %1\n",
        "param in @A : f32[3,3]\n %0 = input @A : f32[3,3]\n"
        "%1 = mul %0[a,b], %0[b,a] -> [a,b] : f32[3,3]\n result @R = %1\n",
        "param in @A : f32[3,3]\n %0 = input @A : f32[3,3]\n %1 = const 2.0 : f32[]\n"
        "%2 = mul %0[a,b], %1[] -> [a,b] : f32[3,3]\n result @R = %2\n",
        "param in @A : f32[3,3]\n %0 = input @A : f32[3,3]\n %1 = const 3.0 : f32[]\n"
        "%2 = mul %0[a,b], %1[] -> [a,b] : f32[3,3]\n result @R = %2\n",
        "param inout @A : f32[3,3]\n %0 = input @A : f32[3,3]\n"
        "%1 = einsum %0[a,b], %0[b,c] -> [a,c] : f32[3,3]\n update @A = %1\n"};
    enum { COUNT = sizeof lines / sizeof lines[0] };
    const char *digest[COUNT];
    for (size_t k = 0; k < COUNT; k++) {
        digest[k] = graph_digest(&b->ctx.arena, bench_graph(b, lines[k]));
    }
    assert_string_equal(digest[0], digest[1]);
    for (size_t k = 1; k < COUNT; k++) {
        for (size_t j = 1; j < k; j++) {
            assert_string_not_equal(digest[k], digest[j]);
        }
    }
    bench_free(b);
}

TESTS(TEST(equal_nodes_are_one_whatever_their_labels_are_called),
      TEST(constants_are_equal_by_value_and_sign),
      TEST(the_first_name_and_any_permission_to_spill_are_kept),
      TEST(pruning_keeps_what_results_need_and_nothing_else), TEST(a_product_has_a_cost),
      TEST(large_graphs_and_long_products_stay_quick), TEST(json_holds_the_graph),
      TEST(labels_are_called_as_the_program_calls_them), TEST(names_do_not_tell_nodes_apart),
      TEST(a_digest_is_of_what_is_computed))
