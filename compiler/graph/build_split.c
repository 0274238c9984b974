/* SPDX-License-Identifier: Apache-2.0 */
/* Values that some statement reads or assigns at h*dh + d have the dimensions n and dh in the graph, in the place of n*dh. So has every value
 * that shares an index with them: where j runs over n*dh it is two indices, and all later stages see labels like any others.
 * Elements stay where they are, as arrays are row-major. Here a checked kernel becomes one in which this has been done. */
#include <string.h>

#include "graph/build_parts.h"
#include "op/factors.h"

/* What a dimension or an index counts as; n is 0 where it stays whole. */
typedef struct Cut {
    uint32_t n;
    const Dim *dim;
} Cut;

typedef struct Splitter {
    Ctx *ctx;
    Arena *arena;
    const CheckedKernel *from;
    CheckedKernel *to;
    Cut **value;        /* [values][rank] */
    Cut **label;        /* [statements][labels] */
    bool **fixed;       /* likewise: it stands in a sum of a position */
    uint32_t statement; /* that is looked at */
    bool numbers;       /* rows of numbers, 8*h + e, count too: nobody has to have them */
    bool any, changed, failed;
    bool *began;     /* of each value: pieces of it have been seen */
    uint32_t *first; /* of each label of the statement: the first that it becomes */
    Label *labels;
} Splitter;

/* A part of a dimension, and the index that alone is the position there; -1: none, or of another extent. */
typedef struct Segment {
    Dim dim;
    int32_t label;
} Segment;

static const CheckedStatement *statement_of(const Splitter *s)
{
    return &s->from->statements.at[s->statement];
}

static void report(Splitter *s, uint32_t value, Span span, const char *what)
{
    const Value *v = &s->from->values.at[value];
    if (!s->failed && !s->numbers) {
        Diagnostic *d = diag_unsupported(
            &s->ctx->diags, E_NOT_YET, span, "%s %s",
            v->name != NULL ? str_format(s->arena, "'%s'", v->name->text) : "the einsum", what);
        diag_help(d, "make the dim that is a factor a number, by dim or -D");
    }
    s->failed = true;
}

/* Other parts of a dimension, or all of it. */
static const char crossing[] =
    "is in rows elsewhere (an index times an open dim), and this goes across them";

/* What it counts as, be it itself. */
static Cut parts_of(Cut cut, const Dim *d)
{
    return cut.n > 0 ? cut : (Cut){1, d};
}

/* The segments of one dimension, and the value's, become the same parts. */
static void meet(Splitter *s, uint32_t value, uint32_t axis, uint32_t n, const Segment *segment,
                 Span span)
{
    Cut *cut = &s->value[value][axis], *labels = s->label[s->statement];
    Cut of_value = parts_of(*cut, &s->from->values.at[value].type.dims[axis]);
    uint32_t most = of_value.n, count = 0;
    for (uint32_t k = 0; k < n; k++) {
        most += segment[k].label >= 0 && labels[segment[k].label].n > 0
                    ? labels[segment[k].label].n
                    : 1;
    }
    if (of_value.n == 1 && most == 2) {
        return;
    }
    Dim *here = ARENA_ARRAY(s->arena, most, Dim), *out = ARENA_ARRAY(s->arena, most, Dim);
    uint32_t *of = ARENA_ARRAY(s->arena, most, uint32_t);
    uint32_t *of_a = ARENA_ARRAY(s->arena, most, uint32_t);
    uint32_t *of_b = ARENA_ARRAY(s->arena, most, uint32_t);
    for (uint32_t k = 0; k < n; k++) {
        Cut c = parts_of(segment[k].label >= 0 ? labels[segment[k].label] : (Cut){0},
                         &segment[k].dim);
        for (uint32_t i = 0; i < c.n; i++) {
            of[count] = k;
            here[count++] = c.dim[i];
        }
    }
    uint32_t found = most;
    if (!dims_refine(s->arena, s->arena, &s->ctx->syms, &s->to->dims, span, of_value.n,
                     of_value.dim, count, here, &found, out, of_a, of_b)) {
        report(s, value, span, crossing);
        return;
    }
    if (found > of_value.n) {
        *cut = (Cut){found, out};
        s->any = s->changed = true;
    }
    for (uint32_t i = 0, end; i < found; i = end) {
        uint32_t k = of[of_b[i]];
        for (end = i + 1; end < found && of[of_b[end]] == k;) {
            end++;
        }
        int32_t l = segment[k].label;
        uint32_t before = l >= 0 && labels[l].n > 0 ? labels[l].n : 1;
        if (end - i > before && (l < 0 || s->fixed[s->statement][l])) {
            report(s, value, span, crossing);
        } else if (end - i > before && s->numbers) {
            s->failed = true; /* a product with one index there is faster than one with two */
        } else if (end - i > before) {
            labels[l] = (Cut){end - i, out + i};
            s->changed = true;
        }
    }
}

