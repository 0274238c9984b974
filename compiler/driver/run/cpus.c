/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads a call has where nobody says. Linux knows the CPUs that this process may use; elsewhere those online count. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/run/c_library.h"

static int64_t usable_cpus(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) { /* it fails beyond 1024 CPUs */
        online = CPU_COUNT(&set);
    }
#endif
    return online < 1 ? 1 : online;
}

int64_t c_threads(int64_t most)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char *end = NULL;
    errno = 0;
    int64_t n = text == NULL ? 0 : strtoll(text, &end, 10);
    bool number = end != NULL && end > text && (end[strspn(end, " ")] == '\0' || *end == ',');
    n = number && errno == 0 && n >= 1 ? n : usable_cpus();
    return n < most ? n : most;
}
