/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in one pass with the maximum that they need. Elements are multiples of 1000, and infinite or
 * NaN here and there: exp of their differences is 0 or 1, so that every nest must give what the graph
 * does, to the bit, wherever the maximum stands. Random trees of loops over programs like softmax:
 * what the search takes for legal is accepted, what it does not is refused. And faults planted in
 * the kernel: each changes the numbers. */
#include "support/texts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nest/support_graphs.h"
#include "graph/eval.h"
#include "loop/loop_eval.h"
#include "loop/loop_verify.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/place.h"
#include "nest/text.h"
#include "nest/verify.h"
#include "opt/opt.h"
#include "support/quick.h"

#define TREES 60

static const char *const programs[] = {
    /* attention, every step of it a value */
    "  dim s ~ 8\n  dim t ~ 16\n  dim d ~ 3\n  param in @Q : f64[s,t]\n  param in @V : "
    "f64[t,d]\n"
    "  %0 = input @Q : f64[s,t]\n  %1 = input @V : f64[t,d]\n"
    "  %5 = reduce.max %0[a,b] -> [a] : f64[s]\n"
    "  %6 = sub %0[a,b], %5[a] -> [a,b] : f64[s,t]\n"
    "  %7 = exp %6[a,b] -> [a,b] : f64[s,t]\n"
    "  %8 = reduce.sum %7[a,b] -> [a] : f64[s]\n"
    "  %9 = einsum %7[a,b], %1[b,c] -> [a,c] : f64[s,d]\n"
    "  %10 = div %9[a,b], %8[a] -> [a,b] : f64[s,d]\n  result @O = %10\n  result @M = %5\n"
    "  result @Z = %8\n  result @N = %9\n",
    /* scores of their own; in another type; a power, and a scale */
    "  dim s ~ 8\n  dim t ~ 16\n  dim d ~ 3\n  param in @Q : f32[s,t]\n  param in @V : "
    "f32[d,t]\n"
    "  %0 = input @Q : f32[s,t]\n  %1 = input @V : f32[d,t]\n"
    "  %3 = neg %0[a,b] -> [a,b] : f32[s,t]\n"
    "  %4 = reduce.max %3[a,b] -> [a] : f32[s]\n"
    "  %5 = sub %3[a,b], %4[a] -> [a,b] : f32[s,t]\n  %6 = const 2.0 : f32[]\n"
    "  %7 = mul %5[a,b], %6[] -> [a,b] : f32[s,t]\n"
    "  %8 = exp %7[a,b] -> [a,b] : f32[s,t]\n  %9 = mul %8[a,b], %8[a,b] -> [a,b] : f32[s,t]\n"
    "  %10 = einsum %1[a,b], %9[c,b] -> [a,c] : f32[d,s]\n"
    "  %11 = neg %8[a,b] -> [a,b] : f32[s,t]\n  %12 = sub %11[a,b], %8[a,b] -> [a,b] : "
    "f32[s,t]\n"
    "  %13 = cast %12[a,b] -> [b,a] : f64[t,s]\n"
    "  %14 = reduce.sum %13[a,b] -> [b] : f64[s]\n"
    "  result @N = %10\n  result @Z = %14\n  result @M = %4\n",
    /* one number, and the other axis; narrow types */
    "  dim s ~ 8\n  dim t ~ 16\n  dim d ~ 3\n  param in @Q : f16[t]\n  param in @V : f16[s,t]\n"
    "  %0 = input @Q : f16[t]\n  %1 = input @V : f16[s,t]\n"
    "  %2 = reduce.max %0[a] -> [] : f16[]\n  %3 = sub %0[a], %2[] -> [a] : f16[t]\n"
    "  %4 = exp %3[a] -> [a] : f16[t]\n  %5 = reduce.sum %4[a] -> [] : f16[]\n"
    "  %6 = einsum %1[a,b], %4[b] -> [a] : f16[s]\n"
    "  %7 = reduce.max %1[a,b] -> [b] : f16[t]\n"
    "  %8 = sub %1[a,b], %7[b] -> [a,b] : f16[s,t]\n  %9 = exp %8[a,b] -> [b,a] : f16[t,s]\n"
    "  %10 = reduce.sum %9[a,b] -> [a] : f16[t]\n"
    "  result @Z = %5\n  result @N = %6\n  result @Y = %10\n",
};

static const Machine machine = {.n_levels = 1,
                                .level = {{.name = "cache", .capacity = 64 << 10}},
                                .open_extents = true,
                                .overwrites = true};

