/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `specialise`: which products run in functions made for their extents and strides: those of short sums, for which a call with all of
 * these takes longer than the sum. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"

#define SHORT_SUM 16

static bool is_short(const Kernel *k, const Stmt *s)
{
    ProductNumbers n;
    Product p;
    return stmt_is_product(s) && product_of(k, s, &p) == NULL && product_numbers(k, &p, &n) &&
           n.sum <= SHORT_SUM;
}

static bool specialise_block(const Kernel *k, Stmt **body, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            any |= specialise_block(k, s->body, s->n_body);
        } else if (s->kind == STMT_TILE && !s->specialised && is_short(k, s)) {
            s->specialised = any = true;
        }
    }
    return any;
}

Kernel *c_specialise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    (void)ctx;
    Kernel *out = kernel_changeable(arena, k);
    return specialise_block(out, out->body, out->n_body) ? out : (Kernel *)(uintptr_t)k;
}
