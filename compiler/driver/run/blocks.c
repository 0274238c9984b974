/* SPDX-License-Identifier: Apache-2.0 */
/* See blocks.h. A block is walked in runs of elements that lie side by side in the whole array. */
#include "driver/run/blocks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

Block block_of(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
               const int64_t *dims, int32_t arg, const int64_t *extent)
{
    const tdsl_arg_info *info = &dist->kernel->args[arg];
    Block b = {.rank = info->rank,
               .size = (size_t)dtype_bytes((DType)info->dtype),
               .truth = (DType)info->dtype == DTYPE_BOOL};
    for (int32_t d = 0; d < b.rank; d++) {
        tdsl_range cut = tdsl_dist_block(dist, mesh, rank, dims, arg, d);
        b.lo[d] = cut.first;
        b.count[d] = cut.count;
        b.extent[d] = extent[d];
    }
    return b;
}

int64_t block_bytes(const Block *b)
{
    int64_t n = (int64_t)b->size;
    for (int32_t d = 0; d < b->rank; d++) {
        n *= b->count[d];
    }
    return n;
}

bool block_is_first(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
                    int32_t arg)
{
    const tdsl_dist_arg *layout = &dist->args[arg];
    for (int32_t a = mesh->n_axes; a-- > 0; rank /= mesh->size[a]) {
        bool cut = false;
        for (int32_t k = 0; k < layout->n_pieces; k++) {
            cut = cut || layout->pieces[k].axis == a;
        }
        if (!cut && rank % mesh->size[a] != 0) {
            return false;
        }
    }
    return true;
}

static bool read_run(const Block *b, char *to, const BlockWhole *whole, int64_t at,
                     size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n =
            pread(whole->fd, to + done, bytes - done, (off_t)(whole->at + at + (int64_t)done));
        if (n == 0) {
            errno = EIO; /* the file has become shorter */
        }
        if (n <= 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    for (size_t k = 0; b->truth && k < bytes; k++) {
        to[k] = to[k] != 0; /* any other byte is no C bool */
    }
    return true;
}

static bool write_run(const char *from, const BlockWhole *whole, int64_t at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(whole->fd, from + done, bytes - done,
                           (off_t)(whole->at + at + (int64_t)done));
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool move_run(const Block *b, char *block, const BlockWhole *whole, int64_t at,
                     size_t bytes, BlockWay way)
{
    switch (way) {
    case BLOCK_READ:
        return read_run(b, block, whole, at, bytes);
    case BLOCK_WRITE:
        return write_run(block, whole, at, bytes);
    case BLOCK_COMPARE:
        return memcmp(whole->memory + at, block, bytes) == 0;
    case BLOCK_CUT:
        memcpy(block, whole->memory + at, bytes);
        return true;
    case BLOCK_PUT:
        memcpy(whole->memory + at, block, bytes);
        return true;
    }
    return false;
}

/* From dimension d on; the whole array's elements begin at byte `at`. */
static bool walk(const Block *b, int32_t d, int32_t last, char *block, const BlockWhole *whole,
                 int64_t at, BlockWay way)
{
    int64_t inside = (int64_t)b->size, across = (int64_t)b->size;
    for (int32_t e = d + 1; e < b->rank; e++) {
        inside *= b->count[e];
        across *= b->extent[e];
    }
    at += b->lo[d] * across;
    if (d >= last) {
        return move_run(b, block, whole, at, (size_t)(b->count[d] * inside), way);
    }
    bool same = true;
    for (int64_t k = 0; k < b->count[d]; k++) {
        same = walk(b, d + 1, last, block + k * inside, whole, at + k * across, way) && same;
        if (!same && (way == BLOCK_READ || way == BLOCK_WRITE)) {
            break;
        }
    }
    return same;
}

bool block_move(const Block *b, char *block, BlockWhole whole, BlockWay way)
{
    int32_t last = b->rank - 1; /* behind it the block is as wide as the array */
    if (block_bytes(b) == 0) {
        return true;
    }
    if (b->rank == 0) {
        return move_run(b, block, &whole, 0, b->size, way);
    }
    while (last > 0 && b->count[last] == b->extent[last]) {
        last--;
    }
    return walk(b, 0, last, block, &whole, 0, way);
}
