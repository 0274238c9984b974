/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a part's NEFF, checked against its digest. */
#ifndef TDSL_RUNTIME_NEFF_H
#define TDSL_RUNTIME_NEFF_H

#include "forms.h"

typedef struct NeffBytes {
    const void *data;
    size_t bytes;
    void *owned; /* of malloc, for a call that hangs may outlive the context and the program's
                    copy */
} NeffBytes;

/* False with a fault of TDSL_E_NEFF when it is missing, damaged, or not the one that was meant. */
bool tdsl_neff_read(const NkiPart *part, NeffBytes *neff, Fault *fault);

#endif
