/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a kernel's head (text.c) as a plan. What is read may be anything: all numbers are checked. */
#include <string.h>

#include "dist/parts.h"

/* Leaves of a cut: each is a call. */
#define LEAVES_MOST 65536

typedef struct Reader {
    DumpReader in;
    const DistHead *head;
    DistPlan *plan;
    VEC(Sym) axes;
    VEC(bool) made; /* [values] a step before has given it */
    bool *written;  /* [args] */
} Reader;

static bool refuse(Reader *r, Span at, const char *what)
{
    return dump_refuse(r->in.ctx, at, "of a plan for ranks: %s", what);
}

/* ---- layouts ---- */

static bool axis_number(Reader *r, Span at, Sym name, uint32_t *out)
{
    for (*out = 0; *out < r->axes.n; ++*out) {
        if (r->axes.at[*out] == name) {
            return true;
        }
    }
    bool mixed = r->axes.n > 0 && (name == NULL || r->axes.at[0] == NULL);
    if (mixed || r->axes.n == DIST_AXES) {
        return mixed ? refuse(r, at, "an axis without a name is the only one")
                     : refuse(r, at, "too many axes");
    }
    vec_push(r->in.arena, &r->axes, name);
    return true;
}

static DistArg *find_arg(Reader *r, Span at, Sym name)
{
    const DistArg *arg = arg_named(r->plan, name);
    if (arg == NULL) {
        (void)refuse(r, at, "there is no such argument");
    }
    return (DistArg *)arg;
}

static bool read_piece(Reader *r, const Term *t, const struct DistHeadArg *of, DistPiece *piece)
{
    Sym axis = t->kind == TERM_CALL ? t->text : NULL;
    const Term *dim = t->kind == TERM_CALL ? (t->n == 1 ? t->child[0] : NULL) : t;
    if (dim == NULL || dim->kind != TERM_INT || dim->value < 0 ||
        dim->value >= (int64_t)of->rank) {
        return refuse(r, t->span, "a dimension by number is expected here");
    }
    piece->dim = (uint32_t)dim->value;
    piece->leaves = LEAVES_ROWS;
    return axis_number(r, t->span, axis, &piece->axis);
}

/* `@A shard(r(0), c(1)) partial` */
static bool read_layout(Reader *r, Cursor *c)
{
    Span at = cursor_place(c);
    const Term *name = cursor_expect(c, TERM_AT, NULL, "an argument");
    DistArg *arg = name == NULL ? NULL : find_arg(r, at, name->text);
    if (arg == NULL) {
        return false;
    }
    const Term *shard = cursor_peek(c);
    if (arg->n_pieces > 0 || arg->partial) {
        return refuse(r, at, "one line has all that is said of an argument");
    }
    if (cursor_take(c, TERM_CALL, "shard")) {
        DistPiece *pieces = ARENA_ARRAY(r->in.arena, shard->n, DistPiece);
        for (uint32_t k = 0; k < shard->n; k++) {
            if (!read_piece(r, shard->child[k], &r->head->arg[arg - r->plan->arg],
                            &pieces[k])) {
                return false;
            }
            for (uint32_t i = 0; i < k; i++) {
                if (pieces[i].axis == pieces[k].axis) {
                    return refuse(r, shard->span, "an axis cuts one dimension of a tensor");
                }
            }
        }
        arg->piece = pieces;
        arg->n_pieces = shard->n;
    }
    arg->partial = cursor_take(c, TERM_NAME, "partial");
    return cursor_expect_end(c);
}

static bool read_count(Reader *r, const Term *t, uint32_t *out)
{
    if (t == NULL || t->kind != TERM_INT || t->value < 1 || t->value > LEAVES_MOST) {
        return t != NULL && refuse(r, t->span, "a number of leaves is expected here");
    }
    *out = (uint32_t)t->value;
    return true;
}

/* `@A [64,8]` */
static bool read_leaves(Reader *r, Cursor *c)
{
    Span at = cursor_place(c);
    const Term *name = cursor_expect(c, TERM_AT, NULL, "an argument");
    DistArg *arg = name == NULL ? NULL : find_arg(r, at, name->text);
    const Term *list =
        arg == NULL ? NULL : cursor_expect(c, TERM_LIST, NULL, "numbers in brackets");
    if (list == NULL) {
        return false;
    }
    if (list->n != arg->n_pieces) {
        return refuse(r, list->span, "a number for each cut is expected here");
    }
    for (uint32_t k = 0; k < list->n; k++) {
        if (!read_count(r, list->child[k], &((DistPiece *)arg->piece)[k].leaves)) {
            return false;
        }
    }
    return cursor_expect_end(c);
}

