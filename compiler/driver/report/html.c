/* SPDX-License-Identifier: Apache-2.0 */
/* What all pages of HTML have: a head, and text of the user, whose names and sources may hold any bytes. */
#include <string.h>

#include "driver/report/report.h"

extern const char report_css[]; /* report.css, embedded by the build */

void html_text_n(Text *out, Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.at[i];
        switch (c) {
        case '<':
            text_put(out, "&lt;");
            break;
        case '>':
            text_put(out, "&gt;");
            break;
        case '&':
            text_put(out, "&amp;");
            break;
        case '"':
            text_put(out, "&quot;");
            break;
        case '\'':
            text_put(out, "&#39;");
            break;
        case '\n':
        case '\t':
            text_char(out, (char)c);
            break;
        default:
            if (c < 0x20 || c == 0x7f) {
                text_put(out, "\xef\xbf\xbd"); /* HTML has no such characters */
            } else {
                text_char(out, (char)c);
            }
        }
    }
}

void html_text(Text *out, const char *s)
{
    html_text_n(out, str_from(s));
}

void html_in(Text *out, const char *before, const char *s, const char *after)
{
    text_put(out, before);
    html_text(out, s);
    text_put(out, after);
}

void report_page_begin(Text *out, const char *title)
{
    text_put(out,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width\"><title>TDSL report: ");
    html_text(out, title);
    text_put(out, "</title>\n<style>\n");
    text_put(out, strchr(report_css, '\n') + 1); /* after the licence of the original */
    text_put(out, "</style></head><body>\n");
}
