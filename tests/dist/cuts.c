/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with plans for ranks, compiled, on every mesh of 1 to 8 thread ranks: same bits as on one, and as the kernel for one process has
 * them where all numbers are small integers; bytes and memory as measured before the call.
 *
 * cuts LIBRARY MOST < lines `SYMBOL exact|float N_DIMS DIM...`, one call each. */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tdsl/dist.h"

#define ARGS  64
#define GUARD 64

typedef struct Case {
    const tdsl_dist_info *dist;
    const char *name;
    const int64_t *dims;
    tdsl_mesh mesh;
    char *whole[ARGS], *out[ARGS]; /* what comes in; what comes out */
    int64_t bytes[ARGS];
    tdsl_range (*cut)(int32_t, int32_t, const int64_t *, const tdsl_mesh *, int32_t);
    const char *fault;
    int32_t kind, bad; /* a failure of one rank */
    tdsl_status got[64];
    int32_t bad_rank[64];
} Case;

static size_t size_of(int32_t dtype)
{
    static const size_t size[] = {0, 8, 4, 2, 2, 4, 8, 1, 8, 16, 1, 1, 2, 2, 4, 1, 1, 1};
    return size[dtype];
}

static uint64_t state;
static uint32_t next(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void put_number(char *at, int32_t dtype, bool whole)
{
    static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0xbc00, 0xc000},
                          bf16[] = {0, 0x3f80, 0x4000, 0xbf80, 0xc000};
    uint32_t k = next(5);
    double d = whole ? (double)k - 2 : (double)next(1u << 30) / (1u << 29) - 1;
    float f = (float)d;
    int64_t i = (int64_t)k - 2;
    int32_t i32 = (int32_t)i;
    switch (dtype) {
    case TDSL_C128:
        memcpy(at + 8, &d, 8); /* fall through */
    case TDSL_F64:
        memcpy(at, &d, 8);
        break;
    case TDSL_C64:
        memcpy(at + 4, &f, 4); /* fall through */
    case TDSL_F32:
        memcpy(at, &f, 4);
        break;
    case TDSL_I32:
        memcpy(at, &i32, 4);
        break;
    case TDSL_I64:
        memcpy(at, &i, 8);
        break;
    case TDSL_BOOL:
        *at = (char)(k & 1);
        break;
    default:
        memcpy(at, dtype == TDSL_F16 ? &f16[k] : &bf16[k], 2);
    }
}

static int64_t extent(const Case *c, int32_t arg, int32_t d)
{
    tdsl_mesh one = {.n_axes = c->mesh.n_axes};
    for (int32_t a = 0; a < one.n_axes; a++) {
        one.size[a] = 1;
    }
    return tdsl_dist_block(c->dist, &one, 0, c->dims, arg, d).count;
}

/* Copies the block of a rank; `way` 0: from whole to block, 1: back, 2: compare. */
static bool block(Case *c, int32_t rank, int32_t arg, int32_t d, char *part, char *whole,
                  int way, int64_t *elements)
{
    const tdsl_arg_info *info = &c->dist->kernel->args[arg];
    size_t size = size_of(info->dtype);
    if (d == info->rank) {
        *elements = 1;
        if (way == 2) {
            return memcmp(part, whole, size) == 0;
        }
        memcpy(way == 0 ? part : whole, way == 0 ? whole : part, size);
        return true;
    }
    tdsl_range cut = tdsl_dist_block(c->dist, &c->mesh, rank, c->dims, arg, d),
               own = c->cut(arg, d, c->dims, &c->mesh, rank);
    if (cut.first != own.first || cut.count != own.count) {
        c->fault = "NAME_cut and the library have other blocks";
    }
    int64_t below = 1, inner = 1;
    bool same = true;
    for (int32_t e = d + 1; e < info->rank; e++) {
        below *= extent(c, arg, e);
        inner *= tdsl_dist_block(c->dist, &c->mesh, rank, c->dims, arg, e).count;
    }
    *elements = cut.count * inner;
    for (int64_t k = 0; k<cut.count && * elements> 0; k++) {
        int64_t unused = 0;
        same = block(c, rank, arg, d + 1, part + (size_t)(k * inner) * size,
                     whole + (size_t)((cut.first + k) * below) * size, way, &unused) &&
               same;
    }
    return same;
}

