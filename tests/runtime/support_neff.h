/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the NEFF-shaped files that the stub libnrt runs (see stub_nrt/stub_file.c). */
#ifndef SUPPORT_NEFF_H
#define SUPPORT_NEFF_H

#include <stddef.h>

/* `text` are the lines of stub.txt. Null without memory; free with free. */
unsigned char *neff_make(const char *text, size_t *bytes);

#endif
