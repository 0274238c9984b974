/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with recurrences, and what looks like one. */
#include "front/check_names.h"

/* ---- of recurrences ---- */

void steps_refuse_two(Kern *k, Span at, const char *x, const char *y)
{
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_RECURRENCE, at,
                   "recurrence along '%s', and along '%s' too: one index is the step", x, y);
    diag_help(d, "of two indices one may be the step, the other one is summed or shifted");
    k->steps_wrong = true;
}

void steps_refuse_mixed(Kern *k, const StepsName *v)
{
    const AstNode *left = kern_node(k, kern_node(k, k->body->child[v->statement])->child[0]);
    if (v->mixed_axis != v->axis) {
        steps_refuse_two(k, v->mixed_at, steps_index_alone(k, left->child[v->axis])->text,
                         steps_index_alone(k, left->child[v->mixed_axis])->text);
        return;
    }
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_RECURRENCE, v->mixed_at,
                   "recurrence along '%s': '%s' is read before a step and behind it",
                   steps_index_alone(k, left->child[v->axis])->text, v->name->text);
    mark_other(k->c, d, v->at, v->backward ? "read behind it" : "read before it");
    k->steps_wrong = true;
}

void steps_refuse_both(Kern *k, const StepsName *v)
{
    uint32_t inside = 0;
    for (uint32_t i = 0; i < v->n_given; i++) {
        inside = v->given[i].at >= 0 ? v->given[i].statement : inside;
    }
    Diagnostic *d = diag_error(
        &k->c->ctx->diags, E_RECURRENCE, kern_node(k, k->body->child[inside])->span,
        "recurrence of '%s': states before the first step are given, and positions too",
        v->name->text);
    diag_help(d, "either of them: with %s[-1] steps begin at position 0, with %s[0] at 1",
              v->name->text, v->name->text);
    k->steps_wrong = true;
}

void steps_refuse_late(Kern *k, const StepsName *v, uint32_t statement)
{
    Diagnostic *d = diag_error(
        &k->c->ctx->diags, E_RECURRENCE, kern_node(k, k->body->child[statement])->span,
        "recurrence of '%s': what it begins with stands before its steps", v->name->text);
    mark_other(k->c, d, v->at, "a step");
    k->steps_wrong = true;
}

/* The name that the position is a whole number from, if it is further away than a step may read. */
static bool is_too_far(const Kern *k, AstId position, Sym index)
{
    const AstNode *n = kern_node(k, position);
    return n->kind == AST_CHAIN && n->n == 2 && (n->op == OP_ADD || n->op == OP_SUB) &&
           kern_node(k, n->child[0])->kind == AST_NAME &&
           kern_node(k, n->child[0])->name == index &&
           kern_node(k, n->child[1])->kind == AST_INT &&
           kern_node(k, n->child[1])->value.i > STEPS_MOST;
}

static void help_far(Diagnostic *d)
{
    diag_help(d, "a step reads up to %d steps before", STEPS_MOST);
}

void steps_refuse_read(Kern *k, const StepsName *v, AstId read, Sym index, bool own)
{
    const AstNode *n = kern_node(k, read);
    Diagnostic *d =
        diag_error(&k->c->ctx->diags, E_RECURRENCE, n->span,
                   "recurrence along '%s': a step reads '%s' at %s", index->text, v->name->text,
                   own ? "its own position before it is computed"
                       : "other positions than a number of steps before");
    if (is_too_far(k, n->child[v->axis], index)) {
        help_far(d);
    } else {
        diag_help(d, "%s[%s %c 1] is what the step before has left", v->name->text, index->text,
                  v->backward ? '+' : '-');
    }
    k->steps_wrong = true;
}

void steps_refuse_missing(Kern *k, const StepsName *v, int64_t at)
{
    StepsGroup *g = steps_group(k, v->statement);
    const StepsMember *m = g == NULL ? NULL : steps_member(g, v->statement);
    const char *index = m == NULL ? "the step" : m->index->text;
    Diagnostic *d;
    if (v->backward) {
        d = diag_error(&k->c->ctx->diags, E_RECURRENCE, v->at,
                       "recurrence along '%s': '%s' is read %lld behind the last position, and "
                       "is not given there",
                       index, v->name->text, (long long)-at);
        diag_help(d, "begin with a statement for it, of the dim of '%s': %s[n%s, ...] = ...",
                  index, v->name->text, at == -1 ? "" : " + 1");
    } else {
        d = diag_error(&k->c->ctx->diags, E_RECURRENCE, v->at,
                       "recurrence along '%s': %s[%lld] is read at %s = %lld and never given",
                       index, v->name->text, (long long)at, index, (long long)v->n_first);
        diag_help(d, "%s[%lld] = ... is a state before the first step, or %s[0] = ... %s",
                  v->name->text, (long long)at, v->name->text,
                  v->n_lags > 1 ? "and as many as steps reach back give the first positions"
                                : "gives the first position");
    }
    k->steps_wrong = true;
}