static bool is_first(const Case *c, int32_t rank, int32_t arg)
{
    const tdsl_dist_arg *layout = &c->dist->args[arg];
    for (int32_t a = c->mesh.n_axes; a-- > 0; rank /= c->mesh.size[a]) {
        bool cut = false;
        for (int32_t k = 0; k < layout->n_pieces; k++) {
            cut = cut || layout->pieces[k].axis == a;
        }
        if (!cut && rank % c->mesh.size[a] != 0) {
            return false;
        }
    }
    return true;
}

static tdsl_status run_rank(void *user, const tdsl_comm *comm)
{
    Case *c = user;
    const tdsl_kernel_info *k = c->dist->kernel;
    tdsl_dist_count before, after;
    void *args[ARGS];
    int64_t n = 0;
    for (int32_t a = 0; a < k->n_args; a++) {
        args[a] = calloc((size_t)c->bytes[a] + 1, 1); /* more than the block */
        bool reads = k->args[a].role != TDSL_OUT &&
                     (c->dist->args[a].partial == 0 || is_first(c, comm->rank, a));
        if (reads) {
            (void)block(c, comm->rank, a, 0, args[a], c->whole[a], 0, &n);
        }
    }
    tdsl_status status = tdsl_dist_measure(c->dist, &c->mesh, comm->rank, c->dims, &before);
    size_t bytes = status == TDSL_OK ? (size_t)before.workspace : 0; /* not one more */
    char *space = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    memset(space, 0x5a, bytes + GUARD);
    tdsl_dist_options o = {.workspace = space, .bytes = bytes, .before = status};
    status = tdsl_dist_call(comm, c->dist, &c->mesh, c->dims, args, &o, &after);
    for (size_t i = 0; i < GUARD; i++) {
        if (space[bytes + i] != 0x5a) {
            c->fault = "more memory was used than measured";
        }
    }
    if (status == TDSL_OK && (before.sent != after.sent || before.received != after.received ||
                              before.calls != after.calls)) {
        c->fault = "other bytes moved than measured";
    }
    int64_t turn = 0;
    for (int32_t r = 0; status == TDSL_OK && r <= comm->size; r++) {
        for (int32_t a = 0; a < k->n_args; a++) {
            bool writes = k->args[a].role == TDSL_OUT || k->args[a].role == TDSL_INOUT;
            bool first = is_first(c, comm->rank, a);
            if (writes && r == 0 && first) {
                (void)block(c, comm->rank, a, 0, args[a], c->out[a], 1, &n);
            } else if (writes && r == comm->rank + 1 && !first &&
                       c->dist->args[a].partial == 0 &&
                       !block(c, comm->rank, a, 0, args[a], c->out[a], 2, &n)) {
                c->fault = "ranks have other bits of one result";
            }
        }
        (void)comm->agree(comm->state, &turn, 1);
    }
    for (int32_t a = 0; a < k->n_args; a++) {
        free(args[a]);
    }
    free(space);
    return status;
}

/* One rank is told of a failure of its own, has other sizes, or does not come; what all end with. */
enum { OWN_FAILURE, OTHER_SIZES, ABSENT, NO_FAILURE };
static tdsl_status run_failing(void *user, const tdsl_comm *comm)
{
    Case *c = user;
    int64_t dims[64];
    void *args[ARGS];
    bool bad = comm->rank == c->bad && c->kind != NO_FAILURE;
    tdsl_dist_options o = {.before = bad && c->kind == OWN_FAILURE ? TDSL_E_MEMORY : TDSL_OK};
    memcpy(dims, c->dims, sizeof *dims * (size_t)c->dist->kernel->n_dims);
    dims[0] += bad && c->kind == OTHER_SIZES ? 1 : 0;
    for (int32_t a = 0; a < c->dist->kernel->n_args; a++) {
        args[a] = calloc((size_t)c->bytes[a] + 1, 1);
    }
    tdsl_status status = bad && c->kind == ABSENT
                             ? TDSL_E_INTERNAL
                             : tdsl_dist_call(comm, c->dist, &c->mesh, dims, args, &o, NULL);
    for (int32_t a = 0; a < c->dist->kernel->n_args; a++) {
        free(args[a]);
    }
    c->got[comm->rank] = status;
    c->bad_rank[comm->rank] = o.bad_rank;
    return status;
}

static int32_t ranks_of(const tdsl_mesh *mesh)
{
    int32_t n = 1;
    for (int32_t a = 0; a < mesh->n_axes; a++) {
        n *= mesh->size[a];
    }
    return n;
}

