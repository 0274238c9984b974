/* SPDX-License-Identifier: Apache-2.0 */
/* The words for spaces. Which targets exist is the driver's table (driver/targets.c): this
 * folder knows none of them. */
#include "target/target.h"

const char *space_name(Space s)
{
    switch (s) {
    case SPACE_ARGUMENT:
        return "arg";
    case SPACE_WORKSPACE:
        return "workspace";
    case SPACE_TILE:
        return "tile";
    case SPACE_ACC:
        return "acc";
    case SPACE_COUNT:
        break;
    }
    UNREACHABLE();
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
