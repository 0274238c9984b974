/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over tiles of which some change nothing (steady.c), for those who make them (windows.c). */
#ifndef BACKEND_NKI_WINDOWS_H
#define BACKEND_NKI_WINDOWS_H

#include "backend/nki/open_loops.h"
#include "backend/nki/place.h"

/* Tiles [from, to) in the first iterations of loops that stay; [0] says how `from` moves with these, [1] how `to` does. */
typedef struct WindowTiles {
    int64_t start, from, to;
    Affine by[2];
} WindowTiles;

/* False: the tiles of some iterations are no such interval. */
bool window_find(Lower *l, const Stmt *s, WindowTiles *t);
/* Does a statement in it begin with some iteration of a loop? */
bool window_goes_on(const Stmt *s);
/* Its variable is that of a tile, which moves as end `end` does. */
void window_set(Lower *l, const Stmt *s, const WindowTiles *t, int64_t tile, uint32_t end);
/* Does a loop have fewer tiles in later iterations of one around? These are not numbered from 0 on, since the end of such a loop would
 * be a difference. */
bool window_has_fewer(Affine last);
/* May its tiles be numbered from the window's first to a number? */
bool window_may_begin(const WindowTiles *t);

#endif
