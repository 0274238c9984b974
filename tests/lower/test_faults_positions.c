/* SPDX-License-Identifier: Apache-2.0 */
/* Faults planted on purpose in accesses at positions, in pieces and in what masks leave of loops, in the text of a graph and of the kernel
 * that it becomes. Each row says who must find it; a row that nobody finds fails the test, and so does one that another
 * finds. */
#include "support/faults.h"

#include <string.h>

#include "graph/eval.h"
#include "lower/lower.h"
#include "nest/nest.h"
#include "loop/loop_eval.h"
#include "loop/loop_verify.h"

typedef enum Finder {
    BY_GRAPH,   /* graph_verify refuses it */
    BY_KERNEL,  /* loop_verify refuses the kernel */
    BY_RUNNING, /* loop_eval stops: what is read was not written, or lies outside */
    BY_NUMBERS  /* it runs, and computes something else */
} Finder;

static const char *const finder_names[] = {"graph_verify", "loop_verify", "loop_eval",
                                           "the numbers"};

static const FaultGood goods[] = {
    {"view",
     "  dim n ~ 8\n  dim w ~ 18 = sum 2 * n + 2\n  param in @x : i64[w]\n"
     "  %0 = input @x : i64[w]\n  %1 = view %0[2*a+b] -> [a,b] : i64[n,4]\n"
     "  %2 = reduce.sum %1[a,b] -> [a] : i64[n]\n  result @y = %2\n",
     "nest {\n  axis i [%2[a]]\n  for i step 3 {\n    %2 result 0\n  }\n}\n"},
    {"backwards",
     "  dim n ~ 8\n  param in @x : i64[n]\n  %0 = input @x : i64[n]\n"
     "  %1 = view %0[-a+extent(n)-1] -> [a] : i64[n]\n"
     "  %2 = add %1[a], %0[a] -> [a] : i64[n]\n  result @y = %2\n",
     "nest {\n  %2 result 0\n}\n"},
    {"rows",
     "  dim n ~ 8\n  dim m ~ 4\n  dim m_n ~ 32 = m * n\n"
     "  param in @x : i64[m_n] as [m,n]\n  %0 = input @x : i64[m,n]\n"
     "  %1 = copy %0[a,b] -> [b,a] : i64[n,m]\n  result @y = %1\n",
     "nest {\n  %1 result 0\n}\n"},
    {"pieces",
     "  dim n ~ 8\n  dim m ~ 4\n  dim n_m ~ 12 = sum 1 * n + 1 * m + 0\n"
     "  param in @A : i64[n]\n  param in @B : i64[m]\n  %0 = input @A : i64[n]\n"
     "  %1 = input @B : i64[m]\n  %2 = join %0[a], %1[a+extent(n)] -> [a] : i64[n_m]\n"
     "  result @R = %2\n",
     "nest {\n  %2 result 0\n}\n"},
    {"in turn",
     "  dim n ~ 8\n  dim n_2 ~ 16 = sum 2 * n + 0\n  param in @A : i64[n]\n"
     "  param in @B : i64[n]\n  %0 = input @A : i64[n]\n  %1 = input @B : i64[n]\n"
     "  %2 = join %0[2*a], %1[2*a+1] -> [a] : i64[n_2]\n  result @R = %2\n",
     "nest {\n  %2 result 0\n}\n"},
    {"update",
     "  dim n ~ 8\n  dim n_2 ~ 16 = sum 2 * n + 0\n  param in @C : i64[n_2]\n"
     "  param in @A : i64[n]\n  %0 = input @C : i64[n_2]\n  %1 = input @A : i64[n]\n"
     "  %2 = update %0[a], %1[2*a+1] -> [a] : i64[n_2]\n  result @R = %2\n",
     "nest {\n  %2 result 0\n}\n"},
    /* the last three, and of these the first ones: j <= i && i < j + 3 */
    {"window",
     "  dim n ~ 8\n  dim m ~ 4\n  param in @x : i64[n,m]\n  %0 = input @x : i64[n,m]\n"
     "  %1 = index : i64[n]\n  %2 = le %1[a], %1[b] -> [b,a] : bool[n,n]\n"
     "  %3 = const 3 : i64[]\n  %4 = add %1[a], %3[] -> [a] : i64[n]\n"
     "  %5 = lt %1[a], %4[b] -> [a,b] : bool[n,n]\n"
     "  %6 = and %2[a,b], %5[a,b] -> [a,b] : bool[n,n]\n  %7 = const 0 : i64[]\n"
     "  %8 = select %6[a,b], %0[b,c], %7[] -> [a,b,c] : i64[n,n,m]\n"
     "  %9 = reduce.sum %8[a,b,c] -> [a] : i64[n]\n  result @y = %9\n",
     "nest {\n  axis i [%9[a]]\n  axis j [%9[b]]\n  for i step 2 {\n    for j step 1 {\n"
     "      %9 result 0\n    }\n  }\n}\n"},
};

