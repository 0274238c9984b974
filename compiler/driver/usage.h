/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong use of the command line: one message and a line of help, printed as text or as a JSON object; exit status 2. */
#ifndef DRIVER_USAGE_H
#define DRIVER_USAGE_H

#include "base/text.h"

/* The message has neither the tool's name nor a line end. Empty: the command line is right so far. */
typedef struct Usage {
    const char *tool; /* name of the program */
    Text message, help;
} Usage;

void usage_init(Usage *u, Arena *arena, const char *tool);
bool usage_is_wrong(const Usage *u);
/* Says what is wrong; always false. The first message stays where there are several. */
bool usage_error(Usage *u, const char *format, ...) PRINTF_LIKE(2, 3);
/* Says what helps. */
void usage_help(Usage *u, const char *format, ...) PRINTF_LIKE(2, 3);
/* Nothing where the command line is right. The JSON object has the fields of a diagnostic, its kind is "usage". */
void usage_render(const Usage *u, Text *out);
void usage_render_json(const Usage *u, Text *out);

#endif
