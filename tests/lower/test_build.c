/* SPDX-License-Identifier: Apache-2.0 */
/* The way from graph to kernel: each program is given nests for machines of several
 * sizes, so that its loops are cut in different ways, and the kernel must compute what
 * the graph does, bit for bit, for many extents. */
#include "support/texts.h"

#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "lower/lower.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "nest/plan.h"
#include "nest/text.h"
#include "nest/verify.h"

static const char head[] = "  dim m ~ 40\n  dim n ~ 30\n  dim k ~ 20\n";

static const struct {
    const char *name;
    const char *lines;
} programs[] = {
    {"matmul",
     "  param in @A : f64[m,k]\n  param in @B : f64[k,n]\n  %0 = input @A : f64[m,k]\n"
     "  %1 = input @B : f64[k,n]\n"
     "  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : f64[m,n]\n  result @C = %2\n"},
    {"matmul and epilogue",
     "  param in @A : f64[m,k]\n  param in @B : f64[k,n]\n  param in @b : f64[n]\n"
     "  %0 = input @A : f64[m,k]\n  %1 = input @B : f64[k,n]\n  %2 = input @b : f64[n]\n"
     "  %3 = einsum %0[a,b], %1[b,c] -> [c,a] : f64[n,m]\n"
     "  %4 = add %3[a,b], %2[a] -> [b,a] : f64[m,n]\n  %5 = relu %4[a,b] -> [a,b] : f64[m,n]\n"
     "  %6 = reduce.max %5[a,b] -> [b] : f64[n]\n"
     "  result @C = %5\n  result @top = %6\n"},
    {"pair energies", "  param in @B : f32[m,n,k]\n  param in @e : f32[m]\n"
                      "  %0 = input @B : f32[m,n,k]\n  %1 = input @e : f32[m]\n"
                      "  %2 = einsum %0[a,b,c], %0[d,e,c] -> [a,b,d,e] : f32[m,n,m,n] as T\n"
                      "  %3 = add %1[a], %1[b] -> [a,c,b,d] : f32[m,n,m,n]\n"
                      "  %4 = sub %2[a,b,c,d], %2[a,d,c,b] -> [a,b,c,d] : f32[m,n,m,n]\n"
                      "  %5 = mul %4[a,b,c,d], %3[a,b,c,d] -> [a,b,c,d] : f32[m,n,m,n]\n"
                      "  %6 = reduce.sum %5[a,b,c,d] -> [] : f64[]\n  result @E = %6\n"},
    {"chain",
     "  param in @A : f64[m,k]\n  param in @B : f64[k,n]\n  param in @C : f64[n,m]\n"
     "  %0 = input @A : f64[m,k]\n  %1 = input @B : f64[k,n]\n  %2 = input @C : f64[n,m]\n"
     "  %3 = einsum %0[a,b], %1[b,c] -> [a,c] : f64[m,n]\n"
     "  %4 = einsum %3[a,b], %2[b,c] -> [a,c] : f64[m,m]\n"
     "  %5 = einsum %4[a,b], %0[b,c] -> [c,a] : f64[k,m]\n  result @R = %5\n"},
    {"softmax without exp",
     "  param in @S : i64[m,n]\n  %0 = input @S : i64[m,n]\n"
     "  %1 = reduce.max %0[a,b] -> [a] : i64[m]\n"
     "  %2 = sub %1[a], %0[a,b] -> [a,b] : i64[m,n]\n"
     "  %3 = reduce.sum %2[a,b] -> [a] : i64[m]\n"
     "  %4 = mul %2[a,b], %3[a] -> [b,a] : i64[n,m]\n  result @P = %4\n"},
    {"in place",
     "  param inout @C : i32[m,m]\n  param in @A : i32[m,k]\n  param scalar @s : i32[]\n"
     "  %0 = input @C : i32[m,m]\n  %1 = input @A : i32[m,k]\n  %2 = input @s : i32[]\n"
     "  %3 = einsum %1[a,b], %1[c,b] -> [a,c] : i32[m,m]\n"
     "  %4 = scale %2[], %0[a,b] -> [a,b] : i32[m,m]\n"
     "  %5 = add %3[a,b], %4[a,b] -> [a,b] : i32[m,m]\n  update @C = %5\n"},
    {"transposed update",
     "  param inout @C : i32[m,m]\n  %0 = input @C : i32[m,m]\n"
     "  %1 = add %0[a,b], %0[b,a] -> [a,b] : i32[m,m]\n  update @C = %1\n  result @old = %0\n"},
    {"swap", "  param inout @A : i32[m]\n  param inout @B : i32[m]\n  %0 = input @A : i32[m]\n"
             "  %1 = input @B : i32[m]\n  %2 = copy %0[a] -> [a] : i32[m]\n"
             "  %3 = copy %1[a] -> [a] : i32[m]\n  update @A = %3\n  update @B = %2\n"},
    {"a value twice, a parameter and a constant as results",
     "  param in @A : i32[m]\n  %0 = input @A : i32[m]\n  %1 = neg %0[a] -> [a] : i32[m]\n"
     "  %2 = const 7 : i32[]\n  %3 = copy %2[] -> [a] : i32[n]\n"
     "  result @x = %1\n  result @y = %1\n  result @z = %0\n  result @w = %3\n  result @v = "
     "%2\n"},
    {"diagonal and trace", "  param in @A : c128[m,m,n]\n  %0 = input @A : c128[m,m,n]\n"
                           "  %1 = copy %0[a,a,b] -> [b,a] : c128[n,m]\n"
                           "  %2 = reduce.sum %0[a,a,b] -> [b] : c128[n]\n"
                           "  %3 = einsum %1[a,b], %2[a] -> [b] : c128[m]\n"
                           "  result @d = %1\n  result @t = %2\n  result @u = %3\n"},
    {"bool",
     "  param in @A : bool[m,k]\n  param in @B : bool[k,n]\n  %0 = input @A : bool[m,k]\n"
     "  %1 = input @B : bool[k,n]\n  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : bool[m,n]\n"
     "  %3 = reduce.all %2[a,b] -> [b] : bool[n]\n  result @C = %2\n  result @all = %3\n"},
    {"an accumulator of another type",
     "  param in @A : f16[m,k]\n  param in @B : f16[k,n]\n  %0 = input @A : f16[m,k]\n"
     "  %1 = input @B : f16[k,n]\n"
     "  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : f16[m,n] acc f32\n"
     "  %3 = reduce.sum %2[a,b] -> [b] : f16[n] acc f32\n  result @C = %2\n  result @s = %3\n"},
    {"a contraction in slices, two steps with one of the sliced indices each, one within the "
     "other",
     "  param in @A : f64[m,k]\n  param in @B : f64[k,n]\n  param in @C : f64[n,m]\n"
     "  param in @D : f64[m,n]\n  %0 = input @A : f64[m,k]\n  %1 = input @B : f64[k,n]\n"
     "  %2 = input @C : f64[n,m]\n  %3 = input @D : f64[m,n]\n"
     "  %4 = einsum %0[a,b], %1[b,c] -> [b,c] : f64[k,n]\n"
     "  %5 = einsum %2[a,b], %3[b,c] -> [a,b,c] : f64[n,m,n]\n"
     "  %6 = einsum %4[a,b], %5[b,c,d] -> [a,c,d] : f64[k,m,n]\n"
     "  %7 = reduce.sum %6[a,b,c] -> [c,b] : f64[n,m] slice [a,b]\n  result @R = %7\n"},
    {"a contraction in slices, one step without the sliced index, one without either",
     "  param in @A : f64[m,k]\n  param in @B : f64[k,n,m]\n  param in @C : f64[n,n]\n"
     "  %0 = input @A : f64[m,k]\n  %1 = input @B : f64[k,n,m]\n  %2 = input @C : f64[n,n]\n"
     "  %3 = einsum %2[a,b], %2[b,c] -> [a,c] : f64[n,n]\n"
     "  %4 = einsum %0[a,b], %1[b,c,d] -> [a,b,c,d] : f64[m,k,n,m]\n"
     "  %5 = einsum %4[a,b,c,d], %3[c,e] -> [a,b,e,d] : f64[m,k,n,m]\n"
     "  %6 = reduce.sum %5[a,b,c,d] -> [c,a] : f64[n,m] slice [b,d]\n  result @R = %6\n"},
    {"pairwise distance and minimum",
     "  param in @X : f64[m,k]\n  param in @Y : f64[n,k]\n  %0 = input @X : f64[m,k]\n"
     "  %1 = input @Y : f64[n,k]\n  %2 = einsum %0[a,b], %0[a,b] -> [a] : f64[m]\n"
     "  %3 = einsum %1[a,b], %1[a,b] -> [a] : f64[n]\n"
     "  %4 = einsum %0[a,b], %1[c,b] -> [a,c] : f64[m,n]\n"
     "  %5 = add %2[a], %3[b] -> [a,b] : f64[m,n]\n  %6 = sub %5[a,b], %4[a,b] -> [a,b] : "
     "f64[m,n]\n"
     "  %7 = sub %6[a,b], %4[a,b] -> [a,b] : f64[m,n]\n"
     "  %8 = reduce.min %7[a,b] -> [a] : f64[m]\n  result @d = %8\n"},
};

