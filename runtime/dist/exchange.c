/* SPDX-License-Identifier: Apache-2.0 */
/* What moves between ranks: blocks from one layout to another, and partial values to complete ones. All ranks know by arithmetic what
 * they send and receive; a count is the same walk without a communicator. */
#include "walk.h"

#include <string.h>

#include "fold.h"

char *tdsl_walk_take(Walk *w, int64_t bytes)
{
    size_t at = (w->top + 63) & ~(size_t)63;
    w->top = at + (size_t)bytes;
    w->most = w->top > w->most ? w->top : w->most;
    return w->base == NULL ? NULL : w->base + at;
}

/* Blocks of an argument or of a value. */
typedef struct Layout {
    bool is_arg;
    int32_t number;
    uint32_t axes; /* along which blocks differ */
    int32_t twin;  /* a value that has the same block on some ranks, and is there; -1: none */
    int32_t cut; /* of a value the part of one leaf of it, the rank's number `leaf`; -1: all */
    int64_t leaf;
} Layout;

static Layout arg_layout(const Walk *w, int32_t arg)
{
    return (Layout){true, arg, tdsl_arg_axes(&w->setting, arg), -1, -1, 0};
}

static Layout value_layout(const Walk *w, int32_t value)
{
    return (Layout){false, value, tdsl_value_axes(&w->setting, value), -1, -1, 0};
}

static void box_of(const Walk *w, Layout l, int32_t rank, Box *out)
{
    if (l.is_arg) {
        tdsl_arg_box(&w->setting, l.number, rank, out);
    } else {
        tdsl_value_box(&w->setting, l.number, rank, out);
    }
    if (l.cut >= 0) {
        tdsl_leaf_box(&w->setting, l.number, l.cut, rank, l.leaf, out);
    }
}

/* Do the two ranks differ in none of these axes, of the grid or of the mesh? */
static bool agree_on(const Walk *w, int32_t a, int32_t b, bool grid, uint32_t axes)
{
    int32_t x[TDSL_DIST_AXES], y[TDSL_DIST_AXES];
    if (grid) {
        tdsl_grid_place(&w->setting, a, x);
        tdsl_grid_place(&w->setting, b, y);
    } else {
        tdsl_place_of(&w->setting, a, x);
        tdsl_place_of(&w->setting, b, y);
    }
    for (int32_t i = 0; i < (grid ? w->setting.n_grid : w->setting.mesh->n_axes); i++) {
        if ((axes >> i & 1) != 0 && x[i] != y[i]) {
            return false;
        }
    }
    return true;
}

/* All messages of `send` and `receive`, which are counted. */
static tdsl_status exchange(Walk *w)
{
    for (int32_t r = 0; r < w->setting.ranks; r++) {
        w->count.sent += (uint64_t)w->send[r].bytes;
        w->count.received += (uint64_t)w->receive[r].bytes;
    }
    return w->comm == NULL || w->setting.ranks == 1
               ? TDSL_OK
               : w->comm->exchange(w->comm->state, w->send, w->receive);
}

/* Has rank `rank` the block in the twin already? */
static bool has_twin(const Walk *w, Layout l, int32_t rank)
{
    Box own, twin;
    if (l.twin < 0) {
        return false;
    }
    box_of(w, l, rank, &own);
    tdsl_value_box(&w->setting, l.twin, rank, &twin);
    for (int32_t d = 0; d < own.rank; d++) {
        if (own.lo[d] != twin.lo[d] || own.hi[d] != twin.hi[d]) {
            return false;
        }
    }
    return true;
}

/* What rank `from` has for rank `to`: of what is alike on some axes, who is nearest has it. Those without work ask as if the grid went on. */
static bool message(const Walk *w, Layout a, int32_t from, Layout b, int32_t to, Box *region)
{
    Box have, want;
    if (!agree_on(w, from, to, !a.is_arg, ~a.axes) || has_twin(w, b, to)) {
        return false;
    }
    box_of(w, a, from, &have);
    box_of(w, b, to, &want);
    return tdsl_box_meet(&have, &want, region);
}

