/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run-mpi: tdsl-run, of which each process is a rank. Each reads and writes its blocks of files, rank 0 prints. A rank that hangs, or never comes, ends the job. */
#include <tdsl/mpi.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/run/run.h"

/* As tdsl-run ends where a kernel cannot run. */
#define FAILED 5

/* Seconds that MPI_Abort may take. */
#define ABORT_SECONDS 10

/* --timeout=SECONDS, before the command line is read in earnest: MPI_Init waits too. */
static unsigned timeout_seconds(int argc, char **argv)
{
    static const char option[] = "--timeout=";
    long long seconds = RUN_TIMEOUT;
    for (int k = 1; k < argc; k++) {
        if (strncmp(argv[k], option, sizeof option - 1) == 0) {
            long long given = strtoll(argv[k] + sizeof option - 1, NULL, 10);
            seconds = given >= 1 && given <= RUN_TIMEOUT_MOST ? given : seconds;
        }
    }
    return (unsigned)seconds;
}

/* In MPI_Init and MPI_Finalize, which cannot be given a limit. */
static void give_up(int signal)
{
    static const char text[] =
        "tdsl-run-mpi: error: not all ranks began and ended within the --timeout\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(FAILED);
}

int main(int argc, char **argv)
{
    unsigned seconds = timeout_seconds(argc, argv);
    int provided = 0, status = FAILED;
    tdsl_comm comm = {0};
    struct sigaction action = {.sa_handler = give_up};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(seconds);
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        return FAILED;
    }
    (void)alarm(0);
    bool lost = tdsl_comm_from_mpi(MPI_COMM_WORLD, (int32_t)seconds * 1000, &comm) != TDSL_OK;
    if (!lost) {
        status = tool_main(TOOL_RUN, argc, argv, &comm, run_tool);
        lost = tdsl_comm_is_lost(&comm) != 0;
        tdsl_comm_free_mpi(&comm);
    }
    (void)alarm(lost ? ABORT_SECONDS : seconds);
    if (lost) {
        const struct timespec moment = {0, 200000000};
        (void)nanosleep(
            &moment,
            NULL); /* a launcher may drop what it has not yet passed on of the message */
        (void)MPI_Abort(MPI_COMM_WORLD, status);
    }
    (void)MPI_Finalize();
    return status;
}
