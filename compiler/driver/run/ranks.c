/* SPDX-License-Identifier: Apache-2.0 */
/* See ranks.h. Each rank has blocks of its own, cut from the whole arrays and put back by its thread; a result that several ranks have
 * must be the same on all of them. */
#include "driver/run/ranks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tdsl/checkpoint.h>

#include "driver/run/blocks.h"
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
    tdsl_status *status;    /* [n] */
    int32_t *bad_rank;      /* [n] */
    double *seconds;        /* [n] of the call */
    tdsl_dist_count *count; /* [n] */
    bool gives;             /* results are wanted of this call */
    int32_t rank;           /* of processes: this one */
    bool *own;              /* of processes: is the failure this one's own? */
    bool writes;            /* of processes: each its blocks of the results */
    const NpyFile **from; /* [args] of processes: the file that has the array; null: `whole` */
    const char **to;      /* [args] and where it goes */
    const char *fault;    /* of processes: what is wrong with a file */
    const char *checkpoint; /* null: no leaves are kept */
    char **leaf_fault;      /* [n] what is wrong with the folder or a file of it */
    int64_t found, kept;    /* leaves, of all ranks */
    Arena *arena;
} Ranks;

/* Text of a fault of a checkpoint. */
#define FAULT_BYTES 600

static Block find_block(const Ranks *r, int32_t rank, int32_t arg)
{
    return block_of(r->dist, &r->mesh, rank, r->dims, arg, r->extent[arg]);
}

static bool is_first(const Ranks *r, int32_t rank, int32_t arg)
{
    return block_is_first(r->dist, &r->mesh, rank, arg);
}

/* What this process alone has found. */
static tdsl_status file_fault(Ranks *r, const char *path, const char *what)
{
    r->fault = str_format(r->arena, "cannot %s '%s': %s", what, path, strerror(errno));
    return TDSL_E_ARGUMENT;
}

static tdsl_status read_block(Ranks *r, const Block *b, const NpyFile *file, char *to)
{
    BlockWhole whole = {.fd = open(file->path, O_RDONLY | O_CLOEXEC), .at = file->at};
    if (whole.fd < 0 || !block_move(b, to, whole, BLOCK_READ)) {
        tdsl_status status = file_fault(r, file->path, "read");
        if (whole.fd >= 0) {
            (void)close(whole.fd);
        }
        return status;
    }
    (void)close(whole.fd);
    return TDSL_OK;
}

/* The rank's arrays: blocks of what is read, of a partial argument all of it on the first rank and zeros elsewhere. */
static tdsl_status make_blocks(Ranks *r, int32_t rank, void **args)
{
    tdsl_status status = TDSL_OK;
    for (int32_t a = 0; status == TDSL_OK && a < r->dist->kernel->n_args; a++) {
        Block b = find_block(r, rank, a);
        size_t bytes = (size_t)block_bytes(&b);
        args[a] = calloc(bytes == 0 ? 1 : bytes, 1);
        if (args[a] == NULL) {
            return TDSL_E_MEMORY;
        }
        bool zeros = r->dist->args[a].partial != 0 && !is_first(r, rank, a);
        if (r->from[a] != NULL && !zeros) {
            status = read_block(r, &b, r->from[a], args[a]);
        } else if (r->whole[a] != NULL && !zeros) {
            (void)block_move(&b, args[a], (BlockWhole){.memory = r->whole[a]}, BLOCK_CUT);
        }
    }
    return status;
}

/* Of a result that is partial the others have zeros. */
static void put_results(Ranks *r, int32_t rank, void *const *args, BlockWay way)
{
    for (int32_t a = 0; a < r->dist->kernel->n_args; a++) {
        bool first = is_first(r, rank, a), partial = r->dist->args[a].partial != 0;
        Block b = find_block(r, rank, a);
        if (r->out[a] != NULL && (way == BLOCK_PUT ? first : !first && !partial)) {
            bool same = block_move(&b, args[a], (BlockWhole){.memory = r->out[a]}, way);
            r->differs = r->differs || !same;
        }
    }
}