/* Memory for a message: where its elements lie in the array of a box, if that is one run and may be; else beside it. */
static char *place_message(Walk *w, const Box *box, const Box *region, char *array, bool may,
                           int64_t size)
{
    int64_t first = 0;
    if (may && tdsl_box_is_run(box, region, &first)) {
        return array == NULL ? NULL : array + first * size;
    }
    return tdsl_walk_take(w, tdsl_box_count(region) * size);
}

/* `own`: `to` is in the workspace, so that what comes late harms nobody. */
static tdsl_status move(Walk *w, Layout a, const char *from, Layout b, char *to, bool own,
                        int64_t size)
{
    Box have, want, region;
    size_t mark = w->top;
    int64_t first = 0;
    box_of(w, a, w->rank, &have);
    box_of(w, b, w->rank, &want);
    memset(w->send, 0, (size_t)w->setting.ranks * sizeof *w->send);
    memset(w->receive, 0, (size_t)w->setting.ranks * sizeof *w->receive);
    for (int32_t r = 0; r < w->setting.ranks; r++) {
        if (r != w->rank && message(w, a, w->rank, b, r, &region)) {
            char *data = place_message(w, &have, &region, (char *)from, true, size);
            w->send[r] = (tdsl_dist_bytes){data, tdsl_box_count(&region) * size};
            if (w->comm != NULL && !tdsl_box_is_run(&have, &region, &first)) {
                tdsl_box_copy(data, &region, from, &have, &region, size);
            }
        }
        if (r != w->rank && message(w, a, r, b, w->rank, &region)) {
            char *data = place_message(w, &want, &region, to, own, size);
            w->receive[r] = (tdsl_dist_bytes){data, tdsl_box_count(&region) * size};
        }
    }
    tdsl_status status = exchange(w);
    for (int32_t r = 0; w->comm != NULL && status == TDSL_OK && r < w->setting.ranks; r++) {
        if (!message(w, a, r, b, w->rank, &region)) {
            continue;
        }
        if (r == w->rank) {
            tdsl_box_copy(to, &want, from, &have, &region, size);
        } else if (!own || !tdsl_box_is_run(&want, &region, &first)) {
            tdsl_box_copy(to, &want, w->receive[r].data, &region, &region, size);
        }
    }
    w->top = mark;
    return status;
}

/* ---- reductions ---- */

/* Terms of one value on the ranks that differ in `axes` only. */
typedef struct Terms {
    const tdsl_dist_value *v; /* type, how terms are combined, over what */
    uint32_t axes;
    bool of_arg; /* one of each rank */
    /* the value that the sums are, of which each rank has a part; -1: each has them whole */
    int32_t spread;
    Box box; /* of the elements */
    int64_t count;
    int64_t most; /* that some rank has */
} Terms;

/* Does rank r differ from this one in the axes of the terms only? */
static bool is_member(const Walk *w, const Terms *t, int32_t r)
{
    bool idle =
        !t->of_arg && (tdsl_is_idle(&w->setting, r) || tdsl_is_idle(&w->setting, w->rank));
    return !idle && agree_on(w, r, w->rank, !t->of_arg, ~t->axes);
}

/* Which of the members this rank is. */
static int32_t own_number(const Walk *w, const Terms *t)
{
    int32_t n = 0;
    for (int32_t r = 0; r < w->rank; r++) {
        n += is_member(w, t, r) ? 1 : 0;
    }
    return n;
}

/* How many members any such group has. */
static int32_t group_size(const Walk *w, const Terms *t)
{
    const int32_t *size = t->of_arg ? w->setting.mesh->size : w->setting.grid.size;
    int32_t n = 1;
    for (int32_t a = 0; a < (t->of_arg ? w->setting.mesh->n_axes : w->setting.n_grid); a++) {
        n *= (t->axes >> a & 1) != 0 ? size[a] : 1;
    }
    return n;
}

/* The nodes of a rank, which is number `member` of its group. */
static int64_t terms_of(const Walk *w, const Terms *t, int32_t rank, int32_t member,
                        TreeNode *nodes)
{
    int64_t most = 0;
    if (t->of_arg) {
        nodes[0] = (TreeNode){member, 0, NULL};
        return 1;
    }
    return tdsl_tree_nodes(&w->setting, t->v, rank, nodes, &most);
}

