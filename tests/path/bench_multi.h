/* SPDX-License-Identifier: Apache-2.0 */
/* `tdsl-bench-paths --multi`: a row for each recorded set and size. Returns the exit status. */
#ifndef TESTS_PATH_BENCH_MULTI_H
#define TESTS_PATH_BENCH_MULTI_H

#include <stdint.h>

int bench_multi(const char *only, uint32_t effort);

#endif
