/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file: read as it is or as each element type, or refused with a
 * message; what is read is written and read again the same. */
#include <string.h>

#include "driver/run/npy.h"
#include "fuzz/fuzz.h"

static void try_type(const uint8_t *data, size_t size, DType cast)
{
    Ctx c;
    ctx_init(&c);
    Str text = {str_dup(&c.arena, (Str){(const char *)data, size}), size};
    Tensor *t = npy_parse(&c, &c.arena, "fuzz.npy", text, cast);
    CHECK((t != NULL) == (c.diags.n_errors == 0));
    if (t != NULL) {
        CHECK(cast == DTYPE_NONE || t->dtype == cast);
        bool said = dtype_is_half(t->dtype) && dtype_bytes(t->dtype) == 1;
        Tensor *again = npy_parse(&c, &c.arena, "again.npy", npy_format(&c.arena, t),
                                  said ? t->dtype : DTYPE_NONE);
        CHECK(again != NULL && again->count == t->count && again->dtype == t->dtype);
        CHECK(t->count == 0 ||
              memcmp(again->data, t->data, (size_t)(t->count * dtype_bytes(t->dtype))) == 0);
    }
    ctx_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int cast = DTYPE_NONE; cast < DTYPE_COUNT; cast++) {
        try_type(data, size, (DType)cast);
    }
    return 0;
}