/* The label that such a position is, where it runs over all of it; else -1, and its labels stay whole. */
static int32_t alone(Splitter *s, Affine x, Dim extent)
{
    const Label *labels = statement_of(s)->label;
    int32_t whole = affine_index(x);
    if (whole >= 0 && dim_eq(labels[whole].extent, extent)) {
        return whole;
    }
    for (uint32_t i = 0; i < x.n; i++) {
        if (!affine_is_dim(x.term[i].var)) {
            s->fixed[s->statement][x.term[i].var] = true;
            if (s->label[s->statement][x.term[i].var].n > 0) {
                report(s, statement_of(s)->target, statement_of(s)->span, crossing);
            }
        }
    }
    return -1;
}

/* The indices of 8*h + e where they go through all of the dimension, row by row; the slowest first. False where it is something else. */
static bool rows_of(Splitter *s, Affine x, Dim extent, uint32_t *n, Segment *segment)
{
    const Label *labels = statement_of(s)->label;
    Dim *dims = ARENA_ARRAY(s->arena, (size_t)x.n + 1, Dim);
    AffineTerm *term = ARENA_ARRAY(s->arena, (size_t)x.n + 1, AffineTerm);
    int64_t step = 1;
    *n = affine_steps(x, term);
    if (!s->numbers || x.n < 2 || *n < x.n || x.base != 0) {
        return false;
    }
    for (uint32_t i = 0; i < x.n; i++) { /* each has the step that those before it reach */
        Dim d = labels[term[i].var].extent;
        if (term[i].coef != step || (i + 1 < x.n && (d.sym >= 0 || d.n < 2))) {
            return false;
        }
        dims[x.n - 1 - i] = d;
        segment[x.n - 1 - i] = (Segment){d, (int32_t)term[i].var};
        step = sat_mul(step, d.n);
    }
    return dims_same_elements(s->arena, &s->to->dims, x.n, dims, 1, &extent);
}

/* The parts of a dimension at such a position; their number. */
static uint32_t segments_at(Splitter *s, Affine x, Dim dim, Segment *segment)
{
    uint32_t n = 0;
    if (rows_of(s, x, dim, &n, segment)) {
        return n;
    }
    *segment = (Segment){dim, alone(s, x, dim)};
    return 1;
}

/* A value at labels, or at positions. */
static void look_at(Splitter *s, uint32_t value, const int32_t *label, const Affine *at,
                    const SplitShape *split, Span span)
{
    const TensorType *type = &s->from->values.at[value].type;
    uint32_t n = split != NULL ? split->rank : type->rank;
    uint32_t most = n;
    for (uint32_t d = 0; d < n && at != NULL; d++) {
        most += at[d].n;
    }
    Segment *segment = ARENA_ARRAY(s->arena, (size_t)most + 1, Segment);
    for (uint32_t d = 0, end; d < n; d = end) {
        uint32_t axis = split != NULL ? split->axis[d] : d;
        uint32_t found = 0;
        for (end = d; end < n && (split != NULL ? split->axis[end] : end) == axis; end++) {
            Dim dim = split != NULL ? split->dims[end] : type->dims[axis];
            if (at != NULL) {
                found += segments_at(s, at[end], dim, segment + found);
                continue;
            }
            int32_t l = label[end];
            bool stretched = dim_is(dim, 1) && !dim_is(statement_of(s)->label[l].extent, 1);
            segment[found++] = (Segment){dim, stretched ? -1 : l};
        }
        meet(s, value, axis, found, segment, span);
    }
}

static void look_at_expr(Splitter *s, const CheckedExpr *e)
{
    if (e->kind == CHECKED_READ) {
        look_at(s, e->read, e->label, e->at, e->split, e->span);
    }
    for (uint32_t a = 0; a < e->n; a++) {
        look_at_expr(s, e->arg[a]);
    }
}

static void find_cuts(Splitter *s)
{
    const CheckedKernel *k = s->from;
    s->value = ARENA_ARRAY(s->arena, (size_t)k->values.n + 1, Cut *);
    s->label = ARENA_ARRAY(s->arena, (size_t)k->statements.n + 1, Cut *);
    s->fixed = ARENA_ARRAY(s->arena, (size_t)k->statements.n + 1, bool *);
    for (uint32_t v = 0; v < k->values.n; v++) {
        s->value[v] = ARENA_ARRAY(s->arena, (size_t)k->values.at[v].type.rank + 1, Cut);
    }
    for (uint32_t i = 0; i < k->statements.n; i++) {
        size_t n = (size_t)k->statements.at[i].n_labels + 1;
        s->label[i] = ARENA_ARRAY(s->arena, n, Cut);
        s->fixed[i] = ARENA_ARRAY(s->arena, n, bool);
    }
    do {
        s->changed = false;
        for (s->statement = 0; s->statement < k->statements.n && !s->failed; s->statement++) {
            const CheckedStatement *t = statement_of(s);
            look_at(s, t->target, t->left, t->at, t->split, t->span);
            look_at_expr(s, t->right);
        }
    } while (s->changed && !s->failed);
}

