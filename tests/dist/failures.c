/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks over MPI end with when one of them fails: failures KERNELS.so WAY, by mpirun with three ranks or more. Each rank prints a line with its status, or
 * what it expected. The kernel is `sum` of mpi.py: s = sum of x, which has `n` positions over the ranks. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tdsl/mpi.h>

#define N        100
#define LIMIT_MS 1500

static tdsl_comm comm;
static tdsl_mesh mesh = {.n_axes = 1};
static const tdsl_dist_info *dist;

static double now(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tdsl_status call(int64_t n, double *sum, tdsl_dist_options *o)
{
    double x[N];
    void *args[] = {x, sum};
    for (int k = 0; k < N; k++) {
        x[k] = 1;
    }
    return tdsl_dist_call(&comm, dist, &mesh, &n, args, o, NULL);
}

static void expect(const char *what, tdsl_status got, tdsl_status wanted, double seconds,
                   double most)
{
    if (got != wanted || seconds > most) {
        printf("rank %d, %s: %s after %.3f s\n", (int)comm.rank, what, tdsl_status_name(got),
               seconds);
        (void)fflush(stdout);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* One rank's failure is that of all, at once, and the next call works. */
static void refuse(const char *what, int64_t n, tdsl_dist_options own, tdsl_status bad,
                   tdsl_status others)
{
    double sum = -1, begin = now();
    bool is_bad = comm.rank == 1;
    tdsl_dist_options good = {0}, *o = is_bad ? &own : &good;
    tdsl_status status = call(is_bad ? n : N, &sum, o);
    expect(what, status, is_bad ? bad : others, now() - begin, 1);
    expect("rank of it", others == TDSL_E_PEER ? o->bad_rank : 1, 1, 0, 0);
    begin = now();
    status = call(N, &sum, NULL);
    expect("call after it", status, TDSL_OK, now() - begin, 1);
    expect("its sum", (int)sum, N, 0, 0);
}

static void refuse_all(void)
{
    char small[64];
    tdsl_dist_options none = {0}, space = {.workspace = small, .bytes = 1},
                      before = {.before = TDSL_E_MEMORY};
    refuse("shape", -1, none, TDSL_E_SHAPE, TDSL_E_PEER);
    refuse("workspace", N, space, TDSL_E_WORKSPACE, TDSL_E_PEER);
    refuse("before", N, before, TDSL_E_MEMORY, TDSL_E_PEER);
    refuse("other sizes", N - 1, none, TDSL_E_ABI, TDSL_E_ABI);
}

/* Rank 1 does not come. */
static void wait_for(void)
{
    double sum = 0, begin = now();
    if (comm.rank == 1) {
        for (;;) {
            (void)sleep(1);
        }
    }
    tdsl_status status = call(N, &sum, NULL);
    double waited = now() - begin;
    expect("absent", status, TDSL_E_TIMEOUT, waited, 1e-3 * LIMIT_MS + 0.5);
    expect("waited", waited < 1e-3 * LIMIT_MS - 0.01, 0, 0, 0);
    begin = now();
    expect("after it", call(N, &sum, NULL), TDSL_E_PEER, now() - begin, 0.1);
    expect("lost", tdsl_comm_is_lost(&comm) == 0, 0, 0, 0);
    tdsl_comm_free_mpi(&comm);
    printf("timeout\n");
    (void)fflush(stdout);
    (void)sleep(1); /* all say so */
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 1 is killed between two calls. */
static void die(void)
{
    double sum = 0;
    for (int k = 0;; k++) {
        if (comm.rank == 1 && k == 100) {
            (void)raise(SIGKILL);
        }
        if (call(N, &sum, NULL) != TDSL_OK) {
            (void)MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv)
{
    int provided = 0, ranks = 0, rank = 0;
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    dist = library == NULL ? NULL : dlsym(library, "sum_dist");
    if (dist == NULL ||
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) {
        return 2;
    }
    mesh.size[0] = ranks;
    if (strcmp(argv[2], "no-communicator") == 0 && rank == 1) {
        (void)sleep(3600);
    }
    double begin = now();
    tdsl_status status = tdsl_comm_from_mpi(MPI_COMM_WORLD, LIMIT_MS, &comm);
    if (strcmp(argv[2], "no-communicator") == 0) {
        comm.rank = rank;
        expect("no communicator", status, TDSL_E_TIMEOUT, now() - begin, 1e-3 * LIMIT_MS + 0.5);
        printf("timeout\n");
        (void)fflush(stdout);
        (void)sleep(1);
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    expect("communicator", status, TDSL_OK, now() - begin, 10);
    if (strcmp(argv[2], "refuse") == 0) {
        refuse_all();
    } else if (strcmp(argv[2], "absent") == 0) {
        wait_for();
    } else {
        die();
    }
    tdsl_comm_free_mpi(&comm);
    (void)MPI_Finalize();
    return 0;
}
