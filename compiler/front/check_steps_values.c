/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences while statements are checked: types and extents that a value has from what it begins with, the values that a step reads of
 * those before, and what the graph is told in the end. */
#include "front/check_names.h"

#include <string.h>

static bool value_of(Kern *k, Sym name, uint32_t *value)
{
    return name != NULL && map_get(&k->value_by_name, name->id, value) &&
           k->k->values.at[*value].type.dtype != DTYPE_NONE;
}

static const TensorType *type_of_name(Kern *k, Sym name)
{
    uint32_t value = 0;
    return value_of(k, name, &value) ? &k->k->values.at[value].type : NULL;
}

/* The wider of two types that numbers of an expression have: complex before floats before integers. */
static DType wider(DType x, DType y)
{
    int of_x = dtype_is_complex(x) ? 3 : dtype_is_float(x) ? 2 : dtype_is_int(x) ? 1 : 0;
    int of_y = dtype_is_complex(y) ? 3 : dtype_is_float(y) ? 2 : dtype_is_int(y) ? 1 : 0;
    bool larger = of_y > of_x || (of_y == of_x && dtype_bytes(y) > dtype_bytes(x));
    return x == DTYPE_NONE || (y != DTYPE_NONE && larger) ? y : x;
}

/* What gives numbers of one type, whatever it is of; DTYPE_NONE: of its operands'. */
static DType type_of_call(const AstNode *n)
{
    static const char *const positions[] = {"argmax", "argmin", "count", "index", "extent"};
    DType t = DTYPE_NONE;
    bool call = (n->kind == AST_CALL || n->kind == AST_REDUCE) && n->name != NULL;
    if (call && !dtype_from_name(str_from(n->name->text), &t)) {
        for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
            t = strcmp(n->name->text, positions[i]) == 0 ? DTYPE_I64 : t;
        }
    }
    return t;
}

/* Of what a step reads, but for positions; DTYPE_NONE: nothing of it is known yet. */
static DType type_in(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    const TensorType *type =
        n.kind == AST_INDEXED || n.kind == AST_NAME ? type_of_name(k, n.name) : NULL;
    DType found = type == NULL || type->dtype == DTYPE_BOOL ? type_of_call(&n)
                                                            : dtype_computes(type->dtype);
    bool whole = found != DTYPE_NONE || n.kind == AST_INDEXED || n.kind == AST_COMPARE;
    for (uint32_t c = 0; c < n.n && !whole; c++) {
        found = wider(found, type_in(k, n.child[c]));
    }
    return found;
}

/* A number that is written has the type of what the steps read. */
static DType type_of_number(Kern *k, const StepsName *of)
{
    AstKind begins =
        kern_node(k, kern_node(k, k->body->child[of->given[0].statement])->child[1])->kind;
    DType t = begins == AST_INT || begins == AST_FLOAT
                  ? type_in(k, kern_node(k, k->body->child[of->statement])->child[1])
                  : DTYPE_NONE;
    return begins == AST_FLOAT && t != DTYPE_NONE && dtype_is_int(t) ? DTYPE_NONE : t;
}

DType steps_type(Kern *k, Sym name)
{
    for (uint32_t v = 0; v < k->steps_names.n; v++) {
        const StepsName *of = &k->steps_names.at[v];
        bool has = of->name == name;
        const TensorType *type = type_of_name(k, of->name);
        for (uint32_t i = 0; i < of->n_given; i++) {
            has = has || of->given[i].name == name;
            type = type == NULL ? type_of_name(k, of->given[i].name) : type;
        }
        if (has && type != NULL) {
            return type->dtype;
        }
        if (has && of->n_given > 0) {
            return type_of_number(k, of);
        }
    }
    return DTYPE_NONE;
}

bool steps_index(Kern *k, Sym name)
{
    bool is = false;
    for (uint32_t g = 0; g < k->steps_groups.n && !is; g++) {
        const StepsMember *m = steps_member(&k->steps_groups.at[g], k->statement);
        is = m != NULL && m->index == name;
    }
    return is;
}

bool steps_shift(Kern *k, Affine x, Affine *low, Affine *high)
{
    for (uint32_t g = 0; g < k->steps_groups.n; g++) {
        StepsGroup *group = &k->steps_groups.at[g];
        const StepsMember *m = steps_member(group, k->statement);
        uint32_t label = 0;
        if (m == NULL || !map_get(&k->s.label_by_name, m->index->id, &label) || label == 0) {
            continue;
        }
        int64_t coef = affine_coef(x, label - 1);
        for (uint32_t v = 0; v < k->steps_names.n && coef != 0; v++) {
            const StepsName *of = &k->steps_names.at[v];
            if (of->statement < group->first || of->statement > group->last ||
                of->n_first == 0) {
                continue;
            }
            int64_t by = of->n_first * (of->backward ? -coef : coef);
            *low = affine_add(k->c->arena, x, 1, affine_const(by > 0 ? by : 0));
            *high = affine_add(k->c->arena, x, 1, affine_const(by < 0 ? by : 0));
            return true;
        }
    }
    return false;
}

