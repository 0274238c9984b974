/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that random nests become, and those of the same in complex numbers, before and after these are made
 * real and their buffers share bytes: a line for each graph in found.txt, so that a change of a pass shows as the
 * kernels that it changes, and a hash for each fifty of many more. Complex kernels compute the same at the end, to
 * the bit where all numbers are small integers. Target `bless` writes the file. */
#include "base/map.h"
#include "lower/lower.h"
#include "nest/greedy.h"
#include "support/golden.h"
#include "../nest/support_graphs.h"

#define FOUND  "tests/lower/found.txt"
#define SHOWN  50   /* graphs whose lines are kept */
#define GRAPHS 1000 /* a multiple of it */
#define POINTS 3000 /* elements that the interpreter visits for a kernel */

static const Machine machine = {
    .n_levels = 1, .level = {{.name = "cache", .capacity = 64 << 10}}, .open_extents = true};
static const Target target = {.name = "real"};

typedef struct Found {
    Ctx ctx;
    Rng rng;
    Graph *g;
    Text *out;
    uint64_t seed;
    uint32_t *compared;
} Found;

/* ---- complex numbers ---- */

/* What stands for an operation that complex numbers do not have, and for a negation. */
static Op complex_op(Op op)
{
    return op == OP_NEG    ? OP_CONJ
           : op == OP_MIN  ? OP_ADD
           : op == OP_MAX  ? OP_MUL
           : op == OP_RELU ? OP_NEG
           : op == OP_RMIN ? OP_SUM
           : op == OP_RMAX ? OP_SUM
                           : op;
}

static DType complex_type(DType t)
{
    return t == DTYPE_I64 ? DTYPE_C128 : t == DTYPE_I32 ? DTYPE_C64 : t;
}

static void make_complex(Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        Node *node = &g->nodes.at[n];
        node->op = complex_op(node->op);
        node->dtype = complex_type(node->dtype);
        node->acc = complex_type(node->acc);
    }
    for (uint32_t p = 0; p < g->params.n; p++) {
        g->params.at[p].dtype = complex_type(g->params.at[p].dtype);
    }
}

static Tensor *argument(Found *f, const Param *p, const int64_t *dims)
{
    Tensor *x = param_tensor(&f->ctx, p, dims);
    for (int64_t k = 0; k < x->count; k++) {
        Number n = {.dtype = p->dtype,
                    .re = (double)rng_below(&f->rng, 5) - 2,
                    .im = (double)rng_below(&f->rng, 5) - 2};
        tensor_set(x, k, n);
    }
    return x;
}

static bool is_small(double x)
{
    return x > -4096 && x < 4096;
}

static void compare(Found *f, const Kernel *k, const Kernel *real)
{
    static const int64_t dims[] = {3, 4, 2};
    Arena *arena = &f->ctx.arena;
    Tensor **args = ARENA_ARRAY(arena, f->g->params.n, Tensor *);
    Tensor **want = ARENA_ARRAY(arena, k->args.n, Tensor *);
    Tensor **got = ARENA_ARRAY(arena, k->args.n, Tensor *);
    for (uint32_t p = 0; p < f->g->params.n; p++) {
        args[p] = argument(f, &f->g->params.at[p], dims);
    }
    assert_true(loop_eval(&f->ctx, arena, k, dims, args, want));
    assert_true(loop_eval(&f->ctx, arena, real, dims, args, got));
    for (uint32_t r = 0; r < k->args.n && want[r] != NULL; r++) {
        assert_int_equal(want[r]->count, got[r]->count);
        for (int64_t i = 0; i < want[r]->count; i++) {
            Number x = tensor_get(want[r], i), y = tensor_get(got[r], i);
            if (is_small(x.re) && is_small(x.im) && (x.re != y.re || x.im != y.im)) {
                fail_msg("seed %u, result %u, element %d: (%g, %g), not (%g, %g)",
                         (unsigned)f->seed, r, (int)i, y.re, y.im, x.re, x.im);
            }
        }
    }
    ++*f->compared;
}

/* ---- kernels ---- */

