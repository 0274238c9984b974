/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics about any bytes at any places: the printer must survive its worst case, keep to
 * the page, and print nothing that a terminal could obey. The first bytes choose the spans, the
 * rest is the source. */
#include <string.h>

#include "base/ctx.h"
#include "fuzz/fuzz.h"

#define SPANS 6

static Span span_from(const uint8_t *data, uint32_t source)
{
    uint32_t lo = (uint32_t)data[0] | (uint32_t)data[1] << 8;
    return (Span){data[2] % 8 == 0 ? 0 : source, lo, lo + data[2] / 4};
}

static void check_printable(Str text)
{
    size_t bad;
    CHECK(utf8_valid(text, &bad));
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.at[i];
        CHECK((c >= 0x20 && c != 0x7f) || c == '\n');
        CHECK(c != '\n' || i == 0 || text.at[i - 1] != ' ');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 * SPANS) {
        return 0;
    }
    Ctx c;
    ctx_init(&c);
    const uint8_t *rest = data + 3 * SPANS;
    Str text = {str_dup(&c.arena, (Str){(const char *)rest, size - 3 * SPANS}),
                size - 3 * SPANS};
    Span outer = {source_add(&c.sources, "outer", str_from("include x\n"), (Span){0, 0, 0}), 0,
                  7};
    uint32_t source = source_add(&c.sources, text.at, text, outer);
    Diagnostic *d =
        diag_error(&c.diags, E_SYNTAX, span_from(data, source), "unexpected '%s'", text.at);
    for (int i = 1; i < SPANS - 1; i++) {
        Span span = span_from(data + 3 * i, source);
        if (data[3 * i] % 2 == 0) {
            diag_mark(d, span, "%s", data[3 * i] % 4 == 0 ? "" : text.at);
        } else {
            diag_note(d, span, "%.20s", text.at);
        }
    }
    diag_help(d, "did you mean '%s'?", text.at);
    diag_warning(&c.diags, W_SPILL, span_from(data + 3 * (SPANS - 1), source), "spilled");
    Text out;
    text_init(&out, &c.arena);
    diags_render(&c.diags, &out, false);
    check_printable(text_str(&out));
    diags_render(&c.diags, &out, true);
    ctx_release(&c);
    return 0;
}
