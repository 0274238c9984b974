/* SPDX-License-Identifier: Apache-2.0 */
/* See sarif.h. */
#include "driver/sarif.h"

#include <jansson.h>
#include <stdlib.h>

#include "driver/uri.h"

static json_t *message(const char *text)
{
    return json_pack("{s:o}", "text", uri_string(text));
}

static json_t *artifact(Diags *d, Span span)
{
    const char *name = source_get(d->sources, span.source)->name;
    return json_pack("{s:o}", "uri", uri_string(uri_relative(d->arena, name)));
}

/* Columns count Unicode scalar values, and say so in `columnKind`. */
static json_t *region(Diags *d, Span span)
{
    uint32_t line = 0, column = 0;
    source_position(d->sources, span, &line, &column);
    json_t *made = json_pack("{s:i, s:i}", "startLine", (int)line, "startColumn", (int)column);
    if (!source_get(d->sources, span.source)->places_only) {
        Span end = {span.source, span.hi, span.hi};
        source_position(d->sources, end, &line, &column);
        json_object_set_new(made, "endLine", json_integer((json_int_t)line));
        json_object_set_new(made, "endColumn", json_integer((json_int_t)column));
    }
    return made;
}

static json_t *location(Diags *d, Span span, const char *text)
{
    json_t *made = json_pack("{s:{s:o, s:o}}", "physicalLocation", "artifactLocation",
                             artifact(d, span), "region", region(d, span));
    if (text != NULL && text[0] != '\0') {
        json_object_set_new(made, "message", message(text));
    }
    return made;
}

static json_t *fixes(Diags *d, const Diagnostic *r)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < r->fixes.n; k++) {
        const DiagFix *fix = &r->fixes.at[k];
        json_t *change = json_pack("{s:o, s:[{s:o, s:o}]}", "artifactLocation",
                                   artifact(d, fix->span), "replacements", "deletedRegion",
                                   region(d, fix->span), "insertedContent", message(fix->text));
        json_array_append_new(list, json_pack("{s:[o]}", "artifactChanges", change));
    }
    return list;
}

static json_t *result(Diags *d, const Diagnostic *r)
{
    bool warning = r->severity == SEVERITY_WARNING && !d->warnings_are_errors;
    json_t *related = json_array(), *cures = fixes(d, r);
    for (uint32_t k = 0; k < r->marks.n; k++) {
        const DiagMark *mark = &r->marks.at[k];
        if (mark->span.source != 0) {
            json_array_append_new(related, location(d, mark->span, mark->text));
        }
    }
    json_t *made = json_pack("{s:s, s:s, s:o, s:o}", "ruleId", diag_code_text(r->code), "level",
                             warning ? "warning" : "error", "message",
                             message(diag_text(d->arena, r)), "relatedLocations", related);
    if (r->span.source != 0) {
        json_object_set_new(made, "locations", json_pack("[o]", location(d, r->span, NULL)));
    }
    if (json_array_size(cures) > 0) {
        json_object_set(made, "fixes", cures);
    }
    json_decref(cures);
    return made;
}

/* What each code that was met means. */
static json_t *rules(const Diags *d)
{
    bool met[DIAG_COUNT] = {false};
    json_t *list = json_array();
    for (uint32_t k = 0; k < d->list.n; k++) {
        DiagCode code = d->list.at[k]->code;
        if (!met[code]) {
            json_array_append_new(list, json_pack("{s:s, s:o}", "id", diag_code_text(code),
                                                  "shortDescription",
                                                  message(diag_code_about(code))));
        }
        met[code] = true;
    }
    return list;
}

static json_t *invocation(const Diags *d, const Usage *usage, int status)
{
    json_t *told = json_array(), *wrong = json_array();
    for (uint32_t k = 0; k < d->told.n; k++) {
        json_array_append_new(
            told, json_pack("{s:s, s:o}", "level", "note", "message", message(d->told.at[k])));
    }
    if (usage_is_wrong(usage)) {
        const char *help = usage->help.n > 0 ? usage->help.at : NULL;
        const char *text = help == NULL
                               ? usage->message.at
                               : str_format(d->arena, "%s\nhelp: %s", usage->message.at, help);
        json_array_append_new(
            wrong, json_pack("{s:s, s:o}", "level", "error", "message", message(text)));
    }
    return json_pack("{s:b, s:i, s:o, s:o}", "executionSuccessful", status == 0, "exitCode",
                     status, "toolExecutionNotifications", told,
                     "toolConfigurationNotifications", wrong);
}

void sarif_render(Diags *d, const Usage *usage, const char *version, int status, Text *out)
{
    json_t *results = json_array();
    for (uint32_t k = 0; k < d->list.n; k++) {
        json_array_append_new(results, result(d, d->list.at[k]));
    }
    json_t *run = json_pack("{s:{s:{s:s, s:s, s:o}}, s:s, s:[o], s:o}", "tool", "driver",
                            "name", usage->tool, "version", version, "rules", rules(d),
                            "columnKind", "unicodeCodePoints", "invocations",
                            invocation(d, usage, status), "results", results);
    json_t *all = json_pack("{s:s, s:s, s:[o]}", "$schema",
                            "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0",
                            "runs", run);
    char *text = json_dumps(all, JSON_INDENT(1));
    text_printf(out, "%s\n", text == NULL ? "" : text);
    free(text);
    json_decref(all);
}
