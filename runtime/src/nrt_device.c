/* SPDX-License-Identifier: Apache-2.0 */
/* A NeuronCore as a device, in the documented order of calls: load, tensor info, tensors, sets,
 * write, execute, read. The names of tensors are the model's: inputs are matched by the
 * parameter's name (with or without the suffix of an aliased input), results by their order,
 * and every size is compared, so a NEFF of another kernel is refused before anything is
 * written. Bytes travel through memory of the call (see nrt_worker.h), in pieces. */
#include "device.h"
#include "neff.h"
#include "nrt_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIAS_SUFFIX ".must_alias_input"
#define PIECE_BYTES  ((size_t)4 << 20)

/* A loaded NEFF. */
typedef struct NrtModel {
    void *model;
    size_t bytes; /* of this structure */
    size_t n_args;
    char names[][2]
              [NRT_TENSOR_NAME_MAX]; /* of each argument, as input and as result; "" for none */
} NrtModel;

static NrtLibrary *library_of(const Device *device)
{
    return device->state;
}

static int64_t timeout_of(const Device *device)
{
    return device->context->settings.device_timeout_ms;
}

static NrtCall *call_make(const Device *device, NrtFunction function, Fault *fault)
{
    NrtCall *call = tdsl_nrt_call_make(library_of(device), function);
    if (call == NULL) {
        (void)tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to call %s",
                             tdsl_nrt_function_name(function));
    }
    return call;
}

static bool call_run(const Device *device, NrtCall **call, Fault *fault)
{
    return tdsl_nrt_call_run(library_of(device), call, timeout_of(device), fault);
}

static void name_set(NrtCall *call, const char *name)
{
    (void)snprintf(call->name, sizeof call->name, "%s", name);
}

/* A call that frees something. There is nobody to tell that it failed, and nothing is freed
 * twice. */
static void call_release(Device *device, NrtFunction function, void *handle,
                         NrtTensorInfoArray *info)
{
    Fault ignored;
    NrtCall *call = call_make(device, function, &ignored);
    if (call != NULL) {
        call->handle = handle;
        call->info = info;
        if (!call_run(device, &call, &ignored) && ignored.lost &&
            device->lost.status == TDSL_OK) {
            device->lost = ignored;
        }
        tdsl_nrt_call_free(call);
    }
}

static bool nrt_open(Device *device, Fault *fault)
{
    device->state = tdsl_nrt_library_acquire(device->context->settings.nrt_library,
                                             timeout_of(device), fault);
    return device->state != NULL;
}

static void nrt_close(Device *device)
{
    tdsl_nrt_library_release(library_of(device), timeout_of(device));
}

/* --- memory --- */