static int64_t count_terms(const Walk *w, const Terms *t, int32_t rank)
{
    return terms_of(w, t, rank, 0, w->scratch);
}

/* The piece of the terms that a rank adds up: its part of the value, if that is spread, else of the elements in order. */
static void piece_of(const Walk *w, const Terms *t, int32_t rank, int32_t members,
                     int32_t member, Box *out)
{
    if (t->spread >= 0) {
        tdsl_value_box(&w->setting, t->spread, rank, out);
        return;
    }
    *out = (Box){.rank = 1};
    tdsl_part_leaves(t->box.hi[0], members, member, &out->lo[0], &out->hi[0]);
}

/* Pieces of own terms, which are `bytes` apart, side by side: where they lie, if that is so, else a copy. */
static char *take_pieces(Walk *w, const Terms *t, const Box *piece, char *own, int64_t mine,
                         int64_t bytes, int64_t size)
{
    int64_t part = tdsl_box_count(piece) * size, first = 0;
    bool run = (mine == 1 || part == bytes) && tdsl_box_is_run(&t->box, piece, &first);
    if (run) {
        return own == NULL ? NULL : own + first * size;
    }
    char *to = tdsl_walk_take(w, mine * part);
    for (int64_t k = 0; w->comm != NULL && k < mine; k++) {
        tdsl_box_copy(to + k * part, piece, own + k * bytes, &t->box, piece, size);
    }
    return to;
}

/* The nodes of all ranks of the group, those of others in what was received from them, `count` elements each, to their sum. */
static void fold_terms(Walk *w, const Terms *t, char *own, int64_t count, char *out,
                       int64_t size)
{
    int64_t n = 0;
    for (int32_t r = 0, member = 0; r < w->setting.ranks; r++) {
        if (!is_member(w, t, r)) {
            continue;
        }
        int64_t more = terms_of(w, t, r, member++, w->scratch + n);
        for (int64_t k = 0; k < more; k++) {
            char *data = r == w->rank ? own : w->receive[r].data;
            w->scratch[n + k].data = data + k * count * size;
        }
        n += more;
    }
    tdsl_tree_fold(w->threads, t->v, w->scratch, n, count);
    if (count > 0) {
        memcpy(out, w->scratch[0].data, (size_t)(count * size));
    }
}

/* Each rank gets all terms. */
static tdsl_status reduce_whole(Walk *w, const Terms *t, char *own, char *out, int64_t size)
{
    int64_t bytes = t->count * size, mine = count_terms(w, t, w->rank);
    for (int32_t r = 0; r < w->setting.ranks; r++) {
        bool other = r != w->rank && is_member(w, t, r);
        int64_t theirs = other ? count_terms(w, t, r) * bytes : 0;
        w->send[r] = (tdsl_dist_bytes){own, other ? mine * bytes : 0};
        w->receive[r] =
            (tdsl_dist_bytes){theirs > 0 ? tdsl_walk_take(w, theirs) : NULL, theirs};
    }
    tdsl_status status = exchange(w);
    if (w->comm != NULL && status == TDSL_OK) {
        fold_terms(w, t, own, t->count, out, size);
    }
    return status;
}

/* Each rank gets its piece of all terms, and adds them up: a reduce-scatter. */
static tdsl_status scatter_sums(Walk *w, const Terms *t, int32_t members, char *own, char *out,
                                int64_t size)
{
    int64_t bytes = t->count * size, mine = count_terms(w, t, w->rank);
    int32_t self = own_number(w, t);
    Box piece, theirs;
    piece_of(w, t, w->rank, members, self, &piece);
    int64_t count = tdsl_box_count(&piece);
    for (int32_t r = 0, member = 0; r < w->setting.ranks; r++) {
        w->send[r] = w->receive[r] = (tdsl_dist_bytes){NULL, 0};
        if (!is_member(w, t, r)) {
            continue;
        }
        piece_of(w, t, r, members, member++, &theirs);
        if (r != w->rank) {
            int64_t to = mine * tdsl_box_count(&theirs) * size,
                    from = count_terms(w, t, r) * count * size;
            w->send[r] =
                (tdsl_dist_bytes){take_pieces(w, t, &theirs, own, mine, bytes, size), to};
            w->receive[r] = (tdsl_dist_bytes){tdsl_walk_take(w, from), from};
        }
    }
    char *kept = take_pieces(w, t, &piece, own, mine, bytes, size);
    tdsl_status status = exchange(w);
    if (w->comm != NULL && status == TDSL_OK) {
        fold_terms(w, t, kept, count, out, size);
    }
    return status;
}

