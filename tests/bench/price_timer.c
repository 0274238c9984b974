/* SPDX-License-Identifier: Apache-2.0 */
/* Times kernels of shared objects in turn, for price.py: price_timer SECONDS NAME FILE.so... prints
 * a line for each file, the least CPU seconds of a call with its arguments in caches and without.
 * Extents are fixed. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tdsl/abi.h"

#define FILES 8
#define FLUSH ((size_t)96 << 20) /* more than the caches hold */

typedef struct Kernel {
    const tdsl_kernel_info *info;
    void **args;
    void *workspace;
    size_t bytes;
    double warm, cold;
} Kernel;

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "price_timer: %s\n", what);
    exit(1);
}

static void *make_argument(const tdsl_arg_info *arg, unsigned seed)
{
    size_t n = arg->dtype == TDSL_C64 || arg->dtype == TDSL_C128 ? 2 : 1;
    int wide = arg->dtype == TDSL_F64 || arg->dtype == TDSL_C128;
    for (int32_t d = 0; d < arg->rank; d++) {
        n *= (size_t)arg->extents[d].fixed;
    }
    void *at = malloc(n * 8 + 64);
    if (at == NULL) {
        die("no memory");
    }
    for (size_t k = 0; k < n; k++) {
        seed = seed * 1664525u + 1013904223u;
        double x = (double)(seed >> 8) / (double)(1u << 24) + 0.5;
        if (wide) {
            ((double *)at)[k] = x;
        } else {
            ((float *)at)[k] = (float)x;
        }
    }
    return at;
}

static void load(Kernel *k, const char *file, const char *name)
{
    char symbol[300];
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    (void)snprintf(symbol, sizeof symbol, "%s_info", name);
    k->info = library == NULL ? NULL : (const tdsl_kernel_info *)dlsym(library, symbol);
    if (k->info == NULL) {
        die(dlerror());
    }
    if (k->info->n_dims != 0) {
        die("an extent is open");
    }
    k->args = malloc((size_t)k->info->n_args * sizeof *k->args);
    k->bytes = k->info->workspace_bytes(NULL);
    k->workspace = malloc(k->bytes + 1);
    if (k->args == NULL || k->workspace == NULL) {
        die("no memory");
    }
    memset(k->workspace, 0, k->bytes);
    for (int32_t a = 0; a < k->info->n_args; a++) {
        k->args[a] = make_argument(&k->info->args[a], 7u * (unsigned)a + 1u);
    }
    k->warm = k->cold = 1e300;
}

/* Seconds of one of `n` calls. */
static double call(const Kernel *k, int n)
{
    double begin = now();
    for (int i = 0; i < n; i++) {
        if (k->info->call(NULL, k->args, k->workspace, k->bytes) != 0) {
            die("the kernel failed");
        }
    }
    return (now() - begin) / n;
}

static void measure(Kernel *k, volatile char *flush)
{
    double once = call(k, 1), warm, cold;
    int n = once > 1e-4 ? 1 : once > 1e-5 ? 10 : 100;
    warm = call(k, n);
    for (size_t at = 0; at < FLUSH; at += 64) {
        flush[at]++;
    }
    cold = call(k, 1);
    k->warm = warm < k->warm ? warm : k->warm;
    k->cold = cold < k->cold ? cold : k->cold;
}

int main(int argc, char **argv)
{
    Kernel kernel[FILES];
    int n = argc - 3;
    char *flush = calloc(FLUSH, 1);
    if (n < 1 || n > FILES || flush == NULL) {
        die("usage: price_timer SECONDS NAME FILE.so...");
    }
    for (int f = 0; f < n; f++) {
        load(&kernel[f], argv[3 + f], argv[2]);
    }
    double limit = strtod(argv[1], NULL);
    double begin = now();
    for (int round = 0; round < 3 || (round < 1000 && now() - begin < limit); round++) {
        for (int f = 0; f < n; f++) {
            measure(&kernel[f], flush);
        }
    }
    for (int f = 0; f < n; f++) {
        printf("%.9g %.9g\n", kernel[f].warm, kernel[f].cold);
    }
    return 0;
}
