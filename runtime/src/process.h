/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program and waits for it, no longer than it is told. */
#ifndef TDSL_RUNTIME_PROCESS_H
#define TDSL_RUNTIME_PROCESS_H

#include "fault.h"

/* An argument vector, never a shell. Input is empty, output dropped, errors go to the file `errors`.
 * False when it cannot be started, is late (it is then ended), or ends by a signal; else *code. */
bool tdsl_process_run(char *const argv[], const char *errors, int64_t timeout_ms, int *code,
                      Fault *fault);

#endif
