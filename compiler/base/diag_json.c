/* SPDX-License-Identifier: Apache-2.0 */
/* Records for programs: one JSON object a line. Columns count Unicode scalar values, bytes are offsets in the file. */
#include "base/diag.h"

static void put_span(Diags *d, Text *out, Span span)
{
    if (span.source == 0) {
        text_put(out, "null");
        return;
    }
    uint32_t line = 0, column = 0;
    const Source *source = source_get(d->sources, span.source);
    source_position(d->sources, span, &line, &column);
    text_member(out, "{\"file\": ", source->name);
    text_printf(out, ", \"line\": %u, \"column\": %u", line, column);
    if (!source->places_only) {
        uint32_t end_line = 0, end_column = 0;
        Span end = {span.source, span.hi, span.hi};
        source_position(d->sources, end, &end_line, &end_column);
        text_printf(out, ", \"end_line\": %u, \"end_column\": %u, \"bytes\": [%u, %u]",
                    end_line, end_column, span.lo, span.hi);
    }
    text_char(out, '}');
}

static void put_record(Diags *d, Text *out, const Diagnostic *r)
{
    static const char *const kinds[] = {[SEVERITY_ERROR] = "error",
                                        [SEVERITY_WARNING] = "warning",
                                        [SEVERITY_UNSUPPORTED] = "unsupported",
                                        [SEVERITY_LIMIT] = "limit"};
    bool promoted = r->severity == SEVERITY_WARNING && d->warnings_are_errors;
    text_printf(out, "{\"level\": \"%s\", \"kind\": \"%s\", \"code\": \"%s\"",
                r->severity == SEVERITY_WARNING && !promoted ? "warning" : "error",
                kinds[r->severity], diag_code_text(r->code));
    text_member(out, ", \"message\": ", r->message);
    text_put(out, ", \"place\": ");
    put_span(d, out, r->span);
    text_put(out, ", \"marks\": [");
    for (uint32_t k = 0; k < r->marks.n; k++) {
        text_put(out, k == 0 ? "{\"place\": " : ", {\"place\": ");
        put_span(d, out, r->marks.at[k].span);
        text_member(out, ", \"message\": ", r->marks.at[k].text);
        text_char(out, '}');
    }
    text_put(out, "], \"rows\": [");
    for (uint32_t k = 0; k < r->rows.n; k++) {
        text_member(out, k == 0 ? "" : ", ", r->rows.at[k]);
    }
    text_char(out, ']');
    text_member(out, ", \"note\": ", r->because);
    text_member(out, ", \"help\": ", r->help);
    text_put(out, ", \"fixes\": [");
    for (uint32_t k = 0; k < r->fixes.n; k++) {
        text_put(out, k == 0 ? "{\"place\": " : ", {\"place\": ");
        put_span(d, out, r->fixes.at[k].span);
        text_member(out, ", \"text\": ", r->fixes.at[k].text);
        text_char(out, '}');
    }
    text_put(out, "]}\n");
}

void diags_render_json(Diags *d, Text *out)
{
    for (uint32_t k = 0; k < d->list.n; k++) {
        put_record(d, out, d->list.at[k]);
    }
    for (uint32_t k = 0; k < d->told.n; k++) {
        text_put(out, "{\"level\": \"note\"");
        text_member(out, ", \"message\": ", d->told.at[k]);
        text_put(out, "}\n");
    }
    if (d->more_errors + d->more_warnings > 0) {
        text_printf(out, "{\"level\": \"note\", \"more_errors\": %u, \"more_warnings\": %u}\n",
                    d->more_errors, d->more_warnings);
    }
}
