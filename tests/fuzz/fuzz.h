/* SPDX-License-Identifier: Apache-2.0 */
/* The one function of a fuzz target; libFuzzer or replay.c calls it. Returns 0. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not CHECK: a fuzzer keeps the input of what aborts, not of what exits. */
#define MUST(cond)                                                                             \
    do {                                                                                       \
        if (!(cond)) {                                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                         \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

#endif
