/* SPDX-License-Identifier: Apache-2.0 */
/* What loop_verify accepts is right for all extents: random kernels, most of them wrong, are
 * given to it, and those it accepts are run for many values of the dims. None may leave a
 * buffer, and none may depend on the order of a parallel loop's iterations (updates do not
 * commute, so order shows). Enough must be accepted for that to mean something. */
#include "support.h"
#include "loop/loop_eval.h"

#define ROUNDS 6000

typedef struct Writer {
    Rng rng;
    Text text;
    uint32_t n_loops;
} Writer;

static uint32_t pick(Writer *w, uint32_t n)
{
    return (uint32_t)rng_below(&w->rng, n);
}

/* start..limit, start:span<limit or start:span; starts at 0, at a number, or at an outer loop
 * (with or without a shift). */
static void write_range(Writer *w, uint32_t n_outer)
{
    static const char *const limits[] = {"n", "n", "n", "m", "24", "8"};
    uint32_t form = pick(w, 4);
    if (n_outer > 0 && pick(w, 4) != 0) {
        text_printf(&w->text, "$l%u", (unsigned)(n_outer - 1 - pick(w, n_outer > 1 ? 2 : 1)));
        if (pick(w, 8) == 0) {
            text_printf(&w->text, "+%u", (unsigned)pick(w, 3));
        }
    } else {
        text_printf(&w->text, "%u", pick(w, 6) == 0 ? (unsigned)pick(w, 5) : 0u);
    }
    if (form == 0) {
        text_printf(&w->text, "..%s", limits[pick(w, 6)]);
        return;
    }
    static const int spans[] = {1, 2, 3, 4, 4, 4, 8, 8, 12};
    text_printf(&w->text, ":%d", spans[pick(w, 9)]);
    if (form != 1) {
        text_printf(&w->text, "<%s", limits[pick(w, 6)]);
    }
}

/* An index of one dimension: mostly a local index alone or relative to a loop. */
static void write_index(Writer *w, uint32_t n_locals, uint32_t which)
{
    if (pick(w, 10) == 0) {
        text_printf(&w->text, "%u+", (unsigned)pick(w, 4));
    }
    if (pick(w, 12) == 0) {
        text_put(&w->text, "2*");
    }
    if (pick(w, 8) == 0 && w->n_loops > 0) {
        text_printf(&w->text, "$l%u", (unsigned)pick(w, w->n_loops));
    } else {
        text_printf(&w->text, "i%u", (unsigned)(pick(w, 8) == 0 ? pick(w, n_locals) : which));
    }
    if (pick(w, 3) == 0 && w->n_loops > 0) {
        text_printf(&w->text, "-$l%u", (unsigned)pick(w, w->n_loops));
    }
    if (pick(w, 10) == 0) {
        text_printf(&w->text, "-%u", (unsigned)pick(w, 3));
    }
}

static const struct {
    const char *name;
    uint32_t rank;
} buffers[] = {{"x", 1}, {"y", 1}, {"c", 1}, {"d", 1}, {"z", 2}};

static void write_access(Writer *w, uint32_t buf, uint32_t n_locals)
{
    text_printf(&w->text, "@%s[", buffers[buf].name);
    for (uint32_t d = 0; d < buffers[buf].rank; d++) {
        text_put(&w->text, d == 0 ? "" : ",");
        write_index(w, n_locals, d % n_locals);
    }
    text_char(&w->text, ']');
}

/* dst = 3*dst + other, which does not commute with itself */
static void write_stmt(Writer *w)
{
    uint32_t dst = 1 + pick(w, 4);
    uint32_t n_locals = buffers[dst].rank;
    text_put(&w->text, "map [");
    for (uint32_t i = 0; i < n_locals; i++) {
        text_printf(&w->text, "%si%u in ", i == 0 ? "" : ", ", (unsigned)i);
        write_range(w, w->n_loops);
    }
    text_put(&w->text, "] ");
    size_t from = w->text.n;
    write_access(w, dst, n_locals);
    char *access = str_dup(w->text.arena, (Str){w->text.at + from, w->text.n - from});
    text_printf(&w->text, " = add(mul(%s, 3), ", access);
    write_access(w, pick(w, 3) != 0 ? 0 : pick(w, 5), n_locals);
    text_put(&w->text, ")\n");
}

