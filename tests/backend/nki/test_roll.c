/* SPDX-License-Identifier: Apache-2.0 */
/* Loops are made of flat legal kernels: what becomes one, what stays, and that the instructions
 * and what they compute are the same. */
#include <string.h>

#include "backend/nki/roll.h"
#include "support/test.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"

extern const Target target_trn2;

static KernelModule *read_text(Ctx *ctx, const char *text)
{
    uint32_t source = source_add(&ctx->sources, "test.tir", str_from(text), (Span){0, 0, 0});
    KernelModule *m = kernel_module_read(ctx, source);
    assert_non_null(m);
    return m;
}

/* A kernel of the given statements; X and Y are [512,512]. */
static Kernel *kernel_of(Ctx *ctx, const char *body)
{
    const char *text = str_format(&ctx->arena,
                                  "tdsl-dump loop 1\nsource \"x.tdsl\"\n\nkernel x {\n"
                                  "  form legal \"trn2\"\n"
                                  "  arg @X : f32[512,512] in\n"
                                  "  arg @Y : f32[512,512] result\n%s}\n",
                                  body);
    return read_text(ctx, text)->kernels.at[0];
}

static Kernel *roll(Ctx *ctx, const Kernel *k)
{
    Kernel *rolled = nki_roll(ctx, &ctx->arena, k, nki_chip("trn2"), 1);
    assert_non_null(rolled);
    assert_true(loop_verify(ctx, rolled, "test"));
    assert_true(nki_verify(&target_trn2, ctx, rolled));
    assert_true(roll_same(&ctx->arena, k, rolled));
    return rolled;
}

static const char *text_of(Ctx *ctx, const Kernel *k)
{
    Text t;
    text_init(&t, &ctx->arena);
    kernel_dump(k, &t);
    return t.at;
}

static uint32_t count(Stmt *const *body, uint32_t n, StmtKind kind)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        found += body[i]->kind == kind;
        found += body[i]->kind == STMT_FOR ? count(body[i]->body, body[i]->n_body, kind) : 0;
    }
    return found;
}

/* `n` tiles loaded and stored in turn, rows i * 128. */
static const char *copies(Ctx *ctx, int n)
{
    Text t;
    text_init(&t, &ctx->arena);
    for (int i = 0; i < n; i++) {
        text_printf(&t,
                    "  alloc @t_%d : f32[128,512] tile\n"
                    "  copy [q0 in 0..128, q1 in 0..512] @t_%d[q0,q1] = @X[q0+%d,q1]\n"
                    "  copy [q0 in 0..128, q1 in 0..512] @Y[q0+%d,q1] = @t_%d[q0,q1]\n",
                    i, i, 128 * i, 128 * (n - 1 - i), i);
    }
    return t.at;
}

static void equal_runs_become_one_loop_whose_positions_grow(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Kernel *flat = kernel_of(&ctx, copies(&ctx, 4));
    const Kernel *k = roll(&ctx, flat);
    assert_int_equal(count(k->body, k->n_body, STMT_FOR), 1);
    assert_int_equal(count(k->body, k->n_body, STMT_TILE), 2);
    assert_non_null(strstr(text_of(&ctx, k), "for $i in 0..4 step 1"));
    assert_non_null(strstr(text_of(&ctx, k), "128*$i"));
    ctx_release(&ctx);
}

static void a_step_that_changes_ends_the_loop(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const char *body = "  alloc @t : f32[128,512] tile\n"
                       "  copy [q0 in 0..128, q1 in 0..512] @t[q0,q1] = @X[q0,q1]\n"
                       "  copy [q0 in 0..128, q1 in 0..64] @Y[q0,q1] = @t[q0,q1]\n"
                       "  copy [q0 in 0..128, q1 in 0..64] @Y[q0,q1+64] = @t[q0,q1+64]\n"
                       "  copy [q0 in 0..128, q1 in 0..64] @Y[q0,q1+128] = @t[q0,q1+128]\n"
                       "  copy [q0 in 0..128, q1 in 0..64] @Y[q0,q1+256] = @t[q0,q1+192]\n";
    const Kernel *k = roll(&ctx, kernel_of(&ctx, body));
    assert_non_null(strstr(text_of(&ctx, k), "for $i in 0..3 step 1"));
    assert_int_equal(count(k->body, k->n_body, STMT_TILE), 3);
    ctx_release(&ctx);
}

