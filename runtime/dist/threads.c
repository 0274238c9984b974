/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of this process. They meet at a barrier before and after each exchange; between the two each copies what the others
 * have for it. */
#include "tdsl/dist.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 8

typedef struct Team {
    pthread_mutex_t lock;
    pthread_cond_t met;
    int32_t ranks, waiting, gone; /* gone: have returned, and meet nobody again */
    uint64_t meetings;
    bool lost;
    const tdsl_dist_bytes **send; /* [ranks] */
    int64_t least[NUMBERS];
} Team;

typedef struct Rank {
    Team *team;
    tdsl_comm comm;
    tdsl_status (*run)(void *user, const tdsl_comm *comm);
    void *user;
    pthread_t thread;
    tdsl_status status;
} Rank;

/* Waits until all ranks are here. False: one of them will not come. With the lock held. */
static bool meet(Team *t)
{
    uint64_t meeting = t->meetings;
    if (t->gone > 0 || t->lost) {
        t->lost = true;
        (void)pthread_cond_broadcast(&t->met);
        return false;
    }
    if (++t->waiting == t->ranks) {
        t->waiting = 0;
        t->meetings++;
        (void)pthread_cond_broadcast(&t->met);
    }
    while (t->meetings == meeting && !t->lost) {
        (void)pthread_cond_wait(&t->met, &t->lock);
    }
    return t->meetings != meeting;
}

static tdsl_status exchange(void *state, const tdsl_dist_bytes *send,
                            const tdsl_dist_bytes *receive)
{
    Rank *r = state;
    Team *t = r->team;
    bool fits = true;
    (void)pthread_mutex_lock(&t->lock);
    t->send[r->comm.rank] = send;
    bool all = meet(t);
    (void)pthread_mutex_unlock(&t->lock);
    for (int32_t k = 0; all && k < t->ranks; k++) {
        const tdsl_dist_bytes *from = &t->send[k][r->comm.rank];
        if (k == r->comm.rank) {
            continue;
        }
        fits = fits && from->bytes == receive[k].bytes;
        if (fits && from->bytes > 0) {
            memcpy(receive[k].data, from->data, (size_t)from->bytes);
        }
    }
    (void)pthread_mutex_lock(&t->lock);
    if (!fits) { /* no rank knows where it is */
        t->lost = true;
        (void)pthread_cond_broadcast(&t->met);
    }
    all = all && meet(t); /* what was sent is the sender's again */
    (void)pthread_mutex_unlock(&t->lock);
    return !fits ? TDSL_E_INTERNAL : all ? TDSL_OK : TDSL_E_PEER;
}

static tdsl_status agree(void *state, int64_t *numbers, int32_t n)
{
    Rank *r = state;
    Team *t = r->team;
    if (n > NUMBERS) {
        return TDSL_E_ARGUMENT;
    }
    (void)pthread_mutex_lock(&t->lock);
    for (int32_t k = 0; k < n; k++) {
        bool first = t->waiting == 0;
        t->least[k] = first || numbers[k] < t->least[k] ? numbers[k] : t->least[k];
    }
    bool all = meet(t);
    memcpy(numbers, t->least, (size_t)n * sizeof *numbers);
    all = all && meet(t); /* all have read them */
    (void)pthread_mutex_unlock(&t->lock);
    return all ? TDSL_OK : TDSL_E_PEER;
}

static void *rank_main(void *argument)
{
    Rank *r = argument;
    Team *t = r->team;
    r->status = r->run(r->user, &r->comm);
    (void)pthread_mutex_lock(&t->lock);
    t->gone++;
    if (t->waiting > 0) { /* others wait for this rank */
        t->lost = true;
        (void)pthread_cond_broadcast(&t->met);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

static tdsl_status run_all(Team *t, Rank *ranks)
{
    tdsl_status least = TDSL_OK;
    int32_t started = 1;
    for (; started < t->ranks; started++) {
        if (pthread_create(&ranks[started].thread, NULL, rank_main, &ranks[started]) != 0) {
            (void)pthread_mutex_lock(&t->lock);
            t->lost = true; /* the others wait in vain */
            (void)pthread_cond_broadcast(&t->met);
            (void)pthread_mutex_unlock(&t->lock);
            break;
        }
    }
    bool all = started == t->ranks;
    if (all) {
        (void)rank_main(&ranks[0]);
    }
    for (int32_t k = 1; k < started; k++) {
        (void)pthread_join(ranks[k].thread, NULL);
    }
    for (int32_t k = all ? 0 : 1; k < started; k++) {
        least = ranks[k].status < least ? ranks[k].status : least;
    }
    return all ? least : TDSL_E_MEMORY;
}

tdsl_status tdsl_dist_threads(int32_t n, tdsl_status (*run)(void *user, const tdsl_comm *comm),
                              void *user)
{
    if (n < 1 || run == NULL) {
        return TDSL_E_ARGUMENT;
    }
    Team t = {.ranks = n, .send = calloc((size_t)n, sizeof *t.send)};
    Rank *ranks = calloc((size_t)n, sizeof *ranks);
    tdsl_status status = TDSL_E_MEMORY;
    if (ranks != NULL && t.send != NULL && pthread_mutex_init(&t.lock, NULL) == 0) {
        if (pthread_cond_init(&t.met, NULL) == 0) {
            for (int32_t k = 0; k < n; k++) {
                ranks[k] = (Rank){.team = &t, .run = run, .user = user};
                ranks[k].comm = (tdsl_comm){&ranks[k], k, n, exchange, agree};
            }
            status = run_all(&t, ranks);
            (void)pthread_cond_destroy(&t.met);
        }
        (void)pthread_mutex_destroy(&t.lock);
    }
    free(ranks);
    free((void *)t.send);
    return status;
}
