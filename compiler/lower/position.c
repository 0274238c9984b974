/* SPDX-License-Identifier: Apache-2.0 */
/* How the labels of a node are indexed by statements: a label is a loop variable (tile 1), a local index within the tile of the
 * innermost loop that cuts it, or a local index over the whole extent. */
#include "lower/build.h"

const char *build_name(Builder *b, NodeRef node, uint32_t label, const char *otherwise)
{
    if (b->names == NULL || label >= graph_node(b->g, node)->n_labels) {
        return otherwise;
    }
    char *name = (char *)str_dup(b->arena, str_from(b->names[node][label]));
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '\'' ? '_' : *c; /* what tells labels of one name apart */
    }
    return name;
}

static VarRef local_var(Builder *b, NodeRef node, uint32_t label)
{
    Text letter = text_new(b->arena);
    dump_label(&letter, (int32_t)label);
    const char *name = build_name(b, node, label, letter.at);
    Sym sym = sym_cstr(&b->ctx->syms, name);
    uint32_t var = 0;
    if (!map_get(&b->locals, sym->id, &var)) {
        var = kernel_var(b->k, &b->ctx->syms, name, false);
        map_put(&b->locals, sym->id, var);
    }
    return var;
}

Position build_whole_position(Builder *b, NodeRef node, uint32_t label, Dim extent)
{
    Position p = {.local = true};
    p.var = local_var(b, node, label);
    p.range = range_whole(extent);
    p.at = affine_var(b->arena, p.var);
    return p;
}

Position build_dimension_position(Builder *b, NodeRef node, uint32_t d)
{
    const Node *n = graph_node(b->g, node);
    return build_whole_position(b, node, n->out == NULL ? d : (uint32_t)n->out[d], n->shape[d]);
}

Affine build_start(Builder *b, NodeRef node, uint32_t loop)
{
    int64_t from = nest_halo(b->nest, loop, node).from;
    return from == 0 ? b->start[loop]
                     : affine_add(b->arena, b->start[loop], 1, affine_const(from));
}

/* As a statement in the body of loop `scope` sees it. */
static Position label_position(Builder *b, NodeRef node, uint32_t scope, uint32_t label)
{
    Dim extent = graph_node(b->g, node)->extent[label];
    uint32_t loop = nest_loop_of(b->nest, scope, node, (int32_t)label);
    if (loop == NEST_NONE) {
        return build_whole_position(b, node, label, extent);
    }
    Position p = {.at = build_start(b, node, loop)};
    int64_t tile = nest_loop_span(b->nest, loop, node);
    if (tile > 1) {
        p.local = true;
        bool clipped = !nest_loop_is_full(b->nest, loop);
        p.range = (Range){.start = p.at,
                          .span = tile,
                          .clipped = clipped,
                          .limit = clipped ? extent : dim_fixed(0)};
        p.var = local_var(b, node, label);
        p.at = affine_var(b->arena, p.var);
    }
    return p;
}

Position *build_positions(Builder *b, NodeRef node, uint32_t scope)
{
    const Node *n = graph_node(b->g, node);
    Position *list = ARENA_ARRAY(b->arena, n->n_labels, Position);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        list[l] = label_position(b, node, scope, l);
    }
    return list;
}
