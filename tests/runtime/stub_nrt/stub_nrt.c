/* SPDX-License-Identifier: Apache-2.0 */
/* The stub's calls: handles in a table, host memory for tensors, and a complaint about everything the
 * documentation forbids (a handle twice freed or never made, a tensor freed while a set has it, closing
 * with something loaded). A failing call does nothing, but for an execution that finished with a numerical
 * error, which has written its results. */
#include "stub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES     1024
#define SET_TENSORS 64

typedef enum Kind { KIND_NONE, KIND_MODEL, KIND_TENSOR, KIND_SET, KIND_INFO } Kind;

typedef struct StubSet {
    int count;
    char names[SET_TENSORS][NRT_TENSOR_NAME_MAX];
    StubTensor *tensors[SET_TENSORS];
} StubSet;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    Kind kind;
    void *handle;
} handles[HANDLES];
static int sessions;
static long misused;
static char first_misuse[128];

long stub_nrt_live(void)
{
    (void)pthread_mutex_lock(&lock);
    long live = sessions;
    for (int i = 0; i < HANDLES; i++) {
        live += handles[i].kind != KIND_NONE;
    }
    (void)pthread_mutex_unlock(&lock);
    return live;
}

long stub_nrt_misused(void)
{
    (void)pthread_mutex_lock(&lock);
    long count = misused;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

const char *stub_nrt_misuse(void)
{
    return first_misuse;
}

/* Lock held. */
static NrtStatus misuse(const char *function, const char *what)
{
    if (misused++ == 0) {
        (void)snprintf(first_misuse, sizeof first_misuse, "%s: %s", function, what);
    }
    return NRT_INVALID_HANDLE;
}

/* Lock held. */
static bool is_handle(const void *handle, Kind kind)
{
    for (int i = 0; handle != NULL && i < HANDLES; i++) {
        if (handles[i].handle == handle && handles[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* Lock held. Null when the table is full. */
static void *handle_make(Kind kind, size_t bytes)
{
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].kind == KIND_NONE) {
            handles[i].handle = calloc(1, bytes);
            handles[i].kind = handles[i].handle != NULL ? kind : KIND_NONE;
            return handles[i].handle;
        }
    }
    return NULL;
}

/* Lock held. */
static void handle_drop(void *handle)
{
    for (int i = 0; i < HANDLES; i++) {
        if (handles[i].handle == handle && handles[i].kind != KIND_NONE) {
            handles[i].kind = KIND_NONE;
            handles[i].handle = NULL;
        }
    }
    free(handle);
}

/* Every call begins so: what the script says, and that the library is open. Leaves the lock held on 0. */
static NrtStatus enter(const char *function)
{
    NrtStatus status = stub_enter(function);
    if (status != NRT_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&lock);
    if (sessions == 0) {
        (void)misuse(function, "the library is not initialised");
        (void)pthread_mutex_unlock(&lock);
        return NRT_UNINITIALIZED;
    }
    return NRT_SUCCESS;
}

static NrtStatus leave(NrtStatus status)
{
    (void)pthread_mutex_unlock(&lock);
    return status;
}

/* --- the library --- */

STUB_API NrtStatus nrt_init(int32_t framework, const char *fw_version, const char *fal_version);
STUB_API void nrt_close(void);
STUB_API NrtStatus nrt_get_version(NrtVersion *version, size_t size);
STUB_API NrtStatus nrt_get_instance_info(NrtInstanceInfo *info, size_t size);
STUB_API NrtStatus nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count,
                            void **model);
STUB_API NrtStatus nrt_unload(void *model);
STUB_API NrtStatus nrt_get_model_tensor_info(void *model, NrtTensorInfoArray **info);
STUB_API NrtStatus nrt_free_model_tensor_info(NrtTensorInfoArray *info);
STUB_API NrtStatus nrt_allocate_tensor_set(void **set);
STUB_API void nrt_destroy_tensor_set(void **set);
STUB_API NrtStatus nrt_add_tensor_to_tensor_set(void *set, const char *name, void *tensor);
STUB_API NrtStatus nrt_tensor_allocate(int32_t placement, int vnc, size_t size,
                                       const char *name, void **tensor);
STUB_API NrtStatus nrt_tensor_allocate_slice(const void *source, size_t offset, size_t size,
                                             const char *name, void **slice);
STUB_API void nrt_tensor_free(void **tensor);
STUB_API NrtStatus nrt_tensor_read(const void *tensor, void *data, size_t offset, size_t size);
STUB_API NrtStatus nrt_tensor_write(void *tensor, const void *data, size_t offset, size_t size);
STUB_API NrtStatus nrt_execute(void *model, const void *inputs, void *outputs);

NrtStatus nrt_init(int32_t framework, const char *fw_version, const char *fal_version)
{
    NrtStatus status = stub_enter("nrt_init");
    if (status != NRT_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&lock);
    if (framework != NRT_FRAMEWORK_TYPE_NO_FW || fw_version == NULL || fal_version == NULL) {
        return leave(NRT_INVALID);
    }
    if (sessions != 0) {
        return leave(misuse("nrt_init", "initialised twice"));
    }
    sessions = 1;
    return leave(NRT_SUCCESS);
}

void nrt_close(void)
{
    if (enter("nrt_close") == NRT_SUCCESS) {
        for (int i = 0; i < HANDLES; i++) {
            if (handles[i].kind != KIND_NONE) {
                (void)misuse("nrt_close", "something is not given back");
            }
        }
        sessions = 0;
        (void)leave(NRT_SUCCESS);
    }
}

NrtStatus nrt_get_version(NrtVersion *version, size_t size)
{
    NrtStatus status = stub_enter("nrt_get_version");
    if (status == NRT_SUCCESS && (version == NULL || size != sizeof *version)) {
        status = NRT_INVALID;
    }
    if (status == NRT_SUCCESS) {
        memset(version, 0, sizeof *version);
        version->rt_major = stub_number("version=", 2);
        (void)snprintf(version->rt_detail, sizeof version->rt_detail, "stub for tests");
    }
    return status;
}

NrtStatus nrt_get_instance_info(NrtInstanceInfo *info, size_t size)
{
    NrtStatus status = enter("nrt_get_instance_info");
    if (status != NRT_SUCCESS) {
        return status;
    }
    if (info == NULL || size != sizeof *info) {
        return leave(NRT_INVALID);
    }
    memset(info, 0, sizeof *info);
    info->family = (uint32_t)stub_number("family=", NRT_FAMILY_TRN2);
    return leave(NRT_SUCCESS);
}

/* --- models --- */

NrtStatus nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, void **model)
{
    NrtStatus status = enter("nrt_load");
    if (status != NRT_SUCCESS) {
        return status == STUB_NOTHING ? NRT_SUCCESS : status;
    }
    StubModel *made = NULL;
    if (vnc < -1 || vnc > 1 || vnc_count < -1 || vnc_count == 0 || neff == NULL ||
        model == NULL) {
        return leave(NRT_INVALID);
    }
    made = handle_make(KIND_MODEL, sizeof *made);
    if (made == NULL) {
        return leave(NRT_RESOURCE);
    }
    if (!stub_model_read(neff, size, made)) {
        handle_drop(made);
        return leave(NRT_INVALID);
    }
    *model = made;
    return leave(NRT_SUCCESS);
}

