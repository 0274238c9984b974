/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface of libtdsl: an optional runtime that calls generated kernels with their
 * arguments checked, and chooses for each call between the kernel's C form and its NKI form
 * (Trainium, or its emulator). A C kernel needs none of this; it can be called directly through
 * its own header.
 *
 * Three steps: create a context, register kernels in it, call them.
 *
 *     tdsl_context *context = NULL;
 *     tdsl_report report = TDSL_REPORT_INIT;
 *     tdsl_status status = tdsl_context_create(NULL, &context, &report);
 *     status = tdsl_register(context, &gemm_info, &report);
 *     tdsl_kernel *kernel = NULL;
 *     status = tdsl_find(context, "gemm", &kernel, &report);
 *     tdsl_tensor args[3] = {tdsl_view(TDSL_F64, a, 2, (int64_t[]){3, 4}), ...};
 *     status = tdsl_call(kernel, args, 3, NULL, &report);
 *
 * Rules. Every failure is a status; the report, which the caller owns, holds a message naming
 * kernel and argument, so that no two threads share a buffer. A report pointer may always be
 * null. Handles are written on success only. All state belongs to a context (but for the count
 * of users of libnrt, which is one per process by its vendor's design). Contexts and kernels
 * may be used from any number of threads at once; one context must not be destroyed while
 * another thread uses it. The library never ends the process, installs no handler, starts no
 * thread before a device is used, and writes nothing to standard output. */
#ifndef TDSL_TDSL_H
#define TDSL_TDSL_H

#include "tdsl/abi.h"

#if defined(__GNUC__)
#define TDSL_API __attribute__((visibility("default")))
#else
#define TDSL_API
#endif

TDSL_BEGIN

typedef struct tdsl_context tdsl_context;
typedef struct tdsl_kernel tdsl_kernel; /* a registered kernel; lives as long as its context */
typedef struct tdsl_buffer tdsl_buffer; /* device memory behind a tensor */

/* --- status --- */

/* "TDSL_E_SHAPE", and "rank or extent differs from the kernel's"; never null. */
TDSL_API const char *tdsl_status_name(tdsl_status status);
TDSL_API const char *tdsl_status_text(tdsl_status status);

/* What runs a kernel. DEFAULT and AUTO are settings only; a report names one of the others. */
typedef enum tdsl_backend {
    TDSL_BACKEND_DEFAULT = 0, /* as TDSL_BACKEND says, else AUTO */
    TDSL_BACKEND_AUTO = 1,    /* the dispatcher chooses at each call */
    TDSL_BACKEND_C = 2,       /* the C form */
    TDSL_BACKEND_NKI = 3,     /* the NEFF, on a device through libnrt */
    TDSL_BACKEND_EMULATOR = 4 /* the printed NKI program, in the emulator, on this machine */
} tdsl_backend;

typedef enum tdsl_reason {
    TDSL_REASON_NONE = 0,
    TDSL_REASON_FORCED = 1,          /* the backend setting names it */
    TDSL_REASON_NO_NKI_FORM = 2,     /* the kernel has no NKI form */
    TDSL_REASON_OTHER_EXTENTS = 3,   /* its NKI forms were built for other open extents */
    TDSL_REASON_NO_C_FORM = 4,       /* the kernel has no C form */
    TDSL_REASON_REQUIRED = 5,        /* TDSL_REQUIRE_NKI */
    TDSL_REASON_RESIDENT = 6,        /* an argument is on the device already */
    TDSL_REASON_ABOVE_THRESHOLD = 7, /* enough work to pay for the device */
    TDSL_REASON_BELOW_THRESHOLD = 8, /* too little work to pay for the device */
    TDSL_REASON_UNAVAILABLE = 9,     /* the device or its library cannot be used: see `cause` */
    TDSL_REASON_DEVICE_FAILED = 10   /* tried there, failed with `cause`, then run in C */
} tdsl_reason;

#define TDSL_MESSAGE_BYTES 512

/* What happened: written by every function that takes one, on success too. */
typedef struct tdsl_report {
    uint32_t struct_size;
    tdsl_status status;
    int32_t backend;        /* tdsl_backend: what ran, or would run; DEFAULT when nothing */
    int32_t reason;         /* tdsl_reason */
    tdsl_status cause;      /* why the device was not used, or TDSL_OK */
    int32_t native;         /* libnrt's own number behind `status` or `cause` */
    uint64_t multiply_adds; /* of this call, saturating */
    double min_nki_flops;   /* the threshold they, counted as 2 each, were held to */
    uint32_t device_writes; /* transfers of this call, tensor by tensor */
    uint32_t device_reads;
    const char *kernel;               /* its name, as its table has it, or null */
    char message[TDSL_MESSAGE_BYTES]; /* "" when nothing went wrong */
} tdsl_report;

#define TDSL_REPORT_INIT                                                                       \
    {                                                                                          \
        (uint32_t)sizeof(tdsl_report), TDSL_OK, 0, 0, TDSL_OK, 0, 0, 0, 0, 0, NULL, ""         \
    }

/* One line saying what ran and why, as snprintf: returns the length without the final zero. */
TDSL_API size_t tdsl_report_text(const tdsl_report *report, char *text, size_t bytes);
TDSL_API const char *tdsl_backend_name(int32_t backend);

/* --- context --- */

/* Zero in a field means its default. What is left at its default here is taken from the
 * environment, if it says something; a value that makes no sense there ends creation with
 * TDSL_E_ARGUMENT. The structure and its texts are copied; the three functions are called from
 * any thread that uses the context, never after its destruction, and must not throw. */
typedef struct tdsl_config {
    uint32_t struct_size;
    int32_t ignore_environment; /* 1: read no variable at all */
    int32_t backend;            /* tdsl_backend; TDSL_BACKEND = auto, c, nki, emulator */
    /* 1 yes, -1 no; TDSL_REQUIRE_NKI = 0, 1: calls that the NKI form cannot serve fail, and
     * the threshold does not apply. */
    int32_t require_nki;
    /* 1 yes, -1 no; TDSL_USE_SIMULATOR = 0, 1: where the device would be chosen, the emulator
     * takes its place. */
    int32_t use_simulator;
    int32_t device_core;   /* NeuronCore, counted among the visible ones */
    int64_t min_nki_flops; /* TDSL_MIN_NKI_FLOPS, default 2e9, counted as 2 per multiply-add */
    int64_t device_timeout_ms; /* for one call into libnrt or one emulator run; default 60000 */
    const char *nrt_library;   /* TDSL_NRT_LIBRARY, default libnrt.so.1 */
    const char
        *emulator; /* TDSL_NKI_EMULATOR, the emulator's run.py; default: the installed one */
    const char *python; /* TDSL_PYTHON, default python3 */
    void *user;         /* handed to the functions below */
    void *(*allocate)(void *user, size_t bytes, size_t alignment); /* both or neither */
    void (*release)(void *user, void *memory, size_t bytes);
    /* Told once for each kernel and cause when a call meant for the device runs in C instead. Default:
     * one line on standard error, for nothing falls back in silence. */
    void (*log)(void *user, const char *message);
} tdsl_config;

#define TDSL_CONFIG_INIT                                                                       \
    {                                                                                          \
        (uint32_t)sizeof(tdsl_config), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL,      \
            NULL, NULL                                                                         \
    }

/* `config` may be null: all defaults. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_context_create(const tdsl_config *config,
                                                        tdsl_context **context,
                                                        tdsl_report *report);
/* Frees everything made through the context, device memory included. Null is allowed. Never hangs. */
TDSL_API void tdsl_context_destroy(tdsl_context *context);

/* --- kernels --- */

/* Adds a generated kernel under its name; the table must outlive the context. The same table twice is
 * no error, another table of the same name is. A kernel without a C form has a null `call`. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_register(tdsl_context *context,
                                                  const tdsl_kernel_info *info,
                                                  tdsl_report *report);
/* A generated file's list of kernels, which ends with a null pointer; stops at the first
 * failure. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_register_all(tdsl_context *context,
                                                      const tdsl_kernel_info *const *infos,
                                                      tdsl_report *report);
TDSL_API TDSL_NODISCARD tdsl_status tdsl_find(tdsl_context *context, const char *name,
                                              tdsl_kernel **kernel, tdsl_report *report);
/* Kernels in order of their names; null past the end. */
TDSL_API tdsl_kernel *tdsl_kernel_at(tdsl_context *context, size_t index);
TDSL_API const tdsl_kernel_info *tdsl_kernel_table(const tdsl_kernel *kernel);

/* One tensor that a device program takes or gives: an argument of the kernel or a temporary of
 * the form, or, with `extents`, consecutive elements of one (rows of a result, for instance). */
typedef struct tdsl_nki_operand {
    const char *name; /* of the program's parameter; null: as the argument or temporary */
    int32_t role;     /* TDSL_IN or TDSL_OUT; what is read and written has two operands */
    int32_t tensor;   /* number of an argument; n_args + number of a temporary */
    int64_t offset;   /* of its first element in the tensor, in elements */
    int32_t rank;     /* of `extents` */
    int32_t words;    /* 0; or 2: the program gives an f64 result as two f32, whose sum it is */
    const int64_t *extents; /* null: the whole tensor */
} tdsl_nki_operand;

/* A device program: a NEFF for the device, the printed text for the emulator, or both. A NEFF is
 * code for the device, so its SHA-256 is asked for and checked before it is loaded. */
typedef struct tdsl_nki_part {
    const void *neff; /* embedded bytes, which must outlive the context, or null */
    size_t neff_bytes;
    const char *neff_path;   /* or a file, read when first used */
    const char *neff_sha256; /* 64 hexadecimal digits; needed with either */
    const char *program;     /* the printed Python file, or null */
    const char *function;    /* the kernel in it; null: as the kernel's name */
    const char *manifest;    /* its manifest, or null */
    /* Inputs in the order of the program's parameters, results in the order it returns them.
     * Null: the arguments that are read, then those that are written. */
    const tdsl_nki_operand *operands;
    int32_t n_operands;
    int32_t reserved;
} tdsl_nki_part;

/* Device memory that lives during a call, between the parts of a form. */
typedef struct tdsl_nki_temporary {
    const char *name;
    int32_t dtype; /* tdsl_dtype */
    int32_t rank;
    const int64_t *extents;
} tdsl_nki_temporary;

#define TDSL_NKI_VERSION 1

/* The NKI form of a kernel, for one choice of its open dimensions: one device program or, where
 * one would be too long for the device, several that run in order. Every element of a result and
 * of a temporary is written once, and read only after that; an element of an inout argument is
 * the caller's until it is written. Everything but embedded bytes is copied. */
typedef struct tdsl_nki_form {
    uint32_t struct_size;
    uint32_t version;   /* TDSL_NKI_VERSION: of this structure and those it points to */
    const char *kernel; /* for tdsl_register_nki_all */
    const char *target; /* "trn1", "trn2", "trn3" */
    /* What the open dimensions are bound to: a value for each, or, in `extents`, the extents of
     * all arguments one after the other, from which the values follow. */
    const int64_t *dims;
    const int64_t *extents; /* [n_extents], where dims is null */
    int32_t n_extents;
    int32_t n_temporaries;
    const tdsl_nki_part *parts; /* [n_parts] */
    const tdsl_nki_temporary *temporaries;
    int32_t n_parts;
    int32_t reserved;
} tdsl_nki_form;

#define TDSL_NKI_PART_INIT                                                                     \
    {                                                                                          \
        NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0                                      \
    }

#define TDSL_NKI_FORM_INIT                                                                     \
    {                                                                                          \
        (uint32_t)sizeof(tdsl_nki_form), TDSL_NKI_VERSION, NULL, NULL, NULL, NULL, 0, 0, NULL, \
            NULL, 0, 0                                                                         \
    }

/* Adds an NKI form to a registered kernel. Several may be added, for other open dimensions or
 * other targets; of two for the same the later is used. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_register_nki(tdsl_context *context, const char *name,
                                                      const tdsl_nki_form *form,
                                                      tdsl_report *report);
/* The list of forms that tdslc --target=trn2 writes beside the programs: a null pointer ends
 * it. Paths that do not begin with '/' are taken from `folder`, which may be null: as they are. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_register_nki_all(tdsl_context *context,
                                                          const tdsl_nki_form *const *forms,
                                                          const char *folder,
                                                          tdsl_report *report);

/* --- calls --- */

/* One argument. Scalars are tensors of rank 0. `strides` count elements and may be null for C
 * order, which is the only order kernels take. The caller owns it all; nothing of it is kept
 * after a call but what `device` points to, which belongs to the context. */
typedef struct tdsl_tensor {
    void *data; /* host memory; may be null for a tensor that lives on the device only */
    const int64_t *extents; /* [rank] */
    const int64_t *strides; /* [rank] or null */
    int32_t dtype;          /* tdsl_dtype */
    int32_t rank;
    tdsl_buffer *device; /* null but after tdsl_to_device */
} tdsl_tensor;

static inline tdsl_tensor tdsl_view(int32_t dtype, void *data, int32_t rank,
                                    const int64_t *extents)
{
    tdsl_tensor tensor = {data, extents, NULL, dtype, rank, NULL};
    return tensor;
}

/* Of tdsl_call_options: arguments whose symmetry the kernel's head declares are checked before the call, results after it, element
 * by element; one that differs fails the call with TDSL_E_SYMMETRY. What has device memory is not looked at. */
#define TDSL_CHECK_SYMMETRY 1u

typedef struct tdsl_call_options {
    uint32_t struct_size;
    uint32_t flags;      /* TDSL_CHECK_SYMMETRY, or 0 */
    const int64_t *dims; /* values of the open dimensions; null: deduced from the arguments */
    void *workspace;     /* null: from the context */
    size_t workspace_bytes;
    const tdsl_threads *threads; /* that the C form may use; null: the caller's alone */
} tdsl_call_options;

#define TDSL_CALL_OPTIONS_INIT                                                                 \
    {                                                                                          \
        (uint32_t)sizeof(tdsl_call_options), 0, NULL, NULL, 0, NULL                            \
    }

/* Checks the arguments (dtype, rank, extents that agree and give the open dimensions, C order,
 * alignment, no result overlapping another argument, workspace), chooses a backend, runs. One
 * tensor for each argument of the kernel, in its order. `options` may be null. After a failure
 * that is found before or on the device host memory is as it was; TDSL_E_NUMERICAL is the
 * exception: the results are there, and the device met a NaN. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_call(tdsl_kernel *kernel, tdsl_tensor *args,
                                              size_t n_args, const tdsl_call_options *options,
                                              tdsl_report *report);

/* The same decision for the same arguments without running anything: the report names the backend and
 * the reason. The device's library is opened if the decision depends on it. The status is that with which
 * tdsl_call would refuse. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_dispatch_explain(tdsl_kernel *kernel,
                                                          tdsl_tensor *args, size_t n_args,
                                                          const tdsl_call_options *options,
                                                          tdsl_report *report);

/* --- device tensors --- */

/* A tensor has device memory from tdsl_to_device to tdsl_device_free. A kernel run on the
 * device takes it from there and leaves its results there: kernels chained on such tensors make
 * no trip through the host, and the dispatcher prefers the device for them whatever the
 * threshold says. A kernel run in C fetches first, which its report counts, and leaves its
 * results on the host.
 *
 * Tensors of one device memory must not be used by two calls at once if either writes. A copy of
 * a tensor shares its device memory, and is not to be used once that was given back. */

/* Gives the tensor device memory and copies its data there. No copy when they are there already; with
 * null `data` there is nothing to copy. With the backend set to c there is no device: nothing happens,
 * TDSL_OK, and the report says so. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_to_device(tdsl_context *context, tdsl_tensor *tensor,
                                                   tdsl_report *report);
/* Copies back what the device has and the host has not; else does nothing. */
TDSL_API TDSL_NODISCARD tdsl_status tdsl_from_device(tdsl_context *context, tdsl_tensor *tensor,
                                                     tdsl_report *report);
/* Says that the program has written to `data`: the device's copy is old. */
TDSL_API void tdsl_host_changed(tdsl_tensor *tensor);
/* Gives the device memory back, without copying; does nothing for a tensor that has none. */
TDSL_API void tdsl_device_free(tdsl_context *context, tdsl_tensor *tensor);

TDSL_END

#endif