static const int64_t dim_sets[][3] = {{4, 3, 2}, {1, 1, 1},  {0, 3, 2},  {3, 0, 2}, {3, 2, 0},
                                      {9, 7, 5}, {17, 3, 2}, {2, 33, 3}, {8, 16, 4}};

typedef struct Build {
    Ctx ctx;
    Graph *g;
    Machine machine;
    bool no_fuse;
} Build;

static Tensor *argument(Build *b, const Param *p, const int64_t *dims, uint32_t at)
{
    int64_t extent[8];
    for (uint32_t d = 0; d < p->rank; d++) {
        extent[d] = p->shape[d].sym < 0 ? p->shape[d].n : dims[p->shape[d].sym];
    }
    Tensor *t = tensor_new(&b->ctx, &b->ctx.arena, p->dtype, p->rank, extent);
    Rng rng = {at + 1};
    for (int64_t k = 0; k < t->count; k++) {
        int64_t v = (int64_t)rng_below(&rng, 4);
        bool whole = dtype_is_exact(p->dtype);
        tensor_set(t, k,
                   whole ? number_int(p->dtype, p->dtype == DTYPE_BOOL ? v > 1 : v)
                         : number_real(p->dtype, (double)v));
    }
    return t;
}

static void show(Build *b, const char *program)
{
    print_error("%s: %s", program, messages(&b->ctx));
}