/* Threads share the arrays: blocks are apart, and one rank after the other says what differs. */
static tdsl_status share_results(Ranks *r, const tdsl_comm *comm, void **args)
{
    int64_t turn = 0;
    put_results(r, comm->rank, args, BLOCK_PUT);
    tdsl_status status = comm->agree(comm->state, &turn, 1);
    for (int32_t k = 0; k < comm->size && status == TDSL_OK; k++) {
        if (k == comm->rank) {
            put_results(r, comm->rank, args, BLOCK_COMPARE);
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
        Block b = find_block(r, rank, a);
        if (args != NULL) {
            args[a] = at + bytes;
        }
        bytes += r->out[a] == NULL ? 0 : block_bytes(&b);
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
            Block b = find_block(r, comm->rank, a);
            if (r->out[a] != NULL) {
                memcpy(theirs[a], args[a], (size_t)block_bytes(&b));
            }
        }
        send[0] = (tdsl_dist_bytes){packed, own};
    }
    status = status == TDSL_OK ? comm->exchange(comm->state, send, receive) : status;
    for (int32_t way = BLOCK_PUT; status == TDSL_OK && comm->rank == 0 && way <= BLOCK_COMPARE;
         way++) {
        put_results(r, 0, args, (BlockWay)way);
        for (int32_t k = 1; k < comm->size; k++) {
            (void)result_bytes(r, k, receive[k].data, theirs);
            put_results(r, k, theirs, (BlockWay)way);
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

/* ---- processes: each writes its blocks ---- */

/* The failure of one is that of all. */
static tdsl_status agree(Ranks *r, const tdsl_comm *comm, tdsl_status own)
{
    int64_t least = (int64_t)own * 4294967296 + comm->rank;
    tdsl_status status = comm->agree(comm->state, &least, 1);
    if (status != TDSL_OK || least >= 0) {
        return status;
    }
    r->bad_rank[comm->rank] = (int32_t)(least & 0xffffffff);
    return own != TDSL_OK ? own : TDSL_E_PEER;
}

/* Where the file is written before it has its name. */
static const char *unfinished(const Ranks *r, int32_t arg, int64_t process)
{
    return str_format(r->arena, "%s.%lld.unfinished", r->to[arg], (long long)process);
}

static Str header_of(const Ranks *r, int32_t arg)
{
    const tdsl_arg_info *info = &r->dist->kernel->args[arg];
    return npy_header(r->arena, (DType)info->dtype, (uint32_t)info->rank, r->extent[arg]);
}

/* A file of the array's size, with the mode of one that is there already. */
static tdsl_status create_file(Ranks *r, int32_t arg, const char *path)
{
    const tdsl_arg_info *info = &r->dist->kernel->args[arg];
    Str header = header_of(r, arg);
    int64_t bytes = dtype_bytes((DType)info->dtype);
    struct stat old;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    for (int32_t d = 0; d < info->rank; d++) {
        bytes *= r->extent[arg][d];
    }
    bool ok = fd >= 0 && file_write_all(fd, header) &&
              ftruncate(fd, (off_t)((int64_t)header.n + bytes)) == 0;
    if (ok && stat(r->to[arg], &old) == 0) {
        (void)fchmod(fd, old.st_mode & 0777);
    }
    tdsl_status status = ok ? TDSL_OK : file_fault(r, path, "write");
    if (fd >= 0 && close(fd) != 0 && ok) {
        status = file_fault(r, path, "write");
    }
    return status;
}

static tdsl_status write_block(Ranks *r, int32_t rank, int32_t arg, const char *path,
                               char *block)
{
    Block b = find_block(r, rank, arg);
    if (!is_first(r, rank, arg) || block_bytes(&b) == 0) {
        return TDSL_OK;
    }
    BlockWhole whole = {.fd = open(path, O_WRONLY | O_CLOEXEC),
                        .at = (int64_t)header_of(r, arg).n};
    bool ok = whole.fd >= 0 && block_move(&b, block, whole, BLOCK_WRITE);
    tdsl_status status = ok ? TDSL_OK : file_fault(r, path, "write");
    if (whole.fd >= 0 && close(whole.fd) != 0 && ok) {
        status = file_fault(r, path, "write");
    }
    return status;
}

typedef tdsl_status FileStep(Ranks *r, int32_t rank, int32_t arg, const char *path,
                             void *const *args);

static tdsl_status create_step(Ranks *r, int32_t rank, int32_t arg, const char *path,
                               void *const *args)
{
    (void)args;
    return rank == 0 ? create_file(r, arg, path) : TDSL_OK;
}

static tdsl_status write_step(Ranks *r, int32_t rank, int32_t arg, const char *path,
                              void *const *args)
{
    return write_block(r, rank, arg, path, args[arg]);
}

static tdsl_status rename_step(Ranks *r, int32_t rank, int32_t arg, const char *path,
                               void *const *args)
{
    (void)args;
    return rank > 0 || rename(path, r->to[arg]) == 0 ? TDSL_OK
                                                     : file_fault(r, r->to[arg], "write");
}

/* Rank 0 makes the files, each rank writes its blocks, rank 0 gives the files their names; after each step all know that it went well. */
static tdsl_status write_results(Ranks *r, const tdsl_comm *comm, void *const *args)
{
    static FileStep *const steps[] = {create_step, write_step, rename_step};
    int64_t process = comm->rank == 0 ? (int64_t)getpid() : INT64_MAX;
    tdsl_status status = comm->agree(comm->state, &process, 1);
    for (size_t k = 0; status == TDSL_OK && k < sizeof steps / sizeof steps[0]; k++) {
        for (int32_t a = 0; status == TDSL_OK && a < r->dist->kernel->n_args; a++) {
            if (r->to[a] != NULL) {
                status = steps[k](r, comm->rank, a, unfinished(r, a, process), args);
            }
        }
        status = agree(r, comm, status);
    }
    for (int32_t a = 0; status != TDSL_OK && comm->rank == 0 && a < r->dist->kernel->n_args;
         a++) {
        if (r->to[a] != NULL) {
            (void)unlink(unfinished(r, a, process));
        }
    }
    return status;
}

/* ---- one rank ---- */

static tdsl_status give_results(Ranks *r, const tdsl_comm *comm, void **args)
{
    return !r->processes ? share_results(r, comm, args)
           : r->writes   ? write_results(r, comm, args)
                         : gather_results(r, comm, args);
}

/* Leaves that all ranks have found and kept, to rank 0. */
static tdsl_status count_leaves(Ranks *r, const tdsl_comm *comm,
                                const tdsl_checkpoint *checkpoint)
{
    size_t ranks = (size_t)comm->size;
    int64_t own[2] = {tdsl_checkpoint_found(checkpoint), tdsl_checkpoint_kept(checkpoint)};
    int64_t *all = calloc(2 * ranks, sizeof *all);
    tdsl_dist_bytes *send = calloc(ranks, sizeof *send),
                    *receive = calloc(ranks, sizeof *receive);
    bool has = all != NULL && send != NULL && receive != NULL;
    tdsl_status status = agree(r, comm, has ? TDSL_OK : TDSL_E_MEMORY);
    for (size_t k = 0; status == TDSL_OK && comm->rank == 0 && k < ranks; k++) {
        receive[k] = (tdsl_dist_bytes){all + 2 * k, k == 0 ? 0 : sizeof own};
    }
    if (status == TDSL_OK) {
        send[0] = (tdsl_dist_bytes){own, comm->rank == 0 ? 0 : sizeof own};
        status = ranks > 1 ? comm->exchange(comm->state, send, receive) : TDSL_OK;
    }
    if (status == TDSL_OK && comm->rank == 0) {
        r->found = own[0];
        r->kept = own[1];
        for (size_t k = 1; k < ranks; k++) {
            r->found += all[2 * k];
            r->kept += all[2 * k + 1];
        }
    }
    free(all);
    free(send);
    free(receive);
    return status;
}

static tdsl_status run_rank(void *user, const tdsl_comm *comm)
{
    Ranks *r = user;
    tdsl_threads threads = {.count = r->threads};
    tdsl_dist_options options = {.threads = &threads};
    int32_t n = r->dist->kernel->n_args;
    void **args = calloc((size_t)n + 1, sizeof *args);
    options.before = args != NULL ? make_blocks(r, comm->rank, args) : TDSL_E_MEMORY;
    tdsl_checkpoint *checkpoint = NULL;
    if (r->checkpoint != NULL && options.before == TDSL_OK) {
        options.before = tdsl_checkpoint_open(r->checkpoint, r->dist, r->dims, comm->rank,
                                              comm->size, &checkpoint);
        options.store = tdsl_checkpoint_store(checkpoint);
    }
    double start = tool_clock();
    tdsl_status status =
        tdsl_dist_call(comm, r->dist, &r->mesh, r->dims, args, &options, &r->count[comm->rank]);
    r->seconds[comm->rank] = tool_clock() - start;
    r->bad_rank[comm->rank] = options.bad_rank;
    if (r->checkpoint != NULL) {
        (void)snprintf(r->leaf_fault[comm->rank], FAULT_BYTES, "%s",
                       tdsl_checkpoint_fault(checkpoint));
        status = status == TDSL_OK ? count_leaves(r, comm, checkpoint) : status;
    }
    tdsl_checkpoint_close(checkpoint);
    if (status == TDSL_OK && r->gives) {
        status = give_results(r, comm, args);
    }
    r->status[comm->rank] = status;
    for (int32_t a = 0; args != NULL && a < n; a++) {
        free(args[a]);
    }
    free(args);
    return status;
}

static bool fail(CLibrary *b, const char *what)
{
    return diag_refuse(&b->ctx->diags, E_RUN, (Span){0}, "%s", what);
}

static bool set_up(CLibrary *b, const char *symbol, const MeshWish *wish, Ranks *r)
{
    const char *why = NULL;
    r->dist = dlsym(b->handle, str_format(b->arena, "%s_dist", symbol));
    if (r->dist == NULL || r->dist->version != TDSL_DIST_VERSION) {
        return fail(b, str_format(b->arena, "kernel '%s' has no plan for ranks", symbol));
    }
    MeshAxes axes;
    if (!mesh_sizes(b->arena, wish, (uint32_t)r->dist->n_axes, r->dist->axes, &axes, &why)) {
        return diag_refuse(&b->ctx->diags, E_ARGUMENT_VALUE, (Span){0}, "--mesh: %s", why);
    }
    r->mesh.n_axes = (int32_t)axes.n;
    r->n = 1;
    for (int32_t a = 0; a < r->mesh.n_axes; a++) {
        r->mesh.size[a] = axes.size[a];
        r->n *= r->mesh.size[a];
    }
    r->status = ARENA_ARRAY(b->arena, (size_t)r->n, tdsl_status);
    r->bad_rank = ARENA_ARRAY(b->arena, (size_t)r->n, int32_t);
    r->seconds = ARENA_ARRAY(b->arena, (size_t)r->n, double);
    r->count = ARENA_ARRAY(b->arena, (size_t)r->n, tdsl_dist_count);
    r->leaf_fault = ARENA_ARRAY(b->arena, (size_t)r->n, char *);
    for (int32_t k = 0; r->checkpoint != NULL && k < r->n; k++) {
        r->leaf_fault[k] = ARENA_ARRAY(b->arena, FAULT_BYTES, char);
    }
    r->arena = b->arena;
    return true;
}

/* Where a file that replaces this one, or what it leads to, belongs. */
static const char *resolved(Arena *arena, const char *path)
{
    char *real = realpath(path, NULL);
    const char *out = real != NULL ? str_dup(arena, str_from(real)) : path;
    free(real);
    return out;
}

/* Results in the kernel's order, as those of a call on one rank; where ranks write them, none is made here. */
static bool place_results(CLibrary *b, const Head *h, const int64_t *dims, Tensor *const *args,
                          Tensor **results, const RankFiles *files, Ranks *r)
{
    uint32_t n = h->n_params;
    size_t n_args = (size_t)h->n_params + h->n_results + 1;
    r->whole = ARENA_ARRAY(b->arena, n_args, char *);
    r->out = ARENA_ARRAY(b->arena, n_args, char *);
    r->from = ARENA_ARRAY(b->arena, n_args, const NpyFile *);
    r->to = ARENA_ARRAY(b->arena, n_args, const char *);
    r->extent = ARENA_ARRAY(b->arena, n_args, const int64_t *);
    r->writes = files->out != NULL;
    dims = dims_complete(b->arena, h->dims, dims);
    for (uint32_t k = 0; k < h->n_params; k++) {
        r->whole[k] = args[k]->data;
        r->extent[k] = args[k]->extent;
        r->from[k] = files->in != NULL ? files->in[k] : NULL;
    }
    for (uint32_t k = 0; k < h->n_results; k++) {
        const HeadResult *result = &h->results[k];
        uint32_t arg = result->param >= 0 ? (uint32_t)result->param : n++;
        if (r->writes) {
            int64_t *extent = ARENA_ARRAY(b->arena, (size_t)result->rank + 1, int64_t);
            for (uint32_t d = 0; d < result->rank; d++) {
                Dim e = result->shape[d];
                extent[d] = e.sym < 0 ? e.n : dims[e.sym];
            }
            r->extent[arg] = extent;
            r->to[arg] = files->out[k] == NULL ? NULL : resolved(b->arena, files->out[k]);
            continue;
        }
        results[k] = head_new_result(b->ctx, b->arena, result, dims);
        if (results[k] == NULL) {
            return false;
        }
        r->out[arg] = results[k]->data;
        r->extent[arg] = results[k]->extent;
    }
    return true;
}

/* With the best grid that fits. The first rank has the largest blocks. */
static bool has_memory(CLibrary *b, Ranks *r, int64_t memory)
{
    tdsl_dist_count count = {0};
    tdsl_dist_choice best;
    int32_t n = 0;
    if (tdsl_dist_choose(r->dist, &r->mesh, r->dims, (uint64_t)memory, NULL, 1, &best, &n) ==
            TDSL_OK &&
        n > 0) {
        r->mesh.grid = best.grid;
    }
    if (memory == 0 || tdsl_dist_measure(r->dist, &r->mesh, 0, r->dims, &count) != TDSL_OK ||
        count.arguments + count.workspace <= (uint64_t)memory) {
        return true;
    }
    return diag_refuse_limit(&b->ctx->diags, E_LIMIT_SIZE, (Span){0},
                             "a rank of %d needs %llu bytes, --rank-memory is %lld", (int)r->n,
                             (unsigned long long)(count.arguments + count.workspace),
                             (long long)memory);
}

/* What the ranks ended with: the one whose own failure it is says so. */
static bool report(CLibrary *b, const Ranks *r, tdsl_status status)
{
    if (r->processes && status == TDSL_E_PEER && r->own != NULL &&
        r->bad_rank[r->rank] != r->rank) {
        return fail(b, str_format(b->arena, "rank %d of %d failed", (int)r->bad_rank[r->rank],
                                  (int)r->n));
    }
    if (r->fault != NULL) {
        return diag_refuse(&b->ctx->diags, E_FILE, (Span){0}, "rank %d of %d: %s", (int)r->rank,
                           (int)r->n, r->fault);
    }
    if (status == TDSL_E_TIMEOUT) {
        return fail(b, str_format(b->arena,
                                  "rank %d of %d: another one did not come within the "
                                  "--timeout",
                                  (int)r->rank, (int)r->n));
    }
    for (int32_t k = 0; r->checkpoint != NULL && k < r->n; k++) {
        if (r->leaf_fault[k][0] != '\0') {
            return diag_refuse(&b->ctx->diags, E_FILE, (Span){0}, "rank %d of %d: %s", (int)k,
                               (int)r->n, r->leaf_fault[k]);
        }
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

/* Of the call, the most that a rank has moved and computed. */
static void split_time(const Ranks *r, CTiming *timing)
{
    timing->moving = timing->computing = 0;
    for (int32_t k = 0; k < r->n; k++) {
        const tdsl_dist_count *c = &r->count[k];
        timing->moving = c->moving > timing->moving ? c->moving : timing->moving;
        timing->computing = c->computing > timing->computing ? c->computing : timing->computing;
    }
}

bool run_ranks(CLibrary *b, const tdsl_comm *comm, const Head *h, const char *symbol,
               const MeshWish *wish, const int64_t *dims, Tensor *const *args,
               const RankFiles *files, Tensor **results, CTiming *timing, bool *own)
{
    Ranks r = {.dims = dims, .checkpoint = files->checkpoint};
    if (!set_up(b, symbol, wish, &r) || !has_memory(b, &r, wish->memory) ||
        !place_results(b, h, dims, args, results, files, &r)) {
        if (comm != NULL) { /* the others wait */
            tdsl_dist_refuse(comm, TDSL_E_ARGUMENT);
        }
        return false;
    }
    const tdsl_kernel_info *kernel = r.dist->kernel;
    r.processes = comm != NULL;
    r.rank = comm != NULL ? comm->rank : 0;
    r.own = own;
    int32_t sharing = comm != NULL ? 1 : r.n; /* threads of one process */
    r.threads = timing->threads / sharing > 1 ? timing->threads / sharing : 1;
    timing->threads = r.threads;
    double *seconds = ARENA_ARRAY(b->arena, (size_t)timing->repeat + 1, double);
    bool ok = true;
    for (int64_t k = 0; k <= timing->repeat && ok; k++) {
        r.gives = k == timing->repeat;
        tdsl_status status =
            comm != NULL ? run_rank(&r, comm) : tdsl_dist_threads(r.n, run_rank, &r);
        for (int32_t i = 0; i < r.n; i++) { /* of processes: its own */
            seconds[k] = r.seconds[i] > seconds[k] ? r.seconds[i] : seconds[k];
        }
        if (k > 0 && (timing->least <= 0 || seconds[k] < timing->least)) {
            timing->least = seconds[k];
            split_time(&r, timing);
        }
        ok = report(b, &r, status);
        *own = !ok && status != TDSL_E_PEER;
    }
    if (ok && r.checkpoint != NULL && r.rank == 0) {
        (void)fprintf(stderr, "%lld leaves found in '%s', %lld computed\n", (long long)r.found,
                      r.checkpoint, (long long)r.kept);
    }
    timing->multiply_adds = kernel->multiply_adds(dims);
    if (ok && timing->repeat > 0) {
        size_t n = (size_t)timing->repeat;
        qsort(seconds + 1, n, sizeof *seconds, compare_times);
        timing->median = (seconds[1 + (n - 1) / 2] + seconds[1 + n / 2]) / 2;
    }
    return ok;
}
