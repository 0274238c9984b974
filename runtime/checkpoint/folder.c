/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves as files `leaf-STEP-NUMBER.part` of a folder. A file is words of 64 bits in the order of this machine (see Head), the open
 * dimensions, the results one after the other, and a sum of all bytes before. */
#include "tdsl/checkpoint.h"

#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAULT_BYTES 600
#define NAME_BYTES  96
#define VERSION     1

typedef struct Head {
    char magic[8];
    int64_t version;
    uint64_t plan; /* hash of the digests of the kernel and its local kernels */
    int64_t step, number, leaves;
    uint64_t inputs; /* hash of what the leaf was computed from */
    int64_t n_dims;  /* behind the head */
    int64_t bytes;   /* of the results */
} Head;

static const char magic[8] = {'T', 'D', 'S', 'L', 'L', 'E', 'A', 'F'};

struct tdsl_checkpoint {
    tdsl_dist_store store;
    char *path;
    int folder;
    int32_t rank;
    uint64_t plan;
    int32_t n_dims;
    int64_t *dims;
    int64_t found, kept;
    char fault[FAULT_BYTES];
};

TDSL_PRINTF(2, 3)
static tdsl_status fail(tdsl_checkpoint *c, const char *format, ...)
{
    va_list list;
    if (c->fault[0] == '\0') { /* the first one says most */
        va_start(list, format);
        (void)vsnprintf(c->fault, sizeof c->fault, format, list);
        va_end(list);
    }
    return TDSL_E_ARGUMENT;
}

/* ---- hashes ---- */

/* Of bytes, however they are handed over. */
typedef struct Hash {
    uint64_t value, word, bytes;
} Hash;

static uint64_t mix(uint64_t value, uint64_t word)
{
    value = (value ^ word) * 0x9e3779b97f4a7c15u;
    return value ^ value >> 32;
}

static void hash_bytes(Hash *h, const void *data, size_t bytes)
{
    const char *at = data;
    for (; bytes > 0 && h->bytes % 8 != 0; bytes--, at++) {
        h->word |= (uint64_t)(unsigned char)*at << h->bytes % 8 * 8;
        h->bytes++;
        if (h->bytes % 8 == 0) {
            h->value = mix(h->value, h->word);
            h->word = 0;
        }
    }
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, 8);
        h->value = mix(h->value, word);
        h->bytes += 8;
    }
    for (; bytes > 0; bytes--, at++) {
        h->word |= (uint64_t)(unsigned char)*at << h->bytes % 8 * 8;
        h->bytes++;
    }
}

static uint64_t hash_value(const Hash *h)
{
    return mix(mix(mix(h->value, h->word), h->bytes), 0);
}

static void hash_text(Hash *h, const char *text)
{
    const char *from = text == NULL ? "" : text;
    hash_bytes(h, from, strlen(from) + 1);
}

static uint64_t plan_hash(const tdsl_dist_info *dist)
{
    Hash h = {1, 0, 0};
    hash_text(&h, dist->kernel->name);
    hash_text(&h, dist->kernel->digest);
    for (int32_t k = 0; k < dist->n_steps; k++) {
        hash_text(&h, dist->steps[k].kernel == NULL ? NULL : dist->steps[k].kernel->digest);
    }
    return hash_value(&h);
}

/* ---- reading ---- */

static bool read_hashed(int fd, Hash *h, void *to, size_t bytes)
{
    bool ok = tdsl_read_fully(fd, to, bytes);
    hash_bytes(h, to, ok ? bytes : 0);
    return ok;
}

/* Results of so many bytes, to where a leaf has them, or nowhere. */
static bool read_results(int fd, Hash *h, const tdsl_dist_leaf *leaf, int64_t bytes)
{
    char page[4096];
    bool ok = true;
    for (int32_t k = 0; leaf != NULL && ok && k < leaf->n_results; k++) {
        ok = read_hashed(fd, h, leaf->results[k].data, (size_t)leaf->results[k].bytes);
    }
    for (int64_t left = leaf == NULL ? bytes : 0; ok && left > 0;) {
        size_t n = left < (int64_t)sizeof page ? (size_t)left : sizeof page;
        ok = read_hashed(fd, h, page, n);
        left -= (int64_t)n;
    }
    return ok;
}

static tdsl_status refuse(tdsl_checkpoint *c, const char *name, const char *what,
                          const char *help)
{
    return fail(c, "'%s/%s' %s: %s", c->path, name, what, help);
}

static const char damaged[] = "is damaged",
                  remove_it[] = "remove it, and its leaf is computed again",
                  take_other[] = "take another folder, or remove what is in this one";