typedef struct Trial {
    Ctx ctx;
    Rng rng;
    Graph *g;
    NestFacts facts;
    Nest *nest;
    Kernel *k;
} Trial;

static void broken(Trial *t, const char *what)
{
    print_all(&t->ctx, t->g, t->nest, t->k);
    fail_msg("%s", what);
}

static Graph *graph_of(Trial *t, const char *lines)
{
    Graph *g = graph_of_lines(&t->ctx, "binary", lines);
    opt_online(&t->ctx, g, true);
    return g;
}

/* ---- values ---- */

typedef enum Kind { PLAIN, RISING, FALLING, LOW_FIRST, ALL_LOW, ONE_HIGH, WILD, KINDS } Kind;

static double element(Trial *t, Kind kind, int64_t k, int64_t n)
{
    double v = 1000.0 * ((double)rng_below(&t->rng, 9) - 4.0);
    uint64_t one = rng_below(&t->rng, 8);
    switch (kind) {
    case PLAIN:
    case KINDS:
        return v;
    case RISING:
        return n < 60 ? 1000.0 * (double)(k - n / 2) : v;
    case FALLING:
        return n < 60 ? 1000.0 * (double)(n / 2 - k) : v;
    case LOW_FIRST:
        return 2 * k < n ? -(double)INFINITY : v;
    case ALL_LOW:
        return -(double)INFINITY;
    case ONE_HIGH:
        return one == 0 ? (double)INFINITY : v;
    case WILD:
        return one == 0   ? (double)INFINITY
               : one <= 2 ? -(double)INFINITY
               : one == 3 ? (double)NAN
               : one == 4 ? -0.0
                          : v;
    }
    return v;
}

static void fill(Trial *t, Tensor *x, Kind kind, bool scores)
{
    int64_t row = x->rank == 0 ? 1 : x->extent[x->rank - 1];
    for (int64_t k = 0; k < x->count; k++) {
        double v = scores ? element(t, kind, k % row, row)
                   : kind == WILD && rng_below(&t->rng, 30) == 0
                       ? (double)NAN
                       : (double)rng_below(&t->rng, 5) - 2.0;
        tensor_set(x, k, number_real(x->dtype, v));
    }
}

static bool same(const Tensor *x, const Tensor *y)
{
    bool ok = x->count == y->count;
    for (int64_t k = 0; ok && k < x->count; k++) {
        double a = tensor_get(x, k).re, b = tensor_get(y, k).re;
        ok = a == b || (isnan(a) && isnan(b));
    }
    return ok;
}

/* Does the kernel compute what the graph does? */
static bool agrees(Trial *t, const Kernel *k, const int64_t *dims, Kind kind)
{
    ArenaMark mark = arena_mark(&t->ctx.arena);
    Tensor *args[8], *expected[8], *got[16];
    bool ok = true;
    for (uint32_t p = 0; p < t->g->params.n; p++) {
        args[p] = param_tensor(&t->ctx, &t->g->params.at[p], dims);
        fill(t, args[p], kind, p == 0 || t->g->params.at[p].dtype == DTYPE_F16);
    }
    if (!graph_eval(&t->ctx, &t->ctx.arena, t->g, dims, args, expected) ||
        !loop_eval(&t->ctx, &t->ctx.arena, k, dims, args, got)) {
        broken(t, "the interpreter refuses it");
    }
    for (uint32_t r = 0; ok && r < t->g->results.n; r++) {
        ok = same(expected[r], got[r]);
    }
    arena_reset(&t->ctx.arena, mark);
    return ok;
}

