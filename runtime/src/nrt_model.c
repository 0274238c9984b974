/* SPDX-License-Identifier: Apache-2.0 */
/* Device programs on a NeuronCore, in the documented order of calls: load, tensor info, sets,
 * execute. The names of tensors are the model's: inputs are matched by the parameter's name
 * (with or without the suffix of an input that is updated in place), results by their order,
 * and every size is compared, so a NEFF of another kernel is refused before anything is
 * written. The two tensor sets of a program are kept while the memory they hold stays the
 * same. */
#include "neff.h"
#include "nrt_device.h"

#include <stdlib.h>
#include <string.h>

#define ALIAS_SUFFIX ".must_alias_input"

/* An operand of a loaded NEFF. */
typedef struct Slot {
    char name[NRT_TENSOR_NAME_MAX]; /* the model's */
    DeviceMemory memory;            /* in the set, of the whole tensor */
    void *slice;                    /* where the operand is not the whole tensor */
} Slot;

/* A loaded NEFF. */
typedef struct NrtModel {
    void *model;
    size_t bytes;  /* of this structure */
    void *sets[2]; /* inputs, results; null until the first run */
    size_t n_slots;
    Slot slots[]; /* of each operand */
} NrtModel;

/* --- matching --- */

/* Can the model's tensor hold such elements? Complex numbers travel as pairs of reals, i64 as
 * pairs of words. */
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
    case TDSL_U32:
    case TDSL_I32:
        return native == NRT_DTYPE_INT32 || native == NRT_DTYPE_UINT32;
    case TDSL_I64:
        return native == NRT_DTYPE_INT32 || native == NRT_DTYPE_UINT32; /* as pairs */
    case TDSL_I8:
    case TDSL_U8:
    case TDSL_BOOL:
        return native == NRT_DTYPE_UINT8 || native == NRT_DTYPE_INT8;
    case TDSL_I16:
    case TDSL_U16:
        return native == NRT_DTYPE_UINT16 || native == NRT_DTYPE_INT16;
    case TDSL_F8E4M3: /* models say of floats of 8 bits that they are integers */
        return native == NRT_DTYPE_FP8_E4 || native == NRT_DTYPE_INT8;
    case TDSL_F8E5M2:
        return native == NRT_DTYPE_FP8_E5 || native == NRT_DTYPE_INT8;
    case TDSL_F8E4M3FN:
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

static size_t input_operand(const NkiPart *part, const char *name)
{
    size_t i = 0;
    while (i < part->n_operands &&
           !(part->operands[i].role == TDSL_IN && name_is_of(name, part->operands[i].name))) {
        i++;
    }
    return i;
}

