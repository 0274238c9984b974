/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of a text, by the file that the runtime has for it: neither links the other, both compile it. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "../../runtime/src/sha256.h"

#include "base/str.h"

/* Lower-case hexadecimal digits and a zero. */
static inline void sha256_hex(Str text, char hex[SHA256_HEX_BYTES])
{
    tdsl_sha256_hex(text.at, text.n, hex);
}

#endif
