/* SPDX-License-Identifier: Apache-2.0 */
/* Who has what: leaves, parts of an axis, blocks of arguments and values. All of it is arithmetic on the sizes of a call, so that each
 * rank knows what every other one has. */
#include "walk.h"

int64_t tdsl_dtype_size(int32_t dtype)
{
    return (int64_t)tdsl_dtype_bytes(dtype);
}

int64_t tdsl_extent_of(const Setting *s, tdsl_dist_dim d)
{
    return d.dim < 0 ? d.fixed : s->all[d.dim];
}

int64_t tdsl_arg_extent(const Setting *s, int32_t arg, int32_t dim)
{
    const tdsl_extent *e = &s->dist->kernel->args[arg].extents[dim];
    return e->dim < 0 ? e->fixed : s->all[e->dim];
}

void tdsl_place_of(const Setting *s, int32_t rank, int32_t *at)
{
    for (int32_t a = s->mesh->n_axes; a-- > 0;) {
        at[a] = rank % s->mesh->size[a];
        rank /= s->mesh->size[a];
    }
}

bool tdsl_is_idle(const Setting *s, int32_t rank)
{
    return rank >= s->used;
}

void tdsl_grid_place(const Setting *s, int32_t rank, int32_t *at)
{
    for (int32_t a = 0; a < s->n_grid; a++) {
        at[a] = rank / s->grid.stride[a] % s->grid.size[a];
    }
}

int64_t tdsl_leaves_in(int64_t n, int64_t leaves)
{
    int64_t most = n < leaves ? n : leaves;
    return most < 1 ? 1 : most;
}

int64_t tdsl_leaf_first(int64_t n, int64_t leaves, int64_t leaf)
{
    return leaf * (n / leaves) + (leaf * (n % leaves) + leaves - 1) / leaves;
}

void tdsl_part_leaves(int64_t leaves, int64_t parts, int64_t part, int64_t *lo, int64_t *hi)
{
    *lo = tdsl_leaf_first(leaves, parts, part);
    *hi = tdsl_leaf_first(leaves, parts, part + 1);
}

/* Positions of part `part` of `parts`. */
static void part_range(int64_t n, int64_t leaves, int64_t parts, int64_t part, int64_t *lo,
                       int64_t *hi)
{
    int64_t all = tdsl_leaves_in(n, leaves), first = 0, last = 0;
    tdsl_part_leaves(all, parts, part, &first, &last);
    *lo = tdsl_leaf_first(n, all, first);
    *hi = tdsl_leaf_first(n, all, last);
}

void tdsl_arg_box(const Setting *s, int32_t arg, int32_t rank, Box *out)
{
    const tdsl_arg_info *info = &s->dist->kernel->args[arg];
    const tdsl_dist_arg *layout = &s->dist->args[arg];
    int32_t at[TDSL_DIST_AXES];
    tdsl_place_of(s, rank, at);
    out->rank = info->rank;
    out->none = false;
    for (int32_t d = 0; d < info->rank; d++) {
        int64_t n = tdsl_arg_extent(s, arg, d), parts = 1, part = 0, leaves = 0;
        for (int32_t k = 0; k < layout->n_pieces; k++) {
            const tdsl_dist_piece *piece = &layout->pieces[k];
            if (piece->dim == d) {
                part = part * s->mesh->size[piece->axis] + at[piece->axis];
                parts *= s->mesh->size[piece->axis];
                leaves = leaves == 0 ? piece->leaves : leaves;
            }
        }
        out->lo[d] = 0;
        out->hi[d] = n;
        if (leaves > 0) {
            part_range(n, leaves, parts, part, &out->lo[d], &out->hi[d]);
        }
    }
}

/* Slices: tuples of leaves of the cuts of a group are numbered, the first cut slowest. Those of a rank are [first, last); of cut
 * `cut` one leaf more is `stride` tuples more. */
static void slices_of(const Setting *s, int32_t cut, int32_t rank, int64_t *first,
                      int64_t *last, int64_t *stride)
{
    const tdsl_dist_cut *own = &s->dist->cuts[cut];
    int32_t at[TDSL_DIST_AXES];
    int64_t all = 1;
    *stride = 1;
    for (int32_t k = 0; k < s->dist->n_cuts; k++) {
        const tdsl_dist_cut *c = &s->dist->cuts[k];
        if (c->group == own->group) {
            int64_t leaves = tdsl_leaves_in(tdsl_extent_of(s, c->extent), c->leaves);
            all *= leaves;
            *stride *= k > cut ? leaves : 1;
        }
    }
    tdsl_grid_place(s, rank, at);
    tdsl_part_leaves(all, s->grid.size[own->axis], at[own->axis], first, last);
}

