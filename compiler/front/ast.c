/* SPDX-License-Identifier: Apache-2.0 */
/* Making AST nodes. The depth of a node is one more than that of its deepest child; past NESTING_LIMIT it is not
 * made, so that whoever walks the tree later may recurse. */
#include "front/ast.h"

void ast_init(Ast *a, Arena *arena)
{
    *a = (Ast){.arena = arena};
    vec_push(arena, &a->nodes, ((AstNode){.kind = AST_NONE}));
}

const AstNode *ast_node(const Ast *a, AstId id)
{
    CHECK(id < a->nodes.n);
    return &a->nodes.at[id];
}

/* True, and reported once, when a child makes the node too deep. */
static bool too_deep(Ctx *ctx, Ast *a, uint16_t depth, Span span)
{
    if (depth <= NESTING_LIMIT) {
        return false;
    }
    if (!a->too_deep) {
        a->too_deep = true;
        diag_limit(&ctx->diags, E_LIMIT_NESTING, span, "nested more than %d deep",
                   NESTING_LIMIT);
    }
    a->damaged = true;
    return true;
}

AstId ast_new(Ctx *ctx, Ast *a, AstKind kind, Span span, Sym name, Span at, const AstId *child,
              uint32_t n)
{
    if (a->too_large != 0) {
        return a->too_large;
    }
    AstNode node = {.kind = kind, .span = span, .name = name, .at = at, .n = n, .cap = n};
    for (uint32_t k = 0; k < n; k++) {
        const AstNode *c = ast_node(a, child[k]);
        node.depth = c->depth > node.depth ? c->depth : node.depth;
        node.flag = node.flag || c->kind == AST_BROKEN || (c->kind == AST_LIST && c->flag);
    }
    node.depth = (uint16_t)(node.depth + 1);
    if (a->nodes.n >= AST_LIMIT) {
        diag_limit(&ctx->diags, E_LIMIT_SIZE, span,
                   "more than %u names, numbers and operations", AST_LIMIT);
        a->damaged = true;
        a->too_large = a->nodes.n;
        node = (AstNode){.kind = AST_BROKEN, .span = span, .depth = 1};
    } else if (too_deep(ctx, a, node.depth, span)) {
        node = (AstNode){.kind = AST_BROKEN, .span = span, .depth = 1};
    } else if (n > 0) {
        node.child = arena_copy(a->arena, child, n * sizeof *child);
    }
    vec_push(a->arena, &a->nodes, node);
    return a->nodes.n - 1;
}

void ast_append(Ctx *ctx, Ast *a, AstId list, AstId child)
{
    if (a->too_large != 0) { /* what follows is not kept: the list may be what stands for it */
        return;
    }
    const AstNode *c = ast_node(a, child);
    uint16_t depth = (uint16_t)(c->depth + 1);
    bool broken = c->kind == AST_BROKEN;
    if (too_deep(ctx, a, depth, c->span)) {
        return;
    }
    AstNode *l = &a->nodes.at[list];
    l->child = vec_grow(a->arena, l->child, l->n, &l->cap, sizeof *l->child);
    l->child[l->n++] = child;
    l->depth = depth > l->depth ? depth : l->depth;
    l->flag = l->flag || broken;
}

void ast_set_file(Ast *a, AstId include, AstId file)
{
    AstNode *n = &a->nodes.at[include];
    n->child = arena_copy(a->arena, &file, sizeof file);
    n->n = n->cap = 1;
}
