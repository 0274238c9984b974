/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. */
#include "driver/request.h"

#include <string.h>

#include "driver/cures.h"
#include "driver/files.h"

#define PREFIX_LIMIT 40

typedef struct Reader {
    Request *r;
    const Options *o;
    Arena *arena;
    Usage *usage;
} Reader;

static bool refuse(const Reader *d, const char *what)
{
    return usage_error(d->usage, "%s", what);
}

static bool refuse_name(const Reader *d, const char *what, const char *name)
{
    return usage_error(d->usage, "%s '%s'", what, name);
}

static bool given(const Reader *d, OptionId id)
{
    return option_given(d->o, id);
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

/* ---- what is wanted ---- */

static bool read_target(const Reader *d)
{
    d->r->target = target_named(d->arena, option_last(d->o, OPT_TARGET, "c"), d->usage);
    return d->r->target != NULL;
}

static bool read_form(const Reader *d)
{
    const char *form = option_last(d->o, OPT_REPORT, "");
    d->r->form = strcmp(form, "json") == 0   ? REPORT_JSON
                 : strcmp(form, "html") == 0 ? REPORT_HTML
                                             : REPORT_TEXT;
    if (d->r->form == REPORT_TEXT && form[0] != '\0') {
        return usage_error(d->usage, "'--report=%s': json, html, or nothing for text", form);
    }
    return true;
}

static const struct {
    const char *name;
    Wanted wanted;
} kinds[] = {{"c", WANT_CODE}, {"path", WANT_PATH}, {"dot", WANT_DOT}, {"json", WANT_JSON}};

void request_kinds(Text *out)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        text_printf(out, "%s%s", k == 0 ? "" : " ", kinds[k].name);
    }
    for (uint32_t t = 0; target_at(t) != NULL; t++) {
        const TargetWrapper *w = target_at(t)->wrappers;
        for (; w != NULL && w->name != NULL; w++) {
            text_printf(out, " %s", w->name);
        }
    }
}

static bool read_kind(const Reader *d)
{
    const char *name = option_last(d->o, OPT_EMIT, "c");
    d->r->suffix = d->r->target->suffix;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (strcmp(name, kinds[k].name) == 0) {
            d->r->wanted = kinds[k].wanted;
            return true;
        }
    }
    const TargetWrapper *w = d->r->target->wrappers;
    for (; w != NULL && w->name != NULL; w++) {
        if (strcmp(name, w->name) == 0) {
            d->r->wanted = WANT_CODE;
            d->r->wrapper = w->name;
            d->r->suffix = w->suffix;
            return true;
        }
    }
    (void)usage_error(d->usage, "'--emit=%s': there are", name);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        text_printf(&d->usage->message, " %s", kinds[k].name);
    }
    for (w = d->r->target->wrappers; w != NULL && w->name != NULL; w++) {
        text_printf(&d->usage->message, " %s", w->name);
    }
    if (strcmp(name, "asm") == 0 || strcmp(name, "obj") == 0 || strcmp(name, "llvm") == 0) {
        usage_help(d->usage, "the C compiler makes that from the C, 'cc -S' or 'cc -c'");
    } else if (strcmp(name, "html") == 0) {
        usage_help(d->usage, "--report=html");
    } else if (target_find(name) != NULL) {
        usage_help(d->usage, "--target=%s", name);
    }
    return false;
}

/* It begins names of C. */
static bool read_prefix(const Reader *d)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                      more[] =
                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *prefix = option_last(d->o, OPT_PREFIX, NULL);
    d->r->prefix = prefix;
    return prefix == NULL ||
           (strspn(prefix, letters) > 0 && prefix[strspn(prefix, more)] == '\0' &&
            strlen(prefix) <= PREFIX_LIMIT) ||
           refuse_name(
               d, "at most 40 letters, digits and '_' after a letter begin a name: --prefix",
               prefix);
}

/* A stage, or a pass: the stage that it gives, and how many passes run. */
typedef struct Until {
    Stage stage;
    uint32_t end;
} Until;