/* Reads a file and says what is wrong with it. `want`: the head that it must have; null: that of any leaf of this call. */
static tdsl_status read_file(tdsl_checkpoint *c, int fd, const char *name, const Head *want,
                             const tdsl_dist_leaf *leaf)
{
    Head head;
    Hash h = {2, 0, 0};
    struct stat st;
    uint64_t sum = 0;
    bool same = true;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return refuse(c, name, "is no file", remove_it);
    }
    if (!read_hashed(fd, &h, &head, sizeof head) ||
        memcmp(head.magic, magic, sizeof magic) != 0 || head.version != VERSION) {
        return refuse(c, name, "is no leaf of a checkpoint", take_other);
    }
    int64_t rest = (int64_t)st.st_size - (int64_t)sizeof head - 8;
    if (head.n_dims < 0 || head.n_dims > rest / 8 || head.bytes != rest - 8 * head.n_dims) {
        return refuse(c, name, damaged, remove_it);
    }
    for (int64_t d = 0; d < head.n_dims; d++) {
        int64_t dim = 0;
        if (!read_hashed(fd, &h, &dim, 8)) {
            return refuse(c, name, damaged, remove_it);
        }
        same = same && d < c->n_dims && dim == c->dims[d];
    }
    bool fits = leaf == NULL || head.bytes == want->bytes;
    if (!read_results(fd, &h, fits ? leaf : NULL, head.bytes) ||
        !tdsl_read_fully(fd, &sum, 8) || sum != hash_value(&h)) {
        return refuse(c, name, damaged, remove_it);
    }
    if (head.plan != c->plan) {
        return refuse(c, name, "is of another program or plan", take_other);
    }
    if (!same || head.n_dims != c->n_dims) {
        return refuse(c, name, "is of other sizes", take_other);
    }
    if (want != NULL && (!fits || head.step != want->step || head.number != want->number ||
                         head.leaves != want->leaves)) {
        return refuse(c, name, "is another leaf than its name says", remove_it);
    }
    if (want != NULL && head.inputs != want->inputs) {
        return refuse(c, name, "was computed from other arguments", take_other);
    }
    return TDSL_OK;
}

/* ---- the store ---- */

static Head head_of(const tdsl_checkpoint *c, const tdsl_dist_leaf *leaf)
{
    Head head = {.version = VERSION,
                 .plan = c->plan,
                 .step = leaf->step,
                 .number = leaf->number,
                 .leaves = leaf->leaves,
                 .n_dims = c->n_dims};
    Hash h = {3, 0, 0};
    memcpy(head.magic, magic, sizeof magic);
    for (int32_t k = 0; k < leaf->n_inputs; k++) {
        hash_bytes(&h, &leaf->inputs[k].bytes, 8);
        hash_bytes(&h, leaf->inputs[k].data, (size_t)leaf->inputs[k].bytes);
    }
    head.inputs = hash_value(&h);
    for (int32_t k = 0; k < leaf->n_results; k++) {
        head.bytes += leaf->results[k].bytes;
    }
    return head;
}

static void name_of(const tdsl_dist_leaf *leaf, char name[NAME_BYTES])
{
    (void)snprintf(name, NAME_BYTES, "leaf-%d-%lld.part", (int)leaf->step,
                   (long long)leaf->number);
}

static tdsl_status find(void *state, const tdsl_dist_leaf *leaf, int32_t *found)
{
    tdsl_checkpoint *c = state;
    char name[NAME_BYTES];
    name_of(leaf, name);
    *found = 0;
    int fd = openat(c->folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? TDSL_OK : refuse(c, name, "cannot be read", strerror(errno));
    }
    Head want = head_of(c, leaf);
    tdsl_status status = read_file(c, fd, name, &want, leaf);
    (void)close(fd);
    *found = status == TDSL_OK ? 1 : 0;
    c->found += *found;
    return status;
}

