/* SPDX-License-Identifier: Apache-2.0 */
/* Calls all kernels of the files LISTS on 1 and 3 threads, and prints of each its status and a hash of its results' bytes. For shared.py, which
 * defines HEADERS (a file) and LISTS. */
#include HEADERS
#include "sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIMS 32
#define MOST_ARGS 32

/* Positions are small, other numbers no powers of two. */
static void fill(void *array, tdsl_dtype t, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char *)array)[i] =
            (unsigned char)(t == TDSL_I8 || t == TDSL_U8 ? i * 37 % 251 : 0);
    }
    for (size_t i = 0; (t == TDSL_F64 || t == TDSL_C128) && i < bytes / 8; i++) {
        ((double *)array)[i] = (double)(i * 7 % 13) / 3 - 1;
    }
    for (size_t i = 0; (t == TDSL_F32 || t == TDSL_C64) && i < bytes / 4; i++) {
        ((float *)array)[i] = (float)(i * 5 % 11) / 7 - 1;
    }
    for (size_t i = 0; t == TDSL_I64 && i < bytes / 8; i++) {
        ((int64_t *)array)[i] = (int64_t)(i % 5);
    }
}

static void run_in_turn(void *pool, void (*part)(void *, int32_t), void *work, int32_t parts)
{
    (void)pool;
    for (int32_t i = parts; i-- > 0;) {
        part(work, i);
    }
}

static void call(const tdsl_kernel_info *k, const int64_t *dims, int32_t threads)
{
    const tdsl_threads pool = {threads, 0, run_in_turn, NULL};
    void *args[MOST_ARGS];
    uint64_t hash = 5381;
    const size_t need = k->workspace_bytes_threads(dims, threads);
    void *workspace = malloc(need + 1);
    for (int32_t i = 0; i < k->n_args; i++) {
        const size_t bytes = bytes_of(k, &k->args[i], dims);
        args[i] = malloc(bytes + 1);
        fill(args[i], (tdsl_dtype)k->args[i].dtype, bytes);
    }
    const tdsl_status status = threads == 1
                                   ? k->call(dims, args, workspace, need)
                                   : k->call_threads(dims, args, workspace, need, &pool);
    for (int32_t i = 0; i < k->n_args; i++) {
        const size_t bytes = bytes_of(k, &k->args[i], dims);
        for (size_t b = 0; k->args[i].role != TDSL_IN && b < bytes; b++) {
            hash = hash * 33 + ((const unsigned char *)args[i])[b];
        }
        free(args[i]);
    }
    free(workspace);
    printf("%s %d threads, status %d, work %llu, %016llx\n", k->name, threads, status,
           (unsigned long long)k->multiply_adds(dims), (unsigned long long)hash);
}

int main(void)
{
    const tdsl_kernel_info *const *const lists[] = {LISTS};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (int32_t i = 0; lists[l][i] != NULL; i++) {
            const tdsl_kernel_info *k = lists[l][i];
            int64_t dims[MOST_DIMS];
            for (int32_t d = 0; d < k->n_dims; d++) {
                dims[d] = 40 + 9 * d;
            }
            call(k, dims, 1);
            call(k, dims, 3);
        }
    }
    return 0;
}
