/* SPDX-License-Identifier: Apache-2.0 */
/* See run_ranks.h. Each rank has blocks of its own, cut from the whole arrays and put back by its thread; a result that several ranks have
 * must be the same on all of them. */
#include "driver/run_ranks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <tdsl/dist.h>

#include "driver/tool.h"

/* All ranks of a call. */
typedef struct Ranks {
    const tdsl_dist_info *dist;
    tdsl_mesh mesh;
    int32_t n;
    const int64_t *dims;
    const int64_t **extent; /* [args] of the caller's arrays */
    char **whole;    /* [args] data of the caller's arrays; of an inout argument what came in */
    char **out;      /* [args] where results go; null: nowhere */
    int32_t threads; /* of each rank */
    bool processes;  /* ranks share no memory */
    bool differs;    /* ranks have other bits of one result */
    tdsl_status *status; /* [n] */
    int32_t *bad_rank;   /* [n] */
    int32_t rank;        /* of processes: this one */
    bool *own;           /* of processes: is the failure this one's own? */
} Ranks;

/* One rank's blocks. */
typedef struct Block {
    int64_t lo[RANK_LIMIT], count[RANK_LIMIT], extent[RANK_LIMIT];
    int32_t rank;
    size_t size; /* of an element */
} Block;

static int64_t block_count(const Block *b)
{
    int64_t n = 1;
    for (int32_t d = 0; d < b->rank; d++) {
        n *= b->count[d];
    }
    return n;
}

static void find_block(const Ranks *r, int32_t rank, int32_t arg, Block *b)
{
    const tdsl_arg_info *info = &r->dist->kernel->args[arg];
    b->rank = info->rank;
    b->size = (size_t)dtype_bytes((DType)info->dtype);
    for (int32_t d = 0; d < b->rank; d++) {
        tdsl_range cut = tdsl_dist_block(r->dist, &r->mesh, rank, r->dims, arg, d);
        b->lo[d] = cut.first;
        b->count[d] = cut.count;
        b->extent[d] = r->extent[arg][d];
    }
}

typedef enum Way { CUT, PUT, COMPARE } Way;

/* Rows of the block, from dimension d on, and of the whole array. False: they differ. */
static bool walk_block(const Block *b, int32_t d, char *block, char *whole, Way way)
{
    int64_t inside = (int64_t)b->size, across = (int64_t)b->size;
    for (int32_t e = d + 1; e < b->rank; e++) {
        inside *= b->count[e];
        across *= b->extent[e];
    }
    if (d + 1 >= b->rank) {
        int64_t n = b->rank == 0 ? 1 : b->count[d], first = b->rank == 0 ? 0 : b->lo[d];
        size_t bytes = (size_t)n * b->size;
        char *at = whole + first * (int64_t)b->size;
        if (bytes > 0 && way != COMPARE) {
            memcpy(way == CUT ? block : at, way == CUT ? at : block, bytes);
        }
        return way != COMPARE || bytes == 0 || memcmp(at, block, bytes) == 0;
    }
    bool same = true;
    for (int64_t k = 0; k < b->count[d] && block_count(b) > 0; k++) {
        same = walk_block(b, d + 1, block + k * inside, whole + (b->lo[d] + k) * across, way) &&
               same;
    }
    return same;
}

/* Is this the first of the ranks that differ in no axis of the argument's pieces? */
static bool is_first(const Ranks *r, int32_t rank, int32_t arg)
{
    const tdsl_dist_arg *layout = &r->dist->args[arg];
    for (int32_t a = r->mesh.n_axes; a-- > 0; rank /= r->mesh.size[a]) {
        bool cut = false;
        for (int32_t k = 0; k < layout->n_pieces; k++) {
            cut = cut || layout->pieces[k].axis == a;
        }
        if (!cut && rank % r->mesh.size[a] != 0) {
            return false;
        }
    }
    return true;
}

/* The rank's arrays: blocks of what is read, of a partial argument all of it on the first rank and zeros elsewhere. */
static bool make_blocks(const Ranks *r, int32_t rank, void **args)
{
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        Block b;
        find_block(r, rank, a, &b);
        size_t bytes = (size_t)block_count(&b) * b.size;
        args[a] = calloc(bytes == 0 ? 1 : bytes, 1);
        if (args[a] == NULL) {
            return false;
        }
        bool zeros = r->dist->args[a].partial != 0 && !is_first(r, rank, a);
        if (r->whole[a] != NULL && !zeros) {
            (void)walk_block(&b, 0, args[a], r->whole[a], CUT);
        }
    }
    return true;
}

/* Of a result that is partial the others have zeros. */
static void put_results(Ranks *r, int32_t rank, void *const *args, Way way)
{
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        Block b;
        bool first = is_first(r, rank, a), partial = r->dist->args[a].partial != 0;
        find_block(r, rank, a, &b);
        if (r->out[a] != NULL && (way == PUT ? first : !first && !partial)) {
            bool same = walk_block(&b, 0, args[a], r->out[a], way);
            r->differs = r->differs || !same;
        }
    }
}