static bool write_hashed(int fd, Hash *h, const void *from, size_t bytes)
{
    hash_bytes(h, from, bytes);
    for (const char *at = from; bytes > 0;) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return false;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_leaf(const tdsl_checkpoint *c, int fd, const tdsl_dist_leaf *leaf)
{
    Head head = head_of(c, leaf);
    Hash h = {2, 0, 0}, unused = {0, 0, 0};
    bool ok = write_hashed(fd, &h, &head, sizeof head) &&
              write_hashed(fd, &h, c->dims, (size_t)c->n_dims * 8);
    for (int32_t k = 0; ok && k < leaf->n_results; k++) {
        ok = write_hashed(fd, &h, leaf->results[k].data, (size_t)leaf->results[k].bytes);
    }
    uint64_t sum = hash_value(&h);
    return ok && write_hashed(fd, &unused, &sum, 8) && fsync(fd) == 0;
}

static tdsl_status keep(void *state, const tdsl_dist_leaf *leaf)
{
    tdsl_checkpoint *c = state;
    char name[NAME_BYTES], unfinished[2 * NAME_BYTES];
    name_of(leaf, name);
    (void)snprintf(unfinished, sizeof unfinished, "%s.%lld.%d.unfinished", name,
                   (long long)getpid(), (int)c->rank);
    int fd = openat(c->folder, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && write_leaf(c, fd, leaf);
    int because = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        because = errno;
        ok = false;
    }
    if (ok && renameat(c->folder, unfinished, c->folder, name) != 0) {
        because = errno;
        ok = false;
    }
    if (!ok) {
        (void)unlinkat(c->folder, unfinished, 0);
        return refuse(c, name, "cannot be written", strerror(because));
    }
    (void)fsync(c->folder); /* not every file system has it */
    c->kept++;
    return TDSL_OK;
}

/* ---- opening ---- */

static bool is_leaf_name(const char *name)
{
    int step = 0, end = -1;
    long long number = 0;
    return sscanf(name, "leaf-%d-%lld.part%n", &step, &number, &end) == 2 && end > 0 &&
           name[end] == '\0';
}

/* Every rank looks at its share of the files, so that one that is refused is heard of before anything is computed. */
static tdsl_status look(tdsl_checkpoint *c, int32_t ranks)
{
    int again = openat(c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    tdsl_status status = TDSL_OK;
    if (list == NULL) {
        status = fail(c, "cannot read '%s': %s", c->path, strerror(errno));
        if (again >= 0) {
            (void)close(again);
        }
        return status;
    }
    for (const struct dirent *e = readdir(list); e != NULL && status == TDSL_OK;
         e = readdir(list)) {
        Hash h = {4, 0, 0};
        hash_text(&h, e->d_name);
        if (!is_leaf_name(e->d_name) || hash_value(&h) % (uint64_t)ranks != (uint64_t)c->rank) {
            continue;
        }
        int fd = openat(c->folder, e->d_name, O_RDONLY | O_CLOEXEC);
        status = fd < 0 ? refuse(c, e->d_name, "cannot be read", strerror(errno))
                        : read_file(c, fd, e->d_name, NULL, NULL);
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    (void)closedir(list);
    return status;
}

tdsl_status tdsl_checkpoint_open(const char *folder, const tdsl_dist_info *dist,
                                 const int64_t *dims, int32_t rank, int32_t ranks,
                                 tdsl_checkpoint **out)
{
    *out = NULL;
    if (folder == NULL || dist == NULL || dist->version != TDSL_DIST_VERSION || rank < 0 ||
        rank >= ranks) {
        return dist != NULL && dist->version != TDSL_DIST_VERSION ? TDSL_E_ABI
                                                                  : TDSL_E_ARGUMENT;
    }
    tdsl_checkpoint *c = calloc(1, sizeof *c);
    size_t n = (size_t)dist->kernel->n_dims, length = strlen(folder) + 1;
    if (c != NULL) {
        c->folder = -1;
        c->path = malloc(length);
        c->dims = malloc((n + 1) * sizeof *c->dims);
    }
    if (c == NULL || c->path == NULL || c->dims == NULL) {
        tdsl_checkpoint_close(c);
        return TDSL_E_MEMORY;
    }
    memcpy(c->path, folder, length);
    for (size_t d = 0; d < n; d++) {
        c->dims[d] = dims[d];
    }
    c->n_dims = dist->kernel->n_dims;
    c->rank = rank;
    c->plan = plan_hash(dist);
    c->store = (tdsl_dist_store){c, find, keep};
    *out = c;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return fail(c, "cannot make '%s': %s", folder, strerror(errno));
    }
    c->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return c->folder < 0 ? fail(c, "cannot read '%s': %s", folder, strerror(errno))
                         : look(c, ranks);
}

const tdsl_dist_store *tdsl_checkpoint_store(const tdsl_checkpoint *checkpoint)
{
    return checkpoint == NULL ? NULL : &checkpoint->store;
}

const char *tdsl_checkpoint_fault(const tdsl_checkpoint *checkpoint)
{
    return checkpoint == NULL ? "" : checkpoint->fault;
}

int64_t tdsl_checkpoint_found(const tdsl_checkpoint *checkpoint)
{
    return checkpoint == NULL ? 0 : checkpoint->found;
}

int64_t tdsl_checkpoint_kept(const tdsl_checkpoint *checkpoint)
{
    return checkpoint == NULL ? 0 : checkpoint->kept;
}

void tdsl_checkpoint_close(tdsl_checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        if (checkpoint->folder >= 0) {
            (void)close(checkpoint->folder);
        }
        free(checkpoint->path);
        free(checkpoint->dims);
        free(checkpoint);
    }
}
