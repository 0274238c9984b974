/* SPDX-License-Identifier: Apache-2.0 */
/* The path benchmark: every instance of tests/data/paths.json, or those asked for, by one or
 * more searches; cost against the best known, time, and summary rows by size. Limits: the
 * instances with known sliced totals.
 *
 *     tdsl-bench-paths [--file=F] [--search=A,B] [--effort=N] [--seed=N] [--seeds=N]
 * [--only=TEXT] [--sliced] [--multi]
 *
 * `--multi` is another benchmark: the sets of bench_multi.c. `--seeds=N` runs N seeds and takes
 * the median. Times are CPU seconds of this process. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "path/bench_multi.h"
#include "path/path.h"
#include "support/places.h"

#define SEEDS_MOST 64
#define CLASSES    7

typedef struct Settings {
    const char *file, *only;
    char search[256];
    uint32_t effort, seeds;
    uint64_t seed;
    bool sliced, multi;
} Settings;

typedef struct Summary { /* one size class */
    uint32_t n, worse, better, proved;
    double gap[512], seconds;
} Summary;

static const uint32_t class_most[CLASSES] = {8, 16, 30, 60, 100, 600, UINT32_MAX};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct Measure {
    double log10_cost, largest, seconds;
    uint32_t n_sliced;
    bool proved, failed;
    char strategy[32];
} Measure;

static Measure measure_once(const json_t *instance, const char *search, const Settings *set,
                            uint64_t seed, int64_t limit)
{
    Measure m = {.failed = true};
    Ctx ctx;
    PathProblem p;
    PathResult r;
    ctx_init(&ctx);
    PathOptions o = {
        .search = search, .effort = set->effort, .seed = seed, .memory_limit = limit};
    if (path_problem_from_value(instance, (Span){0, 0, 0}, &ctx, &p)) {
        double start = seconds_now();
        if (path_search(&p, &o, &ctx, &r)) {
            m = (Measure){r.costs.log10_multiply_adds,
                          r.costs.log2_largest,
                          seconds_now() - start,
                          r.n_sliced,
                          r.proved,
                          false,
                          ""};
            snprintf(m.strategy, sizeof m.strategy, "%s", r.strategy);
        }
    }
    ctx_release(&ctx);
    return m;
}

/* The run with the median cost. */
static Measure measure(const json_t *instance, const char *search, const Settings *set,
                       int64_t limit)
{
    Measure all[SEEDS_MOST];
    for (uint32_t i = 0; i < set->seeds; i++) {
        Measure m = measure_once(instance, search, set, set->seed + i, limit);
        uint32_t at = i;
        for (; at > 0 && all[at - 1].log10_cost > m.log10_cost; at--) {
            all[at] = all[at - 1];
        }
        all[at] = m;
    }
    return all[(set->seeds - 1) / 2];
}

static void row(const char *name, uint32_t n, const Measure *m, double known, int limit)
{
    if (m->failed) {
        printf("%-44.44s %6u  no path\n", name, n);
        return;
    }
    double gap = m->log10_cost - known;
    char cap[16] = "-";
    if (limit > 0) {
        snprintf(cap, sizeof cap, "%d", limit);
    }
    printf("%-44.44s %6u %5s %10.5f %10.5f %+9.5f %-5s %6.1f %3u %8.3f  %s%s\n", name, n, cap,
           m->log10_cost, known, gap,
           gap > 0.005      ? "above"
           : gap < -0.00005 ? "below"
                            : "",
           m->largest, m->n_sliced, m->seconds, m->strategy, m->proved ? ", proved" : "");
    fflush(stdout);
}

static void summary_add(Summary *s, uint32_t n, const Measure *m, double known)
{
    uint32_t c = 0;
    while (n > class_most[c]) {
        c++;
    }
    double gap = m->failed ? 1e9 : m->log10_cost - known;
    if (s[c].n < 512) {
        s[c].gap[s[c].n++] = gap;
    }
    s[c].worse += gap > 0.005;
    s[c].better += gap < -0.00005;
    s[c].proved += m->proved;
    s[c].seconds += m->seconds;
}