/* Threads share the arrays: blocks are apart, and one rank after the other says what differs. */
static tdsl_status share_results(Ranks *r, const tdsl_comm *comm, void **args)
{
    int64_t turn = 0;
    put_results(r, comm->rank, args, PUT);
    tdsl_status status = comm->agree(comm->state, &turn, 1);
    for (int32_t k = 0; k < comm->size && status == TDSL_OK; k++) {
        if (k == comm->rank) {
            put_results(r, comm->rank, args, COMPARE);
        }
        status = comm->agree(comm->state, &turn, 1);
    }
    return status;
}

/* Bytes of a rank's results, one after the other; where each is, if `at` is given. */
static int64_t result_bytes(const Ranks *r, int32_t rank, char *at, void **args)
{
    int64_t bytes = 0;
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        Block b;
        find_block(r, rank, a, &b);
        if (args != NULL) {
            args[a] = at + bytes;
        }
        bytes += r->out[a] == NULL ? 0 : block_count(&b) * (int64_t)b.size;
    }
    return bytes;
}

/* Processes: rank 0 gets the results of all. */
static tdsl_status gather_results(Ranks *r, const tdsl_comm *comm, void **args)
{
    size_t ranks = (size_t)comm->size;
    tdsl_dist_bytes *send = calloc(ranks, sizeof *send),
                    *receive = calloc(ranks, sizeof *receive);
    void **theirs = calloc((size_t)r->dist->kernel->n_args + 1, sizeof *theirs);
    int64_t own = result_bytes(r, comm->rank, NULL, NULL);
    char *packed = malloc((size_t)own + 1);
    bool ok = send != NULL && receive != NULL && theirs != NULL && packed != NULL;
    for (int32_t k = 1; ok && comm->rank == 0 && k < comm->size; k++) {
        receive[k].bytes = result_bytes(r, k, NULL, NULL);
        receive[k].data = malloc((size_t)receive[k].bytes + 1);
        ok = receive[k].data != NULL;
    }
    int64_t turn = ok ? 0 : TDSL_E_MEMORY;
    tdsl_status status = comm->agree(comm->state, &turn, 1);
    status = status == TDSL_OK && turn != 0 ? TDSL_E_MEMORY : status;
    if (status == TDSL_OK && comm->rank > 0) {
        (void)result_bytes(r, comm->rank, packed, theirs);
        for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
            Block b;
            find_block(r, comm->rank, a, &b);
            if (r->out[a] != NULL) {
                memcpy(theirs[a], args[a], (size_t)block_count(&b) * b.size);
            }
        }
        send[0] = (tdsl_dist_bytes){packed, own};
    }
    status = status == TDSL_OK ? comm->exchange(comm->state, send, receive) : status;
    for (int32_t way = PUT; status == TDSL_OK && comm->rank == 0 && way <= COMPARE; way++) {
        put_results(r, 0, args, (Way)way);
        for (int32_t k = 1; k < comm->size; k++) {
            (void)result_bytes(r, k, receive[k].data, theirs);
            put_results(r, k, theirs, (Way)way);
        }
    }
    for (int32_t k = 0; receive != NULL && k < comm->size; k++) {
        free(receive[k].data);
    }
    free(send);
    free(receive);
    free(theirs);
    free(packed);
    return status;
}

static tdsl_status run_rank(void *user, const tdsl_comm *comm)
{
    Ranks *r = user;
    tdsl_threads threads = {.count = r->threads};
    tdsl_dist_options options = {.threads = &threads};
    int32_t n = r->dist->kernel->n_args;
    void **args = calloc((size_t)n + 1, sizeof *args);
    options.before = args != NULL && make_blocks(r, comm->rank, args) ? TDSL_OK : TDSL_E_MEMORY;
    tdsl_status status = tdsl_dist_call(comm, r->dist, &r->mesh, r->dims, args, &options, NULL);
    if (status == TDSL_OK) {
        status = r->processes ? gather_results(r, comm, args) : share_results(r, comm, args);
    }
    r->status[comm->rank] = status;
    r->bad_rank[comm->rank] = options.bad_rank;
    for (int32_t a = 0; args != NULL && a < n; a++) {
        free(args[a]);
    }
    free(args);
    return status;
}

static bool fail(CLibrary *b, const char *what)
{
    diag_error(&b->ctx->diags, E_RUN, (Span){0}, "%s", what);
    return false;
}

