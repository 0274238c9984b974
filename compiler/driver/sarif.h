/* SPDX-License-Identifier: Apache-2.0 */
/* --diagnostics=sarif: all messages of a run as one object of SARIF 2.1.0, which code hosts and editors read. */
#ifndef DRIVER_SARIF_H
#define DRIVER_SARIF_H

#include "base/diag.h"
#include "driver/usage.h"

/* `status` is that with which the tool ends. */
void sarif_render(Diags *d, const Usage *usage, const char *version, int status, Text *out);

#endif
