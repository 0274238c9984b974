/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of positions, and elements copied between arrays that hold them. */
#include "walk.h"

#include <string.h>

int64_t tdsl_box_count(const Box *b)
{
    int64_t count = b->none ? 0 : 1;
    for (int32_t d = 0; d < b->rank; d++) {
        count *= b->hi[d] - b->lo[d];
    }
    return count;
}

bool tdsl_box_meet(const Box *a, const Box *b, Box *out)
{
    bool any = !a->none && !b->none;
    out->rank = a->rank;
    out->none = !any;
    for (int32_t d = 0; d < a->rank; d++) {
        out->lo[d] = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        out->hi[d] = a->hi[d] < b->hi[d] ? a->hi[d] : b->hi[d];
        any = any && out->lo[d] < out->hi[d];
    }
    return any;
}

/* Elements from the box's first to one at `at`. */
static int64_t offset(const Box *box, const int64_t *at)
{
    int64_t k = 0;
    for (int32_t d = 0; d < box->rank; d++) {
        k = k * (box->hi[d] - box->lo[d]) + at[d] - box->lo[d];
    }
    return k;
}

/* From which dimension on a region is all of the box. */
static int32_t whole_from(const Box *box, const Box *region)
{
    int32_t d = box->rank;
    while (d > 0 && region->lo[d - 1] == box->lo[d - 1] &&
           region->hi[d - 1] == box->hi[d - 1]) {
        d--;
    }
    return d;
}

bool tdsl_box_is_run(const Box *box, const Box *region, int64_t *first)
{
    int32_t whole = whole_from(box, region);
    *first = tdsl_box_count(region) == 0 ? 0 : offset(box, region->lo);
    for (int32_t d = 0; d + 1 < whole; d++) {
        if (region->hi[d] - region->lo[d] != 1) {
            return tdsl_box_count(region) == 0;
        }
    }
    return true;
}

/* The next row of the region, whose rows run along dimensions from `inner` on; false: there is none. */
static bool next_row(const Box *region, int32_t inner, int64_t *at)
{
    for (int32_t d = inner; d-- > 0;) {
        if (++at[d] < region->hi[d]) {
            return true;
        }
        at[d] = region->lo[d];
    }
    return false;
}

void tdsl_box_copy(char *to, const Box *to_box, const char *from, const Box *from_box,
                   const Box *region, int64_t size)
{
    int32_t a = whole_from(to_box, region), b = whole_from(from_box, region);
    int32_t inner = a > b ? a : b; /* all of both behind it; and one dimension before in runs */
    inner = inner > 0 ? inner - 1 : 0;
    int64_t at[TDSL_MAX_RANK], row = size;
    if (tdsl_box_count(region) == 0) {
        return;
    }
    for (int32_t d = 0; d < region->rank; d++) {
        at[d] = region->lo[d];
        row *= d >= inner ? region->hi[d] - region->lo[d] : 1;
    }
    do {
        memcpy(to + offset(to_box, at) * size, from + offset(from_box, at) * size, (size_t)row);
    } while (next_row(region, inner, at));
}
