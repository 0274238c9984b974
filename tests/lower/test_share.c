/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that share bytes: which ones do, that nothing needs the bytes twice, in random
 * kernels too, and that what shares them wrongly is found by the verifier and by running it. */
#include "support/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "loop/walk.h"
#include "lower/lower.h"

static KernelModule *read_kernel(Ctx *ctx, const char *body)
{
    const char *text = str_format(&ctx->arena,
                                  "tdsl-dump loop 1\nkernel k {\n dim n ~ 10\n dim m ~ 3\n"
                                  " arg @y : f64[1] inout\n%s}\n",
                                  body);
    uint32_t source = source_add(&ctx->sources, "test", str_from(text), (Span){0, 0, 0});
    KernelModule *m = kernel_module_read(ctx, source);
    if (m == NULL) {
        fail_msg("%s\n%s", text, messages(ctx));
    }
    return m;
}

static const char *dump(Ctx *ctx, const Kernel *k)
{
    Text out;
    text_init(&out, &ctx->arena);
    kernel_dump(k, &out);
    return out.at;
}

/* "b over a, d over b": in the order of the text. */
static const char *shared_text(Ctx *ctx, const Kernel *k)
{
    Text out;
    StmtWalk w;
    text_init(&out, &ctx->arena);
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC && s->over > 0) {
            text_printf(&out, "%s%s over %s", out.n == 0 ? "" : ", ",
                        k->bufs.at[s->buf].name->text, k->bufs.at[s->over - 1].name->text);
        }
    }
    return out.at == NULL ? "" : out.at;
}

#define NEW(name, type) "alloc @" name " : " type " tile\n"
#define SET(name, at)   "fill [] @" name "[" at "] = 1.0\n"
#define GET(name, at)   "reduce [] @y[0] += @" name "[" at "]\n"

static const struct {
    const char *body, *shared;
} rows[] = {
    /* one after the other; the one before, not the first */
    {NEW("a", "f64[8]") SET("a", "0") NEW("b", "f64[8]") SET("b", "0") NEW("d", "f64[8]")
         SET("d", "0"),
     "b over a, d over b"},
    /* still read */
    {NEW("a", "f64[8]") SET("a", "0") NEW("b", "f64[8]") SET("b", "0") GET("a", "0")
         NEW("d", "f64[8]") SET("d", "0"),
     "d over b"},
    /* inside a loop is inside, to its end */
    {NEW("a", "f64[8]") SET("a", "0") "for $i in 0:3 step 1 {\n" GET("a", "0")
         NEW("b", "f64[8]") SET("b", "0") "}\n" NEW("d", "f64[8]") SET("d", "0"),
     "d over a"},
    /* the largest first: e and b share, a is small and goes where there is room */
    {NEW("a", "f64[2]") SET("a", "0") NEW("b", "f64[9]") SET("b", "0") GET("a", "0")
         NEW("d", "f64[3]") SET("d", "0") GET("b", "0") NEW("e", "f64[8]") SET("e", "0"),
     "d over a, e over b"},
    /* by the typical extents: n is longest, m shortest */
    {NEW("a", "f64[n]") NEW("b", "f64[4]") SET("b", "0") "fill [i in 0..n] @a[i] = 1.0\n" NEW(
         "d", "f64[m]") NEW("e", "f64[9]") "fill [i in 0..m] @d[i] = 1.0\n",
     "d over b, e over a"},
    /* element types stay apart, accumulators too */
    {NEW("a", "f64[8]") SET("a", "0") NEW("b", "i64[8]") NEW("d", "f64[8]"), "d over a"},
    {"alloc @a : f64[8] acc\nalloc @b : f64[8] tile\nalloc @d : f64[8] tile\n", ""},
    /* memory between items and blocks of one item */
    {"alloc @a : f64[8] workspace\n" SET("a", "0") NEW("b", "f64[8]") SET("b", "0"),
     "b over a"},
    /* a place that began with the small one would be kept beside the loop's large one */
    {NEW("a", "f64[1]") SET("a", "0") "for $i in 0:3 step 1 {\n" NEW("b", "f64[90]")
         SET("b", "0") "}\n" NEW("d", "f64[80]") SET("d", "0"),
     ""},
};

static void the_largest_goes_first_into_the_smallest_place(void **state)
{
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        Ctx ctx;
        ctx_init(&ctx);
        Kernel *k = read_kernel(&ctx, rows[r].body)->kernels.at[0];
        kernel_share(&ctx, k);
        const char *got = shared_text(&ctx, k);
        if (strcmp(got, rows[r].shared) != 0) {
            fail_msg("'%s', not '%s', in\n%s", got, rows[r].shared, dump(&ctx, k));
        }
        ctx_release(&ctx);
    }
}

