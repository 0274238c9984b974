/* SPDX-License-Identifier: Apache-2.0 */
/* Among how many parts each axis of the grid shares out work: all products of sizes up to the number of ranks are priced, by the bytes that ranks
 * lack, the work of each and the leaves that are added up; the best few also with the axes in other orders, which decide who is where. All ranks
 * find the same. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

/* Grids that are kept: those that are tried in all orders, and those among which a limit of memory has to be met. */
#define ORDERED 8
#define KEPT    64
/* More axes than these stay in the order of the plan. */
#define ORDERED_AXES 3

/* Of more ranks than these memory is counted for the first few grids. */
#define MANY 1024

/* So many ranks of a grid are looked at, and of the best ones. */
#define SAMPLED      3
#define SAMPLED_BEST 16

typedef struct Model {
    const Setting *s;
    tdsl_dist_machine machine;
    int32_t sampled;
} Model;

static double element_size(const Setting *s, int32_t value)
{
    return (double)tdsl_dtype_size(s->dist->values[value].dtype);
}

/* Elements of one box that the other has not. */
static double lacks(const Box *want, const Box *have)
{
    Box both;
    double all = (double)tdsl_box_count(want);
    return tdsl_box_meet(want, have, &both) ? all - (double)tdsl_box_count(&both) : all;
}

/* ---- one rank ---- */

typedef struct Price {
    double bytes, messages, work;
    double copied, added; /* bytes of its own memory: as it moves, as it computes */
} Price;

/* In how many parts a value is read. */
static double panels_of(const Model *m, const tdsl_dist_step *read, int32_t rank)
{
    const tdsl_dist_value *v = &m->s->dist->values[read->value];
    int64_t lo = 0, hi = 1;
    for (const tdsl_dist_step *s = read;
         read->by_leaf != 0 && s < m->s->dist->steps + m->s->dist->n_steps; s++) {
        for (int32_t k = 0; s->kind == TDSL_STEP_LOCAL && k < s->kernel->n_args; k++) {
            if (s->values[k] == read->value && v->rank > 0) {
                tdsl_cut_leaves(m->s, s->over[0], rank, &lo, &hi);
            }
        }
    }
    return (double)(hi - lo);
}

static void price_transfer(const Model *m, const tdsl_dist_step *step, int32_t rank, Price *p)
{
    Box value, arg;
    bool read = step->kind == TDSL_STEP_READ;
    if (read && tdsl_is_same_layout(m->s, step->arg, step->value)) {
        return;
    }
    tdsl_value_box(m->s, step->value, rank, &value);
    tdsl_arg_box(m->s, step->arg, rank, &arg);
    double more = read ? lacks(&value, &arg) : lacks(&arg, &value);
    p->bytes += more * element_size(m->s, step->value);
    p->messages += more > 0 ? panels_of(m, step, rank) : 0;
    if (read || tdsl_place_of_value(m->s, step->value) != step) { /* its own part is copied */
        double own = (double)tdsl_box_count(read ? &value : &arg) - more;
        p->copied += 2 * own * element_size(m->s, step->value);
    }
}

/* Leaves that a rank has of cut k, or of all that are dealt together with it; of these 1 but for one of them. */
static int64_t leaves_along(const Leaves *l, int32_t k)
{
    if (l->group[k] > 0) {
        bool first = k == 0 || l->group[k - 1] != l->group[k];
        return first ? l->last[k] - l->first[k] : 1;
    }
    return k == l->column ? 1
           : k == l->row  ? l->piece.last - l->piece.first
                          : l->hi[k] - l->lo[k];
}

static int64_t calls_of(const Model *m, const tdsl_dist_step *step, int32_t rank)
{
    Leaves l;
    int64_t calls = 1;
    if (!tdsl_leaves_begin(m->s, step->n_over, step->over, rank, &l)) {
        return 0;
    }
    for (int32_t k = 0; k < l.n; k++) {
        calls *= leaves_along(&l, k);
    }
    return calls;
}

/* A dim of a local kernel in a call: of a cut that it is called leaf by leaf for, a leaf. */
static int64_t dim_of(const Model *m, const tdsl_dist_step *step, const tdsl_dist_dim *d,
                      int32_t rank)
{
    int64_t lo = 0, hi = 0;
    if (d->cut < 0) {
        return tdsl_extent_of(m->s, *d);
    }
    const tdsl_dist_cut *cut = &m->s->dist->cuts[d->cut];
    int64_t n = tdsl_extent_of(m->s, cut->extent), leaves = tdsl_leaves_in(n, cut->leaves);
    tdsl_cut_leaves(m->s, d->cut, rank, &lo, &hi);
    for (int32_t k = 0; k < step->n_over; k++) {
        if (step->over[k] == d->cut) {
            return (n + leaves - 1) / leaves;
        }
    }
    return tdsl_leaf_first(n, leaves, hi) - tdsl_leaf_first(n, leaves, lo);
}