/* ---- the kernel anew ---- */

static uint32_t parts(const Splitter *s, int32_t label)
{
    uint32_t n = s->label[s->statement][label].n;
    return n > 0 ? n : 1;
}

static void new_labels(Splitter *s, CheckedStatement *to)
{
    const CheckedStatement *t = statement_of(s);
    uint32_t n = 0;
    s->first = ARENA_ARRAY(s->arena, (size_t)t->n_labels + 1, uint32_t);
    for (uint32_t l = 0; l < t->n_labels; l++) {
        s->first[l] = n;
        n += parts(s, (int32_t)l);
    }
    s->labels = ARENA_ARRAY(s->arena, (size_t)n + 1, Label);
    for (uint32_t l = 0; l < t->n_labels; l++) {
        const Cut *cut = &s->label[s->statement][l];
        for (uint32_t i = 0; i < parts(s, (int32_t)l); i++) {
            Label *label = &s->labels[s->first[l] + i];
            *label = t->label[l];
            if (cut->n > 0) {
                label->extent = cut->dim[i];
                label->name = NULL;
            }
        }
    }
    to->label = s->labels;
    to->n_labels = n;
}

/* Each label as those that it has become; as one where it stretches a dimension of `dims`, which may be null. */
static int32_t *expanded(Splitter *s, const int32_t *label, uint32_t n, const Dim *dims,
                         uint32_t *count)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        most += parts(s, label[i]);
    }
    int32_t *out = ARENA_ARRAY(s->arena, (size_t)most + 1, int32_t);
    *count = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool stretched = dims != NULL && dim_is(dims[i], 1);
        for (uint32_t p = 0; p < (stretched ? 1 : parts(s, label[i])); p++) {
            out[(*count)++] = (int32_t)(s->first[label[i]] + p);
        }
    }
    return out;
}

static const Affine *new_positions(Splitter *s, uint32_t value, const Affine *at,
                                   const SplitShape *split)
{
    const TensorType *type = &s->from->values.at[value].type;
    uint32_t n = split != NULL ? split->rank : type->rank, count = 0;
    Affine *out = ARENA_ARRAY(s->arena, RANK_LIMIT, Affine);
    for (uint32_t d = 0; d < n; d++) {
        Dim dim = split != NULL ? split->dims[d] : type->dims[d];
        Segment *segment = ARENA_ARRAY(s->arena, (size_t)at[d].n + 1, Segment);
        uint32_t found = segments_at(s, at[d], dim, segment);
        for (uint32_t k = 0; k < found && segment[k].label >= 0; k++) {
            for (uint32_t p = 0; p < parts(s, segment[k].label); p++) {
                out[count++] = affine_var(s->arena, s->first[segment[k].label] + p);
            }
        }
        if (segment[0].label < 0) {
            out[count++] = affine_rename(s->arena, at[d], s->first);
        }
    }
    return out;
}

static CheckedExpr *rebuilt(Splitter *s, const CheckedExpr *e)
{
    CheckedExpr *to = ARENA_NEW(s->arena, CheckedExpr);
    *to = *e;
    if (e->kind == CHECKED_GATHER && s->to->values.at[e->read].type.rank != e->n) {
        report(
            s, e->read, e->span,
            "is read in rows (an index times an open dim), and at positions that are values");
    }
    if (e->kind == CHECKED_READ && e->at != NULL) {
        to->at = new_positions(s, e->read, e->at, e->split);
        to->split = NULL;
    }
    if (e->rank > 0) {
        bool plain = e->kind == CHECKED_READ && e->at == NULL;
        to->label = expanded(s, e->label, e->rank,
                             plain ? s->from->values.at[e->read].type.dims : NULL, &to->rank);
    }
    to->arg = ARENA_ARRAY(s->arena, (size_t)e->n + 1, CheckedExpr *);
    for (uint32_t a = 0; a < e->n; a++) {
        to->arg[a] = rebuilt(s, e->arg[a]);
    }
    return to;
}

