/* SPDX-License-Identifier: Apache-2.0 */
/* A call on ranks: the steps of the table, first counted, then taken. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Numbers that all ranks have alike, or one of them is wrong. */
#define ALIKE 3

static bool mesh_fits(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t *ranks)
{
    int64_t product = 1;
    bool ok = mesh != NULL && mesh->n_axes >= dist->n_axes && mesh->n_axes <= TDSL_DIST_AXES;
    for (int32_t a = 0; ok && a < mesh->n_axes; a++) {
        ok = mesh->size[a] > 0 && product <= INT32_MAX / mesh->size[a];
        product *= ok ? mesh->size[a] : 1;
    }
    *ranks = (int32_t)product;
    return ok;
}

/* Bytes with one more extent; false: too many for several such arrays. */
static bool multiply_bytes(int64_t *bytes, int64_t extent)
{
    bool fits = extent <= 0 || *bytes <= INT64_MAX / 1024 / extent;
    *bytes *= fits && extent > 0 ? extent : 1;
    return fits;
}

static bool sizes_fit(const Setting *s)
{
    const tdsl_kernel_info *k = s->dist->kernel;
    for (int32_t a = 0; a < k->n_args; a++) {
        int64_t bytes = tdsl_dtype_size(k->args[a].dtype);
        for (int32_t d = 0; d < k->args[a].rank; d++) {
            if (!multiply_bytes(&bytes, tdsl_arg_extent(s, a, d))) {
                return false;
            }
        }
    }
    for (int32_t v = 0; v < s->dist->n_values; v++) {
        const tdsl_dist_value *value = &s->dist->values[v];
        int64_t bytes = tdsl_dtype_size(value->dtype);
        for (int32_t d = 0; d < value->rank; d++) {
            if (!multiply_bytes(&bytes, tdsl_extent_of(s, value->extents[d]))) {
                return false;
            }
        }
    }
    return true;
}

/* Extents of all dims into all[TDSL_MAX_DIMS]. */
static tdsl_status complete(const tdsl_dist_info *dist, const int64_t *dims, int64_t *all)
{
    const tdsl_kernel_info *k = dist->kernel;
    int32_t dim = 0;
    int64_t value = 0;
    if (k->n_dims + k->n_computed > TDSL_MAX_DIMS) {
        return TDSL_E_OVERFLOW;
    }
    for (int32_t d = 0; d < k->n_dims + k->n_computed; d++) {
        all[d] = d < k->n_dims ? dims[d] : DIM_UNBOUND;
        if (d < k->n_dims && all[d] < 0) {
            return TDSL_E_SHAPE;
        }
    }
    if (k->n_computed == 0) {
        return TDSL_OK;
    }
    switch (tdsl_extents_complete(k, all, &dim, &value)) {
    case EXTENT_GOOD:
        return TDSL_OK;
    case EXTENT_OVERFLOW:
        return TDSL_E_OVERFLOW;
    default:
        return TDSL_E_SHAPE;
    }
}

/* Mates are one pair of cuts alike, the second of which names the first and the other way round. */
static bool make_pairs(Setting *s)
{
    int32_t mates = 0;
    for (int32_t k = 0; k < s->dist->n_cuts; k++) {
        const tdsl_dist_cut *cut = &s->dist->cuts[k];
        if (cut->mate == 0) {
            continue;
        }
        const tdsl_dist_cut *other = &s->dist->cuts[cut->mate - 1];
        int64_t n = tdsl_leaves_in(tdsl_extent_of(s, cut->extent), cut->leaves);
        if (mates++ > 1 || other->mate != k + 1 || other->axis != cut->axis ||
            n > TDSL_PAIR_LEAVES) {
            return false;
        }
        tdsl_pairs_make(&s->pairs, n, s->grid.size[cut->axis]);
    }
    return true;
}

/* A grid that has a rank for each place. */
static bool grid_fits(Setting *s)
{
    int64_t used = 1;
    for (int32_t a = 0; a < s->n_grid; a++) {
        if (s->grid.size[a] < 1 || s->grid.size[a] > s->ranks) {
            return false;
        }
        used *= s->grid.size[a];
        if (used > s->ranks) {
            return false;
        }
    }
    s->used = (int32_t)used;
    for (int32_t a = 0; a < s->n_grid;
         a++) { /* below an axis there are those of smaller strides */
        int64_t below = 1;
        for (int32_t b = 0; b < s->n_grid; b++) {
            bool under = s->grid.size[b] > 1 && s->grid.stride[b] < s->grid.stride[a];
            below *= under ? s->grid.size[b] : 1;
        }
        if (s->grid.stride[a] < 1 || (s->grid.size[a] > 1 && s->grid.stride[a] != below)) {
            return false;
        }
    }
    return true;
}

