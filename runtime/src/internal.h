/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the runtime share: the context, the kernel, one call in flight, and the few helpers
 * everything uses. Idea: a call is one plain structure on the caller's stack, filled by check.c, decided
 * by dispatch.c and then run either directly (C form) or by resident.c on the context's device.
 *
 * Locks, in the order they may be taken: registry_lock (kernels and forms), device_lock (the device, its
 * tensors, the loaded models). A call of a C form takes neither. */
#ifndef TDSL_RUNTIME_INTERNAL_H
#define TDSL_RUNTIME_INTERNAL_H

#include "tdsl/tdsl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TDSL_MAX_ARGS       128 /* C11 promises 127 parameters: no kernel has more */
#define TDSL_MAX_DIMS       128 /* open ones and computed extents together */
#define TDSL_MAX_RANK       128
#define WORKSPACE_ALIGNMENT ((size_t)64)

#if defined(__GNUC__)
#define TDSL_PRINTF(at, first) __attribute__((cold, noinline, format(printf, at, first)))
#else
#define TDSL_PRINTF(at, first)
#endif

typedef struct Device Device;   /* device.h */
typedef struct NkiForm NkiForm; /* forms.h */

/* The context's configuration after defaults and environment: no zero stands for a default here. */
typedef struct Settings {
    int32_t backend;
    bool require_nki;
    bool use_simulator;
    int32_t device_core;
    double min_nki_flops;
    int64_t device_timeout_ms;
    char *nrt_library; /* owned strings, never null */
    char *emulator;
    char *python;
    char *temporary; /* folder for the emulator's arrays */
} Settings;

struct tdsl_context {
    Settings settings;
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void (*log)(void *user, const char *message);
    pthread_mutex_t registry_lock;
    tdsl_kernel **kernels; /* sorted by name */
    size_t n_kernels;
    size_t kernel_capacity;
    pthread_mutex_t device_lock;
    Device *device;            /* made at its first use, under device_lock */
    _Atomic(int) device_owner; /* the process that made it, 0 before: not for its children */
};

/* A workspace kept between calls; its memory follows, aligned. */
typedef struct Workspace {
    void *memory;
    size_t bytes;
} Workspace;

/* A kernel's table in the sizes of this build: the program's own or, of a program built with
 * another version of the headers, a copy. */
typedef struct Table {
    const tdsl_kernel_info *info;
    const tdsl_kernel_info *given; /* the program's */
    void *copy;                    /* behind info, or null */
    size_t copy_bytes;
} Table;

struct tdsl_kernel {
    tdsl_context *context;
    const tdsl_kernel_info *info; /* the table's */
    Table table;
    _Atomic(Workspace *) spare; /* at most one, taken by whoever calls first */
    _Atomic(NkiForm *) forms;   /* only ever prepended to */
    _Atomic(uint64_t) logged;   /* bit per cause that was logged */
};

/* One call: arguments as given, and what checking found out about them. */
typedef struct Call {
    tdsl_kernel *kernel;
    const tdsl_kernel_info *info;
    tdsl_tensor *args;
    const tdsl_call_options *options;
    tdsl_report *report;
    bool any_device; /* an argument has device memory */
    uint64_t multiply_adds;
    int64_t dims[TDSL_MAX_DIMS]; /* open ones, then computed extents */
    size_t bytes[TDSL_MAX_ARGS]; /* of each argument */
} Call;

/* --- status.c: every failure goes through here --- */
tdsl_status tdsl_fail(tdsl_report *report, tdsl_status status, const char *format, ...)
    TDSL_PRINTF(3, 4);
/* As tdsl_fail, the message led by the kernel's name, or by kernel and argument. */
tdsl_status tdsl_call_fail(const Call *call, tdsl_status status, const char *format, ...)
    TDSL_PRINTF(3, 4);
tdsl_status tdsl_arg_fail(const Call *call, size_t arg, tdsl_status status, const char *format,
                          ...) TDSL_PRINTF(4, 5);
/* Clears the report; false when it is of another version of this header. */
bool tdsl_report_begin(tdsl_report *report, const char *kernel);

/* --- dtype.c --- */
typedef struct DtypeRow {
    const char *name;
    uint8_t bytes; /* 0 for a number that is no dtype */
    uint8_t alignment;
} DtypeRow;

#define DTYPE_ROWS (TDSL_F8E4M3FN + 1)
extern const DtypeRow tdsl_dtype_rows[DTYPE_ROWS];

static inline const DtypeRow *dtype_row(int32_t dtype)
{
    return &tdsl_dtype_rows[dtype > 0 && dtype < DTYPE_ROWS ? dtype : 0];
}