static void price_local(const Model *m, const tdsl_dist_step *step, int32_t rank, Price *p)
{
    int64_t dims[TDSL_MAX_DIMS], calls = tdsl_is_idle(m->s, rank) ? 0 : calls_of(m, step, rank);
    for (int32_t k = 0; k < step->kernel->n_dims; k++) {
        dims[k] = dim_of(m, step, &step->dims[k], rank);
    }
    double work = m->machine.work != NULL ? m->machine.work(m->machine.user, step->kernel, dims)
                  : step->kernel->multiply_adds != NULL
                      ? (double)step->kernel->multiply_adds(dims)
                      : 0;
    p->work += work * (double)calls;
    for (int32_t k = 0; step->n_over > 0 && k < step->kernel->n_args; k++) {
        Box box;
        if (step->kernel->args[k].role == TDSL_OUT && calls > 1) { /* both read, one written */
            tdsl_value_box(m->s, step->values[k], rank, &box);
            p->added += 3.0 * (double)((calls - 1) * tdsl_box_count(&box)) *
                        element_size(m->s, step->values[k]);
        }
    }
}

/* Terms of a value that a rank has when its leaves are added up: mostly one. */
static double terms_of(const Model *m, const tdsl_dist_value *v, int32_t rank)
{
    Leaves l;
    double terms = 1;
    if (!tdsl_leaves_begin(m->s, v->n_over, v->over, rank, &l)) {
        return 0;
    }
    for (int32_t k = 0; k < l.n; k++) {
        if (l.group[k] > 0) {
            terms *= leaves_along(&l, k) > 1 ? 2 : 1;
            continue;
        }
        int64_t n = l.hi[k] - l.lo[k];
        bool one = n == l.all[k] || ((n & (n - 1)) == 0 && l.lo[k] % n == 0);
        terms *= k == l.row || k == l.column || one ? 1 : 2;
    }
    return l.row < 0 ? terms : (double)(l.piece.last - l.piece.first);
}

static void price_reduce(const Model *m, const tdsl_dist_step *step, int32_t rank, Price *p)
{
    const tdsl_dist_value *v = &m->s->dist->values[step->value];
    uint32_t axes = 0;
    double members = 1;
    Box box;
    for (int32_t k = 0; k < v->n_over; k++) {
        int32_t axis = m->s->dist->cuts[v->over[k]].axis;
        members *= (axes >> axis & 1) != 0 ? 1 : m->s->grid.size[axis];
        axes |= 1u << axis;
    }
    tdsl_value_box(m->s, step->value, rank, &box);
    double bytes = (double)tdsl_box_count(&box) * element_size(m->s, step->value);
    double others = (members - 1) * terms_of(m, v, rank) * bytes;
    bool spread = m->s->dist->values[step->complete].n_over > 0;
    bool whole = !spread && members * bytes <= TDSL_WHOLE_BYTES;
    p->bytes += whole ? others : others / members;
    p->bytes += whole || spread ? 0 : bytes * (members - 1) / members;
    p->copied += whole ? 3 * others : 3 * others / members;
    p->messages += members > 1 ? (whole || spread ? 1 : 2) : 0;
}

static Price price_rank(const Model *m, int32_t rank)
{
    Price p = {0};
    for (int32_t k = 0; k < m->s->dist->n_steps; k++) {
        const tdsl_dist_step *step = &m->s->dist->steps[k];
        switch (step->kind) {
        case TDSL_STEP_LOCAL:
            price_local(m, step, rank, &p);
            break;
        case TDSL_STEP_REDUCE:
            price_reduce(m, step, rank, &p);
            break;
        default:
            price_transfer(m, step, rank, &p);
        }
    }
    return p;
}

/* Of the ranks that are looked at each has to wait for the slowest, in all that it does. */
static void predict(const Model *m, tdsl_dist_choice *c)
{
    c->moving = c->computing = 0;
    int32_t n = m->s->ranks < m->sampled ? m->s->ranks : m->sampled;
    for (int32_t k = 0; k < n; k++) { /* from the first to the last */
        Price p =
            price_rank(m, n == 1 ? 0 : (int32_t)((int64_t)(m->s->ranks - 1) * k / (n - 1)));
        double moving = p.bytes / m->machine.bandwidth + p.messages * m->machine.latency +
                        p.copied / m->machine.memory;
        double computing = p.work / m->machine.rate + p.added / m->machine.memory;
        c->moving = moving > c->moving ? moving : c->moving;
        c->computing = computing > c->computing ? computing : c->computing;
    }
}

