/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that stay loops, and what is made before them. */
#ifndef BACKEND_NKI_OPEN_LOOPS_H
#define BACKEND_NKI_OPEN_LOOPS_H

#include "backend/nki/place.h"

/* Begins a loop of so many iterations that stays one; false: it is to be unrolled. */
bool open_loop(Lower *l, const Stmt *s, int64_t start, int64_t trips);
/* The same of a loop that begins at `first`, a sum of variables of loops around: from there to `trips`. */
bool open_loop_from(Lower *l, const Stmt *s, int64_t start, Affine first, int64_t trips);
/* A loop of `trips` iterations, or where `last` moves of as many as that says; positions of its variable are `start` and what `moves` says. */
bool open_loop_window(Lower *l, const Stmt *s, int64_t start, Affine moves, Affine last);
/* How many of the first iterations are not as those after them, which may stay; 0: none, or all. */
int64_t loop_peeled(Lower *l, const Stmt *s, int64_t start, int64_t trips);
void close_loop(Lower *l);
/* The same over a label of the statement, by steps, from iteration `first` on; what is left of it is then in l->now. */
bool open_label(Lower *l, uint32_t label, int64_t step, Affine first, const Stmt *with);
void close_label(Lower *l, uint32_t label, int64_t step, const Box *full, Affine moves);
/* The same of what makes tiles, that nobody else writes: its variable is that of the innermost loop then. */
bool open_tiles(Lower *l, const char *name, int64_t trips);
void close_tiles(Lower *l);
/* steady.c: are ranges of the statements the same in each iteration of the loops that are open? */
bool body_is_steady(Lower *l, Stmt *const *body, uint32_t n);

/* In how many of the open loops a view must be made: it moves with the innermost of these, or is of something written there;
 * all, where there is no room for so many bytes more that live as long. */
uint32_t hoist_depth(const Lower *l, const Place *x, int64_t bytes);
/* The same of a tile that holds positions which move so. */
uint32_t hoist_depth_of(const Lower *l, Affine moves, int64_t bytes);
/* What is made until the end of it goes where so many loops are open. */
Hoist hoist_begin(Lower *l, uint32_t depth, int64_t bytes);
void hoist_end(Lower *l, const Hoist *hoist);

/* ---- view_cache.c: views that were made ---- */

bool cache_find(Lower *l, const int64_t *key, uint32_t n, TileView *out);
void cache_put(Lower *l, const int64_t *key, uint32_t n, TileView v);
/* Loops that were open when the tile of a view was made, of which it is all; else those that are. */
uint32_t cache_depth(const Lower *l, BufRef buf);
/* Forgets what was made in the loop that ends. */
void cache_leave(Lower *l, uint64_t since);
/* Part of the view has been transposed. */
void cache_mark_raw(Lower *l, TileView part);
/* Forgets tagged views of a buffer, but those of `tag`. */
void cache_drop(Lower *l, BufRef buf, uint32_t tag);
/* What tells one view of a buffer from another; at most 4 * LABELS + 8 words. */
uint32_t view_key(Lower *l, const Place *x, Labels p, Labels f, const Box *box, int64_t *key);

#endif
