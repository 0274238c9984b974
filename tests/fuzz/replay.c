/* SPDX-License-Identifier: Apache-2.0 */
/* A main for fuzz targets where libFuzzer is not: runs the target on every file of the given
 * folders, and on mutations of each that depend on nothing but its bytes: cut short, a byte
 * changed, a piece repeated. An empty corpus is a failure, since it would prove nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define MUTATIONS 200
#define LONGEST   ((size_t)1 << 20)

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* A copy of exactly n bytes, so that AddressSanitizer sees every read beyond them. */
static void run_exact(const uint8_t *at, size_t n)
{
    uint8_t *copy = malloc(n == 0 ? 1 : n);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, at, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void run_mutated(const uint8_t *at, size_t n, uint8_t *work, uint64_t seed)
{
    uint64_t state = seed;
    memcpy(work, at, n);
    size_t from = next(&state) % n;
    switch (seed % 4) {
    case 0: /* cut short */
        run_exact(work, from);
        return;
    case 1: /* bytes changed */
        for (int i = 0; i < 3; i++) {
            work[next(&state) % n] = (uint8_t)next(&state);
        }
        run_exact(work, n);
        return;
    case 2: { /* a piece left out */
        size_t length = next(&state) % (n - from) + 1;
        memmove(work + from, work + from + length, n - from - length);
        run_exact(work, n - length);
        return;
    }
    default: { /* a piece repeated */
        size_t length = next(&state) % (n - from) + 1;
        memmove(work + from + length, work + from, n - from);
        run_exact(work, n + length);
        return;
    }
    }
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *at = malloc(LONGEST), *work = malloc(2 * LONGEST);
    if (f == NULL || at == NULL || work == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t n = fread(at, 1, LONGEST, f);
    fclose(f);
    run_exact(at, n);
    int rounds = n > 10000 ? 4 : MUTATIONS;
    for (int i = 0; i < rounds && n > 0; i++) {
        run_mutated(at, n, work, (uint64_t)i);
    }
    free(at);
    free(work);
}

static int is_entry(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **list;
        int n = scandir(argv[i], &list, is_entry, alphasort);
        for (int k = 0; k < n; k++) {
            size_t length = strlen(argv[i]) + strlen(list[k]->d_name) + 2;
            char *path = malloc(length);
            if (path == NULL) {
                abort();
            }
            snprintf(path, length, "%s/%s", argv[i], list[k]->d_name);
            run_file(path);
            files++;
            free(path);
            free(list[k]);
        }
        if (n >= 0) {
            free(list);
        }
    }
    printf("%d files\n", files);
    return files == 0;
}
