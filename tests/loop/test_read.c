/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text: what is printed reads back to the same kernel, and what is no kernel is
 * refused with its place. */
#include "support.h"
#include "support/places.h"
#include "loop/copy.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"

static void assert_round_trip(const char *text)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m = read_text(&ctx, text);
    if (m == NULL) {
        fail_msg("%s", messages(&ctx));
    }
    Text out;
    text_init(&out, &ctx.arena);
    kernel_module_dump(m, &out);
    assert_string_equal(out.at, text);
    ctx_release(&ctx);
}

static void every_kernel_of_the_tests_reads_back_to_the_same_bytes(void **state)
{
    static const char *const names[] = {"matmul", "begins",    "guards", "matmul_legal",
                                        "mlp",    "zeros",     "mp2",    "attention",
                                        "nested", "constants", "parts",  "scopes",
                                        "sizes",  "panels",    "cascade"};
    Ctx ctx;
    ctx_init(&ctx);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_round_trip(kernel_text(&ctx.arena, names[i]));
    }
    ctx_release(&ctx);
}

static void a_module_may_hold_no_kernel_or_many(void **state)
{
    assert_round_trip("tdsl-dump loop 1\n");
    assert_round_trip("tdsl-dump loop 1\n"
                      "\nkernel a {\n  form tiled\n}\n"
                      "\nkernel b {\n  form tiled\n}\n");
}

static void freely_written_text_becomes_canonical(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m =
        read_text(&ctx, "tdsl-dump loop 1 ; a comment\n"
                        "kernel k {\n"
                        "dim n ~ 5\n"
                        "form tiled\n"
                        "arg @x : f32[n] result\n\n"
                        "for $a in 0 .. n step 2 {\n"
                        "fill [ i in 0+$a+0*$a : 2 < n ] @x[ 2*i - 1*i ] = f32(1e0)\n"
                        "}\n}\n");
    if (m == NULL) {
        fail_msg("%s", messages(&ctx));
    }
    Text out;
    text_init(&out, &ctx.arena);
    kernel_module_dump(m, &out);
    assert_string_equal(out.at, "tdsl-dump loop 1\n"
                                "\nkernel k {\n"
                                "  form tiled\n"
                                "  dim n ~ 5\n"
                                "  arg @x : f32[n] result\n"
                                "  for $a in 0..n step 2 {\n"
                                "    fill [i in $a:2<n] @x[i] = 1.0\n"
                                "  }\n"
                                "}\n");
    ctx_release(&ctx);
}

static void parts_of_complex_numbers_are_pairs_of_the_same_bytes(void **state)
{
    static const char *const wrong[] = {
        "f32[3,3] in of c64[3]", "f64[3,2] in of c64[3]",     "f32[3,2] in of f32[3]",
        "f32[2] in of c64[]",    "f32[3,2] in of c64[4]",     "f32[3,2] in of c64[3,2]",
        "f32[3,2] in of c64[]",  "f32[3,2] scalar of c64[3]", "f32[1,2] scalar"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        const char *text = str_format(
            &ctx.arena, "tdsl-dump loop 1\n\nkernel a {\n  form tiled\n  arg @A : %s\n}\n",
            wrong[i]);
        if (read_text(&ctx, text) != NULL) {
            fail_msg("accepted: %s", wrong[i]);
        }
        ctx_release(&ctx);
    }
}

/* A kernel built in another order than its text is numbered the same after reading. */
static void numbers_of_variables_and_buffers_survive(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m = read_text(&ctx, kernel_text(&ctx.arena, "constants"));
    assert_non_null(m);
    const Kernel *k = m->kernels.at[0];
    assert_string_equal(k->vars.at[1].name->text, "b");
    assert_string_equal(k->vars.at[3].name->text, "never");
    assert_string_equal(k->bufs.at[0].name->text, "flag");
    assert_string_equal(k->bufs.at[3].name->text, "dead");
    assert_int_equal(k->bufs.at[0].param, 2);
    assert_int_equal(k->args.at[0].buf, 1);
    assert_string_equal(k->name->text, "a b");
    assert_string_equal(k->target, "some target");
    ctx_release(&ctx);
}

