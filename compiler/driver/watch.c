/* SPDX-License-Identifier: Apache-2.0 */
/* See watch.h. A compilation writes the names of what it has read into a pipe, each with a NUL behind it. What is known before it
 * begins is looked at before: a change while it runs is one. */
#include "driver/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver/decisions.h"

/* Nanoseconds between two looks. */
#define PAUSE 200000000L

typedef struct Watched {
    const char *path;
    bool there;
    struct stat seen;
} Watched;

typedef struct Watch {
    Arena *arena;
    VEC(Watched) files;
} Watch;

static int report = -1; /* the compilation's end of the pipe */

static bool has_changed(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec ||
           a->st_size != b->st_size || a->st_ino != b->st_ino;
}

/* Names that are known already stay as they were seen. */
static void add(Watch *w, const char *path)
{
    for (uint32_t k = 0; k < w->files.n; k++) {
        if (strcmp(w->files.at[k].path, path) == 0) {
            return;
        }
    }
    Watched fresh = {.path = str_dup(w->arena, str_from(path))};
    fresh.there = stat(path, &fresh.seen) == 0;
    vec_push(w->arena, &w->files, fresh);
}

/* A file that is gone, as while an editor replaces it, has not changed yet. */
static bool look(Watch *w)
{
    bool changed = false;
    for (uint32_t k = 0; k < w->files.n; k++) {
        struct stat now;
        Watched *f = &w->files.at[k];
        if (stat(f->path, &now) == 0 && (!f->there || has_changed(&f->seen, &now))) {
            f->there = changed = true;
            f->seen = now;
        }
    }
    return changed;
}

static void read_names(Watch *w, int fd)
{
    char buffer[4096];
    Text text = text_new(w->arena);
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) {
        text_put_n(&text, buffer, (size_t)n);
    }
    for (size_t at = 0; at < text.n; at += strlen(text.at + at) + 1) {
        add(w, text.at + at);
    }
}

static void say(const Watch *w, int status, double seconds)
{
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) != NULL) {
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    }
    fprintf(stderr, "tdslc: %s %s in %.2f s; watching %s", clock,
            WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "compiled" : "failed", seconds,
            w->files.at[0].path);
    if (w->files.n > 1) {
        fprintf(stderr, " and %u file%s more", w->files.n - 1, w->files.n > 2 ? "s" : "");
    }
    fputs(", Ctrl-C ends\n", stderr);
}

bool watch(ToolRun *t)
{
    Watch w = {.arena = &t->arena};
    if (t->options.positional.n != 1 || strcmp(t->options.positional.at[0], "-") == 0) {
        return usage_error(&t->usage, "--watch needs a FILE.tdsl to watch");
    }
    add(&w, t->options.positional.at[0]);
    for (;;) {
        int ends[2];
        double start = tool_clock();
        if (pipe(ends) != 0) {
            return diag_refuse(&t->ctx.diags, E_FILE, (Span){0}, "--watch: no pipe");
        }
        (void)fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            (void)close(ends[0]);
            report = ends[1];
            return true;
        }
        (void)close(ends[1]);
        int status = 0;
        if (child > 0) {
            read_names(&w, ends[0]);
            (void)waitpid(child, &status, 0);
        }
        (void)close(ends[0]);
        if (child < 0) {
            return diag_refuse(&t->ctx.diags, E_FILE, (Span){0}, "--watch: no process");
        }
        say(&w, status, tool_clock() - start);
        while (!look(&w)) {
            (void)nanosleep(&(struct timespec){0, PAUSE}, NULL);
        }
    }
}

static void tell(const char *path)
{
    if (!file_is_stream(path)) {
        (void)file_write_all(report, (Str){path, strlen(path) + 1});
    }
}

void watch_tell(const ToolRun *t)
{
    const Sources *sources = &t->ctx.sources;
    const char *file[DECISION_FILES];
    if (report < 0) {
        return;
    }
    for (uint32_t k = 0; k < sources->list.n; k++) {
        const Source *s = sources->list.at[k];
        if (!s->places_only && access(s->name, F_OK) == 0) { /* not those of the compiler */
            tell(s->name);
        }
    }
    uint32_t n = decisions_files(&t->options, file);
    for (uint32_t k = 0; k < n; k++) {
        tell(file[k]);
    }
    (void)close(report);
    report = -1;
}