static void compare(Build *b, const Kernel *k, const int64_t *dims, const char *program)
{
    Tensor *args[8], *expected[8], *got[8];
    for (uint32_t p = 0; p < b->g->params.n; p++) {
        args[p] = argument(b, &b->g->params.at[p], dims, p);
    }
    bool ok = graph_eval(&b->ctx, &b->ctx.arena, b->g, dims, args, expected) &&
              loop_eval(&b->ctx, &b->ctx.arena, k, dims, args, got);
    if (!ok) {
        show(b, program);
    }
    assert_true(ok);
    for (uint32_t r = 0; r < b->g->results.n; r++) {
        const Tensor *t = result_named(k, got, b->g->results.at[r].name);
        assert_non_null(t);
        assert_int_equal(t->count, expected[r]->count);
        if (t->count > 0) {
            assert_memory_equal(t->data, expected[r]->data,
                                (size_t)(t->count * dtype_bytes(t->dtype)));
        }
    }
}

static Build *build_new(const char *program, const char *lines, int64_t capacity)
{
    Build *b = calloc(1, sizeof *b);
    ctx_init(&b->ctx);
    b->machine.n_levels = 1;
    b->machine.level[0].capacity = capacity;
    const char *text = str_format(
        &b->ctx.arena, "tdsl-dump graph 1\n\nkernel k {\n  form binary\n%s%s}\n", head, lines);
    Module *m =
        module_read(&b->ctx, source_add(&b->ctx.sources, "t", str_from(text), (Span){0}));
    if (m == NULL) {
        show(b, program);
    }
    assert_non_null(m);
    b->g = m->graphs.at[0];
    return b;
}

