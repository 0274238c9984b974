/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs, compared exactly: the graph interpreter on the program as written,
 * --check-each after every pass, and the compiled C of each C compiler. A failing program is
 * reduced to the fewest statements that still fail, and printed with its seed.
 *
 *     random_programs [--seed=S] [--count=N] [--cc=PROGRAM]... [--cflags=FLAGS] [--verbose]
 *     random_programs --print-device [--seed=S] [--count=N]
 *
 * The second form only prints programs, for tests of other targets.
 * Exit 1 when a program failed. Programs are compiled in batches, one C file each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/run/c_library.h"
#include "driver/compile.h"
#include "driver/input.h"
#include "driver/targets.h"
#include "generate.h"
#include "graph/eval.h"
#include "nest/plan.h"

#define BATCH         40
#define MAX_COMPILERS 4

typedef struct Setup {
    uint64_t seed;
    int64_t count;
    const char *cc[MAX_COMPILERS];
    uint32_t n_cc;
    const char *cflags;
    bool verbose, print_device;
} Setup;

/* One compilation of some programs. */
typedef struct Trial {
    Ctx ctx;
    Arena arena;
    Options options;
    Module *module; /* as written, before any pass */
    Str c_text;
    const Target *target;
} Trial;

static void trial_init(Trial *t)
{
    *t = (Trial){0};
    ctx_init(&t->ctx);
    arena_init(&t->arena, &t->ctx.budget);
    t->target = target_find("c");
}

static void trial_release(Trial *t)
{
    arena_release(&t->arena);
    ctx_release(&t->ctx);
}

static const char *messages(Trial *t)
{
    Text out;
    text_init(&out, &t->arena);
    t->ctx.diags.no_warnings = true;
    diags_render(&t->ctx.diags, &out, false);
    return out.n == 0 ? "no message" : out.at;
}

/* The nest for small sizes of an open dim and the one for large sizes are two, fused and not, and
 * the border is next to the size that the kernel is called with. */
static const Nest *two_nests(Trial *t, const Nest *fused, int32_t dim, int64_t least)
{
    const DimInfo *d = &fused->graph->dims.list.at[dim];
    bool other_first = d->typical >= least;
    int64_t size = other_first ? least - 1 : least + 1;
    const Graph *g = nest_graph_at(&t->arena, fused->graph, dim, size);
    Nest *nest = arena_copy(&t->arena, fused, sizeof *fused);
    Nest *other = nest_unfused(&t->ctx, &t->arena, g, t->target->machine);
    NestSize *s = ARENA_ARRAY(&t->arena, 2, NestSize);
    if (size < 1) {
        return fused;
    }
    s[0].when = (DimTest){dim, 0, least - 1};
    s[1].when = (DimTest){dim, least, DIM_ANY_SIZE};
    for (uint32_t k = 0; k < 2; k++) {
        bool is_other = (k == 0) == other_first;
        s[k].size = is_other ? size : d->typical;
        s[k].nest = is_other ? other : nest;
    }
    nest->n_sizes = 2;
    nest->sizes = s;
    return nest;
}

static int64_t *bind_dims(Trial *t, const RandomProgram *p, const Graph *g)
{
    int64_t *dims = ARENA_ARRAY(&t->arena, g->dims.list.n, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        const char *name = strrchr(g->dims.list.at[d].name->text, 'd');
        dims[d] = p->dims[name[1] - '0'].extent;
    }
    return dims;
}

