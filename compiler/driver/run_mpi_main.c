/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run-mpi: tdsl-run, of which each process is a rank. All read, rank 0 writes. */
#include <tdsl/mpi.h>

#include "driver/run.h"

/* Ranks compile at their own pace. */
#define WAIT_MS 600000

int main(int argc, char **argv)
{
    int provided = 0, status = 3;
    tdsl_comm comm = {0};
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        return status;
    }
    if (tdsl_comm_from_mpi(MPI_COMM_WORLD, WAIT_MS, &comm) == TDSL_OK) {
        status = tool_main(TOOL_RUN, argc, argv, &comm, run_tool);
        tdsl_comm_free_mpi(&comm);
    }
    (void)MPI_Finalize();
    return status;
}
