/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tests/data/multi.json: sets of sums of contractions, for the tests and the benchmark.
 */
#ifndef TESTS_PATH_SUPPORT_MULTI_H
#define TESTS_PATH_SUPPORT_MULTI_H

#include <jansson.h>

#include "path/terms/multi.h"

typedef struct MultiSet {
    const char *name;
    const json_t *reference; /* by sizes, "o=30,v=150": counts */
    uint32_t n;
    PathSummand *summands;
} MultiSet;

json_t *multi_file_load(void);
/* The set number `index`; labels are letters, 26 of them. */
MultiSet multi_set_read(const json_t *file, size_t index, Ctx *ctx);
/* By letter: a..h have extent v, the others o. */
int64_t *multi_sizes(Ctx *ctx, int64_t o, int64_t v);
/* The set's terms, each added in its orders to a sum of its own with all others of those
 * orders: as they stand. */
PathMulti multi_plain(const MultiSet *set, const int64_t *sizes, Ctx *ctx);
/* The same merged. */
PathMulti multi_of_merged(const PathMerged *merged, const int64_t *sizes);

#endif