/* The fault in the text of a graph, or of its kernel. */
typedef struct Fault {
    const char *what, *good, *from, *to;
    Finder finder;
} Fault;

static const Fault graph_faults[] = {
    {"an offset beyond the end", "view", "[2*a+b]", "[2*a+b+1]", BY_GRAPH},
    {"an offset before the beginning", "view", "[2*a+b]", "[2*a+b-1]", BY_GRAPH},
    {"a stride lost", "view", "[2*a+b]", "[a+b]", BY_NUMBERS},
    {"a stride for another index", "view", "[2*a+b]", "[a+2*b]", BY_GRAPH},
    {"a longer window", "view", "[n,4]", "[n,5]", BY_GRAPH},
    {"a window one too short", "view", "[n,4]", "[n,3]", BY_NUMBERS},
    {"an index forgotten", "view", "[2*a+b]", "[2*a]", BY_NUMBERS},
    {"backwards from behind the end", "backwards", "extent(n)-1]", "extent(n)]", BY_GRAPH},
    {"backwards from before the end", "backwards", "extent(n)-1]", "extent(n)-2]", BY_GRAPH},
    {"forwards", "backwards", "-a+extent(n)-1", "a", BY_NUMBERS},
    {"rows of another length", "rows", "@x : i64[m_n] as [m,n]\n  %0 = input @x : i64[m,n]",
     "@x : i64[m_n] as [n,m]\n  %0 = input @x : i64[n,m]", BY_GRAPH},
    {"rows of squares", "rows", "as [m,n]\n  %0 = input @x : i64[m,n]",
     "as [n,n]\n  %0 = input @x : i64[n,n]", BY_GRAPH},
    {"a piece twice", "pieces", "%0[a], %1[a+extent(n)]",
     "%0[a], %1[a+extent(n)], %1[a+extent(n)]", BY_GRAPH},
    {"a piece that is not there", "pieces", "%0[a], %1[a+extent(n)]", "%0[a]", BY_GRAPH},
    {"a piece one too early", "pieces", "a+extent(n)]", "a+extent(n)-1]", BY_GRAPH},
    {"a piece one too late", "pieces", "a+extent(n)]", "a+extent(n)+1]", BY_GRAPH},
    {"a piece behind another's extent", "pieces", "a+extent(n)]", "a+extent(m)]", BY_GRAPH},
    {"two pieces in the places of each other", "pieces", "%0[a], %1[a+extent(n)]",
     "%0[a+extent(m)], %1[a]", BY_NUMBERS},
    {"a stride of a piece lost", "in turn", "%1[2*a+1]", "%1[a+1]", BY_GRAPH},
    {"both at even places", "in turn", "%1[2*a+1]", "%1[2*a]", BY_GRAPH},
    {"odd and even exchanged", "in turn", "%0[2*a], %1[2*a+1]", "%0[2*a+1], %1[2*a]",
     BY_NUMBERS},
    {"added beyond the end", "update", "%1[2*a+1]", "%1[2*a+2]", BY_GRAPH},
    {"added one too early", "update", "%1[2*a+1]", "%1[2*a]", BY_NUMBERS},
    {"added without the stride", "update", "%1[2*a+1]", "%1[a]", BY_NUMBERS},
    {"a mask without the diagonal", "window", "%2 = le", "%2 = lt", BY_NUMBERS},
    {"a mask of one more", "window", "%5 = lt", "%5 = le", BY_NUMBERS},
    {"a mask of a smaller window", "window", "const 3", "const 2", BY_NUMBERS},
};

