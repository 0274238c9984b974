/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the kernel IR's tests (support.h). */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "support/places.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"

char *kernel_text(Arena *a, const char *name)
{
    char *path = str_format(a, "tests/loop/kernels/%s.tir", name);
    FILE *f = fopen(source_file(path), "rb");
    assert_non_null(f);
    char *text = arena_alloc(a, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    fclose(f);
    assert_true(n > 0 && n < (1 << 16) - 1);
    return text;
}

KernelModule *read_text(Ctx *ctx, const char *text)
{
    uint32_t source = source_add(&ctx->sources, "test.tir", str_from(text), (Span){0, 0, 0});
    return kernel_module_read(ctx, source);
}

const char *messages(Ctx *ctx)
{
    Text t;
    text_init(&t, &ctx->arena);
    diags_render(&ctx->diags, &t, false);
    return t.at;
}

char *replaced(Arena *a, const char *text, const char *from, uint32_t nth, const char *to)
{
    const char *at = strstr(text, from);
    while (at != NULL && nth-- > 0) {
        at = strstr(at + 1, from);
    }
    if (at == NULL) {
        fail_msg("the text has no (further) `%s`", from);
    }
    return str_format(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

Tensor *random_tensor(Ctx *ctx, uint64_t seed, DType t, uint32_t rank, const int64_t *extent)
{
    Rng rng = {seed};
    Tensor *x = tensor_new(ctx, &ctx->arena, t, rank, extent);
    assert_non_null(x);
    for (int64_t i = 0; i < x->count; i++) {
        Number v = {.dtype = DTYPE_F64, .re = 2.0 * rng_unit(&rng) - 1.0};
        tensor_set(x, i, number_cast(v, t));
    }
    return x;
}

bool run_kernel(Ctx *ctx, const Kernel *k, const int64_t *dims, uint64_t seed, Run *run)
{
    *run = (Run){{NULL}, {NULL}};
    assert_true(k->args.n <= MOST_ARGS);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Buffer *b = &k->bufs.at[k->args.at[i].buf];
        int64_t extent[RANK_LIMIT];
        for (uint32_t d = 0; d < b->rank; d++) {
            extent[d] = b->extent[d].sym < 0 ? b->extent[d].n : dims[b->extent[d].sym];
        }
        if (k->args.at[i].role != ARG_RESULT) {
            run->args[i] = random_tensor(ctx, seed * 97 + i, b->dtype, b->rank, extent);
        }
        if (strcmp(b->name->text, "ev") ==
            0) { /* virtual orbitals lie above the occupied ones */
            for (int64_t at = 0; at < run->args[i]->count; at++) {
                Number v = tensor_get(run->args[i], at);
                v.re += 4.0;
                tensor_set(run->args[i], at, v);
            }
        }
    }
    return loop_eval(ctx, &ctx->arena, k, dims, run->args, run->results);
}

static double at(const Tensor *t, int64_t i)
{
    return tensor_get(t, i).re;
}

/* dims m, k, n; C = A B */
double *reference_matmul(Arena *a, const int64_t *dims, Tensor *const *args)
{
    int64_t m = dims[0], k = dims[1], n = dims[2];
    double *c = ARENA_ARRAY(a, (size_t)(m * n), double);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            for (int64_t l = 0; l < k; l++) {
                c[i * n + j] += at(args[0], i * k + l) * at(args[1], l * n + j);
            }
        }
    }
    return c;
}

/* dims m, k; the sums of rows */
double *reference_cascade(Arena *a, const int64_t *dims, Tensor *const *args)
{
    double *c = ARENA_ARRAY(a, (size_t)dims[0], double);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        c[i / dims[1]] += at(args[0], i);
    }
    return c;
}

/* dims o; Y = relu(X W + b) */
double *reference_mlp(Arena *a, const int64_t *dims, Tensor *const *args)
{
    int64_t o = dims[0], in = 24, out = 20;
    double *y = ARENA_ARRAY(a, (size_t)(o * out), double);
    for (int64_t i = 0; i < o; i++) {
        for (int64_t j = 0; j < out; j++) {
            double sum = at(args[2], j);
            for (int64_t l = 0; l < in; l++) {
                sum += at(args[0], i * in + l) * at(args[1], l * out + j);
            }
            y[i * out + j] = sum < 0 ? 0 : sum;
        }
    }
    return y;
}

static double mp2_t(const Tensor *b, const int64_t *dims, int64_t i, int64_t a, int64_t j,
                    int64_t c)
{
    double sum = 0;
    for (int64_t p = 0; p < dims[2]; p++) {
        sum += at(b, (i * dims[1] + a) * dims[2] + p) * at(b, (j * dims[1] + c) * dims[2] + p);
    }
    return sum;
}

/* dims o, v, x; orbital energies are apart, so that no denominator is near 0 */
double *reference_mp2(Arena *a, const int64_t *dims, Tensor *const *args)
{
    double *e = ARENA_NEW(a, double);
    int64_t o = dims[0], v = dims[1];
    for (int64_t i = 0; i < o; i++) {
        for (int64_t j = 0; j < o; j++) {
            for (int64_t p = 0; p < v; p++) {
                for (int64_t q = 0; q < v; q++) {
                    double t = mp2_t(args[0], dims, i, p, j, q);
                    double x = mp2_t(args[0], dims, i, q, j, p);
                    *e += t * (2 * t - x) /
                          (at(args[1], i) + at(args[1], j) - at(args[2], p) - at(args[2], q));
                }
            }
        }
    }
    return e;
}

/* dims h, s, t, d */
double *reference_attention(Arena *a, const int64_t *dims, Tensor *const *args)
{
    int64_t h = dims[0], s = dims[1], t = dims[2], d = dims[3];
    double *out = ARENA_ARRAY(a, (size_t)(h * s * d), double);
    double *w = ARENA_ARRAY(a, (size_t)t, double);
    for (int64_t row = 0; row < h * s; row++) {
        int64_t g = row / s;
        double most = -(double)INFINITY, sum = 0;
        for (int64_t k = 0; k < t; k++) {
            w[k] = 0;
            for (int64_t e = 0; e < d; e++) {
                w[k] += at(args[0], row * d + e) * at(args[1], (g * t + k) * d + e);
            }
            w[k] /= sqrt((double)d);
            most = w[k] > most ? w[k] : most;
        }
        for (int64_t k = 0; k < t; k++) {
            w[k] = exp(w[k] - most);
            sum += w[k];
        }
        for (int64_t k = 0; k < t; k++) {
            for (int64_t e = 0; e < d; e++) {
                out[row * d + e] += w[k] / sum * at(args[2], (g * t + k) * d + e);
            }
        }
    }
    return out;
}

bool agrees(const Tensor *t, const double *expected)
{
    for (int64_t i = 0; i < t->count; i++) {
        double got = at(t, i);
        if (!(fabs(got - expected[i]) <= 2e-5 * (1 + fabs(expected[i])))) {
            return false;
        }
    }
    return true;
}