bool steps_help_type(Kern *k, Diagnostic *d, const CheckedExpr *read, DType t)
{
    const Value *v = read->kind == CHECKED_READ ? &k->k->values.at[read->read] : NULL;
    StepsName *of = v == NULL || v->place == NULL ? NULL : steps_named(k, v->place->of);
    const AstNode *s = of == NULL ? NULL : kern_node(k, k->body->child[of->given[0].statement]);
    if (s == NULL || kern_node(k, s->child[1])->kind != AST_INT) {
        return false;
    }
    diag_note(d, v->span, "'%s' begins with a whole number here", of->name->text);
    diag_help(d, "declared, it has another type: %s: %s[%s, ...] = ...", of->name->text,
              dtype_name(t), of->given[0].text);
    return true;
}

/* ---- of what looks like one ---- */

/* The index along which the expression reads, at other positions, what stands on the left. */
static Sym moved_index(Kern *k, const AstNode *left, AstId id, Span *at)
{
    const AstNode *n = kern_node(k, id);
    Sym found = NULL;
    if (n->kind == AST_INDEXED && n->name == left->name && n->n == left->n) {
        for (uint32_t a = 1; a < n->n && found == NULL; a++) {
            int64_t by = 0, other = 0;
            Sym x = steps_index_alone(k, left->child[a]), y = steps_index_alone(k, n->child[a]);
            x = x != NULL ? x : steps_shifted(k, left->child[a], &by);
            y = y != NULL ? y : steps_shifted(k, n->child[a], &other);
            bool same = x == y && by == other;
            found = x != NULL && !same && steps_has_name(k, n->child[a], x) ? x : NULL;
        }
        *at = n->span;
    }
    for (uint32_t c = 0; c < n->n && found == NULL; c++) {
        found = moved_index(k, left, n->child[c], at);
    }
    return found;
}

static bool reads_far(const Kern *k, AstId id, Sym name, uint32_t axis, Sym index)
{
    const AstNode *n = kern_node(k, id);
    bool far = n->kind == AST_INDEXED && n->name == name && axis < n->n &&
               is_too_far(k, n->child[axis], index);
    for (uint32_t c = 0; c < n->n && !far; c++) {
        far = reads_far(k, n->child[c], name, axis, index);
    }
    return far;
}

bool recurrence_reported(Kern *k, Sym name, Span at)
{
    const AstNode *s = k->body != NULL && k->statement < k->body->n
                           ? kern_node(k, k->body->child[k->statement])
                           : NULL;
    const AstNode *left = s != NULL && s->kind == AST_ASSIGN ? kern_node(k, s->child[0]) : NULL;
    Span read = at;
    Sym index = left != NULL && left->kind == AST_INDEXED && left->name == name
                    ? moved_index(k, left, s->child[1], &read)
                    : NULL;
    if (index == NULL) {
        return false;
    }
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_RECURRENCE, read,
                               "recurrence along '%s': '%s' is read at positions that are no "
                               "number of steps before",
                               index->text, name->text);
    mark_other(k->c, d, left->span, "what is computed");
    bool far = false, moved = false;
    const AstNode *n = left;
    for (uint32_t a = 1; a < n->n; a++) {
        int64_t by = 0;
        moved = moved || (steps_index_alone(k, n->child[a]) == NULL &&
                          steps_shifted(k, n->child[a], &by) == index);
        far = far || reads_far(k, s->child[1], name, a, index);
    }
    if (far) {
        help_far(d);
        return true;
    }
    if (moved) {
        diag_help(d, "the step stands alone on the left: %s[%s] = .. %s[%s - 1] ..", name->text,
                  index->text, name->text, index->text);
        return true;
    }
    diag_help(d, "%s[.., %s, ..] = .. %s[.., %s - 1, ..] ..; running sums are sum[j <= %s](..)",
              name->text, index->text, name->text, index->text, index->text);
    return true;
}

void recurrence_warn(Kern *k, AstId statement)
{
    const AstNode *s = kern_node(k, statement);
    const AstNode *left = kern_node(k, s->child[0]);
    Span read = left->span;
    Sym index = left->kind == AST_INDEXED ? moved_index(k, left, s->child[1], &read) : NULL;
    if (index != NULL) {
        Diagnostic *d = diag_warning(
            &k->c->ctx->diags, W_RECURRENCE, read,
            "'%s' is read as it was before the statement, not step by step along '%s'",
            left->name->text, index->text);
        mark_other(k->c, d, left->span, "all of this is changed at once");
        diag_help(d, "for a recurrence write '='");
    }
}
