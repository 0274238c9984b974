/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a kernel whose arguments are whole on each rank, on thread ranks, with a checkpoint: prints leaves found, leaves computed, and the
 * bytes of the results; or why not, with exit 1.
 *
 * restart LIBRARY SYMBOL RANKS FOLDER SEED */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tdsl/checkpoint.h"

#define ARGS 16

typedef struct Call {
    const tdsl_dist_info *dist;
    const char *folder;
    void *args[ARGS];
    size_t bytes[ARGS];
    atomic_llong found, kept;
} Call;

static tdsl_status run_rank(void *user, const tdsl_comm *comm)
{
    Call *c = user;
    tdsl_mesh mesh = {.n_axes = 1, .size = {comm->size}};
    tdsl_checkpoint *checkpoint = NULL;
    tdsl_dist_options o = {0};
    void *args[ARGS];
    for (int32_t a = 0; a < c->dist->kernel->n_args; a++) { /* results of its own */
        bool shared = comm->rank == 0 || c->dist->kernel->args[a].role != TDSL_OUT;
        args[a] = shared ? c->args[a] : malloc(c->bytes[a]);
    }
    o.before =
        tdsl_checkpoint_open(c->folder, c->dist, NULL, comm->rank, comm->size, &checkpoint);
    o.store = tdsl_checkpoint_store(checkpoint);
    tdsl_status status = tdsl_dist_call(comm, c->dist, &mesh, NULL, args, &o, NULL);
    if (tdsl_checkpoint_fault(checkpoint)[0] != '\0') {
        printf("%s\n", tdsl_checkpoint_fault(checkpoint));
    }
    atomic_fetch_add(&c->found, tdsl_checkpoint_found(checkpoint));
    atomic_fetch_add(&c->kept, tdsl_checkpoint_kept(checkpoint));
    tdsl_checkpoint_close(checkpoint);
    for (int32_t a = 0; a < c->dist->kernel->n_args; a++) {
        if (args[a] != c->args[a]) {
            free(args[a]);
        }
    }
    return status;
}

/* Doubles between -1 and 1 of the seed; of complex numbers both components. */
static void fill(Call *c, int32_t arg, uint64_t state)
{
    double *at = c->args[arg];
    for (size_t k = 0; k < c->bytes[arg] / sizeof *at; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at[k] = (double)(state >> 33) / (1u << 30) - 1;
    }
}

int main(int argc, char **argv)
{
    char name[200];
    Call c = {0};
    void *library = argc == 6 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        printf("usage: restart LIBRARY SYMBOL RANKS FOLDER SEED: %s\n",
               argc == 6 ? dlerror() : "");
        return 2;
    }
    snprintf(name, sizeof name, "%s_dist", argv[2]);
    c.dist = dlsym(library, name);
    c.folder = argv[4];
    if (c.dist == NULL || c.dist->kernel->n_args > ARGS) {
        printf("no plan of '%s'\n", argv[2]);
        return 2;
    }
    for (int32_t a = 0; a < c.dist->kernel->n_args; a++) {
        const tdsl_arg_info *info = &c.dist->kernel->args[a];
        c.bytes[a] = info->dtype == TDSL_C128 ? 16 : 8;
        for (int32_t d = 0; d < info->rank; d++) {
            c.bytes[a] *= (size_t)info->extents[d].fixed;
        }
        c.args[a] = calloc(c.bytes[a] + 1, 1);
        if (info->role != TDSL_OUT) {
            fill(&c, a, (uint64_t)atoi(argv[5]) * 100 + (uint64_t)a);
        }
    }
    tdsl_status status = tdsl_dist_threads(atoi(argv[3]), run_rank, &c);
    if (status == TDSL_OK) {
        printf("%lld %lld ", (long long)c.found, (long long)c.kept);
    }
    for (int32_t a = 0; a < c.dist->kernel->n_args; a++) {
        const unsigned char *at = c.args[a];
        bool shown = status == TDSL_OK && c.dist->kernel->args[a].role == TDSL_OUT;
        for (size_t k = 0; shown && k < c.bytes[a]; k++) {
            printf("%02x", at[k]);
        }
        free(c.args[a]);
    }
    printf("\n");
    return status == TDSL_OK ? 0 : 1;
}
