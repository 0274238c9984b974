/* SPDX-License-Identifier: Apache-2.0 */
/* Names of steps in tensors: loop k goes on by TILE_K positions; loops of two levels, k and k2, by BLOCK_K and TILE_K. */
#ifndef BACKEND_NKI_TILE_NAMES_H
#define BACKEND_NKI_TILE_NAMES_H

#include "backend/nki/nki.h"

#define TILE_NAMES_MOST 16

typedef struct TileName {
    const char *loop; /* its variable, without the number behind it, in capitals */
    int64_t size;
    const char *name; /* or null */
} TileName;

typedef struct TileNames {
    uint32_t n;
    TileName at[TILE_NAMES_MOST];
} TileNames;

/* A loop goes on by so many positions of a tensor; those that have a name of the program are noted, in any order and as often as they
 * come. */
void tile_names_note(TileNames *, Arena *, const char *var, int64_t size);
/* Names what was noted, but as nothing in the kernel is called. */
void tile_names_choose(TileNames *, const Kernel *);
/* Or null. */
const char *tile_name(const TileNames *, const char *var, int64_t size);
/* `TILE_I, TILE_K = 512, 128`, or nothing. */
void tile_names_print(const TileNames *, Text *out);

#endif
