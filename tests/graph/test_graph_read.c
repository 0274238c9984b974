/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of graphs: what is printed reads back to the same bytes, what is broken is refused with a message, and nothing
 * that can be written brings the reader down. */
#include "graph/support.h"

#include <stdio.h>
#include <string.h>

static const char everything[] =
    "tdsl-dump graph 1\n"
    "source \"dir/all of it.tdsl\"\n"
    "\n"
    "kernel \"odd name\" at \"dir/all of it.tdsl\" 4:1 {\n"
    "  signature \"kernel odd(A: f32[o, v]) // \\\"quoted\\\" \\xc3\\xa4\"\n"
    "  program \"0123abcd\"\n"
    "  form tensor\n"
    "  dim o ~ 16\n"
    "  dim \"v'\" ~ 128\n"
    "  param in @A : f32[o,\"v'\"] at 4:12\n"
    "  param inout @\"C d\" : f64[o,o]\n"
    "  param scalar @s : f64[]\n"
    "  param in @one : c128[1,3,3]\n"
    "  %0 = input @A : f32[o,\"v'\"]\n"
    "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : f32[o,o] acc f64 spill as T named "
    "[i,_,\"k\\xc3\\xa4\"] at 5:17\n"
    "  %2 = cast %1[a,b] -> [b,a] : f64[o,o] as \"T t\" at \"other.tdsl\" 6:1\n"
    "  %3 = const 0.1 : f64[]\n"
    "  %4 = const -0.0 : f64[]\n"
    "  %5 = const -inf : f64[]\n"
    "  %6 = const nan : f64[]\n"
    "  %7 = const -9223372036854775807 - 1 : i64[]\n"
    "  %8 = const -7 : i32[]\n"
    "  %9 = const true : bool[]\n"
    "  %10 = const complex(1.0, -2.5e-300) : c128[]\n"
    "  %11 = extent o : f64[] at 7:4095\n"
    "  %12 = input @s : f64[]\n"
    "  %13 = mul %12[], %2[a,b] -> [a,b] : f64[o,o]\n"
    "  %14 = copy %3[] -> [a,b] : f64[o,5]\n"
    "  %15 = input @one : c128[1,3,3]\n"
    "  %16 = copy %15[0,a,a] -> [a] : c128[3]\n"
    "  %17 = select %9[], %13[a,b], %13[b,a] -> [a,b] : f64[o,o] named [p,p]\n"
    "  update @\"C d\" = %17\n"
    "  result @E = %16 at \"other.tdsl\" 7:1\n"
    "  result @F = %1\n"
    "}\n"
    "\n"
    "kernel second {\n"
    "  form binary\n"
    "  param in @A : i32[0]\n"
    "  %0 = input @A : i32[0]\n"
    "  %1 = einsum %0[a], %0[b] -> [] : i32[]\n"
    "  result @A2 = %1\n"
    "}\n";

/* A recurrence of two values, h[t] = a[t] * g[t - 1] and g[t] = h[t - 1] + a[t], without its second value. */
static const char steps_of_two[] =
    "tdsl-dump graph 1\n\n"
    "kernel f {\n"
    "  form tensor\n"
    "  dim n ~ 64\n"
    "  param in @a : f64[n]\n"
    "  recurrence 0 of n operands 3 {\n"
    "    param prior 0 result 0 lag 1\n"
    "    param prior 1 result 1 lag 1\n"
    "    param each 2 along 0\n"
    "    kernel f {\n"
    "      form tensor\n"
    "      dim n ~ 64\n"
    "      param scalar @h_before : f64[]\n"
    "      param scalar @g_before : f64[]\n"
    "      param scalar @a : f64[]\n"
    "      %0 = input @h_before : f64[]\n"
    "      %1 = input @g_before : f64[]\n"
    "      %2 = input @a : f64[]\n"
    "      %3 = mul %1[], %2[] -> [] : f64[]\n"
    "      %4 = add %0[], %2[] -> [] : f64[]\n"
    "      result @h = %3\n"
    "      result @g = %4\n"
    "    }\n"
    "  }\n"
    "  %0 = input @a : f64[n]\n"
    "  %1 = const 0.0 : f64[]\n"
    "  %2 = const 1.0 : f64[]\n"
    "  %3 = steps 0 result 0 along 0 %1, %2, %0 -> [a] : f64[n]\n";