static void write_kernel(Writer *w)
{
    static const char *const parts[] = {"", "", " full", " full", " rest"};
    static const int steps[] = {1, 2, 3, 4, 4, 4, 8, 8};
    uint32_t depth = pick(w, 4);
    w->n_loops = 0;
    text_put(&w->text, "tdsl-dump loop 1\nkernel k {\n dim n ~ 9\n dim m ~ 9\n"
                       " arg @x : i64[n] in\n arg @y : i64[n] inout\n arg @c : i64[24] inout\n"
                       " arg @d : i64[8] inout\n arg @z : i64[n,n] inout\n");
    for (uint32_t l = 0; l < depth; l++) {
        text_printf(&w->text, "for $l%u in ", (unsigned)l);
        write_range(w, l);
        text_printf(&w->text, " step %d%s%s {\n", steps[pick(w, 8)], parts[pick(w, 5)],
                    pick(w, 3) == 0 ? " parallel" : "");
        w->n_loops++;
    }
    write_stmt(w);
    if (pick(w, 3) == 0) {
        write_stmt(w);
    }
    for (uint32_t l = 0; l < depth; l++) {
        text_put(&w->text, "}\n");
    }
    text_put(&w->text, "}\n");
}

static const int64_t dims[][2] = {{0, 0}, {1, 0},  {0, 3},   {3, 1},  {4, 9},
                                  {7, 4}, {8, 16}, {13, 13}, {30, 5}, {5, 30}};
#define N_DIMS (sizeof dims / sizeof dims[0])

/* The kernel's statements with every loop run forwards. */
static void make_sequential(Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        body[i]->parallel = false;
        make_sequential(body[i]->body, body[i]->n_body);
    }
}

static bool same_results(const Run *a, const Run *b)
{
    for (int r = 0; r < 4; r++) {
        if (memcmp(a->results[r]->data, b->results[r]->data,
                   (size_t)a->results[r]->count * 8) != 0) {
            return false;
        }
    }
    return true;
}

/* Small integers, so that nothing wraps where it should not. */
static bool run_small(Ctx *ctx, const Kernel *k, const int64_t *d, Run *run)
{
    if (!run_kernel(ctx, k, d, 11, run)) {
        return false;
    }
    for (int a = 0; a < 5;
         a++) { /* casts of numbers in (-1, 1) are 0: give the elements numbers of their own */
        for (int64_t i = 0; i < run->args[a]->count; i++) {
            tensor_set(run->args[a], i, number_int(DTYPE_I64, 10 * i + a + 1));
        }
    }
    return loop_eval(ctx, &ctx->arena, k, d, run->args, run->results);
}

static void what_is_accepted_stays_in_bounds_and_in_order(void **state)
{
    int accepted = 0, parallel = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        Ctx ctx;
        ctx_init(&ctx);
        Writer w = {.rng = {round}};
        text_init(&w.text, &ctx.arena);
        write_kernel(&w);
        KernelModule *m = read_text(&ctx, w.text.at);
        if (m == NULL && strstr(messages(&ctx), "read: kernel") == NULL) {
            fail_msg("the generator wrote no kernel:\n%s\n%s", w.text.at, messages(&ctx));
        }
        bool is_parallel = strstr(w.text.at, "parallel") != NULL;
        accepted += m != NULL;
        parallel += m != NULL && is_parallel;
        for (size_t i = 0; m != NULL && i < N_DIMS; i++) {
            Run backwards, forwards;
            Kernel *k = m->kernels.at[0];
            if (!run_small(&ctx, k, dims[i], &backwards)) {
                fail_msg("accepted, but for n = %lld, m = %lld:\n%s\n%s", (long long)dims[i][0],
                         (long long)dims[i][1], w.text.at, messages(&ctx));
            }
            if (is_parallel && i % 3 == 0) {
                KernelModule *again = read_text(&ctx, w.text.at);
                make_sequential(again->kernels.at[0]->body, again->kernels.at[0]->n_body);
                assert_true(run_small(&ctx, again->kernels.at[0], dims[i], &forwards));
                if (!same_results(&backwards, &forwards)) {
                    fail_msg("accepted as parallel, but order matters:\n%s", w.text.at);
                }
            }
        }
        ctx_release(&ctx);
    }
    print_message("%d of %d accepted, %d of them parallel\n", accepted, ROUNDS, parallel);
    assert_true(accepted > ROUNDS / 20 && parallel > ROUNDS / 100);
}

TESTS(TEST(what_is_accepted_stays_in_bounds_and_in_order))
