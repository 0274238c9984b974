/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a local kernel: one for a rank's block, or one for each leaf that it has, whose results are combined as they come. */
#include "walk.h"

#include <string.h>

#include "fold.h"

/* A step as it is called: the leaves at hand. */
typedef struct Calls {
    Walk *w;
    const tdsl_dist_step *step;
    Leaves leaves; /* of step->over */
    bool sliced;   /* they are slices */
    bool alike;    /* each has the same inputs and results on any mesh */
    int64_t dims[TDSL_MAX_DIMS];
    void *args[TDSL_MAX_ARGS];
    char *panel[TDSL_MAX_ARGS];   /* of values that are read by leaf */
    int64_t count[TDSL_MAX_ARGS]; /* elements of partial results */
} Calls;

/* The step's cut `cut` among those of its leaves, or -1. */
static int32_t over_of(const Calls *c, int32_t cut)
{
    for (int32_t k = 0; k < c->step->n_over; k++) {
        if (c->step->over[k] == cut) {
            return k;
        }
    }
    return -1;
}

/* Positions of a cut that this call has. */
static void cut_range(const Calls *c, int32_t cut, int64_t *lo, int64_t *hi)
{
    const Setting *s = &c->w->setting;
    const tdsl_dist_cut *of = &s->dist->cuts[cut];
    int64_t n = tdsl_extent_of(s, of->extent), leaves = tdsl_leaves_in(n, of->leaves), a = 0,
            b = 0;
    int32_t k = over_of(c, cut);
    if (k >= 0) {
        a = c->leaves.at[k];
        b = a + 1;
    } else {
        tdsl_cut_leaves(s, cut, c->w->rank, &a, &b);
    }
    *lo = tdsl_leaf_first(n, leaves, a);
    *hi = tdsl_leaf_first(n, leaves, b);
}

static void set_dims(Calls *c)
{
    for (int32_t k = 0; k < c->step->kernel->n_dims; k++) {
        const tdsl_dist_dim *d = &c->step->dims[k];
        int64_t lo = 0, hi = 0;
        if (d->cut >= 0) {
            cut_range(c, d->cut, &lo, &hi);
            c->dims[k] = hi - lo;
        } else {
            c->dims[k] = tdsl_extent_of(&c->w->setting, *d);
        }
    }
}

/* What of a value this call has: part of what the rank has. */
static void region_of(const Calls *c, int32_t value, const Box *box, Box *region)
{
    const tdsl_dist_value *v = &c->w->setting.dist->values[value];
    *region = *box;
    for (int32_t d = 0; d < v->rank; d++) {
        if (v->cuts[d] >= 0 && over_of(c, v->cuts[d]) >= 0) {
            cut_range(c, v->cuts[d], &region->lo[d], &region->hi[d]);
        }
    }
}

/* The elements that the call reads: where they lie, if that is one run, else a copy. */
static void set_argument(Calls *c, int32_t k)
{
    Walk *w = c->w;
    int32_t value = c->step->values[k];
    int64_t size = tdsl_dtype_size(w->setting.dist->values[value].dtype), first = 0;
    Box box, region;
    if (w->read[value] != NULL) {
        c->args[k] = c->panel[k];
        return;
    }
    tdsl_value_box(&w->setting, value, w->rank, &box);
    region_of(c, value, &box, &region);
    bool run = tdsl_box_is_run(&box, &region, &first);
    char *copy = run ? NULL : tdsl_walk_take(w, tdsl_box_count(&region) * size);
    if (w->comm == NULL) {
        return;
    }
    if (!run) {
        tdsl_box_copy(copy, &region, w->value[value], &box, &region, size);
    }
    c->args[k] = run ? w->value[value] + first * size : copy;
}