/* Text -> graphs -> C, every pass checked. */
static bool compile(Trial *t, const RandomProgram *p, uint32_t n)
{
    Text text;
    text_init(&text, &t->arena);
    for (uint32_t k = 0; k < n; k++) {
        random_program_print(&p[k], &text);
    }
    Input in = {.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    t->ctx.diags.no_warnings = true;
    if (!input_text(&in, "random.tdsl", text_str(&text))) {
        return false;
    }
    Module *m = input_build(&in, NULL);
    if (m == NULL) {
        return false;
    }
    t->module = arena_copy(&t->arena, m, sizeof *m);
    t->module->graphs.at =
        arena_copy(&t->arena, m->graphs.at, m->graphs.n * sizeof *m->graphs.at);
    Compilation c;
    compilation_init(&c, &t->ctx, &t->arena, t->target);
    c.check_each = true;
    c.module = m;
    c.stage = STAGE_CHECKED;
    c.emit.source_name = "random.tdsl";
    c.emit.tool_version = "test";
    bool ok = compilation_run(&c, STAGE_NEST);
    for (uint32_t k = 0; ok && k < n; k++) {
        uint32_t n_dims = c.nests[k]->graph->dims.list.n;
        if (n_dims > 0 && p[k].seed % 2 == 0) {
            uint32_t d = (uint32_t)(p[k].seed / 4 % n_dims);
            int64_t extent = bind_dims(t, &p[k], c.nests[k]->graph)[d];
            c.nests[k] =
                two_nests(t, c.nests[k], (int32_t)d, extent + (int64_t)(p[k].seed / 2 % 2));
        }
    }
    ok = ok && compilation_verify(&c, STAGE_NEST, "test") && compilation_run(&c, STAGE_OUTPUT);
    compilation_release(&c);
    if (!ok) {
        return false;
    }
    for (uint32_t k = 0; k < c.outputs.files.n; k++) {
        if (strcmp(c.outputs.files.at[k].suffix, ".c") == 0) {
            t->c_text = c.outputs.files.at[k].text;
        }
    }
    return t->c_text.n > 0;
}

/* An odd number of one bit more than bf16, f16 or f32 holds. */
static int64_t halfway(Rng *rng)
{
    static const int digits[] = {8, 11, 24};
    uint64_t least = UINT64_C(1) << (digits[rng_below(rng, 3)] - 1);
    return (int64_t)(2 * (least + rng_below(rng, least)) + 1);
}

/* Halfway between two neighbours in bf16, f16 or f32, or next to that, of either sign; also
 * where they are subnormal, and beyond the largest. */
static double between(Rng *rng)
{
    double x = (double)halfway(rng) * ldexp(1, (int)rng_below(rng, 60) - 38);
    x = rng_below(rng, 3) == 0 ? nextafter(x, rng_below(rng, 2) == 0 ? 0 : INFINITY) : x;
    return rng_below(rng, 2) == 0 ? -x : x;
}

static Number between_number(Rng *rng, DType t)
{
    if (t == DTYPE_BOOL) {
        return number_int(t, (int64_t)rng_below(rng, 2));
    }
    if (t == DTYPE_I32) {
        int64_t v = halfway(rng) << rng_below(rng, 6);
        return number_int(t, rng_below(rng, 2) == 0 ? v : -v);
    }
    if (t == DTYPE_I64) {
        int64_t v = halfway(rng);
        v <<= rng_below(rng, 36);
        return number_int(t, v + (int64_t)rng_below(rng, 3) - 1);
    }
    Number x = number_real(t, between(rng));
    x.im = dtype_is_complex(t) ? number_real(t, between(rng)).re : 0;
    return x;
}

static Tensor *argument(Trial *t, const RandomProgram *p, const Param *param,
                        const int64_t *dims)
{
    int64_t extent[RANK_LIMIT];
    for (uint32_t d = 0; d < param->rank; d++) {
        extent[d] = param->shape[d].sym < 0 ? param->shape[d].n : dims[param->shape[d].sym];
    }
    Tensor *out = tensor_new(&t->ctx, &t->arena, param->dtype, param->rank, extent);
    Rng rng = {hash_mix(p->seed, strtoull(param->name->text + 1, NULL, 10))};
    bool whole = dtype_is_exact(param->dtype);
    for (int64_t k = 0; k < out->count && p->between; k++) {
        tensor_set(out, k, between_number(&rng, param->dtype));
    }
    for (int64_t k = 0; k < out->count && !p->between; k++) {
        int64_t most = dtype_bytes(param->dtype) == 2 ? 1 : 3; /* -3 .. 3 without 0 */
        int64_t v = (int64_t)rng_below(&rng, 2 * (uint64_t)most);
        v = v < most ? v - most : v - most + 1;
        Number x = whole ? number_int(param->dtype, param->dtype == DTYPE_BOOL ? v > 0 : v)
                         : number_real(param->dtype, (double)v);
        if (dtype_is_complex(param->dtype)) {
            x.im = (double)((v * 5) % 3);
        }
        tensor_set(out, k, x);
    }
    tensor_make_symmetric(&t->arena, out, param->symmetry);
    return out;
}

typedef struct Expected {
    const int64_t *dims;
    Tensor **args;
    Tensor **results;
} Expected;

static bool interpret(Trial *t, const RandomProgram *p, const Graph *g, Expected *e)
{
    e->dims = bind_dims(t, p, g);
    e->args = ARENA_ARRAY(&t->arena, g->params.n, Tensor *);
    e->results = ARENA_ARRAY(&t->arena, g->results.n, Tensor *);
    for (uint32_t k = 0; k < g->params.n; k++) {
        e->args[k] = argument(t, p, &g->params.at[k], e->dims);
    }
    return graph_eval(&t->ctx, &t->arena, g, e->dims, e->args, e->results);
}

/* Negative zeros compare equal to zeros: a sum that starts from 0 and one that does not differ in that alone. */
static bool same(const Tensor *a, const Tensor *b, int64_t *at)
{
    for (*at = 0; *at < a->count; ++*at) {
        Number x = tensor_get(a, *at), y = tensor_get(b, *at);
        if (x.i != y.i || !(x.re == y.re) || !(x.im == y.im)) {
            return false;
        }
    }
    return true;
}

static bool compare(Trial *t, CLibrary *library, const Graph *g, const Expected *e, char *why,
                    size_t room)
{
    Tensor **results = ARENA_ARRAY(&t->arena, g->results.n, Tensor *);
    CTiming timing = {0};
    const char *name = g->name->text;
    const char *symbol = t->target->symbol == NULL ? name : t->target->symbol(&t->arena, name);
    Head head = head_of_graph(&t->arena, g);
    if (!c_library_call(library, &head, symbol, e->dims, e->args, results, &timing)) {
        (void)snprintf(why, room, "%s", messages(t));
        return false;
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        int64_t at = 0;
        if (!same(e->results[r], results[r], &at)) {
            Number x = tensor_get(e->results[r], at), y = tensor_get(results[r], at);
            (void)snprintf(why, room,
                           "element %lld of %s: %g%+gi, %lld expected; %g%+gi, %lld computed",
                           (long long)at, g->results.at[r].name->text, x.re, x.im,
                           (long long)x.i, y.re, y.im, (long long)y.i);
            return false;
        }
    }
    return true;
}

/* Index of the first program that fails, n when none does, or -1 when they do not compile together. */
static int64_t try_programs(const Setup *s, const RandomProgram *p, uint32_t n, char *why,
                            size_t room)
{
    Trial t;
    trial_init(&t);
    int64_t failed = -1;
    if (!compile(&t, p, n)) {
        (void)snprintf(why, room, "%s", messages(&t));
    } else {
        failed = (int64_t)n;
        Expected *e = ARENA_ARRAY(&t.arena, n, Expected);
        for (uint32_t k = 0; k < n && failed == (int64_t)n; k++) {
            if (!interpret(&t, &p[k], t.module->graphs.at[k], &e[k])) {
                (void)snprintf(why, room, "interpreter: %s", messages(&t));
                failed = k;
            }
        }
        for (uint32_t c = 0; c < s->n_cc && failed == (int64_t)n; c++) {
            CLibrary library;
            if (!c_library_open(&library, &t.ctx, &t.arena, t.c_text, s->cc[c], s->cflags)) {
                (void)snprintf(why, room, "%s: %s", s->cc[c], messages(&t));
                failed = -1;
            }
            for (uint32_t k = 0; k < n && failed == (int64_t)n; k++) {
                char detail[400];
                if (!compare(&t, &library, t.module->graphs.at[k], &e[k], detail,
                             sizeof detail)) {
                    (void)snprintf(why, room, "%s: %s", s->cc[c], detail);
                    failed = k;
                }
            }
            c_library_close(&library);
        }
    }
    trial_release(&t);
    return failed;
}

static bool fails(const Setup *s, const RandomProgram *p, char *why, size_t room)
{
    return try_programs(s, p, 1, why, room) != 1;
}

static void report(const Setup *s, const RandomProgram *p)
{
    static char why[4096], again[4096];
    RandomProgram least = *p;
    if (!fails(s, &least, why, sizeof why)) {
        printf("seed %llu fails only together with others\n", (unsigned long long)p->seed);
        return;
    }
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (uint32_t k = least.n_statements; k-- > 0;) {
            RandomProgram next = least;
            if (random_program_drop(&next, k) && fails(s, &next, again, sizeof again)) {
                least = next;
                memcpy(why, again, sizeof why);
                smaller = true;
            }
        }
    }
    for (uint32_t k = 0; k < least.n_tensors; k++) {
        RandomProgram next = least;
        if (random_program_drop_param(&next, k) && fails(s, &next, again, sizeof again)) {
            least = next;
        }
    }
    Arena arena;
    arena_init(&arena, NULL);
    Text text;
    text_init(&text, &arena);
    random_program_print(&least, &text);
    printf("FAILED seed %llu: %s\n%s  with", (unsigned long long)p->seed, why, text.at);
    for (uint32_t d = 0; d < least.n_dims; d++) {
        printf(" %s_d%u=%lld", least.name, d, (long long)least.dims[d].extent);
    }
    printf("\n");
    arena_release(&arena);
}

