/* SPDX-License-Identifier: Apache-2.0 */
/* See uri.h. */
#include "driver/uri.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEME "file://"

json_t *uri_string(const char *text)
{
    json_t *made = text == NULL ? json_null() : json_string(text);
    if (made != NULL) {
        return made;
    }
    size_t n = strlen(text);
    char *plain = malloc(n + 1);
    CHECK(plain != NULL);
    for (size_t k = 0; k <= n; k++) {
        plain[k] = (char)((unsigned char)text[k] < 0x80 ? text[k] : '?');
    }
    made = json_string(plain);
    free(plain);
    return made;
}

static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("/-._~", c) != NULL;
}

static void put_path(Text *out, const char *path)
{
    for (const char *c = path; *c != '\0'; c++) {
        if (is_plain((unsigned char)*c)) {
            text_char(out, *c);
        } else {
            text_printf(out, "%%%02X", (unsigned)(unsigned char)*c);
        }
    }
}

char *uri_absolute(Arena *arena, const char *path)
{
    char folder[4096] = "";
    Text out = text_new(arena);
    text_put(&out, SCHEME);
    if (path[0] != '/' && getcwd(folder, sizeof folder) != NULL) {
        put_path(&out, folder);
        text_char(&out, '/');
    }
    put_path(&out, path);
    return out.at;
}

char *uri_relative(Arena *arena, const char *path)
{
    Text out;
    if (path[0] == '/') {
        return uri_absolute(arena, path);
    }
    text_init(&out, arena);
    put_path(&out, path);
    return out.at;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

char *uri_path(Arena *arena, const char *uri)
{
    if (strncmp(uri, SCHEME, sizeof SCHEME - 1) != 0) {
        return str_format(arena, "%s", uri);
    }
    const char *at = strchr(uri + sizeof SCHEME - 1, '/'); /* behind the host */
    Text out = text_new(arena);
    for (at = at == NULL ? "" : at; *at != '\0'; at++) {
        int high = at[0] == '%' ? digit(at[1]) : -1, low = high >= 0 ? digit(at[2]) : -1;
        if (low >= 0 && high * 16 + low > 0) {
            text_char(&out, (char)(high * 16 + low));
            at += 2;
        } else {
            text_char(&out, *at);
        }
    }
    return out.at;
}
