/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run --ranks=N: a kernel on ranks that are threads of this process. */
#ifndef DRIVER_RUN_RANKS_H
#define DRIVER_RUN_RANKS_H

#include "driver/run/c_library.h"
#include "driver/mesh.h"
#include "driver/run/npy.h"

struct tdsl_comm;

/* Files of which each process reads and writes its blocks. */
typedef struct RankFiles {
    const NpyFile *const *in; /* [params]: null where the array is in memory */
    const char *const *out;   /* [results]; null: rank 0 makes the results */
    const char *checkpoint;   /* the folder of leaves; null: none are kept */
} RankFiles;

/* Calls the kernel of that head that is named `symbol` in the C text, on the ranks that `wish` says: arrays are cut, results put together as
 * the head lists them. Over `comm` this process is one rank, and rank 0 has the results, or files have them; null: ranks are threads. *own: the failure is this process's own. */
bool run_ranks(CLibrary *b, const struct tdsl_comm *comm, const Head *h, const char *symbol,
               const MeshWish *wish, const int64_t *dims, Tensor *const *args,
               const RankFiles *files, Tensor **results, CTiming *timing, bool *own);

#endif