/* What the ranks' leaves number `leaf` need of values that are read by leaf. All ranks take part, those that have fewer, too. */
static tdsl_status read_panels(Calls *c, int64_t leaf)
{
    tdsl_status status = TDSL_OK;
    for (int32_t k = 0; k < c->step->kernel->n_args && status == TDSL_OK; k++) {
        const tdsl_dist_step *read = c->w->read[c->step->values[k]];
        Box box;
        if (read != NULL) {
            status =
                tdsl_walk_read_leaf(c->w, read, c->step->over[0], leaf, &box, &c->panel[k]);
        }
    }
    return status;
}

/* Leaves of the step that the rank with most of them has, if any value is read by leaf: else 0. */
static int64_t panels_of(const Calls *c)
{
    int64_t lo = 0, hi = 0;
    bool any = false;
    for (int32_t k = 0; k < c->step->kernel->n_args; k++) {
        any = any || c->w->read[c->step->values[k]] != NULL;
    }
    if (any) {
        tdsl_cut_leaves(&c->w->setting, c->step->over[0], 0, &lo, &hi);
    }
    return hi - lo;
}

static bool is_result(const Calls *c, int32_t k)
{
    return c->step->kernel->args[k].role == TDSL_OUT;
}

/* Memory of the results: of a partial one for as many terms as there are at once. */
static void take_results(Calls *c)
{
    Walk *w = c->w;
    for (int32_t k = 0; k < c->step->kernel->n_args; k++) {
        int32_t value = c->step->values[k];
        const tdsl_dist_value *v = &w->setting.dist->values[value];
        int64_t most = 1;
        Box box;
        if (!is_result(c, k)) {
            continue;
        }
        tdsl_value_box(&w->setting, value, w->rank, &box);
        c->count[k] = tdsl_box_count(&box);
        if (v->fold != TDSL_FOLD_NONE) {
            (void)tdsl_tree_nodes(&w->setting, v, w->rank, w->scratch, &most);
        }
        int64_t bytes = c->count[k] * tdsl_dtype_size(v->dtype);
        if (tdsl_place_of_value(&w->setting, value) != NULL) {
            (void)tdsl_walk_take_value(w, value);
            w->terms[value] = tdsl_walk_take(w, most > 0 ? (most - 1) * bytes : 0);
        } else {
            w->value[value] = tdsl_walk_take(w, most * bytes);
            w->terms[value] = w->value[value] == NULL ? NULL : w->value[value] + bytes;
        }
    }
}

/* Term number n of result k. */
static char *term_at(const Calls *c, int32_t k, int64_t n)
{
    int32_t value = c->step->values[k];
    int64_t bytes = c->count[k] * tdsl_dtype_size(c->w->setting.dist->values[value].dtype);
    return n == 0 ? c->w->value[value] : c->w->terms[value] + (n - 1) * bytes;
}

/* Is argument k a result of which each leaf has a part? */
static bool is_part(const Calls *c, int32_t k)
{
    const tdsl_dist_value *v = &c->w->setting.dist->values[c->step->values[k]];
    return is_result(c, k) && c->step->n_over > 0 && v->fold == TDSL_FOLD_NONE;
}

/* Of such results where the part lies, if that is one run, else memory beside it. */
static void set_part(Calls *c, int32_t k)
{
    Walk *w = c->w;
    int32_t value = c->step->values[k];
    int64_t size = tdsl_dtype_size(w->setting.dist->values[value].dtype), first = 0;
    Box box, region;
    tdsl_value_box(&w->setting, value, w->rank, &box);
    region_of(c, value, &box, &region);
    bool run = tdsl_box_is_run(&box, &region, &first);
    char *beside = run ? NULL : tdsl_walk_take(w, tdsl_box_count(&region) * size);
    if (w->comm != NULL) {
        c->args[k] = run ? w->value[value] + first * size : beside;
    }
}