/* The same, and the sum of each piece to the others. */
static tdsl_status reduce_pieces(Walk *w, const Terms *t, int32_t members, char *own, char *out,
                                 int64_t size)
{
    int64_t lo = 0, hi = 0;
    tdsl_part_leaves(t->count, members, own_number(w, t), &lo, &hi);
    tdsl_status status = scatter_sums(w, t, members, own, out + lo * size, size);
    for (int32_t r = 0, member = 0; r < w->setting.ranks; r++) {
        int64_t first = 0, last = 0;
        if (is_member(w, t, r)) {
            tdsl_part_leaves(t->count, members, member++, &first, &last);
            int64_t part = (last - first) * size, piece = (hi - lo) * size;
            bool counted = w->base == NULL;
            w->send[r] =
                (tdsl_dist_bytes){counted ? NULL : out + lo * size, r == w->rank ? 0 : piece};
            w->receive[r] =
                (tdsl_dist_bytes){counted ? NULL : out + first * size, r == w->rank ? 0 : part};
        }
    }
    return status == TDSL_OK ? exchange(w) : status;
}

static tdsl_status reduce(Walk *w, Terms *t, char *own, char *out)
{
    int64_t size = tdsl_dtype_size(t->v->dtype);
    int32_t members = group_size(w, t);
    size_t mark = w->top;
    if (t->spread < 0) {
        t->box = (Box){.rank = 1, .hi = {t->count}};
    }
    /* All ranks choose alike, also where blocks of some are smaller. */
    tdsl_status status = t->spread >= 0 ? scatter_sums(w, t, members, own, out, size)
                         : members * t->most * size <= TDSL_WHOLE_BYTES || members == 1
                             ? reduce_whole(w, t, own, out, size)
                             : reduce_pieces(w, t, members, own, out, size);
    w->top = mark;
    return status;
}

/* ---- steps ---- */

static int64_t value_count(const Walk *w, int32_t value)
{
    Box box;
    tdsl_value_box(&w->setting, value, w->rank, &box);
    return tdsl_box_count(&box);
}

/* Elements of the largest block: parts of an axis begin with the long ones. */
static int64_t most_count(const Walk *w, Layout l)
{
    Box box;
    box_of(w, l, 0, &box);
    return tdsl_box_count(&box);
}

/* Is the argument read by no step from this one on, nor by the calls before that read by leaf? */
static bool is_read_no_more(const tdsl_dist_info *dist, int32_t arg, const tdsl_dist_step *from)
{
    for (const tdsl_dist_step *s = dist->steps; s < dist->steps + dist->n_steps; s++) {
        if (s->kind == TDSL_STEP_READ && s->arg == arg && (s > from || s->by_leaf != 0)) {
            return false;
        }
    }
    return true;
}

/* The step that makes the value. */
static const tdsl_dist_step *maker_of(const tdsl_dist_info *dist, int32_t value)
{
    const tdsl_dist_step *s = dist->steps;
    for (; s < dist->steps + dist->n_steps; s++) {
        bool made = s->kind == TDSL_STEP_REDUCE && s->complete == value;
        for (int32_t k = 0; s->kind == TDSL_STEP_LOCAL && k < s->kernel->n_args; k++) {
            made = made || (s->kernel->args[k].role == TDSL_OUT && s->values[k] == value);
        }
        if (made) {
            return s;
        }
    }
    return NULL;
}

