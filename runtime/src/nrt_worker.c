/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that calls libnrt. One mutex, one condition for the thread, one for callers; a worker has two
 * owners, the library and the thread, and the last to leave frees it. */
#include "nrt_worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct NrtWorker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* there is a call, or nothing more to come */
    pthread_cond_t done; /* a call is finished, or the worker is dead */
    NrtCall *call;
    bool quit;
    bool dead;
    int owners;
};

static const char *const function_names[] = {
    "nrt_init",
    "nrt_close",
    "nrt_get_version",
    "nrt_get_instance_info",
    "nrt_load",
    "nrt_unload",
    "nrt_get_model_tensor_info",
    "nrt_free_model_tensor_info",
    "nrt_allocate_tensor_set",
    "nrt_destroy_tensor_set",
    "nrt_add_tensor_to_tensor_set",
    "nrt_tensor_allocate",
    "nrt_tensor_allocate_slice",
    "nrt_tensor_free",
    "nrt_tensor_read",
    "nrt_tensor_write",
    "nrt_execute",
};

const char *tdsl_nrt_function_name(NrtFunction function)
{
    return function_names[function];
}

void tdsl_nrt_call_free(NrtCall *call)
{
    if (call != NULL) {
        free(call->data);
        free(call);
    }
}

static void call_make(NrtCall *c)
{
    const NrtApi *api = &c->api;
    switch (c->function) {
    case NRT_CALL_INIT:
        c->status = api->init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
        break;
    case NRT_CALL_CLOSE:
        api->close();
        break;
    case NRT_CALL_VERSION:
        c->status = api->get_version(&c->version, sizeof c->version);
        break;
    case NRT_CALL_INSTANCE_INFO:
        c->status = api->get_instance_info(&c->instance, sizeof c->instance);
        break;
    case NRT_CALL_LOAD:
        c->status = api->load(c->neff, c->bytes, c->core, 1, &c->result);
        break;
    case NRT_CALL_UNLOAD:
        c->status = api->unload(c->handle);
        break;
    case NRT_CALL_TENSOR_INFO:
        c->status = api->get_model_tensor_info(c->handle, &c->info);
        break;
    case NRT_CALL_FREE_TENSOR_INFO:
        c->status = api->free_model_tensor_info(c->info);
        break;
    case NRT_CALL_ALLOCATE_SET:
        c->status = api->allocate_tensor_set(&c->result);
        break;
    case NRT_CALL_DESTROY_SET:
        api->destroy_tensor_set(&c->handle);
        break;
    case NRT_CALL_ADD_TENSOR:
        c->status = api->add_tensor_to_tensor_set(c->handle, c->name, c->tensor);
        break;
    case NRT_CALL_TENSOR_ALLOCATE:
        c->status = api->tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, c->core, c->bytes,
                                         c->name, &c->result);
        break;
    case NRT_CALL_TENSOR_SLICE:
        c->status =
            api->tensor_allocate_slice(c->handle, c->offset, c->bytes, c->name, &c->result);
        break;
    case NRT_CALL_TENSOR_FREE:
        api->tensor_free(&c->handle);
        break;
    case NRT_CALL_TENSOR_READ:
        c->status = api->tensor_read(c->handle, c->data, c->offset, c->bytes);
        break;
    case NRT_CALL_TENSOR_WRITE:
        c->status = api->tensor_write(c->handle, c->data, c->offset, c->bytes);
        break;
    case NRT_CALL_EXECUTE:
        c->status = api->execute(c->handle, c->inputs, c->outputs);
        break;
    }
}

/* The lock is held, and gone afterwards, with the worker if nobody else owns it. */
static void worker_leave(NrtWorker *worker)
{
    bool last = --worker->owners == 0;
    (void)pthread_mutex_unlock(&worker->lock);
    if (last) {
        (void)pthread_cond_destroy(&worker->done);
        (void)pthread_cond_destroy(&worker->wake);
        (void)pthread_mutex_destroy(&worker->lock);
        free(worker);
    }
}

static void *worker_main(void *argument)
{
    NrtWorker *worker = argument;
    (void)pthread_mutex_lock(&worker->lock);
    while (!worker->quit) {
        NrtCall *call = worker->call;
        if (call == NULL || call->finished) {
            (void)pthread_cond_wait(&worker->wake, &worker->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&worker->lock);
        call_make(call);
        (void)pthread_mutex_lock(&worker->lock);
        if (call->abandoned) {
            tdsl_nrt_call_free(call);
            break;
        }
        call->finished = true;
        (void)pthread_cond_broadcast(&worker->done);
    }
    worker_leave(worker);
    return NULL;
}

static bool worker_init(NrtWorker *worker)
{
    pthread_condattr_t monotonic;
    if (pthread_mutex_init(&worker->lock, NULL) != 0) {
        return false;
    }
    bool good = pthread_condattr_init(&monotonic) == 0;
    if (good) {
        good = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
               pthread_cond_init(&worker->done, &monotonic) == 0;
        (void)pthread_condattr_destroy(&monotonic);
    }
    if (good && pthread_cond_init(&worker->wake, NULL) != 0) {
        (void)pthread_cond_destroy(&worker->done);
        good = false;
    }
    if (!good) {
        (void)pthread_mutex_destroy(&worker->lock);
    }
    return good;
}

NrtWorker *tdsl_nrt_worker_start(void)
{
    NrtWorker *worker = calloc(1, sizeof *worker);
    if (worker == NULL || !worker_init(worker)) {
        free(worker);
        return NULL;
    }
    worker->owners = 2;
    if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
        worker->owners = 1;
        (void)pthread_mutex_lock(&worker->lock);
        worker_leave(worker);
        return NULL;
    }
    return worker;
}

void tdsl_nrt_worker_stop(NrtWorker *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
    bool dead = worker->dead;
    worker->quit = true;
    (void)pthread_cond_signal(&worker->wake);
    if (!dead) {
        pthread_t thread = worker->thread;
        (void)pthread_mutex_unlock(&worker->lock);
        (void)pthread_join(thread, NULL);
        (void)pthread_mutex_lock(&worker->lock);
    }
    worker_leave(worker);
}

bool tdsl_nrt_worker_is_dead(NrtWorker *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
    bool dead = worker->dead;
    (void)pthread_mutex_unlock(&worker->lock);
    return dead;
}

static struct timespec deadline_after(int64_t ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

bool tdsl_nrt_worker_call(NrtWorker *worker, NrtCall *call, int64_t timeout_ms, bool *abandoned)
{
    struct timespec deadline = deadline_after(timeout_ms);
    int late = 0;
    *abandoned = false;
    (void)pthread_mutex_lock(&worker->lock);
    while (worker->call != NULL &&
           !worker->dead) { /* another context's: it has its own deadline */
        (void)pthread_cond_wait(&worker->done, &worker->lock);
    }
    if (worker->dead) {
        (void)pthread_mutex_unlock(&worker->lock);
        return false;
    }
    worker->call = call;
    (void)pthread_cond_signal(&worker->wake);
    while (!call->finished && late == 0) {
        late = pthread_cond_timedwait(&worker->done, &worker->lock, &deadline);
    }
    bool finished = call->finished;
    if (!finished) {
        call->abandoned = true;
        *abandoned = true;
        worker->dead = true;
        (void)pthread_detach(worker->thread);
    }
    worker->call = NULL;
    (void)pthread_cond_broadcast(&worker->done);
    (void)pthread_mutex_unlock(&worker->lock);
    return finished;
}