static void a_numbered_kernel_needs_no_order_line(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    char *text = kernel_text(&ctx.arena, "constants");
    KernelModule *m = read_text(&ctx, text);
    assert_non_null(m);
    m->kernels.at[0] = kernel_numbered(&ctx.arena, m->kernels.at[0]);
    assert_true(loop_verify(&ctx, m->kernels.at[0], "test"));
    Text out;
    text_init(&out, &ctx.arena);
    kernel_module_dump(m, &out);
    text = replaced(&ctx.arena, text, "  unused @dead : f32[o,p] workspace\n", 0, "");
    text = replaced(&ctx.arena, text,
                    "  order [$i, b, a, never] [@flag, @z, @h, @dead, @least]\n", 0, "");
    /* terms of an index are printed in the order of their variables */
    assert_string_equal(out.at, text);
    ctx_release(&ctx);
}

static void places_in_the_program_survive(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m = read_text(&ctx, kernel_text(&ctx.arena, "matmul"));
    assert_non_null(m);
    const Kernel *k = m->kernels.at[0];
    uint32_t line = 0, column = 0;
    source_position(&ctx.sources, k->bufs.at[1].span, &line, &column);
    assert_int_equal(line, 1);
    assert_int_equal(column, 28);
    assert_string_equal(source_get(&ctx.sources, k->span.source)->name, "matmul.tdsl");
    ctx_release(&ctx);
}

/* The chapter's example is mlp.tir, so that what it shows is what is printed. */
static void the_documentation_shows_a_kernel_that_is_tested(void **state)
{
    static const char *const files[] = {"docs/ir-loop.md", "docs/ir.md"};
    Arena a;
    arena_init(&a, NULL);
    char *kernel = kernel_text(&a, "mlp");
    bool shown = false;
    for (size_t i = 0; i < 2; i++) {
        FILE *f = fopen(source_file(files[i]), "rb");
        if (f != NULL) {
            char *text = arena_alloc(&a, 1 << 20);
            assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
            fclose(f);
            shown = shown || strstr(text, kernel) != NULL;
        }
    }
    assert_true(shown);
    arena_release(&a);
}

/* A text that differs from mlp.tir in one place, and what the message says. */
typedef struct Refusal {
    const char *from, *to, *message;
} Refusal;

static const Refusal refusals[] = {
    {"tdsl-dump loop 1", "tdsl-dump graph 1", "'tdsl-dump loop 1'"},
    {"loop 1", "loop 2", "version"},
    {"loop 1\n", "loop 1 {\n}\n", "this line has no block"},
    {"loop 1\n", "loop 1\nsource x\n", "a file name in quotes"},
    {"loop 1\n", "loop 1\nsource \"x\" {\n}\n", "this line has no block"},
    {"loop 1\n", "loop 1\nsource \"x\" x\n", "end"},
    {"form tiled", "form round", "'tiled' or 'legal'"},
    {"dim o ~ 16", "dim o ~ 16 16", "end"},
    {"dim o ~ 16", "dim p ~ 16", "no dim 'o'"},
    {"arg @X : f32[o,24] in", "arg @X : f32[o,24] on", "in, inout, scalar or result"},
    {"arg @X : f32[o,24] in", "arg @X : f31[o,24] in", "type"},
    {"arg @b : f32[20] in", "arg @X : f32[20] in", "declaration of 'X'"},
    {"tile\n", "tyle\n", "no space 'tyle'"},
    {"work [o,20,24]", "work o", "in brackets"},
    {"    alloc @acc : f32[8,20] tile\n", "    alloc @acc : f32[8,20] tile {\n    }\n",
     "only loops and blocks have a body"},
    {"for $m in 0..o step 8 parallel {", "for m in 0..o step 8 parallel {", "a loop variable"},
    {"for $m in 0..o step", "for $m in 0..o stop", "'step'"},
    {"$m in 0..o step 8", "$m in 0:o step 8", "a span"},
    {"$m in 0..o step 8", "$m in 0:0 step 8", "at least 1"},
    {"0..o step 8", "0..o step 9223372036854775808", "64 bits"},
    {"fill [", "clear [", "expected a loop, a block, an alloc or a tile statement"},
    {"fill [", "map [", "is a 'fill'"},
    {"matmul [", "reduce [", "is a 'matmul'"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$n,j] = 0.0", "no loop 'n'"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-m,j] = 0.0", "no index 'm'"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m] = 0.0", "rank 2, not 1"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m,9223372036854775807*j+9223372036854775807*j] = 0.0",
     "64 bits"},
    {"@acc[i-$m,j] = 0.0", "@ack[i-$m,j] = 0.0", "no buffer 'ack'"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m,j] = 0.1", "no f32"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m,j] = true", "no f32"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m,j] = ", "a number"},
    {"@acc[i-$m,j] = 0.0", "@acc[i-$m,j] = gt(0.0, 1.0)", "not known here"},
    {"+= mul(", "reduce.median= mul(", "no fold 'reduce.median'"},
    {"+= mul(", "+= reduce.sum(", "no elementwise operation 'reduce.sum'"},
    {"relu(add(", "relu(addd(", "no elementwise operation 'addd'"},
    {"@X[i,k], @W[k,j]", "@X[i,k]", "takes 2 operands, not 1"},
    {"relu(add(@acc[i-$m,j], @b[j]))", "relu(add(@acc[i-$m,j], extent.i64(o)))",
     "operands of these types"},
    {"relu(add(@acc[i-$m,j], @b[j]))", "relu(extent(20))", "open dim"},
    {" as Y", " as", "a name"},
    {" as Y", " as Y Y", "end"},
    {"kernel mlp {", "kernel {", "name"},
};