/* Null for `_`, the axis without a name; one that is called so is written `"_"`. */
static Sym axis_name(const Term *t)
{
    return t->kind == TERM_NAME && strcmp(t->text->text, "_") == 0 ? NULL : t->text;
}

/* `[r,c]`, or `[_]` */
static bool read_axes(Reader *r, Cursor *c)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "axes in brackets");
    for (uint32_t k = 0; list != NULL && k < list->n; k++) {
        const Term *t = list->child[k];
        uint32_t number = 0;
        if (t->kind != TERM_NAME && t->kind != TERM_STRING) {
            return refuse(r, t->span, "the name of an axis is expected here");
        }
        if (!axis_number(r, t->span, axis_name(t), &number) || number != k) {
            return number == k ? false : refuse(r, t->span, "axes come first, each once");
        }
    }
    return list != NULL && cursor_expect_end(c);
}

/* ---- cuts and values ---- */

/* Of the grid, whose axes are numbered as cuts name them. */
static bool read_grid_axis(Reader *r, const Term *t, uint32_t *out)
{
    if (t == NULL || t->kind != TERM_INT || t->value < 0 || t->value >= DIST_AXES) {
        return t != NULL &&
               refuse(r, t->span, "an axis of the grid by number is expected here");
    }
    *out = (uint32_t)t->value;
    return true;
}

/* ` with 0`: the only other cut of this axis, alike. */
static bool read_mate(Reader *r, Cursor *c, DistCut *cut)
{
    if (!cursor_take(c, TERM_NAME, "with")) {
        return true;
    }
    const Term *t = cursor_expect(c, TERM_INT, NULL, "a cut by number");
    bool ok = t != NULL && t->value >= 0 && t->value < (int64_t)r->plan->cuts.n &&
              cut->leaves <= LEAVES;
    DistCut *other = ok ? &r->plan->cuts.at[t->value] : NULL;
    for (uint32_t k = 0; k < r->plan->cuts.n; k++) {
        ok = ok && r->plan->cuts.at[k].mate == 0;
    }
    if (!ok || other->axis != cut->axis || other->leaves != cut->leaves ||
        !dim_eq(other->extent, cut->extent)) {
        return t != NULL &&
               refuse(r, t->span, "the first pair of cuts that are alike is expected here");
    }
    cut->mate = (uint32_t)t->value + 1;
    other->mate = r->plan->cuts.n + 1;
    return true;
}

/* ` sliced`, or ` sliced with 0`: a cut of slices, behind the others of its group. */
static bool read_sliced(Reader *r, Cursor *c, DistCut *cut)
{
    uint32_t n = r->plan->cuts.n;
    cut->group = n + 1;
    if (!cursor_take(c, TERM_NAME, "with")) {
        return cut->leaves <= DIST_SLICES || refuse(r, cursor_place(c), "too many slices");
    }
    const Term *t = cursor_expect(c, TERM_INT, NULL, "a cut by number");
    const DistCut *before = n > 0 ? &r->plan->cuts.at[n - 1] : NULL;
    if (t == NULL || before == NULL || t->value < 0 || before->group != t->value + 1 ||
        before->axis != cut->axis) {
        return t != NULL &&
               refuse(r, t->span, "the first cut of the slices before is expected here");
    }
    cut->group = before->group;
    uint64_t leaves = cut->leaves;
    for (uint32_t k = cut->group - 1; k < n && leaves <= DIST_SLICES; k++) {
        leaves *= r->plan->cuts.at[k].leaves;
    }
    return leaves <= DIST_SLICES || refuse(r, t->span, "too many slices");
}

