/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as addresses, and texts as strings of JSON. */
#ifndef DRIVER_URI_H
#define DRIVER_URI_H

#include <jansson.h>

#include "base/text.h"

/* "file:///a%20b.tdsl"; of a path from here, with the folder; */
char *uri_absolute(Arena *arena, const char *path);
/* ... or "b/k.tdsl", as it is. */
char *uri_relative(Arena *arena, const char *path);
/* The path of an address; of another scheme, the address itself. */
char *uri_path(Arena *arena, const char *uri);

/* The text as a string; where it is no UTF-8, other characters than those of ASCII are '?'. Null becomes null. */
json_t *uri_string(const char *text);

#endif