/* The next mesh of at most `most` ranks. */
static bool next_mesh(tdsl_mesh *mesh, int32_t most)
{
    do {
        int32_t a = 0;
        while (a < mesh->n_axes && ++mesh->size[a] > most) {
            mesh->size[a++] = 1;
        }
        if (a == mesh->n_axes) {
            return false;
        }
    } while (ranks_of(mesh) > most);
    return true;
}

/* Work shared out in another way than the best: sizes of axes whose product is some of the ranks, one order or the other. */
static void random_grid(Case *c)
{
    tdsl_grid *g = &c->mesh.grid;
    int32_t left = ranks_of(&c->mesh), n = c->dist->n_grid > 0 ? c->dist->n_grid : 1;
    for (int32_t a = 0; a < n; a++) {
        g->size[a] = 1 + (int32_t)next((uint32_t)left);
        left /= g->size[a];
    }
    for (int32_t k = 0, stride = 1, up = (int32_t)next(2); k < n; k++) {
        int32_t a = up ? k : n - 1 - k;
        g->stride[a] = stride;
        stride *= g->size[a];
    }
}

static bool report(const Case *c, const char *what)
{
    printf("%s", c->name);
    for (int32_t d = 0; d < c->dist->kernel->n_dims; d++) {
        printf(" %s=%lld", c->dist->kernel->dims[d].name, (long long)c->dims[d]);
    }
    printf(" on");
    for (int32_t a = 0; a < c->mesh.n_axes; a++) {
        printf("%s%d", a > 0 ? "x" : " ", (int)c->mesh.size[a]);
    }
    for (int32_t a = 0; a < c->dist->n_grid && c->mesh.grid.size[0] > 0; a++) {
        printf("%s%d by %d", a > 0 ? ", " : ", grid ", (int)c->mesh.grid.size[a],
               (int)c->mesh.grid.stride[a]);
    }
    printf(": %s\n", what);
    return false;
}

/* Equal bytes, or, of floats that are not whole numbers, near ones. */
static bool alike(const Case *c, int32_t arg, const char *x, const char *y, bool exact)
{
    int32_t dtype = c->dist->kernel->args[arg].dtype;
    bool wide = dtype == TDSL_F64 || dtype == TDSL_C128,
         narrow = dtype == TDSL_F32 || dtype == TDSL_C64;
    double most = 1e-30, off = 0;
    if (memcmp(x, y, (size_t)c->bytes[arg]) == 0) {
        return true;
    }
    if (!(wide || narrow)) {
        return !exact && (dtype == TDSL_F16 || dtype == TDSL_BF16);
    }
    for (int64_t i = 0; i < c->bytes[arg] / (wide ? 8 : 4); i++) {
        double a =
            wide ? ((const double *)(const void *)x)[i] : ((const float *)(const void *)x)[i];
        double b =
            wide ? ((const double *)(const void *)y)[i] : ((const float *)(const void *)y)[i];
        if (isfinite(a) && isfinite(b)) {
            most = fabs(a) > most ? fabs(a) : most;
            off = fabs(a - b) > off ? fabs(a - b) : off;
        }
    }
    if (exact) {
        return off == 0; /* a sum that begins with -0 may be 0 */
    }
    return off <= most * (wide ? 1e-6 : 1e-2); /* quotients of differences may lose more */
}