/* Puts the parts that lie beside in their places. */
static void put_parts(const Calls *c)
{
    Walk *w = c->w;
    for (int32_t k = 0; w->comm != NULL && k < c->step->kernel->n_args; k++) {
        int32_t value = c->step->values[k];
        int64_t first = 0;
        Box box, region;
        if (!is_part(c, k)) {
            continue;
        }
        tdsl_value_box(&w->setting, value, w->rank, &box);
        region_of(c, value, &box, &region);
        if (!tdsl_box_is_run(&box, &region, &first)) {
            tdsl_box_copy(w->value[value], &box, c->args[k], &region, &region,
                          tdsl_dtype_size(w->setting.dist->values[value].dtype));
        }
    }
}

/* The call at hand writes its partial results behind the terms so far. */
static void set_results(Calls *c, int64_t n)
{
    for (int32_t k = 0; k < c->step->kernel->n_args; k++) {
        if (is_result(c, k) && c->w->comm != NULL) {
            c->args[k] = term_at(c, k, n);
        }
    }
}

/* Counts the terms of a call twice: x + x is 2 x in every type. */
static void double_results(const Calls *c)
{
    for (int32_t k = 0; c->w->comm != NULL && k < c->step->kernel->n_args; k++) {
        const tdsl_dist_value *v = &c->w->setting.dist->values[c->step->values[k]];
        if (is_result(c, k)) {
            tdsl_fold(v->dtype, v->fold, c->args[k], c->args[k], c->count[k]);
        }
    }
}

/* Adds the terms of a call to those before; all partial results of a step have the same. */
static int64_t combine(Calls *c, int64_t n)
{
    TreeNode leaf = {tdsl_leaves_number(&c->leaves), 0, NULL};
    int64_t after = n;
    TreeNode *nodes = c->w->scratch; /* [n] from the calls before */
    for (int32_t k = 0; k < c->step->kernel->n_args; k++) {
        if (!is_result(c, k) || is_part(c, k)) {
            continue;
        }
        const tdsl_dist_value *v = &c->w->setting.dist->values[c->step->values[k]];
        TreeNode *own = c->w->scratch + c->w->scratch_half;
        for (int64_t i = 0; i < n; i++) {
            own[i] = nodes[i];
            own[i].data = c->w->comm == NULL ? NULL : term_at(c, k, i);
        }
        leaf.data = c->w->comm == NULL ? NULL : c->args[k];
        after = tdsl_tree_push(c->w->threads, v, own, n, leaf, c->count[k]);
    }
    memcpy(nodes, c->w->scratch + c->w->scratch_half, (size_t)after * sizeof *nodes);
    return after;
}

/* Arguments, of a call with a leaf, as the store sees them. */
static tdsl_status run_stored(Calls *c, void *space, size_t bytes)
{
    Walk *w = c->w;
    const tdsl_kernel_info *kernel = c->step->kernel;
    tdsl_dist_bytes data[2][TDSL_MAX_ARGS];
    int32_t n[2] = {0, 0}, found = 0;
    Box box, region;
    for (int32_t k = 0; k < kernel->n_args; k++) {
        int32_t value = c->step->values[k], side = is_result(c, k) ? 1 : 0;
        tdsl_value_box(&w->setting, value, w->rank, &box);
        region_of(c, value, &box, &region);
        int64_t size = tdsl_dtype_size(w->setting.dist->values[value].dtype);
        data[side][n[side]++] = (tdsl_dist_bytes){c->args[k], tdsl_box_count(&region) * size};
    }
    tdsl_dist_leaf leaf = {.step = (int32_t)(c->step - w->setting.dist->steps),
                           .number = tdsl_leaves_number(&c->leaves),
                           .leaves = 1,
                           .n_inputs = n[0],
                           .n_results = n[1],
                           .inputs = data[0],
                           .results = data[1]};
    for (int32_t k = 0; k < c->leaves.n; k++) {
        leaf.leaves *= c->leaves.all[k];
    }
    tdsl_status status = w->store->find(w->store->state, &leaf, &found);
    if (status == TDSL_OK && found == 0) {
        status = kernel->call_threads(c->dims, c->args, space, bytes, w->threads);
        status = status == TDSL_OK ? w->store->keep(w->store->state, &leaf) : status;
    }
    return status;
}

