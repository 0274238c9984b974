/* SPDX-License-Identifier: Apache-2.0 */
/* What tdsl-bench times from C, so that no interpreter stands between two calls: kernels by their table, functions of
 * BLAS and oneDNN by their address, a copy, a function of libm, and DF-MP2 as a good C program with a BLAS does it; and
 * the limits of the machine: multiply-adds in registers, bytes read and written from sets of some sizes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "tdsl/abi.h"

#define THREADS 256

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one of `calls` calls, for what stands in `statement`. */
#define TIMED(calls, statement)                                                                \
    do {                                                                                       \
        double begin = now();                                                                  \
        for (int64_t call = 0; call < (calls); call++) {                                       \
            statement;                                                                         \
        }                                                                                      \
        return (now() - begin) / (double)(calls);                                              \
    } while (0)

size_t bench_workspace(const tdsl_kernel_info *info, const int64_t *dims, int32_t threads)
{
    return threads > 1 ? info->workspace_bytes_threads(dims, threads)
                       : info->workspace_bytes(dims);
}

/* -1 where the kernel refuses. */
double bench_kernel(const tdsl_kernel_info *info, const int64_t *dims, void *const *args,
                    void *workspace, size_t bytes, int32_t threads, int64_t calls)
{
    tdsl_threads many = {.count = threads};
    if (threads > 1) {
        TIMED(calls, if (info->call_threads(dims, args, workspace, bytes, &many) !=
                         TDSL_OK) return -1);
    }
    TIMED(calls, if (info->call(dims, args, workspace, bytes) != TDSL_OK) return -1);
}

/* One call of a library: `kind` says which function `run` is, as gemm and the others below take it. The order of members is that of
 * native.py. */
typedef struct Call {
    void (*run)(void);
    const char *a, *b;
    char *c;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batch, step_a, step_b, step_c; /* steps in bytes */
    int32_t kind, type, trans_a, trans_b;
} Call;

enum { CBLAS_GEMM, CBLAS_GEMV, CBLAS_TRANSPOSE, DNNL_GEMM };
enum { F32, F64, C64, C128 };
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void (*Sgemm)(int, int, int, int, int, int, float, const void *, int, const void *, int,
                      float, void *, int);
typedef void (*Dgemm)(int, int, int, int, int, int, double, const void *, int, const void *,
                      int, double, void *, int);
typedef void (*Cgemm)(int, int, int, int, int, int, const void *, const void *, int,
                      const void *, int, const void *, void *, int);
typedef void (*Sgemv)(int, int, int, int, float, const void *, int, const void *, int, float,
                      void *, int);
typedef void (*Dgemv)(int, int, int, int, double, const void *, int, const void *, int, double,
                      void *, int);
typedef void (*Somatcopy)(int, int, int, int, float, const void *, int, void *, int);
typedef void (*Domatcopy)(int, int, int, int, double, const void *, int, void *, int);
typedef int (*DnnlSgemm)(char, char, int64_t, int64_t, int64_t, float, const void *, int64_t,
                         const void *, int64_t, float, void *, int64_t);

