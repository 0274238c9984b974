/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences in the text of a kernel: statements that read what they assign at other positions of one index, the step.
 *
 *     h[-1,n] = h0[n];                         a state before the first step, or h[0,n] = ..
 *     h[t,n] = a[t,n] * h[t - 1,n] + b[t,n];   a step
 *
 * They are found before anything has a meaning, by names alone, and the body is written anew: what is given before the steps, and what a
 * step reads of those before, are values of their own without the step's index,
 *
 *     `h[-1]`[n] = h0[n];
 *     h[t,n] = a[t,n] * `h[t - 1]`[n] + b[t,n];
 *
 * so that all rules of statements hold for them. The statements of a recurrence stand one behind the other, from the first that reads a
 * value before its own statement to the last that such a value is of; those between that have nothing to do with it are no part of it. */
#include <string.h>

#include "front/check_names.h"

/* ---- positions ---- */

/* `t`, of `t` or `t < n`; null: it is no index alone. */
Sym steps_index_alone(const Kern *k, AstId id)
{
    const AstNode *n = kern_node(k, id);
    return n->kind == AST_NAME ? n->name
           : n->kind == AST_COMPARE && n->op == OP_LT &&
                   kern_node(k, n->child[0])->kind == AST_NAME
               ? kern_node(k, n->child[0])->name
               : NULL;
}

/* `t - 2`: the name, and the number behind it. */
Sym steps_shifted(const Kern *k, AstId id, int64_t *by)
{
    const AstNode *n = kern_node(k, id);
    if (n->kind != AST_CHAIN || n->n != 2 || (n->op != OP_ADD && n->op != OP_SUB)) {
        return NULL;
    }
    const AstNode *x = kern_node(k, n->child[0]), *y = kern_node(k, n->child[1]);
    if (x->kind != AST_NAME || y->kind != AST_INT || y->value.i > STEPS_MOST) {
        return NULL;
    }
    *by = n->link[1] == OP_SUB ? -y->value.i : y->value.i;
    return x->name;
}

/* `-1`, `0`, or behind the end `n`, `n + 1`, `n - 1`. */
static bool given_position(const Kern *k, AstId id, bool backward, int64_t *at)
{
    const AstNode *n = kern_node(k, id);
    if (!backward) {
        bool negative = n->kind == AST_UNARY && n->op == OP_NEG;
        const AstNode *number = negative ? kern_node(k, n->child[0]) : n;
        *at = number->kind == AST_INT ? (negative ? -number->value.i : number->value.i) : 0;
        return number->kind == AST_INT && number->value.i <= STEPS_MOST;
    }
    int64_t by = 0;
    Sym name = n->kind == AST_NAME ? n->name : steps_shifted(k, id, &by);
    *at = -by - 1; /* as before the first step: -1 is the first position behind the last */
    return name != NULL;
}

static const AstNode *left_of(const Kern *k, uint32_t statement)
{
    const AstNode *s = kern_node(k, k->body->child[statement]);
    const AstNode *left =
        s->kind == AST_ASSIGN && s->op == OP_COPY ? kern_node(k, s->child[0]) : NULL;
    return left != NULL && left->kind == AST_INDEXED ? left : NULL;
}

static bool left_is_plain(const Kern *k, const AstNode *left)
{
    bool plain = true;
    for (uint32_t a = 1; a < left->n && plain; a++) {
        plain = steps_index_alone(k, left->child[a]) != NULL;
    }
    return plain;
}

/* The dimension of the left side that the name is the index of; the number of its children if it is none. */
static uint32_t steps_left_index(const Kern *k, const AstNode *left, Sym name)
{
    uint32_t a = 1;
    while (a < left->n && steps_index_alone(k, left->child[a]) != name) {
        a++;
    }
    return a;
}

bool steps_has_name(const Kern *k, AstId id, Sym name)
{
    const AstNode *n = kern_node(k, id);
    bool found = n->kind == AST_NAME && n->name == name;
    for (uint32_t c = 0; c < n->n && !found; c++) {
        found = steps_has_name(k, n->child[c], name);
    }
    return found;
}

