/* SPDX-License-Identifier: Apache-2.0 */
/* Complex kernels made real: the interpreter gives the same numbers before and after the pass,
 * to the last bit where all numbers are small integers; what the target lacks is refused. */
#include <string.h>

#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "loop/term.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "support/texts.h"
#include "support/quick.h"

static const Target target = {.name = "real"};

static const Kernel *read_kernel(Ctx *ctx, const char *head, const char *body)
{
    const char *text = str_format(
        &ctx->arena, "tdsl-dump loop 1\n\nkernel k {\n  form tiled\n%s%s\n}\n", head, body);
    uint32_t source = source_add(&ctx->sources, "k.tir", str_from(text), (Span){0, 0, 0});
    KernelModule *m = kernel_module_read(ctx, source);
    return m == NULL ? NULL : m->kernels.at[0];
}

/* Integers from -2 to 2, another for each seed and place. */
static Tensor *data(Ctx *ctx, const Kernel *k, uint32_t arg)
{
    const Buffer *b = &k->bufs.at[k->args.at[arg].buf];
    int64_t extent[8];
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d] = b->extent[d].n;
    }
    Tensor *t = tensor_new(ctx, &ctx->arena, b->dtype, b->rank, extent);
    assert_non_null(t);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = i * 7 + arg * 3;
        Number n = {
            .dtype = DTYPE_C128, .re = (double)(v % 5 - 2), .im = (double)(v / 5 % 5 - 2)};
        n.dtype = dtype_is_complex(b->dtype) ? b->dtype : DTYPE_F64;
        tensor_set(t, i, number_cast(n, b->dtype));
    }
    return t;
}

static void assert_same(Ctx *ctx, const char *head, const char *body, bool exact)
{
    const Kernel *k = read_kernel(ctx, head, body);
    if (k == NULL) {
        fail_msg("%s\n%s", body, messages(ctx));
    }
    const Kernel *real = lower_complex(ctx, &ctx->arena, k, &target);
    if (real == NULL || !loop_verify(ctx, real, "complex")) {
        fail_msg("%s\n%s", body, messages(ctx));
    }
    for (uint32_t i = 0; i < real->bufs.n; i++) {
        assert_false(dtype_is_complex(real->bufs.at[i].dtype));
    }
    Tensor *args[8] = {NULL}, *before[8] = {NULL}, *after[8] = {NULL};
    for (uint32_t i = 0; i < k->args.n; i++) {
        args[i] = k->args.at[i].role == ARG_RESULT ? NULL : data(ctx, k, i);
    }
    if (!loop_eval(ctx, &ctx->arena, k, NULL, args, before) ||
        !loop_eval(ctx, &ctx->arena, real, NULL, args, after)) {
        Text out;
        text_init(&out, &ctx->arena);
        kernel_dump(real, &out);
        fail_msg("%s\n%s\n%s", body, messages(ctx), out.at);
    }
    for (uint32_t r = 0; r < 8 && before[r] != NULL; r++) {
        assert_int_equal(before[r]->dtype, after[r]->dtype);
        assert_int_equal(before[r]->rank, after[r]->rank);
        assert_int_equal(before[r]->count, after[r]->count);
        for (int64_t i = 0; i < before[r]->count; i++) {
            Number x = tensor_get(before[r], i), y = tensor_get(after[r], i);
            double size = 1 + (x.re < 0 ? -x.re : x.re) + (x.im < 0 ? -x.im : x.im);
            double most = exact ? 0 : 1e-6 * size;
            double re = x.re - y.re, im = x.im - y.im;
            if (!(re <= most && re >= -most && im <= most && im >= -most)) {
                Text out;
                text_init(&out, &ctx->arena);
                kernel_dump(real, &out);
                fail_msg("result %u, element %d: (%g, %g), was (%g, %g)\n%s", r, (int)i, y.re,
                         y.im, x.re, x.im, out.at);
            }
        }
    }
}

#define HEAD                                                                                   \
    "arg @A : c64[3,4] in\narg @B : c64[4,5] in\narg @c : c64[5] in\narg @s : c64 scalar\n"    \
    "arg @X : f32[4,5] in\narg @C : c64[3,5] result\n"