/* ---- all grids ---- */

typedef struct Best {
    Setting *s;
    Model model;
    int64_t reach;        /* ranks that can have work at once */
    tdsl_dist_choice *at; /* [most] */
    int32_t most, n;
} Best;

static double seconds(const tdsl_dist_choice *c)
{
    return c->moving + c->computing;
}

/* Strides of axes from slow to fast. */
static void set_strides(tdsl_grid *grid, int32_t n, const int32_t *order)
{
    int32_t stride = 1;
    for (int32_t k = n; k-- > 0;) {
        grid->stride[order[k]] = stride;
        stride *= grid->size[order[k]];
    }
}

static void try_grid(Best *b, const tdsl_grid *grid)
{
    tdsl_dist_choice c = {.grid = *grid};
    if (tdsl_setting_grid(b->s, grid) != TDSL_OK) {
        return;
    }
    predict(&b->model, &c);
    int32_t at = b->n;
    for (int32_t k = 0; k < b->n; k++) {
        if (memcmp(&b->at[k].grid, grid, sizeof *grid) == 0) {
            return;
        }
    }
    while (at > 0 && seconds(&c) < seconds(&b->at[at - 1])) {
        at--;
    }
    for (int32_t k = b->n < b->most ? b->n : b->most - 1; k > at; k--) {
        b->at[k] = b->at[k - 1];
    }
    if (at < b->most) {
        b->at[at] = c;
        b->n += b->n < b->most ? 1 : 0;
    }
}

/* As many parts as an axis may have: leaves, or pairs of leaves. */
static int64_t parts_most(const Setting *s, int32_t axis)
{
    int64_t most = s->dist->n_grid == 0 ? s->ranks : 1, before = 1;
    for (int32_t k = 0; k < s->dist->n_cuts; k++) {
        const tdsl_dist_cut *cut = &s->dist->cuts[k];
        int64_t leaves = tdsl_leaves_in(tdsl_extent_of(s, cut->extent), cut->leaves);
        leaves = cut->mate > 0 ? leaves * (leaves + 1) / 2 : leaves;
        before = cut->group > 0 && cut->group <= k ? before : 1;
        leaves *= before; /* of slices all tuples */
        before = leaves;
        most = cut->axis == axis && leaves > most ? leaves : most;
    }
    return most < s->ranks ? most : s->ranks;
}

/* Sizes of axes from `axis` on, with so many ranks left for them. */
static void try_sizes(Best *b, tdsl_grid *grid, int32_t axis, int32_t left, int32_t used)
{
    static const int32_t natural[TDSL_DIST_AXES] = {0, 1, 2, 3, 4, 5, 6, 7};
    const Setting *s = b->s;
    if (axis == s->n_grid) {
        if (used > b->reach / 2 ||
            used == 1) { /* with fewer all is slower, unless one is best */
            set_strides(grid, s->n_grid, natural);
            try_grid(b, grid);
        }
        return;
    }
    int64_t most = parts_most(s, axis);
    most = most < left ? most : left;
    for (int64_t size = most; size >= 1; size--) {
        bool last = axis + 1 == s->n_grid; /* it has as many parts as there can be, or one */
        bool wasted = left / (left / size) > size; /* more parts leave as many for the others */
        if (size == most || size == 1 || (!last && !wasted)) {
            grid->size[axis] = (int32_t)size;
            try_sizes(b, grid, axis + 1, left / (int32_t)size, used * (int32_t)size);
        }
    }
}

/* All orders of the axes from number k on. */
static void try_orders(Best *b, const tdsl_grid *grid, int32_t *order, int32_t k)
{
    if (k == b->s->n_grid || b->s->n_grid > ORDERED_AXES) {
        tdsl_grid other = *grid;
        set_strides(&other, b->s->n_grid, order);
        try_grid(b, &other);
        return;
    }
    for (int32_t i = k; i < b->s->n_grid; i++) {
        int32_t x = order[k];
        order[k] = order[i];
        order[i] = x;
        try_orders(b, grid, order, k + 1);
        order[i] = order[k];
        order[k] = x;
    }
}

