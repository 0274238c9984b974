/* SPDX-License-Identifier: Apache-2.0 */
/* See usage.h. */
#include "driver/usage.h"

#include <stdarg.h>

void usage_init(Usage *u, Arena *arena, const char *tool)
{
    u->tool = tool;
    text_init(&u->message, arena);
    text_init(&u->help, arena);
}

bool usage_is_wrong(const Usage *u)
{
    return u->message.n > 0;
}

bool usage_error(Usage *u, const char *format, ...)
{
    if (!usage_is_wrong(u)) {
        va_list arguments;
        va_start(arguments, format);
        text_put(&u->message, str_vformat(u->message.arena, format, arguments));
        va_end(arguments);
    }
    return false;
}

void usage_help(Usage *u, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_clear(&u->help);
    text_put(&u->help, str_vformat(u->help.arena, format, arguments));
    va_end(arguments);
}

void usage_render(const Usage *u, Text *out)
{
    if (usage_is_wrong(u)) {
        text_printf(out, "%s: error: %s\n", u->tool, u->message.at);
        if (u->help.n > 0) {
            text_printf(out, "  = help: %s\n", u->help.at);
        }
    }
}

void usage_render_json(const Usage *u, Text *out)
{
    if (usage_is_wrong(u)) {
        text_member(out,
                    "{\"level\": \"error\", \"kind\": \"usage\", \"code\": null, \"message\": ",
                    u->message.at);
        text_member(
            out, ", \"place\": null, \"marks\": [], \"rows\": [], \"note\": null, \"help\": ",
            u->help.n > 0 ? u->help.at : NULL);
        text_put(out, ", \"fixes\": []}\n");
    }
}