static void summary_print(Summary *s, const char *search)
{
    printf("\n%s: gap = log10 of cost over best known\n", search);
    printf(
        "   operands  instances  proved  below  above 0.005  median gap   worst gap  mean s\n");
    for (uint32_t c = 0; c < CLASSES; c++) {
        if (s[c].n > 0) {
            qsort(s[c].gap, s[c].n, sizeof *s[c].gap, by_value);
            char to[16] = "";
            if (c + 1 < CLASSES) {
                snprintf(to, sizeof to, "%u", class_most[c]);
            }
            printf("%5u-%-5s %10u %7u %6u %12u %11.5f %11.5f %7.3f\n",
                   c == 0 ? 1 : class_most[c - 1] + 1, to, s[c].n, s[c].proved, s[c].better,
                   s[c].worse, s[c].gap[(s[c].n - 1) / 2], s[c].gap[s[c].n - 1],
                   s[c].seconds / s[c].n);
        }
    }
}

static void bench(const json_t *list, const char *search, const Settings *set)
{
    Summary *summary = calloc(CLASSES, sizeof *summary);
    if (summary == NULL) {
        return;
    }
    printf("%-44s %6s %5s %10s %10s %9s %-5s %6s %3s %8s  %s\n", "instance", "n", "limit",
           "log10 C", "best known", "gap", "", "log2 S", "sl", "CPU s", "found by");
    size_t i, k;
    json_t *instance, *cap;
    json_array_foreach(list, i, instance)
    {
        const char *name = json_string_value(json_object_get(instance, "name"));
        uint32_t n = (uint32_t)json_array_size(json_object_get(instance, "inputs"));
        if (strstr(name, set->only) == NULL) {
            continue;
        }
        if (!set->sliced) {
            double known =
                json_number_value(json_object_get(json_object_get(instance, "best"), "log10"));
            Measure m = measure(instance, search, set, 0);
            row(name, n, &m, known, 0);
            summary_add(summary, n, &m, known);
            continue;
        }
        json_array_foreach(json_object_get(instance, "sliced"), k, cap)
        {
            int limit = (int)json_integer_value(json_object_get(cap, "log2_limit"));
            double known = json_number_value(json_object_get(cap, "log10_total"));
            Measure m = measure(instance, search, set, (int64_t)1 << limit);
            row(name, n, &m, known, limit);
            summary_add(summary, n, &m, known);
        }
    }
    summary_print(summary, search);
    free(summary);
}

static bool settings_read(int argc, char **argv, Settings *set)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = strchr(a, '=');
        size_t n = v != NULL ? (size_t)(v - a) : strlen(a);
        v = v != NULL ? v + 1 : "";
        if (strncmp(a, "--file", n) == 0 && n == 6) {
            set->file = v;
        } else if (strncmp(a, "--only", n) == 0 && n == 6) {
            set->only = v;
        } else if (strncmp(a, "--search", n) == 0 && n == 8) {
            snprintf(set->search, sizeof set->search, "%s", v);
        } else if (strncmp(a, "--effort", n) == 0 && n == 8) {
            set->effort = (uint32_t)strtoul(v, NULL, 10);
        } else if (strncmp(a, "--seed", n) == 0 && n == 6) {
            set->seed = strtoull(v, NULL, 10);
        } else if (strncmp(a, "--seeds", n) == 0 && n == 7) {
            set->seeds = (uint32_t)strtoul(v, NULL, 10);
        } else if (strncmp(a, "--sliced", n) == 0 && n == 8) {
            set->sliced = true;
        } else if (strncmp(a, "--multi", n) == 0 && n == 7) {
            set->multi = true;
        } else {
            return false;
        }
    }
    return set->seeds >= 1 && set->seeds <= SEEDS_MOST;
}

int main(int argc, char **argv)
{
    Settings set = {.file = source_file("tests/data/paths.json"),
                    .only = "",
                    .search = "auto",
                    .effort = 1,
                    .seeds = 1};
    if (!settings_read(argc, argv, &set)) {
        fputs("usage: tdsl-bench-paths [--file=F] [--search=A,B] [--effort=N] [--seed=N] "
              "[--seeds=N (to 64)] "
              "[--only=TEXT] [--sliced] [--multi]\n",
              stderr);
        return 2;
    }
    if (set.multi) {
        return bench_multi(set.only, set.effort);
    }
    json_error_t error;
    json_t *root = json_load_file(set.file, 0, &error);
    const json_t *list = json_object_get(root, "instances");
    if (!json_is_array(list)) {
        fprintf(stderr, "tdsl-bench-paths: '%s': %s\n", set.file,
                root == NULL ? error.text : "no instances");
        return 1;
    }
    for (char *name = strtok(set.search, ","); name != NULL; name = strtok(NULL, ",")) {
        if (path_strategy_find(name) == NULL) {
            fprintf(stderr, "tdsl-bench-paths: no search is named '%s'\n", name);
            return 2;
        }
        bench(list, name, &set);
    }
    json_decref(root);
    return 0;
}