static bool agrees_on_all(Trial *t, const Kernel *k)
{
    static const int64_t extents[] = {0, 1, 3, 4, 5, 9, 17};
    for (Kind kind = PLAIN; kind < KINDS; kind++) {
        for (uint32_t i = 0; i < 7; i++) {
            int64_t dims[3] = {extents[rng_below(&t->rng, 7)], extents[i], 2};
            if (!agrees(t, k, dims, kind)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- random trees ---- */

static uint32_t n_online(const Nest *nest)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        n += nest->items[k].online;
    }
    return n;
}

/* Tiles around the extents that are tried. */
static void change_tiles(Trial *t, Tree *tree)
{
    for (uint32_t k = 0; k < tree->list.n; k++) {
        if (tree->list.at[k].is_loop) {
            tree->list.at[k].tile = 1 + (int64_t)rng_below(&t->rng, 5);
        }
    }
}

static void print_and_read_back(Trial *t)
{
    Text text, again;
    text_init(&text, &t->ctx.arena);
    text_init(&again, &t->ctx.arena);
    nest_dump(t->nest, &text);
    uint32_t source = source_add(&t->ctx.sources, "nest", text_str(&text), (Span){0});
    DumpTree *tree = dump_tree_read(&t->ctx, &t->ctx.arena, source);
    Nest *back = tree == NULL ? NULL : nest_read(&t->ctx, &t->ctx.arena, t->g, tree->line[0]);
    if (back == NULL) {
        broken(t, "the nest does not read");
    }
    nest_dump(back, &again);
    assert_string_equal(text.at, again.at);
    t->nest = back;
}

static void trees_of(const char *lines, uint64_t seed, uint32_t *online, uint32_t *refused)
{
    Trial *t = calloc(1, sizeof *t);
    Tree none = {0};
    ctx_init(&t->ctx);
    t->rng.state = seed;
    t->g = graph_of(t, lines);
    Arena *arena = &t->ctx.arena;
    nest_facts(arena, t->g, &t->facts);
    greedy_tree(&t->ctx, arena, &t->facts, &machine, false, &none);
    for (uint32_t k = 0; k < TREES; k++) {
        Tree tree =
            random_walk(arena, &t->rng, &t->facts, &none, 2 + (uint32_t)rng_below(&t->rng, 8));
        change_tiles(t, &tree);
        t->k = NULL;
        t->nest = tree_nest(arena, t->g, &tree);
        t->nest->values = nest_place(arena, &t->facts, &machine, t->nest);
        bool legal = nest_online_is_legal(arena, &t->facts, t->nest);
        if (nest_verify(&t->ctx, t->nest, "test") != legal) {
            broken(t, legal ? "a legal nest is refused" : "an illegal nest is accepted");
        }
        t->ctx.diags.list.n = t->ctx.diags.n_errors = 0;
        *refused += !legal;
        if (!legal || n_online(t->nest) == 0) {
            continue;
        }
        ++*online;
        print_and_read_back(t);
        t->k = nest_lower(&t->ctx, arena, t->nest);
        if (!loop_verify(&t->ctx, t->k, "test")) {
            broken(t, "its kernel is refused");
        }
        if (!agrees_on_all(t, t->k)) {
            broken(t, "it computes something else");
        }
    }
    ctx_release(&t->ctx);
    free(t);
}

static void one_pass_computes_what_the_graph_does(void **state)
{
    uint32_t online = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 12; seed += one_of(3)) {
        for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
            trees_of(programs[p], seed * 16 + p, &online, &refused);
        }
    }
    print_message("%u nests in one pass, %u refused\n", online, refused);
    assert_true(online > 100 / one_of(3) && refused > 20 / one_of(3));
}

/* ---- faults ---- */

#define AXES "nest {\n  axis i [%2[b], %4[b], %5[b], %6[b]]\n"

typedef struct Lines {
    const char *nest, *problem; /* null: it is good */
} Lines;

/* Nests of the first program, whose values are numbered anew when it is read. */
static const Lines nests[] = {
    {AXES "  for i step 4 online {\n    %2 result 1\n    %4 tile\n    %5 result 2\n    %6 "
          "tile\n  }\n"
          "  %7 result 0\n}\n",
     NULL},
    {AXES
     "  for i step 4 {\n    %2 result 1\n    %4 tile\n    %5 result 2\n    %6 result 3\n  }\n"
     "  %7 result 0\n}\n",
     "reads a value before its loops have completed it"},
    {AXES "  %2 result 1\n  for i step 4 online {\n    %4 tile\n    %5 result 2\n    %6 result "
          "3\n  }\n"
          "  %7 result 0\n}\n",
     "has a loop that is called online and reads no fold of it"},
    {AXES "  for i step 4 online {\n    %2 result 1\n    %4 workspace\n  }\n  %5 result 2\n  "
          "%6 result 3\n"
          "  %7 result 0\n}\n",
     "is made of a fold that its loop has not completed, and kept"},
    {AXES
     "  for i step 4 parallel online {\n    %2 result 1\n    %4 tile\n    %5 result 2\n    %6 "
     "tile\n"
     "  }\n  %7 result 0\n}\n",
     "is folded over a loop whose iterations run at the same time"},
    {"nest {\n  axis i [%2[b], %4[b], %5[b], %6[b]]\n  axis j [%2[a], %4[a], %5[a], %6[a]]\n"
     "  for i step 4 online {\n    for j step 2 {\n      %2 result 1\n      %4 tile\n      %5 "
     "tile\n"
     "      %6 result 3\n    }\n  }\n  %7 result 0\n}\n",
     "shares an inner loop with a fold that it reads"},
    {"nest {\n  axis i [%2[b], %4[b], %5[b], %6[b], %7[b]]\n"
     "  for i step 4 online {\n    %2 result 1\n    %4 tile\n    %5 result 2\n    %6 result 3\n"
     "    %7 result 0\n  }\n}\n",
     "label of another extent"},
};

