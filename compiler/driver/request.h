/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line of tdslc asks for and where each thing goes: the table "What goes where"
 * of docs/tools.md as a function. Settled before anything is read, so that two things at one
 * place, or a name that no output takes, cost nothing but a message. */
#ifndef DRIVER_REQUEST_H
#define DRIVER_REQUEST_H

#include "driver/compile.h"
#include "driver/options.h"

typedef enum Wanted {
    WANT_NOTHING, /* but the report, the plan, or the check of --stop-after */
    WANT_CODE,
    WANT_DUMP,
    WANT_DOT,
    WANT_JSON,
    WANT_PATH,
    WANT_TUNED /* a nest */
} Wanted;

typedef enum ReportForm { REPORT_TEXT, REPORT_JSON, REPORT_HTML } ReportForm;

/* Places are paths, "-" for standard output; null: not asked for. */
typedef struct Request {
    const Target *target;
    Wanted wanted;
    Stage last;          /* the passes run up to here; of a dump: which one */
    uint32_t end;        /* ... and no more than so many of them */
    const char *out;     /* of what is wanted */
    const char *prefix;  /* of exported names; null: none */
    const char *suffix;  /* of what the target writes; null: a folder of files */
    const char *wrapper; /* one of the target's, instead of its text; null: its text */
    const char *shared; /* the header of what files of one build share; null: each has it all */
    const char *header;
    bool header_asked; /* by name: that there is none is an error */
    const char *depfile;
    const char *rule;         /* what the dependency file says is made, */
    const OptionValues *made; /* or these, if there are any */
    bool phony;               /* it has rules for the header and for included files too */
    const char *report;
    ReportForm form;
    const char *plan;
    int64_t seconds; /* of WANT_TUNED */
    int64_t threads; /* ... that nests are run on */
} Request;

/* What --emit takes, of all targets, with blanks between. */
void request_kinds(Text *out);

/* Is it --emit=shared, which takes several programs? */
bool request_is_shared(const Request *r);

/* False after a message on `usage` (exit 2). */
bool request_read(Request *r, const Options *o, Arena *arena, Usage *usage);

#endif
