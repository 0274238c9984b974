/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: a record is created first and rendered later; only the renderer knows lines,
 * columns, tabs and width. User error, unsupported and limit are kinds of record; an internal
 * error is CHECK's business. Text: lower case, no full stop, values in '...', both numbers of a
 * mismatch, facts before advice.
 *
 *     d = diag_error(diags, E_EXTENT_MISMATCH, span, "index '%s' is %d here", name, n);
 *     diag_mark(d, other, "but %d here", m);    underlined with '~', on its own line if need be
 *     diag_note(d, decl, "'A' is declared here with shape [3, 4]");
 *     diag_help(d, "did you mean '%s'?", near);
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/check.h"
#include "base/source.h"
#include "base/text.h"

typedef enum Severity {
    SEVERITY_ERROR,
    SEVERITY_WARNING,
    SEVERITY_UNSUPPORTED,
    SEVERITY_LIMIT
} Severity;

/* One row per code: enumerator, printed code or warning name, one line for `--explain` and docs. */
typedef enum DiagCode {
#define DIAG(id, code, about) id,
#include "base/diag.def"
    DIAG_COUNT
} DiagCode;

typedef struct DiagMark {
    Span span;
    const char *text; /* may be empty */
    bool is_note;     /* gets a line of its own even where the culprit's line is the same */
} DiagMark;

/* A change that would cure it: this text in the place of the span. */
typedef struct DiagFix {
    Span span;
    const char *text;
} DiagFix;

typedef struct Diagnostic {
    struct Diags *owner;
    Severity severity;
    DiagCode code;
    Span span; /* source 0: no place, only a message */
    const char *message;
    VEC(DiagMark) marks;
    const char *because, *help; /* null: none */
    VEC(const char *) rows;     /* of a table, before them */
    VEC(DiagFix) fixes;         /* each one by itself */
} Diagnostic;

typedef struct Diags {
    Arena *arena;
    Sources *sources;
    const char *tool;       /* before messages without a place */
    VEC(Diagnostic *) list; /* in order of creation */
    VEC(const char *) told; /* of diags_tell */
    uint32_t n_errors;      /* all severities but warning, recorded or not */
    uint32_t n_warnings;
    uint32_t limit; /* errors recorded, and warnings; more are only counted (20 by default) */
    uint32_t more_errors; /* counted only */
    uint32_t more_warnings;
    bool input_is_wrong; /* an error or unsupported: exit 1 rather than 4 */
    Diagnostic *dropped; /* what the calls return for records that are not kept */
    bool warnings_are_errors;
    bool no_warnings;
    bool disabled[DIAG_COUNT]; /* -Wno-x */
} Diags;

void diags_init(Diags *d, Arena *arena, Sources *sources);
Diagnostic *diag_error(Diags *d, DiagCode code, Span span, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* The same, and false. */
bool diag_refuse(Diags *d, DiagCode code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
Diagnostic *diag_warning(Diags *d, DiagCode code, Span span, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* A correct program that a target or this version cannot do; names which. */
Diagnostic *diag_unsupported(Diags *d, DiagCode code, Span span, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* A stated limit was reached (exit 4). */
Diagnostic *diag_limit(Diags *d, DiagCode code, Span span, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* The same, and false. */
bool diag_refuse_limit(Diags *d, DiagCode code, Span span, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* A note of no place that is neither an error nor a warning: how something was understood. */
void diags_tell(Diags *d, const char *format, ...) PRINTF_LIKE(2, 3);
void diag_mark(Diagnostic *d, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
void diag_note(Diagnostic *d, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
/* A row of a table. */
void diag_row(Diagnostic *d, const char *format, ...) PRINTF_LIKE(2, 3);
/* Of the facts, what no place shows. */
void diag_because(Diagnostic *d, const char *format, ...) PRINTF_LIKE(2, 3);
void diag_help(Diagnostic *d, const char *format, ...) PRINTF_LIKE(2, 3);
void diag_fix(Diagnostic *d, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
/* Asks in the help if `near` was meant, and offers it in the place of the span. */
void diag_meant(Diagnostic *d, Span span, const char *near);

/* All records, ordered by source place, then by creation; one after the other, control characters escaped.
 *
 *     in file included from main.tdsl:1:9:
 *     mlp.tdsl:4:26: error[E0203]: index 'k' is 256 here
 *        4 | Y = einsum("ik,kj->ij", X, W)
 *          |              ^ ~ but 128 here
 *     mlp.tdsl:2:1: note: 'W' is declared here with shape [128, 512]
 *        2 | ...
 *      = note: ...
 *      = help: ...
 *
 * A record equal to an earlier one is kept once. `unsupported:` and `limit:` begin the messages of those kinds. */
void diags_render(Diags *d, Text *out, bool color);
/* Of one record what is said of its place, without those of others: message, rows, note and help, a line each. */
const char *diag_text(Arena *arena, const Diagnostic *d);
/* For programs: one JSON object a line, in order of creation (docs/tools.md). */
void diags_render_json(Diags *d, Text *out);
/* 0, 1 (input) or 4 (only limits were hit). */
int diags_exit_code(const Diags *d);
const char *diag_code_text(DiagCode code); /* "E0203", "-Wspill" */
const char *diag_code_about(DiagCode code);

#endif
