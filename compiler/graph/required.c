/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements: positions that must lie inside, as rows behind the results. They are made of parameters element by element, which a call
 * can do before anything else. */
#include "graph/graph.h"

static bool is_elementwise(const Node *n)
{
    bool folds = false;
    for (uint32_t l = 0; l < n->n_labels && !folds; l++) {
        folds = node_reduces(n, (int32_t)l);
    }
    OpKind kind = op_info(n->op)->kind;
    return kind == OPKIND_LEAF || kind == OPKIND_MAP || kind == OPKIND_VIEW ||
           kind == OPKIND_GATHER || (kind == OPKIND_CONTRACT && !folds && !n->onto);
}

/* Marks what the node is made of; false: more than elementwise work on parameters. Views and gathers read parameters alone, which lie
 * whole in memory. */
static bool mark_known(const Graph *g, NodeRef n, uint8_t *needed)
{
    bool known = true;
    needed[n] = 1;
    for (NodeRef r = n + 1; r-- > 0 && known;) {
        const Node *node = graph_node(g, r);
        OpKind kind = op_info(node->op)->kind;
        known = !needed[r] || is_elementwise(node);
        for (uint32_t k = 0; needed[r] && k < node->n_operands; k++) {
            needed[node->operand[k]] = 1;
        }
        if (known && needed[r] && (kind == OPKIND_VIEW || kind == OPKIND_GATHER)) {
            known = graph_node(g, node->operand[0])->op == OP_INPUT;
        }
    }
    return known;
}

bool graph_is_known_at_call(Arena *scratch, const Graph *g, NodeRef n)
{
    return mark_known(g, n, ARENA_ARRAY(scratch, (size_t)n + 1, uint8_t));
}

void graph_copy_required(Graph *to, const Graph *from, const NodeRef *map)
{
    for (uint32_t k = 0; k < from->required.n; k++) {
        Required r = from->required.at[k];
        r.node = map[r.node];
        r.what.text = str_dup(to->arena, str_from(r.what.text));
        r.what.indices = str_dup(to->arena, str_from(r.what.indices));
        vec_push(to->arena, &to->required, r);
    }
}

Graph *graph_positions(Ctx *ctx, Arena *arena, const Graph *g)
{
    if (g->required.n == 0) {
        return NULL;
    }
    Graph *to = graph_like(arena, g);
    to->signature = "";
    to->statements = (SourceStatements){0, NULL};
    to->ranks = (TextLines){0, NULL};
    uint8_t *needed = ARENA_ARRAY(arena, g->nodes.n, uint8_t);
    NodeRef *map = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    for (uint32_t k = 0; k < g->required.n; k++) {
        (void)mark_known(g, g->required.at[k].node, needed);
    }
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        map[r] = needed[r] ? graph_clone_node(to, g, r, map) : NODE_NONE;
    }
    for (uint32_t k = 0; k < g->required.n; k++) {
        const Required *r = &g->required.at[k];
        Result result = {.name = sym_cstr(&ctx->syms, str_format(arena, "at%u", k)),
                         .node = map[r->node],
                         .param = -1,
                         .span = r->what.span};
        vec_push(arena, &to->results, result);
    }
    return to;
}

static bool dim_is_of(const DimTable *t, Dim d)
{
    return d.sym < 0 ? d.n >= 0 && d.n <= SIZE_LIMIT : (uint32_t)d.sym < t->list.n;
}

const char *graph_required_problem(Arena *scratch, const Graph *g, const Required *r)
{
    if (r->node >= g->nodes.n || graph_node(g, r->node)->dtype != DTYPE_I64) {
        return "is of no whole number";
    }
    if (!graph_is_known_at_call(scratch, g, r->node)) {
        return "needs a value that is computed";
    }
    return dim_is_of(&g->dims, r->what.below) ? NULL : "has no extent";
}
