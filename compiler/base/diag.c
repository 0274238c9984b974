/* SPDX-License-Identifier: Apache-2.0 */
/* The records of diagnostics: made, counted, kept up to a limit. Nothing here looks at lines or columns. A
 * record beyond the limit, switched off, or equal to one already kept is given back as `dropped`, to which marks
 * and notes are added in vain, so that callers need no test. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void diags_init(Diags *d, Arena *arena, Sources *sources)
{
    memset(d, 0, sizeof *d);
    d->arena = arena;
    d->sources = sources;
    d->tool = "tdsl";
    d->limit = 20;
    d->dropped = ARENA_NEW(arena, Diagnostic);
}

PRINTF_LIKE(2, 0)
static const char *format_args(Arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    CHECK(n >= 0);
    char *to = arena_alloc(a, (size_t)n + 1);
    vsnprintf(to, (size_t)n + 1, format, again);
    va_end(again);
    return to;
}

/* A file that is read twice is one place. */
static bool same_place(const Diags *d, Span a, Span b)
{
    bool same = a.source == b.source || (a.source != 0 && b.source != 0 &&
                                         strcmp(source_get(d->sources, a.source)->name,
                                                source_get(d->sources, b.source)->name) == 0);
    return same && a.lo == b.lo && a.hi == b.hi;
}

static bool diag_repeats(const Diags *d, const Diagnostic *new)
{
    for (uint32_t i = 0; i < d->list.n; i++) {
        const Diagnostic *old = d->list.at[i];
        if (old->severity == new->severity &&
            old->code == new->code &&same_place(d, old->span, new->span) &&
            strcmp(old->message, new->message) == 0) {
            return true;
        }
    }
    return false;
}

PRINTF_LIKE(5, 0)
static Diagnostic *diag_new(Diags *d, Severity severity, DiagCode code, Span span,
                            const char *format, va_list args)
{
    bool warning = severity == SEVERITY_WARNING;
    if (warning && (d->no_warnings || d->disabled[code])) {
        return d->dropped;
    }
    uint32_t count = warning ? d->n_warnings : d->n_errors;
    Diagnostic new = {.owner = d, .severity = severity, .code = code, .span = span};
    if (count < d->limit) {
        new.message = format_args(d->arena, format, args);
        if (diag_repeats(d, &new)) {
            return d->dropped;
        }
    }
    if (warning) {
        d->n_warnings++;
    } else {
        d->n_errors++;
        d->input_is_wrong |= severity != SEVERITY_LIMIT;
    }
    if (count >= d->limit) {
        uint32_t *more = warning ? &d->more_warnings : &d->more_errors;
        ++*more;
        return d->dropped;
    }
    Diagnostic *kept = arena_copy(d->arena, &new, sizeof new);
    vec_push(d->arena, &d->list, kept);
    return kept;
}

#define DIAG_FUNCTION(type, name, severity, result)                                            \
    type name(Diags *d, DiagCode code, Span span, const char *format, ...)                     \
    {                                                                                          \
        va_list args;                                                                          \
        va_start(args, format);                                                                \
        Diagnostic *r = diag_new(d, severity, code, span, format, args);                       \
        va_end(args);                                                                          \
        (void)r;                                                                               \
        return result;                                                                         \
    }
DIAG_FUNCTION(Diagnostic *, diag_error, SEVERITY_ERROR, r)
DIAG_FUNCTION(bool, diag_refuse, SEVERITY_ERROR, false)
DIAG_FUNCTION(Diagnostic *, diag_warning, SEVERITY_WARNING, r)
DIAG_FUNCTION(Diagnostic *, diag_unsupported, SEVERITY_UNSUPPORTED, r)
DIAG_FUNCTION(Diagnostic *, diag_limit, SEVERITY_LIMIT, r)
DIAG_FUNCTION(bool, diag_refuse_limit, SEVERITY_LIMIT, false)
#undef DIAG_FUNCTION

void diags_tell(Diags *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vec_push(d->arena, &d->told, format_args(d->arena, format, args));
    va_end(args);
}

/* More marks than this on one record help nobody. */
#define MARK_LIMIT 16

PRINTF_LIKE(4, 0)
static void diag_add_mark(Diagnostic *d, Span span, bool is_note, const char *format,
                          va_list args)
{
    if (d->owner == NULL || d->marks.n >= MARK_LIMIT) {
        return;
    }
    DiagMark mark = {span, format_args(d->owner->arena, format, args), is_note};
    vec_push(d->owner->arena, &d->marks, mark);
}

void diag_mark(Diagnostic *d, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add_mark(d, span, false, format, args);
    va_end(args);
}

void diag_note(Diagnostic *d, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add_mark(d, span, true, format, args);
    va_end(args);
}

void diag_row(Diagnostic *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (d->owner != NULL) {
        vec_push(d->owner->arena, &d->rows, format_args(d->owner->arena, format, args));
    }
    va_end(args);
}

void diag_because(Diagnostic *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (d->owner != NULL) {
        d->because = format_args(d->owner->arena, format, args);
    }
    va_end(args);
}

void diag_help(Diagnostic *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (d->owner != NULL) {
        d->help = format_args(d->owner->arena, format, args);
    }
    va_end(args);
}

void diag_fix(Diagnostic *d, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (d->owner != NULL && span.source != 0) {
        DiagFix fix = {span, format_args(d->owner->arena, format, args)};
        vec_push(d->owner->arena, &d->fixes, fix);
    }
    va_end(args);
}

void diag_meant(Diagnostic *d, Span span, const char *near)
{
    diag_help(d, "did you mean '%s'?", near);
    diag_fix(d, span, "%s", near);
}

int diags_exit_code(const Diags *d)
{
    if (d->input_is_wrong || (d->warnings_are_errors && d->n_warnings > 0)) {
        return 1;
    }
    return d->n_errors > 0 ? 4 : 0;
}

static const struct {
    const char *text, *about;
} code_table[DIAG_COUNT] = {
#define DIAG(id, code, about) [id] = {code, about},
#include "base/diag.def"
};

const char *diag_code_text(DiagCode code)
{
    CHECK(code < DIAG_COUNT);
    return code_table[code].text;
}

const char *diag_code_about(DiagCode code)
{
    CHECK(code < DIAG_COUNT);
    return code_table[code].about;
}