static Until until_stage(const Reader *d, Stage s)
{
    return (Until){s, passes_until(d->r->target, s)};
}

static bool refuse_stage(const Reader *d, OptionId id, const char *name)
{
    (void)usage_error(d->usage, "unknown stage '%s'; there are", name);
    for (Stage s = (Stage)0; s < STAGE_OUTPUT; s++) {
        text_printf(&d->usage->message, " %s", stage_name(s));
    }
    text_put(&d->usage->message, ", and the passes that --list-passes says");
    if (id == OPT_DUMP && strcmp(name, "all") == 0) {
        usage_help(d->usage, "--dump-dir=DIR writes what every pass leaves");
    }
    return false;
}

static bool read_until(const Reader *d, OptionId id, Until *out)
{
    const Target *target = d->r->target;
    const char *name = option_last(d->o, id, NULL);
    Stage s = STAGE_NONE;
    if (name == NULL) {
        return true;
    }
    if (stage_from_name(name, &s)) {
        *out = until_stage(d, s);
        return true;
    }
    uint32_t place = pass_find(target, name);
    if (place == pass_count(target) || pass_at(target, place).to == STAGE_OUTPUT) {
        return refuse_stage(d, id, name);
    }
    Pass pass = pass_at(target, place);
    *out = (Until){pass.to, place + 1};
    return pass.without != WITHOUT_PART ||
           refuse_name(d, "a part of another pass leaves nothing of its own:", name);
}

/* Does -o name what the target writes, where a report was asked for too? */
static bool names_code(const Target *target, const char *out)
{
    if (strcmp(out, "/dev/null") == 0) {
        return true;
    }
    return target->suffix != NULL ? ends_in(out, target->suffix)
                                  : strcmp(out, "-") != 0 && !ends_in(out, ".html") &&
                                        !ends_in(out, ".json") && !ends_in(out, ".txt");
}

/* Is a dependency file asked for? */
static bool wants_rules(const Reader *d)
{
    return given(d, OPT_MD) || given(d, OPT_MMD) || given(d, OPT_MF);
}

/* C is what is wanted where nothing else is said; a report or a plan is something else. */
static bool code_is_wanted(const Reader *d)
{
    const char *out = option_last(d->o, OPT_OUTPUT, NULL);
    if (given(d, OPT_EMIT) || given(d, OPT_HEADER) || wants_rules(d)) {
        return true;
    }
    return out == NULL ? !given(d, OPT_REPORT) && !given(d, OPT_PLAN_OUT)
                       : !given(d, OPT_REPORT) || names_code(d->r->target, out);
}

static bool read_path_request(const Reader *d)
{
    static const OptionId others[] = {OPT_DUMP, OPT_STOP, OPT_HEADER, OPT_MD,  OPT_MMD,
                                      OPT_MT,   OPT_MF,   OPT_MP,     OPT_TUNE};
    const char *other = option_among(d->o, d->arena, sizeof others / sizeof others[0], others);
    return other == NULL ||
           refuse_name(d, "--emit=path writes the report of a search only, without", other);
}

/* A nest goes to -o, and nothing beside it. */
static bool read_tune_request(const Reader *d)
{
    static const OptionId others[] = {OPT_DUMP,   OPT_STOP,     OPT_HEADER,    OPT_EMIT,
                                      OPT_REPORT, OPT_PLAN_OUT, OPT_CHECK_EACH};
    const char *other = option_among(d->o, d->arena, sizeof others / sizeof others[0], others);
    if (other != NULL) {
        return refuse_name(d, "--tune writes a nest only, without", other);
    }
    d->r->wanted = WANT_TUNED;
    d->r->last = STAGE_NEST;
    d->r->end = passes_until(d->r->target, STAGE_NEST);
    d->r->seconds = 60;
    d->r->threads = 1;
    if (!option_number(d->o, OPT_TUNE_TIME, 1, 1000000, &d->r->seconds, d->usage) ||
        !option_number(d->o, OPT_TUNE_THREADS, 1, THREADS_MOST, &d->r->threads, d->usage)) {
        return false;
    }
    return strcmp(d->r->target->name, "c") == 0 ||
           refuse_name(d, "--tune runs what it tries: there is no way to run target",
                       d->r->target->name);
}