static void put_kernel(Found *f, const char *what, const Kernel *k)
{
    Text dump;
    text_init(&dump, &f->ctx.arena);
    kernel_dump(k, &dump);
    uint32_t lines = 0;
    for (size_t i = 0; i < dump.n; i++) {
        lines += dump.at[i] == '\n';
    }
    text_printf(f->out, "  %s %u lines %08x", what, lines,
                (unsigned)hash_bytes(0, dump.at, dump.n));
}

static void put_refusal(Found *f)
{
    Text said;
    text_init(&said, &f->ctx.arena);
    diags_render(&f->ctx.diags, &said, false);
    text_printf(f->out, " refused: %s", strstr(said.at, "error") + strlen("error"));
    f->out->n -= f->out->at[f->out->n - 1] == '\n';
}

static Kernel *lowered(Found *f, const NestFacts *facts, const Tree *t)
{
    Nest *nest = tree_nest(&f->ctx.arena, f->g, t);
    nest->values = nest_place(&f->ctx.arena, facts, &machine, nest);
    if (!nest_verify(&f->ctx, nest, "test")) {
        fail_msg("seed %u: the nest is not legal", (unsigned)f->seed);
    }
    Kernel *k = nest_lower(&f->ctx, &f->ctx.arena, nest);
    assert_true(loop_verify(&f->ctx, k, "test"));
    return k;
}

static void put_lowered(Found *f, bool complex)
{
    static const int64_t dims[] = {3, 4, 2};
    Arena *arena = &f->ctx.arena;
    NestFacts facts;
    Tree greedy = {0}, extras;
    nest_facts(arena, f->g, &facts);
    greedy_tree(&f->ctx, arena, &facts, &machine, &greedy);
    extras = greedy;
    if (greedy.list.n > 0) {
        extras = random_walk(arena, &f->rng, &facts, &greedy, 4);
        extras = random_extras(arena, &f->rng, &facts, &extras);
    }
    const Tree *trees[] = {&greedy, &extras};
    for (uint32_t k = 0; k < 2; k++) {
        Kernel *built = lowered(f, &facts, trees[k]);
        put_kernel(f, complex ? "complex" : k == 0 ? "greedy" : "other", built);
        if (complex) {
            Kernel *real = lower_complex(&f->ctx, arena, built, &target);
            if (real == NULL) {
                put_refusal(f);
                return;
            }
            assert_true(loop_verify(&f->ctx, real, "complex"));
            put_kernel(f, "real", real);
            kernel_share(&f->ctx, real);
            assert_true(loop_verify(&f->ctx, real, "share"));
            put_kernel(f, "shared", real);
            if (graph_points(f->g, dims) < POINTS) {
                compare(f, built, real);
            }
        }
    }
}

static void put_graph(Text *out, uint64_t seed, uint32_t *compared)
{
    Found f = {.out = out, .seed = seed, .rng = {seed}, .compared = compared};
    ctx_init(&f.ctx);
    f.g = random_graph(&f.ctx, &f.rng, 6);
    text_printf(out, "%u:", (unsigned)seed);
    put_lowered(&f, false);
    make_complex(f.g);
    put_lowered(&f, true);
    text_put(out, "\n");
    ctx_release(&f.ctx);
}

static void kernels_are_what_they_were(void **state)
{
    (void)state;
    Arena arena;
    Text out;
    uint32_t compared = 0;
    arena_init(&arena, NULL);
    text_init(&out, &arena);
    for (uint64_t first = 1; first <= GRAPHS; first += SHOWN) {
        size_t before = out.n;
        for (uint64_t seed = first; seed < first + SHOWN; seed++) {
            put_graph(&out, seed, &compared);
        }
        if (first > 1) {
            uint64_t h = hash_bytes(0, out.at + before, out.n - before);
            out.n = before;
            text_printf(&out, "%u to %u: %08x\n", (unsigned)first,
                        (unsigned)(first + SHOWN - 1), (unsigned)h);
        }
    }
    text_printf(&out, "%u kernels compute the same\n", compared);
    assert_golden(&arena, FOUND, out.at);
    arena_release(&arena);
}

TESTS(TEST(kernels_are_what_they_were))