static void gemm(const Call *p, const char *a, const char *b, char *c)
{
    static const float one[] = {1, 0}, zero[] = {0, 0};
    static const double one_d[] = {1, 0}, zero_d[] = {0, 0};
    int ta = p->trans_a ? TRANS : NO_TRANS, tb = p->trans_b ? TRANS : NO_TRANS;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb,
        ldc = (int)p->ldc;
    switch (p->type) {
    case F32:
        ((Sgemm)p->run)(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
        break;
    case F64:
        ((Dgemm)p->run)(ROW_MAJOR, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
        break;
    case C64:
        ((Cgemm)p->run)(ROW_MAJOR, ta, tb, m, n, k, one, a, lda, b, ldb, zero, c, ldc);
        break;
    default:
        ((Cgemm)p->run)(ROW_MAJOR, ta, tb, m, n, k, one_d, a, lda, b, ldb, zero_d, c, ldc);
        break;
    }
}

/* A matrix m x n by a vector, or its transpose by one. */
static void gemv(const Call *p)
{
    int t = p->trans_a ? TRANS : NO_TRANS, m = (int)p->m, n = (int)p->n, lda = (int)p->lda;
    if (p->type == F32) {
        ((Sgemv)p->run)(ROW_MAJOR, t, m, n, 1, p->a, lda, p->b, 1, 0, p->c, 1);
    } else {
        ((Dgemv)p->run)(ROW_MAJOR, t, m, n, 1, p->a, lda, p->b, 1, 0, p->c, 1);
    }
}

static void transpose(const Call *p)
{
    int m = (int)p->m, n = (int)p->n;
    if (p->type == F32) {
        ((Somatcopy)p->run)(ROW_MAJOR, TRANS, m, n, 1, p->a, n, p->c, m);
    } else {
        ((Domatcopy)p->run)(ROW_MAJOR, TRANS, m, n, 1, p->a, n, p->c, m);
    }
}

static void run_call(const Call *p)
{
    for (int64_t i = 0; i < p->batch; i++) {
        const char *a = p->a + i * p->step_a, *b = p->b + i * p->step_b;
        char *c = p->c + i * p->step_c;
        switch (p->kind) {
        case CBLAS_GEMM:
            gemm(p, a, b, c);
            break;
        case CBLAS_GEMV:
            gemv(p);
            break;
        case CBLAS_TRANSPOSE:
            transpose(p);
            break;
        default:
            (void)((DnnlSgemm)p->run)(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m,
                                      p->n, p->k, 1, a, p->lda, b, p->ldb, 0, c, p->ldc);
            break;
        }
    }
}

/* `count` calls of libraries, one after the other, `calls` times. */
double bench_calls(const Call *list, int64_t count, int64_t calls)
{
    TIMED(calls, for (int64_t i = 0; i < count; i++) run_call(&list[i]));
}

double bench_copy(void *to, const void *from, size_t bytes, int64_t calls)
{
    TIMED(calls, memcpy(to, from, bytes); __asm__ volatile("" ::: "memory"));
}

double bench_map_f32(float (*function)(float), const float *x, float *y, int64_t n,
                     int64_t calls)
{
    TIMED(calls, for (int64_t i = 0; i < n; i++) y[i] = function(x[i]));
}

double bench_map_f64(double (*function)(double), const double *x, double *y, int64_t n,
                     int64_t calls)
{
    TIMED(calls, for (int64_t i = 0; i < n; i++) y[i] = function(x[i]));
}

/* The DF-MP2 energy with one GEMM for each pair i <= j, and the energy of a pair by blocks in which a block and its mirror image stay in a
 * near cache; the loop over b is vectorised by the compiler (reductions may be reordered: -ffast-math). */
#define BLOCK 32
#define MP2(T, NAME, GEMM)                                                                     \
    static T pair_##NAME(const T *t, const T *ev, T eij, int64_t v)                            \
    {                                                                                          \
        T energy = 0, mirror[BLOCK][BLOCK];                                                    \
        for (int64_t a0 = 0; a0 < v; a0 += BLOCK) {                                            \
            int64_t na = a0 + BLOCK < v ? BLOCK : v - a0;                                      \
            for (int64_t b0 = 0; b0 < v; b0 += BLOCK) {                                        \
                int64_t nb = b0 + BLOCK < v ? BLOCK : v - b0;                                  \
                for (int64_t b = 0; b < nb; b++) {                                             \
                    for (int64_t a = 0; a < na; a++) {                                         \
                        mirror[a][b] = t[(b0 + b) * v + a0 + a];                               \
                    }                                                                          \
                }                                                                              \
                for (int64_t a = 0; a < na; a++) {                                             \
                    const T *row = t + (a0 + a) * v + b0;                                      \
                    T e = eij - ev[a0 + a], sum = 0;                                           \
                    for (int64_t b = 0; b < nb; b++) {                                         \
                        sum += row[b] * (2 * row[b] - mirror[a][b]) / (e - ev[b0 + b]);        \
                    }                                                                          \
                    energy += sum;                                                             \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
        return energy;                                                                         \
    }                                                                                          \
    double bench_mp2_##NAME(GEMM run, const T *B, const T *eo, const T *ev, int64_t o,         \
                            int64_t v, int64_t x, T *t, T *result, int64_t calls)              \
    {                                                                                          \
        TIMED(                                                                                 \
            calls, double energy = 0; for (int64_t i = 0; i < o; i++) {                        \
                for (int64_t j = 0; j <= i; j++) {                                             \
                    run(ROW_MAJOR, NO_TRANS, TRANS, (int)v, (int)v, (int)x, 1, B + i * v * x,  \
                        (int)x, B + j * v * x, (int)x, 0, t, (int)v);                          \
                    energy += (i == j ? 1 : 2) * (double)pair_##NAME(t, ev, eo[i] + eo[j], v); \
                }                                                                              \
            } *result = (T)energy);                                                            \
    }
MP2(float, f32, Sgemm)
MP2(double, f64, Dgemm)

/* ---- the limits of the machine */

typedef struct Probe {
    double (*work)(size_t bytes, double seconds);
    pthread_barrier_t *gate;
    size_t bytes;
    double seconds, rate;
} Probe;

static void *probe(void *at)
{
    Probe *p = at;
    (void)pthread_barrier_wait(p->gate);
    p->rate = p->work(p->bytes, p->seconds);
    return NULL;
}

/* The sum of the best rates of so many threads. */
static double on_threads(double (*work)(size_t, double), int32_t threads, size_t bytes,
                         double seconds)
{
    pthread_t id[THREADS];
    Probe each[THREADS];
    pthread_barrier_t gate;
    double sum = 0;
    if (threads <= 1 || threads > THREADS) {
        return work(bytes, seconds);
    }
    (void)pthread_barrier_init(&gate, NULL, (unsigned)threads);
    for (int32_t i = 0; i < threads; i++) {
        each[i] = (Probe){.work = work, .gate = &gate, .bytes = bytes, .seconds = seconds};
        if (pthread_create(&id[i], NULL, probe, &each[i]) != 0) {
            abort();
        }
    }
    for (int32_t i = 0; i < threads; i++) {
        (void)pthread_join(id[i], NULL);
        sum += each[i].rate;
    }
    (void)pthread_barrier_destroy(&gate);
    return sum;
}

#if defined __AVX512F__
enum { BYTES = 64, CHAINS = 24 };
#elif defined __AVX__
enum { BYTES = 32, CHAINS = 12 };
#else
enum { BYTES = 16, CHAINS = 12 };
#endif
static volatile double sink;

/* Multiply-adds in registers, as many chains as hide the latency of one: flop a second. */
#define PEAK(T, NAME)                                                                          \
    typedef T Vector_##NAME __attribute__((vector_size(BYTES)));                               \
    static __attribute__((noinline)) void chains_##NAME(T scale, int rounds)                   \
    {                                                                                          \
        Vector_##NAME sum[CHAINS], a = scale - (Vector_##NAME){0},                             \
                                   b = (T)1e-6 - (Vector_##NAME){0};                           \
        for (int i = 0; i < CHAINS; i++) {                                                     \
            sum[i] = (T)i - (Vector_##NAME){0};                                                \
        }                                                                                      \
        for (int r = 0; r < rounds; r++) {                                                     \
            _Pragma("GCC unroll 24") for (int i = 0; i < CHAINS; i++)                          \
            {                                                                                  \
                sum[i] = a * sum[i] + b;                                                       \
            }                                                                                  \
        }                                                                                      \
        for (int i = 1; i < CHAINS; i++) {                                                     \
            sum[0] += sum[i];                                                                  \
        }                                                                                      \
        sink = (double)sum[0][0];                                                              \
    }                                                                                          \
    static double peak_##NAME(size_t bytes, double seconds)                                    \
    {                                                                                          \
        const int rounds = 20000;                                                              \
        double begin = now(), top = 0;                                                         \
        (void)bytes;                                                                           \
        do {                                                                                   \
            double t = now();                                                                  \
            chains_##NAME((T)0.999, rounds);                                                   \
            t = 2.0 * rounds * CHAINS * (BYTES / sizeof(T)) / (now() - t);                     \
            top = t > top ? t : top;                                                           \
        } while (now() - begin < seconds);                                                     \
        return top;                                                                            \
    }
PEAK(float, f32)
PEAK(double, f64)

double bench_peak(int32_t wide, int32_t threads, double seconds)
{
    return on_threads(wide ? peak_f64 : peak_f32, threads, 0, seconds);
}

typedef uint64_t Line __attribute__((vector_size(BYTES)));

static void read_set(const Line *data, size_t lines)
{
    Line a = {0}, b = a, c = a, d = a;
    for (size_t i = 0; i + 4 <= lines; i += 4) {
        a += data[i];
        b += data[i + 1];
        c += data[i + 2];
        d += data[i + 3];
    }
    a += b + c + d;
    sink = (double)a[0];
}

static void write_set(Line *data, size_t lines)
{
    Line value = (Line){0} + (uint64_t)lines;
    for (size_t i = 0; i < lines; i++) {
        data[i] = value;
    }
    __asm__ volatile("" ::: "memory");
}

/* Past the caches, where there is an instruction for it. */
static void stream_set(Line *data, size_t lines)
{
#ifdef __SSE2__
    __m128i value = _mm_set1_epi32((int)lines);
    for (size_t i = 0; i < lines; i++) {
        for (size_t j = 0; j < sizeof(Line) / sizeof value; j++) {
            _mm_stream_si128((__m128i *)&data[i] + j, value);
        }
    }
    _mm_sfence();
#else
    write_set(data, lines);
#endif
}

static double rate_of(size_t bytes, double seconds, int writes)
{
    size_t lines = bytes / sizeof(Line), repeat = 1 + ((size_t)1 << 20) / bytes;
    Line *data = aligned_alloc(64, lines * sizeof(Line));
    double begin = now(), top = 0;
    if (data == NULL) {
        return 0;
    }
    memset(data, 1, lines * sizeof(Line));
    for (int round = 0; round < 4 || now() - begin < seconds; round++) {
        double t = now();
        for (size_t r = 0; r < repeat; r++) {
            if (!writes) {
                read_set(data, lines);
            } else if (round % 2) {
                stream_set(data, lines);
            } else {
                write_set(data, lines);
            }
        }
        t = (double)(repeat * lines * sizeof(Line)) / (now() - t);
        top = t > top ? t : top;
    }
    free(data);
    return top;
}

static double read_rate(size_t bytes, double seconds)
{
    return rate_of(bytes, seconds, 0);
}

static double write_rate(size_t bytes, double seconds)
{
    return rate_of(bytes, seconds, 1);
}

/* Bytes a second, read from or written to a set of so many bytes, which the threads share. */
double bench_bandwidth(int32_t writes, int32_t threads, size_t bytes, double seconds)
{
    size_t each = bytes / (size_t)(threads > 1 ? threads : 1);
    return on_threads(writes ? write_rate : read_rate, threads, each < 4096 ? 4096 : each,
                      seconds);
}
