/* SPDX-License-Identifier: Apache-2.0 */
/* A statement as a contraction of the Tensor engine: by loops over panels where it is regular, else by blocks; or not at all. */
#include "backend/nki/contract.h"
#include "backend/nki/home.h"

bool lower_is_product(Lower *l, const Stmt *s)
{
    Contraction c = {.l = l, .s = s};
    return !place_is_flat(l, s) && contract_begin(&c) && !l->tried.failed;
}

#define PART_MOST                                                                              \
    64 /* matmuls of a statement that is a part of a body, which may be cut into stages */

bool lower_panels(Lower *l, const Stmt *s, const Stmt *epilogue)
{
    Contraction c = {.l = l, .s = s, .reader = epilogue, .overwrite = s->begins};
    if (s->schedule == NULL || s->schedule->n_levels == 0 || place_is_flat(l, s) ||
        !contract_begin(&c) || l->tried.failed) {
        return false;
    }
    contract_shape(&c);
    bool part = l->loops.depth > 0 && contract_matmuls(&c) <= PART_MOST;
    return !part && !psum_has(l, s->dst) && contract_panels(&c);
}

bool lower_matmul(Lower *l, const Stmt *s, bool overwrite, const Stmt *epilogue)
{
    if (place_is_flat(l, s)) {
        return false;
    }
    Contraction c = {.l = l, .s = s, .reader = epilogue, .overwrite = overwrite};
    if (!contract_begin(&c)) {
        return s->schedule != NULL && s->schedule->n_levels > 0 &&
               !contract_refuse(&c, "has no matmul for it");
    }
    if (s->schedule != NULL && s->schedule->n_levels == 0) {
        return false;
    }
    contract_shape(&c);
    contract_blocks(&c);
    return true;
}