static bool parse(Setup *s, int argc, char **argv)
{
    *s = (Setup){.seed = 1, .count = 100, .cflags = "-O1"};
    for (int k = 1; k < argc; k++) {
        int64_t v = 0;
        if (strncmp(argv[k], "--seed=", 7) == 0 && parse_i64(argv[k] + 7, &v)) {
            s->seed = (uint64_t)v;
        } else if (strncmp(argv[k], "--count=", 8) == 0 && parse_i64(argv[k] + 8, &v)) {
            s->count = v;
        } else if (strncmp(argv[k], "--cc=", 5) == 0 && s->n_cc < MAX_COMPILERS) {
            s->cc[s->n_cc++] = argv[k] + 5;
        } else if (strncmp(argv[k], "--cflags=", 9) == 0) {
            s->cflags = argv[k] + 9;
        } else if (strcmp(argv[k], "--verbose") == 0) {
            s->verbose = true;
        } else if (strcmp(argv[k], "--print-device") == 0) {
            s->print_device = true;
        } else {
            fprintf(stderr, "random_programs: unknown argument '%s'\n", argv[k]);
            return false;
        }
    }
    if (s->n_cc == 0) {
        s->cc[s->n_cc++] = "gcc";
        s->cc[s->n_cc++] = "clang";
    }
    return true;
}