static bool nrt_allocate(Device *device, size_t bytes, const char *name, DeviceMemory *memory,
                         Fault *fault)
{
    NrtCall *call = call_make(device, NRT_CALL_TENSOR_ALLOCATE, fault);
    if (call == NULL) {
        return false;
    }
    name_set(call, name);
    call->bytes = bytes;
    call->core = device->context->settings.device_core;
    bool good = call_run(device, &call, fault);
    if (good) {
        *memory = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

static void nrt_release(Device *device, DeviceMemory memory, size_t bytes)
{
    (void)bytes;
    call_release(device, NRT_CALL_TENSOR_FREE, memory, NULL);
}

/* One piece: copied in before a write, out after a read. */
static bool piece_move(Device *device, NrtFunction function, DeviceMemory memory,
                       const unsigned char *from, unsigned char *to, size_t offset,
                       size_t bytes, Fault *fault)
{
    NrtCall *call = call_make(device, function, fault);
    if (call == NULL) {
        return false;
    }
    call->data = malloc(bytes);
    if (call->data == NULL) {
        tdsl_nrt_call_free(call);
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a transfer of %zu bytes",
                              bytes);
    }
    if (from != NULL) {
        memcpy(call->data, from + offset, bytes);
    }
    call->handle = memory;
    call->offset = offset;
    call->bytes = bytes;
    bool good = call_run(device, &call, fault);
    if (good && to != NULL) {
        memcpy(to + offset, call->data, bytes);
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool nrt_move(Device *device, NrtFunction function, DeviceMemory memory,
                     const unsigned char *from, unsigned char *to, size_t bytes, Fault *fault)
{
    bool good = true;
    for (size_t offset = 0; good && offset < bytes; offset += PIECE_BYTES) {
        size_t piece = bytes - offset < PIECE_BYTES ? bytes - offset : PIECE_BYTES;
        good = piece_move(device, function, memory, from, to, offset, piece, fault);
    }
    return good;
}

static bool nrt_write(Device *device, DeviceMemory memory, const void *data, size_t bytes,
                      Fault *fault)
{
    return nrt_move(device, NRT_CALL_TENSOR_WRITE, memory, data, NULL, bytes, fault);
}

static bool nrt_read(Device *device, DeviceMemory memory, void *data, size_t bytes,
                     Fault *fault)
{
    return nrt_move(device, NRT_CALL_TENSOR_READ, memory, NULL, data, bytes, fault);
}

/* --- models --- */

/* Can the model's tensor hold such elements? Complex numbers travel as pairs of reals. */
static bool dtype_fits(int32_t dtype, int32_t native)
{
    if (native == NRT_DTYPE_UNKNOWN) {
        return true;
    }
    switch ((tdsl_dtype)dtype) {
    case TDSL_F32:
    case TDSL_C64:
        return native == NRT_DTYPE_FLOAT32 || native == NRT_DTYPE_FP32R;
    case TDSL_F16:
        return native == NRT_DTYPE_FLOAT16;
    case TDSL_BF16:
        return native == NRT_DTYPE_BFLOAT16;
    case TDSL_I32:
        return native == NRT_DTYPE_INT32 || native == NRT_DTYPE_UINT32;
    case TDSL_I64:
        return native == NRT_DTYPE_INT64 || native == NRT_DTYPE_UINT64;
    case TDSL_BOOL:
        return native == NRT_DTYPE_UINT8 || native == NRT_DTYPE_INT8;
    case TDSL_F64:
    case TDSL_C128:
        return false;
    }
    return false;
}

static bool name_is_of(const char *model_name, const char *parameter)
{
    size_t length = strlen(parameter);
    return strncmp(model_name, parameter, length) == 0 &&
           (model_name[length] == '\0' || strcmp(model_name + length, ALIAS_SUFFIX) == 0);
}

static size_t input_arg(const tdsl_kernel_info *info, const char *name)
{
    size_t i = 0;
    while (i < (size_t)info->n_args &&
           !(role_is_read(info->args[i].role) && name_is_of(name, info->args[i].name))) {
        i++;
    }
    return i;
}

/* The n-th result among the arguments, counted from 0. */
static size_t result_arg(const tdsl_kernel_info *info, uint64_t n)
{
    size_t i = 0;
    for (; i < (size_t)info->n_args; i++) {
        if (role_is_result(info->args[i].role) && n-- == 0) {
            break;
        }
    }
    return i;
}

/* Which result a model's output is: "output_N" says it, any other name goes by order. */
static uint64_t output_number(const char *name, uint64_t order)
{
    static const char prefix[] = "output_";
    size_t length = sizeof prefix - 1;
    uint64_t number = 0;
    if (strncmp(name, prefix, length) != 0 || name[length] == '\0' ||
        strlen(name) > length + 6) {
        return order;
    }
    for (const char *at = name + length; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            return order;
        }
        number = 10 * number + (uint64_t)(*at - '0');
    }
    return number;
}

static bool tensor_match(const Call *call, const NrtTensorInfo *tensor, size_t arg, bool result,
                         NrtModel *model, Fault *fault)
{
    const tdsl_kernel_info *info = call->info;
    if (memchr(tensor->name, '\0', sizeof tensor->name) == NULL || tensor->name[0] == '\0') {
        return tdsl_fault_set(fault, TDSL_E_NEFF,
                              "NEFF of another kernel: a tensor has no name");
    }
    if (arg >= (size_t)info->n_args || model->names[arg][result][0] != '\0') {
        return tdsl_fault_set(
            fault, TDSL_E_NEFF,
            "NEFF of another kernel: its %s '%.64s' is no argument of this one",
            result ? "result" : "input", tensor->name);
    }
    if (tensor->size != call->bytes[arg] || !dtype_fits(info->args[arg].dtype, tensor->dtype)) {
        return tdsl_fault_set(
            fault, TDSL_E_NEFF,
            "NEFF of another kernel: its %s '%.64s' has %zu bytes of dtype %d, "
            "argument '%.64s' has %zu of %s",
            result ? "result" : "input", tensor->name, tensor->size, (int)tensor->dtype,
            info->args[arg].name, call->bytes[arg], tdsl_dtype_name(info->args[arg].dtype));
    }
    memcpy(model->names[arg][result], tensor->name, sizeof tensor->name);
    return true;
}

static bool model_match(const Call *call, const NrtTensorInfoArray *tensors, NrtModel *model,
                        Fault *fault)
{
    uint64_t outputs = 0;
    for (uint64_t t = 0; t < tensors->tensor_count; t++) {
        const NrtTensorInfo *tensor = &tensors->tensor_array[t];
        bool result = tensor->usage == NRT_TENSOR_USAGE_OUTPUT;
        size_t arg = result ? result_arg(call->info, output_number(tensor->name, outputs++))
                            : input_arg(call->info, tensor->name);
        if (!tensor_match(call, tensor, arg, result, model, fault)) {
            return false;
        }
    }
    for (size_t i = 0; i < model->n_args; i++) {
        int32_t role = call->info->args[i].role;
        bool lacks_input = role_is_read(role) && model->names[i][0][0] == '\0';
        bool lacks_result = role_is_result(role) && model->names[i][1][0] == '\0';
        if (lacks_input || lacks_result) {
            return tdsl_fault_set(fault, TDSL_E_NEFF,
                                  "NEFF of another kernel: it has no %s for argument '%.64s'",
                                  lacks_input ? "input" : "result", call->info->args[i].name);
        }
    }
    return true;
}

static bool model_load(Device *device, NkiForm *form, void **model, Fault *fault)
{
    NeffBytes neff;
    if (!tdsl_neff_read(form, &neff, fault)) {
        return false;
    }
    NrtCall *call = call_make(device, NRT_CALL_LOAD, fault);
    if (call == NULL) {
        free(neff.owned);
        return false;
    }
    call->neff = neff.data;
    call->bytes = neff.bytes;
    call->data = neff.owned;
    call->core = device->context->settings.device_core;
    bool good = call_run(device, &call, fault);
    if (good) {
        *model = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool model_inspect(Device *device, const Call *call, NrtModel *model, Fault *fault)
{
    NrtCall *ask = call_make(device, NRT_CALL_TENSOR_INFO, fault);
    if (ask == NULL) {
        return false;
    }
    ask->handle = model->model;
    bool good = call_run(device, &ask, fault);
    if (good) {
        NrtTensorInfoArray *tensors = ask->info;
        good = model_match(call, tensors, model, fault);
        call_release(device, NRT_CALL_FREE_TENSOR_INFO, NULL, tensors);
    }
    tdsl_nrt_call_free(ask);
    return good;
}

static bool nrt_prepare(Device *device, const Call *call, NkiForm *form, Fault *fault)
{
    size_t n_args = (size_t)call->info->n_args;
    size_t bytes = sizeof(NrtModel) + n_args * 2 * NRT_TENSOR_NAME_MAX;
    NrtModel *model = tdsl_context_allocate(device->context, bytes);
    if (model == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a model");
    }
    memset(model, 0, bytes);
    model->bytes = bytes;
    model->n_args = n_args;
    bool loaded = model_load(device, form, &model->model, fault);
    if (loaded && model_inspect(device, call, model, fault)) {
        form->loaded = model;
        return true;
    }
    if (loaded) {
        call_release(device, NRT_CALL_UNLOAD, model->model, NULL);
    }
    tdsl_context_release(device->context, model, bytes);
    return false;
}

static void nrt_unload(Device *device, NkiForm *form)
{
    NrtModel *model = form->loaded;
    call_release(device, NRT_CALL_UNLOAD, model->model, NULL);
    tdsl_context_release(device->context, model, model->bytes);
    form->loaded = NULL;
}

/* --- runs --- */

static bool set_add(Device *device, void *set, const char *name, DeviceMemory memory,
                    Fault *fault)
{
    NrtCall *call = call_make(device, NRT_CALL_ADD_TENSOR, fault);
    if (call == NULL) {
        return false;
    }
    name_set(call, name);
    call->handle = set;
    call->tensor = memory;
    bool good = call_run(device, &call, fault);
    tdsl_nrt_call_free(call);
    return good;
}

/* The set of inputs (result = 0) or of results (1); on false there is none. */
static bool set_make(Device *device, DeviceRun *run, const NrtModel *model, size_t result,
                     void **set, Fault *fault)
{
    NrtCall *call = call_make(device, NRT_CALL_ALLOCATE_SET, fault);
    if (call == NULL) {
        return false;
    }
    bool good = call_run(device, &call, fault);
    if (good) {
        *set = call->result;
    }
    tdsl_nrt_call_free(call);
    if (!good) {
        return false;
    }
    for (size_t i = 0; good && i < model->n_args; i++) {
        DeviceMemory memory = result == 0 ? run->in[i] : run->out[i];
        good = memory == NULL || set_add(device, *set, model->names[i][result], memory, fault);
    }
    if (!good) {
        call_release(device, NRT_CALL_DESTROY_SET, *set, NULL);
    }
    return good;
}

static bool sets_execute(Device *device, const NrtModel *model, void *inputs, void *outputs,
                         Fault *fault)
{
    NrtCall *call = call_make(device, NRT_CALL_EXECUTE, fault);
    if (call == NULL) {
        return false;
    }
    call->handle = model->model;
    call->inputs = inputs;
    call->outputs = outputs;
    bool good = call_run(device, &call, fault) || fault->status == TDSL_E_NUMERICAL;
    tdsl_nrt_call_free(call);
    return good;
}

/* A program that updates an input in place (its name says so) gets one tensor in both sets. */
static void aliases_join(DeviceRun *run, const NrtModel *model)
{
    for (size_t i = 0; i < model->n_args; i++) {
        if (run->out[i] != NULL && strstr(model->names[i][0], ALIAS_SUFFIX) != NULL) {
            DeviceMemory spare = run->out[i];
            run->out[i] = run->in[i];
            run->in[i] = spare;
        }
    }
}

static bool nrt_run(Device *device, DeviceRun *run, Fault *fault)
{
    const NrtModel *model = run->form->loaded;
    void *inputs = NULL;
    void *outputs = NULL;
    if (!set_make(device, run, model, 0, &inputs, fault)) {
        return false;
    }
    aliases_join(run, model);
    bool good = set_make(device, run, model, 1, &outputs, fault);
    if (good) {
        good = sets_execute(device, model, inputs, outputs, fault);
        call_release(device, NRT_CALL_DESTROY_SET, outputs, NULL);
    }
    call_release(device, NRT_CALL_DESTROY_SET, inputs, NULL);
    return good;
}

const DeviceOps tdsl_nrt_device = {
    TDSL_BACKEND_NKI, nrt_open, nrt_close,   nrt_allocate, nrt_release,
    nrt_write,        nrt_read, nrt_prepare, nrt_run,      nrt_unload,
};
