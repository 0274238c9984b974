/* SPDX-License-Identifier: Apache-2.0 */
/* Scans (nest/scan.h): one statement, which goes along the scanned index. */
#include "lower/build.h"
#include "nest/scan.h"

void build_scan(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    const Node *n = graph_node(b->g, node);
    Scan scan;
    CHECK(nest_scan(b->arena, b->nest, b->nest->values, node, &scan));
    Position *pos = build_positions(b, node, scope);
    Position *along = &pos[scan.along];
    if (scan.reverse) { /* from the last position on */
        Affine at = affine_add(b->arena, affine_extent(b->arena, n->extent[scan.along]), -1,
                               affine_var(b->arena, along->var));
        at.base -= 1;
        along->at = at;
    }
    pos[scan.folded] = *along;
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, b->storage[node], pos);
    s->value = expr_cast(b->arena, build_expr(b, scan.value, scan.access, pos), n->acc);
    s->fold = n->op;
    s->begins = true;
    s->exclusive = scan.exclusive;
    while (s->scan == 0 || s->index[s->scan - 1].var != along->var) {
        s->scan++;
        CHECK(s->scan <= s->n_index);
    }
}
