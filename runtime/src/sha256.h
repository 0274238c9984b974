/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of bytes in memory. Our own, because it is a page of code and the runtime links
 * nothing but libc: a NEFF is code for the device, and is loaded only if it is the one that was meant. */
#ifndef TDSL_RUNTIME_SHA256_H
#define TDSL_RUNTIME_SHA256_H

#include <stddef.h>

#define SHA256_HEX_BYTES 65

/* Lower-case hexadecimal digits and a zero. */
void tdsl_sha256_hex(const void *data, size_t bytes, char hex[SHA256_HEX_BYTES]);

#endif
