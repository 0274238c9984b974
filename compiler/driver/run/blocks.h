/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of arrays: cut from a whole array, put back, compared, or moved to and from a .npy file by offset. */
#ifndef DRIVER_RUN_BLOCKS_H
#define DRIVER_RUN_BLOCKS_H

#include <tdsl/dist.h>

#include "op/op.h"

typedef struct Block {
    int64_t lo[RANK_LIMIT], count[RANK_LIMIT], extent[RANK_LIMIT];
    int32_t rank;
    size_t size; /* of an element */
    bool truth;  /* bytes are bools */
} Block;

/* What a rank has of argument `arg`, whose whole array has these extents. */
Block block_of(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
               const int64_t *dims, int32_t arg, const int64_t *extent);
int64_t block_bytes(const Block *b);

/* Is this the first of the ranks that have the same block of the argument? */
bool block_is_first(const tdsl_dist_info *dist, const tdsl_mesh *mesh, int32_t rank,
                    int32_t arg);

/* From the whole array to the block, back, from and to an open file, or nothing moves and false says that they differ. */
typedef enum BlockWay { BLOCK_CUT, BLOCK_PUT, BLOCK_COMPARE, BLOCK_READ, BLOCK_WRITE } BlockWay;
typedef struct BlockWhole {
    char *memory;
    int fd;
    int64_t at; /* of the first element in the file */
} BlockWhole;
/* False with errno set where a file fails. */
bool block_move(const Block *b, char *block, BlockWhole whole, BlockWay way);

#endif
