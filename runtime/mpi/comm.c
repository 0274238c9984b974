/* SPDX-License-Identifier: Apache-2.0 */
/* See tdsl/mpi.h. Everything is non-blocking and polled, so that a rank that does not come ends in a status, not in a wait. */
#include "tdsl/mpi.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Bytes of one message: MPI before 4 counts them in an int. */
#define PIECE ((int64_t)1 << 30)
#define TAG   1

/* Numbers of an agreement, at most. */
#define NUMBERS 16

typedef struct State {
    MPI_Comm comm;
    int32_t size;
    int64_t timeout_ms;
    bool lost;
    MPI_Request *request;
    int64_t n, room;
    int64_t own[NUMBERS],
        least[NUMBERS]; /* here, since MPI may write them long after a wait was given up */
} State;

static int64_t now_ms(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static MPI_Request *next_request(State *s)
{
    if (s->n == s->room) {
        int64_t room = s->room == 0 ? 64 : 2 * s->room;
        MPI_Request *more = realloc(s->request, (size_t)room * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        s->request = more;
        s->room = room;
    }
    s->request[s->n] = MPI_REQUEST_NULL;
    return &s->request[s->n++];
}

/* Polls until all requests are done. */
static tdsl_status wait_all(State *s)
{
    int64_t begin = now_ms();
    for (int64_t k = 0; k < s->n;) {
        int done = 0;
        if (MPI_Test(&s->request[k], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            s->lost = true;
            return TDSL_E_PEER;
        }
        if (done != 0) {
            k++;
            continue;
        }
        (void)sched_yield(); /* there may be more ranks than cores */
        if (s->timeout_ms > 0 && now_ms() - begin > s->timeout_ms) {
            s->lost = true; /* its requests stay: MPI-3 cannot take back all of them */
            return TDSL_E_TIMEOUT;
        }
    }
    return TDSL_OK;
}

static tdsl_status post(State *s, int32_t rank, const tdsl_dist_bytes *what, bool send)
{
    for (int64_t at = 0; at < what->bytes; at += PIECE) {
        int64_t left = what->bytes - at;
        int n = (int)(left < PIECE ? left : PIECE);
        MPI_Request *r = next_request(s);
        if (r == NULL) {
            return TDSL_E_MEMORY;
        }
        char *data = (char *)what->data + at;
        int status = send ? MPI_Isend(data, n, MPI_BYTE, rank, TAG, s->comm, r)
                          : MPI_Irecv(data, n, MPI_BYTE, rank, TAG, s->comm, r);
        if (status != MPI_SUCCESS) {
            return TDSL_E_PEER;
        }
    }
    return TDSL_OK;
}

static tdsl_status exchange(void *state, const tdsl_dist_bytes *send,
                            const tdsl_dist_bytes *receive)
{
    State *s = state;
    tdsl_status status = TDSL_OK;
    if (s->lost) {
        return TDSL_E_PEER;
    }
    s->n = 0;
    for (int32_t r = 0; status == TDSL_OK && r < s->size; r++) {
        status = post(s, r, &receive[r], false);
    }
    for (int32_t r = 0; status == TDSL_OK && r < s->size; r++) {
        status = post(s, r, &send[r], true);
    }
    s->lost = s->lost || status != TDSL_OK;
    return status == TDSL_OK ? wait_all(s) : status;
}

static tdsl_status agree(void *state, int64_t *numbers, int32_t n)
{
    State *s = state;
    if (s->lost) {
        return TDSL_E_PEER;
    }
    s->n = 0;
    MPI_Request *r = n > NUMBERS ? NULL : next_request(s);
    for (int32_t k = 0; r != NULL && k < n; k++) {
        s->own[k] = numbers[k];
    }
    if (r == NULL ||
        MPI_Iallreduce(s->own, s->least, n, MPI_INT64_T, MPI_MIN, s->comm, r) != MPI_SUCCESS) {
        s->lost = true;
        return TDSL_E_PEER;
    }
    tdsl_status status = wait_all(s);
    for (int32_t k = 0; status == TDSL_OK && k < n; k++) {
        numbers[k] = s->least[k];
    }
    return status;
}

/* A duplicate of the communicator, unless some rank does not ask for one in time. */
static tdsl_status duplicate(State *s, MPI_Comm comm)
{
    MPI_Request *r = next_request(s);
    if (r == NULL) {
        return TDSL_E_MEMORY;
    }
    if (MPI_Comm_idup(comm, &s->comm, r) != MPI_SUCCESS) {
        return TDSL_E_PEER;
    }
    return wait_all(s);
}

static tdsl_status describe(State *s, tdsl_comm *out)
{
    int rank = 0, size = 0;
    if (MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(s->comm, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(s->comm, &size) != MPI_SUCCESS) {
        return TDSL_E_PEER;
    }
    s->size = size;
    *out = (tdsl_comm){s, rank, size, exchange, agree};
    return TDSL_OK;
}

static void release(State *s)
{
    if (!s->lost) { /* else requests, which MPI may still serve, are in it */
        free(s->request);
        free(s);
    }
}

tdsl_status tdsl_comm_from_mpi(MPI_Comm comm, int32_t timeout_ms, tdsl_comm *out)
{
    State *s = out == NULL ? NULL : calloc(1, sizeof *s);
    if (s == NULL) {
        return out == NULL ? TDSL_E_ARGUMENT : TDSL_E_MEMORY;
    }
    s->timeout_ms = timeout_ms;
    tdsl_status status = duplicate(s, comm);
    status = status == TDSL_OK ? describe(s, out) : status;
    if (status != TDSL_OK) {
        release(s);
    }
    return status;
}

tdsl_status tdsl_comm_from_fortran(tdsl_mpi_fint comm, int32_t timeout_ms, tdsl_comm *out)
{
#ifdef MPI_ABI_VERSION
    return tdsl_comm_from_mpi(MPI_Comm_fromint(comm), timeout_ms, out);
#else
    return tdsl_comm_from_mpi(MPI_Comm_f2c(comm), timeout_ms, out);
#endif
}

int tdsl_comm_is_lost(const tdsl_comm *comm)
{
    const State *s = comm->state;
    return s != NULL && s->lost;
}

void tdsl_comm_free_mpi(tdsl_comm *comm)
{
    State *s = comm->state;
    if (s != NULL) {
        if (!s->lost) {
            (void)MPI_Comm_free(&s->comm);
        }
        release(s);
    }
    comm->state = NULL;
}
