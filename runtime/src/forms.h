/* SPDX-License-Identifier: Apache-2.0 */
/* The NKI forms of a kernel: a list that is only prepended to. */
#ifndef TDSL_RUNTIME_FORMS_H
#define TDSL_RUNTIME_FORMS_H

#include "internal.h"

void tdsl_forms_free(tdsl_kernel *kernel);

#endif
