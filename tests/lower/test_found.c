/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that random nests become, and those of the same in complex numbers, before and after these are made
 * real and their buffers share bytes: how long they are, fifty graphs a row, in figures.txt; rows of single graphs with TDSL_EACH=1.
 * Complex kernels compute the same at the end, to the bit where all numbers are small integers. Target `bless` writes the file. */
#include "loop/loop_eval.h"
#include "loop/loop_verify.h"
#include "loop/walk.h"
#include "lower/lower.h"
#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/place.h"
#include "nest/verify.h"
#include "support/golden.h"
#include "../nest/support_graphs.h"

#define FIGURES "tests/lower/figures.txt"
#define GROUP   50   /* graphs of a row */
#define GRAPHS  1000 /* a multiple of it */
#define POINTS  3000 /* elements that the interpreter visits for a kernel */

static const Machine machine = {
    .n_levels = 1, .level = {{.name = "cache", .capacity = 64 << 10}}, .open_extents = true};
static const Target target = {.name = "real"};

typedef enum Kind { GREEDY, OTHER, COMPLEX, REAL, SHARED, N_KINDS } Kind;
static const char *const kind_names[] = {"greedy", "other", "complex", "real", "shared"};

/* Of all kernels of a kind. `places`: allocations that share no bytes. */
typedef struct Figures {
    uint32_t kernels, loops, statements, places, refused;
} Figures;

typedef struct Found {
    Ctx ctx;
    Rng rng;
    Graph *g;
    uint64_t seed;
    Figures *figures; /* [N_KINDS] */
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

static void count_kernel(Figures *f, const Kernel *k)
{
    StmtWalk w;
    f->kernels++;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        f->loops += s->kind == STMT_FOR;
        f->statements += s->kind == STMT_TILE;
        f->places += s->kind == STMT_ALLOC && s->over == 0;
    }
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

static void add_lowered(Found *f, bool complex)
{
    static const int64_t dims[] = {3, 4, 2};
    Arena *arena = &f->ctx.arena;
    NestFacts facts;
    Tree greedy = {0}, extras;
    nest_facts(arena, f->g, &facts);
    greedy_tree(&f->ctx, arena, &facts, &machine, true, &greedy);
    extras = greedy;
    if (greedy.list.n > 0) {
        extras = random_walk(arena, &f->rng, &facts, &greedy, 4);
        extras = random_extras(arena, &f->rng, &facts, &extras);
    }
    const Tree *trees[] = {&greedy, &extras};
    for (uint32_t k = 0; k < 2; k++) {
        Kernel *built = lowered(f, &facts, trees[k]);
        count_kernel(&f->figures[complex ? COMPLEX : k == 0 ? GREEDY : OTHER], built);
        if (complex) {
            Kernel *real = lower_complex(&f->ctx, arena, built, &target);
            if (real == NULL) {
                f->figures[REAL].refused++;
                return;
            }
            assert_true(loop_verify(&f->ctx, real, "complex"));
            count_kernel(&f->figures[REAL], real);
            kernel_share(&f->ctx, real);
            assert_true(loop_verify(&f->ctx, real, "share"));
            count_kernel(&f->figures[SHARED], real);
            if (graph_points(f->g, dims) < POINTS) {
                compare(f, built, real);
            }
        }
    }
}

static void add_graph(Figures *figures, uint64_t seed, uint32_t *compared)
{
    Found f = {.seed = seed, .rng = {seed}, .figures = figures, .compared = compared};
    ctx_init(&f.ctx);
    f.g = random_graph(&f.ctx, &f.rng, 6);
    add_lowered(&f, false);
    make_complex(f.g);
    add_lowered(&f, true);
    ctx_release(&f.ctx);
}

static void put_row(Text *out, uint64_t first, uint64_t last, Kind kind, const Figures *f)
{
    text_printf(out, "%u to %u %s: kernels %u loops %u statements %u places %u refused %u\n",
                (unsigned)first, (unsigned)last, kind_names[kind], f->kernels, f->loops,
                f->statements, f->places, f->refused);
}

static void kernels_are_as_long_as_they_were(void **state)
{
    Arena arena;
    Text out;
    uint32_t compared = 0;
    uint64_t group = getenv("TDSL_EACH") != NULL ? 1 : GROUP;
    arena_init(&arena, NULL);
    text_init(&out, &arena);
    for (uint64_t first = 1; first <= GRAPHS; first += group) {
        Figures figures[N_KINDS] = {0};
        for (uint64_t seed = first; seed < first + group; seed++) {
            add_graph(figures, seed, &compared);
        }
        for (Kind kind = 0; kind < N_KINDS; kind++) {
            put_row(&out, first, first + group - 1, kind, &figures[kind]);
        }
    }
    text_printf(&out, "compared: kernels %u\n", compared);
    assert_figures(&arena, FIGURES, out.at);
    arena_release(&arena);
}

TESTS(TEST(kernels_are_as_long_as_they_were))
