/* SPDX-License-Identifier: Apache-2.0 */
/* See profile.h. Ticks become seconds by what the clock says of the time between the begin and the end of counting. */
#include "driver/run/profile.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "driver/run/c_library.h"
#include "driver/tool.h"

#define BAR          30
#define PROBES       20000 /* switches by which a counter's own time is measured */
#define JSON_VERSION 1

typedef struct Row {
    uint32_t line;
    const char *text;
    uint64_t runs;  /* of a call */
    double seconds; /* of a call */
} Row;

typedef struct Counted {
    uint32_t n;
    Row *row;                    /* [n]: those that take longest first */
    double call, rest, counting; /* seconds of a call; of no statement; of the counters */
} Counted;

static void *symbol(const CLibrary *b, const char *name)
{
    return dlsym(b->handle, name);
}

static void call_function(const CLibrary *b, const char *name)
{
    void (*f)(void) = NULL;
    *(void **)&f = symbol(b, name);
    if (f != NULL) {
        f();
    }
}

void profile_begin(CLibrary *b)
{
    b->counted_from = tool_clock();
    call_function(b, "tdsl_profile_begin");
}

void profile_end(CLibrary *b)
{
    call_function(b, "tdsl_profile_end");
    b->counted = tool_clock() - b->counted_from;
}

static int by_seconds(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return a->seconds != b->seconds ? (a->seconds < b->seconds ? 1 : -1)
                                    : (a->line > b->line) - (a->line < b->line);
}

static Counted counted(const CLibrary *b, const CTiming *t)
{
    const uint64_t *ticks = symbol(b, "tdsl_profile_ticks"),
                   *runs = symbol(b, "tdsl_profile_runs");
    const uint32_t *lines = symbol(b, "tdsl_profile_lines"),
                   *n = symbol(b, "tdsl_profile_counters");
    const char *const *texts = symbol(b, "tdsl_profile_texts");
    uint64_t calls = t->repeat > 0 ? (uint64_t)t->repeat : 1, switches = 0;
    double all = 0;
    Counted c = {.row = ARENA_ARRAY(b->arena, *n, Row), .call = t->mean};
    for (uint32_t k = 0; k < *n; k++) {
        all += (double)ticks[k];
        switches += runs[k];
    }
    double tick = all > 0 ? b->counted / all / (double)calls : 0;
    c.rest = c.call;
    for (uint32_t k = 1; k < *n; k++) {
        if (runs[k] > 0) {
            c.row[c.n] = (Row){lines[k], texts[k], runs[k] / calls, (double)ticks[k] * tick};
            c.rest -= c.row[c.n++].seconds;
        }
    }
    c.rest = c.rest < 0 ? 0 : c.rest;
    qsort(c.row, c.n, sizeof *c.row, by_seconds);
    double start = tool_clock();
    for (int k = 0; k < PROBES / 1000; k++) {
        call_function(b, "tdsl_profile_probe"); /* a thousand */
    }
    c.counting = (tool_clock() - start) / PROBES * (double)switches / (double)calls;
    return c;
}

static void put_seconds(Text *out, double seconds)
{
    double us = seconds * 1e6;
    text_printf(out,
                us >= 1e5   ? "%8.1f ms"
                : us >= 1e3 ? "%8.3f ms"
                            : "%8.3f us",
                us >= 1e3 ? us / 1e3 : us);
}

static void put_bar(Text *out, double seconds, double all)
{
    double share = all > 0 ? seconds / all : 0;
    int length = (int)(BAR * (share > 1 ? 1 : share) + 0.5);
    text_printf(out, "%5.1f %%  ", 100 * share);
    put_seconds(out, seconds);
    text_printf(out, "  %.*s%*s", length, "##############################", BAR - length, "");
}

static void put_text(const Counted *c, Text *out)
{
    text_put(out, "profile of a call on one thread,");
    put_seconds(out, c->call);
    text_printf(out, "; the counters take about %.0f %% of it\n",
                c->call > 0 ? 100 * c->counting / c->call : 0.0);
    for (uint32_t k = 0; k < c->n; k++) {
        const Row *r = &c->row[k];
        put_bar(out, r->seconds, c->call);
        text_printf(out, " %8llu x  ", (unsigned long long)r->runs);
        if (r->line > 0) {
            text_printf(out, "line %u: ", r->line);
        }
        text_put(out, r->text);
        text_char(out, '\n');
    }
    put_bar(out, c->rest, c->call);
    text_put(out, "             the rest: loops, checks, the call\n");
}

static void put_json(const Counted *c, const char *kernel, int64_t calls, Text *out)
{
    text_printf(out, "{\"version\": %d, \"kernel\": ", JSON_VERSION);
    text_json(out, kernel);
    text_printf(out,
                ", \"calls\": %lld, \"seconds\": %.9g, \"counters_seconds\": %.9g, "
                "\"rest_seconds\": %.9g, \"statements\": [",
                (long long)calls, c->call, c->counting, c->rest);
    for (uint32_t k = 0; k < c->n; k++) {
        text_printf(out, "%s\n{\"line\": %u, \"text\": ", k == 0 ? "" : ",", c->row[k].line);
        text_json(out, c->row[k].text);
        text_printf(out, ", \"seconds\": %.9g, \"runs\": %llu}", c->row[k].seconds,
                    (unsigned long long)c->row[k].runs);
    }
    text_put(out, "\n]}\n");
}

void profile_show(const CLibrary *b, const char *kernel, const CTiming *t, RunProfile *p)
{
    Text text = text_new(b->arena);
    Counted c = counted(b, t);
    if (p->to_file) {
        put_json(&c, kernel, t->repeat, &text);
    } else {
        put_text(&c, &text);
    }
    p->text = text_str(&text);
}