static void values_of_one_recurrence_are_computed_together(void **state)
{
    char text[sizeof steps_of_two + 200];
    snprintf(text, sizeof text,
             "%s  %%4 = steps 0 result 1 along 0 %%1, %%2, %%0 -> [a] : f64[n]\n"
             "  result @h = %%3\n  result @g = %%4\n}\n",
             steps_of_two);
    assert_round_trip(text);
    snprintf(text, sizeof text,
             "%s  %%4 = steps 0 result 1 along 0 %%2, %%1, %%0 -> [a] : f64[n]\n"
             "  result @h = %%3\n  result @g = %%4\n}\n",
             steps_of_two);
    assert_refused(text, "another value of its recurrence has other operands");
    snprintf(text, sizeof text, "%s  result @h = %%3\n}\n", steps_of_two);
    assert_refused(text, "what its steps read of steps before is no value");
}

static void a_dump_reads_back_to_the_same_bytes(void **state)
{
    assert_round_trip(everything);
    assert_round_trip("tdsl-dump graph 1\n");
}

static void a_dump_by_hand_may_number_and_name_as_it_likes(void **state)
{
    Bench *b = bench_new();
    Graph *g = bench_graph(b, "param in @A:f64[3,4] ; a comment\n\n"
                              "%100=input @A:f64[3,4]\n"
                              "%7 = copy %100[row,col]->[col,row] : f64[4,3]\n"
                              "%3 = copy %100[q,w] -> [w,q] : f64[4,3] as T\n"
                              "%8 = einsum %3[x,y] -> [] : f64\n"
                              "result @R = %8\nresult @S = %7");
    assert_string_equal(bench_dump(b, g), "kernel k {\n"
                                          "  form tensor\n"
                                          "  param in @A : f64[3,4]\n"
                                          "  %0 = input @A : f64[3,4]\n"
                                          "  %1 = copy %0[a,b] -> [b,a] : f64[4,3] as T\n"
                                          "  %2 = einsum %1[a,b] -> [] : f64[]\n"
                                          "  result @R = %2\n"
                                          "  result @S = %1\n"
                                          "}\n");
    bench_free(b);
}

static void labels_beyond_the_alphabet_have_numbers(void **state)
{
    Bench *b = bench_new();
    Text t;
    text_init(&t, &b->ctx.arena);
    text_put(&t, "tdsl-dump graph 1\n\nkernel k {\n  form tensor\n  param in @A : f64[2]\n"
                 "  %0 = input @A : f64[2]\n  %1 = einsum ");
    for (int k = 0; k < 54; k++) {
        text_printf(&t, "%s%%0[", k == 0 ? "" : ", ");
        dump_label(&t, k);
        text_char(&t, ']');
    }
    text_put(&t, " -> [l53,Z,a] : f64[2,2,2]\n  result @R = %1\n}\n");
    assert_non_null(strstr(t.at, "%0[z], %0[A]"));
    assert_round_trip(t.at);
    bench_free(b);
}

#define HEAD "param in @A : f64[3,4]\nparam inout @C : f64[3,4]\n%0 = input @A : f64[3,4]\n"
#define TAIL "\nresult @R = %0"

