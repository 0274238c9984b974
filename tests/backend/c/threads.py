# SPDX-License-Identifier: Apache-2.0
"""Kernels on several threads: the same bits as on one for 1 to 7, 16 and 64 threads, by OpenMP and by a pool of the caller's, in exactly
the workspace that was asked for and with less of it, which grows with the pieces that there are; a small call stays in the caller's thread; without OpenMP the
text compiles and means the same.

    threads.py --tdslc PATH

Exit 77: a compiler has no OpenMP; the rest passed.
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
import steps  # noqa: E402
from quick import GATE, share  # noqa: E402

# Sums over the shared loop, of pairs too (a part for each iteration);
# Shared loops with private blocks; of open and of known extents; a value that all threads read; no private block.
PROGRAM = """dim m ~ 300, n ~ 200, k ~ 100, h ~ 8, r ~ 3000, c ~ 300, z ~ 900000;
kernel chain(A: f32[h, m, k], B: f32[h, k, n], S: f32[m]) -> (O: f32[h, m, k]) {
    T[z,i,j] = S[i] * A[z,i,p] * B[z,p,j];
    M[z,i] = max[j](T[z,i,j]);
    W[z,i,j] = exp(T[z,i,j] - M[z,i]);
    O[z,i,p] = W[z,i,j] * B[z,p,j];
}
kernel fixed(A: f64[16, 70, 60], B: f64[16, 60, 80]) -> (O: f64[16, 70]) {
    T[z,i,j] = A[z,i,p] * B[z,p,j];
    O[z,i] = sum[j](T[z,i,j] * T[z,i,j]);
}
kernel plain(A: f64[m, n], B: f64[n]) -> (O: f64[m, n], s: f64[m]) {
    O[i,j] = A[i,j] / B[j];
    s[i] = max[j](O[i,j]);
}
kernel tall(A: f32[m, n], B: f32[n, k]) -> (C: f32[m, k]) { C[i,j] = A[i,p] * B[p,j]; }
kernel wide(A: f32[10, k], B: f32[k, 9000]) -> (C: f32[10, 9000]) { C[i,j] = A[i,p] * B[p,j]; }
kernel many(A: f64[2, h, 40, k], B: f64[2, h, k, 30]) -> (C: f64[2, h, 40, 30]) { C[y,z,i,j] = A[y,z,i,p] * B[y,z,p,j]; }
kernel labels(A: f32[24, 16, 24, k], B: f32[k, 16, 24]) -> (C: f32[24, 16, 16, 24, 24]) { C[a,b,c,d,e] = A[e,b,a,p] * B[p,c,d]; }
kernel energy(B: f64[m, n, k], e: f64[m]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,p] * B[j,b,p];
    E = sum[i,j,a,b](T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a]) / (e[i] + e[j]));
}
dim o ~ 12, w ~ 3000;
kernel broad(A: f64[60, k], B: f64[k, w]) -> (C: f64[60, w]) { C[i,j] = A[i,p] * B[p,j]; }
kernel pairs(B: f64[o, n, k], e: f64[o]) -> (E: f64, F: f64[n]) {
    T[i,a,j,b] = B[i,a,p] * B[j,b,p];
    E = sum[i,j,a,b](T[i,a,j,b] * (2 * T[i,a,j,b] - T[i,b,j,a]) / (e[i] + e[j]));
    F[a] = sum[i,j,b](T[i,a,j,b] * T[i,b,j,a] / (e[i] + e[j]));
}
kernel dot(x: f32[z], y: f32[z]) -> (d: f32, s: f32) { d = x[i] * y[i]; s = max[i](x[i] - y[i]); }
kernel loss(A: f64[r, c], B: f64[r, c]) -> (d: f64) { d = sum[i,j]((A[i,j] - B[i,j]) * (A[i,j] - B[i,j])); }
kernel columns(A: f64[r, 300]) -> (d: f64[300]) { d[j] = sum[i](A[i,j]); }
kernel rows(A: f64[r, c], x: f64[c]) -> (d: f64[r], y: f64[r]) { d[i] = sum[j](A[i,j]); y[i] = A[i,j] * x[j]; }
kernel each(A: f32[r, c]) -> (R: f32[c, r], S: f32[r, c]) { R[j,i] = A[i,j]; S[i,j] = exp(A[i,j]); }
kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel gated(X: f32[m, k], G: f32[k, n], U: f32[k, n], D: f32[n, k]) -> (Y: f32[m, k]) {
    g[i,j] = X[i,p] * G[p,j];
    u[i,j] = X[i,p] * U[p,j];
    t[i,j] = g[i,j] / (1 + exp(-g[i,j])) * u[i,j];
    Y[i,q] = t[i,j] * D[j,q];
}
kernel bytes(A: i8[m, k], B: i8[k, n]) -> (C: i32[m, n]) { C[i,j] = A[i,p] * B[p,j]; }
kernel segments(X: f32[m, n], t: f64[m]) -> (G: f32[r, n], M: f32[r, n]) {
    G[v,e] = sum[i, mod(i64(1000 * t[i]), extent(r)) == v](X[i,e] * X[i,e]);
    M[v,e] = max[i, 2 * t[i] > 1, mod(i64(1000 * t[i]), extent(r)) == v](X[i,e]);
}
kernel near(A: i32[50000, 30], B: i32[30, 32]) -> (C: i32[50000, 32]) { C[i,j] = A[i,p] * B[p,j]; }
"""
MAIN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k.h"

static int most; /* parts that one call of the pool was asked for */
typedef struct { void (*part)(void *, int32_t); void *work; int32_t number; } Task;
static void *task(void *t) { Task *x = t; x->part(x->work, x->number); return NULL; }
static void pool_run(void *pool, void (*part)(void *, int32_t), void *work, int32_t parts)
{
    pthread_t thread[64];
    Task t[64];
    if (pool != &most) abort();
    most = parts > most ? parts : most;
    if (parts > 64) {
        for (int32_t i = parts; i-- > 0;) part(work, i);
        return;
    }
    for (int32_t i = parts; i-- > 0;) {
        t[i] = (Task){part, work, i};
        if (pthread_create(&thread[i], NULL, task, &t[i]) != 0) abort();
    }
    for (int32_t i = 0; i < parts; i++) pthread_join(thread[i], NULL);
}

static double *numbers(size_t n, int f32, unsigned seed)
{
    double *d = malloc(n * 8 + 8);
    for (size_t i = 0; i < n; i++) {
        double x = (double)((i * 7919 + seed) % 1009) / 1009.0 + 0.01;
        if (f32) ((float *)d)[i] = (float)x; else d[i] = x;
    }
    return d;
}

#define LOOPS 99 /* more parts than threads */
#ifndef STEP
#define STEP 1
#endif
#define FAIL(...) (fprintf(stderr, __VA_ARGS__), exit(1))

/* All that is said above, of one kernel, whose loop has so many parts at most. */
static void check(const tdsl_kernel_info *info, const int64_t *dims, int parts)
{
    void *args[8], *first[8];
    size_t bytes[8], one = info->workspace_bytes(dims);
    for (int i = 0; i < info->n_args; i++) {
        const tdsl_arg_info *a = &info->args[i];
        size_t n = 1;
        for (int d = 0; d < a->rank; d++)
            n *= (size_t)(a->extents[d].dim < 0 ? a->extents[d].fixed : dims[a->extents[d].dim]);
        bytes[i] = n * (a->dtype == TDSL_F32 || a->dtype == TDSL_I32 ? 4 : 8);
        args[i] = numbers(n, a->dtype == TDSL_F32, (unsigned)i * 31u);
        first[i] = malloc(bytes[i] + 1);
    }
    char *w = malloc(one + 1);
    if (info->call(dims, args, w, one) != TDSL_OK) FAIL("%s: fails\n", info->name);
    free(w);
    for (int i = 0; i < info->n_args; i++) memcpy(first[i], args[i], bytes[i]);
    if (info->workspace_bytes_threads(dims, 1) != one || info->workspace_bytes_threads(dims, 0) != one)
        FAIL("%s: one thread needs more than none\n", info->name);
    for (int32_t t = 1; t < 70; t++) {
        size_t less = info->workspace_bytes_threads(dims, t), more = info->workspace_bytes_threads(dims, t + 1);
        if (more < less || (t >= parts && more > less) || more > one * (size_t)(t + 1)) FAIL("%s: workspace of %d threads\n", info->name, t + 1);
    }
    for (int pool = 0; pool < 2; pool++)
        for (int32_t c = 0; c <= 10; c += STEP)
            for (int less = 0; less < 2; less++) {
                const int32_t t = c < 8 ? c : c == 8 ? 16 : c == 9 ? 64 : INT32_MAX;
                tdsl_threads threads = {t, 0, pool ? pool_run : NULL, pool ? &most : NULL};
                size_t asked = info->workspace_bytes_threads(dims, c == 10 ? 2 : t);
                size_t have = less && asked > one ? asked - 1 : asked;
                int32_t fit = c == 10 ? 8 : t > 1 ? t : 1; /* at least: loops with smaller buffers may have more */
                while (fit > 1 && info->workspace_bytes_threads(dims, fit) > have) fit--;
                unsigned char *space = malloc(have + 64);
                memset(space, 0xa5, have + 64);
                for (int i = 0; i < info->n_args; i++)
                    if (info->args[i].role == TDSL_OUT) memset(args[i], 0xff, bytes[i]);
                most = 0;
                if (info->call_threads(dims, args, space, have, &threads) != TDSL_OK) FAIL("%s: %d threads fail\n", info->name, t);
                for (size_t b = have; b < have + 64; b++) if (space[b] != 0xa5) FAIL("%s: writes past the workspace\n", info->name);
                for (int i = 0; i < info->n_args; i++)
                    if (memcmp(first[i], args[i], bytes[i]) != 0)
                        FAIL("%s: argument %d differs for %d threads, pool %d\n", info->name, i, t, pool);
                int want = c == 8 || c == 9 ? 1 : fit > parts ? parts : fit; /* so many are not worth it in each loop */
                int allowed = c == 10 ? INT32_MAX : t < parts ? t : parts;
                if (pool && (want > 1 ? most < want : 0)) FAIL("%s: %d parts, %d fit\n", info->name, most, fit);
                if (pool && most > 1 && most > allowed) FAIL("%s: %d parts for %d threads\n", info->name, most, t);
                free(space);
            }
    if (info->call_threads(dims, args, NULL, one > 0 ? one - 1 : 0, NULL) != (one > 0 ? TDSL_E_WORKSPACE : TDSL_OK)) FAIL("%s: too little\n", info->name);
}

/* The workspace of 64 threads over that of one is below this. */
static void check_ratio(const tdsl_kernel_info *info, const int64_t *dims, double most)
{
    double one = (double)info->workspace_bytes(dims), all = (double)info->workspace_bytes_threads(dims, 64);
    if (one == 0 || all > most * one) FAIL("%s: 64 threads need %.1f times the workspace of one\n", info->name, all / one);
}

int main(void)
{
    /* Of few pieces as many times the workspace as there are pieces; less where they share buffers. */
    check_ratio(&gated_info, (const int64_t[]){2048, 400, 1024}, 2);
    check_ratio(&product_info, (const int64_t[]){2048, 2048, 2048}, 6);
    check_ratio(&broad_info, (const int64_t[]){300, 3000}, 20);
    check_ratio(&chain_info, (const int64_t[]){32, 1024, 1024, 64}, 64);
    check_ratio(&energy_info, (const int64_t[]){16, 128, 384}, 64);
    const int64_t large[] = {9, 150, 70, 130}, small[] = {7, 4, 2, 3}, tall[] = {9000, 5}, flat[] = {3, 4}, none[1] = {0};
    check(&chain_info, large, LOOPS);
    check(&chain_info, small, 1);
    check(&fixed_info, none, LOOPS);
    check(&plain_info, tall, LOOPS);
    check(&plain_info, flat, 1);
    const int64_t some[] = {90}, few[] = {9, 300};
    check(&tall_info, (const int64_t[]){1500, 260, 70}, LOOPS);
    check(&wide_info, some, LOOPS);
    check(&many_info, few, 18);
    check(&labels_info, some, LOOPS);
    check(&product_info, (const int64_t[]){400, 520, 1100}, LOOPS);
    check(&product_info, (const int64_t[]){1100, 300, 90}, LOOPS);
    check(&segments_info, (const int64_t[]){9000, 70, 300}, LOOPS);
    check(&segments_info, (const int64_t[]){9000, 71, 33}, 3);
    check(&segments_info, (const int64_t[]){40, 3, 2}, 1);
    check(&segments_info, (const int64_t[]){0, 70, 300}, 1);
    check(&near_info, none, LOOPS);
    check(&bytes_info, (const int64_t[]){1500, 1003, 130}, LOOPS);
    check(&bytes_info, (const int64_t[]){130, 1003, 1500}, LOOPS);
    check(&energy_info, (const int64_t[]){31, 40, 30}, LOOPS);
    check(&energy_info, (const int64_t[]){1, 5, 4}, 1);
    check(&pairs_info, (const int64_t[]){50, 30, 13}, LOOPS);
    check(&broad_info, (const int64_t[]){300, 1100}, LOOPS);
    check(&broad_info, (const int64_t[]){60, 2500}, LOOPS);
    check(&broad_info, (const int64_t[]){60, 0}, 1);
    check(&pairs_info, (const int64_t[]){3, 300, 20}, 6);
    check(&pairs_info, (const int64_t[]){5, 4, 0}, 1);
    const int64_t many[] = {3000, 300}, long_[] = {900001}, empty[] = {0, 0};
    check(&dot_info, long_, LOOPS);
    check(&dot_info, empty, 1);
    check(&loss_info, many, LOOPS);
    check(&columns_info, many, LOOPS);
    check(&rows_info, many, LOOPS);
    check(&each_info, many, LOOPS);
    float *c = (float *)numbers(9 * 150 * 70, 1, 0), *r = (float *)numbers(9 * 150 * 70, 1, 1);
    float *b = (float *)numbers(9 * 70 * 130, 1, 2), *s = (float *)numbers(150, 1, 3);
    size_t bytes = chain_workspace_bytes_threads(DIMS 3);
    tdsl_threads three = {3, 0, NULL, NULL};
    void *w = malloc(bytes);
    if (chain_threads(DIMS c, b, s, r, w, bytes, &three) != TDSL_OK) FAIL("the typed entry fails\n");
    if (fixed_workspace_bytes_threads(1) != FIXED_WORKSPACE_BYTES) FAIL("FIXED_WORKSPACE_BYTES\n");
    return 0;
}
"""
WARNINGS = "-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Werror"


