/* SPDX-License-Identifier: Apache-2.0 */
/* Calls every kernel of a file with extents of 0, 1 and 2 on arrays and a workspace of exactly the bytes that were asked for, for 1, 2
 * and 5 threads, and on fewer; what the sanitizers say is the test, and that more bytes are no more pieces. For exact.py, which defines HEADER and KERNELS. */
#include HEADER
#include "sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIMS 32
#define MOST_ARGS 256

static void *array_of(const tdsl_kernel_info *k, const tdsl_arg_info *a, const int64_t *dims)
{
    size_t size = bytes_of(k, a, dims);
    void *array = malloc(size);
    if (array != NULL) {
        memset(array, 0, size);
    }
    return array;
}

static int32_t exact_pieces; /* of all parallel loops of a call */

static void run_in_turn(void *pool, void (*part)(void *, int32_t), void *work, int32_t parts)
{
    (void)pool;
    exact_pieces += parts;
    for (int32_t i = parts; i-- > 0;) {
        part(work, i);
    }
}

static void run(const tdsl_kernel_info *k, const int64_t *dims, void *const *args,
                int32_t threads, size_t bytes, size_t shift)
{
    const tdsl_threads pool = {threads, 0, run_in_turn, NULL};
    unsigned char *workspace = malloc(bytes + shift);
    exact_pieces = 0;
    tdsl_status status = threads == 1
                             ? k->call(dims, args, workspace + shift, bytes)
                             : k->call_threads(dims, args, workspace + shift, bytes, &pool);
    /* All values are 0: a position outside where an array has no elements, or where something is subtracted; no matrix is positive definite. */
    const int outside = k->outside != NULL && k->outside(dims, args, NULL) != 0;
    if (status != (outside ? TDSL_E_INDEX : TDSL_OK) && status != TDSL_E_DEFINITE) {
        fprintf(stderr, "status %d\n", status);
        exit(1);
    }
    free(workspace);
}

/* Are these extents refused? */
static int call(const tdsl_kernel_info *k, const int64_t *dims, int32_t threads)
{
    void *args[MOST_ARGS];
    size_t one = k->workspace_bytes(dims);
    size_t need = threads == 1 ? one : k->workspace_bytes_threads(dims, threads);
    if (need == SIZE_MAX) {
        return 1;
    }
    for (int32_t i = 0; i < k->n_args; i++) {
        args[i] = array_of(k, &k->args[i], dims);
    }
    /* Wherever it begins. */
    for (size_t shift = 0; shift < 3; shift++) {
        run(k, dims, args, threads, need, shift);
    }
    if (threads > 1) {
        const int32_t asked = exact_pieces;
        run(k, dims, args, threads, (size_t)threads * one, 0);
        if (asked != exact_pieces || need > (size_t)threads * one) {
            fprintf(stderr, "%zu bytes are enough for %d pieces of %d\n", need, asked,
                    exact_pieces);
            exit(1);
        }
        run(k, dims, args, threads, one + (need - one) / 2, 1);
    }
    for (int32_t i = 0; i < k->n_args; i++) {
        free(args[i]);
    }
    return 0;
}

static long try_dims(const tdsl_kernel_info *k, const int64_t *dims)
{
    /* Said first: a sanitizer ends the program. */
    fprintf(stderr, "%s at", k->name);
    for (int32_t d = 0; d < k->n_dims; d++) {
        fprintf(stderr, " %s = %lld", k->dims[d].name, (long long)dims[d]);
    }
    fprintf(stderr, "\n");
    return call(k, dims, 1) + call(k, dims, 2) + call(k, dims, 5) == 0;
}

int main(void)
{
    long calls = 0;
    for (int32_t i = 0; KERNELS[i] != NULL; i++) {
        const tdsl_kernel_info *k = KERNELS[i];
        int64_t dims[MOST_DIMS];
        if (k->n_dims == 0 || k->n_dims > MOST_DIMS || k->n_args > MOST_ARGS) {
            continue;
        }
        for (int64_t all = 0; all <= 2; all++) {
            for (int32_t d = 0; d < k->n_dims; d++) {
                dims[d] = all;
            }
            calls += try_dims(k, dims);
        }
        /* One is 0 or 1, the others are more than the rows of most register tiles. */
        for (int32_t one = 0; one < 2 * k->n_dims; one++) {
            for (int32_t d = 0; d < k->n_dims; d++) {
                dims[d] = d == one / 2 ? one % 2 : 5;
            }
            calls += try_dims(k, dims);
        }
    }
    printf("%ld\n", calls);
    return 0;
}