const tdsl_dist_step *tdsl_place_of_value(const Setting *s, int32_t value)
{
    const tdsl_dist_info *dist = s->dist;
    const tdsl_dist_step *maker = maker_of(dist, value), *end = dist->steps + dist->n_steps;
    if (!tdsl_is_whole_sum(s, &dist->values[value]) || maker == NULL || s->used < s->ranks) {
        return NULL; /* spread, or as it came, or some ranks do not make it */
    }
    for (const tdsl_dist_step *step = maker; step < end; step++) {
        if (step->kind == TDSL_STEP_REDUCE && step->value == value) {
            return tdsl_place_of_value(s, step->complete);
        }
        if (step->kind == TDSL_STEP_WRITE && step->value == value &&
            tdsl_is_same_layout(s, step->arg, value) &&
            is_read_no_more(dist, step->arg, maker)) {
            return step;
        }
    }
    return NULL;
}

bool tdsl_is_whole_sum(const Setting *s, const tdsl_dist_value *v)
{
    bool whole = true;
    for (int32_t k = 0; k < v->n_over; k++) {
        whole = whole && s->grid.size[s->dist->cuts[v->over[k]].axis] == 1;
    }
    return whole;
}

char *tdsl_walk_take_value(Walk *w, int32_t value)
{
    const tdsl_dist_step *place = tdsl_place_of_value(&w->setting, value);
    int64_t size = tdsl_dtype_size(w->setting.dist->values[value].dtype);
    w->value[value] = place == NULL     ? tdsl_walk_take(w, value_count(w, value) * size)
                      : w->args == NULL ? NULL
                                        : w->args[place->arg];
    return w->value[value];
}

/* The sum of what ranks have of an argument that is partial, and of which none has a copy. */
static tdsl_status read_partial(Walk *w, int32_t arg, Terms *t, char **sum)
{
    int64_t size = tdsl_dtype_size(t->v->dtype);
    Box box;
    tdsl_arg_box(&w->setting, arg, w->rank, &box);
    t->count = tdsl_box_count(&box);
    t->most = most_count(w, arg_layout(w, arg));
    char *own = tdsl_walk_take(w, t->count * size);
    *sum = tdsl_walk_take(w, t->count * size);
    if (w->comm != NULL && t->count > 0) {
        memcpy(own, w->args[arg], (size_t)(t->count * size));
    }
    return reduce(w, t, own, *sum);
}

/* The value of an earlier step that is the same argument, cut by mates of this value's cuts. */
static int32_t find_twin(const Walk *w, const tdsl_dist_step *step)
{
    const tdsl_dist_info *dist = w->setting.dist;
    const tdsl_dist_value *v = &dist->values[step->value];
    for (const tdsl_dist_step *s = dist->steps; s < step; s++) {
        bool twin = s->kind == TDSL_STEP_READ && s->arg == step->arg;
        bool mates = false;
        for (int32_t d = 0; twin && d < v->rank; d++) {
            int32_t a = v->cuts[d], b = dist->values[s->value].cuts[d];
            bool mate = a >= 0 && b >= 0 && dist->cuts[a].mate == b + 1;
            twin = a == b || mate;
            mates = mates || mate;
        }
        if (twin && mates) {
            return s->value;
        }
    }
    return -1;
}

tdsl_status tdsl_walk_read(Walk *w, const tdsl_dist_step *step)
{
    const tdsl_dist_info *dist = w->setting.dist;
    const tdsl_arg_info *info = &dist->kernel->args[step->arg];
    bool partial = dist->args[step->arg].partial != 0;
    Layout from = arg_layout(w, step->arg), to = value_layout(w, step->value);
    if (!partial && info->role != TDSL_INOUT &&
        tdsl_is_same_layout(&w->setting, step->arg, step->value)) {
        w->value[step->value] = w->args == NULL ? NULL : w->args[step->arg];
        return TDSL_OK;
    }
    if (step->by_leaf != 0) {
        w->read[step->value] = step;
        return TDSL_OK;
    }
    to.twin = partial ? -1 : find_twin(w, step);
    char *value = NULL, *array = w->args == NULL ? NULL : w->args[step->arg];
    if (has_twin(w, to, w->rank)) {
        w->value[step->value] = w->value[to.twin];
    } else {
        value = tdsl_walk_take_value(w, step->value);
    }
    size_t mark = w->top;
    tdsl_status status = TDSL_OK;
    if (partial) {
        tdsl_dist_value v = {.dtype = info->dtype, .fold = TDSL_FOLD_SUM};
        Terms t = {.v = &v, .axes = ~from.axes, .of_arg = true, .spread = -1};
        status = read_partial(w, step->arg, &t, &array);
    }
    if (status == TDSL_OK) {
        status = move(w, from, array, to, value, true, tdsl_dtype_size(info->dtype));
    }
    w->top = mark;
    return status;
}

