/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest back end does what the interface asks: its output is text, which reads back to
 * its legal kernels. */
#include <string.h>

#include "loop/loop.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "target/target.h"
#include "support/test.h"

extern const Target target_null;

static const char program[] = "tdsl-dump loop 1\n"
                              "source \"add.tdsl\"\n"
                              "\n"
                              "kernel add {\n"
                              "  form tiled\n"
                              "  dim n ~ 100\n"
                              "  arg @a : f32[n] in\n"
                              "  arg @b : f32[n] in\n"
                              "  arg @c : f32[n] result\n"
                              "  for $i in 0..n step 8 parallel {\n"
                              "    map [j in $i:8<n] @c[j] = add(@a[j], @b[j])\n"
                              "  }\n"
                              "}\n";

static KernelModule *read_text(Ctx *ctx, Str text)
{
    return kernel_module_read(ctx, source_add(&ctx->sources, "add.tir", text, (Span){0, 0, 0}));
}

static void the_output_is_the_legal_kernels_as_a_dump(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *tiled = read_text(&ctx, str_from(program));
    assert_non_null(tiled);
    KernelModule legal = {.arena = &ctx.arena, .source_name = tiled->source_name};
    const TargetPass *pass = target_null.passes;
    assert_null(pass[1].name);
    Kernel *k = pass->run(&target_null, &ctx, &ctx.arena, tiled->kernels.at[0]);
    assert_non_null(k);
    assert_int_equal(tiled->kernels.at[0]->form, LOOP_TILED);
    assert_true(loop_verify(&ctx, k, "legalise") && target_null.verify(&target_null, &ctx, k));
    vec_push(&ctx.arena, &legal.kernels, k);

    OutputSet out = {.arena = &ctx.arena};
    const EmitOptions options = {.source_name = "add.tdsl"};
    assert_true(target_null.emit(&target_null, &ctx, &legal, &options, &out));
    assert_int_equal(out.files.n, 1);
    assert_string_equal(out.files.at[0].suffix, ".tir");

    const char *tiled_form = strstr(program, "form tiled");
    char *expected =
        str_format(&ctx.arena, "%.*sform legal \"null\"%s", (int)(tiled_form - program),
                   program, tiled_form + strlen("form tiled"));
    assert_string_equal(out.files.at[0].text.at, expected);
    assert_non_null(read_text(&ctx, out.files.at[0].text));
    ctx_release(&ctx);
}

static void its_machine_forbids_nothing(void **state)
{
    const Machine *m = target_null.machine;
    assert_true(m->open_extents && m->complex_numbers && m->overwrites && m->online &&
                m->pairs);
    assert_int_equal(m->n_levels, 1); /* all is in memory, which holds everything */
    assert_int_equal(m->level[0].capacity, 0);
    assert_int_equal(machine_tile_capacity(m), 0);
}

static void spaces_are_known_by_their_names(void **state)
{
    for (Space s = SPACE_ARGUMENT; s < SPACE_COUNT; s++) {
        Space found = SPACE_COUNT;
        assert_true(space_from_name(str_from(space_name(s)), &found));
        assert_int_equal(found, s);
    }
    Space untouched = SPACE_TILE;
    assert_false(space_from_name(str_from("L2"), &untouched));
    assert_int_equal(untouched, SPACE_TILE);
}

TESTS(TEST(the_output_is_the_legal_kernels_as_a_dump), TEST(its_machine_forbids_nothing),
      TEST(spaces_are_known_by_their_names))