/* From the first leaf of a cut to the last that a range of tuples has. */
static void sliced_leaves(const Setting *s, int32_t cut, int32_t rank, int64_t *lo, int64_t *hi)
{
    const tdsl_dist_cut *c = &s->dist->cuts[cut];
    int64_t leaves = tdsl_leaves_in(tdsl_extent_of(s, c->extent), c->leaves);
    int64_t first = 0, last = 0, stride = 1;
    slices_of(s, cut, rank, &first, &last, &stride);
    *lo = *hi = 0;
    if (first < last) {
        int64_t turn = stride * leaves;
        bool some = first / turn == (last - 1) / turn;
        *lo = some ? first / stride % leaves : 0;
        *hi = some ? (last - 1) / stride % leaves + 1 : leaves;
    }
}

void tdsl_cut_leaves(const Setting *s, int32_t cut, int32_t rank, int64_t *lo, int64_t *hi)
{
    const tdsl_dist_cut *c = &s->dist->cuts[cut];
    int32_t at[TDSL_DIST_AXES];
    *lo = *hi = 0;
    if (tdsl_is_idle(s, rank)) {
        return;
    }
    tdsl_grid_place(s, rank, at);
    if (c->mate > 0) {
        PairPiece piece = tdsl_pairs_piece(&s->pairs, at[c->axis]);
        bool first = cut < c->mate - 1;
        *lo = first ? piece.row_lo : piece.col_lo;
        *hi = first ? piece.row_hi : piece.col_hi;
        return;
    }
    if (c->group > 0) {
        sliced_leaves(s, cut, rank, lo, hi);
        return;
    }
    int64_t all = tdsl_leaves_in(tdsl_extent_of(s, c->extent), c->leaves);
    tdsl_part_leaves(all, s->grid.size[c->axis], at[c->axis], lo, hi);
}

/* Are the slices at hand, if there are groups of them, some that the rank has? */
static bool has_slices(const Leaves *l)
{
    int64_t number = 0;
    for (int32_t k = 0; k < l->n; k++) {
        bool begins = k == 0 || l->group[k - 1] != l->group[k];
        bool ends = k + 1 == l->n || l->group[k + 1] != l->group[k];
        number = begins ? l->at[k] : number * l->all[k] + l->at[k];
        if (l->group[k] > 0 && ends && (number < l->first[k] || number >= l->last[k])) {
            return false;
        }
    }
    return true;
}

/* Is the leaf at hand, of those between the first and the last of each cut, one that the rank has? */
static bool has_leaf(const Leaves *l)
{
    return has_slices(l) &&
           (l->row < 0 || tdsl_pairs_has(&l->piece, l->at[l->row], l->at[l->column]));
}

bool tdsl_leaves_begin(const Setting *s, int32_t n, const int32_t *cuts, int32_t rank,
                       Leaves *out)
{
    bool any = !tdsl_is_idle(s, rank);
    out->n = n;
    out->row = out->column = -1;
    for (int32_t k = 0; k < n; k++) {
        const tdsl_dist_cut *cut = &s->dist->cuts[cuts[k]];
        if (cut->mate > 0) {
            int32_t at[TDSL_DIST_AXES];
            tdsl_grid_place(s, rank, at);
            out->piece = tdsl_pairs_piece(&s->pairs, at[cut->axis]);
            *(cuts[k] < cut->mate - 1 ? &out->row : &out->column) = k;
        }
        tdsl_cut_leaves(s, cuts[k], rank, &out->lo[k], &out->hi[k]);
        out->all[k] = tdsl_leaves_in(tdsl_extent_of(s, cut->extent), cut->leaves);
        out->at[k] = out->lo[k];
        out->group[k] = cut->group;
        if (cut->group > 0) {
            int64_t stride = 1;
            slices_of(s, cuts[k], rank, &out->first[k], &out->last[k], &stride);
        }
        any = any && out->lo[k] < out->hi[k];
    }
    return any && (has_leaf(out) || tdsl_leaves_next(out));
}

static bool advance(Leaves *l)
{
    for (int32_t k = l->n; k-- > 0;) {
        if (++l->at[k] < l->hi[k]) {
            return true;
        }
        l->at[k] = l->lo[k];
    }
    return false;
}

bool tdsl_leaves_next(Leaves *l)
{
    bool more = advance(l);
    while (more && !has_leaf(l)) {
        more = advance(l);
    }
    return more;
}

bool tdsl_leaves_twice(const Leaves *l)
{
    return l->row >= 0 && l->at[l->row] != l->at[l->column];
}

int64_t tdsl_leaves_number(const Leaves *l)
{
    int64_t number = 0;
    for (int32_t k = 0; k < l->n; k++) {
        number = number * l->all[k] + l->at[k];
    }
    return number;
}

static bool is_spread(const tdsl_dist_value *v)
{
    return v->fold == TDSL_FOLD_NONE && v->n_over > 0;
}