tdsl_status tdsl_setting_make(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                              const int64_t *dims, int64_t *all, Setting *s)
{
    if (dist == NULL || dist->version != TDSL_DIST_VERSION ||
        dist->struct_size < sizeof *dist || dist->kernel->abi_version < TDSL_ABI_VERSION) {
        return dist == NULL ? TDSL_E_ARGUMENT : TDSL_E_ABI;
    }
    *s = (Setting){.dist = dist, .mesh = mesh, .all = all};
    s->n_grid = dist->n_grid > 0 ? dist->n_grid : 1;
    if (!mesh_fits(dist, mesh, &s->ranks) || (dist->kernel->n_dims > 0 && dims == NULL) ||
        s->n_grid > TDSL_DIST_AXES) {
        return TDSL_E_ARGUMENT;
    }
    tdsl_status status = complete(dist, dims, all);
    return status == TDSL_OK && !sizes_fit(s) ? TDSL_E_OVERFLOW : status;
}

tdsl_status tdsl_setting_grid(Setting *s, const tdsl_grid *grid)
{
    s->grid = *grid;
    return !grid_fits(s) ? TDSL_E_ARGUMENT : !make_pairs(s) ? TDSL_E_ABI : TDSL_OK;
}

/* With the mesh's grid, or the best one. */
static tdsl_status setting_make(const tdsl_dist_info *dist, const tdsl_mesh *mesh,
                                const int64_t *dims, int64_t *all, Setting *s)
{
    tdsl_status status = tdsl_setting_make(dist, mesh, dims, all, s);
    tdsl_grid grid;
    if (status != TDSL_OK) {
        return status;
    }
    grid = mesh->grid.size[0] != 0 ? mesh->grid : tdsl_grid_best(s);
    return tdsl_setting_grid(s, &grid);
}

/* The most nodes that a value, or an argument with terms, has on all ranks. */
static int64_t nodes_most(const Setting *s)
{
    int64_t most = s->ranks;
    for (int32_t v = 0; v < s->dist->n_values; v++) {
        const tdsl_dist_value *value = &s->dist->values[v];
        int64_t leaves = 1;
        for (int32_t k = 0; k < value->n_over; k++) {
            const tdsl_dist_cut *cut = &s->dist->cuts[value->over[k]];
            leaves *= tdsl_leaves_in(tdsl_extent_of(s, cut->extent), cut->leaves);
        }
        most = leaves > most ? leaves : most;
    }
    return most + 1;
}

static void walk_free(Walk *w)
{
    free(w->value);
    free(w->terms);
    free((void *)w->read);
    free(w->scratch);
    free(w->send);
    free(w->receive);
}

/* Lists that are small beside what is computed. */
static tdsl_status walk_make(Walk *w, const Setting *s, int32_t rank)
{
    int64_t nodes = nodes_most(s);
    size_t ranks = (size_t)s->ranks, values = (size_t)s->dist->n_values + 1;
    *w = (Walk){.setting = *s, .rank = rank, .scratch_half = nodes};
    w->value = calloc(values, sizeof *w->value);
    w->terms = calloc(values, sizeof *w->terms);
    w->read = calloc(values, sizeof *w->read);
    w->scratch = calloc((size_t)nodes * 2, sizeof *w->scratch);
    w->send = calloc(ranks, sizeof *w->send);
    w->receive = calloc(ranks, sizeof *w->receive);
    if (w->value == NULL || w->terms == NULL || w->read == NULL || w->scratch == NULL ||
        w->send == NULL || w->receive == NULL) {
        walk_free(w);
        *w = (Walk){0};
        return TDSL_E_MEMORY;
    }
    return TDSL_OK;
}