/* As deep as a dump may nest: two buffers of every block, one after the other. */
static void blocks_of_every_depth_share(void **state)
{
    enum { DEEPEST = 63 };
    Ctx ctx;
    Text body;
    ctx_init(&ctx);
    text_init(&body, &ctx.arena);
    for (int d = 0; d <= DEEPEST; d++) {
        text_printf(&body, "%s" NEW("a%d", "f64[4]") SET("a%d", "0"), d > 0 ? "block {\n" : "",
                    d, d);
        text_printf(&body, NEW("b%d", "f64[4]") SET("b%d", "0"), d, d);
    }
    for (int d = 0; d < DEEPEST; d++) {
        text_put(&body, "}\n");
    }
    Kernel *k = read_kernel(&ctx, body.at)->kernels.at[0];
    kernel_share(&ctx, k);
    const char *shared = shared_text(&ctx, k);
    for (int d = 0; d <= DEEPEST; d++) {
        assert_non_null(strstr(shared, str_format(&ctx.arena, "b%d over a%d", d, d)));
    }
    ctx_release(&ctx);
}

/* ---- random kernels ---- */

typedef struct Writer {
    Rng rng;
    Text *out;
    uint32_t n; /* buffers so far: b0, b1, ... */
    uint32_t visible[64], n_visible;
    const char *types[64];
} Writer;

static void write_block(Writer *w, uint32_t depth)
{
    uint32_t outer = w->n_visible;
    uint32_t count = 3 + (uint32_t)rng_below(&w->rng, 9);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t what = rng_below(&w->rng, 10);
        if (what < 4 && w->n < 60) {
            bool f64 = rng_below(&w->rng, 4) != 0;
            text_printf(w->out, "alloc @b%u : %s[%d] %s\n", w->n, f64 ? "f64" : "i64",
                        1 + (int)rng_below(&w->rng, 20),
                        rng_below(&w->rng, 3) == 0 ? "workspace" : "tile");
            text_printf(w->out, "fill [] @b%u[0] = 1%s\n", w->n, f64 ? ".0" : "");
            w->types[w->n] = f64 ? ".0" : "";
            w->visible[w->n_visible++] = w->n++;
        } else if (what < 8 && w->n_visible > 0) {
            uint32_t b = w->visible[rng_below(&w->rng, w->n_visible)];
            text_printf(w->out, "reduce [] @b%u[0] += 2%s\n", b, w->types[b]);
        } else if (depth < 3) {
            if (rng_below(&w->rng, 2) == 0) {
                text_put(w->out, "block {\n");
            } else {
                text_printf(w->out, "for $i%u in 0:2 step 1 {\n", depth);
            }
            write_block(w, depth + 1);
            text_put(w->out, "}\n");
        }
    }
    w->n_visible = outer;
}

static KernelModule *random_kernel(Ctx *ctx, uint64_t seed)
{
    Text out;
    Writer w = {.rng = {seed}, .out = &out};
    text_init(&out, &ctx->arena);
    text_put(&out, "");
    write_block(&w, 0);
    return read_kernel(ctx, out.n == 0 ? "" : out.at);
}

static bool run(Ctx *ctx, const Kernel *k)
{
    const int64_t dims[2] = {10, 3}, one = 1;
    Tensor *arg = tensor_new(ctx, &ctx->arena, DTYPE_F64, 1, &one), *result = NULL;
    return loop_eval(ctx, &ctx->arena, k, dims, &arg, &result);
}

/* Does the statement, or one inside, name the buffer? */
static bool names(const Stmt *s, BufRef buf)
{
    if (s->kind == STMT_TILE) {
        return s->dst == buf || expr_load_of(s->value, buf) != NULL;
    }
    for (uint32_t i = 0; i < s->n_body; i++) {
        if (names(s->body[i], buf)) {
            return true;
        }
    }
    return false;
}

/* ---- two ways to place them: one by one, and as they say ---- */

typedef struct Placed {
    BufRef buf;
    int64_t from, end;
} Placed;

typedef struct Layout {
    const Kernel *k;
    Placed open[64]; /* those that live now */
    uint32_t n_open;
    int64_t alone, together, live; /* the most that is ever needed: bytes of one's own, shared
                                      ones, and of what lives at once */
    uint32_t clashes;
} Layout;

static int64_t bytes_of(const Kernel *k, BufRef buf)
{
    return k->bufs.at[buf].extent[0].n * 8;
}

/* Statement i of the block and what follows name it no more. */
static void close_dead(Layout *l, Stmt *const *body, uint32_t i, uint32_t n, uint32_t outer)
{
    for (uint32_t o = l->n_open; o-- > outer;) {
        bool used = false;
        for (uint32_t j = i; j < n; j++) {
            used = used || names(body[j], l->open[o].buf);
        }
        if (!used) {
            l->open[o] = l->open[--l->n_open];
        }
    }
}