NrtStatus nrt_unload(void *model)
{
    NrtStatus status = enter("nrt_unload");
    if (status != NRT_SUCCESS) {
        return status;
    }
    if (!is_handle(model, KIND_MODEL)) {
        return leave(misuse("nrt_unload", "no model"));
    }
    handle_drop(model);
    return leave(NRT_SUCCESS);
}

/* The shapes lie behind the array, in one block. */
NrtStatus nrt_get_model_tensor_info(void *model, NrtTensorInfoArray **info)
{
    NrtStatus status = enter("nrt_get_model_tensor_info");
    if (status != NRT_SUCCESS) {
        return status == STUB_NOTHING ? NRT_SUCCESS : status;
    }
    const StubModel *m = model;
    if (!is_handle(model, KIND_MODEL) || info == NULL) {
        return leave(misuse("nrt_get_model_tensor_info", "no model"));
    }
    size_t n = (size_t)m->n_args;
    size_t head = sizeof(NrtTensorInfoArray) + n * sizeof(NrtTensorInfo);
    NrtTensorInfoArray *made = handle_make(KIND_INFO, head + n * sizeof m->args[0].shape);
    if (made == NULL) {
        return leave(NRT_RESOURCE);
    }
    made->tensor_count = n;
    for (size_t i = 0; i < n; i++) {
        NrtTensorInfo *to = &made->tensor_array[i];
        unsigned char *shape = (unsigned char *)made + head + i * sizeof m->args[0].shape;
        memcpy(to->name, m->args[i].name, sizeof to->name);
        memcpy(shape, m->args[i].shape, sizeof m->args[i].shape);
        memcpy(&to->shape, &shape, sizeof shape);
        to->usage = m->args[i].usage;
        to->size = m->args[i].bytes;
        to->dtype = m->args[i].dtype;
        to->ndim = m->args[i].ndim;
    }
    *info = made;
    return leave(NRT_SUCCESS);
}

