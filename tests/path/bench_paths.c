/* SPDX-License-Identifier: Apache-2.0 */
/* The path benchmark. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "path/path.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const char *search = argc > 2 ? argv[2] : "auto";
    unsigned effort = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    const char *only = argc > 4 ? argv[4] : "";
    unsigned seed = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
    int64_t limit = argc > 6 ? (int64_t)1 << atoi(argv[6]) : 0;
    json_error_t e;
    json_t *root = json_load_file(argv[1], 0, &e);
    json_t *list = json_object_get(root, "instances");
    size_t i;
    json_t *v;
    double sum = 0;
    int over = 0, count = 0;
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (strstr(name, only) == NULL) {
            continue;
        }
        Ctx c;
        ctx_init(&c);
        PathProblem p;
        if (!path_problem_from_value(v, (Span){0, 0, 0}, &c, &p)) {
            puts("bad");
            continue;
        }
        PathOptions o = {.search = search, .effort = effort, .seed = seed, .memory_limit = limit};
        PathResult r;
        double t = now();
        bool ok = path_search(&p, &o, &c, &r);
        t = now() - t;
        double best = json_number_value(json_object_get(json_object_get(v, "best"), "log10_C"));
        bool proven = json_is_true(json_object_get(json_object_get(v, "best"), "proven_optimal"));
        if (ok) {
            double gap = r.costs.log10_multiply_adds - best;
            sum += gap;
            over += gap > 0.005;
            count++;
            printf("%-52.52s n=%5u %9.5f best %9.5f gap %8.5f%s max %5.1f sl %2u %7.3fs %s%s\n", name, p.n_operands,
                   r.costs.log10_multiply_adds, best, gap, gap > 0.005 ? " ***" : gap < -0.0005 ? " win" : proven && !r.proved ? " ?" : "    ", r.costs.log2_largest, r.n_sliced, t, r.strategy,
                   r.proved ? " proved" : "");
            fflush(stdout);
        } else {
            printf("%-40s FAILED\n", name);
            Text tx;
            text_init(&tx, &c.arena);
            diags_render(&c.diags, &tx, false);
            puts(text_str(&tx).at);
        }
        ctx_release(&c);
    }
    printf("mean gap %.5f over %d of %d\n", sum / count, over, count);
    return 0;
}