static void broken_text_is_refused_at_its_place(void **state)
{
    assert_refused("", "empty dump");
    assert_refused("tdsl-dump loop 1\n", "expected 'tdsl-dump graph 1'");
    assert_refused("tdsl-dump graph 2\n", "only version 1");
    assert_refused("tdsl-dump graph 1\nkernel k {\n", "unexpected end of file");
    assert_refused("tdsl-dump graph 1\nkernel k\n", "block in braces");
    assert_refused("tdsl-dump graph 1\nkernel k {\n}}\n", "unexpected '}'");
    assert_refused("tdsl-dump graph 1\nkernel k {\n ]\n}\n", "unexpected ']'");
    assert_refused("tdsl-dump graph 1\nkernel \"a\n", "a string that is not closed");
    assert_refused("tdsl-dump graph 1\nkernel \"a\\", "a string that is not closed");
    assert_refused("tdsl-dump graph 1\nkernel \"a\\x00\" {\n}\n", "a zero byte");
    assert_refused("tdsl-dump graph 1\nkernel \"a\\xff\" {\n}\n", "not valid UTF-8");
    assert_refused("tdsl-dump graph 1\nkernel \"\\q\" {\n}\n", "an unknown escape");
    assert_refused("tdsl-dump graph 1\nkernel k ! {\n}\n", "starts no token");
    assert_refused("tdsl-dump graph 1\nkernel k 1e+ {\n}\n", "exponent without digits");
    assert_refused("tdsl-dump graph 1\nkernel k 99999999999999999999 {\n}\n", "64 bits");
    assert_refused("tdsl-dump graph 1\nkernel \xff {\n}\n", "UTF-8");
    assert_refused("tdsl-dump graph 1\nkernel k at 3:1 {\n}\n", "expected a file name");
    assert_refused("tdsl-dump graph 1\nkernel k at \"f\" 0:1 {\n}\n", "from 1 to");
    assert_refused("tdsl-dump graph 1\nkernel k at \"f\" 1:5000 {\n}\n", "from 1 to 4095");
    assert_lines_refused("param in @A : f64[2]\n%0 = input @A : f64[2]\n"
                         "%1 = neg %0[a] -> [a] : f64[2] named [i,j]\nresult @R = %1",
                         "a name is expected for each index");
    assert_lines_refused("param in @A : f64[2]\n%0 = input @A : f64[2]\n"
                         "%1 = neg %0[a] -> [a] : f64[2] named [7]\nresult @R = %1",
                         "a name or '_' is expected here");
    assert_lines_refused("param in @A : f64[2]\n%0 = input @A : f64[2]\n"
                         "%1 = neg %0[a] -> [a] : f64[2] named i\nresult @R = %1",
                         "a list of names");
}

static void broken_lines_are_refused_at_their_place(void **state)
{
    assert_lines_refused("", "it has no result");
    assert_lines_refused("what", "a line of a graph is");
    assert_lines_refused("form ternary", "a form is tensor or binary");
    assert_lines_refused("dim o", "expected '~'");
    assert_lines_refused("dim o ~ 1\ndim o ~ 2", "a dim of this name exists");
    assert_lines_refused("param in @A : f65[3]", "expected a type");
    assert_lines_refused("param out @A : f64[3]", "expected in, inout or scalar");
    assert_lines_refused("param in @A : f64[n]", "there is no dim 'n'");
    assert_lines_refused(HEAD "param in @A : f64[3]", "a parameter of this name exists");
    assert_lines_refused(HEAD "%0 = const 1.0 : f64[]", "a value of this number exists");
    assert_lines_refused("%1 = input @B : f64[]", "there is no parameter 'B'");
    assert_lines_refused(HEAD "%1 = input @A : f64[4,3]", "another shape");
    assert_lines_refused(HEAD "%1 = input @A : f32[3,4]", "another element type");
    assert_lines_refused(HEAD "%1 = input @A : f64[3]",
                         "a type of rank 1 for a value of rank 2");
    assert_lines_refused(HEAD "%1 = frob %0[a,b] -> [a,b] : f64[3,4]", "no operation 'frob'");
    assert_lines_refused(HEAD "%1 = neg %9[a,b] -> [a,b] : f64[3,4]", "no value %9");
    assert_lines_refused(HEAD "%1 = neg %0[a] -> [a] : f64[3]",
                         "1 indices for a value of rank 2");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [a,a] : f64[3,3]", "repeated in the result");
    assert_lines_refused(HEAD "%1 = copy %0[a,a] -> [a] : f64[3]",
                         "extent 4 here and 3 before");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [b,a] : f64[3,4]",
                         "extent 3 here and 4 before");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [a,b] : f64[3,4] twice", "should end here");
    assert_lines_refused(HEAD "%1 = neg A[a,b] -> [a,b] : f64[3,4]", "an operand is a value");
    assert_lines_refused(HEAD "%1 = neg %0[a,b", "unexpected end of line");
    assert_lines_refused(HEAD "%1 = neg %0[a,b]", "expected '->'");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [1,b] : f64[3,4]", "is a name");
    assert_lines_refused(HEAD "%1 = neg %0[a,-1] -> [a] : f64[3]", "a name or a position");
    assert_lines_refused(HEAD "result @R = %5", "no value %5");
    assert_lines_refused(HEAD "update @X = %0", "no parameter of this name");
    assert_lines_refused("%1 = const 0.5 : i32[]", "this number is no i32");
    assert_lines_refused("%1 = const 5000000000 : i32[]", "this number is no i32");
    assert_lines_refused("%1 = const 0.1 : f32[]", "this number is no f32");
    assert_lines_refused("%1 = const 1 : bool[]", "this number is no bool");
    assert_lines_refused("%1 = const complex(1.0, 2.0) : f64[]", "this number is no f64");
    assert_lines_refused("%1 = const complex(1.0) : c64[]", "complex(re, im)");
    assert_lines_refused("%1 = const -9223372036854775807 - 2 : i64[]", "only 1 is subtracted");
    assert_lines_refused("%1 = extent 3 : f64[]", "the name of a dim");
}

