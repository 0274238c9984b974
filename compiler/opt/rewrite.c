/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of rewrite.h and the moves its rules share. */
#include "opt/rewrite.h"

#define ROUNDS_LIMIT                                                                           \
    100 /* rules applied to one node; far above what terminating rules need                    \
         */

/* A value that is another's now passes its name on, if the other has none: reports speak of user's names. */
static void name_pass_on(Graph *to, NodeRef r, const NodeSpec *s)
{
    Node *n = &to->nodes.at[r];
    if (n->name == NULL && op_info(n->op)->kind != OPKIND_LEAF) {
        n->name = s->name;
    }
}

static Verdict rules_apply(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    bool whole = s->at != NULL || op_takes_whole(s->op); /* they read operands as they are */
    for (uint32_t k = 0; !whole && k < r->n_rules; k++) {
        if (r->rules[k].op == s->op || r->rules[k].op == OP_COUNT) {
            Verdict v = r->rules[k].apply(r, s, done);
            if (v != RULE_NO) {
                return v;
            }
        }
    }
    return RULE_NO;
}

NodeRef rewrite_add(Rewriter *r, NodeSpec *s)
{
    for (int round = 0; round < ROUNDS_LIMIT; round++) {
        NodeRef done = NODE_NONE;
        Verdict v = rules_apply(r, s, &done);
        if (v == RULE_DONE) {
            name_pass_on(r->to, done, s);
            return done;
        }
        if (v == RULE_NO) {
            break;
        }
    }
    return graph_add(r->to, s);
}

Graph *rewrite_graph(Ctx *ctx, Arena *arena, const Graph *g, const Rule *rules,
                     uint32_t n_rules)
{
    Arena work;
    arena_init(&work, &ctx->budget);
    Rewriter r = {.ctx = ctx, .rules = rules, .n_rules = n_rules};
    r.to = graph_like(&work, g);
    arena_init(&r.scratch, &ctx->budget);
    NodeRef *map = ARENA_ARRAY(&work, g->nodes.n, NodeRef);
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        const Node *n = graph_node(g, k);
        if (op_info(n->op)->kind == OPKIND_LEAF) {
            map[k] = graph_clone_node(r.to, g, k, map);
            continue;
        }
        ArenaMark mark = arena_mark(&r.scratch);
        NodeSpec s = graph_spec(g, k);
        NodeRef *operand = ARENA_ARRAY(&r.scratch, n->n_operands, NodeRef);
        for (uint32_t i = 0; i < n->n_operands; i++) {
            operand[i] = map[n->operand[i]];
        }
        s.operand = operand;
        map[k] = rewrite_add(&r, &s);
        arena_reset(&r.scratch, mark);
    }
    graph_copy_results(r.to, g, map);
    Graph *pruned = graph_prune(arena, r.to);
    arena_release(&r.scratch);
    arena_release(&work);
    return pruned;
}

/* ---- moves ---- */

bool spec_const(const Rewriter *r, const NodeSpec *s, uint32_t k, Number *v)
{
    const Node *n = spec_operand(r, s, k);
    *v = n->value;
    return n->op == OP_CONST;
}

bool spec_same(const NodeSpec *s, uint32_t k, uint32_t l)
{
    return s->operand[k] == s->operand[l] && access_eq(s->access[k], s->access[l]);
}

Verdict spec_set(Rewriter *r, NodeSpec *s, Op op, uint32_t n, const NodeRef *operand,
                 const Access *access)
{
    s->op = op;
    s->n_operands = n;
    s->operand = arena_copy(&r->scratch, operand, n * sizeof *operand);
    s->access = arena_copy(&r->scratch, access, n * sizeof *access);
    return RULE_SPEC;
}

Verdict spec_become(Rewriter *r, NodeSpec *s, Op op, uint32_t n, const uint32_t *operands)
{
    NodeRef *operand = ARENA_ARRAY(&r->scratch, n, NodeRef);
    Access *access = ARENA_ARRAY(&r->scratch, n, Access);
    for (uint32_t k = 0; k < n; k++) {
        operand[k] = s->operand[operands[k]];
        access[k] = s->access[operands[k]];
    }
    s->acc = DTYPE_NONE;
    return spec_set(r, s, op, n, operand, access);
}

Verdict spec_become_const(Rewriter *r, NodeSpec *s, Number v)
{
    CHECK(v.dtype == s->dtype);
    const NodeRef value = graph_const(r->to, v, s->span);
    const Access whole = {0, NULL};
    s->acc = DTYPE_NONE;
    return spec_set(r, s, OP_COPY, 1, &value, &whole);
}

Access access_see_through(Rewriter *r, const Node *through, const Access *a)
{
    Index *of_label = ARENA_ARRAY(&r->scratch, through->n_labels, Index);
    for (uint32_t d = 0; d < through->rank; d++) {
        of_label[through->out[d]] = a->index[d];
    }
    const Access *in = &through->access[0];
    Index *index = ARENA_ARRAY(&r->scratch, in->rank, Index);
    for (uint32_t d = 0; d < in->rank; d++) {
        index[d] = in->index[d].label >= 0 ? of_label[in->index[d].label] : in->index[d];
    }
    return (Access){in->rank, index};
}

void spec_see_through(Rewriter *r, NodeSpec *s, uint32_t k)
{
    const Node *through = spec_operand(r, s, k);
    CHECK(op_info(through->op)->kind == OPKIND_MAP && through->n_operands == 1);
    CHECK(op_info(s->op)->kind == OPKIND_MAP);
    NodeRef *operand = arena_copy(&r->scratch, s->operand, s->n_operands * sizeof *operand);
    Access *access = arena_copy(&r->scratch, s->access, s->n_operands * sizeof *access);
    operand[k] = through->operand[0];
    access[k] = access_see_through(r, through, &s->access[k]);
    s->operand = operand;
    s->access = access;
}

Uses spec_uses(Rewriter *r, const NodeSpec *s)
{
    int32_t most = -1;
    for (uint32_t k = 0; k < s->n_operands; k++) {
        for (uint32_t d = 0; d < s->access[k].rank; d++) {
            int32_t l = s->access[k].index[d].label;
            most = l > most ? l : most;
        }
    }
    for (uint32_t d = 0; d < s->rank; d++) {
        most = s->out[d] > most ? s->out[d] : most;
    }
    Uses u = {.n = (uint32_t)(most + 1)};
    u.of = ARENA_ARRAY(&r->scratch, u.n, LabelCount);
    for (uint32_t d = 0; d < s->rank; d++) {
        u.of[s->out[d]].out = true;
        u.of[s->out[d]].extent = s->out_shape[d];
    }
    for (uint32_t k = 0; k < s->n_operands; k++) {
        for (uint32_t d = 0; d < s->access[k].rank; d++) {
            int32_t l = s->access[k].index[d].label;
            if (l >= 0) {
                LabelCount *use = &u.of[l];
                use->operands += use->operands == 0 || use->last != k ? 1 : 0;
                use->last = k;
                use->extent = spec_operand(r, s, k)->shape[d];
            }
        }
    }
    return u;
}