static void each_malformed_text_is_refused_with_a_message(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const Refusal *r = &refusals[i];
        Ctx ctx;
        ctx_init(&ctx);
        const char *text =
            replaced(&ctx.arena, kernel_text(&ctx.arena, "zeros"), r->from, 0, r->to);
        assert_null(read_text(&ctx, text));
        const char *said = messages(&ctx);
        if (ctx.diags.n_errors == 0 || strstr(said, r->message) == NULL) {
            fail_msg("`%s` for `%s`: expected a message with `%s`, got:\n%s", r->to, r->from,
                     r->message, said);
        }
        ctx_release(&ctx);
    }
}

static void a_text_without_a_line_is_an_empty_dump(void **state)
{
    static const char *const texts[] = {"", "\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        assert_null(read_text(&ctx, texts[i]));
        assert_non_null(strstr(messages(&ctx), "an empty dump"));
        ctx_release(&ctx);
    }
}

/* Cut anywhere, with a byte changed anywhere: read or refused, never worse. */
static void damaged_text_is_read_or_refused(void **state)
{
    static const char junk[] = "[](){}$@%,.:<=+-*\"\\\n a0~";
    static const char *const names[] = {"matmul_legal", "nested", "constants"};
    for (size_t file = 0; file < 3; file++) {
        Ctx head;
        ctx_init(&head);
        char *text = kernel_text(&head.arena, names[file]);
        size_t n = strlen(text);
        Rng rng = {file + 1};
        for (int round = 0; round < 400; round++) {
            Ctx ctx;
            ctx_init(&ctx);
            char *copy = str_dup(&ctx.arena, str_from(text));
            size_t at = (size_t)rng_below(&rng, n);
            if (round % 4 == 0) {
                copy[at] = '\0';
            } else {
                copy[at] = junk[rng_below(&rng, sizeof junk - 1)];
            }
            KernelModule *m = read_text(&ctx, copy);
            assert_true((m == NULL) == (ctx.diags.n_errors > 0));
            ctx_release(&ctx);
        }
        ctx_release(&head);
    }
}

TESTS(TEST(every_kernel_of_the_tests_reads_back_to_the_same_bytes),
      TEST(a_module_may_hold_no_kernel_or_many), TEST(freely_written_text_becomes_canonical),
      TEST(parts_of_complex_numbers_are_pairs_of_the_same_bytes),
      TEST(numbers_of_variables_and_buffers_survive),
      TEST(a_numbered_kernel_needs_no_order_line), TEST(places_in_the_program_survive),
      TEST(the_documentation_shows_a_kernel_that_is_tested),
      TEST(each_malformed_text_is_refused_with_a_message),
      TEST(a_text_without_a_line_is_an_empty_dump), TEST(damaged_text_is_read_or_refused))