static void build_free(Build *b)
{
    ctx_release(&b->ctx);
    free(b);
}

/* The kernel of the nest, which is good. */
static Kernel *lowered(Build *b, const Nest *nest, const char *program)
{
    Arena *arena = &b->ctx.arena;
    bool ok = nest != NULL && nest_verify(&b->ctx, nest, "test");
    Kernel *k = ok ? nest_lower(&b->ctx, arena, nest) : NULL;
    if (k == NULL || !loop_verify(&b->ctx, k, "test")) {
        Text out;
        text_init(&out, arena);
        if (k != NULL) {
            kernel_dump(k, &out);
            print_error("%s", out.at);
        }
        show(b, program);
        fail();
    }
    return k;
}

static void check(const char *program, const char *lines, int64_t capacity, bool no_fuse)
{
    Build *b = build_new(program, lines, capacity);
    Arena *arena = &b->ctx.arena;
    Nest *nest = no_fuse ? nest_unfused(&b->ctx, arena, b->g, &b->machine)
                         : nest_greedy(&b->ctx, arena, b->g, &b->machine);
    const Kernel *k = lowered(b, nest, program);
    for (size_t d = 0; d < sizeof dim_sets / sizeof dim_sets[0]; d++) {
        compare(b, k, dim_sets[d], program);
    }
    build_free(b);
}

static void a_kernel_computes_what_its_graph_does_however_its_loops_are_cut(void **state)
{
    static const int64_t capacities[] = {1, 600, 5000, 200000, 0};
    for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
        for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
            check(programs[p].name, programs[p].lines, capacities[c], false);
        }
    }
}

static void a_kernel_computes_what_its_graph_does_without_fusion(void **state)
{
    for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++) {
        check(programs[p].name, programs[p].lines, 4096, true);
    }
}

/* ---- pairs once ---- */

/* Sums over pairs of two labels, in a nest whose loops over them have tile T. */
static const struct {
    const char *name, *lines, *nest;
} pairs[] = {
    {"pair energies",
     "  param in @B : f32[m,n,k]\n  param in @e : f32[m]\n"
     "  %0 = input @B : f32[m,n,k]\n  %1 = input @e : f32[m]\n"
     "  %2 = einsum %0[a,b,c], %0[d,e,c] -> [a,b,d,e] : f32[m,n,m,n] sym(a d, b e)\n"
     "  %3 = add %1[a], %1[b] -> [a,c,b,d] : f32[m,n,m,n]\n"
     "  %4 = sub %2[a,b,c,d], %2[a,d,c,b] -> [a,b,c,d] : f32[m,n,m,n]\n"
     "  %5 = mul %4[a,b,c,d], %3[a,b,c,d] -> [a,b,c,d] : f32[m,n,m,n]\n"
     "  %6 = reduce.sum %5[a,b,c,d] -> [] : f64[] terms(a c, b d)\n"
     "  %7 = einsum %2[a,b,c,d], %2[a,b,c,d] -> [] : f32[] acc f32 terms(a c, b d)\n"
     "  result @E = %6\n  result @S = %7\n",
     "axis i [%2[a], %6[a], %7[a]]\naxis j [%2[d], %6[c], %7[c]]\n"
     "for i step T {\nfor j step T from i {\n%2 tile\n%6 result 0\n%7 result 1\n}\n}\n"},
    {"a product summed with an index kept, in a loop between",
     "  param in @A : i32[m,k]\n  param in @w : i32[n,k]\n"
     "  %0 = input @A : i32[m,k]\n  %1 = input @w : i32[n,k]\n"
     "  %2 = einsum %0[a,b], %1[c,b] -> [c,a,b] : i32[n,m,k]\n"
     "  %3 = einsum %2[a,b,c], %0[d,c] -> [a,b,d] : i32[n,m,m] sym(b d)\n"
     "  %4 = einsum %3[a,b,c], %3[a,b,c] -> [a] : i32[n] terms(b c)\n"
     "  result @R = %4\n",
     "axis p [%3[a], %4[a]]\naxis i [%3[b], %4[b]]\naxis j [%3[d], %4[c]]\n%2 workspace\n"
     "for i step T {\nfor p step 2 {\nfor j step T from i {\n%3 tile\n%4 result 0\n}\n}\n}\n"},
    {"a fold in another type, and the larger of each pair",
     "  param in @A : f16[m,k]\n  %0 = input @A : f16[m,k]\n"
     "  %1 = einsum %0[a,b], %0[c,b] -> [a,c] : f16[m,m] acc f32 sym(a c)\n"
     "  %2 = max %1[a,b], %1[a,b] -> [a,b] : f16[m,m]\n"
     "  %3 = reduce.sum %2[a,b] -> [] : f16[] acc f32 terms(a b)\n  result @R = %3\n",
     "axis i [%1[a], %3[a]]\naxis j [%1[c], %3[b]]\n"
     "for j step T {\nfor i step T from j {\n%1 tile\n%3 result 0\n}\n}\n"},
};

