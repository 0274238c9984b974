/* SPDX-License-Identifier: Apache-2.0 */
/* `--mesh r:8,c:8`, `--ranks=64`: how many ranks an axis of a kernel has. */
#ifndef DRIVER_MESH_H
#define DRIVER_MESH_H

#include "driver/options.h"
#include "driver/usage.h"

/* What is said of them. */
typedef struct MeshWish {
    int64_t ranks;    /* 0: not said */
    const char *text; /* of --mesh; null: not given */
    int64_t memory;   /* of --rank-memory; 0: not said */
} MeshWish;

static inline bool mesh_is_asked(const MeshWish *w)
{
    return w->ranks > 0 || w->text != NULL;
}

#define RANKS_MOST 1048576 /* of a plan */

/* False after a message (exit 2). */
bool mesh_wish(const Options *o, int64_t most, Usage *usage, MeshWish *out);

#define MESH_AXES 8

typedef struct MeshAxes {
    uint32_t n;
    const char *name[MESH_AXES];
    int32_t size[MESH_AXES];
} MeshAxes;

/* The mesh for a kernel with these axes ("" for one without a name): as --mesh has them, else as nearly equal as --ranks allows. Axes that --mesh has
 * beside all of the kernel's come behind them. On false *why says why not. */
bool mesh_sizes(Arena *arena, const MeshWish *wish, uint32_t n_axes, const char *const *axis,
                MeshAxes *axes, const char **why);

#endif
