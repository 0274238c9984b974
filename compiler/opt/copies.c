/* SPDX-License-Identifier: Apache-2.0 */
/* The rules about copies, which every pass applies: a value that only moves another's elements is read through, and one
 * that does not even move them goes. */
#include "opt/rewrite.h"

/* Do all labels of `a` still occur in an operand when it is replaced by `by`? Notes those that left it. */
static bool labels_survive(Uses *u, const Access *a, const Access *by, uint32_t *stamp,
                           uint32_t now)
{
    for (uint32_t d = 0; d < by->rank; d++) {
        if (by->index[d].label >= 0) {
            stamp[by->index[d].label] = now;
        }
    }
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t l = a->index[d].label;
        if (l >= 0 && stamp[l] != now && u->of[l].operands <= 1) {
            return false;
        }
    }
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t l = a->index[d].label;
        if (l >= 0 && stamp[l] != now) {
            stamp[l] = now;
            u->of[l].operands--;
        }
    }
    return true;
}

Verdict rule_read_through_copies(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    NodeRef *operand = NULL;
    Access *access = NULL;
    bool is_map = op_info(s->op)->kind == OPKIND_MAP;
    Uses u = {0};
    uint32_t *stamp = NULL;
    Verdict verdict = RULE_NO;
    for (uint32_t k = 0; k < s->n_operands; k++) {
        const Node *o = spec_operand(r, s, k);
        bool whole = s->op == OP_GATHER && k == 0; /* in its own order of dimensions */
        if (o->op != OP_COPY || whole) {
            continue;
        }
        if (operand == NULL) {
            operand = arena_copy(&r->scratch, s->operand, s->n_operands * sizeof *operand);
            access = arena_copy(&r->scratch, s->access, s->n_operands * sizeof *access);
            u = is_map ? u : spec_uses(r, s);
            stamp = ARENA_ARRAY(&r->scratch, u.n, uint32_t);
        }
        Access composed = access_see_through(r, o, &s->access[k]);
        if (is_map || labels_survive(&u, &s->access[k], &composed, stamp, k + 1)) {
            operand[k] = o->operand[0];
            access[k] = composed;
            verdict = RULE_SPEC;
        }
    }
    if (verdict == RULE_SPEC) {
        s->operand = operand;
        s->access = access;
    }
    return verdict;
}

Verdict rule_drop_idle_copy(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    const Node *o = spec_operand(r, s, 0);
    if (o->rank != s->rank || o->dtype != s->dtype || o->op == OP_VIEW || o->op == OP_INDEX) {
        return RULE_NO;
    }
    for (uint32_t d = 0; d < s->rank; d++) {
        if (s->access[0].index[d].label != s->out[d]) {
            return RULE_NO;
        }
    }
    *done = s->operand[0];
    return RULE_DONE;
}

Verdict rule_drop_idle_reduction(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (op_info(s->op)->kind != OPKIND_REDUCE) {
        return RULE_NO;
    }
    for (uint32_t d = 0; d < s->access[0].rank; d++) {
        int32_t label = s->access[0].index[d].label;
        bool in_out = label < 0;
        for (uint32_t i = 0; i < s->rank && !in_out; i++) {
            in_out = s->out[i] == label;
        }
        if (!in_out) {
            return RULE_NO;
        }
    }
    const uint32_t first = 0;
    return spec_become(r, s, spec_operand(r, s, 0)->dtype == s->dtype ? OP_COPY : OP_CAST, 1,
                       &first);
}