static bool read_wanted(const Reader *d)
{
    Request *r = d->r;
    Until all = until_stage(d, STAGE_OUTPUT), stop = all, dump = all, last = all;
    if (!read_kind(d) || !read_until(d, OPT_DUMP, &dump) || !read_until(d, OPT_STOP, &stop)) {
        return false;
    }
    if (r->wanted == WANT_PATH) {
        return read_path_request(d);
    }
    if (given(d, OPT_NETWORK)) {
        return refuse(d, "--network needs --emit=path");
    }
    if (given(d, OPT_TUNE)) {
        return read_tune_request(d);
    }
    if (given(d, OPT_TUNE_TIME) || given(d, OPT_TUNE_THREADS) || given(d, OPT_CC) ||
        given(d, OPT_CFLAGS)) {
        return refuse(d, "--tune-time, --tune-threads, --cc and --cflags say how --tune goes "
                         "about it");
    }
    if (given(d, OPT_DUMP) && given(d, OPT_EMIT)) {
        return refuse(d, "--dump and --emit ask for two things: one at a time");
    }
    if (given(d, OPT_DUMP)) {
        r->wanted = WANT_DUMP;
        last = dump;
    } else if (r->wanted != WANT_CODE) {
        last = until_stage(d, r->wanted == WANT_DOT ? STAGE_NEST : STAGE_GRAPH);
    } else {
        bool stops = stop.stage != STAGE_OUTPUT;
        r->wanted = !stops && code_is_wanted(d) ? WANT_CODE : WANT_NOTHING;
        if (stops) {
            last = stop;
        } else if (r->wanted == WANT_NOTHING && !given(d, OPT_REPORT)) {
            last = until_stage(d, STAGE_LEGAL); /* a report says how long the text is */
        }
    }
    r->last = last.stage;
    r->end = last.end;
    if (stop.stage < last.stage || stop.end < last.end) {
        return refuse(d, "--stop-after names an earlier stage than what is asked for");
    }
    return true;
}

/* ---- where it goes ---- */

static const char *const wanted_names[] = {"nothing",   "the C",      "the dump", "the graph",
                                           "the graph", "the report", "the nest"};

static bool place_report(const Reader *d)
{
    Request *r = d->r;
    if (!given(d, OPT_REPORT) || r->wanted == WANT_PATH) {
        return true;
    }
    if (r->last < STAGE_NEST) {
        return refuse(d, "--report tells what was decided: --dump, --emit or --stop-after ask "
                         "for less");
    }
    if (r->wanted == WANT_NOTHING) {
        r->report = r->out != NULL ? r->out : "-";
        r->out = NULL;
        return true;
    }
    r->report = "-";
    bool looks = (r->form == REPORT_HTML && ends_in(r->out, ".html")) ||
                 (r->form == REPORT_JSON && ends_in(r->out, ".json"));
    if (looks || file_descriptor(r->out) == 1) {
        return usage_error(d->usage,
                           "%s and the report are two outputs: -o names a file for "
                           "%s, the report goes to standard output",
                           wanted_names[r->wanted], wanted_names[r->wanted]);
    }
    return true;
}

/* C goes into a file of any name but those by which other things are known, unless --emit says that it is meant. */
static bool check_output(const Reader *d)
{
    const Request *r = d->r;
    bool code = r->wanted == WANT_CODE && r->target->suffix != NULL && !given(d, OPT_EMIT);
    const char *cure = code ? cure_output(d->arena, r->out) : NULL;
    if (cure == NULL) {
        return true;
    }
    usage_help(d->usage, "%s", cure);
    return usage_error(d->usage, "what is written is C, and '%s' does not look like it",
                       r->out);
}

/* Is it written what files of one build share? */
bool request_is_shared(const Request *r)
{
    return r->wrapper != NULL && strcmp(r->wrapper, "shared") == 0;
}

