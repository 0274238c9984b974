/* SPDX-License-Identifier: Apache-2.0 */
/* Which values may be computed in the tile that keeps them. */
#include "backend/nki/evaluate.h"

bool evaluate_in_place(const Stmt *s)
{
    const Expr *e = s->value;
    if (expr_load_of(e, s->dst) == NULL) {
        return true;
    }
    /* x[at] = x[at] + y[..], or times y, is one instruction, which reads each element before it writes it; a statement reads what it writes
     * at no other element. */
    return e->kind == EXPR_OP && (e->op == OP_ADD || e->op == OP_MUL) &&
           e->arg[0]->kind == EXPR_LOAD && e->arg[0]->buf == s->dst &&
           e->arg[1]->kind == EXPR_LOAD && e->arg[1]->buf != s->dst;
}