#define PRODUCT "matmul [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul("

static void a_product_is_one_contraction_with_two_labels_more(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    assert_same(&ctx, HEAD, PRODUCT "@A[i,l], @B[l,j]) begins", true);
    assert_same(&ctx, HEAD, PRODUCT "@B[l,j], @A[i,l]) begins", true);
    const Kernel *k = read_kernel(&ctx, HEAD, PRODUCT "@A[i,l], @B[l,j]) begins");
    const Kernel *real = lower_complex(&ctx, &ctx.arena, k, &target);
    const Stmt *last = real->body[real->n_body - 1];
    assert_int_equal(tile_kind(last), TILE_MATMUL);
    assert_int_equal(last->n_index, 5);
    const Expr *turned = last->value->arg[1];
    assert_int_equal(real->bufs.at[turned->buf].rank, 4);
    assert_false(buffer_has_parts(real, turned->buf));
    StmtWalk w;
    uint32_t makers = 0;
    for (const Stmt *s = tile_first(&w, real->body, real->n_body); s != NULL;
         s = tile_next(&w)) {
        makers += s->dst == turned->buf && expr_load_of(s->value, 1) != NULL;
    }
    assert_int_equal(makers, 4);
    ctx_release(&ctx);
}

#define RENAMED(of_a, of_b, a, b)                                                              \
    "alloc @t : c64[3,4] tile\nalloc @u : c64[5,4] tile\n"                                     \
    "map [i in 0..3, l in 0..4] @t[i,l] = " of_a "\n"                                          \
    "map [j in 0..5, l in 0..4] @u[j,l] = " of_b "\n" PRODUCT a ", " b ") begins"

