/* SPDX-License-Identifier: Apache-2.0 */
/* The words for spaces, and the lengths of what is printed. Which targets exist is the driver's table (driver/targets.c): this
 * folder knows none of them. */
#include "target/target.h"

#include <string.h>

const char *space_name(Space s)
{
    static const char *const names[] = {[SPACE_ARGUMENT] = "arg",
                                        [SPACE_WORKSPACE] = "workspace",
                                        [SPACE_TILE] = "tile",
                                        [SPACE_ACC] = "acc"};
    return names[s];
}

bool space_from_name(Str name, Space *out)
{
    for (Space s = SPACE_ARGUMENT; s < SPACE_COUNT; s++) {
        if (str_eq_cstr(name, space_name(s))) {
            *out = s;
            return true;
        }
    }
    return false;
}

static TextLength *length_of(OutputSet *set, const char *kernel)
{
    TextLength *length = set->lengths.n == 0 ? NULL : &set->lengths.at[set->lengths.n - 1];
    if (length == NULL || strcmp(length->kernel, kernel) != 0) { /* kernels come one by one */
        vec_push(
            set->arena, &set->lengths,
            ((TextLength){.kernel = str_dup(set->arena, str_from(kernel)), .workspace = -1}));
        length = &set->lengths.at[set->lengths.n - 1];
    }
    return length;
}

void output_workspace(OutputSet *set, const char *kernel, int64_t bytes)
{
    length_of(set, kernel)->workspace = bytes;
}

void output_predict(OutputSet *set, const char *kernel, double seconds, double arithmetic,
                    double moved, const char *binds)
{
    TextLength *length = length_of(set, kernel);
    length->binds = length->seconds > seconds ? length->binds : binds;
    length->seconds += seconds;
    length->arithmetic += arithmetic;
    length->moved += moved;
}

void output_count(OutputSet *set, const char *kernel, Str text)
{
    TextLength *length = length_of(set, kernel);
    length->bytes += (int64_t)text.n;
    for (size_t i = 0; i < text.n; i++) {
        length->lines += text.at[i] == '\n' ? 1 : 0;
    }
}

const TextLength *output_length(const OutputSet *set, const char *kernel)
{
    for (uint32_t k = 0; k < set->lengths.n; k++) {
        if (strcmp(set->lengths.at[k].kernel, kernel) == 0) {
            return &set->lengths.at[k];
        }
    }
    return NULL;
}
