/* SPDX-License-Identifier: Apache-2.0 */
/* What people call the labels of nodes. Statements name them; what passes make between (intermediates of a contraction, casts)
 * takes the names of what reads it, then of what it reads, so that one index has one name along a way through the graph. Nothing
 * is decided by names. */
#include <string.h>

#include "graph/graph.h"

static bool has_name(const Node *n, Sym *const *names, NodeRef r, Sym name)
{
    for (uint32_t l = 0; l < n->n_labels; l++) {
        if (names[r][l] == name) {
            return true;
        }
    }
    return false;
}

/* Label l of node r, if it has no name yet and no other label there has this one. */
static void offer(const Graph *g, Sym **names, NodeRef r, int32_t l, Sym name)
{
    if (name != NULL && names[r][l] == NULL && !has_name(graph_node(g, r), names, r, name)) {
        names[r][l] = name;
    }
}

/* Names go between a node and an operand. */
static void pass_on(const Graph *g, Sym **names, NodeRef r, bool to_operand)
{
    const Node *n = graph_node(g, r);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        NodeRef p = n->operand[k];
        const Node *from = graph_node(g, p);
        for (uint32_t d = 0; d < from->rank && from->out != NULL; d++) {
            int32_t l = n->access[k].index[d].label;
            if (l < 0) {
                continue;
            }
            if (to_operand) {
                offer(g, names, p, from->out[d], names[r][l]);
            } else {
                offer(g, names, r, l, names[p][from->out[d]]);
            }
        }
    }
}

/* The first letter from number *next on that no label of the node is called. */
static const char *letter(Arena *arena, const bool *taken, uint32_t n, uint32_t *next)
{
    Text t;
    while (*next < n && taken[*next]) {
        ++*next;
    }
    text_init(&t, arena);
    dump_label(&t, (int32_t)(*next)++);
    return t.at;
}

/* Names that two labels have got from different statements are told apart by strokes. */
static const char *const *label_names(Arena *arena, const Node *n, const Sym *names)
{
    const char **out = ARENA_ARRAY(arena, n->n_labels, const char *);
    uint32_t bound = 2 * n->n_labels,
             next = 0; /* letters that may be needed or be in the way */
    bool *taken = ARENA_ARRAY(arena, bound, bool);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        int32_t number = names[l] == NULL ? -1 : dump_label_number(names[l]);
        if (number >= 0 && (uint32_t)number < bound) {
            taken[number] = true;
        }
    }
    for (uint32_t l = 0; l < n->n_labels; l++) {
        uint32_t before = 0;
        if (names[l] == NULL) {
            out[l] = letter(arena, taken, bound, &next);
            continue;
        }
        for (uint32_t k = 0; k < l; k++) {
            before += names[k] == names[l] ? 1 : 0;
        }
        out[l] = before == 0   ? names[l]->text
                 : before == 1 ? str_format(arena, "%s'", names[l]->text)
                               : str_format(arena, "%s'%u", names[l]->text, before);
    }
    return out;
}

const char *const *node_names(Arena *arena, const Node *n)
{
    const Sym *none = n->label_name == NULL ? ARENA_ARRAY(arena, n->n_labels, Sym) : NULL;
    return label_names(arena, n, n->label_name == NULL ? none : n->label_name);
}

GraphNames graph_names(Arena *arena, const Graph *g)
{
    const char *const **out = ARENA_ARRAY(arena, g->nodes.n, const char *const *);
    Sym **names = ARENA_ARRAY(arena, g->nodes.n, Sym *);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        names[r] = ARENA_ARRAY(arena, n->n_labels, Sym);
        if (n->label_name != NULL && n->n_labels > 0) {
            memcpy(names[r], n->label_name, n->n_labels * sizeof(Sym));
        }
    }
    for (NodeRef r = g->nodes.n; r-- > 0;) {
        pass_on(g, names, r, true);
    }
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        pass_on(g, names, r, false);
    }
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        out[r] = label_names(arena, graph_node(g, r), names[r]);
    }
    return out;
}