static const Fault kernel_faults[] = {
    {"an offset beyond the end", "view", "@x[2*a+b]", "@x[2*a+b+1]", BY_KERNEL},
    {"an offset before the beginning", "view", "@x[2*a+b]", "@x[2*a+b-1]", BY_KERNEL},
    {"a stride lost", "view", "@x[2*a+b]", "@x[a+b]", BY_NUMBERS},
    {"a window one too short", "view", "b in 0..4", "b in 0..3", BY_NUMBERS},
    {"a window one too long", "view", "b in 0..4", "b in 0..5", BY_KERNEL},
    {"a tile one too short", "view", "a in $i:3<n", "a in $i:2<n", BY_RUNNING},
    {"backwards from behind the end", "backwards", "extent(n)-a-1", "extent(n)-a", BY_KERNEL},
    {"forwards", "backwards", "@x[extent(n)-a-1]", "@x[a]", BY_NUMBERS},
    {"rows of another length", "rows", "@x : i64[m,n]", "@x : i64[n,m]", BY_KERNEL},
    {"a piece one too early", "pieces", "@R[a+extent(n)]", "@R[a+extent(n)-1]", BY_KERNEL},
    {"a piece one too late", "pieces", "@R[a+extent(n)]", "@R[a+extent(n)+1]", BY_KERNEL},
    {"a piece in the place of the other", "pieces", "copy [a in 0..m] @R[a+extent(n)]",
     "copy [a in 0..m] @R[a+0]", BY_RUNNING},
    {"a piece that is not there", "pieces", "  copy [a in 0..n] @R[a] = @A[a]\n", "",
     BY_RUNNING},
    {"a piece one too short", "pieces", "copy [a in 0..n] @R[a]", "copy [a in 1..n] @R[a]",
     BY_RUNNING},
    {"a piece from the other's operand", "in turn", "@R[2*a+1] = @B[a]", "@R[2*a+1] = @A[a]",
     BY_NUMBERS},
    {"both at even places", "in turn", "@R[2*a+1]", "@R[2*a]", BY_RUNNING},
    {"a piece added twice", "update", "  reduce [a in 0..n] @R[2*a+1] += @A[a]\n",
     "  reduce [a in 0..n, b in 0..2] @R[2*a+1] += @A[a]\n", BY_NUMBERS},
    {"a piece that takes the place of what it is added to", "update", "+= @A[a]\n",
     "+= @A[a] begins\n", BY_NUMBERS},
    {"added one too early", "update", "@R[2*a+1] +=", "@R[2*a] +=", BY_NUMBERS},
    {"added beyond the end", "update", "@R[2*a+1] +=", "@R[2*a+2] +=", BY_KERNEL},
    {"what is added to is not there", "update", "  copy [a in 0..n_2] @R[a] = @C[a]\n", "",
     BY_RUNNING},
    {"a window that begins one too late", "window", "within $i-2..", "within $i-1..",
     BY_NUMBERS},
    {"a window that ends one too early", "window", "..$i+2 {", "..$i+1 {", BY_NUMBERS},
};

typedef struct Run {
    Ctx ctx;
    const FaultGood *good;
    Graph *g;
    Kernel *k;
} Run;