void tdsl_value_box(const Setting *s, int32_t value, int32_t rank, Box *out)
{
    const tdsl_dist_value *v = &s->dist->values[value];
    out->rank = v->rank;
    out->none = tdsl_is_idle(s, rank);
    for (int32_t d = 0; d < v->rank; d++) {
        int64_t n = tdsl_extent_of(s, v->extents[d]), lo = 0, hi = 0;
        out->lo[d] = 0;
        out->hi[d] = n;
        if (v->cuts[d] >= 0) {
            int64_t all = tdsl_leaves_in(n, s->dist->cuts[v->cuts[d]].leaves);
            tdsl_cut_leaves(s, v->cuts[d], rank, &lo, &hi);
            out->lo[d] = tdsl_leaf_first(n, all, lo);
            out->hi[d] = tdsl_leaf_first(n, all, hi);
        }
    }
    if (is_spread(v)) {
        int64_t d = v->spread, lo = out->lo[d], n = out->hi[d] - lo, parts = 1, part = 0;
        int32_t at[TDSL_DIST_AXES];
        tdsl_grid_place(s, rank, at);
        for (int32_t k = 0; k < v->n_over; k++) {
            const tdsl_dist_cut *cut = &s->dist->cuts[v->over[k]];
            if (cut->group > 0 && cut->group != v->over[k] + 1) {
                continue; /* all slices of a group are over one axis */
            }
            int32_t axis = cut->axis;
            part = part * s->grid.size[axis] + at[axis];
            parts *= s->grid.size[axis];
        }
        out->lo[d] = lo + tdsl_leaf_first(n, parts, part);
        out->hi[d] = lo + tdsl_leaf_first(n, parts, part + 1);
    }
}

void tdsl_leaf_box(const Setting *s, int32_t value, int32_t cut, int32_t rank, int64_t leaf,
                   Box *box)
{
    const tdsl_dist_value *v = &s->dist->values[value];
    int64_t n = tdsl_extent_of(s, s->dist->cuts[cut].extent), lo = 0, hi = 0;
    int64_t all = tdsl_leaves_in(n, s->dist->cuts[cut].leaves);
    tdsl_cut_leaves(s, cut, rank, &lo, &hi);
    box->none = box->none || lo + leaf >= hi;
    for (int32_t d = 0; d < v->rank; d++) {
        if (v->cuts[d] == cut) {
            box->lo[d] = tdsl_leaf_first(n, all, lo + leaf);
            box->hi[d] = tdsl_leaf_first(n, all, lo + leaf + 1);
        }
    }
}

uint32_t tdsl_arg_axes(const Setting *s, int32_t arg)
{
    uint32_t axes = 0;
    for (int32_t k = 0; k < s->dist->args[arg].n_pieces; k++) {
        axes |= 1u << s->dist->args[arg].pieces[k].axis;
    }
    return axes;
}

uint32_t tdsl_value_axes(const Setting *s, int32_t value)
{
    const tdsl_dist_value *v = &s->dist->values[value];
    uint32_t axes = 0;
    for (int32_t d = 0; d < v->rank; d++) {
        axes |= v->cuts[d] >= 0 ? 1u << s->dist->cuts[v->cuts[d]].axis : 0;
    }
    for (int32_t k = 0; is_spread(v) && k < v->n_over; k++) {
        axes |= 1u << s->dist->cuts[v->over[k]].axis;
    }
    return axes;
}

/* Have all ranks the same of dimension d, which an argument has cut by this piece, and the value by this cut? */
static bool is_same_part(const Setting *s, int64_t n, const tdsl_dist_piece *piece,
                         const tdsl_dist_cut *cut)
{
    int32_t parts = s->mesh->size[piece->axis], stride = 1;
    for (int32_t a = s->mesh->n_axes - 1; a > piece->axis; a--) {
        stride *= s->mesh->size[a];
    }
    bool same = cut->mate == 0 && cut->group == 0 && s->grid.size[cut->axis] == parts &&
                s->grid.stride[cut->axis] == stride;
    for (int64_t p = 1; same && p < parts && piece->leaves != cut->leaves; p++) {
        int64_t lo[2] = {0}, hi = 0;
        part_range(n, piece->leaves, parts, p, &lo[0], &hi);
        part_range(n, cut->leaves, parts, p, &lo[1], &hi);
        same = lo[0] == lo[1];
    }
    return same;
}

bool tdsl_is_same_layout(const Setting *s, int32_t arg, int32_t value)
{
    const tdsl_dist_value *v = &s->dist->values[value];
    const tdsl_dist_arg *layout = &s->dist->args[arg];
    for (int32_t d = 0; d < v->rank; d++) {
        const tdsl_dist_cut *cut = v->cuts[d] < 0 ? NULL : &s->dist->cuts[v->cuts[d]];
        const tdsl_dist_piece *of = NULL;
        int32_t n = 0;
        for (int32_t k = 0; k < layout->n_pieces; k++) {
            if (layout->pieces[k].dim == d && s->mesh->size[layout->pieces[k].axis] > 1) {
                of = &layout->pieces[k];
                n++;
            }
        }
        bool whole = cut == NULL || (s->grid.size[cut->axis] == 1 && cut->mate == 0);
        if (whole ? n > 0 : n != 1 || !is_same_part(s, tdsl_arg_extent(s, arg, d), of, cut)) {
            return false;
        }
    }
    return layout->partial == 0;
}