static Trial *trial_of(const char *nest, bool reads)
{
    Trial *t = calloc(1, sizeof *t);
    ctx_init(&t->ctx);
    t->rng.state = 1;
    t->g = graph_of(t, programs[0]);
    uint32_t source = source_add(&t->ctx.sources, "nest", str_from(nest), (Span){0});
    DumpTree *tree = dump_tree_read(&t->ctx, &t->ctx.arena, source);
    t->nest = tree == NULL ? NULL : nest_read(&t->ctx, &t->ctx.arena, t->g, tree->line[0]);
    if ((t->nest != NULL) != reads) {
        broken(t, nest);
    }
    return t;
}

static void free_trial(Trial *t)
{
    ctx_release(&t->ctx);
    free(t);
}

static void wrong_nests_are_refused_and_say_why(void **state)
{
    for (size_t k = 0; k < sizeof nests / sizeof nests[0]; k++) {
        Trial *t = trial_of(nests[k].nest, nests[k].problem == NULL);
        if (nests[k].problem != NULL && strstr(messages(&t->ctx), nests[k].problem) == NULL) {
            broken(t, nests[k].problem);
        }
        free_trial(t);
    }
}

/* Does the statement make a sum or the copy follow, or the factor? */
static bool follows(const Kernel *k, const Stmt *s)
{
    if (s->kind != STMT_TILE || s->fold != OP_COPY) {
        return false;
    }
    const char *name = k->bufs.at[s->dst].name->text;
    bool own = s->value->kind == EXPR_OP && s->value->op == OP_MUL &&
               s->value->arg[0]->kind == EXPR_LOAD && s->value->arg[0]->buf == s->dst;
    return own || (strncmp(name, "before", 6) == 0 && s->value->kind == EXPR_OP);
}

/* Each such statement of the block, dropped, or run after the sum that it makes follow: both change
 * the numbers. */
static uint32_t plant(Trial *t, Stmt **body, uint32_t n)
{
    uint32_t planted = 0;
    for (uint32_t k = 1; k < n; k++) {
        Stmt *was = body[k], *sum = k + 1 < n ? body[k + 1] : NULL;
        if (!follows(t->k, was)) {
            continue;
        }
        Stmt *nothing = arena_copy(&t->ctx.arena, was, sizeof *was);
        nothing->kind = STMT_BLOCK;
        nothing->n_body = 0;
        nothing->when = NULL;
        body[k] = nothing;
        if (agrees_on_all(t, t->k)) {
            broken(t, "nobody misses a statement");
        }
        body[k] = was;
        planted++;
        if (sum != NULL && sum->kind == STMT_TILE && sum->fold != OP_COPY &&
            sum->dst == was->dst) {
            body[k] = sum;
            body[k + 1] = was;
            if (agrees_on_all(t, t->k)) {
                broken(t, "nobody sees the order of two statements");
            }
            body[k] = was;
            body[k + 1] = sum;
        }
    }
    return planted;
}

static void faults_of_the_kernel_change_its_numbers(void **state)
{
    Trial *t = trial_of(nests[0].nest, true);
    t->k = nest_lower(&t->ctx, &t->ctx.arena, t->nest);
    assert_true(loop_verify(&t->ctx, t->k, "test") && agrees_on_all(t, t->k));
    uint32_t planted = plant(t, t->k->body, t->k->n_body);
    for (uint32_t i = 0; i < t->k->n_body; i++) {
        Stmt *s = t->k->body[i];
        if (s->kind == STMT_FOR) {
            planted += plant(t, s->body, s->n_body);
        }
    }
    assert_int_equal(planted, 5); /* two sums in the loop and after it, and the copy */
    free_trial(t);
}

TESTS(TEST(wrong_nests_are_refused_and_say_why), TEST(faults_of_the_kernel_change_its_numbers),
      TEST(one_pass_computes_what_the_graph_does))
