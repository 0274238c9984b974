/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark of several statements: every set of tests/data/multi.json by multi.c, as it
 * stands and merged and factored, beside the recorded counts. */
#include "path/bench_multi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "path/support_multi.h"

#define BUDGET ((uint64_t)1 << 28)

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_known(const json_t *at, const char *name)
{
    const json_t *x = json_object_get(at, name);
    if (x != NULL) {
        printf(" %10.4g", json_number_value(x));
    } else {
        printf(" %10s", "-");
    }
}

static bool row(const MultiSet *set, const char *key, const json_t *at, uint32_t effort,
                Ctx *ctx)
{
    long o = 0, v = 0;
    PathMerged merged;
    PathMultiResult plain, shared;
    if (sscanf(key, "o=%ld,v=%ld", &o, &v) != 2) {
        return false;
    }
    const int64_t *sizes = multi_sizes(ctx, o, v);
    PathMulti m = multi_plain(set, sizes, ctx);
    m.budget = BUDGET * effort;
    double start = seconds_now();
    if (!path_multi(&m, ctx, &plain)) {
        return false;
    }
    double half = seconds_now();
    path_merge(&m, set->summands, set->n, ctx, &merged);
    m = multi_of_merged(&merged, sizes);
    m.budget = BUDGET * effort;
    if (!path_multi(&m, ctx, &shared)) {
        return false;
    }
    printf("%-12s %-11s %5u %10.4g %10.4g %6.2f %10.4g %6.2f", set->name, key, set->n,
           strtod(plain.separate, NULL), strtod(plain.shared, NULL), half - start,
           strtod(shared.shared, NULL), seconds_now() - half);
    print_known(at, "per_term_optimal");
    print_known(at, "plus_identical_intermediate_reuse");
    print_known(at, "published");
    printf("\n");
    fflush(stdout);
    return true;
}

int bench_multi(const char *only, uint32_t effort)
{
    json_t *file = multi_file_load();
    if (file == NULL) {
        fputs("tdsl-bench-paths: tests/data/multi.json cannot be read\n", stderr);
        return 1;
    }
    printf("%-12s %-11s %5s %10s %10s %6s %10s %6s %10s %10s %10s\n", "set", "sizes", "terms",
           "separate", "shared", "CPU s", "factored", "CPU s", "(separate)", "(shared)",
           "(published)");
    int status = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(file, "sets")); i++) {
        Ctx ctx;
        const char *key;
        json_t *at;
        ctx_init(&ctx);
        MultiSet set = multi_set_read(file, i, &ctx);
        json_object_foreach((json_t *)(uintptr_t)set.reference, key, at)
        {
            if (strstr(set.name, only) != NULL && !row(&set, key, at, effort, &ctx)) {
                status = 1;
            }
        }
        ctx_release(&ctx);
    }
    json_decref(file);
    return status;
}