static void try_all(Best *b)
{
    tdsl_grid grid = {{0}, {0}};
    int32_t order[TDSL_DIST_AXES];
    b->reach = 1;
    for (int32_t a = 0; a < b->s->n_grid; a++) {
        b->reach *= parts_most(b->s, a);
        b->reach = b->reach < b->s->ranks ? b->reach : b->s->ranks;
    }
    try_sizes(b, &grid, 0, b->s->ranks, 1);
    int32_t n = b->n < ORDERED ? b->n : ORDERED, rest = b->n - n;
    tdsl_dist_choice others[KEPT];
    for (int32_t k = 0; k < b->n; k++) {
        others[k] = b->at[k];
    }
    b->n = 0;
    b->model.sampled = SAMPLED_BEST;
    for (int32_t k = 0; k < n; k++) {
        for (int32_t a = 0; a < b->s->n_grid; a++) {
            order[a] = a;
        }
        try_orders(b, &others[k].grid, order, 0);
    }
    for (int32_t k = 0; k < rest && b->n < b->most;
         k++) { /* behind those that are looked at more closely */
        b->at[b->n++] = others[n + k];
    }
}

static const tdsl_dist_machine node = TDSL_DIST_NODE;

/* The best grids of a setting, at[KEPT]; how many. */
static int32_t find_grids(const Setting *s, const tdsl_dist_machine *machine,
                          tdsl_dist_choice *at)
{
    Setting tried = *s;
    Best b = {.s = &tried, .model = {&tried, *machine, SAMPLED}, .at = at, .most = KEPT};
    try_all(&b);
    return b.n;
}

tdsl_status tdsl_dist_choose(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                             const int64_t *dims, uint64_t limit,
                             const tdsl_dist_machine *machine, int32_t most,
                             tdsl_dist_choice *out, int32_t *n)
{
    int64_t all[TDSL_MAX_DIMS];
    tdsl_dist_choice at[KEPT];
    Setting s;
    *n = 0;
    tdsl_status status = tdsl_setting_make(dist, mesh, dims, all, &s);
    int32_t found =
        status == TDSL_OK ? find_grids(&s, machine != NULL ? machine : &node, at) : 0;
    uint64_t least = UINT64_MAX;
    int32_t fitting = 0;
    found = limit > 0 && s.ranks > MANY && found > ORDERED ? ORDERED : found;
    for (int32_t k = 0; k < found && fitting < most; k++) {
        tdsl_mesh tried = *mesh;
        tdsl_dist_count count = {0};
        tried.grid = at[k].grid;
        status = limit > 0 ? tdsl_dist_measure(dist, &tried, 0, dims, &count) : TDSL_OK;
        if (status != TDSL_OK) {
            return status;
        }
        uint64_t memory = count.arguments + count.workspace;
        if (limit == 0 || memory <= limit) {
            out[fitting++] = at[k];
        } else if (fitting == 0 && memory < least) {
            out[0] = at[k];
            least = memory;
        }
    }
    *n = fitting > 0 ? fitting : found > 0 ? 1 : 0;
    return status;
}

tdsl_status tdsl_dist_predict(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                              const int64_t *dims, const tdsl_dist_machine *machine,
                              tdsl_dist_choice *out)
{
    int64_t all[TDSL_MAX_DIMS];
    Setting s;
    tdsl_status status = tdsl_setting_make(dist, mesh, dims, all, &s);
    out->grid = mesh->grid;
    if (status == TDSL_OK && mesh->grid.size[0] == 0) {
        out->grid = tdsl_grid_best(&s);
    }
    status = status == TDSL_OK ? tdsl_setting_grid(&s, &out->grid) : status;
    if (status == TDSL_OK) {
        predict(&(Model){&s, machine != NULL ? *machine : node, SAMPLED_BEST}, out);
    }
    return status;
}

/* Grids that a thread has found, each at the place of its hash: calls are of few kernels and sizes again and again. */
#define KNOWN 8

typedef struct Known {
    uint64_t hash; /* 0: none */
    tdsl_grid grid;
} Known;

tdsl_grid tdsl_grid_best(const Setting *s)
{
    static _Thread_local Known known[KNOWN];
    uint64_t hash = tdsl_setting_hash(s) ^ (uint64_t)(uintptr_t)s->dist;
    Known *k = &known[(hash >> 32) % KNOWN];
    if (k->hash != (hash | 1)) {
        tdsl_dist_choice at[KEPT];
        (void)find_grids(s, &node, at);
        *k = (Known){hash | 1, at[0].grid};
    }
    return k->grid;
}
