/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph computes, as a short text that stays the same whatever its values are called, wherever they stand in the
 * source, and whatever its extents are: who takes decisions from a file compares it (extents are compared with the
 * head). Enumerators count by their names, which outlive a table's order. */
#include <string.h>

#include "graph/graph.h"

static uint64_t add_name(uint64_t h, const char *name)
{
    return hash_bytes(h, name, strlen(name) + 1);
}

static uint64_t add_dtype(uint64_t h, DType t)
{
    return t == DTYPE_NONE ? hash_mix(h, 0) : add_name(h, dtype_name(t));
}

static uint64_t add_real(uint64_t h, double v)
{
    return hash_bytes(h, &v, sizeof v);
}

static uint64_t add_access(uint64_t h, const Access *a)
{
    h = hash_mix(h, a->rank);
    for (uint32_t d = 0; d < a->rank; d++) {
        h = hash_mix(h, (uint64_t)(int64_t)a->index[d].label);
        h = hash_mix(h, (uint64_t)a->index[d].offset);
    }
    return h;
}

static uint64_t add_node(uint64_t h, const Graph *g, const Node *n)
{
    h = add_dtype(add_dtype(add_name(h, op_info(n->op)->name), n->dtype), n->acc);
    h = hash_mix(h, n->n_operands);
    h = n->onto ? add_name(h, "onto") : h;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        h = add_access(hash_mix(h, n->operand[k]), &n->access[k]);
    }
    h = hash_mix(h, n->rank);
    for (uint32_t d = 0; n->out != NULL && d < n->rank; d++) {
        h = hash_mix(h, (uint64_t)(int64_t)n->out[d]);
    }
    if (n->op == OP_CONST) {
        h = add_real(add_real(hash_mix(h, (uint64_t)n->value.i), n->value.re), n->value.im);
    }
    for (uint32_t d = 0; d < node_positions(n); d++) {
        h = hash_mix(h, (uint64_t)n->at[d].base);
        for (uint32_t i = 0; i < n->at[d].n; i++) {
            h = hash_mix(hash_mix(h, n->at[d].term[i].var), (uint64_t)n->at[d].term[i].coef);
        }
    }
    h = n->op == OP_EXTENT ? add_name(h, g->dims.list.at[n->dim].name->text) : h;
    return n->op == OP_INPUT ? hash_mix(h, n->param) : h;
}

/* What is promised allows decisions that are wrong without it. */
static uint64_t add_promises(uint64_t h, const Graph *g)
{
    for (uint32_t k = 0; k < g->params.n; k++) {
        const Param *p = &g->params.at[k];
        for (uint32_t i = 0; p->symmetry != NULL && i < p->symmetry->n; i++) {
            const SymmetryClass *c = &p->symmetry->at[i];
            h = hash_mix(hash_mix(h, k), (uint64_t)c->width);
            h = hash_mix(h, (c->sign < 0 ? 1u : 0u) + (c->conj ? 2u : 0u));
            for (uint32_t d = 0; d < c->n * c->width; d++) {
                h = hash_mix(h, c->dim[d]);
            }
        }
    }
    return h;
}

const char *graph_digest(Arena *arena, const Graph *g)
{
    uint64_t h = hash_mix(g->form, g->nodes.n);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        h = add_node(h, g, graph_node(g, n));
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        h = hash_mix(add_name(hash_mix(h, r->node), r->name->text),
                     (uint64_t)(int64_t)r->param);
    }
    for (uint32_t k = 0; k < g->required.n; k++) {
        h = hash_mix(add_name(h, "require"), g->required.at[k].node);
    }
    return str_format(arena, "%016llx", (unsigned long long)add_promises(h, g));
}