#define SQUARE                                                                                 \
    "form binary\nparam in @A : f64[3,3]\nparam inout @s : f64[]\n%0 = input @A : f64[3,3]\n"  \
    "%1 = const 2.0 : f64[]\n%2 = const 2.0 : f32[]\n%3 = neg %0[a,b] -> [a,b] : f64[3,3]\n"

static void initial_values_and_scales_are_what_they_should_be(void **state)
{
    assert_lines_refused(SQUARE "%4 = einsum %0[a,b], %0[b,c] onto %0[a,c], %0[a,c] -> [a,c] "
                                ": f64[3,3]",
                         "expected '->'");
    assert_lines_refused(SQUARE "%4 = einsum onto %0[a,c] -> [a,c] : f64[3,3]",
                         "an operand is a value");
    assert_lines_refused(SQUARE "%4 = reduce.sum %0[a,b] onto %3[a,b] -> [a] : f64[3]",
                         "its initial value has an index that is summed");
    assert_lines_refused(SQUARE "%4 = reduce.max %0[a,b] onto %3[a,a] -> [a] : f64[3]",
                         "expected '->'");
    assert_lines_refused("param in @A : f64[3,3]\n%0 = input @A : f64[3,3]\n"
                         "%1 = einsum %0[a,b], %0[b,c] onto %0[a,c] -> [a,c] : f64[3,3]" TAIL,
                         "no sum in form binary");
    assert_lines_refused(SQUARE "%4 = einsum %0[a,b] onto %0[a,c] -> [a,c] : f64[3,3]" TAIL,
                         "2 operands in form binary");
    assert_lines_refused(SQUARE
                         "%4 = einsum %0[a,b], %0[a,b] onto %0[a,b] -> [a,b] : f64[3,3]" TAIL,
                         "3 operands in form binary");
    assert_lines_refused(SQUARE
                         "%4 = einsum %0[a,b], %0[b,c], %0[a,c] -> [a,c] : f64[3,3]" TAIL,
                         "operand 2 is no scale");
    assert_lines_refused(SQUARE "%4 = einsum %0[a,b], %0[b,c], %2[] -> [a,c] : f64[3,3]" TAIL,
                         "operand 2 is no scale");
    assert_lines_refused(SQUARE "%5 = input @s : f64[]\n"
                                "%4 = einsum %0[a,b], %0[b,c], %5[] -> [a,c] : f64[3,3]" TAIL,
                         "operand 2 is no scale");
    assert_lines_refused(SQUARE
                         "%4 = einsum %0[a,b], %0[b,c] onto %3[a,b] -> [a,c] : f64[3,3]" TAIL,
                         "an index that is summed");
    assert_lines_refused(SQUARE
                         "%4 = einsum %0[a,b], %0[a,b] onto %3[c,d] -> [c,d] : f64[3,3]" TAIL,
                         "an index that no factor has");
    assert_lines_refused(SQUARE
                         "%4 = einsum %0[a,b], %0[b,c] onto %2[] -> [a,c] : f64[3,3]" TAIL,
                         "not of the type");
    assert_lines_refused(
        "form binary\nparam in @A : f32[3,3]\n%0 = input @A : f32[3,3]\n"
        "%1 = einsum %0[a,b], %0[b,c] onto %0[a,c] -> [a,c] : f32[3,3] acc f64" TAIL,
        "not of the type");
}