NrtStatus nrt_free_model_tensor_info(NrtTensorInfoArray *info)
{
    NrtStatus status = enter("nrt_free_model_tensor_info");
    if (status != NRT_SUCCESS) {
        return status;
    }
    if (!is_handle(info, KIND_INFO)) {
        return leave(misuse("nrt_free_model_tensor_info", "no info"));
    }
    handle_drop(info);
    return leave(NRT_SUCCESS);
}

/* --- tensors --- */

NrtStatus nrt_tensor_allocate(int32_t placement, int vnc, size_t size, const char *name,
                              void **tensor)
{
    NrtStatus status = enter("nrt_tensor_allocate");
    if (status != NRT_SUCCESS) {
        return status == STUB_NOTHING ? NRT_SUCCESS : status;
    }
    if (placement != NRT_TENSOR_PLACEMENT_DEVICE || vnc < 0 || size == 0 || tensor == NULL) {
        return leave(NRT_INVALID);
    }
    StubTensor *made = handle_make(KIND_TENSOR, sizeof *made);
    if (made != NULL) {
        made->data = malloc(size);
    }
    if (made == NULL || made->data == NULL) {
        handle_drop(made);
        return leave(NRT_RESOURCE);
    }
    memset(made->data, 0xa5, size); /* fresh device memory is nobody's zeros */
    made->bytes = size;
    (void)snprintf(made->name, sizeof made->name, "%s", name != NULL ? name : "");
    *tensor = made;
    return leave(NRT_SUCCESS);
}

NrtStatus nrt_tensor_allocate_slice(const void *source, size_t offset, size_t size,
                                    const char *name, void **slice)
{
    NrtStatus status = enter("nrt_tensor_allocate_slice");
    if (status != NRT_SUCCESS) {
        return status == STUB_NOTHING ? NRT_SUCCESS : status;
    }
    if (!is_handle(source, KIND_TENSOR)) {
        return leave(misuse("nrt_tensor_allocate_slice", "no tensor"));
    }
    StubTensor *made = NULL;
    StubTensor *whole = NULL;
    memcpy(&whole, &source, sizeof whole); /* the prototype says const, the slice may write */
    if (size == 0 || slice == NULL || offset > whole->bytes || size > whole->bytes - offset) {
        return leave(NRT_INVALID);
    }
    made = handle_make(KIND_TENSOR, sizeof *made);
    if (made == NULL) {
        return leave(NRT_RESOURCE);
    }
    made->data = whole->data + offset;
    made->bytes = size;
    made->source = whole;
    whole->slices++;
    (void)snprintf(made->name, sizeof made->name, "%s", name != NULL ? name : "");
    *slice = made;
    return leave(NRT_SUCCESS);
}

void nrt_tensor_free(void **tensor)
{
    if (enter("nrt_tensor_free") != NRT_SUCCESS) {
        return;
    }
    StubTensor *t = tensor != NULL ? *tensor : NULL;
    if (!is_handle(t, KIND_TENSOR)) {
        (void)leave(misuse("nrt_tensor_free", "no tensor"));
        return;
    }
    if (t->in_sets != 0) {
        (void)misuse("nrt_tensor_free", "a set still has it");
    }
    if (t->slices != 0) {
        (void)misuse("nrt_tensor_free", "a slice of it still lives");
    }
    if (t->source != NULL) {
        t->source->slices--;
    } else {
        free(t->data);
    }
    handle_drop(t);
    *tensor = NULL;
    (void)leave(NRT_SUCCESS);
}

static NrtStatus tensor_range(const StubTensor *t, const char *function, size_t offset,
                              size_t size)
{
    if (!is_handle(t, KIND_TENSOR)) {
        return misuse(function, "no tensor");
    }
    return offset > t->bytes || size > t->bytes - offset ? NRT_INVALID : NRT_SUCCESS;
}

