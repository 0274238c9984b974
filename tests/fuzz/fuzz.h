/* SPDX-License-Identifier: Apache-2.0 */
/* The one function of a fuzz target; libFuzzer or replay.c calls it. Returns 0. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