/* What the builder would accept and the verifier must not. */
static void broken_graphs_are_refused(void **state)
{
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [a] : f64[3]" TAIL, "drops an index");
    assert_lines_refused(HEAD "%1 = reduce.sum %0[a,b] -> [a,c] : f64[3,7]" TAIL,
                         "an index of the result is in no operand");
    assert_lines_refused(HEAD "%1 = add %0[a,b] -> [a,b] : f64[3,4]" TAIL, "it has 1 operands");
    assert_lines_refused(HEAD "%1 = einsum -> [] : f64[]" TAIL, "it has 0 operands");
    assert_lines_refused(HEAD "%1 = not %0[a,b] -> [a,b] : f64[3,4]" TAIL, "element types");
    assert_lines_refused(HEAD "%1 = lt %0[a,b], %0[a,b] -> [a,b] : f64[3,4]" TAIL,
                         "gives bool, not f64");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [a,b] : f32[3,4]" TAIL,
                         "gives f64, not f32");
    assert_lines_refused(HEAD "%1 = einsum %0[a,b] -> [] : f32[]" TAIL, "does not widen");
    assert_lines_refused(HEAD "%1 = einsum %0[a,b] -> [] : f64[] acc f32" TAIL, "accumulator");
    assert_lines_refused(HEAD "%1 = einsum %0[a,b] -> [] : f64[] acc c128" TAIL, "accumulator");
    assert_lines_refused(HEAD "%1 = neg %0[a,b] -> [a,b] : f64[3,4] acc f32" TAIL,
                         "only sums and reductions");
    assert_lines_refused(HEAD "%1 = copy %0[3,b] -> [b] : f64[4]" TAIL, "outside dimension 0");
    assert_lines_refused("dim n ~ 3\nparam in @A : f64[n]\n%0 = input @A : f64[n]\n"
                         "%1 = copy %0[0] -> [] : f64[]" TAIL,
                         "outside dimension 0");
    assert_lines_refused("form binary\n" HEAD "%1 = einsum %0[a,b] -> [] : f64[]" TAIL,
                         "1 operands in form binary");
    assert_lines_refused(HEAD "update @C = %0\nupdate @C = %0", "updated twice");
    assert_lines_refused(HEAD "update @A = %0", "no inout parameter");
    assert_lines_refused(HEAD "%1 = const 1.0 : f64[]\nupdate @C = %1", "of another type");
    assert_lines_refused(HEAD "result @R = %0\nresult @R = %0", "taken twice");
    assert_lines_refused(HEAD "result @A = %0", "taken twice");
    assert_lines_refused("dim n ~ 0\n" HEAD TAIL, "typical size");
    assert_lines_refused("param scalar @s : f64[2]", "has dimensions");
    assert_lines_refused(
        "%0 = const 1.0 : f64[]\n%1 = copy %0[] -> [a] : f64[9223372036854775807]" TAIL,
        "out of range");
    assert_lines_refused("%0 = const 1.0 : f64[]\n"
                         "%1 = copy %0[] -> [a,b,c] : f64[0,4294967296,4294967296]" TAIL,
                         "does not fit");
    assert_lines_refused("dim n ~ 5\n%0 = extent n : bool[]" TAIL, "no number");
    assert_refused("tdsl-dump graph 1\nkernel \"\" {\n}\n", "has no name");
}

static void very_wide_ranks_and_deep_nesting_are_limits(void **state)
{
    Bench *b = bench_new();
    Text t;
    text_init(&t, &b->ctx.arena);
    text_put(&t, "%0 = const 1.0 : f64[]\n%1 = copy %0[] -> [");
    for (int k = 0; k < 70; k++) {
        text_printf(&t, "%sx%d", k == 0 ? "" : ",", k);
    }
    text_put(&t, "] : f64[1");
    for (int k = 1; k < 70; k++) {
        text_put(&t, ",1");
    }
    text_put(&t, "]" TAIL);
    assert_lines_refused(t.at, "at most 64");
    text_init(&t, &b->ctx.arena);
    text_put(&t, "tdsl-dump graph 1\n");
    for (int k = 0; k < 100000; k++) {
        text_put(&t, "x {\n");
    }
    assert_refused(t.at, "nested more than");
    text_init(&t, &b->ctx.arena);
    for (int k = 0; k < 100000; k++) {
        text_put(&t, "[");
    }
    assert_lines_refused(t.at, "nested more than");
    bench_free(b);
}

/* The verifier's own checks on graphs no text can say: a node is damaged after it was built. */
static void assert_damage_is_found(void (*damage)(Graph *), const char *message)
{
    Bench *b = bench_new();
    Graph *g = bench_graph(b, HEAD "%1 = einsum %0[a,b], %0[c,b] -> [a,c] : f64[3,3]\n"
                                   "%2 = neg %1[a,b] -> [b,a] : f64[3,3]\nresult @R = %2");
    assert_true(graph_verify(&b->ctx, g, "before"));
    damage(g);
    assert_false(graph_verify(&b->ctx, g, "a pass"));
    const char *messages = bench_messages(b);
    if (strstr(messages, message) == NULL || strstr(messages, "a pass") == NULL) {
        print_error("expected: %s\ngot: %s\n", message, messages);
        fail();
    }
    bench_free(b);
}