/* The n-th result among the operands, counted from 0. */
static size_t result_operand(const NkiPart *part, uint64_t n)
{
    size_t i = 0;
    while (i < part->n_operands && !(part->operands[i].role == TDSL_OUT && n-- == 0)) {
        i++;
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

/* What a program updates in place must be a whole argument that it reads and writes. */
static bool alias_match(NkiPart *part, const NkiOperand *operand)
{
    bool written = false;
    for (size_t i = 0; i < part->n_operands; i++) {
        const NkiOperand *other = &part->operands[i];
        written = written ||
                  (other->role == TDSL_OUT && other->tensor == operand->tensor && other->whole);
    }
    part->form->tensors[operand->tensor].in_place = true;
    return written && operand->whole && !operand->written;
}

static bool tensor_match(const NrtTensorInfo *tensor, NkiPart *part, size_t at, NrtModel *model,
                         Fault *fault)
{
    const char *what = tensor->usage == NRT_TENSOR_USAGE_OUTPUT ? "result" : "input";
    if (memchr(tensor->name, '\0', sizeof tensor->name) == NULL || tensor->name[0] == '\0') {
        return tdsl_fault_set(fault, TDSL_E_NEFF,
                              "NEFF of another kernel: a tensor has no name");
    }
    if (at >= part->n_operands || model->slots[at].name[0] != '\0') {
        return tdsl_fault_set(
            fault, TDSL_E_NEFF,
            "NEFF of another kernel: its %s '%.64s' is no argument of this one", what,
            tensor->name);
    }
    const NkiOperand *operand = &part->operands[at];
    if (tensor->size != operand->bytes ||
        !dtype_fits(operand->words ? TDSL_F32 : operand->dtype, tensor->dtype)) {
        return tdsl_fault_set(
            fault, TDSL_E_NEFF,
            "NEFF of another kernel: its %s '%.64s' has %zu bytes of dtype %d, "
            "argument '%.64s' has %zu of %s",
            what, tensor->name, tensor->size, (int)tensor->dtype, operand->name, operand->bytes,
            tdsl_dtype_name(operand->dtype));
    }
    if (operand->role == TDSL_IN && strstr(tensor->name, ALIAS_SUFFIX) != NULL &&
        !alias_match(part, operand)) {
        return tdsl_fault_set(fault, TDSL_E_NEFF,
                              "NEFF of another kernel: it updates '%.64s', which is no result",
                              operand->name);
    }
    memcpy(model->slots[at].name, tensor->name, sizeof tensor->name);
    return true;
}

static bool model_match(const NrtTensorInfoArray *tensors, NkiPart *part, NrtModel *model,
                        Fault *fault)
{
    uint64_t outputs = 0;
    for (uint64_t t = 0; t < tensors->tensor_count; t++) {
        const NrtTensorInfo *tensor = &tensors->tensor_array[t];
        size_t at = tensor->usage == NRT_TENSOR_USAGE_OUTPUT
                        ? result_operand(part, output_number(tensor->name, outputs++))
                        : input_operand(part, tensor->name);
        if (!tensor_match(tensor, part, at, model, fault)) {
            return false;
        }
    }
    for (size_t i = 0; i < part->n_operands; i++) {
        if (model->slots[i].name[0] == '\0') {
            return tdsl_fault_set(
                fault, TDSL_E_NEFF, "NEFF of another kernel: it has no %s for argument '%.64s'",
                part->operands[i].role == TDSL_IN ? "input" : "result", part->operands[i].name);
        }
    }
    return true;
}

/* --- models --- */

static bool model_load(Device *device, const NkiPart *part, void **model, Fault *fault)
{
    NeffBytes neff;
    if (!tdsl_neff_read(part, &neff, fault)) {
        return false;
    }
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_LOAD, fault);
    if (call == NULL) {
        free(neff.owned);
        return false;
    }
    call->neff = neff.data;
    call->bytes = neff.bytes;
    call->data = neff.owned;
    call->core = device->context->settings.device_core;
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good) {
        *model = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool model_inspect(Device *device, NkiPart *part, NrtModel *model, Fault *fault)
{
    NrtCall *ask = tdsl_nrt_device_call(device, NRT_CALL_TENSOR_INFO, fault);
    if (ask == NULL) {
        return false;
    }
    ask->handle = model->model;
    bool good = tdsl_nrt_device_run(device, &ask, fault);
    if (good) {
        NrtTensorInfoArray *tensors = ask->info;
        good = model_match(tensors, part, model, fault);
        tdsl_nrt_device_free(device, NRT_CALL_FREE_TENSOR_INFO, NULL, tensors);
    }
    tdsl_nrt_call_free(ask);
    return good;
}

bool tdsl_nrt_prepare(Device *device, NkiPart *part, Fault *fault)
{
    size_t bytes = sizeof(NrtModel) + part->n_operands * sizeof(Slot);
    NrtModel *model = tdsl_context_allocate(device->context, bytes);
    if (model == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a model");
    }
    memset(model, 0, bytes);
    model->bytes = bytes;
    model->n_slots = part->n_operands;
    bool loaded = model_load(device, part, &model->model, fault);
    if (loaded && model_inspect(device, part, model, fault)) {
        part->loaded = model;
        return true;
    }
    if (loaded) {
        tdsl_nrt_device_free(device, NRT_CALL_UNLOAD, model->model, NULL);
    }
    tdsl_context_release(device->context, model, bytes);
    return false;
}

/* --- tensor sets --- */

/* In reverse order of sets_make, whatever of it was done. */
static void sets_drop(Device *device, NrtModel *model)
{
    for (size_t side = 2; side-- > 0;) {
        if (model->sets[side] != NULL) {
            tdsl_nrt_device_free(device, NRT_CALL_DESTROY_SET, model->sets[side], NULL);
            model->sets[side] = NULL;
        }
    }
    for (size_t i = model->n_slots; i-- > 0;) {
        Slot *slot = &model->slots[i];
        if (slot->slice != NULL) {
            tdsl_nrt_device_free(device, NRT_CALL_TENSOR_FREE, slot->slice, NULL);
            slot->slice = NULL;
        }
        slot->memory = NULL;
    }
}

static bool slice_make(Device *device, const NkiOperand *operand, Slot *slot, Fault *fault)
{
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_TENSOR_SLICE, fault);
    if (call == NULL) {
        return false;
    }
    tdsl_nrt_call_name(call, operand->name);
    call->handle = slot->memory;
    call->offset = operand->offset;
    call->bytes = operand->bytes;
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good) {
        slot->slice = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool set_add(Device *device, void *set, const Slot *slot, Fault *fault)
{
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_ADD_TENSOR, fault);
    if (call == NULL) {
        return false;
    }
    tdsl_nrt_call_name(call, slot->name);
    call->handle = set;
    call->tensor = slot->slice != NULL ? slot->slice : slot->memory;
    bool good = tdsl_nrt_device_run(device, &call, fault);
    tdsl_nrt_call_free(call);
    return good;
}

static bool set_make(Device *device, void **set, Fault *fault)
{
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_ALLOCATE_SET, fault);
    if (call == NULL) {
        return false;
    }
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good) {
        *set = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool sets_make(Device *device, const DeviceRun *run, const NkiPart *part,
                      NrtModel *model, Fault *fault)
{
    bool good =
        set_make(device, &model->sets[0], fault) && set_make(device, &model->sets[1], fault);
    for (size_t i = 0; good && i < model->n_slots; i++) {
        const NkiOperand *operand = &part->operands[i];
        Slot *slot = &model->slots[i];
        slot->memory = run_memory(run, operand);
        good = (operand->whole || slice_make(device, operand, slot, fault)) &&
               set_add(device, model->sets[operand->role == TDSL_OUT], slot, fault);
    }
    if (!good) {
        sets_drop(device, model);
    }
    return good;
}

static bool sets_fit(const DeviceRun *run, const NkiPart *part, const NrtModel *model)
{
    bool fit = model->sets[0] != NULL;
    for (size_t i = 0; fit && i < model->n_slots; i++) {
        fit = model->slots[i].memory == run_memory(run, &part->operands[i]);
    }
    return fit;
}

void tdsl_nrt_forget(Device *device, DeviceMemory memory)
{
    for (NkiForm *form = device->loaded; form != NULL; form = form->loaded_next) {
        for (size_t p = 0; p < form->n_parts; p++) {
            NrtModel *model = form->parts[p].loaded;
            bool holds = false;
            for (size_t i = 0; model != NULL && i < model->n_slots; i++) {
                holds = holds || model->slots[i].memory == memory;
            }
            if (holds) {
                sets_drop(device, model);
            }
        }
    }
}

void tdsl_nrt_unload(Device *device, NkiPart *part)
{
    NrtModel *model = part->loaded;
    sets_drop(device, model);
    tdsl_nrt_device_free(device, NRT_CALL_UNLOAD, model->model, NULL);
    tdsl_context_release(device->context, model, model->bytes);
    part->loaded = NULL;
}

bool tdsl_nrt_run(Device *device, const DeviceRun *run, NkiPart *part, Fault *fault)
{
    NrtModel *model = part->loaded;
    if (!sets_fit(run, part, model)) {
        sets_drop(device, model);
        if (!sets_make(device, run, part, model, fault)) {
            return false;
        }
    }
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_EXECUTE, fault);
    if (call == NULL) {
        return false;
    }
    call->handle = model->model;
    call->inputs = model->sets[0];
    call->outputs = model->sets[1];
    bool good = tdsl_nrt_device_run(device, &call, fault) || fault->status == TDSL_E_NUMERICAL;
    tdsl_nrt_call_free(call);
    return good;
}