/* ---- finding them ---- */

StepsName *steps_named(Kern *k, Sym name)
{
    uint32_t at = 0;
    bool known = k->steps_of.arena != NULL && map_get(&k->steps_of, name->id, &at);
    return known ? &k->steps_names.at[at] : NULL;
}

/* The statement that assigns the name at indices alone, from `from` on; behind the end: none. */
static uint32_t step_statement(Kern *k, Sym name, uint32_t from)
{
    for (; from < k->body->n; from++) {
        const AstNode *left = left_of(k, from);
        if (left != NULL && left->name == name && left_is_plain(k, left)) {
            break;
        }
    }
    return from;
}

/* `x[n] = ..` of a dim n, which no index on the right is called: the state behind the last step. */
static bool is_behind_end(Kern *k, uint32_t statement, uint32_t axis)
{
    const AstNode *left = left_of(k, statement);
    Sym name = steps_index_alone(k, left->child[axis]);
    return kern_node(k, left->child[axis])->kind == AST_NAME && name != NULL &&
           dim_known(k, name) &&
           !steps_has_name(k, kern_node(k, k->body->child[statement])->child[1], name);
}

/* Does a statement give the value outside of all positions: h[-1], or behind the last one of a dim n, h[n]? */
static bool has_outside(Kern *k, Sym value, uint32_t axis, bool backward)
{
    bool has = false;
    for (uint32_t s = 0; s < k->body->n && !has; s++) {
        const AstNode *left = left_of(k, s);
        int64_t at = 0;
        has = left != NULL && left->name == value && axis < left->n &&
              given_position(k, left->child[axis], backward, &at) && at < 0 &&
              (!backward || is_behind_end(k, s, axis));
    }
    return has;
}

/* Statement `s` reads the value at the position `name + by` along an axis: is it a value of a recurrence, whose own statement does
 * not come before, or which begins outside of its positions? */
static void note_read(Kern *k, uint32_t s, const AstNode *read, uint32_t axis, int64_t by)
{
    uint32_t of = step_statement(k, read->name, 0), known = 0;
    bool backward = by > 0;
    if (backward && of < k->body->n && of < s && left_of(k, of)->n == read->n &&
        is_behind_end(k, of, axis)) {
        of = step_statement(k, read->name, of + 1);
    }
    bool old = map_get(&k->value_by_name, read->name->id, &known) &&
               k->k->values.at[known].kind == VALUE_PARAM; /* it has a value already */
    if (of == k->body->n || left_of(k, of)->n != read->n || by == 0 || old ||
        (of < s && !has_outside(k, read->name, axis, backward))) {
        return;
    }
    s = of < s ? of : s;
    StepsName *before = steps_named(k, read->name);
    if (before != NULL) {
        bool mixed = before->axis != axis || before->backward != backward;
        before->mixed = before->mixed || mixed;
        before->mixed_axis = mixed ? axis : before->mixed_axis;
        before->mixed_at = mixed ? read->span : before->mixed_at;
        before->first = s < before->first ? s : before->first;
        return;
    }
    StepsName fresh = {.name = read->name,
                       .axis = axis,
                       .backward = backward,
                       .first = s,
                       .statement = of,
                       .at = read->span};
    map_put(&k->steps_of, read->name->id, k->steps_names.n);
    vec_push(k->c->arena, &k->steps_names, fresh);
}

static void scan_reads(Kern *k, uint32_t s, AstId id)
{
    const AstNode n = *kern_node(k, id);
    for (uint32_t c = 0; c < n.n; c++) {
        int64_t by = 0;
        Sym name = n.kind == AST_INDEXED && c > 0 ? steps_shifted(k, n.child[c], &by) : NULL;
        if (name != NULL && steps_left_index(k, left_of(k, s), name) < left_of(k, s)->n) {
            note_read(k, s, &n, c, by);
        }
        scan_reads(k, s, n.child[c]);
    }
}

