/* SPDX-License-Identifier: Apache-2.0 */
/* Every nest that --tune may try is legal and computes what its graph does, through the interpreters of all stages, or is
 * refused by the target; so do the nests that are made from those in turn. */
#include "support/test.h"

#include "driver/compile.h"
#include "nest/variants.h"
#include "nest/verify.h"
#include "support/quick.h"

/* How many variants of each are varied again, and half as many in the gate. */
#define AGAIN 2

static Ctx ctx;

typedef struct Walk {
    Compilation *c;
    struct Checker *checker; /* of the first that was run: what the graph computes */
    uint32_t ran, refused;
} Walk;

static void fail_with(const char *what)
{
    Text t;
    text_init(&t, &ctx.arena);
    diags_render(&ctx.diags, &t, false);
    fail_msg("%s\n%s", what, t.at);
}

static void run_nest(Walk *w, const NestVariant *v)
{
    Compilation one;
    Diags before = ctx.diags;
    compilation_alone(&one, w->c, &ctx.arena, 0, v->nest);
    one.check_each = true;
    one.checker = w->checker;
    if (w->checker == NULL) {
        assert_true(compilation_check(&one, STAGE_PATH, "the graph"));
        w->checker = one.checker;
    }
    if (nest_verify(&ctx, v->nest, "the variant") && compilation_run(&one, STAGE_OUTPUT)) {
        w->ran++;
        return;
    }
    for (uint32_t k = before.list.n; k < ctx.diags.list.n; k++) {
        if (ctx.diags.list.at[k]->severity != SEVERITY_UNSUPPORTED) {
            fail_with(v->what);
        }
    }
    w->refused++;
    ctx.diags = before;
}

static void run_levels(Walk *w, const Nest *nest, uint32_t depth)
{
    NestVariants levels = {0};
    nest_other_levels(&ctx, &ctx.arena, w->c->target->machine, nest, &levels);
    uint32_t step = levels.list.n / (AGAIN / one_in_gate_of(2)) + 1;
    for (uint32_t k = 0; k < levels.list.n; k++) {
        assert_true(levels.list.at[k].nest->cost.seconds > 0);
        run_nest(w, &levels.list.at[k]);
        if (depth > 0 && k % step == step / 2) {
            run_levels(w, levels.list.at[k].nest, depth - 1);
        }
    }
}

/* Returns how many ran. */
static uint32_t run_program(const char *text)
{
    Options options = {.tool = TOOL_TDSLC};
    Input in = {.ctx = &ctx, .arena = &ctx.arena, .options = &options};
    Compilation c;
    NestVariants trees = {0};
    Walk w = {.c = &c};
    compilation_init(&c, &ctx, &ctx.arena, target_find("c"));
    ctx.diags.no_warnings = true;
    if (!input_text(&in, "test.tdsl", str_from(text)) || !compilation_start(&c, &in, NULL) ||
        !compilation_run(&c, STAGE_NEST)) {
        fail_with(text);
    }
    NestVariant own = {c.nests[0], "the model's choice"};
    run_nest(&w, &own);
    assert_int_equal(w.ran, 1);
    nest_other_trees(&ctx, &ctx.arena, c.target->machine, c.nests[0], &trees);
    assert_true(trees.list.n >= 1);
    for (uint32_t k = 0; k < trees.list.n; k++) {
        run_nest(&w, &trees.list.at[k]);
        run_levels(&w, trees.list.at[k].nest, 0);
    }
    run_levels(&w, c.nests[0], 1);
    assert_true(w.refused < 4 * w.ran);
    compilation_release(&c);
    return w.ran;
}

static void levels_of_products(void **state)
{
    static const char *const kernels[] = {
        "kernel k(A: f32[19, 70], B: f32[70, 37]) -> (C: f32[19, 37]) { C[i,j] = A[i,k] * "
        "B[k,j]; }",
        "kernel k(A: f64[70, 19], B: f64[37, 70]) -> (C: f64[37, 19]) { C[j,i] = A[k,i] * "
        "B[j,k]; }",
        "kernel k(A: c64[9, 34], B: c64[34, 18]) -> (C: c64[9, 18]) { C[i,j] = A[i,k] * "
        "B[k,j]; }",
        "kernel k(A: f32[3, 9, 34], B: f32[3, 34, 18]) -> (C: f32[3, 9, 18]) "
        "{ C[h,i,j] = A[h,i,k] * B[h,k,j]; }",
        "kernel k(A: f32[6, 9, 5, 7], B: f32[7, 10, 9, 4]) -> (C: f32[10, 5, 6, 4]) "
        "{ C[j,h,i,g] = A[i,k,h,l] * B[l,j,k,g]; }",
        "kernel k(A: f32[5, 6, 33], B: f32[33, 7, 8]) -> (C: f32[7, 5, 8, 6]) "
        "{ C[g,h,j,i] = A[h,i,k] * B[k,g,j]; }",
        "dim n ~ 40; kernel k(A: f32[n, n], B: f32[n, n]) -> (C: f32[n, n]) "
        "{ C[i,j] = A[i,k] * B[k,j]; }",
        "kernel k(A: i32[19, 40], B: i32[40, 9]) -> (C: i32[19, 9]) { C[i,j] = A[i,k] * "
        "B[k,j]; }",
    };
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        uint32_t ran = run_program(kernels[k]);
        assert_true(ran >= 2);
    }
}

static void nests_of_programs(void **state)
{
    assert_true(run_program("kernel k(A: f32[16, 33], B: f32[33, 20], C: f32[20, 12]) -> "
                            "(R: f32[16, 12], s: f32) { T[i,j] = A[i,p] * B[p,j]; "
                            "R[i,l] = T[i,j] * C[j,l]; s = max[i,j](T[i,j]); }") > 10);
    assert_true(run_program("dim n ~ 64, m ~ 24; kernel k(A: f64[n, m], X: inout f64[n, n], "
                            "b: f64[n]) -> (y: f64[n]) { S[i,j] = A[i,p] * A[j,p]; "
                            "X[i,j] = X[i,j] + S[i,j] * b[j]; y[i] = S[i,j] * b[j]; }") > 10);
    assert_true(run_program("kernel k(A: f32[9, 40]) -> (B: f32[9, 40]) "
                            "{ B[i,j] = 2 * A[i,j]; }") >= 2);
}

TESTS_IN_CTX(TEST(levels_of_products), TEST(nests_of_programs))