/* The extent of the step in what the expression reads at its index. */
static bool extent_in(Kern *k, AstId id, Sym index, Dim *out)
{
    const AstNode n = *kern_node(k, id);
    const TensorType *type = n.kind == AST_INDEXED ? type_of_name(k, n.name) : NULL;
    for (uint32_t a = 1; type != NULL && a < n.n; a++) {
        if (steps_index_alone(k, n.child[a]) == index && a - 1 < type->rank) {
            *out = type->dims[a - 1];
            return true;
        }
    }
    bool found = false;
    for (uint32_t c = 0; c < n.n && !found; c++) {
        found = extent_in(k, n.child[c], index, out);
    }
    return found;
}

static bool extent_known(Kern *k, Sym target, Sym index, uint32_t axis, Dim *out)
{
    for (uint32_t v = 0; v < k->steps_names.n; v++) { /* of what is given, from the value */
        const StepsName *of = &k->steps_names.at[v];
        const TensorType *type = type_of_name(k, of->name);
        for (uint32_t i = 0; i < of->n_given && type != NULL; i++) {
            uint32_t d = axis + 1 < of->axis ? axis : axis + 1;
            if (of->given[i].name == target && d < type->rank) {
                *out = type->dims[d];
                return true;
            }
        }
    }
    for (uint32_t g = 0; g < k->steps_groups.n && steps_index(k, index); g++) {
        StepsGroup *group = &k->steps_groups.at[g];
        for (uint32_t m = 0; steps_member(group, k->statement) != NULL && m < group->members.n;
             m++) {
            const StepsMember *of = &group->members.at[m];
            const TensorType *type = type_of_name(k, of->name);
            if (type != NULL && of->axis - 1 < type->rank) {
                *out = type->dims[of->axis - 1];
                return true;
            }
            const AstNode *s = kern_node(k, k->body->child[of->statement]);
            if (extent_in(k, s->child[1], of->index, out)) {
                return true;
            }
        }
    }
    return false;
}

void steps_bind(Kern *k, Sym target, uint32_t axis, int32_t label)
{
    Label *l = &k->s.labels.at[label];
    if (target != NULL && l->name != NULL && !extent_is_known(k, (uint32_t)label)) {
        l->given = extent_known(k, target, l->name, axis, &l->extent);
    }
}

static const StepsPlace *place_new(Kern *k, const StepsName *v, const char *text, int64_t by)
{
    StepsPlace *p = ARENA_NEW(k->c->arena, StepsPlace);
    *p = (StepsPlace){v->name, v->axis - 1, by, text};
    return p;
}

/* The given positions have values by now: what the steps before the first have left is like them. */
static void begin_name(Kern *k, StepsName *v)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < v->n_given; i++) {
        uint32_t value = 0;
        if (value_of(k, v->given[i].name, &value)) {
            k->k->values.at[value].uses++;
            k->k->values.at[value].place = place_new(k, v, v->given[i].text, 0);
        }
    }
    const StepsGiven *like = &v->given[0];
    bool known = value_of(k, like->name, &first); /* else it was refused */
    const Value none = {.span = v->at}, *begin = known ? &k->k->values.at[first] : &none;
    TensorType type = begin->type;
    Span span = begin->span;
    for (uint32_t lag = 1; lag <= v->n_lags; lag++) {
        if (v->read[lag - 1]) {
            (void)value_new(
                k, (Value){.kind = VALUE_LOCAL,
                           .name = v->prior[lag - 1],
                           .type = type,
                           .span = span,
                           .declared = true,
                           .assigned = true,
                           .updated = true,
                           .uses = 1,
                           .place = place_new(k, v, NULL, v->backward ? lag : -(int64_t)lag)});
        }
    }
}

void steps_begin(Kern *k)
{
    for (uint32_t g = 0; g < k->steps_groups.n; g++) {
        StepsGroup *group = &k->steps_groups.at[g];
        if (group->first != k->statement) {
            continue;
        }
        group->statements = k->k->statements.n;
        for (uint32_t v = 0; v < k->steps_names.n; v++) {
            StepsName *of = &k->steps_names.at[v];
            if (of->statement >= group->first && of->statement <= group->last) {
                begin_name(k, of);
            }
        }
    }
}