static void operand_after(Graph *g)
{
    *(NodeRef *)(uintptr_t)g->nodes.at[2].operand = 2;
}
static void wrong_extent(Graph *g)
{
    ((Dim *)(uintptr_t)g->nodes.at[1].extent)[1].n = 5;
}
static void unused_label(Graph *g)
{
    Dim *more = ARENA_ARRAY(g->arena, 4, Dim);
    for (int k = 0; k < 4; k++) {
        more[k] = k < 3 ? g->nodes.at[1].extent[k] : dim_fixed(1);
    }
    g->nodes.at[1].extent = more;
    g->nodes.at[1].n_labels = 4;
}
static void swapped_labels(Graph *g)
{
    Index *ix = (Index *)(uintptr_t)g->nodes.at[1].access[0].index;
    ix[0].label = 1;
    ix[1].label = 0;
}
static void offset_on_label(Graph *g)
{
    ((Index *)(uintptr_t)g->nodes.at[1].access[0].index)[0].offset = 1;
}
static void repeated_node(Graph *g)
{
    Node copy = g->nodes.at[1];
    vec_push(g->arena, &g->nodes, copy);
}
static void wrong_shape(Graph *g)
{
    ((Dim *)(uintptr_t)g->nodes.at[2].shape)[0].n = 4;
}
static void missing_value(Graph *g)
{
    g->results.at[0].node = 99;
}
static void wrong_accumulator(Graph *g)
{
    g->nodes.at[2].acc = DTYPE_F32;
}
static void poison_type(Graph *g)
{
    g->nodes.at[2].dtype = DTYPE_NONE;
}
static void unknown_dim(Graph *g)
{
    ((Dim *)(uintptr_t)g->nodes.at[2].shape)[0].sym = 3;
}

static void damaged_graphs_are_found(void **state)
{
    assert_damage_is_found(operand_after, "does not come before");
    assert_damage_is_found(wrong_extent, "extent of a dimension");
    assert_damage_is_found(unused_label, "labels that nothing uses");
    assert_damage_is_found(swapped_labels, "numbered by first appearance");
    assert_damage_is_found(offset_on_label, "offset on a label");
    assert_damage_is_found(repeated_node, "the same as %1");
    assert_damage_is_found(wrong_shape, "extent of a dimension");
    assert_damage_is_found(missing_value, "no value");
    assert_damage_is_found(wrong_accumulator, "no accumulator");
    assert_damage_is_found(poison_type, "no element type");
    assert_damage_is_found(unknown_dim, "no dim of the kernel");
}

static void cut_texts_and_changed_bytes_are_survived(void **state)
{
    size_t n = sizeof everything - 1;
    for (size_t k = 0; k < n; k += 3) {
        Bench *b = bench_new();
        char *text = str_dup(&b->ctx.arena, (Str){everything, k});
        (void)module_read(&b->ctx, bench_source(b, text));
        text = str_dup(&b->ctx.arena, (Str){everything, n});
        for (int c = 0; c < 4; c++) {
            text[k] = "\n0]\x80"[c];
            Module *m = module_read(&b->ctx, bench_source(b, text));
            if (m != NULL) { /* then it is a good program, and prints as one that reads back */
                Text out;
                text_init(&out, &b->ctx.arena);
                module_dump(m, &out);
                assert_round_trip(out.at);
            }
        }
        bench_free(b);
    }
}

TESTS(TEST(a_dump_reads_back_to_the_same_bytes),
      TEST(values_of_one_recurrence_are_computed_together),
      TEST(a_dump_by_hand_may_number_and_name_as_it_likes),
      TEST(labels_beyond_the_alphabet_have_numbers), TEST(broken_text_is_refused_at_its_place),
      TEST(broken_lines_are_refused_at_their_place),
      TEST(initial_values_and_scales_are_what_they_should_be), TEST(broken_graphs_are_refused),
      TEST(very_wide_ranks_and_deep_nesting_are_limits), TEST(damaged_graphs_are_found),
      TEST(cut_texts_and_changed_bytes_are_survived))