double tdsl_walk_clock(const Walk *w)
{
    struct timespec t = {0, 0};
    if (w->comm != NULL) {
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
    }
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A failure of a local kernel is kept until all ranks have taken all steps; one of the communicator is not. */
static tdsl_status take_steps(Walk *w, tdsl_status *local)
{
    double start = tdsl_walk_clock(w);
    for (int32_t k = 0; k < w->setting.dist->n_steps; k++) {
        const tdsl_dist_step *step = &w->setting.dist->steps[k];
        tdsl_status status = TDSL_OK;
        switch (step->kind) {
        case TDSL_STEP_READ:
            status = tdsl_walk_read(w, step);
            break;
        case TDSL_STEP_WRITE:
            status = tdsl_walk_write(w, step);
            break;
        case TDSL_STEP_REDUCE:
            status = tdsl_walk_reduce(w, step);
            break;
        default:
            status = tdsl_walk_local(w, step, local);
        }
        if (status != TDSL_OK) {
            return status;
        }
    }
    w->count.moving = tdsl_walk_clock(w) - start - w->count.computing;
    return TDSL_OK;
}

static tdsl_status measure(const Setting *s, int32_t rank, const tdsl_threads *threads,
                           tdsl_dist_count *count)
{
    Walk w;
    tdsl_status local = TDSL_OK, status = walk_make(&w, s, rank);
    if (status != TDSL_OK) {
        return status;
    }
    w.threads = threads;
    status = take_steps(&w, &local);
    *count = w.count;
    count->workspace = w.most;
    count->arguments = 0;
    for (int32_t a = 0; a < s->dist->kernel->n_args; a++) {
        Box box;
        tdsl_arg_box(s, a, rank, &box);
        count->arguments +=
            (uint64_t)(tdsl_box_count(&box) * tdsl_dtype_size(s->dist->kernel->args[a].dtype));
    }
    walk_free(&w);
    return status == TDSL_OK ? local : status;
}

tdsl_status tdsl_dist_measure(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
                              const int64_t *dims, tdsl_dist_count *count)
{
    int64_t all[TDSL_MAX_DIMS];
    Setting s;
    tdsl_status status = setting_make(dist, mesh, dims, all, &s);
    if (status == TDSL_OK && (rank < 0 || rank >= s.ranks || count == NULL)) {
        status = TDSL_E_ARGUMENT;
    }
    return status == TDSL_OK ? measure(&s, rank, NULL, count) : status;
}

tdsl_range tdsl_dist_block(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
                           const int64_t *dims, int32_t arg, int32_t dim)
{
    int64_t all[TDSL_MAX_DIMS];
    Setting s;
    Box box;
    if (tdsl_setting_make(dist, mesh, dims, all, &s) != TDSL_OK || rank < 0 ||
        rank >= s.ranks || arg < 0 || arg >= dist->kernel->n_args || dim < 0 ||
        dim >= dist->kernel->args[arg].rank) {
        return (tdsl_range){0, 0};
    }
    tdsl_arg_box(&s, arg, rank, &box);
    return (tdsl_range){box.lo[dim], box.hi[dim] - box.lo[dim]};
}

tdsl_range tdsl_dist_part(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
                          const int64_t *dims, int32_t cut)
{
    int64_t all[TDSL_MAX_DIMS], lo = 0, hi = 0;
    Setting s;
    if (setting_make(dist, mesh, dims, all, &s) != TDSL_OK || rank < 0 || rank >= s.ranks ||
        cut < 0 || cut >= dist->n_cuts) {
        return (tdsl_range){0, 0};
    }
    int64_t n = tdsl_extent_of(&s, dist->cuts[cut].extent);
    int64_t leaves = tdsl_leaves_in(n, dist->cuts[cut].leaves);
    tdsl_cut_leaves(&s, cut, rank, &lo, &hi);
    int64_t first = tdsl_leaf_first(n, leaves, lo);
    return (tdsl_range){first, tdsl_leaf_first(n, leaves, hi) - first};
}

/* ---- all ranks as one ---- */

static uint64_t mix(uint64_t h, int64_t n)
{
    return (h ^ (uint64_t)n) * 1099511628211u;
}

uint64_t tdsl_setting_hash(const Setting *s)
{
    uint64_t h = 1469598103934665603u;
    const char *text = s->dist->kernel->digest;
    for (; text != NULL && *text != '\0'; text++) {
        h = mix(h, (unsigned char)*text);
    }
    for (int32_t d = 0; d < s->dist->kernel->n_dims; d++) {
        h = mix(h, s->all[d]);
    }
    for (int32_t a = 0; a < s->mesh->n_axes; a++) {
        h = mix(h, s->mesh->size[a]);
    }
    return h;
}

/* A number that differs where plan, sizes, mesh or grid do. */
static int64_t digest(const Setting *s)
{
    uint64_t h = tdsl_setting_hash(s);
    for (int32_t a = 0; a < s->n_grid; a++) {
        h = mix(mix(h, s->grid.size[a]), s->grid.stride[a]);
    }
    return (int64_t)(h >> 2);
}

/* The least status of all and whose it is; TDSL_E_ABI where what all should have alike differs. */
static tdsl_status agree(const tdsl_comm *comm, tdsl_status own, int64_t alike,
                         int32_t *bad_rank)
{
    int64_t numbers[ALIKE] = {(int64_t)own * 4294967296 + comm->rank, alike, -alike};
    *bad_rank = comm->rank;
    if (comm->size > 1) {
        tdsl_status status = comm->agree(comm->state, numbers, ALIKE);
        if (status != TDSL_OK) {
            return own != TDSL_OK ? own : status;
        }
    }
    int64_t rank = numbers[0] & 0xffffffff, least = (numbers[0] - rank) / 4294967296;
    if (least != TDSL_OK) {
        *bad_rank = (int32_t)rank;
        return own != TDSL_OK ? own : TDSL_E_PEER;
    }
    return numbers[1] == -numbers[2] ? TDSL_OK : TDSL_E_ABI;
}

static tdsl_status check(const Setting *s, const tdsl_comm *comm, void *const *args)
{
    if (s->ranks != comm->size || comm->rank < 0 || comm->rank >= comm->size) {
        return TDSL_E_ARGUMENT;
    }
    for (int32_t a = 0; a < s->dist->kernel->n_args; a++) {
        Box box;
        tdsl_arg_box(s, a, comm->rank, &box);
        if (args == NULL || (args[a] == NULL && tdsl_box_count(&box) > 0)) {
            return TDSL_E_ARGUMENT;
        }
    }
    return TDSL_OK;
}

/* The caller's workspace, or one of *own, from its first aligned byte on; *room bytes. */
static tdsl_status take_space(const tdsl_dist_count *count, const tdsl_dist_options *o,
                              void **space, size_t *room, void **own)
{
    size_t need = (size_t)count->workspace;
    size_t bytes = o->workspace != NULL ? o->bytes : need + WORKSPACE_ALIGNMENT;
    *own = o->workspace != NULL ? NULL : malloc(bytes);
    char *memory = o->workspace != NULL ? o->workspace : *own;
    if (memory == NULL) {
        return TDSL_E_MEMORY;
    }
    size_t past = (uintptr_t)memory % WORKSPACE_ALIGNMENT;
    size_t left = past == 0 ? 0 : WORKSPACE_ALIGNMENT - past;
    *space = memory + left;
    *room = bytes < left ? 0 : bytes - left;
    return bytes < left || *room < need ? TDSL_E_WORKSPACE : TDSL_OK;
}

tdsl_status tdsl_dist_call(const tdsl_comm *comm, const tdsl_dist_info *dist,
                           const tdsl_mesh *mesh, const int64_t *dims, void *const *args,
                           tdsl_dist_options *options, tdsl_dist_count *count)
{
    static const tdsl_threads one = {.count = 1};
    tdsl_dist_options defaults = {0}, *o = options != NULL ? options : &defaults;
    tdsl_dist_count counted = {0};
    int64_t all[TDSL_MAX_DIMS];
    Setting s = {0};
    Walk w = {0};
    void *own = NULL, *space = NULL;
    size_t room = 0;
    tdsl_status status = setting_make(dist, mesh, dims, all, &s), local = TDSL_OK;
    int64_t alike = status == TDSL_OK ? digest(&s) : 0;
    status = status == TDSL_OK ? check(&s, comm, args) : status;
    status = status == TDSL_OK ? o->before : status;
    const tdsl_threads *threads = o->threads != NULL ? o->threads : &one;
    status = status == TDSL_OK
                 ? measure(&s, comm->rank, o->workspace == NULL ? threads : &one, &counted)
                 : status;
    status = status == TDSL_OK ? take_space(&counted, o, &space, &room, &own) : status;
    status = status == TDSL_OK ? walk_make(&w, &s, comm->rank) : status;
    status = agree(comm, status, alike, &o->bad_rank);
    if (status == TDSL_OK) {
        w.comm = comm;
        w.args = args;
        w.base = space;
        w.threads = threads;
        w.store = o->store;
        w.size = room;
        status = take_steps(&w, &local);
        counted.received = w.count.received;
        counted.sent = w.count.sent;
        counted.calls = w.count.calls;
        counted.moving = w.count.moving;
        counted.computing = w.count.computing;
        if (status == TDSL_OK) {
            status = agree(comm, local, alike, &o->bad_rank);
        } else {
            own =
                NULL; /* the communicator is lost, and may write to it when a late rank comes */
        }
    }
    walk_free(&w);
    free(own);
    if (count != NULL) {
        *count = counted;
    }
    return status;
}

void tdsl_dist_refuse(const tdsl_comm *comm, tdsl_status status)
{
    int32_t bad_rank = 0;
    (void)agree(comm, status != TDSL_OK ? status : TDSL_E_ARGUMENT, 0, &bad_rank);
}