/* Are the value's dimensions, but for the step's, those of what it begins with? */
static bool begins_alike(Kern *k, const StepsName *v, uint32_t value)
{
    const Value *own = &k->k->values.at[value];
    for (uint32_t i = 0; i < v->n_given; i++) {
        uint32_t given = 0;
        if (!value_of(k, v->given[i].name, &given)) {
            return false;
        }
        const TensorType *t = &k->k->values.at[given].type;
        bool same = t->rank + 1 == own->type.rank && t->dtype == own->type.dtype;
        for (uint32_t d = 0; same && d < t->rank; d++) {
            same = dim_eq(t->dims[d], own->type.dims[d + 1 < v->axis ? d : d + 1]);
        }
        if (!same) {
            Diagnostic *d = diag_error(
                &k->c->ctx->diags, E_EXTENT_MISMATCH, own->span,
                "recurrence of '%s': a step has the shape %s, and %s[%s] begins with %s",
                own->name->text, shape_text(k->c->arena, &k->k->dims, &own->type),
                own->name->text, v->given[i].text, shape_text(k->c->arena, &k->k->dims, t));
            mark_other(k->c, d, k->k->values.at[given].span, "what it begins with");
            return false;
        }
    }
    return true;
}

static bool end_member(Kern *k, const StepsMember *m, CheckedSteps *steps, CheckedState *out)
{
    StepsName *v = steps_named(k, m->name);
    uint32_t value = 0;
    if (!value_of(k, m->name, &value)) {
        return false;
    }
    k->k->values.at[value].step = m->axis;
    k->k->values.at[value].uses += v != NULL && v->n_lags > 0; /* by other steps */
    Dim extent = k->k->values.at[value].type.dims[m->axis - 1];
    if (steps->n > 0 && !dim_eq(extent, steps->extent)) {
        Arena *a = k->c->arena;
        return diag_refuse(&k->c->ctx->diags, E_EXTENT_MISMATCH, k->k->values.at[value].span,
                           "recurrence along '%s': '%s' has %s steps, and others have %s",
                           m->index->text, m->name->text, dim_text(a, &k->k->dims, extent),
                           dim_text(a, &k->k->dims, steps->extent));
    }
    steps->extent = extent;
    *out = (CheckedState){.value = value, .dim = m->axis - 1};
    if (v == NULL || v->statement != m->statement) {
        return true;
    }
    uint32_t *prior = ARENA_ARRAY(k->c->arena, v->n_lags, uint32_t);
    uint32_t n_given = v->n_first > 0 ? v->n_first : v->n_lags;
    uint32_t *given = ARENA_ARRAY(k->c->arena, n_given, uint32_t);
    for (uint32_t lag = 0; lag < v->n_lags; lag++) {
        prior[lag] = UINT32_MAX;
        if (v->read[lag]) {
            (void)map_get(&k->value_by_name, v->prior[lag]->id, &prior[lag]);
        }
    }
    if (!begins_alike(k, v, value)) {
        return false;
    }
    for (uint32_t i = 0; i < n_given; i++) {
        int64_t at = v->n_first > 0 ? (int64_t)i : -(int64_t)i - 1;
        (void)value_of(k, steps_given_at(v, at)->name, &given[i]);
    }
    bool first = steps->n == 0 || steps->n_states == 0;
    if (!first && (steps->given != v->n_first || steps->backward != v->backward)) {
        return diag_refuse(&k->c->ctx->diags, E_RECURRENCE, v->at,
                           "recurrence along '%s': its values begin at different positions",
                           m->index->text);
    }
    steps->given = v->n_first;
    steps->backward = v->backward;
    steps->n_states++;
    out->n_lags = v->n_lags;
    out->prior = prior;
    out->given = given;
    return true;
}

void steps_end(Kern *k)
{
    for (uint32_t g = 0; g < k->steps_groups.n; g++) {
        StepsGroup *group = &k->steps_groups.at[g];
        if (group->last != k->statement || k->wrong) {
            continue;
        }
        CheckedSteps steps = {.first = group->statements, .end = k->k->statements.n};
        CheckedState *state = ARENA_ARRAY(k->c->arena, group->members.n, CheckedState);
        for (uint32_t m = 0; m < group->members.n; m++) {
            if (!end_member(k, &group->members.at[m], &steps, &state[m])) {
                k->wrong = true;
                return;
            }
            steps.n++;
        }
        steps.state = state;
        vec_push(k->c->arena, &k->k->steps, steps);
    }
}
