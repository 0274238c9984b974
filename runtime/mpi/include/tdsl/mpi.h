/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator of MPI for kernels on ranks (tdsl/dist.h). MPI moves bytes and finds the least of numbers; sums are added by libtdsl, so that
 * results have the same bits under every MPI. The program initialises MPI, with MPI_THREAD_FUNNELED or more if kernels use threads. */
#ifndef TDSL_MPI_H
#define TDSL_MPI_H

#include <mpi.h>

#include "tdsl/dist.h"

TDSL_BEGIN

/* A duplicate of the communicator; all of its ranks call this. A wait of more than `timeout_ms` (0: none is too long), here or in a call, is
 * TDSL_E_TIMEOUT, and the communicator is lost: later calls fail at once with TDSL_E_PEER. What was moving is not taken back, so a workspace that was given to the
 * call stays in use. MPI_Finalize may wait for the rank that did not come: it is the program that calls MPI_Abort. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_comm_from_mpi(MPI_Comm comm, int32_t timeout_ms,
                                                       tdsl_comm *out);
/* The same from a handle of Fortran, as mpi4py gives by py2f(). The standard ABI of MPI 5 has handles as int, and no MPI_Fint. */
#ifdef MPI_ABI_VERSION
typedef int tdsl_mpi_fint;
#else
typedef MPI_Fint tdsl_mpi_fint;
#endif
TDSL_API TDSL_NODISCARD tdsl_status tdsl_comm_from_fortran(tdsl_mpi_fint comm,
                                                           int32_t timeout_ms, tdsl_comm *out);
/* Not 0: a call has failed in a way that leaves ranks at different places. */
TDSL_API int tdsl_comm_is_lost(const tdsl_comm *comm);
TDSL_API void tdsl_comm_free_mpi(tdsl_comm *comm);

TDSL_END

#endif