NrtStatus nrt_tensor_read(const void *tensor, void *data, size_t offset, size_t size)
{
    NrtStatus status = enter("nrt_tensor_read");
    if (status != NRT_SUCCESS) {
        return status;
    }
    status = tensor_range(tensor, "nrt_tensor_read", offset, size);
    if (status == NRT_SUCCESS) {
        memcpy(data, ((const StubTensor *)tensor)->data + offset, size);
    }
    return leave(status);
}

NrtStatus nrt_tensor_write(void *tensor, const void *data, size_t offset, size_t size)
{
    NrtStatus status = enter("nrt_tensor_write");
    if (status != NRT_SUCCESS) {
        return status;
    }
    status = tensor_range(tensor, "nrt_tensor_write", offset, size);
    if (status == NRT_SUCCESS) {
        memcpy(((StubTensor *)tensor)->data + offset, data, size);
    }
    return leave(status);
}

/* --- sets --- */

NrtStatus nrt_allocate_tensor_set(void **set)
{
    NrtStatus status = enter("nrt_allocate_tensor_set");
    if (status != NRT_SUCCESS) {
        return status == STUB_NOTHING ? NRT_SUCCESS : status;
    }
    *set = handle_make(KIND_SET, sizeof(StubSet));
    return leave(*set != NULL ? NRT_SUCCESS : NRT_RESOURCE);
}

void nrt_destroy_tensor_set(void **set)
{
    if (enter("nrt_destroy_tensor_set") != NRT_SUCCESS) {
        return;
    }
    StubSet *s = set != NULL ? *set : NULL;
    if (!is_handle(s, KIND_SET)) {
        (void)leave(misuse("nrt_destroy_tensor_set", "no set"));
        return;
    }
    for (int i = 0; i < s->count; i++) {
        if (is_handle(s->tensors[i], KIND_TENSOR)) {
            s->tensors[i]->in_sets--;
        } else {
            (void)misuse("nrt_destroy_tensor_set", "a tensor of it was freed before");
        }
    }
    handle_drop(s);
    *set = NULL;
    (void)leave(NRT_SUCCESS);
}

NrtStatus nrt_add_tensor_to_tensor_set(void *set, const char *name, void *tensor)
{
    NrtStatus status = enter("nrt_add_tensor_to_tensor_set");
    if (status != NRT_SUCCESS) {
        return status;
    }
    StubSet *s = set;
    StubTensor *t = tensor;
    if (!is_handle(s, KIND_SET) || !is_handle(t, KIND_TENSOR)) {
        return leave(misuse("nrt_add_tensor_to_tensor_set", "no set or no tensor"));
    }
    if (s->count == SET_TENSORS) {
        return leave(NRT_RESOURCE);
    }
    (void)snprintf(s->names[s->count], NRT_TENSOR_NAME_MAX, "%s", name);
    s->tensors[s->count++] = t;
    t->in_sets++;
    return leave(NRT_SUCCESS);
}

static StubTensor *set_find(const StubSet *set, const StubArg *arg)
{
    for (int i = 0; i < set->count; i++) {
        if (strcmp(set->names[i], arg->name) == 0 && set->tensors[i]->bytes == arg->bytes) {
            return set->tensors[i];
        }
    }
    return NULL;
}

NrtStatus nrt_execute(void *model, const void *inputs, void *outputs)
{
    NrtStatus verdict = stub_enter("nrt_execute");
    if (verdict != NRT_SUCCESS && verdict != NRT_EXEC_COMPLETED_WITH_NUM_ERR) {
        return verdict;
    }
    (void)pthread_mutex_lock(&lock);
    const StubModel *m = model;
    StubTensor *tensors[STUB_ARGS];
    if (!is_handle(model, KIND_MODEL) || !is_handle(inputs, KIND_SET) ||
        !is_handle(outputs, KIND_SET)) {
        return leave(misuse("nrt_execute", "no model or no set"));
    }
    for (int i = 0; i < m->n_args; i++) {
        bool input = m->args[i].usage == NRT_TENSOR_USAGE_INPUT;
        tensors[i] = set_find(input ? inputs : outputs, &m->args[i]);
        if (tensors[i] == NULL) {
            return leave(NRT_EXEC_BAD_INPUT);
        }
    }
    NrtStatus status = stub_model_run(m, tensors);
    return leave(status == NRT_SUCCESS ? verdict : status);
}