static inline size_t tdsl_dtype_bytes(int32_t dtype)
{
    return dtype_row(dtype)->bytes;
}

static inline size_t tdsl_dtype_alignment(int32_t dtype)
{
    return dtype_row(dtype)->alignment;
}

static inline const char *tdsl_dtype_name(int32_t dtype)
{
    return dtype_row(dtype)->name;
}

/* --- context.c: all memory of a context --- */
void *tdsl_context_allocate(tdsl_context *context, size_t bytes);
void tdsl_context_release(tdsl_context *context, void *memory, size_t bytes);
char *tdsl_context_copy_text(tdsl_context *context, const char *text);
void tdsl_context_release_text(tdsl_context *context, char *text);

/* --- read.c --- */
/* So many bytes of a file; false where it has fewer, or they cannot be read. */
bool tdsl_read_fully(int file, void *to, size_t bytes);

/* --- settings.c --- */
tdsl_status tdsl_settings_read(tdsl_context *context, const tdsl_config *config,
                               tdsl_report *report);
void tdsl_settings_release(tdsl_context *context);

/* --- locate.c --- */
/* The installed emulator's run.py, or null; a text of the context. False without memory for it. */
bool tdsl_emulator_locate(tdsl_context *context, char **found);

/* --- table.c --- */
tdsl_status tdsl_table_make(tdsl_context *context, const tdsl_kernel_info *given, Table *table,
                            tdsl_report *report);
void tdsl_table_free(tdsl_context *context, Table *table);

/* --- kernel.c --- */
void tdsl_kernel_free(tdsl_kernel *kernel);

/* --- extents.c: open dimensions and what is computed from them, numbered as a tdsl_extent does --- */
#define DIM_UNBOUND  INT64_MIN
#define EXTENT_BYTES 160 /* of a text for a message */

typedef enum ExtentFault {
    EXTENT_GOOD,
    EXTENT_UNKNOWN,  /* nothing says open dimension `dim` */
    EXTENT_NEGATIVE, /* computed extent `dim` would be `value` before it is divided, below 0 */
    EXTENT_OVERFLOW, /* computed extent `dim` is too large */
    EXTENT_DIFFERS,  /* computed extent `dim` is `value`, not what `dims` has */
    EXTENT_IMPOSSIBLE, /* no value of its open dimensions makes `dim` what `dims` has */
} ExtentFault;

/* Fills in what of [n_dims + n_computed] is DIM_UNBOUND. */
ExtentFault tdsl_extents_complete(const tdsl_kernel_info *info, int64_t *dims, int32_t *dim,
                                  int64_t *value);
/* "n + k - 1", cut to the room there is; the text given. */
const char *tdsl_extent_text(const tdsl_kernel_info *info, int32_t dim, char *text,
                             size_t bytes);

/* After all arguments: open dimensions that nothing says, and computed extents. */
tdsl_status tdsl_extents_check(Call *call);
/* An axis of an argument has not the extent that was bound or fixed. */
tdsl_status tdsl_extent_fail(const Call *call, size_t arg, int32_t axis, int64_t extent);

/* --- check.c --- */
typedef enum LayoutFault { LAYOUT_GOOD, LAYOUT_STRIDE, LAYOUT_OVERFLOW } LayoutFault;
/* Bytes of a tensor whose extents are 0 or more; else the axis and the stride it should have. */
LayoutFault tdsl_tensor_layout(const tdsl_tensor *tensor, size_t *bytes, int32_t *axis,
                               size_t *stride);
tdsl_status tdsl_call_check(Call *call);

/* --- positions.c --- */

/* TDSL_E_INDEX, with the first position of these arguments that lies outside. */
tdsl_status tdsl_positions_fail(const Call *call, void *const *pointers);
/* Of arguments that have host memory, all of them. */
tdsl_status tdsl_positions_check(const Call *call);

/* --- symmetry.c --- */
/* Where the call asks for it: what is read before it, or what it has written, but for what has device
 * memory. */
tdsl_status tdsl_symmetry_check(const Call *call, bool results);

/* --- host.c --- */
tdsl_status tdsl_call_host(Call *call); /* runs the C form */

static inline bool size_multiply(size_t a, size_t b, size_t *product)
{
#if defined(__GNUC__)
    return !__builtin_mul_overflow(a, b, product);
#else
    *product = a * b;
    return b == 0 || a <= SIZE_MAX / b;
#endif
}

static inline bool role_is_result(int32_t role)
{
    return role == TDSL_OUT || role == TDSL_INOUT;
}

static inline bool role_is_read(int32_t role)
{
    return role != TDSL_OUT;
}

#endif