/* `m over 0 in 64` */
static bool read_cut(Reader *r, Cursor *c)
{
    DistCut cut = {0};
    const Term *t = cursor_peek(c);
    c->at += t != NULL ? 1 : 0;
    if (t == NULL || !read_dim(&r->in, t, &cut.extent) ||
        cursor_expect(c, TERM_NAME, "over", "'over'") == NULL) {
        return t != NULL ? false : refuse(r, c->end, "an extent is expected here");
    }
    if (!read_grid_axis(r, cursor_expect(c, TERM_INT, NULL, "an axis by number"), &cut.axis) ||
        cursor_expect(c, TERM_NAME, "in", "'in'") == NULL) {
        return false;
    }
    const Term *leaves = cursor_expect(c, TERM_INT, NULL, "a number of leaves");
    if (!read_count(r, leaves, &cut.leaves)) {
        return false;
    }
    bool sliced = cursor_take(c, TERM_NAME, "sliced");
    if (!(sliced ? read_sliced(r, c, &cut) : read_mate(r, c, &cut)) || !cursor_expect_end(c)) {
        return false;
    }
    if (cut.axis > r->plan->n_grid) {
        return refuse(r, leaves->span, "axes of the grid are numbered in order");
    }
    r->plan->n_grid += cut.axis == r->plan->n_grid ? 1 : 0;
    vec_push(r->in.arena, &r->plan->cuts, cut);
    return true;
}

/* `[n] over [c] costs 145` */
static bool read_other(Reader *r, Cursor *c)
{
    const Term *dims = cursor_expect(c, TERM_LIST, NULL, "extents in brackets");
    const Term *axes = dims == NULL || cursor_expect(c, TERM_NAME, "over", "'over'") == NULL
                           ? NULL
                           : cursor_expect(c, TERM_LIST, NULL, "axes in brackets");
    const Term *cost = axes == NULL || cursor_expect(c, TERM_NAME, "costs", "'costs'") == NULL
                           ? NULL
                           : cursor_expect(c, TERM_INT, NULL, "a number of percent");
    DistOther other = {0};
    if (cost == NULL || !read_count(r, cost, &other.percent) || !cursor_expect_end(c)) {
        return false;
    }
    if (dims->n != axes->n || dims->n > DIST_CUTS) {
        return refuse(r, axes->span, "each cut has an extent and an axis");
    }
    DistCut *cut = ARENA_ARRAY(r->in.arena, DIST_CUTS, DistCut);
    for (uint32_t k = 0; k < dims->n; k++) {
        if (!read_dim(&r->in, dims->child[k], &cut[k].extent) ||
            !read_grid_axis(r, axes->child[k], &cut[k].axis)) {
            return false;
        }
    }
    other.n_cuts = dims->n;
    other.cut = cut;
    vec_push(r->in.arena, &r->plan->others, other);
    return true;
}

static bool read_cut_number(Reader *r, const Term *t, int32_t *out)
{
    *out = -1;
    if (t->kind == TERM_NAME && strcmp(t->text->text, "_") == 0) {
        return true;
    }
    if (t->kind != TERM_INT || t->value < 0 || t->value >= (int64_t)r->plan->cuts.n) {
        return refuse(r, t->span, "a cut by number, or '_', is expected here");
    }
    *out = (int32_t)t->value;
    return true;
}

static bool same_axis(const Reader *r, uint32_t a, uint32_t b)
{
    return r->plan->cuts.at[a].axis == r->plan->cuts.at[b].axis;
}

static bool same_group(const Reader *r, uint32_t a, uint32_t b)
{
    return r->plan->cuts.at[a].group > 0 &&
           r->plan->cuts.at[a].group == r->plan->cuts.at[b].group;
}

/* Do cuts of slices stand behind each other, all of a group? */
static bool has_slices_whole(const Reader *r, uint32_t n, const uint32_t *numbers)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t cut = numbers[k], next = cut + 1;
        bool more = next < r->plan->cuts.n && same_group(r, cut, next);
        bool first = r->plan->cuts.at[cut].group == cut + 1;
        bool sliced = r->plan->cuts.at[cut].group > 0;
        if ((sliced && !first && (k == 0 || numbers[k - 1] + 1 != cut)) ||
            (more && (k + 1 == n || numbers[k + 1] != next))) {
            return false;
        }
    }
    return true;
}

