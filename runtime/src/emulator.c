/* SPDX-License-Identifier: Apache-2.0 */
/* The NKI emulator as a device. Its memory is this machine's; a run writes the inputs as .npy
 * files into a folder of its own, runs the printed program in the emulator, and reads the
 * results back. This is the one file that knows the emulator's command line:
 *
 *     python3 run.py PROGRAM --function F --target T [--manifest M] --in A.npy --out R.npy
 *
 * with one --in for each parameter and one --out for each result, in their orders. NKI has no
 * tensors of rank 0 and no complex numbers: a number travels as shape (1, 1), complex ones as
 * pairs of reals along one more axis. Exit status: 0 done, 1 a rule of the device was broken,
 * 2 wrong arrays, 3 files. */
#define _GNU_SOURCE /* mkdtemp */
#include "device.h"
#include "npy.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define FILE_BYTES (PATH_BYTES + 32)

/* One run's folder and command line. The paths of all files stand in one block. */
typedef struct Session {
    char folder[PATH_BYTES];
    char (*files)[FILE_BYTES]; /* inputs, then results, then the file of errors */
    size_t n_files;
    size_t made;        /* files that may exist */
    char (*types)[320]; /* texts of --in-dtype */
    char **argv;
    size_t argc;
} Session;

static bool emulator_open(Device *device, Fault *fault)
{
    const char *path = device->context->settings.emulator;
    if (path[0] == '\0') {
        return tdsl_fault_set(
            fault, TDSL_E_NO_LIBRARY,
            "where is the NKI emulator? TDSL_NKI_EMULATOR must name its run.py");
    }
    if (access(path, R_OK) != 0) {
        return tdsl_fault_set(fault, TDSL_E_NO_LIBRARY,
                              "the NKI emulator is not here: '%.200s' (TDSL_NKI_EMULATOR)",
                              path);
    }
    return true;
}

static void emulator_close(Device *device)
{
    (void)device;
}

static bool emulator_allocate(Device *device, size_t bytes, const char *name,
                              DeviceMemory *memory, Fault *fault)
{
    (void)name;
    *memory = tdsl_context_allocate(device->context, bytes);
    return *memory != NULL ||
           tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a tensor of %zu bytes", bytes);
}

static void emulator_release(Device *device, DeviceMemory memory, size_t bytes)
{
    tdsl_context_release(device->context, memory, bytes);
}

static bool emulator_write(Device *device, DeviceMemory memory, const void *data, size_t bytes,
                           Fault *fault)
{
    (void)device;
    (void)fault;
    if (bytes > 0) {
        memcpy(memory, data, bytes);
    }
    return true;
}

static bool emulator_read(Device *device, DeviceMemory memory, void *data, size_t bytes,
                          Fault *fault)
{
    (void)device;
    (void)fault;
    if (bytes > 0) {
        memcpy(data, memory, bytes);
    }
    return true;
}

static bool emulator_prepare(Device *device, NkiPart *part, Fault *fault)
{
    (void)device;
    if (access(part->program, R_OK) != 0) {
        return tdsl_fault_set(fault, TDSL_E_NEFF, "its NKI program '%.300s' cannot be read",
                              part->program);
    }
    part->loaded = part; /* nothing to keep: only that it was there */
    return true;
}

static void emulator_unload(Device *device, NkiPart *part)
{
    (void)device;
    part->loaded = NULL;
}

/* --- one run --- */

static void session_free(tdsl_context *context, Session *session)
{
    size_t n = session->n_files;
    for (size_t i = 0; i < session->made; i++) {
        (void)unlink(session->files[i]);
    }
    if (session->folder[0] != '\0') {
        (void)rmdir(session->folder);
    }
    tdsl_context_release(context, session->argv, (4 * n + 16) * sizeof(char *));
    tdsl_context_release(context, session->types, n * sizeof *session->types);
    tdsl_context_release(context, session->files, n * sizeof *session->files);
}

static bool session_make(tdsl_context *context, const NkiPart *part, Session *session,
                         Fault *fault)
{
    memset(session, 0, sizeof *session);
    session->n_files = part->n_operands + 1;
    size_t n = session->n_files;
    session->files = tdsl_context_allocate(context, n * sizeof *session->files);
    session->types = tdsl_context_allocate(context, n * sizeof *session->types);
    session->argv = tdsl_context_allocate(context, (4 * n + 16) * sizeof(char *));
    if (session->files == NULL || session->types == NULL || session->argv == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to run the emulator");
    }
    char folder[PATH_BYTES];
    int length = snprintf(folder, sizeof folder, "%s/tdsl-XXXXXX", context->settings.temporary);
    if (length < 0 || (size_t)length >= sizeof folder || mkdtemp(folder) == NULL) {
        return tdsl_fault_set(fault, TDSL_E_DEVICE,
                              "no folder for its arrays in '%.200s' (TMPDIR)",
                              context->settings.temporary);
    }
    memcpy(session->folder, folder, sizeof folder);
    return true;
}

static char *session_file(Session *session, const char *kind)
{
    char *path = session->files[session->made];
    (void)snprintf(path, FILE_BYTES, "%.4090s/%s%zu", session->folder, kind, session->made);
    session->made++;
    return path;
}

static void session_word(Session *session, const char *word)
{
    /* posix_spawn takes pointers to char and changes nothing behind them */
    memcpy(&session->argv[session->argc++], &word, sizeof word);
}

/* The element type NKI sees: a complex number is a pair of reals along one more axis, an i64 its two
 * words, an f64 result two f32. */
