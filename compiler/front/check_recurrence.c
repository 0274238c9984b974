/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that look like steps of a recurrence, `h[t] = a[t] * h[t - 1]`, which this version does not compile, and
 * `h[i + 1] += a[i] * h[i]`, which is none: its right side reads h as it was. */
#include "front/check_parts.h"

static const AstNode *node(const Kern *k, AstId id)
{
    return ast_node(&k->c->program->ast, id);
}

static bool same_text(const Kern *k, AstId x, AstId y)
{
    const AstNode *a = node(k, x), *b = node(k, y);
    bool same = a->kind == b->kind && a->op == b->op && a->name == b->name && a->n == b->n &&
                (a->kind != AST_INT || a->value.i == b->value.i);
    for (uint32_t c = 0; c < a->n && same; c++) {
        same = same_text(k, a->child[c], b->child[c]) &&
               (a->kind != AST_CHAIN || a->link[c] == b->link[c]);
    }
    return same;
}

static bool names(const Kern *k, AstId id, Sym name)
{
    const AstNode *n = node(k, id);
    bool found = n->kind == AST_NAME && n->name == name;
    for (uint32_t c = 0; c < n->n && !found; c++) {
        found = names(k, n->child[c], name);
    }
    return found;
}

/* A name in both positions, which are not the same; null: there is none. */
static Sym moved_index(const Kern *k, AstId left, AstId right)
{
    const AstNode *n = node(k, left);
    if (same_text(k, left, right)) {
        return NULL;
    }
    if (n->kind == AST_NAME) {
        uint32_t how = 0;
        bool index = map_get(&k->index_names, n->name->id, &how);
        return index && names(k, right, n->name) ? n->name : NULL;
    }
    Sym found = NULL;
    for (uint32_t c = 0; c < n->n && found == NULL; c++) {
        const AstNode *child = node(k, n->child[c]);
        uint32_t how = 0;
        bool index = child->kind == AST_NAME && map_get(&k->index_names, child->name->id, &how);
        found = index && names(k, right, child->name) ? child->name : NULL;
    }
    return found;
}

/* The index along which the expression reads, at other positions, what stands on the left. */
static Sym step_index(const Kern *k, const AstNode *left, AstId id, Span *at)
{
    const AstNode *n = node(k, id);
    Sym found = NULL;
    if (n->kind == AST_INDEXED && n->name == left->name && n->n == left->n) {
        for (uint32_t a = 1; a < n->n && found == NULL; a++) {
            found = moved_index(k, left->child[a], n->child[a]);
        }
        *at = n->span;
    }
    for (uint32_t c = 0; c < n->n && found == NULL; c++) {
        found = step_index(k, left, n->child[c], at);
    }
    return found;
}

bool recurrence_reported(Kern *k, Sym name, Span at)
{
    const AstNode *s = k->body != NULL && k->statement < k->body->n
                           ? node(k, k->body->child[k->statement])
                           : NULL;
    const AstNode *left = s != NULL && s->kind == AST_ASSIGN ? node(k, s->child[0]) : NULL;
    Span read = at;
    if (left == NULL || left->kind != AST_INDEXED || left->name != name) {
        return false;
    }
    Sym index = step_index(k, left, s->child[1], &read);
    if (index == NULL) {
        return false;
    }
    Diagnostic *d =
        diag_unsupported(&k->c->ctx->diags, E_NOT_YET, read,
                         "a recurrence along '%s': this step reads what another one "
                         "gives, which is not compiled by this version",
                         index->text);
    mark_other(k->c, d, left->span, "a step");
    diag_help(d,
              "running sums are sum[j <= %s](...); a few steps may be written one after the "
              "other, and many are calls of the kernel",
              index->text);
    return true;
}

void recurrence_warn(Kern *k, AstId statement)
{
    const AstNode *s = node(k, statement);
    const AstNode *left = node(k, s->child[0]);
    Span read = left->span;
    Sym index = left->kind == AST_INDEXED ? step_index(k, left, s->child[1], &read) : NULL;
    if (index != NULL) {
        Diagnostic *d = diag_warning(
            &k->c->ctx->diags, W_RECURRENCE, read,
            "'%s' is read as it was before the statement, not step by step along '%s'",
            left->name->text, index->text);
        mark_other(k->c, d, left->span, "all of this is changed at once");
    }
}