/* `over [0,1]`: different cuts. */
static bool read_over(Reader *r, Cursor *c, uint32_t *n, const uint32_t **over)
{
    const Term *list = cursor_expect(c, TERM_NAME, "over", "'over'") == NULL
                           ? NULL
                           : cursor_expect(c, TERM_LIST, NULL, "cuts in brackets");
    if (list == NULL) {
        return false;
    }
    uint32_t *numbers = ARENA_ARRAY(r->in.arena, list->n, uint32_t);
    for (uint32_t k = 0; k < list->n; k++) {
        int32_t cut = -1;
        if (!read_cut_number(r, list->child[k], &cut)) {
            return false;
        }
        bool again = cut < 0;
        for (uint32_t i = 0; i < k; i++) {
            again |= numbers[i] == (uint32_t)cut;
        }
        if (again) {
            return refuse(r, list->span, "each cut once is expected here");
        }
        numbers[k] = (uint32_t)cut;
    }
    if (list->n > DIST_CUTS || !has_slices_whole(r, list->n, numbers)) {
        return refuse(r, list->span, "cuts of slices come together, in order");
    }
    for (uint32_t k = 0; k < list->n; k++) {
        uint32_t mate = r->plan->cuts.at[numbers[k]].mate;
        bool there = mate == 0;
        for (uint32_t i = 0; i < list->n; i++) {
            there |= numbers[i] + 1 == mate;
            if (i != k && numbers[i] + 1 != mate && !same_group(r, numbers[i], numbers[k]) &&
                same_axis(r, numbers[i], numbers[k])) {
                return refuse(r, list->span, "ranks have leaves of the diagonal only");
            }
        }
        if (!there) {
            return refuse(r, list->span, "cuts that are dealt as pairs come together");
        }
    }
    *n = list->n;
    *over = numbers;
    return true;
}

static bool has_axis_of_over(const Reader *r, const DistValue *v)
{
    for (uint32_t i = 0; i < v->n_over; i++) {
        for (uint32_t d = 0; d < v->rank; d++) {
            if (v->cut[d] >= 0 && same_axis(r, v->over[i], (uint32_t)v->cut[d])) {
                return true;
            }
        }
    }
    return false;
}

static bool can_spread(Reader *r, const Term *dim, DistValue *v)
{
    bool ok = dim->value >= 0 && dim->value < (int64_t)v->rank && v->n_over > 0 &&
              !has_axis_of_over(r, v);
    for (uint32_t i = 0; ok && i < v->n_over; i++) {
        ok = r->plan->cuts.at[v->over[i]].mate == 0;
    }
    v->spread = ok ? (uint32_t)dim->value : 0;
    return ok ||
           refuse(r, dim->span, "a dimension is spread over axes that do not cut the value");
}

/* `%2 : f64[m] cut [0] fold reduce.sum over [1]`, `%3 : f64[m,n] cut [0,1] spread 0 over [2]` */
static bool read_value(Reader *r, Cursor *c)
{
    const Term *number = cursor_expect(c, TERM_VALUE, NULL, "a value");
    DistValue v = {.fold = OP_COPY};
    if (number == NULL || cursor_expect(c, TERM_PUNCT, ":", "':'") == NULL ||
        !read_type(&r->in, c, &v.dtype, &v.rank, &v.shape) ||
        cursor_expect(c, TERM_NAME, "cut", "'cut'") == NULL) {
        return false;
    }
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "cuts in brackets");
    if (list == NULL || list->n != v.rank || number->value != (int64_t)r->plan->values.n) {
        return list != NULL &&
               refuse(r, list->span,
                      "values are numbered in order, and each dimension has a cut or '_'");
    }
    int32_t *cut = ARENA_ARRAY(r->in.arena, v.rank, int32_t);
    for (uint32_t d = 0; d < v.rank; d++) {
        if (!read_cut_number(r, list->child[d], &cut[d])) {
            return false;
        }
        if (cut[d] >= 0 && !dim_eq(r->plan->cuts.at[cut[d]].extent, v.shape[d])) {
            return refuse(r, list->child[d]->span, "the cut is of another extent");
        }
    }
    v.cut = cut;
    if (cursor_take(c, TERM_NAME, "spread")) {
        const Term *dim = cursor_expect(c, TERM_INT, NULL, "a dimension by number");
        if (dim == NULL || !read_over(r, c, &v.n_over, &v.over) || !can_spread(r, dim, &v)) {
            return false;
        }
    } else if (cursor_take(c, TERM_NAME, "fold")) {
        const Term *op = cursor_expect(c, TERM_NAME, NULL, "a reduction");
        if (op == NULL || !op_from_name((Str){op->text->text, op->text->n}, &v.fold) ||
            op_info(v.fold)->kind != OPKIND_REDUCE) {
            return op != NULL && refuse(r, op->span, "a reduction is expected here");
        }
        if (!read_over(r, c, &v.n_over, &v.over)) {
            return false;
        }
        for (uint32_t i = 0; i < v.n_over; i++) {
            if (r->plan->cuts.at[v.over[i]].mate > 0 && v.fold != OP_SUM) {
                return refuse(r, op->span, "over pairs there are sums");
            }
        }
        if (has_axis_of_over(r, &v)) {
            return refuse(r, op->span, "terms are not of the same positions on all ranks");
        }
    }
    vec_push(r->in.arena, &r->plan->values, v);
    vec_push(r->in.arena, &r->made, false);
    return cursor_expect_end(c);
}

