/* SPDX-License-Identifier: Apache-2.0 */
/* The NKI forms of a kernel: a list that is only prepended to, so that calls may walk it
 * without a lock. A form is parts, device programs that run in order; a part knows its
 * operands, each a tensor of the form or consecutive elements of one. The tensors of a form are
 * the kernel's arguments, then the form's temporaries. What belongs to the device is used under
 * the context's device_lock only. */
#ifndef TDSL_RUNTIME_FORMS_H
#define TDSL_RUNTIME_FORMS_H

#include "fault.h"
#include "internal.h"

typedef void *DeviceMemory;

typedef struct NkiOperand {
    const char *name;
    int32_t role;   /* TDSL_IN or TDSL_OUT */
    int32_t tensor; /* of the form */
    int32_t dtype;
    int32_t rank;
    const int64_t *extents;
    size_t offset; /* bytes from the tensor's first element */
    size_t bytes;
    bool whole;   /* the operand is the tensor */
    bool words;   /* each f64 is two f32 on the device */
    bool written; /* of an input: by earlier parts; else it is the caller's value */
} NkiOperand;

typedef struct NkiPart {
    NkiForm *form;
    const char *neff_path; /* texts; null where the part has none, but for function */
    const char *neff_sha256;
    const char *program;
    const char *function;
    const char *manifest;
    const void *neff; /* the program's */
    size_t neff_bytes;
    NkiOperand *operands;
    size_t n_operands;
    void *loaded; /* what the device made of it */
} NkiPart;

typedef struct NkiTensor {
    const char *name;
    size_t bytes;
    int32_t dtype;
    int32_t rank;
    const int64_t *extents;
    bool read;            /* the caller's value is, by some part */
    bool words;           /* a result: each f64 is two f32 on the device */
    bool in_place;        /* the device program writes the result over the input */
    DeviceMemory kept[2]; /* memory of earlier calls, to use again: for input, result */
} NkiTensor;

typedef struct FormBlock FormBlock;

struct NkiForm {
    NkiForm *next;
    tdsl_kernel *kernel;
    FormBlock *blocks; /* all memory behind the pointers here */
    const char *target;
    const int64_t *dims; /* [n_dims of the kernel], and its computed extents */
    NkiPart *parts;
    size_t n_parts;
    NkiTensor *tensors; /* arguments, then temporaries */
    size_t n_tensors;
    bool loaded;          /* every part is */
    NkiForm *loaded_next; /* list of the device's loaded forms */
    Fault refused;        /* a NEFF that is no good stays no good: not read every call */
};

/* The form for these dimensions that `backend` (NKI or EMULATOR) can run, and that was made for
 * `target` unless that is null. Without one, `other` says that there is one for other
 * dimensions. */
NkiForm *tdsl_forms_find(tdsl_kernel *kernel, int32_t backend, const int64_t *dims,
                         const char *target, NkiForm **other);
void tdsl_forms_free(tdsl_kernel *kernel);

/* form_copy.c: a form of our own from the program's, checked, its paths from `folder` unless
 * that is null. Null with a status. */
NkiForm *tdsl_form_make(tdsl_kernel *kernel, const tdsl_nki_form *given, const char *folder,
                        tdsl_report *report, tdsl_status *status);
void tdsl_form_free(NkiForm *form);

#endif