/* Which statement gives the value where no step does. */
static void find_given(Kern *k, StepsName *v)
{
    for (uint32_t s = 0; s < k->body->n; s++) {
        const AstNode *left = left_of(k, s);
        int64_t at = 0;
        if (left == NULL || left->name != v->name || s == v->statement || v->axis >= left->n ||
            v->n_given == 2 * STEPS_MOST ||
            !given_position(k, left->child[v->axis], v->backward, &at)) {
            continue;
        }
        v->given[v->n_given++] = (StepsGiven){.at = at, .statement = s};
    }
}

/* ---- statements that belong together ---- */

/* Does it read the value at a number of steps from the index `*name` of the left side, or (`v` is null) of this very step? */
static bool reads_at(Kern *k, AstId id, Sym value, uint32_t axis, const StepsName *v,
                     const AstNode *left, Sym *name)
{
    const AstNode n = *kern_node(k, id);
    int64_t by = 0;
    if (n.kind == AST_INDEXED && n.name == value && axis < n.n) {
        Sym index = v != NULL ? steps_shifted(k, n.child[axis], &by)
                              : steps_index_alone(k, n.child[axis]);
        if (index != NULL && steps_left_index(k, left, index) < left->n &&
            (v == NULL || (by > 0) == v->backward)) {
            *name = index;
            return true;
        }
    }
    bool found = false;
    for (uint32_t c = 0; c < n.n && !found; c++) {
        found = reads_at(k, n.child[c], value, axis, v, left, name);
    }
    return found;
}

static bool reads_steps(Kern *k, AstId id, const StepsName *v, const AstNode *left, Sym *name)
{
    return reads_at(k, id, v->name, v->axis, v, left, name);
}

static void join_groups(Kern *k)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t x = 0; x < k->steps_groups.n; x++) {
            for (uint32_t y = x + 1; y < k->steps_groups.n; y++) {
                StepsGroup *a = &k->steps_groups.at[x], *b = &k->steps_groups.at[y];
                if (a->first <= b->last && b->first <= a->last) {
                    a->first = a->first < b->first ? a->first : b->first;
                    a->last = a->last > b->last ? a->last : b->last;
                    *b = k->steps_groups.at[--k->steps_groups.n];
                    changed = true;
                    break;
                }
            }
        }
    }
}

/* Are the first positions of what the statement computes given? */
static bool begins_inside(Kern *k, uint32_t statement, const AstNode *left, Sym index,
                          bool backward)
{
    StepsName v = {.name = left->name,
                   .axis = steps_left_index(k, left, index),
                   .backward = backward,
                   .statement = statement};
    if (v.axis < left->n) {
        find_given(k, &v);
    }
    return v.n_given > 0 && v.given[0].at >= 0;
}

/* A statement behind a recurrence that reads a state of it before the first step is a part of it; so is one that reads steps before,
 * and of which the first positions are given too. */
static bool reach_further(Kern *k, StepsGroup *g)
{
    bool grown = false;
    for (uint32_t s = g->last + 1; s < k->body->n; s++) {
        const AstNode *left = left_of(k, s);
        for (uint32_t v = 0; left != NULL && left_is_plain(k, left) && v < k->steps_names.n;
             v++) {
            StepsName *of = &k->steps_names.at[v];
            Sym name = NULL;
            bool inside = of->statement >= g->first && of->statement <= g->last;
            bool before = of->n_given > 0 && of->given[0].at < 0;
            if (inside &&
                reads_steps(k, kern_node(k, k->body->child[s])->child[1], of, left, &name) &&
                (before || begins_inside(k, s, left, name, of->backward))) {
                g->last = s;
                grown = true;
                break;
            }
        }
    }
    return grown;
}