tdsl_status tdsl_walk_read_leaf(Walk *w, const tdsl_dist_step *step, int32_t cut, int64_t leaf,
                                Box *box, char **out)
{
    Layout from = arg_layout(w, step->arg), to = value_layout(w, step->value);
    int64_t size = tdsl_dtype_size(w->setting.dist->kernel->args[step->arg].dtype);
    to.cut = cut;
    to.leaf = leaf;
    box_of(w, to, w->rank, box);
    *out = tdsl_walk_take(w, tdsl_box_count(box) * size);
    return move(w, from, w->args == NULL ? NULL : w->args[step->arg], to, *out, true, size);
}

/* Is this the first rank of those that differ in these axes only? */
static bool is_first(const Walk *w, uint32_t axes)
{
    int32_t at[TDSL_DIST_AXES];
    tdsl_place_of(&w->setting, w->rank, at);
    for (int32_t a = 0; a < w->setting.mesh->n_axes; a++) {
        if ((axes >> a & 1) != 0 && at[a] != 0) {
            return false;
        }
    }
    return true;
}

tdsl_status tdsl_walk_write(Walk *w, const tdsl_dist_step *step)
{
    const tdsl_dist_info *dist = w->setting.dist;
    Layout from = value_layout(w, step->value), to = arg_layout(w, step->arg);
    int64_t size = tdsl_dtype_size(dist->kernel->args[step->arg].dtype);
    char *array = w->args == NULL ? NULL : w->args[step->arg];
    tdsl_status status = tdsl_place_of_value(&w->setting, step->value) == step
                             ? TDSL_OK
                             : move(w, from, w->value[step->value], to, array, false, size);
    if (w->comm != NULL && dist->args[step->arg].partial != 0 && !is_first(w, ~to.axes)) {
        Box box;
        tdsl_arg_box(&w->setting, step->arg, w->rank, &box);
        memset(array, 0, (size_t)(tdsl_box_count(&box) * size));
    }
    return status;
}

/* All terms of a value, which one rank has. */
static void fold_own(Walk *w, int32_t value, const Terms *t)
{
    int64_t bytes = t->count * tdsl_dtype_size(t->v->dtype), n = count_terms(w, t, w->rank);
    for (int64_t k = 0; k < n; k++) {
        w->scratch[k].data = k == 0 ? w->value[value] : w->terms[value] + (k - 1) * bytes;
    }
    if (w->comm != NULL) {
        tdsl_tree_fold(w->threads, t->v, w->scratch, n, t->count);
    }
}

tdsl_status tdsl_walk_reduce(Walk *w, const tdsl_dist_step *step)
{
    const tdsl_dist_value *v = &w->setting.dist->values[step->value];
    Terms t = {.v = v,
               .spread =
                   w->setting.dist->values[step->complete].n_over > 0 ? step->complete : -1,
               .count = value_count(w, step->value),
               .most = most_count(w, value_layout(w, step->value))};
    tdsl_value_box(&w->setting, step->value, w->rank, &t.box);
    for (int32_t k = 0; k < v->n_over; k++) {
        t.axes |= 1u << w->setting.dist->cuts[v->over[k]].axis;
    }
    if (tdsl_is_whole_sum(&w->setting, v)) { /* in place of the first */
        w->value[step->complete] = w->value[step->value];
        fold_own(w, step->value, &t);
        return TDSL_OK;
    }
    char *out = tdsl_walk_take_value(w, step->complete);
    return reduce(w, &t, w->value[step->value], out);
}