/* ---- steps ---- */

/* A value that is there already, or is not yet. */
static bool read_ref(Reader *r, const Term *t, bool made, uint32_t *out)
{
    if (t == NULL || t->kind != TERM_VALUE || t->value >= (int64_t)r->plan->values.n ||
        r->made.at[t->value] != made) {
        return t != NULL && refuse(r, t->span,
                                   made ? "a value that is there is expected here"
                                        : "a value that is not there yet is expected here");
    }
    *out = (uint32_t)t->value;
    r->made.at[t->value] = true;
    return true;
}

static const Term *next(Cursor *c, TermKind kind, const char *what)
{
    return cursor_expect(c, kind, NULL, what);
}

/* Is the value the argument: of its type and shape, and complete? */
static bool fits(Reader *r, Span at, uint32_t arg, const DistValue *v)
{
    const struct DistHeadArg *a = &r->head->arg[arg];
    bool same = a->dtype == v->dtype && a->rank == v->rank && v->fold == OP_COPY;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = dim_eq(a->shape[d], v->shape[d]);
    }
    return same || refuse(r, at, "the value is not like the argument");
}

/* Is the cut none of slices, or the only one of its group? */
static bool is_alone(const Reader *r, uint32_t cut)
{
    bool alone = true;
    for (uint32_t k = 0; k < r->plan->cuts.n; k++) {
        alone = alone && (k == cut || !same_group(r, k, cut));
    }
    return alone;
}

/* Along two dimensions over one axis: a rank has what others have not, but nobody has all. */
static bool has_cut_twice(const Reader *r, const DistValue *v)
{
    for (uint32_t d = 0; d < v->rank; d++) {
        if (v->cut[d] >= 0 &&
            (r->plan->cuts.at[v->cut[d]].mate > 0 || !is_alone(r, (uint32_t)v->cut[d]))) {
            return true; /* what is dealt as pairs or slices has blocks that meet */
        }
        for (uint32_t e = 0; e < d; e++) {
            if (v->cut[d] >= 0 && v->cut[e] >= 0 &&
                same_axis(r, (uint32_t)v->cut[d], (uint32_t)v->cut[e])) {
                return true;
            }
        }
    }
    return false;
}

static bool read_transfer(Reader *r, Cursor *c, bool write)
{
    DistStep s = {.kind = write ? DIST_WRITE : DIST_READ};
    const Term *value = write ? next(c, TERM_VALUE, "a value") : NULL;
    if ((write && (value == NULL || cursor_expect(c, TERM_PUNCT, "->", "'->'") == NULL))) {
        return false;
    }
    const Term *t = next(c, TERM_AT, "an argument");
    DistArg *arg = t == NULL ? NULL : find_arg(r, t->span, t->text);
    if (arg == NULL) {
        return false;
    }
    if (!write) {
        value = cursor_expect(c, TERM_PUNCT, "->", "'->'") == NULL
                    ? NULL
                    : next(c, TERM_VALUE, "a value");
    }
    s.arg = (uint32_t)(arg - r->plan->arg);
    bool ok = read_ref(r, value, write, &s.value);
    if (ok && !write && cursor_take(c, TERM_NAME, "by")) {
        ok = cursor_expect(c, TERM_NAME, "leaf", "'leaf'") != NULL;
        s.by_leaf = ok;
    }
    if (!ok || !cursor_expect_end(c) ||
        !fits(r, t->span, s.arg, &r->plan->values.at[s.value])) {
        return false;
    }
    if (!write && r->plan->values.at[s.value].n_over > 0) {
        return refuse(r, t->span, "what is read is not spread");
    }
    if (write && has_cut_twice(r, &r->plan->values.at[s.value])) {
        return refuse(r, t->span, "the value has blocks of the diagonal only");
    }
    if (write ? r->written[s.arg] : arg->result) {
        return refuse(r, t->span, "a parameter is read, and an argument is written once");
    }
    r->written[s.arg] |= write;
    vec_push(r->in.arena, &r->plan->steps, s);
    return true;
}

