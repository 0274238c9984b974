/* SPDX-License-Identifier: Apache-2.0 */
/* See follow.h. */
#include "driver/follow.h"

#include <stdio.h>

void trace_begin(ToolRun *t, double start)
{
    if (option_given(&t->options, OPT_TIME_TRACE)) {
        t->trace = ARENA_NEW(&t->arena, Trace);
        text_init(&t->trace->events, &t->arena);
        t->trace->start = start;
    }
}

void trace_add(Trace *trace, const char *name, const char *kind, double start)
{
    if (trace == NULL) {
        return;
    }
    Text *out = &trace->events;
    double now = tool_clock();
    text_put(out, out->n == 0 ? "" : ",\n");
    text_put(out, "{\"name\": ");
    text_quoted(out, str_from(name));
    text_printf(out,
                ", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": 1, "
                "\"tid\": 1}",
                kind, (start - trace->start) * 1e6, (now - start) * 1e6);
}

void trace_write(ToolRun *t)
{
    if (t->trace == NULL) {
        return;
    }
    Text text = text_new(&t->arena);
    text_put(&text, "{\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": "
                    "1, \"args\": {\"name\": \"tdslc ");
    text_put(&text, TDSL_VERSION "\"}}");
    text_put(&text, t->trace->events.n == 0 ? "" : ",\n");
    text_put_n(&text, t->trace->events.at, t->trace->events.n);
    text_put(&text, "\n], \"displayTimeUnit\": \"ms\"}\n");
    files_add(&t->files, option_last(&t->options, OPT_TIME_TRACE, "-"), text_str(&text));
}

static void kernel_ends(Follow *f)
{
    if (f->kernel != NULL) {
        trace_add(f->trace, f->kernel, "kernel", f->kernel_start);
        f->kernel = NULL;
    }
}

static void begins(void *user, const char *pass)
{
    Follow *f = user;
    f->pass = pass;
    f->pass_start = tool_clock();
    f->of = 0;
}

static void ends(void *user)
{
    Follow *f = user;
    kernel_ends(f);
    trace_add(f->trace, f->pass, "pass", f->pass_start);
}

/* "fuse: energy, kernel 3 of 49, 640 of 1500 nests, 2 s", where that is known. */
static void show(Follow *f, uint64_t done, uint64_t most)
{
    if (!progress_due(&f->line)) {
        return;
    }
    fprintf(stderr, "\r%s: %s", f->pass, f->kernel);
    if (f->of > 1) {
        fprintf(stderr, ", kernel %u of %u", f->number + 1, f->of);
    }
    if (most > 0) {
        fprintf(stderr, ", %llu of at most %llu nests", (unsigned long long)done,
                (unsigned long long)most);
    }
    fprintf(stderr, ", %.0f s\033[K", progress_elapsed(&f->line));
    (void)fflush(stderr);
}

static void kernel(void *user, const char *name, uint32_t number, uint32_t of)
{
    Follow *f = user;
    kernel_ends(f);
    f->kernel = name;
    f->kernel_start = tool_clock();
    f->number = number;
    f->of = of;
    show(f, 0, 0);
}

static void step(void *user, uint64_t done, uint64_t most)
{
    Follow *f = user;
    if (f->kernel != NULL) {
        show(f, done, most);
    }
}

void follow_begin(Follow *f, ToolRun *t)
{
    *f = (Follow){
        .ctx = &t->ctx, .trace = t->trace, .follower = {begins, kernel, step, ends, f}};
    progress_line(&f->line);
    t->ctx.follower = &f->follower;
}

void follow_end(Follow *f)
{
    progress_clear(&f->line);
    f->ctx->follower = NULL;
}