def run(folder, *command):
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def build(folder, cc, flags):
    steps.run("compile the kernels", f"{cc} {WARNINGS} {flags} -c k.c -o k.o".split(), cwd=folder)
    steps.run("link", f"{cc} -std=c11 -O1 {flags} main.c k.o -o main -lm -lpthread".split(), cwd=folder)


def has_openmp(folder, cc):
    with open(os.path.join(folder, "omp.c"), "w", encoding="utf-8") as f:
        f.write("int main(void)\n{\n#pragma omp parallel\n    {\n    }\n    return 0;\n}\n")
    made = run(folder, *f"{cc} -fopenmp omp.c -o omp".split())
    return made.returncode == 0 and run(folder, "./omp").returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdslc", required=True)
    args = parser.parse_args()
    skipped = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.tdsl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        steps.run("tdslc", [os.path.abspath(args.tdslc), "-w", "k.tdsl", "-o", "k.c"], cwd=folder)
        with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
            f.write(MAIN.replace("DIMS", "9, 150, 70, 130,"))
        for cc in ("gcc", "clang"):
            openmp = has_openmp(folder, cc)
            if not openmp:
                skipped.append(cc)
            sanitizer = "thread" if cc == "gcc" else "address,undefined -fno-sanitize-recover=all"
            few = " -DSTEP=3" if GATE else ""  # 0, 3, 6 and 64 threads: the other rows have all
            rows = ["-O1", f"-O1 -fsanitize={sanitizer}{few}"] + (["-O2 -fopenmp"] if openmp else [])
            for flags in share(rows, 1, gate=2, first=cc == "gcc"):
                build(folder, cc, flags)
                made = run(folder, "./main")
                if made.returncode != 0:
                    print(steps.report(f"kernels of {cc} {flags}", ["./main"], made), file=sys.stderr)
                    return 1
    if skipped:
        print("no OpenMP: " + ", ".join(skipped))
    return 77 if skipped else 0


sys.exit(main())
