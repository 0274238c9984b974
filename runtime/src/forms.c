/* SPDX-License-Identifier: Apache-2.0 */
#include "forms.h"
void tdsl_forms_free(tdsl_kernel *kernel)
{
    (void)kernel;
}
