/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks that are threads: what a message costs here, and how near the predicted time of kernels is to the measured one. The rate of a kernel is
 * that of one rank; the rest is predicted.
 *
 * bench_ranks LIBRARY REPEAT < lines `SYMBOL N_DIMS DIM...`, one kernel each. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tdsl/dist.h"

#define RANKS 2
#define BYTES ((int64_t)32 << 20)
#define ARGS  16
#define DIMS  16

static double now(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this thread: on a machine that does other things, too, what it would have taken alone, but for waiting. */
static double cpu(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double least(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

/* ---- the machine ---- */

typedef struct Probe {
    int repeat;
    double latency, exchange,
        memory; /* seconds of the first rank: of an empty exchange, of one of BYTES, of BYTES added up */
} Probe;

static tdsl_status exchange(const tdsl_comm *comm, char *out, char *in, int64_t bytes)
{
    tdsl_dist_bytes send[RANKS] = {{0, 0}}, receive[RANKS] = {{0, 0}};
    send[1 - comm->rank] = (tdsl_dist_bytes){out, bytes};
    receive[1 - comm->rank] = (tdsl_dist_bytes){in, bytes};
    return comm->exchange(comm->state, send, receive);
}

static tdsl_status probe(void *user, const tdsl_comm *comm)
{
    Probe *p = user;
    char *out = malloc((size_t)BYTES), *in = malloc((size_t)BYTES);
    tdsl_status status = out != NULL && in != NULL ? TDSL_OK : TDSL_E_MEMORY;
    if (status == TDSL_OK) {
        memset(out, 0, (size_t)BYTES); /* pages of its own */
        memset(in, 0, (size_t)BYTES);
    }
    Probe own = {0};
    for (int k = 0; k < p->repeat && status == TDSL_OK; k++) {
        double start = now();
        status = exchange(comm, out, in, 8);
        own.latency = least(own.latency, now() - start);
        start = cpu();
        status = status == TDSL_OK ? exchange(comm, out, in, BYTES) : status;
        own.exchange = least(own.exchange, cpu() - start);
        start = cpu();
        for (int64_t i = 0; i < BYTES / 8; i++) {
            ((double *)(void *)in)[i] += ((const double *)(const void *)out)[i];
        }
        own.memory = least(own.memory, cpu() - start);
    }
    if (comm->rank == 0) {
        own.repeat = p->repeat;
        *p = own;
    }
    free(out);
    free(in);
    return status;
}

/* ---- kernels ---- */

typedef struct Run {
    const tdsl_dist_info *dist;
    tdsl_mesh mesh;
    int64_t dims[DIMS];
    int repeat;
    double seconds[RANKS], cpu[RANKS]; /* the least of each */
} Run;

static int64_t block_bytes(const Run *r, int32_t rank, int32_t arg)
{
    const tdsl_arg_info *info = &r->dist->kernel->args[arg];
    int64_t bytes = 8;
    for (int32_t d = 0; d < info->rank; d++) {
        bytes *= tdsl_dist_block(r->dist, &r->mesh, rank, r->dims, arg, d).count;
    }
    return bytes;
}

static tdsl_status run_rank(void *user, const tdsl_comm *comm)
{
    Run *r = user;
    void *args[ARGS] = {0};
    tdsl_dist_count count = {0};
    tdsl_status status = tdsl_dist_measure(r->dist, &r->mesh, comm->rank, r->dims, &count);
    size_t bytes = (size_t)count.workspace + 63;
    char *space = calloc(bytes + 1, 1);
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        int64_t n = block_bytes(r, comm->rank, a);
        double *x = malloc((size_t)n + 8);
        for (int64_t i = 0; x != NULL && i < n / 8; i++) {
            x[i] = (double)(i % 7) - 3.5;
        }
        args[a] = x;
    }
    r->seconds[comm->rank] = r->cpu[comm->rank] = 0;
    for (int k = 0; k < r->repeat && status == TDSL_OK; k++) {
        tdsl_dist_options o = {.workspace = space, .bytes = bytes};
        double start = now(), start_cpu = cpu();
        status = tdsl_dist_call(comm, r->dist, &r->mesh, r->dims, args, &o, NULL);
        r->cpu[comm->rank] = least(r->cpu[comm->rank], cpu() - start_cpu);
        r->seconds[comm->rank] = least(r->seconds[comm->rank], now() - start);
    }
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        free(args[a]);
    }
    free(space);
    return status;
}

static tdsl_status run_on(Run *r, int32_t ranks)
{
    r->mesh = (tdsl_mesh){.n_axes = r->dist->n_axes};
    for (int32_t a = 0; a < r->mesh.n_axes; a++) {
        r->mesh.size[a] = a == 0 ? ranks : 1;
    }
    return tdsl_dist_threads(ranks, run_rank, r);
}

/* Multiply-adds of one rank, without what its own memory takes. */
static double work_of(const Run *r)
{
    tdsl_dist_machine all = {1, 1e300, 0, 1e300, NULL, NULL};
    tdsl_dist_choice c = {.computing = 0};
    return tdsl_dist_predict(r->dist, &r->mesh, r->dims, &all, &c) == TDSL_OK ? c.computing : 0;
}

static double worst(const double *x)
{
    return x[0] > x[1] ? x[0] : x[1];
}

/* The measured time over the predicted one; 0: failed. */
static double bench(Run *r, const char *name, tdsl_dist_machine *machine)
{
    tdsl_dist_choice one = {.computing = 0}, two = {.computing = 0};
    tdsl_status status = run_on(r, 1);
    double alone = r->seconds[0], busy = r->cpu[0], work = work_of(r);
    machine->rate = 1e300;
    status = status == TDSL_OK ? tdsl_dist_predict(r->dist, &r->mesh, r->dims, machine, &one)
                               : status;
    double arithmetic = busy - one.computing - one.moving; /* without what memory takes */
    machine->rate = work / (arithmetic > busy / 10 ? arithmetic : busy / 10);
    status = status == TDSL_OK ? run_on(r, RANKS) : status;
    status = status == TDSL_OK ? tdsl_dist_predict(r->dist, &r->mesh, r->dims, machine, &two)
                               : status;
    if (status != TDSL_OK) {
        printf("%s: %s\n", name, tdsl_status_text(status));
        return 0;
    }
    double measured = worst(r->cpu), predicted = two.moving + two.computing;
    printf("%-8s %9.3f %9.3f %6.2f  %9.3f %9.3f  %9.3f %9.3f  %6.2f\n", name, alone * 1e3,
           worst(r->seconds) * 1e3, alone / worst(r->seconds), busy * 1e3, measured * 1e3,
           two.moving * 1e3, two.computing * 1e3, measured / predicted);
    return measured / predicted;
}

/* Seconds of a call on one rank beyond those of its kernel, where all is small. */
static double overhead(const tdsl_dist_info *dist)
{
    Run r = {.dist = dist, .dims = {4, 4, 4, 4}, .repeat = 20000};
    double x[64] = {0}, y[64] = {0}, z[64] = {0}, alone = 0;
    void *args[] = {x, y, z};
    size_t bytes = dist->kernel->workspace_bytes(r.dims) + 64;
    void *space = malloc(bytes);
    tdsl_status status = run_on(&r, 1);
    for (int k = 0; k < r.repeat && status == TDSL_OK; k++) {
        double start = now();
        status = dist->kernel->call(r.dims, args, space, bytes);
        alone = least(alone, now() - start);
    }
    if (status != TDSL_OK) {
        printf("small: %s\n", tdsl_status_text(status));
    }
    free(space);
    return r.seconds[0] - alone;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    char line[1024], symbol[128], table[140];
    if (library == NULL) {
        printf("usage: bench_ranks LIBRARY REPEAT < LINES\n");
        return 2;
    }
    int repeat = atoi(argv[2]);
    Probe p = {.repeat = 20 * repeat};
    if (tdsl_dist_threads(RANKS, probe, &p) != TDSL_OK) {
        return 1;
    }
    tdsl_dist_machine machine = {
        1, (double)BYTES / p.exchange, p.latency, 3.0 * (double)BYTES / p.memory, NULL, NULL};
    printf("a message %.2f us, %.1f GB/s between ranks, %.1f GB/s of memory\n\n",
           p.latency * 1e6, machine.bandwidth * 1e-9, machine.memory * 1e-9);
    printf("%-8s %9s %9s %6s  %9s %9s  %9s %9s  %6s\n", "ms", "1 rank", "2 ranks", "faster",
           "1, CPU", "2, CPU", "moving +", "computing", "off");
    bool ok = true;
    while (fgets(line, sizeof line, stdin) != NULL) {
        Run r = {.repeat = repeat};
        int at = 0, n = 0, more = 0;
        long long value = 0;
        if (sscanf(line, "%127s %d%n", symbol, &n, &at) != 2 || n > DIMS) {
            continue;
        }
        for (int k = 0; k < n && sscanf(line + at, "%lld%n", &value, &more) == 1; k++) {
            r.dims[k] = value;
            at += more;
        }
        (void)snprintf(table, sizeof table, "%s_dist", symbol);
        r.dist = dlsym(library, table);
        if (r.dist == NULL || r.dist->kernel->n_args > ARGS) {
            return 2;
        }
        if (strcmp(symbol, "small") == 0) {
            double seconds = overhead(r.dist);
            printf("\n%.2f us of a call on one rank beyond its kernel\n", seconds * 1e6);
            ok = ok && seconds <= 5e-6;
            continue;
        }
        double off = bench(&r, symbol, &machine);
        ok = ok && off > 0.75 && off < 1.25;
    }
    return ok ? 0 : 1;
}