static Run *run_new(const char *name)
{
    Run *r = calloc(1, sizeof *r);
    ctx_init(&r->ctx);
    r->good = fault_good(goods, sizeof goods / sizeof goods[0], name);
    r->g = fault_graph(&r->ctx, r->good->graph);
    assert_non_null(r->g);
    Nest *nest = fault_nest(&r->ctx, r->g, r->good->nest);
    assert_non_null(nest);
    r->k = nest_lower(&r->ctx, &r->ctx.arena, nest);
    return r;
}

static void run_free(Run *r)
{
    ctx_release(&r->ctx);
    free(r);
}

static int64_t number(uint32_t a, int64_t k)
{
    return k * k % 7 + k + 1 + 100 * a;
}

/* The kernel, or another graph of the same parameters, computes what the good graph computes. */
static bool same_numbers(Run *r, const Graph *other, const int64_t *given, Finder *finder)
{
    Arena *arena = &r->ctx.arena;
    Tensor *arg[2], *expected[1], *got[1];
    const int64_t *dims = dims_complete(arena, &r->g->dims, given);
    fault_arguments(&r->ctx, r->g, dims, number, arg);
    assert_true(graph_eval(&r->ctx, arena, r->g, dims, arg, expected));
    *finder = BY_RUNNING;
    bool ran = other != NULL ? graph_eval(&r->ctx, arena, other, dims, arg, got)
                             : loop_eval(&r->ctx, arena, r->k, dims, arg, got);
    if (!ran) {
        return false;
    }
    *finder = BY_NUMBERS;
    return fault_same_results(r->g, expected, got);
}

/* Is a fault found, and by whom? */
static bool find(Run *r, const Graph *other, Finder *finder)
{
    bool same = true;
    *finder = BY_KERNEL;
    if (other == NULL && !loop_verify(&r->ctx, r->k, "test")) {
        return true;
    }
    for (size_t k = 0; same && k < FAULT_SETS; k++) {
        same = same_numbers(r, other, fault_extents[k], finder);
    }
    return !same;
}

static void what_is_good_is_good(void **state)
{
    for (size_t k = 0; k < sizeof goods / sizeof goods[0]; k++) {
        Run *r = run_new(goods[k].name);
        Finder finder = BY_GRAPH;
        if (find(r, NULL, &finder)) {
            fail_msg("%s: refused by %s", goods[k].name, finder_names[finder]);
        }
        run_free(r);
    }
}

static int failed;

static void expect(const Fault *f, bool found, Finder finder)
{
    if (!found || finder != f->finder) {
        print_error("%s, of '%s': found by %s\n", f->what, f->good,
                    found ? finder_names[finder] : "nobody");
    }
    failed += !found || finder != f->finder;
}

static void a_fault_in_a_graph_is_found(void **state)
{
    for (size_t k = 0; k < sizeof graph_faults / sizeof graph_faults[0]; k++) {
        const Fault *f = &graph_faults[k];
        Run *r = run_new(f->good);
        const Graph *other = fault_graph(
            &r->ctx, fault_planted(&r->ctx.arena, r->good->graph, f->what, f->from, f->to));
        Finder finder = BY_GRAPH;
        bool found = other == NULL || find(r, other, &finder);
        expect(f, found, finder);
        run_free(r);
    }
    assert_int_equal(failed, 0);
}

static void a_fault_of_lowering_is_found(void **state)
{
    for (size_t k = 0; k < sizeof kernel_faults / sizeof kernel_faults[0]; k++) {
        const Fault *f = &kernel_faults[k];
        Run *r = run_new(f->good);
        Finder finder = BY_KERNEL;
        r->k = fault_kernel(&r->ctx, r->k, f->what, f->from, f->to);
        bool found = r->k == NULL || find(r, NULL, &finder);
        expect(f, found, finder);
        run_free(r);
    }
    assert_int_equal(failed, 0);
}

TESTS(TEST(what_is_good_is_good), TEST(a_fault_in_a_graph_is_found),
      TEST(a_fault_of_lowering_is_found))