static void find_groups(Kern *k)
{
    for (uint32_t v = 0; v < k->steps_names.n; v++) {
        StepsName *of = &k->steps_names.at[v];
        StepsGroup fresh = {.first = of->first, .last = of->statement};
        find_given(k, of);
        vec_push(k->c->arena, &k->steps_groups, fresh);
    }
    bool grown = true;
    while (grown) {
        join_groups(k);
        grown = false;
        for (uint32_t g = 0; g < k->steps_groups.n; g++) {
            grown = reach_further(k, &k->steps_groups.at[g]) || grown;
        }
    }
}

/* ---- the index of each statement ---- */

StepsGroup *steps_group(Kern *k, uint32_t statement)
{
    StepsGroup *group = NULL;
    for (uint32_t i = 0; i < k->steps_groups.n; i++) {
        StepsGroup *g = &k->steps_groups.at[i];
        group = statement >= g->first && statement <= g->last ? g : group;
    }
    return group;
}

StepsMember *steps_member(StepsGroup *g, uint32_t statement)
{
    for (uint32_t m = 0; m < g->members.n; m++) {
        if (g->members.at[m].statement == statement) {
            return &g->members.at[m];
        }
    }
    return NULL;
}

/* Which index of the statement is the step, as far as is known now; null: none. */
static Sym step_of(Kern *k, StepsGroup *g, uint32_t s, const AstNode *left, bool *two)
{
    AstId right = kern_node(k, k->body->child[s])->child[1];
    Sym found = NULL, name = NULL;
    for (uint32_t v = 0; v < k->steps_names.n; v++) {
        StepsName *of = &k->steps_names.at[v];
        if (of->statement < g->first || of->statement > g->last) {
            continue;
        }
        if (of->statement == s) {
            name = steps_index_alone(k, left->child[of->axis]);
        } else if (!reads_steps(k, right, of, left, &name)) {
            continue;
        }
        *two = *two || (found != NULL && found != name);
        found = name;
    }
    for (uint32_t m = 0; m < g->members.n && found == NULL; m++) {
        const StepsMember *of = &g->members.at[m];
        if (of->statement < s && reads_at(k, right, of->name, of->axis, NULL, left, &name)) {
            found = name;
        }
    }
    return found;
}

/* Is each value of the recurrence that the expression reads read at the step's index? */
static bool reads_this_step(Kern *k, AstId id, const StepsGroup *g, const AstNode *left,
                            Sym *index)
{
    const AstNode n = *kern_node(k, id);
    for (uint32_t m = 0; n.kind == AST_INDEXED && m < g->members.n; m++) {
        const StepsMember *of = &g->members.at[m];
        Sym at = of->name == n.name && of->axis < n.n ? steps_index_alone(k, n.child[of->axis])
                                                      : NULL;
        if (of->name != n.name) {
            continue;
        }
        if (at == NULL || steps_left_index(k, left, at) == left->n ||
            (*index != NULL && at != *index)) {
            return false;
        }
        *index = at;
    }
    bool fine = n.kind != AST_NAME || steps_named(k, n.name) == NULL;
    for (uint32_t c = n.kind == AST_INDEXED ? 1 : 0; c < n.n && fine; c++) {
        fine = reads_this_step(k, n.child[c], g, left, index);
    }
    return fine;
}

/* The statement behind a recurrence, if it reads nothing of that but the values of one step: it may be a part of the step. */
static bool reach_reader(Kern *k, StepsGroup *g)
{
    uint32_t s = g->last + 1;
    const AstNode *left = s < k->body->n ? left_of(k, s) : NULL;
    Sym index = NULL;
    bool free = left != NULL && left_is_plain(k, left) && steps_named(k, left->name) == NULL;
    for (uint32_t i = 0; i < k->steps_groups.n && free; i++) {
        free = s < k->steps_groups.at[i].first || s > k->steps_groups.at[i].last;
    }
    if (!free || step_statement(k, left->name, 0) != s ||
        !reads_this_step(k, kern_node(k, k->body->child[s])->child[1], g, left, &index) ||
        index == NULL) {
        return false;
    }
    g->last = s;
    return true;
}

