/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings of values that fusion kept on chip and this target does not. Fusion has warned of the
 * others. */
#include "backend/nki/lower.h"

void spill_warn(const Lower *l, BufRef buf, const char *why)
{
    const Buffer *b = &l->from->bufs.at[buf];
    if (b->space != SPACE_TILE || b->may_spill) {
        return;
    }
    int64_t bytes = nki_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        bytes = sat_mul(bytes, b->extent[d].n);
    }
    Diagnostic *d = diag_warning(&l->ctx->diags, W_SPILL, b->span,
                                 "'%s' goes to memory on target '%s': %lld bytes",
                                 b->name->text, l->target->name, (long long)bytes);
    diag_help(d, "%s; 'spill NAME' in the kernel allows it", why);
}

void spill_warn_all(const Lower *l)
{
    for (uint32_t i = 0; !l->tried.failed && i < l->from->bufs.n; i++) {
        if (l->home[i].made && !l->home[i].on_chip) {
            spill_warn(l, i,
                       l->tried.away[i] ? "a statement reads it in a way that only a DMA can"
                                        : "it does not fit on chip beside what else is there");
        }
    }
}