static void lay_out(Layout *l, Stmt *const *body, uint32_t n, int64_t alone, int64_t top)
{
    int64_t place[64] = {0};
    uint32_t outer = l->n_open;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        close_dead(l, body, i, n, outer);
        if (stmt_has_body(s)) {
            lay_out(l, s->body, s->n_body, alone, top);
        } else if (s->kind == STMT_ALLOC) {
            int64_t room = bytes_of(l->k, s->buf), bytes = room;
            BufRef last = s->buf;
            for (uint32_t j = i + 1; j < n; j++) {
                if (body[j]->kind == STMT_ALLOC && body[j]->over == 1 + last) {
                    last = body[j]->buf;
                    room = bytes_of(l->k, last) > room ? bytes_of(l->k, last) : room;
                }
            }
            alone += bytes;
            place[s->buf] = s->over > 0 ? place[s->over - 1] : top;
            top += s->over > 0 ? 0 : room;
            Placed p = {s->buf, place[s->buf], place[s->buf] + bytes};
            int64_t live = bytes;
            for (uint32_t o = 0; o < l->n_open; o++) {
                l->clashes += l->open[o].from < p.end && p.from < l->open[o].end;
                live += bytes_of(l->k, l->open[o].buf);
            }
            l->live = live > l->live ? live : l->live;
            l->open[l->n_open++] = p;
        }
        l->alone = alone > l->alone ? alone : l->alone;
        l->together = top > l->together ? top : l->together;
    }
    l->n_open = outer;
}

static void nothing_that_lives_is_overlaid(void **state)
{
    int64_t alone = 0, together = 0, live = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        Ctx ctx;
        ctx_init(&ctx);
        Kernel *k = random_kernel(&ctx, seed)->kernels.at[0];
        kernel_share(&ctx, k);
        Layout l = {.k = k};
        lay_out(&l, k->body, k->n_body, 0, 0);
        if (!loop_verify(&ctx, k, "test") || !run(&ctx, k) || l.clashes > 0 ||
            l.together > l.alone || l.together < l.live) {
            fail_msg("seed %" PRIu64 ": %u overlaid, %lld of %lld bytes, %lld live\n%s", seed,
                     l.clashes, (long long)l.together, (long long)l.alone, (long long)l.live,
                     dump(&ctx, k));
        }
        alone += l.alone;
        together += l.together;
        live += l.live;
        ctx_release(&ctx);
    }
    print_message("of %lld bytes %lld are left, %lld live at once\n", (long long)alone,
                  (long long)together, (long long)live);
    assert_true(together * 10 < alone * 8 && together * 10 < live * 13);
}

/* ---- faults ---- */

static void assert_found(Ctx *ctx, const Kernel *k, uint64_t seed, const char *what)
{
    if (loop_verify(ctx, k, "test")) {
        fail_msg("seed %" PRIu64 ": %s is not refused\n%s", seed, what, dump(ctx, k));
    }
    if (run(ctx, k)) {
        fail_msg("seed %" PRIu64 ": %s is not seen when it runs\n%s", seed, what, dump(ctx, k));
    }
}

/* Two that live together at one place, and one that takes its place a statement too early. */
static void plant(Ctx *ctx, Kernel *k, Stmt **body, uint32_t n, uint64_t seed,
                  uint32_t *planted)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            plant(ctx, k, s->body, s->n_body, seed, planted);
        }
        for (uint32_t j = 0; s->kind == STMT_ALLOC && j < i; j++) {
            bool used = false;
            for (uint32_t u = i; u < n; u++) {
                used = used || (body[j]->kind == STMT_ALLOC && names(body[u], body[j]->buf));
            }
            if (used && k->bufs.at[body[j]->buf].dtype == k->bufs.at[s->buf].dtype) {
                uint32_t was = s->over;
                s->over = 1 + body[j]->buf;
                assert_found(ctx, k, seed, "a place of one that lives");
                s->over = was;
                planted[0]++;
            }
        }
        if (s->kind == STMT_ALLOC && s->over > 0 && names(body[i - 1], s->over - 1)) {
            body[i] = body[i - 1];
            body[i - 1] = s;
            assert_found(ctx, k, seed, "a place taken a statement too early");
            body[i - 1] = body[i];
            body[i] = s;
            planted[1]++;
        }
    }
}

static void a_place_that_is_needed_is_not_taken(void **state)
{
    uint32_t planted[2] = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Ctx ctx;
        ctx_init(&ctx);
        Kernel *k = random_kernel(&ctx, seed)->kernels.at[0];
        kernel_share(&ctx, k);
        plant(&ctx, k, k->body, k->n_body, seed, planted);
        ctx_release(&ctx);
    }
    assert_true(planted[0] > 200 && planted[1] > 50);
}

TESTS(TEST(the_largest_goes_first_into_the_smallest_place), TEST(blocks_of_every_depth_share),
      TEST(nothing_that_lives_is_overlaid), TEST(a_place_that_is_needed_is_not_taken))