static bool run_data(Case *c, int32_t most, bool whole, bool exact)
{
    const tdsl_kernel_info *k = c->dist->kernel;
    char *one[ARGS], *alone[ARGS];
    void *args[ARGS];
    bool ok = true;
    for (int32_t a = 0; a < k->n_args; a++) {
        c->bytes[a] = (int64_t)size_of(k->args[a].dtype);
        for (int32_t d = 0; d < k->args[a].rank; d++) {
            c->bytes[a] *= extent(c, a, d);
        }
        size_t bytes = (size_t)c->bytes[a] + 1, size = size_of(k->args[a].dtype);
        c->whole[a] = calloc(bytes, 1);
        c->out[a] = calloc(bytes, 1);
        one[a] = calloc(bytes, 1);
        alone[a] = calloc(bytes, 1);
        for (int64_t i = 0; i < c->bytes[a] / (int64_t)size; i++) {
            put_number(c->whole[a] + (size_t)i * size, k->args[a].dtype, whole);
        }
        memcpy(alone[a], c->whole[a], (size_t)c->bytes[a]);
        args[a] = alone[a];
    }
    size_t bytes = k->workspace_bytes(c->dims);
    void *space = malloc(bytes + 64);
    tdsl_status status = k->call(c->dims, args, space, bytes);
    free(space);
    for (int32_t a = 0; a < c->mesh.n_axes; a++) {
        c->mesh.size[a] = 1;
    }
    bool first = true, again = false;
    do {
        c->fault = NULL;
        c->mesh.grid = (tdsl_grid){{0}, {0}}; /* the best one; then another */
        if (again) {
            random_grid(c);
        }
        tdsl_status got = tdsl_dist_threads(ranks_of(&c->mesh), run_rank, c);
        if (got != status) {
            char what[80];
            snprintf(what, sizeof what, "status %d, of one process %d", (int)got, (int)status);
            ok = report(c, what);
        }
        ok = c->fault == NULL ? ok : report(c, c->fault);
        for (int32_t a = 0; a < k->n_args && got == TDSL_OK && status == TDSL_OK; a++) {
            if (k->args[a].role != TDSL_OUT && k->args[a].role != TDSL_INOUT) {
                continue;
            }
            if (first) {
                memcpy(one[a], c->out[a], (size_t)c->bytes[a]);
                ok = alike(c, a, c->out[a], alone[a], exact)
                         ? ok
                         : report(c, "not what one process has");
            } else if (memcmp(one[a], c->out[a], (size_t)c->bytes[a]) != 0) {
                ok = report(c, "other bits than on one rank");
            }
        }
        first = false;
        again = !again;
    } while (again || next_mesh(&c->mesh, most));
    c->mesh.grid = (tdsl_grid){{0}, {0}};
    for (int32_t a = 0; a < k->n_args; a++) {
        free(c->whole[a]);
        free(c->out[a]);
        free(one[a]);
        free(alone[a]);
    }
    return ok;
}

static bool run_faults(Case *c)
{
    static const tdsl_status own[] = {TDSL_E_MEMORY, TDSL_E_ABI, TDSL_E_INTERNAL, TDSL_OK},
                             other[] = {TDSL_E_PEER, TDSL_E_ABI, TDSL_E_PEER, TDSL_OK};
    bool ok = true;
    for (int32_t a = 0; a < c->mesh.n_axes; a++) {
        c->mesh.size[a] = a == 0 ? 5 : 1;
    }
    for (c->kind = OWN_FAILURE; c->kind <= NO_FAILURE && c->dist->kernel->n_dims > 0;
         c->kind++) {
        c->bad = c->kind;
        (void)tdsl_dist_threads(5, run_failing, c);
        for (int32_t r = 0; r < 5; r++) {
            bool right = c->got[r] == (r == c->bad ? own : other)[c->kind];
            bool named = c->kind != OWN_FAILURE || c->bad_rank[r] == c->bad;
            ok = right && named ? ok : report(c, "a failure of one rank is not that of all");
        }
    }
    return ok;
}

/* `other_axis`: ranks on an axis more, over which no array lies. */
static bool run_line(void *library, int32_t most, bool other_axis, char *line)
{
    char symbol[256], how[16], name[300];
    int64_t dims[64] = {0};
    int at = 0, n = 0;
    long long value = 0;
    if (sscanf(line, "%255s %15s %d%n", symbol, how, &n, &at) != 3) {
        return true;
    }
    for (int k = 0, more = 0; k < n; k++, at += more) {
        (void)sscanf(line + at, "%lld%n", &value, &more);
        dims[k] = value;
    }
    snprintf(name, sizeof name, "%s_dist", symbol);
    Case c = {.dist = dlsym(library, name), .name = symbol, .dims = dims};
    if (c.dist == NULL || c.dist->kernel->n_dims != n) {
        printf("%s: no such plan with %d dims\n", symbol, n);
        return false;
    }
    snprintf(name, sizeof name, "%s_cut", symbol);
    *(void **)&c.cut = dlsym(library, name);
    c.mesh.n_axes = c.dist->n_axes + (other_axis && c.dist->n_axes < 3 ? 1 : 0);
    bool exact = strcmp(how, "exact") == 0;
    state = 7;
    bool ok = run_data(&c, most, true, exact);
    ok = run_data(&c, most, false, false) && ok;
    return run_faults(&c) && ok;
}

int main(int argc, char **argv)
{
    char line[4096];
    int lines = 0, bad = 0;
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        printf("usage: cuts LIBRARY MOST < LINES: %s\n", argc == 3 ? dlerror() : "");
        return 2;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        lines++;
        bad += run_line(library, (int32_t)atoi(argv[2]), lines % 4 == 0, line) ? 0 : 1;
    }
    printf("%d calls, %d wrong\n", lines, bad);
    return bad > 0 || lines == 0;
}
