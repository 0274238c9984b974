/* SPDX-License-Identifier: Apache-2.0 */
/* --explain: what a code means, and of some an example. */
#ifndef DRIVER_EXPLAIN_H
#define DRIVER_EXPLAIN_H

#include "base/diag.h"

/* E0203, -Wspill, or Wspill or spill for it; "list": all codes, "all": docs/messages.md. False when there is no such code. */
bool explain_code(const char *code, Text *out);

#endif
