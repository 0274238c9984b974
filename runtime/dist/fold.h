/* SPDX-License-Identifier: Apache-2.0 */
/* Combines elements, as generated code does. */
#ifndef TDSL_DIST_FOLD_H
#define TDSL_DIST_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tdsl/abi.h"

/* to[k] = to[k] with from[k], for `count` elements. */
void tdsl_fold(int32_t dtype, int32_t fold, char *to, const char *from, int64_t count);
/* The same by as many threads as there may be (null: the caller's alone), where there is much to do. */
void tdsl_fold_shared(const tdsl_threads *threads, int32_t dtype, int32_t fold, char *to,
                      const char *from, int64_t count);

#endif