static bool read_reduce(Reader *r, Cursor *c)
{
    DistStep s = {.kind = DIST_REDUCE};
    const Term *from = next(c, TERM_VALUE, "a value");
    if (!read_ref(r, from, true, &s.value) ||
        cursor_expect(c, TERM_PUNCT, "->", "'->'") == NULL ||
        !read_ref(r, next(c, TERM_VALUE, "a value"), false, &s.complete)) {
        return false;
    }
    const DistValue *v = &r->plan->values.at[s.value], *to = &r->plan->values.at[s.complete];
    bool same = v->fold != OP_COPY && to->fold == OP_COPY && v->dtype == to->dtype &&
                v->rank == to->rank;
    for (uint32_t d = 0; same && d < v->rank; d++) {
        same = v->cut[d] == to->cut[d] && dim_eq(v->shape[d], to->shape[d]);
    }
    for (uint32_t i = 0; same && i < to->n_over; i++) {
        same = to->n_over == v->n_over && to->over[i] == v->over[i];
    }
    if (!same) {
        return refuse(r, from->span, "a partial value becomes a complete one of its type");
    }
    vec_push(r->in.arena, &r->plan->steps, s);
    return cursor_expect_end(c);
}

static bool read_local_dims(Reader *r, const Term *list, DistStep *s)
{
    Dim *dim = ARENA_ARRAY(r->in.arena, list->n, Dim);
    int32_t *block = ARENA_ARRAY(r->in.arena, list->n, int32_t);
    for (uint32_t k = 0; k < list->n; k++) {
        const Term *t = list->child[k];
        bool call = t->kind == TERM_CALL && strcmp(t->text->text, "block") == 0 && t->n == 1;
        block[k] = -1;
        if (call ? !read_cut_number(r, t->child[0], &block[k])
                 : !read_dim(&r->in, t, &dim[k])) {
            return false;
        }
        if (call && block[k] < 0) {
            return refuse(r, t->span, "a cut is expected here");
        }
    }
    s->n_dims = list->n;
    s->dim = dim;
    s->block = block;
    return true;
}

/* Has each leaf of the step, which are those of one cut of slices, a part of the value? */
static bool owns_leaves(const Reader *r, const DistStep *s, const DistValue *v)
{
    bool owns = false;
    for (uint32_t d = 0; s->n_over == 1 && v->n_over == 0 && d < v->rank; d++) {
        owns |= v->cut[d] == (int32_t)s->over[0] && r->plan->cuts.at[s->over[0]].group > 0;
    }
    return owns;
}

/* Values that are there are arguments that are read, the others results: these are partial over the leaves of the step. */
static bool read_local_values(Reader *r, const Term *list, DistStep *s)
{
    uint32_t *values = ARENA_ARRAY(r->in.arena, list->n, uint32_t);
    bool result = false;
    for (uint32_t k = 0; k < list->n; k++) {
        const Term *t = list->child[k];
        if (t->kind == TERM_VALUE && t->value < (int64_t)r->plan->values.n &&
            !r->made.at[t->value]) {
            result = true;
        }
        if (!read_ref(r, t, !result, &values[k])) {
            return false;
        }
        const DistValue *v = &r->plan->values.at[values[k]];
        if (result && v->fold == OP_COPY && owns_leaves(r, s, v)) {
            continue;
        }
        bool fits = v->n_over == (result ? s->n_over : 0) &&
                    (v->fold != OP_COPY) == (result && s->n_over > 0);
        for (uint32_t i = 0; fits && i < v->n_over; i++) {
            fits = v->over[i] == s->over[i];
        }
        for (uint32_t d = 0; result && fits && d < v->rank; d++) {
            for (uint32_t i = 0; i < s->n_over; i++) {
                fits = fits && v->cut[d] != (int32_t)s->over[i];
            }
        }
        if (!fits) {
            return refuse(
                r, t->span,
                "results are partial over the cuts of the leaves, arguments complete");
        }
    }
    s->n_values = list->n;
    s->values = values;
    return true;
}