static void conjugated_operands_are_signs_and_no_blocks(void **state)
{
    static const char *const body[] = {
        RENAMED("conj(@A[i,l])", "conj(@B[l,j])", "@t[i,l]", "@B[l,j]"),
        RENAMED("conj(@A[i,l])", "conj(@B[l,j])", "@A[i,l]", "@u[j,l]"),
        RENAMED("conj(@A[i,l])", "conj(@B[l,j])", "@t[i,l]", "@u[j,l]"),
        RENAMED("conj(conj(@A[i,l]))", "conj(@B[l,j])", "@u[j,l]", "@t[i,l]"),
    };
    for (size_t i = 0; i < sizeof body / sizeof body[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        assert_same(&ctx, HEAD, body[i], true);
        const Kernel *k = read_kernel(&ctx, HEAD, body[i]);
        const Kernel *real = lower_complex(&ctx, &ctx.arena, k, &target);
        for (uint32_t s = 0; s < real->n_body; s++) {
            const Stmt *stmt = real->body[s];
            assert_true(stmt->kind != STMT_ALLOC || real->bufs.at[stmt->buf].rank == 4 ||
                        i < 2); /* t or u is there, unused */
        }
        ctx_release(&ctx);
    }
}

static const char *const exact_bodies[] = {
    /* real and complex */
    RENAMED("conj(conj(@A[i,l]))", "cast.c64(@X[l,j])", "@t[i,l]", "@u[j,l]"),
    PRODUCT "@A[i,l], cast.c64(@X[l,j])) begins",
    "alloc @u : c64[4,5] tile\nmap [l in 0..4, j in 0..5] @u[l,j] = add(cast.c64(@X[l,j]), "
    "@s[])\n" PRODUCT "@A[i,l], @u[l,j]) begins",
    PRODUCT "conj(@A[i,l]), cast.c64(@X[l,j])) begins",
    PRODUCT "cast.c64(@X[i,l]), conj(@B[l,j])) begins",
    PRODUCT "conj(cast.c64(@X[i,l])), conj(@B[l,j])) begins",
    "for $a in 0..3 step 2 {\n"
    "matmul [i in $a:2<3, j in 0..5, l in 0..4] @C[i,j] += mul(conj(@A[i,l]), "
    "cast.c64(@X[l,j])) begins\n}",
    /* conjugated and real: the block stays */
    "alloc @t : c64[3,4] tile\nmap [i in 0..3, l in 0..4] @t[i,l] = conj(@A[i,l])\n" PRODUCT
    "@t[i,l], cast.c64(@X[l,j])) begins",
    /* blocks within loops */
    "for $a in 0..3 step 2 {\nalloc @t : c64[2,4] tile\n"
    "map [i in $a:2<3, l in 0..4] @t[i-$a,l] = conj(@A[i,l])\n"
    "fill [i in $a:2<3, j in 0..5] @C[i,j] = complex(0.0, 0.0)\n"
    "for $b in 0..4 step 3 {\n"
    "matmul [i in $a:2<3, j in 0..5, l in $b:3<4] @C[i,j] += mul(@t[i-$a,l], @B[l,j])\n}\n}",
    "for $p in 0..5 step 2 {\n"
    "matmul [i in 0..3, j in $p:2<5, l in 0..4] @C[i,j] += mul(@A[i,l], cast.c64(@X[l,j])) "
    "begins\n}",
    /* blocks that stay: written again, read by something else too, read outside of the loop */
    "alloc @t : c64[3,4] tile\nmap [i in 0..3, l in 0..4] @t[i,l] = conj(@A[i,l])\n" PRODUCT
    "@t[i,l], @B[l,j]) begins\nmap [i in 0..3, l in 0..4] @t[i,l] = neg(@A[i,l])\n"
    "matmul [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(@t[i,l], @B[l,j])",
    "alloc @t : c64[3,4] tile\nmap [i in 0..3, l in 0..4] @t[i,l] = conj(@A[i,l])\n" PRODUCT
    "@t[i,l], @B[l,j]) begins\nmap [i in 0..3, j in 0..5] @C[i,j] = add(@C[i,j], @t[i,0])",
    "alloc @t : c64[3,4] tile\nfor $a in 0..3 step 2 {\n"
    "map [i in $a:2<3, l in 0..4] @t[i,l] = conj(@A[i,l])\n}\n" PRODUCT
    "@t[i,l], @B[l,j]) begins",
    /* elementwise: alike for both parts, and not */
    "map [i in 0..3, j in 0..5] @C[i,j] = mul(complex(3.0, 0.0), add(@c[j], neg(@B[i,j])))",
    "map [i in 0..3, j in 0..5] @C[i,j] = sub(mul(@c[j], @B[i,j]), conj(@A[i,0]))",
    "map [i in 0..3, j in 0..5] @C[i,j] = mul(mul(@c[j], @B[i,j]), mul(@s[], complex(1.0, "
    "2.0)))",
    "map [i in 0..3, j in 0..5] @C[i,j] = select(eq(@B[i,j], @c[j]), @s[], @c[j])",
    "map [i in 0..3, j in 0..5] @C[i,j] = scale(@B[i,j], @c[j])",
    "map [i in 0..3, j in 0..5] @C[i,j] = div(@B[i,j], complex(2.0, 0.0))",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(1.0, -2.0)\n"
    "map [i in 0..3, j in 0..5] @C[i,j] = mul(@C[i,j], @B[i,j])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(1.0, 1.0)\n"
    "map [i in 0..3, j in 0..5] @C[i,j] = add(@C[i,j], mul(@s[], @B[i,j]))",
    "map [i in 0..3, j in 0..5] @C[i,j] = cast.c64(add(re(@B[i,j]), mul(im(@B[i,j]), "
    "@X[i,j])))",
    /* sums */
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += @B[l,j] begins",
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l]) "
    "begins",
    "matmul [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(@B[l,j], @s[]) begins",
    /* zeros that another statement writes */
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, 0.0)\n"
    "matmul [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(@B[l,j], @s[])",
    /* onto what is not zero, or elsewhere */
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(1.0, 1.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(-1.0, -1.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(1.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(-1.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, 1.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, -2.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, 0.0)\n"
    "map [i in 0..3, j in 0..5] @C[i,j] = conj(@B[0,j])\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(3.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += complex(0.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, 0.0)\n"
    "alloc @t : c64[5] tile\nfill [j in 0..5] @t[j] = complex(0.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(2.0, 1.0)\n"
    "fill [i in 0..2, j in 0..5] @C[i+1,j] = complex(0.0, 0.0)\n"
    "reduce [i in 0..2, j in 0..5, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(2.0, 1.0)\n"
    "fill [i in 0..3, j in 0..4] @C[i,j+1] = complex(0.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..4, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
    /* over a part of what was filled */
    "fill [i in 0..3, j in 0..5] @C[i,j] = complex(0.0, 0.0)\n"
    "reduce [i in 0..3, j in 0..3, l in 0..4] @C[i,j] += mul(neg(conj(@B[l,j])), @A[i,l])",
};

static void the_real_kernel_computes_the_same_numbers(void **state)
{
    for (size_t i = 0; i < sizeof exact_bodies / sizeof exact_bodies[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        assert_same(&ctx, HEAD, exact_bodies[i], true);
        ctx_release(&ctx);
    }
}

/* The text with 64 bits for each part. */
static const char *widened(Arena *a, const char *text)
{
    Text out;
    text_init(&out, a);
    for (; *text != '\0'; text++) {
        bool complex = strncmp(text, "c64", 3) == 0, real = strncmp(text, "f32", 3) == 0;
        text_put(&out, complex ? "c128" : real ? "f64" : "");
        if (complex || real) {
            text += 2;
        } else {
            text_char(&out, *text);
        }
    }
    return out.at;
}

static void wide_parts_are_numbers_of_64_bits(void **state)
{
    for (size_t i = 0; i < sizeof exact_bodies / sizeof exact_bodies[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        assert_same(&ctx, widened(&ctx.arena, HEAD), widened(&ctx.arena, exact_bodies[i]),
                    true);
        ctx_release(&ctx);
    }
    Ctx ctx;
    ctx_init(&ctx);
    assert_same(&ctx,
                "arg @A : c64[3] in\narg @B : c128[3] in\narg @C : c64[3] result\n"
                "arg @D : c128[3] result\n",
                "map [i in 0..3] @C[i] = cast.c64(mul(cast.c128(@A[i]), @B[i]))\n"
                "map [i in 0..3] @D[i] = mul(cast.c128(conj(@A[i])), @B[i])",
                true);
    ctx_release(&ctx);
}

/* Each product makes a value two deeper and twice as large. */
static void too_deep_a_value_is_refused(void **state)
{
    static const struct {
        int depth, products;
        bool fits;
    } rows[] = {{120, 4, true}, {126, 1, true}, {126, 3, false}, {60, 20, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        Text body;
        text_init(&body, &ctx.arena);
        text_put(&body, "map [i in 0..3, j in 0..5] @C[i,j] = ");
        for (int depth = 0; depth < rows[i].depth; depth++) {
            text_put(&body, depth < rows[i].products ? "mul(@s[], " : "neg(");
        }
        text_put(&body, "@c[j]");
        for (int depth = 0; depth < rows[i].depth; depth++) {
            text_char(&body, ')');
        }
        const Kernel *k = read_kernel(&ctx, HEAD, body.at);
        assert_non_null(k);
        const Kernel *real = lower_complex(&ctx, &ctx.arena, k, &target);
        assert_int_equal(real != NULL, rows[i].fits);
        if (rows[i].fits) {
            assert_true(loop_verify(&ctx, real, "complex"));
        } else {
            assert_non_null(strstr(messages(&ctx), "so many complex products"));
        }
        ctx_release(&ctx);
    }
}

static void quotients_and_magnitudes_are_close(void **state)
{
    static const char head[] = "arg @B : c64[4,5] in\narg @c : c64[5] in\n"
                               "arg @C : c64[4,5] result\narg @N : f32[4,5] result\n";
    Ctx ctx;
    ctx_init(&ctx);
    assert_same(
        &ctx, head,
        "map [i in 0..4, j in 0..5] @C[i,j] = div(@c[j], add(@B[i,j], complex(5.0, 1.0)))\n"
        "map [i in 0..4, j in 0..5] @N[i,j] = abs(mul(@B[i,j], @c[j]))",
        false);
    ctx_release(&ctx);
}

/* Larger than the block the parts gather in: rows, and columns. */
static void a_product_with_real_numbers_gathers_both_parts_in_blocks(void **state)
{
    static const struct {
        int m, n;
        uint32_t loops;
    } size[] = {{20, 30, 0}, {150, 5000, 2}, {3, 5000, 1}, {300, 1100, 1}};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i += one_of(2)) {
        Ctx ctx;
        ctx_init(&ctx);
        const char *head = str_format(&ctx.arena,
                                      "arg @A : c64[%d,2] in\narg @X : f32[%d,2] in\n"
                                      "arg @C : c64[%d,%d] result\n",
                                      size[i].m, size[i].n, size[i].m, size[i].n);
        const char *body = str_format(&ctx.arena,
                                      "matmul [i in 0..%d, j in 0..%d, l in 0..2] @C[i,j] += "
                                      "mul(@A[i,l], cast.c64(@X[j,l])) begins",
                                      size[i].m, size[i].n);
        assert_same(&ctx, head, body, true);
        const Kernel *k = read_kernel(&ctx, head, body);
        const Kernel *real = lower_complex(&ctx, &ctx.arena, k, &target);
        uint32_t loops = 0;
        Stmt *const *at = real->body;
        for (; (*at)->kind == STMT_FOR; at = (*at)->body) {
            loops++;
        }
        assert_int_equal(loops, size[i].loops);
        assert_int_equal((*at)->kind, STMT_ALLOC);
        assert_true(buffer_has_parts(real, (*at)->buf));
        ctx_release(&ctx);
    }
}

static void inout_and_scalar_results_keep_their_parts(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    assert_same(&ctx, "arg @x : c64[6] in\narg @Y : c64[6] inout\narg @z : c64 result\n",
                "map [i in 0..6] @Y[i] = mul(@Y[i], @x[i])\n"
                "fill [] @z[] = complex(0.0, 0.0)\n"
                "reduce [i in 0..6] @z[] += mul(neg(conj(@x[i])), @Y[i])",
                true);
    ctx_release(&ctx);
}

static void what_has_no_real_form_is_refused_by_name(void **state)
{
    static const char *const body[][2] = {
        {"map [i in 0..3, j in 0..5] @C[i,j] = log(@B[i,j])", "log of complex numbers"},
        {"map [i in 0..3, j in 0..5] @C[i,j] = pow(@B[i,j], @c[j])", "pow of complex numbers"},
        {"fill [i in 0..3, j in 0..5] @C[i,j] = complex(1.0, 0.0)\n"
         "reduce [i in 0..3, j in 0..5, l in 0..4] @C[i,j] reduce.prod= @B[l,j]",
         "products over complex numbers"},
    };
    for (size_t i = 0; i < sizeof body / sizeof body[0]; i++) {
        Ctx ctx;
        ctx_init(&ctx);
        const Kernel *k = read_kernel(&ctx, HEAD, body[i][0]);
        assert_non_null(k);
        assert_null(lower_complex(&ctx, &ctx.arena, k, &target));
        assert_non_null(strstr(messages(&ctx), body[i][1]));
        ctx_release(&ctx);
    }
}

static void a_real_kernel_is_left_alone(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const Kernel *k =
        read_kernel(&ctx, "arg @X : f32[4] result\n", "fill [i in 0..4] @X[i] = 0.0");
    Text before, after;
    text_init(&before, &ctx.arena);
    text_init(&after, &ctx.arena);
    kernel_dump(k, &before);
    kernel_dump(lower_complex(&ctx, &ctx.arena, k, &target), &after);
    assert_string_equal(after.at, before.at);
    ctx_release(&ctx);
}

TESTS(TEST(a_product_is_one_contraction_with_two_labels_more),
      TEST(conjugated_operands_are_signs_and_no_blocks),
      TEST(the_real_kernel_computes_the_same_numbers), TEST(wide_parts_are_numbers_of_64_bits),
      TEST(too_deep_a_value_is_refused), TEST(quotients_and_magnitudes_are_close),
      TEST(a_product_with_real_numbers_gathers_both_parts_in_blocks),
      TEST(inout_and_scalar_results_keep_their_parts),
      TEST(what_has_no_real_form_is_refused_by_name), TEST(a_real_kernel_is_left_alone))
