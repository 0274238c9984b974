/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run --profile: where the time of a kernel goes. Of C by its counters (backend/c/emit_profile.c), of a device's programs by the emulator. */
#ifndef DRIVER_RUN_PROFILE_H
#define DRIVER_RUN_PROFILE_H

#include "base/text.h"

typedef struct RunProfile {
    bool asked, to_file; /* for a program, not for people */
    Str text;
} RunProfile;

struct CLibrary;
struct CTiming;

/* Before and after the calls that count; nothing where the library has no counters. */
void profile_begin(struct CLibrary *library);
void profile_end(struct CLibrary *library);
/* A bar for each statement, or JSON. */
void profile_show(const struct CLibrary *library, const char *kernel,
                  const struct CTiming *timing, RunProfile *profile);

#endif
