/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run --ranks=N: a kernel on ranks that are threads of this process. */
#ifndef DRIVER_RUN_RANKS_H
#define DRIVER_RUN_RANKS_H

#include "driver/c_library.h"
#include "driver/mesh.h"

/* Calls the kernel of that head that is named `symbol` in the C text, on the ranks that `wish` says: arrays are cut, results put together as
 * the head lists them. */
bool run_ranks(CLibrary *b, const Head *h, const char *symbol, const MeshWish *wish,
               const int64_t *dims, Tensor *const *args, Tensor **results, CTiming *timing);

#endif
