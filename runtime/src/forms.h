/* SPDX-License-Identifier: Apache-2.0 */
/* The NKI forms of a kernel: a list that is only prepended to, so that calls may walk it
 * without a lock. The last two fields belong to the device and are used under the context's
 * device_lock only. */
#ifndef TDSL_RUNTIME_FORMS_H
#define TDSL_RUNTIME_FORMS_H

#include "fault.h"
#include "internal.h"

struct NkiForm {
    NkiForm *next;
    tdsl_kernel *kernel;
    char *target; /* owned texts; null where the form has none, but for target and function */
    char *neff_path;
    char *neff_sha256;
    char *program;
    char *function;
    char *manifest;
    const void *neff; /* the program's */
    size_t neff_bytes;
    int64_t *dims;        /* [n_dims] */
    void *loaded;         /* what the device made of it                                */
    NkiForm *loaded_next; /* list of the device's loaded forms                         */
    Fault refused;        /* a NEFF that is no good stays no good: not read every call */
};

/* The form for these dimensions that `backend` (NKI or EMULATOR) can run. Without one, `other`
 * says that there is one for other dimensions. */
NkiForm *tdsl_forms_find(tdsl_kernel *kernel, int32_t backend, const int64_t *dims,
                         NkiForm **other);
void tdsl_forms_free(tdsl_kernel *kernel);

#endif
