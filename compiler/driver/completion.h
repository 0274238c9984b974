/* SPDX-License-Identifier: Apache-2.0 */
/* Completions of command lines for bash, zsh and fish. */
#ifndef DRIVER_COMPLETION_H
#define DRIVER_COMPLETION_H

#include "driver/options.h"

/* `form` is bash, zsh or fish; else false. */
bool completion_print(Tool tool, const char *form, Text *out);

#endif
