/* SPDX-License-Identifier: Apache-2.0 */
/* Types of elements and vectors, and how many lanes each instruction set has. */
#include "backend/c/emit.h"
#include "backend/c/isa.h"

const char *element_type(DType t)
{
    return t == DTYPE_I32 ? "uint32_t" : t == DTYPE_I64 ? "uint64_t" : c_type(t);
}

int64_t vector_part(int64_t bytes, DType t, int64_t span)
{
    int64_t size = dtype_bytes(t);
    for (; bytes >= 16; bytes /= 2) {
        if (bytes / size <= span) {
            return bytes / size;
        }
    }
    return 1;
}

int64_t isa_lanes(const Isa *isa, TileVector v)
{
    int64_t lanes = isa->vector_bytes / dtype_bytes(v.t);
    return isa->vector_bytes == 0 ? 1 : lanes < v.most ? lanes : v.most;
}

const char *isa_vector(Tiles *t, const Isa *isa, TileVector v)
{
    return isa->vector_bytes == 0 ? element_type(v.t)
                                  : vector_type(t->help, v.t, isa_lanes(isa, v));
}

static uint32_t log2_of(int64_t n)
{
    uint32_t k = 0;
    while (n > 1) {
        n /= 2;
        k++;
    }
    return k;
}

const char *vector_type(Helpers *h, DType t, int64_t lanes)
{
    if (dtype_is_complex(t)) {
        return vector_type(h, dtype_part(t), 2 * lanes);
    }
    uint32_t row = t == DTYPE_F32 ? 0 : t == DTYPE_F64 ? 1 : t == DTYPE_I32 ? 2 : 3;
    h->vectors |= 1u << (row * 8 + log2_of(lanes));
    return str_format(h->arena, "tdsl_%sx%lld", dtype_name(t), (long long)lanes);
}

bool stmt_has_lanes(const Stmt *s)
{
    return s->kind == STMT_TILE && s->n_index > 0 &&
           s->index[s->n_index - 1].mode == MODE_LANES;
}