static void find_members(Kern *k, StepsGroup *g)
{
    bool grown = true;
    while (grown) {
        grown = reach_reader(k, g);
        for (uint32_t s = g->first; s <= g->last; s++) {
            const AstNode *left = left_of(k, s);
            bool two = false;
            if (left == NULL || !left_is_plain(k, left) || steps_member(g, s) != NULL) {
                continue;
            }
            Sym name = step_of(k, g, s, left, &two);
            if (two) {
                steps_refuse_two(k, left->span, name->text, "another");
            }
            if (name != NULL) {
                StepsMember m = {.name = left->name,
                                 .axis = steps_left_index(k, left, name),
                                 .index = name,
                                 .statement = s};
                vec_push(k->c->arena, &g->members, m);
                grown = true;
            }
        }
    }
}

/* Values of steps that no step reads back may be given at first positions too. */
static void name_members(Kern *k, StepsGroup *g)
{
    bool backward = false;
    for (uint32_t v = 0; v < k->steps_names.n; v++) {
        const StepsName *of = &k->steps_names.at[v];
        backward =
            backward || (of->backward && of->statement >= g->first && of->statement <= g->last);
    }
    for (uint32_t m = 0; m < g->members.n; m++) {
        const StepsMember *of = &g->members.at[m];
        StepsName fresh = {.name = of->name,
                           .axis = of->axis,
                           .backward = backward,
                           .first = of->statement,
                           .statement = of->statement,
                           .at = left_of(k, of->statement)->span};
        find_given(k, &fresh);
        if (steps_named(k, of->name) == NULL && fresh.n_given > 0) {
            map_put(&k->steps_of, of->name->id, k->steps_names.n);
            vec_push(k->c->arena, &k->steps_names, fresh);
        }
    }
}

/* ---- what was found, checked ---- */

const StepsGiven *steps_given_at(const StepsName *v, int64_t at)
{
    for (uint32_t i = 0; i < v->n_given; i++) {
        if (v->given[i].at == at) {
            return &v->given[i];
        }
    }
    return NULL;
}

/* Positions that are given: before the first step, as many as steps reach back, or from the first position on. */
static bool check_given(Kern *k, StepsName *v)
{
    int64_t least = 0, most = -1;
    const StepsGroup *group = steps_group(k, v->statement);
    for (uint32_t i = 0; i < v->n_given; i++) {
        if (group != NULL && v->given[i].statement > group->first) {
            steps_refuse_late(k, v, v->given[i].statement);
            return false;
        }
        least = v->given[i].at < least ? v->given[i].at : least;
        most = v->given[i].at > most ? v->given[i].at : most;
    }
    if (least < 0 && most >= 0) {
        steps_refuse_both(k, v);
        return false;
    }
    v->n_first = (uint32_t)(most + 1);
    for (int64_t at = v->n_first > 0 ? 0 : -(int64_t)v->n_lags;
         at < (v->n_first > 0 ? (int64_t)v->n_first : 0); at++) {
        if (steps_given_at(v, at) == NULL) {
            steps_refuse_missing(k, v, at);
            return false;
        }
    }
    if (v->n_first > 0 && v->n_first < v->n_lags) {
        steps_refuse_missing(k, v, (int64_t)v->n_first - v->n_lags);
        return false;
    }
    return true;
}

/* ---- the body anew ---- */

static Sym hidden_name(Kern *k, Sym name, const char *where)
{
    return sym_cstr(&k->c->ctx->syms, str_format(k->c->arena, "%s[%s]", name->text, where));
}

static AstId copy_node(Kern *k, const AstNode *n, const AstId *child, uint32_t n_child,
                       Sym name)
{
    Ast *tree = &k->c->program->ast;
    AstId id = ast_new(k->c->ctx, tree, n->kind, n->span, name, n->at, child, n_child);
    AstNode *to = &tree->nodes.at[id];
    if (to->kind == n->kind) {
        to->op = n->op;
        to->flag = n->flag;
        to->value = n->value;
        to->link = n->link;
    }
    return id;
}

