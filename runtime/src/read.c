/* SPDX-License-Identifier: Apache-2.0 */
/* Files, whatever interrupts them. */
#include <errno.h>
#include <unistd.h>

#include "internal.h"

bool tdsl_read_fully(int file, void *to, size_t bytes)
{
    for (char *at = to; bytes > 0;) {
        ssize_t got = read(file, at, bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}