static tdsl_status call(Calls *c)
{
    Walk *w = c->w;
    const tdsl_kernel_info *kernel = c->step->kernel;
    int32_t threads = w->threads == NULL || w->threads->count < 1 ? 1 : w->threads->count;
    size_t mark = w->top;
    set_dims(c);
    for (int32_t k = 0; k < kernel->n_args; k++) {
        if (!is_result(c, k)) {
            set_argument(c, k);
        } else if (is_part(c, k)) {
            set_part(c, k);
        }
    }
    size_t bytes = kernel->workspace_bytes_threads(c->dims, threads);
    w->count.calls++;
    if (bytes == SIZE_MAX || bytes > (size_t)INT64_MAX / 2) {
        return TDSL_E_OVERFLOW;
    }
    size_t top = (w->top + 63) & ~(size_t)63;
    if (w->comm != NULL && w->size - top < bytes) {
        bytes = w->size - top; /* enough for one thread: it has as many as there is room for */
    }
    char *space = tdsl_walk_take(w, (int64_t)bytes);
    tdsl_status status = w->comm == NULL ? TDSL_OK
                         : c->alike && w->store != NULL
                             ? run_stored(c, space, bytes)
                             : kernel->call_threads(c->dims, c->args, space, bytes, w->threads);
    if (status == TDSL_OK) {
        put_parts(c);
    }
    w->top = mark;
    return status;
}

/* Is nothing of a call cut but by its leaf? */
static bool is_alike(const Calls *c)
{
    bool alike = true;
    for (int32_t k = 0; k < c->step->kernel->n_args; k++) {
        const tdsl_dist_value *v = &c->w->setting.dist->values[c->step->values[k]];
        for (int32_t d = 0; d < v->rank; d++) {
            alike = alike && (v->cuts[d] < 0 || over_of(c, v->cuts[d]) >= 0);
        }
    }
    return alike;
}

/* The call for the leaf at hand, whose results are added to the n terms before. */
static tdsl_status call_leaf(Calls *c, int64_t *n)
{
    set_results(c, *n);
    double start = tdsl_walk_clock(c->w);
    tdsl_status status = call(c);
    c->w->count.pairs += c->leaves.row >= 0 ? 1 : 0;
    c->w->count.slices += c->sliced ? 1 : 0;
    if (status == TDSL_OK) {
        if (tdsl_leaves_twice(&c->leaves)) {
            double_results(c);
        }
        *n = combine(c, *n);
    }
    c->w->count.computing += tdsl_walk_clock(c->w) - start;
    return status;
}

tdsl_status tdsl_walk_local(Walk *w, const tdsl_dist_step *step, tdsl_status *local)
{
    Calls c = {.w = w, .step = step};
    tdsl_status status = TDSL_OK, own = TDSL_OK;
    take_results(&c);
    if (step->n_over == 0) {
        double start = tdsl_walk_clock(w);
        set_results(&c, 0);
        own = tdsl_is_idle(&w->setting, w->rank) ? TDSL_OK : call(&c);
        w->count.computing += tdsl_walk_clock(w) - start;
    } else {
        int64_t n = 0, panels = panels_of(&c);
        c.alike = is_alike(&c);
        for (int32_t k = 0; k < step->n_over; k++) {
            c.sliced |= w->setting.dist->cuts[step->over[k]].group > 0;
        }
        bool any = tdsl_leaves_begin(&w->setting, step->n_over, step->over, w->rank, &c.leaves);
        for (int64_t leaf = 0; status == TDSL_OK && (any || leaf < panels); leaf++) {
            size_t mark = w->top;
            status = panels > 0 ? read_panels(&c, leaf) : TDSL_OK;
            if (any && own == TDSL_OK && status == TDSL_OK) {
                own = call_leaf(&c, &n);
            }
            any = any && tdsl_leaves_next(&c.leaves);
            w->top = mark;
        }
    }
    *local = *local == TDSL_OK ? own : *local;
    return status;
}
