/* SPDX-License-Identifier: Apache-2.0 */
/* Elements combined by several threads, each its part of them: by the caller's pool, or by threads of their own. */
#include "fold.h"

#include <pthread.h>
#include <stddef.h>

#include "../src/internal.h"

/* A part has so many bytes at least, which take longer than to start a thread. */
#define PART_BYTES ((int64_t)1 << 20)
#define PARTS      64

typedef struct Shared {
    int32_t dtype, fold, parts;
    char *to;
    const char *from;
    int64_t count;
} Shared;

static void fold_part(void *work, int32_t number)
{
    const Shared *s = work;
    int64_t size = (int64_t)tdsl_dtype_bytes(s->dtype), each = s->count / s->parts;
    int64_t first = number * each, last = number + 1 == s->parts ? s->count : first + each;
    tdsl_fold(s->dtype, s->fold, s->to + first * size, s->from + first * size, last - first);
}

typedef struct Part {
    Shared *shared;
    int32_t number;
    pthread_t thread;
} Part;

static void *part_main(void *argument)
{
    const Part *p = argument;
    fold_part(p->shared, p->number);
    return NULL;
}

/* Those for which there is no thread are done by the caller. */
static void run_threads(Shared *s)
{
    Part part[PARTS];
    int32_t started = 1;
    for (; started < s->parts; started++) {
        part[started] = (Part){.shared = s, .number = started};
        if (pthread_create(&part[started].thread, NULL, part_main, &part[started]) != 0) {
            break;
        }
    }
    fold_part(s, 0);
    for (int32_t k = started; k < s->parts; k++) {
        fold_part(s, k);
    }
    for (int32_t k = 1; k < started; k++) {
        (void)pthread_join(part[k].thread, NULL);
    }
}

void tdsl_fold_shared(const tdsl_threads *threads, int32_t dtype, int32_t fold, char *to,
                      const char *from, int64_t count)
{
    int64_t most = count * (int64_t)tdsl_dtype_bytes(dtype) / PART_BYTES;
    int64_t parts = threads == NULL ? 1 : threads->count;
    parts = parts < most ? parts : most;
    Shared s = {dtype, fold, (int32_t)(parts < PARTS ? parts : PARTS), to, from, count};
    if (s.parts <= 1) {
        tdsl_fold(dtype, fold, to, from, count);
    } else if (threads->run != NULL) {
        threads->run(threads->pool, fold_part, &s, s.parts);
    } else {
        run_threads(&s);
    }
}