static Nest *pairs_nest(Build *b, const char *nest, int tile)
{
    Text text;
    text_init(&text, &b->ctx.arena);
    text_put(&text, "nest {\n");
    for (const char *at = nest; *at != '\0'; at++) {
        if (*at == 'T') {
            text_i64(&text, tile);
        } else {
            text_char(&text, *at);
        }
    }
    text_put(&text, "}\n");
    uint32_t source = source_add(&b->ctx.sources, "n", text_str(&text), (Span){0});
    DumpTree *tree = dump_tree_read(&b->ctx, &b->ctx.arena, source);
    return tree == NULL ? NULL : nest_read(&b->ctx, &b->ctx.arena, b->g, tree->line[0]);
}

static void a_sum_over_pairs_is_the_sum_over_all(void **state)
{
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        for (int tile = 1; tile <= 5; tile++) {
            Build *b = build_new(pairs[p].name, pairs[p].lines, 0);
            const Kernel *k = lowered(b, pairs_nest(b, pairs[p].nest, tile), pairs[p].name);
            const int64_t extents[] = {0, 1, tile - 1, tile, tile + 1, 2 * tile + 1};
            for (size_t x = 0; x < sizeof extents / sizeof extents[0]; x++) {
                for (size_t y = 0; y < 3; y++) {
                    compare(b, k, (const int64_t[]){extents[x], (int64_t)y, 2}, pairs[p].name);
                }
                compare(b, k, (const int64_t[]){3, extents[x], 1}, pairs[p].name);
                compare(b, k, (const int64_t[]){3, 2, extents[x]}, pairs[p].name);
            }
            build_free(b);
        }
    }
}

static void a_kernel_made_like_another_grows_without_touching_it(void **state)
{
    enum { MANY = 20000 };
    Ctx ctx;
    Arena arena;
    ctx_init(&ctx);
    arena_init(&arena, &ctx.budget);
    Dim extent[1] = {dim_fixed(3)};
    Kernel *k = kernel_new(&arena, sym_cstr(&ctx.syms, "k"));
    for (int i = 0; i < MANY; i++) {
        (void)kernel_buffer(k, &ctx.syms, "b", DTYPE_F32, SPACE_TILE, 1, extent);
    }
    Kernel *copy = kernel_like(&arena, k);
    for (int i = 0; i < MANY; i++) {
        (void)kernel_buffer(copy, &ctx.syms, "c", DTYPE_F32, SPACE_TILE, 1, extent);
    }
    assert_int_equal(k->bufs.n, MANY);
    for (uint32_t i = 0; i < MANY; i++) { /* under AddressSanitizer: still there */
        assert_int_equal(k->bufs.at[i].extent[0].n, 3);
        assert_ptr_equal(k->bufs.at[i].name, copy->bufs.at[i].name);
    }
    arena_release(&arena);
    ctx_release(&ctx);
}

TESTS(TEST(a_sum_over_pairs_is_the_sum_over_all),
      TEST(a_kernel_made_like_another_grows_without_touching_it),
      TEST(a_kernel_computes_what_its_graph_does_however_its_loops_are_cut),
      TEST(a_kernel_computes_what_its_graph_does_without_fusion))