/* `x[a, b]` without its dimension `axis`, of another value. */
static AstId without_axis(Kern *k, const AstNode *n, uint32_t axis, Sym name)
{
    AstId child[RANK_LIMIT + 1];
    uint32_t count = 0;
    const AstNode *base = kern_node(k, n->child[0]);
    child[count++] = copy_node(k, base, base->child, base->n, name);
    for (uint32_t a = 1; a < n->n && count <= RANK_LIMIT; a++) {
        if (a != axis) {
            child[count++] = n->child[a];
        }
    }
    if (count == 1) {
        return child[0];
    }
    return copy_node(k, n, child, count, name);
}

/* As it stands in the program. */
static const char *written(Kern *k, AstId id)
{
    Span at = kern_node(k, id)->span;
    Str text = source_get(&k->c->ctx->sources, at.source)->text;
    return str_dup(k->c->arena, (Str){text.at + at.lo, at.hi - at.lo});
}

/* `h[t - 1]`, as it is read first; what begins behind the last position n may be called so already, and stands there by now. */
static Sym prior_name(Kern *k, const StepsName *v, AstId position)
{
    const char *text = written(k, position);
    for (uint32_t i = 0; i < v->n_given; i++) {
        const AstNode *left =
            kern_node(k, kern_node(k, k->body->child[v->given[i].statement])->child[0]);
        if (strcmp(written(k, left->child[v->axis]), text) == 0) {
            text = str_format(k->c->arena, "%s, a step", text);
            i = UINT32_MAX; /* from the first one on */
        }
    }
    return hidden_name(k, v->name, text);
}

typedef struct Rewrite {
    Kern *k;
    StepsGroup *g;
    uint32_t statement;
    Sym index;
} Rewrite;

/* What of the value is read, if it is one of the recurrence; else null. */
static StepsName *name_in(const Rewrite *w, Sym name)
{
    StepsName *v = steps_named(w->k, name);
    return v != NULL && v->statement >= w->g->first && v->statement <= w->g->last ? v : NULL;
}

static AstId rewrite(Rewrite *w, AstId id)
{
    const AstNode n = *kern_node(w->k, id);
    StepsName *v = n.kind == AST_INDEXED ? name_in(w, n.name) : NULL;
    if (v != NULL && v->axis < n.n) {
        int64_t by = 0;
        Sym name = steps_shifted(w->k, n.child[v->axis], &by);
        bool step = name == w->index && (by > 0) == v->backward && by != 0;
        bool same = steps_index_alone(w->k, n.child[v->axis]) == w->index &&
                    v->statement < w->statement;
        if (!step && !same) {
            bool own = v->statement >= w->statement &&
                       steps_index_alone(w->k, n.child[v->axis]) == w->index;
            steps_refuse_read(w->k, v, id, w->index, own);
            return id;
        }
        if (step) {
            uint32_t lag = (uint32_t)(by < 0 ? -by : by);
            v->n_lags = lag > v->n_lags ? lag : v->n_lags;
            v->read[lag - 1] = true;
            if (v->prior[lag - 1] == NULL) {
                v->prior[lag - 1] = prior_name(w->k, v, n.child[v->axis]);
            }
            return without_axis(w->k, &n, v->axis, v->prior[lag - 1]);
        }
    }
    AstId few[16], *child = n.n <= 16 ? few : ARENA_ARRAY(w->k->c->arena, n.n, AstId);
    bool changed = false;
    for (uint32_t c = 0; c < n.n; c++) {
        child[c] = rewrite(w, n.child[c]);
        changed = changed || child[c] != n.child[c];
    }
    return changed ? copy_node(w->k, &n, child, n.n, n.name) : id;
}