static bool set_up(CLibrary *b, const char *symbol, const MeshWish *wish, Ranks *r)
{
    const char *why = NULL;
    r->dist = dlsym(b->handle, str_format(b->arena, "%s_dist", symbol));
    if (r->dist == NULL || r->dist->version != TDSL_DIST_VERSION) {
        return fail(b, str_format(b->arena, "kernel '%s' has no plan for ranks", symbol));
    }
    if (!mesh_sizes(b->arena, wish, (uint32_t)r->dist->n_axes, r->dist->axes, r->mesh.size,
                    &why)) {
        diag_error(&b->ctx->diags, E_ARGUMENT_VALUE, (Span){0}, "--mesh: %s", why);
        return false;
    }
    r->mesh.n_axes = r->dist->n_axes;
    r->n = 1;
    for (int32_t a = 0; a < r->mesh.n_axes; a++) {
        r->n *= r->mesh.size[a];
    }
    r->status = ARENA_ARRAY(b->arena, (size_t)r->n, tdsl_status);
    r->bad_rank = ARENA_ARRAY(b->arena, (size_t)r->n, int32_t);
    return true;
}

/* Results in the kernel's order, as those of a call on one rank. */
static bool place_results(CLibrary *b, const Head *h, const int64_t *dims, Tensor *const *args,
                          Tensor **results, Ranks *r)
{
    uint32_t n = h->n_params;
    r->whole = ARENA_ARRAY(b->arena, (size_t)h->n_params + h->n_results + 1, char *);
    r->out = ARENA_ARRAY(b->arena, (size_t)h->n_params + h->n_results + 1, char *);
    r->extent = ARENA_ARRAY(b->arena, (size_t)h->n_params + h->n_results + 1, const int64_t *);
    for (uint32_t k = 0; k < h->n_params; k++) {
        r->whole[k] = args[k]->data;
        r->extent[k] = args[k]->extent;
    }
    for (uint32_t k = 0; k < h->n_results; k++) {
        results[k] = head_new_result(b->ctx, b->arena, &h->results[k],
                                     dims_complete(b->arena, h->dims, dims));
        if (results[k] == NULL) {
            return false;
        }
        uint32_t arg = h->results[k].param >= 0 ? (uint32_t)h->results[k].param : n++;
        r->out[arg] = results[k]->data;
        r->extent[arg] = results[k]->extent;
    }
    return true;
}

/* What the ranks ended with: the one whose own failure it is says so. */
static bool report(CLibrary *b, const Ranks *r, tdsl_status status)
{
    if (r->processes && status == TDSL_E_PEER && r->own != NULL &&
        r->bad_rank[r->rank] != r->rank) {
        return fail(b, str_format(b->arena, "rank %d of %d failed", (int)r->bad_rank[r->rank],
                                  (int)r->n));
    }
    if (status == TDSL_E_TIMEOUT) {
        return fail(b, str_format(b->arena,
                                  "rank %d of %d: another one did not come within the "
                                  "--timeout",
                                  (int)r->rank, (int)r->n));
    }
    for (int32_t k = 0; k < r->n; k++) {
        if (r->status[k] != TDSL_OK && r->status[k] != TDSL_E_PEER) {
            return fail(b, str_format(b->arena, "rank %d of %d: %s", (int)k, (int)r->n,
                                      tdsl_status_text(r->status[k])));
        }
    }
    if (status != TDSL_OK) {
        return fail(b,
                    str_format(b->arena, "%d ranks: %s", (int)r->n, tdsl_status_text(status)));
    }
    return !r->differs || fail(b, "ranks have different bits of one result");
}

static int compare_times(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

bool run_ranks(CLibrary *b, const tdsl_comm *comm, const Head *h, const char *symbol,
               const MeshWish *wish, const int64_t *dims, Tensor *const *args, Tensor **results,
               CTiming *timing, bool *own)
{
    Ranks r = {0};
    if (!set_up(b, symbol, wish, &r) || !place_results(b, h, dims, args, results, &r)) {
        if (comm != NULL) { /* the others wait */
            tdsl_dist_refuse(comm, TDSL_E_ARGUMENT);
        }
        return false;
    }
    const tdsl_kernel_info *kernel = r.dist->kernel;
    r.dims = dims;
    r.processes = comm != NULL;
    r.rank = comm != NULL ? comm->rank : 0;
    r.own = own;
    r.threads = timing->threads / r.n > 1 ? timing->threads / r.n : 1;
    double *seconds = ARENA_ARRAY(b->arena, (size_t)timing->repeat + 1, double);
    bool ok = true;
    for (int64_t k = 0; k <= timing->repeat && ok; k++) {
        double start = tool_clock();
        tdsl_status status =
            comm != NULL ? run_rank(&r, comm) : tdsl_dist_threads(r.n, run_rank, &r);
        seconds[k] = tool_clock() - start;
        ok = report(b, &r, status);
        *own = !ok && status != TDSL_E_PEER;
    }
    timing->multiply_adds = kernel->multiply_adds(dims);
    if (ok && timing->repeat > 0) {
        size_t n = (size_t)timing->repeat;
        qsort(seconds + 1, n, sizeof *seconds, compare_times);
        timing->least = seconds[1];
        timing->median = (seconds[1 + (n - 1) / 2] + seconds[1 + n / 2]) / 2;
    }
    return ok;
}