/* --emit=shared writes C and a header; --shared names it to the files that include it. */
static bool place_shared(const Reader *d)
{
    Request *r = d->r;
    const char *header = option_last(d->o, OPT_SHARED, NULL);
    bool writes_c = r->wanted == WANT_CODE && r->target->wrappers != NULL;
    if (request_is_shared(r) && r->header == NULL) {
        return refuse(d, "--emit=shared writes two files, of C and its header: -o FILE.c");
    }
    if (header != NULL && !writes_c) {
        return refuse(d, "--shared goes with C only");
    }
    r->shared = header == NULL || request_is_shared(r) ? NULL : path_last_part(header);
    return header == NULL || !request_is_shared(r) ||
           refuse(d, "--shared is for the files that include what --emit=shared writes");
}

static bool place_header(const Reader *d)
{
    Request *r = d->r;
    const char *asked = option_last(d->o, OPT_HEADER, NULL);
    if (asked != NULL && r->wanted != WANT_CODE && !given(d, OPT_STOP)) {
        return refuse(d, "--header goes with C only");
    }
    if (r->wanted != WANT_CODE) {
        return true;
    }
    if (asked != NULL && (r->target->suffix == NULL || strcmp(asked, "-") == 0)) {
        return r->target->suffix == NULL
                   ? refuse_name(d, "--header goes with C only, not with target",
                                 r->target->name)
                   : refuse(d, "--header needs the name of a file: the C includes it");
    }
    r->header_asked = asked != NULL;
    if (asked == NULL && r->target->suffix != NULL && !file_is_stream(r->out)) {
        int n = (int)(strlen(r->out) - (ends_in(r->out, r->suffix) ? strlen(r->suffix) : 0));
        asked = str_format(d->arena, "%.*s.h", n, r->out);
    }
    r->header = asked;
    return true;
}

static bool place_depfile(const Reader *d)
{
    Request *r = d->r;
    r->phony = given(d, OPT_MP);
    if ((r->phony || given(d, OPT_MT)) && !wants_rules(d)) {
        return refuse_name(d, "-MD, -MMD or -MF writes a dependency file, for",
                           r->phony ? "-MP" : "-MT");
    }
    if (!wants_rules(d) || (r->wanted == WANT_NOTHING && r->report == NULL)) {
        return true;
    }
    r->rule = r->out != NULL ? r->out : r->report;
    r->depfile = option_last(d->o, OPT_MF, NULL);
    bool named = strcmp(r->rule, "-") != 0 || (given(d, OPT_MT) && r->depfile != NULL);
    if (!named || (r->depfile == NULL && file_is_stream(r->rule))) {
        return refuse(d, "-MD and -MF need -o FILE: a rule of make names what it makes");
    }
    r->made = &d->o->given[OPT_MT];
    if (r->depfile == NULL) {
        r->depfile = str_format(d->arena, "%s.d", r->rule);
    }
    return true;
}

/* Two names of one place that are told apart by nothing but reading the command line; links and
 * the like are seen when files are written. */
static bool check_places(const Reader *d)
{
    const Request *r = d->r;
    const char *const all[] = {r->out, r->header, r->depfile, r->report, r->plan};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        for (size_t j = 0; j < k && all[k] != NULL; j++) {
            int fd = file_descriptor(all[k]);
            if (all[j] != NULL &&
                (fd >= 0 ? fd == file_descriptor(all[j]) : strcmp(all[k], all[j]) == 0)) {
                return refuse_name(d, "two outputs go to", all[k]);
            }
        }
    }
    return true;
}

bool request_read(Request *r, const Options *o, Arena *arena, Usage *usage)
{
    Reader d = {r, o, arena, usage};
    *r = (Request){.plan = option_last(o, OPT_PLAN_OUT, NULL)};
    if (!read_target(&d) || !read_form(&d) || !read_prefix(&d) || !read_wanted(&d)) {
        return false;
    }
    r->out = option_last(o, OPT_OUTPUT, r->wanted == WANT_NOTHING ? NULL : "-");
    return place_report(&d) && check_output(&d) && place_header(&d) && place_shared(&d) &&
           place_depfile(&d) && check_places(&d);
}
