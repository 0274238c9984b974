/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the user in HTML: names and sources may hold any bytes. */
#include "driver/report/report.h"

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
