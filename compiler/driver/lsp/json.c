/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. */
#include "driver/lsp/json.h"

const char *lsp_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

bool lsp_number(const json_t *value, uint32_t *out)
{
    json_int_t n = json_integer_value(value);
    *out = (uint32_t)n;
    return json_is_integer(value) && n >= 0 && n <= INT32_MAX;
}
