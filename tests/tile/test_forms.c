/* SPDX-License-Identifier: Apache-2.0 */
/* Each rewrite of tiled kernels on a kernel of its name in forms.tir: what it gives is forms.out, which reads back, and computes the same
 * whole numbers. `cmake --build build -t bless` writes forms.out. */
#include "support/test.h"

#include <string.h>

#include "support/golden.h"
#include "tile/tile.h"
#include "loop/copy.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"

static Ctx ctx;

static const Machine machine = {
    .n_levels = 2,
    .level = {{.name = "HBM", .granule = 512}, {.name = "SBUF"}},
    .kind = MACHINE_SYSTOLIC,
    .systolic = {.live = 8, .live_busy = 4, .live_rows = 4, .packed = 1 << 24, .slab = 1 << 23},
    .tile = {.types = 1u << DTYPE_F32,
             .line = 2048,
             .bytes = 2048 * TILE_ROWS,
             .rows = TILE_ROWS,
             .sum = TILE_ROWS},
};
static const Target target = {.name = "tiles", .machine = &machine};

static const Kernel *distributed(const Kernel *k)
{
    return tile_distribute(&ctx, &ctx.arena, k);
}

static const Kernel *in_pieces(const Kernel *k)
{
    bool *sums = NULL;
    return tile_pieces(&ctx, &ctx.arena, k, 4, 0, &sums);
}

/* What a form makes of a kernel of its name. */
static const Kernel *rewritten(const Kernel *k)
{
    static const struct {
        const char *name;
        Kernel *(*pass)(const Target *, Ctx *, Arena *, const Kernel *);
        const Kernel *(*of_target)(const Target *, Ctx *, Arena *, const Kernel *);
        const Kernel *(*in_ctx)(Ctx *, Arena *, const Kernel *);
        const Kernel *(*here)(const Kernel *);
    } forms[] = {
        {.name = "short_rows", .pass = tile_short_rows},
        {.name = "vectors", .pass = tile_vectors},
        {.name = "vectors_with_rest", .pass = tile_vectors},
        {.name = "pair_sums", .pass = tile_pair_sums},
        {.name = "diagonals", .pass = tile_diagonals},
        {.name = "linear_steps", .pass = tile_linear_steps},
        {.name = "long_rows", .of_target = tile_long_rows},
        {.name = "masked_folds", .in_ctx = tile_masked_folds},
        {.name = "masked_strips", .in_ctx = tile_masked_strips},
        {.name = "rows_first", .in_ctx = tile_rows_first},
        {.name = "transposed_operands", .in_ctx = tile_transposed_operands},
        {.name = "distribute", .here = distributed},
        {.name = "distribute_single", .here = distributed},
        {.name = "pieces", .here = in_pieces},
        {.name = "pieces_of_arrays", .here = in_pieces},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].name, k->name->text) == 0) {
            return forms[i].pass != NULL ? forms[i].pass(&target, &ctx, &ctx.arena, k)
                   : forms[i].of_target != NULL
                       ? forms[i].of_target(&target, &ctx, &ctx.arena, k)
                   : forms[i].in_ctx != NULL ? forms[i].in_ctx(&ctx, &ctx.arena, k)
                                             : forms[i].here(k);
        }
    }
    fail_msg("there is no form %s", k->name->text);
    return NULL;
}

static Tensor *whole_numbers(uint64_t seed, const Buffer *b)
{
    int64_t extent[RANK_LIMIT];
    Rng rng = {seed};
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d] = b->extent[d].n;
    }
    Tensor *x = tensor_new(&ctx, &ctx.arena, b->dtype, b->rank, extent);
    assert_non_null(x);
    for (int64_t i = 0; i < x->count; i++) {
        Number v = {.dtype = DTYPE_F64, .re = (double)(int)(5.0 * rng_unit(&rng)) - 2.0};
        tensor_set(x, i, number_cast(v, b->dtype));
    }
    return x;
}

/* The results, of the same arguments for each kernel. */
static void results_of(const Kernel *k, Tensor **results)
{
    Tensor *args[8] = {NULL};
    for (uint32_t i = 0; i < k->args.n; i++) {
        args[i] = k->args.at[i].role == ARG_RESULT
                      ? NULL
                      : whole_numbers(i + 1, &k->bufs.at[k->args.at[i].buf]);
    }
    assert_true(loop_eval(&ctx, &ctx.arena, k, NULL, args, results));
}

static void assert_same_results(const Kernel *k, const Kernel *form)
{
    Tensor *before[8] = {NULL}, *after[8] = {NULL};
    results_of(k, before);
    results_of(form, after);
    assert_non_null(before[0]);
    for (uint32_t i = 0; i < 8 && before[i] != NULL; i++) {
        size_t bytes = (size_t)before[i]->count * sizeof(float);
        assert_memory_equal(before[i]->data, after[i]->data, bytes);
    }
}

/* Levels as the search of a nest makes them, which are not obeyed as they stand. */
static void search_levels(const Kernel *k)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        if (s->schedule != NULL) {
            ((Schedule *)(uintptr_t)s->schedule)->given = false;
        }
    }
}

static const KernelModule *module_of(const char *text)
{
    uint32_t source = source_add(&ctx.sources, "forms.tir", str_from(text), (Span){0, 0, 0});
    const KernelModule *m = kernel_module_read(&ctx, source);
    assert_non_null(m);
    return m;
}

static void each_form_computes_the_same(void **state)
{
    size_t n = 0;
    Text out;
    text_init(&out, &ctx.arena);
    text_put(&out, "tdsl-dump loop 1\n");
    const KernelModule *m = module_of(file_text(&ctx.arena, "tests/tile/forms.tir", &n));
    assert_int_equal(m->kernels.n, 15);
    for (uint32_t i = 0; i < m->kernels.n; i++) {
        search_levels(m->kernels.at[i]);
        const Kernel *k = m->kernels.at[i], *form = rewritten(k);
        if (form == NULL || form == k) {
            fail_msg("%s changes nothing", k->name->text);
        }
        assert_same_results(k, form);
        text_put(&out, "\n");
        kernel_dump(kernel_numbered(&ctx.arena, form), &out);
    }
    assert_golden(&ctx.arena, "tests/tile/forms.out", out.at);
    assert_int_equal(module_of(out.at)->kernels.n, m->kernels.n);
}

/* Iterations that read what others write are not run one statement after the other. */
static void recurrences_are_not_distributed(void **state)
{
    static const char *const bodies[] = {
        "for $i in 1..6 step 1 {\nmap [j in 0..4] @Y[j,$i] = add(@Y[j,$i-1], @X[j,$i])\n}",
        "for $i in 0..6 step 2 {\nreduce [j in 0..4, e in $i:2] @S[] += @Y[j,e]\n"
        "copy [j in 0..4, e in $i:2] @Y[j,e+1] = @X[j,e]\n}",
        "for $i in 0..6 step 2 {\nreduce [j in 0..4, e in $i:2] @S[] += @X[j,e]\n"
        "map [j in 0..4, e in $i:2] @Y[j,e] = mul(@S[], @X[j,e])\n}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *text =
            str_format(&ctx.arena,
                       "tdsl-dump loop 1\n\nkernel k {\n  form tiled\n  arg @X : f32[4,7] in\n"
                       "  arg @Y : f32[4,7] result\n  arg @S : f32[] result\n%s\n}\n",
                       bodies[i]);
        assert_null(distributed(module_of(text)->kernels.at[0]));
    }
}

TESTS_IN_CTX(TEST(each_form_computes_the_same), TEST(recurrences_are_not_distributed))