static void tiles_that_live_on_lie_side_by_side_in_one(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Text t;
    text_init(&t, &ctx.arena);
    for (int i = 0; i < 4; i++) {
        text_printf(&t,
                    "  alloc @a_%d : f32[128,512] tile\n"
                    "  copy [q0 in 0..128, q1 in 0..512] @a_%d[q0,q1] = @X[q0+%d,q1]\n",
                    i, i, 128 * i);
    }
    for (int i = 0; i < 4; i++) {
        text_printf(&t,
                    "  alloc @b_%d : f32[128,512] tile\n"
                    "  map [p in 0..128, f in 0..512] @b_%d[p,f] = exp(@a_%d[p,f])\n"
                    "  copy [q0 in 0..128, q1 in 0..512] @Y[q0+%d,q1] = @b_%d[q0,q1]\n",
                    i, i, i, 128 * i, i);
    }
    const Kernel *k = roll(&ctx, kernel_of(&ctx, t.at));
    const char *text = text_of(&ctx, k);
    assert_non_null(strstr(text, "@x_tiles : f32[128,2048] tile"));
    assert_non_null(strstr(text, "@y_tile : f32[128,512] tile"));
    assert_int_equal(count(k->body, k->n_body, STMT_TILE), 3);
    assert_int_equal(count(k->body, k->n_body, STMT_FOR), 2);
    ctx_release(&ctx);
}

/* Each part of `n` PSUM tiles: opened one after the other, then emptied. */
static void psum_banks_that_are_open_together_are_a_list(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Text t;
    text_init(&t, &ctx.arena);
    text_put(&t, "  alloc @a : f32[128,512] tile\n"
                 "  copy [q0 in 0..128, q1 in 0..512] @a[q0,q1] = @X[q0,q1]\n");
    for (int i = 0; i < 4; i++) {
        text_printf(&t,
                    "  alloc @z_%d : f32[128,512] acc\n"
                    "  matmul [p in 0..128, f in 0..512, k in 0..128] @z_%d[p,f] += "
                    "mul(@a[k,p+%d], @a[k,f]) begins\n",
                    i, i, 128 * i);
    }
    for (int i = 0; i < 4; i++) {
        text_printf(&t,
                    "  alloc @c_%d : f32[128,512] tile\n"
                    "  copy [p in 0..128, f in 0..512] @c_%d[p,f] = @z_%d[p,f]\n"
                    "  copy [q0 in 0..128, q1 in 0..512] @Y[q0+%d,q1] = @c_%d[q0,q1]\n",
                    i, i, i, 128 * i, i);
    }
    const Kernel *k = roll(&ctx, kernel_of(&ctx, t.at));
    const char *text = text_of(&ctx, k);
    assert_non_null(strstr(text, "@acc : f32[128,2048] acc"));
    assert_int_equal(count(k->body, k->n_body, STMT_FOR), 2);
    NkiCost cost;
    assert_true(nki_cost(k, nki_chip("trn2"), &cost));
    assert_int_equal(cost.psum_peak, 4);
    ctx_release(&ctx);
}

/* Two parts of a bank one after the other, each the sum of `n` matmuls. */
static const char *groups(Ctx *ctx, int n)
{
    Text t;
    text_init(&t, &ctx->arena);
    text_put(&t, "  alloc @a : f32[128,512] tile\n"
                 "  alloc @c : f32[128,512] tile\n"
                 "  alloc @z : f32[128,512] acc\n"
                 "  copy [q0 in 0..128, q1 in 0..512] @a[q0,q1] = @X[q0,q1]\n");
    for (int i = 0; i < 2 * n; i++) {
        text_printf(&t,
                    "  matmul [p in 0..128, f in 0..256, k in 0..128] @z[p,f+%d] += "
                    "mul(@a[k,p+%d], @a[k,f])%s\n",
                    i / n * 256, i % n * 128, i % n == 0 ? " begins" : "");
    }
    text_put(&t, "  copy [p in 0..128, f in 0..512] @c[p,f] = @z[p,f]\n"
                 "  copy [q0 in 0..128, q1 in 0..512] @Y[q0,q1] = @c[q0,q1]\n");
    return t.at;
}

static void a_group_begins_in_the_first_iteration_of_loops_that_go_on_with_it(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const Kernel *k = roll(&ctx, kernel_of(&ctx, groups(&ctx, 3)));
    assert_non_null(
        strstr(text_of(&ctx, k), "for $i in 0..2 step 1 {\n    for $j in 0..3 step 1 {\n"));
    assert_non_null(strstr(text_of(&ctx, k), ") begins with $j\n"));
    k = roll(&ctx, kernel_of(&ctx, groups(&ctx, 1)));
    assert_non_null(strstr(text_of(&ctx, k), ") begins\n"));
    ctx_release(&ctx);
}

