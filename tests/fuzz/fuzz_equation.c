/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an equation of two operands of rank 2, all the way to C. */
#include "fuzz/fuzz.h"
#include "fuzz/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_compile((Str){(const char *)data, size}, true);
    return 0;
}
