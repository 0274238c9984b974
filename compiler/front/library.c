/* SPDX-License-Identifier: Apache-2.0 */
/* The texts in compiler/library, as bytes. */
#include "front/library.h"

#include <stddef.h>
#include <string.h>

extern const char library_nn[], library_chem[], library_linalg[];

const char *library_text(const char *name)
{
    return strcmp(name, "nn.tdsl") == 0       ? library_nn
           : strcmp(name, "chem.tdsl") == 0   ? library_chem
           : strcmp(name, "linalg.tdsl") == 0 ? library_linalg
                                              : NULL;
}