static void print_device(const Setup *s)
{
    static RandomProgram p;
    for (int64_t k = 0; k < s->count; k++) {
        Arena arena;
        Text text;
        arena_init(&arena, NULL);
        text_init(&text, &arena);
        random_program_device(&p, s->seed + (uint64_t)k);
        random_program_print(&p, &text);
        printf("%s", text.at);
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    static RandomProgram batch[BATCH];
    static char why[4096];
    Setup s;
    int64_t failures = 0;
    if (!parse(&s, argc, argv)) {
        return 2;
    }
    if (s.print_device) {
        print_device(&s);
        return 0;
    }
    for (int64_t done = 0; done < s.count;) {
        uint32_t n = s.count - done < BATCH ? (uint32_t)(s.count - done) : BATCH;
        for (uint32_t k = 0; k < n; k++) {
            random_program(&batch[k], s.seed + (uint64_t)done + k);
        }
        if (s.verbose) {
            printf("seeds %llu to %llu\n", (unsigned long long)batch[0].seed,
                   (unsigned long long)batch[n - 1].seed);
        }
        if (try_programs(&s, batch, n, why, sizeof why) != (int64_t)n) {
            /* one after the other: the batch stopped at its first failure */
            for (uint32_t k = 0; k < n; k++) {
                if (fails(&s, &batch[k], why, sizeof why)) {
                    report(&s, &batch[k]);
                    failures++;
                }
            }
        }
        done += n;
        fflush(stdout);
    }
    printf("%lld programs, %lld failures\n", (long long)s.count, (long long)failures);
    return failures > 0;
}
