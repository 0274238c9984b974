/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of a text. The runtime has the same for itself: neither links the other. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/str.h"

#define SHA256_HEX_BYTES 65

/* Lower-case hexadecimal digits and a zero. */
void sha256_hex(Str text, char hex[SHA256_HEX_BYTES]);

#endif