static void another_order_place_or_number_of_instructions_is_not_the_same(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const char *text = copies(&ctx, 2);
    const Kernel *k = kernel_of(&ctx, text);
    assert_true(roll_same(&ctx.arena, k, kernel_of(&ctx, text)));
    assert_false(roll_same(&ctx.arena, k, kernel_of(&ctx, copies(&ctx, 1))));
    static const char *const wrong[][2] = {
        {"@X[q0+128,q1]", "@X[q0+127,q1]"},
        {"@Y[q0+0,q1] = @t_1", "@Y[q0+0,q1] = @t_0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *at = strstr(text, wrong[i][0]);
        assert_non_null(at);
        const char *changed = str_format(&ctx.arena, "%.*s%s%s", (int)(at - text), text,
                                         wrong[i][1], at + strlen(wrong[i][0]));
        assert_false(roll_same(&ctx.arena, k, kernel_of(&ctx, changed)));
    }
    ctx_release(&ctx);
}

/* Text that is one mistake away from a good kernel; who finds it says so. */
static void planted_faults_are_found(void **state)
{
    static const struct {
        const char *body, *message;
    } faults[] = {
        /* good: the stages of a pipeline of two */
        {"  for $i in 0..6 step 1 {\n    block if $i in 0..4 {\n"
         "      copy [q0 in 0..128, q1 in 0..128] @a[q0,q1+128*$i] = @X[q0,q1+128*$i]\n    }\n"
         "    block if $i in 2..6 {\n"
         "      copy [q0 in 0..128, q1 in 0..128] @Y[q0,q1+128*$i-256] = "
         "@a[q0,q1+128*$i-256]\n    }\n  }\n",
         NULL},
        /* a guard that begins or ends one off */
        {"  for $i in 0..6 step 1 {\n    block if $i in 0..5 {\n"
         "      copy [q0 in 0..128, q1 in 0..128] @a[q0,q1+128*$i] = @X[q0,q1+128*$i]\n"
         "    }\n  }\n",
         "may be past the end"},
        {"  for $i in 0..6 step 1 {\n    block if $i in 1..6 {\n"
         "      copy [q0 in 0..128, q1 in 0..128] @Y[q0,q1+128*$i-256] = "
         "@a[q0,q1+128*$i-256]\n    }\n  }\n",
         "may be below 0"},
        /* the bound of a remainder */
        {"  for $i in 0..5 step 1 {\n    block if $i in 0..4 {\n"
         "      copy [q0 in 0..128, q1 in 0..120] @a[q0,q1+120*$i] = @X[q0,q1+120*$i]\n    }\n"
         "    block if $i in 4..5 {\n"
         "      copy [q0 in 0..128, q1 in 0..33] @a[q0,q1+480] = @X[q0,q1+480]\n    }\n  }\n",
         "may be past the end"},
        /* a store into an input */
        {"  copy [q0 in 0..128, q1 in 0..512] @X[q0,q1] = @a[q0,q1]\n", "'@X' is only read"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        const char *text = str_format(&ctx.arena,
                                      "tdsl-dump loop 1\nsource \"x.tdsl\"\n\nkernel x {\n"
                                      "  form legal \"trn2\"\n"
                                      "  arg @X : f32[512,512] in\n"
                                      "  arg @Y : f32[512,512] result\n"
                                      "  alloc @a : f32[128,512] tile\n%s}\n",
                                      faults[i].body);
        uint32_t source = source_add(&ctx.sources, "x.tir", str_from(text), (Span){0, 0, 0});
        const KernelModule *m = kernel_module_read(&ctx, source);
        Text said;
        text_init(&said, &ctx.arena);
        diags_render(&ctx.diags, &said, false);
        if (faults[i].message == NULL) {
            assert_non_null(m);
        } else {
            assert_null(m);
            if (strstr(said.at, faults[i].message) == NULL) {
                fail_msg("%s: not said of\n%s\nbut\n%s", faults[i].message, text, said.at);
            }
        }
        ctx_release(&ctx);
    }
}

TESTS(TEST(equal_runs_become_one_loop_whose_positions_grow),
      TEST(a_step_that_changes_ends_the_loop), TEST(tiles_that_live_on_lie_side_by_side_in_one),
      TEST(psum_banks_that_are_open_together_are_a_list),
      TEST(a_group_begins_in_the_first_iteration_of_loops_that_go_on_with_it),
      TEST(planted_faults_are_found),
      TEST(another_order_place_or_number_of_instructions_is_not_the_same))