/* A piece that is everything, at an index for each dimension, is no piece. */
static void as_whole(Splitter *s, CheckedStatement *to)
{
    const TensorType *type = &s->to->values.at[to->target].type;
    bool only = to->op == OP_COPY
                    ? to->completes && !s->began[to->target]
                    : type->dtype == to->right->dtype; /* it is added to what is there */
    bool same = to->rank == type->rank && only;
    int32_t *label = ARENA_ARRAY(s->arena, (size_t)to->rank + 1, int32_t);
    for (uint32_t d = 0; d < type->rank && same; d++) {
        label[d] = affine_index(to->at[d]);
        same = label[d] >= 0 && dim_eq(s->labels[label[d]].extent, type->dims[d]);
        for (uint32_t e = 0; e < d && same; e++) {
            same = label[e] != label[d];
        }
    }
    if (same && to->op != OP_COPY) {
        CheckedExpr *old = arena_copy(s->arena, to->right, sizeof *old),
                    *sum = ARENA_NEW(s->arena, CheckedExpr);
        CheckedExpr *const two[2] = {old, to->right};
        const uint8_t link[2] = {0, OP_ADD};
        *sum = *old = (CheckedExpr){.dtype = old->dtype, .ast = old->ast, .span = old->span};
        old->kind = CHECKED_READ;
        old->read = to->target;
        old->rank = to->rank;
        old->label = label;
        sum->kind = CHECKED_CHAIN;
        sum->op = OP_ADD;
        sum->n = 2;
        sum->arg = arena_copy(s->arena, two, sizeof two);
        sum->link = arena_copy(s->arena, link, sizeof link);
        to->right = sum;
    }
    s->began[to->target] = s->began[to->target] || to->op == OP_COPY;
    if (same) {
        to->at = NULL;
        to->left = label;
    }
}

static void rebuild_statement(Splitter *s)
{
    CheckedStatement to = *statement_of(s);
    new_labels(s, &to);
    to.split = NULL;
    to.right = rebuilt(s, statement_of(s)->right);
    if (to.rank > 0) {
        to.left = expanded(s, to.left, to.rank, NULL, &to.rank);
    }
    if (to.at != NULL) {
        to.at = new_positions(s, to.target, statement_of(s)->at, statement_of(s)->split);
        as_whole(s, &to);
    }
    vec_push(s->arena, &s->to->statements, to);
}

static void rebuild_value(Splitter *s, uint32_t v)
{
    Value value = s->from->values.at[v];
    uint32_t rank = 0, most = 0;
    for (uint32_t d = 0; d < value.type.rank; d++) {
        most += s->value[v][d].n > 0 ? s->value[v][d].n : 1;
    }
    Dim *dims = ARENA_ARRAY(s->arena, (size_t)most + 1, Dim);
    for (uint32_t d = 0; d < value.type.rank; d++) {
        Cut c = parts_of(s->value[v][d], &value.type.dims[d]);
        memcpy(dims + rank, c.dim, c.n * sizeof *dims);
        rank += c.n;
    }
    if (rank > RANK_LIMIT) {
        report(s, v, value.span, "has too many dimensions in rows");
    } else if (rank > value.type.rank && value.symmetry != NULL) {
        report(s, v, value.span,
               "is declared symmetric, and in rows (an index times an open dim)");
    }
    value.type.dims = rank > value.type.rank ? dims : value.type.dims;
    value.type.rank = rank;
    vec_push(s->arena, &s->to->values, value);
}

static const CheckedKernel *split(Ctx *ctx, Arena *arena, const CheckedKernel *k, bool numbers)
{
    CheckedKernel *to = ARENA_NEW(arena, CheckedKernel);
    *to = *k;
    to->values.at = NULL;
    to->values.n = to->values.cap = 0;
    to->statements.at = NULL;
    to->statements.n = to->statements.cap = 0;
    to->dims.list.at =
        arena_copy(arena, k->dims.list.at, k->dims.list.n * sizeof *k->dims.list.at);
    to->dims.list.cap = k->dims.list.n;
    Splitter s = {.ctx = ctx, .arena = arena, .from = k, .to = to, .numbers = numbers};
    s.began = ARENA_ARRAY(arena, k->values.n, bool);
    find_cuts(&s);
    if (!s.failed && !s.any) {
        return k;
    }
    for (uint32_t v = 0; v < k->values.n && !s.failed; v++) {
        rebuild_value(&s, v);
    }
    for (s.statement = 0; s.statement < k->statements.n && !s.failed; s.statement++) {
        rebuild_statement(&s);
    }
    return s.failed ? NULL : to;
}

const CheckedKernel *kernel_split(Ctx *ctx, Arena *arena, const CheckedKernel *k)
{
    const CheckedKernel *to = k->places ? split(ctx, arena, k, true) : k;
    return to != NULL ? to : split(ctx, arena, k, false);
}
