/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of a kernel on ranks: a folder in which each finished leaf is a file, so that a run that was stopped goes on where it was, on any
 * number of ranks, and ends with the same bits. In libtdsl.a alone, not in libtdsl.so: programs that do not call it do not have it.
 *
 *     tdsl_checkpoint *checkpoint = NULL;
 *     options.before = tdsl_checkpoint_open("parts", &net_dist, dims, comm.rank, comm.size, &checkpoint);
 *     options.store = tdsl_checkpoint_store(checkpoint);
 *     status = tdsl_dist_call(&comm, &net_dist, &mesh, dims, args, &options, NULL);
 *     if (tdsl_checkpoint_fault(checkpoint)[0] != '\0') ...
 *     tdsl_checkpoint_close(checkpoint);
 *
 * A file is written under another name, forced to the disk, and renamed: it is whole or not there. It has the digest of program and plan, sizes, which
 * leaf it is, a hash of what the leaf was computed from, the results, and a checksum. One that is damaged, or of another program, plan,
 * sizes or arguments, is refused by its name. Leaves are kept whose inputs and results have no other cut than that of the leaf; steps of others,
 * as of blocks of a matrix, are computed again. */
#ifndef TDSL_CHECKPOINT_H
#define TDSL_CHECKPOINT_H

#include "tdsl/dist.h"

TDSL_BEGIN

typedef struct tdsl_checkpoint tdsl_checkpoint;

/* Makes the folder, if it is not there, and looks at the files in it, each rank at its share of them. *out is the caller's to close, after a failure too; null
 * where there was no memory (TDSL_E_MEMORY). TDSL_E_ARGUMENT: the folder or a file is refused, tdsl_checkpoint_fault says why; handed to
 * tdsl_dist_call as `before` it is the failure of all ranks. */
TDSL_NODISCARD tdsl_status tdsl_checkpoint_open(const char *folder, const tdsl_dist_info *dist,
                                                const int64_t *dims, int32_t rank,
                                                int32_t ranks, tdsl_checkpoint **out);

/* Of one rank and one call at a time; null of null. It ends with the checkpoint. */
const tdsl_dist_store *tdsl_checkpoint_store(const tdsl_checkpoint *checkpoint);

/* "" while nothing is wrong; "" of null. */
const char *tdsl_checkpoint_fault(const tdsl_checkpoint *checkpoint);

/* How many leaves this rank has found, and how many it has computed and kept. */
int64_t tdsl_checkpoint_found(const tdsl_checkpoint *checkpoint);
int64_t tdsl_checkpoint_kept(const tdsl_checkpoint *checkpoint);

void tdsl_checkpoint_close(tdsl_checkpoint *checkpoint);

TDSL_END

#endif