static void rewrite_group(Kern *k, StepsGroup *g, AstId *statement)
{
    for (uint32_t m = 0; m < g->members.n; m++) {
        const StepsMember *of = &g->members.at[m];
        const AstNode s = *kern_node(k, k->body->child[of->statement]);
        Rewrite w = {k, g, of->statement, of->index};
        AstId right = rewrite(&w, s.child[1]);
        if (right != s.child[1]) {
            AstId child[3] = {s.child[0], right, s.n > 2 ? s.child[2] : 0};
            statement[of->statement] = copy_node(k, &s, child, s.n, s.name);
        }
    }
}

static bool is_literal(const Kern *k, AstId id)
{
    const AstNode *n = kern_node(k, id);
    bool signed_one = n->kind == AST_UNARY && n->op == OP_NEG;
    AstKind kind = signed_one ? kern_node(k, n->child[0])->kind : n->kind;
    return kind == AST_INT || kind == AST_FLOAT || kind == AST_NAME;
}

/* What is given by a number has the type of what else is given: that comes first. */
static void order_given(Kern *k, StepsName *v, AstId *statement)
{
    uint32_t typed = 0;
    while (typed < v->n_given &&
           is_literal(k, kern_node(k, k->body->child[v->given[typed].statement])->child[1])) {
        typed++;
    }
    if (typed == 0 || typed == v->n_given) {
        return;
    }
    uint32_t a = v->given[0].statement, b = v->given[typed].statement;
    AstId first = k->body->child[a];
    k->body->child[a] = statement[a] = k->body->child[b];
    k->body->child[b] = statement[b] = first;
    v->given[0].statement = b;
    v->given[typed].statement = a;
}

static void rewrite_given(Kern *k, StepsName *v, AstId *statement)
{
    for (uint32_t i = 0; i < v->n_given; i++) {
        StepsGiven *g = &v->given[i];
        const AstNode s = *kern_node(k, k->body->child[g->statement]);
        const AstNode left = *kern_node(k, s.child[0]);
        g->text = written(k, left.child[v->axis]);
        g->name = hidden_name(k, v->name, g->text);
        const AstNode *own = kern_node(k, k->body->child[v->statement]);
        AstId type = s.n > 2 ? s.child[2] : own->n > 2 ? own->child[2] : 0;
        AstId child[3] = {without_axis(k, &left, v->axis, g->name), s.child[1], type};
        statement[g->statement] = copy_node(k, &s, child, type != 0 ? 3 : 2, s.name);
    }
}

bool steps_scan(Kern *k, AstNode *body)
{
    map_init(&k->steps_of, k->c->arena);
    for (uint32_t s = 0; s < body->n; s++) {
        const AstNode *left = left_of(k, s);
        if (left != NULL && left_is_plain(k, left)) {
            scan_reads(k, s, kern_node(k, body->child[s])->child[1]);
        }
    }
    if (k->steps_names.n == 0) {
        return true;
    }
    AstId *statement = ARENA_ARRAY(k->c->arena, body->n, AstId);
    memcpy(statement, body->child, body->n * sizeof *statement);
    find_groups(k);
    for (uint32_t v = 0; v < k->steps_names.n; v++) {
        const StepsName *of = &k->steps_names.at[v];
        if (of->mixed) {
            steps_refuse_mixed(k, of);
        }
    }
    for (uint32_t g = 0; g < k->steps_groups.n && !k->steps_wrong; g++) {
        find_members(k, &k->steps_groups.at[g]);
        name_members(k, &k->steps_groups.at[g]);
    }
    for (uint32_t g = 0; g < k->steps_groups.n && !k->steps_wrong; g++) {
        rewrite_group(k, &k->steps_groups.at[g], statement);
    }
    for (uint32_t v = 0; v < k->steps_names.n && !k->steps_wrong; v++) {
        if (check_given(k, &k->steps_names.at[v])) {
            order_given(k, &k->steps_names.at[v], statement);
            rewrite_given(k, &k->steps_names.at[v], statement);
        } else {
            k->steps_wrong = true;
        }
    }
    body->child = statement;
    return !k->steps_wrong;
}