static int32_t program_dtype(const NkiOperand *operand)
{
    int32_t dtype = operand->dtype;
    return operand->words       ? TDSL_F32
           : dtype == TDSL_C64  ? TDSL_F32
           : dtype == TDSL_C128 ? TDSL_F64
           : dtype == TDSL_I64  ? TDSL_I32
                                : dtype;
}

/* Where an operand's elements are. */
static unsigned char *operand_data(const DeviceRun *run, const NkiOperand *operand)
{
    return (unsigned char *)run_memory(run, operand) + operand->offset;
}

static bool input_write(const NkiOperand *operand, const char *path, const void *data,
                        Fault *fault)
{
    int64_t shape[TDSL_MAX_RANK + 2] = {1};
    int32_t rank = 0;
    for (; rank < operand->rank; rank++) {
        shape[rank] = operand->extents[rank];
    }
    bool pair = operand->dtype != program_dtype(operand);
    rank = rank == 0 ? 1 : rank; /* NKI has no tensors of rank 0 */
    if (pair || operand->rank == 0) {
        shape[rank++] = pair ? 2 : 1;
    }
    return tdsl_npy_write(path, program_dtype(operand), rank, shape, data, operand->bytes,
                          fault);
}

static bool inputs_write(const DeviceRun *run, const NkiPart *part, Session *session,
                         Fault *fault)
{
    for (size_t i = 0; i < part->n_operands; i++) {
        const NkiOperand *operand = &part->operands[i];
        if (operand->role != TDSL_IN) {
            continue;
        }
        char *path = session_file(session, "in");
        if (!input_write(operand, path, operand_data(run, operand), fault)) {
            return false;
        }
        session_word(session, "--in");
        session_word(session, path);
        const char *type = operand->dtype == TDSL_BF16     ? "bfloat16"
                           : operand->dtype == TDSL_F8E4M3 ? "float8_e4m3"
                           : operand->dtype == TDSL_F8E5M2 ? "float8_e5m2"
                                                           : NULL;
        if (type != NULL && part->manifest == NULL) {
            char *text = session->types[session->made - 1];
            (void)snprintf(text, sizeof *session->types, "%.256s=%s", operand->name, type);
            session_word(session, "--in-dtype");
            session_word(session, text);
        }
    }
    return true;
}

static void command_make(const Device *device, const NkiPart *part, Session *session)
{
    session_word(session, device->context->settings.python);
    session_word(session, device->context->settings.emulator);
    session_word(session, part->program);
    session_word(session, "--function");
    session_word(session, part->function);
    session_word(session, "--target");
    session_word(session, part->form->target);
    if (part->manifest != NULL) {
        session_word(session, "--manifest");
        session_word(session, part->manifest);
    }
    bool words = false;
    for (size_t i = 0; i < part->n_operands; i++) {
        words = words || part->operands[i].words;
    }
    if (words) {
        session_word(session, "--as-device");
    }
}

/* What the emulator said last: its complaint. */
static void errors_read(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "rbe");
    size_t got = 0;
    if (file != NULL) {
        long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
        long from = size > (long)bytes - 1 ? size - ((long)bytes - 1) : 0;
        got = fseek(file, from, SEEK_SET) == 0 ? fread(text, 1, bytes - 1, file) : 0;
        (void)fclose(file);
    }
    while (got > 0 && text[got - 1] == '\n') {
        got--;
    }
    text[got] = '\0';
}

static bool command_run(Device *device, Session *session, Fault *fault)
{
    int code = 0;
    char *errors = session_file(session, "errors");
    session->argv[session->argc] = NULL;
    if (!tdsl_process_run(session->argv, errors, device->context->settings.device_timeout_ms,
                          &code, fault)) {
        return false;
    }
    if (code == 0) {
        return true;
    }
    char text[300];
    errors_read(errors, text, sizeof text);
    return tdsl_fault_set(fault, code == 2 ? TDSL_E_SHAPE : TDSL_E_DEVICE, "exit status %d: %s",
                          code, text);
}

/* The results' files follow the inputs', in order. */
static bool results_read(const DeviceRun *run, const NkiPart *part, const Session *session,
                         size_t first, Fault *fault)
{
    size_t at = first;
    for (size_t i = 0; i < part->n_operands; i++) {
        const NkiOperand *operand = &part->operands[i];
        if (operand->role == TDSL_OUT &&
            !tdsl_npy_read(session->files[at++], program_dtype(operand),
                           operand_data(run, operand), operand->bytes, fault)) {
            return false;
        }
    }
    return true;
}

static bool emulator_run(Device *device, const DeviceRun *run, NkiPart *part, Fault *fault)
{
    Session session;
    size_t first = 0;
    bool good = session_make(device->context, part, &session, fault);
    if (good) {
        command_make(device, part, &session);
        good = inputs_write(run, part, &session, fault);
        first = session.made;
    }
    for (size_t i = 0; good && i < part->n_operands; i++) {
        if (part->operands[i].role == TDSL_OUT) {
            session_word(&session, "--out");
            session_word(&session, session_file(&session, "out"));
        }
    }
    good = good && command_run(device, &session, fault) &&
           results_read(run, part, &session, first, fault);
    session_free(device->context, &session);
    return good;
}

const DeviceOps tdsl_emulator_device = {
    TDSL_BACKEND_EMULATOR, false,          emulator_open, emulator_close,   emulator_allocate,
    emulator_release,      emulator_write, emulator_read, emulator_prepare, emulator_run,
    emulator_unload,
};