/* `gemm_part0 dims [...] values [...] over [...]` */
static bool read_local(Reader *r, Cursor *c)
{
    DistStep s = {.kind = DIST_LOCAL};
    s.kernel = cursor_name(c, "a local kernel");
    if (s.kernel == NULL || cursor_expect(c, TERM_NAME, "dims", "'dims'") == NULL) {
        return false;
    }
    const Term *dims = next(c, TERM_LIST, "dims in brackets");
    if (dims == NULL || !read_local_dims(r, dims, &s) ||
        cursor_expect(c, TERM_NAME, "values", "'values'") == NULL) {
        return false;
    }
    const Term *values = next(c, TERM_LIST, "values in brackets");
    if (values == NULL || !read_over(r, c, &s.n_over, &s.over) ||
        !read_local_values(r, values, &s) || !cursor_expect_end(c)) {
        return false;
    }
    vec_push(r->in.arena, &r->plan->steps, s);
    return true;
}

/* ---- lines ---- */

static bool read_line(Reader *r, const DumpLine *line)
{
    Cursor c = cursor_line(r->in.ctx, line);
    bool steps = r->plan->steps.n > 0;
    if (cursor_take(&c, TERM_NAME, "axes")) {
        return read_axes(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "leaves")) {
        return read_leaves(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "cut")) {
        return read_cut(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "instead")) {
        return read_other(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "value")) {
        return !steps ? read_value(r, &c) : refuse(r, line->span, "values come before steps");
    }
    if (cursor_take(&c, TERM_NAME, "read")) {
        return read_transfer(r, &c, false);
    }
    if (cursor_take(&c, TERM_NAME, "write")) {
        return read_transfer(r, &c, true);
    }
    if (cursor_take(&c, TERM_NAME, "reduce")) {
        return read_reduce(r, &c);
    }
    if (cursor_take(&c, TERM_NAME, "local")) {
        return read_local(r, &c);
    }
    return read_layout(r, &c);
}

/* Lines of a kernel's head, joined, as a text of their own. */
static const DumpTree *lines_tree(Ctx *ctx, Arena *arena, const TextLines *lines)
{
    Text text;
    text_init(&text, &ctx->arena); /* messages show it when all is over */
    for (uint32_t k = 0; k < lines->n; k++) {
        text_put(&text, lines->at[k]);
        text_char(&text, '\n');
    }
    uint32_t source = source_add(&ctx->sources, "ranks", text_str(&text), (Span){0, 0, 0});
    return dump_tree_read(ctx, arena, source);
}

static bool is_whole(Reader *r)
{
    bool planned = r->plan->steps.n > 0;
    for (uint32_t k = 0; planned && k < r->head->n_args; k++) {
        if (r->head->arg[k].result && !r->written[k]) {
            return refuse(r, r->head->span, "a result is not written");
        }
    }
    for (uint32_t s = 0; s < r->plan->steps.n; s++) {
        if (r->plan->steps.at[s].by_leaf && !can_read_by_leaf(r->plan, &r->plan->steps.at[s])) {
            return refuse(
                r, r->head->span,
                "what is read leaf by leaf is read by one step for the leaves of a cut");
        }
    }
    return true;
}

DistPlan *dist_read(Ctx *ctx, Arena *arena, const DistHead *head, const TextLines *lines)
{
    Reader r = {.head = head, .plan = ARENA_NEW(arena, DistPlan)};
    const DumpTree *tree = lines_tree(ctx, arena, lines);
    if (tree == NULL) {
        return NULL;
    }
    dump_reader_init(&r.in, ctx, arena);
    DimTable dims = *head->dims;
    dump_reader_kernel(&r.in, &dims);
    for (uint32_t d = 0; d < dims.list.n; d++) {
        map_put(&r.in.dim_number, dims.list.at[d].name->id, d);
    }
    DistArg *arg = ARENA_ARRAY(arena, (size_t)head->n_args + 1, DistArg);
    r.written = ARENA_ARRAY(arena, (size_t)head->n_args + 1, bool);
    for (uint32_t k = 0; k < head->n_args; k++) {
        arg[k] = (DistArg){.name = head->arg[k].name, .result = head->arg[k].result};
    }
    r.plan->arg = arg;
    r.plan->n_args = head->n_args;
    for (uint32_t k = 0; k < tree->n; k++) {
        if (!read_line(&r, tree->line[k])) {
            return NULL;
        }
    }
    r.plan->axis = r.axes.at;
    r.plan->n_axes = r.axes.n;
    return is_whole(&r) ? r.plan : NULL;
}
