/* SPDX-License-Identifier: Apache-2.0 */
/* Where the emulator is when nobody says so: beside the file that this code was loaded from, as
 * the installed tree has it (lib/libtdsl.so and share/tdsl/nki_emulator/run.py). So an installed
 * tree can be moved. A program that links libtdsl.a is such a file itself. */
#define _GNU_SOURCE /* dladdr, realpath */
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the folder of the library to the emulator; the build knows both. */
#ifndef TDSL_EMULATOR_FROM_LIBRARY
#define TDSL_EMULATOR_FROM_LIBRARY "../share/tdsl/nki_emulator/run.py"
#endif

static const char anchor = 0;

bool tdsl_emulator_locate(tdsl_context *context, char **found)
{
    Dl_info here;
    bool good = true;
    *found = NULL;
    char *file = dladdr(&anchor, &here) != 0 && here.dli_fname != NULL
                     ? realpath(here.dli_fname, NULL)
                     : NULL;
    char *slash = file != NULL ? strrchr(file, '/') : NULL;
    if (slash != NULL) {
        *slash = '\0';
        size_t bytes = strlen(file) + sizeof "/" TDSL_EMULATOR_FROM_LIBRARY;
        char *path = malloc(bytes);
        if (path != NULL) {
            (void)snprintf(path, bytes, "%s/" TDSL_EMULATOR_FROM_LIBRARY, file);
            char *real = access(path, R_OK) == 0 ? realpath(path, NULL) : NULL;
            *found = real != NULL ? tdsl_context_copy_text(context, real) : NULL;
            good = real == NULL || *found != NULL;
            free(real);
        }
        free(path);
    }
    free(file);
    return good;
}
